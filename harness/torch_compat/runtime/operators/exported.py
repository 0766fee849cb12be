"""Operators that only exported programs call: assertions, symbolic sizes, and operators that ``run_decompositions`` inserts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.errors import Unsupported
from torch_compat.runtime import dtypes
from torch_compat.runtime.limits import meter
from torch_compat.runtime.operators._common import Array, broadcast, fail, not_implemented
from torch_compat.runtime.operators._memory_formats import is_formatted
from torch_compat.runtime.operators.attention import attend, laid_out
from torch_compat.runtime.operators.normalization import group_norm, native_batch_norm
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor
from torch_compat.runtime.values import raised, text_out

if TYPE_CHECKING:
    from torch_compat.runtime.operators._common import Scalar

# ------------------------------------------------------------------------------------------------ assertions


@operator("aten::_assert_scalar", of="any")
def assert_scalar(self: Scalar, assert_msg: str) -> None:
    """Raise unless a number is true."""
    if not self:
        raise raised("RuntimeError", text_out(assert_msg))


@operator("aten::_assert_async")
def assert_async(self: Tensor, assert_msg: str = "Expected Tensor with single nonzero value, but got zero") -> None:
    """Raise unless the only element of a tensor is true."""
    if self.numel != 1:
        raise fail(f"Boolean value of Tensor with {'no values' if not self.numel else 'more than one value'} is ambiguous")
    if not self.item():
        raise raised("RuntimeError", text_out(assert_msg))


@operator("aten::_functional_assert_async", gradient=False)
def functional_assert_async(self: Tensor, assert_msg: str, dep_token: Tensor) -> Tensor:
    """Same in a functionalized program, which passes the token on."""
    assert_async(self, assert_msg)
    return Tensor(dep_token.array.copy())


@operator("aten::_make_dep_token", of="any")
def make_dep_token(**_: Any) -> Tensor:
    """An empty token."""
    return Tensor(np.zeros((), np.float32))


@operator("aten::_assert_tensor_metadata")
def assert_tensor_metadata(
    a: Tensor, size: Any = None, stride: Any = None, dtype: Any = None, *, device: Any = None, layout: Any = None
) -> None:
    """Raise unless a tensor has this shape, these strides and this dtype."""
    del device, layout
    if size is not None and tuple(size) != a.shape:
        raise raised("RuntimeError", f"Tensor sizes mismatch! Expected: {list(size)}, Got: {list(a.shape)}")
    if stride is not None and tuple(stride) != a.strides:
        raise raised("RuntimeError", f"Tensor strides mismatch! Expected: {list(stride)}, Got: {list(a.strides)}")
    wanted = dtypes.as_dtype(dtype)
    if wanted is not None and wanted is not a.dtype:
        raise raised("RuntimeError", f"Tensor dtype mismatch! Expected: {wanted}, Got: {a.dtype}")


@operator("aten::sym_constrain_range", "aten::sym_constrain_range_for_size", of="any")
def sym_constrain_range(size: Scalar, *, min: int | None = None, max: int | None = None) -> None:  # noqa: A002 - of the schema
    """Raise unless a number lies in a range."""
    low, high = -(1 << 63) if min is None else min, (1 << 63) - 1 if max is None else max
    if high < low:
        raise fail(f"Max must be greater than or equal to min. Got min={low} max={high}")
    if not low <= size <= high:  # type: ignore[operator]
        raise fail(f"Invalid value range for {size} between [{low}, {high}].")


@operator("aten::_functional_sym_constrain_range", "aten::_functional_sym_constrain_range_for_size", of="any")
def functional_sym_constrain_range(size: Scalar, min: int | None, max: int | None, dep_token: Tensor) -> Tensor:  # noqa: A002
    """The same in a functionalized program."""
    sym_constrain_range(size, min=min, max=max)
    return Tensor(dep_token.array.copy())


# ------------------------------------------------------------------------------------------------ sizes


@operator("aten::sym_stride")
def sym_stride(self: Tensor, dim: int | None = None) -> Any:
    """One stride, or all strides."""
    if dim is None:
        return list(self.strides)
    if not -self.ndim <= dim < self.ndim:
        raise raised(
            "IndexError", f"Dimension out of range (expected to be in range of [{-self.ndim}, {self.ndim - 1}], but got {dim})"
        )
    return self.strides[dim]


@operator("aten::sym_storage_offset")
def sym_storage_offset(self: Tensor) -> int:
    """The storage offset of a tensor."""
    return self.storage_offset


@operator("aten::sym_is_contiguous")
def sym_is_contiguous(self: Tensor, memory_format: int = 0) -> bool:
    """Whether a tensor is contiguous, or has another memory format."""
    return is_formatted(self.array, memory_format)


# ------------------------------------------------------------------------------------------------ copies


@operator("aten::lift_fresh_copy")
def lift_fresh_copy(self: Tensor) -> Tensor:
    """A copy of a constant of the program."""
    return Tensor(self.array.copy())


@operator("aten::empty_permuted", of="any")
def empty_permuted(size: list[int], physical_layout: list[int], *, dtype: Any = None, **_: Any) -> Tensor:
    """A tensor whose dimensions have another order in memory; its elements are zeros here."""
    shape = tuple(size)
    meter.array(math.prod(shape))
    if sorted(physical_layout) != list(range(len(shape))):
        raise fail("Dimensions of physical_layout must be a permutation")
    kind = (dtypes.as_dtype(dtype) or dtypes.default_dtype()).array
    laid = np.zeros([shape[dim] for dim in physical_layout], kind)
    return Tensor(laid.transpose(np.argsort(physical_layout)))


# --------------------------------------------------------------------------------------------- variants of other operators


@operator("aten::_native_batch_norm_legit_no_training")
def native_batch_norm_legit_no_training(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor, running_var: Tensor, momentum: float, eps: float  # noqa: A002
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Batch normalization with the running statistics."""
    return native_batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)


