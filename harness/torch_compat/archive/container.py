r"""Recognizes the container of a file by its bytes, never by its name.

* ``zip``         first bytes ``PK\\x03\\x04``, or an end record at the very end; members lie in one top folder, whose name is
                  not part of a record's name here (but for exported programs of 2.1 to 2.8, which have none)
* ``stream``      stacked pickles: the first is the magic number 0x1950a86a20f9469cfc6c, the second the protocol 1001
* ``tar``         torch 0.1: a POSIX tar with the members sys_info, pickle, storages, tensors
* ``flatbuffer``  the identifier ``PTMF`` at byte 4
* ``pickle``      one bare pickle

A file may be several containers at once; it is opened as the first that fits, and ``polyglot`` damage is recorded.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from torch_compat.allowance import Allowance
from torch_compat.archive.base import HEAD, Archive, Damage, close, read_raw
from torch_compat.archive.tar import TarArchive, looks_like_tar
from torch_compat.archive.zip import ZipArchive
from torch_compat.archive.zip_directory import ends_like_zip
from torch_compat.archive.zip_member import LOCAL_SIGNATURE
from torch_compat.errors import NoArchive, Unsafe

if TYPE_CHECKING:
    from torch_compat.archive.base import Raw

__all__ = ["VERIFY_OFFSETS", "Archive", "open_archive", "recognised_archive"]

# If set to 1, the calculated offsets of each opened archive that states .format_version are compared with its local headers.
VERIFY_OFFSETS = "TORCH_COMPAT_VERIFY_OFFSETS"

# LONG1 of 10 bytes: the magic number, little endian; in front of it PROTO n, from pickle protocol 4 on a frame, too
STREAM_MAGIC = b"\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"
TEXT_MAGIC = b"L119547037146038801333356L\n."  # the same number in pickle protocols 0 and 1
PROTO = 0x80
LATEST_PICKLE = 5
# How Python starts a pickle of protocol 0 or 1 of a dict, a list or an instance. Ordinary text does not start this way.
OLD_PICKLE = (
    rb"\([dl]p\d+\n"
    rb"|c(?:copy_reg|copyreg|__builtin__|builtins|collections|torch|numpy|os|posix|nt|sys|subprocess|importlib|runpy|pty|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)\n[A-Za-z_]\w*\n"
    rb"|[}\]]q[\x00-\x08]"
)


def open_archive(
    path: str | os.PathLike[str], *, verify_offsets: bool | None = None, inspecting: bool = False, descriptor: int | None = None
) -> Archive:
    """Open an archive: recognize its container by its bytes, and read the locations of its records.

    Args:
        path: the file.
        verify_offsets: whether to compare calculated offsets with the local headers of a zip archive that states
            ``.format_version``; default: the environment variable TORCH_COMPAT_VERIFY_OFFSETS.
        inspecting: whether only facts are needed, which lowers the cost limit (:mod:`torch_compat.allowance`).
        descriptor: of the file, where it is open already; it is closed, and ``path`` is only its name.

    Raises:
        UsageError: there is no such file, it is a folder, or it may not be read.
        NoArchive: it is no archive that PyTorch writes; what it is instead is named where that is known.
        Corrupt: it was one, and nothing can be read of it any more.
        Unsafe: reading it would cost more than is allowed.
    """
    path = os.fspath(path)
    raw = read_raw(path, descriptor)
    try:
        return recognised_archive(path, raw, verify_offsets=verify_offsets, inspecting=inspecting)
    except BaseException:
        close(raw)
        raise


def recognised_archive(
    path: str, raw: Raw, *, verify_offsets: bool | None = None, inspecting: bool = False, allowance: Allowance | None = None
) -> Archive:
    """Open an archive from the bytes of a file, which stay open if this raises.

    If an allowance is given, the bytes are a part of the file that it belongs to.

    Raises:
        NoArchive: it is no archive that PyTorch writes; what it is instead is named where that is known.
        Corrupt: it was one, and nothing can be read of it any more.
        Unsafe: reading it would cost more than is allowed.
    """
    allowance = allowance or (Allowance.to_inspect if inspecting else Allowance.to_load)(len(raw))
    try:
        archive = _open(path, raw, allowance)
    except Unsafe as error:
        error.where = error.where or path
        raise
    if verify_offsets is None:
        verify_offsets = os.environ.get(VERIFY_OFFSETS) == "1"
    if verify_offsets and isinstance(archive, ZipArchive) and ".format_version" in archive.names:
        archive.verify_offsets()
    return archive


def _open(path: str, raw: Raw, allowance: Allowance) -> Archive:
    head = raw[:HEAD]
    if head.startswith(LOCAL_SIGNATURE):
        return _zip(path, raw, allowance)
    container = _container(head, raw)
    if container:
        if container == "tar":
            archive: Archive = TarArchive(path, raw, allowance)
        else:
            archive = Archive(path, raw, container, allowance=allowance)
        if ends_like_zip(raw):
            message = f"begins as a {container} and ends as a zip archive: readers may treat it as either"
            archive.damage.append(Damage("polyglot", None, message, len(raw)))
        return archive
    if ends_like_zip(raw):
        return _zip(path, raw, allowance)  # with data in front of it
    from torch_compat.archive.foreign import recognise  # noqa: PLC0415 - archives of PyTorch do not need it

    foreign = recognise(head, len(raw))
    if foreign is not None:
        name = foreign.name
        if foreign.code == "executorch":
            from torch_compat.archive.executorch import described  # noqa: PLC0415 - as above

            name = f"{name} ({described(raw)})"
        raise NoArchive(name, where=path, hint=foreign.hint, code=foreign.code)
    raise NoArchive(f"a file that starts with {head[:8].hex(' ')}", where=path)


def _container(head: bytes, raw: Raw) -> str:
    if head[:1] == b"\x80" and STREAM_MAGIC in (head[2:14], head[11:23]):
        return "stream"
    if head.startswith(TEXT_MAGIC):
        return "stream"
    if head[4:8] == b"PTMF":
        return "flatbuffer"
    if looks_like_tar(head):
        return "tar"
    if len(head) > 2 and head[0] == PROTO and head[1] <= LATEST_PICKLE:
        return "pickle"
    return "pickle" if re.match(OLD_PICKLE, head) and raw[-1:] == b"." else ""


def _zip(path: str, raw: Raw, allowance: Allowance) -> ZipArchive:
    archive = ZipArchive(path, raw, allowance)
    names = archive.names
    if names and archive.folder == "" and all(name.endswith(".npy") for name in names):
        raise NoArchive("a NumPy archive (.npz)", where=path, hint="use numpy.load to read it", code="npz")
    if looks_like_tar(raw[:HEAD]):
        archive.damage.append(Damage("polyglot", None, "is both a zip archive and a tar archive", 0))
    return archive
