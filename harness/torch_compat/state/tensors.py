"""Tensors of a pickle as arrays: zero-copy views of their storages, with torch's strides.

Copies are made only where torch is lazy: a conjugate or negative view becomes the values that torch shows, since numpy
has no such views. Such an array does not share memory with the tensor that it is a view of.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.arrays import contiguous_strides, view
from torch_compat.errors import Corrupt, Unsupported
from torch_compat.pickles import NumpyArray, Tensor
from torch_compat.state.dtypes import array_dtype, is_raw, lane
from torch_compat.state.values import (
    Absent,
    CompressedTensor,
    NestedTensor,
    QuantizedTensor,
    RawTensor,
    SparseTensor,
    SubclassTensor,
)
from torch_compat.values.dtypes import DTYPES, ELEMENT_SIZES, PACKED
from torch_compat.words import count_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch_compat.pickles import Storage
    from torch_compat.state.dtypes import Array
    from torch_compat.state.storages import Storages

__all__ = ["Tensors"]

COMPLEX = frozenset(row.name for row in DTYPES.values() if row.kind == "complex")
SIGN_BITS = COMPLEX | {row.name for row in DTYPES.values() if row.kind == "float" and row.signed_zero}
COMPRESSED = {
    "sparse_csr": ("crow_indices", "col_indices"), "sparse_bsr": ("crow_indices", "col_indices"),
    "sparse_csc": ("ccol_indices", "row_indices"), "sparse_bsc": ("ccol_indices", "row_indices"),
}  # fmt: skip


class Tensors:
    """Converts tensors to arrays, each once.

    Parameters:
        storages: the storages of the archive.
        part: converts any other value that a tensor carries (attributes, NumPy arrays).
        later: registers a function to call when all surrounding objects have been made.
    """

    def __init__(self, storages: Storages, part: Callable[[Any], Any], later: Callable[[Callable[[], None]], None]) -> None:
        self.storages = storages
        self.part = part
        self.later = later
        self._copies: dict[tuple[Any, ...], Array] = {}  # of storages whose conjugate or negative was computed

    # ------------------------------------------------------------------------------------------------------------ storages

    def storage(self, storage: Storage) -> Array | RawTensor | Absent:
        """A storage as a one-dimensional array."""
        why = self.storages.absent(storage)
        if why is not None:
            return Absent(storage.dtype, (storage.numel,), (1,), why)
        return self._view(storage, storage.dtype, (storage.numel,), (1,), 0)

    # ------------------------------------------------------------------------------------------------------------- tensors

    def make(self, tensor: Tensor) -> Any:
        """Convert a tensor to an array, or to a class of :mod:`torch_compat.state.values`.

        Raises:
            Corrupt: it reaches beyond its storage, or its parts do not fit together.
            Unsupported: numpy cannot represent it.
        """
        storage = tensor.storage
        if storage is None:
            return self._of_parts(tensor)
        if tensor.quantizer is not None:
            return self._quantized(tensor, storage, tensor.quantizer)
        why = self.storages.absent(storage)
        if why is not None:
            self._check(tensor, storage)
            return Absent(tensor.dtype, tensor.shape, tensor.strides, why)
        return self._strided(tensor, storage)

    def _strided(self, tensor: Tensor, storage: Storage) -> Array | RawTensor:
        self._check(tensor, storage)
        strides = tensor.strides or ()
        if tensor.conj or tensor.neg:
            return self._resolved(tensor, storage, strides)
        return self._view(storage, tensor.dtype, tensor.shape, strides, tensor.offset)

    def _check(self, tensor: Tensor, storage: Storage) -> None:
        """Make sure that a tensor lies within its storage, according to the pickle."""
        if any(stride < 0 for stride in tensor.strides or ()):
            message = (
                f"is viewed by a tensor with strides {_short(tensor.strides or ())}; torch does not support negative strides"
            )
            raise Corrupt(message, where=self.storages.where(storage.key), code="bad-tensor")
        if tensor.numel and not tensor.fits:
            first, end = tensor.span
            message = f"has {count_of(storage.nbytes, 'byte')}; a tensor of {tensor.dtype} {_short(tensor.shape)} needs bytes {first} to {end}"
            raise Corrupt(message, where=self.storages.where(storage.key), code="outside-storage")

    def _view(
        self, storage: Storage, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...], offset: int
    ) -> Array | RawTensor:
        kind, lanes = lane(dtype)
        data, result = self.storages.in_order(storage, kind)
        array = self._array(storage, data, result, _with_lanes(shape, lanes), _lane_strides(strides, lanes), offset * lanes)
        return RawTensor(dtype, array) if is_raw(dtype) else array

    def _array(
        self, storage: Storage, data: Array, dtype: np.dtype[Any], shape: tuple[int, ...], strides: tuple[int, ...], offset: int
    ) -> Array:
        """An array over bytes, with shape, strides and offset in elements."""
        return view(data, dtype, shape, strides, offset, where=self.storages.where(storage.key))

    def _resolved(self, tensor: Tensor, storage: Storage, strides: tuple[int, ...]) -> Array | RawTensor:
        """The values of a conjugate or negative view, with its own strides, over a copy of its storage that is made once."""
        if self.storages.mmap:
            kind = "conjugate" if tensor.conj else "negative"
            raise self.storages.needs_copy(storage.key, f"a {kind} view of it must be calculated")
        dtype = tensor.dtype
        kind, lanes = lane(dtype)
        data, result = self.storages.in_order(storage, kind)
        if result.kind == "b":
            message = "is viewed by a bool tensor that is marked as negative"
            raise Corrupt(message, where=self.storages.where(storage.key), code="bad-tensor")
        key = ((storage.root or storage).key, storage.offset, storage.nbytes, dtype, tensor.conj, tensor.neg)
        copy = self._copies.get(key)
        if copy is None:
            copy = self._copies[key] = data.copy()
            size = result.itemsize * lanes
            numbers = copy[: len(copy) - len(copy) % size].view(result)
            _resolve(numbers, kind, lanes, conj=tensor.conj and dtype in COMPLEX, neg=tensor.neg)
            copy.flags.writeable = self.storages.mmap is False
        shape = _with_lanes(tensor.shape, lanes)
        array = self._array(storage, copy, result, shape, _lane_strides(strides, lanes), tensor.offset * lanes)
        return RawTensor(dtype, array) if is_raw(dtype) else array

    # ------------------------------------------------------------------------------------------------------- unusual ones

    def _quantized(self, tensor: Tensor, storage: Storage, quantizer: tuple[Any, ...]) -> QuantizedTensor:
        numbers: Array | Absent
        bits = PACKED.get(tensor.dtype)
        why = self.storages.absent(storage)
        if bits is not None:
            numbers = self._packed(tensor, storage, bits) if why is None else Absent("uint8", (storage.nbytes,), (1,), why)
        elif why is not None:
            numbers = Absent(tensor.dtype, tensor.shape, tensor.strides, why)
        else:
            result = self._strided(tensor, storage)
            assert isinstance(result, np.ndarray)  # noqa: S101 - numpy has the dtypes of all others
            numbers = result
        scheme = str(quantizer[0])
        if len(quantizer) == 3 and {type(quantizer[1]), type(quantizer[2])} <= {int, float}:
            return QuantizedTensor(tensor.dtype, tensor.shape, numbers, scheme, quantizer[1], quantizer[2])
        if len(quantizer) != 4:
            message = f"is viewed by a quantized tensor with {count_of(len(quantizer), 'parameter')}; expected 3 (numbers) or 4"
            raise Corrupt(message, where=self.storages.where(storage.key), code="bad-tensor")
        scales, zero_points = (self._channels(storage, item) for item in quantizer[1:3])
        if isinstance(quantizer[2], Tensor) and quantizer[2].dtype.startswith(
            "float"
        ):  # torch distinguishes the schemes only by this
            scheme = "per_channel_affine_float_qparams"
        return QuantizedTensor(tensor.dtype, tensor.shape, numbers, scheme, scales, zero_points, quantizer[3])

    def _channels(self, storage: Storage, tensor: Any) -> Any:
        """Numbers for each channel: a tensor, or a list in 1.3 and 1.4."""
        if isinstance(tensor, Tensor) and tensor.storage is not None and tensor.quantizer is None:
            return self.part(tensor)
        kinds = {type(item) for item in tensor} if isinstance(tensor, list) else set()
        if kinds == {float}:
            return np.array(tensor, np.float64)
        if kinds == {int} and all(-(1 << 63) <= item < 1 << 63 for item in tensor):
            return np.array(tensor, np.int64)
        message = "is viewed by a quantized tensor whose scales and zero points are neither plain tensors nor numbers"
        raise Corrupt(message, where=self.storages.where(storage.key), code="bad-tensor")

    def _packed(self, tensor: Tensor, storage: Storage, bits: int) -> Array:
        """The bytes of elements smaller than a byte, of which only torch's packed kernels can make views."""
        length = -(-tensor.numel * bits // 8)
        contiguous = tensor.strides == contiguous_strides(tensor.shape)
        if tensor.offset or not contiguous:
            message = f"is viewed by a part of a {tensor.dtype} tensor, whose elements are not whole bytes"
            raise Unsupported(message, where=self.storages.where(storage.key), code="packed-view")
        if length > storage.nbytes:
            message = f"has {count_of(storage.nbytes, 'byte')}; a tensor of {tensor.dtype} {_short(tensor.shape)} needs {length}"
            raise Corrupt(message, where=self.storages.where(storage.key), code="outside-storage")
        return self.storages.bytes_of(storage)[:length]

    def _of_parts(self, tensor: Tensor) -> Any:
        parts = tensor.parts
        if tensor.layout == "sparse_coo" and parts is not None:
            return self._sparse(tensor, parts)
        if tensor.layout in COMPRESSED and parts is not None:
            compressed, plain = (self._plain_part(tensor, parts, name) for name in COMPRESSED[tensor.layout])
            values = self._plain_part(tensor, parts, "values")
            return CompressedTensor(tensor.layout, tensor.dtype, tensor.shape, compressed, plain, values)
        if tensor.layout == "nested" and parts is not None:
            return self._nested(tensor, parts)
        if parts is not None and "data" in parts:
            return self._device_tensor(tensor, parts["data"])
        if tensor.subclass is not None:
            result = SubclassTensor(tensor.subclass, tensor.dtype, tensor.shape)

            def fill() -> None:
                result.state = self.part(tensor.state)

            self.later(fill)
            return result
        if tensor.device == "meta":
            return Absent(tensor.dtype, tensor.shape, tensor.strides, "it was on the meta device, which stores no data")
        raise Unsupported(f"has a tensor of layout {tensor.layout}", where=self.storages.archive.path, code="layout")

    def _plain_part(self, tensor: Tensor, parts: dict[str, Any], name: str) -> Any:
        """Convert a part of a tensor that must itself be a tensor with a storage."""
        result = parts.get(name)
        if not isinstance(result, Tensor) or result.storage is None or result.quantizer is not None:
            raise self._bad(tensor, f"with invalid {name}, expected a plain tensor")
        return self.part(result)

    def _bad(self, tensor: Tensor, what: str) -> Corrupt:
        message = f"has a {tensor.layout} tensor of shape {_short(tensor.shape)}, {what}"
        return Corrupt(message, where=self.storages.archive.path, code="bad-tensor")

    def _sparse(self, tensor: Tensor, parts: dict[str, Any]) -> SparseTensor:
        indices, values = (self._plain_part(tensor, parts, name) for name in ("indices", "values"))
        sparse = parts["indices"].shape
        if len(sparse) != 2 or sparse[1:] != parts["values"].shape[:1] or sparse[0] > len(tensor.shape):
            message = f"with indices of shape {_short(sparse)} for values of shape {_short(parts['values'].shape)}"
            raise self._bad(tensor, message)
        coalesced = parts.get("coalesced")
        return SparseTensor(tensor.dtype, tensor.shape, indices, values, coalesced if isinstance(coalesced, bool) else None)

    def _nested(self, tensor: Tensor, parts: dict[str, Any]) -> NestedTensor:
        """Cut the tensors out of one buffer, using sizes, strides and offsets that are also tensors."""
        buffer = parts["buffer"]
        self._plain_part(tensor, parts, "buffer")
        numbers = {name: self.part_numbers(tensor, parts, name) for name in ("sizes", "strides", "offsets")}
        if isinstance(numbers["sizes"], Absent):
            return NestedTensor(tensor.dtype, (Absent(tensor.dtype, (), None, numbers["sizes"].why),))
        sizes, strides, offsets = (numbers[name].tolist() for name in ("sizes", "strides", "offsets"))
        if not len(sizes) == len(strides) == len(offsets):
            raise self._bad(
                tensor,
                f"with {count_of(len(sizes), 'tensor')}, {count_of(len(strides), 'stride list')} and {count_of(len(offsets), 'offset')}",
            )
        results = []
        for shape, steps, offset in zip(sizes, strides, offsets, strict=True):
            if not isinstance(shape, list) or not isinstance(steps, list) or not isinstance(offset, int):
                raise self._bad(tensor, "whose sizes and strides are not lists of integers, or whose offsets are not integers")
            if len(shape) != len(steps) or min((*shape, *steps, offset), default=0) < 0:
                raise self._bad(
                    tensor, f"with an invalid part of shape {_short(tuple(shape))} and strides {_short(tuple(steps))}"
                )
            item = Tensor(
                buffer.storage, buffer.dtype, tuple(shape), tuple(steps), buffer.offset + offset, requires_grad=False,
                device=buffer.device, rebuilt_by=buffer.rebuilt_by, conj=buffer.conj, neg=buffer.neg,
            )  # fmt: skip
            results.append(self.make(item))
        return NestedTensor(tensor.dtype, tuple(results))

    def part_numbers(self, tensor: Tensor, parts: dict[str, Any], name: str) -> Any:
        """Convert a part that holds integers to an array; Absent if it was skipped."""
        result = self._plain_part(tensor, parts, name)
        product = self.make(parts[name])
        if isinstance(product, Absent):
            return product
        if not isinstance(product, np.ndarray) or product.dtype.kind != "i":
            raise self._bad(tensor, f"whose {name} are not integers, but {type(result).__name__}")
        if parts[name].storage.nbytes < product.nbytes:  # so that a row of zeros for strides cannot make millions of lists
            raise self._bad(tensor, f"whose {name} have more elements than their storage")
        return product

    def _device_tensor(self, tensor: Tensor, data: Any) -> Any:
        """Convert a device tensor that was saved as a NumPy array or a CPU tensor, possibly of a wider dtype."""
        if isinstance(data, Tensor):
            if data.storage is None or data.numel * ELEMENT_SIZES.get(data.dtype, 1) > data.storage.nbytes:
                raise self._bad(tensor, "whose data is not a plain tensor")
            array = self.make(data)
        elif isinstance(data, NumpyArray):
            array = self.part(data)
        else:
            raise self._bad(tensor, "whose data is neither a tensor nor an array")
        if not isinstance(array, np.ndarray) or is_raw(tensor.dtype):
            return array
        wanted = array_dtype(tensor.dtype, sys.byteorder)
        if wanted is None or array.dtype == wanted:
            return array
        try:
            return array.astype(wanted)
        except (TypeError, ValueError) as error:
            raise self._bad(tensor, f"whose data of dtype {array.dtype} cannot be converted to {tensor.dtype}") from error


def _resolve(numbers: Array, dtype: str, lanes: int, *, conj: bool, neg: bool) -> None:
    """Replace numbers with their conjugates, or negatives, or both, in place."""
    if lanes == 2:  # the parts of a complex number are separate elements
        real, imaginary = numbers[0::2], numbers[1::2]
    elif numbers.dtype.kind == "c":
        real, imaginary = numbers.real, numbers.imag
    else:
        real, imaginary = numbers, numbers[:0]
    if neg:
        _negate(real, dtype)
    if neg is not conj:
        _negate(imaginary, dtype)


def _negate(numbers: Array, dtype: str) -> None:
    """Negate in place: flip the sign bit if there is one, which also negates zeros; a NaN keeps its other bits."""
    if dtype not in SIGN_BITS and numbers.dtype.kind != "f":
        np.negative(numbers, out=numbers)
        return
    size = numbers.dtype.itemsize
    bits = numbers.view(f"{numbers.dtype.byteorder if numbers.dtype.byteorder in '<>' else '='}u{size}")
    np.bitwise_xor(bits, bits.dtype.type(1 << (8 * size - 1)), out=bits)


def _with_lanes(shape: tuple[int, ...], lanes: int) -> tuple[int, ...]:
    return shape if lanes == 1 else (*shape, lanes)


def _lane_strides(strides: tuple[int, ...], lanes: int) -> tuple[int, ...]:
    return strides if lanes == 1 else (*(stride * lanes for stride in strides), 1)


def _short(numbers: tuple[int, ...]) -> str:
    return "(" + ", ".join(map(str, numbers[:8])) + (", ...)" if numbers[8:] else ",)" if len(numbers) == 1 else ")")
