"""torch.save, tar: the format of torch 0.1 before 0.1.10.

A POSIX tar archive of four members, each a sequence of pickles with numbers between them. Written by torch.save before 0.1.10; read by
torch.load of every release (from 2.6 on only with ``weights_only=False``).

* ``sys_info``: pickled ``protocol_version`` (1000), ``little_endian``, ``type_sizes``
* ``pickle``: the object; a tensor or a storage is the persistent id of its key, a text or a number; the class of a module is the persistent id
  ``(class, file, source)``
* ``storages``: how many, pickled; for each ``(key, location, class)``, pickled, its number of elements (8 bytes, little-endian) and its
  elements; then a pickled list of ``(key, root, offset, number of elements)``: storages that are parts of others
* ``tensors``: how many, pickled; for each ``(key, key of its storage, class)``, pickled, the number of dimensions (4 bytes, and 4 bytes
  without meaning), sizes and strides (8 bytes each) and the offset (8 bytes), all little-endian

The offset of a storage depends on the lengths of the pickles before it, so nothing can be calculated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch_compat.archive import Damage, TarArchive
from torch_compat.errors import Corrupt
from torch_compat.formats.model import Producer, StorageRecord
from torch_compat.pickles import Global, ModuleSource, Storage, Tensor, brief, unpickle
from torch_compat.values.dtypes import ELEMENT_SIZES, storage_class
from torch_compat.words import count_of

if TYPE_CHECKING:
    from torch_compat.archive import Archive
    from torch_compat.formats.model import Facts

__all__ = ["FAMILY", "LAYOUT", "read", "versions"]

LAYOUT, FAMILY = "torch_save_tar", "torch-save"
WHY = "a pickle of unknown length precedes each storage"
MOST_DIMENSIONS = 64
LONGEST_KEY = 64  # bits of a number, bytes of a text of Python 2
VIEW = 20  # units of work for one view


def versions(archive: Archive) -> dict[str, int]:  # noqa: ARG001 - as every format
    """None: the container is the version."""
    return {}


class _Row:
    """Consecutive pickles and numbers."""

    def __init__(self, archive: Archive, record: str) -> None:
        self.data = archive.view(record)
        self.where = f"{archive.path}, record {record!r}"
        self.at = 0
        self.allowance = archive.allowance

    def pickle(self) -> Any:
        """The next pickle."""
        unpickled = unpickle(self.data, self.at, where=self.where, allowance=self.allowance)
        self.at = unpickled.end
        return unpickled.value

    def count(self) -> int:
        """The next pickle, which must state how many items follow."""
        result = self.pickle()
        if not isinstance(result, int) or isinstance(result, bool) or not 0 <= result <= len(self.data):
            raise Corrupt(f"has an invalid count: {brief(result, 40)}", where=self.where, code="bad-count")
        return result

    def numbers(self, count: int, size: int) -> list[int]:
        """Numbers of 4 or 8 bytes."""
        end = self.at + count * size
        if end > len(self.data):
            message = f"ends too early: only {len(self.data) - self.at} of {count_of(count * size, 'byte is present', 'bytes are present')}"
            raise Corrupt(message, where=self.where, code="cut-off")
        results = [int.from_bytes(self.data[at : at + size], "little", signed=True) for at in range(self.at, end, size)]
        self.at = end
        return results


def read(archive: Archive, facts: Facts) -> None:
    """Fill in the facts that the members state.

    Raises:
        ArchiveError: one of them is missing or cannot be read.
    """
    assert isinstance(archive, TarArchive)  # noqa: S101 - the caller has checked the container
    facts.producer = Producer(last="0.1", because=("a tar archive",))
    facts.byteorder = "little"
    where = f"{archive.path}, record 'sys_info'"
    facts.pickles["sys_info"] = unpickle(archive.view("sys_info"), where=where, allowance=archive.allowance)
    facts.extra["sys_info"] = facts.pickles["sys_info"].value
    storages = _storages(archive, facts)
    tensors = _tensors(archive, storages)
    where = f"{archive.path}, record 'pickle'"

    sources: dict[Any, ModuleSource] = {}

    def found_by(pid: Any) -> Any:
        if pid.__class__ is tuple and len(pid) == 3 and pid[0].__class__ is Global:
            texts = [item if isinstance(item, str) else None for item in map(_text, pid[1:])]
            key = (pid[0].path, *texts)
            if key not in sources:
                sources[key] = ModuleSource(pid[0], *texts)
            return sources[key]
        name = pid.decode("latin-1") if isinstance(pid, bytes) and len(pid) <= LONGEST_KEY else _key(pid)
        if name not in tensors and name in storages:
            return storages[name]
        if name not in tensors:
            message = f"names the tensor {brief(pid, 40)}, which record 'tensors' does not contain"
            raise Corrupt(message, where=where, code="missing-tensor")
        return tensors[name]

    facts.pickles["pickle"] = unpickle(archive.view("pickle"), where=where, persistent=found_by, allowance=archive.allowance)


def _storages(archive: TarArchive, facts: Facts) -> dict[str, Storage]:
    row = _Row(archive, "storages")
    start = next(member.data_offset for member in archive.members if member.name == "storages")
    results: dict[str, Storage] = {}
    for _ in range(row.count()):
        stated = row.pickle()
        key, location, kind = stated if isinstance(stated, tuple) and len(stated) == 3 else (None, None, None)
        dtype = storage_class(kind.module, kind.name) if isinstance(kind, Global) else None
        if not isinstance(kind, Global) or dtype is None or _key(key) is None or not isinstance(location, str):
            raise Corrupt(f"has an invalid storage description: {brief(stated)}", where=row.where, code="bad-storage")
        (count,) = row.numbers(1, 8)
        key = _key(key) or ""
        nbytes = count * ELEMENT_SIZES[dtype]
        if not 0 <= nbytes <= len(row.data) - row.at:
            message = f"ends inside storage {key!r}: only {len(row.data) - row.at} of {count_of(nbytes, 'byte is present', 'bytes are present')}"
            archive.damage.append(Damage("cut-off", "storages", message, start + row.at))
            raise Corrupt(message, where=row.where, code="cut-off")
        results[key] = Storage(kind.path, dtype, key, location, count, nbytes)
        facts.storages.append(StorageRecord(key, dtype, nbytes, start + row.at, record="storages", why=WHY, device=location))
        row.at += nbytes
    views = row.pickle()
    if not isinstance(views, list):
        raise Corrupt(
            f"ends with a value of type {type(views).__name__}, expected a list of views", where=row.where, code="bad-storage"
        )
    for view in views:
        archive.allowance.spend(VIEW)
        key, root = None, None
        if isinstance(view, tuple) and len(view) == 4:
            key, root = _key(view[0]), results.get(_key(view[1]) or "")
        if key is None or root is None or not all(isinstance(number, int) for number in view[2:]):
            raise Corrupt(f"has an invalid view description: {brief(view)}", where=row.where, code="bad-storage")
        offset, count = view[2:]
        if not 0 <= offset <= offset + count <= root.numel:
            raise Corrupt(f"describes a view outside its storage: {brief(view)}", where=row.where, code="bad-storage")
        nbytes = count * ELEMENT_SIZES[root.dtype]
        results[key] = Storage(root.type_name, root.dtype, key, root.location, count, nbytes, root, offset)
    return results


def _text(decoder: Any) -> Any:
    """A text of Python 2 is bytes."""
    return decoder.decode("utf-8", "backslashreplace") if isinstance(decoder, bytes) else decoder


def _key(value: Any) -> str | None:
    """The key of a storage or a tensor (text, or an integer of 64 bits) as text; None for anything else."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value) if value.bit_length() <= LONGEST_KEY else None
    return value if isinstance(value, str) else None


