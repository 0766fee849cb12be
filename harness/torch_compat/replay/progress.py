"""Where long work tells how far it is: a command shows bars, Python code hears nothing unless it wants to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, Self

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["SILENT", "ProgressSink", "Silent"]


class ProgressSink(Protocol):
    """Is told what is done; a block of it is one piece of work."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def say(self, line: str) -> None:
        """One line that stays."""

    def task(self, description: str) -> Callable[[int, int], None]:
        """A part of the work; the result is called with what is done and how much there is."""


class Silent:
    """Says nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def say(self, line: str) -> None:
        """Nothing."""

    def task(self, description: str) -> Callable[[int, int], None]:  # noqa: ARG002 - there is nobody to describe it to
        """Nothing."""
        return lambda _done, _total: None


SILENT: Final = Silent()
