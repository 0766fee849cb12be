"""Recorded observations: a folder with one file per release, which holds all that this release added to the matrix.

The cell of a writer and a reader stands in the file of the newer of the two. So a new release adds a file and changes none: two
branches that each add a release merge without a conflict, and what neither could observe, the cells of one release with the
other, is missing by name after the merge. Every distinct outcome stands once, in the oldest file that needs it.

The grammar. A file is ASCII, its fields are separated by tabs, its lines end with a newline and stand in this order, sorted::

    file        = header reader* shown* answer* probe* deprecation* outcome* writers* read* wrote* end
    header      = "observations 2" LABEL              the file is LABEL.txt: torch-2.15.0, or reference
    reader      = "reader" NAME JSON                  {"identity", "observed", "protocol"} of a build of this release
    shown       = "shown" NAME DAY SEAL               an older reader that was shown what this release wrote; SEAL is a digest of
                                                      the identity that stands in its own file
    answer      = "answer" ID JSON                    an answer to a probe; ID is a digest of the JSON
    probe       = "probe" NAME PROBE KEY ID           what a reader of this file said to a probe: an answer of this file or an older
    deprecation = "deprecation" NAME PROBE KEY ID     what it did with a deprecated thing
    outcome     = "outcome" ID JSON                   what came of reading; ID is a digest of the JSON; "same" needs no line
    writers     = "writers" NAME RELEASE ...          whose fixtures a reader of this file was shown, oldest first, with spaces
    read        = "read" NAME RECIPE CELLS+           what it did with them; the sets of CELLS are sets of these writers
    wrote       = "wrote" RECIPE SUBJECT CELLS*       what older readers did with a fixture of this release; sets of those shown, without "torch-"
    CELLS       = OPTIONS ":" LOAD [":" SUBJECT] " " ID " " SET
    SET         = SPAN ("," SPAN)*
    SPAN        = FIRST | FIRST ".." LAST | FIRST ".."      from one to the other; to the last one of the list
    end         = "end" LINES SHA256                  of all lines above

``SUBJECT`` digests what a reader is given of a fixture, ``LOAD`` the load options themselves (see :func:`cell_key`). ``read`` lines
mean the subject that the fixture's ``wrote`` line states, unless they state their own.
"""

from __future__ import annotations

import datetime as dt
import fcntl
import hashlib
import os
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from torch_compat.corpus.deprecations import deprecation_entry, parse_deprecation
from torch_compat.corpus.lines import DECODER, digest, dump, write_whole
from torch_compat.corpus.manifest import SYNTHETIC, release_folder
from torch_compat.corpus.observations import (
    OUTCOME_DIGITS,
    REFERENCE,
    SAME,
    Body,
    Observation,
    ObservedReader,
    body_entry,
    body_id,
    parse_body,
    parse_probe,
    probe_entry,
)
from torch_compat.errors import CorpusError, UsageError
from torch_compat.places import inside, is_plain, read_whole
from torch_compat.releases.labels import Labels
from torch_compat.releases.release import Key, Release, named, public

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path


__all__ = ["SUFFIX", "Group", "Recorded", "read_recorded", "record", "together", "write_recorded"]

SUFFIX: Final = ".txt"
VERSION: Final = 2
SEAL_DIGITS: Final = 16
MOST_CELLS: Final = 20_000_000  # of a folder: five times those of 150 releases; more is no recording
MOST_LINES: Final = 200_000  # of fixtures and options in a folder: five times those of 150 releases
MOST_NAMES: Final = 2_000  # of readers in a folder, of writers in a list: one release a fortnight for eighty years
FREE_CELLS: Final = 50_000  # that any folder may hold; beyond them CELLS_PER_BYTE count
CELLS_PER_BYTE: Final = 4  # of all files: a span is short however much it holds; the repository has one cell in 20 bytes

Cell = tuple[str, str]


class Group(NamedTuple):
    """Readers that did the same with one fixture under one set of load options.

    Attributes:
        key: the key of their cells (see :func:`torch_compat.corpus.observations.cell_key`).
        body: what they did.
        readers: a set of them: bit ``n`` stands for the ``n``-th of :attr:`Recorded.order`.
    """

    key: str
    body: Body
    readers: int


@dataclass(frozen=True)
class Recorded:
    """All that a folder holds.

    Attributes:
        readers: by exact name.
        unreadable: files that cannot be read or used in full, by name, and why.
        order: the readers' names, oldest first.
        lines: by fixture and options, what was observed, and by which readers.
        digest: of all files.
    """

    readers: dict[str, ObservedReader] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    lines: Mapping[Cell, tuple[Group, ...]] = field(default_factory=dict)
    digest: str = ""


