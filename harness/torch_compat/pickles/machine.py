"""Our own unpickling machine: one pass over the bytes, everything bounded, nothing imported, looked up or called.

All opcodes of protocols 0 to 5 are understood. Calls are interpreted for a few known functions (:mod:`torch_compat.pickles.interpret`) and
described for all others. Every stated length is compared with the remaining data before anything of that length is allocated. Features that
Python would use without asking are refused: extensions that the process has registered, out-of-band buffers, attributes set on a class.

Three ways to make a small pickle expensive are not obvious:

* a tuple that contains itself many times over, or is nested very deep, costs its full size (or the C stack) when it is hashed:
  keys are measured first
* chosen integers and tuples of them all have one hash, and a dictionary of them takes quadratic time: such keys are counted
* a call can copy values that the memo shares: copies are charged

The limits are in :class:`PickleLimits`, the recorded events in :mod:`torch_compat.pickles.recorder`.

This file is longer than others because :func:`_run` is one loop with a branch for each opcode. A function for each opcode would be easier
to read, but a call costs as much as most opcodes (``benchmarks/unpickle.py``).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from torch_compat.allowance import MB, PICKLE
from torch_compat.errors import Corrupt, HarnessError, Unsafe, Unsupported
from torch_compat.pickles.interpret import NEWOBJ, build, storage_of
from torch_compat.pickles.opcodes import COUNTED, LINES, OPCODES, PLAIN, SIGNED, WIDTHS, ascii_text, number, read_line, value_of
from torch_compat.pickles.recorder import LIMITS, NAMED, STORAGE, Notes, PickleLimits
from torch_compat.pickles.values import (
    Deque,
    Described,
    Dict,
    Global,
    ModuleSource,
    PersistentId,
    Size,
    Storage,
    UnpicklerEvent,
    depth,
)
from torch_compat.words import count_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch_compat.allowance import Allowance

__all__ = ["CORE", "LIMITS", "PickleLimits", "Unpickled", "unpickle"]


class Unpickled:
    """The result of reading a pickle.

    Attributes:
        value: the object (see :mod:`torch_compat.pickles.values`).
        start, end: the offset of its first byte, and of the first byte after its STOP.
        protocol: the highest that it states; 0 if it states none.
        globals: all globals that it names, in the order of first use.
        opcodes: names of the opcodes beyond :data:`CORE`.
        storages: in the order of first use.
        sources: the source texts of modules that a stream stores with their classes.
        arities: known functions that rebuild tensors, with the numbers of arguments in their calls: readers accept different numbers.
        events: what a restricted unpickler may refuse, in order of first occurrence.
    """

    __slots__ = ("arities", "end", "events", "globals", "opcodes", "protocol", "sources", "start", "storages", "value")

    def __init__(self, value: Any, start: int, end: int, protocol: int, notes: Notes) -> None:
        self.value = value
        self.start = start
        self.end = end
        self.protocol = protocol
        self.globals: tuple[Global, ...] = tuple(notes.globals.values())
        self.opcodes: frozenset[str] = frozenset(notes.opcodes)
        self.storages: tuple[Storage, ...] = tuple(notes.storages)
        self.sources: tuple[ModuleSource, ...] = tuple(notes.sources.values())
        self.arities: frozenset[tuple[str, int]] = frozenset(notes.arities)
        self.events: tuple[UnpicklerEvent, ...] = tuple(notes.events)


CORE = frozenset({
    "PROTO", "STOP", "GLOBAL", "NEWOBJ", "REDUCE", "BUILD", "APPEND", "APPENDS", "SETITEM", "SETITEMS", "MARK", "TUPLE", "TUPLE1",
    "TUPLE2", "TUPLE3", "NONE", "NEWTRUE", "NEWFALSE", "EMPTY_TUPLE", "EMPTY_LIST", "EMPTY_DICT", "BININT", "BININT1", "BININT2",
    "BINUNICODE", "BINPERSID", "BINGET", "LONG_BINGET", "BINPUT", "LONG_BINPUT",
})  # fmt: skip
"""Opcodes that every restricted unpickler accepts, so they are not recorded."""

WINDOW = 1 << 20  # of a view that may be gigabytes of storages, so much is copied at a time
FIRST_WINDOW = 1 << 12  # at first, then four times as much each time: consecutive pickles may be tiny
BYTE = 2  # units of work for a byte of opcodes: the shortest ones cost the most per byte
MADE = 6  # and for an object, beyond its opcodes
SLOW = 4  # and for an opcode that is not among the most frequent ones
STRIDE = 1 << 16  # bytes of opcodes between two checks of the limits
LONGEST = 11  # bytes of the longest opcode with an argument of fixed size, and of BINPUT before it
NAME = 1 << 16  # bytes of a module and a name, and of any other argument that ends with a newline
_u32 = struct.Struct("<I").unpack_from
_i32 = struct.Struct("<i").unpack_from
_u16 = struct.Struct("<H").unpack_from
_u64 = struct.Struct("<Q").unpack_from
_f64 = struct.Struct(">d").unpack_from

CLASSLIKE = frozenset({Global, PersistentId, Described})  # of what an object can be made


def _plain_persistent(pid: Any, sources: dict[Any, ModuleSource]) -> Any:
    """The value for a persistent id that names no storage."""
    if pid.__class__ is tuple and len(pid) == 4 and (pid[0] == "module" or pid[0] == b"module"):
        _, kind, file, source = pid
        if kind.__class__ is Global and file.__class__ in {str, type(None)} and source.__class__ in {str, type(None)}:
            result = sources.get((kind, file, source))
            if result is None:
                result = sources[kind, file, source] = ModuleSource(kind, file, source)
            return result
    return PersistentId(pid)


def unpickle(
    data: bytes | memoryview,
    start: int = 0,
    *,
    where: str,
    persistent: Callable[[Any], Any] | None = None,
    limits: PickleLimits = LIMITS,
    allowance: Allowance | None = None,
) -> Unpickled:
    """Read one pickle; bytes after its STOP are ignored.

    Parameters:
        data: contains the pickle, and perhaps more; views are read in pieces, so that storages after it are not copied.
        start: where the pickle begins.
        where: file and record, for errors.
        persistent: resolves a persistent id. By default storages and modules of ``torch.save`` are recognised; everything else is a
            :class:`PersistentId`.
        limits: what it may cost.
        allowance: the budget for the whole file with all its pickles; this pickle is charged to it.

    Raises:
        Corrupt: it contradicts itself, or ends too early.
        Unsafe: it needs something that only the reading process could provide, or exceeds the limits.
        Unsupported: it states a protocol that is not known.
    """
    place = [start]
    try:
        if allowance is None:
            return _run(data, start, persistent, limits, place)
        allowance.spend(PICKLE)
        known = allowance.limits
        if known is None and limits is LIMITS:
            known = allowance.limits = _first(limits, allowance)
        if known is None or limits is not LIMITS or _mostly_spent(known, allowance):
            known = allowance.limits = _left(limits, allowance)
        return _run(data, start, persistent, known, place, allowance)
    except HarnessError as error:
        if error.where is None:
            error.where = f"{where}, offset {place[0]}"
        raise


def _cut_off(message: str = "the pickle ends before its STOP") -> Corrupt:
    return Corrupt(message, code="cut-off")


def _mostly_spent(known: PickleLimits, allowance: Allowance) -> bool:
    """Whether less than half of an earlier pickle's limits is left."""
    return (
        2 * allowance.work < known.work or 2 * allowance.objects < known.objects or 2 * allowance.memory < known.memory
        or 2 * allowance.memo < known.memo or 2 * allowance.copied < known.copied or 2 * allowance.nodes < known.nodes
    )  # fmt: skip


