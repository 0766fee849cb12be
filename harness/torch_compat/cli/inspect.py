"""``torch-compat inspect``: identify archives, their contents, and the releases that read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from torch_compat.cli._format import format_option
from torch_compat.cli._inspected_machine import run_of
from torch_compat.cli._inspecting import inspected
from torch_compat.cli._writing import machine_outputs_option, outputs_of, write_outputs
from torch_compat.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch_compat.cli._inspected_machine import Mark

__all__ = ["inspect"]


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--tree", is_flag=True, help="Also print the contents: keys, types, dtypes and shapes (text format only).")
@click.option("--code", is_flag=True, help="Also print the TorchScript source (text format only).")
@click.option(
    "--fail-on",
    multiple=True,
    metavar="CONDITION",
    help="Exit with status 1 if a file matches this condition: danger (it references harmful code), damage, changes (an operator "
    "that it uses gives different results in a newer release than in the release that wrote the file), or release:X (torch X does not load it with default arguments). Can be repeated.",
)
@click.option(
    "--quick",
    is_flag=True,
    help="Do not read weights: skip the SHA-256 and the checksums of large records. The output says what was not checked.",
)
@machine_outputs_option
@format_option
def inspect(
    paths: tuple[str, ...],
    *,
    tree: bool,
    code: bool,
    fail_on: tuple[str, ...],
    quick: bool,
    outputs: tuple[str, ...],
    format_: str,
) -> int:
    """Identify archives, show their contents, and list the torch releases that can load them.

    Nothing in an archive is executed or imported, and torch is not needed. If PATH is a directory, every file below it is inspected,
    regardless of its name; links to directories are not followed, and a file that is not a PyTorch archive is listed as other. A single file
    is shown in full, several files as a table with one line each, in the given order.

    Exit status: 0 every archive is intact; 1 a file matches a --fail-on condition; 2 a file could not be opened (the reason is printed on
    standard error), is damaged, or was given on the command line but is not a PyTorch archive; the results for all other files are complete; 3 internal error in torch-compat; 4 no files found.
    """
    if quick and "damage" in fail_on:
        raise UsageError("--quick does not verify checksums, so --fail-on damage cannot be checked", hint="use only one of them")
    asked = outputs_of(outputs, whole=())

    def write(marks: Sequence[Mark], status: int) -> None:
        write_outputs(asked, run_of(marks, status), {})

    return inspected(paths, tree, code, format_, fail_on, write if asked else None, quick=quick)
