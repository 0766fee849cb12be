"""Examine a build and combine what it wrote, read and printed into one report: ``torch-compat candidate`` without its output."""

from __future__ import annotations

import contextlib
import datetime as dt
import itertools
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from torch_compat.corpus.corpus import Corpus, load_corpus
from torch_compat.corpus.manifest import SYNTHETIC, Fixture
from torch_compat.corpus.recorded import read_recorded, write_recorded
from torch_compat.errors import BuildError, EnvironmentUnavailable, ReaderError, UsageError
from torch_compat.judging.compared import (
    Compared,
    compare_cells,
    compare_deprecations,
    compare_probes,
)
from torch_compat.judging.judge import judge_reader
from torch_compat.judging.judgement import Verdict
from torch_compat.judging.operator_check import CheckedOperators, SchemaSet, check_operators, read_set
from torch_compat.operators.breaks import operator_of
from torch_compat.operators.history import History
from torch_compat.readers.builds import unchanged
from torch_compat.readers.environments import Environment, Environments
from torch_compat.readers.torch_release import TorchRelease
from torch_compat.releases.release import PREFIX, Release
from torch_compat.replay.candidate_items import Asking, Candidate, Items, Programs, ReleasePair
from torch_compat.replay.dump import dump_operators
from torch_compat.replay.observe import Observing, observe
from torch_compat.replay.plan import plan
from torch_compat.replay.produce import produce
from torch_compat.report.candidate import CandidateItem, CandidateReport
from torch_compat.words import count_of
from torch_compat.writes import changing, put

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from torch_compat.corpus.observations import ObservedReader
    from torch_compat.judging.evidence import Evidence
    from torch_compat.policy import CalendarRelease
    from torch_compat.readers.builds import Build
    from torch_compat.replay.trees import BuildTree

__all__ = [
    "Against",
    "Classified",
    "Said",
    "asked_now",
    "base_of",
    "blaming",
    "classified",
    "examined",
    "only_with_cuda",
    "recorded",
    "sample_of",
    "shard_of",
]

SHARE: Final = 0.1
"""The share drawn from the fixtures that are not in every sample; with the others, a single process of a release reads them in about
ten minutes."""
OLDEST: Final = 2
"""Number of oldest releases whose fixtures are all in every sample."""
OPERATORS: Final = "operators.txt"
GRAVITY: Final = {"breaks": 0, "needs": 1, "waived": 2, "allowed": 3}


def base_of(evidence: Evidence, release: CalendarRelease, against: str | None) -> ObservedReader:
    """The reader that a build is compared with: the newest recorded release that is not newer, unless one is named.

    Raises:
        UsageError: there is none, or the named release has no records.
    """
    recorded = evidence.recorded.values()
    if against is not None:
        wanted = evidence.policy.calendar.resolve(against).version
        results = [reader for reader in recorded if reader.release == wanted]
        if not results:
            names = ", ".join(sorted((item.release for item in recorded), key=Release)[-3:])
            raise UsageError(
                f"there are no records for torch-{wanted}", hint=f"the newest recorded releases: {names}", code="not-recorded"
            )
        return results[0]
    older = [reader for reader in recorded if reader.release in evidence.rank and Release(reader.release) <= release.parsed]
    if not older:
        raise UsageError(f"no release older than {release.name} is recorded", hint="use --against torch-X.Y.Z")
    return max(older, key=lambda reader: Release(reader.release))


