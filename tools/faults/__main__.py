"""Inject seeded faults into corpus archives in two processes, and report the results.

    python -m tools.faults --count 100000 --seed 1
    python -m tools.faults --seed 1 --only 4711 --keep FOLDER
    python -m tools.faults --bombs

Exit status: 0 no forbidden result; 1 a forbidden result; each is printed with its number. ``--only`` reruns the fault with this number;
``--keep`` writes the files with forbidden results (with ``--only``: the file of that fault) to a folder. ``--bombs`` instead opens each file
of tools/faults/bombs.py in all ways.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import resource
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path

from tools.faults.faults import BOMB, samples
from tools.faults.judge import BAD, CRASHED, ELSEWHERE, OUTCOMES, RIGHT, judge
from tools.faults.kinds import KINDS, make
from tools.faults.opening import Opened, open_all

__all__ = ["LEAST_NAMED", "Summary", "main", "run"]

LEAST_NAMED = 0.99
CHUNK = 200
MOST_TOLD = 60
STANDSTILL = 1200  # seconds after which a process that ignores its timer is killed
IN_MEMORY = "/dev/shm"  # if available: files are written and read a million times
ADDRESS_SPACE = 4 << 30  # a process that requests more memory fails: other users need this machine, too


@dataclass
class Summary:
    """Results of many faults. ``told`` are forbidden results, and errors that name another record."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    containers: Counter[tuple[str, str]] = field(default_factory=Counter)
    told: list[tuple[int, str, str]] = field(default_factory=list)
    slowest: dict[str, tuple[float, int]] = field(default_factory=dict)
    memory: dict[str, tuple[int, int]] = field(default_factory=dict)
    failed: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def add(self, other: Summary) -> None:
        """Add the results of another part."""
        self.counts += other.counts
        self.containers += other.containers
        self.told += other.told
        self.failed += other.failed
        for step, seconds in other.slowest.items():
            self.slowest[step] = max(seconds, self.slowest.get(step, (0.0, -1)))
        for step, memory in other.memory.items():
            self.memory[step] = max(memory, self.memory.get(step, (0, -1)))

    @property
    def named(self) -> tuple[int, int]:
        """The number of faults for which the damaged record is named, and their total. Bombs are not damage, and are not counted."""
        right = sum(count for (kind, outcome), count in self.counts.items() if outcome == RIGHT and kind != BOMB)
        other = sum(count for (kind, outcome), count in self.counts.items() if outcome == ELSEWHERE and kind != BOMB)
        return right, right + other

    @property
    def good(self) -> bool:
        """Whether there are no forbidden results."""
        right, all_ = self.named
        return not any(self.counts[kind, bad] for kind in KINDS for bad in BAD) and right >= LEAST_NAMED * all_

    def __str__(self) -> str:
        lines = [*_table(self.counts, list(KINDS)), ""]
        containers = sorted({container for container, _ in self.containers})
        if containers:
            lines += [*_table(self.containers, containers), ""]
        present = [outcome for outcome in OUTCOMES if any(self.counts[kind, outcome] for kind in KINDS)]
        lines += [*(f"{outcome:<16} {OUTCOMES[outcome]}" for outcome in present)]
        right, all_ = self.named
        if all_:
            lines += [
                "",
                f"the damaged record is named in {right} of {all_}: {100 * right / all_:.2f} % (at least {100 * LEAST_NAMED:.0f} %)",
            ]
        lines += [
            f"{step}: slowest {seconds:.2f} s (fault {number}), most memory {self.memory[step][0]} MiB (fault {self.memory[step][1]})"
            for step, (seconds, number) in self.slowest.items()
        ]
        if self.failed:
            lines.append(f"calls in which an operator failed internally, reported as unsupported: {sum(self.failed.values())}")
            lines += [f"  {count} times {message}" for message, count in self.failed.most_common(5)]
        lines.append(f"{sum(self.counts.values())} faults in {self.seconds:.0f} s")
        return "\n".join(lines)


def _table(counts: Counter[tuple[str, str]], rows: list[str]) -> list[str]:
    present = [outcome for outcome in OUTCOMES if any(counts[row, outcome] for row in rows)]
    width = max(map(len, KINDS)) + 2
    lines = [" " * width + "".join(f"{name:>{len(name) + 3}}" for name in [*present, "   all"])]
    for row in [*rows, "all"]:
        numbers = [sum(counts[item, outcome] for item in (rows if row == "all" else [row])) for outcome in present]
        cells = (f"{n:>{len(name) + 3}}" for n, name in zip([*numbers, sum(numbers)], [*present, "   all"], strict=True))
        lines.append(f"{row:<{width}}" + "".join(cells))
    return lines


