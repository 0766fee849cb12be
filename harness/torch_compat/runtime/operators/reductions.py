"""Sums, means, extremes, any and all, and differences."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat import arrays
from torch_compat.errors import Unsupported
from torch_compat.releases.release import Release
from torch_compat.runtime.operators._common import (
    BOOL,
    FLOAT32,
    FLOAT64,
    HALVES,
    INT64,
    Array,
    Scalar,
    any_dtype,
    axes,
    axis,
    cast,
    common,
    fail,
    floating,
    functional,
    into,
    not_implemented,
    wide,
    words,
)
from torch_compat.runtime.operators._products import looped
from torch_compat.runtime.operators._sums import ordered_product, ordered_sum
from torch_compat.runtime.operators.comparison import larger, old_larger, old_smaller, smaller
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor
from torch_compat.runtime.values import raised

if TYPE_CHECKING:
    from collections.abc import Callable


Dims = int | list[int] | None
MAY_BE_EMPTY = Release("1.9.0")
"""As of this release, the extremes of an empty tensor can be computed if the dimension is nonempty."""


def exact_sum(array: Array, dims: tuple[int, ...], *, keepdims: bool = False, cascades: bool = True) -> Array:
    """Sum float32 and float64 in torch's order if that is known; otherwise, and for narrower dtypes, in double precision, rounded once."""
    ordered = ordered_sum(array, dims, keepdims=keepdims, cascades=cascades)
    if ordered is not None:
        return ordered
    if array.dtype == FLOAT32 or array.dtype in HALVES:
        return np.asarray(array.astype(FLOAT64).sum(axis=dims, keepdims=keepdims)).astype(array.dtype)
    if array.dtype == np.complex64:
        return np.asarray(array.astype(np.complex128).sum(axis=dims, keepdims=keepdims)).astype(array.dtype)
    return np.asarray(array.sum(axis=dims, keepdims=keepdims, dtype=array.dtype))


def sum_type(array: Array, dtype: Any) -> np.dtype[Any]:
    """The dtype of a sum: the requested dtype; otherwise int64 for integers."""
    return any_dtype(dtype, INT64 if array.dtype.kind in "iub" else array.dtype)


def once(dim: Any, ndim: int) -> Any:
    """Remove repeated dimensions of a list; up to 1.6 a dimension may occur twice."""
    return list(dict.fromkeys(axis(item, ndim) for item in dim)) if dim.__class__ is list else dim