def sample_of(corpus: Corpus, seed: int, *, everything: bool) -> list[Fixture]:
    """The fixtures to read: all, or the oldest and newest of every recipe, all of the oldest writers, and a random share by seed."""
    sound = [fixture for _, fixture in sorted(corpus.fixtures.items()) if corpus.damage_of(fixture) is None]
    if everything:
        return sound
    by_recipe: dict[str, list[Fixture]] = {}
    for fixture in sound:
        if fixture.release != SYNTHETIC:
            by_recipe.setdefault(fixture.recipe, []).append(fixture)
    writers = sorted({fixture.release for fixture in sound if fixture.release != SYNTHETIC}, key=Release)
    always = {fixture.id for fixture in sound if fixture.release in {SYNTHETIC, *writers[:OLDEST]}}
    for fixtures in by_recipe.values():
        fixtures.sort(key=lambda fixture: Release(fixture.release).key)
        always |= {fixtures[0].id, fixtures[-1].id}
    rest = [fixture.id for fixture in sound if fixture.id not in always]
    drawn = always | {*Random(seed).sample(rest, round(len(rest) * SHARE))}  # noqa: S311 - repeatable, not secret
    return [fixture for fixture in sound if fixture.id in drawn]


def shard_of(corpus: Corpus, part: int, parts: int) -> frozenset[str]:
    """The recipes of one of several parts of a corpus, including synthetic ones. Every recipe is in exactly one part."""
    names = {recipe.name for recipe in corpus.recipes} | {fixture.recipe for fixture in corpus.fixtures.values()}
    return frozenset(sorted(names)[part - 1 :: parts])


class Against(NamedTuple):
    """What a build is compared with.

    Attributes:
        reader: its observations of archives.
        environment: its environment; None if it is not built here.
        operators: its operators: the version of a recorded release, or a file that lists them.
        wrote: the archives that it wrote, if it is a build; those of a release are in the corpus.
    """

    reader: ObservedReader
    environment: Environment | None
    operators: str
    wrote: Corpus | None = None


def recorded(base: ObservedReader) -> Against:
    """A recorded release as the base of the comparison with a build."""
    return Against(base, Environments().get(base.release), base.release)


def asked_now(asked: Asking, beside: str) -> Against:
    """Let the build that serves as base of a comparison write, read and list its operators. Results already in its tree are reused.

    Parameters:
        beside: the reader name of the other build. Two builds of one version are two readers.

    Raises:
        BuildError: the build changed meanwhile; nothing is kept.
        ReaderError: its worker does not start, or does not answer.
        EnvironmentUnavailable, UsageError: its operators cannot be listed.
    """
    build = asked.release.build
    _written(asked)
    own = _only(load_corpus(asked.tree.fixtures), asked.recipes)
    known = read_recorded(asked.tree.observations).readers.get(asked.release.name)
    read = _observed(asked, own, known=known)
    with changing(asked.tree.path):
        if asked.whole:
            put(asked.tree.path / OPERATORS, dump_operators(build.environment), "utf-8")
        unchanged(build)
        write_recorded(asked.tree.observations, [read.fresh])
    reader = replace(read.fresh, cells={**read.fresh.cells, **read.mine.cells})
    if reader.name == beside:
        reader = replace(reader, name=f"{beside}{'.' if asked.release.build.release.local else '+'}against")
    return Against(reader, build.environment, str(asked.tree.path / OPERATORS), own)


def compared(asked: Asking, against: Against, earlier: Sequence[BuildTree]) -> Candidate:
    """Pair a build with its base. What a base build wrote replaces the archives of its release in the corpus."""
    evidence = asked.evidence
    if against.wrote is not None:
        mine = {manifest.release for manifest in against.wrote.manifests}
        rest = tuple(manifest for manifest in evidence.corpus.manifests if manifest.release not in mine)
        evidence = replace(
            evidence,
            corpus=replace(evidence.corpus, manifests=(*rest, *against.wrote.manifests)),
            recorded={**evidence.recorded, against.reader.name: against.reader},
        )
    return Candidate(
        evidence=evidence, release=asked.release, base=against.reader, today=asked.today, wrote=against.wrote, tree=asked.tree,
        seed=asked.seed, everything=asked.everything, trust=asked.trust, progress=asked.progress, recipes=asked.recipes,
        shard=asked.shard, environment=against.environment, operators=against.operators, earlier=earlier,
    )  # fmt: skip


