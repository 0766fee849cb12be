"""Judging: every rule of the policy over the evidence, waivers applied, failures grouped by cause.

Pure: no archive is opened, no clock is read, and the same evidence gives the same report.
"""

from __future__ import annotations

import datetime as dt
import importlib
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from torch_compat.corpus.manifest import release_folder
from torch_compat.corpus.observations import REFERENCE
from torch_compat.errors import UsageError
from torch_compat.judging.cell import Outcome
from torch_compat.judging.cells import kind_of
from torch_compat.judging.judgement import Asks, Judgement, Verdict, slug
from torch_compat.judging.operator_changes import PairCounts, operator_changes, operators_became, pair_counts, unknown_operators
from torch_compat.judging.readers import Sums, highest, lowest
from torch_compat.judging.waiving import Waiving, direction_of
from torch_compat.policy.accepted import DIRECTIONS
from torch_compat.policy.counts import ACCEPT, key_of
from torch_compat.policy.messages import UNFINISHED
from torch_compat.policy.operator_waivers import digest_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import ModuleType

    from torch_compat.judging.cell import Cells
    from torch_compat.judging.evidence import Evidence
    from torch_compat.judging.waiving import Part
    from torch_compat.policy import RuleEntry
    from torch_compat.policy.counts import Key, Value
    from torch_compat.policy.model import Waiver
    from torch_compat.policy.operator_waivers import Changed, OperatorWaiver

__all__ = [
    "Finding",
    "Judged",
    "Measured",
    "Named",
    "Report",
    "Source",
    "examine",
    "judge",
    "judge_reader",
    "judge_upgrader",
    "measure",
]

DEFAULT = "default"  # the load options that pass nothing, as most programs do
WAIVERS_EXACT = "waivers-exact"  # counts what the other rules' failures used, so it comes last
OPERATOR_WAIVERS_EXACT = "operator-waivers-exact"
UPGRADERS_PROVEN = "upgraders-proven"
KEPT = frozenset({Outcome.SAME, Outcome.CLOSE})  # outcomes without a cause
SHOWN = frozenset({Verdict.FAIL, Verdict.WAIVED, Verdict.CONTINUES, Verdict.EXPECTED})


@dataclass(frozen=True)
class Finding:
    """Judgements of one rule that share a cause.

    Attributes:
        id: the cause's id, by which waivers name it: rule, what, subject, options, and the release where it begins.
        verdict: ``fail``, ``waived``, ``continues`` or ``expected``.
        count: how many cells or things it covers.
        cause: one line for people.
        title: the waiver's title, else the cause.
        first_reader: the release where it begins (see :class:`_Beginnings`): seen from the writers, the first that behaves so.
        readers, writers: public versions concerned, oldest first.
        smallest: the smallest fixture that shows it, or the first thing, where it is not about cells.
        reproduce: the command that shows the smallest one again.
        waiver: id of the waiver, where there is one.
        what: the outcome or kind.
        recipes, families: of the archives concerned.
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
    recipes: tuple[str, ...]
    families: tuple[str, ...]
    options: str
    bump: str
    modelled: bool = False


class Source(NamedTuple):
    """Where what is said of a reader comes from.

    Attributes:
        reader: its exact name.
        now: whether it was observed for this report; else it is only recorded.
        observed: the day of its newest observation (ISO, UTC).
        age_days: days from there to the day of judging; less than 0 where that day is an earlier one.
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
        findings: failures first, then what is waived, then what is expected.
        not_checked: what could not be checked, why, and how many times.
        no_promise: of which nothing was promised, by rule and reason ("" where the rule itself is the reason), and how many times.
        questions: whether the values are right, asked once of each cell that was loaded with default options: by direction
            (``backward``, ``own``, ``forward``, ``synthetic``) and verdict.
        asked: ``counts`` by what the rules ask.
        waivers: those of the policy.
        modelled: how many of ``counts`` rest on the reference reader alone, by verdict, every verdict named.
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
    sources: tuple[Source, ...] = ()


@dataclass(frozen=True)
class Named:
    """A judgement with the id of its cause, the release where that begins, and the waiver that covers it. Findings group them."""

    judgement: Judgement
    id: str
    began: str = ""
    waiver: str = ""


