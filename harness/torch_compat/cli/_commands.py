"""All commands as click commands: one file per command, imported on use."""

from __future__ import annotations

import gc
import importlib
import sys
from typing import Any

import click

from torch_compat.cli._help import WholeWords
from torch_compat.cli._listed import COMMANDS, EPILOG
from torch_compat.version import __version__
from torch_compat.words import suggest

__all__ = ["by_click", "top_level"]


click.Context.formatter_class = WholeWords  # for every command


class _Lazy(click.Group):
    """A group that knows its commands by name, and imports a command only to run it or to show its help."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        if cmd_name not in COMMANDS:
            return None
        gc.disable()  # imported modules stay
        try:
            command = getattr(importlib.import_module(f"torch_compat.cli.{cmd_name}"), cmd_name)
        finally:
            gc.freeze()
            gc.enable()
        assert isinstance(command, click.Command)  # noqa: S101 - a file of this folder
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; if there is none, the error suggests the nearest names."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            hint = suggest(args[0], COMMANDS, "torch-compat --help lists all commands.")
            raise click.UsageError(f"No such command {args[0]!r}. {hint.replace('did', 'Did', 1)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_Lazy, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="torch-compat")
def top_level() -> None:
    """Check which PyTorch archives still load and compute the same results, using evidence from real releases."""


def by_click(arguments: list[str]) -> Any:
    """Parse the arguments, and run the command."""
    try:
        return top_level.main(arguments, prog_name="torch-compat", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        sys.exit(2)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except click.Abort:
        raise KeyboardInterrupt from None
