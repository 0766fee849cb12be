"""Out-of-range arguments: results or errors of the releases, with every release on both sides of each change.

The values were taken from the real releases.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.runtime.operators.tables import called, inf, nan, t
from torch_compat.errors import Unsupported
from torch_compat.releases.release import Release
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import Tensor

X, Y = t([0.1, 0.5, 0.9]), t([0.2, 0.9, 0.6])
SQUARES, GAPS, SMOOTH = "float32[3][0.01, 0.16, 0.09]", "float32[3][0.1, 0.4, 0.3]", "float32[3][0.005, 0.08, 0.045]"
ONES, LINE, GRID = t(np.ones((1, 2, 4, 4))), t([[[0.0, 1.0, 2.0]]]), t([[[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]]])
PICTURE, VOLUME = t([[[[0.0, 1.0, 2.0]]]]), t([[[[[0.0, 1.0, 2.0]]]]])
COPIED = "float32[1, 1, 3, 3][0.0, 1.0, 2.0, 1.5, 2.5, 3.5, 3.0, 4.0, 5.0]"
ONE_OF_TWO, TWO = (f"float32[2, 1, 1, 2][1.0, 2.0, {rest}]" for rest in ("0.0, 0.0", "3.0, 4.0"))
TWO_CHANNELS, ENLARGED = (
    f"float32[1, 2, 1, 3][{values}]" for values in ("0.0, 1.0, 2.0, 3.0, 4.0, 5.0", "0.0, 0.0, 1.0, 3.0, 3.0, 4.0")
)
MATRIX = t([[1.0, 2.0], [3.0, 4.0]])
WHOLE = t([[1, 1], [1, 1]])

EVERY: list[tuple[str, tuple[Any, ...], dict[str, Any], dict[str, str]]] = [
    ("mse_loss", (X, Y, 3), {}, {"1.3.1": "float32[][0.26]", "1.4.0": SQUARES, "1.11.0": SQUARES, "1.12.1": "raises", "2.15.0": "raises"}),
    ("l1_loss", (X, Y, 3), {}, {"1.3.1": "float32[][0.8]", "1.4.0": GAPS, "1.7.1": GAPS, "1.8.1": "float32[][0.8]", "1.12.1": "float32[][0.8]", "1.13.1": GAPS}),
    ("smooth_l1_loss", (X, Y, -1), {}, {"1.3.1": "float32[][0.13]", "1.4.0": SMOOTH, "1.10.2": SMOOTH, "1.11.0": "raises"}),
    ("soft_margin_loss", (t([0.0, 0.0]), t([1.0, -1.0]), 3), {}, {"1.4.0": "float32[][1.38629]", "1.5.1": "float32[][0.693147]", "2.15.0": "float32[][0.693147]"}),
    ("huber_loss", (X, Y, 3), {}, {"1.9.1": SMOOTH, "2.15.0": SMOOTH}),
    ("hinge_embedding_loss", (t([0.5, 2.0]), t([1, -1]), 1.0, 7), {}, {"1.2.0": "float32[2][0.5, 0.0]", "2.15.0": "float32[2][0.5, 0.0]"}),
    ("nll_loss", (t([[0.1, 0.5], [0.25, 0.5]]), t([1, 0]), None, 3), {}, {"1.5.1": "float32[][-0.75]", "2.15.0": "float32[][-0.75]"}),
    ("nll_loss", (X, t(1)), {}, {"1.5.1": "raises", "1.9.1": "raises", "1.10.2": "float32[][-0.5]"}),
    ("cross_entropy_loss", (t([[0.0, 0.0]]), t([1]), None, 3), {}, {"1.10.2": "float32[][0.693147]", "2.15.0": "float32[][0.693147]"}),
    ("cross_entropy_loss", (t([[0.0, 0.0]]), t([1]), None, 3, -100, 0.1), {}, {"1.10.2": "raises", "2.15.0": "raises"}),
    ("cross_entropy_loss", (t([[0.0, 0.0]]), t([1]), None, 1, -100, -inf), {}, {"1.12.1": "float32[][0.693147]", "2.15.0": "float32[][0.693147]"}),
    ("cross_entropy_loss", (t([[0.0, 0.0]]), t([1]), None, 1, -100, inf), {}, {"1.12.1": "raises", "2.15.0": "raises"}),
    ("histc", (t([]), 4, 0, 0), {}, {"1.3.1": "raises", "1.10.2": "raises", "1.11.0": "float32[4][0.0, 0.0, 0.0, 0.0]"}),
    ("histc", (X, 4, -1, inf), {}, {"2.6.0": "raises"}),
    ("cummax", (t(2.0), 3), {}, {"1.5.1": "(float32[][2.0], int64[][0])", "2.6.0": "(float32[][2.0], int64[][0])", "2.7.1": "raises"}),
    ("cummin", (t(2.0), 0), {}, {"2.7.1": "(float32[][2.0], int64[][0])"}),
    ("sort", (t(2.0), 3), {}, {"1.6.0": "raises", "1.7.1": "(float32[][2.0], int64[][0])", "1.11.0": "(float32[][2.0], int64[][0])", "1.12.1": "raises"}),
    ("argsort", (t(2.0), 3), {}, {"1.6.0": "raises", "1.7.1": "int64[][0]", "1.11.0": "int64[][0]", "1.12.1": "raises"}),
    ("logcumsumexp", (t(2.0), 3), {}, {"1.8.1": "raises", "2.15.0": "raises"}),
    ("fft_fftn", (t([1.0, 1.0]), None, []), {}, {"1.8.1": "raises", "2.2.2": "raises", "2.3.1": "complex64[2][(1+0j), (1+0j)]"}),
    ("fft_fft", (t([1.0, 1.0]), None, -1, ""), {}, {"1.8.1": "raises", "2.15.0": "raises"}),
    ("linalg_qr", (MATRIX, "Linear"), {}, {"1.8.1": "raises", "2.15.0": "raises"}),
    ("addr", (WHOLE, t([1, 2]), t([1, 2])), {"beta": 2.0}, {"1.6.0": "int64[2, 2][3, 4, 4, 6]", "1.7.1": "float32[2, 2][3.0, 4.0, 4.0, 6.0]", "1.8.1": "raises", "2.15.0": "raises"}),
    ("frobenius_norm", (MATRIX, [0, 1, 0]), {}, {"1.2.0": "raises", "1.6.0": "raises", "2.15.0": "raises"}),
    ("nuclear_norm", (MATRIX, [-1, -2]), {}, {"1.6.0": "raises", "1.7.1": "float32[][5.83095]"}),
    ("reflection_pad2d", (ONES, [-3, -1, 0, 0]), {}, {"1.5.1": "float32[1, 2, 4, 0][]", "2.14.1": "float32[1, 2, 4, 0][]", "2.15.0": "raises"}),
    ("replication_pad2d", (ONES, [-3, -1, 0, 0]), {}, {"1.5.1": "float32[1, 2, 4, 0][]", "2.13.0": "float32[1, 2, 4, 0][]", "2.14.1": "raises"}),
    ("reflection_pad2d", (ONES, [-3, -1, -3, -1]), {}, {"1.5.1": "raises", "2.13.0": "raises"}),
    ("reflection_pad1d", (LINE, [0, 1, 0]), {}, {"2.0.1": "float32[1, 1, 4][0.0, 1.0, 2.0, 1.0]", "2.1.2": "raises"}),
    ("replication_pad1d", (LINE, [0, 1, 0]), {}, {"1.5.1": "raises", "2.15.0": "raises"}),
    ("reflection_pad1d", (LINE, [-1, 2]), {}, {"1.8.1": "float32[1, 1, 4][1.0, 2.0, 1.0, 0.0]", "2.15.0": "float32[1, 1, 4][1.0, 2.0, 1.0, 0.0]"}),
    ("reflection_pad1d", (LINE, [1, -3]), {}, {"2.6.0": "float32[1, 1, 1][1.0]"}),
    ("arange", (0, 2.5, inf), {}, {"1.5.1": "float32[0][]", "2.14.1": "float32[0][]", "2.15.0": "raises"}),
    ("upsample_nearest1d", (LINE, [3], 1.5), {}, {"1.5.1": "float32[1, 1, 3][0.0, 1.0, 2.0]", "1.8.1": "float32[1, 1, 3][0.0, 1.0, 2.0]", "1.9.1": "float32[1, 1, 3][0.0, 0.0, 1.0]"}),
    ("upsample_nearest2d", (PICTURE, [1, 3], None, 1.5), {}, {"1.13.1": "float32[1, 1, 1, 3][0.0, 1.0, 2.0]", "2.15.0": "float32[1, 1, 1, 3][0.0, 1.0, 2.0]"}),
    ("upsample_nearest2d", (t([[[[0.0, 1.0, 2.0]], [[3.0, 4.0, 5.0]]]]), [1, 3], None, 1.5), {}, {"1.8.1": TWO_CHANNELS, "1.9.1": ENLARGED, "1.13.1": ENLARGED, "2.0.1": TWO_CHANNELS}),
    ("upsample_nearest2d", (t([[[[0.0, 1.0, 2.0]], [[3.0, 4.0, 5.0]]]]), [1, 3], None, inf), {}, {"1.8.1": TWO_CHANNELS, "1.10.2": "float32[1, 2, 1, 3][0.0, 0.0, 0.0, 3.0, 3.0, 3.0]"}),
    ("upsample_nearest3d", (VOLUME, [1, 1, 3], None, None, 1.5), {}, {"1.13.1": "float32[1, 1, 1, 1, 3][0.0, 1.0, 2.0]", "2.0.1": "float32[1, 1, 1, 1, 3][0.0, 0.0, 1.0]"}),
    ("upsample_bilinear2d", (GRID, [3, 3], False, None, 1.3), {}, {
        "1.5.1": "float32[1, 1, 3, 3][0.0, 0.653846, 1.42308, 1.5, 2.15385, 2.92308, 3.0, 3.65385, 4.42308]", "1.6.0": COPIED, "2.15.0": COPIED,
    }),
    ("upsample_bicubic2d", (t([[[[0.0, 4.0, 8.0]]]]), [1, 3], False, None, 2.0), {}, {"1.8.1": "float32[1, 1, 1, 3][0.0, 4.0, 8.0]", "1.9.1": "float32[1, 1, 1, 3][-0.421875, 0.765625, 2.67188]"}),
    ("upsample_bicubic2d", (t([[[[1.0, 2.0]]], [[[3.0, 4.0]]]]), [1, 2], True), {}, {"1.2.0": ONE_OF_TWO, "1.7.1": ONE_OF_TWO, "1.8.1": TWO}),
    ("upsample_bicubic2d", (t([[[[1.0, 2.0]]], [[[3.0, 4.0]]]]), None, True, [1.0, 1.0]), {}, {"1.7.1": ONE_OF_TWO, "1.8.1": TWO}),
    ("smooth_l1_loss", (t([[1.0, 2.0], [3.0, 5.0]]), t(0.0), 1, 0.0), {"out": t([])}, {"1.7.1": "float32[2][2.0, 3.5]", "1.8.1": "float32[][2.75]", "1.10.2": "float32[][2.75]", "1.11.0": "float32[][2.75]"}),
    ("_upsample_bilinear2d_aa", (PICTURE, [1, 3], False, None, 0.7), {}, {"1.12.1": "float32[1, 1, 1, 3][0.346154, 1.57692, 2.0]", "2.0.1": "float32[1, 1, 1, 3][0.0, 1.0, 2.0]"}),
    ("upsample_nearest1d", (LINE, [6], [1.0]), {}, {"1.8.1": "raises", "2.6.0": "raises"}),
    ("clone", (t([1.0]),), {"memory_format": 2}, {"1.4.0": "raises", "2.15.0": "raises"}),
    ("contiguous", (t([1.0]),), {"memory_format": 3}, {"1.5.1": "raises", "2.15.0": "raises"}),
    ("zeros_like", (t([1.0]),), {"memory_format": 2}, {"1.5.1": "raises", "2.15.0": "raises"}),
    ("to", (t([1.0]), 7, False, False, 2), {}, {"1.5.1": "raises", "2.15.0": "raises"}),
    ("resize_", (t([1.0]), [1]), {"memory_format": 1}, {"1.4.0": "raises", "2.15.0": "raises"}),
    ("is_contiguous", (t([]),), {"memory_format": 3}, {"2.6.0": "False", "2.15.0": "False"}),
    ("repeat_interleave", (t([2, 2]),), {"output_size": 100}, {"1.12.1": "raises", "2.15.0": "raises"}),
    ("repeat_interleave", (t([2, 1]),), {"output_size": 3}, {"1.12.1": "int64[3][0, 0, 1]", "2.15.0": "int64[3][0, 0, 1]"}),
    ("tile", (t([]), [-1]), {}, {"2.6.0": "float32[0][]"}),
    ("repeat", (t([1.0]), [-1]), {}, {"1.8.1": "raises", "2.15.0": "raises"}),
    ("scatter_", (t([1.0]), 0, t([0]), t([2.0])), {"reduce": "mean"}, {"1.12.1": "raises", "2.15.0": "raises"}),
    ("diagonal_scatter", (MATRIX, t([1.0]), 100, 0, 1), {}, {"2.6.0": "raises", "2.15.0": "raises"}),
    ("as_strided_scatter", (MATRIX, t([1.0, 2.0]), [2], [-1], 1), {}, {"2.6.0": "raises", "2.15.0": "raises"}),
    ("_s_where", (t([[[True, False], [False, False]]]), t([[0, 1], [2, 3]]), t([[10, 11], [12, 13]])), {}, {"1.2.0": "int64[2, 2][0, 11, 12, 13]", "1.3.1": "int64[1, 2, 2][0, 11, 12, 13]"}),
    ("_s_where", (t([[True, False]]), t([[0, 1], [2, 3]]), t([[10, 11], [12, 13]])), {}, {"1.2.0": "raises", "1.3.1": "int64[2, 2][0, 11, 2, 13]"}),
    ("addcdiv", (t([5], "uint8"), t([5], "uint8"), t([3], "uint8")), {"value": -1}, {"1.2.0": "uint8[1][174]", "1.5.1": "uint8[1][174]"}),
    ("addcdiv", (t([5], "int8"), t([5], "int8"), t([3], "int8")), {"value": 100}, {"1.2.0": "int8[1][-85]", "1.5.1": "int8[1][-85]"}),
    ("diff", (t([1.0, 4.0, 9.0]), 2), {}, {"1.8.1": "raises", "1.10.2": "raises", "1.11.0": "float32[1][2.0]", "2.15.0": "float32[1][2.0]"}),
    ("diff", (t([1.0, 4.0, 9.0]), -1), {}, {"1.10.2": "raises", "1.11.0": "float32[3][1.0, 4.0, 9.0]", "2.2.2": "raises"}),
    ("cosine_similarity", (t([[1.0, 0.0]]), t([[1.0, 0.0]]), 1, -0.5), {}, {"2.10.0": "float32[1][1.0]", "2.11.0": "raises"}),
    ("pdist", (t([[1.0], [2.0]]), nan), {}, {"1.5.1": "raises", "2.15.0": "raises"}),
    ("polygamma", (100, t([2.828125, 0.484375])), {}, {"2.6.0": "float32[2][nan, -inf]"}),
    ("renorm", (MATRIX, 1, 1, nan), {}, {"2.6.0": "raises"}),
    ("multi_margin_loss", (t([[1.0, 2.0]]), t([0]), 1, nan), {}, {"2.6.0": "float32[][0.0]"}),
    ("special_zeta", (t([nan, nan]), t([-4.0, 5.0])), {}, {"2.6.0": "float32[2][inf, nan]"}),
    ("polygamma", (2**62, t([2.0])), {}, {"2.6.0": "float32[1][-inf]"}),
    ("item", (t(2.5 + 0j, "complex64"),), {}, {"1.6.0": "2", "1.7.1": "2", "1.8.1": "(2.5+0j)", "2.15.0": "(2.5+0j)"}),
    ("abs_", (t([3 + 4j], "complex64"),), {}, {"1.6.0": "complex64[1][(5+0j)]", "1.7.1": "raises", "2.15.0": "raises"}),
    ("item", (t(1j, "complex64"),), {}, {"1.7.1": "raises", "1.8.1": "1j"}),
    ("item", (t(complex(inf, 0), "complex128"),), {}, {"1.7.1": "raises", "1.8.1": "(inf+0j)"}),
    ("trapz", (t([-3, -(2**63), -2]), t([6, -2, 1])), {}, {"1.5.1": "float32[][-4.61169e+18]", "2.15.0": "float32[][-4.61169e+18]"}),
    ("linspace", (nan, -1, 1), {"dtype": 9}, {"1.7.1": "complex64[1][(nan+0j)]", "2.13.0": "complex64[1][(nan+0j)]"}),
    ("linspace", (1, inf, 3), {"dtype": 9}, {"1.7.1": "complex64[3][(nan+0j), (nan+0j), (nan+0j)]", "2.13.0": "complex64[3][(nan+0j), (nan+0j), (nan+0j)]"}),
    ("range", (1, 2.5, 2), {"out": t(-1.0)}, {"1.0.0": "float32[][1.0]", "1.5.1": "float32[][1.0]", "2.15.0": "float32[][1.0]"}),
    ("range", (1, 4), {"out": t([[0.0, 0.0], [0.0, 0.0]])}, {"1.0.0": "float32[2, 2][1.0, 2.0, 3.0, 4.0]", "2.15.0": "float32[2, 2][1.0, 2.0, 3.0, 4.0]"}),
    ("cosine_similarity", (t([[True, True, True, False]]), t([[0.0, 0.5, -3.75, -3.75]]), 1, 0.25), {}, {"1.3.1": "float32[1][-0.352253]", "1.9.1": "float32[1][-0.352253]", "1.10.2": "float32[1][-0.352253]"}),
    ("resize", (Tensor(np.arange(4).reshape(2, 2).T), [2]), {}, {"1.12.1": "int64[2][0, 1]", "1.13.1": "int64[2][0, 1]", "2.15.0": "int64[2][0, 1]"}),
]  # fmt: skip


@pytest.mark.parametrize("row", EVERY, ids=[f"{at}-{row[0]}" for at, row in enumerate(EVERY)])
def test_out_of_range(row: tuple[str, tuple[Any, ...], dict[str, Any], dict[str, str]]) -> None:
    name, args, keywords, expected = row

    def fresh() -> tuple[Any, ...]:
        return tuple(Tensor(arg.array.copy(order="K")) if isinstance(arg, Tensor) else arg for arg in args)

    assert {release: called(name, fresh(), keywords, release) for release in expected} == expected


def test_large_pictures_are_computed_with_their_scale_since_2_0() -> None:
    """As 1.13.1, 2.0.1 and 2.15.0 gave them; tensors with more than three channels that are last in memory are copied."""
    wide = np.arange(70.0, dtype=np.float32).reshape(1, 1, 1, 70)
    scaled = np.floor(np.arange(140, dtype=np.float32) * np.float32(1 / 2.5))
    doubled = np.arange(140) // 2

    def found(release: str, array: Any) -> Any:
        return resolve("aten::upsample_nearest2d", Release(release))(Tensor(array), [1, 140], None, 2.5).array[0, 0, 0]

    channels = np.repeat(np.ascontiguousarray(wide.transpose(0, 2, 3, 1)), 5, axis=3).transpose(0, 3, 1, 2)
    assert found("1.13.1", wide).tolist() == doubled.tolist()
    for release in ("2.0.1", "2.15.0"):
        assert found(release, wide).tolist() == scaled.tolist()
        assert found(release, channels).tolist() == doubled.tolist()


@pytest.mark.parametrize("release", ["1.4.0", "1.8.1", "2.6.0"])
def test_a_resized_tensor_is_read_in_the_order_of_the_format(release: str) -> None:
    given = Tensor(np.arange(8).reshape(1, 2, 2, 2))
    assert resolve("aten::resize_", Release(release))(given, [1, 2, 2, 2], memory_format=2).array.tolist() == [
        [[[0, 2], [4, 6]], [[1, 3], [5, 7]]]
    ]


UNMODELLED: list[tuple[str, tuple[Any, ...], dict[str, Any], str, str]] = [
    # operator, arguments, keywords, a release that is not followed, and one that answers
    ("gather", (MATRIX, 0, Tensor(np.arange(2).reshape(2, 1).T)), {}, "2.0.1", "2.6.0"),
    ("gather", (MATRIX, 0, Tensor(np.arange(2).reshape(2, 1).T)), {}, "2.5.1", "1.13.1"),
    ("take_along_dim", (MATRIX, Tensor(np.arange(2).reshape(2, 1).T), 0), {}, "2.0.1", "2.6.0"),
    ("embedding_bag", (MATRIX, t([0]), t([0]), False, 7), {}, "2.12.1", "2.13.0"),
    ("avg_pool2d", (ONES, [2, 2], [1, 1], [-1, -1]), {}, "1.12.1", "1.13.1"),
    ("avg_pool3d", (t(np.ones((1, 2, 2, 2))), [1, 1, 1], [1, 1, 1], [0, 0, 0], False, True, 2**33), {}, "2.4.1", "2.5.1"),
    ("clone", (ONES,), {"memory_format": 3}, "1.4.0", "1.5.1"),
    ("addmm", (MATRIX, MATRIX, MATRIX), {"alpha": inf}, "2.6.0", ""),
    ("hardshrink", (Tensor(np.full(8, np.nan)), 2.0), {}, "1.12.1", "2.0.1"),
    ("ne_", (Tensor(np.full(8, np.nan)), 1.5), {}, "1.7.1", "1.8.1"),
    ("linalg_lstsq", (MATRIX, MATRIX, nan), {}, "2.6.0", ""),
    ("matrix_power", (t([[2.0, 0.0], [0.0, 2.0]]), 100_000), {}, "2.6.0", ""),
    ("index_select", (t(1.0), 0, t([], "int64")), {}, "2.0.1", "2.15.0"),
    ("index_select", (t(1.0), 0, t([], "int64")), {}, "1.5.1", "1.4.0"),
]


@pytest.mark.parametrize("row", UNMODELLED, ids=[f"{row[0]}-{row[3]}" for row in UNMODELLED])
def test_what_releases_read_beside_their_arguments_is_not_modelled(
    row: tuple[str, tuple[Any, ...], dict[str, Any], str, str],
) -> None:
    name, args, keywords, unmodelled, answering = row
    with pytest.raises(Unsupported):
        called(name, args, keywords, unmodelled)
    if answering:
        called(name, args, keywords, answering)
