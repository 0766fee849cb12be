"""Parameters, buffers and constants of an exported program as tensors. Nothing that a pickle names is imported or called.

Three layouts, by program name ``NAME`` (see :mod:`torch_compat.formats.export_pt2` and :mod:`torch_compat.formats.export_plain`):

* 2.1 to 2.7: ``serialized_state_dict.pt`` and ``serialized_constants.pt`` (``.json`` in 2.1 and 2.2), archives of torch.save in the archive;
* 2.8: ``data/weights/NAME.pt`` and ``data/constants/NAME.pt``, the same;
* 2.9 and newer: ``data/weights/NAME_weights_config.json`` and ``data/constants/NAME_constants_config.json``, and a record of the bytes of
  each storage. Tensors that share a storage share its record; a record of 0 bytes means zeros.
"""

from __future__ import annotations

import base64
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat import arrays
from torch_compat.allowance import JSON, NESTED
from torch_compat.errors import Corrupt, HarnessError, Unsupported
from torch_compat.formats._export import load_json, union
from torch_compat.formats._nested import opened, torch_save
from torch_compat.pickles import cut
from torch_compat.runtime import dtypes
from torch_compat.runtime.exported.document import SCALAR_TYPES
from torch_compat.runtime.exported.plain import integer, only
from torch_compat.runtime.limits import meter
from torch_compat.runtime.tensor import OpaqueTensor, Tensor
from torch_compat.state.convert import Converter
from torch_compat.state.storages import Storages
from torch_compat.state.values import QuantizedTensor, TypedTensor

if TYPE_CHECKING:
    from torch_compat.archive import ZipArchive
    from torch_compat.formats.model import Facts

__all__ = ["read_constants", "read_weights"]

Values = dict[str, Any]


def read_weights(archive: ZipArchive, name: str | None) -> tuple[Values, Values]:
    """The state dictionary and the constants of a program: tensors by name.

    Parameters:
        name: of the program in a pt2 archive; None for the older layout.

    Raises:
        Corrupt: a record is missing, or a tensor leaves its storage.
        Unsupported: a constant is an object that only PyTorch can make.
    """
    if name is None:
        results = [_first(archive, f"serialized_{kind}.pt", f"serialized_{kind}.json") for kind in ("state_dict", "constants")]
        return _pickled(archive, results[0]), _pickled(archive, results[1])
    return _part(archive, name, "weights"), _part(archive, name, "constants")


def read_constants(stated: dict[str, str], archive: ZipArchive, where: str) -> Values:
    """The constants stored in a graph of schema 1, by name: archives of torch.save in base64.

    Raises:
        Corrupt: one is none.
    """
    results = {}
    for name, text in stated.items():
        place = f"{where}, constant {cut(name, 80)!r}"
        try:
            data = base64.b64decode(text, validate=True)
        except ValueError as error:
            raise Corrupt("is not base64", where=place, code="bad-json") from error
        archive.allowance.spend(NESTED)
        archive.allowance.expand(len(data))
        results[name] = _tensor(_values(*torch_save(place, data, archive.allowance)), place)
        if not isinstance(results[name], Tensor | OpaqueTensor):
            raise Corrupt(
                f"contains a value of type {type(results[name]).__name__}, expected a tensor", where=place, code="bad-nested"
            )
    return results


def _first(archive: ZipArchive, *records: str) -> str | None:
    return next((record for record in records if record in archive.names), None)


def _part(archive: ZipArchive, name: str, kind: str) -> Values:
    record = _first(archive, f"data/{kind}/{name}.pt")
    if record is not None:
        return _pickled(archive, record)
    config = f"data/{kind}/{name}_{kind}_config.json"
    if config not in archive.names:
        raise Corrupt(f"has no record {config!r} for the {kind} of the program", where=archive.path, code="missing-record")
    return _configured(archive, config)


def _pickled(archive: ZipArchive, record: str | None) -> Values:
    """The dictionary in an archive of torch.save. 2.1 has no constants; if empty, they are not an archive."""
    if record is None or not archive.member(record).size:
        return {}
    result = _unpickled(archive, record)
    if not isinstance(result, dict):
        message = f"contains a value of type {type(result).__name__}, expected a dictionary"
        raise Corrupt(message, where=f"{archive.path}, record {record!r}", code="bad-nested")
    results: dict[int, Any] = {}
    for value in result.values():  # a tensor under two names is one tensor
        if id(value) not in results:
            results[id(value)] = _tensor(value, f"{archive.path}, record {record!r}")
    return {str(name): results[id(value)] for name, value in result.items()}


