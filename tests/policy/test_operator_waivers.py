"""Waivers for operators: how they are written, and how they are held against what changed."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from tests.counted import CountedOperatorWaiver, counts_of
from torch_compat.errors import PolicyError
from torch_compat.policy import load_policy
from torch_compat.policy.counts import HEADER, LOCK
from torch_compat.policy.operator_waivers import SIDES, OperatorWaiver, Side, apply_waivers, wrong

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from torch_compat.policy import Policy

    Write = Callable[[dict[str, str]], Path]

FILE = "operator_waivers/gone.toml"
TEXT = """\
[operator_waiver]
id = "gone"
title = "They are gone"
patterns = ['^aten::solve([.]solution)?$']
side = "backward"
since = "1.10.0"
reason = "so"
evidence = "seen"
owner = "us"
"""
PLANNED = '[[planned]]\nversion = "1.11.0"\ndate = 2022-03-10\nsource = "here"\n'
GAP = '[[operator_gap]]\nrelease = "1.10.0"\nreason = "half of it was asked"\n'
LOCKED = HEADER + "operator_gap 1.10.0 = 3\noperator_waiver gone = 2\n"


def mistakes(folder: Path) -> list[str]:
    with pytest.raises(PolicyError) as caught:
        load_policy(folder)
    return [str(problem).replace(folder.as_posix(), "P") for problem in caught.value.problems]


def test_a_waiver_is_read(write: Write, files: dict[str, str], small: Policy) -> None:
    policy = load_policy(write(files | {FILE: TEXT, "operators.toml": GAP, LOCK: LOCKED}))
    (waiver,), (gap,) = policy.operator_waivers, policy.operator_gaps
    assert (waiver.id, waiver.side, waiver.since, waiver.expires) == ("gone", "backward", "1.10.0", None)
    assert gap.release == "1.10.0"
    assert policy.counts == {("operator_gap", "1.10.0"): 3, ("operator_waiver", "gone"): 2}
    assert policy.digest != small.digest


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("^aten::solve([.]solution)?$", "aten::solve$", "4: operator_waiver.patterns[0]: must be anchored, from ^ to $, such as"),
        ("^aten::solve([.]solution)?$", "^aten::solve", "4: operator_waiver.patterns[0]: must be anchored, from ^ to $, such as"),
        ("^aten::solve([.]solution)?$", r"^aten::solve\$", "4: operator_waiver.patterns[0]: must be anchored, from ^ to $, such as"),
        ("^aten::solve([.]solution)?$", "^aten::(solve$", "4: operator_waiver.patterns[0]: must be a regular expression:"),
        ("patterns = ['^aten::solve([.]solution)?$']", "patterns = []", "4: operator_waiver.patterns: must name at least one"),
        ("patterns = ['^aten::solve([.]solution)?$']", "patterns = ['^a$', '^a$']", "4: operator_waiver.patterns: names ^a$ more than once"),
        ('"backward"', '"both"', "5: operator_waiver.side: must be one of backward, forward, upgrader; found 'both'"),
        ('"1.10.0"', '"1.10"', "6: operator_waiver.since: must be a full release such as '1.12.0'; found '1.10'"),
        ('"1.10.0"', '"1.10.7"', "6: operator_waiver.since: release '1.10.7' is not in the calendar, and is not planned; did you mean"),
        ('owner = "us"', 'owner = "us"\ncount = 2', "10: operator_waiver.count: unknown key 'count'"),
        ('owner = "us"', 'owner = "us"\nexpires = "2030-01-01"', "10: operator_waiver.expires: must be a date"),
        ('reason = "so"\n', "", "operator_waiver.reason: key 'reason' is missing"),
        ('id = "gone"', 'id = "other"', "2: operator_waiver.id: operator_waiver 'other' stands in gone.toml"),
        ('owner = "us"', 'owner = "us"\nreaders = "all"', "10: operator_waiver.readers: unknown key 'readers'"),
        ("[operator_waiver]", "[[operator_waiver]]", "must be one table, written [operator_waiver]"),
        ("[operator_waiver]", "[waiver]", "a waiver stands in a file of its own, waivers/<id>.toml"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_line(write: Write, files: dict[str, str], old: str, new: str, expected: str) -> None:
    assert TEXT.count(old) == 1
    said = mistakes(write(files | {FILE: TEXT.replace(old, new)}))
    assert [one for one in said if one.startswith(f"P/{FILE}:") and expected in one], said


def test_a_waiver_has_no_place_in_another_file(write: Write, files: dict[str, str]) -> None:
    (said,) = mistakes(write(files | {"operators.toml": TEXT}))
    assert said.endswith("a operator_waiver stands in a file of its own, operator_waivers/<id>.toml")


def test_a_waiver_has_another_name_than_any_other(write: Write, files: dict[str, str]) -> None:
    text = TEXT.replace('id = "gone"', 'id = "known"')
    (said,) = mistakes(write(files | {"operator_waivers/known.toml": text}))
    assert said.endswith("there is a waiver 'known' in waivers/, too; reports name both by it")


def test_a_waiver_for_a_planned_release_ends(write: Write, files: dict[str, str]) -> None:
    text = TEXT.replace('"1.10.0"', '"1.11.0"')
    (said,) = mistakes(write(files | {FILE: text, "planned.toml": PLANNED}))
    assert said.endswith("key 'expires' is missing: 1.11.0 is planned, so what this is for can still change")
    waits = HEADER + "operator_waiver gone = 0\n"  # nothing is recorded of it yet
    policy = load_policy(write(files | {FILE: text + "expires = 2022-06-01\n", "planned.toml": PLANNED, LOCK: waits}))
    assert policy.operator_waivers[0].since == "1.11.0"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (GAP.replace("1.10.0", "1.10.5"), "2: operator_gap[0].release: release '1.10.5' is not in the calendar"),
        (GAP + "count = 3\n", "4: operator_gap[0].count: unknown key 'count'"),
        (GAP.replace("reason", "because"), "3: operator_gap[0].because: unknown key 'because'"),
        (GAP + GAP, "5: operator_gap[1].release: operator_gap '1.10.0' is already defined at "),
    ],
)
def test_a_gap_is_checked(write: Write, files: dict[str, str], text: str, expected: str) -> None:
    said = mistakes(write(files | {"operators.toml": text}))
    assert [one for one in said if one.startswith(f"P/operators.toml:{expected}")], said


# ---------------------------------------------------------------------------------------------------------- what it covers


def waiver(*patterns: str, count: int = 1, side: Side = "backward", name: str = "known", **more: Any) -> OperatorWaiver:
    rest = {"since": "2.0.0", "title": "It is known", "reason": "so", "evidence": "seen", "owner": "us", **more}
    return CountedOperatorWaiver(id=name, patterns=patterns, side=side, count=count, **rest)


def stated(one: OperatorWaiver) -> int:
    """What the lock says that a waiver covers."""
    return counts_of([one])["operator_waiver", one.id]


def changed(*operators: str, since: str = "2.0.0", side: Side = "backward") -> list[tuple[Side, str, str]]:
    return [(side, since, operator) for operator in operators]


def kind(one: OperatorWaiver, *changes: tuple[Side, str, str], others: tuple[OperatorWaiver, ...] = (), day: int = 2026) -> str:
    as_of = dt.date(day, 1, 1)
    return wrong(one, apply_waivers((one, *others), changes, as_of=as_of), stated(one), as_of=as_of)[0]


def test_a_pattern_fits_from_end_to_end() -> None:
    assert waiver("^aten::f|aten::g$").pattern("aten::ff") is None
    assert waiver("^aten::f|aten::g$").pattern("xaten::g") is None
    assert waiver("^aten::f$").pattern("aten::f\n") is None
    assert waiver("^aten::f$", "^aten::g$").pattern("aten::g") == "^aten::g$"


@pytest.mark.parametrize("side", SIDES)
def test_a_waiver_covers_its_own_side_and_release(side: Side) -> None:
    one = waiver("^aten::f$", side=side)
    assert one.covers(side, "2.0.0", "aten::f")
    assert not any(one.covers(other, "2.0.0", "aten::f") for other in SIDES if other != side)
    assert not one.covers(side, "2.0.1", "aten::f")
    applied = apply_waivers([one], [*changed("aten::f", side=side), *changed("aten::f", side=side, since="2.1.0")])
    assert applied.by == {(side, "2.0.0", "aten::f"): (one,)}
    assert applied.counts == Counter({"known": 1})


def test_an_exact_waiver_is_right() -> None:
    assert kind(waiver("^aten::f([.]out)?$", count=2), *changed("aten::f", "aten::f.out", "aten::g")) == ""


def test_a_waiver_that_hides_more_than_it_says() -> None:
    one = waiver("^aten::_foreach_.*$", count=2)
    applied = apply_waivers([one], changed("aten::_foreach_a", "aten::_foreach_b", "aten::_foreach_c"))
    assert wrong(one, applied, stated(one)) == ("hides more", "counts 2 operators, but hides 3: 1 more than it says")


@pytest.mark.parametrize(
    ("expected", "one", "changes"),
    [
        ("unused", waiver("^aten::h$"), changed("aten::f")),
        ("unused", waiver("^aten::f$"), changed("aten::f", since="2.1.0")),
        ("unused", waiver("^aten::f$"), changed("aten::f", side="forward")),
        ("inexact", waiver("^aten::f$", count=2), changed("aten::f")),
        ("idle pattern", waiver("^aten::f$", "^aten::g$"), changed("aten::f")),
    ],
)
def test_a_waiver_that_covers_less_than_it_says(expected: str, one: OperatorWaiver, changes: list[tuple[Side, str, str]]) -> None:
    assert kind(one, *changes) == expected


def test_waivers_that_overlap() -> None:
    one, other = waiver("^aten::f$"), waiver("^aten::.*$", count=2, name="wide")
    assert kind(one, *changed("aten::f", "aten::g"), others=(other,)) == "overlapping"
    assert kind(other, *changed("aten::f", "aten::g"), others=(one,)) == "overlapping"


def test_an_expired_waiver_covers_nothing() -> None:
    one = waiver("^aten::f$", expires=dt.date(2026, 6, 1))
    assert kind(one, *changed("aten::f"), day=2026) == ""
    assert kind(one, *changed("aten::f"), day=2027) == "expired"
    assert apply_waivers([one], changed("aten::f"), as_of=dt.date(2026, 6, 1)).by == {}
    assert apply_waivers([one], changed("aten::f"), as_of=dt.date(2026, 5, 31)).by
