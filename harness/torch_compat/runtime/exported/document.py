"""Reads the JSON of an exported program to a checked graph: every name is defined before its use, every number is bounded.

The document (``torch/_export/serde/schema.py`` of each release), as far as execution needs it::

    {"graph_module": {"graph": Graph, "signature": Signature, "module_call_graph": [{"fqn": "", "signature": {"in_spec", "out_spec",
     "forward_arg_names"}}], "call_spec": {"in_spec", "out_spec"}}, "range_constraints": {"s0": {"min_val", "max_val"}}, "guards_code": [text]}

    Graph       {"inputs": [Argument], "outputs": [Argument], "nodes": [Node], "tensor_values": {name: TensorMeta},
                 "sym_int_values": {name: SymInt}, "is_single_tensor_return": bool}
    Node        {"target": "torch.ops.aten.add.Tensor", "inputs": [{"name", "arg": Argument, "kind"}], "outputs": [Argument], "name"}
    Argument    a union: {"as_tensor": {"name"}}, {"as_int": 1}, {"as_graph": {"name", "graph": Graph}} ...
    Signature   {"input_specs": [InputSpec], "output_specs": [OutputSpec]}

How releases differ:

* A union has one key. 2.1 and 2.2 (schema 1 and 2) write every key of the union, with null for all but one, and an empty list for
  ``as_none``.
* Schema 1 has no ``input_specs``: its signature maps names to parameters and buffers (``inputs_to_parameters``, ``inputs_to_buffers``,
  ``user_inputs``, ``user_outputs``, ``buffers_to_mutate``), ``call_spec`` holds the trees, whose root is the tuple of the arguments alone
  (all newer: a tuple of the arguments and the keyword arguments), a value of ``tensor_values`` stands under ``meta``, and constants
  stand in the graph, each an archive of torch.save in base64.
* ``kind`` of an argument (1 by position, 2 by keyword) exists since schema 8.3 (2.7). Without it the first argument is given by position
  and all others by name.
* ``is_hop_single_tensor_return`` exists since 8.6; ``name`` of a node since 8.15; ``guards_code`` since 8.12; floats that JSON lacks are
  the texts ``Infinity``, ``-Infinity`` and ``NaN`` since 2.3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from torch_compat.allowance import JSON
from torch_compat.errors import Corrupt, HarnessError, Unsupported
from torch_compat.formats._export import union
from torch_compat.pickles import brief, cut
from torch_compat.runtime import dtypes
from torch_compat.runtime.exported.plain import integer, number, only
from torch_compat.runtime.exported.signature import (
    PLAIN,
    SYMBOLIC,
    Input,
    Output,
    argument_name,
    defined,
    of_first_schema,
    read_input,
    read_output,
)
from torch_compat.runtime.values import Device, text_in
from torch_compat.values.dtypes import DTYPES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from torch_compat.allowance import Allowance

__all__ = ["Document", "Graph", "Many", "Name", "Node", "SymInt", "names_of", "read_document"]

MOST_NESTED = 64  # graphs inside of arguments
POSITIONAL = 1  # ArgumentKind
# ScalarType, MemoryFormat and Layout of the export schema, as the c10 numbers that operators use
SCALAR_TYPES = {row.export: name for name, row in DTYPES.items() if row.export is not None}
MEMORY_FORMATS = {1: 0, 2: 2, 3: 3, 4: 1}
STRIDED = 7
SYMBOLIC_LISTS = frozenset({"as_sym_ints", "as_sym_bools", "as_sym_floats"})
PLAIN_LISTS = {"as_ints": int, "as_bools": bool, "as_strings": str}


class Name(NamedTuple):
    """A value of the graph, by its name."""

    name: str


class Many(NamedTuple):
    """A list of values of the graph and constants."""

    items: tuple[Any, ...]


class SymInt(NamedTuple):
    """A tensor size stated by a graph: a number, or an expression of symbols such as ``2*s0``."""

    number: int | None
    expression: str


class Node(NamedTuple):
    """A call.

    Attributes:
        target: ``torch.ops.aten.add.Tensor``, ``_operator.mul``, ``torch.sym_max``.
        args, keywords: constants, :class:`Name`, :class:`Many` and :class:`Graph`.
        outputs: names of the results: a text for a tensor or number, a tuple for a list, None for nothing.
        single: whether a higher-order operator returns its only result without a tuple.
        where: for errors.
    """

    target: str
    args: tuple[Any, ...]
    keywords: dict[str, Any]
    outputs: tuple[Any, ...]
    single: bool
    where: str


@dataclass(frozen=True)
class Graph:
    """A graph.

    Attributes:
        inputs: names, in order; None for a constant.
        nodes: in the order of execution.
        outputs: constants and names.
        single: whether it returns its only output without a tuple.
        sizes: by tensor, if the graph states its sizes.
        numbers: of each symbolic integer.
    """

    inputs: tuple[str | None, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[Any, ...]
    single: bool
    sizes: dict[str, tuple[SymInt, ...]] = field(default_factory=dict)
    numbers: dict[str, SymInt] = field(default_factory=dict)


@dataclass(frozen=True)
class Document:
    """A program.

    Attributes:
        inputs, outputs: parallel to those of the graph.
        in_spec, out_spec: the trees of the arguments and results, as JSON strings; None if the program states none.
        words: names of the arguments of ``forward``; None if the program does not state them.
        ranges: the least and the largest value of symbols and expressions; None for no bound.
        guards: conditions, as text.
        named_tuples: names of the fields of named tuples, by type.
        constants: of schema 1, archives of torch.save in base64, by the name that the graph uses.
        schema: major and minor version.
    """

    graph: Graph
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    in_spec: str | None
    out_spec: str | None
    words: tuple[str, ...] | None
    ranges: dict[str, tuple[int | None, int | None]]
    guards: tuple[str, ...]
    schema: tuple[int, int]
    named_tuples: dict[str, tuple[str, ...]] = field(default_factory=dict)
    constants: dict[str, str] = field(default_factory=dict)


def names_of(values: Iterable[Any]) -> Iterator[str]:
    """The values of the graph that arguments name."""
    for value in values:
        if value.__class__ is Name:
            yield value.name
        elif value.__class__ is Many:
            yield from names_of(value.items)


def read_document(program: dict[str, Any], schema: tuple[int, int | None], allowance: Allowance, where: str) -> Document:
    """Read the JSON of a program.

    Parameters:
        program: as returned by :func:`torch_compat.formats._export.load_json`.
        schema: its version.
        where: the file and the record, for errors.

    Raises:
        Corrupt: it violates its schema: a field is missing or has another type, a name is used before it is defined, a number has more than
            64 bits.
        Unsupported: it is valid, but the reference reader lacks something.
        Unsafe: it needs more work than is allowed.
    """
    try:
        return _Reader(allowance, where).document(program, schema)
    except HarnessError:
        raise
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        message = f"is not an exported program: {type(error).__name__} {cut(str(error), 200)}"
        raise Corrupt(message, where=where, code="bad-program") from error


class _Reader:
    def __init__(self, allowance: Allowance, where: str) -> None:
        self.allowance = allowance
        self.where = where
        self.depth = 0

    def document(self, program: dict[str, Any], schema: tuple[int, int | None]) -> Document:
        module = only(program["graph_module"], dict)
        signature = only(module["signature"], dict)
        graph_json = only(module["graph"], dict)
        specs = signature.get("input_specs")
        arguments = [union(item) for item in only(graph_json["inputs"], list)]
        if specs is None:
            inputs, outputs = of_first_schema(signature, arguments, only(graph_json["outputs"], list))
        else:
            inputs = tuple([read_input(*union(item)) for item in only(specs, list)])
            outputs = tuple([read_output(*union(item)) for item in only(signature["output_specs"], list)])
        names = [argument_name(spec) for spec in specs] if specs is not None else None
        constants = only(graph_json.get("constants") or {}, dict)
        graph = self.graph(graph_json, names, constants)
        if len(inputs) != len(graph.inputs) or len(outputs) != len(graph.outputs):
            message = f"its signature has {len(inputs)} inputs and {len(outputs)} outputs, but its graph has {len(graph.inputs)} and {len(graph.outputs)}"
            raise ValueError(message)
        call = module.get("call_spec") or _call_of(only(module.get("module_call_graph", []), list))
        words = call.get("forward_arg_names")
        tuples = only(module.get("treespec_namedtuple_fields") or {}, dict)
        return Document(
            graph, inputs, outputs, _text_or_none(call.get("in_spec")), _text_or_none(call.get("out_spec")),
            None if words is None else tuple([only(word, str) for word in only(words, list)]),
            {name: _range(result) for name, result in only(program.get("range_constraints") or {}, dict).items()},
            tuple([only(text, str) for text in only(program.get("guards_code") or [], list)]),
            (schema[0], schema[1] or 0),
            {name: tuple([only(item, str) for item in only(result["field_names"], list)]) for name, result in tuples.items()},
            {name: only(text, str) for name, text in constants.items()},
        )  # fmt: skip

    def graph(
        self, element: dict[str, Any], names: list[str | None] | None = None, constants: dict[str, Any] | None = None
    ) -> Graph:
        self.depth += 1
        if self.depth > MOST_NESTED:
            raise ValueError(f"graphs are nested deeper than {MOST_NESTED}")
        known: set[str] = set(constants or ())
        inputs: list[str | None] = []
        for place, item in enumerate(only(element["inputs"], list)):
            self.allowance.spend(JSON)
            kind, value = union(item)
            name = defined(kind, value)
            if name is None and names is not None:
                name = names[place]
            inputs.append(name)
            if name is not None:
                self._define(name, known)
        nodes = tuple([self.node(only(entry, dict), known) for entry in only(element["nodes"], list)])
        outputs = tuple([self.argument(*union(entry), known) for entry in only(element["outputs"], list)])
        sizes = {name: self.sizes(meta) for name, meta in only(element.get("tensor_values") or {}, dict).items()}
        numbers = {name: _size(value) for name, value in only(element.get("sym_int_values") or {}, dict).items()}
        self.depth -= 1
        single = element.get("is_single_tensor_return") is True
        if single and len(outputs) != 1:
            raise ValueError(f"a graph with a single result has {len(outputs)} outputs")
        return Graph(tuple(inputs), nodes, outputs, single, sizes, numbers)

    def sizes(self, meta: Any) -> tuple[SymInt, ...]:
        meta = only(meta, dict)
        stated = only((meta.get("meta") or meta)["sizes"], list)
        self.allowance.spend(JSON * (1 + len(stated)))
        return tuple([_size(item) for item in stated])

    def node(self, element: dict[str, Any], known: set[str]) -> Node:
        target = only(element["target"], str)
        given = only(element["inputs"], list)
        self.allowance.spend(JSON * (2 + len(given)))
        args: list[Any] = []
        keywords: dict[str, Any] = {}
        for item in given:
            name, kind = only(item["name"], str), item.get("kind")
            value = self.argument(*union(item["arg"]), known)
            if kind == POSITIONAL or name == "" or (kind is None and not args and not keywords):
                if keywords:
                    raise ValueError(f"{cut(target)} has a positional argument after a keyword argument")
                args.append(value)
            elif name in keywords:
                raise ValueError(f"{cut(target)} has two arguments with the name {cut(name)!r}")
            else:
                keywords[name] = value
        outputs = tuple([self._result(*union(entry), known) for entry in only(element["outputs"], list)])
        single = element.get("is_hop_single_tensor_return") is not False
        return Node(target, tuple(args), keywords, outputs, single, f"{self.where}, node {_named(outputs) or target!r}")

    def argument(self, kind: str, value: Any, known: set[str]) -> Any:
        """A constant, or the placeholder of a graph value."""
        plain = PLAIN.get(kind)
        if plain is not None:
            if plain is int and value.__class__ is bool:
                return value  # as 2.4 writes truth values
            result = only(value, plain)
            return text_in(result) if plain is str else result
        if kind in {"as_tensor", "as_custom_obj"}:
            return self._use(value["name"], known)
        if kind == "as_none":
            return None
        if kind in SYMBOLIC:
            return self._symbolic(value, known)
        make: Callable[[Any, set[str]], Any] | None = getattr(self, f"_{kind}", None) if kind in OTHERS else None
        if make is not None:
            return make(value, known)
        if kind not in LISTS:
            raise Unsupported(
                f"the reference reader does not support the argument kind {cut(kind)!r}", where=self.where, code="argument"
            )
        items = only(value, list)
        self.allowance.spend(JSON * len(items))
        if kind in PLAIN_LISTS:
            results = [only(item, PLAIN_LISTS[kind]) for item in items]
            return Many(tuple(map(text_in, results) if kind == "as_strings" else results))
        if kind == "as_floats":
            return Many(tuple([number(item) for item in items]))
        if kind in SYMBOLIC_LISTS:
            return Many(tuple([self._symbolic(item, known) for item in items]))
        if kind == "as_optional_tensors":
            return Many(tuple([self._optional(*union(item), known) for item in items]))
        if kind == "as_tensors":
            return Many(tuple([self._use(item["name"], known) for item in items]))
        inner = {"as_nested_tensors": "as_tensors", "as_int_lists": "as_ints", "as_float_lists": "as_floats"}[kind]
        return Many(tuple([self.argument(inner, item, known) for item in items]))

    def _as_float(self, value: Any, _: set[str]) -> float:
        return number(value)

    def _as_complex(self, value: Any, _: set[str]) -> complex:
        return complex(number(value["real"]), number(value["imag"]))

    def _as_scalar_type(self, value: Any, _: set[str]) -> int:
        name = SCALAR_TYPES.get(only(value, int))
        result = None if name is None else dtypes.named(name)
        if result is None:
            raise ValueError(f"{value} is not a dtype of the schema")
        return result.code

    def _as_memory_format(self, value: Any, _: set[str]) -> int:
        return MEMORY_FORMATS[only(value, int)]

    def _as_layout(self, value: Any, _: set[str]) -> int:
        if only(value, int) != STRIDED:
            raise Unsupported(
                f"the reference reader does not support the layout {value} of the export schema", where=self.where, code="layout"
            )
        return 0

    def _as_device(self, value: Any, _: set[str]) -> Device:
        index = value.get("index")
        return Device(only(value["type"], str), None if index is None else integer(index))

    def _as_graph(self, value: Any, _: set[str]) -> Graph:
        return self.graph(only(value["graph"], dict))

    def _as_operator(self, value: Any, _: set[str]) -> str:
        result: str = only(value, str)
        return result

    def _as_optional_tensor(self, value: Any, known: set[str]) -> Any:
        return self._optional(*union(value), known)

    def _as_string_to_argument(self, value: Any, known: set[str]) -> dict[str, Any]:
        self.depth += 1
        if self.depth > MOST_NESTED:
            raise ValueError(f"arguments are nested deeper than {MOST_NESTED}")
        self.allowance.spend(JSON * len(value))
        results = {name: self.argument(*union(item), known) for name, item in only(value, dict).items()}
        self.depth -= 1
        return results

    def _optional(self, kind: str, value: Any, known: set[str]) -> Any:
        # 2.1 writes the name alone
        return None if kind == "as_none" else self._use(value if value.__class__ is str else value["name"], known)

    def _symbolic(self, value: Any, known: set[str]) -> Any:
        kind, result = union(value)
        if kind == "as_name":
            return self._use(result, known)
        return only(result, bool) if kind == "as_bool" else number(result) if kind == "as_float" else integer(result)

    def _use(self, name: Any, known: set[str]) -> Name:
        if name not in known:
            raise ValueError(f"the graph uses {brief(name, 80)} before it is defined")
        return Name(name)

    def _define(self, name: Any, known: set[str]) -> str:
        if only(name, str) in known:
            raise ValueError(f"the graph defines {cut(name, 80)!r} twice")
        known.add(name)
        return str(name)

    def _result(self, kind: str, value: Any, known: set[str]) -> Any:
        name = defined(kind, value)
        if name is not None:
            return self._define(name, known)
        if kind == "as_tensors" or kind in SYMBOLIC_LISTS:
            self.allowance.spend(JSON * len(value))
            names = [item["name"] if kind == "as_tensors" else union(item)[1] for item in only(value, list)]
            return tuple([self._define(name, known) for name in names])
        if kind == "as_none" or kind in PLAIN or kind == "as_float":
            return None
        raise Unsupported(
            f"the reference reader does not support the result kind {cut(kind)!r}", where=self.where, code="argument"
        )


OTHERS = frozenset({
    "as_float", "as_complex", "as_scalar_type", "as_memory_format", "as_layout", "as_device", "as_graph", "as_operator",
    "as_optional_tensor", "as_string_to_argument",
})  # fmt: skip
LISTS = frozenset({
    "as_floats", "as_optional_tensors", "as_tensors", "as_nested_tensors", "as_int_lists", "as_float_lists", *PLAIN_LISTS, *SYMBOLIC_LISTS,
})  # fmt: skip


def _named(outputs: tuple[Any, ...]) -> str:
    first = outputs[0] if outputs else None
    if first.__class__ is tuple:
        first = first[0] if first else None
    return "" if first is None else repr(cut(first, 80))


def _call_of(entries: list[Any]) -> dict[str, Any]:
    """The signature of the outermost module."""
    for entry in entries:
        if entry["fqn"] == "" and entry.get("signature") is not None:
            return dict(only(entry["signature"], dict))
    return {}


def _text_or_none(value: Any) -> str | None:
    return None if value is None else only(value, str)


def _range(value: Any) -> tuple[int | None, int | None]:
    """The least and the greatest value; None for no bound, which up to 2.5 is written as Python's infinity."""
    low, high = value.get("min_val"), value.get("max_val")
    return (
        None if low is None or low == -math.inf else integer(low),
        None if high is None or high == math.inf else integer(high),
    )


def _size(value: Any) -> SymInt:
    if value.__class__ is int:
        return SymInt(integer(value), "")
    kind, result = union(value)
    if kind == "as_int":
        return SymInt(integer(result), "")
    return SymInt(None, only(result["expr_str"], str))
