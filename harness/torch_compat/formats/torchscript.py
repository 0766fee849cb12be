"""TorchScript of 1.3 and newer: code, data and constants in a zip archive.

Written by torch.jit.save of 1.3 and newer; read by torch.jit.load of 1.3 and newer, as far as versions and operators allow.

Records:

* ``data.pkl``            the module as a pickle: objects of the classes in ``code/``, tensors as ``torch._utils._rebuild_tensor_v2``;
                          objects of ``torch.classes`` as the state that ``__getstate__`` of their class returned (1.5 and newer)
* ``data/N``              its storages (1.3: one for each tensor, though they share memory)
* ``code/__torch__.py``, ``code/__torch__/...py``    source, compressed where it is longer than 200 bytes; ``.debug_pkl`` beside each: where the
                          code came from (1.12 and newer: with a string table, marked ``FORMAT_WITH_STRING_TABLE``)
* ``constants.pkl``, ``constants/N``    tensors that the code calls ``CONSTANTS.c0``
* ``traced_inputs.pkl``, ``traced_inputs/N``    inputs of traced modules (2.0 and newer); the records are empty, because the data was left out
* ``extra/FILE``          whatever the user put there
* ``version``, or ``.data/version`` where it is 6 or higher; ``byteorder`` and ``.data/serialization_id`` from 2.1 on

The layouts differ only in the order of the records and in their versions:

* 1.3: ``version`` (1) first, then ``code/``, ``constants.pkl`` and ``data.pkl`` last; headers carry the time of writing.
  Source begins with ``op_version_set = 1``.
* 1.4: ``version`` (1) first, then ``data/``, ``data.pkl``, ``code/``, ``constants.pkl``; no times. 1.5 the same with version 2,
  and no ``op_version_set`` from there on.
* 1.6 and newer: ``data/``, ``data.pkl``, ``code/``, ``constants.pkl``, ``version`` after all others.

The file format version is the lowest that the operators of the program need: 3, unless it uses ``div`` or ``full`` (4 and 5,
from 1.6 on), ``linspace`` (8) or ``logspace`` (9, both from 1.11 on) or ``gelu`` (10, from 1.12 on). 6 and 7 were never written.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from torch_compat.allowance import CALL, SOURCE
from torch_compat.errors import Corrupt
from torch_compat.formats import _zip
from torch_compat.formats.model import Producer
from torch_compat.formats.torch_save_zip import read_markers
from torch_compat.pickles import Described, Global, Tensor, parts
from torch_compat.torchscript.scanner import calls

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.archive import ZipArchive
    from torch_compat.formats.model import Call, Facts

__all__ = ["FAMILY", "LAYOUT", "read", "read_program", "read_sources", "recognise", "source_records", "versions"]

LAYOUT, FAMILY = "torchscript", "torchscript"
versions = _zip.file_format
CONVOLUTIONS = frozenset(f"__torch__.torch.classes.quantized.Conv{rank}dPackedParamsBase" for rank in (2, 3))
FIRST_PARTS = 16  # parts of a state, among which its first tensor must be
MOST_NUMBERS = 64  # bytes of the numbers of a convolution; the largest has 15 of them
MARKS = "\"'#()[]{},="
SHORT = 2000  # characters of source
CALLED = 40  # units of work for each possible operator call
STRING_TABLE = b"FORMAT_WITH_STRING_TABLE"
FIRST_LINES = {4: "1.6", 5: "1.6", 7: "1.11", 8: "1.11", 9: "1.11", 10: "1.12"}  # that write a file format version


def recognise(names: frozenset[str]) -> str | None:
    """The record that identifies this format."""
    return "constants.pkl" if "constants.pkl" in names else None


def read(archive: ZipArchive, facts: Facts) -> None:
    """Fill in the facts of the archive.

    Raises:
        ArchiveError: a record of it cannot be read.
    """
    facts.producer = producer(archive, facts)
    read_program(archive, facts)
    read_sources(archive, facts)


def read_program(archive: ZipArchive, facts: Facts) -> None:
    """Data and constants.

    Raises:
        ArchiveError: a record of them cannot be read.
    """
    read_markers(archive, facts)
    for record, folder in (("data.pkl", "data/"), ("constants.pkl", "constants/"), ("traced_inputs.pkl", "traced_inputs/")):
        if record in facts.records:
            unpickled = _zip.read_pickle(archive, facts, record)
            result = unpickled.storages
            if record == "data.pkl" and any(global_.path in CONVOLUTIONS for global_ in unpickled.globals):
                facts.extra["packed_transposed"] = _packs_transposed(archive, facts, unpickled.value)
            if result:
                key_of = "" if folder == "data/" else folder
                _zip.add_storages(archive, facts, result, folder.__add__, key_of=key_of, skipped=folder == "traced_inputs/")
        elif record == "data.pkl":
            raise Corrupt("has no record 'data.pkl', which contains the module", where=archive.path, code="missing-record")


def _packs_transposed(archive: ZipArchive, facts: Facts, value: Any) -> bool:
    """Whether a quantized convolution among the packed parameters is a transposed one.

    From 1.7 on the state is ``(version, tensors, optional tensors)``. The first tensor holds int16: the numbers of the convolution; the
    last one tells whether it is transposed.
    """
    for described in parts(value):
        if described.__class__ is Described and described.target.__class__ is Global and described.target.path in CONVOLUTIONS:
            numbers = next((part for part in islice(parts(described.state), FIRST_PARTS) if part.__class__ is Tensor), None)
            if numbers is None or numbers.dtype != "int16" or numbers.storage is None or len(numbers.shape) != 1:
                continue
            record = f"data/{numbers.storage.key}"
            end = 2 * (numbers.offset + numbers.shape[0])
            small = record in facts.records and archive.member(record).size <= MOST_NUMBERS
            if small and end >= 2 and any(archive.record(record)[end - 2 : end]):
                return True
    return False


def source_records(names: tuple[str, ...]) -> Iterator[str]:
    """The records that hold source, also those of programs inside packages."""
    for name in names:
        if name.endswith(".py") and name.startswith(("code/", "libs/", ".data/ts_code/")):
            yield name


def read_sources(archive: ZipArchive, facts: Facts) -> None:
    """Source, and the operators that it calls.

    Raises:
        ArchiveError: a record cannot be read, or is not text.
    """
    results: set[Call] = set()
    for record in source_records(archive.names):
        try:
            source = str(archive.view(record), "utf-8")
        except UnicodeDecodeError as error:
            where = f"{archive.path}, record {record!r}"
            raise Corrupt(f"is not text: {error}", where=where, code="bad-text") from error
        if len(source) < SHORT:
            archive.allowance.spend(2 * SOURCE * len(source))  # more than it can cost: counting would take longer
        else:
            marks = SOURCE * sum(map(source.count, MARKS)) + CALLED * source.count("(")
            archive.allowance.spend(marks + len(source) // 4)
        facts.sources[record] = source
        before = len(results)
        results |= calls(source)
        archive.allowance.spend(CALL * (len(results) - before))
    facts.calls = facts.calls | results


def producer(archive: ZipArchive, facts: Facts) -> Producer:
    """The releases that write such records; records the form of the debug records as ``debug_format``.

    Raises:
        ArchiveError: a debug record cannot be read.
    """
    names, version = facts.records, facts.versions.get("file-format")
    debug = next((name for name in archive.names if name.endswith(".debug_pkl")), None)
    tabled = debug is not None and STRING_TABLE in bytes(archive.view(debug)[:64])
    if debug is not None:
        facts.extra["debug_format"] = "string-table" if tabled else "plain"
    if "byteorder" in names:
        return Producer(first="2.1", because=("byteorder record",))
    order = archive.names
    if order[0] == "version":
        if version == 2:
            return Producer(first="1.5", last="1.5", because=("version record comes first", "file format 2"))
        both = "data.pkl" in order and "constants.pkl" in order  # a damaged archive may lack either
        data_last = both and order.index("constants.pkl") < order.index("data.pkl")
        line = "1.3" if data_last else "1.4"
        return Producer(first=line, last=line, because=("version record comes first", "order of data.pkl and constants.pkl"))
    because = ["version record comes last", "no byteorder record", f"file format {version}"]
    first, last = FIRST_LINES.get(version or 0, "1.6"), "2.0"
    if tabled:
        first = "1.12"
    elif debug is not None:
        last = "1.11"
    if debug is not None:
        because.append(f"debug records {'with' if tabled else 'without'} a string table")
    return Producer(first=first, last=last, because=tuple(because))
