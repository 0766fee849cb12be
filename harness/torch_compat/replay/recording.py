"""Observe with one release and record the results: ``torch-compat observe`` without its output.

Observing a release and recording it takes a few lines::

    place = find_root(Path("path/to/tree"))
    evidence = gather(place)
    asked = Asked(fixtures=list(evidence.corpus.fixtures.values()), whole=True, record=True, trust=frozen_in(place.fixtures))
    reading = observe_reader(place, evidence, evidence.policy.calendar["2.13.0"], asked)

``reading.reader`` has the observations; :mod:`torch_compat.replay.reproduced` compares them with the recorded ones.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from torch_compat.corpus.recorded import read_recorded, record, write_recorded
from torch_compat.corpus.surveys import FILES, parse_survey, read_survey, survey_differences, surveyed_releases, write_surveys
from torch_compat.errors import CorpusError, NothingSelected, UsageError
from torch_compat.places import inside
from torch_compat.readers.build_release import built
from torch_compat.readers.isolation import trust_nothing, warn_unless_isolated
from torch_compat.replay.observe import Observing, code_digest, observe
from torch_compat.replay.plan import plan, probe_key, sampled
from torch_compat.replay.progress import SILENT
from torch_compat.replay.survey import survey
from torch_compat.rules.fixtures_frozen import UNFINISHED
from torch_compat.words import count_of
from torch_compat.writes import changing

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch_compat.corpus.corpus import Corpus
    from torch_compat.corpus.manifest import Fixture
    from torch_compat.corpus.observations import Observation, ObservedReader
    from torch_compat.judging.evidence import Evidence
    from torch_compat.policy import CalendarRelease, Policy
    from torch_compat.readers.environments import Environment
    from torch_compat.readers.isolation import Trust
    from torch_compat.readers.torch_release import TorchRelease
    from torch_compat.replay.plan import Sample
    from torch_compat.replay.progress import ProgressSink
    from torch_compat.workspace import Root

__all__ = [
    "Asked",
    "ObservedRelease",
    "is_missing",
    "is_unread",
    "observe_deprecations",
    "observe_reader",
    "observe_release",
    "record_survey",
    "refuse_damage",
]

SHOWN_FILES: Final = 3
"""How many changed files are listed: a new release changes one file, and another build of an old release changes many."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What each reader is asked to observe.

    Attributes:
        fixtures: the fixtures to read.
        options: only this set of load options, if given.
        sample: only this share of the cells.
        missing: only what is not yet recorded in its current form.
        again: whether to repeat what the last run observed.
        record: whether the results replace the recorded ones.
        survey: whether to record a survey of the release, too.
        whole: whether the fixtures are complete, so that probes and deprecations are run, too.
        trust: which archives it may be given if it is not isolated.
    """

    fixtures: list[Fixture]
    options: str | None = None
    sample: Sample | None = None
    missing: bool = False
    again: bool = False
    record: bool = False
    survey: bool = False
    whole: bool = False
    trust: Trust = trust_nothing


class ObservedRelease(NamedTuple):
    """The result of observing with a release.

    Attributes:
        reader: its observations; if nothing was missing, its recorded ones.
        evidence: the evidence including the new records.
        asked: whether it was asked anything.
    """

    reader: ObservedReader
    evidence: Evidence
    asked: bool = True


def observe_reader(
    place: Root,
    evidence: Evidence,
    release: CalendarRelease,
    asked: Asked,
    progress: ProgressSink = SILENT,
    workers: tuple[TorchRelease, TorchRelease] | None = None,
) -> ObservedRelease:
    """Let one release read, and record the results if requested.

    Parameters:
        workers: processes of the release that have already been started.

    Raises:
        CorpusError: an archive has changed.
        EnvironmentUnavailable: the release is not built here.
        NothingSelected: it has nothing to observe.
    """
    chosen, whole = asked.fixtures, asked.whole
    deprecated = whole
    if asked.missing:
        known = _recorded_of(evidence, release)
        if known is not None and _probes_recorded(evidence, known):
            chosen = [fixture for fixture in chosen if is_unread(evidence, release, fixture)]
            whole = len(chosen) == len(evidence.corpus.fixtures)
            deprecated = whole or not _deprecations_recorded(evidence, known)
            if not chosen and not deprecated:
                return ObservedRelease(known, evidence, asked=False)
    refuse_damage(evidence.corpus, chosen, record=asked.record)
    fresh = observe_release(
        place,
        evidence.policy,
        evidence.corpus,
        release,
        built(release),
        chosen,
        progress,
        options=asked.options,
        again=asked.again or asked.record,
        whole=whole,
        sample=asked.sample,
        workers=workers,
        deprecated=deprecated,
        trust=asked.trust,
    )
    if not fresh.cells and not fresh.deprecations:
        raise NothingSelected(
            f"{release.name} has nothing to observe in this selection",
            hint="check whether the release supports these load options",
        )
    if asked.record:
        if asked.survey:
            record_survey(place, built(release), fresh, progress.say)  # first: if it fails, nothing is half recorded
        recorded = _record(place, evidence, fresh, whole, progress.say)
        evidence = replace(evidence, recorded={**evidence.recorded, recorded.name: recorded})
    return ObservedRelease(fresh, evidence)


def observe_deprecations(
    place: Root, evidence: Evidence, release: CalendarRelease, *, record: bool, progress: ProgressSink = SILENT
) -> ObservedRelease:
    """Let a release use the deprecated features of all probes, each twice.

    Raises:
        NothingSelected: the corpus has no such probe.
        CorpusError: the results are to be recorded, and the corpus is damaged.
        UsageError: this exact reader has no records to which lines could be added.
    """
    corpus = evidence.corpus
    if not corpus.deprecations:
        raise NothingSelected("there are no deprecation probes to run", where=str(place.fixtures / "deprecations"))
    if record and corpus.damage:
        damage = corpus.damage[0]
        raise CorpusError(damage.detail, where=str(corpus.folder / damage.subject), code=damage.kind)
    progress.task(f"{release.name}: deprecations")
    warn_unless_isolated(progress.say)
    today = dt.datetime.now(dt.UTC).date()
    fresh = observe(built(release), [], (), today=today, deprecations=corpus.deprecations)
    return ObservedRelease(fresh, _record_deprecations(place, evidence, fresh, progress.say) if record else evidence)


def _record_deprecations(place: Root, evidence: Evidence, fresh: ObservedReader, say: Callable[[str], None]) -> Evidence:
    """Add the results to all other records of this reader; return the evidence including them."""

    def merged(now: ObservedReader | None) -> ObservedReader:
        if now is None or now.identity != fresh.identity:
            raise UsageError(
                f"the recorded observations are from another build of {fresh.name}, so you cannot replace only some of them",
                where=str(place.recorded),
                hint="record all fixtures: run without --deprecations",
            )
        return replace(now, observed=fresh.observed, deprecations=fresh.deprecations)

    with changing(place.path):
        recorded, changed = record(place.recorded, fresh, merged)
    say(_recorded_text(place, count_of(len(fresh.deprecations), "deprecation"), changed))
    return replace(evidence, recorded=recorded.readers)


def _recorded_text(place: Root, what: str, changed: list[Path]) -> str:
    """What was recorded, and which files of the tree changed."""
    names = ", ".join(path.relative_to(place.path).as_posix() for path in changed[:SHOWN_FILES])
    more = f" and {len(changed) - SHOWN_FILES} more" if len(changed) > SHOWN_FILES else ""
    return f"recorded {what} in {names}{more}" if changed else f"no file changed: {what} already recorded"


def is_unread(evidence: Evidence, release: CalendarRelease, fixture: Fixture) -> bool:
    """Whether a release has no recorded observation of this fixture in its current form under some of its load options."""
    readers = [reader for reader in evidence.recorded.values() if reader.release == release.version]
    return any(
        all(evidence.valid(reader, fixture, options) is None for reader in readers)
        for options in evidence.policy.option_sets(fixture.family, release)  # type: ignore[arg-type]
    )


def _probes_recorded(evidence: Evidence, reader: ObservedReader) -> bool:
    """Whether every probe was run in its current form: probes are only run together with everything else."""
    return all(
        probe.name in reader.probes and reader.probes[probe.name].key == probe_key(probe, reader.identity_digest)
        for probe in evidence.corpus.probes
    )


def _deprecations_recorded(evidence: Evidence, reader: ObservedReader) -> bool:
    """Whether every deprecation probe was run in its current form, and no others are recorded."""
    asked = {probe.name: probe_key(probe, reader.identity_digest) for probe in evidence.corpus.deprecations}
    return asked == {name: deprecation.key for name, deprecation in reader.deprecations.items()}


def _recorded_of(evidence: Evidence, release: CalendarRelease) -> ObservedReader | None:
    return next((item for item in evidence.recorded.values() if item.release == release.version), None)


def is_missing(evidence: Evidence, release: CalendarRelease) -> bool:
    """Whether ``--missing`` would observe anything: a release has no current record of a cell, a probe or a deprecation."""
    known = _recorded_of(evidence, release)
    return (
        known is None
        or not _probes_recorded(evidence, known)
        or not _deprecations_recorded(evidence, known)
        or any(is_unread(evidence, release, fixture) for fixture in evidence.corpus.fixtures.values())
    )


def refuse_damage(corpus: Corpus, chosen: list[Fixture], *, record: bool) -> None:
    """Refuse to observe an archive that has changed, or to record anything about a damaged corpus."""
    results = [damage for fixture in chosen if (damage := corpus.damage_of(fixture))]
    if record:
        results.extend(damage for damage in corpus.damage if damage.kind != UNFINISHED)
    if results:
        raise CorpusError(
            results[0].detail,
            where=str(corpus.folder / results[0].subject),
            hint="restore it from version control; `torch-compat judge` lists all damage in the corpus",
            code=results[0].kind,
        )


def observe_release(
    place: Root,
    policy: Policy,
    corpus: Corpus,
    release: CalendarRelease,
    environment: Environment,
    fixtures: list[Fixture],
    progress: ProgressSink = SILENT,
    *,
    options: str | None = None,
    again: bool = False,
    whole: bool = True,
    sample: Sample | None = None,
    workers: tuple[TorchRelease, TorchRelease] | None = None,
    deprecated: bool | None = None,
    trust: Trust = trust_nothing,
) -> ObservedReader:
    """Observe with one release. Observations of the last run with the same key are reused from reports/latest.

    Parameters:
        deprecated: whether to run deprecation probes, too; None to run them only if everything else is observed.
        trust: which fixtures it may be given if it is not isolated.
    """
    warn_unless_isolated(progress.say)
    tasks = plan(policy, corpus, release, fixtures, options)
    if sample is not None:
        everything, tasks = tasks, sampled(tasks, release.name, sample)
        progress.say(f"{release.name}: a sample of {len(tasks)} of {count_of(len(everything), 'cell')}, with seed {sample.seed}")
    cache = inside(place.latest, f"observations/{code_digest()}")  # results from other code are not reused
    earlier = None if again else _last_run(cache, release.version)
    bar = progress.task(f"{release.name}: starting")
    state = Observing(progress=lambda state: bar(state.done, state.total))
    today = dt.datetime.now(dt.UTC).date()
    observed = observe(
        environment,
        tasks,
        corpus.probes if whole else (),
        today=today,
        deprecations=corpus.deprecations if deprecated or (deprecated is None and whole) else (),
        known=earlier,
        state=state,
        workers=workers,
        trust=trust,
    )
    new = state.total // 2
    progress.say(f"{observed.name}: {count_of(new, 'cell')} observed, {len(observed.cells) - new} reused from the last run")
    if whole:
        with changing(place.path):
            write_recorded(inside(cache, observed.name), [observed])
    return observed


def _last_run(cache: Path, version: str) -> ObservedReader | None:
    """The observations of a build of this release in the last run; None if none can be read."""
    for folder in sorted(cache.glob(f"torch-{version}*")):
        for reader in read_recorded(inside(cache, folder.name)).readers.values():
            if reader.release == version:
                return reader
    return None


def _record(place: Root, evidence: Evidence, fresh: ObservedReader, whole: bool, say: Callable[[str], None]) -> ObservedReader:
    """Record the results, keeping records of what was not requested; return all records of this reader."""
    before = evidence.recorded.get(fresh.name)

    def merged(now: ObservedReader | None) -> ObservedReader:
        """Merge the results into the current records: another run may have recorded something in the meantime."""
        if now is None or now.identity != fresh.identity:
            if whole:
                return fresh
            raise UsageError(
                f"the recorded observations are from another build of {fresh.name}, so you cannot replace only some of them",
                where=str(place.recorded),
                hint="record all fixtures: run without --fixture and --options",
            )
        cells = {cell: item for cell, item in now.cells.items() if _is_kept(evidence, before, cell, item, whole=whole)}
        return replace(
            fresh if whole else now,
            observed=fresh.observed,
            cells={**cells, **fresh.cells},
            deprecations=fresh.deprecations if whole else fresh.deprecations or now.deprecations,  # all are run, or none
        )

    with changing(place.path):
        recorded, changed = record(place.recorded, fresh, merged)
    say(_recorded_text(place, count_of(len(fresh.cells), "cell"), changed))
    return recorded.readers[fresh.name]


def _is_kept(
    evidence: Evidence, before: ObservedReader | None, cell: tuple[str, str], observation: Observation, *, whole: bool
) -> bool:
    """Whether a recorded cell outside this run stays: another run recorded it meanwhile, or this run did not cover it."""
    known = None if before is None else before.cells.get(cell)
    if known is None or known.key != observation.key:
        return True
    return not whole and cell[0] in evidence.corpus.fixtures


def record_survey(place: Root, environment: Environment, fresh: ObservedReader, say: Callable[[str], None]) -> None:
    """Record everything that later work needs to know about this release, while its environment exists."""
    result = parse_survey(
        fresh.release, fresh.identity, dt.date.fromisoformat(fresh.observed), survey(environment, place.fixtures)
    )
    with changing(place.path):
        if fresh.release in surveyed_releases(place.fixtures):
            differences = survey_differences(read_survey(place.fixtures, fresh.release), result)
            if not differences:
                return
            for line in differences:
                say(f"survey of {fresh.release}: {line}")
        write_surveys(place.fixtures, [result])
    folders = sorted({Path(file).parent.as_posix() for file, _ in FILES.values()})
    places = " and ".join((place.fixtures / folder).relative_to(place.path).as_posix() for folder in folders)
    say(f"recorded the survey of {fresh.release} in {places}")
