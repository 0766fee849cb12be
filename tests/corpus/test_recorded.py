"""Recorded observations: a round trip changes nothing, a release adds a file, branches merge, and damage is reported."""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.corpus.test_observations import CAREFUL, WHOLE
from tests.recordings import edit_lines, lines_of, with_end
from torch_compat.corpus import recorded as package
from torch_compat.corpus.deprecations import DeprecationObservation, Use
from torch_compat.corpus.json_lines import digest, dump
from torch_compat.corpus.observations import ObservedReader, Probe, body_entry, body_id
from torch_compat.corpus.recorded import parsing, read_recorded, record, write_recorded
from torch_compat.corpus.recorded import reading as recorded
from torch_compat.corpus.recorded.model import VERSION, short_names
from torch_compat.corpus.recorded.shared_texts import LONG, Texts, apart
from torch_compat.errors import CorpusError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from torch_compat.corpus.observations import Observation
    from torch_compat.corpus.recorded import Recorded

DAY, LATER = "2026-11-20", "2026-11-25"
RELEASES = ("1.5.0", "1.5.1", "1.10.0", "2.13.0", "2.16.0rc1", "2.16.0")
NAMES = [*(f"torch-{release}{build}" for release in RELEASES for build in ("", "+cpu")), "reference"]
SUBJECTS, LOADS = ("0" * 20, "f" * 20), ("012da4", "abcdef")
RECIPES = ("add", "div.v2", "x+y")
OPTIONS = ("default", "mmap")
RESULTS = sorted(WHOLE)
SEEN = DeprecationObservation(
    "old",
    "k" * 20,
    Use("worked", (("UserWarning", "gone ✓"),)),
    Use("lacks", error={"type": "lacks", "message": "torch.new"}),
    None,
)


def made(name: str, cells: Iterable[Observation] = (), day: str = DAY, **more: Any) -> ObservedReader:
    identity = {"torch": name.removeprefix("torch-"), "git": "3c31d73"} if name.startswith("torch") else {"reader": name}
    return ObservedReader(name, identity, day, 1, {cell.cell: cell for cell in cells}, more.pop("probes", {}), **more)


def cell(fixture: str, result: str, options: str = "default", key: str = f"{SUBJECTS[0]}-{LOADS[0]}") -> Observation:
    both = tuple(replace(item, fixture=fixture, options=options, key=key) for item in WHOLE[result].both)
    return replace(WHOLE[result], fixture=fixture, options=options, key=key, both=both)


@st.composite
def many_readers(draw: st.DrawFn, names: Sequence[str] = NAMES) -> list[ObservedReader]:
    """Readers of any kind, several builds of a release among them, that did anything with anything."""
    matches = []
    for name in draw(st.lists(st.sampled_from(names), unique=True, max_size=5)):
        results = RESULTS if name.startswith("reference") else [entry for entry in RESULTS if entry != "unsupported"]
        cells = {}
        for writer, recipe, options, subject, load, result in draw(
            st.lists(
                st.tuples(
                    st.sampled_from(["synthetic", *(f"torch-{release}" for release in RELEASES)]),
                    st.sampled_from(RECIPES),
                    st.sampled_from(OPTIONS),
                    st.sampled_from(SUBJECTS),
                    st.sampled_from(LOADS),
                    st.sampled_from(results),
                ),
                max_size=12,
            )
        ):
            item = cell(f"{writer}/{recipe}", result, options, f"{subject}-{load}")
            cells[item.cell] = item
        checks = draw(
            st.lists(st.tuples(st.text(max_size=3), st.sampled_from([True, False, None]), st.text(max_size=3)), max_size=2)
        )
        error = draw(st.sampled_from([None, {"type": "x", "message": "y\tz\n"}]))
        probes = {"one": Probe("one", "1" * 20, tuple(checks), error)} if draw(st.booleans()) else {}
        deprecations = {"old": SEEN} if draw(st.booleans()) else {}
        matches.append(made(name, cells.values(), probes=probes, deprecations=deprecations))
    return matches


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.txt"))}


def whole(folder: Path) -> Recorded:
    result = read_recorded(folder)
    assert result.unreadable == {}
    return result


# ------------------------------------------------------------------------------------------------------------ round trips


@settings(max_examples=60, deadline=None)
@given(many_readers(), st.randoms(use_true_random=False))
def test_a_round_trip_changes_nothing(readers: list[ObservedReader], random: Random) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "one"
        write_recorded(folder, readers)
        before = files(folder)
        result = whole(folder)
        assert result.readers == {reader.name: reader for reader in readers}
        for reader in readers:
            kept = result.readers[reader.name]
            assert kept.digest == reader.digest
            assert len(kept.cells) == len(list(kept.cells)) == len(reader.cells)
            assert all(kept.cells[item].departures == reader.cells[item].departures for item in reader.cells)
        assert write_recorded(folder, result.readers.values()) == []
        assert files(folder) == before
        shuffled = [replace(item, cells=dict(random.sample(list(item.cells.items()), len(item.cells)))) for item in readers]
        random.shuffle(shuffled)
        write_recorded(Path(place) / "other", shuffled)
        assert files(Path(place) / "other") == before


