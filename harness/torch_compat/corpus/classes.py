"""The classes that the corpus must cover, and the known gaps: ``fixtures/classes.toml``.

The classes themselves are derived from the surveys of releases (:mod:`torch_compat.replay.classes`). The file contains what no survey
provides:

``[[form]]``     a way of saving: ``id``, ``family``, ``container``, ``since``, ``because``
``[[no_class]]`` names that a survey lists but that are not classes: ``group``, ``classes``, ``because``
``[[hole]]``     classes that some release should have written but no archive contains: ``group``, ``classes`` (patterns with ``*``),
                 ``because``. A closed hole must be removed.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from torch_compat.errors import CorpusError
from torch_compat.places import read_whole
from torch_compat.releases.data import parsed

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["CLASSES", "SaveForm", "SavedClass", "Stated", "StatedClasses", "read_classes", "unexplained"]

CLASSES: Final = "classes.toml"
"""The name of the file, in the fixtures folder."""
_KEYS: Final = {
    "form": ("id", "family", "container", "since", "because"), "no_class": ("group", "classes", "because"), "hole": ("group", "classes", "because"),
}  # fmt: skip


@dataclass(frozen=True)
class SaveForm:
    """A way of saving.

    Attributes:
        id: a readable name: ``torch.save, zip``.
        family, container: those of its archives.
        since: the first release of the corpus that must write it.
        because: why not earlier ones.
    """

    id: str
    family: str
    container: str
    since: str
    because: str


@dataclass(frozen=True)
class Stated:
    """A statement about classes of a group, with the reason.

    Attributes:
        classes: names, or patterns with ``*``.
    """

    group: str
    classes: tuple[str, ...]
    because: str

    def speaks_of(self, group: str, name: str) -> bool:
        """Whether the statement applies to a class."""
        return group == self.group and any(fnmatchcase(name, pattern) for pattern in self.classes)


@dataclass(frozen=True)
class StatedClasses:
    """The contents of the file."""

    forms: tuple[SaveForm, ...]
    no_classes: tuple[Stated, ...]
    holes: tuple[Stated, ...]


def read_classes(path: Path) -> StatedClasses:
    """Read the file.

    Raises:
        CorpusError: it cannot be read, or a table lacks a key or has an unknown one.
        PolicyError: it is not valid TOML; with the line.
    """
    try:
        tables = parsed(read_whole(path).decode("utf-8"), path.name)
    except (OSError, ValueError) as error:
        raise CorpusError(f"cannot be read: {error}", where=str(path)) from error
    for kind, entries in tables.items():
        if kind not in _KEYS or not isinstance(entries, list):
            raise CorpusError(
                f"contains {kind!r}, expected the tables {', '.join(f'[[{name}]]' for name in _KEYS)}", where=str(path)
            )
        for number, entry in enumerate(entries, 1):
            if set(entry) != set(_KEYS[kind]):
                wanted, result = ", ".join(_KEYS[kind]), ", ".join(entry)
                raise CorpusError(f"[[{kind}]] number {number} has {result}; expected {wanted}", where=str(path))
    no_classes, holes = (
        tuple(Stated(entry["group"], tuple(entry["classes"]), entry["because"]) for entry in tables.get(kind, ()))
        for kind in ("no_class", "hole")
    )
    return StatedClasses(tuple(SaveForm(**entry) for entry in tables.get("form", ())), no_classes, holes)


@dataclass
class SavedClass:
    """A class and its coverage.

    Attributes:
        group: ``module``, ``dtype``, ``construct``, ``operator`` or ``packed``.
        name: its name in the group.
        family: that of the archives that contain it.
        asked: versions of the releases in its grid, oldest first.
        covered: by release, the recipes whose archives contain it.
        refused: by release, the message if it cannot save the class.
    """

    group: str
    name: str
    family: str
    asked: tuple[str, ...]
    covered: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    refused: dict[str, str] = field(default_factory=dict)

    @property
    def missing(self) -> tuple[str, ...]:
        """The releases in its grid without evidence."""
        return tuple(release for release in self.asked if release not in self.covered and release not in self.refused)


def unexplained(classes: Iterable[SavedClass], stated: StatedClasses) -> list[str]:
    """Describe all problems: classes that no archive covers and no hole lists, and holes that are closed."""
    left = [item for item in classes if item.missing]
    wrong = [
        f"{item.group} {item.name}: no recipe covers it in {', '.join(item.missing)}"
        for item in left
        if not any(hole.speaks_of(item.group, item.name) for hole in stated.holes)
    ]
    for hole in stated.holes:
        for pattern in hole.classes:
            part = Stated(hole.group, (pattern,), hole.because)
            if not any(part.speaks_of(item.group, item.name) for item in left):
                wrong.append(
                    f"{hole.group} {pattern}: listed as a gap, but all of its classes are covered; remove it from {CLASSES}"
                )
    return wrong
