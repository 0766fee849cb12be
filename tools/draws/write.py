# -*- coding: utf-8 -*-
"""Write randomly generated states and programs. Runs inside a release, with any Python since 3.6: ``write.py SEED COUNT FOLDER``.

Item N of a seed does not depend on the release; if a release cannot write it, a line is added to ``not_written.txt``.
"""

from __future__ import print_function

import argparse
import collections
import enum
import importlib
import os
import random
import sys
import warnings

warnings.simplefilter("ignore")

import torch
from torch import nn

DTYPES = ["float32", "float64", "float16", "bfloat16", "uint8", "int8", "int16", "int32", "int64", "bool", "complex64", "complex128",
          "float8_e5m2", "float8_e4m3fn", "uint16", "uint32"]
MODULES = [
    "Linear(2, 3)", "Bilinear(2, 2, 2)", "Conv1d(2, 2, 1)", "Conv2d(1, 1, 2)", "ConvTranspose2d(1, 1, 2)", "BatchNorm1d(2)", "BatchNorm2d(1)",
    "LayerNorm(2)", "GroupNorm(1, 2)", "InstanceNorm1d(2)", "Embedding(3, 2)", "EmbeddingBag(3, 2)", "LSTM(2, 2)", "GRU(2, 2)", "RNN(2, 2)",
    "LSTMCell(2, 2)", "ReLU()", "GELU()", "Hardswish()", "SiLU()", "Mish()", "Softmax(-1)", "PReLU()", "Dropout(0.5)", "Flatten()", "Identity()",
    "MultiheadAttention(4, 2)", "TransformerEncoderLayer(4, 2, 4)", "CrossEntropyLoss()", "MSELoss()", "PixelShuffle(2)", "MaxPool2d(2)",
    "AdaptiveAvgPool2d(1)", "Upsample(scale_factor=2)", "ZeroPad2d(1)", "ParameterList([Parameter(torch.ones(1))])", "ModuleDict({'a': Linear(1, 1)})",
    "Sequential(Linear(1, 1), ReLU())", "RMSNorm(2)", "Unflatten(0, (1, 1))",
]
TYPES = ["int", "float", "bool", "str", "Tensor", "List[int]", "List[float]", "List[Tensor]", "List[str]", "Dict[str, int]", "Dict[int, float]",
         "Dict[str, Tensor]", "Tuple[int, float]", "Tuple[str, Tensor]", "Optional[int]", "Optional[Tensor]", "List[List[int]]",
         "Dict[str, List[int]]", "List[Tuple[int, str]]", "Optional[List[float]]", "torch.device", "complex"]
VALUES = {
    "int": ["0", "-3", "2 ** 40"], "float": ["0.5", "-1e30", "float('inf')", "3.0"], "bool": ["True", "False"], "str": ["'a'", "'line\\n\"q\"'", "'\u00e9'"],
    "Tensor": ["torch.ones(2)", "torch.zeros(0)", "torch.ones(2, 3).t()", "torch.tensor(1)", "torch.ones(3)[1:]", "torch.arange(4) > 1", "torch.ones(2).half()"],
    "List[int]": ["[1, 2]", "[]"], "List[float]": ["[0.5, 2.0]", "[]"], "List[Tensor]": ["[torch.ones(1)]", "[]"], "List[str]": ["['a', 'b']"],
    "Dict[str, int]": ["{'a': 1}", "{}"], "Dict[int, float]": ["{1: 0.5}"], "Dict[str, Tensor]": ["{'a': torch.ones(1)}"],
    "Tuple[int, float]": ["(1, 0.5)"], "Tuple[str, Tensor]": ["('a', torch.ones(1))"], "Optional[int]": ["None", "3"],
    "Optional[Tensor]": ["None", "torch.ones(1)"], "List[List[int]]": ["[[1], [2, 3]]"], "Dict[str, List[int]]": ["{'a': [1]}"],
    "List[Tuple[int, str]]": ["[(1, 'a')]"], "Optional[List[float]]": ["None", "[1.5]"], "torch.device": ["torch.device('cpu')"], "complex": ["1j"],
}
UNARY = ["relu", "sigmoid", "tanh", "exp", "abs", "neg", "floor", "sqrt", "sin", "log1p", "sign", "round", "erf", "rsqrt", "isnan", "nan_to_num",
         "logical_not", "square", "sgn", "frac", "trunc", "expm1", "atan", "digamma", "positive", "signbit", "special.expit", "flatten",
         "numel", "nonzero", "t", "isfinite", "logit", "silu", "hardswish", "fft.fft", "linalg.norm", "std", "var", "median", "mode"]