@settings(max_examples=40, deadline=None)
@given(many_readers([name for name in NAMES if name.startswith("torch")]), st.sampled_from(RESULTS[:3]))
def test_a_new_release_adds_a_file_and_changes_none(readers: list[ObservedReader], result: str) -> None:
    """Whatever was given to older ones, stale or not: the new one reads it all, and they read what it wrote."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_recorded(folder, readers)
        before = files(folder)
        written = {item for reader in readers for item in reader.cells}
        newest = made("torch-2.99.0+cpu", [cell(fixture, result, options, f"{SUBJECTS[1]}-x") for fixture, options in written])
        for reader in readers:
            own = cell("torch-2.99.0/add", result)
            record(folder, replace(reader, cells={**reader.cells, own.cell: own}, observed=LATER))
        record(folder, newest)
        after = files(folder)
        assert {name: after[name] for name in before} == before
        assert after.keys() - before.keys() == {"torch-2.99.0.txt"}
        assert {item.observed for item in whole(folder).readers.values() if item != newest} <= {LATER}


def test_a_column_is_a_mapping(tmp_path: Path) -> None:
    item = cell("torch-1.5.0/add", "refused")
    write_recorded(tmp_path, [made("torch-1.5.1", [item]), made("torch-2.13.0")])
    old, new = whole(tmp_path).readers.values()
    assert (dict(old.cells), dict(new.cells)) == ({item.cell: item}, {})
    assert item.cell in old.cells
    assert item.cell not in new.cells
    for reader, wanted in ((new, item.cell), (old, ("torch-1.5.0/div", "default"))):
        with pytest.raises(KeyError):
            reader.cells[wanted]


def test_nothing_is_read_of_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert whole(tmp_path / "nowhere").readers == {}
    assert write_recorded(tmp_path / "nowhere", []) == []


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.sampled_from(["@", "@@x", "a b " * LONG, "@ b " * LONG, "A" * 2 * LONG]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(JSON)
def test_texts_that_stand_apart_come_back(value: Any) -> None:
    texts = Texts(10_000)
    short = apart(value, texts.known)
    assert texts.whole(short) == value
    assert all(len(text) > LONG for text in texts.known.values())


def test_only_long_texts_with_blanks_stand_apart() -> None:
    results: dict[str, str] = {}
    tensor, error = "A" * 200, "a b " * 50
    short = apart({"bytes": tensor, "message": error, "a b " * 60: [error[:LONG]]}, results)
    assert list(results.values()) == [error]
    assert short == {"bytes": tensor, "message": f"@{min(results)}", "a b " * 60: [error[:LONG]]}


def test_a_long_text_is_told_once_in_the_oldest_file_that_needs_it(tmp_path: Path) -> None:
    write_recorded(tmp_path, world(*BASE, "2.16.0"))
    told = [(path.stem, dump(CAREFUL) == line[2]) for path in sorted(tmp_path.iterdir()) for line in lines_of(path, "text")]
    assert told == [("torch-1.5.1", True)]
    assert all(CAREFUL not in line[-1] for path in tmp_path.iterdir() for line in lines_of(path, "outcome"))


def test_a_text_that_no_file_tells_is_missed_by_name(tmp_path: Path) -> None:
    write_recorded(tmp_path, world(*BASE))
    ((_, name, _),) = lines_of(tmp_path / "torch-1.5.1.txt", "text")
    edit_lines(tmp_path / "torch-1.5.1.txt", lambda lines: [line for line in lines if not line.startswith("text")])
    result = read_recorded(tmp_path)
    assert result.unreadable.keys() == {"torch-1.5.1.txt", "torch-2.13.0.txt"}
    assert all(f"readable file contains, such as the text {name}" in why for why in result.unreadable.values())
    assert result.readers.keys() == {f"torch-{release}+cpu" for release in BASE}


def test_texts_of_a_file_that_is_not_sound_are_missed(tmp_path: Path) -> None:
    """An outcome that contradicts itself costs its file, and newer ones what rests on the file's texts."""
    old, new = cell("torch-1.5.1/add", "refused"), cell("torch-2.13.0/add", "unstable")
    write_recorded(tmp_path, [made("torch-1.5.1", [old]), made("torch-2.13.0", [new])])
    body = {"result": "splendid"}
    line = f"outcome\t{body_id(body)}\t{dump(body)}"
    edit_lines(tmp_path / "torch-1.5.1.txt", lambda lines: [*lines, line])
    result = read_recorded(tmp_path).unreadable
    assert "unknown result 'splendid'" in result["torch-1.5.1.txt"]
    assert (
        "1 of its cells and answers refers to records that no readable file contains, such as the text"
        in result["torch-2.13.0.txt"]
    )


