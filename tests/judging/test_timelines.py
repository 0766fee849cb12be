"""Where the file of a deprecation and the evidence disagree: states, warnings, alternatives and documentation of one release."""

from __future__ import annotations

import datetime as dt
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from tests.policy.timelines import EPOCH, calendar_of, history
from torch_compat.corpus.deprecations import DeprecationObservation, Use
from torch_compat.judging.timelines import Mismatch, Seen, State, TimelineRow, derive, expected, mismatches, rows
from torch_compat.policy.timeline import Axis

if TYPE_CHECKING:
    from torch_compat.judging.evidence import Evidence
    from torch_compat.policy.timeline import DeprecationHistory

AXIS = Axis(calendar_of([EPOCH.replace(year=EPOCH.year + number) for number in range(6)]))
WORKED, LACKS = Use("worked"), Use("lacks")
WARNED = Use("worked", (("UserWarning", "torch.foo is deprecated"),))
GONE = Use("raised", error={"type": "RuntimeError", "message": "torch.foo was removed"})
OTHER = Use("raised", error={"type": "RuntimeError", "message": "out of memory"})
HOLDS = ({"release": "1.1.0", "holds": "is deprecated"},)


def removal(**more: Any) -> DeprecationHistory:
    """A function that warns from 1.1.0 on, and does not exist from 1.3.0 on."""
    return history("removal", [("warned", "1.1.0"), ("removed", "1.3.0")], AXIS, **more)


def observation(
    deprecated: Use = WARNED, alternative: Use = WORKED, docs: tuple[str, ...] | None = ("It is deprecated.",)
) -> DeprecationObservation:
    return DeprecationObservation("removal", "key", deprecated, alternative, docs)


def disagreements(value: DeprecationHistory, **observed: DeprecationObservation) -> list[Mismatch]:
    """The disagreements with releases: ``v1_1=...`` is of 1.1.0."""
    releases = {f"{name[1:].replace('_', '.')}.0": item for name, item in observed.items()}
    evidence = cast("Evidence", SimpleNamespace(deprecations={value.deprecation.probe: releases}))
    states = {release: derive(value.deprecation, item, exists=True) for release, item in releases.items()}
    return list(mismatches(evidence, value, states))


def kinds(value: DeprecationHistory, **observed: DeprecationObservation) -> list[tuple[str, str]]:
    return [(item.what, item.release) for item in disagreements(value, **observed)]


# --------------------------------------------------------------------------------------------------------------- states


@pytest.mark.parametrize(
    ("deprecated", "alternative", "state"),
    [
        (WORKED, WORKED, State.SILENT),
        (WARNED, WORKED, State.WARNED),
        (Use("worked", said="torch.foo is deprecated"), WORKED, State.WARNED),
        (Use("worked", (("UserWarning", "something else"),)), WORKED, State.SILENT),
        (Use("worked", behaves="new"), WORKED, State.NEW),
        (Use("worked", behaves="old"), WORKED, State.SILENT),
        (GONE, WORKED, State.ERROR),
        (OTHER, WORKED, State.CANNOT_TELL),
        (Use("crashed"), WORKED, State.CANNOT_TELL),
        (LACKS, WORKED, State.REMOVED),
    ],
)
def test_the_state_of_a_release(deprecated: Use, alternative: Use, state: State) -> None:
    assert derive(removal().deprecation, observation(deprecated, alternative), exists=True).state is state


def test_what_did_not_exist_before_is_absent_and_not_removed() -> None:
    assert derive(removal().deprecation, observation(LACKS), exists=False) == Seen(State.ABSENT)


@pytest.mark.parametrize(
    ("alternative", "state"), [(WORKED, State.ERROR), (OTHER, State.CANNOT_TELL), (LACKS, State.CANNOT_TELL)]
)
def test_an_error_without_a_stated_text_counts_only_where_the_alternative_works(alternative: Use, state: State) -> None:
    deprecation = removal(error=None).deprecation
    assert derive(deprecation, observation(OTHER, alternative), exists=True).state is state


def test_the_newest_event_by_then_says_what_is_expected() -> None:
    value = removal()
    assert [expected(value, f"1.{line}.0") for line in range(5)] == [
        {State.SILENT, State.ABSENT},
        {State.WARNED},
        {State.WARNED},
        {State.REMOVED, State.ERROR},
        {State.REMOVED, State.ERROR},
    ]
    assert kinds(value, v1_0=observation(docs=())) == [("state", "1.0.0")]
    assert kinds(value, v1_3=observation(LACKS, docs=None)) == []


def test_a_mode_that_came_back_has_its_new_meaning_and_anything_else_its_old() -> None:
    events = [("warned", "1.0.0"), ("removed", "1.1.0"), ("restored", "1.2.0")]
    assert expected(history("mode-change", events, AXIS), "1.2.0") == {State.NEW}
    assert expected(history("removal", events, AXIS), "1.2.0") == {State.SILENT, State.WARNED}


