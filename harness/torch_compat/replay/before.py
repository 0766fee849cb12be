"""The tree as it was before some releases: what they wrote, what they read and what was said of them is taken out.

It is the reverse of admitting a release, and is there to rehearse that. Everything that is measured goes: calendar entries, fixtures
with their pins, observations by these releases and of their fixtures, surveys. What people decided is changed only as far as it names
a release that is gone, so that the policy can be read. The locks lose the entries of tables that go, and that of waivers every cell of
these releases; the others stay. What is generated, the counts among it, is for the caller to generate again.
"""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from torch_compat.corpus.corpus import FROZEN, read_frozen, write_frozen
from torch_compat.corpus.manifest import MANIFEST, Manifest, read_manifest, release_folder, write_manifest
from torch_compat.corpus.recipes import read_recipe
from torch_compat.corpus.recorded import read_recorded, write_recorded
from torch_compat.corpus.surveys import drop_surveys
from torch_compat.errors import CorpusError, UsageError
from torch_compat.places import inside, read_whole
from torch_compat.policy.accepted import WAIVERS_LOCK, read_accepted
from torch_compat.policy.calendar_files import TableText, drop_releases, joined, split_tables, written_calendar
from torch_compat.policy.counts import LOCK, counted_tables, lock_text, read_lock, rewritten
from torch_compat.policy.source import read_folder
from torch_compat.releases.data import parsed
from torch_compat.releases.release import Release
from torch_compat.releases.sets import Interval, ReleaseSet
from torch_compat.writes import put

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["remove_from_policies", "remove_releases"]

BEGINNINGS: Final = ("release", "since")
"""Keys that name the release from which a table applies. If that release is removed, so is the table."""
MILESTONES: Final = ("read_from", "written_from")
"""Like the keys above, for tables that also contain a date."""
FINDINGS: Final = re.compile(r"^findings = \[.*?\]\n", re.MULTILINE | re.DOTALL)
COVERS: Final = re.compile(r"^covers = \[\n?(.*?)\]\n(?=[a-z]|\Z)", re.MULTILINE | re.DOTALL)
PART: Final = re.compile(r"^ *\{.*\},?\n?", re.MULTILINE)
SIDES: Final = re.compile(r'\b(writers|readers) = "([^"]*)"')
SETS: Final = ("readers", "writers")
SAYING: Final = re.compile(r'^( *\{ (?:[^\n]*, )?(?:readers|releases) = ")([^"\n]*)("[^\n]*\},?\n)', re.MULTILINE)
"""The text of a warning or wording, or the version of a package."""
LAYOUT: Final = re.compile(r"^(?:writers|says) = .*\n", re.MULTILINE)
UNCLEAR: Final = re.compile(r'\{ readers = "([^"]*)"(, [^{}]*)\}(?:, )?')
BESIDES: Final = re.compile(r"^besides = .*$", re.MULTILINE)
UNTIL: Final = re.compile(r'^read_until = \{ release = "([^"]*)".*\n', re.MULTILINE)
ENDS: Final = re.compile(r'^(?:dropped|old) = "([^"]*)"\n', re.MULTILINE)
"""For an upgrader, the releases with the old behavior, and those that dropped it."""
LINKS: Final = re.compile(r"^(waivers|deprecations) = \[(.*?)\]\n", re.MULTILINE | re.DOTALL)
"""Other entries that a change, a deprecation or a format refers to."""
LINK: Final = re.compile(r'^alternative_deprecation = "([^"]*)"\n', re.MULTILINE)
"""The deprecation of the alternative to a deprecated feature."""
WARNING: Final = re.compile(r"^warning = .*\n", re.MULTILINE)
ANNOUNCED: Final = re.compile(r'^announced = \{ release = "([^"]*)".*\n', re.MULTILINE)
EVENTS: Final = "[[deprecation.events]]"
WAIVER: Final = "[waiver]"


def remove_releases(root: Path, releases: Iterable[str], *, keep_programs: bool = False) -> None:
    """Take releases out of a tree, in place: work on a copy.

    Parameters:
        root: a tree with policies/, fixtures/ and reports/observations/.
        releases: versions, each of which the calendar has.
        keep_programs: whether recipes stay that none of the other releases can write, and probes of what was deprecated only since, with
            what is recorded of them. People wrote these programs, so they are there when the release comes back.

    Raises:
        UsageError: the calendar does not have one of them, or would have none left.
        CorpusError: something that is recorded cannot be read.
    """
    gone = frozenset(releases)
    probes = remove_from_policies(inside(root, "policies/torch"), gone)
    if keep_programs:
        probes = frozenset()
    for probe in probes:
        inside(root, f"fixtures/deprecations/{probe}.py").unlink(missing_ok=True)
    _fixtures(inside(root, "fixtures"), gone)
    if not keep_programs:
        _recipes(inside(root, "fixtures"), gone)
    _observations(inside(root, "reports/observations"), gone, probes)
    drop_surveys(inside(root, "fixtures"), gone)
    _predictions(inside(root, "reports/predictions.md"), gone)


