"""Manifests: a round trip changes nothing; incomplete or inconsistent data is rejected with its line."""

from __future__ import annotations

import tempfile
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torch_compat.corpus.goldens import GOLDENS, value_id
from torch_compat.corpus.json_lines import digest, dump, read_lines, write_lines
from torch_compat.corpus.manifest import (
    SYNTHETIC,
    VALUES,
    VARYING,
    DirectoryFixture,
    Fixture,
    Manifest,
    NotWritable,
    Synthetic,
    read_manifest,
    same_but_for_varying,
    write_manifest,
)
from torch_compat.errors import CorpusError

IDENTITY = {"torch": "1.5.1", "git": "3c31d73", "python": "3.8.18"}
WRITER = digest(IDENTITY)[:12]
FIXTURE = Fixture(
    release="1.5.1",
    recipe="div",
    recipe_sha256="a" * 64,
    file="div.pt",
    sha256="b" * 64,
    size=1500,
    content="c" * 64,
    writer=WRITER,
    written="2026-11-20",
    family="torchscript",
    container="zip",
    versions={"file-format": 3},
    operators=["aten::div"],
    calls=[{"method": "forward", "args": [1]}],
    golden={"state": None, "calls": [], "state_after": None},
    readback="same",
)
NOT_WRITABLE = NotWritable("1.5.1", "package", "d" * 64, WRITER, "2026-11-20", "ImportError", "No module named 'torch.package'")
MANIFEST = Manifest("1.5.1", {WRITER: IDENTITY}, (FIXTURE,), (NOT_WRITABLE,))


def written(folder: Path, manifest: Manifest = MANIFEST) -> Path:
    path = folder / f"torch-{manifest.release}" / "manifest.jsonl"
    write_manifest(path, manifest)
    return path


def rewrite(path: Path, index: int, **change: Any) -> Path:
    """Change an entry, with a footer that fits."""
    header, lines = read_lines(path, "manifest")
    entries = [entry for _, entry in lines]
    entries[index] = {key: value for key, value in (entries[index] | change).items() if value is not ...}
    write_lines(path, header, entries)
    return path


def changed(**change: Any) -> Fixture:
    return replace(FIXTURE, **change)


def error(path: Path) -> CorpusError:
    with pytest.raises(CorpusError) as caught:
        read_manifest(path)
    return caught.value


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(alphabet="abc_", min_size=1, max_size=4), unique=True, max_size=6), st.data())
def test_round_trip(names: list[str], data: st.DataObject) -> None:
    split = data.draw(st.integers(0, len(names)))
    versions = data.draw(st.dictionaries(st.sampled_from(["file-format", "bytecode"]), st.integers(1, 9)))
    golden = data.draw(st.sampled_from([{"error": {"type": "x", "message": "\u2713"}}, {"value": [1, None, "ü"]}]))
    manifest = Manifest(
        "1.5.1",
        {WRITER: IDENTITY},
        tuple(changed(recipe=name, versions=versions, golden=golden) for name in sorted(names[:split])),
        tuple(replace(NOT_WRITABLE, recipe=name) for name in sorted(names[split:])),
    )
    with tempfile.TemporaryDirectory() as folder:
        result = read_manifest(written(Path(folder), manifest))
    assert result == manifest
    assert result.digest == manifest.digest
    assert [entry.recipe for entry in result.entries] == sorted(names)
    assert [entry.pin for entry in result.entries] == [entry.pin for entry in manifest.entries]


@pytest.mark.parametrize("name", [field.name for field in fields(Fixture)])
def test_the_pin_covers_every_field(name: str) -> None:
    assert changed(**{name: "another"}).pin != FIXTURE.pin


def test_the_pin_does_not_depend_on_what_was_asked_before() -> None:
    fresh = replace(FIXTURE)
    assert fresh.subject
    assert fresh.pin == replace(FIXTURE).pin


def test_the_subject_is_what_a_reader_is_given_and_compared_with() -> None:
    covered = {"sha256", "family", "calls", "golden"}
    for field in fields(Fixture):
        another = changed(**{field.name: "another"}).subject
        assert (another != FIXTURE.subject) is (field.name in covered)


@pytest.mark.parametrize("name", [field.name for field in fields(Fixture) if field.name != "release"])
def test_an_entry_that_lacks_something_is_refused(name: str, tmp_path: Path) -> None:
    assert "manifest.jsonl:3: " in str(error(rewrite(written(tmp_path), 1, **{name: ...})))


