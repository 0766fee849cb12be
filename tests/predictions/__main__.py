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
from typing import TYPE_CHECKING

from torch_compat.cli._root import Root
from torch_compat.cli.judge import gather, uncollected
from torch_compat.needs import load_rules
from torch_compat.policy.counts import BY_PREDICTING, LOCK, PREDICT, counted_tables, lock_text, read_lock, rewritten
from torch_compat.policy.model import Quirk
from torch_compat.policy.source import read_folder
from torch_compat.replay.loading import LoadingEvidence
from torch_compat.replay.predictions import predicted
from torch_compat.replay.reference import plan_reference
from torch_compat.report.predictions import document

if TYPE_CHECKING:
    from torch_compat.policy.counts import Key
    from torch_compat.rules.evidence import Evidence

REPOSITORY = Path(__file__).resolve().parents[2]
DOCUMENT = REPOSITORY / "reports" / "predictions.md"


def main() -> int:
    """Print a line for each reader, and each wrong cell; then for each slip what it counts."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--reader", action="append", help="only this release; may be given again")
    parser.add_argument(
        "--write", action="store_true", help=f"write {DOCUMENT.relative_to(REPOSITORY)}, and quirks and slips in {LOCK}"
    )
    asked = parser.parse_args()
    root = Root(REPOSITORY)
    with uncollected():
        evidence = gather(root, root.policy(counted=False), as_of=None)
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
        print(f"slip {slip.id}: {slips[slip.id]} cells")
    if not whole:
        return int(failed)
    found = {("slip", slip.id): slips[slip.id] for slip in evidence.policy.slips} | quirks(evidence)
    stated = read_lock(root.inside("policies/torch")).counts
    for key in sorted(key for key in found if found[key] != stated.get(key)):
        print(f"{' '.join(key)}: {found[key]} cells, {stated.get(key, 'nothing')} in {LOCK}")
    for key in sorted(key for key, count in found.items() if count == 0):
        failed = True
        print(f"{' '.join(key)} explains nothing: take it out of the policy", file=sys.stderr)
    for path, text in (
        (DOCUMENT, document(counted, evidence.policy, found)),
        (root.inside(f"policies/torch/{LOCK}"), locked(root, found)),
    ):
        if asked.write and 0 not in found.values():
            path.write_text(text, encoding="utf-8")
        elif not path.is_file() or path.read_text(encoding="utf-8") != text:
            failed = True
            print(f"{path.relative_to(REPOSITORY)} says something else: {PREDICT}", file=sys.stderr)
    return int(failed)


def quirks(evidence: Evidence) -> dict[Key, int]:
    """How many cells each quirk explains."""
    rules = load_rules(REPOSITORY / "policies" / "torch", REPOSITORY / "fixtures")
    loading = LoadingEvidence.of(evidence.corpus, evidence.recorded.values(), rules)
    return {("quirk", one.id): loading.explained(one.id, rules) for one in evidence.policy.needs if isinstance(one, Quirk)}


def locked(root: Root, found: dict[Key, int]) -> str:
    """The lock with what was counted here; what judging counts stays."""
    policy = root.inside("policies/torch")
    return lock_text(rewritten(read_lock(policy), BY_PREDICTING, found, counted_tables(read_folder(policy).entries)))


if __name__ == "__main__":
    sys.exit(main())
