"""``python -m tools.predictions [--reader 2.13.0 ...] [--sample N --seed S | --write]``: compare the reference reader with the records.

For each real reader, every TorchScript and mobile program of the corpus is read as that release would have read it. A cell agrees if the
outcome is the recorded one and the values are the same, or close by the policy; also if the release crashed and the reference reader
predicts the cause. Each slip (``policies/torch/behaviors.toml``) is counted if a program reaches it and the cell agrees; each behavior
that departs from the rules is counted if nothing else explains which releases load an archive. If all readers are run, the counts are
compared with ``policies/torch/counts.lock`` and ``reports/predictions.md``; ``--write`` writes both.

``--sample N`` executes some of the cells, selected by the seed: every cell in which the release differs from the writer, and N
other cells per reader (see ``harness/torch_compat/replay/sampling.py`` for the rules). If all readers are run, every cause in the policy
has to decide at least one of these cells, and the lock and the document have to match them.

Exit status 1 if a cell is predicted wrongly, if no executed cell shows a named cause, or if the lock or the document differs and is not
written.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from torch_compat.judging.gathering import gather, uncollected
from torch_compat.policy.counts import LOCK, PREDICT, read_lock
from torch_compat.releases.behavior import SLIPS
from torch_compat.replay.generating import PREDICTIONS, UNUSED, prediction_texts, rules_of
from torch_compat.replay.loading import LoadingEvidence, takers_of
from torch_compat.replay.predictions import explained, predictions
from torch_compat.replay.reference import plan_reference
from torch_compat.replay.sampling import REASONS, ExecutedSample, draw
from torch_compat.report.predictions import document, stated
from torch_compat.workspace import Root
from torch_compat.writes import put

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch_compat.judging.evidence import Evidence
    from torch_compat.report.predictions import ReaderCounts

REPOSITORY = Path(__file__).resolve().parents[1]
UNRECORDED = {
    (
        "conversion",
        "bool as Scalar, SymInt, float, int, number",
    ): "every release writes int(b) as is, and True as 1; test_predictions.py edits an archive",
    (
        "behavior",
        "mobile-dtypes-of-bits",
    ): "the table of dtypes decides the same archives; the rule older-reads-some needs the text of this entry",
    (
        "behavior",
        "statement-with",
    ): "other needs decide the same archives; slips need it, because a program that does not parse is refused before a release can crash",
    (
        "behavior",
        "variable-named-as-what-is-called",
    ): "no release loads such an archive of its own; tests/loadability/test_hidden_names.py has results of two releases that were run by hand",
    (
        "behavior",
        "branches-without-a-common-type",
    ): "no release loads such an archive of its own; tests/loadability/test_unlike_branches.py has results of four releases that were run by hand",
    **{
        (
            "behavior",
            name,
        ): "no recipe writes quantized networks yet; tests/loadability/test_quantized_networks.py has results of releases"
        for name in ("recurrent-weights-as-tensors", "recurrent-weights-in-lists-of-tensors", "scales-in-lists")
    },
    **{
        ("behavior", name): "no recipe has such a list; test_archive_features.py has results of releases for edited archives"
        for name in ("dicts-of-optional-type", "lists-of-optional-type", "lists-returned-as-optional")
    },
    **{
        ("behavior", name): "test_bytecode_types.py edits archives; no recipe writes named tuples for the lite interpreter"
        for name in ("named-tuple-in-bytecode", "named-tuple-without-definition", "named-tuple-without-definition-in-schema")
    },
    **dict.fromkeys(
        (
            ("behavior", name)
            for name in (
                "zip-directory",
                "zip-from-its-first-byte",
                "zip-folder",
                "zip-folder-of-first-record",
                "zip-other-folder",
                "zip-other-folder-in-mobile",
                "zip-other-folder-in-package",
                "storages-of-protocol-0",
                "state-of-generator",
                "state-of-packed-parameters",
            )
        ),
        "the corpus has no such archive; tests/loadability/test_damaged_containers.py has results of releases that were run by hand",
    ),
}
"""Causes that no recorded archive shows, or that no release writes, with the evidence that shows them instead. A change
names its recipe, if any, in its evidence."""


def main() -> int:
    """Print a line for each reader and each wrong cell, and then the counts of each slip."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--reader", action="append", help="compare only this release; can be repeated")
    parser.add_argument("--write", action="store_true", help=f"write {PREDICTIONS}, and behaviors in {LOCK}")
    parser.add_argument(
        "--sample", type=int, metavar="N", help="run the programs that have a named cause, and N others for each reader"
    )
    parser.add_argument("--seed", default="0", help="seed of the sample: any string")
    asked = parser.parse_args()
    if asked.sample is not None and (asked.write or asked.sample < 0):
        parser.error("--sample requires a number of at least 0, and cannot be combined with --write")
    root = Root(REPOSITORY)
    with uncollected():
        evidence = gather(root, root.policy(counted=False), as_of=None)
    if asked.sample is not None:
        return sampled(root, evidence, asked.reader, each=asked.sample, seed=asked.seed)
    counted, wrong = executed(evidence, asked.reader, None)
    if not counted:
        return nothing()
    slips = sum((item.slips for item in counted), Counter[str]())
    for slip in _slips(evidence):
        print(f"slip {slip}: {slips[slip]} cells")
    if asked.reader is not None:
        return int(wrong > 0)
    failed = wrong > 0
    result = explained(evidence, counted, rules_of(root))
    lock = read_lock(root.inside("policies/torch")).counts
    for key in sorted(key for key in result if result[key] != lock.get(key)):
        print(f"{' '.join(key)}: {result[key]} cells, {lock.get(key, 'nothing')} in {LOCK}")
    for key in sorted(key for key, count in result.items() if count == 0):
        failed = True
        print(f"{' '.join(key)} {UNUSED}", file=sys.stderr)
    for name, text in prediction_texts(root, evidence, counted, result).items():
        path = root.inside(name)
        if asked.write and 0 not in result.values():
            put(path, text, encoding="utf-8")
        elif not path.is_file() or path.read_text(encoding="utf-8") != text:
            failed = True
            print(f"{name} is not current: {PREDICT}", file=sys.stderr)
    return int(failed)


