"""torch's dtypes on NumPy: names, numbers, categories, and type promotion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from torch_compat.arrays import sized_dtype
from torch_compat.errors import Raised, Unsupported
from torch_compat.releases.release import Release
from torch_compat.values import dtypes as table

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "BFLOAT16",
    "BOOL",
    "COMPLEX64",
    "COMPLEX128",
    "DTYPES",
    "FLOAT16",
    "FLOAT32",
    "FLOAT64",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "UINT8",
    "Dtype",
    "as_dtype",
    "default_dtype",
    "is_known",
    "named",
    "numbered",
    "of_numpy",
    "of_scalar",
    "promote",
    "result_type",
    "set_default_dtype",
]  # fmt: skip


class Dtype:
    """A torch dtype. There is one object per dtype, so dtypes are compared with ``is``.

    Attributes:
        name: the name, such as ``float32``.
        code: torch's number for the dtype (``c10::ScalarType``), which TorchScript uses; 6 is float32.
        numpy: the dtype of the arrays that hold the values; None if NumPy has none (quantized dtypes, complex32).
        category: 0 bool, 1 integer, 2 floating point, 3 complex; decides type promotion first.
        itemsize: the size of an element in bytes.
        default: whether Python scalars of the category become this dtype by default (never true for float64).
    """

    __slots__ = ("category", "code", "itemsize", "name", "numpy")

    def __init__(self, name: str, code: int, numpy: Any, category: int, itemsize: int) -> None:
        self.name = name
        self.code = code
        self.numpy: np.dtype[Any] | None = None if numpy is None else np.dtype(numpy)
        self.category = category
        self.itemsize = itemsize

    @property
    def is_floating_point(self) -> bool:
        """Same as ``torch.dtype.is_floating_point``: complex dtypes are not."""
        return self.category == 2

    @property
    def is_complex(self) -> bool:
        """Same as ``torch.dtype.is_complex``."""
        return self.category == 3

    @property
    def array(self) -> np.dtype[Any]:
        """The NumPy dtype.

        Raises:
            Unsupported: NumPy has no such dtype.
        """
        if self.numpy is None:
            raise Unsupported(f"the reference reader cannot compute with torch.{self.name}", code="dtype")
        return self.numpy

    @property
    def memory(self) -> np.dtype[Any]:
        """The NumPy dtype for reading a storage: the units to which byte order applies; for ``complex32``, its two parts."""
        row = table.DTYPES[self.name]
        if self.numpy is not None:
            return self.numpy
        return sized_dtype("=", row.numpy or (f"u{table.DTYPES[row.parts].size}" if row.parts else "u1"))

    def __repr__(self) -> str:
        return f"torch.{self.name}"


BOOL_, INTEGER, FLOATING, COMPLEX = range(4)
_CATEGORIES = {
    "bool": BOOL_, "integer": INTEGER, "quantized": INTEGER, "bits": INTEGER, "narrow": INTEGER, "float": FLOATING,
    "complex": COMPLEX,
}  # fmt: skip
"""The category of each kind of dtype."""


def _of(row: table.ScalarType, number: int) -> Dtype:
    numpy = getattr(ml_dtypes, row.name) if row.ml_dtypes else row.numpy if row.kind != "quantized" else ""
    return Dtype(row.name, number, numpy or None, _CATEGORIES[row.kind], row.size)


DTYPES: dict[str, Dtype] = {name: _of(table.DTYPES[name], number) for number, name in sorted(table.NUMBERED.items())}
"""Every dtype, by name."""
_BY_CODE = {dtype.code: dtype for dtype in DTYPES.values()}
_BY_NUMPY: dict[Any, Dtype] = {dtype.numpy: dtype for dtype in DTYPES.values() if dtype.numpy is not None}
_ALIASES = {**table.ALIASES, "byte": "uint8", "char": "int8"}

BOOL, UINT8, INT8, INT16, INT32, INT64 = (DTYPES[n] for n in ("bool", "uint8", "int8", "int16", "int32", "int64"))
FLOAT16, BFLOAT16, FLOAT32, FLOAT64 = (DTYPES[n] for n in ("float16", "bfloat16", "float32", "float64"))
COMPLEX64, COMPLEX128 = DTYPES["complex64"], DTYPES["complex128"]

_default = FLOAT32


def is_known(name: str, release: Release) -> bool:
    """Whether the ``torch`` module of a release has a dtype with this name."""
    return release >= Release(table.SINCE.get(table.ALIASES.get(name, name), "1.0.0"))


def default_dtype() -> Dtype:
    """The dtype of tensors created from Python floats."""
    return _default


def set_default_dtype(dtype: Dtype) -> None:
    """Same as ``torch.set_default_dtype``; programs cannot call it."""
    global _default  # noqa: PLW0603 - torch keeps it for the whole process, too
    _default = dtype


def of_numpy(dtype: np.dtype[Any]) -> Dtype:
    """The dtype of a NumPy array.

    Raises:
        Unsupported: torch has no such dtype.
    """
    result = _BY_NUMPY.get(dtype)
    if result is None:
        raise Unsupported(f"torch has no dtype for numpy's {dtype}", code="dtype")
    return result


def named(name: str) -> Dtype | None:
    """The dtype with a name (``float32``, ``torch.float``), or None."""
    name = name.removeprefix("torch.")
    return DTYPES.get(_ALIASES.get(name, name))


def numbered(code: int) -> Dtype:
    """The dtype with one of torch's numbers.

    Raises:
        Raised: there is no such dtype.
    """
    result = _BY_CODE.get(code)
    if result is None:
        raise Raised(f"there is no dtype with the number {code}", code="RuntimeError")
    return result


def as_dtype(value: Any) -> Dtype | None:
    """Convert a program's dtype argument (a number, a dtype, or None) to a dtype."""
    if value is None or isinstance(value, Dtype):
        return value
    return numbered(int(value))


