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
    found = explained(root, name)
    if format_ == "json":
        print_json({"id": name, "found": [{"kind": one.kind, "id": one.id, "says": one.says} for one in found]})
        return 0
    console = stdout()
    for number, one in enumerate(found):
        if number:
            console.print()
        console.print(Text(f"{one.kind} {one.id}", style="bold"))
        for key, value in one.says.items():
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
            said = (
                ", ".join(f"{name} {one}" for name, one in item.items() if one not in (None, ""))
                if isinstance(item, dict)
                else item
            )
            yield f"    {said}"
    elif isinstance(value, list):
        yield f"  {key}: {', '.join(map(str, value))}"
    elif isinstance(value, dict):
        yield f"  {key}: {', '.join(f'{name} {one}' for name, one in value.items() if one not in (None, ''))}"
    else:
        first, *rest = str(value).strip().splitlines()
        yield f"  {key}: {first}"
        yield from (f"    {line}" for line in rest)
