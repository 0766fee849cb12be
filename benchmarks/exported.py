"""The reference reader against torch.export: loading and calling exported programs. Prints ratios.

torch 2.15.0 runs in a process of its own, warm. Both are given the exported programs of the corpus that 2.15.0 loads in turn, each archive once:
neither has seen it before, and nothing is kept from one to the next. Files are read before, so that no disk is measured. Both make a module of
what they load, and call it once with the arguments that its recipe gives; what ends in an error on one side is left out and counted.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from runtime import Torch  # type: ignore[import-not-found]

from torch_compat.corpus.goldens import Goldens
from torch_compat.corpus.manifest import read_manifest
from torch_compat.errors import HarnessError
from torch_compat.releases.release import Release
from torch_compat.runtime.encoding import Decoder
from torch_compat.runtime.load import load

ROOT = Path(__file__).resolve().parent.parent
TORCH = "2.15.0"
SINCE = Release("2.6.0")  # what older releases wrote has a schema that 2.15.0 refuses
WARM = 20

WORKER = """
import importlib.util, json, os, sys, time
import torch, torch.export

spec = importlib.util.spec_from_file_location("worker", sys.argv[1])
worker = importlib.util.module_from_spec(spec)
spec.loader.exec_module(worker)
torch.set_num_threads(1)
answers = os.fdopen(os.dup(1), "w")
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
print(json.dumps(torch.__version__), file=answers, flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    try:
        arguments = worker.Decoder(torch).decode(asked["call"]["args"])
        started = time.perf_counter()
        module = torch.export.load(asked["path"]).module()
        if asked["keep"]:
            started = time.perf_counter()
        getattr(module, asked["call"]["method"])(*arguments)
        seconds = time.perf_counter() - started
    except Exception as error:
        seconds = None
    print(json.dumps(seconds), file=answers, flush=True)
"""


def ours(path: Path, call: dict[str, Any], *, keep: bool) -> float | None:
    """What the reference reader takes to load and call, or with ``keep`` to call; None if that does not end in a value."""
    arguments = Decoder().decode({"tuple": call["args"]})
    started = time.perf_counter()
    try:
        module = load(path)
        if keep:
            started = time.perf_counter()
        module.run(call["method"], arguments)
    except HarnessError:
        return None
    return time.perf_counter() - started


def archives() -> list[tuple[Path, dict[str, Any]]]:
    """Exported programs of the corpus, none twice, and a call of each that its writer gave a value for; in no order."""
    results: dict[str, tuple[Path, dict[str, Any]]] = {}
    goldens = Goldens(ROOT / "fixtures")
    for path in sorted(ROOT.glob("fixtures/torch-*/manifest.jsonl")):
        if Release(path.parent.name.removeprefix("torch-")) < SINCE:
            continue
        for entry in read_manifest(path, goldens).fixtures:
            done = entry.golden.get("calls") or [{}]
            if entry.family == "export" and "value" in done[0].get("first", {}):
                results[entry.sha256] = path.parent / entry.file, entry.calls[0]
    mixed = list(results.values())
    random.Random(5).shuffle(mixed)
    return mixed


def measured(torch: Torch, what: str, *, keep: bool) -> None:
    """Both load and call each archive once, in turn."""
    pairs: list[tuple[float, float]] = []
    left = 0
    for number, (path, call) in enumerate(archives()):
        path.read_bytes()
        if number % 2:
            here, there = ours(path, call, keep=keep), torch.seconds(path, call, keep=keep)
        else:
            there, here = torch.seconds(path, call, keep=keep), ours(path, call, keep=keep)
        if here is None or there is None:
            left += 1
        elif number >= WARM:
            pairs.append((here, there))
    if not pairs:
        sys.exit(f"torch-{TORCH} and the reference reader have no exported program that both run")
    middle = [1e3 * median(item) for item in zip(*pairs, strict=True)]
    total = sum(pair[0] for pair in pairs) / sum(pair[1] for pair in pairs)
    print(f"{what}, {len(pairs)} exported programs, each once ({left} more gave no value on one side)")
    print(f"  reference {middle[0]:6.2f} ms   torch {middle[1]:6.2f} ms   ratio of medians {middle[0] / middle[1]:.2f}"
          f"   of sums {total:.2f}   median of ratios {median(a / b for a, b in pairs):.2f}")  # fmt: skip


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as place:
        script = Path(place, "exported.py")
        script.write_text(WORKER, encoding="utf-8")
        torch = Torch(script, TORCH)
        measured(torch, "load and call", keep=False)
        measured(torch, "call", keep=True)
        torch.into.close()
        torch.process.wait()


if __name__ == "__main__":
    main()
