"""What an operator did before a change and does since: one row for each change that has no version number.

The values were taken from the real releases on both sides of each change.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.runtime.operators.tables import called, inf, nan, t

LONG = 4
CHANGES: list[tuple[str, tuple[Any, ...], dict[str, Any], str, str, str, str]] = [
    # operator, arguments, keywords, last release before and its result, first release since and its result
    ("gt", (t([1, 2]), 1), {}, "1.1.0", "uint8[2][0, 1]", "1.2.0", "bool[2][False, True]"),
    ("isnan", (t([nan, 1.0]),), {}, "1.1.0", "uint8[2][1, 0]", "1.2.0", "bool[2][True, False]"),
    ("add", (t([1, 2]), t([0.5, 1.5])), {}, "1.2.0", "raises", "1.3.1", "float32[2][1.5, 3.5]"),
    ("add", (t([1, 2]), 2.5), {}, "1.2.0", "int64[2][3, 4]", "1.3.1", "float32[2][3.5, 4.5]"),
    ("mul_", (t([1, 2]), 2.5), {}, "1.2.0", "int64[2][2, 4]", "1.3.1", "raises"),
    ("div", (t([7, -7], "int32"), 2), {}, "1.5.1", "int32[2][3, -3]", "1.6.0", "raises"),
    ("div", (t([7, -7], "int32"), 2), {}, "1.6.0", "raises", "1.7.1", "float32[2][3.5, -3.5]"),
    ("div", (t([7.0, -7.0]), t([0.0, 0.0])), {"rounding_mode": "floor"}, "1.8.1", "float32[2][nan, nan]", "1.9.1", "float32[2][inf, -inf]"),
    ("flatten", (t(1),), {}, "1.2.0", "int64[][1]", "1.3.1", "int64[1][1]"),
    ("arange", (3,), {}, "1.3.1", "float32[3][0.0, 1.0, 2.0]", "1.4.0", "int64[3][0, 1, 2]"),
    ("arange", (3.7,), {"dtype": LONG}, "2.13.0", "int64[3][0, 1, 2]", "2.14.1", "int64[4][0, 1, 2, 3]"),
    ("arange", (-3.7, 3.7, 1.5), {"dtype": LONG}, "2.13.0", "int64[6][-3, -2, -1, 0, 1, 2]", "2.14.1", "int64[5][-3, -2, -1, 0, 1]"),
    ("full", ([2], 1), {}, "1.5.1", "float32[2][1.0, 1.0]", "1.6.0", "raises"),
    ("full", ([2], True), {}, "1.6.0", "raises", "1.7.1", "bool[2][True, True]"),
    ("max", (t([nan, 1.0]), t([1.0, nan])), {}, "1.4.0", "float32[2][1.0, nan]", "1.5.0", "float32[2][nan, nan]"),
    ("max", (t([1, 2, 2]), 0), {}, "1.5.1", "(int64[][2], int64[][2])", "1.6.0", "(int64[][2], int64[][1])"),
    ("max", (t([1, 2]), t([1.5, 0.5])), {}, "1.6.0", "raises", "1.7.1", "float32[2][1.5, 2.0]"),
    ("argmax", (t([1, 2, 2, 1]),), {}, "1.6.0", "int64[][2]", "1.7.1", "int64[][1]"),
    ("argmax", (t([[1, 2], [3, 3]]), None, True), {}, "1.9.1", "int64[][2]", "1.10.2", "int64[1, 1][2]"),
    ("binary_cross_entropy", (t([0.0, 1.0, 0.5]), t([1.0, 1.0, 0.0])), {}, "1.4.0", "float32[][9.44139]", "1.5.0", "float32[][33.5644]"),
    ("remainder", (t([5, -5], "int32"), t([3, 3])), {}, "1.4.0", "raises", "1.7.1", "raises"),
    ("remainder", (t([5, -5]), 2.5), {}, "1.7.1", "int64[2][1, 1]", "1.8.1", "float32[2][0.0, -0.0]"),
    ("remainder", (t([-0.0, 5.0]), t([3.0, inf])), {}, "1.5.1", "float32[2][0.0, nan]", "1.6.0", "float32[2][-0.0, 5.0]"),
    ("fmod", (t([5, -5]), 2.5), {}, "1.7.1", "int64[2][1, -1]", "1.8.1", "float32[2][0.0, -0.0]"),
    ("pow", (t([2, 3]), 0.5), {}, "1.5.1", "int64[2][1, 1]", "1.6.0", "float32[2][1.41421, 1.73205]"),
    ("cat", ([t([1]), t([2.5])],), {}, "1.5.1", "raises", "1.6.0", "float32[2][1.0, 2.5]"),
    ("__rshift__", (t([1, -8]), 1), {}, "1.6.0", "int64[2][0, 9223372036854775804]", "1.7.1", "int64[2][0, -4]"),
    ("__lshift__", (t([1.5, -8.0]), 1), {}, "1.11.0", "float32[2][3.0, -16.0]", "1.12.1", "raises"),
    ("__lshift__", (t([1, -8]), 64), {}, "2.0.1", "int64[2][1, -8]", "2.1.2", "int64[2][0, 0]"),
    ("__rshift__", (t([1, -8]), 64), {}, "2.0.1", "int64[2][1, -8]", "2.1.2", "int64[2][0, -1]"),
    ("exp", (t([0, 1]),), {}, "1.7.1", "raises", "1.8.1", "float32[2][1.0, 2.71828]"),
    ("all", (t([1, 2]),), {}, "1.7.1", "raises", "1.8.1", "bool[][True]"),
    ("median", (t([1.0, nan]),), {}, "1.7.1", "float32[][1.0]", "1.8.1", "float32[][nan]"),
    ("angle", (t([-1.0, 1.0, nan]),), {}, "1.7.1", "float32[3][0.0, 0.0, 0.0]", "1.8.1", "float32[3][3.14159, 0.0, nan]"),
    ("clamp", (t([7, -7, 0]), 2, -1), {}, "1.7.1", "int64[3][-1, 2, 2]", "1.8.1", "int64[3][-1, -1, -1]"),
    ("clamp", (t([1, 5]), 0.5, 3.5), {}, "1.11.0", "int64[2][1, 3]", "1.12.1", "float32[2][1.0, 3.5]"),
    ("clamp_", (t([1, 5]), 0.5, 3.5), {}, "1.11.0", "int64[2][1, 3]", "1.12.1", "raises"),
    ("embedding", (t([[1.0], [2.0]]), t([1], "int32")), {}, "1.7.1", "raises", "1.8.1", "float32[1, 1][2.0]"),
    ("relu", (t([-0.0, -1.0, nan]),), {}, "1.8.1", "float32[3][0.0, 0.0, nan]", "1.9.1", "float32[3][-0.0, 0.0, nan]"),
    ("gelu", (t([-6.0]),), {}, "1.9.1", "float32[1][-5.91953e-09]", "1.10.2", "float32[1][-0.0]"),
    ("baddbmm", (t([nan]), t([[[1.0]]]), t([[[1.0]]])), {"beta": 0}, "1.10.2", "float32[1, 1, 1][nan]", "1.11.0", "float32[1, 1, 1][1.0]"),
    ("conv1d", (t([[0.0, 1.0, 2.0]]), t([[[1.0, 1.0]]])), {}, "1.10.2", "raises", "1.11.0", "float32[1, 2][1.0, 3.0]"),
    ("nll_loss", (t([[-1.0, -2.0]]), t([-100])), {}, "1.10.2", "float32[][0.0]", "1.11.0", "float32[][nan]"),
    ("log_sigmoid", (t([-inf, 0.0]),), {}, "1.10.2", "float32[2][nan, -0.693147]", "1.11.0", "float32[2][-inf, -0.693147]"),
    ("where", (t([True, False]), t([1.0, 2.0]), t([3, 4])), {}, "1.11.0", "raises", "1.12.1", "float32[2][1.0, 4.0]"),
    ("floor_divide", (t([-7, 7]), 2), {}, "1.12.1", "int64[2][-3, 3]", "1.13.1", "int64[2][-4, 3]"),
    ("round", (t([1, 2]),), {}, "1.12.1", "raises", "1.13.1", "int64[2][1, 2]"),
    ("addcmul", (t([1.0]), t([2]), t([3])), {}, "1.12.1", "raises", "1.13.1", "float32[1][7.0]"),
    ("addcdiv", (t([7, -7]), t([7, -7]), t([2, -2])), {}, "1.5.1", "int64[2][10, -4]", "1.6.0", "raises"),
    ("equal", (t([1]), t([1.0])), {}, "1.12.1", "raises", "1.13.1", "True"),
    ("linspace", (10, -10, 8), {"dtype": LONG}, "1.13.1", "int64[8][10, 7, 4, 1, -1, -3, -6, -9]", "2.0.0", "int64[8][10, 7, 4, 1, -1, -4, -7, -10]"),
    ("linspace", (0, 10, 4), {"dtype": LONG}, "1.4.0", "raises", "1.5.0", "int64[4][0, 3, 6, 10]"),
    ("linspace", (-3e38, 3e38, 4), {}, "1.5.1", "float32[4][nan, inf, inf, inf]", "1.6.0", "float32[4][nan, inf, -inf, nan]"),
    ("masked_fill", (t([1.0, 2.0]), t([1, 0], "uint8"), 5), {}, "2.0.1", "float32[2][5.0, 2.0]", "2.1.2", "raises"),
    ("avg_pool1d", (t([[[0.0, 1.0, 2.0]]]), [2], [3], [0], True), {}, "1.6.0", "float32[1, 1, 2][0.5, nan]", "1.7.1", "float32[1, 1, 2][0.5, 0.0]"),
    ("avg_pool1d", (t([[[0.0, 1.0, 2.0]]]), [2], [3], [0], True), {}, "1.7.1", "float32[1, 1, 2][0.5, 0.0]", "1.8.1", "float32[1, 1, 1][0.5]"),
    ("scaled_dot_product_attention", (t([[1.0, 0.0]]), t([[1.0, 0.0]]), t([[1.0, 2.0]]), t([[False]])), {}, "2.4.1", "float32[1, 2][nan, nan]", "2.5.1", "float32[1, 2][0.0, 0.0]"),
    ("scaled_dot_product_attention", (t([[[nan, 0.0]]]), t([[[1.0, 0.0]]]), t([[[1.0, 2.0]]])), {}, "2.13.0", "float32[1, 1, 2][nan, nan]", "2.14.1", "float32[1, 1, 2][0.0, 0.0]"),
    ("softshrink", (t([nan, -0.5]),), {}, "2.5.1", "float32[2][0.0, 0.0]", "2.6.0", "float32[2][nan, -0.0]"),
    ("elu", (t([-0.0, -1.0]),), {}, "2.7.1", "float32[2][0.0, -0.632121]", "2.8.0", "float32[2][-0.0, -0.632121]"),
]  # fmt: skip


@pytest.mark.parametrize("row", CHANGES, ids=[f"{row[0]}-{row[5]}" for row in CHANGES])
def test_before_and_since(row: tuple[str, tuple[Any, ...], dict[str, Any], str, str, str, str]) -> None:
    name, args, keywords, before, was, since, now = row

    def fresh() -> tuple[Any, ...]:
        return tuple(type(one)(one.array.copy()) if hasattr(one, "array") else one for one in args)

    assert called(name, fresh(), keywords, before) == was
    assert called(name, fresh(), keywords, since) == now
