"""The files of a policy folder, as raw tables with their positions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from torch_compat.errors import CorpusError, PolicyError, Problem
from torch_compat.places import MOST_OF_A_PROGRAM, inside, read_whole
from torch_compat.policy.entry import Entry
from torch_compat.policy.messages import HALF_DONE, UNFINISHED, unknown_key
from torch_compat.policy.policy import REGISTRY
from torch_compat.policy.positions import Path, Positions
from torch_compat.releases.data import parsed
from torch_compat.words import american

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Iterator

__all__ = ["Sources", "read_folder"]

_KINDS: Final = {kind.name: kind for kind in REGISTRY}
_BEHAVIOR: Final = "behaviour-change"  # the id of a kind of deprecation; files may use the American spelling
_FOLDERS: Final = {kind.folder: kind.name for kind in REGISTRY if kind.folder}


@dataclass
class Sources:
    """The contents of the files of one folder."""

    entries: list[Entry] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    mentioned: set[str] = field(default_factory=set)  # names of all tables, valid or not
    complete: bool = True  # whether every file could be parsed


def read_folder(folder: pathlib.Path) -> Sources:
    """Return every table of every file of a policy folder, and the problems that kept others from being read."""
    sources = Sources()
    for place in ("", *_FOLDERS):
        for file in sorted((folder / place).glob("*.toml")):
            try:
                inside(folder, f"{place}/{file.name}".removeprefix("/"), where=file.as_posix())
            except CorpusError as error:
                sources.complete = False
                sources.problems.append(Problem(file.as_posix(), 0, "", error.message))
            else:
                _read_file(file, place, sources)
    return sources


def _read_file(file: pathlib.Path, folder: str, sources: Sources) -> None:
    """Read one file into ``sources``. ``folder`` is the subfolder that contains it, or "" for the policy folder itself."""
    name = file.as_posix()
    known = {kind.name for kind in REGISTRY if kind.folder == folder}
    try:
        content = read_whole(file, MOST_OF_A_PROGRAM)
    except (OSError, CorpusError) as error:
        sources.complete = False
        why = error.message if isinstance(error, CorpusError) else f"cannot be read: {error.strerror}"
        sources.problems.append(Problem(name, 1, "", why))
        return
    try:
        text = content.decode()
        document = parsed(text, name)
    except UnicodeDecodeError as error:
        sources.complete = False
        sources.problems.append(Problem(name, content.count(b"\n", 0, error.start) + 1, "", "is not UTF-8 text"))
        return
    except PolicyError as error:
        sources.complete = False
        sources.problems += error.problems
        return
    positions = Positions(text)
    sources.problems += _unfinished(name, text)
    own = _FOLDERS.get(folder)
    if own is not None and own not in document:
        sources.problems.append(Problem(name, 1, "", f"contains no [{own}]"))
    for table, value in document.items():
        sources.mentioned.add(table)
        if table not in known:
            sources.problems.append(Problem(name, positions.line_of((table,)), "", _misplaced(table, folder)))
        elif (written := _tables(table, value)) is None:
            sources.problems.append(Problem(name, positions.line_of((table,)), table, _wrong_brackets(table)))
        else:
            for path, raw in written:
                if raw.get("kind") == american(_BEHAVIOR):
                    raw["kind"] = _BEHAVIOR
                sources.entries.append(Entry(table, _KINDS[table].model, raw, file, path, positions))


def _unfinished(name: str, text: str) -> Iterator[Problem]:
    """Yield a problem for each placeholder that is left in a file created by ``torch-compat new``."""
    for number, line in enumerate(text.splitlines(), 1):
        if UNFINISHED in line:
            wanted = line.partition(UNFINISHED)[2].partition(">")[0]
            yield Problem(name, number, "", f"{HALF_DONE}{wanted}")


def _tables(table: str, value: object) -> list[tuple[Path, dict[str, Any]]] | None:
    """Return the tables of one name with their paths; None if the value does not have the form of this kind of table."""
    if not _KINDS[table].repeated:
        return [((table,), value)] if isinstance(value, dict) else None
    elements = value if isinstance(value, list) else []
    written: list[tuple[Path, dict[str, Any]]] = [
        ((table, index), element) for index, element in enumerate(elements) if isinstance(element, dict)
    ]
    return written if written and len(written) == len(elements) else None


def _wrong_brackets(table: str) -> str:
    kind = _KINDS[table]
    return f"must be written {kind.header}, once for each" if kind.repeated else f"must be one table, written {kind.header}"


def _misplaced(table: str, folder: str) -> str:
    kind, own = _KINDS.get(table), _FOLDERS.get(folder)
    if kind is not None and kind.folder:
        return f"each {table} must be in its own file, {kind.folder}/<id>.toml"
    if kind is not None and own is not None:
        return f"a file in {folder}/ contains one [{own}] and nothing else; '{table}' belongs in a file in the parent directory"
    return unknown_key(table, [item.name for item in REGISTRY if item.folder == folder], what="table")
