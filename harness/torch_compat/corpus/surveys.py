"""Surveys: what each release reports about itself, recorded as histories shared by all releases.

Every section of a survey (harness/torch_compat/inside/survey.py) has one file, in the format of :mod:`torch_compat.operators.history`; the
surveyed readers and dates are in ``operators/releases.jsonl``. A release is added to the files, or replaced in them, as a whole; facts that
it shares with other releases are on existing lines. Reading a release back gives exactly its survey.
"""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from torch_compat.corpus.json_lines import dump
from torch_compat.errors import CorpusError
from torch_compat.operators.history import LEFT_OUT, UNSURE, VERSION, HistoryFile, quoted
from torch_compat.places import inside, read_whole
from torch_compat.releases.known import Known
from torch_compat.releases.release import Release
from torch_compat.writes import put, remove

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

__all__ = [
    "FILES",
    "RELEASES",
    "Survey",
    "SurveySection",
    "drop_surveys",
    "parse_survey",
    "read_survey",
    "section_without",
    "survey_differences",
    "surveyed_releases",
    "write_surveys",
]

SCHEMA_VERSION = 1
HINT = "restore it from version control, or observe that release again with --record"
RELEASES: Final = "operators/releases.jsonl"
FILES: Final = {
    "schemas": ("operators/schemas.txt", "texts"),
    "imported": ("operators/imported.txt", "sets"),
    "custom_classes": ("operators/custom_classes.txt", "texts"),
    "kernels": ("operators/kernels.txt", "sets"),
    "native_functions": ("operators/native_functions.txt", "sets"),
    "operator_versions": ("operators/operator_versions.txt", "facts"),
    "upgraders": ("operators/upgraders.txt", "facts"),
    "accepts": ("operators/accepts.txt", "facts"),
    "constants": ("operators/constants.txt", "facts"),
    "weights_only": ("operators/weights_only.txt", "facts"),
    "halves": ("operators/halves.txt", "facts"),
    "dtypes": ("operators/dtypes.txt", "facts"),
    "outs": ("operators/outs.txt", "facts"),
    "calls": ("operators/calls.txt", "facts"),
    "export_schema": ("operators/export_schema.txt", "facts"),
    "export_witnesses": ("operators/export_witnesses.txt", "facts"),
    "global_names": ("globals/names.txt", "sets"),
    "renamed_modules": ("globals/renamed_modules.txt", "facts"),
}
"""For each section, its file below ``fixtures/`` and the layout of that file."""
ONE_SPAN_A_LINE: Final = frozenset({"global_names"})
"""Sets whose keys contain so many words that each span is written on its own line."""
NONE: Final = "-"
"""In a set: a key without words."""
FILE: Final = "(file)"
"""The key under which native_functions records which file was read."""
STEP: Final = " > "
EACH: Final = "[]"

Fact = tuple[str, str]


@dataclass(frozen=True)
class SurveySection:
    """One set.

    Attributes:
        obtained: how it was obtained, in one sentence.
        complete: whether nothing is missing from it.
        why_incomplete: what is missing and why; None exactly if it is complete.
        entries: the set itself; its form depends on the section.
    """

    obtained: str
    complete: bool
    why_incomplete: str | None
    entries: list[Any] | dict[str, Any]


@dataclass(frozen=True)
class Survey:
    """All sets of one release.

    Attributes:
        release: the release as the calendar names it, "1.5.1".
        identity: the identity of the surveyed reader.
        recorded: the date.
        sections: the sets by name.
    """

    release: str
    identity: Mapping[str, Any]
    recorded: dt.date
    sections: Mapping[str, SurveySection]


# ---------------------------------------------------------------------------------------------------------- what was said


