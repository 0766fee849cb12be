"""Hand-made torch.save archives: a pickle of opcodes, and records in the layout of torch's writer."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tools.faults.torch_zip import write_torch_zip

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True)
class Named:
    """A class or function."""

    module: str
    name: str


@dataclass(frozen=True)
class Call:
    """A call of one."""

    target: Named
    args: tuple[Any, ...]
    state: Any = None


@dataclass(frozen=True)
class Storage:
    """A storage, by its class."""

    kind: str
    key: str
    numel: int


def opcodes(value: Any) -> bytes:
    """The opcodes that make a value."""
    if value is None:
        return b"N"
    if isinstance(value, bool):
        return b"\x88" if value else b"\x89"
    if isinstance(value, int):
        return b"\x8a\x09" + value.to_bytes(9, "little", signed=True)
    if isinstance(value, float):
        return b"G" + struct.pack(">d", value)
    if isinstance(value, str):
        return b"X" + struct.pack("<I", len(value.encode())) + value.encode()
    if isinstance(value, bytes):
        return b"B" + struct.pack("<I", len(value)) + value
    if isinstance(value, Named):
        return f"c{value.module}\n{value.name}\n".encode()
    if isinstance(value, Storage):
        return opcodes(("storage", Named("torch", value.kind), value.key, "cpu", value.numel)) + b"Q"
    if isinstance(value, Call):
        built = b"" if value.state is None else opcodes(value.state) + b"b"
        return opcodes(value.target) + opcodes(value.args) + b"R" + built
    if isinstance(value, tuple):
        return b"(" + b"".join(map(opcodes, value)) + b"t"
    if isinstance(value, list):
        return b"](" + b"".join(map(opcodes, value)) + b"e"
    if isinstance(value, dict):
        return b"}(" + b"".join(opcodes(key) + opcodes(item) for key, item in value.items()) + b"u"
    raise TypeError(f"no opcodes for {value!r}")


def pickled(value: Any) -> bytes:
    return b"\x80\x02" + opcodes(value) + b"."


def tensor(
    storage: Storage,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    offset: int = 0,
    *,
    metadata: dict[str, Any] | None = None,
    dtype: str = "",
) -> Call:
    """A tensor; with a dtype as those are rebuilt whose storages are untyped."""
    args: tuple[Any, ...] = (storage, offset, shape, strides, False, Call(Named("collections", "OrderedDict"), ()))
    if dtype:
        args += (Named("torch", dtype),)
    if metadata is not None:
        args += (metadata,)
    return Call(Named("torch._utils", "_rebuild_tensor_v3" if dtype else "_rebuild_tensor_v2"), args)


def written(
    path: Path,
    value: Any,
    storages: Mapping[str, bytes | int],
    *,
    byteorder: str = "little",
    alignment: int = 64,
    deflate: frozenset[str] = frozenset(),
    crc32: bool = True,
) -> Path:
    """An archive as 2.7 and newer lay it out; a number for a storage is a hole of so many bytes."""
    records: dict[str, bytes | int] = {
        "data.pkl": value if isinstance(value, bytes) else pickled(value),
        ".format_version": b"1",
        ".storage_alignment": str(alignment).encode(),
        "byteorder": byteorder.encode(),
        **{f"data/{key}": data for key, data in storages.items()},
        "version": b"3\n",
    }
    write_torch_zip(path, records, alignment=alignment, deflate=deflate, crc32=crc32)
    return path
