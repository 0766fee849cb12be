"""The neutral form: values of programs, calls and results as JSON, the same for real releases and for the reference reader.

Grammar. ``null``, ``true``, ``false``, ``INTEGER``, ``FRACTION`` and ``TEXT`` are those of JSON, and so are brackets, braces and commas.
``BASE64`` is a TEXT, and ``NAME`` a TEXT that is an ASCII identifier. ``x ...`` stands for any number of ``x``; a key with ``?`` is
optional; ``|`` separates alternatives (tests/values/test_form.py reads this grammar)::

    value    = null | true | false | INTEGER | TEXT | [value ...] | wrapped
    wrapped  = {"float": number}
             | {"complex": [number, number]}
             | {"tuple": [value ...]}
             | {"dict": [[value, value] ...]}
             | {"tensor": tensor}
             | {"object": {"type": TEXT, "state": value}}
             | {"dtype": TEXT}
             | {"device": TEXT}
    number   = INTEGER | FRACTION | "nan" | "inf" | "-inf"
    tensor   = {"dtype": TEXT, "shape": [size ...], "strides": [size ...], "bytes": BASE64,
                "storage"?: size, "offset"?: size, "requires_grad"?: true | false, "class"?: TEXT}
    size     = INTEGER

    calls    = [{"method": NAME, "args": [value ...]} ...]
    result   = {"value"?: value, "state"?: value, "state_after"?: value, "calls"?: [called ...],
                "error"?: error, "warnings"?: warnings,
                "crashed"?: end, "timed-out"?: end, "unstable"?: end, "unsupported"?: end}
    called   = {"method": NAME, "first": turn, "second"?: turn}
    turn     = {"value": value, "inputs"?: [value ...], "warnings"?: warnings}
             | {"error": error, "warnings"?: warnings}
    error    = {"type": TEXT, "message": TEXT, "stage"?: TEXT}
    warnings = [[TEXT, TEXT] ...]
    end      = {TEXT: null | true | false | INTEGER | FRACTION | TEXT ...}

Beyond the grammar:

* A ``size`` is non-negative and has 63 bits. A tensor has at most :data:`MOST_DIMENSIONS` dimensions and a stride for each, in elements.
  ``bytes`` are its elements in row-major order, little-endian, whatever its strides: as many as shape and dtype require. So the
  sign of a zero and the payload of a NaN survive. Every element lies below element :data:`LARGEST` of its storage.
* ``storage`` numbers the storages of values that belong together (the result of a call with its inputs, or a state) in order of
  appearance: tensors with the same number share memory. A tensor without elements has none. ``offset`` is in elements.
* A ``dict`` keeps the order of its keys. ``class`` is omitted for ``torch.Tensor``, ``requires_grad`` if it is false.
* ``object`` stands for anything else, by its class and a description of its state. It is never passed to a program (:data:`TAKEN`).
* A result with ``calls`` has a ``state``.
* Values nest at most :data:`DEEPEST` deep. In ``calls``, an ``INTEGER`` has 64 bits and texts hold whole characters; neither is
  required of the contents of a pickle.
* ``warnings`` are pairs of category and text. ``stage`` is what raised: ``load`` or ``call``.

Values come from ``Encoder`` in torch_compat/inside/worker.py (which runs inside old releases and imports nothing of this project) and
:mod:`torch_compat.runtime.encoding`; results from ``perform`` there. :mod:`torch_compat.values.compare` compares results, and
:mod:`torch_compat.values.delta` records one as its departures from another. :mod:`torch_compat.runtime.json_values` reads and prints
values as people write them, with tensors as ``{"dtype", "shape", "data"}``.

Manifests may come from untrusted sources, so calls and results are checked when they are read: whatever uses a value later (a release,
the reference reader, a comparison) only ever gets a value of this form. Releases mostly write what others wrote: one in twelve of all
goldens and calls of the corpus is new. Equal ones are checked once.
"""

from __future__ import annotations

import binascii
import json
import marshal  # noqa: TID251 - to compare values in one step: nothing is ever read with it
import math
from typing import TYPE_CHECKING, Any, Final

