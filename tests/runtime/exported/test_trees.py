"""Trees of arguments and results."""

from __future__ import annotations

import json

import pytest

from tests.runtime.exported.documents import LEAF, tree
from torch_compat.errors import Corrupt, Raised, Unsupported
from torch_compat.runtime.exported.trees import flatten, read_tree, unflatten
from torch_compat.runtime.values import NamedTupleValue


def read(value: object) -> object:
    return read_tree(json.dumps([1, value]), "here", {"m.Point": ("x", "y")})


def test_a_value_is_taken_apart_and_put_together_again() -> None:
    result = read(tree("builtins.dict", ["b", "a"], LEAF, tree("builtins.list", None, LEAF, tree("builtins.tuple", None, LEAF))))
    value = {"a": [2, (3,)], "b": 1}
    leaves = list(flatten(result, value))  # type: ignore[arg-type]
    assert leaves == [("['b']", 1), ("['a'][0]", 2), ("['a'][1][0]", 3)]
    assert unflatten(result, iter([1, 2, 3])) == value  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [{}, {"a": [1]}, {"a": 1}, {"a": [1, 2], "b": 1, "c": 2}, 7, None])
def test_a_value_of_another_form_is_an_error_of_the_call(value: object) -> None:
    result = read(tree("builtins.dict", ["b", "a"], LEAF, tree("builtins.list", None, LEAF, tree("builtins.tuple", None, LEAF))))
    with pytest.raises(Raised) as caught:
        list(flatten(result, value))  # type: ignore[arg-type]
    assert caught.value.code in {"KeyError", "IndexError", "TypeError"}


@pytest.mark.parametrize(
    ("context", "name", "fields"),
    [
        ("m.Point", "m.Point", ("x", "y")),
        (json.dumps("m.Point"), "m.Point", ("x", "y")),
        (json.dumps({"class_name": "Point", "fields": ["u", "v"]}), "Point", ("u", "v")),
    ],
)
def test_named_tuples_in_the_three_ways_in_which_releases_write_them(context: str, name: str, fields: tuple[str, ...]) -> None:
    result = read({"type": "collections.namedtuple", "context": context, "children_spec": [LEAF, LEAF]})
    value = unflatten(result, iter([1, 2]))  # type: ignore[arg-type]
    assert isinstance(value, NamedTupleValue)
    assert (tuple(value), value.qualified_name, value.fields) == ((1, 2), name, fields)


@pytest.mark.parametrize(
    "found",
    [
        {"type": "builtins.dict", "context": "[]", "children_spec": [LEAF]},
        {"type": "builtins.dict", "context": "[[1]]", "children_spec": [LEAF]},
        {"type": "builtins.tuple", "children_spec": []},
        {"type": "collections.namedtuple", "context": '"m.Point"', "children_spec": [LEAF]},
        7,
    ],
)
def test_what_is_no_tree_is_refused(found: object) -> None:
    with pytest.raises(Corrupt):
        read(found)


def test_a_tree_that_is_nested_too_deeply_is_refused() -> None:
    result = LEAF
    for _ in range(100):
        result = tree("builtins.tuple", None, result)
    with pytest.raises(Corrupt, match="nested deeper"):
        read(result)
    with pytest.raises(Corrupt):
        read_tree("[" * 100_000, "here", {})


@pytest.mark.parametrize("text", [json.dumps([2, LEAF]), json.dumps([1, tree("transformers.DynamicCache", None, LEAF)])])
def test_what_only_the_writer_knows_is_named(text: str) -> None:
    with pytest.raises(Unsupported):
        read_tree(text, "here", {})
