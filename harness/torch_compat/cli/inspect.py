"""``torch-compat inspect``: what archives are, what they hold, and which releases read them."""

from __future__ import annotations

import click

from torch_compat.cli._format import format_option
from torch_compat.cli._inspecting import inspected

__all__ = ["inspect"]


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--tree", is_flag=True, help="Also print the contents: keys, types, dtypes and shapes (text).")
@click.option("--code", is_flag=True, help="Also print TorchScript source (text).")
@format_option
def inspect(paths: tuple[str, ...], *, tree: bool, code: bool, format_: str) -> int:
    """Say what archives are, what they hold, and which releases of torch read them.

    Nothing in an archive is executed or imported, and torch is not needed. A PATH that is a folder stands for every file in it and
    in the folders in it, whatever its name; links to folders are not followed. One file is shown on one screen, several in a
    table, one line each, in their order.

    Exit status: 0 all are sound archives of PyTorch; 2 one of them could not be read, is damaged or is something else: its row says
    so, and all others are complete; 3 a fault of torch-compat; 4 there was no file.
    """
    return inspected(paths, tree, code, format_)
