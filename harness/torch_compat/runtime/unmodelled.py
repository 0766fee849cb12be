"""Calls of operators that the reference reader answers with *unsupported*, because it is known to follow no release there.

Each entry names operators, the releases, the calls and the reason. What a release computes in such a call rests on its own defects
(memory that was never written, numbers of one type read as those of another), which no program of a model means.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from torch_compat.errors import Unsupported
from torch_compat.releases.sets import ReleaseSet
from torch_compat.runtime.dtypes import BFLOAT16, FLOAT16, as_dtype
from torch_compat.runtime.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch_compat.releases.release import Release

__all__ = ["ENTRIES", "UnmodelledCalls", "checked", "entries_of"]

Calls = tuple[Any, ...]


class UnmodelledCalls(NamedTuple):
    """Calls that are not modelled.

    Attributes:
        operators: a pattern of their names without ``aten::``, which matches the whole name.
        releases: those of which the calls are not modelled.
        applies: whether a call, its arguments by position and by name, is one of them.
        reason: why it is not modelled.
    """

    operators: str
    releases: ReleaseSet
    applies: Callable[[Calls, dict[str, Any]], bool]
    reason: str


def _first(args: Calls) -> Any:
    return args[0].array if args and args[0].__class__ is Tensor else None


def _gaps(value: Any) -> bool:
    return value.__class__ is Tensor and not value.array.flags.c_contiguous


def _is_complex(args: Calls, keywords: dict[str, Any]) -> bool:
    return any(one.__class__ is Tensor and one.array.dtype.kind == "c" for one in (*args, *keywords.values()))


def _number_of_another_type(args: Calls, _keywords: dict[str, Any]) -> bool:
    """A tensor of integers that is overwritten, compared with a float."""
    array = _first(args)
    return array is not None and array.dtype.kind in "iub" and len(args) > 1 and args[1].__class__ is float


def _empty(args: Calls, _keywords: dict[str, Any]) -> bool:
    array = _first(args)
    return array is not None and not array.size


def _empty_whole(args: Calls, keywords: dict[str, Any]) -> bool:
    return _empty(args, keywords) and keywords.get("dim", args[1] if len(args) > 1 else []) in ([], (), None)


def _unsorted(args: Calls, keywords: dict[str, Any]) -> bool:
    return keywords.get("sorted", args[1] if len(args) > 1 else True) is False


def _gaps_in_weight(args: Calls, keywords: dict[str, Any]) -> bool:
    return _gaps(keywords.get("weight", args[4] if len(args) > 4 else None))


def _reduced_into(args: Calls, keywords: dict[str, Any]) -> bool:
    return "out" in keywords and keywords.get("reduction", args[2] if len(args) > 2 else 1) != 0


def _codes(args: Calls, _keywords: dict[str, Any]) -> bool:
    return any(one.__class__ is int and one < 0 for one in args)


def _negative_count(args: Calls, _keywords: dict[str, Any]) -> bool:
    """A shift by a negative number, or by some."""
    count = args[1] if len(args) > 1 else 0
    if count.__class__ is Tensor:
        return bool(count.array.dtype.kind == "i" and count.array.size and (count.array < 0).any())
    return count.__class__ is int and count < 0


def _points_by_cubes(args: Calls, keywords: dict[str, Any]) -> bool:
    return keywords.get("interpolation_mode", args[2] if len(args) > 2 else 0) == 2


def _below_zero(args: Calls, keywords: dict[str, Any]) -> bool:
    return any(one.__class__ in {int, float} and one < 0 for one in (*args[2:4], keywords.get("rtol"), keywords.get("atol")))


def _kept_of_one(args: Calls, keywords: dict[str, Any]) -> bool:
    array = _first(args)
    return array is not None and not array.ndim and bool(keywords.get("keepdim", args[2] if len(args) > 2 else False))


def _whole_dtype(_args: Calls, keywords: dict[str, Any]) -> bool:
    found = as_dtype(keywords.get("dtype"))
    return found is not None and found.category < FLOAT16.category


def _any_whole(args: Calls, _keywords: dict[str, Any]) -> bool:
    return any(one.__class__ is Tensor and one.array.dtype.kind in "iub" for one in args)


def _bytes_below_zero(args: Calls, keywords: dict[str, Any]) -> bool:
    array = _first(args)
    bounds = (*args[1:3], keywords.get("min"), keywords.get("max"))
    return array is not None and array.dtype.kind == "u" and any(one.__class__ in {int, float} and one < 0 for one in bounds)


def _entry(operators: str, releases: str, applies: Any, reason: str) -> UnmodelledCalls:
    return UnmodelledCalls(operators, ReleaseSet.parse(releases), applies, reason)


ENTRIES: Final = (
    _entry("(eq|ne|lt|le|gt|ge|not_equal|less|less_equal|greater|greater_equal)_", "1.3.0..<1.6.0", _number_of_another_type,
           "compares integers in place with a float, where 1.3 to 1.5 read the bytes of one type as another"),
    _entry("__i?lshift__|bitwise_left_shift_?", "..<2.1.0", _negative_count, "shifts by a negative number, of which C++ defines nothing"),
    _entry("__i?rshift__|bitwise_right_shift_?", "..<1.7.0", _negative_count, "shifts by a negative number, of which C++ defines nothing"),
    _entry("take", "1.8.0..<1.9.0", lambda args, _: len(args) > 1 and _gaps(args[1]), "reads the gaps of indices that are a view"),
    _entry("addr_?", "1.7.0..<1.8.0", lambda _, keywords: keywords.get("beta", 1) == 0, "takes no account of the shape of what it adds nothing of"),
    _entry("amax|amin", "1.9.0..<1.12.0", _empty_whole, "gives the largest of nothing: memory that nobody wrote"),
    _entry("tensordot", "1.8.0..<1.9.0", lambda _, keywords: "out" in keywords, "gives nothing in out="),
    _entry("norm_except_dim", "1.6.0..", _is_complex, "takes the norm of complex numbers in a type that varies with the release"),
    _entry("not_equal_|ne_|eq_", "1.6.0..<2.1.0", _is_complex, "overwrites complex numbers with what compares them"),
    _entry("grid_sampler(_2d)?", "..<1.8.0", _points_by_cubes, "samples by cubic polynomials, which came with 1.8: memory that nobody wrote"),
    _entry("isclose|allclose", "..<1.5.0", _below_zero, "takes a tolerance below zero"),
    _entry("pop", "..<1.4.0", lambda args, _: bool(args) and args[0].__class__ is dict, "gives the value of the key that comes next in a hash table"),
    _entry("sorted", "..<1.5.0", lambda args, _: bool(args) and args[0].__class__ is list and any(one.__class__ is Tensor for one in args[0]),
           "sorts tensors, and the list that it is given with them"),
    _entry("index_put", "1.6.0..<1.13.0", lambda args, _: bool(args) and _gaps(args[0]), "writes into the tensor that is to stay as it is, where it is a view with gaps"),
    _entry("norm", "1.8.0..<2.1.0", lambda args, keywords: _is_complex(args, keywords) and keywords.get("dtype") is not None,
           "takes the norm of complex numbers in another type: memory that nobody wrote"),
    _entry("aminmax", "1.10.0..<2.6.0", _kept_of_one, "keeps a dimension of a tensor without dimensions"),
    _entry("nanmean", "1.10.0..<2.13.0", _whole_dtype, "takes a mean in a type of integers"),
    _entry("cosine_similarity", "1.12.0..<2.1.0", _any_whole, "divides integers by their length in their own type"),
    _entry("native_dropout", "1.11.0..<1.12.0", lambda args, _: len(args) > 2 and args[2] is False, "gives a mask of floats where nothing is dropped"),
    _entry("ScalarImplicit", "1.6.0..<1.8.0", _is_complex, "gives the real part of a complex number"),
    _entry("bin", "..<2.13.0", lambda args, _: args[:1] == (-(1 << 63),), "writes the least integer, which has no absolute value"),
    _entry("baddbmm", "2.0.0..<2.1.0", lambda _, keywords: keywords.get("beta", 1) == 0, "adds nothing of memory that nobody wrote, which may be NaN"),
    _entry("(clamp|clip|clamp_min)_?", "2.14.0..", _bytes_below_zero, "cuts bytes below a negative number, which changes between 2.13 and 2.15"),
    _entry("_local_scalar_dense", "..", _empty, "gives the number of a tensor without elements: memory of somebody else"),
    _entry("_unique|_unique2", "..<2.2.0", _unsorted, "lists distinct elements without sorting them, in the order of a hash table"),
    _entry("_cat", "..<1.8.0", lambda args, _: len(args) > 1 and args[1].__class__ is int and args[1] < 0,
           "joins along a negative dimension, which is read as a large one"),
    _entry("multi_margin_loss", "1.4.0..<2.6.0", _gaps_in_weight, "reads the gaps of a weight that is a view"),
    _entry("smooth_l1_loss", "1.3.0..<1.7.0", _reduced_into, "reduces into out=, whose shape stays as it was"),
    _entry("can_cast|promote_types", "1.3.0..", _codes, "takes a number for a dtype that none has"),
    _entry("norm|dist|std|var|std_mean|var_mean|frobenius_norm|nuclear_norm|logsumexp", "1.6.0..<1.9.0", _is_complex,
           "reduces complex numbers, of which 1.6 to 1.8 make numbers of other types from release to release"),
    _entry("abs_|absolute_", "1.6.0..<1.8.0", _is_complex, "overwrites complex numbers with their absolute values"),
    _entry("(arc|a)(sin|cos)_?", "1.6.0..<2.13.0", _is_complex, "takes an arc of complex numbers, which releases up to 2.12 round in a way of their own"),
    _entry("erfinv_?", "1.6.0..<1.7.0", lambda args, _: _first(args) is not None and _first(args).dtype == BFLOAT16.array, "gives nothing but zeros of bfloat16"),
)  # fmt: skip


def entries_of(name: str, horizon: Release) -> list[UnmodelledCalls]:
    """The entries that may apply to an operator at a horizon."""
    short = name.removeprefix("aten::")
    return [one for one in ENTRIES if horizon in one.releases and re.fullmatch(one.operators, short)]


def checked(name: str, call: Callable[..., Any], horizon: Release) -> Callable[..., Any]:
    """An operator that refuses calls which are not modelled; the same where all are.

    Raises:
        Unsupported: from the operator that is returned.
    """
    found = entries_of(name, horizon)
    if not found:
        return call

    def check(*args: Any, **keywords: Any) -> Any:
        for one in found:
            if one.applies(args, keywords):
                raise Unsupported(f"{name} {one.reason}", code="operator")
        return call(*args, **keywords)

    return check
