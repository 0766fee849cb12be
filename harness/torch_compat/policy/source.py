"""The files of a policy folder, as raw tables that know where they stand."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from torch_compat.errors import CorpusError, PolicyError, Problem
from torch_compat.places import MOST_OF_A_PROGRAM, inside, read_whole
from torch_compat.policy.deprecations import Deprecation, Planned, Profile, Timeline
from torch_compat.policy.loading import Ability, Advisory, Package, Renamed
from torch_compat.policy.messages import HALF_DONE, UNFINISHED, unknown_key
from torch_compat.policy.model import (
    Beside,
    Builtin,
    CalendarRelease,
    Change,
    Conversion,
    CorpusScope,
    Disregard,
    Format,
    KnownWarning,
    Layout,
    Need,
    OptionSet,
    PolicyTable,
    Quirk,
    RuleEntry,
    Table,
    Tolerance,
    Undeclared,
    Waiver,
    WeightsOnly,
    WeightsOnlyRefusal,
    Wording,
)
from torch_compat.policy.operator_waivers import OperatorGap, OperatorWaiver
from torch_compat.policy.positions import Lines, Path, line_of, scan
from torch_compat.policy.slips import Slip
from torch_compat.policy.upgraders import Upgrader
from torch_compat.releases.data import parsed

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Iterator

__all__ = [
    "DEPRECATION",
    "DEPRECATIONS",
    "OPERATOR_WAIVER",
    "OPERATOR_WAIVERS",
    "OWN_FILE",
    "REPEATED",
    "SINGLE",
    "WAIVER",
    "WAIVERS",
    "Entry",
    "Sources",
    "read_folder",
]

REPEATED: Final[dict[str, type[Table]]] = {
    "release": CalendarRelease,
    "format": Format,
    "layout": Layout,
    "undeclared": Undeclared,
    "warning": KnownWarning,
    "wording": Wording,
    "options": OptionSet,
    "rule": RuleEntry,
    "tolerance": Tolerance,
    "disregard": Disregard,
    "weights_only": WeightsOnly,
    "weights_only_refusal": WeightsOnlyRefusal,
    "need": Need,
    "quirk": Quirk,
    "beside": Beside,
    "builtin": Builtin,
    "conversion": Conversion,
    "change": Change,
    "slip": Slip,
    "upgrader": Upgrader,
    "timeline": Timeline,
    "planned": Planned,
    "profile": Profile,
    "operator_gap": OperatorGap,
    "ability": Ability,
    "package": Package,
    "renamed": Renamed,
    "advisory": Advisory,
}
"""The tables that are written ``[[name]]``, in any file and any number."""
SINGLE: Final[dict[str, type[Table]]] = {"policy": PolicyTable, "corpus": CorpusScope}
"""The tables that are written ``[name]``, once in the whole folder."""
WAIVER: Final[dict[str, type[Table]]] = {"waiver": Waiver}
"""The one table of a file in the folder of waivers."""
WAIVERS: Final = "waivers"
DEPRECATION: Final[dict[str, type[Table]]] = {"deprecation": Deprecation}
"""The one table of a file in the folder of deprecations."""
DEPRECATIONS: Final = "deprecations"
OPERATOR_WAIVER: Final[dict[str, type[Table]]] = {"operator_waiver": OperatorWaiver}
"""The one table of a file in the folder of waivers for operators."""
OPERATOR_WAIVERS: Final = "operator_waivers"
OWN_FILE: Final = {"waiver": WAIVERS, "deprecation": DEPRECATIONS, "operator_waiver": OPERATOR_WAIVERS}
"""Tables that stand in a file of their own, named after their id, and the folder of these files."""

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True)
class Entry:
    """One table as it was written: what it is, what it holds, and where it stands."""

    table: str
    model: type[Table]
    raw: dict[str, Any]
    file: pathlib.Path
    path: Path
    lines: Lines

    def problem(self, message: str, *inner: str | int) -> Problem:
        """A problem of this table, or of a value inside it."""
        path = (*self.path, *inner)
        return Problem(self.file.as_posix(), line_of(self.lines, path), spell(path), message)

    def get(self, *inner: str | int) -> Any:
        """The value at a path inside the table; None when there is none."""
        value: Any = self.raw
        for key in inner:
            if isinstance(value, dict):
                value = value.get(key)
            elif isinstance(value, list) and isinstance(key, int) and key < len(value):
                value = value[key]
            else:
                return None
        return value


def spell(path: Path) -> str:
    """A path as it is written in messages: ``release[3].date``; a key that TOML wants quoted is quoted."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{_spell_key(key)}" for key in path).removeprefix(".")


