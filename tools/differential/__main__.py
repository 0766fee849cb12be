"""``python -m tools.differential calls [--count 200]`` and ``python -m tools.differential programs [--count 1000]``: against torch 2.13.0.
``python -m tools.differential horizon [--reader 1.5.1] [--count 8] [--only REGEX]``: historic operators against the releases that had them.

``calls`` compares generated calls of every overload that the reference reader has, ``programs`` programs that hypothesis writes. Both
print how many there were, what was left out and why, and each disagreement in its smallest form, which ``--keep`` writes to files
that replay without hypothesis. Exit status 1 where there is any, or where an overload is neither compared nor left out by name.

``horizon`` asks thirteen releases unless `--reader` names some, counts calls by operator and dtype, and prints a table and one call of each
kind of disagreement. ``--write`` writes them to reports/differential.md. Exit status 1 where a value differs, 4 where a release is not built.

``choose`` chooses the calls of fixtures/operators/calls.jsonl anew. Their answers are then those of no release: survey every one again.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from tools.differential.calls import Release
from tools.differential.comparison import VERSION, Disagreement, exclusion, full_name, groups, overloads, work, wrong
from tools.differential.generated import Programs, run
from tools.differential.horizons import COLUMNS, HORIZONS, Compared, compare_at, document
from tools.differential.recorded import FIXTURES, borders, chosen
from torch_compat.corpus.calls import write_calls
from torch_compat.corpus.surveys import surveyed_releases
from torch_compat.readers.environments import Environments
from torch_compat.runtime.limits import bound_memory


def compare_calls(options: argparse.Namespace) -> int:
    """Compare everything and say what came of it."""
    release = Release(VERSION)
    chosen = [overload for overload in overloads(release) if re.search(options.only, full_name(overload))]
    release.close()
    reasons = {full_name(overload): reason for overload in chosen if (reason := exclusion(overload))}
    rest = [overload for overload in chosen if full_name(overload) not in reasons]
    jobs = [(group, options.count, options.seed) for group in groups(rest, options.jobs * 12) if group]
    rows: list[dict[str, Any]] = []
    with processes(options.jobs) as pool:
        try:
            for done in as_completed([pool.submit(work, job) for job in jobs]):
                rows += done.result()
                print(f"{len(rows)} of {len(rest)} overloads", file=sys.stderr, flush=True)
        except BrokenProcessPool:
            print(
                f"a process that compares died, killed perhaps for its memory; {len(rows)} of {len(rest)} overloads were compared"
            )
            return 1
    rows.sort(key=lambda row: row["name"])
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
        Path(options.keep, "calls.json").write_text(json.dumps([row for row in rows if wrong(row)], indent=1), encoding="utf-8")
    return report(chosen, reasons, rows)


def report(chosen: list[dict[str, Any]], reasons: dict[str, str], rows: list[dict[str, Any]]) -> int:
    """Print it; 1 where something is not as it should be."""
    total: Counter[str] = Counter()
    for row in rows:
        total.update(row.get("counts", {}))
    done = [row for row in rows if row.get("counts", {}).get("compared")]
    print(
        f"{len(chosen)} overloads; {len(done)} compared in {total['compared']:,} calls, {total['refused']:,} more refused by both"
    )
    for name, count in sorted(total.items()):
        if name not in {"compared", "refused"}:
            print(f"  {count:,} calls {name}")
    for reason, count in Counter(reasons.values()).most_common():
        print(f"  {count} overloads left out: {reason}")
    bad = [(row, message) for row in rows if (message := wrong(row))]
    for row, message in bad:
        print(f"{row['name']}: {message}\n    {row.get('call', '')[:700]}")
    print(f"{len(bad)} overloads disagree, or are neither compared nor left out")
    return int(bool(bad))


def compare_programs(options: argparse.Namespace) -> int:
    """Run programs and say what came of it."""
    release = Programs()
    with tempfile.TemporaryDirectory() as place:
        folder = options.keep or Path(place)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            done = run(release, options.count, options.seed, folder)
        except Disagreement as error:
            print(error)
            return 1
        finally:
            release.close()
    print(f"{sum(done.values()):,} programs: " + ", ".join(f"{number:,} {name[:120]}" for name, number in done.most_common(12)))
    return 0


def processes(number: int) -> ProcessPoolExecutor:
    """Processes that compare, with no more memory than those of torch: a call may ask for more than the machine has."""
    return ProcessPoolExecutor(number, multiprocessing.get_context("spawn"), initializer=bound_memory)


def compare_horizon(options: argparse.Namespace) -> int:
    """Compare the reference reader with releases at their horizons, and print or write what came of it."""
    readers = [item.removeprefix("torch-") for item in options.reader] or list(HORIZONS)
    if missing := [reader for reader in readers if Environments().get(reader) is None]:
        print("\n".join(f"torch {item} is not built here: torch-compat readers build torch-{item}" for item in missing))
        return 4
    jobs = [(reader, options.only, options.count, options.seed) for reader in readers]
    results: list[Compared] = []
    with processes(options.jobs) as pool:
        for done in as_completed([pool.submit(compare_at, *job) for job in jobs]):
            results.append(done.result())
            print(f"{results[-1].release}: {sum(results[-1].total.values()):,} calls", file=sys.stderr, flush=True)
    results.sort(key=lambda item: readers.index(item.release))
    text = document(results, options.count, options.seed)
    if options.write:
        Path("reports", "differential.md").write_text(text, encoding="utf-8")
    else:
        print(text)
    return int(any(compared.total[COLUMNS[-1]] for compared in results))


def choose_calls(options: argparse.Namespace) -> int:
    """Choose the calls that are recorded, and say what they cover."""
    releases = list(surveyed_releases(FIXTURES))
    choice = chosen(releases, options.only)
    write_calls(FIXTURES, choice.calls)
    versions = sum(map(len, borders().values()))
    print(f"{len(choice.calls):,} calls of {versions:,} versions of {len(borders())} operators")
    for message, rows in (("gives a value of", choice.lacking), ("tells from the version before", choice.alike)):
        print(
            f"no generated call {message} {len(rows)} versions:",
            *(f"{name} of {kind} since {since}" for name, kind, since in rows),
            sep="\n  ",
        )
    return 0


def main() -> int:
    """One of the four."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("calls", "programs", "horizon", "choose"))
    parser.add_argument(
        "--count",
        type=int,
        help="number of calls per overload (calls: default 200, horizon: 8), of programs (default 1000)",
    )
    parser.add_argument(
        "--reader", action="append", default=[], help="horizon: a release to compare with; may be given several times"
    )
    parser.add_argument("--write", action="store_true", help="horizon: write reports/differential.md")
    parser.add_argument("--seed", type=int, default=20200624)
    parser.add_argument(
        "--only", default="", help="calls, horizon, choose: only operators whose names match this regular expression"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="calls, horizon: number of processes")
    parser.add_argument("--keep", type=Path, help="directory for cases that disagree")
    options = parser.parse_args()
    options.count = options.count or {"calls": 200, "programs": 1000, "horizon": 8, "choose": 0}[options.what]
    compare = {"calls": compare_calls, "programs": compare_programs, "horizon": compare_horizon, "choose": choose_calls}
    return compare[options.what](options)


if __name__ == "__main__":
    sys.exit(main())
