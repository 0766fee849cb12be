"""versions-lowest: a writer states the lowest file format version that its operators need."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest

from tests.rules.conftest import file_format, rule
from torch_compat.policy.behaviors import BehaviorEntry
from torch_compat.policy.model import CalendarRelease, Format, Milestone
from torch_compat.policy.upgraders import Upgrader
from torch_compat.releases.calendar import Calendar
from torch_compat.releases.sets import ReleaseSet

if TYPE_CHECKING:
    from tests.rules.conftest import World

NAME = "versions-lowest"


def raised(version: int, release: str = "1.1.0", **more: Any) -> Format:
    """A version that archives with aten::gelu have."""
    return file_format(version, operators=("aten::gelu",), written_from=None, **more).model_copy(
        update={"written_from": Milestone(release=release, day=more.pop("day", None))}
    )


def versions(world: World, *formats: Format) -> None:
    world.promise(formats=(file_format(3), *formats), rules=(rule(NAME),), upgraders=(upgrader("aten::gelu", 10),))


def state(world: World, version: int, *operators: str, release: str = "1.1.0", **more: Any) -> None:
    world.fixture(release, versions={"file-format": version}, operators=list(operators), **more)


def upgrader(operator: str, bump: int) -> Upgrader:
    name, _, overload = operator.removeprefix("aten::").partition(".")
    return Upgrader(
        id=f"{name}_{overload}_0_{bump - 1}" if overload else f"{name}_0_{bump - 1}", operator=operator, bump=bump,
        old_schema=f"{operator}(Tensor self) -> Tensor", body="def f(self: Tensor) -> Tensor:\n  return self",
        link="https://github.com/pytorch/pytorch/pull/1",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("stated", "operators", "verdict"),
    [
        (3, (), "pass"),
        (3, ("aten::add",), "pass"),
        (10, ("aten::gelu",), "pass"),
        (10, ("aten::gelu", "aten::add"), "pass"),
        (10, ("*",), "pass"),
        (3, ("*",), "fail: too low"),
        (11, ("*",), "fail: bumped"),
        (10, (), "fail: bumped"),  # a plain archive
        (10, ("aten::add",), "fail: bumped"),
        (11, ("aten::gelu",), "fail: bumped"),
        (3, ("aten::gelu",), "fail: too low"),
        (2, (), "fail: too low"),
    ],
)
def test_the_version_is_exactly_that_of_the_operators(
    stated: int, operators: tuple[str, ...], verdict: str, world: World
) -> None:
    versions(world, raised(10))
    state(world, stated, *operators)
    assert world.verdicts(NAME) == {"torch-1.1.0/add": verdict}


def test_a_release_before_the_change_does_not_raise_the_version(world: World) -> None:
    versions(world, raised(10))
    state(world, 3, "aten::gelu", release="1.0.0")
    state(world, 10, "aten::gelu", release="1.0.0", recipe="early")
    assert world.verdicts(NAME) == {"torch-1.0.0/add": "pass", "torch-1.0.0/early": "fail: bumped"}


def test_the_reason_names_what_is_needed(world: World) -> None:
    versions(world, raised(10))
    state(world, 10)
    state(world, 3, "aten::gelu", recipe="low")
    state(world, 2, recipe="plain")
    texts = [judgement.cause.text for judgement in world.judgements(NAME) if judgement.cause is not None]
    where = "torchscript archives written by torch 1.1.0 declare file format"
    assert texts == [
        f"{where} 10, but 3 is enough: older readers refuse them unnecessarily",
        f"{where} 3, and aten::gelu needs 10: older readers do not refuse them",
        f"{where} 2, and all archives of the family have 3: older readers do not refuse them",
    ]


def test_a_writer_that_bumps_everything_is_one_finding(world: World) -> None:
    versions(world, raised(10))
    for number in range(5):
        state(world, 10, recipe=f"plain_{number}")
    report = world.judge()
    (result,) = [finding for finding in report.findings if finding.rule == NAME]
    assert (report.exit_status, result.count, result.id) == (1, 5, f"{NAME}:bumped:torchscript:10:3@1.1.0")


def test_families_have_versions_of_their_own(world: World) -> None:
    versions(world, raised(10, families=("torchscript",)), file_format(6, families=("package",)))
    state(world, 6, family="package", recipe="package")
    state(world, 6, recipe="program")
    state(world, 6, "aten::gelu", family="package", recipe="holds")  # there the operator does not raise it
    assert world.verdicts(NAME) == {
        "torch-1.1.0/package": "pass",
        "torch-1.1.0/program": "fail: bumped",
        "torch-1.1.0/holds": "pass",
    }


def test_overloads_without_an_upgrader_raise_nothing_but_by_name(world: World) -> None:
    versions(world, raised(10, any_overload=ReleaseSet.parse("1.1.0")))
    world.promise(upgraders=(upgrader("aten::gelu", 10), upgrader("aten::gelu.old", 9)))
    for release in ("1.1.0", "2.0.0"):
        state(world, 10, "aten::gelu", release=release)
        state(world, 10, "aten::gelu.int", release=release, recipe="number")
        state(world, 10, "aten::gelu.old", release=release, recipe="another")
    assert world.verdicts(NAME) == {
        "torch-1.1.0/add": "pass",
        "torch-1.1.0/number": "pass",
        "torch-1.1.0/another": "pass",
        "torch-2.0.0/add": "pass",
        "torch-2.0.0/number": "fail: bumped",
        "torch-2.0.0/another": "fail: bumped",  # the upgrader is of another version
    }


def test_operators_that_the_recipe_does_not_declare_count(world: World) -> None:
    versions(world, raised(10))
    world.promise(
        behaviors=(
            BehaviorEntry(
                id="held",
                all=("recipe:add",),
                writers=ReleaseSet.parse("1.1.0..1.1.1"),
                outcome="writes",
                operators=("aten::gelu",),
                because="so",
            ),
        )
    )
    for release in ("1.0.0", "1.1.0", "1.1.1", "2.0.0"):
        state(world, 3 if release in {"1.0.0", "2.0.0"} else 10, release=release)
        state(world, 3, release=release, recipe="other")
    assert set(world.verdicts(NAME).values()) == {"pass"}


def test_archives_that_state_no_version_and_synthetic_ones_are_not_asked(world: World) -> None:
    versions(world, raised(10))
    world.fixture("1.1.0", versions={"bytecode": 9}, container="flatbuffer")
    world.synthetic(versions={"file-format": 9})
    assert world.judgements(NAME) == []


@pytest.mark.parametrize(
    ("build", "day", "since", "stated"),
    [
        ("2.1.0.dev20260601", dt.date(2026, 6, 1), None, 10),  # the day of the planned release
        ("2.1.0.dev20260531", dt.date(2026, 5, 31), None, 3),
        ("2.1.0.dev20260301", dt.date(2026, 3, 1), dt.date(2026, 3, 1), 10),
        ("2.1.0.dev20260228", dt.date(2026, 2, 28), dt.date(2026, 3, 1), 3),
        ("2.1.0rc1", dt.date(2026, 5, 1), None, 10),  # a candidate of the release that brings it
        ("2.0.1rc1", dt.date(2026, 5, 1), None, 3),
    ],
)
def test_a_build_writes_a_planned_version_from_its_day_on(
    build: str, day: dt.date, since: dt.date | None, stated: int, world: World
) -> None:
    change = raised(10).model_copy(update={"written_from": Milestone(release="2.1.0", day=since)})
    versions(world, change)
    like = next(iter(world.policy.calendar))
    own = CalendarRelease.model_construct(**{**like.model_dump(), "version": build, "date": day})
    world.promise(
        planned=(CalendarRelease(version="2.1.0", date=dt.date(2026, 6, 1), source="here"),),
        calendar=Calendar([*world.policy.calendar, own]),
    )
    state(world, stated, "aten::gelu", release=build)
    state(world, 13 - stated, "aten::gelu", release=build, recipe="other")
    assert world.verdicts(NAME) == {
        f"torch-{build}/add": "pass",
        f"torch-{build}/other": "fail: too low" if stated == 10 else "fail: bumped",
    }
