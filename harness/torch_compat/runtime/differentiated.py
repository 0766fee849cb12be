"""Record the operators of a method's second call, to know which results require gradients as of it (:mod:`torch_compat.runtime.groups`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch_compat.releases.release import Release
from torch_compat.runtime.doubts import tensors_of
from torch_compat.runtime.groups import (
    LIST,
    LIVE,
    MEMBERS,
    MEMBERS_OF_2_0,
    MEMBERS_SINCE,
    NEW,
    OF_NUMBERS,
    OF_TWO_TENSORS,
    PARTS,
    RETURN,
    TWO,
    TWO_END,
    Groups,
    Operation,
    TooManySteps,
)
from torch_compat.runtime.straight import divides, objects
from torch_compat.runtime.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from torch_compat.runtime.language.names import FunctionInfo
    from torch_compat.runtime.values import ScriptObject

__all__ = ["Differentiation", "Recording", "require"]

SINCE = Release("1.11.0")
MOST_OPERATORS, MOST_READS, MOST_ELEMENTS = 1000, 20_000, 1 << 22
"""Calls with more operators, or operators that read more tensors or return more elements altogether, are not modeled."""


class Recording:
    """The operators of one call and the tensors that they read and return.

    Attributes:
        failed: whether the call does something that is not modeled.
    """

    __slots__ = (
        "_constants", "_elements", "_given", "_known", "_made", "_nodes", "_numbers", "_read", "_reads", "_release", "_same", "_used", "_values", "failed",
    )  # fmt: skip

    def __init__(self, release: Release, given: list[Tensor], *, sized: bool) -> None:
        """Begin with the tensors of the arguments and the attributes.

        Parameters:
            sized: whether an argument is a number, so that tensors of a given size are not constants.
        """
        self.failed = False
        self._release = release
        self._given = {id(tensor) for tensor in given}
        self._nodes: list[Operation] = []
        self._values: list[Tensor] = list(given)  # keeps the tensors, so that identities stay unique
        self._numbers = {id(tensor): number for number, tensor in enumerate(given)}
        self._known: dict[Any, list[int]] = {}  # operators with equal arguments are computed once
        self._made: set[int] = set()  # values that operators returned
        self._same: set[int] = set()  # those that are the same tensor as another of them
        self._constants: set[int] = set()  # computed from constants before the program runs
        self._read: list[int] = []  # numbers that were read from tensors
        self._elements = 0
        self._reads = 0
        self._used = False
        if sized:
            self._read.append(self._new(Tensor(0)))

    def value(self, tensor: Tensor) -> int:
        """The number of a tensor's value; a tensor that is neither given nor returned by an operator of tensors gets a new number."""
        number = self._numbers.get(id(tensor))
        if number is None:
            number = self._add(tensor)
            if self._read:  # its size or its elements may depend on a tensor
                node = Operation(NEW, [])
                node.results.append(number)
                self._nodes.append(node)
            else:
                self._constants.add(number)
        return number

    def _add(self, tensor: Tensor) -> int:
        number = self._new(tensor)
        self._numbers[id(tensor)] = number
        self._elements += tensor.numel
        return number

    def _new(self, tensor: Tensor) -> int:
        self._values.append(tensor)
        return len(self._values) - 1

    def after(self, name: str, args: tuple[Any, ...], keywords: dict[str, Any], result: Any, passes: int | None) -> None:
        """Record an operator that has been called.

        Parameters:
            passes: how many of its tensors pass the requirement of gradients on to its results; None if all do.
        """
        if self.failed:
            return
        given = [*args, *keywords.values()]
        tensors = [item for value in given for item in tensors_of(value)]
        results = list(tensors_of(result))
        if not tensors:
            return
        writes = (name.endswith("_") and not name.startswith("__")) or "out" in keywords
        parts = name in PARTS and not tensors[0].requires_grad
        self._reads += len(tensors)
        much = len(self._nodes) > MOST_OPERATORS or self._reads > MOST_READS or self._elements > MOST_ELEMENTS
        if writes or parts or much:
            self.failed = True
            self._values.clear()  # nothing reads them any more
            return
        if name != "detach" and any(item.requires_grad for item in tensors):
            self._used = True
        numbers = [self.value(item) for item in tensors]
        if self._constants.issuperset(numbers):
            self._constants.update(self._add(item) for item in results)
            return
        theirs = {id(item) for item in tensors}
        key = (name, *map(self._key, given), *keywords)
        known = self._known.get(key)
        if known is not None and len(known) == len(results):
            self._numbers.update(
                (id(item), number) for item, number in zip(results, known, strict=True) if id(item) not in theirs
            )
            self._values += results  # keeps them
            return
        node = self._node(name, args, keywords, result, passes)
        same = [item for item in results if id(item) in theirs]
        if same and not node.member and self._made.isdisjoint(self.value(item) for item in same):
            return
        for value in given:
            if value.__class__ is Tensor:
                node.inputs.append(self.value(value))
            elif value.__class__ in {list, tuple} and any(True for _ in tensors_of(value)):
                node.inputs.append(self._list(value))
        if any(value.__class__ in {int, float} or value.__class__ is list for value in given):
            node.maybe = list(self._read)
            self._reads += len(node.maybe)
        if not results:
            node.results.append(self._new(Tensor(0)))
            self._read += node.results
        for item in results:
            copied = id(item) in theirs and self.value(item) in self._made and not item.requires_grad
            node.results.append(self._add(item))
            if copied:
                self._same.update(node.results)
        self._made.update(node.results)
        self._nodes.append(node)
        self._known[key] = node.results

    def _node(self, name: str, args: tuple[Any, ...], keywords: dict[str, Any], result: Any, passes: int | None) -> Operation:
        second = args[1] if len(args) > 1 else keywords.get("other")
        number = second.__class__ in {int, float, bool}
        member = result.__class__ is Tensor and (
            (name in OF_NUMBERS and number)
            or (name in MEMBERS and name not in OF_NUMBERS)
            or (name in OF_TWO_TENSORS and second.__class__ is Tensor)
            or (name in MEMBERS_SINCE and self._release >= MEMBERS_SINCE[name])
            or (name in MEMBERS_OF_2_0 and TWO <= self._release < TWO_END)
        )
        if keywords.get("rounding_mode") is not None:
            member = False
        live = name in LIVE or (name == "mean" and second.__class__ is list)
        return Operation(name, [], member=member, live=live, passes=passes)

    def _list(self, items: Any) -> int:
        """The number of a list of tensors, which is a value of its own."""
        tensors = list(tensors_of(items))
        node = Operation(LIST, [self.value(item) for item in tensors])
        number = self._new(Tensor(0, requires_grad=any(item.requires_grad for item in tensors)))
        node.results.append(number)
        self._nodes.append(node)
        return number

    def _key(self, value: Any) -> Any:
        if value.__class__ is Tensor:
            return ("tensor", self.value(value))
        if value.__class__ in {list, tuple}:
            return tuple(object() if item.__class__ in {list, tuple} else self._key(item) for item in value)
        # any other value equals no other: it may be gone, and its identity may be that of a later one
        return (value.__class__, value) if value.__class__ in {int, float, bool, str, complex, type(None)} else object()

    def outcome(self, result: Any) -> tuple[int, ...]:
        """The positions of the tensors in the method's result that require gradients although nothing that they depend on does."""
        if self.failed or not self._used:
            return ()
        leaves = list(_leaves(result))
        numbers = [self._numbers.get(id(item), -1) for item in leaves]
        asked = [at for at, item in enumerate(leaves) if numbers[at] in self._made and id(item) not in self._given]
        if all(leaves[at].requires_grad for at in asked):
            return ()
        self._nodes.append(Operation(RETURN, [number for number in numbers if number >= 0]))
        try:
            required = self._required()
            if any(node.maybe for node in self._nodes):  # whether an operator got a number that was read before is not known
                for node in self._nodes:
                    node.inputs += node.maybe
                if required != self._required():
                    return ()
        except TooManySteps:
            return ()
        return tuple(at for at in asked if numbers[at] in required)

    def _required(self) -> set[int]:
        return Groups(self._release, self._nodes, self._values, self._same).required()


