"""What ``torch-compat inspect`` does, once its arguments are read. Imports nothing that is slow, click included."""

from __future__ import annotations

import os
import sys
from itertools import chain, islice
from typing import TYPE_CHECKING

from torch_compat.cli._processes import in_processes
from torch_compat.cli._status import exit_status
from torch_compat.errors import HarnessError
from torch_compat.inspection import Inspected, files_of, look_at
from torch_compat.needs import packaged_rules

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["inspected", "plain"]

ALONE = 50  # files up to which starting other processes costs more than they save

Rendered = tuple[int, str]  # the exit status that a file leads to, and its text


def plain(arguments: Sequence[str]) -> tuple[tuple[str, ...], bool, bool, str] | None:
    """Arguments as they are nearly always written, as :func:`inspected` takes them; None where click has to read them.

    Importing click takes as long as inspecting a hundred files.
    """
    paths: list[str] = []
    tree = code = False
    format_ = "text"
    left = iter(arguments)
    for one in left:
        if one in {"--format", "--format=json", "--format=text"}:
            format_ = one[9:] or next(left, "")
            if format_ not in {"json", "text"}:
                return None
        elif one == "--tree":
            tree = True
        elif one == "--code":
            code = True
        elif one.startswith("-"):
            return None
        else:
            paths.append(one)
    return (tuple(paths), tree, code, format_) if paths else None


def inspected(paths: Iterable[str], tree: bool, code: bool, format_: str) -> int:
    """Print what all of these files are; the exit status."""
    files = chain.from_iterable(map(files_of, paths))
    first = list(islice(files, ALONE + 1))
    packaged_rules()  # once for all processes; and if it cannot be read, nothing has been printed yet
    if format_ == "json":
        form = "json"
    elif len(first) == 1 or tree or code:
        form = "screen" + " tree" * tree + " code" * code
    else:
        form = "line"
    return _print(_rendered(first, files, form), form)


def _print(rendered: Iterator[Rendered], form: str) -> int:
    """Print all rows. JSON is closed whatever happens, so that the rows which are there can be read."""
    statuses: set[int] = set()
    out = sys.stdout
    if form == "json":
        out.write('{"schema_version": 1, "archives": [')
    try:
        _print_rows(rendered, form, statuses)
    finally:
        if form == "json":
            out.write("\n]}\n" if statuses else "]}\n")
    if not statuses:
        sys.stderr.write("torch-compat: there is no file to inspect\n")
        return 4
    return exit_status(statuses)


def _print_rows(rendered: Iterator[Rendered], form: str, statuses: set[int]) -> None:
    out = sys.stdout
    before = "\n"
    for number, (status, text) in enumerate(rendered):
        statuses.add(status)
        if form == "json":
            out.write(before + text)
            before = ",\n"
        elif form == "line":
            if number == 0:
                from torch_compat.cli._inspected import HEADINGS  # noqa: PLC0415 - JSON does not need it

                out.write(f"{HEADINGS}\n")
            out.write(_writable(text) + "\n")
        else:
            out.write("\n" * bool(number) + _writable(text))


def _writable(text: str) -> str:
    """Text as the terminal can show it; what it cannot, and names that are no text, as escapes."""
    encoding = sys.stdout.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


# ------------------------------------------------------------------------------------------------------------ one file


def _render(path: str, form: str) -> Rendered:
    """The row of a file. Whatever reading it leads to, a fault of ours included, costs this row and no other."""
    try:
        found = look_at(path)
        text = _text(found, form)
    except HarnessError as error:  # none of an archive: of what is recorded of the releases
        return error.exit_status, _text(_failed(path, error.message, error.code, error.hint), form)
    except Exception as error:
        if os.environ.get("TORCH_COMPAT_DEBUG"):
            raise
        kind = type(error).__name__
        return 3, _text(_failed(path, f"internal error in torch-compat: {kind}", "fault"), form)
    return 0 if found.error is None else 2, text


REPORT = "please report it, with the file if you can share it; TORCH_COMPAT_DEBUG=1 shows the traceback"


def _failed(path: str, message: str, code: str, hint: str | None = REPORT) -> Inspected:
    found = Inspected(path)
    found.error = HarnessError(message, hint=hint, code=code)
    return found


def _text(found: Inspected, form: str) -> str:
    if form == "json":
        return found.json()
    from torch_compat.cli._inspected import line, screen  # noqa: PLC0415 - JSON does not need it

    if form == "line":
        return line(found)
    return screen(found, tree="tree" in form, code="code" in form)


# ----------------------------------------------------------------------------------------------------------- many files


def _rendered(first: list[str], rest: Iterable[str], form: str) -> Iterator[Rendered]:
    """The text of each file, in order; many files by as many processes as there are processors."""
    workers = len(os.sched_getaffinity(0))
    files = chain(first, rest)
    if len(first) <= ALONE or workers == 1:
        return (_render(path, form) for path in files)
    return in_processes(files, lambda path: _render(path, form), lambda path: _crashed(path, form), workers)


def _crashed(path: str, form: str) -> Rendered:
    message = "the process that read the file died: internal error in torch-compat, or out of memory"
    return 3, _text(_failed(path, message, "crashed"), form)
