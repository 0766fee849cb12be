"""A child process taken over by its archive: the gate for views is open in it, and a call of ``attack`` runs any Python code.

Run in place of :mod:`torch_compat.readers.child`. The product has no such switch: this module patches the child in its own process.
"""

from __future__ import annotations

import ctypes
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat import arrays
from torch_compat.readers import child, requests

if TYPE_CHECKING:
    from collections.abc import Sequence


def open_gate(
    memory: Any, dtype: Any, shape: Sequence[int], strides: Sequence[int] | None = None, offset: int = 0, **_: Any
) -> Any:
    """As the gate, without looking."""
    if strides is None:
        strides = arrays.contiguous_strides(shape)
    flat = np.frombuffer(memory, np.uint8) if not isinstance(memory, np.ndarray) else memory.reshape(-1).view(np.uint8)
    if not math.prod(shape):
        return np.zeros(shape, dtype)
    first = np.ndarray(
        (1,), dtype, memoryview((ctypes.c_char * (1 << 40)).from_address(flat.ctypes.data + offset * dtype.itemsize))
    )
    return np.lib.stride_tricks.as_strided(first, shape, [step * dtype.itemsize for step in strides])


class Hostile(child.Child):
    """Does what it is told."""

    def answer(self, request: dict[str, Any], data: memoryview) -> tuple[Any, list[Any]]:
        """Answer, or attack: the code finds ``self``, and its ``reply`` is the answer, its ``parts`` the bytes with it."""
        if request.get("call") != "attack":
            return super().answer(request, data)
        names: dict[str, Any] = {"self": self, "reply": {"value": None}, "parts": []}
        exec(request["args"][0], names)
        return names["reply"], names["parts"]


def answered(request: dict[str, Any], *_: Any) -> Any:
    """The reply to a request that says it itself."""
    return eval(request["reply"])


if __name__ == "__main__":
    vars(requests)["answer"] = answered
    arrays.view = open_gate
    child.Child = Hostile  # type: ignore[misc]
    child.main()
