"""Observations: the recorded form is complete; contradictions are rejected."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.recordings import readers_of
from torch_compat.corpus.json_lines import digest
from torch_compat.corpus.manifest import read_manifest
from torch_compat.corpus.observations import (
    OUTCOME_DIGITS,
    RESULTS,
    SAME,
    Observation,
    body_entry,
    body_id,
    cell_key,
    parse_body,
)
from torch_compat.values.compare import Difference, compare, result_digest
from torch_compat.values.delta import departures

REPOSITORY = Path(__file__).parents[2]
GOLDEN = {"value": 0}
VALUES = {"value": 1}
DEPARTURES = departures(GOLDEN, VALUES)
DIGEST = result_digest(VALUES)
ERROR = {"type": "builtins.RuntimeError", "message": "no"}
BASE = Observation("torch-1.2.0/div", "default", cell_key("0" * 64, {}), "same")
CAREFUL = "the archive was written by a release that this one does not know, so that nothing is sure ✓"
VALUE = {"kind": "value", "dtype": "float32", "count": 1, "frontier": [[0.5, 3]]}


def extent(kind: str) -> dict[str, Any]:
    return {**VALUE, "kind": kind, "frontier": None}


WHOLE = {
    "same": replace(BASE, warnings=(("builtins.UserWarning", "@careful ✓"),)),
    "differs": replace(
        BASE,
        result="differs",
        count=1,
        digest=DIGEST,
        departures=DEPARTURES,
        extent=(VALUE,),
        differences=(Difference("value", "x"),),
    ),
    "refused": replace(BASE, result="refused", errors=(ERROR,), warnings=(("UserWarning", CAREFUL),)),
    "raised": replace(
        BASE, result="raised", errors=(ERROR, ERROR), count=1, digest=DIGEST, departures=DEPARTURES, extent=(extent("raised"),)
    ),
    "relaxed": replace(BASE, result="relaxed", count=1, digest=DIGEST, departures=DEPARTURES, extent=(extent("relaxed"),)),
    "crashed": replace(BASE, result="crashed", signal="SIGSEGV", stage="load", warnings=(("UserWarning", CAREFUL),)),
    "timed-out": replace(BASE, result="timed-out", stage="call"),
    "unsupported": replace(BASE, result="unsupported", errors=({"type": "operator", "message": "no operator aten::frob"},)),
}
WHOLE["unstable"] = replace(BASE, result="unstable", both=(WHOLE["crashed"], WHOLE["refused"]))


def changed(text: str, change: dict[str, Any]) -> dict[str, Any]:
    """The recorded form of a whole outcome, changed; ``...`` removes."""
    entry = body_entry(WHOLE[text]) | change
    return {name: value for name, value in entry.items() if value is not ...}


def test_every_result_is_tried_here() -> None:
    assert set(WHOLE) == RESULTS


@pytest.mark.parametrize("result", sorted(WHOLE))
def test_the_recorded_form_says_all(result: str) -> None:
    entry = body_entry(WHOLE[result])
    outcome = parse_body(entry).of(*BASE.cell, BASE.key)
    assert (outcome, outcome.departures) == (WHOLE[result], WHOLE[result].departures)
    assert body_entry(outcome) == body_entry(parse_body(entry)) == entry


def test_only_what_is_the_same_without_a_word_has_a_name() -> None:
    assert body_id(body_entry(SAME)) == body_id(body_entry(BASE)) == "same"
    names = {body_id(body_entry(item)) for item in WHOLE.values()}
    assert len(names) == len(WHOLE)
    assert {len(name) for name in names} == {OUTCOME_DIGITS}


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
        ("differs", {"count": 2}, "counts 2 differences, but the extent has a different number"),
        ("differs", {"departures": []}, "is 'differs', but has no 'departures'"),
        ("differs", {"extent": [extent("relaxed")]}, "is 'differs', but no value, shape or type differs"),
        ("differs", {"result": "relaxed"}, "is 'relaxed', but values differ"),
        ("relaxed", {"result": "raised", "errors": []}, "is 'raised', but has no 'errors'"),
        ("raised", {"extent": [extent("relaxed")]}, "is 'raised', but no call raised"),
        ("raised", {"differences": [{"kind": "raised", "where": "x"}] * 2}, "shows 2 differences, but counts 1"),
        ("unstable", {"both": []}, "is 'unstable', but has no 'both'"),
        ("same", {"said": [["x", []]]}, "does not record whether they were compared"),
        ("same", {"heard": 1}, "heard is 1, expected true or false"),
        ("same", {"heard": True, "said": [["x", [["a", 1]]]]}, "'said' contains values that are not strings"),
        (
            "differs",
            {"extent": [{**extent("error"), "errors": [["a", "b", "a", "c"]]}]},
            "does not record whether they were compared",
        ),
        (
            "differs",
            {"heard": True, "extent": [{**extent("error"), "errors": [["a", "b"]]}]},
            "must be lists of four strings",
        ),
        ("same", {"result": ...}, "result"),
        ("same", {"outcome": 1}, "has unknown keys: outcome"),
        ("refused", {"errors": 7}, "not iterable"),
        ("unstable", {"both": [{"result": "timed-out", "stage": "call"}] * 2}, "does not have two different observations"),
    ],
)
def test_what_contradicts_itself_is_refused(result: str, change: dict[str, Any], said: str) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)) as caught:
        parse_body(changed(result, change))
    assert said in str(caught.value)


def test_what_was_heard_is_recorded() -> None:
    message = (("calls[0].first", (("UserWarning", "so"),)),)
    cell = replace(BASE, heard=True, said=message)
    assert parse_body(body_entry(cell)).of(*BASE.cell, BASE.key) == cell
    assert body_id(body_entry(cell)) != "same"


def of_other_errors() -> Observation:
    """A cell in which three calls raise other errors than the writer's, two of them the same."""
    errors = [{"type": "builtins.RuntimeError", "message": text} for text in ("a", "b", "c")]
    golden, got = ({"error": errors[0]}, {"error": errors[1]}), ({"error": errors[1]}, {"error": errors[2]})
    results = [
        {
            "state": None,
            "state_after": None,
            "calls": [{"first": item[0], "second": item[1]}, {"first": item[0], "second": {"value": 1, "inputs": []}}],
        }
        for item in (golden, got)
    ]
    result = compare(*results, hear=True)
    return replace(
        BASE, result=result.result, count=result.count, digest="d", extent=result.extent, differences=result.differences,
        departures=departures(*results), heard=True,
    )  # fmt: skip


