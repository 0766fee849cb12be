"""Evidence: everything that judging may use. Facts and policy, but no archive and no clock."""

from __future__ import annotations

import functools
import itertools
import operator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from torch_compat.corpus.json_lines import digest
from torch_compat.corpus.manifest import SYNTHETIC
from torch_compat.corpus.observations import OTHER_ERROR, cell_key
from torch_compat.corpus.recorded import together
from torch_compat.judging.cell import DIRECTIONS, Cells, Direction, Outcome
from torch_compat.judging.readers import Reader, Readers
from torch_compat.judging.wordings import Wordings, other_errors
from torch_compat.releases.release import Release
from torch_compat.values.compare import distances

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Iterator

    from torch_compat.corpus.corpus import Corpus
    from torch_compat.corpus.deprecations import DeprecationObservation
    from torch_compat.corpus.exported import RecordedExports
    from torch_compat.corpus.manifest import Fixture
    from torch_compat.corpus.observations import Observation, ObservedReader
    from torch_compat.corpus.operators import RecordedOperators
    from torch_compat.corpus.proofs import Proofs
    from torch_compat.judging.wordings import Errors
    from torch_compat.policy import OptionSet, Policy
    from torch_compat.policy.behaviors import BehaviorEntry
    from torch_compat.values.compare import Difference, Distances
    from torch_compat.values.delta import Departures

Made = TypeVar("Made")
Results = tuple[dict[str, Any], dict[str, Any]]
"""Two results, as the worker reports them: the expected one and another one."""

__all__ = ["Evidence", "deprecation_key"]


def deprecation_key(sha256: str, reader: ObservedReader) -> str:
    """The key of a reader's result for a probe of this hash; results under another key belong to another probe or reader."""
    return digest(sha256, reader.identity_digest, reader.protocol)[:20]


