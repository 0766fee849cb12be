"""Helpers for operators: casts like torch's, old and new type promotion, writes in place and into ``out``, and torch's error messages."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.arrays import MOST_DIMENSIONS, contiguous_strides
from torch_compat.errors import Unsupported
from torch_compat.runtime import dtypes
from torch_compat.runtime.limits import meter
from torch_compat.runtime.registration import OUTS, Function, grad, operator
from torch_compat.runtime.tensor import Tensor, owner, strided
from torch_compat.runtime.values import raised
from torch_compat.values.dtypes import DTYPES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch_compat.errors import Raised

__all__ = [
    "BOOL",
    "FLOAT32",
    "FLOAT64",
    "HALVES",
    "INT64",
    "Array",
    "Scalar",
    "any_dtype",
    "as_array",
    "axes",
    "axis",
    "broadcast",
    "cast",
    "checked_filler",
    "checked_scalar",
    "common",
    "common_1_0",
    "common_floats",
    "contiguous",
    "dtypes_finfo",
    "fail",
    "filled_scalar",
    "floating",
    "full_words",
    "functional",
    "into",
    "not_implemented",
    "on_cpu",
    "random",
    "resized",
    "scalar_as",
    "sizes",
    "to_size",
    "unaliased",
    "whole_numbers",
    "wide",
    "words",
    "wrapped_int",
    "write",
]

Array = Any  # numpy.ndarray: its dtype and number of dimensions are known only at run time
Scalar = bool | int | float | complex

BOOL = np.dtype(np.bool_)
INT64 = np.dtype(np.int64)
FLOAT32 = np.dtype(np.float32)
MANY = 1 << 24  # total elements of two tensors above which memory is checked
FLOAT64 = np.dtype(np.float64)
FLOAT16, BFLOAT16 = np.dtype(np.float16), dtypes.BFLOAT16.array
HALVES = (FLOAT16, BFLOAT16)
UINT8 = np.dtype(np.uint8)

# torch's names of dtypes in messages.
WORDS = {row.name: row.word for row in DTYPES.values() if row.word}
CPP = {row.name: row.cpp for row in DTYPES.values() if row.cpp}


def fail(message: str) -> Raised:
    """A RuntimeError with a message of torch."""
    return raised("RuntimeError", message)


def words(dtype: np.dtype[Any]) -> str:
    """Torch's name of a dtype in messages: ``Float``, ``Long``."""
    return WORDS.get(dtype.name, dtype.name)


def full_words(dtype: np.dtype[Any]) -> str:
    """The legacy tensor type of a dtype: ``torch.FloatTensor``."""
    return f"torch.{words(dtype)}Tensor"


def not_implemented(kernel: str, dtype: np.dtype[Any]) -> Raised:
    """The error of a kernel that is not implemented for a dtype."""
    return fail(f"\"{kernel}\" not implemented for '{words(dtype)}'")


def as_array(value: Any) -> Array:
    """The array of a tensor; for a number, a 0-dim array."""
    return value.array if value.__class__ is Tensor else scalar_array(value)


def scalar_array(value: Scalar) -> Array:
    """Convert a number to the array of a 0-dim tensor."""
    return np.asarray(value, dtypes.of_scalar(value).array if value.__class__ is not float else FLOAT64)


def scalar_as(value: Scalar, dtype: np.dtype[Any]) -> Array:
    """Convert a number to a dtype without checks: integers wrap, floats are truncated, overflow gives infinity."""
    if value.__class__ is float and dtype.kind == "f":
        return np.asarray(value, FLOAT64).astype(dtype)
    return cast(np.asarray(value), dtype) if value.__class__ is not int else cast(wrapped_int(value), dtype)


def wrapped_int(value: int) -> Array:
    """Wrap an integer to 64 bits."""
    return np.asarray((value + 2**63) % 2**64 - 2**63, INT64)


