"""The checks of a release on the inputs of an exported program: sizes, ranges, constants and the program's own guards.

Releases check in two places (``torch/export/_unlift.py``):

* A hook of the module, which runs only when the module itself is called, compares the inputs with the graph: fixed dimensions, ranges of
  symbols, equal symbols, derived dimensions, constants. It raises RuntimeError.
* Since 2.9 a function of the graph, which ``forward`` runs, too, if the archive has sample inputs. It checks the same and ``guards_code``,
  raises AssertionError with the guard as text, and replaces the hook.
"""

from __future__ import annotations

import ast
import math
from typing import TYPE_CHECKING, Any, NamedTuple

from torch_compat.errors import Raised
from torch_compat.releases.release import Release
from torch_compat.runtime.exported.symbols import parse
from torch_compat.runtime.tensor import OpaqueTensor, Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.runtime.exported.document import Document, SymInt
    from torch_compat.runtime.exported.symbols import Expression

__all__ = ["GUARDED", "Checks", "Given"]

GUARDED = Release("2.9.0")
TENSORS = (Tensor, OpaqueTensor)
SMALL = 2  # least values up to which nothing is checked: 0 and 1 are allowed at run time


class Given(NamedTuple):
    """An input of the user.

    Attributes:
        name: of the graph's input; None for a constant.
        path: its path, from the name of the argument: ``("x", "[0]['key']")``.
        constant: its value if the graph has a constant in its place.
        kind: ``user_input`` or ``constant_input``.
    """

    name: str | None
    path: tuple[str, str]
    constant: Any
    kind: str

    @property
    def shown(self) -> str:
        """Its spelling in guards."""
        return "".join(self.path)


class Checks:
    """The checks of one program."""

    def __init__(self, document: Document, given: tuple[Given, ...], where: str) -> None:
        self.document = document
        self.given = given
        self.where = where
        self._parsed: dict[str, Expression] = {}
        self._guards: list[tuple[str, Expression]] | None = None

    def expression(self, text: str) -> Expression:
        """The parsed expression, cached."""
        result = self._parsed.get(text)
        if result is None:
            result = self._parsed[text] = parse(text, self.where)
        return result

    # ------------------------------------------------------------------------------------------------ the hook

    def check_hook(self, flat: list[Any]) -> None:
        """Compare the inputs with the graph, as the hook does.

        Raises:
            Raised: they do not fit.
        """
        known: dict[str, int] = {}
        for given, value in zip(self.given, flat, strict=True):
            where = f"*args{given.path[1]}" if given.path[1] else given.shown
            sizes = self.document.graph.sizes.get(given.name) if given.name else None
            if sizes is not None:
                if not isinstance(value, TENSORS):
                    raise _wrong(f"Expected input at {where} to be a tensor, but got {type(value)}")
                if len(value.shape) != len(sizes):
                    shown = [size.expression or size.number for size in sizes]
                    message = (
                        f"Unexpected number of dimensions in input at {where}.shape (expected {shown}, got {list(value.shape)})"
                    )
                    raise _wrong(message)
                for place, (size, actual) in enumerate(zip(sizes, value.shape, strict=True)):
                    self._fits(size, actual, known, f"{where}.shape[{place}]")
            elif given.name is not None and given.name in self.document.graph.numbers:
                self._fits(self.document.graph.numbers[given.name], value, known, where)
            elif given.name is None and given.constant is not None and not _same(given.constant, value):
                raise _wrong(f"Expected input at {where} to be equal to {given.constant}, but got {value}")

    def _fits(self, size: SymInt, actual: Any, known: dict[str, int], where: str) -> None:
        if size.number is not None:
            if actual != size.number:
                raise _wrong(f"Expected input at {where} to be equal to {size.number}, but got {actual}")
            return
        expression = self.expression(size.expression)
        if len(expression.names) != 1:
            return  # left to assertions in the graph
        (symbol,) = expression.names
        if symbol in known:
            expected = expression.value(known)
            if actual != expected:
                raise _wrong(f"Expected input at {where} to be equal to {expected}, but got {actual}")
        else:
            solved = actual if expression.symbol else _solve(expression, symbol, actual)
            if solved is None:
                message = f"Expected input {where} = {actual} to be of the form {size.expression}, where {symbol} is an integer"
                raise _wrong(message)
            known[symbol] = solved
        low, high = self.document.ranges.get(expression.key, (None, None))
        if low is not None and low > SMALL and actual < low:
            raise _wrong(f"Expected input at {where} to be >= {low}, but got {actual}")
        if high is not None and actual > high:
            raise _wrong(f"Expected input at {where} to be <= {high}, but got {actual}")

    # ------------------------------------------------------------------------------------------------ the function in the graph

    def check_guards(self, flat: list[Any]) -> None:
        """Check the inputs as the function in the graph does.

        Raises:
            Raised: a guard fails.
        """
        for holds, message in self._of_inputs(flat):
            if not holds:
                raise Raised(f"Guard failed: {message}", code="AssertionError")
        if not self.document.guards:
            return
        if self._guards is None:
            self._guards = [self._guard(text) for text in self.document.guards]
        arguments: dict[str, Any] = {}
        for item, value in zip(self.given, flat, strict=True):
            _put(arguments, item.path, value)
        flat_args = {"flat_args": flat}
        for message, expression in self._guards:
            if not expression.value({"L": arguments | flat_args}):
                raise Raised(f"Guard failed: {message}", code="AssertionError")

    def _guard(self, text: str) -> tuple[str, Expression]:
        expression = self.expression(text)
        shown = ast.unparse(expression.tree)
        for item in self.given:
            name, rest = item.path
            shown = shown.replace(f"L[{name!r}]{rest}", name + rest)
        return shown, expression

    def _of_inputs(self, flat: list[Any]) -> Iterator[tuple[bool, str]]:
        """Whether each guard of sizes, ranges and constants holds, and its text; in the order of the inputs."""
        sources: dict[str, tuple[str, int]] = {}
        derived: list[tuple[str, int, Expression]] = []
        for given, value in zip(self.given, flat, strict=True):
            sizes = self.document.graph.sizes.get(given.name) if given.name else None
            if sizes is not None:
                if not isinstance(value, TENSORS):
                    raise Raised(f"'{type(value).__name__}' object has no attribute 'size'", code="AttributeError")
                for place, size in enumerate(sizes):
                    if place >= len(value.shape):
                        raise Raised("tuple index out of range", code="IndexError")
                    yield from self._of_size(size, value.shape[place], f"{given.shown}.size()[{place}]", sources, derived)
            elif given.name is not None and given.name in self.document.graph.numbers:
                yield from self._of_size(self.document.graph.numbers[given.name], value, given.shown, sources, derived)
            elif given.name is None:
                yield from _of_constant(given.constant, value, given.shown)
        yield from self._of_derived(sources, derived)

    def _of_size(
        self,
        size: SymInt,
        actual: int,
        shown: str,
        sources: dict[str, tuple[str, int]],
        derived: list[tuple[str, int, Expression]],
    ) -> Iterator[tuple[bool, str]]:
        if size.number is not None:
            yield actual == size.number, f"{shown} == {size.number}"
            return
        expression = self.expression(size.expression)
        key = expression.key
        if key not in self.document.ranges:
            return
        if len(expression.names) == 1:
            derived.append((shown, actual, expression))
        if key in sources:
            first, expected = sources[key]
            yield actual == expected, f"{shown} == {first}"
            return
        sources[key] = (shown, actual)
        low, high = self.document.ranges[key]
        if low is not None and low > SMALL:
            yield actual >= low, f"{shown} >= {low}"
        if high is not None:
            yield actual <= high, f"{shown} <= {high}"

    def _of_derived(
        self, sources: dict[str, tuple[str, int]], derived: list[tuple[str, int, Expression]]
    ) -> Iterator[tuple[bool, str]]:
        """Check sizes whose symbol is no input's size by itself: the first determines the symbol, the others must fit."""
        results: dict[str, Any] = {}
        for shown, actual, expression in derived:
            (symbol,) = expression.names
            if symbol in sources:
                continue
            if symbol in results:
                yield expression.value(results) == actual, f"{expression.text} == {shown}"
            else:
                solved = _solve(expression, symbol, actual, whole=False)
                if solved is not None:
                    results[symbol] = solved


