"""A single requirement of an archive."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from torch_compat.formats.model import Call
    from torch_compat.torchscript.calls import CallShape

__all__ = ["Item"]


class Item(NamedTuple):
    """A requirement that not every release meets.

    Attributes:
        takers: the releases that meet it, as a bitmask.
        what: the required thing.
        where: the record that requires it.
        because: the explanation; for an operator, how it is called.
        kind: "default" if a different argument meets it; "beside" if something that the user can install meets it, a module or an
            extension; "loader" if the archive is loaded by something other than torch's loaders; "" if it depends only on the release.
    """

    takers: int
    what: str
    where: str
    because: str | CallShape | Call
    kind: str = ""
