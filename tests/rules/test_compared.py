"""The differences between two readers, in words, and the key that groups them by cause."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from torch_compat.corpus.deprecations import Use
from torch_compat.corpus.observations import Observation
from torch_compat.judging.compared import _is_better, subject_of, tell
from torch_compat.values.compare import Difference

PROGRAM: Any = SimpleNamespace(recipe="ties", family="torchscript")
STORED: Any = SimpleNamespace(recipe="save_numbers", family="torch-save")
VALUE = Difference("value", "calls[0].first.value", "int64", {"expected": 1, "got": 0})
ERROR = {"type": "builtins.RuntimeError", "message": "RuntimeError: no kernel for 5 rows"}
RAISED = Difference("raised", "calls[1].first", content=(None, ERROR))
RELAXED = Difference("relaxed", "calls[2].first", content=(ERROR, {"value": 1}))


@pytest.mark.parametrize(
    ("fixture", "found", "subject", "cause"),
    [
        (PROGRAM, [VALUE], "ties", "ties: value (int64) in calls[0].first.value: 0 instead of 1"),
        (STORED, [VALUE], "value of int64", "save_numbers: value (int64) in calls[0].first.value: 0 instead of 1"),
        (PROGRAM, [RAISED, VALUE], "ties", "ties: value (int64) in calls[0].first.value: 0 instead of 1"),  # values are silent
        (PROGRAM, [RELAXED, RAISED], "raises:no kernel for N rows", "ties: raises RuntimeError: no kernel for 5 rows in calls[1].first"),
        (PROGRAM, [RELAXED], "accepts:no kernel for N rows",
         "ties: returns a value; before: raises RuntimeError: no kernel for 5 rows in calls[2].first"),
    ],
)  # fmt: skip
def test_differences_with_one_cause_share_a_subject(fixture: Any, found: list[Difference], subject: str, cause: str) -> None:
    assert tell(fixture, found) == (subject, cause)


def test_a_crash_is_one_cause_whatever_the_recipe() -> None:
    cell = Observation("torch-1.5.1/ties", "default", "", "crashed", stage="load", signal="SIGSEGV")
    assert subject_of(PROGRAM, cell) == subject_of(STORED, cell) == "SIGSEGV while loading"


def use(outcome: str, *, warns: bool = False, behaves: str | None = None) -> Use:
    """What a release did with a feature."""
    error = {"type": "builtins.RuntimeError", "message": "no"} if outcome != "worked" else None
    return Use(outcome, (("builtins.UserWarning", "soon"),) if warns else (), "", behaves, error)


@pytest.mark.parametrize(
    ("old", "new", "better"),
    [
        (use("lacks"), use("worked"), True),
        (use("lacks"), use("worked", warns=True), True),
        (use("worked", warns=True), use("worked"), True),
        (use("raised"), use("worked"), True),
        (use("raised"), use("worked", behaves="new"), False),  # the change that was announced
        (use("worked", warns=True, behaves="old"), use("worked", behaves="new"), False),
        (use("worked"), use("worked", warns=True), False),
        (use("worked"), use("raised"), False),
        (use("worked"), use("lacks"), False),
    ],
)
def test_what_works_now_is_mended(old: Use, new: Use, better: bool) -> None:
    assert _is_better(old, new) is better
