"""Arrays of the caller, in and out of one call of a program.

A program gets copies, never the memory of the caller: a tensor may reach all of its storage, and what an array is a view of is none of a
program's business. What the call wrote into a copy is written back when it ends, also where it ends in an error, so that a program
which works in place changes the caller's array, as torch does. A result that is an argument, or a view of one, is the caller's
array, or a view of it; results that share a storage share memory. A read-only array keeps its values.

Calls in this process and calls in a process of their own (:mod:`torch_compat.readers.isolated`) both go through here.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat import arrays
from torch_compat.runtime import dtypes
from torch_compat.runtime.tensor import Tensor, owner
from torch_compat.runtime.values import NamedTupleValue

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Exchange", "exchanged", "same_bytes"]

Array = np.ndarray[Any, np.dtype[Any]]
SMALL = 1 << 12  # bytes up to which copying is faster than comparing in place


class Exchange:
    """The arrays that a caller gives to one call.

    Attributes:
        given: arrays and scalars of numpy of the caller, each once.
        copies: what the program gets of each, in the same order.

    Parameters:
        elsewhere: the program runs in another process, whose copies are made there: contiguous arrays stay as they are here.
    """

    __slots__ = ("_places", "copies", "elsewhere", "given")

    def __init__(self, *, elsewhere: bool = False) -> None:
        self.given: list[Any] = []
        self.copies: list[Array] = []
        self.elsewhere = elsewhere
        self._places: dict[int, int] = {}

    def take(self, value: Any) -> Any:
        """A value of the caller as one of the runtime.

        Raises:
            Raised: torch has no tensors like one of the arrays.
            Unsupported: the reference reader has no dtype for one of them.
        """
        if isinstance(value, np.ndarray | np.generic):
            return Tensor(self.copies[self._place(value)])
        if value.__class__ is list:
            return [self.take(item) for item in value]
        if isinstance(value, tuple):
            return tuple(self.take(item) for item in value)
        if isinstance(value, dict):
            return {key: self.take(item) for key, item in value.items()}
        return value

    def take_whole(self, arrays: Sequence[Array]) -> None:
        """Take row-major arrays of dtypes that torch has, each another object, for a program that runs elsewhere."""
        self.given = list(arrays)
        self.copies = list(arrays)

    def _place(self, value: Any) -> int:
        found = self._places.get(id(value))
        if found is not None:
            return found
        array = value if isinstance(value, np.ndarray) else np.array(value)
        flat = array.__class__ is np.ndarray and array.flags.c_contiguous
        copy = array if self.elsewhere and flat else np.array(array)
        dtypes.of_numpy(Tensor(copy).array.dtype)
        self._places[id(value)] = len(self.given)
        self.given.append(value)  # kept, so that no other object gets its id
        self.copies.append(copy)
        return len(self.given) - 1

    def changed(self, place: int) -> bool:
        """Whether a copy is no longer what the caller gave."""
        given = self.given[place]
        return isinstance(given, np.ndarray) and given.flags.writeable and not same_bytes(given, self.copies[place])

    def settle(self) -> None:
        """Write back what a call in this process changed."""
        for place, copy in enumerate(self.copies):
            if self.changed(place):
                self.write_back(place, copy)

    def write_back(self, place: int, now: Array) -> None:
        """Give an array of the caller other values; a read-only one keeps its own.

        Parameters:
            now: of the same shape and dtype.
        """
        given, copy = self.given[place], self.copies[place]
        if isinstance(given, np.ndarray) and given.flags.writeable:
            given[...] = now
        if copy is not given and copy is not now:
            copy[...] = now

    def give(self, value: Any) -> Any:
        """A result of a call in this process as the caller gets it: arrays of numpy instead of tensors."""
        kind = value.__class__
        if kind is Tensor:
            return self._array(value)
        if kind is list:
            return [self.give(item) for item in value]
        if kind is dict:
            return {key: self.give(item) for key, item in value.items()}
        if kind is tuple:
            return tuple(self.give(item) for item in value)
        if isinstance(value, NamedTupleValue):
            return kind(*(self.give(item) for item in value))
        return value

    def _array(self, tensor: Tensor) -> Array:
        array = tensor.array
        memory = owner(array)
        for place, copy in enumerate(self.copies):
            if memory is copy:
                return self.alias(place, array.dtype, array.shape, tensor.strides, tensor.storage_offset)
        return array

    def alias(self, place: int, dtype: np.dtype[Any], shape: Sequence[int], strides: Sequence[int], offset: int) -> Array:
        """A view of an argument as a view of the caller's array; where that one is not contiguous or no array, a copy.

        Parameters:
            strides: in elements.
            offset: in elements.

        Raises:
            Corrupt: the view leaves the argument.
        """
        given, copy = self.given[place], self.copies[place]
        whole = tuple(step // (copy.itemsize or 1) for step in copy.strides)
        if dtype == copy.dtype and tuple(shape) == copy.shape and (tuple(strides) == whole or not copy.size) and not offset:
            return given if isinstance(given, np.ndarray) else copy
        flat = isinstance(given, np.ndarray) and given.flags.c_contiguous
        memory = np.asarray(given) if flat else copy.ravel(order="K")
        return arrays.view(memory, dtype, shape, strides, offset)


def exchanged(run: Callable[[tuple[Any, ...], dict[str, Any]], Any], args: Sequence[Any], keywords: dict[str, Any]) -> Any:
    """Call ``run`` in this process with arrays of numpy in and out."""
    exchange = Exchange()
    given = tuple(exchange.take(arg) for arg in args)
    named = {name: exchange.take(arg) for name, arg in keywords.items()}
    try:
        value = run(given, named)
    finally:
        exchange.settle()
    return exchange.give(value)


def same_bytes(first: Array, second: Array) -> bool:
    """Whether two arrays of one shape and dtype have the same bytes, NaNs and signs of zeros included."""
    if first.nbytes <= SMALL or not first.flags.c_contiguous or not second.flags.c_contiguous:
        return first.tobytes() == second.tobytes()
    width = math.gcd(first.nbytes, 8)
    left, right = (one.reshape(-1).view(np.uint8).view(f"u{width}") for one in (first, second))
    return bool((left == right).all())
