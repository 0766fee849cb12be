"""TorchScript of 1.0 to 1.2: a program described by ``model.json``, in a zip archive of file format 1.

Written by torch.jit.save of 1.0, 1.1 and 1.2; read by torch.jit.load of 1.0 and newer, until a release drops it.

Records, in the order of writing: ``version`` (1), ``code/NAME.py`` for the program and one file for each submodule, ``libs/`` for
classes (1.2), ``debug/NAME.pkl`` (1.2), ``extra/FILE``, ``attributes.pkl`` (1.1 and 1.2), ``tensors/N``, ``model.json``.
Headers carry the time of writing.

``model.json`` is the protobuf message ``ModelDef`` as JSON, with 64-bit numbers as strings:

* ``protoVersion``: 1 in 1.0, 3 in 1.1, 5 in 1.2; ``producerName`` pytorch, ``producerVersion`` 1.0 in all three
* ``mainModule``: ``name``, ``torchscriptArena.key`` (its source), ``torchscriptDebugArena.key``, ``parameters`` (``name``,
  ``tensorId``, ``isBuffer``), ``attributes`` (``name``, ``type``, ``id``: the index in ``attributes.pkl``), ``submodules``
* ``tensors``: ``dims``, ``strides``, ``offset``, ``dataType`` (``FLOAT``...), ``data.key`` (the record), ``device``, ``requiresGrad``

``attributes.pkl`` holds a tuple; a tensor in it is a call of ``torch.jit._pickle.build_tensor_from_id``.
Source begins with ``op_version_set = 0`` (1.0, 1.1) or ``1`` (1.2); methods are functions with an untyped ``self``.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from torch_compat.allowance import JSON
from torch_compat.errors import Corrupt
from torch_compat.formats import _export, _zip
from torch_compat.formats.model import Producer, StorageRecord
from torch_compat.formats.torch_save_zip import read_markers
from torch_compat.formats.torchscript import read_sources
from torch_compat.pickles import brief, cut
from torch_compat.values.dtypes import CAFFE2

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.allowance import Allowance
    from torch_compat.archive import ZipArchive
    from torch_compat.formats.model import Facts

__all__ = ["FAMILY", "LAYOUT", "read", "recognise", "versions"]

LAYOUT, FAMILY = "torchscript_json", "torchscript"
versions = _zip.file_format
LONGEST = 200  # characters of one name
MOST_SIZES = 64  # number of sizes that are shown of a shape
LINES = {"1": "1.0", "3": "1.1", "5": "1.2"}


def recognise(names: frozenset[str]) -> str | None:
    """The record that identifies this format."""
    return "model.json" if "model.json" in names else None


def read(archive: ZipArchive, facts: Facts) -> None:
    """Fill in the facts of the archive.

    Raises:
        ArchiveError: a record of it cannot be read.
    """
    read_markers(archive, facts)
    model = _export.load_json(archive, "model.json")
    stated = model.get("protoVersion")
    proto = stated if isinstance(stated, str) else brief(stated, 20)
    line = LINES.get(proto)
    because = f"protoVersion {proto[:20]} in model.json"
    facts.producer = Producer(first=line or "1.0", last=line or "1.2", because=(because,))
    facts.extra["model"] = model
    read_sources(archive, facts)
    if "attributes.pkl" in facts.records:
        _zip.read_pickle(archive, facts, "attributes.pkl")
    tensors = model.get("tensors", [])
    tensors = tensors if isinstance(tensors, list) else [tensors]
    _add_tensors(archive, facts, tensors)
    facts.extra["tensors"] = dict(_parameters(model.get("mainModule"), tensors, archive.allowance))


def _parameters(module: Any, tensors: list[Any], allowance: Allowance) -> Iterator[tuple[str, str]]:
    """The parameters of a module and of all those in it: qualified names, and dtype and shape as text.

    Names and shapes are truncated: all parameters may name the same tensor, and all names in a module include the name of the module.
    """
    modules = [("", module)]
    while modules:
        prefix, item = modules.pop()
        if not isinstance(item, dict):
            continue
        for parameter in _dicts(item.get("parameters")):
            allowance.spend(JSON)
            number = _word(parameter.get("tensorId"), 9)
            known = number.isascii() and number.isdecimal() and len(number) < 9 and int(number) < len(tensors)
            tensor = tensors[int(number)] if known else {}
            dtype = CAFFE2.get(_word(tensor.get("dataType")), "(dtype not stated)")
            kind = "buffer" if parameter.get("isBuffer") else "parameter"
            dims = tensor.get("dims")
            shape = ", ".join(_word(size, 20) for size in islice(dims, MOST_SIZES)) if isinstance(dims, list) else "?"
            yield f"{prefix}{_word(parameter.get('name'), LONGEST)}", f"{kind} {dtype} [{shape if dims is not None else ''}]"
        inside = _dicts(item.get("submodules"))
        allowance.spend(JSON * len(inside))
        modules += [(cut(f"{prefix}{_word(inner.get('name'), LONGEST)}.", 4 * LONGEST), inner) for inner in reversed(inside)]


def _word(value: Any, longest: int = 80) -> str:
    """Text as is, anything else in its written form, truncated if it is longer."""
    return cut(value, longest) if isinstance(value, str) else brief(value, longest)


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _add_tensors(archive: ZipArchive, facts: Facts, tensors: list[Any]) -> None:
    seen: set[str] = set()
    places: dict[str, int] | None = None
    for tensor in tensors:
        data = tensor.get("data") if isinstance(tensor, dict) else None
        record = data.get("key") if isinstance(data, dict) else None
        if not isinstance(record, str):
            where = f"{archive.path}, record 'model.json'"
            raise Corrupt(f"describes a tensor without data: {brief(tensor)}", where=where, code="bad-json")
        if record in seen:
            continue
        seen.add(record)
        dtype = CAFFE2.get(_word(tensor.get("dataType")))
        archive.allowance.spend(JSON)
        if record not in facts.records:
            message = f"has no record {record!r} for a tensor"
            _zip.note(archive, "missing-record", record, message)
            facts.storages.append(StorageRecord(record, dtype, 0, None, None, record, why=message))
            continue
        member = archive.member(record)
        if places is None:
            places = _zip.calculated(archive, facts)
        item = StorageRecord(record.rpartition("/")[2], dtype, member.size, member.data_offset, places.get(record), record)
        item.why = None if places else _zip.NOT_TORCH
        item.device = tensor["device"] if isinstance(tensor.get("device"), str) else None
        facts.storages.append(item)
