"""What an archive is and what it needs to be read: the facts of the file, combined with recorded data about the releases.

:func:`inspect` is the library form of ``torch-compat inspect``; both return the same object. Nothing in an archive is
executed or imported, and torch is not needed.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Any

from torch_compat.allowance import HASHED, NESTED, Allowance
from torch_compat.archive import Damage, TarArchive, ZipArchive
from torch_compat.archive.base import close, read_raw, windows
from torch_compat.archive.container import recognised_archive
from torch_compat.archive_files import joined_digest
from torch_compat.errors import ArchiveError, Corrupt, NoArchive, Unsafe, UsageError
from torch_compat.formats import distributed
from torch_compat.formats.facts import checkpoint_facts, fill
from torch_compat.formats.identify import FOLDERS, recognised
from torch_compat.inspected import Inspected
from torch_compat.loadability import of as needs_of
from torch_compat.loadability.archive_features import not_looked_at
from torch_compat.pickles import cut
from torch_compat.words import count_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from torch_compat.archive.base import Raw
    from torch_compat.errors import HarnessError

__all__ = ["Inspected", "files_of", "inspect", "look_at"]


def inspect(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Report what an archive is, what it contains and which releases read it, without executing anything.

    Returns:
        One object of ``torch-compat inspect --format json``; its schema is ``harness/torch_compat/schemas/inspect.schema.json``. An archive
        that cannot be read also gives an object: ``error`` states the reason, and everything found out before the error is included.

    Raises:
        UsageError: the file does not exist, is a folder, or is not readable.
    """
    inspected = look_at(os.fspath(path))
    if isinstance(inspected.error, UsageError):
        raise inspected.error
    return inspected.row()


def look_at(path: str, *, named: bool = True, complete: bool = True) -> Inspected:
    """Inspect a file completely.

    Never raises because of the contents of the file.

    Parameters:
        named: whether the user named the file itself, not only a folder that contains it: then a file that is not an archive is an error.
        complete: whether to read all bytes of the file, for its digest and for checksums. Otherwise the weights of a large archive are
            not read, and ``omitted`` lists what was not checked.

    Raises:
        PolicyError: the recorded data about the releases cannot be read.
    """
    result = Inspected(path)
    if os.path.isdir(path) and distributed.is_checkpoint(path):  # noqa: PTH112 - for a million paths, text is faster
        return _checkpoint(result, complete=complete)
    part = _part_of_checkpoint(path)
    if part is not None:
        result.error = part
        return result
    try:
        raw = read_raw(path)
    except UsageError as error:
        result.error = error
        return result
    return _look(result, raw, named=named, complete=complete)


def _look(inspected: Inspected, raw: Raw, *, named: bool, complete: bool = True, allowance: Allowance | None = None) -> Inspected:
    """Inspect the bytes of a file; with an allowance, the bytes of a part of another file, whose own members are not inspected."""
    path = inspected.path
    inspected.size = len(raw)
    own = allowance or _allowance(inspected.size, complete=complete)
    try:
        inspected.sha256 = _sha256(raw) if complete else None
        if inspected.sha256 is None:
            inspected.omitted["sha256"] = _no_digest("the file has", inspected.size, complete=complete)
        archive = recognised_archive(path, raw, inspecting=True, allowance=own)
    except ArchiveError as error:
        inspected.fail(error, named=named)
        if error.code == "tar-archive" and allowance is None:
            with TarArchive(path, raw, _allowance(inspected.size, complete=complete), of_others=True) as tar:
                look_inside(inspected, tar)
        close(raw)
        return inspected
    with archive:
        inspected.damage = archive.damage
        inspected.omitted.update(archive.allowance.omitted)
        archive.allowance.omitted = inspected.omitted
        try:
            facts, module = recognised(archive)
            inspected.facts = facts
            fill(facts, module, archive)
        except ArchiveError as error:
            inspected.fail(error, named=named)
            if isinstance(error, NoArchive) and allowance is None and isinstance(archive, ZipArchive):
                look_inside(inspected, archive)
            if inspected.error is None:
                return inspected
            archive.verify()  # other damage may be more informative than the first error
            return inspected
        inspected.needs = needs_of(facts)
        inspected.omitted.update(not_looked_at(facts))
        if inspected.damage:
            first = inspected.damage[0]
            where = f"{path}, record {first.record!r}" if first.record else path
            inspected.error = Corrupt(first.detail, where=where, code=first.code)
    return inspected


def _allowance(size: int, *, complete: bool) -> Allowance:
    result = Allowance.to_inspect(size)
    result.complete = result.complete and complete
    return result


def _no_digest(who: str, size: int, *, complete: bool) -> str:
    """Why there is no digest."""
    return (
        f"{who} {count_of(size, 'byte')}; up to {HASHED} bytes are read for a digest" if complete else "no digest was requested"
    )


SUFFIXES = (".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle", ".pt2", ".ptl", ".th", ".t7", ".tar", ".model", ".mar")
"""File name endings of PyTorch archives inside other archives; no other member is unpacked."""
OTHERS = frozenset({"compression", "encrypted"})
"""Codes about other files next to a PyTorch archive. They are not damage."""
MOST_INSIDE = 100  # maximum number of archives inspected in one file


