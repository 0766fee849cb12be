"""Observations: what readers did with subjects. Facts, recorded once per reader, texts stored once per file."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from harness.corpus.compare import Difference, result_digest
from harness.corpus.lines import digest, read_lines, write_lines
from harness.corpus.texts import headline
from harness.errors import CorpusError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["RESULTS", "Observation", "ObservedReader", "Probe", "cell_key", "read_observations", "write_observations"]

RESULTS = frozenset({"same", "differs", "refused", "raised", "relaxed", "unstable", "crashed", "timed-out"})


@dataclass(frozen=True)
class Observation:
    """What one reader did with one fixture under one set of load options.

    Attributes:
        fixture: ``torch-1.5.1/div``.
        options: id of the option set.
        key: hash of everything that could change the result (see :func:`cell_key`).
        result: one of :data:`RESULTS`. ``differs`` is a fact; whether it is close enough is for judging.
        stage: ``load`` or ``call``, where it crashed or timed out.
        signal: the signal it died of, or ``exit N``.
        errors: ``[{"type", "message"}]`` met where the golden has none.
        differences: the first few of ``count``, for people.
        extent: all of them in short, for judging (see :class:`harness.corpus.compare.Comparison`).
        digest: of what the reader computed; equal digests are bit-equal results.
        values: the reader's own result, where it is not the golden.
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
    values: dict[str, Any] | None = field(default=None, repr=False, compare=False)
    warnings: tuple[tuple[str, str], ...] = ()
    both: tuple[Observation, ...] = ()

    @property
    def cell(self) -> tuple[str, str]:
        """Fixture and options."""
        return self.fixture, self.options

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
        name: ``torch-1.12.1+cu102``: the exact version. 2.13.0 and 2.13.0+cpu are two readers.
        identity: what exactly answered: torch with its local part, git revision, Python, wheel, CPU capability.
        observed: the day of the newest observation (ISO, UTC).
        protocol: version of the worker's protocol.
        cells, probes: by cell and by name.
    """

    name: str
    identity: dict[str, Any]
    observed: str
    protocol: int
    cells: dict[tuple[str, str], Observation]
    probes: dict[str, Probe]

    @property
    def release(self) -> str:
        """The public part of the version, by which policies speak of readers: ``1.12.1``."""
        return self.name.removeprefix("torch-").partition("+")[0]

    @cached_property
    def identity_digest(self) -> str:
        """Short hash of the identity, as in keys."""
        return digest(self.identity)[:16]

    @cached_property
    def digest(self) -> str:
        """Digest of everything observed."""
        return digest(self.name, self.identity, self.observed, self.protocol, list(_entries(self)))


def cell_key(subject: str, options: dict[str, Any], identity_digest: str, protocol: int) -> str:
    """The key of a cell: a pair observed under this key need not be observed again.

    Parameters:
        subject: :attr:`harness.corpus.manifest.Fixture.subject`.
        options: the load options themselves, not their name.
        identity_digest: of the reader.
        protocol: of the worker.
    """
    return digest(subject, options, identity_digest, protocol)[:20]


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
    texts: dict[str, str] = {}
    values: dict[str, dict[str, Any]] = {}
    cells = [_cell_entry(cell, texts, values) for _, cell in sorted(observed.cells.items())]
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
        *({"kind": "text", "id": key, "text": text} for key, text in sorted(texts.items())),
        *({"kind": "values", "id": key, "values": value} for key, value in sorted(values.items())),
        *probes,
        *cells,
    ]


def _cell_entry(cell: Observation, texts: dict[str, str], values: dict[str, dict[str, Any]]) -> dict[str, Any]:
    def text(value: str) -> str:
        key = digest(value)[:8]
        texts[key] = value
        return key

    entry: dict[str, Any] = {
        "kind": "cell",
        "fixture": cell.fixture,
        "options": cell.options,
        "key": cell.key,
        "result": cell.result,
    }
    for name in ("stage", "signal", "count", "digest"):
        if getattr(cell, name):
            entry[name] = getattr(cell, name)
    if cell.errors:
        entry["errors"] = [[error["type"], text(error["message"])] for error in cell.errors]
    if cell.differences:
        entry["differences"] = [difference.as_json() for difference in cell.differences]
    if cell.extent:
        entry["extent"] = list(cell.extent)
    if cell.warnings:
        entry["warnings"] = [[category, text(message)] for category, message in cell.warnings]
    if cell.values is not None:
        values[cell.digest] = cell.values
        entry["values"] = cell.digest
    if cell.both:
        entry["both"] = [_cell_entry(one, texts, values) for one in cell.both]
    return entry


def read_observations(path: Path) -> ObservedReader:
    """Read one reader's observations.

    Raises:
        CorpusError: the file is missing, not whole, of another reader, or an entry lacks something or contradicts itself.
    """
    header, lines = read_lines(path, "observations")
    texts: dict[str, str] = {}
    values: dict[str, dict[str, Any]] = {}
    cells: dict[tuple[str, str], Observation] = {}
    probes: dict[str, Probe] = {}
    for number, entry in lines:
        where = f"{path}:{number}"
        try:
            kind = entry["kind"]
            if kind == "text":
                texts[entry["id"]] = entry["text"]
            elif kind == "values":
                values[entry["id"]] = entry["values"]
            elif kind == "probe":
                checks = tuple((str(check), holds, str(note)) for check, holds, note in entry["checks"])
                probes[entry["probe"]] = Probe(entry["probe"], entry["key"], checks, entry["error"])
            elif kind == "cell":
                cell = _cell(entry, texts, values)
                if cell.cell in cells:
                    raise CorpusError(f"observes {cell.fixture} ({cell.options}) again", where=where, code="duplicate")
                cells[cell.cell] = cell
            else:
                raise CorpusError(f"has the unknown kind {kind!r}", where=where, code="bad-line")
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, CorpusError):
                raise
            what = str(error) if isinstance(error, ValueError) else f"is not a complete entry: {error!r}"
            raise CorpusError(what, where=where, code="bad-line") from error
    return ObservedReader(*_reader(header, path), cells, probes)


def _reader(header: dict[str, Any], path: Path) -> tuple[str, dict[str, Any], str, int]:
    """Name, identity, day and protocol of a file's reader."""
    where = f"{path}:1"
    name, identity = header.get("reader"), header.get("identity")
    observed, protocol = header.get("observed"), header.get("protocol")
    if name != path.stem:
        raise CorpusError(f"holds the observations of {name!r}, but is named {path.name!r}", where=where, code="wrong-reader")
    if not isinstance(identity, dict) or name != f"torch-{identity.get('torch')}":
        raise CorpusError(f"is said to be of {name}, but what answered was {identity}", where=where, code="wrong-reader")
    try:
        dt.date.fromisoformat(observed or "")
    except (TypeError, ValueError):
        raise CorpusError(f"was observed on {observed!r}, which is no day", where=where, code="bad-header") from None
    if not isinstance(protocol, int):
        raise CorpusError(f"has the protocol {protocol!r}, expected a number", where=where, code="bad-header")
    return str(name), identity, str(observed), protocol


