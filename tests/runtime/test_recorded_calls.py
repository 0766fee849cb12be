"""Every release's recorded results of operator calls, compared with the reference reader at its horizon: needs no release."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import Any

import pytest

from tools.differential.horizons import COLUMNS
from tools.differential.recorded import CONVERTED, FIXTURES, STRIDES, UNCALLED, answers, borders, kind_of_call, replayed
from torch_compat.corpus.calls import recorded_calls
from torch_compat.corpus.surveys import surveyed_releases
from torch_compat.operators.history import History
from torch_compat.proving.stated import read
from torch_compat.releases.release import Release

CALLS = {call.key: call for call in recorded_calls(FIXTURES)}
RELEASES = tuple(surveyed_releases(FIXTURES))
MOST = {COLUMNS[4]: 3, COLUMNS[3]: 3, COLUMNS[2]: 9, STRIDES: 2, CONVERTED: 3, "excluded": 2}
"""What may not agree or is not compared, in hundredths of the calls of which a release gives a value: most of what torch alone refuses is about dtypes of old releases."""
EQUAL, REFUSED, TORCH_REFUSES, READER_REFUSES, NOT_MODELLED, DIFFERS = COLUMNS


@cache
def recorded() -> dict[str, dict[str, Any]]:
    return answers()


def compared(release: str) -> tuple[Counter[str], dict[str, list[str]]]:
    """The calls of a release by column, and what there is to say of those that do not agree."""
    counts: Counter[str] = Counter()
    apart: dict[str, list[str]] = {}
    for key, call in CALLS.items():
        result, message = replayed(call, release, recorded()[key][release])
        counts[result] += 1
        apart.setdefault(result, []).append(f"{key}: {message}")
    return counts, apart


def test_every_release_answered_every_call() -> None:
    assert {key: tuple(by) for key, by in recorded().items() if set(by) != set(RELEASES)} == {}
    assert set(recorded()) == set(CALLS)


@pytest.mark.parametrize("release", RELEASES)
def test_the_reader_gives_what_the_release_gave(release: str) -> None:
    counts, apart = compared(release)
    assert apart.get(DIFFERS, []) == []
    given = sum(counts[name] for name in (EQUAL, READER_REFUSES, NOT_MODELLED))
    for column, most in MOST.items():
        assert 100 * counts[column] <= most * given, apart[column]
    assert given > len(CALLS) // 4


def test_another_value_differs() -> None:
    """As would a reader that computes at a horizon what the next release computes."""
    key, by = next((key, by) for key, by in recorded().items() if by["2.15.0"].__class__ is list and by["1.2.0"].__class__ is list and by["1.2.0"] != by["2.15.0"] and replayed(CALLS[key], "1.2.0", by["2.15.0"])[0] == DIFFERS)  # fmt: skip
    assert replayed(CALLS[key], "1.2.0", by["1.2.0"])[0] == EQUAL
    assert replayed(CALLS[key], "2.15.0", by["1.2.0"])[0] == DIFFERS


def in_releases(place: tuple[str, str], since: Release) -> bool:
    """Whether a release that was asked has the operator while the reader has this version of it."""
    later = [border for border in borders()[place] if border > since]
    having = map(Release, History.load().having(place[0]))
    return any(release >= since and (not later or release < later[0]) for release in having)


def test_each_version_of_an_operator_is_called() -> None:
    """And gives a value in some release at whose horizon the reader has this version, or stands in `UNCALLED`."""
    called: set[tuple[tuple[str, str], Release]] = set()
    for key, by in recorded().items():
        place = CALLS[key].operator, kind_of_call(CALLS[key])
        for release, answer in by.items():
            if answer.__class__ is list and place in borders():
                called.add((place, max(border for border in borders()[place] if border <= Release(release))))
    versions = [(place, since) for place, all_of in borders().items() for since in all_of if in_releases(place, since)]
    lacking = [f"{name} {kind} {since}" for (name, kind), since in versions if ((name, kind), since) not in called]
    assert [item for item in lacking if not any(re.fullmatch(pattern, item) for pattern in UNCALLED)] == []
    assert [pattern for pattern in UNCALLED if not any(re.fullmatch(pattern, item) for item in lacking)] == []
    assert len(versions) > 900


def test_each_upgrader_is_run() -> None:
    """But those of calls that no release had before the change."""
    asked = {call.name for call in CALLS.values() if call.file_format}
    assert asked == {upgrader.name for upgrader in read().values() if upgrader.old}
