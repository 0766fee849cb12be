"""Shrinks a failing case: fewer elements, plain views, simpler numbers."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from torch_compat.proving.values import tensor_body
from torch_compat.runtime.encoding import Decoder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["shrunk"]

ROUNDS: Final = 12
SIMPLE: Final = (0, 1, 2, 3, 7, -1, -7)


def shrunk(args: list[Any], fails: Callable[[list[list[Any]]], list[bool]]) -> list[Any]:
    """Return a smaller list of arguments that still fails.

    Parameters:
        args: the arguments in neutral form.
        fails: tells for each of several lists of arguments whether it fails in the same way.
    """
    best = args
    for _ in range(ROUNDS):
        tried = sorted({json.dumps(item): item for item in _smaller(best) if _size(item) < _size(best)}.values(), key=_size)
        answers = fails(tried) if tried else []
        better = next((item for item, bad in zip(tried, answers, strict=True) if bad), None)
        if better is None:
            return best
        best = better
    return best


def _size(args: list[Any]) -> tuple[int, int, float]:
    """Sort key: number of elements and views first, then the complexity of the numbers."""
    elements = views = 0
    odd = 0.0
    for arg in args:
        if isinstance(arg, dict) and "tensor" in arg:
            array = _array(arg)
            elements += array.size + array.ndim
            body = arg["tensor"]
            views += bool(body["offset"]) + (not array.flags.c_contiguous) + (0 in body["strides"])
            odd += sum(map(_oddity, array.reshape(-1).tolist()))
        elif isinstance(arg, list):
            elements += len(arg)
            odd += sum(map(_oddity, arg))
        elif arg is not None:
            odd += _oddity(next(iter(arg.values())) if isinstance(arg, dict) else arg)
    return elements, views, odd


def _oddity(value: Any) -> float:
    if isinstance(value, complex):
        return _oddity(value.real) + _oddity(value.imag)
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return 100.0
    if number in SIMPLE:
        return SIMPLE.index(int(number)) / 10 + isinstance(value, float) / 100
    return 50.0 if number != number or abs(number) > 1e6 or abs(number) < 1e-3 else 5.0 + abs(number) / 1e6  # noqa: PLR0124 - a NaN


def _array(value: Any) -> np.ndarray[Any, Any]:
    result: np.ndarray[Any, Any] = Decoder().decode({"tuple": [value]})[0].array
    return result


def _whole(array: np.ndarray[Any, Any], kind: str, storage: int) -> dict[str, Any]:
    array = np.array(array, order="C")
    steps = tuple(int(np.prod(array.shape[at + 1 :])) for at in range(array.ndim))
    return tensor_body(array.reshape(-1), kind, storage, array.shape, steps, 0)


def _smaller(args: list[Any]) -> Iterator[list[Any]]:
    tensors = [at for at, item in enumerate(args) if isinstance(item, dict) and "tensor" in item]
    storages = {at: args[at]["tensor"]["storage"] for at in tensors}
    results = {at: _array(args[at]) for at in tensors}
    kinds = {at: args[at]["tensor"]["dtype"] for at in tensors}

    def with_(changed: dict[int, np.ndarray[Any, Any]]) -> list[Any]:
        result = copy.deepcopy(args)
        for at, array in changed.items():
            result[at] = _whole(array, kinds[at], storages[at])
        return result

    if tensors:
        yield with_(results)  # contiguous
        wide: list[np.ndarray[Any, Any]]
        try:
            wide = list(np.broadcast_arrays(*(results[at] for at in tensors)))
        except ValueError:
            wide = []
        if wide and wide[0].size:
            places = range(min(wide[0].size, 24))
            yield from (
                with_({at: array.reshape(-1)[place].reshape(shape) for at, array in zip(tensors, wide, strict=True)})
                for place in places
                for shape in ((), (1,))
            )
        for at in tensors:
            array = results[at]
            if array.ndim and array.shape[0] > 1:
                yield with_({at: array[:1]})
            if array.size and array.ndim:
                yield with_({at: array.reshape(-1)[:1].reshape(())})
            for number in SIMPLE:
                if array.size and not (number < 0 and kinds[at] in {"uint8", "bool"}):
                    with np.errstate(all="ignore"):
                        yield with_({at: np.full(array.shape, number, array.dtype)})
    for at, arg in enumerate(args):
        if isinstance(arg, dict) and "float" in arg:
            yield from ([*args[:at], {"float": float(number)}, *args[at + 1 :]] for number in SIMPLE)
        elif isinstance(arg, list):
            yield from ([*args[:at], smaller, *args[at + 1 :]] for smaller in ([], [1], [2], arg[:-1]))
        elif arg.__class__ is int:
            yield from ([*args[:at], number, *args[at + 1 :]] for number in SIMPLE)
        elif arg is not None and arg.__class__ is str:
            yield [*args[:at], None, *args[at + 1 :]]
