"""Digests of the difference between what was read and what was written: cells with equal digests have the same difference.

For values, the digest covers every difference that matters: its location, kind and dtype, and the expected and actual content, bit for
bit. This includes values that are not compared further because their type, dtype, shape or length differs, and the result of a call
that should have raised. Differences within a tolerance, or that the policy disregards, are excluded: the same machine code gives
different last bits on another processor. For errors, it covers their classes and their texts without what varies; for an error that
differs from the golden's, both errors. Errors that a wording explains are ignored. For a process that died, it covers the stage, the
signal and the last message. Unstable results vary each time: for these it covers only where the two observations
differ from what was written, not the values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch_compat.corpus.json_lines import digest
from torch_compat.corpus.observations import OTHER_ERROR
from torch_compat.judging.cell import Outcome
from torch_compat.judging.cells import in_words
from torch_compat.values.compare import all_differences, contents
from torch_compat.values.normalise import alike, headline, plain_error
from torch_compat.words import count_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from torch_compat.corpus.manifest import Fixture
    from torch_compat.corpus.observations import Observation
    from torch_compat.judging.cell import Cells
    from torch_compat.judging.evidence import Evidence
    from torch_compat.values.compare import Difference

__all__ = ["DIGITS", "Differences", "digest_of_text"]

DIGITS = 12
_COMPARED = frozenset({Outcome.DIFFERENT, Outcome.RAISED, Outcome.RELAXED})


def digest_of_text(text: str) -> str:
    """The digest of the text of a finding that is not about cells, without numbers: it may name the newest existing release."""
    return digest(alike(text))[:DIGITS]


class Differences:
    """Computes digests of what cells of some evidence have instead of what was written."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._known: dict[tuple[Any, ...], tuple[Observation, Fixture, str]] = {}

    def digest(self, cells: Cells) -> str:
        """The digest of the difference of equivalent cells, as twelve hexadecimal digits."""
        key = _rests_on(cells)
        known = self._known.get(key)
        if known is None:  # observation and fixture are kept alive, so that nothing else can get the ids of their parts
            known = self._known[key] = cells.observation, cells.fixture, digest(self._content(cells))[:DIGITS]
        return known[2]

    def in_words(self, cells: Cells) -> tuple[str, ...]:
        """Describe the difference: each distinct difference once, without its location; or the error, the signal, or what varies."""
        observation, fixture = cells.observation, cells.fixture
        if cells.outcome in _COMPARED and observation.departures:
            others = [f"raises {in_words(*pair[2:])} instead of {in_words(*pair[:2])}" for pair in cells.others]
            result, _ = all_differences(fixture.golden, observation.own_result(fixture.golden))
            return tuple(dict.fromkeys([*(_words(item) for item in result if self._matters(fixture, item)), *others]))
        if cells.outcome is Outcome.UNSTABLE:
            places = dict.fromkeys(place for item in observation.both for place in self._places(fixture, item))
            return tuple(f"{kind} varies in {where}" for where, kind in places)
        return (cells.message or str(cells.outcome),)

    def _content(self, cells: Cells) -> list[Any]:
        observation, fixture = cells.observation, cells.fixture
        content: list[Any] = [str(cells.outcome)]
        if cells.outcome is Outcome.UNSTABLE:
            places = sorted({place for item in observation.both for place in self._places(fixture, item)})
            return [*content, [list(place) for place in places]]
        if observation.signal or cells.outcome is Outcome.TIMED_OUT:
            content += [observation.stage, observation.signal]
        if cells.outcome in _COMPARED and observation.departures:
            return [*content, [self._told(item) for item in self._all(fixture, observation)], *_others(cells)]
        # Without departures, the recorded differences are all there is.
        told: list[Any] = [difference.as_json() for difference in observation.differences if difference.kind != OTHER_ERROR]
        extent = [item for item in observation.extent if item["kind"] != OTHER_ERROR]
        return [*content, _errors(observation.errors), told, extent, observation.digest, *_others(cells)]

    def _all(self, fixture: Fixture, observation: Observation) -> list[Difference]:
        """Every difference that matters, and every call that raised or no longer does."""
        result = contents(fixture.golden, observation.own_result(fixture.golden))
        return [content for content in result if self._matters(fixture, content)]

    def _matters(self, fixture: Fixture, difference: Difference) -> bool:
        return difference.kind in {"raised", "relaxed"} or self._evidence.matters(fixture, difference)

    def _told(self, difference: Difference) -> list[Any]:
        expected, got = difference.content
        if difference.kind == "raised":
            return [difference.where, difference.kind, _errors([got])]
        if difference.kind == "relaxed":
            given = None if got is None else [_placeless(got.get(part)) for part in ("value", "inputs")]
            return [difference.where, difference.kind, _errors([expected]), given]
        return [difference.where, difference.kind, difference.dtype, _placeless(expected), _placeless(got)]

    def _places(self, fixture: Fixture, observation: Observation) -> list[tuple[str, str]]:
        """Locations and kinds of the differences in one of two varying observations, without values."""
        if not observation.departures:
            return [(observation.result, observation.signal)]
        return [(item.where, item.kind) for item in self._all(fixture, observation)]


