from __future__ import annotations

import copy
import datetime as dt
import pickle
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from tests.releases.versions import versions
from torch_compat.errors import UsageError
from torch_compat.releases.release import LONGEST, Release, dotted, named, public, stated


@given(versions, versions)
def test_releases_are_ordered_as_their_public_versions_are(one: str, other: str) -> None:
    ours, theirs = (Release(one), Release(other)), (Version(Version(one).public), Version(Version(other).public))
    assert (ours[0] < ours[1]) is (theirs[0] < theirs[1])
    assert (ours[0] <= ours[1]) is (theirs[0] <= theirs[1])
    assert (ours[0] > ours[1]) is (theirs[0] > theirs[1])
    assert (ours[0] >= ours[1]) is (theirs[0] >= theirs[1])
    assert (ours[0] == ours[1]) is (theirs[0] == theirs[1])


@given(versions)
def test_a_release_gives_its_text_back(text: str) -> None:
    release = Release(text)
    assert str(release) == text
    assert Version(release.public) == Version(Version(text).public)
    assert release.line == ".".join(map(str, Version(text).release[:2]))
    assert release.prerelease is Version(text).is_prerelease
    assert (release.local or None) == (text.partition("+")[2] or None)


@given(versions, versions)
def test_equal_releases_have_equal_public_versions_and_hashes(one: str, other: str) -> None:
    ours, theirs = Release(one), Release(other)
    assert (ours == theirs) is (ours.public == theirs.public)
    assert ours != theirs or hash(ours) == hash(theirs)
    assert Release(ours.public).public == ours.public


def test_builds_of_one_release_are_equal_and_keep_their_texts() -> None:
    release, build = Release("2.13.0"), Release("2.13.0+cpu")
    assert release == build
    assert [str(release), str(build), build.public, build.local] == ["2.13.0", "2.13.0+cpu", "2.13.0", "cpu"]


@pytest.mark.parametrize(
    ("text", "line", "day", "before"),
    [
        ("2.13.0", "2.13", None, False),
        ("2.13.1+cu126", "2.13", None, False),
        ("2.16.0.dev20261120+cpu", "2.16", dt.date(2026, 11, 20), True),
        ("2.16.0.dev20261399", "2.16", None, True),
        ("2.16.0a0+git0123abc", "2.16", None, True),
        ("2.6.0.post1", "2.6", None, False),
        ("1.0rc1", "1.0", None, True),
        ("1.0.0.dev20181206", "1.0", dt.date(2018, 12, 6), True),
    ],
)
def test_what_a_version_says(text: str, line: str, day: dt.date | None, before: bool) -> None:
    release = Release(text)
    assert (release.line, release.day, release.prerelease) == (line, day, before)


@pytest.mark.parametrize(
    "text",
    ["", "2", "v2.1.0", "2.1.0 ", "2.1.x", "2.01.0", "1!2.0.0", "2.1.0+", "2.1.0+cpu+x", "2.1.0-rc1", "2.1.0RC1", "２.1.0", "2.1.0\n",
     "1." + "9" * 15, "1.0." + "1." * LONGEST, "torch-2.1.0"],
)  # fmt: skip
def test_what_no_torch_states_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="expected a version of torch such as") as refused:
        Release(text)
    assert len(str(refused.value)) < 300
    assert stated(text) is None


@given(st.text(max_size=40) | st.none() | st.integers())
def test_any_value_states_a_release_or_none(value: object) -> None:
    result = stated(value)
    assert result is None or str(result) == value


def test_a_release_is_known_by_the_name_of_a_reader() -> None:
    assert str(named("torch-2.13.0+cpu")) == "2.13.0+cpu"
    assert named("2.13.0") is Release("2.13.0")


@pytest.mark.parametrize(
    ("name", "release"),
    [
        ("torch-2.13.0+cpu", "2.13.0"),
        ("2.13.0", "2.13.0"),
        ("reference@1.5.1", "reference@1.5.1"),
        ("synthetic", "synthetic"),
        ("", ""),
    ],
)
def test_what_is_no_release_keeps_its_name(name: str, release: str) -> None:
    assert public(name) == release


def test_the_same_text_gives_the_same_release() -> None:
    release = Release("2.13.0+cpu")
    assert Release("2.13.0+cpu") is release
    assert copy.deepcopy(release) is release
    assert pickle.loads(pickle.dumps(release)) is release


def test_a_release_is_no_text_and_no_tuple() -> None:
    assert Release("2.13.0") != "2.13.0"
    assert Release("2.13.0") != Release("2.13.0").key


@pytest.mark.parametrize(("text", "numbers"), [("3.11", (3, 11)), ("8.14.2", (8, 14, 2)), ("7", (7,))])
def test_versions_of_other_things_are_numbers(text: str, numbers: tuple[int, ...]) -> None:
    assert dotted(text) == numbers


@pytest.mark.parametrize("text", ["", "3.", "3.11rc1", "3,11", "-1", "9" * 20, "1." * 1000])
def test_what_is_no_numbers_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="expected numbers such as"):
        dotted(text)


def test_releases_import_next_to_nothing() -> None:
    code = (
        "import sys; before = set(sys.modules); import torch_compat.releases.data, torch_compat.releases.known;"
        "print({name.partition('.')[0] for name in sys.modules.keys() - before} & {'packaging', 'pydantic', 'numpy', 'tomllib', 'click'})"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
