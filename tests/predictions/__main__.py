"""``python -m tests.predictions [--reader 2.13.0 ...] [--write]``: the reference reader at the horizon of each release, against its records.

For each real reader, every TorchScript and mobile program of the corpus is read as that release would have read it. A cell agrees
where the outcome is the recorded one and the values are the same, or close by the policy; also where the release died, and the
reference reader says of what. Each slip (``policies/torch/slips.toml``) is counted where a program comes to it and the cell agrees,
each quirk (``needs.toml``) where nothing else explains who loads an archive. Asked for all readers, what was counted is compared with
``policies/torch/counts.lock`` and ``reports/predictions.md``; ``--write`` writes both. Exit status 1 if a cell is told wrongly, or
where the lock or the document says something else and is not written.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from torch_compat.cli._generating import PREDICTIONS, prediction_texts, rules_of
from torch_compat.cli._root import Root
from torch_compat.cli.judge import gather, uncollected
from torch_compat.policy.counts import LOCK, PREDICT, read_lock
from torch_compat.replay.predictions import explained, predictions

REPOSITORY = Path(__file__).resolve().parents[2]


def main() -> int:
    """Print a line for each reader, and each wrong cell; then for each slip what it counts."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--reader", action="append", help="only this release; may be given again")
    parser.add_argument("--write", action="store_true", help=f"write {PREDICTIONS}, and quirks and slips in {LOCK}")
    asked = parser.parse_args()
    root = Root(REPOSITORY)
    with uncollected():
        evidence = gather(root, root.policy(counted=False), as_of=None)
    counted, failed = [], False
    for one, wrong in predictions(evidence, asked.reader):
        counted.append(one)
        failed |= bool(wrong)
        print(one, flush=True)
        print("\n".join(wrong), end="\n" if wrong else "")
    if not counted:
        print("nothing is recorded of what was asked", file=sys.stderr)
        return 4
    slips = sum((one.slips for one in counted), Counter[str]())
    print(f"all      {sum(one.agrees for one in counted)} of {sum(one.cells for one in counted)} agree")
    for slip in evidence.policy.slips:
        print(f"slip {slip.id}: {slips[slip.id]} cells")
    if asked.reader is not None:
        return int(failed)
    found = explained(evidence, counted, rules_of(root))
    stated = read_lock(root.inside("policies/torch")).counts
    for key in sorted(key for key in found if found[key] != stated.get(key)):
        print(f"{' '.join(key)}: {found[key]} cells, {stated.get(key, 'nothing')} in {LOCK}")
    for key in sorted(key for key, count in found.items() if count == 0):
        failed = True
        print(f"{' '.join(key)} explains nothing: take it out of the policy", file=sys.stderr)
    for name, text in prediction_texts(root, evidence, counted, found).items():
        path = root.inside(name)
        if asked.write and 0 not in found.values():
            path.write_text(text, encoding="utf-8")
        elif not path.is_file() or path.read_text(encoding="utf-8") != text:
            failed = True
            print(f"{name} says something else: {PREDICT}", file=sys.stderr)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
