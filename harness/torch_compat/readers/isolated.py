"""Programs in separate processes, seen from the calling process: nothing that they send back is trusted.

A child (:mod:`torch_compat.readers.child_processes`) serves one archive. It may be controlled by the author of that archive, so each of its
messages is limited in size, its tensors pass through :mod:`torch_compat.arrays`, its data is copied before it is examined, and only errors
of the :class:`torch_compat.errors.HarnessError` family can be raised here on its behalf.
"""

from __future__ import annotations

import builtins
import math
import os
import threading
import warnings
import weakref
from typing import Any, NamedTuple, Self

import numpy as np

from torch_compat import arrays, errors
from torch_compat.archive.base import open_file
from torch_compat.errors import HarnessError, ReaderError, UsageError
from torch_compat.readers.child_processes import SPARE, ChildProcess, Spec, Workshop
from torch_compat.readers.wire import INLINE, Arena, EncodedTexts, Reading, Writing, bad, padded, rounded, whole
from torch_compat.runtime.exchange import Exchange
from torch_compat.runtime.limits import Exhausted, Limits
from torch_compat.words import count_of

__all__ = ["IsolatedModule", "load_isolated"]

CALLED = "__call__"
OURS = {name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, HarnessError)}


class IsolatedModule:
    """A program in a separate process, for use from Python: callable, methods by name, numpy arrays in and out.

    It has the interface of :class:`torch_compat.runtime.module.Module`. Two things stay in the other process: objects of the program, which
    are returned as handles that can be passed back to it, and its tensors, which :meth:`state` returns as copies.

    Attributes:
        notes: notes on how it is run.
        isolation: what the program cannot reach.
        methods: names of its methods.
    """

    def __init__(self, child: ChildProcess, reply: dict[str, Any], limits: Limits) -> None:
        methods: Any = reply.get("methods")
        notes: Any = reply.get("notes")
        for names in (methods, notes):
            if names.__class__ is not list or any(name.__class__ is not str for name in names):
                raise bad("no list of methods or notes")
        self.methods = frozenset(methods)
        self.notes: list[str] = notes
        self.isolation = child.isolation
        self._child = child
        child.lines.repeats = True
        self._most = limits.memory
        self._lock = threading.Lock()
        self._arena: Arena | None = None
        self._texts = EncodedTexts()
        self._answered: _Answered | None = None
        self._dead: str | None = None
        self._end = weakref.finalize(self, _close, child, os.getpid())

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Call the module as Python would, hooks included (:mod:`torch_compat.runtime.exchange`).

        Raises:
            Raised: the program raised, or the arguments do not fit.
            Unsupported: the reference reader does not support something that the call needs.
            ReaderError: its process died, took too long, or sent an invalid answer. The program is gone then.
        """
        return self._call(CALLED, args, keywords)

    def __getattr__(self, name: str) -> Any:
        """Return a method by name."""
        if name.startswith("__") or name not in self.__dict__.get("methods", ()):
            raise AttributeError(f"the module has no method {name}")
        return lambda *args, **keywords: self._call(name, args, keywords)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End its process. The process also ends when the module is garbage-collected."""
        with self._lock:
            self._dead = self._dead or "it was closed"
            self._end()

    def state(self) -> dict[str, Any]:
        """Return copies of its parameters and buffers by name.

        Raises:
            ReaderError: as for a call.
        """
        with self._lock:
            exchange = Exchange(elsewhere=True)
            reply, data = self._ask({"state": True}, [], [], "report its state")
            results: dict[str, Any] = self._value(reply, data, exchange)
            return results

    # ---------------------------------------------------------------------------------------------------------------- calls

    def _call(self, method: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        exchange = Exchange(elsewhere=True)
        layout: Any = None
        if not keywords and all(map(whole, args)) and len(set(map(id, args))) == len(args):
            layout = (method, *[(arg.dtype, arg.shape) for arg in args])
            text = self._texts.get(layout)
            if text is not None:
                exchange.take_whole(args)
                with self._lock:
                    reply, data = self._ask(text, list(map(padded, args)), [], f"call {method}")
                    return self._value(reply, data, exchange)
        given = [exchange.take(arg) for arg in args]
        named = {name: exchange.take(arg) for name, arg in keywords.items()}
        writing = Writing(exchange.copies)
        document: dict[str, Any] = {
            "call": method,
            "args": [writing.put(arg) for arg in given],
            "words": {name: writing.put(arg) for name, arg in named.items()},
            "sizes": [copy.nbytes for copy in exchange.copies],
        }
        writing.storages()
        storages = [copy.ravel(order="K").view(np.uint8) for copy in exchange.copies]
        with self._lock:
            total = sum(map(rounded, document["sizes"]))
            descriptors: list[int] = []
            parts: list[Any] = []
            if total > INLINE:
                if self._arena is None or self._arena.size < total:
                    self._arena = self._larger(total)
                    document["arena"] = self._arena.size
                    descriptors = [self._arena.descriptor]
                at = 0
                for storage in storages:
                    self._arena.bytes[at : at + storage.nbytes] = storage
                    at += rounded(storage.nbytes)
            else:
                parts = list(map(padded, storages))
                if layout is not None:
                    self._texts.remember(layout, document)
            reply, data = self._ask(document, parts, descriptors, f"call {method}")
            return self._value(reply, data, exchange)

    def _larger(self, size: int) -> Arena:
        if size > self._most:
            message = f"the tensors of a call take {count_of(size, 'byte')}; the limit is {self._most} (limits.memory)"
            raise errors.Raised(message, code="memory-limit")
        return Arena(1 << max(20, (size - 1).bit_length()))

    def _ask(self, document: Any, parts: list[Any], descriptors: list[int], stage: str) -> tuple[dict[str, Any], Any]:
        if self._dead is not None:
            raise ReaderError(
                f"the process that runs this program has exited: {self._dead}", hint="load the archive again", code="died"
            )
        if self._child.owner != os.getpid():
            raise UsageError(
                "this program was loaded before this process was forked", hint="load it again in this process", code="forked"
            )
        child = self._child
        child.stage = stage
        child.grant()
        try:
            reply, data = child.ask(document, parts, descriptors, most=INLINE)
            if self._arena is not None:
                self._arena.handed_over()
            if "need" in reply:
                size = reply["need"]
                self._check_need(size)
                self._arena = self._larger(size)
                reply, data = child.ask({"arena": self._arena.size}, [], [self._arena.descriptor], most=INLINE)
                self._arena.handed_over()
        except BaseException as error:
            self._give_up(error)
            raise
        if len(data) or self._arena is None:
            return reply, data
        return reply, self._arena.bytes

    def _check_need(self, size: Any) -> None:
        if size.__class__ is not int or not 0 < size <= self._most:
            raise bad(f"it requests {size!r:.40} bytes of shared memory; the limit is {self._most}")

    def _give_up(self, error: BaseException) -> None:
        """Stop using a child after an answer that is invalid or still outstanding."""
        self._dead = f"{type(error).__name__}: {error}"[:500]
        self._child.kill()
        self._end()

    def _value(self, reply: dict[str, Any], data: Any, exchange: Exchange) -> Any:
        """Return the value in an answer; write changes to arguments back.

        Raises:
            ReaderError: the answer is invalid.
        """
        try:
            return self._understood(reply, data, exchange)
        except ReaderError as error:
            self._give_up(error)
            raise

    def _understood(self, reply: dict[str, Any], data: Any, exchange: Exchange) -> Any:
        known = len(exchange.copies)
        last = self._answered
        if last is not None and reply is last.reply and known == last.known and len(data) >= last.size:
            return arrays.view(np.array(data[: last.size], np.uint8), last.dtype, last.shape)
        bases: dict[int, Any] = {}

        def tensor(place: int, dtype: Any, shape: list[int], strides: list[int] | None, offset: int) -> Any:
            if place < known:
                steps = list(arrays.contiguous_strides(_sizes(shape))) if strides is None else strides
                return exchange.alias(place, dtype, _sizes(shape), _integers(steps), offset)
            if place not in bases:
                bases[place] = np.array(reading.storages[place - known], np.uint8)
            return arrays.view(bases[place], dtype, shape, strides, offset)

        reading = Reading(reply.get("sizes", []), data, tensor)
        changed = reply.get("changed", [])
        if changed.__class__ is not list or any(place.__class__ is not int or not 0 <= place < known for place in changed):
            raise bad("invalid changed arguments")
        if len(set(changed)) != len(changed) or len(changed) > len(reading.storages):
            raise bad("more changed arguments than storages")
        new = reading.storages[len(reading.storages) - len(changed) :]
        for place, memory in zip(changed, new, strict=True):
            copy = exchange.copies[place]
            if len(memory) != copy.nbytes:
                raise bad(f"the size of an argument changed from {copy.nbytes} to {count_of(len(memory), 'byte')}")
            steps = [step // copy.itemsize for step in copy.strides]
            now = arrays.view(memory, copy.dtype, copy.shape, steps)
            exchange.write_back(place, now)
        for category, message in _warned(reply):
            warnings.warn(message, category, stacklevel=5)
        if "error" in reply:
            raise _error(reply["error"])
        if "value" not in reply:
            raise bad("neither a value nor an error")
        value = reading.get(reply["value"])
        if len(reply) == 2 and len(reading.storages) == 1 and whole(value) and _first(reply["value"]["x"], known):
            self._answered = _Answered(reply, known, value.nbytes, value.dtype, value.shape)
        return value


class _Answered(NamedTuple):
    """The last answer that was one tensor covering one storage: an answer with the same text is not checked again."""

    reply: dict[str, Any]
    known: int  # arguments of the call, whose storages precede that of the answer
    size: int  # bytes
    dtype: np.dtype[Any]
    shape: tuple[int, ...]


def _first(tensor: list[Any], known: int) -> bool:
    """Whether a tensor of a message is row-major and starts at the beginning of its first new storage."""
    return tensor[0] == known and tensor[3:] == [None, 0]


def _close(child: ChildProcess, owner: int) -> None:
    if os.getpid() == owner:
        child.close()


def _integers(numbers: list[int]) -> list[int]:
    if any(number.__class__ is not int for number in numbers):
        raise TypeError("a number in a tensor description is not an integer")
    return numbers


def _sizes(shape: list[int]) -> list[int]:
    if len(shape) > arrays.MOST_DIMENSIONS:
        raise ValueError(count_of(len(shape), "dimension"))
    return _integers(shape)


def _warned(reply: dict[str, Any]) -> list[tuple[type[Warning], str]]:
    """Return the warnings in an answer.

    Raises:
        ReaderError: they are invalid.
    """
    results = []
    heard = reply.get("warnings", [])
    if heard.__class__ is not list:
        raise bad("invalid warnings")
    for item in heard:
        if item.__class__ is not list or len(item) != 2 or any(part.__class__ is not str for part in item):
            raise bad("an invalid warning")
        category = getattr(builtins, item[0], None)
        if not (isinstance(category, type) and issubclass(category, Warning)):
            category = UserWarning
        results.append((category, item[1]))
    return results


def _error(text: Any) -> HarnessError:
    """Return the error in an answer.

    Raises:
        ReaderError: it is not in the :class:`torch_compat.errors.HarnessError` family.
    """
    if text.__class__ is not list or len(text) != 6 or any(part is not None and part.__class__ is not str for part in text):
        raise bad("an invalid error")
    name, message, where, hint, code, slip = text
    if name is None or message is None or code is None:
        raise bad("an error without a name, a message or a code")
    kind = OURS.get(name)
    if slip is not None:
        kind = _dying(name, slip)
    elif name == Exhausted.__name__:
        kind = Exhausted
    elif name == "SourceError":
        from torch_compat.runtime.language import SourceError  # noqa: PLC0415 - imports the whole compiler

        kind = SourceError
    if kind is None or issubclass(kind, errors.PolicyError | ReaderError):
        raise bad(f"an error of the class {name[:80]!r}")
    result = kind.__new__(kind)
    HarnessError.__init__(result, message, where=where, hint=hint, code=code)
    if slip is not None:
        result.slip = _slips()[slip]  # type: ignore[attr-defined]
    return result


def _dying(name: str, slip: str) -> type[HarnessError]:
    from torch_compat.runtime.slips import DiesCalled, DiesLoading  # noqa: PLC0415 - only for a release that dies

    kinds: dict[str, type[HarnessError]] = {"DiesCalled": DiesCalled, "DiesLoading": DiesLoading}
    if name not in kinds or slip not in _slips():
        raise bad(f"an unknown crash {slip[:80]!r}")
    return kinds[name]


def _slips() -> dict[str, Any]:
    from torch_compat.runtime.slips import every  # noqa: PLC0415 - as above

    return {slip.id: slip for slip in every()}


# ----------------------------------------------------------------------------------------------------------------- loading


def load_isolated(workshop: Workshop, path: str, reader: str, limits: Limits) -> IsolatedModule:
    """Load an archive in a separate process.

    Raises:
        UsageError: the file does not exist.
        HarnessError: as :func:`torch_compat.load`.
        ReaderError: the process died, or sent an invalid answer.
    """
    descriptor = open_file(path)
    try:
        child = workshop.child(Spec(limits.memory, math.ceil(limits.seconds) + SPARE, reader))
        child.stage = f"load {path}"
        try:
            child.isolation  # noqa: B018 - its first message
            reply, _ = child.ask({"load": path, "reader": reader, "limits": list(limits)}, descriptors=[descriptor])
        finally:
            workshop.ahead(child.spec)
    finally:
        os.close(descriptor)
    try:
        for category, message in _warned(reply):
            warnings.warn(message, category, stacklevel=4)
        result = _error(reply["error"]) if "error" in reply else IsolatedModule(child, reply, limits)
    except BaseException:
        child.kill()
        raise
    if isinstance(result, IsolatedModule):
        return result
    child.close()
    raise result
