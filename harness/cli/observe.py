"""``torch-compat observe``: a real release reads fixtures; what happened is compared with what was recorded."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from harness.cli._output import Progress, format_option, print_json, stderr, stdout
from harness.cli._readers import built, selected_fixtures
from harness.cli._root import Root, find_root, root_option
from harness.cli.judge import gather
from harness.corpus.observations import write_observations
from harness.corpus.surveys import read_survey, survey_differences, write_survey
from harness.errors import CorpusError, NothingSelected, UsageError
from harness.replay.observe import Observing, code_digest
from harness.replay.observe import observe as run
from harness.replay.plan import plan
from harness.replay.survey import survey
from harness.rules.observations_reproduce import agreement

if TYPE_CHECKING:
    from pathlib import Path

    from harness.corpus.corpus import Corpus, Damage
    from harness.corpus.manifest import Fixture
    from harness.corpus.observations import Observation, ObservedReader
    from harness.policy import Policy, Release
    from harness.readers.environments import Environment
    from harness.rules.evidence import Evidence

__all__ = ["damage_of", "observe", "observe_release"]


@click.command()
@click.option("--reader", required=True, metavar="torch-X.Y.Z", help="The release that reads. Must be built here.")
@click.option(
    "--fixture", "fixtures", multiple=True, metavar="ID", help="Only this fixture (torch-1.5.1/div); may be given again."
)
@click.option("--options", metavar="NAME", help="Only this set of load options of the policy.")
@click.option("--again", is_flag=True, help="Observe everything anew, also what the last run observed.")
@click.option(
    "--record", is_flag=True, help="Rewrite the recorded observations, and the recorded operator sets, with what comes out."
)
@click.option("--show", is_flag=True, help="Print each observation with its first differences.")
@root_option
@format_option
def observe(
    reader: str,
    fixtures: tuple[str, ...],
    options: str | None,
    again: bool,
    record: bool,
    show: bool,
    root: Path | None,
    format_: str,
) -> int:
    """Let one release read fixtures, each twice, and compare with what is recorded.

    Exit status 0 if every outcome is the recorded one, 1 if one is not, 4 if nothing was recorded to compare with.
    """
    place = find_root(root)
    policy = place.policy()
    release = policy.calendar.resolve(reader)
    if options is not None and options not in {entry.id for entry in policy.options}:
        known = ", ".join(entry.id for entry in policy.options)
        raise UsageError(f"the policy has no load options {options!r}", hint=f"it has {known}", code="unknown-options")
    evidence = gather(place, policy, as_of=None)
    chosen = selected_fixtures(evidence.corpus, fixtures)
    _refuse_damage(evidence.corpus, chosen, record=record)
    whole = not fixtures and options is None
    console = stderr()
    with Progress(console) as progress:
        fresh = observe_release(
            place, policy, evidence.corpus, release, built(release), chosen, options, again or record, whole, progress
        )
    if not fresh.cells:
        raise NothingSelected(f"{release.name} has no cell for what was asked", hint="does it have these load options?")
    if record:
        _record(place, evidence.corpus, fresh, whole, built(release), console)
        evidence = gather(place, policy, as_of=None)

    rows = [_row(evidence, fresh.name, cell) for _, cell in sorted(fresh.cells.items())]
    probes = _probe_rows(evidence, fresh)
    if format_ == "json":
        document = {"reader": fresh.name, "identity": fresh.identity, "observed": fresh.observed, "cells": rows, "probes": probes}
        print_json(document)
    else:
        _print(rows, fresh, show)
        _print_probes(probes)
    reproduced = [row["reproduced"] for row in (*rows, *probes)]
    return 1 if False in reproduced else 4 if None in reproduced else 0


def damage_of(corpus: Corpus, fixture: Fixture) -> Damage | None:
    """What is wrong with a fixture's archive. To observe one that is not what it was would put down a wrong fact."""
    subject = corpus.path(fixture).relative_to(corpus.folder).as_posix()
    return next((damage for damage in corpus.damage if damage.subject == subject), None)


def _refuse_damage(corpus: Corpus, chosen: list[Fixture], *, record: bool) -> None:
    """Observe no archive that is not what it was, and record nothing about a corpus that is not whole."""
    found = [damage for fixture in chosen if (damage := damage_of(corpus, fixture))]
    if record:
        found.extend(corpus.damage)
    if found:
        raise CorpusError(
            found[0].detail,
            where=str(corpus.folder / found[0].subject),
            hint="restore it from version control; `torch-compat judge` lists everything that is wrong with the corpus",
            code=found[0].kind,
        )


