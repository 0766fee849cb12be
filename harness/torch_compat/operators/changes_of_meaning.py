"""Operators whose results change from a release on, read from the packaged ``changes.toml`` without the policy model."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from torch_compat.releases.data import entries, packaged

__all__ = ["RecordedChange", "changes_by_operator"]


class RecordedChange(NamedTuple):
    """An entry of the table.

    Attributes:
        id: its name.
        since: the first release with the new behavior.
        kind: ``value``, ``type``, ``shape``, ``refused`` (raises since then) or ``accepted`` (raised before).
        before, after: the old and the new behavior.
        file_format: the file format version that announces the change; None if there is none.
        out_of_range: whether the change shows only for arguments outside their range.
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
    """The changes of each operator, by its name without overload and without the ``_`` of its in-place form."""
    results: dict[str, list[RecordedChange]] = {}
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
            results.setdefault(operator, []).append(change)
    return {operator: tuple(changes) for operator, changes in results.items()}
