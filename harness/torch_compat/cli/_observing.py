"""Observing with one release: what is asked of it, what is recorded, and how it stands beside what was recorded."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch_compat.cli._observe_deprecations import deprecation_rows, print_deprecations, print_recorded
from torch_compat.cli._output import Progress, print_json, stderr, stdout
from torch_compat.cli._readers import built, warn_unless_isolated
from torch_compat.cli._reference import NAME, reference_row
from torch_compat.corpus.manifest import SYNTHETIC, release_folder
from torch_compat.corpus.recorded import read_recorded, record, write_recorded
from torch_compat.corpus.surveys import FILES, parse_survey, read_survey, survey_differences, surveyed_releases, write_surveys
from torch_compat.errors import CorpusError, NothingSelected, UsageError
from torch_compat.judging.agreement import agreement
from torch_compat.places import inside
from torch_compat.readers.isolation import isolation, trust_nothing
from torch_compat.releases.release import public
from torch_compat.replay.observe import Observing, code_digest
from torch_compat.replay.observe import observe as run
from torch_compat.replay.plan import Sample, plan, probe_key, sampled
from torch_compat.replay.survey import survey
from torch_compat.rules.fixtures_frozen import UNFINISHED
from torch_compat.writes import changing

if TYPE_CHECKING:
    from torch_compat.corpus.corpus import Corpus, CorpusDamage
    from torch_compat.corpus.manifest import Fixture
    from torch_compat.corpus.observations import Observation, ObservedReader
    from torch_compat.judging.evidence import Evidence
    from torch_compat.policy import CalendarRelease, Policy
    from torch_compat.readers.environments import Environment
    from torch_compat.readers.isolation import Isolation, Trust
    from torch_compat.readers.torch_release import TorchRelease
    from torch_compat.workspace import Root

__all__ = [
    "Asked",
    "damage_of",
    "is_missing",
    "observe_reader",
    "observe_release",
    "print_all",
    "record_survey",
    "refuse_damage",
    "show_recorded",
]


@dataclass(frozen=True)
class Asked:
    """What was asked of each reader."""

    fixtures: list[Fixture]
    options: str | None
    sample: Sample | None
    missing: bool
    again: bool
    record: bool
    survey: bool
    show: bool
    whole: bool
    format_: str
    trust: Trust


def observe_reader(
    place: Root,
    evidence: Evidence,
    release: CalendarRelease,
    asked: Asked,
    workers: tuple[TorchRelease, TorchRelease] | None = None,
) -> tuple[int, Evidence]:
    """Let one release read and print what came of it; the exit status, and the evidence with what was recorded."""
    chosen, whole = asked.fixtures, asked.whole
    deprecated = whole
    if asked.missing:
        known = _recorded_of(evidence, release)
        if known is not None and _probes_recorded(evidence, known):
            chosen = [fixture for fixture in chosen if _unrecorded(evidence, release, fixture)]
            whole = len(chosen) == len(evidence.corpus.fixtures)
            deprecated = whole or not _deprecations_recorded(evidence, known)
            if not chosen and not deprecated:
                _say_nothing_is_missing(known, asked.format_)
                return 0, evidence
    refuse_damage(evidence.corpus, chosen, record=asked.record)
    console = stderr()
    again = asked.again or asked.record
    with Progress(console) as progress:
        fresh = observe_release(
            place,
            evidence.policy,
            evidence.corpus,
            release,
            built(release),
            chosen,
            asked.options,
            again,
            whole,
            progress,
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
            record_survey(place, built(release), fresh, console)  # first: if it fails, nothing is half recorded
        recorded = _record(place, evidence, fresh, whole, console)
        evidence = replace(evidence, recorded={**evidence.recorded, recorded.name: recorded})
    return print_all(evidence, fresh, asked.show, asked.format_, isolation()), evidence


def show_recorded(evidence: Evidence, release: CalendarRelease, chosen: list[Fixture], options: str | None, format_: str) -> int:
    """Print what is recorded of one release about the chosen fixtures as they are, without running anything."""
    found = {fixture.id for fixture in chosen}
    sets = {entry.id: entry for entry in evidence.policy.options if options in {None, entry.id}}
    for reader in evidence.recorded.values():
        cells = {
            (fixture, option): cell
            for (fixture, option), cell in reader.cells.items()
            if reader.release == release.version
            and fixture in found
            and option in sets
            and evidence.valid(reader, evidence.corpus.fixtures[fixture], sets[option]) is not None
        }
        if cells:  # of several builds of a release the first, so that JSON stays one document
            return print_all(evidence, replace(reader, cells=cells, probes={}, deprecations={}), True, format_)
    raise NothingSelected(
        f"there is no up-to-date recorded observation by {release.name} in this selection",
        hint="run the same command without --recorded",
    )


def print_all(evidence: Evidence, fresh: ObservedReader, show: bool, format_: str, fence: Isolation | None = None) -> int:
    """Print what a reader did beside what is recorded, and give the exit status; ``fence`` is that of a release that was asked."""
    rows = [_row(evidence, fresh.name, cell) for _, cell in sorted(fresh.cells.items())]
    probes, deprecations = _probe_rows(evidence, fresh), deprecation_rows(evidence, fresh)
    if format_ == "json":
        _print_document(fresh, rows, probes, deprecations, fence)
    else:
        if rows:
            _print(rows, fresh, show)
        _print_probes(probes)
        print_deprecations(deprecations, fresh.name)
    reproduced = [row["reproduced"] for row in (*rows, *probes, *deprecations)]
    return 1 if False in reproduced else 4 if None in reproduced else 0


def _print_document(
    reader: ObservedReader,
    cells: list[dict[str, Any]],
    probes: list[dict[str, Any]],
    deprecations: list[dict[str, Any]],
    fence: Isolation | None,
) -> None:
    print_json(
        {
            "reader": reader.name,
            "identity": reader.identity,
            "observed": reader.observed,
            "isolation": None if fence is None else fence.as_json(),
            "cells": cells,
            "probes": probes,
            "deprecations": deprecations,
        }
    )


def _unrecorded(evidence: Evidence, release: CalendarRelease, fixture: Fixture) -> bool:
    """Whether no recorded observation of a release is about this fixture as it is, under some of its load options."""
    readers = [reader for reader in evidence.recorded.values() if reader.release == release.version]
    return any(
        all(evidence.valid(reader, fixture, options) is None for reader in readers)
        for options in evidence.policy.option_sets(fixture.family, release)  # type: ignore[arg-type]
    )


def _probes_recorded(evidence: Evidence, reader: ObservedReader) -> bool:
    """Whether every probe, as it is now, was asked: probes are only asked together with everything else."""
    return all(
        probe.name in reader.probes and reader.probes[probe.name].key == probe_key(probe, reader.identity_digest)
        for probe in evidence.corpus.probes
    )


def _deprecations_recorded(evidence: Evidence, reader: ObservedReader) -> bool:
    """Whether every deprecated thing was used by its probe as it is now, and nothing is recorded of others."""
    asked = {probe.name: probe_key(probe, reader.identity_digest) for probe in evidence.corpus.deprecations}
    return asked == {name: one.key for name, one in reader.deprecations.items()}


def _recorded_of(evidence: Evidence, release: CalendarRelease) -> ObservedReader | None:
    return next((one for one in evidence.recorded.values() if one.release == release.version), None)


def is_missing(evidence: Evidence, release: CalendarRelease) -> bool:
    """Whether ``--missing`` would observe anything: a cell, a probe or a deprecation is not recorded of a release as it is now."""
    known = _recorded_of(evidence, release)
    return (
        known is None
        or not _probes_recorded(evidence, known)
        or not _deprecations_recorded(evidence, known)
        or any(_unrecorded(evidence, release, fixture) for fixture in evidence.corpus.fixtures.values())
    )


def _say_nothing_is_missing(reader: ObservedReader, format_: str) -> None:
    if format_ == "json":
        _print_document(reader, [], [], [], None)
    else:
        stdout().print(f"{reader.name}: nothing is missing", markup=False)


def damage_of(corpus: Corpus, fixture: Fixture) -> CorpusDamage | None:
    """What is wrong with a fixture's archive. To observe one that is not what it was would put down a wrong fact."""
    subject = f"{release_folder(fixture.release)}/{fixture.file}"
    return next((damage for damage in corpus.damage if damage.subject == subject), None)