def run(seed: int, numbers: range | list[int], *, keep: Path | None = None) -> Summary:
    """Run the faults with these numbers in this process."""
    groups = samples()
    summary = Summary()
    started = time.perf_counter()
    faulthandler.dump_traceback_later(STANDSTILL, exit=True)
    gc.freeze()  # exclude the samples cached by the judge from garbage collection, which would count as time of the harness
    with tempfile.TemporaryDirectory(dir=IN_MEMORY if Path(IN_MEMORY).is_dir() else None) as name:
        for number in numbers:
            judged = judge(make(groups, seed, number), Path(name))
            fault = judged.fault
            summary.counts[fault.kind, judged.outcome] += 1
            summary.containers[fault.sample.container, judged.outcome] += 1
            part = Summary(failed=Counter(judged.failed))
            part.slowest = {step: (seconds, number) for step, seconds in judged.seconds.items()}
            part.memory = {step: (memory, number) for step, memory in judged.memory.items()}
            summary.add(part)
            if judged.outcome in BAD or (judged.outcome == ELSEWHERE and fault.kind != BOMB):
                summary.told.append((number, judged.outcome, f"{fault.sample.name}: {fault.said}: {judged.said}"))
            if keep is not None and (judged.outcome in BAD or len(numbers) == 1):
                (keep / f"{number}_{fault.sample.path.name}").write_bytes(fault.data)
    faulthandler.cancel_dump_traceback_later()
    summary.seconds = time.perf_counter() - started
    return summary


def _bounded() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, resource.RLIM_INFINITY))


def run_all(seed: int, count: int, *, processes: int, keep: Path | None) -> Summary:
    """Run all faults in several processes; if a process dies, only the fault that killed it is lost."""
    summary = Summary()
    started = time.perf_counter()
    chunks = [range(first, min(count, first + CHUNK)) for first in range(0, count, CHUNK)]
    while chunks:
        left = []
        with ProcessPoolExecutor(processes, initializer=_bounded) as pool:
            futures = [(chunk, pool.submit(run, seed, chunk, keep=keep)) for chunk in chunks]
            for chunk, future in futures:
                try:
                    part = future.result()
                    summary.add(part)
                    _tell_early(part)
                except BrokenProcessPool:
                    left.append(chunk)
        if left:
            summary.add(_one_by_one(seed, left[0], keep))  # the fault that broke the pool is among the running ones
            left = left[1:]
        chunks = left
    summary.seconds = time.perf_counter() - started
    return summary


def _tell_early(part: Summary) -> None:
    """Report forbidden results immediately: a long run may be interrupted."""
    sys.stderr.write(".")
    sys.stderr.flush()
    for number, outcome, message in part.told:
        if outcome in BAD:
            sys.stderr.write(f"\nfault {number}: {outcome}: {message}\n")


def _one_by_one(seed: int, numbers: range, keep: Path | None) -> Summary:
    groups = samples()
    summary = Summary()
    for number in numbers:
        with ProcessPoolExecutor(1, initializer=_bounded) as pool:
            try:
                summary.add(pool.submit(run, seed, [number], keep=None).result())
            except BrokenProcessPool:
                fault = make(groups, seed, number)
                summary.counts[fault.kind, CRASHED] += 1
                summary.told.append((number, CRASHED, f"{fault.sample.name}: {fault.said}"))
                if keep is not None:
                    (keep / f"{number}_{fault.sample.path.name}").write_bytes(fault.data)
    return summary


def open_bombs(processes: int) -> int:
    """Open all bombs in all ways, and report the cost."""
    wrong = []

    def tell(opened: Opened) -> None:
        wrong.extend(opened.wrong)
        steps = "; ".join(
            f"{step} {code or 'sound'} {seconds:.1f} s {most} MiB" for step, (code, seconds, most) in opened.steps.items()
        )
        sys.stdout.write(f"{opened.name:<40} {opened.size / 1e6:5.1f} MB: {steps}\n")
        sys.stdout.flush()

    with tempfile.TemporaryDirectory() as name:
        result = open_all(Path(name), processes, tell)
    sys.stdout.write("".join(f"  WRONG: {item}\n" for item in wrong) + f"{len(result)} bombs, {len(wrong)} findings\n")
    return int(bool(wrong))


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tools.faults", description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", type=int)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--bombs", action="store_true")
    asked = parser.parse_args(arguments)
    if asked.bombs:
        return open_bombs(asked.processes)
    if asked.keep is not None:
        asked.keep.mkdir(parents=True, exist_ok=True)
    if asked.only is not None:
        summary = run(asked.seed, [asked.only], keep=asked.keep)
    else:
        summary = run_all(asked.seed, asked.count, processes=asked.processes, keep=asked.keep)
    sys.stdout.write(f"{summary}\n")
    order = {outcome: number for number, outcome in enumerate([*reversed(BAD), ELSEWHERE])}
    for number, outcome, message in sorted(summary.told, key=lambda item: (order[item[1]], item[0]))[:MOST_TOLD]:
        sys.stdout.write(f"  fault {number}: {outcome}: {message}\n")
    if len(summary.told) > MOST_TOLD:
        sys.stdout.write(f"  and {len(summary.told) - MOST_TOLD} more\n")
    return 0 if summary.good else 1


if __name__ == "__main__":
    sys.exit(main())
