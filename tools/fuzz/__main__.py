"""Fuzz inspect, load_state, and load with calls, for the given time; runs are appended to the record.

    python -m tools.fuzz --minutes 10
    python -m tools.fuzz --seed 7 --target call --count 5000
    python -m tools.fuzz --seed 7 --target call --only 4711
    python -m tools.fuzz --open FILE --like torch-2.13.0/div.pt --target call
    python -m tools.fuzz --record

Exit status: 0 no finds; 1 finds; each is printed; 4 a part could not run: guided fuzzing needs atheris, the dependency group ``fuzz``.
``--only`` reruns one case, ``--open`` opens a file. ``--record`` prints the recorded runs, in total and since the last change of the code.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tools.faults.faults import Fault, sample_of
from tools.fuzz.campaign import Find, Tally, run, survive
from tools.fuzz.cases import TARGETS, case
from tools.fuzz.guard import lacking
from tools.fuzz.guided import available, run_guided
from torch_compat.fingerprint import code_fingerprint

ROOT = Path(__file__).parents[2]
RECORD = Path(__file__).with_name("record.jsonl")
KEEP = ROOT / "build" / "fuzz"
SHARES = {"inspect": 0.4, "state": 0.2, "call": 0.25, "exported": 0.15}  # of the time, if no target is given
WAYS = {"seeded": 0.7, "guided": 0.3}
LONGEST = 60 * 24 * 365.0  # minutes
UNAVAILABLE = 4


def fingerprint() -> str:
    """A fingerprint of all code that reads an archive: the runtime, inspect, and everything they import."""
    return "-".join(code_fingerprint(package)[:12] for package in ("inspection", "runtime", "state"))


def commit() -> str:
    """The checked-out commit, with a plus sign if the tree has changes."""
    git = ["git", "-C", str(ROOT)]
    name = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    watched = ["harness", "tools", f":(exclude){RECORD.relative_to(ROOT).as_posix()}"]
    changed = subprocess.run([*git, "status", "--porcelain", "--", *watched], capture_output=True, text=True, check=True).stdout
    return name + "+" * bool(changed)


def recorded() -> list[dict[str, Any]]:
    """The recorded runs."""
    return [json.loads(line) for line in RECORD.read_text(encoding="utf-8").splitlines()] if RECORD.exists() else []


def record(way: str, seed: int, target: str, tally: Tally, seconds: float) -> None:
    """Append a run."""
    entry = {
        "way": way, "seed": seed, "target": target, "count": tally.count, "guarded": tally.guarded,
        "finds": [[find.number, find.outcome] for find in tally.finds], "seconds": round(seconds), "commit": commit(), "code": fingerprint(),
    }  # fmt: skip
    with RECORD.open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")


def told() -> str:
    """The recorded runs, as text."""
    runs, now = recorded(), fingerprint()
    lines = []
    for words, chosen in (("in all", runs), ("with this code", [entry for entry in runs if entry["code"] == now])):
        counts: Counter[str] = Counter()
        for item in chosen:
            counts[item["target"]] += item["count"]
        finds = sum(len(entry["finds"]) for entry in chosen)
        lines.append(
            f"{words}: {counts.total()} cases through inspect, {counts['state']} of them through load_state and {counts['call'] + counts['exported']} through load and "
            f"calls with guard pages; {finds} finds; {sum(entry['seconds'] for entry in chosen)} s"
        )
    return "\n".join(lines)


def opened(path: Path, like: str) -> Fault:
    """A file as a case, with the calls of an archive of the corpus."""
    return Fault(0, "file", str(path), sample_of(ROOT / "fixtures" / like), path.read_bytes(), resealed=True)


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, help="total time; default: 10, or no limit with --count")
    parser.add_argument("--seed", type=int, help="default: a seed that is not in the record")
    parser.add_argument("--target", choices=TARGETS, help="default: all")
    parser.add_argument("--count", type=int, help="number of seeded cases for each target; no guided cases")
    parser.add_argument("--way", choices=WAYS, help="default: both")
    parser.add_argument("--only", type=int, help="run only the case with this number; requires --seed and --target")
    parser.add_argument("--open", type=Path, help="open a kept file; requires --like and --target")
    parser.add_argument("--like", default="torch-2.13.0/save_bool.pt", help="archive of the corpus whose calls are made")
    parser.add_argument("--keep", type=Path, default=KEEP, help="folder for the files that triggered a bug")
    parser.add_argument("--record", action="store_true")
    asked = parser.parse_args(arguments)
    if asked.record:
        print(told())
        return 0
    lacks = lacking()
    if lacks:
        print(f"nothing was run: {lacks}")
        return UNAVAILABLE
    seed = asked.seed if asked.seed is not None else 1 + max((item["seed"] for item in recorded()), default=0)
    if asked.only is not None or asked.open is not None:
        target = asked.target or "inspect"
        fault = opened(asked.open, asked.like) if asked.open is not None else case(seed, target, asked.only)
        return alone(fault, target, asked.keep)
    ways = [asked.way] if asked.way else ["seeded"] if asked.count is not None else list(WAYS)
    targets = [asked.target] if asked.target else list(TARGETS)
    minutes = asked.minutes if asked.minutes is not None else 10.0 if asked.count is None else LONGEST
    finds = 0
    for way in ways:
        if way == "guided" and not available():
            print("guided fuzzing was not run: atheris is not installed (the dependency group fuzz)")
            return UNAVAILABLE
        for target in targets:
            share = (SHARES[target] if asked.target is None else 1.0) * (
                WAYS[way] if asked.way is None and len(ways) > 1 else 1.0
            )
            finds += campaign(way, seed, target, 60 * minutes * share, asked.count, asked.keep)
    print(told())
    return int(bool(finds))


def alone(fault: Fault, target: str, keep: Path) -> int:
    """Run one case in a child, and keep its file."""
    keep.mkdir(parents=True, exist_ok=True)
    (keep / f"only_{fault.number}_{fault.sample.path.name}").write_bytes(fault.data)
    tally = survive(lambda _: fault, target, [0])
    print(f"{fault.sample.name}: {fault.kind}: {fault.said}\n{', '.join(tally.outcomes)}")
    for find in tally.finds:
        print(find.said)
    return int(bool(tally.finds))


def campaign(way: str, seed: int, target: str, seconds: float, count: int | None, keep: Path) -> int:
    """Fuzz one target in one way, record and report the run; returns the number of finds."""

    def tell(find: Find) -> None:  # immediately: a long run may be interrupted
        sys.stderr.write(f"seed {seed}, {target} {find.number}: {find.outcome}: {find.said}\n")

    tally, began = Tally(), time.monotonic()
    try:
        if way == "guided":
            run_guided(seed, target, tally, until=began + seconds, keep=keep, tell=tell)
        else:
            run(seed, target, tally, count=count, until=began + seconds, keep=keep, tell=tell)
    finally:  # an interrupted run counts, too
        taken = time.monotonic() - began
        record(way, seed, target, tally, taken)
    print(
        f"{way}, seed {seed}, {target}: {tally.count} cases in {taken:.0f} s, {tally.guarded} guarded arrays, {len(tally.finds)} finds"
    )
    print("  " + ", ".join(f"{number} {name}" for name, number in tally.outcomes.most_common()), flush=True)
    return len(tally.finds)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the run is recorded
    sys.exit(main())
