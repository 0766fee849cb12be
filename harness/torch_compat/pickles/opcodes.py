"""The opcodes of pickles: names, lengths of arguments, and the values that arguments encode.

:mod:`torch_compat.pickles.machine` runs them. :func:`opcodes` lists those of a pickle that the machine has read.
"""

from __future__ import annotations

import codecs
import struct
from typing import TYPE_CHECKING, Any

from torch_compat.errors import Corrupt

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["COUNTED", "LINES", "OPCODES", "PLAIN", "SIGNED", "WIDTHS", "ascii_text", "number", "opcodes", "read_line", "value_of"]

OPCODES: dict[int, str] = {
    40: "MARK", 46: "STOP", 48: "POP", 49: "POP_MARK", 50: "DUP", 70: "FLOAT", 73: "INT", 74: "BININT", 75: "BININT1", 76: "LONG",
    77: "BININT2", 78: "NONE", 80: "PERSID", 81: "BINPERSID", 82: "REDUCE", 83: "STRING", 84: "BINSTRING", 85: "SHORT_BINSTRING",
    86: "UNICODE", 88: "BINUNICODE", 97: "APPEND", 98: "BUILD", 99: "GLOBAL", 100: "DICT", 125: "EMPTY_DICT", 101: "APPENDS",
    103: "GET", 104: "BINGET", 105: "INST", 106: "LONG_BINGET", 108: "LIST", 93: "EMPTY_LIST", 111: "OBJ", 112: "PUT", 113: "BINPUT",
    114: "LONG_BINPUT", 115: "SETITEM", 116: "TUPLE", 41: "EMPTY_TUPLE", 117: "SETITEMS", 71: "BINFLOAT", 128: "PROTO", 129: "NEWOBJ",
    130: "EXT1", 131: "EXT2", 132: "EXT4", 133: "TUPLE1", 134: "TUPLE2", 135: "TUPLE3", 136: "NEWTRUE", 137: "NEWFALSE", 138: "LONG1",
    139: "LONG4", 66: "BINBYTES", 67: "SHORT_BINBYTES", 140: "SHORT_BINUNICODE", 141: "BINUNICODE8", 142: "BINBYTES8",
    143: "EMPTY_SET", 144: "ADDITEMS", 145: "FROZENSET", 146: "NEWOBJ_EX", 147: "STACK_GLOBAL", 148: "MEMOIZE", 149: "FRAME",
    150: "BYTEARRAY8", 151: "NEXT_BUFFER", 152: "READONLY_BUFFER",
}  # fmt: skip
"""Opcodes of protocols 0 to 5, keyed by byte."""

COUNTED = {66: 4, 67: 1, 84: 4, 85: 1, 88: 4, 138: 1, 139: 4, 140: 1, 141: 8, 142: 8, 150: 8}
"""Opcodes whose argument is a length of this many bytes, followed by as many bytes as it says."""
SIGNED = frozenset({84, 139})
"""Opcodes whose argument is a signed length."""
PLAIN = frozenset({66, 67, 138, 139, 142, 150})
"""Opcodes whose counted or fixed-size argument does not contain text."""
LINES = frozenset({70, 73, 76, 80, 83, 86, 103, 105, 112})
"""Opcodes whose argument ends with a newline. INST has two arguments, as does GLOBAL, which the machine parses itself."""
WIDTHS = {71: 8, 74: 4, 75: 1, 77: 2, 88: 4, 104: 1, 106: 4, 113: 1, 114: 4, 128: 1, 149: 8}
"""Sizes of fixed-size arguments in bytes, including the length of BINUNICODE."""
_FIXED = {
    71: struct.Struct(">d"), 74: struct.Struct("<i"), 75: struct.Struct("B"), 77: struct.Struct("<H"), 104: struct.Struct("B"),
    106: struct.Struct("<I"), 113: struct.Struct("B"), 114: struct.Struct("<I"), 128: struct.Struct("B"), 149: struct.Struct("<Q"),
}  # fmt: skip
_NAMES = frozenset({99, 105})  # GLOBAL, INST: a module and a name
_NUMBERS = frozenset({103, 112})  # GET, PUT
_STOP = 46


def opcodes(data: bytes) -> Iterator[tuple[str, Any]]:
    """The opcodes of a pickle up to its STOP, in order: names and arguments; None if an opcode has no argument.

    Arguments are those that ``pickletools.genops`` of the standard library gives: ``"torch FloatStorage"`` for GLOBAL. Python 2 strings are
    text only if they are UTF-8, as in the machine.

    Parameters:
        data: begins with a pickle that :func:`torch_compat.pickles.machine.unpickle` has read without an error.
    """
    i = 0
    while True:
        op = data[i]
        i += 1
        argument: Any = None
        if op in _FIXED:
            (argument,) = _FIXED[op].unpack_from(data, i)
            i += _FIXED[op].size
        elif op in COUNTED:
            start = i + COUNTED[op]
            end = start + int.from_bytes(data[i:start], "little")
            argument = value_of(op, data[start:end])
            i = end
        elif op in _NAMES or op in LINES:
            end = data.index(b"\n", i)
            if op in _NAMES:
                end = data.index(b"\n", end + 1)
            line = data[i:end]
            i = end + 1
            if op in _NAMES:
                argument = line.decode().replace("\n", " ", 1)
            elif op in _NUMBERS:
                argument = number(line)
            else:
                argument = ascii_text(line) if op == 80 else read_line(op, line)
        yield OPCODES[op], argument
        if op == _STOP:
            return


def ascii_text(line: bytes) -> str:
    """The argument of PERSID.

    Raises:
        Corrupt: it is not ASCII.
    """
    try:
        return line.decode("ascii")
    except UnicodeDecodeError:
        raise Corrupt("has a persistent id that is not ASCII", code="bad-text") from None


def number(line: bytes) -> int:
    """The argument of GET or PUT: a slot of the memo.

    Raises:
        Corrupt: it is no number.
    """
    try:
        return int(line)
    except ValueError:
        raise Corrupt("contains an invalid number", code="bad-number") from None


def value_of(op: int, raw: bytes) -> Any:
    """The value of an opcode of :data:`COUNTED`, decoded from its bytes.

    Raises:
        UnicodeDecodeError: a text of Python 3 is not UTF-8.
    """
    if op in {138, 139}:
        return int.from_bytes(raw, "little", signed=True)
    if op in {66, 67, 142}:
        return raw
    if op == 150:
        return bytearray(raw)
    if op in {84, 85}:
        return _python2_text(raw)
    return raw.decode("utf-8", "surrogatepass")


def _python2_text(raw: bytes) -> str | bytes:
    """A ``str`` of Python 2: text if it is valid (as ``torch.load`` reads it), else bytes."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def read_line(op: int, line: bytes) -> Any:
    """The value of FLOAT, INT, LONG, STRING or UNICODE, decoded from its line without the newline.

    Raises:
        Corrupt: the line does not encode such a value.
    """
    try:
        if op == 86:  # UNICODE
            return codecs.raw_unicode_escape_decode(line)[0]  # by name, the codec would be imported
        if op == 83:  # STRING
            if len(line) >= 2 and line[0] == line[-1] and line[:1] in {b'"', b"'"}:
                return _python2_text(codecs.escape_decode(line[1:-1])[0])
            line = b"?"  # no number either
        if op == 70:  # FLOAT
            return float(line)
        if line in {b"00", b"01"}:
            return line == b"01"
        return int(line.removesuffix(b"L") if op == 76 else line, 0)
    except ValueError:
        raise Corrupt(f"has {line[:40]!r} as the argument of {OPCODES[op]}", code="bad-number") from None
