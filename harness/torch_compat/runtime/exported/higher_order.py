"""Higher-order operators: those that take graphs.

Each function takes the execution and the arguments of the node. Others are refused by name: custom kernels, flexible attention, effects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch_compat.errors import Raised
from torch_compat.releases.release import Release
from torch_compat.runtime import registry
from torch_compat.runtime.exported.autocast import Autocast
from torch_compat.runtime.exported.document import Graph
from torch_compat.runtime.tensor import Tensor
from torch_compat.runtime.values import bounded

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch_compat.runtime.exported.execution import Execution

__all__ = ["FUNCTIONS"]


COPIES = Release("2.9.0")  # the first whose while_loop returns no argument itself
WITHOUT_DIRECTION = Release("2.7.0")  # the first whose scan takes no dimension and no direction
TAKES_LISTS = Release("2.7.0")  # the first whose while_loop takes what its own loader gives it


def _graph(value: Any) -> Graph:
    if value.__class__ is not Graph:
        raise Raised(f"a higher-order operator got a value of type {type(value).__name__}, expected a graph", code="TypeError")
    graph: Graph = value
    return graph


def _items(value: Any) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list | tuple):
        raise Raised(f"a higher-order operator got a value of type {type(value).__name__}, expected a list", code="TypeError")
    return list(value)


def _truth(value: Any) -> bool:
    return bool(value.item()) if value.__class__ is Tensor else bool(value)


def _all(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def cond(run: Execution, pred: Any, true_fn: Any, false_fn: Any, operands: Any = ()) -> Any:
    """``cond(pred, true_graph, false_graph, operands)``."""
    given = _items(operands)
    results = run.graph(_graph(true_fn if _truth(pred) else false_fn), given)
    _mark(results, given)
    return results


def _mark(results: Any, given: list[Any]) -> None:
    """Results of graphs that are differentiated as a whole require gradients if an operand does."""
    if registry.grad.enabled and any(item.__class__ is Tensor and item.requires_grad for item in given):
        for tensor in _all(results):
            if tensor.__class__ is Tensor and tensor.dtype.category >= registry.FLOATING:
                tensor.requires_grad, tensor.is_leaf = True, False


def while_loop(run: Execution, cond_fn: Any, body_fn: Any, carried: Any, additional: Any = ()) -> Any:
    """``while_loop(cond_graph, body_graph, carried, additional)``: the carried values when the condition is false."""
    if run.horizon.release < TAKES_LISTS:
        raise Raised("carried_inputs must be a tuple, got <class 'list'>", code="RuntimeError")
    values, more = _items(carried), _items(additional)
    while True:
        run.steps.tick()
        (holds,) = _all(run.graph(_graph(cond_fn), [*values, *more]))
        if not _truth(holds):
            return tuple(_copied(run, values, _items(carried)))
        values = list(_all(run.graph(_graph(body_fn), [*values, *more])))


def _copied(run: Execution, values: list[Any], given: list[Any]) -> list[Any]:
    """A loop without iterations returns its arguments, which releases since 2.9 copy."""
    if run.horizon.release < COPIES:
        return values
    clone = run.call_of("torch.ops.aten.clone.default")
    known = {id(item) for item in given}
    return [clone(value) if value.__class__ is Tensor and id(value) in known else value for value in values]


def map_(run: Execution, fn: Any, xs: Any, *args: Any) -> Any:
    """``map_impl(graph, tensors, more)``: the graph on each row of the tensors, results stacked. 2.1 and 2.2 have ``(graph, count, *tensors, *more)``."""
    if xs.__class__ is int:
        tensors, more = list(args[:xs]), list(args[xs:])
    else:
        tensors, more = _items(xs), _items(args[0]) if args else []
    if not tensors or any(tensor.__class__ is not Tensor or not tensor.ndim for tensor in tensors):
        raise Raised("map() expects tensors with at least one dimension", code="RuntimeError")
    count = tensors[0].shape[0]
    bounded(count)
    rows = []
    for place in range(count):
        run.steps.tick()
        rows.append(_all(run.graph(_graph(fn), [*_row(run, tensors, 0, place), *more])))
    return tuple(_stacked(run, rows, 0))


def scan(run: Execution, fn: Any, init: Any, xs: Any, *rest: Any, additional_inputs: Any = ()) -> Any:
    """``scan(graph, init, xs, additional)``: 2.6 has ``dim`` and ``reverse`` before the additional arguments."""
    if len(rest) >= 2 and run.horizon.release >= WITHOUT_DIRECTION:
        message = f"ScanOp.__call__() takes 5 positional arguments but {len(rest) + 4} were given"
        raise Raised(message, code="TypeError")
    dim, back = (rest[0], rest[1]) if len(rest) >= 2 else (0, False)
    more = _items(rest[-1]) if rest and isinstance(rest[-1], list | tuple) else _items(additional_inputs)
    carried, tensors = _items(init), _items(xs)
    if not tensors or any(tensor.__class__ is not Tensor or not tensor.ndim for tensor in tensors):
        raise Raised("scan() expects tensors with at least one dimension", code="RuntimeError")
    count = tensors[0].shape[dim]
    bounded(count)
    rows = []
    for place in range(count):
        run.steps.tick()
        at = count - 1 - place if back else place
        results = list(_all(run.graph(_graph(fn), [*carried, *_row(run, tensors, dim, at), *more])))
        carried = results[: len(carried)]
        rows.append(tuple(results[len(carried) :]))
    if back:
        rows.reverse()
    return (*carried, *_stacked(run, rows, 0))


def _row(run: Execution, tensors: list[Tensor], dim: int, place: int) -> list[Any]:
    select = run.call_of("torch.ops.aten.select.int")
    return [select(tensor, dim, place) for tensor in tensors]


def _stacked(run: Execution, rows: list[tuple[Any, ...]], dim: int) -> list[Any]:
    stack = run.call_of("torch.ops.aten.stack.default")
    return [stack(list(column), dim) if column[0].__class__ is Tensor else None for column in zip(*rows, strict=True)]


def with_gradient(run: Execution, enabled: Any, fn: Any, *args: Any) -> Any:
    """``wrap_with_set_grad_enabled(enabled, graph, *args)``."""
    before = registry.grad.enabled
    registry.grad.enabled = bool(enabled)
    try:
        return run.graph(_graph(fn), list(args))
    finally:
        registry.grad.enabled = before


def with_autocast(run: Execution, device: Any, dtype: Any, enabled: Any, cache: Any, fn: Any, *args: Any) -> Any:
    """``wrap_with_autocast(device_type, dtype, enabled, cache_enabled, graph, *args)``."""
    del cache
    if device != "cpu":
        return run.graph(_graph(fn), list(args))
    before, run.cast = run.cast, Autocast(run.call_of("torch.ops.aten.to.dtype"), dtype) if enabled else None
    try:
        return run.graph(_graph(fn), list(args))
    finally:
        run.cast = before


def wrapped(run: Execution, fn: Any, *args: Any, **_: Any) -> Any:
    """``wrap(graph, *args)``, ``strict_mode(graph, args)``, ``checkpoint``."""
    return run.graph(_graph(fn), list(args))


def strict_mode(run: Execution, fn: Any, operands: Any) -> Any:
    """``strict_mode(graph, operands)``."""
    return run.graph(_graph(fn), _items(operands))


def subgraph(run: Execution, fn: Any, identifier: Any, *operands: Any) -> Any:
    """``invoke_subgraph(graph, identifier, *operands)``; 2.6 gives the operands as one tuple."""
    del identifier
    if len(operands) == 1 and isinstance(operands[0], list | tuple):
        operands = tuple(operands[0])
    return run.graph(_graph(fn), list(operands))


def hinted(run: Execution, fn: Any, args: Any, *_: Any, **__: Any) -> Any:
    """``hints_wrapper(graph, args, kwargs, hints)``."""
    return run.graph(_graph(fn), _items(args))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "cond": cond, "while_loop": while_loop, "map_impl": map_, "map": map_, "scan": scan, "wrap_with_set_grad_enabled": with_gradient,
    "wrap_with_autocast": with_autocast, "wrap": wrapped, "strict_mode": strict_mode, "invoke_subgraph": subgraph,
    "hints_wrapper": hinted, "tag_activation_checkpoint": wrapped, "wrap_activation_checkpoint": wrapped,
}  # fmt: skip
