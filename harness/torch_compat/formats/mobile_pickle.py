"""Bytecode of the lite interpreter, pickled: a TorchScript archive (:mod:`torch_compat.formats.torchscript`) and ``bytecode.pkl``.

Written by ``_save_for_lite_interpreter`` of 1.5 and newer (``.ptl``) and by ``torch.jit.mobile._backport_for_mobile`` (1.9 and newer), which
rewrites an archive to an older bytecode version; read by ``_load_for_lite_interpreter`` of 1.5 and newer.

``bytecode.pkl`` holds a tuple: the bytecode version (1.7 and newer; 1.5 and 1.6 start directly with the functions), then one tuple
for each function: its qualified name, its code, and (1.8 and newer, in version 4 already) its schema.

* code: pairs of a name and a tuple: ``instructions`` (``("OP", index, 0)``...), ``operators`` (``("aten::add", "Tensor")``, from version
  6 on with the number of given arguments: ``("aten::add", "Tensor", 2)``), ``constants``, ``types``, ``register_size``
  A type is a text; a named tuple is defined by its name and its fields: ``__torch__.Found[NamedTuple, [[name, str]]]`` (1.11 and newer)
* schema: pairs ``arguments`` and ``returns``, each a tuple of ``name``, ``type``, ``default_value``

Versions: 3 was never written with its number; 4 by 1.7 and 1.8; 5 by 1.9; 6 only by a backport (1.10 and newer);
7 by 1.10 and 1.11; 8 by 1.12 and newer. From 5 on tensors are shared with ``constants/``. From 8 on frequent operators have their own instructions (``__IS__``, ``DIM``, ``FORMAT``...),
and are no longer in the list of operators.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch_compat.errors import Corrupt
from torch_compat.formats import _zip
from torch_compat.formats._mobile_types import named_classes
from torch_compat.formats.model import Call, Producer
from torch_compat.formats.torchscript import producer, read_program
from torch_compat.formats.torchscript import read_sources as read_torchscript_sources
from torch_compat.releases.release import Release

if TYPE_CHECKING:
    from torch_compat.archive import ZipArchive
    from torch_compat.formats.model import Facts

__all__ = ["FAMILY", "LAYOUT", "read", "recognise", "versions"]

LAYOUT, FAMILY = "mobile_pickle", "mobile"
RECORD = "bytecode.pkl"
MOST_ARGUMENTS = 1 << 31
ENTRY = 3  # units of work for an instruction, an operator, a function
FIRST_LINES = {4: "1.7", 5: "1.9", 6: "1.10", 7: "1.10", 8: "1.12"}
# PROTO n, MARK, then a number: the version; anything else is the first function
NUMBERS = {0x4B: 1, 0x4D: 2, 0x4A: 4}  # BININT1, BININT2, BININT


def recognise(names: frozenset[str]) -> str | None:
    """The record that identifies this format."""
    return RECORD if RECORD in names else None


def versions(archive: ZipArchive, names: frozenset[str]) -> dict[str, int]:
    """File format and bytecode version; the latter is omitted if the archive does not state it (1.5 and 1.6).

    Raises:
        Corrupt: one of them cannot be read.
    """
    result = _zip.file_format(archive, names)
    head = bytes(archive.view(RECORD)[:16])
    if len(head) < 3 or head[0] != 0x80:
        where = f"{archive.path}, record {RECORD!r}"
        raise Corrupt(f"begins with {head[:4].hex(' ') or 'nothing'}, expected a pickle", where=where, code="bad-pickle")
    at = 3 if head[2:3] == b"(" else 2
    width = NUMBERS.get(head[at]) if at < len(head) else None
    if width:
        result["bytecode"] = int.from_bytes(head[at + 1 : at + 1 + width], "little", signed=width == 4)
    return result


def read(archive: ZipArchive, facts: Facts) -> None:
    """Fill in the facts of the archive.

    Raises:
        ArchiveError: a record of it cannot be read.
    """
    version = facts.versions.get("bytecode")
    facts.producer = _producer(archive, facts, version)
    read_program(archive, facts)
    read_torchscript_sources(archive, facts)
    result = _zip.read_pickle(archive, facts, RECORD)
    folder = "constants/" if version is not None and version >= 5 else "bytecode/"
    if result.storages:
        _zip.add_storages(archive, facts, result.storages, folder.__add__, key_of=folder)
    functions = result.value if isinstance(result.value, tuple) else (result.value,)
    functions = functions[1:] if version is not None else functions
    facts.calls, facts.extra["instructions"], facts.extra["named_classes"] = _read_functions(functions, archive)


def _read_functions(functions: tuple[Any, ...], archive: ZipArchive) -> tuple[frozenset[Call], tuple[str, ...], frozenset[str]]:
    """The operators that the functions name, the instructions that they use, and how their types name classes."""
    results: set[Call] = set()
    instructions: set[str] = set()
    classes: set[str] = set()
    try:
        for function in functions:
            archive.allowance.spend(ENTRY * (1 + len(function[1])))
            code = {_text(key): value for key, value in function[1]}
            archive.allowance.spend(ENTRY * (len(code["instructions"]) + len(code["operators"])))  # functions may share them
            instructions.update(_text(instruction[0]) for instruction in code["instructions"])
            for operator in code["operators"]:
                name, overload, *count = operator
                results.add(Call(_text(name), _text(overload), _count(count[0]) if count else None, ()))
            classes |= named_classes(code.get("types", ()), function[2] if len(function) > 2 else (), archive.allowance)
        return frozenset(results), tuple(sorted(instructions)), frozenset(classes)
    except (TypeError, ValueError, LookupError):
        pass
    where = f"{archive.path}, record {RECORD!r}"
    raise Corrupt("does not contain functions with instructions, operators, types and a schema", where=where, code="bad-bytecode")


def _text(value: Any) -> str:
    if not isinstance(value, str):  # a tuple that shares itself must not even be hashed
        raise TypeError
    return value


def _count(value: Any) -> int:
    if not isinstance(value, int) or not -1 <= value < MOST_ARGUMENTS:  # -1: as many as there are
        raise TypeError
    return value


def _producer(archive: ZipArchive, facts: Facts, bytecode: int | None) -> Producer:
    names = archive.names
    result = producer(archive, facts)
    if names[0] == "version":
        return Producer(first="1.5", last="1.5", because=("version record comes first",))
    if bytecode is None:
        return Producer(first="1.6", last="1.6", because=("bytecode without a number", "version record comes last"))
    first = result.first
    if result.last in {"1.11", "2.0"}:
        least = FIRST_LINES.get(bytecode, "1.7")
        first = max(first or least, least, key=Release)
    return result._replace(first=first, because=(*result.because, f"bytecode {bytecode}"))
