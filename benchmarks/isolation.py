"""What a process of its own costs a program: loading small archives, and calls of loaded modules, against the same in this process.

Both ways take turns, archive by archive and call by call. Between two loads nothing is done for as long as a child takes to be made ahead of need
(:data:`PAUSE`); what loads without a pause cost stands beside it. Give it priority where other work shares the processors: a process that
waits for another one is the first to be put off. What both processes together compute, which other work hardly changes, stands beside the
time of a call.
"""

from __future__ import annotations

import io
import tempfile
import time
import zipfile
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

import torch_compat

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parent.parent
ARCHIVE = ROOT / "fixtures" / "torch-2.13.0" / "gelu.pt"
LOADS, CALLS, WARM = 60, 200, 5
PAUSE = 0.05  # seconds
LAYERS = """class Model(Module):
  __parameters__ = []
  training : bool
  def forward(self: __torch__.m.Model, x: Tensor, w: Tensor) -> Tensor:
    for i in range(8):
      x = torch.relu(torch.add(torch.matmul(x, w), 0.5))
    return torch.softmax(x, -1)
"""


def layers(folder: Path) -> Path:
    """An archive of eight layers."""
    path = folder / "layers.pt"
    result = io.BytesIO()
    with zipfile.ZipFile(result, "w") as archive:
        archive.writestr("m/data.pkl", b"\x80\x02c__torch__.m\nModel\n)\x81}X\x08\x00\x00\x00training\x89sb.")
        archive.writestr("m/code/__torch__/m.py", LAYERS)
        archive.writestr("m/constants.pkl", b"\x80\x02).")
        archive.writestr("m/version", b"3\n")
    path.write_bytes(result.getvalue())
    return path


def timed(what: Callable[[], Any]) -> float:
    """Milliseconds that something takes."""
    began = time.perf_counter()
    what()
    return 1e3 * (time.perf_counter() - began)


def loads(pause: float) -> tuple[float, float]:
    """Medians of loading one archive: in a process of its own, in this one."""
    there, here = [], []
    for _ in range(LOADS):
        time.sleep(pause)
        there.append(timed(lambda: torch_compat.load(ARCHIVE)))
        here.append(timed(lambda: torch_compat.load(ARCHIVE, in_process=True)))
    return median(there), median(here)


def computed(process: int) -> float:
    """Milliseconds of processor time of another process: the clock that ``clock_getcpuclockid`` of Linux names."""
    return 1e3 * time.clock_gettime(~process << 3 | 2)


def calls(path: Path, args: tuple[Any, ...], count: int) -> tuple[float, float, float, float]:
    """Medians of one call, and the processor time of one: with a process of its own, in this process."""
    outside, inside = torch_compat.load(path), torch_compat.load(path, in_process=True)
    child = outside._child.pid  # noqa: SLF001 - nobody but a benchmark asks for it
    there: list[float] = []
    here: list[float] = []
    computing_there = computing_here = 0.0
    for number in range(count + WARM):
        if number == WARM:
            there, here, computing_there, computing_here = [], [], 0.0, 0.0
        began = 1e3 * time.process_time() + computed(child)
        there.append(timed(lambda: outside(*args)))
        computing_there += 1e3 * time.process_time() + computed(child) - began
        began = 1e3 * time.process_time()
        here.append(timed(lambda: inside(*args)))
        computing_here += 1e3 * time.process_time() - began
    return median(there), median(here), computing_there / count, computing_here / count


def main() -> None:
    """Measure and print."""
    first = timed(lambda: torch_compat.load(ARCHIVE))
    print(f"the first load, which starts the template: {first:.0f} ms")
    for pause in (PAUSE, 0.0):
        there, here = loads(pause)
        print(f"load, {1e3 * pause:.0f} ms apart: {there:6.2f} ms, in this process {here:6.2f} ms, {there - here:+.2f} ms")
    with tempfile.TemporaryDirectory() as folder:
        path = layers(Path(folder))
        for rows, size in ((1, 8), (16, 64), (64, 128), (64, 256), (256, 256), (512, 512)):
            x, w = np.ones((rows, size), np.float32), np.full((size, size), 0.01, np.float32)
            there, here, computing_there, computing_here = calls(path, (x, w), CALLS if size < 256 else 40)
            print(
                f"8 layers of {rows}×{size}: {there:7.3f} ms, in this process {here:7.3f} ms, ratio {there / here:.2f}; "
                f"processor time {computing_there:.3f} ms and {computing_here:.3f} ms, ratio {computing_there / computing_here:.2f}"
            )


if __name__ == "__main__":
    main()