def cast(array: Array, dtype: np.dtype[Any]) -> Array:
    """Same as ``Tensor.to``: a new array, or the same array if the dtype is unchanged. Complex numbers lose their imaginary part."""
    if array.dtype is dtype or array.dtype == dtype:
        return array
    if array.dtype.kind == "c" and dtype.kind not in "cb":
        array = array.real
    if array.dtype.kind == "f" and dtype.kind in "iu" and dtype.itemsize < 8:
        # c10::convert: the processor converts to a wider integer, which is then truncated.
        wide_integer = INT64 if dtype.kind == "u" else np.dtype(np.int32)
        return array.astype(wide_integer).astype(dtype)
    if dtype.itemsize == 2 and dtype.kind not in "iu" and array.dtype.itemsize > 4 and array.dtype.kind != "c":
        array = array.astype(np.float32)  # c10::Half and c10::BFloat16 are created from a float: wider values are rounded twice
    return array.astype(dtype)


def checked_scalar(value: Scalar, dtype: np.dtype[Any]) -> Array:
    """Same as ``Scalar::to``: refuse values that the dtype cannot represent.

    Raises:
        Raised: the value is out of range.
    """
    kind = dtype.kind
    if kind == "b":
        return np.asarray(bool(value))
    if value.__class__ is complex and kind != "c":
        if value.imag != 0:
            raise fail(f"value cannot be converted to type {CPP.get(dtype.name, dtype.name)} without overflow")
        value = value.real
    if kind in "iu":
        limits = np.iinfo(dtype)
        fits = not (isinstance(value, float) and (not math.isfinite(value) or (kind == "u" and value < 0)))
        if fits:
            whole = int(value.real)
            fits = (abs(whole) if kind == "u" else whole) <= int(limits.max) and (kind == "u" or whole >= int(limits.min))
        if not fits:
            raise fail(f"value cannot be converted to type {CPP.get(dtype.name, dtype.name)} without overflow")
    elif dtype not in (FLOAT64, np.complex128):
        largest = float(np.finfo(dtype).max) if kind in "fc" else float(dtypes_finfo(dtype).max)
        if any(math.isfinite(part) and abs(part) > largest for part in (value.real, value.imag)):
            raise fail(f"value cannot be converted to type {CPP.get(dtype.name, dtype.name)} without overflow")
    return scalar_as(value, dtype)


def filled_scalar(value: Scalar, dtype: np.dtype[Any], count: int) -> Array:
    """The fill value for ``count`` elements as of 2.8: like :func:`checked_scalar`, but a single 16-bit element becomes infinite.

    Raises:
        Raised: the value is out of range.
    """
    if count == 1 and dtype in HALVES and not value.imag:
        return scalar_as(float(value.real), dtype)
    return checked_scalar(value, dtype)


def checked_filler(value: Scalar, dtype: np.dtype[Any], count: int) -> Array:
    """The fill value for ``count`` elements up to 2.7: like :func:`checked_scalar` for any number of elements.

    Raises:
        Raised: the value is out of range.
    """
    del count
    return checked_scalar(value, dtype)


def dtypes_finfo(dtype: np.dtype[Any]) -> Any:
    """The limits of a floating-point dtype, including dtypes that NumPy does not know."""
    import ml_dtypes  # noqa: PLC0415

    return ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]


def can_cast(source: np.dtype[Any], target: np.dtype[Any]) -> bool:
    """Same as ``torch.can_cast``: a result can be cast to a dtype of the same or a higher category."""
    if source is target or source == target:
        return True
    high, low = dtypes.of_numpy(source).category, dtypes.of_numpy(target).category
    return high <= low


# ------------------------------------------------------------------------------------------------------------- promotion


def common(a: Any, b: Any) -> tuple[Array, Array]:
    """Convert two operands, tensors or numbers, to arrays of the common dtype of 1.5 and newer."""
    if a.__class__ is Tensor:
        x = a.array
        if b.__class__ is Tensor:
            y = b.array
            if x.size * y.size > MANY and x.shape != y.shape:
                broadcast(x, y)
            if x.dtype is y.dtype or x.dtype == y.dtype:
                return x, y
        else:
            kind = x.dtype.kind
            if kind == "f" and b.__class__ is float:
                return x, x.dtype.type(b)
            if b.__class__ is int and kind in "if" and -128 <= b < 128:
                return x, x.dtype.type(b)
            if (kind == "f" and b.__class__ is not complex) or (kind == "i" and b.__class__ is int):
                return x, scalar_as(b, x.dtype)
    dtype = dtypes.result_type((a, b)).array
    return _as(a, dtype), _as(b, dtype)


