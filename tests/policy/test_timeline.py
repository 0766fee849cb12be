"""Timelines: the worked examples step by step, on generated calendars, to the day; and consistency between any two days."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.policy.timelines import EPOCH, EXAMPLES, TORCH, axes, calendar_of, example, history, release, timeline_of
from torch_compat.policy.deprecations import Deprecation, Event
from torch_compat.policy.model import CalendarRelease
from torch_compat.policy.timeline import Axis, DeprecationHistory, TimelineState, earliest, histories, sweep
from torch_compat.releases.calendar import Calendar
from torch_compat.words import american

if TYPE_CHECKING:
    from collections.abc import Sequence

DAY = dt.timedelta(days=1)
RELEASES, DAYS = 2, 180  # what the policy's page says
STEPS = {
    "mode-change": (("warned", "removed"), ("removed", "restored")),
    "keyword-only": (("warned", "error"),),
    "removal": (("warned", "removed"),),
    "rename": (("warned", "removed"),),
    "default-change": (("warned", "error"), ("error", "switched")),
    "behaviour-change": (("warned", "error"), ("error", "switched")),
}
"""The steps of each example that wait, with what they wait for."""
SEED = ("mode-change", "keyword-only")  # the two that the policy's page works out
ORDER = {TimelineState.NO_PROMISE: 0, TimelineState.KEPT: 1, TimelineState.BROKEN: 2}


def days_of(*gaps: int) -> list[dt.date]:
    """Days with these gaps between them."""
    results = [EPOCH]
    for gap in gaps:
        results.append(results[-1] + gap * DAY)
    return results


def breaches(value: DeprecationHistory, day: dt.date = dt.date.max) -> list[tuple[str, str, int, int]]:
    return [(breach.kind, breach.what, breach.releases, breach.days) for breach in value.at(day).breaches]


# --------------------------------------------------------------------------------------------------- the worked examples


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_keeps_its_timeline_on_the_real_calendar(path: object) -> None:
    deprecation = Deprecation.model_validate(example(path.stem))  # type: ignore[attr-defined]
    timeline = timeline_of(deprecation.kind, silent=deprecation.silent)
    kept = DeprecationHistory(deprecation, timeline, Axis(TORCH.calendar, TORCH.planned), TORCH.in_force_from)
    assert kept.at(dt.date.max).verdict is TimelineState.KEPT
    assert breaches(kept) == []
    assert deprecation.id == path.stem  # type: ignore[attr-defined]
    assert {what for step in timeline.steps for what in step.what} >= {event.what for event in deprecation.events}


def test_there_is_an_example_of_every_kind_and_every_waiting_step() -> None:
    assert {path.stem for path in EXAMPLES} == set(map(american, STEPS))
    assert set(STEPS) == {timeline.kind for timeline in TORCH.timelines}
    for kind, steps in STEPS.items():
        timeline = timeline_of(kind, silent=example(kind)["silent"])
        waiting = [step for step in timeline.steps if step.releases or step.days]
        assert [(step.releases, step.days) for step in waiting] == [(RELEASES, DAYS)] * len(steps)


@pytest.mark.parametrize(("kind", "at"), [(kind, at) for kind, steps in STEPS.items() for at in range(len(steps))])
@given(extra=st.integers(0, 3), slack=st.integers(-3, 3), first=st.integers(1, 300))
def test_one_day_early_is_broken_and_on_the_day_is_kept(kind: str, at: int, extra: int, slack: int, first: int) -> None:
    """Every waiting step of every example, from three days early to three days late; whatever the other releases do."""
    events = example(kind)["events"]
    step, waits_for = STEPS[kind][at][1], STEPS[kind][at][0]
    whats = [event["what"] for event in events]
    # Lines: those before the step it waits for are far apart. After it come 1 + extra lines within the window, then the step's own,
    # at day 180 + slack.
    days = [EPOCH + number * 400 * DAY for number in range(whats.index(waits_for) * 2 + 2)]
    before = len(days) - 1
    inner = 1 + extra
    gap = max(1, min(first, DAYS - 10) // inner)
    days += [days[before] + gap * number * DAY for number in range(1, inner + 1)]
    days.append(days[before] + (DAYS + slack) * DAY)
    target = len(days) - 1
    days += [days[-1] + 400 * number * DAY for number in range(1, 9)]
    axis = Axis(calendar_of(days))
    placed, later = [], target
    for what in whats:
        if what == step:
            placed.append((what, f"1.{target}.0"))
        elif whats.index(what) < whats.index(step):
            line = before if what == waits_for else min(before, whats.index(what) * 2)
            placed.append((what, f"1.{line}.0"))
        else:
            later += 2
            placed.append((what, f"1.{later}.0"))
    result = history(kind, placed, axis)
    kept = slack >= 0
    assert (result.at(dt.date.max).verdict is TimelineState.KEPT) is kept
    assert breaches(result) == ([] if kept else [("too-early", step, 0, -slack)])
    # the day before it happens nothing is broken; from that day on it is
    assert result.at(days[target] - DAY).verdict is TimelineState.KEPT
    assert (result.at(days[target]).verdict is TimelineState.KEPT) is kept


@pytest.mark.parametrize(("kind", "at"), [(kind, at) for kind, steps in STEPS.items() for at in range(len(steps))])
@pytest.mark.parametrize("lines", [0, 1, 2, 3])
def test_a_release_too_few_is_broken_however_many_days_lie_between(kind: str, at: int, lines: int) -> None:
    axis = Axis(calendar_of(days_of(*[200] * 12)))
    waits_for, step = STEPS[kind][at]
    placed, line = [], 0
    for event in example(kind)["events"]:
        what = event["what"]
        line += 0 if what in {"alternative", "warned"} else lines if what == step else RELEASES
        placed.append((what, f"1.{line}.0"))
    result = history(kind, placed, axis)
    short = max(0, RELEASES - lines)
    assert breaches(result) == ([("too-early", step, short, max(0, DAYS - 200 * lines))] if short else [])
    assert waits_for in {what for what, _ in placed}


@pytest.mark.parametrize("kind", SEED)
@given(axis=axes(), data=st.data())
def test_on_any_calendar_a_step_is_kept_exactly_from_the_earliest_release_on(kind: str, axis: Axis, data: st.DataObject) -> None:
    """The engine's verdict, its `earliest`, and the sentence of the policy's page, which is spelled out here, are one and the same."""
    waits_for, step = STEPS[kind][0]
    lines = [point for point in axis.lines if not point.planned]
    warned = data.draw(st.sampled_from(lines))
    bound = earliest(axis, timeline_of(kind).step(step), warned)  # type: ignore[arg-type]
    for point in (point for point in axis.points.values() if point.line >= warned.line and not point.planned):
        before = [("alternative", lines[0].release)] if kind == "mode-change" else []
        result = history(kind, [*before, (waits_for, warned.release), (step, point.release)], axis)
        allowed = point.line - warned.line >= RELEASES and (point.day - warned.day).days >= DAYS
        assert (result.at(dt.date.max).verdict is TimelineState.KEPT) is allowed
        first_of_its_line = point.release.endswith(".0")
        if bound.release and first_of_its_line:
            assert allowed == (point.day >= bound.not_before and point.line - warned.line >= RELEASES)
            assert allowed or point.line < axis[bound.release].line
            assert not allowed or point.day >= axis[bound.release].day or point.line > axis[bound.release].line
        if not bound.release:
            assert not (allowed and first_of_its_line)


def test_a_patch_is_no_release_of_its_own() -> None:
    days = days_of(100, 100, 100, 100)
    patch = release("1.0.1", days[1] + DAY)
    axis = Axis(Calendar([*calendar_of(days), patch]))
    assert breaches(history("removal", [("warned", "1.0.0"), ("removed", "1.2.0")], axis)) == []
    # warned first in the patch: the line counts, the day is the patch's
    assert breaches(history("removal", [("warned", "1.0.1"), ("removed", "1.2.0")], axis)) == [("too-early", "removed", 0, 81)]
    # gone in the next line: one release and 80 days too early, patches or not
    assert breaches(history("removal", [("warned", "1.0.0"), ("removed", "1.1.0")], axis)) == [("too-early", "removed", 1, 80)]


# ------------------------------------------------------------------------------------------------------ what else can break


def test_what_never_warned_is_broken_by_the_whole_window() -> None:
    axis = Axis(calendar_of(days_of(200, 200, 200)))
    result = history("removal", [("removed", "1.3.0")], axis, warning=None)
    assert breaches(result) == [("not-warned", "removed", 2, 180)]
    assert "without ever having been deprecated with a warning" in result.at(dt.date.max).breaches[0].text


def test_a_silent_change_needs_the_loud_phase_in_between() -> None:
    axis = Axis(calendar_of(days_of(*[200] * 6)))
    quiet = history("behaviour-change", [("warned", "1.0.0"), ("switched", "1.5.0")], axis)
    assert breaches(quiet) == [("step-missing", "switched", 2, 180)]
    loud = history("behaviour-change", [("warned", "1.0.0"), ("error", "1.2.0"), ("switched", "1.3.0")], axis)
    assert breaches(loud) == [("too-early", "switched", 1, 0)]
    assert breaches(history("behaviour-change", [("warned", "1.0.0"), ("switched", "1.2.0")], axis, silent=False)) == []


def test_a_warning_before_there_is_an_alternative() -> None:
    axis = Axis(calendar_of(days_of(*[200] * 6)))
    result = history("rename", [("warned", "1.0.0"), ("alternative", "1.1.0"), ("removed", "1.3.0")], axis)
    assert [(kind, what) for kind, what, *_ in breaches(result)] == [("step-missing", "warned")]


def test_a_warning_that_was_withdrawn_does_not_count() -> None:
    axis = Axis(calendar_of(days_of(*[200] * 8)))
    events = [("warned", "1.0.0"), ("withdrawn", "1.1.0"), ("warned", "1.4.0"), ("removed", "1.5.0")]
    assert breaches(history("removal", events, axis)) == [("too-early", "removed", 1, 0)]
    assert breaches(history("removal", [*events[:3], ("removed", "1.6.0")], axis)) == []
    assert breaches(history("removal", [*events[:2], ("removed", "1.6.0")], axis)) == [("not-warned", "removed", 2, 180)]


def test_what_was_restored_must_warn_again_before_it_goes() -> None:
    axis = Axis(calendar_of(days_of(*[200] * 8)))
    events = [("warned", "1.0.0"), ("removed", "1.2.0"), ("restored", "1.3.0")]
    assert breaches(history("removal", [*events, ("removed", "1.6.0")], axis)) == [("not-warned", "removed", 2, 180)]
    assert breaches(history("removal", [*events, ("warned", "1.4.0"), ("removed", "1.6.0")], axis)) == []


def test_an_alternative_stays_where_the_warning_is_withdrawn() -> None:
    axis = Axis(calendar_of(days_of(*[200] * 6)))
    events = [("alternative", "1.0.0"), ("warned", "1.1.0"), ("withdrawn", "1.2.0"), ("warned", "1.3.0")]
    result = history("rename", events, axis)
    assert breaches(result) == []
    assert result.at(axis["1.2.0"].day).next.what == ("warned",)  # type: ignore[union-attr]


def test_a_step_that_came_too_early_is_broken_once() -> None:
    axis = Axis(calendar_of(days_of(*[200] * 4)))
    events = [("warned", "1.0.0"), ("error", "1.1.0"), ("removed", "1.1.0")]
    assert breaches(history("removal", events, axis)) == [("too-early", "error", 1, 0)]


def test_raising_and_then_going_is_one_step() -> None:
    axis = Axis(calendar_of(days_of(*[200] * 8)))
    assert breaches(history("removal", [("warned", "1.0.0"), ("error", "1.2.0"), ("removed", "1.3.0")], axis)) == []


def test_what_comes_next_waits_from_the_first_event_of_the_step() -> None:
    axis = Axis(calendar_of(days_of(*[200] * 8)))
    events = [("alternative", "1.0.0"), ("warned", "1.0.0"), ("error", "1.2.0"), ("removed", "1.3.0"), ("restored", "1.4.0")]
    assert breaches(history("mode-change", events, axis)) == []


@pytest.mark.parametrize("late", [0, 1])
@pytest.mark.parametrize("events", [[("removed", "1.2.0")], [("warned", "1.1.0"), ("removed", "1.2.0")]])
def test_the_policy_is_in_force_on_its_first_day(events: list[tuple[str, str]], late: int) -> None:
    days = days_of(*[100] * 6)
    result = history("removal", events, Axis(calendar_of(days)), in_force=days[2] + late * DAY)
    assert [breach.promised for breach in result.at(dt.date.max).breaches] == [not late]


@pytest.mark.parametrize("late", [0, 1])
def test_a_removal_that_is_due_on_the_first_day_of_the_policy_is_promised(late: int) -> None:
    days = days_of(*[120] * 6)
    announced = {"release": "1.3.0", "text": "it will go"}
    axis = Axis(calendar_of(days))
    result = history("removal", [("warned", "1.0.0")], axis, in_force=days[3] + late * DAY, announced=announced)
    assert [(breach.kind, breach.promised) for breach in result.at(dt.date.max).breaches] == [("too-long", not late)]


@pytest.mark.parametrize("late", [0, 1])
def test_a_nightly_of_the_first_day_of_the_policy_is_promised(late: int) -> None:
    days = days_of(*[200] * 4)
    landed = days[1] + 100 * DAY
    result = with_nightlies(
        history("removal", [("warned", "1.1.0"), ("removed", "1.3.0")], Axis(calendar_of(days)), in_force=landed + late * DAY),
        days[1] - 60 * DAY,
        landed,
    )
    assert [(breach.kind, breach.promised) for breach in result.at(dt.date.max).breaches] == [
        ("too-early-on-nightlies", not late)
    ]


def test_a_nightly_of_a_planned_release_is_there_before_the_release() -> None:
    days = days_of(200, 200)
    planned = [CalendarRelease(version="1.3.0", date=days[-1] + 300 * DAY, source="a plan")]
    result = history("removal", [("warned", "1.1.0"), ("removed", "1.3.0")], Axis(calendar_of(days), planned))
    result = with_nightlies(result, days[1], days[1] + 100 * DAY)
    assert breaches(result) == [("too-early-on-nightlies", "removed", 0, 80)]


def with_nightlies(value: DeprecationHistory, *nightlies: dt.date) -> DeprecationHistory:
    """The same history with the nightly of each event."""
    pairs = zip(value.deprecation.events, nightlies, strict=True)
    events = tuple(event.model_copy(update={"nightly": nightly}) for event, nightly in pairs)
    return replace(value, deprecation=value.deprecation.model_copy(update={"events": events}))


@pytest.mark.parametrize(("gap", "short"), [(179, 1), (180, 0), (181, 0)])
def test_nightlies_have_their_own_day_180(gap: int, short: int) -> None:
    days = days_of(*[200] * 4)
    axis = Axis(calendar_of(days))
    warned = days[1] - 60 * DAY
    result = with_nightlies(history("removal", [("warned", "1.1.0"), ("removed", "1.3.0")], axis), warned, warned + gap * DAY)
    assert breaches(result) == ([("too-early-on-nightlies", "removed", 0, 1)] if short else [])
    landed = warned + gap * DAY
    assert breaches(result, landed - DAY) == []
    assert bool(breaches(result, landed)) is bool(short)
    assert result.at(days[1]).next.earliest.nightly == warned + 180 * DAY  # type: ignore[union-attr]


def test_what_came_before_the_policy_was_in_force_is_no_promise_and_is_still_shown() -> None:
    days = days_of(*[100] * 6)
    axis = Axis(calendar_of(days))
    events = [("warned", "1.1.0"), ("removed", "1.2.0")]
    for in_force, verdict in ((days[2], TimelineState.BROKEN), (days[2] + DAY, TimelineState.NO_PROMISE)):
        result = history("removal", events, axis, in_force=in_force)
        assert result.at(dt.date.max).verdict is verdict
        (breach,) = result.at(dt.date.max).breaches
        assert breach.promised is (verdict is TimelineState.BROKEN)
    ended = [("warned", "1.1.0"), ("removed", "1.3.0")]
    for in_force, verdict in ((days[3], TimelineState.KEPT), (days[3] + DAY, TimelineState.NO_PROMISE)):
        assert history("removal", ended, axis, in_force=in_force).at(dt.date.max).verdict is verdict
    waiting = history("removal", events[:1], axis, in_force=days[3])
    assert [waiting.at(day).verdict for day in (days[2], days[3])] == [TimelineState.NO_PROMISE, TimelineState.KEPT]


# --------------------------------------------------------------------------------------------------------- staying too long


@given(announced=st.integers(2, 6), went=st.integers(2, 9) | st.none())
def test_what_was_announced_is_late_from_the_day_of_that_release(announced: int, went: int | None) -> None:
    days = days_of(*[120] * 10)
    axis = Axis(calendar_of(days))
    events = [("warned", "1.0.0"), *([("removed", f"1.{went}.0")] if went is not None else [])]
    result = history("removal", events, axis, announced={"release": f"1.{announced}.0", "text": "it will go"})
    late = went is None or went > announced
    assert (result.at(dt.date.max).verdict is TimelineState.BROKEN) is late
    assert result.at(days[announced] - DAY).verdict is TimelineState.KEPT
    assert (result.at(days[announced]).verdict is TimelineState.BROKEN) is late
    if went is not None:
        assert [breach[:3] for breach in breaches(result)] == ([("too-long", "removed", went - announced)] if late else [])
        assert result.at(days[went] - DAY).overdue is late
        assert not result.at(days[went]).overdue


def test_what_was_announced_too_early_is_late_only_from_when_it_was_allowed() -> None:
    days = days_of(*[120] * 10)
    axis = Axis(calendar_of(days))
    result = history("removal", [("warned", "1.0.0"), ("removed", "1.2.0")], axis, announced={"release": "1.1.0", "text": "soon"})
    assert breaches(result) == []
    result = history("removal", [("warned", "1.0.0"), ("removed", "1.3.0")], axis, announced={"release": "1.1.0", "text": "soon"})
    assert breaches(result) == [("too-long", "removed", 1, 120)]
    assert "announced for 1.1.0, allowed from 1.2.0" in result.at(dt.date.max).breaches[0].text


def test_a_planned_release_makes_nothing_late() -> None:
    days = days_of(120, 120, 120)
    planned = [CalendarRelease(version="1.4.0", date=days[-1] + 60 * DAY, source="a plan")]
    result = history(
        "removal", [("warned", "1.0.0")], Axis(calendar_of(days), planned), announced={"release": "1.4.0", "text": "x"}
    )
    assert result.due is not None
    assert result.at(dt.date.max).verdict is TimelineState.KEPT


def test_the_newest_release_of_a_day_is_none_that_is_planned() -> None:
    days = days_of(120, 120)
    planned = [CalendarRelease(version="1.3.0", date=days[-1] + 60 * DAY, source="a plan")]
    axis = Axis(calendar_of(days), planned)
    newest = [axis.as_of(day) for day in (days[0] - DAY, days[0], days[1] - DAY, days[1], dt.date.max)]
    assert [point and point.release for point in newest] == [None, "1.0.0", "1.0.0", "1.1.0", "1.2.0"]


# --------------------------------------------------------------------------------------------------------- what may happen


def test_what_may_happen_next_and_from_when() -> None:
    axis = Axis(calendar_of(days_of(*[100] * 5)))
    result = history("mode-change", [("alternative", "1.0.0"), ("warned", "1.1.0"), ("removed", "1.3.0")], axis)
    begun, warned, gone = (result.at(axis[f"1.{line}.0"].day).next for line in (0, 1, 3))
    assert begun is not None
    assert (begun.what, begun.earliest.release) == (("warned",), "1.0.0")
    assert warned is not None
    assert (warned.what, warned.earliest.release, warned.earliest.not_before) == (
        ("removed", "error"),
        "1.3.0",
        axis["1.1.0"].day + 180 * DAY,
    )
    assert gone is not None
    assert (gone.what, gone.earliest.release, gone.earliest.day) == (("restored", "switched"), "1.5.0", axis["1.5.0"].day)
    assert history("removal", [("warned", "1.0.0"), ("removed", "1.2.0")], axis).at(dt.date.max).next is None


def test_where_the_calendar_ends_nothing_is_invented() -> None:
    days = days_of(100, 100)
    axis = Axis(calendar_of(days))
    bound = earliest(axis, timeline_of("removal").steps[1], axis["1.1.0"])
    assert (bound.release, bound.day, bound.missing, bound.not_before) == ("", None, 1, days[1] + 180 * DAY)
    planned = [CalendarRelease(version=f"1.{minor}.0", date=days[-1] + minor * 30 * DAY, source="a plan") for minor in (3, 8)]
    axis = Axis(calendar_of(days), planned)
    bound = earliest(axis, timeline_of("removal").steps[1], axis["1.2.0"])
    assert (bound.release, bound.planned, bound.undated) == ("1.8.0", True, ("1.4", "1.5", "1.6", "1.7"))
    assert bound.line == "1.4"


def test_a_planned_event_has_not_happened() -> None:
    days = days_of(100, 100)
    planned = [CalendarRelease(version="1.3.0", date=days[-1] + 90 * DAY, source="a plan")]
    result = history("removal", [("warned", "1.1.0"), ("removed", "1.3.0")], Axis(calendar_of(days), planned))
    snapshot = result.at(dt.date.max)
    assert (snapshot.state, [item.event.what for item in snapshot.planned]) == ("warned", ["removed"])
    assert not snapshot.planned[0].breaches


# ----------------------------------------------------------------------------------------------------------- laws of sweeps


@st.composite
def any_history(draw: st.DrawFn) -> DeprecationHistory:
    """Any events, kept or not, in the order of the calendar."""
    axis = draw(axes())
    kind = draw(st.sampled_from(sorted(STEPS)))
    releases = sorted(draw(st.lists(st.sampled_from(list(axis.points)), min_size=1, max_size=5)), key=list(axis.points).index)
    whats: list[str] = draw(st.permutations(["alternative", "warned", "error", "removed", "switched", "restored", "withdrawn"]))
    in_force = EPOCH + draw(st.integers(-10, 1500)) * DAY
    announced = draw(st.none() | st.sampled_from(list(axis.points)))
    more = {"announced": {"release": announced, "text": "it will go"}} if announced else {}
    result = history(kind, list(zip(whats, releases, strict=False)), axis, in_force=in_force, **more)
    nightlies = draw(
        st.lists(
            st.none() | st.integers(0, 1500), min_size=len(result.deprecation.events), max_size=len(result.deprecation.events)
        )
    )
    events: Sequence[Event] = [
        event.model_copy(update={"nightly": EPOCH + offset * DAY if offset is not None else None})
        for event, offset in zip(result.deprecation.events, nightlies, strict=True)
    ]
    return replace(result, deprecation=result.deprecation.model_copy(update={"events": tuple(events)}))


@given(made=any_history(), day=st.integers(-50, 3000))
def test_between_the_days_of_change_nothing_changes(made: DeprecationHistory, day: int) -> None:
    asked = EPOCH + day * DAY
    assert made.at(asked) == replace(made._snapshot(asked), day=made.at(asked).day)


@given(made=any_history())
def test_what_is_known_is_never_forgotten(made: DeprecationHistory) -> None:
    """The monotone law: what happened and what is broken only grows, and a verdict never gets better."""
    before = made.at(dt.date.min)
    for day in made.changes:
        now = made.at(day)
        assert now.happened[: len(before.happened)] == before.happened or {
            occurrence.event.what for occurrence in before.happened
        } <= {occurrence.event.what for occurrence in now.happened}
        assert {(breach.kind, breach.what) for breach in before.breaches} <= {
            (breach.kind, breach.what) for breach in now.breaches
        }
        assert ORDER[before.verdict] <= ORDER[now.verdict]
        before = now


def test_a_sweep_is_what_each_day_says() -> None:
    axis = Axis(calendar_of(days_of(*[90] * 8)))
    result = history("removal", [("warned", "1.1.0"), ("removed", "1.2.0")], axis)
    swept = list(sweep([result], EPOCH, EPOCH + 400 * DAY))
    assert len(swept) == 401
    assert all(verdicts == {"removal": result.at(day).verdict} for day, verdicts in swept)
    turned = [day for (_, item), (day, other) in pairwise(swept) if item != other]
    assert turned == [axis["1.1.0"].day, axis["1.2.0"].day]


def test_the_policy_has_a_history_for_each_deprecation() -> None:
    assert [result.deprecation for result in histories(TORCH)] == list(TORCH.deprecations)