def test_texts_of_all_outcomes_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_recorded(tmp_path, world(*BASE))
    monkeypatch.setattr(recorded, "FREE_LETTERS", len(CAREFUL) - 1)
    monkeypatch.setattr(recorded, "LETTERS_PER_BYTE", 0)
    result = read_recorded(tmp_path).unreadable
    assert f"{tmp_path}/torch-1.5.1.txt:" in result["torch-1.5.1.txt"]
    assert f"contains more than {len(CAREFUL) - 1} characters of text" in result["torch-1.5.1.txt"]


def test_what_is_alike_stands_in_one_line(tmp_path: Path) -> None:
    """Recipes of one reader, fixtures of one release, load options of most cells, readers of one day."""
    alike = [cell(f"torch-{release}/{recipe}", "refused") for release in ("1.5.0", "2.13.0") for recipe in RECIPES]
    other = cell("torch-1.5.0/other", "refused", key=f"{SUBJECTS[0]}-{LOADS[1]}")
    readers = [made("torch-1.5.0", alike), made("torch-1.5.0+cpu", alike), made("torch-2.13.0", [*alike, other])]
    write_recorded(tmp_path, readers)
    results = {kind: lines_of(tmp_path / "torch-2.13.0.txt", kind) for kind in ("shown", "options", "read", "wrote")}
    outcome, names = body_id(apart(body_entry(alike[0]), {})), " ".join(RECIPES)
    seals = " ".join(f"{reader.name}:{reader.identity_digest}" for reader in readers[:2])
    assert results == {
        "shown": [["shown", DAY, seals]],
        "options": [["options", "default", LOADS[0]]],
        "read": [
            ["read", "torch-2.13.0", names, f"default {outcome} 1.5.0.."],
            ["read", "torch-2.13.0", "other", f"default:{LOADS[1]} {outcome} 1.5.0"],
        ],
        "wrote": [["wrote", " ".join(f"{recipe}:{SUBJECTS[0]}" for recipe in RECIPES), f"default {outcome} 1.5.0.."]],
    }
    assert whole(tmp_path).readers == {reader.name: reader for reader in readers}


def test_a_build_stands_in_a_set_where_there_are_two_of_a_release() -> None:
    assert short_names(["torch-1.5.0", "torch-1.5.1", "torch-1.5.1+cpu", "torch-2.0.1+cu117"]) == [
        "1.5.0",
        "1.5.1",
        "1.5.1+cpu",
        "2.0.1",
    ]


def test_an_outcome_is_told_once_in_the_oldest_file_that_needs_it(tmp_path: Path) -> None:
    world = [made(f"torch-{release}", [cell("torch-1.5.0/add", "refused")]) for release in RELEASES]
    write_recorded(tmp_path, world)
    assert {path.name: len(lines_of(path, "outcome")) for path in tmp_path.iterdir() if lines_of(path, "outcome")} == {
        "torch-1.5.0.txt": 1
    }
    write_recorded(tmp_path, world[3:])  # those that told it are gone
    assert len(lines_of(tmp_path / "torch-2.13.0.txt", "outcome")) == 1
    assert whole(tmp_path).readers == {item.name: item for item in world[3:]}


# ---------------------------------------------------------------------------------------------------------------- branches


def world(*releases: str, apart: Collection[str] = ()) -> list[ObservedReader]:
    """Releases that read what each wrote; no cell is between two of ``apart``."""
    readers = []
    for name in releases:
        cells = []
        for writer in releases:
            if name != writer and name in apart and writer in apart:
                continue
            for recipe in RECIPES:
                if name < writer:
                    cells.append(cell(f"torch-{writer}/{recipe}", Random(f"{recipe}{writer}").choice(["refused", "crashed"])))
                else:
                    cells.append(
                        cell(f"torch-{writer}/{recipe}", Random(f"{recipe}{name}").choice(["same", "differs", "raised"]))
                    )
        readers.append(made(f"torch-{name}+cpu", cells, probes={"one": Probe("one", "1" * 20, ((name, True, ""),))}))
    return readers


