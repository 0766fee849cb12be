"""The warnings of a release, while it loads or runs an archive, are known.

What: every warning is listed in ``policies/torch/warnings.toml``, with its category and text in each release that emits it, and
the archives that cause it. A warning that is not listed is new; a warning with a different category was recategorized. A listed
warning is missing if a release loads an archive without it although other listed releases warn for the same archive, or if no
release warns for an archive that must always cause it. The same applies to each call of a program, whatever warnings the writer
emitted in it. A listed wording that no observed release of its set emits is reported, and so is a listed operator if no program with it
causes the warning.

Why: releases use warnings to tell users which archives they will stop reading. A new warning is seen by everybody, a lost one by
nobody, and a warning that became a DeprecationWarning is hidden from users by default.

Example: every load of torch 2.16.0 warns that archives will not be read from 2.17 on.

Reference: PyTorch's Python Frontend Backward and Forward Compatibility Policy: a deprecation warns for two releases before it
ends.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from torch_compat.judging.cell import Outcome
from torch_compat.judging.cells import judge_cells, told_apart
from torch_compat.judging.judgement import Asks, Cause, Judgement, Verdict
from torch_compat.releases.release import Release

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from torch_compat.judging.cell import Cells
    from torch_compat.judging.evidence import Evidence
    from torch_compat.policy import RuleEntry
    from torch_compat.policy.sayings import KnownMessage

__all__ = ["judge"]

ASKS: Final = Asks.OTHER

LOADING: Final = ""
"""The location of messages printed on loading. Every other location is a call, such as ``calls[0].first``."""
ENDS: Final = frozenset({"crashed", "timed-out"})
"""What a golden contains if the writer itself has no result."""

Failures = list[tuple[int, Cause]]


@dataclass
class _Heard:
    """The warnings of the readers of one fixture, under one set of load options, at one location.

    Attributes:
        said: the readers that emitted a warning, by category and text.
        asked: the readers that passed this location, and whose warnings are known.
    """

    said: dict[tuple[str, str], int] = field(default_factory=dict)
    asked: int = 0

    def say(self, warnings: Iterable[tuple[str, str]], readers: int) -> None:
        for warning in warnings:
            self.said[warning] = self.said.get(warning, 0) | readers


class _Known:
    """A listed warning, with the readers of its wordings as bitmasks, and what was observed of it."""

    def __init__(self, entry: KnownMessage, evidence: Evidence) -> None:
        self.entry = entry
        self.spans = tuple(
            evidence.readers.where(lambda reader, element=item: Release(reader.release) in element.releases)  # type: ignore[misc]
            for item in entry.says
        )
        self.span = 0
        for bits in self.spans:
            self.span |= bits
        self.asked = 0  # the readers that were observed with archives that it applies to
        self.told = 0  # the readers with a failure, which is already reported
        self.said = [0] * len(entry.says)  # the readers that emitted each wording
        self.among: set[str] = set()  # the operators of observed programs
        self.of: set[str] = set()  # the operators of programs that caused it

    def concerns(self, cells: Cells) -> bool:
        return self.entry.concerns(cells.fixture.family, cells.options.id, cells.fixture.operators)

    def stated(self, text: str) -> Iterator[tuple[str, int]]:
        """Yield the category and the readers of each listed wording that matches a text."""
        for phrase, span in zip(self.entry.says, self.spans, strict=True):
            if phrase.is_in(text):
                yield phrase.type, span

    def note(self, heard: _Heard, cells: Cells, failures: Failures) -> None:
        """Record which readers were observed, which emitted which wording, and which have failures."""
        for bits, _ in failures:
            self.told |= bits
        operators = self.entry.operators_of(cells.fixture.operators)
        self.asked |= heard.asked
        self.among |= operators if heard.asked & self.span else set()
        for (category, text), bits in heard.said.items():
            for index, phrase in enumerate(self.entry.says):
                if phrase.type == category and phrase.is_in(text) and bits & self.spans[index]:
                    self.said[index] |= bits
                    self.of |= operators


def judge(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Judge every cell with a warning, or without an expected one; then listed warnings that no release emits."""
    stated = [_Known(warning, evidence) for warning in evidence.policy.warnings]
    alike: dict[tuple[str, str, tuple[str, ...]], list[_Known]] = {}  # known warnings by family, options and operators
    for line in evidence.by_line.values():
        key = (line[0].fixture.family, line[0].options.id, tuple(line[0].fixture.operators))
        if key not in alike:
            alike[key] = [entry for entry in stated if entry.concerns(line[0])]
        concerned = alike[key]
        failures: Failures = []
        spoken = 0
        for place, heard in _heard(line, calls=any(entry.entry.during == "running" for entry in concerned)).items():
            if not concerned and not heard.said:
                continue
            known = [entry for entry in concerned if (entry.entry.during == "loading") == (place == LOADING)]
            results = [*_unstated(heard, known, line[0], place), *_missing(heard, known, line, place)]
            failures += results
            for item in known:
                item.note(heard, line[0], results)
            spoken |= _passing(heard, known)
        for cells in line:
            left = cells.readers
            for bits, cause in failures:
                for part, failed in told_apart(cells, bits):
                    if failed:
                        left &= ~part.readers
                        yield Judgement(rule.id, Verdict.FAIL, part.subject, cause, part)
            for part, fine in told_apart(cells, left & spoken):
                if fine:
                    yield judge_cells(rule, part, Verdict.PASS)
    yield from _unsaid(evidence, rule, stated)


