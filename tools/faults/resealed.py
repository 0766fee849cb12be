"""Faults behind the checksums: a record is changed structurally, and every checksum and size is corrected.

The result is another archive, so reading it may succeed. It must not crash, hang or break out.
"""

from __future__ import annotations

import io
import json
import pickletools
import re
import struct
import tarfile
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tools.faults.exported import is_part, mutated_exported
from tools.faults.faults import sample_of
from tools.faults.layout import layout
from tools.faults.structures import container_fields, mutated_tables
from tools.faults.torch_zip import write_end, write_member
from tools.fence.programs import Writer
from torch_compat.runtime import registry

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from pathlib import Path

    from tools.faults.faults import Made, Sample

__all__ = ["RESEALED", "mutated_flatbuffer", "mutated_json", "mutated_pickle", "mutated_source"]

Groups = list[list["Path"]]
Mutated = tuple[str, bytes]
BOUNDARIES = (
    0, 1, 2, 3, 7, 8, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 1 << 20, 30_000_000, 1_000_000_000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 32, 1 << 40,
    (1 << 61) + 1, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, -1, -2, -8, -128, -(1 << 31), -(1 << 63), 1 << 200,
)  # fmt: skip
LONGEST = 1 << 16  # maximum size in bytes of a record that is parsed; parsing a larger one takes longer than reading the archive


def boundary(rng: random.Random) -> int:
    """A number at which something overflows, or near one."""
    return rng.choice(BOUNDARIES) + rng.choice((0, 0, 0, 1, -1))


def other_number(rng: random.Random, now: int) -> int:
    """Another number: one nearby, just outside of a range, or one at which something overflows."""
    return now + rng.choice((1, 1, 1, -1, -1, 2, 8, now, -now)) if rng.random() < 0.5 else boundary(rng)


# ------------------------------------------------------------------------------------------------------------- bytes


def mutated_bytes(rng: random.Random, data: bytes) -> Mutated:
    """Flip, cut, insert or duplicate bytes."""
    if not data:
        return "bytes put in", rng.randbytes(rng.choice([1, 8, 64]))
    at = rng.randrange(len(data))
    what = rng.choice(["flipped", "set", "number", "cut", "doubled", "cut off", "emptied", "put in"])
    if what == "flipped":
        changed = bytearray(data)
        for _ in range(rng.choice([1, 1, 2, 8])):
            changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        return "bits flipped", bytes(changed)
    if what == "set":
        return f"byte at {at} set", data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
    if what == "number":
        width = rng.choice([1, 2, 4, 8])
        new = (boundary(rng) & (1 << 8 * width) - 1).to_bytes(width, rng.choice(["little", "big"]))
        return f"number of {width} bytes at {at}", data[:at] + new + data[at + width :]
    if what == "cut":
        return f"bytes cut out at {at}", data[:at] + data[at + rng.choice([1, 4, 8, 64]) :]
    if what == "doubled":
        part = data[at : at + rng.choice([1, 8, 64, 256])]
        return f"bytes at {at} doubled", data[:at] + part * rng.choice([2, 2, 3, 100]) + data[at + len(part) :]
    if what == "cut off":
        return f"cut off at {at}", data[:at]
    if what == "put in":
        return f"bytes put in at {at}", data[:at] + rng.randbytes(rng.choice([1, 4, 64])) + data[at:]
    return "emptied", b""


# ----------------------------------------------------------------------------------------------------------- pickles