_fresh: dict[
    tuple[int, int], PickleLimits
] = {}  # of the first pickle of files of so many megabytes, and of either kind of allowance
MOST_FRESH = 64


def _left(limits: PickleLimits, allowance: Allowance) -> PickleLimits:
    """Limits for one pickle of a file after others were read."""
    operations, objects, memo, depth, copied, weak_keys, work, memory, nodes = limits
    return PickleLimits(
        operations, min(objects, allowance.objects), min(memo, allowance.memo), depth, min(copied, allowance.copied), weak_keys,
        min(work, allowance.work), min(memory, allowance.memory), min(nodes, allowance.nodes),
    )  # fmt: skip


def _first(limits: PickleLimits, allowance: Allowance) -> PickleLimits:
    """Limits for the first pickle of a file whose budget is mostly unspent; shared by files of the same size."""
    key = allowance.size // MB, allowance.whole
    result = _fresh.get(key)
    if result is None or result.work > 2 * allowance.work:
        result = _left(limits, allowance)
        if len(_fresh) < MOST_FRESH:
            _fresh[key] = result
    return result


def _run(
    view: bytes | memoryview,
    start: int,
    persistent: Callable[[Any], Any] | None,
    limits: PickleLimits,
    place: list[int],
    allowance: Allowance | None = None,
) -> Unpickled:
    total = len(view)
    if view.__class__ is bytes:
        data, base = view, 0
    else:
        data, base = bytes(view[start : start + min(FIRST_WINDOW, WINDOW)]), start
    i = start - base
    end = len(data)
    stop = 0  # up to here opcodes run without a check of limits and window; now
    carried = 0  # bytes of texts, which are no operations
    plain = 0  # bytes of those that are no texts
    slow = 0  # rare opcodes
    window = len(data)
    product = 0
    highest = 0
    op = -1
    notes = Notes(limits)
    budget = notes.budget
    known = notes.known
    called: dict[int, int] = {}  # by identity of the callee: its last number of arguments
    memo: dict[int, Any] = {}
    stack: list[Any] = []
    marks: list[list[Any]] = []
    at = i
    try:
        while True:
            if i >= stop:
                # the limits, and whether the window has to move
                if product or carried or i + base > start:  # not before the first opcode
                    if i + base - start - carried > limits.operations:
                        raise Unsafe(f"has more than {limits.operations} bytes of opcodes", code="too-large")
                    if product + len(marks) > limits.objects or len(memo) > limits.memo:
                        raise _too_many(limits)
                    if (
                        BYTE * (i + base - start - carried) + (carried >> 4) + SLOW * slow + MADE * product + notes.work
                        > limits.work
                    ):
                        raise _too_costly()
                    if 2 * carried - plain > limits.memory:
                        raise _too_long(limits)
                if base + end < total and end - i < window // 2:
                    base += i
                    window = min(4 * window, WINDOW)
                    data = bytes(view[base : base + window])
                    i, end = 0, len(data)
                if i >= end:
                    raise _cut_off()
                stop = min(i + STRIDE, end if base + end == total else end - LONGEST)
            op = data[i]
            at = i
            if op == 113:  # BINPUT: a quarter of all opcodes, and another opcode follows it
                memo[data[i + 1]] = stack[-1]
                i += 2
                op = data[i]
                at = i
            # the most frequent ones first, in two halves: then a few questions are enough
            if op < 104:
                if op == 75:  # BININT1
                    stack.append(data[i + 1])
                    i += 2
                    continue
                if op == 88:  # BINUNICODE
                    n = _u32(data, i + 1)[0]
                    i += 5
                    j = i + n
                    if j > end:
                        data, base, i, end, stop = _longer(view, base, at, j - at, total)
                        continue
                    try:
                        stack.append(data[i:j].decode())
                    except UnicodeDecodeError:  # lone surrogates; allowed only now, since the plain way is much faster
                        stack.append(data[i:j].decode("utf-8", "surrogatepass"))
                    carried += n
                    if n > STRIDE:
                        stop = 0  # so that the limits are looked at
                    i = j
                    continue
                if op == 82:  # REDUCE
                    args = stack.pop()
                    func = stack[-1]
                    if func.__class__ is Global:
                        rebuild = func.rebuild
                    else:
                        if func.__class__ is ModuleSource:
                            func = func.type
                        rebuild = func.rebuild if func.__class__ is Global else None
                    if args.__class__ is not tuple and args.__class__ is not Size:
                        if func.__class__ is not Global or not func.module.startswith("__torch__"):
                            raise Corrupt(f"has a call with arguments of type {args.__class__.__name__}", code="bad-call")
                        args = (args,)  # a member of an enumeration: TorchScript writes its value, and no tuple around it
                    if called.get(id(func)) != len(args):
                        notes.called(func, args, called)
                    product += 1
                    stack[-1] = Described("reduce", func, args) if rebuild is None else rebuild(func, args, budget)
                    i += 1
                    continue
                if op == 40:  # MARK
                    marks.append(stack)
                    stack = []
                    i += 1
                    continue
                if op == 41:  # EMPTY_TUPLE
                    stack.append(())
                    i += 1
                    continue
                if op == 99:  # GLOBAL
                    i += 1
                    j = data.find(b"\n", data.find(b"\n", i, i + NAME) + 1 or end, i + NAME)
                    if j < 0:
                        if end - i < NAME and base + end < total:
                            data, base, i, end, stop = _longer(view, base, at, min(NAME, total - base - at), total)
                            continue
                        raise _cut_off("has an unterminated global name")
                    raw = data[i:j]
                    result = known.get(raw)
                    stack.append(notes.named(raw) if result is None else result)
                    i = j + 1
                    continue
                if op == 81:  # BINPERSID
                    pid = stack.pop()
                    i += 1
                    product += 1
                    if pid.__class__ is tuple and pid and (pid[0] == "storage" or pid[0] == b"storage"):
                        if persistent is None:
                            stack.append(storage_of(pid, notes.seen, notes.storages))
                            continue
                    else:
                        notes.persistent(pid)
                    if persistent is None:
                        stack.append(_plain_persistent(pid, notes.sources))
                    else:
                        result = persistent(pid)
                        if result.__class__ is Storage and id(result) not in notes.keys:
                            notes.keys.add(id(result))
                            notes.storages.append(result)
                        stack.append(result)
                    continue
                if op == 78:  # NONE
                    stack.append(None)
                    i += 1
                    continue
                if op == 46:  # STOP
                    value = stack.pop()
                    i += 1
                    break
                if op == 93:  # EMPTY_LIST
                    stack.append([])
                    product += 1
                    i += 1
                    continue
                if op == 71:  # BINFLOAT
                    stack.append(_f64(data, i + 1)[0])
                    i += 9
                    if "BINFLOAT" not in notes.opcodes:
                        notes.opcodes.add("BINFLOAT")
                        notes.event("opcode", "BINFLOAT", "BINFLOAT")
                    continue
                if op == 98:  # BUILD
                    state = stack.pop()
                    notes.target("build", stack[-1])
                    build(stack[-1], state)
                    product += 1
                    i += 1
                    continue
                if op == 101 or op == 97:  # noqa: PLR1714 - APPENDS, APPEND
                    if op == 101:
                        items = stack
                        stack = marks.pop()
                    else:
                        items = [stack.pop()]
                    into = stack[-1]
                    if into.__class__ is list:
                        into += items
                    elif into.__class__ is Deque:
                        notes.target("append", into)
                        into += items
                    elif into.__class__ is Described:
                        notes.target("append", into)
                        into.items = into.items or []
                        into.items += items
                    else:
                        raise Corrupt(f"appends to a value of type {into.__class__.__name__}", code="bad-build")
                    i += 1
                    continue
                if op == 74:  # BININT
                    stack.append(_i32(data, i + 1)[0])
                    i += 5
                    continue
                if op == 77:  # BININT2
                    stack.append(_u16(data, i + 1)[0])
                    i += 3
                    continue
            else:
                if op == 104:  # BINGET
                    stack.append(memo[data[i + 1]])
                    i += 2
                    continue
                if op == 116:  # TUPLE
                    items = stack
                    stack = marks.pop()
                    stack.append(tuple(items))
                    product += 1
                    i += 1
                    continue
                if op == 133:  # TUPLE1
                    stack[-1] = (stack[-1],)
                    product += 1
                    i += 1
                    continue
                if op == 137:  # NEWFALSE
                    stack.append(False)
                    i += 1
                    continue
                if op == 134:  # TUPLE2
                    stack[-2:] = [(stack[-2], stack[-1])]
                    product += 1
                    i += 1
                    continue
                if op == 125:  # EMPTY_DICT
                    stack.append({})
                    product += 1
                    i += 1
                    continue
                if op == 117 or op == 115:  # noqa: PLR1714 - SETITEMS, SETITEM
                    if op == 117:
                        items = stack
                        stack = marks.pop()
                        if len(items) % 2:
                            raise Corrupt("sets a key without a value", code="pickle-stack")
                    else:
                        items = [stack[-2], stack[-1]]
                        del stack[-2:]
                    into = stack[-1]
                    keys = items[::2]
                    if into.__class__ is dict or into.__class__ is Dict:
                        budget.keys(keys)
                        into.update(zip(keys, items[1::2], strict=True))
                        if into.__class__ is Dict:
                            notes.target("setitem", into)
                    elif into.__class__ is Described:
                        into.pairs = into.pairs or []
                        into.pairs += zip(keys, items[1::2], strict=True)
                        notes.target("setitem", into)
                    elif into.__class__ is list:
                        notes.target("setitem", into)
                        _set_positions(into, keys, items[1::2])
                    else:
                        raise Corrupt(f"sets keys of a value of type {into.__class__.__name__}", code="bad-build")
                    i += 1
                    continue
                if op == 136:  # NEWTRUE
                    stack.append(True)
                    i += 1
                    continue
                if op == 135:  # TUPLE3
                    stack[-3:] = [(stack[-3], stack[-2], stack[-1])]
                    product += 1
                    i += 1
                    continue
                if op == 129 or op == 146:  # noqa: PLR1714 - NEWOBJ, NEWOBJ_EX
                    kwargs = None
                    if op == 146:
                        notes.opcodes.add("NEWOBJ_EX")
                        notes.event("opcode", "NEWOBJ_EX", "NEWOBJ_EX")
                        kwargs = stack.pop()
                        if kwargs.__class__ is not dict:
                            raise Corrupt("creates an object with keyword arguments that are not a dictionary", code="bad-call")
                    args = stack.pop()
                    func = stack[-1]
                    if args.__class__ is not tuple and args.__class__ is not Size:
                        raise Corrupt(f"creates an object with arguments of type {args.__class__.__name__}", code="bad-call")
                    if func.__class__ is ModuleSource:
                        func = func.type
                    if func.__class__ not in CLASSLIKE:
                        raise Corrupt(f"creates an object whose class has type {func.__class__.__name__}", code="bad-call")
                    notes.event("newobj", func, func)
                    product += 1
                    if (
                        func.__class__ is Global
                        and not kwargs
                        and func.rebuild in NEWOBJ
                        and (not args or func.name in {"Size", "frozenset"})
                    ):
                        stack[-1] = func.rebuild(func, args, budget)
                    else:
                        stack[-1] = Described("newobj", func, args, kwargs)
                    i += 1
                    continue
                if op == 114:  # LONG_BINPUT
                    n = _u32(data, i + 1)[0]
                    i += 5
                    if n > i + base - start:
                        raise _memo(n, i + base - start)
                    memo[n] = stack[-1]
                    continue
                if op == 148:  # MEMOIZE
                    memo[len(memo)] = stack[-1]
                    i += 1
                    if "MEMOIZE" not in notes.opcodes:
                        notes.opcodes.add("MEMOIZE")
                        notes.event("opcode", "MEMOIZE", "MEMOIZE")
                    continue
                if op == 113:  # BINPUT behind a BINPUT
                    continue
                if op == 106:  # LONG_BINGET
                    stack.append(memo[_u32(data, i + 1)[0]])
                    i += 5
                    continue
            i += 1
            slow += 1
            name = OPCODES.get(op)
            if name is None:
                raise Corrupt(f"contains byte {op:#04x} where an opcode was expected", code="bad-opcode")
            if name not in notes.opcodes:
                notes.opcodes.add(name)
                if name != "PROTO":
                    notes.event("opcode", name, name)
            if op in COUNTED:  # a length, then as many bytes
                width = COUNTED[op]
                n = int.from_bytes(data[i : i + width], "little", signed=op in SIGNED)
                i += width
                j = i + n
                if n < 0:
                    raise Corrupt(f"declares a length of {count_of(n, 'byte')} for {name}", code="bad-length")
                if i > end or j > end:
                    data, base, i, end, stop = _longer(view, base, at, max(i, j) - at, total)
                    continue
                carried += n
                if op in PLAIN:
                    plain += n
                if n > STRIDE:
                    stop = 0  # so that the limits are looked at
                    if 2 * carried - plain > limits.memory:
                        raise _too_long(limits)
                stack.append(value_of(op, data[i:j]))
                i = j
            elif op in LINES:  # up to a newline
                j = data.find(b"\n", i)
                if j >= 0 and op == 105:
                    j = data.find(b"\n", j + 1)
                if j < 0:
                    if base + end == total:
                        raise _cut_off("has an unterminated line")
                    data, base, i, end, stop = _longer(view, base, at, min(2 * (end - at), total - base - at), total)
                    continue
                line = data[i:j]
                if j - i > NAME and op not in {83, 86}:
                    raise Corrupt(f"has an argument of {j - i} bytes for {name}", code="bad-number")
                carried += j - i
                i = j + 1
                if op == 112:  # PUT
                    n = number(line)
                    if not 0 <= n <= i + base - start:
                        raise _memo(n, i + base - start)
                    memo[n] = stack[-1]
                elif op == 103:  # GET
                    stack.append(memo[number(line)])
                elif op == 105:  # INST
                    items = stack
                    stack = marks.pop()
                    product += 1
                    stack.append(Described("instance", notes.named(line), tuple(items)))
                elif op == 80:  # PERSID
                    product += 1
                    pid = ascii_text(line)
                    notes.persistent(pid)
                    stack.append(PersistentId(pid) if persistent is None else persistent(pid))
                else:
                    stack.append(read_line(op, line))
            elif op == 128:  # PROTO
                n = data[i]
                i += 1
                if n > 5:
                    raise Unsupported(f"declares pickle protocol {n}; the highest known is 5", code="pickle-protocol")
                notes.protocol = n
                highest = max(highest, n)
                known.clear()  # what was translated from Python 2
            elif op == 149:  # FRAME
                n = _u64(data, i)[0]
                i += 8
                if n > total - base - i:
                    raise _cut_off(f"declares a frame of {count_of(n, 'byte')}, but only {total - base - i} are left")
            elif op == 147:  # STACK_GLOBAL
                text = stack.pop()
                module = stack.pop()
                if text.__class__ is not str or module.__class__ is not str:
                    kinds = f"{module.__class__.__name__} and {text.__class__.__name__}"
                    raise Corrupt(f"refers to a global by {kinds}; expected two strings", code="bad-global")
                stack.append(notes.named_as(module, text))
            elif op == 143:  # EMPTY_SET
                stack.append(set())
                product += 1
            elif op in {144, 145, 108, 100, 49, 111}:  # what takes everything down to the mark
                items = stack
                stack = marks.pop()
                product += 1
                if op == 108:  # LIST
                    stack.append(items)
                elif op == 144:  # ADDITEMS
                    budget.keys(items)
                    product += len(items) >> 1  # a set of five takes as much as four lists
                    into = stack[-1]
                    if into.__class__ is set:
                        into.update(items)
                    elif into.__class__ is Described:
                        into.items = into.items or []
                        into.items += items
                    else:
                        raise Corrupt(f"adds to a value of type {into.__class__.__name__}", code="bad-build")
                elif op == 145:  # FROZENSET
                    budget.keys(items)
                    product += len(items) >> 1
                    stack.append(frozenset(items))
                elif op == 100:  # DICT
                    if len(items) % 2:
                        raise Corrupt("sets a key without a value", code="pickle-stack")
                    keys = items[::2]
                    budget.keys(keys)
                    stack.append(dict(zip(keys, items[1::2], strict=True)))
                elif op == 111:  # OBJ
                    func = items[0] if items else None
                    if func.__class__ is ModuleSource:
                        func = func.type
                    if func.__class__ not in CLASSLIKE:
                        raise Corrupt("creates an instance of something that is not a class", code="bad-call")
                    stack.append(Described("instance", func, tuple(items[1:])))
            elif op == 48:  # POP
                if stack:
                    stack.pop()
                else:
                    stack = marks.pop()
            elif op == 50:  # DUP
                stack.append(stack[-1])
            elif op in {130, 131, 132}:  # EXT1, EXT2, EXT4
                width = 1 << (op - 130)
                n = int.from_bytes(data[i : i + width], "little")
                raise Unsafe(f"uses the extension code {n}, which only the reading process defines", code="extension")
            else:  # NEXT_BUFFER, READONLY_BUFFER
                raise Corrupt(f"uses {name}: its buffers were pickled out-of-band, and are not in the file", code="out-of-band")
    except HarnessError:
        place[0] = base + at
        raise
    except (IndexError, struct.error):
        place[0] = base + at
        if at + 1 + WIDTHS.get(op, 0) > end or (op == 113 and i > at):  # or nothing comes behind a BINPUT
            raise _cut_off() from None
        message = f"{OPCODES.get(op)} needs a mark or more items than the stack has"
        raise Corrupt(message, code="pickle-stack") from None
    except KeyError as error:
        place[0] = base + at
        raise Corrupt(f"takes {error.args[0]!r} from the memo, which has no such entry", code="pickle-memo") from None
    except UnicodeDecodeError as error:
        place[0] = base + at
        raise Corrupt(f"contains text that is not UTF-8: {error.reason}", code="bad-text") from None
    if product >= limits.depth:
        place[0] = base + at
        deepest = depth(value, limits.depth)
        if deepest > limits.depth:
            raise Unsafe(f"nests values more than {limits.depth} levels deep", code="too-deep")
    if product > limits.objects or len(memo) > limits.memo:
        place[0] = base + at
        raise _too_many(limits)
    if allowance is not None:
        place[0] = base + at
        if 2 * carried - plain > limits.memory:
            raise _too_long(limits)
        allowance.objects -= product
        allowance.memo -= len(memo)
        allowance.memory -= 2 * carried - plain
        allowance.copied -= limits.copied - budget.copied
        allowance.nodes -= limits.nodes - budget.nodes
        allowance.spend(
            BYTE * (base + i - start - carried)
            + (carried >> 4)
            + SLOW * slow
            + MADE * product
            + NAMED * len(notes.globals)
            + STORAGE * len(notes.storages)
        )
    return Unpickled(value, start, base + i, highest, notes)


