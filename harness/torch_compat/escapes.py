"""Escaping of external text, so that it is harmless in a terminal and in Markdown.

A terminal obeys control characters, and reorders text that contains bidirectional overrides. Python does not consider either
printable (:meth:`str.isprintable`), nor zero-width characters, line separators and lone surrogates.
"""

from __future__ import annotations

__all__ = ["escaped", "escaped_lines", "escaped_output"]


def escaped(text: str) -> str:
    """Text on one line, with each nonprintable character as a Python escape."""
    return (
        text
        if text.isprintable()
        else "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)
    )


def escaped_lines(text: str) -> str:
    """Text with its line breaks kept, and every other nonprintable character as a Python escape."""
    return text if text.isprintable() else "\n".join(map(escaped, text.split("\n")))


def escaped_output(text: str) -> str:
    """Text that is safe for a terminal: line breaks and tabs stay, every other nonprintable character is escaped.

    The escapes are JSON escapes, so that a JSON document stays valid and keeps its meaning.
    """
    if text.isprintable() or (text.isascii() and not text.encode("ascii").translate(None, _HARMLESS)):
        return text
    return "".join(
        character if character.isprintable() or character in "\n\t" else _json_escape(ord(character)) for character in text
    )


_HARMLESS = bytes([9, 10, *range(32, 127)])


def _json_escape(code: int) -> str:
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