def examined(asking: Asking, against: Against, earlier: Sequence[BuildTree] = ()) -> CandidateReport:
    """Let a build write and read archives, run probes and list its operators, and compare all results with a release or another build.

    Parameters:
        earlier: the trees of earlier builds.

    Raises:
        BuildError: the build changed meanwhile; nothing is kept.
        ReaderError: its worker does not start, or does not answer.
    """
    asked = compared(asking, against, earlier)
    build = asked.release.build
    not_asked: list[tuple[str, str, bool, int]] = []
    notes: list[str] = []
    corpus = asking.evidence.corpus
    if corpus.damage:
        not_asked.append((f"files in the corpus ({corpus.damage[0].subject})", corpus.damage[0].detail, True, len(corpus.damage)))
    failures = _written(asked)
    own = _only(load_corpus(asked.tree.fixtures), asked.recipes)
    fresh, mine, chosen, in_all = _observed(asking, own, against.wrote)
    operators, schemas = _operators(asked, not_asked)
    older = _read_by_base(asked, own, not_asked)
    unchanged(build)
    with changing(asked.tree.path):
        beside = older is not None and older.name != fresh.name and mine is fresh  # else the corpus has archives with these names
        write_recorded(asked.tree.observations, [fresh, older] if older is not None and beside else [fresh])
        if schemas:
            put(asked.tree.path / OPERATORS, schemas, "utf-8")
    message = Said(own, failures, fresh, older, operators, mine)
    own_cells = sum(cell[0] in own.fixtures for cell in mine.cells)
    result = classified(asked, message, Items(asked, own, asked.earlier, Programs(asked)))
    for part, what in zip(result.parts, ("cells", "deprecations", "probes"), strict=True):
        if part.unasked:
            why = f"{asked.base.name} has no records for the current {part.unasked[0]}"
            not_asked.append((what, why, True, len(part.unasked)))
        if part.unended:
            why = (
                f"{part.unended[0]} timed out in only one of {fresh.name} and {asked.base.name}: run it again on an idle machine"
            )
            not_asked.append((what, why, True, len(part.unended)))
    if against.wrote is None and build.release.local != Release(asked.base.name.removeprefix(PREFIX)).local != "":
        notes.append(f"this build is a different variant of torch ({build.variant}) from the recorded {asked.base.name}")
    if asked.recipes is not None:
        rest = len(corpus.recipes) - len(_recipes(asked))
        why = "--recipe excludes them" if asked.shard is None else "the other shards write and read them"
        not_asked.append(("recipes", why, False, rest))
    elif len(chosen) < len(corpus.fixtures):
        not_asked.append(("fixtures", "outside the sample: --all reads them", False, len(corpus.fixtures) - len(chosen)))
    return CandidateReport(
        build=build.as_json(),
        against={
            "name": asked.base.name, "release": asked.base.release, "source": "recorded" if against.wrote is None else "now",
            "observed": asked.base.observed,
            "age_days": (asked.today - dt.date.fromisoformat(asked.base.observed)).days,
        },
        asked={
            "cells": len(fresh.cells) - (own_cells if mine is fresh else 0), "cells_in_all": in_all, "all": asked.everything, "seed": asked.seed,
            "own_cells": own_cells, "recipes": len(_recipes(asked)), "deprecations": len(fresh.deprecations), "probes": len(fresh.probes),
            "operators": len(operators.new.schemas) if operators else 0, "observed": asked.today.isoformat(),
        },
        new=result.new,
        mended=result.mended,
        known=_known(result.parts),
        reworded=sum(item.state == "reworded" for part in result.parts for item in part.moved),
        not_asked=tuple(not_asked),
        notes=tuple(notes),
        tree=str(asked.tree.path),
    )  # fmt: skip


