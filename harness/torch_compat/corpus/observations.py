"""Observations: what readers did with fixtures. :mod:`torch_compat.corpus.recorded` defines how they are recorded.

Most cells are alike: nearly all are ``same``, and a reader that refuses an archive refuses many with the same message. The outcome
(:class:`Body`) is therefore stored separately from the cell in which it was observed (:class:`Observation`).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any

from torch_compat.corpus.deprecations import deprecation_entry
from torch_compat.corpus.json_lines import digest
from torch_compat.releases.release import public
from torch_compat.values.compare import Difference, Said
from torch_compat.values.delta import Departures, depart
from torch_compat.values.normalise import headline
from torch_compat.words import count_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from torch_compat.corpus.deprecations import DeprecationObservation

__all__ = [
    "REFERENCE",
    "RESULTS",
    "SAME",
    "Body",
    "Observation",
    "ObservedReader",
    "Probe",
    "body_entry",
    "body_id",
    "cell_key",
    "parse_body",
    "parse_probe",
    "probe_entry",
]

SUBJECT_DIGITS = 20  # of a subject's digest: enough to distinguish fixtures and to detect changes
OUTCOME_DIGITS = 12
OTHER_ERROR = "error"
"""The kind of difference when an error is not the golden's error."""
RESULTS = frozenset({"same", "differs", "refused", "raised", "relaxed", "unstable", "crashed", "timed-out", "unsupported"})
REFERENCE = "reference"
"""The reader that is not a release. Only this reader can report that it does not support something: ``unsupported``."""


@dataclass(slots=True)
class Observation:
    """What one reader did with one fixture under one set of load options. Treat as immutable; not frozen because there are too many.

    Attributes:
        fixture: ``torch-1.5.1/div``.
        options: id of the option set.
        key: digest of the reader's input (see :func:`cell_key`); the reader's identity is stored once for all cells.
        result: one of :data:`RESULTS`. ``differs`` is a fact; judging decides whether it is close enough.
        stage: ``load`` or ``call``, if it crashed or timed out.
        signal: the signal it died of, or ``exit N``.
        errors: ``[{"type", "message"}]`` raised where the golden has none.
        differences: the first few of ``count``, for human readers.
        extent: a summary of all of them, for judging (see :class:`torch_compat.values.compare.Comparison`).
        digest: of the reader's result, if it is not the golden; equal digests mean bitwise equal results.
        departures: the parts of the reader's own result that differ from the golden (see :meth:`own_result`).
        warnings: ``[[category, text]]``.
        both: the two observations of an ``unstable`` cell.
        heard, said: whether errors and the warnings of calls were compared with the golden's; and those that differ (see
            :class:`torch_compat.values.compare.Comparison`).
    """

    fixture: str
    options: str
    key: str
    result: str
    stage: str = ""
    signal: str = ""
    errors: tuple[dict[str, str], ...] = ()
    differences: tuple[Difference, ...] = ()
    extent: tuple[dict[str, Any], ...] = ()
    count: int = 0
    digest: str = ""
    departures: Departures = field(default=(), repr=False, compare=False)
    warnings: tuple[tuple[str, str], ...] = ()
    both: tuple[Observation, ...] = ()
    heard: bool = False
    said: Said = ()

    @property
    def cell(self) -> tuple[str, str]:
        """Fixture and options."""
        return self.fixture, self.options

    def own_result(self, golden: dict[str, Any]) -> dict[str, Any]:
        """Return the reader's full result, given the fixture's golden: the reference for later models of that reader."""
        result: dict[str, Any] = depart(golden, self.departures)
        return result

    def contradicts(self, other: Observation) -> bool:
        """Whether two observations of one cell cannot both be correct for this reader. Float bits are not compared."""
        if self.heard != other.heard:
            return self.unheard().contradicts(other.unheard())
        mine, theirs = self._essence(), other._essence()
        return mine != theirs

    def unheard(self) -> Observation:
        """Return the observation as it would be without comparing errors with errors, and without the warnings of calls."""
        extent = tuple(item for item in self.extent if item["kind"] != OTHER_ERROR)
        kinds = {item["kind"] for item in extent}
        plain = replace(self, heard=False, said=())
        if len(extent) == len(self.extent):
            return plain
        result = "differs" if kinds - {"raised", "relaxed"} else "raised" if "raised" in kinds else "relaxed" if kinds else "same"
        if result == "same":
            plain = replace(plain, digest="", departures=())
        differences = tuple(difference for difference in self.differences if difference.kind != OTHER_ERROR)
        count = sum(item["count"] for item in extent)
        return replace(plain, result=result, extent=extent, differences=differences, count=count)

    def _essence(self) -> tuple[Any, ...]:
        errors = tuple((error["type"], headline(error["message"])) for error in self.errors)
        return self.result, self.stage, self.signal, errors, self.count


