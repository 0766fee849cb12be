"""Calls of operators: run by a real release and by the reference reader, and compared."""

from __future__ import annotations

import base64
import cmath
import json
import math
import select
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from torch_compat.errors import Raised, Unsupported
from torch_compat.readers.environments import Environments
from torch_compat.readers.torch_release import DETERMINISM
from torch_compat.releases.release import Release as Version
from torch_compat.runtime import dtypes
from torch_compat.runtime.faults import translated
from torch_compat.runtime.limits import LIMITS, meter
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import Tensor
from torch_compat.runtime.values import Device, text_in

WORKER = Path(__file__).with_name("torch_operators.py")
FAULT = "fault"  # start of the reader's message when one of its own operators fails
START, PATIENCE = 300, 20  # seconds; some calls of torch never return, such as count() of an empty text


class Release:
    """A real release that runs calls. If a call kills it, the result says so, and the next call is run by a new process.

    Attributes:
        scripts: what its Python runs, and the arguments.
    """

    scripts: tuple[Path, ...] = (WORKER,)

    def __init__(self, version: str) -> None:
        self.version = version
        self._start()

    def _start(self) -> None:
        environment = Environments().get(self.version)
        assert environment is not None, f"torch-{self.version} is not built"
        self.process = subprocess.Popen(
            [environment.python, *map(str, self.scripts)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env={**environment.environ(DETERMINISM)},
        )  # fmt: skip
        message = json.loads(self._line(START))
        assert message["version"].split("+")[0] == self.version

    def _line(self, patience: int) -> str:
        assert self.process.stdout is not None
        if not select.select([self.process.stdout], [], [], patience)[0]:
            self.process.kill()
            self.process.wait()
            raise EOFError(f"torch did not answer within {patience} s")
        line = self.process.stdout.readline()
        if not line:
            raise EOFError(f"torch died with status {self.process.wait()}")
        return line

    def ask(self, request: dict[str, Any]) -> Any:
        """Run one request and return its result."""
        try:
            self._send(request)
            reply = json.loads(self._line(PATIENCE))
            return self._whose(reply) if "crashed" in reply and self.scripts == (WORKER,) else reply
        except EOFError as end:
            self.close()
            self._start()
            return {"crashed": str(end)}

    def _send(self, request: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()

    def _whose(self, death: dict[str, Any]) -> dict[str, Any]:
        """Attribute a crash to the right call: the call before it may have returned a result and killed the process afterwards."""
        self._send({"ping": True})
        result = death
        while "ping" not in (reply := json.loads(self._line(PATIENCE))):
            result = reply
        return result

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


# --------------------------------------------------------------------------------------------------------------- values


def tensor_body(
    array: np.ndarray[Any, Any], kind: str, storage: int, shape: tuple[int, ...], strides: tuple[int, ...], offset: int
) -> dict[str, Any]:
    return {
        "tensor": {
            "dtype": kind, "bytes": base64.b64encode(array.tobytes()).decode(), "storage": storage,
            "shape": list(shape), "strides": list(strides), "offset": offset,
        }
    }  # fmt: skip


def decode(body: Any, storages: dict[int, np.ndarray[Any, Any]]) -> Any:
    """Decode a value into our representation."""
    if isinstance(body, list):
        return [decode(statement, storages) for statement in body]
    if not isinstance(body, dict):
        return text_in(body) if isinstance(body, str) else body
    ((kind, inner),) = body.items()
    if kind == "float":
        return float(inner)
    if kind == "complex":
        return complex(float(inner[0]), float(inner[1]))
    if kind == "dtype":
        return dtypes.DTYPES[inner].code
    if kind == "device":
        return Device(inner)
    if kind == "dict":
        return {decode(key, storages): decode(value, storages) for key, value in inner}
    if kind == "tuple":
        return tuple(decode(item, storages) for item in inner)
    if inner["storage"] not in storages:
        storages[inner["storage"]] = np.frombuffer(base64.b64decode(inner["bytes"]), dtypes.DTYPES[inner["dtype"]].array).copy()
    base = storages[inner["storage"]]
    size = base.itemsize
    return Tensor(
        np.ndarray(
            tuple(inner["shape"]), base.dtype, base, inner["offset"] * size, tuple(stride * size for stride in inner["strides"])
        )
    )


def call_ours(request: dict[str, Any], version: str) -> dict[str, Any]:
    """The result of the reference reader: ``value`` and ``inputs``, or ``error``, or ``unsupported``."""
    meter.begin(LIMITS)
    storages: dict[int, np.ndarray[Any, Any]] = {}
    args = decode(request["args"], storages)
    keywords = {name: decode(value, storages) for name, value in request["keywords"].items()}
    named = request.get(
        "named", ()
    )  # a graph passes all arguments in order, so keyword-only arguments of the schema are positional here, too
    keywords.update(zip(named, args[len(args) - len(named) :], strict=True))
    try:
        with np.errstate(all="ignore"):
            value = resolve(request["name"], Version(version))(*args[: len(args) - len(named)], **keywords)
    except Raised as error:
        return {"error": error.message}
    except Unsupported as error:
        return {"unsupported": error.message}
    except Exception as error:  # noqa: BLE001 - of whatever kind it is, a program is told
        told = translated(error)
        if isinstance(told, Raised):  # there is not enough memory
            return {"error": told.message}
        return {"unsupported": f"{FAULT}: {type(error).__name__}: {error}"}
    return {"value": value, "inputs": args}


class Near(NamedTuple):
    """The tolerance in addition to a few units in the last place.

    Attributes:
        size: bytes of the smallest floating-point type used in the computation; 0 if there is none.
        scale: the largest number among the inputs.
        zeros: whether the sign of a zero is unspecified even if nothing else is.
    """

    size: int
    scale: float
    zeros: bool = False

    def __bool__(self) -> bool:
        return bool(self.size)


NONE = Near(0, 0.0)


def difference(theirs: Any, ours: Any, where: str = "value", *, loose: Near = NONE) -> str | None:
    """The difference, or None.

    Parameters:
        theirs: a value of torch as JSON.
        ours: the value of the reference reader.
        where: its name in messages.
        loose: whether results depend on the order of summation, so that nearly zero results are compared with a tolerance.
    """
    if isinstance(theirs, dict):
        ((kind, inner),) = theirs.items()
        if kind == "other":
            return f"{where}: a {inner}, which cannot be compared"
        if kind == "tensor":
            return _tensors(inner, ours, where, loose=loose)
        if kind == "tuple":
            if not isinstance(ours, tuple):
                return f"{where}: a tuple, not {type(ours).__name__}"
            return _items(inner, ours, where, loose=loose)
        if kind == "dict":
            if not isinstance(ours, dict):
                return f"{where}: a dict, not {type(ours).__name__}"
            return _items(
                [item for pair in inner for item in pair], [item for pair in ours.items() for item in pair], where, loose=loose
            )
        if kind == "dtype":
            code = dtypes.DTYPES[inner].code
            return None if ours == code else f"{where}: {inner}, not {ours!r}"
        if kind == "device":
            return None if isinstance(ours, Device) and str(ours) == inner else f"{where}: device {inner}, not {ours!r}"
        return _numbers(float(inner) if kind == "float" else complex(float(inner[0]), float(inner[1])), ours, where, loose=loose)
    if isinstance(theirs, list):
        return (
            _items(theirs, ours, where, loose=loose) if isinstance(ours, list) else f"{where}: a list, not {type(ours).__name__}"
        )
    if isinstance(theirs, str):
        return None if text_in(theirs) == ours else f"{where}: {theirs!r}, not {ours!r}"
    return None if type(theirs) is type(ours) and theirs == ours else f"{where}: {theirs!r}, not {ours!r}"


def _items(theirs: list[Any], ours: Any, where: str, *, loose: Near) -> str | None:
    if len(theirs) != len(ours):
        return f"{where}: {len(theirs)} values, not {len(ours)}"
    pairs = enumerate(zip(theirs, ours, strict=True))
    return next((result for at, (a, b) in pairs if (result := difference(a, b, f"{where}[{at}]", loose=loose))), None)


def _numbers(number: complex, ours: Any, where: str, *, loose: Near) -> str | None:
    if type(ours) is not type(number):
        return f"{where}: {number!r}, not {ours!r}"
    near = cmath.isfinite(number) and abs(number - ours) <= max(4 * math.ulp(abs(number)), 1e-15 if loose else 0.0)
    if near and (number or loose or loose.zeros or isinstance(number, complex)):
        return None  # it is unspecified how rounding errors of a complex number are distributed over its parts
    parts = [(number.real, ours.real), (number.imag, ours.imag)]
    zeros = bool(loose) or loose.zeros or isinstance(number, complex)  # whose signs are unspecified
    same = all(
        (a == b and (a != 0 or zeros or math.copysign(1, a) == math.copysign(1, b))) or (math.isnan(a) and math.isnan(b))
        for a, b in parts
    )
    return None if same else f"{where}: {number!r}, not {ours!r}"


def _tensors(body: dict[str, Any], ours: Any, where: str, *, loose: Near) -> str | None:
    if not isinstance(ours, Tensor):
        return f"{where}: a tensor, not {type(ours).__name__}"
    kind = dtypes.DTYPES[body["dtype"]]
    if ours.dtype is not kind:
        return f"{where}: {kind}, not {ours.dtype}"
    if list(ours.shape) != body["shape"]:
        return f"{where}: shape {body['shape']}, not {list(ours.shape)}"
    wanted = np.frombuffer(base64.b64decode(body["bytes"]), kind.array).reshape(body["shape"])
    return _elements(wanted, ours.array, where, loose=loose)


CLOSE = {2: 1e-3, 4: 1e-6, 8: 1e-14}
BITS = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}


def _elements(wanted: np.ndarray[Any, Any], got: np.ndarray[Any, Any], where: str, *, loose: Near) -> str | None:
    if wanted.dtype.kind in "iub":
        return None if np.array_equal(wanted, got) else f"{where}: {wanted.tolist()}, not {got.tolist()}"
    if wanted.dtype.kind == "c":
        size = np.abs(wanted.astype(np.complex128))
        with np.errstate(all="ignore"):
            gap = np.abs(wanted.astype(np.complex128) - got.astype(np.complex128))
            near = gap <= 4 * size * np.finfo(wanted.dtype).eps
            if loose:
                largest = float(np.max(size, initial=0.0, where=np.isfinite(size)))
                near |= gap <= CLOSE[min(loose.size, wanted.dtype.itemsize // 2)] * max(1.0, loose.scale, largest)
        rest = ~near  # it is unspecified how rounding errors of a product or quotient are distributed over the parts
        parts = (("real", wanted.real[rest], got.real[rest]), ("imag", wanted.imag[rest], got.imag[rest]))
        return next((result for name, a, b in parts if (result := _elements(a, b, f"{where}.{name}", loose=loose))), None)
    a, b = wanted.astype(np.float64), got.astype(np.float64)
    with np.errstate(all="ignore"):
        unit = 2.0 ** (np.frexp(np.where(np.isfinite(a), a, 0.0))[1] - 1 - BITS[wanted.dtype.name])  # of the last place
        unit = np.maximum(
            unit, {2: 2.0**-24 if wanted.dtype.name == "float16" else 2.0**-133, 4: 2.0**-149, 8: 0.0}[wanted.dtype.itemsize]
        )
        gap = np.abs(a - b)
        alike = (a == b) & (bool(loose) | loose.zeros | (a != 0) | (np.signbit(a) == np.signbit(b)))
        alike |= (np.isnan(a) & np.isnan(b)) | ((gap <= (2 if wanted.dtype.itemsize == 2 else 4) * unit) & (b != 0) & (a != 0))
        if loose:
            near = 16e-3 if wanted.dtype.name == "bfloat16" else CLOSE[min(loose.size, wanted.dtype.itemsize)]
            alike |= gap <= near * max(1.0, loose.scale, float(np.max(np.abs(a), initial=0.0, where=np.isfinite(a))))
    return None if bool(np.all(alike)) else f"{where}: {a.tolist()}, not {b.tolist()}"
