"""What an archive says, apart from what varies each time it is written.

Two archives written by the same release from the same recipe have the same content digest, though their bytes may
differ in:

* the time stamps that 1.0 to 1.3 put into zip headers,
* ``.data/serialization_id``, a hash over checksums of members in the order of writing,
* storage keys: memory addresses in stacked pickles of every release, in zip archives of 1.4 to 1.6, and in packages
  of 1.8 and 1.9; with them the order of the storages,
* the address of each scripted module in a package.

Storage keys are replaced by the order in which the pickle first names them.
"""

from __future__ import annotations

import hashlib
import io
import pickle  # noqa: TID251 - of what `produce` has just written, with a find_class that finds nothing
import pickletools
import re
from typing import TYPE_CHECKING, Any

from torch_compat.archive import open_archive
from torch_compat.errors import Corrupt, Unsafe

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["content_digest"]

# What the standard library raises at pickles that contradict themselves.
PICKLE_ERRORS = (
    pickle.UnpicklingError, EOFError, LookupError, AttributeError, TypeError, ValueError, OverflowError, RecursionError,
    MemoryError,
)  # fmt: skip
# torch.save of 1.4 puts storages into tensors/.
STORAGE = re.compile(r"(?:data|tensors)/([^/]+)|\.data/([^/]+)\.storage")
ADDRESS_DIGITS = 9  # a key that is shorter counts storages
VARYING = frozenset({".data/serialization_id"})
ELEMENT_SIZES = {
    "BoolStorage": 1, "ByteStorage": 1, "CharStorage": 1, "ShortStorage": 2, "HalfStorage": 2, "BFloat16Storage": 2,
    "IntStorage": 4, "FloatStorage": 4, "LongStorage": 8, "DoubleStorage": 8, "ComplexFloatStorage": 8,
    "ComplexDoubleStorage": 16, "UntypedStorage": 1, "QInt8Storage": 1, "QUInt8Storage": 1, "QInt32Storage": 4,
    "QUInt4x2Storage": 1, "QUInt2x4Storage": 1,
}  # fmt: skip


def content_digest(path: Path) -> str:
    """SHA-256, in hex, over the content of an archive. Nothing that it names is imported or called.

    Raises:
        Corrupt: the archive contradicts itself.
        Unsafe: a pickle in it asks for what the reading process has registered (``copyreg.add_extension``).
    """
    archive = open_archive(path)
    if archive.container == "stream":
        parts = _stream_parts(path.read_bytes(), path)
    elif archive.container == "zip":
        records = {name: archive.record(name) for name in archive.names if name not in VARYING}
        parts = _zip_parts(records, path)
    else:
        parts = [("bytes", path.read_bytes())]
    archive.verify()
    if archive.damage:
        damage = archive.damage[0]
        where = f"{path}, record {damage.record!r}" if damage.record else str(path)
        raise Corrupt(damage.detail, where=where, code=damage.code)
    total = hashlib.sha256()
    for name, data in parts:
        total.update(f"{name}\0{len(data)}\0".encode() + data)
    return total.hexdigest()


def _zip_parts(records: dict[str, bytes], path: Path) -> list[tuple[str, bytes]]:
    keys = _StorageKeys(path)
    pickles = _pickles(records)
    for name in pickles:
        keys.read(io.BytesIO(records[name]))
    if "data.pkl" not in records and not keys.hold_addresses():
        pickles, keys = [], _StorageKeys(path)
    parts = []
    for name, data in records.items():
        key = _storage_key(name)
        if key in keys.order:
            parts.append((f"data/#{keys.order[key]}", data))
        elif name in pickles:
            parts.append((name, keys.canonical(data)))
        else:
            parts.append((name, data))
    return sorted(parts)


def _pickles(records: dict[str, bytes]) -> list[str]:
    """The records in which storage keys stand: ``data.pkl``, or whatever was pickled into a package."""
    if "data.pkl" in records:
        return ["data.pkl"]
    if "extern_modules" in records or ".data/extern_modules" in records:
        return sorted(name for name in records if name.endswith(".pkl"))
    return []


def _storage_key(record: str) -> str:
    """The key of the storage that a record holds; empty if it is none."""
    found = STORAGE.fullmatch(record)
    return found[1] or found[2] if found else ""


