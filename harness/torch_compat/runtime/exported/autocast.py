"""Autocast of the CPU: which operators compute in the lower dtype, in float32, and in the widest dtype of their arguments.

The lists are those of ``aten/src/ATen/autocast_mode.cpp`` for the CPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch_compat.runtime import dtypes
from torch_compat.runtime.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Autocast"]

LOWER = frozenset(
    [
        "conv1d",
        "conv2d",
        "conv3d",
        "conv_transpose1d",
        "conv_transpose2d",
        "conv_transpose3d",
        "conv_tbc",
        "bmm",
        "mm",
        "baddbmm",
        "addmm",
        "addbmm",
        "linear",
        "matmul",
        "scaled_dot_product_attention",
        "_native_multi_head_attention",
        "linalg_vecdot",
    ]
)
WIDER = frozenset(
    [
        "avg_pool3d",
        "binary_cross_entropy",
        "grid_sampler",
        "polar",
        "prod",
        "quantile",
        "nanquantile",
        "stft",
        "cdist",
        "trace",
        "view_as_complex",
        "cholesky",
        "cholesky_inverse",
        "cholesky_solve",
        "inverse",
        "lu_solve",
        "orgqr",
        "ormqr",
        "pinverse",
        "max_pool3d",
        "max_unpool2d",
        "max_unpool3d",
        "adaptive_avg_pool3d",
        "reflection_pad1d",
        "reflection_pad2d",
        "replication_pad1d",
        "replication_pad2d",
        "replication_pad3d",
        "mse_loss",
        "cosine_embedding_loss",
        "nll_loss",
        "nll_loss2d",
        "hinge_embedding_loss",
        "poisson_nll_loss",
        "smooth_l1_loss",
        "cross_entropy_loss",
        "l1_loss",
        "huber_loss",
        "margin_ranking_loss",
        "soft_margin_loss",
        "triplet_margin_loss",
        "multi_margin_loss",
        "ctc_loss",
        "kl_div",
        "multilabel_margin_loss",
        "binary_cross_entropy_with_logits",
        "fft_fft",
        "fft_ifft",
        "fft_rfft",
        "fft_irfft",
    ]
)
PROMOTED = frozenset({"stack", "cat", "index_copy"})


class Autocast:
    """The conversion of an operator's arguments by autocast: float32 to the lower dtype, or the lower dtype to float32.

    Parameters:
        to: the operator ``aten::to`` of the release, which casts.
        dtype: the number of the lower dtype; None for bfloat16.
    """

    def __init__(self, to: Callable[..., Any], dtype: Any) -> None:
        self.lower = dtypes.as_dtype(dtype) or dtypes.BFLOAT16
        self.to = to

    def around(self, name: str, args: list[Any], words: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """The converted arguments of an operator."""
        if name in LOWER:
            source, target = dtypes.FLOAT32, self.lower
        elif name in WIDER or (name in PROMOTED and _has_float32([*args, *words.values()])):
            source, target = self.lower, dtypes.FLOAT32
        else:
            return args, words
        cast = {key: self._cast(word, source, target) for key, word in words.items()}
        return [self._cast(arg, source, target) for arg in args], cast

    def _cast(self, value: Any, source: dtypes.Dtype, target: dtypes.Dtype) -> Any:
        if value.__class__ is list:
            return [self._cast(item, source, target) for item in value]
        if value.__class__ is Tensor and value.dtype is source:
            return self.to(value, target.code)
        return value


def _has_float32(values: list[Any]) -> bool:
    return any(
        item.__class__ is Tensor and item.dtype is dtypes.FLOAT32
        for value in values
        for item in (value if value.__class__ is list else [value])
    )
