"""The remaining budget of one pickle for elements that calls copy and for keys whose hashes it can choose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch_compat.errors import Corrupt, Unsafe
from torch_compat.pickles.values import (
    Described,
    Device,
    Global,
    ModuleSource,
    NumpyArray,
    NumpyDtype,
    NumpyScalar,
    PersistentId,
    Size,
    Storage,
    Tensor,
)

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["UnpicklingBudget"]

MOST_KEY_BITS = 4096  # of an integer in a key: hashing reads all of it each time
KEY_NODES = 200  # in one key, nested tuples counted each time; no real key is larger
SMALL = 1 << 60  # hashes of integers are taken modulo 2**61 - 1: smaller ones differ
TINY = 1 << 31
# hashed by identity, by a secret of the process, or by so few values that chosen collisions gain nothing
SAFE_KEYS = frozenset({
    str, bytes, bool, type(None), float, Global, Storage, Tensor, Described, PersistentId, ModuleSource, Device, NumpyArray,
    NumpyDtype, NumpyScalar,
})  # fmt: skip


class UnpicklingBudget:
    """The remaining budget: elements that calls copy, keys whose hash the pickle can choose, parts of keys."""

    __slots__ = ("copied", "nodes", "weak_keys")

    def __init__(self, copied: int, weak_keys: int, nodes: int) -> None:
        self.copied = copied
        self.weak_keys = weak_keys
        self.nodes = nodes

    def copy(self, count: int) -> None:
        """Charge a copy.

        Raises:
            Unsafe: the budget is spent.
        """
        self.copied -= count
        if self.copied < 0:
            raise Unsafe("copies the same values more often than the limit allows", code="too-large")

    def keys(self, value: Collection[Any]) -> None:
        """Check that all of these can be hashed at a cost proportional to the pickle.

        Raises:
            Corrupt: one has no hash.
            Unsafe: one is too large, or too many have hashes that the pickle can choose.
        """
        if SAFE_KEYS.issuperset(map(type, value)):
            return
        for key in value:
            if key.__class__ not in SAFE_KEYS and self._weak(key):
                self.weak_keys -= 1
                if self.weak_keys < 0:
                    message = "has too many keys with attacker-controlled hashes (large numbers, or tuples of them)"
                    raise Unsafe(message, code="too-large")

    def _weak(self, key: Any) -> bool:
        if key.__class__ is int:
            if -SMALL < key < SMALL:
                return False
            _bounded(key)
            return True
        weak = False
        left = [key]
        nodes = 0
        while left:
            nodes += 1
            if nodes > KEY_NODES:
                raise Unsafe(f"has a key with more than {KEY_NODES} parts", code="too-large")
            part = left.pop()
            kind = part.__class__
            if kind is tuple or kind is Size or kind is frozenset:
                if len(part) > KEY_NODES:
                    raise Unsafe(f"has a key with more than {KEY_NODES} parts", code="too-large")
                left.extend(part)
            elif kind is int:
                if not -TINY < part < TINY:
                    weak = True
                    _bounded(part)
            elif kind is float or kind is complex or kind is range:
                weak = True
            elif kind not in SAFE_KEYS:
                raise Corrupt(f"has an invalid key: it is or contains a value of type {kind.__name__}", code="unhashable")
        self.nodes -= nodes
        if self.nodes < 0:
            raise Unsafe("has too many keys that are tuples", code="too-large")
        return weak


def _bounded(key: int) -> None:
    if key.bit_length() > MOST_KEY_BITS:
        raise Unsafe(f"has an integer of {key.bit_length()} bits in a key; the limit is {MOST_KEY_BITS}", code="too-large")
