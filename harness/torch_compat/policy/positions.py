"""The line of each value in a TOML file: a map from the path of a value, such as ``("release", 3, "date")``, to its line.

``tomllib`` returns values without positions. This scanner returns positions without values: it walks the structure of the text (headers,
arrays of tables, dotted and quoted keys, inline tables, arrays) and skips the values. It is only meant for text that ``tomllib`` has
accepted, so it need not detect errors.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property
from typing import TypeAlias

from torch_compat.releases.data import parsed

__all__ = ["Lines", "Path", "Positions", "scan"]

Path: TypeAlias = tuple[str | int, ...]
"""Keys and, inside arrays, indices: ``release[3].date`` is ``("release", 3, "date")``."""

Lines: TypeAlias = dict[Path, int]
"""The 1-based line of each value's key; for an element of an array, the line on which the element starts."""

_BLANK = re.compile(r"[ \t]*")
_GAP = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_STRING = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*"""(?:"{0,2})'  # up to two quotes of the content may touch the closing three
    r"|'''(?:[^']|'(?!''))*'''(?:'{0,2})"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
_SCALAR = re.compile(r"[^,\]}#\n]+")


def scan(text: str) -> Lines:
    """Return the line of every key, table and array element of a TOML document.

    An implicit table (``a`` in ``[a.b]``) has the line that first implies it, until it has a header of its own.

    Raises:
        ValueError: the text is not TOML; ``tomllib`` would have refused it.
    """
    return _Scanner(text).scan()


class Positions:
    """The lines of one TOML document. It is scanned when the first line is asked for, because only problems have lines."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def lines(self) -> Lines:
        """The line of every key, table and array element."""
        return scan(self._text)

    def line_of(self, path: Path) -> int:
        """Return the line of a path; if the path does not occur (a missing key), of its innermost container that does; else 1."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.lines:
                return self.lines[path[:length]]
        return 1


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.starts = [0, *(match.end() for match in re.finditer(r"\n", text))]
        self.lines: Lines = {}
        self.last_element: dict[Path, int] = {}  # array of tables -> index of its newest table

    def scan(self) -> Lines:
        table: Path = ()
        self.take(_GAP)
        while self.position < len(self.text):
            if self.at("["):
                table = self.header()
            else:
                self.pair(table)
            self.take(_GAP)
        return self.lines

    def header(self) -> Path:
        """Scan ``[a.b]`` or ``[[a.b]]`` and return the path that the following pairs belong to."""
        line, in_array = self.line(), self.at("[[")
        self.position += 2 if in_array else 1
        *parents, last = self.key()
        self.expect("]]" if in_array else "]")
        path: Path = ()
        for parent in parents:
            path = self.newest((*path, parent))
            self.imply(path, line)
        path = (*path, last)
        if in_array:
            self.lines.setdefault(path, line)
            self.last_element[path] = self.last_element.get(path, -1) + 1
            path = self.newest(path)
        self.lines[path] = line
        return path

    def pair(self, table: Path) -> None:
        """Scan ``a.b = value`` inside a table."""
        line = self.line()
        path = table
        for part in self.key():
            path = (*path, part)
            self.imply(path, line)
        self.expect("=")
        self.value(path)

    def key(self) -> list[str]:
        parts = [self.key_part()]
        while self.at("."):
            self.position += 1
            parts.append(self.key_part())
        return parts

    def key_part(self) -> str:
        self.take(_BLANK)
        if self.at('"') or self.at("'"):
            quoted = self.take(_STRING)
            (part,) = parsed(f"{quoted} = 0", "a key")  # only tomllib knows all the escapes
        else:
            part = self.take(_BARE_KEY)
        self.take(_BLANK)
        return part

    def value(self, path: Path) -> None:
        self.take(_GAP)
        if self.at('"') or self.at("'"):
            self.take(_STRING)
        elif self.at("["):
            self.array(path)
        elif self.at("{"):
            self.inline_table(path)
        else:
            self.take(_SCALAR)

    def array(self, path: Path) -> None:
        self.expect("[")
        index = 0
        while not self.closed("]"):
            element = (*path, index)
            self.lines[element] = self.line()
            self.value(element)
            self.comma()
            index += 1

    def inline_table(self, path: Path) -> None:
        self.expect("{")
        while not self.closed("}"):
            self.pair(path)
            self.comma()

    def closed(self, bracket: str) -> bool:
        """Whether the bracket is next; if so, step over it."""
        self.take(_GAP)
        if not self.at(bracket):
            return False
        self.position += 1
        return True

    def comma(self) -> None:
        self.take(_GAP)
        if self.at(","):
            self.position += 1

    def newest(self, path: Path) -> Path:
        """Return the path, or the path of its newest table if it is an array of tables."""
        return (*path, self.last_element[path]) if path in self.last_element else path

    def imply(self, path: Path, line: int) -> None:
        self.lines.setdefault(path, line)

    def line(self) -> int:
        return bisect_right(self.starts, self.position)

    def at(self, literal: str) -> bool:
        return self.text.startswith(literal, self.position)

    def expect(self, literal: str) -> None:
        if not self.at(literal):
            raise ValueError(f"line {self.line()}: expected {literal!r}, found {self.text[self.position : self.position + 20]!r}")
        self.position += len(literal)

    def take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.position)
        if match is None:
            raise ValueError(f"line {self.line()}: found {self.text[self.position : self.position + 20]!r}, which is not TOML")
        self.position = match.end()
        return match.group()
