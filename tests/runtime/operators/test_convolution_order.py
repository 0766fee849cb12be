"""In which order the products of small convolutions are added: in each case the order that 1.5.1 to 2.15.0 were found to have, against a loop."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from torch_compat.releases.release import Release
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import Tensor

FLOAT = np.float32
Array = np.ndarray


def looped(x: Array, w: Array, b: Array, groups: int, order: str) -> Array:
    """Without padding, with stride 1; of the order ``biased fused channels-first``, each 0 or 1."""
    biased, fused, first = (entry == "1" for entry in order)
    outputs, each, height, width = w.shape
    rows, columns = x.shape[2] - height + 1, x.shape[3] - width + 1
    result = np.zeros((x.shape[0], outputs, rows, columns), FLOAT)
    places = list(itertools.product(range(height), range(width)))
    steps = [(c, p) for p in places for c in range(each)] if first else [(c, p) for c in range(each) for p in places]
    for at in np.ndindex(*result.shape):
        batch, output, row, column = at
        total = b[output] if biased else FLOAT(0)
        for channel, (i, j) in steps:
            item = float(x[batch, output // (outputs // groups) * each + channel, row + i, column + j]) * float(
                w[output, channel, i, j]
            )
            total = FLOAT(item + float(total)) if fused else FLOAT(FLOAT(item) + total)
        result[at] = total if biased else FLOAT(total + b[output])
    return result


@pytest.mark.parametrize(
    ("shape", "weight", "groups", "orders"),
    [
        ((1, 3, 6, 6), (4, 3, 3, 3), 1, {"1.6.0": "011", "1.7.1": "100", "1.13.1": "100", "2.0.1": "010", "2.15.0": "010"}),
        ((1, 4, 6, 6), (8, 4, 3, 3), 1, {"1.6.0": "011", "1.8.1": "000", "1.12.1": "000", "2.6.0": "010"}),
        ((1, 4, 4, 4), (3, 4, 1, 1), 1, {"1.6.0": "110", "1.12.1": "100", "2.0.1": "100", "2.15.0": "100"}),
        ((2, 4, 4, 4), (3, 4, 1, 1), 1, {"1.6.0": "110", "1.12.1": "110", "2.15.0": "110"}),
        ((2, 8, 4, 4), (8, 8, 3, 3), 1, {"1.6.0": "011", "1.12.1": "011", "2.15.0": "011"}),
        ((1, 3, 6, 6), (4, 3, 5, 5), 1, {"1.12.1": "011", "2.15.0": "011"}),
        ((1, 4, 4, 4), (4, 1, 3, 3), 4, {"1.6.0": "110", "1.8.1": "100", "1.9.1": "110", "2.15.0": "110"}),
        ((1, 4, 6, 6), (4, 2, 3, 3), 2, {"1.6.0": "010", "2.15.0": "010"}),
        ((1, 1, 3, 3), (3, 1, 3, 3), 1, {"1.12.1": "000", "2.15.0": "000"}),
    ],
)  # fmt: skip
def test_orders(shape: tuple[int, ...], weight: tuple[int, ...], groups: int, orders: dict[str, str]) -> None:
    random = np.random.default_rng(sum(shape) + sum(weight))
    x, w, b = (random.normal(size=item).astype(FLOAT) for item in (shape, weight, weight[:1]))
    for at, order in orders.items():
        result = resolve("aten::conv2d", Release(at))(Tensor(x), Tensor(w), Tensor(b), [1, 1], [0, 0], [1, 1], groups).array
        np.testing.assert_array_equal(result, looped(x, w, b, groups, order), err_msg=at)
    ends = {order: looped(x, w, b, groups, order).tobytes() for order in set(orders.values())}
    assert len(set(ends.values())) == len(ends)  # the orders can be told apart


def test_other_sizes_are_summed_in_double_precision() -> None:
    random = np.random.default_rng(2)
    x, w = random.normal(size=(2, 20, 4, 4)).astype(FLOAT), random.normal(size=(4, 20, 3, 3)).astype(FLOAT)
    result = resolve("aten::conv2d")(Tensor(x), Tensor(w)).array
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(float), (3, 3), axis=(2, 3))
    np.testing.assert_array_equal(result, np.einsum("bchwij,ocij->bohw", windows, w.astype(float)).astype(FLOAT))
