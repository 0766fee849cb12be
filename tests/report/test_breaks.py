from __future__ import annotations

import pytest

from torch_compat.report.breaks import direction, order


def test_releases_stand_in_the_order_of_their_versions_and_builds_after_them() -> None:
    names = ["reference@1.5.1", "2.16.0", "torch-2.16.0.dev20261120", "torch-1.10.0+cpu", "torch-1.10.0", "1.9.0", "synthetic"]
    assert sorted(names, key=order) == names[::-1]


@pytest.mark.parametrize(
    ("writer", "reader", "found"),
    [
        ("1.10.0", "torch-1.10.0+cpu", "own"),
        ("1.10.0", "torch-1.9.0", "older"),
        ("1.9.0", "torch-2.16.0.dev20261120+cpu", "newer"),
        ("2.16.0", "torch-2.16.0.dev20261120+cpu", "older"),
        ("synthetic", "torch-1.9.0", "synthetic"),
        ("1.9.0", "reference@1.9.0", "reference"),
    ],
)
def test_what_a_reader_is_to_a_writer(writer: str, reader: str, found: str) -> None:
    assert direction(writer, reader) == found
