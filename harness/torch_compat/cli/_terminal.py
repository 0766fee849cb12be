"""Standard output and standard error as streams that protect the terminal from printed text. Imports no slow modules.

While a command runs, ``sys.stdout`` and ``sys.stderr`` are such streams, so everything that a command prints is
harmless: a new command does not have to do anything. Code that prints with styles escapes the text first and then writes through
:func:`styled` (see harness/torch_compat/cli/_output.py). Commands that know the contents of their output, and where a line break is not
allowed, escape it themselves with :mod:`torch_compat.escapes`.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
from typing import TYPE_CHECKING, Any, Final

from torch_compat.escapes import escaped_output

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["Harmless", "harmless_output", "styled", "terminal_width"]

STYLES: Final = re.compile(r"(\x1b\[[0-9;]*[mABCDGHJK]|\x1b\[\?25[hl]|\r)")
"""Escape sequences that rich prints for styles and progress bars: colors, cursor movement, erasing, hiding the cursor."""


class Harmless:
    """A text stream that wraps another one. Only line breaks and tabs pass; other control characters become escapes.

    It has no ``buffer``, since bytes would bypass it.
    """

    def __init__(self, stream: Any, *, styles: bool = False) -> None:
        self._stream = stream
        self._styles = styles

    def write(self, text: str) -> int:
        """Write a text and return its length."""
        shown = self._with_styles(text) if self._styles else escaped_output(text)
        try:
            self._stream.write(shown)
        except OSError as error:
            self._unread(error)
        except UnicodeEncodeError:  # the terminal lacks a character: nothing is lost
            encoding = self._stream.encoding or "ascii"
            self._stream.write(shown.encode(encoding, "backslashreplace").decode(encoding))
        return len(text)

    def flush(self) -> None:
        """Write buffered text."""
        try:
            self._stream.flush()
        except OSError as error:
            self._unread(error)

    def _unread(self, error: OSError) -> None:
        """Stop writing. If the reader has closed the pipe, the command goes on, since its results do not change; a full disk ends it.

        Raises:
            OSError: the stream is not a file of the system.
            WriteError: the output is lost.
        """
        try:
            number = self._stream.fileno()
        except (OSError, ValueError, AttributeError):
            raise error from None
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, number)
        os.close(nowhere)
        if not isinstance(error, BrokenPipeError):
            from torch_compat.errors import WriteError  # noqa: PLC0415 - imported on use

            raise WriteError(f"the output cannot be written: {error.strerror or error}", code="output") from error

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts, one after the other."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        if name in {"_stream", "buffer", "detach"}:
            raise AttributeError(f"this output stream has no attribute {name!r}")
        return getattr(self._stream, name)

    @staticmethod
    def _with_styles(text: str) -> str:
        return "".join(part if number % 2 else escaped_output(part) for number, part in enumerate(STYLES.split(text)))


def terminal_width() -> int:
    """The columns of the terminal on standard output; 0 if it is not a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0


def styled(stream: Any) -> Any:
    """A stream for text that was escaped and then styled: only styles pass, no other control sequences."""
    return Harmless(stream._stream, styles=True) if isinstance(stream, Harmless) else Harmless(stream, styles=True)  # noqa: SLF001


@contextlib.contextmanager
def harmless_output() -> Iterator[None]:
    """Make standard output and standard error harmless streams.

    If an error leaves the block, they stay harmless, because the interpreter still prints the error.
    """
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (stream if stream is None or isinstance(stream, Harmless) else Harmless(stream) for stream in before)
    try:
        yield
    except SystemExit:
        sys.stdout, sys.stderr = before
        raise
    sys.stdout, sys.stderr = before
