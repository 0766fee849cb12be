"""Policy tables about the behavior of releases: conditions, releases and outcomes (``behaviors.toml``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple

from pydantic import Field

from torch_compat.policy.messages import found
from torch_compat.policy.model import WeightsOnly  # noqa: TC001 - pydantic evaluates the annotations
from torch_compat.policy.table_base import NAMED, PYTHON, QUALIFIED, SCHEMA, SIGN, Releases, Several, Table, Text
from torch_compat.releases.behavior import LOADS, OF_ARCHIVES, OF_CALLS, OF_CELLS, OF_RUNS, SLIPS, Condition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.errors import Problem
    from torch_compat.policy.entry import Entry
    from torch_compat.releases.release import Release

__all__ = ["BehaviorEntry", "behavior_keys", "is_counted"]

RUNS: Final = "runs:"
DEADLY: Final = frozenset({"crashed", "unstable"})
OF_LOADING: Final = frozenset({"crashed", "timed-out"})

Signs = Several[Annotated[str, Field(pattern=SIGN)]]


class BehaviorEntry(Table):
    """What some releases do if an archive, or what is done with it, meets a condition."""

    id: Annotated[str, Field(pattern=NAMED)]
    """Its name; for a vulnerability, its published identifier."""
    all: Signs | None = None
    """Signs that must all be present, rarest last. Either this or `any`, or both; neither if the outcome is `offers`."""
    any: Signs | None = None
    """Signs, at least one of which must be present."""
    none: Signs | None = None
    """Signs that must not be present."""
    readers: Releases | None = None
    """The releases that do this; 'none' if no release does. Required for all outcomes except `writes`; for `loads`, either this
    or `python`.
    """
    python: Annotated[str, Field(pattern=PYTHON)] | None = None
    """The oldest Python that loads it: a release loads it if it has a wheel for this Python or a newer one. Replaces `readers`.
    """
    writers: Releases | None = None
    """The releases that wrote the archives. For `loads`: releases whose archives of the family all have the signs, so that this
    explains an older reader that loads none of them. For `refused`: absent if no release wrote them.
    """
    outcome: Literal[
        "loads",
        "refused",
        "crashed",
        "timed-out",
        "unstable",
        "raised",
        "value",
        "offers",
        "unlisted",
        "unpickles",
        "converts",
        "exploited",
        "writes",
    ]
    """What these releases do. loads: only these releases load it. refused: they refuse it under `weights_only=True`. crashed,
    timed-out, unstable, raised, value: against their own rules, they crash, do not finish, or have varying outcomes; they
    raise where they should not; they return or leave different values. offers: they have it. unlisted: it is unknown whether
    they have what their recorded operators lack. converts: they convert an argument of one type to another. unpickles: with
    `weights_only=True`, they accept what `takes` lists. exploited: they are vulnerable to a crafted file. writes: programs
    that they wrote contain `operators`.
    """
    departs: bool = False
    """True if no rule determines which releases load it. Only for `loads`."""
    stage: Literal["load", "call"] = "load"
    """When it happens: while the program is loaded, or while it runs."""
    signal: Literal["SIGABRT", "SIGFPE", "SIGSEGV"] | None = None
    """The signal that ends the process, or that can end it if the outcome varies."""
    says: Text | None = None
    """Text contained verbatim in the error of releases that do not load it. Only together with `writers`."""
    operator: Annotated[str, Field(pattern=SCHEMA)] | None = None
    """The schema of an operator that these releases have, although their own lists of operators omit it."""
    operators: Several[Annotated[str, Field(pattern=QUALIFIED)]] | None = None
    """The operators, with overloads, that change with a file format version but are not declared by the recipe."""
    taken_as: Several[Text] | None = None
    """The types that the argument is converted to."""
    takes: WeightsOnly | None = None
    """What the restricted unpickler accepts."""
    call: Text | None = None
    """The call that is affected."""
    safe: Text | None = None
    """The safe alternative."""
    because: Text
    """The explanation that users see; for a vulnerability, what a crafted file does."""
    evidence: Text | None = None
    """What was run to observe it; for a vulnerability, where it was published. Optional if recorded archives show the behavior."""

    @property
    def when(self) -> Condition:
        """Its condition."""
        return Condition(self.all or (), self.any or (), self.none or ())

    @property
    def counted(self) -> bool:
        """Whether ``counts.lock`` states how many recorded cells it explains."""
        return self.departs or self.outcome in SLIPS

    @property
    def refused_recipe(self) -> str:
        """The recipe whose archives these releases refuse under ``weights_only=True``; "" for other outcomes."""
        return self.when.all[-1].removeprefix("recipe:") if self.outcome == "refused" else ""

    def of(self, recipe: str, writer: Release | None) -> bool:
        """Whether it applies to a recipe's archive by this writer; None if no release wrote the archive."""
        wrote = self.writers is None if writer is None else self.writers is not None and writer in self.writers
        return wrote and f"recipe:{recipe}" in self.when.all