def common_floats(a: Any, b: Any) -> tuple[Array, Array]:
    """Convert two operands to a floating-point or complex dtype, integers directly and not through a common integer dtype."""
    if a.__class__ is Tensor and a.array.dtype.kind == "f":
        return common(a, b)
    tensor = dtypes.result_type((a, b))
    dtype = tensor.array if tensor.category >= 2 else dtypes.default_dtype().array
    return _as(a, dtype), _as(b, dtype)


def common_1_0(a: Any, b: Any, *, promotes: bool = False) -> tuple[Array, Array]:
    """Convert two operands by the rules up to 1.2: equal dtypes, or a 0-dim operand is cast to the dtype of the other.

    Parameters:
        promotes: whether two 0-dim operands are cast to their common dtype.

    Raises:
        Raised: the dtypes differ.
    """
    if a.__class__ is not Tensor:
        return scalar_as(a, b.array.dtype), b.array
    x = a.array
    if b.__class__ is not Tensor:
        return x, scalar_as(b, x.dtype)
    y = b.array
    if promotes and not x.ndim and not y.ndim:
        if BFLOAT16 in {
            x.dtype,
            y.dtype,
        }:  # 1.2 has no common dtype for these, not even with itself, and takes the first dtype of all
            return cast(x, UINT8), cast(y, UINT8)
        return common(a, b)
    if x.dtype == y.dtype:
        return x, y
    if not y.ndim:
        return x, cast(y, x.dtype)
    if not x.ndim:
        return cast(x, y.dtype), y
    raise fail(f"expected type {full_words(x.dtype)} but got {full_words(y.dtype)}")


def _as(value: Any, dtype: np.dtype[Any]) -> Array:
    return cast(value.array, dtype) if value.__class__ is Tensor else scalar_as(value, dtype)


def floating(array: Array) -> Array:
    """Convert an array to the default dtype, unless it is floating-point or complex."""
    return array if dtypes.of_numpy(array.dtype).category >= 2 else array.astype(dtypes.default_dtype().array)


def wide(array: Array) -> Array:
    """Convert 16-bit floating-point arrays to float32, in which torch computes."""
    return array.astype(FLOAT32) if array.dtype in HALVES else array


# ------------------------------------------------------------------------------------------------------- shapes and places


def broadcast(*arrays: Array) -> tuple[int, ...]:
    """The broadcast shape of arrays.

    Raises:
        Raised: the shapes do not broadcast, or an array with the result shape is too large.
    """
    shape: list[int] = []
    for array in arrays:
        sizes = list(array.shape)
        longer = max(len(shape), len(sizes))
        a = [1] * (longer - len(shape)) + shape
        b = [1] * (longer - len(sizes)) + sizes
        for at in range(longer - 1, -1, -1):
            if a[at] != b[at] and a[at] != 1 and b[at] != 1:
                raise fail(
                    f"The size of tensor a ({a[at]}) must match the size of tensor b ({b[at]}) at non-singleton dimension {at}"
                )
        shape = [y if x == 1 else x for x, y in zip(a, b, strict=True)]
    meter.array(math.prod(shape))
    return tuple(shape)


def axis(dim: int, ndim: int) -> int:
    """Normalize a dimension, which may be negative; a 0-dim tensor has 0 and -1.

    Raises:
        Raised: the dimension is out of range.
    """
    count = ndim or 1
    if not -count <= dim < count:
        raise raised("IndexError", f"Dimension out of range (expected to be in range of [{-count}, {count - 1}], but got {dim})")
    return dim + count if dim < 0 else dim


def axes(dim: Any, ndim: int, *, empty_is_all: bool = True) -> tuple[int, ...]:
    """Normalize the dimensions of a reduction for NumPy: a number, a list, or None for all dimensions.

    Raises:
        Raised: a dimension is out of range or occurs twice.
    """
    if dim is None or (dim.__class__ is not int and not dim and empty_is_all):
        return tuple(range(ndim))
    results = [axis(item, ndim) for item in ([dim] if dim.__class__ is int else dim)]
    if len(set(results)) != len(results):
        raise fail(f"dim {next(item for item in results if results.count(item) > 1)} appears multiple times in the list of dims")
    return tuple(item for item in results if item < ndim)


