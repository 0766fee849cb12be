"""Cases of a proof: inputs for each form of an operator's calls, deterministic for a seed.

Tensors cover every dtype and every pair of dtypes; broadcastable, zero-dimensional, empty and some mismatched shapes; views that are
transposed, strided, expanded, with an offset, and the same memory twice; ordinary numbers, extremes, infinities, NaN, subnormals and both
zeros. Invalid numbers are included: negative sizes, unknown modes.
"""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from torch_compat.proving.values import COMPLEX, EVERY, PLAIN, Maker, Seeded
from torch_compat.runtime import dtypes

if TYPE_CHECKING:
    from torch_compat.proving.programs import Form

__all__ = ["cases", "simple_number"]

LAYOUTS: Final = ("whole", "whole", "whole", "transposed", "stepped", "offset", "expanded")
INTEGERS: Final = (0, 1, 2, -1, -3, 7, 300, 2**31, 2**53 + 1, 2**63 - 1, -(2**63))
REALS: Final = (*PLAIN, -0.0, 0.1, math.nan, math.inf, -math.inf, 1e-40, 5e-324, 1e30, 1.7e308)
STEPS: Final = (5, 1, 2, 0, 3, 10, 100, -1)
SIZES: Final = ((2,), (), (0,), (2, 3), (1, 0, 2), (-1,))
MODES: Final = ("trunc", "floor", "none", "tanh", "bad")
PER_FORM: Final = 288


def cases(form: Form, seed: int | str = 0, count: int = PER_FORM) -> list[list[Any]]:
    """Return ``count`` inputs of a form: lists of arguments in neutral form.

    Parameters:
        seed: the same seed gives the same inputs.
    """
    source = Seeded(f"{seed}/{form.call}/{form.parameters}")
    tensors = [name for name, kind, _ in form.parameters if kind == "Tensor"]
    if not tensors:
        return _distinct([_case(form, source, ()) for _ in range(max(count // 6, 1))])
    return _distinct([_case(form, source, kinds) for kinds in _dtypes(source, len(tensors), count)])


def _dtypes(source: Seeded, tensors: int, count: int) -> list[tuple[str, ...]]:
    """Return dtypes for the cases: all singles or pairs if ``count`` allows; for more tensors, random pairs, extended by others."""
    pairs = list(product(EVERY, repeat=min(tensors, 2)))
    whole = pairs * (count // len(pairs) or 1) if count >= len(pairs) else [source.pick(pairs) for _ in range(count)]
    if tensors <= 2:
        return whole
    drawn = [source.pick(pairs) for _ in range(count)]
    return [
        (*pair, *(source.pick(pair) if at % 2 else source.pick(EVERY) for _ in range(tensors - 2)))
        for at, pair in enumerate(drawn)
    ]


def _distinct(value: list[list[Any]]) -> list[list[Any]]:
    return list({repr(item): item for item in value}.values())


def _case(form: Form, source: Seeded, kinds: tuple[str, ...]) -> list[Any]:
    make = _Extremes(source, form.operator.partition("::")[2], plain=source.integer(0, 1) == 0)
    shape = make.shape()
    left = list(kinds)
    args: list[Any] = []
    drawn: list[Any] = []
    for name, kind, stated in form.parameters:
        if kind == "Tensor":
            dtype = left.pop(0)
            value = _tensor(make, name, dtype, shape, drawn)
            drawn.append(value)
        else:
            value = _plain(make, name, kind, stated)
        args.append(value)
    return args


def _tensor(make: Maker, name: str, dtype: str, shape: tuple[int, ...], drawn: list[Any]) -> Any:
    alike = [item for item in drawn if item["tensor"]["dtype"] == dtype]
    if alike and make.integer(0, 7) == 0:
        return make.pick(alike)  # the same memory
    if name == "out" and make.integer(0, 3):
        whole = max((tuple(item["tensor"]["shape"]) for item in drawn), key=len, default=shape)
        return make.tensor(make.pick((whole, whole, (0,))), dtype)
    if not drawn or make.integer(0, 1):
        return make.tensor(shape, dtype)
    return make.tensor(make.pick((shape, (), shape[-1:], (1,) * len(shape), make.shape())), dtype)


def _plain(make: Maker, name: str, kind: str, stated: str) -> Any:
    if kind.startswith("Optional["):
        return None if make.integer(0, 3) == 0 else _plain(make, name, kind[9:-1], stated.removesuffix("?"))
    if stated.startswith("ScalarType") or name == "dtype":
        return make.pick([dtypes.DTYPES[item].code for item in EVERY])
    if name == "steps":
        return make.pick(STEPS)
    if kind == "List[int]":
        return list(make.pick(SIZES))
    if kind == "str":
        return make.pick(MODES)
    if kind == "bool":
        return make.flag()
    if kind == "int":
        return make.pick((0, 1, 2, -1, 3, -3, 7, 10) if make.plain else INTEGERS)
    if kind == "complex":
        return {"complex": [simple_number(make.pick(PLAIN)), simple_number(make.pick(PLAIN))]}
    return {"float": simple_number(make.pick(PLAIN if make.plain else REALS))}


def simple_number(value: float) -> float | str:
    """Return a float in neutral form."""
    if math.isnan(value):
        return "nan"
    return value if math.isfinite(value) else ("inf" if value > 0 else "-inf")


class _Extremes(Maker):
    """Generates tensors with the extremes of their dtypes, and expanded views."""

    def tensor(self, shape: Any, kind: str = "float32", *, low: float | None = None, high: float | None = None) -> dict[str, Any]:
        shape = tuple(shape)
        if self.pick(LAYOUTS) == "expanded" and shape and shape[0] > 1 and 0 not in shape:
            self.storages += 1
            steps = (0, *(math.prod(shape[at + 1 :]) for at in range(1, len(shape))))
            count = math.prod(shape[1:])
            return self.body(self.array(kind, count, low=low, high=high), kind, self.storages, shape, steps, 0)
        return super().tensor(shape, kind, low=low, high=high)

    def array(self, kind: str, count: int, *, low: float | None = None, high: float | None = None) -> Any:
        result = super().array(kind, count, low=low, high=high)
        if not self.plain and kind not in COMPLEX and result.dtype.kind == "f" and count and self.integer(0, 2) == 0:
            limit = self.pick((65504.0, 6e-8, 3.4028235e38, 1.1754944e-38, 1.7976931348623157e308, 2.2250738585072014e-308))
            with np.errstate(all="ignore"):
                result[self.integer(0, count - 1)] = result.dtype.type(limit)
        return result