def is_counted(entry: Entry) -> bool:
    """Whether ``counts.lock`` has a line for a raw table."""
    return entry.table == "behavior" and (entry.get("departs") is True or entry.get("outcome") in SLIPS)


class _Keys(NamedTuple):
    """The kinds of signs that an outcome allows, and its keys besides ``id``, ``outcome`` and ``because``."""

    kinds: frozenset[str]
    needed: tuple[str, ...]
    allowed: tuple[str, ...] = ()


_OF_SLIPS: Final = _Keys(OF_RUNS, ("readers", "stage", "evidence"), ("signal",))
KEYS: Final = {
    LOADS: _Keys(OF_ARCHIVES, (), ("readers", "python", "writers", "says", "departs", "evidence")),
    "refused": _Keys(OF_CELLS, ("readers",), ("writers",)),
    **dict.fromkeys(SLIPS, _OF_SLIPS),
    "offers": _Keys(frozenset(), ("readers",), ("operator",)),
    "unlisted": _Keys(frozenset(), ("readers",)),
    "converts": _Keys(OF_CALLS, ("readers", "taken_as")),
    "unpickles": _Keys(OF_CELLS, ("readers", "takes")),
    "exploited": _Keys(OF_ARCHIVES, ("readers", "call", "safe", "evidence")),
    "writes": _Keys(OF_CELLS, ("writers", "operators")),
}
"""The kinds of signs and the keys that each outcome allows."""


def behavior_keys(entries: list[Entry]) -> Iterator[Problem]:
    """Check that a behavior has a condition, and the signs and keys that its outcome allows."""
    for entry in entries:
        outcome = entry.get("outcome")
        if entry.table != "behavior" or outcome not in KEYS:
            continue
        kinds, needed, allowed = KEYS[outcome]
        if kinds and not entry.raw.keys() & {"all", "any"}:
            yield entry.problem("needs 'all' or 'any': otherwise it applies to every archive")
        for key in needed:
            if key not in entry.raw:
                yield entry.problem(f"needs {key!r} if the outcome is {found(outcome)}")
        for key in entry.raw.keys() - {"id", "outcome", "because", *needed, *allowed}:
            if key in BehaviorEntry.model_fields and (key not in Condition._fields or not kinds):
                yield entry.problem(f"does not apply to a behavior whose outcome is {found(outcome)}", key)
        for key in Condition._fields:
            for sign in _texts(entry.get(key)):
                if kinds and sign.partition(":")[0] not in kinds:
                    yield entry.problem(f"{found(sign)} is not a sign for this outcome; known: {', '.join(sorted(kinds))}", key)
        if outcome == "refused" and _is_open(entry.get("writers")):
            yield entry.problem("must name a first and a last release, such as '1.5.0..1.8.1'", "writers")
        if entry.raw.get("takes", True) == {}:
            yield entry.problem("does not cover these releases", "takes")
        if outcome == LOADS:
            yield from _need(entry)
        elif outcome in SLIPS:
            yield from _slip(entry, str(outcome))


def _need(entry: Entry) -> Iterator[Problem]:
    if ("readers" in entry.raw) is ("python" in entry.raw):
        yield entry.problem("needs either 'readers' or 'python', but not both")
    if ("writers" in entry.raw) is not ("says" in entry.raw):
        yield entry.problem("needs both 'writers' and 'says', or neither")


def _slip(entry: Entry, outcome: str) -> Iterator[Problem]:
    if entry.get("readers") == "none":
        yield entry.problem("must name at least one", "readers")
    signs = [sign for key in ("all", "any") for sign in _texts(entry.get(key))]
    met = [sign for sign in signs if sign.startswith(RUNS)]
    stage = entry.get("stage")
    if stage == "load" and met:
        yield entry.problem(f"applies to loading, but {found(met[0])} occurs only while a program runs", "stage")
    elif stage == "call" and signs and not met:
        yield entry.problem(f"applies to a call, but has no sign that starts with {RUNS!r}", "stage")
    if stage == "load" and outcome not in OF_LOADING:
        yield entry.problem(f"must be 'crashed' or 'timed-out' while loading; found {found(outcome)}", "outcome")
    if outcome in DEADLY and "signal" not in entry.raw:
        yield entry.problem("needs 'signal', the signal that ends the process", "outcome")
    elif outcome not in DEADLY and "signal" in entry.raw:
        yield entry.problem(f"does not apply to the outcome {found(outcome)}", "signal")


def _is_open(releases: object) -> bool:
    """Whether the text of a set of releases is open-ended."""
    return isinstance(releases, str) and (releases.startswith("..") or releases.endswith(".."))


def _texts(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
