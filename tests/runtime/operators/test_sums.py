"""Sums of float32, and functions computed from them, equal to the releases to the last bit.

Lives in tests/runtime/operators/ beside harness/torch_compat/runtime/operators/_sums.py. The results are those of 1.6.0, 1.7.1, 1.8.1,
1.12.1, 2.6.0 and 2.15.0, with the AVX2 kernels used for all records.
"""

from __future__ import annotations

import hashlib
import struct
from typing import Any

import numpy as np
import pytest

from torch_compat.releases.release import Release
from torch_compat.runtime.operators._sums import ordered_sum
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import Tensor


def numbers(*shape: int, seed: int) -> Tensor:
    """Numbers between -2 and 2, as the releases were given them."""
    results = []
    for _ in range(int(np.prod(shape))):
        seed = (seed * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        results.append(struct.unpack("f", struct.pack("f", ((seed >> 33) / float(1 << 31) - 0.5) * 4))[0])
    return Tensor(np.array(results, np.float32).reshape(shape))


@pytest.mark.parametrize(
    ("count", "before", "since"),
    [
        (7, -0.25647908449172974, -0.2564792037010193),
        (20, 3.749427556991577, 3.7494277954101562),
        (33, 1.5796090364456177, 1.5796090364456177),
        (100, 14.282769203186035, 14.282767295837402),
        (1000, -12.26862621307373, -12.26862621307373),
    ],
)
def test_rows_are_summed_in_cascades_since_1_7(count: int, before: float, since: float) -> None:
    x = numbers(count, seed=count)
    for horizon, message in (("1.6.0", before), ("1.7.1", since), ("2.15.0", since)):
        assert resolve("aten::sum", Release(horizon))(x).item() == message
        mean = resolve("aten::mean", Release(horizon))(x)
        assert mean.item() == float(np.float32(message) / np.float32(count))
    assert before != since or count in {33, 1000}


@pytest.mark.parametrize(
    ("dims", "before", "since"),
    [
        ([0], [1.5738853216171265, 3.214491128921509, 0.9180707335472107], None),
        ([1], [-11.447674751281738, 3.0762124061584473, 1.0351221561431885], [-11.447674751281738, 3.076212167739868, 1.0351221561431885]),
        ([0, 1], [-3.715569496154785], [-3.715571880340576]),
    ],
)  # fmt: skip
def test_matrices_are_summed_as_they_lie_in_memory(dims: list[int], before: list[float], since: list[float] | None) -> None:
    x = numbers(7, 33, seed=733)
    turned = Tensor(x.array.T)
    for horizon, message in (("1.6.0", before), ("2.15.0", since or before)):
        call = resolve("aten::sum", Release(horizon))
        assert np.ravel(call(x, dims).array)[:3].tolist() == message
        assert np.ravel(call(turned, [1 - dim for dim in dims]).array)[:3].tolist() == message


@pytest.mark.parametrize(
    ("name", "count", "args", "said"),
    [
        ("softmax", 5, (0,), [0.39723989367485046, 0.028012875467538834, 0.4256894886493683, 0.05511952564120293, 0.09393825381994247]),
        ("sigmoid", 3, (), [0.17549695074558258, 0.33165687322616577, 0.718640148639679]),
        ("log_softmax", 9, (0,), [-4.068089008331299, -1.716634750366211, -0.8303505182266235, -3.856778621673584, -4.4408488273620605,
                                  -4.730044364929199, -3.3908004760742188, -1.837188482284546, -2.0201964378356934]),
        ("logsumexp", 20, ([0],), [3.6209912300109863]),
    ],
)  # fmt: skip
def test_what_is_made_of_sums_is_rounded_at_each_step(name: str, count: int, args: tuple[Any, ...], said: list[float]) -> None:
    tensor = resolve(f"aten::{name}", Release("2.15.0"))(numbers(count, seed=count), *args)
    assert np.ravel(tensor.array).tolist() == said


def test_small_matrices_are_multiplied_one_product_after_the_other() -> None:
    """To the last bit as in 2.6.0 and 2.15.0, which take other orders for matrices of fewer rows."""
    product = resolve("aten::mm", Release("2.15.0"))(numbers(16, 16, seed=16016), numbers(16, 16, seed=16023))
    assert hashlib.sha256(product.array.tobytes()).hexdigest()[:16] == "4fa45091d56d6ffa"


def test_sigmoid_of_what_has_no_exponential_is_zero() -> None:
    """Its exponential is infinite in float32; in double precision, something very small would be left."""
    with np.errstate(all="ignore"):  # as programs run
        assert resolve("aten::sigmoid", Release("2.15.0"))(Tensor(np.array(-90.0, np.float32))).item() == 0.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("name", "args"),
    [("mse_loss", ((0,), (0,))), ("l1_loss", ((2, 0), (2, 0))), ("kl_div", ((0, 3), (0, 3))), ("multilabel_soft_margin_loss", ((0, 3), (0, 3))),
     ("layer_norm", ((2, 0), [0])), ("rms_norm", ((2, 0), [0])), ("instance_norm", ((2, 3, 0), None, None, None, None, True, 0.1, 1e-5, False))],
)  # fmt: skip
def test_means_of_nothing_give_no_warning(name: str, args: tuple[Any, ...], dtype: Any) -> None:
    """Warnings are errors here: numpy warns of the mean of an empty slice, torch does not."""
    given = [Tensor(np.zeros(arg, dtype)) if isinstance(arg, tuple) else arg for arg in args]
    with np.errstate(all="ignore"):  # as around each call of a program
        result = resolve(f"aten::{name}", Release("2.15.0"))(*given)
    assert np.isnan(result.array).all()


@pytest.mark.parametrize(
    ("count", "cascades", "expected"),
    [
        (5, True, "0x1.4fc09c1f10b09p+21"),
        (5, False, "0x1.4fc09c1f10b08p+21"),
        (37, True, "0x1.4cecf283edbd6p+21"),
        (37, False, "0x1.4cecf283edbd4p+21"),
        (130, True, "0x1.4ce04bef7b585p+21"),
        (130, False, "0x1.4ce04bef7b585p+21"),
    ],
)
def test_doubles_are_added_four_lanes_at_a_time(count: int, cascades: bool, expected: str) -> None:
    """As 1.6.0 and 2.13.0 answer."""
    numbers = np.array([(-1) ** n * 1e6 / (n * n + 0.3) for n in range(count)])
    result = ordered_sum(numbers, (0,), cascades=cascades)
    assert result is not None
    assert float(result).hex() == expected
