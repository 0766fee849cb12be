"""Sums of products given by an equation, decomposed into operators as in the releases.

All operands are permuted to a common order of dimensions, with those of the result first, and contracted from left to right. For each pair,
dimensions that only one operand has are summed first; the rest is a batched matrix product with the common dimensions, those of the left
and those of the right operand. This determines the memory layout of the result and the summation order, and a single operand without
summation gives a view.
"""

from __future__ import annotations

import math
import re
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from torch_compat.releases.release import Release
from torch_compat.runtime.operators._common import fail
from torch_compat.runtime.operators._products import sized
from torch_compat.runtime.registry import operator, resolve

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch_compat.runtime.tensor import Tensor

DOTS = "..."
FIRST, LAID_OUT = "1.0.0", "1.6.0"
"""The first release, and the first release for which the memory layout of results is known."""
Names = list[str]
"""A name for each dimension: a letter, or for a dimension of the ellipsis a number, counted from the last."""


class Era(NamedTuple):
    """The differences between releases.

    Attributes:
        since: the first release of the era.
        letters: the labels allowed for dimensions.
        alike: whether a dimension must have the same size in all operands, and the ellipsis the same number of dimensions in each.
        drops: whether a sum over a dimension of size one drops the dimension, which gives a view.
        at_once: whether the dimensions of only one operand are summed at once instead of one after the other.
        swaps: whether the right operand of a product comes first if its dimensions do in the result.
    """

    since: str
    letters: re.Pattern[str]
    alike: bool
    drops: bool
    at_once: bool
    swaps: bool

    def call(self, name: str) -> Callable[..., Any]:
        """An operator of these releases."""
        return _operator(name, LAID_OUT if self.since == FIRST else self.since)


@cache
def _operator(name: str, since: str) -> Callable[..., Any]:
    return resolve(f"aten::{name}", Release(since))


LOWER, ANY = re.compile(r"[a-z]*\Z"), re.compile(r"[A-Za-z]*\Z")
ERAS = (
    Era(FIRST, LOWER, alike=True, drops=False, at_once=True, swaps=False),
    Era("1.8.0", LOWER, alike=False, drops=True, at_once=False, swaps=False),
    Era("1.9.0", ANY, alike=False, drops=True, at_once=False, swaps=False),
    Era("1.13.0", ANY, alike=False, drops=False, at_once=True, swaps=False),
    Era("2.9.0", ANY, alike=False, drops=False, at_once=True, swaps=True),
)


def _names(term: str, letters: re.Pattern[str], inner: int | None = None) -> Names:
    """The dimensions of a term, in which the ellipsis stands for ``inner`` dimensions.

    Raises:
        Raised: the term is invalid.
    """
    before, dots, after = term.partition(DOTS)
    if not letters.match(before + after) or (inner is None and dots):
        raise fail(f"einsum(): invalid subscript given in the equation string: {term}")
    return [*before, *(str(at) for at in reversed(range(inner or 0)) if dots), *after]


def _parsed(equation: str, tensors: list[Tensor], era: Era) -> tuple[list[Names], Names, Names]:
    """The dimensions of the operands, those of the result, and those that are summed.

    Raises:
        Raised: the equation is invalid or does not match the operands.
    """
    left, arrow, result = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(tensors):
        raise fail("einsum(): the number of operands provided does not match the equation")
    operands: list[Names] = []
    inners: set[int] = set()
    for term, tensor in zip(terms, tensors, strict=True):
        inner = tensor.ndim - len(term.replace(DOTS, "", 1))
        if inner < 0 or (inner and DOTS not in term):
            raise fail(
                f"einsum(): the number of subscripts in the equation does not match the number of dimensions ({tensor.ndim})"
            )
        operands.append(_names(term, era.letters, inner))
        inners |= {inner} if DOTS in term else set()
    most = max(inners, default=0)
    every = [name for names in operands for name in names]
    inside = [str(at) for at in reversed(range(most))]
    if arrow:
        kept = _names(result, era.letters, most)
    else:
        kept = [*inside, *sorted(name for name in set(every) if name.isalpha() and every.count(name) == 1)]
    if era.alike and (len(inners) > 1 or (len(terms) > 1 and inners and not {*kept} >= {*inside})):
        raise fail(
            "einsum(): the ellipsis must represent the same number of dimensions in all terms, and must appear in the output"
        )
    if len(set(kept)) != len(kept) or not {*every, *inside} >= set(kept):
        raise fail("einsum(): an output subscript appears more than once, or in no input operand")
    rest = {*every} - {*kept}
    return operands, kept, [*(name for name in inside if name in rest), *sorted(name for name in rest if name.isalpha())]