def _others(cells: Cells) -> list[Any]:
    """Errors that differ from the golden's; empty if there are none, so that the digest is unaffected."""
    pairs = sorted({(*plain_error(pair[:2]), *plain_error(pair[2:])) for pair in cells.others})
    return [[list(pair) for pair in pairs]] if pairs else []


def _rests_on(cells: Cells) -> tuple[Any, ...]:
    """A key for what the difference of cells depends on; cells with equal keys have the same difference.

    Most goldens equal those of other writers, and readers that did the same share their records: one object each.
    """
    fixture, seen = cells.fixture, cells.observation
    if cells.outcome is Outcome.UNSTABLE:
        return fixture.id, id(seen)
    told = (
        cells.outcome,
        cells.others,
        seen.stage,
        seen.signal,
        seen.digest,
        id(seen.errors),
        id(seen.differences),
        id(seen.extent),
    )
    if not seen.departures:
        return told
    return *told, id(seen.departures), id(fixture.golden), fixture.family, *fixture.operators


def _placeless(value: Any) -> Any:
    """A neutral value without the memory locations of its tensors, which are meaningless for a single tensor."""
    if isinstance(value, list):
        return [_placeless(item) for item in value]
    if isinstance(value, dict):
        return {key: _placeless(item) for key, item in value.items() if key not in {"storage", "offset"}}
    return value


def _words(difference: Difference) -> str:
    """Describe one difference."""
    expected, got = difference.content
    if difference.kind == "raised":
        return f"raises {got['type']}: {headline(got['message'])}"
    if difference.kind == "relaxed":
        return f"no longer raises {expected['type']}: {headline(expected['message'])}" if expected else "no longer raises"
    if difference.kind == "value":
        shown = difference.facts.get("expected", expected), difference.facts.get("got", got)
        count = difference.facts.get("count")
        more = f", {count_of(count, 'element')}" if isinstance(count, int) and count > 1 else ""
        if "max_abs" in difference.facts:
            more += f", by up to {float(difference.facts['max_abs']):.3g}"
        if "max_rel" in difference.facts:
            more += f", relative {float(difference.facts['max_rel']):.3g}"
        return f"{shown[1]} instead of {shown[0]}{f' ({difference.dtype}{more})' if difference.dtype else ''}"
    of = f" of {difference.dtype}" if difference.dtype and difference.kind != "dtype" else ""
    return f"{difference.kind} {difference.facts.get('got')} instead of {difference.facts.get('expected')}{of}"


def _errors(errors: Iterable[Mapping[str, str]]) -> list[list[str]]:
    return [[error.get("type", ""), alike(headline(error["message"]))] for error in errors]
