"""What the corpus has to hold, class by class, and what is known to be lacking: ``fixtures/classes.toml``.

The classes themselves are derived from what releases say (:mod:`torch_compat.replay.classes`). The file holds what no release says:

``[[form]]``     a way of saving: ``id``, ``family``, ``container``, ``since``, ``because``
``[[no_class]]`` names that a survey lists and that are no classes: ``group``, ``classes``, ``because``
``[[hole]]``     classes that some release is to have written and that no archive holds: ``group``, ``classes`` (patterns with ``*``),
                 ``because``. A hole that is closed has to go.
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
        id: in words: ``torch.save, zip``.
        family, container: of its archives.
        since: the first release of the corpus that is asked for it.
        because: why not before.
    """

    id: str
    family: str
    container: str
    since: str
    because: str


@dataclass(frozen=True)
class Stated:
    """Classes of a group of which something is said, with the reason.

    Attributes:
        classes: names, or patterns with ``*``.
    """

    group: str
    classes: tuple[str, ...]
    because: str

    def speaks_of(self, group: str, name: str) -> bool:
        """Whether it is about a class."""
        return group == self.group and any(fnmatchcase(name, pattern) for pattern in self.classes)


@dataclass(frozen=True)
class StatedClasses:
    """The whole file."""

    forms: tuple[SaveForm, ...]
    no_classes: tuple[Stated, ...]
    holes: tuple[Stated, ...]


def read_classes(path: Path) -> StatedClasses:
    """What the file says.

    Raises:
        CorpusError: it cannot be read, or a table lacks a key or has another.
        PolicyError: it is no TOML; with the line.
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
                wanted, found = ", ".join(_KEYS[kind]), ", ".join(entry)
                raise CorpusError(f"[[{kind}]] number {number} has {found}; expected {wanted}", where=str(path))
    no_classes, holes = (
        tuple(Stated(entry["group"], tuple(entry["classes"]), entry["because"]) for entry in tables.get(kind, ()))
        for kind in ("no_class", "hole")
    )
    return StatedClasses(tuple(SaveForm(**entry) for entry in tables.get("form", ())), no_classes, holes)


@dataclass
class SavedClass:
    """One class, and what covers it.

    Attributes:
        group: ``module``, ``dtype``, ``construct``, ``operator`` or ``packed``.
        name: of the class in its group.
        family: of the archives that hold it.
        asked: versions of the releases of its grid, oldest first.
        covered: of each release the recipes whose archives hold it.
        refused: of each release what it says where it cannot save it.
    """

    group: str
    name: str
    family: str
    asked: tuple[str, ...]
    covered: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    refused: dict[str, str] = field(default_factory=dict)

    @property
    def missing(self) -> tuple[str, ...]:
        """The releases of its grid of which nothing is known."""
        return tuple(release for release in self.asked if release not in self.covered and release not in self.refused)


def unexplained(classes: Iterable[SavedClass], stated: StatedClasses) -> list[str]:
    """What is wrong, in words: classes that no archive covers and no hole states, and holes that are none any more."""
    left = [one for one in classes if one.missing]
    wrong = [
        f"{one.group} {one.name}: no recipe covers it in {', '.join(one.missing)}"
        for one in left
        if not any(hole.speaks_of(one.group, one.name) for hole in stated.holes)
    ]
    for hole in stated.holes:
        for pattern in hole.classes:
            part = Stated(hole.group, (pattern,), hole.because)
            if not any(part.speaks_of(one.group, one.name) for one in left):
                wrong.append(
                    f"{hole.group} {pattern}: listed as a gap, but all of its classes are covered; remove it from {CLASSES}"
                )
    return wrong
