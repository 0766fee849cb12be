"""The facts determined about an archive."""

from __future__ import annotations

import contextlib
import json
import pickle
import struct
import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torch_compat.archive import ZipArchive, open_archive
from torch_compat.errors import ArchiveError, Corrupt, Unsupported
from torch_compat.formats import Call, Facts, identify, read_facts
from torch_compat.formats.facts import fill
from torch_compat.formats.identify import recognised
from torch_compat.formats.tree import contents

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch_compat.corpus.corpus import Corpus

REPOSITORY = Path(__file__).parents[2]
FIXTURES = REPOSITORY / "fixtures"


def fixture(name: str) -> Path:
    release, _, recipe = name.partition("/")
    (path,) = (item for item in (FIXTURES / release).glob(f"{recipe}.*") if item.suffix in {".pt", ".ptl", ".pt2"})
    return path


def laid_out(path: Path, records: dict[str, bytes], *, folder: str = "made", unprotected: tuple[str, ...] = ()) -> Path:
    """A zip archive as torch's writer lays it out, records without checksum where asked for."""
    body, central = bytearray(), bytearray()
    for record, data in records.items():
        name = f"{folder}/{record}".encode()
        at, crc = len(body), 0 if record in unprotected else zlib.crc32(data)
        pad = -(at + 30 + len(name) + 4) % 64
        fixed = struct.pack("<HHHHH", 0, 0x0808 if data else 0x0800, 0, 0, 0)
        body += b"PK\x03\x04" + fixed + struct.pack("<IIIHH", 0, 0, 0, len(name), pad + 4)
        body += name + b"FB" + struct.pack("<H", pad) + b"Z" * pad + data
        if data:
            body += b"PK\x07\x08" + struct.pack("<III", crc, len(data), len(data))
        central += b"PK\x01\x02" + struct.pack("<H", 0) + fixed + struct.pack("<III", crc, len(data), len(data))
        central += struct.pack("<HHHHHII", len(name), 0, 0, 0, 0, 0, at) + name
    count, size, start = len(records), len(central), len(body)
    end = struct.pack("<4sQHHIIQQQQ", b"PK\x06\x06", 44, 0x31E, 45, 0, 0, count, count, size, start)
    end += struct.pack("<4sIQI", b"PK\x06\x07", 0, start + size, 1)
    end += b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, count, count, size, start, 0)
    path.write_bytes(bytes(body + central + end))
    return path


def storage(key: str, count: int, kind: bytes = b"FloatStorage") -> bytes:
    """Opcodes that name a storage, as torch.save writes them."""
    return (
        b"(X\x07\0\0\0storagectorch\n" + kind + b"\nX" + struct.pack("<I", len(key)) + key.encode()
        + b"X\x03\0\0\0cpuJ" + struct.pack("<i", count) + b"tQ"
    )  # fmt: skip


def two_storages() -> dict[str, bytes]:
    return {
        "data.pkl": b"\x80\x02](" + storage("0", 2) + storage("1", 3, b"LongStorage") + b"e.",
        "byteorder": b"little",
        "data/0": bytes(8),
        "data/1": b"\1" * 24,
        "version": b"3\n",
    }


def rewritten(source: Path, path: Path, change: Callable[[dict[str, bytes]], None]) -> Path:
    """An archive with other records, by Python's zipfile."""
    with zipfile.ZipFile(source) as archive:
        names = archive.namelist()
        folder = names[0].partition("/")[0] + "/"
        records = {name.removeprefix(folder): archive.read(name) for name in names}
    change(records)
    with zipfile.ZipFile(path, "w") as out:
        for name, data in records.items():
            out.writestr(folder + name, data)
    return path


# ----------------------------------------------------------------------------------------------------------- names, producers


