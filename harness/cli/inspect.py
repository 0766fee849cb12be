"""``torch-compat inspect``: what archives are, what they hold, and which releases read them."""

from __future__ import annotations

import json
import os
import sys
from collections import deque
from itertools import chain, islice
from typing import TYPE_CHECKING

import click

from harness.cli._format import exit_status, format_option
from harness.errors import HarnessError, PolicyError
from harness.inspection import Inspected, files_of, look_at
from harness.needs import packaged_rules

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from concurrent.futures import Future, ProcessPoolExecutor

__all__ = ["inspect"]

ALONE = 50  # files up to which starting other processes costs more than they save
CHUNK = 32  # files that a process is given at a time
AHEAD = 4  # chunks for each process that wait to be printed

Rendered = tuple[int, str]  # the exit status that a file leads to, and its text


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
    statuses = set()
    out = sys.stdout
    if form == "json":
        out.write('{"schema_version": 1, "archives": [')
    before = "\n"
    for number, (status, text) in enumerate(rendered):
        statuses.add(status)
        if form == "json":
            out.write(before + text)
            before = ",\n"
        elif form == "line":
            if number == 0:
                from harness.cli._inspected import HEADINGS  # noqa: PLC0415 - JSON does not need it

                out.write(f"{HEADINGS}\n")
            out.write(_writable(text) + "\n")
        else:
            out.write("\n" * bool(number) + _writable(text))
    if form == "json":
        out.write("\n]}\n" if statuses else "]}\n")
    if not statuses:
        click.echo("torch-compat: there is no file to inspect", err=True)
        return 4
    return exit_status(statuses)


def _writable(text: str) -> str:
    """Text as the terminal can show it; what it cannot, and names that are no text, as escapes."""
    encoding = sys.stdout.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


# ------------------------------------------------------------------------------------------------------------ one file


def _render(path: str, form: str) -> Rendered:
    status = 0
    try:
        found = look_at(path)
        status = 0 if found.error is None else 2
        return status, _text(found, form)
    except PolicyError:  # no fault of the file
        raise
    except Exception as error:  # whatever one file leads to must not cost the rows of others
        if os.environ.get("TORCH_COMPAT_DEBUG"):
            raise
        return 3, _text(_failed(path, f"a fault of torch-compat: {type(error).__name__}: {error}", "fault"), form)


def _failed(path: str, message: str, code: str) -> Inspected:
    found = Inspected(path)
    found.error = HarnessError(message, hint="please report it", code=code)
    return found


def _text(found: Inspected, form: str) -> str:
    if form == "json":
        return json.dumps(found.row())
    from harness.cli._inspected import line, screen  # noqa: PLC0415 - JSON does not need it

    if form == "line":
        return line(found)
    return screen(found, tree="tree" in form, code="code" in form)


# ----------------------------------------------------------------------------------------------------------- many files


def _rendered(first: list[str], rest: Iterable[str], form: str) -> Iterator[Rendered]:
    """The text of each file, in order; many files by as many processes as there are processors."""
    workers = len(os.sched_getaffinity(0))
    files = chain(first, rest)
    if len(first) <= ALONE or workers == 1:
        for path in files:
            yield _render(path, form)
        return
    from concurrent.futures.process import BrokenProcessPool  # noqa: PLC0415 - takes as long as reading a hundred files

    pool = _Pool(workers, form)
    chunks = iter(lambda: list(islice(files, CHUNK)), [])
    waiting = deque((chunk, pool.submit(chunk)) for chunk in islice(chunks, workers * AHEAD))
    try:
        while waiting:
            chunk, future = waiting.popleft()
            try:
                rows = future.result()
            except BrokenProcessPool:  # a process died, and took what was not done with it
                rows = [pool.apart(path) for path in chunk]
                pool.renew()
                waiting = deque((one, known if _done(known) else pool.submit(one)) for one, known in waiting)
            yield from rows
            following = next(chunks, None)
            if following is not None:
                waiting.append((following, pool.submit(following)))
    finally:
        pool.close()


def _render_all(paths: list[str], form: str) -> list[Rendered]:
    return [_render(path, form) for path in paths]


def _done(future: Future[list[Rendered]]) -> bool:
    return future.done() and future.exception() is None


class _Pool:
    """Processes that render; one that dies costs the file that it died of."""

    def __init__(self, workers: int, form: str) -> None:
        import multiprocessing  # noqa: PLC0415

        methods = multiprocessing.get_all_start_methods()
        self.context = multiprocessing.get_context("fork" if "fork" in methods else None)
        self.workers = workers
        self.form = form
        self.pool = self._started(workers)

    def _started(self, workers: int) -> ProcessPoolExecutor:
        from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415

        return ProcessPoolExecutor(workers, self.context)

    def submit(self, paths: list[str]) -> Future[list[Rendered]]:
        """Have files rendered."""
        from concurrent.futures.process import BrokenProcessPool  # noqa: PLC0415

        try:
            return self.pool.submit(_render_all, paths, self.form)
        except BrokenProcessPool:
            self.renew()
            return self.pool.submit(_render_all, paths, self.form)

    def renew(self) -> None:
        """Start again."""
        self.close()
        self.pool = self._started(self.workers)

    def apart(self, path: str) -> Rendered:
        """Have one file rendered by a process of its own."""
        from concurrent.futures.process import BrokenProcessPool  # noqa: PLC0415

        with self._started(1) as pool:
            try:
                return pool.submit(_render, path, self.form).result()
            except BrokenProcessPool:
                message = "the process that read it died: a fault of torch-compat, or memory ran out"
                return 3, _text(_failed(path, message, "crashed"), self.form)

    def close(self) -> None:
        """Let the processes end."""
        self.pool.shutdown(wait=False, cancel_futures=True)
