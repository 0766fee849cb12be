"""Open each bomb in its own process, which measures its own processor time and memory, so that other load does not matter.

Run as a module, it is that process.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tools.faults.bombs import BOMBS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["MEGABYTES", "SECONDS", "STEPS", "Opened", "open_all", "opened"]

SECONDS = {"inspect": 4.0, "tree": 6.0, "state": 30.0}  # and 0.05 for each MB
MEGABYTES = {"inspect": 512, "tree": 512, "state": 2048}
STEPS = tuple(SECONDS)
ROOT = Path(__file__).parents[2]
MOST_SECONDS = 60  # of processor time, for all steps of a bomb
PATIENCE = 600  # seconds of wall-clock time


class Opened(NamedTuple):
    """The result for a bomb: one row for each step, and how the process ended."""

    name: str
    size: int
    steps: dict[str, tuple[str | None, float, int]]
    ended: str

    @property
    def wrong(self) -> list[str]:
        """The forbidden results."""
        findings = [self.ended] if self.ended else []
        for step, (_, seconds, megabytes) in self.steps.items():
            bound = SECONDS[step] + 0.05 * self.size / 1e6
            if seconds > bound:
                findings.append(f"{step} takes {seconds:.1f} s of {bound:.1f} s")
            if megabytes > MEGABYTES[step]:
                findings.append(f"{step} takes {megabytes} MB of {MEGABYTES[step]} MB")
        return [f"{self.name}: {item}" for item in findings]


def opened(name: str, folder: Path, steps: Iterable[str] = STEPS) -> Opened:
    """Open a bomb."""
    data = BOMBS[name]()
    path = folder / f"bomb_{list(BOMBS).index(name)}.pt"
    path.write_bytes(data)
    size = len(data)
    del data
    asked = list(steps)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tools.faults.opening", path, *asked],
            capture_output=True, text=True, timeout=PATIENCE, check=False, cwd=ROOT,
        )  # fmt: skip
        message, ended = done.stdout, "" if done.returncode == 0 else f"exit status {done.returncode}: {done.stderr[-600:]}"
    except subprocess.TimeoutExpired as error:
        message, ended = error.output.decode() if isinstance(error.output, bytes) else "", f"not finished after {PATIENCE} s"
    path.unlink()
    rows = {step: (code, seconds, megabytes) for step, code, seconds, megabytes in map(json.loads, message.splitlines())}
    if not ended and list(rows) != asked:
        ended = f"completed only {', '.join(rows)}"
    return Opened(name, size, rows, ended)


def open_all(folder: Path, jobs: int = 2, tell: Callable[[Opened], None] = lambda _: None) -> list[Opened]:
    """Open all bombs in all ways."""
    results = []
    with ThreadPoolExecutor(jobs) as pool:
        for item in pool.map(lambda name: opened(name, folder), BOMBS):
            results.append(item)
            tell(item)
    return results


# ------------------------------------------------------------------------------------------------------------ in the child


def _peak() -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return max(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) >> 10


def _inspect(path: str) -> str | None:
    row = torch_compat.inspect(path)
    json.dumps(row)
    error = row["error"]
    return error["code"] if error is not None else None


def _tree(path: str) -> str | None:
    if not all(line.isprintable() for line in contents(read_facts(path))):
        raise AssertionError("a line of the tree is not printable")
    return None


def _state(path: str) -> str | None:
    torch_compat.load_state(path)
    return None


def _main() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
    ways = {"inspect": _inspect, "tree": _tree, "state": _state}
    for step in sys.argv[2:]:
        before = time.process_time()
        try:
            message = ways[step](sys.argv[1])
        except HarnessError as error:
            message = error.code
        sys.stdout.write(json.dumps([step, message, time.process_time() - before, _peak()]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    import torch_compat
    from torch_compat.errors import HarnessError
    from torch_compat.formats import read_facts
    from torch_compat.formats.tree import contents

    _main()