@pytest.mark.parametrize(
    ("name", "said", "lines"),
    [
        ("synthetic/tar", "torch.save (tar)", (None, "0.1")),
        ("torch-1.0.0/save_floats", "torch.save (stream, protocol 1001)", ("0.1", None)),
        ("torch-1.4.0/save_zip_form", "torch.save (zip, file format 1)", ("1.4", "1.4")),
        ("torch-1.6.0/save_floats", "torch.save (zip, file format 3)", ("1.6", "2.0")),
        ("torch-1.13.1/save_floats", "torch.save (zip, file format 3)", ("1.13", "2.0")),
        ("torch-2.1.2/save_floats", "torch.save (zip, file format 3)", ("2.1", "2.6")),
        ("torch-2.15.0/save_floats", "torch.save (zip, file format 3)", ("2.7", None)),
        ("torch-1.0.0/conv", "TorchScript (zip, file format 1)", ("1.0", "1.0")),
        ("torch-1.2.0/div", "TorchScript (zip, file format 1)", ("1.2", "1.2")),
        ("torch-1.3.1/div", "TorchScript (zip, file format 1)", ("1.3", "1.3")),
        ("torch-1.4.0/div", "TorchScript (zip, file format 1)", ("1.4", "1.4")),
        ("torch-1.5.1/div", "TorchScript (zip, file format 2)", ("1.5", "1.5")),
        ("torch-1.6.0/div", "TorchScript (zip, file format 4)", ("1.6", "1.11")),
        ("torch-1.12.1/gelu", "TorchScript (zip, file format 10)", ("1.12", "2.0")),
        ("torch-1.5.0/mobile", "Mobile (zip, file format 2)", ("1.5", "1.5")),
        ("torch-2.15.0/mobile", "Mobile (zip, file format 4, bytecode 8)", ("2.1", None)),
        ("torch-2.15.0/mobile_flatbuffer", "Mobile (flatbuffer, bytecode 9)", ("1.12", None)),
        ("torch-1.8.1/package", "torch.package (zip, file format 3)", ("1.8", "1.8")),
        ("torch-1.12.1/package", "torch.package (zip, file format 6)", ("1.12", "2.0")),
        ("torch-2.2.2/export_conv_linear", "torch.export (zip, schema 2)", ("2.2", "2.2")),
        ("torch-2.5.1/export_conv_linear", "torch.export (zip, schema 7.3)", ("2.5", "2.5")),
        ("torch-2.8.0/export_conv_linear", "torch.export (zip, file format 6, schema 8.8)", ("2.8", "2.8")),
        ("torch-2.15.0/export_conv_linear", "torch.export (zip, file format 6, schema 8.20)", ("2.12", None)),
    ],
)
def test_name_and_producer(name: str, said: str, lines: tuple[str | None, str | None]) -> None:
    facts = read_facts(fixture(name))
    assert facts.name == said
    assert facts.producer is not None
    assert (facts.producer.first, facts.producer.last) == lines
    assert facts.producer.because
    assert facts.damage == []


def test_what_an_archive_states_about_its_writer() -> None:
    exported = read_facts(fixture("torch-2.8.0/export_conv_linear")).producer
    assert exported is not None
    assert exported.torch == "2.8.0+cu128"
    packed = read_facts(fixture("torch-2.8.0/package")).producer
    assert packed is not None
    assert (packed.torch, packed.python) == (None, "3.11.7")


# ---------------------------------------------------------------------------------------------------------- what it holds


def test_operators_with_and_without_overloads() -> None:
    script = read_facts(fixture("torch-2.8.0/mobile_promoted_operators"))
    assert "aten::add.Tensor" in script.operators
    assert Call("aten::size", "int", 2, ()) in script.calls
    assert {"DIM", "FORMAT", "__IS__"} <= set(script.extra["instructions"])
    old = read_facts(fixture("torch-1.5.0/mobile_promoted_operators"))
    assert Call("aten::dim", "", None, ()) in old.calls
    assert "DIM" not in old.extra["instructions"]
    source = read_facts(fixture("torch-2.8.0/div_rounding_mode"))
    assert Call("aten::div", None, 2, ("rounding_mode",)) in source.calls
    exported = read_facts(fixture("torch-2.8.0/export_conv_linear"))
    assert Call("aten::conv1d", "", 4, ()) in exported.calls
    unkind = read_facts(fixture("torch-2.3.1/export_conv_linear"))
    assert ("aten::relu", 0, ("self",)) in {(call.name, call.positional, call.keywords) for call in unkind.calls}


