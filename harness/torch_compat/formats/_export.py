"""Common to both layouts of exported programs: the program as JSON."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from torch_compat.allowance import CALL, JSON
from torch_compat.errors import Corrupt, Unsafe
from torch_compat.formats.model import Call
from torch_compat.pickles import brief, cut
from torch_compat.words import count_of

if TYPE_CHECKING:
    from torch_compat.allowance import Allowance
    from torch_compat.archive import ZipArchive
    from torch_compat.formats.model import Facts

__all__ = ["add_program", "load_json", "parsed", "release", "schema_version", "union"]

HIGHEST_VERSION = 1_000_000
HIGHER_ORDER = "torch._higher_order_ops."  # as 2.4 names functions of this module
CONTAINER = re.compile(r'"type": "([\w.]{1,200})"')
KEYWORD = 2  # ArgumentKind of torch/_export/serde/schema.py, stated by 8.3 and newer


def load_json(archive: ZipArchive, record: str) -> dict[str, Any]:
    """The JSON object in a record.

    Raises:
        Corrupt: the record contains no JSON object.
        Unsafe: its contents would take too much memory.
    """
    where, size = f"{archive.path}, record {record!r}", archive.member(record).size
    if size > archive.allowance.memory // 2:  # not read at all: `parsed` counts 4 bytes for each byte, against twice that memory
        message = f"contains {count_of(size, 'byte')} of JSON, expected at most {archive.allowance.memory // 2}"
        raise Unsafe(message, where=where, code="too-large")
    return parsed(archive.record(record), archive.allowance, where)


def release(facts: Facts) -> str | None:
    """The exact release that the program states; None if it states none."""
    stated = facts.extra.get("torch_version")
    return (cut(stated) if isinstance(stated, str) else brief(stated)) if stated else None


def parsed(data: bytes, allowance: Allowance, where: str) -> dict[str, Any]:
    """Parse bytes to a JSON object. The memory of its values is bounded beforehand by counting their opening and separating characters.

    Raises:
        Corrupt: they are not a JSON object.
        Unsafe: they would take too much memory.
    """
    size = len(data)
    commas, lists, objects, quotes = (data.count(mark) for mark in (b",", b"[", b"{", b'"'))
    # a number and its place 40 bytes, a list of its own 72, a dictionary with its first entries 250, a text 55 and its letters
    needed = 40 * commas + 72 * lists + 250 * objects + 30 * quotes + 4 * size
    if needed > 2 * allowance.memory:
        raise Unsafe(f"contains JSON whose values take up to {needed} bytes, more than the limit", where=where, code="too-large")
    try:
        allowance.spend(size // 8 + commas // 2 + lists + 2 * objects + quotes // 2)
    except Unsafe as error:
        error.where = where
        raise
    try:
        result = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Corrupt(f"is not JSON: {cut(str(error), 200)}", where=where, code="bad-json") from error
    if not isinstance(result, dict):
        raise Corrupt(f"contains a value of type {type(result).__name__}, expected an object", where=where, code="bad-json")
    return result


def schema_version(archive: ZipArchive, record: str, program: dict[str, Any]) -> tuple[int, int | None]:
    """Major and minor number of the schema: ``{"major": 8, "minor": 1}``, or one number in 2.1 and 2.2.

    Raises:
        Corrupt: there is no version.
    """
    version = program.get("schema_version")
    major, minor = (version.get("major"), version.get("minor")) if isinstance(version, dict) else (version, None)
    if any(
        isinstance(part, bool) or not isinstance(part, int) or not 0 <= part < HIGHEST_VERSION
        for part in (major, 0 if minor is None else minor)
    ):
        message = f"has schema version {brief(version)}, expected a number, or a major and a minor number"
        raise Corrupt(message, where=f"{archive.path}, record {record!r}", code="bad-version")
    assert isinstance(major, int)  # noqa: S101 - checked just before
    return major, minor


def add_program(archive: ZipArchive, facts: Facts, record: str, program: dict[str, Any], calls: set[Call]) -> None:
    """Fill in schema version, operators, and other facts about the program.

    Parameters:
        calls: receives the operators.

    Raises:
        Corrupt: it is not a program.
    """
    major, minor = schema_version(archive, record, program)
    facts.export_schema = str(major) if minor is None else f"{major}.{minor}"
    for key in ("opset_version", "verifiers", "dialect", "torch_version"):
        if key in program:
            facts.extra[key] = program[key]
    try:
        module = program["graph_module"]
        graph = module["graph"]
        facts.extra.setdefault("arguments", set()).update(_add_calls(module, calls, archive.allowance))
        sizes = _symbols_of_inputs(graph)
        facts.extra.setdefault("ranges", set()).update(
            str(item.get("min_val")) for name, item in (program.get("range_constraints") or {}).items() if name in sizes
        )
        facts.extra.setdefault("inputs", set()).update(union(input_)[0] for input_ in graph["inputs"])
        if any("." in name for name in ((module.get("signature") or {}).get("buffers_to_mutate") or {}).values()):
            facts.extra.setdefault("changed_name_with_dot", record)
        facts.extra.setdefault("trees", set()).update(_containers(module))
        results = facts.extra.setdefault("results", [])
        results += sorted({union(output)[0] for output in graph["outputs"]}.difference(results))
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        where = f"{archive.path}, record {record!r}"
        message = f"is not an exported program: {type(error).__name__} {cut(str(error), 200)}"
        raise Corrupt(message, where=where, code="bad-program") from error


def _symbols_of_inputs(graph: dict[str, Any]) -> set[str]:
    """The symbols that are sizes of the graph's inputs: ``s0``; no expressions."""
    tensors = graph.get("tensor_values") or {}
    names = {value["name"] for kind, value in map(union, graph["inputs"]) if kind == "as_tensor"}
    sizes = [union(size) for name in names if name in tensors for size in tensors[name].get("sizes") or ()]
    return {value["expr_str"] for kind, value in sizes if kind == "as_expr"}


