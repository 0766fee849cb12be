"""Detects the signs of an archive, which behaviors use by name; :mod:`torch_compat.releases.behavior` lists them.

Only signs that some behavior uses are looked for.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from torch_compat.formats.distributed import METADATA
from torch_compat.loadability.custom_classes import NAMED, NO_TUPLE
from torch_compat.loadability.hidden_names import HIDDEN, hiding, may_hide
from torch_compat.loadability.integer_constants import has_whole_constant, mistaken, too_large
from torch_compat.loadability.unlike_branches import UNLIKE, may_differ, with_unlike_branches
from torch_compat.operators.types import CLASS_PREFIX
from torch_compat.pickles import Described, Global, Tensor, parts
from torch_compat.releases.release import dotted
from torch_compat.torchscript.scanner import ATTRIBUTE, NAME, USES, bases, calls_below, scan, uses
from torch_compat.words import count_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from torch_compat.formats.model import Facts
    from torch_compat.torchscript.calls import CallShape

__all__ = ["COMPILED", "CUSTOM_CLASS", "CUSTOM_STATE", "not_looked_at", "signs_of"]

LONGEST_KEPT = 1 << 16  # characters of source, so that a thousand cached texts use little memory
COMPLEX = re.compile(r"(?<![\w.])(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?j\b")
"""The imaginary part of a complex constant, which is always printed: ``2.5-1.j``."""
WITH = re.compile(r"^\s+with\s[^\n]*:\s*$", re.MULTILINE)
QUANTIZED = "torch._utils._rebuild_qtensor"
CONSTANT = "whole-constant"  # not a sign itself; it triggers the search for two signs
NAMED_ALIKE = "named-alike"  # not a sign itself; it triggers the search for one sign
OUTSIDE = "outside-folder"
"""The damage code of a record outside the folder that contains all other records."""
SPARSE = "torch._utils._rebuild_sparse_tensor"
NESTED = "torch._utils._rebuild_nested_tensor"
CUSTOM_CLASS = "custom-class"
"""The kind of sign for a torch.classes class that a program refers to. It is always looked for, even if no behavior uses it.
"""
CUSTOM_STATE = "custom-state"
"""The kind of sign for an object of such a class: ``custom-state:quantized.LinearPackedParamsBase/2`` is a state with two
parts."""
NAMING_PYTHON = frozenset({"torch-save", "distributed"})
"""The families whose pickles refer to Python objects, and never to torch.classes."""
CALLING = frozenset({"torch-save", "package"})
"""The families whose pickles call Python functions to rebuild tensors."""
COMPILED = {"torchscript": "", "package": ".data/ts_code/"}
"""The families whose source is compiled on loading, and the folder of the source. Other source in a package is Python;
mobile archives also contain bytecode."""


def signs_of(facts: Facts, asked: Mapping[str, frozenset[str]]) -> tuple[dict[str, str], dict[CallShape, str]]:
    """Return the signs of an archive and the calls in its source, each with the record that contains it.

    Parameters:
        asked: the signs to look for: the parts after the colon, by the part before it.
    """
    results: dict[str, str] = {f"family:{facts.family}": "", f"container:{facts.container}": ""}
    shapes: dict[CallShape, str] = {}
    for kind in facts.versions:
        results[f"version:{kind}"] = ""
    if facts.names:
        _records(facts, asked.get("record", ()), results)
    if facts.damage:
        _damaged(facts, asked.get("damaged", frozenset()), results)
    if facts.export_schema is not None:
        _schema(facts.export_schema, asked.get("newer", ()), results)
        results.update({f"tree:{item}": "" for item in asked.get("tree", frozenset()).intersection(facts.extra.get("trees", ()))})
        if "integer_parameter" in facts.extra:
            results["integer-parameter"] = facts.extra["integer_parameter"]
        wanted = asked.get("calls", frozenset())
        results.update({f"calls:{call.name}": "" for call in facts.calls if call.name in wanted})
        if "changed_name_with_dot" in facts.extra:
            results["changed-name-with-dot"] = facts.extra["changed_name_with_dot"]
        for sign, told in (("result", "results"), ("argument", "arguments"), ("input", "inputs"), ("range-from", "ranges")):
            results.update(
                {f"{sign}:{item}": "" for item in asked.get(sign, frozenset()).intersection(facts.extra.get(told, ()))}
            )
    model = facts.extra.get("model")
    if model is not None:
        wanted = asked.get("field", frozenset())
        for name in wanted & _fields(model):
            results[f"field:{name}"] = "model.json"
        for name in asked.get("dtype", ()):
            if any(isinstance(item, dict) and item.get("dataType") == name for item in _listed(model, "tensors")):
                results[f"dtype:{name}"] = "model.json"
        record = _own_name(model, facts.sources)
        if record is not None:
            results["own-name"] = record
    results.update({f"bytecode-type:{item}": "bytecode.pkl" for item in facts.extra.get("named_classes", ())})
    if facts.extra.get("packed_transposed"):
        results["packed-transposed"] = "data.pkl"
    checkpoint = facts.extra.get("checkpoint")
    if checkpoint is not None and checkpoint.strided:
        results["checkpoint-strides"] = METADATA
    debug = facts.extra.get("debug_format")
    if debug is not None:
        results[f"debug:{debug}"] = ""
    if facts.sources and facts.family in COMPILED:
        _sources(facts.sources, COMPILED[facts.family], asked, results, shapes)
    if facts.pickles:
        _pickles(facts, asked, results)
    return results, shapes


def _records(facts: Facts, wanted: Iterable[str], value: dict[str, str]) -> None:
    names = facts.records
    for record in wanted:
        if record[-1] == "/":
            first = next((name for name in facts.names if name.startswith(record)), None)
            if first is not None:
                value[f"record:{record}"] = first
        elif record in names:
            value[f"record:{record}"] = record


def _damaged(facts: Facts, wanted: frozenset[str], value: dict[str, str]) -> None:
    """Add signs for damage that determines whether a loader can open the archive at all."""
    for damage in facts.damage:
        if damage.code in wanted:
            value.setdefault(f"damaged:{damage.code}", damage.record or "")
        if damage.code == OUTSIDE and facts.names and damage.record == facts.names[0]:
            value["first-outside"] = damage.record


def _schema(version: str, wanted: Iterable[str], value: dict[str, str]) -> None:
    own = dotted(version)
    for item in wanted:
        kind, _, least = item.partition(":")
        if kind == "export-schema" and own > dotted(least):
            value[f"newer:{item}"] = ""


def _own_name(model: Any, sources: Mapping[str, str]) -> str | None:
    """Return the first source record that calls ``__torch__.NAME.something``, where NAME is the name of the program."""
    main = model.get("mainModule") if isinstance(model, dict) else None
    name = main.get("name") if isinstance(main, dict) else None
    if not isinstance(name, str) or not name:
        return None
    return next((record for record, text in sources.items() if calls_below(text, f"__torch__.{name}.")), None)


def _listed(model: Any, field: str) -> list[Any]:
    listed = model.get(field) if isinstance(model, dict) else None
    return listed if isinstance(listed, list) else []


def _fields(value: Any) -> set[str]:
    results: set[str] = set()
    left = [value]
    while left:
        item = left.pop()
        if isinstance(item, dict):
            results.update(item)
            left.extend(item.values())
        elif isinstance(item, list):
            left.extend(item)
    return results


def _sources(
    sources: Mapping[str, str],
    folder: str,
    asked: Mapping[str, frozenset[str]],
    value: dict[str, str],
    shapes: dict[CallShape, str],
) -> None:
    words = frozenset((use, word) for use in USES for word in asked.get(use, ()))
    whole = alike = False
    for record, text in sources.items():
        if not record.startswith(folder):
            continue
        signs, called = _of_source(text, words)
        for sign in signs:
            if sign == CONSTANT:
                whole = True
            elif sign == NAMED_ALIKE:
                alike = True
            else:
                value.setdefault(sign, record)
        for shape in called:
            shapes.setdefault(shape, record)
    if whole:
        program = _program(sources, folder)
        for sign, record in mistaken(program).items():
            value.setdefault(sign, record)
    hidden = hiding(_program(sources, folder)) if alike else None
    if hidden is not None:
        value[HIDDEN] = hidden
    for call in asked.get("call", ()):
        name, _, count = call.rpartition("/")
        for shape, record in shapes.items():
            if shape.name == name and len(shape.positional) == int(count):
                value.setdefault(f"call:{call}", record)


def _program(sources: Mapping[str, str], folder: str) -> dict[str, str]:
    return {record: text for record, text in sources.items() if record.startswith(folder)}


def not_looked_at(facts: Facts) -> dict[str, str]:
    """The signs that were not looked for because the source is too large, by name, with the reason."""
    if not facts.sources or facts.family not in COMPILED:
        return {}
    program = _program(facts.sources, COMPILED[facts.family])
    if not any(map(has_whole_constant, program.values())) or not too_large(program.values()):
        return {}
    size = sum(map(len, program.values()))
    return {"whole floats": f"the source has {count_of(size, 'character')}: not checked for ints written instead of floats"}


def _of_source(text: str, words: frozenset[tuple[str, str]]) -> tuple[tuple[str, ...], frozenset[CallShape]]:
    """Return the signs of one source file, and the shapes of its operator calls; cached, since many archives share source."""
    return _kept(text, words) if len(text) < LONGEST_KEPT else _scanned(text, words)


@lru_cache(maxsize=1024)
def _kept(text: str, words: frozenset[tuple[str, str]]) -> tuple[tuple[str, ...], frozenset[CallShape]]:
    return _scanned(text, words)


def _scanned(text: str, words: frozenset[tuple[str, str]]) -> tuple[tuple[str, ...], frozenset[CallShape]]:
    source = scan(text)
    signs: set[str] = set()
    for word in {word for _, word in words}:
        used = uses(source.code, word)
        used |= {NAME} if ATTRIBUTE in used else set()  # an attribute is also a name
        signs.update(f"{use}:{word}" for use in used if (use, word) in words)
    signs.update(f"base:{base}" for base in bases(source.code))
    if CLASS_PREFIX in source.code:
        signs.update(f"{CUSTOM_CLASS}:{name}" for name in NAMED.findall(source.code))
    if has_whole_constant(source.code):
        signs.add(CONSTANT)
    if source.none_listed:
        signs.add("none-listed")
    if COMPLEX.search(source.code):
        signs.add("complex-constant")
    signs.update(f"optional-literal:{kind}" for kind in source.optional_literals)
    signs.update(f"packed-as-tensor:{use}" for use in source.packed)
    if WITH.search(source.code):
        signs.add("statement-with")
    if source.empty_tuple:
        signs.add("empty-tuple-type")
    if source.sorts_texts:
        signs.add("sorts-texts")
    if source.ill_formed:
        signs.add("ill-formed-escape")
    if may_hide(source.code):
        signs.add(NAMED_ALIKE)
    if may_differ(source.code) and with_unlike_branches(text):
        signs.add(UNLIKE)
    return tuple(sorted(signs)), source.shapes


def _pickles(facts: Facts, asked: Mapping[str, frozenset[str]], value: dict[str, str]) -> None:
    names = asked.get("names", frozenset())
    with_none = asked.get("none-in", ())
    of_tensors = asked.get("no-tensor-in", ())
    of_storages = asked.get("storage", frozenset())
    of_objects = {kind: asked.get(kind, frozenset()) for kind in ("lacks", "state-ends")}
    classes = frozenset(entry.partition("/")[0] for wanted in of_objects.values() for entry in wanted)
    for record, unpickled in facts.pickles.items():
        value.setdefault(f"protocol:{unpickled.protocol}", record)
        if unpickled.protocol == 0 and any(event.kind == "persistent" and event.subject == "str" for event in unpickled.events):
            value.setdefault("storage-as-text", record)
        for path in names.intersection([global_.path for global_ in unpickled.globals]):
            value.setdefault(f"names:{path}", record)
        if record in with_none and any(part is None for part in parts(unpickled.value)):
            value[f"none-in:{record}"] = record
        if (
            record in of_tensors
            and unpickled.value.__class__ is tuple
            and any(entry.__class__ is not Tensor for entry in unpickled.value)
        ):
            value[f"no-tensor-in:{record}"] = record
        for dtype in of_storages.intersection([storage.dtype for storage in unpickled.storages]):
            value.setdefault(f"storage:{dtype}", record)
        if not classes.isdisjoint([global_.path for global_ in unpickled.globals]):
            for kind, item in _of_objects(unpickled.value, of_objects):
                value.setdefault(f"{kind}:{item}", record)
        if facts.family not in NAMING_PYTHON and any(global_.path.startswith(CLASS_PREFIX) for global_ in unpickled.globals):
            for sign in _of_custom(unpickled.value):
                value.setdefault(sign, record)
        if any(function == QUANTIZED for function, _ in unpickled.arities) and any(
            map(_has_listed_scales, parts(unpickled.value))
        ):
            value.setdefault("scales-as-list", record)
        if facts.family in CALLING:
            called: set[str] = set()
            for function, count in unpickled.arities:
                value.setdefault(f"args:{function}/{count}", record)
                called.add(function)
            if NESTED in called:
                for tensor in parts(unpickled.value):
                    if tensor.__class__ is Tensor and tensor.layout == "nested" and _holds_none(tensor):
                        value.setdefault("nested:none", record)
            if SPARSE in called:
                for tensor in parts(unpickled.value):
                    if tensor.__class__ is Tensor and tensor.layout.startswith("sparse_"):
                        value.setdefault(f"sparse:{tensor.layout.removeprefix('sparse_')}", record)
                        indices = tensor.parts.get("indices") if tensor.parts else None
                        if indices.__class__ is Tensor and 0 not in indices.shape:
                            value.setdefault("sparse:indices", record)
                        if tensor.parts and "coalesced" in tensor.parts:
                            value.setdefault("sparse:coalesced", record)


def _has_listed_scales(value: Any) -> bool:
    quantizer = value.quantizer if value.__class__ is Tensor else None
    return quantizer is not None and len(quantizer) > 1 and quantizer[1].__class__ is list


def _of_custom(value: Any) -> Iterator[str]:
    """Yield the signs of torch.classes objects in a pickle."""
    for part in parts(value):
        if part.__class__ is Described and part.target.__class__ is Global and part.target.path.startswith(CLASS_PREFIX):
            name = part.target.path.removeprefix(CLASS_PREFIX)
            yield f"{CUSTOM_CLASS}:{name}"
            yield f"custom-object:{name}"
            yield f"{CUSTOM_STATE}:{name}/{len(part.state) if part.state.__class__ is tuple else NO_TUPLE}"


def _of_objects(value: Any, asked: Mapping[str, frozenset[str]]) -> Iterator[tuple[str, str]]:
    """Yield the signs of the states of objects, with their kind."""
    for part in parts(value):
        if part.__class__ is not Described or part.target.__class__ is not Global:
            continue
        name, state = part.target.path, part.state
        for wanted in asked["lacks"]:
            cls, _, attribute = wanted.partition("/")
            if cls == name and isinstance(state, dict) and attribute not in state:
                yield "lacks", wanted
        if state.__class__ is tuple and state:
            wanted = f"{name}/{type(state[-1]).__name__}"
            if wanted in asked["state-ends"]:
                yield "state-ends", wanted


def _holds_none(nested: Tensor) -> bool:
    """Whether the sizes of a nested tensor have no row for any tensor: torch saves them without dimensions, or without rows."""
    sizes = nested.parts.get("sizes") if nested.parts else None
    return sizes.__class__ is Tensor and (len(sizes.shape) != 2 or sizes.shape[0] == 0)
