"""Calls whose results changed between two releases, each as the releases on both sides of the change answered it.

Lives in tests/runtime/operators/ beside harness/torch_compat/runtime/operators/ and policies/torch/changes.toml.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from torch_compat.errors import Raised, Unsupported
from torch_compat.releases.release import Release
from torch_compat.runtime.dtypes import BFLOAT16
from torch_compat.runtime.limits import LIMITS, Exhausted, Limits, meter
from torch_compat.runtime.operators._algorithms import LOOKED_AT, quickselect
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import Tensor

REFUSED, NOT_MODELLED = "refused", "not modelled"


def array(values: Any, dtype: Any = np.float32) -> Tensor:
    return Tensor(np.array(values, dtype))


def plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return value.array.tolist() if isinstance(value, Tensor) else value


def answer(horizon: str, name: str, *args: Any, **keywords: Any) -> Any:
    """The result as lists; ``REFUSED`` or ``NOT_MODELLED``."""
    try:
        with np.errstate(all="ignore"):
            return plain(resolve(name, Release(horizon))(*args, **keywords))
    except Raised:
        return REFUSED
    except Unsupported:
        return NOT_MODELLED


@pytest.mark.parametrize(
    ("name", "bounds", "before", "after"),
    [
        ("clamp_min", (-1,), [255, 255], [4, 0]),
        ("clamp_min", (-300,), REFUSED, [4, 0]),
        ("clamp_min", (300,), REFUSED, REFUSED),
        ("clamp_max", (300,), REFUSED, [4, 0]),
        ("clamp_max", (-1,), [4, 0], REFUSED),
        ("clamp", (-1, 300), REFUSED, [4, 0]),
        ("hardtanh", (-1, 1), REFUSED, [1, 0]),
    ],
)
def test_bounds_beyond_bytes(name: str, bounds: tuple[int, ...], before: Any, after: Any) -> None:
    """As 2.14.1 and 2.15.0 gave them."""
    results = [answer(horizon, f"aten::{name}", array([4, 0], np.uint8), *bounds) for horizon in ("2.14.1", "2.15.0")]
    assert results == [before, after]


ASKED: list[tuple[str, str, str, Any, Any, tuple[Any, ...]]] = [
    (
        "aten::_unique2",
        "2.1.2",
        "2.2.2",
        [[1, 3], [1, 0, 1], [1, 2]],
        [[1, 3], [], [1, 2]],
        (array([3, 1, 3], np.int64), True, False, True),
    ),
    ("aten::triu", "1.13.1", "2.0.1", [], REFUSED, (array([]),)),
    ("aten::prelu", "1.11.0", "1.12.1", [[-2, 2, -12]], REFUSED, (array([[-1, 2, -3]]), array([[2, 3, 4]]))),
    ("aten::diff", "2.0.1", "2.1.2", [1, 2], REFUSED, (array([1, 2]), -1)),
    ("aten::cross", "1.12.1", "1.13.1", [[0] * 3] * 3, REFUSED, (array([1, 1, 1]), array(np.ones((3, 3))), 0)),
    ("aten::cross", "1.10.2", "1.11.0", REFUSED, [[0] * 3] * 3, (array([1, 1, 1]), array(np.ones((3, 3))), 0)),
    ("aten::reflection_pad1d", "2.0.1", "2.1.2", [[[2, 1, 2, 1]]], REFUSED, (array([[[1, 2]]]), [1, 1, 1])),
    (
        "aten::batch_norm",
        "1.3.1",
        "1.4.0",
        REFUSED,
        [],
        (array(np.ones((0, 3))), None, None, array([]), array([]), False, 0.1, 1e-5),
    ),
    ("aten::aminmax", "2.0.1", "2.1.2", NOT_MODELLED, [3, 3], (array(3),)),
    ("aten::expandtabs", "1.6.0", "2.15.0", "a   b   cd\n e", "a   b   cd\n e", ("a\tb\tcd\n\te", 4)),
    ("aten::bin", "2.7.1", "2.8.0", "-0b0", "-0b1" + "0" * 63, (-(1 << 63),)),
    ("aten::bin", "1.12.1", "1.13.1", "-0b1" + "0" * 63, "-0b0", (-(1 << 63),)),
    ("aten::mode", "1.1.0", "2.15.0", [0.5, 0], [0.5, 0], (array(0.5, np.float16),)),
    ("aten::max", "1.1.0", "1.5.1", REFUSED, REFUSED, (array(0.5, np.float16), array(1, np.float16))),
    ("aten::kthvalue", "1.1.0", "1.2.0", REFUSED, [0.5, 0], (array(0.5, np.float16), 1)),
]


@pytest.mark.parametrize(
    ("name", "before", "after", "old", "new", "args"), ASKED, ids=lambda item: item if isinstance(item, str) else ""
)
def test_both_sides_of_a_change(name: str, before: str, after: str, old: Any, new: Any, args: tuple[Any, ...]) -> None:
    keywords = {"dim": 0, "keepdim": True} if name == "aten::aminmax" else {}
    assert [answer(horizon, name, *args, **keywords) for horizon in (before, after)] == [old, new]


@pytest.mark.parametrize(
    ("horizon", "expected", "kept"), [("1.3.1", 2.25, 2.25), ("1.4.0", REFUSED, 7), ("1.5.0", 2.25, 7), ("1.6.0", 2.25, 7)]
)
def test_smooth_l1_loss_reduced_into_out(horizon: str, expected: Any, kept: float) -> None:
    out = array(7)
    assert answer(horizon, "aten::smooth_l1_loss", array([[1, 2], [3, 5]]), array(np.zeros((2, 2))), 1, out=out) == expected
    assert out.array.tolist() == kept


def test_lists_of_numbers_with_nan_are_compared_as_torch_does() -> None:
    """As 1.5.1 gave it: the first list, unless the second one precedes it."""
    assert answer("1.5.1", "prim::min", [-2.5], [float("nan")] * 2) == [-2.5]
    assert answer("1.5.1", "prim::max", [1.0, 2.0], [1.0]) == [1.0, 2.0]


def test_powers_that_small_integers_cannot_hold() -> None:
    seven = array([7], np.uint8)
    assert answer("1.5.1", "aten::pow", seven, 7.0) == [0]
    assert answer("1.5.1", "aten::pow", array([2], np.uint8), 7.0) == [128]
    assert answer("1.2.0", "aten::pow", seven, 7.0) == answer("1.6.0", "aten::pow", seven, 7) == [247]


def test_the_number_that_one_half_cannot_hold() -> None:
    """As 2.13.0 gave it; up to 2.7 fill_ refuses it."""
    assert answer("2.8.0", "aten::copy_", array(1, np.float16), 1e10) == float("inf")
    assert answer("2.7.1", "aten::copy_", array(1, np.float16), 1e10) == REFUSED


def test_complex_numbers_of_two_halves_are_not_modelled() -> None:
    for dtype in (np.float16, BFLOAT16.array):
        assert answer("2.15.0", "aten::mul", array([1], dtype), array(1j, np.complex64)) == NOT_MODELLED


def test_integers_of_covariances_overflow_as_they_are_summed() -> None:
    """As 2.13.0 and 2.15.0 gave it."""
    most = 9223372036854775807
    result = answer("2.15.0", "aten::corrcoef", array([[-1, most], [most, 4]], np.int64))
    assert result[0][1] == pytest.approx(-0.4472135901451111)


def test_in_1_13_weights_of_attention_are_asked_for_before_causality() -> None:
    query = array([[[3.0, 2.0], [1.0, 1.0]]])
    plainly = answer("1.13.1", "aten::_scaled_dot_product_attention_math", query, query, query, None, 0.0, True)
    assert plainly == answer("2.0.1", "aten::_scaled_dot_product_attention_math", query, query, query)
    causal = answer("1.13.1", "aten::_scaled_dot_product_attention_math", query, query, query, None, 0.0, False, True)
    assert causal[0][0][0] == [3.0, 2.0]


def test_of_two_lists_the_second_is_given_where_nan_decides_since_2_13() -> None:
    nan = float("nan")
    for name in ("prim::min", "prim::max"):
        assert answer("2.12.1", name, [0.25, 0.0, 3.0], [nan, -1.0]) == [0.25, 0.0, 3.0]
        assert math.isnan(answer("2.13.0", name, [0.25, 0.0, 3.0], [nan, -1.0])[0])
        for release in ("2.12.1", "2.13.0"):
            item, other = [1], [1]
            assert resolve(name, Release(release))(item, other) is other
    assert answer("2.13.0", "prim::min", [1.0], [1.0, nan]) == [1.0]


@pytest.mark.parametrize("name", ["aten::grid_sampler", "aten::grid_sampler_3d"])
def test_the_nearest_point_of_a_volume_rounds_halves_to_even_since_2_1(name: str) -> None:
    volume, point = array(np.arange(1.0, 4.0).reshape(1, 1, 3, 1, 1)), array([[[[[0.0, 0.0, -0.5]]]]])
    assert answer("2.0.1", name, volume, point, 1, 0, True) == [[[[[2.0]]]]]
    assert answer("2.1.2", name, volume, point, 1, 0, True) == [[[[[1.0]]]]]
    plane = array(np.arange(1.0, 4.0).reshape(1, 1, 3, 1))
    assert answer("2.0.1", "aten::grid_sampler", plane, array([[[[0.0, -0.5]]]]), 1, 0, True) == [[[[1.0]]]]


TIES = np.array([[1, 0, 2, 0, 1, 0], [1, 0, 2, 0, 3, 0]], np.float32)


@pytest.mark.parametrize(
    ("release", "whole", "gaps", "arg_of_gaps", "least"),
    [
        ("1.0.1", [1, 1, 1], [0, 0, 1], [0, 0, 1], 3),
        ("1.2.0", [1, 1, 1], [0, 0, 1], [0, 0, 1], 0),
        ("1.3.1", [1, 1, 1], [0, 0, 1], [1, 1, 1], 3),
        ("1.5.1", [1, 1, 1], [0, 0, 1], [1, 1, 1], 3),
        ("1.6.0", [0, 0, 1], [0, 0, 1], [1, 1, 1], 3),
        ("1.7.1", [0, 0, 1], [0, 0, 1], [0, 0, 1], 0),
    ],
)
def test_which_of_equal_elements_is_the_largest(
    release: str, whole: list[int], gaps: list[int], arg_of_gaps: list[int], least: int
) -> None:
    """Of a tensor without gaps the last one, of one with gaps the first; argmax takes every tensor as one without from 1.3 on."""
    assert answer(release, "aten::max", array(TIES[:, ::2].copy()), 0)[1] == whole
    assert answer(release, "aten::max", Tensor(TIES[:, ::2]), 0)[1] == gaps
    assert answer(release, "aten::argmax", Tensor(TIES[:, ::2]), 0) == arg_of_gaps
    assert answer(release, "aten::argmin", Tensor(TIES[:, ::2])) == least


@pytest.mark.parametrize(("release", "expected"), [("1.1.0", [0, 1, 1]), ("1.2.0", [0, 1, 1]), ("1.3.1", [1, 1, 1])])
def test_tolerances_between_integers_are_cut_up_to_1_2(release: str, expected: list[int]) -> None:
    assert answer(release, "aten::isclose", array([5, 3, 4], np.int64), array([2, 2, 2], np.int64), 1.5, 0.5) == expected
    assert answer(release, "aten::allclose", array(5, np.int16), array(2, np.int16), 1.5, 0.5) is (release == "1.3.1")


def test_lengths_of_cosine_similarity_are_those_before_broadcasting_up_to_1_9() -> None:
    given = array([[3.0, -1.0]]), array([[-2.5], [-0.5]]), 0, 3.0
    assert answer("1.9.1", "aten::cosine_similarity", *given) == pytest.approx([-1.17669677734375, 1.0])
    assert answer("1.10.2", "aten::cosine_similarity", *given) == pytest.approx([-0.8320503234863281, 0.8320503234863281])


@pytest.mark.parametrize(
    ("release", "values", "places"),
    [
        ("1.1.0", [[4.0, -3.4028234663852886e38], [-3.4028234663852886e38] * 2], [[4, -1], [-1, -1]]),
        ("1.2.0", [[4.0, -np.inf], [-np.inf, -np.inf]], [[4, 3], [9, 12]]),
        ("1.7.1", [[4.0, -np.inf], [-np.inf, -np.inf]], [[4, 3], [9, 12]]),
        ("1.8.1", [[4.0]], [[4]]),
    ],
)
def test_windows_beyond_a_pooled_tensor(release: str, values: Any, places: Any) -> None:
    plane = array(np.arange(9.0).reshape(1, 1, 3, 3))
    assert answer(release, "aten::max_pool2d_with_indices", plane, [2, 2], [3, 3], [0, 0], [1, 1], True) == [
        [[values]],
        [[places]],
    ]


def test_an_out_that_grows_keeps_its_offset() -> None:
    memory = np.zeros(4, np.int64)
    out = Tensor(memory[2:])
    resolve("aten::add", Release("2.15.0"))(array([1, 2, 3], np.int64), array([1, 1, 1], np.int64), out=out)
    assert out.array.tolist() == [2, 3, 4]
    assert out.storage_offset == 2


@pytest.mark.parametrize(("amount", "expected"), [(6, 64), (8, 0), (31, 0), (33, 2), (126, 0)])
def test_bytes_are_shifted_as_words(amount: int, expected: int) -> None:
    """As 1.2.0 to 2.0.1 gave it: by the amount modulo 32, whatever does not fit is lost."""
    given = array([1], np.int8), array([amount], np.int8)
    assert answer("2.0.1", "aten::__lshift__", *given) == [expected]
    assert answer("2.1.2", "aten::__lshift__", *given) == [expected if amount < 8 else 0]


@pytest.mark.parametrize(
    ("values", "rank", "place"),
    [
        ([1, 1], 2, 1), ([1, 1, 1], 2, 0), ([2, 1, 1, 3], 2, 1), ([0, 0, 0, 0, 0], 2, 2), ([2, 2, 1, 1, 2, 1, 1], 2, 3), ([5, 4, 4, 4, 3], 2, 3),
        ([4, 4, 4, 5, 3], 2, 0),
    ],
)  # fmt: skip
def test_which_of_equal_numbers_kthvalue_takes(values: list[float], rank: int, place: int) -> None:
    """As 1.0.0, 1.2.0, 1.7.1, 1.8.1 and 2.1.2 gave it: the place in which the element was before it was moved."""
    for horizon in ("1.0.0", "1.2.0", "2.1.2"):
        assert answer(horizon, "aten::kthvalue", array(values), rank, 0) == [sorted(values)[rank - 1], place]
        rows = array([[9] * len(values), values])
        assert answer(horizon, "aten::kthvalue", rows, rank, 1, True)[1][1] == [place]


def test_kthvalue_among_nan() -> None:
    """As 1.2.0 and 2.1.2 gave it; 1.0 compares NaN otherwise."""
    values = array([math.nan, 1, math.nan, 2, math.nan])
    assert answer("1.2.0", "aten::kthvalue", values, 1, 0) == answer("2.1.2", "aten::kthvalue", values, 1, 0) == [1.0, 1]
    assert answer("1.0.1", "aten::kthvalue", values, 1, 0) == NOT_MODELLED


def worst_order(count: int) -> list[int]:
    """Numbers whose selection takes time in proportion to their square: each comparison decides against whoever compares (McIlroy 1999)."""
    decided: list[Undecided] = []
    last: list[Undecided] = []

    class Undecided:
        value: int | None = None

        def __gt__(self, other: Undecided) -> bool:
            if self.value is None and other.value is None:
                item = self if self in last else other
                item.value = len(decided)
                decided.append(item)
            if self.value is None or other.value is None:
                last[:] = [self if self.value is None else other]
                return self.value is None
            return self.value > other.value

    results = [Undecided() for _ in range(count)]
    quickselect(list(range(count)), count - 1, lambda a, b: results[b] > results[a])
    return [min(count if item.value is None else item.value, count - 3) for item in results]


def test_many_distinct_elements_are_sorted_whatever_table_found_them() -> None:
    """torch 2.1.2: torch.unique(torch.arange(3000.) % 1500, return_counts=True) has 1,500 values, each twice."""
    unique = resolve("aten::_unique2", Release("2.1.2"))
    for dtype in (np.float32, np.float16, np.int64):
        given = Tensor((np.arange(3000) % 1500).astype(dtype))
        values, places, counts = unique(given, True, True, True)
        assert values.array.tolist() == list(range(1500))
        assert (values.array[places.array] == given.array).all()
        assert set(counts.array.tolist()) == {2}
    with pytest.raises(Unsupported, match="only for up to 1031 numbers"):
        unique(Tensor(np.arange(3000.0)), False, True, True)
    with pytest.raises(Unsupported, match="only for up to 1031 numbers"):
        unique(Tensor(np.append(np.arange(3000.0), np.nan)), True, True, True)


def test_a_selection_that_takes_quadratic_time_ends_at_its_budget() -> None:
    count = 2_000
    rank = count - 1
    meter.begin(Limits(work=LOOKED_AT * 20 * count))
    try:
        ordinary = np.minimum(np.random.default_rng(1).permutation(count), count - 3)
        assert answer("2.1.2", "aten::kthvalue", array(ordinary), rank, 0)[0] == count - 3
        with pytest.raises(Exhausted, match="more work than the limit"):
            resolve("aten::kthvalue", Release("2.1.2"))(array(worst_order(count)), rank, 0)
    finally:
        meter.begin(LIMITS)


def test_a_mask_of_truths_is_one_of_numbers_since_2_1() -> None:
    """As 2.0.1 and 2.1.2 gave it: ``_scaled_dot_product_attention_math`` adds True as 1."""
    query, value = array(np.arange(6).reshape(1, 1, 2, 3) / 6), array(np.arange(4).reshape(1, 1, 2, 2))
    mask = array([[True, False], [True, False]], np.bool_)
    results = [
        answer(horizon, "aten::_scaled_dot_product_attention_math", query, query, value, mask)[0][0][0]
        for horizon in ("2.0.1", "2.1.2")
    ]
    assert results[0] == [[0.0, 1.0], [0.0, 1.0]]
    assert np.array(results[1]) == pytest.approx(np.array([[0.5964928, 1.5964928], [0.7917657, 1.7917657]]), abs=1e-6)


PERMUTED = Tensor(np.lib.stride_tricks.as_strided(np.arange(9, dtype=np.float32), (3, 1, 3), (4, 12, 12)))
DEFECTS: list[tuple[str, tuple[Any, ...], dict[str, Any], str | None, str | None]] = [
    # operator, arguments, keywords, a release whose defect is not modelled, a release beside it that is
    ("hardtanh", (array([0.0, 0.25, 7.0] * 8), 0.5, 0), {}, "1.7.1", "1.4.0"),
    ("hardtanh", (array([0.0, 0.25, 7.0]), 0.5, 0), {}, None, "1.7.1"),
    ("scatter_add", (array([[6, 4]]), 0, array([[0]], np.int64), array([[2, 2]])), {}, "1.2.0", "1.3.1"),
    ("_weight_norm", (array([[3.0, 4.0]]), array([[1j]], np.complex64), 0), {}, "1.11.0", None),
    ("_weight_norm", (array([[3.0, 4.0]]), array([[2.0]]), 0), {}, None, "1.11.0"),
    ("add", (array([1, 1]), array(1j, np.complex128)), {}, "1.11.0", "1.12.1"),
    ("mul", (array(1j, np.complex128), array([1, 1])), {}, "1.6.0", "1.12.1"),
    ("add", (array([1, 1], np.float64), array(1j, np.complex128)), {}, None, "1.11.0"),
    ("argmax", (array(1.0), 0, False), {}, "1.5.1", "1.6.0"),
    ("argmax", (array(1.0), None, False), {}, None, "1.5.1"),
    ("cross_entropy_loss", (array([[7, 1], [0, 3]]), array([1, 0], np.int64), None, 1, 1, 0.1), {}, "1.10.2", "1.11.0"),
    ("cross_entropy_loss", (array([[7, 1], [0, 3]]), array([1, 0], np.int64), None, 1, 1, 0.0), {}, None, "1.10.2"),
    ("cholesky_inverse", (array([[1 + 1j]], np.complex64),), {}, "2.15.0", "1.5.1"),
    ("cholesky_inverse", (array([[2 + 0j]], np.complex64),), {}, None, "2.15.0"),
    ("addcdiv", (array([1j], np.complex64), array([1j], np.complex64), array([0j], np.complex64)), {}, "2.6.0", "1.12.1"),
    ("to", (array([1j, 1], np.complex64), 11), {}, "2.3.1", "2.4.1"),
    ("to", (array([1j, 1], np.complex64), 10), {}, None, "2.3.1"),
    ("tensor", (1j, 11), {}, "2.3.1", "2.4.1"),
    ("sort", (array([3, math.nan, 1], np.float16), 0, True), {}, "1.6.0", "1.7.1"),
    ("batch_norm", (PERMUTED, None, None, array([0]), array([1]), False, 0.1, 1e-5, False), {}, "1.5.1", "1.6.0"),
    ("kl_div", (array([1], np.float16), array([2]), 2), {}, None, "1.5.1"),
    ("gather", (array([[0, 1], [2, 3]]), 0, array([[1]], np.int64)), {}, "2.0.1", "2.1.2"),
    ("gather", (array([[0, 1], [2, 3]]), 1, array([[1], [0]], np.int64)), {}, None, "2.0.1"),
    ("gather", (array([[0], [2]]), 0, array([[1], [0]], np.int64)), {}, None, "2.0.1"),
    ("index_fill", (array(0.5), -1, array([], np.int64), 1.0), {}, "1.8.1", "1.9.1"),
    ("isin", (array([1]), Tensor(np.zeros((2, 4), np.float32)[:, :2])), {}, "1.10.2", "1.11.0"),
    ("view_copy", (array(3), []), {}, None, "1.12.1"),
    ("nll_loss_forward", (array([1, 2]), array(1, np.int64), None, 0, -100), {}, "1.2.0", "1.4.0"),
    ("index", (array([1, 2], np.int64), [array([0], np.int64)]), {"out": array([], np.float64)}, "2.1.2", "2.2.2"),
    ("keys", ({math.nan: 1.0},), {}, "1.2.0", "1.3.1"),
    ("linalg_eig", (array([[1, 0], [0, 2]]),), {}, "2.0.1", "2.1.2"),
    ("clamp_min_", (array([1], np.int16), array([3], np.int32)), {}, None, "1.11.0"),
    ("clamp_min_", (array([1], np.int16), 3), {}, None, "1.11.0"),
    ("result_type", (array([1], BFLOAT16.array), array([1], np.float64)), {}, "1.6.0", "1.7.1"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args", "keywords", "named", "modelled"), DEFECTS)
def test_defects_of_releases_are_not_modelled(
    name: str, args: tuple[Any, ...], keywords: dict[str, Any], named: str | None, modelled: str | None
) -> None:
    """One release has a defect of its own in the call, the other answers as documented, or refuses."""
    assert named is None or answer(named, f"aten::{name}", *args, **keywords) == NOT_MODELLED
    assert modelled is None or answer(modelled, f"aten::{name}", *args, **keywords) != NOT_MODELLED


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        (0.25, 1e-40, 1.0082129439354873e-17),
        (0.25, 1e-17, -1.788560601365548e-17),
        (1e30, 3.0, 70368744177664.0),
        (1e10, 1e-7, 4.525188817411374e-07),
        (-3.75, 1e-17, 2.682840902048322e-16),
    ],
)
def test_remainders_of_doubles_in_1_5(x: float, y: float, expected: float) -> None:
    """As 1.5.1 gave it: the exact product of divisor and rounded quotient is subtracted, and the difference is rounded once."""
    assert answer("1.5.1", "aten::remainder", array([x], np.float64), array([y], np.float64)) == [expected]


def test_remainders_of_doubles_up_to_1_1() -> None:
    """As 1.0.0 and 1.1.0 gave it: the product is rounded."""
    given = array([-9.640937517254555], np.float64), array([-0.9745430973087721], np.float64)
    assert answer("1.0.0", "aten::remainder", *given) == [-0.8700496414756067]
    assert answer("1.5.1", "aten::remainder", *given) == [-0.870049641475606]


@pytest.mark.parametrize(
    ("values", "dtype", "expected"),
    [
        ([5.5, 3, 8, 1, 3, np.nan, np.nan, 0.0, -0.0, 7], np.float32, [0.0, np.nan, np.nan, 7.0, 1.0, 8.0, 3.0, 5.5]),
        ([5.5, 3, 8, 1, 3, np.nan, np.nan, 0.0, -0.0, 7], np.float64, [7.0, 0.0, 1.0, 8.0, np.nan, np.nan, 3.0, 5.5]),
        ([-1, -2, -3, 5, 1000000007, 9, 88, 13, 26, 13], np.int64, [88, 9, 1000000007, 5, 13, -3, -2, 26, -1]),
        ([5, 3, 8, 1, 3, -100, -2, 7], np.int8, [7, -100, 1, 8, -2, 3, 5]),
    ],
)
def test_distinct_elements_in_the_order_of_a_hash_table(values: list[float], dtype: Any, expected: list[float]) -> None:
    """As 1.1.0, 1.5.1 and 2.1.2 gave them."""
    for release in ("1.5.1", "2.1.2"):
        result = answer(release, "aten::_unique2", array(values, dtype), False, True, True)
        np.testing.assert_array_equal(np.array(result[0]), np.array(expected))
        assert result[2] == [0 if number != number else values.count(number) for number in expected]  # noqa: PLR0124


def test_halves_are_hashed_by_their_bits() -> None:
    """As 2.1.2 gave float16, and 1.10.2 bfloat16: both zeros are kept."""
    assert answer("2.1.2", "aten::_unique", array([7, 0.25, 1, 3], np.float16), False)[0] == [1, 0.25, 3, 7]
    result = answer("1.10.2", "aten::_unique2", array([0.5, 3, 0.0, -0.0, np.nan], BFLOAT16.array), False, True, True)
    np.testing.assert_array_equal(result[0], [np.nan, 0.0, -0.0, 3, 0.5])
    assert result[1:] == [[4, 3, 1, 2, 0], [0, 1, 1, 1, 1]]


def test_std_sort_leaves_what_stands_behind_nan() -> None:
    """As 1.1.0 to 2.1.2 gave it."""
    result = answer("1.5.1", "aten::_unique2", array([5.5, np.nan, 8, 1, 3, np.nan, np.nan, 0, 0, 7]), True, True, True)
    np.testing.assert_array_equal(result[0], [0, 1, 3, 7, 8, np.nan, np.nan, np.nan, 5.5])
    assert result[1:] == [[8, 0, 4, 1, 2, 0, 0, 0, 0, 3], [2, 1, 1, 1, 1, 0, 0, 0, 1]]
    assert answer("1.5.1", "aten::_unique2", array([*range(20), np.nan]), True) == NOT_MODELLED


@pytest.mark.parametrize(
    ("dtype", "name", "values", "number", "expected"),
    [
        (np.int16, "gt_", [1, 2, 3, 0], 0.1, [1, 1, 1, 1]),
        (np.int8, "gt_", [-1, 2, 3, 0], 0.1, [1, 1, 1, 1]),
        (np.uint8, "gt_", [1, 200, 3, 0], 0.1, [0, 0, 0, 0]),
        (np.int32, "gt_", [4, -1, 1], -3.75, [1, 0, 1]),
        (np.int32, "le_", [-2, 3], -3.75, [1, 0]),
        (np.int32, "lt_", [1, 2, 3, 0], 2.5, [1, 1, 0, 1]),
        (np.bool_, "gt_", [1, 0, 1], 0.5, [True, False, True]),
        (np.int64, "lt_", [1, 2], 1.5, NOT_MODELLED),
    ],
)
def test_integers_overwritten_by_what_compares_the_bits_of_floats(
    dtype: Any, name: str, values: list[int], number: float, expected: Any
) -> None:
    """As 1.3.1, 1.4.0, 1.5.0 and 1.5.1 gave it."""
    for release in ("1.3.1", "1.5.1"):
        assert answer(release, f"aten::{name}", array(values, dtype), number) == expected


@pytest.mark.parametrize(
    ("dtype", "exponent", "expected"),
    [
        (np.int8, 3.0, [125, -87, 64, 127]),
        (np.int8, 9.0, [0, 0, 0, 0]),
        (np.int8, 2.5, [55, 0, -4, 0]),
        (np.int16, 5.0, [3125, -16807, -32768, -32768]),
        (np.int16, 5, [3125, -16807, -11264, 0]),
        (np.int16, 2.5, [55, -32768, 1788, -32768]),
        (np.int32, 20.0, [-(2**31)] * 4),
    ],
)
def test_powers_of_integers_that_no_word_holds(dtype: Any, exponent: float, expected: list[int]) -> None:
    """As 1.3.1 and 1.5.1 gave them."""
    for release in ("1.3.1", "1.5.1"):
        assert answer(release, "aten::pow", array([5, -7, 20, 127], dtype), exponent) == expected


def test_parts_of_complex_numbers_without_a_spread() -> None:
    """As 1.9.1 and 2.15.0 gave it: nothing over nothing in one of them."""
    pair = array([1j, 2 + 1j], np.complex64)
    for release in ("1.9.1", "2.15.0"):
        assert math.isnan(answer(release, "aten::var_mean", pair, [0], correction=3)[0])
        assert answer(release, "aten::var", array([1, 2]), [0], correction=3) == math.inf
    root = answer("1.6.0", "aten::std", array([7 + 2j], np.complex64), [0])
    assert math.isnan(root.real)
    assert math.isnan(root.imag)
    square = answer("1.6.0", "aten::var", array([7 + 2j], np.complex64), [0])
    assert (math.isnan(square.real), square.imag) == (True, 0)


def test_the_mean_of_two_whole_slopes_is_a_float32_since_1_7() -> None:
    given = array([-1], np.float64), 7, 1099511627777, False
    assert answer("1.4.0", "aten::rrelu", *given) == answer("1.5.1", "aten::rrelu", *given) == [-549755813892.0]
    assert answer("1.7.1", "aten::rrelu", *given) == answer("2.15.0", "aten::rrelu", *given) == [-549755813888.0]
    assert answer("1.7.1", "aten::rrelu", array([-1], np.float64), 7.0, 1099511627777, False) == [-549755813892.0]


def test_tolerances_beyond_integers_up_to_1_2() -> None:
    """As 1.2.0 gave it: what no word of the processor holds is its least number."""
    for dtype, expected in ((np.int64, [True, True, False]), (np.int16, [True, True, False]), (np.int32, [True, True, False])):
        given = array([1, 4, 100], dtype), array([2, 4, 7], dtype)
        assert answer("1.2.0", "aten::isclose", *given, math.nan, 2.5) == expected
    assert answer("1.2.0", "aten::isclose", array([1, 4], np.int32), array([2, 4], np.int32), 0.0, math.inf) == [False, False]


def test_tensors_bound_in_the_type_of_all_up_to_1_11() -> None:
    """As 1.9.1 and 1.11.0 gave it."""
    for release in ("1.9.1", "1.11.0"):
        bounds = array([[4, 3, 255]], np.uint8), array([[4]], np.int64)
        assert answer(release, "aten::clamp", array([[-1, 3, -3]], np.int8), *bounds) == [[4, 3, 4]]


def test_complex_quotients_that_are_not_rounded_up_to_1_7() -> None:
    given = array([1 + 2j, 3 - 1j, 0.5j], np.complex64)
    assert answer("1.7.1", "aten::floor_divide", given, 2) == [0.5 + 1j, 1.5 - 0.5j, 0.25j]
    assert answer("1.8.1", "aten::floor_divide", given, 2) == REFUSED
    assert all(math.isnan(item.real) and math.isnan(item.imag) for item in answer("1.6.0", "aten::floor_divide", given, 0))


GAPS = np.lib.stride_tricks.as_strided(np.arange(9, dtype=np.float32), (3, 1, 3), (4, 12, 12))
QUERY, SHARED = array(np.ones((1, 1, 2, 4))), array([[1.5, -1.0], [3.0, 1.5]])
BEYOND: list[tuple[str, tuple[Any, ...], dict[str, Any], list[str], list[str]]] = [
    # operator, arguments, keywords, releases of which the call is not modelled, and of which it is
    ("clamp", (array(range(12), np.int64), 2, -1), {}, ["1.3.1", "1.7.1"], ["1.2.0", "1.8.1"]),
    ("scaled_dot_product_attention", (QUERY, QUERY, QUERY, None, 0.0, True), {"scale": -0.5}, ["2.1.2", "2.15.0"], []),
    ("scaled_dot_product_attention", (QUERY, QUERY, QUERY, None, 0.0, True), {"scale": 0.5}, [], ["2.1.2", "2.15.0"]),
    ("scaled_dot_product_attention", (QUERY, QUERY, QUERY, None, 0.0, False), {"scale": -0.5}, [], ["2.1.2", "2.15.0"]),
    ("gradient", (array([1j, 2, 3], np.complex128),), {"spacing": 0, "dim": 0}, ["1.10.2", "2.15.0"], []),
    ("gradient", (array([1j, 2, 3], np.complex128),), {"spacing": [array([1, 2, 1])], "dim": [0]}, ["1.10.2", "2.15.0"], []),
    ("gradient", (array([1j, 2, 3], np.complex128),), {"spacing": 2, "dim": 0}, [], ["1.10.2", "2.15.0"]),
    ("norm", (array([1, 2]), 2.0, []), {"out": array([], np.float64)}, ["1.8.1", "1.9.1"], ["1.7.1", "1.10.2"]),
    ("norm", (array([1, 2]), 2.0, []), {"out": array([], np.complex64)}, [], ["1.8.1", "1.10.2"]),
    ("norm", (array([1, 2], BFLOAT16.array), 2.0, []), {"out": array([], np.float32)}, ["1.5.1", "1.7.1"], []),
    ("norm", (array([1, 2], BFLOAT16.array), 2.0, []), {"out": array([], BFLOAT16.array)}, [], ["1.5.1", "1.7.1"]),
    ("ldexp", (array([1, 2]), array(1j, np.complex128)), {}, ["1.8.1", "1.11.0"], ["1.12.1"]),
    ("ldexp", (array([1, 2]), array([1j], np.complex128)), {}, [], ["1.8.1", "1.11.0"]),
    ("unbind_copy", (SHARED, 1), {"out": [SHARED, array([0, 0])]}, ["1.13.1", "2.15.0"], []),
    ("unbind_copy", (SHARED, 1), {"out": [array([0, 0]), array([0, 0])]}, [], ["1.13.1", "2.15.0"]),
    ("_upsample_bilinear2d_aa", (array(np.ones((1, 1, 2, 2))), [6, 1], False), {}, ["2.0.1", "2.15.0"], ["1.13.1"]),
    ("_upsample_bilinear2d_aa", (array(np.ones((1, 1, 2, 2))), [2, 1], False), {}, [], ["2.0.1", "2.15.0"]),
    (
        "_upsample_bilinear2d_aa",
        (Tensor(np.ones((1, 2, 2, 2), np.float32).transpose(0, 3, 1, 2)), [6, 1], False),
        {},
        [],
        ["2.0.1", "2.15.0"],
    ),
    ("linalg_eig", (array([[0, 1], [-1, 0]]),), {}, ["2.1.2", "2.15.0"], []),
    ("linalg_eig", (array([[2, 1], [0.5, 3]]),), {}, [], ["2.1.2", "2.15.0"]),
    ("cov", (array([1j, 2, 3], np.complex64),), {"correction": 3}, ["1.10.2", "2.15.0"], []),
    ("cov", (array([1j, 2, 3], np.complex64),), {"correction": 2}, [], ["1.10.2", "2.15.0"]),
    ("cov", (array([1j, 1j, 1j], np.complex64),), {}, [], ["1.10.2", "2.15.0"]),
    ("corrcoef", (array(1j, np.complex64),), {}, ["1.10.2", "2.15.0"], []),
    ("corrcoef", (array([[1j, 1j], [2, 3]], np.complex64),), {}, ["1.10.2", "2.15.0"], []),
    ("corrcoef", (array([[1, 1], [2, 3]]),), {}, [], ["1.10.2", "2.15.0"]),
    ("gradient", (array([1, 2, 3]),), {"spacing": 0, "dim": 0}, [], ["1.10.2", "2.15.0"]),
    ("clip", (array(range(16)),), {"min": 2.0, "max": -1.0}, ["1.7.1"], ["1.8.1"]),
    ("clamp", (array(range(7), np.int64), 2, -1), {}, [], ["1.3.1", "1.7.1"]),
    ("clamp", (array(range(12), np.int64), -1, 2), {}, [], ["1.3.1", "1.7.1"]),
    ("fmod", (array([1] * 16), 1e-40), {}, ["1.5.1", "2.15.0"], ["1.4.0"]),
    ("fmod", (array([1] * 15), 1e-40), {}, [], ["1.5.1", "2.15.0"]),
    ("remainder", (array([1] * 8, np.float64), array([1e-310] * 8, np.float64)), {}, ["1.6.0", "2.15.0"], ["1.5.1"]),
    ("remainder", (array([1] * 8, np.float64), 1e-300), {}, [], ["1.6.0", "2.15.0"]),
    ("remainder", (array([math.inf] * 16), 1.0), {}, [], ["1.6.0", "2.15.0"]),
    ("index_fill", (Tensor(GAPS), 0, array([2], np.int64), 5.0), {}, ["1.4.0", "1.5.1"], ["1.3.1", "1.6.0"]),
    ("index_fill_", (Tensor(GAPS), 0, array([2], np.int64), 5.0), {}, ["1.1.0", "1.5.1"], ["1.6.0"]),
    ("index_fill_", (Tensor(GAPS), 1, array([0], np.int64), 5.0), {}, [], ["1.5.1"]),
    ("_weight_norm", (array([[3, 4], [6, 8]]), array(10), 0), {}, ["1.12.1", "2.15.0"], ["1.11.0"]),
    (
        "__rshift__",
        (array([5] * 8, np.int64), array([64] * 8, np.int64)),
        {},
        ["1.5.1", "1.9.1", "2.0.1"],
        ["1.10.2", "1.13.1", "2.1.2"],
    ),
    ("__lshift__", (array([5] * 16, np.int32), 33), {}, ["1.5.1", "1.9.1", "2.0.1"], ["1.2.0", "1.13.1", "2.1.2"]),
    ("__lshift__", (array([5] * 8, np.int64), array([63] * 8, np.int64)), {}, [], ["1.5.1", "2.0.1"]),
    ("_stack", ([array([1, 2])], -1), {"out": array([])}, ["1.8.1", "1.10.2"], []),
    ("_stack", ([array([1, 2])], 1), {"out": array([])}, [], ["1.8.1", "1.10.2"]),
    (
        "solve",
        (array(np.ones((1, 2, 1, 1))), array(np.ones((2, 1, 1)))),
        {"solution": array([]), "lu": array([])},
        ["1.2.0", "1.11.0"],
        [],
    ),
    ("solve", (array(np.ones((1, 2, 1, 1))), array(np.ones((2, 1, 1)))), {}, [], ["1.2.0", "1.11.0"]),
    ("var", (array([[1], [2]]), [], True), {"out": array([])}, ["1.8.1"], ["1.7.1", "1.9.1"]),
    ("var", (array([[1], [2]]), [0], True), {"out": array([])}, [], ["1.8.1"]),
    ("fill_", (array([True], np.bool_), 1j), {}, ["1.6.0", "2.3.1"], ["2.4.1"]),
    ("fill_", (array([True], np.bool_), 1 + 1j), {}, [], ["1.6.0", "2.3.1"]),
    ("sum", (array([1j, 2j], np.complex64),), {"dtype": 11}, ["1.6.0", "2.3.1"], ["2.4.1"]),
    ("as_tensor", (array([1j], np.complex64), 11), {}, ["2.3.1"], ["2.4.1"]),
    ("as_tensor", (1.5j,), {"dtype": 11}, ["2.0.1"], ["2.4.1"]),
    ("linalg_norm", (array([100, 100], np.float16), 3.0), {}, ["1.8.1", "2.0.1"], ["2.1.2"]),
    ("linalg_norm", (array([10, 10], np.float16), 3.0), {}, [], ["1.8.1", "2.0.1"]),
    ("norm", (array([]), -math.inf), {}, ["1.0.1"], ["1.2.0"]),
    ("dist", (array([]), array([]), math.inf), {}, ["1.2.0", "1.4.0"], ["1.5.1"]),
    ("dist", (array([]), array([]), 2.0), {}, [], ["1.2.0"]),
    ("glu", (array([1] * 16 + [-1000] * 16), 0), {}, ["1.2.0"], ["1.5.1"]),
    ("glu", (array([1] * 16 + [-80] * 16), 0), {}, [], ["1.2.0"]),
    ("scatter", (array([[1], [2]]), 1, array([], np.int64), array([[1], [2]])), {}, ["1.10.2"], ["1.9.1", "1.11.0"]),
    ("relu", (array(1, BFLOAT16.array),), {}, ["1.2.0"], ["1.10.2"]),
    ("polygamma", (1000, array([0.75])), {}, ["1.7.1"], []),
    ("polygamma", (1 << 62, array([0.75], np.float64)), {}, ["1.7.1", "1.8.1"], []),
    ("norm", (array(1, np.complex64), math.nan, [], True), {"out": array([], np.complex64)}, ["1.6.0"], []),
    ("ne_", (array([1j] * 4, np.complex128), 2), {}, ["1.6.0", "2.0.1"], ["2.1.2"]),
    ("ne_", (array([1j] * 3, np.complex128), 2), {}, [], ["1.6.0", "2.0.1"]),
    ("ne_", (array([1j] * 7, np.complex64), 2), {}, [], ["1.6.0", "2.0.1"]),
    ("eq_", (array([1j] * 8, np.complex64), 2), {}, ["1.6.0", "2.0.1"], ["2.1.2"]),
    ("sort", (array([2, 1]), 0), {"values": array([]), "indices": array([])}, ["1.7.1", "1.10.2", "1.11.0"], ["1.12.1"]),
    ("norm", (array([1, 2], np.float16), 2, [0]), {"out": array([], np.float64)}, ["1.8.1"], ["2.1.2"]),
    ("linalg_vander", (array([3 + 4j, 1j], np.complex64),), {"N": 80}, ["1.12.1", "2.0.1"], ["2.1.2"]),
    ("linalg_vander", (array([3 + 4j, 1j], np.complex64),), {"N": 8}, [], ["1.12.1"]),
    ("scatter", (array([[1], [2]]), 1, array([[0]], np.int64), array([[1], [2]])), {}, [], ["1.10.2"]),
    ("special_chebyshev_polynomial_w", (math.nan, array([2, 3])), {}, ["2.9.1", "2.13.0"], ["2.8.0", "2.14.1"]),
    ("special_legendre_polynomial_p", (array([math.nan]), array([2])), {}, ["2.10.0"], ["2.8.0", "2.14.1"]),
    ("special_legendre_polynomial_p", (array([0.5]), array([2])), {}, [], ["2.10.0"]),
    ("__interpolate", (array([[[1, 2, 3, 4]]]), 5, [0.5], "linear", None, False), {}, ["1.5.1", "1.10.2"], ["2.0.1"]),
    ("linalg_norm", (array([[-1, -2.5]]), "fro", [1, 0], True), {"dtype": 0}, ["1.8.1", "1.11.0"], ["1.12.1"]),
    ("stack", ([array([1], np.int64), array([1], BFLOAT16.array)],), {}, ["1.6.0"], ["1.7.1"]),
    ("stack", ([array([1], BFLOAT16.array), array([1], BFLOAT16.array)],), {}, [], ["1.6.0"]),
]


@pytest.mark.parametrize(("name", "args", "keywords", "named", "modelled"), BEYOND)
def test_calls_that_depend_on_memory_or_vectors_are_not_modelled(
    name: str, args: tuple[Any, ...], keywords: dict[str, Any], named: list[str], modelled: list[str]
) -> None:
    def found(release: str) -> Any:
        return answer(release, f"aten::{name}", *args, **keywords)

    assert [found(release) for release in named] == [NOT_MODELLED] * len(named)
    assert NOT_MODELLED not in [found(release) for release in modelled]


def test_places_of_equal_elements_are_those_of_the_algorithm() -> None:
    """As 1.6.0, 1.7.1, 1.9.1 and 2.2.2 gave them."""
    ties = [8, 16, 15, 14, 13, 12, 11, 10, 9, 0, 7, 6, 5, 4, 3, 2, 1]
    older = [9, 8, 15, 14, 13, 12, 11, 10, 0, 1, 7, 6, 5, 4, 3, 2, 16]
    assert answer("1.6.0", "aten::sort", array([0] * 17), 0)[1] == older
    split = [0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 0, 0]  # one of whose parts has ten elements
    assert answer("1.6.0", "aten::sort", array(split), 0)[1] == [1, 15, 14, 12, 0, 2, 3, 11, 10, 13, 5, 6, 9, 8, 4, 7]
    assert answer("1.7.1", "aten::sort", array([0] * 17), 0)[1] == ties
    assert answer("2.2.2", "aten::sort", array([0] * 17), 0)[1] == ties
    assert answer("2.2.2", "aten::sort", array([0] * 17), 0, stable=True)[1] == list(range(17))
    assert answer("2.2.2", "aten::sort", array([0] * 17), True, 0, False)[1] == list(range(17))  # sort.stable, all by position
    assert answer("1.8.1", "aten::mode", array([0, 1] * 10), 0) == [0, 2]
    assert answer("1.9.1", "aten::mode", array([0, 1] * 10), 0) == [0, 12]


def test_zeros_have_the_sign_of_the_one_that_is_found() -> None:
    """As 1.6.0 and 2.2.2 gave them."""
    zeros = array([0.0, -0.0, 1.0, -0.0, 0.0])
    assert math.copysign(1, answer("1.6.0", "aten::kthvalue", zeros, 1, 0)[0]) == -1
    assert math.copysign(1, answer("1.6.0", "aten::median", zeros, 0)[0]) == 1
    many = array([0.0, -0.0, -0.0, 1.0, -0.0, -0.0, -0.0, -0.0, 1.0, 1.0, 0.0, 1.0, -0.0, 0.0, -0.0, 0.0, 0.0])
    distinct = answer("2.2.2", "aten::_unique2", many, True, True, False)
    assert (distinct[0], math.copysign(1, distinct[0][0])) == ([0.0, 1.0], -1)
    assert distinct[1] == [int(item == 1) for item in many.array.tolist()]


def test_a_deviation_that_is_written_into_complex_numbers_is_a_complex_root() -> None:
    """As 1.9.1 and 2.15.0 gave it."""
    for release in ("1.9.1", "2.15.0"):
        out = Tensor(np.zeros((), np.complex64))
        result = answer(release, "aten::std", Tensor(np.array(-0.5 - 0.5j, np.complex64)), [], True, True, out=out)
        assert math.isnan(result.real)
        assert math.isnan(result.imag)
        result = answer(release, "aten::var", Tensor(np.array(-0.5 - 0.5j, np.complex64)), [], True, True, out=out)
        assert (math.isnan(result.real), result.imag) == (True, 0.0)


def test_the_mean_over_an_empty_input_is_not_a_number() -> None:
    """As 1.10.2 gave it; the mean over ignored targets alone was 0 there."""
    assert math.isnan(answer("1.10.2", "aten::nll_loss", array([]), array(0, np.int64), None, 1, 0))
    assert answer("1.10.2", "aten::nll_loss", array([0, 0, 0]), array(0, np.int64), None, 1, 0) == 0.0


def test_points_between_whole_numbers_are_rounded_before_they_are_cut() -> None:
    """As 1.6.0 and 1.13.1 gave them."""
    for release in ("1.6.0", "1.13.1"):
        result = answer(release, "aten::linspace", 2.5, -2, 100, out=array([], np.uint8))
        assert result[9:14] == [24, 27, 30, 32, 35]


@pytest.mark.parametrize(
    ("given", "out", "expected"),
    [
        (np.float32, np.float64, [REFUSED, 0.574442519725829, 0.5744425058364868]),
        (np.float64, np.float32, [REFUSED, 0.5744425058364868, 0.5744425058364868]),
        (np.int64, np.float64, [REFUSED, 0.7310585786300049, REFUSED]),
        (np.int64, np.float16, [REFUSED, REFUSED, REFUSED]),
    ],
)
def test_glu_into_another_dtype(given: Any, out: Any, expected: list[Any]) -> None:
    """As 1.4.0, 1.5.1 and 1.6.0 gave it: 1.5 computes in the dtype that both have together."""
    values = [1, 2, 0.3, 0.7] if given is not np.int64 else [1, 2, 1, 2]
    results = [
        answer(horizon, "aten::glu", array(values, given), 0, out=array([], out)) for horizon in ("1.4.0", "1.5.1", "1.6.0")
    ]
    assert [item if item.__class__ is str else item[0] for item in results] == expected


NAN = math.nan


@pytest.mark.parametrize(
    ("keys", "since_1_3", "since_1_6"),
    [
        ([1e10, NAN, 1e-5], [1e-5, 1e10, NAN], [1e10, NAN, 1e-5]),
        ([NAN, 3.0, 1.0], [NAN, 1.0, 3.0], [NAN, 3.0, 1.0]),
        ([5.0, NAN, 1.0, 0.5], [0.5, 1.0, 5.0, NAN], [5.0, NAN, 1.0, 0.5]),
        ([float(at) for at in range(16, 0, -1)] + [NAN], NOT_MODELLED, [float(at) for at in range(16, 0, -1)] + [NAN]),
    ],
)
def test_the_key_nan_among_others(keys: list[float], since_1_3: Any, since_1_6: list[float]) -> None:
    """As 1.3.1, 1.5.1 and 1.6.0 gave them; 1.2 keeps keys in a hash table, in which NaN is nowhere."""
    entries = {key: at for at, key in enumerate(keys)}
    assert answer("1.2.0", "aten::keys", entries) == NOT_MODELLED
    for horizon, expected in (("1.3.1", since_1_3), ("1.5.1", since_1_3), ("1.6.0", since_1_6)):
        result = answer(horizon, "aten::keys", entries)
        assert repr(result) == repr(expected)
        if expected != NOT_MODELLED:
            values = answer(horizon, "aten::values", entries)
            assert values == [next(at for at, item in enumerate(keys) if repr(item) == repr(key)) for key in expected]


@pytest.mark.parametrize(("horizon", "expected"), [("1.4.0", [0.5]), ("1.5.1", 0.5)])
def test_the_loss_of_one_sample_that_is_not_reduced(horizon: str, expected: Any) -> None:
    """As 1.4.0 and 1.5.1 gave it."""
    assert answer(horizon, "aten::multilabel_margin_loss", array([1.5, 0.5, 0]), array([0, 2, -1], np.int64), 0) == expected


def test_a_list_of_one_tensor_is_sorted_up_to_1_4() -> None:
    """Of more tensors, 1.4 sorts the list that is passed, too."""
    assert answer("1.4.0", "aten::sorted", [array([1])]) == [[1]]
    assert answer("1.4.0", "aten::sorted", [array([2]), array([1])]) == NOT_MODELLED


@pytest.mark.parametrize(("value", "cut"), [(5, 5), (-5, -5), (2**31, -(2**31)), (2**32 + 5, 5), (2**62, 0)])
def test_hashes_of_integers(value: int, cut: int) -> None:
    """As 1.2.0, 1.7.1 and 1.8.1 gave them."""
    assert [answer(horizon, "aten::hash", value) for horizon in ("1.2.0", "1.7.1", "1.8.1")] == [cut, cut, value]
    assert answer("1.7.1", "aten::hash", 0.5) == answer("1.8.1", "aten::hash", 0.5)


@pytest.mark.parametrize("name", ["cat", "hstack"])
@pytest.mark.parametrize("shape", [(), (1,), (2,)])
def test_nothing_joined_into_out(name: str, shape: tuple[int, ...]) -> None:
    """As 1.11.0 and 1.12.1 gave it: out= keeps its shape, or has no elements."""
    for horizon, expected in (("1.11.0", shape), ("1.12.1", (0,))):
        out = Tensor(np.zeros(shape, np.float32))
        resolve(f"aten::{name}", Release(horizon))([array([]), array([])], out=out)
        assert out.array.shape == expected


@pytest.mark.parametrize(
    ("correction", "expected"), [(math.nan, [math.inf]), (math.inf, [math.inf]), (3, [math.inf]), (-math.inf, [0.0])]
)
def test_variances_with_corrections_out_of_range(correction: float, expected: list[float]) -> None:
    """As 2.1.2, 2.6.0 and 2.15.0 gave them."""
    assert answer("2.6.0", "aten::var", array([[-0.5, -2.5, 0.5]]), [1], correction=correction) == expected


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("hardtanh", array([[1, math.nan], [math.nan, 9]]), [1.0, 7.0, 7.0, 7.0]),
        ("hardtanh", array([[math.nan]]), [7.0]),
        ("hardtanh", array([1, math.nan]), [1.0, math.nan]),
        ("hardtanh", array(math.nan), [math.nan]),
        ("hardtanh", Tensor(array([[1, math.nan], [math.nan, 9]]).array.T), [1.0, math.nan, math.nan, 7.0]),
        ("hardtanh_", array([[1, math.nan], [math.nan, 9]]), [1.0, math.nan, math.nan, 7.0]),
    ],
)
def test_nan_between_bounds(name: str, given: Tensor, expected: list[float]) -> None:
    """As 1.0.1, 1.2.0 and 1.4.0 gave it; 1.5.1 keeps NaN."""
    for horizon in ("1.0.1", "1.4.0", "1.5.1"):
        with np.errstate(all="ignore"):
            result = (
                resolve(f"aten::{name}", Release(horizon))(Tensor(given.array.copy(order="K")), -1.0, 7.0)
                .array.reshape(-1)
                .tolist()
            )
        kept = [item if math.isnan(item) else min(item, 7.0) for item in given.array.reshape(-1).tolist()]
        assert repr(result) == repr(expected if horizon != "1.5.1" else kept)


@pytest.mark.parametrize(("horizon", "bounded"), [("1.0.1", False), ("1.5.1", False), ("1.11.0", False), ("2.0.1", True)])
def test_a_cosine_with_epsilon_that_is_nan(horizon: str, bounded: bool) -> None:
    """As 1.5.1, 1.11.0 and 2.0.1 gave it: up to 1.11 NaN bounds nothing."""
    result = answer(horizon, "aten::cosine_similarity", array([[3.0, 4.0]]), array([[3.0, 4.0]]), 1, math.nan)
    assert (math.isnan(result[0])) is bounded
    assert bounded or result == pytest.approx([1.0])


def test_a_list_added_to_itself_is_not_modelled() -> None:
    """1.12.1, 2.4.1 and 2.15.0 return [1, 2] and two elements that are None, or fail."""
    numbers = [1, 2]
    assert answer("2.15.0", "aten::add_", numbers, numbers) == NOT_MODELLED
    assert answer("2.15.0", "aten::add_", [1, 2], [1, 2]) == [1, 2, 1, 2]
