"""Values of ``load_state(..., with_types=True)`` in the neutral form of goldens, encoded as the worker encodes those of torch."""

from __future__ import annotations

import base64
import builtins
import json
from typing import Any

import numpy as np

from torch_compat.pickles import Deque, Described, Device, Dict, Global, Size
from torch_compat.state import (
    Absent,
    CompressedTensor,
    NestedTensor,
    QuantizedTensor,
    RawTensor,
    SparseTensor,
    TypedStorage,
    TypedTensor,
)
from torch_compat.values.dtypes import ALIASES, ELEMENT_SIZES

PARTS = {
    "sparse_csr": ("crow_indices", "col_indices"), "sparse_bsr": ("crow_indices", "col_indices"),
    "sparse_csc": ("ccol_indices", "row_indices"), "sparse_bsc": ("ccol_indices", "row_indices"),
}  # fmt: skip
INT_REPR = {"qint8": "int8", "quint8": "uint8", "qint32": "int32", "quint4x2": "uint8", "quint2x4": "uint8"}


def bits(array: np.ndarray[Any, Any]) -> str:
    """The elements in order, little-endian."""
    whole = np.ascontiguousarray(array)
    if whole.dtype.byteorder == ">":
        whole = whole.astype(whole.dtype.newbyteorder("<"))
    return base64.b64encode(whole.tobytes()).decode("ascii")


