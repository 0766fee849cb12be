"""Runs inside a real torch: says which overloads an operator has, calls them, and runs programs. JSON lines in and out.

Python 3.6, standard library and torch only.
"""

import base64
import ctypes
import json
import resource
import sys
import warnings

import torch

warnings.simplefilter("ignore")

DTYPES = {
    name: getattr(torch, name)
    for name in (
        "uint8",
        "int8",
        "int16",
        "int32",
        "int64",
        "float16",
        "float32",
        "float64",
        "bool",
        "bfloat16",
        "complex64",
        "complex128",
    )
    if hasattr(torch, name)
}
LARGEST = 1 << 20
NAMES = {dtype: name for name, dtype in DTYPES.items()}


class Decoder:
    """Tensors of one call share storages by their numbers."""

    def __init__(self):
        self.storages = {}

    def value(self, body):
        if isinstance(body, list):
            return [self.value(one) for one in body]
        if not isinstance(body, dict):
            return body
        ((kind, inner),) = body.items()
        if kind == "float":
            return float(inner)
        if kind == "complex":
            return complex(float(inner[0]), float(inner[1]))
        if kind == "dtype":
            return DTYPES[inner]
        if kind == "device":
            return torch.device(inner)
        if kind == "dict":
            return {self.value(key): self.value(value) for key, value in inner}
        if kind == "tuple":
            return tuple(self.value(one) for one in inner)
        return self.tensor(inner)

    def tensor(self, body):
        key = body["storage"]
        if key not in self.storages:
            raw = bytearray(base64.b64decode(body["bytes"]))
            dtype = DTYPES[body["dtype"]]
            self.storages[key] = torch.frombuffer(raw, dtype=dtype).clone() if raw else torch.empty(0, dtype=dtype)
        return self.storages[key].as_strided(body["shape"], body["strides"], body["offset"])


def encode(value):
    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided or value.dtype not in NAMES or value.is_quantized:
            return {"other": str(value.dtype)}
        if value.numel() > LARGEST:
            return {"other": "tensor of %d elements" % value.numel()}
        plain = value.detach().resolve_conj().resolve_neg().contiguous()
        raw = ctypes.string_at(plain.data_ptr(), plain.numel() * plain.element_size()) if plain.numel() else b""
        return {"tensor": {"dtype": NAMES[value.dtype], "shape": list(value.shape), "bytes": base64.b64encode(raw).decode()}}
    if isinstance(value, tuple):
        return {"tuple": [encode(one) for one in value]}
    if isinstance(value, list):
        return [encode(one) for one in value]
    if isinstance(value, dict):
        return {"dict": [[encode(key), encode(one)] for key, one in value.items()]}
    if isinstance(value, bool) or value is None or isinstance(value, (int, str)):
        return value
    if isinstance(value, float):
        return {"float": repr(value)}
    if isinstance(value, complex):
        return {"complex": [repr(value.real), repr(value.imag)]}
    if isinstance(value, torch.device):
        return {"device": str(value)}
    if isinstance(value, torch.dtype):
        return {"dtype": NAMES.get(value, str(value))}
    return {"other": type(value).__name__}


def schemas(names):
    found = []
    for schema in torch._C._jit_get_all_schemas():
        if schema.name in names:
            found.append(
                {
                    "name": schema.name,
                    "overload": schema.overload_name,
                    "returns": [one.type.annotation_str for one in schema.returns],
                    "variadic": "..." in str(schema).replace("=...", ""),
                    "arguments": [
                        {
                            "name": one.name,
                            "real": one.real_type.annotation_str if hasattr(one.real_type, "annotation_str") else str(one.real_type),
                            "default": one.has_default_value(),
                            "keyword": one.kwarg_only,
                            "out": one.kwarg_only and one.alias_info is not None and one.alias_info.is_write,
                        }
                        for one in schema.arguments
                    ],
                }
            )
    return found


GRAPHS = {}


def graph(source):
    if source not in GRAPHS:
        if len(GRAPHS) > 100:
            GRAPHS.clear()
        GRAPHS[source] = torch._C._create_function_from_graph("f", torch._C.parse_ir(source))
    return GRAPHS[source]


def call(request):
    decoder = Decoder()
    args = decoder.value(request["args"])
    keywords = {name: decoder.value(value) for name, value in request["keywords"].items()}
    if "seed" in request:
        torch.manual_seed(request["seed"])
    try:
        if request.get("graph"):
            value, args = graph(request["graph"])(*args)
            args = list(args)
        else:
            packet = getattr(torch.ops.aten, request["name"].split("::")[1])
            operator = getattr(packet, request["overload"] or "default")
            value = operator(*args, **keywords)
        return {"value": encode(value), "inputs": encode(args)}
    except Exception as error:
        lines = str(error).strip().splitlines() or [""]
        said = lines[-1] if lines[0].startswith("The following operation failed") else lines[0]  # below the trace of a graph
        return {"error": "%s: %s" % (type(error).__name__, said[:500])}


def main():
    # A call may ask for more memory than there is: it shall fail, and not the machine.
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    stream = sys.stdout
    sys.stdout = sys.stderr
    print(json.dumps({"version": torch.__version__}), file=stream, flush=True)
    torch.set_num_threads(1)
    with torch.no_grad():
        for line in sys.stdin:
            request = json.loads(line)
            reply = schemas(set(request["schemas"])) if "schemas" in request else call(request)
            print(json.dumps(reply), file=stream, flush=True)


if __name__ == "__main__":
    main()
