"""Writing recorded observations: each cell into the file of the newer of its two releases, each outcome into the oldest file that has it."""

from __future__ import annotations

import fcntl
import hashlib
import os
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from torch_compat.corpus.deprecations import deprecation_entry
from torch_compat.corpus.lines import digest, dump, write_whole
from torch_compat.corpus.manifest import release_folder
from torch_compat.corpus.observations import (
    OUTCOME_DIGITS,
    SAME,
    Body,
    Observation,
    ObservedReader,
    body_entry,
    body_id,
    probe_entry,
)
from torch_compat.corpus.recorded.model import SUFFIX, VERSION, Cell, Column, Recorded, file_of, place_of, rank, writer_of
from torch_compat.corpus.recorded.reading import read_recorded
from torch_compat.errors import CorpusError
from torch_compat.places import inside
from torch_compat.releases.labels import Labels

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


__all__ = ["record", "write_recorded"]

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
    for label in sorted(parts, key=place_of):
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
    for reader in sorted(readers, key=lambda reader: place_of(reader.name)):
        age, own = rank(reader.name), parts.setdefault(file_of(reader.name), _Part())
        own.readers[reader.name] = reader
        for (fixture, options), key, body in _entries(reader):
            writer, recipe = writer_of(fixture)
            subject, _, load = key.partition("-")
            outcome = names.get(id(body))
            if outcome is None:
                entry = body_entry(body)
                outcome = body_id(entry)
                bodies[outcome] = entry
                if body.__class__ is Body:  # it stays alive, so its id stays its own
                    names[id(body)] = outcome
            if rank(writer) >= age:
                counted = counts.setdefault(fixture, {})
                counted[subject] = counted.get(subject, 0) + 1
            who, counted = oldest.setdefault(fixture, (reader.name, {}))
            if who == reader.name:
                counted[subject] = counted.get(subject, 0) + 1
            if rank(writer) <= age:
                by_writer = own.read.setdefault(reader.name, {}).setdefault(recipe, {})
                by_writer.setdefault(writer, {})[options] = load, subject, outcome
            else:
                part = parts.setdefault(release_folder(writer), _Part())
                part.shown[reader.name] = reader
                part.gave.setdefault(recipe, {}).setdefault(reader.name, {})[options] = load, subject, outcome
    subjects = {fixture: _most(counts.get(fixture, counted)) for fixture, (_, counted) in oldest.items()}
    for fixture, subject in subjects.items():
        writer, recipe = writer_of(fixture)
        parts.setdefault(release_folder(writer), _Part()).wrote[recipe] = subject
    return parts, bodies, subjects


def _most(counted: dict[str, int]) -> str:
    """What was counted most often; of several, the last by the alphabet."""
    return max(counted, key=lambda name: (counted[name], name))


def _entries(reader: ObservedReader) -> Iterator[tuple[Cell, str, Body | Observation]]:
    if isinstance(reader.cells, Column):
        return reader.cells.entries()
    return ((cell, one.key, one) for cell, one in reader.cells.items())


def _text(label: str, part: _Part, bodies: dict[str, dict[str, Any]], subjects: dict[str, str], told: set[str]) -> str:
    """A file. ``told`` are the outcomes that older files tell; those that this one tells are added."""
    readers, shown = part.readers.items(), sorted(part.shown, key=place_of)
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
        writers = sorted({writer for by_writer in recipes.values() for writer in by_writer}, key=place_of)
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
        del before[file_of(old.name)]
    return {
        label: old.days.get(label, old.observed) if before.get(label) == cells else new.observed for label, cells in now.items()
    }


def _by_file(reader: ObservedReader) -> dict[str, dict[Cell, Observation]]:
    found: dict[str, dict[Cell, Observation]] = {file_of(reader.name): {}}
    age = rank(reader.name)
    for cell, one in reader.cells.items():
        writer, _ = writer_of(cell[0])
        label = file_of(reader.name) if rank(writer) <= age else release_folder(writer)
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
