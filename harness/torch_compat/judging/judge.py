"""Judge: run every rule of the policy on the evidence, apply waivers, and group failures by cause.

Pure: no archive is opened, no clock is read, and the same evidence gives the same report.
"""

from __future__ import annotations

import datetime as dt
import importlib
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from torch_compat.corpus.manifest import release_folder
from torch_compat.corpus.observations import REFERENCE
from torch_compat.errors import UsageError
from torch_compat.judging.findings import Finding, Named, group, plain_id, waive
from torch_compat.judging.judgement import Asks, Judgement, Verdict, missing_rule
from torch_compat.judging.operator_changes import PairCounts, operator_changes, operators_became, pair_counts, unknown_operators
from torch_compat.judging.readers import Sums
from torch_compat.judging.waiving import Waiving, direction_of
from torch_compat.policy.accepted import DIRECTIONS
from torch_compat.policy.counts import key_of
from torch_compat.policy.messages import UNFINISHED
from torch_compat.policy.operator_waivers import digest_of
from torch_compat.words import count_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import ModuleType

    from torch_compat.judging.cell import Outcome
    from torch_compat.judging.evidence import Evidence
    from torch_compat.policy import RuleEntry
    from torch_compat.policy.counts import Key, Value
    from torch_compat.policy.model import Waiver
    from torch_compat.policy.operator_waivers import Changed, OperatorWaiver

    Step = Callable[[int, int], None]

__all__ = [
    "Measured",
    "ReaderJudgement",
    "ReaderSource",
    "Report",
    "examine",
    "judge",
    "judge_reader",
    "judge_upgrader",
    "measure",
]

DEFAULT = "default"  # the load options that pass nothing, as in most programs
WAIVERS_EXACT = "waivers-exact"  # counts what the failures of other rules used, so it runs last
OPERATOR_WAIVERS_EXACT = "operator-waivers-exact"
UPGRADERS_PROVEN = "upgraders-proven"
SHOWN = frozenset({Verdict.FAIL, Verdict.WAIVED, Verdict.CONTINUES, Verdict.EXPECTED})


class ReaderSource(NamedTuple):
    """The source of statements about a reader.

    Attributes:
        reader: its exact name.
        now: whether it was observed for this report; otherwise it is only recorded.
        observed: the day of its newest observation (ISO, UTC).
        age_days: days from that day to the day of judging; negative if the day of judging is earlier.
    """

    reader: str
    now: bool
    observed: str
    age_days: int


