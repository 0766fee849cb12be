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
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import Tensor

REFUSED, NOT_MODELLED = "refused", "not modelled"


def array(values: Any, dtype: Any = np.float32) -> Tensor:
    return Tensor(np.array(values, dtype))


def plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [plain(one) for one in value]
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
    found = [answer(horizon, f"aten::{name}", array([4, 0], np.uint8), *bounds) for horizon in ("2.14.1", "2.15.0")]
    assert found == [before, after]


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
    ("aten::bin", "2.7.1", "2.8.0", NOT_MODELLED, "-0b1" + "0" * 63, (-(1 << 63),)),
    ("aten::bin", "1.12.1", "1.13.1", "-0b1" + "0" * 63, NOT_MODELLED, (-(1 << 63),)),
    ("aten::mode", "1.1.0", "2.15.0", [0.5, 0], [0.5, 0], (array(0.5, np.float16),)),
    ("aten::max", "1.1.0", "1.5.1", REFUSED, REFUSED, (array(0.5, np.float16), array(1, np.float16))),
    ("aten::kthvalue", "1.1.0", "1.2.0", REFUSED, [0.5, 0], (array(0.5, np.float16), 1)),
]


@pytest.mark.parametrize(
    ("name", "before", "after", "old", "new", "args"), ASKED, ids=lambda one: one if isinstance(one, str) else ""
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
    assert answer("1.5.1", "aten::pow", seven, 7.0) == NOT_MODELLED
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
    found = answer("2.15.0", "aten::corrcoef", array([[-1, most], [most, 4]], np.int64))
    assert found[0][1] == pytest.approx(-0.4472135901451111)


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
            one, other = [1], [1]
            assert resolve(name, Release(release))(one, other) is other
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
