"""Losses and distances. Reductions are 0 (none), 1 (mean) and 2 (sum); losses are computed in double precision unless noted otherwise."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.errors import Unsupported
from torch_compat.releases.release import Release
from torch_compat.runtime import dtypes
from torch_compat.runtime.operators._common import (
    FLOAT32,
    FLOAT64,
    INT64,
    Array,
    broadcast,
    fail,
    floating,
    functional,
    into,
    not_implemented,
    words,
)
from torch_compat.runtime.operators._operands import common_float
from torch_compat.runtime.operators._sums import mean_of, ordered_sum
from torch_compat.runtime.operators.distances import rounded
from torch_compat.runtime.operators.softmax import log_softmax_of
from torch_compat.runtime.registry import operator, resolve
from torch_compat.runtime.tensor import Tensor
from torch_compat.runtime.values import raised

if TYPE_CHECKING:
    from collections.abc import Callable

NONE, MEAN, SUM = 0, 1, 2


def _reduce(value: Array, reduction: int, kind: np.dtype[Any]) -> Tensor:
    """The mean or the sum of losses; for any other reduction number, the losses themselves."""
    if reduction not in {MEAN, SUM}:
        return Tensor(value.astype(kind))
    ordered = ordered_sum(value.astype(kind), tuple(range(value.ndim)))
    if ordered is not None:
        return Tensor(np.asarray(ordered / np.asarray(value.size, kind) if reduction == MEAN else ordered))
    return Tensor(np.asarray(mean_of(value) if reduction == MEAN else value.sum()).astype(kind))


def _first(value: Array) -> Array:
    """The first loss: an unknown reduction resizes the losses to one element, where the sum or the mean should be written.

    Raises:
        Unsupported: there are no losses.
    """
    if not value.size:
        raise Unsupported(
            "an empty loss with an unknown reduction is not supported: releases return uninitialized memory", code="operator"
        )
    return np.asarray(value.reshape(-1)[0])


def _floats(where: str, *tensors: Tensor) -> tuple[np.dtype[Any], list[Array]]:
    kind = common_float(where, *tensors)
    return kind, [tensor.array.astype(FLOAT64) for tensor in tensors]


def _by_rows(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Wrap a loss that is reduced only along its first dimension if it is written into ``out``."""

    def call(self: Tensor, target: Tensor, reduction: int = MEAN, *rest: Any, out: Tensor | None = None) -> Tensor:
        if out is None or reduction == NONE:
            tensor = function(self, target, reduction, *rest)
            return tensor if out is None else into(out, tensor.array)
        value = function(self, target, NONE, *rest).array
        if value.ndim:
            value = (mean_of(value.astype(FLOAT64), axis=0) if reduction == MEAN else value.astype(FLOAT64).sum(axis=0)).astype(
                value.dtype
            )
        return into(out, np.asarray(value))

    return call


