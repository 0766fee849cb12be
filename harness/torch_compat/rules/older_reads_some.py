"""An older reader loads at least one archive of a release, or a known format explains why it does not.

What: if a reader older than the writer, outside the forward window, refuses or raises in every archive of one family that a
release wrote, under one set of load options, then each archive must be explained: by a version of a format that the reader does not know,
by a listed layout (a behavior with ``writers`` in ``policies/torch/behaviors.toml``), or by the purpose of the load options. A layout that
explains no archive is outdated.

Why: a single archive that an older reader refuses says little, and was not promised. But if no archive of a writer loads anymore, the
writer has changed its format, and that should not go unnoticed.

Example: torch 2.16.0 writes a different pickle into every program, and torch 2.15.0 raises in all of them; the version stays 10.

Reference: dynamic versioning, pytorch/pytorch#40279: a change of the format changes its number.
"""

from __future__ import annotations

from collections import Counter
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final

from torch_compat.judging.cell import Outcome
from torch_compat.judging.judgement import Asks, Cause, Judgement, Verdict
from torch_compat.judging.readers import places
from torch_compat.releases.release import Release

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.judging.cell import Cells
    from torch_compat.judging.evidence import Evidence
    from torch_compat.policy import RuleEntry
    from torch_compat.policy.behaviors import BehaviorEntry
    from torch_compat.releases.sets import ReleaseSet

__all__ = ["judge"]

ASKS: Final = Asks.LOADING

NOTHING = frozenset({Outcome.REFUSED, Outcome.RAISED})


def judge(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Judge every older reader for each family of archives that a release wrote."""
    takers = {entry.label: _readers(evidence, entry.readers) for entry in evidence.policy.formats}
    stated = [entry for entry in evidence.policy.behaviors if entry.says is not None]
    changed = {layout.id: _without(evidence, layout) for layout in stated}
    written: dict[tuple[str, str, str], list[Cells]] = {}
    for cells in evidence.toward["forward"]:
        written.setdefault((cells.fixture.release, cells.fixture.family, cells.options.id), []).append(cells)
    used: set[str] = set()
    for (writer, family, options), line in written.items():
        layouts = [
            entry for entry in stated if _is_of(entry, family) and entry.writers is not None and Release(writer) in entry.writers
        ]
        asked, some = 0, 0
        left: list[tuple[Cells, int]] = []  # cells that did not load, with the readers for which nothing explains it
        for cells in line:
            asked |= cells.readers
            if cells.outcome not in NOTHING:
                some |= cells.readers
                continue
            unknown = cells.readers & ~evidence.refusals_expected(cells) & ~_too_new(cells, takers)
            for layout in layouts:
                if cells.readers & changed[layout.id] and str(layout.says) in cells.message:
                    used.add(layout.id)
                    unknown &= ~changed[layout.id]
            left.append((cells, unknown))
        for at in places(asked):
            reader = evidence.readers.first(1 << at)
            unexplained: Counter[str] = Counter()
            for cells, unknown in () if some >> at & 1 else left:
                if cells.readers >> at & 1:
                    unexplained[cells.message] += unknown >> at & 1
            unexplained = +unexplained
            named = family if options == "default" else f"{family} ({options})"
            subject = f"{named} archives of {writer} read by {reader.name}"
            if not unexplained:
                yield Judgement(rule.id, Verdict.PASS, subject, reader=reader.release)
                continue
            ((message, _),) = unexplained.most_common(1)
            cause = Cause("nothing read", named, f"{subject}: none loads, and no version or layout explains this: {message}")
            yield Judgement(rule.id, Verdict.FAIL, subject, cause, reader=reader.release, at=writer)
    for layout in stated:
        if layout.id not in used and _recorded(evidence, layout):
            cause = Cause("unused layout", layout.id, f"the layout {layout.id} does not explain any recorded archive")
            yield Judgement(rule.id, Verdict.FAIL, layout.id, cause)


def _readers(evidence: Evidence, releases: ReleaseSet) -> int:
    return evidence.readers.where(lambda reader: Release(reader.release) in releases)


def _too_new(cells: Cells, takers: dict[str, int]) -> int:
    """Return the readers that do not know a format version of an archive.

    Parameters:
        takers: the readers that do, by format and version.
    """
    fixture = cells.fixture
    labels = [*(f"{kind} {version}" for kind, version in fixture.versions.items()), f"container {fixture.container}"]
    return reduce(or_, (~takers[label] for label in labels if label in takers), 0)


def _is_of(layout: BehaviorEntry, family: str) -> bool:
    """Whether a layout is for a family; only the error shows whether an individual archive has the layout."""
    return f"family:{family}" in layout.when.all


def _without(evidence: Evidence, layout: BehaviorEntry) -> int:
    """Return the readers that do not load archives of a layout."""
    return evidence.readers.where(lambda reader: layout.readers is not None and Release(reader.release) not in layout.readers)


def _recorded(evidence: Evidence, layout: BehaviorEntry) -> bool:
    """Whether the evidence has archives of writers with a layout, and readers that do not load it."""
    wrote = {fixture.release for fixture in evidence.corpus.fixtures.values() if _is_of(layout, fixture.family)}
    return bool(_without(evidence, layout)) and any(
        writer in evidence.policy.calendar and layout.writers is not None and Release(writer) in layout.writers
        for writer in wrote
    )