def remove_from_policies(policies: Path, releases: Iterable[str]) -> frozenset[str]:
    """Take releases out of the files and locks of a policy, in place.

    Returns:
        The probes of deprecations of which nothing had happened before.

    Raises:
        UsageError: the calendar does not have one of the releases, or would have none left.
    """
    calendar = written_calendar(policies)
    gone = frozenset(releases)
    for release in sorted(gone):
        if release not in calendar:
            raise UsageError(f"the release calendar has no torch release {release!r}", code="unknown-release")
    kept = tuple(release.parsed for release in calendar if release.version not in gone)
    if not kept:
        raise UsageError("no release would be left in the calendar", code="no-calendar")
    leaving = _Gone(gone, kept)
    probes = _policies(policies, leaving)
    _locks(policies, leaving)
    return probes


# ------------------------------------------------------------------------------------------------------------ what is recorded


def _fixtures(fixtures: Path, gone: frozenset[str]) -> None:
    folders = {release_folder(release) for release in gone}
    for release in gone:
        folder = inside(fixtures, release_folder(release))
        if (folder / MANIFEST).is_file():  # first empty: values that newer releases name as well move to the oldest of these
            write_manifest(folder / MANIFEST, Manifest(release, {}, (), ()))
        shutil.rmtree(folder, ignore_errors=True)
    path = inside(fixtures, FROZEN)
    if path.is_file():
        write_frozen(path, {name: pin for name, pin in read_frozen(path).items() if name.partition("/")[0] not in folders})


def _recipes(fixtures: Path, gone: frozenset[str]) -> None:
    """Take out the recipes that begin with a release that is gone; of them the others have nothing but that they cannot write them."""
    found = [
        recipe
        for path in sorted(fixtures.glob("recipes/*.py"))
        if (recipe := read_recipe(inside(fixtures, f"recipes/{path.name}"))).since in gone
    ]
    names = {recipe.name for recipe in found}
    for recipe in found:
        recipe.path.unlink()
    for path in sorted(fixtures.glob(f"torch-*/{MANIFEST}")) if names else ():
        manifest = read_manifest(path)
        fixtures_left = tuple(entry for entry in manifest.fixtures if entry.recipe not in names)
        not_writable = tuple(entry for entry in manifest.not_writable if entry.recipe not in names)
        used = {one.writer for one in fixtures_left} | {one.writer for one in not_writable}
        writers = {name: identity for name, identity in manifest.writers.items() if name in used}
        write_manifest(path, replace(manifest, writers=writers, fixtures=fixtures_left, not_writable=not_writable))
    path = inside(fixtures, FROZEN)
    if names and path.is_file():
        write_frozen(path, {name: pin for name, pin in read_frozen(path).items() if name.partition("/")[2] not in names})


def _observations(folder: Path, gone: frozenset[str], probes: frozenset[str]) -> None:
    folders = {release_folder(release) for release in gone}
    recorded = read_recorded(folder)
    for name, why in sorted(recorded.unreadable.items()):
        raise CorpusError(f"cannot be used: {why}", where=str(folder / name), code="unreadable-file")
    left = []
    for observed in recorded.readers.values():
        if observed.release not in gone:
            cells = {cell: one for cell, one in observed.cells.items() if cell[0].partition("/")[0] not in folders}
            deprecations = {name: one for name, one in observed.deprecations.items() if name not in probes}
            left.append(replace(observed, cells=cells, deprecations=deprecations))
    write_recorded(folder, left)


def _predictions(path: Path, gone: frozenset[str]) -> None:
    """Without the rows of these releases the document counts as not current, and counting it anew takes minutes: that is all."""
    if path.is_file():
        rows = tuple(f"| {release} |" for release in gone)
        lines = read_whole(path).decode("utf-8").splitlines(keepends=True)
        put(path, "".join(line for line in lines if not line.startswith(rows)), encoding="utf-8")


# ------------------------------------------------------------------------------------------------------------- what is decided