def look_inside(inspected: Inspected, archive: ZipArchive | TarArchive) -> None:
    """Inspect the PyTorch archives inside an archive of other files, within the allowance of the whole file.

    If there is one, the file is not an error; damage inside it counts as damage of the file.
    """
    allowance = archive.allowance
    candidates = [name for name in dict.fromkeys(archive.names) if name.lower().endswith(SUFFIXES)]
    for at, name in enumerate(candidates):
        inner = Inspected(f"{inspected.path}/{name}")
        try:
            if at >= MOST_INSIDE:
                allowance.refuse(f"contains more than {MOST_INSIDE} files that may be PyTorch archives")
            allowance.spend(NESTED)
            view = archive.view(name)
            allowance.expand(len(view))
            _look(inner, bytes(view), named=False, allowance=allowance)
        except Unsafe as error:
            inspected.omitted["members"] = (
                f"{count_of(len(candidates) - at, 'file')} starting with {cut(name)} {'was' if len(candidates) - at == 1 else 'were'} not checked: the file {error.message}"
            )
            break
        except ArchiveError as error:
            inner.error = error
        if inner.facts is not None or inner.error is not None:
            inspected.contains.append(inner)
    if not inspected.contains:
        return
    if isinstance(archive, ZipArchive):
        archive.verify()  # report all damage of a file whose archives are inspected
    inspected.damage = [item for item in inspected.damage if item.code not in (FOLDERS | OTHERS)]
    inspected.error = None
    for inner in inspected.contains:
        if inner.error is not None:
            inspected.damage.append(Damage(inner.error.code, inner.path.removeprefix(f"{inspected.path}/"), inner.message, None))
    if inspected.damage:
        first = inspected.damage[0]
        inspected.error = Corrupt(first.detail, where=f"{inspected.path}, record {first.record!r}", code=first.code)


PARTS = (distributed.METADATA, distributed.SHARDS)


def _part_of_checkpoint(path: str) -> HarnessError | None:
    """The error for a file that is part of a distributed checkpoint and has no meaning alone; None for any other file."""
    if not path.endswith(PARTS):
        return None
    folder, name = os.path.split(path)
    if not (name == distributed.METADATA or name.endswith(distributed.SHARDS)) or not distributed.is_checkpoint(folder or "."):
        return None
    hint = "inspect the directory: it is one checkpoint"
    return NoArchive("a part of a distributed checkpoint", where=path, hint=hint, code="part-of-checkpoint")


def _checkpoint(inspected: Inspected, *, complete: bool) -> Inspected:
    """Inspect a directory that is a distributed checkpoint."""
    path = inspected.path
    sizes: dict[str, int] = {}
    allowance = Allowance.to_inspect(0)
    facts = checkpoint_facts(path)
    inspected.damage = facts.damage
    checkpoint = None
    try:
        files = list(distributed.files_of(path, None))
        size = sum(os.stat(os.path.join(path, item)).st_size for item in files)  # noqa: PTH116, PTH118
        allowance = _allowance(size, complete=complete)
        inspected.facts = facts
        checkpoint = distributed.read(path, facts, allowance)
    except ArchiveError as error:
        inspected.error = error
    except (UsageError, OSError) as error:
        inspected.facts, inspected.error = (
            None,
            error if isinstance(error, UsageError) else UsageError(f"cannot be read: {error}", where=path),
        )
        return inspected
    _measure(inspected, distributed.files_of(path, checkpoint), sizes, complete=complete)
    facts.size = inspected.size or 0
    for file in sizes.keys() - {distributed.METADATA} - {storage.record for storage in facts.storages if checkpoint}:
        if checkpoint:
            inspected.damage.append(Damage("unlisted-file", file, "is not referenced by any entry of .metadata", None))
    inspected.omitted.update(allowance.omitted)
    if inspected.error is None:
        inspected.needs = needs_of(facts)
        if inspected.damage:
            first = inspected.damage[0]
            inspected.error = Corrupt(first.detail, where=f"{path}, {first.record}", code=first.code)
    return inspected


def _measure(inspected: Inspected, files: Iterable[str], sizes: dict[str, int], *, complete: bool) -> None:
    """Set the total size of all files, and the digest of their names and digests."""
    digests: list[tuple[str, str]] | None = []
    for file in files:
        raw = read_raw(os.path.join(inspected.path, file))  # noqa: PTH118
        try:
            sizes[file] = len(raw)
            item = _sha256(raw) if complete and sum(sizes.values()) <= HASHED else None
        finally:
            close(raw)
        if item is None:
            inspected.omitted["sha256"] = _no_digest("its files have", sum(sizes.values()), complete=complete)
            digests = None
        elif digests is not None:
            digests.append((file, item))
    inspected.size = sum(sizes.values())
    inspected.sha256 = None if digests is None else joined_digest(digests)


def _sha256(raw: Raw) -> str | None:
    """The digest of the whole file, in hex, read from the descriptor that everything else uses; None if the file is too large."""
    if isinstance(raw, bytes):
        return hashlib.sha256(raw).hexdigest()
    if len(raw) > HASHED:
        return None
    digest = hashlib.sha256()
    for part in windows(raw, 0, len(raw)):
        digest.update(part)
    return digest.hexdigest()


def files_of(path: str) -> Iterator[str]:
    """The path itself; for a folder, every file in it and its subfolders, ordered by name.

    A distributed checkpoint is one path, that of its folder, without its own files.
    """
    if not os.path.isdir(path):  # noqa: PTH112 - for a million paths, text is faster
        yield path
        return
    for folder, folders, files in os.walk(path):
        folders.sort()
        whole = distributed.METADATA in files and distributed.is_checkpoint(folder)
        if whole:
            yield folder
        for name in sorted(files):
            if not (whole and (name == distributed.METADATA or name.endswith(distributed.SHARDS))):
                yield os.path.join(folder, name)  # noqa: PTH118
