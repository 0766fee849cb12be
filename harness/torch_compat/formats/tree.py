"""The contents of an archive as a tree of text: keys, types, dtypes and shapes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from torch_compat.pickles import (
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
    brief,
)
from torch_compat.pickles.values import Deque, Size
from torch_compat.words import count_of

if TYPE_CHECKING:
    from torch_compat.formats.model import Facts

__all__ = ["contents"]

# The parts of an archive that come from its users, without its framing.
FRAMES = frozenset({"magic", "protocol", "keys", "system", "sys_info", "bytecode.pkl"})
LONGEST = 80  # characters of a text
DEEPEST = 100
MOST_LINES = 200_000
MOST_SIZES = 64  # number of sizes of a shape: tensors may share one
Parts = Iterable[tuple[str, Any]]


def contents(facts: Facts) -> list[str]:
    """The contents as lines of text without control characters; nonprintable characters are shown as escapes."""
    return [printable(line) for line in _tree(facts)]


def _tree(facts: Facts) -> list[str]:
    lines: list[str] = []
    for record, unpickled in facts.pickles.items():
        if record in FRAMES:
            continue
        lines.append(shown(record))
        for depth, line in _lines(unpickled.value):
            lines.append("  " * (depth + 1) + line)
            if len(lines) >= MOST_LINES:
                lines.append("... and more (output truncated)")
                return lines
    for name, tensor in _json_tensors(facts):
        lines.append(f"{shown(name)}: {tensor}")
        if len(lines) >= MOST_LINES:
            lines.append("... and more (output truncated)")
            break
    return lines


def printable(text: str) -> str:
    """A text without anything that a terminal would interpret."""
    return (
        text
        if text.isprintable()
        else "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)
    )


def shown(text: str) -> str:
    """A text without anything that a terminal would interpret, truncated if too long."""
    safe = printable(text[: LONGEST + 1])
    return safe if len(text) <= LONGEST and len(safe) <= LONGEST else f"{safe[:LONGEST]}... ({count_of(len(text), 'character')})"


def _lines(value: Any) -> Iterator[tuple[int, str]]:
    """Yield depth and text of each line. A shared object is expanded once; does not recurse."""
    first, parts = _line(value)
    yield 0, first
    seen = {id(value)}
    stack = [iter(parts or ())]
    while stack:
        for name, part in stack[-1]:
            line, inner = _line(part)
            again = inner is not None and id(part) in seen
            yield len(stack), f"{name}: {line}{' (as above)' if again else ''}"
            if inner is not None and not again:
                seen.add(id(part))
                if len(stack) >= DEEPEST:
                    yield len(stack) + 1, "... (nested deeper)"
                    continue
                stack.append(iter(inner))
                break
        else:
            stack.pop()


def _line(value: Any) -> tuple[str, Parts | None]:
    """The one-line text of a value, and its contents; None if it has none."""
    kind = value.__class__
    if kind is Tensor:
        return _tensor(value), [(name, part) for name, part in (value.parts or {}).items() if part is not None] or None
    if kind is dict or kind is Dict:
        name = value.type.path if kind is Dict else "dict"
        last = [("(attributes)", value.state)] if kind is Dict and value.state else []
        parts = chain(((_key(key), item) for key, item in value.items()), last) if value or last else None
        return f"{shown(name)} of {len(value)}", parts
    if kind in {list, tuple, set, frozenset, Deque, Size}:
        items = list(islice(value, MOST_SIZES))
        if kind is Size or (len(value) <= 8 and all(item.__class__ in {int, float, bool, type(None)} for item in items)):
            name = "torch.Size" if kind is Size else kind.__name__
            return f"{name} {brief(items, LONGEST)}", None
        inner = ((f"[{index}]", item) for index, item in enumerate(value)) if value else None
        return f"{kind.__name__.lower()} of {len(value)}", inner
    if kind is Described:
        return _described(value)
    if kind is str:
        quoted = repr(value[: LONGEST + 1])
        return (quoted if len(quoted) <= LONGEST else f"{quoted[:LONGEST]}... ({count_of(len(value), 'character')})"), None
    if kind in {bytes, bytearray}:
        return f"{kind.__name__} of {len(value)}", None
    if kind is Global:
        return shown(value.path), None
    if kind is Storage:
        part = f", part of {shown(value.root.key)}" if value.root else ""
        return f"storage {shown(value.key)}: {value.dtype} x {value.numel} on {shown(value.location)}{part}", None
    if kind is NumpyArray:
        return f"numpy.ndarray {shown(str(value.dtype))} {brief(list(value.shape))}", None
    if kind is NumpyScalar:
        return f"numpy scalar {shown(str(value.dtype))}", None
    if kind is NumpyDtype:
        return f"numpy.dtype {shown(str(value))}", None
    if kind is Device:
        return f"device {shown(str(value))}", None
    if kind is PersistentId:
        return "persistent id", [("id", value.pid)]
    if kind is ModuleSource:
        return f"class {_target(value.type)} (with its source)", None
    return brief(value, LONGEST), None


def _target(value: Any) -> str:
    """The called function, or the class of the created object."""
    return shown(value.path) if value.__class__ is Global else brief(value, LONGEST)


def _tensor(value: Tensor) -> str:
    shape = ", ".join(map(str, value.shape[:MOST_SIZES]))
    words = ["parameter" if value.parameter else "tensor", value.dtype or "(dtype not stated)", f"[{shape}]"]
    if value.subclass is not None:
        words.append(f"as {_target(value.subclass)}")
    if value.layout != "strided":
        words.append(shown(value.layout))
    if value.device != "cpu":
        words.append(f"on {shown(value.device)}")
    if value.quantizer is not None:
        words.append("quantized")
    bits = {"conj": value.conj, "neg": value.neg, "requires_grad": value.requires_grad and not value.parameter}
    words += [name for name, is_set in bits.items() if is_set]
    if value.storage is not None:
        words.append(f"(storage {shown(value.storage.key)})")
    return " ".join(words)


def _described(value: Described) -> tuple[str, Parts | None]:
    verb = {"reduce": "call to ", "newobj": "", "instance": ""}[value.kind]
    anything = value.args or value.kwargs or value.state is not None or value.items or value.pairs
    return f"{verb}{_target(value.target)}", _inside(value) if anything else None


def _inside(value: Described) -> Iterator[tuple[str, Any]]:
    for index, arg in enumerate(value.args):
        yield f"({index})", arg
    for key, arg in (value.kwargs or {}).items():
        yield f"({_key(key)})", arg
    if value.state.__class__ in {dict, Dict}:
        for key, arg in value.state.items():
            yield f".{_key(key)}", arg
    elif value.state is not None:
        yield "(state)", value.state
    for index, arg in enumerate(value.items or ()):
        yield f"[{index}]", arg
    for key, arg in value.pairs or ():
        yield _key(key), arg


def _key(key: Any) -> str:
    if key.__class__ is str:
        return shown(key) or "''"
    return _line(key)[0] if key.__class__ not in {tuple, Size} else brief(key, LONGEST)


def _json_tensors(facts: Facts) -> Iterator[tuple[str, str]]:
    """Tensors that JSON describes: parameters of TorchScript 1.0 to 1.2, weights of pt2 archives."""
    yield from facts.extra.get("tensors", {}).items()
