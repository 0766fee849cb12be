"""The results of a check of operators, as text and as JSON: each break, what to do about it, and a waiver that would cover them all."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from torch_compat.judging.operator_check import advice
from torch_compat.operators.differences import in_words
from torch_compat.words import count_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.judging.operator_check import CheckedOperators
    from torch_compat.operators.breaks import Break
    from torch_compat.operators.differences import Difference

__all__ = ["check_document", "check_lines"]

LABEL: Final = 8


def check_document(checked: CheckedOperators) -> dict[str, Any]:
    """The results as JSON."""
    return {
        "old": checked.old.name,
        "new": checked.new.name,
        "exit_status": checked.exit_status,
        "broken": [{**_row(item), "do": advice(item)} for item in checked.broken],
        "waived": [{**_row(item), "waiver": waiver} for item, waiver in checked.waived],
        "summary": checked.summary(),
        "upgraded": [{**_row(item), "upgrader": item.upgrader} for item in checked.upgraded],
        "named": [_row(item) for item in checked.named],
        "left_aside": [{"operator": operator, "import": module} for operator, module in checked.aside],
        "unknown": [_row(item) for item in checked.unknown],
        "waivers": [{"waiver": waiver, "problem": problem} for waiver, problem in checked.problems],
        "incomplete": [{"set": name, "why": why} for name, why in checked.incomplete],
        "draft": _draft(checked),
    }


def _row(item: Break) -> dict[str, Any]:
    return {
        "operator": item.operator,
        "side": item.side,
        "old": item.old,
        "new": item.new,
        "what": item.what,
        "change": list(item.change),
        "reason": item.reason,
        "taken_by": item.taken_by,
    }


def check_lines(checked: CheckedOperators) -> Iterator[str]:
    """The results as text: the numbers, each break, what to do about it, and a waiver that would cover them all."""
    yield from _summary(checked)
    for item in checked.broken:
        yield f"{item.operator} breaks {item.side}"
        yield f"    {'old':<{LABEL}}{item.old}"
        if item.new is not None:
            yield f"    {'new':<{LABEL}}{item.new}"
        yield f"    {'why':<{LABEL}}{item.reason}"
        yield f"    {'change':<{LABEL}}{in_words(item.change)}"
        if item.taken_by is not None:
            yield f"    {'but':<{LABEL}}TorchScript code does not name overloads, and {item.taken_by} accepts the same calls"
        yield f"    {'do':<{LABEL}}{advice(item)}"
    draft = _draft(checked)
    if draft is not None:
        yield "If no program can have been saved with these operators, waive the breaks with policies/torch/operator_waivers/<id>.toml:"
        yield draft
    for waiver, problem in checked.problems:
        yield f"waiver {waiver} {problem}"
    for item in checked.unknown:
        yield f"{item.operator}: unknown: {item.reason}"
    for name, why in checked.incomplete:
        yield f"{name} has incomplete records: {why}"
    for side in (checked.old, checked.new):
        if side.methods:
            yield f"{side.name}: skipped {side.methods} methods of classes, which are not operators"


def _summary(checked: CheckedOperators) -> Iterator[str]:
    """The numbers in a few lines."""
    messages = {
        "broken": len(checked.broken),
        "waived": len(checked.waived),
        "with an upgrader": len(checked.upgraded),
        "unknown": len(checked.unknown),
    }
    old, new = checked.old, checked.new
    texts = ", ".join(f"{count} {what}" for what, count in messages.items())
    yield f"{old.name} ({count_of(len(old.schemas), 'schema')}) to {new.name} ({len(new.schemas)}): {texts}"
    numbers = checked.summary()
    ahead = "forward compatibility not checked (use --forward)" if not checked.forward else f"{numbers['broken_forward']} forward"
    yield f"    broken: {numbers['broken_backward']} backward, {ahead}"
    yield f"    operators: {checked.counts.removed} removed, {checked.counts.changed} changed, {checked.counts.added} added"
    if checked.named:
        yield f"    {count_of(len(checked.named), 'unnamed overload was given', 'unnamed overloads were given')} a name; archives of the older side do not contain overload names, so this breaks nothing"
    for module, count in sorted(Counter(module for _, module in checked.aside).items()):
        yield f"    left out, not imported: {count} of {module}"


def _draft(checked: CheckedOperators) -> str | None:
    """A draft of waivers that would cover the breaks, except for the parts that only a person can write."""
    texts = []
    for side in ("backward", "forward"):
        groups: dict[tuple[Difference, ...], set[str]] = {}
        for entry in checked.broken:
            if entry.side == side:
                groups.setdefault(entry.change, set()).add(entry.operator)
        if not groups:
            continue
        since = (
            f'"{checked.new.release}"'
            if checked.new.release
            else "<replace this: the release that will contain the change, in quotes>"
        )
        lines = [
            "[operator_waiver]",
            'id = "<replace this: the name of this file>"',
            'title = "<replace this: what happened, in one line>"',
            f'side = "{side}"',
            f"since = {since}",
            'reason = "<replace this: why this is accepted>"',
            'evidence = "<replace this: the evidence that no program is affected>"',
            'owner = "<replace this: the person responsible>"',
        ]
        if checked.new.release is None:
            lines.append("expires = <replace this: the first day on which the waiver no longer applies, such as 2027-01-31>")
        for change, operators in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
            names = "".join(f'    "{operator}",\n' for operator in sorted(operators))
            stated = ", ".join(f'"{item}"' for item in change)
            lines += ["", "[[operator_waiver.covers]]", f"change = [{stated}]", f"operators = [\n{names}]"]
        texts.append("\n".join(lines))
    return "\n\n".join(texts) or None
