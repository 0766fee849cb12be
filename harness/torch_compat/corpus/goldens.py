"""Calls, goldens and read-backs: the values that manifests reference by digest, each distinct value recorded once.

A value is stored in ``goldens.jsonl`` next to the manifest of the oldest release that has it. A new release therefore adds a file with its
new values, and changes no other. Synthetic fixtures store their own values, even if a release also has them.

The file is one of :mod:`torch_compat.corpus.json_lines`: a header of kind ``goldens``, a line ``{"id", "kind": "value", "value"}`` for each
value, sorted by id, and a footer. ``id`` digests the canonical JSON of the value. In a golden, a second call result and a later state that
equal the first are omitted, which halves the size.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from torch_compat.corpus.json_lines import dump, dump_again, read_lines, write_lines
from torch_compat.errors import CorpusError
from torch_compat.places import inside
from torch_compat.releases.release import Release, stated
from torch_compat.values.form import check_calls, check_result
from torch_compat.writes import remove

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["GOLDENS", "Goldens", "canonical", "settle", "short_form", "value_id"]

GOLDENS: Final = "goldens.jsonl"
ID_DIGITS: Final = 16
PLAIN: Final = ("same", "")
"""Read-backs without a recorded value: the result equals the golden, or the archive has not been read back."""
_REMEMBERED: Final = 1 << 14
_texts: dict[int, tuple[Any, str]] = {}


class Goldens:
    """The recorded values of a corpus.

    Attributes:
        unreadable: files that cannot be read, such as ``torch-1.5.1/goldens.jsonl``, and why. Their values are missing.
    """

    def __init__(self, fixtures: Path) -> None:
        """Read the files of all folders of ``fixtures/``."""
        self.unreadable: dict[str, CorpusError] = {}
        self._told: dict[str, tuple[Any, str]] = {}  # by id: the value as recorded, and its location
        self._full: dict[tuple[str, str], Any] = {}
        for path in sorted(fixtures.glob(f"*/{GOLDENS}")):
            try:
                told = _read(inside(fixtures, f"{path.parent.name}/{GOLDENS}"))
            except CorpusError as error:
                self.unreadable[f"{path.parent.name}/{GOLDENS}"] = error
            else:
                self._told |= {name: (value, where) for name, (value, where) in told.items() if name not in self._told}

    def value(self, field: str, name: Any, where: str, recipe: Any) -> Any:
        """Return the value of a field of a manifest entry; the same object for every reference.

        Parameters:
            field: ``calls``, ``golden`` or ``readback``.
            name: the field's content in the manifest: the value's id. A read-back may be one of :data:`PLAIN`.
            where: the line of the manifest, for error messages.
            recipe: the recipe of the entry, for error messages.

        Raises:
            CorpusError: no readable file contains this value, or it does not have the form that releases produce.
        """
        if field == "readback" and name in PLAIN:
            return name
        if name.__class__ is not str:
            raise CorpusError(f"{field} is {name!r:.60}, expected the id of a value in {GOLDENS}", where=where, code="bad-line")
        known = self._full.get((field, name))
        if known is not None:
            return known
        if name not in self._told:
            what = f"refers to the {field} {name[:40]!r}, which is not in any readable {GOLDENS}"
            raise CorpusError(what, where=where, hint="restore it from version control", code="missing-value")
        value, told = self._told[name]
        try:
            if field == "calls":
                check_calls(value)
            else:
                check_result(value, field)
            if field == "golden":
                value = _full_form(value)
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
            what = f"is not a complete entry: {recipe!r:.80}: {error}, according to {told}"
            raise CorpusError(what, where=where, code="bad-line") from error
        self._full[field, name] = value
        return value


def value_id(value: Any) -> str:
    """Return the id of a value in recorded form."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:ID_DIGITS]


def _read(path: Path) -> dict[str, tuple[Any, str]]:
    """Read the values of one file with their locations, by id.

    Raises:
        CorpusError: it is incomplete, malformed, or a value does not match its id.
    """
    _, lines = read_lines(path, "goldens")
    told: dict[str, tuple[Any, str]] = {}
    for number, entry in lines:
        where = f"{path}:{number}"
        name = entry.get("id")
        if entry["kind"] != "value" or name.__class__ is not str or "value" not in entry:
            raise CorpusError("is not a value with an id", where=where, code="bad-line")
        if name in told:
            raise CorpusError(f"duplicate value {name!r:.60}", where=where, code="duplicate")
        try:
            right = value_id(entry["value"])
        except RecursionError as error:
            raise CorpusError("is nested too deeply", where=where, code="bad-line") from error
        if right != name:
            raise CorpusError(
                f"value {name!r:.60} was edited: its id does not match the digest of its contents", where=where, code="edited"
            )
        told[name] = entry["value"], where
    return told


