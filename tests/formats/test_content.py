"""The digest of an archive's content: independent of how it was written, and nothing named in it is imported or called."""

from __future__ import annotations

import collections
import contextlib
import copyreg
import pickle
import re
import struct
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torch_compat.allowance import Allowance
from torch_compat.errors import ArchiveError, Corrupt, Unsafe
from torch_compat.formats.content import content_digest, same_content
from torch_compat.pickles import unpickle
from torch_compat.values.dtypes import ELEMENT_SIZES, STORAGE_CLASSES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.corpus.corpus import Corpus

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
CONTAINERS = ("flatbuffer", "stream", "tar", "zip")
MAGIC = pickle.dumps(0x1950A86A20F9469CFC6C, 2)
HEAD = MAGIC + pickle.dumps(1001, 2) + pickle.dumps({"little_endian": True}, 2)
NO_STORAGES = pickle.dumps([], 2)


def smallest(corpus: Corpus, container: str) -> Path:
    """The smallest archive of a kind of container."""
    return corpus.path(
        min((fixture for fixture in corpus.fixtures.values() if fixture.container == container), key=lambda fixture: fixture.size)
    )


def in_zip(folder: Path, record: bytes, **others: bytes) -> Path:
    path = folder / "archive.pt"
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("top/data.pkl", record)
        for name, data in others.items():
            out.writestr(f"top/{name.replace('__', '/')}", data)
    return path


def in_stream(folder: Path, record: bytes, rest: bytes = NO_STORAGES) -> Path:
    path = folder / "stream.pt"
    path.write_bytes(HEAD + record + rest)
    return path


def storage(key: str, kind: bytes = b"FloatStorage") -> bytes:
    """Opcodes that name a storage, as torch.save writes them."""
    return (
        b"((X\x07\0\0\0storagectorch\n"
        + kind
        + b"\nX"
        + struct.pack("<I", len(key))
        + key.encode()
        + b"X\x03\0\0\0cpuK\x01Nt"
        + b"Q1"
    )


def named(key: str) -> bytes:
    return b"\x80\x02" + storage(key).replace(b"((", b"(", 1).removesuffix(b"1") + b"."


def test_every_fixture_has_the_content_that_its_manifest_states(small_corpus: Corpus) -> None:
    assert {fixture.container for fixture in small_corpus.fixtures.values()} == set(CONTAINERS)
    for name, fixture in small_corpus.fixtures.items():
        assert content_digest(small_corpus.path(fixture)) == fixture.content, name


# ------------------------------------------------------------------------------------------------------- what may vary


def test_names_of_storages_and_the_serialization_id_may_vary(tmp_path: Path) -> None:
    item = content_digest(in_zip(tmp_path, named("94001"), data__94001=b"\0" * 4, **{".data__serialization_id": b"1"}))
    other = content_digest(in_zip(tmp_path, named("0"), data__0=b"\0" * 4, **{".data__serialization_id": b"2"}))
    assert item == other
    assert content_digest(in_zip(tmp_path, named("0"), data__0=b"\1" * 4)) != item
    assert content_digest(in_zip(tmp_path, named("0"), data__0=b"\0" * 4, version=b"3")) != item


@pytest.mark.parametrize("name", sorted(STORAGE_CLASSES))
def test_storages_of_every_class_are_read(name: str, tmp_path: Path) -> None:
    """1.11 and 1.12 write ``torch.storage._UntypedStorage``: a sound archive, which has a digest as any other."""
    pickled = named("94001").replace(b"ctorch\nFloatStorage", b"ctorch.storage\n" + name.encode())
    assert len(content_digest(in_zip(tmp_path, pickled, data__94001=b"\0"))) == 64
    size = ELEMENT_SIZES[STORAGE_CLASSES[name]]
    whole = in_stream(tmp_path, pickled, pickle.dumps(["94001"], 2) + struct.pack("<Q", 1) + b"\0" * size)
    assert len(content_digest(whole)) == 64


def test_storages_of_a_stream_may_have_other_names(tmp_path: Path) -> None:
    def digest(key: str, value: bytes) -> str:
        return content_digest(in_stream(tmp_path, named(key), pickle.dumps([key], 2) + struct.pack("<Q", 1) + value))

    assert digest("94001", b"\0" * 4) == digest("7", b"\0" * 4)
    assert digest("94001", b"\0" * 4) != digest("94001", b"\1" * 4)


