from __future__ import annotations

import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.tooling import program as tool
from torch_compat.operators.export_schema import BASE, Alteration, Witnesses
from torch_compat.replay.witnesses import BASES, Witness, exported_witnesses

FIXTURES = Path(__file__).parents[2] / "fixtures"


@pytest.fixture(scope="module")
def witnesses() -> dict[str, Witness]:
    return {witness.name: witness for witness in exported_witnesses(FIXTURES)}


def program(witness: Witness) -> dict[str, Any]:
    with zipfile.ZipFile(io.BytesIO(witness.data)) as archive:
        (holder,) = [name for name in archive.namelist() if b'"schema_version"' in archive.read(name)]
        results: dict[str, Any] = json.loads(archive.read(holder))
        return results


def paths(old: object, new: object, at: str = "") -> list[str]:
    """Where two documents differ, each deepest place once."""
    if isinstance(old, dict) and isinstance(new, dict):
        return [path for key in old.keys() | new.keys() for path in paths(old.get(key), new.get(key), f"{at}/{key}")]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [path for number, pair in enumerate(zip(old, new, strict=True)) for path in paths(*pair, f"{at}/{number}")]
    return [] if old == new else [at]


def test_the_recorded_answers_are_of_the_archives_that_are_made_today(witnesses: dict[str, Witness]) -> None:
    results = {name: hashlib.sha256(witness.data).hexdigest() for name, witness in witnesses.items()}
    answers = Witnesses().answers()
    assert {answer.name: answer.archive for answer in answers} == {answer.name: results[answer.name] for answer in answers}
    assert results.keys() == {answer.name for answer in answers}, "every archive was loaded by its writer at least"


def test_nothing_but_what_is_altered_differs_from_the_base(witnesses: dict[str, Witness]) -> None:
    for name, witness in witnesses.items():
        if witness.base is None:
            continue
        base = witnesses[witness.base]
        places = {place.rsplit("/", 1)[0] for place in paths(program(base), program(witness))}
        assert len(places) == 1, f"{name} is altered at {sorted(places)}"
        with zipfile.ZipFile(io.BytesIO(base.data)) as old, zipfile.ZipFile(io.BytesIO(witness.data)) as new:
            assert old.namelist() == new.namelist()
            changed = [record for record in old.namelist() if old.read(record) != new.read(record)]
        assert len(changed) == 1, name


def test_a_marker_is_in_the_altered_program_alone(witnesses: dict[str, Witness]) -> None:
    marked = [item for item in witnesses.values() if item.marker]
    assert marked
    for witness in marked:
        assert witness.base is not None
        assert witness.marker in json.dumps(program(witness)), witness.name
        assert witness.marker not in json.dumps(program(witnesses[witness.base])), witness.name


def test_each_alteration_is_made_of_some_archive_and_each_base_comes_first(witnesses: dict[str, Witness]) -> None:
    assert {name.partition("@")[0] for name in witnesses} == set(Alteration)
    order = list(witnesses)
    assert all(order.index(witness.base) < order.index(name) for name, witness in witnesses.items() if witness.base is not None)
    assert [name for name, witness in witnesses.items() if witness.base is None] == [f"{BASE}@{writer}" for writer in BASES]


def test_the_tool_writes_every_archive(tmp_path: Path, witnesses: dict[str, Witness]) -> None:
    assert tool("export_witnesses").main([str(tmp_path / "made")]) == 0
    assert {path.stem: path.read_bytes() for path in (tmp_path / "made").iterdir()} == {
        name: witness.data for name, witness in witnesses.items()
    }
