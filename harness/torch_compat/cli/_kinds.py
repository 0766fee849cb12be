"""Choices among the ids of kinds, in American spelling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from torch_compat.words import american

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["KindOf"]


class KindOf(click.Choice[str]):
    """A choice among ids. Each is listed in American spelling; the id itself is accepted, too.

    Parameters:
        ids: the ids.
    """

    def __init__(self, ids: Iterable[str]) -> None:
        self._ids = {american(name): name for name in ids}
        super().__init__(list(self._ids))

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The id that a value of the command line names."""
        return self._ids[super().convert(american(value), param, ctx)]
