"""Shows counterexamples on one line, and as a pytest test with an archive that both releases load."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from torch_compat.errors import CorpusError
from torch_compat.runtime.encoding import Decoder
from torch_compat.runtime.tensor import Tensor

if TYPE_CHECKING:
    from torch_compat.proving.oracles import CallOutcome
    from torch_compat.proving.programs import Form

__all__ = ["Counterexample", "archive_name", "pytest_text", "shown", "told"]

LONGEST: Final = 160
CONTROL: Final = {"object", "dict", "tuple"}


@dataclass(frozen=True)
class Counterexample:
    """The smallest call found that the upgrader does not preserve.

    Attributes:
        form: the program.
        args: its inputs in neutral form.
        old: its outcome before the change, and the oracle; new: the same after it.
        said: a description of the difference.
        archive: the bytes of the program.
        confirmed: whether real releases answered on both sides.
        sort: the sort of change: ``dtype``, ``shape``, ``value of float64``, ``raised``...
    """

    form: Form
    args: list[Any]
    old: CallOutcome
    new: CallOutcome
    said: str
    archive: bytes
    confirmed: bool
    sort: str


def shown(values: list[Any]) -> str:
    """Return values in neutral form on one line, truncated if long."""
    return ", ".join(_one(value) for value in values)


def _one(value: Any) -> str:
    if isinstance(value, dict) and CONTROL & value.keys():
        return _cut(json.dumps(value))
    if isinstance(value, list):
        return f"[{', '.join(map(_one, value))}]"
    try:
        (tensor,) = Decoder().decode({"tuple": [value]})
    except CorpusError:  # 1.5 returns tensors of -1 elements
        return _cut(json.dumps(value))
    if not isinstance(tensor, Tensor):
        return repr(tensor)
    shape = f", shape={list(tensor.array.shape)}" if 0 in tensor.array.shape else ""
    return f"tensor({_cut(repr(tensor.array.tolist()))}, {tensor.dtype.name}{shape})"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def told(outcome: CallOutcome) -> str:
    """Return an outcome on one line."""
    if outcome.turn is not None:
        return shown([outcome.turn["value"]])
    return f"{outcome.kind}: {last_line(outcome.said)}"


def last_line(text: str) -> str:
    """Return the message of an error below the trace of a program."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    return (lines[-1] if lines else "")[:LONGEST]


def archive_name(upgrader: str, at: int) -> str:
    """Return the name of a counterexample's files, without suffix."""
    return f"{upgrader}_counterexample_{at}"


def pytest_text(upgrader: str, name: str, counterexample: Counterexample) -> str:
    """Return the source of a pytest test that fails as long as the counterexample holds."""
    given = "".join(f"        {_python(value)},\n" for value in counterexample.args)
    wanted = counterexample.old.turn["value"] if counterexample.old.turn is not None else None
    return f'''"""A counterexample to the upgrader {upgrader}, found by torch-compat prove.

Call: {counterexample.form.call}
Before: {told(counterexample.old)}
After: {told(counterexample.new)}
"""

from pathlib import Path

import torch


def test_{name}() -> None:
    program = torch.jit.load(str(Path(__file__).with_name("{name}.pt")))
    result = program(
{given}    )
    expected = {_python(wanted)}
    torch.testing.assert_close(result, expected, equal_nan=True)
'''


def _python(value: Any) -> str:
    if isinstance(value, dict) and "tensor" in value:
        (tensor,) = Decoder().decode({"tuple": [value]})
        text = repr(tensor.array.tolist()).replace("nan", 'float("nan")').replace("inf", 'float("inf")')
        flat = f"torch.tensor({text}, dtype=torch.{tensor.dtype.name})"
        return f"{flat}.reshape({list(tensor.array.shape)})" if 0 in tensor.array.shape else flat
    if isinstance(value, dict) and "float" in value:
        number = value["float"]
        return f'float("{number}")' if isinstance(number, str) else repr(float(number))
    if isinstance(value, dict) and "complex" in value:
        return f"complex({', '.join(repr(float(part)) for part in value['complex'])})"
    if isinstance(value, list):
        return f"[{', '.join(map(_python, value))}]"
    return repr(value) if value is None or value.__class__ in {bool, int, str} else f"None  # {json.dumps(value)}"