# What an observation of each result has beside it: True always, False never, None where it depends.
_CARRIES: dict[str, dict[str, bool | None]] = {
    "same": {"signal": None, "stage": None, "errors": False, "count": False, "digest": None, "values": False, "both": False},
    "differs": {"signal": False, "stage": False, "errors": None, "count": True, "digest": True, "values": True, "both": False},
    "refused": {"signal": False, "stage": False, "errors": True, "count": False, "digest": False, "values": False, "both": False},
    "raised": {"signal": False, "stage": False, "errors": True, "count": True, "digest": True, "values": True, "both": False},
    "relaxed": {"signal": False, "stage": False, "errors": False, "count": True, "digest": None, "values": None, "both": False},
    "crashed": {"signal": True, "stage": True, "errors": None, "count": False, "digest": False, "values": False, "both": False},
    "timed-out": {
        "signal": False,
        "stage": True,
        "errors": None,
        "count": False,
        "digest": False,
        "values": False,
        "both": False,
    },
    "unstable": {
        "signal": False,
        "stage": False,
        "errors": False,
        "count": False,
        "digest": False,
        "values": False,
        "both": True,
    },
}


def _contradiction(cell: Observation) -> str:
    """In what an observation contradicts itself, as one does whose result alone was edited; "" if in nothing."""
    for name, always in _CARRIES[cell.result].items():
        if always is not None and always is not bool(getattr(cell, name)):
            return f"is {cell.result!r}, but has {'no' if always else 'a value for'} {name!r}"
    if len(cell.differences) > cell.count:
        return f"shows {len(cell.differences)} differences, but counts {cell.count}"
    kinds = {extent["kind"] for extent in cell.extent}
    if cell.extent and sum(extent["count"] for extent in cell.extent) != cell.count:
        return f"counts {cell.count} differences, but their extent says otherwise"
    if cell.values is not None and result_digest(cell.values) != cell.digest:
        return "has a digest that is not that of its values"
    if cell.result == "differs" and not kinds - {"raised", "relaxed"}:
        return "is 'differs', but no value, shape or type is said to differ"
    if cell.result in {"raised", "relaxed"} and kinds - {"raised", "relaxed"}:
        return f"is {cell.result!r}, though values are said to differ"
    if cell.result == "raised" and "raised" not in kinds:
        return "is 'raised', but no call is said to have raised"
    if cell.both and (len(cell.both) != 2 or cell.both[0] == cell.both[1]):
        return "is 'unstable', but not for two different observations"
    return ""


def _cell(entry: dict[str, Any], texts: dict[str, str], values: dict[str, dict[str, Any]]) -> Observation:
    if entry["result"] not in RESULTS:
        raise ValueError(f"unknown result {entry['result']!r}")
    cell = Observation(
        fixture=entry["fixture"],
        options=entry["options"],
        key=entry["key"],
        result=entry["result"],
        stage=entry.get("stage", ""),
        signal=entry.get("signal", ""),
        errors=tuple({"type": kind, "message": texts[key]} for kind, key in entry.get("errors", ())),
        differences=tuple(Difference.from_json(difference) for difference in entry.get("differences", ())),
        extent=tuple(entry.get("extent", ())),
        count=entry.get("count", 0),
        digest=entry.get("digest", ""),
        values=values[entry["values"]] if "values" in entry else None,
        warnings=tuple((category, texts[key]) for category, key in entry.get("warnings", ())),
    )
    if "both" in entry:
        cell = replace(cell, both=tuple(_cell(one, texts, values) for one in entry["both"]))
    wrong = _contradiction(cell)
    if wrong:
        raise ValueError(f"{cell.fixture} ({cell.options}) {wrong}")
    return cell
