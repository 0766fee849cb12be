"""Arithmetic of 1.3 to 1.6, in which ``out`` takes part in type promotion and bfloat16 has few common dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from torch_compat.errors import Raised
from torch_compat.releases.release import Release
from torch_compat.runtime.dtypes import BFLOAT16
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import Tensor

BF16 = BFLOAT16.array
ROW, COLUMN = [7, 3, 5], [3, 2, 7]


def compute(horizon: str, name: str, self: Tensor, other: Any, out: Any) -> list[Any]:
    keywords = {} if out is None else {"out": Tensor(np.zeros(3).astype(out))}
    value = resolve(f"aten::{name}", Release(horizon))(self, other, **keywords)
    return [value.dtype.name, value.array.astype(np.float64).tolist()]


def tensor(values: Any, kind: Any) -> Tensor:
    return Tensor(np.array(values).astype(kind))


@pytest.mark.parametrize("horizon", ["1.3.1", "1.4.0", "1.5.1"])
@pytest.mark.parametrize(
    ("name", "self", "other", "out", "expected"),
    [
        # Two groups of operands: the 0-dim number decides, because the dtypes of the others have no common dtype.
        ("div", tensor(7, np.int16), tensor(COLUMN, BF16), np.float64, ["float64", [2.0, 3.0, 1.0]]),
        ("add", tensor(ROW, np.int16), True, BF16, ["bfloat16", [1.0, 1.0, 1.0]]),
        ("add", tensor(ROW, BF16), tensor(3, np.uint8), np.uint8, ["uint8", [10.0, 6.0, 8.0]]),
        # out= is resized to no dimensions before it takes part.
        ("mul", tensor(7, np.int16), tensor(3, bool), BF16, ["bfloat16", 1.0]),
        ("mul", tensor(ROW, BF16), tensor(COLUMN, bool), bool, ["bool", [1.0, 1.0, 1.0]]),
        ("div", tensor(7, BF16), tensor(COLUMN, np.float32), np.float64, ["float64", [7 / 3, 3.5, 1.0]]),
        ("sub", tensor(ROW, np.uint8), 2.1, np.float64, ["float64", [4.9, 0.8999999999999999, 2.9]]),
        ("div", tensor(ROW, np.float32), tensor(3, np.float64), np.float64, ["float64", [7 / 3, 1.0, 5 / 3]]),
        ("div", tensor(ROW, np.uint8), tensor(COLUMN, np.float64), np.float16, ["float16", [2.333984375, 1.5, 0.71435546875]]),
        ("div", tensor(ROW, bool), tensor(COLUMN, bool), np.uint8, ["uint8", [1.0, 1.0, 1.0]]),
        ("div", tensor(ROW, BF16), tensor(3, np.int16), None, ["bfloat16", [2.328125, 1.0, 1.6640625]]),
    ],
)
def test_out_takes_part_in_type_promotion(
    name: str, self: Tensor, other: Any, out: Any, expected: list[Any], horizon: str
) -> None:
    """As 1.3.1, 1.4.0 and 1.5.1 gave it."""
    assert compute(horizon, name, self, other, out) == expected


@pytest.mark.parametrize("horizon", ["1.3.1", "1.4.0", "1.5.1", "1.6.0"])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_bfloat16_and_another_dtype_of_the_same_group_have_no_common_dtype(name: str, horizon: str) -> None:
    """As these releases refused it; 1.7.1 computes it."""
    given = tensor(ROW, BF16), tensor(COLUMN, np.int16), None
    with pytest.raises(Raised, match="Undefined"):
        compute(horizon, name, *given)
    assert compute("1.7.1", name, *given)[0] == "bfloat16"


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_float16_has_no_kernel_up_to_1_5(name: str) -> None:
    given = tensor(ROW, np.int64), tensor(COLUMN, np.float16), None
    with pytest.raises(Raised, match="not implemented for 'Half'"):
        compute("1.5.1", name, *given)
    assert compute("1.6.0", name, *given)[0] == "float16"


@pytest.mark.parametrize("horizon", ["1.3.1", "1.6.0"])
def test_bools_are_not_divided(horizon: str) -> None:
    with pytest.raises(Raised):
        compute(horizon, "div", tensor(ROW, bool), True, None)
    with pytest.raises(Raised):
        compute("1.6.0", "div", tensor(ROW, bool), True, np.float32)


INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("start", "end", "steps", "base", "old", "new"),
    [
        (0, 1, 2, INF, [complex(NAN, NAN), complex(INF, NAN)], None),
        (0, 1, 2, -2.0, [1, complex(-2, -1.7484555314695172e-07)], None),
        (-3, 0, 2, 0.0, [complex(INF, NAN), complex(NAN, NAN)], None),
        (-3, 1, 1, -INF, [complex(-0.0, 0.0)], [complex(0.0, -0.0)]),
        (1, 0, 1, INF, [complex(INF, 0)], [complex(NAN, NAN)]),
        (1e30, 1, 1, -2.0, [complex(INF, 0)], [complex(-INF, INF)]),
        (0, 1, 1, NAN, [1], [complex(NAN, NAN)]),
        (2.5, 0, 1, -2.0, [complex(NAN, 0)], [complex(1.7319120677457517e-15, 5.656854152679443)]),
    ],
)
def test_complex_powers_of_logspace(start: float, end: float, steps: int, base: float, old: list[Any], new: Any) -> None:
    """As 1.8.1, and as 1.9.1, 1.13.1 and 2.15.0 gave them for complex64: as of 1.9 a single power is complex."""
    for horizon, expected in (("1.8.1", old), ("1.9.1", new or old), ("1.13.1", new or old), ("2.15.0", new or old)):
        with np.errstate(all="ignore"):
            value = resolve("aten::logspace", Release(horizon))(start, end, steps, base, out=Tensor(np.zeros(0, np.complex64)))
        results = [str(part) for item in value.array.tolist() for part in (item.real, item.imag)]
        assert results == [str(part) for item in map(complex, expected) for part in (item.real, item.imag)]


def test_a_single_power_of_logspace_is_computed_from_the_unrounded_start() -> None:
    """As 1.5.1, 1.8.1 and 2.15.0 gave them: 3.3 is not rounded to float32 first, and 1e39 is not refused."""
    for horizon in ("1.5.1", "1.8.1", "2.15.0"):
        call = resolve("aten::logspace", Release(horizon))
        with np.errstate(all="ignore"):
            results = [call(start, 1, 1, 10.0).array.item() for start in (8.1, -20.3, 30.7, 3.3, 1e39)]
        assert results == [125892544.0, 5.011872387277806e-21, 5.011872482364584e30, 1995.2623291015625, INF]
