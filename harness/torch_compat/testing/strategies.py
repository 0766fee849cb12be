"""Helpers for contributors' tests: operator calls as hypothesis strategies.

Only this module needs hypothesis, which is not installed with the package (``pip install hypothesis``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Drawn"]

One = TypeVar("One")


class Drawn:
    """Choices made by hypothesis for the generators of :mod:`torch_compat.proving`; hypothesis shrinks failures.

    Parameters:
        draw: the ``draw`` function of a composite strategy.
    """

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        self._draw = draw

    def pick(self, options: Sequence[One]) -> One:
        """Pick one of these."""
        item: One = self._draw(st.sampled_from(options))
        return item

    def integer(self, low: int, high: int) -> int:
        """Pick an integer from a range, both ends included."""
        result: int = self._draw(st.integers(low, high))
        return result

    def some(self, low: int, high: int, least: int, most: int) -> list[int]:
        """Pick between ``least`` and ``most`` different integers from a range."""
        results: list[int] = self._draw(st.lists(st.integers(low, high), min_size=least, max_size=most, unique=True))
        return results
