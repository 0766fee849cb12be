"""Convert values of the runtime to the neutral form (:mod:`torch_compat.values.form`) and back, and run a program for an observation.

The worker inside real releases produces the same form, so results are comparable.
"""

from __future__ import annotations

import base64
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat import arrays
from torch_compat.errors import CorpusError, HarnessError, Raised, Refused, Unsupported
from torch_compat.releases.release import Release
from torch_compat.runtime import dtypes
from torch_compat.runtime.dtypes import Dtype
from torch_compat.runtime.horizons import horizon as named_horizon
from torch_compat.runtime.load import load
from torch_compat.runtime.module import Module
from torch_compat.runtime.python_methods import call_python, state_shown
from torch_compat.runtime.registry import grad
from torch_compat.runtime.slips import DiesCalled, DiesLoading
from torch_compat.runtime.tensor import OpaqueTensor, Tensor, offset_of, owner, strides_of
from torch_compat.runtime.values import (
    DEQUE,
    Budget,
    CustomObject,
    Device,
    DictOfClass,
    EnumMember,
    ListOfClass,
    NamedTupleValue,
    ScriptObject,
)
from torch_compat.values.form import DEEPEST, LARGEST, number, unwrapped

if TYPE_CHECKING:
    from pathlib import Path

    from torch_compat.archive import Archive
    from torch_compat.releases.behavior import Behavior
    from torch_compat.runtime.exported.program import ExportedModule
    from torch_compat.runtime.horizons import Horizon

MOST_SHOWN = 1 << 28  # maximum size of an encoded tensor in bytes
COO = "torch.sparse_coo"
COMPLEX32, COMPLEX_HALVES = dtypes.DTYPES["complex32"], Release("1.12.0")  # the first release that shows storages of this dtype
LITE_INTERPRETER = Release("1.6.0")  # the first release with a Python binding for it

__all__ = ["Decoder", "Encoder", "death", "module_state", "perform"]


