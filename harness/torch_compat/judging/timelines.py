"""Deprecations and what releases really did with them: states derived from observations, and where both disagree. Not a rule."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from torch_compat.judging.judgement import slug
from torch_compat.policy.timeline import TimelineState, histories
from torch_compat.releases.release import Release

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from torch_compat.judging.evidence import Evidence
    from torch_compat.policy import Policy
    from torch_compat.policy.deprecations import Deprecation, Statement
    from torch_compat.policy.timeline import Breach, DeprecationHistory, Snapshot

__all__ = [
    "Mismatch",
    "Seen",
    "State",
    "TimelineRow",
    "Used",
    "derive",
    "expected",
    "finding_of",
    "hidden",
    "mismatches",
    "rows",
    "seen",
    "statement_of",
]


class State(enum.StrEnum):
    """What a release does with a deprecated feature."""

    ABSENT = "absent"
    SILENT = "silent"
    WARNED = "warned"
    ERROR = "error"
    REMOVED = "removed"
    NEW = "new"
    CANNOT_TELL = "cannot-tell"


class Used(Protocol):
    """One observed use of a feature in a release."""

    @property
    def outcome(self) -> str:
        """worked, raised, lacks, crashed or timed-out."""

    @property
    def warnings(self) -> Sequence[tuple[str, str]]:
        """Category and text of each warning."""

    @property
    def said(self) -> str:
        """The output on standard error."""

    @property
    def behaves(self) -> str | None:
        """``old`` or ``new``, if that can be determined."""

    @property
    def error(self) -> Mapping[str, str] | None:
        """``type`` and ``message``, if it raised."""


class Observed(Protocol):
    """The result of a deprecation's probe in a release."""

    @property
    def deprecated(self) -> Used:
        """The use of the deprecated feature."""

    @property
    def alternative(self) -> Used:
        """The control: the same task through the alternative."""

    @property
    def docs(self) -> Sequence[str] | None:
        """The sentences of its docstring that mention deprecation; None if there is no docstring."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A state, and the reason if it cannot be determined."""

    state: State
    why: str = ""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A release in which the policy file and the evidence disagree.

    Attributes:
        what: ``state``, ``warning`` (Python hides it), ``alternative``, ``alternative warning`` (it warns itself), ``documentation`` or
            ``announcement`` (what the documentation announces).
        since: the first release of an unbroken run of releases with this disagreement.
    """

    what: str
    release: str
    since: str
    text: str


EXPECTED: Final[dict[str, frozenset[State]]] = {
    "": frozenset({State.SILENT, State.ABSENT}),
    "warned": frozenset({State.WARNED}),
    "withdrawn": frozenset({State.SILENT}),
    "error": frozenset({State.ERROR}),
    "removed": frozenset({State.REMOVED, State.ERROR}),
    "switched": frozenset({State.NEW}),
    "restored": frozenset({State.SILENT, State.WARNED}),
}
"""The states that a release may be in after its newest event."""
HIDDEN: Final = frozenset({"DeprecationWarning", "PendingDeprecationWarning"})
"""Categories that Python shows only in ``__main__`` by default (see "Default Warning Filter" in the documentation of
``warnings``)."""

_FUTURE = r"(?:a |an |the |any |some )?(?:future|next|upcoming|later|newer)"
_WHEN = r"(?:[ ,]+(?:in|from|after|by|as|of|with|on|a|an|the|next|future|upcoming|major|minor|versions?|releases?|pytorch|torch|v?\d+(?:\.\d+)*)\b)*"
_ANNOUNCES = re.compile(
    # what will happen to a feature, and when
    rf"\b(?:(?:will|may|might|to) be (?:removed|dropped|changed|deprecated|required|enforced|disallowed|unsupported)"
    rf"|(?:will|may|might) (?:change|go away|disappear|raise an (?:error|exception)|throw an error|no longer)"
    rf"|subject to change){_WHEN}"
    # when something will change
    rf"|\b(?:in|from|as of) {_FUTURE}(?: (?:major |minor )?(?:pytorch )?(?:releases?|versions?))?\b|\b{_FUTURE} (?:major |minor )?(?:pytorch )?(?:releases?|versions?)\b"
    rf"|\b(?:is|are|was|were|been|being|now) (?:now )?deprecated\b|\bdeprecated::"
    rf"|\b(?:in|from|as of) (?:pytorch |version |release |v)+\d+(?:\.\d+)+\b(?=[^.]*\bwill\b)",
    re.IGNORECASE,
)
"""Phrases in a docstring that announce something for a future release."""
_OF_THE_MACHINE = re.compile(r"CUDA is not available|triton not found")
"""Messages about the machine on which a release ran, not about the feature that was used."""


def derive(deprecation: Deprecation, observed: Observed, *, exists: bool) -> Seen:
    """The state of a release.

    Parameters:
        exists: whether the release is said to have, or to have had, the feature: if it is missing there, it was removed.
    """
    use, control = observed.deprecated, observed.alternative
    if use.outcome == "lacks":
        return Seen(State.REMOVED if exists else State.ABSENT)
    if use.outcome == "worked":
        if use.behaves == "new":
            return Seen(State.NEW)
        return Seen(State.WARNED if _warned(deprecation, use) else State.SILENT)
    if use.outcome != "raised" or use.error is None:
        return Seen(State.CANNOT_TELL, f"the probe {use.outcome}{_error(use)}")
    if deprecation.error is not None:
        if re.search(deprecation.error, f"{use.error['type']}: {use.error['message']}"):
            return Seen(State.ERROR)
        return Seen(State.CANNOT_TELL, f"the probe raised, but not a deprecation error{_error(use)}")
    if control.outcome == "worked":
        return Seen(State.ERROR)
    return Seen(State.CANNOT_TELL, f"the probe raised{_error(use)}, and the control {control.outcome}{_error(control)}")


def _warned(deprecation: Deprecation, use: Used) -> bool:
    pattern = deprecation.warning
    return pattern is not None and any(re.search(pattern, text) for text in (*(text for _, text in use.warnings), use.said))


def hidden(deprecation: Deprecation, use: Used) -> str:
    """The category of the warning, if Python hides every one that a release issued; "" if one is visible, or there is none."""
    pattern = deprecation.warning
    if pattern is None or re.search(pattern, use.said):
        return ""
    given = [category for category, text in use.warnings if re.search(pattern, text)]
    return given[0] if given and HIDDEN.issuperset(given) else ""


def _error(use: Used) -> str:
    return f": {use.error['type']}: {use.error['message']}" if use.error else ""


def expected(history: DeprecationHistory, release: str) -> frozenset[State]:
    """The states that a release may be in according to the policy file."""
    points = list(history.axis.points)
    rank = points.index(release)
    deprecation = history.deprecation
    by_then = [event for event in deprecation.events if points.index(event.release) <= rank and event.what != "alternative"]
    what = by_then[-1].what if by_then else ""
    if what == "restored" and deprecation.kind == "mode-change":
        return frozenset({State.NEW})
    if what == "switched" and not deprecation.silent and deprecation.error is not None:
        return EXPECTED[what] | {State.ERROR}
    return EXPECTED[what]


def seen(evidence: Evidence, deprecation: Deprecation) -> dict[str, Seen]:
    """The state of every observed release, oldest first."""
    observed = evidence.deprecations.get(deprecation.probe, {})
    since = next((item.since for item in evidence.corpus.deprecations if item.name == deprecation.probe), None)
    first = evidence.rank.get(since or "", 0)
    return {
        release: derive(deprecation, observed[release], exists=evidence.rank[release] >= first)
        for release in sorted(observed, key=evidence.rank.__getitem__)
    }


def mismatches(evidence: Evidence, history: DeprecationHistory, states: Mapping[str, Seen]) -> Iterator[Mismatch]:
    """Yield where the policy file and the evidence disagree, release by release."""
    deprecation = history.deprecation
    observed = evidence.deprecations.get(deprecation.probe, {})
    runs: dict[str, str] = {}
    for release, state in states.items():
        messages = {
            "state": _state(history, release, state),
            "warning": _hidden(deprecation, release, observed[release], state),
            "alternative": _alternative(evidence, history, release, observed[release], state),
            "alternative warning": _alternative_warning(evidence, history, release, observed[release]),
            "documentation": _documentation(history, release, observed[release], state),
            "announcement": _announcement(history, release, observed[release], state),
        }
        for what, text in messages.items():
            if text:
                yield Mismatch(what, release, runs.setdefault(what, release), f"{deprecation.id}: {text}")
            else:
                runs.pop(what, None)


def _state(history: DeprecationHistory, release: str, value: Seen) -> str:
    allowed = expected(history, release)
    if value.state is State.CANNOT_TELL or value.state in allowed:
        return ""
    return f"in {release} it must be {' or '.join(sorted(allowed))} according to its events, but it is {value.state}"


def _hidden(deprecation: Deprecation, release: str, observed: Observed, value: Seen) -> str:
    """Check that people see the warning, unless the file says otherwise; return a message, or "" if it agrees."""
    if value.state is not State.WARNED:
        return ""
    message = next((item.category for item in deprecation.hidden if Release(release) in item.readers), "")
    category = hidden(deprecation, observed.deprecated)
    if category == message:
        return ""
    if category:
        return f"in {release} it warns with a {category}, which Python hides by default" + (
            f", not a {message}" if message else ""
        )
    return f"the file says that the warning of {release} is a {message}, which Python hides by default, but it is shown"


def _of_alternative(evidence: Evidence, deprecation: Deprecation) -> DeprecationHistory | None:
    """The history of the alternative, if it was itself deprecated."""
    name = deprecation.alternative_deprecation
    return next((history for history in histories(evidence.policy) if history.deprecation.id == name), None) if name else None


def _there(history: DeprecationHistory, release: str) -> bool:
    """Whether a release has the alternative according to the file."""
    points, since = list(history.axis.points), _since(history)
    return not since or points.index(since) <= points.index(release)


def _since(history: DeprecationHistory) -> str:
    """The first release with the alternative according to the file; "" if it always exists."""
    return next((event.release for event in history.deprecation.events if event.what == "alternative"), "")


def _alternative(evidence: Evidence, history: DeprecationHistory, release: str, observed: Observed, value: Seen) -> str:
    """Check that the alternative exists when the file says so, and works wherever it should be used instead."""
    deprecation, since, use = history.deprecation, _since(history), observed.alternative
    if deprecation.alternative_package is not None:
        if use.outcome == "lacks":
            return ""
        return f"in {release} the alternative {use.outcome}, although the file says that {deprecation.alternative_package} provides it"
    if not _there(history, release):
        return (
            f"in {release} the alternative is already available, but the file says that it was added in {since}"
            if use.outcome == "worked"
            else ""
        )
    other = _of_alternative(evidence, deprecation)
    if other is not None:
        state = derive(other.deprecation, _Alone(use), exists=True)
        if state.state not in (allowed := expected(other, release)):
            texts = " or ".join(sorted(allowed))
            return f"in {release} the alternative must be {texts} according to the file of {other.deprecation.id}, but it is {state.state}"
        return ""
    if since and use.outcome == "lacks":
        return f"in {release} the alternative is missing, but the file says that it has been available since {since}"
    if use.outcome != "worked" and (since or value.state not in {State.ABSENT, State.SILENT, State.CANNOT_TELL}):
        return f"in {release} the alternative {_did(use)}{_error(use)}"
    return ""


@dataclass(frozen=True)
class _Alone:
    """A use without a control."""

    deprecated: Used
    docs: Sequence[str] | None = None

    @property
    def alternative(self) -> Used:
        """Itself: its error counts as one of a deprecation only if the file states the text."""
        return self.deprecated


def _did(use: Used) -> str:
    return {"lacks": "is missing", "timed-out": "did not finish"}.get(use.outcome, use.outcome)


def _alternative_warning(evidence: Evidence, history: DeprecationHistory, release: str, observed: Observed) -> str:
    """Check that the alternative can be used without a warning, unless it was itself deprecated."""
    deprecation, use = history.deprecation, observed.alternative
    if not _there(history, release) or use.outcome != "worked":
        return ""
    other = _of_alternative(evidence, deprecation)
    known = [_OF_THE_MACHINE] + ([re.compile(other.deprecation.warning)] if other and other.deprecation.warning else [])
    texts = [f"{category}: {text}" for category, text in use.warnings] + use.said.splitlines()
    left = [text for text in texts if not any(pattern.search(text) for pattern in known)]
    return f"in {release} the alternative itself warns: {left[0]}" if left else ""


def statement_of(deprecation: Deprecation, points: Sequence[str], release: str) -> Statement | None:
    """What the documentation of a release says according to the policy file; None if the file says nothing."""
    rank = points.index(release)
    return next((doc for doc in reversed(deprecation.docs) if points.index(doc.release) <= rank), None)


def _documentation(history: DeprecationHistory, release: str, observed: Observed, value: Seen) -> str:
    deprecation, docs = history.deprecation, observed.docs
    message = statement_of(deprecation, list(history.axis.points), release)
    words = {doc.holds for doc in deprecation.docs if doc.holds}
    if message is not None and message.holds is not None:
        if value.state in {State.ABSENT, State.REMOVED, State.CANNOT_TELL} and docs is None:
            return ""
        if not any(message.holds in sentence for sentence in docs or ()):
            return f"in {release} the documentation must contain {message.holds!r}, but it does not"
    else:
        early = sorted(word for word in words if any(word in sentence for sentence in docs or ()))
        if early:
            return f"in {release} the documentation already contains {early[0]!r}, but the file says that it does not"
    return ""


def _announcement(history: DeprecationHistory, release: str, observed: Observed, value: Seen) -> str:
    """Check that the file states everything that the documentation announces, and no more."""
    statement = statement_of(history.deprecation, list(history.axis.points), release)
    words = () if statement is None else tuple(filter(None, (statement.holds, *(statement.announces or ()))))
    for sentence in observed.docs or ():
        stated = [(item.start(), item.end()) for text in words for item in re.finditer(re.escape(text), sentence)]
        for match in _ANNOUNCES.finditer(sentence):
            if not any(start <= match.start() and match.end() <= end for start, end in stated):
                return f"in {release} the documentation announces {match[0]!r}, which the file does not state: {sentence!r}"
    if observed.docs is None and value.state in {State.ABSENT, State.REMOVED, State.CANNOT_TELL}:
        return ""
    for text in (statement.announces or ()) if statement is not None else ():
        if not any(text in sentence for sentence in observed.docs or ()):
            return f"in {release} the documentation must announce {text!r}, but it does not"
    return ""


def finding_of(name: str, breach: Breach) -> str:
    """The id of the finding for a breach of a deprecation's timeline, as used in waivers."""
    rule, subject = "deprecations-timeline", f"{name}/{breach.what}"
    if breach.kind == "too-long":
        rule, subject = "deprecations-overdue", name
    return f"{rule}:{breach.kind}:{slug(subject)}@{breach.release}"


