"""Observations: what readers did with subjects. Facts, recorded in one file per reader.

Most cells are alike: nearly all are ``same``, and a reader that refuses an archive refuses many in the same words. So a
file holds every distinct *outcome* once, under a digest of it, and one line per fixture that says which outcome each set of
load options had. Another writer or recipe adds lines; it changes none.
"""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass, field, fields
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from torch_compat.corpus.compare import Difference
from torch_compat.corpus.departures import Departures, depart
from torch_compat.corpus.deprecations import deprecation_entry, parse_deprecation
from torch_compat.corpus.lines import digest, read_lines, write_lines
from torch_compat.corpus.texts import headline
from torch_compat.errors import CorpusError
from torch_compat.releases.release import public

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from torch_compat.corpus.deprecations import DeprecationObservation

__all__ = [
    "REFERENCE",
    "RESULTS",
    "Observation",
    "ObservedReader",
    "Probe",
    "cell_key",
    "read_observations",
    "write_observations",
]

SAME = "same"
SUBJECT_DIGITS = 20  # of a subject's digest: enough to tell one fixture from another, and to see that it changed
OUTCOME_DIGITS = 12
RESULTS = frozenset({"same", "differs", "refused", "raised", "relaxed", "unstable", "crashed", "timed-out", "unsupported"})
REFERENCE = "reference"
"""The reader that is no release. It alone can lack something, and say so: ``unsupported``."""


@dataclass(frozen=True)
class Observation:
    """What one reader did with one fixture under one set of load options.

    Attributes:
        fixture: ``torch-1.5.1/div``.
        options: id of the option set.
        key: digest of what the reader was given (see :func:`cell_key`); who the reader is stands beside, once for all cells.
        result: one of :data:`RESULTS`. ``differs`` is a fact; whether it is close enough is for judging.
        stage: ``load`` or ``call``, where it crashed or timed out.
        signal: the signal it died of, or ``exit N``.
        errors: ``[{"type", "message"}]`` met where the golden has none.
        differences: the first few of ``count``, for people.
        extent: all of them in short, for judging (see :class:`torch_compat.corpus.compare.Comparison`).
        digest: of what the reader computed, where it is not the golden; equal digests are bit-equal results.
        departures: where the reader's own result is not the golden, and what is there instead (see :meth:`own_result`).
        warnings: ``[[category, text]]``.
        both: the two observations of an ``unstable`` cell.
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

    @property
    def cell(self) -> tuple[str, str]:
        """Fixture and options."""
        return self.fixture, self.options

    def own_result(self, golden: dict[str, Any]) -> dict[str, Any]:
        """The reader's own result in full, given the fixture's golden: what later models of that reader are held against."""
        result: dict[str, Any] = depart(golden, self.departures)
        return result

    def contradicts(self, other: Observation) -> bool:
        """Whether two observations of one cell cannot both be what this reader does. Bits of floats are another matter."""
        mine, theirs = self._essence(), other._essence()
        return mine != theirs

    def _essence(self) -> tuple[Any, ...]:
        errors = tuple((error["type"], headline(error["message"])) for error in self.errors)
        return self.result, self.stage, self.signal, errors, self.count


@dataclass(frozen=True)
class Probe:
    """What a reader said to a probe: checks that hold, do not hold, or (None) cannot be asked of this release."""

    name: str
    key: str
    checks: tuple[tuple[str, bool | None, str], ...]
    error: dict[str, str] | None = None


@dataclass(frozen=True)
class ObservedReader:
    """All observations of one reader.

    Attributes:
        name: ``torch-1.12.1+cu102``: the exact version. 2.13.0 and 2.13.0+cpu are two readers. Or ``reference``, which read
            each fixture at the horizon of its writer.
        identity: what exactly answered: torch with its local part, git revision, Python, wheel, CPU capability.
        observed: the day of the newest observation (ISO, UTC).
        protocol: version of the worker's protocol.
        cells, probes, deprecations: by cell and by name.
    """

    name: str
    identity: dict[str, Any]
    observed: str
    protocol: int
    cells: dict[tuple[str, str], Observation]
    probes: dict[str, Probe]
    deprecations: dict[str, DeprecationObservation] = field(default_factory=dict)

    @cached_property
    def release(self) -> str:
        """The public part of the version, by which policies speak of readers: ``1.12.1``."""
        return public(self.name)

    @cached_property
    def identity_digest(self) -> str:
        """Short hash of the identity, as in keys."""
        return digest(self.identity)[:16]

    @cached_property
    def digest(self) -> str:
        """Digest of everything observed."""
        return digest(self.name, self.identity, self.observed, self.protocol, list(_entries(self)))


def cell_key(subject: str, load: dict[str, Any]) -> str:
    """The key of a cell within the observations of one reader: a pair observed under this key need not be observed again.

    Parameters:
        subject: :attr:`torch_compat.corpus.manifest.Fixture.subject`.
        load: the load options themselves, not their name.
    """
    return f"{subject[:SUBJECT_DIGITS]}-{_load_digest(json.dumps(load, sort_keys=True))}"


@cache
def _load_digest(load: str) -> str:
    return digest(load)[:6]


def write_observations(path: Path, observed: ObservedReader) -> None:
    """Write one reader's observations, sorted."""
    header = {
        "kind": "observations",
        "reader": observed.name,
        "identity": observed.identity,
        "observed": observed.observed,
        "protocol": observed.protocol,
    }
    write_lines(path, header, _entries(observed))


