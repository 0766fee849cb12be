"""Numbers rounded as if they were quantized with a scale for each channel, as releases gave them.

Lives in tests/runtime/operators/ beside harness/torch_compat/runtime/operators/fake_quantized.py.
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

CHANNELS = "aten::fake_quantize_per_channel_affine"
NAN, INF = math.nan, math.inf
X = [[-3.0, -0.25, 0.25], [0.75, 1.0, 100.0]]
ROUNDED = [[-3.0, 0.0, 0.0], [1.0, 1.0, 0.0]]
SCALES, ZEROS = [0.5, 0.25, 1.0], [0, -8, 7]


def t(values: Any, dtype: Any = np.float32) -> Tensor:
    return Tensor(np.array(values, dtype))


def rounded(horizon: str, x: Any, scales: Any, zeros: Tensor, *rest: int, kind: Any = np.float32) -> Any:
    """The result as lists; ``refused`` or ``not modelled``."""
    try:
        with np.errstate(all="ignore"):
            return resolve(CHANNELS, Release(horizon))(t(x, kind), t(scales), zeros, *rest).array.tolist()
    except Raised:
        return "refused"
    except Unsupported:
        return "not modelled"


@pytest.mark.parametrize(
    ("kind", "results"),
    [
        (np.int64, {"1.3.1": ROUNDED, "1.5.1": ROUNDED, "1.9.1": ROUNDED, "1.10.2": "refused", "2.15.0": "refused"}),
        (
            np.int32,
            {
                "1.4.0": ROUNDED,
                "1.5.1": "not modelled",
                "1.6.0": "refused",
                "1.9.1": "refused",
                "1.10.2": ROUNDED,
                "2.15.0": ROUNDED,
            },
        ),
        (np.float32, {"1.4.0": ROUNDED, "1.6.0": "refused", "1.10.2": ROUNDED}),
        (np.float64, {"1.4.0": ROUNDED, "1.9.1": "refused", "1.10.2": "refused"}),
    ],
)
def test_zero_points_by_their_dtype(kind: Any, results: dict[str, Any]) -> None:
    assert {horizon: rounded(horizon, X, SCALES, t(ZEROS, kind), 1, -8, 7) for horizon in results} == results


@pytest.mark.parametrize(
    ("horizon", "zeros", "result"),
    [
        ("1.10.2", [0.5, -8.25, 7.0], [[-3.25, 0.0625, 0.0], [0.75, 1.0625, 0.0]]),
        ("1.10.2", [0.0, -80.0, 7.0], "refused"),
        ("1.11.0", [0.0, -80.0, 7.0], [[-3.0, 18.0, 0.0], [1.0, 18.0, 0.0]]),
    ],
)
def test_zero_points_that_are_not_whole(horizon: str, zeros: list[float], result: Any) -> None:
    assert rounded(horizon, X, SCALES, t(zeros), 1, -8, 7) == result


@pytest.mark.parametrize(
    ("horizon", "zeros", "first"), [("1.5.1", np.int64, 0.9), ("1.6.0", np.int64, 0.6), ("2.15.0", np.int32, 0.6)]
)
def test_ties_of_a_channel(horizon: str, zeros: Any, first: float) -> None:
    result = rounded(horizon, X, [0.1, 0.3], t([0, 1], zeros), 0, -800, 700)
    assert result[1][0] == pytest.approx(first)
    assert result[0] == pytest.approx([-3.0, -0.2, 0.2])


@pytest.mark.parametrize(
    ("x", "scales", "result"),
    [
        ([[-3.0, -0.25, 0.25], [NAN, INF, -INF]], SCALES, [[-3.0, 0.0, 0.0], [-4.0, 0.0, -15.0]]),
        (X, [0.0, -0.25, 1e30], [[0.0, -0.25, 0.0], [0.0, 0.0, 0.0]]),
    ],
)
def test_what_is_not_finite(x: Any, scales: Any, result: Any) -> None:
    assert rounded("2.15.0", x, scales, t(ZEROS, np.int32), 1, -8, 7) == result
    assert rounded("1.9.1", x, scales, t(ZEROS, np.int64), 1, -8, 7) == result


@pytest.mark.parametrize(
    ("scales", "zeros", "axis", "bounds"),
    [
        (SCALES, ZEROS, 0, (-8, 7)),
        (SCALES, ZEROS, -1, (-8, 7)),
        (SCALES, ZEROS, 2, (-8, 7)),
        (SCALES, ZEROS, 1, (7, -8)),
        (SCALES, [0, -9, 7], 1, (-8, 7)),
        (SCALES, [0, -9], 1, (-8, 7)),
        ([SCALES], ZEROS, 1, (-8, 7)),
    ],
)
def test_refused_by_every_release(scales: Any, zeros: Any, axis: int, bounds: tuple[int, int]) -> None:
    for horizon, kind in (("1.3.1", np.int64), ("1.8.1", np.int64), ("1.10.2", np.int32), ("2.15.0", np.int32)):
        assert rounded(horizon, X, scales, t(zeros, kind), axis, *bounds) == "refused"


@pytest.mark.parametrize(
    ("kind", "horizon", "accepted"),
    [
        (np.float64, "1.8.1", False),
        (np.float64, "1.9.1", True),
        (BFLOAT16.array, "2.5.1", False),
        (BFLOAT16.array, "2.6.0", True),
    ],
)
def test_other_floats(kind: Any, horizon: str, accepted: bool) -> None:
    zeros = t([0, 1], np.int64 if horizon < "1.9.9" and horizon.startswith("1.") else np.int32)
    result = rounded(horizon, [[1.0, 2.0], [3.0, 4.4]], [0.1, 0.3], zeros, 0, -800, 700, kind=kind)
    assert (result != "refused") is accepted
    tensor = "aten::fake_quantize_per_tensor_affine"
    if accepted:
        assert resolve(tensor, Release(horizon))(t([1.1], kind), 0.3, 1, -50, 500).array.dtype == kind
    else:
        with pytest.raises(Raised):
            resolve(tensor, Release(horizon))(t([1.1], kind), 0.3, 1, -50, 500)


@pytest.mark.parametrize(("horizon", "result"), [("2.8.0", 2.1000000834465027), ("2.9.1", 2.1000001430511475)])
def test_float64_is_rounded_in_float32_since_2_9(horizon: str, result: float) -> None:
    call = resolve("aten::fake_quantize_per_tensor_affine", Release(horizon))
    assert call(t([1.1, 2.2], np.float64), t(0.3), t([1], np.int32), -50, 500).array.tolist() == [1.2000000476837158, result]


def test_masks_and_gradients() -> None:
    x = t(X)
    x.requires_grad = True
    value, mask = resolve(f"{CHANNELS}_cachemask", Release("2.15.0"))(x, t(SCALES), t(ZEROS, np.int32), 1, -8, 7)
    assert value.requires_grad
    assert mask.array.tolist() == [[True, False, True], [True, True, False]]
    _, mask = resolve("aten::fake_quantize_per_tensor_affine_cachemask", Release("2.15.0"))(t(X), 0.5, 3, 0, 15)
    assert mask.array.tolist() == [[False, True, True], [True, True, False]]
    scale = t([0.3])
    scale.requires_grad = True
    assert not resolve("aten::fake_quantize_per_tensor_affine", Release("2.15.0"))(
        t(X), scale, t([1], np.int32), -50, 500
    ).requires_grad
    with pytest.raises(Raised, match="not differentiable"):
        resolve(CHANNELS, Release("2.15.0"))(t(X[:1], np.float32), scale, t([1], np.int32), 0, -8, 7)


def test_strides_are_kept() -> None:
    for horizon, accepted in (("1.3.1", False), ("1.4.0", True)):
        x = Tensor(np.array(X, np.float32).T)
        call = resolve(CHANNELS, Release(horizon))
        if accepted:
            assert call(x, t(SCALES), t(ZEROS, np.int64), 0, -8, 7).strides == (1, 3)
        else:
            with pytest.raises(Raised, match="neither channels last nor contiguous"):
                call(x, t(SCALES), t(ZEROS, np.int64), 0, -8, 7)
