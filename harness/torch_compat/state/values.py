"""What stands for a tensor that is no plain NumPy array. Each is compared by identity, as an array would be."""

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
    """A tensor or a storage whose numbers the file does not have: skipped (``skip_data``), on ``meta``, or of a bare pickle.

    Attributes:
        dtype: as torch calls it, ``float32``.
        shape: of a storage its number of elements.
        strides: in elements; None where the file does not say.
        why: why there are no numbers.
    """

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    why: str


@dataclass(frozen=True, slots=True, eq=False)
class RawTensor:
    """A tensor whose elements numpy has no dtype for.

    Attributes:
        dtype: as torch calls it.
        array: its bits. Of ``complex32`` float16 and of ``bcomplex32`` bfloat16, with one axis of 2 more (real, imaginary); of
            ``bits16`` uint16; of all others (``bits8``, ``int4``, ``float4_e2m1fn_x2`` ...) uint8, one for each element of torch.
    """

    dtype: str
    array: Array

    def unpacked(self) -> Array:
        """The numbers of ``float4_e2m1fn_x2``, which keeps two in a byte: copied, with one axis of 2 more (low half first).

        Raises:
            ValueError: it is of another dtype.
        """
        if self.dtype != "float4_e2m1fn_x2":
            raise ValueError(f"{self.dtype} uses an unknown packing")
        import ml_dtypes  # noqa: PLC0415 - few files need it
        import numpy as np  # noqa: PLC0415 - as all of numpy here

        halves = np.stack([self.array & 0xF, self.array >> 4], axis=-1)
        return halves.view(ml_dtypes.float4_e2m1fn)


@dataclass(frozen=True, slots=True, eq=False)
class QuantizedTensor:
    """A quantized tensor: element ``i`` means ``(int_repr[i] - zero_point) * scale``.

    Attributes:
        dtype: ``qint8``, ``quint8``, ``qint32``, ``quint4x2`` or ``quint2x4``.
        shape: of the tensor.
        int_repr: int8, uint8 or int32 of this shape; of ``quint4x2`` and ``quint2x4`` the packed bytes, one axis.
        scheme: ``per_tensor_affine``, ``per_channel_affine``, ``per_channel_affine_float_qparams`` ...
        scale, zero_point: a number each for the whole tensor; for each channel an array.
        axis: the axis of the channels; None where there is one scale.
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
        coalesced: whether no index comes twice, and they are sorted; None where the writer does not say (before 2.1).
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
        layout: which of them.
        dtype: of the values.
        shape: of the tensor.
        compressed: ``crow_indices`` of csr and bsr, ``ccol_indices`` of the others.
        plain: ``col_indices``, ``row_indices``.
        values: of bsr and bsc blocks.
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
        dtype: of all of them.
        tensors: the tensors that it consists of: views of one buffer.
    """

    dtype: str
    tensors: tuple[Any, ...]


@dataclass(slots=True, eq=False)
class SubclassTensor:
    """A tensor of a class that wraps others and has no storage of its own.

    Attributes:
        type: its class, a :class:`torch_compat.pickles.Global`.
        dtype: as torch calls it.
        shape: of the tensor.
        state: what would be set on it, tensors as arrays.
    """

    type: Any
    dtype: str
    shape: tuple[int, ...]
    state: Any = None


@dataclass(slots=True, eq=False)
class TypedTensor:
    """A tensor with all that torch knows of it (``with_types=True``, and wherever a tensor is the key of a dictionary).

    Attributes:
        array: what stands for it without types: a NumPy array, or one of the classes above.
        dtype: as torch calls it, ``float32``.
        shape: of the tensor; empty for a nested one.
        strides: in elements, as torch states them; None where it has none.
        offset: of its first element in its storage, in elements.
        storage: key of its storage; views with the same key share it. None where it has none.
        requires_grad: whether it asks for gradients.
        parameter: whether it is a ``torch.nn.Parameter``.
        type: its class where that is another one, a :class:`torch_compat.pickles.Global`.
        device: where it was, ``cuda:0``.
        layout: ``strided``, ``sparse_coo`` ...
        conj, neg: torch keeps it as a view whose bits stand for the conjugate, for the negative; ``array`` has the values.
        state: attributes set on it, tensors as arrays; None where there are none.
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
    """A storage that was saved as such (``with_types=True``).

    Attributes:
        array: all of it, one axis; of an untyped storage its bytes.
        dtype: of its elements, as torch calls it.
        storage: its key.
        type: its class, as ``torch.FloatStorage``.
        device: where it was.
    """

    array: Any
    dtype: str
    storage: str
    type: str
    device: str
