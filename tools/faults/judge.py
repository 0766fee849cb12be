"""Judge a fault: whether it was noticed, whether the right record was named, and whether it broke out.

Covers every function that opens files: ``torch_compat.inspect`` and the screen of ``torch-compat inspect --tree --code``;
``torch_compat.load_state`` for files of torch.save; ``torch_compat.load`` and the calls recorded in the manifest for programs.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import signal
import sys
import time
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

import torch_compat
from tools.faults.faults import BOMB
from tools.fence.oracle import Outside, check_value, inside, watch
from torch_compat.archive import ZipArchive, open_archive
from torch_compat.cli._inspected import screen
from torch_compat.corpus.goldens import Goldens
from torch_compat.corpus.manifest import read_manifest
from torch_compat.errors import HarnessError, UsageError
from torch_compat.inspection import look_at
from torch_compat.runtime.encoding import Decoder, Encoder
from torch_compat.runtime.limits import LIMITS
from torch_compat.runtime.tensor import Tensor
from torch_compat.runtime.values import ScriptObject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import FrameType

    from tools.faults.faults import Fault, Sample

__all__ = ["BAD", "OUTCOMES", "Judged", "judge", "know"]

RIGHT, ELSEWHERE, STRUCTURE, GONE = "right record", "other record", "structure", "name gone"
HARMLESS, UNPROTECTED, HELD, REFUSED = "nothing changed", "unprotected", "held", "refused"
UNNOTICED, RAISED, TIMED_OUT, MEMORY, OUTSIDE, CRASHED = "UNNOTICED", "RAISED", "TIME-OUT", "MEMORY", "OUTSIDE", "CRASHED"
OUTCOMES = {
    RIGHT: "noticed, and the damaged record is named",
    ELSEWHERE: "noticed, but the damaged record is not named",
    STRUCTURE: "noticed; no record is damaged, or the parts of the container have no names",
    GONE: "noticed; the damaged record cannot be named, because no header or entry contains its name any more",
    HARMLESS: "not noticed; everything that can be read from the file is unchanged",
    UNPROTECTED: "not noticed; the changed bytes have no checksum (streams, tars, flatbuffers, crc32 off)",
    HELD: "a bomb or a resealed archive that is read within all limits",
    REFUSED: "a resealed archive that inspect refuses, with a reason",
    UNNOTICED: "values of a protected record changed, and no function reported it",
    RAISED: "an exception that is not in torch_compat.errors, or any exception raised by inspect",
    TIMED_OUT: "took more processor time than SECONDS",
    MEMORY: "took more memory than MEGABYTES",
    OUTSIDE: "an array extends beyond its memory, or a program returned a value that it must not have",
    CRASHED: "the process died or hung",
}
BAD = (UNNOTICED, RAISED, TIMED_OUT, MEMORY, OUTSIDE, CRASHED)
RECURSION = 20_000  # values are nested up to Limits.depth, and _plain recurses into them

# Limits for each step: processor time (inspect and the screen: plus 20 ms for each MB), and additional memory of the process.
SECONDS = {"inspect": 1.0, "tree": 1.0, "state": 10.0, "load": 10.0, "call": 10.0}
MEGABYTES = {"inspect": 512, "tree": 512, "state": 2048, "load": 1024, "call": 1024}
SMALL = LIMITS._replace(steps=200_000, seconds=5, memory=512 << 20, work=1 << 28)
RETRIES = 3
CALLS = 3
PROGRAMS = frozenset({"torchscript", "mobile", "export"})
WRITER = re.compile(r"torch-(\d.*)")  # the folder of a release
HORIZONS = ("reference@1.4.0", "reference@1.8.1", "reference@1.11.0", "reference@2.4.1")
WAYS: tuple[Mapping[str, bool], ...] = ({}, {"with_types": True}, {"mmap": False}, {"mmap": True})  # of load_state
DEEPEST = 8  # maximum depth at which results are measured
TOUCHED = 4 << 20  # bytes up to which an array is read completely


@dataclass(slots=True)
class Judged:
    """The result for one fault. ``seconds`` and ``memory`` (in MiB) are per step; ``failed`` lists failures in operators."""

    fault: Fault
    outcome: str
    said: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    memory: dict[str, int] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)


class _Bad(Exception):  # noqa: N818 - no error of ours
    """A forbidden result."""

    def __init__(self, outcome: str, text: str) -> None:
        super().__init__(outcome, text)
        self.outcome = outcome
        self.said = text


class _TimeOut(BaseException):
    """A timeout; not a subclass of Exception, so that no handler for Exception catches it."""


def _stop(_: int, __: FrameType | None) -> None:
    raise _TimeOut


def judge(fault: Fault, folder: Path, target: str | None = None) -> Judged:
    """Write a damaged file, read it, and return the result.

    Parameters:
        target: what is asked beside ``inspect``: ``inspect`` for nothing, ``state`` for load_state, ``call`` and ``exported`` for load and the calls;
            unless given, what the family of the archive says, and now and then the other.
    """
    path = folder / fault.sample.path.name
    path.write_bytes(fault.data)
    steps = _Steps(len(fault.data))
    signal.signal(signal.SIGPROF, _stop)
    off, limit = watch(), sys.getrecursionlimit()
    sys.setrecursionlimit(RECURSION)
    try:
        result = _judged(fault, path, steps, target)
    except _Bad as bad:
        result = Judged(fault, bad.outcome, bad.said)
    finally:
        off()
        sys.setrecursionlimit(limit)
    result.seconds, result.memory, result.failed = steps.longest, steps.memory, steps.failed
    return result


# ------------------------------------------------------------------------------------------------------------- steps

Found = TypeVar("Found")


class _Steps:
    """Runs steps one after another, each within its limits."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.seconds: dict[str, float] = {}
        self.longest: dict[str, float] = {}
        self.memory: dict[str, int] = {}
        self.failed: list[str] = []

    def do(self, name: str, what: Callable[[], Found]) -> Found:
        """Run a step and measure it.

        Raises:
            HarnessError: as raised by the step.
            _Bad: the step exceeded its limits or raised anything else.
        """
        try:
            return self._measured(name, what)
        finally:
            if self.memory.get(name, 0) > MEGABYTES[name]:
                raise _Bad(MEMORY, f"{name}: {self.memory[name]} MiB")
            bound = SECONDS[name] + (0.02 * self.size / 1e6 if name in {"inspect", "tree"} else 0)
            if self.seconds[name] > bound:
                self.again(name, what, bound)

    def again(self, name: str, what: Callable[[], object], bound: float) -> None:
        """Repeat up to three more times: other processes share the caches and the processor, which increases the measured time."""
        taken = [self.seconds[name]]
        while taken[-1] > bound and len(taken) <= RETRIES:
            with contextlib.suppress(HarnessError):
                self._measured(name, what)
            taken.append(self.seconds[name])
        if taken[-1] > bound:
            raise _Bad(TIMED_OUT, f"{name}: {min(taken):.1f} s of {bound:.1f} s")

    def _measured(self, name: str, what: Callable[[], Found]) -> Found:
        before = _peak(reset=True)
        began = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, 3 * SECONDS[name] + 5)
        try:
            return what()
        except HarnessError as error:
            if error.code == "fault":
                self.failed.append(error.message.removeprefix("the reference reader failed in ")[:80])
            raise
        except _TimeOut:
            raise _Bad(TIMED_OUT, f"{name}: more than {time.process_time() - began:.0f} s") from None
        except Outside as error:
            raise _Bad(OUTSIDE, f"{name}: {error}") from error
        except Exception as error:
            raise _Bad(RAISED, f"{name}: {type(error).__name__}: {error}{_place(error)}"[:400]) from error
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            self.seconds[name] = time.process_time() - began
            self.longest[name] = max(self.longest.get(name, 0.0), self.seconds[name])
            self.memory[name] = max(self.memory.get(name, 0), (_peak() - before) >> 10)