@dataclass(frozen=True)
class Probe:
    """A reader's answer to a probe: checks that hold, do not hold, or (None) do not apply to this release."""

    name: str
    key: str
    checks: tuple[tuple[str, bool | None, str], ...]
    error: dict[str, str] | None = None


@dataclass(frozen=True)
class ObservedReader:
    """All observations of one reader.

    Attributes:
        name: ``torch-1.12.1+cu102``: the exact version. 2.13.0 and 2.13.0+cpu are two readers. Or ``reference``, which reads each fixture
            at the horizon of its writer.
        identity: the exact software: torch with its local part, git revision, Python, wheel, CPU capability.
        observed: the date of the newest observation (ISO, UTC).
        protocol: version of the worker's protocol.
        cells, probes, deprecations: the observations by cell and by name.
        days: the date of the newest observation in each recorded file with observations, if it is not ``observed``.
    """

    name: str
    identity: dict[str, Any]
    observed: str
    protocol: int
    cells: Mapping[tuple[str, str], Observation]
    probes: dict[str, Probe]
    deprecations: dict[str, DeprecationObservation] = field(default_factory=dict)
    days: Mapping[str, str] = field(default_factory=dict, compare=False)

    @cached_property
    def release(self) -> str:
        """The public part of the version, which policies use for readers: ``1.12.1``."""
        return public(self.name)

    @cached_property
    def identity_digest(self) -> str:
        """Short hash of the identity, as used in keys."""
        return digest(self.identity)[:16]

    @cached_property
    def digest(self) -> str:
        """Digest of everything observed."""
        return digest(
            self.name,
            self.identity,
            self.observed,
            self.protocol,
            [[*cell, item.key, body_entry(item)] for cell, item in sorted(self.cells.items())],
            [probe_entry(item) for _, item in sorted(self.probes.items())],
            [deprecation_entry(item) for _, item in sorted(self.deprecations.items())],
        )


def cell_key(subject: str, load: dict[str, Any]) -> str:
    """Return the key of a cell within one reader's observations: a pair observed under this key need not be observed again.

    Parameters:
        subject: :attr:`torch_compat.corpus.manifest.Fixture.subject`.
        load: the load options themselves, not their name.
    """
    return f"{subject[:SUBJECT_DIGITS]}-{_load_digest(json.dumps(load, sort_keys=True))}"


@cache
def _load_digest(load: str) -> str:
    return digest(load)[:6]


def probe_entry(probe: Probe) -> dict[str, Any]:
    """Return the recorded form of a probe, without its name."""
    return {"key": probe.key, "checks": [list(check) for check in probe.checks], "error": probe.error}


def parse_probe(name: str, entry: dict[str, Any]) -> Probe:
    """Parse a probe from its recorded form.

    Raises:
        KeyError, TypeError, ValueError: it is incomplete or malformed.
    """
    error = entry["error"]
    checks = tuple((str(check), holds, str(note)) for check, holds, note in entry["checks"])
    if not all(holds is None or holds.__class__ is bool for _, holds, _ in checks):
        raise ValueError(f"probe {name!r:.60} has a check that is not true, false or null")
    if entry["key"].__class__ is not str:
        raise ValueError("the key of a probe is not a string")
    if error is not None and not all(error[part].__class__ is str for part in ("type", "message")):
        raise ValueError(f"the error of probe {name!r:.60} must have the strings 'type' and 'message'")
    return Probe(name, entry["key"], checks, error)


