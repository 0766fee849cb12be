"""Operators that refuse floats of 16 bits where the release of the horizon does (:mod:`torch_compat.operators.halves`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch_compat.operators.halves import COMPUTES, EMPTY, refuses, said
from torch_compat.runtime.dtypes import BFLOAT16, FLOAT16, as_dtype
from torch_compat.runtime.tensor import Tensor
from torch_compat.runtime.values import raised

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch_compat.errors import Raised
    from torch_compat.releases.release import Release

__all__ = ["guarded"]

DIED = "died: "
BY_PLACE = {"aten::softmax": 2, "aten::log_softmax": 2}
"""Where the dtype of a call stands that is not given by name."""
NAMES = {FLOAT16.array: "float16", BFLOAT16.array: "bfloat16"}


def guarded(name: str, call: Callable[..., Any], horizon: Release, *, lists: bool = False) -> Callable[..., Any]:
    """An operator that refuses floats of 16 bits where the release of the horizon does; the same where it refuses none.

    Parameters:
        lists: whether the operator is one of lists as well, which moves tensors and does not compute with them.
    """
    if not refuses(name, horizon):
        return call
    writes = name.endswith("_")

    def guard(*args: Any, **keywords: Any) -> Any:
        first = args[0] if args else None
        plain = first.__class__ is Tensor and first.array.dtype not in NAMES and first.array.dtype.kind != "b"
        if plain and "dtype" not in keywords and name not in BY_PLACE:  # nearly every call
            return call(*args, **keywords)
        if lists and (first.__class__ is list or (len(args) > 1 and args[1].__class__ is list)):
            return call(*args, **keywords)
        error = _refusal(name, args, keywords, horizon)
        if error is None:
            return call(*args, **keywords)
        if not writes and "out" not in keywords:
            call(*args, **keywords)  # what is wrong besides is said first
        raise error

    return guard


def _refusal(name: str, args: tuple[Any, ...], keywords: dict[str, Any], horizon: Release) -> Raised | None:
    computed = _computed(name, args, keywords)
    given = [
        one for one in _tensors((*args, *keywords.values())) if computed is not None or one.dtype.category >= FLOAT16.category
    ]
    kinds = {computed or one.array.dtype for one in given}
    if len(kinds) != 1 or (dtype := NAMES.get(kinds.pop())) is None:
        return None  # of several dtypes, releases compute in the one that they have together, or refuse them for that
    empty = EMPTY if any(one.array.size == 0 for one in given) else ""
    told = said(name, dtype + empty, tuple(one.array.ndim for one in given), len(args), horizon)
    if told is None or told == COMPUTES or told.startswith(DIED):
        return None
    kind, _, message = told.partition(": ")
    return raised(kind, message)


def _computed(name: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """The type in which a call says that it computes; None where it does not."""
    told = keywords.get("dtype")
    if told is None and name in BY_PLACE and len(args) > BY_PLACE[name]:
        told = args[BY_PLACE[name]]
    found = as_dtype(told)
    return None if found is None else found.array


def _tensors(values: tuple[Any, ...]) -> Iterator[Tensor]:
    for value in values:
        if value.__class__ is Tensor:
            yield value
        elif value.__class__ is list:
            yield from (one for one in value if one.__class__ is Tensor)
