"""Operators that draw random numbers, for cases with a certain result: probabilities of 0 and 1, a single possible value, no elements.

No two implementations draw the same numbers. Other results have a shape and a dtype but no values; reading their values raises an error.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.runtime import dtypes
from torch_compat.runtime.limits import meter
from torch_compat.runtime.opaque import STRIDED
from torch_compat.runtime.operators._common import INT64, Array, fail, not_implemented, random, to_size, write
from torch_compat.runtime.operators.factories import LONG, check_options, default_type, kind_of, to_out
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import OpaqueTensor, Tensor

if TYPE_CHECKING:
    from collections.abc import Callable


def _anew(name: str, shape: tuple[int, ...], kind: np.dtype[Any], out: Tensor | None = None) -> Tensor | OpaqueTensor:
    """A tensor with unknown values; a normal tensor if it is empty."""
    if 0 in shape:
        return to_out(np.empty(shape, kind), out)
    if out is not None:
        raise random(f"aten::{name}")
    return OpaqueTensor(STRIDED, dtypes.of_numpy(kind), shape, {"drawn": f"aten::{name}"})


def _floats(kernel: str, kind: np.dtype[Any]) -> None:
    if kind.kind in "iub":
        raise not_implemented(kernel, kind)


def _drawn(name: str) -> None:
    kernel = "check_uniform_bounds" if name == "rand" else "normal_kernel_cpu"

    def call(
        size: list[int], *, dtype: Any = None, generator: Any = None, out: Tensor | None = None, **options: Any
    ) -> Tensor | OpaqueTensor:
        del generator
        check_options(options)
        kind = kind_of(dtype, default_type(), out)
        _floats(kernel, kind)
        return _anew(name, to_size(size), kind, out)

    def like(self: Tensor, *, dtype: Any = None, generator: Any = None, **options: Any) -> Tensor | OpaqueTensor:
        del generator
        check_options(options)
        kind = kind_of(dtype, self.array.dtype, None)
        _floats(kernel, kind)
        return _anew(f"{name}_like", self.shape, kind)

    operator(f"aten::{name}", gradient=False)(call)
    operator(f"aten::{name}_like", gradient=False)(like)


_drawn("rand")
_drawn("randn")


def _chosen(name: str, shape: tuple[int, ...], low: int, high: int, kind: np.dtype[Any], out: Tensor | None) -> Any:
    """Integers from ``low`` to ``high`` (exclusive).

    Raises:
        Raised: the range is empty.
    """
    if low >= high:
        raise fail(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    if high - low > 1 and 0 not in shape:
        return _anew(name, shape, kind, out)
    return to_out(np.full(shape, low, kind), out)


def _integers(since: str, kind: int | None) -> None:
    """Register ``randint``; the default dtype of the schema is None up to 1.12, which means float, and int64 since."""

    def call(
        low: int,
        high: Any,
        size: Any = None,
        *,
        dtype: Any = kind,
        generator: Any = None,
        out: Tensor | None = None,
        **options: Any,
    ) -> Any:
        del generator
        check_options(options)
        if size is None:
            low, high, size = 0, low, high
        return _chosen("randint", to_size(size), low, high, kind_of(dtype, default_type(), out), out)

    operator("aten::randint", of="any", gradient=False, since=since)(call)


_integers("1.0.0", None)
_integers("1.13.0", LONG)


@operator("aten::randint_like", gradient=False)
def randint_like(self: Tensor, low: int, high: int | None = None, *, dtype: Any = None, **options: Any) -> Any:
    """Random integers in the shape of a tensor; a single bound is the upper bound."""
    options.pop("generator", None)
    check_options(options)
    first, last = (0, low) if high is None else (low, high)
    return _chosen("randint_like", self.shape, first, last, kind_of(dtype, self.array.dtype, None), None)


def _order(since: str, otherwise: Callable[[], np.dtype[Any]]) -> None:
    """Register ``randperm``; without a dtype, or with None, it is the default float dtype up to 1.8 and int64 since."""

    def call(
        n: int, *, dtype: Any = None, generator: Any = None, out: Tensor | None = None, **options: Any
    ) -> Tensor | OpaqueTensor:
        del generator
        check_options(options)
        if n < 0:
            raise fail(f"n must be non-negative, got{n}")
        kind = kind_of(dtype, otherwise(), out)
        return _anew("randperm", (n,), kind, out) if n > 1 else to_out(np.zeros(n, kind), out)

    operator("aten::randperm", of="any", gradient=False, since=since)(call)


_order("1.0.0", default_type)
_order("1.9.0", lambda: INT64)


# -------------------------------------------------------------------------------------------------- draws by probability


def _certain(chances: Array, name: str) -> Array:
    """The certain results.

    Raises:
        Raised: a value is not a probability.
        Unsupported: a probability is neither 0 nor 1.
    """
    if not ((chances >= 0) & (chances <= 1)).all():
        raise fail("Expected p_in >= 0 && p_in <= 1 to be true, but got false.")
    if not ((chances == 0) | (chances == 1)).all():
        raise random(f"aten::{name}")
    return np.asarray(chances == 1)


@operator("aten::bernoulli", gradient=False)
def bernoulli(self: Tensor, p: Any = None, *, generator: Any = None, out: Tensor | None = None) -> Tensor:
    """Draw 1 with a given probability, else 0; known if the probability is 0 or 1."""
    del generator
    if p is None and self.array.dtype.kind in "iub":
        raise not_implemented("bernoulli_tensor_cpu_p_", self.array.dtype)
    chances = self.array if p is None else np.full(self.array.shape, p)
    return to_out(_certain(chances, "bernoulli").astype(self.array.dtype), out)


@operator("aten::bernoulli_", gradient=False)
def bernoulli_in_place(self: Tensor, p: Any = 0.5, *, generator: Any = None) -> Tensor:
    """Fill the tensor in place, with a single probability or one per element."""
    del generator
    chances = np.broadcast_to(p.array if p.__class__ is Tensor else np.asarray(p), self.array.shape)
    return write(self, _certain(chances, "bernoulli_").astype(self.array.dtype))


def _multinomials() -> None:
    for since, zeros in (("1.0.0", False), ("1.6.0", True)):

        def multinomial(
            self: Tensor,
            num_samples: int,
            replacement: bool = False,
            *,
            generator: Any = None,
            out: Tensor | None = None,
            era: bool = zeros,
        ) -> Tensor:
            """Draw indices by weight; known if each row has a single weight above zero, or a single element.

            Up to 1.5 indices with zero weight cannot be drawn without replacement; since 1.6 they come last, in any order.
            """
            del generator
            weights = self.array
            if weights.ndim not in {1, 2}:
                raise fail("prob_dist must be 1 or 2 dim")
            if weights.dtype.kind in "iub":
                raise fail(f"multinomial only supports floating-point dtypes for the input, but got {self.dtype}")
            if num_samples <= 0:
                raise fail("cannot sample n_sample <= 0 samples")
            if not replacement and num_samples > weights.shape[-1]:
                raise fail("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
            if not np.isfinite(weights).all() or (weights < 0).any():
                raise fail("probability tensor contains either `inf`, `nan` or element < 0")
            above = (weights > 0).sum(-1)
            if (above == 0).any():
                raise fail("invalid multinomial distribution (sum of probabilities <= 0)")
            if not replacement and not era and (above < num_samples).any():
                raise fail(
                    "invalid multinomial distribution (with replacement=False, not enough non-negative category to sample)"
                )
            pair = not replacement and num_samples == weights.shape[-1] == 2  # only the other index is left
            if (above != 1).any() or not (replacement or num_samples == 1 or pair):
                raise random("aten::multinomial")
            meter.array(num_samples * (weights.shape[0] if weights.ndim > 1 else 1))
            places = np.argmax(weights > 0, axis=-1)[..., None].astype(INT64)
            result = np.broadcast_to(places, (*places.shape[:-1], num_samples)).copy()
            if pair:
                result[..., 1] = 1 - result[..., 0]
            return to_out(result, out)

        operator("aten::multinomial", gradient=False, since=since)(multinomial)


_multinomials()


@operator("aten::poisson", gradient=False)
def poisson(self: Tensor, generator: Any = None) -> Tensor:
    """Draw from Poisson distributions; known where the rate is zero."""
    del generator
    if self.array.dtype.kind in "iub":
        raise not_implemented("poisson_cpu", self.array.dtype)
    if not (self.array >= 0).all():
        raise fail("invalid Poisson rate, expected rate to be non-negative")
    if self.array.any():
        raise random("aten::poisson")
    return Tensor(np.zeros_like(self.array))


# --------------------------------------------------------------------------------------------------- in-place operators


def _written(name: str, kernel: str | None, check: Callable[..., Any], *eras: tuple[str, bool]) -> None:
    """Register an in-place operator; ``check`` returns the only value that can be drawn, or None if there are several."""
    for since, era in eras or (("1.0.0", True),):

        def call(self: Tensor, *args: Any, generator: Any = None, era: bool = era, **keywords: Any) -> Tensor:
            del generator
            if kernel is not None:
                _floats(kernel, self.array.dtype)
            result = check(era, *args, **keywords)
            if not self.array.size:
                return self
            if result is None:
                raise random(f"aten::{name}")
            return write(self, np.full(self.array.shape, result, self.array.dtype))

        operator(f"aten::{name}", gradient=False, since=since)(call)


def _uniform(era: bool, low: float = 0, high: float = 1) -> float | None:
    del era
    if not low <= high:
        raise fail(f"uniform_ expects to return a [from, to) range, but found from={low} > to={high}")
    return low if low == high else None


def _spread(zero: bool, std: float) -> None:
    """Check a standard deviation; zero is accepted since 1.9.

    Raises:
        Raised: the standard deviation is invalid.
    """
    if not (std >= 0 if zero else std > 0):
        raise fail(f"normal expects std >= 0.0, but found std {std}")


def _normal(zero: bool, mean: float = 0, std: float = 1) -> float | None:
    _spread(zero, std)
    return mean if std == 0 else None


def _log_normal(era: bool, mean: float = 1, std: float = 2) -> None:
    del era, mean
    _spread(False, std)


def _below(era: bool, low: Any = None, high: Any = None) -> int | None:
    del era
    if low is None:
        return None
    first, last = (0, low) if high is None else (low, high)
    if first >= last:
        raise fail(f"random_ expects 'from' to be less than 'to', but got from={first} >= to={last}")
    return int(first) if last - first == 1 else None


def _exponential(era: bool, lambd: float = 1) -> None:
    del era
    if not lambd > 0:
        raise fail(f"exponential_ expects lambda > 0.0, but found lambda={lambd}")


def _geometric(era: bool, p: float) -> None:
    del era
    if not 0 < p < 1:
        raise fail(f"geometric_ expects p to be in (0, 1), but got p={p}")


def _cauchy(strict: bool, median: float = 0, sigma: float = 1) -> float | None:
    if strict and not sigma > 0:
        raise fail(f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")
    return median if sigma == 0 and math.isfinite(median) else None


_written("uniform_", "check_uniform_bounds", _uniform)
_written("normal_", "normal_kernel_cpu", _normal, ("1.0.0", False), ("1.9.0", True))
_written("log_normal_", "log_normal_cpu", _log_normal)
_written("random_", None, _below)
_written("exponential_", "exponential_cpu", _exponential)
_written("geometric_", None, _geometric)
_written("cauchy_", "cauchy_cpu", _cauchy, ("1.0.0", False), ("2.0.0", True))


def _normals(since: str, *, zero: bool) -> None:
    def normal(
        mean: Any, std: Any = 1.0, size: Any = None, *, generator: Any = None, out: Tensor | None = None, **options: Any,
    ) -> Any:  # fmt: skip
        """Draw from normal distributions; the result is the mean where the deviation is zero. Means and deviations are broadcast."""
        del generator
        check_options({name: value for name, value in options.items() if name != "dtype"})
        if mean.__class__ is not Tensor and std.__class__ is not Tensor:
            _spread(zero, std)
            kind = kind_of(options.get("dtype"), default_type(), out)
            shape = to_size(size)
            return to_out(np.full(shape, mean, kind), out) if std == 0 else _anew("normal", shape, kind, out)
        given = [tensor.array for tensor in (mean, std) if tensor.__class__ is Tensor]
        for array in given:
            _floats("normal_kernel_cpu", array.dtype)
        deviations = std.array if std.__class__ is Tensor else np.asarray(std)
        if std.__class__ is not Tensor:
            _spread(zero, std)
        elif zero and not (deviations >= 0).all():
            raise fail("normal expects all elements of std >= 0.0")
        centres = mean.array if mean.__class__ is Tensor else np.asarray(mean, given[0].dtype)
        shape = np.broadcast_shapes(centres.shape, deviations.shape)
        if deviations.any():
            return _anew("normal", shape, given[0].dtype, out)
        return to_out(np.broadcast_to(centres, shape).astype(given[0].dtype), out)

    operator("aten::normal", of="any", gradient=False, since=since)(normal)


_normals("1.0.0", zero=False)
_normals("1.9.0", zero=True)
