"""Dtypes of ``out=`` that releases reject: how the reference reader uses the records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from torch_compat.errors import Raised
from torch_compat.operators.outs import is_generated, lacks_kernel, written
from torch_compat.releases.release import Release
from torch_compat.runtime.dtypes import named
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import Tensor


def ones(*shape: int, dtype: str = "float32") -> Tensor:
    tensor = named(dtype)
    assert tensor is not None
    return Tensor(np.ones(shape, tensor.array))


def said(name: str, horizon: str, *args: Any, **keywords: Any) -> str:
    """What an operator raises; "" where it gives a value."""
    try:
        resolve(f"aten::{name}", Release(horizon))(*args, **keywords)
    except Raised as error:
        return error.message
    return ""


@pytest.mark.parametrize(
    ("name", "horizon", "given", "out", "refuses"),
    [
        ("add", "2.6.0", "float32", "float16", False),  # what holds the category of the result
        ("add", "2.6.0", "float32", "int32", True),
        ("add", "1.2.0", "float32", "float64", True),  # up to 1.2 the very dtype
        ("prod", "2.6.0", "int32", "int64", False),
        ("prod", "2.6.0", "int32", "float32", True),
        ("argmax", "2.6.0", "float32", "int32", True),
        ("argmax", "2.6.0", "float32", "int64", False),
        ("eq", "2.6.0", "float32", "float16", False),
    ],
)
def test_out_has_a_dtype_that_the_release_accepts(name: str, horizon: str, given: str, out: str, refuses: bool) -> None:
    data = [ones(2, 3, dtype=given)] * (2 if name in {"add", "eq"} else 1)
    assert bool(said(name, horizon, *data, out=ones(0, dtype=out))) is refuses


def test_operators_that_take_lists_are_asked_as_well() -> None:
    assert said("cat", "2.6.0", [ones(2), ones(2)], out=ones(0, dtype="int64"))
    assert said("cat", "2.6.0", [ones(2), ones(2)], out=ones(0, dtype="float64")) == ""


def test_a_number_decides_of_which_dtype_the_result_is() -> None:
    assert said("add", "2.6.0", ones(2, dtype="int64"), 0.5, out=ones(0)) == ""
    assert said("add", "2.6.0", ones(2, dtype="int64"), 0.5, out=ones(0, dtype="bool"))


def test_forms_that_torch_generates_accept_the_dtype_of_the_result_alone() -> None:
    release = Release("2.6.0")
    assert is_generated("aten::flip", release)
    assert not is_generated("aten::add", release)  # has one that nobody generated
    assert "float64" in said("flip", "2.6.0", ones(2), [0], out=ones(0, dtype="float64"))
    assert said("flip", "2.6.0", ones(2), [0], out=ones(0)) == ""
    assert said("flip", "1.13.1", ones(2), [0], out=ones(0, dtype="float64")) == ""  # copied


def test_1_12_has_no_kernel_for_forms_that_it_generates() -> None:
    assert lacks_kernel("aten::relu", Release("1.12.1"), by_number=False)
    assert not lacks_kernel("aten::relu", Release("1.13.1"), by_number=False)
    assert "no kernel" in said("relu", "1.12.1", ones(2), out=ones(0))
    assert said("relu", "1.13.1", ones(2), out=ones(0)) == ""
    assert "no kernel" in said("add", "1.12.1", ones(2), 1, out=ones(0))
    assert said("add", "1.12.1", ones(2), ones(2), out=ones(0)) == ""


@pytest.mark.parametrize(("horizon", "refuses"), [("1.6.0", True), ("1.7.1", True), ("1.8.1", False)])
def test_1_6_and_1_7_call_nothing_that_writes_into_several_tensors(horizon: str, refuses: bool) -> None:
    answer = said("mode", horizon, ones(2, 3), 1, values=ones(0), indices=ones(0, dtype="int64"))
    assert ("callBoxed" in answer) is refuses


@pytest.mark.parametrize("name", ["cholesky", "inner"])
def test_up_to_1_8_results_are_copied_and_out_is_not_resized(name: str) -> None:
    data = [Tensor(np.eye(2, dtype=np.float32))] * (2 if name == "inner" else 1)
    assert said(name, "1.8.1", *data, out=ones(0))
    assert said(name, "1.8.1", *data, out=ones(2, 2)) == ""
    assert said(name, "1.9.1", *data, out=ones(0)) == ""


def test_nothing_is_claimed_of_what_was_not_asked() -> None:
    assert written("aten::no_such_operator", Release("2.6.0")) is None
    known = written("aten::add", Release("2.6.0"))
    assert known is not None
    assert known.accepts("other", "float32", "int32", (2, 2), 2, frozenset(), empty=False) is None
    assert known.accepts("out", "float32", "int32", (2, 2), 2, frozenset({"text"}), empty=False) is None


def test_a_running_sum_in_place_keeps_its_dtype() -> None:
    assert said("cumsum_", "2.6.0", ones(2), 0, dtype=7)
    assert said("cumsum_", "2.6.0", ones(2), 0, dtype=6) == ""
    assert "requires dtype float64" in said("float_power_", "2.6.0", ones(2), 2)
    assert said("float_power_", "2.6.0", ones(2, dtype="float64"), 2) == ""


def test_a_tensor_of_integers_requires_no_gradients() -> None:
    assert "require gradients" in said("tensor", "2.6.0", 1, requires_grad=True)
    assert said("tensor", "2.6.0", 1.5, requires_grad=True) == ""


@pytest.mark.parametrize(("name", "horizon"), [("linalg_vector_norm", "1.12.1"), ("norm", "2.0.1")])
def test_a_norm_is_not_computed_in_a_dtype_that_does_not_hold_the_elements(name: str, horizon: str) -> None:
    assert "without narrowing" in said(name, horizon, ones(2), 2, None, False, dtype=5)
    assert "should be complex" in said("linalg_vector_norm", "1.12.1", ones(2, dtype="complex64"), 2, None, False, dtype=6)
    assert said(name, horizon, ones(2), 2, None, False, dtype=7) == ""


def test_places_of_32_bits_are_wanted_where_they_are_asked_for() -> None:
    bounds = ones(3)
    assert said("searchsorted", "2.6.0", bounds, ones(2), out_int32=True, out=ones(0, dtype="int64"))
    assert said("searchsorted", "2.6.0", bounds, ones(2), out_int32=True, out=ones(0, dtype="int32")) == ""
    assert said("bucketize", "1.13.1", 0.5, bounds, out_int32=True, out=ones(0, dtype="int64")) == ""  # copied


def test_the_kernel_that_a_release_lacks_is_not_reached_by_tensors_without_elements() -> None:
    assert said("prod", "2.0.1", ones(2, dtype="float16"), out=ones(0, dtype="float16"))
    assert said("prod", "2.0.1", ones(0, 3, dtype="float16"), out=ones(0, dtype="float16")) == ""


def test_a_power_of_one_is_one_of_whichever_dtype() -> None:
    assert said("pow", "1.5.1", 2, ones(2, dtype="bool"))
    assert said("pow", "1.5.1", 1.0, ones(2, dtype="bool")) == ""


def test_an_argument_that_is_given_by_its_name_is_written_into_by_nobody() -> None:
    assert said("embedding", "2.6.0", ones(2, 3), indices=Tensor(np.zeros(2, np.int64))) == ""