@pytest.mark.parametrize("name", [field.name for field in fields(Fixture) if field.name != "release"])
def test_an_entry_with_a_value_of_a_wrong_type_is_refused(name: str, tmp_path: Path) -> None:
    result = error(rewrite(written(tmp_path), 1, **{name: 1.5}))
    message = f"{name} is 1.5, expected the id of a value" if name in VALUES else f"has a value of the wrong type for {name}"
    assert message in str(result)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"surplus": 1}, "is not a complete entry"),
        ({"kind": "fixtures"}, "has unknown kind 'fixtures'"),
        ({"recipe": "package"}, "recipe 'package' is already listed on line 3"),
        ({"writer": "somebody"}, "refers to the unknown writer 'somebody'"),
    ],
)
def test_an_inconsistent_entry_is_refused(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    assert said in str(error(rewrite(written(tmp_path), 1, **change)))


@pytest.mark.parametrize(
    "identity", [{**IDENTITY, "git": "other"}, {**IDENTITY, "torch": "1.6.0"}, {"git": "3c31d73"}, "torch", None]
)
def test_a_writer_that_is_not_who_it_says_is_refused(identity: Any, tmp_path: Path) -> None:
    error(rewrite(written(tmp_path), 0, identity=identity))
    error(rewrite(written(tmp_path), 0, id=digest(identity)[:12], identity=identity))


def test_a_manifest_in_another_folder_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path)
    assert "is in 'torch-1.6.0'" in str(error(path.parent.rename(tmp_path / "torch-1.6.0") / path.name))


def test_producing_again_is_compared_around_what_may_vary() -> None:
    varying = dict.fromkeys(VARYING, "another")
    directory = DirectoryFixture(**{field.name: getattr(FIXTURE, field.name) for field in fields(FIXTURE)}, files={})
    assert same_but_for_varying(directory, replace(directory, **varying)) == []  # type: ignore[arg-type]
    assert same_but_for_varying(FIXTURE, changed(**{name: text for name, text in varying.items() if name != "files"})) == []
    assert same_but_for_varying(FIXTURE, replace(FIXTURE, content="x", golden={})) == ["content", "golden"]
    assert same_but_for_varying(NOT_WRITABLE, replace(NOT_WRITABLE, message="x")) == ["message"]
    assert same_but_for_varying(FIXTURE, NOT_WRITABLE) == ["no longer writable"]
    assert same_but_for_varying(NOT_WRITABLE, FIXTURE) == ["writable"]


# ----------------------------------------------------------------------------------------------------- goldens without repeats

FIRST = {"value": {"float": 1.5}, "inputs": [1]}


def program(second: Any = FIRST, after: Any = None, first: Any = FIRST, state: Any = None) -> dict[str, Any]:
    """The golden of a program with one call."""
    return {"state": state, "calls": [{"method": "forward", "first": first, "second": second}], "state_after": after}


def stored(path: Path) -> Any:
    """The golden of the fixture as it is recorded."""
    _, lines = read_lines(path, "manifest")
    _, values = read_lines(path.with_name(GOLDENS), "goldens")
    return next(entry["value"] for _, entry in values if entry["id"] == lines[1][1]["golden"])


def retold(path: Path, golden: Any) -> Path:
    """The manifest with another golden, whose id fits."""
    write_lines(
        path.with_name(GOLDENS),
        {"kind": "goldens"},
        [{"kind": "value", "id": value_id(value), "value": value} for value in (FIXTURE.calls, golden)],
    )
    return rewrite(path, 1, golden=value_id(golden))


def test_what_a_golden_says_twice_is_stored_once(tmp_path: Path) -> None:
    path = written(tmp_path, replace(MANIFEST, fixtures=(changed(golden=program()),)))
    assert stored(path) == {"state": None, "calls": [{"method": "forward", "first": FIRST}]}
    assert read_manifest(path).fixtures[0].golden == program()


@pytest.mark.parametrize(
    "golden",
    [
        program(),
        program(second={"value": 2}),
        program(after={"dict": [["n", 1]]}),
        program(first={"value": True}, second={"value": 1}),
        program(first={"value": 1}, second={"value": True}),
        program(first={"value": 0}, second={"value": False}),
        program(first={"value": {"float": 0.0}}, second={"value": {"float": -0.0}}),
        program(first={"value": {"float": 1.0}}, second={"value": {"float": 1}}),
        program(state={"dict": [["on", True]]}, after={"dict": [["on", 1]]}),
        program(state={"dict": []}, after={"dict": []}),
        {"state": None, "calls": [], "state_after": {"dict": []}},
        {"error": {"stage": "load", "type": "x", "message": "y"}},
        {"crashed": {"signal": "SIGFPE"}},
        {"value": {"dict": [["calls", 1]]}},
        {},
    ],
    ids=str,
)
def test_a_golden_makes_a_round_trip_to_the_last_bit(golden: dict[str, Any], tmp_path: Path) -> None:
    entry = changed(golden=golden)
    (fixture,) = read_manifest(written(tmp_path, replace(MANIFEST, fixtures=(entry,)))).fixtures
    assert dump(fixture.golden) == dump(golden)  # as text: True == 1, and -0.0 == 0.0
    assert (fixture.pin, fixture.subject) == (entry.pin, entry.subject)


