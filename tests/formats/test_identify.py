"""Identification of an archive by its records."""

from __future__ import annotations

import contextlib
import pickle
import struct
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torch_compat.errors import ArchiveError, Corrupt, Unsupported
from torch_compat.formats import identify

if TYPE_CHECKING:
    from torch_compat.corpus.corpus import Corpus

NO_BYTECODE = pickle.dumps((), 2)
CONTAINERS = ("flatbuffer", "stream", "tar", "zip")


def smallest(corpus: Corpus, container: str) -> Path:
    """The smallest archive of a kind of container."""
    return corpus.path(
        min((fixture for fixture in corpus.fixtures.values() if fixture.container == container), key=lambda fixture: fixture.size)
    )


def archive(folder: Path, *names: str, **records: bytes) -> Path:
    """A zip archive of empty records, and some with content."""
    path = folder / "archive.pt"
    contents = {name: NO_BYTECODE if name == "bytecode.pkl" else b"" for name in names} | {
        name.replace("__", "."): data for name, data in records.items()
    }
    with zipfile.ZipFile(path, "w") as out:
        for name, data in contents.items():
            out.writestr(f"top/{name}", data)
    return path


def test_every_fixture_is_what_its_manifest_says(small_corpus: Corpus) -> None:
    assert {fixture.container for fixture in small_corpus.fixtures.values()} == set(CONTAINERS)
    for name, fixture in small_corpus.fixtures.items():
        result = identify(small_corpus.path(fixture))
        assert (result.family, result.container, result.versions) == (fixture.family, fixture.container, fixture.versions), name


@pytest.mark.parametrize(
    ("names", "family"),
    [
        (("data.pkl",), "torch-save"),
        (("data.pkl", "constants.pkl"), "torchscript"),
        (("model.json",), "torchscript"),
        (("data.pkl", "constants.pkl", "bytecode.pkl"), "mobile"),
        (("data.pkl", ".data/extern_modules"), "package"),
        ((".data/python_version",), "package"),
        (("model/object.pkl", "extern_modules", "data/94085144935728"), "package"),
        (("archive_format", "data.pkl", "bytecode.pkl"), "export"),
    ],
)
def test_family(names: tuple[str, ...], family: str, tmp_path: Path) -> None:
    assert identify(archive(tmp_path, *names)).family == family


@pytest.mark.parametrize(
    ("records", "versions"),
    [
        ({"data__pkl": b""}, {}),
        ({"data__pkl": b"", "version": b"3\n"}, {"file-format": 3}),
        ({"data__pkl": b"", ".data/version": b"10"}, {"file-format": 10}),
        ({"data__pkl": b"", "version": b"3", ".data/version": b"6"}, {"file-format": 6}),
        ({"bytecode__pkl": pickle.dumps((7, ("f", ())), 2)}, {"bytecode": 7}),
        ({"bytecode__pkl": pickle.dumps((("f", ()),), 2)}, {}),
    ],
)
def test_versions(records: dict[str, bytes], versions: dict[str, int], tmp_path: Path) -> None:
    assert identify(archive(tmp_path, **records)).versions == versions


@pytest.mark.parametrize("version", [b"", b"three", b"-1", b"3.5", b"\xb2", b"9" * 5000, b"\xff"])
def test_a_version_that_is_no_number_is_damage(version: bytes, tmp_path: Path) -> None:
    with pytest.raises(Corrupt, match="expected a number"):
        identify(archive(tmp_path, "data.pkl", version=version))


@pytest.mark.parametrize("record", [b"", b"\xff", b"\x80\x02", b"("])
def test_bytecode_that_is_no_pickle_is_damage(record: bytes, tmp_path: Path) -> None:
    with pytest.raises(Corrupt, match=r"bytecode\.pkl"):
        identify(archive(tmp_path, bytecode__pkl=record))


PROGRAM = "serialized_exported_program.json"
SCHEMAS = {
    b'{"schema_version": {"major": 7, "minor": 3}, "torch_version": "2.5.1"}': 7,
    b'{"schema_version": 2}': 2,
    b'{"schema_version": {"major": 0, "minor": 0}}': 0,
}


def plain_export(folder: Path, program: bytes) -> Path:
    """What torch.export.save wrote before there were pt2 archives: records in no folder, and a version of their own."""
    path = folder / "plain.pt2"
    with zipfile.ZipFile(path, "w") as out:
        out.writestr(PROGRAM, program)
        out.writestr("serialized_state_dict.pt", b"")
        out.writestr("version", "7.3")
    return path


@pytest.mark.parametrize("program", sorted(SCHEMAS))
def test_an_exported_program_says_its_schema(program: bytes, tmp_path: Path) -> None:
    result = identify(plain_export(tmp_path, program))
    assert (result.family, result.container, result.versions) == ("export", "zip", {"export-schema": SCHEMAS[program]})
    records = {"archive_format": b"pt2", "models/model.json": program, ".data/version": b"6\n"}
    result = identify(archive(tmp_path, **records))
    assert (result.family, result.versions) == ("export", {"file-format": 6, "export-schema": SCHEMAS[program]})


@pytest.mark.parametrize(
    "program", [b"", b"[]", b"{}", b"\xff", b"[" * 100_000, b'{"schema_version": "8"}', b'{"schema_version": -1}']
)
def test_an_exported_program_without_a_schema_is_damage(program: bytes, tmp_path: Path) -> None:
    with pytest.raises(Corrupt, match=r"is not JSON|has schema version|expected an object"):
        identify(plain_export(tmp_path, program))


def test_a_zip_of_something_else_is_unsupported(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match=r"is a zip archive of other files \(mimetype, word/document.xml"):
        identify(archive(tmp_path, "mimetype", "word/document.xml"))


@pytest.mark.parametrize(
    ("root", "back", "field"), [(2**32 - 1, 0, 4), (8, 2**31 - 1, 4), (8, -(2**31), 4), (20, 30, 4), (8, 0, 600), (509, 0, 4)]
)
def test_a_flatbuffer_that_points_out_of_itself_is_damage(root: int, back: int, field: int, tmp_path: Path) -> None:
    data = bytearray(64)
    struct.pack_into("<I", data, 0, root)
    data[4:8] = b"PTMF"
    if root < 60:
        struct.pack_into("<i", data, root, back)
        struct.pack_into("<H", data, root + 4, field)
    path = tmp_path / "x.ptl"
    path.write_bytes(data)
    with pytest.raises(Corrupt, match="root table"):
        identify(path)


@pytest.mark.parametrize("container", CONTAINERS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_damaged_fixture_is_identified_or_refused(container: str, small_corpus: Corpus, data: st.DataObject) -> None:
    whole = smallest(small_corpus, container).read_bytes()
    spoilt: Any = bytearray(whole[: data.draw(st.integers(0, len(whole)) | st.just(len(whole)))])
    for _ in range(data.draw(st.integers(0, 3))):
        if spoilt:
            spoilt[data.draw(st.integers(0, len(spoilt) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spoilt"
        path.write_bytes(spoilt)
        with contextlib.suppress(ArchiveError):
            identify(path)
