"""Loads a policy folder into a :class:`~torch_compat.policy.Policy`, or reports all of its errors at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from torch_compat.errors import PolicyError, Problem
from torch_compat.policy.accepted import WAIVERS_LOCK, read_accepted
from torch_compat.policy.checks import CHECKS, missing_tables
from torch_compat.policy.counts import ACCEPT, check_lock, counted_tables, read_lock
from torch_compat.policy.messages import HALF_DONE, explain, found, suggestion
from torch_compat.policy.model import CalendarRelease, PolicyTable, Waiver
from torch_compat.policy.policy import REGISTRY, Kind, Policy
from torch_compat.policy.source import read_folder
from torch_compat.policy.table_base import Table
from torch_compat.releases.calendar import Calendar
from torch_compat.words import count_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from torch_compat.policy.accepted import Accepted
    from torch_compat.policy.counts import Counts
    from torch_compat.policy.entry import Entry

__all__ = ["load_policy"]

AnyTable = TypeVar("AnyTable", bound=Table)


def load_policy(folder: Path, *, counted: bool = True, drafts: bool = False) -> Policy:
    """Load the policy in a folder.

    Parameters:
        folder: contains ``*.toml``, ``waivers/<id>.toml``, ``operator_waivers/<id>.toml``, ``deprecations/<id>.toml`` and ``counts.lock``.
        counted: whether to read ``counts.lock`` and ``waivers.lock``. Commands that rewrite them pass False; ``Policy.counts`` is then
            empty, and ``Policy.accepted`` is None.
        drafts: whether placeholders of ``torch-compat new`` are allowed. Tables with a placeholder are then missing from the policy, so
            commands that report on the whole policy pass False.

    Raises:
        PolicyError: the folder is missing or empty, or its files contain errors; lists all errors of all files.
    """
    if not folder.is_dir():
        raise PolicyError([Problem(folder.as_posix(), 0, "", "directory not found")])
    sources = read_folder(folder)
    entries, problems = sources.entries, sources.problems
    if not entries and not problems:
        raise PolicyError([Problem(folder.as_posix(), 0, "", "contains no policy: no .toml file, or only empty ones")])
    valid = [(entry, table) for entry in entries if (table := _validate(entry, problems)) is not None]
    for check in CHECKS:
        problems.extend(check(entries))
    if sources.complete:
        problems.extend(Problem(folder.as_posix(), 0, "", message) for message in missing_tables(sources.mentioned))
    problems = [problem for problem in _without_echoes(problems) if not drafts or not problem.message.startswith(HALF_DONE)]
    if problems:
        raise PolicyError(problems)
    if drafts:
        valid = [(entry, table) for entry, table in valid if not entry.unfinished]
    tables = [table for _, table in valid]
    if not counted:
        return _assemble(tables, {}, None)
    lock = read_lock(folder)  # last: it is generated from the other files
    problems.extend(check_lock(lock, counted_tables([entry for entry, _ in valid])))
    accepted = None
    try:
        accepted = read_accepted(folder)
    except PolicyError as error:
        problems.extend(error.problems)
    else:
        problems.extend(_accepted_problems(folder, accepted, tables))
    if problems:
        raise PolicyError(problems)
    return _assemble(tables, lock.values, accepted)


def _accepted_problems(folder: Path, accepted: Accepted | None, tables: list[Table]) -> Iterator[Problem]:
    """Yield a problem if the lock is missing, or for each waiver in it that the policy lacks."""
    file = (folder / WAIVERS_LOCK).as_posix()
    waivers = {table.id for table in tables if isinstance(table, Waiver)}
    if accepted is None:
        if waivers:
            yield Problem(file, 0, "", f"file not found, but the policy has {count_of(len(waivers), 'waiver')}: {ACCEPT}")
        return
    for name in sorted(({block.waiver for block in accepted.blocks} | {waiver for waiver, _ in accepted.findings}) - waivers):
        yield Problem(file, 0, "", f"the policy has no waiver {found(name)}{suggestion(name, sorted(waivers))}: {ACCEPT}")


def _validate(entry: Entry, problems: list[Problem]) -> Table | None:
    try:
        return entry.model.model_validate(entry.raw)
    except ValidationError as error:
        for detail in error.errors(include_url=False, include_input=False):
            value = entry.get(*detail["loc"])
            if detail["type"] == "too_short" and value:
                continue  # pydantic counts only valid items; each invalid one has an error of its own
            problems.append(entry.problem(explain(detail, entry.model, value), *detail["loc"]))
        return None


def _without_echoes(problems: list[Problem]) -> list[Problem]:
    """Drop all other problems of unfinished lines, whose placeholders are not values yet."""
    half_done = {(problem.file, problem.line) for problem in problems if problem.message.startswith(HALF_DONE)}
    return [
        problem for problem in problems if problem.message.startswith(HALF_DONE) or (problem.file, problem.line) not in half_done
    ]


def _assemble(tables: Iterable[Table], counts: Counts, accepted: Accepted | None) -> Policy:
    tables = list(tables)
    (head,) = _all(tables, PolicyTable)
    releases = _all(tables, CalendarRelease)
    calendar = Calendar(release for release in releases if release.source is None)
    fields: dict[str, Any] = {
        kind.field: tuple(_ordered(kind, [table for table in tables if isinstance(table, kind.model)], calendar))
        for kind in REGISTRY
        if kind.field
    }
    return Policy(
        name=head.name,
        in_force_from=head.in_force_from,
        forward_window_days=head.forward_window_days,
        nightly_index=head.nightly_index,
        profiles=head.profiles,
        corpus=head.resolved(calendar),
        calendar=calendar,
        planned=tuple(
            sorted((release for release in releases if release.source is not None), key=lambda release: release.parsed)
        ),
        **fields,
        counts={key: count for key, count in counts.items() if isinstance(count, int)},
        became={(waiver, operator): item for waiver, operator, item in _became(counts)},
        accepted=accepted,
    )


def _became(counts: Counts) -> Iterator[tuple[str, str, str]]:
    """Yield the waiver, the operator, and its new form, for the entries that have one."""
    for (_, name), count in counts.items():
        if isinstance(count, str):
            waiver, _, operator = name.partition(" ")
            yield waiver, operator, count


def _all(tables: Iterable[Table], kind: type[AnyTable]) -> list[AnyTable]:
    return [table for table in tables if isinstance(table, kind)]


def _ordered(kind: Kind, tables: list[Table], calendar: Calendar[CalendarRelease]) -> list[Table]:
    """Return the tables of a kind in policy order."""
    order = kind.order
    return tables if order is None else sorted(tables, key=lambda table: order(table, calendar))
