"""What must hold between the tables of a policy, beyond the shape of each one.

The checks look at the tables as they were written, so that one malformed table hides no other mistake. Values of the
wrong type are passed over: the shape's own errors name them.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from packaging.version import InvalidVersion, Version

from harness.policy.messages import found, suggestion
from harness.policy.model import Format
from harness.policy.source import SINGLE, Entry

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from harness.errors import Problem
    from harness.policy.positions import Path

__all__ = ["CHECKS", "missing_tables"]

_IDENTITY: Final[dict[str, tuple[str, ...]]] = {
    "release": ("version",),
    "format": ("kind", "version"),
    "options": ("id",),
    "rule": ("id",),
    "waiver": ("id",),
    "need": ("id",),
    "quirk": ("id",),
    "module": ("name",),
    "builtin": ("operator", "first"),
    "conversion": ("given", "first"),
    "change": ("id",),
}
_RELEASE_NAMES: Final[dict[str, tuple[tuple[str, ...], ...]]] = {
    "format": (("read_from", "release"), ("read_until", "release"), ("written_from", "release")),
    "options": (("since",),),
    "corpus": (("writers",), ("readers",), ("besides",)),
    "waiver": (("readers", "first"), ("readers", "last")),
    "weights_only": (("first",), ("last",)),
    "builtin": (("first",), ("last",)),
    "conversion": (("first",), ("last",)),
    "change": (("since",),),
}
_REQUIRED: Final = {
    "release": "no [[release]]: without a calendar no reader is older or newer than another",
    "options": "no [[options]]: nothing would be loaded",
    "rule": "no [[rule]]: nothing would be checked",
    "policy": "no [policy]: its name, its first day and its forward window are missing",
    "corpus": "no [corpus]: its writers and readers, or the rule that gives them, are missing",
}


def missing_tables(mentioned: Collection[str]) -> Iterator[str]:
    """What the folder as a whole lacks; a policy without it would check nothing, or nothing in particular."""
    return (message for table, message in _REQUIRED.items() if table not in mentioned)


def duplicates(entries: list[Entry]) -> Iterator[Problem]:
    """The same release, format, option set, rule or waiver twice; a table that may stand once, twice."""
    first: dict[tuple[object, ...], Entry] = {}
    for entry in entries:
        keys = _IDENTITY.get(entry.table, ())
        values = tuple(entry.get(key) for key in keys)
        if (keys or entry.table in SINGLE) and all(isinstance(value, str | int) for value in values):
            earlier = first.setdefault((entry.table, *values), entry)
            if earlier is not entry:
                what = " ".join([entry.table, *map(found, values)])
                yield entry.problem(f"{what} is already defined at {_place(earlier)}", *keys[-1:])


def competing_tolerances(entries: list[Entry]) -> Iterator[Problem]:
    """Two tolerances for the same operator and dtype: neither is more specific."""
    first: dict[tuple[str, str], Entry] = {}
    for entry in _of(entries, "tolerance"):
        dtype, operators = entry.get("dtype"), entry.get("operators")
        for operator in operators if isinstance(operators, list) else ():
            if isinstance(dtype, str) and isinstance(operator, str):
                earlier = first.setdefault((dtype, operator), entry)
                if earlier is not entry:
                    yield entry.problem(
                        f"{found(operator)} for {found(dtype)} already has a tolerance at {_place(earlier)}", "operators"
                    )


def unknown_releases(entries: list[Entry]) -> Iterator[Problem]:
    """A release that is named somewhere and not in the calendar."""
    known = [version for entry in _of(entries, "release") if isinstance(version := entry.get("version"), str)]
    if not known:
        return  # said once, not for every name
    for entry in entries:
        for path in _RELEASE_NAMES.get(entry.table, ()):
            value = entry.get(*path)
            places: list[Path] = [(*path, index) for index in range(len(value))] if isinstance(value, list) else [path]
            for place in places:
                name = entry.get(*place)
                if isinstance(name, str) and name not in known:
                    yield entry.problem(f"release {found(name)} is not in the calendar{suggestion(name, known)}", *place)


def format_writers(entries: list[Entry]) -> Iterator[Problem]:
    """A format version is either written by some release or by none, and only what is written can be pending."""
    for entry in _of(entries, "format"):
        given = [key for key in ("written_from", "no_writer") if key in entry.raw]
        if not given:
            yield entry.problem("needs 'written_from', or 'no_writer' with the reason why no release ever wrote it")
        elif len(given) == 2:
            yield entry.problem("has both 'written_from' and 'no_writer'; only one can be true", "no_writer")
        if "no_writer" in entry.raw and "pending" in entry.raw:
            yield entry.problem("is 'pending' though it has 'no_writer': what nobody writes, nobody waits for", "pending")


def format_versions(entries: list[Entry]) -> Iterator[Problem]:
    """A number where a kind of format has names, or the other way round."""
    for entry in _of(entries, "format"):
        kind, version = entry.get("kind"), entry.get("version")
        if isinstance(kind, str) and kind in Format.NAMED and isinstance(version, int):
            yield entry.problem(f"must be a name such as 'tar' for kind {found(kind)}; found {found(version)}", "version")
        elif isinstance(kind, str) and kind not in Format.NAMED and isinstance(version, str):
            yield entry.problem(f"must be a number for kind {found(kind)}; found {found(version)}", "version")


def preferred_pythons(entries: list[Entry]) -> Iterator[Problem]:
    """A release that is to run on a Python that it has no wheel for."""
    for entry in _of(entries, "release"):
        python, pythons = entry.get("python"), entry.get("pythons")
        if isinstance(python, str) and isinstance(pythons, (list, tuple)) and python not in pythons:
            yield entry.problem(f"must be one of 'pythons', {', '.join(map(str, pythons))}; found {found(python)}", "python")


def calendar_order(entries: list[Entry]) -> Iterator[Problem]:
    """A patch that is dated before an earlier patch of the same line."""
    lines: defaultdict[tuple[int, int], list[tuple[Version, dt.date, Entry]]] = defaultdict(list)
    for entry in _of(entries, "release"):
        text, date = entry.get("version"), entry.get("date")
        version = _version(text)
        if version and isinstance(date, dt.date) and not isinstance(date, dt.datetime):
            lines[version.major, version.minor].append((version, date, entry))
    for releases in lines.values():
        ordered = sorted(releases, key=lambda release: release[0])
        for (older, older_date, _), (newer, newer_date, entry) in pairwise(ordered):
            if newer_date < older_date:
                yield entry.problem(f"{newer} is dated {newer_date}, before {older} of {older_date}", "date")


def waiver_files(entries: list[Entry]) -> Iterator[Problem]:
    """A waiver whose file has another name than the waiver."""
    for entry in _of(entries, "waiver"):
        name = entry.get("id")
        if isinstance(name, str) and name != entry.file.stem:
            yield entry.problem(f"waiver {found(name)} stands in {entry.file.name}; the file must have the waiver's name", "id")


def waiver_spans(entries: list[Entry]) -> Iterator[Problem]:
    """A waiver for readers from a newer release to an older one."""
    for entry in _of(entries, "waiver"):
        first, last = (_version(entry.get("readers", end)) for end in ("first", "last"))
        if first and last and last < first:
            yield entry.problem(f"must not be older than 'first', {first}; found {last}", "readers", "last")


def weights_only_spans(entries: list[Entry]) -> Iterator[Problem]:
    """What some releases do, from a newer one to an older one; a table that says nothing of them."""
    for entry in _of(entries, "weights_only"):
        first, last = (_version(entry.get(end)) for end in ("first", "last"))
        if first and last and last < first:
            yield entry.problem(f"must not be older than 'first', {first}; found {last}", "last")
        if not entry.raw.keys() - {"first", "last"}:
            yield entry.problem("says nothing of these releases")


def takers_said_once(entries: list[Entry]) -> Iterator[Problem]:
    """Who takes an archive is said in one way, of releases that there are, from an older to a newer one."""
    known = [version for entry in _of(entries, "release") if isinstance(version := entry.get("version"), str)]
    for entry in (*_of(entries, "need"), *_of(entries, "quirk")):
        if ("readers" in entry.raw) is ("python" in entry.raw):
            yield entry.problem("needs either 'readers' or 'python', and not both")
        if not entry.raw.keys() & {"all", "any"}:
            yield entry.problem("needs 'all' or 'any': it would hold of every archive")
        spans = entry.get("readers")
        for at, span in enumerate(spans if isinstance(spans, list) else ()):
            ends = [span.get(end) if isinstance(span, dict) else None for end in ("first", "last")]
            for end, name in zip(("first", "last"), ends, strict=True):
                if known and isinstance(name, str) and name not in known:
                    message = f"release {found(name)} is not in the calendar{suggestion(name, known)}"
                    yield entry.problem(message, "readers", at, end)
            first, last = map(_version, ends)
            if first and last and last < first:
                yield entry.problem(f"must not be older than 'first', {first}; found {last}", "readers", at, "last")


def corpus_said_once(entries: list[Entry]) -> Iterator[Problem]:
    """The corpus is either listed or follows from the calendar; half of each says nothing, both contradict each other."""
    for entry in _of(entries, "corpus"):
        listed = [key for key in ("writers", "readers") if key in entry.raw]
        derived = [key for key in ("lines", "settled", "besides") if key in entry.raw]
        if listed and derived:
            yield entry.problem(f"has both '{listed[0]}' and '{derived[0]}': either list the releases or derive them", derived[0])
            continue
        needed = ("lines", "settled") if derived else ("writers", "readers")
        for key in needed:
            if key not in entry.raw:
                alternative = "" if derived or listed else "; or derive both with 'lines' and 'settled'"
                yield entry.problem(f"key '{key}' is missing{alternative}")


CHECKS: Final[tuple[Callable[[list[Entry]], Iterator[Problem]], ...]] = (
    duplicates,
    competing_tolerances,
    unknown_releases,
    format_writers,
    format_versions,
    corpus_said_once,
    preferred_pythons,
    calendar_order,
    waiver_files,
    waiver_spans,
    weights_only_spans,
    takers_said_once,
)


def _of(entries: list[Entry], table: str) -> Iterator[Entry]:
    return (entry for entry in entries if entry.table == table)


def _place(entry: Entry) -> str:
    problem = entry.problem("")
    return f"{problem.file}:{problem.line}"


def _version(text: object) -> Version | None:
    try:
        return Version(text) if isinstance(text, str) else None
    except InvalidVersion:
        return None