def of_scalar(value: Any) -> Dtype:
    """The dtype of a 0-dim tensor created from a Python scalar: bool, int64, the default dtype, or its complex counterpart."""
    kind = value.__class__
    if kind is bool:
        return BOOL
    if kind is int:
        return INT64
    if kind is float:
        return _default
    return COMPLEX128 if _default is FLOAT64 else COMPLEX64


# c10::promoteTypes for numeric dtypes: within a category, the wider dtype; for uint8 and a signed dtype, the next wider signed dtype;
# for float16 and bfloat16, float32.
_ORDER = {"uint8": 0, "int8": 1, "int16": 2, "int32": 3, "int64": 4, "float16": 5, "bfloat16": 5, "float32": 6, "float64": 7}
_COMPLEX_OF = {"float16": "complex64", "bfloat16": "complex64", "float32": "complex64", "float64": "complex128", "complex64": "complex64", "complex128": "complex128"}  # fmt: skip


def _promote(a: Dtype, b: Dtype) -> Dtype:
    if a is b:
        return a
    if a.category < b.category:
        a, b = b, a
    if b.category == 0:
        return a
    if a.category == 3:
        if b.category < 2:
            return a
        return COMPLEX128 if "complex128" in {_COMPLEX_OF.get(a.name), _COMPLEX_OF.get(b.name)} else COMPLEX64
    if a.category == 2:
        if b.category < 2:
            return a
        if a.name.startswith("float8") or b.name.startswith("float8"):
            raise Raised(
                f"Promotion for Float8 Types is not supported, attempted to promote {a.name} and {b.name}", code="RuntimeError"
            )
        if {a.name, b.name} == {"float16", "bfloat16"}:
            return FLOAT32
        return a if _ORDER[a.name] > _ORDER[b.name] else b
    if a.name not in _ORDER or b.name not in _ORDER:  # uint16, uint32 and uint64 have limited support and no promotion
        raise Raised(f"Promotion for uint16, uint32, uint64 types is not supported, attempted to promote {a.name} and {b.name}", code="RuntimeError")  # fmt: skip
    if {a.name, b.name} == {"uint8", "int8"}:
        return INT16
    return a if _ORDER[a.name] > _ORDER[b.name] else b


_promoted: dict[tuple[Dtype, Dtype], Dtype] = {}


def promote(a: Dtype, b: Dtype) -> Dtype:
    """Same as ``torch.promote_types``."""
    if a is b:
        return a
    result = _promoted.get((a, b))
    if result is None:
        result = _promoted[a, b] = _promote(a, b)
    return result


def result_type(values: Iterable[Any]) -> Dtype:
    """Same as ``torch.result_type`` of 1.5 and newer: tensors with dimensions take precedence over 0-dim tensors, and these over scalars.

    A lower group counts only if its category is higher than that of the groups above it. A Python scalar counts as
    the default dtype of its category.

    Parameters:
        values: tensors (anything with ``array``) and Python scalars.
    """
    dims: Dtype | None = None
    zero: Dtype | None = None
    wrapped: Dtype | None = None
    for value in values:
        array = getattr(value, "array", None)
        if array is None:
            item = of_scalar(value)
            wrapped = item if wrapped is None else promote(wrapped, item)
        elif array.ndim:
            item = _BY_NUMPY[array.dtype]
            dims = item if dims is None else promote(dims, item)
        else:
            item = _BY_NUMPY[array.dtype]
            zero = item if zero is None else promote(zero, item)
    result = dims
    for lower in (zero, wrapped):
        if lower is not None:
            result = lower if result is None else _combine(result, lower)
    if result is None:
        raise Raised("there is no argument that determines the dtype", code="RuntimeError")
    return result


def _combine(higher: Dtype, lower: Dtype) -> Dtype:
    if higher.category == FLOATING and lower.category == COMPLEX:  # the higher group determines the precision
        if higher.itemsize == 2:  # NumPy has no such dtype; bfloat16 has no complex counterpart before 2.14
            raise Unsupported(
                f"the reference reader does not support complex numbers whose parts are {higher.name}", code="dtype"
            )
        return DTYPES[_COMPLEX_OF[higher.name]] if higher.name in _COMPLEX_OF else promote(higher, lower)
    return promote(higher, lower) if lower.category > higher.category else higher
