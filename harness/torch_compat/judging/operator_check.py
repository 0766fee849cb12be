"""Two sets of schemas, what breaks between them, and which waivers cover it: ``torch-compat operators check`` without its output."""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from torch_compat.errors import UsageError
from torch_compat.operators.breaks import (
    DROPPED,
    Break,
    UpgraderEntry,
    Upgraders,
    breaks,
    consecutive,
    dropped_upgraders,
    operator_of,
    upgrader_entries,
)
from torch_compat.operators.history import FactHistory, History, SetHistory
from torch_compat.operators.recorded_history import release_of
from torch_compat.operators.schema import Schema, SchemaError, parse
from torch_compat.operators.written import Writer, Written
from torch_compat.releases.data import packaged
from torch_compat.releases.release import Release

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Sequence

    from torch_compat.policy.operator_waivers import Became, OperatorWaiver

__all__ = ["CheckedOperators", "KnownOperators", "SchemaSet", "advice", "check_operators", "read_set"]

UPGRADER: Final = "write an upgrader for the old schema and raise the file format version (torch/csrc/jit/operator_upgraders)"
DO: Final = {
    "removed": "keep the operator",
    "upgrader dropped": "keep the upgrader",
    "no-default": "give {argument} a default",
    "renamed": "keep the name of {argument}: callers may pass it by name",
    "type": "keep accepting the old type of {argument}",
    "size": "keep the list size of {argument}",
    "alias": "keep the alias annotation of {argument}",
    "keyword-only": "keep accepting {argument} by position",
    "default-changed": "keep the default of {argument}",
    "arguments-removed": "keep the argument and ignore its value",
    "return": "keep the return type, or return a subtype of it",
    "returns-count": "keep the number of returns",
    "out-count": "keep the out arguments",
    "out-missing": "keep the out arguments, after all other arguments",
    "vararg": "keep the '...'",
    "default-added": "do not give {argument} a default, or wait until no older release needs to load the programs",
    "container-default": "give {argument} a default that is not a list",
}
"""How to fix a break, by cause."""
COMING: Final = sys.maxsize
"""The file format version of an upgrader that does not exist yet. It is higher than all versions in use today."""
NOTHING: Final = "-"
MOST_SHOWN: Final = 10


class SchemaSet(NamedTuple):
    """One side of a check."""

    name: str
    """The release, or the file as given on the command line."""
    release: str | None
    schemas: frozenset[str]
    methods: int = 0
    """Methods of classes in the file, which are not operators."""
    incomplete: str | None = None
    """Why the set may be incomplete."""


class KnownOperators(NamedTuple):
    """The recorded operators of releases."""

    schemas: History
    versions: FactHistory
    imported: SetHistory

    @classmethod
    def load(cls) -> KnownOperators:
        """The records shipped with this package."""
        versions, imported = (packaged("fixtures", "operators", f"{name}.txt") for name in ("operator_versions", "imported"))
        return cls(History.load(), FactHistory(versions), SetHistory(imported))

    def set_of(self, release: str) -> SchemaSet:
        """The schemas of a recorded release."""
        bit = self.schemas.bit(release)
        texts = frozenset(text for text, _, bits in self.schemas.facts() if bits & bit)
        return SchemaSet(release, release, texts, incomplete=self.schemas.why_incomplete(release))


class Counts(NamedTuple):
    """How many operators, by name and overload, only one side has, and how many have another schema; those left aside do not count."""

    removed: int
    changed: int
    added: int


