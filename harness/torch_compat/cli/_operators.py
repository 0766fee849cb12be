"""Changes and histories of operators, as text and as rows of JSON. Imports nothing that is slow."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from torch_compat.errors import UsageError
from torch_compat.operators.history import FactHistory, History, SetHistory
from torch_compat.releases.data import packaged

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from torch_compat.operators.changes import SchemaChange
    from torch_compat.operators.compatibility import CompatibilityResult

__all__ = ["change_lines", "change_row", "history_lines", "history_of", "release_of"]

MARKS = {"added": "+", "removed": "-", "changed": "~", "unknown": "?"}
TAG = "tags:"
NOTHING = "-"
LABEL = 12
SECTIONS = ("schemas", "upgraders", "kernels", "declared", "tags", "incomplete")


def release_of(history: History, name: str) -> str:
    """The recorded release that a name means: ``1.5.1``, ``torch-1.5.1``, ``1.5.1+cpu``, or ``1.5`` for its newest recorded patch.

    Raises:
        UsageError: none is recorded under that name; names the nearest ones.
    """
    found = history.known.find(name)
    if found is None:
        near = history.known.near(name)
        hint = f"nearest: {', '.join(near)}; {len(history.known)} releases are recorded" if near else None
        raise UsageError(
            f"the operators of {name!r} are not recorded",
            hint=hint or f"recorded releases: {', '.join(history.releases)}",
            code="unknown-release",
        )
    return found


# --------------------------------------------------------------------------------------------------------------- changes


def change_row(change: SchemaChange) -> dict[str, Any]:
    """A change for JSON: a verdict is true, false, or null where nothing is asked or known."""
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


# --------------------------------------------------------------------------------------------------------------- history


def history_of(operator: str) -> dict[str, Any]:
    """Everything that is recorded of an operator, or of all its overloads.

    Raises:
        UsageError: no release has it; names the nearest ones.
    """
    history = History.load()
    rows = history.with_bits(operator)
    if not rows:
        raise _unknown(history, operator)
    schemas = [
        {
            "operator": text.partition("(")[0],
            "schema": text,
            "spans": history.known.text(bits),
            "first": history.of(bits)[0],
            "last": history.of(bits)[-1],
        }
        for text, bits in rows
    ]
    names = sorted({row["operator"] for row in schemas})
    versions, kernels, functions = (
        kind(packaged("fixtures", "operators", f"{name}.txt"))
        for kind, name in ((FactHistory, "operator_versions"), (SetHistory, "kernels"), (SetHistory, "native_functions"))
    )
    assert isinstance(versions, FactHistory)  # noqa: S101 - by construction
    upgraders = [
        {"operator": name, "file_format": bump, "upgrader": upgrader, "old": old, "spans": versions.known.text(bits)}
        for name in names
        for value, bits in versions.values(name).items()
        for bump, upgrader, old in _entries(value)
    ]
    declared = _sets(functions, names)
    sources: tuple[tuple[str, Any], ...] = (
        ("schemas", history), ("upgraders", versions), ("kernels", kernels), ("native_functions", functions),
    )  # fmt: skip
    return {
        "operator": operator,
        "schemas": schemas,
        "upgraders": upgraders,
        "kernels": [{"operator": name, "key": word, "spans": spans} for name, word, spans in _sets(kernels, names)],
        "declared": [
            {"operator": name, "key": word, "spans": spans} for name, word, spans in declared if not word.startswith(TAG)
        ],
        "tags": [
            {"operator": name, "tag": word.removeprefix(TAG), "spans": spans}
            for name, word, spans in declared
            if word.startswith(TAG)
        ],
        "incomplete": [
            {"what": what, "spans": source.known.text(bits), "why": why}
            for what, source in sources
            for bits, why in source.incomplete
        ],
    }


def _entries(value: str) -> Iterable[tuple[int, str, str]]:
    from json import loads  # noqa: PLC0415 - most operators have none

    return [tuple(entry) for entry in loads(value)]


def _sets(history: Any, names: list[str]) -> list[tuple[str, str, str]]:
    """Operator, word and releases, by the releases."""
    found = [(bits & -bits, name, word, bits) for name in names for word, bits in history.words(name).items() if word != NOTHING]
    return [(name, word, history.known.text(bits)) for _, name, word, bits in sorted(found)]


def _unknown(history: History, operator: str) -> UsageError:
    """The error for an operator that no release has."""
    base, _, overload = operator.partition(".")
    message = f"no recorded release has an operator {operator!r}"
    overloads = sorted({text.partition("(")[0] for text, _ in history.with_bits(base)}) if overload else []
    if overloads:
        near = get_close_matches(operator, overloads, n=6, cutoff=0.0)
        return UsageError(message, hint=f"its overloads: {', '.join(near)}", code="unknown-operator")
    names = {text.partition("(")[0].partition(".")[0] for text, _, _ in history.facts()}
    full = base if "::" in base else f"aten::{base}"
    near = [full] if full in names else get_close_matches(full, names, n=3, cutoff=0.6) if base else []
    hint = f"nearest: {', '.join(near)}" if near else "write the name as aten::div or aten::div.Tensor"
    return UsageError(message, hint=hint, code="unknown-operator")


def history_lines(document: dict[str, Any]) -> Iterator[str]:
    """What :func:`history_of` gives, for people."""
    rows = document["schemas"]
    width = max(len(row["spans"]) for part in SECTIONS for row in document[part])
    yield document["operator"]
    for row in rows:
        yield f"  {row['spans']:<{width}}  {row['schema']}"
    if document["upgraders"]:
        yield "upgraders"
        for row in document["upgraders"]:
            yield f"  {row['spans']:<{width}}  file format {row['file_format']}: {row['upgrader']}, from {row['old']}"
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
