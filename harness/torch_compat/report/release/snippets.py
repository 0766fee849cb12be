"""Recorded calls as executable Python, and recorded results as Python prints them."""

from __future__ import annotations

import base64
import math
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from torch_compat.corpus.manifest import SYNTHETIC, release_folder
from torch_compat.report.release.items import short
from torch_compat.values.compare import tensor_array
from torch_compat.values.dtypes import DTYPES, SINCE
from torch_compat.values.form import kind_of
from torch_compat.values.normalise import headline

if TYPE_CHECKING:
    from torch_compat.corpus.manifest import Fixture

__all__ = ["CallTurn", "call_of", "loads", "raised", "returned", "snippet"]

MOST: Final = 32
"""Maximum number of tensor elements that are written out."""
LOADS: Final = {
    "torch-save": "torch.load({})",
    "torchscript": "torch.jit.load({})",
    "mobile": "torch.jit.mobile._load_for_lite_interpreter({})",
    "package": 'torch.package.PackageImporter({}).load_pickle("model", "object.pkl")',
    "export": "torch.export.load({})",
    "distributed": "torch.distributed.checkpoint.format_utils.dcp_to_torch_save({}, 'whole.pt')",
}
KEYWORDS: Final = frozenset({"weights_only", "mmap"})
"""The load options that are arguments of torch.load. The others are settings that a single line of Python does not show."""
_CALL = re.compile(r"calls\[(\d{1,6})\]\.(first|second)")
_REAL: Final = frozenset(row.name for row in DTYPES.values() if row.kind == "float" and row.size > 1)
_WHOLE: Final = frozenset(row.name for row in DTYPES.values() if row.kind == "integer" and row.name not in SINCE)


class CallTurn(NamedTuple):
    """One turn of a call of a program."""

    number: int
    turn: str


class _Untold(Exception):  # noqa: N818 - not an error: a value that is not written as Python
    """A value without a short literal in Python."""


def call_of(where: str) -> CallTurn | None:
    """The call that contains a location in a result."""
    match = _CALL.match(where)
    return CallTurn(int(match[1]), match[2]) if match else None


def loads(fixture: Fixture, options: dict[str, Any]) -> str:
    """The expression that loads an archive; "" if load options are not arguments."""
    if set(options) - KEYWORDS or (options and fixture.family != "torch-save"):
        return ""
    folder = SYNTHETIC if fixture.release == SYNTHETIC else release_folder(fixture.release)
    arguments = [repr(f"fixtures/{folder}/{fixture.file}"), *(f"{name}={value!r}" for name, value in sorted(options.items()))]
    return LOADS[fixture.family].format(", ".join(arguments)).replace("'", '"')


def snippet(fixture: Fixture, options: dict[str, Any], called: CallTurn | None) -> str:
    """Lines of Python that load an archive and show a difference; "" if there are none."""
    load = loads(fixture, options)
    if not load:
        return ""
    imports = {
        "mobile": "import torch.jit.mobile", "package": "import torch.package", "export": "import torch.export",
        "distributed": "import torch.distributed.checkpoint.format_utils",
    }  # fmt: skip
    lines = [imports.get(fixture.family, "import torch"), ""]
    if fixture.family == "distributed":
        return "\n".join([*lines, load, 'print(torch.load("whole.pt", weights_only=False))'])
    if called is None or not fixture.calls:
        name = "loaded" if fixture.family in {"torch-save", "package"} else "program"
        return "\n".join([*lines, f"{name} = {load}", *(["print(loaded)"] if name == "loaded" else [])])
    call = fixture.calls[called.number]
    try:
        arguments = ", ".join(_written(arg) for arg in call["args"])
    except _Untold:
        return ""
    target = "program.module()" if fixture.family == "export" else "program"
    text = f"{target}({arguments})" if call["method"] == "forward" else f"{target}.{call['method']}({arguments})"
    turns = [text] if called.turn == "first" else [text, text]
    return "\n".join([*lines, f"program = {load}", *turns[1:], f"print({turns[0]})"])


def returned(result: dict[str, Any], called: CallTurn | None) -> str:
    """The part of a result for a call, or for the load, in one line."""
    if "error" in result:
        return _error(result["error"])
    for end in ("crashed", "timed-out", "unstable", "unsupported"):
        if end in result:
            return str(result[end].get("signal") or end)
    if called is None:
        return short(_shown(result["value"])) if "value" in result else "loads"
    try:
        turn = result["calls"][called.number][called.turn]
    except (KeyError, IndexError):
        return "was not called"
    return _error(turn["error"]) if "error" in turn else short(_shown(turn["value"]))


def raised(kind: str, message: str) -> str:
    """An error in one line, with its class only once: newer releases also quote it in the message."""
    name, text = kind.removeprefix("builtins."), headline(message)
    return short(text if text.startswith(f"{name}: ") or not name else f"{name}: {text}")


def _error(error: dict[str, Any]) -> str:
    return raised(str(error["type"]), str(error["message"]))


def _shown(value: Any) -> str:
    try:
        return _written(value)
    except _Untold:
        kind = kind_of(value) if isinstance(value, dict) else type(value).__name__
        return f"a value of the kind {kind}"


def _written(value: Any) -> str:
    """A value as Python."""
    if value is None or isinstance(value, bool | int | str):
        return repr(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    if not isinstance(value, dict) or len(value) != 1:
        raise _Untold
    ((kind, body),) = value.items()
    if kind == "float":
        return _number(body)
    if kind == "complex":
        return f"complex({_number(body[0])}, {_number(body[1])})"
    if kind == "tuple":
        return f"({', '.join(map(_written, body))}{',' if len(body) == 1 else ''})"
    if kind == "dict":
        return "{" + ", ".join(f"{_written(key)}: {_written(item)}" for key, item in body) + "}"
    if kind == "dtype":
        return f"torch.{str(body).removeprefix('torch.')}"
    if kind == "device":
        return f"torch.device({body!r})"
    if kind == "tensor":
        return _tensor(body)
    raise _Untold


def _number(body: Any) -> str:
    number = float(body)
    return f'float("{number}")' if math.isnan(number) or math.isinf(number) else repr(number)


def _tensor(body: dict[str, Any]) -> str:
    dtype, shape = body["dtype"], body["shape"]
    if dtype not in {*_REAL, *_WHOLE, "bool"} or math.prod(shape) > MOST or len(shape) > MOST:
        raise _Untold
    flat = tensor_array(dtype, base64.b64decode(body["bytes"])).tolist()
    texts = (
        [_number(item) for item in flat] if dtype in _REAL else [repr(bool(item) if dtype == "bool" else item) for item in flat]
    )
    if 0 in shape and len(shape) > 1:
        return f"torch.zeros({shape}, dtype=torch.{dtype})"
    return f"torch.tensor({_nested(texts, shape)}, dtype=torch.{dtype})"


def _nested(texts: list[str], shape: list[int]) -> str:
    if not shape:
        return texts[0]
    step = len(texts) // shape[0] if shape[0] else 0
    return f"[{', '.join(_nested(texts[at * step : (at + 1) * step], shape[1:]) for at in range(shape[0]))}]"
