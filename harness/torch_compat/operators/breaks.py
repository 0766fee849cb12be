"""Schemas of one release that do not work with another release, from the point of view of a saved program.

An operator breaks *backward* if a program written for the older release does not work with the newer one, and *forward* in the opposite
case. Every operator counts, whatever its namespace and its number of leading underscores: TorchScript compiles a call of
any registered operator (``torch.ops.NAMESPACE.NAME``) and saves it by that name, and a traced program contains internal operators as
soon as a public function calls them (``aten::_convolution``). That nobody ever saved such an operator is an explanation, not a fact about
the schemas, so it belongs to the exceptions in the policy.

Which archives are affected depends on what they record. TorchScript code records the operator without its overload, so another
overload that accepts the same calls is sufficient (``Break.taken_by``). Bytecode of the lite interpreter and exported programs record the
overload.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from torch_compat.errors import UsageError
from torch_compat.operators.compatibility import CompatibilityResult, backward, forward
from torch_compat.operators.differences import differences
from torch_compat.operators.schema import Schema, parse
from torch_compat.operators.types import same
from torch_compat.operators.written import Writer, Written

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from torch_compat.operators.differences import Difference
    from torch_compat.operators.history import FactHistory, History
    from torch_compat.operators.schema import Argument

__all__ = [
    "DROPPED",
    "UNKNOWN",
    "Break",
    "UpgraderEntry",
    "Upgraders",
    "breaks",
    "change_of",
    "consecutive",
    "dropped_upgraders",
    "lost_counts",
    "operator_of",
    "same_schema",
    "upgrader_entries",
]

REMOVED: Final = "removed"
DROPPED: Final = "upgrader dropped"
UNREADABLE: Final = "unreadable"
UNKNOWN: Final = "unknown"


class UpgraderEntry(NamedTuple):
    """One entry of a release's table of upgraders."""

    operator: str
    """``aten::div.Tensor``."""
    bump: int
    """The file format version in which the operator changed."""
    upgrader: str
    """The name of the upgrader."""
    old: str
    """The old schema, as in the table."""
    first: int = 0
    """The first file format version that it covers; the last one precedes ``bump``."""

    def serves(self, version: int) -> bool:
        """Whether it applies to a program of this file format version."""
        return self.first <= version < self.bump


class Upgraders(NamedTuple):
    """The upgraders that the newer release applies to programs of the older one."""

    entries: Sequence[UpgraderEntry]
    """The table of the newer release."""
    writer: Writer
    """The older release, which determines the file format versions of the programs."""


class Break(NamedTuple):
    """A schema of the older set, and why it does not work with the newer set (or the other way around, for ``forward``)."""

    operator: str
    """``aten::add.Tensor``."""
    side: Literal["backward", "forward"]
    old: str
    """The schema in the older set."""
    new: str | None
    """The schema in the newer set with the same overload name; None if it was removed."""
    what: str
    """A stable name for the cause: that of the verdict, or ``removed``, ``upgrader dropped``, ``unreadable``, or
    ``unknown`` if the newer set is incomplete."""
    reason: str
    """The cause in words."""
    taken_by: str | None = None
    """Another overload in the newer set that accepts the same calls. TorchScript code does not record overloads, so it
    still works."""
    upgrader: str | None = None
    """The upgrader for this exact schema, if the newer release has one that covers every file format version with which the
    older release writes the operator. In this case, nothing breaks."""
    argument: str | None = None
    """The argument at fault, if there is one."""
    carried: bool = False
    """Whether the release before the newer one also lacks it as far as is known, because its set is incomplete."""

    @property
    def known(self) -> bool:
        """Whether it is known to break."""
        return self.what not in {UNKNOWN, UNREADABLE}

    @property
    def gained_name(self) -> bool:
        """Whether its unnamed overload now has a name, and accepts the same calls under that name."""
        return self.what == REMOVED and self.taken_by is not None and "." not in self.operator

    @property
    def change(self) -> tuple[Difference, ...]:
        """All differences, while ``what`` is only the first one that PyTorch's check reports; empty if unknown."""
        if self.what == DROPPED:
            return ("upgrader-dropped",)
        if self.what == REMOVED:
            return ("removed",) if self.taken_by is None else ("overload-moved",)
        return () if self.new is None or not self.known else change_of(self.old, self.new)

    @property
    def became(self) -> str | None:
        """The newer schema that its calls reach: that of the same overload, or of the overload that takes them; None if there is none."""
        return self.taken_by if self.what == REMOVED else self.new


