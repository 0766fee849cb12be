"""The contents of an archive as a tree of text: keys, types, dtypes and shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.pickles import (
    Described,
    Device,
    Dict,
    Global,
    ModuleSource,
    NumpyArray,
    NumpyDtype,
    NumpyScalar,
    PersistentId,
    Storage,
    Tensor,
)
from harness.pickles.values import Deque, Size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.formats.model import Facts

__all__ = ["tree"]

# What of an archive its users put in: not the parts that only frame it.
FRAMES = frozenset({"magic", "protocol", "keys", "system", "sys_info", "bytecode.pkl"})
LONGEST = 80  # characters of a text
DEEPEST = 100
MOST_LINES = 1_000_000


def tree(facts: Facts) -> list[str]:
    """The contents, as lines of text; control characters of the archive's own texts are shown as escapes."""
    lines: list[str] = []
    for record, unpickled in facts.pickles.items():
        if record in FRAMES:
            continue
        lines.append(shown(record))
        for depth, line in _lines(unpickled.value):
            lines.append("  " * (depth + 1) + line)
            if len(lines) >= MOST_LINES:
                lines.append("... and more: the tree is cut here")
                return lines
    for name, tensor in _json_tensors(facts):
        lines.append(f"{shown(name)}: {tensor}")
    return lines


def shown(text: str) -> str:
    """A text without anything that a terminal would act on, and not too long."""
    safe = text if text.isprintable() else "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)
    return safe if len(safe) <= LONGEST else f"{safe[:LONGEST]}... ({len(text)} characters)"


def _lines(value: Any) -> Iterator[tuple[int, str]]:
    """Depth and text of each line. A shared object is spread out once; it does not recurse."""
    first, parts = _line(value)
    yield 0, first
    seen = {id(value)}
    stack = [iter(parts)]
    while stack:
        for name, part in stack[-1]:
            line, inner = _line(part)
            again = bool(inner) and id(part) in seen
            yield len(stack), f"{name}: {line}{' (as above)' if again else ''}"
            if inner and not again:
                seen.add(id(part))
                if len(stack) >= DEEPEST:
                    yield len(stack) + 1, "... and deeper"
                    continue
                stack.append(iter(inner))
                break
        else:
            stack.pop()


def _line(value: Any) -> tuple[str, list[tuple[str, Any]]]:
    """How a value is shown in one line, and what is in it."""
    kind = value.__class__
    if kind is Tensor:
        return _tensor(value), [(name, part) for name, part in (value.parts or {}).items() if part is not None]
    if kind is dict or kind is Dict:
        name = value.type.path if kind is Dict else "dict"
        parts = [(_key(key), one) for key, one in value.items()]
        if kind is Dict and value.state:
            parts.append(("(attributes)", value.state))
        return f"{shown(name)} of {len(value)}", parts
    if kind in {list, tuple, set, frozenset, Deque, Size}:
        items = list(value)
        if kind is Size or (len(items) <= 8 and all(one.__class__ in {int, float, bool, type(None)} for one in items)):
            name = "torch.Size" if kind is Size else kind.__name__
            return f"{name} {shown(repr(list(items)))}", []
        return f"{kind.__name__.lower()} of {len(items)}", [(f"[{index}]", one) for index, one in enumerate(items)]
    if kind is Described:
        return _described(value)
    if kind is str:
        return shown(repr(value)), []
    if kind in {bytes, bytearray}:
        return f"{kind.__name__} of {len(value)}", []
    if kind is int and value.bit_length() > 256:
        return f"int of {value.bit_length()} bits", []
    if kind is Global:
        return shown(value.path), []
    if kind is Storage:
        part = f", part of {shown(value.root.key)}" if value.root else ""
        return f"storage {shown(value.key)}: {value.dtype} x {value.numel} on {shown(value.location)}{part}", []
    if kind is NumpyArray:
        return f"numpy.ndarray {value.dtype} {list(value.shape)}", []
    if kind is NumpyScalar:
        return f"numpy scalar {value.dtype}", []
    if kind is NumpyDtype:
        return f"numpy.dtype {shown(str(value))}", []
    if kind is Device:
        return f"device {shown(str(value))}", []
    if kind is PersistentId:
        return "persistent id", [("id", value.pid)]
    if kind is ModuleSource:
        return f"class {_line(value.type)[0]} (with its source)", []
    return shown(repr(value)), []


def _tensor(value: Tensor) -> str:
    shape = ", ".join(map(str, value.shape))
    words = ["parameter" if value.parameter else "tensor", value.dtype or "(dtype not stated)", f"[{shape}]"]
    if value.subclass is not None:
        words.append(f"as {_line(value.subclass)[0]}")
    if value.layout != "strided":
        words.append(value.layout)
    if value.device != "cpu":
        words.append(f"on {shown(value.device)}")
    if value.quantizer is not None:
        words.append("quantized")
    bits = {"conj": value.conj, "neg": value.neg, "requires_grad": value.requires_grad and not value.parameter}
    words += [name for name, is_set in bits.items() if is_set]
    if value.storage is not None:
        words.append(f"(storage {shown(value.storage.key)})")
    return " ".join(words)


def _described(value: Described) -> tuple[str, list[tuple[str, Any]]]:
    target = shown(value.target.path) if value.target.__class__ is Global else _line(value.target)[0]
    verb = {"reduce": "call of ", "newobj": "", "instance": ""}[value.kind]
    parts: list[tuple[str, Any]] = [(f"({index})", one) for index, one in enumerate(value.args)]
    parts += [(f"({_key(key)})", one) for key, one in (value.kwargs or {}).items()]
    if value.state.__class__ in {dict, Dict}:
        parts += [(f".{_key(key)}", one) for key, one in value.state.items()]
    elif value.state is not None:
        parts.append(("(state)", value.state))
    parts += [(f"[{index}]", one) for index, one in enumerate(value.items or ())]
    parts += [(_key(key), one) for key, one in (value.pairs or ())]
    return f"{verb}{target}", parts


def _key(key: Any) -> str:
    return (shown(key) or "''") if key.__class__ is str else _line(key)[0]


def _json_tensors(facts: Facts) -> Iterator[tuple[str, str]]:
    """Tensors that JSON describes: parameters of TorchScript 1.0 to 1.2, weights of pt2 archives."""
    yield from facts.extra.get("tensors", {}).items()
