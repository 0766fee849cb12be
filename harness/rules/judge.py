"""Judging: every rule of the policy over the evidence, waivers applied, failures grouped by cause.

Pure: no archive is opened, no clock is read, and the same evidence gives the same report.
"""

from __future__ import annotations

import hashlib
import importlib
import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, cast

from harness.errors import UsageError
from harness.rules.judgement import Judgement, Outcome, Verdict
from harness.rules.waivers_exact import judge_waivers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from harness.policy import RuleEntry
    from harness.rules.evidence import Cell, Evidence

__all__ = ["Finding", "Report", "judge"]

WAIVERS_EXACT = "waivers-exact"  # counts what the other rules' failures used, so it comes last
ENGINE = frozenset({"cells", "evidence", "judge", "judgement"})  # modules of this package that are no rules
Alike = dict[tuple[str, str, str, str], set[str]]  # readers by cause, fixture, options and direction
SHOWN = frozenset({Verdict.FAIL, Verdict.WAIVED, Verdict.EXPECTED})


@dataclass(frozen=True)
class Finding:
    """Judgements of one rule that share a cause.

    Attributes:
        id: the cause's id, by which waivers name it: rule, what, subject, and the release where it shows first.
        verdict: ``fail``, ``waived`` or ``expected``.
        count: how many cells or things it covers.
        cause: one line for people.
        first_reader: public version of the oldest reader that shows it (of the newest, where readers are older than writers).
        readers, writers: public versions concerned, oldest first.
        smallest: the smallest fixture that shows it, or the first thing, where it is not about cells.
        reproduce: the command that shows the smallest one again.
        waiver: id of the waiver, where there is one.
        what: the outcome or kind.
        options: id of the load options, or "" where it is not about cells.
        bump: for values that changed: the file format version that announces it, or "" where nothing does.
    """

    id: str
    rule: str
    verdict: Verdict
    count: int
    cause: str
    first_reader: str
    readers: tuple[str, ...]
    writers: tuple[str, ...]
    smallest: str
    reproduce: str
    waiver: str
    what: str
    options: str
    bump: str


