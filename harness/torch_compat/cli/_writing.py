"""``--output FORMAT=FILE``: one run can write several formats."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from torch_compat.cli._format import write_output
from torch_compat.errors import UsageError
from torch_compat.report.machine.forms import FORMS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torch_compat.report.machine.entries import CommandReport

__all__ = ["machine_outputs_option", "outputs_of", "outputs_option", "write_outputs"]

WHOLE = ("json", "markdown")
"""Output formats that a command writes itself."""


def outputs_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--output`` to a command."""
    return _option(command, (*WHOLE, *FORMS))


def machine_outputs_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--output`` to a command that has no formats of its own."""
    return _option(command, tuple(FORMS))


def _option(command: Callable[..., Any], forms: tuple[str, ...]) -> Callable[..., Any]:
    return click.option(
        "--output",
        "outputs",
        multiple=True,
        metavar="FORMAT=FILE",
        help=(
            f"Also write this format to this file; can be repeated. Formats: {', '.join(forms)}. `github` writes GitHub "
            "workflow commands (annotations); `summary` writes Markdown for a step summary."
        ),
    )(command)


def outputs_of(given: tuple[str, ...], whole: tuple[str, ...] = WHOLE) -> dict[Path, str]:
    """The format of each file.

    Parameters:
        whole: the formats that the command writes itself.

    Raises:
        UsageError: it is not FORMAT=FILE, there is no such format, or a file is named twice.
    """
    results: dict[Path, str] = {}
    for item in given:
        form, equals, name = item.partition("=")
        if not equals or not name or form not in {*whole, *FORMS}:
            what = f"{form!r} is not a known format" if equals and name else f"{item!r} is not FORMAT=FILE"
            raise UsageError(
                f"--output: {what}",
                hint=f"use one of these formats: {', '.join((*whole, *FORMS))}; for example, --output junit=report.xml",
                code="output",
            )
        if Path(name) in results:
            raise UsageError(f"--output: {name} is given twice", code="output")
        results[Path(name)] = form
    return results


def write_outputs(outputs: Mapping[Path, str], run: CommandReport, whole: Mapping[str, Callable[[], str]]) -> None:
    """Write every requested file.

    Parameters:
        whole: functions that create the command's own formats, by name.

    Raises:
        UsageError: a directory does not exist.
        WriteError: a file cannot be written.
    """
    for path, form in outputs.items():
        write_output(path, whole[form]() if form in whole else FORMS[form](run))
