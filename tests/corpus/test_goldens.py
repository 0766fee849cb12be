"""Each value is stored once, with the oldest release that has it; nothing is lost, and missing data is named."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.corpus.test_manifest import FIXTURE, NOT_WRITABLE
from torch_compat.corpus.corpus import load_corpus
from torch_compat.corpus.goldens import GOLDENS, Goldens, value_id
from torch_compat.corpus.json_lines import digest, read_lines, write_lines
from torch_compat.corpus.manifest import Manifest, read_manifest, write_manifest
from torch_compat.errors import CorpusError

if TYPE_CHECKING:
    from pathlib import Path


def golden(number: int) -> dict[str, Any]:
    return {"value": number}


def manifest(release: str, *goldens: int) -> Manifest:
    """A manifest whose fixtures have these goldens."""
    identity = {"torch": release}
    writer = digest(identity)[:12]
    fixtures = tuple(
        replace(FIXTURE, release=release, recipe=f"r{at}", file=f"r{at}.pt", writer=writer, golden=golden(item))
        for at, item in enumerate(goldens)
    )
    lacks = replace(NOT_WRITABLE, release=release, writer=writer)
    return Manifest(release, {writer: identity}, fixtures, (lacks,))


def write(fixtures: Path, *manifests: Manifest) -> None:
    for item in manifests:
        write_manifest(fixtures / f"torch-{item.release}" / "manifest.jsonl", item)


def told(fixtures: Path) -> dict[str, list[int]]:
    """The goldens that each folder tells."""
    results = {}
    for path in sorted(fixtures.glob(f"*/{GOLDENS}")):
        _, lines = read_lines(path, "goldens")
        results[path.parent.name] = sorted(entry["value"]["value"] for _, entry in lines if "value" in entry["value"])
    return results


OLD, MIDDLE, NEW = manifest("1.5.1", 1, 2), manifest("1.10.2", 2, 3), manifest("2.0.0", 1, 3)


@pytest.mark.parametrize("seed", range(6))
def test_a_value_stands_once_whatever_was_written_first(seed: int, tmp_path: Path) -> None:
    order = random.Random(seed).sample([OLD, MIDDLE, NEW], 3)
    write(tmp_path, *order)
    assert told(tmp_path) == {"torch-1.5.1": [1, 2], "torch-1.10.2": [3]}
    goldens = Goldens(tmp_path)
    for item in (OLD, MIDDLE, NEW):
        assert read_manifest(tmp_path / f"torch-{item.release}" / "manifest.jsonl", goldens) == item


def test_a_new_release_changes_no_file_of_another(tmp_path: Path) -> None:
    write(tmp_path, OLD, MIDDLE)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.jsonl")}
    write(tmp_path, manifest("2.0.0", 2, 9))
    assert {path: path.read_bytes() for path in before} == before
    assert told(tmp_path)["torch-2.0.0"] == [9]


def test_what_others_name_outlives_the_fixture_that_brought_it(tmp_path: Path) -> None:
    write(tmp_path, OLD, MIDDLE, NEW)
    write(tmp_path, manifest("1.5.1", 1))
    assert told(tmp_path) == {"torch-1.5.1": [1], "torch-1.10.2": [2, 3]}
    assert read_manifest(tmp_path / "torch-1.10.2" / "manifest.jsonl") == MIDDLE


def test_what_nobody_names_goes(tmp_path: Path) -> None:
    write(tmp_path, OLD)
    write(tmp_path, manifest("1.5.1"))
    assert told(tmp_path) == {}


def test_equal_values_are_one_object(tmp_path: Path) -> None:
    write(tmp_path, OLD, MIDDLE)
    goldens = Goldens(tmp_path)
    old, middle = (read_manifest(tmp_path / f"torch-{item.release}" / "manifest.jsonl", goldens) for item in (OLD, MIDDLE))
    assert old.fixtures[1].golden is middle.fixtures[0].golden
    assert old.fixtures[0].calls is middle.fixtures[0].calls


def test_nothing_is_taken_away_while_a_file_cannot_be_read(tmp_path: Path) -> None:
    write(tmp_path, OLD, MIDDLE)
    broken = tmp_path / "torch-1.5.1" / GOLDENS
    whole = broken.read_text()
    broken.write_text(whole[: len(whole) // 2])
    write(tmp_path, NEW)
    assert broken.read_text() == whole[: len(whole) // 2]
    broken.write_text(whole)
    assert read_manifest(tmp_path / "torch-2.0.0" / "manifest.jsonl") == NEW
    write(tmp_path, NEW)
    assert told(tmp_path) == {"torch-1.5.1": [1, 2], "torch-1.10.2": [3]}


def change(path: Path, at: int, **fields: Any) -> None:
    """Change a line of a file of values; its footer fits."""
    header, lines = read_lines(path, "goldens")
    entries = [entry for _, entry in lines]
    entries[at] = {name: value for name, value in (entries[at] | fields).items() if value is not ...}
    write_lines(path, header, entries)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"value": {"value": 7}}, "was edited: its id does not match the digest of its contents"),
        ({"value": ...}, "is not a value with an id"),
        ({"id": ...}, "is not a value with an id"),
        ({"id": 7}, "is not a value with an id"),
        ({"kind": "golden"}, "is not a value with an id"),
    ],
)
def test_a_damaged_value_is_named_with_its_line(fields: dict[str, Any], said: str, tmp_path: Path) -> None:
    write(tmp_path, OLD)
    change(tmp_path / "torch-1.5.1" / GOLDENS, 1, **fields)
    (damage, *_) = load_corpus(tmp_path).damage
    assert (damage.kind, damage.subject) == ("unreadable-manifest", f"torch-1.5.1/{GOLDENS}")
    assert f"torch-1.5.1/{GOLDENS}:3: " in damage.detail
    assert said in damage.detail


def test_a_value_told_twice_is_refused(tmp_path: Path) -> None:
    write(tmp_path, OLD)
    path = tmp_path / "torch-1.5.1" / GOLDENS
    header, lines = read_lines(path, "goldens")
    entries = [entry for _, entry in lines]
    write_lines(path, header, [*entries, entries[0]])
    assert "duplicate value" in str(Goldens(tmp_path).unreadable[f"torch-1.5.1/{GOLDENS}"])


@pytest.mark.parametrize("cut", range(0, 400, 37))
def test_a_file_that_is_cut_off_is_noticed(cut: int, tmp_path: Path) -> None:
    write(tmp_path, OLD)
    path = tmp_path / "torch-1.5.1" / GOLDENS
    data = path.read_bytes()
    path.write_bytes(data[: min(cut, len(data) - 2)])
    assert Goldens(tmp_path).unreadable


def test_a_value_that_no_file_tells_is_named_with_the_line_that_names_it(tmp_path: Path) -> None:
    write(tmp_path, OLD)
    (tmp_path / "torch-1.5.1" / GOLDENS).unlink()
    with pytest.raises(CorpusError, match=r"manifest\.jsonl:\d: refers to the (calls|golden)") as raised:
        read_manifest(tmp_path / "torch-1.5.1" / "manifest.jsonl")
    assert raised.value.code == "missing-value"


def test_values_are_told_apart_as_their_texts() -> None:
    values = [{"value": 1}, {"value": True}, {"value": 1.0}, {"value": {"float": 0.0}}, {"value": {"float": -0.0}}]
    assert len({value_id(value) for value in values}) == len(values)
