from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.schemas.pairs import some_type
from torch_compat.operators.schema import SchemaError, parse
from torch_compat.operators.types import BASE, NUMBER, SchemaType, dict_of, list_of, optional_of, same, subtype, union_of


def type_of(text: str) -> SchemaType:
    return parse(f"a::b({text} x) -> ()").arguments[0].type


def test_a_type_is_one_object() -> None:
    assert type_of("(int, Tensor?[])[]") is type_of("(int,  Tensor?[])[]")
    assert type_of("SymInt[]?").fake is type_of("int[]?")
    assert type_of("int") is type_of("DeviceIndex")
    assert repr(type_of("Scalar")) == "<Type Scalar>"


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("int", "Scalar", True),
        ("Scalar", "int", False),
        ("bool", "Scalar", False),
        ("int", "int?", True),
        ("int?", "int", False),
        ("NoneType", "int?", True),
        ("NoneType", "int", False),
        ("int?", "Scalar?", True),
        ("int[]", "Scalar[]", False),
        ("int[]", "Any", True),
        ("Any", "int", False),
        ("(int, float)", "(Scalar, Scalar)", True),
        ("(int, float)", "(Scalar,)".replace(",)", ")"), False),
        ("Dict(str, int)", "Dict(str, Scalar)", False),
        ("Future(int)", "Future(Scalar)", True),
        ("Await(int)", "Await(Scalar)", True),
        ("RRef(int)", "RRef(Scalar)", False),
        ("t", "u", True),
        ("t[]", "u[]", True),
        ("t", "int", False),
        ("int", "Union(int, str)", True),
        ("Union(int, str)", "Union(int, str, bool)", True),
        ("Union(int, str)", "int", False),
        ("Union(int, str)", "Any", True),
        ("Union(int, str)", "Union(int, str)?", True),
        ("Union(int, float, complex)", "Scalar", True),
        ("Scalar", "Union(int, float, complex)", True),
        ("Union(int, float)", "Scalar?", True),
        ("int?", "Union(int, str, NoneType)", True),
        ("int?", "Union(int, str)", False),
        ("NoneType", "Union(int, NoneType, str)", True),
        ("__torch__.torch.classes.a.B", "AnyClassType", True),
        ("__torch__.torch.classes.a.B", "__torch__.torch.classes.a.C", False),
        ("Storage", "Tensor", False),
    ],
)
def test_subtypes(one: str, other: str, expected: bool) -> None:
    assert subtype(type_of(one), type_of(other)) is expected


def test_what_can_not_be_made() -> None:
    with pytest.raises(ValueError, match="values other than None"):
        optional_of(BASE["None"])
    with pytest.raises(ValueError, match="not one whose types are all contained in Any"):
        union_of((NUMBER, BASE["int"], BASE["Any"]))
    with pytest.raises(ValueError, match="a Dict key of type"):
        dict_of(list_of(BASE["int"]), BASE["int"])


@settings(deadline=None)
@given(st.integers(0, 2**40), st.integers(0, 2**40))
def test_laws(one: int, other: int) -> None:
    try:
        first, second = (type_of(some_type(random.Random(number))) for number in (one, other))
    except SchemaError:  # a Union that PyTorch does not make
        return
    assert same(first, first)
    assert subtype(first, first)
    assert subtype(first, BASE["Any"])
    assert first.fake.fake is first.fake
    if same(first, second):
        assert same(second, first)
        assert subtype(first, second)
        assert subtype(second, first)