class _Column(Mapping[Cell, Observation]):
    """The cells of one reader; each is made when it is asked for."""

    def __init__(self, lines: Mapping[Cell, tuple[Group, ...]], bit: int) -> None:
        self.lines, self.bit = lines, bit

    def __getitem__(self, cell: Cell) -> Observation:
        for key, body, readers in self.lines[cell]:
            if readers & self.bit:
                return body.of(*cell, key)
        raise KeyError(cell)

    def __iter__(self) -> Iterator[Cell]:
        bit = self.bit
        return (cell for cell, groups in self.lines.items() if any(group.readers & bit for group in groups))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def entries(self) -> Iterator[tuple[Cell, str, Body]]:
        """Cells with key and body, without making an observation of each."""
        bit = self.bit
        for cell, groups in self.lines.items():
            for key, body, readers in groups:
                if readers & bit:
                    yield cell, key, body
                    break

    def __contains__(self, cell: object) -> bool:
        return any(group.readers & self.bit for group in self.lines.get(cell, ()))  # type: ignore[call-overload]


def together(readers: Iterable[tuple[int, ObservedReader]]) -> Callable[[Cell, str], list[tuple[Observation, int]]]:
    """What several readers did with a cell, each distinct observation once, with the set of the readers that made it.

    What a folder holds is together already: of it, one observation is made for each group, not one for each reader.

    Parameters:
        readers: each with the bit that stands for it in sets.

    Returns:
        A function of a cell and the key that its observations must have.
    """
    folders: dict[int, tuple[Mapping[Cell, tuple[Group, ...]], dict[int, int], dict[int, int]]] = {}
    others: list[tuple[int, Mapping[Cell, Observation]]] = []
    for bit, reader in readers:
        cells = reader.cells
        if isinstance(cells, _Column):
            folders.setdefault(id(cells.lines), (cells.lines, {}, {}))[1][cells.bit] = bit
        else:
            others.append((bit, cells))

    def found(cell: Cell, key: str) -> list[tuple[Observation, int]]:
        result: list[tuple[Observation, int]] = []
        for lines, bits, known in folders.values():
            for has, body, members in lines.get(cell, ()):
                if has == key:
                    mine = known.get(members)
                    if mine is None:
                        mine = known[members] = sum(bit for own, bit in bits.items() if members & own)
                    if mine:
                        result.append((body.of(*cell, key), mine))
        for bit, cells in others:
            observation = cells.get(cell)
            if observation is not None and observation.key == key:
                _put(result, observation, bit)
        return result

    return found


def _put(found: list[tuple[Observation, int]], observation: Observation, bit: int) -> None:
    """Add a reader to those that made the same observation of a cell."""
    for index, (known, bits) in enumerate(found):
        if known.result == observation.result and known.digest == observation.digest and known == observation:
            found[index] = (known, bits | bit)
            return
    found.append((observation, bit))


# ------------------------------------------------------------------------------------------------------------------- order


@lru_cache(maxsize=4096)
def _rank(label: str) -> tuple[int, Key]:
    """The place of a writer, a reader's name or a file: what is synthetic before all releases, the reference reader after them."""
    if label == SYNTHETIC:
        return -1, _NO_RELEASE
    if label == REFERENCE:
        return 1, _NO_RELEASE
    return 0, named(label).key


_NO_RELEASE: Final = Release("0.0").key


def _place(label: str) -> tuple[tuple[int, Key], str]:
    """The rank, and what tells builds of one release apart, and 1.5 and 1.5.0: no order depends on that of a set."""
    return _rank(label), label


def _file_of(name: str) -> str:
    """The file of a reader: of its release, whatever the build."""
    return name if _rank(name)[0] else f"torch-{public(name)}"


def _writer(fixture: str) -> tuple[str, str]:
    """The release and the recipe of a fixture's id."""
    folder, _, recipe = fixture.partition("/")
    return folder.removeprefix("torch-"), recipe


# ----------------------------------------------------------------------------------------------------------------- writing


Sets = dict[tuple[str, str], int]
"""A set of writers or readers by options, as they stand in a line, and outcome."""


@dataclass
class _Part:
    """What one file holds. Of a fixture that a reader read: ``{options: (load, subject, outcome)}``."""

    readers: dict[str, ObservedReader] = field(default_factory=dict)
    shown: dict[str, ObservedReader] = field(default_factory=dict)
    read: dict[str, dict[str, dict[str, dict[str, tuple[str, str, str]]]]] = field(default_factory=dict)  # reader, recipe, writer
    wrote: dict[str, str] = field(default_factory=dict)  # recipe: subject
    gave: dict[str, dict[str, dict[str, tuple[str, str, str]]]] = field(default_factory=dict)  # recipe, reader


