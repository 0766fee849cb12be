"""The reference reader against torch: loading and running small archives, and loops of 10,000 iterations. Prints ratios.

torch 2.13.0 runs in a process of its own, warm. Both are given archives of the corpus in turn, each archive once: neither has seen
it before, and nothing is kept from one run to the next. Files are read before, so that no disk is measured. The loops are written by
torch, and both run the same file, again and again.
"""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from torch_compat.corpus.goldens import Goldens
from torch_compat.corpus.manifest import read_manifest
from torch_compat.errors import HarnessError
from torch_compat.readers.environments import Environments
from torch_compat.readers.torch_release import DETERMINISM
from torch_compat.runtime.encoding import Decoder
from torch_compat.runtime.load import load

ROOT = Path(__file__).resolve().parent.parent
TORCH = "2.13.0"
LARGEST = 8_192  # bytes of a small archive
WARM, MEASURED = 60, 300
TURNS, ITERATIONS = 15, 10_000

WORKER = """
import importlib.util, json, os, sys, time
from typing import List
import torch

spec = importlib.util.spec_from_file_location("worker", sys.argv[1])
worker = importlib.util.module_from_spec(spec)
spec.loader.exec_module(worker)
place = sys.argv[2]


@torch.jit.script
def integers(n: int) -> int:
    total = 0
    for i in range(n):
        total = total + i * 2
    return total


@torch.jit.script
def floats(x: float, n: int) -> float:
    for i in range(n):
        x = x * 0.5 + float(i)
    return x


@torch.jit.script
def tensors(x: torch.Tensor, n: int) -> torch.Tensor:
    for i in range(n):
        x = x * 0.5 + 1
    return x


@torch.jit.script
def lists(n: int) -> int:
    i = 0
    done: List[int] = []
    while len(done) < n:
        done.append(i)
        if i % 2 == 0:
            i = i + 1
        else:
            i = i + done[0] + 3
    return i


class Integers(torch.nn.Module):
    def forward(self, n: int):
        return integers(n)


class Floats(torch.nn.Module):
    def forward(self, x: float, n: int):
        return floats(x, n)


class Tensors(torch.nn.Module):
    def forward(self, x, n: int):
        return tensors(x, n)


class Lists(torch.nn.Module):
    def forward(self, n: int):
        return lists(n)


for made in (Integers, Floats, Tensors, Lists):
    torch.jit.save(torch.jit.script(made()), "%s/%s.pt" % (place, made.__name__.lower()))
kept = {}
answers = os.fdopen(os.dup(1), "w")
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # a program of the corpus prints
print(json.dumps(torch.__version__), file=answers, flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    try:
        arguments = worker.Decoder(torch).decode(asked["call"]["args"])
        module = kept.get(asked["path"])
        started = time.perf_counter()
        if module is None:
            module = torch.jit.load(asked["path"])
        getattr(module, asked["call"]["method"])(*arguments)
        seconds = time.perf_counter() - started
        if asked["keep"]:
            kept[asked["path"]] = module
    except Exception as error:
        seconds = None
    print(json.dumps(seconds), file=answers, flush=True)
"""


class Torch:
    """The other side. Where it dies of an archive, another takes its place, warm by what was given to the first.

    Parameters:
        script: what runs in the release; its folder is for what it writes.
    """

    def __init__(self, script: Path, release: str = TORCH) -> None:
        self.script = script
        self.release = release
        self.given: list[tuple[Path, dict[str, Any]]] = []
        self.start()

    def start(self) -> None:
        """Start it."""
        environment = Environments().get(self.release)
        if environment is None:
            print(f"torch-{self.release} is not built here: nothing to measure (torch-compat readers build torch-{self.release})")
            sys.exit(4)
        self.process = subprocess.Popen(
            [environment.python, self.script, ROOT / "harness" / "torch_compat" / "inside" / "worker.py", self.script.parent],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment.environ(DETERMINISM),
        )  # fmt: skip
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.into, self.out = self.process.stdin, self.process.stdout
        assert json.loads(self.out.readline()).split("+")[0] == self.release

    def seconds(self, path: Path, call: dict[str, Any], *, keep: bool = False) -> float | None:
        """What it took, None if it did not end in a value."""
        print(json.dumps({"path": str(path), "call": call, "keep": keep}), file=self.into, flush=True)
        message = self.out.readline()
        if message:
            self.given.append((path, call))
            result: float | None = json.loads(message)
            return result
        self.process.wait()
        self.start()
        for earlier in self.given[-WARM:]:
            self.seconds(*earlier)
        return None


