"""bumps-in-time: readers learn a format version before writers write it, and its operators have upgraders."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.rules.conftest import DATES, rule
from torch_compat.corpus.operators import read_operators
from torch_compat.policy.model import CalendarRelease, Format, Milestone

if TYPE_CHECKING:
    from pathlib import Path

    from tests.rules.conftest import World

NAME = "bumps-in-time"
DAY = dt.date(2020, 9, 1)
PLANNED = CalendarRelease(version="2.1.0", date=dt.date(2026, 6, 1), source="here")


def bump(world: World, read: Milestone, written: Milestone | None, **more: Any) -> None:
    """The policy has version 11, from these days on, and promises since the middle of the calendar."""
    given = {"written_from": written} if written else {"no_writer": "skipped"}
    entry = Format(**{"kind": "file-format", "version": 11, "meaning": "so", "read_from": read, **given, **more})
    world.promise(
        formats=(entry,),
        in_force_from=DATES["1.1.0"],
        rules=(rule(NAME, parameters={"kinds": ["file-format"]}),),
        planned=(PLANNED,),
    )


def upgraders(world: World, folder: Path, **entries: int) -> None:
    """Record operators, with an upgrader each for the version given."""
    place = folder / "operators"
    place.mkdir()
    head = f"# releases {' '.join(DATES)}\n# obtained\t1.0.0..\tAsked.\n"
    rows = [f"aten::{name}.Tensor\t{json.dumps([[version, 'up', 'old']])}\t2.0.0..\n" for name, version in entries.items()]
    (place / "schemas.txt").write_text(f"# history 1 texts\n{head}aten::add(Tensor self) -> Tensor\t1.0.0..\n")
    (place / "operator_versions.txt").write_text(f"# history 1 facts\n{head}{''.join(rows)}")
    (place / "constants.txt").write_text(f'# history 1 facts\n{head}file_formats > add\t["version",3]\t1.0.0..\n')
    world.operators = read_operators(folder)


@pytest.mark.parametrize(
    ("read", "written", "verdict"),
    [
        (Milestone(release="1.1.0"), Milestone(release="1.1.0"), "fail: too early"),
        (Milestone(release="1.1.0"), Milestone(release="1.1.1"), "fail: too early"),  # nine days apart
        (Milestone(release="1.1.0"), Milestone(release="2.0.0"), "pass"),
        (Milestone(release="1.1.0", day=DAY), Milestone(release="2.0.0", day=DAY + dt.timedelta(13)), "fail: too early"),
        (Milestone(release="1.1.0", day=DAY), Milestone(release="2.0.0", day=DAY + dt.timedelta(14)), "pass"),
        (Milestone(release="1.1.0"), Milestone(release="1.0.0"), "no-promise"),  # before there was a policy
        (Milestone(release="2.1.0"), Milestone(release="2.1.0"), "fail: too early"),  # planned
        (Milestone(release="2.0.0"), Milestone(release="2.1.0"), "pass"),
    ],
)
def test_writers_wait_for_readers(read: Milestone, written: Milestone, verdict: str, world: World) -> None:
    bump(world, read, written)
    assert world.verdicts(NAME) == {"file-format 11": verdict}


def test_it_says_how_many_days_are_missing(world: World) -> None:
    bump(world, Milestone(release="1.1.0"), Milestone(release="1.1.1"))
    (result,) = world.judgements(NAME)
    assert result.cause is not None
    assert result.cause.text.endswith(
        "readers support it from 2020-06-01, but writers already write it from 2020-06-10, 5 days too early"
    )


def test_an_operator_without_an_upgrader_is_named(world: World, tmp_path: Path) -> None:
    bump(world, Milestone(release="2.0.0"), Milestone(release="2.1.0"), operators=("aten::foo", "aten::bar", "aten::baz"))
    upgraders(world, tmp_path, foo=11, bar=10)  # of another version
    assert world.verdicts(NAME) == {
        "file-format 11": "pass",
        "file-format 11, aten::foo": "pass",
        "file-format 11, aten::bar": "fail: no upgrader",
        "file-format 11, aten::baz": "fail: no upgrader",
    }


def test_without_recorded_operators_nothing_is_known_of_upgraders(world: World) -> None:
    bump(world, Milestone(release="1.1.0"), Milestone(release="2.0.0"), operators=("aten::foo",))
    assert world.verdicts(NAME) == {"file-format 11": "pass", "file-format 11, aten::foo": "not-checked: not recorded"}


def test_before_the_policy_nothing_was_promised_of_upgraders(world: World, tmp_path: Path) -> None:
    bump(world, Milestone(release="1.0.0"), Milestone(release="1.0.0"), operators=("aten::foo",))
    upgraders(world, tmp_path)
    assert set(world.verdicts(NAME).values()) == {"no-promise"}


@pytest.mark.parametrize("change", [{"kind": "export-schema"}, {}])
def test_other_kinds_and_what_nobody_writes_are_not_asked(change: dict[str, Any], world: World) -> None:
    bump(world, Milestone(release="1.1.0"), Milestone(release="1.1.0") if change else None, **change)
    assert world.judgements(NAME) == []
