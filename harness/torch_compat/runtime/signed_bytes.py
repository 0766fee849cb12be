"""Pickles of releases before 1.3, in which a one-byte integer is signed."""

from __future__ import annotations

__all__ = ["signed_bytes"]

_ARGUMENTS = {
    b"\x80": 1,
    b"q": 1,
    b"h": 1,
    b"r": 4,
    b"j": 4,
    b"J": 4,
    b"K": 1,
    b"M": 2,
    b"G": 8,
}  # opcodes and the lengths of their arguments


def signed_bytes(data: bytes) -> bytes:
    """The pickle with each BININT1 replaced by a one-byte LONG1, which is signed."""
    result, at = bytearray(), 0
    while at < len(data):
        opcode = data[at : at + 1]
        if opcode == b"K":
            result += b"\x8a\x01" + data[at + 1 : at + 2]
            at += 2
            continue
        if opcode == b"c":
            end = data.find(b"\n", data.find(b"\n", at) + 1) + 1
            if end == 0:
                return data  # truncated: unpickling reports it
        elif opcode == b"X":
            end = at + 5 + int.from_bytes(data[at + 1 : at + 5], "little")
        elif opcode == b"\x8a":
            end = at + 2 + data[at + 1]
        else:
            end = at + 1 + _ARGUMENTS.get(opcode, 0)
        result += data[at:end]
        at = end
    return bytes(result)
