"""What begins with a release apart from archives: operators, formats, deprecations, and changes stated in the policy.

These records date each beginning independently of the queried release. So each function yields everything; the report keeps what may have
begun between its two releases.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from torch_compat.judging.operator_changes import changed_by, dropped_by, misstated_by, operator_changes
from torch_compat.judging.timelines import State, seen
from torch_compat.policy.timeline import histories
from torch_compat.releases.release import Release
from torch_compat.report.release.items import FactRecord, Section, Span
from torch_compat.words import count_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from torch_compat.judging.evidence import Evidence
    from torch_compat.judging.judge import Report
    from torch_compat.judging.operator_changes import Pair
    from torch_compat.operators.breaks import Break
    from torch_compat.policy.operator_waivers import Changed, OperatorWaiver
    from torch_compat.policy.timeline import DeprecationHistory, Happened

__all__ = ["change_parts", "deprecation_parts", "format_parts", "operator_parts"]

ENDS: Final = frozenset({"error", "removed", "switched"})
"""The events that end a deprecation. Other evidence for the same end is linked to them."""
DONE: Final = {
    "alternative": "there is an alternative",
    "warned": "deprecated, and warns",
    "withdrawn": "no longer deprecated",
    "error": "raises an error",
    "removed": "removed",
    "switched": "behaves in the new way",
    "restored": "restored",
}
CHANGES: Final = {"refused": Section.REFUSED, "accepted": Section.ACCEPTED}


def _before(evidence: Evidence, release: str) -> str:
    """The calendar release before another; "" for the first."""
    older = [item.version for item in evidence.policy.calendar if Release(item.version) < Release(release)]
    return older[-1] if older else ""


# -------------------------------------------------------------------------------------------------------------- operators


def operator_parts(evidence: Evidence, report: Report) -> Iterator[FactRecord]:
    """Operators that programs call and that no longer accept these calls, by waiver; without a waiver, by operator."""
    changes, recorded = evidence.derived(operator_changes), evidence.operators
    if changes is None or recorded is None:
        return
    ids = {
        finding.id: finding for finding in report.findings if finding.rule in {"schema-breaks-upgraded", "upgraders-old-schemas"}
    }
    groups: defaultdict[tuple[str, Span], list[tuple[str, str]]] = defaultdict(list)
    waivers: dict[str, OperatorWaiver] = {}

    def note(changed: Changed, after: str, text: str) -> None:
        covering = changes.applied.by.get(changed, ())
        name = f"waiver:{covering[0].id}" if covering else f"operator:{changed.operator.partition('.')[0]}"
        if covering:
            waivers[name] = covering[0]
        groups[name, Span(after, changed.since)].append((changed.operator, text))

    for pair in changes.pairs:
        for item in pair.broken:
            if not item.known or item.upgrader is not None:
                continue
            note(changed_by(item, pair.newer), _had(evidence, pair, item), f"{item.operator}: {item.reason}")
    recorded_releases = recorded.versions.releases
    for newer, entry in changes.dropped:
        text = f"{entry.operator}: the upgrader {entry.upgrader} for file format {entry.bump} was removed"
        note(dropped_by(newer, entry), recorded_releases[recorded_releases.index(newer) - 1], text)
    for wrong in changes.upgraders:
        if wrong.known and not wrong.same:
            at = recorded_releases.index(wrong.first)
            text = (
                f"{wrong.entry.operator}: the upgrader {wrong.entry.upgrader} declares a schema that {wrong.before} does not have"
            )
            note(misstated_by(wrong), recorded_releases[at - 1] if at else "", text)
    for (name, span), group in groups.items():
        waiver = waivers.get(name)
        operators = tuple(sorted({operator for operator, _ in group}))
        bases = {operator.partition(".")[0] for operator in operators}
        mine = [
            identifier
            for identifier in ids.values()
            if identifier.first_reader == span.by and identifier.reproduce.rpartition(" ")[2] in bases
        ]
        mine = [identifier for identifier in mine if waiver is None or identifier.waiver == waiver.id]
        yield FactRecord(
            names=(name,),
            section=Section.OPERATORS,
            rank=1,
            title=waiver.title if waiver else group[0][1],
            source="operators",
            span=span,
            says=f"{count_of(len(operators), 'operator')} changed between {span.after} and {span.by}",
            operators=operators,
            why=" ".join(waiver.reason.split()) if waiver else "",
            findings=tuple(sorted(identifier.id for identifier in mine)),
            open=waiver is None and any(str(identifier.verdict) == "fail" for identifier in mine),
            details=tuple(text for _, text in group),
        )


def _had(evidence: Evidence, pair: Pair, item: Break) -> str:
    """The newest recorded release before the newer one of a pair that has the old schema."""
    assert evidence.operators is not None  # noqa: S101 - checked before
    schemas = evidence.operators.schemas
    older = schemas.releases[: schemas.releases.index(pair.newer)]
    return next((release for release in reversed(older) if item.old in schemas.schemas(item.operator, release)), pair.older)


# ---------------------------------------------------------------------------------------------------------------- formats


def format_parts(evidence: Evidence) -> Iterator[FactRecord]:
    """Format versions that a release is the first to write, the first to read, or the first to stop reading."""
    calendar = [item.version for item in evidence.policy.calendar]
    for form in evidence.policy.formats:
        messages: defaultdict[str, list[str]] = defaultdict(list)
        if form.written_from is not None:
            messages[form.written_from.release].append("first written")
        messages[form.read_from.release].append("first read")
        if form.read_until is not None:
            later = [version for version in calendar if Release(version) > Release(form.read_until.release)]
            if later:
                messages[later[0]].append("no longer read")
        for release, words in messages.items():
            gone = "no longer read" in words
            yield FactRecord(
                names=(f"format:{form.label}@{release}", *(f"waiver:{name}" for name in (form.waivers if gone else ()))),
                section=Section.REFUSED if gone else Section.FORMATS,
                rank=2,
                title=f"{form.label} is {' and '.join(words)}: {form.meaning}",
                source="formats",
                span=Span(_before(evidence, release), release),
                says=f"{form.label} is {' and '.join(words)} by {release}",
                operators=tuple(form.operators or ()),
            )


# ----------------------------------------------------------------------------------------------------------- deprecations


def deprecation_parts(evidence: Evidence) -> Iterator[FactRecord]:
    """Every event of every deprecation: according to its file, and to the observed behavior of releases."""
    for history in histories(evidence.policy):
        states = {release: item.state for release, item in seen(evidence, history.deprecation).items()}
        for occurrence in history.happened:
            if not occurrence.point.planned:
                yield _event(evidence, history, occurrence, states)
        due = history.snapshots[-1].due
        late = [breach for breach in history.snapshots[-1].breaches if breach.kind == "too-long"]
        if due is not None and not due.planned and late:
            yield FactRecord(
                names=(f"deprecation:{history.deprecation.id}/due",),
                section=Section.DEPRECATIONS,
                rank=2,
                title=f"{history.deprecation.subject}: overdue; its removal was announced for {due.release}",
                source="deprecations",
                span=Span(_before(evidence, due.release), due.release),
                says=late[0].text,
                advice=_instead(history),
            )


def _event(evidence: Evidence, history: DeprecationHistory, occurrence: Happened, states: Mapping[str, State]) -> FactRecord:
    deprecation, what, release = history.deprecation, occurrence.event.what, occurrence.point.release
    late = [breach.text + ("" if breach.promised else " (before the policy was in force)") for breach in occurrence.breaches]
    kept = "as the timeline allows" if occurrence.earliest is not None and not occurrence.breaches else ""
    first = next((other.event for other in history.happened if other.event.what in ENDS), None)
    linked = (f"waiver:{name}" for name in deprecation.waivers) if occurrence.event is first else ()
    return FactRecord(
        names=(f"deprecation:{deprecation.id}/{what}@{release}", f"deprecation:{deprecation.id}@{release}", *linked),
        section=Section.DEPRECATIONS,
        rank=3 if what == "alternative" else 2,
        title=f"{deprecation.subject}: {DONE[what]}",
        source="deprecations",
        span=_observed(evidence, states, release),
        says="; ".join(filter(None, (f"{deprecation.subject}: {DONE[what]} in {release}", kept, *late))),
        advice=_instead(history),
    )


def _instead(history: DeprecationHistory) -> str:
    return f"use {history.deprecation.alternative}" if history.deprecation.alternative else ""


def _observed(evidence: Evidence, states: Mapping[str, State], release: str) -> Span:
    """The releases between which an event happened that the file dates with a release.

    The file names the first release known to have it. If that release was tested, and behaves differently from the previously tested
    release, the releases in between are unknown.
    """
    older = [item for item, state in states.items() if state is not State.CANNOT_TELL and Release(item) < Release(release)]
    if release in states and older and states[older[-1]] is not states[release]:
        return Span(older[-1], release)
    return Span(_before(evidence, release), release)


# ---------------------------------------------------------------------------------------------------------------- changes


def change_parts(evidence: Evidence) -> Iterator[FactRecord]:
    """Operators whose results changed, as stated in the policy."""
    for change in evidence.policy.changes:
        yield FactRecord(
            names=(
                f"change:{change.id}",
                *(f"waiver:{name}" for name in change.waivers),
                *(f"deprecation:{name}@{change.since}" for name in change.deprecations),
            ),
            section=CHANGES.get(change.kind, Section.SILENT),
            rank=2,
            title=f"{', '.join(change.operators)}: {change.after}",
            source="changes",
            span=Span(_before(evidence, change.since), change.since),
            says=f"before: {change.before}; since {change.since}: {change.after}",
            operators=tuple(change.operators),
            announced=f"file format {change.file_format}" if change.file_format else "",
            details=(f"seen by: {change.evidence}",),
        )
