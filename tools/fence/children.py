"""Processes that run hostile programs: if one dies, its program is known, and the next process continues after it."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tools.fence.archives import archive
from tools.fence.oracle import Outside, audited, check_value, watch
from tools.fence.programs import generated
from torch_compat.errors import HarnessError
from torch_compat.runtime import registry
from torch_compat.runtime.limits import Limits
from torch_compat.runtime.load import load

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Done", "run_all"]

WARM = "class Model(Module):\n  w : Tensor\n  def forward(self) -> Any:\n    return torch.add(torch.mul(self.w, 2, out=torch.ones([8])), torch.ones([8]))\n"
"""Reads the release records that calls need, which the audit hook would otherwise report."""
ROOM = 3 << 30
PATIENCE = 120  # seconds for one program; its own limit is far below
CHUNK = 250


class Done(NamedTuple):
    """The result of a program: ``value``, ``refused`` (an error of the harness), ``raw``, ``outside``, ``died``, ``hung``."""

    number: int
    outcome: str
    code: str
    said: str
    seconds: float

    @property
    def outside(self) -> bool:
        """Whether the result is forbidden."""
        return self.outcome not in {"value", "refused"}


def run_all(seed: int, numbers: list[int], jobs: int = 2, progress: Callable[[int], None] = lambda _: None) -> list[Done]:
    """Run the programs with these numbers."""
    chunks = [numbers[at : at + CHUNK] for at in range(0, len(numbers), CHUNK)]
    left = len(numbers)
    done: list[Done] = []
    with ThreadPoolExecutor(jobs) as pool:
        for part in pool.map(lambda chunk: _chunk(seed, chunk), chunks):
            done += part
            left -= len(part)
            progress(left)
    return done


def _chunk(seed: int, numbers: list[int]) -> list[Done]:
    done: list[Done] = []
    while numbers:
        message, ended = _child(seed, numbers)
        done += message
        numbers = numbers[len(message) :]
        if numbers and ended:
            done.append(Done(numbers[0], ended.split(" ", 1)[0], "", ended, PATIENCE))
            numbers = numbers[1:]
        elif not message and numbers:
            raise AssertionError(f"a child did not report {numbers[:3]}")
    return done


def _child(seed: int, numbers: list[int]) -> tuple[list[Done], str]:
    """The output of one process, and how it ended early; empty if it completed."""
    command = [sys.executable, "-m", "tools.fence.children", str(seed)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    child = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment,
        cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(json.dumps(numbers))
    child.stdin.close()
    messages: list[Done] = []
    last = [time.monotonic()]
    hung = threading.Event()

    def guard() -> None:
        while child.poll() is None:
            time.sleep(1)
            if time.monotonic() - last[0] > PATIENCE:
                hung.set()
                child.kill()

    threading.Thread(target=guard, daemon=True).start()
    for line in child.stdout:
        messages.append(Done(*json.loads(line)))
        last[0] = time.monotonic()
    status = child.wait()
    child.stdout.close()
    if len(messages) == len(numbers):
        return messages, ""
    return messages, "hung" if hung.is_set() else f"died with status {status}"


# ------------------------------------------------------------------------------------------------------------ in the child


def _serve() -> None:
    seed = int(sys.argv[1])
    warnings.simplefilter("ignore")  # Python would open the source file for a warning
    registry.known()
    pages = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (pages + ROOM, pages + ROOM))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    audit = audited()
    watch()
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    Path("/proc/self/statm").read_text(encoding="ascii")  # imports a codec
    load(archive(WARM)).run("forward")
    small = Limits(steps=20_000, seconds=5, memory=1 << 30, elements=1 << 22, work=1 << 26)
    large = Limits(steps=20_000, seconds=5, memory=1 << 30, work=1 << 28)

    def attempt(program: Any) -> tuple[str, str, str]:
        audit.heard.clear()
        try:
            product = archive(program.source)
            audit.on = True
            try:
                value = load(product, limits=large if program.large else small).run("forward")
            finally:
                audit.on = False
            check_value(value)
            result = ("value", "", "")
        except HarnessError as error:
            result = ("refused", error.code, str(error)[:200])
        except Outside as error:
            result = ("outside", "", str(error))
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is told
            result = ("raw", type(error).__name__, f"{type(error).__name__}: {error}"[:300])
        if audit.heard:
            result = ("outside", "", f"Python raised the audit events {audit.heard[:3]}")
        return result

    for number in json.loads(sys.stdin.read()):
        began = time.monotonic()
        program = generated(seed, number)
        outcome, code, encoder = attempt(program)
        print(
            json.dumps(
                [number, outcome, code, encoder.encode("ascii", "backslashreplace").decode(), round(time.monotonic() - began, 2)]
            ),
            file=out,
            flush=True,
        )


if __name__ == "__main__":
    _serve()