class Encoder:
    """Encodes related values and records which storages they share.

    Parameters:
        enumerations: whether enum members are encoded. Releases refuse to convert them if Python has not imported their class.
        complex_halves: whether complex32 tensors are encoded. Up to 1.11 ``Tensor.storage()`` raises for them.
    """

    def __init__(
        self, *, named_tuples: str = "torch._jit_internal", enumerations: bool = True, complex_halves: bool = True
    ) -> None:
        self.storages: dict[int, int] = {}
        self.named_tuples = named_tuples
        self._complex_halves = complex_halves
        self.enumerations = enumerations
        self._kept: list[Any] = []
        self._budget = Budget()

    def encode(self, value: Any, depth: int = 0) -> Any:
        """Convert a value to the neutral form.

        Raises:
            Unsupported: the value has no neutral form.
            Raised: the value is too large or nested too deeply.
        """
        kind = value.__class__
        if value is None or kind is bool or kind is str or kind is int:
            return value
        if kind is float:
            return {"float": number(value)}
        if kind is complex:
            return {"complex": [number(value.real), number(value.imag)]}
        if kind is Tensor:
            return self.tensor(value)
        below = depth + 1
        if kind in {list, tuple, dict}:
            self._budget.take(len(value))
        if below > DEEPEST:
            raise Raised(f"the program returns values that are nested too deeply: more than {DEEPEST} levels", code="too-deep")
        if kind is list:
            return [self.encode(item, below) for item in value]
        if kind is tuple:
            return {"tuple": [self.encode(item, below) for item in value]}
        if kind is dict:
            return {"dict": [[self.encode(k, below), self.encode(v, below)] for k, v in value.items()]}
        if kind is Dtype:
            return {"dtype": value.name}
        if kind is Device:
            return {"device": str(value)}
        if kind is DictOfClass:
            return {"object": {"type": value.type_name, "state": self.encode(dict(value), depth)}}
        if kind is ListOfClass:
            items = self.encode(list(value), depth)
            state = [{"tuple": []}, None, items, None] if value.type_name == DEQUE else items  # a deque as it is pickled
            return {"object": {"type": value.type_name, "state": state}}
        if isinstance(value, NamedTupleValue):
            name = f"{value.module or self.named_tuples}.{value.qualified_name.rpartition('.')[2]}"
            return {"object": {"type": name, "state": [self.encode(item, below) for item in value]}}
        if kind is EnumMember:
            if not self.enumerations:
                raise Raised(
                    f"Unknown reference to ScriptClass {value.qualified_name}. (Did you forget to import it?)",
                    code="RuntimeError",
                )
            return {"object": {"type": value.qualified_name, "state": value.a_name}}
        if isinstance(value, ScriptObject):
            state = {"dict": [[name[2:], self.encode(item, below)] for name, item in sorted(value.__dict__.items())]}
            return {"object": {"type": value.qualified_name, "state": state}}
        if kind is OpaqueTensor:
            return self._opaque(value)
        named = f"class {value.name}" if isinstance(value, CustomObject) else kind.__name__
        raise Unsupported(f"the reference reader cannot show a value of {named}", code="value")

    def tensor(self, value: Tensor) -> dict[str, Any]:
        """Convert a tensor to the neutral form."""
        needs = value.requires_grad or grad.reaches(value)
        return self._strided(value.array, value.dtype, requires_grad=needs, memory=value.mirrors)

    def _strided(
        self, array: np.ndarray[Any, Any], dtype: Dtype, *, requires_grad: bool, memory: np.ndarray[Any, Any] | None = None
    ) -> dict[str, Any]:
        if array.nbytes > MOST_SHOWN:
            raise Raised(f"the program returns a tensor of {array.nbytes} bytes; the limit is {MOST_SHOWN}", code="too-large")
        memory = array if memory is None else memory
        body: dict[str, Any] = {
            "dtype": dtype.name,
            "shape": list(array.shape),
            "strides": list(strides_of(memory)),
            "bytes": base64.b64encode(array.tobytes()).decode("ascii"),
        }
        base = owner(memory)
        if base.size:
            self._kept.append(base)
            body["storage"] = self.storages.setdefault(id(base), len(self.storages))
            body["offset"] = offset_of(memory)
        if requires_grad:
            body["requires_grad"] = True
        return {"tensor": body}

    def _opaque(self, value: OpaqueTensor) -> dict[str, Any]:
        """Convert a quantized tensor (by its parts), or a tensor with a dtype that NumPy lacks (by its bytes)."""
        parts = value.parts
        if value.dtype is COMPLEX32 and not self._complex_halves:
            return {"object": {"type": "torch.Tensor", "state": "<raises builtins.RuntimeError when looked at>"}}
        if "bytes" in parts:
            return self._strided(parts["bytes"], value.dtype, requires_grad=value.requires_grad)
        if value.layout == COO and "coalesced" in parts:  # created by the program
            shown: list[Any] = [[name, self.tensor(Tensor(parts[name]))] for name in ("indices", "values")]
            shown += [["dtype", f"torch.{value.dtype.name}"], ["shape", list(value.shape)]]
            return {"object": {"type": value.layout, "state": {"dict": shown}}}
        if "elements" not in parts:
            raise Unsupported(f"the reference reader cannot print a value of dtype torch.{value.dtype.name}", code="value")
        state: list[Any] = [
            ["int_repr", self.tensor(Tensor(parts["elements"].copy(order="K")))],
            ["qscheme", f"torch.{parts['scheme']}"],
        ]
        if "axis" in parts:
            state += [[name, self.tensor(Tensor(parts[name].array))] for name in ("scales", "zero_points")]
            state.append(["axis", parts["axis"]])
        else:
            state += [["scale", self.encode(parts["scale"])], ["zero_point", parts["zero_point"]]]
        state += [["dtype", f"torch.{value.dtype.name}"], ["shape", list(value.shape)]]
        return {"object": {"type": value.layout, "state": {"dict": state}}}


NO_SUCH_DTYPE = "__main__.NoSuchDtype"
"""The class of the error that a release's worker raises if it cannot create the inputs of a call."""


