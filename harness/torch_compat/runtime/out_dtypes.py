"""Refuse tensors given as ``out=`` whose dtypes the release of the horizon refuses (:mod:`torch_compat.operators.outs`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch_compat.operators.outs import COMPARED_SINCE, NO_DATA, is_generated, lacks_kernel, written
from torch_compat.releases.release import Release
from torch_compat.runtime import dtypes
from torch_compat.runtime.registration import OUTS
from torch_compat.runtime.tensor import Tensor
from torch_compat.runtime.values import raised

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from torch_compat.operators.outs import AcceptedOuts

__all__ = ["refuse_outs"]

ONE_BY_ONE, TOGETHER = Release("1.6.0"), Release("1.8.0")
"""Between these releases, programs cannot call operators that write into several tensors."""
NUMBERS = frozenset({bool, int, float, complex})
FLOATING, STEPS = 2, 2
PROMOTED = frozenset({"add", "sub", "mul", "div"})
"""Operators in whose type promotion ``out`` takes part up to 1.5: the record of unpromoted calls says nothing about them."""


def refuse_outs(name: str, horizon: Release, call: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
    """Refuse a call because of the dtype of an out tensor.

    Parameters:
        name: the name of the operator without ``aten::``.
        call: the operator, called without ``out=`` for its result.

    Raises:
        Raised: the release of the horizon refuses the call.
    """
    code = getattr(getattr(call, "__wrapped__", call), "__code__", None)
    own = (
        code.co_varnames[: code.co_argcount] if code is not None else ()
    )  # such as the indices of an embedding, which can be keyword arguments
    targets = {word: value for word, value in keywords.items() if word in OUTS and word not in own and value.__class__ is Tensor}
    if not targets:
        return
    if len(targets) > 1 and ONE_BY_ONE <= horizon < TOGETHER:
        raise raised(
            "RuntimeError",
            "Tried to call KernelFunction::callBoxed() on a KernelFunction that can only be called with KernelFunction::call(). "
            f"opname: aten::{name}",
        )
    by_number = len(args) > 1 and args[1].__class__ in NUMBERS
    if lacks_kernel(f"aten::{name}", horizon, by_number=by_number):
        raise raised(
            "NotImplementedError",
            f"Could not run 'aten::{name}' with out= on the 'CPU' backend: this release has no kernel for it.",
        )
    plain = {word: value for word, value in keywords.items() if word not in targets}
    if keywords.get("dtype") is not None:
        return  # calls with an explicit dtype were not recorded
    if keywords.get("out_int32"):
        copied = horizon < COMPARED_SINCE and any(arg.__class__ in NUMBERS for arg in args[:2])
        if targets["out"].dtype.name != "int32" and not copied:
            raise _unexpected("int32", targets["out"])
    elif is_generated(f"aten::{name}", horizon) and any(_tensors(args)):
        _refuse_another(targets, call(*args, **plain))
    elif name in PROMOTED and horizon < ONE_BY_ONE:
        return
    elif (known := written(f"aten::{name}", horizon)) is not None and not _is_alone(name, args):
        if _has_one_element(name, args):  # every floating-point and complex dtype is accepted
            targets = {word: target for word, target in targets.items() if target.dtype.category < FLOATING}
        _refuse_unaccepted(known, targets, args, plain)


def _refuse_another(targets: dict[str, Tensor], result: Any) -> None:
    """Refuse out tensors whose dtype is not that of the result."""
    for target, part in zip(targets.values(), result if result.__class__ is tuple else (result,), strict=False):
        if part.__class__ is Tensor and part.dtype is not target.dtype:
            raise _unexpected(part.dtype.name, target)


def _has_one_element(name: str, args: tuple[Any, ...]) -> bool:
    """Whether a call creates at most one element from numbers, which needs no kernel."""
    if name in {"linspace", "logspace"}:
        return len(args) > STEPS and args[STEPS].__class__ is int and args[STEPS] <= 1
    return bool(name.endswith("_window") and args[0] <= 1)


def _is_alone(name: str, args: tuple[Any, ...]) -> bool:
    """Whether an operator copies the single element of its tensor with any dtype."""
    return name == "msort" and args[0].__class__ is Tensor and not args[0].array.ndim


def _refuse_unaccepted(known: AcceptedOuts, targets: dict[str, Tensor], args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
    """Refuse out tensors whose dtype the release accepts neither for any dtype of the arguments nor for the promoted dtype."""
    data = [
        *_tensors(args[place] for place in sorted(known.places) if place < len(args)),
        *_tensors(keywords.values()),
    ]
    numbers = [value for value in (*args, *keywords.values()) if value.__class__ is float or value.__class__ is complex]
    kinds = {byte.dtype for byte in data}
    if kinds and (len(kinds) > 1 or numbers):
        kinds.add(
            dtypes.result_type([*data, *numbers])
        )  # a call refused for its dtypes is refused for the promoted dtype as well
    ranks = tuple(byte.array.ndim for byte in data)
    empty = any(not byte.array.size for byte in data)
    words = frozenset(word for word, value in keywords.items() if value.__class__ is str)
    for word, target in targets.items():
        if empty and target.dtype in kinds:
            continue
        accepted = [
            known.accepts(word, name, target.dtype.name, ranks, len(args), words, empty=empty)
            for name in ([kind.name for kind in kinds] if kinds else [NO_DATA])
        ]
        if accepted and all(item is False for item in accepted):
            raise _unexpected(" or ".join(sorted(kind.name for kind in kinds)) or "of its own", target)


def _unexpected(dtype: str, target: Tensor) -> Any:
    return raised("RuntimeError", f"Expected out tensor to have a dtype that holds {dtype}, but got {target.dtype.name} instead")


def _tensors(values: Iterable[Any]) -> Iterator[Tensor]:
    for value in values:
        if value.__class__ is Tensor:
            yield value
        elif value.__class__ is list:
            yield from (item for item in value if item.__class__ is Tensor)