def write_recorded(folder: Path, readers: Iterable[ObservedReader]) -> list[Path]:
    """Write all that there is of these readers; what the folder holds of others goes.

    Returns:
        The files that were changed, added or removed.
    """
    parts, bodies, subjects = _parts(readers)
    changed, told = [], {body_id(body_entry(SAME))}
    for label in sorted(parts, key=_place):
        path, text = inside(folder, label + SUFFIX), _text(label, parts[label], bodies, subjects, told)
        if not path.is_file() or path.read_bytes() != text.encode():
            write_whole(path, text)
            changed.append(path)
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        if path.stem not in parts:
            path.unlink()
            changed.append(path)
    return changed


def _parts(readers: Iterable[ObservedReader]) -> tuple[dict[str, _Part], dict[str, dict[str, Any]], dict[str, str]]:
    """What each file holds; the recorded form of every outcome by its id; the subject of each fixture.

    That is the one that most cells in the file of its writer have; where that has none, the one that the oldest reader was
    given. So what newer releases were given changes no file but theirs.
    """
    parts: dict[str, _Part] = {}
    bodies: dict[str, dict[str, Any]] = {}
    names: dict[int, str] = {}
    counts: dict[str, dict[str, int]] = {}
    oldest: dict[str, tuple[str, dict[str, int]]] = {}
    for reader in sorted(readers, key=lambda reader: _place(reader.name)):
        rank, own = _rank(reader.name), parts.setdefault(_file_of(reader.name), _Part())
        own.readers[reader.name] = reader
        for (fixture, options), key, body in _entries(reader):
            writer, recipe = _writer(fixture)
            subject, _, load = key.partition("-")
            outcome = names.get(id(body))
            if outcome is None:
                entry = body_entry(body)
                outcome = body_id(entry)
                bodies[outcome] = entry
                if body.__class__ is Body:  # it stays alive, so its id stays its own
                    names[id(body)] = outcome
            if _rank(writer) >= rank:
                counted = counts.setdefault(fixture, {})
                counted[subject] = counted.get(subject, 0) + 1
            who, counted = oldest.setdefault(fixture, (reader.name, {}))
            if who == reader.name:
                counted[subject] = counted.get(subject, 0) + 1
            if _rank(writer) <= rank:
                by_writer = own.read.setdefault(reader.name, {}).setdefault(recipe, {})
                by_writer.setdefault(writer, {})[options] = load, subject, outcome
            else:
                part = parts.setdefault(release_folder(writer), _Part())
                part.shown[reader.name] = reader
                part.gave.setdefault(recipe, {}).setdefault(reader.name, {})[options] = load, subject, outcome
    subjects = {fixture: _most(counts.get(fixture, counted)) for fixture, (_, counted) in oldest.items()}
    for fixture, subject in subjects.items():
        writer, recipe = _writer(fixture)
        parts.setdefault(release_folder(writer), _Part()).wrote[recipe] = subject
    return parts, bodies, subjects


def _most(counted: dict[str, int]) -> str:
    """What was counted most often; of several, the last by the alphabet."""
    return max(counted, key=lambda name: (counted[name], name))


def _entries(reader: ObservedReader) -> Iterator[tuple[Cell, str, Body | Observation]]:
    if isinstance(reader.cells, _Column):
        return reader.cells.entries()
    return ((cell, one.key, one) for cell, one in reader.cells.items())