BASE = ("1.5.0", "1.5.1", "2.13.0")


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not there")
def test_branches_that_each_add_a_release_merge(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
        subprocess.run(["git", "-C", tmp_path, *who, *arguments], check=True, capture_output=True)

    folder = tmp_path / "observations"
    git("init", "-q", "-b", "main")
    write_recorded(folder, world(*BASE))
    git("add", ".")
    git("commit", "-qm", "base")
    for release in ("2.16.0", "2.17.0"):
        git("checkout", "-q", "-b", release, "main")
        for reader in world(*BASE, release):
            record(folder, replace(reader, observed=LATER))
        git("add", ".")
        git("commit", "-qm", release)
    git("checkout", "-q", "2.16.0")
    git("merge", "-q", "--no-edit", "2.17.0")
    both = ("2.16.0", "2.17.0")
    expected = {item.name: item for item in world(*BASE, *both, apart=both)}
    result = whole(folder)
    assert {name: dict(item.cells) for name, item in result.readers.items()} == {
        name: item.cells for name, item in expected.items()
    }
    assert [item.probes for item in result.readers.values()] == [item.probes for item in expected.values()]
    complete = world(*BASE, *both)
    for reader in complete:
        record(folder, reader)
    assert {name: dict(item.cells) for name, item in whole(folder).readers.items()} == {
        item.name: item.cells for item in complete
    }


# --------------------------------------------------------------------------------------------------------------- recording


def test_recording_the_same_facts_changes_no_file(tmp_path: Path) -> None:
    write_recorded(tmp_path, world(*BASE))
    before = files(tmp_path)
    for reader in world(*BASE):
        result, changed = record(tmp_path, replace(reader, observed=LATER))
        assert changed == []
        assert result.readers[reader.name].observed == DAY
    assert files(tmp_path) == before


def test_the_day_changes_where_the_facts_do(tmp_path: Path) -> None:
    write_recorded(tmp_path, world(*BASE))
    reader = next(item for item in world(*BASE) if item.release == "1.5.1")
    for fixture, file in (("torch-2.13.0/add", "torch-2.13.0.txt"), ("torch-1.5.0/add", "torch-1.5.1.txt")):
        other = replace(reader, observed=LATER, cells={**reader.cells, (fixture, "default"): cell(fixture, "timed-out")})
        result, changed = record(tmp_path, other)
        assert file in {path.name for path in changed}
        assert result.readers[reader.name].observed == LATER
        days = whole(tmp_path).readers[reader.name].days
        assert {name for name, day in days.items() if day == LATER} == {file.removesuffix(".txt")}
        write_recorded(tmp_path, world(*BASE))


def test_another_identity_is_another_day_everywhere(tmp_path: Path) -> None:
    write_recorded(tmp_path, world(*BASE))
    reader = world(*BASE)[0]
    other = replace(reader, observed=LATER, identity={**reader.identity, "git": "0"})
    _, changed = record(tmp_path, other)
    assert {path.stem for path in changed} == {f"torch-{release}" for release in BASE}
    assert whole(tmp_path).readers[reader.name] == other


def test_nothing_is_recorded_beside_what_cannot_be_used(tmp_path: Path) -> None:
    write_recorded(tmp_path, world(*BASE))
    (tmp_path / "torch-1.5.0.txt").write_text(f"observations {VERSION}\n")
    before = files(tmp_path)
    with pytest.raises(CorpusError) as caught:
        record(tmp_path, world(*BASE)[1])
    assert caught.value.code == "unreadable-file"
    assert "torch-1.5.0.txt" in str(caught.value)
    assert files(tmp_path) == before


RECORD = """
import pickle, sys
from torch_compat.corpus.recorded import record
from torch_compat.writes import changing
with open(sys.argv[1], "rb") as given:
    folder, reader = pickle.load(given)
for _ in range(3):
    with changing(folder.parent):
        record(folder, reader)
"""


def test_processes_that_record_at_once_lose_nothing(tmp_path: Path) -> None:
    readers = world(*BASE, "2.16.0")
    folder, together = tmp_path / "at-once", tmp_path / "together"
    processes = []
    for number, reader in enumerate(readers):
        given = tmp_path / str(number)
        given.write_bytes(pickle.dumps((folder, reader)))
        processes.append(subprocess.Popen([sys.executable, "-c", RECORD, given]))
    assert [process.wait() for process in processes] == [0] * len(readers)
    assert whole(folder).readers == {reader.name: reader for reader in readers}
    write_recorded(together, readers)
    assert files(together) == files(folder)


# ------------------------------------------------------------------------------------------------------------------ damage


@pytest.mark.parametrize("release", BASE)
@pytest.mark.parametrize("damage", ["removed", "edited", "emptied"])
def test_a_damaged_file_costs_what_it_holds_and_names_what_rests_on_it(release: str, damage: str, tmp_path: Path) -> None:
    readers = world(*BASE)
    write_recorded(tmp_path, readers)
    path = tmp_path / f"torch-{release}.txt"
    if damage == "removed":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes().replace(b"012da4", b"112da4") if damage == "edited" else b"")
    result = read_recorded(tmp_path)
    assert (path.name in result.unreadable) is (damage != "removed")
    assert f"torch-{release}+cpu" not in result.readers
    for reader in readers:
        if reader.release == release:
            continue
        kept = dict(result.readers[reader.name].cells)
        assert kept.items() <= reader.cells.items()
        for lost in reader.cells.keys() - kept.keys():
            newer = max(reader.release, lost[0].removeprefix("torch-").partition("/")[0], key=BASE.index)
            assert f"torch-{newer}.txt" in {path.name, *result.unreadable}
    for name, why in result.unreadable.items():
        assert str(tmp_path / name) in why
        assert name == path.name or "to records that no readable file contains" in why
    if release != BASE[-1]:
        assert f"torch-{BASE[-1]}.txt" in result.unreadable


