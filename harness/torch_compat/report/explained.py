"""Explanations of rules, waivers, deprecations and everything else with an id, and where they are defined."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch_compat.errors import NothingSelected, UsageError
from torch_compat.judging.judgement import missing_rule
from torch_compat.operators.differences import in_words
from torch_compat.places import MOST_OF_A_PROGRAM, inside, read_whole
from torch_compat.policy.timeline import histories
from torch_compat.report.timelines import earliest_text, step_text
from torch_compat.words import american, count_of, suggest
from torch_compat.workspace import find_policy, find_root

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from torch_compat.policy import Policy
    from torch_compat.policy.operator_waivers import OperatorWaiver
    from torch_compat.policy.table_base import Table
    from torch_compat.policy.timeline import DeprecationHistory

__all__ = ["Explained", "explained"]

HEADINGS = ("What", "Why", "Example", "Reference")


@dataclass(frozen=True)
class Explained:
    """An object with an id.

    Attributes:
        says: all statements about it, by name, in order.
    """

    kind: str
    id: str
    says: dict[str, Any]


def explained(root: Path | None, name: str) -> list[Explained]:
    """The statements of a policy about an id, a finding, an operator or a function; each with the file that contains it.

    Parameters:
        root: the root of the tree; None for the nearest tree, or else the package's own policy.

    Raises:
        UsageError: nothing has this id; the error names the nearest ones.
    """
    policy = find_policy(root)
    known = list(_everything(policy))
    results = [entry for entry in known if entry.id in {name, american(name)}]
    if not results and ":" in name:  # a finding: explain its rule and its waivers
        rule = name.partition(":")[0]
        results = [entry for entry in known if (entry.kind, entry.id) == ("rule", rule)]
        results += [entry for entry in known if entry.kind == "waiver" and _is_for(entry, name)]
    if not results:
        results = list(_about(policy, known, name))
    if not results:
        ids = sorted({entry.id for entry in known})
        candidates = sorted(_operators(policy)) if "::" in name else ids
        hint = suggest(name, candidates, f"the policy has {count_of(len(ids), 'ID')}; see policies/", cutoff=0.5)
        raise UsageError(f"there is no entry with the ID {name!r}", hint=hint, code="unknown-id")
    for item in results:
        item.says.setdefault("file", _file(root, item))
    return results


def _about(policy: Policy, known: list[Explained], name: str) -> Iterator[Explained]:
    """Everything about an operator, by any of its names; or about a release written as torch-2.13.0."""
    if name.startswith("torch-"):
        yield from (item for item in known if item.kind.endswith("release") and item.id == name.removeprefix("torch-"))
        return
    operator = name if "::" in name else f"aten::{name.removeprefix('torch.').rpartition('.')[2]}"
    overload = operator.partition("::")[2].partition(".")[2]
    base = operator.partition(".")[0]
    ids = {
        ("waiver of operators", waiver.id)
        for waiver in policy.operator_waivers
        if _covers(waiver.operators, operator, base, overload)
    }
    ids |= {("change", change.id) for change in policy.changes if base in change.operators}
    ids |= {("format version", format_.label) for format_ in policy.formats if base in (format_.operators or ())}
    function = re.compile(rf"(?<![\w.]){re.escape('torch.' + base.partition('::')[2])}(?!\w)")
    ids |= {
        ("deprecation", deprecation.id)
        for deprecation in policy.deprecations
        if name in deprecation.subject.split() or function.search(deprecation.subject)
    }
    yield from (item for item in known if (item.kind, item.id) in ids)


def _operators(policy: Policy) -> set[str]:
    """All operators that :func:`_about` knows by name."""
    named = [operator for waiver in policy.operator_waivers for operator in waiver.operators]
    named += [operator for change in policy.changes for operator in change.operators]
    named += [operator for version in policy.formats for operator in version.operators or ()]
    return {operator.partition(".")[0] for operator in named}


def _covers(operators: Iterable[str], operator: str, base: str, overload: str) -> bool:
    return any(item == operator or (not overload and item.partition(".")[0] == base) for item in operators)


def _is_for(waiver: Explained, finding: str) -> bool:
    """Whether a waiver covers a finding: it names the finding, or the outcome and the recipe in the finding's id."""
    _, what, subject = [*re.sub(r"(\([a-z-]+\))?(@[^@]*)?$", "", finding).split(":", 2), "", ""][:3]
    parts = waiver.says.get("covers") or ()
    return finding in (waiver.says.get("findings") or ()) or any(
        part["outcome"] == what and subject in part.get("recipes", ()) for part in parts
    )


