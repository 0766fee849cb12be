"""16-bit floats, which releases reject on the CPU: how the reference reader uses the records."""

from __future__ import annotations

import ast
import importlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from torch_compat.errors import Raised
from torch_compat.operators import halves
from torch_compat.releases.release import Release
from torch_compat.runtime.dtypes import BFLOAT16
from torch_compat.runtime.encoding import Decoder
from torch_compat.runtime.registry import known, resolve
from torch_compat.runtime.tensor import Tensor
from torch_compat.values.compare import NOT_ASKED, compare

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


survey: Any = importlib.import_module("torch_compat.inside.survey")  # has no types, since it runs inside old releases


def ones(*shape: int, dtype: DTypeLike = np.float16) -> Tensor:
    return Tensor(np.ones(shape, dtype))


def said(name: str, horizon: str, *args: Any) -> str:
    """What an operator raises; "" where it gives a value."""
    try:
        resolve(f"aten::{name}", Release(horizon))(*args)
    except Raised as error:
        return error.message
    return ""


def test_an_operator_refuses_what_the_release_of_the_horizon_refuses() -> None:
    message = "\"LayerNormKernelImpl\" not implemented for 'Half'"
    assert said("layer_norm", "2.1.2", ones(2, 3), [3]) == message
    assert said("layer_norm", "2.15.0", ones(2, 3), [3]) == ""
    assert said("layer_norm", "2.1.2", ones(2, 3, dtype=np.float32), [3]) == ""
    assert said("layer_norm", "2.1.2", ones(2, 3, dtype=BFLOAT16.array), [3]) == ""
    assert said("layer_norm", "1.9.1", ones(2, 3, dtype=BFLOAT16.array), [3]) == message.replace("Half", "BFloat16")


def test_the_message_goes_by_the_numbers_of_dimensions() -> None:
    assert said("matmul", "1.5.1", ones(3), ones(3)) != said("matmul", "1.5.1", ones(2, 3), ones(3, 2)) != ""


def test_tensors_without_elements_are_asked_for_by_themselves() -> None:
    assert said("layer_norm", "1.12.1", ones(0, 3), [3]) == ""
    assert said("layer_norm", "1.12.1", ones(2, 3), [3])


def test_an_operator_in_place_leaves_what_it_refuses_as_it_was() -> None:
    given = Tensor(np.full((2, 3), -1, np.float16))
    assert said("sigmoid_", "1.5.1", given)
    assert (given.array == -1).all()


def test_what_is_wrong_besides_is_said_first() -> None:
    assert "LayerNormKernelImpl" not in said("layer_norm", "2.1.2", ones(2, 3), [4])


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_nothing_is_claimed_of_several_dtypes(kind: str) -> None:
    assert said("add", "1.5.1", ones(2), ones(2, dtype=kind)) == ""


def test_every_question_names_what_the_reader_can_tell_the_dimensions_of() -> None:
    assert {name: len(shape) for name, shape in survey.SHAPES.items()} == halves.RANKS
    for question in survey.halves_asked():
        assert isinstance(ast.parse(question, mode="eval").body, ast.Call), question


def test_most_operators_of_the_reader_that_compute_with_floats_are_asked() -> None:
    asked = {question.partition("(")[0] for question in survey.halves_asked()}
    assert len(asked & {name.removeprefix("aten::") for name in known()}) > 380


def test_the_releases_that_compute_an_operator_are_told() -> None:
    result = halves.computed_by("aten::layer_norm", "float16")
    assert result is not None
    releases, bits = result
    assert bits & releases.bit("2.15.0")
    assert not bits & releases.bit("2.1.2")
    assert halves.computed_by("aten::clone", "float16") is None


@pytest.mark.parametrize(
    ("horizon", "ranks", "kernel"),
    [
        ("1.6.0", (3, 2), ""),
        ("1.6.0", (3, 1), ""),
        ("1.6.0", (3, 3), "bmm"),
        ("1.6.0", (4, 4), "bmm"),
        ("1.12.1", (3, 2), ""),
    ],
)
def test_a_batch_times_a_matrix_is_one_product_of_matrices(horizon: str, ranks: tuple[int, int], kernel: str) -> None:
    """Recipe bfloat16_products: up to 1.7 batches of bfloat16 are refused, and matrices are not."""
    result = halves.said("aten::matmul", "bfloat16", ranks, 2, Release(horizon))
    assert (result == halves.COMPUTES) is not bool(kernel)
    assert kernel in str(result)