def test_operators_that_take_any_number_of_arguments() -> None:
    for name in ("torch-1.10.2/mobile_promoted_operators", "torch-1.11.0/mobile_promoted_operators"):
        assert Call("aten::format", "", -1, ()) in read_facts(fixture(name)).calls


@pytest.mark.parametrize("missing", ["constants.pkl", "data.pkl"])
def test_a_program_without_one_of_its_pickles_is_read_or_refused(missing: str, tmp_path: Path) -> None:
    with open_archive(fixture("torch-1.5.1/mobile")) as archive:
        assert isinstance(archive, ZipArchive)
        records = {name: bytes(archive.view(name)) for name in archive.names if name != missing}
    path = laid_out(tmp_path / "mobile.ptl", {**records, "version": b"3\n"})
    with contextlib.suppress(ArchiveError):
        assert read_facts(path).producer is not None


def test_storages_of_each_pickle_have_names_of_their_own() -> None:
    facts = read_facts(fixture("torch-2.8.0/traced"))
    keys = {item.key: item for item in facts.storages}
    assert {"0", "constants/0", "traced_inputs/0"} <= keys.keys()
    assert [key for key, item in keys.items() if item.absent] == ["traced_inputs/0"]
    assert facts.storage_alignment == 64


def test_the_tree_shows_dtypes_and_shapes() -> None:
    for name in ("torch-2.8.0/save_checkpoint", "torch-1.0.0/save_checkpoint"):
        lines = "\n".join(contents(read_facts(fixture(name))))
        assert "0.weight: tensor float32 [1, 2]" in lines
        assert "num_batches_tracked: tensor int64 []" in lines
    assert "  base: tensor float32 [2, 3] (storage 1)" in "\n".join(contents(read_facts(fixture("synthetic/tar"))))
    assert "weight: parameter float32 [2]" in "\n".join(contents(read_facts(fixture("torch-1.2.0/submodules"))))
    assert "conv.weight: parameter float32 [2, 1, 2]" in "\n".join(
        contents(read_facts(fixture("torch-2.15.0/export_conv_linear")))
    )


def test_a_tree_shows_no_control_characters_and_ends(tmp_path: Path) -> None:
    inner: list[Any] = []
    for _ in range(300):
        inner = [inner]
    value = {"\x1b[31mred\n": "\x07", "long": "x" * 1000, 2**3000: [1], "deep": inner, "same": inner}
    path = laid_out(tmp_path / "x.pt", {"data.pkl": pickle.dumps(value, 2), "version": b"3\n"})
    lines = contents(read_facts(path))
    assert all(line.isprintable() for line in lines)
    assert any("\\x1b[31mred\\n: '\\x07'" in line for line in lines)
    assert any("nested deeper" in line for line in lines)
    assert any("as above" in line for line in lines)
    cyclic = b"\x80\x02]q\x00h\x00a."
    lines = contents(read_facts(laid_out(tmp_path / "y.pt", {"data.pkl": cyclic, "version": b"3\n"})))
    assert lines == ["data.pkl", "  list of 1", "    [0]: list of 1 (as above)"]


def test_code_is_the_source() -> None:
    assert "torch.conv2d(" in "\n".join(read_facts(fixture("torch-1.0.0/conv")).code().values())
    assert "torch.mul(x, scale)" in "\n".join(read_facts(fixture("torch-2.8.0/mobile_flatbuffer")).code().values())


def test_facts_of_an_archive_that_is_open() -> None:
    with open_archive(fixture("torch-2.8.0/div")) as archive:
        assert read_facts(archive).name == "TorchScript (zip, file format 4)"
        assert archive.record("version") == b"4\n"


