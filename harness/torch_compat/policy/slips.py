"""What a policy says of slips: what releases do with programs against their own rules (``slips.toml``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

from packaging.version import InvalidVersion, Version
from pydantic import ConfigDict, Field

from torch_compat.policy.messages import found, suggestion
from torch_compat.policy.model import SLIP_SIGN, Identifier, OpenSpan, Several, Table, Text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.errors import Problem
    from torch_compat.policy.source import Entry

__all__ = ["Slip", "slip_conditions"]

RUNS: Final = "runs:"
DEADLY: Final = frozenset({"crashed", "unstable"})

Signs = Several[Annotated[str, Field(pattern=SLIP_SIGN)]]


class Slip(Table):
    """What some releases do with a program against their own rules: they die, or leave something else behind."""

    model_config = ConfigDict(json_schema_extra={"anyOf": [{"required": ["all"]}, {"required": ["any"]}]})

    id: Identifier
    """Its name."""
    all: Signs | None = None
    """The signs that there must be, all of them. Either this or `any`, or both."""
    any: Signs | None = None
    """The signs of which there must be one at least."""
    none: Signs | None = None
    """The signs of which there must be none."""
    readers: Annotated[tuple[OpenSpan, ...], Field(strict=False, min_length=1)]
    """The releases that do so."""
    outcome: Literal["crashed", "timed-out", "unstable", "raised", "value"]
    """How it ends: it dies, it does not end, it comes to no one end; it raises where it should not; it gives, or leaves, other values."""
    stage: Literal["load", "call"]
    """Whether while it loads the program or while it runs it."""
    signal: Literal["SIGABRT", "SIGFPE", "SIGSEGV"] | None = None
    """What it dies of, or may die of where it comes to no one end."""
    because: Text
    """Why, as people are told it."""
    evidence: Text
    """What was run to see it."""


def slip_conditions(entries: list[Entry]) -> Iterator[Problem]:
    """A slip holds of something, of releases that there are, and ends in a way that fits when it is met."""
    known = [version for entry in entries if entry.table == "release" and isinstance(version := entry.get("version"), str)]
    for entry in entries:
        if entry.table != "slip":
            continue
        yield from _spans(entry, known)
        if not entry.raw.keys() & {"all", "any"}:
            yield entry.problem("needs 'all' or 'any': it would hold of every archive")
        signs = [sign for key in ("all", "any") for sign in _texts(entry.get(key))]
        stage, outcome = entry.get("stage"), entry.get("outcome")
        met = [sign for sign in signs if sign.startswith(RUNS)]
        if stage == "load" and met:
            yield entry.problem(f"is of loading, but {found(met[0])} is met only while a program runs", "stage")
        elif stage == "call" and signs and not met:
            yield entry.problem(f"is of a call, but asks for no sign that begins with {RUNS!r}", "stage")
        if stage == "load" and outcome in {"raised", "value", "unstable"}:
            yield entry.problem(f"while loading it can be 'crashed' or 'timed-out'; found {found(outcome)}", "outcome")
        if outcome in DEADLY and "signal" not in entry.raw:
            yield entry.problem("needs 'signal': what it dies of", "outcome")
        elif isinstance(outcome, str) and outcome not in DEADLY and "signal" in entry.raw:
            yield entry.problem(f"nothing dies of what is {found(outcome)}", "signal")


def _spans(entry: Entry, known: list[str]) -> Iterator[Problem]:
    spans = entry.get("readers")
    for at, span in enumerate(spans if isinstance(spans, list) else ()):
        ends = [span.get(end) if isinstance(span, dict) else None for end in ("first", "last")]
        for end, name in zip(("first", "last"), ends, strict=True):
            if known and isinstance(name, str) and name not in known:
                yield entry.problem(f"release {found(name)} is not in the calendar{suggestion(name, known)}", "readers", at, end)
        first, last = map(_version, ends)
        if first and last and last < first:
            yield entry.problem(f"must not be older than 'first', {first}; found {last}", "readers", at, "last")


def _texts(value: object) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _version(text: object) -> Version | None:
    try:
        return Version(text) if isinstance(text, str) else None
    except InvalidVersion:
        return None
