"""Judging: every rule of the policy over the evidence, waivers applied, failures grouped by cause.

Pure: no archive is opened, no clock is read, and the same evidence gives the same report.
"""

from __future__ import annotations

import importlib
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol, cast

from torch_compat.corpus.manifest import release_folder
from torch_compat.corpus.observations import REFERENCE
from torch_compat.errors import UsageError
from torch_compat.policy.messages import UNFINISHED
from torch_compat.releases.release import Release
from torch_compat.rules.cells import kind_of
from torch_compat.rules.judgement import Judgement, Outcome, Verdict, slug
from torch_compat.rules.operator_changes import PairCounts, pair_counts
from torch_compat.rules.waivers_exact import Covered, judge_waivers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.policy import RuleEntry
    from torch_compat.policy.model import Waiver
    from torch_compat.policy.operator_waivers import OperatorWaiver
    from torch_compat.rules.evidence import Cell, Evidence

__all__ = ["Finding", "Report", "judge"]

WAIVERS_EXACT = "waivers-exact"  # counts what the other rules' failures used, so it comes last
ENGINE = frozenset(
    {"cells", "evidence", "judge", "judgement", "operator_changes", "sweep", "timelines"}
)  # modules of this package that are no rules
KEPT = frozenset({Outcome.SAME, Outcome.CLOSE})  # outcomes without a cause
SHOWN = frozenset({Verdict.FAIL, Verdict.WAIVED, Verdict.EXPECTED})


@dataclass(frozen=True)
class Finding:
    """Judgements of one rule that share a cause.

    Attributes:
        id: the cause's id, by which waivers name it: rule, what, subject, options, and the release where it begins.
        verdict: ``fail``, ``waived`` or ``expected``.
        count: how many cells or things it covers.
        cause: one line for people.
        title: the waiver's title, else the cause.
        first_reader: the release where it begins (see :class:`_Beginnings`): seen from the writers, the first that behaves so.
        readers, writers: public versions concerned, oldest first.
        smallest: the smallest fixture that shows it, or the first thing, where it is not about cells.
        reproduce: the command that shows the smallest one again.
        waiver: id of the waiver, where there is one.
        what: the outcome or kind.
        families: of the archives concerned.
        options: id of the load options, or "" where it is not about cells.
        bump: for values that changed: the file format version that announces it, or "" where nothing does.
        modelled: whether it rests on the reference reader alone.
    """

    id: str
    rule: str
    verdict: Verdict
    count: int
    cause: str
    title: str
    first_reader: str
    readers: tuple[str, ...]
    writers: tuple[str, ...]
    smallest: str
    reproduce: str
    waiver: str
    what: str
    families: tuple[str, ...]
    options: str
    bump: str
    modelled: bool = False


@dataclass(frozen=True)
class Report:
    """What judging found.

    Attributes:
        exit_status: 0 all promises hold, 1 one is broken, 4 something could not be checked.
        counts: judgements by verdict, every verdict named.
        outcomes: cells by (writer, reader, family, options) and outcome.
        findings: failures first, then what is waived, then what is expected.
        not_checked: what could not be checked, why, and how many times.
        waivers: those of the policy.
        modelled: how many of ``counts`` rest on the reference reader alone, by verdict, every verdict named.
        operators: what became of operators from each recorded release to the next, oldest first.
    """

    as_of: str
    evidence: str
    exit_status: int
    counts: dict[Verdict, int]
    outcomes: dict[tuple[str, str, str, str], Counter[Outcome]]
    findings: tuple[Finding, ...]
    not_checked: tuple[tuple[str, str, int], ...]
    notes: tuple[str, ...]
    waivers: tuple[Waiver | OperatorWaiver, ...] = ()
    modelled: dict[Verdict, int] = field(default_factory=dict)
    operators: tuple[PairCounts, ...] = ()


@dataclass(frozen=True)
class _Named:
    """A judgement with the id of its cause, the release where that begins, and the waiver that covers it."""

    judgement: Judgement
    id: str
    began: str = ""
    waiver: str = ""


class Rule(Protocol):
    """A module of this package that judges. One with a ``READER`` is about what that reader did, where it was let read."""

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
        module = _rule(entry)
        reader = getattr(module, "READER", None)
        if reader is not None and evidence.reference is None:
            notes.append(
                f"{entry.id} was not asked, since the {reader} reader did not read: `torch-compat replay --reader {reader}`"
            )
            continue
        found = list(module.judge(evidence, entry))
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
        key = (release_folder(cell.fixture.release), cell.reader, cell.fixture.family, cell.options.id)
        outcomes.setdefault(key, Counter())[cell.outcome] += 1
    for fixture, options, observation in evidence.modelled:
        key = (release_folder(fixture.release), f"{REFERENCE}@{fixture.release}", fixture.family, options)
        outcomes.setdefault(key, Counter())[evidence.outcome(fixture, observation)] += 1
    modelled = Counter(judgement.verdict for judgement in judgements if judgement.modelled)
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
        waivers=(*evidence.policy.waivers, *evidence.policy.operator_waivers),
        modelled={verdict: modelled[verdict] for verdict in Verdict},
        operators=pair_counts(evidence) if any(entry.id == "schema-breaks-upgraded" for entry in evidence.policy.rules) else (),
    )


