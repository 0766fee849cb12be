"""Symbolic sizes: expressions stored as text in an exported program, evaluated with exact integers.

An expression is what sympy prints (``2*s0 + 1``, ``(s0//2)``, ``Max(1, s0)``), since 2.7 as the calls that make it (``Symbol('s0', integer=True)``,
``Add(Mul(Integer(2), Symbol('s0')), Integer(1))``); a guard what PyTorch prints (``L['x'].size()[0] % 2 == 0``). Both are
expressions of Python. They are not executed: they are parsed to a tree, of which a few kinds of nodes are evaluated. Numbers and strings
are bounded before evaluation, and any other node is refused by name.
"""

from __future__ import annotations

import ast
import math
from typing import TYPE_CHECKING, Any

from torch_compat.errors import Corrupt, Raised, Unsupported
from torch_compat.pickles import cut
from torch_compat.runtime.tensor import Tensor
from torch_compat.torchscript.parser import NO_SOURCE, parse_expression

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["FUNCTIONS", "Expression", "parse"]

LONGEST = 10_000  # characters
MOST_NODES = 2_000
DEEPEST = 100
LARGEST = 1 << 4096  # of a result; exact arithmetic costs in proportion to its digits
MOST_BITS = 4096


def _bits(value: Any) -> Any:
    if value.__class__ is int and abs(value) > LARGEST:
        raise Raised("the value of a symbolic expression is too large", code="RuntimeError")
    return value


def _power(base: Any, exponent: Any) -> Any:
    if base.__class__ is int and exponent.__class__ is int:
        if exponent < 0:
            return float(base) ** exponent
        if abs(base) > 1 and base.bit_length() * exponent > MOST_BITS:
            raise Raised("the value of a symbolic expression is too large", code="RuntimeError")
    return base**exponent


def _shift(value: int, count: int) -> int:
    if not 0 <= count <= MOST_BITS:
        raise Raised("a symbolic expression shifts too far", code="RuntimeError")
    return value << count


def _mod(a: Any, b: Any) -> Any:
    return a % b


def _round_half_even(value: Any, digits: int | None = None) -> Any:
    if digits is None:
        return round(value)
    if value.__class__ is int and digits < -MOST_BITS:
        return 0  # as it comes to; Python would first compute that power of ten
    return round(value, digits)


def _rounded(value: Any) -> Any:
    return round(value)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "FloorDiv": lambda a, b: a // b, "CleanDiv": lambda a, b: a // b, "CeilDiv": lambda a, b: -(-a // b), "Mod": _mod, "PythonMod": _mod,
    "ModularIndexing": lambda a, b, c: a // b % c, "Where": lambda c, a, b: a if c else b, "Max": max, "Min": min, "max": max, "min": min,
    "PowByNatural": _power, "FloatPow": lambda a, b: float(a) ** b, "IntTrueDiv": lambda a, b: a / b, "FloatTrueDiv": lambda a, b: a / b,
    "TruncToInt": math.trunc, "TruncToFloat": lambda a: float(math.trunc(a)), "FloorToInt": math.floor, "CeilToInt": math.ceil,
    "RoundToInt": _rounded, "RoundDecimal": _round_half_even, "ToFloat": float, "Identity": lambda a: a, "LShift": _shift,
    "RShift": lambda a, b: a >> min(b, MOST_BITS), "floor": math.floor, "ceiling": math.ceil, "Abs": abs, "abs": abs, "sqrt": math.sqrt,
    "Eq": lambda a, b: a == b, "Ne": lambda a, b: a != b, "Lt": lambda a, b: a < b, "Le": lambda a, b: a <= b, "Gt": lambda a, b: a > b,
    "Ge": lambda a, b: a >= b, "And": lambda *a: all(a), "Or": lambda *a: any(a), "Not": lambda a: not a, "int": int, "float": float,
    "OpaqueUnaryFn_sqrt": math.sqrt, "Integer": int, "Add": lambda *a: sum(a), "Mul": lambda *a: math.prod(a), "Pow": _power,
    "Equality": lambda a, b: a == b, "Unequality": lambda a, b: a != b, "StrictLessThan": lambda a, b: a < b, "LessThan": lambda a, b: a <= b,
    "StrictGreaterThan": lambda a, b: a > b, "GreaterThan": lambda a, b: a >= b, "Rational": lambda a, b: a / b,
}  # fmt: skip
BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b, ast.Sub: lambda a, b: a - b, ast.Mult: lambda a, b: a * b, ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b, ast.Div: lambda a, b: a / b, ast.Pow: _power, ast.BitAnd: lambda a, b: a & b, ast.BitOr: lambda a, b: a | b,
    ast.LShift: _shift, ast.RShift: lambda a, b: a >> min(b, MOST_BITS),
}  # fmt: skip
COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: lambda a, b: a == b, ast.NotEq: lambda a, b: a != b, ast.Lt: lambda a, b: a < b, ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b, ast.GtE: lambda a, b: a >= b,
}  # fmt: skip
UNARY: dict[type, Callable[[Any], Any]] = {
    ast.USub: lambda a: -a,
    ast.UAdd: lambda a: +a,
    ast.Not: lambda a: not a,
    ast.Invert: lambda a: ~a,
}
CONSTANTS = {"inf": math.inf, "oo": math.inf, "int_oo": math.inf, "True": True, "False": False}
OF_MATH: dict[str, Callable[[Any], Any]] = {
    "isnan": math.isnan, "floor": math.floor, "ceil": math.ceil, "trunc": math.trunc, "sqrt": math.sqrt,
}  # fmt: skip
NUMBERS = frozenset({int, float, bool})


