"""``torch-compat observe --deprecations``: real releases use deprecated things, and what happens stands beside what is recorded."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from torch_compat.cli._output import Progress, exit_status, print_json, stderr, stdout
from torch_compat.cli._readers import built, warn_unless_isolated
from torch_compat.corpus.recorded import record
from torch_compat.errors import CorpusError, NothingSelected, UsageError
from torch_compat.readers.isolation import isolation
from torch_compat.replay.observe import observe
from torch_compat.writes import changing

if TYPE_CHECKING:
    from pathlib import Path

    from torch_compat.corpus.observations import ObservedReader
    from torch_compat.judging.evidence import Evidence
    from torch_compat.policy import CalendarRelease
    from torch_compat.workspace import Root

__all__ = ["deprecation_rows", "observe_deprecations", "print_deprecations", "print_recorded"]

SHOWN_FILES = 3  # of those that recording changed: a release changes one, another build of an old one many


def observe_deprecations(
    place: Root, evidence: Evidence, releases: list[CalendarRelease], *, record: bool, show: bool, format_: str
) -> int:
    """Let releases use the deprecated things of all probes, each twice; the exit status.

    Raises:
        NothingSelected: the corpus has no such probe, or no release was given.
        UsageError: there is nothing recorded of this very reader that lines could be added to.
    """
    corpus = evidence.corpus
    if not corpus.deprecations or not releases:
        raise NothingSelected("there are no probes of deprecated features to run", where=str(place.fixtures / "deprecations"))
    if record and corpus.damage:
        found = corpus.damage[0]
        raise CorpusError(found.detail, where=str(corpus.folder / found.subject), code=found.kind)
    statuses = []
    for release in releases:
        with Progress(stderr()) as progress:
            progress.task(f"{release.name}: deprecations")
            warn_unless_isolated()
            today = dt.datetime.now(dt.UTC).date()
            fresh = observe(built(release), [], (), today=today, deprecations=corpus.deprecations)
        if record:
            evidence = _record(place, evidence, fresh)
        rows = deprecation_rows(evidence, fresh)
        if format_ == "json":
            print_json(
                {
                    "reader": fresh.name,
                    "identity": fresh.identity,
                    "observed": fresh.observed,
                    "isolation": isolation().as_json(),
                    "cells": [],
                    "probes": [],
                    "deprecations": rows,
                }
            )
        else:
            if show:
                _show(fresh)
            print_deprecations(rows, fresh.name)
        reproduced = [row["reproduced"] for row in rows]
        statuses.append(1 if False in reproduced else 4 if None in reproduced else 0)
    return exit_status(statuses)


def _record(place: Root, evidence: Evidence, fresh: ObservedReader) -> Evidence:
    """Put what came out beside everything else that is recorded of this reader; the evidence with it."""

    def merged(now: ObservedReader | None) -> ObservedReader:
        if now is None or now.identity != fresh.identity:
            raise UsageError(
                f"the recorded observations are from another build of {fresh.name}, so a part of them cannot be replaced",
                where=str(place.recorded),
                hint="record all fixtures: run without --deprecations",
            )
        return replace(now, observed=fresh.observed, deprecations=fresh.deprecations)

    with changing(place.path):
        recorded, changed = record(place.recorded, fresh, merged)
    print_recorded(place, f"{len(fresh.deprecations)} deprecations", changed, stderr())
    return replace(evidence, recorded=recorded.readers)


def print_recorded(place: Root, what: str, changed: list[Path], console: Any) -> None:
    """Say what was recorded, and which files of the tree are no longer what they were."""
    names = ", ".join(path.relative_to(place.path).as_posix() for path in changed[:SHOWN_FILES])
    more = f" and {len(changed) - SHOWN_FILES} more" if len(changed) > SHOWN_FILES else ""
    console.print(
        f"recorded {what} in {names}{more}" if changed else f"{what} are already recorded: no file changed", markup=False
    )


def deprecation_rows(evidence: Evidence, fresh: ObservedReader) -> list[dict[str, Any]]:
    """Each deprecation beside the recorded answer to the same text of its probe; ``reproduced`` is None where there is none."""
    known = evidence.recorded.get(fresh.name) or next(
        (reader for reader in evidence.recorded.values() if reader.release == fresh.release), None
    )
    rows: list[dict[str, Any]] = []
    for name, one in sorted(fresh.deprecations.items()):
        recorded = known.deprecations.get(name) if known is not None else None
        if recorded is not None and known is not None and known.name == fresh.name and recorded.key != one.key:
            recorded = None
        same = None if recorded is None else replace(recorded, key=one.key) == one
        rows.append({"probe": name, "reproduced": same})
    return rows


def print_deprecations(rows: list[dict[str, Any]], reader: str) -> None:
    """One line for each that is not as recorded, and one for all of them; nothing where none was asked."""
    for row in rows:
        if row["reproduced"] is not True:
            state = "is not recorded" if row["reproduced"] is None else "differs from the record"
            stdout().print(f"deprecation {row['probe']} {state}", markup=False)
    if rows:
        agree = sum(row["reproduced"] is True for row in rows)
        stdout().print(f"{reader}: {agree} of {len(rows)} deprecations as recorded", markup=False)


def _show(fresh: ObservedReader) -> None:
    """Everything that a reader said of each deprecation."""
    console = stdout()
    for name, one in sorted(fresh.deprecations.items()):
        console.print(f"{name} in {fresh.name}", markup=False, style="bold")
        for way, use in (("deprecated", one.deprecated), ("alternative", one.alternative)):
            behaves = f", behaves as {use.behaves}" if use.behaves else ""
            error = f": {use.error['type']}: {use.error['message']}" if use.error else ""
            console.print(f"  {way}: {use.outcome}{behaves}{error}", markup=False, soft_wrap=True)
            for category, text in use.warnings:
                console.print(f"    {category}: {text}", markup=False, soft_wrap=True)
            if use.said:
                console.print(f"    said: {use.said}", markup=False, soft_wrap=True)
        if one.docs is None:
            console.print("  no documentation", markup=False)
        for sentence in one.docs or ():
            console.print(f"  documentation: {sentence}", markup=False, soft_wrap=True)