def _place(error: Exception) -> str:
    """The place in the harness where an exception was raised."""
    trace, at = error.__traceback__, ""
    while trace is not None:
        code = trace.tb_frame.f_code
        if "torch_compat" in code.co_filename:
            at = f" at {Path(code.co_filename).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return at


@lru_cache(1)
def _own_files(_: int) -> tuple[int, int] | None:
    """The files of the system that report and reset the peak memory of this process; None if not supported."""
    try:
        return os.open("/proc/self/status", os.O_RDONLY), os.open("/proc/self/clear_refs", os.O_WRONLY)
    except OSError:
        return None


def _peak(*, reset: bool = False) -> int:
    """The peak memory of the process since the last reset, in KiB; since its start if the system cannot reset it."""
    files = _own_files(os.getpid())
    if files is None:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if reset:
        os.write(files[1], b"5")
    told = os.pread(files[0], 4096, 0)
    return int(told[told.index(b"VmHWM:") + 6 :].split(None, 1)[0])


def _inspected(path: Path, steps: _Steps) -> dict[str, Any]:
    """The row of inspect; also checks that its screen is printable."""

    def row() -> tuple[Any, dict[str, Any]]:
        inspected = look_at(str(path))
        wording = inspected.row()
        if isinstance(inspected.error, UsageError):
            raise inspected.error
        json.dumps(wording)
        return inspected, wording

    try:
        result, message = steps.do("inspect", row)
        text = steps.do("tree", lambda: screen(result, 0, tree=True, code=True))
    except HarnessError as error:
        raise _Bad(RAISED, f"inspect raises {type(error).__name__}: {error}") from error
    if not all(line.isprintable() for line in text.splitlines()):
        raise _Bad(OUTSIDE, "inspect prints what a terminal obeys")
    return message


