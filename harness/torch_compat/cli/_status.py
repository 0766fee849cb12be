"""The exit status of a command."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["exit_status"]

SEVEREST_FIRST = (3, 2, 1, 4, 0)


def exit_status(statuses: Iterable[int]) -> int:
    """The status that takes precedence if several apply: 3, 2, 1, 4, 0."""
    results = set(statuses)
    return next((status for status in SEVEREST_FIRST if status in results), 0)