def _spell_key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else repr(key)


@dataclass
class Sources:
    """What the files of one folder hold."""

    entries: list[Entry] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    mentioned: set[str] = field(default_factory=set)  # names of tables, well or badly written
    complete: bool = True  # whether every file could be parsed


def read_folder(folder: pathlib.Path) -> Sources:
    """Every table of every file of a policy folder, and what kept others from being read."""
    sources = Sources()
    known: dict[str, dict[str, type[Table]]] = {"": {**REPEATED, **SINGLE}, WAIVERS: WAIVER, DEPRECATIONS: DEPRECATION}
    known[OPERATOR_WAIVERS] = OPERATOR_WAIVER
    for place, tables in known.items():
        for file in sorted((folder / place).glob("*.toml")):
            try:
                inside(folder, f"{place}/{file.name}".removeprefix("/"), where=file.as_posix())
            except CorpusError as error:
                sources.complete = False
                sources.problems.append(Problem(file.as_posix(), 0, "", error.message))
            else:
                _read_file(file, tables, sources)
    return sources


def _read_file(file: pathlib.Path, known: dict[str, type[Table]], sources: Sources) -> None:
    name = file.as_posix()
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
    lines = scan(text)
    sources.problems += _unfinished(name, text)
    (own,) = known if known in (WAIVER, DEPRECATION, OPERATOR_WAIVER) else (None,)
    if own is not None and own not in document:
        sources.problems.append(Problem(name, 1, "", f"holds no [{own}]"))
    for table, value in document.items():
        sources.mentioned.add(table)
        if table not in known:
            sources.problems.append(Problem(name, line_of(lines, (table,)), "", _misplaced(table, known)))
        elif (written := _tables(table, value)) is None:
            sources.problems.append(Problem(name, line_of(lines, (table,)), table, _wrong_brackets(table)))
        else:
            sources.entries += (Entry(table, known[table], raw, file, path, lines) for path, raw in written)


def _unfinished(name: str, text: str) -> Iterator[Problem]:
    """What is left for a person to say, in a file that was begun by ``torch-compat new``."""
    for number, line in enumerate(text.splitlines(), 1):
        if UNFINISHED in line:
            wanted = line.partition(UNFINISHED)[2].partition(">")[0]
            yield Problem(name, number, "", f"{HALF_DONE}{wanted}")


def _tables(table: str, value: object) -> list[tuple[Path, dict[str, Any]]] | None:
    """The tables of one name with their paths; None when the value is not written the way this table is written."""
    if table not in REPEATED:
        return [((table,), value)] if isinstance(value, dict) else None
    elements = value if isinstance(value, list) else []
    written: list[tuple[Path, dict[str, Any]]] = [
        ((table, index), element) for index, element in enumerate(elements) if isinstance(element, dict)
    ]
    return written if written and len(written) == len(elements) else None


def _wrong_brackets(table: str) -> str:
    return f"must be written [[{table}]], once for each" if table in REPEATED else f"must be one table, written [{table}]"


def _misplaced(table: str, known: dict[str, type[Table]]) -> str:
    own = next((own for own in OWN_FILE if own in known), None)
    if table in OWN_FILE:
        return f"a {table} stands in a file of its own, {OWN_FILE[table]}/<id>.toml"
    if own is not None and (table in REPEATED or table in SINGLE):
        return f"a file of {OWN_FILE[own]}/ holds one [{own}] and nothing else; '{table}' belongs in a file of the folder above"
    return unknown_key(table, known, what="table")