class CheckedOperators(NamedTuple):
    """The result of a check."""

    old: SchemaSet
    new: SchemaSet
    broken: tuple[Break, ...]
    waived: tuple[tuple[Break, str], ...]
    """Including the id of the waiver."""
    upgraded: tuple[Break, ...]
    named: tuple[Break, ...]
    """Overloads that only gained a name, if the writer's archives do not contain overload names. These are not breaks."""
    aside: tuple[tuple[str, str], ...]
    """``(operator, module)``: missing from a file, but registered by an import of which the file shows no trace."""
    counts: Counts
    unknown: tuple[Break, ...]
    problems: tuple[tuple[str, str], ...]
    """Incorrect waivers, with the reasons."""
    forward: bool
    """Whether forward compatibility was checked."""

    @property
    def incomplete(self) -> list[tuple[str, str]]:
        """The sets that leave something undecided, and why."""
        sides = [self.old, *([self.new] if self.unknown else [])]
        return [(side.name, side.incomplete) for side in sides if side.incomplete is not None]

    @property
    def exit_status(self) -> int:
        """0 if nothing is broken, 1 if something is or a waiver is wrong, 4 if a set is incomplete or cannot be read in full."""
        return 1 if self.broken or self.problems else 4 if self.unknown or self.incomplete else 0

    def summary(self) -> dict[str, int | None]:
        """All results as numbers; None for what was not checked."""
        sides = Counter(item.side for item in self.broken)
        return {
            "old": len(self.old.schemas),
            "new": len(self.new.schemas),
            **self.counts._asdict(),
            "broken_backward": sides["backward"],
            "broken_forward": sides["forward"] if self.forward else None,
            "waived": len(self.waived),
            "upgraded": len(self.upgraded),
            "named": len(self.named),
            "left_aside": len(self.aside),
            "unknown": len(self.unknown),
        }


# ------------------------------------------------------------------------------------------------------------------ sets


def read_set(name: str) -> SchemaSet:
    """The schemas of a recorded release, or of a file.

    Raises:
        UsageError: there is no such release or file, a line of the file is not a schema, or it contains none.
    """
    path = Path(name)
    if path.is_file():
        return _read_file(path)
    if path.is_dir() or "/" in name or name.endswith(".txt"):
        message = "is a directory, not a file" if path.is_dir() else "file not found"
        raise UsageError(message, where=name, hint="expected a file with one schema per line, or a release such as 2.13.0")
    history = History.load()
    try:
        release = release_of(history, name)
    except UsageError as error:
        message = f"{name!r} is neither a file nor a release whose operators are recorded"
        raise UsageError(message, hint=error.hint, code=error.code) from None
    return KnownOperators.load().set_of(release)


def _read_file(path: Path) -> SchemaSet:
    try:
        text = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot be read: {error}", where=str(path)) from error
    schemas: set[str] = set()
    methods = 0
    bad: list[tuple[str, str, str]] = []  # the message, the place, the line
    for number, line in enumerate(text.splitlines(), 1):
        schema = line.strip()
        if not schema:
            continue
        try:
            parsed = parse(schema, recorded=True)
        except SchemaError as error:
            column = error.column + len(line) - len(line.lstrip())
            message = f"is not an operator schema: expected {error.expected}, found {error.found}"
            bad.append((message, f"{path}:{number}:{column}", schema))
            continue
        if "::" in operator_of(schema):
            schemas.add(_plain_return(parsed))
        else:
            methods += 1
    if bad:
        message, where, hint = bad[0]
        if rest := [at.removeprefix(f"{path}:") for _, at, _ in bad[1:]]:
            shown = rest[:MOST_SHOWN] + ["..."] * (len(rest) > MOST_SHOWN)
            hint += f"\n{len(rest)} more, at line:column {', '.join(shown)}"
        raise UsageError(message, where=where, hint=hint, code="schema")
    if not schemas:
        hint = "expected one schema per line, as dump_all_function_schemas.py writes them"
        raise UsageError("contains no operator schema", where=str(path), hint=hint)
    return SchemaSet(str(path), None, frozenset(schemas), methods)


def _plain_return(schema: Schema) -> str:
    """The text of a schema without the parentheses that 1.2 to 1.12 print around a single return, as in the recorded sets."""
    spelling = schema.returns_spelling
    if spelling is None or schema.is_varret or len(schema.returns) != 1 or schema.returns[0].name:
        return str(schema)
    inner = spelling.removeprefix("(").removesuffix(")")
    bare = len(inner) + 2 == len(spelling) and not inner.startswith("(")
    return str(schema._replace(returns_spelling=inner) if bare else schema)


# ----------------------------------------------------------------------------------------------------------------- check


