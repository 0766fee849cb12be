"""The registry of operators, by name, kind of the first argument, and release.

A function implements all overloads of an operator that have the same kind of first argument. Its parameters have the names, order and
defaults of the schemas; keyword-only arguments of the schemas are keyword-only parameters::

    @operator("aten::add")                              # Tensor add.Tensor, add.Scalar, add.out
    def add(self: Tensor, other: Tensor | Scalar, alpha: Scalar = 1, *, out: Tensor | None = None) -> Tensor: ...

    @operator("aten::add", of="scalar")                 # int, float and bool of TorchScript
    def add_scalars(a: Scalar, b: Scalar) -> Scalar: ...

    @operator("aten::gelu", since="1.12.0")             # behavior as of this release; an older version is registered separately
    def gelu_1_12(self: Tensor, *, approximate: str = "none") -> Tensor: ...

The function for a call is chosen once, when the program is compiled.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.errors import Raised, Unsupported
from torch_compat.releases.release import Release
from torch_compat.runtime import registration
from torch_compat.runtime.border import INTERNAL, Border
from torch_compat.runtime.iterated import arranging
from torch_compat.runtime.libraries import with_libraries
from torch_compat.runtime.limits import meter
from torch_compat.runtime.operators._common import into
from torch_compat.runtime.out_dtypes import refuse_outs
from torch_compat.runtime.registration import OUTS, Grad, grad, operator
from torch_compat.runtime.tensor import Array, OpaqueTensor, Tensor, dense, owner

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch_compat.runtime.registration import Version

__all__ = ["NEWEST", "OUTS", "Grad", "grad", "implementations", "known", "lacking", "operator", "resolve"]

NEWEST = Release("9999.0.0")
FLOATING = 2
ONTO_STRIDED = frozenset({"aten::add", "aten::sub"})
"""Operators that accept a sparse tensor as the second operand of a strided one."""
LOOKED_AT = 1 << 16  # a tensor with more elements is charged to the budget when an operator reads it
VARKEYWORDS = 0x08  # of a code object: takes **keywords

KINDS: dict[type, str] = {Tensor: "tensor", OpaqueTensor: "opaque", int: "scalar", float: "scalar", bool: "scalar", complex: "scalar", list: "list", dict: "dict", str: "str", tuple: "tuple"}  # fmt: skip


_resolved: dict[tuple[str, Release], Callable[..., Any]] = {}
_discovered = False


def known() -> dict[str, dict[str, tuple[Release, ...]]]:
    """All registered operators: kinds of the first argument, and the releases at which the versions start."""
    _discover()
    return {
        name: {kind: tuple(version.since for version in versions) for kind, versions in sorted(kinds.items())}
        for name, kinds in sorted(registration.registered.items())
    }


def implementations(name: str) -> list[dict[str, Any]]:
    """The history of an operator in this reader, one row per kind of first argument; empty if the operator is not implemented.

    Each row is JSON-serializable and has the versions, oldest first, and the calls that are not modeled.
    """
    from torch_compat.runtime.unmodelled import not_modelled  # noqa: PLC0415 - it reads what is recorded, which few programs need

    _discover()
    calls = [{"spans": str(entry.releases), "reason": entry.reason} for entry in not_modelled(name)]
    return [
        {
            "operator": name,
            "first_argument": kind,
            "versions": [_version(version) for version in versions],
            "not_modelled": calls if kind == "tensor" else [],
        }
        for kind, versions in sorted(registration.registered.get(name, {}).items())
    ]


def _version(version: Version) -> dict[str, Any]:
    """The start release, the source location, and the first docstring line of a version or of the function that makes it (or None)."""
    function = inspect.unwrap(version.function)
    maker = getattr(sys.modules[function.__module__], function.__qualname__.partition(".")[0], None)
    documented = next((result for item in (function, maker) if (result := inspect.getdoc(item))), None)
    return {
        "since": str(version.since),
        "file": function.__module__.removeprefix("torch_compat.").replace(".", "/") + ".py",
        "line": function.__code__.co_firstlineno,
        "summary": documented.partition("\n")[0] if documented else None,
    }


def resolve(name: str, horizon: Release = NEWEST) -> Callable[..., Any]:
    """The function that a program calls for an operator at this horizon.

    Raises:
        Unsupported: the operator is not implemented; the message names it.
    """
    result = _resolved.get((name, horizon))
    if result is None:
        _discover()
        result = _resolved[name, horizon] = _dispatcher(name, horizon)
    return result


def lacking(error: Unsupported) -> Callable[..., Any]:
    """A placeholder for an operator that is not implemented: raises the error when it is called, not before."""

    def call(*_: Any, **__: Any) -> Any:
        raise Unsupported(error.message, code=error.code)

    return call


def _discover() -> None:
    global _discovered  # noqa: PLW0603 - done once for the process
    if _discovered:
        return
    from torch_compat.runtime import operators  # noqa: PLC0415 - they import this module

    for module in pkgutil.iter_modules(operators.__path__):
        importlib.import_module(f"{operators.__name__}.{module.name}")  # our own files only
    _discovered = True


def _dispatcher(name: str, horizon: Release) -> Callable[..., Any]:
    calls: dict[str, Callable[..., Any]] = {}
    names: dict[str, str] = {}  # names of the first parameters
    for kind, versions in registration.registered.get(name, {}).items():
        usable = [item for item in versions if item.since <= horizon]
        if usable:
            version = usable[-1]
            names[kind] = next(iter(inspect.signature(version.function).parameters), "")
            if kind in {"tensor", "scalar"}:
                calls[kind] = _bordered(version.function, kind, name.rpartition("::")[2], horizon, tracks=version.gradient)
            else:
                calls[kind] = _taking_out(version.function, name.rpartition("::")[2], horizon)
    if not calls:
        raise Unsupported(f"the reference reader has no operator {name}", code="operator")
    single = len(calls) == 1 and (calls.keys() <= {"any", "tensor"})
    return _guarded(name, next(iter(calls.values())) if single else _by_kind(name, calls, names), horizon, lists="list" in calls)


def _guarded(name: str, call: Callable[..., Any], horizon: Release, *, lists: bool) -> Callable[..., Any]:
    from torch_compat.runtime.empty_batches import refusing_empty_batches  # noqa: PLC0415 - few programs have them
    from torch_compat.runtime.halves import guarded  # noqa: PLC0415 - it reads what is recorded, which few programs need
    from torch_compat.runtime.kinds_refused import refusing_kinds  # noqa: PLC0415 - the same
    from torch_compat.runtime.partial_writes import writing_before_errors  # noqa: PLC0415 - few programs have them
    from torch_compat.runtime.unmodelled import checked  # noqa: PLC0415 - likewise

    call = writing_before_errors(name, with_libraries(name, call, horizon))
    call = refusing_kinds(name, refusing_empty_batches(name, call, horizon))
    return checked(name, guarded(name, call, horizon, lists=lists), horizon)


def _by_kind(name: str, calls: dict[str, Callable[..., Any]], names: dict[str, str]) -> Callable[..., Any]:
    rest = calls.get("any") or calls.get("tensor")
    by_class = {cls: calls[kind] for cls, kind in KINDS.items() if kind in calls}
    tensor, scalar = calls.get("tensor"), calls.get("scalar")
    two, onto = tensor is not None and scalar is not None, name in ONTO_STRIDED

    def found_by_keyword(keywords: dict[str, Any]) -> Callable[..., Any]:
        """The function whose first parameter is given by keyword and has the right kind."""
        for kind, call in calls.items():
            if names[kind] in keywords and by_class.get(keywords[names[kind]].__class__, rest) is call:
                return call
        raise Raised(f"{name} is called without its first argument", code="RuntimeError")

    def dispatch(*args: Any, **keywords: Any) -> Any:
        if not args:
            return found_by_keyword(keywords)(**keywords)
        first = args[0]
        result = by_class.get(first.__class__, rest)
        if two and result is scalar:
            second = args[1] if len(args) > 1 else keywords.get("other")
            if second.__class__ is Tensor:
                result = tensor
        elif onto and result is tensor and len(args) > 1 and args[1].__class__ is OpaqueTensor:
            result = calls.get("opaque", result)
        if result is None:
            raise Unsupported(
                f"the reference reader does not support the operator {name} for a value of type {type(first).__name__}",
                code="operator",
            )
        return result(*args, **keywords)

    return dispatch


def _outless(function: Callable[..., Any]) -> frozenset[str]:
    """The names of the out tensors that a function does not take itself; empty if it takes ``out``."""
    code = getattr(function, "__code__", None)
    if code is None or code.co_flags & VARKEYWORDS:
        return frozenset()
    taken = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return frozenset() if "out" in taken else OUTS.difference(taken)


def _given(function: Callable[..., Any], names: frozenset[str], args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Call a function without ``out`` parameters and write its results into the given out tensors."""
    targets = [keywords.pop(name) for name in list(keywords) if name in names]
    result = function(*args, **keywords)
    if not targets:
        return result
    if any(target.__class__ is not Tensor for target in targets):
        raise Raised("out=... is not a tensor", code="RuntimeError")
    results = result if isinstance(result, tuple) else (result,)
    written = tuple(into(target, part.array) for target, part in zip(targets, results, strict=True))
    return written if isinstance(result, tuple) else written[0]


