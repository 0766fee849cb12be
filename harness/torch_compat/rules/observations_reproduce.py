"""Observations are reproducible.

What: the two observations of every cell agree, neither contradicts itself, and a new observation agrees with the recorded one.
Floating-point results may differ between machines within the policy's tolerance, and a release that corrupts its memory may crash
or raise: both are reported as expected, not as failures.

Why: evidence that cannot be reproduced is not evidence.

Example: a release returns uninitialized memory; two processes return two different values.

Reference: this project.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from torch_compat.judging.agreement import agreement
from torch_compat.judging.judgement import Asks, Cause, Judgement, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.corpus.manifest import Fixture
    from torch_compat.corpus.observations import Observation, ObservedReader
    from torch_compat.judging.cell import Cells
    from torch_compat.judging.evidence import Evidence
    from torch_compat.judging.readers import Reader
    from torch_compat.policy import RuleEntry

__all__ = ["judge"]

ASKS: Final = Asks.BOOKKEEPING


def judge(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Judge every observed cell, and compare every fresh one with the recorded one of the same reader."""
    odd: list[tuple[Cells, Reader]] = []
    for cells in evidence.cells:
        if cells.observation.result == "unstable":
            text = f"{cells.fixture.recipe}: two observations of one cell disagree"
            yield Judgement(rule.id, Verdict.FAIL, cells.subject, Cause("unstable", cells.fixture.recipe, text), cells)
        elif _like_its_golden(cells.fixture, cells.observation):
            yield Judgement(rule.id, Verdict.PASS, cells.subject, None, cells)
        else:
            odd.extend((cells, reader) for reader in evidence.readers.of(cells.readers))
    for cells, reader in sorted(odd, key=lambda cell: (cell[0].fixture.id, cell[1].name)):
        subject = cells.read_by(reader)
        text = f"{subject}: is recorded as equal to the golden, but had a different outcome"
        cause = Cause("contradicts itself", cells.fixture.recipe, text)
        yield Judgement(rule.id, Verdict.FAIL, subject, cause, reader=reader.release)
    for name, fresh in sorted(evidence.fresh.items()):
        recorded = evidence.recorded.get(name)
        if recorded is not None:
            yield from _against_recorded(evidence, rule, fresh, recorded)


def _like_its_golden(fixture: Fixture, observation: Observation) -> bool:
    """Whether a cell with the result ``same`` ended like its golden: with a value, an error, a crash or a time-out."""
    if observation.result != "same":
        return True
    died = (bool(observation.signal), bool(observation.stage))
    if "crashed" in fixture.golden:
        return died == (True, True)
    if "timed-out" in fixture.golden:
        return died == (False, True)
    return died == (False, False)


def _against_recorded(
    evidence: Evidence, rule: RuleEntry, fresh: ObservedReader, recorded: ObservedReader
) -> Iterator[Judgement]:
    options = {entry.id: entry for entry in evidence.policy.options}
    for (fixture_id, options_id), now in sorted(fresh.cells.items()):
        fixture = evidence.corpus.fixtures.get(fixture_id)
        if fixture is None or options_id not in options:
            continue
        before = evidence.valid(recorded, fixture, options[options_id])
        if before is None:
            continue  # pairs-observed reports missing and stale observations
        subject = f"{fixture_id} read again by {fresh.name}" + ("" if options_id == "default" else f" ({options_id})")
        verdict, text = agreement(evidence, fixture, before, now)
        cause = Cause("contradiction" if verdict is Verdict.FAIL else "bits", fixture.recipe, text) if text else None
        yield Judgement(rule.id, verdict, subject, cause, reader=fresh.release)
    yield from _deprecations_against_recorded(rule, fresh, recorded)
    for name, probe in sorted(fresh.probes.items()):
        recorded_probe = recorded.probes.get(name)
        if recorded_probe is None or recorded_probe.key != probe.key:
            continue  # another probe, or another reader: reported by probes-hold
        subject = f"{name}, run again in {fresh.name}"
        changed = sorted(set(probe.checks) ^ set(recorded_probe.checks), key=str)
        if probe == recorded_probe:
            yield Judgement(rule.id, Verdict.PASS, subject, reader=fresh.release)
        else:
            text = f"{name}: {changed[0][0] if changed else 'its error'} differs from the record"
            yield Judgement(rule.id, Verdict.FAIL, subject, Cause("contradiction", name, text), reader=fresh.release)


def _deprecations_against_recorded(rule: RuleEntry, fresh: ObservedReader, recorded: ObservedReader) -> Iterator[Judgement]:
    """Compare fresh answers of deprecation probes with the recorded answers of the same probes."""
    for name, now in sorted(fresh.deprecations.items()):
        before = recorded.deprecations.get(name)
        if before is None or before.key != now.key:
            continue  # another probe, or another reader: reported by deprecations-observed
        subject = f"{name} used again in {fresh.name}"
        changed = [part for part in ("deprecated", "alternative", "docs") if getattr(before, part) != getattr(now, part)]
        if not changed:
            yield Judgement(rule.id, Verdict.PASS, subject, reader=fresh.release)
        else:
            text = f"{name}: the observed {' and '.join(changed)} {'differs' if len(changed) == 1 else 'differ'} from the record"
            yield Judgement(rule.id, Verdict.FAIL, subject, Cause("contradiction", name, text), reader=fresh.release)
