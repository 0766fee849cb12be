"""Runs inside a real torch: says which overloads an operator has, and calls them. JSON lines in and out. Python 3.6, standard library and torch only."""

import base64
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
        return self.tensor(inner)

    def tensor(self, body):
        key = body["storage"]
        if key not in self.storages:
            raw = base64.b64decode(body["bytes"])
            flat = torch.tensor(list(raw), dtype=torch.uint8)
            dtype = DTYPES[body["dtype"]]
            self.storages[key] = flat.view(dtype) if flat.numel() else torch.empty(0, dtype=dtype)
        return self.storages[key].as_strided(body["shape"], body["strides"], body["offset"])


def encode(value):
    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided or value.dtype not in NAMES:
            return {"other": str(value.dtype)}
        plain = value.detach().resolve_conj().resolve_neg().contiguous()
        raw = bytes(plain.view(-1).view(torch.uint8).tolist()) if plain.numel() else b""
        return {"tensor": {"dtype": NAMES[value.dtype], "shape": list(value.shape), "bytes": base64.b64encode(raw).decode()}}
    if isinstance(value, (list, tuple)):
        return [encode(one) for one in value]
    if isinstance(value, bool) or value is None or isinstance(value, (int, str)):
        return value
    if isinstance(value, float):
        return {"float": repr(value)}
    if isinstance(value, complex):
        return {"complex": [repr(value.real), repr(value.imag)]}
    return {"other": type(value).__name__}


def schemas(names):
    found = []
    for schema in torch._C._jit_get_all_schemas():
        if schema.name in names:
            found.append(
                {
                    "name": schema.name,
                    "overload": schema.overload_name,
                    "arguments": [
                        {
                            "name": one.name,
                            "type": one.type.annotation_str if hasattr(one.type, "annotation_str") else str(one.type),
                            "real": str(one.real_type) if hasattr(one, "real_type") else str(one.type),
                            "default": one.has_default_value()
                            if hasattr(one, "has_default_value")
                            else one.default_value is not None,
                            "keyword": one.kwarg_only,
                            "size": getattr(one, "N", None),
                            "out": one.kwarg_only and one.alias_info is not None and one.alias_info.is_write,
                        }
                        for one in schema.arguments
                    ],
                }
            )
    return found


def call(request):
    decoder = Decoder()
    packet = getattr(torch.ops.aten, request["name"].split("::")[1])
    operator = getattr(packet, request["overload"] or "default")
    args = decoder.value(request["args"])
    keywords = {name: decoder.value(value) for name, value in request["keywords"].items()}
    try:
        value = operator(*args, **keywords)
    except Exception as error:
        return {"error": str(error)[:500]}
    return {"value": encode(value), "inputs": encode(args)}


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
