"""Runs the graph of an exported program node by node, with the operators of the horizon's release.

Targets are texts: ``torch.ops.aten.add.Tensor`` is an operator with its overload, ``_operator.mul``, ``math.ceil`` and ``torch.sym_max`` are
functions of symbolic numbers, ``torch.ops.higher_order.cond`` takes graphs. All are looked up in tables of this package; nothing is imported
or looked up by attribute.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from torch_compat.errors import Corrupt, Raised, Unsupported
from torch_compat.pickles import cut
from torch_compat.runtime import registry
from torch_compat.runtime.exported.document import Graph, Many, Name
from torch_compat.runtime.exported.symbols import FUNCTIONS
from torch_compat.runtime.tensor import OpaqueTensor, Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torch_compat.runtime.exported.autocast import Autocast
    from torch_compat.runtime.exported.document import Document, Node
    from torch_compat.runtime.horizons import Horizon
    from torch_compat.runtime.values import Steps

__all__ = ["Execution"]

OPERATORS = "torch.ops."
ATEN = "torch.ops.aten."
HIGHER = "torch.ops.higher_order."
MODULES_OF_HIGHER = (
    "torch._higher_order_ops."  # as 2.4 names some of them: torch._higher_order_ops.wrap.wrap_with_set_grad_enabled
)
HIGHER_ORDER_OF_2_1 = frozenset({"cond", "map_impl"})  # targets without "higher_order" before them
DEEPEST = 64  # graphs that call graphs


def _true_division(a: Any, b: Any) -> Any:
    return a / b


def _sum(*numbers: Any) -> Any:
    return sum(numbers)


# Functions of numbers, by the names under which releases write them
NUMBERS: dict[str, Callable[..., Any]] = {
    "_operator.add": lambda a, b: a + b, "_operator.sub": lambda a, b: a - b, "_operator.mul": lambda a, b: a * b,
    "_operator.floordiv": lambda a, b: a // b, "_operator.mod": lambda a, b: a % b, "_operator.truediv": _true_division,
    "_operator.pow": FUNCTIONS["PowByNatural"], "_operator.neg": lambda a: -a, "_operator.pos": lambda a: a, "_operator.abs": abs,
    "_operator.eq": lambda a, b: a == b, "_operator.ne": lambda a, b: a != b, "_operator.lt": lambda a, b: a < b,
    "_operator.le": lambda a, b: a <= b, "_operator.gt": lambda a, b: a > b, "_operator.ge": lambda a, b: a >= b,
    "_operator.and_": lambda a, b: a & b, "_operator.or_": lambda a, b: a | b, "_operator.not_": lambda a: not a,
    "_operator.lshift": FUNCTIONS["LShift"], "_operator.rshift": FUNCTIONS["RShift"], "_operator.xor": lambda a, b: a ^ b,
    "math.ceil": math.ceil, "math.floor": math.floor, "math.trunc": math.trunc, "math.sqrt": math.sqrt,
    "torch.sym_int": math.trunc, "torch.sym_float": float, "torch.sym_not": lambda a: not a, "torch.sym_ite": FUNCTIONS["Where"],
    "torch.sym_max": max, "torch.sym_min": min, "torch.sym_sqrt": math.sqrt, "torch._sym_sqrt": math.sqrt, "torch.sym_sum": _sum,
    "torch._sym_ceil": math.ceil, "torch._sym_floor": math.floor, "builtins.round": FUNCTIONS["RoundDecimal"], "builtins.max": max, "builtins.min": min,
    "torch._sym_log2": math.log2, "torch._sym_cos": math.cos, "torch._sym_sin": math.sin, "torch._sym_exp": math.exp,
}  # fmt: skip
MISFIT = re.compile(
    r"\(\) (missing \d+ required|takes |got (an unexpected|multiple))"
)  # Python's exceptions for arguments that do not fit
PLAIN = frozenset({int, float, bool})


class Execution:
    """The execution of a program.

    Parameters:
        higher_order: the operators that take graphs, by name; each takes this object and the arguments of the node.

    Attributes:
        missing: operators that it calls but the reference reader lacks.
        cast: autocast, while a graph runs under it.
        constants: tensors stored in the graph itself (schema 1), by name.
    """

    def __init__(
        self, document: Document, horizon: Horizon, steps: Steps, where: str, higher_order: Mapping[str, Callable[..., Any]]
    ) -> None:
        self.document = document
        self.horizon = horizon
        self.steps = steps
        self.where = where
        self._higher_order = higher_order
        self.missing: set[str] = set()
        self.depth = 0
        self.constants: dict[str, Any] = {}
        self.cast: Autocast | None = None
        self._calls: dict[str, Callable[..., Any]] = {}
        self._look_up(document.graph)

    def _look_up(self, graph: Graph) -> None:
        """Resolve the target of every node. A missing one raises when called, as in TorchScript releases, and is listed at once."""
        for node in graph.nodes:
            self.call_of(node.target)
            for value in (*node.args, *node.keywords.values()):
                if value.__class__ is Graph:
                    self._look_up(value)

    def call_of(self, target: str) -> Callable[..., Any]:
        """The function that a target names."""
        result = self._calls.get(target)
        if result is None:
            try:
                result = self._found(target)
            except Unsupported as error:
                self.missing.add(target)
                result = _lacking(error)
            self._calls[target] = result
        return result

    def _found(self, target: str) -> Callable[..., Any]:
        if target.startswith(MODULES_OF_HIGHER):
            target = HIGHER + target.rpartition(".")[2]
        if target.startswith(HIGHER):
            call = self._higher_order.get(target.removeprefix(HIGHER))
            if call is None:
                message = (
                    f"the reference reader does not support the higher-order operator {cut(target.removeprefix(HIGHER), 80)!r}"
                )
                raise Unsupported(message, where=self.where, code="operator")
            return lambda *args, **words: call(self, *args, **words)
        if target.startswith(OPERATORS):
            namespace, _, rest = target.removeprefix(OPERATORS).partition(".")
            name = rest.partition(".")[0]
            if not name and namespace in HIGHER_ORDER_OF_2_1:
                return self._found(HIGHER + namespace)
            if not name:
                raise Corrupt(f"calls {cut(target, 80)!r}, which is not an operator", where=self.where, code="bad-program")
            return registry.resolve(f"{namespace}::{name}", self.horizon.release)
        if target == "torch._C._set_grad_enabled":
            return _set_gradient
        if target == "_operator.getitem":
            return _item
        function = NUMBERS.get(target)
        if function is None:
            message = f"the reference reader does not support the function {cut(target, 80)!r}"
            raise Unsupported(message, where=self.where, code="operator")
        return _of_numbers(function, target)

    def run(self, flat: list[Any], tensors: dict[str, tuple[str, Any]]) -> list[Any]:
        """Run the program.

        Parameters:
            flat: the user's inputs, in the order of the graph.
            tensors: parameters, buffers and constants: the kind and the tensor, by name.

        Returns:
            The user's outputs, in the order of the graph. Buffers and inputs that the program mutates are modified.
        """
        given = iter(flat)
        values: dict[str, Any] = dict(self.constants)
        inputs: list[Any] = []
        for name, input_ in zip(self.document.graph.inputs, self.document.inputs, strict=True):
            value = next(given) if input_.kind in {"user_input", "constant_input"} else tensors[input_.target][1]
            inputs.append(value)
            if name is not None:
                values[name] = value
        self.nodes(self.document.graph, values)
        results = [self.value(output, values) for output in self.document.graph.outputs]
        return self._changed(results, values, tensors)

    def _changed(self, results: list[Any], values: dict[str, Any], tensors: dict[str, tuple[str, Any]]) -> list[Any]:
        """Write mutations to buffers and inputs; a result that is written to a tensor becomes that tensor."""
        copy = self.call_of("torch.ops.aten.copy_.default")
        written: dict[str, Any] = {}
        given: list[tuple[Any, Any]] = []
        for output, stated, result in zip(self.document.outputs, self.document.graph.outputs, results, strict=True):
            name = stated.name if stated.__class__ is Name else None
            if output.kind == "user_output":
                given.append((name, result))
                continue
            assert output.target is not None  # noqa: S101 - document.py gives one to every mutation
            into = (
                values.get(output.target) if output.kind == "user_input_mutation" else tensors.get(output.target, (None, None))[1]
            )
            if into.__class__ is not Tensor:
                message = f"changes {cut(output.target, 80)!r}, which is not a tensor of the program"
                raise Corrupt(message, where=self.where, code="bad-program")
            before = into.requires_grad
            into.requires_grad = False  # the copy is made without gradients
            copy(into, result)
            into.requires_grad = before
            if name is not None:
                written[name] = into
        return [written.get(name, result) if name is not None else result for name, result in given]

    def graph(self, graph: Graph, args: list[Any]) -> Any:
        """Run a graph that is an argument of a node.

        Returns:
            Its results as a tuple, or its only one.
        """
        if len(args) != len(graph.inputs):
            message = f"a graph with {len(graph.inputs)} inputs is called with {len(args)}"
            raise Raised(message, code="RuntimeError")
        self.depth += 1
        if self.depth > DEEPEST:
            raise Raised("the program calls its graphs too deeply", code="RuntimeError")
        try:
            values = {name: value for name, value in zip(graph.inputs, args, strict=True) if name is not None}
            self.nodes(graph, values)
            results = tuple([self.value(output, values) for output in graph.outputs])
        finally:
            self.depth -= 1
        return results[0] if graph.single else results

    def nodes(self, graph: Graph, values: dict[str, Any]) -> None:
        """Run the nodes of a graph, and put their results among the values."""
        tick, value, calls = self.steps.tick, self.value, self._calls
        for node in graph.nodes:
            tick()
            args = [value(arg, values) for arg in node.args]
            words = {name: value(keyword, values) for name, keyword in node.keywords.items()}
            if self.cast is not None and node.target.startswith(ATEN):
                args, words = self.cast.around(node.target.removeprefix(ATEN).partition(".")[0], args, words)
            try:
                result = calls[node.target](*args, **words)
            except Raised as error:
                error.where = error.where or node.where
                raise
            except TypeError as error:
                if not MISFIT.search(str(error)):
                    raise
                raise Raised(f"{cut(node.target, 80)}: {error}", where=node.where, code="RuntimeError") from error
            _keep(node, result, values)

    def value(self, stated: Any, values: dict[str, Any]) -> Any:
        """The value of an argument."""
        kind = stated.__class__
        if kind is Name:
            return values[stated.name]
        if kind is Many:
            return [self.value(item, values) for item in stated.items]
        return stated


def _keep(node: Node, result: Any, values: dict[str, Any]) -> None:
    outputs = node.outputs
    if len(outputs) == 1 and outputs[0].__class__ is str:
        if not node.single and result.__class__ in {tuple, list}:
            (result,) = result
        values[outputs[0]] = result
        return
    if not outputs or outputs == (None,):
        return
    if len(outputs) == 1:
        _keep_many(node, outputs[0], result, values)
    else:
        _keep_many(node, outputs, result, values)


def _keep_many(node: Node, names: tuple[Any, ...], results: Any, values: dict[str, Any]) -> None:
    if not isinstance(results, list | tuple) or len(results) < len(names):
        count = len(results) if isinstance(results, list | tuple) else 1
        message = f"states {len(names)} results for {cut(node.target, 80)}, which returns {count}"
        raise Corrupt(message, where=node.where, code="bad-program")
    for name, result in zip(names, results, strict=False):
        if name.__class__ is tuple:
            _keep_many(node, name, result, values)
        elif name is not None:
            values[name] = result


def _of_numbers(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    def call(*given: Any, **named: Any) -> Any:
        numbers = (*given, *named.values())  # by the names of Python's own functions, in their order
        if any(number.__class__ not in PLAIN for number in numbers):
            result = next(number for number in numbers if number.__class__ not in PLAIN)
            if result.__class__ in {Tensor, OpaqueTensor}:
                return _of_tensors(name, numbers)
            raise Raised(f"{name} got a value of type {type(result).__name__}, expected numbers", code="TypeError")
        try:
            product = function(*numbers)
        except ZeroDivisionError as error:
            raise Raised(str(error), code="ZeroDivisionError") from error
        except (OverflowError, ValueError, TypeError) as error:
            raise Raised(str(error), code=type(error).__name__) from error
        if product.__class__ is int and not -(1 << 63) <= product < 1 << 63:
            raise Raised(f"{name} has a value of more than 64 bits", code="RuntimeError")
        return product

    return call


def _of_tensors(name: str, values: tuple[Any, ...]) -> Any:
    result = registry.resolve(f"aten::{name.rpartition('.')[2].rstrip('_')}")
    return result(*values)


def _item(values: Any, place: Any) -> Any:
    if not isinstance(values, list | tuple) or place.__class__ is not int or not -len(values) <= place < len(values):
        raise Raised("list index out of range", code="IndexError")
    return values[place]


def _set_gradient(enabled: Any) -> None:
    registry.grad.enabled = bool(enabled)


def _lacking(error: Unsupported) -> Callable[..., Any]:
    def call(*_: Any, **__: Any) -> Any:
        raise Unsupported(error.message, where=error.where, code=error.code)

    return call
