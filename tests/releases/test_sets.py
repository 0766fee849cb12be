from __future__ import annotations

import pickle
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from tests.releases.versions import intervals, near, publics, releases, sets, versions
from torch_compat.errors import UsageError
from torch_compat.releases.release import Release
from torch_compat.releases.sets import EVERY, LONGEST, NONE, Interval, ReleaseSet


def around(*value: ReleaseSet) -> list[Release]:
    """Releases just before, at and just after every end of some sets, and beyond all of them: sets that agree on them are equal."""
    texts = {"0.0.0", "9999.0.0"}
    for end in {end for item in value for end in item.ends}:
        texts |= {
            end,
            end + ".dev1" if ".dev" not in end else end[:-1] + "0",
            end + ".post0" if ".post" not in end else end + "0",
        }
        base = end.partition(".dev")[0]
        texts |= {base + rest for rest in ("", "rc5", ".post0", ".post9", "a0.dev1") if base.count(".") == 2}
    return sorted(release for text in texts if (release := _release(text)) is not None)


def _release(text: str) -> Release | None:
    try:
        return Release(text)
    except UsageError:
        return None


def inside(interval: Interval, release: Release) -> bool:
    version = Version(release.public)
    first, last = (None if end is None else Version(end.public) for end in interval[:2])
    after = first is None or (version >= first if interval.with_first else version > first)
    return after and (last is None or (version <= last if interval.with_last else version < last))


@given(st.lists(intervals(), max_size=5), near | versions)
def test_a_set_holds_what_an_interval_holds(found: list[Interval], text: str) -> None:
    release = Release(text)
    assert (release in ReleaseSet(found)) is any(inside(interval, release) for interval in found)


@given(publics, publics, versions)
def test_a_closed_interval_is_what_a_specifier_says(one: str, other: str, version: str) -> None:
    first, last = sorted([one, other], key=Version)
    result = ReleaseSet.between(Release(first), Release(last))
    wanted = SpecifierSet(f">={first},<={last}").contains(Version(version).public, prereleases=True)
    assert (Release(version) in result) is wanted


@given(sets, sets)
def test_the_algebra_is_that_of_sets(one: ReleaseSet, other: ReleaseSet) -> None:
    for release in around(one, other):
        here, there = release in one, release in other
        assert (release in one | other) is (here or there)
        assert (release in one & other) is (here and there)
        assert (release in one - other) is (here and not there)
        assert (release in one ^ other) is (here != there)
        assert (release in ~one) is not here
    assert (one <= other) is ((one | other) == other)


@given(sets, sets, sets)
def test_laws(one: ReleaseSet, other: ReleaseSet, third: ReleaseSet) -> None:
    assert ~~one == one
    assert ~(one | other) == ~one & ~other
    assert one & (other | third) == (one & other) | (one & third)
    assert one - other == one & ~other
    assert (one ^ other) ^ other == one
    assert one | ~one == EVERY
    assert one & ~one == NONE
    assert bool(one) is (one != NONE)


@given(sets)
@example(EVERY)
@example(NONE)
def test_a_text_gives_its_set_back(found: ReleaseSet) -> None:
    assert ReleaseSet.parse(str(found)) == found
    assert str(ReleaseSet.parse(str(found))) == str(found)
    assert ReleaseSet(found.intervals) == found
    assert pickle.loads(pickle.dumps(found)) == found


@given(sets, sets)
@example(NONE, ReleaseSet.parse(">1.0.0.dev20261120..<1.0.1.dev20261120"))
def test_equal_sets_are_those_that_hold_the_same(one: ReleaseSet, other: ReleaseSet) -> None:
    same = all((release in one) is (release in other) for release in around(one, other))
    assert (one == other) is same is (str(one) == str(other))
    assert not same or hash(one) == hash(other)


@given(sets)
def test_the_form_is_normal(found: ReleaseSet) -> None:
    spans = found.intervals
    for older, newer in pairwise(spans):
        assert older.last is not None
        assert newer.first is not None
        assert older.last <= newer.first
        assert older.last != newer.first or not (older.with_last or newer.with_first)


@given(st.lists(releases, max_size=4), near)
def test_single_releases(found: list[Release], text: str) -> None:
    assert (Release(text) in ReleaseSet.of(*found)) is (Release(text) in found)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("1.5.0..1.8.1, 2.0.0..", None),
        ("2.0.0..,1.5.0..1.8.1", "1.5.0..1.8.1, 2.0.0.."),
        ("..", None),
        ("none", None),
        ("..1.2.0", None),
        ("..<1.5.0, >1.8.1..", None),
        (">1.5.0..<1.6.0", None),
        ("1.5.0", None),
        ("1.5.0..1.5.0", "1.5.0"),
        ("1.5.0..1.7.0, 1.6.0..1.8.0", "1.5.0..1.8.0"),
        ("1.5.0..<1.6.0, 1.6.0..1.7.0", "1.5.0..1.7.0"),
        ("1.5.0..<1.6.0, >1.6.0..1.7.0", None),
        ("1.5.0..1.6.0, 1.6.1..1.7.0", None),  # there may be a 1.6.0.post1
        ("..1.6.0, 1.5.0..", ".."),
        ("1.0..1.1+cpu", "1.0.0..1.1.0"),
        ("2.16.0.dev20261120..", None),
    ],
)
def test_texts(text: str, normal: str | None) -> None:
    assert str(ReleaseSet.parse(text)) == (normal or text)


def test_a_nightly_build_comes_before_its_release() -> None:
    nightly = Release("2.16.0.dev20261120+cpu")
    assert nightly in ReleaseSet.parse("2.0.0..")
    assert nightly not in ReleaseSet.parse("..2.15.0")
    assert nightly not in ReleaseSet.parse("2.16.0..")
    assert nightly in ReleaseSet.parse("..<2.16.0")


def test_ends() -> None:
    result = ReleaseSet.parse("1.5.0..1.8.1, 2.0.0..2.1.0")
    assert (str(result.first), str(result.last), sorted(result.ends)) == ("1.5.0", "2.1.0", ["1.5.0", "1.8.1", "2.0.0", "2.1.0"])
    assert (EVERY.first, EVERY.last, NONE.first, NONE.last, ReleaseSet.parse("1.5.0..").last) == (None,) * 5


@pytest.mark.parametrize(
    "text",
    ["", " ", ",", "1.5.0,", "1.5.0...", "1.5.0..1.4.0", ">1.5.0", "<1.5.0", "1.5.0..>1.6.0", ">1.5.0..1.5.0", "1.5.0..<1.5.0",
     ">..", "..<", "1.5.0-1.6.0", "all", "none, 1.5.0", "1.5.0 .. 1.6.0", "1.5.0..1.6.0..1.7.0", "torch-1.5.0.."],
)  # fmt: skip
def test_what_is_no_set_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        ReleaseSet.parse(text)
    assert refused.value.code in {"no-releases", "backward-releases"}


def test_a_text_beyond_all_measure_is_refused_at_once() -> None:
    with pytest.raises(UsageError, match="expected releases in at most"):
        ReleaseSet.parse("1.5.0," * LONGEST)
    with pytest.raises(UsageError) as refused:
        ReleaseSet.parse("x" * (LONGEST - 1))
    assert len(str(refused.value)) < 1000
