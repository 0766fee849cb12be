"""Fuzz inspect, load_state, and load with calls, for so many minutes; the record of what has run is appended to.

    python -m tests.fuzz --minutes 10
    python -m tests.fuzz --seed 7 --target call --count 5000
    python -m tests.fuzz --seed 7 --target call --only 4711
    python -m tests.fuzz --record

Exit status: 0 nothing happened that must not; 1 something did, and each find is told; 4 a part could not run: guided fuzzing needs atheris,
the dependency group ``fuzz``. ``--only`` does one case again. ``--record`` says what has run, in all and since the code last changed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.fuzz.campaign import Find, Tally, run, survive
from tests.fuzz.cases import TARGETS, case
from torch_compat.fingerprint import code_fingerprint

ROOT = Path(__file__).parents[2]
RECORD = Path(__file__).with_name("record.jsonl")
KEEP = ROOT / "build" / "fuzz"
SHARES = {"inspect": 0.5, "state": 0.2, "call": 0.3}  # of the time, where no target is told
MOST = 10**9


def fingerprint() -> str:
    """Of all code that reads an archive: of the runtime, of inspect, and of all that they import."""
    return "-".join(code_fingerprint(package)[:12] for package in ("inspection", "runtime", "state"))


def commit() -> str:
    """The commit that is checked out, with a plus where the tree differs from it."""
    git = ["git", "-C", str(ROOT)]
    name = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    changed = subprocess.run(
        [*git, "status", "--porcelain", "harness", "tests"], capture_output=True, text=True, check=True
    ).stdout
    return name + "+" * bool(changed)


def recorded() -> list[dict[str, Any]]:
    """The runs that are recorded."""
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
    """What has run, in words."""
    runs, now = recorded(), fingerprint()
    lines = []
    for words, chosen in (("in all", runs), ("with this code", [one for one in runs if one["code"] == now])):
        counts: Counter[str] = Counter()
        for one in chosen:
            counts[one["target"]] += one["count"]
        finds = sum(len(one["finds"]) for one in chosen)
        lines.append(
            f"{words}: {counts.total()} cases through inspect, {counts['state']} of them through load_state and {counts['call']} through load and "
            f"calls with guard pages; {finds} finds; {sum(one['seconds'] for one in chosen)} s"
        )
    return "\n".join(lines)


def tell(find: Find) -> None:
    """A find is told at once: a long run need not come to its end."""
    sys.stderr.write(f"seed {find.seed}, {find.target} {find.number}: {find.outcome}: {find.said}\n")


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, help="in all; without --count, 10")
    parser.add_argument("--seed", type=int, help="unless given, one that is not recorded")
    parser.add_argument("--target", choices=TARGETS, help="unless given, all")
    parser.add_argument("--count", type=int, help="cases for each target, instead of a time")
    parser.add_argument("--only", type=int)
    parser.add_argument("--keep", type=Path, default=KEEP, help="folder for the files of finds")
    parser.add_argument("--record", action="store_true")
    asked = parser.parse_args(arguments)
    if asked.record:
        print(told())
        return 0
    seed = asked.seed if asked.seed is not None else 1 + max((one["seed"] for one in recorded()), default=0)
    if asked.only is not None:
        target = asked.target or parser.error("--only needs --target and --seed")
        fault = case(seed, target, asked.only)
        asked.keep.mkdir(parents=True, exist_ok=True)
        (asked.keep / f"{seed}_{target}_{asked.only}_{fault.sample.path.name}").write_bytes(fault.data)
        tally = survive(seed, target, [asked.only])
        print(f"{fault.sample.name}: {fault.kind}: {fault.said}\n{dict(tally.outcomes)} {[find.said for find in tally.finds]}")
        return int(bool(tally.finds))
    finds = 0
    minutes = asked.minutes if asked.minutes is not None else None if asked.count is not None else 10.0
    for target in [asked.target] if asked.target else TARGETS:
        share = 1.0 if asked.target else SHARES[target]
        began = time.monotonic()
        until = began + (60 * minutes * share if minutes is not None else MOST)
        tally = run(seed, target, count=asked.count, until=until, keep=asked.keep, tell=tell)
        seconds = time.monotonic() - began
        record("seeded", seed, target, tally, seconds)
        finds += len(tally.finds)
        print(
            f"seed {seed}, {target}: {tally.count} cases in {seconds:.0f} s, {tally.guarded} guarded arrays, {len(tally.finds)} finds"
        )
        print("  " + ", ".join(f"{count} {name}" for name, count in tally.outcomes.most_common()))
    print(told())
    return int(bool(finds))


if __name__ == "__main__":
    sys.exit(main())
