"""``torch-compat explain``: explain a rule, a waiver, a deprecation or anything else with an ID, and where it is defined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from torch_compat.cli._output import format_option, print_json, stdout
from torch_compat.cli._root import root_option
from torch_compat.report.explained import explained
from torch_compat.report.paragraphs import paragraph

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["explain"]


@click.command()
@click.argument("name", metavar="ID")
@root_option
@format_option
def explain(name: str, root: Path | None, format_: str) -> int:
    """Explain the entry with this ID.

    ID can name a rule, waiver, deprecation, change, behavior, format version, set of load options, profile, timeline or
    release. For the ID of a finding, its rule and its waivers are explained. For an operator (aten::div, aten::div.Tensor) or a function
    (torch.div), everything about it is explained: waivers, changes, format versions and deprecations.
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
    if isinstance(value, list) and any(isinstance(item, dict) or len(str(item)) > 30 for item in value):
        yield f"  {key}:"
        for item in value:
            message = (
                ", ".join(f"{name} {entry}" for name, entry in item.items() if entry not in (None, ""))
                if isinstance(item, dict)
                else item
            )
            yield f"    {message}"
    elif isinstance(value, list):
        yield f"  {key}: {', '.join(map(str, value))}"
    elif isinstance(value, dict):
        yield f"  {key}: {', '.join(f'{name} {entry}' for name, entry in value.items() if entry not in (None, ''))}"
    else:
        first, *rest = str(value).strip().splitlines()
        yield f"  {key}: {first}"
        yield from (f"    {line}" for line in rest)