@pytest.mark.parametrize("release", ["2.5.1", "2.8.0"])
def test_archives_in_archives_are_the_same_copied_and_mapped(release: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = fixture(f"torch-{release}/export_conv_linear")
    copied = read_facts(path)
    assert {item.record for item in copied.storages if item.record} >= {
        f"{'data/weights/model' if release == '2.8.0' else 'serialized_state_dict'}.pt/data/0"
    }
    monkeypatch.setattr("torch_compat.formats._nested.COPIED", 0)
    mapped = read_facts(path)
    assert mapped.storages == copied.storages
    assert mapped.damage == []
    assert contents(mapped) == contents(copied)


# ---------------------------------------------------------------------------------------------------------------- offsets


def test_offsets_are_calculated_where_torch_laid_out_the_archive(tmp_path: Path) -> None:
    facts = read_facts(laid_out(tmp_path / "x.pt", two_storages()))
    data = (tmp_path / "x.pt").read_bytes()
    assert [(item.key, item.dtype, item.nbytes) for item in facts.storages] == [("0", "float32", 8), ("1", "int64", 24)]
    for record in facts.storages:
        assert record.offset is not None
        assert record.offset == record.calculated_offset
        assert record.offset % 64 == 0
    second = facts.storages[1].offset
    assert second is not None
    assert data[second : second + 24] == b"\1" * 24


def test_offsets_are_not_calculated_where_another_program_did(tmp_path: Path) -> None:
    path = rewritten(laid_out(tmp_path / "x.pt", two_storages()), tmp_path / "y.pt", lambda _: None)
    facts = read_facts(path)
    assert [(record.calculated_offset, record.why) for record in facts.storages] == [
        (None, "this archive was not laid out by torch's writer")
    ] * 2
    assert facts.storage_alignment is None
    offset = facts.storages[1].offset
    assert offset is not None
    assert path.read_bytes()[offset : offset + 24] == b"\1" * 24


def test_a_storage_that_is_compressed_has_no_offset(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in two_storages().items():
            out.writestr(f"top/{name}", data)
    assert [(record.offset, record.calculated_offset, record.why) for record in read_facts(path).storages] == [
        (None, None, "its record is compressed")
    ] * 2


def test_holes_are_absent_storages_until_they_are_filled(tmp_path: Path) -> None:
    records = two_storages() | {"data/1": bytes(24)}
    facts = read_facts(laid_out(tmp_path / "x.pt", records, unprotected=("data/1",)))
    assert [item.absent for item in facts.storages] == [False, True]
    filled = read_facts(laid_out(tmp_path / "x.pt", two_storages(), unprotected=("data/1",)))
    assert [item.absent for item in filled.storages] == [False, False]
    nothing_protected = read_facts(laid_out(tmp_path / "x.pt", records, unprotected=tuple(records)))
    assert [item.absent for item in nothing_protected.storages] == [False, False]


# ------------------------------------------------------------------------------------------------------ damage and ambiguity


def codes(facts: Facts) -> list[tuple[str, str | None]]:
    return [(damage.code, damage.record) for damage in facts.damage]


def test_records_of_two_formats_are_ambiguous(tmp_path: Path) -> None:
    path = rewritten(
        fixture("torch-2.8.0/div"), tmp_path / "x.pt", lambda records: records.update({"model.json": b"{}", "version": b"4\n"})
    )
    facts = read_facts(path)
    assert facts.layout == "torchscript_json"
    assert ("ambiguous-format", None) in codes(facts)
    assert "torchscript_json (model.json), torchscript (constants.pkl)" in facts.damage[0].detail


def test_two_version_records_are_ambiguous(tmp_path: Path) -> None:
    facts = read_facts(laid_out(tmp_path / "x.pt", two_storages() | {".data/version": b"6\n"}))
    assert facts.versions == {"file-format": 6}
    assert codes(facts) == [("ambiguous-version", "version")]


@pytest.mark.parametrize("name", ["torch-2.8.0/mobile", "torch-2.8.0/package_script", "torch-2.8.0/div"])
def test_what_a_writer_puts_together_is_not_ambiguous(name: str) -> None:
    assert read_facts(fixture(name)).damage == []


def test_a_zip_archive_behind_something_is_a_polyglot(tmp_path: Path) -> None:
    archive = laid_out(tmp_path / "x.pt", two_storages()).read_bytes()
    (tmp_path / "pickled.pt").write_bytes(pickle.dumps({"a": 1}, 2) + archive)
    facts = read_facts(tmp_path / "pickled.pt")
    assert facts.container == "pickle"
    assert {code for code, _ in codes(facts)} >= {"polyglot", "junk-after"}
    (tmp_path / "junk.pt").write_bytes(b"#!/bin/sh\n" + archive)
    facts = read_facts(tmp_path / "junk.pt")
    assert facts.family == "torch-save"
    assert "junk-before" in {code for code, _ in codes(facts)}
    stream = fixture("torch-1.0.0/save_floats").read_bytes()
    (tmp_path / "stream.pt").write_bytes(stream + archive)
    facts = read_facts(tmp_path / "stream.pt")
    assert {code for code, _ in codes(facts)} >= {"polyglot", "junk-after"}


def test_a_bare_pickle_has_no_storages_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "x.pkl").write_bytes(two_storages()["data.pkl"])
    facts = read_facts(tmp_path / "x.pkl")
    assert (facts.family, facts.container, facts.name) == ("torch-save", "pickle", "torch.save (pickle)")
    assert [(record.absent, record.offset, record.why) for record in facts.storages] == [
        (True, None, "the file contains no storages")
    ] * 2


def test_a_storage_that_is_missing_or_of_another_size_is_damage(tmp_path: Path) -> None:
    records = two_storages() | {"data/1": bytes(16)}
    del records["data/0"]
    facts = read_facts(laid_out(tmp_path / "x.pt", records))
    assert codes(facts) == [("missing-record", "data/0"), ("size-disagrees", "data/1")]
    assert facts.storages[0].offset is None


@pytest.mark.parametrize("container", ["zip", "stream"])
def test_a_flipped_bit_in_a_storage_is_seen_where_there_is_a_checksum(container: str, tmp_path: Path) -> None:
    path = fixture("torch-2.8.0/save_floats" if container == "zip" else "torch-1.0.0/save_floats")
    item = read_facts(path).storages[0]
    assert item.offset is not None
    spoilt = bytearray(path.read_bytes())
    spoilt[item.offset] ^= 1
    (tmp_path / "x.pt").write_bytes(spoilt)
    result = codes(read_facts(tmp_path / "x.pt"))
    assert result == ([("crc-mismatch", item.record)] if container == "zip" else [])


REPLACED: list[tuple[str, str, bytes | None, str, str]] = [
    ("torch-2.8.0/div", "version", b"four", "bad-version", "expected a number"),
    ("torch-2.8.0/div", "data.pkl", None, "missing-record", "data.pkl"),
    ("torch-2.8.0/div", "code/__torch__/div.py", b"\xff\xfe", "bad-text", "is not text"),
    ("torch-2.8.0/save_floats", "byteorder", b"middle", "bad-byteorder", "expected little or big"),
    ("torch-2.8.0/save_floats", ".storage_alignment", b"0", "bad-alignment", "expected a positive integer"),
    ("torch-2.8.0/save_floats", "data.pkl", b"\x80\x02", "cut-off", "ends before its STOP"),
    ("torch-1.2.0/div", "model.json", b"[", "bad-json", "is not JSON"),
    ("torch-1.2.0/div", "model.json", b"[]", "bad-json", "expected an object"),
    ("torch-1.2.0/div", "model.json", b'{"tensors": [{"data": 7}]}', "bad-json", "a tensor without data"),
    ("torch-2.8.0/mobile", "bytecode.pkl", pickle.dumps((8, 7), 2), "bad-bytecode", "functions with instructions"),
    ("torch-2.8.0/mobile", "bytecode.pkl", pickle.dumps((8, ("f", (("operators", ((1, 2),)), ("instructions", ())))), 2),
     "bad-bytecode", "functions with instructions"),
    ("torch-2.8.0/package", "model/object.pkl", b"\x80\x02(", "cut-off", "STOP"),
    ("torch-2.8.0/package_script", ".data/ts_code/0/data.pkl", b"x", "bad-pickle", "expected a pickle"),
    ("torch-2.8.0/export_conv_linear", "archive_format", b"pt3", "bad-format", "expected 'pt2'"),
    ("torch-2.8.0/export_conv_linear", "models/model.json", b'{"schema_version": 8}', "bad-program", "graph_module"),
    ("torch-2.8.0/export_conv_linear", "data/weights/model.pt", b"PKPK", "bad-nested", "zip archive of torch.save"),
    ("torch-2.15.0/export_conv_linear", "data/weights/model_weights_config.json", b'{"config": []}', "bad-json", "expected an object"),
    ("torch-2.15.0/export_conv_linear", "data/weights/model_weights_config.json", b'{"config": {"a": 1}}', "bad-json", "no path for"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "record", "data", "code", "said"), REPLACED)
def test_a_record_that_makes_no_sense_is_named(
    name: str, record: str, data: bytes | None, code: str, said: str, tmp_path: Path
) -> None:
    def change(records: dict[str, bytes]) -> None:
        assert record in records
        del records[record]
        if data is not None:
            records[record] = data

    path = rewritten(fixture(name), tmp_path / "x.pt", change)
    with pytest.raises(Corrupt, match=r".") as raised:
        read_facts(path)
    assert raised.value.code == code
    assert said in str(raised.value)
    assert str(path) in str(raised.value)
    assert data is None or record in str(raised.value)


def test_what_was_read_before_the_damage_is_kept(tmp_path: Path) -> None:
    path = rewritten(fixture("torch-2.8.0/div"), tmp_path / "x.pt", lambda records: records.update({"constants.pkl": b"\x80"}))
    with open_archive(path) as archive:
        facts, module = recognised(archive)
        with pytest.raises(Corrupt):
            fill(facts, module, archive)
    assert facts.name == "TorchScript (zip, file format 4)"
    assert "data.pkl" in facts.pickles


def test_an_archive_of_a_newer_schema_is_read_all_the_same(tmp_path: Path) -> None:
    def newer(records: dict[str, bytes]) -> None:
        program = json.loads(records["models/model.json"])
        program["schema_version"] = {"major": 99, "minor": 1}
        records["models/model.json"] = json.dumps(program).encode()

    facts = read_facts(rewritten(fixture("torch-2.15.0/export_conv_linear"), tmp_path / "x.pt2", newer))
    assert facts.name == "torch.export (zip, file format 6, schema 99.1)"
    assert facts.operators


@pytest.mark.parametrize("text", [b"hello", b"", b"<html><body>404</body></html>"])
def test_what_is_no_archive_is_unsupported(text: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.pt").write_bytes(text)
    with pytest.raises(Unsupported):
        read_facts(tmp_path / "x.pt")


def test_identity_and_facts_agree(small_corpus: Corpus) -> None:
    for name, item in small_corpus.fixtures.items():
        path = small_corpus.path(item)
        identity, facts = identify(path), read_facts(path)
        assert (identity.family, identity.container, identity.versions) == (facts.family, facts.container, facts.versions), name


SPOILT = ("synthetic/tar", "torch-1.0.0/save_floats", "torch-1.2.0/attributes", "torch-2.8.0/mobile_flatbuffer_state",
          "torch-2.8.0/package_script", "torch-2.8.0/export_conv_linear", "torch-2.5.1/export_conv_linear",
          "torch-2.8.0/mobile_containers", "torch-2.8.0/save_sparse_csr")  # fmt: skip


@pytest.mark.parametrize("name", SPOILT)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_spoilt_archive_is_read_or_refused(name: str, data: st.DataObject) -> None:
    whole = fixture(name).read_bytes()
    spoilt = bytearray(whole[: data.draw(st.integers(0, len(whole)) | st.just(len(whole)))])
    for _ in range(data.draw(st.integers(0, 3))):
        if spoilt:
            spoilt[data.draw(st.integers(0, len(spoilt) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spoilt"
        path.write_bytes(spoilt)
        with contextlib.suppress(ArchiveError):
            facts = read_facts(path)
            assert facts.name
            assert all(line.isprintable() for line in contents(facts))