def _state(path: Path, steps: _Steps, way: Mapping[str, bool] = WAYS[0]) -> object:
    """The values of load_state, in a form that compares bit for bit; None if it refuses the file."""
    try:
        return steps.do("state", lambda: _plain(torch_compat.load_state(path, **way)))
    except HarnessError:
        return None


def _results(path: Path, calls: list[dict[str, Any]], steps: _Steps, *, compare: bool, reader: str = "reference") -> Any:
    """The results of a program for its recorded calls; None if it is refused. Large results are only prepared for the comparison."""
    try:
        module = steps.do("load", lambda: torch_compat.load(path, reader, limits=SMALL, in_process=True))
    except HarnessError:
        return None
    results: list[Any] = []

    def called(method: str, args: tuple[Any, ...]) -> None:
        value = module.run(method, args)
        check_value(value)
        if compare or _size(value) <= TOUCHED:
            results.append(Encoder().encode(value))

    def tensors() -> None:
        for _, _, tensor in module.named_tensors():
            check_value(tensor)
            if tensor.__class__ is Tensor and tensor.array.nbytes <= TOUCHED:
                tensor.array.tobytes()  # a program may not read all its attributes

    forward = [{"method": "forward", "args": []}] if "forward" in module.methods else []
    for what in [
        tensors,
        *(lambda call=call: called(call["method"], Decoder().decode({"tuple": call["args"]})) for call in calls or forward),
    ]:
        try:
            steps.do("call", what)
        except HarnessError as error:
            results.append(error.code)
    return results


def _size(value: Any, depth: int = 0) -> int:
    """The size in bytes of the tensors in a value."""
    if isinstance(value, Tensor):
        return value.array.nbytes
    if depth > DEEPEST:
        return TOUCHED + 1
    if isinstance(value, dict):
        return sum(_size(item, depth + 1) for pair in value.items() for item in pair)
    if isinstance(value, ScriptObject):
        return _size(value.__dict__, depth + 1)
    return sum(_size(item, depth + 1) for item in value) if isinstance(value, list | tuple) else 0


@lru_cache(64)
def _manifest(path: Path) -> dict[str, tuple[str, list[dict[str, Any]]]]:
    fixtures = read_manifest(path, _goldens(path.parents[1])).fixtures
    return {fixture.file: (fixture.family, fixture.calls[:CALLS]) for fixture in fixtures}


@lru_cache(1)
def _goldens(fixtures: Path) -> Goldens:
    return Goldens(fixtures)


def _calls(sample: Sample) -> list[dict[str, Any]]:
    return _manifest(sample.path.parent / "manifest.jsonl")[sample.path.name][1]


