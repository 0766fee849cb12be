"""Results that require gradients as of the second call of a method, in 1.11 and newer, although they depend on no such tensor.

The first call of a method profiles it. If an operator of that call got a tensor that requires gradients, the executor then collects the
operators whose derivatives it knows (:data:`MEMBERS`) into differentiated groups, and later calls run these groups. Measured with releases
from 1.11.0 to 2.15.0:

* Operators that read each other's results are in the same group. An operator joins a group only if no path from the group to the operator,
  or back, leads through an operator outside of it. Lists of tensors, and numbers that are read from tensors, are outside of every group.
* A group has at least two operators.
* If a result of a group is a view of an input or of another result of the group, the operator that returns the view and the
  operators that depend on it are not in the group.
* Up to 1.12, all floating-point results of a group require gradients.
* As of 1.13, a result requires gradients only if the backward pass of its group keeps it and uses its gradient. The gradient is used if the
  operator has a tensor that requires gradients, or if the operator or one before it in the group has a backward pass that is never removed
  (:data:`LIVE`). A backward pass keeps operands or results (:data:`OPERAND`, :data:`ALL_OPERANDS`, :data:`OTHER_OPERAND`,
  :data:`RESULT`). The operator of a result that is read more than once outside of the group has no backward pass.

Each call of a method without branches runs the same operators. The second call is recorded, and later calls use its outcome.

Not modeled, so results are those of the first call: methods that branch, loop, print, set attributes, write in place, change lists, or
disable gradients; parts of a tensor (:data:`PARTS`); division with a rounding mode, which is a member; a tensor that an operator returns
unchanged and several operators read; and arguments that require gradients in only some calls.

1.7 to 1.10 form groups as well, by other rules, but few if their fuser is off, as it is in the readers of this project
(:data:`torch_compat.readers.torch_release.DETERMINISM`): there, results are those of the first call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch_compat.releases.release import Release
from torch_compat.runtime.dtypes import FLOATING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.runtime.tensor import Tensor

KEPT_ONLY = Release("1.13.0")
"""As of this release, only results that the backward pass keeps require gradients."""
ENOUGH = 2
"""The minimum number of operators in a group."""

MEMBERS = frozenset({
    "abs", "acos", "adaptive_avg_pool1d", "adaptive_avg_pool2d", "add", "addcmul", "addmm", "asin", "atan", "avg_pool2d", "batch_norm", "bmm", "cat", "ceil",
    "clamp", "contiguous", "cos", "cosh", "div", "dot", "embedding", "erf", "erfc", "exp", "expm1", "floor", "fmod", "frac", "gelu",
    "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "layer_norm", "leaky_relu", "lerp", "linear", "log", "log10", "log1p", "log2", "log_softmax", "logsumexp", "matmul", "mean",
    "mm", "mul", "mv", "neg", "permute", "pow", "reciprocal", "relu", "relu6", "remainder", "round", "rsqrt", "rsub", "sigmoid", "sin", "sinh",
    "softmax", "softplus", "sqrt", "squeeze", "stack", "std", "sub", "t", "tan", "tanh", "threshold", "trunc", "type_as", "unsqueeze", "var", "where",
})  # fmt: skip
"""Operators whose derivatives the executor knows."""
MEMBERS_SINCE = {"silu": KEPT_ONLY}
"""Operators whose derivatives it knows as of a release."""
MEMBERS_OF_2_0, TWO, TWO_END = frozenset({"gather", "index_select"}), Release("2.0.0"), Release("2.1.0")
OF_TWO_TENSORS = frozenset({"max", "min"})
"""Operators whose derivatives it knows only for two tensors."""
OF_NUMBERS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "fmod", "remainder"})
"""Operators whose derivatives it knows only if the second operand is a number."""
VIEWS = frozenset({"contiguous", "permute", "squeeze", "t", "unsqueeze"})
"""Members whose result may be a view of their operand."""

PARTS = frozenset({"chunk", "split", "split_with_sizes", "tensor_split", "unbind"})
"""Operators that return parts of a tensor, which are not modeled unless the tensor requires gradients."""

LIVE = frozenset({"adaptive_avg_pool1d", "addmm", "bmm", "cat", "logsumexp", "matmul", "mm", "stack", "std", "var"})
"""Members whose backward pass is not removed if nobody needs the gradients of their operands; also ``mean`` along dimensions."""
OPERAND = frozenset({
    "abs", "acos", "asin", "atan", "batch_norm", "clamp", "cos", "cosh", "erf", "erfc", "gather", "gelu", "hardshrink", "hardsigmoid",
    "hardswish", "hardtanh", "index_select", "layer_norm", "leaky_relu", "log", "log10", "log1p", "log2", "log_softmax", "max", "min", "pow",
    "silu", "sin", "sinh", "softmax", "threshold",
})  # fmt: skip
"""Members that keep their operand for its own gradient."""
ALL_OPERANDS = frozenset({"addmm", "bmm", "logsumexp", "matmul", "mm", "std", "var"})
"""Members that always keep their operands."""
OTHER_OPERAND = frozenset({"addcmul", "div", "dot", "linear", "mul", "mv"})
"""Members that keep an operand for the gradient of another operand; a divisor is also kept for its own gradient."""
RESULT = frozenset({
    "exp", "expm1", "hardswish", "leaky_relu", "log_softmax", "logsumexp", "reciprocal", "relu", "relu6", "rsqrt", "sigmoid", "softmax",
    "softplus", "sqrt", "std", "tan", "tanh",
})  # fmt: skip
"""Members that keep their result."""

LIST, NEW, RETURN = "[]", "new", "return"
"""Names of nodes that are not operators of tensors: lists, new tensors, and the method's result."""


