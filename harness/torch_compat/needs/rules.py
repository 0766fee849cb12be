"""What is recorded of the releases, as far as it decides whether they load an archive.

Sets of releases are numbers here: bit 0 is the oldest release of the calendar. Everything is read once and kept.

Recorded are 33 releases; the calendar has more. What a release knows of operators and names that was not asked is taken from the
nearest one of its line that was, and :attr:`Rules.stands_for` says so.
"""

from __future__ import annotations

import json
import tomllib
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from torch_compat.errors import PolicyError, Problem
from torch_compat.needs.source import KINDS
from torch_compat.operators.history import FactHistory, GlobalNames, History
from torch_compat.pickles.weights_only import WeightsOnly
from torch_compat.releases.data import packaged

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

__all__ = ["Module", "Need", "Rules", "load_rules", "packaged_rules", "spans_of"]


class Need(NamedTuple):
    """One condition on an archive, and who takes an archive of which it holds.

    Attributes:
        id: its name.
        all, any, none: the signs that the archive must have: all of them, one at least, and none.
        takers: the releases that take it.
        because: why.
    """

    id: str
    all: tuple[str, ...]
    any: tuple[str, ...]
    none: tuple[str, ...]
    takers: int
    because: str

    def holds(self, signs: Mapping[str, str]) -> bool:
        """Whether an archive with these signs has this need."""
        return (
            all(sign in signs for sign in self.all)
            and (not self.any or any(sign in signs for sign in self.any))
            and not any(sign in signs for sign in self.none)
        )


class Module(NamedTuple):
    """A module that a pickle may name, and the releases beside which it can be installed."""

    name: str
    takers: int
    because: str


class _Recorded(NamedTuple):
    """All of it, as it is recorded.

    Attributes:
        releases: the calendar, oldest first.
        everyone: all of them, as bits.
        needs: the general ones, then the quirks.
        formats: of each kind and version who reads it, and what it means.
        modules: by name.
        builtins: schemas that the recorded histories leave out, with their releases, by name with and without overload.
        conversions: types that a kind of argument becomes in some releases, and these.
        stands_for: releases that were not asked, with the one whose answer is taken.
        default: the releases whose torch.load takes ``weights_only=True`` unless told otherwise.
    """

    releases: tuple[str, ...]
    everyone: int
    needs: tuple[Need, ...]
    formats: dict[tuple[str, int | str], tuple[int, str]]
    modules: dict[str, Module]
    builtins: dict[str, list[tuple[str, int]]]
    conversions: tuple[tuple[dict[str, frozenset[str]], int], ...]
    schemas: History
    upgraded: FactHistory
    names: GlobalNames
    stands_for: dict[str, str]
    default: int
    weights_only: dict[str, WeightsOnly]


class Rules(_Recorded):
    """All of it, and what follows from it, found out once."""

    @cached_property
    def asked(self) -> dict[str, frozenset[str]]:
        """What follows the colon of the signs that the needs ask for, by what stands before it."""
        asked: dict[str, set[str]] = {}
        for need in self.needs:
            for sign in (*need.all, *need.any, *need.none):
                kind, _, rest = sign.partition(":")
                asked.setdefault(kind, set()).add(rest)
        return {kind: frozenset(rest) for kind, rest in asked.items()}

    @cached_property
    def by_sign(self) -> dict[str, list[Need]]:
        """Each need under the last of `all`, which is the rarest, or under each of `any`: only of what has it the need may hold."""
        found: dict[str, list[Need]] = {}
        for need in self.needs:
            for sign in need.any or need.all[-1:]:
                found.setdefault(sign, []).append(need)
        return found

    @cached_property
    def _asked_by(self) -> dict[tuple[str, ...], tuple[int, ...]]:
        return {}

    @cached_property
    def _translated(self) -> dict[tuple[tuple[str, ...], int], int]:
        return {}

    def translated(self, bits: int, asked: tuple[str, ...]) -> int:
        """Bits over the releases that were asked, as bits over the calendar."""
        key = (asked, bits)
        known = self._translated.get(key)
        if known is None:
            places = self._asked_by.get(asked)
            if places is None:
                places = self._asked_by[asked] = tuple(_nearest(release, asked) for release in self.releases)
            known = self._translated[key] = sum(1 << at for at, place in enumerate(places) if bits >> place & 1)
        return known

    def of_schemas(self, name: str) -> Iterable[tuple[str, int]]:
        """Every schema that ever stood under a name (one with an overload, or all of them), with its releases."""
        history = self.schemas
        for text, bits in history.with_bits(name):
            yield text, self.translated(bits, history.releases)
        yield from self.builtins.get(name, ())

    def of_upgraded(self, name: str) -> Iterable[tuple[int, str, int]]:
        """The schemas that operators of this name had up to a file format version: the version, the schema, its releases."""
        history = self.upgraded
        for changes, bits in _changes(history).get(name, ()):
            for bumped_at, _, schema in changes:
                yield bumped_at, schema, self.translated(bits, history.releases)


@cache
def _changes(history: FactHistory) -> dict[str, list[tuple[list[tuple[int, str, str]], int]]]:
    """What replaced operators at which version, by the name without overload: lists of version, program and old schema."""
    found: dict[str, list[tuple[list[tuple[int, str, str]], int]]] = {}
    for overload, changes, bits in history.facts():
        found.setdefault(overload.partition(".")[0], []).append((json.loads(changes), bits))
    return found


def _nearest(release: str, asked: Sequence[str]) -> int:
    """Which of the releases that were asked stands for a release: the nearest of its line, or the newest before it."""
    own = _numbers(release)
    same = [
        (abs(_numbers(one)[2] - own[2]), -_numbers(one)[2], at) for at, one in enumerate(asked) if _numbers(one)[:2] == own[:2]
    ]
    if same:
        return min(same)[2]
    return max((at for at, one in enumerate(asked) if _numbers(one) < own), default=0)


