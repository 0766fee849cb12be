"""The iteration order of dicts in 1.1 and 1.2, and of sets of numbers up to 2.1: the order of their hash tables.

Dicts are ``std::unordered_map`` of the GNU library in 1.1 and ``ska::flat_hash_map`` in 1.2. From 1.2 to 1.5 iteration sorts by key; 1.6
and newer keep the insertion order. Only tables that are filled once and not changed are modeled: attributes of modules, and the sets in
which ``_unique`` finds distinct elements.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from torch_compat.errors import Unsupported

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["MOST_IN_SET", "flat_hash_map", "number_hash", "text_hash", "unordered_map", "unordered_set"]

WORD = (1 << 64) - 1
# Bucket counts of the GNU library as a table grows from its first 11 buckets
PRIMES = (11, 23, 47, 97, 199, 409, 823, 1741, 3469, 6949, 14033, 28411, 57557, 116731, 236897, 480881, 976369, 1982627, 4026031)
OF_SETS = (
    1, 2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97, 103, 109, 113, 127, 137, 139, 149, 157, 167,
    179, 193, 199, 211, 227, 241, 257, 277, 293, 313, 337, 359, 383, 409, 439, 467, 503, 541, 577, 619, 661, 709, 761, 823, 887, 953, 1031,
)  # fmt: skip
"""Bucket counts of the GNU library; a set uses the first one large enough for all its initial elements."""
MOST_IN_SET = OF_SETS[-1]
FIBONACCI = 11400714819323198485  # 2**64 divided by the golden ratio


def text_hash(text: str) -> int:
    """The 64-bit ``std::hash<std::string>`` of a string whose characters stand for bytes."""
    return _bytes_hash(text.encode("latin-1"))


def _bytes_hash(data: bytes) -> int:
    """MurmurHash64A with the GNU library's seed."""
    mul = 0xC6A4A7935BD1E995
    value = 0xC70F6907 ^ (len(data) * mul & WORD)
    whole = len(data) & ~7
    for (word,) in struct.iter_unpack("<Q", data[:whole]):
        mixed = word * mul & WORD
        mixed = (mixed ^ (mixed >> 47)) * mul & WORD
        value = (value ^ mixed) * mul & WORD
    if len(data) & 7:
        value = (value ^ int.from_bytes(data[whole:], "little")) * mul & WORD
    value = (value ^ (value >> 47)) * mul & WORD
    return value ^ (value >> 47)


def _hash(key: Any, *, bits: int) -> int:
    if key.__class__ is str:
        return text_hash(key)
    if key.__class__ is float:
        # std::hash<double>: 0 for both zeros; otherwise the same hash of the bytes
        return 0 if key == 0 else _bytes_hash(struct.pack("<d", key))
    half = 1 << (bits - 1)
    return ((int(key) + half) % (1 << bits) - half) & WORD


def unordered_map(keys: list[Any]) -> list[Any]:
    """The iteration order of 1.1 for keys inserted in the given order."""
    if len(keys) > MOST_KEYS:
        raise Unsupported(
            f"the reference reader reproduces the dictionary order of 1.1 only for up to {MOST_KEYS} keys", code="value"
        )
    size = PRIMES[0]
    listed: list[tuple[int, Any]] = []
    for count, key in enumerate(keys):
        if count + 1 > size:
            size = next(prime for prime in PRIMES if prime > 2 * size - 1)
            old, listed = listed, []
            for hashed, item in old:
                _into_bucket(listed, hashed, item, size)
        _into_bucket(listed, _hash(key, bits=32), key, size)
    return [key for _, key in listed]


def _into_bucket(listed: list[tuple[int, Any]], hashed: int, key: Any, size: int) -> None:
    """Insert a node: before the nodes of its bucket, or at the front if the bucket is new."""
    bucket = hashed % size
    place = next((n for n, (other, _) in enumerate(listed) if other % size == bucket), 0)
    listed.insert(place, (hashed, key))


def unordered_set(keys: Sequence[float], hashes: Sequence[int]) -> list[int]:
    """The indices of the distinct keys in the iteration order of a set created from all keys at once; NaN differs from itself.

    Parameters:
        keys: at most :data:`MOST_IN_SET`.
    """
    size = next(size for size in OF_SETS if size >= len(keys))
    seen: set[float] = set()
    buckets: dict[int, list[int]] = {}
    for place, (key, hashed) in enumerate(zip(keys, hashes, strict=True)):
        if key not in seen:
            seen.add(key)
            buckets.setdefault(hashed % size, []).append(place)
    return [item for bucket in reversed(buckets.values()) for item in reversed(bucket)]


def number_hash(number: float, form: str) -> int:
    """``std::hash`` of a number: an integer hashes to itself, a floating-point number is hashed by its bytes.

    Parameters:
        form: the :mod:`struct` format of floating-point numbers, ``<f`` or ``<d``.
    """
    if number.__class__ is not float:
        return int(number) & WORD
    return _bytes_hash(struct.pack(form, number)) if number else 0


MOST_SLOTS = 1 << 10  # slots per key
MOST_KEYS = 1 << 14  # keys of a dict, since finding the order takes quadratic time


class _Flat:
    """Robin Hood hashing with linear probing, as in ``ska::flat_hash_map``: 2**n slots and a few more at the end."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.longest = max(4, slots.bit_length() - 1)
        self.entries: list[tuple[int, Any] | None] = [None] * (slots + self.longest)
        self.count = 0

    def insert(self, key: Any) -> bool:
        """Insert a key; returns False if the table has to grow first."""
        if self.slots == 0 or (self.count + 1) * 2 > self.slots:
            return False
        at = (FIBONACCI * _hash(key, bits=64) & WORD) >> (64 - (self.slots.bit_length() - 1))
        kept = list(self.entries)
        distance = 0
        while True:
            if distance == self.longest:
                self.entries = kept
                return False
            entry = self.entries[at]
            if entry is None:
                self.entries[at] = (distance, key)
                self.count += 1
                return True
            if entry[0] < distance:
                self.entries[at] = (distance, key)
                distance, key = entry
            at += 1
            distance += 1

    def keys(self) -> list[Any]:
        return [entry[1] for entry in self.entries if entry is not None]


def flat_hash_map(keys: list[Any]) -> list[Any]:
    """The iteration order of 1.2 for keys inserted in the given order."""
    table = _Flat(0)
    for key in keys:
        while not table.insert(key):
            table = _grown(table)
    return table.keys()


def _grown(table: _Flat) -> _Flat:
    slots = max(4, 2 * table.slots)
    while slots < MOST_SLOTS * (table.count + 1):  # with adversarial keys, the table of 1.2 grows until memory is exhausted
        flat = _Flat(slots)
        if all(flat.insert(key) for key in table.keys()):  # noqa: SIM118 - not a dictionary
            return flat
        slots *= 2
    raise Unsupported(
        "the reference reader cannot determine the order of a dictionary whose keys were chosen to collide", code="value"
    )