def test_errors_that_differ_are_recorded_once() -> None:
    cell = of_other_errors()
    entry = body_entry(cell)
    assert [(difference["where"], difference["pair"]) for difference in entry["differences"]] == [
        ("calls[0].first", 0), ("calls[0].second", 1), ("calls[1].first", 0),
    ]  # fmt: skip
    result = parse_body(entry).of(*BASE.cell, BASE.key)
    assert (result, result.departures) == (cell, cell.departures)
    assert result.differences[1].facts["got"] == {"type": "builtins.RuntimeError", "message": "c"}


@pytest.mark.parametrize("wrong", [2, -1, None, True, "0", ...])
def test_a_difference_of_errors_without_its_errors_is_refused(wrong: Any) -> None:
    entry = body_entry(of_other_errors())
    entry["differences"][0]["pair"] = wrong
    if wrong is ...:
        del entry["differences"][0]["pair"]
    with pytest.raises((KeyError, ValueError)) as caught:
        parse_body(entry)
    assert "pair" in str(caught.value)


def test_errors_that_are_not_in_the_extent_are_refused_when_they_are_read() -> None:
    with pytest.raises(ValueError, match="the index of a pair of errors in the extent"):
        parse_body(body_entry(replace(of_other_errors(), extent=(VALUE,))))


TURNS = st.builds(
    "{}/calls/{}/{}{}".format, st.sampled_from(["", "-"]), st.integers(0, 1), st.sampled_from(["first", "second"]),
    st.sampled_from(["", "/value", "/error/type", "/\n"]),
)  # fmt: skip
OTHERS = st.sampled_from(["", "/value/calls/0/first", "/calls", "/calls/0", "/calls/0/firsts", "/warnings", "-/calls/x/first"])


