"""Departures: the omitted values can be restored exactly."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torch_compat.values.delta import depart, departures

KEYS = st.sampled_from(["calls", "first", "tensor", "bytes", "-", "0"])
LEAVES = st.none() | st.booleans() | st.integers(-2, 2) | st.floats(allow_nan=False) | st.text(max_size=3)
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=12)


def exactly(value: Any) -> str:
    """A value as it is recorded: True is not 1, and 0.0 is not -0.0."""
    return json.dumps(value, sort_keys=True)


@given(VALUES, VALUES)
def test_the_other_value_comes_out_and_nothing_given_is_changed(one: Any, other: Any) -> None:
    before = copy.deepcopy(one)
    assert exactly(depart(one, departures(one, other))) == exactly(other)
    assert exactly(one) == exactly(before)


@given(VALUES)
def test_what_is_equal_departs_in_nothing(value: Any) -> None:
    assert departures(value, copy.deepcopy(value)) == ()


def test_only_what_differs_is_kept_and_equal_values_once() -> None:
    golden = {"calls": [{"first": {"value": 1, "inputs": [5]}, "second": {"value": 1, "inputs": [5]}}]}
    own = {"calls": [{"first": {"value": 2, "inputs": [5]}, "second": {"value": 2, "inputs": [5]}}]}
    assert departures(golden, own) == ((("/calls/0/first/value", "/calls/0/second/value"), 2),)


def test_a_key_more_or_less_is_one_departure() -> None:
    golden, own = {"value": [1, 2, 3], "error": 1}, {"value": [1, 2, 3], "warnings": []}
    assert departures(golden, own) == ((("-/error",), None), (("/warnings",), []))
    assert depart(golden, departures(golden, own)) == own


def test_another_whole() -> None:
    assert departures({"crashed": 1}, {"value": 2}) == ((("",), {"value": 2}),)
    assert depart({"crashed": 1}, departures({"crashed": 1}, {"value": 2})) == {"value": 2}


def test_true_is_not_one() -> None:
    assert departures({"a": [1, 0.0]}, {"a": [True, 0.0]}) == ((("/a/0",), True),)


@pytest.mark.parametrize(("expected", "got"), [(0.0, -0.0), (-0.0, 0.0)])
def test_the_sign_of_a_zero_is_kept(expected: float, got: float) -> None:
    golden = {"value": {"tuple": [{"float": expected}, {"float": 1.0}]}}
    own = {"value": {"tuple": [{"float": got}, {"float": 1.0}]}}
    assert exactly(departures(golden, own)) == exactly([[["/value/tuple/0/float"], got]])
    assert exactly(depart(golden, departures(golden, own))) == exactly(own)


@pytest.mark.parametrize("key", ["", "a/b"])
def test_a_key_that_cannot_be_in_a_path_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match="cannot be part of a path"):
        departures({key: 1, "a": 1}, {key: 2, "a": 1})