def _text(label: str, part: _Part, bodies: dict[str, dict[str, Any]], subjects: dict[str, str], told: set[str]) -> str:
    """A file. ``told`` are the outcomes that older files tell; those that this one tells are added."""
    readers, shown = part.readers.items(), sorted(part.shown, key=_place)
    lines = [f"observations {VERSION}\t{label}"]
    for name, reader in readers:
        facts = {"identity": reader.identity, "observed": reader.days.get(label, reader.observed), "protocol": reader.protocol}
        lines.append(f"reader\t{name}\t{dump(facts)}")
    for name in shown:
        reader = part.shown[name]
        lines.append(f"shown\t{name}\t{reader.days.get(label, reader.observed)}\t{reader.identity_digest}")
    answers: dict[str, dict[str, Any]] = {}
    asked: list[str] = []
    for kind, name, probe, key, body in _answers(part):
        identifier = digest(body)[:OUTCOME_DIGITS]
        answers[identifier] = body
        asked.append(f"{kind}\t{name}\t{probe}\t{key}\t{identifier}")
    lines += [f"answer\t{identifier}\t{dump(answers[identifier])}" for identifier in sorted(answers.keys() - told)]
    told.update(answers)
    lines += asked
    cells: list[str] = []
    used: set[str] = set()
    for name, recipes in part.read.items():
        writers = sorted({writer for by_writer in recipes.values() for writer in by_writer}, key=_place)
        cells.append(f"writers\t{name}\t{' '.join(writers)}")
        for recipe, by_writer in sorted(recipes.items()):
            sets: Sets = {}
            for writer, found in by_writer.items():
                _add(sets, found, 1 << writers.index(writer), subjects[f"{release_folder(writer)}/{recipe}"])
            used.update(outcome for _, outcome in sets)
            cells.append("\t".join([f"read\t{name}\t{recipe}", *_cells(sets, writers)]))
    for recipe, subject in sorted(part.wrote.items()):
        sets = {}
        for name, found in part.gave.get(recipe, {}).items():
            _add(sets, found, 1 << shown.index(name), subject)
        used.update(outcome for _, outcome in sets)
        cells.append("\t".join([f"wrote\t{recipe}\t{subject}", *_cells(sets, shown)]))
    lines += [f"outcome\t{outcome}\t{dump(bodies[outcome])}" for outcome in sorted(used - told)]
    told.update(used)
    lines += cells
    text = "".join(line + "\n" for line in lines)
    return f"{text}end\t{len(lines)}\t{hashlib.sha256(text.encode('ascii')).hexdigest()}\n"


def _answers(part: _Part) -> Iterator[tuple[str, str, str, str, dict[str, Any]]]:
    """What the readers of a file said to probes: kind of line, reader, probe, key, and the answer alone."""
    for name, reader in part.readers.items():
        for probe, said in sorted(reader.probes.items()):
            yield "probe", name, probe, said.key, _without_key(probe_entry(said))
    for name, reader in part.readers.items():
        for probe, used in sorted(reader.deprecations.items()):
            yield "deprecation", name, probe, used.key, _without_key(deprecation_entry(used))


def _without_key(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name not in {"kind", "probe", "key"}}


def _add(sets: Sets, found: dict[str, tuple[str, str, str]], bit: int, usual: str) -> None:
    """Add one writer or reader to the sets; a subject stands where it is not the usual one of the fixture."""
    for options, (load, subject, outcome) in found.items():
        place = f"{options}:{load}" if subject == usual else f"{options}:{load}:{subject}", outcome
        sets[place] = sets.get(place, 0) | bit


def _cells(sets: Sets, labels: list[str]) -> list[str]:
    short = Labels(label.removeprefix("torch-") for label in labels)
    return [f"{place} {outcome} {short.text(mask)}" for (place, outcome), mask in sorted(sets.items())]


def record(folder: Path, observed: ObservedReader) -> tuple[Recorded, list[Path]]:
    """Put what one reader did in the place of what the folder holds of it. Days stay where the facts of a file are the same.

    Returns:
        All that is recorded then, and the files that changed.

    Raises:
        CorpusError: (``unreadable-file``) a file of the folder cannot be used: what it holds would be lost.
    """
    with _locked(folder):
        known = read_recorded(folder)
        if known.unreadable:
            name, why = min(known.unreadable.items())
            raise CorpusError(
                f"cannot be used, so nothing is recorded beside it: {why}",
                where=str(folder / name),
                hint="restore it from version control",
                code="unreadable-file",
            )
        days = _days(known.readers.get(observed.name), observed)
        newer = replace(observed, observed=max(days.values()), days=days)
        readers = {**known.readers, observed.name: newer}
        return replace(known, readers=readers), write_recorded(folder, readers.values())


def _days(old: ObservedReader | None, new: ObservedReader) -> dict[str, str]:
    """The day of each file that holds something of a reader: the one before where it holds the same."""
    now = _by_file(new)
    if old is None or (old.identity, old.protocol) != (new.identity, new.protocol):
        return dict.fromkeys(now, new.observed)
    before = _by_file(old)
    if (old.probes, old.deprecations) != (new.probes, new.deprecations):
        del before[_file_of(old.name)]
    return {
        label: old.days.get(label, old.observed) if before.get(label) == cells else new.observed for label, cells in now.items()
    }