def parse_survey(release: str, identity: Mapping[str, Any], recorded: dt.date, survey: Any) -> Survey:
    """Check and parse the survey of a release; raise CorpusError if it is invalid, or cannot be recorded without loss."""
    where = f"the survey of {release}"

    def need(holds: object, message: str) -> None:
        if not holds:
            raise CorpusError(message, where=where, hint="see harness/torch_compat/inside/survey.py", code="survey")

    need(isinstance(survey, dict), "is not a JSON object")
    need(survey.keys() == FILES.keys(), f"has sections {sorted(survey)}, expected {sorted(FILES)}")
    for name, section in survey.items():
        at = f"section {name!r}"
        need(isinstance(section, dict), f"{at} is not an object")
        need(section.keys() == SurveySection.__annotations__.keys(), f"{at} has the keys {sorted(section)}")
        need(_one_line(section["obtained"]), f"{at} does not say in one line how it was obtained")
        need(isinstance(section["complete"], bool), f"{at} does not say whether it is complete")
        why = section["why_incomplete"]
        need(why is None if section["complete"] else _one_line(why), f"{at}: why_incomplete contradicts complete")
        need(isinstance(section["entries"], list | dict), f"{at}: entries is neither a list nor an object")
        try:
            facts = list(_facts(name, section["entries"]))
            odd = next((key for key, _ in facts if not _one_line(key) or key.startswith("# ")), None)
            need(odd is None, f"{at}: {odd!r} cannot start a line")
            again = _entries(name, facts)
        except (TypeError, KeyError, AttributeError, ValueError) as error:
            raise CorpusError(
                f"{at}: entries do not have the format of that section: {error!r}", where=where, code="survey"
            ) from error
        need(again == section["entries"], f"{at}: its entries cannot be read back unchanged")
    return Survey(release, dict(identity), recorded, {name: SurveySection(**survey[name]) for name in FILES})


def _one_line(text: object) -> bool:
    return isinstance(text, str) and bool(text) and not set("\t\n") & set(text)


def _facts(name: str, entries: Any) -> Iterator[Fact]:
    """Yield the facts of a section as pairs of key and value."""
    layout = FILES[name][1]
    if layout == "texts":
        yield from ((text, "") for text in entries)
    elif layout == "facts":
        yield from _flat(entries, "")
    else:
        for key, words in _sets(name, entries).items():
            yield from ((key, word) for word in words or [NONE])


def _flat(value: Any, path: str) -> Iterator[Fact]:
    if isinstance(value, dict) and (value or not path):
        for key, inner in value.items():
            yield from _flat(inner, f"{path}{STEP}{key}" if path else key)
    elif isinstance(value, list) and value and all(isinstance(item, str) for item in value) and value == sorted(set(value)):
        yield from ((path + EACH, dump(item)) for item in value)
    else:
        yield path, dump(value)


def _sets(name: str, entries: Any) -> dict[str, list[str]]:
    if name in {"kernels", "imported"}:
        return {key: [words] if isinstance(words, str) else words for key, words in entries.items()}
    if name == "global_names":
        sets = {key: list(words) for key, words in entries["names"].items()}
        for key, reason in entries["not_imported"].items():
            sets.setdefault(key, []).append(UNSURE + reason)
        return {**sets, LEFT_OUT: entries["left_out"]}
    if not entries:
        return {}
    sets = {
        operator: [
            word if field == "dispatch" else f"{field}:{word}"
            for field, words in told.items()
            for word in ([words] if isinstance(words, str) else words)
        ]
        for operator, told in entries["functions"].items()
    }
    return {**sets, FILE: [f"{field}:{entries[field]}" for field in ("path", "sha256")]}


