"""The reference reader against torch 2.13.0 on generated calls and programs: a subset of ``python -m tools.differential``.

Every overload of the reader is called at least once, or explicitly excluded with a reason.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from tools.differential.calls import Release
from tools.differential.comparison import EXCLUDED, MORE, VERSION, Disagreement, exclusion, full_name, groups, overloads, row_of
from tools.differential.generated import Programs, run
from torch_compat.runtime.registry import known

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.real_torch(VERSION)
PARTS = 4
CALLS, PROGRAMS = 2, 100


@pytest.fixture(scope="module")
def torch() -> Iterator[Release]:
    real = Release(VERSION)
    yield real
    real.close()


@pytest.fixture(scope="module")
def schemas(torch: Release) -> list[dict[str, Any]]:
    return overloads(torch)


@pytest.mark.parametrize("part", range(PARTS))
def test_same_as_torch(torch: Release, schemas: list[dict[str, Any]], part: int) -> None:
    mine = [group for group in groups(schemas, PARTS)[part] if exclusion(group) is None]
    rows = [row_of(torch, schema, CALLS, 20200624) for schema in mine]
    assert {row["name"]: row["disagreement"] for row in rows if "disagreement" in row} == {}
    assert {row["name"]: row["unwritable"] for row in rows if "unwritable" in row} == {}, "neither compared nor excluded by name"
    counts: Counter[str] = Counter()
    for row in rows:
        counts.update(row["counts"])
    assert counts["compared"] > len(mine) * 0.7, counts  # the rest is refused by both; the whole asks for one value of each


def test_what_is_left_out_is_there(schemas: list[dict[str, Any]]) -> None:
    """A reason that no overload has any more is to be struck out."""
    names = [full_name(schema) for schema in schemas]
    assert [pattern for pattern in EXCLUDED if not any(re.fullmatch(pattern, name) for name in names)] == []
    others = [schema for schema in schemas if not schema["name"].startswith("quantized::")]  # those are all left out
    assert len([schema for schema in others if exclusion(schema)]) < len(others) // 8


def test_every_operator_is_asked_for(schemas: list[dict[str, Any]]) -> None:
    """What torch 2.13.0 does not have is of older releases."""
    asked = {schema["name"] for schema in schemas}
    assert asked <= set(known())
    assert len(asked) > len(known()) * 0.9


def test_no_allowance_takes_what_is_a_matter_of_shapes() -> None:
    for message in (
        "RuntimeError: The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0",
        "IndexError: Dimension out of range (expected to be in range of [-1, 0], but got 7)",
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (1x2 and 3x1)",
        "RuntimeError: shape '[6]' is invalid for input of size 1",
        "RuntimeError: value cannot be converted to type uint8_t without overflow",
    ):
        assert [name for name, pattern in MORE.items() if re.search(pattern, message)] == []


def test_a_planted_difference_is_found(torch: Release, schemas: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    schema = next(item for item in schemas if full_name(item) == "aten::sub.Tensor")
    monkeypatch.setattr("tools.differential.comparison.call_ours", lambda _request, _version: {"value": None, "inputs": []})
    row = row_of(torch, schema, 10, 1)
    assert "tensor" in row["disagreement"]
    monkeypatch.setattr("tools.differential.comparison.call_ours", lambda _request, _version: {"error": "no"})
    assert "refuses" in row_of(torch, schema, 10, 1)["disagreement"]


def test_programs_do_the_same(tmp_path: Path) -> None:
    release = Programs()
    done = run(release, PROGRAMS, 20200624, tmp_path)
    release.close()
    assert done["compared"] > PROGRAMS // 2, done
    assert done["raised"], done


def test_a_planted_difference_in_programs_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an archive and a line that tests/runtime/programs/manifest.jsonl could hold."""
    monkeypatch.setattr("tools.differential.generated.apart", lambda *_: ["planted"])
    release = Programs()
    with pytest.raises(Disagreement):
        run(release, 3, 20200624, tmp_path)
    release.close()
    assert (tmp_path / "disagreement.pt").stat().st_size
    assert (tmp_path / "disagreement.jsonl").read_text("utf-8").startswith('{"calls"')