@pytest.mark.parametrize(
    ("silent", "error", "raises"), [(False, "was removed", True), (True, "was removed", False), (False, None, False)]
)
def test_only_a_loud_change_with_a_stated_error_may_still_raise(silent: bool, error: str | None, raises: bool) -> None:
    events = [("warned", "1.0.0"), ("switched", "1.2.0")]
    value = history("behaviour-change", events, AXIS, silent=silent, error=error)
    assert (State.ERROR in expected(value, "1.2.0")) is raises


def test_a_disagreement_begins_with_the_first_release_of_an_unbroken_run() -> None:
    value = removal(docs=HOLDS)
    silent = observation(WORKED)
    told = disagreements(value, v1_1=silent, v1_2=silent)
    assert [(item.what, item.release, item.since) for item in told] == [("state", "1.1.0", "1.1.0"), ("state", "1.2.0", "1.1.0")]
    events = [("warned", "1.1.0")]
    told = disagreements(history("removal", events, AXIS, docs=HOLDS), v1_1=silent, v1_2=observation(), v1_3=silent)
    assert [(item.release, item.since) for item in told] == [("1.1.0", "1.1.0"), ("1.3.0", "1.3.0")]


def judged(value: DeprecationHistory, since: str, **observed: DeprecationObservation) -> TimelineRow:
    """The deprecation as of the last day, where its probe says that the feature exists from a release on."""
    releases = {f"{name[1:].replace('_', '.')}.0": item for name, item in observed.items()}
    calendar = calendar_of([point.day for point in AXIS.lines])
    policy = SimpleNamespace(
        calendar=calendar,
        planned=(),
        timelines=(value.timeline,),
        deprecations=(value.deprecation,),
        in_force_from=value.in_force,
    )
    evidence = SimpleNamespace(
        policy=policy,
        deprecations={value.deprecation.probe: releases},
        corpus=SimpleNamespace(deprecations=[SimpleNamespace(name=value.deprecation.probe, since=since)]),
        rank={release.version: at for at, release in enumerate(calendar)},
    )
    (row,) = rows(cast("Evidence", evidence), dt.date.max)
    return row


def test_a_feature_is_absent_before_the_first_release_with_it_and_removed_from_then_on() -> None:
    row = judged(removal(), "1.1.0", v1_0=observation(LACKS, docs=None), v1_1=observation(LACKS, docs=None))
    assert [state.state for state in row.states.values()] == [State.ABSENT, State.REMOVED]


@pytest.mark.parametrize(("unclear", "verdict"), [((), "cannot-tell"), (({"readers": "1.2.0..1.2.0", "why": "so"},), "kept")])
def test_a_state_that_is_unclear_leaves_the_verdict_open_unless_the_file_says_so(unclear: Any, verdict: str) -> None:
    value = removal(docs=HOLDS, unclear=unclear)
    row = judged(value, "1.0.0", v1_1=observation(), v1_2=observation(OTHER))
    assert (str(row.verdict), row.fits) == (verdict, verdict == "kept")


def test_a_state_that_the_file_contradicts_leaves_the_verdict_open() -> None:
    assert str(judged(removal(docs=HOLDS), "1.0.0", v1_1=observation(), v1_3=observation(GONE)).verdict) == "kept"
    row = judged(removal(docs=HOLDS), "1.0.0", v1_1=observation(WORKED))
    assert (str(row.verdict), row.why) == (
        "cannot-tell",
        ("removal: in 1.1.0 it must be warned according to its events, but it is silent",),
    )


# ------------------------------------------------------------------------------------------------- warnings, alternatives


@pytest.mark.parametrize(
    ("warnings", "stated", "right"),
    [
        ((("UserWarning", "torch.foo is deprecated"),), None, True),
        ((("DeprecationWarning", "torch.foo is deprecated"),), None, False),
        ((("DeprecationWarning", "torch.foo is deprecated"),), "DeprecationWarning", True),
        ((("DeprecationWarning", "torch.foo is deprecated"),), "PendingDeprecationWarning", False),
        ((("UserWarning", "torch.foo is deprecated"),), "DeprecationWarning", False),
        ((("DeprecationWarning", "torch.foo is deprecated"), ("UserWarning", "torch.foo is deprecated")), None, True),
        ((("UserWarning", "torch.foo is deprecated"), ("DeprecationWarning", "something else")), None, True),
    ],
)
def test_a_warning_that_python_hides_must_be_stated(
    warnings: tuple[tuple[str, str], ...], stated: str | None, right: bool
) -> None:
    hidden = [{"readers": "1.1.0..", "category": stated}] if stated else []
    told = kinds(removal(docs=HOLDS, hidden=hidden), v1_1=observation(Use("worked", warnings)))
    assert told == ([] if right else [("warning", "1.1.0")])


def test_a_warning_on_standard_error_is_not_hidden() -> None:
    use = Use("worked", (("DeprecationWarning", "torch.foo is deprecated"),), said="torch.foo is deprecated")
    assert kinds(removal(docs=HOLDS), v1_1=observation(use)) == []


