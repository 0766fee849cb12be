"""Sizes that a release divides by zero, and what other releases answer; each answer is that of the release.

Lives in tests/runtime/ beside harness/torch_compat/runtime/traps.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.runtime.archives import described, program
from torch_compat.errors import Raised, Unsupported
from torch_compat.releases.release import Release
from torch_compat.runtime.slips import DiesCalled
from torch_compat.runtime.tensor import Tensor

DIES, REFUSED, NOT_MODELLED = "dies", "refused", "not modelled"
PICTURE = np.arange(16, dtype=np.float32).reshape(1, 4, 2, 2)


def answered(call: str, horizon: str, x: Any) -> Any:
    """The shape of the result of a program of one call."""
    source = f"def forward(self,\n    x: Tensor) -> Tensor:\n  return {call}\n"
    try:
        write = described if Release(horizon) < Release("1.5.0") else program
        result: Any = write(source, f"reference@{horizon}").run("forward", (Tensor(np.array(x)),))
    except DiesCalled:
        return DIES
    except Raised:
        return REFUSED
    except Unsupported:
        return NOT_MODELLED
    return list(result.shape)


WEIGHT = "torch.ones([1, 4, 2, 2])"
TRANSPOSED = "torch.ones([4, 1, 2, 2])"


@pytest.mark.parametrize(
    ("call", "x", "results"),
    [
        ("torch.pixel_shuffle(x, 0)", PICTURE, {"1.7.1": DIES, "1.8.1": REFUSED, "2.15.0": REFUSED}),
        ("torch.pixel_shuffle(x, -2)", PICTURE, {"1.7.1": REFUSED, "1.8.1": REFUSED}),
        ("torch.pixel_shuffle(x, 4294967296)", PICTURE, {"1.7.1": DIES, "2.9.1": DIES, "2.10.0": REFUSED}),
        ("torch.pixel_shuffle(x, 2)", PICTURE, {"1.12.1": [1, 1, 4, 4]}),
        ("torch.pixel_shuffle(x, 2)", PICTURE[:, :0], {"1.11.0": [1, 0, 4, 4], "1.12.1": DIES, "1.13.1": [1, 0, 4, 4]}),
        ("torch.pixel_shuffle(x, 2)", PICTURE[:0], {"1.12.1": [0, 1, 4, 4]}),
        ("torch.pixel_unshuffle(x, 0)", PICTURE, {"1.8.1": REFUSED, "2.15.0": REFUSED}),
        ("torch.pixel_unshuffle(x, 2)", PICTURE[0, 0], {"1.8.1": REFUSED, "2.15.0": REFUSED}),
        ("torch.pixel_unshuffle(x, 2)", PICTURE[:, :0], {"1.11.0": [1, 0, 1, 1], "1.12.1": DIES, "1.13.1": [1, 0, 2, 2]}),
        ("torch.pixel_unshuffle(x, 2)", PICTURE[:0], {"1.12.1": [0, 16, 1, 1], "1.13.1": [0, 4, 2, 2]}),
        ("torch.channel_shuffle(x, 0)", PICTURE, {"1.10.2": REFUSED, "2.15.0": REFUSED}),
        ("torch.channel_shuffle(x, 3)", PICTURE, {"1.10.2": REFUSED, "2.15.0": REFUSED}),
        ("torch.channel_shuffle(x, 2)", PICTURE[:0], {"1.10.2": REFUSED, "1.11.0": DIES, "1.12.1": DIES, "1.13.1": [0, 4, 2, 2]}),
        (
            "torch.channel_shuffle(x, 2)",
            PICTURE[:, :0],
            {"1.10.2": REFUSED, "1.11.0": DIES, "1.12.1": DIES, "1.13.1": [1, 0, 2, 2]},
        ),
        (
            "torch.channel_shuffle(x, 2)",
            PICTURE[:, :, :0],
            {"1.6.0": [1, 4, 0, 2], "1.10.2": [1, 4, 0, 2], "1.12.1": [1, 4, 0, 2]},
        ),
        ("torch.native_channel_shuffle(x, 0)", PICTURE, {"1.11.0": DIES, "2.7.1": DIES, "2.8.0": REFUSED}),
        ("torch.native_channel_shuffle(x, 3)", PICTURE, {"2.7.1": NOT_MODELLED, "2.8.0": REFUSED}),
        ("torch.group_norm(x, 0)", PICTURE, {"1.0.1": DIES, "1.1.0": DIES, "1.11.0": DIES, "1.12.1": REFUSED}),
        ("torch.max_pool2d(x, [2, 2], [1, 0])", PICTURE, {"1.1.0": REFUSED, "1.2.0": DIES, "1.6.0": DIES, "1.7.1": REFUSED}),
        ("torch.max_pool2d(x, [0, 0])", PICTURE, {"1.6.0": DIES, "1.7.1": REFUSED}),
        ("torch.avg_pool1d(x, [2], [0])", PICTURE[0], {"1.1.0": REFUSED, "1.2.0": DIES, "1.6.0": DIES, "1.7.1": REFUSED}),
        (f"torch.conv2d(x, {WEIGHT}, None, [0, 1])", PICTURE, {"1.3.1": DIES, "1.5.1": REFUSED}),
        (f"torch.conv2d(x, {WEIGHT}, None, [1, 1], [0, 0], [1, 1], 0)", PICTURE, {"1.12.1": DIES, "1.13.1": REFUSED}),
        (f"torch.conv2d(x, {WEIGHT}, None, [1, 1], [0, 0], [1, 1], -1)", PICTURE, {"1.12.1": REFUSED, "1.13.1": REFUSED}),
        (
            f"torch.conv_transpose2d(x, {TRANSPOSED}, None, [1, 1], [0, 0], [0, 0], 0)",
            PICTURE,
            {"1.12.1": DIES, "1.13.1": REFUSED},
        ),
        ("torch.fmod(x, 0)", np.array([7, -7]), {"1.5.1": DIES, "1.6.0": DIES, "1.7.1": REFUSED}),
        ("torch.fmod(x, -0.5)", np.array([7, -7]), {"1.0.1": DIES, "1.4.0": DIES, "1.6.0": DIES, "1.7.1": REFUSED}),
        (
            "torch.remainder(x, 0.5)",
            np.array([7, -7]),
            {"1.0.1": DIES, "1.3.1": DIES, "1.4.0": DIES, "1.5.1": REFUSED, "1.6.0": REFUSED},
        ),
        ("torch.fmod(x, torch.tensor([0, 1]))", np.array([7, -7]), {"1.5.1": DIES, "1.6.0": REFUSED}),
        ("torch.fmod(x, 0)", np.array([], np.int64), {"1.5.1": [0], "1.6.0": [0]}),
        ("torch.fmod(x, 0)", np.array([7.0]), {"1.5.1": [1]}),
    ],
)
def test_sizes_divided_by_zero(call: str, x: Any, results: dict[str, Any]) -> None:
    assert {horizon: answered(call, horizon, x) for horizon in results} == results
