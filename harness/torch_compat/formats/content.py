"""The content of an archive, without the parts that vary with each write.

Two archives written by the same release from the same recipe have the same content digest, though their bytes may
differ in:

* the time stamps that 1.0 to 1.3 put into zip headers,
* ``.data/serialization_id``, a hash over checksums of members in the order of writing,
* storage keys: memory addresses in stacked pickles of every release, in zip archives of 1.4 to 1.6, and in packages
  of 1.8 and 1.9; with them the order of the storages,
* the address of each scripted module in a package,
* the random id of each act of saving in ``.metadata`` of a distributed checkpoint.

Exported programs also contain texts about the process that exported them: the line of each statement in the source, which torch takes from
the running frame and which may be that of the function, and addresses of graphs. They are part of the digest; :func:`same_content`
disregards them.

Storage keys are replaced by the order in which the pickle first names them.
"""

from __future__ import annotations

import hashlib
import io
import re
from typing import TYPE_CHECKING, Any

from torch_compat.allowance import Allowance
from torch_compat.archive import Archive, open_archive
from torch_compat.archive.base import close, read_raw
from torch_compat.archive_files import sizes
from torch_compat.errors import Corrupt, HarnessError
from torch_compat.formats.distributed import METADATA, entry_archive, is_checkpoint, read_metadata, shown
from torch_compat.pickles import PersistentId, unpickle
from torch_compat.pickles.interpret import storage_of
from torch_compat.pickles.opcodes import opcodes
from torch_compat.values.dtypes import ELEMENT_SIZES
from torch_compat.words import count_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from torch_compat.formats.distributed import Shard
    from torch_compat.pickles import Storage, Unpickled

__all__ = ["content_digest", "same_content"]

# torch.save of 1.4 puts storages into tensors/.
STORAGE = re.compile(r"(?:data|tensors)/([^/]+)|\.data/([^/]+)\.storage")
ADDRESS_DIGITS = 9  # a shorter key is a counter of storages
VARYING = frozenset({".data/serialization_id"})
_PROGRAM = re.compile(r"models/[^/]+\.json|serialized_exported_program\.json")
"""Records that hold an exported program."""
_EXPORTING = re.compile(rb"""(\.py[\\"]+, line |graph_id[\\"]+: )[0-9]+""")
"""Lines of the source and addresses of graphs, in the strings of an exported program."""
OPCODE = 20  # units of work to write an opcode
BATCH = 1 << 12  # opcodes that are written between two payments
TEXTS = frozenset({str, bytes, bytearray})
ESCAPED = 4  # characters that stand for one byte
DECIMAL_BITS = 4096  # of an integer written in decimal: Python refuses very long ones

Part = tuple[str, bytes | memoryview]


def content_digest(path: Path) -> str:
    """The SHA-256, in hex, of the content of an archive. Nothing that it names is imported or called.

    Raises:
        Corrupt: the archive contradicts itself.
        Unsafe: reading it would cost more than is allowed for a file of its size, or a pickle in it needs something that only the reading
            process could provide.
        Unsupported: it is not an archive that PyTorch writes, or a part of it is of an unknown kind.
    """
    return _digest(path)


def same_content(path: Path, other: Path) -> bool:
    """Whether two archives have the same content, apart from what exported programs say about the process that exported them.

    Raises:
        Corrupt, Unsafe, Unsupported: as :func:`content_digest`.
    """
    return content_digest(path) == content_digest(other) or _digest(path, _without_process) == _digest(other, _without_process)


def _without_process(parts: list[Part]) -> list[Part]:
    return [(name, _EXPORTING.sub(rb"\1", bytes(data)) if _PROGRAM.fullmatch(name) else data) for name, data in parts]


def _digest(path: Path, changed: Callable[[list[Part]], list[Part]] = list) -> str:
    try:
        if is_checkpoint(str(path)):
            return _joined(_checkpoint_parts(path))
        with open_archive(path) as archive:
            return _sound(archive, changed)
    except HarnessError as error:
        error.where = error.where or str(path)
        raise


