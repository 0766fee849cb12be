"""Rewrite generated files: `nox -s generate`, `nox -s predictions` and ``torch-compat admit`` use the same functions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from torch_compat.corpus.corpus import load_corpus
from torch_compat.errors import NothingSelected
from torch_compat.judging.counting import LOCK_FILE, count, locked, write_lock
from torch_compat.judging.gathering import gather, uncollected
from torch_compat.judging.judge import examine
from torch_compat.loadability import load_rules
from torch_compat.places import inside, read_whole
from torch_compat.policy.counts import read_lock
from torch_compat.replay.classes import saved_classes
from torch_compat.replay.predictions import explained, predictions
from torch_compat.replay.reference import plan_reference
from torch_compat.replay.restricted import weights_only_refusals
from torch_compat.report.classes_md import CLASSES_REPORT, classes_md, classes_table
from torch_compat.report.documents import (
    HAND,
    NOTES,
    PUBLISHED,
    REGENERATED,
    RELEASES,
    Generated,
    JudgedTree,
    release_documents,
    with_block,
)
from torch_compat.report.predictions import document, stated
from torch_compat.writes import changing, holding, put

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from torch_compat.corpus.classes import SavedClass, StatedClasses
    from torch_compat.judging.evidence import Evidence
    from torch_compat.loadability import Rules
    from torch_compat.policy.counts import Key
    from torch_compat.report.predictions import ReaderCounts
    from torch_compat.workspace import Root

__all__ = ["GENERATED", "PREDICTIONS", "UNUSED", "predict", "prediction_texts", "predictions_current", "regenerate", "rules_of"]

PREDICTIONS = "reports/predictions.md"
UNUSED = "does not explain anything; remove it from the policy"
"""The message about a behavior that explains no cell. ``tools/rehearse.py`` finds the behavior by this text."""


def _refusals(root: Path, _old: str, _judged: Callable[[], JudgedTree]) -> str:
    rules = load_rules(inside(root, "policies/torch"), inside(root, "fixtures"))
    return weights_only_refusals(load_corpus(inside(root, "fixtures")), rules)


def _classes(root: Path, judged: Callable[[], JudgedTree]) -> tuple[list[SavedClass], StatedClasses, tuple[str, ...]]:
    evidence = judged().evidence
    return *saved_classes(inside(root, "fixtures"), evidence.corpus, evidence.policy), evidence.policy.corpus.writers


def _fixtures(root: Path, old: str, judged: Callable[[], JudgedTree]) -> str:
    return with_block(old, "classes", classes_table(*_classes(root, judged)))


def _all_classes(root: Path, _old: str, judged: Callable[[], JudgedTree]) -> str:
    classes, _, writers = _classes(root, judged)
    return classes_md(classes, writers)


def _predictions(root: Path, old: str, judged: Callable[[], JudgedTree]) -> str:
    """The stated counts with the policy's texts; only ``nox -s predictions`` counts again."""
    return document([*stated(old)], judged().evidence.policy, read_lock(inside(root, "policies/torch")).counts)


GENERATED = tuple(
    sorted(
        (
            *REGENERATED,
            Generated("policies/torch/weights_only_refusals.toml", _refusals, feeds=True),
            Generated("fixtures/README.md", _fixtures),
            Generated(CLASSES_REPORT, _all_classes),
            Generated(PREDICTIONS, _predictions),
        ),
        key=lambda generated: not generated.feeds,
    )
)
"""Every generated file; those that judging reads come first. Some are made from archives, which reports never open. In
:data:`PREDICTIONS` only the texts are generated: its counts take much longer."""


def regenerate(place: Root, say: Callable[[str], None] = lambda _: None) -> tuple[list[str], JudgedTree]:
    """Rewrite every outdated generated file of the tree; return the changed files, and the final judgement.

    If a tree has a folder for release reports, it gets one report for each minor line, with its notes.

    The locks are updated before anything is judged, unless something could not be checked; judging then reports what. Differences that
    continue in a new release are added to the waiver lock; new differences are not: only ``torch-compat accept`` adds them.

    Parameters:
        say: called with the name of each changed file, and each changed count.
    """
    with holding(place.path):
        return _regenerated(place, say)