NUMBERS = {"BININT", "BININT1", "BININT2", "LONG1", "LONG4", "INT", "LONG"}
OF_MEMO = {"BINGET", "LONG_BINGET", "GET", "BINPUT", "LONG_BINPUT", "PUT"}
TEXTS = {"BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "UNICODE", "BINSTRING", "SHORT_BINSTRING"}
OPCODES = tuple(ord(opcode.code) for opcode in pickletools.opcodes)
VALUES = (
    b"N", b")", b"]", b"}", b"\x88", b"\x89", b"(t", b"(l", b"X\3\0\0\0abc", b"X\0\0\0\0", b"X\3\0\0\0\xed\xa0\x80", b"X\1\0\0\x000",
    b"G\x7f\xf8\0\0\0\0\0\0", b"G\x7f\xf0\0\0\0\0\0\0", b"K\1K\2\x86", b"N\x85", b"\x8f", b"]q\0h\0a", b"}q\0(K\1h\0u", b"C\3abc",
    b"I" + b"9" * 5000 + b"\n", b"]" + b"\x85" * 300, b"F-0.0\n",
    b"]" * 1500 + b"a" * 1499, b"]" + b"\x85" * 20_000, b"}" + b"}K\0" * 1200 + b"N" + b"s" * 1200,
)  # fmt: skip
GLOBALS = (
    "torch float32", "torch bfloat16", "torch FloatStorage", "torch QInt8Storage", "torch BoolStorage", "torch ComplexDoubleStorage",
    "torch.storage UntypedStorage", "torch Size", "torch device", "torch.serialization _get_layout", "torch._utils _rebuild_tensor",
    "torch._utils _rebuild_tensor_v2", "torch._utils _rebuild_parameter", "torch._utils _rebuild_qtensor",
    "torch._utils _rebuild_sparse_tensor", "torch._utils _rebuild_sparse_csr_tensor", "torch._utils _rebuild_nested_tensor",
    "torch._utils _rebuild_meta_tensor_no_storage", "torch._utils _rebuild_wrapper_subclass",
    "torch._tensor _rebuild_from_type_v2", "torch.jit._pickle build_intlist", "torch.jit._pickle build_tensorlist",
    "torch.jit._pickle build_boollist", "torch.jit._pickle build_doublelist", "torch.jit._pickle restore_type_tag",
    "collections OrderedDict", "collections defaultdict", "collections Counter", "collections deque", "builtins set",
    "builtins frozenset", "builtins slice", "builtins range", "builtins complex", "builtins bytearray", "builtins getattr",
    "builtins eval", "_codecs encode", "copyreg _reconstructor", "numpy.core.multiarray _reconstruct", "numpy ndarray",
    "numpy dtype", "numpy.core.multiarray scalar", "numpy._core.numeric _frombuffer", "datetime datetime", "os system",
    "__torch__ Model", "__torch__.torch.nn.modules.conv Conv2d",
)  # fmt: skip


@lru_cache(2048)
def pieces(data: bytes) -> tuple[tuple[str, bytes], ...]:
    """The opcodes of a pickle, each with its bytes; empty if it is not a pickle."""
    try:
        results = [(code.name, at) for code, _, at in pickletools.genops(data)]
    except (ValueError, IndexError, UnicodeDecodeError, struct.error):
        return ()
    ends = [at for _, at in results[1:]] + [(results[-1][1] or 0) + 1]
    return tuple((name, data[at:end]) for (name, at), end in zip(results, ends, strict=True))


def pushed(value: int) -> bytes:
    """An opcode that pushes an integer."""
    if 0 <= value < 256:
        return b"K" + bytes([value])
    if -(1 << 31) <= value < 1 << 31:
        return b"J" + struct.pack("<i", value)
    raw = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(raw)]) + raw if len(raw) < 256 else b"\x8b" + struct.pack("<i", len(raw)) + raw


def _pushed_by(piece: bytes) -> int:
    """The integer pushed by an opcode; 0 for opcodes with textual arguments."""
    code = piece[:1]
    if code in b"KMJ":
        return int.from_bytes(piece[1:], "little", signed=code == b"J")
    return int.from_bytes(piece[2:], "little", signed=True) if code == b"\x8a" else 0


def mutated_pickle(rng: random.Random, data: bytes, other: bytes) -> Mutated:
    """Drop, duplicate or exchange opcodes, change their arguments, or insert opcodes of another pickle."""
    known = pieces(data) if len(data) <= LONGEST else ()
    if len(known) < 3:
        return mutated_bytes(rng, data)
    results = [piece for _, piece in known]
    kinds = [name for name, _ in known]
    messages = [_one_of_pickle(rng, results, kinds, other) for _ in range(rng.choice([1, 1, 1, 2, 4]))]
    return ", ".join(messages), b"".join(results) + data[sum(len(piece) for _, piece in known) :]


