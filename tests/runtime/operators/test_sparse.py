"""Sparse tensors created by programs, with the results of 1.6.0, 1.12.1 and 2.15.0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.runtime.operators.tables import t
from torch_compat.errors import Raised, Unsupported
from torch_compat.releases.release import Release
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import OpaqueTensor, Tensor

AT, VALUES = t([[0, 2, 0], [1, 0, 1]]), t([1.5, -2.0, 0.25])


def call(name: str, *args: Any, at: str = "2.15.0") -> Any:
    return resolve(f"aten::{name}", Release(at))(*args)


def sparse(at: str = "2.15.0", size: tuple[int, int] = (3, 3)) -> OpaqueTensor:
    result: OpaqueTensor = call("sparse_coo_tensor", AT, VALUES, list(size), at=at)
    return result


def test_values_at_one_place_are_added_when_it_is_coalesced() -> None:
    result = sparse()
    assert not call("is_coalesced", result)
    for name in ("indices", "values"):
        with pytest.raises(Raised, match="uncoalesced"):
            call(name, result)
    item = call("coalesce", result)
    assert call("indices", item).array.tolist() == [[0, 2], [1, 0]]
    assert call("values", item).array.tolist() == [1.75, -2.0]
    assert call("is_coalesced", item)
    assert call("coalesce", item) is item
    assert call("values", item) is not call("values", item)
    assert np.shares_memory(call("values", item).array, call("_values", item).array)
    with pytest.raises(Raised, match="Strided"):
        call("coalesce", VALUES)


def test_it_is_multiplied_added_and_transposed() -> None:
    result = sparse()
    assert call("mm", result, t([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])).array.tolist() == [[5.25, 7.0], [0.0, 0.0], [-2.0, -4.0]]
    with pytest.raises(Raised, match="Expected dim 0 size 3, got 2"):
        call("mm", result, t([[1.0], [3.0]]))
    both = call("add", result, call("coalesce", result))
    assert call("to_dense", both).array.tolist() == [[0.0, 3.5, 0.0], [0.0, 0.0, 0.0], [-4.0, 0.0, 0.0]]
    assert not call("is_coalesced", both)
    assert call("to_dense", call("t", result)).array.tolist() == [[0.0, 0.0, -2.0], [1.75, 0.0, 0.0], [0.0, 0.0, 0.0]]
    assert (call("sparse_dim", result), call("dense_dim", result), call("_nnz", result)) == (2, 0, 3)


@pytest.mark.parametrize(("at", "strides"), [("1.6.0", (1, 2)), ("1.12.1", (2, 1)), ("2.15.0", (2, 1))])
def test_what_is_not_zero_makes_one(at: str, strides: tuple[int, int]) -> None:
    result = call("to_sparse", t([[0.0, 2.0], [0.0, -1.0]]), at=at)
    assert call("is_coalesced", result, at=at)
    assert call("indices", result, at=at).array.tolist() == [[0, 1], [1, 1]]
    assert call("indices", result, at=at).strides == strides
    assert call("is_coalesced", call("add", result, result, at=at), at=at)
    assert not call("is_coalesced", call("t", result, at=at), at=at)
    assert call("values", call("to_sparse", t([[0.0, 2.0], [0.0, 0.0]]), 1)).array.tolist() == [[0.0, 2.0]]


def test_places_beyond_the_size_are_refused_up_to_1_13() -> None:
    with pytest.raises(Raised, match="size is inconsistent"):
        sparse("1.13.1", (2, 2))
    result = sparse("2.0.1", (2, 2))  # one place behind the memory of the result, in its last block
    assert call("to_dense", result, at="2.0.1").array.tolist() == [[0.0, 1.75], [0.0, 0.0]]
    far = call("sparse_coo_tensor", t([[0], [99]]), t([1.0]), [2, 2])
    for name, args in (("to_dense", (far,)), ("mm", (far, Tensor(np.ones((2, 1), np.float32))))):
        with pytest.raises(Unsupported, match="indices out of bounds"):
            call(name, *args)


MERGED = t([[0, 1, 1], [2, 0, 0]]), t([1.0, 2.0, 3.0])
DENSE = t([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])


def parts(value: OpaqueTensor) -> tuple[Any, ...]:
    return value.parts["indices"].tolist(), value.parts["values"].tolist(), value.parts["coalesced"]


@pytest.mark.parametrize("at", ["1.6.0", "2.15.0"])
def test_indices_of_two_are_merged(at: str) -> None:
    a = call("sparse_coo_tensor", *MERGED, [2, 3], at=at)
    b = call("sparse_coo_tensor", t([[1], [2]]), t([5.0]), [2, 3], at=at)
    twice = call("add", a, a, at=at)
    assert parts(twice) == ([[0, 1, 1], [2, 0, 0]], [2.0, 4.0, 6.0], False)
    assert Tensor(twice.parts["indices"]).strides == (6, 1)
    assert parts(call("sub", a, b, at=at)) == ([[0, 1, 1, 1], [2, 0, 0, 2]], [1.0, 2.0, 3.0, -5.0], False)
    both = call("add", call("coalesce", a, at=at), call("coalesce", b, at=at), at=at)
    assert parts(both) == ([[0, 1, 1], [2, 0, 2]], [1.0, 5.0, 5.0], True)
    assert Tensor(call("coalesce", a, at=at).parts["indices"]).strides == (3, 1)
    assert np.shares_memory(a.parts["values"], MERGED[1].array)


@pytest.mark.parametrize("at", ["1.6.0", "2.15.0"])
def test_strided_and_sparse_tensors_are_added_in_this_order_only(at: str) -> None:
    a = call("sparse_coo_tensor", *MERGED, [2, 3], at=at)
    assert call("add", DENSE, a, at=at).array.tolist() == [[0.0, 1.0, 3.0], [8.0, 4.0, 5.0]]
    assert call("add", DENSE, a, 2, at=at).array.tolist() == [[0.0, 1.0, 4.0], [13.0, 4.0, 5.0]]
    assert call("sub", DENSE, a, at=at).array.tolist() == [[0.0, 1.0, 1.0], [-2.0, 4.0, 5.0]]
    assert call("add", t([[0, 0, 0], [0, 0, 0]]), a, at=at).array.dtype == np.float32
    for name, args in (("add", (a, DENSE)), ("add", (a, 1)), ("add", (t([[1.0]]), a))):
        with pytest.raises(Raised):
            call(name, *args, at=at)


def test_it_is_scaled_negated_and_summed() -> None:
    a = call("sparse_coo_tensor", *MERGED, [2, 3])
    assert parts(call("mul", a, 2)) == ([[0, 1, 1], [2, 0, 0]], [2.0, 4.0, 6.0], False)
    assert parts(call("div", call("coalesce", a), 2)) == ([[0, 1], [2, 0]], [0.5, 2.5], True)
    assert parts(call("neg", a, at="1.7.1"))[1] == [-1.0, -2.0, -3.0]
    assert parts(call("mul", a, t(2.0), at="1.8.1"))[1] == [2.0, 4.0, 6.0]
    for name, args, at in (("mul", (a, 2), "1.8.1"), ("neg", (a,), "1.6.0"), ("sum", (a,), "1.13.1")):
        with pytest.raises(Raised):
            call(name, *args, at=at)
    assert call("sum", a, at="2.0.1").array.tolist() == 6.0
    assert call("_sparse_sum", a, at="1.6.0").array.tolist() == 6.0
    assert parts(call("_sparse_sum", a, [0])) == ([[0, 2]], [5.0, 1.0], True)
    assert parts(call("_sparse_sum", a, [1])) == ([[0, 1]], [1.0, 5.0], True)
    assert call("_sparse_mm", a, t([[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]])).array.tolist() == [[2.0, 5.0], [0.0, 15.0]]


@pytest.mark.parametrize(
    "args",
    [
        (t([[0], [1]], "int32"), t([1.0]), [2, 2]),
        (t([[0], [1]]), t([1.0, 2.0]), [2, 2]),
        (t([[0, 1], [1, 0]]), t(1.0), [2, 2]),
        (t([0]), t([1.0]), [2]),
    ],
)
def test_parts_that_do_not_match_are_refused(args: tuple[Any, ...]) -> None:
    for at in ("1.6.0", "2.15.0"):
        with pytest.raises(Raised):
            call("sparse_coo_tensor", *args, at=at)


def test_numbers_are_one_value() -> None:
    assert call("to_dense", call("sparse_coo_tensor", t([[0], [1]]), t(1.0), [2, 2])).array.tolist() == [[0.0, 1.0], [0.0, 0.0]]
    assert parts(call("to_sparse", t(2.0))) == ([], [2.0], True)


def test_quantized_tensors_are_not_added() -> None:
    coded = call("quantize_per_tensor", t([[0.0, 1.5], [-2.0, 3.0]]), 0.1, 10, 13)
    assert call("int_repr", call("t", coded)).array.tolist() == [[10, 0], [25, 40]]
    for name, args in (("add", (coded, 1)), ("mul", (coded, 2)), ("sum", (coded,))):
        with pytest.raises(Raised):
            call(name, *args)


@pytest.mark.parametrize(("at", "coalesced"), [("1.12.1", [False, False, False]), ("1.13.1", [True, True, False])])
def test_no_or_one_value_is_coalesced_since_1_13(at: str, coalesced: list[bool]) -> None:
    tensors = [
        call("sparse_coo_tensor", Tensor(np.zeros((2, n), np.int64)), Tensor(np.ones(n, np.float32)), [2, 2], at=at)
        for n in range(3)
    ]
    assert [call("is_coalesced", tensor, at=at) for tensor in tensors] == coalesced
    assert [call("is_coalesced", call("mul", tensor, 2, at=at), at=at) for tensor in tensors] == coalesced


@pytest.mark.parametrize(("at", "coalesced"), [("1.6.0", False), ("1.12.1", False), ("1.13.1", True)])
def test_a_strided_tensor_of_zeros_is_coalesced_since_1_13(at: str, coalesced: bool) -> None:
    for zeros in (
        np.zeros((2, 3), np.float32),
        np.zeros((2, 3), np.bool_),
        np.zeros((), np.float32),
        np.zeros((0, 3), np.float32),
    ):
        assert call("is_coalesced", call("to_sparse", Tensor(zeros), at=at), at=at) is coalesced
    assert call("is_coalesced", call("to_sparse", Tensor(np.ones((1, 1), np.float32)), at=at), at=at) is True


@pytest.mark.parametrize("at", ["1.12.1", "1.13.1"])
def test_the_parts_of_a_tensor_without_values_keep_their_strides(at: str) -> None:
    indices = Tensor(np.array([[0, 1, 0], [2, 0, 2]])[:, :0])
    tensor = call("sparse_coo_tensor", indices, Tensor(np.zeros(0, np.float32)), [2, 3], at=at)
    result = call("indices", call("coalesce", tensor, at=at), at=at)
    assert [step // 8 for step in result.array.strides] == [3, 1]