def _stream_parts(data: bytes, path: Path) -> list[tuple[str, bytes]]:
    stream = io.BytesIO(data)
    keys = _StorageKeys(path)
    parts = []
    for name in ("magic", "protocol", "system", "object"):
        start = stream.tell()
        keys.read(stream)
        parts.append((name, keys.canonical(data[start : stream.tell()])))
    listed = keys.read(stream)
    if not isinstance(listed, list) or any(not isinstance(key, str) or key not in keys.order for key in listed):
        raise Corrupt("lists storages that its object does not name", where=str(path))
    for key in listed:
        length = stream.read(8)
        size = int.from_bytes(length, "little") * keys.element_sizes[key]
        left = len(data) - stream.tell()
        if len(length) < 8 or size > left:
            raise Corrupt(f"ends within storage {key!r}: {left} bytes are left of {size}", where=str(path), code="cut-off")
        parts.append((f"storage/#{keys.order[key]}", stream.read(size)))
    if stream.read(1):
        raise Corrupt("has bytes behind its last storage", where=str(path))
    return sorted(parts)


class _Inert(dict[Any, Any]):
    """Stands for whatever a pickle names. Takes anything, does nothing."""

    def __init__(self, *_: object) -> None:
        super().__init__()

    def __call__(self, *_: object) -> _Inert:
        return _Inert()

    def __hash__(self) -> int:  # type: ignore[override]  # it may be a key: bytes are a call in old pickles
        return id(self)

    def __setstate__(self, _: object) -> None:
        pass

    append = extend = add = __setstate__  # what is put into a deque or a set


class _StorageKeys:
    """The storage keys that pickles name, in the order of their first naming."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.order: dict[str, int] = {}
        self.element_sizes: dict[str, int] = {}
        self.objects: dict[int, int] = {}  # what packages name by the address of a Python object, in order

    def hold_addresses(self) -> bool:
        """Whether something is named by where it was in memory, not by a number that counts."""
        return bool(self.objects) or any(len(key) >= ADDRESS_DIGITS for key in self.order)

    def read(self, stream: io.BytesIO) -> Any:
        outer = self
        start = stream.tell()

        class Unpickler(pickle.Unpickler):
            def find_class(self, module: str, name: str) -> Any:  # nothing is imported
                return type(name, (_Inert,), {"__module__": module})

            def persistent_load(self, pid: Any) -> Any:
                if isinstance(pid, tuple) and pid[0] == "storage":
                    key = str(pid[2]).removesuffix(".storage")  # of TorchScript in a package
                    outer.order.setdefault(key, len(outer.order))
                    outer.element_sizes[key] = ELEMENT_SIZES[pid[1].__name__]
                if isinstance(pid, tuple) and pid[0] == "reduce_package" and isinstance(pid[1], int):
                    outer.objects.setdefault(pid[1], len(outer.objects))
                # a ("module", class, source file, source text) stands for its class
                return pid[1] if isinstance(pid, tuple) and pid[0] == "module" else _Inert()

        try:
            self._vet(stream)
            stream.seek(start)
            return Unpickler(stream).load()
        except Unsafe:
            raise
        except PICKLE_ERRORS as error:
            raise Corrupt(f"a pickle in it cannot be read: {error}", where=str(self.path)) from error

    def _vet(self, stream: io.BytesIO) -> None:
        """Refuse what the unpickler would do without asking ``find_class``, or at any size that the pickle states."""
        for count, (opcode, argument, _) in enumerate(pickletools.genops(stream)):
            if opcode.name.startswith("EXT"):  # may be taken from a cache of this process
                raise Unsafe(f"a pickle in it asks for extension {argument}", where=str(self.path), code="extension")
            slot = argument if opcode.name in {"PUT", "BINPUT", "LONG_BINPUT"} else 0
            if isinstance(slot, int) and slot > count:  # the memo would grow to that size at once
                raise pickle.UnpicklingError(f"opcode {count} memoizes at {argument}")

    def canonical(self, data: bytes) -> bytes:
        """The opcodes of a pickle, one per line, storage keys replaced."""
        lines = []
        for opcode, argument, _ in pickletools.genops(data):
            if opcode.name == "FRAME":  # its length counts the digits of the keys
                continue
            if isinstance(argument, str) and argument.removesuffix(".storage") in self.order:
                shown = f"#{self.order[argument.removesuffix('.storage')]}"
            elif opcode.name == "LONG1" and argument in self.objects:
                shown = f"#{self.objects[argument]}"
            else:  # Python refuses to write very long numbers in decimal
                shown = hex(argument) if isinstance(argument, int) and argument.bit_length() > 4096 else repr(argument)
            lines.append(f"{opcode.name} {shown}")
        return "\n".join(lines).encode()
