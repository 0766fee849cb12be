"""The policy as a whole, and the registry of the tables that its files may contain."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from torch_compat.policy.behaviors import BehaviorEntry
from torch_compat.policy.deprecations import KINDS, Deprecation, Timeline
from torch_compat.policy.loading import Package
from torch_compat.policy.model import (
    STORED,
    CalendarRelease,
    Change,
    CorpusScope,
    Format,
    OptionSet,
    PolicyTable,
    RuleEntry,
    Tolerance,
    Waiver,
)
from torch_compat.policy.operator_waivers import OperatorWaiver
from torch_compat.policy.sayings import KnownMessage
from torch_compat.policy.upgraders import Upgrader

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Collection, Mapping

    from torch_compat.policy.accepted import Accepted
    from torch_compat.policy.deprecations import Profile
    from torch_compat.policy.table_base import Family, Table
    from torch_compat.releases.calendar import Calendar

    Order: TypeAlias = Callable[[Any, Calendar[CalendarRelease]], Any]

__all__ = ["REGISTRY", "Kind", "Policy"]


@dataclass(frozen=True)
class Kind:
    """A kind of table.

    Attributes:
        name: its name in files.
        model: its class, whose docstrings document its keys.
        keys: the keys whose combined values must be unique; empty if the tables have no name.
        order: the sort key of the tables; None if they keep the order of the files.
        folder: the folder of files that contain one such table each and are named after its ``id``; empty if any file of the policy may
            contain it.
        single: whether the whole policy has only one, written ``[name]``; all others with ``folder`` "" are written ``[[name]]``.
        releases: the paths of values that name releases of the calendar.
        sets: the keys whose values are sets of releases; the ends of these sets must be in the calendar.
        required: what is missing in a policy without such a table; empty if the table is optional.
        field: the field of :class:`Policy`; empty for the kinds that it holds in another form.
    """

    name: str
    model: type[Table]
    keys: tuple[str, ...]
    order: Order | None = None
    folder: str = ""
    single: bool = False
    releases: tuple[tuple[str, ...], ...] = ()
    sets: tuple[str, ...] = ()
    required: str = ""
    field: str = ""

    @property
    def repeated(self) -> bool:
        """Whether it is written ``[[name]]``, any number of times in any file."""
        return not self.single and not self.folder

    @property
    def header(self) -> str:
        """The header that starts it in files."""
        return f"[[{self.name}]]" if self.repeated else f"[{self.name}]"


def _by_id(table: Any, _: object) -> str:
    return str(table.id)


def _introduced(options: OptionSet, calendar: Calendar[CalendarRelease]) -> tuple[int, str]:
    """Return the sort key of an option set: sets of every release first, then by the release that introduced them."""
    age = 0 if options.since is None else 1 + [release.version for release in calendar].index(options.since)
    return age, options.id


def _tables(
    name: str, model: type[Table], *, keys: tuple[str, ...] = ("id",), order: Order | None = _by_id, folder: str = "",
    releases: tuple[tuple[str, ...], ...] = (), sets: tuple[str, ...] = (), required: str = "",
) -> Any:  # fmt: skip
    """Return a field of :class:`Policy` for all tables of one kind; the parameters are the attributes of :class:`Kind`."""
    kind = Kind(name, model, keys, order, folder, releases=releases, sets=sets, required=required)
    return field(default=(), metadata={"kind": kind})


@dataclass(frozen=True)
class Policy:
    """The contents of one policy folder, cross-checked. Created by :func:`torch_compat.policy.load_policy`.

    The order of tables does not depend on how they are distributed over files, except for kinds that keep the order of the files.

    A field whose default comes from ``_tables`` is a kind of table that files may contain, and defines its row in the registry
    (:data:`REGISTRY`). To add a kind of table, write its class and a field here; reading, checks, order, digest and schema follow from the
    field.
    """

    name: str
    in_force_from: dt.date
    forward_window_days: int
    corpus: CorpusScope
    calendar: Calendar[CalendarRelease]
    formats: tuple[Format, ...] = _tables(
        "format", Format, keys=("kind", "version"), order=lambda item, _: (item.kind, item.version),
        releases=(("read_from", "release"), ("read_until", "release"), ("written_from", "release")),
    )  # fmt: skip
    messages: tuple[KnownMessage, ...] = _tables("message", KnownMessage)
    options: tuple[OptionSet, ...] = _tables(
        "options", OptionSet, order=_introduced, releases=(("since",),), required="nothing would be loaded"
    )
    rules: tuple[RuleEntry, ...] = _tables("rule", RuleEntry, order=None, required="nothing would be checked")
    tolerances: tuple[Tolerance, ...] = _tables(
        "tolerance", Tolerance, keys=(), order=lambda item, _: (item.kind, item.dtype, item.operators, item.families)
    )
    behaviors: tuple[BehaviorEntry, ...] = _tables("behavior", BehaviorEntry, order=None, sets=("readers", "writers"))
    changes: tuple[Change, ...] = _tables(
        "change", Change, order=lambda item, calendar: (calendar[item.since].date, item.id), releases=(("since",),)
    )
    upgraders: tuple[Upgrader, ...] = _tables("upgrader", Upgrader, order=None, releases=(("old",), ("since",), ("dropped",)))
    timelines: tuple[Timeline, ...] = _tables(
        "timeline", Timeline, keys=(), order=lambda item, _: (KINDS.index(item.kind), item.silent)
    )
    packages: tuple[Package, ...] = _tables("package", Package, keys=("package",), order=lambda item, _: item.package)
    waivers: tuple[Waiver, ...] = _tables("waiver", Waiver, folder="waivers")
    deprecations: tuple[Deprecation, ...] = _tables("deprecation", Deprecation, folder="deprecations")
    operator_waivers: tuple[OperatorWaiver, ...] = _tables("operator_waiver", OperatorWaiver, folder="operator_waivers")
    profiles: tuple[Profile, ...] = ()
    """Other interpretations of the same promises. Not part of :attr:`digest`: evidence is judged by the policy itself, or by the policy
    :meth:`under` one of them.
    """
    planned: tuple[CalendarRelease, ...] = ()
    """The planned releases, by version; not part of the calendar."""
    counts: Mapping[tuple[str, str], int] = field(default_factory=dict, hash=False)
    """The number of exceptions that each behavior or gap in a release's operators covers, keyed by kind and id, as listed in ``counts.lock``."""
    became: Mapping[tuple[str, str], str] = field(default_factory=dict, hash=False)
    """The new form of each operator of an operator_waiver, by the waiver's id and the operator, as listed in ``counts.lock``."""
    accepted: Accepted | None = None
    """What waivers cover, including each difference, as listed in ``waivers.lock``; None if it was not read."""
    exported: bool = False
    """Whether exported programs must meet more than PyTorch's own promises, as their users would expect. Only a profile requires this."""
    nightly_index: str | None = None
    """The URL of the nightly index. Not part of :attr:`digest`, because it does not affect judging."""

    def under(self, profile: Profile) -> Policy:
        """Return this policy with the values that a profile replaces."""
        window = self.forward_window_days if profile.forward_window_days is None else profile.forward_window_days
        return replace(
            self,
            name=profile.id,
            in_force_from=profile.in_force_from or self.in_force_from,
            forward_window_days=window,
            exported=bool(profile.exported),
            timelines=tuple(profile.applied(timeline) for timeline in self.timelines),
        )

    @cached_property
    def operator_gaps(self) -> dict[str, BehaviorEntry]:
        """The releases whose operators are only partly recorded, with the entry that explains why."""
        unlisted = (entry for entry in self.behaviors if entry.outcome == "unlisted" and entry.readers is not None)
        return {str(entry.readers): entry for entry in unlisted}

    def without_gaps(self) -> Policy:
        """Return this policy without the entries about partly recorded operators."""
        return replace(self, behaviors=tuple(entry for entry in self.behaviors if entry.outcome != "unlisted"))

    @cached_property
    def warnings(self) -> tuple[KnownMessage, ...]:
        """The known warnings of releases."""
        return tuple(message for message in self.messages if message.kind == "warning")

    @cached_property
    def wordings(self) -> tuple[KnownMessage, ...]:
        """The errors that releases word differently."""
        return tuple(message for message in self.messages if message.kind == "error")

    @property
    def releases(self) -> tuple[CalendarRelease, ...]:
        """Every release of the calendar, by version."""
        return tuple(self.calendar)

    def day_of(self, release: str) -> dt.date:
        """Return the date of a release in the calendar, or its planned date; KeyError if the policy has neither."""
        if release in self.calendar:
            return self.calendar[release].date
        return {item.version: item.date for item in self.planned}[release]

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hexadecimal) of the policy's content; comments, layout and the order of files do not affect it."""
        content = {
            "name": self.name,
            "in_force_from": self.in_force_from.isoformat(),
            "forward_window_days": self.forward_window_days,
            "exported": self.exported,
            "corpus": _plain(self.corpus),
            "releases": [_plain(release) for release in self.releases],
            "planned": [_plain(release) for release in self.planned],
            **{kind.field: [_plain(item) for item in getattr(self, kind.field)] for kind in REGISTRY if kind.field},
            "counts": [[*key, count] for key, count in sorted(self.counts.items())],
            "accepted": None if self.accepted is None else self.accepted.text,
            "became": [[*key, item] for key, item in sorted(self.became.items())],
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    def option_sets(self, family: Family, release: CalendarRelease) -> tuple[OptionSet, ...]:
        """Return the sets of load options with which this release reads archives of this family."""
        return tuple(
            options
            for options in self.options
            if family in options.families and (options.since is None or self.calendar[options.since].parsed <= release.parsed)
        )

    def tolerance(self, family: str, operators: Collection[str], dtype: str) -> Tolerance | None:
        """Return the tolerance for values of a dtype in a program with these operators; None if the bits must be equal.

        Values that are only stored (:data:`STORED`) have none: nothing is computed, so nothing can round.

        The most specific entry wins: an overload beats its operator, which beats '*'. If a program uses several operators with equally
        specific entries, the widest one applies, since the error of each operator can reach the result.
        """
        if family in STORED:
            return None
        fitting = [entry for entry in self.tolerances if entry.dtype == dtype and entry.specificity(operators)]
        return max(fitting, key=lambda entry: (entry.specificity(operators), entry.max_ulp, entry.max_abs), default=None)

    def disregards(self, kind: str, family: str) -> bool:
        """Whether a kind of difference is tolerated for readers of a family."""
        return any(entry.kind == kind and family in entry.families for entry in self.tolerances)


def _plain(table: Table) -> Mapping[str, Any]:
    return table.model_dump(mode="json", exclude_none=True)


REGISTRY: Final[tuple[Kind, ...]] = (
    Kind(
        "policy", PolicyTable, (), required="its name, start date, forward window and corpus are missing", single=True,
        releases=(("writers",), ("readers",), ("besides",)),
    ),
    Kind(
        "release", CalendarRelease, ("version",),
        required="without a calendar, no reader is older or newer than another",
    ),
    *(replace(item.metadata["kind"], field=item.name) for item in fields(Policy) if "kind" in item.metadata),
)  # fmt: skip
"""Every kind of table that a policy folder may contain."""