def operator_of(schema: str) -> str:
    """The operator of a schema's text: ``aten::add.Tensor``."""
    return schema.partition("(")[0]


def _base(schema: str) -> str:
    return operator_of(schema).partition(".")[0]


def same_schema(text: str, other: str) -> bool:
    """Whether two texts are the same schema to PyTorch, whose equality treats ``ScalarType`` and ``SymInt`` as ``int``."""
    if text == other:
        return True
    first, second = _parsed(text), _parsed(other)
    if isinstance(first, str) or isinstance(second, str):
        return False
    flags = ("name", "overload", "is_vararg", "is_varret")
    return (
        all(getattr(first, flag) == getattr(second, flag) for flag in flags)
        and _all_same(first.arguments, second.arguments)
        and _all_same(first.returns, second.returns)
    )


def change_of(old: str, new: str) -> tuple[Difference, ...]:
    """All differences between two texts of one operator; empty if they are the same schema to PyTorch."""
    first, second = _parsed(old), _parsed(new)
    if isinstance(first, str) or isinstance(second, str):
        return () if old == new else ("unreadable",)
    return differences(first, second)


def _all_same(ones: Sequence[Argument], others: Sequence[Argument]) -> bool:
    return len(ones) == len(others) and all(map(_same, ones, others))


def _same(argument: Argument, other: Argument) -> bool:
    if (argument.name, argument.size, argument.kwarg_only) != (other.name, other.size, other.kwarg_only):
        return False
    if (argument.default is None) is not (other.default is None) or (argument.alias is None) is not (other.alias is None):
        return False
    if argument.default is not None and other.default is not None and not argument.default.same(other.default):
        return False
    if argument.alias is not None and other.alias is not None and not argument.alias.same(other.alias):
        return False
    return same(argument.type.fake, other.type.fake)


def _parsed(text: str) -> Schema | str:
    """The schema, or why the text is not one."""
    try:
        return parse(text, recorded=True)
    except UsageError as error:
        return str(error)


def breaks(
    old: Iterable[str],
    new: Iterable[str],
    *,
    incomplete: str | None = None,
    side: Literal["backward", "forward"] = "backward",
    upgraders: Upgraders | None = None,
) -> list[Break]:
    """The breaks between two sets of schemas, sorted by operator.

    Parameters:
        incomplete: why the newer set is incomplete: a schema missing from it is then not known to be removed.
        upgraders: those of the newer release; none by default. They apply only to backward breaks.
    """
    olds, news = set(old), set(new)
    groups: dict[str, list[str]] = {}
    for text in news:
        groups.setdefault(_base(text), []).append(text)
    results = []
    for text in olds - news:
        group = groups.get(_base(text), ())
        item = _break(text, group, incomplete, side, upgraders)
        if item is not None:
            results.append(item)
    return sorted(results)


def _break(
    text: str,
    group: Sequence[str],
    incomplete: str | None,
    side: Literal["backward", "forward"],
    upgraders: Upgraders | None,
) -> Break | None:
    """The break of one schema of the older set, or None; ``group`` contains the newer schemas of the same name."""
    operator = operator_of(text)
    heirs = sorted(other for other in group if operator_of(other) == operator)
    old = _parsed(text)
    if isinstance(old, str):
        return Break(operator, side, text, heirs[0] if heirs else None, UNREADABLE, f"the older schema cannot be read: {old}")
    if not heirs and side == "forward":
        return None  # the newer release does not write an operator that it does not have
    if not heirs:
        cause, reason = (REMOVED, "the operator no longer exists") if incomplete is None else (UNKNOWN, incomplete)
        results = [Break(operator, side, text, None, cause, reason)]
    else:
        results = []
    for heir in heirs:  # several only in releases whose overloads had no names yet
        new = _parsed(heir)
        if isinstance(new, str):
            results.append(Break(operator, side, text, heir, UNREADABLE, f"the newer schema cannot be read: {new}"))
            continue
        verdict: CompatibilityResult = backward(new, old) if side == "backward" else forward(new, old)
        if verdict.compatible:
            return None
        results.append(Break(operator, side, text, heir, verdict.cause or "", verdict.reason or "", argument=verdict.argument))
    # Other overloads are checked only for breaks: most schemas that are gone have a compatible replacement.
    upgrader, short = _upgraded(text, upgraders) if upgraders is not None and side == "backward" else (None, "")
    rest = sorted(other for other in group if operator_of(other) != operator) if side == "backward" else ()
    taken_by = next((other for other in rest if _takes(other, old)), None)
    return results[0]._replace(taken_by=taken_by, upgrader=upgrader, reason=results[0].reason + short)