def _by_file(reader: ObservedReader) -> dict[str, dict[Cell, Observation]]:
    found: dict[str, dict[Cell, Observation]] = {_file_of(reader.name): {}}
    rank = _rank(reader.name)
    for cell, one in reader.cells.items():
        writer, _ = _writer(cell[0])
        label = _file_of(reader.name) if _rank(writer) <= rank else release_folder(writer)
        found.setdefault(label, {})[cell] = one
    return found


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Two that record into one folder wait for each other: outcomes stand in files that both may have to change."""
    folder.mkdir(parents=True, exist_ok=True)
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


# ----------------------------------------------------------------------------------------------------------------- reading


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
    files.sort(key=lambda one: _place(one.label))
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
        return bool(_rank(label)[0]) or (label.startswith("torch-") and "+" not in label)
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
    if _file_of(name) != file.label:
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
    if _rank(name) >= _rank(file.label):
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
    if sorted(names, key=_place) != names or _rank(names[-1]) > _rank(name):
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


class _Together:
    """Files held against each other: cells mean outcomes, fixtures and readers that other files tell."""

    def __init__(self, files: list[_File], unreadable: dict[str, str]) -> None:
        self.files, self.unreadable = files, unreadable
        self.readers = {name: reader for file in files for name, reader in file.readers.items()}
        self.most = min(MOST_CELLS, FREE_CELLS + CELLS_PER_BYTE * sum(file.size for file in files))
        self.order = tuple(sorted(self.readers, key=_place))
        self.bits = {name: 1 << at for at, name in enumerate(self.order)}
        self.outcomes = {body_id(body_entry(SAME)): SAME}
        self.answers: dict[str, dict[str, Any]] = {}
        self.subjects: dict[str, str] = {}
        for file in files:
            self.outcomes |= file.outcomes
            self.answers |= file.answers
            folder = release_folder(file.label.removeprefix("torch-"))
            for recipe, (_, subject, _) in file.wrote.items():
                self.subjects[f"{folder}/{recipe}"] = subject
        self.groups: dict[Cell, dict[tuple[str, str], int]] = {}
        self.seen: dict[Cell, int] = {}
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
            cell: tuple(Group(key, self.outcomes[outcome], mask) for (key, outcome), mask in found.items())
            for cell, found in sorted(self.groups.items())
        }
        readers = {}
        for name in self.order:
            reader, days = self.readers[name], self.days[name]
            days[_file_of(name)] = reader.observed
            cells = _Column(lines, self.bits[name])
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
        for number, name, recipe, cells in file.read:
            for writer, place, outcome in self._spread(file, number, file.writers[name], cells):
                self._put(file, number, f"{release_folder(writer)}/{recipe}", place, outcome, name, lacks)
        shown = Labels([name.removeprefix("torch-") for name in file.shown])
        names = {name.removeprefix("torch-"): name for name in file.shown}
        folder = release_folder(file.label.removeprefix("torch-"))
        for recipe, (number, _, cells) in file.wrote.items():
            for short, place, outcome in self._spread(file, number, shown, cells):
                self._put(file, number, f"{folder}/{recipe}", place, outcome, names[short], lacks)
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

    def _spread(self, file: _File, number: int, labels: Labels, cells: list[str]) -> Iterator[tuple[str, list[str], str]]:
        """Every label of every set, with options, load and perhaps subject, and outcome."""
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
            for name in names:
                yield name, parts, outcome

    def _put(self, file: _File, number: int, fixture: str, place: list[str], outcome: str, name: str, lacks: _Lacks) -> None:
        """Put down one cell."""
        options, load, *own = place
        subject = own[0] if own else self.subjects.get(fixture)
        bit = self.bits.get(name)
        body = self.outcomes.get(outcome)
        if subject is None or bit is None or body is None:
            lacks.add(f"the reader {name}" if bit is None else f"the outcome {outcome[:40]}" if body is None else fixture)
            return
        cell = fixture, options
        seen = self.seen.get(cell, 0)
        if not seen and len(self.seen) >= MOST_LINES:
            what = f"makes more than {MOST_LINES:,} pairs of a fixture and options"
            raise CorpusError(what, where=f"{file.path}:{number}", code="too-large")
        if seen & bit:
            raise CorpusError(f"observes {fixture} ({options}) by {name} again", where=f"{file.path}:{number}", code="duplicate")
        if body.result == "unsupported" and name != REFERENCE:
            what = f"says that {name} does not support {fixture}: a release does or refuses"
            raise CorpusError(what, where=f"{file.path}:{number}", code="bad-line")
        self.seen[cell] = seen | bit
        groups = self.groups.setdefault(cell, {})
        place_ = f"{subject}-{load}", outcome
        groups[place_] = groups.get(place_, 0) | bit
