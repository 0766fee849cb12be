"""Results that require gradients in 1.6 although none of their inputs do.

Before it runs a method, the executor of 1.6 decides by type which values may require gradients, and assumes so for every tensor that it
knows nothing about. The results of differentiated operators then require gradients, whatever the actual inputs are. Measured with 1.6.0:

* This happens only if an argument may require gradients: a list or dict of tensors, an optional tensor, or a module that contains, at any
  depth, a parameter that requires gradients, a list or dict of tensors, or a tensor that the method sets; or if the method resizes a
  tensor that somebody else may hold (:mod:`torch_compat.runtime.language.resizing`), which puts all its inputs and attributes in doubt.
* The tensors in doubt are then those of such a module, those in lists and dicts, the results of operators that take or return a list of
  tensors, and everything computed from tensors in doubt.
* Consecutive operators whose derivatives the executor knows form a group. All results of a group with five or more nodes require
  gradients; no result of a smaller group does. Constants are nodes, and so are the sizes for the sum of gradients after a broadcast.

Not modeled: elements of lists that the method creates, attributes read again after the method has set them, values that are None in another
branch, and constants that two operators share. Methods with branches or loops are not analyzed, since a branch divides groups.
"""

from __future__ import annotations

import dis
from typing import TYPE_CHECKING, Any

from torch_compat.releases.release import Release
from torch_compat.runtime.dtypes import FLOATING
from torch_compat.runtime.tensor import Tensor
from torch_compat.runtime.values import ScriptObject

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType

    from torch_compat.runtime.language.names import FunctionInfo
    from torch_compat.runtime.language.types import Type

SINCE, UNTIL = Release("1.6.0"), Release("1.7.0")

ENOUGH = 5
"""The minimum number of nodes in a differentiated group."""

WITH_TENSOR = {
    "add": 5,
    "sub": 5,
    "mul": 4,
    "div": 4,
    "pow": 4,
    "max": 4,
    "min": 4,
    "where": 5,
    "lerp": 5,
    "addcmul": 5,
    "addmm": 4,
}
"""The number of nodes of an operator with several tensors."""

NODES = {
    **dict.fromkeys(
        (
            "abs", "atan", "ceil", "cos", "dot", "erf", "exp", "floor", "log", "log1p", "matmul", "neg", "reciprocal", "relu", "round", "rsqrt",
            "sigmoid", "sin", "sqrt", "t", "tan", "tanh",
        ),
        1,
    ),
    **dict.fromkeys(
        (
            "add", "bmm", "contiguous", "div", "fmod", "mm", "mul", "permute", "pow", "remainder", "squeeze", "std", "sub", "transpose", "unsqueeze",
        ),
        2,
    ),
    **dict.fromkeys(
        (
            "clamp", "gather", "index_select", "layer_norm", "log_softmax", "logsumexp", "rsub", "softmax", "split", "sum", "topk", "unbind",
        ),
        3,
    ),
    "var": 4,
    **dict.fromkeys(("cat", "embedding", "mean"), 5),
}  # fmt: skip
"""The number of nodes of every other operator whose derivative the executor knows."""

APART = frozenset({"gather", "index_select", "layer_norm", "sum", "topk"})
"""Operators that start their own group."""

LISTS = frozenset({"cat", "stack", "index", "meshgrid", "einsum", "broadcast_tensors", "split", "split_with_sizes", "unbind"})
"""Operators that take or return a list of tensors."""


class Differentiated:
    """Consecutive operators that are differentiated together or not at all.

    Attributes:
        nodes: the number of their nodes.
        made: their results.
    """

    __slots__ = ("made", "nodes")

    def __init__(self) -> None:
        self.nodes = 0
        self.made: list[Tensor] = []


class Doubts:
    """The tensors of one call that may require gradients.

    Attributes:
        known: the tensors by identity, each with the group that produced it, if any.
    """

    __slots__ = ("known",)

    def __init__(self) -> None:
        self.known: dict[int, tuple[Tensor, Differentiated | None]] = {}

    def suspect(self, value: Any) -> None:
        """Mark each tensor in a value as possibly requiring gradients."""
        for tensor in tensors_of(value):
            if not tensor.requires_grad:
                self.known.setdefault(id(tensor), (tensor, None))

    def after(self, name: str, given: list[Any], result: Any) -> None:
        """Decide about the results of an operator that has been called."""
        tensors = [item for value in given for item in tensors_of(value)]
        doubted = [outcome for item in tensors if (outcome := self.known.get(id(item))) is not None]
        if not (doubted or name in LISTS) or name == "detach":
            return
        theirs = {id(item) for item in tensors}
        results = [item for item in tensors_of(result) if id(item) not in theirs]
        nodes = NODES.get(name) if len(tensors) < 2 else WITH_TENSOR.get(name, NODES.get(name))
        if nodes is None:
            self.known.update((id(item), (item, None)) for item in results)
            return
        group = Differentiated()
        group.nodes = nodes
        group.made = results
        before = [] if name in APART else [item for _, item in doubted if item is not None]
        for joined in {id(item): item for item in before}.values():
            group.nodes += joined.nodes
            group.made = [*joined.made, *group.made]
        whole = group.nodes >= ENOUGH and not (name == "cat" and any(item.dtype.category < FLOATING for item in tensors))
        for tensor in group.made:
            if whole and tensor.dtype.category >= FLOATING:
                tensor.requires_grad, tensor.is_leaf = True, False
                self.known.pop(id(tensor), None)
            else:
                self.known[id(tensor)] = (tensor, group)


