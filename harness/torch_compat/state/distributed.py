"""Read a distributed checkpoint: the nested state dict, with every tensor whole, as a NumPy array.

A tensor stored in one part is a view of the mapped file, as :func:`torch_compat.load_state` returns it; a tensor stored in several parts is
assembled in memory. Parts are opened before anything is allocated, so a large declared shape alone allocates nothing.
"""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.allowance import Allowance
from torch_compat.archive import ZipArchive
from torch_compat.archive.base import Mapped, close, read_raw
from torch_compat.arrays import elements
from torch_compat.errors import Corrupt, Unsupported
from torch_compat.formats import Facts, torch_save_zip
from torch_compat.formats.distributed import METADATA, entry_archive, read_metadata, shown
from torch_compat.state.convert import Converter
from torch_compat.state.damage import refuse_damage
from torch_compat.state.storages import UINT8, Storages
from torch_compat.words import count_of

if TYPE_CHECKING:
    from torch_compat.archive.base import Raw
    from torch_compat.formats.distributed import CheckpointEntry, Shard
    from torch_compat.pickles import Storage
    from torch_compat.state.dtypes import Array

__all__ = ["load_checkpoint"]


def load_checkpoint(folder: str, *, mmap: bool | None = None, with_types: bool = False) -> dict[Any, Any]:
    """Return the contents of a distributed checkpoint.

    Parameters:
        folder: the directory that holds ``.metadata``.
        mmap: as in :func:`torch_compat.load_state`; True refuses tensors that are stored in several parts.
        with_types: as in :func:`torch_compat.load_state`; refused for tensors stored in several parts, which have no storage of their own.

    Raises:
        UsageError: a file cannot be opened.
        Corrupt: the metadata or an entry is damaged, or a part is missing.
        Unsafe: a pickle exceeds its resource limits.
        Unsupported: an entry is compressed, or numpy cannot represent an array.
    """
    reader = _Reader(folder, mmap, with_types)
    try:
        return reader.read()
    finally:
        reader.close()


class _Shared(Storages):
    """The storages of an entry: checked in a copy of the entry, and returned as views of the mapped file."""

    def __init__(self, archive: ZipArchive, facts: Facts, mmap: bool | None, raw: Raw, start: int) -> None:
        super().__init__(archive, facts, mmap)
        self._raw = raw
        self._start = start

    def _read(self, root: Storage) -> Array:
        result = super()._read(root)
        assert isinstance(self.archive, ZipArchive)  # noqa: S101 - an entry is one
        member = self.archive.member(self._record(root).record or "")
        if self.mmap is False or member.method or not isinstance(self._raw, Mapped):
            return result
        start = self._start + member.data_offset
        mapped: Array = elements(memoryview(self._raw)[start : start + len(result)], UINT8)
        mapped.flags.writeable = False
        return mapped


