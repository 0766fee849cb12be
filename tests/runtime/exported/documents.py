"""Exported programs, created here in the format of the releases: JSON and torch.save archives in a zip archive."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from typing import Any

from torch_compat.runtime.load import load

TENSOR = {"dtype": 7, "requires_grad": False, "device": {"type": "cpu"}, "layout": 7, "storage_offset": {"as_int": 0}}
LEAF: dict[str, Any] = {"type": None, "context": None, "children_spec": []}


def tensor(name: str) -> dict[str, Any]:
    """An argument that is a tensor."""
    return {"as_tensor": {"name": name}}


def node(target: str, output: Any, *args: Any, **words: Any) -> dict[str, Any]:
    """A call. Texts among the arguments are names of tensors; anything else is an argument as it stands."""
    given = [("", arg) for arg in args] + list(words.items())
    inputs = [
        {"name": name, "arg": tensor(item) if isinstance(item, str) else item, "kind": 2 if name else 1} for name, item in given
    ]
    outputs = [tensor(item) if isinstance(item, str) else item for item in (output if isinstance(output, list) else [output])]
    return {"target": target, "inputs": inputs, "outputs": outputs, "metadata": {}}


def sizes(*stated: int | str) -> dict[str, Any]:
    """What a graph states of a float32 tensor: sizes are numbers or expressions."""
    listed = [{"as_int": item} if isinstance(item, int) else {"as_expr": {"expr_str": item}} for item in stated]
    return {**TENSOR, "sizes": listed, "strides": [{"as_int": 1}] * len(listed)}


def tree(type_: str, context: Any, *children: Any) -> dict[str, Any]:
    """A container of a tree."""
    return {"type": type_, "context": json.dumps(context), "children_spec": list(children)}


def arguments(*positional: Any, **words: Any) -> str:
    """The tree of arguments and keyword arguments."""
    pair = tree("builtins.tuple", None, *positional), tree("builtins.dict", list(words), *words.values())
    return json.dumps([1, tree("builtins.tuple", None, *pair)])


def document(
    inputs: list[Any],
    nodes: list[dict[str, Any]],
    outputs: list[Any],
    *,
    values: dict[str, Any] | None = None,
    in_spec: str | None = None,
    out_spec: str | None = None,
    input_specs: list[Any] | None = None,
    output_specs: list[Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """The JSON of a program whose inputs are all the user's unless ``input_specs`` say otherwise."""
    results = [tensor(output) if isinstance(output, str) else output for output in outputs]
    specs = input_specs or [{"user_input": {"arg": tensor(input_)}} for input_ in inputs]
    users = sum("user_input" in spec or "constant_input" in spec for spec in specs)
    leaves = [LEAF] * len(results)
    call = {
        "inputs": [],
        "outputs": [],
        "in_spec": in_spec or arguments(*[LEAF] * users),
        "out_spec": out_spec or json.dumps([1, LEAF if len(results) == 1 else tree("builtins.tuple", None, *leaves)]),
        "forward_arg_names": [f"x{place}" for place in range(users)] if in_spec is None else None,
    }
    graph = {
        "inputs": [tensor(input_) if isinstance(input_, str) else input_ for input_ in inputs], "outputs": results, "nodes": nodes,
        "tensor_values": values or {}, "sym_int_values": {}, "sym_bool_values": {},
    }  # fmt: skip
    signature = {
        "input_specs": specs,
        "output_specs": output_specs or [{"user_output": {"arg": result}} for result in results],
    }
    module = {"graph": graph, "signature": signature, "module_call_graph": [{"fqn": "", "signature": call}]}
    return {
        "graph_module": module, "opset_version": {"aten": 10}, "range_constraints": {}, "schema_version": {"major": 8, "minor": 2},
        "torch_version": "2.6.0", **more,
    }  # fmt: skip


def saved(values: dict[str, list[float]]) -> bytes:
    """An archive of torch.save with a dictionary of float32 tensors of one dimension."""
    pickled = b"\x80\x02}("
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as result:
        for place, (name, numbers) in enumerate(values.items()):
            key, count = str(place), len(numbers)
            pickled += b"X" + struct.pack("<I", len(name)) + name.encode()
            pickled += b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\n"
            pickled += b"X" + struct.pack("<I", len(key)) + key.encode() + b"X\x03\x00\x00\x00cpu" + b"K" + bytes([count]) + b"tQ"
            pickled += b"K\x00(K" + bytes([count]) + b"t(K\x01t\x89ccollections\nOrderedDict\n)RtR"
            result.writestr(f"archive/data/{place}", struct.pack(f"<{count}f", *numbers))
        result.writestr("archive/data.pkl", pickled + b"u.")
        result.writestr("archive/version", "3\n")
    return stream.getvalue()


def archive(
    program: dict[str, Any] | bytes, state: dict[str, list[float]] | None = None, constants: dict[str, list[float]] | None = None,
    *, samples: bool = False,
) -> bytes:  # fmt: skip
    """The bytes of an archive in the layout of 2.1 to 2.7."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as result:
        data = program if isinstance(program, bytes) else json.dumps(program).encode()
        result.writestr("serialized_exported_program.json", data)
        result.writestr("serialized_state_dict.pt", saved(state or {}))
        result.writestr("serialized_constants.pt", saved(constants or {}))
        result.writestr("serialized_example_inputs.pt", saved({}) if samples else b"")
        result.writestr("version", "8.2")
    return stream.getvalue()


def module(program: dict[str, Any], state: dict[str, list[float]] | None = None, horizon: str = "reference", **more: Any) -> Any:
    """The program, loaded."""
    return load(archive(program, state, **more), horizon)
