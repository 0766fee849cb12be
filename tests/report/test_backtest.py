"""Facts of the backtest: how items are grouped, which facts are sampled, and what labels must satisfy."""

from __future__ import annotations

from dataclasses import replace

import pytest

from torch_compat.errors import CorpusError, PolicyError
from torch_compat.report.backtest import (
    FEW,
    LABELS,
    Backtested,
    BacktestNotes,
    Fact,
    Fate,
    Label,
    backtest_md,
    drawn,
    drawn_md,
    facts_of,
    held,
    read_hand,
    section,
)
from torch_compat.report.candidate import CandidateItem


def item(id_: str, what: str = "computes", **facts: str) -> CandidateItem:
    """An item with this id."""
    known = {"cause": "it differs", "before": "same", "after": "different", "witness": "torch-1.5.1/add", **facts}
    return CandidateItem(
        id=id_, what=what, policy="breaks", says="", rule="", allowed_from=None, count=2, reproduce=None, first=None, **known
    )  # fmt: skip


def fact(name: str) -> Fact:
    """A fact of this name."""
    return Fact(name, "computes", f"{name}: 2 instead of 1", "breaks", f"torch-1.5.1/{name}", "same", "different", 3, (name,))


def release(version: str, count: int) -> Backtested:
    """A release with so many facts."""
    facts = tuple(fact(f"computes:f{number}") for number in range(count))
    return Backtested(version, "2020-01-01", "torch-1.5.1", f"torch-{version}", 10, facts, 0, 0, 0, 0)


FOUND = [release("1.6.0", 60), release("1.7.1", 80), release("2.12.1", 5)]


@pytest.mark.parametrize(
    ("one", "other", "count"),
    [
        (item("computes:ties"), item("writes:golden:ties", "writes"), 1),
        (item("computes:ties"), item("older reader:ties", "older reader"), 1),
        (item("computes:ties"), item("computes:clamp"), 2),
        (item("computes:raises:no kernel"), item("loads:refused:no kernel", "loads"), 1),
        (item("computes:raises:no kernel"), item("computes:raises:no tensor"), 2),
        (item("writes:version:file-format 2 to 3", "writes"), item("writes:version:file-format none to 3, bytecode 4 to 5", "writes"), 1),
        (item("operator:aten::a:removed", "operator", witness="aten::a"), item("operator:aten::b:removed", "operator", witness="aten::b"), 1),
        (item("operator:aten::a:removed", "operator", witness="aten::a"), item("operator:aten::b:type", "operator", witness="aten::b"), 2),
        (item("operator:aten::a:removed", "operator", witness="aten::a"), item("operator:prim::b:removed", "operator", witness="prim::b"), 2),
        (item("deprecation:x:deprecated", "deprecation", witness="x"), item("deprecation:x:alternative", "deprecation", witness="x"), 1),
        (item("deprecation:x:deprecated", "deprecation", witness="x", after="worked, warns: x is old"), item("warns:+:UserWarning:x is old", "warns"), 1),
        (item("writes:a", "writes", after="RuntimeError: no kernel"), item("computes:raises:no kernel"), 1),
    ],
)  # fmt: skip
def test_items_of_one_cause_are_one_fact(one: CandidateItem, other: CandidateItem, count: int) -> None:
    result = facts_of([one, other])
    assert len(result) == count
    assert sum(entry.count for entry in result) == 4
    assert result[0].id == one.id


def test_an_item_may_join_two_others() -> None:
    (result,) = facts_of([item("a:ties"), item("b:clamp"), item("writes:version:a 1 to 2", "writes"), item("writes:version:b 1 to 2", "writes"),
                         item("writes:version:a 1 to 2, b 1 to 2", "writes")][2:])  # fmt: skip
    assert len(result.items) == 3


def test_all_facts_of_small_releases_are_drawn_and_a_stable_sample_of_the_rest() -> None:
    chosen = drawn(FOUND)
    assert len(chosen) == LABELS
    assert {entry.fact.id for entry in chosen if entry.release == "2.12.1"} == {entry.id for entry in FOUND[2].facts}
    assert chosen == drawn(FOUND)
    more = [replace(FOUND[0], facts=(*FOUND[0].facts, fact("computes:new"))), *FOUND[1:]]
    assert len({entry.key for entry in drawn(more)} ^ {entry.key for entry in chosen}) <= 2
    assert drawn_md(FOUND).count("\n## ") == LABELS


def labels(noise: int, release_: str = "") -> BacktestNotes:
    """Labels of all that is drawn, so many of which are noise, of one release where it is named."""
    left = noise
    results = []
    for entry in sorted(drawn(FOUND), key=lambda element: element.key):
        says = "real"
        if left and entry.release == (release_ or entry.release) and (release_ or entry.release != "2.12.1"):
            says, left = "noise", left - 1
        results.append(Label(entry.release, entry.fact.id, says, "seen"))
    assert not left
    return BacktestNotes(tuple(results))


@pytest.mark.parametrize(
    ("hand", "broken"),
    [
        (labels(10), 0),
        (labels(11), 1),
        (labels(2, "2.12.1"), 0),
        (labels(3, "2.12.1"), 1),
    ],
)
def test_limits_of_false_alarms(hand: BacktestNotes, broken: int) -> None:
    result, odd = held(FOUND, hand)
    assert len(result) == broken
    assert not odd
    assert ("Not within the limits" in backtest_md(FOUND, hand)) == bool(broken)


def test_labels_must_be_of_what_is_drawn() -> None:
    whole = labels(0)
    for hand in (
        BacktestNotes(whole.labels[1:]),
        BacktestNotes((*whole.labels, whole.labels[0])),
        BacktestNotes((*whole.labels, Label("9.9.9", "computes:x", "real", "seen"))),
        BacktestNotes(whole.labels, (Fate("1.6.0", "computes:gone", "reverted", "so", "https://example.org"),)),
    ):
        assert held(FOUND, hand)[1]


def test_without_labels_nothing_is_claimed() -> None:
    text = backtest_md(FOUND, BacktestNotes())
    assert "The false-alarm rate is not known yet" in text
    assert "are noise" not in text


def test_what_people_wrote_stands_beside_the_fact() -> None:
    hand = BacktestNotes(
        (Label("2.12.1", "computes:f0", "real", "seen"),),
        (Fate("2.12.1", "computes:f0", "reverted", "in *1.8*", "https://example.org"),),
    )
    text = section(FOUND[2], hand)
    assert "| real | reverted: in \\*1.8\\* ([source](https://example.org)) |" in text
    assert len(FOUND[2].facts) < FEW


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"[[label", "not valid TOML"),
        (b"\xff", "not UTF-8"),
        (b'a = "b"', "expected only"),
        (b'[[label]]\nrelease = "1.6.0"\n', "expected the strings"),
        (b'[[label]]\nrelease = "1.6.0"\nfact = "a"\nsays = "maybe"\nwhy = "b"\n', "expected one of real, noise"),
        (b'[[label]]\nrelease = "1.6.0"\nfact = "a"\nsays = "real"\nwhy = ""\n', "expected the strings"),
    ],
)
def test_labels_that_are_none_are_refused(text: bytes, said: str) -> None:
    with pytest.raises((CorpusError, PolicyError), match=said):
        read_hand(text, None)
