"""Recorded operator calls, ``fixtures/operators/calls.jsonl``, and every release's results in ``calls.txt`` next to it.

The calls are frozen: all releases were called with exactly these arguments. They are small, and chosen so that each operator version in the
reference reader is called, and distinguished from the previous version if a call can do so, and that each upgrader runs. The results are a
section of the survey (``harness/torch_compat/inside/calls.py``), so ``admit`` obtains them from a new release.

An argument is a pair of its TorchScript type and its value in neutral form. The type ``None`` represents itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from torch_compat.corpus.json_lines import read_lines, write_lines
from torch_compat.errors import CorpusError
from torch_compat.places import inside

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["CALLS", "NO_CALL", "RecordedCall", "recorded_calls", "write_calls"]

CALLS: Final = "operators/calls.jsonl"
NO_CALL: Final = "no call"
"""The answer from a release that does not have the operator, overload or dtype."""
KIND: Final = "calls"

Argument = tuple[str, Any]


class RecordedCall(NamedTuple):
    """One call.

    Attributes:
        name: the operator with the intended overload, ``aten::add.Tensor``; a release's compiler does its own overload resolution.
        number: distinguishes calls with the same name.
        file_format: the version of the archive whose program makes the call, which upgraders check; 0 if its source is compiled.
    """

    name: str
    number: int
    args: tuple[Argument, ...]
    keywords: dict[str, Argument]
    file_format: int = 0

    @property
    def key(self) -> str:
        """The key of its answers."""
        return f"{self.name}{f'@{self.file_format}' if self.file_format else ''} {self.number}"

    @property
    def operator(self) -> str:
        """The operator name without the overload."""
        return self.name.partition(".")[0]

    def as_json(self) -> dict[str, Any]:
        """The form that is sent to a release."""
        return {"key": self.key, **self._asdict()}


def recorded_calls(fixtures: Path) -> list[RecordedCall]:
    """Return all recorded calls; empty if the corpus has none.

    Raises:
        CorpusError: the file is damaged, or a line is not a call.
    """
    path = inside(fixtures, CALLS)
    if not path.exists():
        return []
    results = []
    for number, entry in read_lines(path, KIND)[1]:
        try:
            args = tuple((str(kind), value) for kind, value in entry["args"])
            keywords = {str(name): (str(kind), value) for name, (kind, value) in entry["keywords"].items()}
            results.append(RecordedCall(str(entry["name"]), int(entry["number"]), args, keywords, int(entry["file_format"])))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CorpusError(f"is not an operator call: {error!r}", where=f"{path}:{number}", code="bad-line") from None
    return results


def write_calls(fixtures: Path, calls: Iterable[RecordedCall]) -> None:
    """Write all calls. Recorded answers to calls that are no longer included become useless."""
    entries = (
        {"kind": "call", **call._asdict()} for call in sorted(calls, key=lambda call: (call.name, call.file_format, call.number))
    )
    write_lines(inside(fixtures, CALLS), {"kind": KIND}, entries)