class Differentiation:
    """The methods of a program that have been called, each with the outcome of its second call.

    Attributes:
        release: the release of the horizon.
    """

    __slots__ = ("_outcomes", "release")

    def __init__(self, release: Release) -> None:
        self.release = release
        # None: the next call is recorded. The functions are kept, so that identities stay unique.
        self._outcomes: dict[int, tuple[FunctionInfo, tuple[int, ...] | None]] = {}

    def begin(self, object_: ScriptObject, info: FunctionInfo, args: list[Any]) -> Recording | None:
        """The recording for a call of a method; None if the call needs none."""
        if self._outcomes.get(id(info), (info, ()))[1] is not None:
            return None
        if divides(object_, info):
            self._outcomes[id(info)] = (info, ())
            return None
        return Recording(
            self.release, _held(object_, args), sized=any(value.__class__ in {int, float, bool, list} for value in args)
        )

    def end(self, object_: ScriptObject, info: FunctionInfo, args: list[Any], recording: Recording | None, result: Any) -> None:
        """Make tensors of a call's result require gradients."""
        if self.release < SINCE:
            return
        if id(info) not in self._outcomes:
            possible = any(tensor.requires_grad for tensor in _reached(object_, args))
            self._outcomes[id(info)] = (info, None if possible else ())
            return
        outcome = self._outcomes[id(info)][1]
        if outcome is None:
            outcome = () if recording is None else recording.outcome(result)
            self._outcomes[id(info)] = (info, outcome)
        if outcome:
            require(result, outcome)


def _held(object_: ScriptObject, args: list[Any]) -> list[Tensor]:
    """The tensors of the arguments, and those of a module and of the modules in it."""
    return list({id(tensor): tensor for tensor in _reached(object_, args)}.values())


def _reached(object_: ScriptObject, args: list[Any]) -> Iterator[Tensor]:
    return tensors_of([args, *(value for item in objects(object_) for value in item.__dict__.values())])


def require(result: Any, positions: Iterable[int]) -> None:
    """Make the tensors at some positions of a result require gradients."""
    tensors = list(_leaves(result))
    for at in positions:
        if at < len(tensors) and not tensors[at].requires_grad:
            tensors[at].requires_grad, tensors[at].is_leaf = True, False


def _leaves(value: Any) -> Iterator[Tensor]:
    """The tensors in a result, including those in named tuples."""
    waiting, seen = [value], set()
    while waiting:
        item = waiting.pop()
        if item.__class__ is Tensor:
            yield item
        elif isinstance(item, dict | list | tuple) and id(item) not in seen:
            seen.add(id(item))
            waiting += reversed(list(item.values() if isinstance(item, dict) else item))
