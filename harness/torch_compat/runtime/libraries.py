"""The numeric libraries of the release whose operators run in this thread: they decide the last bits of products of matrices, and
of layer norms.

Operators that multiply matrices are many, and the same in all releases except for these bits. So they are not registered again for each
library; the dispatcher sets the period of the library before each call.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from typing import TYPE_CHECKING, Any

from torch_compat.releases.release import Release

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["libraries", "with_libraries"]

PERIODS = tuple(map(Release, ("1.7.0", "2.0.0", "2.5.0")))
"""The first releases with another version of MKL that adds products in another order."""
OF_INTEGERS = (
    "max_pool1d", "max_pool2d", "max_pool3d", "quantized_max_pool1d", "quantized_max_pool2d", "quantized_max_pool3d", "avg_pool2d", "avg_pool3d",
    "mean", "upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "_upsample_nearest_exact1d", "_upsample_nearest_exact2d",
    "_upsample_nearest_exact3d", "upsample_bilinear2d", "__interpolate", "leaky_relu", "sigmoid", "tanh", "hardsigmoid", "clamp", "hardtanh",
    "relu6", "gelu", "threshold",
)  # fmt: skip
"""Operators that compute quantized tensors with the kernels of the release."""
USING = (
    "mm", "bmm", "mv", "dot", "vdot", "inner", "matmul", "linalg_matmul", "__matmul__", "addmm", "addmv", "baddbmm", "addbmm", "linear", "einsum",
    "chain_matmul", "linalg_multi_dot", "tensordot", "bilinear", "lstm", "gru", "rnn_tanh", "rnn_relu", "lstm_cell", "gru_cell", "rnn_tanh_cell",
    "rnn_relu_cell", "mkldnn_rnn_layer", "scaled_dot_product_attention", "multi_head_attention_forward", "kron", "matrix_power",
    "linalg_matrix_power", "conv1d", "conv2d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "_convolution", "convolution", "convolution_overrideable", "conv_tbc", "thnn_conv2d",
    "mkldnn_convolution", "_slow_conv2d_forward", "layer_norm", "native_layer_norm", "quantized_lstm", "quantized_gru", "dequantize", "quantize_per_tensor",
    *OF_INTEGERS,
)  # fmt: skip

QUANTIZED = "quantized::"
"""The namespace of the operators that fbgemm computes."""


class Libraries(threading.local):
    """The libraries of the release.

    Attributes:
        period: how many of :data:`PERIODS` have begun.
        release: the release.
    """

    period = len(PERIODS)
    release = Release("9999.0.0")


libraries = Libraries()


def with_libraries(name: str, call: Callable[..., Any], horizon: Release) -> Callable[..., Any]:
    """Wrap an operator that multiplies matrices, so that it finds the libraries of the horizon; return any other unchanged."""
    short = name.removeprefix("aten::")
    if short.removesuffix("_") not in USING and short not in USING and not name.startswith(QUANTIZED):
        return call
    period = bisect_right(PERIODS, horizon)

    def chosen(*args: Any, **keywords: Any) -> Any:
        libraries.period, libraries.release = period, horizon
        return call(*args, **keywords)

    return chosen
