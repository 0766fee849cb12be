"""What a policy says of slips: what releases do with programs against their own rules (``slips.toml``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import ConfigDict, Field

from torch_compat.policy.messages import found
from torch_compat.policy.table_base import SLIP_SIGN, Identifier, Releases, Several, Table, Text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.errors import Problem
    from torch_compat.policy.entry import Entry

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
    readers: Releases
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
    """A slip holds of something, and ends in a way that fits when it is met."""
    for entry in entries:
        if entry.table != "slip":
            continue
        if entry.get("readers") == "none":
            yield entry.problem("must name at least one", "readers")
        if not entry.raw.keys() & {"all", "any"}:
            yield entry.problem("needs 'all' or 'any': otherwise it applies to every archive")
        signs = [sign for key in ("all", "any") for sign in _texts(entry.get(key))]
        stage, outcome = entry.get("stage"), entry.get("outcome")
        met = [sign for sign in signs if sign.startswith(RUNS)]
        if stage == "load" and met:
            yield entry.problem(f"applies to loading, but {found(met[0])} is met only while a program runs", "stage")
        elif stage == "call" and signs and not met:
            yield entry.problem(f"applies to a call, but names no sign that begins with {RUNS!r}", "stage")
        if stage == "load" and outcome in {"raised", "value", "unstable"}:
            yield entry.problem(f"while loading it can be 'crashed' or 'timed-out'; found {found(outcome)}", "outcome")
        if outcome in DEADLY and "signal" not in entry.raw:
            yield entry.problem("needs 'signal', the signal that ends the process", "outcome")
        elif isinstance(outcome, str) and outcome not in DEADLY and "signal" in entry.raw:
            yield entry.problem(f"nothing dies of what is {found(outcome)}", "signal")


def _texts(value: object) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
