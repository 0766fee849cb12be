from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torch_compat.errors import Raised, Refused, UsageError
from torch_compat.releases.release import Release
from torch_compat.runtime import dtypes
from torch_compat.runtime.encoding import Decoder, Encoder
from torch_compat.runtime.hash_order import flat_hash_map, unordered_map
from torch_compat.runtime.horizons import horizon
from torch_compat.runtime.language.types import convert, instance_of, parse_type
from torch_compat.runtime.registry import NEWEST
from torch_compat.runtime.string_conversion import shown
from torch_compat.runtime.tensor import Tensor, owner
from torch_compat.runtime.values import ScriptObject, Steps, text_in, text_out


@given(st.text())
def test_texts_come_back_from_bytes(text: str) -> None:
    assert text_out(text_in(text)) == text
    assert len(text_in(text)) == len(text.encode())


def test_views_share_their_owner_and_know_their_place() -> None:
    base = Tensor(np.arange(12.0).reshape(3, 4))
    view = Tensor(base.array.T[1:, ::2])
    assert view.storage is base.storage is owner(base.array)
    assert view.storage_offset == 1
    assert view.strides == (1, 8)
    again = view.as_strided((2, 2), (4, 1), 5)
    assert again.array.tolist() == [[5, 6], [9, 10]]
    assert again.storage is base.storage
    again.array[...] = 0
    assert base.array[1, 1] == 0


@pytest.mark.parametrize("order", ["C", "F"])
def test_as_strided_reads_memory_in_its_own_order(order: Any) -> None:
    tensor = Tensor(np.array([[1, 2], [3, 4]], order=order))
    assert tensor.as_strided((4,), (1,), 0).array.tolist() == ([1, 2, 3, 4] if order == "C" else [1, 3, 2, 4])


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [("uint8", "int8", "int16"), ("int64", "float16", "float16"), ("float16", "bfloat16", "float32"), ("bool", "uint8", "uint8"),
     ("float64", "complex64", "complex128"), ("int32", "complex64", "complex64"), ("float32", "float64", "float64")],
)  # fmt: skip
def test_promotion(one: str, other: str, both: str) -> None:
    a, b = dtypes.DTYPES[one], dtypes.DTYPES[other]
    assert dtypes.promote(a, b) is dtypes.promote(b, a) is dtypes.DTYPES[both]


def test_lower_groups_count_only_with_a_higher_category() -> None:
    dims, zero = Tensor(np.zeros(2, np.float32)), Tensor(np.zeros((), np.float64))
    assert dtypes.result_type([dims, zero, 2]) is dtypes.FLOAT32
    assert dtypes.result_type([Tensor(np.zeros(2, np.int8)), 2]) is dtypes.INT8
    assert dtypes.result_type([Tensor(np.zeros(2, np.int8)), 2.0]) is dtypes.FLOAT32
    assert dtypes.result_type([Tensor(np.zeros((), np.int8)), 1j]) is dtypes.COMPLEX64
    assert dtypes.result_type([1, 2.0]) is dtypes.FLOAT32


def test_every_dtype_has_its_number_once() -> None:
    assert len({dtype.code for dtype in dtypes.DTYPES.values()}) == len(dtypes.DTYPES)
    assert dtypes.as_dtype(6) is dtypes.FLOAT32
    assert dtypes.named("torch.half") is dtypes.FLOAT16
    with pytest.raises(Raised):
        dtypes.as_dtype(999)


def test_horizons() -> None:
    assert horizon("reference").release == NEWEST
    assert horizon("reference@1.5.1").release == horizon("1.5.1").release == Release("1.5.1")
    assert horizon("reference@2020-06-24").release == Release("1.5.1")
    assert horizon("reference@2018-12-07").release == Release("1.0.0")
    assert horizon("reference@2.16.0.dev20261120+cpu").release < Release("2.16.0") < NEWEST
    for wrong in ("reference@x", "reference@2016-01-01", "reference@2020-02-31", "torch-9"):
        with pytest.raises(UsageError):
            horizon(wrong)


def test_a_horizon_reads_the_formats_of_its_time() -> None:
    assert horizon("1.5.1").reads("file-format", 3)
    assert not horizon("1.5.1").reads("file-format", 4)
    assert not horizon("1.4.0").reads("file-format", 3)
    assert horizon("reference").reads("file-format", 10)
    assert not horizon("reference").reads("file-format", 77)


@pytest.mark.parametrize(
    ("text", "value", "fits"),
    [("int", 1, True), ("int", True, False), ("float", 1, False), ("Optional[int]", None, True), ("List[int]", [1, 2], True),
     ("List[int]", [1, "x"], False), ("List[str]", [], True), ("Dict[str, int]", {"a": 1}, True), ("Dict[str, int]", {1: 1}, False),
     ("Tuple[int, str]", (1, "x"), True), ("Tuple[int]", (1, 2), False), ("Union[int, str]", "x", True), ("Any", object(), True),
     ("number", 1.5, True), ("NoneType", None, True), ("Tensor", 1, False), ("__torch__.m.C", 1, False)],
)  # fmt: skip
def test_types_of_values(text: str, value: Any, fits: bool) -> None:
    assert instance_of(value, parse_type(text)) is fits


