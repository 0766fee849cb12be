"""Arguments that releases reject, although a result could be computed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from torch_compat.errors import Raised
from torch_compat.releases.release import Release
from torch_compat.runtime.dtypes import BFLOAT16
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import Tensor

ALL = ("1.6.0", "1.7.1", "1.8.1", "1.10.2", "1.13.1", "2.0.1", "2.6.0", "2.9.1", "2.11.0", "2.15.0")
FLOAT64, INT64, COMPLEX64, FLOAT32 = 7, 4, 9, 6  # codes of dtypes


def ones(*shape: int, dtype: Any = np.float32) -> Tensor:
    return Tensor(np.ones(shape).astype(dtype))


def bools() -> Tensor:
    return Tensor(np.array([True, False]))


def turned() -> Tensor:
    return Tensor(np.full((2, 3), 1 + 2j, np.complex64))


def since(release: str, until: str = "99.0.0") -> tuple[str, ...]:
    return tuple(item for item in ALL if Release(release) <= Release(item) < Release(until))


@pytest.mark.parametrize(
    ("name", "args", "keywords", "refused", "computed"),
    [
        ("clamp", lambda: (bools(), bools(), bools()), {}, since("1.10.0"), ()),
        ("clamp", lambda: (bools(), bools()), {}, (), since("1.13.0")),
        ("cdist", lambda: (ones(2, 2), ones(2, 2), math.nan), {}, ALL, ()),
        ("smooth_l1_loss", lambda: (ones(0), ones(0), 1, math.nan), {}, since("1.7.0"), ()),
        ("huber_loss", lambda: (ones(2), ones(2), 1, math.nan), {}, since("1.10.0"), ()),
        ("rrelu", lambda: (ones(2), -math.inf, 2.0), {}, since("2.10.0"), since("1.6.0", "2.10.0")),
        ("rrelu_", lambda: (ones(2), -math.inf, 2.0), {}, (), ALL),
        ("linspace", lambda: (ones(1), ones(), 3), {}, ALL, ()),
        ("logspace", lambda: (0.0, ones(1), 3), {}, ALL, ()),
        ("nansum", lambda: (turned(), [-2], True), {"dtype": FLOAT32}, since("1.7.0"), ()),
        ("nanmean", lambda: (turned(),), {"dtype": FLOAT32}, since("1.10.0"), ()),
        ("nanmean", lambda: (ones(2, dtype=BFLOAT16.array), [0]), {"dtype": INT64}, since("2.13.0"), ()),
        ("nanmean", lambda: (ones(2, dtype=np.int64),), {"dtype": FLOAT32}, since("1.10.0"), ()),
        ("triangular_solve", lambda: (ones(2, 1, dtype=float), ones(2, 2)), {}, ALL, ()),
        ("linalg_solve", lambda: (ones(0, 0), ones(0, 2, dtype=float)), {}, since("1.8.0"), ()),
        ("linalg_norm", lambda: (turned(), 0, [1], True), {"dtype": FLOAT64}, since("1.9.0"), since("1.8.0", "1.9.0")),
        ("linalg_norm", lambda: (turned(), "fro"), {"dtype": FLOAT64}, since("1.12.0"), since("1.8.0", "1.12.0")),
        ("linalg_norm", lambda: (ones(2),), {"dtype": COMPLEX64}, since("1.12.0"), since("1.8.0", "1.12.0")),
        ("linalg_norm", lambda: (ones(2),), {"dtype": INT64}, since("1.12.0"), ()),
        ("to", lambda: (ones(2),), {"dtype": FLOAT32, "layout": 1}, ALL, ()),
        ("_to_copy", lambda: (ones(2),), {"layout": 2}, since("1.10.0"), ()),
        ("_unsafe_index", lambda: (ones(1), [Tensor(np.array([True]))]), {}, since("2.6.0"), ()),
        ("_unsafe_index", lambda: (ones(1), [Tensor(np.array([0], np.int32))]), {}, (), since("2.6.0")),
        ("cross_entropy_loss", lambda: (ones(2, 3), ones(2, 3), None, 1, 5), {}, since("1.10.0"), ()),
        ("cross_entropy_loss", lambda: (ones(2, 3), ones(2, 3), None, 1, -1), {}, (), since("1.10.0")),
    ],
)
def test_arguments_that_releases_refuse(
    name: str, args: Any, keywords: dict[str, Any], refused: tuple[str, ...], computed: tuple[str, ...]
) -> None:
    """As these releases answered on 2026-11-28."""
    for horizon in refused:
        with pytest.raises(Raised):
            resolve(f"aten::{name}", Release(horizon))(*args(), **keywords)
    for horizon in computed:
        with np.errstate(all="ignore"):
            assert isinstance(resolve(f"aten::{name}", Release(horizon))(*args(), **keywords), Tensor)


def test_the_ends_of_a_range_are_named_with_the_operator() -> None:
    """The message of 2.1.2 and newer."""
    for name in ("linspace", "logspace"):
        with pytest.raises(Raised, match=rf"^{name} only .* got start with 1 dimension\(s\) and end with 0 dimension\(s\)"):
            resolve(f"aten::{name}", Release("2.15.0"))(ones(1), ones(), 3)