def ours(path: Path, call: dict[str, Any]) -> float | None:
    """The same of the reference reader."""
    arguments = Decoder().decode({"tuple": call["args"]})
    started = time.perf_counter()
    try:
        load(path).run(call["method"], arguments)
    except HarnessError:
        return None
    return time.perf_counter() - started


def archives() -> list[tuple[Path, dict[str, Any]]]:
    """Small archives of the corpus, none twice, and a call of each that its writer gave a value for; in no order."""
    results: dict[str, tuple[Path, dict[str, Any]]] = {}
    goldens = Goldens(ROOT / "fixtures")
    for path in sorted(ROOT.glob("fixtures/torch-*/manifest.jsonl")):
        for entry in read_manifest(path, goldens).fixtures:
            if entry.family != "torchscript" or entry.size > LARGEST:
                continue
            done = entry.golden.get("calls") or [{}]
            if "value" in done[0].get("first", {}):
                results[entry.sha256] = path.parent / entry.file, entry.calls[0]
    mixed = list(results.values())
    random.Random(5).shuffle(mixed)
    return mixed


def small_archives(torch: Torch) -> None:
    """Both load and run each archive once, in turn."""
    pairs: list[tuple[float, float, int]] = []
    tried = 0
    for path, call in archives():
        size = len(path.read_bytes())
        tried += 1
        if tried % 2:
            here, there = ours(path, call), torch.seconds(path, call)
        else:
            there, here = torch.seconds(path, call), ours(path, call)
        if here is not None and there is not None:
            pairs.append((here, there, size))
        if len(pairs) == WARM + MEASURED:
            break
    pairs = pairs[WARM:]
    left = tried - WARM - len(pairs)
    middle = [1e3 * median(item) for item in list(zip(*pairs, strict=True))[:2]]
    total = sum(pair[0] for pair in pairs) / sum(pair[1] for pair in pairs)
    print(f"load and run, {len(pairs)} archives of {sum(pair[2] for pair in pairs) / len(pairs):,.0f} bytes on average, each once"
          f" ({left} more gave no value on one side)")  # fmt: skip
    print(f"  reference {middle[0]:6.2f} ms   torch {middle[1]:6.2f} ms   ratio of medians {middle[0] / middle[1]:.2f}"
          f"   of sums {total:.2f}   median of ratios {median(a / b for a, b, _ in pairs):.2f}")  # fmt: skip


def loops(torch: Torch) -> None:
    """Both run each loop, in turn; the best of each."""
    tensor = {"tensor": {"dtype": "float32", "shape": [4], "strides": [1], "bytes": "AACAPwAAgD8AAIA/AACAPw==", "storage": 0}}
    given: dict[str, list[Any]] = {"integers": [], "floats": [{"float": 1.0}], "tensors": [tensor], "lists": []}
    print(f"\nloops of {ITERATIONS:,} iterations, best of {TURNS}")
    for name, first in given.items():
        path = torch.script.parent / f"{name}.pt"
        call = {"method": "forward", "args": [*first, ITERATIONS]}
        module = load(path)
        here = there = math.inf
        for _ in range(TURNS):
            arguments = Decoder().decode({"tuple": call["args"]})
            started = time.perf_counter()
            module.run("forward", arguments)
            here = min(here, time.perf_counter() - started)
            took = torch.seconds(path, call, keep=True)
            if took is None:
                sys.exit(f"torch-{TORCH} does not run its own {path.name}")
            there = min(there, took)
        print(f"  {name:9} reference {1e3 * here:6.2f} ms   torch {1e3 * there:6.2f} ms   ratio {here / there:.2f}")


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as place:
        script = Path(place, "loops.py")
        script.write_text(WORKER, encoding="utf-8")
        torch = Torch(script)
        small_archives(torch)
        loops(torch)
        torch.into.close()
        torch.process.wait()


if __name__ == "__main__":
    main()
