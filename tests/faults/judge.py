"""What became of a fault: whether it was noticed, and whether the right record was named. Who is asked: ``harness.inspect``,
and ``harness.load_state`` for what torch.save wrote.
"""

from __future__ import annotations

import json
import resource
import signal
import sys
import time
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import harness
from harness.archive import ZipArchive, open_archive
from harness.errors import HarnessError
from tests.faults.faults import BOMB

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import FrameType

    from tests.faults.faults import Fault, Sample

__all__ = ["BAD", "OUTCOMES", "Judged", "judge"]

RIGHT, ELSEWHERE, STRUCTURE, GONE = "right record", "other record", "structure", "name gone"
HARMLESS, UNPROTECTED, HELD = "nothing changed", "unprotected", "held"
UNNOTICED, RAISED, TIMED_OUT, MEMORY, CRASHED = "UNNOTICED", "RAISED", "TIME-OUT", "MEMORY", "CRASHED"
OUTCOMES = {
    RIGHT: "noticed, and the record that was hit is named",
    ELSEWHERE: "noticed, but that record is not named",
    STRUCTURE: "noticed; no record was hit, or the container has no names for its parts",
    GONE: "noticed; what was hit cannot be named: its name stands in no header and no entry any more",
    HARMLESS: "not noticed; all that can be read of the file is what it was",
    UNPROTECTED: "not noticed; the bytes that changed have no checksum (streams, tars, flatbuffers, crc32 off)",
    HELD: "a bomb whose container is sound: taken within the bounds of time and memory",
    UNNOTICED: "values of a protected record changed, and nobody said so",
    RAISED: "an exception outside harness.errors",
    TIMED_OUT: "took more than 10 s of a processor",
    MEMORY: "took more than 256 MiB of memory",
    CRASHED: "the process died",
}
BAD = (UNNOTICED, RAISED, TIMED_OUT, MEMORY, CRASHED)
LONGEST = 10.0
sys.setrecursionlimit(20_000)  # values are nested up to Limits.depth, and _plain follows them
MOST_MEMORY = 256 << 10  # in KiB, beyond what the process had before


@dataclass(slots=True)
class Judged:
    """One fault and what became of it."""

    fault: Fault
    outcome: str
    said: str = ""
    seconds: float = 0.0


class _TimeOut(BaseException):
    """Not to be caught by whoever catches Exception."""


def _stop(_: int, __: FrameType | None) -> None:
    raise _TimeOut


def judge(fault: Fault, folder: Path) -> Judged:
    """Write what a fault made, have it read, and say what became of it."""
    path = folder / fault.sample.path.name
    path.write_bytes(fault.data)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()
    signal.signal(signal.SIGPROF, _stop)
    signal.setitimer(signal.ITIMER_PROF, LONGEST)  # of the processor: other work on this machine is no fault of a file
    try:
        found = _judged(fault, path)
    except _TimeOut:
        found = Judged(fault, TIMED_OUT)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a find
        found = Judged(fault, RAISED, f"{type(error).__name__}: {error}"[:300])
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    found.seconds = time.process_time() - started
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    if grown > MOST_MEMORY and found.outcome not in BAD:
        found = Judged(fault, MEMORY, f"{grown >> 10} MiB", found.seconds)
    return found


def _judged(fault: Fault, path: Path) -> Judged:
    row = harness.inspect(path)
    json.dumps(row)
    sound = _sound(fault.sample)
    state = _state(path) if sound.row["family"] == "torch-save" else None
    if row["error"] is not None:
        silent = state is not None and state != sound.state
        if silent and _protects(fault, sound):
            return Judged(fault, UNNOTICED, "inspect notices it, load_state gives other values without a word")
        return _named(fault, row)
    if fault.kind == BOMB:
        return Judged(fault, HELD)
    changed = _changed(fault, path, row, sound)
    if state is not None and state != sound.state:
        changed |= {"(the values of load_state)"} if _protects(fault, sound) else {"-"}
    if not changed:
        return Judged(fault, HARMLESS)
    if changed == {"-"}:
        return Judged(fault, UNPROTECTED)
    return Judged(fault, UNNOTICED, f"changed: {', '.join(sorted(changed))}"[:300])


def _protects(fault: Fault, sound: _Sound) -> bool:
    """Whether the records that were hit have checksums."""
    return bool(sound.protected) and (fault.hit <= sound.protected)


