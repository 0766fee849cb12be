"""Operators of every family, compared with the results of torch 2.13.0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.runtime.operators.tables import called, inf, nan, t
from torch_compat.errors import Raised, Unsupported
from torch_compat.runtime.language.types import release_value
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import Tensor

A, B = t([[1.0, 2.0], [3.0, 5.0]]), t([[1.0, 2.0, 4.0]])
ROW: list[tuple[str, tuple[Any, ...], dict[str, Any], str]] = [
    # arithmetic
    ("add", (t([1], "int32"), t(2)), {}, "int32[1][3]"),
    ("add", (t([1, 2], "uint8"), 300), {}, "uint8[2][45, 46]"),
    ("add", (t([1.5, 2.0]), t([3.0, 4.0]), 0.1), {}, "float32[2][1.8, 2.4]"),
    ("add", (t([200], "uint8"), t([-100], "int8")), {}, "int16[1][100]"),
    ("sub", (t([True]), t([True])), {}, "raises"),
    ("mul", (t([True, False]), t([True, True])), {}, "bool[2][True, False]"),
    ("div", (t([1]), t([0])), {}, "float32[1][inf]"),
    ("div", (t([1], "uint8"), 300), {}, "float32[1][0.00333333]"),
    ("floor_divide", (t([1]), t([0])), {}, "raises"),
    ("floor_divide", (t([-7.0, 7.0]), t([0.0, 0.0])), {}, "float32[2][-inf, inf]"),
    ("pow", (t([2, -1, 1]), t([-2, -3, -1])), {}, "int64[3][0, -1, 1]"),
    ("pow", (2.5, t([2, 3])), {}, "float32[2][6.25, 15.625]"),
    ("neg", (t([1, 2], "uint8"),), {}, "uint8[2][255, 254]"),
    ("lerp", (t([1.0, 2.0]), t([3.0, 5.0]), 0.7), {}, "float32[2][2.4, 4.1]"),
    # rounding
    ("round", (t([0.5, 1.5, 2.5, -0.5]),), {}, "float32[4][0.0, 2.0, 2.0, -0.0]"),
    ("clamp", (t([1.0, nan, 5.0]), 3, 2), {}, "float32[3][2.0, nan, 2.0]"),
    ("sign", (t([nan, -0.0, -3.0]),), {}, "float32[3][0.0, 0.0, -1.0]"),
    # activations
    ("softplus", (t([-1.0, 20.0, 21.0, nan]),), {}, "float32[4][0.313262, 20.0, 21.0, nan]"),
    ("hardswish", (t([-4.0, -1.0, 1.0, 4.0, nan]),), {}, "float32[5][-0.0, -0.333333, 0.666667, 4.0, nan]"),
    ("gelu", (t([1.0, -1.0, -inf, 0.3]),), {"approximate": "tanh"}, "float32[4][0.841192, -0.158808, nan, 0.185371]"),
    ("mish", (t([1.0, -1.0, 30.0]),), {}, "float32[3][0.865098, -0.303401, 30.0]"),
    ("glu", (t([1.0, 2.0, 3.0, 4.0]),), {}, "float32[2][0.952574, 1.96403]"),
    ("prelu", (t([[-1.0, 2.0], [-3.0, 4.0]]), t([0.5, 0.25])), {}, "float32[2, 2][-0.5, 2.0, -1.5, 4.0]"),
    ("softmax", (t([-inf, -inf]), 0), {}, "float32[2][nan, nan]"),
    ("log_softmax", (t([1.0, 2.0]), 0), {}, "float32[2][-1.31326, -0.313262]"),
    ("softmax", (t([1, 2]), 0), {}, "raises"),
    # reductions
    ("sum", (t([1, 2], "uint8"),), {}, "int64[][3]"),
    ("sum", (t([[1.0, 2.0], [3.0, 4.0]]), [0, 1], True), {}, "float32[1, 1][10.0]"),
    ("mean", (t([1, 2]),), {}, "raises"),
    ("mean", (t([]),), {}, "float32[][nan]"),
    ("max", (t([1.0, nan, 2.0]), 0), {}, "(float32[][nan], int64[][1])"),
    ("argmax", (t([1.0, nan, nan]),), {}, "int64[][1]"),
    ("median", (t([1.0, 2.0, 3.0, 4.0]),), {}, "float32[][2.0]"),
    ("mode", (t([3, 2, 2, 3, 1]), 0), {}, "(int64[][2], int64[][2])"),
    ("std", (t([1.0, 2.0, 4.0]),), {}, "float32[][1.52753]"),
    ("var", (t([1.0]),), {}, "float32[][nan]"),
    ("var", (t([1.0, 2.0, 4.0]), False), {}, "float32[][1.55556]"),
    ("norm", (t([3.0, -4.0]), inf), {}, "float32[][4.0]"),
    ("logsumexp", (t([-inf, -inf]), [0]), {}, "float32[][-inf]"),
    ("cumsum", (t([True, True]), 0), {}, "int64[2][1, 2]"),
    ("cummax", (t([1, 3, 3, 2]), 0), {}, "(int64[4][1, 3, 3, 3], int64[4][0, 1, 2, 2])"),
    # sorting
    ("sort", (t([nan, 1.0, inf]), 0, True), {}, "(float32[3][nan, inf, 1.0], int64[3][0, 2, 1])"),
    ("kthvalue", (t([3.0, 1.0, 2.0, 1.0]), 2), {}, "(float32[][1.0], int64[][3])"),
    ("searchsorted", (t([1, 3, 5]), t([2, 3])), {}, "int64[2][1, 1]"),
    ("bincount", (t([0, 2, 2]),), {}, "int64[3][1, 0, 2]"),
    # shapes
    ("repeat", (t([1, 2, 3]), [2, 2]), {}, "int64[2, 6][1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3]"),
    ("repeat_interleave", (t([1, 2]), 2), {}, "int64[4][1, 1, 2, 2]"),
    ("rot90", (t([[1, 2], [3, 4]]),), {}, "int64[2, 2][2, 4, 1, 3]"),
    ("chunk", (t([1, 2, 3, 4, 5]), 3), {}, "(int64[2][1, 2], int64[2][3, 4], int64[1][5])"),
    ("meshgrid", ([t([1, 2]), t([3, 4])],), {}, "(int64[2, 2][1, 1, 2, 2], int64[2, 2][3, 4, 3, 4])"),
    ("pad", (t([[[1.0, 2.0, 3.0]]]), [1, 1], "circular"), {}, "float32[1, 1, 5][3.0, 1.0, 2.0, 3.0, 1.0]"),
    ("pad", (t([[[1.0, 2.0, 3.0]]]), [1, 1], "reflect"), {}, "float32[1, 1, 5][2.0, 1.0, 2.0, 3.0, 2.0]"),
    # indexing
    ("index", (t([1.0, 2.0]), [t([True, False])]), {}, "float32[1][1.0]"),
    ("index_fill", (t([1, 2]), 0, t([1]), 3.7), {}, "int64[2][1, 3]"),
    ("scatter", (t([1.0, 2.0]), 0, t([1]), 5.0), {}, "float32[2][1.0, 5.0]"),
    ("scatter", (t([1.0, 2.0]), 0, t([1]), t([5])), {}, "raises"),
    ("masked_fill", (t([1, 2]), t([True, False]), 2.7), {}, "int64[2][2, 2]"),
    ("nonzero", (t([[1, 0], [0, 1]]),), {}, "int64[2, 2][0, 0, 1, 1]"),
    # casting
    ("to", (t([nan, inf, -1.0, 300.0, 1e30]), 0), {}, "uint8[5][0, 0, 255, 44, 0]"),
    ("to", (t([nan, inf, -inf, 3e9]), 3), {}, "int32[4][-2147483648, -2147483648, -2147483648, -2147483648]"),
    ("fill_", (t([1, 2], "uint8"), -1), {}, "uint8[2][255, 255]"),
    ("fill_", (t([1, 2], "uint8"), 300), {}, "raises"),
    ("fill_", (t([1.0]), 1e300), {}, "raises"),
    # linear algebra
    ("addmm", (t([nan]), t([[1.0, 2.0]]), t([[1.0], [2.0]])), {"beta": 0}, "float32[1, 1][5.0]"),
    ("einsum", ("ii->i", [t([[1.0, 2.0], [3.0, 4.0]])]), {}, "float32[2][1.0, 4.0]"),
    ("det", (t([[1.0, 2.0], [3.0, 4.0]]),), {}, "float32[][-2.0]"),
    ("cross", (t([[1.0, 2.0, 3.0]]), t([[4.0, 5.0, 6.0]])), {}, "float32[1, 3][-3.0, 6.0, -3.0]"),
    # convolution and pooling
    ("conv_transpose1d", (t([[[0.0, 1.0, 2.0, 3.0]]]), t([[[1.0, 1.0]]]), None, 2), {}, "float32[1, 1, 8][0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0]"),
    ("max_pool2d_with_indices", (t([[[[1.0, nan], [nan, 1.0]]]]), 2), {}, "(float32[1, 1, 1, 1][nan], int64[1, 1, 1, 1][2])"),
    ("avg_pool2d", (Tensor(np.arange(9.0, dtype=np.float32).reshape(1, 1, 3, 3)), 2, (), 1, True, False), {}, "float32[1, 1, 2, 2][0.0, 1.5, 4.5, 6.0]"),
    ("adaptive_avg_pool1d", (t([[[0.0, 1.0, 2.0, 3.0, 4.0]]]), [3]), {}, "float32[1, 1, 3][0.5, 2.0, 3.5]"),
    # normalization
    ("layer_norm", (B, [3]), {}, "float32[1, 3][-1.06904, -0.26726, 1.3363]"),
    ("batch_norm", (A, None, None, t([0.0, 1.0]), t([1.0, 2.0]), False, 0.1, 1e-5), {}, "float32[2, 2][0.999995, 0.707105, 2.99998, 2.82842]"),
    # losses
    ("kl_div", (t([-1.0, -2.0]), t([0.5, 0.0])), {}, "float32[][0.0767132]"),
    ("cross_entropy_loss", (t([[-1.0, -2.0], [-3.0, -4.0]]), t([1, 0])), {}, "float32[][0.813262]"),
    ("smooth_l1_loss", (t([1.0, 2.0]), t([1.5, 4.0])), {}, "float32[][0.8125]"),
    ("cosine_similarity", (t([[1.0, 2.0]]), t([[3.0, 4.0]])), {}, "float32[1][0.98387]"),
    # interpolation
    ("upsample_nearest1d", (t([[[1.0, 2.0, 3.0]]]), [5]), {}, "float32[1, 1, 5][1.0, 1.0, 2.0, 2.0, 3.0]"),
    ("upsample_linear1d", (t([[[1.0, 2.0, 3.0]]]), [5], False), {}, "float32[1, 1, 5][1.0, 1.4, 2.0, 2.6, 3.0]"),
    ("affine_grid_generator", (t([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]), [1, 1, 2, 2], False), {}, "float32[1, 2, 2, 2][-0.5, -0.5, 0.5, -0.5, -0.5, 0.5, 0.5, 0.5]"),
    # complex numbers
    ("abs", (Tensor(np.asarray([3 + 4j], np.complex64)),), {}, "float32[1][5.0]"),
    ("view_as_real", (Tensor(np.asarray([1 + 2j], np.complex64)),), {}, "float32[1, 2][1.0, 2.0]"),
]  # fmt: skip


@pytest.mark.parametrize("row", ROW, ids=[f"{at}-{row[0]}" for at, row in enumerate(ROW)])
def test_as_torch_2_13(row: tuple[str, tuple[Any, ...], dict[str, Any], str]) -> None:
    name, args, keywords, expected = row
    assert called(name, args, keywords, "2.13.0") == expected


def test_writing_in_place_goes_through_views() -> None:
    base = t([1.0, 2.0, 3.0])
    view = resolve("aten::slice")(base, 0, 1, 3, 1)
    resolve("aten::mul_")(view, 10)
    resolve("aten::fill_")(resolve("aten::select")(base, 0, 0), -1)
    assert base.array.tolist() == [-1.0, 20.0, 30.0]


def test_a_result_that_does_not_fit_is_refused_in_place() -> None:
    with pytest.raises(Raised, match="result type Float can't be cast to the desired output type Long"):
        resolve("aten::add_")(t([1, 2]), 2.5)


def test_an_expanded_tensor_cannot_be_written_to() -> None:
    with pytest.raises(Raised, match="more than one element of the written-to tensor"):
        resolve("aten::add_")(resolve("aten::expand")(t([1.0]), [3]), 1)


def test_out_is_resized_and_returned() -> None:
    out = t([0.0])
    result = resolve("aten::add")(t([1, 2]), t([3, 4]), out=out)
    assert result is out
    assert out.array.tolist() == [4.0, 6.0]


def test_shapes_that_do_not_fit_are_named_as_torch_names_them() -> None:
    with pytest.raises(
        Raised, match=r"The size of tensor a \(2\) must match the size of tensor b \(3\) at non-singleton dimension 0"
    ):
        resolve("aten::add")(t([1, 2]), t([1, 2, 3]))


def test_random_numbers_are_unsupported_and_named() -> None:
    with pytest.raises(Unsupported, match="aten::rand"):
        release_value(resolve("aten::rand")([2]))
