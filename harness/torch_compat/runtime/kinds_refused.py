"""Operators that every release refuses for complex numbers, or for a tensor without dimensions, and on which NumPy would fail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch_compat.runtime.tensor import Tensor
from torch_compat.runtime.values import raised

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["refusing_kinds"]

REAL = frozenset({
    "floor", "ceil", "trunc", "fix", "frac", "frexp", "signbit", "atan2", "arctan2", "hypot", "nextafter", "fft_rfft", "fft_rfft2", "fft_rfftn",
    "fft_ihfft", "_unique", "_unique2",
})  # fmt: skip
"""Operators on real numbers only; not ``round``, which 1.6 computes for complex numbers."""
DIMENSIONED = frozenset({
    "diag_embed", "diff", "trapz", "trapezoid", "unflatten", "slice_scatter", "linalg_cross", "cross_entropy_loss", "local_response_norm",
    "nuclear_norm", "fft_fft", "fft_ifft", "fft_rfft", "fft_irfft", "fft_hfft", "fft_ihfft", "fft_rfftn", "fft_irfftn",
})  # fmt: skip
"""Operators that refuse a tensor without dimensions as their first argument."""


def refusing_kinds(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap an operator of :data:`REAL` or :data:`DIMENSIONED` so that it refuses such tensors; return any other operator unchanged."""
    short = name.removeprefix("aten::")
    bare = short.removesuffix("_")
    real, dimensioned = short in REAL or bare in REAL, short in DIMENSIONED
    if not (real or dimensioned):
        return call

    def guard(*args: Any, **keywords: Any) -> Any:
        if real and any(arg.__class__ is Tensor and arg.array.dtype.kind == "c" for arg in args):
            raise raised("RuntimeError", f"{bare} is not implemented for complex tensors")
        if dimensioned and args and args[0].__class__ is Tensor and not args[0].array.ndim:
            raise raised("IndexError", f"{short}: the tensor has no dimensions")
        return call(*args, **keywords)

    return guard
