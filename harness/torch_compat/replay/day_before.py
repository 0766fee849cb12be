"""Evidence as it was on the day before a release, without anything that begins with or names the release or a later one.

This is used to test the classifier of ``torch-compat candidate`` on the past. Archives, observations and surveys of these releases are
removed, and from the policy whatever :func:`torch_compat.replay.before.remove_from_policies` removes. In addition, no policy text may name
them: a tolerance or an exemption whose reason names one relies on later knowledge, and is removed; explanations for people in other tables
are kept without the names, since judging does not read them.

:func:`leaks` checks the result again, in a different way, for any of these names.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from torch_compat.corpus.operators import RecordedOperators
from torch_compat.corpus.surveys import FILES, section_without
from torch_compat.errors import CorpusError, NothingSelected
from torch_compat.operators.history import FactHistory, History, SetHistory
from torch_compat.places import read_whole
from torch_compat.policy import load_policy
from torch_compat.policy.calendar_files import TableText, joined, split_tables
from torch_compat.releases.calendar import Calendar
from torch_compat.releases.release import Release
from torch_compat.replay.before import remove_from_policies
from torch_compat.words import count_of
from torch_compat.writes import put

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from torch_compat.corpus.corpus import Corpus
    from torch_compat.corpus.manifest import Manifest
    from torch_compat.corpus.observations import ObservedReader
    from torch_compat.judging.evidence import Evidence
    from torch_compat.policy.model import CalendarRelease

__all__ = ["DayBefore", "backtested", "day_before", "leaks"]

UNEXPLAINED: Final = frozenset({"[[tolerance]]"})
"""Tables that apply to all releases: an entry that names a later release could not have been known the day before."""
SECTIONS: Final = ("schemas", "operator_versions", "imported", "constants")
LATER: Final = "…"
"""Replaces the name of a release that was not known yet. Titles have a maximum length, so this is no longer than any release name."""
STATED: Final = re.compile(r"^(?:(?:pythons|numpy|python) =|    \{ (?:module|version) =) .*$", re.MULTILINE)
"""Numbers that look like torch releases but are versions of Python, numpy and other packages."""
OLDEST: Final = Release("1.6.0")


@dataclass(frozen=True)
class DayBefore:
    """What was known the day before a release, and separately what the release does when it is observed.

    Attributes:
        release: the release.
        gone: this release and all later ones in the calendar.
        evidence: what was known. Its calendar includes the release, just as that of ``candidate`` includes the build.
        operators: what was known about operators.
        texts: the policy files of that day, keyed by name.
        base: the newest recorded release, with which it is compared.
        own: what the release wrote with the recipes that existed.
        fresh: its observations of all archives of that day and of its own.
        older: the base's observations of its archives.
        unwritten: the recipes that begin with it or later, which could not have been requested.
    """

    release: CalendarRelease
    gone: frozenset[str]
    evidence: Evidence
    operators: tuple[History, FactHistory, SetHistory]
    texts: Mapping[str, str]
    base: ObservedReader
    own: Corpus
    fresh: ObservedReader
    older: ObservedReader
    unwritten: tuple[str, ...]


def backtested(evidence: Evidence) -> tuple[str, ...]:
    """The oldest recorded release of every minor line from 1.6 on, oldest first."""
    results: dict[tuple[int, ...], Release] = {}
    for reader in evidence.recorded.values():
        release = Release(reader.release)
        if release.numbers >= OLDEST.numbers and reader.release in evidence.policy.calendar:
            line = release.numbers[:2]
            results[line] = min(results.get(line, release), release)
    return tuple(str(item) for item in sorted(results.values()))


def day_before(evidence: Evidence, root: Path, version: str, scratch: Path) -> DayBefore:
    """Remove a release and everything later from evidence.

    Parameters:
        evidence: all recorded evidence.
        root: the tree that it was read from, for the texts of its policy and its surveys.
        version: a recorded release.
        scratch: an empty directory, which must exist as long as the result is used.

    Raises:
        NothingSelected: no older release is recorded.
        CorpusError: something of the release or a later one remains.
    """
    release = evidence.policy.calendar[version]
    gone = frozenset(
        item.version for item in evidence.policy.calendar if item.parsed >= release.parsed or item.date >= release.date
    )
    policies = scratch / "policies" / "torch"
    shutil.copytree(root / "policies" / "torch", policies)
    probes = remove_from_policies(policies, gone)
    texts = _unnamed(policies, gone)
    policy = load_policy(policies)
    files = {name: scratch / FILES[name][0].rpartition("/")[2] for name in SECTIONS}
    for name, path in files.items():
        put(path, section_without(root / "fixtures", name, gone), encoding="utf-8")
    operators = History(files["schemas"]), FactHistory(files["operator_versions"]), SetHistory(files["imported"])
    corpus = _corpus(evidence.corpus, gone, probes)
    recorded = {name: item for name, item in evidence.recorded.items() if item.release not in gone}
    if not recorded:
        raise NothingSelected(f"nothing older than torch-{version} is recorded", code="not-recorded")
    own = replace(
        corpus, manifests=tuple(_only(manifest, corpus) for manifest in evidence.corpus.manifests if manifest.release == version)
    )
    base = max(recorded.values(), key=lambda reader: Release(reader.release))
    mine = {fixture.id for manifest in own.manifests for fixture in manifest.fixtures}
    asked = mine | corpus.fixtures.keys()
    fresh = next(item for item in evidence.recorded.values() if item.release == version)
    known = {probe.name for probe in corpus.deprecations}
    result = DayBefore(
        release=release,
        gone=gone,
        evidence=replace(
            evidence,
            policy=replace(policy, calendar=Calendar([*policy.calendar, release])),
            corpus=corpus,
            recorded={name: _of(item, corpus.fixtures.keys(), known) for name, item in recorded.items()},
            as_of=release.date,
            files={},
            operators=RecordedOperators(operators[0], operators[1], ""),
        ),
        operators=operators,
        texts=texts,
        base=base,
        own=own,
        fresh=_of(fresh, asked, known),
        older=replace(_of(base, mine, frozenset()), probes={}),
        unwritten=tuple(sorted({recipe.name for recipe in evidence.corpus.recipes} - {recipe.name for recipe in corpus.recipes})),
    )
    if problems := leaks(result):
        raise CorpusError(
            f"still contains {count_of(len(problems), 'record')} of torch-{version} or later: {problems[0]}",
            where=f"the evidence from the day before torch-{version}",
            hint="harness/torch_compat/replay/before.py must remove these records; fix it there",
            code="leak",
        )
    return result


def _of(reader: ObservedReader, fixtures: Iterable[str], probes: Iterable[str]) -> ObservedReader:
    """Restrict a reader's observations to some archives and some deprecation probes."""
    some, known = frozenset(fixtures), frozenset(probes)
    return replace(
        reader,
        cells={place: cell for place, cell in reader.cells.items() if place[0] in some},
        deprecations={name: deprecation for name, deprecation in reader.deprecations.items() if name in known},
    )