@given(st.lists(TURNS | OTHERS, max_size=8))
def test_paths_in_short_mean_what_they_were(paths: list[str]) -> None:
    cell = replace(WHOLE["differs"], departures=((tuple(paths), 1),))
    assert parse_body(body_entry(cell)).departures == cell.departures


def test_paths_of_both_turns_of_a_call_stand_once() -> None:
    def recorded(*paths: str) -> list[str]:
        (result, _) = body_entry(replace(WHOLE["differs"], departures=((paths, 1),)))["departures"][0]
        return list(result)

    call = ("/calls/3/first/a", "/calls/3/first/b", "/calls/3/second/a", "/calls/3/second/b")
    assert recorded("/state", *call, "-/calls/4/first", "-/calls/4/second") == [
        "/state",
        "/calls/3//a",
        "/calls/3//b",
        "-/calls/4/",
    ]
    for others in (call[:3], call[::-1], ("/calls/1/first", "/calls/2/second"), ("/calls/1/first", "-/calls/1/second")):
        assert recorded(*others) == list(others)


def test_an_observation_that_heard_is_held_against_one_that_did_not_by_what_both_saw() -> None:
    errors = {**extent("error"), "errors": [["a", "b", "a", "c"]]}
    heard = replace(WHOLE["differs"], heard=True, extent=(errors,))
    assert not heard.contradicts(BASE)
    assert not BASE.contradicts(heard)
    assert heard.unheard() == replace(BASE, differences=WHOLE["differs"].differences)
    assert heard.contradicts(replace(BASE, heard=True))
    both = replace(heard, extent=(errors, *WHOLE["differs"].extent), count=2)
    assert not both.contradicts(WHOLE["differs"])
    raising = replace(both, extent=(errors, extent("raised")), errors=WHOLE["raised"].errors)
    assert not raising.contradicts(WHOLE["raised"])


def test_two_observations_contradict_each_other_by_what_happened_and_why_not_by_bits() -> None:
    assert not WHOLE["differs"].contradicts(replace(WHOLE["differs"], digest="0" * 16, warnings=()))
    longer = f"{ERROR['message']}\nand where it happened"
    assert not WHOLE["refused"].contradicts(replace(WHOLE["refused"], errors=({**ERROR, "message": longer},)))
    assert WHOLE["refused"].contradicts(replace(WHOLE["refused"], errors=({**ERROR, "message": "another cause"},)))
    assert WHOLE["refused"].contradicts(replace(WHOLE["refused"], errors=({**ERROR, "type": "builtins.OSError"},)))
    assert WHOLE["crashed"].contradicts(replace(WHOLE["crashed"], signal="SIGABRT"))
    for observation in WHOLE.values():
        for other in WHOLE.values():
            assert observation.contradicts(other) is (observation is not other)


def test_a_key_covers_everything_that_a_reader_is_given() -> None:
    key = cell_key("subject", {"mmap": True})
    others = [cell_key("other", {"mmap": True}), cell_key("subject", {}), cell_key("subject", {"mmap": False})]
    assert len({key, *others}) == 4


READERS = readers_of(REPOSITORY)


@pytest.mark.parametrize("name", READERS)
@pytest.mark.sampled(3)
def test_what_is_recorded_is_what_comparing_its_values_gives_today(
    name: str, goldens: dict[str, Any], digests: dict[str, str]
) -> None:
    recorded = [cell for cell in READERS[name].cells.values() if cell.departures and cell.fixture in goldens]
    distinct = {(cell.digest, digests[cell.fixture]): cell for cell in recorded}
    for cell in distinct.values():
        own = cell.own_result(goldens[cell.fixture])
        assert result_digest(own) == cell.digest, cell.fixture
        result = compare(goldens[cell.fixture], own, hear=cell.heard)
        assert (result.result, result.count, result.extent) == (cell.result, cell.count, cell.extent), cell.fixture
        assert result.differences == cell.differences, cell.fixture
        assert sorted(error["message"] for error in result.errors) == sorted(error["message"] for error in cell.errors)


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
