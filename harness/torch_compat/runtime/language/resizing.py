"""Finds methods that resize or overwrite a tensor that somebody else may hold.

Before it runs a method, the executor of 1.6 forgets the known properties of every tensor that may share memory with a tensor that the method
resizes, in which it includes the target of ``copy_`` and of ``out=``. The inputs and the attributes of the module are among these tensors
if the target is one of them, or an element of the tuple or list that the method returns. Measured in 1.6.0 with about 60 methods.
"""

from __future__ import annotations

import ast

from torch_compat.torchscript.parser import dotted

__all__ = ["resizes_shared"]

RESIZING = frozenset({"copy_", "resize_", "resize_as_", "set_"})
VIEWS = frozenset({
    "alias", "as_strided", "chunk", "diagonal", "expand", "expand_as", "narrow", "numpy_T", "permute", "select", "slice", "split",
    "split_with_sizes", "squeeze", "t", "transpose", "unbind", "unfold", "unsqueeze", "view",
})  # fmt: skip
"""Operators whose result shares the memory of their first argument, according to their schemas in 1.6."""


def resizes_shared(node: ast.FunctionDef) -> bool:
    """Whether a method without branches resizes an input, an attribute, or an element of what it returns."""
    owners: dict[str, str] = {arg.arg: arg.arg for arg in node.args.args}
    shared = set(owners)
    resized: set[str] = set()
    for statement in node.body:
        for child in ast.walk(statement):
            if isinstance(child, ast.Call):
                resized |= {_owner(target, owners) for target in _targets(child)}
        if isinstance(statement, ast.Assign):
            _assign(statement.targets[0], statement.value, owners)
        elif isinstance(statement, ast.Return) and isinstance(statement.value, (ast.Tuple, ast.List)):
            shared |= {_owner(item, owners) for item in statement.value.elts}
    return bool((resized & shared) - {""})


def _targets(call: ast.Call) -> list[ast.expr]:
    name = dotted(call.func)
    first = call.args[:1] if name.startswith("torch.") and name.removeprefix("torch.") in RESIZING else []
    return [*first, *(keyword.value for keyword in call.keywords if keyword.arg == "out")]


def _assign(target: ast.expr, value: ast.expr, owners: dict[str, str]) -> None:
    if isinstance(target, ast.Tuple):
        values = (
            value.elts if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts) else [value] * len(target.elts)
        )
        for name, item in zip(target.elts, values, strict=True):
            _assign(name, item, owners)
    elif isinstance(target, ast.Name):
        owners[target.id] = _owner(value, owners) or target.id


def _owner(node: ast.expr, owners: dict[str, str]) -> str:
    """The variable that first held the memory of a value; ``self`` for attributes, and empty if the value is new."""
    if isinstance(node, ast.Name):
        return owners.get(node.id, node.id)
    if isinstance(node, (ast.Attribute, ast.Subscript)):
        return _owner(node.value, owners)
    if isinstance(node, ast.Call) and node.args:
        name = dotted(node.func).removeprefix("torch.")
        if name in VIEWS or (name.endswith("_") and not name.endswith("__")) or name in {"annotate", "unchecked_cast"}:
            return _owner(node.args[-1] if name in {"annotate", "unchecked_cast"} else node.args[0], owners)
    return ""
