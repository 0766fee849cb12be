"""Reading recorded observations: each file by its grammar, then all of them held against each other; budgets before loops."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from torch_compat.corpus.deprecations import parse_deprecation
from torch_compat.corpus.lines import DECODER, digest
from torch_compat.corpus.manifest import release_folder
from torch_compat.corpus.observations import (
    OUTCOME_DIGITS,
    REFERENCE,
    SAME,
    Body,
    ObservedReader,
    body_entry,
    body_id,
    parse_body,
    parse_probe,
)
from torch_compat.corpus.recorded.model import SUFFIX, VERSION, Cell, Column, Group, Recorded, file_of, place_of, rank
from torch_compat.errors import CorpusError, UsageError
from torch_compat.places import inside, is_plain, read_whole
from torch_compat.releases.labels import Labels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path


__all__ = ["read_recorded"]

MOST_CELLS: Final = 20_000_000  # of a folder: five times those of 150 releases; more is no recording
MOST_LINES: Final = 200_000  # of fixtures and options in a folder: five times those of 150 releases
MOST_NAMES: Final = 2_000  # of readers in a folder, of writers in a list: one release a fortnight for eighty years
FREE_CELLS: Final = 50_000  # that any folder may hold; beyond them CELLS_PER_BYTE count
CELLS_PER_BYTE: Final = 4  # of all files: a span is short however much it holds; the repository has one cell in 20 bytes


@dataclass
class _File:
    """A file, read, but not held against the others. Lines keep their numbers for messages."""

    path: Path
    label: str
    size: int
    sha256: str
    readers: dict[str, ObservedReader] = field(default_factory=dict)
    shown: dict[str, tuple[str, str]] = field(default_factory=dict)  # name: day, seal
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    asked: list[tuple[int, str, str, str, str, str]] = field(default_factory=list)  # kind, reader, probe, key, answer
    outcomes: dict[str, Body] = field(default_factory=dict)
    writers: dict[str, Labels] = field(default_factory=dict)
    read: list[tuple[int, str, str, list[str]]] = field(default_factory=list)  # reader, recipe, cells
    wrote: dict[str, tuple[int, str, list[str]]] = field(default_factory=dict)  # recipe: subject, cells


def read_recorded(folder: Path) -> Recorded:
    """Read a folder of recorded observations; of one that is not there, nothing.

    A file that cannot be read costs what it holds and what rests on it; both are named among ``unreadable``.
    """
    files: list[_File] = []
    unreadable: dict[str, str] = {}
    room = MOST_NAMES
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        try:
            files.append(_read(inside(folder, path.name), room))
            room -= len(files[-1].readers)
        except CorpusError as error:
            unreadable[path.name] = str(error)
    files.sort(key=lambda one: place_of(one.label))
    return _Together(files, unreadable).recorded()


def _read(path: Path, room: int) -> _File:
    """One file.

    Parameters:
        room: readers that it may tell of.

    Raises:
        CorpusError: it is not whole, not of this form, of another name, or contradicts itself.
    """
    lines, size, sha256 = _whole(path)
    file = _File(path, path.stem, size, sha256)
    for number, line in enumerate(lines[1:], 2):
        kind, *fields = line.split("\t")
        known = _KINDS.get(kind)
        if known is None:
            raise CorpusError(f"has the unknown kind {kind!r:.40}", where=f"{path}:{number}", code="bad-line")
        grammar, parse = known
        if not grammar.fits(len(fields)):
            what = f"is not a complete entry: has {len(fields)} fields, expected {grammar.text} with tabs between"
            raise CorpusError(what, where=f"{path}:{number}", code="bad-line")
        try:
            parse(file, number, *fields)
        except CorpusError as error:
            raise CorpusError(error.message, where=f"{path}:{number}", hint=error.hint, code=error.code) from error
        except UsageError as error:
            raise CorpusError(error.message, where=f"{path}:{number}", code="bad-line") from error
        except (AttributeError, IndexError, KeyError, TypeError, ValueError, RecursionError) as error:
            said = str(error) if isinstance(error, ValueError | RecursionError) else f"is not a complete entry: {error!r:.200}"
            raise CorpusError(said, where=f"{path}:{number}", code="bad-line") from error
        if len(file.readers) > room:
            raise CorpusError(f"is one reader more than {MOST_NAMES:,}", where=f"{path}:{number}", code="too-large")
    return file


def _whole(path: Path) -> tuple[list[str], int, str]:
    """The lines of a file above its last, which proves that they are all; its bytes; and the digest that stands in it."""
    try:
        data = read_whole(path)
    except OSError as error:
        what = "is a folder, expected a file" if isinstance(error, IsADirectoryError) else f"cannot be read: {error.strerror}"
        raise CorpusError(what, where=str(path), code="unreadable-file") from error
    try:
        lines = data.decode("ascii").split("\n")
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        raise CorpusError(
            f"has the byte {data[error.start]:#04x}, expected ASCII", where=f"{path}:{number}", code="bad-line"
        ) from None
    header = lines[0].split("\t")
    if header[0] != f"observations {VERSION}" or header[1:] != [path.stem]:
        raise CorpusError(
            f"begins with {lines[0][:80]!r}, expected 'observations {VERSION}' and {path.stem!r}",
            where=f"{path}:1",
            hint="restore it from version control; if it is of another version, use the torch-compat that wrote it, or newer",
            code="bad-header",
        )
    if not _is_label(path.stem):
        raise CorpusError(f"is named after {path.stem!r}, which is no release", where=str(path), code="bad-header")
    last = lines[-2].split("\t") if len(lines) > 1 and not lines[-1] else [""]
    if last[0] != "end":
        raise CorpusError(
            "has no last line 'end'",
            where=str(path),
            hint="a run was interrupted: restore it, or record it again",
            code="not-whole",
        )
    sha256 = hashlib.sha256(data[: data.rfind(b"\n", 0, len(data) - 1) + 1]).hexdigest()
    if last[1:] != [str(len(lines) - 2), sha256]:
        raise CorpusError(
            "was changed after it was recorded: its last line does not fit the lines above",
            where=f"{path}:{len(lines) - 1}",
            hint="restore it from version control, or record it again",
            code="edited",
        )
    return lines[:-2], len(data), sha256


def _is_label(label: str) -> bool:
    """Whether a file can be called so: after a release, without its build, what is synthetic, or the reference reader."""
    try:
        return bool(rank(label)[0]) or (label.startswith("torch-") and "+" not in label)
    except UsageError:
        return False


def _new(known: Mapping[str, object], name: str, what: str) -> None:
    if name in known:
        raise CorpusError(f"{what} {name[:80]!r} again", code="duplicate")


def _reader(file: _File, number: int, name: str, text: str) -> None:
    del number
    facts = _json(text)
    identity, observed, protocol = facts["identity"], facts["observed"], facts["protocol"]
    _new(file.readers, name, "tells of the reader")
    if not isinstance(identity, dict) or name not in {f"torch-{identity.get('torch')}", identity.get("reader")}:
        raise CorpusError(f"is said to be of {name[:80]}, but what answered was {identity!r:.300}", code="wrong-reader")
    if file_of(name) != file.label:
        raise CorpusError(f"holds the observations of {name[:80]!r}, but is named {file.path.name!r}", code="wrong-reader")
    if any(value is not None and value.__class__ not in {str, int, float, bool} for value in identity.values()):
        raise ValueError("has an identity that holds more than texts and numbers")
    if protocol.__class__ is not int:
        raise ValueError(f"has the protocol {protocol!r:.40}, expected a number")
    file.readers[name] = ObservedReader(name, identity, _day(observed), protocol, {}, {}, {})


def _answer(file: _File, number: int, name: str, text: str) -> None:
    del number
    _new(file.answers, name, "tells the answer")
    entry = _json(text)
    if digest(entry)[:OUTCOME_DIGITS] != name:
        raise ValueError(f"answer {name[:40]} was edited: its id is not the digest of the rest")
    file.answers[name] = entry


def _asked(kind: str) -> Callable[[_File, int, str, str, str, str], None]:
    def parse(file: _File, number: int, name: str, probe: str, key: str, answer: str) -> None:
        if name not in file.readers:
            raise ValueError(f"is of {name[:80]!r}, a reader that no line above tells")
        file.asked.append((number, kind, name, probe, key, answer))

    return parse


def _shown(file: _File, number: int, name: str, day: str, seal: str) -> None:
    del number
    _new(file.shown, name, "was shown to the reader")
    if rank(name) >= rank(file.label):
        raise ValueError(f"was shown to {name[:80]}, which is not older")
    file.shown[name] = _day(day), seal


def _outcome(file: _File, number: int, name: str, text: str) -> None:
    del number
    _new(file.outcomes, name, "tells the outcome")
    entry = _json(text)
    if body_id(entry) != name:
        raise ValueError(f"outcome {name[:40]} was edited: its id is not the digest of the rest")
    file.outcomes[name] = parse_body(entry)


def _writers(file: _File, number: int, name: str, labels: str) -> None:
    del number
    _new(file.writers, name, "lists the writers of")
    names = labels.split(" ", MOST_NAMES)
    if len(names) > MOST_NAMES:
        raise CorpusError(f"lists more than {MOST_NAMES:,} writers", code="too-large")
    if name not in file.readers or not all(map(is_plain, names)):
        raise ValueError(f"lists writers of {name[:80]!r}, a reader that no line above tells, or one that can be no release")
    if sorted(names, key=place_of) != names or rank(names[-1]) > rank(name):
        raise ValueError(f"lists writers that are newer than {name[:80]}, or not from the oldest to the newest")
    file.writers[name] = Labels(names)


def _read_line(file: _File, number: int, name: str, recipe: str, *cells: str) -> None:
    if name not in file.writers or not is_plain(recipe):
        what = "expected a reader whose writers are listed above, and the name of a recipe"
        raise ValueError(f"is not a complete entry: has {name!r:.80} and {recipe!r:.80}, {what}")
    file.read.append((number, name, recipe, list(cells)))


def _wrote(file: _File, number: int, recipe: str, subject: str, *cells: str) -> None:
    _new(file.wrote, recipe, "tells of the fixture")
    if not is_plain(recipe) or not is_plain(subject):
        what = "expected the name of a recipe and a subject"
        raise ValueError(f"is not a complete entry: has {recipe!r:.80} and {subject!r:.80}, {what}")
    file.wrote[recipe] = number, subject, list(cells)


class _Grammar(NamedTuple):
    """The fields of a line.

    Attributes:
        text: their names, as the docstring of this module has them.
        least: how many there are.
        more: whether there may be more.
    """

    text: str
    least: int
    more: bool = False

    def fits(self, count: int) -> bool:
        """Whether a line may have so many."""
        return count == self.least or (self.more and count > self.least)


_KINDS: Final[dict[str, tuple[_Grammar, Callable[..., None]]]] = {
    "reader": (_Grammar("NAME JSON", 2), _reader),
    "shown": (_Grammar("NAME DAY SEAL", 3), _shown),
    "answer": (_Grammar("ID JSON", 2), _answer),
    "probe": (_Grammar("NAME PROBE KEY ID", 4), _asked("probe")),
    "deprecation": (_Grammar("NAME PROBE KEY ID", 4), _asked("deprecation")),
    "outcome": (_Grammar("ID JSON", 2), _outcome),
    "writers": (_Grammar("NAME RELEASE ...", 2), _writers),
    "read": (_Grammar("NAME RECIPE CELLS+", 3, more=True), _read_line),
    "wrote": (_Grammar("RECIPE SUBJECT CELLS*", 2, more=True), _wrote),
}


def _json(text: str) -> dict[str, Any]:
    entry = DECODER.decode(text)
    if entry.__class__ is not dict:
        raise ValueError(f"is {text[:60]!r}, expected a JSON object")
    return entry


def _day(text: Any) -> str:
    try:
        return dt.date.fromisoformat(text).isoformat()
    except (TypeError, ValueError):
        raise ValueError(f"was observed on {text!r:.40}, which is no day") from None


@dataclass
class _Lacks:
    """What a file rests on and no other tells.

    Attributes:
        count: how many cells and answers do.
        first: the first of it, by the alphabet.
    """

    count: int = 0
    first: str = ""

    def add(self, what: str) -> None:
        """Count one more."""
        self.first = min(self.first, what) if self.count else what
        self.count += 1


class _Line:
    """What was observed of a fixture under some options: who observed it at all, and by subject, load options and outcome who did."""

    __slots__ = ("groups", "seen", "subject")

    def __init__(self, subject: str | None) -> None:
        self.subject = subject  # of the fixture, unless a cell has its own
        self.seen = 0
        self.groups: dict[tuple[str, str, str], int] = {}

    def add(self, key: tuple[str, str, str], readers: int) -> None:
        """Put down that some readers did the same."""
        self.seen |= readers
        self.groups[key] = self.groups.get(key, 0) | readers


class _Together:
    """Files held against each other: cells mean outcomes, fixtures and readers that other files tell."""

    def __init__(self, files: list[_File], unreadable: dict[str, str]) -> None:
        self.files, self.unreadable = files, unreadable
        self.readers = {name: reader for file in files for name, reader in file.readers.items()}
        self.most = min(MOST_CELLS, FREE_CELLS + CELLS_PER_BYTE * sum(file.size for file in files))
        self.order = tuple(sorted(self.readers, key=place_of))
        self.bits = {name: 1 << at for at, name in enumerate(self.order)}
        self.sets: dict[tuple[str, ...], int] = {}  # the readers of names that stand together
        self.outcomes = {body_id(body_entry(SAME)): SAME}
        self.answers: dict[str, dict[str, Any]] = {}
        self.subjects: dict[str, str] = {}
        for file in files:
            self.outcomes |= file.outcomes
            self.answers |= file.answers
            folder = release_folder(file.label.removeprefix("torch-"))
            for recipe, (_, subject, _) in file.wrote.items():
                self.subjects[f"{folder}/{recipe}"] = subject
        self.lines: dict[Cell, _Line] = {}
        self.days: dict[str, dict[str, str]] = {name: {} for name in self.readers}
        self.cells = 0

    def recorded(self) -> Recorded:
        """All of it."""
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

    def _file(self, file: _File) -> None:
        """Put down the cells of one file.

        Raises:
            CorpusError: it contradicts another, itself, or rests on what no other file tells; all that does not is put down.
        """
        lacks = _Lacks()
        for name, (day, seal) in file.shown.items():
            if name in self.readers and self.readers[name].identity_digest != seal:
                what = f"was shown to another {name} than the one whose identity is recorded"
                raise CorpusError(what, where=str(file.path), hint="observe it again with --record", code="wrong-reader")
            self.days.setdefault(name, {})[file.label] = day
        for number, kind, name, probe, key, answer in file.asked:
            try:
                self._answered(file, number, kind, name, probe, key, self.answers[answer])
            except KeyError:
                lacks.add(f"the answer {answer[:40]}")
        folders: dict[tuple[str, ...], tuple[str, ...]] = {}  # sets of writers recur
        for number, name, recipe, cells in file.read:
            for writers, place, outcome in self._spread(file, number, file.writers[name], cells):
                if writers not in folders:
                    folders[writers] = tuple(f"{release_folder(writer)}/" for writer in writers)
                self._put(file, number, [above + recipe for above in folders[writers]], place, outcome, (name,), lacks)
        shown = Labels([name.removeprefix("torch-") for name in file.shown])
        names = {name.removeprefix("torch-"): name for name in file.shown}
        full: dict[tuple[str, ...], tuple[str, ...]] = {}  # sets of readers recur
        folder = release_folder(file.label.removeprefix("torch-"))
        for recipe, (number, _, cells) in file.wrote.items():
            for short, place, outcome in self._spread(file, number, shown, cells):
                if short not in full:
                    full[short] = tuple(names[one] for one in short)
                self._put(file, number, [f"{folder}/{recipe}"], place, outcome, full[short], lacks)
        if lacks.count:
            raise CorpusError(
                f"{lacks.count} of its cells and answers rest on what no file that can be read tells, such as {lacks.first}",
                where=str(file.path),
                hint="restore the others from version control",
                code="incomplete",
            )

    def _answered(self, file: _File, number: int, kind: str, name: str, probe: str, key: str, answer: dict[str, Any]) -> None:
        """Put down what a reader said to a probe."""
        reader = self.readers[name]
        where = f"{file.path}:{number}"
        if probe in (reader.probes if kind == "probe" else reader.deprecations):
            raise CorpusError(f"observes the {kind} {probe[:80]} again", where=where, code="duplicate")
        try:
            if kind == "probe":
                reader.probes[probe] = parse_probe(probe, {**answer, "key": key})
            else:
                reader.deprecations[probe] = parse_deprecation({**answer, "probe": probe, "key": key})
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            said = str(error) if isinstance(error, ValueError) else f"is not a complete entry: {error!r:.200}"
            raise CorpusError(said, where=where, code="bad-line") from error

    def _spread(
        self, file: _File, number: int, labels: Labels, cells: list[str]
    ) -> Iterator[tuple[tuple[str, ...], list[str], str]]:
        """The labels of every set, with options, load and perhaps subject, and outcome."""
        for text in cells:
            place, _, rest = text.partition(" ")
            outcome, _, spans = rest.partition(" ")
            parts = place.split(":")
            try:
                names = labels.of(spans)
            except UsageError as error:
                raise CorpusError(error.message, where=f"{file.path}:{number}", code="bad-line") from error
            if len(parts) not in {2, 3} or not all(parts):
                what = f"has cells of {place[:80]!r}, expected OPTIONS:LOAD or OPTIONS:LOAD:SUBJECT"
                raise CorpusError(what, where=f"{file.path}:{number}", code="bad-line")
            self.cells += len(names)
            if self.cells > self.most:
                what = f"makes more than {self.most:,} cells, which are too many for files of this size"
                raise CorpusError(what, where=f"{file.path}:{number}", code="too-large")
            yield names, parts, outcome

    def _put(
        self,
        file: _File,
        number: int,
        fixtures: list[str],
        place: list[str],
        outcome: str,
        names: tuple[str, ...],
        lacks: _Lacks,
    ) -> None:
        """Put down that some readers did the same with some fixtures."""
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
                for name in names:  # one by one: whoever is wrong is named, and only what comes after it is lost
                    self._put_one(file, number, cell, own, load, outcome, name, lacks)
            else:
                line.add((subject, load, outcome), bits)

    def _put_one(
        self, file: _File, number: int, cell: Cell, own: list[str], load: str, outcome: str, name: str, lacks: _Lacks
    ) -> None:
        """Put down one cell, in which something may be wrong."""
        fixture, options = cell
        subject = own[0] if own else self.subjects.get(fixture)
        bit, body = self.bits.get(name), self.outcomes.get(outcome)
        if subject is None or bit is None or body is None:
            lacks.add(f"the reader {name}" if bit is None else f"the outcome {outcome[:40]}" if body is None else fixture)
            return
        line = self.lines.get(cell)
        if line is None and len(self.lines) >= MOST_LINES:
            what = f"makes more than {MOST_LINES:,} pairs of a fixture and options"
            raise CorpusError(what, where=f"{file.path}:{number}", code="too-large")
        if line is not None and line.seen & bit:
            raise CorpusError(f"observes {fixture} ({options}) by {name} again", where=f"{file.path}:{number}", code="duplicate")
        if body.result == "unsupported" and name != REFERENCE:
            what = f"says that {name} does not support {fixture}: a release does or refuses"
            raise CorpusError(what, where=f"{file.path}:{number}", code="bad-line")
        if line is None:
            line = self.lines[cell] = _Line(self.subjects.get(fixture))
        line.add((subject, load, outcome), bit)

    def _bits(self, names: tuple[str, ...]) -> int:
        """The set of some readers; empty where no file tells of one of them."""
        if names not in self.sets:
            self.sets[names] = sum(map(self.bits.__getitem__, names)) if self.bits.keys() >= {*names} else 0
        return self.sets[names]
