"""The order of memory of what scaled_dot_product_attention gives. The strides are those that 2.0.1 to 2.15.0 gave for these inputs."""

from __future__ import annotations

import numpy as np
import pytest

from torch_compat.releases.release import Release
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import Tensor

ROWS_INSIDE, HEADS_INSIDE = (24, 12, 4, 1), (24, 4, 8, 1)


def batch(*shape: int) -> np.ndarray:
    return np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)


@pytest.mark.parametrize(
    ("horizon", "plain", "masked", "masked_with_gradients", "other_order"),
    [
        ("2.0.1", ROWS_INSIDE, ROWS_INSIDE, ROWS_INSIDE, ROWS_INSIDE),
        ("2.1.2", HEADS_INSIDE, ROWS_INSIDE, ROWS_INSIDE, HEADS_INSIDE),
        ("2.2.2", HEADS_INSIDE, ROWS_INSIDE, ROWS_INSIDE, HEADS_INSIDE),
        ("2.3.1", HEADS_INSIDE, HEADS_INSIDE, ROWS_INSIDE, HEADS_INSIDE),
        ("2.4.1", HEADS_INSIDE, HEADS_INSIDE, ROWS_INSIDE, HEADS_INSIDE),
        ("2.5.0", ROWS_INSIDE, ROWS_INSIDE, ROWS_INSIDE, HEADS_INSIDE),
        ("2.15.0", ROWS_INSIDE, ROWS_INSIDE, ROWS_INSIDE, HEADS_INSIDE),
    ],
)
def test_the_kernel_decides_where_heads_lie(
    horizon: str,
    plain: tuple[int, ...],
    masked: tuple[int, ...],
    masked_with_gradients: tuple[int, ...],
    other_order: tuple[int, ...],
) -> None:
    attend = resolve("aten::scaled_dot_product_attention", Release(horizon))
    x, mask = Tensor(batch(1, 2, 3, 4)), np.zeros((3, 3), np.float32)
    turned = Tensor(batch(1, 3, 2, 4).swapaxes(1, 2))
    assert attend(x, x, x).strides == plain
    assert attend(x, x, x, Tensor(mask)).strides == masked
    assert attend(x, x, x, Tensor(mask, requires_grad=True)).strides == masked_with_gradients
    assert attend(turned, x, x).strides == other_order
    assert attend(x, x, Tensor(batch(1, 2, 3, 5))).strides == (30, 15, 5, 1)
    deep = Tensor(batch(1, 1, 2, 3, 4))
    assert attend(deep, deep, deep).strides == (24, 24, 12, 4, 1)