def whole_numbers(size: Any) -> tuple[int, ...]:
    """Convert a size to integers, which may be negative; a number stands for one dimension, and 0-dim tensors for numbers.

    Raises:
        Raised: there are more numbers than a tensor can have dimensions; their product could take forever.
    """
    wanted = [size] if size.__class__ is int else size
    if len(wanted) > MOST_DIMENSIONS:
        raise fail(f"a tensor has at most {MOST_DIMENSIONS} dimensions, but {len(wanted)} sizes are given")
    return tuple(int(tensor.array) if tensor.__class__ is Tensor else int(tensor) for tensor in wanted)


def to_size(size: Any) -> tuple[int, ...]:
    """Convert a size to a tuple; a number stands for one dimension, and 0-dim tensors for numbers.

    Raises:
        Raised: a number is negative.
    """
    sizes = whole_numbers(size)
    for item in sizes:
        if item < 0:
            raise fail(f"Trying to create tensor with negative dimension {item}: {list(sizes)}")
    meter.array(math.prod(entry or 1 for entry in sizes))
    return sizes


def unaliased(array: Array) -> None:
    """Refuse a target in which several elements share memory, such as an expanded tensor.

    Raises:
        Raised: elements share memory.
    """
    for step, size in zip(array.strides, array.shape, strict=True):
        if not step and size > 1 and array.size:
            raise fail(
                "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
                "Please clone() the tensor before performing the operation."
            )


def write(target: Tensor, value: Array, *, check: bool = True) -> Tensor:
    """Write a result in place.

    Parameters:
        target: the tensor that is written to and returned.
        value: the result, with a shape that broadcasts to the shape of the target.
        check: whether to refuse results with a higher category than the target.

    Raises:
        Raised: the shape, the dtype or the target does not permit the write.
    """
    array = target.array
    if target.requires_grad and target.is_parameter and grad.enabled:
        raise fail("a leaf Variable that requires grad is being used in an in-place operation.")
    if value.shape != array.shape:
        if broadcast(array, value) != array.shape:
            raise fail(f"output with shape {list(array.shape)} doesn't match the broadcast shape {list(broadcast(array, value))}")
        unaliased(array)
    elif 0 in array.strides:
        unaliased(array)
    if value.dtype is not array.dtype and value.dtype != array.dtype:
        if check and not can_cast(value.dtype, array.dtype):
            raise fail(f"result type {words(value.dtype)} can't be cast to the desired output type {words(array.dtype)}")
        value = cast(value, array.dtype)
    array[...] = value
    return target


