"""Pass arrays of the caller into a call of a program, and results out of it.

A program gets copies, never the caller's memory: a tensor can reach its whole storage, and a program must not see the base of an array
that is a view. After the call, even if it raises, changes to a copy are written back, so that in-place operators change the caller's
array as in torch. A result that is an argument or a view of an argument is returned as the caller's array or a view of it; results that
share a storage share memory. A read-only array keeps its values.

Both calls in this process and calls in a separate process (:mod:`torch_compat.readers.isolated`) use this module.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat import arrays
from torch_compat.runtime import dtypes
from torch_compat.runtime.tensor import Tensor, owner
from torch_compat.runtime.values import DictOfClass, ListOfClass, NamedTupleValue, container

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Exchange", "exchanged", "same_bytes"]

Array = np.ndarray[Any, np.dtype[Any]]
SMALL = 1 << 12  # up to this size in bytes, copying is faster than comparing in place


class Exchange:
    """The arrays that a caller passes to a call.

    Attributes:
        given: the caller's NumPy arrays and scalars, without duplicates.
        copies: the copies for the program, in the same order.

    Parameters:
        elsewhere: whether the program runs in another process, which makes the copies; contiguous arrays are then not copied here.
    """

    __slots__ = ("_places", "copies", "elsewhere", "given")

    def __init__(self, *, elsewhere: bool = False) -> None:
        self.given: list[Any] = []
        self.copies: list[Array] = []
        self.elsewhere = elsewhere
        self._places: dict[int, int] = {}

    def take(self, value: Any) -> Any:
        """Convert a value of the caller to a value of the runtime.

        Raises:
            Raised: torch cannot represent an array as a tensor.
            Unsupported: the reference reader has no dtype for an array.
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
        """Take distinct row-major arrays with dtypes that torch has, for a program in another process."""
        self.given = list(arrays)
        self.copies = list(arrays)

    def _place(self, value: Any) -> int:
        result = self._places.get(id(value))
        if result is not None:
            return result
        array = value if isinstance(value, np.ndarray) else np.array(value)
        flat = array.__class__ is np.ndarray and array.flags.c_contiguous
        copy = array if self.elsewhere and flat else np.array(array)
        dtypes.of_numpy(Tensor(copy).array.dtype)
        self._places[id(value)] = len(self.given)
        self.given.append(value)  # keeps the object alive, so that its id is not reused
        self.copies.append(copy)
        return len(self.given) - 1

    def changed(self, place: int) -> bool:
        """Whether a copy differs from the caller's array."""
        given = self.given[place]
        return isinstance(given, np.ndarray) and given.flags.writeable and not same_bytes(given, self.copies[place])

    def settle(self) -> None:
        """Write back the changes of a call in this process."""
        for place, copy in enumerate(self.copies):
            if self.changed(place):
                self.write_back(place, copy)

    def write_back(self, place: int, now: Array) -> None:
        """Overwrite an array of the caller; a read-only array keeps its values.

        Parameters:
            now: the new values, with the same shape and dtype.
        """
        given, copy = self.given[place], self.copies[place]
        if isinstance(given, np.ndarray) and given.flags.writeable:
            given[...] = now
        if copy is not given and copy is not now:
            copy[...] = now

    def give(self, value: Any) -> Any:
        """Convert a result of a call in this process for the caller: NumPy arrays instead of tensors."""
        kind = value.__class__
        if kind is Tensor:
            return self._array(value)
        if kind is list:
            return [self.give(item) for item in value]
        if kind is dict:
            return {key: self.give(item) for key, item in value.items()}
        if kind is tuple:
            return tuple(self.give(item) for item in value)
        if kind is DictOfClass:
            return container(value.type_name, self.give(dict(value)))
        if kind is ListOfClass:
            return container(value.type_name, self.give(list(value)))
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
        """Convert a view of an argument to a view of the caller's array; a copy if that array is not contiguous or not an array.

        Parameters:
            strides: in elements.
            offset: in elements.

        Raises:
            Corrupt: the view extends beyond the argument.
        """
        given, copy = self.given[place], self.copies[place]
        whole = tuple(step // (copy.itemsize or 1) for step in copy.strides)
        if dtype == copy.dtype and tuple(shape) == copy.shape and (tuple(strides) == whole or not copy.size) and not offset:
            return given if isinstance(given, np.ndarray) else copy
        flat = isinstance(given, np.ndarray) and given.flags.c_contiguous
        memory = np.asarray(given) if flat else copy.ravel(order="K")
        return arrays.view(memory, dtype, shape, strides, offset)


def exchanged(run: Callable[[tuple[Any, ...], dict[str, Any]], Any], args: Sequence[Any], keywords: dict[str, Any]) -> Any:
    """Call ``run`` in this process; arguments and results are NumPy arrays."""
    exchange = Exchange()
    given = tuple(exchange.take(arg) for arg in args)
    named = {name: exchange.take(arg) for name, arg in keywords.items()}
    try:
        value = run(given, named)
    finally:
        exchange.settle()
    return exchange.give(value)


def same_bytes(first: Array, second: Array) -> bool:
    """Whether two arrays with the same shape and dtype have equal bytes, including NaN payloads and signs of zeros."""
    if first.nbytes <= SMALL or not first.flags.c_contiguous or not second.flags.c_contiguous:
        return first.tobytes() == second.tobytes()
    width = math.gcd(first.nbytes, 8)
    left, right = (side.reshape(-1).view(np.uint8).view(f"u{width}") for side in (first, second))
    return bool((left == right).all())
