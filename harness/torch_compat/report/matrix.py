"""Writers by readers, with one mark per pair: the most severe outcome of all its cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch_compat.releases.release import public
from torch_compat.report.breaks import MARKS, WORST_FIRST, order

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.judging.judge import Report

__all__ = ["matrix"]


def matrix(report: Report) -> Iterator[tuple[str, list[str]]]:
    """For each family under default options: a title, and lines of equal width. Versions of readers are written vertically."""
    families = sorted({family for _, _, family, options in report.outcomes if options == "default"})
    for family in families:
        worst = {  # the reference reader is one column, with all its horizons
            (writer, reader.partition("@")[0]): next(MARKS[outcome][0] for outcome in WORST_FIRST if counts[outcome])
            for (writer, reader, item, options), counts in report.outcomes.items()
            if item == family and options == "default"
        }
        writers = sorted({writer for writer, _ in worst}, key=order)
        readers = sorted({reader for _, reader in worst}, key=order)
        names = [public(reader) for reader in readers]
        left = max(len(writer.removeprefix("torch-")) for writer in writers)
        lines = [
            f"{'':{left}}  {' '.join(name.rjust(max(map(len, names)))[line] for name in names)}".rstrip()
            for line in range(max(map(len, names)))
        ]
        lines += [
            f"{writer.removeprefix('torch-'):{left}}  {' '.join(worst.get((writer, reader), '·') for reader in readers)}"
            for writer in writers
        ]
        yield f"{family}: writers (rows) read by releases (columns), the most severe outcome of each pair", lines
