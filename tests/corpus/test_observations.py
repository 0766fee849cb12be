"""Observations: a round trip changes nothing; what contradicts itself is refused."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torch_compat.corpus.lines import digest, read_lines, write_lines
from torch_compat.corpus.manifest import read_manifest
from torch_compat.corpus.observations import (
    OUTCOME_DIGITS,
    RESULTS,
    Observation,
    ObservedReader,
    Probe,
    cell_key,
    read_observations,
    write_observations,
)
from torch_compat.errors import CorpusError
from torch_compat.values.compare import Difference, compare, result_digest
from torch_compat.values.delta import departures

REPOSITORY = Path(__file__).parents[2]
IDENTITY = {"torch": "1.5.1+cpu", "git": "3c31d73"}
GOLDEN = {"value": 0}
VALUES = {"value": 1}
DEPARTURES = departures(GOLDEN, VALUES)
DIGEST = result_digest(VALUES)
ERROR = {"type": "builtins.RuntimeError", "message": "no"}
BASE = Observation("torch-1.2.0/div", "default", cell_key("0" * 64, {}), "same")
VALUE = {"kind": "value", "dtype": "float32", "count": 1, "frontier": [[0.5, 3]]}


def extent(kind: str) -> dict[str, Any]:
    return {**VALUE, "kind": kind, "frontier": None}


WHOLE = {
    "same": replace(BASE, warnings=(("builtins.UserWarning", "careful ✓"),)),
    "differs": replace(
        BASE,
        result="differs",
        count=1,
        digest=DIGEST,
        departures=DEPARTURES,
        extent=(VALUE,),
        differences=(Difference("value", "x"),),
    ),
    "refused": replace(BASE, result="refused", errors=(ERROR,)),
    "raised": replace(
        BASE, result="raised", errors=(ERROR, ERROR), count=1, digest=DIGEST, departures=DEPARTURES, extent=(extent("raised"),)
    ),
    "relaxed": replace(BASE, result="relaxed", count=1, digest=DIGEST, departures=DEPARTURES, extent=(extent("relaxed"),)),
    "crashed": replace(BASE, result="crashed", signal="SIGSEGV", stage="load"),
    "timed-out": replace(BASE, result="timed-out", stage="call"),
    "unsupported": replace(BASE, result="unsupported", errors=({"type": "operator", "message": "no operator aten::frob"},)),
}
WHOLE["unstable"] = replace(BASE, result="unstable", both=(WHOLE["crashed"], WHOLE["refused"]))


def observed(*cells: Observation, probes: dict[str, Probe] | None = None) -> ObservedReader:
    by_cell = {
        (fixture, cell.options): replace(
            cell, fixture=fixture, both=tuple(replace(one, fixture=fixture, warnings=()) for one in cell.both)
        )
        for index, cell in enumerate(cells)
        for fixture in [f"torch-1.2.0/{index}"]
    }
    if any(cell.result == "unsupported" for cell in cells):  # as no release is
        return ObservedReader("reference", {"reader": "reference"}, "2026-11-20", 1, by_cell, probes or {})
    return ObservedReader("torch-1.5.1+cpu", IDENTITY, "2026-11-20", 1, by_cell, probes or {})


def written(folder: Path, reader: ObservedReader) -> Path:
    path = folder / f"{reader.name}.jsonl"
    write_observations(path, reader)
    return path


def error(path: Path) -> str:
    with pytest.raises(CorpusError) as caught:
        read_observations(path)
    assert caught.value.exit_status == 2
    assert path.name in str(caught.value)
    return str(caught.value)


def rewrite(path: Path, line: str = "outcome", *, header: dict[str, Any] | None = None, **change: Any) -> Path:
    """Change the header, or the only line of a kind, with an id and a footer that fit."""
    head, lines = read_lines(path, "observations")
    entries = [entry for _, entry in lines]
    for entry in entries:
        if entry["kind"] == line:
            entry.update(change)
            for key in [key for key, value in entry.items() if value is ...]:
                del entry[key]
            if line == "outcome" and "id" not in change:
                body = {key: value for key, value in entry.items() if key not in {"kind", "id"}}
                known, entry["id"] = entry["id"], digest(body)[:OUTCOME_DIGITS]
                for other in entries:
                    for options, name in other.get("cells", {}).items():
                        other["cells"][options] = entry["id"] if name == known else name
    write_lines(path, {key: value for key, value in (head | (header or {})).items() if value is not ...}, entries)
    return path


def test_every_result_is_tried_here() -> None:
    assert set(WHOLE) == RESULTS


TEXTS = st.text(max_size=5)
PROBES = st.lists(st.tuples(TEXTS, st.sampled_from([True, False, None]), TEXTS), max_size=3)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from(sorted(WHOLE)), max_size=5), TEXTS, PROBES, st.booleans())
def test_round_trip(results: list[str], text: str, checks: list[tuple[str, bool | None, str]], failed: bool) -> None:
    cells = [replace(WHOLE[result], warnings=(("UserWarning", text),)) for result in results]
    probe = Probe("options", "1" * 20, tuple(checks), {"type": "x", "message": text} if failed else None)
    reader = observed(*cells, probes={"options": probe})
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder), reader)
        found = read_observations(path)
        before = path.read_bytes()
        write_observations(path, found)
        assert path.read_bytes() == before
    assert found == reader
    assert found.digest == reader.digest
    assert [cell.departures for cell in found.cells.values()] == [cell.departures for cell in reader.cells.values()]
    assert found.release == ("reference" if "unsupported" in results else "1.5.1")


def test_an_outcome_is_stored_once(tmp_path: Path) -> None:
    path = written(tmp_path, observed(*[WHOLE["refused"]] * 5))
    assert path.read_text().count('"no"') == 1


def test_what_is_the_same_takes_no_outcome_line(tmp_path: Path) -> None:
    _, lines = read_lines(written(tmp_path, observed(BASE)), "observations")
    (entry,) = [entry for _, entry in lines]
    assert (entry["kind"], list(entry["cells"].values())) == ("cells", ["same"])


def test_another_fixture_adds_a_line_and_changes_none(tmp_path: Path) -> None:
    few = written(tmp_path, observed(WHOLE["same"], WHOLE["differs"])).read_text().splitlines()
    more = written(tmp_path, observed(WHOLE["same"], WHOLE["differs"], WHOLE["differs"])).read_text().splitlines()
    assert len(more) == len(few) + 1
    assert set(few[:-1]) < set(more)


def test_the_own_result_is_the_golden_with_the_departures() -> None:
    assert WHOLE["differs"].own_result(GOLDEN) == VALUES
    assert WHOLE["same"].own_result(GOLDEN) == GOLDEN


@pytest.mark.parametrize(
    ("result", "change", "said"),
    [
        ("refused", {"result": "same"}, "is 'same', but has a value for 'errors'"),
        ("differs", {"result": "same"}, "is 'same', but has a value for 'count'"),
        ("same", {"result": "differs"}, "is 'differs', but has no 'count'"),
        ("same", {"result": "refused"}, "is 'refused', but has no 'errors'"),
        ("same", {"result": "crashed"}, "is 'crashed', but has no 'signal'"),
        ("same", {"result": "timed-out"}, "is 'timed-out', but has no 'stage'"),
        ("refused", {"result": "unstable"}, "is 'unstable', but has a value for 'errors'"),
        ("same", {"result": "splendid"}, "unknown result 'splendid'"),
        ("refused", {"digest": DIGEST}, "is 'refused', but has a value for 'digest'"),
        ("differs", {"count": 2}, "counts 2 differences, but their extent says otherwise"),
        ("differs", {"departures": []}, "is 'differs', but has no 'departures'"),
        ("differs", {"id": "0" * 12}, "outcome 000000000000 was edited: its id is not the digest of the rest"),
        ("differs", {"extent": [extent("relaxed")]}, "is 'differs', but no value, shape or type is said to differ"),
        ("differs", {"result": "relaxed"}, "is 'relaxed', though values are said to differ"),
        ("relaxed", {"result": "raised", "errors": []}, "is 'raised', but has no 'errors'"),
        ("raised", {"extent": [extent("relaxed")]}, "is 'raised', but no call is said to have raised"),
        ("raised", {"differences": [{"kind": "raised", "where": "x"}] * 2}, "shows 2 differences, but counts 1"),
        ("unstable", {"both": []}, "is 'unstable', but has no 'both'"),
        ("same", {"result": ...}, "is not a complete entry: KeyError('result')"),
        ("same", {"kind": "cell"}, "has the unknown kind 'cell'"),
        ("same", {"outcome": 1}, "has the unknown outcome"),
        ("refused", {"errors": 7}, "is not a complete entry"),
    ],
)
def test_what_contradicts_itself_is_refused(result: str, change: dict[str, Any], said: str, tmp_path: Path) -> None:
    assert said in error(rewrite(written(tmp_path, observed(WHOLE[result])), **change))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"subject": ...}, "is not a complete entry: KeyError('subject')"),
        ({"cells": ["default"]}, "is not a complete entry"),
        (
            {"cells": {"default-000000": "ffffffffffff"}},
            "torch-1.2.0/0 (default) has the outcome 'ffffffffffff', which no line above",
        ),
    ],
)
def test_cells_without_an_outcome_are_refused(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    assert said in error(rewrite(written(tmp_path, observed(WHOLE["refused"])), "cells", **change))


def test_an_unstable_cell_needs_two_different_observations(tmp_path: Path) -> None:
    twice = replace(WHOLE["unstable"], both=(WHOLE["refused"], WHOLE["refused"]))
    assert "not for two different observations" in error(written(tmp_path, observed(twice)))


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ({"reader": "torch-1.6.0"}, "holds the observations of 'torch-1.6.0'"),
        ({"reader": ...}, "holds the observations of None"),
        ({"identity": {**IDENTITY, "torch": "1.5.1"}}, "is said to be of torch-1.5.1+cpu, but what answered was"),
        ({"identity": None}, "is said to be of torch-1.5.1+cpu, but what answered was None"),
        ({"observed": "soon"}, "was observed on 'soon', which is no day"),
        ({"observed": 7}, "was observed on 7, which is no day"),
        ({"observed": ...}, "was observed on None, which is no day"),
        ({"protocol": "1"}, "has the protocol '1', expected a number"),
    ],
)
def test_a_header_that_is_not_right_is_refused(header: dict[str, Any], said: str, tmp_path: Path) -> None:
    assert said in error(rewrite(written(tmp_path, observed(WHOLE["same"])), header=header))


def test_no_release_lacks_what_it_does_not_support(tmp_path: Path) -> None:
    path = written(tmp_path, observed(WHOLE["unsupported"]))
    header = {"reader": "torch-1.5.1+cpu", "identity": IDENTITY}
    renamed = rewrite(path, header=header).rename(tmp_path / "torch-1.5.1+cpu.jsonl")
    assert "says that torch-1.5.1+cpu does not support torch-1.2.0/0: a release does or refuses" in error(renamed)


def test_a_cell_may_stand_once(tmp_path: Path) -> None:
    path = written(tmp_path, observed(WHOLE["same"]))
    head, lines = read_lines(path, "observations")
    entries = [entry for _, entry in lines]
    write_lines(path, head, [*entries, entries[-1]])
    assert "observes torch-1.2.0/0 (default) again" in error(path)


def test_two_observations_contradict_each_other_by_what_happened_and_why_not_by_bits() -> None:
    assert not WHOLE["differs"].contradicts(replace(WHOLE["differs"], digest="0" * 16, warnings=()))
    longer = f"{ERROR['message']}\nand where it happened"
    assert not WHOLE["refused"].contradicts(replace(WHOLE["refused"], errors=({**ERROR, "message": longer},)))
    assert WHOLE["refused"].contradicts(replace(WHOLE["refused"], errors=({**ERROR, "message": "another cause"},)))
    assert WHOLE["refused"].contradicts(replace(WHOLE["refused"], errors=({**ERROR, "type": "builtins.OSError"},)))
    assert WHOLE["crashed"].contradicts(replace(WHOLE["crashed"], signal="SIGABRT"))
    for one in WHOLE.values():
        for other in WHOLE.values():
            assert one.contradicts(other) is (one is not other)


def test_a_key_covers_everything_that_a_reader_is_given() -> None:
    key = cell_key("subject", {"mmap": True})
    others = [cell_key("other", {"mmap": True}), cell_key("subject", {}), cell_key("subject", {"mmap": False})]
    assert len({key, *others}) == 4


@pytest.mark.parametrize("path", sorted((REPOSITORY / "reports" / "observations").glob("*.jsonl")), ids=lambda path: path.stem)
def test_what_is_recorded_is_what_comparing_its_values_gives_today(
    path: Path, goldens: dict[str, Any], digests: dict[str, str]
) -> None:
    recorded = [cell for cell in read_observations(path).cells.values() if cell.departures and cell.fixture in goldens]
    distinct = {(cell.digest, digests[cell.fixture]): cell for cell in recorded}
    for cell in distinct.values():
        own = cell.own_result(goldens[cell.fixture])
        assert result_digest(own) == cell.digest, cell.fixture
        found = compare(goldens[cell.fixture], own)
        assert (found.result, found.count, found.extent) == (cell.result, cell.count, cell.extent), cell.fixture
        assert found.differences == cell.differences, cell.fixture
        assert sorted(error["message"] for error in found.errors) == sorted(error["message"] for error in cell.errors)


@pytest.fixture(scope="module")
def goldens() -> dict[str, Any]:
    return {
        fixture.id: fixture.golden
        for manifest in (REPOSITORY / "fixtures").glob("*/manifest.jsonl")
        for fixture in read_manifest(manifest).fixtures
    }


@pytest.fixture(scope="module")
def digests(goldens: dict[str, Any]) -> dict[str, str]:
    return {name: digest(golden) for name, golden in goldens.items()}
