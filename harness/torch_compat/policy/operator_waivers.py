"""Policy tables about changed operators: exceptions (``operator_waivers/<id>.toml``), and their comparison with actual changes.

A waiver lists individual operators, their change, and the release in which they changed; ``counts.lock`` pins what each became. The
comparison with the actual changes is also here, so that ``torch-compat operators check`` and judging cannot come to different results.
"""

from __future__ import annotations

import datetime as dt  # noqa: TC003 (pydantic evaluates the annotations)
import hashlib
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple, TypeAlias

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from torch_compat.operators.differences import DIFFERENCES, Difference
from torch_compat.policy.messages import found, suggestion
from torch_compat.policy.table_base import ONE_LINE, QUALIFIED, Identifier, ReleaseName, Several, Table, Text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from torch_compat.errors import Problem
    from torch_compat.policy.entry import Entry

__all__ = [
    "SIDES",
    "Applied",
    "Became",
    "Changed",
    "Covers",
    "OperatorWaiver",
    "Side",
    "apply_waivers",
    "digest_of",
    "operator_waiver_lists",
    "operator_waiver_releases",
    "wrong",
]

Side: TypeAlias = Literal["backward", "forward", "upgrader"]
SIDES: Final[tuple[Side, ...]] = ("backward", "forward", "upgrader")
Became: TypeAlias = "Mapping[tuple[str, str], str]"
"""The new form of each operator of a waiver, by the waiver's id and the operator: :func:`digest_of`, as ``counts.lock`` states it."""
MOST_NAMED: Final = 5


def _sorted(values: tuple[str, ...]) -> tuple[str, ...]:
    for item, other in pairwise(values):
        if other < item:
            raise PydanticCustomError("sorted", "must be sorted: {other} belongs before {one}", {"one": item, "other": other})
    return values


def _in_order(values: tuple[Difference, ...]) -> tuple[Difference, ...]:
    return tuple(difference for difference in DIFFERENCES if difference in values)


class Covers(Table):
    """Operators that changed in the same way."""

    change: Annotated[Several[Difference], AfterValidator(_in_order)]
    """Every difference between the old and the new schema, and nothing else."""
    operators: Annotated[Several[Annotated[str, Field(pattern=QUALIFIED)]], AfterValidator(_sorted)]
    """Each operator with its overload, as recorded: 'aten::div.Tensor'. Sorted, one per line."""


class OperatorWaiver(Table):
    """An exception for operators that changed: one real cause that is known and explained."""

    id: Identifier
    """The name of the waiver, which is also the name of its file."""
    title: Annotated[str, Field(min_length=1, max_length=100, pattern=ONE_LINE)]
    """What happened, in one line."""
    side: Side
    """backward: programs written for the older release do not work in this one; forward: programs written for this release do not
    work in the older one; upgrader: the old schema of an upgrader is not the one that the older release had.
    """
    since: ReleaseName
    """The release in which it changed: the newer of two consecutive recorded releases; for an upgrader, the first release that
    has it. A planned release if the change has not happened yet.
    """
    reason: Text
    """Why this is accepted."""
    evidence: Text
    """The evidence that the cause is understood."""
    owner: Text
    """The person responsible for this waiver."""
    expires: dt.date | None = None
    """The first day on which it no longer applies; only if the behavior can still change, and always if `since` is a planned
    release.
    """
    covers: Annotated[tuple[Covers, ...], Field(strict=False, min_length=1)]
    """The operators and their change; one table for each kind of change."""

    def expired(self, as_of: dt.date) -> bool:
        """Whether the waiver has expired on that day."""
        return self.expires is not None and as_of >= self.expires

    @cached_property
    def operators(self) -> dict[str, tuple[Difference, ...]]:
        """The change that it covers, by operator; sorted."""
        return dict(sorted((operator, item.change) for item in self.covers for operator in item.operators))

    def takes(self, changed: Changed) -> bool:
        """Whether it covers a change: the same change of the same operator, in the same release."""
        return (self.side, self.since) == (changed.side, changed.since) and self.operators.get(changed.operator) == changed.change


class Changed(NamedTuple):
    """A change of an operator that breaks something."""

    side: Side
    since: str
    """The release in which it changed."""
    operator: str
    """``aten::div.Tensor``."""
    change: tuple[Difference, ...]
    """Everything that differs."""
    old: str | None
    """The old schema; None if the operator did not exist."""
    new: str | None
    """The schema that its calls are matched with now, or that an upgrader declares; None if there is none."""

    @property
    def show(self) -> str:
        """The command that shows the history of the operator."""
        return f"torch-compat operators history {self.operator}"


def digest_of(changes: Iterable[Changed]) -> str:
    """Return the exact change of an operator as 16 hexadecimal digits of SHA-256 over the schemas before and after."""
    pairs = sorted((change.old or "", change.new or "") for change in changes)
    return hashlib.sha256("".join(f"{old}\n{new}\n" for old, new in pairs).encode()).hexdigest()[:16]


class Applied(NamedTuple):
    """The result of matching waivers with changes."""

    by: dict[Changed, tuple[OperatorWaiver, ...]]
    """The waivers that cover a change. The first one counts; more than one is a mistake."""
    covered: dict[tuple[str, str], tuple[Changed, ...]]
    """The covered changes, by the waiver's id and the operator: one change for each operator, unless a release has it twice."""
    otherwise: dict[tuple[str, str], Changed]
    """For operators that a waiver names: other changes in the same release."""


