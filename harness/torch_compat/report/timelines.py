"""Deprecations as of a given day, as JSON and as text; and what falls due, by date."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final

from rich.text import Text

from torch_compat.judging.judgement import Verdict
from torch_compat.judging.timelines import finding_of
from torch_compat.policy.timeline import TimelineState
from torch_compat.report.paragraphs import paragraph
from torch_compat.report.to_text import MEANING
from torch_compat.words import american, count_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import Console

    from torch_compat.judging.findings import Finding
    from torch_compat.judging.judge import Report
    from torch_compat.judging.timelines import TimelineRow
    from torch_compat.policy import Waiver
    from torch_compat.policy.timeline import Breach, Earliest, Happened, Next

__all__ = ["deprecation_json", "due_json", "earliest_text", "print_deprecations", "row_json", "step_text"]

STYLES: Final = {
    TimelineState.BROKEN: "bold red",
    TimelineState.CANNOT_TELL: "bold yellow",
    TimelineState.KEPT: "green",
    TimelineState.NO_PROMISE: "dim",
}
TITLES: Final = {
    TimelineState.BROKEN: "Broken timelines",
    TimelineState.CANNOT_TELL: "Timelines that cannot be checked",
    TimelineState.KEPT: "Timelines kept so far",
    TimelineState.NO_PROMISE: "No promise: ended before the policy was in force, or not started",
}
_VERBS: Final = {
    "alternative": "get an alternative",
    "warned": "warn",
    "withdrawn": "have its deprecation withdrawn",
    "error": "raise an error",
    "removed": "be removed",
    "switched": "switch to the new behavior",
    "restored": "be restored",
}


def deprecation_json(rows: Sequence[TimelineRow], report: Report, due: Sequence[dict[str, Any]], profile: str) -> dict[str, Any]:
    """The document that ``torch-compat deprecations --format json`` prints."""
    return {
        "as_of": report.as_of,
        "evidence": report.evidence,
        "exit_status": report.exit_status,
        "profile": profile,
        "deprecations": [row_json(row) for row in rows],
        "due": list(due),
        "findings": [
            {
                "id": finding.id,
                "verdict": str(finding.verdict),
                "count": finding.count,
                "cause": finding.cause,
                "waiver": finding.waiver or None,
            }
            for finding in report.findings
        ],
        "not_checked": [{"what": what, "reason": why, "count": count} for what, why, count in report.not_checked],
    }


def row_json(row: TimelineRow) -> dict[str, Any]:
    """One deprecation."""
    deprecation, snapshot = row.history.deprecation, row.snapshot
    return {
        "id": deprecation.id,
        "subject": deprecation.subject,
        "kind": deprecation.kind,
        "silent": deprecation.silent,
        "alternative": deprecation.alternative,
        "state": snapshot.state,
        "verdict": str(row.verdict),
        "why": list(row.why),
        "events": _events_json(row),
        "documented": [
            {"release": doc.release, "holds": doc.holds}
            for doc in deprecation.docs
            if row.history.axis[doc.release].day <= snapshot.day
        ],
        "breaches": [_breach_json(breach) for breach in snapshot.breaches],
        "next": _next_json(snapshot.next),
        "due": None if snapshot.due is None else {"release": snapshot.due.release, "day": snapshot.due.day.isoformat()},
        "overdue": snapshot.overdue,
        "states": {release: str(seen.state) for release, seen in row.states.items()},
    }


def _events_json(row: TimelineRow) -> list[dict[str, Any]]:
    """The past and the planned events, oldest release first; a mention in the documentation is also an event."""
    snapshot, axis = row.snapshot, row.history.axis
    order = list(axis.points)
    results = [
        (order.index(occurrence.event.release), 0, _event_json(occurrence))
        for occurrence in (*snapshot.happened, *snapshot.planned)
    ]
    for doc in row.history.deprecation.docs:
        point = axis[doc.release]
        if doc.holds is not None and (point.planned or point.day <= snapshot.day):
            messages: dict[str, Any] = {
                "day": point.day.isoformat(),
                "nightly": None,
                "planned": point.planned,
                "earliest": None,
                "breaches": [],
            }
            results.append((order.index(doc.release), 1, {"what": "documented", "release": doc.release, **messages}))
    return [event for _, _, event in sorted(results, key=lambda item: item[:2])]


def _event_json(occurrence: Happened) -> dict[str, Any]:
    return {
        "what": occurrence.event.what,
        "release": occurrence.event.release,
        "day": occurrence.point.day.isoformat(),
        "nightly": occurrence.event.nightly.isoformat() if occurrence.event.nightly else None,
        "planned": occurrence.point.planned,
        "earliest": _earliest_json(occurrence.earliest) if occurrence.earliest else None,
        "breaches": [_breach_json(breach) for breach in occurrence.breaches],
    }


def _breach_json(breach: Breach) -> dict[str, Any]:
    return {
        "kind": breach.kind,
        "what": breach.what,
        "release": breach.release,
        "day": breach.day.isoformat(),
        "releases": breach.releases,
        "days": breach.days,
        "promised": breach.promised,
        "text": breach.text,
    }


def _earliest_json(bound: Earliest) -> dict[str, Any]:
    return {
        "release": bound.release or None,
        "day": bound.day.isoformat() if bound.day else None,
        "line": bound.line or None,
        "not_before": bound.not_before.isoformat(),
        "nightly": bound.nightly.isoformat() if bound.nightly else None,
        "planned": bound.planned,
        "undated": list(bound.undated),
        "missing": bound.missing,
    }


def _next_json(following: Next | None) -> dict[str, Any] | None:
    if following is None:
        return None
    return {"what": list(following.what), "after": following.after, **_earliest_json(following.earliest)}


def step_text(what: Iterable[str]) -> str:
    """The steps of a timeline as verbs: ``be removed or raise an error``."""
    return " or ".join(_VERBS[item] for item in what)


def earliest_text(bound: Earliest) -> str:
    """The earliest date for something, in words; states if the calendar ends before."""
    nightly = f"; on nightlies from {bound.nightly}" if bound.nightly else ""
    if not bound.release:
        lacks = count_of(bound.missing, "more release")
        return f"not before {bound.not_before}; the release is unknown, because the calendar does not have {lacks}{nightly}"
    planned = ", planned" if bound.planned else ""
    text = f"from {bound.release} ({bound.day}{planned})"
    if bound.undated:
        lines = bound.undated[0] if len(bound.undated) == 1 else f"one of {bound.undated[0]} to {bound.undated[-1]}"
        text += f", or {lines} if released on or after {bound.not_before} (dates not known yet)"
    return text + nightly


# ------------------------------------------------------------------------------------------------------- what falls due


def due_json(rows: Iterable[TimelineRow], waivers: Iterable[Waiver], as_of: dt.date, days: int | None) -> list[dict[str, Any]]:
    """What falls due after a day, by date; limited to a number of days if given."""
    end = as_of + dt.timedelta(days=days) if days is not None else dt.date.max
    results = [item for row in rows for item in _due(row)]
    results += [(waiver.expires, waiver.id, "waiver expires", "") for waiver in waivers if waiver.expires is not None]
    return [
        {"day": day.isoformat(), "id": name, "what": what, "release": release or None}
        for day, name, what, release in sorted(results)
        if as_of < day <= end
    ]


def _due(row: TimelineRow) -> Iterator[tuple[dt.date, str, str, str]]:
    name, snapshot = row.history.deprecation.id, row.snapshot
    following = snapshot.next
    if following is not None:
        what = step_text(following.what)
        if following.earliest.day is not None:
            yield following.earliest.day, name, f"may {what}", following.earliest.release
        if following.earliest.nightly is not None:
            yield following.earliest.nightly, name, f"may {what} on nightlies", ""
    if snapshot.due is not None and not any(breach.kind == "too-long" for breach in snapshot.breaches):
        yield snapshot.due.day, name, "must be removed, as announced", snapshot.due.release
    for occurrence in row.history.happened:
        if occurrence.point.day > snapshot.day or occurrence.point.planned:
            yield occurrence.point.day, name, f"is planned to {step_text([occurrence.event.what])}", occurrence.point.release


# --------------------------------------------------------------------------------------------------------- for a person


def print_deprecations(
    rows: Sequence[TimelineRow],
    report: Report,
    due: Sequence[dict[str, Any]],
    console: Console,
    *,
    full: bool,
    days: int | None = None,
) -> None:
    """Print deprecations: violated ones with all violations, the others in one line each; what falls due; what is waived.

    Parameters:
        days: if given, print only what falls due within these days, and violations that are not waived.
    """
    waived = {finding.id for finding in report.findings if finding.waiver}
    shown = rows if days is None else [row for row in rows if row.verdict is TimelineState.BROKEN and not _is_waived(row, waived)]
    for verdict in (TimelineState.BROKEN, TimelineState.CANNOT_TELL, TimelineState.KEPT, TimelineState.NO_PROMISE):
        chosen = [row for row in shown if row.verdict is verdict]
        if not chosen:
            continue
        console.print(Text(f"{TITLES[verdict]}: {len(chosen)}", style=STYLES[verdict]))
        for row in chosen:
            _print_row(row, console, waived, full=full)
        console.print()
    if due:
        title = "Due next" if days is None else f"Due within {count_of(days, 'day')} of {report.as_of}"
        console.print(Text(title, style="bold"))
        for item in due:
            where = f" in {item['release']}" if item["release"] else ""
            paragraph(console, f"  {item['day']}  {item['id']}: {item['what']}{where}")
        console.print()
    elif days is not None:
        paragraph(console, f"Nothing falls due within {count_of(days, 'day')} of {report.as_of}")
        console.print()
    others = [
        finding
        for finding in report.findings
        if finding.rule not in {"deprecations-timeline", "deprecations-overdue"} and (days is None or _fails(finding))
    ]
    if others:
        console.print(Text("Other findings", style="bold"))
        for other in others:
            note = f" (waived: {other.waiver})" if other.waiver else ""
            paragraph(console, f"  {other.count} × {other.cause}{note}")
        console.print()
    for what, why, count in report.not_checked:
        paragraph(console, f"could not be checked: {count} × {why}  [{what}]", "yellow")
    counts = {verdict: sum(row.verdict is verdict for row in rows) for verdict in TimelineState}
    accepted = sum(row.verdict is TimelineState.BROKEN and _is_waived(row, waived) for row in rows)
    notes = {TimelineState.BROKEN: f" ({accepted} waived)" if accepted else ""}
    totals = ", ".join(f"{count} {verdict}{notes.get(verdict, '')}" for verdict, count in counts.items() if count)
    console.print(Text(f"{count_of(len(rows), 'deprecation')}: {totals}; as of {report.as_of}; evidence {report.evidence[:12]}"))
    meaning, style = MEANING[report.exit_status]
    console.print(Text(f"exit status {report.exit_status}: {meaning}", style=style))


def _is_waived(row: TimelineRow, waived: set[str]) -> bool:
    """Whether a waiver covers every promise that a deprecation breaks."""
    return all(finding_of(row.history.deprecation.id, breach) in waived for breach in row.snapshot.breaches if breach.promised)


def _fails(finding: Finding) -> bool:
    return finding.verdict is Verdict.FAIL


def _print_row(row: TimelineRow, console: Console, waived: set[str], *, full: bool) -> None:
    deprecation, snapshot = row.history.deprecation, row.snapshot
    head = f"  {deprecation.id}: {deprecation.subject} ({american(deprecation.kind)}{', silent' if deprecation.silent else ''}): {snapshot.state}"
    newest = snapshot.happened[-1] if snapshot.happened else None
    if newest is not None:
        head += f" in {newest.point.release}"
    if snapshot.overdue and snapshot.due is not None:
        head += f", overdue since {snapshot.due.day}"
    if snapshot.next is not None and snapshot.next.releases:
        head += f"; may {step_text(snapshot.next.what)} {earliest_text(snapshot.next.earliest)}"
    paragraph(console, head)
    if full:
        for occurrence in (*snapshot.happened, *snapshot.planned):
            nightly = f", nightly of {occurrence.event.nightly}" if occurrence.event.nightly else ""
            note = " (planned)" if occurrence.point.planned else ""
            paragraph(
                console, f"    {occurrence.point.day}  {occurrence.event.what} in {occurrence.point.release}{nightly}{note}"
            )
    for breach in snapshot.breaches:
        if breach.promised or full:
            known = finding_of(deprecation.id, breach) in waived
            note = " (waived)" if known else "" if breach.promised else " (no promise: before the policy was in force)"
            paragraph(console, f"    {breach.text}{note}")
    for why in row.why:
        paragraph(console, f"    {why}")
