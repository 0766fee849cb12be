"""``torch-compat explain``: explain a rule, a waiver, a deprecation or anything else with an ID, and where it is defined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click
from rich.text import Text

from torch_compat.cli._output import format_option, print_json, stdout
from torch_compat.cli._root import root_option
from torch_compat.report.explained import explained
from torch_compat.report.paragraphs import paragraph
from torch_compat.words import american

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["explain"]

LONG: Final = 30
"""The length from which each item of a list has a line of its own."""


@click.command()
@click.argument("name", metavar="ID")
@root_option
@format_option
def explain(name: str, root: Path | None, format_: str) -> int:
    """Explain the entry with this ID.

    ID can name a rule, waiver, deprecation, change, behavior, format version, set of load options, profile, timeline or
    release. For the ID of a finding, its rule and its waivers are explained. For an operator (aten::div, aten::div.Tensor) or a function
    (torch.div), everything about it is explained: waivers, changes, format versions and deprecations.

    Exit status: 0 there is such an entry; 2 invalid usage, or there is no such entry; 3 internal error in torch-compat.
    """
    result = explained(root, name)
    if format_ == "json":
        print_json({"id": name, "found": [{"kind": entry.kind, "id": entry.id, "says": entry.says} for entry in result]})
        return 0
    console = stdout()
    for number, item in enumerate(result):
        if number:
            console.print()
        console.print(Text(f"{item.kind} {item.id}", style="bold"))
        for key, value in item.says.items():
            for line in _lines(key, value):
                paragraph(console, line)
    return 0


def _lines(key: str, value: Any) -> Iterator[str]:
    """A value in readable lines."""
    if value is None or value in ([], {}):
        return
    name = key.replace("_", " ")
    if isinstance(value, list) and any(isinstance(item, dict) or len(str(item)) > LONG for item in value):
        yield f"  {name}:"
        for item in value:
            yield f"    {_IN_WORDS.get(key, _text)(item)}"
    elif isinstance(value, list | dict | bool):
        yield f"  {name}: {_IN_WORDS.get(key, _text)(value)}"
    else:
        first, *rest = (american(str(value)) if key == "kind" else str(value)).strip().splitlines()
        yield f"  {name}: {first}"
        yield from (f"    {line}" for line in rest)


def _text(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, dict):
        return "; ".join(f"{key}: {_text(item)}" for key, item in value.items() if item not in (None, ""))
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _event(event: Any) -> str:
    """An event of a deprecation."""
    text = f"{event['day']}: {event['what']} in {event['release']}"
    text += f", nightly of {event['nightly']}" if event["nightly"] else ""
    return text + (f", allowed {event['allowed']}" if event["allowed"] else "")


def _documented(docs: Any) -> str:
    """What the documentation of a release says about a deprecation."""
    if docs.get("absent"):
        return f"{docs['release']}: does not mention it"
    announces = "".join(f', announces "{text}"' for text in docs.get("announces") or ())
    return f'{docs["release"]}: mentions it as "{docs["holds"]}"{announces}'


def _arguments(load: Any) -> str:
    """The arguments of torch.load."""
    return ", ".join(f"{key}={item!r}" for key, item in load.items())


_IN_WORDS: Final = {"events": _event, "docs": _documented, "load": _arguments}
