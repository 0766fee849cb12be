"""Sinks for the progress of long operations: commands show progress bars, Python callers see nothing by default."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, Self

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["SILENT", "ProgressSink", "Silent"]


class ProgressSink(Protocol):
    """Receives progress; a context manager around one operation."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def say(self, line: str) -> None:
        """Print a line that stays visible."""

    def task(self, description: str) -> Callable[[int, int], None]:
        """Begin a part of the work; the result is called with the numbers of finished and of all steps."""


class Silent:
    """Ignores all progress."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def say(self, line: str) -> None:
        """Do nothing."""

    def task(self, description: str) -> Callable[[int, int], None]:  # noqa: ARG002 - nothing is displayed
        """Do nothing."""
        return lambda _done, _total: None


SILENT: Final = Silent()
