"""Calls of quantized operators with numbers that follow from a formula, so that releases and the reader get the same ones.

A case is a list of calls ``(name, operator, arguments)``; an argument that is a :class:`Ref` is the result of an earlier call.
"""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

import numpy as np

from torch_compat.releases.release import Release
from torch_compat.runtime import dtypes
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import OpaqueTensor, Tensor

Array = np.ndarray[Any, Any]
STRIDED = "torch.strided"
KINDS = {"quint8": np.uint8, "qint8": np.int8, "qint32": np.int32}


class Ref(NamedTuple):
    """The result of an earlier call."""

    name: str


def integers(shape: tuple[int, ...], start: int, least: int, most: int) -> Array:
    numbers = np.arange(int(np.prod(shape)), dtype=np.int64) + start
    return (least + (numbers * 7919 + numbers * numbers * 31) % 1009 % (most - least + 1)).reshape(shape)


def floats(*shape: int, start: int = 1, scale: float = 1.0) -> Tensor:
    return Tensor(((integers(shape, start, 0, 1008) / 1009 - 0.5) * scale).astype(np.float32))


def quantized(*shape: int, start: int = 1, dtype: str = "quint8", scale: float = 0.05, zero: int = 7, least: int | None = None,
              most: int | None = None, last: bool = False) -> OpaqueTensor:  # fmt: skip
    low, high = {"quint8": (0, 255), "qint8": (-128, 127), "qint32": (-300, 300)}[dtype]
    elements = integers(shape, start, low if least is None else least, high if most is None else most).astype(KINDS[dtype])
    if last:
        elements = np.moveaxis(np.ascontiguousarray(np.moveaxis(elements, 1, -1)), -1, 1)
    parts = {"elements": elements, "scheme": "per_tensor_affine", "scale": scale, "zero_point": zero}
    return OpaqueTensor(STRIDED, dtypes.DTYPES[dtype], shape, parts)


def channels(*shape: int, start: int = 1, axis: int = 0, zeros: bool = False) -> OpaqueTensor:
    """A weight with a scale for each channel, that float32 can represent."""
    count = shape[axis]
    scales = (0.01 + np.arange(count) * 0.003).astype(np.float32).astype(np.float64)
    zero_points = np.arange(count) % 5 - 2 if zeros else np.zeros(count, np.int64)
    parts = {
        "elements": integers(shape, start, -128, 127).astype(np.int8), "scheme": "per_channel_affine", "scales": Tensor(scales),
        "zero_points": Tensor(zero_points.astype(np.int64)), "axis": axis,
    }  # fmt: skip
    return OpaqueTensor(STRIDED, dtypes.DTYPES["qint8"], shape, parts)


def digest(value: Any) -> str:
    """The CRC-32 of the elements of a result in row-major order, with the scale and zero point of a quantized one."""
    outcome = 0
    for item in value if isinstance(value, (tuple, list)) else (value,):
        if isinstance(item, OpaqueTensor):
            outcome = zlib.crc32(np.ascontiguousarray(item.parts["elements"]).tobytes(), outcome)
            outcome = zlib.crc32(np.array([item.parts["scale"], item.parts["zero_point"]], np.float64).tobytes(), outcome)
        else:
            outcome = zlib.crc32(np.ascontiguousarray(item.array).tobytes(), outcome)
    return f"{outcome:08x}"


def perform(calls: list[tuple[str, str, list[Any]]], release: str) -> Any:
    """The result of the last call at a horizon."""
    known: dict[str, Any] = {}

    def given(value: Any) -> Any:
        if isinstance(value, Ref):
            return known[value.name]
        return [given(item) for item in value] if value.__class__ is list else value

    result = None
    with np.errstate(all="ignore"):
        for name, operator, args in calls:
            result = known[name] = resolve(operator, Release(release))(*map(given, args))
    return result