class Expression:
    """An expression.

    Attributes:
        text: as the program states it.
        names: of its symbols.
    """

    __slots__ = ("names", "text", "tree", "where")

    def __init__(self, text: str, tree: ast.expr, where: str) -> None:
        self.text = text
        self.tree = tree
        self.where = where
        functions = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        self.names = frozenset(
            node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and id(node) not in functions and node.id not in CONSTANTS
        )

    @property
    def key(self) -> str:
        """The text under which its ranges are stated: without the calls that make symbols."""
        return ast.unparse(self.tree)

    @property
    def symbol(self) -> str | None:
        """Its name if it is a single symbol."""
        return self.tree.id if isinstance(self.tree, ast.Name) and self.names else None

    def value(self, known: Mapping[str, Any]) -> Any:
        """Evaluate the expression.

        Parameters:
            known: values by name; a tensor or container is used for what guards read from it.

        Raises:
            Raised: it divides by zero, or its result is too large.
            Unsupported: the reference reader lacks something that it uses.
        """
        try:
            return self._value(self.tree, known)
        except ZeroDivisionError as error:
            raise Raised(str(error), code="ZeroDivisionError") from error
        except (TypeError, ValueError, OverflowError, AttributeError, LookupError) as error:
            message = (
                f"the reference reader cannot compute {cut(self.text, 200)!r}: {type(error).__name__}: {cut(str(error), 200)}"
            )
            raise Unsupported(message, where=self.where, code="expression") from error

    def _value(self, node: ast.expr, known: Mapping[str, Any]) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return known[node.id] if node.id in known else CONSTANTS[node.id]
        if isinstance(node, ast.BinOp):
            return _bits(BINARY[type(node.op)](self._number(node.left, known), self._number(node.right, known)))
        if isinstance(node, ast.UnaryOp):
            return UNARY[type(node.op)](self._number(node.operand, known))
        if isinstance(node, ast.BoolOp):
            results = (self._value(item, known) for item in node.values)
            return all(results) if isinstance(node.op, ast.And) else any(results)
        if isinstance(node, ast.Compare):
            return self._compared(node, known)
        if isinstance(node, ast.IfExp):
            return self._value(node.body if self._value(node.test, known) else node.orelse, known)
        if isinstance(node, ast.Call):
            return self._called(node, known)
        if isinstance(node, ast.Subscript):
            result = self._value(node.value, known)
            if not isinstance(result, list | tuple | dict):
                raise TypeError(f"a value of type {type(result).__name__} has no items")
            return result[self._value(node.slice, known)]
        if isinstance(node, ast.Attribute) and node.attr == "inf":
            return math.inf
        raise TypeError(f"{type(node).__name__} is not supported")

    def _number(self, node: ast.expr, known: Mapping[str, Any]) -> Any:
        result = self._value(node, known)
        if result.__class__ not in NUMBERS:
            raise TypeError(f"a value of type {type(result).__name__} is not a number")
        return result

    def _compared(self, node: ast.Compare, known: Mapping[str, Any]) -> bool:
        left = self._value(node.left, known)
        for how, other in zip(node.ops, node.comparators, strict=True):
            right = self._value(other, known)
            if isinstance(how, ast.Is | ast.IsNot):
                if (left is right) is not isinstance(how, ast.Is):
                    return False
            elif not COMPARE[type(how)](left, right):
                return False
            left = right
        return True

    def _called(self, node: ast.Call, known: Mapping[str, Any]) -> Any:
        if node.keywords:
            raise TypeError("keyword arguments are not supported")
        function = node.func
        if isinstance(function, ast.Attribute):
            return self._method(function, node.args, known)
        if not isinstance(function, ast.Name) or function.id not in FUNCTIONS:
            raise TypeError("unknown function")
        return _bits(FUNCTIONS[function.id](*[self._number(arg, known) for arg in node.args]))

    def _method(self, function: ast.Attribute, args: list[ast.expr], known: Mapping[str, Any]) -> Any:
        if isinstance(function.value, ast.Name) and function.value.id == "math":
            return OF_MATH[function.attr](self._number(args[0], known))
        tensor = self._value(function.value, known)
        if not isinstance(tensor, Tensor):
            raise TypeError(f"a value of type {type(tensor).__name__} has no {function.attr}")
        if function.attr == "size" and not args:
            return list(tensor.shape)
        if function.attr == "stride" and not args:
            return list(tensor.strides)
        if function.attr == "storage_offset" and not args:
            return tensor.storage_offset
        raise TypeError(f"a tensor has no {function.attr} in this context")


