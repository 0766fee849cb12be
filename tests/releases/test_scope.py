"""The corpus is derived from the calendar: a release needs only one entry, and no release is ever dropped."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest

from torch_compat.errors import PolicyError
from torch_compat.policy import load_policy
from torch_compat.releases.scope import corpus_scope

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from torch_compat.policy import Policy

SETTLED = dt.date(2026, 10, 31)
LISTED = 'writers = ["1.9.0"]\nreaders = ["1.9.0", "1.10.0"]\n'
DERIVED = 'lines = "newest-patch"\nsettled = 2021-11-01\nbesides = ["1.9.0"]\n'
FIRST_CORPUS = [
    "1.0.0",
    "1.0.1",
    "1.1.0",
    "1.2.0",
    "1.3.1",
    "1.4.0",
    "1.5.0",
    "1.5.1",
    "1.6.0",
    "1.7.1",
    "1.8.1",
    "1.9.1",
    "1.10.2",
    "1.11.0",
    "1.12.1",
    "1.13.1",
    "2.0.0",
    "2.0.1",
    "2.1.2",
    "2.2.2",
    "2.3.1",
    "2.4.1",
    "2.5.1",
    "2.6.0",
    "2.7.1",
    "2.8.0",
    "2.9.1",
    "2.10.0",
    "2.11.0",
    "2.12.1",
    "2.13.0",
    "2.14.1",
    "2.15.0",
]
BESIDES = ["1.0.0", "1.5.0", "2.0.0"]


def test_a_release_of_the_settled_day_counts_only_as_the_newest_patch_of_its_line() -> None:
    releases = [
        {"version": version, "date": SETTLED + dt.timedelta(days=days)}
        for version, days in (("1.9.0", -9), ("1.10.0", 0), ("1.10.1", 0), ("1.11.0", 1), ("1.11.1", 2))
    ]
    corpus = {"lines": "newest-patch", "settled": SETTLED}
    assert corpus_scope(corpus, releases)[0] == ("1.9.0", "1.10.1", "1.11.0", "1.11.1")


def dated(*releases: tuple[str, str]) -> list[dict[str, Any]]:
    return [{"version": version, "date": dt.date.fromisoformat(date)} for version, date in releases]


def derived(releases: list[dict[str, Any]], **more: Any) -> list[str]:
    writers, readers = corpus_scope({"lines": "newest-patch", "settled": SETTLED, **more}, releases)
    assert writers == readers
    return list(writers)


def test_the_newest_patch_of_every_line_in_the_order_of_versions() -> None:
    releases = dated(("1.10.0", "2021-10-21"), ("1.9.1", "2021-09-20"), ("1.9.0", "2021-06-15"), ("1.10.2", "2022-01-27"))
    assert derived(releases) == ["1.9.1", "1.10.2"]
    assert derived(releases, besides=["1.10.0"]) == ["1.9.1", "1.10.0", "1.10.2"]


def test_the_rule_gives_the_corpus_that_the_calendar_began_with(torch: Policy) -> None:
    releases = [{"version": release.version, "date": release.date} for release in torch.calendar if release.date <= SETTLED]
    assert derived(releases, besides=BESIDES) == FIRST_CORPUS


@pytest.mark.parametrize("new", ["2.15.1", "2.16.0", "2.14.2", "3.0.0"])
def test_a_new_release_joins_and_none_leaves(torch: Policy, new: str) -> None:
    releases = [{"version": release.version, "date": release.date} for release in torch.calendar if release.date <= SETTLED]
    grown = derived([*releases, *dated((new, "2026-11-18"))], besides=BESIDES)
    assert set(grown) == {*FIRST_CORPUS, new}
    assert len(grown) == len(FIRST_CORPUS) + 1


def test_a_list_stays_a_list() -> None:
    assert corpus_scope({"writers": ["1.0.0"], "readers": ["2.0.0", "1.0.0"]}, []) == (("1.0.0",), ("2.0.0", "1.0.0"))


def test_a_policy_resolves_it(files: dict[str, str], write: Callable[[dict[str, str]], Path]) -> None:
    assert LISTED in files["promises.toml"]
    files["promises.toml"] = files["promises.toml"].replace(LISTED, DERIVED)
    corpus = load_policy(write(files)).corpus
    assert corpus.writers == corpus.readers == ("1.9.0", "1.10.0", "1.10.1")


def test_it_does_not_matter_which_way_it_is_said(files: dict[str, str], write: Callable[[dict[str, str]], Path]) -> None:
    versions = '["1.9.0", "1.10.0", "1.10.1"]'
    same = {**files, "promises.toml": files["promises.toml"].replace(LISTED, f"writers = {versions}\nreaders = {versions}\n")}
    listed = load_policy(write(same)).digest
    same["promises.toml"] = files["promises.toml"].replace(LISTED, DERIVED)
    assert load_policy(write(same)).digest == listed


@pytest.mark.parametrize(
    ("corpus", "said"),
    [
        ('writers = ["1.9.0"]\n', "key 'readers' is missing"),
        ('readers = ["1.9.0"]\n', "key 'writers' is missing"),
        ("", "key 'writers' is missing; or derive both with 'lines' and 'settled'"),
        ('lines = "newest-patch"\n', "key 'settled' is missing"),
        ("settled = 2021-11-01\n", "key 'lines' is missing"),
        ('besides = ["1.9.0"]\n', "key 'lines' is missing"),
        (LISTED + DERIVED, "has both 'writers' and 'lines': either list the releases or derive them"),
        (DERIVED.replace("newest-patch", "newest"), "must be one of newest-patch; found 'newest'"),
        (DERIVED.replace("2021-11-01", '"2021-11-01"'), "must be a date such as 2027-01-31, without quotes"),
        (DERIVED.replace('["1.9.0"]', '["1.9.5"]'), "release '1.9.5' is not in the calendar; did you mean"),
        (DERIVED.replace('["1.9.0"]', "[]"), "must name at least one"),
    ],
)
def test_a_corpus_that_is_said_badly(
    files: dict[str, str], write: Callable[[dict[str, str]], Path], corpus: str, said: str
) -> None:
    files["promises.toml"] = files["promises.toml"].replace(LISTED, corpus)
    with pytest.raises(PolicyError) as error:
        load_policy(write(files))
    assert said in str(error.value)