def refuse_damage(corpus: Corpus, chosen: list[Fixture], *, record: bool) -> None:
    """Observe no archive that is not what it was, and record nothing about a corpus that is not whole."""
    found = [damage for fixture in chosen if (damage := damage_of(corpus, fixture))]
    if record:
        found.extend(damage for damage in corpus.damage if damage.kind != UNFINISHED)
    if found:
        raise CorpusError(
            found[0].detail,
            where=str(corpus.folder / found[0].subject),
            hint="restore it from version control; `torch-compat judge` lists all damage in the corpus",
            code=found[0].kind,
        )


def observe_release(
    place: Root,
    policy: Policy,
    corpus: Corpus,
    release: CalendarRelease,
    environment: Environment,
    fixtures: list[Fixture],
    options: str | None,
    again: bool,
    whole: bool,
    progress: Progress,
    *,
    sample: Sample | None = None,
    workers: tuple[TorchRelease, TorchRelease] | None = None,
    deprecated: bool | None = None,
    trust: Trust = trust_nothing,
) -> ObservedReader:
    """Observe with one release. What the last run observed under the same key is taken from reports/latest.

    Parameters:
        deprecated: whether deprecated things are used, too; None where that depends on whether everything else is observed.
        trust: which fixtures it may be given where it is not isolated.
    """
    warn_unless_isolated()
    tasks = plan(policy, corpus, release, fixtures, options)
    if sample is not None:
        everything, tasks = tasks, sampled(tasks, release.name, sample)
        progress.say(f"{release.name}: a sample of {len(tasks)} of {len(everything)} cells, with seed {sample.seed}")
    cache = inside(
        place.latest, f"observations/{code_digest()}"
    )  # what other code made of the same readers is not what this makes
    earlier = None if again else _last_run(cache, release.version)
    bar = progress.task(f"{release.name}: starting")
    state = Observing(progress=lambda state: bar(state.done, state.total))
    today = dt.datetime.now(dt.UTC).date()
    observed = run(
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
    progress.say(f"{observed.name}: {new} cells observed, {len(observed.cells) - new} reused from the last run")
    if whole:
        with changing(place.path):
            write_recorded(inside(cache, observed.name), [observed])
    return observed


def _last_run(cache: Path, version: str) -> ObservedReader | None:
    """What a build of this release did in the last run; None where there is nothing of it that can be read."""
    for folder in sorted(cache.glob(f"torch-{version}*")):
        for reader in read_recorded(inside(cache, folder.name)).readers.values():
            if reader.release == version:
                return reader
    return None


def _record(place: Root, evidence: Evidence, fresh: ObservedReader, whole: bool, console: Any) -> ObservedReader:
    """Write down what came out, beside what is recorded and was not asked for; all that is recorded of this reader then."""
    before = evidence.recorded.get(fresh.name)

    def merged(now: ObservedReader | None) -> ObservedReader:
        """What came out, beside what is recorded now: another run may have recorded something while this one observed."""
        if now is None or now.identity != fresh.identity:
            if whole:
                return fresh
            raise UsageError(
                f"the recorded observations are from another build of {fresh.name}, so a part of them cannot be replaced",
                where=str(place.recorded),
                hint="record all fixtures: run without --fixture and --options",
            )
        cells = {cell: one for cell, one in now.cells.items() if _is_kept(evidence, before, cell, one, whole=whole)}
        return replace(
            fresh if whole else now,
            observed=fresh.observed,
            cells={**cells, **fresh.cells},
            deprecations=fresh.deprecations if whole else fresh.deprecations or now.deprecations,  # all are asked, or none
        )

    with changing(place.path):
        recorded, changed = record(place.recorded, fresh, merged)
    print_recorded(place, f"{len(fresh.cells)} cells", changed, console)
    return recorded.readers[fresh.name]


def _is_kept(evidence: Evidence, before: ObservedReader | None, cell: tuple[str, str], one: Observation, *, whole: bool) -> bool:
    """Whether a recorded cell that this run did not ask for stays: another run has recorded it meanwhile, or it was not this one's matter."""
    known = None if before is None else before.cells.get(cell)
    if known is None or known.key != one.key:
        return True
    return not whole and cell[0] in evidence.corpus.fixtures


def record_survey(place: Root, environment: Environment, fresh: ObservedReader, console: Any) -> None:
    """While the environment stands: everything that later work wants to know of this release."""
    found = parse_survey(
        fresh.release, fresh.identity, dt.date.fromisoformat(fresh.observed), survey(environment, place.fixtures)
    )
    with changing(place.path):
        if fresh.release in surveyed_releases(place.fixtures):
            differences = survey_differences(read_survey(place.fixtures, fresh.release), found)
            if not differences:
                return
            for line in differences:
                console.print(f"survey of {fresh.release}: {line}", markup=False)
        write_surveys(place.fixtures, [found])
    folders = sorted({Path(file).parent.as_posix() for file, _ in FILES.values()})
    places = " and ".join((place.fixtures / folder).relative_to(place.path).as_posix() for folder in folders)
    console.print(f"recorded the survey of {fresh.release} in {places}", markup=False)


def _row(evidence: Evidence, reader: str, cell: Observation) -> dict[str, Any]:
    """One cell beside the recorded one, which must be about this very archive, golden and options to count."""
    fixture = evidence.corpus.fixtures[cell.fixture]
    return {
        "fixture": cell.fixture,
        "options": cell.options,
        "outcome": str(evidence.outcome(fixture, cell, others=evidence.wordings.others(fixture, cell, public(reader)))),
        **(reference_row(evidence, cell) if reader == NAME else _beside_recorded(evidence, reader, cell)),
        "signal": cell.signal or None,
        "stage": cell.stage or None,
        "errors": [dict(error) for error in cell.errors],
        "differences": [difference.as_json() for difference in cell.differences],
        "difference_count": cell.count,
    }


def _beside_recorded(evidence: Evidence, reader: str, cell: Observation) -> dict[str, Any]:
    fixture = evidence.corpus.fixtures[cell.fixture]
    options = next(entry for entry in evidence.policy.options if entry.id == cell.options)
    known = _comparable(evidence, reader)
    recorded = evidence.valid(known, fixture, options)
    verdict, text = agreement(evidence, fixture, recorded, cell) if recorded is not None else (None, "")
    if known is not None and recorded is not None and known.name != reader:
        text = f"recorded with another build, {known.name}" + (f": {text}" if text else "")
    return {
        "recorded": None
        if recorded is None
        else str(evidence.outcome(fixture, recorded, others=evidence.wordings.others(fixture, recorded, public(reader)))),
        "reproduced": None if verdict is None else verdict != "fail",
        "remark": text,
    }


def _comparable(evidence: Evidence, name: str) -> ObservedReader | None:
    """The recorded observations of this very reader, else of another build of its release."""
    release = public(name)
    return evidence.recorded.get(name) or next((known for known in evidence.recorded.values() if known.release == release), None)


def _probe_rows(evidence: Evidence, fresh: ObservedReader) -> list[dict[str, Any]]:
    """Each probe beside the recorded answer to the same text of it; ``reproduced`` is None where there is none."""
    known = _comparable(evidence, fresh.name)
    rows = []
    for name, probe in sorted(fresh.probes.items()):
        recorded = known.probes.get(name) if known is not None else None
        if recorded is not None and known is not None and known.name == fresh.name and recorded.key != probe.key:
            recorded = None
        same = recorded is None or (recorded.checks, recorded.error) == (probe.checks, probe.error)
        rows.append({"probe": name, "reproduced": same if recorded is not None else None})
    return rows


def _print_probes(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        if row["reproduced"] is not True:
            state = "is not recorded" if row["reproduced"] is None else "differs from the record"
            stdout().print(f"probe {row['probe']} {state}", markup=False)


def _print(rows: list[dict[str, Any]], fresh: ObservedReader, show: bool) -> None:

    console = stdout()
    for row in rows:
        if show or row["reproduced"] is False:
            _print_row(console, row, fresh.name)
    outcomes = Counter(row["outcome"] for row in rows)
    console.print(
        f"{fresh.name}: " + ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items())), markup=False
    )
    agree = sum(row["reproduced"] is True for row in rows)
    contradict = sum(row["reproduced"] is False for row in rows)
    missing = sum(row["recorded"] is None for row in rows)
    unknown = sum(row["reproduced"] is None for row in rows) - missing
    remarks = sum(bool(row["remark"]) and row["reproduced"] is True for row in rows)
    text = f"{agree} as recorded"
    text += f" ({remarks} with a remark, see --show)" if remarks else ""
    text += f", {contradict} different from the record" if contradict else ""
    text += f", {missing} not recorded" if missing else ""
    text += f", {unknown} not checked, because the reference reader does not support them" if unknown else ""
    console.print(text, markup=False)