def resized(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Same as ``resize_``: keeps the storage if it is large enough, otherwise enlarges it; row-major from the same offset."""
    array = tensor.array
    if array.shape == shape:
        return tensor
    whole_numbers(shape)
    needed = math.prod(shape)
    base = owner(array)
    room = base.nbytes // array.itemsize if base.dtype == array.dtype else 0
    offset = tensor.storage_offset
    if needed + offset <= room:
        tensor.array = strided(array, shape, contiguous_strides(shape), offset)
    else:
        meter.array(offset + needed)
        grown = np.zeros(offset + needed, array.dtype)
        held = strided(array, (room,), (1,), 0) if room else array.reshape(-1)
        grown[: held.size] = held[: offset + needed]
        tensor.array = strided(grown, shape, contiguous_strides(shape), offset)
        meter.tensor(grown)
    return tensor


def into(out: Tensor, value: Array, *, exact: bool = False) -> Tensor:
    """Write a result into ``out``, which is resized; the result must be castable to its dtype.

    Parameters:
        out: the target, which is returned.
        value: the result.
        exact: whether ``out`` must have the dtype of the result.

    Raises:
        Raised: the dtypes do not permit the write.
    """
    if out.array.dtype != value.dtype:
        if exact:
            raise fail(f"Found dtype {words(out.array.dtype)} but expected {words(value.dtype)}")
        if not can_cast(value.dtype, out.array.dtype):
            raise fail(f"result type {words(value.dtype)} can't be cast to the desired output type {words(out.array.dtype)}")
    if out.requires_grad and grad.enabled:
        raise fail("out=... arguments don't support automatic differentiation, but one of the arguments requires grad.")
    resized(out, value.shape)
    unaliased(out.array)
    out.array[...] = cast(value, out.array.dtype)
    return out


def copied_into(out: Tensor | None, result: Tensor) -> Tensor:
    """Copy a result into ``out``, which keeps its shape and dtype unless the result is empty; return the result without ``out``.

    Raises:
        Raised: the result does not broadcast to the shape of ``out``.
    """
    if out is None:
        return result
    return write(out, result.array, check=False) if result.array.size else into(out, result.array)


def contiguous(array: Array) -> Array:
    """The array in row-major order; a copy if it was in another order."""
    return np.ascontiguousarray(array).reshape(array.shape)


def on_cpu(device: Any) -> None:
    """Check that a device is the CPU.

    Raises:
        Raised: it is another device.
    """
    if device is not None and str(device) not in {"cpu", "cpu:0", "meta"}:
        raise fail(f"the reference reader only supports the CPU, not {device}")


def random(name: str) -> Unsupported:
    """The error of an operator that draws random numbers, which differ between implementations."""
    return Unsupported(f"the reference reader does not support random numbers: {name}", code="operator")


def any_dtype(dtype: Any, otherwise: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype argument of a program, or the default if it is None."""
    tensor = dtypes.as_dtype(dtype)
    return otherwise if tensor is None else tensor.array


# ------------------------------------------------------------------------------------------------------------- registering


def functional(
    *names: str,
    since: str = "1.0.0",
    inplace: bool = False,
    out: bool = True,
    check: bool = True,
    exact: bool = False,
    out_type: bool = False,
    gradient: bool = True,
) -> Callable[[Function], Function]:
    """Register a function that returns a new tensor, together with its ``out`` and in-place variants.

    Parameters:
        names: names of the operator without ``aten::``.
        since: the first release with this behavior.
        inplace: whether there is a variant ``name_``.
        out: whether there is an ``out`` variant.
        check: whether the in-place variant refuses results with a higher category than the target.
        exact: whether ``out`` must have the dtype of the result.
        out_type: whether ``out`` determines the dtype of the computation if there is no dtype argument.
        gradient: whether the result requires gradients if an argument does.
    """

    def register(function: Function) -> Function:
        code = function.__code__
        outs = OUTS.difference(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])

        def call(*args: Any, **keywords: Any) -> Any:
            if not keywords:
                return function(*args)
            results = [keywords.pop(name) for name in list(keywords) if name in outs]
            target: Any = tuple(results) if len(results) > 1 else results[0] if results else None
            if out_type and target is not None:
                wanted = dtypes.as_dtype(keywords.get("dtype"))
                if wanted is not None and wanted != target.dtype:
                    raise fail(f"Expected out tensor to have dtype {wanted.name}, but got {target.dtype.name} instead")
                keywords["dtype"] = target.dtype
            result = function(*args, **keywords)
            if target is None:
                return result
            if result.__class__ is tuple:
                return tuple(into(item, part.array, exact=exact) for item, part in zip(target, result, strict=True))
            return into(target, result.array, exact=exact)

        def in_place(self: Tensor, *args: Any, **keywords: Any) -> Tensor:
            return write(self, function(self, *args, **keywords).array, check=check)

        call.outs = outs  # type: ignore[attr-defined]  # the border lets them through
        call.__wrapped__ = in_place.__wrapped__ = function  # type: ignore[attr-defined]  # its parameters are those of the operator
        for name in names:
            operator(f"aten::{name}", since=since, gradient=gradient)(call if out else function)
            if inplace:
                operator(f"aten::{name}_", since=since, gradient=gradient)(in_place)
        return function

    return register


def sizes(value: int | Sequence[int], count: int) -> tuple[int, ...]:
    """Expand a number, or a list with a single number, to all dimensions."""
    if value.__class__ is int:
        return (value,) * count
    given = tuple(int(number) for number in value)  # type: ignore[union-attr]
    return given * count if len(given) == 1 else given
