"""Benchmarks run outside of CI; their use of the policy is tested here, so that a policy change does not break them."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.tooling import program
from torch_compat.policy import load_policy

REPOSITORY = Path(__file__).parents[2]


def test_the_calendar_of_the_large_tree_loads(tmp_path: Path) -> None:
    """The releases to come include those that are planned, which are planned no more."""
    shutil.copytree(REPOSITORY / "policies", tmp_path / "policies")
    shutil.copytree(REPOSITORY / "fixtures/operators", tmp_path / "fixtures/operators")
    policy = load_policy(REPOSITORY / "policies" / "torch")
    new = program("judging", "benchmarks")._calendar(tmp_path, list(policy.calendar)[-1].version, 26)
    grown = load_policy(tmp_path / "policies" / "torch")
    assert len(new) == 26
    assert {item.version for item in grown.calendar} == {item.version for item in policy.calendar} | set(new)
    assert policy.planned
    assert not grown.planned
