"""Operators that source spells as builtins or signs, by their spelling; and operators whose place in the source matters."""

from __future__ import annotations

import ast

__all__ = ["BINARY", "CALLS", "COMPARE", "IMPLICIT", "IN_OF_ELEMENTS", "NO_VALUE", "OF_ELEMENTS", "OF_NUMBERS", "READING"]

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
IMPLICIT = {
    "number": "aten::ScalarImplicit", "int": "aten::IntImplicit", "float": "aten::FloatImplicit", "complex": "aten::ComplexImplicit",
}  # fmt: skip
READING = frozenset({
    "torch.eq", "torch.ne", "torch.len", "torch.__contains__", "torch.count", "torch.index", "torch.add", "torch.slice", "torch.list",
    "torch.tensor", "torch.sorted", "torch.sum", "torch.__is__", "torch.__isnot__", "max", "min", "any", "all",
})  # fmt: skip
"""Functions that take a list, and neither modify it nor pass it on."""
OF_ELEMENTS = frozenset({"torch.tensor", "torch.as_tensor"})
IN_OF_ELEMENTS = "tensor"
"""A word in each of these names; source is searched for it before its tree is."""
"""Functions that use the type of a list even if it is empty."""
NO_VALUE = frozenset({"torch.item", "torch._local_scalar_dense"})
"""Functions that return a number whose type is not in the source."""
OF_NUMBERS = frozenset({
    "aten::Float", "aten::Complex", "aten::add", "aten::sub", "aten::mul", "aten::div", "aten::floordiv", "aten::remainder", "aten::fmod", "aten::pow",
    "aten::neg", "aten::eq", "aten::ne", "aten::lt", "aten::le", "aten::gt", "aten::ge", "aten::round", "aten::floor", "aten::ceil", "aten::exp",
    "aten::expm1", "aten::log", "aten::log10", "aten::log1p", "aten::sqrt", "aten::sin", "aten::cos", "aten::tan", "aten::asin", "aten::acos", "aten::atan",
    "aten::atan2", "aten::sinh", "aten::cosh", "aten::tanh", "aten::asinh", "aten::acosh", "aten::atanh", "aten::gamma", "aten::lgamma", "aten::erf",
    "aten::erfc", "aten::degrees", "aten::radians", "aten::fabs", "aten::copysign", "aten::isnan", "aten::isinf", "aten::isfinite", "prim::abs",
    "prim::min", "prim::max",
})  # fmt: skip
"""Number operators that treat every number that is neither float nor complex as an integer."""
