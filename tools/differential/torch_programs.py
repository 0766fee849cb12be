"""Runs inside a real torch: compiles source, saves it as an archive, loads the archive and reports the results. JSON lines in and out.

Python 3.6, standard library and torch only. The first argument is harness/torch_compat/inside/worker.py, which encodes the results.
"""

import importlib.util
import json
import os
import math  # noqa: F401 - a name of the sources
import resource
import sys
import warnings
from typing import Dict, List, Optional, Tuple  # noqa: F401 - names of the sources

import torch
from torch import Tensor  # noqa: F401 - likewise

warnings.simplefilter("ignore")
spec = importlib.util.spec_from_file_location("worker", sys.argv[1])
worker = importlib.util.module_from_spec(spec)
spec.loader.exec_module(worker)


class Holder(torch.nn.Module):
    """The attributes of the programs: one of every kind that they write to."""

    def __init__(self):
        super(Holder, self).__init__()
        self.count = 3
        self.trace = 0
        self.rate = 0.5
        self.flag = False
        self.name = "n"
        self.numbers = torch.jit.Attribute([4, 5], List[int])
        self.table = torch.jit.Attribute({"a": 1}, Dict[str, int])
        self.maybe = torch.jit.Attribute(None, Optional[int])
        self.weight = torch.nn.Parameter(torch.tensor([[1.0, -2.0, 0.5], [0.25, 3.0, -1.0]]))
        self.register_buffer("buffer", torch.tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]))


def script(source):
    result = torch.jit._recursive.create_script_module(Holder(), lambda module: [], share_types=False)
    result.define(source)
    return result


def answer(request):
    try:
        script(request["source"]).save(request["path"])
    except Exception as error:
        return {"source_error": str(error)[:2000]}
    with torch.jit.optimized_execution(request.get("optimize", True)):
        return worker.perform(torch, "torchscript", lambda: torch.jit.load(request["path"]), request["calls"])


def main():
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    stream = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # linear algebra libraries print warnings to standard output, which carries the answers
    sys.stdout = sys.stderr
    torch.set_num_threads(1)
    print(json.dumps({"version": torch.__version__}), file=stream, flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), file=stream, flush=True)


if __name__ == "__main__":
    main()
