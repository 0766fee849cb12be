"""Refuse dtypes that the release of the horizon refuses: 16-bit floating-point dtypes (:mod:`torch_compat.operators.halves`) and all
other dtypes (:mod:`torch_compat.operators.dtypes`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch_compat.operators.dtypes import CALLED, taken
from torch_compat.operators.halves import COMPUTES, EMPTY, refuses, said
from torch_compat.releases.release import Release
from torch_compat.releases.sets import ReleaseSet
from torch_compat.runtime.dtypes import BFLOAT16, DTYPES, FLOAT16, as_dtype, result_type
from torch_compat.runtime.registration import OUTS
from torch_compat.runtime.tensor import Tensor
from torch_compat.runtime.values import raised

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from torch_compat.errors import Raised
    from torch_compat.operators.dtypes import Taken

__all__ = ["guarded"]

DIED = "died: "
BY_PLACE = dict.fromkeys(
    (f"aten::{name}" for name in ("softmax", "log_softmax", "special_softmax", "special_log_softmax", "_safe_softmax")), 2
)
"""The position of the dtype argument if it is not passed by name."""
NAMES = {FLOAT16.array: "float16", BFLOAT16.array: "bfloat16"}
BOUNDED = (2, 2, 2)
"""The numbers of dimensions in the tests of clamp with tensor bounds."""
UNLESS = {"aten::kl_div": "log_target"}
"""Flags with which an operator does not use the tested kernel."""
INTO_OUT = {"aten::adaptive_avg_pool2d": "aten::_adaptive_avg_pool2d"}
"""Operators that call a different kernel with ``out``."""
ALONE = {
    f"aten::{name}": ReleaseSet.parse(releases)
    for releases, names in {
        "..": ("mode", "max", "min"), "1.2.0..": ("kthvalue",), "1.6.0..": ("sort", "argmin", "argmax"), "1.9.0..": ("cumsum", "cumprod"),
        "1.2.0..<1.8.0": ("median", "nanmedian"), "1.5.0..<2.1.0": ("cummax", "cummin"),
    }.items()
    for name in names
}  # fmt: skip
"""Operators that copy the single element of a zero-dimensional tensor of any dtype, with the releases that do so."""
DROPOUTS = frozenset(
    f"aten::{name}{form}"
    for name in ("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout")
    for form in ("", "_")
)
"""Operators that were tested with random draws; without a draw, they multiply by one or zero, or return their input."""
BOUND_BY_TENSORS = frozenset(f"aten::{name}{form}" for name in ("clamp", "clamp_max", "clamp_min", "clip") for form in ("", "_"))
"""Operators that were tested with numbers, which use a different kernel."""
ONE_BOUND = Release("1.12.0")
"""As of this release, a single tensor bound works like maximum and minimum, which accept every dtype."""
PADS = frozenset({"aten::pad", "aten::_pad_enum"})
"""Operators that were tested with reflection padding."""
COPYING = frozenset({"constant", "circular", 2, 3})
"""Their modes that copy elements of any dtype, by name and by number."""
CASTING = frozenset(f"aten::{name}" for name in ("cumsum", "cumprod", "logcumsumexp", "nansum", "sum", "prod", "mean"))
"""Operators that convert their input to the given dtype before they compute."""
OTHERS = {DTYPES[name].array: name for name in CALLED if DTYPES[name].numpy is not None or DTYPES[name] is BFLOAT16}


def guarded(name: str, call: Callable[..., Any], horizon: Release, *, lists: bool = False) -> Callable[..., Any]:
    """Wrap an operator to refuse the dtypes that the release of the horizon refuses; return it unchanged if there are none.

    Parameters:
        lists: whether the operator also has overloads for lists, which move tensors and do not compute.
    """
    floats, others = refuses(name, horizon), taken(name, horizon)
    if not floats and others is None:
        return call
    writes = name.endswith("_")
    refused = frozenset(NAMES if floats else ()) | {
        dtype for dtype, called in OTHERS.items() if others and called in others.refused
    }
    by_first = name not in BY_PLACE and (others is None or 0 in others.places)

    drops, pads = name in DROPOUTS, name in PADS

    def guard(*args: Any, **keywords: Any) -> Any:
        if drops and len(args) > 2 and (not args[2] or args[1] in {0, 1}):
            return call(*args, **keywords)
        if pads and (args[2] if len(args) > 2 else keywords.get("mode", "constant")) in COPYING:
            return call(*args, **keywords)
        first = args[0] if args else None
        plain = first.__class__ is Tensor and first.array.dtype not in refused and first.array.dtype.kind != "b"
        if plain and by_first and "dtype" not in keywords:  # almost all calls
            return call(*args, **keywords)
        if lists and (first.__class__ is list or (len(args) > 1 and args[1].__class__ is list)):
            return call(*args, **keywords)
        error = _refusal(name, args, keywords, horizon) if floats else None
        if error is None and others is not None:
            error = _refusal_of_others(others, args, keywords, horizon)
        if error is None:
            return call(*args, **keywords)
        if not writes and "out" not in keywords:
            call(*args, **keywords)  # other errors take precedence
        raise error

    return guard


def _refusal_of_others(others: Taken, args: tuple[Any, ...], keywords: dict[str, Any], horizon: Release) -> Raised | None:
    """The error of a call if the release refuses every dtype among its tensors."""
    computed = _computed(others.name, args, keywords)
    if computed is not None and others.name not in BY_PLACE and others.places and others.name not in CASTING:
        return None  # calls with an explicit dtype were not recorded
    given = [
        *_tensors(args[place] for place in others.places if place < len(args)),
        *_tensors(value for word, value in keywords.items() if word not in OUTS),
    ]
    if others.name in BOUND_BY_TENSORS and any(
        arg.__class__ is Tensor for arg in (*args[1:], keywords.get("min"), keywords.get("max"))
    ):
        return None
    if _is_alone(others.name, given, horizon):
        return None
    if others.name == "aten::pow" and args[0].__class__ is not Tensor and args[0] == 1:
        return None  # 1 for every exponent
    if not given and computed is None:
        return None
    if any(
        not given or tensor.array.dtype != given[0].array.dtype
        for tensor in _tensors(value for word, value in keywords.items() if word in OUTS)
    ):
        return None  # recorded without out=; 1.6 refuses to divide integers unless out is a floating-point tensor
    kinds = {tensor.array.dtype for tensor in given} if computed is None else {computed}
    if len(kinds) > 1:
        kinds.add(result_type(given).array)  # a call refused for its dtypes is refused for the promoted dtype as well
    empty = EMPTY if any(not tensor.array.size for tensor in given) else ""
    ranks = tuple(tensor.array.ndim for tensor in given)
    texts = {word: value for word, value in keywords.items() if value.__class__ is str}
    told = None
    for kind in kinds:
        told = None if kind not in OTHERS else others.said(
            OTHERS[kind] + empty, ranks, len(args), frozenset(texts), frozenset((*texts.values(), *(arg for arg in args if arg.__class__ is str))),
        )  # fmt: skip
        if told is None:
            return None
    if told is None:
        return None
    kind_of_error, _, message = told.partition(": ")
    return raised(kind_of_error, message)


def _refusal(name: str, args: tuple[Any, ...], keywords: dict[str, Any], horizon: Release) -> Raised | None:
    computed = _computed(name, args, keywords)
    if name == "aten::nansum" and args and args[0].__class__ is Tensor and args[0].dtype.category < FLOAT16.category:
        return None  # the sum of integers, with any dtype
    if name in UNLESS and keywords.get(UNLESS[name]):
        return None
    if name in INTO_OUT and "out" in keywords:
        name = INTO_OUT[name]
    given = [
        tensor
        for tensor in _tensors((*args, *keywords.values()))
        if computed is not None or tensor.dtype.category >= FLOAT16.category
    ]
    if _is_alone(name, given, horizon):
        return None
    kinds = {computed or tensor.array.dtype for tensor in given}
    if len(kinds) != 1 or (dtype := NAMES.get(kinds.pop())) is None:
        return None  # for mixed dtypes, releases compute in the promoted dtype or refuse the mix
    empty = EMPTY if any(tensor.array.size == 0 for tensor in given) else ""
    ranks = tuple(tensor.array.ndim for tensor in given)
    if len(given) > 1 and name in BOUND_BY_TENSORS:
        if horizon >= ONE_BOUND and sum(arg.__class__ is Tensor for arg in args) == 2:
            return None
        name, ranks = "aten::clamp", BOUNDED
    told = said(name, dtype + empty, ranks, len(args), horizon)
    if told is None or told == COMPUTES or told.startswith(DIED):
        return None
    kind, _, message = told.partition(": ")
    return raised(kind, message)


def _is_alone(name: str, given: list[Tensor], horizon: Release) -> bool:
    """Whether a call only copies the single element of its tensor."""
    name = name.removesuffix("_")
    return name in ALONE and len(given) == 1 and not given[0].array.ndim and horizon in ALONE[name]


def _computed(name: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """The explicit dtype of a call; None if it has none."""
    told = keywords.get("dtype")
    if told is None and name in BY_PLACE and len(args) > BY_PLACE[name]:
        told = args[BY_PLACE[name]]
    tensor = as_dtype(told)
    return None if tensor is None else tensor.array


def _tensors(values: Iterable[Any]) -> Iterator[Tensor]:
    for value in values:
        if value.__class__ is Tensor:
            yield value
        elif value.__class__ is list:
            yield from (item for item in value if item.__class__ is Tensor)
