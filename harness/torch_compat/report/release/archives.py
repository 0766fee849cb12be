"""The changes for archives between two releases: the recorded cells of both, one archive at a time."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from torch_compat.corpus.grid import asked_writers
from torch_compat.corpus.manifest import SYNTHETIC, Fixture, NotWritable
from torch_compat.judging.cell import Outcome
from torch_compat.judging.cells import in_words, kind_of
from torch_compat.judging.differences import Differences
from torch_compat.judging.judgement import Verdict
from torch_compat.operators.call_signature import bare
from torch_compat.releases.release import Release
from torch_compat.report.release.items import FactRecord, Section, Shown, Span, short
from torch_compat.report.release.snippets import call_of, raised, returned, snippet
from torch_compat.values.compare import all_differences
from torch_compat.values.normalise import alike, headline
from torch_compat.words import count_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch_compat.judging.cell import Cells
    from torch_compat.judging.evidence import Evidence
    from torch_compat.judging.findings import Named
    from torch_compat.report.release.snippets import CallTurn

__all__ = ["Missing", "archive_parts", "recorded_readers"]

KEPT: Final = frozenset({Outcome.SAME, Outcome.CLOSE})
UNTOLD: Final = frozenset({Outcome.UNSUPPORTED, Outcome.UNAVAILABLE})
SECTIONS: Final = {
    Outcome.DIFFERENT: Section.SILENT,
    Outcome.REFUSED: Section.REFUSED,
    Outcome.RAISED: Section.REFUSED,
    Outcome.CRASHED: Section.CRASHED,
    Outcome.TIMED_OUT: Section.CRASHED,
    Outcome.UNSTABLE: Section.CRASHED,
    Outcome.RELAXED: Section.ACCEPTED,
}
DID: Final = {
    Outcome.DIFFERENT: "computes different values",
    Outcome.REFUSED: "refuses to load",
    Outcome.RAISED: "loads, then raises",
    Outcome.CRASHED: "crashes",
    Outcome.TIMED_OUT: "does not finish",
    Outcome.UNSTABLE: "gives varying results",
    Outcome.RELAXED: "returns values where the writer raised",
}
_WITH_RESULTS: Final = frozenset({Outcome.DIFFERENT, Outcome.RAISED, Outcome.RELAXED})
_LOADED: Final = frozenset({"error", "crashed", "timed-out", "unstable", "unsupported"})
"""The contents of a golden whose writer did not read the archive back. Such a golden has no values to compare."""


@dataclass(frozen=True)
class Missing:
    """Archives that could not be checked: how many, and why."""

    count: int
    why: str


class _Cause(NamedTuple):
    """The cause of a cell's outcome.

    Attributes:
        waiver: the waiver that covers it; "" if there is none.
        kind: the key that distinguishes causes.
        text: the cause in one line.
        finding: the id of the finding; "" if no rule reports it.
        fails: whether it is neither waived nor expected.
    """

    waiver: str
    kind: tuple[str, str]
    text: str
    finding: str = ""
    fails: bool = False


class _Note(NamedTuple):
    """One cell of the older or of the newer release in which something begins.

    Attributes:
        before: the result of the older release for the same archive or its own; None if only the older release is involved.
        reader: the release whose cell shows it.
        older: whether that is the older release, with an archive of a newer release.
    """

    section: Section
    cause: _Cause
    fixture: Fixture
    before: Cells | None
    after: Cells
    reader: str
    older: bool = False

    @property
    def again(self) -> bool:
        """Whether both releases return values that differ from the written ones and from each other."""
        return self.before is not None and self.before.outcome is self.after.outcome is Outcome.DIFFERENT


class _Told(NamedTuple):
    """One difference from the written results.

    Attributes:
        place: the key that distinguishes it from other differences: its kind, its location, and the complete other value.
    """

    kind: str
    text: str
    place: str


@dataclass
class _Found:
    """The cells of one cause, collected one by one.

    Attributes:
        smallest: the archive that represents all cells, with the results of the older and the newer release.
    """

    section: Section
    titles: dict[str, None] = field(default_factory=dict)
    archives: set[str] = field(default_factory=set)
    newer: int = 0
    older: int = 0
    findings: set[str] = field(default_factory=set)
    open: bool = False
    bumped: set[str] = field(default_factory=set)
    by: list[str] = field(default_factory=list)
    smallest: _Note | None = None


def recorded_readers(evidence: Evidence) -> tuple[str, ...]:
    """The releases with recorded readings of archives, oldest first."""
    return tuple(dict.fromkeys(reader.release for reader in evidence.readers))


def archive_parts(evidence: Evidence, named: Iterable[Named], since: str, release: str) -> tuple[list[FactRecord], list[Missing]]:
    """All differences between a release and an older one in the handling of archives, by cause; and what cannot be compared.

    Parameters:
        since: the older release; both must have read archives.
    """
    return _Between(evidence, named, since, release).parts()


class _Between:
    def __init__(self, evidence: Evidence, named: Iterable[Named], since: str, release: str) -> None:
        self._evidence = evidence
        self._since, self._release = since, release
        self._differences = Differences(evidence)
        self._bits = {
            name: evidence.readers.where(lambda reader, name=name: reader.release == name)  # type: ignore[misc]
            for name in recorded_readers(evidence)
            if Release(since) <= Release(name) <= Release(release)
        }
        both = self._bits[since] | self._bits[release]
        self._named: defaultdict[tuple[str, str], list[Named]] = defaultdict(list)
        for item in named:
            cells = item.judgement.cells
            if cells is not None and cells.readers & both:
                self._named[cells.fixture.id, cells.options.id].append(item)
        self._titles = {waiver.id: (waiver.title, waiver.reason) for waiver in evidence.policy.waivers}
        self._found: dict[tuple[str, Section], _Found] = {}
        self._notes: list[_Note] = []
        self._missing: defaultdict[str, int] = defaultdict(int)

    def parts(self) -> tuple[list[FactRecord], list[Missing]]:
        old, new = Release(self._since), Release(self._release)
        for (fixture_id, options), line in self._evidence.by_line.items():
            fixture = self._evidence.corpus.fixtures[fixture_id]
            before, after = self._of(line, self._since), self._of(line, self._release)
            if fixture.release == SYNTHETIC or Release(fixture.release) <= old:
                self._backward(fixture, options, before, after)
            elif Release(fixture.release) <= new:
                self._forward(fixture, options, before, after)
        self._unwritten()
        self._gather()
        results = [self._part(key, item) for (key, _), item in self._found.items()]
        return results, [Missing(count, why) for why, count in sorted(self._missing.items())]

    def _of(self, line: Iterable[Cells], release: str) -> Cells | None:
        """The result of a release for an archive; None if nothing is recorded."""
        bits = self._bits[release]
        return next((cells for cells in line if cells.readers & bits and cells.outcome not in UNTOLD), None)

    # ------------------------------------------------------------------------------------------------ which cells changed

    def _backward(self, fixture: Fixture, options: str, before: Cells | None, after: Cells | None) -> None:
        """Compare the results for an archive that existed before both releases."""
        if before is None or after is None:
            if options == "default" and (before is None) != (after is None):
                lacking = self._since if before is None else self._release
                self._missing[f"archives that were not tested with {lacking}"] += 1
            return
        if not self._changed(before, after):
            return
        self._begins(fixture, before, after)

    def _begins(self, fixture: Fixture, before: Cells, after: Cells) -> None:
        if after.outcome in KEPT:
            cause = self._cause(before, self._since)
            self._notes.append(_Note(Section.MENDED, cause, fixture, before, after, self._since))
        else:
            cause = self._cause(after, self._release)
            self._notes.append(_Note(self._section(after, before), cause, fixture, before, after, self._release))

    def _section(self, cells: Cells, other: Cells | None = None) -> Section:
        """The section for the result of a release. Different values are silent; another error, or a value instead of one, is not."""
        if cells.outcome is not Outcome.DIFFERENT:
            return SECTIONS[cells.outcome]
        theirs = {told.place for told in self._differences_of(other)} if other is not None else set()
        kinds = {told.kind for told in self._differences_of(cells) if told.place not in theirs}
        if not kinds or not kinds <= {"raised", "relaxed", "error"}:
            return Section.SILENT
        return Section.ACCEPTED if kinds == {"relaxed"} else Section.REFUSED

    def _changed(self, before: Cells, after: Cells) -> bool:
        """Whether something begins here: not just another wording of the same refusal, or the same differing value again."""
        if before is after or (before.outcome in KEPT and after.outcome in KEPT):
            return False
        if before.outcome is not after.outcome:
            return True
        if after.outcome is not Outcome.DIFFERENT:
            return False
        return self._differences.digest(before) != self._differences.digest(after)

    def _forward(self, fixture: Fixture, options: str, before: Cells | None, after: Cells | None) -> None:
        """Check an archive newer than the older release: whether the older release reads it, and whether its writer still reads itself.

        Nothing begins here if the older release never wrote the recipe in this way, or did not read it back.
        """
        if fixture.release != self._release and fixture.release in self._bits:  # written in between: its writer read it back
            then = self._of(self._evidence.by_line[fixture.id, options], fixture.release)
            if then is not None and after is not None and self._changed(then, after):
                self._begins(fixture, then, after)
        mine = self._evidence.by_line.get((f"torch-{self._since}/{fixture.recipe}", options))
        own = self._of(mine, self._since) if mine else None
        if own is None:
            return
        if fixture.release == self._release and after is not None and self._changed(own, after):
            self._begins(fixture, own, after)
        if before is None or before.outcome in KEPT or own.outcome not in KEPT:
            return
        cause = self._cause(before, self._since)
        section = self._section(before)
        if before.outcome in {Outcome.REFUSED, Outcome.RAISED, Outcome.RELAXED}:  # not promised, but worth knowing
            text = f"{self._since} {DID[before.outcome]} newer archives: {before.message or fixture.recipe}"
            section, cause = Section.FORMATS, _Cause("", ("older", alike(before.message) or fixture.recipe), text)
        self._notes.append(_Note(section, cause, fixture, None, before, self._since, older=True))

    def _unwritten(self) -> None:
        """Find recipes that only one of the two releases can write. A reduced grid may end before the newer release; that is not a gap."""
        wrote = {entry.recipe: entry for entry in self._evidence.corpus.entries if entry.release == self._since}
        asked = {entry.recipe: entry for entry in self._evidence.corpus.entries if entry.release == self._release}
        policy = self._evidence.policy
        unasked = {
            item.name
            for item in self._evidence.corpus.recipes
            if item.reduced and self._release not in asked_writers(policy, item)
        }
        for recipe, old in sorted(wrote.items()):
            new = asked.get(recipe)
            if new is None and recipe in unasked:
                continue
            if new is None:
                self._missing[f"recipes that were not run with {self._release}"] += 1
            elif isinstance(old, Fixture) and isinstance(new, NotWritable):
                message = headline(new.message)
                result = self._entry(f"unwritable:{alike(message)}", Section.REFUSED)
                result.titles[short(f"can no longer be written: {recipe}: {message}")] = None
                result.archives.add(old.id)
            elif isinstance(old, NotWritable) and isinstance(new, Fixture):
                result = self._entry(f"unwritable:{alike(headline(old.message))}", Section.MENDED)
                result.titles[short(f"can now be written: {recipe} ({self._since}: {headline(old.message)})")] = None
                result.archives.add(new.id)

    # ----------------------------------------------------------------------------------------------------- what is noted

    def _cause(self, cells: Cells, release: str) -> _Cause:
        """The cause of a release's result for an archive, according to the rules; if no rule reports it, according to the outcome."""
        bits = self._bits[release]
        for named in self._named.get((cells.fixture.id, cells.options.id), ()):
            shown, cause = named.judgement.cells, named.judgement.cause
            if shown is not None and shown.readers & bits and cause is not None:
                fails = named.judgement.verdict is Verdict.FAIL
                return _Cause(named.waiver, (cause.what, cause.subject), cause.text, named.id, fails)
        text = cells.message or f"{cells.fixture.recipe}: {DID.get(cells.outcome, cells.outcome)}"
        return _Cause("", kind_of(cells), text)

    def _entry(self, name: str, section: Section) -> _Found:
        return self._found.setdefault((name, section), _Found(section))

    def _gather(self) -> None:
        """Group notes by cause.

        A cell without a waiver is assigned to the waiver of other cells of its kind in this section, if there is only one. A cell that
        already differed before is assigned to the cause of the other archives of its recipe.
        """
        waivers: defaultdict[tuple[Section, tuple[str, str]], set[str]] = defaultdict(set)
        recipes: defaultdict[str, set[str]] = defaultdict(set)
        for note in self._notes:
            if not note.again:
                waivers[note.section, note.cause.kind].add(note.cause.waiver)
        for note in sorted(self._notes, key=lambda note: note.before is None):
            known = waivers[note.section, note.cause.kind] - {""}
            waiver, change = "" if note.again else note.cause.waiver, ""
            if not waiver and len(known) == 1:
                waiver = next(iter(known))
            if not waiver and Outcome.RELAXED in {note.after.outcome, note.before.outcome if note.before else None}:
                change = self._change(note)
            name = f"waiver:{waiver}" if waiver else change or f"cells:{':'.join(note.cause.kind)}"
            if note.again and not waiver and not change:
                name = f"cells:again:{note.fixture.recipe}"
            if note.before is None and not waiver and len(recipes[note.fixture.recipe]) == 1:
                name = next(iter(recipes[note.fixture.recipe]))  # the same change, seen from the older release
            elif note.before is not None:
                recipes[note.fixture.recipe].add(name)
            self._take(name, note)

    def _change(self, note: _Note) -> str:
        """The stated change that makes one release return a value where the other raises, if exactly one began here; "" otherwise."""
        used = {bare(operator.partition(".")[0]) for operator in note.fixture.operators}
        results = [
            change.id
            for change in self._evidence.policy.changes
            if Release(self._since) < Release(change.since) <= Release(self._release)
            and change.kind in {"accepted", "refused"}
            and used.intersection(change.operators)
        ]
        return f"change:{results[0]}" if len(results) == 1 else ""

    def _take(self, name: str, note: _Note) -> None:
        result = self._entry(name, note.section)
        again = name.startswith("cells:again:")
        text = f"{note.fixture.recipe}: {self._told(note.after, note.before)}" if again else note.cause.text
        result.titles[short(text)] = None
        result.archives.add(note.fixture.id)
        result.newer += not note.older
        result.older += note.older
        result.open |= note.cause.fails
        if note.cause.finding:
            result.findings.add(note.cause.finding)
        result.by.append(self._first(note))
        smallest = result.smallest
        if smallest is None or _place(note) < _place(smallest):
            result.smallest = note

    def _first(self, note: _Note) -> str:
        """The first recorded release between the two that behaves like the newer one."""
        wrote = note.fixture.release
        if note.older or wrote == self._release:
            return wrote
        floor = Release(self._since if wrote == SYNTHETIC or wrote not in self._bits else wrote)
        line = self._evidence.by_line[note.fixture.id, note.after.options.id]
        first = self._release
        for release in reversed([name for name in self._bits if Release(name) > floor]):
            did = self._of(line, release)
            if did is None or self._changed(did, note.after):
                break
            first = release
        return first

    def _part(self, key: str, value: _Found) -> FactRecord:
        kind, _, name = key.partition(":")
        title, why = self._titles.get(name, ("", "")) if kind == "waiver" else ("", "")
        first, *more = value.titles
        if not title:
            title = first + (f", and {len(more)} more like it" if more else "")
        by = min(value.by, key=Release, default=self._release)
        after = max((number for number in self._bits if Release(number) < Release(by)), key=Release, default=self._since)
        prefix = "mended:" if value.section is Section.MENDED else ""
        return FactRecord(
            names=(f"{prefix}{key}",),
            section=value.section,
            rank=0 if kind == "waiver" else 3,
            title=f"Fixed: {title}" if prefix else title,
            source="archives",
            span=Span(after, by),
            says=_counted(value, self._since, self._release),
            archives=frozenset(value.archives),
            newer=value.newer,
            older=value.older,
            why=" ".join(why.split()),
            findings=tuple(sorted(value.findings)),
            open=value.open,
            shown=self._shown(value) if value.smallest else None,
            details=tuple(value.titles),
        )

    def _shown(self, value: _Found) -> Shown:
        assert value.smallest is not None  # noqa: S101 - checked before
        note = value.smallest
        fixture, options = note.fixture, note.after.options.id
        command = f"torch-compat observe --recorded --show --reader torch-{note.reader} --fixture {fixture.id}"
        command += "" if options == "default" else f" --options {options}"
        if note.before is None:  # only the older release, with an archive of the newer one
            before, after = self._told(note.after), "as written"
        else:
            before, after = self._told(note.before, note.after), self._told(note.after, note.before)
        called = next(filter(None, map(call_of, (after, before))), None)
        load = note.after.options.load.given()
        lines = snippet(fixture, load, called)
        outputs = (self._result(note.before or note.after, called), self._result(note.after, called))
        if note.before is None:
            outputs = outputs[0], returned(fixture.golden, called)
        return Shown(fixture.id, options, before, after, command, fixture.size, lines, outputs if lines else ("", ""))

    def _result(self, cells: Cells, called: CallTurn | None) -> str:
        """What a release returns from one call, or from the load."""
        golden = cells.fixture.golden
        if cells.outcome in KEPT:
            return returned(golden, called)
        if cells.outcome in _WITH_RESULTS and cells.observation.departures:
            return returned(cells.observation.own_result(golden), called)
        kind = cells.observation.errors[-1].get("type", "") if cells.observation.errors and not cells.observation.signal else ""
        text = cells.message or DID.get(cells.outcome, str(cells.outcome))
        return raised(kind, text)

    def _told(self, cells: Cells, other: Cells | None = None) -> str:
        """The result of a release for an archive, in one line: of several differences, the first that the other release does not have."""
        if cells.outcome in KEPT:
            return "as written"
        message = self._differences_of(cells)
        others = self._differences_of(other) if other is not None else []
        theirs, texts = {item.place for item in others}, {item.text for item in others}
        first = next((told for told in message if told.place not in theirs), message[0] if message else None)
        if first is None:
            return short(cells.message or DID.get(cells.outcome, str(cells.outcome)))
        return short(
            first.text + (" there, and different elements elsewhere" if first.text in texts and first.place not in theirs else "")
        )

    def _differences_of(self, cells: Cells) -> list[_Told]:
        """The differences from the written results; none if loading was refused or crashed."""
        golden = cells.fixture.golden
        if cells.outcome not in _WITH_RESULTS or not cells.observation.departures or not _LOADED.isdisjoint(golden):
            return []
        told = []
        for difference in all_differences(golden, cells.observation.own_result(golden))[0]:
            expected, got = difference.content
            place = f"{difference.kind} {difference.where} {got!r}"
            if difference.kind == "raised":
                told.append(_Told(difference.kind, f"{difference.where}: raises {in_words(got['type'], got['message'])}", place))
            elif difference.kind == "relaxed":
                wrote = f" (written: {in_words(expected['type'], expected['message'])})" if expected else ""
                told.append(_Told(difference.kind, f"{difference.where}: returns a value{wrote}", place))
            elif difference.kind != "error" and self._evidence.matters(cells.fixture, difference):
                text = f"{difference.where}: {difference.kind} {difference.facts.get('got')} (written: {difference.facts.get('expected')})"
                told.append(_Told(difference.kind, text, place))
        for pair in cells.others:
            text = f"raises {in_words(*pair[2:])} (written: {in_words(*pair[:2])})"
            told.append(_Told("error", text, text))
        return told


def _place(note: _Note) -> tuple[bool, bool, int, str]:
    """The sort key of examples: those of the newer release first, then those that were correct before, then small ones."""
    return note.older, note.again, note.fixture.size, note.fixture.id


def _counted(value: _Found, since: str, release: str) -> str:
    messages = []
    if value.newer:
        messages.append(f"{count_of(value.newer, 'cell')} of {release}")
    if value.older:
        messages.append(f"{count_of(value.older, 'cell')} of {since} with newer archives")
    return ", ".join(messages) or count_of(len(value.archives), "recipe")
