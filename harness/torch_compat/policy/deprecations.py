"""What a policy says of deprecations: one class per table of ``deprecations/<id>.toml`` and ``timelines.toml``, and the profiles of ``promises.toml``.

A deprecation states when a thing got an alternative, began to warn, raised, disappeared, changed or came back. The timeline of its
kind states which of these must precede which, and for how long. How the two are held against each other is
:mod:`torch_compat.policy.timeline`.
"""

from __future__ import annotations

import datetime as dt  # noqa: TC003 (pydantic evaluates the annotations)
import re
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AfterValidator, ConfigDict, Field, NonNegativeInt
from pydantic_core import PydanticCustomError

from torch_compat.policy.table_base import (
    IDENTIFIER,
    NAME,
    ONE_LINE,
    Identifier,
    NamedReleases,
    ReleaseName,
    Releases,
    Several,
    Table,
    Text,
)

__all__ = [
    "GONE",
    "KINDS",
    "Announcement",
    "Deprecation",
    "Event",
    "Hidden",
    "Kind",
    "Profile",
    "Statement",
    "Step",
    "Timeline",
    "Unclear",
    "What",
]

Kind: TypeAlias = Literal["mode-change", "keyword-only", "removal", "default-change", "behaviour-change", "rename"]
What: TypeAlias = Literal["alternative", "warned", "withdrawn", "error", "removed", "switched", "restored"]
KINDS: Final[tuple[Kind, ...]] = ("mode-change", "keyword-only", "removal", "default-change", "behaviour-change", "rename")
GONE: Final[frozenset[What]] = frozenset({"error", "removed", "switched"})
"""What ends the old behaviour."""


def _pattern(value: str) -> str:
    try:
        re.compile(value)
    except re.error as error:
        raise PydanticCustomError("pattern", "must be a regular expression: {why}", {"why": str(error)}) from None
    return value


Pattern: TypeAlias = Annotated[str, Field(min_length=1), AfterValidator(_pattern)]


class Event(Table):
    """Something that happened to the deprecated thing, in the first release that has it so."""

    what: What
    """alternative: there is something else to use; warned: using it warns; withdrawn: it no longer warns and works as of old;
    error: using it raises; removed: it is gone; switched: it behaves in the new way; restored: it is back (a mode with its new
    meaning, anything else as of old)."""
    release: ReleaseName
    """The first release that has it so; one of the calendar, or a planned one."""
    nightly: dt.date | None = None
    """The first nightly that had it so; only where a dated source says it."""
    source: Text | None = None
    """Where that is said."""


class Statement(Table):
    """What the documentation of the thing says from a release on, until the next statement."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["holds"]}, {"required": ["absent"]}]})

    release: ReleaseName
    """The first release whose documentation says so."""
    holds: Text | None = None
    """Words of its docstring that tell of the deprecation. Either this or `absent`."""
    absent: Literal[True] | None = None
    """It says nothing of the deprecation (any more). Either this or `holds`."""
    announces: Several[Text] | None = None
    """What else it announces for a release to come, in its own words, where `holds` does not hold it."""


class Announcement(Table):
    """For which release the end of the thing was announced."""

    release: ReleaseName
    """The release that was named."""
    text: Text
    """The words that name it."""


class Unclear(Table):
    """Releases of which the probe cannot tell."""

    readers: NamedReleases
    """The releases, both ends of each span named: no release that comes later is ever one of them."""
    why: Text
    """Why it cannot."""


class Hidden(Table):
    """Releases whose warning Python hides, unless it is asked to show it."""

    readers: Releases
    """The releases, as far as they warn."""
    category: Literal["DeprecationWarning", "PendingDeprecationWarning"]
    """The category in which they warn."""


class Deprecation(Table):
    """One thing that users are asked to stop using, and its history."""

    id: Identifier
    """Its name, also that of its file."""
    subject: Annotated[str, Field(pattern=ONE_LINE)]
    """What is deprecated, as its users call it: 'torch.symeig', 'integer torch.div'."""
    kind: Kind
    """mode-change, keyword-only, removal, default-change, behaviour-change or rename: selects the timeline."""
    silent: bool = False
    """Whether the last step changes results without an error; a phase that raises must then come between."""
    alternative: Text
    """What to use instead."""
    alternative_deprecation: Identifier | None = None
    """The deprecation of the alternative itself, where it was deprecated later. What the alternative does is held to that file."""
    alternative_package: Text | None = None
    """The package that has the alternative, where that is not torch: then no release of torch can be asked."""
    warning: Pattern | None = None
    """A regular expression that finds the warning's text; needed where an event is `warned`."""
    error: Pattern | None = None
    """A regular expression that finds the error of `error` and `removed`, as `Type: message`; without it any error counts, in a
    release where the alternative works."""
    probe: Annotated[str, Field(pattern=NAME)]
    """The probe that uses it: fixtures/deprecations/<probe>.py."""
    waivers: Annotated[tuple[Identifier, ...], Field(strict=False)] = ()
    """Waivers, of archives or of operators, whose cause is the end of this very thing: a report tells them as one item."""
    source: Text | None = None
    """Where the deprecation was decided or announced."""
    announced: Announcement | None = None
    """For which release its end was announced, where a release was named. What is still there then is late."""
    unclear: Annotated[tuple[Unclear, ...], Field(strict=False)] = ()
    """Releases of which the probe cannot tell, and why."""
    hidden: Annotated[tuple[Hidden, ...], Field(strict=False)] = ()
    """Releases whose warning Python hides by default, and its category; without any everybody sees it."""
    events: Annotated[tuple[Event, ...], Field(strict=False, min_length=1)]
    """What happened, oldest first."""
    docs: Annotated[tuple[Statement, ...], Field(strict=False)] = ()
    """What the documentation says, oldest first; without any it never speaks of the deprecation."""


