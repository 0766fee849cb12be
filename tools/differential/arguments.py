"""Calls that hypothesis generates for the schemas of a real release, in the form that :class:`tools.differential.calls.Release` takes.

Operators with interdependent arguments (a convolution's weight and its input) have their own strategies in :mod:`structured`.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import strategies as st

from tools.differential.calls import tensor_body
from torch_compat.operators.call_signature import bare
from torch_compat.proving.arguments import Unwritable, gentle, make_call, prepared
from torch_compat.proving.values import COMPLEX, EVERY, FLOATS, INTS, KINDS, Maker
from torch_compat.runtime import dtypes
from torch_compat.testing.strategies import Drawn

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["COMPLEX", "EVERY", "FLOATS", "INTS", "KINDS", "Maker", "Unwritable", "calls", "gentle", "prepared", "shown"]


def calls(
    schema: dict[str, Any], spec: Callable[[Maker, dict[str, Any]], dict[str, Any]] | None
) -> st.SearchStrategy[dict[str, Any]]:
    """Calls of an overload.

    Parameters:
        schema: as returned by :func:`prepared`.
        spec: provides interdependent arguments.

    Raises:
        Unwritable: there is no strategy for one of its arguments; raised for the first example.
    """
    name = schema["name"].split("::")[1]

    @st.composite
    def made(draw: Any) -> dict[str, Any]:
        make = Maker(Drawn(draw), bare(name), plain=gentle(name), graph=schema["graph"], body=tensor_body)
        return make_call(make, schema, spec)

    return made()


def shown(request: dict[str, Any]) -> str:
    """A call as one line of text."""

    def one(value: Any) -> str:
        if isinstance(value, list):
            return f"[{', '.join(map(one, value))}]"
        if isinstance(value, dict):
            ((kind, inner),) = value.items()
            if kind == "tensor":
                flat = np.frombuffer(base64.b64decode(inner["bytes"]), dtypes.DTYPES[inner["dtype"]].array)
                size = flat.itemsize
                array = np.ndarray(
                    inner["shape"], flat.dtype, flat, inner["offset"] * size, [step * size for step in inner["strides"]]
                )
                strides = "" if array.flags.c_contiguous else f", strides={inner['strides']}"
                return f"tensor({array.tolist()}, {inner['dtype']}, shape={inner['shape']}{strides}, storage={inner['storage']})"
            if kind in {"dict", "tuple"}:
                return f"{kind}({one(inner)})"
            return str(inner)
        return repr(value)

    given = [one(value) for value in request["args"]] + [f"{name}={one(value)}" for name, value in request["keywords"].items()]
    return f"{request['name']}.{request['overload']}({', '.join(given)})" + (" [malformed]" if request.get("malformed") else "")
