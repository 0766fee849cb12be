"""Every change of an operator that the policy lists is modelled by the reference reader, and the other way round.

Lives in tests/runtime/operators/ beside policies/torch/changes.toml.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from torch_compat.releases.release import Release
from torch_compat.runtime.operators._interpolated import CUBIC, LINEAR
from torch_compat.runtime.registry import known

CHANGES = Path(__file__).parents[3] / "policies" / "torch" / "changes.toml"

ALIASES = {
    "clip": "clamp", "divide": "div", "multiply": "mul", "subtract": "sub", "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le",
    "not_equal": "ne", "fix": "trunc", "concat": "cat", "concatenate": "cat", "_cat": "cat", "_stack": "stack", "_s_where": "where",
    "_scaled_dot_product_attention_math": "scaled_dot_product_attention", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh",
    "arctan": "atan", "arctanh": "atanh", "special_expit": "sigmoid", "special_gammaln": "lgamma", "special_psi": "digamma",
}  # fmt: skip


def canonical(name: str) -> str:
    """Without the form: in place, with indices, of autograd; under the name that the policy uses."""
    short = name.removeprefix("aten::")
    if not short.endswith("__"):
        short = short.removesuffix("_")
    short = ALIASES.get(short, short.removeprefix("special_"))
    short = re.sub(r"^__i(and|or|xor|lshift|rshift)__$", r"__\1__", short)
    return "aten::" + short.removesuffix("_forward").removesuffix("_with_indices")


ELSEWHERE = {
    "bfloat16-convolutions-computed-with-onednn-limited": "the slip convolutions-of-bfloat16",
    "bfloat16-convolutions-refused-with-onednn-limited": "the slip convolutions-of-bfloat16",
    "truth-of-imaginary-numbers": "entries of unmodelled.py: calls of which the releases before are not modelled",
    "tensors-of-floats-into-other-types": "the check of unlike types, which arithmetic has up to 1.2",
}
"""Changes that the reference reader knows otherwise than by an operator with several forms."""


WORDED = {
    *(("aten::quantize_per_tensor", Release(since)) for since in ("1.10.0", "1.11.0")),
    *((f"aten::{name}", Release("1.9.0")) for name in ("int_repr", "q_scale", "q_zero_point")),
    *(("aten::set", Release(since)) for since in ("1.3.0", "1.5.0")),
    *((f"aten::{name}_cell", Release("2.15.0")) for name in ("gru", "lstm", "rnn_relu", "rnn_tanh")),
}
"""Versions that differ in the words, or the class, of an error alone."""


LAID_OUT = {
    *((f"aten::{name}", Release("1.10.0")) for name in ("nonzero", "nonzero_numpy", "where")),
    *((f"aten::{name}_like", Release("1.5.0")) for name in ("zeros", "ones", "empty", "full")),
    ("aten::rot90", Release("1.10.0")),
    *((f"aten::{name}", Release("1.10.0")) for name in ("conj", "_conj")),
    ("aten::einsum", Release("1.13.0")),
    ("aten::einsum", Release("2.9.0")),
    ("aten::to_sparse", Release("1.12.0")),
    ("aten::qr", Release("1.9.0")),
    ("aten::linalg_qr", Release("1.9.0")),
}
"""Versions that differ in the strides of their results alone, by which no two results are told apart."""


BY_MODE = ("__interpolate", "__upsample")
LINEAR_NAMES = ("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", *BY_MODE)
ROUNDED = (
    {
        (f"aten::{name}", Release(since))
        for name in ("layer_norm", "native_layer_norm")
        for since in ("1.10.0", "2.0.0", "2.2.0", "2.8.0")
    }
    | {
        (f"aten::{name}", Release(since))
        for name in ("conv1d", "conv2d", "_convolution", "convolution", "convolution_overrideable")
        for since in ("1.6.0", "1.7.0", "1.8.0")
    }
    | {(f"aten::{name}", Release(since)) for name in LINEAR_NAMES for since in LINEAR.keys() - {"1.0.0", "1.6.0"}}
    | {
        (f"aten::{name}", Release(since))
        for name in ("upsample_bicubic2d", *BY_MODE)
        for since in CUBIC.keys() - {"1.0.0", "1.8.0", "1.9.0"}
    }
    | {(f"aten::{name}", Release(since)) for name in BY_MODE for since in ("1.6.0", "1.9.0")}
    | {("aten::group_norm", Release(since)) for since in ("2.0.0", "2.8.0")}
    | {
        (f"aten::{prefix}{name}", Release(since))
        for name, eras in (("softmax", ("1.10.0", "1.12.0")), ("log_softmax", ("1.12.0", "1.13.0")))
        for prefix in ("", "_")
        for since in eras
    }
    | {(f"aten::{name}", Release("1.5.0")) for name in ("elu", "selu", "norm")}
    | {
        (f"aten::{name}", Release("2.8.0"))
        for name in ("norm", "dist", "frobenius_norm", "linalg_vector_norm", "pairwise_distance", "triplet_margin_loss")
    }
    | {("aten::gelu", Release("2.0.0")), ("aten::soft_margin_loss", Release("2.0.0"))}
    | {
        (f"aten::{name}", Release(since))
        for name in (
            "adaptive_avg_pool1d",
            "adaptive_avg_pool2d",
            "adaptive_avg_pool3d",
            "_adaptive_avg_pool2d",
            "_adaptive_avg_pool3d",
        )
        for since in ("1.1.0", "1.7.0", "1.9.0", "1.12.0")
    }
)
"""Versions that differ in the last places of numbers alone, which the policy counts as no change."""


def test_both_sides_know_the_same_changes() -> None:
    changes = tomllib.loads(CHANGES.read_text("utf-8"))["change"]
    assert ELSEWHERE.keys() <= {change["id"] for change in changes}
    listed = {
        (canonical(operator), Release(change["since"]))
        for change in changes
        if change["id"] not in ELSEWHERE
        for operator in change["operators"]
    }
    modelled = {
        (canonical(name), since)
        for name, kinds in known().items()
        for kind, versions in kinds.items()
        if kind in {"tensor", "any"} and len(versions) > 1
        for since in versions[1:]
    }
    assert listed - modelled == set(), "listed, and not modelled"
    assert modelled - listed == WORDED | LAID_OUT | ROUNDED, "modelled, and not listed"