@contextlib.contextmanager
def blaming(build: Build) -> Iterator[None]:
    """Attribute a worker that dies or does not answer to the build, not to the harness.

    Raises:
        BuildError: the worker died or did not answer.
    """
    try:
        yield
    except EnvironmentUnavailable:
        raise
    except ReaderError as error:
        raise BuildError(error.message, where=build.name, hint=error.hint, code=error.code) from error


class Said(NamedTuple):
    """The results of examining a release.

    Attributes:
        own: the archives that it wrote.
        failures: recipes that yielded nothing, and why.
        fresh: its observations of archives of the corpus, and of its own.
        older: the base's observations of its archives; None if the base was not asked.
        operators: its operators compared with those of the base; None if they are not known.
        mine: its observations of its own archives, if the corpus has archives with the same names; otherwise these are in ``fresh``.
    """

    own: Corpus
    failures: dict[str, str]
    fresh: ObservedReader
    older: ObservedReader | None
    operators: CheckedOperators | None
    mine: ObservedReader | None = None


class Read(NamedTuple):
    """What a build did with archives.

    Attributes:
        fresh: with those of the corpus, and with its own unless the corpus has archives with the same names.
        mine: with its own; the same object as ``fresh`` if that includes them.
        chosen: the fixtures of the corpus that it read.
        in_all: the total number of cells.
    """

    fresh: ObservedReader
    mine: ObservedReader
    chosen: list[Fixture]
    in_all: int


class Classified(NamedTuple):
    """New and mended items, with the comparisons of cells, deprecations and probes that show them."""

    new: tuple[CandidateItem, ...]
    mended: tuple[CandidateItem, ...]
    parts: tuple[Compared, Compared, Compared]


def classified(asked: ReleasePair, message: Said, make: Items) -> Classified:
    """Determine which results of a release are new compared with the base, by gravity, and which are mended."""
    evidence = _with(asked, message)
    judged, others = judge_reader(evidence, message.fresh.name)
    parts = (
        compare_cells(asked.evidence, asked.base, message.fresh, judged),
        compare_deprecations(asked.base, message.fresh, others),
        compare_probes(asked.base, message.fresh),
    )
    mine = message.fresh
    if message.mine is not None and message.mine is not message.fresh:
        mine = message.mine
        evidence = _with_own(asked, message, mine)
        judged, others = judge_reader(evidence, mine.name)
    stated = {subject: item for subject, item in others if item.verdict is Verdict.FAIL and subject in message.own.fixtures}
    new = [*make.moved(parts, "new"), *make.written(message.own, message.failures, stated), *make.operators(message.operators)]
    new += make.own(evidence, mine, judged) + make.older(evidence, message.older)
    mended = [*make.moved(parts, "mended"), *make.mended_writes(message.own)]
    return Classified(
        tuple(sorted(new, key=lambda item: (GRAVITY[item.policy], -item.count, item.id))),
        tuple(sorted(mended, key=lambda item: (-item.count, item.id))),
        parts,
    )


def _only(own: Corpus, recipes: frozenset[str] | None) -> Corpus:
    """Restrict what a build wrote to some recipes: an earlier run of the same build may have written others into its tree."""
    if recipes is None:
        return own
    return replace(
        own,
        manifests=tuple(
            replace(
                manifest,
                fixtures=tuple(fixture for fixture in manifest.fixtures if fixture.recipe in recipes),
                not_writable=tuple(refusal for refusal in manifest.not_writable if refusal.recipe in recipes),
            )
            for manifest in own.manifests
        ),
    )


def _recipes(asked: Asking) -> list[Any]:
    return [recipe for recipe in asked.evidence.corpus.recipes if asked.recipes is None or recipe.name in asked.recipes]


# ------------------------------------------------------------------------------------------------------------------ asking


