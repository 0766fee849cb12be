"""The work of ``torch-compat inspect`` after its arguments are parsed. Imports no slow modules, click included."""

from __future__ import annotations

import os
import sys
from collections import Counter
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from torch_compat.cli._status import exit_status
from torch_compat.cli._terminal import terminal_width
from torch_compat.cli._together import refuse_ignored
from torch_compat.errors import HarnessError, UsageError
from torch_compat.escapes import escaped
from torch_compat.inspection import Inspected, files_of, look_at
from torch_compat.loadability import packaged_rules
from torch_compat.processes import in_processes
from torch_compat.releases.release import Release
from torch_compat.words import count_of, did_you_mean, similar_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from torch_compat.cli._inspected_machine import Mark

__all__ = ["inspected", "plain"]

ALONE = 50  # maximum number of files for which starting other processes costs more than it saves

Rendered = tuple[int, str, tuple["Mark", ...], str]
"""The exit status of a file, its text, its entries for other tools (empty without ``--output``), and why it could not be opened (empty if
it was). A plain tuple, because it is sent between processes."""


def plain(arguments: Sequence[str]) -> tuple[tuple[str, ...], bool, bool, str] | None:
    """Parse arguments in their most common form for :func:`inspected`; None if click has to parse them.

    Importing click takes as long as inspecting a hundred files.
    """
    paths: list[str] = []
    tree = code = False
    format_ = "text"
    left = iter(arguments)
    for argument in left:
        if argument in {"--format", "--format=json", "--format=text"}:
            format_ = argument[9:] or next(left, "")
            if format_ not in {"json", "text"}:
                return None
        elif argument == "--tree":
            tree = True
        elif argument == "--code":
            code = True
        elif argument.startswith("-"):
            return None
        else:
            paths.append(argument)
    return (tuple(paths), tree, code, format_) if paths else None


class InspectOptions(NamedTuple):
    """The options for each file.

    Attributes:
        form: ``json``, ``line``, or ``screen`` with the additional parts to show.
        named: the paths that the user named; other files were found in folders.
        fail_on: the conditions that lead to exit status 1, as given.
        marked: whether to create entries for another tool.
        width: columns of the terminal; 0 if there is none.
        quick: whether to read only what identifies and describes the archives.
    """

    form: str
    named: frozenset[str]
    fail_on: tuple[str, ...]
    marked: bool = False
    width: int = 0
    quick: bool = False


def inspected(
    paths: Sequence[str],
    tree: bool,
    code: bool,
    format_: str,
    fail_on: Sequence[str] = (),
    write: Callable[[Sequence[Mark], int], None] | None = None,
    *,
    quick: bool = False,
) -> int:
    """Print the results for all files, and return the exit status.

    Parameters:
        quick: read no weights: no digest, no checksums of large records.
        write: receives the entries for other tools, and the exit status.
    """
    if format_ == "json":
        refuse_ignored("--format json", "prints the facts of each file", {"--tree": tree, "--code": code})
    conditions = tuple(map(condition, dict.fromkeys(fail_on)))
    files = chain.from_iterable(map(files_of, paths))
    first = list(islice(files, ALONE + 1))
    packaged_rules()  # loaded once for all processes; a failure is reported before anything is printed
    if format_ == "json":
        form = "json"
    elif len(first) == 1 or tree or code:
        form = "screen" + " tree" * tree + " code" * code
    else:
        form = "line"
    asked = InspectOptions(form, frozenset(paths), conditions, write is not None, terminal_width(), quick)
    marks: list[Mark] = []
    status = _print(_noted(_rendered(first, files, asked), marks), form, paths, conditions)
    if write is not None:
        write(marks, status)
    return status


def _noted(rendered: Iterator[Rendered], marks: list[Mark]) -> Iterator[Rendered]:
    for item in rendered:
        marks += item[2]
        yield item


RELEASE = "release:"
SIMPLE = ("danger", "damage", "changes")


def condition(given: str) -> str:
    """A condition of ``--fail-on``, with the release named as in the calendar.

    Raises:
        UsageError: there is no such condition, or no such release.
    """
    if given in SIMPLE:
        return given
    if not given.startswith(RELEASE):
        names = given.split(",")
        hint = f"expected {', '.join(SIMPLE)}, or release:X, such as release:2.6.0"
        if len(names) > 1:
            hint += f"; repeat the option for several conditions: {' '.join(f'--fail-on {name.strip()}' for name in names)}"
        elif similar := did_you_mean(similar_names(given, SIMPLE)):
            hint += f"; {similar}"
        raise UsageError(f"--fail-on {given!r} is not a condition", hint=hint)
    known = packaged_rules().known
    name = given.removeprefix(RELEASE)
    release = known.find(name)
    if release is None:
        raise UsageError(
            f"--fail-on {given!r} names a release that is not in the calendar", hint=did_you_mean(known.near(name)) or None
        )
    return f"{RELEASE}{release}"


def _met(value: Inspected, conditions: Iterable[str]) -> Iterator[str]:
    """The conditions that a file meets."""
    for item in conditions:
        if item == "danger":
            met = bool(value.dangers)
        elif item == "damage":
            met = bool(value.damage)
        elif item == "changes":
            met = any(change.written != "after" for change in value.changes_of_meaning)
        else:
            met = value.needs is not None and Release(item.removeprefix(RELEASE)) not in value.needs.readers
        if met:
            yield item