def _unasked(evidence: Evidence) -> Iterator[tuple[str, str, int]]:
    """What is wrong with the evidence itself, where the policy lacks the rule that would say so."""
    rules = {entry.id for entry in evidence.policy.rules}
    for rule, found, what in (
        ("fixtures-frozen", evidence.corpus.damage, "the corpus is damaged"),
        ("pairs-observed", evidence.unreadable, "recorded observations cannot be read"),
        ("pairs-observed", evidence.unavailable, "readers that were asked for could not be had"),
        ("reference-agrees", evidence.modelled, "the reference reader read"),
        (
            "operator-waivers-exact",
            evidence.policy.operator_waivers + evidence.policy.operator_gaps,
            "it has exceptions for operators",
        ),
    ):
        if found and rule not in rules:
            yield rule, f"{what}, and the policy lacks the rule that judges it", len(found)


def _rule(entry: RuleEntry) -> Rule:
    name = f"torch_compat.rules.{entry.id.replace('-', '_')}"
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        module = None
    if module is None or entry.id.replace("-", "_") in ENGINE:
        raise UsageError(f"the policy names the rule {entry.id!r}, which does not exist", code="unknown-rule")
    if UNFINISHED in (module.__doc__ or ""):
        raise UsageError(
            f"the rule {entry.id!r} is half done: its docstring still wants what {UNFINISHED}...> asks for",
            where=f"harness/torch_compat/rules/{entry.id.replace('-', '_')}.py",
            code="unfinished",
        )
    return cast("Rule", module)


def _check_parameters(entry: RuleEntry) -> None:
    """Refuse parameters: no rule looks at any yet, so they would seem to promise something and change nothing."""
    for name in sorted(entry.parameters):
        raise UsageError(f"the policy gives the rule {entry.id!r} the parameter {name!r}, which it does not have")


# --------------------------------------------------------------------------------------------------------------- causes


def _plain_id(judgement: Judgement) -> str:
    assert judgement.cause is not None  # noqa: S101 - only judgements with a cause are named
    return f"{judgement.rule}:{judgement.cause.what.replace(' ', '-')}:{slug(judgement.cause.subject)}"


class _Beginnings:
    """Where causes begin.

    Going away from the writer of a fixture, that is the first reader with the cause: the oldest of the newer ones, the newest
    of the older ones. Where that reader is the nearest one to the writer, the cause may be older than the fixture; so it is
    followed back, past the writer, for as long as every reader shows it. A change of a reader thus begins with the same release
    for the archives of all writers.
    """

    def __init__(self, evidence: Evidence) -> None:
        self._rank = evidence.rank
        self._versions = {rank: version for version, rank in self._rank.items()}
        self._shown: dict[tuple[str, str], dict[int, set[tuple[str, str]]]] = {}
        for cell in evidence.cells:
            kinds = self._shown.setdefault((cell.fixture.id, cell.options.id), {}).setdefault(self._rank[cell.release], set())
            if cell.outcome not in KEPT:
                kinds.add(kind_of(cell))

    def of(self, cell: Cell, kind: tuple[str, str]) -> str:
        """The release where a cause of this kind begins, as seen from a cell's fixture."""
        shown = self._shown[cell.fixture.id, cell.options.id]
        wrote = self._rank[cell.fixture.release]
        if cell.direction.startswith("forward"):
            first = max(reader for reader, kinds in shown.items() if reader < wrote and kind in kinds)
            beyond = sorted(reader for reader in shown if reader > first)
        else:
            nearest = wrote if cell.direction == "own" else wrote + 1
            first = min(reader for reader, kinds in shown.items() if reader >= nearest and kind in kinds)
            beyond = sorted((reader for reader in shown if reader < first), reverse=True)
        for reader in beyond:
            if kind not in shown[reader]:
                break
            first = reader
        return self._versions[first]


