"""Parses TorchScript source to a syntax tree with positions, within a memory bound.

TorchScript follows Python's grammar, so the tree is that of :mod:`ast`, to be searched and changed with the visitors of that module.
Nothing is ever executed.
"""

from __future__ import annotations

import ast
import re
import warnings
from typing import Any

__all__ = ["FILE", "MOST_PARSED", "NO_SOURCE", "REQUIRED", "dotted", "memory_needed", "nodes_of", "parse", "parse_expression"]

MOST_PARSED = 900_000_000
"""Maximum memory that Python's parser may need for the source of a program, in bytes, estimated before parsing. The weights
are slightly higher than the measurements for source that consists of a single construct. Ordinary source of about 50,000
lines stays below the limit."""
NO_SOURCE = (SyntaxError, ValueError, RecursionError, MemoryError)
"""Exceptions that Python's parser raises for text that is not source, contains a null byte or is nested too deeply."""
OF_A_BYTE, OF_A_STATEMENT, OF_A_MARK, OF_A_GAP = 107, 1800, 1250, 450
FILE = "<torchscript source>"
REQUIRED = "__required__"
"""Placeholder default for a required parameter that follows parameters with defaults."""
_WORDS = bytes(code for code in range(256) if chr(code).isalnum() or chr(code) in "_ ")
_PARAMETER = re.compile(r" {4,}[A-Za-z_]\w*: [^=]")
EMPTY, SPELLED = "Tuple[]", "Tuple[()]"
"""The type of an empty tuple, as written by releases up to 1.8, and as written by Python and later releases."""
_TEXT_OR_EMPTY = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\bTuple\[\]""")
_SHORT = 10_000  # characters of an expression; any text of this length stays far below the bound


def memory_needed(source: bytes) -> int:
    """Estimate the maximum memory, in bytes, that Python's parser needs for a source."""
    statements = source.count(b"\n") + source.count(b";")
    marks = len(source.translate(None, _WORDS)) - statements
    gaps = source.count(b" ") - source.count(b"  ")  # of an indentation half
    return OF_A_BYTE * len(source) + OF_A_STATEMENT * statements + OF_A_MARK * marks + OF_A_GAP * gaps


def parse(text: str, name: str = FILE) -> ast.Module:
    """The tree of a source file. Callers bound its memory beforehand with :func:`memory_needed`.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: it is not source; together they are :data:`NO_SOURCE`.
    """
    with warnings.catch_warnings():
        # Python's warnings quote lines of the archive's source, which are irrelevant to users and unsafe for a terminal
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text, name)
        except SyntaxError as error:
            if (spelled := _spelled(text)) != text:
                return parse(spelled, name)
            if "default argument" not in str(error.msg):
                raise
            # 1.4 writes defaults before parameters without one; each parameter is on a separate line
            return ast.parse("\n".join(map(_with_default, text.split("\n"))), name)


def parse_expression(text: str) -> ast.expr:
    """Parse one expression: a type, a call, a symbolic size.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: it is not an expression, or is longer than the memory bound allows; together
            they are :data:`NO_SOURCE`.
    """
    if len(text) > _SHORT and memory_needed(text.encode("utf-8", "surrogatepass")) > MOST_PARSED:
        raise MemoryError("the expression is too long to be parsed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(_spelled(text).strip() if EMPTY in text else text.strip(), FILE, "eval").body


def nodes_of(root: ast.AST) -> list[ast.AST]:
    """The nodes of a tree without contexts and keywords, unordered; twice as fast as :func:`ast.walk`."""
    results: list[ast.AST] = []
    waiting: list[Any] = [root]
    while waiting:
        node = waiting.pop()
        results.append(node)
        kind = node.__class__
        if kind is ast.Name or kind is ast.Constant:
            continue
        if kind is ast.Call:
            waiting.append(node.func)
            waiting += node.args
            for keyword in node.keywords:
                waiting.append(keyword.value)
        elif kind is ast.Attribute:
            waiting.append(node.value)
        elif kind is ast.Assign:
            waiting += node.targets
            waiting.append(node.value)
        else:
            waiting += ast.iter_child_nodes(node)
    return results


def dotted(node: ast.AST) -> str:
    """The dotted name of a chain of attributes, ``torch.add``; "" if it is not one."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    parts.append(node.id)
    return ".".join(reversed(parts))


def _spelled(text: str) -> str:
    """Replace the older spelling of such types in a source; string literals stay unchanged."""
    return _TEXT_OR_EMPTY.sub(lambda match: SPELLED if match[0] == EMPTY else match[0], text)


def _with_default(line: str) -> str:
    """Add a default to a parameter on its own line if it has none; other lines stay unchanged."""
    if not _PARAMETER.match(line):
        return line
    end = line.find(") ->") if line.endswith(":") else len(line) - 1 if line.endswith(",") else -1
    return line if end < 0 or "=" in line[:end] else f"{line[:end]}={REQUIRED}{line[end:]}"
