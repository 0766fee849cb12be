from __future__ import annotations

from pathlib import Path

import pytest

from tools.draws.__main__ import READERS, RESTRICTED, WRITERS, cells
from torch_compat.inspection import inspect

FIXTURES = Path(__file__).parents[2] / "fixtures"


@pytest.mark.parametrize(
    ("fixture", "release", "expected"),
    [
        ("torch-1.4.0/div.pt", "2.15.0", {"torch.jit.load": True}),
        ("torch-2.13.0/gelu.pt", "1.5.1", {"torch.jit.load": False}),
        ("torch-2.13.0/save_bool.pt", "1.11.0", {"torch.load": True}),
        ("torch-2.13.0/save_bool.pt", "2.0.1", {"torch.load": True, RESTRICTED: True}),
    ],
)
def test_a_cell_is_what_inspect_says_of_a_call(fixture: str, release: str, expected: dict[str, bool]) -> None:
    assert {cell.call: cell.loads for cell in cells(inspect(FIXTURES / fixture), release)} == expected


def test_writers_and_readers_are_those_that_are_told() -> None:
    assert (len(WRITERS), len(READERS)) == (6, 8)
    assert not set(WRITERS) & set(READERS)
