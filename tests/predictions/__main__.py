"""``python -m tests.predictions [--reader 2.13.0 ...]``: the reference reader at the horizon of each release, against its records.

For each real reader, every TorchScript and mobile program of the corpus is read as that release would have read it. A cell agrees
where the outcome is the recorded one and the values are the same, or close by the policy. Where the real release died, there is
nothing to agree with: a crash has no counterpart here, and such cells are counted apart. Exit status 1 if a cell is told wrongly.
"""

from __future__ import annotations

import argparse
import datetime as dt
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli._root import Root
from harness.cli.judge import gather, uncollected
from harness.replay.reference import observe_reference, plan_reference
from harness.rules.reference_agrees import agreement

if TYPE_CHECKING:
    from harness.corpus.observations import ObservedReader
    from harness.replay.plan import Task
    from harness.rules.evidence import Evidence

REPOSITORY = Path(__file__).resolve().parents[2]


def predicted(evidence: Evidence, reader: ObservedReader, tasks: list[Task]) -> tuple[Counter[str], list[str]]:
    """How many cells of a reader end in which way, and the wrong ones in words."""
    today = dt.date.fromisoformat(reader.observed)
    observed = observe_reference(tasks, today=today, horizon=f"reference@{reader.release}")
    counts: Counter[str] = Counter()
    wrong = []
    for task in tasks:
        real = evidence.valid(reader, task.fixture, task.options)
        assert real is not None, f"{task.fixture.id} is not recorded of {reader.name}"
        cell = observed.cells[task.fixture.id, task.options.id]
        verdict, what, text = agreement(evidence, task.fixture, real, cell)
        if verdict == "pass":
            counts["agrees"] += 1
        elif verdict == "no-promise":
            counts[f"died, the reference says {cell.result}"] += 1
        else:
            counts["wrong"] += 1
            wrong.append(f"  {task.fixture.id}: {real.result} is told as {what}: {text}")
    return counts, wrong


def main() -> int:
    """Print a line for each reader, and each wrong cell."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--reader", action="append", help="only this release; may be given again")
    asked = parser.parse_args().reader
    root = Root(REPOSITORY)
    with uncollected():
        evidence = gather(root, root.policy(), as_of=None)
    tasks = plan_reference(evidence.policy, evidence.corpus, list(evidence.corpus.fixtures.values()))
    readers = [one for one in evidence.recorded.values() if asked is None or one.release in asked]
    if not readers or not tasks:
        print("nothing is recorded of what was asked", file=sys.stderr)
        return 4
    total: Counter[str] = Counter()
    for reader in sorted(readers, key=lambda one: evidence.rank[one.release]):
        counts, wrong = predicted(evidence, reader, tasks)
        total += counts
        print(f"{reader.release:8} {_shares(counts)}", flush=True)
        print("\n".join(wrong), end="\n" if wrong else "")
    print(f"all      {_shares(total)}")
    return 1 if total["wrong"] else 0


def _shares(counts: Counter[str]) -> str:
    alive = counts["agrees"] + counts["wrong"]
    share = f"{100 * counts['agrees'] / alive:6.2f} % of {alive}" if alive else "nothing to agree with"
    rest = [f"{count} {what}" for what, count in counts.most_common() if what != "agrees"]
    return "; ".join([share, *rest])


if __name__ == "__main__":
    sys.exit(main())