BINARY = ["add", "sub", "mul", "div", "atan2", "fmod", "remainder", "max", "min", "maximum", "minimum", "eq", "ne", "lt", "floor_divide", "true_divide",
          "logical_and", "pow", "hypot", "copysign", "matmul", "mm", "dot", "bitwise_and", "heaviside", "logaddexp", "fmax", "ldexp", "xlogy", "gcd"]
STATEMENTS = [
    "y = torch.{u}(y)", "y = torch.{b}(y, x)", "y = y * {n}", "y = y + {f}", "y += x", "y = y / {n}", "y = torch.cat([y, x])", "y = torch.stack([x, x]).sum(0)",
    "y = y.view(-1)", "y = y[{s}]", "y = y[None]", "y = y.{u}()", "y = y.to(torch.{d})", "y = y.float()", "y = torch.full_like(y, {f})",
    "y = torch.zeros([2]) + y", "y = torch.arange({n}).float() + y.sum()", "k = int(y.sum())\n        y = y + k", "k = y.sum().item()\n        y = y + k",
    "if y.sum() > {f}:\n            y = y + 1\n        else:\n            y = y - 1", "for i in range({n}):\n            y = y + i",
    "k = 0\n        while k < {n}:\n            k += 1\n            y = y * k", "a = [i * 2 for i in range({n})]\n        y = y + len(a)",
    "l = [1, 2, 3]\n        l.append({n})\n        y = y + l[-1]", "d = {{'a': 1}}\n        d['b'] = {n}\n        y = y + d['b']",
    "t = (1, 'a', y)\n        y = t[2] + t[0]", "s = 'n{{}}'.format({n})\n        y = y + len(s)", "s = 'a' + str({n})\n        y = y + len(s)",
    "assert y.numel() >= 0, 'bad'", "y = torch.nn.functional.{fn}(y)", "y = y.masked_fill(y > {f}, 0.0)", "y = torch.where(y > {f}, y, y * 2)",
    "y.add_({f})", "y[0] = {f}", "y = y.clamp({f}, {f2})", "y = y.clamp(min={f})", "y = torch.sum(y, dim=0, keepdim=True)", "y = y.mean()", "y = y.argmax()",
    "o: Optional[Tensor] = None\n        if {n} > 2:\n            o = y\n        if o is not None:\n            y = o + 1", "y = torch.einsum('i,i->i', y, y)",
    "y, k = y.max(0)\n        y = y + k", "y = y.sort()[0]", "z = y.size(0) if y.dim() > 0 else {n}\n        y = y + z", "y = y.expand_as(y)", "y = torch.linspace(0, 1, {n}) + y.sum()",
    "y = torch.split(y, 1)[0]", "y = y.unsqueeze(0).squeeze(0)", "y = torch.norm(y)", "y = y ** {n}", "y = {n} - y", "y = y // {n}", "y = y % {n}", "y = -y", "y = ~(y > 0)",
    "y = torch.jit.annotate(Tensor, y)", "y = y + (1 if {n} > 2 else 0)", "a: List[int] = []\n        a += [{n}]\n        y = y + a[0]", "y = y + min({n}, 3) + abs(-{n})",
    "y = torch.ones([2], dtype=torch.{d}).float() + y.sum()", "y = y + torch.tensor({f})", "y = y + math.sqrt({n})", "print(y.dim())", "y = y + ({n} // 2) + ({n} / 2) + {n} ** 2",
    "for a, b in zip([1, 2], [3, {n}]):\n            y = y + a * b", "for i, v in enumerate([1, {n}]):\n            y = y + i * v", "y = y if y.dim() > 1 else y + 1",
    "y = torch.rand([{n}]) + y.sum()", "y = y.detach()", "y = y.permute(0)", "y = y.repeat(2)", "y = y.roll(1)", "y = y.cumsum(0)", "y = y.type(torch.float64)", "y = y.contiguous().clone()",
    "if isinstance(y, Tensor):\n            y = y + 1", "y = torch.quantile(y, 0.5)", "y = torch.bincount(y.long().abs())", "y = torch.nn.functional.pad(y, [1, {n}])", "y = y.new_zeros([2])", "y = y.scatter(0, torch.tensor([0]), {f})",
]
FUNCTIONS = ["relu", "gelu", "softplus", "elu", "leaky_relu", "hardtanh", "selu", "silu", "logsigmoid", "tanhshrink", "hardsigmoid", "mish", "dropout", "alpha_dropout", "softsign", "relu6"]
PROGRAM = u"""# -*- coding: utf-8 -*-
import math
import torch
from torch import nn, Tensor
from typing import Dict, List, Optional, Tuple
{extra}
class Model(nn.Module):
    def __init__(self):
        super(Model, self).__init__()
{init}
    def forward(self, x):
        # type: (Tensor) -> Tensor
        y = x
{body}
        return y + 0
"""
EXTRAS = ["", "", "", "from collections import namedtuple\nPoint = namedtuple('Point', ['a', 'b'])\n", "from enum import Enum\nclass Color(Enum):\n    RED = 1\n    BLUE = 2\n",
          "@torch.jit.script\ndef helper(x):\n    return x * 2\n"]