@pytest.mark.parametrize("text", ["List[", "1 + 1", "List[int][0]", "f(x)", "", "List[" * 80 + "int" + "]" * 80, "\x00"])
def test_what_is_no_type_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        parse_type(text)


def test_numbers_of_more_than_64_bits_do_not_come_in() -> None:
    with pytest.raises(Raised):
        convert(1 << 63, parse_type("int"), lambda _: None)
    assert convert(-(1 << 63), parse_type("int"), lambda _: None) == -(1 << 63)


@given(
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-(2**63), 2**63 - 1).filter(lambda step: step != 0),
    st.integers(0, 50),
)
def test_a_range_pays_for_its_steps(start: int, stop: int, step: int, limit: int) -> None:
    wanted = range(start, stop, step)
    steps = Steps(limit)
    if len(wanted[: limit + 1]) > limit:
        with pytest.raises(Raised) as caught:
            list(steps.rounds(start, stop, step))
        assert caught.value.code == "step-limit"
    else:
        assert list(steps.rounds(start, stop, step)) == list(wanted)
        assert steps.left == limit - len(wanted)


def test_the_order_of_hash_tables_is_that_of_the_releases() -> None:
    """As 1.1.0 and 1.2.0 list them; recorded in their fixtures, too."""
    assert unordered_map(["a", "m", "zeta"]) == ["zeta", "m", "a"]
    assert unordered_map([-7, 0, 7]) == [7, 0, -7]
    assert flat_hash_map(["a", "m", "zeta"]) == ["zeta", "m", "a"]
    assert flat_hash_map([-7, 0, 7]) == [0, 7, -7]


@given(st.lists(st.text() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False), unique=True, max_size=60))
def test_hash_tables_lose_and_invent_nothing(keys: list[Any]) -> None:
    given_keys = list(dict.fromkeys(text_in(key) if isinstance(key, str) else key for key in keys))
    for order in (unordered_map, flat_hash_map):
        assert sorted(order(given_keys), key=repr) == sorted(given_keys, key=repr)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.complex_numbers(allow_nan=False),
    lambda inner: (
        st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple) | st.dictionaries(st.text(), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(VALUES)
def test_values_come_back_from_json(value: Any) -> None:
    assert Decoder().decode(Encoder().encode(value)) == value


@pytest.mark.parametrize("name", sorted(name for name, dtype in dtypes.DTYPES.items() if dtype.numpy is not None))
def test_tensors_come_back_from_json_and_still_share(name: str) -> None:
    base = np.zeros(6, dtypes.DTYPES[name].array)
    base[...] = np.arange(6).astype(base.dtype)
    pair = (Tensor(base.reshape(2, 3).T), Tensor(base[2:4], requires_grad=dtypes.DTYPES[name].category > 1), Tensor(base[:0]))
    first, second, empty = Decoder().decode(Encoder().encode(pair))
    assert first.dtype.name == name
    assert first.array.tobytes() == pair[0].array.tobytes()
    assert (first.strides, second.storage_offset, empty.shape) == ((1, 3), 2, (0,))
    assert first.storage is second.storage
    assert second.requires_grad is pair[1].requires_grad


def test_plain_data_is_taken_as_elements() -> None:
    tensor = Decoder().decode({"tensor": {"dtype": "float32", "shape": [2], "data": [1, "-inf"]}})
    assert tensor.array.tolist() == [1, -np.inf]


@pytest.mark.parametrize(("shape", "strides"), [((0, 3), (3, 1)), ((2, 0), (1, 1)), ((0, 2, 3), (6, 3, 1)), ((0,), (1,))])
def test_a_tensor_without_elements_has_the_strides_of_a_contiguous_one(shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    ones = np.zeros(shape, np.float32)
    assert Tensor(ones).strides == Tensor(ones + 1).strides == strides


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (3 - 4j, "3.-4.j"), (0.5 - 0.25j, "0.5-0.25j"), (complex(-0.0, -0.0), "0.+0.j"), (complex("nan+infj"), "nan+infj"),
        (complex(-math.inf, math.nan), "-inf-nanj"), (complex(1e20, 1e-7), "1e+20+9.9999999999999995e-08j"), ([1j], "[0.+1.j]"),
    ],
)  # fmt: skip
def test_complex_numbers_in_texts(value: Any, written: str) -> None:
    """As 1.9.1, 1.10.2, 1.12.1, 2.0.1 and 2.15.0 wrote them."""
    assert shown(value) == written


def test_containers_of_modules_are_indexed_by_the_names_of_their_attributes() -> None:
    """2.1.2 and 2.15.0: ``layers[3]`` of a ModuleList of three, and ``layers[-1]`` of any, "does not have a field with name"."""
    layers: Any = type("Layers", (ScriptObject,), {"qualified_name": "__torch__.Layers"})()
    layers.a_0, layers.a_plus = "first", "second"
    assert (layers[0], layers["plus"]) == ("first", "second")
    for key in (1, -1, "minus", "__class__"):
        with pytest.raises(Raised, match="does not have a field with name") as error:
            layers[key]
        assert error.value.code == "RuntimeError"
