"""Writes recorded observations: each cell to the file of its newer release, each outcome to the oldest file that uses it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from torch_compat.corpus.deprecations import deprecation_entry
from torch_compat.corpus.json_lines import dump
from torch_compat.corpus.manifest import release_folder
from torch_compat.corpus.observations import (
    SAME,
    Body,
    Observation,
    ObservedReader,
    body_entry,
    body_id,
    probe_entry,
)
from torch_compat.corpus.recorded.model import (
    SUFFIX,
    VERSION,
    Cell,
    Column,
    Recorded,
    file_of,
    place_of,
    rank,
    short_names,
    writer_of,
)
from torch_compat.corpus.recorded.reading import read_recorded
from torch_compat.corpus.recorded.shared_texts import apart
from torch_compat.errors import CorpusError
from torch_compat.places import inside
from torch_compat.releases.labels import Labels
from torch_compat.writes import put, remove

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path


__all__ = ["record", "write_recorded"]

Sets = dict[tuple[str, str], int]
"""A set of writers or readers, keyed by outcome and by options as written in a line."""


class _Form(NamedTuple):
    """The recorded form of an outcome or an answer, and the long texts that it references."""

    entry: dict[str, Any]
    texts: dict[str, str]


@dataclass
class _Part:
    """The contents of one file. For a fixture that a reader read: ``{options: (load, subject, outcome)}``."""

    readers: dict[str, ObservedReader] = field(default_factory=dict)
    shown: dict[str, ObservedReader] = field(default_factory=dict)
    read: dict[str, dict[str, dict[str, dict[str, tuple[str, str, str]]]]] = field(default_factory=dict)  # reader, recipe, writer
    wrote: dict[str, str] = field(default_factory=dict)  # recipe: subject
    gave: dict[str, dict[str, dict[str, tuple[str, str, str]]]] = field(default_factory=dict)  # recipe, reader


def write_recorded(folder: Path, readers: Iterable[ObservedReader]) -> list[Path]:
    """Write all observations of these readers, and remove those of others from the folder.

    Returns:
        The changed, added or removed files.
    """
    parts, bodies, subjects = _parts(readers)
    changed, told = [], {body_id(body_entry(SAME))}
    for label in sorted(parts, key=place_of):
        path, text = inside(folder, label + SUFFIX), _text(label, parts[label], bodies, subjects, told)
        if not path.is_file() or path.read_bytes() != text.encode():
            put(path, text)
            changed.append(path)
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        if path.stem not in parts:
            remove(path)
            changed.append(path)
    return changed


def _parts(readers: Iterable[ObservedReader]) -> tuple[dict[str, _Part], dict[str, _Form], dict[str, str]]:
    """Return the contents of each file, the recorded form of every outcome by id, and the subject of each fixture.

    The subject is the one of most cells in the writer's file, or else the one given to the oldest reader. Newer releases therefore change
    no files but their own.
    """
    parts: dict[str, _Part] = {}
    bodies: dict[str, _Form] = {}
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
                form = _form(body_entry(body))
                outcome = body_id(form.entry)
                bodies[outcome] = form
                if body.__class__ is Body:  # it stays alive, so its id is not reused
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


def _form(entry: dict[str, Any]) -> _Form:
    texts: dict[str, str] = {}
    return _Form(apart(entry, texts), texts)


def _most(counted: dict[str, int]) -> str:
    """Return the most frequent key; on ties, the alphabetically last."""
    return max(counted, key=lambda name: (counted[name], name))


def _entries(reader: ObservedReader) -> Iterator[tuple[Cell, str, Body | Observation]]:
    if isinstance(reader.cells, Column):
        return reader.cells.entries()
    return ((cell, item.key, item) for cell, item in reader.cells.items())


def _text(label: str, part: _Part, bodies: dict[str, _Form], subjects: dict[str, str], told: set[str]) -> str:
    """Return the text of a file. ``told`` are the outcomes, answers and texts that older files define; those of this file are added."""
    loads = _loads(part)
    lines = [f"observations {VERSION}\t{label}"]
    for name, reader in part.readers.items():
        facts = {"identity": reader.identity, "observed": reader.days.get(label, reader.observed), "protocol": reader.protocol}
        lines.append(f"reader\t{name}\t{dump(facts)}")
    days: dict[str, list[str]] = {}
    for name in sorted(part.shown, key=place_of):
        reader = part.shown[name]
        days.setdefault(reader.days.get(label, reader.observed), []).append(f"{name}:{reader.identity_digest}")
    lines += [f"shown\t{day}\t{' '.join(seals)}" for day, seals in sorted(days.items())]
    lines += [f"options\t{options}\t{load}" for options, load in sorted(loads.items())]
    asked, answers = _asked(part)
    cells, used = _lines_of_cells(part, subjects, loads)
    outcomes = {name: bodies[name] for name in used - told}
    answers = {name: form for name, form in answers.items() if name not in told}
    told.update(outcomes, answers)
    texts = {name: text for form in (*outcomes.values(), *answers.values()) for name, text in form.texts.items()}
    lines += [f"text\t{name}\t{dump(texts[name])}" for name in sorted(texts.keys() - told)]
    told.update(texts)
    lines += [f"answer\t{name}\t{dump(form.entry)}" for name, form in sorted(answers.items())]
    lines += asked
    lines += [f"outcome\t{name}\t{dump(form.entry)}" for name, form in sorted(outcomes.items())]
    lines += cells
    text = "".join(line + "\n" for line in lines)
    return f"{text}end\t{len(lines)}\t{hashlib.sha256(text.encode('ascii')).hexdigest()}\n"


def _loads(part: _Part) -> dict[str, str]:
    """Return the most frequent digest in a file for each name of load options."""
    counts: dict[str, dict[str, int]] = {}
    by_recipe = [by_writer for recipes in part.read.values() for by_writer in recipes.values()]
    for result in (outcome for by_name in (*by_recipe, *part.gave.values()) for outcome in by_name.values()):
        for options, (load, _, _) in result.items():
            counted = counts.setdefault(options, {})
            counted[load] = counted.get(load, 0) + 1
    return {options: _most(counted) for options, counted in counts.items()}


def _lines_of_cells(part: _Part, subjects: dict[str, str], loads: dict[str, str]) -> tuple[list[str], set[str]]:
    """Return the ``read`` and ``wrote`` lines of a file, and the outcomes that they reference."""
    lines: list[str] = []
    used: set[str] = set()
    for name, recipes in part.read.items():
        writers = sorted({writer for by_writer in recipes.values() for writer in by_writer}, key=place_of)
        lines.append(f"writers\t{name}\t{' '.join(writers)}")
        alike: dict[str, list[str]] = {}
        for recipe, by_writer in sorted(recipes.items()):
            sets: Sets = {}
            for writer, result in by_writer.items():
                _add(sets, result, 1 << writers.index(writer), subjects[f"{release_folder(writer)}/{recipe}"], loads)
            used.update(outcome for _, outcome in sets)
            alike.setdefault(_cells(sets, Labels(writers)), []).append(recipe)
        lines += [f"read\t{name}\t{' '.join(names)}{cells}" for cells, names in alike.items()]
    shown = sorted(part.shown, key=place_of)
    short = Labels(short_names(shown))
    alike = {}
    for recipe, subject in sorted(part.wrote.items()):
        sets = {}
        for name, result in part.gave.get(recipe, {}).items():
            _add(sets, result, 1 << shown.index(name), subject, loads)
        used.update(outcome for _, outcome in sets)
        alike.setdefault(_cells(sets, short), []).append(f"{recipe}:{subject}")
    lines += [f"wrote\t{' '.join(fixtures)}{cells}" for cells, fixtures in alike.items()]
    return lines, used


def _asked(part: _Part) -> tuple[list[str], dict[str, _Form]]:
    """Return the probe lines of a file's readers, and the answers by id."""
    answers: dict[str, _Form] = {}
    messages: dict[tuple[str, str], list[str]] = {}
    for kind, name, probe, key, answer in _answers(part):
        form = _form(answer)
        identifier = body_id(form.entry)
        answers[identifier] = form
        messages.setdefault((kind, name), []).append(f"{probe}:{key}:{identifier}")
    return [f"{kind}\t{name}\t{' '.join(sorted(item))}" for (kind, name), item in messages.items()], answers


