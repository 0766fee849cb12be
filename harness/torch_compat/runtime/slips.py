"""Slips: behaviors of a release that violate its own rules while it loads an archive or runs a program.

For example, a release crashes instead of refusing an archive, or on a program that it accepts, or its optimizer changes the state that a
raising call leaves. ``policies/torch/behaviors.toml`` states slips like all behaviors of releases (:mod:`torch_compat.releases.behavior`).
For an archive that is being loaded, the first slip of the file that holds is the behavior of the release.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from torch_compat.errors import Raised, Refused
from torch_compat.pickles import Described, Global
from torch_compat.releases.behavior import SLIPS, Behavior
from torch_compat.releases.data import entries, packaged
from torch_compat.torchscript.scanner import outline

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from torch_compat.formats.model import Facts
    from torch_compat.loadability import Judge
    from torch_compat.loadability.requirement import Item
    from torch_compat.releases.release import Release

__all__ = [
    "RUNS",
    "DiesCalled",
    "DiesLoading",
    "explanation",
    "in_place_of_refusing",
    "running",
    "slips_of",
    "while_loading",
]

RUNS = "runs:"
UNPARSED = frozenset({"attribute", "declares", "ill-formed-escape"})
"""Kinds of archive signs (:mod:`torch_compat.loadability.archive_features`) for which a source file is refused before any of it is
compiled."""
DEEPEST = 200  # nesting of classes as attributes


def explanation(slip: Behavior, who: str) -> str:
    """The explanation of a slip for users of a reader at this horizon."""
    if slip.outcome == "unstable":
        return (
            f"the release that {who} represents has no reproducible outcome here, and may crash ({slip.signal}): {slip.because}"
        )
    end = f"crashes here ({slip.signal})" if slip.signal else "does not finish here"
    return f"the release that {who} represents {end}: {slip.because}"


class DiesLoading(Refused):
    """The release of a horizon crashes while it loads an archive."""

    def __init__(self, slip: Behavior, who: str, where: str) -> None:
        super().__init__(explanation(slip, who), where=where, code=slip.signal)
        self.slip = slip


class DiesCalled(Raised):
    """The release of a horizon crashes in a call."""

    def __init__(self, slip: Behavior, who: str) -> None:
        super().__init__(explanation(slip, who), code=slip.signal)
        self.slip = slip


@cache
def every() -> tuple[Behavior, ...]:
    behaviors = map(Behavior.read, entries(packaged("policies", "torch"), ("behaviors",)).get("behavior", ()))
    return tuple(behavior for behavior in behaviors if behavior.outcome in SLIPS)


@cache
def slips_of(horizon: Release) -> tuple[Behavior, ...]:
    """The slips of a release in the order of the file; for the newest horizon, those of the newest release."""
    return tuple(slip for slip in every() if slip.readers is not None and horizon in slip.readers)


@cache
def running(horizon: Release) -> Mapping[str, Behavior]:
    """The run-time slips by their sign."""
    return {sign[len(RUNS) :]: slip for slip in slips_of(horizon) for sign in slip.when.all if sign.startswith(RUNS)}


def in_place_of_refusing(facts: Facts, horizon: Release) -> Behavior | None:
    """The behavior of a horizon's release instead of refusing an archive; None if it refuses the archive."""
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


def while_loading(facts: Facts, unmet: Iterable[Item], needs: Iterable[Behavior], horizon: Release) -> Behavior | None:
    """The behavior of a horizon's release instead of refusing an archive; None if it refuses or loads the archive.

    Parameters:
        unmet: the needs of the archive that the release does not meet.
        needs: all known needs.
    """
    slips = [slip for slip in slips_of(horizon) if slip.stage == "load"]
    unmet = tuple(unmet)
    signs = {f"family:{facts.family}"}
    if "debug_format" in facts.extra:
        signs.add(f"debug:{facts.extra['debug_format']}")
    for item in unmet:
        signs.add(f"unmet:{item.what.partition(' ')[0]}")
    asked = [(sign, *sign.partition(":")[::2]) for slip in slips for sign in slip.when.signs]
    untyped = frozenset(rest for _, kind, rest in asked if kind == "untyped")
    for sign, kind, rest in asked:
        if kind == "unmet-in" and any(item.where.startswith(rest) for item in unmet):
            signs.add(sign)
    if untyped:
        lacking = {item.what for item in unmet}
        seen = [sign.partition(":")[::2] for need in needs if need.id in lacking for sign in (*need.when.all, *need.when.any)]
        refused = frozenset(word for kind, word in seen if kind in {"type", "base"})
        refused |= {f"__torch__.{what.removeprefix('class ')}" for what in lacking if what.startswith("class ")}
        broken = {
            need.id for need in needs if any(sign.partition(":")[0] in UNPARSED for sign in (*need.when.all, *need.when.any))
        }
        unparsed = frozenset(item.where for item in unmet if item.what in broken)
        met = _Loader(facts.sources, refused, untyped, unparsed).met(facts)
        if met is not None:
            signs.add(f"untyped:{met}")
    return next((slip for slip in slips if slip.when.holds(signs)), None)


class _Loader:
    """Visits the classes of a program like the loaders of 1.4 to 1.8.

    For each class they parse its whole file, then resolve the types of its attributes including their classes, then handle assignments
    without a type, which they take for constants and ask for their types.
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
        """The first untyped name that is reached; None if there is none, or if something is refused before."""
        result = facts.pickles.get("data.pkl")
        value = result.value if result is not None else None
        if value.__class__ is not Described or value.target.__class__ is not Global:
            return None
        return self._of_class(value.target.path) or None

    def _of_class(self, name: str) -> str | None:
        """The untyped name that loading a class reaches; "" if it reaches something that is refused; None if it reaches neither."""
        if name in self._seen or self._depth > DEEPEST:
            return None
        self._seen.add(name)
        record = f"code/{name.rpartition('.')[0].replace('.', '/')}.py"
        if record in self._unparsed:
            return ""
        source = self._sources.get(record)
        result = outline(source, name.rpartition(".")[2]) if source is not None else None
        if result is None:
            return None
        if result.base in self._refused:
            return ""
        self._depth += 1
        for names in result.declared:
            for item in names:
                met = "" if item in self._refused else self._of_class(item) if item.startswith("__torch__.") else None
                if met is not None:
                    return met
        self._depth -= 1
        return next((entry for entry in result.untyped if entry in self._untyped), None)