@dataclass(frozen=True)
class Report:
    """What judging found.

    Attributes:
        exit_status: 0 all promises hold, 1 one is broken, 4 something could not be checked.
        counts: judgements by verdict, every verdict named.
        outcomes: cells by (writer, reader, family, options) and outcome.
        findings: failures first, then what is waived, then what is expected.
        not_checked: what could not be checked, why, and how many times.
    """

    as_of: str
    evidence: str
    exit_status: int
    counts: dict[Verdict, int]
    outcomes: dict[tuple[str, str, str, str], Counter[Outcome]]
    findings: tuple[Finding, ...]
    not_checked: tuple[tuple[str, str, int], ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Named:
    """A judgement with the id of its cause, the release where that begins, and the waiver that covers it."""

    judgement: Judgement
    id: str
    began: str = ""
    waiver: str = ""


class Rule(Protocol):
    """A module of this package that judges."""

    def judge(self, evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
        """Judge everything that the rule selects."""


def judge(evidence: Evidence) -> Report:
    """Judge evidence.

    Raises:
        UsageError: the policy names a rule that does not exist, or gives one a parameter that it does not have.
    """
    judgements: list[Judgement] = []
    notes: list[str] = []
    empty: list[tuple[str, str, int]] = []
    waiver_rule = None
    for entry in evidence.policy.rules:
        _check_parameters(entry)
        if entry.id == WAIVERS_EXACT:
            waiver_rule = entry
            continue
        found = list(_rule(entry).judge(evidence, entry))
        if not found and entry.expect_empty:
            notes.append(f"{entry.id} selects nothing, as expected: {entry.expect_empty}")
        elif not found:
            empty.append((entry.id, "the rule selects nothing", 1))
        elif entry.expect_empty:
            notes.append(f"{entry.id} selects {len(found)} things, though the policy expects none: remove expect_empty")
        judgements.extend(found)
    judgements, named, covered = _waive(evidence, judgements)
    if waiver_rule is not None:
        more = list(judge_waivers(evidence, waiver_rule, covered))
        judgements.extend(more)
        named.extend(_Named(judgement, _plain_id(judgement)) for judgement in more if judgement.verdict in SHOWN)
    elif evidence.policy.waivers:
        empty.append((WAIVERS_EXACT, "the policy has waivers, but not the rule that counts what they cover", 1))
    empty.extend(_unasked(evidence))
    counts = Counter(judgement.verdict for judgement in judgements)
    counts[Verdict.NOT_CHECKED] += sum(count for _, _, count in empty)
    not_checked = Counter(
        (judgement.rule, judgement.cause.text)
        for judgement in judgements
        if judgement.verdict is Verdict.NOT_CHECKED and judgement.cause
    )
    outcomes: dict[tuple[str, str, str, str], Counter[Outcome]] = {}
    for cell in evidence.cells:
        key = (f"torch-{cell.fixture.release}", cell.reader, cell.fixture.family, cell.options.id)
        outcomes.setdefault(key, Counter())[cell.outcome] += 1
    checked_nothing = not any(counts[verdict] for verdict in Verdict if verdict is not Verdict.NOT_CHECKED)
    return Report(
        as_of=evidence.as_of.isoformat(),
        evidence=evidence.digest,
        exit_status=1 if counts[Verdict.FAIL] else 4 if counts[Verdict.NOT_CHECKED] or checked_nothing else 0,
        counts={verdict: counts[verdict] for verdict in Verdict},
        outcomes=outcomes,
        findings=_group(evidence, named),
        not_checked=(*sorted((what, why, count) for (what, why), count in not_checked.items()), *empty),
        notes=tuple(notes),
    )


def _unasked(evidence: Evidence) -> Iterator[tuple[str, str, int]]:
    """What is wrong with the evidence itself, where the policy lacks the rule that would say so."""
    rules = {entry.id for entry in evidence.policy.rules}
    for rule, found, what in (
        ("fixtures-frozen", evidence.corpus.damage, "the corpus is damaged"),
        ("pairs-observed", evidence.unreadable, "recorded observations cannot be read"),
        ("pairs-observed", evidence.unavailable, "readers that were asked for could not be had"),
    ):
        if found and rule not in rules:
            yield rule, f"{what}, and the policy lacks the rule that judges it", len(found)


def _rule(entry: RuleEntry) -> Rule:
    name = f"harness.rules.{entry.id.replace('-', '_')}"
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        module = None
    if module is None or entry.id in ENGINE:
        raise UsageError(f"the policy names the rule {entry.id!r}, which does not exist", code="unknown-rule")
    return cast("Rule", module)


def _check_parameters(entry: RuleEntry) -> None:
    """Refuse parameters: no rule looks at any yet, so they would seem to promise something and change nothing."""
    for name in sorted(entry.parameters):
        raise UsageError(f"the policy gives the rule {entry.id!r} the parameter {name!r}, which it does not have")


# --------------------------------------------------------------------------------------------------------------- causes


def _slug(text: str) -> str:
    """A short name for a text, readable where that is possible, and unique."""
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    if len(plain) <= 40:
        return plain
    return f"{plain[:40].rstrip('-')}-{hashlib.sha256(text.encode()).hexdigest()[:6]}"


def _plain_id(judgement: Judgement) -> str:
    assert judgement.cause is not None  # noqa: S101 - only judgements with a cause are named
    return f"{judgement.rule}:{_slug(judgement.cause.what)}:{_slug(judgement.cause.subject)}"


def _cell_id(evidence: Evidence, judgement: Judgement, alike: Alike) -> tuple[str, str]:
    """A cause's id and the release where it begins for this fixture.

    Going away from the writer, that is the first reader with the same cause: the oldest of the newer ones, the newest of
    the older ones.
    """
    plain = _plain_id(judgement)
    cell = judgement.cell
    if cell is None:
        return plain, judgement.reader
    calendar = evidence.policy.calendar
    began = sorted(
        alike[plain, cell.fixture.id, cell.options.id, cell.direction],
        key=lambda version: calendar[version].parsed,
        reverse=cell.direction.startswith("forward"),
    )[0]
    options = "" if cell.options.id == "default" else f"({cell.options.id})"
    return f"{plain}{options}@{began}", began


def _waive(evidence: Evidence, judgements: list[Judgement]) -> tuple[list[Judgement], list[_Named], dict[str, Counter[str]]]:
    """Match failures of cells with waivers: all judgements, those with a cause and its id, and cells by waiver and reader."""
    alike: Alike = {}
    for judgement in judgements:
        if judgement.cell is not None and judgement.verdict in SHOWN:
            cell = judgement.cell
            alike.setdefault((_plain_id(judgement), cell.fixture.id, cell.options.id, cell.direction), set()).add(cell.release)
    waivers = {
        (waiver.cause, reader): waiver.id
        for waiver in evidence.policy.waivers
        if not waiver.expired(evidence.as_of)
        for reader in waiver.readers
    }
    covered: dict[str, Counter[str]] = {}
    settled: list[Judgement] = []
    named: list[_Named] = []
    for judgement in judgements:
        if judgement.verdict not in SHOWN:
            settled.append(judgement)
            continue
        name, began = _cell_id(evidence, judgement, alike)
        waiver = ""
        if judgement.verdict is Verdict.FAIL and judgement.cell is not None:
            waiver = waivers.get((name, judgement.reader), "")
        if waiver:
            if judgement.cell is not None and judgement.cell.recorded:
                covered.setdefault(waiver, Counter())[judgement.reader] += 1
            judgement = replace(judgement, verdict=Verdict.WAIVED)  # noqa: PLW2901 - from here on it is a waived one
        settled.append(judgement)
        named.append(_Named(judgement, name, began, waiver))
    return settled, named, covered


def _group(evidence: Evidence, named: list[_Named]) -> tuple[Finding, ...]:
    groups: dict[tuple[Verdict, str, str], list[_Named]] = {}
    for one in named:
        groups.setdefault((one.judgement.verdict, one.id, one.waiver), []).append(one)
    findings = [_finding(evidence, members) for members in groups.values()]
    order = {Verdict.FAIL: 0, Verdict.WAIVED: 1, Verdict.EXPECTED: 2}
    return tuple(sorted(findings, key=lambda finding: (order[finding.verdict], finding.rule, finding.id, finding.waiver)))


def _finding(evidence: Evidence, members: list[_Named]) -> Finding:
    calendar = evidence.policy.calendar
    judgements = sorted((one.judgement for one in members), key=lambda judgement: _size(judgement, evidence))
    smallest = judgements[0]
    assert smallest.cause is not None  # noqa: S101 - only judgements with a cause are named
    cells = [judgement.cell for judgement in judgements if judgement.cell is not None]
    readers = {judgement.reader for judgement in judgements if judgement.reader}
    writers = {cell.fixture.release for cell in cells}
    reproduce, subject = "torch-compat judge", smallest.subject
    if smallest.cell is not None:
        cell = smallest.cell
        subject = cell.fixture.id
        options = "" if cell.options.id == "default" else f" --options {cell.options.id}"
        reproduce = f"torch-compat observe --reader torch-{cell.release} --fixture {cell.fixture.id}{options} --show"
    bumps = {_bump(evidence, cell) for cell in cells}
    return Finding(
        id=members[0].id,
        rule=smallest.rule,
        verdict=smallest.verdict,
        count=len(judgements),
        cause=smallest.cause.text,
        first_reader=members[0].began,
        readers=tuple(sorted(readers, key=lambda version: calendar[version].parsed))
        if readers <= set(_versions(evidence))
        else (),
        writers=tuple(sorted(writers, key=lambda version: calendar[version].parsed)),
        smallest=subject,
        reproduce=reproduce,
        waiver=members[0].waiver,
        what=smallest.cause.what,
        options=smallest.cell.options.id if smallest.cell is not None else "",
        bump=", ".join(sorted(filter(None, bumps))) if len(bumps) == 1 else "",
    )


def _versions(evidence: Evidence) -> Iterable[str]:
    return (release.version for release in evidence.policy.calendar)


def _size(judgement: Judgement, evidence: Evidence) -> tuple[int, object, str]:
    """Small archives first; among equals the older reader."""
    cell = judgement.cell
    if cell is None:
        return (0, 0, judgement.subject)
    return (cell.fixture.size, evidence.policy.calendar[cell.release].parsed, cell.fixture.id)


def _bump(evidence: Evidence, cell: Cell) -> str:
    """The file format version, between writer and reader, that announces a change of one of the fixture's operators."""
    has = cell.fixture.versions.get("file-format")
    calendar = evidence.policy.calendar
    used = {operator.partition(".")[0] for operator in cell.fixture.operators}
    for entry in evidence.policy.formats:
        if entry.kind != "file-format" or has is None or not used.intersection(entry.operators or ()):
            continue
        known = calendar[entry.read_from.release].parsed <= calendar[cell.release].parsed
        if has < entry.version and known:
            return f"file format {entry.version}"
    return ""
