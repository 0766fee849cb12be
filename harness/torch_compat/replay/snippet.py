"""Write a plain Python program that repeats a reader's work on one archive, to reproduce a difference with torch alone.

The arguments of calls are written out. A tensor is given by its bytes, its shape and its strides; storage shared between tensors is
not preserved.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from torch_compat.escapes import escaped

if TYPE_CHECKING:
    from pathlib import Path

    from torch_compat.corpus.manifest import Fixture
    from torch_compat.policy import OptionSet

__all__ = ["snippet"]

LONGEST: Final = 200_000
"""Maximum length of a program in characters; for longer ones, the fixture itself is easier to read."""
LOADS: Final = {
    "torch-save": "torch.load(ARCHIVE{options})",
    "torchscript": "torch.jit.load(ARCHIVE)",
    "mobile": "_load_for_lite_interpreter(ARCHIVE)",
    "package": "torch.package.PackageImporter(ARCHIVE).load_pickle('model', 'model.pkl')",
    "export": "torch.export.load(ARCHIVE)",
    "distributed": "torch.load('whole.pt', weights_only=False)",
}
BEFORE: Final = {"distributed": "torch.distributed.checkpoint.format_utils.dcp_to_torch_save(ARCHIVE, 'whole.pt')"}
"""Statements before the load statement."""
ENDIANNESS: Final = "torch.serialization.set_default_load_endianness(torch.serialization.LoadEndianness.{})"
SHOW: Final = """
if hasattr(loaded, "named_parameters"):
    for name, value in [*loaded.named_parameters(), *loaded.named_buffers()]:
        print(name, value)
else:
    print(loaded)
"""
IMPORTS: Final = {
    "mobile": "from torch.jit.mobile import _load_for_lite_interpreter",
    "package": "import torch.package",
    "export": "import torch.export",
    "distributed": "import torch.distributed.checkpoint.format_utils",
}
TENSOR: Final = '''

def tensor(dtype, shape, strides, text):
    """A tensor of these bytes."""
    import base64

    raw = base64.b64decode(text)
    flat = torch.frombuffer(bytearray(raw), dtype=dtype) if raw else torch.empty(0, dtype=dtype)
    whole = flat.reshape(shape)
    view = torch.empty_strided(shape, strides, dtype=dtype)
    return view.copy_(whole) if all(strides) else whole

'''


class _NotPlainError(Exception):
    """A value without a short Python expression."""


def snippet(fixture: Fixture, archive: Path, options: OptionSet, command: str, about: str = "") -> str | None:
    """Return a program for one cell; None if its family, load options or arguments cannot be written in a few lines.

    Parameters:
        archive: the path of the archive.
        command: the command that runs this program, for its first lines.
        about: what it shows, in one line; control characters are escaped, so that the line stays a comment.
    """
    given = options.load.given()
    load = LOADS.get(fixture.family)
    if load is None or (given and fixture.family != "torch-save") or given.keys() - {"weights_only", "mmap", "endianness"}:
        return None
    if fixture.family == "package":
        return None  # its members have their own names
    keywords = "".join(f", {key}={value!r}" for key, value in sorted(given.items()) if key != "endianness")
    try:
        calls = [(call["method"], [_expression(value) for value in call["args"]]) for call in fixture.calls]
    except _NotPlainError:
        return None
    body = [
        f"# What this torch does with {fixture.id}: {escaped(command)}",
        *([f"# {escaped(about)}"] if about else []),
        "",
        "import torch",
        *([IMPORTS[fixture.family]] if fixture.family in IMPORTS else []),
        *(TENSOR.splitlines() if any("tensor(" in text for _, args in calls for text in args) else []),
        "",
        f"ARCHIVE = {str(archive)!r}",
        "",
        "print(torch.__version__)",
        *([ENDIANNESS.format(str(given["endianness"]).upper())] if "endianness" in given else []),
        *([BEFORE[fixture.family]] if fixture.family in BEFORE else []),
        f"loaded = {load.format(options=keywords)}",
        *(SHOW.splitlines() if not calls else []),
        *(["loaded = loaded.module()"] if fixture.family == "export" and calls else []),
    ]
    for method, args in calls:
        call = "loaded" if method == "forward" and fixture.family != "torchscript" else f"getattr(loaded, {method!r})"
        body += ["try:", f"    print({json.dumps(method)}, {call}({', '.join(args)}))", "except Exception as error:"]
        body += [f"    print({json.dumps(method)}, 'raised', type(error).__name__, error)"]
    text = "\n".join(body) + "\n"
    return text if len(text) <= LONGEST else None


def _expression(value: Any) -> str:
    """A Python expression for a neutral value (see :mod:`torch_compat.values`).

    Raises:
        _NotPlainError: there is no short expression.
    """
    if value is None or isinstance(value, bool | int | str):
        return repr(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_expression, value))}]"
    if not isinstance(value, dict) or len(value) != 1:
        raise _NotPlainError
    ((kind, body),) = value.items()
    if kind == "float":
        return repr(body) if isinstance(body, int | float) else f"float({str(body)!r})"
    if kind == "complex":
        return f"complex({', '.join(f'float({str(part)!r})' for part in body)})"
    if kind == "tuple":
        return f"({', '.join(map(_expression, body))}{',' if len(body) == 1 else ''})"
    if kind == "dict":
        return "{" + ", ".join(f"{_expression(key)}: {_expression(item)}" for key, item in body) + "}"
    if kind == "dtype" and str(body).isidentifier():
        return f"torch.{body}"
    if kind == "device":
        return f"torch.device({str(body)!r})"
    if kind == "tensor" and str(body["dtype"]).isidentifier():
        text = f"tensor(torch.{body['dtype']}, {body['shape']!r}, {body['strides']!r}, {body['bytes']!r})"
        return f"{text}.requires_grad_()" if body.get("requires_grad") else text
    raise _NotPlainError
