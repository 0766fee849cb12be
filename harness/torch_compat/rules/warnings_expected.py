"""What a release says while it loads an archive, or runs it, is known.

What: every warning is stated as policy (``policies/torch/warnings.toml``): its category, its text, the releases that say it. One that is not
is new; one that is stated with another category was re-categorised; and where a stated warning is not said by a release that loads an
archive of which other stated releases say it, or by any that loads an archive of which it is always said, it is missing. Warnings of
calls are held against the golden's: one that only the reader, or only the writer, gives has to be stated so.

Why: a warning is how a release speaks to those whose archives it will stop reading. A new one is read by everybody, a lost one by
nobody, and one that became a DeprecationWarning is hidden from users by default.

Example: every load of torch 2.16.0 warns that archives will not be read from 2.17 on.

Reference: PyTorch's Python Frontend Backward and Forward Compatibility Policy: a deprecation warns for two releases before it ends.
"""

from __future__ import annotations

from functools import cache, reduce
from operator import or_
from typing import TYPE_CHECKING, Final

from torch_compat.releases.release import Release
from torch_compat.rules.cells import judge_cells, told_apart
from torch_compat.rules.judgement import Asks, Cause, Judgement, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch_compat.policy import RuleEntry
    from torch_compat.policy.model import KnownWarning
    from torch_compat.rules.evidence import Cells, Evidence

__all__ = ["judge"]

ASKS: Final = Asks.OTHER

Failures = list[tuple[int, Cause]]


def judge(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Judge every cell in which something is said, or should be."""
    spans = {
        one.id: evidence.readers.where(lambda reader, one=one: Release(reader.release) in one.readers)  # type: ignore[misc]
        for one in evidence.policy.warnings
    }
    stated = cache(lambda family, options: [one for one in evidence.policy.warnings if one.concerns(family, options)])
    for (fixture, options), line in evidence.by_line.items():
        known = stated(line[0].fixture.family, options)
        loading = [one for one in known if one.during == "loading"]
        running = [one for one in known if one.during == "running"]
        said: dict[tuple[str, str], int] = {}
        for cells in line:
            for warning in cells.observation.warnings:
                said[warning] = said.get(warning, 0) | cells.readers
        failures = [
            *_unstated(said, loading, spans),
            *_missing(line, said, loading, spans, fixture),
            *_running(line, running, spans),
        ]
        for cells in line:
            if not failures and not cells.observation.warnings and not cells.observation.said:
                continue
            left = cells.readers
            for bits, cause in failures:
                for part, failed in told_apart(cells, bits):
                    if failed:
                        left &= ~part.readers
                        yield Judgement(rule.id, Verdict.FAIL, part.subject, cause, part)
            for part, fine in told_apart(cells, left):
                if fine and (cells.observation.warnings or cells.observation.said):
                    yield judge_cells(rule, part, Verdict.PASS)


def _unstated(said: dict[tuple[str, str], int], known: list[KnownWarning], spans: dict[str, int]) -> Failures:
    """The readers that say what is not stated of them, with the cause."""
    failures: Failures = []
    for (category, text), bits in said.items():
        unknown, moved = bits, 0
        for one in known:
            if one.says(text) and one.category == category:
                unknown &= ~spans[one.id]
            elif one.says(text):
                moved |= spans[one.id]
        told = [one.category for one in known if one.says(text)]
        if unknown & moved:
            failures.append((unknown & moved, Cause("another category", text, f"{category} instead of {told[0]}: {text}")))
        if unknown & ~moved:
            failures.append((unknown & ~moved, Cause("new warning", text, f"{category}: {text}")))
    return failures


def _missing(
    line: Sequence[Cells], said: dict[tuple[str, str], int], known: list[KnownWarning], spans: dict[str, int], fixture: str
) -> Failures:
    """The readers that load without a warning which is stated of them, with the cause."""
    failures: Failures = []
    for one in known:
        if one.varies or not (said or one.always):
            continue
        saying = reduce(or_, (bits for (_, text), bits in said.items() if one.says(text)), 0)
        if one.always or saying & spans[one.id]:
            loaded = sum(cells.readers for cells in line if cells.loaded)  # no reader is in two sets of a line
            missing = loaded & spans[one.id] & ~saying
            if missing:
                text = f"{fixture} loads without the {one.category}: {one.text}"
                failures.append((missing, Cause("missing warning", one.id, text)))
    return failures


def _running(line: Sequence[Cells], known: list[KnownWarning], spans: dict[str, int]) -> Failures:
    """The readers that warn in calls otherwise than the writer did, where that is not stated, with the cause."""
    failures: Failures = []
    for cells in line:
        for where, given in cells.observation.said:
            index, _, turn = where.removeprefix("calls[").partition("].")
            wanted = {(category, text) for category, text in cells.fixture.golden["calls"][int(index)][turn].get("warnings", ())}
            for category, text in sorted(set(given) ^ wanted):
                new = (category, text) in given
                stated = 0
                for one in known:
                    if one.category == category and one.says(text):
                        stated |= spans[one.id]
                listed = any(one.category == category and one.says(text) for one in known)
                bits = cells.readers & (~stated if new else stated if listed else -1)
                if bits:
                    what = "new warning" if new else "missing warning"
                    failures.append(
                        (bits, Cause(f"{what} in a call", text, f"{cells.fixture.recipe}, {where}: {category}: {text}"))
                    )
    return failures
