"""torch.save, stream: consecutive pickles, then the storages.

Written by torch.save of 0.1.10 to 1.5 by default, and by all later releases with ``_use_new_zipfile_serialization=False``; read by
torch.load of 0.1.10 and newer.

* the magic number 0x1950a86a20f9469cfc6c, pickled
* the protocol 1001, pickled
* ``sys_info``, pickled: ``protocol_version``, ``little_endian`` (of the machine that wrote), ``type_sizes``
* the object, pickled. Persistent ids: ``("storage", class, key, location, number of elements, view)``, where ``view`` is None or ``(key,
  offset, number of elements)`` of a storage that is part of another; ``("module", class, file, source)`` for classes of modules
* the keys of the storages that are not part of another, pickled: a sorted list of strings, which are addresses
* each of these storages: its number of elements (8 bytes, little-endian), then its elements

Elements are little-endian whatever ``sys_info`` says. Nothing is aligned, and nothing has a checksum. Since the pickle states every
size, the offset of each storage can be calculated from the offset of the first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch_compat.archive import Damage
from torch_compat.errors import Corrupt
from torch_compat.formats.model import Producer, StorageRecord
from torch_compat.pickles import brief, unpickle
from torch_compat.values.dtypes import ELEMENT_SIZES
from torch_compat.words import count_of

if TYPE_CHECKING:
    from torch_compat.archive import Archive
    from torch_compat.formats.model import Facts

__all__ = ["FAMILY", "LAYOUT", "MAGIC", "PROTOCOL", "read", "versions"]

LAYOUT, FAMILY = "torch_save_stream", "torch-save"
MAGIC, PROTOCOL = 0x1950A86A20F9469CFC6C, 1001
HIGHEST = 1 << 31  # a protocol is below it
STORAGE = 60  # units of work for each storage in the list of keys, which may name it again


def versions(archive: Archive) -> dict[str, int]:
    """The protocol of the stream.

    Raises:
        Corrupt: there is no protocol.
    """
    data, allowance = archive.data, archive.allowance
    magic = unpickle(data, where=f"{archive.path}, magic number", allowance=allowance)
    protocol = unpickle(data, magic.end, where=f"{archive.path}, protocol", allowance=allowance).value
    if magic.value != MAGIC:
        where = f"{archive.path}, magic number"
        raise Corrupt(f"is {brief(magic.value, 40)}, expected {MAGIC:#x}", where=where, code="bad-magic")
    if not isinstance(protocol, int) or isinstance(protocol, bool) or not 0 <= protocol < HIGHEST:
        raise Corrupt(f"is {brief(protocol, 40)}, expected a number", where=f"{archive.path}, protocol", code="bad-version")
    return {"stream-protocol": protocol}


def read(archive: Archive, facts: Facts) -> None:
    """Fill in the facts that the stream states.

    Raises:
        ArchiveError: a part of it cannot be read.
    """
    data = archive.data
    facts.producer = Producer(first="0.1", because=(f"stream protocol {facts.versions['stream-protocol']}",))
    facts.byteorder = "little"
    end = 0
    for part in ("magic", "protocol", "system", "object", "keys"):
        result = facts.pickles[part] = unpickle(data, end, where=f"{archive.path}, {part}", allowance=archive.allowance)
        end = result.end
    facts.extra["sys_info"] = facts.pickles["system"].value
    storages = {storage.key: storage for storage in facts.pickles["object"].storages}
    keys = facts.pickles["keys"].value
    if not isinstance(keys, list) or any(not isinstance(key, str) or key not in storages for key in keys):
        message = "does not list the storages that the object references"
        if any(event.kind == "persistent" and event.subject == "str" for event in facts.pickles["object"].events):
            message = f"{message} as tuples: pickle protocol 0 writes them as text, which no release loads"
        raise Corrupt(message, where=f"{archive.path}, keys", code="bad-keys")
    place = end
    for key in keys:
        storage = storages[key]
        archive.allowance.spend(STORAGE)
        if end + 8 > len(data):
            raise _cut_off(archive, key, end, 8)
        count = int.from_bytes(data[end : end + 8], "little", signed=True)
        nbytes = count * ELEMENT_SIZES.get(storage.dtype, 1)
        facts.storages.append(StorageRecord(key, storage.dtype, storage.nbytes, end + 8, place + 8, device=storage.location))
        if count != storage.numel:
            message = f"storage {key!r} has {count_of(count, 'element')}, but the pickle expects {storage.numel}"
            facts.damage.append(Damage("size-disagrees", key, message, end))
        if not 0 <= nbytes <= len(data) - end - 8:
            raise _cut_off(archive, key, end + 8, nbytes)
        end += 8 + nbytes
        place += 8 + storage.nbytes
    if end < len(data):
        message = f"{count_of(len(data) - end, 'byte follows', 'bytes follow')} the last storage"
        facts.damage.append(Damage("junk-after", None, message, end))


def _cut_off(archive: Archive, key: str, at: int, wanted: int) -> Corrupt:
    message = f"is truncated: only {len(archive.data) - at} of {wanted} bytes are present"
    archive.damage.append(Damage("cut-off", key, message, at))
    return Corrupt(message, where=f"{archive.path}, storage {key!r}", code="cut-off")