@dataclass(frozen=True)
class TimelineRow:
    """One deprecation as of a day, combining policy and evidence.

    Attributes:
        snapshot: what the policy file says by then.
        verdict: that of the timeline, unless the evidence is missing or disagrees.
        why: why it cannot be determined.
        states: the states of all observed releases.
        fits: whether the observations agree with the file.
    """

    history: DeprecationHistory
    snapshot: Snapshot
    verdict: TimelineState
    why: tuple[str, ...]
    states: dict[str, Seen]
    fits: bool


def rows(evidence: Evidence, as_of: dt.date, policy: Policy | None = None) -> tuple[TimelineRow, ...]:
    """Every deprecation as of a day, by id."""
    return tuple(_row(evidence, history, as_of) for history in histories(policy or evidence.policy))


def _row(evidence: Evidence, history: DeprecationHistory, as_of: dt.date) -> TimelineRow:
    snapshot = history.at(as_of)
    states = seen(evidence, history.deprecation)
    wrong = list(dict.fromkeys(mismatch.text for mismatch in mismatches(evidence, history, states) if mismatch.what == "state"))
    why = list(wrong)
    if not states:
        why.append("no release was checked")
    excused = set(_excused(evidence, history.deprecation))
    why += [
        f"{release}: {state.why}"
        for release, state in states.items()
        if state.state is State.CANNOT_TELL and release not in excused
    ]
    verdict = TimelineState.CANNOT_TELL if why and snapshot.happened else snapshot.verdict
    return TimelineRow(history, snapshot, verdict, tuple(why), states, not why)


def _excused(evidence: Evidence, deprecation: Deprecation) -> Iterable[str]:
    """Releases whose probe is inconclusive according to the file."""
    for span in deprecation.unclear:
        yield from (release.version for release in evidence.policy.calendar if release.parsed in span.readers)
