"""Convert tensors to strings like releases: a line per row, then the type and the sizes.

The rules are those of 1.4 to 2.15, measured on random tensors. All numbers of a matrix have the same width, number of digits and scale,
which depend on the smallest and the largest number. Up to 2.7 the largest is searched among the positive numbers and the first number;
2.8 and newer compare by magnitude.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

from torch_compat.errors import Unsupported
from torch_compat.runtime.limits import meter
from torch_compat.runtime.values import bounded
from torch_compat.values.dtypes import DTYPES

if TYPE_CHECKING:
    from torch_compat.runtime.tensor import Tensor

__all__ = ["text_of"]

LINE = 80
DIGITS = 6
"""Significant digits of a number; up to 2.7, :data:`PLACES` after a matrix has been printed with decimal places."""
PLACES = 4
WHOLE = 9
"""The maximum number of digits of an integer that is printed in full."""
APART = 4
"""The maximum orders of magnitude between the smallest and the largest number printed with decimal places."""
LARGE = 5
"""The number of digits before the decimal point from which numbers are scaled."""
LONG_EXPONENT = 99
FIXED = (-5, 15)
"""The range of exponents for which 2.8 and newer print a number without an exponent."""
MATRIX = 2

WORDS = {row.name: row.word for row in DTYPES.values() if row.kind != "quantized" and row.word}


class NumberForm(NamedTuple):
    """The format of all numbers of a matrix.

    Attributes:
        style: the ``printf`` conversion letter.
        width: the width of each number.
        scale: the divisor of each number.
    """

    style: str
    width: int
    scale: float


def text_of(tensor: Tensor, *, by_magnitude: bool) -> str:
    """Convert a tensor to a string.

    Parameters:
        by_magnitude: the rules of 2.8 and newer: the largest number is the largest magnitude, and single numbers have all their digits.

    Raises:
        Unsupported: the string form of the dtype is not known.
        Raised: the string is too long.
    """
    name = WORDS.get(tensor.dtype.name)
    if name is None:
        raise Unsupported(f"the reference reader cannot convert tensors of {tensor.dtype.name} to strings", code="operator")
    array = tensor.array
    bounded(array.size * (LINE // 4))
    meter.work(array.size * LINE)
    numbers: Any = array.real.astype("float64")  # releases drop imaginary parts
    written = _Written(by_magnitude)
    if array.ndim == 0:
        body = written.alone(float(numbers)) + "\n"
    elif not array.size:
        body = ""
    elif array.ndim == 1:
        body = written.column(numbers.tolist())
    elif array.ndim == MATRIX:
        body = written.matrix(numbers.tolist(), 0)
    else:
        body = written.matrices(numbers)
    return f"{body}[ CPU{name}Type{{{','.join(map(str, array.shape))}}} ]"


class _Written:
    """The writer of a tensor.

    Attributes:
        by_magnitude: see :func:`text_of`.
        digits: the precision of numbers without fixed decimal places; up to 2.7 a matrix with decimal places changes it for later output.
    """

    __slots__ = ("by_magnitude", "digits")

    def __init__(self, by_magnitude: bool) -> None:
        self.by_magnitude = by_magnitude
        self.digits = DIGITS

    def alone(self, number: float) -> str:
        """A single number: a 0-dim tensor or a scale."""
        if not self.by_magnitude or not math.isfinite(number):
            return _number(number, f".{self.digits}g")
        result = repr(number).removesuffix(".0")
        exponent = math.floor(math.log10(abs(number))) if number else 0
        if FIXED[0] < exponent <= FIXED[1] and "e" in result:
            return f"{number:f}"
        return result

    def form(self, numbers: list[float]) -> NumberForm:
        """The format of the numbers of a matrix."""
        finite = [number for number in numbers if math.isfinite(number)]
        whole = all(number == math.ceil(number) for number in finite)
        least = greatest = 1.0
        if finite:
            least = min(map(abs, finite))
            greatest = max(map(abs, finite)) if self.by_magnitude else max(abs(finite[0]), *finite)
        low, high = (math.floor(math.log10(item)) + 1 if item else 1 for item in (least, greatest))
        if whole:
            if high > WHOLE:
                self.digits = PLACES
                return NumberForm(f".{PLACES}e", 11, 1.0)
            return NumberForm(f".{DIGITS if self.by_magnitude else self.digits}g", high + 1, 1.0)
        self.digits = PLACES
        if high - low > APART:
            return NumberForm(f".{PLACES}e", 12 if abs(high) > LONG_EXPONENT or abs(low) > LONG_EXPONENT else 11, 1.0)
        if high > LARGE or high < 0:
            return NumberForm(f".{PLACES}f", 7, 10.0 ** (high - 1))
        return NumberForm(f".{PLACES}f", high + 6 if high else 7, 1.0)

    def scaled(self, form: NumberForm) -> str:
        """The line with the scale."""
        return "" if form.scale == 1 else self.alone(form.scale) + " *\n"

    def column(self, numbers: list[float]) -> str:
        """A 1-dim tensor."""
        form = self.form(numbers)
        return self.scaled(form) + "".join(_padded(number, form) + "\n" for number in numbers)

    def matrix(self, rows: list[list[float]], indent: int) -> str:
        """A matrix, split into blocks of columns to keep lines short. As of 2.8 the first line is not indented."""
        form = self.form([item for row in rows for item in row])
        space = " " * indent
        columns = len(rows[0])
        fitting = (LINE - indent) // (form.width + 1)
        findings = [] if self.by_magnitude else [space]
        for first in range(0, columns, fitting):
            last = min(first + fitting, columns)
            if fitting < columns:
                findings.append(("\n" if first else "") + f"Columns {first + 1} to {last}{space}")
            if form.scale != 1:
                findings.append(self.scaled(form) + space)
            between = space + (" " if form.scale != 1 else "")
            findings.append(between.join(" ".join(_padded(item, form) for item in row[first:last]) + "\n" for row in rows))
        return "".join(findings)

    def matrices(self, numbers: Any) -> str:
        """A tensor with more dimensions, as its matrices; the first index varies fastest."""
        outer = numbers.shape[:-MATRIX]
        results = []
        for reversed_place in itertools.product(*(range(item) for item in reversed(outer))):
            place = reversed_place[::-1]
            results.append(
                "(" + "".join(f"{item + 1}," for item in place) + ".,.) = \n" + self.matrix(numbers[place].tolist(), 1)
            )
        return "\n".join(results)


def _padded(number: float, form: NumberForm) -> str:
    return _number(number / form.scale, form.style).rjust(form.width)


def _number(number: float, style: str) -> str:
    """A number as C++ prints it, including the sign of a NaN."""
    if math.isnan(number):
        return "-nan" if math.copysign(1, number) < 0 else "nan"
    return format(number, style)