@functional("sum", out_type=True)
def sum_1_0(self: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Up to 1.6 a dimension may occur twice, and sums do not cascade."""
    array = cast(self.array, sum_type(self.array, dtype))
    total = exact_sum(array, axes(once(dim, array.ndim), array.ndim), keepdims=keepdim, cascades=False)
    return Tensor(total + np.zeros((), total.dtype))  # sums start from zero, so they are never -0.0


@functional("sum", out_type=True, since="1.7.0")
def sum_(self: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Sums of integers and bools are int64."""
    array = cast(self.array, sum_type(self.array, dtype))
    return Tensor(exact_sum(array, axes(dim, array.ndim), keepdims=keepdim))


@functional("mean", out_type=True)
def mean_1_0(self: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """1.0 does not convert integers, even if a dtype is requested, and fills means over empty dimensions with its own NaN."""
    if self.array.dtype.kind in "iub":
        raise fail(f"Can only calculate the mean of floating types. Got {words(self.array.dtype)} instead.")
    tensor = mean_1_1(self, dim, keepdim, dtype=dtype)
    if not self.array.size and tensor.array.size:
        tensor.array[...] = np.nan
    return tensor


@functional("mean", out_type=True, since="1.1.0")
def mean_1_1(self: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Up to 1.6 a dimension may occur twice; it is summed once, but the sum is divided by its size twice."""
    result = mean(self, once(dim, self.array.ndim), keepdim, dtype=dtype)  # refuses inputs without a mean
    total = sum_1_0(self, dim, keepdim, dtype=result.dtype.code).array
    given = dim if dim.__class__ is list and dim and self.array.ndim else axes(dim, self.array.ndim)
    count = math.prod(self.array.shape[item] for item in given)
    twice = len({item % self.array.ndim for item in given}) < len(given) if self.array.ndim else False
    if count and (twice or total.dtype == FLOAT32):
        return Tensor(np.asarray(wide(total) / np.asarray(count, wide(total).dtype)).astype(total.dtype))
    return result


@functional("mean", out_type=True, since="1.7.0")
def mean(self: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Only floating-point and complex numbers are accepted. Up to 2.0 the sum of float16 is rounded to float16."""
    return _mean(self, dim, keepdim, dtype, rounds=True)


@functional("mean", out_type=True, since="2.1.0")
def mean_2_1(self: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The sum of float16 has 32 bits."""
    return _mean(self, dim, keepdim, dtype, rounds=False)


def _mean(self: Tensor, dim: Dims, keepdim: bool, dtype: Any, *, rounds: bool) -> Tensor:
    array = cast(self.array, any_dtype(dtype, self.array.dtype))
    if array.dtype.kind in "iub":
        raise fail(
            "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: "
            + words(array.dtype)
        )
    result = axes(dim, array.ndim)
    count = math.prod(array.shape[number] for number in result)
    ordered = ordered_sum(array, result, keepdims=keepdim)
    if ordered is not None:
        return Tensor(ordered / np.asarray(count, array.dtype))
    total = wide(exact_sum(wide(array), result, keepdims=keepdim))  # may overflow
    if rounds and array.dtype == np.float16:
        with np.errstate(over="ignore"):
            total = wide(total.astype(array.dtype))
    exact = total.astype(np.complex128 if total.dtype.kind == "c" else FLOAT64)
    return Tensor((exact / np.asarray(float(count))).astype(array.dtype))


@functional("mean", out_type=True, since="1.10.0")
def mean_1_10(self: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """1.10 and 1.11 check the dtype of the tensor, not the requested dtype."""
    if self.array.dtype.kind in "iub":
        raise fail(
            f"mean(): input dtype should be either floating point or complex dtypes. Got {words(self.array.dtype)} instead."
        )
    return mean(self, dim, keepdim, dtype=dtype)


functional("mean", out_type=True, since="1.12.0")(mean)


@functional("prod", out_type=True)
def prod(self: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Products of integers and bools are int64."""
    array = cast(self.array, sum_type(self.array, dtype))
    result = axes(dim, array.ndim)
    if array.dtype == FLOAT32 or array.dtype in HALVES:
        return Tensor(ordered_product(array, result, keepdims=keepdim))
    return Tensor(np.asarray(array.prod(axis=result, keepdims=keepdim, dtype=array.dtype)).astype(array.dtype))


# ------------------------------------------------------------------------------------------------------------- extremes


def _best(array: Array, at: int, *, largest: bool, last: bool, nan_first: bool = True) -> Array:
    """The index of the extreme along a dimension; NaN takes precedence; of equal elements, the first or (in older releases) the last."""
    if array.dtype.kind in "iub":
        ranked: Array = array
    else:
        ranked = wide(array)
        if nan_first:
            ranked = np.where(np.isnan(ranked), np.inf if largest else -np.inf, ranked)
            nothing = np.isnan(array)
            if nothing.any():
                first = np.argmax(nothing, axis=at)
                plain = _place(ranked, at, largest=largest, last=last)
                return np.where(nothing.any(axis=at), first, plain)
    return _place(ranked, at, largest=largest, last=last)


def _place(ranked: Array, at: int, *, largest: bool, last: bool) -> Array:
    find = np.argmax if largest else np.argmin
    if last:
        return np.asarray(ranked.shape[at] - 1 - find(np.flip(ranked, axis=at), axis=at))
    return np.asarray(find(ranked, axis=at))


def refuse_empty(name: str, array: Array) -> None:
    """Refuse to select from a tensor without elements, as up to 1.8, even if the result has no elements either.

    Raises:
        Raised: the tensor has no elements.
    """
    if array.ndim and not array.size:
        raise fail(
            f"cannot perform reduction function {name} on tensor with no elements because the operation does not have an identity"
        )


def refuse_no_places(name: str, array: Array, at: int) -> None:
    """Refuse to select along an empty dimension, as of 1.9.

    Raises:
        Raised: the dimension is empty.
    """
    if not array.shape[at]:
        raise raised("IndexError", f"{name}(): Expected reduction dim {at} to have non-zero size.")


def of_nothing(name: str, array: Array, at: int, *, keepdim: bool) -> tuple[Tensor, Tensor] | None:
    """The elements selected along a dimension of an empty tensor, and their indices; None if the tensor has elements.

    Raises:
        Raised: the dimension is empty.
    """
    if array.size:
        return None
    refuse_no_places(name, array, at)
    shape = tuple(1 if item == at and keepdim else size for item, size in enumerate(array.shape) if item != at or keepdim)
    return Tensor(np.empty(shape, array.dtype)), Tensor(np.empty(shape, INT64))


def _extreme_along(self: Tensor, dim: int, keepdim: bool, *, largest: bool, last: bool, some: bool) -> tuple[Tensor, Tensor]:
    array = self.array
    name = "max" if largest else "min"
    if array.dtype.kind == "c":
        raise not_implemented(f"{name}_cpu", array.dtype)
    at = axis(dim, array.ndim)
    if not array.ndim:
        return Tensor(array.copy()), Tensor(np.zeros((), INT64))
    if some:
        refuse_empty(name, array)
    nothing = of_nothing(name, array, at, keepdim=keepdim)
    if nothing is not None:
        return nothing
    places = np.expand_dims(_best(array, at, largest=largest, last=last), at)
    values = np.take_along_axis(array, places, axis=at)
    if not keepdim:
        values, places = values.squeeze(at), places.squeeze(at)
    return Tensor(values.copy()), Tensor(places.astype(INT64))


def _extreme_of_all(array: Array, *, largest: bool) -> Tensor:
    name = "max" if largest else "min"
    if not array.size:
        raise fail(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument."
        )
    if array.dtype.kind == "c":
        raise not_implemented(f"{name}_all", array.dtype)
    return Tensor(_extreme(array, None, largest=largest))


def _extreme(array: Array, dims: Any, *, largest: bool, keepdims: bool = False) -> Array:
    """The extreme over dimensions; NaN if there is one."""
    result = (array.max if largest else array.min)(axis=dims, keepdims=keepdims)
    if array.dtype.kind == "V":  # NumPy does not handle NaN of bfloat16
        widened = array.astype(FLOAT32)
        return np.asarray((widened.max if largest else widened.min)(axis=dims, keepdims=keepdims)).astype(array.dtype)
    return np.asarray(result)


def _of_one_type(a: Tensor, b: Tensor) -> tuple[Array, Array]:
    """The arrays of two operands up to 1.6, which must have the same dtype, even if one is 0-dim.

    Raises:
        Raised: the dtypes differ.
    """
    if a.array.dtype != b.array.dtype:
        raise fail(
            f"Expected object of scalar type {words(a.array.dtype)} but got scalar type {words(b.array.dtype)} for argument 'other'"
        )
    return a.array, b.array


def _extremes(name: str, *, largest: bool) -> None:
    pick = larger if largest else smaller
    old_pick = old_larger if largest else old_smaller

    def version(
        since: str, both: Callable[[Tensor, Tensor], tuple[Array, Array]], choose: Callable[[Array, Array], Array], *, last: bool
    ) -> None:
        def call(
            self: Tensor, dim: Any = None, keepdim: bool = False, *, other: Tensor | None = None, out: Any = None, **outs: Tensor
        ) -> Tensor | tuple[Tensor, Tensor]:
            if outs:
                out = tuple(outs.values())
            if dim.__class__ is Tensor:
                other = dim
            result: Any
            if other is not None:
                result = Tensor(choose(*both(self, other)))
                return result if out is None else into(out, result.array)
            if dim is None:
                result = _extreme_of_all(self.array, largest=largest)
                return result if out is None else into(out, result.array)
            at_end = last and all(tensor.array.flags.c_contiguous for tensor in (self, *(out or ())))
            result = _extreme_along(self, dim, keepdim, largest=largest, last=at_end, some=Release(since) < MAY_BE_EMPTY)
            return result if out is None else (into(out[0], result[0].array), into(out[1], result[1].array))

        operator(f"aten::{name}", since=since)(call)

    version("1.0.0", _of_one_type, old_pick, last=True)
    version("1.5.0", _of_one_type, pick, last=True)
    version("1.6.0", _of_one_type, pick, last=False)
    version("1.7.0", common, pick, last=False)
    version("1.9.0", common, pick, last=False)


_extremes("max", largest=True)
_extremes("min", largest=False)


def _arg(name: str, *, largest: bool) -> None:
    def version(since: str, *, last: bool, gaps: bool = True, view: bool = True) -> None:
        def call(self: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
            array = self.array
            if dim is None:
                if not array.size:
                    raise fail(f"{name}(): Expected reduction dim to be specified for input.numel() == 0.")
                flat = array.reshape(-1)
                place = _best(flat, 0, largest=largest, last=last and (gaps or not view or flat.flags.c_contiguous))
                return Tensor(np.asarray(place, INT64).reshape((1,) * array.ndim if keepdim and since == "1.10.0" else ()))
            at_end = last and (gaps or array.flags.c_contiguous)
            return _extreme_along(self, dim, keepdim, largest=largest, last=at_end, some=Release(since) < MAY_BE_EMPTY)[1]

        functional(name, since=since, gradient=False)(call)

    version("1.0.0", last=True, gaps=False, view=False)
    version("1.1.0", last=True, gaps=False)
    version("1.3.0", last=True)
    version("1.7.0", last=False)
    version("1.9.0", last=False)
    version("1.10.0", last=False)


_arg("argmax", largest=True)
_arg("argmin", largest=False)


def _along_dims(name: str, *, largest: bool) -> None:
    def version_1_7(self: Tensor, dim: Dims = (), keepdim: bool = False) -> Tensor:  # type: ignore[assignment]
        refuse_empty(name, self.array)
        return call(self, dim, keepdim)

    def call(self: Tensor, dim: Dims = (), keepdim: bool = False) -> Tensor:  # type: ignore[assignment]
        array = self.array
        result = axes(dim, array.ndim)
        if array.dtype.kind == "c" and array.size:
            raise not_implemented(f"{'max' if largest else 'min'}_values_cpu", array.dtype)
        for number in result:
            refuse_no_places(name, array, number)
        if not array.ndim:
            return Tensor(array.copy())
        return Tensor(_extreme(array, result, largest=largest, keepdims=keepdim))

    functional(name)(version_1_7)
    functional(name, since="1.9.0")(call)


_along_dims("amax", largest=True)
_along_dims("amin", largest=False)


@functional("aminmax")
def aminmax(self: Tensor, *, dim: int | None = None, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The minimum and the maximum."""
    array = self.array
    if array.dtype.kind == "c":
        raise not_implemented("aminmax_cpu", array.dtype)
    result = axes(dim, array.ndim)
    for number in result:
        refuse_no_places("aminmax", array, number)
    return Tensor(_extreme(array, result, largest=False, keepdims=keepdim)), Tensor(
        _extreme(array, result, largest=True, keepdims=keepdim)
    )


# ---------------------------------------------------------------------------------------------------------------- truth


def _truth(name: str, reduce: Any) -> None:
    def version(since: str, *, strict: bool, bools: bool, copies: bool = False) -> None:
        def call(self: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
            array = self.array
            if strict and array.dtype not in (BOOL, np.uint8):
                raise fail(f"{name} only supports torch.uint8 and torch.bool dtypes")
            if copies and array.dtype == np.uint8 and not array.ndim and dim is not None:
                axes(dim, 0)
                return Tensor(array.copy())  # releases up to 1.9 copy a 0-dim tensor
            value = np.asarray(reduce(array != 0, axis=axes(dim, array.ndim, empty_is_all=False), keepdims=keepdim))
            return Tensor(value.astype(np.uint8) if array.dtype == np.uint8 or not bools else value)

        functional(name, since=since, gradient=False)(call)

    version("1.0.0", strict=True, bools=False)
    version("1.2.0", strict=True, bools=True, copies=True)
    version("1.8.0", strict=False, bools=True, copies=True)
    version("1.10.0", strict=False, bools=True)


_truth("all", np.all)
_truth("any", np.any)


@functional("count_nonzero", gradient=False)
def count_nonzero(self: Tensor, dim: Dims = None) -> Tensor:
    """The number of nonzero elements."""
    return Tensor(np.asarray((self.array != 0).sum(axis=axes(dim, self.array.ndim), dtype=INT64)))


@functional("logsumexp")
def logsumexp(self: Tensor, dim: Dims, keepdim: bool = False) -> Tensor:
    """``log(sum(exp(x)))``, computed in a numerically stable way."""
    array = floating(self.array)
    result = axes(dim, array.ndim)
    if dim.__class__ is list and not dim and array.ndim and array.size and not keepdim:
        whole = [1] * array.ndim
        raise fail(f"output with shape [] doesn't match the broadcast shape {whole}")
    x = array.astype(np.complex128 if array.dtype.kind == "c" else FLOAT64)
    if array.dtype.kind == "c":
        value = np.log(np.exp(x).sum(axis=result, keepdims=keepdim))
        return Tensor(np.asarray(value).astype(array.dtype))
    if not x.size:
        return Tensor(np.asarray(np.log(np.exp(x).sum(axis=result, keepdims=keepdim))).astype(array.dtype))
    most = x.max(axis=result, keepdims=True)
    most = np.where(np.isinf(most), 0.0, most)
    if array.dtype == FLOAT32:  # each step in float32, like torch
        total = exact_sum(np.exp((array - most.astype(FLOAT32)).astype(FLOAT64)).astype(FLOAT32), result, keepdims=True)
        value = np.log(total.astype(FLOAT64)).astype(FLOAT32) + most.astype(FLOAT32)
        return Tensor(np.asarray(value if keepdim else value.reshape(np.shape(x.sum(axis=result)))))
    value = np.log(np.exp(x - most).sum(axis=result, keepdims=True)) + most
    return Tensor(np.asarray(value if keepdim else value.reshape(np.shape(x.sum(axis=result)))).astype(array.dtype))


functional("special_logsumexp")(logsumexp)


# ----------------------------------------------------------------------------------------------------- products of means


@operator("aten::trace")
def trace_1_0(self: Tensor) -> Tensor:
    """Up to 1.7 an empty matrix is refused, and sums of integers keep their dtype, in which they wrap."""
    if self.array.ndim == 2 and not self.array.size:
        raise fail("invalid argument 1: expected a matrix")
    tensor = trace(self)
    return Tensor(tensor.array.astype(self.array.dtype)) if self.array.dtype.kind in "iu" else tensor


@operator("aten::trace", since="1.8.0")
def trace(self: Tensor) -> Tensor:
    """The sum of the diagonal."""
    if self.array.ndim != 2:
        raise fail(f"trace: expected a matrix, but got tensor with dim {self.array.ndim}")
    diagonal = arrays.diagonal(self.array)
    return Tensor(exact_sum(cast(diagonal, sum_type(diagonal, None)), (0,)))


@operator("aten::sum_to_size")
def sum_to_size(self: Tensor, size: list[int]) -> Tensor:
    """The inverse of broadcasting: sum over the dimensions that were expanded."""
    array = self.array
    if not size:
        return Tensor(exact_sum(cast(array, sum_type(array, None)), tuple(range(array.ndim)), keepdims=False).reshape(()))
    lead = array.ndim - len(size)
    if lead < 0 or any(number not in {1, have} for number, have in zip(size, array.shape[lead:], strict=True)):
        raise fail(f"size {{{list(size)}}} is not expandable to size {{{list(array.shape)}}}.")
    dims = (*range(lead), *(lead + at for at, number in enumerate(size) if number == 1 and array.shape[lead + at] != 1))
    return Tensor(exact_sum(cast(array, sum_type(array, None)), dims, keepdims=True).reshape(tuple(size))) if dims else self


@functional("diff", out=True)
def diff_1_8(self: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor:
    """Up to 1.10 only first differences are supported."""
    if n != 1:
        raise fail("diff only supports n = 1 currently.")
    return diff(self, n, dim, prepend, append)


@functional("diff", out=True, since="1.11.0")
def diff_1_11(self: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor:
    """Up to 2.0 a negative order is treated as 0."""
    return diff(self, max(n, 0), dim, prepend, append)


@functional("diff", out=True, since="2.1.0")
def diff(self: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor:
    """Differences of adjacent elements."""
    if n < 0:
        raise fail(f"order must be non-negative but got {n}")
    if not n and prepend is None and append is None:
        return Tensor(self.array.copy())
    at = axis(dim, self.array.ndim)
    parts = [tensor.array for tensor in (prepend, self, append) if tensor is not None]
    array = np.concatenate(parts, axis=at) if len(parts) > 1 else self.array
    times = min(n, array.shape[at] + 1)
    looped(times, array.size)
    return Tensor(np.diff(array, times, axis=at))


@operator("aten::trapz")
def trapz_1_2(y: Tensor, x: Tensor | None = None, dx: Scalar = 1, dim: int = -1) -> Tensor:
    """In 1.2 integers stay integers, also between the steps, and bools are refused."""
    if y.array.dtype.kind == "b":
        raise fail("Subtraction, the `-` operator, with a bool tensor is not supported.")
    if y.array.dtype.kind in "iu":
        if x.__class__ is Tensor:
            raise Unsupported("the reference reader does not support trapz of integers with x= in 1.2", code="operator")
        at, steps = axis(dim, y.array.ndim), int((x if x is not None else dx).real)  # type: ignore[union-attr]
        if y.array.shape[at]:
            return Tensor(np.asarray(y.array.sum(axis=at, dtype=INT64) * steps))  # the halved ends are truncated to 0
    return _trapz(y, x, dx, dim)


@operator("aten::trapz", since="1.3.0")
def trapz_1_3(y: Tensor, x: Tensor | None = None, dx: Scalar = 1, dim: int = -1) -> Tensor:
    """Up to 1.9 bools are treated as numbers."""
    return _trapz(y, x, dx, dim)


@operator("aten::trapz", "aten::trapezoid", since="1.10.0")
def trapz(y: Tensor, x: Tensor | None = None, dx: Scalar = 1, dim: int = -1) -> Tensor:
    """The integral by the trapezoidal rule, with equal distances or given positions."""
    at = axis(dim, y.array.ndim)
    if not y.array.shape[at]:
        return _trapz(y, x, dx, dim)
    for name, tensor in (("y", y), ("x", x)):
        if tensor.__class__ is Tensor and tensor.array.dtype.kind == "b":
            raise fail(f"trapezoid: received a bool input for `{name}`, but bool is not supported")
    return _trapz(y, x, dx, dim)


def places_of(where: str, x: Tensor, array: Array, at: int) -> Array:
    """The positions of points along a dimension, reshaped to broadcast with the points.

    Raises:
        Raised: the numbers of positions and points differ.
    """
    places = x.array
    if places.ndim == 1:
        if len(places) != array.shape[at]:
            raise fail(f"{where}: There must be one `x` value for each sample point")
        return places.reshape([-1 if index == at else 1 for index in range(array.ndim)])
    return places.reshape((1,) * max(0, array.ndim - places.ndim) + places.shape)


def _trapz(y: Tensor, x: Tensor | None, dx: Scalar, dim: int) -> Tensor:
    array = y.array
    if x is not None and x.__class__ is not Tensor:
        x, dx = None, x  # type: ignore[assignment]  # the overload dx
    at = axis(dim, array.ndim)
    if not array.shape[at]:
        return Tensor(np.zeros(array.shape[:at] + array.shape[at + 1 :], array.dtype))
    kind = array.dtype
    wide = np.dtype(np.complex128) if array.dtype.kind == "c" else FLOAT64
    if x is None:  # computed from the sum of all elements: an infinity at an end gives NaN
        every = exact_sum(cast(array, sum_type(array, None)), (at,)).astype(wide)
        ends = cast(np.take(array, 0, axis=at) + np.take(array, -1, axis=at), wide)
        total = np.asarray((every - ends * 0.5) * dx)
    else:
        left, right = (np.take(array, range(start, array.shape[at] - 1 + start), axis=at) for start in (0, 1))
        places = places_of("trapezoid", x, array, at)
        areas = np.diff(places, axis=at) * (left + right)
        whole = [item.dtype.kind in "iu" for item in (array, places)]
        kind = areas.dtype if whole[0] == whole[1] else places.dtype if whole[0] else array.dtype
        wide = np.dtype(np.complex128) if kind.kind == "c" else FLOAT64
        total = np.asarray(areas.sum(axis=at, dtype=INT64 if areas.dtype.kind in "iu" else wide) / 2)  # integers wrap around
    return Tensor(cast(total, FLOAT32 if kind.kind in "iub" else kind))


__all__ = ["exact_sum", "places_of", "sum_"]