def check_operators(
    old: SchemaSet,
    new: SchemaSet,
    *,
    forward: bool = False,
    upgraders: Sequence[str] = (),
    waivers: Sequence[OperatorWaiver] = (),
    became: Became | None = None,
    as_of: dt.date | None = None,
    known: KnownOperators | None = None,
) -> CheckedOperators:
    """Compare two sets.

    Parameters:
        forward: whether programs written for the newer set must also work with the older one.
        upgraders: old schemas that have an upgrader in the newer set, in addition to the recorded ones.
        became: what the operators of each waiver became, as in ``Policy.became``.
        as_of: the day for waivers that expire.
        known: the records of releases; by default those shipped with this package.
    """
    known = known or KnownOperators.load()
    history, versions, imported = known
    entries = upgrader_entries(versions, new.release or versions.releases[-1])
    for text in upgraders:
        try:
            entries.append(UpgraderEntry(parse(text, recorded=True).operator, COMING, "given with --upgrader", text))
        except SchemaError as error:
            message = f"is not an operator schema: expected {error.expected}, found {error.found}"
            raise UsageError(message, where=f"--upgrader, column {error.column}", hint=text, code="schema") from None
    writer = Writer(Written(versions), history, old.release)
    mended = Upgraders(entries, writer)
    aside = {**_not_imported(old, new, imported), **_not_imported(new, old, imported)}
    results = breaks(old.schemas, new.schemas, incomplete=new.incomplete, upgraders=mended)
    if old.release is not None and new.release is not None:
        text = "the upgrader {} for file format {} was removed"
        results += [
            Break(entry.operator, "backward", entry.old, None, DROPPED, text.format(entry.upgrader, entry.bump))
            for entry in dropped_upgraders(versions, old.release, new.release)
        ]
    if forward:
        results += breaks(old.schemas, new.schemas, incomplete=new.incomplete, side="forward")
    results = [item for item in results if item.operator not in aside]
    named = [item for item in results if item.gained_name and item.upgrader is None and not writer.states_overloads(item.old)]
    broken = [item for item in results if item.known and item.upgrader is None and item not in named]
    left = broken
    waived: list[tuple[Break, str]] = []
    problems: list[tuple[str, str]] = []
    if waivers:
        left, waived, problems = _waive(old, new, broken, waivers, became or {}, entries, as_of, known, forward=forward)
    return CheckedOperators(
        old,
        new,
        tuple(left),
        tuple(waived),
        tuple(item for item in results if item.known and item.upgrader is not None),
        tuple(named),
        tuple(sorted(aside.items())),
        _counts(old.schemas, new.schemas, frozenset(aside)),
        tuple(item for item in results if not item.known),
        tuple(problems),
        forward,
    )


def _not_imported(item: SchemaSet, other: SchemaSet, recorded: SetHistory) -> dict[str, str]:
    """The operators of one side that the other side, a file, cannot have, with the module whose import registers them.

    A dump is made by a process that has imported only torch. If it has any operator of a module, that module was imported, and the
    missing operators of the module were removed.
    """
    if other.release is not None:
        return {}
    modules = {name: module for name, module, _ in recorded.facts() if module != NOTHING}
    present = {operator_of(text) for text in other.schemas}
    shown = {module for name, module in modules.items() if name in present}
    operators = {operator_of(text) for text in item.schemas} - present
    return {name: modules[name] for name in operators if name in modules and modules[name] not in shown}


def _counts(old: frozenset[str], new: frozenset[str], aside: frozenset[str]) -> Counts:
    before, after = ({operator_of(text) for text in texts} - aside for texts in (old, new))
    differing = {operator_of(text) for text in old ^ new}
    return Counts(len(before - after), len(before & after & differing), len(after - before))


