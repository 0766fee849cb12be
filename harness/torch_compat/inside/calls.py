"""Records the result of each recorded operator call in one torch release: a value, an error, or a crash.

Python 3.6 syntax, standard library and torch only. The worker runs this source appended to that of ``survey.py``, whose ``section`` and
``map_in_forks`` it uses, under the release's own Python, and calls ``ask(torch, calls)``, which returns one section, ``calls``.

A call is ``{"key", "name", "args", "keywords", "file_format"}``: each argument is its TorchScript type with its value in neutral form, and
the type ``None`` represents itself. Each call is compiled as a function, so that the release's compiler resolves the overload and fills in
defaults. The function also returns its arguments, because changes to a list or a dictionary are not visible outside. A call with a file
format version other than 0 is made by a program in an archive with this version, so that the release's upgraders apply; such a call returns
a tensor.

An answer is one of::

    [value, {position: input}]   the result, and the inputs that it changed, in neutral form
    "refused: RuntimeError"      it raised this class
    "died: SIGFPE"
    "no call"                    the compiler has no such operator or overload, or the dtype does not exist

For a tensor, strides are given only if it is not contiguous or shares memory with an input, offset and storage only if it shares memory;
the storages of the inputs are numbered first.
"""

import inspect
import io
import sys
import zipfile

ABSENT = "no call"
REACHES = []
"""Whether ``torch.ops.aten`` has every operator, once that is known."""
OBTAINED = "A function that makes each call of fixtures/operators/calls.jsonl was compiled and run, without gradients."


def ask(torch, calls):
    """Return the section. ``calls`` are the lines of ``fixtures/operators/calls.jsonl``."""
    entries = {}
    for call, answer, died in map_in_forks(lambda call: answer_to(torch, call), calls):  # noqa: F821 - of survey.py
        entries[call["key"]] = "died: " + died if died else answer
    return {"calls": section(OBTAINED, entries)}  # noqa: F821 - of survey.py


def spelled(call):
    """Return the parameters of a function that makes the call, the call's arguments as source, and the values to pass to the function."""
    parameters, given, arguments = [], [], []
    named = sorted((name + "=", keyword) for name, keyword in call["keywords"].items())
    for prefix, (kind, value) in [("", arg) for arg in call["args"]] + named:
        if kind == "None":
            arguments.append(prefix + "None")
        elif kind == "Device":
            arguments.append('%storch.device("%s")' % (prefix, value["device"]))
        else:
            arguments.append("%sa%d" % (prefix, len(given)))
            parameters.append("a%d: %s" % (len(given), kind))
            given.append(value)
    return parameters, arguments, given


def ways(torch, name, arguments):
    """Yield expressions that call an operator. Up to 1.4, ``torch.ops`` has only some operators, so other ways are tried."""
    namespace, own = name.partition(".")[0].split("::")
    rest = "(%s)" % ", ".join(arguments)
    yield "torch.ops.%s.%s%s" % (namespace, own, rest)
    if namespace != "aten" or reaches(torch):
        return
    if not inspect.isfunction(getattr(torch, own, None)):  # a Python function would first convert its arguments
        yield "torch.%s%s" % (own, rest)
    yield "torch._C._nn.%s%s" % (own, rest)
    if arguments and arguments[0] == "a0":
        yield "a0.%s(%s)" % (own, ", ".join(arguments[1:]))


def reaches(torch):
    """Whether ``torch.ops.aten`` has every operator."""
    if not REACHES:
        try:
            torch.jit.CompilationUnit("def f(a0):\n    return torch.ops.aten.neg(a0)\n")
            REACHES.append(True)
        except Exception:
            REACHES.append(False)
    return REACHES[0]


def compiled(torch, call, parameters, arguments):
    """Return a function that makes the call and returns its result, None and its arguments; None if the release has no such call."""
    if call["file_format"]:
        return loaded(torch, call, parameters, arguments)
    back = "".join(", a%d" % at for at in range(len(parameters)))
    for way in ways(torch, call["name"], arguments):
        try:
            text = "def f(%s):\n    made = %s\n    return (made, None%s)\n" % (", ".join(parameters), way, back)
            return torch.jit.CompilationUnit(text).f
        except Exception:  # the compiler has no such call
            pass
    return None


def loaded(torch, call, parameters, arguments):
    """Like ``compiled``, with the program loaded from an archive."""
    source = "class Model(Module):\n  __parameters__ = []\n  training : bool\n  def forward(self: __torch__.call.Model,\n    %s) -> Tensor:\n    return torch.%s(%s)\n"
    own = call["name"].partition(".")[0].split("::")[1]
    records = [
        ("data.pkl", b"\x80\x02c__torch__.call\nModel\n)\x81}(X\x08\x00\x00\x00training\x89ub."),
        ("code/__torch__/call.py", (source % (",\n    ".join(parameters), own, ", ".join(arguments))).encode("ascii")),
        ("constants.pkl", b"\x80\x02)."),
        ("version", ("%d\n" % call["file_format"]).encode("ascii")),
    ]
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, data in records:
            archive.writestr(zipfile.ZipInfo("call/" + name), data)
    stream.seek(0)
    try:
        program = torch.jit.load(stream)
    except Exception:  # its layout is only supported from 1.4 on
        return None
    return lambda *args: (program(*args), None) + args


def answer_to(torch, call):
    """Return the release's answer to one call."""
    worker = sys.modules["__main__"]
    parameters, arguments, given = spelled(call)
    try:
        args = worker.Decoder(torch).decode({"tuple": given})
        dtypes = [arg.dtype for arg in args if isinstance(arg, torch.Tensor)]
        if any(str(dtype).startswith("torch.complex") for dtype in dtypes):
            torch.zeros(2, dtype=torch.complex64).view([1, 2])  # 1.5 has complex dtypes but cannot make views of them
    except Exception:
        return ABSENT
    function = compiled(torch, call, parameters, arguments)
    if function is None:
        return ABSENT
    before = [shown(worker.Encoder(torch).encode(arg), 0) for arg in args]
    try:
        with torch.no_grad():
            result = function(*args)
    except Exception as error:
        return "refused: " + type(error).__name__
    together = worker.Encoder(torch)
    after = [together.encode(item) for item in result[2:]]
    shared = len(together.storages)
    outcome = together.encode(result[0])
    changed = {str(at): shown(item, shared) for at, item in enumerate(after) if shown(item, 0) != before[at]}
    return [shown(outcome, shared), changed]


def shown(value, shared):
    """Return a value without its unshared storages (number ``shared`` and above), and without the strides of contiguous tensors in them."""
    if isinstance(value, list):
        return [shown(item, shared) for item in value]
    if not isinstance(value, dict):
        return value
    body = value.get("tensor")
    if not isinstance(body, dict) or "strides" not in body:
        return {key: shown(item, shared) for key, item in value.items()}
    kept = {key: body[key] for key in ("dtype", "shape", "bytes", "class") if key in body}
    if "storage" in body and body["storage"] < shared:
        kept.update(storage=body["storage"], offset=body["offset"], strides=body["strides"])
    elif not contiguous(body["shape"], body["strides"]):
        kept["strides"] = body["strides"]
    return {"tensor": kept}


def contiguous(shape, strides):
    """Whether a tensor is contiguous; strides of dimensions of size 1 are ignored."""
    step = 1
    for size, stride in reversed(list(zip(shape, strides))):
        if size > 1 and stride != step:
            return 0 in shape
        step *= size
    return True