from torch_compat.values.dtypes import ELEMENT_SIZES
from torch_compat.words import count_of

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "DEEPEST",
    "INT64",
    "KINDS",
    "LARGEST",
    "MOST_DIMENSIONS",
    "TAKEN",
    "check_calls",
    "check_result",
    "kind_of",
    "last_element",
    "number",
    "unwrapped",
]

DEEPEST: Final = 100
"""Maximum nesting depth of values."""
LARGEST: Final = 1 << 28
"""Maximum number of elements in a storage, including those between the elements of a view."""
MOST_DIMENSIONS: Final = 64
"""Maximum number of dimensions of a tensor, as in torch and numpy."""
INT64: Final = range(-(1 << 63), 1 << 63)
"""The integers that a program accepts."""
_TENSOR: Final = frozenset({"bytes", "dtype", "shape", "strides"})
_TENSOR_MAY: Final = frozenset({"class", "offset", "requires_grad", "storage"})
_RESULT: Final = frozenset(
    {"value", "calls", "state", "state_after", "error", "warnings", "crashed", "timed-out", "unstable", "unsupported"}
)
_ENDS: Final = ("crashed", "timed-out", "unstable", "unsupported")
_ERROR: Final = frozenset({"message", "type"})
_ERROR_MAY: Final = frozenset({"stage"})
_TURN: Final = frozenset({"value", "inputs", "error", "warnings"})
_REMEMBERED: Final = 1 << 14
_sound_calls: set[bytes] = set()
_sound_results: set[bytes] = set()


def kind_of(value: Any) -> str:
    """The kind of a value: the key of a wrapped one, otherwise the name of its Python class (``int``, ``list``, ``NoneType``)."""
    if isinstance(value, dict):
        return str(next(iter(value)))
    return type(value).__name__


def unwrapped(value: dict[str, Any]) -> tuple[str, Any]:
    """The kind of a wrapped value, and its content.

    Raises:
        ValueError: it does not have exactly one key.
    """
    ((kind, body),) = value.items()
    return kind, body


def number(value: float) -> float | str:
    """A floating-point number as it is written: non-finite numbers, which JSON lacks, become texts."""
    if math.isfinite(value):
        return value
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"


def last_element(shape: Sequence[int], strides: Sequence[int], offset: int) -> int:
    """The position of a tensor's last element in its storage, for a tensor with elements and non-negative strides."""
    return offset + sum((length - 1) * step for length, step in zip(shape, strides, strict=True))


