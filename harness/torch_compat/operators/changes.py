"""The changes of the operators between two releases, from the recorded history.

PyTorch's own check of a release against an earlier one (``test/forward_backward_compatibility``) tests for each earlier schema whether any
schema of the same name is backward compatible with it. Since overloads are compared as well, that is a schema of the same overload; but
releases up to 1.4 have several schemas without an overload name, and methods of classes share one name across all classes. So each change
has two answers: the schema that replaced the old one, and, as ``by``, any schema that is backward compatible with it.

An operator that is missing from an incomplete set is not reported as removed, nor is an operator reported as added to an incomplete set:
such a change is ``unknown``, with the reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from torch_compat.operators.compatibility import CompatibilityResult, backward, forward, is_backward
from torch_compat.operators.schema import Schema, SchemaError, canonical, parse
from torch_compat.operators.types import CLASS_PREFIX

if TYPE_CHECKING:
    from torch_compat.operators.history import History

__all__ = ["SchemaChange", "changes", "taken_over"]

_REMOVED = CompatibilityResult(compatible=False, reason="it was removed", cause="removed")


class SchemaChange(NamedTuple):
    """A schema that differs between two releases."""

    operator: str
    """``aten::add.Tensor``; for a method, the name of the class comes first."""
    kind: Literal["added", "removed", "changed", "unknown"]
    """Whether the change is unknown: the set is incomplete and has no replacement, or a text is not a schema."""
    old: str | None
    """The schema of the earlier release, as recorded."""
    new: str | None
    """The schema that replaced it in the later release, with the same name and overload. If there are several, the best
    match."""
    backward: CompatibilityResult | None
    """Whether ``new`` accepts calls written for ``old``; None if there is no old schema, or if this is unknown."""
    forward: CompatibilityResult | None
    """Whether ``old`` accepts calls written for ``new``; None if either is missing."""
    by: str | None = None
    """The schema in the later release that is backward compatible with ``old``: ``new``, or another schema with the same
    name and overload."""
    why: str | None = None
    """The reason, if the change is unknown."""

    @property
    def backward_compatible(self) -> bool | None:
        """The result of PyTorch's own check, which accepts any schema of that name; None if there is no old schema, or it is unknown."""
        return None if self.old is None or self.kind == "unknown" else self.by is not None


def changes(history: History, old: str, new: str) -> list[SchemaChange]:
    """All schemas that differ between two releases, by operator; raises UsageError for a release that is not recorded."""
    gone: dict[str, list[str]] = {}
    came: dict[str, list[str]] = {}
    for texts, by_operator in zip(history.differing(old, new), (gone, came), strict=True):
        for text in texts:
            by_operator.setdefault(_operator(text), []).append(text)
    results: list[SchemaChange] = []
    for operator in sorted(gone.keys() | came.keys()):
        olds, news = gone.get(operator, []), came.get(operator, [])
        if olds:
            results.extend(_placed(history, operator, olds, news, new))
        results.extend(_added(history, operator, text, old) for text in news)
    return results


def taken_over(history: History, change: SchemaChange, new: str) -> str | None:
    """The schema of the later release that would be backward compatible with the old one if overload names were ignored.

    Programs in source form do not record overloads, so such a change does not affect them; bytecode and callers of an overload name them.
    """
    if change.old is None:
        return None
    old = parse(change.old, recorded=True)
    if change.by is not None:
        return change.by
    for text in history.schemas(old.name, new):
        if is_backward(parse(text, recorded=True)._replace(overload=old.overload), old):
            return text
    return None


def _operator(text: str) -> str:
    """The operator of a schema: name and overload; for a method, also the class, which is the type of its first argument."""
    name, _, rest = text.partition("(")
    if rest.startswith(CLASS_PREFIX) and "::" not in name and not name.startswith(CLASS_PREFIX):
        return f"{rest.replace(',', ' ').replace(')', ' ').partition(' ')[0]}.{name}"
    return name


def _added(history: History, operator: str, text: str, old: str) -> SchemaChange:
    why = history.why_incomplete(old)
    return SchemaChange(operator, "added" if why is None else "unknown", None, text, None, None, why=why)


def _gone(history: History, operator: str, text: str, release: str) -> SchemaChange:
    why = history.why_incomplete(release)
    if why is None:
        return SchemaChange(operator, "removed", text, None, _REMOVED, None)
    return SchemaChange(operator, "unknown", text, None, None, None, why=why)


def _placed(history: History, operator: str, olds: list[str], news: list[str], release: str) -> list[SchemaChange]:
    """The changes of one operator that lost schemas; leaves in ``news`` the schemas that do not replace an old one."""
    if not news and not history.standing(olds[0].partition("(")[0], release):
        return [_gone(history, operator, text, release) for text in olds]
    try:
        mine = {text: parse(text, recorded=True) for text in (*olds, *news)}
    except SchemaError as error:
        return [SchemaChange(operator, "unknown", text, None, None, None, why=str(error)) for text in olds]
    places: dict[str, str] = {}
    carried: dict[str, str] = {}
    sole = len(olds) == len(news) == 1
    for text in olds:  # compatible replacements first: no other schema may claim them
        compatible = [new for new in news if is_backward(mine[new], mine[text])]
        if compatible:
            places[text] = carried[text] = _likest(mine[text], compatible, mine)[1]
            news.remove(places[text])
        elif not sole:
            carrier = _carrier(history, mine[text], text, release)
            if carrier is not None:
                places[text] = carried[text] = carrier
    results: list[SchemaChange] = []
    for text in olds:
        old, by = mine[text], carried.get(text)
        if text not in places and news:
            alike, place = _likest(old, news, mine)
            if sole or alike > 0:
                places[text] = place
                news.remove(place)
        if text not in places:
            results.append(_gone(history, operator, text, release))
            continue
        new = parse(places[text], recorded=True)
        back, ahead = backward(new, old), forward(new, old)
        if back is not ahead or canonical(new) != canonical(old):  # otherwise only the printed form differs
            results.append(SchemaChange(operator, "changed", text, places[text], back, ahead, by))
    return results


def _likest(old: Schema, news: list[str], parsed: dict[str, Schema]) -> tuple[int, str]:
    """The schema that is most similar to an old one, and its similarity score; a score of 0 or less means no similarity."""
    ranked = []
    for text in news:
        new = parsed[text]
        names = {argument.name for argument in new.arguments}
        alike = sum(argument in new.arguments for argument in old.arguments) + sum(
            argument.name in names for argument in old.arguments
        )
        ranked.append((alike - abs(len(new.arguments) - len(old.arguments)), text))
    return max(ranked)


def _carrier(history: History, old: Schema, text: str, release: str) -> str | None:
    """Any schema of a release with the same name and overload that is backward compatible with an old one."""
    for other in history.standing(text.partition("(")[0], release):
        try:
            new = parse(other, recorded=True)
        except SchemaError:  # an invalid schema is skipped here; if it is itself a change, it is reported there
            continue
        if is_backward(new, old):
            return other
    return None