# ----------------------------------------------------------------------------------------------------------- naming


def _named(fault: Fault, row: dict[str, Any]) -> Judged:
    said = [*(one["detail"] for one in row["damage"]), row["error"]["message"]]
    records = [one["record"] for one in row["damage"] if one["record"]]
    told = f"{row['error']['code']}: {row['error']['message']}"[:300]
    if not fault.hit:
        return Judged(fault, STRUCTURE, told)
    hit = fault.still_named
    if not hit:
        return Judged(fault, GONE, told)
    named = {one for one in hit if any(name == one or name.startswith(f"{one}/") for name in records)}
    named |= {one for one in hit - named if any(repr(one) in text or f"/{one}'" in text for text in said)}
    right = named == hit if fault.every else bool(named)
    if right:
        return Judged(fault, RIGHT, told)
    missed = ", ".join(sorted(hit - named) if fault.every else sorted(hit))
    return Judged(fault, ELSEWHERE, f"not named: {missed}; told: {told}")


# --------------------------------------------------------------------------------------------------------- comparing


@dataclass(frozen=True, slots=True)
class _Sound:
    """What the undamaged archive gives."""

    row: dict[str, Any]
    records: dict[str, list[bytes]]
    protected: frozenset[str]
    state: object


@lru_cache(512)
def _sound(sample: Sample) -> _Sound:
    row = harness.inspect(sample.path)
    if row["error"] is not None:
        raise AssertionError(f"{sample.name} is not sound: {row['error']}")
    state = _state(sample.path) if row["family"] == "torch-save" else None
    return _Sound(_telling(row), _records(sample.path), sample.layout.protected, state)


def _telling(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in {"path", "sha256", "size"}}


def _records(path: Path) -> dict[str, list[bytes]]:
    with open_archive(path) as archive:
        if isinstance(archive, ZipArchive):
            found: dict[str, list[bytes]] = {}
            for member in archive.members:
                found.setdefault(member.record, []).append(bytes(member.content(check=True)))
            return found
    return {}


def _changed(fault: Fault, path: Path, row: dict[str, Any], sound: _Sound) -> set[str]:
    """The protected records that differ; ``-`` for all that has no checksum."""
    if not sound.records:
        # that a container without checksums is taken for another one is no wonder either: its first bytes are not protected
        # and where nobody reads the values, nobody can say that they are the same
        return {"-"} if sound.state is None or _telling(row) != sound.row else set()
    found = _records(path)
    names = found.keys() | sound.records.keys()
    changed = {one if one in sound.protected else "-" for one in names if found.get(one) != sound.records.get(one)}
    if not changed and _telling(row) != sound.row:
        changed.add(f"the row: {', '.join(name for name, value in _telling(row).items() if sound.row[name] != value)}")
    return changed


def _state(path: Path) -> object:
    """The values that load_state gives, in a form that compares bit for bit; None where it refuses."""
    load = getattr(harness, "load_state", None)
    if load is None:
        return None
    try:
        loaded = load(path)
    except HarnessError:
        return None
    return _plain(loaded)


def _plain(value: Any, seen: dict[int, int] | None = None) -> object:
    """Any value as nested tuples; what is met again is told by its number."""
    seen = {} if seen is None else seen
    if value is None or isinstance(value, str | bytes | bool | int | float | complex | range | slice | bytearray):
        return value.__class__.__name__, repr(value)
    if id(value) in seen:
        return "again", seen[id(value)]
    seen[id(value)] = len(seen)
    if hasattr(value, "tobytes") and hasattr(value, "dtype"):
        return "array", str(value.dtype), value.shape, value.tobytes()
    return value.__class__.__name__, tuple(_parts(value, seen))


def _parts(value: Any, seen: dict[int, int]) -> Iterator[object]:
    if isinstance(value, dict):
        for pair in value.items():
            yield _plain(pair[0], seen), _plain(pair[1], seen)
    elif isinstance(value, list | tuple):
        for one in value:
            yield _plain(one, seen)
    elif isinstance(value, set | frozenset):
        yield from sorted(repr(_plain(one, seen)) for one in value)
    else:
        names = getattr(value, "__slots__", None) or getattr(value, "__dict__", None)
        if names is None:
            yield repr(value)
            return
        for name in names:
            yield name, _plain(getattr(value, name, None), seen)
