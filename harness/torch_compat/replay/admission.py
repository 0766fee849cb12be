"""The steps that add a release to the corpus, each of which detects whether its result exists.

No step remembers earlier runs: each looks at the tree. So the same command completes a run that was killed, and writes what that
run would have written. In addition, ``reports/latest`` holds the digests of all files from before the first run,
so that the last run can report what changed, and the environments that were built only for this.

Adding a release takes a few lines, which can be run again after an interruption::

    admission = Admission(find_root(Path("path/to/tree")), "2.16.0")
    ended = admission.run_all()
    if not any(one.status for one in ended.values()):
        admission.end()

``torch-compat admit`` also prints what each step will do, and its result.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import json
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from torch_compat.corpus.grid import asked_writers
from torch_compat.corpus.surveys import surveyed_releases
from torch_compat.errors import EnvironmentUnavailable, HarnessError, NothingSelected
from torch_compat.judging.counting import LOCK_FILE
from torch_compat.judging.gathering import gather, uncollected
from torch_compat.judging.judgement import Verdict
from torch_compat.places import read_whole
from torch_compat.policy.calendar_files import add_release, drop_planned, planned_releases, written_calendar
from torch_compat.readers.build_release import built
from torch_compat.readers.commands import run_command
from torch_compat.readers.environments import NEEDED_BYTES, Environments
from torch_compat.readers.index import calendar_entry, offered_release
from torch_compat.readers.isolation import warn_unless_isolated
from torch_compat.readers.torch_release import TorchRelease
from torch_compat.replay.generating import GENERATED, PREDICTIONS, UNUSED, predict, predictions_current, regenerate
from torch_compat.replay.produce import produce
from torch_compat.replay.progress import Silent
from torch_compat.replay.recording import Asked, is_missing, observe_reader, record_survey
from torch_compat.replay.trust import trusted
from torch_compat.report.documents import NOTES, RELEASES
from torch_compat.words import count_of
from torch_compat.writes import changing, put, remove

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from torch_compat.judging.evidence import Evidence
    from torch_compat.policy import CalendarRelease
    from torch_compat.releases.calendar import Calendar
    from torch_compat.replay.progress import ProgressSink
    from torch_compat.replay.recording import ObservedRelease
    from torch_compat.workspace import Root

__all__ = ["STEPS", "Admission", "Ended"]

STEPS: Final = ("calendar", "environment", "produce", "observe", "survey", "readers", "documents", "predictions")
KEPT: Final = ("fixtures", "policies", "reports", "README.md")
"""The parts of a tree that adding a release changes, except reports/latest."""
STATE_VERSION: Final = 1


@dataclass(frozen=True)
class Ended:
    """How a step ended.

    Attributes:
        state: ``there`` (its result already existed), ``done``, ``incomplete``, ``left`` (not reached), or ``to-do`` (only
            described, not run).
        says: the results, for people, one line each.
        status: an exit status as defined in DESIGN: 0, 1, 2, 3 or 4.
        left: what must be done by hand to complete the step.
    """

    state: str
    says: tuple[str, ...] = ()
    status: int = 0
    left: tuple[str, ...] = ()


@dataclass
class Admission:
    """A release that is being added to a tree.

    Attributes:
        version: ``2.16.0``.
        uploaded: the day of its upload, if the index does not provide it; None to ask the index.
        keep: whether to keep environments that are built only to ask other readers.
        trust: whether archives outside the frozen corpus may be run if releases are not isolated.
        say: called with each step of the work, one line each.
        progress: creates the sink for the progress of a step.
        read: called with what each release read.
    """

    place: Root
    version: str
    uploaded: dt.date | None = None
    keep: bool = False
    trust: bool = False
    say: Callable[[str], None] = lambda _: None
    progress: Callable[[], ProgressSink] = Silent
    read: Callable[[ObservedRelease], object] = lambda _: None
    environments: Environments = field(default_factory=Environments)
    _evidence: Evidence | None = None

    # ------------------------------------------------------------------------------------------------------------ the steps

    def does(self, step: str) -> str:
        """A one-sentence description of what a step will do."""
        name = f"torch-{self.version}"
        return {
            "calendar": f"look up {name} in the package index, add it to policies/torch, and remove it from the planned releases",
            "environment": f"build the environment for {name}",
            "produce": f"run every recipe that {name} has not run yet, and freeze the fixtures in fixtures/{name}",
            "observe": f"load every fixture twice with {name}, and run every probe and every deprecation",
            "survey": f"record the operators, names and limits that {name} reports",
            "readers": f"load the fixtures from {name}, and everything else that is not recorded, with every other reader, one after another",
            "documents": "regenerate " + ", ".join([LOCK_FILE, *(item.path for item in GENERATED), RELEASES, NOTES]),
            "predictions": f"update the counts in {PREDICTIONS} and the behavior counts in {LOCK_FILE} (takes a few minutes)",
        }[step]

    def is_there(self, step: str) -> bool:
        """Whether the result of a step is in the tree. Documents, generated in seconds, are always regenerated and compared instead."""
        if step == "calendar":
            planned = (self.version in planned_releases(self._policies), self.version in self._calendar)
            return planned == (False, True)
        if step == "documents" or self.version not in self._calendar:
            return False
        if step == "environment":
            needed = not all(self.is_there(later) for later in ("produce", "observe", "survey"))
            return not needed or self.environments.get(self.version) is not None
        if step == "survey":
            return self.version in surveyed_releases(self.place.fixtures)
        evidence = self._gathered()
        scope = evidence.policy.corpus
        if step == "predictions":
            return predictions_current(self.place, evidence)
        if step == "produce":
            return self.version not in scope.writers or not self._unwritten(evidence)
        if step == "observe":
            return self.version not in scope.readers or not is_missing(evidence, self._release)
        return not self.readers_to_ask()

    def run(self, step: str) -> Ended:
        """Run a step whose result is missing. A reported error ends the step, not the program."""
        work: Callable[[], Ended] = getattr(self, f"_do_{step}")
        try:
            with contextlib.redirect_stdout(sys.stderr):  # data that other commands print is progress here
                return work()
        except HarnessError as error:
            return Ended("incomplete", (str(error),), error.exit_status, (f"{step}: {error.hint or error.message}",))
        finally:
            self._evidence = None

    def run_all(
        self, steps: Sequence[str] = STEPS, starting: Callable[[str, int, bool], object] = lambda *_: None
    ) -> dict[str, Ended]:
        """Run steps in order, up to the first that cannot be done; return how each ended.

        Parameters:
            starting: called with the next step, its number, and whether its result exists.
        """
        self.begin()  # first: it completes what a killed run left behind
        ended: dict[str, Ended] = {}
        for number, step in enumerate(steps, 1):
            if any(item.state == "incomplete" for item in ended.values()):
                ended[step] = Ended("left", (), 4, (f"{step}: {self.does(step)}",))
                continue
            there = self.is_there(step)
            starting(step, number, there)
            ended[step] = Ended("there") if there else self.run(step)
            for line in ended[step].says:
                self.say(line)
        return ended

    def _do_calendar(self) -> Ended:
        calendar = self._calendar
        texts: dict[Path, str] = {}
        says = []
        if self.version not in calendar:
            self.say("querying the package index (takes a minute or two)")
            result, day = offered_release(calendar, self.version, dt.datetime.now(dt.UTC).date(), run_command)
            day = self.uploaded or day
            if day is None:
                raise EnvironmentUnavailable(
                    f"neither pip nor the package index provides the upload date of torch {self.version}",
                    hint="use --uploaded YYYY-MM-DD",
                    code="no-upload-day",
                )
            says.append(f"{self.version}, uploaded on {day}, for Python {', '.join(result.pythons)}")
            texts = add_release(self._policies, calendar_entry(calendar, result, day))
        with changing(self.place.path):
            for path, text in (drop_planned(self._policies, self.version) | texts).items():
                put(path, text, encoding="utf-8")
                says.append(path.relative_to(self.place.path).as_posix())
        self.place.policy()  # report inconsistencies now, before anything is built
        return Ended("done", tuple(says))

    def _do_environment(self) -> Ended:
        self._build(self._release)
        return Ended("done", (f"{self._size(self.version)} in {self.environments.root}; it is kept",))

    def _do_produce(self) -> Ended:
        evidence = self._gathered()
        recipes = self._unwritten(evidence)
        today = dt.datetime.now(dt.UTC).date()
        with TorchRelease(built(self._release)) as writer, self.progress() as progress:
            warn_unless_isolated(progress.say)
            bar = progress.task(f"torch-{self.version}: producing")
            done = iter(range(len(recipes)))
            produced = produce(evidence.corpus, writer, recipes, today, lambda _: bar(next(done), len(recipes)))
        written = sum(hasattr(entry, "golden") for entry in produced.added)
        refused = len(produced.added) - written
        return Ended(
            "done", (f"{count_of(written, 'fixture')} written; {count_of(refused, 'recipe')} cannot be written by this release",)
        )

    def _do_observe(self) -> Ended:
        return Ended("done", self._ask(self._release))

    def _do_survey(self) -> Ended:
        readers = self._gathered().recorded.values()
        known = next((reader for reader in readers if reader.release == self.version), None)
        if known is None:
            raise NothingSelected(
                f"there are no recorded observations by torch-{self.version}, so it cannot be surveyed",
                hint="run the observe step first",
            )
        with self.progress() as progress:
            record_survey(self.place, built(self._release), known, progress.say)
        return Ended("done")

    def _do_readers(self) -> Ended:
        asked = self.readers_to_ask()
        says: list[str] = []
        left: list[str] = []
        statuses = [0]
        for number, release in enumerate(asked, 1):
            self.say(f"reader {number} of {len(asked)}: {release.name}")
            try:
                self._build(release)
                says += self._ask(release)
            except HarnessError as error:
                statuses.append(error.exit_status)
                says.append(f"{release.name}: {error}")
                left.append(f"readers: {release.name} has not loaded the fixtures from torch-{self.version}: {error.message}")
            if not self.keep and release.version in self._state["built"]:
                self.say(f"{release.name}: environment removed, {self.environments.remove(release.version) / 1e9:.2f} GB freed")
                self._remember(removed=release.version)
            self._evidence = None
        return Ended("incomplete" if left else "done", tuple(says), max(statuses), tuple(left))

    def _do_documents(self) -> Ended:
        changed, judged = regenerate(self.place, self.say)
        report = judged.report
        failing = sum(finding.verdict is Verdict.FAIL for finding in report.findings)
        left = []
        if failing:
            left.append(
                f"documents: {count_of(failing, 'finding fails', 'findings fail')}; fix or waive them (torch-compat judge --full)"
            )
        if report.not_checked:
            left.append("documents: a required check was not run (torch-compat judge --full)")
        says = tuple(changed) or ("all files are current",)
        return Ended("done" if changed else "there", says, report.exit_status, tuple(left))

    def _do_predictions(self) -> Ended:
        with self.progress() as progress:
            wrong, unused = predict(self.place, progress.task("the reference reader"))
        left = [f"predictions: {item} {UNUSED}" for item in unused]
        if wrong:
            left.append(
                f"predictions: {count_of(len(wrong), 'cell is predicted', 'cells are predicted')} wrongly (nox -s predictions)"
            )
        says = (f"{PREDICTIONS} was not written", *left[: len(unused)]) if unused else (PREDICTIONS, LOCK_FILE)
        return Ended("incomplete" if unused else "done", (*says, *wrong[:6]), int(bool(left)), tuple(left))

    # --------------------------------------------------------------------------------------------------------- what they need

    @property
    def _policies(self) -> Path:
        return self.place.inside("policies/torch")

    @property
    def _calendar(self) -> Calendar[CalendarRelease]:
        return written_calendar(self._policies)

    @property
    def _release(self) -> CalendarRelease:
        return self._calendar[self.version]

    def _gathered(self) -> Evidence:
        """The recorded evidence, read once between two changes of it."""
        if self._evidence is None:
            with uncollected():
                self._evidence = gather(self.place, self.place.policy(), as_of=None)
        return self._evidence

    def _unwritten(self, evidence: Evidence) -> list[Any]:
        """The recipes in this release's grid for which the manifest has neither a fixture nor a reason for its absence."""
        known = {entry.recipe for entry in evidence.corpus.entries if entry.release == self.version}
        left = [recipe for recipe in evidence.corpus.recipes if recipe.name not in known]
        return [recipe for recipe in left if self.version in asked_writers(evidence.policy, recipe)]

    def readers_to_ask(self) -> list[CalendarRelease]:
        """The other readers of the policy with missing records, oldest first."""
        evidence = self._gathered()
        others = [evidence.policy.calendar[name] for name in evidence.policy.corpus.readers if name != self.version]
        produced = self.version in self._calendar and self.is_there("produce")
        return [other for other in others if not produced or is_missing(evidence, other)]

    def _ask(self, release: CalendarRelease) -> tuple[str, ...]:
        """Let a release read whatever is not yet recorded for it, and record the results."""
        evidence = self._gathered()
        asked = Asked(
            fixtures=list(evidence.corpus.fixtures.values()),
            missing=True,
            record=True,
            whole=True,
            trust=trusted(self.place.fixtures, everything=self.trust),
        )
        with self.progress() as progress:
            reading = observe_reader(self.place, evidence, release, asked, progress)
        self.read(reading)
        cells = sum(len(item.cells) for item in reading.evidence.recorded.values() if item.release == release.version)
        return (f"{release.name}: {count_of(cells, 'cell')} recorded",)

    # ---------------------------------------------------------------------------------------------------------- environments

    def environments_to_build(self) -> list[str]:
        """The releases whose environments are missing and will be needed, in build order."""
        own = [] if self.is_there("environment") else [self.version]
        return own + [release.version for release in self.readers_to_ask() if self.environments.get(release.version) is None]

    def largest_here(self) -> int | None:
        """The size in bytes of the largest environment built here; None if there is none. Sizes are unknown before the download."""
        return max((int(environment.description["size"]) for environment in self.environments.all()), default=None)

    @property
    def needed(self) -> int:
        """The bytes of free space needed while an environment is built."""
        return NEEDED_BYTES["stub"]

    def _build(self, release: CalendarRelease) -> None:
        if self.environments.get(release.version) is None:
            if release.version != self.version:
                self._remember(built=release.version)  # first: a killed run leaves no unrecorded environment
            self.environments.build(release, progress=lambda step: self.say(f"{release.name}: {step}"))

    def _size(self, version: str) -> str:
        environment = self.environments.get(version)
        return f"{environment.description['size'] / 1e9:.2f} GB" if environment else "nothing"

    # ------------------------------------------------------------------------------------------------------------ what changed

    def begin(self) -> None:
        """Record the contents of the tree, unless an earlier unfinished run already did."""
        self._remember()

    def changed(self) -> list[str]:
        """The files that changed since before the first run."""
        before, now = self._state["before"], _digests(self.place)
        return sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path))

    def end(self) -> None:
        """Delete the records: everything is done."""
        with changing(self.place.path):
            remove(self._path)

    @property
    def _path(self) -> Path:
        return self.place.inside(f"reports/latest/admit-torch-{self.version}.json")

    @property
    def _state(self) -> dict[str, Any]:
        try:
            state = json.loads(read_whole(self._path))
        except (OSError, ValueError):
            state = None
        if isinstance(state, dict) and state.get("schema_version") == STATE_VERSION:
            return state
        return {"schema_version": STATE_VERSION, "before": _digests(self.place), "built": []}

    def _remember(self, *, built: str = "", removed: str = "") -> None:
        """Record the contents of the tree, unless an earlier run did, and the environment that was built only for this or removed."""
        with changing(self.place.path):
            state = self._state
            names = [name for name in (*state["built"], built) if name not in {"", removed}]
            put(self._path, json.dumps({**state, "built": names}, indent=1, sort_keys=True) + "\n")


def _digests(place: Root) -> dict[str, str]:
    """A digest of every file that adding a release can change, keyed by path."""
    return {path.relative_to(place.path).as_posix(): hashlib.sha256(read_whole(path)).hexdigest() for path in _files(place)}


def _files(place: Root) -> Iterator[Path]:
    for name in KEPT:
        path = place.path / name
        for result in (path, *path.rglob("*")):
            if result.is_file() and not {"latest", "__pycache__"} & set(result.relative_to(place.path).parts):
                yield result
