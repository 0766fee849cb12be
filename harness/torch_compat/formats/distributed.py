"""torch.distributed.checkpoint: a directory with ``.metadata`` and one file of shards for each process that wrote data.

Written and read by torch.distributed.checkpoint of 2.0 and newer.

``.metadata`` is a pickle of protocol 4 of ``Metadata``:

* ``state_dict_metadata``: for each flat name, ``BytesStorageMetadata`` (anything but a tensor) or ``TensorStorageMetadata``: ``size``, ``chunks``
  (each with ``offsets`` and ``sizes``) and ``properties``, whose state is a tuple: dtype, layout, requires_grad, memory format, pin_memory;
  from 2.15 on also the strides, which older releases do not accept
* ``storage_data``: by ``MetadataIndex`` (``fqn``, ``offset`` of the chunk, ``index``) a ``_StorageInfo``: ``relative_path``, ``offset`` and ``length``; from 2.7
  on optionally ``transform_descriptors``, names of compressions
* ``planner_data``: for each flat name, the keys that lead to the value in the nested state dict
* ``storage_meta``: from 2.4 on ``StorageMeta``: the path of the checkpoint when it was written, and random ids of the acts of saving and loading

Each entry of a file, ``__0_0.distcp``, is a zip archive of torch.save with a tensor or an object; the entries follow one another. A release unpickles
``.metadata`` without limits.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from torch_compat.allowance import NESTED
from torch_compat.archive import Archive, Damage, ZipArchive
from torch_compat.archive.base import close, read_raw
from torch_compat.archive_files import HIDDEN
from torch_compat.errors import Corrupt, Unsupported, UsageError
from torch_compat.formats import torch_save_zip
from torch_compat.formats.model import Facts, Producer, StorageRecord
from torch_compat.pickles import Described, Global, brief, cut, unpickle
from torch_compat.values.dtypes import ALIASES, ELEMENT_SIZES
from torch_compat.words import count_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from torch_compat.allowance import Allowance
    from torch_compat.archive.base import Raw
    from torch_compat.pickles import Unpickled

__all__ = [
    "CONTAINER",
    "FAMILY",
    "LAYOUT",
    "METADATA",
    "SHARDS",
    "Checkpoint",
    "CheckpointEntry",
    "Shard",
    "entry_archive",
    "files_of",
    "is_checkpoint",
    "read",
    "read_metadata",
]

LAYOUT, FAMILY, CONTAINER = "distributed", "distributed", "directory"
METADATA = HIDDEN
SHARDS = ".distcp"
MARK = b"torch.distributed.checkpoint.metadata"
HEAD = 4096  # bytes of .metadata within which its class is named
MOST_DIMENSIONS = 64
HIGHEST = 1 << 63
SHARD = 60  # units of work for one shard
STRIDED = 6  # parts of the properties of a tensor, with strides
ZIP = b"PK\x03\x04"
RESERVE = 100_000  # units of work that are left for what follows the entries


class Shard(NamedTuple):
    """One entry of a file: all of a value, or a part of a tensor.

    Attributes:
        file: relative to the directory.
        offset, length: of its bytes in the file.
        start, sizes: of the part, in elements by dimension; None if it is not a tensor.
        transforms: transformations of its bytes: names of compressions.
    """

    file: str
    offset: int
    length: int
    start: tuple[int, ...] | None
    sizes: tuple[int, ...] | None
    transforms: tuple[str, ...]


class CheckpointEntry(NamedTuple):
    """One value of the checkpoint.

    Attributes:
        name: its flat name, ``model.layer.weight``.
        dtype: of a tensor; None of anything else.
        shape: of the whole tensor; None of anything else.
        shards: the parts that are stored.
        missing: the parts that the metadata states but no file stores.
        path: the keys that lead to it in the nested state dict.
    """

    name: str
    dtype: str | None
    shape: tuple[int, ...] | None
    shards: tuple[Shard, ...]
    missing: tuple[tuple[int, ...], ...]
    path: tuple[Any, ...]


class Checkpoint(NamedTuple):
    """The contents of ``.metadata``.

    Attributes:
        entries: in their order.
        strided: whether it states strides, as 2.15 and newer do.
        version: the stated version, ``1.0.0``; None if it states none.
        ids: the random ids of the acts of saving and loading, as 2.4 and newer state them.
        unpickled: the pickle.
    """

    entries: tuple[CheckpointEntry, ...]
    strided: bool
    version: str | None
    ids: tuple[str, ...]
    unpickled: Unpickled


def is_checkpoint(folder: str) -> bool:
    """Whether a directory is one checkpoint: it has a ``.metadata`` that names the class of torch. Never raises."""
    try:
        with open(os.path.join(folder, METADATA), "rb") as file:  # noqa: PTH123, PTH118 - strings are faster for a million of them
            return MARK in file.read(HEAD)
    except (OSError, ValueError):
        return False


# --------------------------------------------------------------------------------------------------------------- .metadata


def read_metadata(folder: str, allowance: Allowance) -> Checkpoint:
    """Read the metadata of a checkpoint.

    Raises:
        UsageError: it cannot be opened.
        Corrupt, Unsafe: it cannot be read, or has another form.
    """
    path = os.path.join(folder, METADATA)  # noqa: PTH118
    with Archive(path, read_raw(path), "pickle", allowance=allowance) as archive:
        result = unpickle(archive.data, where=path, allowance=allowance)
    state = _state(result.value, "Metadata", path)
    values, stored = state.get("state_dict_metadata"), state.get("storage_data")
    if not isinstance(values, dict) or not isinstance(stored, dict):
        raise _bad(path, "must contain two dicts, state_dict_metadata and storage_data")
    paths = state.get("planner_data")
    places = _places(stored, path, allowance)
    entries, strided = [], False
    for name, value in values.items():
        allowance.spend(SHARD)
        if not isinstance(name, str):
            raise _bad(path, f"uses {brief(name, 40)} as the name of a value; expected a string")
        parts = places.pop(name, {})
        keys = paths.get(name) if isinstance(paths, dict) else None
        keys = keys if isinstance(keys, tuple) and keys and all(isinstance(key, str | int) for key in keys) else (name,)
        if _class(value) == "BytesStorageMetadata":
            entries.append(CheckpointEntry(name, None, None, tuple(parts.values()), () if parts else ((),), keys))
        else:
            entry, more = _tensor(name, value, parts, keys, path, allowance)
            entries.append(entry)
            strided = strided or more
    version = state.get("version")
    about: Any = state.get("storage_meta")
    told = about.state if _class(about) == "StorageMeta" and isinstance(about.state, dict) else {}
    ids = tuple(told[key] for key in ("save_id", "load_id") if isinstance(told.get(key), str))
    return Checkpoint(tuple(entries), strided, version if isinstance(version, str) else None, ids, result)


def _bad(where: str, text: str) -> Corrupt:
    return Corrupt(text, where=where, code="bad-metadata")


def _class(value: Any) -> str:
    target = value.target if value.__class__ is Described else None
    return target.name if target.__class__ is Global and target.module.startswith("torch.distributed.") else ""


def _state(value: Any, name: str, where: str) -> dict[Any, Any]:
    """The attributes of an object of a class of torch.distributed."""
    if _class(value) != name or not isinstance(value.state, dict):
        raise _bad(where, f"contains {brief(value, 80)}, expected an object of the class {name}")
    state: dict[Any, Any] = value.state
    return state


def _numbers(value: Any, where: str, what: str) -> tuple[int, ...]:
    """Sizes or offsets: numbers from 0 to 2**63, of at most 64 dimensions."""
    plain = isinstance(value, tuple | list) and all(item.__class__ is int and 0 <= item < HIGHEST for item in value)
    if not plain or len(value) > MOST_DIMENSIONS:
        raise _bad(where, f"gives {what} as {brief(value, 80)}; expected up to {MOST_DIMENSIONS} numbers")
    return tuple(value)


def _places(stored: dict[Any, Any], where: str, allowance: Allowance) -> dict[str, dict[tuple[int, ...] | None, Shard]]:
    """The stored parts: by name, then by the offset of the part."""
    results: dict[str, dict[tuple[int, ...] | None, Shard]] = {}
    for index, info in stored.items():
        allowance.spend(SHARD)
        key, place = _state(index, "MetadataIndex", where), _state(info, "_StorageInfo", where)
        name, start = key.get("fqn"), key.get("offset")
        file = place.get("relative_path")
        if not isinstance(name, str) or not isinstance(file, str):
            raise _bad(where, f"places {brief(name, 40)} in {brief(file, 40)}; expected two strings")
        if not _is_inside(file):
            raise _bad(where, f"places {brief(name, 40)} in {brief(file, 80)}, which is not a file in the directory")
        begin, count = _numbers((place.get("offset"), place.get("length")), where, f"the location of {brief(name, 40)}")
        transforms = place.get("transform_descriptors") or ()
        if not isinstance(transforms, tuple | list) or not all(isinstance(transform, str) for transform in transforms):
            raise _bad(where, f"lists the transforms {brief(transforms, 40)} for {brief(name, 40)}; expected names")
        at = None if start is None else _numbers(start, where, f"the offset of {brief(name, 40)}")
        results.setdefault(name, {})[at] = Shard(file, begin, count, at, None, tuple(transforms))
    return results


def _is_inside(file: str) -> bool:
    """Whether a relative path stays in the directory: no root, no drive, no way up, no control characters."""
    parts = file.split("/")
    return bool(file) and file.isprintable() and "\\" not in file and ":" not in file and not {"", ".", ".."} & {*parts}


def _tensor(
    name: str, value: Any, parts: dict[tuple[int, ...] | None, Shard], keys: tuple[Any, ...], where: str, allowance: Allowance
) -> tuple[CheckpointEntry, bool]:
    """Read a tensor; return it, and whether its strides are stated."""
    state = _state(value, "TensorStorageMetadata", where)
    shape = _numbers(state.get("size"), where, f"the size of {brief(name, 40)}")
    properties = state.get("properties")
    told = properties.state if properties.__class__ is Described else None
    dtype = told[0] if isinstance(told, tuple) and told else told.get("dtype") if isinstance(told, dict) else None
    if dtype.__class__ is not Global or dtype.module != "torch":
        raise _bad(where, f"has no dtype for {brief(name, 40)}")
    chunks = state.get("chunks")
    if not isinstance(chunks, list):
        raise _bad(where, f"has no chunks for {brief(name, 40)}")
    shards, missing, elements = [], [], 0
    for chunk in chunks:
        allowance.spend(SHARD)
        box = _state(chunk, "ChunkStorageMetadata", where)
        start = _numbers(box.get("offsets"), where, f"a chunk of {brief(name, 40)}")
        sizes = _numbers(box.get("sizes"), where, f"a chunk of {brief(name, 40)}")
        if (
            len(start) != len(shape)
            or len(sizes) != len(shape)
            or any(first + size > whole for first, size, whole in zip(start, sizes, shape, strict=True))
        ):
            raise _bad(where, f"has a chunk of {brief(name, 40)} at {start} with sizes {sizes}, outside its shape {shape}")
        elements += _product(sizes)
        shard = parts.get(start, parts.get(None) if len(chunks) == 1 else None)
        if shard is None:
            missing.append(start)
        else:
            shards.append(shard._replace(start=start, sizes=sizes))
    if elements != _product(shape):
        raise _bad(where, f"has chunks of {brief(name, 40)} with {elements} elements in total, expected {_product(shape)}")
    strided = isinstance(told, tuple) and len(told) >= STRIDED
    return CheckpointEntry(name, ALIASES.get(dtype.name, dtype.name), shape, tuple(shards), tuple(missing), keys), strided


def _product(sizes: Iterable[int]) -> int:
    result = 1
    for size in sizes:
        result *= size
    return result


# ------------------------------------------------------------------------------------------------------------------- facts


def read(folder: str, facts: Facts, allowance: Allowance, *, verify: bool = True) -> Checkpoint:
    """Fill in the facts of a checkpoint: its values, the locations of their parts, and missing or damaged parts.

    Parameters:
        verify: whether every entry is opened, its checksums compared, and its pickle read.

    Raises:
        UsageError: the metadata cannot be opened.
        ArchiveError: it cannot be read.
    """
    checkpoint = read_metadata(folder, allowance)
    facts.pickles[METADATA] = checkpoint.unpickled
    facts.producer = _producer(checkpoint)
    facts.extra["checkpoint"] = checkpoint
    by_file: dict[str, list[tuple[CheckpointEntry, Shard]]] = {}
    for entry in checkpoint.entries:
        for start in entry.missing:
            message = (
                f"the part at {start} of {shown(entry.name)} is not stored anywhere"
                if start
                else f"{shown(entry.name)} is not stored anywhere"
            )
            facts.damage.append(Damage("missing-shard", METADATA, message, None))
        for shard in entry.shards:
            by_file.setdefault(shard.file, []).append((entry, shard))
            nbytes = (
                _product(shard.sizes or ()) * ELEMENT_SIZES.get(entry.dtype or "", 1) if shard.sizes is not None else shard.length
            )
            facts.storages.append(StorageRecord(_key(entry, shard), entry.dtype, nbytes, shard.offset, None, shard.file, why=WHY))
    for file in sorted(by_file):
        _read_file(folder, file, by_file[file], facts, allowance, verify=verify)
    return checkpoint


WHY = "its location is in .metadata"


def shown(name: str) -> str:
    """A name in a message."""
    return brief(cut(name, 80), 100)


def _key(entry: CheckpointEntry, shard: Shard) -> str:
    whole = shard.start is None or shard.sizes == entry.shape
    return entry.name if whole else f"{entry.name}[{', '.join(map(str, shard.start or ()))}]"


def _producer(checkpoint: Checkpoint) -> Producer:
    names = {global_.path for global_ in checkpoint.unpickled.globals}
    if checkpoint.strided:
        return Producer(first="2.15", because=("strides in .metadata",))
    if "torch.distributed.checkpoint.metadata.StorageMeta" in names:
        return Producer(first="2.4", last="2.14", because=("class StorageMeta in .metadata", "no strides"))
    if "torch.distributed.checkpoint.metadata._MEM_FORMAT_ENCODING" in names:
        return Producer(first="2.3", because=("class _MEM_FORMAT_ENCODING in .metadata",))
    return Producer(first="2.0", last="2.2", because=("no class from 2.3 or newer in .metadata",))


def _read_file(
    folder: str, file: str, parts: list[tuple[CheckpointEntry, Shard]], facts: Facts, allowance: Allowance, *, verify: bool
) -> None:
    """Check the entries of one file, and record errors as damage."""
    try:
        raw = read_raw(os.path.join(folder, file))  # noqa: PTH118
    except UsageError as error:
        facts.damage.append(
            Damage(
                "missing-file",
                file,
                f"{error.message}; {count_of(len(parts), 'entry is stored', 'entries are stored')} in it",
                None,
            )
        )
        return
    try:
        for entry, shard in parts:
            if shard.offset + shard.length > len(raw):
                message = f"ends inside {shown(entry.name)}: it has {count_of(len(raw), 'byte')}, expected {shard.offset + shard.length}"
                facts.damage.append(Damage("cut-off", file, message, shard.offset))
            elif verify and allowance.work < RESERVE:
                allowance.omit("checksums", "the checkpoint has too many entries: some were not checked")
            elif verify and not shard.transforms:
                _look_into(raw, folder, shard, facts, allowance)
    finally:
        close(raw)


def _look_into(raw: Raw, folder: str, shard: Shard, facts: Facts, allowance: Allowance) -> None:
    record = f"{shard.file}@{shard.offset}"
    try:
        with entry_archive(raw, folder, shard, allowance) as inner:
            result = Facts(inner.path, shard.length, names=inner.names, records=frozenset(inner.names), damage=inner.damage)
            torch_save_zip.read(inner, result)
            inner.verify()
    except (Corrupt, Unsupported) as error:
        facts.damage.append(Damage(error.code, record, error.message, shard.offset))
        return
    for damage in result.damage:
        facts.damage.append(
            Damage(damage.code, f"{record}/{damage.record}" if damage.record else record, damage.detail, shard.offset)
        )
    facts.pickles.update({f"{record}/{name}": unpickled for name, unpickled in result.pickles.items()})


def entry_archive(raw: Raw, folder: str, shard: Shard, allowance: Allowance) -> ZipArchive:
    """The torch.save archive of an entry, copied from the file.

    Raises:
        Corrupt: it is not such an archive.
        Unsupported: it was written differently.
    """
    allowance.spend(NESTED)
    where = f"{os.path.join(folder, shard.file)}, entry at {shard.offset}"  # noqa: PTH118
    if shard.transforms:
        message = f"was changed by {', '.join(map(shown, shard.transforms))} before being stored"
        raise Unsupported(message, where=where, hint="load it with torch.distributed.checkpoint", code="transformed")
    if raw[shard.offset : shard.offset + 4] != ZIP or shard.offset + shard.length > len(raw):
        result = bytes(raw[shard.offset : shard.offset + 4]).hex(" ") or "nothing"
        raise Corrupt(f"begins with {result}, expected a zip archive of torch.save", where=where, code="bad-nested")
    # copied: a map begins at a page boundary, and preceding archives in that page would count as a part of this one
    allowance.expand(shard.length)
    inner = ZipArchive(where, bytes(raw[shard.offset : shard.offset + shard.length]), allowance)
    if torch_save_zip.recognise(frozenset(inner.names)) is None:
        inner.close()
        raise Corrupt("is a zip archive without a record 'data.pkl'", where=where, code="bad-nested")
    return inner


def files_of(folder: str, checkpoint: Checkpoint | None) -> Iterator[str]:
    """The existing files of a checkpoint, relative to it, unique and sorted."""
    named = {shard.file for entry in checkpoint.entries for shard in entry.shards} if checkpoint else set()
    with os.scandir(folder) as entries:
        named |= {entry.name for entry in entries if entry.name.endswith(SHARDS)}
    yield from sorted({METADATA, *(file for file in named if os.path.isfile(os.path.join(folder, file)))})  # noqa: PTH118, PTH113
