"""Messages between a process and the child that runs a program, and the encoding of runtime values in them.

A message is a header, a document and bytes. The header is two little-endian integers of 32 and 64 bits, the lengths of the other two. The
document is JSON. The bytes are those of storages, one after the other, each at a multiple of 16. Large storages are placed in shared memory
(:class:`Arena`) instead, and the message has no bytes.

Values in a document: null, booleans, 64-bit integers, finite floats, strings and lists are represented as such; everything else is an
object with one key:

* ``n``   a non-finite float, as its bits: ``7ff8000000000000``; ``i`` an integer that does not fit in 64 bits, as its digits
* ``c``   a complex number, ``t`` a tuple, ``d`` a dictionary: ``[[key, value], ...]``
* ``x``   a tensor: ``[storage, dtype, shape, strides, offset]``, in elements; strides are null if row-major
* ``y``   a dtype by its name, ``v`` a device
* ``p``   a named tuple: ``[qualified name, [field, ...], [value, ...]]``
* ``k``   a dictionary or list of another class: ``[qualified name of the class, value]``
* ``h``   an object that stays in the child, as a handle: ``[number, class, ...]``
* ``o``   an object that no program accepts: the name of its class

The receiver of a message trusts nothing in it: lengths are checked before memory is allocated, the number of values before they are
created, and every tensor passes through :mod:`torch_compat.arrays`. An invalid message raises :class:`torch_compat.errors.ReaderError` with
the code ``bad-reply``.
"""

from __future__ import annotations

import fcntl
import json
import math
import mmap
import os
import struct
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat import arrays
from torch_compat.errors import HarnessError, ReaderError, Unsupported
from torch_compat.runtime import dtypes
from torch_compat.runtime.dtypes import Dtype
from torch_compat.runtime.tensor import OpaqueTensor, Tensor, owner
from torch_compat.runtime.values import Device, DictOfClass, EnumMember, ListOfClass, NamedTupleValue, ScriptObject, container
from torch_compat.words import count_of

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence

__all__ = [
    "INLINE",
    "MOST_DOCUMENT",
    "Arena",
    "EncodedTexts",
    "Gone",
    "Lines",
    "Reading",
    "Writing",
    "bad",
    "padded",
    "rounded",
    "whole",
]

Array = np.ndarray[Any, np.dtype[Any]]
HEAD = struct.Struct("<IQ")
ALIGNED = 16  # bytes: alignment of storages
INLINE = 1 << 15  # bytes of storages that a message itself contains; more go through shared memory
AT_ONCE = 1 << 16  # bytes requested at a time
MOST_DOCUMENT = 1 << 28  # bytes
MOST_VALUES = 1 << 22  # items of lists and the like in one document
MOST_OBJECTS = 1 << 20  # tensors, tuples, dictionaries and other values with a key
DEEPEST = 120  # levels: a program produces at most 100
INT64 = 1 << 63
REMEMBERED = 1 << 12  # bytes: a document up to this size is not parsed again if the next message repeats it
MOST_TEXTS = 64
ENCODED = json.JSONEncoder(separators=(",", ":")).encode
DECODED = json.JSONDecoder().decode


class Gone(Exception):  # noqa: N818 - not an error: the other side closed the connection, and the caller knows why
    """The other side has closed the connection."""


def bad(text: str) -> ReaderError:
    """Return the error for an invalid message."""
    return ReaderError(f"the process that runs the program sent an invalid reply: {text}", code="bad-reply")


