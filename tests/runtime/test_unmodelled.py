"""Calls listed as not modeled: every entry names operators of the reader, and applies only to its releases."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

from torch_compat.errors import Raised, Unsupported
from torch_compat.releases.release import Release
from torch_compat.runtime.registry import known, resolve
from torch_compat.runtime.tensor import Tensor
from torch_compat.runtime.unmodelled import ENTRIES, UnmodelledCalls


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"{entry.operators} of {entry.releases}")
def test_an_entry_names_operators_of_the_reader(entry: UnmodelledCalls) -> None:
    for part in re.sub(r"\([^()]*\)\??|\?", "", entry.operators).split("|"):
        assert any(name.startswith(f"aten::{part}") for name in known()), part
    assert any(re.fullmatch(entry.operators, name.removeprefix("aten::")) for name in known())
    assert entry.releases
    assert entry.reason


@pytest.mark.parametrize(("horizon", "modelled"), [("1.2.0", [0, 0]), ("1.3.1", None), ("1.5.1", None), ("1.8.1", [1, 0])])
def test_integers_compared_in_place_with_a_float(horizon: str, modelled: list[int] | None) -> None:
    """1.2.0 cuts the number; what 1.3 to 1.5 gave varied with the bytes."""
    given = Tensor(np.array([1, 2]))
    less = resolve("aten::lt_", Release(horizon))
    if modelled is not None:
        assert less(given, 1.5).array.tolist() == modelled
        return
    with pytest.raises(Unsupported, match="aten::lt_ compares int64 values with a float in place"):
        less(given, 1.5)
    assert given.array.tolist() == [1, 2]
    assert less(given, 2).array.tolist() == [1, 0]


def test_more_distinct_elements_than_the_hash_table_is_known_for() -> None:
    many = Tensor(np.arange(1100))
    with pytest.raises(Unsupported, match="only for up to 1031 numbers"):
        resolve("aten::_unique2", Release("2.1.2"))(many, False, True, False)
    assert resolve("aten::_unique2", Release("2.2.2"))(many, False, True, False)[0].array.tolist() == list(range(1100))


@pytest.mark.parametrize(
    ("horizon", "exponent", "expected"),
    [("1.2.0", 2.5, [25, 49]), ("1.3.1", 2.5, [55, -(2**31)]), ("1.5.1", -1.0, [0, 0]), ("1.5.1", 2, [25, 49])],
)
def test_powers_of_integers(horizon: str, exponent: float, expected: list[int]) -> None:
    """As 1.2.0, 1.3.1 and 1.5.1 gave them."""
    with np.errstate(all="ignore"):
        tensor = resolve("aten::pow", Release(horizon))(Tensor(np.array([5, -7], np.int32)), exponent)
    assert (tensor.array.dtype, tensor.array.tolist()) == (np.int32, expected)


@pytest.mark.parametrize(("horizon", "expected"), [("1.3.1", 9.75), ("1.11.0", [5.0, 14.5]), ("1.12.1", 9.75)])
def test_a_loss_that_is_reduced_into_out(horizon: str, expected: float | list[float]) -> None:
    """As 1.3.1, 1.11.0 and 1.12.1 gave it."""
    given = Tensor(np.array([[1, 2], [3, 5]], np.float32))
    out = Tensor(np.zeros(0, np.float32))
    result = resolve("aten::mse_loss", Release(horizon))(given, Tensor(np.zeros((2, 2), np.float32)), 1, out=out)
    assert result is out
    assert out.array.tolist() == expected


@pytest.mark.parametrize("name", ["upsample_nearest2d", "upsample_bilinear2d", "upsample_bicubic2d"])
def test_a_larger_image_goes_into_out(name: str) -> None:
    out = Tensor(np.zeros(0, np.float32))
    corners = () if "nearest" in name else (False,)
    resolve(f"aten::{name}", Release("2.13.0"))(Tensor(np.ones((1, 1, 2, 2), np.float32)), [4, 4], *corners, None, None, out=out)
    assert out.array.shape == (1, 1, 4, 4)


@pytest.mark.parametrize(
    ("name", "args", "modelled"),
    [
        ("upsample_linear1d", ([6], False, 1.0), False), ("upsample_linear1d", ([6], False, 1.5), True), ("upsample_linear1d", ([6], True, 1.0), True),
        ("upsample_nearest1d", ([6], math.inf), False), ("upsample_nearest1d", ([6], 1.5), True),
    ],
)  # fmt: skip
def test_scales_that_reach_beyond_a_line_of_points(name: str, args: tuple[Any, ...], modelled: bool) -> None:
    """1.13.1 reads past the last of five points where six are a step of one apart; 2.0.1 does not."""
    line = Tensor(np.arange(5.0).reshape(1, 1, 5))
    old = resolve(f"aten::{name}", Release("1.13.1"))
    if modelled:
        assert old(line, *args).array.shape == (1, 1, 6)
        return
    with pytest.raises(Unsupported):
        old(line, *args)
    assert resolve(f"aten::{name}", Release("2.0.1"))(line, *args).array.shape == (1, 1, 6)


def test_places_that_bfloat16_does_not_hold() -> None:
    """1.10.2 and 1.12.1 count up to 256; 1.9.1 and 1.13.1 refuse the dtype."""
    places = resolve("aten::triu_indices", Release("1.12.1"))
    assert places(2, 3, 0, dtype=15).array.shape == (2, 5)
    with pytest.raises(Unsupported, match="every integer above 256"):
        places(2, 1000, 2, dtype=15)
    for release in ("1.9.1", "1.13.1"):
        with pytest.raises(Raised, match="not implemented"):
            resolve("aten::triu_indices", Release(release))(2, 1000, 2, dtype=15)
