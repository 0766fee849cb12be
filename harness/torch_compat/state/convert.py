"""Convert the contents of a pickle, with arrays for its tensors. Shared objects stay shared, and self-references are kept.

Only keys are processed recursively, and the unpickler limits their depth: values may be nested thousands deep. Containers that can be
filled later are created empty; tuples and frozen sets are built from the inside out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from torch_compat.arrays import sized_dtype, view
from torch_compat.errors import Corrupt
from torch_compat.pickles import (
    Deque,
    Described,
    Dict,
    NumpyArray,
    NumpyDtype,
    NumpyScalar,
    PersistentId,
    Size,
    Storage,
    Tensor,
)
from torch_compat.state.numpy_dtypes import numpy_dtype
from torch_compat.state.tensors import Tensors
from torch_compat.state.values import TypedStorage, TypedTensor
from torch_compat.words import count_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch_compat.state.storages import Storages

__all__ = ["Converter"]

LAST_CHARACTER = 0x10FFFF
TUPLES = frozenset({tuple, Size, frozenset, slice})


class Converter:
    """Converts the contents of a pickle into values with arrays.

    Parameters:
        storages: the storages of the archive.
        with_types: whether each tensor and storage carries everything that torch knows about it.
    """

    def __init__(self, storages: Storages, *, with_types: bool) -> None:
        self.storages = storages
        self.with_types = with_types
        self.tensors = Tensors(storages, self.part, self._later)
        self._made: dict[int, Any] = {}  # keyed by the identity of the original, which the pickle's value keeps alive
        self._typed: dict[int, TypedTensor | TypedStorage] = {}
        self._fill: list[Callable[[], None]] = []
        self._makers: dict[type, Callable[[Any], Any]] = {
            Tensor: self._tensor, Storage: self._storage, dict: self._dict, Dict: self._typed_dict, list: self._list,
            Deque: self._deque, set: self._set, Described: self._described, PersistentId: self._persistent,
            NumpyArray: self._numpy_array, NumpyScalar: self._numpy_scalar, NumpyDtype: self._numpy_dtype,
        }  # fmt: skip

    def _later(self, fill: Callable[[], None]) -> None:
        self._fill.append(fill)

    def convert(self, value: Any) -> Any:
        """Convert the whole value.

        Raises:
            Corrupt, Unsupported: a part of it cannot be what it claims to be.
        """
        result = self.part(value)
        while self._fill:
            self._fill.pop()()
        return result

    def part(self, value: Any) -> Any:
        """Convert a part of the value. Containers are filled later."""
        kind = value.__class__
        if kind in TUPLES:
            return self._tuple(value)
        result = self._made.get(id(value))
        if result is None:
            make = self._makers.get(kind)
            if make is None:
                return value
            result = make(value)
            self._made[id(value)] = result
        return result

    # ---------------------------------------------------------------------------------------------------------- containers

    def _tuple(self, value: Any) -> Any:
        """Convert tuples and frozen sets, from the inside out."""
        done = self._made
        stack = [value]
        while stack:
            top = stack[-1]
            if id(top) in done:
                stack.pop()
                continue
            if top.__class__ is frozenset:
                done[id(top)] = frozenset(map(self._key, top))
                continue
            parts = (top.start, top.stop, top.step) if top.__class__ is slice else top
            inner = [part for part in parts if part.__class__ in TUPLES and id(part) not in done]
            if inner:
                stack.extend(inner)
                continue
            results = [done[id(part)] if part.__class__ in TUPLES else self.part(part) for part in parts]
            done[id(top)] = slice(*results) if top.__class__ is slice else top.__class__(results)
        return done[id(value)]

    def _list(self, value: Any) -> list[Any]:
        results: list[Any] = []
        self._later(lambda: results.extend(map(self.part, value)))
        return results

    def _deque(self, value: Deque) -> Deque:
        result = Deque(value.type, value.maxlen)

        def fill() -> None:
            result.extend(map(self.part, value))
            result.state = self.part(value.state)

        self._later(fill)
        return result

    def _dict(self, value: dict[Any, Any]) -> dict[Any, Any]:
        results: dict[Any, Any] = {}
        self._later(lambda: self._pairs(results, value))
        return results

    def _typed_dict(self, value: Dict) -> Dict:
        result = Dict(value.type)

        def fill() -> None:
            self._pairs(result, value)
            result.factory = self.part(value.factory)
            result.state = self.part(value.state)

        self._later(fill)
        return result

    def _pairs(self, element: dict[Any, Any], value: dict[Any, Any]) -> None:
        for key, item in value.items():
            element[self._key(key)] = self.part(item)

    def _set(self, value: set[Any]) -> set[Any]:
        results: set[Any] = set()
        self._later(lambda: results.update(map(self._key, value)))
        return results

    def _key(self, key: Any) -> Any:
        """Convert a key. Arrays cannot be keys, so tensors in keys become typed tensors."""
        kind = key.__class__
        if kind is tuple or kind is Size:
            return kind(map(self._key, key))
        if kind is frozenset:
            return frozenset(map(self._key, key))
        if kind is Tensor:
            return self._typed_tensor(key)
        return self._typed_storage(key) if kind is Storage else key

    def _described(self, value: Described) -> Described:
        described = Described(value.kind, value.target, ())

        def fill() -> None:
            described.target = self.part(value.target)
            described.args = self.part(value.args)
            described.kwargs = self.part(value.kwargs)
            described.state = self.part(value.state)
            described.items = self.part(value.items)
            described.pairs = None if value.pairs is None else [(self._key(key), self.part(item)) for key, item in value.pairs]

        self._later(fill)
        return described

    def _persistent(self, value: PersistentId) -> PersistentId:
        result = PersistentId(None)

        def fill() -> None:
            result.pid = self.part(value.pid)

        self._later(fill)
        return result

    # ------------------------------------------------------------------------------------------------- tensors and storages

    def _tensor(self, tensor: Tensor) -> Any:
        return self._typed_tensor(tensor) if self.with_types else self.tensors.make(tensor)

    def _typed_tensor(self, tensor: Tensor) -> TypedTensor:
        result = self._typed.get(id(tensor))
        if result is None:
            storage = tensor.storage
            result = TypedTensor(
                self.tensors.make(tensor), tensor.dtype, tensor.shape, tensor.strides, tensor.offset, None if storage is None else storage.key,
                tensor.requires_grad, tensor.parameter, tensor.subclass, tensor.device, tensor.layout, tensor.conj, tensor.neg,
            )  # fmt: skip
            self._typed[id(tensor)] = product = result
            if tensor.state is not None:

                def fill() -> None:
                    product.state = self.part(tensor.state)

                self._later(fill)
        assert isinstance(result, TypedTensor)  # noqa: S101 - by its key
        return result

    def _storage(self, storage: Storage) -> Any:
        return self._typed_storage(storage) if self.with_types else self.tensors.storage(storage)

    def _typed_storage(self, storage: Storage) -> TypedStorage:
        result = self._typed.get(id(storage))
        if result is None:
            array = self.tensors.storage(storage)
            result = self._typed[id(storage)] = TypedStorage(
                array, storage.dtype, storage.key, storage.type_name, storage.location
            )
        assert isinstance(result, TypedStorage)  # noqa: S101 - by its key
        return result

    # --------------------------------------------------------------------------------------------------------------- numpy

    def _numpy_array(self, value: NumpyArray) -> Any:
        """Convert a NumPy array to the native byte order, as numpy's own unpickling does; without a known dtype, keep its description."""
        dtype = numpy_dtype(value.dtype)
        where = f"{self.storages.archive.path}, NumPy array"
        count = 1
        for size in value.shape:
            count *= size
        order: Literal["F", "C"] = "F" if value.fortran else "C"
        if value.dtype is not None and value.dtype.code in {"O", "O8"}:
            if value.data.__class__ is not list or len(value.data) != count:
                raise Corrupt(f"does not contain the {count_of(count, 'object')} that it declares", where=where, code="bad-array")
            objects = np.empty(count, object)

            def fill() -> None:
                for index, item in enumerate(value.data):  # one by one: numpy would take a list of lists for rows
                    objects[index] = self.part(item)

            if count:
                self._later(fill)
            try:
                return objects.reshape(value.shape, order=order)
            except ValueError as error:
                raise Corrupt(f"has an impossible shape: {error}", where=where, code="bad-array") from error
        data = _raw(value.data, where)
        if dtype is None or data.__class__ not in {bytes, bytearray}:
            return value
        if len(data) != count * dtype.itemsize:
            message = f"has {count_of(len(data), 'byte')}; {count_of(count, 'element')} of {dtype} need {count * dtype.itemsize}"
            raise Corrupt(message, where=where, code="bad-array")
        array = view(bytes(data), dtype, value.shape, order=order, where=where)
        _check_texts(array, where)
        native = dtype if dtype.fields else dtype.newbyteorder("=")  # numpy leaves record dtypes unchanged
        if native != dtype:
            array = array.astype(native, order="K")
        return array.copy(order="K") if self.storages.mmap is False else array

    def _numpy_scalar(self, value: NumpyScalar) -> Any:
        dtype = numpy_dtype(value.dtype)
        data = _raw(value.data, f"{self.storages.archive.path}, NumPy scalar")
        if dtype is None or data.__class__ not in {bytes, bytearray}:
            return value
        if len(data) != dtype.itemsize:
            where = f"{self.storages.archive.path}, NumPy scalar"
            raise Corrupt(
                f"has {count_of(len(data), 'byte')}; an element of {dtype} needs {dtype.itemsize}", where=where, code="bad-array"
            )
        result = view(bytes(data), dtype, ())
        _check_texts(result, f"{self.storages.archive.path}, NumPy scalar")
        return result[()]

    @staticmethod
    def _numpy_dtype(value: NumpyDtype) -> Any:
        result = numpy_dtype(value)
        return value if result is None else result


def _check_texts(array: np.ndarray[Any, Any], where: str) -> None:
    """Make sure that strings contain valid code points: numpy makes Python strings of any numbers, and Python relies on their validity.

    Raises:
        Corrupt: a number is not a code point.
    """
    for name in array.dtype.names or ():
        _check_texts(array[name], where)
    if array.dtype.kind == "U" and array.size:
        numbers = np.ascontiguousarray(array).reshape(-1).view(sized_dtype(array.dtype.byteorder, "u4"))
        if int(numbers.max()) > LAST_CHARACTER:
            raise Corrupt("contains a string with an invalid code point", where=where, code="bad-text")


def _raw(data: Any, where: str) -> Any:
    """Return data as bytes, which Python 2 may have pickled as text.

    Raises:
        Corrupt: it is text that was never bytes.
    """
    if data.__class__ is not str:
        return data
    try:
        return data.encode("latin-1")
    except UnicodeEncodeError as error:
        raise Corrupt(f"has text instead of bytes: {error.reason}", where=where, code="bad-array") from error