def test_writing_changes_no_golden() -> None:
    golden = program()
    with tempfile.TemporaryDirectory() as folder:
        written(Path(folder), replace(MANIFEST, fixtures=(changed(golden=golden),)))
    assert golden == program()


@pytest.mark.parametrize(
    ("golden", "said"),
    [
        ({"calls": []}, "golden has calls, but no state"),
        ({"calls": [{"method": "forward"}], "state": None}, "golden.calls[0] lacks first"),
        ({"calls": [{"method": "forward", "second": FIRST}], "state": None}, "golden.calls[0] lacks first"),
        ({"calls": ["first"], "state": None}, "is not a complete entry: 'div': "),
        ({"calls": [["first", "second"]], "state": None}, "is not a complete entry: 'div': "),
        ({"calls": [None], "state": None}, "is not a complete entry: 'div': "),
        ({"calls": None, "state": None}, "is not a complete entry: 'div': "),
        ({"calls": "all", "state": None}, "is not a complete entry: 'div': "),
        (["calls"], "is not a complete entry: 'div': "),
        ("calls", "is not a complete entry: 'div': "),
        (None, "is not a complete entry: 'div': "),
    ],
    ids=str,
)
def test_a_damaged_golden_is_refused_with_its_line(golden: Any, said: str, tmp_path: Path) -> None:
    result = error(retold(written(tmp_path), golden))
    assert said in str(result)
    assert "according to " in str(result)
    assert "manifest.jsonl:3: " in str(result)


@pytest.mark.parametrize("golden", [{"calls": []}, {"calls": [{"method": "forward"}]}, {"calls": [{"first": 1}], "state": 1}])
def test_what_a_golden_lacks_is_not_invented_when_it_is_written(golden: dict[str, Any], tmp_path: Path) -> None:
    assert stored(written(tmp_path, replace(MANIFEST, fixtures=(changed(golden=golden),)))) == golden


# -------------------------------------------------------------------------------------------------------- what is synthetic

SHARED = {field.name: getattr(FIXTURE, field.name) for field in fields(FIXTURE)}
MAKER = {"torch": SYNTHETIC}
MADE = Synthetic(**SHARED | {"release": SYNTHETIC, "writer": digest(MAKER)[:12]}, formats=["container tar"], base="")


def synthetic(folder: Path, entry: Fixture = MADE) -> Path:
    path = folder / SYNTHETIC / "manifest.jsonl"
    write_manifest(path, Manifest(SYNTHETIC, {MADE.writer: MAKER}, (entry,), ()))
    return path


def test_what_is_synthetic_makes_a_round_trip(tmp_path: Path) -> None:
    manifest = read_manifest(synthetic(tmp_path))
    assert manifest.fixtures == (MADE,)
    assert isinstance(manifest.fixtures[0], Synthetic)
    assert MADE.id == "synthetic/div"
    assert replace(MADE, formats=["container zip"]).pin != MADE.pin


def test_only_what_no_release_wrote_is_synthetic(tmp_path: Path) -> None:
    plain = Fixture(**SHARED | {"release": SYNTHETIC, "writer": MADE.writer})
    with pytest.raises(CorpusError, match="is of kind 'fixture' in the manifest of synthetic"):
        read_manifest(synthetic(tmp_path, plain))
    path = written(tmp_path, replace(MANIFEST, fixtures=(replace(MADE, release="1.5.1", writer=WRITER),)))
    with pytest.raises(CorpusError, match=r"is of kind 'synthetic' in the manifest of torch-1\.5\.1"):
        read_manifest(path)


@pytest.mark.parametrize("number", [1, True, 1.0, -0.0, 0.0, "1", None, [1], [True], {"b": 1, "a": 2}, {"a": 2, "b": 1}])
def test_a_pin_is_the_digest_of_every_field(number: Any) -> None:
    """Whatever was pinned before: equal by Python's count is not equal as a fact."""
    for entry in (changed(golden={"value": number}), changed(calls=[{"method": "forward", "args": [number]}])):
        assert entry.pin == digest({field.name: getattr(entry, field.name) for field in fields(entry)})