@dataclass(frozen=True)
class _Gone:
    """Releases that are gone, and those that are left, oldest first."""

    releases: frozenset[str]
    kept: tuple[Release, ...]

    @cached_property
    def lines(self) -> frozenset[str]:
        """The minor lines, ``2.6``, of which no release is left."""
        gone, kept = ({".".join(map(str, one.numbers[:2])) for one in some} for some in (map(Release, self.releases), self.kept))
        return frozenset(gone - kept)

    def has(self, name: object) -> bool:
        """Whether a release is gone, or all of a minor line that is named so."""
        return name in self.releases or name in self.lines

    def before(self, release: Release) -> Release | None:
        """The newest release that is left and older than one that is gone."""
        return next((known for known in reversed(self.kept) if known < release), None)

    def after(self, release: Release) -> Release | None:
        """The oldest release that is left and newer than one that is gone."""
        return next((known for known in self.kept if known > release), None)

    def without(self, text: str) -> str:
        """The text of a set of releases in which none is named that is gone; ``none`` where nothing is left of it."""
        found = ReleaseSet.parse(text)
        if not found.ends & self.releases:
            return text
        return str(ReleaseSet(left for interval in found.intervals if (left := self._interval(interval)) is not None))

    def _interval(self, interval: Interval) -> Interval | None:
        """The interval with other ends, where those are gone; None where nothing is left of it."""
        first, last, with_first, with_last = interval
        if first is not None and first.public in self.releases:
            first = self.after(first) if with_first else self.before(first)
            if first is None and with_first:
                return None
        if last is not None and last.public in self.releases:
            last = self.before(last) if with_last else self.after(last)
            if last is None and with_last:
                return None
        if first is not None and last is not None and (last < first or (first == last and not (with_first and with_last))):
            return None
        return Interval(first, last, with_first or first is None, with_last or last is None)


def _locks(policies: Path, gone: _Gone) -> None:
    """Take what is gone out of the locks; counting the rest anew is for the caller."""
    lock = read_lock(policies)
    if lock.text is not None:
        kept = rewritten(lock, (), {}, counted_tables(read_folder(policies).entries))
        put(inside(policies, LOCK), lock_text(kept), encoding="utf-8")
    accepted = read_accepted(policies)
    if accepted is not None:
        waivers = {path.stem for path in policies.glob("waivers/*.toml")}
        left = accepted.of(accepted.known.without(gone.releases), waivers)
        left = replace(left, findings={key: said for key, said in left.findings.items() if not _is_of(key[1], gone)})
        put(inside(policies, WAIVERS_LOCK), left.text, encoding="utf-8")


def _policies(policies: Path, gone: _Gone) -> frozenset[str]:
    """Take releases out of the policy; the probes of deprecations of which nothing had happened before."""
    probes = set()
    names = re.compile(rf"(?:{'|'.join(map(re.escape, sorted(gone.releases)))})(?!\d)")
    for path, text in drop_releases(policies, gone.releases).items():
        put(path, text, encoding="utf-8")
    for path in sorted(policies.rglob("*.toml")):
        text = read_whole(path).decode("utf-8")
        if not names.search(text):
            continue
        alone = path.parent != policies
        changed = _file(text, gone, alone=alone)
        if changed is None:
            path.unlink()
            probes.add(parsed(text, str(path)).get("deprecation", {}).get("probe"))
        elif changed != text:
            put(path, changed, encoding="utf-8")
    _links(policies)
    return frozenset(probes - {None})


def _links(policies: Path) -> None:
    """Take out links to waivers and deprecations that went with the releases."""
    known = {kind: {path.stem for path in policies.glob(f"{kind}/*.toml")} for kind in ("waivers", "deprecations")}
    for path in sorted(policies.rglob("*.toml")):
        text = read_whole(path).decode("utf-8")

        def left(found: re.Match[str]) -> str:
            names = [one for one in json.loads(f"[{found[2].strip().rstrip(',')}]") if one in known[found[1]]]
            return f"{found[1]} = {json.dumps(names)}\n" if names else ""

        changed = LINK.sub(lambda found: found[0] if found[1] in known["deprecations"] else "", LINKS.sub(left, text))
        if changed != text:
            put(path, changed, encoding="utf-8")


def _file(text: str, gone: _Gone, *, alone: bool) -> str | None:
    """The text of a policy file without what is gone; None where nothing is left of the one table that it is for.

    Parameters:
        alone: whether the file holds one waiver or deprecation, and goes with it.
    """
    parts: list[TableText] = []
    for number, part in enumerate(split_tables(text)):
        changed = _table(part, gone) if part.header else part
        if changed is None:
            if alone and number <= 1:
                return None
            changed = TableText("", "", part.rest if part.rest.strip() else "")
        parts.append(changed)
    if EVENTS in text:
        events = [part.body for part in parts if part.header == EVENTS]
        if not events:
            return None
        if not any('"warned"' in event for event in events):
            parts = [replace(part, body=WARNING.sub("", part.body)) if part.header else part for part in parts]
    return joined(parts)


