"""Complex numbers and 0-dim tensors that 1.8.1, 1.12.1 and 2.15.0 reject."""

from __future__ import annotations

from typing import Any

import pytest

from tests.runtime.operators.tables import called, t
from torch_compat.runtime.kinds_refused import DIMENSIONED, REAL

COMPLEX, NUMBER = t([[1 + 1j, 2j]], "complex64"), t(1.5)
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("atan2", "arctan2", "hypot", "nextafter"), (COMPLEX, COMPLEX)),
    "unflatten": (NUMBER, 0, [1]),
    "slice_scatter": (NUMBER, NUMBER),
    "linalg_cross": (NUMBER, NUMBER),
    "cross_entropy_loss": (NUMBER, t(2)),
    "local_response_norm": (NUMBER, 2),
}


@pytest.mark.parametrize("name", sorted(REAL))
def test_operators_on_real_numbers_refuse_complex_ones(name: str) -> None:
    assert called(name, ARGUMENTS.get(name, (COMPLEX,))) == "raises"


@pytest.mark.parametrize("name", sorted(DIMENSIONED))
def test_operators_along_a_dimension_refuse_tensors_without_any(name: str) -> None:
    assert called(name, ARGUMENTS.get(name, (NUMBER,))) == "raises"


@pytest.mark.parametrize("name", ["round", "round_"])
def test_1_6_alone_rounds_complex_numbers(name: str) -> None:
    """As 1.6.0 gave it; 1.7.1 to 2.15.0 refuse it."""
    given = t([1.5 + 2.5j, -2.5 - 0.5j], "complex64")
    assert called(name, (given,), at="1.6.0") == "complex64[2][(2+2j), (-2-0j)]"
    assert called(name, (given,), at="1.7.1") == called(name, (given,), at="2.15.0") == "raises"


def test_other_tensors_are_not_refused() -> None:
    assert called("floor", (t([1.5]),)) == "float32[1][1.0]"
    assert called("diff", (t([1.5, 2.0]),)) == "float32[1][0.5]"


@pytest.mark.parametrize("q", [t(1.5), t(float("nan")), t([[0.5]]), -0.5])
def test_quantiles_out_of_range_are_refused(q: Any) -> None:
    assert called("quantile", (t([1.0, 2.0]), q)) == "raises"
