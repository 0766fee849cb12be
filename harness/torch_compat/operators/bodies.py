"""Bodies of upgraders: which operators a body calls, as far as its source alone tells.

A body is one TorchScript function. It calls operators as ``torch.name(...)``, as ``torch.ops.space.name(...)`` or as methods of tensors.
"""

from __future__ import annotations

import ast

from torch_compat.errors import UsageError
from torch_compat.torchscript.parser import NO_SOURCE, dotted, parse

__all__ = ["called", "is_call_itself"]


def _parsed(body: str) -> ast.Module:
    try:
        return parse(body)
    except NO_SOURCE as error:
        raise UsageError(f"the body is not TorchScript: {error}", code="upgrader") from None


def is_call_itself(body: str, operator: str) -> bool:
    """Whether the body of an upgrader is just the old call: the operator with the parameters unchanged.

    Parameters:
        operator: qualified name, with or without overload.

    Raises:
        UsageError: the body is not TorchScript.
    """
    tree = _parsed(body)
    function = tree.body[0] if tree.body else None
    last = function.body[0] if isinstance(function, ast.FunctionDef) and len(function.body) == 1 else None
    call = last.value if isinstance(last, ast.Return) else None
    if not isinstance(function, ast.FunctionDef) or not isinstance(call, ast.Call):
        return False
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    taken = [*function.args.args, *function.args.kwonlyargs]
    plain = [arg.id if isinstance(arg, ast.Name) else "" for arg in given] == [arg.arg for arg in taken]
    return plain and called(body) == (operator.partition(".")[0],)


def called(body: str) -> tuple[str, ...]:
    """The operators called by the body of an upgrader: qualified names without overload, each once, in order.

    Raises:
        UsageError: the body is not TorchScript.
    """
    tree = _parsed(body)
    results: dict[str, None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            space = node.func.value
            ours = isinstance(space, ast.Attribute) and dotted(space.value) == "torch.ops"
            results[f"{space.attr if ours and isinstance(space, ast.Attribute) else 'aten'}::{node.func.attr}"] = None
    return tuple(results)
