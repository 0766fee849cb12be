"""Rarely used operators, compared with 2.15.0, and cases where releases raise or are not followed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.runtime.operators.tables import called, nan, t
from torch_compat.errors import Raised, Unsupported
from torch_compat.releases.release import Release
from torch_compat.runtime.hash_order import text_hash
from torch_compat.runtime.operators._common import BFLOAT16, wide
from torch_compat.runtime.registry import NEWEST, resolve
from torch_compat.runtime.tensor import Tensor

ROWS: list[tuple[str, tuple[Any, ...], dict[str, Any], str]] = [
    ("gradient", (t([1.0, 4.0, 9.0, 16.0]),), {}, "(float32[4][3.0, 4.0, 6.0, 7.0])"),
    ("gradient", (t([1.0, 4.0, 9.0, 16.0]),), {"spacing": 2, "edge_order": 2}, "(float32[4][1.0, 2.0, 3.0, 4.0])"),
    ("gradient", (t([1.0, 4.0, 9.0, 16.0]),), {"spacing": [t([0.0, 1.0, 3.0, 6.0])], "dim": [0]}, "(float32[4][3.0, 2.83333, 2.43333, 2.33333])"),
    ("gradient", (t([[1, 2], [4, 8]]),), {"dim": [0, 1]}, "(float32[2, 2][3.0, 6.0, 3.0, 6.0], float32[2, 2][1.0, 1.0, 4.0, 4.0])"),
    ("gradient", (t([1.0]),), {}, "raises"),
    ("cumulative_trapezoid", (t([1.0, 2.0, 4.0]),), {"dx": 2}, "float32[2][3.0, 9.0]"),
    ("cumulative_trapezoid", (t([1, 2, 4]), t([0, 1, 3])), {}, "float32[2][1.5, 7.5]"),
    ("histogram", (t([1.0, 2.0, 2.5, -1.0]), 3), {"range": [0.0, 3.0]}, "(float32[3][0.0, 1.0, 2.0], float32[4][0.0, 1.0, 2.0, 3.0])"),
    ("histogram", (t([1.0, 2.0, 2.5]), t([0.0, 2.0, 3.0])), {"weight": t([1.0, 2.0, 4.0]), "density": True}, "(float32[2][0.0714286, 0.857143], float32[3][0.0, 2.0, 3.0])"),
    ("histogramdd", (t([[0.0, 1.0], [1.0, 1.0]]), [2, 1]), {}, "(float32[2, 1][1.0, 1.0], (float32[3][0.0, 0.5, 1.0], float32[2][0.5, 1.5]))"),
    ("index_reduce", (t([1.0, 2.0, 3.0]), 0, t([0, 0, 2]), t([4.0, 6.0, -1.0]), "mean"), {}, "float32[3][3.66667, 2.0, 1.0]"),
    ("index_reduce", (t([1, 2, 3]), 0, t([0, 0, 2]), t([4, 6, -1]), "amin"), {"include_self": False}, "int64[3][4, 2, -1]"),
    ("segment_reduce", (t([1.0, 2.0, 3.0]), "mean"), {"lengths": t([2, 0, 1])}, "float32[3][1.5, nan, 3.0]"),
    ("fractional_max_pool2d", (t([[[[1.0, 5.0, 2.0], [4.0, 3.0, 9.0], [7.0, 8.0, 6.0]]]]), [2, 2], [2, 2], t([[[0.3, 0.6]]])), {}, "(float32[1, 1, 2, 2][5.0, 9.0, 8.0, 9.0], int64[1, 1, 2, 2][1, 5, 7, 5])"),
    ("multilabel_margin_loss", (t([0.1, 0.2, 0.4, 0.8]), t([3, 0, -1, 1])), {}, "float32[][0.85]"),
    ("multilabel_margin_loss_forward", (t([[0.1, 0.2, 0.4, 0.8]]), t([[3, 0, -1, 1]]), 0), {}, "(float32[1][0.85], float32[1, 4][1.0, 0.0, 0.0, 1.0])"),
    ("slow_conv_transpose2d", (t([[[[1.0, 2.0]]]]), t([[[[1.0, 3.0]]]]), [1, 2], None, [1, 2]), {}, "float32[1, 1, 1, 4][1.0, 3.0, 2.0, 6.0]"),
    ("thnn_conv2d", (t([[[[1.0, 2.0, 4.0]]]]), t([[[[1.0, 3.0]]]]), [1, 2]), {}, "float32[1, 1, 1, 2][7.0, 14.0]"),
    ("conv_depthwise3d", (t([[[[[1.0]]]]]), t([[[[[1.0]]]]]), [1, 1, 1], None, [1, 1, 1], [0, 0, 0], [1, 1, 1]), {}, "raises"),
    ("nonzero_static", (t([0, 3, 0, 5]),), {"size": 3}, "int64[3, 1][1, 3, -1]"),
    ("column_stack", ([t([1, 2]), t([[3.5], [4.5]])],), {}, "float32[2, 2][1.0, 3.5, 2.0, 4.5]"),
    ("flatten_dense_tensors", ([t([[1, 2]]), t(3)],), {}, "int64[3][1, 2, 3]"),
    ("as_strided_scatter", (t([[1, 2], [3, 4]]), t([9, 8]), [2], [3]), {}, "int64[2, 2][9, 2, 3, 8]"),
    ("put", (t([1, 2, 3]), t([0, -1]), t([5, 6])), {}, "int64[3][5, 2, 6]"),
    ("embedding_renorm", (t([[3.0, 4.0], [6.0, 8.0]]), t([0]), 1.0, 2.0), {}, "float32[2, 2][0.6, 0.8, 6.0, 8.0]"),
    ("rrelu_with_noise", (t([-1.0, 2.0]), t([0.0, 0.0]), 0.25, 0.75), {}, "float32[2][-0.5, 2.0]"),
    ("diagonal_copy", (t([[1, 2], [3, 4]]),), {}, "int64[2][1, 4]"),
    ("conj_physical", (t([1.5]),), {}, "float32[1][1.5]"),
    ("avg_pool2d", (t([[[-7, -3], [-5, 2]]]), [2, 2]), {}, "int64[1, 1, 1][-3]"),
    ("avg_pool1d", (t([[-1, 0, 3]]), [2], [1]), {}, "int64[1, 2][0, 1]"),
    ("avg_pool3d", (t([[[[-7, -3], [-5, 2]]]]), [1, 2, 2]), {}, "int64[1, 1, 1, 1][-3]"),
    ("pad", (t([[[1, 2]]]), [1, 0], "constant", 2.0), {}, "int64[1, 1, 3][2, 1, 2]"),
    ("grid_sampler", (t([[[[1.0, 2.0, 3.0, 4.0]]]]), t([[[[-0.66666669, 0.0], [0.0, 0.0], [0.66666669, 0.0]]]]), 1, 1, True), {}, "float32[1, 1, 1, 3][1.0, 3.0, 3.0]"),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=[f"{at}-{row[0]}" for at, row in enumerate(ROWS)])
def test_as_the_newest_release(row: tuple[str, tuple[Any, ...], dict[str, Any], str]) -> None:
    name, args, keywords, expected = row
    assert called(name, args, keywords) == expected


def test_a_point_between_two_bins() -> None:
    """The edge that lies at zero is 1.1e-08 since 2.0, and was its negative."""
    for release, place in (("1.13.1", 50), ("2.0.1", 49)):
        counts = resolve("aten::histogram", Release(release))(t([0.0]), 100)[0].array
        assert counts[place] == 1
        assert counts.sum() == 1


def test_a_number_that_is_none_in_a_histogram() -> None:
    """Up to 1.13 it is counted in a bin."""
    given = t([float("nan"), 1.0]), t([0.0, 1.0, 2.0])
    assert called("histogram", given, at="2.0.1") == "(float32[2][0.0, 1.0], float32[3][0.0, 1.0, 2.0])"
    with pytest.raises(Unsupported, match="NaN elements"):
        resolve("aten::histogram", Release("1.13.1"))(*given)


def test_what_a_tensor_says_of_itself() -> None:
    given = t([[1.0, 2.0]])
    assert [resolve(f"aten::{name}")(given) for name in ("is_leaf", "output_nr", "retains_grad", "get_device", "is_pinned")] == [
        True,
        0,
        False,
        -1,
        False,
    ]
    assert resolve("prim::nbytes")(given) == 8
    assert resolve("prim::name")(given) is None
    with pytest.raises(Raised, match="can't retain_grad"):
        resolve("aten::retain_grad")(given)
    with pytest.raises(Raised, match="sparse coordinate"):
        resolve("aten::is_coalesced")(given)


def test_a_leaf_is_none_once_something_that_requires_gradients_was_computed() -> None:
    weight = Tensor(np.ones(2, np.float32), requires_grad=True)
    is_leaf = resolve("aten::is_leaf")
    result = resolve("aten::mul")(weight, 2.0)
    assert is_leaf(weight) is True
    assert is_leaf(result) is False
    with pytest.raises(Unsupported):
        resolve("aten::output_nr")(result)
    resolve("aten::retain_grad")(weight)


@pytest.mark.parametrize(
    ("shape", "strides", "dense", "last"),
    [
        ((2, 3, 4, 5), (60, 20, 5, 1), True, False), ((2, 3, 4, 5), (60, 1, 15, 3), True, True), ((2, 2), (4, 1), False, False),
        ((2, 0), (9, 9), True, False), ((2, 2), (0, 1), False, False),
    ],
)  # fmt: skip
def test_the_order_in_memory(shape: tuple[int, ...], strides: tuple[int, ...], dense: bool, last: bool) -> None:
    given = Tensor(np.zeros(120, np.float32)).as_strided(shape, strides, 0)
    assert resolve("aten::is_non_overlapping_and_dense")(given) is dense
    assert resolve("aten::is_strides_like_format")(given, 2) is last
    assert resolve("aten::is_strides_like_format")(given, 3) is False


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("abc", 3663726644998027833), ("", 6142509188972423790), (3, 3), (-1, -1), (1.5, 4982507072649106663), (0.0, 0),
    ],
)  # fmt: skip
def test_hashes(value: str | float, expected: int) -> None:
    assert resolve("aten::hash")(value) == expected


def test_hashes_of_texts_whose_characters_stand_for_bytes() -> None:
    given = "\u00df".encode().decode("latin-1")
    assert text_hash(given) == 1552495426321458321
    assert resolve("aten::hash", Release("1.5.1"))(given) == 1552495426321458321


def test_copies_of_views_share_no_memory() -> None:
    given = t([[1, 2], [3, 4]])
    for name, args in (
        ("alias", ()),
        ("select", (0, 1)),
        ("transpose", (0, 1)),
        ("expand", ([2, 2],)),
        ("as_strided", ([2], [1])),
    ):
        copied = resolve(f"aten::{name}_copy")(given, *args)
        assert copied.array.tolist() == resolve(f"aten::{name}")(given, *args).array.tolist()
        assert not np.shares_memory(copied.array, given.array)
        assert copied.array.flags.c_contiguous
    assert resolve("aten::alias_copy", NEWEST)(given, out=Tensor(np.zeros(0, np.int64))).shape == (2, 2)


OTHERS = tuple(f"{name}_copy" for name in ("alias", "detach", "squeeze", "view"))


@pytest.mark.parametrize("name", OTHERS)
def test_copies_of_views_are_broadcast_into_out_up_to_1_13_and_resize_it_since(name: str) -> None:
    """As 1.12.1, 1.13.1, 2.0.1, 2.6.0 and 2.15.0 gave."""
    args = (t([1.5, -2.0]), [2]) if name == "view_copy" else (t([1.5, -2.0]),)
    old, new = (resolve(f"aten::{name}", Release(release)) for release in ("1.13.1", "2.0.1"))
    out = t([[0, 0]] * 3)
    assert old(*args, out=out) is out
    assert (out.array.dtype, out.array.tolist()) == (np.int64, [[1, -2]] * 3)
    with pytest.raises(Raised):
        old(*args, out=t([0, 0, 0]))
    with pytest.raises(Raised, match="dtype"):
        new(*args, out=t([0, 0]))
    out = t([[0.5]])
    assert new(*args, out=out).array.tolist() == out.array.tolist() == [1.5, -2.0]


def test_several_copies_are_broadcast_into_out_and_those_of_stated_sizes_resize_it_since_2_3() -> None:
    """As 1.13.1, 2.0.1, 2.2.2, 2.3.1, 2.4.1, 2.6.0, 2.7.1 and 2.15.0 gave; those of ``unbind`` do since 2.7."""
    given = t([[1.5, -2.0], [3.0, 7.0]])
    for name, args in (("split", (1,)), ("unbind", ()), ("split_with_sizes", ([1, 1],))):
        for release in ("1.13.1", "2.2.2", "2.3.1", "2.6.0", "2.7.1"):
            call = resolve(f"aten::{name}_copy", Release(release))
            out = [t([[0.0, 0.0]] * 2), t([[0.0, 0.0]])]
            assert call(given, *args, out=out) is None
            resizes = name == "split_with_sizes" and release in {"2.3.1", "2.6.0", "2.7.1"}
            flat = name == "unbind" and release == "2.7.1"
            kept = [1.5, -2.0] if flat else [[1.5, -2.0]] if resizes else [[1.5, -2.0]] * 2
            assert out[0].array.tolist() == kept, (name, release)
            assert out[1].array.tolist() == ([3.0, 7.0] if flat else [[3.0, 7.0]])
            with pytest.raises(Raised, match="expected an out= argument of size 2, got size 1"):
                call(given, *args, out=out[:1])


def test_halves_are_copied_by_their_number_from_1_8_to_1_13() -> None:
    """As 1.7.1, 1.8.1, 1.13.1 and 2.0.1 gave, whether ``copy_`` was called or a program wrote into a row."""

    def copied(target: Any, source: Any, release: str) -> Any:
        return resolve("aten::copy_", Release(release))(target, source).array.tolist()

    halves = np.zeros(2, np.float16)
    many = t([[1.0, 2.0], [3.0, 4.0]])
    for release in ("1.7.1", "2.0.1"):
        assert copied(Tensor(np.zeros((2, 2), np.float16)), t([4.5, 1.5]), release) == [[4.5, 1.5]] * 2
        with pytest.raises(Raised, match="broadcast shape"):
            copied(Tensor(halves.copy()), many, release)
    for release in ("1.8.1", "1.13.1"):
        assert copied(Tensor(halves.copy()), many, release) == [1.0, 2.0]
        assert copied(Tensor(np.zeros((2, 1), np.float32)), Tensor(np.array([1.5, 2.5], np.float16)), release) == [[1.5], [2.5]]
        assert copied(Tensor(np.zeros((0, 2), np.float16)), t([1.0, 2.0, 3.0]), release) == []
        with pytest.raises(Unsupported, match="past the end"):
            copied(Tensor(halves.copy()), t(4.5), release)
        turned = Tensor(np.zeros((2, 3), np.float16).T)
        assert copied(turned, t([1.0, 2.0]), release) == [[1.0, 2.0]] * 3, "not contiguous"
        assert copied(Tensor(np.zeros((2, 2))), t([1.0, 2.0]), release) == [[1.0, 2.0]] * 2, "doubles"


def test_elements_that_are_said_to_be_unique_and_occur_twice_are_found() -> None:
    """As 1.13.1, 2.0.1 and 2.15.0 gave: only where there are many others, which are sorted together with them."""
    isin = resolve("aten::isin", NEWEST)
    ours = t([1, 2, 2, 3, 9])
    few, many = t([2, 5, 5, 7]), t([*range(10, 24), 2, 5, 9])
    assert isin(ours, few, assume_unique=True).array.tolist() == [False, True, True, False, False]
    assert isin(ours, many, assume_unique=True).array.tolist() == [False, True, True, False, True]
    twice = t([1, 1, 3, 3, 9])
    assert isin(twice, few, assume_unique=True).array.tolist() == [False] * 5
    assert isin(twice, many, assume_unique=True).array.tolist() == [True, False, True, False, True]
    assert isin(twice, many, assume_unique=True, invert=True).array.tolist() == [False, True, False, True, False]
    assert isin(t([nan, nan]), t([0.5] * 20), assume_unique=True).array.tolist() == [False, False]


def test_parts_of_a_flat_tensor_are_views() -> None:
    flat = t([1, 2, 3])
    first, second = resolve("aten::unflatten_dense_tensors")(flat, [t([[0, 0]]), t(0)])
    assert (first.shape, second.shape) == ((1, 2), ())
    assert np.shares_memory(first.array, flat.array)


def test_the_memory_of_a_scattered_view() -> None:
    """Since 2.0 the whole memory is copied, up to 1.13 the tensor alone."""
    base = Tensor(np.arange(8).reshape(2, 4))
    part = Tensor(base.array[:, ::2])
    tensor = resolve("aten::as_strided_scatter", Release("2.0.1"))(part, t([50, 60]), [2], [1], 1)
    assert tensor.array.tolist() == [[0, 60], [4, 6]]
    assert base.array.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    with pytest.raises(Unsupported, match="instead of its whole storage"):
        resolve("aten::as_strided_scatter", Release("1.13.1"))(part, t([50, 60]), [2], [1], 1)


@pytest.mark.parametrize("mode", ["constant", "circular"])
@pytest.mark.parametrize("kind", ["int64", "bool", "float16", "uint8"])
@pytest.mark.parametrize("release", ["1.12.1", "2.0.1", "2.15.0"])
def test_padding_that_copies_takes_every_type(mode: str, kind: str, release: str) -> None:
    given = t([[[1, 0]]], kind)
    assert resolve("aten::pad", Release(release))(given, [1, 1], mode).shape == (1, 1, 4)


@pytest.mark.parametrize("mode", ["reflect", "replicate"])
def test_padding_by_elements_refuses_whole_numbers_up_to_2_0(mode: str) -> None:
    given = t([[[1, 2, 3]]])
    assert called("pad", (given, [1, 1], mode), at="2.0.1") == "raises"
    assert called("pad", (given, [1, 1], mode), at="2.1.2") != "raises"


@pytest.mark.parametrize(
    ("release", "dims", "expected"), [("1.2.0", 3, [1.0, 4.0, 5.0]), ("2.0.1", 3, [1.0, 4.0, 5.0]), ("2.1.2", 3, [1.0, 3.0, 5.0]), ("1.2.0", 2, [1.0, 3.0, 5.0]), ("2.15.0", 2, [1.0, 3.0, 5.0])]
)  # fmt: skip
def test_the_nearest_of_two_pixels(release: str, dims: int, expected: list[float]) -> None:
    """Of pictures the even one, of volumes up to 2.0 the one away from zero; 0.49999997 is nearer to 0."""
    image = Tensor(np.arange(1, 6, dtype=np.float32).reshape((1,) * (dims + 1) + (5,)))
    places = np.zeros((1, *(1,) * (dims - 1), 3, dims), np.float32)
    places[..., 0] = np.array([-0.75000006, 0.25, 1.0], np.float32)
    tensor = resolve("aten::grid_sampler", Release(release))(image, Tensor(places), 1, 1, True)
    assert tensor.array.reshape(-1).tolist() == expected


def test_places_may_have_more_dimensions_than_points() -> None:
    """The dimension is counted from the first of the points."""
    assert resolve("aten::cumulative_trapezoid")(t([1.0, 7.0]), t([[-3], [0]]), dim=-1).shape == (1, 1)


def test_memory_that_nothing_writes_is_not_modelled() -> None:
    assert resolve("aten::resize")(t([1, 2, 3]), [2]).array.tolist() == [1, 2]
    with pytest.raises(Unsupported, match="the additional memory is uninitialized"):
        resolve("aten::resize_as")(t([1]), t([1, 2]))
    turned = Tensor(np.arange(4).reshape(2, 2).T)
    for release in ("1.12.1", "1.13.1", "2.15.0"):
        assert resolve("aten::resize", Release(release))(turned, [2]).array.tolist() == [0, 1]
        assert resolve("aten::resize", Release(release))(turned, [2, 2], memory_format=0).array.tolist() == [[0, 1], [2, 3]]


def test_results_that_out_does_not_fit() -> None:
    whole = t([[2.0]])
    assert resolve("aten::inverse", Release("1.9.1"))(whole, out=t([0.0])).shape == (1, 1)
    assert resolve("aten::inverse", Release("1.8.1"))(whole, out=t([[0.0]])).array.tolist() == [[0.5]]
    with pytest.raises(Raised, match="doesn't match the broadcast shape"):  # as 1.8.1
        resolve("aten::inverse", Release("1.8.1"))(whole, out=t([0.0]))
    double = Tensor(np.zeros(1, np.float64))
    assert resolve("aten::pow", Release("1.6.0"))(t([2.0]), t([3.0]), out=double).array.tolist() == [8.0]
    with pytest.raises(Unsupported, match="in the dtype of out="):
        resolve("aten::pow", Release("1.5.1"))(t([2.0]), t([3.0]), out=double)


def test_eigenvalues_of_complex_matrices_are_real() -> None:
    values, vectors = resolve("aten::symeig", Release("1.10.2"))(Tensor(np.eye(2, dtype=np.complex64)), True)
    assert (values.array.dtype, vectors.array.dtype) == (np.float32, np.complex64)


def test_digamma_at_infinities() -> None:
    given = t([-np.inf, np.inf, -1e30])
    assert resolve("aten::digamma", Release("1.7.1"))(given).array.tolist() == [np.inf, np.inf, np.inf]
    assert np.isnan(resolve("aten::digamma", Release("1.8.1"))(given).array).tolist() == [True, False, True]


def test_polygamma_at_the_poles_of_float32() -> None:
    """There the sine of a multiple of pi is not zero, but what float32 leaves of it."""
    single = resolve("aten::polygamma")(1, t([-1.0, -2.0, -3.0])).array
    assert single == pytest.approx([1.2914e15, 3.2284e14, 1.7351e16], rel=1e-4)
    double = resolve("aten::polygamma")(1, Tensor(np.array([-1.0]))).array
    assert double == pytest.approx([6.5808e32], rel=1e-4)


def test_exponentials_of_complex_matrices_in_1_7() -> None:
    """They are NaN for some matrices, and right for small ones."""
    with pytest.raises(Unsupported, match="complex"):
        resolve("aten::matrix_exp", Release("1.7.1"))(Tensor(np.eye(2, dtype=complex)))


@pytest.mark.parametrize("name", ["hann", "hamming", "blackman", "bartlett"])
def test_windows_are_rounded_after_each_step(name: str) -> None:
    """Values of 2.15.0."""
    result = wide(resolve(f"aten::{name}_window")(5, True, dtype=15).array).tolist()  # bfloat16
    assert (
        result
        == {
            "hann": [0.0, 0.345703125, 0.90625, 0.8984375, 0.34375],
            "hamming": [0.078125, 0.396484375, 0.9140625, 0.90625, 0.39453125],
            "blackman": [0.0, 0.201171875, 0.8515625, 0.84375, 0.1982421875],
            "bartlett": [0.0, 0.400390625, 0.80078125, 0.796875, 0.3984375],
        }[name]
    )


def test_covariances_of_16_bits_are_rounded_after_each_step() -> None:
    """Values of 1.13.1 and newer."""
    given = Tensor(
        np.array(
            [
                [
                    -1.1258398294448853,
                    -1.152360200881958,
                    0.5666506290435791,
                    0.7935083508491516,
                    0.5988394618034363,
                    -1.5550950765609741,
                ],
                [
                    -0.3413603901863098,
                    1.85300612449646,
                    0.46809640526771545,
                    -0.1577124446630478,
                    -0.1733967512845993,
                    0.18347793817520142,
                ],
                [
                    1.3893661499023438,
                    1.586334228515625,
                    0.946298360824585,
                    -0.843676745891571,
                    0.9318265914916992,
                    1.2590092420578003,
                ],
            ],
            np.float32,
        ).astype(BFLOAT16)
    )
    assert wide(resolve("aten::cov")(given).array).tolist() == [
        [1.1484375, -0.28515625, -0.65625],
        [-0.28515625, 0.66015625, 0.298828125],
        [-0.65625, 0.298828125, 0.7734375],
    ]
    assert wide(resolve("aten::corrcoef")(given).array).tolist() == [
        [1.0, -0.326171875, -0.69921875],
        [-0.328125, 1.0, 0.41796875],
        [-0.6953125, 0.41796875, 1.0],
    ]


@pytest.mark.parametrize("release", ["1.2.0", "1.6.0", "1.7.1", "2.15.0"])
def test_a_sum_of_negative_zeros_is_not_negative(release: str) -> None:
    """As 1.2.0, 1.4.0, 1.5.1, 1.6.0, 1.7.1, 1.8.1, 1.13.1 and 2.15.0 gave; products keep their sign."""
    zeros = Tensor(-np.zeros((2, 3), np.float32))
    for name, args in (("sum", ([1],)), ("sum", ()), ("mean", ([1],)), ("cumsum", (1,))):
        result = resolve(f"aten::{name}", Release(release))(zeros, *args).array
        assert not np.signbit(result).any(), name
    assert np.signbit(resolve("aten::cumprod", Release(release))(zeros, 1).array).tolist() == [[True, False, True]] * 2


@pytest.mark.parametrize("release", ["1.2.0", "2.15.0"])
def test_products_along_one_dimension_where_another_has_no_elements(release: str) -> None:
    """As 1.2.0, 1.5.1, 1.8.1, 1.13.1, 2.0.1 and 2.15.0 gave."""
    prod = resolve("aten::prod", Release(release))
    assert prod(Tensor(np.zeros((2, 0), np.float32)), 0, True).shape == (1, 0)
    assert prod(Tensor(np.zeros((0, 2, 3), np.float32)), 1).shape == (0, 3)
    assert prod(Tensor(np.zeros((2, 0), np.float32)), 1).array.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("first", "second", "weight", "bias", "said"),
    [
        ((1, 3), (1, 2), (1, 3, 3), None, "input2 size does not match"),
        ((1, 2), (1, 3), (1, 3, 3), None, "input1 size does not match"),
        ((2, 3), (1, 3), (1, 3, 3), None, "batch dimensions do not match at dim 0"),
        ((3,), (1, 3), (1, 3, 3), None, "input dimensions do not match: got 1 and 2"),
        ((2, 3), (2, 3), (3, 3), None, "weight"),
        ((2, 3), (2, 3), (2, 3, 3), (1,), "bias size does not match"),
    ],
)
def test_bilinear_forms_of_shapes_that_do_not_fit(
    first: tuple[int, ...], second: tuple[int, ...], weight: tuple[int, ...], bias: tuple[int, ...] | None, said: str
) -> None:
    """As 1.2.0, 1.5.1, 1.8.1, 1.13.1, 2.0.1 and 2.15.0 raised, but for the words of the weight."""
    zeros = [None if shape is None else Tensor(np.zeros(shape, np.float32)) for shape in (first, second, weight, bias)]
    with pytest.raises(Raised, match=said):
        resolve("aten::bilinear", NEWEST)(*zeros)


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        ([-1.0, 7.0, 1e30, 2.0, 255.0], [4, 4, 0, 0]), ([3.0, 1.0, 2.0, 7.0], [0, 0, 3]),
        ([0.0, 5.0, 5.0, 1.0, 9.0, 8.0, 300.0], [1, 0, 0, 4, 0, 2]), ([0.0, nan, 5.0, 9.0], [0, 3, 2]),
    ],
)  # fmt: skip
def test_edges_that_are_not_sorted_are_searched_like_sorted_edges(edges: list[float], expected: list[float]) -> None:
    """As 1.10.2, 2.0.1 and 2.15.0."""
    x = Tensor(np.array([7.0, 1e-40, 7.0, 255.0, -1e30, 1e30, 3.0, -1.0, 2.0, 100.0]))
    for release in ("1.10.2", "2.15.0"):
        tensor, _ = resolve("aten::histogram", Release(release))(x, Tensor(np.array(edges)))
        assert tensor.array.tolist() == expected


@pytest.mark.parametrize("number", [1e30, -1e30, 3e7])
def test_equal_ends_of_a_histogram_put_all_into_the_second_bin(number: float) -> None:
    """As 1.12.1 and 2.15.0."""
    x = Tensor(np.array([number, number], np.float32))
    for bins, expected in ((1, [2]), (2, [0, 2]), (4, [0, 2, 0, 0])):
        tensor, _ = resolve("aten::histogram", NEWEST)(x, bins)
        assert tensor.array.tolist() == expected


def test_casts_of_complex_numbers_up_to_1_5() -> None:
    """As 1.5.1 and 1.6.0: numbers 2, 6, 9 and 11 are int16, float32, complex64 and bool."""
    for release, expected in (("1.5.1", [True, True, True, False]), ("1.6.0", [False, False, True, False])):
        assert [resolve("aten::can_cast", Release(release))(9, to) for to in (2, 6, 9, 11)] == expected


def test_a_dense_copy_of_imaginary_numbers_as_bool_is_not_modelled_up_to_2_3() -> None:
    x = Tensor(np.array([1.5, -3.75j]))
    with pytest.raises(Unsupported):
        resolve("aten::to_dense", Release("1.12.1"))(x, 11)
    assert resolve("aten::to_dense", Release("2.4.1"))(x, 11).array.tolist() == [True, True]