def _entries(observed: ObservedReader) -> list[dict[str, Any]]:
    outcomes: dict[str, dict[str, Any]] = {}
    lines: dict[tuple[str, str], dict[str, str]] = {}
    for _, cell in sorted(observed.cells.items()):
        subject, _, load = cell.key.partition("-")
        body = _outcome_entry(cell)
        name = SAME
        if body != {"result": SAME}:
            name = digest(body)[:OUTCOME_DIGITS]
            outcomes[name] = body
        lines.setdefault((cell.fixture, subject), {})[f"{cell.options}-{load}"] = name
    probes = [
        {
            "kind": "probe",
            "probe": probe.name,
            "key": probe.key,
            "checks": [list(check) for check in probe.checks],
            "error": probe.error,
        }
        for _, probe in sorted(observed.probes.items())
    ]
    return [
        *probes,
        *(deprecation_entry(one) for _, one in sorted(observed.deprecations.items())),
        *({"kind": "outcome", "id": name, **body} for name, body in sorted(outcomes.items())),
        *(
            {"kind": "cells", "fixture": fixture, "subject": subject, "cells": cells}
            for (fixture, subject), cells in sorted(lines.items())
        ),
    ]


def _outcome_entry(cell: Observation) -> dict[str, Any]:
    """What was observed, apart from where."""
    entry: dict[str, Any] = {"result": cell.result}
    for name in ("stage", "signal", "count", "digest"):
        if getattr(cell, name):
            entry[name] = getattr(cell, name)
    if cell.errors:
        entry["errors"] = [[error["type"], error["message"]] for error in cell.errors]
    if cell.differences:
        entry["differences"] = [difference.as_json() for difference in cell.differences]
    if cell.extent:
        entry["extent"] = list(cell.extent)
    if cell.warnings:
        entry["warnings"] = [list(warning) for warning in cell.warnings]
    if cell.departures:
        entry["departures"] = [[list(paths), value] for paths, value in cell.departures]
    if cell.both:
        entry["both"] = [_outcome_entry(one) for one in cell.both]
    return entry


