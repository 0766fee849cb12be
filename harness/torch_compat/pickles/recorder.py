"""Records what the unpickling machine meets: all names, and everything that restricted unpicklers may refuse.

Globals, and the events of naming them, are cached across pickles: nearly every file uses the same few names.
"""

from __future__ import annotations

from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from typing import TYPE_CHECKING, Any, NamedTuple

from torch_compat.pickles.interpret import REBUILDERS, UnpicklingBudget
from torch_compat.pickles.values import Deque, Described, Dict, Global, NumpyArray, NumpyDtype, Size, Tensor, UnpicklerEvent

if TYPE_CHECKING:
    from torch_compat.pickles.values import ModuleSource, Storage

__all__ = ["LIMITS", "NAMED", "STORAGE", "Notes", "PickleLimits"]

INTERNED = 4096  # globals that are kept from one pickle to the next, if their names are
SHORT = 200  # characters long at most


class PickleLimits(NamedTuple):
    """The limits for one pickle.

    Attributes:
        operations: bytes of opcodes, without their text and bytes arguments: bounds the stack and plain values.
        objects: containers, tensors and descriptions.
        memo: entries of the memo.
        depth: nesting depth of values for a reader that visits each object once.
        copied: elements that calls copy from shared objects; 64 characters count as one.
        weak_keys: keys whose hash a pickle can choose: large integers, tuples of them.
        work: units of work (:mod:`torch_compat.allowance`): bytes of opcodes, and what rare opcodes, objects and names cost beyond that.
        memory: bytes of texts and byte strings, texts twice: in memory they can be four times as long.
        nodes: parts of keys that are tuples, each time they are hashed.
    """

    operations: int = 1 << 26
    objects: int = 1 << 22
    memo: int = 1 << 22
    depth: int = 2000
    copied: int = 1 << 23
    weak_keys: int = 10_000
    work: int = 1 << 29
    memory: int = 1 << 34
    nodes: int = 1 << 23


LIMITS = PickleLimits()


_globals: dict[tuple[str, str], Global] = {}
_lines: list[dict[bytes, tuple[Global, UnpicklerEvent]]] = [{} for _ in range(6)]  # by protocol: up to 2, names are Python 2's


def _global(module: str, name: str) -> Global:
    """The one object for a name; the table is bounded, since names are chosen by files."""
    result = _globals.get((module, name))
    if result is None:
        result = Global(module, name, REBUILDERS.get(f"{module}.{name}"))
        if len(_globals) < INTERNED and len(module) + len(name) <= SHORT:
            _globals[module, name] = result
    return result


def _python3(module: str, name: str) -> tuple[str, str]:
    """``__builtin__.xrange`` of Python 2 becomes ``builtins.range``."""
    if (module, name) in NAME_MAPPING:
        return NAME_MAPPING[module, name]
    return IMPORT_MAPPING.get(module, module), name


_CLASSES: dict[type, Global] = {
    NumpyArray: _global("numpy", "ndarray"),
    NumpyDtype: _global("numpy", "dtype"),
    Size: _global("torch", "Size"),
}
_PARAMETER = _global("torch.nn.parameter", "Parameter")
_TENSOR = _global("torch", "Tensor")


def _class_of(value: Any) -> Any:
    """The class of an object on the stack, as a Global; a text if a pickle cannot name its class."""
    kind = value.__class__
    if kind is Dict or kind is Deque:
        return value.type
    if kind is Tensor:
        return value.subclass if value.subclass.__class__ is Global else _PARAMETER if value.parameter else _TENSOR
    if kind is Described:
        return value.target if value.target.__class__ is Global else "object"
    return _CLASSES.get(kind) or kind.__name__


NAMED = 60  # units of work for a name that was not met before in this pickle
STORAGE = 60  # and for a storage


class Notes:
    """The recorded events, each once."""

    __slots__ = ("arities", "budget", "events", "globals", "keys", "known", "opcodes", "protocol", "seen", "sources", "storages")

    def __init__(self, limits: PickleLimits) -> None:
        self.budget = UnpicklingBudget(limits.copied, limits.weak_keys, limits.nodes)
        self.arities: set[tuple[str, int]] = set()
        self.events: list[UnpicklerEvent] = []
        self.globals: dict[int, Global] = {}  # by identity
        self.keys: set[Any] = set()
        self.known: dict[bytes, Global] = {}
        self.opcodes: set[str] = set()
        self.protocol = 0
        self.seen: dict[Any, Storage] = {}
        self.sources: dict[Any, ModuleSource] = {}
        self.storages: list[Storage] = []

    def event(self, kind: str, subject: Any, key: Any) -> None:
        """Record an event unless one with the same ``key`` was recorded."""
        if (kind, key) not in self.keys:
            self.keys.add((kind, key))
            self.events.append(UnpicklerEvent(kind, subject, self.protocol))

    @property
    def work(self) -> int:
        """Units of work that names and storages cost, beyond the opcodes that name them."""
        return NAMED * len(self.globals) + STORAGE * len(self.storages)

    def named(self, raw: bytes) -> Global:
        """The global of ``module newline name``."""
        lines = _lines[self.protocol]
        known = lines.get(raw)
        if known is None:
            module, _, name = raw.partition(b"\n")
            known = self._named(module.decode(), name.decode())
            if len(lines) < INTERNED and len(raw) <= SHORT:
                lines[raw] = known
        self.known[raw] = known[0]
        return self._noted(*known)

    def _named(self, module: str, name: str) -> tuple[Global, UnpicklerEvent]:
        """The global by its Python 3 name; records that it was named, as spelled."""
        spelled = _global(module, name)
        result = _global(*_python3(module, name)) if self.protocol < 3 else spelled
        return result, UnpicklerEvent("global", spelled, self.protocol)

    def _noted(self, value: Global, event: UnpicklerEvent) -> Global:
        if id(event.subject) not in self.keys:
            self.keys.add(id(event.subject))
            self.events.append(event)  # which keeps it alive, and its identity its own
        self.globals[id(value)] = value
        return value

    def named_as(self, module: str, name: str) -> Global:
        """The global of two texts."""
        return self._noted(*self._named(module, name))

    def called(self, func: Any, args: tuple[Any, ...], called: dict[int, int]) -> None:
        """Record a call of something for the first time, or with a different number of arguments than the last time."""
        if id(func) not in called:
            self.events.append(UnpicklerEvent("reduce", func, self.protocol))  # which keeps it alive, and its identity its own
        called[id(func)] = len(args)
        if func.__class__ is Global and func.rebuild is not None and func.name.startswith("_rebuild"):
            self.arities.add((func.path, len(args)))
            if len(args) == 4 and args[0].__class__ is Global and args[2].__class__ is tuple:  # a function and its arguments
                self.arities.add((args[0].path, len(args[2])))
                called[id(func)] = -1  # to look again the next time

    def target(self, kind: str, value: Any) -> None:
        """Record a change to an object: ``BUILD``, ``APPEND``, ``SETITEM``."""
        result = _class_of(value)
        self.event(kind, result, result)

    def persistent(self, pid: Any) -> None:
        """Record a persistent id that names no storage."""
        kind = pid.__class__.__name__
        if pid.__class__ is tuple and pid:
            first = pid[0]
            kind = f"tuple of {first[:80].decode('latin-1') if first.__class__ is bytes else first if first.__class__ is str else '?'}"[
                :80
            ]
        self.event("persistent", kind, kind)
