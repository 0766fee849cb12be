"""Waivers for operators: their form, and how they are compared with the changes."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest

from torch_compat.errors import PolicyError
from torch_compat.policy import load_policy
from torch_compat.policy.counts import HEADER, LOCK
from torch_compat.policy.operator_waivers import SIDES, Changed, Covers, OperatorWaiver, Side, apply_waivers, digest_of, wrong

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from torch_compat.operators.differences import Difference
    from torch_compat.policy import Policy

    Write = Callable[[dict[str, str]], Path]

FILE = "operator_waivers/gone.toml"
TEXT = """\
[operator_waiver]
id = "gone"
title = "They are gone"
side = "backward"
since = "1.10.0"
reason = "so"
evidence = "seen"
owner = "us"

[[operator_waiver.covers]]
change = ["removed"]
operators = ["aten::solve", "aten::solve.solution"]
"""
SEEN = "0123456789abcdef"
PLANNED = '[[release]]\nversion = "1.11.0"\ndate = 2022-03-10\nsource = "here"\n'
GAP = '[[behavior]]\nid = "half"\nreaders = "1.10.0"\noutcome = "unlisted"\nbecause = "half of it was asked"\n'
LOCKED = f"{HEADER}operator_gap 1.10.0 = 3\noperator_waiver gone aten::solve = {SEEN}\noperator_waiver gone aten::solve.solution = {SEEN}\n"


def mistakes(folder: Path) -> list[str]:
    with pytest.raises(PolicyError) as caught:
        load_policy(folder)
    return [str(problem).replace(folder.as_posix(), "P") for problem in caught.value.problems]


def test_a_waiver_is_read(write: Write, files: dict[str, str], small: Policy) -> None:
    policy = load_policy(write(files | {FILE: TEXT, "operators.toml": GAP, LOCK: LOCKED}))
    (waiver,), ((release, gap),) = policy.operator_waivers, policy.operator_gaps.items()
    assert (waiver.id, waiver.side, waiver.since, waiver.expires) == ("gone", "backward", "1.10.0", None)
    assert (release, gap.because) == ("1.10.0", "half of it was asked")
    assert waiver.operators == {"aten::solve": ("removed",), "aten::solve.solution": ("removed",)}
    assert policy.counts == {("operator_gap", "1.10.0"): 3}
    assert policy.became == {("gone", "aten::solve"): SEEN, ("gone", "aten::solve.solution"): SEEN}
    assert policy.digest != small.digest


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('"aten::solve", ', '"aten::solve*", ', "12: operator_waiver.covers[0].operators[0]: must be"),
        ('"aten::solve", ', '"solve", ', "12: operator_waiver.covers[0].operators[0]: must be an operator with its overload, such as 'aten::div.Tensor'; found 'solve'"),
        ('"aten::solve", ', '"aten::t", ', "12: operator_waiver.covers[0].operators: must be sorted: aten::solve.solution belongs before aten::t"),
        ('"aten::solve", ', '"aten::solve.solution", ', "12: operator_waiver.covers[0].operators: names aten::solve.solution more than once"),
        ('["aten::solve", "aten::solve.solution"]', "[]", "12: operator_waiver.covers[0].operators: must name at least one"),
        ('["removed"]', '["gone"]', "11: operator_waiver.covers[0].change[0]: must be one of removed, overload-moved,"),
        ('["removed"]', "[]", "11: operator_waiver.covers[0].change: must name at least one"),
        ('["aten::solve", "aten::solve.solution"]', '["aten::solve"]\n[[operator_waiver.covers]]\nchange = ["argument-added"]\noperators = ["aten::solve"]', "15: operator_waiver.covers[1].operators: 'aten::solve' is also in another table of this waiver"),
        ('"backward"', '"both"', "4: operator_waiver.side: must be one of backward, forward, upgrader; found 'both'"),
        ('"1.10.0"', '"1.10"', "5: operator_waiver.since: must be a full release such as '1.12.0'; found '1.10'"),
        ('"1.10.0"', '"1.10.7"', "5: operator_waiver.since: release '1.10.7' is not in the calendar, and is not planned; did you mean"),
        ('owner = "us"', 'owner = "us"\ncount = 2', "9: operator_waiver.count: unknown key 'count'"),
        ('owner = "us"', 'owner = "us"\nexpires = "2030-01-01"', "9: operator_waiver.expires: must be a date"),
        ('reason = "so"\n', "", "operator_waiver.reason: key 'reason' is missing"),
        ('id = "gone"', 'id = "other"', "2: operator_waiver.id: operator_waiver 'other' is in gone.toml"),
        ('owner = "us"', 'owner = "us"\nreaders = "all"', "9: operator_waiver.readers: unknown key 'readers'"),
        ("[operator_waiver]\n", "[[operator_waiver]]\n", "must be one table, written [operator_waiver]"),
        ("[operator_waiver]\n", "[waiver]\n", "each waiver must be in its own file, waivers/<id>.toml"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_line(write: Write, files: dict[str, str], old: str, new: str, expected: str) -> None:
    assert TEXT.count(old) == 1
    message = mistakes(write(files | {FILE: TEXT.replace(old, new)}))
    assert [mistake for mistake in message if mistake.startswith(f"P/{FILE}:") and expected in mistake], message


def test_a_waiver_has_no_place_in_another_file(write: Write, files: dict[str, str]) -> None:
    (message,) = mistakes(write(files | {"operators.toml": TEXT}))
    assert message.endswith("each operator_waiver must be in its own file, operator_waivers/<id>.toml")


def test_a_waiver_has_another_name_than_any_other(write: Write, files: dict[str, str]) -> None:
    text = TEXT.replace('id = "gone"', 'id = "known"')
    (message,) = mistakes(write(files | {"operator_waivers/known.toml": text}))
    assert message.endswith("waivers/ already has a waiver 'known'; reports identify waivers by ID")


def test_a_waiver_for_a_planned_release_ends(write: Write, files: dict[str, str]) -> None:
    text = TEXT.replace('"1.10.0"', '"1.11.0"')
    (message,) = mistakes(write(files | {FILE: text, "planned.toml": PLANNED}))
    assert message.endswith("key 'expires' is missing: 1.11.0 is planned, so the waived change is not final")
    waits = LOCKED.replace("operator_gap 1.10.0 = 3\n", "").replace(SEEN, "waits")  # nothing is recorded of it yet
    text = text.replace('owner = "us"\n', 'owner = "us"\nexpires = 2022-06-01\n')
    policy = load_policy(write(files | {FILE: text, "planned.toml": PLANNED, LOCK: waits}))
    assert policy.operator_waivers[0].since == "1.11.0"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (GAP.replace("1.10.0", "1.10.5"), "3: behavior[0].readers: release '1.10.5' is not in the calendar"),
        (GAP + "count = 3\n", "6: behavior[0].count: unknown key 'count'"),
        (GAP.replace("because", "reason"), "5: behavior[0].reason: unknown key 'reason'"),
        (GAP + GAP, "7: behavior[1].id: behavior 'half' is already defined at "),
    ],
)
def test_a_gap_is_checked(write: Write, files: dict[str, str], text: str, expected: str) -> None:
    message = mistakes(write(files | {"operators.toml": text}))
    assert [mistake for mistake in message if mistake.startswith(f"P/operators.toml:{expected}")], message


# ---------------------------------------------------------------------------------------------------------- what it covers


def waiver(
    *operators: str, change: tuple[Difference, ...] = ("removed",), side: Side = "backward", name: str = "known", **more: Any
) -> OperatorWaiver:
    rest = {"since": "2.0.0", "title": "It is known", "reason": "so", "evidence": "seen", "owner": "us", **more}
    return OperatorWaiver(id=name, side=side, covers=(Covers(change=change, operators=operators),), **rest)


def changed(
    *operators: str,
    change: tuple[Difference, ...] = ("removed",),
    since: str = "2.0.0",
    side: Side = "backward",
    old: str = "it was",
    new: str | None = None,
) -> list[Changed]:
    return [Changed(side, since, operator, change, old, new) for operator in operators]


def accepted(item: OperatorWaiver, changes: list[Changed]) -> dict[tuple[str, str], str]:
    """What the lock says of what it covers."""
    return {key: digest_of(shown) for key, shown in apply_waivers([item], changes).covered.items()}


def kind(item: OperatorWaiver, *changes: Changed, others: tuple[OperatorWaiver, ...] = (), day: int = 2026) -> str:
    as_of = dt.date(day, 1, 1)
    return wrong(item, apply_waivers((item, *others), changes, as_of=as_of), accepted(item, [*changes]), as_of=as_of)[0]


@pytest.mark.parametrize("side", SIDES)
def test_a_waiver_covers_its_own_side_release_and_change(side: Side) -> None:
    item = waiver("aten::f", side=side)
    (good,) = changed("aten::f", side=side)
    assert item.takes(good)
    assert not any(item.takes(good._replace(side=other)) for other in SIDES if other != side)
    assert not item.takes(good._replace(since="2.0.1"))
    assert not item.takes(good._replace(operator="aten::f.out"))
    assert not item.takes(good._replace(change=("alias-annotation",)))
    assert not item.takes(good._replace(change=("removed", "alias-annotation")))
    applied = apply_waivers([item], [good, *changed("aten::f", side=side, since="2.1.0")])
    assert applied.by == {good: (item,)}
    assert applied.covered == {("known", "aten::f"): (good,)}


def test_the_order_of_what_differs_has_no_meaning() -> None:
    item = waiver("aten::f", change=("alias-annotation", "argument-renamed"))
    assert item == waiver("aten::f", change=("argument-renamed", "alias-annotation"))
    assert kind(item, *changed("aten::f", change=("argument-renamed", "alias-annotation"))) == ""


def test_an_exact_waiver_is_right() -> None:
    assert kind(waiver("aten::f", "aten::f.out"), *changed("aten::f", "aten::f.out", "aten::g")) == ""


def test_a_waiver_for_another_change_says_which() -> None:
    item = waiver("aten::f", "aten::g", change=("alias-annotation",))
    shown = [*changed("aten::f", change=("alias-annotation",)), *changed("aten::g")]
    applied = apply_waivers([item], shown)
    message = ("another change", "is for a different change: aten::g has the change removed, not alias-annotation")
    assert wrong(item, applied, accepted(item, shown)) == message
    assert shown[1] not in applied.by


@pytest.mark.parametrize(
    ("expected", "one", "changes"),
    [
        ("unused", waiver("aten::h"), changed("aten::f")),
        ("unused", waiver("aten::f"), changed("aten::f", since="2.1.0")),
        ("unused", waiver("aten::f"), changed("aten::f", side="forward")),
        ("did not change", waiver("aten::f", "aten::g"), changed("aten::f")),
        ("another change", waiver("aten::f"), changed("aten::f", change=("argument-added",))),
        ("another change", waiver("aten::f"), changed("aten::f", change=("removed", "argument-added"))),
    ],
)
def test_a_waiver_that_covers_less_than_it_says(expected: str, one: OperatorWaiver, changes: list[Changed]) -> None:
    assert kind(one, *changes) == expected


@pytest.mark.parametrize("other", [changed("aten::f", new="it is now"), changed("aten::f", old="it had been"), []])
def test_what_it_became_is_pinned(other: list[Changed]) -> None:
    item, shown = waiver("aten::f"), changed("aten::f")
    assert wrong(item, apply_waivers([item], shown), accepted(item, other))[0] == "became something else"
    assert wrong(item, apply_waivers([item], shown), None) == ("", "")  # nothing can be pinned yet


def test_many_are_named_in_part() -> None:
    names = [f"aten::f{at}" for at in range(9)]
    item = waiver("aten::e", *names)
    text = wrong(item, apply_waivers([item], changed("aten::e")), None)[1]
    assert text.endswith("aten::f3; aten::f4; and 4 more")


def test_waivers_that_overlap() -> None:
    item, other = waiver("aten::f"), waiver("aten::f", "aten::g", name="wide")
    assert kind(item, *changed("aten::f", "aten::g"), others=(other,)) == "overlapping"
    assert kind(other, *changed("aten::f", "aten::g"), others=(item,)) == "overlapping"


def test_two_changes_of_one_operator_need_two_waivers() -> None:
    """Its upgrader may go with the release in which it goes itself."""
    item, other = waiver("aten::f"), waiver("aten::f", change=("upgrader-dropped",), name="other")
    both = [*changed("aten::f"), *changed("aten::f", change=("upgrader-dropped",))]
    assert (kind(item, *both, others=(other,)), kind(other, *both, others=(item,))) == ("", "")
    assert [len(fitting) for fitting in apply_waivers([item, other], both).by.values()] == [1, 1]


def test_an_expired_waiver_covers_nothing() -> None:
    item = waiver("aten::f", expires=dt.date(2026, 6, 1))
    assert kind(item, *changed("aten::f"), day=2026) == ""
    assert kind(item, *changed("aten::f"), day=2027) == "expired"
    assert apply_waivers([item], changed("aten::f"), as_of=dt.date(2026, 6, 1)).by == {}
    assert apply_waivers([item], changed("aten::f"), as_of=dt.date(2026, 5, 31)).by
