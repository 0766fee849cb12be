"""Tensors formatted as text, as in 2.7.1 and 2.8.0.

Both wrote 540 random tensors identically; 1.5.1 wrote the same as 2.7.1, and 2.15.0 the same as 2.8.0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.runtime.archives import program
from torch_compat.runtime.tensor import Tensor

TEXT = "def forward(self: __torch__.m.Model,\n    x: Tensor) -> str:\n  return str(x)\n"
FORMAT = 'def forward(self: __torch__.m.Model,\n    x: Tensor) -> str:\n  return torch.format("<{}>", x)\n'
FLOAT32, INT64 = np.dtype(np.float32), np.dtype(np.int64)
NAN, INF = float("nan"), float("inf")


def told(horizon: str, value: Any, dtype: Any, source: str = TEXT) -> Any:
    return program(source, f"reference@{horizon}").run("forward", (Tensor(np.array(value, dtype)),))


@pytest.mark.parametrize(
    ("value", "dtype", "before", "since"),
    [
        (2.5, FLOAT32, "2.5\n[ CPUFloatType{} ]", None),
        (0.1, FLOAT32, "0.1\n[ CPUFloatType{} ]", "0.10000000149011612\n[ CPUFloatType{} ]"),
        (1e10, FLOAT32, "1e+10\n[ CPUFloatType{} ]", "10000000000\n[ CPUFloatType{} ]"),
        (1e-7, FLOAT32, "1e-07\n[ CPUFloatType{} ]", "1.0000000116860974e-07\n[ CPUFloatType{} ]"),
        (NAN, FLOAT32, "nan\n[ CPUFloatType{} ]", None),
        ([1, 2, -3], INT64, " 1\n 2\n-3\n[ CPULongType{3} ]", None),
        ([True, False], np.bool_, " 1\n 0\n[ CPUBoolType{2} ]", None),
        ([1.5, -2.25], FLOAT32, " 1.5000\n-2.2500\n[ CPUFloatType{2} ]", None),
        ([1e10, 1.0], FLOAT32, " 1.0000e+10\n 1.0000e+00\n[ CPUFloatType{2} ]", None),
        ([1234567890], INT64, " 1.2346e+09\n[ CPULongType{1} ]", None),
        ([INF, -INF], FLOAT32, "inf\n-inf\n[ CPUFloatType{2} ]", None),
        (
            [1000000.5, 200000.25],
            FLOAT32,
            "1e+06 *\n 1.0000\n 0.2000\n[ CPUFloatType{2} ]",
            "1000000 *\n 1.0000\n 0.2000\n[ CPUFloatType{2} ]",
        ),
        (
            [-0.5, -100.0],
            FLOAT32,
            "-0.5000\n-100.0000\n[ CPUFloatType{2} ]",
            "  -0.5000\n-100.0000\n[ CPUFloatType{2} ]",
        ),
        (
            [[[[0], [1]], [[2], [3]]]],
            INT64,
            "(1,1,.,.) = \n  0\n  1\n\n(1,2,.,.) = \n  2\n  3\n[ CPULongType{1,2,2,1} ]",
            "(1,1,.,.) = \n 0\n  1\n\n(1,2,.,.) = \n 2\n  3\n[ CPULongType{1,2,2,1} ]",
        ),
        (
            [[51863.67578125, -131252.1875, 19199.5078125]],
            FLOAT32,
            " 51863.6758 -131252.1875  19199.5078\n[ CPUFloatType{1,3} ]",
            "100000 *\n 0.5186 -1.3125  0.1920\n[ CPUFloatType{1,3} ]",
        ),
        (np.zeros((2, 0)), FLOAT32, "[ CPUFloatType{2,0} ]", None),
        (
            [[[-1491118456832.5]], [[-265679488.0]]],
            np.float64,
            "(1,.,.) = \n 1e+12 *\n -1.4911\n\n(2,.,.) = \n -2.657e+08\n[ CPUDoubleType{2,1,1} ]",
            "(1,.,.) = \n1000000000000 *\n -1.4911\n\n(2,.,.) = \n-2.65679e+08\n[ CPUDoubleType{2,1,1} ]",
        ),
    ],
)
def test_the_text_of_a_tensor(value: Any, dtype: Any, before: str, since: str | None) -> None:
    assert told("2.7.1", value, dtype) == before
    assert told("2.8.0", value, dtype) == (before if since is None else since)
    assert told("2.8.0", value, dtype, FORMAT) == f"<{before if since is None else since}>"


def test_long_rows_are_written_in_blocks_of_columns() -> None:
    result = told("2.15.0", np.arange(30.0).reshape(2, 15) / 4, FLOAT32).split("\n")
    assert result[0].startswith("Columns 1 to 10 0.0000")
    assert result[2:4] == ["", "Columns 11 to 15 2.5000  2.7500  3.0000  3.2500  3.5000"]


def test_of_complex_numbers_the_real_parts_are_written() -> None:
    for horizon in ("2.7.1", "2.8.0"):
        assert told(horizon, [1j], np.complex64) == " 0\n[ CPUComplexFloatType{1} ]"