def _everything(policy: Policy) -> Iterator[Explained]:
    """Everything in a policy that has an id."""
    for rule in policy.rules:
        yield Explained("rule", rule.id, {**_rule_says(rule.id), **_says(rule)})
    for history in histories(policy):
        yield Explained("deprecation", history.deprecation.id, _deprecation_says(history))
    tables: dict[str, tuple[Table, ...]] = {
        "waiver": policy.waivers,
        "change": policy.changes,
        "behavior": policy.behaviors,
        "load options": policy.options,
        "profile": policy.profiles,
    }
    for kind, entries in tables.items():
        for entry in entries:
            key = (kind, str(entry.id))  # type: ignore[attr-defined]
            count = {"count": policy.counts[key]} if key in policy.counts else {}
            yield Explained(kind, key[1], {**_says(entry), **count})
    for waiver in policy.operator_waivers:
        yield Explained("waiver of operators", waiver.id, _operator_waiver_says(waiver))
    for form in policy.formats:
        yield Explained("format version", form.label, _says(form))
    for timeline in policy.timelines:
        kind = american(timeline.kind)
        name = f"silent {kind}" if timeline.silent else kind
        yield Explained("timeline", name, _says(timeline))
    for release in policy.calendar:
        yield Explained("release", release.version, _says(release))
    for planned in policy.planned:
        says = planned.model_dump(mode="json", exclude_unset=True)  # keys about installation have no meaning yet
        yield Explained("planned release", planned.version, says)


def _says(table: Table) -> dict[str, Any]:
    return {key: value for key, value in table.model_dump(mode="json", exclude_none=True).items() if key != "id"}


def _operator_waiver_says(waiver: OperatorWaiver) -> dict[str, Any]:
    """The contents of a waiver; each kind of change in words, with its operators."""
    covers = [f"{len(item.operators)} × {in_words(item.change)}: {', '.join(item.operators)}" for item in waiver.covers]
    return {**_says(waiver), "covers": covers}


def _rule_says(name: str) -> dict[str, Any]:
    """The parts of the docstring of a rule's module, obtained without running it."""
    path = inside(Path(__file__).parents[1], f"rules/{name.replace('-', '_')}.py")
    if not path.is_file():
        raise missing_rule(name)
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    summary, *paragraphs = text.split("\n\n")
    says: dict[str, Any] = {"rule": " ".join(summary.split())}
    heading = ""
    for paragraph in paragraphs:
        first, colon, rest = paragraph.partition(":")
        if colon and first in HEADINGS:
            heading = first.lower()
            says[heading] = " ".join(rest.split())
        elif heading:
            says[heading] += " " + " ".join(paragraph.split())
    return says


def _deprecation_says(history: DeprecationHistory) -> dict[str, Any]:
    """The contents of a deprecation's file, the requirements of its timeline, and its final state."""
    deprecation, timeline = history.deprecation, history.timeline
    snapshot = history.snapshots[-1]
    says = {key: value for key, value in _says(deprecation).items() if key != "events"}
    says["events"] = [
        {
            "what": occurrence.event.what,
            "release": occurrence.point.release,
            "day": occurrence.point.day.isoformat(),
            "nightly": occurrence.event.nightly.isoformat() if occurrence.event.nightly else None,
            "allowed": earliest_text(occurrence.earliest) if occurrence.earliest else None,
        }
        for occurrence in history.happened
    ]
    says["timeline"] = f"{timeline.asks} ({timeline.source})"
    says["state"], says["verdict"] = snapshot.state, str(snapshot.verdict)
    says["broken"] = [breach.text + ("" if breach.promised else " (no promise)") for breach in snapshot.breaches]
    if snapshot.next is not None:
        says["next"] = f"may {step_text(snapshot.next.what)} {earliest_text(snapshot.next.earliest)}"
    return says


def _file(root: Path | None, known: Explained) -> str | None:
    """The file with the definition, relative to the root; None outside a tree."""
    try:
        place = find_root(root)
    except NothingSelected:
        return None
    policy = place.inside("policies/torch")
    folder = {"waiver": "waivers", "deprecation": "deprecations", "waiver of operators": "operator_waivers"}.get(known.kind)
    if folder is not None:
        return inside(policy, f"{folder}/{known.id}.toml").relative_to(place.path).as_posix()
    key = {"release": "version", "planned release": "version"}.get(known.kind, "id")
    for path in sorted(policy.glob("*.toml")):
        if re.search(
            rf'(?:^|\{{ ){key} = "{re.escape(known.id)}"',
            read_whole(inside(policy, path.name), MOST_OF_A_PROGRAM).decode(),
            re.MULTILINE,
        ):
            return path.relative_to(place.path).as_posix()
    return None