def _regenerated(place: Root, say: Callable[[str], None]) -> tuple[list[str], JudgedTree]:
    known: list[JudgedTree] = []
    changed: list[str] = []

    def judged() -> JudgedTree:
        if not known:
            counted = count(place, accepting=False)
            if write_lock(place, counted):
                changed.append(LOCK_FILE)
                say(LOCK_FILE)
                for change in (*counted.changes, *counted.differences):
                    say(str(change))
            with uncollected():
                evidence = replace(counted.evidence, policy=place.policy())
                known.append(JudgedTree(evidence, *examine(evidence)))
        return known[0]

    for generated in GENERATED:
        path = place.inside(generated.path)
        if not path.is_file():
            continue
        old = read_whole(path).decode("utf-8")
        text = generated.text(place.path, old, judged)
        if text != old:
            put(path, text, encoding="utf-8")
            changed.append(generated.path)
            say(generated.path)
            if generated.feeds:
                known.clear()
    result = judged()
    if place.inside(RELEASES).is_dir():
        table = place.inside(PUBLISHED)
        published = read_whole(table) if table.is_file() else None
        with changing(place.path):
            for name, text in release_documents(result, _by_hand(place), published).items():
                path = place.inside(name)
                if not path.is_file() or read_whole(path).decode("utf-8") != text:
                    put(path, text, encoding="utf-8")
                    changed.append(name)
                    say(name)
    return changed, result


def _by_hand(place: Root) -> Callable[[str], bytes | None]:
    """A function that reads the hand-written text of a tree about a release."""

    def read(release: str) -> bytes | None:
        path = place.inside(f"{NOTES}/{release}{HAND}")
        return read_whole(path) if path.is_file() else None

    return read


def predictions_current(place: Root, evidence: Evidence) -> bool:
    """Whether reports/predictions.md counts every program of the corpus for every reader of the policy, or does not exist."""
    path = place.inside(PREDICTIONS)
    if not path.is_file():
        return True
    tasks = plan_reference(evidence.policy, evidence.corpus, list(evidence.corpus.fixtures.values()))
    expected = dict.fromkeys(evidence.policy.corpus.readers, len(tasks))
    return {item.release: item.cells for item in stated(read_whole(path).decode("utf-8"))} == expected


def predict(place: Root, step: Callable[[int, int], None]) -> tuple[list[str], list[str]]:
    """Recount what reports/predictions.md states, and the behaviors of the lock; write both.

    Parameters:
        step: called with the number of finished readers, and of all readers.

    Returns:
        Descriptions of the wrongly predicted cells, and the behaviors that explain nothing; if there are any, nothing is written.

    Raises:
        NothingSelected: no observation of a program is recorded.
    """
    with uncollected():
        evidence = gather(place, place.policy(counted=False), as_of=None)
    readers, wrong = [], []
    step(0, len(evidence.recorded))
    for item, told in predictions(evidence):
        readers.append(item)
        wrong += told
        step(len(readers), len(evidence.recorded))
    if not readers:
        raise NothingSelected("no observation of a program is recorded, so nothing can be predicted", where=str(place.path))
    counts = explained(evidence, readers, rules_of(place))
    unused = [" ".join(key) for key in sorted(counts) if not counts[key]]
    if not unused:
        with changing(place.path):
            for path, text in prediction_texts(place, evidence, readers, counts).items():
                put(place.inside(path), text, encoding="utf-8")
    return wrong, unused


def rules_of(place: Root) -> Rules:
    """The rules that decide in a tree which releases load an archive."""
    return load_rules(place.inside("policies/torch"), place.fixtures)


def prediction_texts(
    place: Root, evidence: Evidence, readers: Sequence[ReaderCounts], counts: Mapping[Key, int]
) -> dict[str, str]:
    """The new text of each file that states predictions, keyed by its path in the tree.

    Parameters:
        readers: the counts of every reader, oldest first.
        counts: the counts of behaviors.

    Raises:
        PolicyError: the lock cannot be read.
    """
    return {PREDICTIONS: document(readers, evidence.policy, counts), LOCK_FILE: locked(place, counts)}