class _Reader:
    """The files of one checkpoint while it is read."""

    def __init__(self, folder: str, mmap: bool | None, with_types: bool) -> None:
        self.folder = folder
        self.mmap = mmap
        self.with_types = with_types
        size = os.stat(os.path.join(folder, METADATA)).st_size  # noqa: PTH116, PTH118
        self.allowance = Allowance.to_load(size)
        self.raws: dict[str, Raw] = {}

    def close(self) -> None:
        """Release the files; arrays that were returned keep their mappings."""
        for raw in self.raws.values():
            close(raw)

    def read(self) -> dict[Any, Any]:
        """Return all values, under the keys that lead to them."""
        result = read_metadata(self.folder, self.allowance)
        values: dict[Any, Any] = {}
        lists: list[tuple[dict[Any, Any], Any]] = []
        for entry in result.entries:
            if entry.missing or not entry.shards:
                where = os.path.join(self.folder, METADATA)  # noqa: PTH118
                raise Corrupt(f"has no location for {shown(entry.name)} or a part of it", where=where, code="missing-shard")
            value = self._value(entry)
            try:
                _put(values, entry.path, value, lists)
            except TypeError:
                raise self._wrong(entry, "is nested in a value that is not a dict") from None
        for holder, key in reversed(lists):
            holder[key] = _listed(holder[key])
        return values

    def _wrong(self, entry: CheckpointEntry, text: str) -> Corrupt:
        return Corrupt(f"{shown(entry.name)} {text}", where=self.folder, code="bad-metadata")

    def _value(self, entry: CheckpointEntry) -> Any:
        if entry.shape is None:
            return self._object(entry.shards[0])
        parts = [self._object(shard) for shard in entry.shards]
        if len(parts) == 1 and entry.shards[0].sizes == entry.shape:
            self._check(entry, entry.shards[0], parts[0])
            return parts[0]
        return self._assembled(entry, parts)

    def _assembled(self, entry: CheckpointEntry, parts: list[Any]) -> Array:
        """Assemble a tensor from its parts; nothing is allocated before the parts have been checked."""
        if self.mmap:
            message = f"{shown(entry.name)} is stored in {count_of(len(parts), 'part')} and cannot be mapped as one array"
            raise Unsupported(message, where=self.folder, hint="remove mmap=True", code="not-mappable")
        for shard, part in zip(entry.shards, parts, strict=True):
            self._check(entry, shard, part)
            if not isinstance(part, np.ndarray) or part.dtype != parts[0].dtype:
                raise Unsupported(f"{shown(entry.name)} has parts that are not plain arrays of one dtype", where=self.folder)
        assert entry.shape is not None  # noqa: S101 - of a tensor
        whole: Array = np.empty(entry.shape, parts[0].dtype)  # as many elements as its parts have in total
        filled = np.zeros(entry.shape, np.bool_)
        for shard, part in zip(entry.shards, parts, strict=True):
            box = tuple(slice(first, first + size) for first, size in zip(shard.start or (), shard.sizes or (), strict=True))
            if filled[box].any():
                raise self._wrong(entry, f"has parts that overlap at {shard.start}")
            whole[box], filled[box] = part, True
        whole.flags.writeable = self.mmap is False
        return whole

    def _check(self, entry: CheckpointEntry, shard: Shard, part: Any) -> None:
        """Make sure that a part matches the metadata."""
        shape = tuple(getattr(part, "shape", ()))
        if shape != shard.sizes or not hasattr(part, "shape"):
            message = f"contains a part of {shown(entry.name)} with the shape {shape}, but the metadata states {shard.sizes}"
            file = os.path.join(self.folder, shard.file)  # noqa: PTH118
            raise Corrupt(message, where=f"{file}, entry at {shard.offset}", code="size-disagrees")

    def _object(self, shard: Shard) -> Any:
        """Return the contents of an entry."""
        raw = self.raws.get(shard.file)
        if raw is None:
            raw = self.raws[shard.file] = read_raw(os.path.join(self.folder, shard.file))  # noqa: PTH118
            self.allowance.work += Allowance.to_load(len(raw)).work
            self.allowance.expanded += Allowance.to_load(len(raw)).expanded
        with entry_archive(raw, self.folder, shard, self.allowance) as archive:
            facts = Facts(
                archive.path, shard.length, names=archive.names, records=frozenset(archive.names), damage=archive.damage
            )
            torch_save_zip.read(archive, facts)
            storages = _Shared(archive, facts, self.mmap, raw, shard.offset)
            result = Converter(storages, with_types=self.with_types).convert(facts.pickles["data.pkl"].value)
            refuse_damage(archive, storages.touched | {"data.pkl", "byteorder"})
            return result


class _Indexed(dict[Any, Any]):
    """A list that is being filled: its values keyed by index."""


def _put(values: dict[Any, Any], path: tuple[Any, ...], value: Any, lists: list[tuple[dict[Any, Any], Any]]) -> None:
    """Set a value under the keys that lead to it; a number below a key is an index of a list.

    Raises:
        TypeError: something on the path is neither a dict nor a list.
    """
    at = values
    for key, following in itertools.pairwise(path):
        if key not in at:
            at[key] = _Indexed() if following.__class__ is int else {}
            if following.__class__ is int:
                lists.append((at, key))
        at = at[key]
        if not isinstance(at, dict) or isinstance(at, _Indexed) != (following.__class__ is int):
            raise TypeError
    at[path[-1]] = value


def _listed(value: Any) -> Any:
    """Turn values keyed by index into a list, if the indices are complete; otherwise return the dict."""
    if set(value) == set(range(len(value))):
        return [value[index] for index in range(len(value))]
    return dict(value)
