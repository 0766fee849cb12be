"""Convert values between JSON for people and the form of readers (:mod:`torch_compat.values.form`).

People write tensors as ``{"dtype", "shape", "data"}``, flat and row-major. Readers use little-endian bytes with strides and shared
storages, which preserves signs of zeros and payloads of NaNs. Both forms are accepted.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from torch_compat.arrays import contiguous_strides, elements
from torch_compat.errors import UsageError
from torch_compat.escapes import escaped
from torch_compat.runtime.dtypes import DTYPES, named
from torch_compat.values.form import INT64, LARGEST, MOST_DIMENSIONS, TAKEN, last_element, number, unwrapped

if TYPE_CHECKING:
    from torch_compat.runtime.dtypes import Dtype

__all__ = ["FORM", "plain", "read_arguments", "shown_value", "value_text"]

DEEPEST = 200
STANDARD_INPUT = "-"
DEVICES = frozenset({"cpu", "cuda", "meta", "mps", "xpu"})
FORM = (
    "write a JSON list of the positional arguments, such as [1, 2.5]; null, booleans, integers, strings and lists are passed as is, "
    'a tensor is {"tensor": {"dtype": "float32", "shape": [2], "data": [1.0, 2.0]}}'
)


plain = escaped
"""Text without control characters, on one line."""


# -------------------------------------------------------------------------------------------------------------- arguments


def read_arguments(given: str | Path) -> list[Any]:
    """Read the positional arguments of a call, in the form of readers.

    Parameters:
        given: a JSON list, ``-`` for standard input, or the path of a file. Text that begins with a bracket or a brace is JSON; write
            ``./[name`` for a file with such a name.

    Raises:
        UsageError: the file cannot be read, the text is not JSON, or a value violates the contract; the error says where.
    """
    name, text = _text_of(str(given))
    try:
        document = json.loads(text, parse_constant=_constant)
    except json.JSONDecodeError as error:
        where = f"{name}:{error.lineno}:{error.colno}"
        raise UsageError(f"is not valid JSON: {error.msg}", where=where, hint=FORM, code="arguments") from error
    except RecursionError as error:
        raise UsageError("is nested too deeply", where=name, hint=FORM, code="arguments") from error
    except ValueError as error:  # a constant, or an integer with thousands of digits
        raise UsageError(f"is not valid JSON: {plain(str(error))}", where=name, hint=FORM, code="arguments") from error
    if isinstance(document, dict) and document.keys() == {"tuple"}:
        document = document["tuple"]
    if not isinstance(document, list):
        raise UsageError(f"contains {_what(document)}, expected a list", where=name, hint=FORM, code="arguments")
    return [_Reading(name).value(item, f"[{index}]") for index, item in enumerate(document)]


def _text_of(given: str) -> tuple[str, str]:
    """The name of the arguments in errors, and their text."""
    if given.lstrip()[:1] in {"[", "{"}:
        return "--args", given
    name = "standard input" if given == STANDARD_INPUT else plain(given)
    try:
        data = sys.stdin.buffer.read() if given == STANDARD_INPUT else Path(given).read_bytes()
        return name, data.decode("utf-8")
    except FileNotFoundError as error:
        message = f"--args {name!r} is neither a JSON list, which begins with a bracket, nor an existing file"
        raise UsageError(message, hint=FORM, code="arguments") from error
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror or error}", where=name, hint=FORM, code="arguments") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"is not valid UTF-8 at byte {error.start}", where=name, hint=FORM, code="arguments") from error
    except ValueError as error:  # a null character in the name
        raise UsageError(f"is not a file name: {plain(str(error))}", where=name, hint=FORM, code="arguments") from error


def _constant(name: str) -> NoReturn:
    raise ValueError(f'{name} is not a JSON number; write {{"float": "{name.lower().removesuffix("inity")}"}}')


def _what(value: Any) -> str:
    if isinstance(value, dict):
        keys = ", ".join(plain(json.dumps(key)) for key in list(value)[:4])
        return f"an object with the keys {keys}" if value else "an empty object"
    text = json.dumps(value)
    return plain(text if len(text) <= 60 else f"{text[:57]}...")


class _Reading:
    """Reads the values of one file."""

    def __init__(self, name: str) -> None:
        self.name = name

    def wrong(self, where: str, item: Any, expected: str) -> NoReturn:
        raise UsageError(f"expected {expected}, found {_what(item)}", where=f"{self.name}, {where}", hint=FORM, code="arguments")

    def value(self, value: Any, where: str, depth: int = 0) -> Any:
        if depth > DEEPEST:
            raise UsageError(f"is nested deeper than {DEEPEST}", where=f"{self.name}, {where[:60]}", code="arguments")
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, int):
            return value if value in INT64 else self.wrong(where, value, "a 64-bit integer")
        if isinstance(value, float):
            return {"float": value} if math.isfinite(value) else self.wrong(where, value, "a number that fits in 64 bits")
        if isinstance(value, list):
            return [self.value(item, f"{where}[{index}]", depth + 1) for index, item in enumerate(value)]
        if len(value) != 1 or next(iter(value)) not in TAKEN:
            self.wrong(where, value, f"an object with one key, one of {', '.join(TAKEN)}")
        kind, body = unwrapped(value)
        read: Any = getattr(self, kind)
        return {kind: read(body, f"{where}.{kind}", depth + 1)}

    def float(self, body: Any, where: str, _: int = 0) -> Any:
        return self._number(body, where)

    def complex(self, body: Any, where: str, _: int = 0) -> Any:
        if not isinstance(body, list) or len(body) != 2:
            self.wrong(where, body, "[real, imaginary]")
        return [self._number(part, f"{where}[{index}]") for index, part in enumerate(body)]

    def tuple(self, body: Any, where: str, depth: int) -> Any:
        if not isinstance(body, list):
            self.wrong(where, body, "a list")
        return [self.value(item, f"{where}[{index}]", depth) for index, item in enumerate(body)]

    def dict(self, body: Any, where: str, depth: int) -> Any:
        if not isinstance(body, list) or any(not isinstance(pair, list) or len(pair) != 2 for pair in body):
            self.wrong(where, body, "a list of [key, value]")
        results = []
        for index, (key, item) in enumerate(body):
            known = self.value(key, f"{where}[{index}][0]", depth)
            if isinstance(known, list) or (isinstance(known, dict) and known.keys() & {"dict", "tuple"}):
                self.wrong(f"{where}[{index}][0]", key, "a key that a program can use: a string or a number")
            results.append([known, self.value(item, f"{where}[{index}][1]", depth)])
        return results

    def device(self, body: Any, where: str, _: int = 0) -> Any:
        kind, _colon, number = body.partition(":") if isinstance(body, str) else ("", "", "")
        if kind not in DEVICES or (number and not (number.isascii() and number.isdigit() and len(number) < 4)):
            self.wrong(where, body, "a device, such as cpu")
        return body

    def dtype(self, body: Any, where: str, _: int = 0) -> Any:
        result = named(body) if isinstance(body, str) else None
        if result is None:
            self.wrong(where, body, f"a dtype: {', '.join(DTYPES)}")
        return result.name

    def tensor(self, body: Any, where: str, _: int = 0) -> Any:
        if not isinstance(body, dict) or not {"dtype", "shape"} <= body.keys() or ("data" in body) == ("bytes" in body):
            self.wrong(where, body, 'an object with "dtype", "shape" and "data"')
        unknown = body.keys() - {"dtype", "shape", "data", "bytes", "strides", "storage", "offset", "requires_grad"}
        if unknown:
            self.wrong(where, sorted(unknown), 'no keys but "dtype", "shape", "data", "requires_grad"')
        dtype = DTYPES[self.dtype(body["dtype"], f"{where}.dtype")]
        shape = self._sizes(body["shape"], f"{where}.shape")
        if dtype.numpy is None:
            self.wrong(f"{where}.dtype", body["dtype"], "a dtype whose elements can be written in JSON")
        count = math.prod(shape)
        if "data" in body:
            data = body["data"]
            if not isinstance(data, list) or len(data) != count:
                result = f"{len(data)} elements" if isinstance(data, list) else data
                self.wrong(f"{where}.data", result, f"a flat list of {count} elements for the shape {shape}")
            raw = self._elements(dtype, data, f"{where}.data")
        else:
            try:
                raw = base64.b64decode(body["bytes"], validate=True)
            except (TypeError, ValueError, binascii.Error):
                self.wrong(f"{where}.bytes", body["bytes"], "base64 text")
            if len(raw) != count * dtype.itemsize:
                self.wrong(f"{where}.bytes", f"{len(raw)} bytes", f"{count * dtype.itemsize} bytes for {dtype.name} {shape}")
        product: Any = {
            "dtype": dtype.name,
            "shape": shape,
            "strides": list(contiguous_strides(shape)),
            "bytes": base64.b64encode(raw).decode("ascii"),
        }
        if "strides" in body:
            product["strides"] = self._sizes(body["strides"], f"{where}.strides")
            if len(product["strides"]) != len(shape):
                self.wrong(f"{where}.strides", body["strides"], f"{len(shape)} strides")
        for key in ("storage", "offset"):
            if key in body:
                (product[key],) = self._sizes([body[key]], f"{where}.{key}")
        last = last_element(shape, product["strides"], product.get("offset", 0))
        if count and last >= LARGEST:
            self.wrong(where, f"a storage of {last + 1} elements", f"less than {LARGEST}")
        if body.get("requires_grad"):
            product["requires_grad"] = True
        return product

    def _sizes(self, value: Any, where: str) -> list[int]:
        if (
            not isinstance(value, list)
            or len(value) > MOST_DIMENSIONS
            or any(type(size) is not int or not 0 <= size < 1 << 40 for size in value)
        ):
            self.wrong(where, value, "a list of non-negative integers")
        return value

    def _number(self, value: Any, where: str) -> Any:
        if isinstance(value, str) and value in {"nan", "inf", "-inf"}:
            return value
        if isinstance(value, bool) or not isinstance(value, int | float) or not _finite(value):
            self.wrong(where, value, 'a number, or "nan", "inf", "-inf"')
        return value

    def _elements(self, dtype: Dtype, data: list[Any], where: str) -> bytes:
        """The bytes of the elements. Each element is checked, since NumPy would truncate a fraction to an integer."""
        kind = dtype.category
        for index, item in enumerate(data):
            at = f"{where}[{index}]"
            if kind == 0 and not isinstance(item, bool):
                self.wrong(at, item, "true or false")
            elif kind == 1 and (type(item) is not int or not _fits(item, dtype)):
                self.wrong(at, item, f"an integer in the range of {dtype.name}")
            elif kind == 2:
                self._number(item, at)
            elif kind == 3:
                self.complex(item, at)
        if kind == 3:
            values: list[Any] = [complex(float(real), float(imaginary)) for real, imaginary in data]
        else:
            values = [float(item) for item in data] if kind == 2 else data
        with np.errstate(all="ignore"):  # overflow gives infinity, as everywhere
            return (
                np.array(values, np.complex128 if kind == 3 else np.float64 if kind == 2 else dtype.array)
                .astype(dtype.array)
                .tobytes()
            )


def _finite(value: float) -> bool:
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def _fits(value: int, dtype: Dtype) -> bool:
    limits = np.iinfo(dtype.array)
    return bool(limits.min <= value <= limits.max)


# ---------------------------------------------------------------------------------------------------------------- results


def shown_value(value: Any) -> Any:
    """Convert a value of a reader to the form for people: flat tensors with ``data``."""
    if isinstance(value, list):
        return [shown_value(item) for item in value]
    if not isinstance(value, dict):
        return value
    kind, body = unwrapped(value)
    if kind == "tensor":
        return {"tensor": _shown_tensor(body)}
    if kind == "object":
        return {"object": {"type": body["type"], "state": shown_value(body["state"])}}
    return {kind: shown_value(body) if kind in {"tuple", "dict"} else body}


def _shown_tensor(body: dict[str, Any]) -> dict[str, Any]:
    dtype = DTYPES.get(body["dtype"])
    if dtype is None or dtype.numpy is None or "bytes" not in body:  # cannot be shown as numbers: unchanged
        return {key: body[key] for key in ("dtype", "shape", "bytes") if key in body}
    array = elements(base64.b64decode(body["bytes"]), dtype.numpy)
    if dtype.category == 3:
        data: list[Any] = [[number(item.real), number(item.imag)] for item in array.astype(np.complex128).tolist()]
    elif dtype.category == 2:
        with np.errstate(all="ignore"):  # widening a signaling NaN warns
            data = [number(item) for item in array.astype(np.float64).tolist()]
    else:
        data = array.tolist()
    return {"dtype": body["dtype"], "shape": body["shape"], "data": data}


def value_text(value: Any, indent: str = "") -> str:
    """Format a value of :func:`shown_value` as lines of text."""
    if isinstance(value, list):
        return _listed("list", value, indent)
    if not isinstance(value, dict):
        return plain(json.dumps(value, ensure_ascii=False))
    kind, body = unwrapped(value)
    if kind == "tensor":
        data = body.get("data", body.get("bytes"))
        shape = "×".join(map(str, body.get("shape", []))) or "0-dim"
        return f"tensor {body.get('dtype', '')} ({shape}): {plain(json.dumps(data))}"
    if kind == "tuple":
        return _listed("tuple", body, indent)
    if kind == "dict":
        deeper = f"{indent}  "
        pairs = [f"{deeper}{value_text(key, deeper)}: {value_text(item, deeper)}" for key, item in body]
        return "\n".join([f"dict of {len(body)}", *pairs])
    if kind == "object":
        return f"{plain(str(body['type']))}: {value_text(body['state'], indent)}"
    return f"{kind} {plain(json.dumps(body))}"


def _listed(name: str, items: list[Any], indent: str) -> str:
    deeper = f"{indent}  "
    return "\n".join([f"{name} of {len(items)}", *(f"{deeper}{value_text(item, deeper)}" for item in items)])
