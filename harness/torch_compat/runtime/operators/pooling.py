"""Pooling: maximum, average, adaptive and fractional, and its inverse.

Up to 1.7, with ceil_mode the last window may start beyond the input if there is no padding; averages of such windows are NaN up to 1.6.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from torch_compat.errors import Unsupported
from torch_compat.releases.release import Release
from torch_compat.runtime.operators._common import FLOAT32, FLOAT64, INT64, Array, fail, into, not_implemented, sizes
from torch_compat.runtime.operators._products import looped, sized
from torch_compat.runtime.operators.convolution import windows
from torch_compat.runtime.registry import operator, resolve
from torch_compat.runtime.tensor import Tensor

Sizes = int | list[int]
INSIDE = 2


def _count(size: int, k: int, p: int, s: int, d: int, ceil: bool, *, inside: bool) -> int:
    span = size + 2 * p - d * (k - 1) - 1
    result = (span + (s - 1 if ceil else 0)) // s + 1
    if ceil and (inside or p) and (result - 1) * s >= size + p:
        result -= 1
    return result


def _prepared(
    self: Tensor, n: int, kernel_size: Sizes, stride: Any, padding: Sizes, dilation: Sizes, ceil_mode: bool, *, inside: bool
) -> tuple[Array, bool, tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    array = self.array
    alone = array.ndim == n + 1
    if array.ndim not in {n + 1, n + 2}:
        raise fail(
            f"Expected {n + 1}D or {n + 2}D (batch mode) tensor with optional 0 dim batch size for input, but got: {list(array.shape)}"
        )
    full = array[None] if alone else array
    k = sizes(kernel_size, n)
    s = sizes(stride, n) if stride not in (None, [], ()) else k
    p, d = sizes(padding, n), sizes(dilation, n)
    if any(entry <= 0 for entry in d):
        raise fail(f"dilation should be greater than zero, but got {list(d)}")
    if any(entry <= 0 for entry in s):
        raise fail("stride should not be zero")
    for item, size in zip(p, k, strict=True):
        if item < 0 or item > size / 2:
            raise fail(
                f"pad should be at most half of effective kernel size, but got pad={item}, kernel_size={size} and dilation=1"
            )
    out = tuple(
        _count(size, a, b, c, e, ceil_mode, inside=inside) for size, a, b, c, e in zip(full.shape[2:], k, p, s, d, strict=True)
    )
    if any(entry < 1 for entry in out):
        raise fail(
            f"Given input size: ({'x'.join(map(str, full.shape[1:]))}). Calculated output size: ({'x'.join(map(str, (full.shape[1], *out)))}). Output size is too small"
        )
    return full, alone, k, s, p, d, out


def _lowest(dtype: np.dtype[Any]) -> Any:
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


def _max_pool(
    self: Tensor, n: int, kernel_size: Sizes, stride: Any, padding: Sizes, dilation: Sizes, ceil_mode: bool, *, era: int
) -> tuple[Tensor, Tensor]:
    """Eras: 0 up to 1.1, 1 up to 1.7, 2 since 1.8. Only era 2 has no windows beyond the tensor."""
    full, alone, k, s, p, d, out = _prepared(self, n, kernel_size, stride, padding, dilation, ceil_mode, inside=era == INSIDE)
    if full.dtype.kind in "bc":
        raise not_implemented("max_pool2d", full.dtype)
    if min(k) < 1:
        raise fail(f"kernel size should be greater than zero, but got {list(k)}")
    spatial = full.shape[2:]
    pads = [(0, 0), (0, 0)]
    for size, a, b, c, e, count in zip(spatial, k, p, s, d, out, strict=True):
        pads.append((b, max((count - 1) * c + e * (a - 1) + 1 - size - b, 0)))
    kernel = math.prod(k)
    sized(*full.shape[:2], *out, kernel)
    sized(*(size + sum(pad) for size, pad in zip(full.shape, pads, strict=True)))
    seen = windows(np.pad(full, pads, constant_values=_lowest(full.dtype)), k, s, d, out).reshape(*full.shape[:2], *out, kernel)
    numbers = np.pad(np.arange(math.prod(spatial)).reshape(spatial), pads[2:], constant_values=-1)
    places = windows(numbers, k, s, d, out).reshape(*out, kernel)
    there = places >= 0
    most = seen.max(axis=-1, keepdims=True)
    if full.dtype.kind in "iu":
        best = (there & (seen == most)).argmax(axis=-1)
    else:
        nothing = np.isnan(seen)
        last = kernel - 1 - nothing[..., ::-1].argmax(axis=-1)
        ranked = np.where(nothing, -np.inf, seen)
        best = np.where(nothing.any(axis=-1), last, (there & (ranked == ranked.max(axis=-1, keepdims=True))).argmax(axis=-1))
    values = np.take_along_axis(seen, best[..., None], axis=-1)[..., 0]
    where = np.take_along_axis(np.broadcast_to(places, (*best.shape, kernel)), best[..., None], axis=-1)[..., 0].astype(INT64)
    beyond = ~there.any(axis=-1)
    if era == 0 and full.dtype.kind not in "iu":
        values = np.where(beyond, np.finfo(np.float32).min, values).astype(full.dtype)
    elif era == 1:
        where = np.where(beyond, _starts(spatial, p, s, d, out), where)
    return (Tensor(values[0]), Tensor(where[0])) if alone else (Tensor(values), Tensor(where))


def _starts(spatial: tuple[int, ...], p: tuple[int, ...], s: tuple[int, ...], d: tuple[int, ...], out: tuple[int, ...]) -> Array:
    """The flat index of each window's start, even beyond the tensor; for a window that starts before it, of the first position inside."""
    result = np.zeros((1,) * len(out), INT64)
    for at, (size, b, c, e, count) in enumerate(zip(spatial, p, s, d, out, strict=True)):
        looped(count)
        start = np.arange(count, dtype=INT64) * c - b
        start = np.where(start < 0, start + -(start // e) * e, start)
        result = result * size + start.reshape([-1 if other == at else 1 for other in range(len(out))])
    return result


def _max_pools() -> None:
    for since, era in (("1.0.0", 0), ("1.2.0", 1), ("1.8.0", INSIDE)):
        for n in (1, 2, 3):

            def values(
                self: Tensor, kernel_size: Sizes, stride: Any = (), padding: Sizes = 0, dilation: Sizes = 1, ceil_mode: bool = False, *, _n: int = n,
                era: int = era,
            ) -> Tensor:  # fmt: skip
                return _max_pool(self, _n, kernel_size, stride, padding, dilation, ceil_mode, era=era)[0]

            def both(
                self: Tensor, kernel_size: Sizes, stride: Any = (), padding: Sizes = 0, dilation: Sizes = 1, ceil_mode: bool = False, *, _n: int = n,
                era: int = era,
            ) -> tuple[Tensor, Tensor]:  # fmt: skip
                return _max_pool(self, _n, kernel_size, stride, padding, dilation, ceil_mode, era=era)

            operator(f"aten::max_pool{n}d", since=since)(values)
            operator(f"aten::max_pool{n}d_with_indices", since=since)(both)


_max_pools()


LOOKED_AT = 3  # with this number of dimensions, average pooling checks the size before padding


def _avg_pool(
    self: Tensor, n: int, kernel_size: Sizes, stride: Any, padding: Sizes, ceil_mode: bool, count_include_pad: bool, divisor_override: int | None, *,
    era: int,
) -> Tensor:  # fmt: skip
    """Eras: 0 up to 1.6, 1 for 1.7, 2 since 1.8."""
    full, alone, k, s, p, _, out = _prepared(self, n, kernel_size, stride, padding, 1, ceil_mode, inside=era == 2)
    if full.dtype.kind == "b":
        raise not_implemented("avg_pool2d_out_frame", full.dtype)
    if divisor_override == 0:
        raise fail("divisor must be not zero")
    spatial = full.shape[2:]
    if n == LOOKED_AT and any(size < item for size, item in zip(spatial, k, strict=True)):
        raise fail(
            f"input image (T: {spatial[0]} H: {spatial[1]} W: {spatial[2]}) smaller than kernel size (kT: {k[0]} kH: {k[1]} kW: {k[2]})"
        )
    whole = full.dtype.kind in "iu"
    pads = [(0, 0), (0, 0)]
    counts_all: list[list[int]] = []
    counts_in: list[list[int]] = []
    for size, a, b, c, count in zip(spatial, k, p, s, out, strict=True):
        pads.append((b, max((count - 1) * c + a - size - b, 0)))
        looped(count)
        starts = [place * c - b for place in range(count)]
        ends = [min(start + a, size + b) for start in starts]
        counts_all.append([end - start for start, end in zip(starts, ends, strict=True)])
        inside = [min(end, size) - max(start, 0) for start, end in zip(starts, ends, strict=True)]
        counts_in.append(
            inside if era == 0 else [max(item, 0) for item in inside]
        )  # up to 1.6 a window beyond the end has a negative count
    sized(*full.shape[:2], *out, *k)
    sized(*(size + sum(pad) for size, pad in zip(full.shape, pads, strict=True)))
    single = full.dtype == FLOAT32
    padded = np.pad(full if whole or single else full.astype(FLOAT64), pads)
    seen = windows(padded, k, s, (1,) * n, out)
    total = _one_by_one(seen, k) if single else seen.sum(axis=tuple(range(-n, 0)))
    if not whole and full.dtype.itemsize < 4:  # the sum may overflow in float32
        total = total.astype(FLOAT32).astype(FLOAT64)
    inner = _table(counts_in)
    divisor = (
        np.full(out, divisor_override) if divisor_override is not None else (_table(counts_all) if count_include_pad else inner)
    )
    value = _quotient(total, divisor) if whole else total / divisor.astype(total.dtype)
    if era >= 1:
        value = np.where(inner > 0, value, 0)
    value = value.astype(full.dtype)
    return Tensor(value[0] if alone else value)


def _one_by_one(seen: Array, k: tuple[int, ...]) -> Array:
    """Sum over the last dimensions, whose sizes are ``k``, sequentially, as kernels sum a window."""
    looped(math.prod(k), seen.size // max(1, math.prod(k)))
    total = np.zeros(seen.shape[: -len(k)], seen.dtype)
    for place in itertools.product(*map(range, k)):
        total += seen[(..., *place)]
    return total


def _quotient(total: Array, divisor: Array) -> Array:
    """Divide integers as in C++: rounded toward zero."""
    rest = np.where(divisor == 0, 1, divisor)
    return np.asarray((np.sign(total) * np.sign(rest)) * (np.abs(total) // np.abs(rest)))


def _table(counts: list[list[int]]) -> Array:
    result = np.ones((), INT64)
    for count in counts:
        result = np.multiply.outer(result, np.asarray(count, INT64))
    return np.asarray(result)


def _avg_pools() -> None:
    for since, era in (("1.0.0", 0), ("1.7.0", 1), ("1.8.0", 2)):
        for n in (1, 2, 3):

            def call(
                self: Tensor, kernel_size: Sizes, stride: Any = (), padding: Sizes = 0, ceil_mode: bool = False, count_include_pad: bool = True,
                divisor_override: int | None = None, *, _n: int = n, era: int = era,
            ) -> Tensor:  # fmt: skip
                return _avg_pool(self, _n, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, era=era)

            operator(f"aten::avg_pool{n}d", since=since)(call)


_avg_pools()


# -------------------------------------------------------------------------------------------------------------- adaptive


def _adaptive(self: Tensor, output_size: Any, n: int) -> tuple[Array, bool, list[list[slice]]]:
    array = self.array
    alone = array.ndim == n + 1
    if array.ndim not in {n + 1, n + 2}:
        raise fail(f"adaptive_pool{n}d(): Expected {n + 1}D or {n + 2}D tensor, but got {list(array.shape)}")
    full = array[None] if alone else array
    spatial = full.shape[2:]
    if 0 in full.shape[1:]:
        raise fail(
            f"adaptive_pool{n}d(): Expected input to have non-zero size for non-batch dimensions, but input has sizes {list(array.shape)}"
        )
    wanted = [
        spatial[at] if item is None else item
        for at, item in enumerate([output_size] * n if output_size.__class__ is int else output_size)
    ]
    if any(item < 0 for item in wanted):
        raise fail("adaptive_pool: elements of output_size must be greater than or equal to 0")
    looped(math.prod(wanted) + sum(wanted), full.size // max(1, math.prod(wanted)))
    pieces = [
        [slice(place * size // count, -(-(place + 1) * size // count)) for place in range(count)]
        for size, count in zip(spatial, wanted, strict=True)
    ]
    return full, alone, pieces


def _places(*counts: range) -> list[tuple[int, ...]]:
    return list(itertools.product(*counts))


UNCHECKED = "1.10.0"
"""As of this release, empty inputs and unbatched inputs are accepted."""
AVERAGED = ("1.0.0", "1.1.0", "1.7.0", "1.9.0", "1.10.0", "1.12.0")
"""The releases as of which means are rounded differently."""
MEAN_OF_VOLUMES = "1.9.0"
"""As of this release, volumes pooled to one element are also averaged like `mean` does."""


def _adaptive_avg(self: Tensor, output_size: Any, n: int, since: str) -> Tensor:
    """Sum elements sequentially and divide by the size of each dimension in turn; a single output is the mean of all elements."""
    full, alone, pieces = _adaptive(self, output_size, n)
    if full.dtype.kind in "iub" and full.size:
        raise not_implemented(f"adaptive_avg_pool{n}d_cpu", full.dtype)
    if full.dtype.kind == "c" and full.size:  # a single output is a mean
        if any(len(piece) != 1 for piece in pieces):
            raise not_implemented(f"adaptive_avg_pool{max(n, 2)}d", full.dtype)
        mean: Array = full.mean(axis=tuple(range(2, 2 + n)), keepdims=True, dtype=np.complex128).astype(full.dtype)
        return Tensor(mean[0] if alone else mean)
    if (
        full.dtype == FLOAT32
        and all(len(piece) == 1 for piece in pieces)
        and (n < 3 or Release(since) >= Release(MEAN_OF_VOLUMES))
    ):
        averaged: Array = resolve("aten::mean", Release(since))(Tensor(full), list(range(-1, -n - 1, -1)), True).array
        return Tensor(averaged[0] if alone else averaged)
    value: Array = np.empty((*full.shape[:2], *(len(piece) for piece in pieces)), full.dtype)
    if full.dtype == FLOAT32:
        for place in _places(*(range(len(piece)) for piece in pieces)):
            part = full[(slice(None), slice(None), *(piece[at] for piece, at in zip(pieces, place, strict=True)))]
            total = _one_by_one(part, part.shape[2:])
            for size in part.shape[2:]:
                total = total / np.float32(size)
            value[(slice(None), slice(None), *place)] = total
        return Tensor(value[0] if alone else value)
    wide = full.astype(FLOAT64)
    for place in _places(*(range(len(piece)) for piece in pieces)):
        part = wide[(slice(None), slice(None), *(piece[at] for piece, at in zip(pieces, place, strict=True)))]
        total = part.sum(axis=tuple(range(2, 2 + n))).astype(FLOAT64 if full.dtype == FLOAT64 else FLOAT32)  # may overflow
        value[(slice(None), slice(None), *place)] = (total / np.float64(math.prod(part.shape[2:]))).astype(full.dtype)
    return Tensor(value[0] if alone else value)


def _adaptive_max(self: Tensor, output_size: Any, n: int) -> tuple[Tensor, Tensor]:
    full, alone, pieces = _adaptive(self, output_size, n)
    spatial = full.shape[2:]
    numbers = np.arange(math.prod(spatial)).reshape(spatial)
    shape = (*full.shape[:2], *(len(piece) for piece in pieces))
    value: Array = np.empty(shape, full.dtype)
    where: Array = np.empty(shape, INT64)
    for place in _places(*(range(len(piece)) for piece in pieces)):
        cut = tuple(piece[at] for piece, at in zip(pieces, place, strict=True))
        order = numbers[cut].reshape(-1)
        part = full[(slice(None), slice(None), *cut)].reshape(*full.shape[:2], order.size)
        if full.dtype.kind in "iu":
            best = part.argmax(axis=-1)
        else:
            nothing = np.isnan(part)
            last = part.shape[-1] - 1 - nothing[..., ::-1].argmax(axis=-1)
            best = np.where(nothing.any(axis=-1), last, np.where(nothing, -np.inf, part).argmax(axis=-1))
        value[(slice(None), slice(None), *place)] = np.take_along_axis(part, best[..., None], axis=-1)[..., 0]
        where[(slice(None), slice(None), *place)] = order[best]
    return (Tensor(value[0]), Tensor(where[0])) if alone else (Tensor(value), Tensor(where))


def _whole(self: Tensor, n: int, wanted: Any) -> Tensor:
    """Before `UNCHECKED`, require elements and, for 1-D pooling, a batch dimension; means of all elements are not checked.

    Raises:
        Raised: the input is empty or has no batch dimension.
    """
    shape = self.array.shape
    if n == 1 and len(shape) != 3:
        raise fail(f"Expected 3-dimensional tensor, but got {len(shape)}-dimensional tensor for argument #1 'self'")
    if 0 in shape and (n == 3 or wanted is None or any(item != 1 for item in (wanted if wanted.__class__ is list else [wanted]))):
        raise fail(f"adaptive_pool{n}d(): expected input to have non-empty spatial dimensions, but input has sizes {list(shape)}")
    return self


def _adaptive_pools() -> None:
    def averages(n: int, since: str) -> None:
        def call(self: Tensor, output_size: Any) -> Tensor:
            given = _whole(self, n, output_size) if Release(since) < Release(UNCHECKED) else self
            return _adaptive_avg(given, output_size, n, since)

        operator(f"aten::adaptive_avg_pool{n}d", *((f"aten::_adaptive_avg_pool{n}d",) if n > 1 else ()), since=since)(call)

    def maxima(n: int, since: str) -> None:
        def call(self: Tensor, output_size: Any) -> tuple[Tensor, Tensor]:
            return _adaptive_max(_whole(self, n, None) if Release(since) < Release(UNCHECKED) else self, output_size, n)

        operator(f"aten::adaptive_max_pool{n}d", since=since)(call)

    for n in (1, 2, 3):
        for since in AVERAGED:
            averages(n, since)
        for since in ("1.0.0", UNCHECKED):
            maxima(n, since)


_adaptive_pools()


# ------------------------------------------------------------------------------------------------------------ fractional


def _starts_of(sample: Any, size: int, count: int, kernel: int, unit: Any) -> list[int]:
    """The starts of the windows along a dimension, with distances that depend on a random number between 0 and 1."""
    if count < 1:
        return []
    if count == 1:
        return [size - kernel]
    step = unit(size - kernel) / unit(count - 1)
    return [int(unit(unit(at) + sample) * step) - int(sample * step) for at in range(count - 1)] + [size - kernel]


def _fractional(self: Tensor, kernel_size: Sizes, output_size: Sizes, random_samples: Tensor, n: int) -> tuple[Tensor, Tensor]:
    array, samples = self.array, random_samples.array
    for given, message in ((kernel_size, "kernel_size"), (output_size, "output_size")):
        if given.__class__ is list and len(given) != n:
            raise fail(f"fractional_max_pool{n}d: {message} must either be a single Int or tuple of {n} Ints")
    k, wanted = sizes(kernel_size, n), sizes(output_size, n)
    name = f"fractional_max_pool{n}d"
    if array.ndim not in {n + 1, n + 2} or 0 in array.shape[array.ndim - n - 1 :]:
        raise fail(f"{name}: Expected non-empty tensor of {n + 1} or {n + 2} dimensions, but got: {list(array.shape)}")
    alone = array.ndim == n + 1
    full = array[None] if alone else array
    spatial = full.shape[2:]
    if any(item < 1 for item in (*k, *wanted)):
        raise fail(f"{name}: kernel_size and output_size should be greater than zero")
    for size, a, count in zip(spatial, k, wanted, strict=True):
        if count + a - 1 > size - (n == 3):  # 3-D pooling needs one more element
            raise fail(f"{name}(): pool size {a} too large relative to input size {size}")
    if full.dtype not in (np.float32, FLOAT64):
        raise not_implemented(f"{name}_out_frame", full.dtype)
    if samples.dtype != full.dtype:
        raise fail("Expect _random_samples to have the same dtype as input")
    if samples.ndim != 3 or samples.shape != (*full.shape[:2], n):
        raise Unsupported("fractional pooling with random samples of the wrong shape reads out of bounds", code="operator")
    unit = full.dtype.type
    looped(math.prod(full.shape[:2]) * math.prod(wanted), math.prod(k))
    value = np.empty((*full.shape[:2], *wanted), full.dtype)
    where = np.empty(value.shape, INT64)
    numbers = np.arange(math.prod(spatial)).reshape(spatial)
    order = range(n) if n == 3 else range(n)[::-1]  # in 2-D the first sample belongs to the width
    for plane in np.ndindex(*full.shape[:2]):
        begins = [
            _starts_of(samples[(*plane, index)], size, count, a, unit)
            for index, size, count, a in zip(order, spatial, wanted, k, strict=True)
        ]
        for place in np.ndindex(*wanted):
            cut = tuple(slice(begin[at], begin[at] + a) for begin, at, a in zip(begins, place, k, strict=True))
            part = full[plane][cut].reshape(-1)
            bad = np.flatnonzero(np.isnan(part))
            best = int(bad[-1]) if len(bad) else int(part.argmax())
            value[(*plane, *place)] = part[best]
            where[(*plane, *place)] = numbers[cut].reshape(-1)[best]
    return (Tensor(value[0]), Tensor(where[0])) if alone else (Tensor(value), Tensor(where))


def _fractional_pools() -> None:
    for n in (2, 3):

        def call(
            self: Tensor, kernel_size: Sizes, output_size: Sizes, random_samples: Tensor, *, output: Tensor | None = None, indices: Tensor | None = None,
            _n: int = n,
        ) -> tuple[Tensor, Tensor]:  # fmt: skip
            """The maximum of windows whose distances depend on random numbers, and its index."""
            result = _fractional(self, kernel_size, output_size, random_samples, _n)
            if output is None or indices is None:
                return result
            return into(output, result[0].array), into(indices, result[1].array)

        operator(f"aten::fractional_max_pool{n}d")(call)


_fractional_pools()


# --------------------------------------------------------------------------------------------------------------- inverse


def _unpool(self: Tensor, indices: Tensor, output_size: list[int], n: int) -> Tensor:
    array, places = self.array, indices.array
    if places.dtype != INT64:
        raise fail("elements in indices should be type int64")
    if places.shape != array.shape:
        raise fail(
            f"Expected shape of indices to be same as that of the input tensor ({list(array.shape)}) but got indices tensor with shape: {list(places.shape)}"
        )
    lead = array.shape[: array.ndim - n]
    room = math.prod(output_size)
    if places.size and (int(places.min()) < 0 or int(places.max()) >= room):
        raise fail(
            f"found an invalid max index: {int(places.max())} (output volumes are of size {'x'.join(map(str, output_size))}"
        )
    sized(*lead, room)
    value = np.zeros((math.prod(lead), room), array.dtype)
    np.put_along_axis(value, places.reshape(math.prod(lead), -1), array.reshape(math.prod(lead), -1), axis=1)
    return Tensor(value.reshape(*lead, *output_size))


@operator("aten::max_unpool2d")
def max_unpool2d(self: Tensor, indices: Tensor, output_size: list[int]) -> Tensor:
    """Put values back at their indices, with zeros elsewhere."""
    if len(output_size) != 2:
        raise fail(f"There should be exactly two elements (height, width) in output_size, but got {len(output_size)} elements.")
    return _unpool(self, indices, list(output_size), 2)


@operator("aten::max_unpool3d")
def max_unpool3d(self: Tensor, indices: Tensor, output_size: list[int], stride: list[int], padding: list[int]) -> Tensor:
    """Put values back at their indices, with zeros elsewhere."""
    for name, given in (("stride", stride), ("padding", padding)):
        if len(given) != 3:
            raise fail(
                f"There should be exactly three elements (depth, height, width) in {name}, but got: {len(given)} elements."
            )
    if any(step <= 0 for step in stride):
        raise fail(f"strides should be greater than zero, but got stride: {list(stride)}")
    if len(output_size) != 3:
        raise fail(
            f"There should be exactly three elements (depth, height, width) in output_size, but got {len(output_size)} elements."
        )
    return _unpool(self, indices, list(output_size), 3)
