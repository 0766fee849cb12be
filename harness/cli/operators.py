"""``torch-compat operators``: what readers know of operators."""

from __future__ import annotations

from typing import Any

import click

from harness.cli._format import format_option, print_json
from harness.errors import UsageError

__all__ = ["operators"]


@click.command()
@click.option("--reference", is_flag=True, help="The operators that the reference reader has.")
@format_option
def operators(*, reference: bool, format_: str) -> int:
    """List operators, with the kinds of first argument they are told apart by and the releases their versions start at."""
    if not reference:
        raise UsageError("nothing was asked for", hint="give --reference: the operators that the reference reader has")
    from harness.runtime.registry import known  # noqa: PLC0415 - imports every family of operators

    rows = [_row(name, kinds) for name, kinds in known().items()]
    if format_ == "json":
        print_json({"operators": rows})
        return 0
    for row in rows:
        click.echo(f"{row['operator']}: " + "; ".join(_text(overload) for overload in row["overloads"]))
    click.echo(f"{len(rows)} operators")
    return 0


def _row(name: str, kinds: dict[str, tuple[tuple[int, int, int], ...]]) -> dict[str, Any]:
    overloads = [
        {"first_argument": kind, "since": [".".join(map(str, release)) for release in releases]}
        for kind, releases in kinds.items()
    ]
    return {"operator": name, "overloads": overloads}


def _text(overload: dict[str, Any]) -> str:
    return f"{overload['first_argument']} since {', '.join(overload['since'])}"
