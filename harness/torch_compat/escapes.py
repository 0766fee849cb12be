"""Text that comes from outside, made harmless for a terminal and for Markdown.

A terminal obeys control characters, and shows text in another order where bidirectional overrides stand in it. Neither is
printable by Python's count (:meth:`str.isprintable`), and neither are zero-width characters, line separators and lone
surrogates.
"""

from __future__ import annotations

__all__ = ["escaped", "escaped_lines", "escaped_output"]


def escaped(text: str) -> str:
    """Text on one line, each character that is not printable as an escape of Python's."""
    return text if text.isprintable() else "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def escaped_lines(text: str) -> str:
    """Text whose line breaks stay, and each other character that is not printable as an escape of Python's."""
    return text if text.isprintable() else "\n".join(map(escaped, text.split("\n")))


def escaped_output(text: str) -> str:
    """Text as it may go to a terminal: line breaks and tabs stay, each other character that is not printable is an escape.

    The escapes are those of JSON so that a JSON document stays one and says the same.
    """
    if text.isprintable() or (text.isascii() and not text.encode("ascii").translate(None, _HARMLESS)):
        return text
    return "".join(one if one.isprintable() or one in "\n\t" else _json_escape(ord(one)) for one in text)


_HARMLESS = bytes([9, 10, *range(32, 127)])


def _json_escape(code: int) -> str:
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
