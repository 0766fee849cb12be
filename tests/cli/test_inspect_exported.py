"""What ``inspect`` reports about the schema of an exported program, and about the releases with the same results."""

from __future__ import annotations

from pathlib import Path

import pytest

from torch_compat.cli._inspected import screen
from torch_compat.inspection import look_at
from torch_compat.loadability.changes import alike
from torch_compat.operators.export_schema import packaged_log

FIXTURES = Path(__file__).parents[2] / "fixtures"


def said(fixture: str) -> str:
    result = look_at(str(FIXTURES / f"{fixture}.pt2"))
    return screen(result, 0, tree=False, code=False)


@pytest.mark.parametrize("release", ["2.1.2", "2.2.2", "2.4.1", "2.5.1", "2.6.0", "2.15.0"])
def test_the_schema_version_is_told_with_its_writers_and_readers(release: str) -> None:
    (version,) = [item for item in packaged_log() if release in item.releases]
    text = said(f"torch-{release}/export_conv_linear")
    assert f"schema {version.label}, written by torch {', '.join(version.releases)}; loaders compare only {version.major}" in text


@pytest.mark.parametrize(
    ("writer", "same", "other"),
    [
        ("2.13.0", "loads in 2.9.0 and newer; gives the same results in 2.9.0 to 2.13.0; may fail as of 2.14.0, because", True),
        ("2.15.0", "loads in 2.9.0 and newer; gives the same results in 2.14.0 and newer", False),
        ("2.4.1", "", False),  # no release that loads it has the change
    ],
)
def test_a_program_tells_where_it_computes_the_same_and_why_not_elsewhere(writer: str, same: str, other: bool) -> None:
    text = said(f"torch-{writer}/export_arange_fraction")
    assert (same in text) if same else ("computes the same" not in text)
    assert ("2.14.0: aten::arange: before: " in text) is other


def test_what_computes_the_same_is_a_part_of_what_loads_and_holds_the_writer() -> None:
    inspected = look_at(str(FIXTURES / "torch-2.13.0" / "export_attention_three_dimensions.pt2"))
    assert inspected.needs is not None
    spans = alike(inspected.needs, inspected.changes_of_meaning)
    assert spans == (("2.9.0", "2.13.0"),)
