"""For the tests of contributors: calls of operators as strategies of hypothesis.

hypothesis is needed here and nowhere else in the package; it is not installed with it (``pip install hypothesis``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Drawn"]

One = TypeVar("One")


class Drawn:
    """Choices that hypothesis makes, for the generators of :mod:`torch_compat.proving`: what it finds, it shrinks.

    Parameters:
        draw: of a composite strategy.
    """

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        self._draw = draw

    def pick(self, options: Sequence[One]) -> One:
        """One of these."""
        found: One = self._draw(st.sampled_from(options))
        return found

    def integer(self, low: int, high: int) -> int:
        """An integer of a range, both ends included."""
        found: int = self._draw(st.integers(low, high))
        return found

    def some(self, low: int, high: int, least: int, most: int) -> list[int]:
        """Different integers of a range, so many."""
        found: list[int] = self._draw(st.lists(st.integers(low, high), min_size=least, max_size=most, unique=True))
        return found