STEPS = 10_000_000
"""Steps from operator to operator after which groups count as not modeled; a chain of 1,000 operators needs fewer."""


class TooManySteps(Exception):  # noqa: N818 - no error: results are those of the first call
    """The graph of a call is too dense for its groups to be found in bounded time."""


class Operation:
    """An operator of a recorded call.

    Attributes:
        name: its name.
        inputs: the values that it reads, by number; a value that it reads twice occurs twice.
        results: the values that it returns.
        member: whether the executor knows its derivative.
        live: whether its backward pass is never removed.
        maybe: numbers read from tensors that it may depend on.
        passes: how many of its inputs pass the requirement of gradients on to its results; None if all do.
    """

    __slots__ = ("inputs", "live", "maybe", "member", "name", "passes", "results")

    def __init__(
        self, name: str, inputs: list[int], *, member: bool = False, live: bool = False, passes: int | None = None
    ) -> None:
        self.name = name
        self.inputs = inputs
        self.results: list[int] = []
        self.maybe: list[int] = []
        self.member = member
        self.live = live
        self.passes = passes


class Groups:
    """The operators of a recorded call with their groups.

    Attributes:
        nodes: the operators whose results are read, in order.
        maker: the operator that returns a value, by number of the value.
        readers: the operators that read it, once for each time.
        group: the group of an operator.
    """

    def __init__(self, release: Release, nodes: list[Operation], values: list[Tensor], same: set[int]) -> None:
        self.release = release
        self.values = values
        self.same = same
        self.nodes = self._read(nodes)
        self.maker = {value: at for at, node in enumerate(self.nodes) for value in node.results}
        self.readers: dict[int, list[int]] = {}
        for at, node in enumerate(self.nodes):
            for value in node.inputs:
                self.readers.setdefault(value, []).append(at)
        self.group: dict[int, set[int]] = {}
        self._left = STEPS

    def _pay(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise TooManySteps

    @staticmethod
    def _read(nodes: list[Operation]) -> list[Operation]:
        """Copies of the operators whose results are read; executors remove the others."""
        needed: set[int] = set()
        results = []
        for node in reversed(nodes):
            if node.name == RETURN or not needed.isdisjoint(node.results):
                needed.update(node.inputs)
                copied = Operation(node.name, list(node.inputs), member=node.member, live=node.live, passes=node.passes)
                copied.results = node.results
                results.append(copied)
        return results[::-1]

    def required(self) -> set[int]:
        """The values that require gradients in later calls only.

        Raises:
            TooManySteps: finding the groups would take more than :data:`STEPS`.
        """
        self._collect()
        groups = list({id(group): group for group in self.group.values()}.values())
        for group in groups:
            while self._leave(group):
                pass
        groups = [group for group in groups if len(group) >= ENOUGH]
        self.group = {at: group for group in groups for at in group}
        if any(len(self.readers.get(value, ())) > 1 for value in self.same):
            return set()  # it is not known which of the values is read
        return self._spread()

    def _collect(self) -> None:
        """Collect the members into groups: from the last to the first, each takes in the makers of its inputs."""
        self.group = {at: {at} for at, node in enumerate(self.nodes) if node.member}
        changed = True
        while changed:
            changed = False
            for at in range(len(self.nodes) - 1, -1, -1):
                while (group := self.group.get(at)) is not None and self._take_in(group):
                    changed = True

    def _take_in(self, group: set[int]) -> bool:
        self._pay(sum(len(self.nodes[at].inputs) for at in group) + len(group))
        makers = {self.maker[value] for at in group for value in self.nodes[at].inputs if value in self.maker}
        for maker in sorted(makers - group, reverse=True):
            other = self.group.get(maker)
            if other is not None and not self._around(other, group):
                group |= other
                for at in other:
                    self.group[at] = group
                return True
        return False

    def _around(self, start: set[int], end: set[int]) -> bool:
        """Whether an operator outside of two groups depends on the first and is read by the second."""
        waiting = [reader for at in start for reader in self._next(at) if reader not in end and reader not in start]
        seen = set(waiting)
        while waiting:
            at = waiting.pop()
            for step in self.group.get(at, {at}):
                for reader in self._next(step):
                    if reader in end:
                        return True
                    if reader not in seen and reader not in start:
                        seen.add(reader)
                        waiting.append(reader)
        return False

    def _next(self, at: int) -> list[int]:
        """The operators that read a result of an operator, once for each time."""
        readers = [reader for value in self.nodes[at].results for reader in self.readers.get(value, ())]
        self._pay(len(readers) + 1)
        return readers

    def _outside(self, value: int, group: set[int]) -> int:
        """How often a value is read outside of a group."""
        readers = self.readers.get(value, ())
        self._pay(len(readers))
        return sum(at not in group for at in readers)

    def _leave(self, group: set[int]) -> bool:
        """Remove views that leave a group from it; whether there were any."""
        bases: dict[int, int] = {}
        left: set[int] = set()
        for at in sorted(group):
            value = self.nodes[at].results[0]
            if not self._outside(value, group):
                continue
            base, maker = value, at
            while maker in group and self.nodes[maker].name in VIEWS:
                base = self.nodes[maker].inputs[0]
                maker = self.maker.get(base, -1)
            if maker not in group or base in bases:
                left.add(at)
            bases[base] = at
        waiting = list(left)
        while waiting:
            for reader in self._next(waiting.pop()):
                if reader in group and reader not in left:
                    left.add(reader)
                    waiting.append(reader)
        group -= left
        return bool(left)

    def _spread(self) -> set[int]:
        """Run the groups and the other operators, each after those that it depends on."""
        new: set[int] = set()
        waiting = {at: {self.maker[value] for value in node.inputs if value in self.maker} for at, node in enumerate(self.nodes)}
        while waiting:
            ready = [at for at in waiting if not self._blocked(at, waiting)]
            if not ready:
                return set()
            for at in ready:
                if at not in waiting:
                    continue
                group = sorted(self.group.get(at, {at}))
                inputs = {value for step in group for value in self.nodes[step].inputs}
                if at in self.group and new.isdisjoint(inputs):
                    new |= self._results(self.group[at])
                else:  # a group whose inputs do not require what they did runs operator by operator
                    for step in group:
                        self._pass(self.nodes[step], new)
                for step in group:
                    del waiting[step]
        return new

    def _blocked(self, at: int, waiting: dict[int, set[int]]) -> bool:
        group = self.group.get(at, {at})
        self._pay(sum(len(waiting[step]) + 1 for step in group))
        return any(maker in waiting and maker not in group for step in group for maker in waiting[step])

    def _pass(self, node: Operation, new: set[int]) -> None:
        passing = node.inputs if node.passes is None else node.inputs[: node.passes]
        if not new.isdisjoint(passing):
            new.update(value for value in node.results if node.name == LIST or self._floating(value))

    def _results(self, group: set[int]) -> set[int]:
        """The results of a group that require gradients."""
        results = {at: self.nodes[at].results[0] for at in sorted(group)}
        if self.release < KEPT_ONLY:
            return {value for value in results.values() if self._floating(value)}
        differentiated = {
            value: self.values[value].requires_grad or self._outside(value, group) < ENOUGH for value in results.values()
        }
        used: set[int] = {
            value
            for at in group
            for value in self.nodes[at].inputs
            if self.maker.get(value, -1) not in group and self.values[value].requires_grad
        }
        for at, value in results.items():
            node = self.nodes[at]
            if differentiated[value] and (node.live or not used.isdisjoint(node.inputs)):
                used.add(value)
        kept = {
            value for at, result in results.items() if differentiated[result] for value in _kept(self.nodes[at], result, used)
        }
        return {value for value in kept & used & set(results.values()) if self._floating(value)}

    def _floating(self, value: int) -> bool:
        return self.values[value].dtype.category >= FLOATING


def _kept(node: Operation, result: int, used: set[int]) -> Iterator[int]:
    """The values that the backward pass of a member keeps."""
    needed = node.live or not used.isdisjoint(node.inputs)
    if node.name in RESULT and needed:
        yield result
    for at, value in enumerate(node.inputs):
        others = node.inputs[:at] + node.inputs[at + 1 :]
        if (
            node.name in ALL_OPERANDS
            or (node.name in OPERAND and needed)
            or (node.name in OTHER_OPERAND and not used.isdisjoint(others))
            or (node.name == "div" and at == 1 and value in used)
        ):
            yield value