def doubts_of(release: Release, object_: ScriptObject, info: FunctionInfo, args: list[Any], types: list[Type]) -> Doubts | None:
    """The initial doubts of a method call; None if there are none."""
    if not SINCE <= release < UNTIL or _branches(info.call.__code__):
        return None
    written = _written(object_, info)
    doubts = Doubts()
    reason = info.resizes_shared
    for value, type_ in zip(args, types, strict=False):
        if info.resizes_shared or _holds_tensors(type_) or (type_.kind == "Optional" and type_.args[0].kind == "Tensor"):
            doubts.suspect(value)
            reason = True
        elif any(tensor.requires_grad for tensor in tensors_of(value)):
            reason = True
    seen: dict[int, bool] = {}
    reason = _look_at(object_, written, doubts, seen, doubtful=info.resizes_shared) or reason
    return doubts if reason else None


def _look_at(
    object_: ScriptObject, written: frozenset[str], doubts: Doubts, seen: dict[int, bool], *, doubtful: bool = False
) -> bool:
    """Whether a module object may require gradients; if so, put the tensors that it and its submodules hold in doubt.

    Parameters:
        doubtful: whether it may for another reason.
    """
    if id(object_) in seen:
        return seen[id(object_)]
    seen[id(object_)] = False
    own: list[Any] = []
    for name, type_ in zip(object_.info.attributes, object_.info.types(), strict=True):
        value = getattr(object_, "a_" + name, None)
        if isinstance(value, ScriptObject):
            doubtful = _look_at(value, written, doubts, seen) or doubtful
        elif type_.kind == "Tensor" or (type_.kind == "Optional" and type_.args[0].kind == "Tensor"):
            own.append(value)
            doubtful = doubtful or name in written or any(tensor.requires_grad for tensor in tensors_of(value))
        elif _holds_tensors(type_):
            own.append(value)
            doubtful = True
    if doubtful:
        for value in own:
            doubts.suspect([tensor for tensor in tensors_of(value) if tensor.dtype.category >= FLOATING])
    seen[id(object_)] = doubtful
    return doubtful


def _holds_tensors(type_: Type) -> bool:
    return type_.kind in {"List", "Dict"} and any(arg.kind == "Tensor" or _holds_tensors(arg) for arg in type_.args)


def tensors_of(value: Any) -> Iterator[Tensor]:
    """The tensors in a value. Each container is visited once, since shared containers can nest exponentially often."""
    waiting, seen = [value], set()
    while waiting:
        item = waiting.pop()
        if item.__class__ is Tensor:
            yield item
        elif item.__class__ in {list, tuple, dict} and id(item) not in seen:
            seen.add(id(item))
            waiting += reversed(list(item.values() if item.__class__ is dict else item))


def _written(object_: ScriptObject, info: FunctionInfo) -> frozenset[str]:
    """The names of the attributes that a method, or a method that it calls, sets on any object."""
    methods: dict[str, list[FunctionInfo]] = {}
    waiting, seen = [object_], set()
    while waiting:
        item = waiting.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        for name, method in item.info.methods.items():
            methods.setdefault("m_" + name, []).append(method)
        waiting += [value for value in item.__dict__.values() if isinstance(value, ScriptObject)]
    names: set[str] = set()
    asked: list[FunctionInfo] = [info]
    known = {id(info)}
    while asked:
        for name, sets in _names_of(asked.pop().call.__code__):
            if sets:
                names.add(name.removeprefix("a_"))
            for method in methods.get(name, ()):
                if id(method) not in known:
                    known.add(id(method))
                    asked.append(method)
    return frozenset(names)


def _branches(code: CodeType) -> bool:
    """Whether a method branches, loops, or has run-time checks: a branch divides groups, and the division of the nodes is not known."""
    return any("JUMP" in instruction.opname for instruction in dis.get_instructions(code))


def _names_of(code: CodeType) -> Iterator[tuple[str, bool]]:
    """Yield ``(name, whether it is set)`` for each attribute that compiled source reads or sets."""
    for instruction in dis.get_instructions(code):
        if instruction.opname == "STORE_ATTR":
            yield str(instruction.argval), True
        elif instruction.opname in {"LOAD_ATTR", "LOAD_METHOD"}:
            yield str(instruction.argval), False
