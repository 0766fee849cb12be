"""Padding with a constant or with elements of the tensor; negative widths crop."""

from __future__ import annotations

from typing import Any

import numpy as np

from torch_compat.errors import Unsupported
from torch_compat.runtime.operators._common import Array, checked_scalar, fail, functional, not_implemented
from torch_compat.runtime.operators._products import sized
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor

__all__: list[str] = []


def _widths(array: Array, pad: list[int]) -> list[tuple[int, int]]:
    if len(pad) % 2:
        raise fail("Length of pad must be even but instead it equals " + str(len(pad)))
    if len(pad) > 2 * array.ndim:
        raise fail(
            f"Length of pad should be no more than twice the number of dimensions of the input. Pad length is {len(pad)} while the input has {array.ndim} dimensions."
        )
    widths = [(0, 0)] * array.ndim
    for place in range(len(pad) // 2):
        widths[array.ndim - 1 - place] = (pad[2 * place], pad[2 * place + 1])
    return widths


def _cut(array: Array, widths: list[tuple[int, int]]) -> tuple[Array, list[tuple[int, int]]]:
    """Apply negative widths by cropping; returns the array and the remaining widths."""
    pieces = []
    for size, (before, after) in zip(array.shape, widths, strict=True):
        if size + before + after < 0:
            raise fail(
                f"The input size {size}, plus negative padding {before} and {after} resulted in a negative output size, which is invalid."
            )
        pieces.append(slice(max(-before, 0), size - max(-after, 0)))
    return array[tuple(pieces)], [(max(a, 0), max(b, 0)) for a, b in widths]


@functional("constant_pad_nd")
def constant_pad_nd(self: Tensor, pad: list[int], value: Any = 0) -> Tensor:
    """Pad with a constant."""
    array, widths = _cut(self.array, _widths(self.array, list(pad)))
    if all(pair == (0, 0) for pair in widths):
        return Tensor(array.copy())
    sized(*(size + max(0, sum(pair)) for size, pair in zip(array.shape, widths, strict=True)))
    return Tensor(np.pad(array, widths, constant_values=checked_scalar(value, array.dtype)))


def _padding(mode: str, *, whole: bool = True, count: int = 0, exact: bool = True, every: bool = False) -> Any:
    """Create an operator that pads with elements of the tensor; up to 2.0 integers are refused.

    Parameters:
        count: the required number of widths; 0 if their number determines how many dimensions are padded.
        exact: whether additional widths are refused; else only the first ones are read.
        every: whether every padded dimension must remain nonempty; else at least one of them.
    """

    def compute(self: Tensor, padding: list[int]) -> Tensor:
        array = self.array
        if array.dtype.kind in ("b" if whole else "biu") and mode != "circular":
            raise not_implemented(f"{mode}_padding", array.dtype)
        if count and len(padding) != count and (exact or len(padding) < count):
            if not exact and len(padding) == 1:
                raise Unsupported("padding with fewer widths than required is not supported", code="operator")
            raise fail(f"padding size is expected to be {count}, but got: {len(padding)}")
        padding = padding[:count] if count else padding
        if mode == "circular":
            padding = padding[: len(padding) // 2 * 2]
        widths = _widths(array, list(padding))
        if array.ndim - len(padding) // 2 not in {1, 2}:
            raise fail(
                f"Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now, not {len(padding)} of {array.ndim}"
            )
        if mode == "reflect":
            for size, (before, after) in zip(array.shape, widths, strict=True):
                if (before >= size > 0 and before) or (after >= size > 0 and after):
                    raise fail(
                        f"Argument #4: Padding size should be less than the corresponding input dimension, but got: padding ({before}, {after}) at "
                        f"dimension of size {size}"
                    )
        if mode != "circular":
            return Tensor(_mirrored(array, widths, mode, array.ndim - len(padding) // 2, every=every))
        cut, widths = _cut(array, widths)
        if not whole and array.ndim - len(padding) // 2 != 2:
            raise fail(f"Invalid padding size, expected {2 * (array.ndim - 2)} but got {len(padding)}")
        if any(max(pair) > size for pair, size in zip(widths, cut.shape, strict=True)):
            raise fail("Padding value causes wrapping around more than once.")
        sized(*(size + sum(pair) for size, pair in zip(cut.shape, widths, strict=True)))
        return Tensor(np.pad(cut, widths, mode="wrap"))

    return compute


def _mirrored(array: Array, widths: list[tuple[int, int]], mode: str, first_padded: int, *, every: bool) -> Array:
    """Pad by reflection or with the edge elements; elements that negative widths crop are still reflected.

    Parameters:
        first_padded: the number of the first dimension that is padded.
        every: whether every padded dimension must remain nonempty; else at least one of them.

    Raises:
        Raised: a dimension becomes empty.
        Unsupported: elements out of bounds are read.
    """
    shape = [size + sum(pair) for size, pair in zip(array.shape, widths, strict=True)]
    left = [item >= 1 for item in shape[first_padded:]]
    if not (all(left) if every else any(left)) or min(shape) < 0:
        raise fail(f"input {list(array.shape)} is too small. Calculated output: {shape}")
    sized(*shape)
    for at, (before, after) in enumerate(widths):
        size = array.shape[at]
        if (not before and not after) or not shape[at]:
            array = array if shape[at] else array[(slice(None),) * at + (slice(0, 0),)]
            continue
        places = np.arange(size + before + after)
        first, last = before, size + before - 1
        if mode == "reflect":
            places = np.where(places < first, 2 * first - places, np.where(places > last, 2 * last - places, places))
        else:
            places = np.where(places < first, first, np.where(places > last, last, places))
        places = places - max(before, 0) + max(-before, 0)
        if places.min() < 0 or places.max() >= size:
            raise Unsupported("padding that reads out of bounds is not supported", code="operator")
        array = np.take(array, places, axis=at)
    return array.copy() if all(pair == (0, 0) for pair in widths) else array


EVERY = {"replicate": "2.14.0", "reflect": "2.15.0"}
"""The first releases that require every padded dimension to remain nonempty."""

for _mode, _names in {
    "reflect": ("reflection_pad1d", "reflection_pad2d", "reflection_pad3d"),
    "replicate": ("replication_pad1d", "replication_pad2d", "replication_pad3d"),
    "circular": ("_pad_circular",),
}.items():
    for _dims, _name in enumerate(_names, 1):
        _count = 2 * _dims if _mode != "circular" else 0
        functional(_name)(_padding(_mode, whole=False, count=_count, exact=_mode == "replicate" or _dims == 3))
        functional(_name, since="2.1.0")(_padding(_mode, count=_count))
        if _count > 2:  # a single padded dimension always had to remain nonempty
            functional(_name, since=EVERY[_mode])(_padding(_mode, count=_count, every=True))


@operator("aten::pad", "aten::_pad_enum")
def pad_1_0(self: Tensor, pad: list[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Up to 2.0 integers are padded only with constants."""
    return _pad(self, pad, mode, value, whole=False)


@operator("aten::pad", "aten::_pad_enum", since="2.1.0")
def pad(self: Tensor, pad: list[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Pad a tensor."""
    return _pad(self, pad, mode, value, whole=True)


@operator("aten::pad", "aten::_pad_enum", since=EVERY["replicate"])
def pad_2_14(self: Tensor, pad: list[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """As of 2.14 every dimension must remain nonempty if it is padded with edge elements."""
    return _pad(self, pad, mode, value, whole=True, every=("replicate",))


@operator("aten::pad", "aten::_pad_enum", since=EVERY["reflect"])
def pad_2_15(self: Tensor, pad: list[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """As of 2.15 every dimension must remain nonempty if it is padded by reflection, too."""
    return _pad(self, pad, mode, value, whole=True, every=("replicate", "reflect"))


_MODES = ("reflect", "replicate", "circular", "constant")


def _pad(self: Tensor, pad: list[int], mode: Any, value: float | None, *, whole: bool, every: tuple[str, ...] = ()) -> Tensor:
    if mode.__class__ is int and 0 <= mode % 2**32 < len(_MODES):  # read as a 32-bit enumeration
        mode = _MODES[mode % 2**32]
    if mode == "constant":
        return constant_pad_nd(self, pad, 0 if value is None else value)
    if value:
        raise fail(f'Padding mode "{mode}" doesn\'t take in value argument')
    if mode not in {"reflect", "replicate", "circular"}:
        raise fail(f"Unrecognised padding mode {mode}")
    return _padding(mode, whole=whole, every=mode in every)(self, pad)  # type: ignore[no-any-return]