def _sound(archive: Archive, changed: Callable[[list[Part]], list[Part]] = list) -> str:
    """The digest of an archive, which must not be damaged."""
    parts = changed(_parts(archive))
    archive.verify()
    if archive.damage:
        damage = archive.damage[0]
        where = f"{archive.path}, record {damage.record!r}" if damage.record else archive.path
        raise Corrupt(damage.detail, where=where, code=damage.code)
    return _joined(parts)


def _joined(parts: list[Part]) -> str:
    total = hashlib.sha256()
    for name, data in sorted(parts, key=lambda part: part[0]):
        total.update(f"{name}\0{len(data)}\0".encode())
        total.update(data)
    return total.hexdigest()


def _checkpoint_parts(folder: Path) -> list[Part]:
    """The metadata of a checkpoint without the ids of saving and loading, and the digest of each entry of its files."""
    held = sizes(folder)
    allowance = Allowance.to_inspect(sum(held.values()))
    checkpoint = read_metadata(str(folder), allowance)
    with Archive(str(folder / METADATA), read_raw(str(folder / METADATA)), "pickle", allowance=allowance) as archive:
        keys = _StorageKeys(archive)
        keys.order = dict.fromkeys(checkpoint.ids, 0)
        parts: list[Part] = [(METADATA, keys.canonical(bytes(archive.data)))]
    by_file: dict[str, list[Shard]] = {}
    for entry in checkpoint.entries:
        if entry.missing:
            raise Corrupt(f"a part of {shown(entry.name)} is not stored anywhere", where=str(folder), code="missing-shard")
        for shard in entry.shards:
            by_file.setdefault(shard.file, []).append(shard)
    for file in held.keys() ^ {METADATA, *by_file}:
        message = f"no entry in {METADATA} refers to {file}" if file in held else f"the file {file} does not exist"
        raise Corrupt(message, where=str(folder), code="unlisted-file" if file in held else "missing-file")
    for file, shards in by_file.items():
        raw = read_raw(str(folder / file))
        try:
            for shard in shards:
                with entry_archive(raw, str(folder), shard, allowance) as inner:
                    parts.append((f"{file}@{shard.offset:020}", _sound(inner).encode()))
        finally:
            close(raw)
    return parts


def _parts(archive: Archive) -> list[Part]:
    if archive.container == "stream":
        return _stream_parts(archive)
    if archive.container == "zip":
        return _zip_parts(archive)
    return [("bytes", archive.data)]


def _zip_parts(archive: Archive) -> list[Part]:
    names = dict.fromkeys(name for name in archive.names if name not in VARYING)
    keys = _StorageKeys(archive)
    pickles = _pickles(names.keys())
    for name in pickles:
        keys.read(archive.view(name), where=f"{archive.path}, record {name!r}")
    if "data.pkl" not in names and not keys.hold_addresses():
        pickles, keys = [], _StorageKeys(archive)
    parts: list[Part] = []
    for name in names:
        key = _storage_key(name)
        if key in keys.order:
            parts.append((f"data/#{keys.order[key]}", archive.view(name)))
        elif name in pickles:
            parts.append((name, keys.canonical(archive.record(name))))
        else:
            parts.append((name, archive.view(name)))
    return parts


def _pickles(names: Collection[str]) -> list[str]:
    """The records that contain storage keys: ``data.pkl``, or the pickles of a package."""
    if "data.pkl" in names:
        return ["data.pkl"]
    if "extern_modules" in names or ".data/extern_modules" in names:
        return sorted(name for name in names if name.endswith(".pkl"))
    return []


def _storage_key(record: str) -> str:
    """The key of the storage in a record; empty if it is not a storage."""
    match = STORAGE.fullmatch(record)
    return match[1] or match[2] if match else ""


