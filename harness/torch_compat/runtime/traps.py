"""Calls whose sizes a release divides by zero, which ends its process: zero groups, strides, factors, and sizes of nothing.

Newer releases refuse most of them. ``slipping.py`` ends a call that is listed here as the slip ``division-trap``.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from torch_compat.releases.sets import ReleaseSet
from torch_compat.runtime.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch_compat.releases.release import Release

__all__ = ["traps_of"]


class _Trap(NamedTuple):
    """A kind of call that traps.

    Attributes:
        operators: a regular expression for the names, without ``aten::``.
        releases: the releases that divide.
        applies: whether arguments are divided by zero.
    """

    operators: str
    releases: ReleaseSet
    applies: Callable[[tuple[Any, ...], dict[str, Any]], bool]


def _given(args: tuple[Any, ...], keywords: dict[str, Any], at: int, name: str) -> Any:
    return args[at] if len(args) > at else keywords.get(name)


def _is_zero(value: Any) -> bool:
    """Whether a size, or one of several sizes, is zero."""
    return 0 in value if value.__class__ is list else value.__class__ is int and value == 0


def _zero(at: int, name: str, *, least: int = 0) -> Callable[[tuple[Any, ...], dict[str, Any]], bool]:
    """Whether an argument is zero, or contains zero, and the tensor has enough dimensions."""

    def applies(args: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
        return (
            bool(args)
            and args[0].__class__ is Tensor
            and args[0].array.ndim >= least
            and _is_zero(_given(args, keywords, at, name))
        )

    return applies


def _stride_of_window(args: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
    """Whether a stride is zero; without a stride, the window is the stride."""
    stride = _given(args, keywords, 2, "stride")
    return bool(args) and len(args[0].shape) > 1 and _is_zero(stride or _given(args, keywords, 1, "kernel_size"))


def _integers_by_zero(args: tuple[Any, ...], keywords: dict[str, Any], *, scalar: bool) -> bool:
    other = _given(args, keywords, 1, "other")
    if not args or args[0].__class__ is not Tensor or args[0].array.dtype.kind not in "iu" or not args[0].array.size:
        return False
    if other.__class__ is Tensor:
        return not scalar and other.array.dtype.kind in "iub" and bool((other.array == 0).any())
    return other.__class__ in {int, float, bool} and -1 < other < 1


def _factor(args: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
    """Whether the square of the factor is zero in 64 bits."""
    factor = _given(args, keywords, 1, "upscale_factor")
    return bool(args) and len(args[0].shape) > 2 and factor.__class__ is int and factor * factor % (1 << 64) == 0


def _overflowing_factor(args: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
    return _factor(args, keywords) and _given(args, keywords, 1, "upscale_factor") != 0


def _no_pixels(args: tuple[Any, ...], _: dict[str, Any]) -> bool:
    return bool(args) and len(args[0].shape) > 2 and 0 in args[0].shape[-3:]


def _no_channels(args: tuple[Any, ...], _: dict[str, Any]) -> bool:
    return bool(args) and len(args[0].shape) > 2 and 0 in args[0].shape[:2]


def _trap(operators: str, releases: str, applies: Callable[[tuple[Any, ...], dict[str, Any]], bool]) -> _Trap:
    return _Trap(operators, ReleaseSet.parse(releases), applies)


TRAPS = (
    _trap("fmod_?", "..<1.6.0", lambda args, keywords: _integers_by_zero(args, keywords, scalar=False)),
    _trap("fmod_?", "1.6.0..<1.7.0", lambda args, keywords: _integers_by_zero(args, keywords, scalar=True)),
    _trap("remainder_?", "..<1.5.0", lambda args, keywords: _integers_by_zero(args, keywords, scalar=False)),
    _trap("group_norm", "..<1.12.0", _zero(1, "num_groups", least=2)),
    _trap("native_group_norm", "1.6.0..<1.12.0", _zero(6, "group", least=2)),
    _trap("(max|avg)_pool[123]d|max_pool[123]d_with_indices", "1.2.0..<1.7.0", _stride_of_window),
    _trap("conv[123]d|conv_transpose[123]d", "..<1.4.0", _zero(3, "stride", least=2)),
    _trap("conv[123]d|conv_transpose[123]d", "..<1.13.0", _zero(6, "groups", least=2)),
    _trap("native_channel_shuffle", "1.11.0..<2.8.0", _zero(1, "groups", least=3)),
    _trap("(native_)?channel_shuffle", "1.11.0..<1.13.0", _no_channels),
    _trap("pixel_shuffle", "..<1.8.0", _factor),
    _trap("pixel_shuffle", "1.8.0..<2.10.0", _overflowing_factor),
    _trap("pixel_(un)?shuffle", "1.12.0..<1.13.0", _no_pixels),
)


@lru_cache(maxsize=1024)
def traps_of(name: str, horizon: Release) -> tuple[Callable[[tuple[Any, ...], dict[str, Any]], bool], ...]:
    """The conditions under which a call of an operator traps at a horizon."""
    short = name.removeprefix("aten::")
    return tuple(trap.applies for trap in TRAPS if re.fullmatch(trap.operators, short) and horizon in trap.releases)