def test_a_file_that_is_cut_off_anywhere_is_noticed(tmp_path: Path) -> None:
    write_recorded(tmp_path, world(*BASE))
    path = tmp_path / "torch-1.5.1.txt"
    data = path.read_bytes()
    ends = [at + 1 for at, byte in enumerate(data) if byte == ord("\n")]
    for end in {*ends[:-1], *range(0, len(data) - 1, 97), len(data) - 1}:
        path.write_bytes(data[:end])
        assert path.name in read_recorded(tmp_path).unreadable, end


SAME_CELLS = "default same"
ANSWER = digest({"checks": [["1.5.1", True, ""]], "error": None})[:12]
EDITS: dict[str, tuple[str, int, str, str]] = {
    "a kind that is not known": ("probe", 0, "prove", "has unknown kind 'prove'"),
    "another reader": ("reader", 1, "torch-1.6.0", "is recorded for torch-1.6.0, but the answer came from"),
    "a reader twice": ("shown", 0, "reader", "Expecting value"),
    "no JSON": ("reader", 2, "{", "Expecting property name"),
    "no object": ("reader", 2, "[1]", "is '[1]', expected a JSON object"),
    "no identity": ("reader", 2, '{"identity":null,"observed":"2026-11-20","protocol":1}', "but the answer came from None"),
    "an identity of lists": (
        "reader", 2, '{"identity":{"torch":"1.5.1+cpu","x":[]},"observed":"2026-11-20","protocol":1}', "identity may contain only strings, numbers, booleans and null",
    ),
    "no day": ("reader", 2, '{"identity":{"torch":"1.5.1+cpu"},"protocol":1}', "is not a complete entry: KeyError('observed')"),
    "a day of a number": (
        "reader", 2, '{"identity":{"torch":"1.5.1+cpu"},"observed":7,"protocol":1}', "was observed on 7, which is not a date",
    ),
    "a protocol of a text": (
        "reader", 2, '{"identity":{"torch":"1.5.1+cpu"},"observed":"2026-11-20","protocol":"1"}', "has protocol '1', expected a number",
    ),
    "another seal": ("shown", 2, f"torch-1.5.0+cpu:{'0' * 16}", "was recorded by a different torch-1.5.0+cpu than the one whose identity is recorded"),
    "a newer one that was shown something": ("shown", 2, "torch-2.13.0+cpu:0", "lists torch-2.13.0+cpu as a reader, which is not an older release"),
    "one that is no release that was shown something": ("shown", 2, "torch-x:0", "expected a version of torch such as '2.13.0'"),
    "one that was shown something twice": ("shown", 2, "torch-1.5.0:0 torch-1.5.0:0", "duplicate entry 'torch-1.5.0'"),
    "newer ones that were shown something before older": ("shown", 2, "torch-1.5.0+cpu:0 torch-1.5.0:0", "in the wrong order"),
    "no seal": ("shown", 2, "torch-1.5.0", "has 'torch-1.5.0', expected NAME:SEAL"),
    "load options without a name": ("options", 1, "", "expected the name of a set of load options and a digest"),
    "a text of another name": ("text", 1, "0" * 12, "text 000000000000 was edited: its id does not match the digest of its contents"),
    "a text that is none": ("text", 2, "[1]", "is '[1]', expected a JSON string"),
    "a text that was edited": ("text", 2, '"x"', "was edited: its id does not match the digest of its contents"),
    "a day that is none": ("shown", 1, "soon", "was observed on 'soon', which is not a date"),
    "an answer of another name": ("answer", 1, "0" * 12, "answer 000000000000 was edited: its id does not match the digest of its contents"),
    "an outcome of another name": ("outcome", 1, "0" * 12, "outcome 000000000000 was edited: its id does not match the digest of its contents"),
    "a probe of another reader": ("probe", 1, "torch-1.6.0", "is for 'torch-1.6.0', a reader that no earlier line declares"),
    "an answer that nothing tells": ("probe", 2, f"one:{'1' * 20}:{'0' * 12}", "to records that no readable file contains, such as the answer 000000000000"),
    "a probe without a key": ("probe", 2, f"one:{ANSWER}", "has a probe '' with the key 'one', expected PROBE:KEY:ID"),
    "a probe without an answer": ("probe", 2, "one", "has 'one', expected PROBE:KEY:ID"),
    "probes in another order": ("probe", 2, f"two:1:{ANSWER} one:1:{ANSWER}", "in the wrong order"),
    "an answer to what is no probe": ("probe", 0, "deprecation", "is not a complete entry"),
    "writers of another reader": ("writers", 1, "torch-1.6.0", "a reader that no earlier line declares"),
    "writers in another order": ("writers", 2, "1.5.1 1.5.0", "are not sorted from oldest to newest"),
    "a writer twice": ("writers", 2, "1.5.0 1.5.0 1.5.1", "contains a duplicate name"),
    "a newer writer": ("writers", 2, "1.5.0 1.5.1 1.6.0", "lists writers that are newer"),
    "a writer that is no release": ("writers", 2, "1.5.0 1.5.1 x", "expected a version of torch such as '2.13.0'"),
    "no writers": ("writers", 2, "", "that is not a release"),
    "a writer elsewhere": ("writers", 2, "../x 1.5.0 1.5.1", "that is not a release"),
    "cells of another reader": ("read", 1, "torch-1.6.0", "expected a reader whose writers are listed above"),
    "a recipe elsewhere": ("read", 2, "../x", "and the names of recipes"),
    "recipes in another order": ("read", 2, "x+y add", "in the wrong order"),
    "a recipe twice": ("read", 2, "add add", "duplicate observation of torch-1.5.0/add (default) by torch-1.5.1+cpu"),
    "a set of a writer that is not listed": ("read", 3, f"{SAME_CELLS} 1.6.0", "the span '1.6.0' matches nothing in the list"),
    "a set without names": ("read", 3, f"{SAME_CELLS} ", "the span '' matches nothing in the list"),
    "a span without a beginning": ("read", 3, f"{SAME_CELLS} ..1.5.1", "the span '..1.5.1' matches nothing in the list"),
    "a span to nowhere": ("read", 3, f"{SAME_CELLS} 1.5.0..9.9.9", "matches nothing in the list"),
    "a span backwards": ("read", 3, f"{SAME_CELLS} 1.5.1..1.5.0", "the span '1.5.1..1.5.0' runs backwards"),
    "a set with a name twice": ("read", 3, f"{SAME_CELLS} 1.5.0..,1.5.1", "contains a duplicate"),
    "a set of very many spans": ("read", 3, f"{SAME_CELLS} {'1.5.0..,' * 200_000}1.5.0", "contains a duplicate"),
    "cells of load options that no line states": ("read", 3, "mmap same 1.5.0", "has cells with the load options 'mmap', which no earlier line declares"),
    "cells without an outcome": ("read", 3, "default 1.5.0", "contains the cells 'default 1.5.0', expected OPTIONS"),
    "cells of nobody": ("read", 3, "default", "contains the cells 'default', expected OPTIONS"),
    "cells with too much": ("read", 3, "a:b:c:d same 1.5.0", "contains the cells 'a:b:c:d same 1.5.0', expected OPTIONS"),
    "an outcome that nothing tells": ("read", 3, "default:012da4 0 1.5.0", "to records that no readable file contains, such as the outcome 0"),
    "a recipe that nobody wrote": ("read", 2, "nothing", "to records that no readable file contains, such as torch-1.5.0/nothing"),
    "no recipe": ("wrote", 1, "", "expected RECIPE:SUBJECT"),
    "no subject": ("wrote", 1, "add:", "expected RECIPE:SUBJECT"),
    "a recipe that is no name": ("wrote", 1, "../x:0", "expected the name of a recipe and a subject"),
    "fixtures in another order": ("wrote", 1, "x+y:0 add:0", "in the wrong order"),
    "a fixture twice": ("wrote", 1, "add:0 add:0", "duplicate entry 'add'"),
    "a byte that is no text": ("wrote", 1, "caf\u00e9", "contains byte 0xc3, expected ASCII"),
    "a tab more": ("wrote", 1, "a:0\tb", "contains the cells 'b', expected OPTIONS"),
    "ten million letters": ("wrote", 1, "x" * 10_000_000, "expected RECIPE:SUBJECT"),
    "very many who were shown something": ("shown", 2, " ".join(["torch-1.5.0:0"] * 10_000), "lists more than 2,000 readers"),
    "ten million letters of a set": ("read", 3, f"{SAME_CELLS} {'x' * 10_000_000}", "matches nothing in the list"),
    "a deep JSON": ("outcome", 2, '{"a":' * 100_000, "recursion"),
    "a number without end": ("outcome", 2, '{"result":"same","count":' + "9" * 10_000 + "}", "digits"),
}  # fmt: skip