def in_package(folder: Path, **records: bytes) -> Path:
    path = folder / "package.pt"
    with zipfile.ZipFile(path, "w") as out:
        for name, data in {".data/extern_modules": b"", **records}.items():
            out.writestr(f"top/{name}", data)
    return path


def test_addresses_that_packages_hold_may_vary(tmp_path: Path) -> None:
    def digest(key: str, module: int, value: bytes = b"\0" * 4, script_key: str = "") -> str:
        packed = b"\x80\x02(" + text(b"reduce_package") + pickle.dumps(module, 2)[2:-1] + text(b"f") + b"tQ."
        scripted = {".data/ts_code/0/data.pkl": named(script_key)} if script_key else {}
        records = {"model/a.pkl": packed, "model/b.pkl": named(key), f".data/{key}.storage": value, **scripted}
        return content_digest(in_package(tmp_path, **records))

    assert digest("94764286216816", 0x7F4F22589010) == digest("94756647774832", 0x7F68E5A73610)
    assert digest("94764286216816", 0x7F4F22589010) != digest("94764286216816", 0x7F4F22589010, b"\1" * 4)
    item, other = (digest(key, 0x7F4F22589010, script_key=key + ".storage") for key in ("94764286216816", "94756647774832"))
    assert item == other != digest("94764286216816", 0x7F4F22589010)


def test_numbers_that_count_the_storages_of_a_package_are_content(tmp_path: Path) -> None:
    item, other = (content_digest(in_package(tmp_path, **{"m/o.pkl": named(k), f".data/{k}.storage": b""})) for k in "01")
    assert item != other


@pytest.mark.parametrize(
    ("pattern", "new", "same"),
    [
        (rb'(export_decomposed.py[\\"]+, line )[0-9]+', rb"\g<1>7", True),
        (rb'(graph_id[\\"]+: )[0-9]+', rb"\g<1>7", True),
        (rb'(opset_version": ..aten": )[0-9]+', rb"\g<1>7", False),
        (rb"export_decomposed.py", rb"export_computed.py", False),
    ],
)
def test_the_process_that_exported_a_program_is_disregarded(pattern: bytes, new: bytes, same: bool, tmp_path: Path) -> None:
    recorded, other = FIXTURES / "torch-2.15.0/export_decomposed.pt2", tmp_path / "archive.pt2"
    with zipfile.ZipFile(recorded) as source, zipfile.ZipFile(other, "w") as target:
        texts = {name: source.read(name) for name in source.namelist()}
        program = next(name for name in texts if name.endswith("models/model.json"))
        changed, count = re.subn(pattern, new, texts[program])
        assert count, f"{program} holds nothing like {pattern!r}"
        for name, text in {**texts, program: changed}.items():
            target.writestr(name, text)
    assert content_digest(recorded) != content_digest(other)
    assert same_content(recorded, other) is same


def test_frames_of_a_pickle_are_no_content(tmp_path: Path) -> None:
    def framed(key: str) -> bytes:
        pickled = named(key)[2:]
        return b"\x80\x04\x95" + struct.pack("<Q", len(pickled)) + pickled

    assert content_digest(in_zip(tmp_path, framed("94001"))) == content_digest(in_zip(tmp_path, framed("7")))


def test_unusual_containers_and_keys_are_read(tmp_path: Path) -> None:
    values = {b"\xff": collections.deque([1, 2]), "s": {3}, torch_like: collections.OrderedDict(a=1)}
    assert len(content_digest(in_zip(tmp_path, pickle.dumps(values, 2)))) == 64
    assert len(content_digest(in_zip(tmp_path, pickle.dumps(values, 4)))) == 64


def torch_like() -> None:
    """Pickled by its name."""


def test_a_very_long_number_has_a_digest(tmp_path: Path) -> None:
    item, other = (content_digest(in_zip(tmp_path, pickle.dumps(1 << power, 2))) for power in (50_000, 50_001))
    assert item != other


# ------------------------------------------------------------------------------------------- what is never executed