def _print_row(console: Any, row: dict[str, Any], reader: str) -> None:
    options = "" if row["options"] == "default" else f" ({row['options']})"
    ending = f", {row['signal']} while {'loading' if row['stage'] == 'load' else 'running'}" if row["signal"] else ""
    console.print(f"{row['fixture']} read by {reader}{options}: {row['outcome']}{ending}", markup=False, style="bold")
    if row["remark"]:
        console.print(f"  {row['remark']}", markup=False)
    for error in row["errors"]:
        lines = error["message"].splitlines() or [""]
        console.print(f"  {error['type']}: {lines[0]}", markup=False)
        for line in lines[1:12]:
            console.print(f"    {line}", markup=False)
    wrote, reads = (f"torch {name.removeprefix('torch-').partition('/')[0]}" for name in (row["fixture"], reader))
    if reader == NAME:
        reads = "the reference reader"
    for difference in row["differences"]:
        facts = {key: value for key, value in difference.items() if key not in {"kind", "where", "dtype", "frontier"}}
        dtype = f" ({difference['dtype']})" if "dtype" in difference else ""
        parts = []
        if "expected" in facts and "got" in facts:
            wrote_it = "the format's rules say" if row["fixture"].startswith(f"{SYNTHETIC}/") else f"{wrote} wrote"
            parts = [f"{wrote_it} {json.dumps(facts.pop('expected'))}; {reads} computes {json.dumps(facts.pop('got'))}"]
        parts += [f"{key} {json.dumps(value)}" for key, value in facts.items()]
        shown = ", ".join(parts)
        line = f"  {difference['where']}: {difference['kind']}{dtype}" + (f": {shown}" if shown else "")
        console.print(line, markup=False, soft_wrap=True)
    more = row["difference_count"] - len(row["differences"])
    if more > 0:
        console.print(f"  and {more} more", markup=False)