def _stream_parts(archive: Archive) -> list[Part]:
    data, path = archive.data, archive.path
    keys = _StorageKeys(archive)
    parts: list[Part] = []
    end = 0
    for name in ("magic", "protocol", "system", "object"):
        result = keys.read(data, end, where=f"{path}, {name}")
        end = result.end
        parts.append((name, keys.canonical(bytes(data[result.start : end]))))
    listed = keys.read(data, end, where=f"{path}, keys")
    end = listed.end
    if not isinstance(listed.value, list) or any(not isinstance(key, str) or key not in keys.order for key in listed.value):
        raise Corrupt("lists storages that the object does not reference", where=path)
    for key in listed.value:
        start = end + 8
        size = int.from_bytes(data[end:start], "little") * ELEMENT_SIZES[keys.dtypes[key]]
        end = start + size
        if end > len(data):
            left = max(len(data) - start, 0)
            raise Corrupt(
                f"ends inside storage {key!r}: only {left} of {count_of(size, 'byte is present', 'bytes are present')}",
                where=path,
                code="cut-off",
            )
        parts.append((f"storage/#{keys.order[key]}", data[start:end]))
    if end < len(data):
        raise Corrupt("has bytes after its last storage", where=path)
    return parts


class _StorageKeys:
    """The storage keys that the pickles of an archive name, in the order of first use.

    Attributes:
        order: the number of each key.
        dtypes: the dtype of the storage that each key names.
        objects: objects that packages name by the address of a Python object, numbered the same way.
    """

    def __init__(self, archive: Archive) -> None:
        self.allowance = archive.allowance
        self.order: dict[str, int] = {}
        self.dtypes: dict[str, str] = {}
        self.objects: dict[int, int] = {}

    def hold_addresses(self) -> bool:
        """Whether a name is a memory address rather than a counter."""
        return bool(self.objects) or any(len(key) >= ADDRESS_DIGITS for key in self.order)

    def read(self, data: bytes | memoryview, start: int = 0, *, where: str) -> Unpickled:
        """Read one pickle, and record the keys that it names.

        Raises:
            Corrupt: it contradicts itself.
            Unsafe: it costs more than is allowed.
            Unsupported: it states an unknown protocol.
        """
        seen: dict[Any, Storage] = {}

        def persistent(pid: Any) -> Any:
            if (
                pid.__class__ is tuple and pid and (pid[0] == "storage" or pid[0] == b"storage")
            ):  # it may be a list, which is unhashable
                storage = storage_of(pid, seen, [])
                root = storage.root or storage
                key = root.key.removesuffix(".storage")  # of TorchScript in a package
                self.order.setdefault(key, len(self.order))
                self.dtypes[key] = root.dtype
                return storage
            if pid.__class__ is tuple and len(pid) > 1 and pid[0] == "reduce_package" and pid[1].__class__ is int:
                self.objects.setdefault(pid[1], len(self.objects))
            return PersistentId(pid)

        return unpickle(data, start, where=where, persistent=persistent, allowance=self.allowance)

    def canonical(self, data: bytes) -> bytes:
        """The opcodes of a pickle that was read, one per line, with storage keys replaced.

        Raises:
            Unsafe: there are more than allowed for a file of this size.
        """
        written = io.BytesIO()
        paid = 0
        for count, (name, argument) in enumerate(opcodes(data), 1):
            if count % BATCH == 0:
                self.allowance.spend(OPCODE * BATCH)
                self.allowance.expand(written.tell() - paid)
                paid = written.tell()
            if argument.__class__ in TEXTS and len(argument) > BATCH:
                self.allowance.expand(ESCAPED * len(argument))
            if name == "FRAME":  # its length counts the digits of the keys
                continue
            if argument.__class__ is str and argument.removesuffix(".storage") in self.order:
                shown = f"#{self.order[argument.removesuffix('.storage')]}"
            elif name == "LONG1" and argument in self.objects:
                shown = f"#{self.objects[argument]}"
            elif argument.__class__ is int and argument.bit_length() > DECIMAL_BITS:
                shown = hex(argument)
            else:
                shown = repr(argument)
            written.write(f"{name} {shown}\n".encode())
        return written.getvalue()[:-1]
