"""Dtypes that releases reject on the CPU: how the reference reader uses the records."""

from __future__ import annotations

import ast
import importlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from torch_compat.errors import Raised
from torch_compat.operators import dtypes, halves
from torch_compat.releases.release import Release
from torch_compat.runtime.registry import known, resolve
from torch_compat.runtime.tensor import Tensor

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

survey: Any = importlib.import_module("torch_compat.inside.survey")  # has no types, since it runs inside old releases


def ones(*shape: int, dtype: DTypeLike = np.int64) -> Tensor:
    return Tensor(np.ones(shape, dtype))


def said(name: str, horizon: str, *args: Any, **keywords: Any) -> str:
    """What an operator raises; "" where it gives a value."""
    try:
        resolve(f"aten::{name}", Release(horizon))(*args, **keywords)
    except Raised as error:
        return error.message
    return ""


@pytest.mark.parametrize(("horizon", "refuses"), [("1.2.0", True), ("2.15.0", False)])
def test_an_operator_refuses_what_the_release_of_the_horizon_refuses(horizon: str, refuses: bool) -> None:
    message = "\"triu\" not implemented for 'Bool'"
    assert said("triu", horizon, ones(2, 3, dtype=np.bool_)) == (message if refuses else "")
    assert said("triu", horizon, ones(2, 3)) == ""


def test_the_dtype_has_its_name_in_the_message() -> None:
    assert "'Char'" in said("layer_norm", "2.15.0", ones(2, 3, dtype=np.int8), [3])
    assert "'Long'" in said("layer_norm", "2.15.0", ones(2, 3), [3])
    assert said("layer_norm", "2.15.0", ones(2, 3, dtype=np.float64), [3]) == ""


def test_two_bools_are_not_subtracted_and_a_mask_is_no_data() -> None:
    assert "two bool tensors" in said("sub", "2.15.0", ones(2, dtype=np.bool_), ones(2, dtype=np.bool_))
    assert said("masked_fill", "2.15.0", ones(2), ones(2, dtype=np.bool_), 1) == ""


def test_nothing_is_claimed_of_tensors_without_elements() -> None:
    assert said("sub", "2.15.0", ones(2, dtype=np.bool_), ones(2, dtype=np.bool_))
    taken = dtypes.taken("aten::triu", Release("1.2.0"))
    assert taken is not None
    assert said("triu", "1.2.0", ones(0, 3, dtype=np.bool_)) == ""


def test_nothing_is_claimed_of_another_number_of_tensors() -> None:
    taken = dtypes.taken("aten::searchsorted", Release("2.15.0"))
    assert taken is not None
    assert taken.said("bool", (1, 2), 2, frozenset())
    assert taken.said("bool", (1,), 2, frozenset()) is None


def test_a_text_by_name_is_another_question() -> None:
    taken = dtypes.taken("aten::div_", Release("1.8.1"))
    assert taken is not None
    assert taken.said("int32", (2, 2), 2, frozenset())
    assert taken.said("int32", (2, 2), 2, frozenset({"rounding_mode"})) is None


def test_what_is_said_of_a_number_of_a_question_is_not_said_of_the_dtype() -> None:
    for line in dtypes._history().lines:
        if dtypes.NUMBERS in line:
            name = f"aten::{line.partition('(')[0]}"
            break
    else:
        pytest.fail("no number of a question is refused")
    for version in ("1.5.1", "1.8.1", "2.15.0"):
        taken = dtypes.taken(name, Release(version))
        for kind in () if taken is None else taken.refused:
            assert dtypes.NUMBERS not in str(taken and taken.said(kind, (2,), 1, frozenset()))


def test_every_release_was_asked_and_every_question_can_be_read() -> None:
    history = dtypes._history()
    assert len(history.known.releases) == len(halves._history().known.releases)
    keys = {line.partition(" > ")[0] for line in history.lines}
    for key in keys:
        assert isinstance(ast.parse(key, mode="eval").body, ast.Call), key
    assert len({key.partition("(")[0] for key in keys} & {name.removeprefix("aten::") for name in known()}) > 380


def test_the_survey_names_dtypes_as_messages_do() -> None:
    assert {**survey.HALF, **survey.CALLED}.items() <= dtypes.CALLED.items()
    assert set(survey.TAKEN) == set(survey.CALLED)


def test_nothing_is_claimed_of_a_call_into_another_dtype() -> None:
    assert "Integer division of tensors" in said("div", "1.6.0", ones(2), ones(2))
    assert "Integer division of tensors" in said("div", "1.6.0", ones(2), ones(2), out=ones(2))
    assert said("div", "1.6.0", ones(2), ones(2), out=ones(2, dtype=np.float32)) == ""