@operator("aten::_native_batch_norm_legit_functional")
def native_batch_norm_legit_functional(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor, running_var: Tensor, training: bool, momentum: float,  # noqa: A002
    eps: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Batch normalization that returns the running statistics without updating them."""
    mean, var = Tensor(running_mean.array.copy()), Tensor(running_var.array.copy())
    return (*native_batch_norm(input, weight, bias, mean, var, training, momentum, eps), mean, var)


@operator("aten::native_group_norm")
def native_group_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, N: int, C: int, HxW: int, group: int, eps: float  # noqa: A002, N803 - of the schema
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Group normalization with the mean and the inverse deviation of each group."""
    result = group_norm(input, group, weight, bias, eps)
    if input.numel != N * C * HxW or group < 1 or C % group:
        raise fail(f"Expected {N * C * HxW} elements in groups of {group}")
    wide = input.array.reshape(N, group, C // group * HxW).astype(np.float64)
    mean = wide.mean(axis=2)
    inverse = 1 / np.sqrt(wide.var(axis=2) + eps)
    return result, Tensor(mean.astype(input.array.dtype)), Tensor(inverse.astype(input.array.dtype))


@operator("aten::_fused_rms_norm")
def fused_rms_norm(
    input: Tensor, normalized_shape: list[int], weight: Tensor | None, eps: float | None  # noqa: A002 - of the schema
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Normalization by the root of the mean square, and the inverse of that, which has at least 32 bits.

    Only the number of the normalized sizes counts, not the sizes: `rms_norm`, which programs call, checks these.
    """
    x, count = input.array, len(normalized_shape)
    if x.dtype.kind == "c":
        raise Unsupported("the reference reader does not support normalization of complex tensors", code="value")
    if x.dtype.kind not in "fV":
        raise not_implemented("rms_norm", x.dtype)
    if count > max(x.ndim, 1):
        raise fail("dim 1 appears multiple times in the list of dims")
    dims = tuple(range(x.ndim - count, x.ndim)) if count and x.ndim else None
    narrow = x.dtype.itemsize == 2
    double = x.astype(np.float64)
    smallest = float(np.finfo(np.float32 if narrow else x.dtype).eps) if eps is None else eps
    sums = np.asarray((double * double).sum(axis=dims, keepdims=True))
    with np.errstate(all="ignore"):
        inverse = 1 / np.sqrt(sums / np.float64(x.size // sums.size if sums.size else 0) + smallest)
        result = double * inverse
    if weight is not None:
        broadcast(result, weight.array)
        result = result * weight.array.astype(np.float64)
    return Tensor(result.astype(x.dtype)), Tensor(inverse.astype(np.float32 if narrow else x.dtype))


@operator("aten::_safe_softmax")
def safe_softmax(self: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """Softmax, with zeros where everything is masked."""
    array = self.array if dtype is None else self.array.astype(dtypes.as_dtype(dtype).array)  # type: ignore[union-attr]
    if not array.size:
        return Tensor(array.copy())
    wide = array.astype(np.float64)
    powers = np.exp(wide - wide.max(axis=dim, keepdims=True))
    result = powers / powers.sum(axis=dim, keepdims=True)
    masked = (wide == -np.inf).all(axis=dim, keepdims=True)
    return Tensor(np.where(masked, 0, result).astype(array.dtype))


def _attended(
    query: Tensor, key: Tensor, value: Tensor, mask: Array | None, *, is_causal: bool, scale: float | None, era: int
) -> tuple[Tensor, Tensor]:
    """Attention, and the log-sum-exp of its scores."""
    q, k = query.array.astype(np.float64), key.array.astype(np.float64)
    result = attend(query.array, key.array, value.array, mask, is_causal=is_causal, scale=scale, era=era)[0]
    scores = q @ k.swapaxes(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == np.bool_ else scores + mask
    if is_causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], np.bool_)), scores, -np.inf)
    sums = np.log(np.exp(scores).sum(axis=-1)).astype(np.float32)
    return Tensor(laid_out(result, query.array, era)), Tensor(np.ascontiguousarray(sums.swapaxes(1, 2)).swapaxes(1, 2))


def _flash(era: int, since: str) -> None:
    @operator("aten::_scaled_dot_product_flash_attention_for_cpu", since=since)
    def flash(
        query: Tensor, key: Tensor, value: Tensor, dropout_p: float = 0.0, is_causal: bool = False, *, attn_mask: Tensor | None = None,
        scale: float | None = None,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """Attention, and the log-sum-exp of its scores."""
        if dropout_p:
            raise fail("scaled_dot_product_attention_flash_attention: Currently do not support dropout > 0")
        mask = None if attn_mask is None else attn_mask.array
        return _attended(query, key, value, mask, is_causal=is_causal, scale=scale, era=era)


for _since, _era in (("2.1.0", 0), ("2.5.0", 1), ("2.14.0", 2)):
    _flash(_era, _since)


@operator("aten::_scaled_dot_product_flash_attention", since="2.1.0")
def flash_of_all_devices(
    query: Tensor, key: Tensor, value: Tensor, dropout_p: float = 0.0, is_causal: bool = False,
    return_debug_mask: bool = False, *, scale: float | None = None,
) -> tuple[Tensor | int | None, ...]:  # fmt: skip
    """Attention on the CPU up to 2.2, under the name that is used only for other devices since 2.3."""
    if dropout_p or return_debug_mask:
        raise Unsupported("the reference reader does not support flash attention with dropout or a debug mask", code="operator")
    result, sums = _attended(query, key, value, None, is_causal=is_causal, scale=scale, era=0)
    return result, sums, None, None, 0, 0, None, None, None


@operator("aten::_scaled_dot_product_flash_attention", since="2.3.0")
def flash_of_other_devices(*_: object, **__: object) -> None:
    """Refused since 2.3: the operator exists only for other devices."""
    raise raised(
        "NotImplementedError", "Could not run 'aten::_scaled_dot_product_flash_attention' with arguments from the 'CPU' backend."
    )
