"""Tensors for tables of expected values, and how tables write results down."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.errors import Raised
from torch_compat.releases.release import Release
from torch_compat.runtime import dtypes
from torch_compat.runtime.registry import NEWEST, resolve
from torch_compat.runtime.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

nan, inf = float("nan"), float("inf")


def t(values: Any, dtype: str | None = None) -> Tensor:
    """As ``torch.tensor``."""
    array = np.asarray(values)
    if dtype is not None:
        return Tensor(array.astype(dtypes.DTYPES[dtype].array))
    return Tensor(array.astype(np.float32) if array.dtype == np.float64 else array)


def shown(value: Any) -> str:
    """A result as ``dtype[shape][values]``; float32 with as many digits as they need."""
    if isinstance(value, Tensor):
        if value.array.dtype.kind in "fV":
            numbers = [float(f"{float(item):.6g}") for item in value.array.reshape(-1)]
            return f"{value.dtype.name}{list(value.shape)}{numbers}"
        return f"{value.dtype.name}{list(value.shape)}{value.array.reshape(-1).tolist()}"
    if isinstance(value, (tuple, list)):
        return "(" + ", ".join(shown(item) for item in value) + ")"
    return repr(value)


def called(name: str, args: tuple[Any, ...], keywords: dict[str, Any] | None = None, at: str | None = None) -> str:
    """What an operator gives at a horizon, written down; ``raises`` where it does."""
    with np.errstate(all="ignore"):
        try:
            return shown(resolve(f"aten::{name}", NEWEST if at is None else Release(at))(*args, **(keywords or {})))
        except Raised:
            return "raises"


def digests(calls: Mapping[str, Callable[[], tuple[Any, ...]]], at: str, expected: list[str]) -> list[str]:
    """The beginning of the SHA-256 of each result at a horizon; a dash where one is expected.

    Parameters:
        calls: arguments by the name of the operator, which may be followed by words.
    """
    results = []
    for (name, given), digest in zip(calls.items(), expected, strict=True):
        if digest == "-":
            results.append("-")
            continue
        arguments = [Tensor(item) if isinstance(item, np.ndarray) else item for item in given()]  # as they lie in memory
        result = resolve(f"aten::{name.split()[0]}", Release(at))(*arguments).array
        results.append(hashlib.sha256(np.ascontiguousarray(result).tobytes()).hexdigest()[:8])
    return results
