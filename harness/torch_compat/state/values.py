"""Classes for tensors that are not plain NumPy arrays. Instances are compared by identity, as arrays would be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch_compat.state.dtypes import Array

__all__ = [
    "Absent",
    "CompressedTensor",
    "NestedTensor",
    "QuantizedTensor",
    "RawTensor",
    "SparseTensor",
    "SubclassTensor",
    "TypedStorage",
    "TypedTensor",
]


@dataclass(frozen=True, slots=True, eq=False)
class Absent:
    """A tensor or a storage without data in the file: skipped (``skip_data``), on ``meta``, or in a bare pickle.

    Attributes:
        dtype: torch's name of the dtype, ``float32``.
        shape: for a storage its number of elements.
        strides: in elements; None if the file does not state them.
        why: why there is no data.
    """

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    why: str


@dataclass(frozen=True, slots=True, eq=False)
class RawTensor:
    """A tensor with a dtype that numpy lacks.

    Attributes:
        dtype: torch's name of the dtype.
        array: its bits. For ``complex32`` float16 and for ``bcomplex32`` bfloat16, with an extra axis of 2 (real, imaginary); for
            ``bits16`` uint16; for all others (``bits8``, ``int4``, ``float4_e2m1fn_x2`` ...) uint8, one for each element of torch.
    """

    dtype: str
    array: Array

    def unpacked(self) -> Array:
        """The numbers of ``float4_e2m1fn_x2``, which packs two in a byte: copied, with an extra axis of 2 (low half first).

        Raises:
            ValueError: the tensor has another dtype.
        """
        if self.dtype != "float4_e2m1fn_x2":
            raise ValueError(f"{self.dtype} uses an unknown packing")
        import ml_dtypes  # noqa: PLC0415 - few files need it
        import numpy as np  # noqa: PLC0415 - like all uses of numpy here

        halves = np.stack([self.array & 0xF, self.array >> 4], axis=-1)
        return halves.view(ml_dtypes.float4_e2m1fn)


@dataclass(frozen=True, slots=True, eq=False)
class QuantizedTensor:
    """A quantized tensor: element ``i`` represents ``(int_repr[i] - zero_point) * scale``.

    Attributes:
        dtype: ``qint8``, ``quint8``, ``qint32``, ``quint4x2`` or ``quint2x4``.
        shape: of the tensor.
        int_repr: int8, uint8 or int32 of this shape; for ``quint4x2`` and ``quint2x4`` the packed bytes, one-dimensional.
        scheme: ``per_tensor_affine``, ``per_channel_affine``, ``per_channel_affine_float_qparams`` ...
        scale, zero_point: a number each for the whole tensor, or an array with an entry for each channel.
        axis: the axis of the channels; None if there is a single scale.
    """

    dtype: str
    shape: tuple[int, ...]
    int_repr: Array | Absent
    scheme: str
    scale: Any
    zero_point: Any
    axis: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class SparseTensor:
    """A ``sparse_coo`` tensor.

    Attributes:
        dtype: of the values.
        shape: of the tensor.
        indices: int64, ``(sparse dimensions, number of values)``.
        values: ``(number of values, *dense dimensions)``.
        coalesced: whether indices are unique and sorted; None if the writer does not record it (before 2.1).
    """

    dtype: str
    shape: tuple[int, ...]
    indices: Any
    values: Any
    coalesced: bool | None


@dataclass(frozen=True, slots=True, eq=False)
class CompressedTensor:
    """A ``sparse_csr``, ``sparse_csc``, ``sparse_bsr`` or ``sparse_bsc`` tensor.

    Attributes:
        layout: the layout, one of these four.
        dtype: of the values.
        shape: of the tensor.
        compressed: ``crow_indices`` for csr and bsr, ``ccol_indices`` for the others.
        plain: ``col_indices`` or ``row_indices``.
        values: for bsr and bsc, blocks.
    """

    layout: str
    dtype: str
    shape: tuple[int, ...]
    compressed: Any
    plain: Any
    values: Any


@dataclass(frozen=True, slots=True, eq=False)
class NestedTensor:
    """A nested tensor.

    Attributes:
        dtype: of all its tensors.
        tensors: the tensors that it consists of, which are views of one buffer.
    """

    dtype: str
    tensors: tuple[Any, ...]


@dataclass(slots=True, eq=False)
class SubclassTensor:
    """A tensor of a wrapper subclass, which has no storage of its own.

    Attributes:
        type: its class, a :class:`torch_compat.pickles.Global`.
        dtype: torch's name of the dtype.
        shape: of the tensor.
        state: the state that would be set on it, with tensors as arrays.
    """

    type: Any
    dtype: str
    shape: tuple[int, ...]
    state: Any = None


@dataclass(slots=True, eq=False)
class TypedTensor:
    """A tensor with everything that torch knows about it (``with_types=True``, and wherever a tensor is a dictionary key).

    Attributes:
        array: its representation without types: a NumPy array, or an instance of one of the classes above.
        dtype: torch's name of the dtype, ``float32``.
        shape: of the tensor; empty for a nested one.
        strides: torch's strides, in elements; None if it has none.
        offset: the offset of its first element in its storage, in elements.
        storage: the key of its storage; views with the same key share it. None if it has none.
        requires_grad: whether it requires gradients.
        parameter: whether it is a ``torch.nn.Parameter``.
        type: its class if that is a different one, a :class:`torch_compat.pickles.Global`.
        device: the device it was on, ``cuda:0``.
        layout: ``strided``, ``sparse_coo`` ...
        conj, neg: whether torch keeps it as a lazy conjugate or negative view; ``array`` has the resolved values.
        state: attributes set on it, with tensors as arrays; None if there are none.
    """

    array: Any
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    offset: int
    storage: str | None
    requires_grad: bool
    parameter: bool
    type: Any
    device: str
    layout: str
    conj: bool
    neg: bool
    state: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class TypedStorage:
    """A storage that was saved directly (``with_types=True``).

    Attributes:
        array: all of its elements, one-dimensional; the bytes of an untyped storage.
        dtype: torch's name of the dtype of its elements.
        storage: its key.
        type: its class, as ``torch.FloatStorage``.
        device: the device it was on.
    """

    array: Any
    dtype: str
    storage: str
    type: str
    device: str