def body_entry(cell: Observation | Body) -> dict[str, Any]:
    """Return the recorded form of an outcome, without its cell."""
    entry: dict[str, Any] = {"result": cell.result}
    for name in ("stage", "signal", "count", "digest"):
        if getattr(cell, name):
            entry[name] = getattr(cell, name)
    if cell.errors:
        entry["errors"] = [[error["type"], error["message"]] for error in cell.errors]
    if cell.differences:
        pairs = _pairs(cell.extent)
        entry["differences"] = [_difference_entry(difference, pairs) for difference in cell.differences]
    if cell.extent:
        entry["extent"] = list(cell.extent)
    if cell.warnings:
        entry["warnings"] = [list(warning) for warning in cell.warnings]
    if cell.departures:
        entry["departures"] = [[_in_short(paths), value] for paths, value in cell.departures]
    if cell.both:
        entry["both"] = [body_entry(item) for item in cell.both]
    if cell.heard:
        entry["heard"] = True
    if cell.said:
        entry["said"] = [[where, [list(warning) for warning in warnings]] for where, warnings in cell.said]
    return entry


def _pairs(extent: Iterable[Mapping[str, Any]]) -> list[list[str]]:
    """Return the errors that differ from the golden's, as listed in the extent of an observation."""
    return [pair for item in extent if item["kind"] == OTHER_ERROR for pair in item["errors"]]


def _difference_entry(difference: Difference, pairs: list[list[str]]) -> dict[str, Any]:
    """Return the recorded form of a difference. Errors are given by their index in the extent, without repeating their texts."""
    if difference.kind != OTHER_ERROR:
        return difference.as_json()
    pair = [difference.facts[side][part] for side in ("expected", "got") for part in ("type", "message")]
    at = next((at for at, known in enumerate(pairs) if list(known) == pair), None)  # without an index, reading rejects it
    return {"kind": difference.kind, "where": difference.where, "pair": at}


def _parse_difference(entry: dict[str, Any], pairs: list[list[str]]) -> Difference:
    if entry["kind"] != OTHER_ERROR:
        return Difference.from_json(entry)
    at = entry["pair"]
    if entry.keys() != {"kind", "where", "pair"} or at.__class__ is not int or not 0 <= at < len(pairs):
        raise ValueError(f"the difference {entry!r:.80} must have kind, where, and the index of a pair of errors in the extent")
    kind, message, other_kind, other_message = pairs[at]
    facts = {"expected": {"type": kind, "message": message}, "got": {"type": other_kind, "message": other_message}}
    return Difference(OTHER_ERROR, entry["where"], facts=facts)


_TURN = re.compile(r"\A(-?/calls/([0-9]+)/)(first|second|)((?:/.*)?)\Z", re.DOTALL)
"""A list of deviations from the default in one of the two runs of a call. An empty step applies to both runs; keys are never empty."""


