"""Operators that compute something else from a release on, by the packaged ``changes.toml``, without the model of policies."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from torch_compat.releases.data import entries, packaged

__all__ = ["RecordedChange", "changes_by_operator"]


class RecordedChange(NamedTuple):
    """An entry of the table.

    Attributes:
        id: its name.
        since: the first release that computes in the new way.
        kind: ``value``, ``type``, ``shape``, ``refused`` (raises since) or ``accepted`` (raised before).
        before, after: what it did, and what it does.
        file_format: the file format version that announces the change; None where none does.
        out_of_range: whether only arguments outside of their range show it.
    """

    id: str
    since: str
    kind: str
    before: str
    after: str
    file_format: int | None
    out_of_range: bool


@cache
def changes_by_operator() -> dict[str, tuple[RecordedChange, ...]]:
    """The changes of each operator, by its name without overload and without the ``_`` of its form in place."""
    found: dict[str, list[RecordedChange]] = {}
    for entry in entries(packaged("policies", "torch"), ("changes",)).get("change", ()):
        change = RecordedChange(
            entry["id"],
            entry["since"],
            entry["kind"],
            entry["before"],
            entry["after"],
            entry.get("file_format"),
            entry.get("out_of_range", False),
        )
        for operator in entry["operators"]:
            found.setdefault(operator, []).append(change)
    return {operator: tuple(changes) for operator, changes in found.items()}