class Step(Table):
    """One step of a timeline, and what must precede it."""

    what: Several[What]
    """The events that are this step; the first of them in time is the one that counts."""
    after: What | None = None
    """An event of the step that must precede it; absent where nothing must."""
    releases: NonNegativeInt = 0
    """How many releases (minor lines) that step must have been in before: 2 allows 1.10 at the earliest after 1.8."""
    days: NonNegativeInt = 0
    """How many days must lie between; of releases the days of their uploads, of nightlies their own."""
    documented: bool = False
    """Whether the documentation must speak of it in the release that takes the step."""


class Timeline(Table):
    """The steps of one kind of deprecation, in order."""

    kind: Kind
    """The kind that selects it."""
    silent: bool = False
    """Whether it is for deprecations whose last step changes results without an error."""
    asks: Text
    """What is promised, in one sentence."""
    source: Text
    """Where the promise comes from."""
    steps: Annotated[tuple[Step, ...], Field(strict=False, min_length=1)]
    """The steps, in order."""

    def step(self, what: str) -> Step | None:
        """The step that an event of this kind takes; None where the timeline has none."""
        return next((step for step in self.steps if what in step.what), None)

    @property
    def last(self) -> Step:
        """The step that ends the timeline."""
        return self.steps[-1]


class Profile(Table):
    """Another reading of the same promises: what is given here replaces what the policy says."""

    id: Annotated[str, Field(pattern=IDENTIFIER)]
    """Its name, for --profile."""
    asks: Text
    """What it asks for, in one sentence."""
    in_force_from: dt.date | None = None
    """The day from which everything is held to it."""
    forward_window_days: NonNegativeInt | None = None
    """A reader that is at most this many days OLDER than the writer must still load and run what it wrote."""
    releases: NonNegativeInt | None = None
    """How many releases every waiting step of every timeline waits at least."""
    days: NonNegativeInt | None = None
    """How many days it waits at least."""
    documented: bool | None = None
    """Whether every step must be documented."""
    exported: bool | None = None
    """Whether exported programs are held to what their users would want: PyTorch says that their schema may change without a guarantee."""

    def applied(self, timeline: Timeline) -> Timeline:
        """The timeline with the windows of this profile."""
        steps = []
        for step in timeline.steps:
            waits = step.releases or step.days
            change: dict[str, object] = {}
            if waits and self.releases is not None:
                change["releases"] = self.releases
            if waits and self.days is not None:
                change["days"] = self.days
            if self.documented is not None and step.after is not None:
                change["documented"] = self.documented
            steps.append(step.model_copy(update=change))
        return timeline.model_copy(update={"steps": tuple(steps)})