VIEWS_OF_LEAVES, PARTS = Release("1.8.0"), Release("1.9.0")
"""As of these releases, views of leaves, and views from operators that return several tensors, cannot be modified in place if they require gradients."""
OF_FIRST = frozenset({
    "to", "type_as", "expand_as", "view_as", "reshape_as", "fake_quantize_per_tensor_affine", "fake_quantize_per_tensor_affine_cachemask",
})  # fmt: skip
"""Operators whose results depend on the first argument alone as far as gradients are concerned."""
FIRST_TRACKED = {
    **dict.fromkeys(
        (
            "_native_batch_norm_legit", "_native_batch_norm_legit_functional", "_native_batch_norm_legit_no_training",
            "_scaled_dot_product_flash_attention", "_scaled_dot_product_flash_attention_for_cpu", "log_sigmoid_forward", "native_batch_norm",
            "nll_loss2d_forward", "nll_loss_forward",
        ),
        Release("1.0.0"),
    ),
    "native_layer_norm": Release("1.10.0"),
}  # fmt: skip
"""Operators of which only the first result requires gradients, and the release since which this holds: additional statistics, buffers and
weights do not require gradients."""


def _refuse_write(target: Tensor, horizon: Release) -> None:
    """Refuse an in-place write that autograd forbids.

    Raises:
        Raised: the target is a leaf, a view of one, or one of several views.
    """
    if target.is_leaf:
        raise Raised("a leaf Variable that requires grad is being used in an in-place operation.", code="RuntimeError")
    if target.of_several and (target.of_several == "unbind" or horizon >= PARTS):
        raise Raised(
            f"a view of {target.of_several} is being modified inplace. This view is the output of a function that returns multiple views.",
            code="RuntimeError",
        )
    if target.of_leaf and horizon >= VIEWS_OF_LEAVES:
        raise Raised("a view of a leaf Variable that requires grad is being used in an in-place operation.", code="RuntimeError")