def _slips(evidence: Evidence) -> list[str]:
    return [entry.id for entry in evidence.policy.behaviors if entry.outcome in SLIPS]


def executed(evidence: Evidence, readers: Sequence[str] | None, sample: ExecutedSample | None) -> tuple[list[ReaderCounts], int]:
    """The counts of each reader, printed as it completes, with every wrong cell; and the number of wrong cells."""
    counted, failed = [], 0
    for item, wrong in predictions(evidence, readers, None if sample is None else sample.tasks):
        counted.append(item)
        failed += len(wrong)
        print(item, flush=True)
        print("\n".join(wrong), end="\n" if wrong else "")
    print(f"all      {sum(counts.agrees for counts in counted)} of {sum(entry.cells for entry in counted)} agree")
    return counted, failed


def nothing() -> int:
    """Print the message and return the exit status."""
    print("no observation of the selected releases is recorded", file=sys.stderr)
    return 4


def sampled(root: Root, evidence: Evidence, readers: Sequence[str] | None, *, each: int, seed: str) -> int:
    """Execute a sample and print what it covers; with all readers, compare the documents with it. Returns the exit status."""
    rules = rules_of(root)
    tasks = plan_reference(evidence.policy, evidence.corpus, list(evidence.corpus.fixtures.values()))
    with uncollected():
        loading = LoadingEvidence.of(evidence.corpus, evidence.recorded.values(), rules)
        sample = draw(evidence, tasks, loading, rules, each=each, seed=seed)
    counted, wrong = executed(evidence, readers, sample)
    if not counted:
        return nothing()
    if readers is not None:
        return int(wrong > 0)
    for reason in REASONS:
        print(f"{reason}: {sample.chosen[reason]} of {sample.among[reason]} cells")
    complaints = list(disagreements(root, evidence, sample, counted, loading))
    print("\n".join(complaints), file=sys.stderr, end="\n" if complaints else "")
    return int(wrong > 0 or bool(complaints))


