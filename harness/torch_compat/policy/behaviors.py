"""What a policy says that releases do: conditions, releases and outcomes (``behaviors.toml``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import ConfigDict, Field

from torch_compat.policy.messages import found
from torch_compat.policy.table_base import PYTHON, SIGN, Identifier, Releases, Several, Table, Text
from torch_compat.releases.behavior import LOADS, OF_ARCHIVES, OF_RUNS, SLIPS, Condition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.errors import Problem
    from torch_compat.policy.entry import Entry

__all__ = ["BehaviorEntry", "behavior_keys", "is_counted"]

RUNS: Final = "runs:"
DEADLY: Final = frozenset({"crashed", "unstable"})
OF_LOADING: Final = frozenset({"crashed", "timed-out"})

Signs = Several[Annotated[str, Field(pattern=SIGN)]]


class BehaviorEntry(Table):
    """What some releases do with archives, or with their programs, where a condition holds."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [{"required": ["readers"]}, {"required": ["python"]}],
            "anyOf": [{"required": ["all"]}, {"required": ["any"]}],
        }
    )

    id: Identifier
    """Its name."""
    all: Signs | None = None
    """The signs that there must be, all of them; the rarest last. Either this or `any`, or both."""
    any: Signs | None = None
    """The signs of which there must be one at least."""
    none: Signs | None = None
    """The signs of which there must be none."""
    readers: Releases | None = None
    """The releases that do so; 'none' where none does. Either this or `python`."""
    python: Annotated[str, Field(pattern=PYTHON)] | None = None
    """The oldest Python that does so: a release does if it has a wheel for that one or a newer one. Either this or `readers`."""
    outcome: Literal["loads", "crashed", "timed-out", "unstable", "raised", "value"]
    """What these releases do. loads: they take it, and no others do. Any other is against their own rules: they die, do not end, come to no
    one end; they raise where they should not; they give, or leave, other values."""
    departs: bool = False
    """Whether who loads it follows from no rule of the releases either. Only of `loads`."""
    stage: Literal["load", "call"] = "load"
    """Whether while they load the program or while they run it."""
    signal: Literal["SIGABRT", "SIGFPE", "SIGSEGV"] | None = None
    """What they die of, or may die of where they come to no one end."""
    because: Text
    """Why, as people are told it."""
    evidence: Text | None = None
    """What was run to see it. It may be left out where archives of the corpus show who loads them."""

    @property
    def when(self) -> Condition:
        """Its condition."""
        return Condition(self.all or (), self.any or (), self.none or ())

    @property
    def counted(self) -> bool:
        """Whether ``counts.lock`` states how many recorded cells it explains."""
        return self.departs or self.outcome in SLIPS


def is_counted(entry: Entry) -> bool:
    """Whether ``counts.lock`` has a line for a table as it was written."""
    return entry.table == "behavior" and (entry.get("departs") is True or entry.get("outcome") in SLIPS)


def behavior_keys(entries: list[Entry]) -> Iterator[Problem]:
    """A behavior holds of something, names who shows it in one way, and ends in a way that fits when it shows."""
    for entry in entries:
        if entry.table != "behavior":
            continue
        outcome = entry.get("outcome")
        signs = [sign for key in ("all", "any", "none") for sign in _texts(entry.get(key))]
        if not entry.raw.keys() & {"all", "any"}:
            yield entry.problem("needs 'all' or 'any': otherwise it applies to every archive")
        if outcome == LOADS:
            yield from _need(entry)
        elif outcome in SLIPS:
            yield from _slip(entry, str(outcome))
        for kinds, wanted in ((OF_ARCHIVES, outcome == LOADS), (OF_RUNS, outcome in SLIPS)):
            unknown = [sign for sign in signs if sign.partition(":")[0] not in kinds] if wanted else []
            if unknown:
                message = f"{found(unknown[0])} is no sign for this outcome; known: {', '.join(sorted(kinds))}"
                yield entry.problem(message, next(key for key in ("all", "any", "none") if unknown[0] in _texts(entry.get(key))))


def _need(entry: Entry) -> Iterator[Problem]:
    if ("readers" in entry.raw) is ("python" in entry.raw):
        yield entry.problem("needs either 'readers' or 'python', and not both")
    for key in ("stage", "signal"):
        if key in entry.raw:
            yield entry.problem(f"applies to no behavior whose outcome is {found(LOADS)}", key)


def _slip(entry: Entry, outcome: str) -> Iterator[Problem]:
    if "readers" not in entry.raw or "python" in entry.raw:
        yield entry.problem("needs 'readers', and no 'python'")
    if entry.get("readers") == "none":
        yield entry.problem("must name at least one", "readers")
    yield from (
        entry.problem(f"needs '{key}' where the outcome is {found(outcome)}")
        for key in ("stage", "evidence")
        if key not in entry.raw
    )
    if "departs" in entry.raw:
        yield entry.problem(f"applies only where the outcome is {found(LOADS)}", "departs")
    signs = [sign for key in ("all", "any") for sign in _texts(entry.get(key))]
    met = [sign for sign in signs if sign.startswith(RUNS)]
    stage = entry.get("stage")
    if stage == "load" and met:
        yield entry.problem(f"applies to loading, but {found(met[0])} is met only while a program runs", "stage")
    elif stage == "call" and signs and not met:
        yield entry.problem(f"applies to a call, but names no sign that begins with {RUNS!r}", "stage")
    if stage == "load" and outcome not in OF_LOADING:
        yield entry.problem(f"while loading it can be 'crashed' or 'timed-out'; found {found(outcome)}", "outcome")
    if outcome in DEADLY and "signal" not in entry.raw:
        yield entry.problem("needs 'signal', the signal that ends the process", "outcome")
    elif outcome not in DEADLY and "signal" in entry.raw:
        yield entry.problem(f"nothing dies of what is {found(outcome)}", "signal")


def _texts(value: object) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
