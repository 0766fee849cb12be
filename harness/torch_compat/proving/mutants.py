"""Mutation testing of proofs: wrong upgraders, each made from a correct one by one change, which a proof should detect.

A change swaps branches, flips or drops a condition, drops a cast or the call itself, changes a constant or an operator, switches between
in-place and not, omits an argument, or swaps two. Omitting only a default of the newest release's schemas is not a mutant, because it
compiles to the same call. A mutant is *killed* if the proof's verdict on some generated call differs from that for the upgrader itself, or
if it does not compile.
"""

from __future__ import annotations

import ast
import copy
import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from torch_compat.errors import HarnessError
from torch_compat.operators.call_signature import signature_of
from torch_compat.operators.history import History
from torch_compat.proving.cases import cases
from torch_compat.proving.oracles import Modelled
from torch_compat.proving.programs import archive, forms
from torch_compat.proving.proof import PROGRAMS_HAVE_COMPLEX, table_of, version_for
from torch_compat.proving.verdict import judged
from torch_compat.releases.release import Release
from torch_compat.torchscript.parser import parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch_compat.proving.stated import StatedUpgrader

__all__ = ["Mutant", "Score", "mutants", "score"]

CONSTANTS: Final = {"trunc": "floor", "floor": "trunc", "none": "tanh", "tanh": "none"}
OPERATORS: Final = {
    "true_divide": "floor_divide", "true_divide_": "floor_divide_", "divide": "multiply", "divide_": "multiply_", "full": "zeros_like",
    "linspace": "logspace", "is_floating_point": "is_signed",
}  # fmt: skip


class Mutant(NamedTuple):
    """One changed body."""

    what: str
    """A description of the change."""
    body: str
    """The source after the change."""


def mutants(body: str) -> list[Mutant]:
    """Return the distinct mutants of an upgrader's body."""
    results: dict[str, Mutant] = {}
    plain = ast.unparse(parse(body))
    for what, tree in _changes(parse(body)):
        text = ast.unparse(ast.fix_missing_locations(tree))
        if text != plain:
            results.setdefault(text, Mutant(what, text))
    return list(results.values())


def _changes(tree: ast.Module) -> Iterator[tuple[str, ast.Module]]:
    for at, node in enumerate(list(ast.walk(tree))):
        for what, change in _of(node):
            result = copy.deepcopy(tree)
            target = list(ast.walk(result))[at]
            change(target)
            yield f"line {getattr(node, 'lineno', 1)}: {what}", result


def _of(node: ast.AST) -> Iterator[tuple[str, Callable[[Any], object]]]:
    if isinstance(node, ast.If):
        yield "the condition is flipped", lambda item: setattr(item, "test", ast.UnaryOp(ast.Not(), item.test))
        yield "the branch is always taken", lambda item: setattr(item, "test", ast.Constant(True))
        yield "the branch is never taken", lambda item: setattr(item, "test", ast.Constant(False))
    elif isinstance(node, ast.BoolOp):
        for place in range(len(node.values)):
            text = ast.unparse(node.values[place])
            yield f"the check {text} is removed", _without("values", place)
        yield (
            "'or' is replaced by 'and'",
            lambda item: setattr(item, "op", ast.And() if isinstance(item.op, ast.Or) else ast.Or()),
        )
    elif isinstance(node, ast.Return) and isinstance(node.value, ast.Call) and _first(node.value) is not None:
        yield "the call is dropped", lambda item: setattr(item, "value", _first(item.value))
    elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and node.value.args:
        yield f"{ast.unparse(node)} is dropped", lambda item: setattr(item, "value", item.value.args[0])
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, str) and node.value in CONSTANTS:
            yield f"{node.value!r} is {CONSTANTS[node.value]!r}", lambda item: setattr(item, "value", CONSTANTS[item.value])
        elif node.value.__class__ is int:
            yield f"{node.value} is {node.value + 1}", lambda item: setattr(item, "value", item.value + 1)
    elif isinstance(node, ast.Call):
        yield from _of_call(node)