def check_calls(calls: Any) -> None:
    """Check the calls of a fixture: ``[{"method", "args": [values]}]``. Programs take no lone surrogates; a golden may hold one.

    Raises:
        ValueError: a part does not match the form; says which part, what was found and what was expected.
    """
    if not _known(calls, _sound_calls):
        _calls(calls, "calls")
        try:
            json.dumps(calls, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            half = ascii(error.object[error.start])[1:-1]
            raise ValueError(f"calls contains the lone surrogate {half}, expected whole characters") from None
        _remember(calls, _sound_calls)


def check_result(result: Any, name: str) -> None:
    """Check a golden or a read-back.

    Parameters:
        name: the name of the part of the entry, for the error.

    Raises:
        ValueError: a part does not match the form; says which part, what was found and what was expected.
    """
    if not _known(result, _sound_results):
        _result(result, name)
        _remember(result, _sound_results)


def _known(value: Any, sound: set[bytes]) -> bool:
    try:
        return marshal.dumps(value, 2) in sound
    except ValueError:  # nested too deeply for marshal, so the check will refuse it, too
        return False


def _remember(value: Any, sound: set[bytes]) -> None:
    if len(sound) < _REMEMBERED:
        sound.add(marshal.dumps(value, 2))


def _wrong(where: str, value: Any, expected: str) -> ValueError:
    message = f"{value.__class__.__name__} {value!r:.60}" if isinstance(value, str | int | float) else value.__class__.__name__
    return ValueError(f"{where} is {message}, expected {expected}")


def _calls(calls: Any, where: str) -> None:
    if calls.__class__ is not list:
        raise _wrong(where, calls, "a list")
    for index, call in enumerate(calls):
        at = f"{where}[{index}]"
        if call.__class__ is not dict or call.keys() != {"method", "args"}:
            raise _wrong(at, call, 'an object {"method", "args"}')
        _method(call["method"], at)
        _values(call["args"], f"{at}.args", 0)


def _method(name: Any, where: str) -> None:
    if name.__class__ is not str or not name.isidentifier() or not name.isascii():
        raise _wrong(f"{where}.method", name, "the name of a method")


def _result(result: Any, where: str) -> None:
    _keys(result, where, frozenset(), _RESULT)
    for name in ("value", "state", "state_after"):
        if name in result:
            _value(result[name], f"{where}.{name}", 0)
    if "error" in result:
        _error(result["error"], f"{where}.error")
    if "warnings" in result:
        _warnings(result["warnings"], f"{where}.warnings")
    for name in _ENDS:
        if name in result:
            _flat(result[name], f"{where}.{name}")
    if "calls" in result:
        if result["calls"].__class__ is not list:
            raise _wrong(f"{where}.calls", result["calls"], "a list")
        if "state" not in result:
            raise ValueError(f"{where} has calls, but no state, expected both")
        for index, call in enumerate(result["calls"]):
            at = f"{where}.calls[{index}]"
            _keys(call, at, frozenset({"method", "first"}), frozenset({"second"}))
            _method(call["method"], at)
            for turn in ("first", "second"):
                if turn in call:
                    _turn(call[turn], f"{at}.{turn}")


def _turn(turn: Any, where: str) -> None:
    _keys(turn, where, frozenset(), _TURN)
    if ("error" in turn) is ("value" in turn):
        raise ValueError(f"{where} has {'both value and error' if 'error' in turn else 'neither value nor error'}, expected one")
    if "error" in turn:
        _error(turn["error"], f"{where}.error")
    else:
        _value(turn["value"], f"{where}.value", 0)
        _values(turn.get("inputs", []), f"{where}.inputs", 0)
    if "warnings" in turn:
        _warnings(turn["warnings"], f"{where}.warnings")


def _keys(value: Any, where: str, must: frozenset[str], may: frozenset[str]) -> None:
    if value.__class__ is not dict:
        raise _wrong(where, value, "an object")
    if not must <= value.keys():
        raise ValueError(f"{where} lacks {', '.join(sorted(must - value.keys()))}")
    unknown = value.keys() - must - may
    if unknown:
        raise ValueError(f"{where} has unknown key {min(unknown)!r:.60}, expected {', '.join(sorted(must | may))}")


def _error(value: Any, where: str) -> None:
    _keys(value, where, _ERROR, _ERROR_MAY)
    for name, text in value.items():
        if text.__class__ is not str:
            raise _wrong(f"{where}.{name}", text, "a string")


def _flat(value: Any, where: str) -> None:
    _keys(value, where, frozenset(), frozenset(value) if value.__class__ is dict else frozenset())
    for name, item in value.items():
        if item is not None and item.__class__ not in {str, int, float, bool}:
            raise _wrong(f"{where}.{name!r:.60}", item, "a string or a number")


def _warnings(value: Any, where: str) -> None:
    if value.__class__ is not list:
        raise _wrong(where, value, "a list")
    for index, pair in enumerate(value):
        if pair.__class__ is not list or [item.__class__ for item in pair] != [str, str]:
            raise _wrong(f"{where}[{index}]", pair, "[category, text]")


# ------------------------------------------------------------------------------------------------------------------ values


def _values(value: Any, where: str, depth: int) -> None:
    if value.__class__ is not list:
        raise _wrong(where, value, "a list")
    for index, item in enumerate(value):
        _value(item, f"{where}[{index}]", depth)


def _value(value: Any, where: str, depth: int) -> None:
    if depth > DEEPEST:
        raise ValueError(f"{where[:60]}… is nested deeper than {DEEPEST}")
    if value is None or value.__class__ is bool or value.__class__ is str:
        return
    if value.__class__ is int:
        if value not in INT64 and where.startswith("calls["):  # a pickle may hold any integer, a program takes 64 bits
            raise ValueError(f"{where} is an integer of {value.bit_length()} bits, expected at most 64")
        return
    if value.__class__ is list:
        _values(value, where, depth + 1)
        return
    if value.__class__ is not dict or len(value) != 1:
        raise _wrong(where, value, f"a value: an object with one key, one of {', '.join(KINDS)}")
    kind, body = unwrapped(value)
    check = _KINDS.get(kind)
    if check is None:
        raise ValueError(f"{where} has unknown key {kind!r:.60}, expected one of {', '.join(KINDS)}")
    check(body, f"{where}.{kind}", depth + 1)


def _float(body: Any, where: str, _: int) -> None:
    if body.__class__ not in {float, int} and body not in ("nan", "inf", "-inf"):
        raise _wrong(where, body, "a number, 'nan', 'inf' or '-inf'")


def _complex(body: Any, where: str, depth: int) -> None:
    if body.__class__ is not list or len(body) != 2:
        raise _wrong(where, body, "two numbers")
    for index, part in enumerate(body):
        _float(part, f"{where}[{index}]", depth)


def _dict(body: Any, where: str, depth: int) -> None:
    if body.__class__ is not list:
        raise _wrong(where, body, "a list of pairs")
    for index, pair in enumerate(body):
        if pair.__class__ is not list or len(pair) != 2:
            raise _wrong(f"{where}[{index}]", pair, "a pair of key and value")
        _values(pair, f"{where}[{index}]", depth)


def _text(body: Any, where: str, _: int) -> None:
    if body.__class__ is not str:
        raise _wrong(where, body, "a string")


def _object(body: Any, where: str, depth: int) -> None:
    _keys(body, where, frozenset({"type", "state"}), frozenset())
    _text(body["type"], f"{where}.type", depth)
    _value(body["state"], f"{where}.state", depth)


def _tensor(body: Any, where: str, _: int) -> None:
    _keys(body, where, _TENSOR, _TENSOR_MAY)
    dtype, shape, strides = body["dtype"], body["shape"], body["strides"]
    if dtype.__class__ is not str or not dtype.isidentifier():
        raise _wrong(f"{where}.dtype", dtype, "the name of a dtype, such as float32")
    for name, numbers in (("shape", shape), ("strides", strides)):
        if numbers.__class__ is not list:
            raise _wrong(f"{where}.{name}", numbers, "a list of integers")
        for index, number in enumerate(numbers):
            _size(number, f"{where}.{name}[{index}]")
    if len(shape) > MOST_DIMENSIONS:  # their product could take forever
        raise ValueError(f"{where} has {count_of(len(shape), 'dimension')}, expected at most {MOST_DIMENSIONS}")
    if len(strides) != len(shape):
        raise ValueError(
            f"{where} has {count_of(len(strides), 'stride')} for {count_of(len(shape), 'dimension')}, expected one for each"
        )
    for name in ("offset", "storage"):
        _size(body.get(name, 0), f"{where}.{name}")
    if body.get("requires_grad", False).__class__ is not bool or body.get("class", "").__class__ is not str:
        raise ValueError(f"{where} has a value of the wrong type for requires_grad or class, expected a boolean and a string")
    count, last = math.prod(shape), last_element(shape, strides, body.get("offset", 0))
    if count and last >= LARGEST:
        raise ValueError(f"{where} extends to element {last} of its storage, expected less than {LARGEST}")
    _text(body["bytes"], f"{where}.bytes", 0)
    try:
        result = len(binascii.a2b_base64(body["bytes"], strict_mode=True))
    except ValueError as error:
        raise ValueError(f"{where}.bytes is not base64: {error}") from None
    size = ELEMENT_SIZES.get(dtype, result // count if count else 0)
    if result != count * size:
        raise ValueError(f"{where} has {result} bytes, expected {count * size} for {dtype} of shape {shape!r:.60}")


def _size(number: Any, where: str) -> None:
    if number.__class__ is not int:
        raise _wrong(where, number, "an integer")
    if not 0 <= number < 1 << 63:
        raise ValueError(f"{where} is {number if abs(number) < 1 << 70 else 'huge'}, expected a non-negative 63-bit integer")


_KINDS: Final = {
    "float": _float,
    "complex": _complex,
    "tuple": _values,
    "dict": _dict,
    "tensor": _tensor,
    "object": _object,
    "dtype": _text,
    "device": _text,
}
KINDS: Final = tuple(_KINDS)
"""Kinds of wrapped values."""
TAKEN: Final = tuple(kind for kind in KINDS if kind != "object")
"""The kinds that can be passed to a program."""