class Neutral:
    """Encodes values that belong together.

    Attributes:
        absent: how many tensors and storages have no numbers; they are encoded as zeros, which is how torch shows them.
    """

    def __init__(self) -> None:
        self.storages: dict[Any, int] = {}
        self.addresses: dict[str, int] = {}
        self.open: list[Any] = []
        self.absent = 0

    def encode(self, value: Any) -> Any:
        if value is None or isinstance(value, bool | str) or type(value) is int:
            return value
        if type(value) is float:
            return {"float": number(value)}
        if type(value) is complex:
            return {"complex": [number(value.real), number(value.imag)]}
        if isinstance(value, TypedTensor):
            return self.tensor(value)
        if isinstance(value, TypedStorage):
            return {"object": {"type": "torch.Storage", "state": self.storage(value)}}
        if isinstance(value, Device):
            return {"device": str(value)}
        if isinstance(value, Global):
            return named(value)
        if isinstance(value, bytes):
            return {"object": {"type": "bytes", "state": base64.b64encode(value).decode("ascii")}}
        if isinstance(value, np.ndarray | np.generic):
            return self.numpy(value)
        if any(value is other for other in self.open):
            return {"object": {"type": type_name(value), "state": "<cycle>"}}
        self.open.append(value)
        try:
            return self.container(value)
        finally:
            self.open.pop()

    def pairs(self, value: dict[Any, Any]) -> dict[str, Any]:
        return {"dict": [[self.encode(key), self.encode(item)] for key, item in value.items()]}

    def container(self, value: Any) -> Any:
        if type(value) is list:
            return [self.encode(item) for item in value]
        if type(value) is tuple:
            return {"tuple": [self.encode(item) for item in value]}
        if type(value) is dict:
            return self.pairs(value)
        state: Any
        if isinstance(value, Dict):
            state = self.pairs(value)
        elif isinstance(value, set | frozenset):
            state = sorted((self.encode(item) for item in value), key=lambda item: json.dumps(item, sort_keys=True))
        elif isinstance(value, Size):
            state = [self.encode(item) for item in value]
        elif isinstance(value, Deque):
            state = [self.encode(((), value.maxlen)), None, [self.encode(item) for item in value], None]
        elif isinstance(value, bytearray):
            state = [self.encode((value.decode("latin-1"), "latin-1")), None, None, None]
        elif isinstance(value, range):
            state = [self.encode((value.start, value.stop, value.step)), None, None, None]
        elif isinstance(value, Described) and is_module(value):
            state = self.module(value)
        elif type_name(value) in {"torch.nn.parameter.UninitializedBuffer", "torch.nn.parameter.UninitializedParameter"}:
            state = "<raises builtins.ValueError when looked at>"  # it has no shape, and says so
        elif isinstance(value, Described) and isinstance(value.state, dict) and not value.args:
            state = {"dict": [[key, self.encode(item)] for key, item in sorted(value.state.items())]}
        else:
            raise TypeError(f"no neutral form of {value!r}")
        return {"object": {"type": type_name(value), "state": state}}

    # ---------------------------------------------------------------------------------------------------------------- tensors

    def tensor(self, value: TypedTensor) -> Any:
        product = value.array
        if isinstance(product, QuantizedTensor):
            return self.quantized(value, product)
        if isinstance(product, SparseTensor):
            parts = [["indices", self.encode(product.indices)], ["values", self.encode(product.values)]]
            return unusual("torch.sparse_coo", parts, product.dtype, product.shape)
        if isinstance(product, CompressedTensor):
            names = (*PARTS[product.layout], "values")
            result = (product.compressed, product.plain, product.values)
            parts = [[name, self.encode(part)] for name, part in zip(names, result, strict=True)]
            return unusual(f"torch.{product.layout}", parts, product.dtype, product.shape)
        if isinstance(product, NestedTensor):
            parts = [["tensors", [plain(part) for part in product.tensors]]]
            return unusual("torch.strided", parts, product.dtype, None)
        body: dict[str, Any] = {"dtype": value.dtype, "shape": list(value.shape), "strides": list(value.strides or ())}
        if isinstance(product, Absent):
            assert (product.dtype, product.shape, product.strides) == (value.dtype, value.shape, value.strides)
            self.absent += 1
            count = int(np.prod(value.shape)) * ELEMENT_SIZES[value.dtype]
            body["bytes"] = base64.b64encode(bytes(count)).decode("ascii")
        else:
            body["bytes"] = self.elements(value, product)
        self.placed(body, value, product)
        if value.parameter:
            body["class"] = "torch.nn.parameter.Parameter"
        elif value.type is not None:
            body["class"] = value.type.path
        if value.requires_grad:
            body["requires_grad"] = True
        return {"tensor": body}

    def elements(self, value: TypedTensor, item: Any) -> str:
        """Bytes of an array, which has to have the shape and strides that torch states."""
        raw = isinstance(item, RawTensor)
        array = item.array if raw else item
        assert array.shape[: len(value.shape)] == value.shape
        steps = tuple(step // ELEMENT_SIZES[value.dtype] for step in array.strides[: len(value.shape)])
        assert steps == value.strides
        return bits(array)

    def placed(self, body: dict[str, Any], value: TypedTensor | TypedStorage, item: Any) -> None:
        """Number the storage; views that share one have to lie in the same memory, others apart."""
        key = value.storage
        if key is None:
            return
        offset = value.offset if isinstance(value, TypedTensor) else 0
        array = item.array if isinstance(item, RawTensor) else item
        if isinstance(array, Absent) or getattr(value, "conj", False) or getattr(value, "neg", False):
            body["storage"] = self.storages.setdefault(key, len(self.storages))
            body["offset"] = offset
        elif array.size:
            start = array.__array_interface__["data"][0] - offset * ELEMENT_SIZES[value.dtype]
            assert self.addresses.setdefault(key, start) == start
            assert list(self.addresses.values()).count(start) == 1
            body["storage"] = self.storages.setdefault(key, len(self.storages))
            body["offset"] = offset

    def storage(self, value: TypedStorage) -> Any:
        array = value.array
        body: dict[str, Any] = {"dtype": value.dtype, "strides": [1], "offset": 0}
        if isinstance(array, Absent):
            self.absent += 1
            body["shape"] = list(array.shape)
            body["bytes"] = base64.b64encode(bytes(array.shape[0] * ELEMENT_SIZES[value.dtype])).decode("ascii")
        else:
            body["shape"] = list(array.shape[:1])
            body["bytes"] = bits(array)
        self.placed(body, value, array)
        return {"tensor": body}

    def quantized(self, value: TypedTensor, item: QuantizedTensor) -> Any:
        """Torch gives the numbers as a new tensor, which shares nothing."""
        assert isinstance(item.int_repr, np.ndarray)
        dtype = INT_REPR[item.dtype]
        assert item.int_repr.dtype == dtype
        parts: list[Any] = [["int_repr", plain(item.int_repr.copy(order="C"))], ["qscheme", f"torch.{item.scheme}"]]
        if item.axis is None:
            parts += [["scale", self.encode(item.scale)], ["zero_point", item.zero_point]]
        else:
            for name, part in (("scales", item.scale), ("zero_points", item.zero_point)):  # numbers alone in 1.3 and 1.4
                parts.append([name, plain(part) if isinstance(part, np.ndarray) else self.encode(part)])
            parts.append(["axis", item.axis])
        return unusual("torch.strided", parts, item.dtype, item.shape)

    # ---------------------------------------------------------------------------------------------------------------- objects

    def module(self, value: Described) -> Any:
        """Parameters and buffers by their full names, each once."""
        entries = []
        for kind, part in (("parameter", "_parameters"), ("buffer", "_buffers")):
            seen: set[int] = set()
            for name, tensor in members(value, part, "", set()):
                if tensor is not None and id(tensor) not in seen:
                    seen.add(id(tensor))
                    encoded = self.encode(tensor)
                    encoded.get("tensor", {}).pop("class", None)
                    entries.append([name, {"tuple": [kind, encoded]}])
        return {"dict": sorted(entries, key=lambda entry: entry[0])}

    def numpy(self, value: Any) -> Any:
        if value.dtype.hasobject:
            parts = [["items", self.encode(value.tolist())]]
        else:
            parts = [["bytes", base64.b64encode(value.tobytes()).decode("ascii")]]
        state = {"dict": [["dtype", value.dtype.str], ["shape", list(value.shape)], *parts]}
        name = "bool_" if type(value) is np.bool_ else type(value).__name__  # numpy 2 calls it bool
        return {"object": {"type": f"numpy.{name}", "state": state}}


def members(module: Described, part: str, prefix: str, seen: set[int]) -> Any:
    """Own ones of a module first, then those of the modules in it, each module once: as ``named_parameters`` goes."""
    if id(module) in seen:
        return
    seen.add(id(module))
    for name, tensor in module.state.get(part, {}).items():
        yield prefix + name, tensor
    for name, inner in module.state.get("_modules", {}).items():
        if inner is not None:
            yield from members(inner, part, f"{prefix}{name}.", seen)


def is_module(value: Described) -> bool:
    return isinstance(value.state, dict) and {"_parameters", "_buffers", "_modules"} <= value.state.keys()


def plain(array: Any) -> Any:
    """A tensor that stands alone."""
    strides = [step // array.itemsize for step in array.strides]
    return {"tensor": {"dtype": str(array.dtype), "shape": list(array.shape), "strides": strides, "bytes": bits(array)}}


def unusual(kind: str, parts: list[Any], dtype: str, shape: tuple[int, ...] | None) -> Any:
    last = [["dtype", f"torch.{dtype}"], ["shape", None if shape is None else list(shape)]]
    return {"object": {"type": kind, "state": {"dict": parts + last}}}


def named(value: Global) -> Any:
    """A dtype of torch; or something of Python's own, as the worker finds it when it is there."""
    if value.module == "torch":
        return {"dtype": ALIASES.get(value.name, value.name)}
    assert value.module == "builtins"
    result = getattr(builtins, value.name)
    state = value.path if callable(result) else value.name
    return {"object": {"type": f"builtins.{type(result).__name__}", "state": state}}


def type_name(value: Any) -> str:
    if isinstance(value, Dict | Deque):
        return str(value.type.path)
    if isinstance(value, Described):
        return str(value.target.path)
    if isinstance(value, Size):
        return "torch.Size"
    return f"{type(value).__module__}.{type(value).__qualname__}"


def number(value: float) -> Any:
    if value != value:  # noqa: PLR0124 - a NaN
        return "nan"
    if value in {float("inf"), float("-inf")}:
        return "inf" if value > 0 else "-inf"
    return value