class Run:
    """Pickles as a call of something."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


@pytest.fixture
def trap(tmp_path: Path) -> Iterator[Path]:
    """A file that appears when something is executed, and a module that makes it when it is imported."""
    mark = tmp_path / "executed"
    (tmp_path / "trap_module.py").write_text(f"import pathlib\npathlib.Path({str(mark)!r}).touch()\ndef f(*_): pass\n")
    sys.path.insert(0, str(tmp_path))
    yield mark
    sys.path.remove(str(tmp_path))
    assert "trap_module" not in sys.modules
    assert not mark.exists()


def touch(mark: Path) -> bytes:
    return f"touch {mark}".encode()


def text(value: bytes) -> bytes:
    return b"X" + struct.pack("<I", len(value)) + value


def attacks(mark: Path) -> dict[str, bytes]:
    """Pickles that run a command, import a module, or reach for what is there, in each way the format has."""
    command = text(touch(mark))
    return {
        "reduce": b"\x80\x02cposix\nsystem\n" + command + b"\x85R.",
        "reduce in protocol 0": b"cposix\nsystem\n(V" + touch(mark) + b"\ntR.",
        "stack global": b"\x80\x04" + text(b"posix") + text(b"system") + b"\x93" + command + b"\x85R.",
        "stack global with a path": b"\x80\x04" + text(b"os") + text(b"path.join") + b"\x93" + command + b"\x85R.",
        "inst": b"(" + command + b"iposix\nsystem\n.",
        "obj": b"\x80\x02(cposix\nsystem\n" + command + b"o.",
        "newobj": b"\x80\x02csubprocess\nPopen\n(" + command + b"l\x85\x81.",
        "newobj with keywords": b"\x80\x04csubprocess\nPopen\n)}" + text(b"args") + command + b"s\x92.",
        "import": b"\x80\x02ctrap_module\nf\n)R.",
        "import alone": b"\x80\x02ctrap_module\nf\n.",
        "eval": b"\x80\x02cbuiltins\neval\n" + text(b"__import__('trap_module')") + b"\x85R.",
        "getattr": b"\x80\x02cbuiltins\ngetattr\ncbuiltins\ndict\n" + text(b"__init__") + b"\x86R.",
        "build a class": b"\x80\x02ctrap_module\nC\n}" + text(b"__setstate__") + b"cposix\nsystem\nsb.",
        "build with slots": b"\x80\x02ctrap_module\nC\n)\x81N}" + text(b"x") + b"K\x01s\x86b.",
        "setitem of a class": b"\x80\x02ctrap_module\nC\nK\x01K\x02s.",
        "persistent id that is an object": b"\x80\x02ctrap_module\nC\n)RQ.",
        "persistent id that is a class": b"\x80\x02(" + text(b"storage") + b"ctrap_module\nC\n" + text(b"0") + b"tQ.",
        "a name that is none": b"\x80\x04" + text(b"a\0b") + text(b"\xed\xa0\x80".decode("utf-8", "replace").encode()) + b"\x93.",
        "real": pickle.dumps(Run(exec, "import trap_module")),
    }


@pytest.mark.parametrize("name", sorted(attacks(Path("x"))))
@pytest.mark.parametrize("container", ["zip", "stream"])
def test_a_malicious_pickle_runs_nothing(name: str, container: str, trap: Path, tmp_path: Path) -> None:
    pickled = attacks(trap)[name]
    path = in_zip(tmp_path, pickled) if container == "zip" else in_stream(tmp_path, pickled)
    with contextlib.suppress(Corrupt, Unsafe):
        assert len(content_digest(path)) == 64


@pytest.mark.parametrize("opcode", [b"\x82\xf0", b"\x83\xf0\x00", b"\x84\xf0\x00\x00\x00"], ids=["EXT1", "EXT2", "EXT4"])
def test_what_this_process_registered_is_out_of_reach(opcode: bytes, trap: Path, tmp_path: Path) -> None:
    """An extension code that was used before is answered from a cache, without asking for a class by name."""
    copyreg.add_extension("builtins", "exec", 0xF0)
    try:
        assert pickle.loads(b"\x80\x02" + opcode + b".") is exec
        code = text(b"import trap_module")
        with pytest.raises(Unsafe, match="uses the extension code 240"):
            content_digest(in_zip(tmp_path, b"\x80\x02" + opcode + code + b"\x85R."))
    finally:
        copyreg.remove_extension("builtins", "exec", 0xF0)


@pytest.mark.parametrize(
    "pickled",
    [
        b"",
        b"\x80\x02",
        b"\x80\x7f.",
        b".",
        b"\x80\x020.",
        b"\x80\x02K\x01R.",
        b"\x80\x02]K\x01b.",
        b"\x80\x02r\xff\xff\xff\x7f.",  # a memo of sixteen gigabytes
        b"\x80\x02Nr\xff\xff\xff\xff.",
        b"Np4294967295\n.",
        b"\x80\x05\x96\xff\xff\xff\xff\xff\xff\xff\x7f.",  # a byte array of eight exabytes
        b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.",
        b"\x80\x02\x8b\xff\xff\xff\x7f.",
        b"\x80\x05\x97.",
        b"\x80\x02\x8a\xff" + b"\xff" * 200 + b".",
        b"I" + b"9" * 5000 + b"\n.",
        b"\x80\x02]]aK\x01s.",
        b"\x80\x02h\x05.",
        b"\xff.",
    ],
)
def test_a_pickle_that_contradicts_itself_is_refused(pickled: bytes, tmp_path: Path) -> None:
    for path in (in_zip(tmp_path, pickled), in_stream(tmp_path, pickled)):
        with pytest.raises(ArchiveError) as caught:
            content_digest(path)
        assert caught.value.where is not None
        assert str(path) in caught.value.where


def test_writing_opcodes_down_is_paid_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many = b"\x80\x02" + b"N" * 300_000 + b"."
    path = in_zip(tmp_path, many)
    assert len(content_digest(path)) == 64
    monkeypatch.setattr(Allowance, "to_load", Allowance.to_inspect)
    assert unpickle(many, where="x", allowance=Allowance.to_load(len(many))).value is None
    with pytest.raises(Unsafe, match="requires more work than the limit"):
        content_digest(path)


def test_texts_are_paid_for_before_they_are_written_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def little(size: int) -> Allowance:
        allowance = Allowance.to_inspect(size)
        allowance.expanded = 3_000_000
        return allowance

    monkeypatch.setattr(Allowance, "to_load", little)
    assert len(content_digest(in_zip(tmp_path, pickle.dumps(b"\xff" * 700_000, 4)))) == 64
    with pytest.raises(Unsafe, match="the records expand to more bytes in total"):
        content_digest(in_zip(tmp_path, pickle.dumps(b"\xff" * 800_000, 4)))


def test_a_persistent_id_that_begins_with_a_list_names_no_storage(tmp_path: Path) -> None:
    assert len(content_digest(in_zip(tmp_path, b"\x80\x02]\x85Q."))) == 64


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        (b"", "ends before its STOP"),
        (pickle.dumps(7, 2), "lists storages that the object does not reference"),
        (pickle.dumps([7], 2), "lists storages that the object does not reference"),
        (pickle.dumps(["8"], 2), "lists storages that the object does not reference"),
        (pickle.dumps([[]], 2), "lists storages that the object does not reference"),
        (pickle.dumps(["7"], 2), "ends inside storage '7'"),
        (pickle.dumps(["7"], 2) + struct.pack("<Q", 2) + b"\0" * 7, "ends inside storage '7': only 7 of 8 bytes are present"),
        (pickle.dumps(["7"], 2) + struct.pack("<Q", 2**64 - 1), "ends inside storage '7'"),
        (pickle.dumps(["7"], 2) + struct.pack("<Q", 1) + b"\0" * 5, "has bytes after its last storage"),
    ],
)
def test_a_stream_that_ends_too_early_or_too_late_is_damage(rest: bytes, said: str, tmp_path: Path) -> None:
    with pytest.raises(Corrupt, match=said):
        content_digest(in_stream(tmp_path, named("7"), rest))


@pytest.mark.parametrize("container", CONTAINERS)
@settings(max_examples=100, deadline=None)
@given(
    length=st.none() | st.integers(0, 1 << 30), flips=st.lists(st.tuples(st.integers(0, 1 << 30), st.integers(0, 7)), max_size=3)
)
def test_a_damaged_fixture_has_a_digest_or_is_refused(
    container: str, length: int | None, flips: list[tuple[int, int]], small_corpus: Corpus
) -> None:
    whole = smallest(small_corpus, container).read_bytes()
    spoilt = bytearray(whole if length is None else whole[: length % (len(whole) + 1)])
    for at, bit in flips:
        if spoilt:
            spoilt[at % len(spoilt)] ^= 1 << bit
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spoilt"
        path.write_bytes(spoilt)
        with contextlib.suppress(ArchiveError):
            assert len(content_digest(path)) == 64


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_no_pickle_does_more_than_be_refused(pickled: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for path in (in_zip(Path(folder), pickled), in_stream(Path(folder), pickled)):
            with contextlib.suppress(ArchiveError):
                assert len(content_digest(path)) == 64
