"""Parses one file of recorded observations, before it is checked against the other files."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from torch_compat.corpus.json_lines import DECODER
from torch_compat.corpus.observations import (
    Body,
    ObservedReader,
    body_id,
)
from torch_compat.corpus.recorded.model import (
    VERSION,
    file_of,
    place_of,
    rank,
)
from torch_compat.corpus.recorded.shared_texts import text_id
from torch_compat.errors import CorpusError, UsageError
from torch_compat.places import is_plain, read_whole
from torch_compat.releases.labels import Labels
from torch_compat.words import count_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

__all__ = ["MOST_NAMES", "RecordedFile", "at_line", "read_file"]

MOST_NAMES: Final = 2_000  # of readers in a folder, of writers in a list: one release a fortnight for eighty years


@dataclass
class RecordedFile:
    """A parsed file, not yet checked against the others. Lines keep their numbers for messages."""

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
    torn: dict[str, str] = field(default_factory=dict)  # answers and outcomes that lack a text no file defines, and the text's id
    writers: dict[str, Labels] = field(default_factory=dict)
    read: list[tuple[int, str, list[str], list[str]]] = field(default_factory=list)  # reader, recipes, cells
    wrote: list[tuple[int, list[str], list[str]]] = field(default_factory=list)  # recipes, cells
    subjects: dict[str, str] = field(default_factory=dict)  # by recipe


def read_file(path: Path, room: int) -> RecordedFile:
    """Parse one file.

    Parameters:
        room: the maximum number of its readers.

    Raises:
        CorpusError: it is incomplete, malformed, inconsistent, or has the wrong name.
    """
    lines, size, sha256 = _whole(path)
    file = RecordedFile(path, path.stem, size, sha256)
    for number, line in enumerate(lines[1:], 2):
        kind, *fields = line.split("\t")
        known = _KINDS.get(kind)
        if known is None:
            raise CorpusError(f"has unknown kind {kind!r:.40}", where=f"{path}:{number}", code="bad-line")
        grammar, parse = known
        if not grammar.fits(len(fields)):
            what = f"is not a complete entry: has {count_of(len(fields), 'field')}, expected {grammar.text} with tabs between"
            raise CorpusError(what, where=f"{path}:{number}", code="bad-line")
        with at_line(path, number):
            parse(file, number, *fields)
        if len(file.readers) > room:
            raise CorpusError(f"lists more than {MOST_NAMES:,} readers", where=f"{path}:{number}", code="too-large")
    return file


@contextmanager
def at_line(path: Path, number: int) -> Iterator[None]:
    """Add the line number to errors in a line."""
    try:
        yield
    except CorpusError as error:
        raise CorpusError(error.message, where=f"{path}:{number}", hint=error.hint, code=error.code) from error
    except UsageError as error:
        raise CorpusError(error.message, where=f"{path}:{number}", code="bad-line") from error
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, RecursionError) as error:
        message = str(error) if isinstance(error, ValueError | RecursionError) else f"is not a complete entry: {error!r:.200}"
        raise CorpusError(message, where=f"{path}:{number}", code="bad-line") from error


def _whole(path: Path) -> tuple[list[str], int, str]:
    """Return the lines before the last, which proves completeness; the size in bytes; and the digest in the last line."""
    try:
        data = read_whole(path)
    except OSError as error:
        what = "is a directory, expected a file" if isinstance(error, IsADirectoryError) else f"cannot be read: {error.strerror}"
        raise CorpusError(what, where=str(path), code="unreadable-file") from error
    try:
        lines = data.decode("ascii").split("\n")
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        raise CorpusError(
            f"contains byte {data[error.start]:#04x}, expected ASCII", where=f"{path}:{number}", code="bad-line"
        ) from None
    header = lines[0].split("\t")
    if header[0] != f"observations {VERSION}" or header[1:] != [path.stem]:
        raise CorpusError(
            f"begins with {lines[0][:80]!r}, expected 'observations {VERSION}' and {path.stem!r}",
            where=f"{path}:1",
            hint="restore it from version control; if another version of torch-compat wrote it, use that version or a newer one",
            code="bad-header",
        )
    if not _is_label(path.stem):
        raise CorpusError(f"is named after {path.stem!r}, which is not a release", where=str(path), code="bad-header")
    last = lines[-2].split("\t") if len(lines) > 1 and not lines[-1] else [""]
    if last[0] != "end":
        raise CorpusError(
            "does not end with the line 'end'",
            where=str(path),
            hint="a run was interrupted: restore it, or record it again",
            code="not-whole",
        )
    sha256 = hashlib.sha256(data[: data.rfind(b"\n", 0, len(data) - 1) + 1]).hexdigest()
    if last[1:] != [str(len(lines) - 2), sha256]:
        raise CorpusError(
            "was changed after it was recorded: its last line does not match the lines above",
            where=f"{path}:{len(lines) - 1}",
            hint="restore it from version control, or record it again",
            code="edited",
        )
    return lines[:-2], len(data), sha256


def _is_label(label: str) -> bool:
    """Whether a label is valid for a file: a release without its build, synthetic, or the reference reader."""
    try:
        return bool(rank(label)[0]) or (label.startswith("torch-") and "+" not in label)
    except UsageError:
        return False


def _new(known: Mapping[str, object], name: str, what: str) -> None:
    if name in known:
        raise CorpusError(f"duplicate {what} {name[:80]!r}", code="duplicate")


def _reader(file: RecordedFile, number: int, name: str, text: str) -> None:
    del number
    facts = _json(text)
    identity, observed, protocol = facts["identity"], facts["observed"], facts["protocol"]
    _new(file.readers, name, "entry for reader")
    if not isinstance(identity, dict) or name not in {f"torch-{identity.get('torch')}", identity.get("reader")}:
        raise CorpusError(f"is recorded for {name[:80]}, but the answer came from {identity!r:.300}", code="wrong-reader")
    if file_of(name) != file.label:
        raise CorpusError(f"contains the observations from {name[:80]!r}, but is named {file.path.name!r}", code="wrong-reader")
    if any(value is not None and value.__class__ not in {str, int, float, bool} for value in identity.values()):
        raise ValueError("identity may contain only strings, numbers, booleans and null")
    if protocol.__class__ is not int:
        raise ValueError(f"has protocol {protocol!r:.40}, expected a number")
    file.readers[name] = ObservedReader(name, identity, _day(observed), protocol, {}, {}, {})


def _told(kind: str) -> Callable[[RecordedFile, int, str, str], None]:
    def parse(file: RecordedFile, number: int, name: str, text: str) -> None:
        _new(file.told[kind], name, kind)
        entry = _json(text)
        if body_id(entry) != name:
            raise ValueError(f"{kind} {name[:40]} was edited: its id does not match the digest of its contents")
        file.told[kind][name] = number, entry

    return parse


def _text(file: RecordedFile, number: int, name: str, text: str) -> None:
    del number
    _new(file.texts, name, "text")
    message = DECODER.decode(text)
    if message.__class__ is not str:
        raise ValueError(f"is {text[:60]!r}, expected a JSON string")
    if text_id(message) != name:
        raise ValueError(f"text {name[:40]} was edited: its id does not match the digest of its contents")
    file.texts[name] = message


def _asked(kind: str) -> Callable[[RecordedFile, int, str, str], None]:
    def parse(file: RecordedFile, number: int, name: str, text: str) -> None:
        if name not in file.readers:
            raise ValueError(f"is for {name[:80]!r}, a reader that no earlier line declares")
        file.asked.append((number, kind, name, _pairs(text, "PROBE:KEY:ID")))

    return parse


def _options(file: RecordedFile, number: int, name: str, load: str) -> None:
    del number
    _new(file.options, name, "load options")
    if not is_plain(name) or not is_plain(load):
        raise ValueError(
            f"is not a complete entry: has {name!r:.80} and {load!r:.80}, expected the name of a set of load options and a digest"
        )
    file.options[name] = load


def _pairs(text: str, form: str, order: Callable[[str], Any] = str) -> dict[str, str]:
    """Parse the pairs of a field, which must be sorted."""
    results: dict[str, str] = {}
    for pair in text.split(" "):
        name, _, value = pair.rpartition(":")
        if not name or not value:
            raise ValueError(f"is not a complete entry: has {pair!r:.80}, expected {form}")
        _new(results, name, "entry")
        results[name] = value
    _sorted(list(results), order)
    return results


def _sorted(names: list[str], order: Callable[[str], Any] = str) -> None:
    if sorted(names, key=order) != names:
        raise ValueError(f"lists {' '.join(names)!r:.80} in the wrong order")


def _shown(file: RecordedFile, number: int, day: str, seals: str) -> None:
    del number
    if seals.count(" ") >= MOST_NAMES:
        raise CorpusError(f"lists more than {MOST_NAMES:,} readers", code="too-large")
    for name, seal in _pairs(seals, "NAME:SEAL", place_of).items():
        _new(file.shown, name, "seal for reader")
        if rank(name) >= rank(file.label):
            raise ValueError(f"lists {name[:80]} as a reader, which is not an older release")
        file.shown[name] = _day(day), seal


def _writers(file: RecordedFile, number: int, name: str, labels: str) -> None:
    del number
    _new(file.writers, name, "list of writers for")
    names = labels.split(" ", MOST_NAMES)
    if len(names) > MOST_NAMES:
        raise CorpusError(f"lists more than {MOST_NAMES:,} writers", code="too-large")
    if name not in file.readers or not all(map(is_plain, names)):
        raise ValueError(f"lists writers for {name[:80]!r}, a reader that no earlier line declares, or that is not a release")
    if sorted(names, key=place_of) != names or rank(names[-1]) > rank(name):
        raise ValueError(f"lists writers that are newer than {name[:80]}, or are not sorted from oldest to newest")
    file.writers[name] = Labels(names)


def _read_line(file: RecordedFile, number: int, name: str, recipes: str, *cells: str) -> None:
    names = recipes.split(" ")
    if name not in file.writers or not all(map(is_plain, names)):
        what = "expected a reader whose writers are listed above, and the names of recipes"
        raise ValueError(f"is not a complete entry: has {name!r:.80} and {recipes!r:.80}, {what}")
    _sorted(names)
    file.read.append((number, name, names, list(cells)))


def _wrote(file: RecordedFile, number: int, fixtures: str, *cells: str) -> None:
    subjects = _pairs(fixtures, "RECIPE:SUBJECT")
    for recipe, subject in subjects.items():
        _new(file.subjects, recipe, "entry for fixture")
        if not is_plain(recipe) or not is_plain(subject):
            what = "expected the name of a recipe and a subject"
            raise ValueError(f"is not a complete entry: has {recipe!r:.80} and {subject!r:.80}, {what}")
        file.subjects[recipe] = subject
    file.wrote.append((number, list(subjects), list(cells)))


class _Grammar(NamedTuple):
    """The fields of a line.

    Attributes:
        text: their names, as in the grammar of the package.
        least: the minimum number of fields.
        more: whether more are allowed.
    """

    text: str
    least: int
    more: bool = False

    def fits(self, count: int) -> bool:
        """Whether a line may have this many fields."""
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
        raise ValueError(f"was observed on {text!r:.40}, which is not a date") from None
