"""The part of torch that the worker needs to produce, read and run: archives contain lambdas, tensors have one dimension.

The environment variable ``MINIATURE_TORCH`` defines this release and its misbehavior: ``version``, and source texts ``at_import``,
``at_load`` and ``at_call``, which are executed at these points. They see everything that this module imports, and may replace ``value``,
which is the loaded or computed value.
"""

from __future__ import annotations

import array
import ctypes
import json
import os
import pickle
import signal
import sys
import time
import types
import warnings
import zipfile
from typing import Any

__all__ = ["Tensor", "ctypes", "load", "save", "signal", "sys", "time", "warnings"]

BEHAVIOUR = json.loads(os.environ["MINIATURE_TORCH"])

__version__ = BEHAVIOUR["version"]
version = types.SimpleNamespace(git_version="0" * 40)
backends = types.SimpleNamespace()


def set_num_threads(_: int) -> None:
    pass


def get_num_threads() -> int:
    return 1


SEEDS = [1 << 63]  # the last one counts


def manual_seed(seed: int) -> None:
    SEEDS.append(seed)


def initial_seed() -> int:
    return SEEDS[-1]


def is_storage(_: object) -> bool:
    return False


def hook(name: str, value: Any = None) -> Any:
    scope = {**globals(), "value": value}
    exec(BEHAVIOUR.get(name, ""), scope)
    return scope["value"]


class dtype:  # noqa: N801 - its name in torch
    def __init__(self, name: str, code: str) -> None:
        self.name, self.code = name, code

    def __repr__(self) -> str:
        return f"torch.{self.name}"


class device:  # noqa: N801 - its name in torch
    pass


float32, int64 = dtype("float32", "f"), dtype("int64", "q")


class Tensor:
    layout = "torch.strided"
    requires_grad = False

    def __init__(self, items: list[float], kind: str = "float32") -> None:
        self.dtype = globals()[kind]
        self.items = array.array(self.dtype.code, items)
        self.shape = (len(items),)

    def __reduce__(self) -> tuple[Any, ...]:
        return Tensor, (list(self.items), self.dtype.name)

    def itself(self) -> Tensor:
        return self

    detach = contiguous = storage = itself

    def numel(self) -> int:
        return len(self.items)

    def element_size(self) -> int:
        return self.items.itemsize

    def stride(self) -> tuple[int]:
        return (1,)

    def storage_offset(self) -> int:
        return 0

    def data_ptr(self) -> int:
        return self.items.buffer_info()[0]


class Module:
    pass


class Program(Module):
    """A program of methods that are written as lambdas."""

    def __init__(self, state: dict[str, Tensor] | None = None, **methods: str) -> None:
        self.state, self.methods = state or {}, methods

    def __getattr__(self, name: str) -> Any:
        source = vars(self).get("methods", {}).get(name)
        if source is None:
            raise AttributeError(name)
        return lambda *args: hook("at_call", eval(source, {**globals(), "self": self})(*args))

    def named_parameters(self) -> list[tuple[str, Tensor]]:
        return list(self.state.items())

    def named_buffers(self) -> list[tuple[str, Tensor]]:
        return []


def _write(path: str, records: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in records.items():
            archive.writestr(zipfile.ZipInfo(f"archive/{name}"), data)


def _read(path: str, record: str) -> Any:
    with zipfile.ZipFile(path) as archive:
        return pickle.loads(archive.read(f"archive/{record}"))


def save(value: Any, path: str) -> None:
    _write(path, {"data.pkl": pickle.dumps(value, 2), "version": b"3\n"})


def load(path: str, weights_only: bool = False) -> Any:
    return hook("at_load", _read(path, "data.pkl"))


def _save_program(program: Program, path: str) -> None:
    _write(path, {"constants.pkl": pickle.dumps((program.state, program.methods), 2), "version": b"3\n"})


def _load_program(path: str) -> Any:
    with zipfile.ZipFile(path) as archive:
        if f"archive/{TRACED}" in archive.namelist():
            return Traced()
    state, methods = _read(path, "constants.pkl")
    return hook("at_load", Program(state, **methods))


# What the worker warms up with before it serves. It is no archive of the corpus, so what misbehaves there does not here.

TRACED = "traced.pkl"


def ones(count: int) -> Tensor:
    return Tensor([1.0] * count)


class CompilationUnit:
    """Its one function gives back what it is given."""

    def __init__(self, source: str) -> None:
        compile(source, "<unit>", "exec")

    def once(self, x: Tensor) -> Tensor:
        return x


class Traced:
    """A program that gives back what it is given."""

    def __call__(self, x: Tensor) -> Tensor:
        return x

    def save(self, path: str) -> None:
        _write(path, {TRACED: b""})


def _trace(_: Any, examples: tuple[Tensor, ...]) -> Traced:
    assert all(isinstance(example, Tensor) for example in examples)
    return Traced()


nn = types.SimpleNamespace(Module=Module)
jit = types.SimpleNamespace(save=_save_program, load=_load_program, trace=_trace, CompilationUnit=CompilationUnit)

hook("at_import")
