"""Bitwise and, or, xor and not, and shifts, for integers and bools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.runtime.operators._common import (
    BOOL,
    Array,
    broadcast,
    cast,
    common,
    common_1_0,
    fail,
    functional,
    not_implemented,
    words,
    write,
)
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch_compat.runtime.operators._operands import Operand

Pair = tuple[Array, Array]
OWN_TYPE = 1  # the era whose results have the dtype of the first tensor


def _bits(kind: str, function: Any) -> None:
    def compute(x: Array, y: Array) -> Tensor:
        if x.dtype.kind not in "iub":
            raise not_implemented(f"bitwise_{kind}_cpu", x.dtype)
        broadcast(x, y)
        return Tensor(function(x, y))

    for era, (since, operands) in enumerate((("1.0.0", common_1_0), ("1.5.0", common), ("1.10.0", common))):
        both: Callable[[Operand, Operand], Pair] = operands

        def call(self: Operand, other: Operand, both: Callable[[Operand, Operand], Pair] = both, era: int = era) -> Tensor:
            result = compute(*both(self, other))
            return _in_own_type(self, result) if era == OWN_TYPE else result

        def in_place(self: Tensor, other: Operand, both: Callable[[Operand, Operand], Pair] = both) -> Tensor:
            return write(self, compute(*both(self, other)).array)

        functional(f"bitwise_{kind}", inplace=True, since=since, gradient=False)(call)
        functional(f"__{kind}__", since=since, gradient=False)(call)
        operator(f"aten::__i{kind}__", since=since, gradient=False)(in_place)


def _in_own_type(self: Operand, tensor: Tensor) -> Tensor:
    """From 1.5 to 1.9 the result has the dtype of the first tensor, whatever dtype is used for the computation; bool accepts only bool.

    Raises:
        Raised: the dtype of the first tensor is bool and that of the other is not.
    """
    if self.__class__ is not Tensor or self.array.dtype == tensor.array.dtype:
        return tensor
    if self.array.dtype == BOOL:
        raise fail(f"result type {words(tensor.array.dtype)} can't be cast to the desired output type Bool")
    return Tensor(cast(tensor.array, self.array.dtype))


_bits("and", np.bitwise_and)
_bits("or", np.bitwise_or)
_bits("xor", np.bitwise_xor)


@functional("bitwise_not", inplace=True, gradient=False)
def bitwise_not(self: Tensor) -> Tensor:
    """Invert every bit; bools are negated."""
    if self.array.dtype.kind not in "iub":
        raise not_implemented("bitwise_not_cpu", self.array.dtype)
    return Tensor(np.invert(self.array))


# ------------------------------------------------------------------------------------------------------------------- shifts


def _unsigned(array: Array) -> Array:
    return array.view(np.dtype(f"u{array.dtype.itemsize}"))


def _word(array: Array) -> Array:
    """Integers as the processor shifts them, by an amount modulo 32 or 64: integers of one or two bytes are widened to four."""
    return array if array.dtype.itemsize >= 4 else array.astype(np.int32 if array.dtype.kind == "i" else np.uint32)


def _left(x: Array, y: Array, *, checked: bool) -> Array:
    bits = x.dtype.itemsize * 8
    if x.dtype.kind == "f":
        return x * np.power(np.asarray(2, x.dtype), y)
    word = _word(x)
    amount = _unsigned(y.copy()) if y.dtype.kind == "i" else y
    shifted = np.left_shift(word, (amount % (word.dtype.itemsize * 8)).astype(word.dtype)).astype(x.dtype)
    return np.where((y < 0) | (y >= bits), np.zeros_like(x), shifted) if checked else shifted


def _right(x: Array, y: Array, *, checked: bool, arithmetic: bool) -> Array:
    bits = x.dtype.itemsize * 8
    if x.dtype.kind == "f":
        return x / np.power(np.asarray(2, x.dtype), y)
    word = _word(x)
    amount = (_unsigned(y.copy()) if y.dtype.kind == "i" else y) % (word.dtype.itemsize * 8)
    if not arithmetic and x.dtype.kind == "i":
        bare = _unsigned(x.copy())
        word = _word(bare)
        return np.right_shift(word, amount.astype(word.dtype)).astype(bare.dtype).view(x.dtype)
    shifted = np.right_shift(word, amount.astype(word.dtype)).astype(x.dtype)
    most = np.right_shift(x, np.asarray(bits - 1 if x.dtype.kind == "i" else 0, x.dtype))
    beyond = most if x.dtype.kind == "i" else np.zeros_like(x)
    return np.where((y < 0) | (y >= bits), beyond, shifted) if checked else shifted


def _shift(x: Array, y: Array, *, left: bool, era: int) -> Tensor:
    """Eras: 0 up to 1.6 (right shifts are logical), 1 up to 1.11 (floats are accepted), 2 up to 2.0, 3 (too large a shift removes every bit)."""
    side = "l" if left else "r"
    if x.dtype == BOOL or x.dtype.kind == "c" or (era >= 2 and x.dtype.kind not in "iu"):
        raise not_implemented(f"{side}shift_cpu", x.dtype)
    broadcast(x, y)
    if left:
        return Tensor(_left(x, y, checked=era == 3))
    return Tensor(_right(x, y, checked=era == 3, arithmetic=era > 0))


def _shifts(*, left: bool) -> None:
    name = "left" if left else "right"
    eras = [("1.0.0", 0, common_1_0), ("1.5.0", 0, common), ("1.7.0", 1, common), ("1.12.0", 2, common), ("2.1.0", 3, common)]
    for since, era, operands in eras:
        if left and era == 1:
            continue  # only right shifts changed

        def call(self: Operand, other: Operand, era: int = era, both: Callable[[Operand, Operand], Pair] = operands) -> Tensor:
            return _shift(*both(self, other), left=left, era=era)

        def in_place(self: Tensor, other: Operand, era: int = era, both: Callable[[Operand, Operand], Pair] = operands) -> Tensor:
            return write(self, _shift(*both(self, other), left=left, era=era).array)

        functional(f"bitwise_{name}_shift", inplace=True, since=since, gradient=False)(call)
        functional(f"__{name[0]}shift__", since=since, gradient=False)(call)
        operator(f"aten::__i{name[0]}shift__", since=since, gradient=False)(in_place)


_shifts(left=True)
_shifts(left=False)