def _tensors(archive: Archive, storages: dict[str, Storage]) -> dict[str, Tensor]:
    row = _Row(archive, "tensors")
    results: dict[str, Tensor] = {}
    for _ in range(row.count()):
        stated = row.pickle()
        key, storage_key, kind = stated if isinstance(stated, tuple) and len(stated) == 3 else (None, None, None)
        key, storage_key = _key(key), _key(storage_key)
        if key is None or not isinstance(kind, Global) or storage_key not in storages:
            raise Corrupt(f"has an invalid tensor description: {brief(stated)}", where=row.where, code="bad-tensor")
        dimensions, _ = row.numbers(2, 4)
        if not 0 <= dimensions <= MOST_DIMENSIONS:
            raise Corrupt(f"declares {dimensions} dimensions for tensor {key!r}", where=row.where, code="bad-tensor")
        shape, strides = row.numbers(dimensions, 8), row.numbers(dimensions, 8)
        (offset,) = row.numbers(1, 8)
        if any(size < 0 for size in (*shape, offset)):
            raise Corrupt(f"declares shape {shape} and offset {offset} for tensor {key!r}", where=row.where, code="bad-tensor")
        storage = storages[storage_key]
        results[key] = Tensor(
            storage, storage.dtype, tuple(shape), tuple(strides), offset, requires_grad=False, device=storage.location,
            rebuilt_by=kind.path,
        )  # fmt: skip
    return results
