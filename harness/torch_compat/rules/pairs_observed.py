"""Every pair that the policy requires was observed.

What: every reader of the policy observed every fixture, under every set of load options that the reader supports, with the
current archive, golden and options. Recorded observations count. Recorded files that cannot be read fail, and so do observations
of things that no longer exist. Missing observations are reported with the nox session that makes them: the session of the writer
if none of its fixtures was observed, because that session lets every reader load the fixtures of a new writer. A release is
required from its date in the calendar on. Archives of a build, which are not part of the corpus, are required only from readers
inside the forward window.

Why: the most common failure of compatibility tests is not a wrong check, but a check that silently did not run.

Example: a fixture is added, and nobody observes it with the releases that are not built on the author's machine.

Reference: this project.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from torch_compat.corpus.recorded import outside
from torch_compat.judging.judgement import Asks, Cause, Judgement, Verdict
from torch_compat.judging.readers import places

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.corpus.manifest import Fixture
    from torch_compat.judging.evidence import Evidence
    from torch_compat.policy import OptionSet, Policy, RuleEntry

__all__ = ["judge"]

ASKS: Final = Asks.BOOKKEEPING


def judge(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Judge every pair of a reader in the policy and a fixture in the corpus."""
    for name, why in sorted(evidence.unreadable.items()):
        yield Judgement(rule.id, Verdict.FAIL, name, Cause("unreadable", name, why))
    for name, why in sorted(evidence.unavailable.items()):
        yield Judgement(rule.id, Verdict.NOT_CHECKED, name, Cause("unavailable", name, f"{name} was required: {why}"))
    yield from _pairs(evidence, rule)
    known = {(fixture, options.id) for fixture in evidence.corpus.fixtures for options in evidence.policy.options}
    strays = outside(evidence.recorded, known)
    for name, reader in sorted(evidence.recorded.items()):
        if reader.release not in evidence.policy.calendar:
            text = f"{name} is recorded, but is not in the release calendar"
            yield Judgement(rule.id, Verdict.FAIL, name, Cause("stray", name, text))
            continue
        for fixture_id, options_id in strays[name]:
            text = f"{name}: {fixture_id} ({options_id}) is recorded, but is no longer in the corpus or the policy"
            yield Judgement(rule.id, Verdict.FAIL, f"{fixture_id} read by {name}", Cause("stray", fixture_id, text))
        for probe in sorted(reader.probes.keys() - {probe.name for probe in evidence.corpus.probes}):
            text = f"{name}: probe {probe} is recorded, but no longer exists"
            yield Judgement(rule.id, Verdict.FAIL, f"{probe} in {name}", Cause("stray", probe, text))
        for probe in sorted(reader.deprecations.keys() - {probe.name for probe in evidence.corpus.deprecations}):
            text = f"{name}: the deprecation {probe} is recorded, but its probe no longer exists"
            yield Judgement(rule.id, Verdict.FAIL, f"{probe} used in {name}", Cause("stray", probe, text))
    if not evidence.corpus.fixtures:
        yield Judgement(rule.id, Verdict.NOT_CHECKED, "corpus", Cause("empty corpus", "corpus", "the corpus has no fixtures"))


def _pairs(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Judge the policy's readers with each fixture under each set of options; group missing pairs by reader and reason."""
    policy, rank = evidence.policy, evidence.rank
    observed: dict[tuple[str, str], int] = {}  # releases by fixture and options, as bitmasks by rank
    met: dict[str, int] = {}  # the same by writer
    for cells in evidence.cells:
        place, releases = (cells.fixture.id, cells.options.id), evidence.readers.ranks(cells.readers)
        observed[place] = observed.get(place, 0) | releases
        met[cells.fixture.release] = met.get(cells.fixture.release, 0) | releases
    there = sum(1 << rank[version] for version in policy.corpus.readers if policy.calendar[version].date <= evidence.as_of)
    names = {rank[version]: _names(evidence, version) for version in policy.corpus.readers}
    unmet = sum(1 << reader for reader, result in names.items() if not result)
    asked: dict[str, list[tuple[OptionSet, int]]] = {}
    missing: Counter[tuple[str, int, str]] = Counter()  # pairs by writer, releases as bitmasks by rank, and reason
    for fixture in sorted(evidence.corpus.fixtures.values(), key=lambda fixture: fixture.id):
        if fixture.family not in asked:
            asked[fixture.family] = _asked(policy, fixture.family)
        within = _within(policy, fixture.release) if fixture.release in evidence.builds else 0
        for options, every in asked[fixture.family]:
            readers = every & within if fixture.release in evidence.builds else every
            done = readers & observed.get((fixture.id, options.id), 0)
            subject = fixture.id if options.id == "default" else f"{fixture.id} ({options.id})"
            if done:
                yield Judgement(rule.id, Verdict.PASS, subject, things=done.bit_count())
            if later := readers & ~done & ~there:  # these releases do not exist yet
                yield Judgement(rule.id, Verdict.NO_PROMISE, subject, things=later.bit_count())
            left = readers & ~done & there
            if left & unmet:
                missing[fixture.release, left & unmet, "no observations by this reader"] += 1
            for reader in places(left & ~unmet):
                missing[fixture.release, 1 << reader, _why_not(evidence, fixture, options, names[reader])] += 1
    versions = {rank[version]: version for version in policy.corpus.readers}
    for writer, reader, why, count in (
        (writer, number, why, count) for (writer, left, why), count in missing.items() for number in places(left)
    ):
        version = versions[reader]
        # A session of the writer makes every reader read its archives; a reader without observations must read everything.
        begun = any(releases >> reader & 1 for releases in met.values())
        of = writer if begun and writer in policy.corpus.readers and not met.get(writer, 0) >> reader & 1 else version
        name = policy.calendar[version].name
        cause = Cause(why, name, f'{name}: {why}; run nox -s "observe(torch-{of})" -- --record')
        yield Judgement(rule.id, Verdict.NOT_CHECKED, name, cause, reader=version, things=count)


def _within(policy: Policy, build: str) -> int:
    """Return the policy's readers that must read the archives of a build, as bits by rank: those inside the forward window."""
    day = policy.calendar[build].date
    return sum(
        1 << rank
        for rank, release in enumerate(policy.calendar)
        if release.version in policy.corpus.readers and 0 <= (day - release.date).days <= policy.forward_window_days
    )


def _names(evidence: Evidence, version: str) -> list[str]:
    """Return the readers of a release, with or without observations."""
    both = (evidence.recorded, evidence.fresh)
    return sorted(name for source in both for name, reader in source.items() if reader.release == version)


def _asked(policy: Policy, family: str) -> list[tuple[OptionSet, int]]:
    """Return the option sets for a family that some reader of the policy has, each with these readers as bits by rank."""
    ranks = {release.version: index for index, release in enumerate(policy.calendar)}
    readers = {options.id: 0 for options in policy.options}
    for version in policy.corpus.readers:
        for options in policy.option_sets(family, policy.calendar[version]):  # type: ignore[arg-type]
            readers[options.id] |= 1 << ranks[version]
    return [(options, readers[options.id]) for options in policy.options if readers[options.id]]


def _why_not(evidence: Evidence, fixture: Fixture, options: OptionSet, names: list[str]) -> str:
    """Return why a pair has no valid observation, although the reader has observations."""
    cell = (fixture.id, options.id)
    stale = any(cell in source[name].cells for name in names for source in (evidence.recorded, evidence.fresh) if name in source)
    return "observed before the fixture, its golden or the options changed" if stale else "not observed"
