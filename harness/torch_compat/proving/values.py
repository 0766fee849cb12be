"""Values of generated calls: numbers, strings and tensors, drawn from a source of choices.

A :class:`ChoiceSource` is all that a generator needs: :class:`Seeded` makes deterministic choices from a seed; a hypothesis strategy
(:mod:`torch_compat.testing`) is another one, which shrinks.
"""

from __future__ import annotations

import base64
import math
import random
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from torch_compat.releases.release import Release
from torch_compat.runtime import dtypes
from torch_compat.values import dtypes as table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["COMPLEX", "EVERY", "FLOATS", "HALVES", "INTS", "KINDS", "ChoiceSource", "Maker", "Seeded", "tensor_body"]

One = TypeVar("One")
NARROW_FLOATS = Release(table.SINCE["float8_e4m3fn"])
ROWS = [row for row in table.DTYPES.values() if row.name not in table.SINCE or Release(table.SINCE[row.name]) < NARROW_FLOATS]
"""Dtypes of generated calls: those that torch supported before 8-bit floats and wider unsigned integers."""
FLOATS = tuple(row.name for row in ROWS if row.kind == "float" and row.size >= 4)
INTS = tuple(row.name for row in ROWS if row.kind == "integer")
COMPLEX = tuple(row.name for row in ROWS if row.kind == "complex" and row.size >= 8)
HALVES = tuple(row.name for row in ROWS if row.kind == "float" and row.size == 2)
EVERY = (*FLOATS, *reversed(INTS), "bool", *HALVES, *COMPLEX)
KINDS = (*FLOATS[:1], *FLOATS, *INTS[-1:], *EVERY)
PLAIN = (1.0, 0.0, -1.0, 0.5, -0.5, 2.0, -2.5, 3.0, 0.25, 1.5, -3.75, 7.0)
ODD = (-0.0, math.nan, math.inf, -math.inf, 1e-40, 1e30, -1e30, 255.0)
SHAPES = ((), (1,), (3,), (2, 3), (3, 1), (1, 3), (2, 1, 3), (0,), (0, 3), (2, 2), (1, 2, 2), (2, 3, 2))
TEXTS = ("", "a", "ab", "Ab c", "a,b", " x ", "aXbX", "12", "é", "ß", "a\nb", "\t", "A1", "tITLE case", "-7", "x y")


class ChoiceSource(Protocol):
    """A source of choices. The first of several options, and the lowest of a range, are the simplest."""

    def pick(self, options: Sequence[One]) -> One:
        """Pick one of these."""

    def integer(self, low: int, high: int) -> int:
        """Pick an integer from a range, both ends included."""

    def some(self, low: int, high: int, least: int, most: int) -> list[int]:
        """Pick between ``least`` and ``most`` different integers from a range."""


class Seeded:
    """Deterministic choices from a seed, the same on every machine.

    Parameters:
        seed: any text or number.
    """

    def __init__(self, seed: int | str) -> None:
        self._random = random.Random(seed)  # noqa: S311 - deterministic on purpose

    def pick(self, options: Sequence[One]) -> One:
        """Pick one of these."""
        return options[self._random.randrange(len(options))]

    def integer(self, low: int, high: int) -> int:
        """Pick an integer from a range, both ends included."""
        return self._random.randint(low, high)

    def some(self, low: int, high: int, least: int, most: int) -> list[int]:
        """Pick between ``least`` and ``most`` different integers from a range."""
        return self._random.sample(range(low, high + 1), self._random.randint(least, most))


def tensor_body(
    array: np.ndarray[Any, Any], kind: str, storage: int, shape: tuple[int, ...], strides: tuple[int, ...], offset: int
) -> dict[str, Any]:
    """Return a tensor in neutral form (:mod:`torch_compat.values.form`).

    Parameters:
        array: the one-dimensional elements of its storage.
        kind: the dtype's name.
        strides: in elements.
    """
    view = array.reshape(-1)
    places = np.full(shape, offset, np.int64)
    for at, step in enumerate(strides):
        places += np.arange(shape[at]).reshape([-1 if other == at else 1 for other in range(len(shape))]) * step
    body = {
        "dtype": kind, "shape": list(shape), "strides": list(strides), "offset": offset, "storage": storage,
        "bytes": base64.b64encode(view[places.reshape(-1)].tobytes()).decode("ascii"),
    }  # fmt: skip
    return {"tensor": body}


