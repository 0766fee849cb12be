"""The roles of inputs and outputs of the outermost graph: the user's, or parameters, buffers and constants."""

from __future__ import annotations

from typing import Any, NamedTuple

from torch_compat.errors import Unsupported
from torch_compat.formats._export import union
from torch_compat.pickles import cut
from torch_compat.runtime.exported.plain import number, only
from torch_compat.runtime.values import text_in

__all__ = ["PLAIN", "SYMBOLIC", "Input", "Output", "argument_name", "defined", "of_first_schema", "read_input", "read_output"]

SYMBOLIC = frozenset({"as_sym_int", "as_sym_bool", "as_sym_float"})
PLAIN = {"as_int": int, "as_bool": bool, "as_string": str}


class Input(NamedTuple):
    """The role of an input of the outermost graph.

    Attributes:
        kind: ``user_input``, ``constant_input``, ``parameter``, ``buffer``, ``tensor_constant``, ``custom_obj`` or ``token``.
        target: the parameter, buffer or constant; the value of a constant input.
        persistent: of a buffer.
    """

    kind: str
    target: Any
    persistent: bool = True


class Output(NamedTuple):
    """The role of an output of the outermost graph: ``user_output``, or the kind of mutation (``buffer_mutation`` ...) and its target."""

    kind: str
    target: str | None = None


def defined(kind: str, value: Any) -> str | None:
    """The name that an argument defines as an input or result; None if it defines none."""
    if kind in {"as_tensor", "as_custom_obj"}:
        result: str = only(value["name"], str)
        return result
    if kind in SYMBOLIC:
        tag, name = union(value)
        return only(name, str) if tag == "as_name" else None
    return None


def argument_name(spec: Any) -> str | None:
    """The name that an input specification states for its argument."""
    kind, value = union(spec)
    name = value.get("name") if kind == "constant_input" else None
    return None if name is None or name == "" else only(name, str)


def read_input(kind: str, value: Any) -> Input:
    """Read an input specification.

    Raises:
        ValueError, LookupError: it is none.
        Unsupported: its kind is unknown.
    """
    if kind == "user_input":
        tag, _ = union(value["arg"])
        return Input(kind, None if tag in {"as_tensor", "as_custom_obj", *SYMBOLIC} else _constant(*union(value["arg"])))
    if kind == "constant_input":
        return Input(kind, _constant(*union(value["value"])))
    if kind == "buffer":
        return Input(kind, only(value["buffer_name"], str), value.get("persistent") is not False)
    field_ = {"parameter": "parameter_name", "tensor_constant": "tensor_constant_name", "custom_obj": "custom_obj_name"}.get(kind)
    if field_ is None:
        raise Unsupported(f"the reference reader does not support the input kind {cut(kind)!r}", code="argument")
    return Input(kind, only(value[field_], str))


def _constant(kind: str, value: Any) -> Any:
    if kind == "as_none":
        return None
    if kind == "as_float":
        return number(value)
    if kind == "as_int" and value.__class__ is bool:
        return value  # as 2.4 writes truth values
    if kind not in PLAIN:
        raise Unsupported(f"the reference reader does not support the constant input kind {cut(kind)!r}", code="argument")
    result = only(value, PLAIN[kind])
    return text_in(result) if kind == "as_string" else result


def read_output(kind: str, value: Any) -> Output:
    """Read an output specification; raises like :func:`read_input`."""
    if kind in {"user_output", "loss_output"}:
        return Output("user_output")
    field_ = {
        "buffer_mutation": "buffer_name", "parameter_mutation": "parameter_name", "user_input_mutation": "user_input_name",
    }.get(kind)  # fmt: skip
    if field_ is None:
        raise Unsupported(f"the reference reader does not support the output kind {cut(kind)!r}", code="argument")
    return Output(kind, only(value[field_], str))


def of_first_schema(
    signature: dict[str, Any], arguments: list[tuple[str, Any]], results: list[Any]
) -> tuple[tuple[Input, ...], tuple[Output, ...]]:
    """The inputs and outputs of a program of schema 1."""
    parameters, buffers = only(signature["inputs_to_parameters"], dict), only(signature["inputs_to_buffers"], dict)
    inputs = []
    for kind, value in arguments:
        name = defined(kind, value)
        if name in parameters:
            inputs.append(Input("parameter", only(parameters[name], str)))
        elif name in buffers:
            inputs.append(Input("buffer", only(buffers[name], str)))
        else:
            inputs.append(Input("user_input", None if name is not None else _constant(kind, value)))
    mutated = only(signature.get("buffers_to_mutate") or {}, dict)
    outputs: list[Output] = []
    for result in results:
        kind, value = union(result)
        name = defined(kind, value)
        # a result that is also a user output appears twice among the results: mutations come first
        changes = mutated.get(name) if len(outputs) < len(mutated) else None
        outputs.append(Output("user_output") if changes is None else Output("buffer_mutation", only(changes, str)))
    return tuple(inputs), tuple(outputs)