def _heard(line: Sequence[Cells], *, calls: bool) -> dict[str, _Heard]:
    """Return the warnings by location; calls without any warning are included only if ``calls`` is true."""
    heard = {LOADING: _Heard()}
    golden = line[0].fixture.golden.get("calls", ())
    dies = not ENDS.isdisjoint(line[0].fixture.golden)
    elsewhere = {where for cells in line for where, _ in cells.observation.said}
    expected = {
        where: [(category, text) for category, text in warnings]
        for index, call in enumerate(golden)
        for turn in ("first", "second")
        if (warnings := call[turn].get("warnings", ())) or calls or elsewhere
        for where in (f"calls[{index}].{turn}",)
        if calls or warnings or where in elsewhere
    }
    for cells in line:
        heard[LOADING].say(cells.observation.warnings, cells.readers)
        if not cells.loaded or (dies and cells.outcome is Outcome.SAME):  # the warnings of a process that dies are lost
            continue
        heard[LOADING].asked |= cells.readers
        if not expected or not cells.observation.heard:
            continue
        messages = dict(cells.observation.said)
        for where, warnings in expected.items():
            place = heard.setdefault(where, _Heard())
            place.asked |= cells.readers
            place.say(messages.get(where, warnings), cells.readers)
    return heard


def _unstated(heard: _Heard, known: list[_Known], cells: Cells, place: str) -> Failures:
    """Return the readers that emit a warning that is not listed for them, with the cause."""
    failures: Failures = []
    for (category, text), message in sorted(heard.said.items()):
        bits, stated = message, [pair for item in known for pair in item.stated(text)]
        for told, span in stated:
            bits &= ~span if told == category else -1
        for told, span in stated:
            if bits & span:
                what = f"{category} instead of {told}: {text}"
                failures.append((bits & span, _cause("another category", text, what, cells, place)))
                bits &= ~span
        if bits:
            failures.append((bits, _cause("new warning", text, f"{category}: {text}", cells, place)))
    return failures


def _passing(heard: _Heard, known: list[_Known]) -> int:
    """Return the readers with warnings, except those emitted once per process, which depend on chance and would vary the counts."""
    readers = 0
    for (_, text), bits in heard.said.items():
        if not any(item.entry.once and item.entry.said(text) for item in known):
            readers |= bits
    return readers


def _missing(heard: _Heard, known: list[_Known], line: Sequence[Cells], place: str) -> Failures:
    """Return the readers that pass without a warning that is listed for them, with the cause."""
    failures: Failures = []
    for item in known:
        message = 0
        for (_, text), bits in heard.said.items():
            if item.entry.said(text):
                message |= bits
        missing = heard.asked & item.span & ~message
        if not missing or item.entry.may_be_silent or not (item.entry.always or message & item.span):
            continue
        if place != LOADING:
            missing &= ~_raising(line, place, missing)
        for wording, span in zip(item.entry.says, item.spans, strict=True):
            silent, missing = missing & span, missing & ~span
            if silent:
                text = f"{wording.type}: {wording.text}"
                text = f"{line[0].fixture.id} loads without the {text}" if place == LOADING else text
                failures.append((silent, _cause("missing warning", item.entry.id, text, line[0], place)))
    return failures


def _raising(line: Sequence[Cells], place: str, among: int) -> int:
    """Return the readers among these that raise in a call: they may have stopped before the warning."""
    index, _, turn = place.removeprefix("calls[").partition("].")
    raising = 0
    for cells in line:
        if cells.readers & among:
            result = cells.observation.own_result(cells.fixture.golden)
            if index not in map(str, range(len(result.get("calls", ())))) or "error" in result["calls"][int(index)][turn]:
                raising |= cells.readers
    return raising


def _cause(what: str, subject: str, text: str, cells: Cells, place: str) -> Cause:
    if place == LOADING:
        return Cause(what, subject, text)
    return Cause(f"{what} in a call", subject, f"{cells.fixture.recipe}, {place}: {text}")


def _unsaid(evidence: Evidence, rule: RuleEntry, stated: list[_Known]) -> Iterator[Judgement]:
    """Judge listed wordings that no observed release emits, unless a failure of these releases is already reported.

    For a warning that a process emits only once, it may be chance which wording is observed, but not that none is.
    """
    for known in stated:
        if known.entry.once and any(known.said):
            continue
        silent = [
            (span & known.asked, f"{wording.type}: {wording.text}")
            for wording, span, message in zip(known.entry.says, known.spans, known.said, strict=True)
            if span & known.asked and not span & (message | known.told)
        ]
        unused = set() if known.told else known.among - known.of - {"*"}
        silent += [(known.span & known.asked, f"in programs with {operator}") for operator in sorted(unused)]
        for bits, text in silent:
            cause = Cause("unsaid", known.entry.id, f"none of the listed releases emits the warning {known.entry.id}, {text}")
            *_, newest = evidence.readers.of(bits)
            yield Judgement(rule.id, Verdict.FAIL, known.entry.id, cause, reader=newest.release)
