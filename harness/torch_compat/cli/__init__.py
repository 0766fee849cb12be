"""The ``torch-compat`` command: one file per subcommand, imported on use."""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn

from torch_compat.cli._terminal import harmless_output
from torch_compat.errors import HarnessError
from torch_compat.escapes import escaped_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch_compat.cli._commands import top_level

__all__ = ["main", "top_level"]


def __getattr__(name: str) -> Any:
    if name != "top_level":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from torch_compat.cli._commands import top_level  # noqa: PLC0415 - imports click, which some commands do not need

    return top_level


def main(arguments: list[str] | None = None) -> None:
    """Run the command and exit. Errors, expected or not, show no stack trace unless TORCH_COMPAT_DEBUG is set."""
    try:
        with harmless_output():
            _run(sys.argv[1:] if arguments is None else arguments)
    finally:
        gc.freeze()  # the process is about to end: nothing needs to be collected


def _run(arguments: list[str]) -> NoReturn:
    try:
        gc.disable()  # imported modules stay
        try:
            command = _command(arguments)
        finally:
            gc.freeze()
            gc.enable()
        status = command()
        sys.stdout.flush()  # so that write errors are reported here
    except KeyboardInterrupt:
        _say("torch-compat: stopped")
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader of our output has closed it
        sys.exit(141)
    except HarnessError as error:
        _explain(error)
        sys.exit(error.exit_status)
    except Exception as error:
        if os.environ.get("TORCH_COMPAT_DEBUG"):
            raise
        import traceback  # noqa: PLC0415 - needed only for an internal error

        where = traceback.extract_tb(error.__traceback__)[-1]
        _say(f"torch-compat: internal error: {type(error).__name__}: {escaped_lines(str(error))}")
        _say(f"  at {os.path.basename(where.filename)}:{where.lineno} in {where.name}")  # noqa: PTH119 - only text
        _say("  this is a bug in torch-compat, please report it; TORCH_COMPAT_DEBUG=1 shows the traceback")
        sys.exit(3)
    sys.exit(status if isinstance(status, int) else 0)


def _command(arguments: list[str]) -> Callable[[], Any]:
    """Parse the arguments into a callable. Avoids importing click if possible, which takes longer than inspecting a file."""
    if arguments[:1] == ["inspect"]:
        from torch_compat.cli._inspecting import inspected, plain  # noqa: PLC0415 - needed only here

        given = plain(arguments[1:])
        if given is not None:
            return lambda: inspected(*given)
    from torch_compat.cli._commands import by_click  # noqa: PLC0415 - imports click

    return lambda: by_click(arguments)


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def _explain(error: HarnessError) -> None:
    located = f"{error.where}: {error.message}" if error.where else error.message
    _say(f"torch-compat: {escaped_lines(located)}")
    if error.hint:
        _say(f"  {escaped_lines(error.hint)}")
