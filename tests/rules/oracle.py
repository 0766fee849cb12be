"""Judging cell by cell, as simply as possible; judging by sets of readers has to agree with it.

It implements the rules about cells and pairs, waivers, and the naming and grouping of findings. It shares only code independent of sets
with the real judging: the outcome of one observation, and the texts of causes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from torch_compat.corpus.manifest import SYNTHETIC, Synthetic, release_folder
from torch_compat.corpus.observations import Observation, cell_key
from torch_compat.judging.agreement import agreement
from torch_compat.judging.cell import Cells, Outcome
from torch_compat.judging.cells import judge_cells, kind_of
from torch_compat.judging.differences import Differences
from torch_compat.judging.judgement import Cause, Verdict, slug
from torch_compat.judging.relaxed import Relaxations
from torch_compat.policy.counts import ACCEPT
from torch_compat.releases.release import Release
from torch_compat.rules import forward_window, newer_computes, older_never_differs, reads_back, synthetic_loads
from torch_compat.rules.observations_reproduce import _like_its_golden
from torch_compat.values.normalise import alike, headline

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.rules.conftest import World
    from torch_compat.corpus.manifest import Fixture
    from torch_compat.judging.evidence import Evidence
    from torch_compat.judging.judge import Report
    from torch_compat.policy.model import Covers, OptionSet, Waiver

RULES = (
    "newer-loads", "newer-computes", "reads-back", "older-never-differs", "forward-window", "synthetic-loads", "pairs-observed",
    "observations-reproduce", "waivers-exact",
)  # fmt: skip
EXACT = "waivers-exact"
"""Of this rule the kind counts, and no words."""
SHOWN = {Verdict.FAIL, Verdict.WAIVED, Verdict.CONTINUES, Verdict.EXPECTED}


@dataclass(frozen=True)
class Cell:
    """One fixture, one set of load options, one reader."""

    fixture: Fixture
    options: OptionSet
    reader: str
    release: str
    observation: Observation
    outcome: Outcome
    direction: str
    recorded: bool
    others: tuple[tuple[str, str, str, str], ...] = ()

    @property
    def alone(self) -> Cells:
        """The cell as a set of one, for what does not look at readers."""
        direction: Any = self.direction
        return Cells(self.fixture, self.options, self.observation, self.outcome, direction, 1, self.others)

    @property
    def options_named(self) -> str:
        return "" if self.options.id == "default" else f"({self.options.id})"


@dataclass(frozen=True)
class Said:
    """What a rule says of one cell or thing."""

    rule: str
    verdict: Verdict
    subject: str
    cause: Cause | None = None
    cell: Cell | None = None
    reader: str = ""


def facts(report: Report) -> dict[str, Any]:
    """The parts of a report that the oracle knows."""
    return {
        "counts": {str(verdict): count for verdict, count in report.counts.items() if count},
        "outcomes": report.outcomes,
        "not_checked": report.not_checked,
        "findings": [
            (
                str(finding.verdict), finding.id, finding.waiver, finding.count, "" if finding.rule == EXACT else finding.cause, finding.first_reader, finding.readers, finding.writers, finding.smallest,
                finding.reproduce, finding.families, finding.options, finding.bump,
            )
            for finding in report.findings
        ],
    }  # fmt: skip


def judge(world: World) -> dict[str, Any]:
    """What judging cell by cell makes of a world, in the form of :func:`facts`."""
    return _Oracle(world.evidence()).judge()


class _Waiving:
    """Waivers, cell by cell. A cell is (options, recipe, writer, reader); what a lock says of it is its outcome and its digest."""

    def __init__(self, evidence: Evidence, cells: list[Cell]) -> None:
        self.evidence, self.policy, self.rank = evidence, evidence.policy, evidence.rank
        self.digests = Differences(evidence)
        self.seen = {self._place(cell) for cell in cells}
        self.uncovered: set[tuple[str, str, str, str]] = set()
        self.failing: dict[str, set[tuple[str, str, str, str]]] = {}
        self.shown: dict[tuple[str, int], list[Cell]] = {}
        self.shared: dict[str, set[str]] = {}
        self.covered: Counter[str] = Counter()
        self.lock: dict[tuple[str, str, str, str, str], set[tuple[str, str, str]]] = {}  # two builds of a release may differ
        self.known: tuple[str, ...] = ()
        if self.policy.accepted is not None:
            self.known = self.policy.accepted.known.releases
            for block in self.policy.accepted.blocks:
                for writer, readers in self.policy.accepted.members(block):
                    for recipe in block.recipes:
                        for reader in self.policy.accepted.known.of(readers):
                            wrote = SYNTHETIC if writer < 0 else self.known[writer]
                            place = (block.waiver, block.options, recipe, wrote, reader)
                            self.lock.setdefault(place, set()).add((block.direction, block.outcome, block.digest))

    @staticmethod
    def _place(cell: Cell) -> tuple[str, str, str, str]:
        return cell.options.id, cell.fixture.recipe, cell.fixture.release, cell.release

    def _parts(self, cell: Cell) -> list[tuple[Waiver, int, Covers]]:
        """The parts of waivers that are for a cell; those that name its recipe come before all others."""
        fitting = [
            (waiver, index, part)
            for waiver in self.policy.waivers
            if not waiver.expired(self.evidence.as_of)
            for index, part in enumerate(waiver.covers or ())
            if part.outcome == cell.outcome and self._boxed(part, cell) and (part.says or "") in cell.alone.message
        ]
        named = [item for item in fitting if item[2].recipes is not None]
        return named or fitting

    def _boxed(self, part: Covers, cell: Cell) -> bool:
        return self.box(part, *self._place(cell)) and (part.families is None or cell.fixture.family in part.families)

    @staticmethod
    def box(part: Covers, options: str, recipe: str, writer: str, reader: str) -> bool:
        wrote = bool(part.synthetic) if writer == SYNTHETIC else part.writers is not None and Release(writer) in part.writers
        named = part.recipes is None or recipe in part.recipes
        return wrote and named and options in part.options and Release(reader) in part.readers

    def settle(self, cell: Cell) -> tuple[Verdict, str, str]:
        """The verdict on a cell that fails, the waiver that covers it, and the one that is only near."""
        parts = self._parts(cell)
        names = list(dict.fromkeys(waiver.id for waiver, _, _ in parts))
        for waiver, index, _ in parts:
            self.failing.setdefault(waiver.id, set()).add(self._place(cell))
            self.shown.setdefault((waiver.id, index), []).append(cell)
            self.shared.setdefault(waiver.id, set()).update({*names} - {waiver.id})
        if not names:
            self.uncovered.add(self._place(cell))
            return Verdict.FAIL, "", ""
        verdict = self._verdict(names[0], cell)
        if verdict is Verdict.FAIL:
            return verdict, "", names[0]
        self.covered[names[0]] += 1
        return verdict, names[0], ""

    def _verdict(self, name: str, cell: Cell) -> Verdict:
        if self.policy.accepted is None:
            return Verdict.WAIVED
        options, recipe, writer, reader = self._place(cell)
        direction = cell.direction.removesuffix("-in-window")
        has = (str(cell.outcome), self.digests.digest(cell.alone))
        new = recipe not in self.policy.accepted.recipes
        if not new and reader in self.known and writer in {*self.known, SYNTHETIC}:
            held = self.lock.get((name, options, recipe, writer, reader), set())
            return Verdict.WAIVED if (direction, *has) in held else Verdict.FAIL
        near, read = self._near(writer), self._near(reader)
        pairs = [(near, read)]
        if near == read and direction != "own":  # a release is no neighbour of itself
            pairs += [(self._before(near), read), (near, self._before(read))]
        for pair in pairs:
            for key, values in self.lock.items():
                alike = any(value[1:] == has for value in values)
                if (key[0], key[1], *key[3:]) == (name, options, *pair) and alike and (new or key[2] == recipe):
                    return Verdict.CONTINUES
        return Verdict.FAIL

    def _near(self, release: str) -> str:
        """The newest recorded release that is no newer; the oldest for those before it."""
        older = [item for item in self.known if release != SYNTHETIC and Release(item) <= Release(release)]
        return SYNTHETIC if release == SYNTHETIC else [*self.known[:1], *older][-1] if self.known else ""

    def _before(self, release: str) -> str:
        return release if release in {SYNTHETIC, ""} else self.known[max(0, self.known.index(release) - 1)]

    def inexact(self, waiver: Waiver) -> str:
        """In what a waiver is not exact; "" in nothing."""
        if waiver.expired(self.evidence.as_of):
            return "expired"
        if self.shared.get(waiver.id):
            return "overlapping"
        gone, corners = list(self._gone(waiver)), list(self._corners(waiver))
        newest = self.known[-1:] if self.policy.accepted is not None else self.policy.corpus.readers[-1:]
        if (gone or corners) and any(self.policy.calendar[reader].date > self.evidence.as_of for reader in newest):
            return "later"
        if not self.covered[waiver.id] and not self.failing.get(waiver.id):
            return "unused"
        return "ended" if gone else "too wide" if corners else ""

    def _gone(self, waiver: Waiver) -> Iterator[tuple[str, str, str, str]]:
        released = [
            character.release for source in (self.evidence.recorded, self.evidence.fresh) for character in source.values()
        ]
        released = [release for release in released if release in self.policy.calendar]
        wrote = {fixture.release for fixture in self.evidence.corpus.fixtures.values()} - {SYNTHETIC}
        failing = self.failing.get(waiver.id, set()) | self.uncovered
        for name, options, recipe, writer, reader in self.lock:
            if name != waiver.id:
                continue
            if (options, recipe, writer, reader) not in failing:
                yield options, recipe, writer, reader
            later = [(writer, release) for release in released if self._near(release) == reader != writer]
            if writer != SYNTHETIC:
                news = [release for release in wrote if self._near(release) == writer]
                later += [(new, reader) for new in news if self.rank[reader] < self.rank[writer]]
                later += [(new, new) for new in news if reader == writer]
            for pair in later:
                place = (options, recipe, *pair)
                if {*pair} <= {*self.known, SYNTHETIC} or place not in self.seen or place in failing:
                    continue
                if any(self.box(part, *place) for part in waiver.covers or ()):
                    yield place

    def _corners(self, waiver: Waiver) -> Iterator[str]:
        for index, part in enumerate(waiver.covers or ()):
            cells = self.shown.get((waiver.id, index), [])
            recipes = {cell.fixture.recipe for cell in cells}
            if not cells:
                yield "no cell"
                continue
            yield from {*(part.recipes or ())} - recipes
            asked = {reader.release for reader in self.evidence.readers}
            readers, writers = (
                tuple(reader for reader in self.policy.corpus.readers if reader in asked),
                self.policy.corpus.writers,
            )
            of = {fixture.release for fixture in self.evidence.corpus.fixtures.values() if fixture.recipe in recipes}
            sides = [(part.readers, readers, readers, {cell.release for cell in cells})]
            if part.writers is not None:
                sides.append(
                    (
                        part.writers,
                        writers,
                        tuple(writer for writer in writers if writer in of),
                        {cell.fixture.release for cell in cells},
                    )
                )
            for stated, every, able, result in sides:
                for interval in stated.intervals:
                    inside = [item for item in every if Release(item) in type(stated)([interval])]
                    could = [item for item in able if Release(item) in type(stated)([interval])]
                    ends = inside[:1] if interval.first is not None else []
                    ends = ends + (inside[-1:] if interval.last is not None else could[-1:])
                    yield from ({*ends} - result) if inside else {"no such release"}


class _Oracle:
    def __init__(self, evidence: Evidence) -> None:
        self.evidence, self.policy, self.rank = evidence, evidence.policy, evidence.rank
        self.fixtures = sorted(evidence.corpus.fixtures.values(), key=lambda fixture: fixture.id)
        self.cells = list(self._cells())
        self.waiving = _Waiving(evidence, self.cells)

    def _cells(self) -> Iterator[Cell]:
        for fixture in self.fixtures:
            for name in sorted(self.evidence.recorded.keys() | self.evidence.fresh.keys()):
                for options in self.policy.options:
                    for source, recorded in ((self.evidence.recorded, True), (self.evidence.fresh, False)):
                        reader = source.get(name)
                        result = reader.cells.get((fixture.id, options.id)) if reader else None
                        if reader is None or result is None or result.key != cell_key(fixture.subject, options.load.given()):
                            continue
                        if reader.release in self.policy.calendar:
                            direction, others = (
                                self._direction(fixture, reader.release),
                                self._others(fixture, result, reader.release),
                            )
                            outcome = self.evidence.outcome(fixture, result, others=others)
                            yield Cell(fixture, options, name, reader.release, result, outcome, direction, recorded, others)
                        break

    def _others(self, fixture: Fixture, observation: Observation, reader: str) -> tuple[tuple[str, str, str, str], ...]:
        """What the reader raised otherwise than the writer, and no wording has for the two of them."""
        results = []
        for extent in observation.extent:
            for pair in extent["errors"] if extent["kind"] == "error" else ():
                errors = [(kind.removeprefix("builtins."), alike(headline(text))) for kind, text in (pair[:2], pair[2:])]
                worded = fixture.release != SYNTHETIC and any(
                    all(
                        any(Release(release) in phrase.releases and phrase.says(*error) for phrase in wording.says)
                        for release, error in zip((fixture.release, reader), errors, strict=True)
                    )
                    for wording in self.policy.wordings
                )
                if errors[0] != errors[1] and not worded:
                    results.append(tuple(pair))
        return tuple(dict.fromkeys(results))

    def _direction(self, fixture: Fixture, release: str) -> str:
        if fixture.release == SYNTHETIC:
            return "synthetic"
        reads, wrote = self.rank[release], self.rank[fixture.release]
        if reads >= wrote:
            return "own" if reads == wrote else "backward"
        near = self.policy.calendar.days_between(release, fixture.release) <= self.policy.forward_window_days
        return "forward-in-window" if near else "forward"

    # ---------------------------------------------------------------------------------------------------------------- rules

    def _said(self) -> Iterator[Said]:
        for cell in self.cells:
            alone, own_rules = cell.alone, []
            expected = Verdict.EXPECTED if self.evidence.refusals_expected(alone) else None
            if cell.direction == "backward":
                own_rules.append(("newer-loads", Verdict.PASS if alone.loaded else expected or Verdict.FAIL))
                if alone.loaded:
                    own_rules.append(("newer-computes", self._by(newer_computes.VERDICTS, cell)))
            elif cell.direction == "own":
                own_rules.append(("reads-back", expected or self._by(reads_back.VERDICTS, cell)))
            elif cell.direction == "forward":
                own_rules.append(("older-never-differs", self._by(older_never_differs.VERDICTS, cell)))
            elif cell.direction == "forward-in-window":
                own_rules.append(("forward-window", expected or self._in_window(cell)))
            for name, verdict in own_rules:
                yield Said(name, verdict, "", self._cause(cell, verdict), cell, cell.release)
            if cell.direction == "synthetic":
                yield self._synthetic(cell, expected)
            yield self._reproduces(cell)
        yield from self._again()
        yield from self._pairs()

    def _in_window(self, cell: Cell) -> Verdict:
        """The writer's own failure, or the reader's own, is nobody's promise to the other."""
        verdict = self._by(forward_window.VERDICTS, cell)
        alone = [
            other
            for other in self.cells
            if other.direction == "own"
            and (other.fixture.recipe, other.options.id) == (cell.fixture.recipe, cell.options.id)
            and other.release in {cell.fixture.release, cell.release}
            and other.outcome not in forward_window.VERDICTS
        ]
        if verdict is Verdict.FAIL and any(self.digest(other) == self.digest(cell) for other in alone):
            return Verdict.NO_PROMISE
        return verdict

    def digest(self, cell: Cell) -> str:
        return Differences(self.evidence).digest(cell.alone)

    def _by(self, table: Mapping[Outcome, Verdict], cell: Cell) -> Verdict:
        if cell.outcome is Outcome.RELAXED and self.evidence.derived(Relaxations).named(cell.alone):
            return Verdict.NO_PROMISE
        return table.get(cell.outcome, Verdict.FAIL)

    def _cause(self, cell: Cell, verdict: Verdict) -> Cause | None:
        return judge_cells(self.policy.rules[0], cell.alone, verdict).cause

    def _synthetic(self, cell: Cell, expected: Verdict | None) -> Said:
        assert isinstance(cell.fixture, Synthetic)
        known = {entry.label: entry for entry in self.policy.formats}
        reader, foreign = self.rank[cell.release], []
        for entry in (known[label] for label in cell.fixture.formats if label in known):
            last = self.rank[entry.read_until.release] if entry.read_until else reader
            if not self.rank[entry.read_from.release] <= reader <= last:
                foreign.append(entry)
        mistaken = next((entry for entry in foreign if entry.mistaken), None)
        if mistaken is not None and cell.outcome is Outcome.DIFFERENT and synthetic_loads._as_stated(mistaken, cell.alone):
            cause = Cause(*kind_of(cell.alone), f"{mistaken.label}: {mistaken.mistaken}")
            return Said("synthetic-loads", Verdict.EXPECTED, "", cause, cell, cell.release)
        verdict = self._by(synthetic_loads.NOT_TAKEN, cell)
        if not foreign:
            verdict = expected or self._by(synthetic_loads.TAKEN, cell)
        return Said("synthetic-loads", verdict, "", self._cause(cell, verdict), cell, cell.release)

    def _reproduces(self, cell: Cell) -> Said:
        name, recipe = "observations-reproduce", cell.fixture.recipe
        if cell.observation.result == "unstable":
            cause = Cause("unstable", recipe, f"{recipe}: two observations of one cell disagree")
            return Said(name, Verdict.FAIL, "", cause, cell, cell.release)
        if _like_its_golden(cell.fixture, cell.observation):
            return Said(name, Verdict.PASS, "", None, cell, cell.release)
        subject = f"{cell.fixture.id} read by {cell.reader}" + ("" if cell.options.id == "default" else f" ({cell.options.id})")
        text = f"{subject}: is recorded as equal to the golden, but had a different outcome"
        return Said(name, Verdict.FAIL, subject, Cause("contradicts itself", recipe, text), None, cell.release)

    def _again(self) -> Iterator[Said]:
        for name, fresh in sorted(self.evidence.fresh.items()):
            for (fixture_id, options_id), now in sorted(fresh.cells.items()):
                fixture = self.evidence.corpus.fixtures[fixture_id]
                options = next(entry for entry in self.policy.options if entry.id == options_id)
                before = self.evidence.valid(self.evidence.recorded.get(name), fixture, options)
                if before is not None:
                    subject = f"{fixture_id} read again by {name}" + ("" if options_id == "default" else f" ({options_id})")
                    verdict, text = agreement(self.evidence, fixture, before, now)
                    what = "contradiction" if verdict is Verdict.FAIL else "bits"
                    cause = Cause(what, fixture.recipe, text) if text else None
                    yield Said("observations-reproduce", verdict, subject, cause, None, fresh.release)

    def _pairs(self) -> Iterator[Said]:
        name = "pairs-observed"
        observed = {(cell.release, cell.fixture.id, cell.options.id) for cell in self.cells}
        met = {(cell.release, cell.fixture.release) for cell in self.cells}
        sources = (self.evidence.recorded, self.evidence.fresh)
        for version in self.policy.corpus.readers:
            release = self.policy.calendar[version]
            readers = [reader for source in sources for reader in source.values() if reader.release == version]
            for fixture in self.fixtures:
                for options in self.policy.option_sets(fixture.family, release):  # type: ignore[arg-type]
                    if (version, fixture.id, options.id) in observed:
                        yield Said(name, Verdict.PASS, "")
                        continue
                    if release.date > self.evidence.as_of:
                        yield Said(name, Verdict.NO_PROMISE, "")
                        continue
                    why = "no observations by this reader"
                    if readers:
                        stale = any((fixture.id, options.id) in reader.cells for reader in readers)
                        why = "observed before the fixture, its golden or the options changed" if stale else "not observed"
                    begun = any(reader == version for reader, _ in met)
                    beside = begun and fixture.release in self.policy.corpus.readers
                    of = fixture.release if beside and (version, fixture.release) not in met else version
                    text = f'{release.name}: {why}; run nox -s "observe(torch-{of})" -- --record'
                    yield Said(name, Verdict.NOT_CHECKED, "", Cause(why, release.name, text))

    # ------------------------------------------------------------------------------------------------------- beginnings, bumps

    def _begins(self, cell: Cell, kind: tuple[str, str]) -> tuple[str, str]:
        """The release where a cause begins, and how the id of a finding says so."""
        shown: dict[int, bool] = {}
        for item in self.cells:
            if (item.fixture.id, item.options.id) == (cell.fixture.id, cell.options.id):
                same = item.outcome not in {Outcome.SAME, Outcome.CLOSE} and kind_of(item.alone) == kind
                shown[self.rank[item.release]] = shown.get(self.rank[item.release], False) or same
        wrote = self.rank[cell.fixture.release]
        forward = cell.direction.startswith("forward")
        if forward:
            first = max(reader for reader, same in shown.items() if same and reader < wrote)
            beyond = sorted(reader for reader in shown if reader > first)
        else:
            first = min(reader for reader, same in shown.items() if same and reader >= wrote + (cell.direction != "own"))
            beyond = sorted((reader for reader in shown if reader < first), reverse=True)
        ended = False
        for reader in beyond:
            if not shown[reader]:
                ended = True
                break
            first = reader
        began = next(version for version, rank in self.rank.items() if rank == first)
        return began, f"@..{began}" if forward and ended else "" if forward else f"@{began}"

    def _bump(self, cell: Cell) -> str:
        has = cell.fixture.versions.get("file-format")
        used = {operator.partition(".")[0] for operator in cell.fixture.operators}
        for entry in self.policy.formats:
            if entry.kind == "file-format" and isinstance(entry.version, int) and has is not None and has < entry.version:
                known = self.rank[entry.read_from.release] <= self.rank[cell.release]
                if known and used.intersection(entry.operators or ()):
                    return f"file format {entry.version}"
        return ""

    # -------------------------------------------------------------------------------------------------------------- all of it

    def judge(self) -> dict[str, Any]:
        counts: Counter[str] = Counter()
        not_checked: Counter[tuple[str, str]] = Counter()
        groups: dict[tuple[Verdict, str, str], list[tuple[Said, str]]] = {}
        for message in self._said():
            verdict, waiver, told = message.verdict, "", message
            if message.cause is not None and verdict in SHOWN:
                name = f"{message.rule}:{message.cause.what.replace(' ', '-')}:{slug(message.cause.subject)}"
                began = message.reader
                if message.cell is not None:
                    began, end = self._begins(message.cell, (message.cause.what, message.cause.subject))
                    name += f"{message.cell.options_named}{end}"
                    if verdict is Verdict.FAIL:
                        verdict, waiver, near = self.waiving.settle(message.cell)
                        if near:
                            text = f"{message.cause.text} (the waiver {near} is for this, but it was accepted with another difference: {ACCEPT})"
                            told = replace(message, cause=replace(message.cause, text=text))
                groups.setdefault((verdict, name, waiver), []).append((told, began))
            elif verdict is Verdict.NOT_CHECKED and message.cause is not None:
                not_checked[message.rule, message.cause.text] += 1
            counts[str(verdict)] += 1
        for entry in self.policy.waivers:
            what = self.waiving.inexact(entry)
            counts[str(Verdict.NO_PROMISE if what == "later" else Verdict.FAIL if what else Verdict.PASS)] += 1
            if what and what != "later":
                name = f"{EXACT}:{what.replace(' ', '-')}:{entry.id}"
                groups[Verdict.FAIL, name, ""] = [(Said(EXACT, Verdict.FAIL, entry.id, Cause(what, entry.id, "")), "")]
        empty = [(name, "the rule selects nothing", 1) for name in self._selecting_nothing()]
        if self.policy.wordings:
            empty.append(
                ("wordings-exact", "it has wordings, but the policy has no rule that judges this", len(self.policy.wordings))
            )
        counts["not-checked"] += sum(count for _, _, count in empty)
        order = [Verdict.FAIL, Verdict.WAIVED, Verdict.CONTINUES, Verdict.EXPECTED]
        results = sorted(
            groups.items(), key=lambda item: (order.index(item[0][0]), item[0][1].partition(":")[0], item[0][1], item[0][2])
        )
        outcomes: dict[tuple[str, str, str, str], Counter[Outcome]] = {}
        for cell in self.cells:
            row = (release_folder(cell.fixture.release), cell.reader, cell.fixture.family, cell.options.id)
            outcomes.setdefault(row, Counter())[cell.outcome] += 1
        return {
            "counts": {verdict: count for verdict, count in counts.items() if count},
            "outcomes": outcomes,
            "not_checked": (*sorted((rule, why, count) for (rule, why), count in not_checked.items()), *empty),
            "findings": [self._finding(*key, members) for key, members in results],
        }

    def _selecting_nothing(self) -> Iterator[str]:
        selected = {message.rule for message in self._said()} | ({"waivers-exact"} if self.policy.waivers else set())
        for entry in self.policy.rules:
            if entry.id not in selected and entry.id != "waivers-exact":
                if entry.id == "pairs-observed" and not self.fixtures:
                    continue
                yield entry.id

    def _finding(self, verdict: Verdict, name: str, waiver: str, members: list[tuple[Said, str]]) -> tuple[Any, ...]:
        smallest = min((message for message, _ in members), key=self._size)
        assert smallest.cause is not None
        subject, reproduce, options = smallest.subject, "torch-compat judge", ""
        if smallest.cell is not None:
            subject, options = smallest.cell.fixture.id, smallest.cell.options.id
            named = "" if options == "default" else f" --options {options}"
            reproduce = f"torch-compat observe --reader torch-{smallest.cell.release} --fixture {subject}{named} --show"
        cells = [message.cell for message, _ in members if message.cell is not None]
        readers, writers = (
            {message.reader for message, _ in members if message.reader in self.rank},
            {cell.fixture.release for cell in cells},
        )
        bumps = {self._bump(cell) for cell in cells}
        return (
            str(verdict), name, waiver, len(members), smallest.cause.text, members[0][1], tuple(sorted(readers, key=self.rank.get)),  # type: ignore[arg-type]
            tuple(sorted(writers, key=self.rank.get)), subject, reproduce,  # type: ignore[arg-type]
            tuple(sorted({cell.fixture.family for cell in cells})), options, bumps.pop() if len(bumps) == 1 else "",
        )  # fmt: skip

    def _size(self, message: Said) -> tuple[int, int, str]:
        if message.cell is None:
            return (0, self.rank.get(message.reader, 0), message.subject)
        return (message.cell.fixture.size, self.rank[message.cell.release], message.cell.fixture.id)