def _one_of_pickle(rng: random.Random, flat: list[bytes], kinds: list[str], other: bytes) -> str:
    what = rng.choice([
        "dropped", "doubled", "exchanged", "number", "number", "number", "memo", "global", "text", "opcode", "value", "spliced", "flipped",
        "range doubled", "numbers exchanged", "put into the memo", "tensor", "tensor",
    ])  # fmt: skip
    wanted = {"number": NUMBERS, "numbers exchanged": NUMBERS, "memo": OF_MEMO, "global": {"GLOBAL"}, "text": TEXTS}.get(what)
    places = (
        [at for at, kind in enumerate(kinds) if wanted is None or kind in wanted]
        if what != "tensor"
        else _of_tensors(flat, kinds)
    )
    if not places:
        what, places = "value", list(range(len(kinds)))
    if not places:
        return "nothing"
    at = rng.choice(places)
    if what == "dropped":
        del flat[at], kinds[at]
    elif what == "doubled":
        to = rng.randrange(len(flat))
        flat.insert(to, flat[at])
        kinds.insert(to, kinds[at])
    elif what in {"exchanged", "numbers exchanged"}:
        to = rng.choice(places)
        flat[at], flat[to], kinds[at], kinds[to] = flat[to], flat[at], kinds[to], kinds[at]
    elif what == "number":
        flat[at] = pushed(other_number(rng, _pushed_by(flat[at])))
    elif what == "tensor":
        now = _pushed_by(flat[at])
        flat[at] = pushed(now + rng.choice((1, 1, 1, 1, -1, 8, now)))
    elif what == "memo":
        index = rng.choice([rng.randrange(max(1, len(flat) // 2)), rng.randrange(8), 0xFFFFFFFF])
        letters = b"hj" if "GET" in kinds[at] else b"qr"
        flat[at] = letters[:1] + bytes([index]) if index < 256 else letters[1:] + struct.pack("<I", index)
    elif what == "global":
        flat[at] = b"c" + rng.choice(GLOBALS).replace(" ", "\n").encode() + b"\n"
    elif what == "text":
        to = rng.choice(places)
        text = rng.choice(
            [b"", b"0", b"cuda:0", b"meta", b"cpu:x", b"\xed\xa0\x80", b"..", b"a" * 70_000, b"training", b"__class__"]
        )
        flat[at] = rng.choice([flat[to], b"X" + struct.pack("<I", len(text)) + text])
    elif what == "opcode":
        flat[at] = bytes([rng.choice(OPCODES)]) + flat[at][1:]
    elif what == "value":
        flat[at] = rng.choice(VALUES)
    elif what == "spliced":
        theirs = pieces(other) if len(other) <= LONGEST else ()
        start = rng.randrange(len(theirs)) if theirs else 0
        new = theirs[start : start + rng.randrange(1, 30)]
        flat[at:at] = [piece for _, piece in new]
        kinds[at:at] = [name for name, _ in new]
    elif what == "flipped":
        flat[at] = mutated_bytes(rng, flat[at])[1]
    elif what == "range doubled":
        end = at + rng.randrange(1, 40)
        times = rng.choice([2, 2, 3, 50])
        flat[at:end], kinds[at:end] = flat[at:end] * times, kinds[at:end] * times
    else:
        flat[at] += b"q" + bytes([rng.randrange(30)])
    return f"{what} at {at}"


def _of_tensors(value: list[bytes], kinds: list[str]) -> list[int]:
    """The places where the numbers of tensors are pushed: elements of the storage, offset, sizes and strides."""
    places, inside = [], False
    for at, kind in enumerate(kinds):
        if kind == "GLOBAL":
            inside = value[at].startswith(b"ctorch._utils\n_rebuild_") or (inside and b"Storage" in value[at])
        elif kind == "REDUCE":
            inside = False
        elif inside and kind in NUMBERS:
            places.append(at)
    return places


def mutated_numbers(rng: random.Random, data: bytes) -> Mutated:
    """Change one of the first 4-byte or 8-byte numbers, as found between the pickles of a stream."""
    width = rng.choice([4, 8])
    if len(data) < width:
        return mutated_bytes(rng, data)
    at = min(4 * rng.choice([0, 0, 0, 0, 1, 1, 2, 3, 4, 6, 9, 15]), (len(data) - width) // 4 * 4)
    new = other_number(rng, int.from_bytes(data[at : at + width], "little", signed=True))
    return f"number at {at} is {new}", data[:at] + (new & (1 << 8 * width) - 1).to_bytes(width, "little") + data[at + width :]


def mutated_pickles(rng: random.Random, data: bytes, other: bytes) -> Mutated:
    """Change one of several consecutive pickles, as in streams."""
    starts = [0]
    while len(starts) < 6 and len(data) - starts[-1] <= 4 * LONGEST:
        result = pieces(data[starts[-1] : starts[-1] + LONGEST])
        if not result:
            break
        starts.append(starts[-1] + sum(len(piece) for _, piece in result))
    if len(starts) < 2:
        return mutated_bytes(rng, data)
    which = rng.randrange(len(starts) - 1) if rng.random() < 0.5 else max(0, len(starts) - 3)
    start, end = starts[which], starts[which + 1]
    if rng.random() < 0.2:
        message, new = (mutated_numbers if rng.random() < 0.5 else mutated_bytes)(rng, data[end:])
        return f"behind pickle {which}: {message}", data[:end] + new
    message, new = mutated_pickle(rng, data[start:end], other)
    return f"pickle {which}: {message}", data[:start] + new + data[end:]


# -------------------------------------------------------------------------------------------------------------- JSON

TWICE, DEEP = "~twice~", "~deep~"
WRONG: tuple[Any, ...] = (
    None, "", "x", "-1", "0", "9", "99999999999999999999", "9" * 5000, [], {}, [1], ["a"], [[[]]], True, False, 1.5, float("inf"),
    float("-inf"), float("nan"), 1e308, "\ud800", "\0", "\x1b[31m", {"a": 1}, {"as_int": -1}, {"as_none": True}, "FLOAT", "../x", DEEP,
    "data/weights/../../x", "a" * 100_000, [0] * 5000, "torch.ops.aten.add.Tensor", "torch.float32", "Infinity",
)  # fmt: skip


def mutated_json(rng: random.Random, data: bytes) -> Mutated:
    """Replace values with boundary numbers, wrong types and deep lists; delete, duplicate or exchange keys."""
    try:
        document = json.loads(data) if len(data) <= 4 * LONGEST else None
    except ValueError:
        document = None
    if not isinstance(document, dict | list):
        return mutated_bytes(rng, data)
    places: list[tuple[Any, Any]] = []
    _places(document, places)
    if not places:
        return mutated_bytes(rng, data)
    messages = []
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        holder, key = rng.choice(places)
        what = rng.choice(["wrong", "wrong", "boundary", "boundary", "next", "next", "deleted", "twice", "exchanged"])
        if key not in holder if isinstance(holder, dict) else key >= len(holder):
            continue  # an earlier change removed it
        if what == "wrong":
            holder[key] = rng.choice(WRONG)
        elif what == "boundary":
            number = other_number(rng, _number_at(holder, key) or 0)
            holder[key] = rng.choice([number, number, str(number), float(min(max(number, -(1 << 62)), 1 << 62))])
        elif what == "next":  # a size, a stride or an offset, in its own type
            holder, key = rng.choice([place for place in places if _number_at(*place) is not None] or [(holder, key)])
            now = _number_at(holder, key) or 0
            number = now + rng.choice((1, 1, 1, 1, -1, 8, now))
            holder[key] = str(number) if isinstance(holder.get(key) if isinstance(holder, dict) else holder[key], str) else number
        elif what == "deleted":
            del holder[key]
        elif what == "twice" and isinstance(holder, dict):
            holder[f"{key}{TWICE}"] = rng.choice([*WRONG, holder[key]])
        else:
            there, their = rng.choice(places)
            if (their in there) if isinstance(there, dict) else their < len(there):
                holder[key] = json.loads(json.dumps(there[their]))
        messages.append(f"{what} {key!r:.60}")
    text = json.dumps(document).replace(TWICE, "")
    depth = rng.choice([50, 900, 100_000])
    return ", ".join(messages), text.replace(f'"{DEEP}"', "[" * depth + "]" * depth).encode()


def _number_at(holder: Any, key: Any) -> int | None:
    """The integer at a place, also as a string of digits; None if there is none any more."""
    result = holder.get(key) if isinstance(holder, dict) else holder[key] if key < len(holder) else None
    if isinstance(result, str) and result.isdecimal() and len(result) < 20:
        return int(result)
    return result if result.__class__ is int else None


def _places(value: Any, places: list[tuple[Any, Any]]) -> None:
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            places.append((value, key))
            _places(value[key], places)


# ------------------------------------------------------------------------------------------------------------ source

TOKEN = re.compile(r"[A-Za-z_][\w.]*|\d+(?:\.\d+)?(?:e-?\d+)?|\"[^\"\n]*\"|\S")
SNIPPETS = (
    "None", "True", "0.5", "'abc'", '"\\ud800"', "[1, 2]", "(1, 2)", "{}", "[]", "inf", "nan", "1j", "torch.zeros([2, 3])", "self",
    "torch.empty_strided([2], [1])", "torch.as_strided(torch.zeros([4]), [2], [3])", "x", "-1", "not", "lambda: 1", "print", "__class__",
    "annotate(List[int], [])", "unchecked_cast(Tensor, 1)", "uninitialized(Tensor)", "ops.prim.data", "CONSTANTS.c0", "CONSTANTS.c99999",
    'getattr(self, "0")', "torch.full([1 << 40], 1)", "[0] * 1000000", '"a" * 100000', "1 // 0", "2 ** 100000", "while True:",
    "(" * 300, "\0", "\u00e9", "#",
)  # fmt: skip


@lru_cache(1)
def operators() -> tuple[str, ...]:
    """Names of operators as they appear in source."""
    names = [name.partition("::") for name in registry.known()]
    return tuple(f"torch.{name}" if space == "aten" else f"ops.{space}.{name}" for space, _, name in names)


def mutated_source(rng: random.Random, data: bytes) -> Mutated:
    """Replace, delete or duplicate tokens and lines of TorchScript; insert statements of the grammar in ``tools/fence/programs.py``."""
    text = data.decode("utf-8", "replace")
    messages = []
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        tokens = list(TOKEN.finditer(text)) if len(text) <= LONGEST else []
        if not tokens:
            return mutated_bytes(rng, data)
        what = rng.choice([
            *["operator"] * 5, *["number"] * 5, "snippet", "snippet", "argument", "argument", "argument", "renamed", "renamed", "type",
            "renamed everywhere", *["statement"] * 4, "line deleted", "line doubled", "lines exchanged", "token deleted",
        ])  # fmt: skip
        text, where = _one_of_source(rng, what, text, tokens)
        messages.append(f"{what} {where:.40}")
    return ", ".join(messages), text.encode("utf-8", "replace")


TYPES = (
    "int", "float", "Tensor", "bool", "str", "List[int]", "Optional[Tensor]", "Dict[str, Tensor]", "Tuple[int, int]", "Any", "Device",
    "Future[int]", "List[List[List[float]]]", "__torch__.Model", "number", "complex", "Tuple[()]",
)  # fmt: skip


ASSIGNED = re.compile(r"^( +)(\w+) = ", re.MULTILINE)


def _with_statement(rng: random.Random, text: str) -> tuple[str, str]:
    """A statement, placed after an assignment, that calls an operator with known variables; its result replaces a variable."""
    places = list(ASSIGNED.finditer(text))
    if not places:
        return text + "\n", "nowhere"
    place = rng.choice(places)
    writer = Writer(rng.getrandbits(32), 0)
    writer.variables = sorted({"self", *(item[2] for item in places if item.start() <= place.start())})
    result = rng.choice([writer.call, writer.view, writer.write, writer.expression, writer.value])().replace("self.w", place[2])
    end = text.find("\n", place.end())
    end = len(text) if end < 0 else end
    return f"{text[:end]}\n{place[1]}{rng.choice([place[2], '_g'])} = {result}{text[end:]}", f"{result:.30} at {end}"


def _one_of_source(rng: random.Random, what: str, text: str, tokens: list[re.Match[str]]) -> tuple[str, str]:
    if what == "statement":
        return _with_statement(rng, text)
    if what.startswith("line"):
        lines = text.splitlines(keepends=True)
        at, to = rng.randrange(len(lines)), rng.randrange(len(lines))
        where = f"{at}"
        if what == "line deleted":
            del lines[at]
        elif what == "line doubled":
            lines.insert(to, lines[at])
        else:
            lines[at], lines[to] = lines[to], lines[at]
        return "".join(lines), where
    wanted = {
        "operator": lambda token: token.startswith(("torch.", "ops.")) and not token.startswith("torch.nn"),
        "number": lambda token: token[0].isdigit(),
        "type": lambda token: token in {"int", "float", "Tensor", "bool", "str"},
        "renamed": str.isidentifier,
        "argument": lambda token: token[0].isdigit() or token in {"None", "True", "False"} or token.startswith("_"),
        "renamed everywhere": str.isidentifier,
    }.get(what)
    places = [token for token in tokens if wanted is None or wanted(token[0])] or tokens
    token = rng.choice(places)
    if what == "operator":
        new = rng.choice(operators())
    elif what == "number":
        now = int(token[0]) if token[0].isdecimal() and len(token[0]) < 20 else 0
        new = rng.choice(
            [str(other_number(rng, now)), str(other_number(rng, now)), "1e400", "0.", "-0.0", "1" * 5000, rng.choice(tokens)[0]]
        )
    elif what == "type":
        new = rng.choice(TYPES)
    elif what in {"renamed", "renamed everywhere"}:
        new = rng.choice([token for token in tokens if token[0].isidentifier()] or tokens)[0]
        if what == "renamed everywhere":
            return re.sub(rf"\b{re.escape(token[0])}\b", lambda _: new, text), token[0]
    elif what == "argument":
        values = [item for item in tokens if item[0][0].isdigit() or item[0].startswith("_") or item[0] in {"x", "input", "self"}]
        new = rng.choice(
            [f"{token[0]}, {rng.choice(values or tokens)[0]}", rng.choice(values or tokens)[0], rng.choice(SNIPPETS)]
        )
    else:
        new = "" if what == "token deleted" else rng.choice(SNIPPETS)
    return text[: token.start()] + new + text[token.end() :], f"{token[0]} at {token.start()}"


# ------------------------------------------------------------------------------------------------------- flatbuffers


def mutated_flatbuffer(rng: random.Random, data: bytes) -> Mutated:
    """Vtables, references and vectors; or numbers anywhere: those of 32 bits at their alignment, fields of tables, numbers of 64 bits."""
    result = mutated_tables(rng, data) if rng.random() < 0.5 else None
    if result is not None:
        return result
    changed = bytearray(data)
    messages = []
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        width = rng.choice([4, 4, 4, 2, 8, 1])
        if len(data) < 16:
            return mutated_bytes(rng, data)
        at = rng.randrange(len(data) // width) * width
        now = int.from_bytes(changed[at : at + width], "little")
        other = rng.randrange(len(data) // width) * width
        new = rng.choice([
            boundary(rng), boundary(rng), now + rng.choice([-64, -8, -4, -2, -1, 1, 2, 4, 8, 64]), now * 2,
            int.from_bytes(changed[other : other + width], "little"), rng.randrange(len(data)), other - at,
        ])  # fmt: skip
        changed[at : at + width] = (new & (1 << 8 * width) - 1).to_bytes(width, "little")
        messages.append(f"{width} bytes at {at} state {new} instead of {now}")
    return ", ".join(messages), bytes(changed)


# -------------------------------------------------------------------------------------------------------- containers


def _sealed(records: list[tuple[bytes, bytes, bool]], *, crc32: bool = True) -> bytes:
    """A zip archive with these names and contents, deflated or not."""
    out = io.BytesIO()
    write_end(out, [write_member(out, name, data, deflate=deflated, crc32=crc32) for name, data, deflated in records])
    return out.getvalue()


def _opened(raw: bytes) -> list[tuple[bytes, bytes, bool]]:
    return list(_records(raw))


@lru_cache(2048)
def _records(raw: bytes) -> tuple[tuple[bytes, bytes, bool], ...]:
    return tuple((member.full_name, member.content(raw), member.method != 0) for member in layout(raw).members)


def _kind(name: str, data: bytes) -> str:
    """The kind of content of a record."""
    if data[:4] == b"PK\3\4":
        return "nested"
    if data[4:8] == b"PTMF":
        return "flatbuffer"
    if data[:1] == b"\x80" and len(data) > 2:
        return "pickle"
    if data[:1] in {b"{", b"["}:
        return "JSON"
    return "source" if name.endswith(".py") else "bytes"


def _other_pickle(rng: random.Random, groups: Groups) -> bytes:
    """A pickle of any archive of the corpus."""
    sample = sample_of(rng.choice(rng.choice(groups)))
    pickles = [member for member in sample.layout.members if member.record.endswith("pkl")]
    if pickles:
        return rng.choice(pickles).content(sample.raw)
    at = sample.raw.find(b"\x80\2", 20)
    return sample.raw[max(at, 0) : max(at, 0) + LONGEST]


def mutated(rng: random.Random, name: str, data: bytes, kind: str, groups: Groups) -> Mutated:
    """Change a record of this kind."""
    if rng.random() < 0.05:
        return mutated_bytes(rng, data)
    if kind == "pickle":
        return mutated_pickle(rng, data, _other_pickle(rng, groups))
    if kind == "JSON":
        return mutated_json(rng, data)
    if kind == "source":
        return mutated_source(rng, data)
    if kind == "flatbuffer":
        return mutated_flatbuffer(rng, data)
    if kind == "nested":
        result = _mutated_record(rng, data, groups, None)
        return result if result is not None else mutated_bytes(rng, data)
    return mutated_bytes(rng, data)


def _mutated_record(rng: random.Random, raw: bytes, groups: Groups, wanted: str | None) -> Mutated | None:
    """A zip archive with one or two changed records; None if there is no record of the kind."""
    records = _opened(raw)
    kinds = [_kind(name.decode("utf-8", "replace"), data) for name, data, _ in records]
    messages = []
    for _ in range(rng.choice([1, 1, 1, 2])):
        places = [at for at, kind in enumerate(kinds) if wanted is None or kind == wanted]
        if not places:
            return None
        weights = [1 if kinds[at] == "bytes" else 4 for at in places]
        at = rng.choices(places, weights)[0]
        name, data, deflated = records[at]
        what, new = mutated(rng, name.decode("utf-8", "replace"), data, kinds[at], groups)
        records[at] = name, new, deflated
        kinds[at] = "bytes"  # the result may not be parseable any more
        messages.append(f"{name.decode('utf-8', 'replace')}: {what}")
    return "; ".join(messages), _sealed(records, crc32=rng.random() < 0.97)


def _of_kind(kind: str | None) -> Callable[[random.Random, Sample, Groups], Made | None]:
    def make(rng: random.Random, sample: Sample, groups: Groups) -> Made | None:
        if not sample.layout.members:
            if kind == "pickle" and sample.container == "stream":
                message, data = mutated_pickles(rng, sample.raw, _other_pickle(rng, groups))
                return message, data, frozenset(), False
            return None
        result = _mutated_record(rng, sample.raw, groups, kind)
        return None if result is None else (*result, frozenset(), False)

    return make


def exported(rng: random.Random, sample: Sample, _: object) -> Made | None:
    """Change the JSON of an exported program or of its weights."""
    records = _opened(sample.raw)
    places = [at for at, (name, _, _) in enumerate(records) if is_part(name.decode("utf-8", "replace"))]
    if not places:
        return None
    messages = []
    for at in rng.sample(places, min(len(places), rng.choice([1, 1, 1, 2]))):
        name, data, deflated = records[at]
        result = mutated_exported(rng, name.decode("utf-8", "replace"), data)
        if result is not None:
            records[at] = name, result[1], deflated
            messages.append(f"{name.decode('utf-8', 'replace')}: {result[0]}")
    return "; ".join(messages), _sealed(records), frozenset(), False


def bytes_of_record(rng: random.Random, sample: Sample, _: object) -> Made | None:
    """Change bytes of any record."""
    if not sample.layout.members:
        message, data = mutated_bytes(rng, sample.raw)
        return message, data, frozenset(), False
    records = _opened(sample.raw)
    at = rng.randrange(len(records))
    name, data, deflated = records[at]
    message, new = mutated_bytes(rng, data)
    records[at] = name, new, deflated
    return f"{name.decode('utf-8', 'replace')}: {message}", _sealed(records), frozenset(), False


def flatbuffer(rng: random.Random, sample: Sample, _: object) -> Made | None:
    """Change numbers of a flatbuffer."""
    if sample.container != "flatbuffer":
        return None
    message, data = mutated_flatbuffer(rng, sample.raw)
    return message, data, frozenset(), False


TAR_FIELDS = {"name": (0, 100), "mode": (100, 8), "size": (124, 12), "kind": (156, 1), "link": (157, 100), "prefix": (345, 155)}


def tar(rng: random.Random, sample: Sample, groups: Groups) -> Made | None:
    """Change a member of a tar file, or a header field, with the checksum corrected."""
    if sample.container != "tar":
        return None
    if rng.random() < 0.4:
        return _tar_header(rng, sample)
    with tarfile.open(fileobj=io.BytesIO(sample.raw)) as archive:
        members = [(entry, (archive.extractfile(entry) or io.BytesIO()).read()) for entry in archive.getmembers()]
    at = rng.randrange(len(members))
    member, data = members[at]
    what = rng.choice(["changed"] * 8 + ["dropped", "doubled", "exchanged"])
    if what == "changed":
        message, new = mutated_pickles(rng, data, _other_pickle(rng, groups)) if data[:1] == b"\x80" else mutated_bytes(rng, data)
        what = message
        members[at] = member, new
    elif what == "dropped":
        del members[at]
    elif what == "doubled":
        members.insert(rng.randrange(len(members)), members[at])
    else:
        to = rng.randrange(len(members))
        members[at], members[to] = (member, members[to][1]), (members[to][0], data)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as result:
        for item, content in members:
            item.size = len(content) if item.isreg() else item.size
            result.addfile(item, io.BytesIO(content) if item.isreg() else None)
    return f"{member.name}: {what}", out.getvalue(), frozenset(), False


def _tar_header(rng: random.Random, sample: Sample) -> Made:
    data = bytearray(sample.raw)
    headers = [at for at in range(0, len(data) - 511, 512) if data[at + 257 : at + 262] == b"ustar"]
    start = rng.choice(headers)
    what = rng.choice(list(TAR_FIELDS))
    at, width = TAR_FIELDS[what]
    number = b"%011o" % rng.choice([0, 1, 511, 512, 513, 1 << 20, (1 << 33) - 1, rng.randrange(len(data))])
    new = {
        "size": rng.choice([number, b"\x80" + rng.randbytes(11), b"\xff" * 12, b"-1", b" " * 12, b"9" * 11]),
        "kind": bytes([rng.choice(b"0123456789LKxgSVD\0\xff")]),
    }.get(what, rng.choice([b"\0" * 4, b"../x", b"pickle", b"storages", b"tensors", b"sys_info", b"\xff" * 20, b"a" * width]))
    data[start + at : start + at + width] = new[:width].ljust(width, b"\0")
    data[start + 148 : start + 156] = b" " * 8
    data[start + 148 : start + 156] = b"%06o\0 " % sum(data[start : start + 512])
    return f"{what} of the header at {start} is {new!r:.60}", bytes(data), frozenset(), False


def rearranged(rng: random.Random, sample: Sample, groups: Groups) -> Made | None:
    """Drop, duplicate, rename or exchange records, or take them from another archive."""
    if not sample.layout.members:
        return None
    records = _opened(sample.raw)
    messages = []
    for _ in range(rng.choice([1, 1, 2])):
        at, to = rng.randrange(len(records)), rng.randrange(len(records))
        name, data, deflated = records[at]
        folder = name.rpartition(b"/")[0] + b"/" if b"/" in name else b""
        what = rng.choice(["dropped", "doubled", "renamed", "exchanged", "theirs", "theirs", "deflated", "added"])
        if what == "dropped" and len(records) > 1:
            del records[at]
        elif what == "doubled":
            records.insert(to, records[at])
        elif what == "renamed":
            new = rng.choice([records[to][0], name + b"x", folder + b"../x", b"/" + name, folder + b"data.pkl", b"x" * 70, b"\xff" + name,
                              folder + b"bytecode.pkl", folder + b"model.json", folder + b"archive_format", b""])  # fmt: skip
            records[at] = new, data, deflated
        elif what == "exchanged":
            records[at], records[to] = (name, *records[to][1:]), (records[to][0], data, deflated)
        elif what == "deflated":
            records[at] = name, data, not deflated
        else:
            theirs = _theirs(rng, groups, name.rpartition(b"/")[2])
            if theirs is not None:
                records[at] = (name if what == "theirs" else folder + theirs[0].rpartition(b"/")[2], *theirs[1:])
        messages.append(f"{what} {name.decode('utf-8', 'replace')}")
    return ", ".join(messages), _sealed(records), frozenset(), False


def _theirs(rng: random.Random, groups: Groups, name: bytes) -> tuple[bytes, bytes, bool] | None:
    """A record of another archive, with the same name if there is one."""
    records = _opened(sample_of(rng.choice(rng.choice(groups))).raw)
    same = [record for record in records if record[0].rpartition(b"/")[2] == name]
    return rng.choice(same or records) if records else None


def spliced(rng: random.Random, sample: Sample, groups: Groups) -> Made:
    """The start of one archive and the end of another."""
    other = sample_of(rng.choice(rng.choice(groups)))
    at, start = rng.randrange(len(sample.raw) + 1), rng.randrange(len(other.raw) + 1)
    return f"up to {at}, then {other.name} from {start}", sample.raw[:at] + other.raw[start:], frozenset(), False


RESEALED: dict[str, tuple[float, Callable[[random.Random, Sample, Groups], Made | None]]] = {
    "record's bytes": (12, bytes_of_record),
    "pickle": (28, _of_kind("pickle")),
    "JSON": (30, _of_kind("JSON")),
    "exported program": (60, exported),
    "source": (60, _of_kind("source")),
    "flatbuffer": (60, flatbuffer),
    "container's fields": (12, container_fields),
    "tar": (60, tar),
    "nested archive": (30, _of_kind("nested")),
    "records rearranged": (10, rearranged),
    "archives spliced": (3, spliced),
}
"""The frequency and the function for each kind, for archives that it applies to."""
