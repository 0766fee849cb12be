"""Recorded observations of a tree, read, changed and damaged by tests.

Changes through readers are written as the harness writes them. After changes to single lines, the last line is updated, so that only the
content of the line can be rejected.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from torch_compat.corpus.json_lines import dump
from torch_compat.corpus.recorded import read_recorded, write_recorded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from torch_compat.corpus.observations import Observation, ObservedReader

__all__ = [
    "cells_of", "change_cells", "change_reader", "edit_json", "edit_lines", "file_of", "folder_of", "lines_of", "reader_of", "readers_of",
    "with_end",
]  # fmt: skip

Cells = dict[tuple[str, str], "Observation"]


def folder_of(root: Path) -> Path:
    """Where a tree has them."""
    return root / "reports" / "observations"


def readers_of(root: Path) -> dict[str, ObservedReader]:
    """All readers of a tree by exact name; nothing may be damaged."""
    result = read_recorded(folder_of(root))
    assert not result.unreadable, result.unreadable
    return result.readers


def reader_of(root: Path, version: str) -> ObservedReader:
    """The only build of a release."""
    (result,) = (reader for reader in readers_of(root).values() if reader.release == version)
    return result


def file_of(name: str) -> str:
    """The file of a reader, given its exact name."""
    return f"{name.partition('+')[0]}.txt"


def cells_of(root: Path, name: str) -> Mapping[tuple[str, str], Observation]:
    """What a reader did, by its exact name."""
    return readers_of(root)[name].cells


def change_reader(root: Path, name: str, **change: Any) -> list[Path]:
    """Replace attributes of a reader; the files that changed."""
    readers = readers_of(root)
    return write_recorded(folder_of(root), {**readers, name: replace(readers[name], **change)}.values())


def change_cells(root: Path, name: str, change: Callable[[Cells], object]) -> list[Path]:
    """Change the cells of a reader in place; the files that changed."""
    cells = dict(cells_of(root, name))
    change(cells)
    return change_reader(root, name, cells=cells)


def lines_of(path: Path, kind: str = "") -> list[list[str]]:
    """The fields of the lines of a file, or of those of one kind."""
    lines = [line.split("\t") for line in path.read_text(encoding="ascii").splitlines()]
    return [line for line in lines if not kind or line[0] == kind]


def with_end(lines: Iterable[str]) -> str:
    """The text of a file with these lines, and a last one that fits them."""
    given = list(lines)
    body = "".join(f"{line}\n" for line in given)
    return f"{body}end\t{len(given)}\t{hashlib.sha256(body.encode('utf-8')).hexdigest()}\n"


def edit_lines(path: Path, change: Callable[[list[str]], Iterable[str] | None]) -> None:
    """Change the lines of a file, all but the last one, which is made to fit."""
    lines = path.read_text(encoding="ascii").splitlines()[:-1]
    changed = change(lines)
    path.write_text(with_end(lines if changed is None else changed), encoding="utf-8")


def edit_json(path: Path, at: int, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the JSON at the end of the line with this index."""

    def edit(lines: list[str]) -> None:
        head, _, text = lines[at].rpartition("\t")
        value = json.loads(text)
        change(value)
        lines[at] = f"{head}\t{dump(value)}"

    edit_lines(path, edit)