def _waive(evidence: Evidence, judgements: list[Judgement]) -> tuple[list[Judgement], list[_Named], dict[str, Covered]]:
    """Match failures of cells with waivers: all judgements, those with a cause and its id, and what each waiver covers."""
    beginnings = _Beginnings(evidence)
    waivers: dict[str, list[Waiver]] = {}
    for waiver in evidence.policy.waivers:
        if not waiver.expired(evidence.as_of):
            for name in waiver.causes:
                waivers.setdefault(name, []).append(waiver)
    covered: dict[str, Covered] = {}
    settled: list[Judgement] = []
    named: list[_Named] = []
    for judgement in judgements:
        cell, cause = judgement.cell, judgement.cause
        if judgement.verdict not in SHOWN or cause is None:
            settled.append(judgement)
            continue
        name, began, chosen = _plain_id(judgement), judgement.reader, judgement.waiver
        if cell is not None:
            began = beginnings.of(cell, (cause.what, cause.subject))
            name += f"{'' if cell.options.id == 'default' else f'({cell.options.id})'}@{began}"
        elif judgement.at:
            began = judgement.at
            name += f"@{began}"
        if (cell is not None or judgement.at in evidence.rank) and judgement.verdict is Verdict.FAIL:
            fitting = [waiver for waiver in waivers.get(name, ()) if Release(judgement.reader) in waiver.readers.releases]
            chosen = fitting[0].id if fitting else ""
            if cell is None or cell.recorded:
                _count(covered, fitting, (name, judgement.reader))
        if chosen:
            judgement = replace(judgement, verdict=Verdict.WAIVED)  # noqa: PLW2901 - from here on it is a waived one
        settled.append(judgement)
        named.append(_Named(judgement, name, began, chosen))
    return settled, named, covered


def _count(covered: dict[str, Covered], fitting: list[Waiver], member: tuple[str, str]) -> None:
    """Put down one recorded cell for the waivers that cover it: the first one counts it, and more than one is a mistake."""
    for waiver in fitting:
        place = covered.setdefault(waiver.id, Covered())
        place.cells[member] += waiver is fitting[0]
        place.shared.update(other.id for other in fitting if other is not waiver)


def _group(evidence: Evidence, named: list[_Named]) -> tuple[Finding, ...]:
    titles = {waiver.id: waiver.title for waiver in evidence.policy.waivers}
    titles |= {waiver.id: waiver.title for waiver in evidence.policy.operator_waivers}
    groups: dict[tuple[Verdict, str, str], list[_Named]] = {}
    for one in named:
        groups.setdefault((one.judgement.verdict, one.id, one.waiver), []).append(one)
    findings = [_finding(evidence, members, titles) for members in groups.values()]
    order = {Verdict.FAIL: 0, Verdict.WAIVED: 1, Verdict.EXPECTED: 2}
    return tuple(sorted(findings, key=lambda finding: (order[finding.verdict], finding.rule, finding.id, finding.waiver)))


def _finding(evidence: Evidence, members: list[_Named], titles: dict[str, str]) -> Finding:
    smallest = min((one.judgement for one in members), key=lambda judgement: _size(judgement, evidence))
    assert smallest.cause is not None  # noqa: S101 - only judgements with a cause are named
    cells = [one.judgement.cell for one in members if one.judgement.cell is not None]
    readers = {one.judgement.reader for one in members if one.judgement.reader in evidence.rank}
    reproduce, subject = smallest.reproduce or "torch-compat judge", smallest.subject
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
        count=len(members),
        cause=smallest.cause.text,
        title=titles.get(members[0].waiver, smallest.cause.text),
        first_reader=members[0].began,
        readers=tuple(sorted(readers, key=evidence.rank.__getitem__)),
        writers=tuple(sorted({cell.fixture.release for cell in cells}, key=evidence.rank.__getitem__)),
        smallest=subject,
        reproduce=reproduce,
        waiver=members[0].waiver,
        what=smallest.cause.what,
        families=tuple(sorted({cell.fixture.family for cell in cells})),
        options=smallest.cell.options.id if smallest.cell is not None else "",
        bump=", ".join(sorted(filter(None, bumps))) if len(bumps) == 1 else "",
        modelled=all(one.judgement.modelled for one in members),
    )


def _size(judgement: Judgement, evidence: Evidence) -> tuple[int, int, str]:
    """Small archives first; among equals the older reader."""
    cell = judgement.cell
    if cell is None:
        return (0, evidence.rank.get(judgement.reader, 0), judgement.subject)
    return (cell.fixture.size, evidence.rank[cell.release], cell.fixture.id)


def _bump(evidence: Evidence, cell: Cell) -> str:
    """The file format version, between writer and reader, that announces a change of one of the fixture's operators."""
    has = cell.fixture.versions.get("file-format")
    used = {operator.partition(".")[0] for operator in cell.fixture.operators}
    for entry in evidence.policy.formats:
        if not isinstance(entry.version, int) or entry.kind != "file-format" or has is None:
            continue
        if (
            used.intersection(entry.operators or ())
            and has < entry.version
            and evidence.rank[entry.read_from.release] <= evidence.rank[cell.release]
        ):
            return f"file format {entry.version}"
    return ""
