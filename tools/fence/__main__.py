"""Run generated hostile programs in two processes, and report the results.

    python -m tools.fence --count 10000 --seed 1
    python -m tools.fence --seed 1 --only 4711        # prints the program

Exit status: 0 nothing broke out; 1 something broke out; each case is printed with its number.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from tools.fence.children import run_all
from tools.fence.programs import generated


def main() -> int:
    """Run the command described in the module docstring."""
    parser = argparse.ArgumentParser(prog="python -m tools.fence", description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", type=int, help="print the program with this number, and run only this program")
    options = parser.parse_args()
    if options.only is not None:
        print(generated(options.seed, options.only).source)
    numbers = range(options.count) if options.only is None else [options.only]
    began = time.monotonic()
    done = run_all(options.seed, list(numbers), options.jobs, lambda left: print(f"{left} left", file=sys.stderr, flush=True))
    counts = Counter(entry.outcome for entry in done)
    print(
        f"{len(done)} programs in {time.monotonic() - began:.0f} s: "
        + ", ".join(f"{n} {name}" for name, n in counts.most_common())
    )
    reasons = Counter(entry.code for entry in done if entry.outcome == "refused")
    print("refused for: " + ", ".join(f"{n} {name}" for name, n in reasons.most_common(20)))
    outside = [entry for entry in done if entry.outside]
    for item in outside:
        print(f"{item.number}: {item.outcome}: {item.said}")
    slowest = max(done, key=lambda entry: entry.seconds)
    print(f"slowest: number {slowest.number}, {slowest.seconds:.1f} s")
    return int(bool(outside))


if __name__ == "__main__":
    sys.exit(main())