@dataclass(frozen=True)
class Report:
    """What judging found.

    Attributes:
        exit_status: 0 all promises hold, 1 one is broken, 4 something could not be checked.
        counts: judgements by verdict, every verdict named.
        outcomes: cells by (writer, reader, family, options) and outcome.
        findings: failures first, then waived ones, then expected ones.
        not_checked: what could not be checked, why, and how many times.
        no_promise: what was not promised, by rule and reason ("" if the rule itself is the reason), and how many times.
        questions: whether the values are correct, counted once for each cell that was loaded with default options: by direction
            (``backward``, ``own``, ``forward``, ``synthetic``) and verdict.
        asked: ``counts`` by what the rules check.
        waivers: those of the policy.
        modelled: how many of ``counts`` depend on the reference reader alone, by verdict, every verdict named.
        operators: what became of operators from each recorded release to the next, oldest first.
        sources: which readers were observed now, and which are only recorded; oldest release first.
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
    no_promise: tuple[tuple[str, str, int], ...] = ()
    questions: dict[str, dict[Verdict, int]] = field(default_factory=dict)
    asked: dict[Asks, dict[Verdict, int]] = field(default_factory=dict)
    sources: tuple[ReaderSource, ...] = ()


class Rule(Protocol):
    """A module of :mod:`torch_compat.rules`. One with a ``READER`` judges what that reader did, if it was run.

    Attributes:
        ASKS: what it checks.

    The optional ``PARAMETERS`` are the names of its settings in the policy; the optional ``notes`` takes the arguments of ``judge`` and
    returns remarks on what was not checked.
    """

    ASKS: Asks

    def judge(self, evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
        """Judge everything that the rule selects."""


class WaiverRule(Protocol):
    """The module of the rule that judges waivers by what they cover."""

    ASKS: Asks

    def judge_waivers(self, evidence: Evidence, rule: RuleEntry, waiving: Waiving) -> Iterator[Judgement]:
        """Judge every waiver."""


def judge(evidence: Evidence, step: Step | None = None) -> Report:
    """Judge evidence; return only the report of :func:`examine`."""
    return examine(evidence, step)[0]


def examine(evidence: Evidence, step: Step | None = None) -> tuple[Report, tuple[Named, ...]]:
    """Judge evidence; return the report, and every judgement that its findings group.

    Parameters:
        step: called before each rule with the number of rules already run, and of all rules.

    Raises:
        UsageError: the policy names a rule that does not exist, or sets a parameter that a rule does not have.
    """
    tally, notes, empty = _asked(evidence, step=step)
    waiver_rule = next((entry for entry in evidence.policy.rules if entry.id == WAIVERS_EXACT), None)
    named, waiving = waive(evidence, tally.caused)
    if waiver_rule is not None:
        rule = cast("WaiverRule", _module(waiver_rule))
        tally.asks[WAIVERS_EXACT] = rule.ASKS
        before = len(tally.caused)
        tally.take(rule.judge_waivers(evidence, waiver_rule, waiving))
        named.extend(Named(judgement, plain_id(judgement)) for judgement in tally.caused[before:])
    elif evidence.policy.waivers:
        empty.append((WAIVERS_EXACT, "the policy has waivers, but not the rule that counts what they cover", 1))
    for item in named:
        tally.count(item.judgement)
    empty.extend(_unasked(evidence))
    counts, modelled = tally.counts, tally.modelled
    counts[Verdict.NOT_CHECKED] += sum(count for _, _, count in empty)
    checked_nothing = not any(counts[verdict] for verdict in Verdict if verdict is not Verdict.NOT_CHECKED)
    report = Report(
        as_of=evidence.as_of.isoformat(),
        evidence=evidence.digest,
        exit_status=1 if counts[Verdict.FAIL] else 4 if counts[Verdict.NOT_CHECKED] or checked_nothing else 0,
        counts={verdict: counts[verdict] for verdict in Verdict},
        outcomes=_outcomes(evidence),
        findings=group(evidence, named),
        not_checked=(*sorted((what, why, count) for (what, why), count in tally.not_checked.items()), *empty),
        notes=tuple(notes),
        waivers=(*evidence.policy.waivers, *evidence.policy.operator_waivers),
        modelled={verdict: modelled[verdict] for verdict in Verdict},
        operators=pair_counts(evidence) if any(entry.id == "schema-breaks-upgraded" for entry in evidence.policy.rules) else (),
        questions={direction: _by_verdict(tally.questions[direction]) for direction in DIRECTIONS},
        asked={asks: _by_verdict(tally.asked[asks]) for asks in Asks},
        no_promise=tuple(sorted((what, why, count) for (what, why), count in tally.no_promise.items())),
        sources=tuple(_sources(evidence)),
    )
    return report, tuple(named)


def _sources(evidence: Evidence) -> Iterator[ReaderSource]:
    """Yield every reader once: observed now if so, otherwise recorded. The contents of build trees were observed when they were made."""
    for reader in evidence.readers:
        if reader.recorded and reader.name in evidence.fresh:
            continue
        item = (evidence.recorded if reader.recorded else evidence.fresh)[reader.name]
        age = (evidence.as_of - dt.date.fromisoformat(item.observed)).days
        yield ReaderSource(reader.name, not reader.recorded and not evidence.builds, item.observed, age)
    if evidence.reference is not None:
        item = evidence.reference
        yield ReaderSource(item.name, True, item.observed, (evidence.as_of - dt.date.fromisoformat(item.observed)).days)


class _Tally:
    """Counts the judgements of rules. Only judgements that may become findings are kept.

    Attributes:
        caused: those with a visible cause. They are not counted yet, since waivers are still to be applied.
        not_checked: those that could not be checked, by rule and reason.
        no_promise: those about which nothing was promised, by rule and reason.
        asks: what each rule checks, by its id.
        questions: those of cells that were loaded with default options, by direction: see :class:`Report`.
    """

    def __init__(self) -> None:
        self.caused: list[Judgement] = []
        self.not_checked: Counter[tuple[str, str]] = Counter()
        self.no_promise: Counter[tuple[str, str]] = Counter()
        self.asks: dict[str, Asks] = {}
        self.questions: defaultdict[str, Counter[Verdict]] = defaultdict(Counter)
        self._things: dict[tuple[str, Verdict, bool], int] = {}  # by rule, verdict, and whether it is modelled

    @property
    def counts(self) -> Counter[Verdict]:
        """The number of things with each verdict."""
        return self._sums(self._things)

    @property
    def modelled(self) -> Counter[Verdict]:
        """Those of :attr:`counts` that depend on the model of a release alone."""
        return self._sums(key for key in self._things if key[2])

    @property
    def asked(self) -> dict[Asks, Counter[Verdict]]:
        """:attr:`counts` by what the rules check."""
        return {asks: self._sums(key for key in self._things if self.asks[key[0]] is asks) for asks in Asks}

    def _sums(self, keys: Iterable[tuple[str, Verdict, bool]]) -> Counter[Verdict]:
        results: Counter[Verdict] = Counter()
        for key in keys:
            results[key[1]] += self._things[key]
        return results

    def take(self, judgements: Iterable[Judgement]) -> int:
        """Take the judgements of one rule; return the number of things that they cover."""
        result = 0
        for judgement in judgements:
            result += judgement.count
            if judgement.cause is not None and judgement.verdict in SHOWN:
                self.caused.append(judgement)
            else:
                self.count(judgement)
        return result

    def count(self, judgement: Judgement) -> None:
        """Count a judgement as it is."""
        things, verdict, cells = judgement.count, judgement.verdict, judgement.cells
        key = judgement.rule, verdict, judgement.modelled
        self._things[key] = self._things.get(key, 0) + things
        if cells is not None and cells.options.id == DEFAULT and cells.loaded and self.asks[judgement.rule] is Asks.VALUES:
            self.questions[direction_of(cells)][verdict] += things
        if verdict is Verdict.NOT_CHECKED and judgement.cause is not None:
            self.not_checked[judgement.rule, judgement.cause.text] += things
        elif verdict is Verdict.NO_PROMISE:
            self.no_promise[judgement.rule, judgement.cause.text if judgement.cause else ""] += things


def _by_verdict(counts: Counter[Verdict]) -> dict[Verdict, int]:
    """The counts with every verdict named."""
    return {verdict: counts[verdict] for verdict in Verdict}


def _outcomes(evidence: Evidence) -> dict[tuple[str, str, str, str], Counter[Outcome]]:
    """Cells by writer, reader, family and options, and by outcome."""
    rows: dict[tuple[str, str, str], dict[Outcome, Sums]] = {}
    for cells in evidence.cells:
        row = rows.setdefault((cells.fixture.release, cells.fixture.family, cells.options.id), {})
        if cells.outcome not in row:
            row[cells.outcome] = Sums()
        row[cells.outcome].add(cells.readers)
    names = [reader.name for reader in evidence.readers]
    results: dict[tuple[str, str, str, str], Counter[Outcome]] = {}
    for (release, family, options), sums in rows.items():
        counters: dict[int, Counter[Outcome]] = {}
        for outcome, counted in sums.items():
            for place, count in counted.items():
                if place not in counters:
                    counters[place] = Counter()
                counters[place][outcome] = count
        for place, counter in counters.items():
            key = (release_folder(release), names[place], family, options)
            if key in results:
                results[key] += counter  # recorded and fresh observations of one reader
            else:
                results[key] = counter
    for fixture, options, observation in evidence.modelled:
        key = (release_folder(fixture.release), f"{REFERENCE}@{fixture.release}", fixture.family, options)
        results.setdefault(key, Counter())[evidence.outcome(fixture, observation)] += 1
    return results


class ReaderJudgement(NamedTuple):
    """The judgement of a rule on one cell of a reader, or on something else that the reader did.

    Attributes:
        verdict: ``fail``, ``waived``, ``continues`` or ``expected``.
        id: the id of the cause, as in findings.
    """

    rule: str
    verdict: Verdict
    id: str
    cause: str


def judge_reader(
    evidence: Evidence, name: str
) -> tuple[dict[tuple[str, str], tuple[ReaderJudgement, ...]], tuple[tuple[str, ReaderJudgement], ...]]:
    """The judgements of one reader's fresh observations: by fixture and load options, and by subject if they are not about cells.

    Rules that check whether evidence is complete or exceptions are exact are left out: they are about the corpus.

    Raises:
        UsageError: the policy names a rule that does not exist, or sets a parameter that a rule does not have.
    """
    tally, _, _ = _asked(evidence, frozenset({WAIVERS_EXACT, OPERATOR_WAIVERS_EXACT}))
    named, _ = waive(evidence, [entry for entry in tally.caused if tally.asks[entry.rule] is not Asks.BOOKKEEPING])
    bit = evidence.readers.where(lambda reader: reader.name == name and not reader.recorded)
    release = evidence.fresh[name].release
    cells: dict[tuple[str, str], tuple[ReaderJudgement, ...]] = {}
    others: list[tuple[str, ReaderJudgement]] = []
    for item in named:
        judgement = item.judgement
        message = ReaderJudgement(judgement.rule, judgement.verdict, item.id, judgement.cause.text if judgement.cause else "")
        if judgement.cells is None:
            if release in {judgement.reader, judgement.at}:
                others.append((judgement.subject, message))
        elif judgement.cells.readers & bit:
            place = (judgement.cells.fixture.id, judgement.cells.options.id)
            cells[place] = (*cells.get(place, ()), message)
    return cells, tuple(others)


def judge_upgrader(evidence: Evidence, upgrader: str) -> Report:
    """The judgement of one upgrader by the rule about upgraders: the report of :func:`judge` without everything else.

    Parameters:
        upgrader: its id.

    Raises:
        UsageError: the policy lacks this upgrader, or the rule.
    """
    stated = next((item for item in evidence.policy.upgraders if item.id == upgrader), None)
    entry = next((rule for rule in evidence.policy.rules if rule.id == UPGRADERS_PROVEN), None)
    if stated is None or entry is None:
        what = f"the upgrader {upgrader!r}" if stated is None else f"the rule {UPGRADERS_PROVEN}"
        known = ", ".join(item.id for item in evidence.policy.upgraders)
        raise UsageError(f"the policy does not have {what}", hint=f"its upgraders: {known}", code="unknown-upgrader")
    report, named = examine(evidence)
    mine = {f"{upgrader}: ", f"{stated.operator}: "}
    messages = [item for item in _rule(entry).judge(evidence, entry) if any(item.subject.startswith(name) for name in mine)]
    kept = [
        item
        for item in named
        if item.judgement.rule == entry.id and any(item.judgement.subject.startswith(name) for name in mine)
    ]
    counts = Counter(dict.fromkeys(Verdict, 0))
    counts.update(item.verdict for item in messages if item.cause is None or item.verdict not in SHOWN)
    counts.update(item.judgement.verdict for item in kept)
    unchecked = [item for item in messages if item.verdict is Verdict.NOT_CHECKED and item.cause is not None]
    return replace(
        report,
        exit_status=1 if counts[Verdict.FAIL] else 4 if counts[Verdict.NOT_CHECKED] or not messages else 0,
        counts=dict(counts),
        outcomes={},
        findings=group(evidence, kept),
        not_checked=tuple((entry.id, item.cause.text, item.count) for item in unchecked if item.cause is not None),
        notes=(f"only {upgrader} was checked, with the rule {entry.id}",),
        waivers=(),
        modelled={item: sum(each.modelled for each in messages if each.verdict is item) for item in Verdict},
        operators=(),
        no_promise=tuple(
            (entry.id, item.cause.text if item.cause else "", 1) for item in messages if item.verdict is Verdict.NO_PROMISE
        ),
        questions={direction: _by_verdict(Counter()) for direction in DIRECTIONS},
        asked={asks: _by_verdict(counts if asks is Asks.OTHER else Counter()) for asks in Asks},
        sources=(),
    )


@dataclass(frozen=True)
class Measured:
    """The counts of everything that a policy has counted, according to the evidence.

    Attributes:
        counts: what each operator_gap covers, by kind and id, and what each operator of an operator_waiver became. None if nothing is
            recorded to count; 0 if nothing is covered.
        became: the changes that each operator of an operator_waiver shows, by the same keys.
        waiving: what waivers cover.
        expired: those that have expired, and therefore cover nothing.
        not_checked: what could not be checked, and why: the counts are then not final.
    """

    counts: dict[Key, Value | None]
    became: dict[Key, tuple[Changed, ...]]
    waiving: Waiving
    expired: frozenset[tuple[str, str]]
    not_checked: tuple[str, ...]


def measure(evidence: Evidence) -> Measured:
    """Count everything that judging counts, independently of what the policy states.

    Raises:
        UsageError: the policy names a rule that does not exist, or sets a parameter that a rule does not have.
    """
    tally, _, empty = _asked(evidence, frozenset({WAIVERS_EXACT, OPERATOR_WAIVERS_EXACT}))
    _, waiving = waive(evidence, tally.caused)
    policy, changes = evidence.policy, evidence.derived(operator_changes)
    counts: dict[Key, Value | None] = {}
    became = operators_became(evidence)
    counts |= {key: None if changes is None else digest_of(shown) if shown else 0 for key, shown in became.items()}
    for release in policy.operator_gaps:
        counts["operator_gap", release] = None if changes is None else unknown_operators(changes, release)
    expired = {("waiver", waiver.id) for waiver in policy.waivers if waiver.expired(evidence.as_of)}
    lapsed = [waiver for waiver in policy.operator_waivers if waiver.expired(evidence.as_of)]
    expired |= {key_of(waiver.id, operator) for waiver in lapsed for operator in waiver.operators}
    unchecked = [why for _, why in tally.not_checked]
    unchecked += [f"{what}: {why}" for what, why, _ in (*empty, *_unasked(evidence))]
    return Measured(counts, became, waiving, frozenset(expired), tuple(dict.fromkeys(unchecked)))


def _asked(
    evidence: Evidence, left_out: frozenset[str] = frozenset({WAIVERS_EXACT}), step: Step | None = None
) -> tuple[_Tally, list[str], list[tuple[str, str, int]]]:
    """Run the rules of the policy except those left out; return the tally, notes, and the rules that select nothing, with the reason.

    Raises:
        UsageError: the policy names a rule that does not exist, or sets a parameter that a rule does not have.
    """
    tally = _Tally()
    notes: list[str] = []
    empty: list[tuple[str, str, int]] = []
    for number, entry in enumerate(evidence.policy.rules):
        if step is not None:
            step(number, len(evidence.policy.rules))
        module = _rule(entry)
        _check_parameters(entry, getattr(module, "PARAMETERS", frozenset()))
        if entry.id in left_out:
            continue
        tally.asks[entry.id] = module.ASKS
        reader = getattr(module, "READER", None)
        if reader is not None and evidence.reference is None:
            notes.append(
                f"{entry.id} was not checked, because the {reader} reader was not run: `torch-compat replay --reader {reader}`"
            )
            continue
        result = tally.take(module.judge(evidence, entry))
        notes.extend(getattr(module, "notes", _no_notes)(evidence, entry))
        if not result and entry.expect_empty:
            notes.append(f"{entry.id} selects nothing, as expected: {entry.expect_empty}")
        elif not result:
            empty.append((entry.id, "the rule selects nothing", 1))
        elif entry.expect_empty:
            notes.append(f"{entry.id} selects {count_of(result, 'item')}, although the policy expects none: remove expect_empty")
    return tally, notes, empty


def _unasked(evidence: Evidence) -> Iterator[tuple[str, str, int]]:
    """Yield problems of the evidence itself, if the policy lacks the rule that would report them."""
    rules = {entry.id for entry in evidence.policy.rules}
    for rule, result, what in (
        ("fixtures-frozen", evidence.corpus.damage, "the corpus is damaged"),
        ("pairs-observed", evidence.unreadable, "recorded observations cannot be read"),
        ("pairs-observed", evidence.unavailable, "required readers were not available"),
        ("reference-agrees", evidence.modelled, "the reference reader was run"),
        ("wordings-exact", evidence.policy.wordings, "it has wordings"),
        (
            "operator-waivers-exact",
            (*evidence.policy.operator_waivers, *evidence.policy.operator_gaps),
            "it has exceptions for operators",
        ),
    ):
        if result and rule not in rules:
            yield rule, f"{what}, but the policy has no rule that judges this", len(result)


def _rule(entry: RuleEntry) -> Rule:
    return cast("Rule", _module(entry))


def _module(entry: RuleEntry) -> ModuleType:
    name = f"torch_compat.rules.{entry.id.replace('-', '_')}"
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise missing_rule(entry.id) from None
    docstring = module.__doc__ or ""
    if UNFINISHED in docstring:
        lines = [number for number, line in enumerate(docstring.splitlines(), 1) if UNFINISHED in line]  # it begins on line 1
        raise UsageError(
            f"the rule {entry.id!r} is unfinished: its docstring has {count_of(len(lines), 'placeholder')}",
            where=f"harness/torch_compat/rules/{entry.id.replace('-', '_')}.py:{lines[0]}",
            hint=f"replace {UNFINISHED}...>",
            code="unfinished",
        )
    return module


def _no_notes(_evidence: Evidence, _entry: RuleEntry) -> tuple[str, ...]:
    return ()


def _check_parameters(entry: RuleEntry, known: frozenset[str]) -> None:
    """Refuse parameters that a rule does not use: they would seem to promise something and change nothing."""
    for name in sorted(entry.parameters.keys() - known):
        raise UsageError(f"the policy sets the parameter {name!r} of the rule {entry.id!r}, which has no such parameter")
