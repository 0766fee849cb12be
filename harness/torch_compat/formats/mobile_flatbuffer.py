"""Bytecode of the lite interpreter in one flatbuffer (``.ff``, also saved as ``.ptl``): bytecode version 9.

Written by ``_save_for_lite_interpreter(..., _use_flatbuffer=True)`` and read by the lite interpreter from 1.13 on; the wheels of 1.12
know the argument, but were built without flatbuffers. Content and meaning are the same as in bytecode 8 in ``bytecode.pkl``; only the
encoding differs.

A flatbuffer with the file identifier ``PTMF`` at byte 4. Its schema is torch/csrc/jit/serialization/mobile_bytecode.fbs; the
numbers of the fields that are read here, as that file counts them from 0 (the vtable has them at 4 + 2 x number):

* ``Module``, the root: 0 bytecode_version (uint), 1 extra_files, 2 methods (indices of ivalues), 3 state_obj, 4 ivalues,
  5 storage_data_size (int), 6 storage_data, 7 object_types, 8 jit_sources, 9 jit_constants, 10 operator_version (uint: the file
  format version of the operators), and from 1.13 on 11 mobile_ivalue_size
* ``IValue``: 0 val_type (ubyte: 5 TensorMetadata, 16 Function), 1 val
* ``Function``: 0 qn (name), 1 instructions, 2 operators, 3 constants, 4 type_annotations, 5 register_size, 6 schema, ...
* ``Operator``: 0 name, 1 overload_name, 2 num_args_serialized (int, -1: not stated)
* ``TensorMetadata``: 0 storage_location_index (uint), 1 scalar_type (byte), 2 storage_offset, 3 sizes, 4 strides, ...
* ``StorageData``: 0 data (ubyte vector, force_align 16)
* ``ExtraFile`` (extra_files, jit_sources): 0 name, 1 content

The file states the location of each storage, so there is nothing to calculate.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from torch_compat.allowance import CALL, TABLE
from torch_compat.errors import ArchiveError, Corrupt
from torch_compat.formats.model import Call, Producer, StorageRecord
from torch_compat.values.dtypes import NUMBERED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.allowance import Allowance
    from torch_compat.archive import Archive
    from torch_compat.formats.model import Facts

__all__ = ["FAMILY", "LAYOUT", "read", "versions"]

LAYOUT, FAMILY = "mobile_flatbuffer", "mobile"
BYTECODE_VERSION, EXTRA_FILES, IVALUES, STORAGE_DATA, JIT_SOURCES, OPERATOR_VERSION = 0, 1, 4, 6, 8, 10  # Module
TENSOR, FUNCTION = 5, 16  # members of the union of an IValue
OPERATORS = 2  # Function
WHY = "a flatbuffer contains the offset of every storage"
# Exceptions that the library raises if offsets lead out of the file or backwards.
ERRORS = (struct.error, IndexError, TypeError, ValueError, OverflowError)


class _Buffer:
    """Tables and vectors of a flatbuffer, by field number. Reads no more elements than the file has bytes."""

    def __init__(self, data: memoryview, where: str, allowance: Allowance) -> None:
        # Imported here, since only this format needs it and it imports numpy. It has no types.
        import flatbuffers.number_types as numbers  # type: ignore[import-untyped]  # noqa: PLC0415
        from flatbuffers import encode, packer  # noqa: PLC0415
        from flatbuffers.table import Table  # type: ignore[import-untyped]  # noqa: PLC0415

        self.data = data
        self.where = where
        self.left = len(data)
        self.letters = 4 * len(data) + (1 << 16)  # writers let tables share strings, but not by the thousand
        self.allowance = allowance
        self.table = Table
        self.numbers = numbers
        self.root = self._table(encode.Get(packer.uoffset, data, 0))

    def number(self, table: Any, field: int, kind: Any, default: int) -> int:
        """A number; its default if it is absent."""
        return int(table.GetSlot(4 + 2 * field, default, kind))

    def text(self, table: Any, field: int) -> str:
        """A text; empty if it is absent."""
        at = table.Offset(4 + 2 * field)
        if not at:
            return ""
        decoder = bytes(table.String(table.Pos + at))
        self.letters -= len(decoder)
        if self.letters < 0:
            raise Corrupt("its tables refer to more text than the file can contain", where=self.where, code="overlap")
        return decoder.decode("utf-8", "replace")

    def follow(self, table: Any, field: int) -> Any:
        """The table that a field points to, or None."""
        at = table.Offset(4 + 2 * field)
        return self._table(table.Indirect(table.Pos + at)) if at else None

    def vector(self, table: Any, field: int, size: int) -> tuple[int, int]:
        """Where the elements of a vector begin, and how many there are; the file must hold them."""
        at = table.Offset(4 + 2 * field)
        if not at:
            return 0, 0
        start, length = table.Vector(at), table.VectorLen(at)
        if start < 0 or start + length * size > len(self.data):
            raise Corrupt(
                f"a vector of {length} elements at {start} extends past the end of the file", where=self.where, code="cut-off"
            )
        return start, length

    def tables(self, table: Any, field: int) -> Iterator[Any]:
        """The tables that a vector points to."""
        start, length = self.vector(table, field, 4)
        self.left -= length
        if self.left < 0:  # vectors that share their elements could be read forever
            raise Corrupt("its tables refer to more elements than the file can contain", where=self.where, code="overlap")
        for index in range(length):
            yield self._table(table.Indirect(start + 4 * index))

    def _table(self, position: int) -> Any:
        """The table at an offset, after its vtable has been validated, as C++ readers do."""
        self.allowance.spend(TABLE)
        data = self.data
        if not 4 <= position <= len(data) - 4:
            raise Corrupt(f"the offset of a table, {position}, is outside the file", where=self.where, code="bad-offset")
        fields = position - int.from_bytes(data[position : position + 4], "little", signed=True)
        length = int.from_bytes(data[fields : fields + 2], "little") if fields >= 0 else 0
        if length < 4 or length % 2 or fields + length > len(data):
            message = f"the fields of the table at {position} have the invalid length {length} at {fields}"
            raise Corrupt(message, where=self.where, code="bad-table")
        return self.table(data, position)


def versions(archive: Archive) -> dict[str, int]:
    """The bytecode version.

    Raises:
        Corrupt: the root table cannot be read.
    """
    try:
        buffer = _Buffer(archive.data, archive.path, archive.allowance)
        result = buffer.number(buffer.root, BYTECODE_VERSION, buffer.numbers.Uint32Flags, 0)
    except Corrupt as error:
        raise Corrupt(f"its root table cannot be read: {error.message}", where=error.where, code="bad-table") from error
    except ERRORS as error:
        raise Corrupt(f"its root table cannot be read: {error}", where=archive.path, code="bad-table") from error
    if not result:
        raise Corrupt("its root table has no bytecode version", where=archive.path, code="bad-version")
    return {"bytecode": result}


def read(archive: Archive, facts: Facts) -> None:
    """Fill in the facts of a flatbuffer.

    Raises:
        Corrupt: an offset in it is invalid.
    """
    facts.byteorder = "little"  # of every flatbuffer
    facts.producer = Producer(first="1.12", because=(f"bytecode {facts.versions['bytecode']} in a flatbuffer",))
    try:
        _fill(_Buffer(archive.data, archive.path, archive.allowance), facts)
    except ArchiveError:
        raise
    except ERRORS as error:
        raise Corrupt(f"one of its tables cannot be read: {error}", where=archive.path, code="bad-table") from error


def _fill(buffer: _Buffer, facts: Facts) -> None:
    root, numbers = buffer.root, buffer.numbers
    facts.extra["operator_version"] = buffer.number(root, OPERATOR_VERSION, numbers.Uint32Flags, 0)
    results: set[Call] = set()
    dtypes: dict[int, str] = {}
    for value in buffer.tables(root, IVALUES):
        kind = buffer.number(value, 0, numbers.Uint8Flags, 0)
        if kind not in {TENSOR, FUNCTION}:
            continue
        held = buffer.follow(value, 1)
        if held is None:
            raise Corrupt("one of its values has a type but no content", where=buffer.where, code="bad-table")
        if kind == TENSOR:
            scalar = buffer.number(held, 1, numbers.Int8Flags, 0)
            dtype = NUMBERED.get(scalar, f"scalar type {scalar}")
            dtypes.setdefault(buffer.number(held, 0, numbers.Uint32Flags, 0), dtype)
            continue
        for operator in buffer.tables(held, OPERATORS):
            count = buffer.number(operator, 2, numbers.Int32Flags, -1)
            results.add(Call(buffer.text(operator, 0), buffer.text(operator, 1), count if count >= 0 else None, ()))
    buffer.allowance.spend(CALL * len(results))
    facts.calls = frozenset(results)
    for index, storage in enumerate(buffer.tables(root, STORAGE_DATA)):
        start, length = buffer.vector(storage, 0, 1)
        facts.storages.append(StorageRecord(str(index), dtypes.get(index), length, start or None, why=WHY))
    for field, where in ((EXTRA_FILES, "extra_files"), (JIT_SOURCES, "jit_sources")):
        files = {buffer.text(file, 0): buffer.text(file, 1) for file in buffer.tables(root, field)}
        if field == JIT_SOURCES:
            facts.sources.update(files)
        elif files:
            facts.extra[where] = sorted(files)