def _written(asked: Asking) -> dict[str, str]:
    """Let the build write every recipe into its tree; return the recipes that yielded nothing, and why."""
    failures: dict[str, str] = {}
    recipes = _recipes(asked)
    target = Corpus(asked.tree.fixtures, tuple(recipes), (), (), ())
    bar = asked.progress.task(f"{asked.release.name}: writing")
    done = itertools.count(1)
    with TorchRelease(asked.release.build.environment, trust=asked.trust) as writer:
        produced = produce(target, writer, recipes, asked.today, lambda _: bar(next(done), len(recipes)), failures)
    asked.progress.say(
        f"{asked.release.name}: wrote {len(produced.added) + len(produced.reproduced)} of {count_of(len(recipes), 'recipe')}"
    )
    for name, fields in produced.differing:
        failures[name.partition("/")[2]] = f"two runs wrote different archives: {', '.join(fields)}"
    return failures


def _observed(asked: Asking, own: Corpus, others: Corpus | None = None, *, known: ObservedReader | None = None) -> Read:
    """Let the build read a sample of the corpus, and its own archives.

    Parameters:
        others: the archives of the base build, all of which are read.
        known: existing observations of the build.
    """
    evidence, release = asked.evidence, asked.release
    corpus = evidence.corpus
    chosen = sample_of(corpus, asked.seed, everything=asked.everything)
    if asked.recipes is not None:
        chosen = [fixture for fixture in chosen if fixture.recipe in asked.recipes]
    in_all = len(plan(evidence.policy, corpus, release, corpus.fixtures.values()))
    known_names = {manifest.release for manifest in corpus.manifests}
    tasks = plan(evidence.policy, corpus, release, chosen)
    if others is not None:
        theirs = {manifest.release for manifest in others.manifests}
        known_names |= theirs
        tasks = [task for task in tasks if task.fixture.release not in theirs]
        tasks += plan(evidence.policy, others, release, others.fixtures.values())
        in_all += len(plan(evidence.policy, others, release, others.fixtures.values()))
    mine = plan(evidence.policy, own, release, own.fixtures.values())
    apart = release.version in known_names
    bar = asked.progress.task(f"{release.name}: reading")
    fresh = observe(
        release.build.environment,
        tasks if apart else [*tasks, *mine],
        corpus.probes if asked.whole else (),
        today=asked.today,
        deprecations=corpus.deprecations if asked.whole else (),
        known=known,
        state=Observing(progress=lambda state: bar(state.done, state.total)),
        trust=asked.trust,
    )
    asked.progress.say(f"{fresh.name}: {count_of(len(fresh.cells), 'cell')} observed")
    if not apart:
        return Read(fresh, fresh, chosen, in_all)
    bar = asked.progress.task(f"{release.name}: reading its archives")
    state = Observing(progress=lambda state: bar(state.done, state.total))
    result = observe(release.build.environment, mine, (), today=asked.today, state=state, trust=asked.trust)
    return Read(fresh, result, chosen, in_all)


def _operators(asked: Candidate, not_asked: list[tuple[str, str, bool, int]]) -> tuple[CheckedOperators | None, str]:
    policy = asked.evidence.policy
    if not asked.whole:
        not_asked.append(("operators, probes and deprecations", "the first shard checks them", False, 1))
        return None, ""
    try:
        text = dump_operators(asked.release.build.environment)
        path = asked.tree.path / OPERATORS
        with changing(asked.tree.path):
            put(path, text, "utf-8")
        new = read_set(str(path))
        old = replace_name(read_set(asked.operators), asked.base.name) if asked.wrote is not None else read_set(asked.operators)
        checked = check_operators(
            old, replace_name(new, asked.release.name), waivers=policy.operator_waivers, became=policy.became, as_of=asked.today
        )
    except (EnvironmentUnavailable, UsageError) as error:
        not_asked.append(("operators", error.message + (f": {error.hint}" if error.hint else ""), True, 1))
        return None, ""
    gap = frozenset() if asked.release.build.variant.startswith("cuda") else only_with_cuda(History.load())
    elsewhere = [item for item in checked.broken if item.new is None and item.operator in gap]
    if elsewhere:
        checked = checked._replace(broken=tuple(item for item in checked.broken if item not in elsewhere))
        why = f"only builds with CUDA have {elsewhere[0].operator}, but this build is for {asked.release.build.variant}"
        not_asked.append(("operators", why, False, len(elsewhere)))
    if checked.unknown:
        not_asked.append(("operators", f"{asked.base.name} has incomplete records", False, len(checked.unknown)))
    return checked, text