def _of_call(node: ast.Call) -> Iterator[tuple[str, Callable[[Any], object]]]:
    for place, keyword in enumerate(node.keywords):
        if not _is_default(node, keyword):
            yield f"{keyword.arg}= is omitted", _without("keywords", place)
    if isinstance(node.func, ast.Attribute):
        name = node.func.attr
        if _first(node) is not None and all(item.arg != "out" for item in node.keywords) and _schemas(f"{name}_"):
            yield f"{name} is made in-place", lambda item: setattr(item.func, "attr", f"{item.func.attr}_")
        if name in OPERATORS:
            yield f"{name} is {OPERATORS[name]}", lambda item: setattr(item.func, "attr", OPERATORS[item.func.attr])
        if name.endswith("_"):
            yield f"{name} is made out-of-place", lambda item: setattr(item.func, "attr", item.func.attr.rstrip("_"))
        if (
            len(node.args) == 1
            and isinstance(node.args[0], ast.Name)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id != "torch"
        ):
            yield "the operands are swapped", _swap
        if len(node.args) >= 2 and isinstance(node.func.value, ast.Name) and node.func.value.id == "torch":
            yield "the first two arguments are swapped", _swap_arguments
    if len(node.args) == 2 and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
        yield "a different type is requested", lambda item: item.args.__setitem__(1, ast.Name("int", ast.Load()))
    starts = {keyword.arg: place for place, keyword in enumerate(node.keywords)}
    if {"start", "end"} <= starts.keys():
        yield "start and end are swapped", lambda item: _swap_keywords(item, starts["start"], starts["end"])


def _first(call: ast.Call) -> ast.Name | None:
    """Return the ``self`` tensor of a call; None if its first argument is anything else."""
    function = call.func
    of_torch = isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "torch"
    first = (call.args[0] if call.args else None) if of_torch else getattr(function, "value", None)
    return first if isinstance(first, ast.Name) and first.id == "self" else None


def _is_default(call: ast.Call, keyword: ast.keyword) -> bool:
    """Whether a constant in a call is the default in every schema of the newest release that has the argument."""
    if not isinstance(call.func, ast.Attribute) or not isinstance(keyword.value, ast.Constant):
        return False
    stated = [
        argument.default
        for text in _schemas(call.func.attr)
        for argument in signature_of(text).arguments
        if argument.name == keyword.arg
    ]
    return bool(stated) and all(
        default == repr(keyword.value.value) or default == json.dumps(keyword.value.value) for default in stated
    )


def _schemas(name: str) -> tuple[str, ...]:
    """Return the schemas of an operator in the newest recorded release."""
    history = History.load()
    return history.schemas(f"aten::{name}", history.releases[-1])


def _without(field: str, place: int) -> Callable[[Any], object]:
    return lambda item: getattr(item, field).pop(place)


def _swap(node: ast.Call) -> None:
    assert isinstance(node.func, ast.Attribute)  # noqa: S101 - checked before
    node.func.value, node.args[0] = node.args[0], node.func.value


def _swap_arguments(node: ast.Call) -> None:
    node.args[0], node.args[1] = node.args[1], node.args[0]


def _swap_keywords(node: ast.Call, number: int, other: int) -> None:
    first, second = node.keywords[number], node.keywords[other]
    first.value, second.value = second.value, first.value


class Score(NamedTuple):
    """The result of a proof on the mutants of an upgrader."""

    killed: int
    """How many mutants are detected."""
    equivalent: tuple[tuple[Mutant, str], ...]
    """Mutants that change no result, with the reason in the upgrader's table."""
    survivors: tuple[Mutant, ...]
    """The other mutants."""

    @property
    def enough(self) -> bool:
        """Whether at least 95 % of the mutants that change results are detected, and all but at most one."""
        return len(self.survivors) <= 1 and 20 * self.killed >= 19 * (self.killed + len(self.survivors))


def score(stated: StatedUpgrader, *, seed: int | str = 0, count: int = 144) -> Score:
    """Determine which mutants of an upgrader a proof detects.

    Raises:
        UsageError: as :func:`torch_compat.proving.proof.prove`.
    """
    result = mutants(stated.body)
    left = list(result)
    old, version = Modelled(stated.old), version_for(stated)
    numbers = Release(stated.old) >= PROGRAMS_HAVE_COMPLEX
    own = Modelled(table=table_of(stated))
    for form in forms(stated.operator, stated.arguments, complex_numbers=numbers):
        data, given = archive(form, version), cases(form, seed, count)
        before = old.ask(data, given)
        wanted = [judged(was, now).verdict for was, now in zip(before, own.ask(data, given), strict=True)]
        alive = []
        for mutant in left:
            try:
                after = Modelled(table=table_of(stated._replace(body=mutant.body))).ask(data, given)
            except HarnessError:
                continue  # it does not compile
            if [judged(was, now).verdict for was, now in zip(before, after, strict=True)] == wanted:
                alive.append(mutant)
        left = alive
        if not left:
            break
    known = dict(stated.equivalent)
    alike = tuple((item, known[item.what.partition(": ")[2]]) for item in left if item.what.partition(": ")[2] in known)
    return Score(len(result) - len(left), alike, tuple(item for item in left if item.what.partition(": ")[2] not in known))
