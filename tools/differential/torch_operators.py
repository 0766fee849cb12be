"""Runs inside a real torch: lists overloads of operators, calls them, and runs programs. JSON lines in and out.

Python 3.6, standard library and torch only.
"""

import base64
import ctypes
import json
import os
import resource
import signal
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
SECONDS = 10  # for one call; some never return, such as count() of an empty text
SIZES = {"uint8": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "float16": 2, "float32": 4, "float64": 8, "bool": 1, "bfloat16": 2, "complex64": 8, "complex128": 16}
NAMES = {dtype: name for name, dtype in DTYPES.items()}


class NoSuchTensor(Exception):
    """This release cannot create a tensor of a dtype."""


class Decoder:
    """Decodes values; tensors of one call share storages by number."""

    def __init__(self):
        self.storages = {}

    def value(self, body):
        if isinstance(body, list):
            return [self.value(statement) for statement in body]
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
            return tuple(self.value(item) for item in inner)
        return self.tensor(inner)

    def tensor(self, body):
        key = body["storage"]
        if key not in self.storages:
            raw = base64.b64decode(body["bytes"])
            if body["dtype"] not in DTYPES:
                raise NoSuchTensor(body["dtype"])
            try:
                result = torch.empty(len(raw) // SIZES[body["dtype"]], dtype=DTYPES[body["dtype"]])
                result.as_strided([0], [1], 0)
            except RuntimeError as error:  # 1.5 knows complex dtypes but cannot create views of them
                raise NoSuchTensor("%s: %s" % (body["dtype"], error))
            if raw:
                ctypes.memmove(result.data_ptr(), raw, len(raw))
            self.storages[key] = result
        return self.storages[key].as_strided(body["shape"], body["strides"], body["offset"])


def encode(value):
    if isinstance(value, torch.Tensor):
        try:
            value.layout
        except RuntimeError:  # "tensor does not have a device"
            return {"other": "undefined tensor"}
        if value.layout != torch.strided or value.dtype not in NAMES or getattr(value, "is_quantized", False):
            return {"other": str(value.dtype)}
        if value.numel() > LARGEST:
            return {"other": "tensor of %d elements" % value.numel()}
        plain = value.detach()
        if hasattr(plain, "resolve_neg"):
            plain = plain.resolve_conj().resolve_neg()
        plain = plain.contiguous()
        raw = ctypes.string_at(plain.data_ptr(), plain.numel() * plain.element_size()) if plain.numel() else b""
        return {"tensor": {"dtype": NAMES[value.dtype], "shape": list(value.shape), "bytes": base64.b64encode(raw).decode()}}
    if isinstance(value, tuple):
        return {"tuple": [encode(item) for item in value]}
    if isinstance(value, list):
        return [encode(item) for item in value]
    if isinstance(value, dict):
        return {"dict": [[encode(key), encode(item)] for key, item in value.items()]}
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
    results = []
    for schema in torch._C._jit_get_all_schemas():
        if schema.name in names:
            results.append(
                {
                    "name": schema.name,
                    "overload": schema.overload_name,
                    "returns": [item.type.annotation_str for item in schema.returns],
                    "variadic": "..." in str(schema).replace("=...", ""),
                    "arguments": [
                        {
                            "name": argument.name,
                            "real": argument.real_type.annotation_str if hasattr(argument.real_type, "annotation_str") else str(argument.real_type),
                            "default": argument.has_default_value(),
                            "keyword": argument.kwarg_only,
                            "out": argument.kwarg_only and argument.alias_info is not None and argument.alias_info.is_write,
                        }
                        for argument in schema.arguments
                    ],
                }
            )
    return results


M_PERTURB = -6  # M_PERTURB of mallopt(3): the byte with which allocated memory is filled


def fill_new_memory(byte):
    """Fill memory allocated from now on with a byte; False if the C library does not support this."""
    return hasattr(LIBRARY, "mallopt") and LIBRARY.mallopt(M_PERTURB, byte ^ 0xFF) == 1


LIBRARY = ctypes.CDLL(None)
GRAPHS = {}


def graph(source):
    if source not in GRAPHS:
        if len(GRAPHS) > 100:
            GRAPHS.clear()
        GRAPHS[source] = torch._C._create_function_from_graph("f", torch._C.parse_ir(source))
    return GRAPHS[source]


def call(request):
    if "fill" in request and not fill_new_memory(request["fill"]):
        return {"unfilled": "this C library does not fill memory that it allocates"}
    decoder = Decoder()
    try:
        args = decoder.value(request["args"])
        keywords = {name: decoder.value(value) for name, value in request["keywords"].items()}
    except NoSuchTensor as error:
        return {"no_input": str(error)}
    if "seed" in request:
        torch.manual_seed(request["seed"])
    try:
        if request.get("graph"):
            try:
                function = graph(request["graph"])
            except RuntimeError as error:
                return {"no_input": "no such graph: %s" % error}
            value, args = function(*args)
            args = list(args)
        else:
            packet = getattr(torch.ops.aten, request["name"].split("::")[1])
            operator = getattr(packet, request["overload"] or "default")
            value = operator(*args, **keywords)
        return {"value": encode(value), "inputs": encode(args)}
    except Exception as error:
        lines = str(error).strip().splitlines() or [""]
        message = lines[-1] if lines[0].startswith("The following operation failed") else lines[0]  # below the trace of a graph
        return {"error": "%s: %s" % (type(error).__name__, message[:500])}


def serve(stream):
    """Answer requests until there are no more, or until one ends the process."""
    with torch.no_grad():
        for line in iter(sys.stdin.readline, ""):
            request = json.loads(line)
            if "ping" in request:
                print(json.dumps(request), file=stream, flush=True)
                continue
            signal.alarm(0 if "schemas" in request else SECONDS)
            reply = schemas(set(request["schemas"])) if "schemas" in request else call(request)
            signal.alarm(0)
            print(json.dumps(reply), file=stream, flush=True)


def main():
    # A call may request more memory than available: it must fail without affecting the machine.
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    stream = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # linear algebra libraries print warnings to standard output, which carries the answers
    sys.stdout = sys.stderr
    print(json.dumps({"version": torch.__version__}), file=stream, flush=True)
    torch.set_num_threads(1)
    # Importing torch takes seconds, so calls run in a fork of this process, which is replaced if a call ends it.
    while True:
        child = os.fork()
        if not child:
            serve(stream)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        if not status:
            return
        print(json.dumps({"crashed": "torch died with status %d" % status}), file=stream, flush=True)


if __name__ == "__main__":
    main()