class _Named(ast.NodeTransformer):
    """``Symbol('s0', integer=True)`` becomes ``s0``, ``Float('0.5', precision=53)`` becomes ``0.5``."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """A call."""
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        first = node.args[0] if node.args else None
        stated = first.value if isinstance(first, ast.Constant) else None
        if name == "Symbol" and isinstance(stated, str) and stated.isidentifier():
            return ast.Name(stated)
        if name == "Float" and isinstance(stated, str):
            return ast.Constant(float(stated))
        self.generic_visit(node)
        return node


def parse(text: str, where: str) -> Expression:
    """Read an expression.

    Raises:
        Corrupt: it is not an expression, or too long.
    """
    if len(text) > LONGEST:
        raise Corrupt(
            f"contains an expression of {len(text)} characters, expected at most {LONGEST}", where=where, code="bad-expression"
        )
    try:
        tree = parse_expression(text)
    except NO_SOURCE as error:
        raise Corrupt(f"is not an expression: {cut(text, 80)!r}", where=where, code="bad-expression") from error
    count = 0
    level: list[tuple[ast.AST, int]] = [(tree, 0)]
    while level:
        node, depth = level.pop()
        count += 1
        if count > MOST_NODES or depth > DEEPEST:
            raise Corrupt("contains an expression that is too large or nested too deeply", where=where, code="bad-expression")
        if isinstance(node, ast.Constant) and node.value.__class__ is int and node.value.bit_length() > MOST_BITS:
            raise Corrupt("contains an expression with a number that is too large", where=where, code="bad-expression")
        level += [(child, depth + 1) for child in ast.iter_child_nodes(node)]
    try:
        named = _Named().visit(tree)
    except ValueError as error:
        raise Corrupt(f"is not an expression: {cut(text, 80)!r}", where=where, code="bad-expression") from error
    return Expression(text, named, where)
