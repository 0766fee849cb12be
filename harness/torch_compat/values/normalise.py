"""Normalize texts that real releases print: the same cause gives the same text on every machine and in every run."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = [
    "alike",
    "brief",
    "brief_result",
    "headline",
    "last_word",
    "normalise",
    "normalise_result",
    "plain_error",
    "same_error",
]

LONGEST = 800  # characters kept of one text
LONGEST_CAUSE = LONGEST // 2  # characters kept of the cause in a text of TorchScript's interpreter
MARK = " …"
"""Marks where a text was cut."""
_CAUSE_IS_LAST = ("The following operation failed", "Exception")
"""How texts of the TorchScript interpreter begin: a traceback of the program, with the cause at its end."""
_CAUSE_IS_FIRST = re.compile(r"\n(?:The above )?operation failed in interpreter\b")
"""The text between the cause and the traceback of the program in 1.0 to 1.3."""
_NAMED = re.compile(r"(?:\w+\.)*\w*(?:Error|Exception)\b:?")

_RULES = (
    (re.compile(r"\x1b\[[0-9;]*m"), ""),  # colors
    (re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]"), ""),  # anything else that would move a terminal's cursor
    (re.compile(r"^[^\S\n]*frame #\d+:.*(?:\n|\Z)", re.MULTILINE), ""),  # C++ stack frames, which name addresses of this run
    (re.compile(r"0x[0-9a-fA-F]{6,}"), "0x.."),
    (re.compile(r"(?<![\w.>])/(?:[^\s/:'\"()]+/)*(?:site-packages|dist-packages)/"), ""),
    (re.compile(r"(?<![\w.>])/(?:[^\s/:'\"()]+/)*lib/python3\.\d+/"), "python/"),
    (re.compile(r"(\.(?:cpp|cc|cu|h|py)\"?):\d+"), r"\1:N"),
    (re.compile(r"\bline \d+"), "line N"),
    (re.compile(r"[ \t]+$", re.MULTILINE), ""),
)


def normalise(text: str, replace: dict[str, str] | None = None) -> str:
    """A text without addresses, line numbers, stack frames, colors and paths of the machine.

    Parameters:
        text: what a release printed.
        replace: literal strings specific to this run (such as the path of an archive) and their replacements.
    """
    for literal in sorted(replace or {}, key=len, reverse=True):
        text = text.replace(literal, (replace or {})[literal])
    for pattern, instead in _RULES:
        text = pattern.sub(instead, text)
    text = brief(text.strip())
    return text if len(text) <= LONGEST else text[: LONGEST - len(MARK)] + MARK


def brief(text: str) -> str:
    """A message without the traceback of the program that TorchScript's interpreter quotes: its first line and the cause.

    The traceback shows lines of the archive's own code, or of its sources, with a caret. It makes up most of the text, differs between
    releases, and contains nothing beyond the archive and the cause. Brief texts stay unchanged.
    """
    first = _CAUSE_IS_FIRST.search(text)
    if first is not None:
        return text[: first.start()].rstrip()
    if not text.startswith(_CAUSE_IS_LAST[0]):
        return text
    head, *lines = text.splitlines()
    if text.endswith(MARK):  # recorded when cutting a text did not yet keep the cause
        return head.removesuffix(MARK) + MARK
    named = [at for at, line in enumerate(lines) if _NAMED.match(line.strip())]
    cause = "\n".join(lines[named[-1] if named else -1 :])
    return f"{head}\n{cause}"[: len(head) + 1 + LONGEST_CAUSE].rstrip()


def brief_result(result: Any) -> Any:
    """A result, or any part of it, with the messages of its errors shortened by :func:`brief`."""
    if isinstance(result, list):
        return [brief_result(item) for item in result]
    if not isinstance(result, dict):
        return result
    return {
        key: brief(value) if key == "message" and isinstance(value, str) else brief_result(value) for key, value in result.items()
    }


def normalise_result(result: Any, archive: Path) -> Any:
    """A result with texts that are the same on every machine and in every run; warnings distinct and sorted.

    Parameters:
        result: what the worker reports of a program or a value, or any part of it.
        archive: the path that the worker was given, which texts may quote.
    """
    if isinstance(result, list):
        return [normalise_result(item, archive) for item in result]
    if not isinstance(result, dict):
        return result
    plain: dict[str, Any] = {}
    for key, value in result.items():
        if key in {"message", "said"} and isinstance(value, str):
            plain[key] = normalise(value, {str(archive): "<archive>"})
        elif key == "warnings":
            texts = {(category, normalise(text, {str(archive): "<archive>"})) for category, text in value}
            plain[key] = sorted([category, text] for category, text in texts)
        else:
            plain[key] = normalise_result(value, archive)
    return plain


@functools.lru_cache(maxsize=8192)
def headline(text: str) -> str:
    """The line of a message that states the cause.

    TorchScript quotes a traceback of the program first and ends with the cause; other messages begin with the cause.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return ""
    if lines[0].startswith(_CAUSE_IS_LAST):
        named = [line for line in lines if _NAMED.match(line)]
        return (named or lines)[-1][:LONGEST_CAUSE].rstrip()
    return lines[0]


