from __future__ import annotations

import zipfile
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torch_compat.errors import UsageError
from torch_compat.operators.call_signature import signature_of
from torch_compat.proving.arguments import make_call, prepared
from torch_compat.proving.cases import cases
from torch_compat.proving.programs import archive, forms
from torch_compat.proving.shrink import shrunk
from torch_compat.proving.values import EVERY, Maker, Seeded, tensor_body
from torch_compat.runtime.encoding import Decoder
from torch_compat.testing.strategies import Drawn

DIV = signature_of("aten::div.Tensor(Tensor self, Tensor other) -> Tensor").arguments
FULL = signature_of(
    "aten::full(int[] size, Scalar fill_value, *, ScalarType? dtype=None, Device? device=None, bool? pin_memory=None) -> Tensor"
)


def arrays(args: list[Any]) -> list[np.ndarray[Any, Any]]:
    return [tensor.array for tensor in Decoder().decode({"tuple": args})]


def test_cases_go_through_every_pair_of_dtypes_and_every_kind_of_view() -> None:
    (form,) = forms("aten::div", DIV)
    results = [arrays(case) for case in cases(form)]
    bodies = [[arg["tensor"] for arg in case] for case in cases(form)]
    assert {(a["dtype"], b["dtype"]) for a, b in bodies} == {(a, b) for a in EVERY for b in EVERY}
    assert any(not a.ndim for a, _ in results)
    assert any(a.size == 0 for a, _ in results)
    assert any(not a.flags.c_contiguous for a, _ in results)
    assert any(0 in item["strides"] and item["shape"] for pair in bodies for item in pair), "expanded"
    assert any(item["offset"] for pair in bodies for item in pair)
    assert any(a["storage"] == b["storage"] for a, b in bodies), "the same memory twice"
    floats = np.concatenate([a.reshape(-1).astype(np.float64) for pair in results for a in pair if a.dtype.kind == "f"])
    assert np.isnan(floats).any()
    assert np.isinf(floats).any()
    assert ((floats == 0) & np.signbit(floats)).any()
    assert ((abs(floats) > 0) & (abs(floats) < 1.1754944e-38)).any(), "subnormal"
    whole = np.concatenate([a.reshape(-1) for pair in results for a in pair if a.dtype == np.int64])
    assert {np.iinfo(np.int64).min, np.iinfo(np.int64).max} <= set(whole.tolist())


def test_the_same_seed_gives_the_same_cases() -> None:
    (form,) = forms("aten::div", DIV)
    assert cases(form, "a", 40) == cases(form, "a", 40)
    assert cases(form, "a", 40) != cases(form, "b", 40)


def test_forms_give_numbers_as_ints_and_floats_and_options_given_missing_none_and_refused() -> None:
    calls = [form.call for form in forms("aten::full", FULL.arguments)]
    assert "torch.full(a_size, a_fill_value)" in calls
    assert "torch.full(a_size, a_fill_value, dtype=None, device=None, pin_memory=None)" in calls
    assert 'torch.full(a_size, a_fill_value, dtype=a_dtype, device=torch.device("cpu"), pin_memory=False)' in calls
    assert any('torch.device("cuda")' in call for call in calls)
    kinds = {kind for form in forms("aten::full", FULL.arguments, complex_numbers=True) for name, kind, _ in form.parameters}
    assert {"int", "float", "complex"} <= kinds


def test_what_no_program_can_hold_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot generate a program for the argument g of type Generator"):
        forms("aten::f", signature_of("aten::f(Tensor self, Generator g) -> Tensor").arguments)


def test_an_archive_is_the_same_bytes_each_time_and_states_its_version() -> None:
    (form,) = forms("aten::div", DIV)
    product = archive(form, 3)
    assert product == archive(form, 3)
    with zipfile.ZipFile(BytesIO(product)) as result:
        assert result.read("proof/version") == b"3\n"
        assert b"return torch.div(a_self, a_other)" in result.read("proof/code/__torch__/proof.py")


def test_shrinking_ends_with_one_element_that_still_fails() -> None:
    array = np.arange(24, dtype=np.int64)
    args = [tensor_body(array, "int64", 1, (4, 3), (6, 2), 0), tensor_body(array + 1, "int64", 2, (3,), (1,), 2)]

    def fails(tried: list[list[Any]]) -> list[bool]:
        return [bool((arrays(item)[0] > 5).any()) for item in tried]

    small = arrays(shrunk(args, fails))
    assert [item.size for item in small] == [1, 1]
    assert small[0].item() == 7


SCHEMA = prepared(
    {
        "name": "aten::add", "overload": "Tensor", "returns": ["Tensor"], "variadic": False,
        "arguments": [
            {"name": "self", "real": "Tensor", "default": False, "keyword": False, "out": False},
            {"name": "other", "real": "Tensor", "default": False, "keyword": False, "out": False},
            {"name": "alpha", "real": "number", "default": True, "keyword": True, "out": False},
        ],
    },
    {"tensor"},
)  # fmt: skip


@given(st.data())
def test_calls_are_a_strategy_of_hypothesis(data: Any) -> None:
    call = make_call(Maker(Drawn(data.draw), "add", plain=False), SCHEMA)
    assert len(call["args"]) == 2
    Decoder().decode({"tuple": call["args"]})


def test_calls_from_a_seed_are_the_same_each_time() -> None:
    item, same, other = (make_call(Maker(Seeded(seed), "add", plain=False), SCHEMA) for seed in (1, 1, 2))
    assert item == same
    assert item != other