def _unpickled(archive: ZipArchive, record: str) -> Any:
    inner, facts, _ = opened(archive, record)
    return _values(inner, facts)


def _values(inner: ZipArchive, facts: Facts) -> Any:
    with inner:
        return Converter(Storages(inner, facts, mmap=False), with_types=True).convert(facts.pickles["data.pkl"].value)


def _tensor(value: Any, where: str) -> Any:
    if not isinstance(value, TypedTensor):
        return value
    kept, dtype = value.array, dtypes.named(value.dtype)
    if value.type is not None and not value.parameter:
        raise Unsupported(f"contains a tensor of class {value.type.path}", where=where, code="tensor-class")
    if isinstance(kept, np.ndarray) and dtype is not None and dtype.numpy == kept.dtype:
        return Tensor(kept, value.requires_grad, value.parameter)
    parts = {"value": kept}
    layout = "torch.strided" if isinstance(kept, QuantizedTensor) else f"torch.{value.layout}"
    return OpaqueTensor(layout, dtype or dtypes.FLOAT32, value.shape, parts)


# ------------------------------------------------------------------------------------------------ one record for each storage


def _configured(archive: ZipArchive, config: str) -> Values:
    where = f"{archive.path}, record {config!r}"
    storages: dict[str, Any] = {}
    try:
        entries = only(load_json(archive, config)["config"], dict)
        return {name: _one(archive, config.rpartition("/")[0], entry, storages) for name, entry in entries.items()}
    except HarnessError:
        raise
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        message = f"describes no weights: {type(error).__name__} {cut(str(error), 200)}"
        raise Corrupt(message, where=where, code="bad-json") from error


def _one(archive: ZipArchive, folder: str, entry: dict[str, Any], storages: dict[str, Any]) -> Any:
    archive.allowance.spend(JSON)
    path = only(entry["path_name"], str)
    record = f"{folder}/{path}"
    where = f"{archive.path}, record {record!r}"
    if record not in archive.names:
        raise Corrupt(f"has no record {record!r}", where=archive.path, code="missing-record")
    meta = entry.get("tensor_meta")
    if entry.get("use_pickle"):
        if meta is None:
            raise Unsupported(f"{path!r} is an object of a custom class", where=where, code="custom-class")
        return _tensor(_unpickled(archive, record), where)
    meta = dict(only(meta, dict))
    name = SCALAR_TYPES.get(only(meta["dtype"], int))
    dtype = None if name is None else dtypes.named(name)
    if dtype is None:
        raise Corrupt(f"has the dtype {meta['dtype']}, which is not in the schema", where=where, code="bad-json")
    shape, strides = (tuple([_stated(item) for item in meta[key]]) for key in ("sizes", "strides"))
    offset = _stated(meta["storage_offset"])
    if any(size < 0 for size in shape):
        raise Corrupt("is a tensor with a negative size", where=where, code="bad-tensor")
    base = storages.get(path)
    if base is None:
        base = storages[path] = _storage(archive, record, dtype, math.prod(shape))
    if base.dtype != dtype.array:
        raise Corrupt(f"contains {base.dtype}, but is also described as {dtype.name}", where=where, code="bad-tensor")
    if not archive.member(record).size:  # a tensor without data: torch gives zeros
        strides, offset = arrays.contiguous_strides(shape), 0
    array = arrays.view(base, dtype.array, shape, strides, offset, where=where)
    return Tensor(array, meta.get("requires_grad") is True, entry.get("is_param") is True)


def _storage(archive: ZipArchive, record: str, dtype: dtypes.Dtype, count: int) -> Any:
    if not archive.member(record).size:
        meter.array(count)
        return np.zeros(count, dtype.array)
    view = archive.view(record)
    if len(view) % dtype.itemsize:
        message = f"contains {len(view)} bytes, which is not a multiple of the element size of {dtype.name}"
        raise Corrupt(message, where=f"{archive.path}, record {record!r}", code="size-disagrees")
    result = arrays.elements(bytearray(view), dtype.array)
    big = "byteorder" in archive.names and archive.record("byteorder").strip() == b"big"
    return result.byteswap() if big else result


def _stated(value: Any) -> int:
    kind, number = union(value)
    if kind != "as_int":
        raise ValueError(f"expected a number, found {kind}")
    return integer(number)
