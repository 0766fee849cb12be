"""Which archives may be run by a release that is not isolated: those of the frozen corpus, byte for byte."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from torch_compat.archive_files import measure
from torch_compat.corpus.corpus import FROZEN, read_frozen
from torch_compat.corpus.manifest import MANIFEST, read_manifest
from torch_compat.errors import CorpusError
from torch_compat.readers.isolation import trust_everything, trust_nothing

if TYPE_CHECKING:
    from pathlib import Path

    from torch_compat.corpus.manifest import Fixture
    from torch_compat.readers.isolation import Trust

__all__ = ["frozen_in", "trusted"]


def trusted(fixtures: Path | None, *, everything: bool) -> Trust:
    """What a release that is not isolated may run: everything if requested, otherwise the frozen corpus.

    Parameters:
        fixtures: the corpus's folder; None if there is none.
    """
    if everything:
        return trust_everything
    return trust_nothing if fixtures is None else frozen_in(fixtures)


def frozen_in(fixtures: Path) -> Trust:
    """Trust the fixtures of a corpus whose manifest entry ``FROZEN`` pins and whose bytes match the entry.

    Anyone who can change ``FROZEN`` can make it pin anything, so it proves nothing in a tree modified by others.

    Parameters:
        fixtures: the corpus's folder. If it holds no readable corpus, nothing is trusted.
    """

    @cache
    def pins() -> dict[str, str]:
        try:
            return read_frozen(fixtures / FROZEN)
        except CorpusError:
            return {}

    @cache
    def entries(folder: Path) -> dict[str, Fixture]:
        try:
            return {entry.file: entry for entry in read_manifest(folder / MANIFEST).fixtures}
        except CorpusError:
            return {}

    def trusted(path: Path) -> bool:
        path = path.resolve()
        if path.parent.parent != fixtures.resolve():
            return False
        entry = entries(path.parent).get(path.name)
        if entry is None or pins().get(entry.id) != entry.pin:
            return False
        try:
            return measure(path).sha256 == entry.sha256
        except CorpusError:  # a directory that contains something other than files
            return False

    return trusted