class Decoder:
    """Decodes values that were encoded together and restores the storages that they share.

    Parameters:
        release: if given, tensors with a dtype that this release lacks are refused, as its worker refuses them.
    """

    def __init__(self, release: Release | None = None) -> None:
        self._release = release
        self.storages: dict[tuple[int, str], np.ndarray[Any, Any]] = {}
        self.extents: dict[tuple[int, str], int] = {}

    def decode(self, value: Any) -> Any:
        """Convert a neutral form to a value of the runtime."""
        self._measure(value)
        return self._decode(value)

    def _measure(self, value: Any) -> None:
        """Determine the length of each storage from all its views, before the first view is created."""
        if isinstance(value, list):
            for item in value:
                self._measure(item)
        elif isinstance(value, dict):
            body = value.get("tensor")
            if isinstance(body, dict) and "storage" in body:
                key = body["storage"], body["dtype"]
                self.extents[key] = max(self.extents.get(key, 0), _extent(body))
            elif "tuple" in value or "dict" in value:
                self._measure(value.get("tuple") or value.get("dict"))

    def _decode(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._decode(item) for item in value]
        if not isinstance(value, dict):
            return value
        kind, body = unwrapped(value)
        if kind == "float":
            return float(body)
        if kind == "complex":
            return complex(float(body[0]), float(body[1]))
        if kind == "tuple":
            return tuple(self._decode(item) for item in body)
        if kind == "dict":
            return {self._decode(k): self._decode(v) for k, v in body}
        if kind == "tensor":
            return self._tensor(body)
        if kind == "dtype":
            return dtypes.named(body)
        if kind == "device":
            return Device(body)
        raise Unsupported(f"cannot pass a value of kind {kind!r} to a program", code="value")

    def _tensor(self, body: dict[str, Any]) -> Tensor:
        tensor = dtypes.named(body["dtype"])
        if tensor is None:
            raise Unsupported(f"there is no dtype {body['dtype']}", code="dtype")
        if self._release is not None and not dtypes.is_known(body["dtype"], self._release):
            raise Raised(f"this release has no dtype torch.{body['dtype']}", code=NO_SUCH_DTYPE)
        dtype = tensor.array
        shape = _shape(body)
        if "data" in body:
            numbers = [_number(item) for item in body["data"]]
            if len(numbers) != math.prod(shape):
                raise _bad(f"a tensor of shape {list(shape)} has {len(numbers)} elements")
            return Tensor(np.array(numbers, dtype).reshape(shape))
        raw = arrays.elements(base64.b64decode(body["bytes"]), dtype)
        if raw.size != math.prod(shape):
            raise _bad(f"a tensor of shape {list(shape)} of {body['dtype']} has bytes for {raw.size} elements")
        key = body.get("storage"), body["dtype"]
        base = self.storages.get(key) if key[0] is not None else None  # type: ignore[arg-type]
        if base is None:
            base = np.zeros(self.extents.get(key, _extent(body)), dtype)  # type: ignore[arg-type]
            if key[0] is not None:
                self.storages[key] = base  # type: ignore[index]
        array = arrays.view(base, dtype, shape, body["strides"], body.get("offset", 0), where="a tensor in the arguments")
        if array.size:
            array[...] = raw.reshape(shape)
        return Tensor(array, bool(body.get("requires_grad")))


def _number(item: Any) -> Any:
    if isinstance(item, list):
        return complex(float(item[0]), float(item[1]))
    return float(item) if isinstance(item, str) else item


def _bad(text: str) -> CorpusError:
    return CorpusError(text, code="bad-tensor")


def _shape(body: dict[str, Any]) -> tuple[int, ...]:
    shape = body["shape"]
    if shape.__class__ is not list or any(size.__class__ is not int or size < 0 for size in shape):
        raise _bad(f"a tensor has shape {str(shape)[:80]}")
    if math.prod(shape) > LARGEST:
        raise _bad(f"a tensor has shape {str(shape)[:80]}, more than {LARGEST} elements")
    return tuple(shape)


def _extent(body: dict[str, Any]) -> int:
    """The minimum number of elements in the storage of a tensor.

    Raises:
        CorpusError: the sizes and strides do not describe a tensor, or the tensor is too large.
    """
    shape, strides, offset = _shape(body), body["strides"], body.get("offset", 0)
    if (
        strides.__class__ is not list
        or len(strides) != len(shape)
        or any(stride.__class__ is not int for stride in [*strides, offset])
    ):
        raise _bad(f"a tensor of shape {list(shape)} has strides {str(strides)[:80]} and offset {str(offset)[:40]}")
    if 0 in shape:
        return 0
    first, end = arrays.extent(shape, strides, offset)
    if first < 0 or end > LARGEST:
        raise _bad(f"a tensor of shape {list(shape)} with strides {str(strides)[:80]} extends from {first} to {end}")
    return end


def module_state(encoder: Encoder, module: Module | ExportedModule) -> dict[str, Any]:
    """``{"dict": [[key, {"tuple": [kind, tensor]}], ...]}`` of the parameters and buffers."""
    return state_shown(module.named_tensors(), encoder.encode)


