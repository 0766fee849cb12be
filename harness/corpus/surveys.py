"""Recorded sets: what one release says about itself, as its survey gave it, one file per release.

Where they stand: ``fixtures/operators/torch-<release>.json``. A file is one JSON object::

    {"schema_version": 1, "release": "1.5.1", "identity": {...}, "recorded": "2026-07-01", "sections": {name: section}}
    section = {"obtained": how, "complete": bool, "why_incomplete": str or null, "entries": list or object}

It is laid out for small diffs: whatever fits on one line stands on one line, so each schema, operator and answer has its own.
"""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.errors import CorpusError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

__all__ = ["SCHEMA_VERSION", "Section", "Survey", "read_survey", "survey_differences", "write_survey"]

SCHEMA_VERSION = 1
WIDTH = 130
HINT = "take it from version control, or observe that release again and record"


@dataclass(frozen=True)
class Section:
    """One set.

    Attributes:
        obtained: how it was obtained, one sentence.
        complete: whether nothing is missing from it.
        why_incomplete: what is missing and why; None exactly if it is complete.
        entries: the set itself; its form is the section's own.
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
        identity: the reader that said so.
        recorded: the day.
        sections: set by name.
    """

    release: str
    identity: Mapping[str, Any]
    recorded: dt.date
    sections: Mapping[str, Section]


def write_survey(path: Path, release: str, identity: Mapping[str, Any], recorded: dt.date, survey: Mapping[str, Any]) -> None:
    """Record what the survey of a release gave; raises CorpusError and writes nothing if it is not one."""
    tree = {
        "schema_version": SCHEMA_VERSION,
        "release": release,
        "identity": dict(identity),
        "recorded": recorded.isoformat(),
        "sections": dict(survey),
    }
    _parse(tree, path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(_layout(tree)) + "\n", encoding="utf-8")


def read_survey(path: Path) -> Survey:
    """The recorded survey in a file; raises CorpusError if it is missing or not one."""
    try:
        tree = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CorpusError("there is no recorded survey here", where=str(path), hint=HINT, code="survey-missing") from None
    except OSError as error:
        raise CorpusError(f"cannot be read: {error.strerror}", where=str(path), hint=HINT) from error
    except ValueError as error:
        raise CorpusError(f"is not JSON: {error}", where=str(path), hint=HINT) from error
    return _parse(tree, path)


def survey_differences(old: Survey, new: Survey) -> list[str]:
    """What another survey of the same release says differently, one line per section and fact; empty if nothing.

    The day does not count, and the identity only in what it says of torch itself.
    """
    lines = [
        f"{key}: was {old.identity.get(key)!r}, is {new.identity.get(key)!r}"
        for key in ("torch", "git")
        if old.identity.get(key) != new.identity.get(key)
    ]
    for name in sorted(old.sections.keys() | new.sections.keys()):
        if name not in new.sections:
            lines.append(f"{name}: the section is gone")
        elif name not in old.sections:
            lines.append(f"{name}: the section is new")
        else:
            lines += [f"{name}: {line}" for line in _section_differences(old.sections[name], new.sections[name])]
    return lines


def _section_differences(old: Section, new: Section) -> Iterator[str]:
    if old.obtained != new.obtained:
        yield f"obtained in another way: was {old.obtained!r}, is {new.obtained!r}"
    if old.complete != new.complete:
        yield "now complete" if new.complete else f"no longer complete: {new.why_incomplete}"
    elif old.why_incomplete != new.why_incomplete:
        yield f"incomplete for another reason: was {old.why_incomplete!r}, is {new.why_incomplete!r}"
    before, after = _flat(old.entries), _flat(new.entries)
    for what, keys in (
        ("gone", before.keys() - after.keys()),
        ("new", after.keys() - before.keys()),
        ("changed", {key for key in before.keys() & after.keys() if before[key] != after[key]}),
    ):
        if keys:
            yield f"{len(keys)} {what}, first {min(keys)!r}"


def _flat(entries: Any, path: str = "") -> dict[str, Any]:
    """Entries as one flat table that can be compared: a list at the top is a set of texts, objects go by their path."""
    if isinstance(entries, dict) and (entries or not path):
        flat: dict[str, Any] = {}
        for key, value in entries.items():
            flat |= _flat(value, f"{path} > {key}" if path else key)
        return flat
    if isinstance(entries, list) and not path:
        return dict.fromkeys(map(str, entries))
    return {path: entries}


def _layout(value: Any, indent: int = 0, lead: int = 0) -> Iterator[str]:
    """JSON with sorted keys, on one line where it fits into WIDTH. ``lead``: columns already used on this line."""
    line = json.dumps(value, sort_keys=True, ensure_ascii=False)
    if not isinstance(value, list | dict) or not value or lead + len(line) < WIDTH:
        yield line
        return
    inner = indent + 1
    opening, closing = "[]" if isinstance(value, list) else "{}"
    separator = opening + "\n" + " " * inner
    for key, item in sorted(value.items()) if isinstance(value, dict) else ((None, item) for item in value):
        label = "" if key is None else json.dumps(key, ensure_ascii=False) + ": "
        yield separator + label
        yield from _layout(item, inner, inner + len(label))
        separator = ",\n" + " " * inner
    yield "\n" + " " * indent + closing


def _parse(tree: Any, path: Path) -> Survey:
    def need(holds: object, message: str) -> None:
        if not holds:
            raise CorpusError(message, where=str(path), hint=HINT)

    need(isinstance(tree, dict), "holds no JSON object")
    version = tree.get("schema_version")
    need(version == SCHEMA_VERSION, f"schema_version is {version!r}, expected {SCHEMA_VERSION}")
    expected = {"schema_version", "release", "identity", "recorded", "sections"}
    need(tree.keys() == expected, f"has the keys {sorted(tree)}, expected {sorted(expected)}")
    need(isinstance(tree["release"], str) and tree["release"], "release is not a text")
    need(isinstance(tree["identity"], dict), "identity is not an object")
    need(isinstance(tree["sections"], dict) and tree["sections"], "sections is not an object with at least one section")
    try:
        recorded = dt.date.fromisoformat(tree["recorded"])
    except (TypeError, ValueError) as error:
        raise CorpusError(f"recorded is not a date: {error}", where=str(path), hint=HINT) from error
    for name, section in tree["sections"].items():
        at = f"section {name!r}"
        need(isinstance(section, dict), f"{at} is not an object")
        need(section.keys() == Section.__annotations__.keys(), f"{at} has the keys {sorted(section)}")
        need(isinstance(section["obtained"], str) and section["obtained"], f"{at} does not say how it was obtained")
        need(isinstance(section["complete"], bool), f"{at} does not say whether it is complete")
        why = section["why_incomplete"]
        need(why is None if section["complete"] else isinstance(why, str) and why, f"{at}: why_incomplete contradicts complete")
        need(isinstance(section["entries"], list | dict), f"{at}: entries is neither a list nor an object")
    return Survey(
        release=tree["release"],
        identity=tree["identity"],
        recorded=recorded,
        sections={name: Section(**section) for name, section in sorted(tree["sections"].items())},
    )