def read_observations(path: Path) -> ObservedReader:
    """Read one reader's observations.

    Raises:
        CorpusError: the file is missing, not whole, of another reader, or an entry lacks something or contradicts itself.
    """
    header, lines = read_lines(path, "observations")
    outcomes = {SAME: _Outcome(SAME)}
    cells: dict[tuple[str, str], Observation] = {}
    probes: dict[str, Probe] = {}
    deprecations: dict[str, DeprecationObservation] = {}
    for number, entry in lines:
        where = f"{path}:{number}"
        try:
            kind = entry["kind"]
            if kind == "cells":
                for cell in _cells(entry, outcomes):
                    if cell.cell in cells:
                        raise CorpusError(f"observes {cell.fixture} ({cell.options}) again", where=where, code="duplicate")
                    cells[cell.cell] = cell
            elif kind == "outcome":
                outcomes[entry["id"]] = _outcome_line(entry)
            elif kind == "probe":
                checks = tuple((str(check), holds, str(note)) for check, holds, note in entry["checks"])
                _check_probe(entry)
                probes[entry["probe"]] = Probe(entry["probe"], entry["key"], checks, entry["error"])
            elif kind == "deprecation":
                if entry["probe"] in deprecations:
                    raise CorpusError(f"observes the deprecation {entry['probe']} again", where=where, code="duplicate")
                deprecations[entry["probe"]] = parse_deprecation(entry)
            else:
                raise CorpusError(f"has the unknown kind {kind!r}", where=where, code="bad-line")
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
            if isinstance(error, CorpusError):
                raise
            what = str(error) if isinstance(error, ValueError | RecursionError) else f"is not a complete entry: {error!r}"
            raise CorpusError(what, where=where, code="bad-line") from error
    observed = ObservedReader(*_reader(header, path), cells, probes, deprecations)
    if observed.name.partition("@")[0] != REFERENCE:
        for cell in cells.values():
            if cell.result == "unsupported":
                raise CorpusError(
                    f"says that {observed.name} does not support {cell.fixture}: a release does or refuses",
                    where=str(path),
                    code="bad-line",
                )
    return observed


def _check_probe(entry: dict[str, Any]) -> None:
    error = entry["error"]
    if not all(holds is None or holds.__class__ is bool for _, holds, _ in entry["checks"]):
        raise ValueError(f"probe {entry['probe']!r:.60} has a check that is neither true nor false nor null")
    if entry["probe"].__class__ is not str or entry["key"].__class__ is not str:
        raise ValueError("probe and key are not both texts")
    if error is not None and not all(error[name].__class__ is str for name in ("type", "message")):
        raise ValueError(f"probe {entry['probe']!r:.60} has an error without the texts type and message")


def _reader(header: dict[str, Any], path: Path) -> tuple[str, dict[str, Any], str, int]:
    """Name, identity, day and protocol of a file's reader."""
    where = f"{path}:1"
    name, identity = header.get("reader"), header.get("identity")
    observed, protocol = header.get("observed"), header.get("protocol")
    if name != path.stem:
        raise CorpusError(f"holds the observations of {name!r}, but is named {path.name!r}", where=where, code="wrong-reader")
    if not isinstance(identity, dict) or name not in {f"torch-{identity.get('torch')}", identity.get("reader")}:
        raise CorpusError(f"is said to be of {name}, but what answered was {identity}", where=where, code="wrong-reader")
    try:
        dt.date.fromisoformat(observed or "")
    except (TypeError, ValueError):
        raise CorpusError(f"was observed on {observed!r}, which is no day", where=where, code="bad-header") from None
    if any(value is not None and value.__class__ not in {str, int, float, bool} for value in identity.values()):
        raise CorpusError("has an identity that holds more than texts and numbers", where=where, code="bad-header")
    if not isinstance(protocol, int):
        raise CorpusError(f"has the protocol {protocol!r}, expected a number", where=where, code="bad-header")
    return str(name), identity, str(observed), protocol


# What an observation of each result has beside it: True always, False never, None where it depends.
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


def _contradiction(cell: _Outcome | Observation) -> str:
    """In what an observation contradicts itself, as one does whose result alone was edited; "" if in nothing."""
    for name, always in _CARRIES[cell.result].items():
        if always is not None and always is not bool(getattr(cell, name)):
            return f"is {cell.result!r}, but has {'no' if always else 'a value for'} {name!r}"
    if len(cell.differences) > cell.count:
        return f"shows {len(cell.differences)} differences, but counts {cell.count}"
    kinds = {extent["kind"] for extent in cell.extent}
    if cell.extent and sum(extent["count"] for extent in cell.extent) != cell.count:
        return f"counts {cell.count} differences, but their extent says otherwise"
    if cell.result == "differs" and not kinds - {"raised", "relaxed"}:
        return "is 'differs', but no value, shape or type is said to differ"
    if cell.result in {"raised", "relaxed"} and kinds - {"raised", "relaxed"}:
        return f"is {cell.result!r}, though values are said to differ"
    if cell.result == "raised" and "raised" not in kinds:
        return "is 'raised', but no call is said to have raised"
    if cell.both and (len(cell.both) != 2 or cell.both[0] == cell.both[1]):
        return "is 'unstable', but not for two different observations"
    return ""