@pytest.mark.parametrize("case", EDITS)
def test_a_line_that_is_not_right_is_refused_with_file_and_line(case: str, tmp_path: Path) -> None:
    kind, at, new, message = EDITS[case]
    write_recorded(tmp_path, world(*BASE))
    path = tmp_path / "torch-1.5.1.txt"
    index = next(index for index, line in enumerate(lines_of(path)) if line[0] == kind)

    def edit(lines: list[str]) -> None:
        fields = lines[index].split("\t")
        fields[at] = new
        lines[index] = "\t".join(fields)

    edit_lines(path, edit)
    started = time.process_time()
    why = read_recorded(tmp_path).unreadable[path.name]
    assert time.process_time() - started < 20
    assert message in why
    assert len(why) < 2000
    if not any(name in why for name in ("to records that no readable", "was recorded by a different")):
        assert why.startswith(f"{path}:{index + 1}: ")


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2**32))
def test_lines_that_are_changed_at_random_are_refused_or_read(seed: int) -> None:
    """Never another exception, and never a cell of somebody who is not there."""
    random = Random(seed)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_recorded(folder, world(*BASE))
        path = random.choice(sorted(folder.iterdir()))
        edit_lines(path, lambda lines: mutated(lines, random))
        result = read_recorded(folder)
        for why in result.unreadable.values():
            assert str(folder) in why
        for reader in result.readers.values():
            for item in reader.cells.values():
                body_entry(item)
        if not result.unreadable:  # it is another recording, and a sound one
            write_recorded(folder, result.readers.values())
            assert whole(folder).readers == result.readers


