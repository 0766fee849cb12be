"""Trees of arguments and results."""

from __future__ import annotations

import json
from collections import OrderedDict, deque

import pytest

from tests.runtime.exported.documents import LEAF, tree
from torch_compat.errors import Corrupt, Raised, ReaderError, Unsupported
from torch_compat.readers.wire import Reading, Writing
from torch_compat.runtime.encoding import Encoder
from torch_compat.runtime.exchange import Exchange
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


DEFAULTS = {"default_factory_module": "builtins", "default_factory_name": "list", "dict_context": ["b", "a"]}


@pytest.mark.parametrize(
    ("name", "context", "state", "given"),
    [
        ("collections.OrderedDict", ["b", "a"], {"dict": [["b", 1], ["a", 2]]}, OrderedDict(b=1, a=2)),
        ("collections.defaultdict", DEFAULTS, {"dict": [["b", 1], ["a", 2]]}, {"b": 1, "a": 2}),
        ("torch.fx.immutable_collections.immutable_dict", ["b", "a"], {"dict": [["b", 1], ["a", 2]]}, {"b": 1, "a": 2}),
        ("torch.fx.immutable_collections.immutable_list", None, [1, 2], [1, 2]),
        ("collections.deque", None, [{"tuple": []}, None, [1, 2], None], deque([1, 2])),
    ],
)
def test_results_have_the_class_that_the_program_states(name: str, context: object, state: object, given: object) -> None:
    """As in 2.13.0, which wrote programs with these results, and 2.9.1 and 2.15.0, which read them."""
    value = unflatten(read(tree(name, context, LEAF, LEAF)), iter([1, 2]))  # type: ignore[arg-type]
    assert Encoder().encode(value) == {"object": {"type": name, "state": state}}
    in_process = Exchange().give(value)
    apart = Reading([], memoryview(b""), lambda *_: None).get(json.loads(json.dumps(Writing().put(value))))
    for result in (in_process, apart):
        assert (type(result), result) == (type(given), given)


@pytest.mark.parametrize("value", [{"k": [1, {"d": []}]}, {"k": ["collections.deque", {"t": []}]}, {"k": ["collections.deque"]}])
def test_a_container_of_another_class_that_is_none_is_an_invalid_message(value: object) -> None:
    with pytest.raises(ReaderError):
        Reading([], memoryview(b""), lambda *_: None).get(value)


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
