"""From a policy folder to a :class:`~torch_compat.policy.model.Policy`: all of it, or every mistake in it at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from pydantic import ValidationError

from torch_compat.errors import PolicyError, Problem
from torch_compat.policy.accepted import WAIVERS_LOCK, read_accepted
from torch_compat.policy.checks import CHECKS, missing_tables
from torch_compat.policy.counts import ACCEPT, check_lock, counted_tables, read_lock
from torch_compat.policy.deprecations import KINDS, Deprecation, Planned, Profile, Timeline
from torch_compat.policy.loading import Ability, Advisory, Package, Renamed
from torch_compat.policy.messages import HALF_DONE, explain, found, suggestion
from torch_compat.policy.model import (
    Beside,
    Builtin,
    CalendarRelease,
    Change,
    Conversion,
    CorpusScope,
    Disregard,
    Format,
    KnownWarning,
    Layout,
    Need,
    OptionSet,
    Policy,
    PolicyTable,
    RuleEntry,
    Table,
    Tolerance,
    Undeclared,
    Waiver,
    WeightsOnly,
    WeightsOnlyRefusal,
    Wording,
)
from torch_compat.policy.operator_waivers import OperatorGap, OperatorWaiver
from torch_compat.policy.slips import Slip
from torch_compat.policy.source import Entry, read_folder
from torch_compat.policy.upgraders import Upgrader
from torch_compat.releases.calendar import Calendar
from torch_compat.releases.release import Release

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from torch_compat.policy.accepted import Accepted
    from torch_compat.policy.counts import Counts

__all__ = ["load_policy"]

AnyTable = TypeVar("AnyTable", bound=Table)


def load_policy(folder: Path, *, counted: bool = True) -> Policy:
    """The policy that a folder's files state.

    Parameters:
        folder: holds ``*.toml``, and ``waivers/<id>.toml``, ``operator_waivers/<id>.toml``, ``deprecations/<id>.toml``; and
            ``counts.lock``.
        counted: whether ``counts.lock`` and ``waivers.lock`` are read. Commands that write them anew pass False; ``Policy.counts`` is
            then empty, and ``Policy.accepted`` None.

    Raises:
        PolicyError: the folder is missing or empty, or its files hold mistakes: every one of them, of every file.
    """
    if not folder.is_dir():
        raise PolicyError([Problem(folder.as_posix(), 0, "", "there is no such folder")])
    sources = read_folder(folder)
    entries, problems = sources.entries, sources.problems
    if not entries and not problems:
        raise PolicyError([Problem(folder.as_posix(), 0, "", "holds no policy: no .toml file, or only empty ones")])
    tables = [table for entry in entries if (table := _validate(entry, problems)) is not None]
    for check in CHECKS:
        problems.extend(check(entries))
    if sources.complete:
        problems.extend(Problem(folder.as_posix(), 0, "", message) for message in missing_tables(sources.mentioned))
    if problems:
        raise PolicyError(_without_echoes(problems))
    if not counted:
        return _assemble(tables, {}, None)
    lock = read_lock(folder)  # last: it is generated from what stands in the other files
    problems.extend(check_lock(lock, counted_tables(entries)))
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
    """A lock that is not there, or of waivers that are not."""
    file = (folder / WAIVERS_LOCK).as_posix()
    waivers = {table.id for table in tables if isinstance(table, Waiver)}
    if accepted is None:
        if waivers:
            yield Problem(file, 0, "", f"there is no such file, though the policy has {len(waivers)} waivers: {ACCEPT}")
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
                continue  # pydantic counts only the good items; each bad one has an error of its own
            problems.append(entry.problem(explain(detail, entry.model, value), *detail["loc"]))
        return None


def _without_echoes(problems: list[Problem]) -> list[Problem]:
    """Problems without those of lines that are half done: what stands there is no value yet."""
    half_done = {(one.file, one.line) for one in problems if one.message.startswith(HALF_DONE)}
    return [one for one in problems if one.message.startswith(HALF_DONE) or (one.file, one.line) not in half_done]


def _assemble(tables: Iterable[Table], counts: Counts, accepted: Accepted | None) -> Policy:
    tables = list(tables)
    (head,) = _all(tables, PolicyTable)
    (corpus,) = _all(tables, CorpusScope)
    calendar = Calendar(_all(tables, CalendarRelease))
    return Policy(
        name=head.name,
        in_force_from=head.in_force_from,
        forward_window_days=head.forward_window_days,
        nightly_index=head.nightly_index,
        corpus=corpus.resolved(calendar),
        calendar=calendar,
        formats=tuple(sorted(_all(tables, Format), key=lambda item: (item.kind, item.version))),
        options=tuple(sorted(_all(tables, OptionSet), key=lambda item: _introduced(item, calendar))),
        rules=tuple(_all(tables, RuleEntry)),
        tolerances=tuple(sorted(_all(tables, Tolerance), key=lambda item: (item.dtype, item.operators))),
        disregarded=tuple(sorted(_all(tables, Disregard), key=lambda item: (item.kind, item.families))),
        waivers=tuple(sorted(_all(tables, Waiver), key=lambda item: item.id)),
        weights_only=tuple(sorted(_all(tables, WeightsOnly), key=lambda item: _asked(item, calendar))),
        weights_only_refusals=tuple(
            sorted(_all(tables, WeightsOnlyRefusal), key=lambda item: (item.recipe, str(item.writers), str(item.readers)))
        ),
        needs=tuple(sorted(_all(tables, Need), key=lambda item: item.id)),
        beside=tuple(sorted(_all(tables, Beside), key=lambda item: (item.package, item.version))),
        changes=tuple(sorted(_all(tables, Change), key=lambda item: (calendar[item.since].date, item.id))),
        layouts=tuple(sorted(_all(tables, Layout), key=lambda item: item.id)),
        undeclared=tuple(sorted(_all(tables, Undeclared), key=lambda item: (item.recipe, str(item.writers)))),
        warnings=tuple(sorted(_all(tables, KnownWarning), key=lambda item: item.id)),
        wordings=tuple(sorted(_all(tables, Wording), key=lambda item: item.id)),
        slips=tuple(_all(tables, Slip)),
        upgraders=tuple(_all(tables, Upgrader)),
        conversions=tuple(sorted(_all(tables, Conversion), key=lambda item: (item.given, str(item.readers)))),
        deprecations=tuple(sorted(_all(tables, Deprecation), key=lambda item: item.id)),
        timelines=tuple(sorted(_all(tables, Timeline), key=lambda item: (KINDS.index(item.kind), item.silent))),
        planned=tuple(sorted(_all(tables, Planned), key=lambda item: Release(item.version))),
        profiles=tuple(sorted(_all(tables, Profile), key=lambda item: item.id)),
        operator_waivers=tuple(sorted(_all(tables, OperatorWaiver), key=lambda item: item.id)),
        operator_gaps=tuple(sorted(_all(tables, OperatorGap), key=lambda item: calendar[item.release].parsed)),
        builtins=tuple(sorted(_all(tables, Builtin), key=lambda item: (item.operator, str(item.readers)))),
        abilities=tuple(sorted(_all(tables, Ability), key=lambda item: item.id)),
        packages=tuple(sorted(_all(tables, Package), key=lambda item: item.package)),
        renamed=tuple(sorted(_all(tables, Renamed), key=lambda item: item.module)),
        advisories=tuple(sorted(_all(tables, Advisory), key=lambda item: item.id)),
        counts={key: count for key, count in counts.items() if isinstance(count, int)},
        became={(waiver, operator): one for waiver, operator, one in _became(counts)},
        accepted=accepted,
    )


def _became(counts: Counts) -> Iterator[tuple[str, str, str]]:
    """Waiver, operator and what it became, of the entries that say so."""
    for (_, name), one in counts.items():
        if isinstance(one, str):
            waiver, _, operator = name.partition(" ")
            yield waiver, operator, one


def _all(tables: Iterable[Table], kind: type[AnyTable]) -> list[AnyTable]:
    return [table for table in tables if isinstance(table, kind)]


def _asked(item: WeightsOnly, calendar: Calendar[CalendarRelease]) -> tuple[int, str]:
    """Sorts what releases do by these releases, and what stands in tables of the same releases by its text."""
    return calendar.known.bits_of(item.readers), item.model_dump_json(exclude_none=True)


def _introduced(options: OptionSet, calendar: Calendar[CalendarRelease]) -> tuple[int, str]:
    """Sorts option sets: those of every release first, then in the order in which releases learned them."""
    age = 0 if options.since is None else 1 + [release.version for release in calendar].index(options.since)
    return age, options.id
