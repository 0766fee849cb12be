"""The tables of ``deprecations/<id>.toml`` and ``timelines.toml``, one class each, and the profiles of ``promises.toml``.

A deprecation states when a feature got an alternative, began to warn, raised, disappeared, changed or came back. The timeline of its kind
states which of these events must precede which, and for how long. :mod:`torch_compat.policy.timeline` compares the two.
"""

from __future__ import annotations

import datetime as dt  # noqa: TC003 (pydantic evaluates the annotations)
import re
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AfterValidator, ConfigDict, Field, NonNegativeInt, WithJsonSchema
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

Kind: TypeAlias = Annotated[
    Literal["mode-change", "keyword-only", "removal", "default-change", "behaviour-change", "rename"],
    WithJsonSchema(
        {  # policy files may use either spelling
            "enum": ["mode-change", "keyword-only", "removal", "default-change", "behavior-change", "behaviour-change", "rename"],
            "type": "string",
        }
    ),
]
What: TypeAlias = Literal["alternative", "warned", "withdrawn", "error", "removed", "switched", "restored"]
KINDS: Final[tuple[Kind, ...]] = ("mode-change", "keyword-only", "removal", "default-change", "behaviour-change", "rename")
GONE: Final[frozenset[What]] = frozenset({"error", "removed", "switched"})
"""The events that end the old behavior."""


def _pattern(value: str) -> str:
    try:
        re.compile(value)
    except re.error as error:
        raise PydanticCustomError("pattern", "must be a regular expression: {why}", {"why": str(error)}) from None
    return value


Pattern: TypeAlias = Annotated[str, Field(min_length=1), AfterValidator(_pattern)]


class Event(Table):
    """Something that happened to the deprecated feature, in the first release with this behavior."""

    what: What
    """alternative: an alternative exists; warned: using it warns; withdrawn: it no longer warns, and works as before; error:
    using it raises; removed: it no longer exists; switched: it has the new behavior; restored: it exists again (a mode with
    its new meaning, anything else as before).
    """
    release: ReleaseName
    """The first release with this behavior: a release in the calendar, or a planned one."""
    nightly: dt.date | None = None
    """The first nightly with this behavior; only if a dated source states it."""
    source: Text | None = None
    """The source of this statement."""


class Statement(Table):
    """What the documentation of the feature says from a release on, until the next statement."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["holds"]}, {"required": ["absent"]}]})

    release: ReleaseName
    """The first release whose documentation says so."""
    holds: Text | None = None
    """Words in the docstring that mention the deprecation. Either this or `absent`."""
    absent: Literal[True] | None = None
    """The documentation does not mention the deprecation, or no longer mentions it. Either this or `holds`."""
    announces: Several[Text] | None = None
    """What else it announces for a future release, verbatim, if `holds` does not contain it."""


class Announcement(Table):
    """The release for which removal was announced."""

    release: ReleaseName
    """The announced release."""
    text: Text
    """The words that announce it."""


class Unclear(Table):
    """Releases for which the probe cannot determine the state."""

    readers: NamedReleases
    """The releases, with both ends of each range, so that later releases are never included."""
    why: Text
    """Why the state cannot be determined."""


class Hidden(Table):
    """Releases whose warning Python hides by default."""

    readers: Releases
    """The affected releases, among those that warn."""
    category: Literal["DeprecationWarning", "PendingDeprecationWarning"]
    """The category of the warning."""


class Deprecation(Table):
    """A deprecated feature and its history."""

    id: Identifier
    """Its name, which is also the name of its file."""
    subject: Annotated[str, Field(pattern=ONE_LINE)]
    """The deprecated feature, as users call it: 'torch.symeig', 'integer torch.div'."""
    kind: Kind
    """mode-change, keyword-only, removal, default-change, behavior-change or rename: selects the timeline."""
    silent: bool = False
    """Whether the last step changes results without an error; if so, a phase in which it raises must come first."""
    alternative: Text
    """What to use instead."""
    alternative_deprecation: Identifier | None = None
    """The deprecation of the alternative itself, if it was deprecated later. The behavior of the alternative is then checked
    against that file.
    """
    alternative_package: Text | None = None
    """The package that provides the alternative, if it is not torch; torch releases cannot be tested for it."""
    warning: Pattern | None = None
    """A regular expression that matches the text of the warning; required if an event is `warned`."""
    error: Pattern | None = None
    """A regular expression that matches the error of `error` and `removed`, as `Type: message`; without it, any error counts in a
    release in which the alternative works.
    """
    probe: Annotated[str, Field(pattern=NAME)]
    """The probe that uses it: fixtures/deprecations/<probe>.py."""
    waivers: Annotated[tuple[Identifier, ...], Field(strict=False)] = ()
    """Waivers, for archives or operators, caused by the removal of this feature: reports combine them into one item."""
    source: Text | None = None
    """Where the deprecation was decided or announced."""
    announced: Announcement | None = None
    """The release for which its removal was announced, if any. A feature that still exists in that release is overdue."""
    unclear: Annotated[tuple[Unclear, ...], Field(strict=False)] = ()
    """Releases for which the probe cannot determine the state, and why."""
    hidden: Annotated[tuple[Hidden, ...], Field(strict=False)] = ()
    """Releases whose warning Python hides by default, and its category; if there are none, every user sees the warning."""
    events: Annotated[tuple[Event, ...], Field(strict=False, min_length=1)]
    """What happened, oldest first."""
    docs: Annotated[tuple[Statement, ...], Field(strict=False)] = ()
    """What the documentation says, oldest first; if empty, the documentation never mentions the deprecation."""


class Step(Table):
    """One step of a timeline, and what must precede it."""

    what: Several[What]
    """The events that count as this step; the earliest one counts."""
    after: What | None = None
    """An event of the step that must precede it; absent if there is none."""
    releases: NonNegativeInt = 0
    """Minimum number of releases (minor versions) that must have that step first: with 2, a step in 1.8 allows the next step in 1.10 or later."""
    days: NonNegativeInt = 0
    """Minimum number of days between the upload dates of two releases, or between nightlies."""
    documented: bool = False
    """Whether the documentation must mention it in the release that takes the step."""


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
        """Return the step that an event of this kind takes; None if the timeline has none."""
        return next((step for step in self.steps if what in step.what), None)

    @property
    def last(self) -> Step:
        """The step that ends the timeline."""
        return self.steps[-1]


class Profile(Table):
    """Another interpretation of the promises: the values here replace those of the policy."""

    id: Annotated[str, Field(pattern=IDENTIFIER)]
    """Its name, for --profile."""
    asks: Text
    """What it requires, in one sentence."""
    in_force_from: dt.date | None = None
    """The date from which everything must comply with it."""
    forward_window_days: NonNegativeInt | None = None
    """A reader up to this many days OLDER than the writer must still load and run its archives."""
    releases: NonNegativeInt | None = None
    """The minimum number of releases that every step with a waiting period waits."""
    days: NonNegativeInt | None = None
    """The minimum number of days that it waits."""
    documented: bool | None = None
    """Whether every step must be documented."""
    exported: bool | None = None
    """Whether exported programs must be compatible: PyTorch itself makes no guarantees about their schema."""

    def applied(self, timeline: Timeline) -> Timeline:
        """Return the timeline with the waiting periods of this profile."""
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