def _put(arguments: dict[str, Any], path: tuple[str, str], value: Any) -> None:
    """Store a leaf where guards look it up: ``L['x'][0]['key']``."""
    name, rest = path
    keys = [name, *map(ast.literal_eval, filter(None, rest.replace("]", "").split("[")))]
    at: dict[Any, Any] = arguments
    for key in keys[:-1]:
        at = at.setdefault(key, {})
    at[keys[-1]] = value


def _of_constant(constant: Any, value: Any, shown: str) -> Iterator[tuple[bool, str]]:
    if constant is None:
        return
    if constant.__class__ is float and math.isnan(constant):
        yield value.__class__ is float and math.isnan(value), f"math.isnan({shown})"
    elif constant.__class__ is str:
        yield value == constant, f"{shown} == {constant!r}"
    else:
        yield _plain(value) and value == constant, f"{shown} == {constant}"


def _plain(value: Any) -> bool:
    return value.__class__ in {int, float, bool, complex}


def _same(constant: Any, value: Any) -> bool:
    return constant.__class__ is value.__class__ and (constant == value or (constant != constant and value != value))  # noqa: PLR0124 - NaN


def _solve(expression: Expression, symbol: str, actual: int, *, whole: bool = True) -> Any:
    """Solve for the symbol value at which the expression equals a number; None if there is none.

    Parameters:
        whole: whether it must be an integer.

    Expressions of derived dimensions are linear (``torch.export.Dim``); others have no solution here.
    """
    start, slope = expression.value({symbol: 0}), 0
    slope = expression.value({symbol: 1}) - start
    if slope == 0 or expression.value({symbol: 1000}) != start + 1000 * slope:
        return None
    if (actual - start) % slope:
        return None if whole else (actual - start) / slope
    return (actual - start) // slope


def _wrong(text: str) -> Raised:
    return Raised(text, code="RuntimeError")
