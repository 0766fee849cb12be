"""The table of torch dtypes, from which everything else that the program knows about dtypes is derived.

The dtypes are those of c10/core/ScalarType.h. Each subsystem of torch names them in its own way, by numbers or by words; the columns
of the table hold all of those names. This module imports only the standard library; the numpy dtypes are
derived in :mod:`torch_compat.state.dtypes` and :mod:`torch_compat.runtime.dtypes`.

A pickle names the class of a storage (``torch.FloatStorage``, ``torch.cuda.HalfStorage``, ``torch.storage.UntypedStorage``);
the class determines the dtype, and so the element size. Newer dtypes have no class: they are pickled as ``torch.uint16`` next to
an untyped storage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

__all__ = [
    "ALIASES",
    "CAFFE2",
    "DTYPES",
    "ELEMENT_SIZES",
    "MEASURED",
    "NUMBERED",
    "PACKED",
    "SINCE",
    "STORAGE_CLASSES",
    "ScalarType",
    "storage_class",
]

if TYPE_CHECKING:
    Kind: TypeAlias = Literal["bool", "integer", "float", "complex", "quantized", "bits", "narrow"]


class ScalarType:
    """One dtype. A plain class, since every command imports this module: a NamedTuple takes half a millisecond to define.

    Attributes:
        name: its name in Python, without the module: ``float32``.
        kind: ``bool``, ``integer``, ``float``, ``complex``; ``quantized``: integers that represent numbers by a scale and a zero
            point; ``bits``: bits without a meaning; ``narrow``: numbers of less than a byte, with which no release computes.
        size: bytes of an element in a storage.
        number: in c10::ScalarType; TorchScript programs, defaults in schemas and flatbuffers use it. None if no number
            is known.
        word: the name in c10::ScalarType, which error messages use: ``Float``; "" if there is none.
        numpy: the type code of the array that holds the elements, without byte order: ``f4``; for quantized dtypes that of their
            integers; "" if numpy has none.
        ml_dtypes: whether the array has the dtype of this name in ml_dtypes. Every supported version of ml_dtypes has it.
        export: the number in torch/_export/serde/schema.py, which exported programs use; None if it has none.
        storages: names of the classes of storages that hold such elements.
        aliases: other names in the module ``torch``.
        caffe2: names in caffe2/proto/caffe2.proto, which model.json of 1.0 to 1.2 uses.
        cpp: the C++ type, which error messages use; "" if none of them does.
        parts: for a complex dtype, the dtype of its two parts; for ``bits16`` the dtype that shows its bits; else "".
        packed: bits of an element if a byte of the storage holds several elements, each of which counts in shapes; else 0.
        signed_zero: for floating and complex dtypes, whether a number is negated by its sign bit. In dtypes without a negative
            zero, those bits mean something else.
    """

    __slots__ = (
        "aliases", "caffe2", "cpp", "export", "kind", "ml_dtypes", "name", "number", "numpy", "packed", "parts", "signed_zero",
        "size", "storages", "word",
    )  # fmt: skip

    def __init__(
        self, name: str, kind: Kind, size: int, number: int | None = None, word: str = "", numpy: str = "", *,
        ml_dtypes: bool = False, export: int | None = None, storages: tuple[str, ...] = (), aliases: tuple[str, ...] = (),
        caffe2: tuple[str, ...] = (), cpp: str = "", parts: str = "", packed: int = 0, signed_zero: bool = True,
    ) -> None:  # fmt: skip
        self.name = name
        self.kind = kind
        self.size = size
        self.number = number
        self.word = word
        self.numpy = numpy
        self.ml_dtypes = ml_dtypes
        self.export = export
        self.storages = storages
        self.aliases = aliases
        self.caffe2 = caffe2
        self.cpp = cpp
        self.parts = parts
        self.packed = packed
        self.signed_zero = signed_zero


_TABLE: Final = (
    ScalarType(
        "float16", "float", 2, 5, "Half", "f2", export=6, storages=("HalfStorage",), aliases=("half",), caffe2=("FLOAT16",), cpp="at::Half"
    ),
    ScalarType(
        "bfloat16", "float", 2, 15, "BFloat16", ml_dtypes=True, export=13, storages=("BFloat16Storage",), caffe2=("BFLOAT16",),
        cpp="at::BFloat16",
    ),
    ScalarType("float32", "float", 4, 6, "Float", "f4", export=7, storages=("FloatStorage",), aliases=("float",), caffe2=("FLOAT",), cpp="float"),
    ScalarType("float64", "float", 8, 7, "Double", "f8", export=8, storages=("DoubleStorage",), aliases=("double",), caffe2=("DOUBLE",), cpp="double"),
    ScalarType("complex32", "complex", 4, 8, "ComplexHalf", export=9, aliases=("chalf",), parts="float16"),
    ScalarType("bcomplex32", "complex", 4, 46, "BComplex32", parts="bfloat16"),
    ScalarType(
        "complex64", "complex", 8, 9, "ComplexFloat", "c8", export=10, storages=("ComplexFloatStorage",), aliases=("cfloat",),
        cpp="c10::complex<float>", parts="float32",
    ),
    ScalarType(
        "complex128", "complex", 16, 10, "ComplexDouble", "c16", export=11, storages=("ComplexDoubleStorage",), aliases=("cdouble",),
        cpp="c10::complex<double>", parts="float64",
    ),
    ScalarType("bool", "bool", 1, 11, "Bool", "b1", export=12, storages=("BoolStorage",), caffe2=("BOOL",), cpp="bool"),
    ScalarType(
        "uint8", "integer", 1, 0, "Byte", "u1", export=1, caffe2=("BYTE", "UINT8"), cpp="uint8_t",
        # an untyped storage counts bytes; 1.11 and 1.12 wrote its name with an underscore
        storages=("ByteStorage", "UntypedStorage", "_UntypedStorage"),
    ),
    ScalarType("int8", "integer", 1, 1, "Char", "i1", export=2, storages=("CharStorage",), caffe2=("INT8",), cpp="int8_t"),
    ScalarType("int16", "integer", 2, 2, "Short", "i2", export=3, storages=("ShortStorage",), aliases=("short",), caffe2=("INT16",), cpp="int16_t"),
    ScalarType("int32", "integer", 4, 3, "Int", "i4", export=4, storages=("IntStorage",), aliases=("int",), caffe2=("INT32",), cpp="int"),
    ScalarType("int64", "integer", 8, 4, "Long", "i8", export=5, storages=("LongStorage",), aliases=("long",), caffe2=("INT64",), cpp="int64_t"),
    ScalarType("uint16", "integer", 2, 27, "UInt16", "u2", export=28, caffe2=("UINT16",)),
    ScalarType("uint32", "integer", 4, 28, "UInt32", "u4", export=34),
    ScalarType("uint64", "integer", 8, 29, "UInt64", "u8", export=35),
    # torch keeps one element in one byte
    ScalarType("uint1", "narrow", 1, 30, "UInt1", aliases=("bit",)),
    *(ScalarType(f"uint{width}", "narrow", 1, 29 + width, f"UInt{width}") for width in range(2, 8)),
    *(ScalarType(f"int{width}", "narrow", 1, 36 + width, f"Int{width}") for width in range(1, 8)),
    ScalarType("float8_e4m3fn", "float", 1, 24, "Float8_e4m3fn", ml_dtypes=True, export=29),
    ScalarType("float8_e4m3fnuz", "float", 1, 26, "Float8_e4m3fnuz", ml_dtypes=True, export=31, signed_zero=False),
    ScalarType("float8_e5m2", "float", 1, 23, "Float8_e5m2", ml_dtypes=True, export=30),
    ScalarType("float8_e5m2fnuz", "float", 1, 25, "Float8_e5m2fnuz", ml_dtypes=True, export=32, signed_zero=False),
    ScalarType("float8_e8m0fnu", "float", 1, 44, "Float8_e8m0fnu", ml_dtypes=True, export=33, signed_zero=False),
    ScalarType("float4_e2m1fn_x2", "narrow", 1, 45, "Float4_e2m1fn_x2"),  # two numbers in one byte, which counts as one element
    ScalarType("qint8", "quantized", 1, 12, "QInt8", "i1", storages=("QInt8Storage",)),
    ScalarType("quint8", "quantized", 1, 13, "QUInt8", "u1", storages=("QUInt8Storage",)),
    ScalarType("qint32", "quantized", 4, 14, "QInt32", "i4", storages=("QInt32Storage",)),
    ScalarType("quint4x2", "quantized", 1, 16, "QUInt4x2", storages=("QUInt4x2Storage",), packed=4),
    ScalarType("quint2x4", "quantized", 1, 17, "QUInt2x4", storages=("QUInt2x4Storage",), packed=2),
    ScalarType("bits1x8", "bits", 1, 18, "Bits1x8"),
    ScalarType("bits2x4", "bits", 1, 19, "Bits2x4"),
    ScalarType("bits4x2", "bits", 1, 20, "Bits4x2"),
    ScalarType("bits8", "bits", 1, 21, "Bits8"),
    ScalarType("bits16", "bits", 2, 22, "Bits16", parts="uint16"),
)  # fmt: skip

DTYPES: Final[dict[str, ScalarType]] = {row.name: row for row in _TABLE}
"""All dtypes, keyed by name."""

ELEMENT_SIZES: Final[dict[str, int]] = {row.name: row.size for row in _TABLE}
"""Bytes per element, keyed by dtype."""

PACKED: Final[dict[str, int]] = {row.name: row.packed for row in _TABLE if row.packed}
"""Bits per element, keyed by dtype, if one byte of the storage contains several elements."""

ALIASES: Final[dict[str, str]] = {alias: row.name for row in _TABLE for alias in row.aliases}
"""Dtypes keyed by alias, such as ``torch.float`` for ``torch.float32``."""

STORAGE_CLASSES: Final[dict[str, str]] = {
    **{f"{row.word}Storage": row.name for row in _TABLE if row.word},
    **{name: row.name for row in _TABLE for name in row.storages},
}
"""The dtype of a storage class, keyed by the last part of its name. An untyped storage counts bytes.

