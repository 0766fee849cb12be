"""The public interface of a loaded program: its methods with their hooks, and its parameters and buffers by name."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.errors import HarnessError, Raised
from torch_compat.releases.release import Release
from torch_compat.runtime import registry
from torch_compat.runtime.doubts import doubts_of
from torch_compat.runtime.exchange import Exchange, exchanged
from torch_compat.runtime.faults import CALLED, translated
from torch_compat.runtime.language.types import convert, parse_type, release_value
from torch_compat.runtime.limits import meter
from torch_compat.runtime.slipping import DICTIONARY
from torch_compat.runtime.tensor import OpaqueTensor, Tensor
from torch_compat.runtime.values import ScriptObject

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.runtime.language.names import ClassInfo, FunctionInfo
    from torch_compat.runtime.program import Program

__all__ = ["Module", "begin", "children", "own_state", "state_items", "submodules"]

# As of this release only attributes that the source lists are buffers; before, all attributes declared as tensors are.
BUFFERS_SAID = Release("1.9.0")
TAGGED = 3  # the first file format version whose pickled dicts carry their types


class Module:
    """A module of a program.

    Functions that only the harness needs are not methods: every name in this class hides a method of the program with the same name.

    Attributes:
        program: the program that the module belongs to.
        object: the wrapped object of the program.
    """

    def __init__(self, program: Program, object_: ScriptObject | None = None) -> None:
        self.program = program
        self.object = program.main if object_ is None else object_

    @property
    def methods(self) -> dict[str, FunctionInfo]:
        """The methods of the module, by name."""
        results: dict[str, FunctionInfo] = self.object.info.methods
        return results

    def run(self, method: str, args: tuple[Any, ...] = (), keywords: dict[str, Any] | None = None, *, hooks: bool = False) -> Any:
        """Call a method with values of the runtime (tensors are :class:`torch_compat.runtime.tensor.Tensor`).

        Parameters:
            method: the name of the method; ``__call__`` is ``forward`` with hooks.
            hooks: whether to run the hooks around ``forward``, as calling the module itself does. Calls inside of the program
                are marked in its source.

        Raises:
            Raised: the program raised, or the arguments do not match its schema.
            Unsupported: the reference reader does not support something that the call needs.
        """
        if method == CALLED:
            method, hooks = "forward", True
        info = self.methods.get(method)
        if info is None:
            raise Raised(f"the module has no method {method}", code="AttributeError")
        program = self.program
        begin(self)
        registry.grad.begin()
        try:
            given = self._bind(info, args, keywords or {})
            program.slips.begin(method, self.object, given, info.types()[1:])
            if not program.mobile:
                registry.grad.doubts = doubts_of(program.horizon.release, self.object, info, given, info.types()[1:])
                registry.grad.recording = recording = program.differentiation.begin(self.object, info, given)
            with np.errstate(all="ignore"):  # torch does not warn about arithmetic
                result = _hooked(self.object, info, given) if hooks else info.call(self.object, *given)
            program.slips.end(method)
            if not program.mobile and not (hooks and (self.object.info.hooks or self.object.info.pre_hooks)):
                program.differentiation.end(self.object, info, given, recording, result)
            self._hand_out(result, given)
            return release_value(result)
        except HarnessError as error:
            before = program.slips.broken()
            if before is not None:
                raise before from error
            raise
        except Exception as error:
            raise (program.slips.broken() or translated(error)) from error

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Call the module with its hooks; takes and returns NumPy arrays (:mod:`torch_compat.runtime.exchange`).

        Raises:
            Raised: the program raised, or the arguments do not match its schema.
            Unsupported: the reference reader does not support something that the call needs.
        """
        return self._exchanged(CALLED, args, keywords)

    def _exchanged(self, method: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        return exchanged(partial(self.run, method), args, keywords)

    def __getattr__(self, name: str) -> Any:
        """The method of a name; ``module.forward(x)`` takes and returns NumPy arrays as well."""
        if name.startswith("__") or name in {"object", "program"} or name not in self.methods:
            raise AttributeError(f"the module has no method {name}")

        def call(*args: Any, **keywords: Any) -> Any:
            return self._exchanged(name, args, keywords)

        return call

    def _hand_out(self, result: Any, given: list[Any]) -> None:
        """Raise the error of a release that cannot convert a result to Python."""
        program = self.program
        if not (program.mobile and program.slips.has(DICTIONARY)):
            return
        known = {id(value) for value in given}
        if program.version < TAGGED:
            known |= {id(value) for _, item in _modules(self.object, "") for value in item.__dict__.values()}
        if _in_tuple(result, known):
            program.slips.meet(DICTIONARY)
            message = "Cannot create dict for key type 'Dynamic<64>': 1.11 cannot convert a dict in a tuple to Python"
            raise Raised(message, code="RuntimeError")

    def _bind(self, info: FunctionInfo, args: tuple[Any, ...], keywords: dict[str, Any]) -> list[Any]:
        parameters, types = info.parameters[1:], info.types()[1:]
        if len(args) > len(parameters):
            raise Raised(
                f"{info.name}() expected at most {len(parameters)} argument(s) but received {len(args)}", code="RuntimeError"
            )
        given = [convert(value, type_, self.program.classes) for value, type_ in zip(args, types, strict=False)]
        names = [name for name, _ in parameters]
        defaults = info.call.__defaults__ or ()
        for name in keywords:
            if name not in names[len(args) :]:
                raise Raised(f"Unknown keyword argument '{name}' for operator '{info.name}'", code="RuntimeError")
        for position in range(len(args), len(parameters)):
            name = names[position]
            if name in keywords:
                given.append(convert(keywords[name], types[position], self.program.classes))
            elif position + 1 < info.required:
                raise Raised(f"{info.name}() is missing value for argument '{name}'", code="RuntimeError")
            elif any(later in keywords for later in names[position + 1 :]):
                given.append(defaults[position - len(names)])
        return given

    def named_tensors(self) -> Iterator[tuple[str, str, Tensor | OpaqueTensor]]:
        """``(name, "parameter" or "buffer", tensor)`` of the module and its submodules, each tensor once, parameters first."""
        for kind in ("parameter", "buffer"):
            seen: set[int] = set()
            for prefix, item in _modules(self.object, ""):
                for name, value in _own(self, item, kind):
                    if id(value) not in seen:
                        seen.add(id(value))
                        yield prefix + name, kind, value

    def state(self) -> dict[str, Any]:
        """The parameters and buffers by name, as NumPy arrays that share the memory of the program."""
        return {name: Exchange().give(tensor) for name, _, tensor in self.named_tensors()}

    @property
    def notes(self) -> list[str]:
        """Remarks on how the program is run."""
        return list(self.program.notes)

    def attribute(self, name: str) -> Any:
        """The value of an attribute."""
        if "a_" + name not in self.object.__dict__:
            raise Raised(f"the module has no attribute {name}", code="AttributeError")
        return release_value(self.object.__dict__["a_" + name])


def begin(module: Module) -> None:
    """Begin a call with full budgets."""
    module.program.steps.begin()
    meter.begin(module.program.limits)


def _own(module: Module, item: ScriptObject, kind: str) -> list[tuple[str, Tensor | OpaqueTensor]]:
    """The parameters or the buffers of a module, without those of its submodules."""
    mobile = (
        module.program.mobile
    )  # the lite interpreter reads no source: without a list of buffers in the source, each tensor may be a buffer
    said_only = (item.info.says_buffers if mobile else False) or (module.program.horizon.release >= BUFFERS_SAID and not mobile)
    results = ((name, getattr(item, "a_" + name, None)) for name in _names(item, kind, said_only))
    return [(name, value) for name, value in results if value.__class__ in {Tensor, OpaqueTensor}]


def own_state(module: Module, item: ScriptObject) -> list[tuple[str, Tensor | OpaqueTensor]]:
    """The entries of a module in ``state_dict``, without those of its submodules: parameters first, then buffers."""
    return _own(module, item, "parameter") + _own(module, item, "buffer")


def state_items(module: Module) -> Iterator[tuple[str, Tensor | OpaqueTensor]]:
    """The items of ``state_dict`` in its order; a tensor that several modules share occurs several times."""
    for path, item in submodules(module):
        for name, value in own_state(module, item):
            yield path + name, value


def submodules(module: Module) -> Iterator[tuple[str, ScriptObject]]:
    """``(path, module)`` of the module itself and of all its descendants, once for each path that leads to a module."""
    stack: list[tuple[str, ScriptObject]] = [("", module.object)]
    while stack:
        path, item = stack.pop()
        module.program.steps.tick()
        yield path, item
        stack += [(f"{path}{name}.", child) for name, child in reversed(children(item))]


def _modules(object_: ScriptObject, prefix: str) -> Iterator[tuple[str, ScriptObject]]:
    seen: set[int] = set()
    stack = [(prefix, object_)]
    while stack:
        at, item = stack.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        yield at, item
        stack += [(f"{at}{name}.", value) for name, value in reversed(children(item))]


def children(item: ScriptObject) -> list[tuple[str, ScriptObject]]:
    """The submodules of a module, by name."""
    items = item.__dict__.items()
    return [(name[2:], value) for name, value in items if isinstance(value, ScriptObject) and value.info.kind == "module"]


def _in_tuple(value: Any, given: set[int]) -> bool:
    """Whether a tuple anywhere in a result has a dict as an item, except for certain dicts.

    Parameters:
        given: identities of the excepted dicts, whose types do not come from the lite interpreter: arguments and untyped attributes.
    """
    if value.__class__ is dict:
        return any(_in_tuple(item, given) for item in value.values())
    if value.__class__ is tuple:
        return any((item.__class__ is dict and id(item) not in given) or _in_tuple(item, given) for item in value)
    return value.__class__ is list and any(_in_tuple(item, given) for item in value)


def _names(object_: ScriptObject, kind: str, said_only: bool) -> list[str]:
    info: ClassInfo = object_.info
    if kind == "parameter":
        return info.parameters
    if said_only:
        return info.buffers
    tensor = parse_type("Tensor")
    return [
        name for name, type_ in zip(info.attributes, info.types(), strict=True) if type_ == tensor and name not in info.parameters
    ]


def _hooked(object_: ScriptObject, info: FunctionInfo, given: list[Any]) -> Any:
    """Call ``forward`` of a module with its hooks around it."""
    cls: ClassInfo = object_.info
    inputs: Any = tuple(given)
    for name in cls.pre_hooks:
        outcome = cls.methods[name].call(object_, inputs)
        if outcome is not None:
            inputs = outcome if outcome.__class__ is tuple else (outcome,)
    result = info.call(object_, *inputs)
    for name in cls.hooks:
        outcome = cls.methods[name].call(object_, inputs, result)
        if outcome is not None:
            result = outcome
    return result
