"""Archives of torch 0.1: what their pickle may reference besides tensors."""

from __future__ import annotations

import pickle
import struct
from typing import TYPE_CHECKING

import pytest

from tests.archive.test_tar import with_pax
from torch_compat.errors import Corrupt
from torch_compat.formats import read_facts
from torch_compat.pickles import Described, ModuleSource, Storage

if TYPE_CHECKING:
    from pathlib import Path

    from torch_compat.formats import Facts

SYSTEM = pickle.dumps({"protocol_version": 1000, "little_endian": True, "type_sizes": {}}, 2)
STORAGES = (
    pickle.dumps(1, 2)
    + b"\x80\x02(K\x05X\x03\x00\x00\x00cpuctorch\nFloatStorage\nt."
    + struct.pack("<qf", 1, 1.5)
    + pickle.dumps([], 2)
)
TENSORS = pickle.dumps(1, 2) + b"\x80\x02(K\x07K\x05ctorch\nFloatTensor\nt." + struct.pack("<ii", 0, 0) + struct.pack("<q", 0)


def read(value: bytes, folder: Path) -> Facts:
    path = folder / "a.pt"
    members = {"sys_info": SYSTEM, "pickle": b"\x80\x02" + value + b".", "tensors": TENSORS, "storages": STORAGES}
    path.write_bytes(with_pax(members, {}))
    return read_facts(path)


def test_the_class_of_a_module_is_a_persistent_id_with_its_source(tmp_path: Path) -> None:
    facts = read(b"(cmine\nNet\nX\x04\x00\x00\x00a.pyX\x06\x00\x00\x00class tQ", tmp_path)
    source = facts.pickles["pickle"].value
    assert source.__class__ is ModuleSource
    assert (source.type.path, source.file, source.source) == ("mine.Net", "a.py", "class ")
    assert facts.damage == []
    assert facts.globals == ["mine.Net"]


def test_an_object_of_such_a_class_is_described(tmp_path: Path) -> None:
    result = read(b"(cmine\nNet\nNNtQ)\x81}b", tmp_path).pickles["pickle"].value
    assert result.__class__ is Described
    assert result.target.path == "mine.Net"


def test_a_class_without_source_is_one_too(tmp_path: Path) -> None:
    assert read(b"(cmine\nNet\nNNtQ", tmp_path).pickles["pickle"].value.source is None


def test_a_storage_may_be_named_like_a_tensor(tmp_path: Path) -> None:
    assert read(b"X\x01\x00\x00\x005Q", tmp_path).pickles["pickle"].value.__class__ is Storage


def test_any_other_persistent_id_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(Corrupt, match="names the tensor"):
        read(b"X\x01\x00\x00\x009Q", tmp_path)
    with pytest.raises(Corrupt, match="names the tensor"):
        read(b"(K\x01NNtQ", tmp_path)
