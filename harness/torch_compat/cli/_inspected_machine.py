"""The output of ``torch-compat inspect`` for other tools: one entry for each problem or possible problem of a file."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from torch_compat.releases.calendar import Listed
from torch_compat.releases.data import entries as entries_of
from torch_compat.releases.data import packaged
from torch_compat.report.machine.entries import ERROR, NOTE, WARNING, CommandReport, FindingEntry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from torch_compat.inspected import Inspected

__all__ = ["LOOKED_AT", "RULES", "Mark", "marks_of", "run_of"]

Mark = tuple[str, str, str, str]
"""The rule, the level, a message, and the path of the file."""
LOOKED_AT: Final = "looked-at"
"""The rule of the mark that every file gets. Its text is the SHA-256 of the file; no entry is created for it."""
RULES: Final = {
    "inspect-error": "Every file can be read in full.",
    "inspect-damage": "No archive is inconsistent.",
    "inspect-danger": "No archive references code that is known to be harmful when called.",
    "inspect-changes": "No operator of a program gives different results in a newer release than in the release that wrote the archive.",
    "inspect-release": "The releases named by --fail-on load every archive with default arguments.",
}


def marks_of(inspected: Inspected) -> tuple[Mark, ...]:
    """The marks of a file for other tools. A condition of ``--fail-on`` is an error, as is a file that cannot be read."""
    return tuple((rule, level, text, inspected.path) for rule, level, text in _marks(inspected))


def _marks(inspected: Inspected) -> Iterator[tuple[str, str, str]]:
    yield LOOKED_AT, NOTE, inspected.sha256 or ""
    if inspected.error is not None and not (inspected.damage and inspected.needs is not None):
        yield "inspect-error", ERROR, inspected.message or inspected.error.message
    damage = ERROR if inspected.error is not None or "damage" in inspected.fails else WARNING
    for item in inspected.damage:
        yield "inspect-damage", damage, f"{item.code}: {f'{item.record}: ' if item.record else ''}{item.detail}"
    danger = ERROR if "danger" in inspected.fails else WARNING
    for name, record, because in inspected.dangers:
        yield "inspect-danger", danger, f"{name} in {record}: {because}"
    changes = ERROR if "changes" in inspected.fails else NOTE
    for change in inspected.changes_of_meaning:
        if change.written != "after":
            yield "inspect-changes", changes, f"{change.operator} since {change.since}: {change.before}; now {change.after}"
    for condition in inspected.fails:
        what, colon, release = condition.partition(":")
        if colon and what == "release":
            yield "inspect-release", ERROR, f"torch {release} does not load it with default arguments"


def run_of(marks: Iterable[Mark], exit_status: int) -> CommandReport:
    """A run over files. Its date is that of the newest known release, never the clock's, and its evidence consists of the files."""
    results: list[FindingEntry] = []
    digest = hashlib.sha256()
    files = 0
    levels: dict[str, int] = {ERROR: 0, WARNING: 0, NOTE: 0}
    for rule, level, text, path in marks:
        if rule == LOOKED_AT:
            files += 1
            digest.update(f"{text}\0{path}\0".encode("utf-8", "surrogateescape"))
            continue
        levels[level] += 1
        results.append(FindingEntry(f"{rule}:{path}:{levels[level]}", rule, level, level, text, 1, (), path))
    title = f"torch-compat inspect: {files} files"
    listed = Listed.every(entries_of(packaged("policies", "torch"), ["releases"])["release"])
    newest = max(release.date for release in listed).isoformat()
    return CommandReport(title, newest, digest.hexdigest(), exit_status, {"files": files, **levels}, tuple(results), dict(RULES))
