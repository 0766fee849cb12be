"""The neutral form: the checks accept the grammar in its docstring, and all encoders produce it."""

from __future__ import annotations

import ast
import base64
import copy
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torch_compat.runtime.encoding import Decoder, Encoder
from torch_compat.values import form
from torch_compat.values.dtypes import DTYPES
from torch_compat.values.form import KINDS, MOST_DIMENSIONS, TAKEN, check_calls, check_result, last_element, number

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]

# --------------------------------------------------------------------------------------------------------------- the grammar

Node = tuple[Any, ...]


def read_grammar(text: str) -> dict[str, Node]:
    """The productions of the docstring: ``("or", ...)``, ``("object", [(key, optional, node)])``, ``("array", ...)``, ..."""
    block = re.search(r"::\n\n((?:    .*\n|\n)+)", text)
    assert block is not None
    tokens = re.findall(r'"[^"]*"|\.\.\.|[][{}|,:?=]|\w+', block[1])
    productions: dict[str, Node] = {}
    at = 0

    def take(wanted: str) -> bool:
        nonlocal at
        if tokens[at : at + 1] == [wanted]:
            at += 1
            return True
        return False

    def either() -> Node:
        parts = [term()]
        while take("|"):
            parts.append(term())
        return parts[0] if len(parts) == 1 else ("or", *parts)

    def term() -> Node:
        nonlocal at
        if take("["):
            items = [either()]
            while take(","):
                items.append(either())
            many = take("...")
            assert take("]")
            return ("many", items[0]) if many else ("array", *items)
        if take("{"):
            keys = []
            while True:
                key = tokens[at]
                at += 1
                optional = take("?")
                assert take(":")
                keys.append((key.strip('"') if key.startswith('"') else None, optional, either()))
                take("...")
                if not take(","):
                    break
            assert take("}")
            return ("object", *keys)
        at += 1
        token = tokens[at - 1]
        return ("is", token.strip('"')) if token.startswith('"') else ("name", token)

    while at < len(tokens):
        name = tokens[at]
        at += 1
        assert take("="), tokens[at - 3 : at + 3]
        productions[name] = either()
    return productions


GRAMMAR = read_grammar(form.__doc__ or "")
CONSTANTS = {"null": None, "true": True, "false": False}
CLASSES = {"INTEGER": int, "FRACTION": float, "TEXT": str, "BASE64": str, "NAME": str}


def derives(node: Node, value: Any) -> bool:
    """Whether a value can be derived from a part of the grammar."""
    kind, *parts = node
    if kind == "or":
        return any(derives(part, value) for part in parts)
    if kind == "is":
        return bool(value.__class__ is str and value == parts[0])
    if kind == "many":
        return value.__class__ is list and all(derives(parts[0], item) for item in value)
    if kind == "array":
        return (
            value.__class__ is list
            and len(value) == len(parts)
            and all(derives(part, item) for part, item in zip(parts, value, strict=True))
        )
    if kind == "object":
        if value.__class__ is not dict:
            return False
        if parts[0][0] is None:
            return all(derives(parts[0][2], item) for item in value.values())
        known = {key: inner for key, _, inner in parts}
        required = {key for key, optional, _ in parts if not optional}
        return required <= value.keys() <= known.keys() and all(derives(known[key], item) for key, item in value.items())
    (name,) = parts
    if name in CONSTANTS:
        return bool(value is CONSTANTS[name])
    if name in CLASSES:
        return value.__class__ is CLASSES[name]
    return derives(GRAMMAR[name], value)


TERMINALS: dict[str, st.SearchStrategy[Any]] = {
    "INTEGER": st.integers(-(1 << 63), (1 << 63) - 1),
    "FRACTION": st.floats(allow_nan=False, allow_infinity=False),
    "TEXT": st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    "NAME": st.sampled_from(["forward", "other"]),
}
SIZED = [name for name, row in DTYPES.items() if row.size]


@st.composite
def tensors(draw: st.DrawFn) -> dict[str, Any]:
    """What the grammar derives of a tensor, with numbers that fit each other."""
    (_, *keys) = GRAMMAR["tensor"]
    body: dict[str, Any] = {}
    for key, optional, node in keys:
        if not optional or draw(st.booleans()):
            body[key] = draw(made(node)) if key in {"requires_grad", "class"} else None
    shape = draw(st.lists(st.integers(0, 3), max_size=3))
    body |= {"dtype": draw(st.sampled_from(SIZED)), "shape": shape, "strides": [draw(st.integers(0, 9)) for _ in shape]}
    body["bytes"] = base64.b64encode(bytes(math.prod(shape) * DTYPES[body["dtype"]].size)).decode("ascii")
    for key in body.keys() & {"storage", "offset"}:
        body[key] = draw(st.integers(0, 9))
    assert None not in body.values()
    return body


