"""Runs inside torch 2.13.0: results of its own parser and checks for schemas. ``torch_schemas.py QUESTIONS ANSWERS``, two JSON files.

Questions are ``{"texts": [...], "pairs": [[new, old], ...]}``, with pairs as indices of texts. Answers are, for each text, the reason for its
rejection or ``[printed, [[name, has a default, by name only, out, size], ...], the same of returns]``; for each pair
``[backward, forward, why not forward]``, None if a text was rejected, "IndexError" if a check failed with it.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any


def arguments(ones: Any) -> list[list[Any]]:
    """Arguments, or returns."""
    return [[item.name, item.has_default_value(), item.kwarg_only, item.is_out, item.N] for item in ones]


def asked(check: Any) -> Any:
    """The result of a check."""
    try:
        return check()
    except IndexError:
        return "IndexError"


def main() -> None:
    """Answer."""
    torch = importlib.import_module("torch")
    questions = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    schemas: list[Any] = []
    texts: list[Any] = []
    for text in questions["texts"]:
        try:
            schema = torch._C.parse_schema(text)
        except (RuntimeError, IndexError, ValueError) as error:
            schemas.append(None)
            message = str(error).strip().split("\n")
            texts.append(next((line for line in message if line and line != " "), type(error).__name__))
            continue
        schemas.append(schema)
        texts.append([str(schema), arguments(schema.arguments), arguments(schema.returns)])
    pairs: list[Any] = []
    for new_at, old_at in questions["pairs"]:
        new, old = schemas[new_at], schemas[old_at]
        if new is None or old is None:
            pairs.append(None)
            continue
        backward = asked(lambda new=new, old=old: new.is_backward_compatible_with(old))
        forward = asked(lambda new=new, old=old: new.check_forward_compatible_with(old))
        pairs.append([backward, *(forward if isinstance(forward, tuple) else (forward, ""))])
    answers = {"version": torch.__version__, "texts": texts, "pairs": pairs}
    Path(sys.argv[2]).write_text(json.dumps(answers), encoding="utf-8")


if __name__ == "__main__":
    main()
