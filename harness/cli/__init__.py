"""The command ``torch-compat``: one file per command, imported when it is used."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from typing import NoReturn

import click

from harness import __version__
from harness.errors import HarnessError

__all__ = ["main"]

COMMANDS = {
    "replay": "Observe with the chosen readers, judge, report: the main job.",
    "inspect": "Say what archives are, what they hold and which releases read them.",
    "run": "Run a TorchScript or mobile program, without torch or with a real release.",
    "judge": "Judge the recorded observations.",
    "observe": "Let real releases read fixtures, and put down what happens.",
    "produce": "Let a real release write fixtures.",
    "operators": "Operators: what changed from one release to another, the history of one, what breaks.",
    "extension": "Record what an extension uses of PyTorch's operators, and say which releases it fits.",
    "readers": "List, build and remove environments of real releases; ask for new ones.",
    "deprecations": "Say of each deprecation what was early, what is late, and what may happen next.",
    "plan": "Plan a change: the schedule that keeps every promise.",
    "explain": "Explain a rule, a waiver, a deprecation or anything else with an id.",
    "new": "Begin a recipe, a deprecation, a rule or a waiver, to be made your own.",
}
EPILOG = (
    "Exit status: 0 all promises hold; 1 a promise is broken; 2 wrong usage or an invalid file; 3 a fault of torch-compat; "
    "4 incomplete: something that was required could not be checked."
)


class _Lazy(click.Group):
    """Knows its commands by name and imports one only to run it or to show its help."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        if cmd_name not in COMMANDS:
            return None
        gc.disable()  # what is imported stays
        try:
            command = getattr(importlib.import_module(f"harness.cli.{cmd_name}"), cmd_name)
        finally:
            gc.freeze()
            gc.enable()
        assert isinstance(command, click.Command)  # noqa: S101 - a file of this folder
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_Lazy, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="torch-compat")
def torch_compat() -> None:
    """Says, with evidence from real releases, which PyTorch archives still load and still compute what they computed."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command and exit. No error, foreseen or not, shows a stack trace, unless TORCH_COMPAT_DEBUG is set."""
    try:
        _run(arguments)
    finally:
        gc.freeze()  # the process ends: nothing has to be collected any more


def _run(arguments: list[str] | None) -> NoReturn:
    try:
        status = torch_compat.main(arguments, prog_name="torch-compat", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        sys.exit(2)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        click.echo("torch-compat: stopped", err=True)
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # whoever read our output has had enough
        sys.exit(141)
    except HarnessError as error:
        _explain(error)
        sys.exit(error.exit_status)
    except Exception as error:
        if os.environ.get("TORCH_COMPAT_DEBUG"):
            raise
        import traceback  # noqa: PLC0415 - only a fault needs it

        where = traceback.extract_tb(error.__traceback__)[-1]
        click.echo(f"torch-compat: a fault of ours: {type(error).__name__}: {error}", err=True)
        click.echo(f"  at {os.path.basename(where.filename)}:{where.lineno} in {where.name}", err=True)  # noqa: PTH119 - only text
        click.echo("  set TORCH_COMPAT_DEBUG=1 to see all of it, and please report it", err=True)
        sys.exit(3)
    sys.exit(status if isinstance(status, int) else 0)


def _explain(error: HarnessError) -> None:
    located = f"{error.where}: {error.message}" if error.where else error.message
    click.echo(f"torch-compat: {_plain(located)}", err=True)
    if error.hint:
        click.echo(f"  {_plain(error.hint)}", err=True)


def _plain(text: str) -> str:
    """Text with control characters, as names of files and contents of archives may have them, shown as escapes; lines stay."""
    return "".join(one if one.isprintable() or one == "\n" else ascii(one)[1:-1] for one in text)
