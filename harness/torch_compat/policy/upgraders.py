"""Policy tables about upgraders, which replace operator calls in archives written before a change (``upgraders.toml``)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, NonNegativeInt, PositiveInt

from torch_compat.policy.messages import found
from torch_compat.policy.table_base import QUALIFIED, UPGRADER, Identifier, ReleaseName, Table, Text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.errors import Problem
    from torch_compat.policy.entry import Entry

__all__ = ["Upgrader", "upgrader_names"]


class Upgrader(Table):
    """An upgrader: the program that replaces a call in an archive with a lower file format version."""

    id: Annotated[str, Field(pattern=UPGRADER)]
    """Its name in PyTorch: the operator, the overload, and the first and last file format version that it covers, such as
    `div_Tensor_0_3`.
    """
    operator: Annotated[str, Field(pattern=QUALIFIED)]
    """The operator, with its overload."""
    first: NonNegativeInt = 0
    """The first file format version whose calls it replaces."""
    bump: PositiveInt
    """The first file format version whose calls it does not replace."""
    old_schema: Text
    """The schema before the change."""
    body: Text
    """TorchScript, one function."""
    old: ReleaseName | None = None
    """The last release with the old behavior; absent if no release before the version bump has the operator."""
    since: ReleaseName | None = None
    """The first recorded release that has it; absent if it is only proposed."""
    dropped: ReleaseName | None = None
    """The first recorded release that no longer has it; absent if the newest release has it."""
    change: Identifier | None = None
    """The change of results that it handles; absent if only the schema changed."""
    equivalent: dict[str, Text] | None = None
    """Mutations of the body that change no result, named as in `torch-compat prove --mutate`, with the reason."""
    link: Text
    """Where the change was made."""


def upgrader_names(entries: list[Entry]) -> Iterator[Problem]:
    """Check that the name of an upgrader states its operator, overload and range, and that the policy has its change."""
    changes = {entry.get("id") for entry in entries if entry.table == "change"}
    for entry in entries:
        if entry.table != "upgrader":
            continue
        name, operator, bump, first = (entry.get(key) for key in ("id", "operator", "bump", "first"))
        if isinstance(name, str) and isinstance(operator, str) and isinstance(bump, int):
            wanted = re.sub(r"[.]", "_", operator.rpartition("::")[2]) + f"_{first or 0}_{bump - 1}"
            if name != wanted:
                yield entry.problem(
                    f"must be {found(wanted)}, derived from the operator and the version range; found {found(name)}", "id"
                )
            if isinstance(first, int) and first >= bump:
                yield entry.problem(f"its range ends before it starts: {first} to {bump - 1}", "first")
        change = entry.get("change")
        if isinstance(change, str) and change not in changes:
            yield entry.problem(f"there is no change {found(change)}", "change")
