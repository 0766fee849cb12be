"""``torch-compat observe --recipe NAME --everywhere``: every release runs one recipe, and every release reads the resulting archives.

Releases are processed one after another, so that one environment is needed at a time: first each required writer writes its fixture, then
each reader reads all of them. The remaining work is derived from the tree itself, so an interrupted run continues where it stopped.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from torch_compat.corpus.corpus import load_corpus
from torch_compat.corpus.grid import asked_writers
from torch_compat.corpus.recipes import read_recipe, unknown_recipe
from torch_compat.judging.gathering import gather, uncollected
from torch_compat.readers.environments import GB, NEEDED_BYTES, Environments
from torch_compat.readers.torch_release import TorchRelease
from torch_compat.replay.produce import produce
from torch_compat.replay.progress import Silent
from torch_compat.replay.recording import Asked, is_unread, observe_reader
from torch_compat.replay.trust import trusted
from torch_compat.words import count_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from torch_compat.corpus.recipes import Recipe
    from torch_compat.judging.evidence import Evidence
    from torch_compat.policy import CalendarRelease
    from torch_compat.replay.progress import ProgressSink
    from torch_compat.replay.recording import ObservedRelease
    from torch_compat.workspace import Root

__all__ = ["FREE_BYTES", "Everywhere", "Job"]

FREE_BYTES: Final = 5 * GB
"""The download size that is allowed without --yes."""
WHEEL_BYTES: Final = GB
"""The maximum download size of one release, without its CUDA libraries."""
BUILD_SECONDS: Final = 60
"""The estimate for a build, if no build on this machine provides a measurement."""
ASK_SECONDS: Final = 15


@dataclass(frozen=True)
class Job:
    """One task of one release.

    Attributes:
        what: ``write`` the fixture, or ``read`` all fixtures of the recipe.
        release: the release that does it.
    """

    what: Literal["write", "read"]
    release: CalendarRelease

    def commands(self, recipe: str) -> str:
        """The job as a shell command, for a CI shard."""
        name = self.release.name
        work = (
            f"produce {name} --recipe {recipe}" if self.what == "write" else f"observe --reader {name} --recipe {recipe} --record"
        )
        return f"torch-compat readers build {name} && torch-compat {work} && torch-compat readers remove {name}"


class Everywhere:
    """The work for one recipe in a tree.

    Parameters:
        place: the tree.
        name: the name of the recipe.
        trust: whether archives outside the frozen corpus may be run if releases are not isolated.
        say: called with each step, one line each.
        progress: creates the sink for the progress of a reader.
        read: called with what each release read.

    Raises:
        UsageError: the recipe does not exist.
        CorpusError: the recipe is unfinished.
    """

    def __init__(
        self,
        place: Root,
        name: str,
        *,
        trust: bool = False,
        say: Callable[[str], None] = lambda _: None,
        progress: Callable[[], ProgressSink] = Silent,
        read: Callable[[ObservedRelease], object] = lambda _: None,
    ) -> None:
        path: Path = place.inside(f"fixtures/recipes/{name}.py")
        if not path.is_file():
            raise unknown_recipe(name, (recipe.stem for recipe in path.parent.glob("*.py")))
        self.recipe: Recipe = read_recipe(path)
        self.place = place
        self.trust = trust
        self.say = say
        self.progress = progress
        self.read = read
        self.environments = Environments()

    def jobs(self) -> list[Job]:
        """The remaining jobs, in order: all writers, then all readers of the resulting archives."""
        evidence = self._gathered()
        calendar, scope = evidence.policy.calendar, evidence.policy.corpus
        written = {entry.id for entry in evidence.corpus.entries}
        writers = [calendar[writer] for writer in asked_writers(evidence.policy, self.recipe)]
        left = [Job("write", writer) for writer in writers if f"{writer.name}/{self.recipe.name}" not in written]
        readers = [calendar[reader] for reader in scope.readers]
        return left + [Job("read", reader) for reader in readers if left or self._unread(evidence, reader)]

    def to_build(self, jobs: list[Job]) -> list[str]:
        """The releases to build for these jobs, once for each job."""
        return [job.release.version for job in jobs if self.environments.get(job.release.version) is None]

    def cost(self, jobs: list[Job]) -> tuple[int, list[str]]:
        """The cost of these jobs: the maximum number of bytes to download, and a description of all costs."""
        builds = self.to_build(jobs)
        download = len(builds) * WHEEL_BYTES
        known = [
            float(environment.description["seconds"])
            for environment in self.environments.all()
            if "seconds" in environment.description
        ]
        build = max(known, default=BUILD_SECONDS)
        minutes = (len(builds) * build + len(jobs) * ASK_SECONDS) / 60
        writes = sum(job.what == "write" for job in jobs)
        return download, [
            f"{count_of(writes, 'release writes', 'releases write')} {self.recipe.file}, {count_of(len(jobs) - writes, 'release reads it', 'releases read it')}",
            f"download: at most {download / GB:.0f} GB, {WHEEL_BYTES / GB:.0f} GB for each of {count_of(len(builds), 'build')}",
            f"disk: {NEEDED_BYTES['stub'] / GB:.0f} GB, because only one environment exists at a time"
            if builds
            else "disk: no additional space needed",
            f"time: about {max(round(minutes), 1)} minutes",
        ]

    def run(self, jobs: list[Job]) -> int:
        """Run the jobs, release by release; return 1 if a fixture was not reproduced as recorded."""
        status = 0
        for at, job in enumerate(jobs, 1):
            ours = self.environments.get(job.release.version) is None
            self.say(f"{at} of {len(jobs)}: {job.release.name} {'writes' if job.what == 'write' else 'reads'}")
            environment = self.environments.build(job.release, progress=lambda step: self.say(f"  {step}"))
            try:
                if job.what == "write":
                    with TorchRelease(environment) as reader:
                        today = dt.datetime.now(dt.UTC).date()
                        corpus = load_corpus(self.place.fixtures)
                        done = produce(corpus, reader, [self.recipe], today, lambda _name: None)
                    status = max(status, int(bool(done.differing)))
                else:
                    self._read(job.release)
            finally:
                if ours:
                    self.environments.remove(job.release.version)
        return status

    def _read(self, release: CalendarRelease) -> None:
        """Record a release's observations of the fixtures. No earlier records exist to compare them with."""
        evidence = self._gathered()
        mine = [fixture for fixture in evidence.corpus.fixtures.values() if fixture.recipe == self.recipe.name]
        if not mine or not self._unread(evidence, release):
            return
        asked = Asked(fixtures=mine, record=True, trust=trusted(self.place.fixtures, everything=self.trust))
        with self.progress() as progress:
            reading = observe_reader(self.place, evidence, release, asked, progress)
        self.read(reading)

    def _unread(self, evidence: Evidence, release: CalendarRelease) -> bool:
        """Whether a reader has not read a fixture of the recipe in its current form."""
        mine = (fixture for fixture in evidence.corpus.fixtures.values() if fixture.recipe == self.recipe.name)
        return any(is_unread(evidence, release, fixture) for fixture in mine)

    def _gathered(self) -> Evidence:
        with uncollected():
            return gather(self.place, self.place.policy(), as_of=None)