def observe_release(
    place: Root,
    policy: Policy,
    corpus: Corpus,
    release: Release,
    environment: Environment,
    fixtures: list[Fixture],
    options: str | None,
    again: bool,
    whole: bool,
    progress: Progress,
) -> ObservedReader:
    """Observe with one release. What the last run observed under the same key is taken from reports/latest."""
    tasks = plan(policy, corpus, release, fixtures, options)
    cache = place.latest / "observations" / code_digest()  # what other code made of the same readers is not what this makes
    known, _ = place.observations(cache)
    earlier = None if again else next((reader for reader in known.values() if reader.release == release.version), None)
    bar = progress.task(f"{release.name}: starting")
    state = Observing(progress=lambda state: bar(state.done, state.total))
    today = dt.datetime.now(dt.UTC).date()
    observed = run(environment, tasks, corpus.probes if whole else (), today=today, known=earlier, state=state)
    new = state.total // 2
    progress.say(f"{observed.name}: {new} cells observed, {len(observed.cells) - new} known from the last run")
    if whole:
        write_observations(cache / f"{observed.name}.jsonl", observed)
    return observed


def _record(place: Root, corpus: Corpus, fresh: ObservedReader, whole: bool, environment: Environment, console: Any) -> None:
    recorded, _unreadable = place.observations(place.recorded)
    path = place.recorded / f"{fresh.name}.jsonl"
    old = recorded.get(fresh.name)
    if not whole:
        if old is None or old.identity != fresh.identity:
            raise UsageError(
                f"the recorded observations are not those of this very {fresh.name}: a part of them cannot be replaced",
                where=str(path),
                hint="record all fixtures",
            )
        kept = {cell: one for cell, one in old.cells.items() if cell[0] in corpus.fixtures}
        fresh = replace(old, observed=fresh.observed, cells=kept | fresh.cells)
    elif old is not None and old.identity == fresh.identity and (old.cells, old.probes) == (fresh.cells, fresh.probes):
        fresh = replace(fresh, observed=old.observed)  # the same facts: the same file
    if whole:
        _survey(place, environment, fresh, console)  # first: if it fails, nothing is half recorded
    write_observations(path, fresh)
    console.print(f"recorded {len(fresh.cells)} cells in {path.relative_to(place.path)}", markup=False)


def _survey(place: Root, environment: Environment, fresh: ObservedReader, console: Any) -> None:
    """While the environment stands: everything that later work wants to know of this release."""
    name = f"torch-{fresh.release}.json"
    kept, found = place.fixtures / "operators" / name, place.latest / "operators" / name
    found.parent.mkdir(parents=True, exist_ok=True)
    write_survey(found, fresh.release, fresh.identity, dt.date.fromisoformat(fresh.observed), survey(environment))
    if kept.exists():
        differences = survey_differences(read_survey(kept), read_survey(found))
        if not differences:
            return
        for line in differences:
            console.print(f"{kept.relative_to(place.path)}: {line}", markup=False)
    kept.parent.mkdir(parents=True, exist_ok=True)
    found.replace(kept)
    console.print(f"recorded {kept.relative_to(place.path)}", markup=False)


def _row(evidence: Evidence, reader: str, cell: Observation) -> dict[str, Any]:
    """One cell beside the recorded one, which must be about this very archive, golden and options to count."""
    fixture = evidence.corpus.fixtures[cell.fixture]
    options = next(entry for entry in evidence.policy.options if entry.id == cell.options)
    known = _comparable(evidence, reader)
    recorded = evidence.valid(known, fixture, options)
    verdict, text = agreement(evidence, fixture, recorded, cell) if recorded is not None else (None, "")
    if known is not None and recorded is not None and known.name != reader:
        text = f"recorded by another build, {known.name}" + (f": {text}" if text else "")
    return {
        "fixture": cell.fixture,
        "options": cell.options,
        "outcome": str(evidence.outcome(fixture, cell)),
        "recorded": str(evidence.outcome(fixture, recorded)) if recorded is not None else None,
        "reproduced": None if verdict is None else verdict != "fail",
        "remark": text,
        "signal": cell.signal or None,
        "stage": cell.stage or None,
        "errors": [dict(error) for error in cell.errors],
        "differences": [difference.as_json() for difference in cell.differences],
        "difference_count": cell.count,
    }


def _comparable(evidence: Evidence, name: str) -> ObservedReader | None:
    """The recorded observations of this very reader, else of another build of its release."""
    release = name.removeprefix("torch-").partition("+")[0]
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
            state = "is not recorded" if row["reproduced"] is None else "does not answer as recorded"
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
    remarks = sum(bool(row["remark"]) and row["reproduced"] is True for row in rows)
    text = f"{agree} as recorded"
    text += f" ({remarks} of them with a remark; --show prints it)" if remarks else ""
    text += f", {contradict} not as recorded" if contradict else ""
    text += f", {missing} not recorded" if missing else ""
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
    for difference in row["differences"]:
        facts = {key: value for key, value in difference.items() if key not in {"kind", "where", "dtype", "frontier"}}
        dtype = f" ({difference['dtype']})" if "dtype" in difference else ""
        shown = ", ".join(f"{key} {json.dumps(value)}" for key, value in facts.items())
        console.print(f"  {difference['where']}: {difference['kind']}{dtype}" + (f": {shown}" if shown else ""), markup=False)
    more = row["difference_count"] - len(row["differences"])
    if more > 0:
        console.print(f"  and {more} more", markup=False)
