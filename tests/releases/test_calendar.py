from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest

from torch_compat.errors import UsageError
from torch_compat.releases.calendar import Calendar, Listed
from torch_compat.releases.release import Release

if TYPE_CHECKING:
    from torch_compat.policy import Policy


def test_releases_stand_in_the_order_of_their_versions(small: Policy) -> None:
    assert [release.version for release in small.calendar] == ["1.9.0", "1.10.0", "1.10.1"]
    assert list(small.releases) == list(small.calendar)
    assert len(small.calendar) == 3
    assert repr(small.calendar) == "Calendar(1.9.0, 1.10.0, 1.10.1)"


def test_a_planned_release_is_none() -> None:
    date = dt.date(2021, 6, 15)
    tables = [
        {"version": "1.9.0", "date": date, "pythons": ["3.9"]},
        {"version": "1.10.0", "date": date, "source": "a plan"},
    ]
    assert list(Listed.every(tables)) == [Listed("1.9.0", date, ("3.9",))]


def test_a_release_is_looked_up_by_its_exact_version(small: Policy) -> None:
    assert small.calendar["1.10.1"].install == "stubs"
    assert "1.10.1" in small.calendar
    assert "1.10" not in small.calendar
    assert None not in small.calendar


def test_an_unknown_release_offers_the_nearest(small: Policy) -> None:
    with pytest.raises(UsageError, match=r"no torch release '1\.10\.2' \(did you mean 1\.10\.1") as caught:
        small.calendar["1.10.2"]
    assert caught.value.code == "unknown-release"
    with pytest.raises(UsageError, match="has 3 releases"):
        small.calendar["nonsense"]


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("torch-1.10.0", "1.10.0"),
        ("1.10.0", "1.10.0"),
        ("1.10.0+cpu", "1.10.0"),
        ("torch-1.10.0+cu102", "1.10.0"),
        ("1.10", "1.10.1"),
        ("torch-1.10", "1.10.1"),
        ("1.9", "1.9.0"),
    ],
)
def test_names_resolve(small: Policy, name: str, version: str) -> None:
    assert small.calendar.resolve(name).version == version


@pytest.mark.parametrize("name", ["torch-1.10.9", "1", "1.1", "", "torch-", "latest", "+cpu"])
def test_what_names_no_release_does_not_resolve(small: Policy, name: str) -> None:
    with pytest.raises(UsageError):
        small.calendar.resolve(name)


def test_newer_is_by_version_not_by_text(small: Policy) -> None:
    assert small.calendar.is_newer("1.10.0", "1.9.0")
    assert not small.calendar.is_newer("1.9.0", "1.10.0")
    assert not small.calendar.is_newer("1.9.0", "1.9.0")


def test_days_between_are_signed(small: Policy) -> None:
    assert small.calendar.days_between("1.9.0", "1.10.0") == 128
    assert small.calendar.days_between("1.10.0", "1.9.0") == -128


def test_the_newest_by_a_day_is_the_newest_uploaded_by_then(small: Policy) -> None:
    assert small.calendar.newest().version == "1.10.1"
    assert small.calendar.newest(on_or_before=dt.date(2021, 10, 21)).version == "1.10.0"
    assert small.calendar.newest(on_or_before=dt.date(2021, 10, 20)).version == "1.9.0"


def test_before_the_first_release_there_is_none(small: Policy) -> None:
    with pytest.raises(UsageError, match=r"on or before 2018-01-01 \(the first release in the calendar is 1\.9\.0"):
        small.calendar.newest(on_or_before=dt.date(2018, 1, 1))
    with pytest.raises(UsageError, match="empty"):
        Calendar([]).newest()


def test_what_the_calendar_lacks_is_like_the_nearest_of_its_line(small: Policy) -> None:
    assert small.calendar.nearest(Release("1.10.9")).version == "1.10.1"
    assert small.calendar.nearest(Release("1.11.0a0+git0123abc")).version == "1.10.1"
    assert small.calendar.nearest(Release("1.0.0")).version == "1.9.0"
    with pytest.raises(UsageError, match="has 0 releases"):
        Calendar([]).nearest(Release("1.0.0"))


def test_a_calendar_needs_no_policy() -> None:
    tables = [
        {"version": "1.10.0", "date": dt.date(2021, 10, 21), "pythons": ["3.9"], "numpy": "<2"},
        {"version": "1.9.0", "date": dt.date(2021, 6, 15)},
    ]
    calendar = Calendar(map(Listed.read, tables))
    assert list(calendar) == [Listed("1.9.0", dt.date(2021, 6, 15), ()), Listed("1.10.0", dt.date(2021, 10, 21), ("3.9",))]
    assert calendar.known.releases == ("1.9.0", "1.10.0")