@dataclass(frozen=True)
class Evidence:
    """What is judged.

    Attributes:
        policy: what was promised.
        corpus: recipes, manifests, and their damage.
        recorded, fresh: observations keyed by the reader's exact name: those kept in the repository, and those just made.
        unreadable: files of observations that could not be read, and why.
        unavailable: readers that were requested but not available here, and why.
        as_of: the day of judging.
        reference: what the reference reader did just now, each program at the horizon of its writer; None if it was not
            run.
        operators: the recorded operators of each release; None if nothing is recorded.
        builds: the public versions of builds whose trees are judged together with the corpus.
        proofs: the recorded proofs of upgraders; None if no tree was read.
        exported: the recorded schema and loaders of exported programs; None if nothing is recorded.
        files: SHA-256, in hex, of the file that a recorded reader was read from, keyed by its name, if it was read from one.
    """

    policy: Policy
    corpus: Corpus
    recorded: dict[str, ObservedReader]
    fresh: dict[str, ObservedReader]
    as_of: dt.date
    unreadable: dict[str, str] = field(default_factory=dict)
    unavailable: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    reference: ObservedReader | None = None
    operators: RecordedOperators | None = None
    builds: frozenset[str] = frozenset()
    proofs: Proofs | None = None
    exported: RecordedExports | None = None

    @cached_property
    def digest(self) -> str:
        """SHA-256, in hex, of everything that the judgement depends on."""
        return digest(
            self.policy.digest,
            sorted(manifest.digest for manifest in self.corpus.manifests),
            sorted((damage.kind, damage.subject, damage.detail) for damage in self.corpus.damage),
            sorted((recipe.name, recipe.sha256) for recipe in self.corpus.recipes),
            sorted((probe.name, probe.sha256) for probe in self.corpus.probes),
            sorted((probe.name, probe.sha256, probe.since) for probe in self.corpus.deprecations),
            sorted((name, self.files.get(name) or reader.digest) for name, reader in self.recorded.items()),
            sorted((name, reader.digest) for name, reader in self.fresh.items()),
            sorted(self.unreadable.items()),
            sorted(self.unavailable.items()),
            self.as_of.isoformat(),
            *([self.reference.digest] if self.reference is not None else []),
            *([["operators", self.operators.digest]] if self.operators is not None else []),
            *([["proofs", self.proofs.digest]] if self.proofs is not None else []),
            *([["exported", self.exported.digest]] if self.exported is not None else []),
        )

    @cached_property
    def readers(self) -> Readers:
        """The readers of the calendar, recorded and fresh."""
        return Readers(
            Reader(name, reader.release, self.rank[reader.release], recorded)
            for source, recorded in ((self.recorded, True), (self.fresh, False))
            for name, reader in source.items()
            if reader.release in self.policy.calendar
        )

    def lines(self) -> Iterator[tuple[Fixture, OptionSet, list[tuple[Observation, int]]]]:
        """Yield what readers did with each fixture of the current corpus, under each set of load options.

        Ordered by fixture id, then by options in the order of the policy. Every distinct observation occurs once, with
        the set of readers (see :attr:`readers`) that made it. No reader's name is in two sets of one line: its recorded
        observation counts if that is valid, otherwise the fresh one.
        """
        loads = [(options, options.load.given()) for options in self.policy.options]
        recorded = together((1 << at, self.recorded[reader.name]) for at, reader in enumerate(self.readers) if reader.recorded)
        fresh = together((1 << at, self.fresh[reader.name]) for at, reader in enumerate(self.readers) if not reader.recorded)
        later = {  # fresh readers that count only if the same reader has no recorded observation
            1 << at + 1: 1 << at for at, (item, other) in enumerate(itertools.pairwise(self.readers)) if item.name == other.name
        }
        for fixture in sorted(self.corpus.fixtures.values(), key=lambda fixture: fixture.id):
            for options, load in loads:
                key, place = cell_key(fixture.subject, load), (fixture.id, options.id)
                result = recorded(place, key)
                taken = functools.reduce(operator.or_, (bits for _, bits in result), 0)
                hidden = sum(bit for bit, before in later.items() if taken & before)
                result += [(observation, bits & ~hidden) for observation, bits in fresh(place, key) if bits & ~hidden]
                if result:
                    yield fixture, options, result

    @cached_property
    def cells(self) -> tuple[Cells, ...]:
        """Every observed cell that belongs to the current corpus, equivalent cells together, in the order of :meth:`lines`."""
        return tuple(
            Cells(fixture, options, observation, outcome, direction, part, heard.others, heard.worded)
            for fixture, options, observations in self.lines()
            for observation, bits in observations
            for heard in self.wordings.heard(fixture, observation, bits)
            for outcome in (self.outcome(fixture, observation, others=heard.others),)
            for direction, side in self._sides(fixture)
            if (part := heard.readers & side)
        )

    @cached_property
    def by_line(self) -> dict[tuple[str, str], tuple[Cells, ...]]:
        """The cells by fixture and options: all observations of one archive under one set of load options."""
        return {
            place: tuple(line)
            for place, line in itertools.groupby(self.cells, lambda cells: (cells.fixture.id, cells.options.id))
        }

    @cached_property
    def toward(self) -> dict[Direction, tuple[Cells, ...]]:
        """The cells by direction. Every direction is present, even without cells."""
        results: dict[Direction, list[Cells]] = {direction: [] for direction in DIRECTIONS}
        for cells in self.cells:
            results[cells.direction].append(cells)
        return {direction: tuple(cells) for direction, cells in results.items()}

    @cached_property
    def deprecations(self) -> dict[str, dict[str, DeprecationObservation]]:
        """The observations of each deprecated feature, by probe and release: recorded before fresh, for the current probe."""
        results: dict[str, dict[str, DeprecationObservation]] = {probe.name: {} for probe in self.corpus.deprecations}
        for probe in self.corpus.deprecations:
            for source in (self.recorded, self.fresh):
                for _, reader in sorted(source.items()):
                    item = reader.deprecations.get(probe.name)
                    current = item is not None and item.key == deprecation_key(probe.sha256, reader)
                    if item is not None and current and reader.release in self.policy.calendar:
                        results[probe.name].setdefault(reader.release, item)
        return results

    @cached_property
    def wordings(self) -> Wordings:
        """The wordings, which decide whether an error is a rewording of the writer's."""
        return Wordings(self.policy.wordings, self.readers)

    def derived(self, make: Callable[[Evidence], Made]) -> Made:
        """The result of a function of this evidence; computed once and cached."""
        if make not in self._derived:
            self._derived[make] = make(self)
        result: Made = self._derived[make]
        return result

    @cached_property
    def _derived(self) -> dict[Callable[[Evidence], Any], Any]:
        return {}

    @cached_property
    def modelled(self) -> tuple[tuple[Fixture, str, Observation], ...]:
        """The reference reader's observations of the current corpus: fixture, options, observation, ordered by fixture."""
        if self.reference is None:
            return ()
        return tuple(
            (fixture, options.id, observation)
            for fixture in sorted(self.corpus.fixtures.values(), key=lambda fixture: fixture.id)
            for options in self.policy.options
            if (observation := self.valid(self.reference, fixture, options)) is not None
        )

    @staticmethod
    def valid(reader: ObservedReader | None, fixture: Fixture, options: OptionSet) -> Observation | None:
        """A reader's observation of exactly this archive, these calls, this golden and these options; None if there is none."""
        if reader is None:
            return None
        observation = reader.cells.get((fixture.id, options.id))
        if observation is None:
            return None
        return observation if observation.key == cell_key(fixture.subject, options.load.given()) else None

    @cached_property
    def rank(self) -> dict[str, int]:
        """The position of each release in the calendar, by version: 0 for the oldest, and -1 for synthetic fixtures."""
        return {SYNTHETIC: -1, **{release.version: index for index, release in enumerate(self.policy.calendar)}}

    def refusals_expected(self, cells: Cells) -> int:
        """The readers of cells that refuse as their load options intend and, if these require it, as the model predicts."""
        allowed = cells.options.may_refuse
        if cells.outcome is not Outcome.REFUSED or allowed is None or not allowed.covers(cells.fixture.container, cells.message):
            return 0
        return cells.readers & (self.predicted_refusals(cells.fixture) or 0) if allowed.predicted else cells.readers

    def predicted_refusals(self, fixture: Fixture) -> int | None:
        """The readers that refuse a fixture under ``weights_only=True`` according to the model; None if nothing is predicted."""
        if fixture.id not in self._predicted:
            writer = None if fixture.release == SYNTHETIC else Release(fixture.release)
            told = [
                refusal.readers
                for refusal in self._refusals.get(fixture.recipe, ())
                if refusal.readers is not None and refusal.of(fixture.recipe, writer)
            ]
            self._predicted[fixture.id] = (
                self.readers.where(lambda reader: any(Release(reader.release) in item for item in told)) if told else None
            )
        return self._predicted[fixture.id]

    @cached_property
    def _refusals(self) -> dict[str, list[BehaviorEntry]]:
        """The policy's predictions for archives of each recipe under ``weights_only=True``."""
        results: dict[str, list[BehaviorEntry]] = {}
        for entry in self.policy.behaviors:
            if entry.refused_recipe:
                results.setdefault(entry.refused_recipe, []).append(entry)
        return results

    @cached_property
    def _predicted(self) -> dict[str, int | None]:
        return {}

    def _sides(self, fixture: Fixture) -> list[tuple[Direction, int]]:
        """The readers in each direction from the writer of a fixture."""
        if fixture.release not in self._known_sides:
            if fixture.release == SYNTHETIC:
                self._known_sides[SYNTHETIC] = [("synthetic", (1 << len(self.readers)) - 1)]
            else:
                sides: dict[Direction, int] = {}
                for index, reader in enumerate(self.readers):
                    direction = self._direction(fixture.release, reader)
                    sides[direction] = sides.get(direction, 0) | 1 << index
                self._known_sides[fixture.release] = list(sides.items())
        return self._known_sides[fixture.release]

    @cached_property
    def _known_sides(self) -> dict[str, list[tuple[Direction, int]]]:
        return {}

    def _direction(self, writer: str, reader: Reader) -> Direction:
        calendar = self.policy.calendar
        wrote = self.rank[calendar[writer].version]
        if reader.rank >= wrote:
            return "own" if reader.rank == wrote else "backward"
        apart = calendar.days_between(reader.release, writer)
        return "forward-in-window" if apart <= self.policy.forward_window_days else "forward"

    def outcome(
        self, fixture: Fixture, observation: Observation, between: Results | None = None, others: Errors | None = None
    ) -> Outcome:
        """The outcome of an observation, under the policy's tolerances for the fixture's operators.

        Parameters:
            between: the two compared results; by default the golden and the reader's own.
            others: the errors that count as different from the golden's; by default all with another class or text.
        """
        if observation.result != "differs":
            return Outcome(observation.result)
        kinds, apart = set(), False
        for extent in observation.extent:
            if extent["kind"] in {"raised", "relaxed"}:
                kinds.add(extent["kind"])
                continue
            if extent["kind"] == OTHER_ERROR:
                if other_errors(observation) if others is None else others:
                    return Outcome.DIFFERENT
                continue
            apart = True
            if not self.policy.disregards(extent["kind"], fixture.family) and not self._within(
                fixture, observation, extent, between
            ):
                return Outcome.DIFFERENT
        if "raised" in kinds:
            return Outcome.RAISED
        return Outcome.RELAXED if kinds else Outcome.CLOSE if apart else Outcome.SAME

    def matters(self, fixture: Fixture, difference: Difference) -> bool:
        """Whether a difference of values, types or state counts against the reader."""
        if self.policy.disregards(difference.kind, fixture.family):
            return False
        tolerance = self.policy.tolerance(fixture.family, fixture.operators, difference.dtype)
        if difference.kind != "value" or tolerance is None:
            return True
        measured = difference.distances
        return not measured or not all(map(tolerance.covers, measured))

    def _within(self, fixture: Fixture, observation: Observation, extent: dict[str, Any], between: Results | None) -> bool:
        """Whether all differences of one kind and dtype are within the tolerance.

        The recorded summary of the differences usually decides. Only if an element is beyond the ULP bound but within the absolute
        bound, the elements themselves are checked against the relative bound.
        """
        frontier, dtype = extent["frontier"], str(extent["dtype"])
        tolerance = self.policy.tolerance(fixture.family, fixture.operators, dtype)
        if extent["kind"] != "value" or not isinstance(frontier, list) or tolerance is None:
            return False
        beyond = [float(gap) for gap, steps in frontier if float(steps) > tolerance.max_ulp]
        if not beyond or max(beyond) > tolerance.max_abs:
            return not beyond
        apart = [distance for distance in self.distances(fixture, observation, between) if distance.dtype == dtype]
        told = any(
            (distance.steps > tolerance.max_ulp).any() for distance in apart
        )  # otherwise the records contradict each other
        return told and all(tolerance.covers(distance) for distance in apart)

    def distances(self, fixture: Fixture, observation: Observation, between: Results | None = None) -> list[Distances]:
        """The distance of every floating-point number of an observation from the golden's; parameters as in :meth:`outcome`."""
        if between is not None:
            return distances(*between)
        # Most goldens and departures equal those of other writers and readers: equal ones are one object each.
        golden, departures = fixture.golden, observation.departures
        key = (id(golden), id(departures))
        known = self._distances.get(key)
        if known is None:
            apart = distances(golden, observation.own_result(golden))
            known = self._distances[key] = golden, departures, apart  # kept alive, so that no other objects get their ids
        return known[2]

    @cached_property
    def _distances(self) -> dict[tuple[int, int], tuple[dict[str, Any], Departures, list[Distances]]]:
        return {}
