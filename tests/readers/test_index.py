"""Releases on the index that the calendar lacks; and that no failed query counts as "nothing new"."""

from __future__ import annotations

import datetime as dt
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

from tests.miniatures.index import FakeIndex
from torch_compat.errors import EnvironmentUnavailable
from torch_compat.policy import CalendarRelease, load_policy
from torch_compat.readers.commands import Failed
from torch_compat.readers.index import entry_text, new_releases, offered
from torch_compat.releases.calendar import Calendar

REPOSITORY = Path(__file__).parents[2]
TODAY = dt.date(2026, 12, 24)
UPLOADED = dt.date(2026, 12, 9)
NEW = ("3.12", "3.13")


def release(version: str, date: dt.date, *pythons: str, install: str = "stubs") -> CalendarRelease:
    return CalendarRelease.model_validate(
        {"version": version, "date": date, "pythons": list(pythons), "install": install, "numpy": "<3"}, strict=None
    )


@pytest.fixture
def calendar() -> Calendar[CalendarRelease]:
    return Calendar(
        [
            release("1.0.0", dt.date(2018, 12, 7), "2.7", "3.6", install="whole"),
            release("2.9.0", dt.date(2025, 10, 15), "3.11", "3.12"),
            release("2.10.0", dt.date(2026, 1, 21), "3.11", "3.12"),
        ]
    )


@pytest.fixture
def index(calendar: Calendar[CalendarRelease]) -> FakeIndex:
    return FakeIndex.of(calendar)


def missing(calendar: Calendar[CalendarRelease], index: FakeIndex) -> list[tuple[str, tuple[str, ...], dt.date | None]]:
    return [(item.version, item.pythons, date) for item, date in new_releases(calendar, TODAY, index)]


def test_a_calendar_that_has_everything(calendar: Calendar[CalendarRelease], index: FakeIndex) -> None:
    assert missing(calendar, index) == []
    assert [item.version for item in offered(calendar, index)] == ["1.0.0", "2.9.0", "2.10.0"]


def test_pip_is_asked_for_every_python_that_a_release_may_have(calendar: Calendar[CalendarRelease], index: FakeIndex) -> None:
    missing(calendar, index)
    questions = [words for words in index.asked if "index" in words]
    asked = [words[words.index("--python-version") + 1] for words in questions]
    assert asked == ["3.6", "3.11", "3.12", "3.13", "3.14", "3.15"]  # none that is too old for a worker, three to come
    for words in questions:
        platforms = {after for word, after in pairwise(words) if word == "--platform"}
        assert platforms >= {"manylinux1_x86_64", "manylinux2014_x86_64", "manylinux_2_28_x86_64", "manylinux_2_34_x86_64"}
        assert words[words.index("--only-binary") + 1] == ":all:"


def test_a_newer_release_is_found_with_its_pythons_and_its_day(calendar: Calendar[CalendarRelease], index: FakeIndex) -> None:
    index.releases["2.11.0"] = (UPLOADED, NEW)
    assert missing(calendar, index) == [("2.11.0", NEW, UPLOADED)]


def test_a_release_for_pythons_alone_that_the_calendar_does_not_know_is_found(
    calendar: Calendar[CalendarRelease], index: FakeIndex
) -> None:
    index.releases["2.11.0"] = (UPLOADED, ("3.14",))
    assert missing(calendar, index) == [("2.11.0", ("3.14",), UPLOADED)]


def test_an_older_release_that_the_calendar_lacks_is_found(calendar: Calendar[CalendarRelease], index: FakeIndex) -> None:
    index.releases["1.0.1"] = (dt.date(2019, 2, 5), ("3.6",))
    assert missing(calendar, index) == [("1.0.1", ("3.6",), dt.date(2019, 2, 5))]


def test_local_builds_candidates_and_what_came_before_1_0_are_no_releases(
    calendar: Calendar[CalendarRelease], index: FakeIndex
) -> None:
    for version in ("2.10.0+cpu", "2.12.0rc1", "0.4.1"):
        index.releases[version] = (UPLOADED, NEW)
    assert missing(calendar, index) == []