# ----------------------------------------------------------------------------------------------------------------- writing


def settle(fixtures: Path, folder: str, values: dict[str, Any], write: Callable[[], None]) -> None:
    """Write a manifest, and store every referenced value once, with the oldest release that references it.

    No value is ever missing in between: it is written to its new location before the manifest that references it, and removed from where it
    is no longer needed afterwards. While any file of the corpus cannot be read, nothing is removed.

    Parameters:
        folder: that of the manifest: ``torch-1.5.1``.
        values: all values that it references, by id.
        write: writes the manifest.
    """
    told, whole = _told(fixtures)
    known = {name for item in told.values() for name in item}
    new = {name: value for name, value in values.items() if name not in known}
    if new:
        told[folder] = {**told.get(folder, {}), **new}
        _write(fixtures, folder, told[folder])
    write()
    others = {path.parent.name: _named(path) for path in sorted(fixtures.glob("*/manifest.jsonl")) if path.parent.name != folder}
    named = {**others, folder: set(values)}
    if not whole or None in named.values():
        return
    every = {name: value for item in told.values() for name, value in item.items()}
    wanted: dict[str, dict[str, Any]] = {}
    seen: set[str] = set()
    for place in sorted(named, key=_age):
        ids = (named[place] or set()) & every.keys()
        release = _age(place)[0] is False
        wanted[place] = {name: every[name] for name in (ids - seen if release else ids)}
        seen |= ids
    moves = [place for place in {*wanted, *told} if wanted.get(place, {}).keys() != told.get(place, {}).keys()]
    for place in moves:  # first write values to their new locations, then remove them from old ones
        if wanted.get(place, {}).keys() - told.get(place, {}).keys():
            _write(fixtures, place, {**told.get(place, {}), **wanted[place]})
    for place in moves:
        _write(fixtures, place, wanted.get(place, {}))


def _told(fixtures: Path) -> tuple[dict[str, dict[str, Any]], bool]:
    """Return the values of each folder, and whether all their files can be read."""
    result, whole = {}, True
    for path in sorted(fixtures.glob(f"*/{GOLDENS}")):
        try:
            result[path.parent.name] = {name: value for name, (value, _) in _read(path).items()}
        except CorpusError:  # its values are kept; the damage is reported wherever the corpus is read
            whole = False
    return result, whole


def _named(manifest: Path) -> set[str] | None:
    """Return the ids that a manifest references; None if it cannot be read."""
    try:
        _, lines = read_lines(manifest, "manifest")
    except CorpusError:
        return None
    fields = ("calls", "golden", "readback")
    return {entry[name] for _, entry in lines for name in fields if entry.get(name).__class__ is str}


def _age(folder: str) -> tuple[bool, Release]:
    """Sort key of folders, from the oldest release to the newest; folders that belong to no release come last."""
    release = stated(folder.removeprefix("torch-"))
    return release is None, release or Release("0.0")


def _write(fixtures: Path, folder: str, values: dict[str, Any]) -> None:
    path = inside(fixtures, f"{folder}/{GOLDENS}")
    if values:
        write_lines(path, {"kind": "goldens"}, [{"kind": "value", "id": name, "value": values[name]} for name in sorted(values)])
    else:
        remove(path)


# ---------------------------------------------------------------------------------------------------------------- the form


def canonical(value: Any) -> str:
    """Return the canonical JSON of a value; cached per object."""
    known = _texts.get(id(value))
    if known is not None and known[0] is value:
        return known[1]
    text = dump_again(value)
    if len(_texts) >= _REMEMBERED:
        _texts.clear()
    _texts[id(value)] = value, text  # the object is kept alive, so its id is not reused
    return text


def short_form(golden: dict[str, Any]) -> dict[str, Any]:
    """Return the stored form of a golden: a second call result and a later state that equal the first are omitted.

    They are compared as JSON texts, since True == 1 and -0.0 == 0.0. A golden that lacks one of the two is left unchanged.
    """
    short = dict(golden)
    if "calls" in golden:
        short["calls"] = [_without(call, "second", "first") for call in golden["calls"]]
        short = _without(short, "state_after", "state")
    return short


def _without(facts: dict[str, Any], later: str, first: str) -> dict[str, Any]:
    if {later, first} <= facts.keys() and dump(facts[later]) == dump(facts[first]):
        return {key: value for key, value in facts.items() if key != later}
    return facts


def _full_form(golden: Any) -> Any:
    """Return the full form of a golden. A value that is not a program's golden is returned unchanged.

    Raises:
        TypeError: an item of its calls is not a call.
        KeyError: it lacks its state, or a call lacks its result.
    """
    if not isinstance(golden, dict) or "calls" not in golden:
        return golden
    calls = [{"second": call["first"], **call} for call in golden["calls"]]
    return {"state_after": golden["state"], **golden, "calls": calls}