def _corpus(corpus: Corpus, gone: frozenset[str], probes: frozenset[str]) -> Corpus:
    """A corpus without some releases, the recipes that begin with one of them, and the probes of features deprecated only then."""
    left = replace(
        corpus,
        recipes=tuple(recipe for recipe in corpus.recipes if recipe.since not in gone),
        deprecations=tuple(
            deprecation for deprecation in corpus.deprecations if deprecation.name not in probes and deprecation.since not in gone
        ),
    )
    return replace(left, manifests=tuple(_only(manifest, left) for manifest in corpus.manifests if manifest.release not in gone))


def _only(manifest: Manifest, corpus: Corpus) -> Manifest:
    """A manifest restricted to the recipes of a corpus."""
    names = {recipe.name for recipe in corpus.recipes}
    return replace(
        manifest,
        fixtures=tuple(fixture for fixture in manifest.fixtures if fixture.recipe in names),
        not_writable=tuple(refusal for refusal in manifest.not_writable if refusal.recipe in names),
    )


# ------------------------------------------------------------------------------------------------------------------ names


def _pattern(gone: frozenset[str], kept: Iterable[str]) -> re.Pattern[str]:
    """A pattern that matches the removed releases, and the minor lines with no remaining release, wherever a text names one."""
    lines = {_line(item) for item in gone} - {_line(item) for item in kept}
    names = sorted({*gone, *lines}, key=len, reverse=True)
    return re.compile(rf"(?<![\d.\w-])(?:{'|'.join(map(re.escape, names))})(?!\d|\.\d)")


