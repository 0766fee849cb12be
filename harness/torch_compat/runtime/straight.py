"""Methods that run the same operators in each call.

A method does so if neither it nor a function that it calls branches or loops. Two kinds of branches do not count: assertions, and tests of
options in functions (parameters with defaults), since the callers of a function pass constants for its options.
"""

from __future__ import annotations

import dis
from typing import TYPE_CHECKING, Any

from torch_compat.runtime.language.called import raised
from torch_compat.runtime.language.names import FILE_PREFIX
from torch_compat.runtime.values import ScriptObject, Steps

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.runtime.language.names import FunctionInfo

__all__ = ["divides", "objects"]

NOTHING = frozenset({"CACHE", "EXTENDED_ARG", "NOP", "NOT_TAKEN", "PRECALL", "RESUME", "TO_BOOL"})
"""Instructions without a meaning of their own."""
ENDS = frozenset({"POP_TOP", "RETURN_VALUE", "STORE_FAST"})
"""Instructions that end a statement."""
DIVIDING = frozenset({"BEFORE_WITH", "FOR_ITER", "LOAD_SPECIAL", "STORE_ATTR"})
"""Instructions of what is not modeled."""


def objects(object_: ScriptObject) -> Iterator[ScriptObject]:
    """An object and the objects that it holds at any depth."""
    waiting, seen = [object_], set()
    while waiting:
        item = waiting.pop()
        if id(item) not in seen:
            seen.add(id(item))
            yield item
            waiting += [value for value in item.__dict__.values() if isinstance(value, ScriptObject)]


def divides(object_: ScriptObject, info: FunctionInfo) -> bool:
    """Whether a method, or a function that it calls, does what is not modeled: branch, loop, print, set an attribute, or enter a context."""
    methods: dict[str, list[Any]] = {}
    for item in objects(object_):
        for name, method in item.info.methods.items():
            methods.setdefault("m_" + name, []).append(method.call)
    asked: list[Any] = [info.call]
    members = {id(method) for several in methods.values() for method in several} | {id(info.call)}
    known = {id(info.call)}
    while asked:
        function = asked.pop()
        instructions = [item for item in dis.get_instructions(function.__code__) if item.opname not in NOTHING]
        arms = _arms(function, instructions, parameters=id(function) not in members)
        if arms is None or _has_effects(function, instructions, arms):
            return True
        for instruction in instructions:
            called: list[Any] = []
            if instruction.opname in {"LOAD_ATTR", "LOAD_METHOD"}:
                called = methods.get(str(instruction.argval), [])
            elif instruction.opname == "LOAD_GLOBAL":
                value = function.__globals__.get(instruction.argval)
                code = getattr(value, "__code__", None)
                if code is not None and code.co_filename.startswith(FILE_PREFIX):
                    called = [value]
            if any(instruction.offset in arm for arm in arms):
                continue
            for item in called:
                if id(item) not in known:
                    known.add(id(item))
                    asked.append(item)
    return False


def _has_effects(function: Any, instructions: list[dis.Instruction], arms: list[range]) -> bool:
    """Whether a statement has no result: it prints, or changes a list or a dict."""
    begin = 0
    for at, instruction in enumerate(instructions):
        if instruction.opname == "POP_TOP" and not any(instruction.offset in arm for arm in arms):
            called = [function.__globals__.get(item.argval) for item in instructions[begin:at] if item.opname == "LOAD_GLOBAL"]
            if not called or not (called[0] is raised or isinstance(getattr(called[0], "__self__", None), Steps)):
                return True
        if instruction.opname in ENDS or "JUMP" in instruction.opname:
            begin = at + 1
    return False


def _arms(function: Any, instructions: list[dis.Instruction], *, parameters: bool) -> list[range] | None:
    """The parts of a function's code that only some calls run; None if the function branches or loops in a way that is not modeled.

    An assertion does not branch, and neither does a function that tests its options: callers pass constants for parameters with defaults.

    Parameters:
        parameters: whether tests of parameters are such tests.
    """
    options = _options(function, instructions) if parameters else frozenset()
    arms: list[range] = []
    begin = 0
    for at, instruction in enumerate(instructions):
        name = instruction.opname
        if name in DIVIDING:
            return None
        if "JUMP" not in name:
            begin = at + 1 if name in ENDS else begin
            continue
        test = instructions[begin:at]
        begin = at + 1
        if name == "JUMP_FORWARD":
            continue
        after = instructions[at + 1]
        if instruction.argval < instruction.offset or not name.startswith("POP_JUMP"):
            return None
        if after.opname == "JUMP_FORWARD":
            loaded = [
                function.__globals__.get(item.argval)
                for item in instructions[at + 2 :]
                if item.offset < after.argval and item.opname == "LOAD_GLOBAL"
            ]
            if loaded and all(value is raised for value in loaded):
                continue
        if not _constant(test, options):
            return None
        arms.append(range(after.offset, instruction.argval))
        last = [item for item in instructions if item.offset < instruction.argval][-1]
        if last.opname == "JUMP_FORWARD":
            arms.append(range(instruction.argval, last.argval))
    return arms


def _options(function: Any, instructions: list[dis.Instruction]) -> frozenset[str]:
    """The parameters of a function that have defaults, and the variables computed from them alone."""
    code = function.__code__
    options = set(code.co_varnames[: code.co_argcount][code.co_argcount - len(function.__defaults__ or ()) :])
    stores: dict[str, list[list[dis.Instruction]]] = {}
    begin = 0
    for at, instruction in enumerate(instructions):
        if instruction.opname == "STORE_FAST":
            stores.setdefault(instruction.argval, []).append(instructions[begin:at])
        if instruction.opname in ENDS or "JUMP" in instruction.opname:
            begin = at + 1
    for name, several in stores.items():
        if all(_constant(items, frozenset(options)) for items in several):
            options.add(name)
    return frozenset(options)


def _constant(instructions: list[dis.Instruction], options: frozenset[str]) -> bool:
    """Whether an expression reads options and constants only."""
    for instruction in instructions:
        if instruction.opname.startswith("LOAD_FAST"):
            names = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
            if not options.issuperset(names):
                return False
        elif instruction.opname in {"LOAD_ATTR", "LOAD_METHOD"}:
            return False
    return True
