"""Dtypes of torch as dtypes of numpy: which array represents the elements of a storage.

Elements are little-endian unless the archive says otherwise (the record ``byteorder``; in streams and tar archives they always
are, whatever ``sys_info`` says). Numpy has dtypes of either byte order, so byte order requires no copies, except for
ml_dtypes, which are native only.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from torch_compat.values.dtypes import DTYPES

__all__ = ["Array", "array_dtype", "is_raw", "lane"]

Array = np.ndarray[Any, np.dtype[Any]]

PLAIN = {row.name: row.numpy for row in DTYPES.values() if row.numpy}
IN_ML_DTYPES = frozenset(row.name for row in DTYPES.values() if row.ml_dtypes)
# what neither has: the dtype of the bits, and how many of them make up an element
RAW = {
    row.name: (row.parts, row.size // DTYPES[row.parts].size)
    for row in DTYPES.values()
    if row.parts and not row.numpy and not row.ml_dtypes
}

_SIGNS = {"little": "<", "big": ">"}


def is_raw(dtype: str) -> bool:
    """Whether neither numpy nor ml_dtypes has a dtype for these elements, so that only their bits can be shown."""
    return dtype not in PLAIN and dtype not in IN_ML_DTYPES


def lane(dtype: str) -> tuple[str, int]:
    """The dtype of the parts of an element, and their number: ``("float32", 1)``, for complex32 ``("float16", 2)``."""
    return RAW.get(dtype, ("uint8", 1)) if is_raw(dtype) else (dtype, 1)


def array_dtype(dtype: str, byteorder: str) -> np.dtype[Any] | None:
    """The numpy dtype for elements in a byte order; None if there is none, so that the bytes must be swapped first.

    Parameters:
        dtype: a dtype of torch for which :func:`is_raw` is false.
        byteorder: ``little`` or ``big``.
    """
    if dtype in PLAIN:
        return np.dtype(_SIGNS[byteorder] + PLAIN[dtype])
    import ml_dtypes  # noqa: PLC0415 - few files need it

    result = np.dtype(getattr(ml_dtypes, dtype))
    return result if byteorder == sys.byteorder or result.itemsize == 1 else None