# What varies between messages of one cause. Applied in this order to headlines when causes are compared; recorded texts
# stay unchanged.
_VARIES = (
    (re.compile(r"\"?(?:/?[\w.+-]+/)*[\w.+-]+\.(?:cpp|cc|cu|cuh|hpp|h|py)\b\"?(?::N\b|:\d+)?"), "<file>"),
    (re.compile(r" (?:\((?:\w+|operator\(\)) at <file>\)|at <file>:?)$"), ""),  # old releases also print where it was raised
    (
        re.compile(r"(?<![\w.])[\w.-]+/(?=(?:version|data\.pkl|constants\.pkl|model\.json|bytecode\.pkl|\.data/\w+)\b)"),
        "<archive>/",
    ),
    (re.compile(r"(?<![\w.])(?:__torch__|__main__)(?:\.\w+)+"), "<class>"),
    (re.compile(r"\b_*torch_mangle_\d+"), "<class>"),
    (re.compile(r"[a-z_]\w*::\w+(?:\.\w+)?(?:(?:,? and |[,;]? )[a-z_]\w*::\w+(?:\.\w+)?)+[,;]?"), "<operators>"),
    (re.compile(r"(?<![\w.<])\d+(?:\.\d+)*(?:\+\w+)?(?!\w)"), "N"),
)


@functools.lru_cache(maxsize=8192)
def alike(line: str) -> str:
    """A headline without what varies between messages of one cause: source files, classes, lists of operators, numbers.

    A single operator stays: which one is missing is the cause.
    """
    for pattern, instead in _VARIES:
        line = pattern.sub(instead, line)
    return line.strip()


_CLASS = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception): ")


def plain_error(error: Sequence[str]) -> tuple[str, str]:
    """The class of an error, and its headline without what varies.

    Newer releases repeat the class in front of what TorchScript's interpreter raises; this is removed.
    """
    return _plain(error[0], error[1])


@functools.lru_cache(maxsize=8192)
def _plain(kind: str, message: str) -> tuple[str, str]:
    return kind.removeprefix("builtins."), alike(_CLASS.sub("", headline(message)))


def same_error(item: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two errors, by class and message, are the same: their classes, and their headlines without what varies.

    If a text was recorded when cutting a text did not yet keep the cause, only the classes are compared.
    """
    if any(message.startswith(_CAUSE_IS_LAST) and message.endswith(MARK) for _, message in (item, other)):
        return item[0] == other[0]
    return plain_error(item) == plain_error(other)


def last_word(text: str) -> str:
    """What an aborted process printed as the cause; "" if it printed none."""
    match = re.search(r"^\s*what\(\):\s*(.+)$", text, re.MULTILINE)
    return match.group(1).strip() if match else ""
