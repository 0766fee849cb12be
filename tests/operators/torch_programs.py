"""Runs inside releases of torch: programs with one operator call each. ``torch_programs.py save|load FILE FOLDER``, FILE is JSON.

``save`` reads ``{"name": [operator, [types of arguments], [types of returns]]}``, saves a program for each in the folder, and writes the
errors to ``saved.json`` in the folder. Every argument is an argument of the program, except that a generator is None. ``load`` loads every
program of the folder, and writes ``{"name": the error, or ""}`` to the file.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

GENERATOR = "Generator?"


def graph(operator: str, types: list[str], returns: list[str]) -> str:
    """The program, as a graph in text."""
    inputs = ", ".join(f"%a{at} : {type_}" for at, type_ in enumerate(types) if type_ != GENERATOR)
    lines = [f"  %a{at} : NoneType = prim::Constant()" for at, type_ in enumerate(types) if type_ == GENERATOR]
    call = f"{operator}({', '.join(f'%a{at}' for at in range(len(types)))})"
    if not returns:
        lines += [f"  {call}", "  %r : NoneType = prim::Constant()"]
    elif len(returns) == 1:
        lines += [f"  %r : {returns[0]} = {call}"]
    else:
        several = ", ".join(f"%r{at} : {item}" for at, item in enumerate(returns))
        together = ", ".join(f"%r{at}" for at in range(len(returns)))
        lines += [f"  {several} = {call}", f"  %r : ({', '.join(returns)}) = prim::TupleConstruct({together})"]
    return "\n".join([f"graph({inputs}):", *lines, "  return (%r)", ""])


def save(torch: Any, questions: Path, folder: Path) -> None:
    """Save a program for each question."""
    refused = {}
    for name, (operator, types, returns) in json.loads(questions.read_text()).items():
        try:
            function = torch._C._create_function_from_graph("f", torch._C.parse_ir(graph(operator, types, returns)))
            function.save(str(folder / f"{name}.pt"))
        except Exception as error:  # noqa: BLE001 - whatever the release says
            refused[name] = str(error)
    (folder / "saved.json").write_text(json.dumps(refused))


def load(torch: Any, answers: Path, folder: Path) -> None:
    """Load every program."""
    messages = {}
    for path in sorted(folder.glob("*.pt")):
        try:
            torch.jit.load(str(path))
            messages[path.stem] = ""
        except Exception as error:  # noqa: BLE001 - whatever the release says
            messages[path.stem] = str(error) or "refused"
    answers.write_text(json.dumps(messages))


if __name__ == "__main__":
    {"save": save, "load": load}[sys.argv[1]](importlib.import_module("torch"), Path(sys.argv[2]), Path(sys.argv[3]))