def _entries(name: str, facts: Iterable[Fact]) -> list[Any] | dict[str, Any]:
    """Rebuild the entries of a section from its pairs: the inverse of ``_facts``."""
    layout = FILES[name][1]
    if layout == "texts":
        return sorted(text for text, _ in facts)
    if layout == "facts":
        return _nested(facts)
    sets: dict[str, list[str]] = {}
    for key, word in facts:
        sets.setdefault(key, [])
        if word != NONE:
            sets[key].append(word)
    for words in sets.values():
        words.sort()
    if name == "imported":
        return sets
    if name == "kernels":
        return {key: words[0] if words and words[0].startswith("crashed: ") else words for key, words in sets.items()}
    if name == "global_names":
        left_out = sets.pop(LEFT_OUT, [])
        named = {key: [word for word in words if not word.startswith(UNSURE)] for key, words in sets.items()}
        unsure = {key: word[1:] for key, words in sets.items() for word in words if word.startswith(UNSURE)}
        return {"names": {key: words for key, words in named.items() if words}, "not_imported": unsure, "left_out": left_out}
    if not sets:
        return {}
    read = dict(word.split(":", 1) for word in sets.pop(FILE))
    functions: dict[str, dict[str, Any]] = {}
    for operator, words in sets.items():
        told: dict[str, Any] = functions.setdefault(operator, {})
        for word in words:
            field, value = word.split(":", 1) if ":" in word else ("dispatch", word)
            if field == "structured_delegate":
                told[field] = value
            else:
                told.setdefault(field, []).append(value)
    return {**read, "functions": functions}