def _line(version: str) -> str:
    return ".".join(map(str, Release(version).numbers[:2]))


def _unnamed(policies: Path, gone: frozenset[str]) -> dict[str, str]:
    """Remove the names of releases from the remaining policy; return the text of every file."""
    texts: dict[str, str] = {}
    kept = [
        part.version
        for path in policies.glob("*.toml")
        for part in _tables(path)
        if part.header == "[[release]]" and not part.is_planned
    ]
    names = _pattern(gone, kept)
    for path in sorted(item for item in policies.rglob("*") if item.is_file()):
        text = read_whole(path).decode("utf-8")
        if path.suffix == ".toml":
            parts = []
            for part in split_tables(text):
                if part.is_planned or (part.header in UNEXPLAINED and names.search(part.body)):
                    parts.append(TableText("", "", "\n"))
                elif part.header in {"[[release]]", "[[package]]"}:  # versions of packages are not releases of torch
                    parts.append(part)
                else:
                    parts.append(replace(part, body=names.sub(LATER, part.body), rest=names.sub(LATER, part.rest)))
            changed = joined(parts)
            if changed != text:
                put(path, changed, encoding="utf-8")
            text = changed
        texts[path.relative_to(policies).as_posix()] = text
    return texts


def _tables(path: Path) -> list[TableText]:
    return split_tables(read_whole(path).decode("utf-8"))


def leaks(day: DayBefore) -> list[str]:
    """Everything in the evidence from before a release that belongs to or names the release or a later one."""
    gone = day.gone
    known = [item.version for item in day.evidence.policy.calendar if item.version not in gone]
    names = _pattern(gone, known)
    results = []
    for name, text in sorted(day.texts.items()):
        for number, line in enumerate(STATED.sub("", text).splitlines(), 1):
            if match := names.search(line):
                results.append(f"policies/torch/{name}, line {number}, names {match[0]}")
    evidence = day.evidence
    results += [f"{name} is recorded as a reader" for name, item in evidence.recorded.items() if item.release in gone]
    results += [
        f"{manifest.release} is recorded as a writer" for manifest in evidence.corpus.manifests if manifest.release in gone
    ]
    results += [
        f"the recipe {recipe.name} applies from {recipe.since} on" for recipe in evidence.corpus.recipes if recipe.since in gone
    ]
    results += [
        f"the probe {deprecation.name} applies from {deprecation.since} on"
        for deprecation in evidence.corpus.deprecations
        if deprecation.since in gone
    ]
    for name, reader in evidence.recorded.items():
        archives = {place[0] for place in reader.cells} - evidence.corpus.fixtures.keys()
        results += [f"{name} read {archive}" for archive in sorted(archives)]
    policy = evidence.policy
    stated = [("change", change.id, change.since) for change in policy.changes]
    stated += [("operator waiver", waiver.id, waiver.since) for waiver in policy.operator_waivers]
    stated += [
        ("planned release", item.version, item.version) for item in policy.planned if Release(item.version) >= day.release.parsed
    ]
    results += [
        f"the {kind} {name} applies from {since} on" for kind, name, since in stated if since in gone or kind == "planned release"
    ]
    if policy.accepted is not None:
        results += [f"waivers.lock accepts {release}" for release in policy.accepted.known.releases if release in gone]
    for history in day.operators:
        results += [f"{history.path.name} mentions {release}" for release in history.releases if release in gone]
    return results