class Maker:
    """Draws values.

    Attributes:
        source: the source of choices.
        name: the operator's name, without namespace.
        body: encodes a tensor in the form that its reader needs.
        plain: whether to use only ordinary numbers.
    """

    def __init__(
        self,
        source: ChoiceSource,
        name: str,
        *,
        plain: bool,
        graph: bool = False,
        body: Callable[..., dict[str, Any]] = tensor_body,
    ) -> None:
        self.source = source
        self.graph = graph
        self.body = body
        self.name = name
        self.plain = plain
        self.storages = 0

    def pick(self, options: Sequence[Any]) -> Any:
        """Pick one of these; the first is the simplest."""
        return self.source.pick(options)

    def integer(self, low: int, high: int) -> int:
        """Draw an integer from a range."""
        return self.source.integer(low, high)

    def flag(self) -> bool:
        """Draw True or False."""
        return bool(self.source.integer(0, 1))

    def often(self) -> bool:
        """Draw True with a probability of 3/4."""
        return self.integer(0, 3) > 0

    def integers(self, count: int, low: int, high: int) -> list[int]:
        """Draw ``count`` integers from a range."""
        return [self.integer(low, high) for _ in range(count)]

    def number(self) -> Any:
        """Draw a Python scalar. For a graph, it is not a bool, because torch never produces such a Scalar."""
        kind = self.pick(("int", "float", "bool", "int", "float"))
        if kind == "bool" and not self.graph:
            return self.flag()
        if kind == "int":
            return self.pick((1, 0, 2, -1, 3, -3, 7) if self.plain else (1, 0, 2, -1, 3, -3, 7, 300, 2**40))
        return self.real()

    def real(self) -> dict[str, str]:
        """Draw a float."""
        return {"float": repr(self.pick(PLAIN if self.plain else (*PLAIN, math.nan, math.inf, -math.inf, -0.0, 1e10, 1e-5, 2.5)))}

    def array(self, kind: str, count: int, *, low: float | None = None, high: float | None = None) -> np.ndarray[Any, Any]:
        """Return ``count`` elements of a dtype, determined by a drawn seed; small seeds make all of them equal."""
        target = dtypes.DTYPES[kind].array
        at = self.integer(0, 1 << 16)
        if low is not None and high is not None:
            if kind in INTS:
                return self._chosen(np.arange(low, high + 1, dtype=np.int64), at, count).astype(target)
            steps = np.linspace(low, high, 17)
            return self._chosen(steps, at, count).astype(target)
        if kind in INTS:
            limits = np.iinfo(target)
            odd = [] if self.plain else [int(limits.min), int(limits.max), int(limits.max) - 1]
            values = np.asarray([*range(1, 8), 0, *([] if kind == "uint8" else [-1, -2, -3, -7]), *odd], object)
            return self._chosen(values, at, count).astype(target)
        if kind == "bool":
            return self._chosen(np.asarray([True, False]), at, count)
        values = np.asarray(PLAIN if self.plain else (*PLAIN, *ODD))
        with np.errstate(all="ignore"):
            if kind in COMPLEX:  # C++ and numpy multiply complex infinities differently
                parts = self._chosen(np.asarray(PLAIN), at, 2 * count)
                return (parts[:count] + np.where(parts[count:] == 0, 0, parts[count:]) * 1j).astype(target)
            return self._chosen(values, at, count).astype(target)

    @staticmethod
    def _chosen(values: np.ndarray[Any, Any], at: int, count: int) -> np.ndarray[Any, Any]:
        if at < len(values):
            return np.full(count, values[at], values.dtype)
        return values[np.random.default_rng(at).integers(0, len(values), count)]

    def tensor(
        self, shape: Sequence[int], kind: str = "float32", *, low: float | None = None, high: float | None = None
    ) -> dict[str, Any]:
        """Draw a tensor, sometimes a view: transposed, strided, with an offset."""
        shape = tuple(shape)
        layout = self.pick(("whole", "whole", "whole", "transposed", "stepped", "offset"))
        self.storages += 1
        ndim, count = len(shape), math.prod(shape)
        steps = tuple(math.prod(shape[at + 1 :]) for at in range(ndim))
        offset = 0
        if layout == "transposed" and ndim >= 2 and count:
            steps = tuple(math.prod(shape[:at]) for at in range(ndim))
        elif layout == "stepped" and ndim and count:
            steps, count = tuple(2 * step for step in steps), 2 * count
        elif layout == "offset":
            offset, count = 2, count + 2
        return self.body(self.array(kind, count, low=low, high=high), kind, self.storages, shape, steps, offset)

    def given(self, array: Any) -> dict[str, Any]:
        """Return this array as a tensor."""
        array = np.array(array, order="C")
        self.storages += 1
        steps = tuple(math.prod(array.shape[at + 1 :]) for at in range(array.ndim))
        return self.body(array, dtypes.of_numpy(array.dtype).name, self.storages, array.shape, steps, 0)

    def shape(self) -> tuple[int, ...]:
        """Draw a shape."""
        results: tuple[int, ...] = self.pick(SHAPES)
        return results

    def draw_dims(self, count: int) -> list[int]:
        """Draw at least one of ``count`` dimensions, without repetition."""
        return self.source.some(0, count - 1, 1, count)

    def floating(self) -> str:
        """Draw a floating-point dtype, most often float32."""
        result: str = self.pick((*FLOATS[:1] * 2, *FLOATS, *FLOATS[1:], *HALVES))
        return result

    def text(self) -> str:
        """Draw a string."""
        result: str = self.pick(TEXTS)
        return result
