"""Checks across the tables of a policy, in addition to the schema of each table.

The checks use the raw tables, so that one malformed table hides no other error. They skip values of the wrong type, which schema
validation reports.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, get_args

from torch_compat.errors import UsageError
from torch_compat.policy.behaviors import behavior_keys
from torch_compat.policy.deprecations import What
from torch_compat.policy.messages import found, suggestion
from torch_compat.policy.model import Format
from torch_compat.policy.operator_waivers import operator_waiver_lists, operator_waiver_releases
from torch_compat.policy.policy import REGISTRY
from torch_compat.policy.sayings import OF_WARNINGS
from torch_compat.policy.upgraders import upgrader_names
from torch_compat.releases.release import stated
from torch_compat.releases.sets import ReleaseSet
from torch_compat.words import american

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from torch_compat.errors import Problem
    from torch_compat.policy.entry import Entry
    from torch_compat.policy.positions import Path
    from torch_compat.releases.release import Release

__all__ = ["CHECKS", "missing_tables"]

_KINDS: Final = {kind.name: kind for kind in REGISTRY}
OF_WHEELS: Final = ("pythons", "install", "numpy")
OF_VALUES: Final = ("dtype", "operators", "max_ulp", "max_abs", "max_rel")
_WHATS: Final = frozenset(get_args(What))


def missing_tables(mentioned: Collection[str]) -> Iterator[str]:
    """Return a message for each required kind of table that the whole folder lacks."""
    return (f"no {kind.header}: {kind.required}" for kind in REGISTRY if kind.required and kind.name not in mentioned)


def duplicates(entries: list[Entry]) -> Iterator[Problem]:
    """Yield tables with the same key values as an earlier one, and second tables of a kind that may occur only once."""
    first: dict[tuple[object, ...], Entry] = {}
    for entry in entries:
        keys = _KINDS[entry.table].keys
        values = tuple(entry.get(key) for key in keys)
        if (keys or _KINDS[entry.table].single) and all(isinstance(value, str | int) for value in values):
            earlier = first.setdefault((entry.table, *values), entry)
            if earlier is not entry:
                what = " ".join([entry.table, *map(found, values)])
                yield entry.problem(f"{what} is already defined at {_place(earlier)}", *keys[-1:])


def competing_tolerances(entries: list[Entry]) -> Iterator[Problem]:
    """Yield a second tolerance for the same operator and dtype: neither is more specific."""
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


def tolerated(entries: list[Entry]) -> Iterator[Problem]:
    """Yield tolerances for values that lack a bound, and tolerances of other kinds that have one."""
    for entry in _of(entries, "tolerance"):
        of_values = entry.raw.get("kind", "value") == "value"
        for key in OF_VALUES if of_values else ("families",):
            if key not in entry.raw:
                yield entry.problem(f"key {key!r} is missing")
        for key in ("families",) if of_values else OF_VALUES:
            if key in entry.raw:
                yield entry.problem(f"applies to {'kinds other than values' if of_values else 'values'} only", key)


def relative_bounds(entries: list[Entry]) -> Iterator[Problem]:
    """Yield tolerances for any program whose relative bound is so wide (above 0.1) that small values could be anything."""
    for entry in _of(entries, "tolerance"):
        operators, bound = entry.get("operators"), entry.get("max_rel")
        if isinstance(operators, list) and "*" in operators and isinstance(bound, int | float) and 0.1 < bound <= 1:
            yield entry.problem(f"must be at most 0.1 for '*'; found {found(bound)}", "max_rel")


def unknown_releases(entries: list[Entry]) -> Iterator[Problem]:
    """Yield releases that are named but not in the calendar; a format version may also begin with a planned release."""
    known = [version for entry in _released(entries) if isinstance(version := entry.get("version"), str)]
    if not known:
        return  # reported once, not for every name
    planned = [version for entry in _planned(entries) if isinstance(version := entry.get("version"), str)]
    for entry in entries:
        for key in _KINDS[entry.table].sets:
            for name in _ends(entry.get(key)):
                if name not in known:
                    yield entry.problem(f"release {found(name)} is not in the calendar{suggestion(name, known)}", key)
        for path in _KINDS[entry.table].releases:
            value = entry.get(*path)
            places: list[Path] = [(*path, index) for index in range(len(value))] if isinstance(value, list) else [path]
            for place in places:
                name = entry.get(*place)
                if isinstance(name, str) and name not in known and not (entry.table == "format" and name in planned):
                    yield entry.problem(f"release {found(name)} is not in the calendar{suggestion(name, known)}", *place)


def format_writers(entries: list[Entry]) -> Iterator[Problem]:
    """Check that a format version states either its first writer or why it has none, and is pending only if it has a writer."""
    for entry in _of(entries, "format"):
        given = [key for key in ("written_from", "no_writer") if key in entry.raw]
        if not given:
            yield entry.problem("needs 'written_from', or 'no_writer' with the reason why no release ever wrote it")
        elif len(given) == 2:
            yield entry.problem("has both 'written_from' and 'no_writer'; only one can be true", "no_writer")
        if "no_writer" in entry.raw and "pending" in entry.raw:
            yield entry.problem("is 'pending' and has 'no_writer'; only one can be true", "pending")


def format_versions(entries: list[Entry]) -> Iterator[Problem]:
    """Yield format versions that are numbers although their kind has names, or the reverse."""
    for entry in _of(entries, "format"):
        kind, version = entry.get("kind"), entry.get("version")
        if isinstance(kind, str) and kind in Format.NAMED and isinstance(version, int):
            yield entry.problem(f"must be a name such as 'tar' for kind {found(kind)}; found {found(version)}", "version")
        elif isinstance(kind, str) and kind not in Format.NAMED and isinstance(version, str):
            yield entry.problem(f"must be a number for kind {found(kind)}; found {found(version)}", "version")


def preferred_pythons(entries: list[Entry]) -> Iterator[Problem]:
    """Yield releases whose preferred Python has no wheel."""
    for entry in _released(entries):
        python, pythons = entry.get("python"), entry.get("pythons")
        if isinstance(python, str) and isinstance(pythons, (list, tuple)) and python not in pythons:
            yield entry.problem(f"must be one of 'pythons', {', '.join(map(str, pythons))}; found {found(python)}", "python")


def release_keys(entries: list[Entry]) -> Iterator[Problem]:
    """Yield releases without the keys that describe their wheels, and planned releases with them."""
    for entry in _released(entries):
        yield from (entry.problem(f"key {key!r} is missing") for key in OF_WHEELS if key not in entry.raw)
    for entry in _planned(entries):
        yield from (
            entry.problem("does not apply to a planned release", key) for key in (*OF_WHEELS, "python") if key in entry.raw
        )


def calendar_order(entries: list[Entry]) -> Iterator[Problem]:
    """Yield patch releases that are dated before an earlier patch of the same minor version."""
    lines: defaultdict[str, list[tuple[Release, dt.date, Entry]]] = defaultdict(list)
    for entry in _released(entries):
        text, date = entry.get("version"), entry.get("date")
        version = stated(text)
        if version and isinstance(date, dt.date) and not isinstance(date, dt.datetime):
            lines[version.line].append((version, date, entry))
    for releases in lines.values():
        ordered = sorted(releases, key=lambda release: release[0])
        for (older, older_date, _), (newer, newer_date, entry) in pairwise(ordered):
            if newer_date < older_date:
                yield entry.problem(f"{newer} is dated {newer_date}, before {older} ({older_date})", "date")


def files_of_their_own(entries: list[Entry]) -> Iterator[Problem]:
    """Yield waivers and deprecations whose file name differs from their id."""
    for entry in entries:
        name = entry.get("id")
        if _KINDS[entry.table].folder and isinstance(name, str) and name != entry.file.stem:
            message = f"{entry.table} {found(name)} is in {entry.file.name}; the file must have the {entry.table}'s name"
            yield entry.problem(message, "id")


def waiver_covers(entries: list[Entry]) -> Iterator[Problem]:
    """Yield waivers that cover nothing, and parts that name unknown releases or load options, or both or neither kind of writer."""
    known = [version for entry in _released(entries) if isinstance(version := entry.get("version"), str)]
    options = [name for entry in _of(entries, "options") if isinstance(name := entry.get("id"), str)]
    for entry in _of(entries, "waiver"):
        parts = entry.get("covers")
        if parts is None and "findings" not in entry.raw:
            yield entry.problem("needs 'covers' or 'findings'; otherwise it covers nothing")
        for index in range(len(parts)) if isinstance(parts, list) else ():
            part = entry.get("covers", index)
            if not isinstance(part, dict):
                continue
            if "recipes" not in part and "says" not in part:
                yield entry.problem("needs 'recipes' or 'says': otherwise it covers every archive", "covers", index)
            if ("writers" in part) is ("synthetic" in part):
                yield entry.problem("needs either 'writers' or 'synthetic', but not both", "covers", index)
            for key in ("writers", "readers"):
                for name in _ends(part.get(key)):
                    if known and name not in known:
                        message = f"release {found(name)} is not in the calendar{suggestion(name, known)}"
                        yield entry.problem(message, "covers", index, key)
            for name in part.get("options", ()) if isinstance(part.get("options"), list) else ():
                if isinstance(name, str) and options and name not in options:
                    message = f"there are no options {found(name)}{suggestion(name, options)}"
                    yield entry.problem(message, "covers", index, "options")


def messages_said(entries: list[Entry]) -> Iterator[Problem]:
    """Yield invalid messages.

    These are warnings without families, with two frequencies, or on loading with operators; errors with keys of warnings, or with only one
    text; duplicate texts of errors; and unknown releases.
    """
    known = [version for entry in _released(entries) if isinstance(version := entry.get("version"), str)]
    for entry in _of(entries, "message"):
        phrases = _tables_in(entry, "says")
        if entry.get("kind") == "error":
            yield from (entry.problem("applies to warnings only", key) for key in OF_WARNINGS if key in entry.raw)
            if len(phrases) == 1:
                yield entry.problem("needs at least two strings", "says")
        elif entry.get("kind") == "warning" and "families" not in entry.raw:
            yield entry.problem("key 'families' is missing")
        often = [key for key in ("always", "once", "varies") if entry.raw.get(key, False) is not False]
        if len(often) > 1:
            yield entry.problem(f"has both {found(often[0])} and {found(often[1])}; only one can be true", often[1])
        if "operators" in entry.raw and entry.get("during") != "running":
            yield entry.problem("'operators' applies only to messages with during = 'running'", "operators")
        texts = [(item.get("type"), item.get("text")) for item in phrases]
        for at, phrase in enumerate(phrases):
            if entry.get("kind") == "error" and texts[at] in texts[:at]:
                message = f"{found(texts[at][1])} is already listed: each message must have exactly one set of releases"
                yield entry.problem(message, "says", at, "text")
            for name in _ends(phrase.get("releases")):
                if known and name not in known:
                    message = f"release {found(name)} is not in the calendar{suggestion(name, known)}"
                    yield entry.problem(message, "says", at, "releases")


def corpus_said_once(entries: list[Entry]) -> Iterator[Problem]:
    """Check that the corpus is either listed completely, or derived completely from the calendar."""
    for entry in _of(entries, "policy"):
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


def profile_names(entries: list[Entry]) -> Iterator[Problem]:
    """Yield profiles whose id is already defined."""
    for entry in _of(entries, "policy"):
        names = [profile.get("id") for profile in _tables_in(entry, "profiles")]
        for at, name in enumerate(names):
            if name in names[:at]:
                yield entry.problem(f"profile {found(name)} is already defined", "profiles", at, "id")


def timelines_said_once(entries: list[Entry]) -> Iterator[Problem]:
    """Yield second timelines of a kind, steps that must follow a step that is not before them, and deprecations without a timeline."""
    first: dict[tuple[object, bool], Entry] = {}
    for entry in _of(entries, "timeline"):
        silent, kind = bool(entry.get("silent")), entry.get("kind")
        earlier = first.setdefault((kind, silent), entry)
        if earlier is not entry:
            yield entry.problem(f"{_kind(kind, silent)} already has a timeline at {_place(earlier)}", "kind")
        met: list[object] = []
        for at, step in enumerate(_tables_in(entry, "steps")):
            after = step.get("after")
            if after is not None and after not in met:
                yield entry.problem(f"waits for {found(after)}, which is not an earlier step", "steps", at, "after")
            met += step["what"] if isinstance(step.get("what"), list) else []
    for entry in _of(entries, "deprecation"):
        silent, kind = bool(entry.get("silent")), entry.get("kind")
        if isinstance(kind, str) and (kind, silent) not in first:
            yield entry.problem(f"there is no [[timeline]] for {_kind(kind, silent)}", "kind")


def planned_ahead(entries: list[Entry]) -> Iterator[Problem]:
    """Check that a planned release is the first of its minor version, newer than the calendar, and dated in version order."""
    known = [version for entry in _released(entries) if (version := stated(entry.get("version")))]
    dated: list[tuple[Release, dt.date, Entry]] = []
    for entry in _planned(entries):
        version, date = stated(entry.get("version")), entry.get("date")
        if not version or not known:
            continue
        if version.numbers[2]:
            yield entry.problem(f"must be the first release of its line; found {version}", "version")
        if version <= max(known):
            yield entry.problem(f"{version} is planned, but the calendar already has {max(known)}", "version")
        if isinstance(date, dt.date) and not isinstance(date, dt.datetime):
            dated.append((version, date, entry))
    for (older, older_date, _), (newer, newer_date, entry) in pairwise(sorted(dated, key=lambda item: item[0])):
        if newer_date <= older_date:
            yield entry.problem(f"{newer} is planned for {newer_date}, not after {older} ({older_date})", "date")


def deprecation_releases(entries: list[Entry]) -> Iterator[Problem]:
    """Yield unknown releases in deprecations, and nightlies after their release."""
    dates: dict[str, object] = {}
    for entry in (*_released(entries), *_planned(entries)):
        if isinstance(version := entry.get("version"), str):
            dates[version] = entry.get("date")
    real = [version for entry in _released(entries) if isinstance(version := entry.get("version"), str)]
    if not real:
        return  # reported once, not for every name
    for entry in _of(entries, "deprecation"):
        places: list[tuple[Path, list[str]]] = [(("announced", "release"), list(dates))]
        places += [
            ((key, at, "release"), list(dates)) for key in ("events", "docs") for at, _ in enumerate(_tables_in(entry, key))
        ]
        for key in ("unclear", "hidden"):
            for at, span in enumerate(_tables_in(entry, key)):
                for name in _ends(span.get("readers")):
                    if name not in real:
                        message = f"release {found(name)} is not in the calendar{suggestion(name, real)}"
                        yield entry.problem(message, key, at, "readers")
        for place, known in places:
            name = entry.get(*place)
            if isinstance(name, str) and name not in known:
                what = "in the calendar" if known is real else "in the calendar, and is not planned"
                yield entry.problem(f"release {found(name)} is not {what}{suggestion(name, known)}", *place)
        for at, event in enumerate(_tables_in(entry, "events")):
            nightly, day = event.get("nightly"), dates.get(str(event.get("release")))
            if type(nightly) is dt.date and type(day) is dt.date and nightly > day:
                message = f"must not be after the release, {event['release']} ({day}); found {nightly}"
                yield entry.problem(message, "events", at, "nightly")


def deprecation_events(entries: list[Entry]) -> Iterator[Problem]:
    """Yield events that are out of order, repeated, or unknown to the timeline; warnings without a text, and texts without a warning."""
    steps: dict[tuple[object, bool], set[str]] = {}
    for entry in _of(entries, "timeline"):
        names = [name for step in _tables_in(entry, "steps") for name in step.get("what", ()) if isinstance(name, str)]
        steps[entry.get("kind"), bool(entry.get("silent"))] = {*names, "alternative", "warned", "withdrawn", "restored"}
    for entry in _of(entries, "deprecation"):
        events = _tables_in(entry, "events")
        allowed = steps.get((entry.get("kind"), bool(entry.get("silent"))))
        active: set[object] = set()
        newest: Release | None = None
        for at, event in enumerate(events):
            what, version = event.get("what"), stated(event.get("release"))
            if version and newest and version < newest:
                yield entry.problem(f"events must be sorted, oldest first: {version} follows {newest}", "events", at, "release")
            newest = version or newest
            if allowed is not None and isinstance(what, str) and what in _WHATS and what not in allowed:
                which = _kind(entry.get("kind"), bool(entry.get("silent")))
                yield entry.problem(
                    f"{which} has no event {found(what)}; known: {', '.join(sorted(allowed))}", "events", at, "what"
                )
            if what in active:
                yield entry.problem(f"is already {found(what)}: it must first be withdrawn or restored", "events", at, "what")
            if what == "withdrawn" and not active & {"warned", "error"}:
                yield entry.problem("is withdrawn, but has no warning or error to withdraw", "events", at, "what")
            active = active & {"alternative"} if what in {"withdrawn", "restored"} else active
            active.add(what)
        warns = any(event.get("what") == "warned" for event in events)
        if warns and "warning" not in entry.raw:
            yield entry.problem("key 'warning' is missing, but one of the events is a warning")
        if events and not warns and "warning" in entry.raw:
            yield entry.problem("specifies a warning text, but none of its events is a warning", "warning")


def deprecation_statements(entries: list[Entry]) -> Iterator[Problem]:
    """Yield statements about documentation that have neither or both of ``holds`` and ``absent``, or are out of order."""
    for entry in _of(entries, "deprecation"):
        newest: Release | None = None
        for at, statement in enumerate(_tables_in(entry, "docs")):
            version = stated(statement.get("release"))
            if version and newest and version <= newest:
                yield entry.problem(f"statements must be sorted, oldest first: {version} follows {newest}", "docs", at, "release")
            newest = version or newest
            if ("holds" in statement) is ("absent" in statement):
                yield entry.problem("needs either 'holds' or 'absent', but not both", "docs", at)


def deprecation_alternatives(entries: list[Entry]) -> Iterator[Problem]:
    """Yield alternatives whose own deprecation does not exist, or that have both a deprecation and another package."""
    known = [name for entry in _of(entries, "deprecation") if isinstance(name := entry.get("id"), str)]
    for entry in _of(entries, "deprecation"):
        name = entry.get("alternative_deprecation")
        others = [item for item in known if item != entry.get("id")]
        if isinstance(name, str) and name not in others:
            yield entry.problem(
                f"there is no other deprecation {found(name)}{suggestion(name, others)}", "alternative_deprecation"
            )
        if name is not None and "alternative_package" in entry.raw:
            yield entry.problem("names another package; this is not allowed for a deprecation in torch", "alternative_package")


def linked_waivers(entries: list[Entry]) -> Iterator[Problem]:
    """Yield changes, deprecations and formats that name an unknown waiver."""
    known = [
        name
        for table in ("waiver", "operator_waiver")
        for entry in _of(entries, table)
        if isinstance(name := entry.get("id"), str)
    ]
    if not known:
        return  # part of a policy whose waivers are elsewhere
    for entry in (*_of(entries, "change"), *_of(entries, "deprecation"), *_of(entries, "format")):
        names = entry.get("waivers")
        for at, name in enumerate(names if isinstance(names, list) else ()):
            if isinstance(name, str) and name not in known:
                yield entry.problem(f"there is no waiver {found(name)}{suggestion(name, known)}", "waivers", at)


def linked_deprecations(entries: list[Entry]) -> Iterator[Problem]:
    """Yield changes that name a deprecation that does not exist or has no event in their release."""
    events = {
        name: [event.get("release") for event in _tables_in(entry, "events")]
        for entry in _of(entries, "deprecation")
        if isinstance(name := entry.get("id"), str)
    }
    if not events:
        return  # part of a policy whose deprecations are elsewhere
    for entry in _of(entries, "change"):
        names = entry.get("deprecations")
        for at, name in enumerate(names if isinstance(names, list) else ()):
            if isinstance(name, str) and entry.get("since") not in events.get(name, []):
                what = (
                    f"has no event in {found(entry.get('since'))}"
                    if name in events
                    else f"does not exist{suggestion(name, list(events))}"
                )
                yield entry.problem(f"the deprecation {found(name)} {what}", "deprecations", at)


def _tables_in(entry: Entry, key: str) -> list[dict[str, Any]]:
    """Return the tables of an array in a table; empty if it is not an array of tables."""
    value = entry.get(key)
    return value if isinstance(value, list) and all(isinstance(item, dict) for item in value) else []


def _kind(kind: object, silent: object) -> str:
    return american(f"a silent {kind}" if silent else f"a {kind}")


CHECKS: Final[tuple[Callable[[list[Entry]], Iterator[Problem]], ...]] = (
    duplicates,
    tolerated,
    competing_tolerances,
    relative_bounds,
    unknown_releases,
    format_writers,
    format_versions,
    corpus_said_once,
    release_keys,
    preferred_pythons,
    calendar_order,
    files_of_their_own,
    waiver_covers,
    messages_said,
    behavior_keys,
    upgrader_names,
    profile_names,
    timelines_said_once,
    planned_ahead,
    deprecation_releases,
    deprecation_events,
    deprecation_statements,
    deprecation_alternatives,
    linked_waivers,
    linked_deprecations,
    operator_waiver_lists,
    operator_waiver_releases,
)


def _released(entries: list[Entry]) -> Iterator[Entry]:
    """Return the releases of the calendar."""
    return (entry for entry in _of(entries, "release") if "source" not in entry.raw)


def _planned(entries: list[Entry]) -> Iterator[Entry]:
    return (entry for entry in _of(entries, "release") if "source" in entry.raw)


def _of(entries: list[Entry], table: str) -> Iterator[Entry]:
    return (entry for entry in entries if entry.table == table)


def _place(entry: Entry) -> str:
    problem = entry.problem("")
    return f"{problem.file}:{problem.line}"


def _ends(text: object) -> list[str]:
    """Return the releases that the text of a set names; empty if it is not a valid set."""
    try:
        return sorted(ReleaseSet.parse(text).ends) if isinstance(text, str) else []
    except UsageError:
        return []
