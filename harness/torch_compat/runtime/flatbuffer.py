"""A mobile archive in a flatbuffer: its objects, tensors and constants, and the TorchScript source that it contains besides its bytecode.

:mod:`torch_compat.formats.mobile_flatbuffer` describes the layout. Additional field numbers: ``String`` 0 data; ``List`` 0
items; ``Tuple`` 0 items; ``Dict`` 0 keys, 1 values; ``Object`` 0 type_index, 1 state, 2 attrs, 3 setstate_func; ``IntList``,
``DoubleList``, ``BoolList`` 0 items; ``Device`` 0 str; ``EnumValue`` 0 type_name, 1 value; ``ObjectType`` 0 type_name, 1 type,
2 attr_names; ``TensorMetadata`` 5 requires_grad, 6 quantized_schema. ``Int``, ``Bool``, ``Double`` and ``ComplexDouble`` are structs.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from torch_compat import arrays
from torch_compat.errors import Corrupt, HarnessError, Unsafe, Unsupported
from torch_compat.runtime import dtypes
from torch_compat.runtime.language.types import checked_key
from torch_compat.runtime.tensor import Tensor
from torch_compat.runtime.values import Device

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Flatbuffer"]

METHODS, STATE, IVALUES, STORAGES, TYPES, SOURCES, CONSTANTS, OPERATOR_VERSION = 2, 3, 4, 6, 7, 8, 9, 10  # of Module
ERRORS = (struct.error, IndexError, ValueError, OverflowError, UnicodeDecodeError)
DEPTH = 200
WITH_SETSTATE = 3


class Flatbuffer:
    """The parts of a program in a flatbuffer.

    Attributes:
        names: the records that an equivalent zip archive would have; source only.
        version: the file format version of its operators.
        bytecode: the bytecode version.
    """

    def __init__(self, data: memoryview, where: str) -> None:
        self._data = bytes(data)
        self._where = where
        self._left = 4 * len(self._data) + 1024
        self._values: dict[int, Any] = {}
        self._storages: dict[int, bytearray] = {}
        try:
            self._root = self._u32(0)
            self.bytecode = self._number(self._root, 0, "<I")
            self.version = self._number(self._root, OPERATOR_VERSION, "<I")
            self._ivalues = self._tables(self._root, IVALUES)
            self._storage_tables = self._tables(self._root, STORAGES)
            self._types = self._tables(self._root, TYPES)
            files = {self._text(table, 0): self._text(table, 1) for table in self._tables(self._root, SOURCES)}
        except HarnessError:
            raise
        except ERRORS as error:
            raise Corrupt(f"one of its tables cannot be read: {error}", where=where, code="bad-table") from error
        self._sources = {"code/" + name.replace(".", "/") + ".py": text.encode("latin-1") for name, text in files.items()}
        self.names = tuple(self._sources)

    def view(self, record: str) -> memoryview:
        """The source of a record."""
        return memoryview(self._sources[record])

    def state(self, make: Callable[[str, dict[str, Any] | None, Any, bool], Any]) -> Any:
        """Read the module.

        Parameters:
            make: creates an object from the name of its class, its attributes, its state, and whether the state sets it.
        """
        return self._read(lambda: self._value(self._number(self._root, STATE, "<I"), make, 0))

    def constants(self, make: Callable[[str, dict[str, Any] | None, Any, bool], Any]) -> list[Any]:
        """The constants that the source refers to as ``CONSTANTS``."""

        def every() -> list[Any]:
            start, length = self._vector(self._root, CONSTANTS)
            return [self._value(self._u32(start + 4 * n), make, 0) for n in range(length)]

        results: list[Any] = self._read(every)
        return results

    def _read(self, read: Callable[[], Any]) -> Any:
        try:
            return read()
        except HarnessError:
            raise
        except ERRORS as error:
            raise Corrupt(f"one of its tables cannot be read: {error}", where=self._where, code="bad-table") from error

    # ---------------------------------------------------------------------------------------------- tables

    def _unpack(self, form: str, at: int) -> Any:
        if at < 0:
            raise IndexError(f"an offset points to {at}")
        return struct.unpack_from(form, self._data, at)[0]

    def _u32(self, at: int) -> int:
        return int(self._unpack("<I", at))

    def _field(self, table: int, number: int) -> int:
        vtable = table - int(self._unpack("<i", table))
        place = 4 + 2 * number
        if place >= self._unpack("<H", vtable):
            return 0
        offset = int(self._unpack("<H", vtable + place))
        return table + offset if offset else 0

    def _number(self, table: int, number: int, form: str) -> int:
        at = self._field(table, number)
        return int(self._unpack(form, at)) if at else 0

    def _follow(self, at: int) -> int:
        return at + self._u32(at)

    def _vector(self, table: int, number: int) -> tuple[int, int]:
        at = self._field(table, number)
        if not at:
            return 0, 0
        start = self._follow(at)
        length = self._u32(start)
        if start + length > len(self._data):
            raise IndexError(f"a vector of {length} elements extends past the end")
        return start + 4, length

    def _tables(self, table: int, number: int) -> list[int]:
        start, length = self._vector(table, number)
        return [self._follow(start + 4 * n) for n in range(length)]

    def _spend(self, count: int) -> None:
        """Pay for bytes read, since many tables can share a vector.

        Raises:
            Unsafe: the vectors read so far have more bytes in total than the file.
        """
        self._left -= count
        if self._left < 0:
            raise Unsafe("refers to the same bytes too many times", where=self._where, code="too-large")

    def _numbers(self, table: int, number: int, form: str) -> list[Any]:
        start, length = self._vector(table, number)
        self._spend(length * struct.calcsize(form))
        result = struct.unpack_from(f"<{length}{form}", self._data, start) if length else ()
        return list(result)

    def _text(self, table: int, number: int) -> str:
        start, length = self._vector(table, number)
        self._spend(length)
        return self._data[start : start + length].decode("latin-1")

    # ---------------------------------------------------------------------------------------------- values

    def _value(self, index: int, make: Callable[[str, dict[str, Any] | None, Any, bool], Any], depth: int) -> Any:
        if index in self._values:
            return self._values[index]
        if depth > DEPTH:
            raise Corrupt(f"has values nested deeper than {DEPTH}", where=self._where, code="too-deep")
        table = self._ivalues[index]
        kind = self._number(table, 0, "<B")
        at = self._field(table, 1)
        if kind == 0:
            return None
        held = self._follow(at)
        below = depth + 1
        results: Any
        if kind == 1:
            results = int(self._unpack("<q", held))
        elif kind == 2:
            results = bool(self._unpack("<B", held))
        elif kind == 3:
            results = float(self._unpack("<d", held))
        elif kind == 4:
            results = complex(float(self._unpack("<d", held)), float(self._unpack("<d", held + 8)))
        elif kind == 5:
            results = self._tensor(held)
        elif kind == 6:
            results = self._text(held, 0)
        elif kind == 7:
            results = [self._value(number, make, below) for number in self._numbers(held, 0, "I")]
        elif kind == 8:
            results = tuple(self._value(number, make, below) for number in self._numbers(held, 0, "I"))
        elif kind == 9:
            keys, values = self._numbers(held, 0, "I"), self._numbers(held, 1, "I")
            results = {
                checked_key(self._value(k, make, below)): self._value(v, make, below) for k, v in zip(keys, values, strict=True)
            }
        elif kind == 10:
            results = self._object(held, make, below)
        elif kind in {11, 12, 13}:
            results = self._numbers(held, 0, {11: "q", 12: "d", 13: "?"}[kind])
        elif kind == 14:
            results = Device(self._text(held, 0))
        else:
            raise Unsupported(f"contains a value of kind {kind}, which programs cannot contain", where=self._where, code="value")
        self._values[index] = results
        return results

    def _object(self, held: int, make: Callable[[str, dict[str, Any] | None, Any, bool], Any], depth: int) -> Any:
        type_ = self._types[self._number(held, 0, "<I")]
        name = self._text(type_, 0)
        if self._number(type_, 1, "<B") == WITH_SETSTATE:
            return make(name, None, self._value(self._number(held, 1, "<I"), make, depth), True)
        start, length = self._vector(type_, 2)
        named = []
        for n in range(length):
            text = self._follow(start + 4 * n)
            named.append(self._data[text + 4 : text + 4 + self._u32(text)].decode("latin-1"))
        values = [self._value(number, make, depth) for number in self._numbers(held, 2, "I")]
        return make(name, dict(zip(named, values, strict=True)), None, False)

    def _tensor(self, held: int) -> Tensor:
        if self._field(held, 6):
            raise Unsupported("contains a quantized tensor", where=self._where, code="dtype")
        dtype = dtypes.numbered(self._number(held, 1, "<b"))
        place = self._number(held, 0, "<I")
        if place not in self._storages:
            start, length = self._vector(self._storage_tables[place], 0)
            self._spend(length)
            self._storages[place] = bytearray(self._data[start : start + length])
        shape, strides = self._numbers(held, 3, "i"), self._numbers(held, 4, "i")
        base = arrays.elements(self._storages[place], dtype.array)
        known = self._values.setdefault(-1 - place, base)  # one array per storage, whose identity stands for the storage
        base = known if known.dtype == base.dtype else base
        offset = self._number(held, 2, "<i")
        where = f"{self._where}, storage {place}"
        array = arrays.view(base, dtype.array, shape, strides, offset, where=where)
        return Tensor(array, bool(self._number(held, 5, "<B")))
