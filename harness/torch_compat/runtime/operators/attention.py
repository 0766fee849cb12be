"""Attention as one operator.

A query that may attend to nothing gives NaN up to 2.4 and zeros since 2.5. The kernel for batches of heads in one pass ("flash") also
gives zeros for a query whose scores are all NaN, since 2.5; since 2.14 it also accepts inputs of three dimensions.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from torch_compat.arrays import repeated
from torch_compat.runtime.operators._common import BOOL, FLOAT64, Array, fail, random, words
from torch_compat.runtime.operators._products import exact, multiplied
from torch_compat.runtime.operators.activations import gelu_of
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable


def _weights(scores: Array, era: int, *, flash: bool = False) -> Array:
    """The attention weights: softmax over the last dimension."""
    most = scores.max(axis=-1, keepdims=True) if scores.shape[-1] else np.zeros((*scores.shape[:-1], 1))
    powers = np.exp(scores - most)
    result = powers / powers.sum(axis=-1, keepdims=True)
    if era >= 1:
        result = np.where(most == -np.inf, 0.0, result)
    if flash and scores.shape[-1]:
        result = np.where(
            np.fmax.reduce(np.where(np.isnan(scores), -np.inf, scores), axis=-1, keepdims=True) == -np.inf, 0.0, result
        )
    return result


def attend(
    query: Array, key: Array, value: Array, mask: Array | None, *, is_causal: bool, scale: float | None, era: int
) -> tuple[Array, Array]:
    """The outputs and weights, in the dtypes of the arrays."""
    q, k, v = exact(query), exact(key), exact(value)
    factor = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    scores = multiplied(q, np.swapaxes(k, -1, -2)) * factor
    if is_causal:
        seen = np.tril(np.ones(scores.shape[-2:], BOOL))
        scores = np.where(seen, scores, -np.inf)
    if mask is not None:
        # a bool mask is added as a mask of numbers, so a masked NaN score stays NaN
        scores = scores + (np.where(mask, 0.0, -np.inf) if mask.dtype == BOOL else exact(mask))
    flash = era >= 1 and mask is None and (query.ndim == 4 or (era >= 2 and query.ndim == 3))
    weights = _weights(scores, era, flash=flash)
    return multiplied(weights, v).astype(value.dtype), weights.astype(query.dtype)


def _versions() -> None:
    for since, era, kind in (
        ("1.0.0", 0, ""),
        ("2.1.0", 0, "unmasked"),
        ("2.3.0", 0, "any"),
        ("2.5.0", 1, "any"),
        ("2.14.0", 2, "any"),
    ):

        def call(
            query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0, is_causal: bool = False, *,
            scale: float | None = None, enable_gqa: bool = False, era: int = era, kind: str = kind,
        ) -> Tensor:  # fmt: skip
            result = _checked(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa, era)[0]
            masked = attn_mask is not None and (kind == "unmasked" or attn_mask.requires_grad)
            return Tensor(laid_out(result, query.array, era) if kind and not masked else result)

        def both(
            query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0, is_causal: bool = False,
            dropout_mask: Tensor | None = None, *, scale: float | None = None, enable_gqa: bool = False, era: int = era, kind: str = kind,
        ) -> tuple[Tensor, Tensor]:  # fmt: skip
            del dropout_mask
            if kind and attn_mask is not None and attn_mask.array.dtype == BOOL:
                # since 2.1 it is added unchanged: the caller has already converted it to a mask of numbers
                attn_mask = Tensor(attn_mask.array.astype(query.array.dtype))
            result = _checked(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa, era)
            return Tensor(result[0]), Tensor(result[1])

        def both_1_13(
            query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
            need_attn_weights: bool = False, is_causal: bool = False, *, both: Callable[..., tuple[Tensor, Tensor]] = both,
        ) -> tuple[Tensor, Tensor]:  # fmt: skip
            """In 1.13 the flag for returning weights comes before ``is_causal``; weights are always returned."""
            del need_attn_weights
            results: tuple[Tensor, Tensor] = both(query, key, value, attn_mask, dropout_p, is_causal)
            return results

        operator("aten::scaled_dot_product_attention", since=since)(call)
        if since == "1.0.0":
            operator("aten::_scaled_dot_product_attention_math", since=since)(both_1_13)
        operator("aten::_scaled_dot_product_attention_math", since=max(since, "2.0.0"))(both)


def laid_out(array: Array, query: Array, era: int) -> Array:
    """Lay out the result like the flash attention kernel, for four dimensions and equal widths.

    Up to 2.4 (era 0) heads (dimension 1) come after the rows in memory; since 2.5 it has the order of the query. Without this kernel the
    result is contiguous: up to 2.0, with a mask up to 2.2, and with a mask that requires gradients.
    """
    if query.ndim != 4 or array.shape != query.shape:
        return array
    if not era:
        return np.ascontiguousarray(array.swapaxes(1, 2)).swapaxes(1, 2)
    if query.flags.c_contiguous:
        return array
    result = np.empty_like(query, dtype=array.dtype, order="K")
    result[...] = array
    return result


def _checked(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, dropout_p: float, is_causal: bool, scale: float | None,
    enable_gqa: bool, era: int,
) -> tuple[Array, Array]:  # fmt: skip
    q, k, v = query.array, key.array, value.array
    if q.dtype != k.dtype or q.dtype != v.dtype:
        raise fail(
            f"Expected query, key, and value to have the same dtype, but got query.dtype: {words(q.dtype)} key.dtype: {words(k.dtype)} and value.dtype: "
            f"{words(v.dtype)} instead."
        )
    if min(q.ndim, k.ndim, v.ndim) < 2:
        raise fail(
            f"Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: {q.ndim}, key.dim: {k.ndim} and value.dim: {v.ndim} instead."
        )
    if is_causal and attn_mask is not None:
        raise fail("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
    if dropout_p:
        raise random("aten::scaled_dot_product_attention with dropout")
    if attn_mask is not None and attn_mask.array.dtype not in {BOOL, q.dtype, np.dtype(np.float32)}:
        raise fail(
            f"Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: {words(attn_mask.array.dtype)}"
        )
    if enable_gqa:
        times = q.shape[-3] // k.shape[-3]
        k, v = repeated(k, times, axis=-3), repeated(v, times, axis=-3)
    return attend(q, k, v, None if attn_mask is None else attn_mask.array, is_causal=is_causal, scale=scale, era=era)


_versions()


# ----------------------------------------------------------------------------------- the fast paths of torch.nn.Transformer


def _heads(x: Array, count: int) -> Array:
    batch, length, width = x.shape
    return x.reshape(batch, length, count, width // count).transpose(0, 2, 1, 3)


def _multi_head(
    q: Array,
    k: Array,
    v: Array,
    count: int,
    qkv_weight: Array,
    qkv_bias: Array,
    proj_weight: Array,
    proj_bias: Array,
    mask: Array | None,
) -> tuple[Array, Array]:
    width = qkv_weight.shape[0] // 3
    parts = [
        _heads(
            multiplied(exact(item), exact(qkv_weight[at * width : (at + 1) * width]).T)
            + exact(qkv_bias[at * width : (at + 1) * width]),
            count,
        )
        for at, item in enumerate((q, k, v))
    ]
    scores = multiplied(parts[0], np.swapaxes(parts[1], -1, -2)) / math.sqrt(width // count)
    if mask is not None:
        scores = np.where(mask, -np.inf, scores)
    weights = _weights(scores, 0)
    joined = multiplied(weights, parts[2]).transpose(0, 2, 1, 3).reshape(q.shape[0], q.shape[1], width)
    return multiplied(joined, exact(proj_weight).T) + exact(proj_bias), weights


def _fast_mask(mask: Tensor | None, mask_type: int | None, length: int) -> Array | None:
    """Convert a mask: type 0 is for pairs of positions, type 1 for positions to ignore in each sample."""
    if mask is None:
        return None
    array = mask.array != 0
    return array[:, None, None, :] if mask_type == 1 else array.reshape(1, 1, length, -1) if array.ndim == 2 else array


def _dimension(query: Tensor, embed_dim: int) -> None:
    if query.array.shape[-1] != embed_dim:
        raise fail(f"passed-in embed_dim {embed_dim} didn't match last dim of query {query.array.shape[-1]}")


@operator("aten::_native_multi_head_attention")
def native_multi_head_attention(
    query: Tensor, key: Tensor, value: Tensor, embed_dim: int, num_head: int, qkv_weight: Tensor, qkv_bias: Tensor, proj_weight: Tensor,
    proj_bias: Tensor, mask: Tensor | None = None, need_weights: bool = True, average_attn_weights: bool = True, mask_type: int | None = None,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """Multi-head attention with its projections."""
    _dimension(query, embed_dim)
    kind = query.array.dtype
    result, weights = _multi_head(
        query.array, key.array, value.array, num_head, qkv_weight.array, qkv_bias.array, proj_weight.array, proj_bias.array,
        _fast_mask(mask, mask_type, query.array.shape[1]),
    )  # fmt: skip
    shown = weights.mean(axis=1) if average_attn_weights else weights
    return Tensor(result.astype(kind)), (Tensor(shown.astype(kind)) if need_weights else None)


def _normed(x: Array, eps: float, weight: Tensor, bias: Tensor) -> Array:
    center = x.mean(axis=-1, keepdims=True)
    inverse = 1 / np.sqrt(((x - center) ** 2).mean(axis=-1, keepdims=True) + eps)
    return (x - center) * inverse * exact(weight.array) + exact(bias.array)


@operator("aten::_transformer_encoder_layer_fwd")
def transformer_encoder_layer_fwd(
    src: Tensor, embed_dim: int, num_heads: int, qkv_weight: Tensor, qkv_bias: Tensor, proj_weight: Tensor, proj_bias: Tensor, use_gelu: bool,
    norm_first: bool, eps: float, norm_weight_1: Tensor, norm_bias_1: Tensor, norm_weight_2: Tensor, norm_bias_2: Tensor, ffn_weight_1: Tensor,
    ffn_bias_1: Tensor, ffn_weight_2: Tensor, ffn_bias_2: Tensor, mask: Tensor | None = None, mask_type: int | None = None,
) -> Tensor:  # fmt: skip
    """A whole transformer encoder layer."""
    _dimension(src, embed_dim)
    blocked = _fast_mask(mask, mask_type, src.array.shape[1])

    def heads(x: Array) -> Array:
        return _multi_head(x, x, x, num_heads, qkv_weight.array, qkv_bias.array, proj_weight.array, proj_bias.array, blocked)[0]

    def feed(x: Array) -> Array:
        inner = multiplied(x, exact(ffn_weight_1.array).T) + exact(ffn_bias_1.array)
        return multiplied(gelu_of(inner) if use_gelu else np.maximum(inner, 0), exact(ffn_weight_2.array).T) + exact(
            ffn_bias_2.array
        )

    x = src.array.astype(FLOAT64)
    if norm_first:
        x = x + heads(_normed(x, eps, norm_weight_1, norm_bias_1))
        x = x + feed(_normed(x, eps, norm_weight_2, norm_bias_2))
    else:
        x = _normed(x + heads(x), eps, norm_weight_1, norm_bias_1)
        x = _normed(x + feed(x), eps, norm_weight_2, norm_bias_2)
    return Tensor(x.astype(src.array.dtype))
