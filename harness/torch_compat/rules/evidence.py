"""Evidence: everything that judging may look at. Facts and policy, no archive, no clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from torch_compat.corpus.lines import digest
from torch_compat.corpus.manifest import SYNTHETIC
from torch_compat.corpus.observations import cell_key
from torch_compat.rules.judgement import Outcome
from torch_compat.rules.operator_changes import OperatorChanges, operator_changes
from torch_compat.values.normalise import headline

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator

    from torch_compat.corpus.corpus import Corpus
    from torch_compat.corpus.deprecations import DeprecationObservation
    from torch_compat.corpus.manifest import Fixture
    from torch_compat.corpus.observations import Observation, ObservedReader
    from torch_compat.corpus.operators import RecordedOperators
    from torch_compat.policy import OptionSet, Policy

__all__ = ["Cell", "Direction", "Evidence", "deprecation_key"]

Direction = Literal["backward", "own", "forward", "forward-in-window", "synthetic"]


def deprecation_key(sha256: str, reader: ObservedReader) -> str:
    """The key of what a reader says to a probe of this hash; what stands under another one is of another probe or reader."""
    return digest(sha256, reader.identity_digest, reader.protocol)[:20]


@dataclass(frozen=True)
class Cell:
    """One fixture, one set of load options, one reader, and what was observed there.

    Attributes:
        reader: exact name, ``torch-1.12.1+cu102``.
        release: its public version.
        direction: of the reader as seen from the writer; ``forward`` is a reader older than the writer. Of what no release
            wrote it is ``synthetic``.
        recorded: whether the observation is kept in the repository; waivers count those alone, since what else is observed
            differs from machine to machine.
    """

    fixture: Fixture
    options: OptionSet
    reader: str
    release: str
    observation: Observation
    outcome: Outcome
    direction: Direction
    recorded: bool = True

    @cached_property
    def subject(self) -> str:
        """As people name it."""
        options = "" if self.options.id == "default" else f" ({self.options.id})"
        return f"{self.fixture.id} read by {self.reader}{options}"

    @property
    def loaded(self) -> bool:
        """Whether the load call returned."""
        dead_while_loading = self.outcome in {Outcome.CRASHED, Outcome.TIMED_OUT} and self.observation.stage == "load"
        return self.outcome is not Outcome.REFUSED and not dead_while_loading

    @property
    def refusal_expected(self) -> bool:
        """Whether it is refused, as the load options are there to do."""
        allowed = self.options.may_refuse
        return self.outcome is Outcome.REFUSED and allowed is not None and allowed.covers(self.fixture.container, self.message)

    @cached_property
    def message(self) -> str:
        """The one line that says why, for outcomes that have one."""
        if self.observation.signal:
            ending = f"{self.observation.signal} while {'loading' if self.observation.stage == 'load' else 'running'}"
            return ": ".join([ending, *(error["message"] for error in self.observation.errors)])
        # Several calls of one program may raise differently; the last is the plainest: TorchScript explains itself worse
        # the first time, where it cannot yet quote the source.
        return headline(self.observation.errors[-1]["message"]) if self.observation.errors else ""


@dataclass(frozen=True)
class Evidence:
    """What is judged.

    Attributes:
        policy: what was promised.
        corpus: recipes, manifests and whether they are whole.
        recorded, fresh: observations by reader's exact name: those kept in the repository, and those made just now.
        unreadable: files of observations that could not be read, and why.
        unavailable: readers that were asked for and could not be had here, and why.
        as_of: the day on which it is judged.
        reference: what the reference reader did just now, each program at the horizon of its writer; None where it was not let
            read.
        operators: what is recorded of the operators of each release; None where nothing is.
        files: SHA-256, in hex, of the file that a recorded reader was read from, by its name, where it was read from one.
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

    @cached_property
    def digest(self) -> str:
        """SHA-256, in hex, of everything that the judgement rests on."""
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
        )

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """Every observed cell that belongs to the corpus as it is, by fixture, options and reader of the calendar.

        The recorded observation counts where there is a valid one, else the fresh one.
        """
        return tuple(
            self._cell(fixture, options, reader, observation)
            for fixture in sorted(self.corpus.fixtures.values(), key=lambda fixture: fixture.id)
            for reader, options, observation in self.observations_of(fixture)
            if reader.release in self.policy.calendar
        )

    def observations_of(self, fixture: Fixture) -> Iterator[tuple[ObservedReader, OptionSet, Observation]]:
        """Valid observations of one fixture, recorded before fresh, one for each reader and set of options."""
        keys = [(options, options.id, cell_key(fixture.subject, load)) for options, load in self._loads]
        for sources in self._readers:
            for options, name, key in keys:
                for reader in sources:
                    observation = reader.cells.get((fixture.id, name))
                    if observation is not None and observation.key == key:
                        yield reader, options, observation
                        break

    @cached_property
    def deprecations(self) -> dict[str, dict[str, DeprecationObservation]]:
        """What was observed of each deprecated thing, by probe and release: recorded before fresh, of the probe as it is now."""
        found: dict[str, dict[str, DeprecationObservation]] = {probe.name: {} for probe in self.corpus.deprecations}
        for probe in self.corpus.deprecations:
            for source in (self.recorded, self.fresh):
                for _, reader in sorted(source.items()):
                    one = reader.deprecations.get(probe.name)
                    current = one is not None and one.key == deprecation_key(probe.sha256, reader)
                    if one is not None and current and reader.release in self.policy.calendar:
                        found[probe.name].setdefault(reader.release, one)
        return found

    @cached_property
    def operator_changes(self) -> OperatorChanges | None:
        """What broke in the operators from one recorded release to the next; None where nothing is recorded."""
        return operator_changes(self)

    @cached_property
    def modelled(self) -> tuple[tuple[Fixture, str, Observation], ...]:
        """What the reference reader did with the corpus as it is: fixture, options, observation, by fixture."""
        if self.reference is None:
            return ()
        return tuple(
            (fixture, options.id, observation)
            for fixture in sorted(self.corpus.fixtures.values(), key=lambda fixture: fixture.id)
            for options in self.policy.options
            if (observation := self.valid(self.reference, fixture, options)) is not None
        )

    @cached_property
    def _loads(self) -> list[tuple[OptionSet, dict[str, bool | str]]]:
        return [(options, options.load.given()) for options in self.policy.options]

    @cached_property
    def _readers(self) -> list[list[ObservedReader]]:
        """Recorded before fresh observations of each reader, by its name."""
        names = sorted(self.recorded.keys() | self.fresh.keys())
        return [[source[name] for source in (self.recorded, self.fresh) if name in source] for name in names]

    @staticmethod
    def valid(reader: ObservedReader | None, fixture: Fixture, options: OptionSet) -> Observation | None:
        """A reader's observation of this very archive, these calls, this golden and these options; None if there is none."""
        if reader is None:
            return None
        observation = reader.cells.get((fixture.id, options.id))
        if observation is None:
            return None
        return observation if observation.key == cell_key(fixture.subject, options.load.given()) else None

    def _cell(self, fixture: Fixture, options: OptionSet, reader: ObservedReader, observation: Observation) -> Cell:
        return Cell(
            fixture=fixture,
            options=options,
            reader=reader.name,
            release=reader.release,
            observation=observation,
            outcome=self.outcome(fixture, observation),
            direction=self._direction(fixture, reader),
            recorded=self.recorded.get(reader.name) is reader,
        )

    @cached_property
    def rank(self) -> dict[str, int]:
        """The place of each release in the calendar, by version: 0 for the oldest, and what is synthetic before all."""
        return {SYNTHETIC: -1, **{release.version: index for index, release in enumerate(self.policy.calendar)}}

    def _direction(self, fixture: Fixture, reader: ObservedReader) -> Direction:
        if fixture.release == SYNTHETIC:
            return "synthetic"
        calendar = self.policy.calendar
        reads, wrote = self.rank[calendar[reader.release].version], self.rank[calendar[fixture.release].version]
        if reads >= wrote:
            return "own" if reads == wrote else "backward"
        apart = calendar.days_between(reader.release, fixture.release)
        return "forward-in-window" if apart <= self.policy.forward_window_days else "forward"

    def outcome(self, fixture: Fixture, observation: Observation) -> Outcome:
        """The outcome of an observation, under the policy's tolerances for the fixture's operators."""
        if observation.result != "differs":
            return Outcome(observation.result)
        kinds = set()
        for extent in observation.extent:
            if extent["kind"] in {"raised", "relaxed"}:
                kinds.add(extent["kind"])
            elif not self.policy.disregards(extent["kind"], fixture.family) and not self._within(fixture, extent):
                return Outcome.DIFFERENT
        if "raised" in kinds:
            return Outcome.RAISED
        return Outcome.RELAXED if kinds else Outcome.CLOSE

    def _within(self, fixture: Fixture, extent: dict[str, object]) -> bool:
        frontier = extent["frontier"]
        tolerance = self.policy.tolerance(fixture.operators, str(extent["dtype"]))
        if extent["kind"] != "value" or not isinstance(frontier, list) or tolerance is None:
            return False
        return all(float(gap) <= tolerance.max_abs or float(steps) <= tolerance.max_ulp for gap, steps in frontier)