def made(node: Node) -> st.SearchStrategy[Any]:
    """Values that a part of the grammar derives."""
    kind, *parts = node
    if kind == "or":
        return st.one_of([made(part) for part in parts])
    if kind == "is":
        return st.just(parts[0])
    if kind == "many":
        return st.lists(made(parts[0]), max_size=3)
    if kind == "array":
        return st.tuples(*map(made, parts)).map(list)
    if kind == "object":
        if parts[0][0] is None:
            return st.dictionaries(TERMINALS["TEXT"], made(parts[0][2]), max_size=3)
        return st.fixed_dictionaries(
            {key: made(inner) for key, optional, inner in parts if not optional},
            optional={key: made(inner) for key, optional, inner in parts if optional},
        )
    (name,) = parts
    if name in CONSTANTS:
        return st.just(CONSTANTS[name])
    return TERMINALS[name] if name in TERMINALS else PRODUCED[name]


def later(node: Node) -> st.SearchStrategy[Any]:
    """The same, once all productions are known."""
    return st.deferred(lambda: made(node))


PRODUCED = {name: later(node) for name, node in GRAMMAR.items()}
PRODUCED["tensor"] = tensors()


def paths(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places in a JSON value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(path for key, item in inside for path in paths(item, (*at, key)))]


@st.composite
def spoilt(draw: st.DrawFn, sound: st.SearchStrategy[Any]) -> Any:
    """A sound value with one change somewhere in it: another value, a key more, a key less."""
    value = copy.deepcopy(draw(sound))
    *path, last = draw(st.sampled_from(paths([value])[1:]))
    whole = [value]
    into: Any = whole
    for key in path:
        into = into[key]
    change = draw(st.sampled_from(["replace", "add", "drop"]))
    junk = draw(
        st.none()
        | st.booleans()
        | st.integers(-3, 3)
        | st.floats()
        | st.sampled_from(["", "nan", "x", [], {}, [[]], {"float": "x"}])
    )
    if change == "replace" or not isinstance(into[last], dict) or not into[last]:
        into[last] = junk
    elif change == "add":
        into[last]["surplus"] = junk
    else:
        into[last].pop(draw(st.sampled_from(sorted(into[last]))))
    return whole[0]


def complete(result: dict[str, Any]) -> dict[str, Any]:
    """What the text beyond the grammar asks for."""
    return {"state": None, **result} if "calls" in result else result


def taken(check: Callable[[], None], name: str) -> bool:
    """Whether a check takes what it is given; else it has to say which part is wrong."""
    try:
        check()
    except ValueError as error:
        if not str(error).startswith(name):
            raise
        return False
    return True


def test_the_grammar_says_what_the_checks_know() -> None:
    kinds = [part[1][0] for part in GRAMMAR["wrapped"][1:]]
    assert kinds == list(KINDS)
    assert set(TAKEN) == set(KINDS) - {"object"}


@settings(deadline=None)
@given(PRODUCED["result"].map(complete))
def test_every_result_that_the_grammar_derives_is_taken(result: Any) -> None:
    assert derives(GRAMMAR["result"], result)
    check_result(result, "golden")


@settings(deadline=None)
@given(PRODUCED["calls"])
def test_all_calls_that_the_grammar_derives_are_taken(calls: Any) -> None:
    assert derives(GRAMMAR["calls"], calls)
    check_calls(calls)


@settings(deadline=None)
@given(spoilt(PRODUCED["result"].map(complete)))
def test_nothing_else_is_taken_for_a_result(result: Any) -> None:
    if taken(lambda: check_result(result, "golden"), "golden"):
        assert derives(GRAMMAR["result"], result)


@settings(deadline=None)
@given(spoilt(PRODUCED["calls"]))
def test_nothing_else_is_taken_for_calls(calls: Any) -> None:
    if taken(lambda: check_calls(calls), "calls"):
        assert derives(GRAMMAR["calls"], calls)


def test_what_is_sound_as_calls_is_not_known_as_a_result() -> None:
    check_calls([])
    check_result({}, "golden")
    with pytest.raises(ValueError, match="golden is list, expected an object"):
        check_result([], "golden")
    with pytest.raises(ValueError, match="calls is dict, expected a list"):
        check_calls({})


