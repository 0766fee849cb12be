"""Operators that source spells as builtins or as signs, by what it writes."""

from __future__ import annotations

import ast

__all__ = ["BINARY", "CALLS", "COMPARE"]

CALLS = {
    "int": "aten::Int", "float": "aten::Float", "bool": "aten::Bool", "complex": "aten::Complex", "str": "aten::str", "ord": "aten::ord",
    "print": "prim::Print", "len": "aten::len", "abs": "prim::abs", "min": "prim::min", "max": "prim::max", "round": "aten::round",
    "chr": "aten::chr", "hex": "aten::hex", "oct": "aten::oct", "bin": "aten::bin", "divmod": "aten::divmod", "pow": "aten::pow",
    "list": "aten::list", "dict": "aten::dict", "sorted": "aten::sorted", "hash": "aten::hash", "all": "aten::all", "any": "aten::any",
}  # fmt: skip
BINARY: dict[type, str] = {
    ast.Add: "aten::add", ast.Sub: "aten::sub", ast.Mult: "aten::mul", ast.Div: "aten::div", ast.FloorDiv: "aten::floordiv",
    ast.Mod: "aten::remainder", ast.Pow: "aten::pow", ast.MatMult: "aten::matmul", ast.BitAnd: "aten::__and__",
    ast.BitOr: "aten::__or__", ast.BitXor: "aten::__xor__", ast.LShift: "aten::__lshift__", ast.RShift: "aten::__rshift__",
}  # fmt: skip
COMPARE: dict[type, str] = {
    ast.Eq: "aten::eq", ast.NotEq: "aten::ne", ast.Lt: "aten::lt", ast.LtE: "aten::le", ast.Gt: "aten::gt", ast.GtE: "aten::ge",
}  # fmt: skip
