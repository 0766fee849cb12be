"""One need of an archive."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from torch_compat.formats.model import Call
    from torch_compat.torchscript.calls import CallShape

__all__ = ["Item"]


class Item(NamedTuple):
    """A need that not every release meets.

    Attributes:
        takers: the releases that meet it, as bits.
        what: what is needed.
        where: the record that asks for it.
        because: what is to be said of it; of an operator, how it is called.
        kind: "default" where another argument meets it; "beside" where something meets it that the user can put beside torch, a module or
            an extension; "loader" where something else than torch's loaders takes the archive; "" where only the release counts.
    """

    takers: int
    what: str
    where: str
    because: str | CallShape | Call
    kind: str = ""
