"""Tensors of evenly spaced numbers: ranges, linspace and logspace.

Up to 1.3 a range without dtype holds floats. Since 2.14 an int64 range has the length of the floating-point range.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torch_compat.releases.release import Release
from torch_compat.runtime import dtypes
from torch_compat.runtime.limits import meter
from torch_compat.runtime.operators._common import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT64,
    Array,
    Scalar,
    any_dtype,
    cast,
    checked_scalar,
    fail,
    filled_scalar,
    not_implemented,
    wrapped_int,
)
from torch_compat.runtime.operators._sums import VECTOR
from torch_compat.runtime.operators.factories import check_options, default_type, to_out
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor

STEPS_NEEDED = "1.11.0"


def _filled(array: Array, out: Tensor | None) -> Tensor:
    """Write to ``out``, which keeps its shape if it has as many elements as the result."""
    if out is not None and out.array.size == array.size:
        array = array.reshape(out.array.shape)
    return to_out(array, out)


def _directed(start: Any, end: Any, step: Any) -> None:
    if not step:
        raise fail("step must be nonzero")
    if (step > 0 and end < start) or (step < 0 and end > start):
        raise fail("upper bound and lower bound inconsistent with step sign")


def _length(start: Any, end: Any, step: Any, kind: np.dtype[Any], *, cut: bool, strict: bool) -> int:
    if not (math.isfinite(start) and math.isfinite(end)):
        raise fail(f"unsupported range: {float(start)} -> {float(end)}")
    if strict:
        _directed(start, end, step)
    if not math.isfinite(step) and kind.kind in "iu":
        raise fail("value cannot be converted to type int64_t without overflow")
    if cut and kind == INT64:
        start, end, step = (int(item) for item in (start, end, step))
    _directed(*(tuple(map(int, (start, end, step))) if cut and kind.kind in "iu" else (start, end, step)))
    if all(item.__class__ is int for item in (start, end, step)):
        return int(-((start - end) // step))
    return math.ceil((float(end) - float(start)) / float(step))


def _ranges() -> None:
    def version(
        since: str, *, whole: bool, cut: bool, float_steps: bool = True, strict: bool = False, finite: bool = False
    ) -> None:
        def call(*args: Scalar, dtype: Any = None, out: Tensor | None = None, **options: Any) -> Tensor:
            named = [options.pop(name) for name in ("start", "end", "step") if name in options]
            check_options(options)
            bounds = [*args, *named]
            start, end, step = (
                (0, bounds[0], 1) if len(bounds) == 1 else (bounds[0], bounds[1], bounds[2] if len(bounds) > 2 else 1)
            )
            if not float_steps and len(bounds) > 2 and step.__class__ is float:
                raise fail("invalid argument 3: step must be nonzero")  # the compiler of 1.0 tries the operator with zeros
            if out is not None:
                kind = out.array.dtype
            elif dtype is not None:
                kind = dtypes.as_dtype(dtype).array  # type: ignore[union-attr]
            else:
                kind = INT64 if whole and all(item.__class__ in {int, bool} for item in (start, end, step)) else default_type()
            if kind == BOOL or kind.kind == "c":
                raise not_implemented("arange_cpu", kind)
            if finite and not math.isfinite(step.real):
                raise fail(f"step must be finite but got {step.real}")
            count = _length(start.real, end.real, step.real, kind, cut=cut, strict=strict)
            meter.array(count)
            if kind.kind in "iu":
                array = (wrapped_int(int(start.real)) + np.arange(count, dtype=INT64) * wrapped_int(int(step.real))).astype(kind)
            else:
                array = (float(start.real) + np.arange(count, dtype=FLOAT64) * float(step.real)).astype(kind)
            return _filled(array, out)

        operator("aten::arange", since=since, gradient=False)(call)

    version("1.0.0", whole=False, cut=True, float_steps=False)
    version("1.1.0", whole=False, cut=True)
    version("1.4.0", whole=True, cut=True)
    version("2.8.0", whole=True, cut=True, strict=True)
    version("2.14.0", whole=True, cut=False)
    version("2.15.0", whole=True, cut=False, finite=True)


_ranges()


def _with_end(start: Scalar, end: Scalar, step: Scalar, dtype: Any, out: Tensor | None, *, strict: bool) -> Tensor:
    kind = any_dtype(dtype, default_type()) if out is None else out.array.dtype
    whole = [int(item.real) for item in (start, end, step)] if kind.kind in "iu" else None
    if strict or whole is None:
        _directed(start.real, end.real, step.real)
    if whole is not None:
        _directed(*whole)
        start, end, step = whole
    count = math.floor((float(end.real) - float(start.real)) / float(step.real)) + 1
    meter.array(count)
    array = (float(start.real) + np.arange(count) * float(step.real)).astype(kind)
    return _filled(array, out)


@operator("aten::range", gradient=False)
def range_1_0(
    start: Scalar, end: Scalar, step: Scalar = 1, *, dtype: Any = None, out: Tensor | None = None, **options: Any
) -> Tensor:
    """Up to 2.7 bounds of integer ranges are checked only after truncation."""
    check_options(options)
    return _with_end(start, end, step, dtype, out, strict=False)


@operator("aten::range", gradient=False, since="2.8.0")
def range_(
    start: Scalar, end: Scalar, step: Scalar = 1, *, dtype: Any = None, out: Tensor | None = None, **options: Any
) -> Tensor:
    """A range that includes its end."""
    check_options(options)
    return _with_end(start, end, step, dtype, out, strict=True)


# ------------------------------------------------------------------------------------------------- linspace, logspace


CHUNKED = 2
"""The era of linspace in which vectors are computed from their first elements."""


def _exact(kind: np.dtype[Any]) -> Any:
    """A wider dtype: a product and a sum computed in it and rounded once equal a fused multiply-add."""
    return FLOAT64 if kind == FLOAT32 or kind.itemsize < 4 else np.longdouble


def _steps(steps: Any, *, single: bool = True) -> int:
    if steps.__class__ is Tensor:
        steps = int(steps.array)
    if steps is None:
        return 100
    if steps < 0:
        raise fail("number of steps must be non-negative")
    if steps == 1 and not single:
        raise fail("invalid number of points")
    meter.array(5 * steps)
    return steps  # type: ignore[no-any-return]


def spaced(start: Scalar, end: Scalar, steps: int, kind: np.dtype[Any], *, era: int, size: int | None = None) -> Array:
    """Evenly spaced points. Eras: 0 up to 1.4, 1 for 1.5, 2 for 1.6 to 1.13, 3 for 2.0 and newer.

    Parameters:
        size: bytes of an element in a vector, if the points are parts of complex numbers.
    """
    if not steps:
        return np.empty(0, kind)
    if kind.kind == "c":
        unit, first, last = FLOAT32 if kind == np.complex64 else FLOAT64, complex(start), complex(end)
        points = np.empty(steps, kind)
        points.real = spaced(first.real, last.real, steps, unit, era=era, size=kind.itemsize)
        points.imag = spaced(first.imag, last.imag, steps, unit, era=era, size=kind.itemsize)
        if era == CHUNKED and kind == np.complex64:
            _multiplied_as_complex(points, first, last)
        return points
    if kind.kind == "b":
        raise not_implemented("linspace_cpu", kind)
    whole = kind.kind in "iu"
    unit = FLOAT64 if whole else kind
    low = checked_scalar(start, kind).astype(unit)
    if steps == 1:
        return np.asarray(low).reshape(1).astype(kind)
    high = checked_scalar(end, kind).astype(unit)
    step = ((high - low) / np.asarray(steps - 1).astype(unit)).astype(unit)
    wide = _exact(unit)
    places = np.arange(steps).astype(wide)

    def up(index: Any) -> Any:
        return (low.astype(wide) + step.astype(wide) * index).astype(unit)

    def down(index: Any) -> Any:
        return (high.astype(wide) - step.astype(wide) * (steps - 1 - index)).astype(unit)

    if era < 2:
        if era and unit == FLOAT32 and np.isfinite(step):
            return (low.astype(wide) + places * (high.astype(wide) - low.astype(wide)) / (steps - 1)).astype(kind)
        return (low + places.astype(unit) * step).astype(kind)
    return _in_vectors(up, down, steps, step, kind, lanes=VECTOR // (size or kind.itemsize) if era == CHUNKED else 0)


def _multiplied_as_complex(points: Array, first: complex, last: complex) -> None:
    """Set parts to NaN that are 0 times infinity in a product of an index and an infinite complex step.

    Of the four elements of a vector, only the last two are computed with a product.
    """
    lanes = VECTOR // points.itemsize
    product = np.arange(len(points)) % lanes > 1
    product[len(points) - len(points) % (2 * lanes) :] = False
    if not math.isfinite(last.real - first.real):
        points.imag[product] = np.nan
    if not math.isfinite(last.imag - first.imag):
        points.real[product] = np.nan


def _in_vectors(up: Any, down: Any, steps: int, step: Any, kind: np.dtype[Any], *, lanes: int) -> Array:
    """Compute the first half from the start, and the second half from the end.

    Parameters:
        lanes: elements per vector, if two vectors at a time are computed from their first elements (up to 1.13); otherwise 0.
    """
    half = steps // 2
    wide = _exact(np.dtype(step.dtype))
    places = np.arange(steps).astype(wide)
    values = np.where(np.arange(steps) < half, up(places), down(places)).astype(kind)
    if lanes:
        for first in range(0, steps - steps % (2 * lanes), lanes):
            at = np.asarray(first).astype(wide)
            base = (up(at) if first < half else down(at)).astype(kind)
            values[first] = base
            rest = base.astype(wide) + np.arange(1, lanes).astype(wide) * step.astype(wide)
            values[first + 1 : first + lanes] = rest.astype(step.dtype).astype(kind)
    return values


def _need_steps(steps: int | None, since: str) -> None:
    """As of 1.11 the schema has no default for the number of points."""
    if steps is None and Release(since) >= Release(STEPS_NEEDED):
        raise fail("Arguments for call are not valid: as of 1.11, linspace and logspace require steps")


def _linspaces() -> None:
    for since, era in (("1.0.0", -1), ("1.1.0", 0), ("1.5.0", 1), ("1.6.0", 2), (STEPS_NEEDED, 2), ("2.0.0", 3)):

        def call(
            start: Any,
            end: Any,
            steps: int | None = None,
            *,
            dtype: Any = None,
            out: Tensor | None = None,
            era: int = era,
            since: str = since,
            **options: Any,
        ) -> Tensor:
            check_options(options)
            _need_steps(steps, since)
            kind = any_dtype(dtype, default_type()) if out is None else out.array.dtype
            if era <= 0 and kind.kind in "iu":
                raise fail(f"_th_linspace is not implemented for type {kind}")
            first, last = _ends("linspace", start, end)
            # 1.0 refuses a single point, unless both ends are equal.
            array = spaced(first, last, _steps(steps, single=era >= 0 or first == last), kind, era=max(era, 0))
            return _filled(array, out)

        operator("aten::linspace", since=since, gradient=False)(call)


def _ends(name: str, start: Any, end: Any) -> tuple[Scalar, Scalar]:
    """The ends of a range as numbers; they may be tensors without dimensions.

    Raises:
        Raised: an end is a tensor with dimensions.
    """
    ranks = [value.array.ndim if value.__class__ is Tensor else 0 for value in (start, end)]
    if any(ranks):
        raise fail(
            f"{name} only supports 0-dimensional start and end tensors, but got start with {ranks[0]} dimension(s) and end with {ranks[1]} "
            "dimension(s)."
        )
    first, last = (value.item() if value.__class__ is Tensor else value for value in (start, end))
    return first, last


HALVED = 3
"""The era of logspace since which the second half is computed from the end."""

SINGLE_COMPLEX = 4
"""The era of logspace since which a single power is complex."""


def _log_spaced(start: Scalar, end: Scalar, steps: int, base: float, kind: np.dtype[Any], *, era: int) -> Array:
    """Evenly spaced powers.

    Eras: 0 for 1.0, 1 up to 1.4, 2 for 1.5, 3 up to 1.8 (the second half is computed from the end), 4 since 1.9.
    """
    if not steps:
        return np.empty(0, kind)
    if kind.kind == "b" and steps > 1:
        raise not_implemented("logspace_cpu", kind)
    whole = kind.kind in "iub"
    if era < 2 and whole and (not era or steps > 1):
        raise not_implemented("logspace_cpu", kind)
    if steps == 1:
        return filled_scalar(_single_power(start, base, kind, era=era).item(), kind, 1).reshape(1)
    unit = FLOAT64 if whole else kind
    low, high = checked_scalar(start, unit), checked_scalar(end, unit)
    if whole:
        low, high = (checked_scalar(item, kind).astype(unit) for item in (start, end))
    places, count = np.arange(steps), np.asarray(steps - 1).astype(unit)
    step = ((high - low) / count).astype(unit)
    if era == 0:
        exponents = low + places.astype(unit) * (high - low) / count
    else:
        exponents = low + places.astype(unit) * step
        if era >= HALVED:
            exponents = np.where(places < steps // 2, exponents, high - step * (steps - 1 - places).astype(unit))
    if kind.kind == "c":
        return _by_logarithm(base, exponents)
    return cast(np.power(np.asarray(base, FLOAT64), exponents.astype(FLOAT64)), kind)


def _single_power(start: Scalar, base: float, kind: np.dtype[Any], *, era: int) -> Array:
    """The only point, in double precision: ``start`` is not rounded to the dtype of the result.

    Up to 1.8 the power is real, so complex exponents are refused. Since then, C++ computes a positive base in polar coordinates.
    """
    x = np.asarray(base, FLOAT64)
    if kind.kind != "c" or era < SINGLE_COMPLEX:
        return np.asarray(np.power(x, checked_scalar(start, FLOAT64)))
    exponent = checked_scalar(start, np.dtype(np.complex128))
    if not base > 0:
        return _by_logarithm(base, exponent)
    size, angle = np.power(x, exponent.real), exponent.imag * np.log(x)
    return np.asarray(complex(size * np.cos(angle), size * np.sin(angle)))


def _by_logarithm(base: float, exponents: Array) -> Array:
    """Complex powers as ``cpow`` of C computes them, in the dtype of the exponents: 0 to the power of 0 is NaN, -2 to the power of 1 is not real."""
    return np.asarray(np.exp(exponents * np.log(np.asarray(base, exponents.dtype))))


def _logspaces() -> None:
    for since, era in (
        ("1.0.0", 0),
        ("1.1.0", 1),
        ("1.5.0", 2),
        ("1.6.0", HALVED),
        ("1.9.0", SINGLE_COMPLEX),
        (STEPS_NEEDED, SINGLE_COMPLEX),
    ):

        def call(
            start: Any,
            end: Any,
            steps: int | None = None,
            base: float = 10.0,
            *,
            dtype: Any = None,
            out: Tensor | None = None,
            era: int = era,
            since: str = since,
            **options: Any,
        ) -> Tensor:
            check_options(options)
            _need_steps(steps, since)
            kind = any_dtype(dtype, default_type()) if out is None else out.array.dtype
            array = _log_spaced(*_ends("logspace", start, end), _steps(steps), base, kind, era=era)
            return _filled(array, out)

        operator("aten::logspace", since=since, gradient=False)(call)


_linspaces()
_logspaces()
