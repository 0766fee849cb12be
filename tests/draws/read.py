"""Load files, each in a process of its own. Runs inside a release: ``read.py FILES ANSWERS``; the answers are JSON, by file and call."""

from __future__ import print_function

import json
import os
import sys
import warnings

warnings.simplefilter("ignore")

import torch

CALLS = {
    "torch.jit.load": lambda path: torch.jit.load(path),
    "torch.jit.mobile._load_for_lite_interpreter": lambda path: __import__("torch.jit.mobile").jit.mobile._load_for_lite_interpreter(path),
    "torch.load": lambda path: torch.load(path),
    "weights_only=True": lambda path: torch.load(path, weights_only=True),
    "weights_only=False": lambda path: torch.load(path, weights_only=False),
}


def answer(path, call):
    """Nothing where the call loads the file, else its error."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        try:
            CALLS[call](path)
            said = ""
        except BaseException as error:
            said = "%s: %s" % (type(error).__name__, error)
        os.write(writing, said.encode("utf-8", "replace")[:4000])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read().decode("utf-8", "replace")
    status = os.waitpid(process, 0)[1]
    return said if status == 0 else "the process ended with status %d" % status


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        asked = json.load(file)
    with open(sys.argv[2], "w") as file:
        json.dump([answer(path, call) for path, call in asked], file)