@cache
def _numbers(release: str) -> tuple[int, int, int]:
    major, minor, patch = release.split(".")
    return int(major), int(minor), int(patch)


def spans_of(bits: int, releases: Sequence[str]) -> list[tuple[str, str]]:
    """Bits as spans of releases: the first and the last of each."""
    spans: list[tuple[str, str]] = []
    at = 0
    while bits >> at:
        if bits >> at & 1:
            end = at
            while bits >> (end + 1) & 1:
                end += 1
            spans.append((releases[at], releases[end]))
            at = end
        at += 1
    return spans


@cache
def packaged_rules() -> Rules:
    """The rules that came with this package: inside of it, or in the checkout that it belongs to."""
    return load_rules(packaged("policies", "torch"), packaged("fixtures"))


def load_rules(policies: Path, fixtures: Path) -> Rules:
    """The rules of a tree.

    Parameters:
        policies: the folder of the policy files.
        fixtures: holds ``operators/`` and ``globals/``.

    Raises:
        PolicyError: a file is missing, or no TOML. Its tables are checked by :mod:`torch_compat.policy`.
        CorpusError: a recorded history is missing or cannot be read.
    """
    tables: dict[str, list[dict[str, Any]]] = {}
    for name in ("releases", "formats", "needs", "weights_only"):
        path = policies / f"{name}.toml"
        try:
            found = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise PolicyError([Problem(path.as_posix(), 0, "", f"cannot be read: {error}")]) from error
        for table, entries in found.items():
            tables.setdefault(table, []).extend(entries)
    schemas = History(fixtures / "operators" / "schemas.txt")
    asked = schemas.releases
    calendar = sorted(tables["release"], key=lambda release: _numbers(release["version"]))
    releases = tuple(release["version"] for release in calendar)
    place = {release: at for at, release in enumerate(releases)}
    everyone = (1 << len(releases)) - 1

    def between(first: str | None, last: str | None) -> int:
        start = place[first] if first else 0
        end = place[last] if last else len(releases) - 1
        return (2 << end) - (1 << start)

    def of_python(python: str) -> int:
        wanted = tuple(map(int, python.split(".")))
        fitting = (any(tuple(map(int, one.split("."))) >= wanted for one in release["pythons"]) for release in calendar)
        return sum(1 << at for at, fits in enumerate(fitting) if fits)

    weights_only, defaults = _weights_only(tables.get("weights_only", []), releases, asked)
    default = sum(1 << place[release] for release in defaults)

    def takers(table: dict[str, Any]) -> int:
        bits = everyone
        if "readers" in table:
            bits = 0
            for span in table["readers"]:
                bits |= between(span.get("first"), span.get("last"))
        if "python" in table:
            bits &= of_python(table["python"])
        return bits

    needs = [
        Need(
            entry["id"],
            tuple(entry.get("all", ())),
            tuple(entry.get("any", ())),
            tuple(entry.get("none", ())),
            takers(entry),
            entry["because"],
        )
        for kind in ("need", "quirk")
        for entry in tables.get(kind, [])
    ]
    formats: dict[tuple[str, int | str], tuple[int, str]] = {}
    for entry in tables.get("format", []):
        until = entry.get("read_until", {}).get("release")
        formats[entry["kind"], entry["version"]] = between(entry["read_from"]["release"], until), entry["meaning"]
    builtins: dict[str, list[tuple[str, int]]] = {}
    for entry in tables.get("builtin", []):
        full = entry["operator"].partition("(")[0]
        for name in {full, full.partition(".")[0]}:
            builtins.setdefault(name, []).append((entry["operator"], between(entry["first"], entry.get("last"))))
    return Rules(
        releases=releases,
        everyone=everyone,
        needs=tuple(needs),
        formats=formats,
        modules={entry["name"]: Module(entry["name"], takers(entry), entry["because"]) for entry in tables.get("module", [])},
        builtins=builtins,
        conversions=tuple(
            ({KINDS[entry["given"]]: frozenset(entry["taken_as"])}, between(entry["first"], entry.get("last")))
            for entry in tables.get("conversion", [])
        ),
        schemas=schemas,
        upgraded=FactHistory(fixtures / "operators" / "operator_versions.txt"),
        names=GlobalNames(fixtures / "globals" / "names.txt"),
        stands_for={release: asked[_nearest(release, asked)] for release in releases if release not in asked},
        default=default,
        weights_only=weights_only,
    )


_TOLD = set(WeightsOnly._fields) - {"release"}


def _weights_only(
    tables: list[dict[str, Any]], releases: Sequence[str], asked: Sequence[str]
) -> tuple[dict[str, WeightsOnly], list[str]]:
    """What ``torch.load(weights_only=True)`` does, by release that has it; and the releases in which that is the default."""
    told: dict[str, dict[str, Any]] = {}
    default: set[str] = set()
    for table in tables:
        for release in asked:
            if _numbers(table["first"]) <= _numbers(release) <= _numbers(table.get("last", asked[-1])):
                entry = told.setdefault(release, {})
                for key in table.keys() & _TOLD:
                    value = table[key]
                    entry[key] = entry.get(key, frozenset()) | frozenset(value) if isinstance(value, list) else value
                if table.get("default"):
                    default.add(release)
    stands = {release: asked[_nearest(release, asked)] for release in releases}
    found = {release: WeightsOnly(release, **told[stands[release]]) for release in releases if stands[release] in told}
    return found, [release for release in found if stands[release] in default]
