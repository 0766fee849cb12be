"""Tensors of the reference reader: an array of numpy, and the few things torch knows beyond it.

Views share memory through numpy: a write in place goes through. A storage is the array that owns the memory; two tensors share
a storage where they have the same owner.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat import arrays
from torch_compat.errors import Corrupt, Raised, Unsupported
from torch_compat.runtime import dtypes
from torch_compat.runtime.limits import meter

if TYPE_CHECKING:
    from torch_compat.runtime.dtypes import Dtype

__all__ = ["OpaqueTensor", "Tensor", "offset_of", "owner", "strided", "strides_of"]

Array = np.ndarray[Any, np.dtype[Any]]
NO_NUMBERS = frozenset("OUSmMV")  # kinds of numpy's dtypes that torch has no dtype for; references to Python objects among them
VOID = np.dtype(
    "V1"
).num  # of records and bytes without a meaning; dtypes of ml_dtypes are of kind V, too, with numbers of their own
SHOWN = 100  # elements, up to which they are all shown
SMALL = 1 << 16  # elements of a tensor that is not worth being counted


def owner(array: Array) -> Array:
    """The array that owns the memory of a view."""
    base = array.base
    while base is not None and isinstance(base, np.ndarray):
        array, base = base, base.base
    return array


def strides_of(array: Array) -> tuple[int, ...]:
    """Strides in elements. An array without elements has strides of 0 in NumPy since 2.4; torch states those of a contiguous tensor."""
    if not array.size and not any(array.strides):
        return arrays.contiguous_strides(array.shape)
    size = array.itemsize
    return tuple(step // size for step in array.strides)


def offset_of(array: Array) -> int:
    """Where an array starts in the memory that it is a view of, in elements."""
    base = owner(array)
    if base is array:
        return 0
    return int(array.ctypes.data - base.ctypes.data) // array.itemsize


def dense(array: Array) -> bool:
    """Whether the elements lie in memory without holes, in any order of the dimensions, and none of them twice."""
    if array.flags.c_contiguous or array.flags.f_contiguous:
        return True
    step = array.itemsize
    for stride, size in sorted((stride, size) for stride, size in zip(array.strides, array.shape, strict=True) if size != 1):
        if stride != step:
            return False
        step *= size
    return True


def strided(array: Array, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Array:
    """A view of the storage of an array; strides and offset, which counts from the start of the storage, in elements.

    Raises:
        Raised: it would leave the storage.
    """
    base = owner(array)
    count = math.prod(shape)
    if count > meter.limits.repeated and count * array.itemsize > base.nbytes:
        meter.too_large(count)
    if not base.flags.c_contiguous:
        base = base.ravel(order="K")  # the same memory in its own order, as nothing owns memory with holes
    try:
        return arrays.view(base, array.dtype, shape, strides, offset)
    except Corrupt as error:
        raise Raised(error.message, code="RuntimeError") from error


class Tensor:
    """A tensor with strides.

    Attributes:
        array: its elements; always an array, also where it has no dimensions. What writes in place writes into this array
            (``tensor.array[...] = x``); what gives the tensor other memory (``resize_``, ``set_``) puts another array here.
        requires_grad: as torch's. What an operator makes of tensors that require gradients requires them, too: the registry
            does that for every operator that does not say ``gradient=False``.
        is_parameter: whether it stands among the parameters of a module.
        is_leaf: whether it was given; what is computed from tensors that require gradients is no leaf.
        of_leaf: whether it is a view of a tensor that was given and requires gradients.
        of_several: the operator that made it as one view of several, of a tensor that requires gradients; else nothing.
        is_detached: whether it shares memory with other tensors, and no gradients: it came of ``detach`` or ``data``.
        root: what it is a view of where gradients are concerned, by identity. Tensors of an archive that share a storage are no views of one another, so
            each of them is a root; None stands for the storage.
    """

    __slots__ = ("array", "is_detached", "is_leaf", "is_parameter", "of_leaf", "of_several", "requires_grad", "root")

    def __init__(self, array: Any, requires_grad: bool = False, is_parameter: bool = False) -> None:
        if array.__class__ is not np.ndarray:
            array = np.asarray(array)
        self.array: Array = array
        dtype, size = array.dtype, array.size
        if dtype.kind in NO_NUMBERS and (dtype.kind != "V" or dtype.num == VOID):
            raise Raised(f"torch has no tensors of {dtype}", code="RuntimeError")
        if size > SMALL:
            meter.tensor(array)
        elif not size and math.prod(one or 1 for one in array.shape) > meter.limits.elements:
            meter.too_large(0)  # nothing, by the billion: loops over its other dimensions would not end
        self.requires_grad = requires_grad
        self.is_parameter = is_parameter
        self.is_leaf = True
        self.is_detached = False
        self.of_leaf = False
        self.of_several = ""
        self.root: object | None = None

    @property
    def dtype(self) -> Dtype:
        """Its dtype."""
        return dtypes.of_numpy(self.array.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        found: tuple[int, ...] = self.array.shape
        return found

    @property
    def ndim(self) -> int:
        """The number of its dimensions."""
        return self.array.ndim

    @property
    def numel(self) -> int:
        """The number of its elements."""
        return self.array.size

    @property
    def strides(self) -> tuple[int, ...]:
        """Its strides, in elements."""
        return strides_of(self.array)

    @property
    def storage(self) -> Array:
        """The array that owns its memory: its identity is that of torch's storage."""
        return owner(self.array)

    @property
    def storage_offset(self) -> int:
        """Where it starts in its storage, in elements."""
        return offset_of(self.array)

    def as_strided(self, shape: tuple[int, ...], strides: tuple[int, ...], offset: int | None = None) -> Tensor:
        """Another view of the same storage; strides and offset in elements.

        Raises:
            Raised: it would leave the storage.
        """
        at = self.storage_offset if offset is None else offset
        made = Tensor(strided(self.array, shape, strides, at), requires_grad=self.requires_grad)
        made.is_detached, made.root = self.is_detached, self.root
        return made

    def item(self) -> Any:
        """The only element as a Python scalar."""
        value = self.array.item()
        return value if value.__class__ in {bool, int, float, complex} else float(value)  # those of ml_dtypes are their own

    def __repr__(self) -> str:
        if self.array.size > SHOWN:
            return f"tensor(of shape {self.shape}, dtype={self.dtype})"
        return f"tensor({self.array.tolist()!r}, dtype={self.dtype})"


class OpaqueTensor:
    """A sparse, nested or quantized tensor, or one of a dtype that NumPy lacks: carried about, not computed with.

    Attributes:
        layout: as ``torch.sparse_coo``; ``torch.strided`` for quantized ones.
        dtype: its dtype.
        shape: its shape.
        parts: what it consists of; of strided ones see :mod:`torch_compat.runtime.opaque`.
        requires_grad: as torch's.
    """

    __slots__ = ("dtype", "layout", "parts", "requires_grad", "shape")

    def __init__(self, layout: str, dtype: Dtype, shape: tuple[int, ...], parts: dict[str, Any]) -> None:
        self.layout = layout
        self.dtype = dtype
        self.shape = shape
        self.parts = parts
        self.requires_grad = False

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        if other is self:
            return True
        raise Unsupported(
            f"the reference reader cannot compare tensors of dtype torch.{self.dtype.name} whose values are unknown", code="value"
        )

    def __bool__(self) -> bool:
        raise Unsupported(
            f"the reference reader cannot read a tensor of torch.{self.dtype.name} whose values are unknown", code="value"
        )