# ------------------------------------------------------------------------------------------------------------- its vocabulary


def test_the_manual_of_the_fixtures_says_where_the_grammar_stands() -> None:
    (link,) = re.findall(r"\]\((\S+values/form\.py)\)", (ROOT / "fixtures" / "README.md").read_text(encoding="utf-8"))
    linked = (ROOT / "fixtures" / link).resolve()
    assert linked.read_bytes() == Path(form.__file__).read_bytes()  # the tests may run on an installed copy


@pytest.mark.parametrize("file", ["inside/worker.py", "runtime/encoding.py"])
def test_what_encodes_and_decodes_knows_the_same_kinds(file: str) -> None:
    """The worker imports nothing of ours, so its words are compared."""
    tree = ast.parse((ROOT / "harness" / "torch_compat" / file).read_text(encoding="utf-8"))
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    written = {
        node.keys[0].value
        for node in ast.walk(classes["Encoder"])
        if isinstance(node, ast.Dict) and len(node.keys) == 1 and isinstance(node.keys[0], ast.Constant)
    }
    assert written == set(KINDS)
    read = {
        comparison.comparators[0].value
        for comparison in ast.walk(classes["Decoder"])
        if isinstance(comparison, ast.Compare)
        and ast.unparse(comparison.left) == "kind"
        and isinstance(comparison.comparators[0], ast.Constant)
    }
    assert read == set(TAKEN)


def test_a_tensor_of_many_dimensions_is_refused_before_they_are_multiplied() -> None:
    body = {"dtype": "int8", "shape": [(1 << 63) - 1] * 300_000, "strides": [0] * 300_000, "bytes": ""}
    with pytest.raises(ValueError, match=f"has 300000 dimensions, expected at most {MOST_DIMENSIONS}"):
        check_result({"value": {"tensor": body}}, "golden")


@pytest.mark.parametrize(
    ("value", "written"), [(1.5, 1.5), (-0.0, -0.0), (math.nan, "nan"), (math.inf, "inf"), (-math.inf, "-inf")]
)
def test_numbers_are_written_as_json_has_them(value: float, written: float | str) -> None:
    assert repr(number(value)) == repr(written)


@given(st.data())
def test_the_last_element_is_where_numpy_puts_it(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(1, 4), max_size=4))
    strides = [data.draw(st.integers(0, 7)) for _ in shape]
    offset = data.draw(st.integers(0, 5))
    places = [offset + sum(i * step for i, step in zip(index, strides, strict=True)) for index in np.ndindex(*shape)]
    assert last_element(shape, strides, offset) == max(places)


COMPUTED = [name for name, row in DTYPES.items() if row.numpy and row.kind != "quantized"]


@st.composite
def whole_tensors(draw: st.DrawFn) -> dict[str, Any]:
    """Tensors without holes, each with a storage of its own."""
    dtype = draw(st.sampled_from(COMPUTED))
    shape = draw(st.lists(st.integers(1, 3), max_size=3))
    strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    size = DTYPES[dtype].size * math.prod(shape)
    data = bytes(size) if dtype == "bool" else draw(st.binary(min_size=size, max_size=size))
    return {"tensor": {"dtype": dtype, "shape": shape, "strides": strides, "bytes": base64.b64encode(data).decode("ascii")}}


GIVEN = st.recursive(
    st.none()
    | st.booleans()
    | TERMINALS["INTEGER"]
    | TERMINALS["TEXT"]
    | st.floats().map(lambda x: {"float": number(x)})
    | st.tuples(st.floats(), st.floats()).map(lambda pair: {"complex": [number(pair[0]), number(pair[1])]})
    | st.sampled_from(COMPUTED).map(lambda name: {"dtype": name})
    | st.sampled_from(["cpu", "cuda:1"]).map(lambda name: {"device": name})
    | whole_tensors(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(lambda items: {"tuple": items})
        | st.dictionaries(TERMINALS["TEXT"], inner, max_size=3).map(
            lambda pairs: {"dict": [list(pair) for pair in pairs.items()]}
        )
    ),
    max_leaves=8,
)


def without_storages(value: Any) -> Any:
    if isinstance(value, list):
        return [without_storages(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: without_storages(item) for key, item in value.items() if key not in {"storage", "offset"}}


@settings(deadline=None)
@given(GIVEN)
def test_what_the_runtime_is_given_it_gives_back(value: Any) -> None:
    again = Encoder().encode(Decoder().decode(value))
    check_result({"value": again}, "golden")
    assert without_storages(again) == value
