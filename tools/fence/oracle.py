"""Detects escapes: memory that no array owns, values that no program may return, and events of Python's audit hooks.

The oracle is independent of the gate. For each array of a tensor, it computes the addresses of the first and last byte in exact integers,
and compares them with the memory of the owner.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.runtime.dtypes import Dtype
from torch_compat.runtime.tensor import OpaqueTensor, Tensor
from torch_compat.runtime.values import Device, EnumMember, Future, NamedTupleValue, ScriptObject

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Outside", "audited", "bounds", "check_value", "inside", "watch"]

PLAIN = {type(None), bool, int, float, complex, str, Tensor, OpaqueTensor, Device, EnumMember, Future, Dtype}
HARMLESS = {
    "compile", "exec", "object.__getattr__", "sys._getframe", "code.__new__", "builtins.id", "gc.collect", "marshal.loads", "time.sleep",
    "function.__new__", "import",
}  # fmt: skip
"""Events caused by the reader itself: it compiles its own code; numpy imports parts of itself, which are checked by name."""
IMPORTED = (
    "numpy",
    "torch_compat",
    "ml_dtypes",
    "itertools",
    "math",
    "functools",
    "warnings",
    "linecache",
    "tokenize",
    "traceback",
    "tests",
    "tools",
)


class Outside(BaseException):
    """Something broke out. No ``except`` of the reader catches it."""


def bounds(array: np.ndarray[Any, Any]) -> tuple[int, int]:
    """The first address that an array can touch, and the address after the last."""
    low = high = array.__array_interface__["data"][0]
    if not array.size:
        return low, low
    for size, step in zip(array.shape, array.strides, strict=True):
        if step < 0:
            low += (size - 1) * step
        else:
            high += (size - 1) * step
    return low, high + array.itemsize


def _memory(array: np.ndarray[Any, Any]) -> tuple[int, int]:
    """The memory of the owner of an array."""
    base: Any = array
    while isinstance(base, np.ndarray) and base.base is not None:
        if not isinstance(base.base, np.ndarray):  # bytes, a bytearray, a mapped file
            if base.base.__class__.__name__ == "DummyArray":  # numpy's as_strided, which keeps a reference to the original array
                base = base.base.base
                continue
            whole = np.frombuffer(base.base, np.uint8)
            start = whole.__array_interface__["data"][0]
            return start, start + whole.nbytes
        base = base.base
    start = base.__array_interface__["data"][0]
    return start, start + base.nbytes


def inside(array: np.ndarray[Any, Any]) -> bool:
    """Whether an array lies within the memory of its owner and holds no references to Python objects."""
    if array.dtype.hasobject:
        return False
    low, high = bounds(array)
    if low == high:
        return True
    first, last = _memory(array)
    return first <= low and high <= last


def watch() -> Callable[[], None]:
    """Check every tensor created in this process until the returned function is called."""
    real = Tensor.__init__

    def made(self: Tensor, *args: Any, **keywords: Any) -> None:
        real(self, *args, **keywords)
        if not inside(self.array):
            raise Outside(f"a tensor of shape {self.array.shape}, strides {self.array.strides} lies outside of its storage")

    def off() -> None:
        Tensor.__init__ = real  # type: ignore[method-assign]

    Tensor.__init__ = made  # type: ignore[method-assign]
    return off


def check_value(value: Any, depth: int = 0, seen: set[int] | None = None) -> None:
    """Check that a value returned by a program is valid for a program.

    Raises:
        Outside: it is not.
    """
    seen = set() if seen is None else seen
    if value.__class__ in PLAIN or id(value) in seen or depth > 200:
        if value.__class__ is Tensor and not inside(value.array):
            raise Outside("a tensor that came out lies outside of its storage")
        return
    seen.add(id(value))
    if value.__class__ in {list, tuple} or isinstance(value, NamedTupleValue):
        for item in value:
            check_value(item, depth + 1, seen)
    elif value.__class__ is dict:
        for key, item in value.items():
            check_value(key, depth + 1, seen)
            check_value(item, depth + 1, seen)
    elif isinstance(value, ScriptObject):
        for name, item in value.__dict__.items():
            if not name.startswith("a_"):
                raise Outside(f"an object has the attribute {name}")
            check_value(item, depth + 1, seen)
    else:
        raise Outside(f"a {type(value).__module__}.{type(value).__qualname__} came out")


class Audit:
    """The audit events raised while a program runs."""

    def __init__(self) -> None:
        self.on = False
        self.heard: list[str] = []
        sys.addaudithook(self.hook)

    def hook(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.on:
            return
        if event == "import" and str(args[0]).split(".")[0].startswith(IMPORTED):
            return
        if event == "open" and (str(args[0]) == "/proc/self/statm" or str(args[0]).startswith("<")):
            return  # the reader reads its own memory; Python looks for the source of code that it cannot compile, under our name for it
        if event not in HARMLESS or event == "import":
            self.heard.append(f"{event} {args!r:.200}")


def audited() -> Audit:
    """Install an audit hook in this process; it cannot be removed."""
    return Audit()