def _status(value: Inspected) -> int:
    """The exit status of a file. If the rest of the file is readable, damage that the user asks about is a failing condition."""
    if "damage" in value.fails and value.needs is not None:
        return 1
    if value.error is not None:
        return 2
    return 1 if value.fails else 0


def _print(rendered: Iterator[Rendered], form: str, paths: Sequence[str], conditions: Sequence[str] = ()) -> int:
    """Print all rows. JSON is closed in any case, so that the rows printed so far can be parsed."""
    statuses: Counter[int] = Counter()
    out = sys.stdout
    if form == "json":
        out.write('{"schema_version": 1, "archives": [')
    try:
        _print_rows(rendered, form, statuses)
    finally:
        if form == "json":
            out.write("\n]}\n" if statuses else "]}\n")
    if not statuses:
        sys.stderr.write(
            f"torch-compat: no files to inspect in {escaped(', '.join(paths))}\n"
            "  name an archive, or a directory that contains archives\n"
        )
        return 4
    if conditions:
        sys.stderr.write(
            f"torch-compat: {statuses[1]} of {count_of(statuses.total(), 'file matches', 'files match')} --fail-on {' --fail-on '.join(conditions)}\n"
        )
    return exit_status(statuses)


def _print_rows(rendered: Iterator[Rendered], form: str, statuses: Counter[int]) -> None:
    out = sys.stdout
    before, between = "\n", ""
    for number, (status, text, _, unopened) in enumerate(rendered):
        statuses[status] += 1
        if form == "json":
            out.write(before + text)
            before = ",\n"
            continue
        if unopened:
            out.flush()  # in the order of the files
            sys.stderr.write(f"torch-compat: {unopened}\n")
        if form == "line":
            if number == 0:
                from torch_compat.cli._inspected import headings  # noqa: PLC0415 - not needed for JSON

                out.write(f"{headings(terminal_width())}\n")
            out.write(_writable(text) + "\n")
        elif not unopened:
            out.write(between + _writable(text))
            between = "\n"


def _writable(text: str) -> str:
    """Text that the terminal can show; other characters, and names that are not valid text, become escapes."""
    encoding = sys.stdout.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


# ------------------------------------------------------------------------------------------------------------ one file


def _render(path: str, asked: InspectOptions) -> Rendered:
    """The row of a file. An error while reading it, even an internal one, affects only this row."""
    try:
        result = look_at(path, named=path in asked.named, complete=not asked.quick)
        result.fails = list(_met(result, asked.fail_on))
        return _status(result), _text(result, asked), _marks(result, asked), _unopened(result)
    except HarnessError as error:  # not from an archive: from the recorded data about releases
        failed, status = _failed(path, error.message, error.code, error.hint), error.exit_status
    except Exception as error:
        if os.environ.get("TORCH_COMPAT_DEBUG"):
            raise
        kind = type(error).__name__
        failed, status = _failed(path, f"internal error in torch-compat: {kind}", "fault"), 3
    return status, _text(failed, asked), _marks(failed, asked), ""


def _unopened(value: Inspected) -> str:
    """Why a file could not be opened, as one line for standard error."""
    if not isinstance(value.error, UsageError):
        return ""
    hint = f" ({value.error.hint})" if value.error.hint else ""
    return escaped(f"{value.path}: {value.error.message}{hint}")


def _marks(value: Inspected, asked: InspectOptions) -> tuple[Mark, ...]:
    if not asked.marked:
        return ()
    from torch_compat.cli._inspected_machine import marks_of  # noqa: PLC0415 - needed only for --output

    return marks_of(value)


REPORT = "please report it, with the file if you can share it; TORCH_COMPAT_DEBUG=1 shows the traceback"


def _failed(path: str, message: str, code: str, hint: str | None = REPORT) -> Inspected:
    result = Inspected(path)
    result.error = HarnessError(message, hint=hint, code=code)
    return result


def _text(value: Inspected, asked: InspectOptions) -> str:
    form = asked.form
    if form == "json":
        return value.json()
    from torch_compat.cli._inspected import line, screen  # noqa: PLC0415 - not needed for JSON

    if form == "line":
        return line(value, asked.width)
    return screen(value, asked.width, tree="tree" in form, code="code" in form)


# ----------------------------------------------------------------------------------------------------------- many files


def _rendered(first: list[str], rest: Iterable[str], asked: InspectOptions) -> Iterator[Rendered]:
    """The text of each file, in order; many files are processed by as many processes as there are processors."""
    workers = len(os.sched_getaffinity(0))
    files = chain(first, rest)
    if len(first) <= ALONE or workers == 1:
        return (_render(path, asked) for path in files)
    return in_processes(files, lambda path: _render(path, asked), lambda path: _crashed(path, asked), workers)


def _crashed(path: str, asked: InspectOptions) -> Rendered:
    message = "the process that read the file died: internal error in torch-compat, or out of memory"
    failed = _failed(path, message, "crashed")
    return 3, _text(failed, asked), _marks(failed, asked), ""