class Point(collections.namedtuple("Point", ["a", "b"])):
    """A named tuple referenced by pickles."""


class Color(enum.Enum):
    """An enumeration referenced by pickles."""

    RED = 1


class Own(nn.Module):
    """A user-defined module."""

    def __init__(self):
        super(Own, self).__init__()
        self.inner = nn.Linear(1, 1)
        self.table = {"a": (1, 2.5)}


def tensor(rng):
    """A tensor of any dtype and form."""
    dtype = getattr(torch, rng.choice(DTYPES))
    result = torch.zeros(*rng.choice([(), (3,), (2, 3), (0,), (1, 2, 2)])).to(dtype)
    how = rng.choice(["plain", "plain", "view", "transposed", "expanded", "parameter", "sparse", "quantized", "grad", "buffer", "conj", "meta", "channels"])
    if how == "view" and result.dim():
        return result[1:]
    if how == "transposed" and result.dim() > 1:
        return result.transpose(0, 1)
    if how == "expanded":
        return result.unsqueeze(0).expand(*([2] + list(result.shape)))
    if how == "parameter":
        return nn.Parameter(result, requires_grad=result.is_floating_point())
    if how == "sparse":
        return result.to_sparse()
    if how == "quantized":
        return torch.quantize_per_tensor(result.float(), 0.1, 1, rng.choice([torch.qint8, torch.quint8, torch.qint32]))
    if how == "grad":
        return result.requires_grad_()
    if how == "conj":
        return result.conj()
    if how == "meta":
        return result.to("meta")
    if how == "channels":
        return torch.ones(1, 2, 2, 2).to(dtype).contiguous(memory_format=torch.channels_last)
    return result


def value(rng, depth=0):
    """A value that a state may contain."""
    kind = rng.choice(["tensor"] * 4 + ["number", "text", "list", "dict", "tuple", "ordered", "special", "module", "storage"])
    if depth > 2 and kind in ("list", "dict", "tuple", "ordered"):
        kind = "number"
    if kind == "tensor":
        return tensor(rng)
    if kind == "number":
        return rng.choice([1, -2 ** 70, 0.5, float("nan"), True, None, 1j, 10 ** 400])
    if kind == "text":
        return rng.choice(["a", u"\u00e9", b"bytes", bytearray(b"x"), "x" * 300])
    if kind == "list":
        return [value(rng, depth + 1) for _ in range(rng.randrange(3))]
    if kind == "dict":
        return {"k%d" % at: value(rng, depth + 1) for at in range(rng.randrange(3))}
    if kind == "tuple":
        return tuple(value(rng, depth + 1) for _ in range(rng.randrange(5)))
    if kind == "ordered":
        return collections.OrderedDict(a=value(rng, depth + 1))
    if kind == "storage":
        return torch.ones(2).storage()
    if kind == "module":
        return eval("nn." + rng.choice(MODULES), {"nn": nn, "torch": torch, "Linear": nn.Linear, "ReLU": nn.ReLU, "Parameter": nn.Parameter})
    special = rng.randrange(12)
    if special == 0:
        return {1, 2}
    if special == 1:
        return argparse.Namespace(a=1)
    if special == 2:
        return torch.Size([1, 2])
    if special == 3:
        return torch.device("cpu")
    if special == 4:
        return torch.float32
    if special == 5:
        return Own()
    if special == 6:
        return torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=0.1)
    if special == 7:
        return torch.strided
    if special == 8:
        return collections.Counter("ab")
    if special == 9:
        return torch.nn.utils.rnn.PackedSequence(torch.ones(2), torch.ones(2).long())
    if special == 10:
        return torch.optim.Adam(nn.Linear(1, 1).parameters()).state_dict()
    return torch.channels_last