def with_alternative() -> DeprecationHistory:
    """A function whose alternative exists from 1.1.0 on."""
    return history(
        "removal", [("alternative", "1.1.0"), ("warned", "1.2.0")], AXIS, docs=({"release": "1.2.0", "holds": "deprecated"},)
    )


def test_the_alternative_exists_from_the_stated_release_on_and_not_before() -> None:
    value = with_alternative()
    silent = observation(WORKED, LACKS, ())
    assert kinds(value, v1_0=silent) == []
    assert kinds(value, v1_1=silent) == [("alternative", "1.1.0")]
    assert kinds(value, v1_0=observation(WORKED, WORKED, ())) == [("alternative", "1.0.0")]
    assert kinds(value, v1_1=observation(WORKED, OTHER, ())) == [("alternative", "1.1.0")]


def test_an_alternative_without_a_release_must_work_only_where_the_feature_is_deprecated() -> None:
    value = removal(docs=HOLDS)
    assert kinds(value, v1_0=observation(WORKED, OTHER, ())) == []
    assert kinds(value, v1_1=observation(WARNED, OTHER)) == [("alternative", "1.1.0")]


@pytest.mark.parametrize(("use", "right"), [(LACKS, True), (WORKED, False), (OTHER, False)])
def test_an_alternative_in_another_package_is_lacking_in_torch(use: Use, right: bool) -> None:
    told = kinds(removal(docs=HOLDS, alternative_package="scipy"), v1_1=observation(WARNED, use))
    assert told == ([] if right else [("alternative", "1.1.0")])


def test_an_alternative_must_not_warn_itself() -> None:
    loud = Use("worked", (("UserWarning", "torch.bar is deprecated"),))
    assert kinds(removal(docs=HOLDS), v1_1=observation(WARNED, loud)) == [("alternative warning", "1.1.0")]
    printed = Use("worked", said="torch.bar is deprecated")
    assert kinds(removal(docs=HOLDS), v1_1=observation(WARNED, printed)) == [("alternative warning", "1.1.0")]
    machine = Use("worked", (("UserWarning", "User provided device_type of 'cuda', but CUDA is not available"),))
    assert kinds(removal(docs=HOLDS), v1_1=observation(WARNED, machine)) == []
    assert kinds(with_alternative(), v1_0=observation(WORKED, loud, ())) == [("alternative", "1.0.0")]


# ------------------------------------------------------------------------------------------------------- documentation


def test_the_documentation_contains_the_words_from_the_stated_release_on() -> None:
    value = removal(docs=({"release": "1.2.0", "holds": "deprecated"},))
    assert kinds(value, v1_2=observation(docs=())) == [("documentation", "1.2.0")]
    assert kinds(value, v1_2=observation(docs=None)) == [("documentation", "1.2.0")]
    assert kinds(value, v1_1=observation(docs=("It is a deprecated idea.",))) == [("documentation", "1.1.0")]
    assert kinds(value, v1_1=observation(docs=())) == []


def test_the_documentation_may_stop_saying_so() -> None:
    value = removal(docs=({"release": "1.1.0", "holds": "deprecated"}, {"release": "1.2.0", "absent": True}))
    assert kinds(value, v1_2=observation(docs=())) == []
    assert kinds(value, v1_2=observation(docs=("It is a deprecated idea.",))) == [("documentation", "1.2.0")]


@pytest.mark.parametrize("deprecated", [LACKS, OTHER])
def test_only_a_docstring_that_is_gone_is_excused(deprecated: Use) -> None:
    value = removal(docs=HOLDS)
    assert ("documentation", "1.3.0") not in kinds(value, v1_3=observation(deprecated, docs=None))
    assert ("documentation", "1.3.0") in kinds(value, v1_3=observation(deprecated, docs=("Nothing to see.",)))


def test_every_announcement_is_stated_and_every_stated_one_is_made() -> None:
    announced = "It is deprecated. It will be removed in 1.3."
    stated = ({**HOLDS[0], "announces": ["will be removed in 1.3"]},)
    assert kinds(removal(docs=HOLDS), v1_1=observation(docs=(announced,))) == [("announcement", "1.1.0")]
    assert kinds(removal(docs=stated), v1_1=observation(docs=(announced,))) == []
    assert kinds(removal(docs=stated), v1_2=observation()) == [("announcement", "1.2.0")]


@pytest.mark.parametrize("deprecated", [LACKS, OTHER])
def test_an_announcement_is_not_required_of_a_docstring_that_is_gone(deprecated: Use) -> None:
    value = removal(docs=({"release": "1.1.0", "holds": "deprecated", "announces": ["will be removed in 1.3"]},))
    assert ("announcement", "1.3.0") not in kinds(value, v1_3=observation(deprecated, docs=None))
    assert ("announcement", "1.3.0") in kinds(value, v1_3=observation(deprecated, docs=("It deprecated that.",)))