def _error(stage: str, error: HarnessError) -> dict[str, Any]:
    return {"stage": stage, "type": error.code, "message": error.message}


def death(stage: str, error: DiesLoading | DiesCalled) -> dict[str, Any]:
    """The result that a crash of the horizon's release leaves, in the form of a reader's reply."""
    return {"crashed": {"stage": stage, "signal": error.slip.signal, "said": "", "predicted": error.message}}


def _death(stage: str, error: DiesLoading | DiesCalled, met: dict[str, Behavior] | None) -> dict[str, Any]:
    if met is not None:
        met[error.slip.id] = error.slip
    return death(stage, error)


LITE_METHODS = frozenset({"forward", "run_method", "find_method"})
"""The methods of a lite-interpreter module that Python can access by name."""


def _reached(family: str, method: str, args: tuple[Any, ...]) -> None:
    """Refuse a call that does not reach the program through the Python binding of a release.

    Raises:
        Raised: the binding does not expose the method, has a different method of this name, or cannot infer the types of the arguments.
    """
    if family == "mobile":
        if method not in LITE_METHODS:
            raise Raised(f"'LiteScriptModule' object has no attribute '{method}'", code="AttributeError")
        for arg in args:
            _inferred(arg)


def _inferred(value: Any) -> Any:
    """The type that the lite interpreter infers for an argument from its value alone.

    Raises:
        Raised: a container is empty, so its type is unknown, or its items have several types.
    """
    kind = value.__class__
    if kind is tuple:
        return (tuple, *map(_inferred, value))
    if kind is dict:
        if not value:
            raise Raised("Dictionary inputs must have entries", code="RuntimeError")
        return (dict, *{(_inferred(key), _inferred(item)) for key, item in value.items()})
    if kind is list:
        types = {_inferred(item) for item in value}
        if len(types) != 1:
            raise Raised(f"Tracer cannot infer type of {'[]' if not value else 'a list of several types'}", code="RuntimeError")
        return (list, *types)
    return kind


def perform(
    path: Path | Archive,
    family: str,
    calls: list[dict[str, Any]],
    horizon: str | Horizon,
    met: dict[str, Behavior] | None = None,
) -> dict[str, Any]:
    """Run a program for goldens and observations: each call twice, with fresh inputs.

    Parameters:
        family: ``torchscript``, ``mobile`` or ``export``; selects the loader of the release.
        met: receives the ids of the release's slips that the program met.

    Raises:
        Unsupported: the reference reader does not support something; there are no partial results.
    """
    known = named_horizon(horizon) if isinstance(horizon, str) else horizon
    if family == "mobile" and known.release < LITE_INTERPRETER:
        missing = f"{known.name} has no lite interpreter that Python can reach"
        return {"error": _error("load", Refused(missing, code="no-loader"))}
    try:
        module = load(path, known)
    except Unsupported:
        raise
    except (DiesLoading, DiesCalled) as error:
        return _death("load", error, met)
    except (Refused, Raised) as error:
        return {"error": _error("load", error)}
    if met is not None:
        met.update(module.program.slips.met)  # slips that the source met during compilation
        module.program.slips.met = met
    names = "torch.jit" if module.program.horizon.release < Release("1.7.0") else "torch._jit_internal"
    names_state = family != "mobile"  # modules of the lite interpreter do not expose the names of parameters and buffers
    halves = known.release >= COMPLEX_HALVES
    state = module_state(Encoder(complex_halves=halves), module) if names_state else None
    result: dict[str, Any] = {"state": state, "calls": []}
    for call in calls:
        messages: dict[str, Any] = {"method": call["method"]}
        for turn in ("first", "second"):
            try:
                args = Decoder(known.release).decode({"tuple": call["args"]})
                _reached(family, call["method"], args)
                together = Encoder(named_tuples=names, enumerations=False, complex_halves=halves)
                if family == "torchscript" and isinstance(module, Module):
                    shown = call_python(module, call["method"], args, together.encode)
                else:
                    shown = together.encode(module.run(call["method"], args))
                messages[turn] = {"value": shown, "inputs": [together.encode(arg) for arg in args]}
            except DiesCalled as error:
                return _death("call", error, met)
            except Raised as error:
                messages[turn] = {"error": _error("call", error)}
        result["calls"].append(messages)
    result["state_after"] = module_state(Encoder(complex_halves=halves), module) if names_state else None
    return result