def apply_waivers(waivers: Iterable[OperatorWaiver], changed: Iterable[Changed], *, as_of: dt.date | None = None) -> Applied:
    """Match changes with waivers.

    Parameters:
        as_of: waivers that have expired by this day cover nothing. With None, no waiver expires.
    """
    known: dict[tuple[Side, str], list[OperatorWaiver]] = {}
    for waiver in waivers:
        if as_of is None or not waiver.expired(as_of):
            known.setdefault((waiver.side, waiver.since), []).append(waiver)
    applied = Applied({}, {}, {})
    for item in changed:
        naming = [waiver for waiver in known.get((item.side, item.since), ()) if item.operator in waiver.operators]
        for waiver in naming:
            key = (waiver.id, item.operator)
            if waiver.takes(item):
                applied.covered[key] = (*applied.covered.get(key, ()), item)
            else:
                applied.otherwise[key] = item
        fitting = tuple(waiver for waiver in naming if waiver.takes(item))
        if fitting:
            applied.by[item] = fitting
    return applied


def wrong(waiver: OperatorWaiver, applied: Applied, became: Became | None, *, as_of: dt.date | None = None) -> tuple[str, str]:
    """Return the kind and description of a waiver's problem; two empty strings if there is none.

    Parameters:
        became: the required new forms of its operators, from ``counts.lock``. None skips this check, if they cannot be known yet.
    """
    if as_of is not None and waiver.expired(as_of):
        return "expired", f"expired on {waiver.expires}"
    shared = {
        other.id
        for fitting in applied.by.values()
        if len(fitting) > 1 and waiver in fitting
        for other in fitting
        if other != waiver
    }
    if shared:
        return "overlapping", f"covers operators that are also covered by {', '.join(sorted(shared))}"
    covered = {operator: applied.covered.get((waiver.id, operator), ()) for operator in waiver.operators}
    absent = [operator for operator, changes in covered.items() if not changes]
    others = {operator: other for operator in absent if (other := applied.otherwise.get((waiver.id, operator)))}
    if others:
        messages = (
            f"{name} has the change {', '.join(item.change)}, not {', '.join(waiver.operators[name])}"
            for name, item in others.items()
        )
        return "another change", f"is for a different change: {_some(messages, len(others))}"
    if len(absent) == len(covered):
        return "unused", f"covers nothing: no operator that it lists changed in this way with {waiver.since}"
    if absent:
        return (
            "did not change",
            f"lists operators that did not change in this way with {waiver.since}: {_some(absent, len(absent))}",
        )
    if became is not None:
        new = [changes[0] for name, changes in covered.items() if became.get((waiver.id, name)) != digest_of(changes)]
        if new:
            messages = (f"{item.operator} became {item.new or 'nothing'}" for item in new)
            return "became something else", f"covers changes that are not in counts.lock: {_some(messages, len(new))}"
    return "", ""


def _some(message: Iterable[str], count: int) -> str:
    """Join the first few of several items, and the number of those left out."""
    first = [item for _, item in zip(range(MOST_NAMED), message, strict=False)]
    return "; ".join([*first, f"and {count - len(first)} more"] if count > len(first) else first)


def operator_waiver_lists(entries: list[Entry]) -> Iterator[Problem]:
    """Yield waivers that list an operator under two kinds of change: within one release, it changes only once."""
    for entry in entries:
        groups = entry.get("covers") if entry.table == "operator_waiver" else None
        seen: set[str] = set()
        for at, group in enumerate(groups if isinstance(groups, list) else ()):
            operators = group.get("operators") if isinstance(group, dict) else None
            names = [name for name in operators if isinstance(name, str)] if isinstance(operators, list) else []
            for name in names:
                if name in seen:
                    yield entry.problem(f"{found(name)} is also in another table of this waiver", "covers", at, "operators")
            seen.update(names)


def operator_waiver_releases(entries: list[Entry]) -> Iterator[Problem]:
    """Yield waivers since a release that is neither in the calendar nor planned.

    Also those for a planned release that lack ``expires``, and those with the id of another waiver, since reports identify waivers by id.
    """
    names = [name for entry in entries if entry.table == "waiver" and isinstance(name := entry.get("id"), str)]
    for entry in entries:
        if entry.table == "operator_waiver" and entry.get("id") in names:
            yield entry.problem(f"waivers/ already has a waiver {found(entry.get('id'))}; reports identify waivers by ID", "id")
    released, planned = (_versions(entries, planned=planned) for planned in (False, True))
    if not released:
        return  # reported once, not for every name
    for entry in entries:
        since = entry.get("since")
        if entry.table != "operator_waiver" or not isinstance(since, str) or since in released:
            continue
        if since not in planned:
            message = (
                f"release {found(since)} is not in the calendar, and is not planned{suggestion(since, [*released, *planned])}"
            )
            yield entry.problem(message, "since")
        elif "expires" not in entry.raw:
            yield entry.problem(f"key 'expires' is missing: {since} is planned, so the waived change is not final")


def _versions(entries: list[Entry], *, planned: bool) -> Collection[str]:
    """Return the releases of the calendar, or the planned ones."""
    releases = (entry for entry in entries if entry.table == "release" and ("source" in entry.raw) is planned)
    return [version for entry in releases if isinstance(version := entry.get("version"), str)]
