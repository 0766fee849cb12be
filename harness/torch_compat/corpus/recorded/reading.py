"""Reading recorded observations: each file by its grammar, then all of them held against each other; budgets before loops."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from torch_compat.corpus.deprecations import parse_deprecation
from torch_compat.corpus.lines import DECODER, digest
from torch_compat.corpus.manifest import release_folder
from torch_compat.corpus.observations import (
    REFERENCE,
    SAME,
    Body,
    ObservedReader,
    body_entry,
    body_id,
    parse_body,
    parse_probe,
)
from torch_compat.corpus.recorded.model import (
    SUFFIX,
    VERSION,
    Cell,
    Column,
    Group,
    Recorded,
    file_of,
    place_of,
    rank,
    short_names,
)
from torch_compat.corpus.recorded.texts import MissingTextError, Texts, text_id
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
FREE_LETTERS: Final = 10_000_000  # of the texts in all outcomes and answers of a folder; beyond them LETTERS_PER_BYTE count
LETTERS_PER_BYTE: Final = 8  # of all files: an id is short however long its text is; the repository has one letter in two bytes


@dataclass
class _File:
    """A file, read, but not held against the others. Lines keep their numbers for messages."""

    path: Path
    label: str
    size: int
    sha256: str
    readers: dict[str, ObservedReader] = field(default_factory=dict)
    shown: dict[str, tuple[str, str]] = field(default_factory=dict)  # name: day, seal
    options: dict[str, str] = field(default_factory=dict)  # name: digest of the load options
    texts: dict[str, str] = field(default_factory=dict)
    told: dict[str, dict[str, tuple[int, dict[str, Any]]]] = field(default_factory=lambda: {"answer": {}, "outcome": {}})
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    asked: list[tuple[int, str, str, dict[str, str]]] = field(default_factory=list)  # kind, reader, answer by probe and key
    outcomes: dict[str, Body] = field(default_factory=dict)
    torn: dict[str, str] = field(default_factory=dict)  # answers and outcomes without a text that no file tells, and which
    writers: dict[str, Labels] = field(default_factory=dict)
    read: list[tuple[int, str, list[str], list[str]]] = field(default_factory=list)  # reader, recipes, cells
    wrote: list[tuple[int, list[str], list[str]]] = field(default_factory=list)  # recipes, cells
    subjects: dict[str, str] = field(default_factory=dict)  # by recipe


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
        with _line(path, number):
            parse(file, number, *fields)
        if len(file.readers) > room:
            raise CorpusError(f"is one reader more than {MOST_NAMES:,}", where=f"{path}:{number}", code="too-large")
    return file


@contextmanager
def _line(path: Path, number: int) -> Iterator[None]:
    """What is wrong with a line is said with its number."""
    try:
        yield
    except CorpusError as error:
        raise CorpusError(error.message, where=f"{path}:{number}", hint=error.hint, code=error.code) from error
    except UsageError as error:
        raise CorpusError(error.message, where=f"{path}:{number}", code="bad-line") from error
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, RecursionError) as error:
        said = str(error) if isinstance(error, ValueError | RecursionError) else f"is not a complete entry: {error!r:.200}"
        raise CorpusError(said, where=f"{path}:{number}", code="bad-line") from error


def _make_whole(file: _File, texts: Texts) -> None:
    """Put the texts of a file and of older ones into its answers and outcomes.

    Raises:
        CorpusError: an outcome contradicts itself, or is not of its form.
    """
    for kind, entries in file.told.items():
        for name, (number, entry) in entries.items():
            with _line(file.path, number):
                try:
                    if kind == "answer":
                        file.answers[name] = texts.whole(entry)
                    else:
                        file.outcomes[name] = parse_body(texts.whole(entry))
                except MissingTextError as missing:
                    file.torn[name] = f"the text {missing.args[0][:40]}"


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


def _told(kind: str) -> Callable[[_File, int, str, str], None]:
    def parse(file: _File, number: int, name: str, text: str) -> None:
        _new(file.told[kind], name, f"tells the {kind}")
        entry = _json(text)
        if body_id(entry) != name:
            raise ValueError(f"{kind} {name[:40]} was edited: its id is not the digest of the rest")
        file.told[kind][name] = number, entry

    return parse


def _text(file: _File, number: int, name: str, text: str) -> None:
    del number
    _new(file.texts, name, "tells the text")
    said = DECODER.decode(text)
    if said.__class__ is not str:
        raise ValueError(f"is {text[:60]!r}, expected a JSON text")
    if text_id(said) != name:
        raise ValueError(f"text {name[:40]} was edited: its id is not the digest of the rest")
    file.texts[name] = said


def _asked(kind: str) -> Callable[[_File, int, str, str], None]:
    def parse(file: _File, number: int, name: str, said: str) -> None:
        if name not in file.readers:
            raise ValueError(f"is of {name[:80]!r}, a reader that no line above tells")
        file.asked.append((number, kind, name, _pairs(said, "PROBE:KEY:ID")))

    return parse


def _options(file: _File, number: int, name: str, load: str) -> None:
    del number
    _new(file.options, name, "states the load options")
    if not is_plain(name) or not is_plain(load):
        raise ValueError(
            f"is not a complete entry: has {name!r:.80} and {load!r:.80}, expected the name of load options and a digest"
        )
    file.options[name] = load


def _pairs(text: str, form: str, order: Callable[[str], Any] = str) -> dict[str, str]:
    """The pairs of a field, in their order."""
    found: dict[str, str] = {}
    for pair in text.split(" "):
        name, _, value = pair.rpartition(":")
        if not name or not value:
            raise ValueError(f"is not a complete entry: has {pair!r:.80}, expected {form}")
        _new(found, name, "lists")
        found[name] = value
    _sorted(list(found), order)
    return found


def _sorted(names: list[str], order: Callable[[str], Any] = str) -> None:
    if sorted(names, key=order) != names:
        raise ValueError(f"lists {' '.join(names)!r:.80} in another order than the recorded one")


def _shown(file: _File, number: int, day: str, seals: str) -> None:
    del number
    if seals.count(" ") >= MOST_NAMES:
        raise CorpusError(f"lists more than {MOST_NAMES:,} readers", code="too-large")
    for name, seal in _pairs(seals, "NAME:SEAL", place_of).items():
        _new(file.shown, name, "was shown to the reader")
        if rank(name) >= rank(file.label):
            raise ValueError(f"was shown to {name[:80]}, which is not older")
        file.shown[name] = _day(day), seal


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


def _read_line(file: _File, number: int, name: str, recipes: str, *cells: str) -> None:
    names = recipes.split(" ")
    if name not in file.writers or not all(map(is_plain, names)):
        what = "expected a reader whose writers are listed above, and the names of recipes"
        raise ValueError(f"is not a complete entry: has {name!r:.80} and {recipes!r:.80}, {what}")
    _sorted(names)
    file.read.append((number, name, names, list(cells)))


def _wrote(file: _File, number: int, fixtures: str, *cells: str) -> None:
    subjects = _pairs(fixtures, "RECIPE:SUBJECT")
    for recipe, subject in subjects.items():
        _new(file.subjects, recipe, "tells of the fixture")
        if not is_plain(recipe) or not is_plain(subject):
            what = "expected the name of a recipe and a subject"
            raise ValueError(f"is not a complete entry: has {recipe!r:.80} and {subject!r:.80}, {what}")
        file.subjects[recipe] = subject
    file.wrote.append((number, list(subjects), list(cells)))


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
    "shown": (_Grammar("DAY SEALS", 2), _shown),
    "options": (_Grammar("OPTIONS LOAD", 2), _options),
    "text": (_Grammar("ID JSON", 2), _text),
    "answer": (_Grammar("ID JSON", 2), _told("answer")),
    "probe": (_Grammar("NAME SAID", 2), _asked("probe")),
    "deprecation": (_Grammar("NAME SAID", 2), _asked("deprecation")),
    "outcome": (_Grammar("ID JSON", 2), _told("outcome")),
    "writers": (_Grammar("NAME RELEASES", 2), _writers),
    "read": (_Grammar("NAME RECIPES CELLS+", 3, more=True), _read_line),
    "wrote": (_Grammar("FIXTURES CELLS*", 1, more=True), _wrote),
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
        for number, kind, name, said in file.asked:
            for asked, answer in said.items():
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
                    full[short] = tuple(names[one] for one in short)
                self._put(file, number, fixtures, place, outcome, full[short], lacks)
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
        if not probe or not key:
            what = f"is not a complete entry: has a {kind} {probe[:80]!r} with the key {key[:80]!r}, expected PROBE:KEY:ID"
            raise CorpusError(what, where=where, code="bad-line")
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
        self, file: _File, number: int, labels: Labels, cells: list[str], recipes: int
    ) -> Iterator[tuple[tuple[str, ...], list[str], str]]:
        """The labels of every set, with options, load and perhaps subject, and outcome."""
        with _line(file.path, number):
            for text in cells:
                place, *rest = text.split(" ")
                parts = place.split(":")
                if len(parts) > 3 or not all(parts) or not rest or len(rest) % 2:
                    raise ValueError(
                        f"has the cells {text[:80]!r}, expected OPTIONS, OPTIONS:LOAD or OPTIONS:LOAD:SUBJECT, and outcomes with sets"
                    )
                if len(parts) == 1:
                    if place not in file.options:
                        raise ValueError(f"has cells of {place[:80]!r}, load options that no line above states")
                    parts.append(file.options[place])
                for outcome, spans in zip(rest[::2], rest[1::2], strict=True):
                    names = labels.of(spans)
                    self.cells += len(names) * recipes
                    if self.cells > self.most:
                        what = f"makes more than {self.most:,} cells, which are too many for files of this size"
                        raise CorpusError(what, code="too-large")
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
