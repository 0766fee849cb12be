"""Exported programs in pt2 archives: JSON, weights and constants in a zip archive of torch's writer.

Written by torch.export.save of 2.8 and newer; read by torch.export.load of 2.8 and newer, as long as the major number of the
schema stays the same. The folder has the name of the file.

Records:

* ``archive_format`` (``pt2``), ``archive_version`` (``0``: the layout), ``.data/version`` (6), ``byteorder``, ``.data/serialization_id``
* ``models/NAME.json``: a program; ``schema_version`` 8.8 (2.8), 8.14 (2.9), 8.15 (2.10), 8.17 (2.11), 8.20 (2.12 to 2.15);
  ``torch_version``: the exact release
* ``data/weights/NAME.pt``, ``data/constants/NAME.pt`` (2.8), ``data/sample_inputs/NAME.pt``: each a zip archive of torch.save
* ``data/weights/NAME_weights_config.json``, ``data/constants/NAME_constants_config.json`` (2.9 and newer): for each weight the record
  that holds its elements (``path_name``, beside it), its dtype, sizes and strides (``tensor_meta``), and whether the record is
  a pickle (``use_pickle``)
* ``data/weights/weight_N``, ``data/constants/tensor_N``: elements
* ``data/aotinductor/NAME/...`` (2.6 and newer): the output of AOTInductor. ``.so`` or ``.wrapper.so`` is native code, loaded into the process by
  ``torch._inductor.aoti_load_package``; ``*metadata.json`` states ``AOTI_DEVICE_KEY`` (``cpu``), ``AOTI_PLATFORM`` (``linux``), ``AOTI_MACHINE``
  (``x86_64``) and ``AOTI_CPU_ISA``; 2.8 states only the device; the library's own header states the rest. Nothing here loads or runs it.
* ``data/executorch/...``, ``extra/NAME``

torch.export.load loads the program named ``model``. It refuses an archive without such a program (programs with other names, or only
AOTInductor); ``torch.export.pt2_archive.load_pt2`` or ``torch._inductor.aoti_load_package`` reads these archives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from torch_compat.allowance import JSON
from torch_compat.errors import Corrupt
from torch_compat.escapes import escaped
from torch_compat.formats import _export, _nested, _zip
from torch_compat.formats.model import Producer, StorageRecord
from torch_compat.formats.torch_save_zip import read_markers
from torch_compat.pickles import brief, cut
from torch_compat.values.dtypes import DTYPES

if TYPE_CHECKING:
    from torch_compat.archive import ZipArchive
    from torch_compat.formats.model import Call, Facts

__all__ = ["FAMILY", "LAYOUT", "native", "programs", "read", "recognise", "versions"]

LAYOUT, FAMILY = "export_pt2", "export"
MARKER = "archive_format"
LINES = {"8.8": "2.8", "8.14": "2.9", "8.15": "2.10", "8.17": "2.11"}
COMPILED, LIBRARIES = "data/aotinductor/", (".so", ".dll", ".dylib", ".pyd")
METADATA = {"platform": "AOTI_PLATFORM", "machine": "AOTI_MACHINE", "device": "AOTI_DEVICE_KEY", "isa": "AOTI_CPU_ISA"}
CONFIGS = ("_weights_config.json", "_constants_config.json")
# e_machine of ELF, Machine of PE, cputype of Mach-O, by the names that Python's platform.machine() gives
ELF_MACHINES = {0x03: "i686", 0x16: "s390x", 0x15: "ppc64le", 0x28: "armv7l", 0x3E: "x86_64", 0xB7: "aarch64", 0xF3: "riscv64"}
PE_MACHINES = {0x14C: "x86", 0x8664: "AMD64", 0xAA64: "ARM64"}
MACH_MACHINES = {0x0100_0007: "x86_64", 0x0100_000C: "arm64"}
# ScalarType of torch/_export/serde/schema.py, which differs from the ScalarType of c10
SCALAR_TYPES = {row.export: row.name for row in DTYPES.values() if row.export is not None}
WITHOUT_GRADIENTS = frozenset(row.name for row in DTYPES.values() if row.kind in {"bool", "integer"})


def recognise(names: frozenset[str]) -> str | None:
    """The record that identifies this format."""
    return MARKER if MARKER in names else None


def native(archive: ZipArchive) -> list[dict[str, str]]:
    """The output of AOTInductor: for each record of native code, the program that it belongs to, and the facts that its metadata states.

    Raises:
        Corrupt: the metadata or a library cannot be read.
    """
    libraries: list[tuple[str, str]] = []
    metadata: dict[str, dict[str, Any]] = {}
    for record in archive.names:
        if record.startswith(COMPILED):
            folder = record.rpartition("/")[0]
            if record.endswith(LIBRARIES):
                libraries.append((record, folder))
            elif record.endswith("metadata.json"):
                metadata.setdefault(folder, {}).update(_export.load_json(archive, record))
    results = []
    for record, folder in libraries:
        stated = metadata.get(folder, {})
        known = _header(archive.view(record)) | {word: _said(stated[key]) for word, key in METADATA.items() if key in stated}
        results.append({"record": record, "program": cut(folder.removeprefix(COMPILED), 80), **known})
    return results


def _header(library: memoryview) -> dict[str, str]:
    """Platform and machine of a shared library, from its ELF, PE or Mach-O header; nothing if it has none of these headers."""
    head = bytes(library[:64])
    if head[:4] == b"\x7fELF" and len(head) >= 20:
        order: Literal["little", "big"] = "big" if head[5] == 2 else "little"
        result = "linux", ELF_MACHINES.get(int.from_bytes(head[18:20], order))
    elif head[:2] == b"MZ" and len(head) == 64:
        at = int.from_bytes(head[60:64], "little")
        pe = bytes(library[at : at + 6])
        result = "win32", PE_MACHINES.get(int.from_bytes(pe[4:], "little")) if pe[:4] == b"PE\0\0" else None
    elif head[:4] == b"\xcf\xfa\xed\xfe" and len(head) >= 8:
        result = "darwin", MACH_MACHINES.get(int.from_bytes(head[4:8], "little"))
    else:
        return {}
    return {"platform": result[0]} | ({"machine": result[1]} if result[1] else {})


def _said(value: Any) -> str:
    return escaped(cut(value, 40) if isinstance(value, str) else brief(value, 40))


def programs(names: tuple[str, ...] | frozenset[str]) -> list[str]:
    """The records that hold programs."""
    return sorted(name for name in names if name.startswith("models/") and name.endswith(".json"))


def versions(archive: ZipArchive, names: frozenset[str]) -> dict[str, int]:
    """File format, and the major number of the schema.

    Raises:
        Corrupt: one of them cannot be read.
    """
    result = _zip.file_format(archive, names)
    records = programs(names)
    if records:
        program = _export.load_json(archive, records[0])
        result["export-schema"] = _export.schema_version(archive, records[0], program)[0]
    return result


def read(archive: ZipArchive, facts: Facts) -> None:
    """Fill in the facts of the archive.

    Raises:
        ArchiveError: a record of it cannot be read.
    """
    read_markers(archive, facts)
    message = _zip.text(archive, MARKER)
    if message != "pt2":
        raise Corrupt(f"contains {message[:40]!r}, expected 'pt2'", where=f"{archive.path}, record {MARKER!r}", code="bad-format")
    facts.extra["archive_version"] = _zip.text(archive, "archive_version") if "archive_version" in facts.records else None
    calls: set[Call] = set()
    for record in reversed(programs(archive.names)):
        _export.add_program(archive, facts, record, _export.load_json(archive, record), calls)
    facts.calls = frozenset(calls)
    facts.extra["programs"] = [record.removeprefix("models/").removesuffix(".json") for record in programs(archive.names)]
    facts.extra["native"] = native(archive)
    torch = _export.release(facts)
    line = LINES.get(facts.export_schema or "")
    if facts.export_schema is None:
        facts.producer = Producer(torch, "2.6", None, because=(f"record {MARKER}",))
        return
    first, last = (line, line) if line else ("2.12" if facts.export_schema == "8.20" else "2.8", None)
    facts.producer = Producer(torch, first, last, because=(f"schema version {facts.export_schema}",))
    for record in archive.names:
        if record.startswith("data/") and record.endswith(".pt") and archive.member(record).size:
            _nested.add(archive, facts, record)
        elif record.startswith("data/") and record.endswith(CONFIGS):
            _add_weights(archive, facts, record)


def _add_weights(archive: ZipArchive, facts: Facts, config: str) -> None:
    places = _zip.calculated(archive, facts)
    folder = config.rpartition("/")[0]
    seen = facts.held
    where = f"{archive.path}, record {config!r}"
    weights = _export.load_json(archive, config).get("config")
    shown = facts.extra.setdefault("tensors", {})
    if not isinstance(weights, dict):
        raise Corrupt(
            f"contains a value of type {type(weights).__name__} as its config, expected an object", where=where, code="bad-json"
        )
    for name, weight in weights.items():
        path, meta = _described(weight, name, where)
        record = f"{folder}/{path}"
        shown[name] = _shape(weight, meta)
        if weight.get("is_param") and _dtype(meta) in WITHOUT_GRADIENTS:
            facts.extra.setdefault("integer_parameter", config)
        if record in seen:
            continue
        seen.add(record)
        archive.allowance.spend(JSON)
        dtype = _dtype(meta)
        if record not in facts.records:
            message = f"has no record {record!r} for the weight {name!r}"
            _zip.note(archive, "missing-record", record, message)
            facts.storages.append(StorageRecord(path, dtype, 0, None, None, record, why=message))
            continue
        member = archive.member(record)
        why = None if places else _zip.NOT_TORCH
        facts.storages.append(StorageRecord(path, dtype, member.size, member.data_offset, places.get(record), record, why=why))


def _shape(weight: Any, meta: Any) -> str:
    """Dtype and shape as text."""
    kind = "parameter" if weight.get("is_param") else "tensor"
    if not isinstance(meta, dict) or not isinstance(meta.get("sizes"), list):
        return kind
    sizes = [brief(size.get("as_int", "?"), 20) if isinstance(size, dict) else "?" for size in meta["sizes"][:64]]
    return f"{kind} {_dtype(meta) or '(dtype not stated)'} [{', '.join(sizes)}]"


def _dtype(meta: Any) -> str | None:
    """The dtype that the description of a weight states; None if it states no known dtype."""
    number = meta.get("dtype") if isinstance(meta, dict) else None
    return SCALAR_TYPES.get(number) if isinstance(number, int) else None


def _described(weight: Any, name: str, where: str) -> tuple[str, Any]:
    path = weight.get("path_name") if isinstance(weight, dict) else None
    if not isinstance(path, str):
        raise Corrupt(f"has no path for the weight {name[:80]!r}", where=where, code="bad-json")
    return path, weight.get("tensor_meta")