def _named(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Wrap a loss that refuses unknown reduction numbers."""

    @functools.wraps(function)
    def call(self: Tensor, target: Tensor, reduction: int = MEAN, *rest: Any, **keywords: Any) -> Tensor:
        if reduction not in {NONE, MEAN, SUM}:
            raise fail("reduction == Reduction::Mean || reduction == Reduction::Sum INTERNAL ASSERT FAILED")
        return function(self, target, reduction, *rest, **keywords)

    return call


def _summed(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Wrap a loss that sums for unknown reduction numbers."""

    @functools.wraps(function)
    def call(self: Tensor, target: Tensor, reduction: int = MEAN) -> Tensor:
        return function(self, target, reduction if reduction in {NONE, MEAN} else SUM)

    return call


def _simple(name: str, compute: Any, kernel: str) -> Callable[..., Tensor]:
    def call(self: Tensor, target: Tensor, reduction: int = MEAN) -> Tensor:
        if not kernel:  # integers are allowed, too, unless the mean is taken
            kind = dtypes.result_type((self, target)).array
            if kind.kind in "iu" and reduction != MEAN:
                value = np.abs(self.array.astype(kind) - target.array.astype(kind))
                return Tensor(value if reduction == NONE else np.asarray(value.sum(dtype=INT64)))
        kind, (x, y) = _floats(kernel or "mean", self, target)
        if kind == FLOAT32:  # each step in float32, as torch does
            x, y = x.astype(FLOAT32), y.astype(FLOAT32)
        return _reduce(compute(x, y), reduction, kind)

    functional(name)(_summed(call))
    return call


_mse = _simple("mse_loss", lambda x, y: (x - y) ** 2, "mse_cpu")
operator("aten::mse_loss", since="1.4.0")(_by_rows(_mse))
functional("mse_loss", since="1.12.0")(_named(_mse))
_l1 = _simple("l1_loss", lambda x, y: np.abs(x - y), "")
operator("aten::l1_loss", since="1.4.0")(_by_rows(_l1))
functional("l1_loss", since="1.8.0")(_summed(_l1))
functional("l1_loss", since="1.13.0")(_l1)


def _no_smaller(target: Array, given: Array) -> None:
    """Refuse an operand that does not broadcast to the shape of the target, which is written in place."""
    whole = broadcast(target, given)
    if whole != target.shape:
        raise fail(f"output with shape {list(target.shape)} doesn't match the broadcast shape {list(whole)}")


def _soft_margins(self: Tensor, target: Tensor, reduction: int, *steps: Callable[[Array], Array]) -> Tensor:
    kind, (x, y) = _floats("soft_margin_loss", self, target)
    _no_smaller(self.array, target.array)
    kind = kind if self.array.dtype.kind in "iub" else self.array.dtype
    value = -y * x
    for step in steps:
        value = step(value.astype(kind).astype(FLOAT64))
    if reduction not in {NONE, MEAN, SUM}:  # torch resizes the losses to one element and copies it to itself
        return Tensor(_first(value).astype(kind))
    return _reduce(value, reduction, kind)


def soft_margin_loss_1_5(self: Tensor, target: Tensor, reduction: int = MEAN) -> Tensor:
    """``log(1 + exp(-y * x))``, with each step rounded to the dtype of the elements."""
    return _soft_margins(self, target, reduction, np.exp, lambda x: x + 1, np.log)


functional("soft_margin_loss")(_summed(soft_margin_loss_1_5))
functional("soft_margin_loss", since="1.5.0")(soft_margin_loss_1_5)


@functional("soft_margin_loss", since="2.0.0")
def soft_margin_loss(self: Tensor, target: Tensor, reduction: int = MEAN) -> Tensor:
    """As of 2.0 one is not added in a step of its own."""
    return _soft_margins(self, target, reduction, np.exp, np.log1p)


def smooth_l1_loss(self: Tensor, target: Tensor, reduction: int = MEAN, beta: float = 1.0) -> Tensor:
    """Half the square of small differences, the absolute value of large ones."""
    kind, (x, y) = _floats("smooth_l1_cpu", self, target)
    if not beta >= 0:  # NaN is refused, too
        raise fail("smooth_l1_loss does not support negative values for beta.")
    gap = np.abs(x - y)
    return _reduce(gap if not beta else np.where(gap < beta, 0.5 * gap * gap / beta, gap - 0.5 * beta), reduction, kind)


functional("smooth_l1_loss")(_summed(smooth_l1_loss))


@operator("aten::smooth_l1_loss", since="1.4.0")
def smooth_l1_loss_1_4(self: Tensor, target: Tensor, reduction: int = MEAN, *, out: Tensor | None = None) -> Tensor:
    """1.4 fails to reduce into ``out``."""
    if out is not None and reduction:
        raise fail("out__storage_saved.value().is_alias_of(out_.storage()) INTERNAL ASSERT FAILED")
    return smooth_l1_loss_1_5(self, target, reduction, out=out)


@operator("aten::smooth_l1_loss", since="1.5.0")
def smooth_l1_loss_1_5(self: Tensor, target: Tensor, reduction: int = MEAN, *, out: Tensor | None = None) -> Tensor:
    """1.5 and 1.6 leave ``out`` unchanged if the loss is reduced."""
    tensor = smooth_l1_loss(self, target, reduction)
    return tensor if out is None or reduction else into(out, tensor.array)


def _smooth_or_absolute(since: str) -> Callable[..., Tensor]:
    """A beta of 0 means ``l1_loss``; as of 1.11 integers are refused, although 1.11 and 1.12 accept them for this beta."""
    smooth = _by_rows(smooth_l1_loss)

    def call(self: Tensor, target: Tensor, reduction: int = MEAN, beta: float = 1.0, *, out: Tensor | None = None) -> Tensor:
        keywords = {} if out is None else {"out": out}
        if beta:
            return smooth(self, target, reduction, beta, **keywords)
        result: Tensor = resolve("aten::l1_loss", Release(since))(self, target, reduction, **keywords)
        return result

    return call


for _since in ("1.7.0", "1.8.0"):
    operator("aten::smooth_l1_loss", since=_since)(_smooth_or_absolute(_since))
functional("smooth_l1_loss", since="1.11.0")(_named(smooth_l1_loss))


@operator("aten::huber_loss")
def huber_loss(self: Tensor, target: Tensor, reduction: int = MEAN, delta: float = 1.0, *, out: Tensor | None = None) -> Tensor:
    """``smooth_l1_loss`` times delta; an unknown reduction writes the first loss into ``out``."""
    if out is not None:
        result = huber_loss(self, target, reduction, delta).array
        return into(out, result if reduction in {NONE, MEAN, SUM} else _first(result))
    kind, (x, y) = _floats("huber_cpu", self, target)
    if not delta > 0:
        raise fail("huber_loss does not support non-positive values for delta.")
    gap = np.abs(x - y)
    return _reduce(np.where(gap < delta, 0.5 * gap * gap, delta * (gap - 0.5 * delta)), reduction, kind)


def _cross_entropy(x: Array, y: Array, w: Array | None, lowest: float) -> Array:
    value = (y - 1) * np.maximum(np.log1p(-x), lowest) - y * np.maximum(np.log(x), lowest)
    return value if w is None else value * w


def _bce(self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, *, old: bool, ranged: bool = False) -> Tensor:
    kind, (x, y) = _floats("binary_cross_entropy", self, target)
    broadcast(x, y)
    if y.size == x.size:
        y = y.reshape(x.shape)
    if not ((x >= 0) & (x <= 1)).all():  # NaN is refused, too
        raise fail("all elements of input should be between 0 and 1")
    if ranged and x.size and not ((y >= 0) & (y <= 1)).all():
        raise fail("all elements of target should be between 0 and 1")
    w = None if weight is None else weight.array.astype(FLOAT64)
    if w is not None:
        _no_smaller(x, w)
    if old:
        first, second = (np.log(np.where(item == 0, 1e-12, item)) for item in (x, 1.0 - x))
        value = -(first * y + second * (1 - y))
        return _reduce(value if w is None else value * w, reduction, kind)
    return _reduce(_cross_entropy(x, y, w, -100.0), reduction, kind)


# Up to 1.4 logarithms of 0 are replaced by those of 1e-12; later logarithms are clamped at -100.
functional("binary_cross_entropy")(
    lambda self, target, weight=None, reduction=MEAN: _bce(
        self, target, weight, reduction if reduction in {NONE, MEAN} else SUM, old=True
    )
)
functional("binary_cross_entropy", since="1.5.0")(
    lambda self, target, weight=None, reduction=MEAN: _bce(self, target, weight, reduction, old=False)
)
functional("binary_cross_entropy", since="2.1.0")(
    lambda self, target, weight=None, reduction=MEAN: _bce(self, target, weight, reduction, old=False, ranged=True)
)


@functional("binary_cross_entropy_with_logits")
def binary_cross_entropy_with_logits(
    self: Tensor, target: Tensor, weight: Tensor | None = None, pos_weight: Tensor | None = None, reduction: int = MEAN
) -> Tensor:
    """Binary cross entropy of the sigmoid, computed in a numerically stable way."""
    kind, (x, y) = _floats("binary_cross_entropy_with_logits", self, target)
    _no_smaller(target.array, self.array)
    kind = target.array.dtype
    if kind.kind in "iub":
        raise fail(f"result type Float can't be cast to the desired output type {words(kind)}")
    soft = np.log1p(np.exp(-np.abs(x))) + np.maximum(-x, 0)  # -log(sigmoid(x))
    if pos_weight is not None:
        _no_smaller(self.array, target.array)
        value = (1 - y) * x + (1 + (pos_weight.array.astype(FLOAT64) - 1) * y) * soft
    else:
        value = (1 - y) * x + soft
    if weight is not None:
        value = value * weight.array.astype(FLOAT64)
    return _reduce(value, reduction, kind)


def _kl_div_old(self: Tensor, target: Tensor, reduction: int, log_target: bool, *, whole: bool) -> Tensor:
    """Up to 1.12 a target that is not above 0, such as NaN, contributes nothing.

    Parameters:
        whole: whether targets may be integers.
    """
    if target.array.dtype.kind in "iub" and not whole:
        raise not_implemented("log_vml_cpu", target.array.dtype)
    if self.array.dtype.kind == "b":
        raise fail("Subtraction, the `-` operator, with a bool tensor is not supported.")
    kind, (x, y) = _floats("kl_div", self, Tensor(floating(target.array)))
    value = np.exp(y) * (y - x) if log_target else np.where(y > 0, y * (np.log(y) - x), 0.0)
    return _reduce(value, reduction, kind)


def _kl_div(self: Tensor, target: Tensor, reduction: int, log_target: bool) -> Tensor:
    """The Kullback-Leibler divergence; zeros of the target contribute nothing."""
    if self.array.dtype.kind in "iub" or target.array.dtype.kind in "iub":
        raise fail("kl_div: Integral inputs not supported.")
    if self.array.dtype.kind == "c" or target.array.dtype.kind == "c":
        raise fail("kl_div: Complex inputs not supported.")
    kind, (x, y) = _floats("kl_div", self, target)
    if log_target:
        value = rounded(np.exp(y), kind) * rounded(y - x, kind)
    else:
        value = rounded(np.where(y == 0, 0.0, y * np.log(y)), kind) - rounded(y * x, kind)
    return _reduce(np.where(np.isnan(y), y, value) if not log_target else value, reduction, kind)


functional("kl_div", out=False)(
    lambda self, target, reduction=MEAN, *, log_target=False: _kl_div_old(self, target, reduction, log_target, whole=False)
)
functional("kl_div", out=False, since="1.8.0")(
    lambda self, target, reduction=MEAN, *, log_target=False: _kl_div_old(self, target, reduction, log_target, whole=True)
)
functional("kl_div", out=False, since="1.13.0")(
    lambda self, target, reduction=MEAN, *, log_target=False: _kl_div(self, target, reduction, log_target)
)


# ------------------------------------------------------------------------------------------------------- negative likelihood


def _nll(
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    *,
    empty: float,
    single: bool = True,
    _alone: bool = True,
) -> tuple[Tensor, Tensor]:
    x, y = self.array, target.array
    if x.ndim == 1 and not y.ndim and not _alone:
        raise fail("1D target tensor expected, multi-target not supported")
    if x.ndim == y.ndim == 1:  # for a single sample, only the first target counts
        if y.size != (1 if single else x.size) or not y.size:
            raise raised(
                "ValueError", f"For 1D input, 1D target must have size {1 if single else x.size}, but got target size: {y.size}"
            )
        y = y[0]
    if x.dtype.kind in "iub":
        raise not_implemented("nll_loss_out_frame", x.dtype)
    if y.dtype not in {INT64, np.dtype(np.uint8)}:
        raise fail(f"expected scalar type Long but found {words(y.dtype)}")
    classes = x.shape[1] if x.ndim > 1 else x.shape[0]
    wide = np.moveaxis(x.astype(FLOAT64), 1, -1) if x.ndim > 1 else x.astype(FLOAT64)
    if y.shape != wide.shape[:-1]:
        raise raised(
            "ValueError", f"Expected input batch_size ({x.shape[0]}) to match target batch_size ({y.shape[0] if y.ndim else 1})."
        )
    kept = y != ignore_index
    bad = kept & ((y < 0) | (y >= classes))
    if bad.any():
        raise raised("IndexError", f"Target {int(y[bad][0])} is out of bounds.")
    if weight is not None and (weight.array.size != classes or (x.ndim < 3 and weight.array.ndim != 1)):
        raise fail(
            f"weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of shape: {list(weight.array.shape)}"
        )
    if weight is not None and weight.array.dtype != x.dtype:
        raise fail(f"expected scalar type {words(x.dtype)} but found {words(weight.array.dtype)}")
    if not classes:  # then every target is ignored
        wide, classes = np.zeros((*wide.shape[:-1], 1)), 1
    places = np.where(kept, y, 0).astype(INT64)
    weights = np.ones(classes) if weight is None else weight.array.astype(FLOAT64).reshape(-1)
    each = np.where(kept, weights[places], 0.0)
    chosen = np.take_along_axis(wide, places[..., None], axis=-1)[..., 0]
    value = np.where(kept, -each * chosen, 0.0)
    total = np.asarray(each.sum())
    if reduction == NONE:
        return Tensor(value.astype(x.dtype)), Tensor((total if not y.ndim else np.zeros(())).astype(x.dtype))
    if reduction != MEAN:  # also for unknown reductions
        return Tensor(np.asarray(value.sum()).astype(x.dtype)), Tensor(total.astype(x.dtype))
    mean = np.asarray(value.sum()).astype(x.dtype).astype(FLOAT64) / total if total else np.asarray(empty if x.size else np.nan)
    return Tensor(np.asarray(mean).astype(x.dtype)), Tensor(total.astype(x.dtype))


def _losses() -> None:
    # If all targets are ignored, the mean is 0 up to 1.10 and NaN since 1.11; the mean of an empty input is always NaN.
    # Up to 2.8 a 1-D input needs one target for each class, and only the first counts; since 2.9 it needs one target.
    # From 1.4 to 1.9 a sample without a batch dimension needs a 1-D target.
    for since, empty, single, alone in (
        ("1.0.0", 0.0, False, True), ("1.4.0", 0.0, False, False), ("1.10.0", 0.0, False, True), ("1.11.0", np.nan, False, True), ("2.9.0", np.nan, True, True),
    ):  # fmt: skip

        def call(
            self: Tensor,
            target: Tensor,
            weight: Tensor | None = None,
            reduction: int = MEAN,
            ignore_index: int = -100,
            empty: float = empty,
            single: bool = single,
            _alone: bool = alone,
        ) -> Tensor:
            return _nll(self, target, weight, reduction, ignore_index, empty=empty, single=single, _alone=_alone)[0]

        def both(
            self: Tensor,
            target: Tensor,
            weight: Tensor | None,
            reduction: int,
            ignore_index: int,
            empty: float = empty,
            single: bool = single,
            _alone: bool = alone,
        ) -> tuple[Tensor, Tensor]:
            return _nll(self, target, weight, reduction, ignore_index, empty=empty, single=single, _alone=_alone)

        operator("aten::nll_loss", "aten::nll_loss2d", "aten::nll_loss_nd", since=since)(call)
        operator("aten::nll_loss_forward", "aten::nll_loss2d_forward", since=since)(both)

        def cross_entropy(
            self: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = MEAN, ignore_index: int = -100, label_smoothing: float = 0.0,
            empty: float = empty, single: bool = single,
        ) -> Tensor:  # fmt: skip
            return _cross(self, target, weight, reduction, ignore_index, label_smoothing, empty, single)

        if alone and since != "1.10.0":
            operator("aten::cross_entropy_loss", since=since)(cross_entropy)


_losses()


def _one_for_each_class(weight: Array, classes: int, reduction: int) -> None:
    """Check the shape of a weight, beyond its number of elements, for smoothed losses and for targets that are probabilities."""
    if not weight.ndim:
        raise raised("IndexError", "Dimension specified as 0 but tensor has no dimensions")
    if weight.shape[0] != weight.size:
        raise fail(f"shape '[1, {weight.shape[0]}]' is invalid for input of size {weight.size}")
    if weight.size != classes or (weight.ndim != 1 and reduction == MEAN):
        raise fail(
            f"cross_entropy: weight tensor should be defined for all {classes} classes, but got one of shape {list(weight.shape)}"
        )


def _cross(
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    smoothing: float,
    empty: float,
    single: bool,
) -> Tensor:
    x = self.array
    at = 1 if x.ndim > 1 else 0
    logs = log_softmax_of(x.astype(FLOAT64), at)
    classes = x.shape[at]
    floats = target.array.shape == x.shape
    if floats and ignore_index >= 0:
        raise fail("ignore_index is not supported for floating point target")
    if (floats or smoothing > 0) and reduction not in {NONE, MEAN, SUM}:
        raise fail(f"Invalid reduction type encountered in cross_entropy: {reduction}")
    if smoothing > 1:
        raise fail(f"label_smoothing must be between 0.0 and 1.0. Got: {smoothing}")
    smoothing = smoothing if smoothing > 0 else 0.0
    if floats and target.array.dtype.kind in "iub":
        raise fail(f"Expected floating point type for target with class probabilities, got {words(target.array.dtype)}")
    if weight is not None and (smoothing or floats):
        _one_for_each_class(weight.array, classes, MEAN if floats else reduction)
    weights = np.ones(classes) if weight is None else weight.array.astype(FLOAT64)
    shaped = weights.reshape(*(1,) * at, -1, *(1,) * (x.ndim - at - 1))
    if floats:
        wanted = target.array.astype(FLOAT64) * (1 - smoothing) + smoothing / classes
        value = -(wanted * shaped * logs).sum(axis=at)
        if reduction == MEAN:
            return Tensor(np.asarray(value.sum() / (x.size // classes)).astype(x.dtype))
        return _reduce(np.asarray(value), reduction, x.dtype)
    if weight is not None and weight.array.dtype != x.dtype:
        raise fail(f"expected scalar type {words(x.dtype)} but found {words(weight.array.dtype)}")
    double = None if weight is None else Tensor(weight.array.astype(FLOAT64))
    plain, total = _nll(Tensor(logs), target, double, reduction, ignore_index, empty=empty, single=single)
    if not smoothing:
        return Tensor(plain.array.astype(x.dtype))
    kept = target.array != ignore_index
    smooth = np.where(kept, -(logs * shaped).sum(axis=at), 0.0)
    if reduction == MEAN:
        divisor = float(total.array) if weight is not None else float(kept.sum())
        spread = np.asarray(smooth.sum() / divisor)
    else:
        spread = np.asarray(smooth.sum()) if reduction == SUM else smooth
    return Tensor(((1 - smoothing) * plain.array + smoothing / classes * spread).astype(x.dtype))


# ---------------------------------------------------------------------------------------------------------------- margins


@operator("aten::hinge_embedding_loss")
def hinge_embedding_loss(self: Tensor, target: Tensor, margin: float = 1.0, reduction: int = MEAN) -> Tensor:
    """The input where the target is 1, ``max(0, margin - input)`` where it is -1."""
    kind, (x, y) = _floats("hinge_embedding_loss", self, target)
    hinge = margin - x
    value = np.where(y != 1, np.where(hinge < 0, 0.0, hinge), 0.0) + np.where(y != -1, x, 0.0)
    return _reduce(value, reduction, kind if self.array.dtype.kind in "iub" else self.array.dtype)


@operator("aten::multilabel_soft_margin_loss")
def multilabel_soft_margin_loss(self: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = MEAN) -> Tensor:
    """A binary cross entropy for each of several independent labels."""
    kind, (x, y) = _floats("multilabel_soft_margin_loss", self, target)
    value = -(y * -np.logaddexp(0, -x) + (1 - y) * -np.logaddexp(0, x))
    if weight is not None:
        value = value * weight.array.astype(FLOAT64)
    classes = value.shape[-1] if value.ndim else 1
    total = np.asarray(value.sum(axis=-1) if value.ndim else value)
    return _reduce(rounded(total, kind) / np.float64(classes), reduction, kind)


@operator("aten::poisson_nll_loss")
def poisson_nll_loss_1_2(input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int) -> Tensor:  # noqa: A002
    """Up to 1.3 the Stirling term is computed but never added."""
    del full
    return poisson_nll_loss(input, target, log_input, False, eps, reduction)


@operator("aten::poisson_nll_loss", since="1.4.0")
def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int) -> Tensor:  # noqa: A002
    """The negative log likelihood of counts with a Poisson distribution; each step is rounded to the dtype of the elements."""
    kind, (x, y) = _floats("poisson_nll_loss", input, target)

    def step(values: Array) -> Array:
        return np.asarray(rounded(values, kind))

    value = step(step(np.exp(x)) - step(y * x)) if log_input else step(x - step(y * step(np.log(step(x + eps)))))
    if full:
        root = step(0.5 * step(np.log(step(2 * np.pi * y))))
        stirling = step(step(step(y * step(np.log(y))) - y) + root)
        value = step(value + np.where(y > 1, stirling, 0.0))
    return _reduce(value, reduction, kind)
