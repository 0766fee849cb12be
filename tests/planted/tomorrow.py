"""Rehearsals of the day after: evidence with an additional release that behaves like the newest one, or nearly so.

The release is created in memory from the records of the newest one: it writes the same archives and reads everything in the same way;
others read its archives as they read those of the newest one. Rules that need the survey of a release, its operators or its loader of
exported programs are excluded, because their files are not created here.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from torch_compat.corpus.json_lines import digest
from torch_compat.corpus.manifest import release_folder
from torch_compat.corpus.observations import cell_key
from torch_compat.judging.evidence import deprecation_key
from torch_compat.judging.operator_refusals import walks_through_operators
from torch_compat.releases.calendar import Calendar
from torch_compat.releases.release import Release
from torch_compat.releases.sets import ReleaseSet

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torch_compat.corpus.manifest import Fixture
    from torch_compat.corpus.observations import Observation, ObservedReader
    from torch_compat.judging.evidence import Evidence
    from torch_compat.policy.behaviors import BehaviorEntry
    from torch_compat.policy.model import Waiver

    Change = Callable[[Fixture, Observation], Observation]

__all__ = ["SURVEY_RULES", "tomorrow", "without_walks"]

SURVEY_RULES = frozenset(
    {
        "bumps-in-time",
        "schema-breaks-upgraded",
        "upgraders-old-schemas",
        "upgraders-proven",
        "operator-waivers-exact",
        "export-minors-compatible",
        "export-opsets-tell",
        "export-unknown-refused",
        "export-versions-read",
    }
)


def tomorrow(
    evidence: Evidence, version: str = "", *, writes: bool = True, change: Change | None = None, recorded: bool = True
) -> Evidence:
    """Evidence with one more release.

    Parameters:
        version: of the release; the next minor one unless given.
        writes: whether it wrote the corpus, too.
        change: what it does otherwise: is given each fixture, and what it would do with it.
        recorded: whether its observations are kept; else they were made just now.
    """
    evidence = without_walks(evidence)
    policy = evidence.policy
    newest = policy.corpus.readers[-1]
    version = version or _next(newest)
    dated = policy.calendar[newest].model_copy(update={"version": version, "date": evidence.as_of})
    loads = {options.id: options.load.given() for options in policy.options}
    subjects = {fixture.id: fixture.subject for fixture in evidence.corpus.fixtures.values()}
    corpus = evidence.corpus
    results: dict[str, Fixture] = {}
    if writes:
        (model,) = (manifest for manifest in corpus.manifests if manifest.release == newest)
        fixtures = tuple(replace(fixture, release=version) for fixture in model.fixtures)
        results = {fixture.id: fixture for fixture in fixtures}
        manifest = replace(
            model,
            release=version,
            fixtures=fixtures,
            not_writable=tuple(replace(refusal, release=version) for refusal in model.not_writable),
        )
        corpus = replace(corpus, manifests=(*corpus.manifests, manifest))
    (known,) = (reader for reader in evidence.recorded.values() if reader.release == newest)
    name = f"torch-{version}"
    every: dict[str, ObservedReader] = {
        other: replace(reader, cells=_with_writer(reader.cells, newest, version, results, loads, subjects))
        for other, reader in evidence.recorded.items()
    }
    identity = {**known.identity, "torch": version}
    own = replace(known, name=name, identity=identity, cells=every[known.name].cells)
    own = replace(own, cells={cell: replace(item, heard=True) for cell, item in own.cells.items()})
    if change is not None:
        known_fixtures = corpus.fixtures
        own = replace(own, cells={cell: change(known_fixtures[cell[0]], item) for cell, item in own.cells.items()})
    own = replace(
        own,
        deprecations={
            probe.name: replace(known.deprecations[probe.name], key=deprecation_key(probe.sha256, own))
            for probe in corpus.deprecations
            if probe.name in known.deprecations
        },
    )
    own = replace(
        own,
        probes={
            probe.name: replace(known.probes[probe.name], key=digest(probe.sha256, own.identity_digest, own.protocol)[:20])
            for probe in corpus.probes
            if probe.name in known.probes
        },
    )
    source = {**every, name: own} if recorded else every
    scope = policy.corpus.model_copy(
        update={
            "readers": (*policy.corpus.readers, *([version] if recorded else [])),
            "writers": (*policy.corpus.writers, *([version] if writes else [])),
        }
    )
    asked = replace(
        policy,
        calendar=Calendar((*policy.calendar, dated)),
        corpus=scope,
        behaviors=tuple(_written_by(entry, newest, version) for entry in policy.without_gaps().behaviors),
        rules=tuple(rule for rule in policy.rules if rule.id not in SURVEY_RULES),
        waivers=tuple(waiver for waiver in policy.waivers if not _of_operators(waiver)),
        operator_waivers=(),
    )
    fresh = {} if recorded else {name: own}
    return replace(
        evidence,
        policy=asked,
        corpus=corpus,
        recorded=source,
        fresh=fresh,
        operators=None,
        as_of=evidence.as_of + dt.timedelta(1),
    )


def without_walks(evidence: Evidence) -> Evidence:
    """Evidence without the programs that call every operator: they are judged by the survey of operators, which is left out here."""
    corpus = evidence.corpus
    gone = {fixture.id for fixture in corpus.fixtures.values() if walks_through_operators(fixture)}
    recipes = frozenset(item.partition("/")[2] for item in gone)
    corpus = replace(
        corpus,
        manifests=tuple(
            replace(manifest, fixtures=tuple(fixture for fixture in manifest.fixtures if fixture.id not in gone))
            for manifest in corpus.manifests
        ),
        recipes=tuple(recipe for recipe in corpus.recipes if recipe.name not in recipes),
    )
    recorded = {
        name: replace(reader, cells={cell: item for cell, item in reader.cells.items() if cell[0] not in gone})
        for name, reader in evidence.recorded.items()
    }
    accepted = evidence.policy.accepted
    if accepted is not None:
        left = (block._replace(recipes=tuple(name for name in block.recipes if name not in recipes)) for block in accepted.blocks)
        accepted = replace(accepted, recipes=accepted.recipes - recipes, blocks=tuple(item for item in left if item.recipes))
    return replace(evidence, corpus=corpus, recorded=recorded, policy=replace(evidence.policy, accepted=accepted))


def _of_operators(waiver: Waiver) -> bool:
    """Whether a waiver is only for findings of rules that are not asked, so that it would be left over."""
    return waiver.findings is not None and {finding.partition(":")[0] for finding in waiver.findings} <= SURVEY_RULES


def _with_writer(
    cells: Mapping[tuple[str, str], Observation],
    newest: str,
    version: str,
    value: Mapping[str, Fixture],
    loads: Mapping[str, dict[str, Any]],
    subjects: Mapping[str, str],
) -> dict[tuple[str, str], Observation]:
    """What a reader did, and the same with the archives of the new writer as with those of the newest one."""
    results = dict(cells)
    for (fixture, options), cell in cells.items():
        writer, _, recipe = fixture.partition("/")
        name = f"{release_folder(version)}/{recipe}"
        if writer == release_folder(newest) and name in value and cell.key == cell_key(subjects[fixture], loads[options]):
            key = cell_key(value[name].subject, loads[options])
            results[name, options] = replace(cell, fixture=name, key=key, heard=True)
    return results


def _written_by(entry: BehaviorEntry, newest: str, version: str) -> BehaviorEntry:
    """What `nox -s generate` would say of the new archives: what it says of those that they are copies of."""
    if not entry.refused_recipe or entry.writers is None or Release(newest) not in entry.writers:
        return entry
    return entry.model_copy(update={"writers": entry.writers | ReleaseSet.of(Release(version))})


def _next(version: str) -> str:
    major, minor, _ = version.split(".")
    return f"{major}.{int(minor) + 1}.0"
