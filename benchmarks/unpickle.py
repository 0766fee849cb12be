"""Our own unpickling machine against the C unpickler, bare and behind passes that make it safe enough. Prints ratios.

The C unpickler does not ask before it resolves an extension, makes room for a memo index, hashes a key or recurses. Each way
of making it safe reads every opcode in Python once more, and still cannot say what a restricted unpickler would refuse.
"""

from __future__ import annotations

import gc
import io
import pickle
import pickletools
import time
import zipfile
from pathlib import Path
from typing import Any

from torch_compat.pickles import unpickle

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = ("torch-2.13.0/save_checkpoint.pt", "torch-2.13.0/whole_module.pt", "torch-2.13.0/conv.pt", "torch-1.13.1/mobile.ptl")
# bytes of the arguments of opcodes with arguments of one size
FIXED = {
    "BININT": 4,
    "BININT1": 1,
    "BININT2": 2,
    "BINFLOAT": 8,
    "BINGET": 1,
    "LONG_BINGET": 4,
    "BINPUT": 1,
    "PROTO": 1,
    "FRAME": 8,
}
COUNTED = {"BINUNICODE": 4, "SHORT_BINUNICODE": 1, "SHORT_BINBYTES": 1, "BINBYTES": 4, "LONG1": 1, "LONG4": 4}
CODES = {opcode.name: ord(opcode.code) for opcode in pickletools.opcodes}
STEPS = {CODES[name]: width + 1 for name, width in FIXED.items()} | {
    code: 1 for name, code in CODES.items() if name not in FIXED and name not in COUNTED
}
LENGTHS = {CODES[name]: width for name, width in COUNTED.items()}


class Inert(dict[Any, Any]):
    """Takes anything, does nothing."""

    def __init__(self, *_: object) -> None:
        super().__init__()

    def __setstate__(self, _: object) -> None:
        pass

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)


class Unpickler(pickle.Unpickler):
    classes: dict[tuple[str, str], type[Inert]] = {}  # noqa: RUF012 - the cheapest way: a class is made once

    def find_class(self, module: str, name: str) -> type[Inert]:
        result = self.classes.get((module, name))
        if result is None:
            result = self.classes[module, name] = type(name, (Inert,), {"__module__": module})
        return result

    def persistent_load(self, _: object) -> Inert:
        return Inert()


def bare(data: bytes) -> None:
    Unpickler(io.BytesIO(data)).load()


def behind_pickletools(data: bytes) -> None:
    for count, (opcode, argument, _) in enumerate(pickletools.genops(data)):
        if opcode.name.startswith("EXT") or ("PUT" in opcode.name and argument is not None and argument > count):
            raise ValueError(opcode.name)
    bare(data)


def behind_own_pass(data: bytes) -> None:
    """The fewest questions that keep the C unpickler from the registry, from huge indices and lengths; no depth, no hashes."""
    i, used = 0, set()
    while True:
        op = data[i]
        used.add(op)
        step = STEPS.get(op)
        if op == 0x2E:
            break
        if op == 0x63:
            i = data.index(b"\n", data.index(b"\n", i) + 1) + 1
        elif op == 0x72:
            if int.from_bytes(data[i + 1 : i + 5], "little") > i:
                raise ValueError("memo")
            i += 5
        elif step is not None:
            i += step
        else:
            width = LENGTHS[op]
            i += 1 + width + int.from_bytes(data[i + 1 : i + 1 + width], "little")
    if used & {CODES["EXT1"], CODES["EXT2"], CODES["EXT4"]}:
        raise ValueError("extension")
    bare(data)


def machine(data: bytes) -> None:
    unpickle(data, where="benchmark")


def microseconds(function: Any, data: bytes) -> float:
    """The best of many runs, garbage collection as it comes."""
    best = float("inf")
    for _ in range(30):
        started = time.perf_counter()
        for _ in range(10):
            function(data)
        best = min(best, (time.perf_counter() - started) / 10)
    return 1e6 * best


def main() -> None:
    """Measure and print."""
    ways = (bare, behind_pickletools, behind_own_pass, machine)
    print(f"{'µs, and against the machine':34}{'opcodes':>8}" + "".join(f"{way.__name__:>24}" for way in ways))
    for name in SAMPLES:
        with zipfile.ZipFile(ROOT / "fixtures" / name) as archive:
            member = next(member for member in archive.namelist() if member.endswith("/data.pkl"))
            data = archive.read(member)
        gc.collect()
        count = sum(1 for _ in pickletools.genops(data))
        times = [microseconds(way, data) for way in ways]
        cells = "".join(f"{time:16.1f} {time / times[-1]:6.2f}x" for time in times)
        print(f"{name:34}{count:8}{cells}   {times[-1] / count:.3f} µs per opcode")


if __name__ == "__main__":
    main()
