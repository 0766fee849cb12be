"""What a policy says of operators that changed: exceptions (``operator_waivers/<id>.toml``), and what no recorded set can tell.

A waiver names operators by regular expressions, and the release with which they changed; ``counts.lock`` states how many they are. How
it is held against what changed is here, too, so that ``torch-compat operators check`` and judging cannot come to different ends.
"""

from __future__ import annotations

import datetime as dt  # noqa: TC003 (pydantic evaluates the annotations)
import re
from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple, TypeAlias

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from torch_compat.policy.messages import found, suggestion
from torch_compat.policy.model import ONE_LINE, Identifier, ReleaseName, Several, Table, Text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from torch_compat.errors import Problem
    from torch_compat.policy.source import Entry

__all__ = ["SIDES", "Applied", "OperatorGap", "OperatorWaiver", "Side", "apply_waivers", "operator_waiver_releases", "wrong"]

Side: TypeAlias = Literal["backward", "forward", "upgrader"]
SIDES: Final[tuple[Side, ...]] = ("backward", "forward", "upgrader")


def _anchored(value: str) -> str:
    if not value.startswith("^") or not re.search(r"(?<!\\)(\\\\)*\$\Z", value):
        raise PydanticCustomError(
            "pattern",
            "must be anchored, from ^ to $, such as '^aten::div[.](Tensor|out)$'; found {value}",
            {"value": repr(value)},
        )
    try:
        re.compile(value)
    except re.error as error:
        raise PydanticCustomError("pattern", "must be a regular expression: {why}", {"why": str(error)}) from None
    return value


Anchored: TypeAlias = Annotated[str, Field(min_length=1, json_schema_extra={"pattern": r"^\^.+\$$"}), AfterValidator(_anchored)]


class OperatorWaiver(Table):
    """An exception for operators that changed: one cause in reality that is known, explained and counted."""

    id: Identifier
    """The waiver's name, also that of its file."""
    title: Annotated[str, Field(min_length=1, max_length=100, pattern=ONE_LINE)]
    """What happened, in one line for people."""
    patterns: Several[Anchored]
    """Regular expressions from ^ to $, each over a whole operator with its overload: '^aten::div[.](Tensor|out)$'."""
    side: Side
    """backward: what was written for the older release does not work in this one; forward: what is written for this one does not
    work in the older one; upgrader: the old schema that an upgrader states is not the one that the older release had."""
    since: ReleaseName
    """The release with which it changed: the newer of two that were recorded one after the other; for an upgrader the first that
    states it. A planned one where the change is still to come."""
    reason: Text
    """Why this is accepted."""
    evidence: Text
    """What shows that the cause is understood."""
    owner: Text
    """Who answers for it."""
    expires: dt.date | None = None
    """The first day on which it no longer holds; only where the thing can still change, and always where `since` is planned."""

    def expired(self, as_of: dt.date) -> bool:
        """Whether the waiver no longer holds on that day."""
        return self.expires is not None and as_of >= self.expires

    @cached_property
    def _compiled(self) -> tuple[re.Pattern[str], ...]:
        return tuple(map(re.compile, self.patterns))

    def pattern(self, operator: str) -> str | None:
        """The first of its patterns that an operator fits from end to end; None where none does."""
        return next((pattern.pattern for pattern in self._compiled if pattern.fullmatch(operator)), None)

    def covers(self, side: Side, since: str, operator: str) -> bool:
        """Whether this change of an operator is one of those that it is for."""
        return self.side == side and self.since == since and self.pattern(operator) is not None


class OperatorGap(Table):
    """What the recorded set of a release cannot tell, however often the release is asked."""

    release: ReleaseName
    """The release whose set is incomplete."""
    reason: Text
    """Why nobody can know whether the release has them."""


class Applied(NamedTuple):
    """What became of waivers."""

    by: dict[tuple[Side, str, str], tuple[OperatorWaiver, ...]]
    """The waivers that cover a change, by side, release and operator. The first one counts it; more than one is a mistake."""
    counts: Counter[str]
    """How many changes each waiver covers, by its id."""
    patterns: dict[str, set[str]]
    """Which of its patterns covered anything, by its id."""


def apply_waivers(
    waivers: Iterable[OperatorWaiver], changed: Iterable[tuple[Side, str, str]], *, as_of: dt.date | None = None
) -> Applied:
    """Match changes with waivers.

    Parameters:
        changed: side, release and operator of each.
        as_of: the day; waivers that have expired by then cover nothing. None asks for no day.
    """
    known: dict[tuple[Side, str], list[OperatorWaiver]] = {}
    for waiver in waivers:
        if as_of is None or not waiver.expired(as_of):
            known.setdefault((waiver.side, waiver.since), []).append(waiver)
    applied = Applied({}, Counter(), {})
    for side, since, operator in changed:
        fitting = []
        for waiver in known.get((side, since), ()):
            pattern = waiver.pattern(operator)
            if pattern is not None:
                fitting.append(waiver)
                applied.patterns.setdefault(waiver.id, set()).add(pattern)
        if fitting:
            applied.by[side, since, operator] = tuple(fitting)
            applied.counts.update(waiver.id for waiver in fitting)
    return applied


def wrong(waiver: OperatorWaiver, applied: Applied, stated: int | None, *, as_of: dt.date | None = None) -> tuple[str, str]:
    """The kind of what is wrong with a waiver, and in words; two empty texts where nothing is.

    Parameters:
        stated: how many operators (with their overloads) it covers by ``counts.lock``; one more or one less is wrong. None asks for no
            number, where none can be known yet.
    """
    count = applied.counts[waiver.id]
    shared = {
        other.id
        for fitting in applied.by.values()
        if waiver in fitting and len(fitting) > 1
        for other in fitting
        if other != waiver
    }
    idle = [pattern for pattern in waiver.patterns if pattern not in applied.patterns.get(waiver.id, ())]
    if as_of is not None and waiver.expired(as_of):
        return "expired", f"expired on {waiver.expires}"
    if shared:
        return "overlapping", f"covers operators that {', '.join(sorted(shared))} covers as well"
    if count == 0:
        return "unused", f"covers nothing: no operator that changed with {waiver.since} fits {' or '.join(waiver.patterns)}"
    if stated is not None and count > stated:
        return "hides more", f"counts {stated} operators, but hides {count}: {count - stated} more than it says"
    if stated is not None and count < stated:
        return "inexact", f"counts {stated} operators, but only {count} changed so"
    if idle:
        return "idle pattern", f"has the pattern {' and '.join(idle)}, which no operator fits that changed with {waiver.since}"
    return "", ""


def operator_waiver_releases(entries: list[Entry]) -> Iterator[Problem]:
    """A waiver since a release that is neither in the calendar nor planned; one that waits for a planned release without an end;
    one with the name of another waiver, by which reports would confuse them.
    """
    names = [name for entry in entries if entry.table == "waiver" and isinstance(name := entry.get("id"), str)]
    for entry in entries:
        if entry.table == "operator_waiver" and entry.get("id") in names:
            yield entry.problem(f"there is a waiver {found(entry.get('id'))} in waivers/, too; reports name both by it", "id")
    released, planned = _versions(entries, "release"), _versions(entries, "planned")
    if not released:
        return  # said once, not for every name
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
            yield entry.problem(f"key 'expires' is missing: {since} is planned, so what this is for can still change")


def _versions(entries: list[Entry], table: str) -> Collection[str]:
    return [version for entry in entries if entry.table == table and isinstance(version := entry.get("version"), str)]
