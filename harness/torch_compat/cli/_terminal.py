"""Standard output and standard error as streams that no text can use against a terminal. Imports nothing that is slow.

While a command runs, ``sys.stdout`` and ``sys.stderr`` are such streams, so whatever a command prints, by whatever means, is
harmless: a new command need not do anything for it. What prints with styles escapes the text first and then writes through
:func:`styled` (see harness/torch_compat/cli/_output.py). Commands that know what they print, and where a line break must not stand, escape it
themselves with :mod:`torch_compat.escapes`.
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
    """A text stream in front of another one. Only line breaks and tabs are obeyed; other control characters come out as escapes.

    It has no ``buffer``: bytes would pass by it.
    """

    def __init__(self, stream: Any, *, styles: bool = False) -> None:
        self._stream = stream
        self._styles = styles

    def write(self, text: str) -> int:
        """Write a text; how long it was."""
        shown = self._with_styles(text) if self._styles else escaped_output(text)
        try:
            self._stream.write(shown)
        except OSError as error:
            self._unread(error)
        except UnicodeEncodeError:  # of a terminal that lacks a mark: nothing is lost
            encoding = self._stream.encoding or "ascii"
            self._stream.write(shown.encode(encoding, "backslashreplace").decode(encoding))
        return len(text)

    def flush(self) -> None:
        """Write what is kept back."""
        try:
            self._stream.flush()
        except OSError as error:
            self._unread(error)

    def _unread(self, error: OSError) -> None:
        """Write no more. A reader that has had enough changes nothing in what the command finds, so it goes on; a full disk ends it.

        Raises:
            OSError: the stream is no file of the system.
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
            from torch_compat.errors import WriteError  # noqa: PLC0415 - as late as it is needed

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
    """The columns of the terminal that standard output is; 0 if it is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0


def styled(stream: Any) -> Any:
    """The stream for text that is escaped already and then styled: styles pass, nothing else that a terminal obeys."""
    return Harmless(stream._stream, styles=True) if isinstance(stream, Harmless) else Harmless(stream, styles=True)  # noqa: SLF001


@contextlib.contextmanager
def harmless_output() -> Iterator[None]:
    """Standard output and standard error as harmless streams.

    An error that leaves the block keeps them so: the interpreter still prints it.
    """
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (stream if stream is None or isinstance(stream, Harmless) else Harmless(stream) for stream in before)
    try:
        yield
    except SystemExit:
        sys.stdout, sys.stderr = before
        raise
    sys.stdout, sys.stderr = before
