"""Add the trees of builds to the corpus, so that what a build wrote and did is judged with all recorded evidence."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from torch_compat.corpus.corpus import load_corpus
from torch_compat.corpus.manifest import release_folder
from torch_compat.corpus.observations import cell_key
from torch_compat.corpus.recorded import read_recorded
from torch_compat.errors import UsageError
from torch_compat.policy.model import CalendarRelease
from torch_compat.releases.calendar import Calendar
from torch_compat.releases.release import Release
from torch_compat.releases.sets import ReleaseSet
from torch_compat.replay.trees import KEPT_DAYS, trees_at
from torch_compat.words import count_of
from torch_compat.workspace import newest_known

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from torch_compat.corpus.corpus import Corpus
    from torch_compat.corpus.manifest import Fixture, Manifest
    from torch_compat.corpus.observations import ObservedReader
    from torch_compat.judging.evidence import Evidence
    from torch_compat.policy import Policy
    from torch_compat.replay.trees import BuildTree

__all__ = ["with_trees"]


def with_trees(evidence: Evidence, folders: Sequence[Path], *, as_of: dt.date | None) -> tuple[Evidence, tuple[str, ...]]:
    """Return the evidence with what builds wrote and did, as if observed now, and notes on it.

    Several trees of one build, such as those of its shards, count as one. A tree that is older than :data:`KEPT_DAYS` on the day of
    judging is not used: its reader then counts as requested but unavailable.

    Parameters:
        folders: trees, or folders of trees.
        as_of: the day of judging; by default that of the newest observation.

    Raises:
        UsageError: a folder holds no tree, two builds have the same version, or two trees of one build contradict each other.
        CorpusError: a tree cannot be read.
    """
    trees = [tree for folder in folders for tree in trees_at(folder)]
    _no_twins(trees)
    day = as_of or max(evidence.as_of, *(tree.made for tree in trees))
    old = {tree.name: tree for tree in trees if tree.age(day) > KEPT_DAYS}
    used = [tree for tree in trees if tree.name not in old]
    policy, corpus = evidence.policy, evidence.corpus
    fresh: dict[str, ObservedReader] = dict(evidence.fresh)
    unreadable = dict(evidence.unreadable)
    notes = [f"{tree.name}: its observations from {tree.made} are used ({tree.path.name})" for tree in used]
    for tree in used:
        own = load_corpus(tree.fixtures)
        policy = _known(policy, tree, own)
        if release_folder(tree.release.public) in {release_folder(manifest.release) for manifest in evidence.corpus.manifests}:
            notes.append(f"{tree.name}: the corpus has archives of this release, so those of the build are not judged")
        else:
            policy = _predicted(policy, corpus, own)
            corpus = replace(corpus, manifests=_together(corpus.manifests, own.manifests), damage=(*corpus.damage, *own.damage))
        result = read_recorded(tree.observations)
        unreadable |= {f"{tree.path.name}/{name}": why for name, why in result.unreadable.items()}
        if tree.name not in result.readers and not result.unreadable:
            raise UsageError(f"contains no observations from {tree.name}", where=str(tree.path), code="no-tree")
        for name, reader in result.readers.items():
            fresh[name] = _one(fresh[name], reader, tree) if name in fresh else reader
    loads = {options.id: options.load.given() for options in policy.options}
    stale = {
        f"{count_of(len(places), 'cell')} of {name}": f"{places[0][0]} has changed since it was read: run `torch-compat candidate` again"
        for name, reader in fresh.items()
        if (
            places := [
                (fixture, options)
                for (fixture, options), cell in sorted(reader.cells.items())
                if fixture not in corpus.fixtures
                or options not in loads
                or cell.key != cell_key(corpus.fixtures[fixture].subject, loads[options])
            ]
        )
    }
    unavailable = (
        evidence.unavailable
        | stale
        | {
            name: f"it was observed {count_of(tree.age(day), 'day')} before {day}, more than {KEPT_DAYS}: run `torch-compat candidate` again"
            for name, tree in old.items()
        }
    )
    evidence = replace(
        evidence, policy=policy, corpus=corpus, fresh=fresh, unreadable=unreadable, unavailable=unavailable,
        builds=frozenset(tree.release.public for tree in used), as_of=as_of or max(day, newest_known(policy, fresh.values())),
    )  # fmt: skip
    return evidence, tuple(notes)


def _no_twins(trees: Iterable[BuildTree]) -> None:
    """Make sure that every version belongs to one build.

    Raises:
        UsageError: two builds have the same version.
    """
    seen: dict[str, BuildTree] = {}
    for tree in trees:
        twin = seen.setdefault(tree.release.public, tree)
        if twin.digest != tree.digest:
            raise UsageError(
                f"{twin.path} and {tree.path} contain two builds with the same version, {tree.release.public}",
                hint="judge them one at a time",
                code="twin-builds",
            )


def _known(policy: Policy, tree: BuildTree, own: Corpus) -> Policy:
    """The policy with the build added to its calendar."""
    version = tree.release.public
    for manifest in own.manifests:
        if manifest.release != version:
            raise UsageError(
                f"contains archives from torch {manifest.release}, expected torch {version}", where=str(tree.path), code="no-tree"
            )
    if version in policy.calendar:
        return policy
    release = CalendarRelease.model_construct(
        version=version, date=tree.day, pythons=("3.11",), python=None, install="whole", numpy=""
    )
    return replace(policy, calendar=Calendar([*policy.calendar, release]))


def _predicted(policy: Policy, corpus: Corpus, own: Corpus) -> Policy:
    """The policy with the predictions for archives of the newest release extended to archives of the build with the same content."""
    newest = policy.corpus.writers[-1]
    alike: dict[str, Fixture] = {
        fixture.recipe: fixture
        for fixture in own.fixtures.values()
        if (twin := corpus.fixtures.get(f"{release_folder(newest)}/{fixture.recipe}")) is not None
        and twin.content == fixture.content
    }
    return replace(
        policy,
        behaviors=tuple(
            entry.model_copy(update={"writers": entry.writers | ReleaseSet.of(Release(alike[recipe].release))})
            if (recipe := entry.refused_recipe) in alike and entry.writers is not None and Release(newest) in entry.writers
            else entry
            for entry in policy.behaviors
        ),
    )


def _together(known: Iterable[Manifest], more: Iterable[Manifest]) -> tuple[Manifest, ...]:
    """Merge manifests so that each release has one: several trees of a build form one manifest."""
    results = {manifest.release: manifest for manifest in known}
    for manifest in more:
        there = results.get(manifest.release)
        if there is not None:
            recipes = {entry.recipe for entry in there.entries}
            manifest = replace(  # noqa: PLW2901 - the same manifest, merged with the known one
                there,
                writers=there.writers | manifest.writers,
                fixtures=(*there.fixtures, *(fixture for fixture in manifest.fixtures if fixture.recipe not in recipes)),
                not_writable=(
                    *there.not_writable,
                    *(refusal for refusal in manifest.not_writable if refusal.recipe not in recipes),
                ),
            )
        results[manifest.release] = manifest
    return tuple(results.values())


def _one(reader: ObservedReader, other: ObservedReader, tree: BuildTree) -> ObservedReader:
    """Merge what two trees record for one reader.

    Raises:
        UsageError: they describe two different readers, or contradict each other on a cell.
    """
    if reader.identity_digest != other.identity_digest or reader.protocol != other.protocol:
        raise UsageError(
            f"{reader.name} was observed with different Pythons, processors or torch-compat versions, so the results cannot be combined",
            where=str(tree.path),
            hint="observe all shards on machines of the same kind",
            code="trees-differ",
        )
    for place, cell in other.cells.items():
        before = reader.cells.get(place)
        if before is not None and before.key == cell.key and before != cell:
            raise UsageError(
                f"{reader.name} gave two different results with {' under '.join(place)}", where=str(tree.path), code="trees-differ",
                hint="remove the older tree, or observe again",
            )  # fmt: skip
    return replace(
        reader,
        observed=max(reader.observed, other.observed),
        cells={**reader.cells, **other.cells},
        probes={**reader.probes, **other.probes},
        deprecations={**reader.deprecations, **other.deprecations},
    )
