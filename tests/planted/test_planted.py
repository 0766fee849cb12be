"""Planted defects make the run fail: each is named in the report, wherever it was planted.

Some defects cannot be detected without running a release again. If a recorded observation and all related data are changed consistently,
including digests and footer, it looks like a true one, unless a waiver counts it; only a new observation contradicts it, and the footer
rules out an accident. The same holds for a later date in a file's header, and for a rule without a waiver that is removed from the policy,
which tests/repository/test_rules.py detects. An operator removed from the record of every release is detected only if a fixture states it
(test_histories.py there).
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.planted.conftest import Tree, copy_evidence
from tests.planted.defects import DEFECTS, Defect
from torch_compat.cli._output import exit_status

if TYPE_CHECKING:
    from pathlib import Path

    from tests.planted.conftest import Judged

CASES = [pytest.param(defect, seed, id=f"{defect.name}-{seed}") for defect in DEFECTS for seed in range(defect.seeds)]


def test_enough_is_planted() -> None:
    assert len(CASES) >= 40
    assert len({defect.name for defect in DEFECTS}) == len(DEFECTS) >= 20


@pytest.mark.parametrize(("planted", "seed"), CASES)
@pytest.mark.sampled(2, each="planted")
def test_a_planted_defect_turns_the_run_red(planted: Defect, seed: int, tree: Tree, baseline: Judged) -> None:
    named = planted.plant(tree, Random(f"{planted.name} {seed}"))
    judged = tree.judge(*planted.arguments)

    worst = {exit_status([baseline.status, status]) for status in planted.status}  # where the original is not green either
    assert judged.status in {*planted.status, *worst}, judged.stderr or judged.bad
    assert judged.status in {1, 2, 4}
    assert "Traceback" not in judged.stderr
    new = "\n".join(sorted(judged.bad - baseline.bad))
    for text in [named] if isinstance(named, str) else named:
        assert text in new
    assert str(tree.path) not in judged.stdout  # a report is the same wherever the tree lies


def test_an_untouched_copy_is_judged_like_the_original(pristine: Tree, baseline: Judged, tmp_path: Path) -> None:
    copy_evidence(pristine.path, tmp_path)
    assert Tree(tmp_path).judge() == baseline