def _set_positions(into: list[Any], keys: list[Any], items: list[Any]) -> None:
    for key, item in zip(keys, items, strict=True):
        if key.__class__ is not int or not -len(into) <= key < len(into):
            raise Corrupt("sets a list item that is out of range", code="bad-build")
        into[key] = item


def _too_many(limits: PickleLimits) -> Unsafe:
    return Unsafe(f"creates more than {limits.objects} objects, or memoizes more than {limits.memo}", code="too-large")


def _too_costly() -> Unsafe:
    return Unsafe("requires more work than the limit for a file of its size", code="too-large")


def _too_long(limits: PickleLimits) -> Unsafe:
    message = f"has strings and byte strings that take more than the limit of {limits.memory} bytes"
    return Unsafe(message, code="too-large")


def _memo(index: int, so_far: int) -> Unsafe:
    message = f"memoizes at index {index} after only {so_far} bytes: other readers would allocate memory up to that index"
    return Unsafe(message, code="too-large")


def _longer(view: bytes | memoryview, base: int, at: int, need: int, total: int) -> tuple[bytes, int, int, int, int]:
    """Move the window to start at an opcode that needs this many bytes; the opcode then runs again."""
    base += at
    if need > total - base:
        raise _cut_off(f"declares a length of {need} bytes, but only {total - base} are left")
    data = bytes(view[base : base + max(need, WINDOW)])
    return data, base, 0, len(data), 0
