"""``reports/predictions.md``: how well the reference reader predicts the behavior of each release."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch_compat.releases.behavior import SLIPS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from torch_compat.policy import Policy
    from torch_compat.policy.counts import Key
    from torch_compat.releases.sets import ReleaseSet

__all__ = ["LOADING", "PROGRAMS", "ReaderCounts", "document", "spans", "stated"]

HEAD = """\
<!-- Generated: nox -s predictions -- --write. Do not edit. -->
# How well the reference reader predicts every release

The reference reader loads each TorchScript, mobile and exported program of the corpus at the horizon of each release, and its results are
compared with the recorded results of that release: whether it loads the program, refuses it, crashes or does not finish; what each call returns or
raises; and the state before and after. A cell is one program and one release. `nox -s predictions` repeats all of it in a few minutes,
and fails if a cell is predicted wrongly or differs from this document.
"""
PROGRAMS = """
## Slips

Slips are behaviors by which a release departs from its own rules (`policies/torch/behaviors.toml`). Each one is a condition on the archive and a range
of releases. These cells agree because the reference reader does the same, or predicts that the release crashes.
"""
LOADING = """
## Loading exceptions

Behaviors that determine which releases load an archive when no general rule applies (`policies/torch/behaviors.toml`), for all families of archives.
`tests/repository/test_loadability.py` counts the cells.
"""


_ROW = re.compile(r"^\| (\S+) \| (\d+) \| (\d+) \| (\d+) \|", re.MULTILINE)


@dataclass(frozen=True)
class ReaderCounts:
    """The counts for one reader.

    Attributes:
        cells: the number of programs.
        agrees: the number of correct predictions among them.
        by_slip: the number of correct predictions explained by a slip.
        slips: the number of them for each slip.
    """

    release: str
    cells: int
    agrees: int
    by_slip: int
    slips: Counter[str]

    @property
    def share(self) -> str:
        """The share that agrees; 100 % only if nothing is wrong, and ``none`` if there are no programs."""
        if not self.cells:
            return "none"
        return f"{int(10000 * self.agrees / self.cells) / 100:.2f} %"

    def __str__(self) -> str:
        wrong = self.cells - self.agrees
        return f"{self.release:8} {self.share:>8} of {self.cells}; {self.by_slip} by slips; {wrong} wrong"


def document(readers: Sequence[ReaderCounts], policy: Policy, counts: Mapping[Key, int]) -> str:
    """The whole document.

    Parameters:
        counts: the counts of behaviors, by kind and id.
    """
    counted: Counter[str] = Counter()
    for reader in readers:
        counted.update(reader.slips)
    cells, agree, slipped = (sum(getattr(item, name) for item in readers) for name in ("cells", "agrees", "by_slip"))
    total = ReaderCounts("all", cells, agree, slipped, counted)
    rows = [(item.release, item.cells, item.agrees, item.by_slip, item.share) for item in (*readers, total)]
    slips = [
        (entry.id, spans(entry.readers), entry.outcome, counts["behavior", entry.id], entry.because)
        for entry in policy.behaviors
        if entry.outcome in SLIPS and entry.readers is not None
    ]
    departing = sorted((entry.id, counts["behavior", entry.id], entry.because) for entry in policy.behaviors if entry.departs)
    return "".join(
        [
            HEAD,
            table(("release", "programs", "agree", "of these by slips", "share"), rows),
            PROGRAMS,
            table(("slip", "releases", "outcome", "cells", "why"), slips),
            LOADING,
            table(("behavior", "cells", "why"), departing),
        ]
    )


def stated(text: str) -> list[ReaderCounts]:
    """The counts in a document for each reader, without the counts per slip."""
    rows = _ROW.findall(text.partition(PROGRAMS)[0])
    return [
        ReaderCounts(name, int(cells), int(agrees), int(slipped), Counter())
        for name, cells, agrees, slipped in rows
        if name != "all"
    ]


def spans(readers: ReleaseSet) -> str:
    """A set of releases in words."""
    return ", ".join(
        f"{interval.first} to {interval.last}" if interval.first and interval.last and interval.first != interval.last
        else str(interval.first) if interval.first == interval.last
        else f"{interval.first} and newer" if interval.first
        else f"{interval.last} and older"
        for interval in readers.intervals
    )  # fmt: skip


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n" + "".join(
        f"| {' | '.join(str(cell).replace('|', '/').replace('__', chr(92) + '_' + chr(92) + '_') for cell in line)} |\n"
        for line in lines
    )
