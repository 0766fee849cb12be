"""Strings of TorchScript: string methods, and conversions between numbers and strings.

Strings are bytes, one character each (see :mod:`torch_compat.runtime.values`): lengths, indices and order are those of the bytes, and
only ASCII letters have cases.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from torch_compat.runtime.limits import meter
from torch_compat.runtime.registry import operator
from torch_compat.runtime.values import bounded, raised

if TYPE_CHECKING:
    from torch_compat.errors import Raised


# The bytes of all Unicode line ends, each on its own.
LINE_ENDS = frozenset("\n\r\v\f\x1c\x1d\x1e\x85\xe2\x80\xa8\xa9")
WORD = re.compile(f"[^ \\t{''.join(sorted(LINE_ENDS))}]+")
"""Applies to the bytes of non-ASCII characters, too: the second byte of an e with an acute accent ends a word."""


def _bytewise(name: str) -> Any:
    method = getattr(bytes, name)

    def call(self: str, *args: Any) -> Any:
        bounded(len(self))
        decoder = method(self.encode("latin-1"), *(arg.encode("latin-1") if arg.__class__ is str else arg for arg in args))
        return decoder.decode("latin-1") if decoder.__class__ is bytes else decoder

    call.__doc__ = f"As Python's bytes.{name}."
    return call


for _name in ("upper", "lower", "capitalize", "title", "swapcase", "isupper", "islower", "isdigit", "isspace", "isalnum", "isalpha",
              "istitle"):  # fmt: skip
    operator(f"aten::{_name}", of="str")(_bytewise(_name))


@operator("aten::zfill", of="str")
def zfill(self: str, width: int) -> str:
    """Pad with zeros from the left, even before a sign."""
    bounded(width)
    return self.rjust(width, "0")


@operator("aten::expandtabs", of="str")
def expandtabs(self: str, tabsize: int = 8) -> str:
    """Replace tabs with spaces; the ends of lines are characters like others."""
    bounded(len(self) * max(1, tabsize))
    parts = self.split("\t")
    if tabsize < 1:
        return "".join(parts)
    return "".join(part + " " * (tabsize - len(part) % tabsize) for part in parts[:-1]) + parts[-1]


@operator("aten::isdecimal", "aten::isnumeric", of="str")
def isdecimal(self: str) -> bool:
    """Whether all characters are digits."""
    return bool(self) and all("0" <= item <= "9" for item in self)


@operator("aten::isidentifier", of="str")
def isidentifier(self: str) -> bool:
    """Whether a string starts with an ASCII letter and continues with ASCII letters and digits; underscores are not allowed."""
    return self.isascii() and self.isalnum() and not self[0].isdigit()


def _slice(self: str, start: int, end: int) -> tuple[str, int]:
    """The part of a string from start to end, and the start; empty if the end precedes the start."""
    size = len(self)
    start = max(0, size + start) if start < 0 else start
    end = max(0, size + end + 1) if end < 0 else end
    if end > start > size:
        raise _beyond(start, size)
    return self[start:end] if end > start else "", start


def _beyond(start: int, size: int) -> Raised:
    return raised("RuntimeError", f"basic_string::substr: __pos (which is {start}) > this->size() (which is {size})")


@operator("aten::find", of="str")
def find(self: str, substr: str, start: int = 0, end: int = -1) -> int:
    """The first index of a substring, or -1; an end of -1 is the end of the string."""
    part, first = _slice(self, start, end)
    result = part.find(substr)
    return result + first if result >= 0 else -1


@operator("aten::rfind", of="str")
def rfind(self: str, substr: str, start: int = 0, end: int = -1) -> int:
    """The last index of a substring, or -1."""
    part, first = _slice(self, start, end)
    meter.work(len(part) * len(substr))
    result = part.rfind(substr)
    return result + first if result >= 0 else -1


@operator("aten::rindex", of="str")
def rindex(self: str, substr: str, start: int = 0, end: int = -1) -> int:
    """The last index of a substring, which must occur."""
    result = rfind(self, substr, start, end)
    if result < 0:
        raise raised("RuntimeError", "ValueError: substring not found")
    return result


@operator("aten::isprintable", of="str")
def isprintable(self: str) -> bool:
    """Whether all characters are ASCII letters, digits, punctuation or spaces."""
    return all(" " <= item <= "~" for item in self)


@operator("aten::index", of="str")
def index_str(self: str, substr: str, start: int = 0, end: int = -1) -> int:
    """The first index of a substring, which must occur."""
    result: int = find(self, substr, start, end)
    if result < 0:
        raise raised("RuntimeError", "ValueError: substring not found")
    return result


@operator("aten::count", of="str")
def count_str(self: str, substr: str, start: int = 0, end: int = -1) -> int:
    """The number of occurrences of a substring that start before the end.

    Raises:
        Raised: the substring is empty, for which torch counts endlessly.
    """
    size = len(self)
    if start > size:
        return 0
    start = max(0, size + start) if start < 0 else start
    end = max(0, size + end + 1) if end < 0 else end
    if not substr:
        if start < end:
            raise raised("RuntimeError", "count() of an empty string never terminates")
        return 0
    times, at = 0, self.find(substr, start)
    while -1 < at < end:
        times += 1
        at = self.find(substr, at + len(substr))
    return times


def _part(self: str, start: int, end: int) -> str:
    """The part from start to end, for operators that test an end of a string; if end precedes start, the part extends to the end."""
    size = len(self)
    start = max(0, size + start) if start < 0 else start
    end = max(0, size + end + 1) if end < 0 else end
    if start > size:
        raise _beyond(start, size)
    return self[start:end] if end >= start else self[start:]


@operator("aten::startswith", of="str")
def startswith(self: str, substr: str, start: int = 0, end: int = -1) -> bool:
    """Whether a part of the string starts with a substring."""
    return _part(self, start, end).startswith(substr)


@operator("aten::endswith", of="str")
def endswith(self: str, substr: str, start: int = 0, end: int = -1) -> bool:
    """Whether a part of the string ends with a substring."""
    return _part(self, start, end).endswith(substr)


@operator("aten::replace", of="str")
def replace(self: str, old: str, new: str, max: int = -1) -> str:  # noqa: A002 - the schema\'s own
    """Replace a substring with another string."""
    if not old:  # torch searches at the same position again and again
        if max < 0:
            raise raised("RuntimeError", "std::bad_alloc")
        bounded(len(self) + len(new) * max)
        return new * max + self
    bounded(len(self) * (len(new) + 1))
    return self.replace(old, new, max)


@operator("aten::strip", of="str")
def strip(self: str, chars: str = " \n\t\f\v") -> str:
    """Remove the given characters from both ends."""
    meter.work(len(self) * len(chars))
    return self.strip(chars)


@operator("aten::lstrip", of="str")
def lstrip(self: str, chars: str = " \n\t\f\v") -> str:
    """Remove the given characters from the start."""
    meter.work(len(self) * len(chars))
    return self.lstrip(chars)


@operator("aten::rstrip", of="str")
def rstrip(self: str, chars: str = " \n\t\f\v") -> str:
    """Remove the given characters from the end."""
    meter.work(len(self) * len(chars))
    return self.rstrip(chars)


@operator("aten::split", of="str")
def split(self: str, separator: str | None = None, max: int = -1) -> list[str]:  # noqa: A002 - the schema\'s own
    """Split at separators; without one, at spaces, tabs and all bytes of line ends, regardless of ``max``."""
    if separator == "":
        raise raised("ValueError", "empty separator")
    bounded(len(self))
    return self.split(separator, max) if separator is not None else WORD.findall(self)


@operator("aten::rsplit", of="str")
def rsplit(self: str, separator: str = " ", max: int = -1) -> list[str]:  # noqa: A002 - the schema\'s own
    """Split at separators, starting from the end.

    Raises:
        Raised: the separator is empty, for which torch searches endlessly.
    """
    if not separator:
        if not self:
            return []
        raise raised("ValueError", "empty separator")
    bounded(len(self))
    meter.work(len(self) * len(separator))
    return self.rsplit(separator, max)


@operator("aten::splitlines", of="str")
def splitlines(self: str, keepends: bool = False) -> list[str]:
    """Split into lines at every byte of a line end, even if it belongs to another character; kept line ends are separate parts."""
    results: list[str] = []
    bounded(len(self))
    start = 0
    for at, item in enumerate(self):
        if item in LINE_ENDS:
            results.append(self[start:at])
            if keepends:
                results.append(item)
            start = at + 1
    if start < len(self):
        results.append(self[start:])
    return results


@operator("aten::partition", of="str")
def partition(self: str, separator: str) -> tuple[str, str, str]:
    """The parts before, at and after the first separator; an empty separator is found at the start."""
    if not separator:
        return "", "", self
    return self.partition(separator)


@operator("aten::rpartition", of="str")
def rpartition(self: str, separator: str) -> tuple[str, str, str]:
    """The parts before, at and after the last separator; an empty separator is found at the end."""
    if not separator:
        return self, "", ""
    return self.rpartition(separator)


@operator("aten::join", of="str")
def join(self: str, values: list[str]) -> str:
    """Join strings, with this string between them."""
    bounded(sum(map(len, values)) + len(self) * len(values))
    return self.join(values)


def _filling(fillchar: str) -> str:
    if len(fillchar) != 1:
        raise raised("RuntimeError", "TypeError: The fill character must be exactly one character long")
    return fillchar


@operator("aten::ljust", of="str")
def ljust(self: str, width: int, fillchar: str = " ") -> str:
    """Pad at the end."""
    bounded(width)
    return self.ljust(width, _filling(fillchar))


@operator("aten::rjust", of="str")
def rjust(self: str, width: int, fillchar: str = " ") -> str:
    """Pad at the start."""
    bounded(width)
    return self.rjust(width, _filling(fillchar))


@operator("aten::center", of="str")
def center(self: str, width: int, fillchar: str = " ") -> str:
    """Pad at both ends.

    Raises:
        Raised: the width is negative, for which torch pads endlessly.
    """
    if width < 0:
        raise raised("RuntimeError", "center() with a negative width never terminates")
    bounded(width)
    return self.center(width, _filling(fillchar))


@operator("aten::ord", of="str")
def ord_(self: str) -> int:
    """The value of the byte."""
    if len(self) != 1:
        raise raised("RuntimeError", f"String for ord() must be 1 character, found {len(self)}")
    return ord(self)


@operator("aten::chr", of="any")
def chr_(a: int) -> str:
    """The character of the lowest byte of a number, if the number is a code point."""
    if not 0 <= a < 0x10FFFF:
        raise raised("RuntimeError", f"chr() arg not in range(0x110000), found {a}")
    return chr(a & 0xFF)


@operator("aten::hex", of="any")
def hex_(a: int) -> str:
    """hex(a)."""
    return hex(a)


@operator("aten::oct", of="any")
def oct_(a: int) -> str:
    """oct(a)."""
    return oct(a)


@operator("aten::bin", of="any")
@operator("aten::bin", of="any", since="2.8.0")
def bin_(a: int) -> str:
    """bin(a)."""
    return bin(a)


@operator("aten::bin", of="any", since="1.13.0")
def bin_1_13(a: int) -> str:
    """From 1.13 to 2.7, the digits of the absolute value, which the smallest integer does not have."""
    return "-0b0" if a == -(1 << 63) else bin(a)
