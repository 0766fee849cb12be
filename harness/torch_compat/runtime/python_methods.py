"""Methods that a loaded program has in Python in addition to those of its source, from ``torch.nn.Module`` and ``torch.jit``.

Python looks up the class of a module before the program, so a method of the program with one of these names is never called.
``torch.jit`` refuses most of these methods (``requires_grad_ is not supported on ScriptModules``); the others act on the parameters,
buffers and submodules that the release exposes (:class:`torch_compat.runtime.module.Module`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from torch_compat.errors import Raised, Unsupported
from torch_compat.releases.release import Release
from torch_compat.runtime import dtypes, registry
from torch_compat.runtime.dtypes import Dtype
from torch_compat.runtime.module import Module, begin, children, own_state, state_items, submodules
from torch_compat.runtime.tensor import OpaqueTensor, Tensor
from torch_compat.runtime.values import Device, ScriptObject, text_out
from torch_compat.values.dtypes import DTYPES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Arguments = tuple[Any, ...]
    Encode = Callable[[Any], Any]

__all__ = ["PythonMethod", "call_python", "state_shown"]

RECURSIVE = Release("1.4.0")
"""As of this release, a loaded program is a RecursiveScriptModule, and its messages say so."""
OWN_KEYS = Release("1.2.0")  # as of this release, the class that ``load_state_dict`` returns is named ``_IncompatibleKeys``
NAMED = Release("1.3.0")
"""As of this release, a loaded program shows the name of its own class."""
BOOLEAN_MODE = Release("1.9.0")  # as of this release, ``train`` only takes a bool
PLAIN_DESTINATION = Release("1.12.0")  # as of this release, ``state_dict`` accepts a destination without metadata
TESTED_VALUES = Release("1.9.0")  # as of this release, ``load_state_dict`` lists values that are not tensors among its errors
ONE_NUMBER = Release(
    "2.10.0"
)  # as of this release, ``load_state_dict`` accepts a 1-dim tensor for a 0-dim tensor only if it has one element
WHOLE_NAMES = Release("2.4.0")  # as of this release, ``load_state_dict`` does not expect a tensor with the name of a submodule
COMPLEX_MODULES = Release("1.7.0")  # as of this release, ``to`` accepts complex dtypes


class PythonMethod:
    """A method of the class of a loaded module.

    Attributes:
        act: implements the method; takes the module, the arguments, and the function that encodes a value.
        least, most: the minimum and maximum number of arguments besides the module.
        more: the maximum number of arguments as of a release.
    """

    def __init__(
        self, act: Callable[[Module, Arguments, Encode], Any], most: int, *more: tuple[str, int], least: int = 0
    ) -> None:
        self.act = act
        self.least = least
        self._most = most
        self._more = [(Release(since), count) for since, count in more]

    def check(self, name: str, args: Arguments, release: Release) -> None:
        """Check the number of arguments.

        Raises:
            Raised: the number does not match.
        """
        most = max([self._most, *(count for since, count in self._more if release >= since)])
        if not self.least <= len(args) <= most:
            takes = "1 positional argument" if not most else f"{self.least + 1} to {most + 1} positional arguments"
            raise Raised(f"{name}() takes {takes} but {len(args) + 1} were given", code="TypeError")


def call_python(module: Module, name: str, args: Arguments, encode: Encode) -> Any:
    """Call a method by name as Python does; return the result in the neutral form.

    Raises:
        Raised: there is no such method, it is not supported for scripted modules, or it raised.
        Unsupported: the reference reader does not support something.
    """
    release = module.program.horizon.release
    known = METHODS.get(name)
    if known is not None and name in SHOWING and release < RECURSIVE:
        raise Unsupported(f"the reference reader does not know what {name} returned up to 1.3", code="method")
    if known is not None:
        known.check(name, args, release)
        begin(module)
        return known.act(module, args, encode)
    since = OTHERS.get(name)
    if since is not None and release >= since:
        if name in UNKNOWN:
            raise Unsupported(f"the reference reader does not know what {name} returns", code="method")
        raise Raised(f"{name} is not supported on ScriptModules", code="RuntimeError")
    if name not in module.methods:
        child = module.object.__dict__.get("a_" + name)
        if isinstance(child, ScriptObject) and child.info.kind == "module":
            return encode(Module(module.program, child).run("__call__", args))
    return encode(module.run(name, args))


def state_shown(tensors: Iterable[tuple[str, str, Any]], encode: Encode) -> dict[str, Any]:
    """``{"dict": [[key, {"tuple": [kind, tensor]}], ...]}`` of the parameters and buffers of a module."""
    entries = [[name, {"tuple": [kind, encode(tensor)]}] for name, kind, tensor in tensors]
    return {"dict": sorted(entries, key=lambda entry: str(entry[0]))}


def _original_name(item: ScriptObject) -> str:
    return text_out(item.qualified_name.rpartition(".")[2])


def _given(args: Arguments, position: int, default: Any) -> Any:
    return args[position] if len(args) > position else default


# ---------------------------------------------------------------------------------------------------------------- modes


def _itself(module: Module, encode: Encode) -> dict[str, Any]:
    """Encode the module that a method returns, by its class name and its state."""
    name = "torch.jit.ScriptModule" if module.program.horizon.release < NAMED else _original_name(module.object)
    return {"object": {"type": name, "state": state_shown(module.named_tensors(), encode)}}


def _train(module: Module, args: Arguments, encode: Encode) -> Any:
    mode = _given(args, 0, True)
    if module.program.horizon.release >= BOOLEAN_MODE and mode.__class__ is not bool:
        raise Raised("training mode is expected to be boolean", code="ValueError")
    if mode.__class__ is Tensor and mode.numel == 1:
        mode = mode.item()
    if mode is not None and mode.__class__ not in {bool, int, float, complex}:
        raise Raised("Unable to cast Python instance to C++ type bool", code="RuntimeError")
    for _, item in submodules(module):
        if "a_training" in item.__dict__:
            item.__dict__["a_training"] = bool(mode)
    return _itself(module, encode)


def _eval(module: Module, args: Arguments, encode: Encode) -> Any:
    del args
    return _train(module, (False,), encode)


# ------------------------------------------------------------------------------------------------------------ enumerating


def _generator(module: Module, args: Arguments, encode: Encode) -> Any:
    """Encode a generator, whose items are not evaluated."""
    del module, args, encode
    return {"object": {"type": "builtins.generator", "state": "<opaque>"}}


def _state_dict(module: Module, args: Arguments, encode: Encode) -> Any:
    destination, prefix, keep = _given(args, 0, None), _given(args, 1, ""), _given(args, 2, False)
    if destination is not None and (destination.__class__ is not dict or module.program.horizon.release < PLAIN_DESTINATION):
        raise Raised("'dict' object has no attribute '_metadata'", code="AttributeError")
    if prefix.__class__ is not str:
        raise Raised(f'can only concatenate str (not "{type(prefix).__name__}") to str', code="TypeError")
    result = {} if destination is None else destination
    for path, tensor in state_items(module):
        result[prefix + path] = tensor if keep else _detached(tensor)
    if destination is not None:
        return encode(result)
    return {"object": {"type": "collections.OrderedDict", "state": encode(result)}}


def _detached(tensor: Tensor | OpaqueTensor) -> Tensor | OpaqueTensor:
    return Tensor(tensor.array) if tensor.__class__ is Tensor else tensor


# ---------------------------------------------------------------------------------------------------------------- loading


def _load_state_dict(module: Module, args: Arguments, encode: Encode) -> Any:
    state, strict = args[0], _given(args, 1, True)
    if state.__class__ is not dict or any(key.__class__ is not str for key in state):
        raise Raised(f"Expected state_dict to be dict-like, got {type(state).__name__}", code="TypeError")
    if _given(args, 2, False):
        raise Unsupported("the reference reader does not support load_state_dict(assign=True)", code="method")
    missing: list[str] = []
    unexpected: list[str] = []
    errors: list[str] = []
    for path, item in submodules(module):
        own = dict(own_state(module, item))
        for name, tensor in own.items():
            if path + name in state:
                _load(module, path + name, tensor, state[path + name], errors)
            else:
                missing.append(path + name)
        unexpected += _unexpected(module, path, set(own), {name for name, _ in children(item)}, state)
    if strict and (missing or unexpected):
        errors.append(f"Missing keys: {missing}. Unexpected keys: {unexpected}.")
    if errors:
        raise Raised(f"Error(s) in loading state_dict for RecursiveScriptModule: {' '.join(errors)[:200]}", code="RuntimeError")
    keys = [list(map(encode, entry)) for entry in (missing, unexpected)]
    name = "IncompatibleKeys" if module.program.horizon.release < OWN_KEYS else "_IncompatibleKeys"
    return {"object": {"type": f"torch.nn.modules.module.{name}", "state": keys}}


def _unexpected(module: Module, path: str, own: set[str], children: set[str], state: dict[str, Any]) -> list[str]:
    """The keys below the path of a module that it does not have."""
    results = []
    for key in state:
        if not key.startswith(path):
            continue
        head, dot, _ = key[len(path) :].partition(".")
        if module.program.horizon.release < WHOLE_NAMES:
            known = head in own or head in children
        else:
            known = head in (children if dot else own)
        if not known:
            results.append(key)
    return results


def _load(module: Module, name: str, into: Tensor | OpaqueTensor, value: Any, errors: list[str]) -> None:
    """Copy a value of a state dict into a tensor of any dtype; record an error if the shapes do not match."""
    if into.__class__ is not Tensor:
        raise Unsupported("the reference reader does not support copying into these tensors", code="value")
    release = module.program.horizon.release
    if value.__class__ is not Tensor:
        if release < TESTED_VALUES:
            raise Raised(f"'{type(value).__name__}' object has no attribute 'shape'", code="AttributeError")
        errors.append(f"{name}: expected a tensor.")
        return
    array = value.array
    if (
        not into.shape and array.ndim == 1 and (array.size == 1 or release < ONE_NUMBER)
    ):  # from releases that stored numbers as 1-dim tensors
        if not array.size:
            raise Raised("index 0 is out of bounds for dimension 0 with size 0", code="IndexError")
        array = array[0:1].reshape(())
    if array.shape != into.shape:
        errors.append(f"{name}: size mismatch.")
        return
    registry.resolve("aten::copy_", release)(Tensor(into.array), Tensor(array))


# -------------------------------------------------------------------------------------------------------------- converting


def _converted(module: Module, dtype: Dtype | None, *, numbers: bool = False) -> None:
    """Replace the memory of parameters and the tensors of buffers whose dtype changes.

    Parameters:
        numbers: whether integer and bool tensors are converted as well.
    """
    if dtype is None:
        return
    to = registry.resolve("aten::to", module.program.horizon.release)
    for _, item in submodules(module):
        for name, tensor in own_state(module, item):
            if tensor.__class__ is not Tensor or not (numbers or tensor.dtype.category >= dtypes.FLOAT32.category):
                continue
            result = to(Tensor(tensor.array), dtype.code).array
            if result is tensor.array:
                continue
            if name in item.info.parameters:
                tensor.array = tensor.root = result
            else:
                fresh = item.__dict__["a_" + name] = Tensor(result)
                fresh.root = result


def _converting(name: str) -> Callable[[Module, Arguments, Encode], Any]:
    dtype = dtypes.DTYPES[name]

    def act(module: Module, args: Arguments, encode: Encode) -> Any:
        del args
        _floating(module, dtype)
        return _itself(module, encode)

    return act


def _floating(module: Module, dtype: Dtype | None) -> None:
    """Convert floating-point tensors; a complex dtype converts floating-point and complex tensors."""
    if dtype is not None and dtype.is_complex:
        raise Unsupported("the reference reader does not convert modules to complex dtypes", code="dtype")
    _converted(module, dtype)


def _cpu(module: Module, args: Arguments, encode: Encode) -> Any:
    del args
    return _itself(module, encode)


def _to(module: Module, args: Arguments, encode: Encode) -> Any:
    dtype: Dtype | None = None
    for position, value in enumerate(args):
        kind = value.__class__
        if kind is Tensor and not position:
            dtype = value.dtype
        elif kind is Dtype and position < 2 and dtype is None:
            dtype = value
        elif (value is None and position < 2) or ((kind is str or kind is Device) and not position):
            if value is not None and str(value) not in {"cpu", "cpu:0"}:
                raise Raised(f"this machine has no device {str(value)[:40]}", code="RuntimeError")
        elif kind is not bool or not position:
            raise Raised("to() received an invalid combination of arguments", code="TypeError")
    if dtype is not None and not (
        dtype.is_floating_point or (dtype.is_complex and module.program.horizon.release >= COMPLEX_MODULES)
    ):
        raise Raised(f"nn.Module.to only accepts floating point dtypes, but got desired dtype={dtype}", code="TypeError")
    _floating(module, dtype)
    return _itself(module, encode)


def _type(module: Module, args: Arguments, encode: Encode) -> Any:
    (wanted,) = args
    if wanted.__class__ is str:
        words = {f"torch.{row.word}Tensor": row.name for row in DTYPES.values() if row.word}
        wanted = dtypes.named(words.get(wanted, ""))
    if wanted.__class__ is not Dtype:
        raise Raised("invalid type", code="ValueError")
    if any(tensor.__class__ is Tensor and tensor.requires_grad for _, tensor in state_items(module)) and not (
        wanted.is_floating_point or wanted.is_complex
    ):
        raise Unsupported("the reference reader does not convert parameters to integers", code="dtype")
    _converted(module, wanted, numbers=True)
    return _itself(module, encode)


# --------------------------------------------------------------------------------------------------------------- showing


def _nothing(module: Module, args: Arguments, encode: Encode) -> Any:
    del module, args, encode


def _true(module: Module, args: Arguments, encode: Encode) -> Any:
    del module, args, encode
    return True


def _get_name(module: Module, args: Arguments, encode: Encode) -> Any:
    del module, args, encode
    return "RecursiveScriptModule"


def _extra_repr(module: Module, args: Arguments, encode: Encode) -> Any:
    del args, encode
    return f"original_name={_original_name(module.object)}"


def _repr(module: Module, args: Arguments, encode: Encode) -> Any:
    del args, encode
    return _shown(module, module.object)


def _shown(module: Module, item: ScriptObject) -> str:
    inside = [f"({name}): {_shown(module, child)}".replace("\n", "\n  ") for name, child in children(item)]
    extra = f"original_name={_original_name(item)}"
    return f"RecursiveScriptModule({extra})" if not inside else "\n  ".join(["RecursiveScriptModule(", extra, *inside]) + "\n)"


METHODS: Final[dict[str, PythonMethod]] = {
    "train": PythonMethod(_train, 1),
    "eval": PythonMethod(_eval, 0),
    "parameters": PythonMethod(_generator, 1),
    "buffers": PythonMethod(_generator, 1),
    "children": PythonMethod(_generator, 0),
    "named_children": PythonMethod(_generator, 0),
    "modules": PythonMethod(_generator, 0, ("2.11.0", 1)),
    "named_modules": PythonMethod(_generator, 2, ("1.9.0", 3)),
    "named_parameters": PythonMethod(_generator, 2, ("2.0.0", 3)),
    "named_buffers": PythonMethod(_generator, 2, ("2.0.0", 3)),
    "state_dict": PythonMethod(_state_dict, 3),
    "load_state_dict": PythonMethod(_load_state_dict, 2, ("2.1.0", 3), least=1),
    "zero_grad": PythonMethod(_nothing, 0, ("1.7.0", 1)),
    "half": PythonMethod(_converting("float16"), 0),
    "float": PythonMethod(_converting("float32"), 0),
    "double": PythonMethod(_converting("float64"), 0),
    "cpu": PythonMethod(_cpu, 0),
    "to": PythonMethod(_to, 5),
    "type": PythonMethod(_type, 1, least=1),
    "extra_repr": PythonMethod(_extra_repr, 0),
    "_get_name": PythonMethod(_get_name, 0),
    "__bool__": PythonMethod(_true, 0),
    "__repr__": PythonMethod(_repr, 0),
    "__str__": PythonMethod(_repr, 0),
}
"""Methods with side effects, by name."""
SHOWING: Final = frozenset({"extra_repr", "_get_name", "__repr__", "__str__"})
"""The methods among them that return a string."""
_FIRST: Final = {
    "1.0.0": "add_module apply cuda define register_backward_hook register_buffer register_forward_hook register_forward_pre_hook "
    "register_parameter share_memory",
    "1.1.0": "code get_debug_state graph graph_for save save_to_buffer",
    "1.2.0": "requires_grad_",
    "1.4.0": "forward_magic_method original_name",
    "1.5.0": "bfloat16 inlined_graph",
    "1.6.0": "code_with_constants",
    "1.8.0": "register_full_backward_hook xpu",
    "1.9.0": "get_buffer get_parameter get_submodule to_empty",
    "1.10.0": "get_extra_state set_extra_state",
    "1.11.0": "register_module",
    "1.12.0": "ipu register_load_state_dict_post_hook",
    "2.0.0": "register_full_backward_pre_hook register_state_dict_pre_hook",
    "2.1.0": "compile",
    "2.5.0": "mtia register_load_state_dict_pre_hook register_state_dict_post_hook set_submodule",
}
OTHERS: Final[dict[str, Release]] = {name: Release(since) for since, names in _FIRST.items() for name in names.split()}
"""The first release whose loaded modules have each name; these methods raise for every value that a recorded call can contain."""
UNKNOWN: Final = frozenset({"define", "get_debug_state", "graph_for", "save", "save_to_buffer"})
"""The methods among them that return a value, or change the module."""
