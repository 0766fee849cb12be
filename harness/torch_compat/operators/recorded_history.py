"""All recorded data about one operator: its schemas, upgraders, changes, kernels and tags, each with its releases."""

from __future__ import annotations

from json import loads
from typing import TYPE_CHECKING, Any, Final

from torch_compat.errors import UsageError
from torch_compat.operators.call_signature import bare
from torch_compat.operators.changes_of_meaning import changes_by_operator
from torch_compat.operators.history import FactHistory, History, SetHistory
from torch_compat.releases.data import packaged
from torch_compat.releases.release import Release
from torch_compat.words import did_you_mean, similar_names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch_compat.operators.changes_of_meaning import RecordedChange

__all__ = ["history_of", "release_of"]

TAG: Final = "tags:"
NOTHING: Final = "-"


def release_of(history: History, name: str) -> str:
    """The recorded release for a name: ``1.5.1``, ``torch-1.5.1``, ``1.5.1+cpu``, or ``1.5`` for its newest recorded patch.

    Raises:
        UsageError: there is none with that name; the error names the nearest ones.
    """
    result = history.known.find(name)
    if result is None:
        raise UsageError(
            f"the operators of {name!r} are not recorded",
            hint=did_you_mean(history.known.near(name)) or f"recorded releases: {', '.join(history.releases)}",
            code="unknown-release",
        )
    return result


def history_of(operator: str) -> dict[str, Any]:
    """All recorded data about an operator, or about all its overloads.

    Raises:
        UsageError: no release has it; the error names the nearest ones.
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
        "changes": [change._asdict() for change in _changes(operator)],
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


def _changes(operator: str) -> list[RecordedChange]:
    """The changes in what an operator computes, for any overload, from the oldest to the newest."""
    result = changes_by_operator().get(bare(operator.partition(".")[0]), ())
    return sorted(result, key=lambda change: Release(change.since).key)


def _entries(value: str) -> Iterable[tuple[int, str, str]]:
    return [tuple(entry) for entry in loads(value)]


def _sets(history: Any, names: list[str]) -> list[tuple[str, str, str]]:
    """Operator, word and releases, sorted by release."""
    results = [
        (bits & -bits, name, word, bits) for name in names for word, bits in history.words(name).items() if word != NOTHING
    ]
    return [(name, word, history.known.text(bits)) for _, name, word, bits in sorted(results)]


def _unknown(history: History, operator: str) -> UsageError:
    """The error for an operator that no release has."""
    base, _, overload = operator.partition(".")
    message = f"no recorded release has an operator {operator!r}"
    overloads = sorted({text.partition("(")[0] for text, _ in history.with_bits(base)}) if overload else []
    if overloads:
        near = similar_names(operator, overloads, most=6, cutoff=0.0)
        return UsageError(message, hint=f"its overloads: {', '.join(near)}", code="unknown-operator")
    names = {text.partition("(")[0].partition(".")[0] for text, _, _ in history.facts()}
    full = base if "::" in base else f"aten::{base}"
    near = [full] if full in names else similar_names(full, sorted(names)) if base else []
    hint = did_you_mean(near) or "use a name such as aten::div or aten::div.Tensor"
    return UsageError(message, hint=hint, code="unknown-operator")
