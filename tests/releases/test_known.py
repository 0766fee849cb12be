from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.releases.versions import near, sets
from torch_compat.errors import UsageError
from torch_compat.releases.known import Known
from torch_compat.releases.release import Release

if TYPE_CHECKING:
    from torch_compat.releases.sets import ReleaseSet

LISTED = ("1.0.0", "1.0.1", "1.1.0", "1.9.0", "1.10.0", "2.0.0", "2.16.0")
KNOWN = Known(LISTED)
bits = st.integers(0, KNOWN.everyone)


@given(bits)
def test_numbers_become_sets_and_texts_and_come_back(number: int) -> None:
    assert KNOWN.bits_of(KNOWN.set(number)) == number
    if number:
        assert KNOWN.bits(KNOWN.text(number)) == number
        assert str(KNOWN.set(number)) == KNOWN.text(number).replace(",", ", ")
    assert KNOWN.of(number) == tuple(release for release in LISTED if Release(release) in KNOWN.set(number))
    assert [item for first, last in KNOWN.spans(number) for item in LISTED[LISTED.index(first) : LISTED.index(last) + 1]] == list(
        KNOWN.of(number)
    )


@given(sets)
def test_a_set_becomes_the_releases_of_the_list_that_it_holds(found: ReleaseSet) -> None:
    assert KNOWN.of(KNOWN.bits_of(found)) == tuple(release for release in LISTED if Release(release) in found)


@pytest.mark.parametrize(
    ("number", "text"), [(0, ""), (0b1, "1.0.0"), (0b11, "1.0.0..1.0.1"), (0b1000001, "1.0.0,2.16.0.."), (0b1111111, "1.0.0..")]
)
def test_texts_are_as_recorded_files_have_them(number: int, text: str) -> None:
    assert KNOWN.text(number) == text


@pytest.mark.parametrize("text", ["1.0.2", "1.0.0..1.0.2", "1.0.1..1.0.0", "", "x"])
def test_a_text_with_another_release_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        KNOWN.bits(text)


@given(near)
def test_the_newest_up_to_a_release(text: str) -> None:
    older = [at for at, item in enumerate(LISTED) if Release(item) <= Release(text)]
    assert KNOWN.newest(Release(text)) == (older[-1] if older else None)


@pytest.mark.parametrize(
    ("text", "stands"),
    [("1.0.2", "1.0.1"), ("1.0.0", "1.0.0"), ("1.9.1", "1.9.0"), ("1.5.0", "1.1.0"), ("0.4.1", "1.0.0"), ("3.0.0", "2.16.0"), ("1.0.1rc1", "1.0.1")],
)  # fmt: skip
def test_the_nearest_release_is_of_the_same_line_or_the_newest_before(text: str, stands: str) -> None:
    assert LISTED[KNOWN.nearest(Release(text))] == stands


def test_of_two_patches_as_near_the_newer_stands() -> None:
    assert Known(["1.0.0", "1.0.2"]).nearest(Release("1.0.1")) == 1


@pytest.mark.parametrize("releases", [["1.1.0", "1.0.0"], ["1.0.0", "1.0.0"], ["x"]])
def test_a_list_is_in_order(releases: list[str]) -> None:
    with pytest.raises(UsageError):
        Known(releases)


@pytest.mark.parametrize(
    ("name", "found"),
    [("torch-1.9.0", "1.9.0"), ("1.9.0+cpu", "1.9.0"), ("1.0", "1.0.1"), ("torch-2.16", "2.16.0"), ("1.2", None), ("1.9.1", None),
     ("2.16.0.dev20261120", None), ("latest", None), ("", None)],
)  # fmt: skip
def test_a_release_of_the_list_by_its_name(name: str, found: str | None) -> None:
    assert KNOWN.find(name) == found


@pytest.mark.parametrize(
    ("name", "near"),
    [("torch-1.0.7", ("1.0.1", "1.0.0")), ("1.9.1", ("1.9.0",)), ("1.5.0", ("1.1.0", "1.9.0")), ("0.4.1", ("1.0.0", "1.0.1")), ("3.0", ("2.16.0", "2.0.0")),
     ("1.99.0", ("1.10.0", "2.0.0", "1.9.0")), ("latest", ())],
)  # fmt: skip
def test_releases_that_a_name_may_stand_for(name: str, near: tuple[str, ...]) -> None:
    assert KNOWN.near(name) == near


@given(bits)
def test_a_set_is_made_of_its_releases(number: int) -> None:
    assert KNOWN.holding(KNOWN.of(number)) == number
    assert KNOWN.holding(LISTED) == KNOWN.everyone
    assert [KNOWN.bit(release) for release in LISTED] == [1 << KNOWN.place(release) for release in LISTED]
    with pytest.raises(KeyError):
        KNOWN.holding(["1.0.2"])