def _aligned(tensor: Tensor, names: Names, order: Names) -> Tensor:
    """A view with one dimension per name; a name that occurs twice gives the diagonal.

    Raises:
        Raised: the dimensions of a diagonal have different sizes.
    """
    sizes: dict[str, int] = {}
    strides: dict[str, int] = {}
    for name, size, stride in zip(names, tensor.shape, tensor.strides, strict=True):
        if sizes.setdefault(name, size) != size:
            raise fail(f"einsum(): subscript {name} is repeated, but the sizes don't match, {size} != {sizes[name]}")
        strides[name] = strides.get(name, 0) + stride
    return tensor.as_strided(tuple(sizes.get(name, 1) for name in order), tuple(strides.get(name, 1) for name in order))


def _shaped(tensor: Tensor, shape: tuple[int, ...], era: Era) -> Tensor:
    return era.call("reshape")(tensor, list(shape))  # type: ignore[no-any-return]


def _turned(tensor: Tensor, order: list[int]) -> Tensor:
    return tensor.as_strided(tuple(tensor.shape[at] for at in order), tuple(tensor.strides[at] for at in order))


def _broadcast(*sizes: int) -> int:
    return next((size for size in sizes if size != 1), 1)


def _summed(tensor: Tensor, dims: list[int], era: Era) -> Tensor:
    """Sum over dimensions, keeping them with size one."""
    if not dims:
        return tensor
    for item in [dims] if era.at_once else [[at] for at in dims]:
        tensor = era.call("sum")(tensor, item, True)
    return tensor


def _pair(left: Tensor, right: Tensor, sums: list[int], era: Era) -> Tensor:
    """The product of two aligned operands, summed over common dimensions, which are kept with size one."""
    shape = [_broadcast(a, b) for a, b in zip(left.shape, right.shape, strict=True)]
    sized(*(size for at, size in enumerate(shape) if at not in sums))
    if not sums:
        return era.call("mul")(left, right)  # type: ignore[no-any-return]
    if era.alike and 0 in left.shape:
        raise fail("einsum(): a shape is invalid for input of size 0")
    rest = [at for at in range(left.ndim) if at not in sums]
    both = [at for at in rest if left.shape[at] != 1 and right.shape[at] != 1]
    ours = [at for at in rest if left.shape[at] != 1 and right.shape[at] == 1]
    theirs = [at for at in rest if left.shape[at] == 1]
    if era.swaps and ours and theirs and theirs[-1] < ours[0]:
        left, right, ours, theirs = right, left, theirs, ours
    count, rows, columns = (math.prod(shape[at] for at in part) for part in (both, ours, theirs))
    steps = math.prod(shape[at] for at in sums)
    a = _shaped(_turned(left, [*both, *ours, *sums, *theirs]), (count, rows, steps), era)
    b = _shaped(_turned(right, [*both, *sums, *theirs, *ours]), (count, steps, columns), era)
    order = [*both, *ours, *sums, *theirs]
    result = _shaped(era.call("bmm")(a, b), tuple(1 if at in sums else shape[at] for at in order), era)
    return _turned(result, [order.index(at) for at in range(left.ndim)])


def _contracted(operands: list[Tensor], kept: int, era: Era) -> Tensor:
    """Multiply all aligned operands, and sum over all dimensions after the first ``kept``."""
    total = operands[0]
    dims = range(kept, total.ndim)
    last = {at: max((place for place, item in enumerate(operands) if item.shape[at] != 1), default=-1) for at in dims}
    for place, operand in enumerate(operands[1:], 1):
        mine = [at for at in dims if total.shape[at] != 1 and operand.shape[at] == 1 and last[at] < place]
        others = [at for at in dims if total.shape[at] == 1 and operand.shape[at] != 1 and last[at] == place]
        sums = [at for at in dims if total.shape[at] != 1 and operand.shape[at] != 1 and last[at] == place]
        total = _pair(_summed(total, mine, era), _summed(operand, others, era), sums, era)
    return _shaped(total, total.shape[:kept], era) if dims else total


def _define(era: Era) -> None:
    def einsum(equation: str, tensors: list[Tensor], *, path: list[int] | None = None) -> Tensor:
        """Sums of products given by an equation."""
        del path
        if not tensors:
            raise fail("einsum(): must provide at least one operand")
        operands, kept, rest = _parsed(equation, tensors, era)
        order = [*kept, *rest]
        given = [_aligned(tensor, names, order) for tensor, names in zip(tensors, operands, strict=True)]
        for at, name in enumerate(order):
            sizes = {item.shape[at] for item, names in zip(given, operands, strict=True) if name in names}
            if len(sizes if era.alike else sizes - {1}) > 1:
                raise fail(f"einsum(): operands do not broadcast in subscript {name}")
        if era.drops and any(0 in item.shape for item in given):
            shape = [_broadcast(*(item.shape[at] for item in given)) for at in range(len(kept))]
            return era.call("zeros")(shape, dtype=given[0].dtype)  # type: ignore[no-any-return]
        if len(given) > 1:
            return _contracted(given, len(kept), era)
        summed = [at for at in range(len(kept), len(order)) if not era.drops or given[0].shape[at] != 1]
        only = _summed(given[0], summed, era)
        left = list(range(len(kept)))
        return _turned(only, left)

    operator("aten::einsum", since=era.since)(einsum)


for _era in ERAS:
    _define(_era)