def _waive(
    old: SchemaSet,
    new: SchemaSet,
    broken: list[Break],
    waivers: Sequence[OperatorWaiver],
    became: Became,
    entries: Sequence[UpgraderEntry],
    as_of: dt.date | None,
    known: KnownOperators,
    *,
    forward: bool,
) -> tuple[list[Break], list[tuple[Break, str]], list[tuple[str, str]]]:
    """Return the breaks that no waiver covers, those that one covers, and the waivers that are wrong.

    Waivers state what changed with one release. If the two sets are that release and the recorded one before it, they must be
    exact. If they are farther apart, the same operator may have changed more than once, and is covered if each of its breaks from
    one recorded release to the next is. What it becomes with a future release is not pinned anywhere yet.
    """
    from torch_compat.policy.operator_waivers import Changed, apply_waivers, wrong  # noqa: PLC0415 - pydantic

    releases = known.schemas.releases
    sides = {"backward", "forward"} if forward else {"backward"}
    wanted = [waiver for waiver in waivers if waiver.side in sides and _within(waiver.since, old.release, new.release)]
    neighbours = any((old.release, new.release) == pair for pair in itertools.pairwise(releases)) and old.incomplete is None
    problems = []
    covering: dict[Break, str] = {}
    for since in dict.fromkeys(waiver.since for waiver in wanted):  # each may be the release that the newer set is or will be
        mine = [waiver for waiver in wanted if waiver.since == since]
        changed = {entry: Changed(entry.side, since, entry.operator, entry.change, entry.old, entry.became) for entry in broken}
        applied = apply_waivers(mine, dict.fromkeys(changed.values()), as_of=as_of)
        for item, asked in changed.items():
            if asked in applied.by:
                covering.setdefault(item, applied.by[asked][0].id)
        exact = neighbours or (new.release is None and since not in releases)
        pinned = became if neighbours else None
        for waiver in mine:
            what, text = wrong(waiver, applied, pinned, as_of=as_of)
            if what == "expired" or (what and exact):
                problems.append((waiver.id, text))
    rest = [entry for entry in broken if entry not in covering]
    if rest and not neighbours and old.release is not None:
        valid = [waiver for waiver in wanted if as_of is None or not waiver.expired(as_of)]
        covering |= _step_by_step(old.release, new, rest, valid, entries, known)
    left = [entry for entry in broken if entry not in covering]
    return left, [(entry, covering[entry]) for entry in broken if entry in covering], problems


def _step_by_step(
    older: str,
    new: SchemaSet,
    broken: Sequence[Break],
    waivers: Sequence[OperatorWaiver],
    entries: Sequence[UpgraderEntry],
    known: KnownOperators,
) -> dict[Break, str]:
    """Breaks of operators each of whose breaks on the way from a recorded release to a newer set has a waiver; with the last one's id."""
    history, versions, _ = known
    releases = history.releases
    names = {item.operator for item in broken}
    steps: dict[tuple[str, str], list[str | None]] = {}

    def step(value: Sequence[Break], since: frozenset[str]) -> None:
        for item in value:
            if item.operator in names and item.known and item.upgrader is None:
                fitting = (
                    waiver.id
                    for waiver in waivers
                    if waiver.side == item.side and waiver.since in since and waiver.operators.get(item.operator) == item.change
                )
                steps.setdefault((item.side, item.operator), []).append(next(fitting, None))

    for side in {item.side for item in broken}:
        for _, newer, _, result in consecutive(history, versions, since=releases.index(older) + 1, side=side):
            step(result, frozenset({newer}))
            if newer == new.release:
                break
        if new.release is None:
            bit = history.bit(releases[-1])
            newest = [text for text, _, bits in history.facts() if bits & bit and operator_of(text) in names]
            coming = frozenset(waiver.since for waiver in waivers) - {*releases}
            mended = Upgraders(entries, Writer(Written(versions), history, releases[-1]))
            step(breaks(newest, new.schemas, side=side, upgraders=mended), coming)
    last = {item: (steps.get((item.side, item.operator)) or [None]) for item in broken}
    return {item: outcome[-1] for item, outcome in last.items() if all(outcome) and outcome[-1] is not None}


def _within(since: str, old: str | None, new: str | None) -> bool:
    """Whether a release is after the older set and not after the newer one; a file may stand for anything."""
    return (old is None or Release(since) > Release(old)) and (new is None or Release(since) <= Release(new))


def advice(item: Break) -> str:
    """How to fix a break."""
    argument = repr(item.argument) if item.argument else "the argument"
    what = DO.get(item.what, "leave the schema as it was").format(argument=argument)
    return f"{what}; or {UPGRADER}" if item.side == "backward" and item.what != "upgrader dropped" else what
