"""Storage classes and dtypes of every release: the one table.

A pickle names the class of a storage (``torch.FloatStorage``, ``torch.cuda.HalfStorage``, ``torch.storage.UntypedStorage``);
the class says the dtype, and with it how long an element is. Newer dtypes have no class: they stand as ``torch.uint16`` beside
an untyped storage.
"""

from __future__ import annotations

__all__ = ["ELEMENT_SIZES", "PLAIN_NAMES", "STORAGE_CLASSES", "storage_class"]

ELEMENT_SIZES: dict[str, int] = {
    "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8,
    "complex32": 4, "bcomplex32": 4, "complex64": 8, "complex128": 16,
    "bool": 1, "uint8": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "uint16": 2, "uint32": 4, "uint64": 8,
    # widths below a byte: torch keeps one element in one byte
    "uint1": 1, "uint2": 1, "uint3": 1, "uint4": 1, "uint5": 1, "uint6": 1, "uint7": 1,
    "int1": 1, "int2": 1, "int3": 1, "int4": 1, "int5": 1, "int6": 1, "int7": 1,
    "float8_e4m3fn": 1, "float8_e4m3fnuz": 1, "float8_e5m2": 1, "float8_e5m2fnuz": 1, "float8_e8m0fnu": 1,
    "float4_e2m1fn_x2": 1,  # two elements in one byte, which counts as one
    "qint8": 1, "quint8": 1, "qint32": 4, "quint4x2": 1, "quint2x4": 1,
    "bits1x8": 1, "bits2x4": 1, "bits4x2": 1, "bits8": 1, "bits16": 2,
}  # fmt: skip
"""Bytes per element, by dtype."""

PLAIN_NAMES: dict[str, str] = {
    "half": "float16", "float": "float32", "double": "float64", "chalf": "complex32", "cfloat": "complex64",
    "cdouble": "complex128", "short": "int16", "int": "int32", "long": "int64",
}  # fmt: skip
"""Other names of dtypes, as ``torch.float`` for ``torch.float32``."""

STORAGE_CLASSES: dict[str, str] = {
    "DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
    "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8", "ByteStorage": "uint8",
    "BoolStorage": "bool",
    "ComplexDoubleStorage": "complex128", "ComplexFloatStorage": "complex64",
    "QInt8Storage": "qint8", "QUInt8Storage": "quint8", "QInt32Storage": "qint32",
    "QUInt4x2Storage": "quint4x2", "QUInt2x4Storage": "quint2x4",
    "UntypedStorage": "uint8", "_UntypedStorage": "uint8",  # 1.11 and 1.12 wrote the name with an underscore
}  # fmt: skip
"""The dtype of a storage class, by the last part of its name. An untyped storage counts bytes."""


def storage_class(module: str, name: str) -> str | None:
    """The dtype of a storage class of any release (``torch.cuda.FloatStorage``: float32); None for anything else.

    Devices bring modules of their own (``torch.hpu``), so any module of torch counts.
    """
    return STORAGE_CLASSES.get(name) if module == "torch" or module.startswith("torch.") else None
