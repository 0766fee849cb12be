"""Deprecations as a table: one mark for the behavior of each release, and every violation in words."""

from __future__ import annotations

import datetime as dt

import pytest

from torch_compat.judging.timelines import Seen, State, TimelineRow
from torch_compat.policy.deprecations import Deprecation, Event, Step, Timeline
from torch_compat.policy.model import CalendarRelease
from torch_compat.policy.timeline import Axis, DeprecationHistory, TimelineState
from torch_compat.releases.calendar import Calendar
from torch_compat.report.deprecations import LEGEND, MARKS, deprecation_lines, deprecations_md

DAYS = {"1.9.1": dt.date(2021, 9, 21), "1.10.2": dt.date(2022, 1, 27), "2.0.0": dt.date(2023, 3, 15)}
TIMELINE = Timeline(
    kind="removal",
    asks="What is removed warns before.",
    source="here",
    steps=(Step(what=("warned",)), Step(what=("error", "removed"), after="warned", releases=2, days=180)),
)


def row(
    name: str, *events: tuple[str, str], verdict: TimelineState | None = None, why: tuple[str, ...] = (), **states: State
) -> TimelineRow:
    calendar = Calendar(
        CalendarRelease(version=version, date=day, pythons=("3.7",), install="whole", numpy="<2") for version, day in DAYS.items()
    )
    deprecation = Deprecation(
        id=name,
        subject=f"torch.{name}|x",
        kind="removal",
        alternative="new",
        warning="old",
        probe=name,
        events=tuple(Event(what=what, release=release) for what, release in events),  # type: ignore[arg-type]
    )
    history = DeprecationHistory(deprecation, TIMELINE, Axis(calendar), dt.date(2022, 6, 28))
    snapshot = history.at(dt.date(2026, 1, 1))
    seen = {release.removeprefix("r").replace("_", "."): Seen(state) for release, state in states.items()}
    return TimelineRow(history, snapshot, verdict or snapshot.verdict, why, seen, not why)


KEPT = row("kept", ("warned", "1.9.1"), r1_9_1=State.WARNED, r1_10_2=State.WARNED, r2_0_0=State.SILENT)
EARLY = row("early", ("warned", "1.10.2"), ("removed", "2.0.0"), r1_9_1=State.ABSENT, r2_0_0=State.REMOVED)
UNCLEAR = row(
    "unclear", ("warned", "1.9.1"), verdict=TimelineState.CANNOT_TELL, why=("1.9.1: it crashes",), r1_9_1=State.CANNOT_TELL
)


def test_every_state_has_a_mark_of_its_own_and_stands_in_the_legend() -> None:
    assert set(MARKS) == set(State)
    assert len(set(MARKS.values()) | {"-"}) == len(State) + 1
    for mark in {*MARKS.values(), "-"} - {" "}:
        assert f"{mark} " in LEGEND


def test_releases_are_read_downwards_in_the_order_of_versions() -> None:
    assert deprecation_lines([KEPT, EARLY, UNCLEAR]) == [
        "          1",
        "         1.2",
        "         .1.",
        "         900",
        "         ...",
        "         120",
        "kept     ww·  kept",
        "early     -x  broken",
        "unclear  ?--  cannot-tell",
        "",
        LEGEND,
    ]


def test_what_was_not_kept_is_told_in_words() -> None:
    text = deprecations_md([KEPT, EARLY, UNCLEAR])
    assert "3 deprecations, 3 releases: " in text
    assert "| torch.early\\|x | removal | warned 1.10.2, removed 2.0.0 |" in text
    assert "## Broken timelines" in text
    assert "- **early**: " in text
    assert "too early" in text
    assert "- **unclear**: 1.9.1: it crashes" in text
    assert text.endswith("\n")


def test_what_was_promised_and_what_was_not_stand_apart() -> None:
    before = row("before", ("warned", "1.9.1"), ("removed", "1.10.2"), r1_9_1=State.WARNED)
    text = deprecations_md([before])
    assert "## Broken timelines" not in text
    assert "- **before**: " in text.partition("## Deviations from the policy before it was in force")[2]


@pytest.mark.parametrize("rows", [[], [KEPT]])
def test_the_same_rows_give_the_same_text(rows: list[TimelineRow]) -> None:
    assert deprecations_md(rows) == deprecations_md(rows)
    assert deprecation_lines(rows)[-1] == LEGEND
