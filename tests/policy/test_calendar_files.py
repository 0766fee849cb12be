"""Adding and removing releases in the text of the calendar changes nothing else, in any order."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from torch_compat.errors import CorpusError
from torch_compat.policy.calendar_files import (
    add_release,
    drop_planned,
    drop_releases,
    joined,
    planned_releases,
    split_tables,
    written_calendar,
)

POLICIES = Path(__file__).parents[2] / "policies" / "torch"
HEAD = "#:schema ../policy.schema.json\n# every release\n\n"


def entry(version: str) -> str:
    return f'[[release]]\nversion = "{version}"\ndate = 2020-01-01\npythons = ["3.11"]\ninstall = "whole"\nnumpy = "<3"\n'


def calendar(folder: Path, *versions: str) -> Path:
    (folder / "releases.toml").write_text(HEAD + "\n".join(map(entry, versions)), encoding="utf-8")
    return folder


def write(texts: dict[Path, str]) -> None:
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")


@given(st.lists(st.tuples(*[st.integers(0, 12)] * 3), unique=True, min_size=1, max_size=6), st.randoms())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
def test_every_order_gives_the_same_sorted_file(tmp_path: Path, numbers: list[tuple[int, ...]], random: object) -> None:
    versions = [".".join(map(str, number)) for number in sorted(numbers)]
    expected = (calendar(tmp_path, *versions) / "releases.toml").read_text(encoding="utf-8")
    shuffled = list(versions)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    calendar(tmp_path, shuffled[0])
    for version in shuffled[1:]:
        write(add_release(tmp_path, entry(version)))
    assert (tmp_path / "releases.toml").read_text(encoding="utf-8") == expected
    for version in shuffled[1:]:
        write(drop_releases(tmp_path, frozenset({version})))
    assert (tmp_path / "releases.toml").read_text(encoding="utf-8") == HEAD + entry(shuffled[0])


@pytest.mark.parametrize("name", sorted(path.name for path in POLICIES.glob("*.toml")))
def test_a_file_of_policies_is_the_sum_of_its_parts(name: str) -> None:
    text = (POLICIES / name).read_text(encoding="utf-8")
    assert joined(split_tables(text)) == text


def test_a_release_of_the_repository_comes_back_to_its_place(tmp_path: Path) -> None:
    text = (POLICIES / "releases.toml").read_text(encoding="utf-8")
    shutil.copy(POLICIES / "releases.toml", tmp_path)
    for part in split_tables(text):
        if part.header == "[[release]]":
            write(drop_releases(tmp_path, frozenset({part.version})))
            assert part.version not in written_calendar(tmp_path)
            write(add_release(tmp_path, part.body))
            assert (tmp_path / "releases.toml").read_text(encoding="utf-8") == text


def test_what_is_there_is_not_added_again(tmp_path: Path) -> None:
    assert add_release(calendar(tmp_path, "1.0.0"), entry("1.0.0")) == {}


def test_comments_stay_with_what_they_stand_above(tmp_path: Path) -> None:
    text = HEAD + entry("1.0.0") + "\n# of the second one\n" + entry("1.1.0")
    (tmp_path / "releases.toml").write_text(text, encoding="utf-8")
    write(drop_releases(tmp_path, frozenset({"1.0.0"})))
    assert (tmp_path / "releases.toml").read_text(encoding="utf-8") == HEAD + "\n# of the second one\n" + entry("1.1.0")


def test_what_is_planned_goes_when_it_is_there(tmp_path: Path) -> None:
    planned = '[[release]]\nversion = "{}"\ndate = 2027-01-01\nsource = "x"\n'
    text = "# plans\n\n" + "\n".join(planned.format(version) for version in ("2.16.0", "2.17.0", "2.22.0"))
    path = tmp_path / "timelines.toml"
    path.write_text(text, encoding="utf-8")
    assert planned_releases(tmp_path) == ("2.16.0", "2.17.0", "2.22.0")
    write(drop_planned(tmp_path, "2.17.0"))
    assert path.read_text(encoding="utf-8") == "# plans\n\n" + planned.format("2.22.0")
    assert drop_planned(tmp_path, "2.17.0") == {}
    write(drop_planned(tmp_path, "2.22.0"))
    assert tomllib.loads(path.read_text(encoding="utf-8")) == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[release]]\nversion = \n", "is not valid TOML"),
        ('[[release]]\nversion = "1.0"\n', r"has an invalid \[\[release\]\]"),
    ],
)
def test_a_calendar_that_cannot_be_read(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "releases.toml").write_text(text, encoding="utf-8")
    with pytest.raises(CorpusError, match=said):
        written_calendar(tmp_path)


def test_no_calendar(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="no file lists"):
        add_release(tmp_path, entry("1.0.0"))
