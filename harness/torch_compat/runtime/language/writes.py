"""Which calls in the source of a function write in place, and which variables its statements read and set."""

from __future__ import annotations

import ast
from collections import defaultdict
from typing import TYPE_CHECKING

from torch_compat.torchscript.parser import dotted, nodes_of

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "ASSIGNMENTS", "CONTAINERS", "FRESH", "JUMPS", "MOST_NAMES", "VARIABLES", "carried", "in_place", "names_in", "operator_of", "targets_of",
    "written",
]  # fmt: skip

CONTAINERS = frozenset({
    "append", "clear", "extend", "insert", "pop", "popitem", "remove", "reverse", "setdefault", "update", "_set_item", "__setitem__",
    "Delete", "__delitem__",
})  # fmt: skip
"""Operators that mutate their container argument and may store their other arguments in it."""
IN_PLACE = frozenset({"__iand__", "__ilshift__", "__ior__", "__irshift__", "__ixor__"})
FRESH = frozenset({
    "add", "addbmm", "addcdiv", "addcmul", "addmm", "addmv", "all", "any", "arange", "argmax", "argmin", "baddbmm", "batch_norm", "bmm",
    "cat", "clamp", "clone", "conv1d", "conv2d", "conv3d", "convolution", "cos", "cumsum", "div", "embedding", "empty", "empty_like", "eq",
    "erf", "exp", "eye", "floor", "full", "full_like", "gather", "ge", "gelu", "group_norm", "gt", "hann_window", "index_select",
    "layer_norm", "le", "leaky_relu", "linear", "linspace", "log", "log_softmax", "logical_not", "lt", "masked_fill", "matmul", "mean",
    "mm", "mul", "ne", "neg", "ones", "ones_like", "pow", "prod", "rand", "randn", "relu", "rsub", "sigmoid", "sin", "softmax", "sqrt",
    "stack", "sub", "sum", "tanh", "tensor", "tril", "triu", "where", "zeros", "zeros_like",
})  # fmt: skip
"""Operators that return a new tensor in every release; the result of any other operator may alias its arguments."""
NAMESPACES = frozenset({"aten", "prim", "quantized"})
ASSIGNMENTS = (ast.Assign, ast.AnnAssign)
VARIABLES = (ast.Name, ast.Tuple)
JUMPS = (ast.Break, ast.Continue, ast.Return)
MOST_NAMES = 40
"""The number of variables through which an alias is followed."""


def operator_of(call: ast.Call) -> str | None:
    """The operator that a call invokes, without its namespace; None if it does not call an operator."""
    name = dotted(call.func)
    if name.startswith("torch."):
        return name.rpartition(".")[2]
    space, _, rest = name.removeprefix("ops.").partition(".")
    return rest if name.startswith("ops.") and space in NAMESPACES else None


def in_place(operator: str) -> bool:
    """Whether an operator writes to its first argument and returns it."""
    return operator in IN_PLACE or (operator.endswith("_") and not operator.endswith("__"))


def written(operator: str | None) -> bool:
    """Whether an operator mutates its arguments."""
    return operator is not None and (operator == "sort" or operator in CONTAINERS or in_place(operator))


def targets_of(node: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    """The targets of an assignment."""
    return node.targets if isinstance(node, ast.Assign) else [node.target]


def names_in(node: ast.AST) -> frozenset[str]:
    """The names in a node."""
    return frozenset(item.id for item in nodes_of(node) if isinstance(item, ast.Name))


def carried(body: list[ast.stmt], reads: Callable[[ast.AST], frozenset[str]]) -> set[str]:
    """The variables that a loop's body reads before it sets them, and sets: a release takes them for read.

    Parameters:
        reads: returns the names in a node.
    """
    read: set[str] = set()
    written: dict[str, int] = defaultdict(int)
    for node in body:
        if isinstance(node, ast.Assign) and all(isinstance(entry, VARIABLES) for entry in node.targets):
            read |= {name for name in reads(node.value) if not written[name]}
            for target in node.targets:
                for name in reads(target):
                    written[name] += 1
        else:
            read |= {name for name in reads(node) if not written[name]}
            for item in nodes_of(node):
                if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store):
                    read |= {item.id}
                    written[item.id] += 1
    return {name for name in read if written[name]}