@pytest.mark.parametrize("day", [dt.date(2026, 1, 22), TODAY])
def test_the_first_and_the_last_day_that_an_upload_can_have(
    calendar: Calendar[CalendarRelease], index: FakeIndex, day: dt.date
) -> None:
    index.releases["2.11.0"] = (day, NEW)
    assert missing(calendar, index) == [("2.11.0", NEW, day)]


def test_without_upload_times_the_day_is_unknown(calendar: Calendar[CalendarRelease], index: FakeIndex) -> None:
    index.releases["2.11.0"] = (UPLOADED, NEW)
    index.tells_dates = False
    assert missing(calendar, index) == [("2.11.0", NEW, None)]


def test_a_python_without_pip_gets_one(calendar: Calendar[CalendarRelease], index: FakeIndex) -> None:
    index.has_pip = False
    index.releases["2.11.0"] = (UPLOADED, NEW)
    assert missing(calendar, index) == [("2.11.0", NEW, UPLOADED)]
    assert any("venv" in words for words in index.asked)


def test_the_entry_can_be_pasted_and_says_what_it_took_from_where(calendar: Calendar[CalendarRelease], index: FakeIndex) -> None:
    index.releases["2.11.0"] = (UPLOADED, NEW)
    ((result, date),) = new_releases(calendar, TODAY, index)
    text = entry_text(calendar, result, date)
    assert tomllib.loads(text) == {
        "release": [{"version": "2.11.0", "date": UPLOADED, "pythons": ["3.12", "3.13"], "install": "stubs", "numpy": "<3"}]
    }
    assert 'install = "stubs"  # as 2.10.0' in text
    with pytest.raises(tomllib.TOMLDecodeError):
        tomllib.loads(entry_text(calendar, result, None))  # nobody pastes it and forgets the date


# ------------------------------------------------------------------------------------------- answers that are no answers


def refused(calendar: Calendar[CalendarRelease], index: FakeIndex) -> str:
    with pytest.raises(EnvironmentUnavailable) as error:
        new_releases(calendar, TODAY, index)
    assert (error.value.exit_status, error.value.code) == (4, "index-unavailable")
    return error.value.message


@pytest.mark.parametrize("why", ["connection error: [Errno 111] Connection refused", "500 Server Error", "Read timed out"])
def test_a_source_that_was_not_reached_is_never_nothing_new(
    calendar: Calendar[CalendarRelease], index: FakeIndex, why: str
) -> None:
    index.unreached = f"Could not fetch URL https://me:secret@index.example/torch/: {why} - skipping"
    message = refused(calendar, index)
    assert f"https://index.example/torch/: {why}" in message
    assert "secret" not in message


def test_a_source_without_any_torch_is_reached(calendar: Calendar[CalendarRelease], index: FakeIndex) -> None:
    index.unreached = "Could not fetch URL https://extra.example/torch/: 404 Client Error: Not Found - skipping"
    assert missing(calendar, index) == []


def test_an_index_that_lags_behind_the_calendar_cannot_tell(calendar: Calendar[CalendarRelease], index: FakeIndex) -> None:
    del index.releases["2.10.0"]
    assert "it does not offer torch 2.10.0, which is in the calendar" in refused(calendar, index)


def test_an_index_without_torch_cannot_tell(calendar: Calendar[CalendarRelease], index: FakeIndex) -> None:
    index.releases.clear()
    assert "it does not offer torch 2.10.0" in refused(calendar, index)


def test_an_answer_that_is_not_understood(calendar: Calendar[CalendarRelease], index: FakeIndex) -> None:
    index.broken = "something else"
    assert "something else" in refused(calendar, index)
    index.broken = "Available versions: 2.10.0, newest"
    assert "'newest'" in refused(calendar, index)


def test_a_pip_that_fails(calendar: Calendar[CalendarRelease]) -> None:
    def run(command: object, **_: object) -> str:
        if "--version" in str(command):
            return "pip 26.0"
        raise Failed(["pip"], "ERROR: unknown command index\n")

    with pytest.raises(EnvironmentUnavailable, match="unknown command index"):
        new_releases(calendar, TODAY, run)


def test_the_calendar_of_the_repository_is_asked_for_in_whole() -> None:
    calendar = load_policy(REPOSITORY / "policies" / "torch").calendar
    assert missing(calendar, FakeIndex.of(calendar)) == []