def _answers(part: _Part) -> Iterator[tuple[str, str, str, str, dict[str, Any]]]:
    """Yield the probe answers of a file's readers: kind of line, reader, probe, key, and the answer without its key."""
    for name, reader in part.readers.items():
        for probe, message in sorted(reader.probes.items()):
            yield "probe", name, probe, message.key, _without_key(probe_entry(message))
    for name, reader in part.readers.items():
        for probe, used in sorted(reader.deprecations.items()):
            yield "deprecation", name, probe, used.key, _without_key(deprecation_entry(used))


def _without_key(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name not in {"kind", "probe", "key"}}


def _add(sets: Sets, value: dict[str, tuple[str, str, str]], bit: int, subject: str, loads: dict[str, str]) -> None:
    """Add one writer or reader to the sets; load options and subject are included if they are not the usual ones."""
    for options, (load, own, outcome) in value.items():
        place = f"{options}:{load}:{own}" if own != subject else options if load == loads[options] else f"{options}:{load}"
        sets[place, outcome] = sets.get((place, outcome), 0) | bit


def _cells(sets: Sets, labels: Labels) -> str:
    """Return the end of a line, from the tab on."""
    by_place: dict[str, str] = {}
    for (place, outcome), mask in sorted(sets.items()):
        by_place[place] = f"{by_place.get(place, place)} {outcome} {labels.text(mask)}"
    return "".join(f"\t{text}" for text in by_place.values())


def record(
    folder: Path, observed: ObservedReader, merge: Callable[[ObservedReader | None], ObservedReader] | None = None
) -> tuple[Recorded, list[Path]]:
    """Replace a folder's observations of one reader. Dates are kept for files whose facts are unchanged.

    Recording may change files that other readers share: the caller must hold the lock of the tree.

    Parameters:
        merge: computes the new record from the folder's current one of this reader; by default, ``observed`` replaces it.

    Returns:
        The new contents of the folder, and the files that changed.

    Raises:
        CorpusError: (``unreadable-file``) a file of the folder cannot be used, and its contents would be lost.
    """
    known = read_recorded(folder)
    if known.unreadable:
        name, why = min(known.unreadable.items())
        raise CorpusError(
            f"cannot be used, so no new observations are recorded: {why}",
            where=str(folder / name),
            hint="restore it from version control",
            code="unreadable-file",
        )
    old = known.readers.get(observed.name)
    if merge is not None:
        observed = merge(old)
    days = _days(old, observed)
    newer = replace(observed, observed=max(days.values()), days=days)
    readers = {**known.readers, observed.name: newer}
    return replace(known, readers=readers), write_recorded(folder, readers.values())


def _days(old: ObservedReader | None, new: ObservedReader) -> dict[str, str]:
    """Return the date of each file with data of a reader: the previous date if the data is unchanged."""
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
    results: dict[str, dict[Cell, Observation]] = {file_of(reader.name): {}}
    age = rank(reader.name)
    for cell, item in reader.cells.items():
        writer, _ = writer_of(cell[0])
        label = file_of(reader.name) if rank(writer) <= age else release_folder(writer)
        results.setdefault(label, {})[cell] = item
    return results
