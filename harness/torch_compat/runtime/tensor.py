"""Tensors of the reference reader: a NumPy array with the additional properties of a torch tensor.

Views share memory through NumPy, so in-place writes are visible through them. A storage is the array that owns the memory; two tensors
share a storage if their arrays have the same owner.
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
NO_NUMBERS = frozenset("OUSmMV")  # kinds of NumPy dtypes that torch has no dtype for, including references to Python objects
VOID = np.dtype("V1").num  # the number of structured and void dtypes; dtypes of ml_dtypes have kind V as well, but other numbers
SHOWN = 100  # the repr shows all elements up to this number
SMALL = 1 << 16  # tensors with fewer elements are not charged


def owner(array: Array) -> Array:
    """The array that owns the memory of a view."""
    base = array.base
    while base is not None and isinstance(base, np.ndarray):
        array, base = base, base.base
    return array


def strides_of(array: Array) -> tuple[int, ...]:
    """Strides in elements. Empty arrays have strides of 0 in NumPy 2.4 and newer; torch has those of a contiguous tensor."""
    if not array.size and not any(array.strides):
        return arrays.contiguous_strides(array.shape)
    size = array.itemsize
    return tuple(step // size for step in array.strides)


def offset_of(array: Array) -> int:
    """The offset of an array in the memory of its owner, in elements."""
    base = owner(array)
    if base is array:
        return 0
    return int(array.ctypes.data - base.ctypes.data) // array.itemsize


def dense(array: Array) -> bool:
    """Whether the elements are in memory without holes and without overlap, in any order of the dimensions."""
    if array.flags.c_contiguous or array.flags.f_contiguous:
        return True
    step = array.itemsize
    for stride, size in sorted((stride, size) for stride, size in zip(array.strides, array.shape, strict=True) if size != 1):
        if stride != step:
            return False
        step *= size
    return True


def strided(array: Array, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Array:
    """A view of the storage of an array; strides and offset (from the start of the storage) in elements.

    Raises:
        Raised: the view would extend beyond the storage.
    """
    base = owner(array)
    count = math.prod(shape)
    if count > meter.limits.repeated and count * array.itemsize > base.nbytes:
        meter.too_large(count)
    if not base.flags.c_contiguous:
        base = base.ravel(order="K")  # the same memory in memory order, since an owner has no holes
    try:
        return arrays.view(base, array.dtype, shape, strides, offset)
    except Corrupt as error:
        raise Raised(error.message, code="RuntimeError") from error


class Tensor:
    """A strided tensor.

    Attributes:
        array: the elements; always an array, even with zero dimensions. In-place operators write into this array
            (``tensor.array[...] = x``); operators that change the memory (``resize_``, ``set_``) replace it.
        requires_grad: as in torch. Results of operators on tensors that require gradients require gradients as well: the registry
            sets this for every operator without ``gradient=False``.
        is_parameter: whether it is a parameter of a module.
        is_leaf: whether it was not computed; results computed from tensors that require gradients are not leaves.
        of_leaf: whether it is a view of a leaf that requires gradients.
        of_several: the operator that returned it as one of several views of a tensor that requires gradients; otherwise empty.
        is_detached: whether it shares memory but not gradients with other tensors, as a result of ``detach`` or ``data``.
        root: the base of the view for autograd, by identity. Tensors of an archive that share a storage are not views of each other, so
            each of them is a root; None stands for the storage.
        mirrors: the memory that torch has of a conjugate view; its elements are kept here apart from that.
    """

    __slots__ = ("array", "is_detached", "is_leaf", "is_parameter", "mirrors", "of_leaf", "of_several", "requires_grad", "root")

    def __init__(self, array: Any, requires_grad: bool = False, is_parameter: bool = False) -> None:
        if array.__class__ is not np.ndarray:
            array = np.asarray(array)
        self.array: Array = array
        dtype, size = array.dtype, array.size
        if dtype.kind in NO_NUMBERS and (dtype.kind != "V" or dtype.num == VOID):
            raise Raised(f"torch has no tensors of {dtype}", code="RuntimeError")
        if size > SMALL:
            meter.tensor(array)
        elif not size and math.prod(entry or 1 for entry in array.shape) > meter.limits.elements:
            meter.too_large(0)  # empty, but with billions of rows: loops over the other dimensions would not end
        self.requires_grad = requires_grad
        self.is_parameter = is_parameter
        self.is_leaf = True
        self.is_detached = False
        self.of_leaf = False
        self.of_several = ""
        self.root: object | None = None
        self.mirrors: Array | None = None

    @property
    def dtype(self) -> Dtype:
        """The dtype."""
        return dtypes.of_numpy(self.array.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
        results: tuple[int, ...] = self.array.shape
        return results

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.array.ndim

    @property
    def numel(self) -> int:
        """The number of elements."""
        return self.array.size

    @property
    def strides(self) -> tuple[int, ...]:
        """The strides in elements."""
        return strides_of(self.array)

    @property
    def storage(self) -> Array:
        """The array that owns the memory; its identity stands for that of torch's storage."""
        return owner(self.array)

    @property
    def storage_offset(self) -> int:
        """The offset in the storage, in elements."""
        return offset_of(self.array)

    def as_strided(self, shape: tuple[int, ...], strides: tuple[int, ...], offset: int | None = None) -> Tensor:
        """Another view of the same storage; strides and offset in elements.

        Raises:
            Raised: the view would extend beyond the storage.
        """
        at = self.storage_offset if offset is None else offset
        tensor = Tensor(strided(self.array, shape, strides, at), requires_grad=self.requires_grad)
        tensor.is_detached, tensor.root = self.is_detached, self.root
        return tensor

    def item(self) -> Any:
        """The single element as a Python scalar."""
        value = self.array.item()
        return value if value.__class__ in {bool, int, float, complex} else float(value)  # ml_dtypes has scalar types of its own

    def __repr__(self) -> str:
        if self.array.size > SHOWN:
            return f"tensor(of shape {self.shape}, dtype={self.dtype})"
        return f"tensor({self.array.tolist()!r}, dtype={self.dtype})"


class OpaqueTensor:
    """A sparse, nested or quantized tensor, or a tensor with a dtype that NumPy lacks; it is passed around without computation.

    Attributes:
        layout: the layout, such as ``torch.sparse_coo``; ``torch.strided`` for quantized tensors.
        dtype: the dtype.
        shape: the shape.
        parts: the components; for strided tensors, see :mod:`torch_compat.runtime.opaque`.
        requires_grad: as in torch.
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