def rounded(size: int) -> int:
    """Return the offset of the next storage."""
    return -(-size // ALIGNED) * ALIGNED


def whole(array: Any) -> bool:
    """Whether an array is row-major, as most arguments and results are."""
    return array.__class__ is np.ndarray and array.flags.c_contiguous


def padded(array: Array) -> bytes:
    """Return the bytes of a row-major array for a message, padded to the beginning of the next storage."""
    raw = array.tobytes()
    return raw + bytes(rounded(len(raw)) - len(raw))


class EncodedTexts(dict[Any, bytes]):
    """Encoded documents, keyed by everything they depend on: calls in a loop differ only in their bytes."""

    def remember(self, key: Any, document: Any) -> None:
        """Cache the text of a document; limited in size and number."""
        text = ENCODED(document).encode("ascii")
        if len(text) <= REMEMBERED:
            if len(self) >= MOST_TEXTS:
                self.clear()
            self[key] = text


class Arena:
    """Memory that two processes share. Its creator seals its size, so that the other process cannot shrink it.

    Attributes:
        size: in bytes.
        bytes: the memory, as an array.
        descriptor: that of the file behind it; -1 once the other side has it.
    """

    def __init__(self, size: int, descriptor: int = -1) -> None:
        if descriptor < 0:
            descriptor = os.memfd_create("torch-compat", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            os.ftruncate(descriptor, size)
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        self.size = size
        self.descriptor = descriptor
        self.bytes = arrays.elements(memoryview(mmap.mmap(descriptor, size)), np.dtype(np.uint8))

    def handed_over(self) -> None:
        """Close the descriptor once the other side has its own; the memory stays mapped."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


class Lines:
    """A connection, message by message.

    Attributes:
        patience: seconds that a message may take from its first to its last byte.
        unread: the bytes received after the last message.
        repeats: whether a message that repeats the previous document gets the same object without parsing: calls in a loop send the same
            document. Only for receivers that do not modify it.
    """

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.patience = math.inf
        self.unread = b""
        self.repeats = False
        self._last: tuple[bytes | None, Any] = None, None

    def send(self, document: Any, data: Sequence[Any] = (), descriptors: Sequence[int] = ()) -> None:
        """Send a message.

        Parameters:
            document: a document, or the text of one (:class:`EncodedTexts`).
            data: buffers of storages, :func:`padded`.
            descriptors: files to send with it.

        Raises:
            Gone: the other side has closed the connection.
        """
        import socket  # noqa: PLC0415 - already imported by the creator of the connection

        text = document if document.__class__ is bytes else ENCODED(document).encode("ascii")
        raw = b"".join([HEAD.pack(len(text), sum([len(part) for part in data])), text, *data])
        try:
            if descriptors:
                rights = struct.pack(f"{len(descriptors)}i", *descriptors)
                sent = self.connection.sendmsg([raw], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)], socket.MSG_NOSIGNAL)
            else:
                sent = self.connection.send(raw, socket.MSG_NOSIGNAL)
            if sent < len(raw):
                self.connection.sendall(memoryview(raw)[sent:])
        except (BrokenPipeError, ConnectionResetError) as error:
            raise Gone from error

    def receive(self, most: int, descriptors: list[int] | None = None) -> tuple[Any, memoryview]:
        """Return the document and the bytes of the next message.

        Parameters:
            most: limit of the bytes in addition to the document.
            descriptors: receives the files that come with it; without it, the kernel closes them.

        Raises:
            Gone: the other side has closed the connection.
            ReaderError: it is not a valid message, or too large.
            BlockingIOError: the connection timed out.
        """
        raw, self.unread = self.unread or self._some(descriptors), b""
        if len(raw) < HEAD.size:
            raw = self._rest(raw, HEAD.size)
        length, extra = HEAD.unpack_from(raw)
        if length > MOST_DOCUMENT or extra > most:
            raise bad(f"it declares {length} bytes of text (limit {MOST_DOCUMENT}) and {extra} bytes of data (limit {most})")
        whole = HEAD.size + length + extra
        if len(raw) > whole:
            raw, self.unread = raw[:whole], raw[whole:]
        elif len(raw) < whole:
            raw = self._rest(raw, whole)
        text = raw[HEAD.size : HEAD.size + length]
        data = memoryview(raw)[HEAD.size + length :]
        if text == self._last[0]:
            return self._last[1], data
        document = _document(text)
        if self.repeats and length <= REMEMBERED:
            self._last = text, document
        return document, data

    def _some(self, descriptors: list[int] | None = None) -> bytes:
        try:
            if descriptors is None:
                raw = self.connection.recv(AT_ONCE)
            else:
                import socket  # noqa: PLC0415 - as above

                raw, result, _, _ = socket.recv_fds(self.connection, AT_ONCE, 4)
                descriptors += result
        except ConnectionResetError as error:
            raise Gone from error
        if not raw:
            raise Gone
        return raw

    def _rest(self, raw: bytes, whole: int) -> bytes:
        """Read the rest as it arrives: no memory is allocated on the basis of a stated length."""
        parts, left, began = [raw], whole - len(raw), time.monotonic()
        while left:
            if time.monotonic() - began > self.patience:
                raise BlockingIOError
            parts.append(self.connection.recv(min(left, 16 * AT_ONCE)))
            if not parts[-1]:
                raise Gone
            left -= len(parts[-1])
        return b"".join(parts)


def _document(text: bytes) -> Any:
    """Parse the document of a message.

    Raises:
        ReaderError: it is not valid, or has too many values.
    """
    if len(text) > AT_ONCE:
        values, objects = text.count(b",") + text.count(b"["), text.count(b"{")
        if values > 2 * MOST_VALUES or objects > MOST_OBJECTS:
            raise bad(f"a document of {values} values and {objects} objects")
    try:
        return DECODED(text.decode("ascii"))
    except (ValueError, RecursionError) as error:
        raise bad(f"{type(error).__name__} in its document") from error


class Writing:
    """Encodes the values of one message, with the storages of their tensors.

    Parameters:
        known: arrays whose storages the other side already has: the first storages, in order.
        hand: registers an object that stays in this process and returns its number; None if no object may stay.
    """

    def __init__(self, known: Sequence[Array] = (), hand: Callable[[Any], int] | None = None) -> None:
        self._known = known
        self._hand = hand
        self._whole = {id(item): place for place, item in enumerate(known)}  # by array identity, whatever they are views of
        self._places = {id(owner(item)): place for place, item in enumerate(known)}
        self._storages: list[tuple[Array, list[int]]] = []
        self._views: list[tuple[list[Any], int, int]] = []
        self._left = MOST_OBJECTS

    def put(self, value: Any) -> Any:
        """Return a value as represented in a document.

        Raises:
            Unsupported: it is too large.
        """
        kind = value.__class__
        if value is None or kind is bool or kind is str:
            return value
        if kind is int:
            return value if -INT64 <= value < INT64 else {"i": hex(value)}
        if kind is float:
            return value if math.isfinite(value) else {"n": struct.pack(">d", value).hex()}
        if kind is list:
            return [self.put(item) for item in value]
        self._left -= 1
        if self._left < 0:
            hint = "torch_compat.load(..., in_process=True) has no such limit"
            message = f"a call has more than {MOST_OBJECTS} tensors, tuples and dictionaries, too many to send between processes"
            raise Unsupported(message, hint=hint, code="too-large")
        if kind is Tensor:
            return {"x": self.tensor(value.array)}
        if kind is tuple:
            return {"t": [self.put(item) for item in value]}
        if kind is dict:
            return {"d": [[self.put(key), self.put(item)] for key, item in value.items()]}
        if kind is complex:
            return {"c": [self.put(value.real), self.put(value.imag)]}
        return self._other(value)

    def _other(self, value: Any) -> Any:
        if value.__class__ is Dtype:
            return {"y": value.name}
        if value.__class__ is Device:
            return {"v": str(value)}
        if value.__class__ is DictOfClass:
            return {"k": [value.type_name, self.put(dict(value))]}
        if value.__class__ is ListOfClass:
            return {"k": [value.type_name, self.put(list(value))]}
        if isinstance(value, Kept):
            return {"h": [value.number]}
        if self._hand is not None:
            if isinstance(value, NamedTupleValue):
                return {"p": [value.qualified_name, list(value.fields), [self.put(item) for item in value]]}
            if isinstance(value, ScriptObject | EnumMember):
                return {"h": [self._hand(value), value.qualified_name]}
            if value.__class__ is OpaqueTensor:
                return {"h": [self._hand(value), f"{value.layout} {value.dtype.name}"]}
        return {"o": value.__class__.__name__}

    def tensor(self, array: Array) -> list[Any]:
        """Encode a tensor: ``[storage, dtype, shape, strides, offset]``."""
        size = array.itemsize
        whole = self._whole.get(id(array))
        if whole is not None:
            strides = None if array.flags.c_contiguous else [step // size for step in array.strides]
            return [whole, dtypes.of_numpy(array.dtype).name, list(array.shape), strides, 0]
        memory = owner(array)
        if any(step % size for step in array.strides):
            array = memory = array.copy()
        if memory is array:
            at, first, end = 0, 0, int(array.nbytes)
        else:
            at = int(array.__array_interface__["data"][0]) - int(memory.__array_interface__["data"][0])
            first, end = arrays.extent(array.shape, array.strides, int(at))
            end += size - 1 if array.size else 0
        strides = None if array.flags.c_contiguous else [step // size for step in array.strides]
        results: list[Any] = [self._place(memory), dtypes.of_numpy(array.dtype).name, list(array.shape), strides, at]
        if results[0] >= len(self._known):
            span = self._storages[results[0] - len(self._known)][1]
            span[0], span[1] = min(span[0], first), max(span[1], end)
        self._views.append((results, at, size))
        return results

    def _place(self, memory: Array) -> int:
        place = self._places.get(id(memory))
        if place is None:
            place = self._places[id(memory)] = len(self._places)
            self._storages.append((memory, [memory.nbytes, 0]))
        return place

    def storages(self) -> list[Array]:
        """Return the bytes of new storages, as far as they are visible through views. Nothing may be written after that."""
        starts = [first // ALIGNED * ALIGNED if first < end else 0 for _, (first, end) in self._storages]
        for result, at, size in self._views:
            place = result[0] - len(self._known)
            result[4] = (at - (starts[place] if place >= 0 else 0)) // size
        return [_flat(memory)[start : max(end, start)] for start, (memory, (_, end)) in zip(starts, self._storages, strict=True)]


def _flat(memory: Array) -> Array:
    """Return all bytes of an array that owns its memory, in memory order."""
    return memory.ravel(order="K").view(np.uint8)


class Kept:
    """A handle of something that stays in the child: an object, an enum member, or a tensor that does not support computation.

    Attributes:
        number: identifies it in the child.
        kind: what kind of thing it is.
    """

    def __init__(self, number: int, kind: str) -> None:
        self.number = number
        self.kind = kind

    def __repr__(self) -> str:
        return f"<{self.kind} in its own process>"


class Reading:
    """Decodes the values of one message.

    Parameters:
        sizes: bytes of each new storage, as the message states them.
        data: their bytes: one after the other, each at a multiple of 16.
        tensor: creates a tensor from its storage's number, dtype, shape, strides, offset; what it raises is reported as an invalid message.
        named: returns an object kept in this process, by number; without it, such values become :class:`Kept`.

    Attributes:
        storages: the bytes of each new storage, without copying.

    Raises:
        ReaderError: the sizes do not match the data.
    """

    def __init__(
        self,
        sizes: Any,
        data: memoryview | Array,
        tensor: Callable[[int, np.dtype[Any], list[int], list[int] | None, int], Any],
        named: Callable[[int], Any] | None = None,
    ) -> None:
        if sizes.__class__ is not list:
            raise bad("invalid storage sizes")
        self._tensor = tensor
        self._named = named
        self.storages: list[memoryview | Array] = []
        at = 0
        for size in sizes:
            if size.__class__ is not int or size < 0:
                raise bad("invalid storage sizes")
            self.storages.append(data[at : at + size])
            at += rounded(size)
        if at > len(data):
            raise bad(f"storages of {count_of(sum(sizes), 'byte')}, but only {count_of(len(data), 'byte')} of data")

    def get(self, value: Any, depth: int = 0) -> Any:
        """Decode a value of a document.

        Raises:
            ReaderError: it is not valid.
        """
        kind = value.__class__
        if value is None or kind is bool or kind is str or kind is float:
            return value
        if kind is int:
            if not -INT64 <= value < INT64:
                raise bad("an integer that does not fit in 64 bits")
            return value
        if depth > DEEPEST:
            raise bad(f"values nested deeper than {DEEPEST}")
        below = depth + 1
        if kind is list:
            return [self.get(item, below) for item in value]
        if len(value) != 1:
            raise bad("an object without exactly one key")
        (key, body), *_ = value.items()
        try:
            return self._keyed(key, body, below)
        except (HarnessError, TypeError, ValueError, OverflowError, LookupError, AttributeError, struct.error) as error:
            if isinstance(error, ReaderError):
                raise
            raise bad(f"{key[:8]!r}: {str(error)[:400]}") from error

    def _keyed(self, key: str, body: Any, depth: int) -> Any:
        if key == "x":
            return self.tensor(body)
        if key == "t":
            return tuple([self.get(item, depth) for item in _list(body)])
        if key == "d":
            return {self.get(name, depth): self.get(item, depth) for name, item in map(_list, _list(body))}
        if key == "n":
            return struct.unpack(">d", bytes.fromhex(body))[0]
        if key == "i" and self._named is not None:  # a program cannot produce one, but its caller may
            return int(body, 16)
        if key == "c":
            return complex(*[self.get(part, depth) for part in _list(body)])
        if key == "y" and body in dtypes.DTYPES:
            return dtypes.DTYPES[body]
        if key == "v":
            return Device(body)
        if key == "p":
            return _named_tuple(body[0], tuple(_list(body[1])), [self.get(item, depth) for item in _list(body[2])])
        if key == "k":
            name, value = body[0], self.get(body[1], depth)
            if name.__class__ is not str or value.__class__ not in {dict, list}:
                raise TypeError("expected the name of a class, and a dictionary or a list")
            return container(name, value)
        if key == "h":
            if self._named is not None:
                return self._named(body[0])
            number, message = body
            if number.__class__ is not int or message.__class__ is not str:
                raise TypeError("expected a number and a type name for a value kept in the worker")
            return Kept(number, message[:1000])
        if key == "o" and body.__class__ is str:
            return type(body, (), {})()
        raise KeyError(f"unknown value {body!r:.80}")

    def tensor(self, body: Any) -> Any:
        """Decode a tensor."""
        place, name, shape, strides, offset = _list(body)
        if place.__class__ is not int or place < 0:
            raise ValueError(f"unknown storage {place!r:.40}")
        return self._tensor(place, dtypes.DTYPES[name].array, _list(shape), None if strides is None else _list(strides), offset)


def _list(body: Any) -> list[Any]:
    if body.__class__ is not list:
        raise TypeError(f"expected a list, got {type(body).__name__}")
    results: list[Any] = body
    return results


def _named_tuple(name: Any, fields: tuple[Any, ...], items: list[Any]) -> NamedTupleValue:
    if name.__class__ is not str or len(fields) != len(items) or any(field.__class__ is not str for field in fields):
        raise TypeError("a named tuple must have a name, and as many fields as values")
    own = name.rpartition(".")[2]
    space = {"qualified_name": name, "fields": fields}
    value: NamedTupleValue = type(own if own.isidentifier() else "NamedTuple", (NamedTupleValue,), space)(*items)
    return value