def _nested(facts: Iterable[Fact]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    lists: list[list[str]] = []
    for path, value in facts:
        *outer, last = path.split(STEP)
        inner = tree
        for key in outer:
            inner = inner.setdefault(key, {})
        if not last.endswith(EACH):
            inner[last] = json.loads(value)
            continue
        if last.removesuffix(EACH) not in inner:
            lists.append(inner.setdefault(last.removesuffix(EACH), []))
        inner[last.removesuffix(EACH)].append(json.loads(value))
    for items in lists:
        items.sort()
    return tree


# ------------------------------------------------------------------------------------------------------ what is recorded


def surveyed_releases(fixtures: Path) -> dict[str, dict[str, Any]]:
    """Return who was surveyed and when, by release; empty if nothing is recorded."""
    path = inside(fixtures, RELEASES)
    try:
        lines = read_whole(path).decode("utf-8").splitlines()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(f"cannot be read: {error}", where=str(path), hint=HINT) from error
    told = {}
    for number, line in enumerate(lines, 1):
        at = f"{path}, line {number}"
        try:
            entry = json.loads(line)
        except ValueError as error:
            raise CorpusError(f"is not JSON: {error}", where=at, hint=HINT) from error
        if not isinstance(entry, dict) or entry.keys() != {"schema_version", "release", "identity", "recorded"}:
            raise CorpusError("is not an entry for a surveyed release", where=at, hint=HINT)
        if entry["schema_version"] != SCHEMA_VERSION:
            raise CorpusError(f"schema_version is {entry['schema_version']!r}, expected {SCHEMA_VERSION}", where=at, hint=HINT)
        if entry["release"] in told:
            raise CorpusError(f"a duplicate entry for {entry['release']}", where=at, hint=HINT)
        told[entry["release"]] = entry
    return told


def read_survey(fixtures: Path, release: str) -> Survey:
    """Return the recorded survey of a release; raise CorpusError if there is none or one of its files is damaged."""
    told = surveyed_releases(fixtures)
    if release not in told:
        raise CorpusError(
            f"there is no recorded survey of {release}", where=str(fixtures / RELEASES), hint=HINT, code="survey-missing"
        )
    sections = {}
    for name in FILES:
        recorded = _recorded(fixtures, name, told)
        bit = recorded.bit(release)
        why = recorded.why_incomplete(release)
        facts = [(key, value) for key, value, bits in recorded.facts() if bits & bit]
        sections[name] = SurveySection(recorded.how(release), why is None, why, _entries(name, facts))
    entry = told[release]
    try:
        day = dt.date.fromisoformat(entry["recorded"])
    except (TypeError, ValueError) as error:
        raise CorpusError(f"recorded is not a date: {error}", where=str(fixtures / RELEASES), hint=HINT) from error
    return Survey(release, entry["identity"], day, sections)


def _recorded(fixtures: Path, name: str, told: Mapping[str, Any], replaced: frozenset[str] = frozenset()) -> HistoryFile:
    """Read the file of a section, which must have exactly the recorded releases.

    Parameters:
        replaced: releases that are about to be written: a killed run may have left them in this file but not in all.
    """
    file, layout = FILES[name]
    recorded = HistoryFile(inside(fixtures, file))
    if recorded.shown != layout:
        raise CorpusError(f"has layout {recorded.shown!r}, expected {layout!r}", where=str(recorded.path), hint=HINT)
    odd = ", ".join(sorted((set(recorded.releases) ^ set(told)) - replaced))
    if odd:
        raise CorpusError(f"does not cover the same releases as {RELEASES}: {odd}", where=str(recorded.path), hint=HINT)
    everyone = recorded.known.everyone
    asked = 0
    for bits, _ in recorded.obtained:
        asked |= bits
    if asked != everyone:
        missing = ", ".join(recorded.of(everyone & ~asked))
        raise CorpusError(f"does not state how {missing} was obtained", where=str(recorded.path), hint=HINT)
    return recorded


def write_surveys(fixtures: Path, surveys: Iterable[Survey]) -> None:
    """Add surveys to the record, or replace earlier ones of their releases; nothing else changes."""
    surveys = list(surveys)
    told = surveyed_releases(fixtures)
    texts = {inside(fixtures, file): _merged(fixtures, name, told, surveys) for name, (file, _) in FILES.items()}
    for survey in surveys:
        told[survey.release] = {
            "schema_version": SCHEMA_VERSION,
            "release": survey.release,
            "identity": dict(survey.identity),
            "recorded": survey.recorded.isoformat(),
        }
    _write(fixtures, texts, told)


def drop_surveys(fixtures: Path, releases: Iterable[str]) -> None:
    """Remove the surveys of releases from the record; nothing else changes. Releases that were not surveyed are ignored.

    If no survey is left, all files are removed, since a history needs at least one release.
    """
    told = surveyed_releases(fixtures)
    dropped = frozenset(releases) & told.keys()
    if dropped == told.keys():
        for file in (RELEASES, *(file for file, _ in FILES.values())):  # the list of releases first: it stands for the others
            remove(inside(fixtures, file))
    elif dropped:
        texts = {inside(fixtures, file): _merged(fixtures, name, told, [], dropped) for name, (file, _) in FILES.items()}
        _write(fixtures, texts, {release: entry for release, entry in told.items() if release not in dropped})


def section_without(fixtures: Path, name: str, releases: Iterable[str]) -> str:
    """Return the text of one section's file without some releases; at least one other release must be recorded.

    Parameters:
        name: a key of :data:`FILES`.
    """
    told = surveyed_releases(fixtures)
    return _merged(fixtures, name, told, [], frozenset(releases) & told.keys())


def _write(fixtures: Path, texts: dict[Path, str], told: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the files of all sections, and the list of releases last."""
    texts[inside(fixtures, RELEASES)] = "".join(dump(told[release]) + "\n" for release in sorted(told, key=Release))
    for path, text in texts.items():
        put(path, text, encoding="utf-8")


def _merged(
    fixtures: Path, name: str, told: Mapping[str, Any], surveys: list[Survey], dropped: frozenset[str] = frozenset()
) -> str:
    """Return the file of a section with these surveys added and the dropped ones removed."""
    new = {survey.release: survey.sections[name] for survey in surveys}
    known = Known(sorted({*told, *new} - dropped, key=Release))
    facts: dict[Fact, int] = {}
    obtained: dict[str, int] = {}
    incomplete: dict[str, int] = {}
    if told:
        old = _recorded(fixtures, name, told, frozenset(new))
        cache: dict[int, int] = {}

        def move(bits: int) -> int:
            if bits not in cache:
                cache[bits] = known.holding(release for release in old.of(bits) if release in known and release not in new)
            return cache[bits]

        for key, value, bits in old.facts():
            facts[key, value] = facts.get((key, value), 0) | move(bits)
        for kept, now in ((old.obtained, obtained), (old.incomplete, incomplete)):
            for bits, message in kept:
                now[message] = now.get(message, 0) | move(bits)
    for release, section in new.items():
        bit = known.bit(release)
        obtained[section.obtained] = obtained.get(section.obtained, 0) | bit
        if section.why_incomplete is not None:
            incomplete[section.why_incomplete] = incomplete.get(section.why_incomplete, 0) | bit
        for fact in _facts(name, section.entries):
            facts[fact] = facts.get(fact, 0) | bit
    layout = FILES[name][1]
    lines = [f"# history {VERSION} {layout}", "# releases " + " ".join(known.releases)]
    for kind, said_of in (("obtained", obtained), ("incomplete", incomplete)):
        lines += [
            f"# {kind}\t{known.text(bits)}\t{text}"
            for bits, text in sorted(
                ((bits, text) for text, bits in said_of.items() if bits), key=lambda item: (_first(item[0]), item)
            )
        ]
    lines += _layout(layout, {fact: bits for fact, bits in facts.items() if bits}, known, apart=name in ONE_SPAN_A_LINE)
    return "\n".join(lines) + "\n"


def _first(bits: int) -> int:
    return bits & -bits


def _layout(layout: str, facts: dict[Fact, int], known: Known, *, apart: bool) -> Iterator[str]:
    if layout == "texts":
        by_name = sorted((text.partition("(")[0], _first(bits), text, bits) for (text, _), bits in facts.items())
        yield from (f"{text}\t{known.text(bits)}" for _, _, text, bits in by_name)
        return
    if layout == "facts":
        by_key = sorted((key, _first(bits), value, bits) for (key, value), bits in facts.items())
        yield from (f"{key}\t{value}\t{known.text(bits)}" for key, _, value, bits in by_key)
        return
    groups: dict[str, dict[int, list[str]]] = {}
    for (key, word), bits in facts.items():
        groups.setdefault(key, {}).setdefault(bits, []).append(word)
    for key in sorted(groups):
        columns = [
            " ".join([known.text(bits), *map(quoted, sorted(words))])
            for bits, words in sorted(groups[key].items(), key=lambda item: (_first(item[0]), item[0]))
        ]
        if apart:
            yield from (f"{key}\t{column}" for column in columns)
        else:
            yield "\t".join([key, *columns])


# ---------------------------------------------------------------------------------------------------------- what differs


def survey_differences(old: Survey, new: Survey) -> list[str]:
    """Return the differences between two surveys of the same release, one line per section and fact.

    The date is ignored, and of the identity only the parts about torch itself are compared.
    """
    lines = [
        f"{key}: was {old.identity.get(key)!r}, is {new.identity.get(key)!r}"
        for key in ("torch", "git")
        if old.identity.get(key) != new.identity.get(key)
    ]
    for name in sorted(old.sections.keys() | new.sections.keys()):
        if name not in new.sections:
            lines.append(f"{name}: the section was removed")
        elif name not in old.sections:
            lines.append(f"{name}: the section is new")
        else:
            lines += [f"{name}: {line}" for line in _section_differences(old.sections[name], new.sections[name])]
    return lines


def _section_differences(old: SurveySection, new: SurveySection) -> Iterator[str]:
    if old.obtained != new.obtained:
        yield f"obtained differently: was {old.obtained!r}, is {new.obtained!r}"
    if old.complete != new.complete:
        yield "now complete" if new.complete else f"no longer complete: {new.why_incomplete}"
    elif old.why_incomplete != new.why_incomplete:
        yield f"incomplete for a different reason: was {old.why_incomplete!r}, is {new.why_incomplete!r}"
    before, after = _compared(old.entries), _compared(new.entries)
    for what, keys in (
        ("gone", before.keys() - after.keys()),
        ("new", after.keys() - before.keys()),
        ("changed", {key for key in before.keys() & after.keys() if before[key] != after[key]}),
    ):
        if keys:
            yield f"{len(keys)} {what}, first {min(keys)!r}"


def _compared(entries: Any, path: str = "") -> dict[str, Any]:
    """Flatten entries into one comparable table: a top-level list is a set of texts, object values are keyed by path."""
    if isinstance(entries, dict) and (entries or not path):
        flat: dict[str, Any] = {}
        for key, value in entries.items():
            flat |= _compared(value, f"{path}{STEP}{key}" if path else key)
        return flat
    if isinstance(entries, list) and not path:
        return dict.fromkeys(map(str, entries))
    return {path: entries}