class Rule(Protocol):
    """A module of this package that judges. One with a ``READER`` is about what that reader did, where it was let read.

    Attributes:
        ASKS: what it asks.

    ``PARAMETERS``, if it has them, are the names of its settings in the policy; ``notes``, of the same arguments as ``judge``, gives
    what has to be said of what it was not asked.
    """

    ASKS: Asks

    def judge(self, evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
        """Judge everything that the rule selects."""


class WaiverRule(Protocol):
    """The module of the rule that judges waivers by what they covered."""

    ASKS: Asks

    def judge_waivers(self, evidence: Evidence, rule: RuleEntry, waiving: Waiving) -> Iterator[Judgement]:
        """Judge every waiver."""


def judge(evidence: Evidence) -> Report:
    """Judge evidence: the report of :func:`examine` alone."""
    return examine(evidence)[0]


def examine(evidence: Evidence) -> tuple[Report, tuple[Named, ...]]:
    """Judge evidence; the report, and every judgement that its findings group.

    Raises:
        UsageError: the policy names a rule that does not exist, or gives one a parameter that it does not have.
    """
    tally, notes, empty = _asked(evidence)
    waiver_rule = next((entry for entry in evidence.policy.rules if entry.id == WAIVERS_EXACT), None)
    named, waiving = _waive(evidence, tally.caused)
    if waiver_rule is not None:
        rule = cast("WaiverRule", _module(waiver_rule))
        tally.asks[WAIVERS_EXACT] = rule.ASKS
        before = len(tally.caused)
        tally.take(rule.judge_waivers(evidence, waiver_rule, waiving))
        named.extend(Named(judgement, _plain_id(judgement)) for judgement in tally.caused[before:])
    elif evidence.policy.waivers:
        empty.append((WAIVERS_EXACT, "the policy has waivers, but not the rule that counts what they cover", 1))
    for one in named:
        tally.count(one.judgement)
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
        findings=_group(evidence, named),
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


def _sources(evidence: Evidence) -> Iterator[Source]:
    """Every reader once: observed now where it was, else recorded. What trees of builds hold was observed when they were made."""
    for reader in evidence.readers:
        if reader.recorded and reader.name in evidence.fresh:
            continue
        one = (evidence.recorded if reader.recorded else evidence.fresh)[reader.name]
        age = (evidence.as_of - dt.date.fromisoformat(one.observed)).days
        yield Source(reader.name, not reader.recorded and not evidence.builds, one.observed, age)
    if evidence.reference is not None:
        one = evidence.reference
        yield Source(one.name, True, one.observed, (evidence.as_of - dt.date.fromisoformat(one.observed)).days)


class _Tally:
    """What rules said, counted. Only judgements that may become findings are kept.

    Attributes:
        caused: those with a cause that is shown. They are not counted yet, since waivers are still to be looked at.
        not_checked: those that could not be checked, by rule and reason.
        no_promise: those that nobody was promised, by rule and reason.
        asks: what each rule asks, by its id.
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
        """How many things have each verdict."""
        return self._sums(self._things)

    @property
    def modelled(self) -> Counter[Verdict]:
        """Those of them that rest on our model of a release alone."""
        return self._sums(key for key in self._things if key[2])

    @property
    def asked(self) -> dict[Asks, Counter[Verdict]]:
        """The same as :attr:`counts` by what the rules ask."""
        return {asks: self._sums(key for key in self._things if self.asks[key[0]] is asks) for asks in Asks}

    def _sums(self, keys: Iterable[tuple[str, Verdict, bool]]) -> Counter[Verdict]:
        found: Counter[Verdict] = Counter()
        for key in keys:
            found[key[1]] += self._things[key]
        return found

    def take(self, judgements: Iterable[Judgement]) -> int:
        """Take what one rule says; how many things it said something of."""
        found = 0
        for judgement in judgements:
            found += judgement.count
            if judgement.cause is not None and judgement.verdict in SHOWN:
                self.caused.append(judgement)
            else:
                self.count(judgement)
        return found

    def count(self, judgement: Judgement) -> None:
        """Count a judgement as it stands."""
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
    """Every verdict named."""
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
    found: dict[tuple[str, str, str, str], Counter[Outcome]] = {}
    for (release, family, options), sums in rows.items():
        counters: dict[int, Counter[Outcome]] = {}
        for outcome, counted in sums.items():
            for place, count in counted.items():
                if place not in counters:
                    counters[place] = Counter()
                counters[place][outcome] = count
        for place, counter in counters.items():
            key = (release_folder(release), names[place], family, options)
            if key in found:
                found[key] += counter  # recorded and fresh observations of one reader
            else:
                found[key] = counter
    for fixture, options, observation in evidence.modelled:
        key = (release_folder(fixture.release), f"{REFERENCE}@{fixture.release}", fixture.family, options)
        found.setdefault(key, Counter())[evidence.outcome(fixture, observation)] += 1
    return found


class Judged(NamedTuple):
    """What a rule says of one cell of a reader, or of something else that the reader did.

    Attributes:
        verdict: ``fail``, ``waived``, ``continues`` or ``expected``.
        id: of the cause, as findings have it.
    """

    rule: str
    verdict: Verdict
    id: str
    cause: str


def judge_reader(
    evidence: Evidence, name: str
) -> tuple[dict[tuple[str, str], tuple[Judged, ...]], tuple[tuple[str, Judged], ...]]:
    """What the rules say of what one reader did just now: by fixture and load options, and with its subject what is about no cell.

    Rules that ask whether evidence is whole or exceptions are exact are left out: they are about the corpus.

    Raises:
        UsageError: the policy names a rule that does not exist, or gives one a parameter that it does not have.
    """
    tally, _, _ = _asked(evidence, frozenset({WAIVERS_EXACT, OPERATOR_WAIVERS_EXACT}))
    named, _ = _waive(evidence, [one for one in tally.caused if tally.asks[one.rule] is not Asks.BOOKKEEPING])
    bit = evidence.readers.where(lambda reader: reader.name == name and not reader.recorded)
    release = evidence.fresh[name].release
    cells: dict[tuple[str, str], tuple[Judged, ...]] = {}
    others: list[tuple[str, Judged]] = []
    for one in named:
        judgement = one.judgement
        said = Judged(judgement.rule, judgement.verdict, one.id, judgement.cause.text if judgement.cause else "")
        if judgement.cells is None:
            if release in {judgement.reader, judgement.at}:
                others.append((judgement.subject, said))
        elif judgement.cells.readers & bit:
            place = (judgement.cells.fixture.id, judgement.cells.options.id)
            cells[place] = (*cells.get(place, ()), said)
    return cells, tuple(others)


def judge_upgrader(evidence: Evidence, upgrader: str) -> Report:
    """What the rule about upgraders says of one of them: the report of :func:`judge` without everything else.

    Parameters:
        upgrader: its id.

    Raises:
        UsageError: the policy has no such upgrader, or not the rule.
    """
    stated = next((one for one in evidence.policy.upgraders if one.id == upgrader), None)
    entry = next((one for one in evidence.policy.rules if one.id == UPGRADERS_PROVEN), None)
    if stated is None or entry is None:
        what = f"the upgrader {upgrader!r}" if stated is None else f"the rule {UPGRADERS_PROVEN}"
        known = ", ".join(one.id for one in evidence.policy.upgraders)
        raise UsageError(f"the policy does not have {what}", hint=f"its upgraders: {known}", code="unknown-upgrader")
    report, named = examine(evidence)
    mine = {f"{upgrader}: ", f"{stated.operator}: "}
    said = [one for one in _rule(entry).judge(evidence, entry) if any(one.subject.startswith(name) for name in mine)]
    kept = [
        one for one in named if one.judgement.rule == entry.id and any(one.judgement.subject.startswith(name) for name in mine)
    ]
    counts = Counter(dict.fromkeys(Verdict, 0))
    counts.update(one.verdict for one in said if one.cause is None or one.verdict not in SHOWN)
    counts.update(one.judgement.verdict for one in kept)
    unchecked = [one for one in said if one.verdict is Verdict.NOT_CHECKED and one.cause is not None]
    return replace(
        report,
        exit_status=1 if counts[Verdict.FAIL] else 4 if counts[Verdict.NOT_CHECKED] or not said else 0,
        counts=dict(counts),
        outcomes={},
        findings=_group(evidence, kept),
        not_checked=tuple((entry.id, one.cause.text, one.count) for one in unchecked if one.cause is not None),
        notes=(f"only {upgrader}, by the rule {entry.id}; everything else is left out",),
        waivers=(),
        modelled={one: sum(each.modelled for each in said if each.verdict is one) for one in Verdict},
        operators=(),
        no_promise=tuple((entry.id, one.cause.text if one.cause else "", 1) for one in said if one.verdict is Verdict.NO_PROMISE),
        questions={direction: _by_verdict(Counter()) for direction in DIRECTIONS},
        asked={asks: _by_verdict(counts if asks is Asks.OTHER else Counter()) for asks in Asks},
        sources=(),
    )


@dataclass(frozen=True)
class Measured:
    """What evidence says of everything that a policy has counted.

    Attributes:
        counts: what each operator_gap covers, by kind and id, and what each operator of an operator_waiver became. None where nothing is
            recorded to count; 0 where nothing is covered.
        became: the changes that each operator of an operator_waiver shows, by the same keys.
        waiving: what waivers cover.
        expired: those that have expired, and therefore cover nothing.
        not_checked: what could not be checked, and why: what is counted is then not final.
    """

    counts: dict[Key, Value | None]
    became: dict[Key, tuple[Changed, ...]]
    waiving: Waiving
    expired: frozenset[tuple[str, str]]
    not_checked: tuple[str, ...]


def measure(evidence: Evidence) -> Measured:
    """Count what judging counts, whatever the policy states of it.

    Raises:
        UsageError: the policy names a rule that does not exist, or gives one a parameter that it does not have.
    """
    tally, _, empty = _asked(evidence, frozenset({WAIVERS_EXACT, OPERATOR_WAIVERS_EXACT}))
    _, waiving = _waive(evidence, tally.caused)
    policy, changes = evidence.policy, evidence.derived(operator_changes)
    counts: dict[Key, Value | None] = {}
    became = operators_became(evidence)
    counts |= {key: None if changes is None else digest_of(shown) if shown else 0 for key, shown in became.items()}
    for gap in policy.operator_gaps:
        counts["operator_gap", gap.release] = None if changes is None else unknown_operators(changes, gap)
    expired = {("waiver", one.id) for one in policy.waivers if one.expired(evidence.as_of)}
    lapsed = [waiver for waiver in policy.operator_waivers if waiver.expired(evidence.as_of)]
    expired |= {key_of(waiver.id, operator) for waiver in lapsed for operator in waiver.operators}
    unchecked = [why for _, why in tally.not_checked]
    unchecked += [f"{what}: {why}" for what, why, _ in (*empty, *_unasked(evidence))]
    return Measured(counts, became, waiving, frozenset(expired), tuple(dict.fromkeys(unchecked)))


def _asked(
    evidence: Evidence, left_out: frozenset[str] = frozenset({WAIVERS_EXACT})
) -> tuple[_Tally, list[str], list[tuple[str, str, int]]]:
    """What the rules of the policy say, but for those left out; notes; and the rules that select nothing, with the reason.

    Raises:
        UsageError: the policy names a rule that does not exist, or gives one a parameter that it does not have.
    """
    tally = _Tally()
    notes: list[str] = []
    empty: list[tuple[str, str, int]] = []
    for entry in evidence.policy.rules:
        module = _rule(entry)
        _check_parameters(entry, getattr(module, "PARAMETERS", frozenset()))
        if entry.id in left_out:
            continue
        tally.asks[entry.id] = module.ASKS
        reader = getattr(module, "READER", None)
        if reader is not None and evidence.reference is None:
            notes.append(
                f"{entry.id} was not asked, since the {reader} reader did not read: `torch-compat replay --reader {reader}`"
            )
            continue
        found = tally.take(module.judge(evidence, entry))
        notes.extend(getattr(module, "notes", _no_notes)(evidence, entry))
        if not found and entry.expect_empty:
            notes.append(f"{entry.id} selects nothing, as expected: {entry.expect_empty}")
        elif not found:
            empty.append((entry.id, "the rule selects nothing", 1))
        elif entry.expect_empty:
            notes.append(f"{entry.id} selects {found} things, though the policy expects none: remove expect_empty")
    return tally, notes, empty


def _unasked(evidence: Evidence) -> Iterator[tuple[str, str, int]]:
    """What is wrong with the evidence itself, where the policy lacks the rule that would say so."""
    rules = {entry.id for entry in evidence.policy.rules}
    for rule, found, what in (
        ("fixtures-frozen", evidence.corpus.damage, "the corpus is damaged"),
        ("pairs-observed", evidence.unreadable, "recorded observations cannot be read"),
        ("pairs-observed", evidence.unavailable, "readers that were asked for could not be had"),
        ("reference-agrees", evidence.modelled, "the reference reader read"),
        ("wordings-exact", evidence.policy.wordings, "it has wordings"),
        (
            "operator-waivers-exact",
            evidence.policy.operator_waivers + evidence.policy.operator_gaps,
            "it has exceptions for operators",
        ),
    ):
        if found and rule not in rules:
            yield rule, f"{what}, and the policy lacks the rule that judges it", len(found)


def _rule(entry: RuleEntry) -> Rule:
    return cast("Rule", _module(entry))


def _module(entry: RuleEntry) -> ModuleType:
    name = f"torch_compat.rules.{entry.id.replace('-', '_')}"
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise UsageError(f"the policy names the rule {entry.id!r}, which does not exist", code="unknown-rule") from None
    if UNFINISHED in (module.__doc__ or ""):
        raise UsageError(
            f"the rule {entry.id!r} is unfinished: replace the placeholders {UNFINISHED}...> in its docstring",
            where=f"harness/torch_compat/rules/{entry.id.replace('-', '_')}.py",
            code="unfinished",
        )
    return module


def _no_notes(_evidence: Evidence, _entry: RuleEntry) -> tuple[str, ...]:
    return ()


def _check_parameters(entry: RuleEntry, known: frozenset[str]) -> None:
    """Refuse parameters that a rule does not look at: they would seem to promise something and change nothing."""
    for name in sorted(entry.parameters.keys() - known):
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
        self._evidence = evidence
        self._versions = {rank: version for version, rank in evidence.rank.items()}
        self._lines = {
            place: line for place, line in evidence.by_line.items() if any(cells.outcome not in KEPT for cells in line)
        }  # those with a cause
        self._known: dict[tuple[str, str], tuple[int, dict[tuple[str, str], int]]] = {}

    def of(self, cells: Cells, kind: tuple[str, str]) -> tuple[str, str]:
        """The release where a cause of this kind begins, as seen from the fixture of these cells, and how an id says so.

        Going back from the writer, a cause ends an id with ``@..`` and the newest reader that shows it. Where every reader shows it, up
        to the newest that there is, the id does not say so: the next release must not change it.
        """
        seen, kinds = self._shown(cells)
        shown = kinds.get(kind) or self._evidence.readers.ranks(cells.readers)
        wrote = self._evidence.rank[cells.fixture.release]
        if cells.direction.startswith("forward"):
            first = highest(shown & ((1 << wrote) - 1))
            without = lowest(seen & ~shown & (-1 << first))
            first = highest(shown if without < 0 else shown & ((1 << without) - 1))
            return self._versions[first], "" if without < 0 else f"@..{self._versions[first]}"
        nearest = wrote if cells.direction == "own" else wrote + 1
        first = lowest(shown & (-1 << nearest))
        without = highest(seen & ~shown & ((1 << first) - 1))
        first = lowest(shown & (-1 << (without + 1)))
        return self._versions[first], f"@{self._versions[first]}"

    def _shown(self, cells: Cells) -> tuple[int, dict[tuple[str, str], int]]:
        """The releases that read a fixture under some options, and those that show each kind of cause; as bits by their rank."""
        place = (cells.fixture.id, cells.options.id)
        if place not in self._known:
            seen = 0
            kinds: dict[tuple[str, str], int] = {}
            for one in self._lines.get(place, ()):
                releases = self._evidence.readers.ranks(one.readers)
                seen |= releases
                if one.outcome not in KEPT:
                    kind = kind_of(one)
                    kinds[kind] = kinds.get(kind, 0) | releases
            self._known[place] = (seen, kinds)
        return self._known[place]


def _waive(evidence: Evidence, judgements: list[Judgement]) -> tuple[list[Named], Waiving]:
    """Match failures with waivers: each judgement with the id of its cause, and what waivers cover.

    Parameters:
        judgements: those with a cause that is shown.
    """
    beginnings = _Beginnings(evidence)
    waiving = Waiving(evidence)
    named: list[Named] = []
    for judgement in judgements:
        cells, cause = judgement.cells, judgement.cause
        assert cause is not None  # noqa: S101 - only those with a cause come here
        name, began = _plain_id(judgement), judgement.at or judgement.reader
        if cells is not None:
            began, end = beginnings.of(cells, (cause.what, cause.subject))
            name += f"{'' if cells.options.id == 'default' else f'({cells.options.id})'}{end}"
        elif judgement.at:
            name += f"@{began}"
        if judgement.verdict is not Verdict.FAIL:
            named.append(Named(judgement, name, began, judgement.waiver))
        elif cells is None:
            part = waiving.finding(judgement, name)
            named.append(Named(_told(part), name, began, part.waiver or judgement.waiver))
        else:
            named.extend(Named(_told(part), name, began, part.waiver) for part in waiving.cells(judgement, cells))
    return named, waiving


def _told(part: Part) -> Judgement:
    """The judgement of a part. Where a waiver is for it, and not for what differs in it, that is its cause."""
    judgement = part.judgement
    if not part.near or judgement.cause is None:
        return judgement
    text = f"{judgement.cause.text} (the waiver {part.near} is for this, but it was accepted with another difference: {ACCEPT})"
    return replace(judgement, cause=replace(judgement.cause, text=text))


def _group(evidence: Evidence, named: list[Named]) -> tuple[Finding, ...]:
    titles = {waiver.id: waiver.title for waiver in evidence.policy.waivers}
    titles |= {waiver.id: waiver.title for waiver in evidence.policy.operator_waivers}
    groups: dict[tuple[Verdict, str, str], list[Named]] = {}
    for one in named:
        groups.setdefault((one.judgement.verdict, one.id, one.waiver), []).append(one)
    findings = [_finding(evidence, members, titles) for members in groups.values()]
    order = {Verdict.FAIL: 0, Verdict.WAIVED: 1, Verdict.CONTINUES: 2, Verdict.EXPECTED: 3}
    return tuple(sorted(findings, key=lambda finding: (order[finding.verdict], finding.rule, finding.id, finding.waiver)))


def _finding(evidence: Evidence, members: list[Named], titles: dict[str, str]) -> Finding:
    judgements = [one.judgement for one in members]
    smallest = min(judgements, key=lambda judgement: _size(judgement, evidence))
    assert smallest.cause is not None  # noqa: S101 - only judgements with a cause are named
    cells = [judgement.cells for judgement in judgements if judgement.cells is not None]
    readers = {judgement.reader for judgement in judgements if judgement.reader in evidence.rank}
    readers.update(reader.release for reader in evidence.readers.of(reduce(or_, (alike.readers for alike in cells), 0)))
    reproduce, subject = smallest.reproduce or "torch-compat judge", smallest.subject
    if smallest.cells is not None:
        shown = smallest.cells
        subject = shown.fixture.id
        options = "" if shown.options.id == "default" else f" --options {shown.options.id}"
        release = evidence.readers.first(shown.readers).release
        reproduce = f"torch-compat observe --reader torch-{release} --fixture {subject}{options} --show"
    bumps = {bump for alike in cells for bump in _bumps(evidence, alike)}
    return Finding(
        id=members[0].id,
        rule=smallest.rule,
        verdict=smallest.verdict,
        count=sum(judgement.count for judgement in judgements),
        cause=smallest.cause.text,
        title=titles.get(members[0].waiver, smallest.cause.text),
        first_reader=members[0].began,
        readers=tuple(sorted(readers, key=evidence.rank.__getitem__)),
        writers=tuple(sorted({alike.fixture.release for alike in cells}, key=evidence.rank.__getitem__)),
        smallest=subject,
        reproduce=reproduce,
        waiver=members[0].waiver,
        what=smallest.cause.what,
        recipes=tuple(sorted({alike.fixture.recipe for alike in cells})),
        families=tuple(sorted({alike.fixture.family for alike in cells})),
        options=smallest.cells.options.id if smallest.cells is not None else "",
        bump=", ".join(sorted(filter(None, bumps))) if len(bumps) == 1 else "",
        modelled=all(judgement.modelled for judgement in judgements),
    )


def _size(judgement: Judgement, evidence: Evidence) -> tuple[int, int, str, int]:
    """Small archives first; among equals the older reader."""
    cells = judgement.cells
    if cells is None:
        return (0, evidence.rank.get(judgement.reader, 0), judgement.subject, 0)
    return (cells.fixture.size, evidence.readers.first(cells.readers).rank, cells.fixture.id, lowest(cells.readers))


def _bumps(evidence: Evidence, cells: Cells) -> Iterator[str]:
    """The file format versions, between writer and readers, that announce a change of an operator of the fixture; "" for none."""
    has = cells.fixture.versions.get("file-format")
    used = {operator.partition(".")[0] for operator in cells.fixture.operators}
    left = evidence.readers.ranks(cells.readers)
    for entry in evidence.policy.formats:
        if not isinstance(entry.version, int) or entry.kind != "file-format" or has is None:
            continue
        if left and used.intersection(entry.operators or ()) and has < entry.version:
            before = left & ((1 << evidence.rank.get(entry.read_from.release, len(evidence.policy.calendar))) - 1)  # or planned
            if before != left:
                yield f"file format {entry.version}"
            left = before
    if left:
        yield ""
