"""Slips: what a release does with a program against its own rules, as ``policies/torch/slips.toml`` says it.

A release that dies where it means to refuse, or of a program that it takes; one whose optimizer changes what a call that raises
leaves behind. Each slip is a condition on the archive and the releases of which it holds. A condition is made of signs:

    family:torchscript         also mobile
    debug:string-table         the debug records keep their texts in one table
    unmet:file-format          the release lacks what the archive needs: the id of a need or quirk of needs.toml, or ``file-format``,
                               ``bytecode``, ``operator``, ``container``
    unmet-in:code/             records in this folder need something that the release lacks
    untyped:__buffers__        a class that the loader comes to, before anything that it refuses, sets this name without a type
    runs:attribute-store       the program comes to this while it runs; :mod:`torch_compat.runtime.slipping` has them all

Of what is being loaded, the first slip of the file that holds is what the release does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from torch_compat.errors import Raised, Refused
from torch_compat.pickles import Described, Global
from torch_compat.releases.data import entries, packaged
from torch_compat.releases.sets import ReleaseSet

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from torch_compat.formats.model import Facts
    from torch_compat.loadability import Judge
    from torch_compat.loadability.release_facts import LoadRequirement
    from torch_compat.loadability.requirement import Item
    from torch_compat.releases.release import Release

__all__ = [
    "KINDS",
    "RUNS",
    "DiesCalled",
    "DiesLoading",
    "RuntimeSlip",
    "in_place_of_refusing",
    "running",
    "slips_of",
    "while_loading",
]

KINDS = frozenset({"debug", "family", "runs", "unmet", "unmet-in", "untyped"})
"""Every kind of sign."""
RUNS = "runs:"
UNPARSED = frozenset({"attribute", "declares", "ill-formed-octal"})
"""The kinds of signs of archives (:mod:`torch_compat.loadability.archive_features`) for which a file of source is refused as a whole, before anything in it
is compiled."""
DEEPEST = 200  # classes that are attributes of one another
_CLASS = re.compile(r"class (\w+)(?:\((\w*)\))?:")
_ATTRIBUTE = re.compile(r"  (\w+) : ([^=]+)\Z")
_UNTYPED = re.compile(r"  (\w+) = ")
_NAME = re.compile(r"[A-Za-z_][\w.]*")


@dataclass(frozen=True, slots=True)
class RuntimeSlip:
    """One slip of one or more releases.

    Attributes:
        id: its name.
        all, any, none: the signs that the archive must have: all of them, one at least, and none.
        readers: the releases.
        outcome: ``crashed``, ``timed-out``, ``unstable`` (it comes to no one end), ``raised`` or ``value``.
        stage: ``load`` or ``call``.
        signal: what it dies of, where it crashes or may crash.
        because: why.
    """

    id: str
    all: tuple[str, ...]
    any: tuple[str, ...]
    none: tuple[str, ...]
    readers: ReleaseSet
    outcome: str
    stage: str
    signal: str
    because: str

    def holds(self, signs: Iterable[str]) -> bool:
        """Whether these signs are its condition."""
        found = frozenset(signs)
        return found.issuperset(self.all) and (not self.any or not found.isdisjoint(self.any)) and found.isdisjoint(self.none)

    def said(self, who: str) -> str:
        """What a person is told who asked a reader of this horizon."""
        if self.outcome == "unstable":
            return f"the release that {who} stands for comes to no one end here, and may die ({self.signal}): {self.because}"
        end = f"dies here ({self.signal})" if self.signal else "comes to no end here"
        return f"the release that {who} stands for {end}: {self.because}"


class DiesLoading(Refused):
    """The release of a horizon dies while it loads an archive."""

    def __init__(self, slip: RuntimeSlip, who: str, where: str) -> None:
        super().__init__(slip.said(who), where=where, code=slip.signal)
        self.slip = slip


class DiesCalled(Raised):
    """The release of a horizon dies of a call."""

    def __init__(self, slip: RuntimeSlip, who: str) -> None:
        super().__init__(slip.said(who), code=slip.signal)
        self.slip = slip


@cache
def every() -> tuple[RuntimeSlip, ...]:
    return tuple(
        RuntimeSlip(
            entry["id"],
            tuple(entry.get("all", ())),
            tuple(entry.get("any", ())),
            tuple(entry.get("none", ())),
            ReleaseSet.parse(entry["readers"]),
            entry["outcome"],
            entry["stage"],
            entry.get("signal", ""),
            entry["because"],
        )
        for entry in entries(packaged("policies", "torch"), ("slips",)).get("slip", ())
    )


@cache
def slips_of(horizon: Release) -> tuple[RuntimeSlip, ...]:
    """The slips of a release, in the order of the file; those of the newest that there is, for the newest horizon."""
    return tuple(slip for slip in every() if horizon in slip.readers)


@cache
def running(horizon: Release) -> Mapping[str, RuntimeSlip]:
    """Those that show while a program runs, by what it comes to."""
    return {sign[len(RUNS) :]: slip for slip in slips_of(horizon) for sign in slip.all if sign.startswith(RUNS)}


def in_place_of_refusing(facts: Facts, horizon: Release) -> RuntimeSlip | None:
    """What the release of a horizon does in place of refusing an archive; None where it does refuse it."""
    if not any(slip.stage == "load" for slip in slips_of(horizon)):
        return None
    judge = _judge()
    place = judge.rules.known.newest(horizon) or 0
    unmet = [item for item in judge.items(facts) if not item.takers >> place & 1]
    return while_loading(facts, unmet, judge.rules.needs, horizon)


@cache
def _judge() -> Judge:
    from torch_compat.loadability import Judge, packaged_rules  # noqa: PLC0415 - only where a release refuses, and may die of it

    return Judge(packaged_rules())


def while_loading(facts: Facts, unmet: Iterable[Item], needs: Iterable[LoadRequirement], horizon: Release) -> RuntimeSlip | None:
    """What the release of a horizon does in place of refusing an archive; None where it refuses, or takes it.

    Parameters:
        unmet: what the archive needs and the release lacks.
        needs: every need that there is.
    """
    slips = [slip for slip in slips_of(horizon) if slip.stage == "load"]
    unmet = tuple(unmet)
    signs = {f"family:{facts.family}"}
    if "debug_format" in facts.extra:
        signs.add(f"debug:{facts.extra['debug_format']}")
    for item in unmet:
        signs.add(f"unmet:{item.what.partition(' ')[0]}")
    asked = [(sign, *sign.partition(":")[::2]) for slip in slips for sign in (*slip.all, *slip.any, *slip.none)]
    untyped = frozenset(rest for _, kind, rest in asked if kind == "untyped")
    for sign, kind, rest in asked:
        if kind == "unmet-in" and any(item.where.startswith(rest) for item in unmet):
            signs.add(sign)
    if untyped:
        lacking = {item.what for item in unmet}
        seen = [sign.partition(":")[::2] for need in needs if need.id in lacking for sign in (*need.all, *need.any)]
        refused = frozenset(word for kind, word in seen if kind in {"type", "base"})
        broken = {need.id for need in needs if any(sign.partition(":")[0] in UNPARSED for sign in (*need.all, *need.any))}
        unparsed = frozenset(item.where for item in unmet if item.what in broken)
        met = _Loader(facts.sources, refused, untyped, unparsed).met(facts)
        if met is not None:
            signs.add(f"untyped:{met}")
    return next((slip for slip in slips if slip.holds(signs)), None)


class _Loader:
    """Goes through the classes of a program as the loaders of 1.4 to 1.8 do: of a class first its whole file is parsed, then come
    the types of its attributes, with their own classes, then what is set without a type, which they take for a constant whose type they
    ask for.
    """

    def __init__(
        self, sources: Mapping[str, str], refused: frozenset[str], untyped: frozenset[str], unparsed: frozenset[str]
    ) -> None:
        self._sources = sources
        self._refused = refused
        self._unparsed = unparsed
        self._untyped = untyped
        self._seen: set[str] = set()
        self._depth = 0

    def met(self, facts: Facts) -> str | None:
        """The first untyped name that matters; None where something is refused before, or there is none."""
        found = facts.pickles.get("data.pkl")
        value = found.value if found is not None else None
        if value.__class__ is not Described or value.target.__class__ is not Global:
            return None
        return self._of_class(value.target.path) or None

    def _of_class(self, name: str) -> str | None:
        """The untyped name that loading this class comes to; "" where it comes to what is refused; None where to neither."""
        if name in self._seen or self._depth > DEEPEST:
            return None
        self._seen.add(name)
        record = f"code/{name.rpartition('.')[0].replace('.', '/')}.py"
        if record in self._unparsed:
            return ""
        lines = self._lines(name, record)
        if lines is None:
            return None
        base, body = lines
        if base in self._refused:
            return ""
        self._depth += 1
        for line in body:
            attribute = _ATTRIBUTE.match(line)
            if attribute is None:
                continue
            for word in _NAME.findall(attribute[2]):
                met = "" if word in self._refused else self._of_class(word) if word.startswith("__torch__.") else None
                if met is not None:
                    return met
        self._depth -= 1
        return next((found[1] for line in body if (found := _UNTYPED.match(line)) and found[1] in self._untyped), None)

    def _lines(self, name: str, record: str) -> tuple[str, list[str]] | None:
        """The base and the lines of the body of a class, without those of its methods."""
        own = name.rpartition(".")[2]
        source = self._sources.get(record)
        if source is None:
            return None
        base: str | None = None
        body: list[str] = []
        for line in source.split("\n"):
            if line[:1] not in {" ", ""}:
                if base is not None:
                    break
                header = _CLASS.match(line)
                if header is not None and header[1] == own:
                    base = header[2] or ""
            elif base is not None and line[:2] == "  " and line[2:3] != " ":
                body.append(line)
        return None if base is None else (base, body)