Python has the classes in ``storages``; TorchScript names the storage of any dtype after the c10 name of the dtype
(``Pickler::pushStorageOfTensor``), whether such a class exists or not."""

SINCE: Final[dict[str, str]] = {
    "bool": "1.1.0", "qint8": "1.1.0", "bfloat16": "1.2.0", "quint8": "1.2.0", "qint32": "1.2.0", "quint4x2": "1.8.0", "quint2x4": "1.11.0",
    "float8_e4m3fn": "2.1.0", "float8_e5m2": "2.1.0", "float8_e4m3fnuz": "2.2.0", "float8_e5m2fnuz": "2.2.0", "uint16": "2.3.0",
    "uint32": "2.3.0", "uint64": "2.3.0", "float8_e8m0fnu": "2.7.0",
}  # fmt: skip
"""The first minor release whose module ``torch`` has a dtype, according to the surveys; every release has all the others."""

NUMBERED: Final[dict[int, str]] = {row.number: row.name for row in _TABLE if row.number is not None}
"""Dtypes keyed by number in c10::ScalarType."""

CAFFE2: Final[dict[str, str]] = {name: row.name for row in _TABLE for name in row.caffe2}
"""Dtypes keyed by name in caffe2.proto."""

MEASURED: Final = tuple(
    row.name for row in _TABLE if row.kind in {"float", "complex"} and (row.numpy or row.name == "bfloat16")
)  # fmt: skip
"""Dtypes for which the distance between two elements is measured (:mod:`torch_compat.values.compare`), so that a tolerance
can apply."""


def storage_class(module: str, name: str) -> str | None:
    """The dtype of a storage class of any release (``torch.cuda.FloatStorage``: float32); None for anything else.

    Devices have modules of their own (``torch.hpu``), so any module of torch counts.
    """
    return STORAGE_CLASSES.get(name) if module == "torch" or module.startswith("torch.") else None
