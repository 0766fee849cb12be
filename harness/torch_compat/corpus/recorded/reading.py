"""Reads recorded observations: parses each file, then checks all files against each other, with budgets checked before loops."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from torch_compat.corpus.deprecations import parse_deprecation
from torch_compat.corpus.json_lines import digest
from torch_compat.corpus.manifest import release_folder
from torch_compat.corpus.observations import (
    REFERENCE,
    SAME,
    body_entry,
    body_id,
    parse_body,
    parse_probe,
)
from torch_compat.corpus.recorded.model import (
    SUFFIX,
    Cell,
    Column,
    Group,
    Recorded,
    file_of,
    place_of,
    short_names,
)
from torch_compat.corpus.recorded.parsing import MOST_NAMES, RecordedFile, at_line, read_file
from torch_compat.corpus.recorded.shared_texts import MissingTextError, Texts
from torch_compat.errors import CorpusError
from torch_compat.places import inside
from torch_compat.releases.labels import Labels

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


__all__ = ["read_recorded"]

MOST_CELLS: Final = 20_000_000  # per folder: five times those of 150 releases; more cannot be a recording
MOST_LINES: Final = 200_000  # of fixtures and options in a folder: five times those of 150 releases
FREE_CELLS: Final = 50_000  # allowed for any folder; beyond that, CELLS_PER_BYTE applies
CELLS_PER_BYTE: Final = 4  # over all files: a short span can cover many cells; the repository has one cell per 20 bytes
FREE_LETTERS: Final = 10_000_000  # of the texts in all outcomes and answers of a folder; beyond that, LETTERS_PER_BYTE applies
LETTERS_PER_BYTE: Final = 8  # over all files: a short id can stand for a long text; the repository has one letter per two bytes


def read_recorded(folder: Path) -> Recorded:
    """Read a folder of recorded observations; empty if it does not exist.

    An unreadable file loses its contents and what depends on them; both are listed in ``unreadable``.
    """
    files: list[RecordedFile] = []
    unreadable: dict[str, str] = {}
    room = MOST_NAMES
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        try:
            files.append(read_file(inside(folder, path.name), room))
            room -= len(files[-1].readers)
        except CorpusError as error:
            unreadable[path.name] = str(error)
    files.sort(key=lambda item: place_of(item.label))
    texts = Texts(FREE_LETTERS + LETTERS_PER_BYTE * sum(file.size for file in files))
    whole = []
    for file in files:
        before = texts.known
        texts.known = before | file.texts
        try:
            _make_whole(file, texts)
            whole.append(file)
        except CorpusError as error:
            unreadable[file.path.name] = str(error)
            texts.known = before
    return _Together(whole, unreadable).recorded()


def _make_whole(file: RecordedFile, texts: Texts) -> None:
    """Replace text ids in a file's answers and outcomes by texts of this and older files.

    Raises:
        CorpusError: an outcome is inconsistent or malformed.
    """
    for kind, entries in file.told.items():
        for name, (number, entry) in entries.items():
            with at_line(file.path, number):
                try:
                    if kind == "answer":
                        file.answers[name] = texts.whole(entry)
                    else:
                        file.outcomes[name] = parse_body(texts.whole(entry))
                except MissingTextError as missing:
                    file.torn[name] = f"the text {missing.args[0][:40]}"


@dataclass
class _Lacks:
    """What a file refers to but no other file defines.

    Attributes:
        count: the number of cells and answers affected.
        first: the first missing item in alphabetical order.
    """

    count: int = 0
    first: str = ""

    def add(self, what: str) -> None:
        """Count one more."""
        self.first = min(self.first, what) if self.count else what
        self.count += 1


class _Line:
    """Observations of a fixture under some options: the readers in total, and by subject, load options and outcome."""

    __slots__ = ("groups", "seen", "subject")

    def __init__(self, subject: str | None) -> None:
        self.subject = subject  # that of the fixture, unless a cell has its own
        self.seen = 0
        self.groups: dict[tuple[str, str, str], int] = {}

    def add(self, key: tuple[str, str, str], readers: int) -> None:
        """Record that some readers had the same outcome."""
        self.seen |= readers
        self.groups[key] = self.groups.get(key, 0) | readers


class _Together:
    """Combines files: cells refer to outcomes, fixtures and readers that other files define."""

    def __init__(self, files: list[RecordedFile], unreadable: dict[str, str]) -> None:
        self.files, self.unreadable = files, unreadable
        self.readers = {name: reader for file in files for name, reader in file.readers.items()}
        self.most = min(MOST_CELLS, FREE_CELLS + CELLS_PER_BYTE * sum(file.size for file in files))
        self.order = tuple(sorted(self.readers, key=place_of))
        self.bits = {name: 1 << at for at, name in enumerate(self.order)}
        self.sets: dict[tuple[str, ...], int] = {}  # reader sets by tuple of names
        self.outcomes = {body_id(body_entry(SAME)): SAME}
        self.answers: dict[str, dict[str, Any]] = {}
        self.torn: dict[str, str] = {}
        self.subjects: dict[str, str] = {}
        for file in files:
            self.outcomes |= file.outcomes
            self.answers |= file.answers
            self.torn |= file.torn
            folder = release_folder(file.label.removeprefix("torch-"))
            for recipe, subject in file.subjects.items():
                self.subjects[f"{folder}/{recipe}"] = subject
        self.lines: dict[Cell, _Line] = {}
        self.days: dict[str, dict[str, str]] = {name: {} for name in self.readers}
        self.cells = 0

    def recorded(self) -> Recorded:
        """Return the combined contents."""
        for file in self.files:
            try:
                self._file(file)
            except CorpusError as error:
                self.unreadable[file.path.name] = str(error)
        lines = {
            cell: tuple(
                Group(f"{subject}-{load}", self.outcomes[outcome], mask) for (subject, load, outcome), mask in line.groups.items()
            )
            for cell, line in sorted(self.lines.items())
        }
        readers = {}
        for name in self.order:
            reader, days = self.readers[name], self.days[name]
            days[file_of(name)] = reader.observed
            cells = Column(lines, self.bits[name])
            readers[name] = replace(reader, observed=max(days.values()), days=days, cells=cells)
        total = digest(sorted((file.label, file.sha256) for file in self.files), sorted(self.unreadable.items()))
        return Recorded(readers, self.unreadable, self.order, lines, total)

    def _file(self, file: RecordedFile) -> None:
        """Record the cells of one file.

        Raises:
            CorpusError: it contradicts another file or itself, or refers to something that no other file defines; all other cells are
                recorded.
        """
        lacks = _Lacks()
        for name, (day, seal) in file.shown.items():
            if name in self.readers and self.readers[name].identity_digest != seal:
                what = f"was recorded by a different {name} than the one whose identity is recorded"
                raise CorpusError(what, where=str(file.path), hint="observe it again with --record", code="wrong-reader")
            self.days.setdefault(name, {})[file.label] = day
        for number, kind, name, message in file.asked:
            for asked, answer in message.items():
                probe, _, key = asked.rpartition(":")
                if answer in self.answers:
                    self._answered(file, number, kind, name, probe, key, self.answers[answer])
                else:
                    lacks.add(self.torn.get(answer, f"the answer {answer[:40]}"))
        folders: dict[tuple[str, ...], tuple[str, ...]] = {}  # sets of writers recur
        for number, name, recipes, cells in file.read:
            for writers, place, outcome in self._spread(file, number, file.writers[name], cells, len(recipes)):
                if writers not in folders:
                    folders[writers] = tuple(f"{release_folder(writer)}/" for writer in writers)
                fixtures = [above + recipe for recipe in recipes for above in folders[writers]]
                self._put(file, number, fixtures, place, outcome, (name,), lacks)
        order = sorted(file.shown, key=place_of)
        shown = Labels(short_names(order))
        names = dict(zip(shown.names, order, strict=True))
        full: dict[tuple[str, ...], tuple[str, ...]] = {}  # sets of readers recur
        folder = release_folder(file.label.removeprefix("torch-"))
        for number, recipes, cells in file.wrote:
            fixtures = [f"{folder}/{recipe}" for recipe in recipes]
            for short, place, outcome in self._spread(file, number, shown, cells, len(recipes)):
                if short not in full:
                    full[short] = tuple(names[item] for item in short)
                self._put(file, number, fixtures, place, outcome, full[short], lacks)
        if lacks.count:
            raise CorpusError(
                f"{lacks.count} of its cells and answers {'refers' if lacks.count == 1 else 'refer'} to records that no readable file contains, such as {lacks.first}",
                where=str(file.path),
                hint="restore the missing or damaged files from version control",
                code="incomplete",
            )

    def _answered(
        self, file: RecordedFile, number: int, kind: str, name: str, probe: str, key: str, answer: dict[str, Any]
    ) -> None:
        """Record a reader's answer to a probe."""
        reader = self.readers[name]
        where = f"{file.path}:{number}"
        if not probe or not key:
            what = f"is not a complete entry: has a {kind} {probe[:80]!r} with the key {key[:80]!r}, expected PROBE:KEY:ID"
            raise CorpusError(what, where=where, code="bad-line")
        if probe in (reader.probes if kind == "probe" else reader.deprecations):
            raise CorpusError(f"duplicate observation of the {kind} {probe[:80]}", where=where, code="duplicate")
        try:
            if kind == "probe":
                reader.probes[probe] = parse_probe(probe, {**answer, "key": key})
            else:
                reader.deprecations[probe] = parse_deprecation({**answer, "probe": probe, "key": key})
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            message = str(error) if isinstance(error, ValueError) else f"is not a complete entry: {error!r:.200}"
            raise CorpusError(message, where=where, code="bad-line") from error

    def _spread(
        self, file: RecordedFile, number: int, labels: Labels, cells: list[str], recipes: int
    ) -> Iterator[tuple[tuple[str, ...], list[str], str]]:
        """Yield the labels of every set, with options, load, optional subject, and outcome."""
        with at_line(file.path, number):
            for text in cells:
                place, *rest = text.split(" ")
                parts = place.split(":")
                if len(parts) > 3 or not all(parts) or not rest or len(rest) % 2:
                    raise ValueError(
                        f"contains the cells {text[:80]!r}, expected OPTIONS, OPTIONS:LOAD or OPTIONS:LOAD:SUBJECT, followed by pairs of an outcome and a set"
                    )
                if len(parts) == 1:
                    if place not in file.options:
                        raise ValueError(f"has cells with the load options {place[:80]!r}, which no earlier line declares")
                    parts.append(file.options[place])
                for outcome, spans in zip(rest[::2], rest[1::2], strict=True):
                    names = labels.of(spans)
                    self.cells += len(names) * recipes
                    if self.cells > self.most:
                        what = f"expands to more than {self.most:,} cells, too many for files of this size"
                        raise CorpusError(what, code="too-large")
                    yield names, parts, outcome

    def _put(
        self,
        file: RecordedFile,
        number: int,
        fixtures: list[str],
        place: list[str],
        outcome: str,
        names: tuple[str, ...],
        lacks: _Lacks,
    ) -> None:
        """Record that some readers had the same outcome for some fixtures."""
        options, load, *own = place
        bits, body = self._bits(names), self.outcomes.get(outcome)
        plain = bits and body is not None and body.result != "unsupported"
        for fixture in fixtures:
            cell = fixture, options
            line = self.lines.get(cell)
            if line is None and len(self.lines) < MOST_LINES and plain and (own or fixture in self.subjects):
                line = self.lines[cell] = _Line(self.subjects.get(fixture))
            subject = own[0] if own else line.subject if line is not None else None
            if line is None or subject is None or not plain or line.seen & bits:
                for name in names:  # one by one: the error names the wrong one, and only what follows it is lost
                    self._put_one(file, number, cell, own, load, outcome, name, lacks)
            else:
                line.add((subject, load, outcome), bits)

    def _put_one(
        self, file: RecordedFile, number: int, cell: Cell, own: list[str], load: str, outcome: str, name: str, lacks: _Lacks
    ) -> None:
        """Record one cell, which may be invalid."""
        fixture, options = cell
        subject = own[0] if own else self.subjects.get(fixture)
        bit, body = self.bits.get(name), self.outcomes.get(outcome)
        if subject is None or bit is None or body is None:
            lacks.add(
                f"the reader {name}"
                if bit is None
                else self.torn.get(outcome, f"the outcome {outcome[:40]}")
                if body is None
                else fixture
            )
            return
        line = self.lines.get(cell)
        if line is None and len(self.lines) >= MOST_LINES:
            what = f"expands to more than {MOST_LINES:,} fixture/options pairs"
            raise CorpusError(what, where=f"{file.path}:{number}", code="too-large")
        if line is not None and line.seen & bit:
            raise CorpusError(
                f"duplicate observation of {fixture} ({options}) by {name}", where=f"{file.path}:{number}", code="duplicate"
            )
        if body.result == "unsupported" and name != REFERENCE:
            what = f"says that {name} does not support {fixture}: a release either loads a fixture or refuses it"
            raise CorpusError(what, where=f"{file.path}:{number}", code="bad-line")
        if line is None:
            line = self.lines[cell] = _Line(self.subjects.get(fixture))
        line.add((subject, load, outcome), bit)

    def _bits(self, names: tuple[str, ...]) -> int:
        """Return the set of some readers; empty if no file defines one of them."""
        if names not in self.sets:
            self.sets[names] = sum(map(self.bits.__getitem__, names)) if self.bits.keys() >= {*names} else 0
        return self.sets[names]