JUNK = (
    "",
    " ",
    "..",
    "1.5.0..",
    "2.13.0..1.5.0",
    "{}",
    "[]",
    "null",
    '{"result":"same"}',
    "same",
    "default:0 same 1.5.0",
    "\x00",
    "1e999",
    "-",
    "\r",
)


def mutated(lines: list[str], random: Random) -> list[str]:
    """One or two mutations."""
    lines = list(lines)
    for _ in range(random.randint(1, 2)):
        at = random.randrange(len(lines))
        fields = lines[at].split("\t")
        item, other = random.randrange(len(fields)), random.randrange(len(fields))
        match random.randrange(9):
            case 0:
                del fields[item]
            case 1:
                fields[item], fields[other] = fields[other], fields[item]
            case 2:
                fields[item] = random.choice(JUNK)
            case 3:
                fields.insert(item, random.choice(JUNK))
            case 4:
                text = fields[item]
                place = random.randrange(len(text) + 1)
                fields[item] = text[:place] + random.choice(',.:" {}[]0a') + text[place + random.randrange(2) :]
            case 5:
                lines.insert(random.randrange(len(lines)), lines[at])
            case 6:
                lines[random.randrange(len(lines))] = "\t".join(fields)
            case 7:
                fields[item] = random.choice(random.choice(lines).split("\t"))
            case _:
                del lines[at]
                continue
        lines[min(at, len(lines) - 1)] = "\t".join(fields)
    return lines or ["x"]


def test_what_contradicts_itself_names_the_line_of_the_outcome(tmp_path: Path) -> None:
    item = replace(cell("torch-1.5.0/add", "refused"), result="same")
    write_recorded(tmp_path, [made("torch-1.5.1", [item])])
    assert read_recorded(tmp_path).unreadable["torch-1.5.1.txt"] == (
        f"{tmp_path}/torch-1.5.1.txt:5: outcome is 'same', but has a value for 'errors'"
    )


def test_no_release_lacks_what_it_does_not_support(tmp_path: Path) -> None:
    write_recorded(tmp_path, [made("torch-1.5.1", [cell("torch-1.5.0/add", "unsupported")])])
    (why,) = read_recorded(tmp_path).unreadable.values()
    assert "says that torch-1.5.1 does not support torch-1.5.0/add: a release either loads a fixture or refuses it" in why


def test_a_cell_may_stand_once(tmp_path: Path) -> None:
    write_recorded(tmp_path, world(*BASE))
    for kind, message in (
        ("read", "duplicate observation of torch-1.5.0/add (default) by torch-1.5.1+cpu"),
        ("wrote", "duplicate entry for fixture 'add'"),
    ):
        path = tmp_path / "torch-1.5.1.txt"
        kept = path.read_bytes()
        line = "\t".join(lines_of(path, kind)[0])
        edit_lines(path, lambda lines, line=line: [*lines, line])  # type: ignore[misc]
        assert message in read_recorded(tmp_path).unreadable[path.name]
        path.write_bytes(kept)


@pytest.mark.parametrize(
    "label", ["torch-x", "1.5.1", "torch-1.5.1+cpu", "x", "torch-", "torch-1.5.1.x", "\x1b[31m", "torch-1.5.1 ", "Synthetic"]
)
def test_a_file_is_named_after_a_release(label: str, tmp_path: Path) -> None:
    (tmp_path / f"{label}.txt").write_text(with_end([f"observations {VERSION}\t{label}", f"wrote\tadd:{SUBJECTS[0]}"]))
    (why,) = read_recorded(tmp_path).unreadable.values()
    assert "is not a release" in why or "plain relative name" in why
    assert "\x1b" not in why


@pytest.mark.parametrize(
    "line",
    [f"shown\t{DAY}\ttorch-1.5.0:{'0' * 16}", f'reader\ttorch-1.5.0\t{{"identity":{{}},"observed":"{DAY}","protocol":1}}'],
)
def test_nobody_is_older_than_what_is_synthetic(line: str, tmp_path: Path) -> None:
    (tmp_path / "synthetic.txt").write_text(with_end([f"observations {VERSION}\tsynthetic", line]))
    assert ":2: " in read_recorded(tmp_path).unreadable["synthetic.txt"]


# ----------------------------------------------------------------------------------------------------------------- budgets


