"""Storages of an archive as arrays over the file, each made once, so that views that share a storage share memory."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np

from torch_compat.archive import ZipArchive
from torch_compat.arrays import elements
from torch_compat.errors import Corrupt, Unsupported
from torch_compat.state.dtypes import array_dtype
from torch_compat.values.dtypes import ELEMENT_SIZES
from torch_compat.words import count_of

if TYPE_CHECKING:
    from torch_compat.archive import Archive
    from torch_compat.formats import Facts, StorageRecord
    from torch_compat.pickles import Storage
    from torch_compat.state.dtypes import Array

__all__ = ["Storages"]

UINT8 = np.dtype(np.uint8)


class Storages:
    """The storages of one archive.

    Parameters:
        archive: open; arrays stay valid after it is closed.
        facts: the facts of its format: where storages are, and their byte order.
        mmap: None to map and copy where necessary, True to raise where a copy is necessary, False to copy everything.
    """

    def __init__(self, archive: Archive, facts: Facts, mmap: bool | None) -> None:
        self.archive = archive
        self.byteorder = facts.byteorder or "little"
        self.mmap = mmap
        self.touched: set[str] = set()
        self._records: dict[str, StorageRecord] = {storage.key: storage for storage in facts.storages}
        self._bytes: dict[str, Array] = {}
        self._turned: dict[tuple[str, int], Array] = {}

    def where(self, key: str) -> str:
        """The location of a storage, for errors."""
        return f"{self.archive.path}, storage {key!r}"

    def absent(self, storage: Storage) -> str | None:
        """Why the archive has no data for a storage; None if it has data.

        Raises:
            Corrupt: the archive has no storage with this key.
        """
        record = self._record(storage)
        if not record.absent:
            return None
        return "the file contains no storages" if record.offset is None else "it was never written (skip_data)"

    def _record(self, storage: Storage) -> StorageRecord:
        key = (storage.root or storage).key
        item = self._records.get(key)
        if item is None:
            raise Corrupt("is referenced by the pickle but is not in the archive", where=self.where(key), code="missing-storage")
        return item

    def bytes_of(self, storage: Storage) -> Array:
        """All bytes of a storage, as stored in the file: uint8, one-dimensional; read-only unless everything is copied.

        Raises:
            Corrupt: its record is missing or damaged, or its size differs from that in the pickle.
            Unsupported: it is compressed, and must not be copied.
        """
        root = storage.root or storage
        result = self._bytes.get(root.key)
        if result is None:
            result = self._bytes[root.key] = self._read(root)
        if len(result) != root.nbytes:
            message = f"has {count_of(len(result), 'byte')}, but the pickle expects {root.nbytes} ({root.numel} of {root.dtype})"
            raise Corrupt(message, where=self.where(root.key), code="size-disagrees")
        if storage is root:
            return result
        start = storage.offset * ELEMENT_SIZES[root.dtype]
        return result[start : start + storage.nbytes]

    def _read(self, root: Storage) -> Array:
        item = self._record(root)
        data: memoryview
        if isinstance(self.archive, ZipArchive):
            record = item.record or ""
            self.touched.add(record)
            if self.mmap and self.archive.member(record).method:
                raise self.needs_copy(root.key, "its record is compressed")
            data = self.archive.view(record)
        else:
            if item.record:
                self.touched.add(item.record)
            self.touched.add(root.key)
            start = item.offset or 0
            data = self.archive.data[start : start + item.nbytes]
        result: Array = elements(data, UINT8)
        if self.mmap is False:
            return result.copy()
        result.flags.writeable = False
        return result

    def needs_copy(self, key: str, why: str) -> Unsupported:
        """The error to raise if a copy is needed but not allowed."""
        message = f"cannot be mapped: {why}"
        return Unsupported(message, where=self.where(key), hint="remove mmap=True", code="not-mappable")

    def in_order(self, storage: Storage, dtype: str) -> tuple[Array, np.dtype[np.generic]]:
        """The bytes of a storage in a byte order for which numpy has a dtype, and that dtype.

        Parameters:
            dtype: a dtype for which :func:`~torch_compat.state.dtypes.is_raw` is false; may differ from that of the storage.
        """
        data = self.bytes_of(storage)
        result = array_dtype(dtype, self.byteorder)
        if result is not None:
            return data, result
        native = array_dtype(dtype, sys.byteorder)
        assert native is not None  # noqa: S101 - every machine has the dtype in its native order
        if self.mmap:
            raise self.needs_copy((storage.root or storage).key, f"{dtype} must be converted to the byte order of this machine")
        return self._turn(storage, data, native.itemsize), native

    def _turn(self, storage: Storage, data: Array, size: int) -> Array:
        key = (storage.root or storage).key, size
        if storage.root is not None:
            key = f"{key[0]}/{storage.offset}", size
        turned = self._turned.get(key)
        if turned is None:
            whole = len(data) - len(data) % size
            turned = data.copy()
            turned[:whole] = data[:whole].reshape(-1, size)[:, ::-1].reshape(-1)
            turned.flags.writeable = self.mmap is False
            self._turned[key] = turned
        return turned