def _in_short(paths: Iterable[str]) -> list[str]:
    """Return the recorded form of departure paths: those that are the same in both turns of a call are listed once."""
    short: list[str] = []
    for call, group in groupby(paths, lambda path: (match := _TURN.match(path)) and match[2]):
        places = list(group)
        both = [_in_turn(path, "") for path in places[: len(places) // 2]]
        alike = call is not None and places == [_in_turn(path, turn) for turn in ("first", "second") for path in both]
        short += both if alike else places
    return short


def _in_full(paths: Iterable[str]) -> tuple[str, ...]:
    """Invert :func:`_in_short`: all paths of the first turn of a call, then all of its second."""
    full: list[str] = []
    for call, group in groupby(paths, lambda path: (match := _TURN.match(path)) and not match[3] and match[2]):
        places = list(group)
        full += [_in_turn(path, turn) for turn in ("first", "second") for path in places] if call else places
    return tuple(full)


def _in_turn(path: str, turn: str) -> str:
    return _TURN.sub(rf"\g<1>{turn}\g<4>", path)


# The other fields of an observation, by result: True always, False never, None if it depends.
_CARRIES: dict[str, dict[str, bool | None]] = {
    "same": {"signal": None, "stage": None, "errors": False, "count": False, "digest": None, "departures": False, "both": False},
    "differs": {
        "signal": False,
        "stage": False,
        "errors": None,
        "count": True,
        "digest": True,
        "departures": True,
        "both": False,
    },
    "refused": {
        "signal": False,
        "stage": False,
        "errors": True,
        "count": False,
        "digest": False,
        "departures": False,
        "both": False,
    },
    "raised": {"signal": False, "stage": False, "errors": True, "count": True, "digest": True, "departures": True, "both": False},
    "relaxed": {
        "signal": False,
        "stage": False,
        "errors": False,
        "count": True,
        "digest": None,
        "departures": None,
        "both": False,
    },
    "crashed": {
        "signal": True,
        "stage": True,
        "errors": None,
        "count": False,
        "digest": False,
        "departures": False,
        "both": False,
    },
    "timed-out": {
        "signal": False,
        "stage": True,
        "errors": None,
        "count": False,
        "digest": False,
        "departures": False,
        "both": False,
    },
    "unsupported": {
        "signal": False,
        "stage": False,
        "errors": True,
        "count": False,
        "digest": False,
        "departures": False,
        "both": False,
    },
    "unstable": {
        "signal": False,
        "stage": False,
        "errors": False,
        "count": False,
        "digest": False,
        "departures": False,
        "both": True,
    },
}


def _contradiction(cell: Body | Observation) -> str:
    """Describe the inconsistency in an observation, for example after an edit of its result alone; "" if there is none."""
    for name, always in _CARRIES[cell.result].items():
        if always is not None and always is not bool(getattr(cell, name)):
            return f"is {cell.result!r}, but has {'no' if always else 'a value for'} {name!r}"
    if len(cell.differences) > cell.count:
        return f"shows {count_of(len(cell.differences), 'difference')}, but counts {cell.count}"
    kinds = {extent["kind"] for extent in cell.extent}
    if cell.extent and sum(extent["count"] for extent in cell.extent) != cell.count:
        return f"counts {count_of(cell.count, 'difference')}, but the extent has a different number"
    if cell.result == "differs" and not kinds - {"raised", "relaxed"}:
        return "is 'differs', but no value, shape or type differs"
    if cell.result in {"raised", "relaxed"} and kinds - {"raised", "relaxed"}:
        return f"is {cell.result!r}, but values differ"
    if cell.result == "raised" and "raised" not in kinds:
        return "is 'raised', but no call raised"
    if not cell.heard and (cell.said or OTHER_ERROR in kinds):
        return "lists errors or warnings from calls, but does not record whether they were compared"
    if cell.both and (len(cell.both) != 2 or cell.both[0] == cell.both[1]):
        return "is 'unstable', but does not have two different observations"
    return ""


@dataclass(frozen=True)
class Body:
    """An outcome: the attributes that an observation shares with all others of the same outcome."""

    result: str
    stage: str = ""
    signal: str = ""
    errors: tuple[dict[str, str], ...] = ()
    differences: tuple[Difference, ...] = ()
    extent: tuple[dict[str, Any], ...] = ()
    count: int = 0
    digest: str = ""
    departures: Departures = ()
    warnings: tuple[tuple[str, str], ...] = ()
    both: tuple[Body, ...] = ()
    heard: bool = False
    said: Said = ()

    def of(self, fixture: str, options: str, key: str) -> Observation:
        """Return the observation of this outcome in one cell."""
        both = tuple(item.of(fixture, options, key) for item in self.both)
        return Observation(
            fixture,
            options,
            key,
            self.result,
            self.stage,
            self.signal,
            self.errors,
            self.differences,
            self.extent,
            self.count,
            self.digest,
            self.departures,
            self.warnings,
            both,
            self.heard,
            self.said,
        )


SAME = Body("same")
"""By far the most frequent outcome: the result equals the golden, and there were no messages."""


def body_id(entry: dict[str, Any]) -> str:
    """Return the id of a recorded form: its digest, or ``same`` for :data:`SAME`."""
    return SAME.result if entry == {"result": SAME.result} else digest(entry)[:OUTCOME_DIGITS]


def parse_body(body: dict[str, Any]) -> Body:
    """Parse an outcome from its recorded form.

    Raises:
        KeyError, TypeError, ValueError: it is incomplete, malformed or inconsistent.
    """
    if body["result"] not in RESULTS:
        raise ValueError(f"unknown result {body['result']!r}")
    unknown = body.keys() - {item.name for item in fields(Body)}
    if unknown:
        raise ValueError(f"has unknown keys: {', '.join(sorted(unknown))}")
    _check_types(body)
    pairs = _pairs(body.get("extent", ()))
    outcome = Body(
        result=body["result"],
        stage=body.get("stage", ""),
        signal=body.get("signal", ""),
        errors=tuple({"type": kind, "message": message} for kind, message in body.get("errors", ())),
        differences=tuple(_parse_difference(difference, pairs) for difference in body.get("differences", ())),
        extent=tuple(body.get("extent", ())),
        count=body.get("count", 0),
        digest=body.get("digest", ""),
        departures=tuple((_in_full(paths), value) for paths, value in body.get("departures", ())),
        warnings=tuple((category, text) for category, text in body.get("warnings", ())),
        both=tuple(parse_body(statement) for statement in body.get("both", ())),
        heard=body.get("heard", False),
        said=tuple((where, tuple((category, text) for category, text in warnings)) for where, warnings in body.get("said", ())),
    )
    wrong = _contradiction(outcome)
    if wrong:
        raise ValueError(f"outcome {wrong}")
    return outcome


def _check_types(body: dict[str, Any]) -> None:
    """Check the types that judging and display assume, so that invalid values are rejected early."""
    for name in ("stage", "signal", "digest"):
        if body.get(name, "").__class__ is not str:
            raise ValueError(f"{name} is {body[name]!r:.60}, expected a string")
    if body.get("count", 0).__class__ is not int or body.get("count", 0) < 0:
        raise ValueError(f"count is {body['count']!r:.60}, expected a non-negative integer")
    for name in ("errors", "warnings"):
        if not all(part.__class__ is str for pair in body.get(name, ()) for part in pair):
            raise ValueError(f"{name} contains values that are not strings, expected pairs of strings")
    if body.get("heard", False).__class__ is not bool:
        raise ValueError(f"heard is {body['heard']!r:.60}, expected true or false")
    for where, warnings in body.get("said", ()):
        if not all(part.__class__ is str for part in (where, *(part for pair in warnings for part in pair))):
            raise ValueError(
                "'said' contains values that are not strings; expected a string for each place, with pairs of strings"
            )
    for difference in body.get("differences", ()):
        if not all(difference[name].__class__ is str for name in ("kind", "where")):
            raise ValueError("'kind' and 'where' of a difference must be strings")
    for extent in body.get("extent", ()):
        frontier = extent["frontier"]
        if extent["kind"].__class__ is not str or extent["dtype"].__class__ is not str or extent["count"].__class__ is not int:
            raise ValueError(f"the extent {extent!r:.80} must have the strings kind and dtype, the number count, and frontier")
        if extent["kind"] == OTHER_ERROR and not all(
            len(pair) == 4 and all(part.__class__ is str for part in pair) for pair in extent["errors"]
        ):
            raise ValueError("the errors of an extent must be lists of four strings, the class and message on both sides")
        if frontier is not None:
            for gap, steps in frontier:
                _distance(gap)
                _distance(steps)
    for paths, _ in body.get("departures", ()):
        if not all(path.__class__ is str for path in paths):
            raise ValueError("departures contains a path that is not a string")


def _distance(value: Any) -> None:
    if value.__class__ is int or value.__class__ is float:
        return
    if value not in ("nan", "inf", "-inf"):
        raise ValueError(f"a frontier contains {value!r:.60}, expected a number, 'nan' or 'inf'")
