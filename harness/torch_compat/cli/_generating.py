"""Rewriting what is generated: `nox -s generate` and ``torch-compat admit`` do it with the same function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch_compat.cli.judge import gather, uncollected
from torch_compat.corpus.lines import write_whole
from torch_compat.places import read_whole
from torch_compat.replay.predictions import predicted
from torch_compat.replay.reference import plan_reference
from torch_compat.report.documents import REGENERATED, Judged
from torch_compat.report.predictions import counted_programs, document
from torch_compat.rules.judge import judge

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch_compat.cli._root import Root
    from torch_compat.rules.evidence import Evidence

__all__ = ["PREDICTIONS", "predict", "predictions_current", "regenerate"]

PREDICTIONS = "reports/predictions.md"


def regenerate(place: Root, say: Callable[[str], None] = lambda _: None) -> tuple[list[str], Judged]:
    """Rewrite every generated file that the tree has and that is not current; which changed, and what judging says in the end.

    Parameters:
        say: is told the name of each file that changed.
    """
    known: list[Judged] = []

    def judged() -> Judged:
        if not known:
            with uncollected():
                evidence = gather(place, place.policy(), as_of=None)
                known.append(Judged(evidence, judge(evidence)))
        return known[0]

    changed = []
    for one in REGENERATED:
        path = place.inside(one.path)
        if not path.is_file():
            continue
        old = read_whole(path).decode("utf-8")
        text = one.text(place.path, old, judged)
        if text != old:
            write_whole(path, text, encoding="utf-8")
            changed.append(one.path)
            say(one.path)
            if one.feeds:
                known.clear()
    return changed, judged()


def predictions_current(place: Root, evidence: Evidence) -> bool:
    """Whether reports/predictions.md counts every program of the corpus for every reader of the policy, or the tree has no such file."""
    path = place.inside(PREDICTIONS)
    if not path.is_file():
        return True
    tasks = plan_reference(evidence.policy, evidence.corpus, list(evidence.corpus.fixtures.values()))
    expected = dict.fromkeys(evidence.policy.corpus.readers, len(tasks))
    return counted_programs(read_whole(path).decode("utf-8")) == expected


def predict(place: Root, step: Callable[[int, int], None]) -> list[str]:
    """Count anew what reports/predictions.md says, and write it; the cells that are told wrongly, in words.

    Parameters:
        step: is told how many readers are done, and of how many.
    """
    with uncollected():
        evidence = gather(place, place.policy(), as_of=None)
    tasks = plan_reference(evidence.policy, evidence.corpus, list(evidence.corpus.fixtures.values()))
    readers = sorted(evidence.recorded.values(), key=lambda one: evidence.rank[one.release])
    counted, wrong = [], []
    for number, reader in enumerate(readers):
        step(number, len(readers))
        one, told = predicted(evidence, reader, tasks)
        counted.append(one)
        wrong += told
    write_whole(place.inside(PREDICTIONS), document(counted, evidence.policy), encoding="utf-8")
    return wrong