def _table(part: TableText, gone: _Gone) -> TableText | None:
    """A table without what is gone; None where it began with it, or holds for nothing else."""
    table = _innermost(parsed(part.body, part.header))
    if any(gone.has(table.get(key)) for key in BEGINNINGS):
        return None
    if any(_begins(table.get(key)) in gone.releases for key in MILESTONES):
        return None
    body = part.body
    if part.header == WAIVER:
        body = COVERS.sub(lambda found: _covers(found[1], gone), body)
        findings = [one for one in table.get("findings", ()) if not _is_of(one, gone)]
        if findings != list(table.get("findings", ())):
            listed = "".join(f"    {json.dumps(one)},\n" for one in findings)
            body = FINDINGS.sub(lambda _: f"findings = [\n{listed}]\n" if findings else "", body)
        left_over = _innermost(parsed(body, part.header))
        return replace(part, body=body) if "covers" in left_over or "findings" in left_over else None
    for key in SETS:
        stated = table.get(key)
        if isinstance(stated, str):
            left = gone.without(stated)
            if left == "none" != stated:
                if key != "writers" or "says" not in table:
                    return None
                body = LAYOUT.sub("", body)  # nobody writes what others did not load; who loads it stays
                continue
            body = re.sub(rf'^{key} = "[^"]*"$', f'{key} = "{left}"', body, flags=re.MULTILINE)
    if "unclear" in table:
        body = UNCLEAR.sub(lambda found: _unclear(found, gone), body).replace(", ]", "]")
    if "besides" in table:
        besides = [one for one in table["besides"] if one not in gone.releases]
        body = BESIDES.sub(f"besides = {json.dumps(besides)}", body)
    if "beside" in table:
        body = SAYING.sub(lambda found: _saying(found, gone), body)
    if isinstance(table.get("says"), list):
        body = SAYING.sub(lambda found: _saying(found, gone), body)
        if len(_innermost(parsed(body, part.header))["says"]) < (2 if table.get("kind") == "error" else 1):
            return None
    body = UNTIL.sub(lambda found: _until(found, gone), body)
    body = ENDS.sub(lambda found: "" if found[1] in gone.releases else found[0], body)
    return replace(part, body=ANNOUNCED.sub(lambda found: "" if found[1] in gone.releases else found[0], body))


def _is_of(finding: str, gone: _Gone) -> bool:
    """Whether a finding is of a release that is gone: its subject ends with "@" and the release."""
    return finding.rpartition("@")[2] in gone.releases


def _saying(found: re.Match[str], gone: _Gone) -> str:
    """A line of what releases say, without those that are gone; empty where nobody else says it."""
    left = gone.without(found[2])
    return "" if left == "none" else f"{found[1]}{left}{found[3]}"


def _unclear(found: re.Match[str], gone: _Gone) -> str:
    """An entry of ``unclear`` without what is gone; empty where it was about nothing else."""
    left = gone.without(found[1])
    return "" if left == "none" else found[0].replace(found[1], left, 1)


def _until(found: re.Match[str], gone: _Gone) -> str:
    """The line of the last reader of a format. Where no newer release is left, nobody can know yet that it was the last."""
    if found[1] not in gone.releases:
        return found[0]
    last = Release(found[1])
    before = gone.before(last)
    return f'read_until = {{ release = "{before}" }}\n' if before and gone.after(last) else ""


def _covers(text: str, gone: _Gone) -> str:
    """What a waiver covers without what is gone; empty where it was about nothing else."""
    parts = []
    for part in PART.findall(text):
        sides = {key: gone.without(releases) for key, releases in SIDES.findall(part)}
        if "none" not in sides.values():
            parts.append(SIDES.sub(lambda found: f'{found[1]} = "{gone.without(found[2])}"', part))
    return f"covers = [\n{''.join(parts)}]\n" if parts else ""


def _innermost(document: dict[str, Any]) -> dict[str, Any]:
    """The table of a part: ``[[deprecation.events]]`` alone is a table in a table."""
    ((_, found),) = document.items()
    table: dict[str, Any] = found[0] if isinstance(found, list) else found
    if len(table) == 1:
        (inner,) = table.values()
        if isinstance(inner, list) and inner and isinstance(inner[0], dict):
            return _innermost(table)
    return table


def _begins(milestone: Any) -> Any:
    return milestone.get("release") if isinstance(milestone, dict) else milestone
