"""``python -m tests.predictions [--reader 2.13.0 ...] [--write]``: the reference reader at the horizon of each release, against its records.

For each real reader, every TorchScript and mobile program of the corpus is read as that release would have read it. A cell agrees
where the outcome is the recorded one and the values are the same, or close by the policy; also where the release died, and the
reference reader says of what. Each slip (``policies/torch/slips.toml``) is counted where a program comes to it and the cell agrees:
as many cells as it states, exactly. Asked for all readers, what was counted is compared with ``reports/predictions.md``, which
``--write`` writes. Exit status 1 if a cell is told wrongly, a slip counts other cells than it states, or the document says
something else.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from torch_compat.cli._root import Root
from torch_compat.cli.judge import gather, uncollected
from torch_compat.replay.predictions import predicted
from torch_compat.replay.reference import plan_reference
from torch_compat.report.predictions import document

REPOSITORY = Path(__file__).resolve().parents[2]
DOCUMENT = REPOSITORY / "reports" / "predictions.md"


def main() -> int:
    """Print a line for each reader, and each wrong cell; then for each slip what it counts."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--reader", action="append", help="only this release; may be given again")
    parser.add_argument("--write", action="store_true", help=f"write {DOCUMENT.relative_to(REPOSITORY)}")
    asked = parser.parse_args()
    root = Root(REPOSITORY)
    with uncollected():
        evidence = gather(root, root.policy(), as_of=None)
    tasks = plan_reference(evidence.policy, evidence.corpus, list(evidence.corpus.fixtures.values()))
    readers = [one for one in evidence.recorded.values() if asked.reader is None or one.release in asked.reader]
    if not readers or not tasks:
        print("nothing is recorded of what was asked", file=sys.stderr)
        return 4
    counted, failed = [], False
    for reader in sorted(readers, key=lambda one: evidence.rank[one.release]):
        one, wrong = predicted(evidence, reader, tasks)
        counted.append(one)
        failed |= bool(wrong)
        print(one, flush=True)
        print("\n".join(wrong), end="\n" if wrong else "")
    slips = sum((one.slips for one in counted), Counter[str]())
    print(f"all      {sum(one.agrees for one in counted)} of {sum(one.cells for one in counted)} agree")
    whole = asked.reader is None
    for slip in evidence.policy.slips:
        stated = f", not the {slip.cells} that it states" if whole and slips[slip.id] != slip.cells else ""
        failed |= bool(stated)
        print(f"slip {slip.id}: {slips[slip.id]} cells{stated}")
    if not whole:
        return int(failed)
    text = document(counted, evidence.policy)
    if asked.write:
        DOCUMENT.write_text(text, encoding="utf-8")
    elif not DOCUMENT.is_file() or DOCUMENT.read_text(encoding="utf-8") != text:
        failed = True
        print(f"{DOCUMENT.relative_to(REPOSITORY)} says something else: nox -s predictions -- --write", file=sys.stderr)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
