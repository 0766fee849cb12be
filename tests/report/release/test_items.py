"""Records of one fact form one item, with the release on which they all agree."""

from __future__ import annotations

import pytest

from torch_compat.report.release.items import LONGEST, FactRecord, Section, Span, merged, short

CALENDAR = ("2.12.1", "2.13.0", "2.14.0", "2.14.1", "2.15.0")


def part(name: str, after: str, by: str, *more: str, section: Section = Section.OPERATORS, rank: int = 2) -> FactRecord:
    return FactRecord((name, *more), section, rank, f"title of {name}", "operators", Span(after, by), f"{name} says so")


def test_records_that_share_a_name_are_one_item_which_begins_where_they_agree() -> None:
    (item,) = merged([part("a", "2.12.1", "2.14.1"), part("b", "2.12.1", "2.13.0", "a", section=Section.DEPRECATIONS)], CALENDAR)
    assert (item.span, item.candidates, item.when, item.disagree) == (Span("2.12.1", "2.13.0"), ("2.13.0",), "2.13.0", False)
    assert item.section is Section.OPERATORS


def test_a_record_that_names_two_facts_joins_them() -> None:
    items = merged([part("a", "", "2.13.0"), part("b", "", "2.13.0"), part("c", "", "2.13.0", "a", "b")], CALENDAR)
    assert [len(item.parts) for item in items] == [3]
    assert len(merged([part("a", "", "2.13.0"), part("b", "", "2.13.0")], CALENDAR)) == 2


def test_records_that_exclude_each_other_give_the_outermost_bounds() -> None:
    (item,) = merged([part("a", "2.13.0", "2.14.1"), part("b", "2.12.1", "2.13.0", "a")], CALENDAR)
    assert item.disagree
    assert item.span == Span("2.12.1", "2.14.1")
    assert item.when == "between 2.12.1 and 2.14.1 (the records disagree)"


def test_an_item_names_every_release_with_which_it_may_begin() -> None:
    (item,) = merged([part("a", "2.12.1", "2.14.1")], CALENDAR)
    assert item.when == "2.13.0, 2.14.0 or 2.14.1"


def test_the_gravest_section_counts_and_comes_first() -> None:
    result = merged(
        [part("x", "", "2.13.0"), part("a", "", "2.13.0"), part("b", "", "2.13.0", "a", section=Section.SILENT)], CALENDAR
    )
    assert [item.section for item in result] == [Section.SILENT, Section.OPERATORS]


def test_the_title_is_that_of_the_least_rank() -> None:
    (item,) = merged([part("a", "", "2.13.0"), part("b", "", "2.13.0", "a", rank=0)], CALENDAR)
    assert (item.title, item.id) == ("title of b", "b")


@pytest.mark.parametrize(("one", "other", "meet"), [
    (Span("", "2.13.0"), Span("2.12.1", "2.14.0"), True),
    (Span("2.12.1", "2.13.0"), Span("2.13.0", "2.14.0"), False),
    (Span("2.9.0", "2.10.0"), Span("2.8.0", "2.9.0"), False),
    (Span("", "1.0.0"), Span("", "2.0.0"), True),
])  # fmt: skip
def test_spans_meet(one: Span, other: Span, *, meet: bool) -> None:
    assert one.meets(other) is other.meets(one) is meet


def test_long_texts_are_cut_to_one_line() -> None:
    assert short("a\nb\tc") == "a b c"
    assert len(short("x" * 1_000_000)) == LONGEST
