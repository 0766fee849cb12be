"""The rules about deprecations, on the first and the last day of what they promise."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest

from tests.policy.timelines import TORCH, example
from tests.rules.conftest import DATES
from torch_compat.policy.deprecations import Deprecation
from torch_compat.policy.model import CalendarRelease

if TYPE_CHECKING:
    from tests.rules.conftest import World

DAY = dt.timedelta(days=1)
PLANNED = dt.date(2021, 9, 1)


def removal(world: World, events: list[tuple[str, str]], **more: Any) -> None:
    """Promise that a function is removed on the timeline of PyTorch."""
    raw = example("removal") | {"events": [{"what": what, "release": version} for what, version in events], "docs": []} | more
    planned = (CalendarRelease(version="2.1.0", date=PLANNED, source="a plan"),)
    world.promise(deprecations=(Deprecation.model_validate(raw),), timelines=TORCH.timelines, planned=planned)


@pytest.mark.parametrize(("late", "verdict"), [(0, "fail: undocumented"), (1, "no-promise")])
def test_a_warning_of_the_first_day_of_the_policy_is_documented(late: int, verdict: str, world: World) -> None:
    removal(world, [("warned", "1.1.0")])
    world.promise(in_force_from=DATES["1.1.0"] + late * DAY)
    assert world.verdicts("deprecations-documented") == {"removal/warned": verdict}
    removal(world, [("warned", "1.1.0")], docs=[{"release": "1.1.0", "holds": "deprecated"}])
    assert world.verdicts("deprecations-documented") == {"removal/warned": "pass"}
    world.as_of = DATES["1.1.0"] - DAY
    assert world.verdicts("deprecations-documented") == {}


@pytest.mark.parametrize(("days", "verdict"), [(-1, "pass"), (0, "not-checked: plan past")])
def test_a_plan_is_past_on_the_day_of_its_release(days: int, verdict: str, world: World) -> None:
    removal(world, [("warned", "1.1.0"), ("removed", "2.1.0")])
    world.as_of = PLANNED + days * DAY
    assert world.verdicts("deprecations-timeline") == {"removal/warned": "pass", "removal/removed": verdict}


def test_a_plan_that_comes_too_early_fails_before_its_day(world: World) -> None:
    removal(world, [("warned", "2.0.0"), ("removed", "2.1.0")])
    world.as_of = PLANNED - DAY
    assert world.verdicts("deprecations-timeline")["removal/removed"] == "fail: planned too early"