@dataclass(frozen=True)
class _Outcome:
    """The attributes that an observation shares with all others of the same outcome."""

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
    both: tuple[_Outcome, ...] = ()

    def of(self, fixture: str, options: str, key: str) -> Observation:
        """The observation of this outcome in one cell."""
        both = tuple(one.of(fixture, options, key) for one in self.both)
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
        )


def _outcome_line(entry: dict[str, Any]) -> _Outcome:
    """An outcome's own line, whose id proves it."""
    body = {name: value for name, value in entry.items() if name not in {"kind", "id"}}
    if entry["id"] != digest(body)[:OUTCOME_DIGITS]:
        raise ValueError(f"outcome {entry['id']} was edited: its id is not the digest of the rest")
    return _outcome(body)


def _outcome(body: dict[str, Any]) -> _Outcome:
    if body["result"] not in RESULTS:
        raise ValueError(f"unknown result {body['result']!r}")
    unknown = body.keys() - {one.name for one in fields(_Outcome)}
    if unknown:
        raise ValueError(f"has the unknown {', '.join(sorted(unknown))}")
    _check_types(body)
    outcome = _Outcome(
        result=body["result"],
        stage=body.get("stage", ""),
        signal=body.get("signal", ""),
        errors=tuple({"type": kind, "message": message} for kind, message in body.get("errors", ())),
        differences=tuple(Difference.from_json(difference) for difference in body.get("differences", ())),
        extent=tuple(body.get("extent", ())),
        count=body.get("count", 0),
        digest=body.get("digest", ""),
        departures=tuple((tuple(paths), value) for paths, value in body.get("departures", ())),
        warnings=tuple((category, text) for category, text in body.get("warnings", ())),
        both=tuple(_outcome(one) for one in body.get("both", ())),
    )
    wrong = _contradiction(outcome)
    if wrong:
        raise ValueError(f"outcome {wrong}")
    return outcome


def _check_types(body: dict[str, Any]) -> None:
    """What judging and showing take for granted of an outcome, so that no other value comes so far."""
    for name in ("stage", "signal", "digest"):
        if body.get(name, "").__class__ is not str:
            raise ValueError(f"{name} is {body[name]!r:.60}, expected a text")
    if body.get("count", 0).__class__ is not int or body.get("count", 0) < 0:
        raise ValueError(f"count is {body['count']!r:.60}, expected a number, 0 or more")
    for name in ("errors", "warnings"):
        if not all(part.__class__ is str for pair in body.get(name, ()) for part in pair):
            raise ValueError(f"{name} holds what is no text, expected pairs of texts")
    for difference in body.get("differences", ()):
        if not all(difference[name].__class__ is str for name in ("kind", "where")):
            raise ValueError("a difference has no text for kind or where")
    for extent in body.get("extent", ()):
        frontier = extent["frontier"]
        if extent["kind"].__class__ is not str or extent["dtype"].__class__ is not str or extent["count"].__class__ is not int:
            raise ValueError(f"the extent {extent!r:.80} is not {{kind, dtype, count, frontier}}, texts and a number")
        if frontier is not None:
            for gap, steps in frontier:
                _distance(gap)
                _distance(steps)
    for paths, _ in body.get("departures", ()):
        if not all(path.__class__ is str for path in paths):
            raise ValueError("departures hold a path that is no text")


def _distance(value: Any) -> None:
    if value.__class__ is int or value.__class__ is float:
        return
    if value not in ("nan", "inf", "-inf"):
        raise ValueError(f"a frontier holds {value!r:.60}, expected a number, 'nan' or 'inf'")


def _cells(entry: dict[str, Any], outcomes: dict[str, _Outcome]) -> Iterator[Observation]:
    fixture, subject = entry["fixture"], entry["subject"]
    if fixture.__class__ is not str or subject.__class__ is not str:
        raise ValueError("fixture and subject are not both texts")
    for place, name in entry["cells"].items():
        options, _, load = place.rpartition("-")
        outcome = outcomes.get(name)
        if outcome is None:
            raise ValueError(f"{fixture} ({options}) has the outcome {name!r}, which no line above tells")
        yield outcome.of(fixture, options, f"{subject}-{load}")
