"""Compare a reader's observations with the recorded ones: a row for each cell, probe and deprecation, with whether it was reproduced."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from torch_compat.errors import NothingSelected
from torch_compat.judging.agreement import agreement
from torch_compat.judging.judgement import Verdict
from torch_compat.readers.reference import NAME
from torch_compat.releases.release import public
from torch_compat.rules.reference_agrees import agreement as agreement_of_reference

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch_compat.corpus.manifest import Fixture
    from torch_compat.corpus.observations import Observation, ObservedReader
    from torch_compat.judging.evidence import Evidence
    from torch_compat.policy import CalendarRelease

__all__ = ["compared_rows", "deprecation_rows", "recorded_reader", "rows_status"]

Row = dict[str, Any]


def compared_rows(evidence: Evidence, fresh: ObservedReader) -> tuple[list[Row], list[Row], list[Row]]:
    """Every cell, probe and deprecation of a reader next to its record."""
    cells = [_row(evidence, fresh.name, cell) for _, cell in sorted(fresh.cells.items())]
    return cells, _probe_rows(evidence, fresh), deprecation_rows(evidence, fresh)


def rows_status(rows: Iterable[Row]) -> int:
    """The exit status of rows: 1 if one was not reproduced, 4 if one has no record to compare with, else 0."""
    reproduced = {row["reproduced"] for row in rows}
    return 1 if False in reproduced else 4 if None in reproduced else 0


def recorded_reader(evidence: Evidence, release: CalendarRelease, chosen: list[Fixture], options: str | None) -> ObservedReader:
    """The records of one release about the chosen fixtures in their current form.

    Raises:
        NothingSelected: there are none.
    """
    results = {fixture.id for fixture in chosen}
    sets = {entry.id: entry for entry in evidence.policy.options if options in {None, entry.id}}
    for reader in evidence.recorded.values():
        cells = {
            (fixture, option): cell
            for (fixture, option), cell in reader.cells.items()
            if reader.release == release.version
            and fixture in results
            and option in sets
            and evidence.valid(reader, evidence.corpus.fixtures[fixture], sets[option]) is not None
        }
        if cells:  # the first of several builds of a release, so that a command prints one document
            return replace(reader, cells=cells, probes={}, deprecations={})
    raise NothingSelected(
        f"there is no up-to-date recorded observation by {release.name} in this selection",
        hint="run the same command without --recorded",
    )


def _row(evidence: Evidence, reader: str, cell: Observation) -> dict[str, Any]:
    """One cell next to its record, which counts only if it has the same archive, golden and options."""
    fixture = evidence.corpus.fixtures[cell.fixture]
    return {
        "fixture": cell.fixture,
        "options": cell.options,
        "outcome": str(evidence.outcome(fixture, cell, others=evidence.wordings.others(fixture, cell, public(reader)))),
        **(_beside_writer(evidence, cell) if reader == NAME else _beside_recorded(evidence, reader, cell)),
        "signal": cell.signal or None,
        "stage": cell.stage or None,
        "errors": [dict(error) for error in cell.errors],
        "differences": [difference.as_json() for difference in cell.differences],
        "difference_count": cell.count,
    }


def _beside_writer(evidence: Evidence, cell: Observation) -> dict[str, Any]:
    """Compare a cell of the reference reader with the writer's own recorded read-back."""
    fixture = evidence.corpus.fixtures[cell.fixture]
    options = next(entry for entry in evidence.policy.options if entry.id == cell.options)
    own = next(
        (
            result
            for reader in evidence.recorded.values()
            if reader.release == fixture.release and (result := evidence.valid(reader, fixture, options)) is not None
        ),
        None,
    )
    reproduced, text = None, ""
    if own is not None:
        verdict, _, text = agreement_of_reference(evidence, fixture, own, cell)
        reproduced = None if verdict is Verdict.NOT_CHECKED else verdict is not Verdict.FAIL
    return {
        "recorded": str(evidence.outcome(fixture, own)) if own is not None else None,
        "reproduced": reproduced,
        "remark": text,
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
    """The recorded observations of this exact reader, or else of another build of its release."""
    release = public(name)
    return evidence.recorded.get(name) or next((known for known in evidence.recorded.values() if known.release == release), None)


def _probe_rows(evidence: Evidence, fresh: ObservedReader) -> list[dict[str, Any]]:
    """Each probe next to the recorded result of the same probe text; ``reproduced`` is None if there is none."""
    known = _comparable(evidence, fresh.name)
    rows = []
    for name, probe in sorted(fresh.probes.items()):
        recorded = known.probes.get(name) if known is not None else None
        if recorded is not None and known is not None and known.name == fresh.name and recorded.key != probe.key:
            recorded = None
        same = recorded is None or (recorded.checks, recorded.error) == (probe.checks, probe.error)
        rows.append({"probe": name, "reproduced": same if recorded is not None else None})
    return rows


def deprecation_rows(evidence: Evidence, fresh: ObservedReader) -> list[dict[str, Any]]:
    """Each deprecation next to the recorded result of the same probe text; ``reproduced`` is None if there is none."""
    known = evidence.recorded.get(fresh.name) or next(
        (reader for reader in evidence.recorded.values() if reader.release == fresh.release), None
    )
    rows: list[dict[str, Any]] = []
    for name, item in sorted(fresh.deprecations.items()):
        recorded = known.deprecations.get(name) if known is not None else None
        if recorded is not None and known is not None and known.name == fresh.name and recorded.key != item.key:
            recorded = None
        same = None if recorded is None else replace(recorded, key=item.key) == item
        rows.append({"probe": name, "reproduced": same})
    return rows
