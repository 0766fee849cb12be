"""Every pair that the policy asks for was observed.

What: every fixture, under every set of load options that a reader has, was observed with every reader of the policy, as
the archive, its golden and the options are now. Recorded observations count; files of them that cannot be read fail, and
so do observations of what is no longer there. What was not observed is named with the session that observes it: that of the
writer, where nothing that it wrote was observed, since that session lets every reader read a new writer's fixtures. A release
is asked for from its day in the calendar on.

Why: the common failure of compatibility tests is not a wrong check, but one that silently did not run.

Example: a fixture is added, and nobody observes it with the releases that are not built on the author's machine.

Reference: this project.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch_compat.rules.judgement import Cause, Judgement, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.corpus.manifest import Fixture
    from torch_compat.policy import OptionSet, RuleEntry
    from torch_compat.rules.evidence import Evidence

__all__ = ["judge"]


def judge(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Judge every pair of the policy's readers and the corpus's fixtures."""
    for name, why in sorted(evidence.unreadable.items()):
        yield Judgement(rule.id, Verdict.FAIL, name, Cause("unreadable", name, why))
    for name, why in sorted(evidence.unavailable.items()):
        yield Judgement(rule.id, Verdict.NOT_CHECKED, name, Cause("unavailable", name, f"{name} was asked for: {why}"))
    policy = evidence.policy
    observed = {(cell.release, cell.fixture.id, cell.options.id) for cell in evidence.cells}
    met = {(cell.release, cell.fixture.release) for cell in evidence.cells}
    fixtures = sorted(evidence.corpus.fixtures.values(), key=lambda fixture: fixture.id)
    for version in policy.corpus.readers:
        release = policy.calendar[version]
        names = sorted(
            name for source in (evidence.recorded, evidence.fresh) for name, reader in source.items() if reader.release == version
        )
        beside = policy.corpus.readers if any(reader == version for reader, _ in met) else ()  # else it has to read everything
        sets: dict[str, tuple[OptionSet, ...]] = {}
        for fixture in fixtures:
            if fixture.family not in sets:
                sets[fixture.family] = policy.option_sets(fixture.family, release)  # type: ignore[arg-type]
            for options in sets[fixture.family]:
                subject = f"{fixture.id} read by {release.name}" + ("" if options.id == "default" else f" ({options.id})")
                if (version, fixture.id, options.id) in observed:
                    yield Judgement(rule.id, Verdict.PASS, subject, reader=version)
                elif release.date > evidence.as_of:
                    yield Judgement(rule.id, Verdict.NO_PROMISE, subject, reader=version)  # there is no such release yet
                else:
                    why = _why_not(evidence, fixture, options, names)
                    of = fixture.release if fixture.release in beside and (version, fixture.release) not in met else version
                    text = f'{release.name}: {why}; run nox -s "observe(torch-{of})" -- --record'
                    cause = Cause(why, release.name, text)
                    yield Judgement(rule.id, Verdict.NOT_CHECKED, subject, cause, reader=version)
    for name, reader in sorted(evidence.recorded.items()):
        if reader.release not in policy.calendar:
            text = f"{name} is recorded, but is no release of the calendar"
            yield Judgement(rule.id, Verdict.FAIL, name, Cause("stray", name, text))
            continue
        known = {(fixture, options.id) for fixture in evidence.corpus.fixtures for options in policy.options}
        stray = sorted(reader.cells.keys() - known)
        for fixture_id, options_id in stray:
            text = f"{name}: {fixture_id} ({options_id}) is recorded, but the corpus or the policy no longer has it"
            yield Judgement(rule.id, Verdict.FAIL, f"{fixture_id} read by {name}", Cause("stray", fixture_id, text))
        for probe in sorted(reader.probes.keys() - {probe.name for probe in evidence.corpus.probes}):
            text = f"{name}: probe {probe} is recorded, but there is no such probe any more"
            yield Judgement(rule.id, Verdict.FAIL, f"{probe} in {name}", Cause("stray", probe, text))
        for probe in sorted(reader.deprecations.keys() - {probe.name for probe in evidence.corpus.deprecations}):
            text = f"{name}: the deprecation {probe} is recorded, but there is no such probe any more"
            yield Judgement(rule.id, Verdict.FAIL, f"{probe} used in {name}", Cause("stray", probe, text))
    if not evidence.corpus.fixtures:
        yield Judgement(rule.id, Verdict.NOT_CHECKED, "corpus", Cause("empty corpus", "corpus", "the corpus has no fixture"))


def _why_not(evidence: Evidence, fixture: Fixture, options: OptionSet, names: list[str]) -> str:
    """Why a pair that has no valid observation has none."""
    if not names:
        return "no observations of this reader"
    cell = (fixture.id, options.id)
    stale = any(cell in source[name].cells for name in names for source in (evidence.recorded, evidence.fresh) if name in source)
    return "observed before the fixture, its golden or the options changed" if stale else "not observed"