def test_a_batch_times_a_vector_is_a_matrix_times_a_vector_from_1_12_on() -> None:
    assert "addmm" in str(halves.said("aten::matmul", "float16", (3, 1), 2, Release("1.6.0")))
    assert "addmv" in str(halves.said("aten::matmul", "float16", (3, 1), 2, Release("1.12.1")))


@pytest.mark.parametrize(("horizon", "computes"), [("1.5.1", False), ("1.6.0", True), ("1.8.1", True)])
def test_max_of_two_tensors_is_not_taken_for_max_of_one(horizon: str, computes: bool) -> None:
    """Two vectors were not asked: they are taken for two matrices, not for one vector, which 1.8 still refuses."""
    assert (halves.said("aten::max", "float16", (1, 1), 2, Release(horizon)) == halves.COMPUTES) is computes
    assert halves.said("aten::max", "float16", (1,), 1, Release("1.8.1")) != halves.COMPUTES


@pytest.mark.parametrize(("release", "known"), [("1.1.0", False), ("1.2.0", True), ("2.15.0", True)])
def test_inputs_of_a_dtype_that_a_release_does_not_have_cannot_be_made(release: str, known: bool) -> None:
    body = {"tensor": {"dtype": "bfloat16", "shape": [1], "strides": [1], "bytes": "gD8="}}
    if known:
        assert Decoder(Release(release)).decode(body).shape == (1,)
        return
    with pytest.raises(Raised, match=r"this release has no dtype torch\.bfloat16") as error:
        Decoder(Release(release)).decode(body)
    assert error.value.code == NOT_ASKED
    assert Decoder().decode(body).shape == (1,)


def test_who_says_that_inputs_cannot_be_made_agrees_with_who_says_the_same() -> None:
    def result(kind: str) -> dict[str, Any]:
        turn = {"error": {"stage": "call", "type": kind, "message": "no"}}
        return {"calls": [{"first": turn, "second": turn}], "state": None, "state_after": None}

    assert compare(result(NOT_ASKED), result(NOT_ASKED)).result == "same"
    assert compare(result("E"), result(NOT_ASKED)).result == "raised"
    assert compare(result(NOT_ASKED), result("E")).result == "same"  # as any error for another, where they are not compared


@pytest.mark.parametrize(("horizon", "computes"), [("1.7.1", False), ("1.8.1", True)])
def test_a_mask_in_front_does_not_hide_floats_of_16_bits(horizon: str, computes: bool) -> None:
    item = Tensor(np.array([1.0, 2.0], np.float16))
    mask = Tensor(np.array([True, False]))
    where = resolve("aten::where", Release(horizon))
    if computes:
        assert where(mask, item, item).array.tolist() == [1.0, 2.0]
    else:
        with pytest.raises(Raised, match="not implemented for 'Half'"):
            where(mask, item, item)


def test_dropout_that_draws_nothing_takes_every_type() -> None:
    """As 1.6.0, 1.12.1 and 2.6.0 gave it."""
    for release in ("1.6.0", "1.12.1", "2.15.0"):
        for p, train, expected in ((0.5, False, [3, 7]), (0.0, True, [3, 7]), (1.0, True, [0, 0])):
            for name in ("alpha_dropout", "alpha_dropout_", "feature_dropout"):
                given = Tensor(np.array([[3, 7]], np.int8))
                assert resolve(f"aten::{name}", Release(release))(given, p, train).array.tolist() == [expected]


def test_one_tensor_bounds_every_type_since_1_12() -> None:
    half = Tensor(np.array([1.0, 3.0], np.float16))
    bound = Tensor(np.array([2.0, 2.0], np.float16))
    assert resolve("aten::clamp_", Release("1.13.1"))(half, None, bound).array.tolist() == [1.0, 2.0]
    truths, bounds = Tensor(np.array([True, False])), Tensor(np.array([False, False]))
    assert resolve("aten::clamp_min_", Release("2.15.0"))(truths, bounds).array.tolist() == [True, False]
    with pytest.raises(Raised, match="can't be cast"):
        resolve("aten::clamp_", Release("2.15.0"))(truths, 0, 2)


def test_the_only_element_is_copied_whichever_type_it_has() -> None:
    """As 1.8.1 gave it; two elements are refused."""
    assert resolve("aten::mode", Release("1.8.1"))(Tensor(np.array(True)), -1, True)[0].array.tolist() is True
    with pytest.raises(Raised, match="not supported on CPUType for Bool"):
        resolve("aten::mode", Release("1.8.1"))(Tensor(np.array([True, True])), -1)
