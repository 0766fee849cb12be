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
USING = (
    "mm", "bmm", "mv", "dot", "vdot", "inner", "matmul", "linalg_matmul", "__matmul__", "addmm", "addmv", "baddbmm", "addbmm", "linear", "einsum",
    "chain_matmul", "linalg_multi_dot", "tensordot", "bilinear", "lstm", "gru", "rnn_tanh", "rnn_relu", "lstm_cell", "gru_cell", "rnn_tanh_cell",
    "rnn_relu_cell", "mkldnn_rnn_layer", "scaled_dot_product_attention", "multi_head_attention_forward", "kron", "matrix_power",
    "linalg_matrix_power", "conv1d", "conv2d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "_convolution", "convolution", "convolution_overrideable", "conv_tbc", "thnn_conv2d",
    "mkldnn_convolution", "_slow_conv2d_forward", "layer_norm", "native_layer_norm",
)  # fmt: skip


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
    if name.removeprefix("aten::").removesuffix("_") not in USING and name.removeprefix("aten::") not in USING:
        return call
    period = bisect_right(PERIODS, horizon)

    def chosen(*args: Any, **keywords: Any) -> Any:
        libraries.period, libraries.release = period, horizon
        return call(*args, **keywords)

    return chosen
