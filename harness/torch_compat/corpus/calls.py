"""Recorded calls of operators: ``fixtures/operators/calls.jsonl``, and what every release answers to them, ``calls.txt`` beside it.

The calls are frozen: all releases were asked for these very arguments. They are small, and chosen so that each version of an operator that
the reference reader has is called, and told apart from the one before it where some call does so, and that each upgrader runs. The answers are a section of the survey
(``harness/torch_compat/inside/calls.py``), so ``admit`` asks a new release for them.

An argument is a pair of its TorchScript type and its value in the neutral form. The type ``None`` stands for itself.
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
        name: of the operator with the overload for which it was made, ``aten::add.Tensor``; a release's compiler chooses for itself.
        number: tells calls of one name apart.
        file_format: the version of the archive whose program makes the call, which upgraders look at; 0 where its source is compiled.
    """

    name: str
    number: int
    args: tuple[Argument, ...]
    keywords: dict[str, Argument]
    file_format: int = 0

    @property
    def key(self) -> str:
        """Of its answers."""
        return f"{self.name}{f'@{self.file_format}' if self.file_format else ''} {self.number}"

    @property
    def operator(self) -> str:
        """The name without the overload."""
        return self.name.partition(".")[0]

    def as_json(self) -> dict[str, Any]:
        """As a release is asked."""
        return {"key": self.key, **self._asdict()}


def recorded_calls(fixtures: Path) -> list[RecordedCall]:
    """All recorded calls; none where a corpus has none.

    Raises:
        CorpusError: the file is damaged, or a line is no call.
    """
    path = inside(fixtures, CALLS)
    if not path.exists():
        return []
    found = []
    for number, entry in read_lines(path, KIND)[1]:
        try:
            args = tuple((str(kind), value) for kind, value in entry["args"])
            keywords = {str(name): (str(kind), value) for name, (kind, value) in entry["keywords"].items()}
            found.append(RecordedCall(str(entry["name"]), int(entry["number"]), args, keywords, int(entry["file_format"])))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CorpusError(f"is not an operator call: {error!r}", where=f"{path}:{number}", code="bad-line") from None
    return found


def write_calls(fixtures: Path, calls: Iterable[RecordedCall]) -> None:
    """Write all of them. Answers to calls that are not among them any more are of no use."""
    entries = (
        {"kind": "call", **one._asdict()} for one in sorted(calls, key=lambda one: (one.name, one.file_format, one.number))
    )
    write_lines(inside(fixtures, CALLS), {"kind": KIND}, entries)