_REFUSES_OVERLAP = {
    name: Release(since)
    for since, names in {
        "1.3.0": (
            "copy_", "add_", "sub_", "mul_", "div_", "pow_", "lerp_", "addcmul_", "addcdiv_", "eq_", "ne_", "lt_", "le_", "gt_", "ge_",
            "__iadd__", "__isub__", "__imul__", "__idiv__",
        ),
        "1.4.0": ("bitwise_xor_", "logical_xor_", "__ixor__"),
        "1.5.0": (
            "remainder_", "fmod_", "floor_divide_", "bitwise_and_", "bitwise_or_", "logical_and_", "logical_or_", "__iand__", "__ior__",
        ),
        "1.7.0": ("atan2_", "hypot_", "copysign_", "masked_fill_"),
    }.items()
    for name in names
}  # fmt: skip
"""The first release that refuses to write to a tensor that partially shares memory with another argument."""
OTHER_ORDER = Release("1.10.0")
"""As of this release, the same memory in a different order is refused as well."""


def _refuse_overlap(target: Array, source: Array, horizon: Release) -> None:
    """Refuse to write to memory that partially overlaps an argument. Like torch, compare only the bounds of tensors without holes.

    Raises:
        Raised: the bounds of the two tensors overlap partially.
    """
    if not np.may_share_memory(target, source) or not (dense(target) and dense(source)):
        return
    same = target.ctypes.data == source.ctypes.data and target.nbytes == source.nbytes
    if not same or (horizon >= OTHER_ORDER and target.strides != source.strides):
        raise Raised(
            "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. "
            "Please clone() the tensor before performing the operation.",
            code="RuntimeError",
        )


def _relate(result: Any, source: Tensor, name: str) -> None:
    """Record the base of each view of a tensor that requires gradients."""
    if result.__class__ is Tensor:
        if result is not source and owner(result.array) is owner(source.array):
            result.of_leaf = source.is_leaf or source.of_leaf
            result.of_several = name or source.of_several
    elif result.__class__ is list or result.__class__ is tuple:
        for item in result:
            _relate(item, source, name or "several")


LOOKS = frozenset({
    "size", "sym_size", "dim", "ndimension", "numel", "sym_numel", "is_floating_point", "is_complex", "is_signed", "is_same_size", "element_size",
    "requires_grad_",
})  # fmt: skip
"""Operators that only use sizes and dtypes, which tensors without an array also have."""


def _without_numbers(name: str, value: Any) -> Unsupported:
    """The error for an operator on values that gets a tensor without an array."""
    drawn = next((item.parts["drawn"] for item in (value,) if item.__class__ is OpaqueTensor and "drawn" in item.parts), None)
    if drawn is not None:
        return Unsupported(f"the reference reader does not support random numbers: {drawn}", code="operator")
    return Unsupported(
        f"the reference reader does not support aten::{name} for a sparse, nested or quantized tensor", code="operator"
    )