def _upgraded(text: str, upgraders: Upgraders) -> tuple[str | None, str]:
    """The upgrader that serves every program with an old schema; if upgraders exist but do not serve all programs, the reason."""
    operator = operator_of(text)
    fitting = [entry for entry in upgraders.entries if entry.operator == operator and same_schema(entry.old, text)]
    if not fitting:
        return None, ""
    writer = upgraders.writer
    own, *others = writer.versions(text)
    left = [version for version in (own, *others) if not any(entry.serves(version) for entry in fitting)]
    last = fitting[-1]
    if not left:
        return last.upgrader, ""
    beside = "" if left[0] == own else ", in programs with other operators that need it"
    serves = f"the upgrader {last.upgrader} covers file formats {last.first} to {last.bump - 1}"
    return None, f"; {serves}, but {writer.of(text)} writes this operator with {left[0]}{beside}"


def _takes(text: str, old: Schema) -> bool:
    """Whether another overload accepts every call of an old schema."""
    new = _parsed(text)
    return not isinstance(new, str) and backward(new._replace(overload=old.overload), old).compatible


def upgrader_entries(versions: FactHistory, release: str) -> list[UpgraderEntry]:
    """The table of upgraders of a release; if its table is not recorded, the next recorded one.

    A later table also fits: it lists past changes, and upgraders stay for as long as the old programs are read.
    """
    from json import loads  # noqa: PLC0415 - needed only here

    at = versions.releases.index(release) if release in versions.releases else len(versions.releases) - 1
    shown = next((item for item in versions.releases[at:] if versions.complete(item)), None)
    if shown is None:
        return []
    bit = versions.bit(shown)
    results = []
    for operator, value, bits in versions.facts():
        first = 0
        for bump, upgrader, old in sorted(loads(value)) if bits & bit else ():
            results.append(UpgraderEntry(operator, bump, upgrader, old, first))
            first = bump
    return results


def dropped_upgraders(versions: FactHistory, older: str, newer: str) -> list[UpgraderEntry]:
    """The upgraders that an older release has and a newer one does not; empty if the table of either is not recorded."""
    if not {older, newer} <= {*versions.releases} or not (versions.complete(older) and versions.complete(newer)):
        return []
    return sorted({*upgrader_entries(versions, older)} - {*upgrader_entries(versions, newer)})


def lost_counts(history: History) -> dict[str, int]:
    """The number of schemas that each recorded release lost or changed since the previous recorded release."""
    ends = Counter(bits & ~(bits >> 1) for _, _, bits in history.facts())
    return {
        release: sum(count for ended, count in ends.items() if ended >> (at - 1) & 1)
        for at, release in enumerate(history.releases)
        if at > 0
    }


def consecutive(
    history: History, versions: FactHistory, *, since: int = 0, side: Literal["backward", "forward"] = "backward"
) -> Iterator[tuple[str, str, int, list[Break]]]:
    """Every two consecutive recorded releases: older, newer, the number of schemas removed or changed, and the breaks.

    A schema missing from an incomplete set is compared again with the next set, so that no break is lost in the gap.

    Parameters:
        since: the index of the first newer release to yield.
    """
    releases = history.releases
    groups: dict[str, list[tuple[str, int]]] = {}
    gone: list[list[tuple[str, str]]] = [[] for _ in releases]
    for text, _, bits in history.facts():
        base = _base(text)
        groups.setdefault(base, []).append((text, bits))
        ends = bits & ~(bits >> 1)
        while ends:
            low = ends & -ends
            at = low.bit_length()
            if at < len(releases):
                gone[at].append((base, text))
            ends ^= low
    carried: list[tuple[str, str]] = []
    written = Written(versions)
    for at in range(1, len(releases)):
        lost, incomplete = gone[at], history.why_incomplete(releases[at])
        if at < since and incomplete is None:
            carried = []
            continue
        upgraders = Upgraders(upgrader_entries(versions, releases[at]), Writer(written, history, releases[at - 1]))
        bit = 1 << at
        findings, unknown = [], []
        for base, text in lost + carried:
            group = [other for other, bits in groups[base] if bits & bit]
            if text in group:
                continue  # missing only from the incomplete set
            item = _break(text, group, incomplete, side, upgraders)
            if item is not None:
                findings.append(item._replace(carried=(base, text) in carried))
                if item.what == UNKNOWN:
                    unknown.append((base, text))
        carried = unknown
        if at >= since:
            yield releases[at - 1], releases[at], len(lost), sorted(findings)
