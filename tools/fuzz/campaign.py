"""Runs many cases in child processes, and survives their crashes.

A child is a fork of this process, which has imported and read everything that the cases share (:func:`prepare`), and opens no case itself.
A child runs up to a thousand cases, each with guard pages around every array, and reports each result. If a child dies or hangs, the case
is known, and the next child continues after it.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import io
import json
import mmap
import os
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tools.faults.faults import sample_of
from tools.faults.judge import BAD, CRASHED, OUTSIDE, TIMED_OUT, judge, know
from tools.fuzz.cases import case, seeds
from tools.fuzz.guard import guarded
from torch_compat.runtime.operators import prim

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tools.faults.faults import Fault

    Job = Callable[[int], Fault]

__all__ = ["IN_MEMORY", "NOISE", "Find", "Tally", "prepare", "run", "run_chunk", "survive"]

CHUNK = 1000
WARMING = 400  # cases that are generated but not opened before the first one runs
NOISE = "NOISE"  # something was written to stderr
# A child that runs the same case for so many seconds of processor time, or of wall-clock time, is killed. Its own limits are lower; they
# end a case wherever Python checks for signals. On a busy machine, a child may wait for minutes.
BUSY = 90
STANDSTILL = 1200
TICKS = os.sysconf("SC_CLK_TCK")
ROOM = 4 << 30  # bytes of address space in addition to that of the parent
IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # where files are written and read a million times


@dataclass(frozen=True)
class Find:
    """A forbidden result: one of ``tools.faults.judge.BAD``, or noise."""

    number: int
    outcome: str
    said: str


@dataclass
class Tally:
    """Results of cases. ``guarded`` counts the arrays with guard pages."""

    outcomes: Counter[str] = field(default_factory=Counter)
    guarded: int = 0
    finds: list[Find] = field(default_factory=list)

    @property
    def count(self) -> int:
        """The number of cases."""
        return sum(self.outcomes.values())

    def add(self, other: Tally) -> None:
        """Add the results of another part."""
        self.outcomes += other.outcomes
        self.guarded += other.guarded
        self.finds += other.finds


class Board:
    """The start of a child's current case, in wall-clock and processor time, in shared memory."""

    def __init__(self) -> None:
        self._memory = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("d")  # written atomically, unlike with struct.pack_into

    def begin(self) -> None:
        """Record the start of a case."""
        self._memory[0], self._memory[1] = time.monotonic(), time.process_time()

    def overdue(self, child: int) -> str:
        """Why a child has to be killed; empty if it has not."""
        if time.monotonic() - self._memory[0] > STANDSTILL:
            return f"did not end within {STANDSTILL} s"
        times = Path(f"/proc/{child}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        used = (int(times[11]) + int(times[12])) / TICKS - self._memory[1]
        return f"did not end within {BUSY} s of processor time" if used > BUSY else ""


def run_chunk(job: Job, target: str, numbers: Iterable[int], board: Board, tell: Callable[[dict[str, Any]], None]) -> None:
    """Run cases in this process and report each result."""
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as name, guarded() as guard:
        for number in numbers:
            board.begin()
            before, product = os.fstat(2).st_size, guard.made
            guard.seed(number)
            result = judge(job(number), Path(name), target)
            gc.collect(0)  # free what was read now, not in a later case
            outcome, message = result.outcome, result.said
            damage = guard.damage()
            if damage and outcome not in BAD:
                outcome, message = OUTSIDE, damage
            if os.fstat(2).st_size > before and outcome not in BAD:
                outcome, message = NOISE, os.pread(2, 2000, before).decode("utf-8", "replace")
            tell({"number": number, "outcome": outcome, "said": message, "guarded": guard.made - product})


def _child(job: Job, target: str, numbers: list[int], board: Board, pipe: int, noise: int) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(noise, 2)
    sys.stdout, sys.stderr = (io.TextIOWrapper(io.FileIO(place, "w", closefd=False), write_through=True) for place in (1, 2))
    vars(prim)["sys"] = SimpleNamespace(stderr=sys.stdout)  # programs may print there; other code may not
    faulthandler.disable()
    warnings.simplefilter("always")
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * mmap.PAGESIZE
    resource.setrlimit(resource.RLIMIT_AS, (pages + ROOM, pages + ROOM))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    run_chunk(job, target, numbers, board, lambda row: _write(pipe, json.dumps(row).encode() + b"\n"))


def _write(pipe: int, line: bytes) -> None:
    while line:
        line = line[os.write(pipe, line) :]


def survive(job: Job, target: str, numbers: list[int]) -> Tally:
    """Run cases in children; a case that kills or hangs a child is a find like any other.

    Parameters:
        job: creates the case with a number.
    """
    tally = Tally()
    while numbers:
        rows, ended = _one_child(job, target, numbers)
        for row in rows:
            tally.outcomes[row["outcome"]] += 1
            tally.guarded += row["guarded"]
            if row["outcome"] in {*BAD, NOISE}:
                tally.finds.append(Find(row["number"], row["outcome"], row["said"]))
        numbers = numbers[len(rows) :]
        if ended is not None:
            outcome, message = ended
            tally.outcomes[outcome] += 1
            tally.finds.append(Find(numbers[0], outcome, message))
            del numbers[0]
    return tally


def _one_child(job: Job, target: str, numbers: list[int]) -> tuple[list[dict[str, Any]], tuple[str, str] | None]:
    """The results that a child reported, and how it ended in the next case; None if it ran all cases."""
    board = Board()
    board.begin()
    inner, outer = os.pipe()
    with tempfile.TemporaryFile(dir=IN_MEMORY) as noise:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.close(inner)
                _child(job, target, numbers, board, outer, noise.fileno())
                status = 0
            except BaseException:  # noqa: BLE001 - an exception must not go up into the parent's code
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(status)
        os.close(outer)
        told, killed = _heard(child, inner, board)
        os.close(inner)
        _, status = os.waitpid(child, 0)
        length = os.fstat(noise.fileno()).st_size
        last = os.pread(noise.fileno(), 300, max(0, length - 300)).decode("utf-8", "replace")
    rows = [json.loads(line) for line in told.split(b"\n")[:-1]]
    if len(rows) == len(numbers):
        return rows, None
    if killed:
        return rows, (TIMED_OUT, killed)
    code = os.waitstatus_to_exitcode(status)
    return rows, (CRASHED, f"{signal.Signals(-code).name if code < 0 else f'exit status {code}'} {last}".strip())


def _heard(child: int, pipe: int, board: Board) -> tuple[bytes, str]:
    """The output of a child until it ends, and why it had to be killed."""
    told, killed = bytearray(), ""
    while True:
        ready, _, _ = select.select([pipe], [], [], 1.0)
        if ready:
            part = os.read(pipe, 1 << 16)
            if not part:
                return bytes(told), killed
            told += part
        elif not killed:
            killed = board.overdue(child)
            if killed:
                os.kill(child, signal.SIGKILL)


def prepare(target: str) -> None:
    """Do in the parent what every child would repeat: read the undamaged archives, and fill the caches for generating cases."""
    with contextlib.redirect_stderr(io.StringIO()):  # programs may print
        for path in (path for group in seeds(target) for path in group):
            know(sample_of(path), target)
    for number in range(WARMING):
        case(0, target, number)
    gc.collect()
    gc.freeze()  # exclude existing objects from garbage collection in children, which would copy them


def run(
    seed: int, target: str, tally: Tally, *, count: int | None, until: float, keep: Path, tell: Callable[[Find], None]
) -> None:
    """Run cases from number 0 on: a given number, or until a time of ``time.monotonic``; the files of finds go to a folder.

    A find is rerun alone in a child; if it does not recur, it is marked.

    Parameters:
        tally: receives the results, chunk by chunk.
    """
    job = partial(case, seed, target)
    prepare(target)
    while (count is None or tally.count < count) and time.monotonic() < until:
        first = tally.count
        last = first + CHUNK if count is None else min(count, first + CHUNK)
        part = survive(job, target, list(range(first, last)))
        part.finds = [_confirmed(find, job, f"{seed}_{target}", keep, target) for find in part.finds]
        tally.add(part)
        for find in part.finds:
            tell(find)


def _confirmed(find: Find, job: Job, name: str, keep: Path, target: str) -> Find:
    fault = job(find.number)
    keep.mkdir(parents=True, exist_ok=True)
    (keep / f"{name}_{find.number}_{fault.sample.path.name}").write_bytes(fault.data)
    again = survive(job, target, [find.number]).finds
    message = f"{fault.sample.name}: {fault.said}: {find.said}"
    return replace(find, said=message if again else f"(not reproduced) {message}")