def only_with_cuda(history: History) -> frozenset[str]:
    """The operators that a recorded build without CUDA lacks although the releases before and after it have them."""
    results: set[str] = set()
    for before, release, after in zip(history.releases, history.releases[1:], history.releases[2:], strict=False):
        if history.why_incomplete(release) is not None:
            older, own, newer = ({operator_of(text) for text in read_set(item).schemas} for item in (before, release, after))
            results |= (older & newer) - own
    return frozenset(results)


def replace_name(item: SchemaSet, name: str) -> SchemaSet:
    """The same schemas under another name."""
    return item._replace(name=name)


def _read_by_base(asked: Candidate, own: Corpus, not_asked: list[tuple[str, str, bool, int]]) -> ObservedReader | None:
    """Let the base read what the build wrote. If it is not built here, this is a required check only within the window."""
    policy, base = asked.evidence.policy, asked.base
    if not own.fixtures:
        return None
    days = (asked.release.date - policy.calendar[base.release].date).days
    within = days <= policy.forward_window_days
    why = (
        f"they are {count_of(days, 'day')} apart, {'within' if within else 'outside'} the window of {policy.forward_window_days}"
    )
    if asked.environment is None:
        text = f"torch-{base.release} is not built here to read archives from the build ({why})"
        not_asked.append(("archives from the build", text, within, len(own.fixtures)))
        return None
    tasks = plan(policy, own, policy.calendar[base.release], own.fixtures.values())
    bar = asked.progress.task(f"{base.name}: reading archives from the build")
    result = observe(
        asked.environment, tasks, (), today=asked.today, state=Observing(progress=lambda state: bar(state.done, state.total)),
        trust=asked.trust,
    )  # fmt: skip
    asked.progress.say(f"{base.name}: {count_of(len(result.cells), 'cell')} observed with archives from the build")
    return result if asked.wrote is None else replace(result, name=base.name)


def _with(asked: ReleasePair, message: Said) -> Evidence:
    """The evidence including the build. Records of a reader with the same name are dropped, as they would hide the new observations."""
    evidence = asked.evidence
    corpus = evidence.corpus
    if message.mine is None or message.mine is message.fresh:
        corpus = replace(corpus, manifests=(*corpus.manifests, *message.own.manifests))
    recorded = {name: item for name, item in evidence.recorded.items() if name != message.fresh.name}
    new = {item.name: item for item in (message.fresh, message.older) if item is not None}
    return replace(evidence, corpus=corpus, recorded=recorded, fresh=new)


def _with_own(asked: ReleasePair, message: Said, mine: ObservedReader) -> Evidence:
    """The evidence with what the build wrote in place of the archives of its release in the corpus."""
    evidence = asked.evidence
    rest = tuple(manifest for manifest in evidence.corpus.manifests if manifest.release != asked.release.version)
    corpus = replace(evidence.corpus, manifests=(*rest, *message.own.manifests))
    recorded = {name: item for name, item in evidence.recorded.items() if name != mine.name}
    new = {item.name: item for item in (message.older, mine) if item is not None}
    return replace(evidence, corpus=corpus, recorded=recorded, fresh=new)


def _known(parts: Iterable[Compared]) -> dict[str, int]:
    results: dict[str, int] = {}
    for part in parts:
        for moved in part.moved:
            if moved.state == "known":
                kind = moved.group.partition(":")[2]
                results[kind] = results.get(kind, 0) + 1
    return results