def _family(sample: Sample) -> str:
    return _manifest(sample.path.parent / "manifest.jsonl")[sample.path.name][0]


# ----------------------------------------------------------------------------------------------------------- judging


def _judged(fault: Fault, path: Path, steps: _Steps, target: str | None) -> Judged:
    row = _inspected(path, steps)
    sample = fault.sample
    compare = not fault.resealed and fault.kind != BOMB
    families = {row["family"], _family(sample)}
    way = WAYS[fault.number // 4 % len(WAYS)] if fault.resealed else WAYS[0]
    wants_state = "torch-save" in families or fault.number % 16 == 0
    wants_calls = bool(families & PROGRAMS) or fault.number % 16 == 1
    if target is not None:
        wants_state, wants_calls = target == "state", target in {"call", "exported"}
    state = _state(path, steps, way) if wants_state else None
    results = None
    if wants_calls:
        results = _results(path, _calls(sample), steps, compare=compare)
        writer = WRITER.fullmatch(sample.path.parent.name)
        if _family(sample) == "export" and writer:  # newer releases reject its schema if the major number differs
            _results(path, _calls(sample), steps, compare=False, reader=f"reference@{writer[1]}")
        elif fault.number % 4 == 0:
            _results(path, _calls(sample), steps, compare=False, reader=HORIZONS[fault.number // 4 % len(HORIZONS)])
    if fault.resealed:
        return Judged(fault, HELD if row["error"] is None else REFUSED, str(row["error"])[:300])
    other = False
    if compare and state is not None and _family(sample) == "torch-save":
        other = state != _sound_state(sample)
    if compare and results is not None and _family(sample) in PROGRAMS and sample.layout.protected:
        other |= _sound_results(sample) not in (None, results)
    if row["error"] is not None:
        if other and _protects(fault):
            return Judged(fault, UNNOTICED, "inspect reports it, but load_state or load silently returns other values")
        return _named(fault, row)
    if fault.kind == BOMB:
        return Judged(fault, HELD)
    changed = _changed(fault, path, row)
    if other:
        changed |= {"(the values)"} if _protects(fault) else {"-"}
    if not changed:
        return Judged(fault, HARMLESS)
    if changed == {"-"}:
        return Judged(fault, UNPROTECTED)
    return Judged(fault, UNNOTICED, f"changed: {', '.join(sorted(changed))}"[:300])


def _protects(fault: Fault) -> bool:
    """Whether the damaged records have checksums."""
    protected = fault.sample.layout.protected
    return bool(protected) and fault.hit <= protected


# ----------------------------------------------------------------------------------------------------------- naming


def _named(fault: Fault, row: dict[str, Any]) -> Judged:
    messages = [*(item["detail"] for item in row["damage"]), row["error"]["message"]]
    records = [item["record"] for item in row["damage"] if item["record"]]
    told = f"{row['error']['code']}: {row['error']['message']}"[:300]
    if not fault.hit:
        return Judged(fault, STRUCTURE, told)
    hit = fault.still_named
    if not hit:
        return Judged(fault, GONE, told)
    named = {item for item in hit if any(name == item or name.startswith(f"{item}/") for name in records)}
    named |= {item for item in hit - named if any(repr(item) in text or f"/{item}'" in text for text in messages)}
    right = named == hit if fault.every else bool(named)
    if right:
        return Judged(fault, RIGHT, told)
    missed = ", ".join(sorted(hit - named) if fault.every else sorted(hit))
    return Judged(fault, ELSEWHERE, f"not named: {missed}; reported: {told}")


# --------------------------------------------------------------------------------------------------------- comparing


# Results of the undamaged archives, computed only when compared: reading all samples takes longer than most runs.


def know(sample: Sample, target: str) -> None:
    """Read an undamaged archive before worker processes are forked.

    Parameters:
        target: as for :func:`judge`.
    """
    _inspected(sample.path, _Steps(len(sample.raw)))
    _sound_row(sample)
    _sound_records(sample)
    _calls(sample)
    if target == "state" and _family(sample) == "torch-save":
        _sound_state(sample)
    if target == "call" and _family(sample) in PROGRAMS and sample.layout.protected:
        _sound_results(sample)


@lru_cache(4096)
def _sound_row(sample: Sample) -> dict[str, Any]:
    row = torch_compat.inspect(sample.path)
    if row["error"] is not None:
        raise AssertionError(f"{sample.name} is not sound: {row['error']}")
    return _telling(row)


@lru_cache(4096)
def _sound_state(sample: Sample) -> object:
    return _state(sample.path, _Steps(len(sample.raw)))


@lru_cache(4096)
def _sound_records(sample: Sample) -> dict[str, list[bytes]]:
    return _records(sample.path)


@lru_cache(4096)
def _sound_results(sample: Sample) -> Any:
    """The results of the program; None if they depend on random numbers."""
    steps = _Steps(len(sample.raw))
    results = _results(sample.path, _calls(sample), steps, compare=True)
    return results if results == _results(sample.path, _calls(sample), steps, compare=True) else None


def _telling(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in {"path", "sha256", "size"}}


def _records(path: Path) -> dict[str, list[bytes]]:
    with open_archive(path) as archive:
        if isinstance(archive, ZipArchive):
            results: dict[str, list[bytes]] = {}
            for member in archive.members:
                results.setdefault(member.record, []).append(bytes(member.content(check=True)))
            return results
    return {}


def _changed(fault: Fault, path: Path, row: dict[str, Any]) -> set[str]:
    """The protected records that differ; ``-`` for everything without a checksum."""
    sample, sound = fault.sample, _sound_row(fault.sample)
    if not sample.layout.members:
        # a container without checksums may also be recognized as another one: its first bytes are not protected
        # if the values are not read, they cannot be compared
        return {"-"} if _family(sample) != "torch-save" or _telling(row) != sound else set()
    protected, known, result = sample.layout.protected, _sound_records(sample), _records(path)
    names = result.keys() | known.keys()
    changed = {name if name in protected else "-" for name in names if result.get(name) != known.get(name)}
    if not changed and _telling(row) != sound:
        changed.add(f"the row: {', '.join(name for name, value in _telling(row).items() if sound[name] != value)}")
    return changed


def _plain(value: Any, seen: dict[int, int] | None = None) -> object:
    """A value as nested tuples; a repeated object is represented by its number."""
    seen = {} if seen is None else seen
    if value is None or isinstance(value, str | bytes | bool | int | float | complex | range | slice | bytearray):
        return value.__class__.__name__, repr(value)
    if id(value) in seen:
        return "again", seen[id(value)]
    seen[id(value)] = len(seen)
    if isinstance(value, np.ndarray):
        if not inside(value):
            raise Outside(f"an array of shape {value.shape}, strides {value.strides} lies outside of its storage")
        return "array", repr(value.dtype), value.shape, value.tobytes() if value.nbytes <= TOUCHED else _corners(value)
    if isinstance(value, np.generic):
        return value.__class__.__name__, value.tobytes()
    return value.__class__.__name__, tuple(_parts(value, seen))


def _corners(array: np.ndarray[Any, Any]) -> bytes:
    """The first and the last element along each axis of an array that may be far larger than its storage."""
    for axis in range(array.ndim):
        if array.shape[axis] > 1:  # by slicing: take would copy the whole view, which may be larger than memory
            array = array[(slice(None),) * axis + (slice(None, None, array.shape[axis] - 1),)]
    return array.tobytes() if array.nbytes <= TOUCHED else b""


def _parts(value: Any, seen: dict[int, int]) -> Iterator[object]:
    if isinstance(value, dict):
        for pair in value.items():
            yield _plain(pair[0], seen), _plain(pair[1], seen)
    elif isinstance(value, list | tuple):
        for item in value:
            yield _plain(item, seen)
    elif isinstance(value, set | frozenset):
        yield from sorted(repr(_plain(entry, seen)) for entry in value)
    else:
        names = getattr(value, "__slots__", None) or getattr(value, "__dict__", None)
        if names is None:
            yield repr(value)
            return
        for name in names:
            yield name, _plain(getattr(value, name, None), seen)
