"""Runs other programs on behalf of an environment: in a clean process environment, with all their output in a log."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from torch_compat.errors import EnvironmentUnavailable

__all__ = ["Command", "Commands", "Failed", "Run", "clean_environ", "run_command"]

Command = Sequence[str | Path]

_MISLEADING = (
    "LD_BIND_NOW",  # binds every symbol at load: readers with stubs need the opposite
    "LD_LIBRARY_PATH",  # would let this machine's libraries replace the release's own
    "LD_PRELOAD",
    "PIP_PREFIX",  # these four would install outside the environment
    "PIP_REQUIRE_VIRTUALENV",
    "PIP_TARGET",
    "PIP_USER",
    "VIRTUAL_ENV",
    "__PYVENV_LAUNCHER__",
)


def clean_environ(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return this process's environment variables without those that change the behavior of another Python, pip or loader.

    The user's index, proxy and certificate settings are kept.
    """
    kept = {name: value for name, value in os.environ.items() if name not in _MISLEADING and not name.startswith("PYTHON")}
    return kept | dict(more or {})


class Failed(Exception):  # noqa: N818 - internal to these modules; each step translates it
    """A command ended with a nonzero status, or could not be started."""

    def __init__(self, command: Command, output: str) -> None:
        super().__init__(f"{command[0]} failed")
        self.command = command
        self.output = output


class Run(Protocol):
    """Runs one command to its end and returns what it wrote to standard output."""

    def __call__(self, command: Command, /, *, environ: Mapping[str, str], cwd: Path | None, log: Path, quiet: bool) -> str:
        """Append everything the command prints to ``log``, unless it is quiet and succeeds.

        Raises:
            Failed: it ended with a nonzero status, or could not be started.
        """


def run_command(command: Command, *, environ: Mapping[str, str], cwd: Path | None, log: Path, quiet: bool = False) -> str:
    """The :class:`Run` that actually runs the command."""
    with log.open("a", encoding="utf-8", errors="replace") as record:
        record.write(f"$ {' '.join(map(str, command))}\n")
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                errors="replace",
                stdin=subprocess.DEVNULL,
                check=False,
                env=dict(environ),
                cwd=cwd,
            )
        except OSError as error:
            record.write(f"{error}\n")
            raise Failed(command, str(error)) from error
        if done.returncode or not quiet:
            record.write(f"{done.stdout}{done.stderr}\n")
    if done.returncode:
        raise Failed(
            command, done.stdout + done.stderr + (f"\nkilled by signal {-done.returncode}" if done.returncode < 0 else "")
        )
    return done.stdout


class Commands:
    """The commands of one build, with a common log, common variables and common error handling."""

    def __init__(self, log: Path, environ: Mapping[str, str], run: Run = run_command) -> None:
        self.log = log
        self.environ = environ
        self._run = run

    def __call__(
        self,
        command: Command,
        *,
        purpose: str,
        cwd: Path | None = None,
        quiet: bool = False,
        environ: Mapping[str, str] | None = None,
    ) -> str:
        """Run a command and return its standard output, which is not logged if the command is quiet.

        Parameters:
            environ: all of its environment variables, if they differ from those of the build.

        Raises:
            EnvironmentUnavailable: it failed; carries the last meaningful lines and the path of the whole log.
        """
        try:
            return self._run(command, environ=self.environ if environ is None else environ, cwd=cwd, log=self.log, quiet=quiet)
        except Failed as error:
            raise EnvironmentUnavailable(
                f"{purpose} failed: {last_words(error.output)}", hint=f"the full output is in {self.log}", code="build-failed"
            ) from error


def last_words(output: str, lines: int = 4) -> str:
    """Return the end of a tool's output as one line: the lines marked as errors if any, else the last lines."""
    messages = [line.strip() for line in output.splitlines() if line.strip()]
    messages = [line for line in messages if not line.startswith(("WARNING: Location", "[notice]", "WARNING: You are using pip"))]
    errors = [line for line in messages if line.lower().startswith(("error", "fatal"))]
    return " | ".join((errors or messages)[-lines:]) or "it printed nothing"
