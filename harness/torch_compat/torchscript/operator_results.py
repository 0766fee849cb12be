"""The types of the results of operators in TorchScript source, for calls with arguments of known types.

The tables hold operators whose result has the same type in all schemas that accept the arguments, in every release. A result that is not
listed is unknown, and no caller reports an unknown type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["BOOL", "CONVERSIONS", "FLOAT", "INT", "NUMBERS", "STR", "TENSOR", "Type", "result_of"]

Type = tuple["str | Type | None", ...]
"""A head and its arguments: ``("List", ("int",))``. None if the type is unknown."""
INT, FLOAT, BOOL, TENSOR, STR = ("int",), ("float",), ("bool",), ("Tensor",), ("str",)
NUMBERS = (INT, FLOAT)
EITHER = frozenset({"add", "sub", "mul", "floordiv", "remainder", "max", "min", "neg", "abs"})
"""Operators that return an int for ints, and a float if one argument is a float."""
FLOATS = frozenset({"div", "sqrt", "exp", "log", "sin", "cos", "tan", "tanh"})
"""Operators that return a float for numbers."""
ALWAYS_BOOLS = frozenset({"__is__", "__isnot__", "__contains__"})
COMPARED = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})
"""Operators that return a bool for numbers and strings, and a tensor if one argument is a tensor."""
ROUNDED = frozenset({"floor", "ceil"})
"""Operators that return an int for numbers."""
ALWAYS_INTS = frozenset({"len", "dim", "numel", "ord"})
STRINGS = frozenset(
    {"format", "join", "lower", "upper", "strip", "lstrip", "rstrip", "replace", "capitalize", "title", "zfill", "center"}
)
"""Operators that return a string for every argument."""
ELEMENTWISE = (
    (EITHER - {"max", "min"})
    | FLOATS
    | COMPARED
    | {"floor", "ceil", "relu", "sigmoid", "pow", "square", "reciprocal", "clamp", "round"}
)
OF_TENSORS = frozenset({
    "clone", "cumsum", "detach", "flatten", "logical_not", "matmul", "mean", "mm", "permute", "reshape", "select", "slice", "softmax", "squeeze",
    "std", "sum", "to", "transpose", "tril", "triu", "unsqueeze", "var", "view",
    "empty_like", "full_like", "ones_like", "rand_like", "randn_like", "zeros_like",
})  # fmt: skip
"""Operators that return a tensor if their first argument is a tensor."""
CREATED = frozenset({"arange", "cat", "empty", "eye", "full", "linspace", "ones", "rand", "randn", "stack", "tensor", "zeros"})
"""Operators that return a tensor for every argument."""
LOGICAL = frozenset({"__not__", "__and__", "__or__", "__xor__"})
CONVERSIONS = {"int": INT, "float": FLOAT, "bool": BOOL, "str": STR, "ord": INT}


def result_of(name: str, types: Sequence[Type | None]) -> Type | None:
    """Return the type of a call's result; None if it is not known.

    Parameters:
        name: of the operator, without ``torch.``.
        types: of the positional arguments; None for an unknown type.
    """
    if name in ALWAYS_INTS or (name == "size" and len(types) == 2):
        return INT
    if name in STRINGS:
        return STR
    if name in CREATED or (name == "where" and len(types) == 3):
        return TENSOR
    if name in ALWAYS_BOOLS:
        return BOOL
    if TENSOR in types:
        extremes = name in {"max", "min"} and all(type_ == TENSOR for type_ in types)
        return TENSOR if name in ELEMENTWISE or extremes or (name in OF_TENSORS and types[0] == TENSOR) else None
    if name in LOGICAL and types and all(type_ == BOOL for type_ in types):
        return BOOL
    if name == "add" and types and all(type_ == STR for type_ in types):
        return STR
    if name in COMPARED and types and all(type_ in {INT, FLOAT, BOOL, STR} for type_ in types):
        return BOOL
    if not types or not all(type_ in NUMBERS for type_ in types):
        return None
    if name in EITHER:
        return FLOAT if FLOAT in types else INT
    if name in FLOATS or (name == "pow" and FLOAT in types):
        return FLOAT
    return INT if name in ROUNDED else None