def _bordered(function: Callable[..., Any], kind: str, name: str, horizon: Release, *, tracks: bool) -> Callable[..., Any]:
    """Wrap a function: check its arguments, write its results into ``out`` if given, and track gradients.

    Parameters:
        kind: the kind of the first argument, ``tensor`` or ``scalar``.
        name: the name of the operator, for messages.
        tracks: whether floating-point results require gradients if an argument does.
    """
    names = _outless(function)
    border = Border(function, kind, name)
    writes = name.endswith("_") and not name.startswith("__") and name not in {"requires_grad_", "detach_"}
    apart = horizon >= _REFUSES_OVERLAP[name] if name in _REFUSES_OVERLAP else False
    only_first, first_tracked = name in OF_FIRST, name in FIRST_TRACKED and horizon >= FIRST_TRACKED[name]
    part = name if name in {"unbind", "chunk", "split", "split_with_sizes", "tensor_split"} else ""
    places, most = border.places, len(border.places)
    outs = names | getattr(function, "outs", frozenset())
    arrange = arranging(name, horizon)

    def call(*args: Any, **keywords: Any) -> Any:
        requires = False
        if len(args) > most:
            raise border.refuse(args)
        for value, (classes, items) in zip(args, places, strict=False):
            cls = value.__class__
            if cls is Tensor:
                if value.requires_grad or (grad.written and grad.reaches(value)):
                    requires = True
                if value.array.size > LOOKED_AT:
                    meter.read(value.array.size)
            elif cls not in classes:
                raise border.refuse(args)
            elif cls is list or cls is tuple:
                held = set(map(type, value))
                if items is not None and not items.issuperset(held):
                    raise border.refuse(args)
                if OpaqueTensor in held:
                    raise _without_numbers(name, value)
                if Tensor in held and cls is list and value[0].__class__ is Tensor:
                    requires = requires or any(item.__class__ is Tensor and item.requires_grad for item in value)
            elif cls is OpaqueTensor and name not in LOOKS:
                raise _without_numbers(name, value)
        if only_first:
            requires = bool(args) and args[0].__class__ is Tensor and args[0].requires_grad
        if writes and requires and grad.enabled and args and args[0].__class__ is Tensor and args[0].requires_grad:
            _refuse_write(args[0], horizon)
        if apart:
            for other in args[1:]:
                if other.__class__ is Tensor and other is not args[0]:
                    _refuse_overlap(args[0].array, other.array, horizon)
        if keywords:
            border.check_words(keywords, outs)
            for word, value in keywords.items():
                cls = value.__class__
                if cls is OpaqueTensor:
                    raise _without_numbers(name, keywords)
                if (cls is Tensor or cls is list) and not requires and word not in outs:
                    requires = _requires(value)
            if not OUTS.isdisjoint(keywords):
                refuse_outs(name, horizon, function, args, keywords)
            result = _given(function, names, args, keywords)
        else:
            result = function(*args)
        if arrange is not None and (result.__class__ is not Tensor or result.array.ndim > 1):
            arrange(result, args, keywords)
        if grad.recording is not None:
            grad.record(name, args, keywords, result, (1 if only_first else None) if tracks else 0)
        if requires and tracks and grad.enabled:
            first = args[0] if args else None
            if first.__class__ is Tensor and first.requires_grad:
                if result is first and not writes:
                    return result  # unchanged, even if it is a leaf
                _relate(result, first, part)
            _mark(result[0] if first_tracked else result)
            if args and result is args[0] and result.requires_grad and not result.is_detached:  # in place
                grad.write(result)
        elif grad.doubts is not None and tracks and grad.enabled:
            grad.doubts.after(name, [*args, *keywords.values()], result)
        return result

    return call


def _requires(value: Any) -> bool:
    """Whether a keyword argument is a tensor that requires gradients, or a list that contains such a tensor."""
    if value.__class__ is list:
        return any(item.__class__ is Tensor and item.requires_grad for item in value)
    return value.__class__ is Tensor and value.requires_grad


def _taking_out(function: Callable[..., Any], name: str, horizon: Release) -> Callable[..., Any]:
    """Wrap a function of Python values, which need no checks."""
    names = _outless(function)
    own = INTERNAL.intersection(inspect.signature(function).parameters)
    if not names and not own:
        return function

    def call(*args: Any, **keywords: Any) -> Any:
        if not own.isdisjoint(keywords):
            raise Raised(f"there is no argument {min(own.intersection(keywords))}", code="RuntimeError")
        if not OUTS.isdisjoint(keywords):
            refuse_outs(name, horizon, function, args, keywords)
        return _given(function, names, args, keywords) if keywords else function(*args)

    return call


def _mark(result: Any) -> None:
    if result.__class__ is Tensor:
        if result.dtype.category >= FLOATING:
            result.requires_grad = True
            result.is_leaf = False
    elif result.__class__ is list or result.__class__ is tuple:
        for item in result:
            _mark(item)
