"""Explanations of rules, waivers, deprecations and everything else with an id, and where they are defined."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch_compat.errors import NothingSelected, UsageError
from torch_compat.operators.differences import in_words
from torch_compat.places import MOST_OF_A_PROGRAM, inside, read_whole
from torch_compat.policy.timeline import histories
from torch_compat.report.timelines import earliest_text, step_text
from torch_compat.workspace import find_policy, find_root

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from torch_compat.policy import Policy
    from torch_compat.policy.operator_waivers import OperatorWaiver
    from torch_compat.policy.table_base import Table
    from torch_compat.policy.timeline import DeprecationHistory

__all__ = ["Explained", "explained"]

HEADINGS = ("What", "Why", "Example", "Reference")
NEAREST = 3


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
    found = [one for one in known if one.id == name]
    if not found and ":" in name:  # a finding: explain its rule and its waivers
        rule = name.partition(":")[0]
        found = [one for one in known if (one.kind, one.id) == ("rule", rule)]
        found += [one for one in known if one.kind == "waiver" and _is_for(one, name)]
    if not found:
        found = list(_about(policy, known, name))
    if not found:
        ids = sorted({one.id for one in known})
        candidates = sorted(_operators(policy)) if "::" in name else ids
        nearest = get_close_matches(name, candidates, n=NEAREST, cutoff=0.5)
        nearest += [one for one in ids if name and name.lower() in one and one not in nearest][: NEAREST - len(nearest)]
        hint = f"nearest: {', '.join(nearest)}" if nearest else f"the policy has {len(ids)} ids; see policies/"
        raise UsageError(f"there is no entry with the ID {name!r}", hint=hint, code="unknown-id")
    for one in found:
        one.says.setdefault("file", _file(root, one))
    return found


def _about(policy: Policy, known: list[Explained], name: str) -> Iterator[Explained]:
    """Everything about an operator, by any of its names; or about a release written as torch-2.13.0."""
    if name.startswith("torch-"):
        yield from (one for one in known if one.kind.endswith("release") and one.id == name.removeprefix("torch-"))
        return
    operator = name if "::" in name else f"aten::{name.removeprefix('torch.').rpartition('.')[2]}"
    overload = operator.partition("::")[2].partition(".")[2]
    base = operator.partition(".")[0]
    ids = {("waiver of operators", one.id) for one in policy.operator_waivers if _covers(one.operators, operator, base, overload)}
    ids |= {("change", one.id) for one in policy.changes if base in one.operators}
    ids |= {("format version", one.label) for one in policy.formats if base in (one.operators or ())}
    function = re.compile(rf"(?<![\w.]){re.escape('torch.' + base.partition('::')[2])}(?!\w)")
    ids |= {("deprecation", one.id) for one in policy.deprecations if name in one.subject.split() or function.search(one.subject)}
    yield from (one for one in known if (one.kind, one.id) in ids)


def _operators(policy: Policy) -> set[str]:
    """All operators that :func:`_about` knows by name."""
    named = [operator for waiver in policy.operator_waivers for operator in waiver.operators]
    named += [operator for change in policy.changes for operator in change.operators]
    named += [operator for version in policy.formats for operator in version.operators or ()]
    return {operator.partition(".")[0] for operator in named}


def _covers(operators: Iterable[str], operator: str, base: str, overload: str) -> bool:
    return any(one == operator or (not overload and one.partition(".")[0] == base) for one in operators)


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
        name = f"silent {timeline.kind}" if timeline.silent else timeline.kind
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
    covers = [f"{len(one.operators)} × {in_words(one.change)}: {', '.join(one.operators)}" for one in waiver.covers]
    return {**_says(waiver), "covers": covers}


def _rule_says(name: str) -> dict[str, Any]:
    """The parts of the docstring of a rule's module, obtained without running it."""
    path = inside(Path(__file__).parents[1], f"rules/{name.replace('-', '_')}.py")
    if not path.is_file():
        raise UsageError(f"the policy names the rule {name!r}, which does not exist", code="unknown-rule")
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    summary, *paragraphs = text.split("\n\n")
    says: dict[str, Any] = {"rule": " ".join(summary.split())}
    heading = ""
    for one in paragraphs:
        first, colon, rest = one.partition(":")
        if colon and first in HEADINGS:
            heading = first.lower()
            says[heading] = " ".join(rest.split())
        elif heading:
            says[heading] += " " + " ".join(one.split())
    return says


def _deprecation_says(history: DeprecationHistory) -> dict[str, Any]:
    """The contents of a deprecation's file, the requirements of its timeline, and its final state."""
    deprecation, timeline = history.deprecation, history.timeline
    snapshot = history.snapshots[-1]
    says = {key: value for key, value in _says(deprecation).items() if key != "events"}
    says["events"] = [
        {
            "what": one.event.what,
            "release": one.point.release,
            "day": one.point.day.isoformat(),
            "nightly": one.event.nightly.isoformat() if one.event.nightly else None,
            "allowed": earliest_text(one.earliest) if one.earliest else None,
        }
        for one in history.happened
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