def disagreements(
    root: Root,
    evidence: Evidence,
    sample: ExecutedSample,
    counted: Sequence[ReaderCounts],
    loading: LoadingEvidence,
) -> Iterator[str]:
    """The errors other than wrong cells, in words; prints how often each named cause occurred."""
    for name, items in sorted(loading.items.items()):
        if cells := loading.wrong(name, takers_of(items)):
            yield f"{name}: in {cells} cells, the prediction whether the archive loads is wrong"
    lock = read_lock(root.inside("policies/torch")).counts
    slips = sum((counts.slips for counts in counted), Counter[str]())
    for slip in _slips(evidence):
        known = lock.get(("behavior", slip), 0)
        print(f"slip {slip}: reached in {slips[slip]} of {known} cells")
        if not slips[slip]:
            yield f"slip {slip} was not reached by any executed cell"
        elif slips[slip] > known:
            yield f"slip {slip} was reached in {slips[slip]} cells, but {LOCK} has {known}: {PREDICT}"
    departing = {("behavior", entry.id) for entry in evidence.policy.behaviors if entry.departs}
    for key, cells in sorted(sample.explained.items()):
        print(
            f"{' '.join(key)}: decides {cells} cells, {sample.programs[key]} of programs, of which {sample.causes[key]} were executed"
        )
        if key in departing and cells != lock.get(key):
            yield f"{' '.join(key)} explains {cells} cells, but {LOCK} has {lock.get(key, 'nothing')}: {PREDICT}"
    unrecorded = UNRECORDED | {
        ("change", change.id): change.evidence
        for change in evidence.policy.changes
        if not re.search(r"\brecipes? ", change.evidence)
    }
    unmet = sample.unmet()
    for key in unmet:
        if key not in unrecorded or sample.programs[key]:
            yield f"{' '.join(key)} was not reached by any executed cell"
    excused = [key for key in unmet if key in unrecorded and not sample.programs[key]]
    print(
        f"not executed, because no recorded program has them: {len(excused)} of {len(sample.explained)} causes: {', '.join(map(' '.join, excused))}"
    )
    for key in sorted(UNRECORDED.keys() - set(unmet)):
        yield f"{' '.join(key)} is shown by the corpus, or is not a cause: remove it from UNRECORDED"
    yield from _document(root, evidence, counted, lock)


def _document(root: Root, evidence: Evidence, counted: Sequence[ReaderCounts], lock: dict[tuple[str, str], int]) -> Iterator[str]:
    """The errors in the document that a sample can detect."""
    path = root.inside(PREDICTIONS)
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    messages = {item.release: item for item in stated(text)}
    programs = len(plan_reference(evidence.policy, evidence.corpus, list(evidence.corpus.fixtures.values())))
    for counts in counted:
        if not counts.cells:
            yield f"no program was executed for {counts.release}"
        there = messages.get(counts.release)
        if there is None or there.cells != programs or there.agrees != programs:
            yield f"{PREDICTIONS} does not state that {programs} programs of {counts.release} agree: {PREDICT}"
        elif there.by_slip < counts.by_slip:
            yield f"{PREDICTIONS} states that {there.by_slip} programs of {counts.release} reach slips, but {counts.by_slip} do: {PREDICT}"
    if not messages.keys() - {item.release for item in counted} and text == document([*messages.values()], evidence.policy, lock):
        return
    yield f"{PREDICTIONS} does not match the policy and {LOCK}: {PREDICT}"


if __name__ == "__main__":
    sys.exit(main())
