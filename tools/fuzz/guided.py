"""Coverage-guided fuzzing: atheris keeps inputs that reach new code, and mutates them further.

As a module, it is the fuzzing process, which runs for the given number of seconds or until a case kills it:

    python -m tools.fuzz.guided SEED SECONDS TARGET FOLDER

An input is two bytes that select an archive of the corpus, whose calls are made, and the bytes of a damaged archive. Half of the mutations
are the structure-aware ones of ``tools/faults/resealed.py``, the others are those of atheris. ``FOLDER/corpus`` is kept between runs.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import mmap
import random
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from tools.fuzz.campaign import Find, Tally

__all__ = ["available", "run_guided"]

MOST = 1 << 14  # bytes of an input
PATIENCE = 600  # wall-clock seconds for one case
MEGABYTES = 3072
ENDED = {
    "crash": "CRASHED",
    "timeout": "TIME-OUT",
    "oom": "MEMORY",
}  # files that libFuzzer leaves, and the corresponding outcomes
STARTING = 20  # seconds that a process needs before its first case; none is started with less time left
ATHERIS_OWN = 0.4  # of all mutations
UNREADABLE = (ValueError, IndexError, struct.error, zlib.error, KeyError, EOFError)  # errors of parsing a damaged archive


def available() -> bool:
    """Whether atheris is installed."""
    return importlib.util.find_spec("atheris") is not None


# ------------------------------------------------------------------------------------------------------------ in the parent


def run_guided(seed: int, target: str, tally: Tally, *, until: float, keep: Path, tell: Callable[[Find], None]) -> None:
    """Fuzz until a time of ``time.monotonic``; a case that kills the process is a find, and the next process continues."""
    from tools.fuzz.campaign import Find  # noqa: PLC0415 - the other process must not import the package so early

    folder = keep / "guided" / target
    (folder / "corpus").mkdir(parents=True, exist_ok=True)
    counts = folder / "counts"
    started = 0
    while until - time.monotonic() > STARTING:
        counts.write_bytes(bytes(16))
        (folder / "finds.jsonl").write_bytes(b"")
        seconds = max(1, int(until - time.monotonic()))
        with (folder / "log").open("ab") as log:
            command = [sys.executable, "-m", "tools.fuzz.guided", str(seed + started), str(seconds), target, str(folder)]
            status = subprocess.run(command, stdout=log, stderr=log, check=False).returncode
        started += 1
        cases, guards = struct.unpack("<QQ", counts.read_bytes())
        results = [Find(row[0], row[1], row[2]) for row in map(json.loads, (folder / "finds.jsonl").read_text().splitlines())]
        artifacts = [path for kind in ENDED for path in sorted(folder.glob(f"{kind}-*"))]
        for path in artifacts:
            kept = path.rename(keep / f"guided_{target}_{path.name}")
            results.append(Find(cases, ENDED[path.name.partition("-")[0]], str(kept)))
        if status and not artifacts:
            raise RuntimeError(f"{' '.join(command)} ended with {status}; {folder / 'log'} has the details")
        tally.outcomes["guided"] += cases - len(results)
        tally.outcomes += Counter(find.outcome for find in results)
        tally.guarded += guards
        tally.finds += results
        for find in results:
            tell(find)


# ------------------------------------------------------------------------------------------------------------- in the child


def _main() -> None:
    seed, seconds, target, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], Path(sys.argv[4])
    atheris: Any = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["torch_compat"]):
        from tools.faults.faults import Fault, Sample, sample_of  # noqa: PLC0415 - imported here to be instrumented
        from tools.faults.judge import BAD, OUTSIDE, judge  # noqa: PLC0415
        from tools.faults.layout import layout  # noqa: PLC0415
        from tools.faults.resealed import RESEALED  # noqa: PLC0415
        from tools.fuzz.campaign import IN_MEMORY  # noqa: PLC0415
        from tools.fuzz.cases import seeds  # noqa: PLC0415
        from tools.fuzz.guard import guarded  # noqa: PLC0415

    groups = seeds(target)
    paths = [path for group in groups for path in group]
    for number, path in enumerate(paths):
        raw = path.read_bytes()
        if len(raw) < MOST - 2:
            (folder / "corpus" / f"{path.parent.name}_{path.name}").write_bytes(struct.pack("<H", number) + raw)
    with (folder / "counts").open("r+b") as file:
        counts = memoryview(mmap.mmap(file.fileno(), 16)).cast("Q")
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as name, guarded() as guard:

        def one(data: bytes) -> None:
            if len(data) < 3:
                return
            counts[0] += 1
            path = paths[int.from_bytes(data[:2], "little") % len(paths)]
            fault = Fault(counts[0], "guided", "guided", sample_of(path), data[2:], resealed=True)
            guard.seed(zlib.crc32(data))
            result = judge(fault, Path(name), target)
            counts[1] = guard.made
            outcome, message = result.outcome, result.said
            damage = guard.damage()
            if damage and outcome not in BAD:
                outcome, message = OUTSIDE, damage
            if outcome in BAD:
                kept = f"{path.parent.name}_{path.stem}_{zlib.crc32(data):08x}{path.suffix}"
                (folder / kept).write_bytes(data[2:])
                with (folder / "finds.jsonl").open("a", encoding="utf-8") as finds:
                    finds.write(json.dumps([fault.number, outcome, f"{kept}: {message}"]) + "\n")

        def mutated(data: bytes, most: int, number: int) -> bytes:
            rng = random.Random(number)
            if len(data) < 32 or rng.random() < ATHERIS_OWN:
                return (
                    data[:2] + bytes(atheris.Mutate(data[2:], most - 2)) if len(data) > 2 else bytes(atheris.Mutate(data, most))
                )
            path = paths[int.from_bytes(data[:2], "little") % len(paths)]
            try:
                sample = Sample(path, data[2:], layout(data[2:]))
                kind = rng.choices(list(RESEALED), [weight for weight, _ in RESEALED.values()])[0]
                result = RESEALED[kind][1](rng, sample, groups)
            except UNREADABLE:
                result = None
            if result is None or len(result[1]) > most - 2:
                return data[:2] + bytes(atheris.Mutate(data[2:], most - 2))
            return data[:2] + result[1]

        flags = [
            f"-seed={seed}", f"-max_total_time={seconds}", f"-max_len={MOST}", f"-timeout={PATIENCE}", f"-report_slow_units={PATIENCE}", f"-rss_limit_mb={MEGABYTES}",
            f"-artifact_prefix={folder}/", str(folder / "corpus"),
        ]  # fmt: skip
        atheris.Setup([sys.argv[0], *flags], one, custom_mutator=mutated)
        atheris.Fuzz()


if __name__ == "__main__":
    _main()