def state(rng, path):
    """Save a value."""
    held = {"model": nn.Linear(1, 1).state_dict(), "value": value(rng)} if rng.random() < 0.5 else value(rng)
    options = {}
    if rng.random() < 0.2:
        options["_use_new_zipfile_serialization"] = rng.random() < 0.5
    if rng.random() < 0.15:
        options["pickle_protocol"] = rng.choice([2, 3, 4])
    try:
        torch.save(held, path, **options)
    except TypeError:
        if "_use_new_zipfile_serialization" not in options:
            raise
        del options["_use_new_zipfile_serialization"]
        torch.save(held, path, **options)


def source(rng):
    """The source of a module."""
    init = []
    for at in range(rng.randrange(4)):
        kind = rng.choice(TYPES)
        init.append("self.a%d = torch.jit.Attribute(%s, %s)" % (at, rng.choice(VALUES[kind]), kind) if rng.random() < 0.7 else "self.a%d = %s" % (at, rng.choice(VALUES[kind])))
    for at in range(rng.randrange(3)):
        init.append("self.m%d = nn.%s" % (at, rng.choice(MODULES).replace("Linear(1", "nn.Linear(1").replace("ReLU()", "nn.ReLU()").replace("nn.nn.", "nn.").replace("Parameter(", "nn.Parameter(")))
    for at in range(rng.randrange(3)):
        init.append("self.register_buffer('b%d', torch.ones(%d).to(torch.%s))" % (at, rng.randrange(3), rng.choice(DTYPES)))
    if rng.random() < 0.3:
        init.append("self.p = nn.Parameter(torch.ones(2))")
    init = [item.replace("nn.Parametenn.", "nn.") for item in init]
    body = []
    for _ in range(rng.randrange(1, 6)):
        body.append(rng.choice(STATEMENTS).format(
            u=rng.choice(UNARY), b=rng.choice(BINARY), n=rng.randrange(1, 5), f=rng.choice([0.5, -1.0, 2.0, 1e10]), f2=rng.choice([3.0, 0.1]), s=rng.choice(["0", "1:", ":-1", "..., 0", "::2"]),
            d=rng.choice(DTYPES[:12]), fn=rng.choice(FUNCTIONS)))
    lines = ["        " + item for item in init] or ["        pass"]
    return PROGRAM.format(extra=rng.choice(EXTRAS), init="\n".join(lines), body="\n".join("        " + statement for statement in body))


def program(rng, path, name, folder):
    """Script, trace or freeze a module, and save it."""
    text, how = source(rng), rng.choice(["script"] * 6 + ["trace", "freeze", "mobile", "quantized"])
    with open(os.path.join(folder, name + ".py"), "wb") as file:
        file.write(text.encode("utf-8"))
    module = importlib.import_module(name).Model()
    if how == "trace":
        result = torch.jit.trace(module, torch.ones(2), check_trace=False)
    elif how == "quantized":
        result = torch.jit.script(torch.quantization.quantize_dynamic(module, {nn.Linear, nn.LSTM}))
    else:
        result = torch.jit.script(module)
    if how == "freeze":
        result = torch.jit.freeze(result.eval())
    if how == "mobile":
        result._save_for_lite_interpreter(path)
    else:
        result.save(path)


def main():
    """Write all items."""
    seed, count, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    sources = os.path.join(folder, "sources")
    os.makedirs(sources)
    sys.path.insert(0, sources)
    with open(os.path.join(folder, "not_written.txt"), "w") as lines:
        for at in range(count):
            rng = random.Random("%s/%d" % (seed, at))
            path = os.path.join(folder, "d%03d.pt" % at)
            try:
                if at % 2:
                    program(rng, path, "d%03d" % at, sources)
                else:
                    state(rng, path)
            except Exception as error:
                if os.path.exists(path):
                    os.remove(path)
                lines.write("%d %s: %s\n" % (at, type(error).__name__, str(error).split("\n")[0].encode("ascii", "replace").decode("ascii")[:200]))


if __name__ == "__main__":
    main()
