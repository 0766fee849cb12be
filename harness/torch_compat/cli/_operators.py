"""Changes and histories of operators, as text and as JSON rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from torch_compat.operators.changes import SchemaChange
    from torch_compat.operators.compatibility import CompatibilityResult

__all__ = ["change_lines", "change_row", "history_lines"]

MARKS = {"added": "+", "removed": "-", "changed": "~", "unknown": "?"}
LABEL = 12
SECTIONS = ("schemas", "upgraders", "kernels", "declared", "tags", "incomplete")


def change_row(change: SchemaChange) -> dict[str, Any]:
    """A change for JSON: a verdict is true, false, or null if it does not apply or is unknown."""
    reasons = [
        f"{side}: {verdict.reason}"
        for side, verdict in (("backward", change.backward), ("forward", change.forward))
        if verdict is not None and verdict.reason
    ]
    blind = [note for verdict in (change.backward, change.forward) if verdict is not None for note in verdict.blind]
    return {
        "operator": change.operator,
        "kind": change.kind,
        "old": change.old,
        "new": change.new,
        "backward": change.backward.compatible if change.backward is not None else None,
        "forward": change.forward.compatible if change.forward is not None else None,
        "reason": "; ".join(reasons) or change.why,
        "by": change.by,
        "blind": list(dict.fromkeys(blind)),
    }


def change_lines(change: SchemaChange) -> Iterator[str]:
    """A change in a few lines."""
    yield f"{MARKS[change.kind]} {change.operator}"
    for label, schema in (("old", change.old), ("new", change.new)):
        if schema is not None:
            yield f"    {label:<{LABEL}}{schema}"
    if change.why is not None:
        yield f"    {'unknown':<{LABEL}}{change.why}"
    for side, verdict in (("backward", change.backward), ("forward", change.forward)):
        if verdict is not None and change.kind != "unknown":
            yield f"    {side:<{LABEL}}{_said(verdict)}"
    if change.by is not None and change.by != change.new:
        yield f"    {'accepted by':<{LABEL}}{change.by}"


def _said(verdict: CompatibilityResult) -> str:
    blind = f" (not checked: {'; '.join(verdict.blind)})" if verdict.blind else ""
    return ("compatible" if verdict.compatible else f"breaks: {verdict.reason}") + blind


def _reference_lines(rows: Iterable[dict[str, Any]], width: int) -> Iterator[str]:
    """The implementations of the reference reader, as text."""
    for row in rows:
        yield f"reference reader: {row['operator']}, first argument {row['first_argument']}"
        for version in row["versions"]:
            place = f"{version['file']}:{version['line']}"
            yield f"  {version['since'] + '..':<{width}}  {place}{': ' if version['summary'] else ''}{version['summary'] or ''}"
        for call in row["not_modelled"]:
            yield f"  {call['spans']:<{width}}  not modeled: {call['reason']}"


def history_lines(document: dict[str, Any]) -> Iterator[str]:
    """The recorded data about an operator, as text."""
    rows = document["schemas"]
    width = max(len(row["spans"]) for part in SECTIONS for row in document[part])
    yield document["operator"]
    for row in rows:
        yield f"  {row['spans']:<{width}}  {row['schema']}"
    if document["upgraders"]:
        yield "upgraders"
        for row in document["upgraders"]:
            yield f"  {row['spans']:<{width}}  file format {row['file_format']}: {row['upgrader']}, from {row['old']}"
    if document["changes"]:
        yield "semantic changes"
        for row in document["changes"]:
            announced = f" (marked by file format {row['file_format']})" if row["file_format"] is not None else ""
            yield f"  {row['since'] + '..':<{width}}  {row['id']}: {row['after']}{announced}"
            yield f"  {'':<{width}}    before: {row['before']}"
    yield from _reference_lines(document.get("reference", ()), width)
    for title, key, word in (("kernels", "kernels", "key"), ("declared", "declared", "key"), ("tags", "tags", "tag")):
        grouped: dict[tuple[str, str], list[str]] = {}
        for row in document[key]:
            grouped.setdefault((row["operator"], row["spans"]), []).append(row[word])
        if grouped:
            yield f"{title}{' (native_functions.yaml)' if key != 'kernels' else ''}"
        before = ""
        for (name, spans), words in sorted(grouped.items(), key=lambda item: item[0][0]):
            if name != before and len({name for name, _ in grouped}) > 1:
                yield f"  {name}"
            before = name
            yield f"  {spans:<{width}}  {' '.join(words)}"
    yield "incomplete records"
    for row in document["incomplete"]:
        yield f"  {row['spans']:<{width}}  {row['what']}: {row['why'].partition(';')[0].partition('. ')[0]}"