def claiming(folder: Path, recipes: int, *, subject: str = f":{SUBJECTS[0]}") -> Path:
    """A small file that says that very many fixtures of very many releases were read."""
    writers = [f"1.{minor}.0" for minor in range(parsing.MOST_NAMES)]
    facts = dump({"identity": {"torch": "9.0.0"}, "observed": DAY, "protocol": 1})
    lines = [
        f"observations {VERSION}\ttorch-9.0.0",
        f"reader\ttorch-9.0.0\t{facts}",
        f"writers\ttorch-9.0.0\t{' '.join(writers)}",
    ]
    lines += [f"read\ttorch-9.0.0\tr{at}\tdefault:x{subject} same 1.0.0.." for at in range(recipes)]
    path = folder / "torch-9.0.0.txt"
    path.write_text(with_end(lines))
    return path


@pytest.mark.parametrize("subject", [f":{SUBJECTS[0]}", ""])
def test_a_small_file_does_not_make_very_many_cells(subject: str, tmp_path: Path) -> None:
    path = claiming(tmp_path, 20_000, subject=subject)  # forty million
    size = path.stat().st_size
    assert size < 1_500_000
    path = claiming(tmp_path, 300, subject=subject)
    started = time.process_time()
    result = read_recorded(tmp_path)
    assert time.process_time() - started < 30
    assert "too many for files of this size" in result.unreadable[path.name]
    assert len(result.lines) <= recorded.FREE_CELLS + recorded.CELLS_PER_BYTE * size


def test_a_line_of_many_recipes_counts_the_cells_of_each(tmp_path: Path) -> None:
    path = claiming(tmp_path, 0)
    names = " ".join(sorted(f"r{at}" for at in range(300)))
    edit_lines(path, lambda lines: [*lines, f"read\ttorch-9.0.0\t{names}\tdefault:x:{SUBJECTS[0]} same 1.0.0.."])
    assert "too many for files of this size" in read_recorded(tmp_path).unreadable[path.name]


def test_pairs_of_fixtures_and_options_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded, "MOST_LINES", 5_000)
    path = claiming(tmp_path, 10)
    result = read_recorded(tmp_path)
    assert "expands to more than 5,000 fixture/options pairs" in result.unreadable[path.name]
    assert len(result.lines) == 5_000


def test_lists_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_recorded(tmp_path, world(*BASE))
    monkeypatch.setattr(parsing, "MOST_NAMES", 2)
    result = read_recorded(tmp_path)
    (why,) = result.unreadable.values()
    assert f"{tmp_path}/torch-2.13.0.txt:" in why
    assert "more than 2" in why
    assert len(result.readers) == 2


def test_the_limits_are_far_from_what_is_recorded() -> None:
    folder = Path(__file__).parents[2] / "reports" / "observations"
    result = whole(folder)
    size = sum(path.stat().st_size for path in folder.iterdir())
    cells = sum(group.readers.bit_count() for groups in result.lines.values() for group in groups)
    assert cells < (recorded.FREE_CELLS + recorded.CELLS_PER_BYTE * size) / 10
    assert cells < recorded.MOST_CELLS / 10
    assert len(result.lines) < recorded.MOST_LINES / 10
    assert len(result.readers) < parsing.MOST_NAMES / 10
    assert size * recorded.LETTERS_PER_BYTE > 10 * letters(folder)


def letters(folder: Path) -> int:
    """Of the texts that outcomes and answers mean."""
    lines = [line for path in folder.iterdir() for line in lines_of(path)]
    texts = Texts(recorded.FREE_LETTERS)
    texts.known = {line[1]: json.loads(line[2]) for line in lines if line[0] == "text"}
    for line in lines:
        if line[0] in {"answer", "outcome"}:
            texts.whole(json.loads(line[2]))
    return recorded.FREE_LETTERS - texts._room


def test_the_repository_has_what_the_harness_writes(tmp_path: Path) -> None:
    folder = Path(__file__).parents[2] / "reports" / "observations"
    write_recorded(tmp_path, whole(folder).readers.values())
    assert files(tmp_path) == files(folder)


# -------------------------------------------------------------------------------------------------------------- the manual


def test_the_manual_names_every_kind_of_line() -> None:
    text = (Path(__file__).parents[2] / "reports" / "README.md").read_text(encoding="utf-8")
    for kind, (grammar, _) in parsing._KINDS.items():
        assert f"`{kind}`" in text
        assert f'"{kind}" {grammar.text}' in " ".join(str(package.__doc__).split()), kind
    assert f"observations {VERSION}" in text
    named = {line.partition("`")[2].partition("`")[0] for line in text.splitlines() if line.startswith("| `")}
    assert named == {*parsing._KINDS, "observations", "end"}


def test_a_name_of_an_outcome_is_its_digest(tmp_path: Path) -> None:
    write_recorded(tmp_path, world(*BASE))
    for path in tmp_path.iterdir():
        for _, name, text in lines_of(path, "outcome"):
            assert name in {body_id(apart(body_entry(item), {})) for item in WHOLE.values()}
            assert dump(parsing._json(text)) == text
            assert digest(parsing._json(text)).startswith(name)