def _containers(module: dict[str, Any]) -> set[str]:
    """The types of the containers in the arguments and results of a program."""
    calls = [entry.get("signature") or {} for entry in module.get("module_call_graph") or () if entry.get("fqn") == ""]
    texts = [call.get(key) for call in [*calls, module.get("call_spec") or {}] for key in ("in_spec", "out_spec")]
    return {result for text in texts if isinstance(text, str) for result in CONTAINER.findall(text)}


def union(value: Any) -> tuple[str, Any]:
    """The key and the value of a union, in the encoding of any release: a single key, or in 2.1 and 2.2 every key, all but one with the value null.

    Raises:
        ValueError: it is not a union.
    """
    if value.__class__ is not dict:
        raise ValueError(f"expected an object with one key, found {brief(value)}")
    if len(value) == 1:
        return next(iter(value.items()))
    given = [(key, item) for key, item in value.items() if item is not None]
    if not given and "as_none" in value:
        return "as_none", None
    if len(given) != 1:
        raise ValueError(f"expected an object with one key that is not null, found {len(given)}")
    return given[0]


def _add_calls(module: dict[str, Any], item: set[Call], allowance: Allowance) -> set[str]:
    """Add the operators called by a graph and by the graphs in its arguments; return the kinds of their arguments."""
    graphs = [module["graph"]]
    kinds: set[str] = set()
    while graphs:
        for node in graphs.pop()["nodes"]:
            inputs, target = node["inputs"], node["target"]
            allowance.spend(JSON * (1 + len(inputs)))
            for input_ in inputs:
                given = input_.get("arg", {})
                kinds.update(kind for kind, value in given.items() if value is not None)
                inner = given.get("as_graph")
                if inner is not None:
                    graphs.append(inner["graph"])
            if not isinstance(target, str):
                raise TypeError(f"target has type {type(target).__name__}")
            if target.startswith(HIGHER_ORDER):
                target = f"torch.ops.higher_order.{target.rpartition('.')[2]}"
            namespace, _, rest = target.removeprefix("torch.ops.").partition(".")
            name, _, overload = rest.partition(".")
            if not target.startswith("torch.ops.") or not name or "." in overload:
                continue  # a Python function: _operator.add, math.floor
            named = tuple([_text(entry["name"]) for entry in inputs if entry.get("kind", KEYWORD) == KEYWORD])
            overload = "" if overload == "default" else overload
            before = len(item)
            item.add(Call(f"{namespace}::{name}", overload, len(inputs) - len(named), named))
            if len(item) > before:
                allowance.spend(CALL)
    return kinds


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"the name of an argument has type {type(value).__name__}")
    return value
