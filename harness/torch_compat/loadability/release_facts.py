"""What is recorded of the releases, as far as it decides whether they load an archive.

Sets of releases are numbers here, as :class:`torch_compat.releases.known.Known` makes them of the calendar. Everything is read once
and kept.

Recorded are 33 releases; the calendar has more. What a release knows of operators and names that was not asked is taken from the
nearest one of its line that was, and :attr:`Rules.stands_for` says so.
"""

from __future__ import annotations

import json
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from torch_compat.loadability.custom_classes import CustomClasses
from torch_compat.operators.history import BesideNames, FactHistory, GlobalNames, History
from torch_compat.pickles.weights_only import RestrictedUnpickler
from torch_compat.releases.behavior import LOADS, Behavior
from torch_compat.releases.calendar import Calendar, Listed
from torch_compat.releases.data import entries, packaged
from torch_compat.releases.release import Release, dotted
from torch_compat.releases.sets import ReleaseSet
from torch_compat.torchscript.calls import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from torch_compat.releases.known import Known

__all__ = ["ExternalNames", "Rules", "load_rules", "packaged_rules"]


class ExternalNames(NamedTuple):
    """What stands beside the releases and may be named by pickles: Python's standard library, or a package.

    Attributes:
        what: in words: ``Python``, ``numpy``.
        names: what its versions have.
        takers: the releases that have each version beside them, as bits.
    """

    what: str
    names: BesideNames
    takers: tuple[int, ...]

    def releases(self, versions: int) -> int:
        """The releases beside which one of these versions stands, as bits."""
        found = 0
        for place, takers in enumerate(self.takers):
            if versions >> place & 1:
                found |= takers
        return found

    def versions(self, bits: int) -> str:
        """Versions in words."""
        return self.names.known.text(bits)


class _Recorded(NamedTuple):
    """All of it, as it is recorded.

    Attributes:
        known: the releases of the calendar, and sets of them as bits.
        needs: what only some releases load, in the order of the file.
        takers: the releases that do, as bits, by the id of the need.
        offers: what only some releases have: these releases, as bits, and why, by its id.
        advisories: vulnerabilities of loading, each with the affected releases as bits.
        formats: of each kind and version who reads it, and what it means.
        beside: what stands beside the releases, by the first part of a module's name; "" is Python.
        builtins: schemas that the recorded histories leave out, with their releases, by name with and without overload.
        conversions: types that a kind of argument becomes in some releases, and these.
        stands_for: releases that were not asked, with the one whose answer is taken.
        classes: the classes of ``torch.classes``.
        exported: what loaders of exported programs were asked, of which no archive of the corpus shows anything yet.
        default: the releases whose torch.load takes ``weights_only=True`` unless told otherwise.
    """

    known: Known
    needs: tuple[Behavior, ...]
    takers: dict[str, int]
    offers: dict[str, tuple[int, str]]
    advisories: tuple[tuple[Behavior, int], ...]
    formats: dict[tuple[str, int | str], tuple[int, str]]
    beside: dict[str, ExternalNames]
    builtins: dict[str, list[tuple[str, int]]]
    conversions: tuple[tuple[dict[str, frozenset[str]], int], ...]
    schemas: History
    upgraded: FactHistory
    names: GlobalNames
    stands_for: dict[str, str]
    default: int
    weights_only: dict[str, RestrictedUnpickler]
    classes: CustomClasses
    exported: tuple[Behavior, ...] = ()


class Rules(_Recorded):
    """All of it, and what follows from it, found out once."""

    @cached_property
    def releases(self) -> tuple[str, ...]:
        """The releases of the calendar, oldest first."""
        return self.known.releases

    @cached_property
    def everyone(self) -> int:
        """All of them, as bits."""
        return self.known.everyone

    @cached_property
    def asked(self) -> dict[str, frozenset[str]]:
        """What follows the colon of the signs that the needs ask for, by what stands before it."""
        asked: dict[str, set[str]] = {}
        for need in (*self.needs, *self.exported):
            for sign in need.when.signs:
                kind, _, rest = sign.partition(":")
                asked.setdefault(kind, set()).add(rest)
        return {kind: frozenset(rest) for kind, rest in asked.items()}

    @cached_property
    def by_sign(self) -> dict[str, list[Behavior]]:
        """Each need under the last of `all`, which is the rarest, or under each of `any`: only of what has it the need may hold."""
        found: dict[str, list[Behavior]] = {}
        for need in (*self.needs, *self.exported):
            for sign in need.when.any or need.when.all[-1:]:
                found.setdefault(sign, []).append(need)
        return found

    def offer(self, name: str) -> tuple[int, str]:
        """The releases that offer something, and why. A calendar that ends before the first of them has no such entry."""
        return self.offers.get(name, (0, "no release in the calendar provides it"))

    @cached_property
    def namespaces(self) -> frozenset[str]:
        """The namespaces of the operators that releases have."""
        return frozenset(text.partition("::")[0] for text, _, _ in self.schemas.facts()) | {
            name.partition("::")[0] for name in self.builtins
        }

    @cached_property
    def _stands(self) -> dict[Known, list[str]]:
        return {}

    @cached_property
    def _translated(self) -> dict[tuple[Known, int], int]:
        return {}

    def translated(self, bits: int, asked: Known) -> int:
        """Bits over the releases that were asked, as bits over the calendar."""
        key = (asked, bits)
        known = self._translated.get(key)
        if known is None:
            stands = self._stands.get(asked)
            if stands is None:
                stands = self._stands[asked] = [asked.releases[asked.nearest(release)] for release in self.known.parsed]
            having = frozenset(asked.of(bits))
            known = self._translated[key] = self.known.holding(
                release for release, one in zip(self.releases, stands, strict=True) if one in having
            )
        return known

    def having_class(self, name: str) -> int:
        """The releases that have a class of torch.classes, ``quantized.LinearPackedParamsBase``."""
        return self.translated(self.classes.having(name), self.classes.known)

    def taking_state(self, name: str, parts: int) -> int:
        """The releases whose class of torch.classes takes a state of so many parts."""
        return self.translated(self.classes.taking(name, parts), self.classes.known)

    def of_schemas(self, name: str) -> Iterable[tuple[str, int]]:
        """Every schema that ever stood under a name (one with an overload, or all of them), with its releases."""
        history = self.schemas
        for text, bits in history.with_bits(name):
            yield text, self.translated(bits, history.known)
        yield from self.builtins.get(name, ())

    def of_upgraded(self, name: str) -> Iterable[tuple[int, str, int]]:
        """The schemas that operators of this name had up to a file format version: the version, the schema, its releases."""
        history = self.upgraded
        for changes, bits in _changes(history).get(name, ()):
            for bumped_at, _, schema in changes:
                yield bumped_at, schema, self.translated(bits, history.known)


@cache
def _changes(history: FactHistory) -> dict[str, list[tuple[list[tuple[int, str, str]], int]]]:
    """What replaced operators at which version, by the name without overload: lists of version, program and old schema."""
    found: dict[str, list[tuple[list[tuple[int, str, str]], int]]] = {}
    for overload, changes, bits in history.facts():
        found.setdefault(overload.partition(".")[0], []).append((json.loads(changes), bits))
    return found


@cache
def packaged_rules() -> Rules:
    """The rules that came with this package: inside of it, or in the checkout that it belongs to."""
    return load_rules(packaged("policies", "torch"), packaged("fixtures"))


def load_rules(policies: Path, fixtures: Path) -> Rules:
    """The rules of a tree.

    Parameters:
        policies: the folder of the policy files.
        fixtures: holds ``operators/``, ``globals/`` and ``beside/``.

    Raises:
        PolicyError: a file is missing, or no TOML. Its tables are checked by :mod:`torch_compat.policy`.
        CorpusError: a recorded history is missing or cannot be read.
    """
    tables = entries(policies, ("releases", "formats", "behaviors", "loading", "weights_only"))
    schemas = History(fixtures / "operators" / "schemas.txt")
    calendar = Calendar(Listed.every(tables["release"]))
    known, asked = calendar.known, schemas.known
    stands = {
        release: asked.releases[asked.nearest(parsed)] for release, parsed in zip(known.releases, known.parsed, strict=True)
    }

    def of_python(python: str) -> int:
        wanted = dotted(python)
        return known.holding(one.version for one in calendar if any(dotted(python) >= wanted for python in one.pythons))

    def bits(behavior: Behavior) -> int:
        return of_python(behavior.python) if behavior.readers is None else known.bits_of(behavior.readers)

    weights_only, default = _weights_only([one for one in tables.get("behavior", []) if "takes" in one], known, asked, stands)

    behaviors: dict[str, list[Behavior]] = {}
    for one in map(Behavior.read, tables.get("behavior", [])):
        behaviors.setdefault(one.outcome, []).append(one)
    needs, offers = behaviors.get(LOADS, []), behaviors.get("offers", [])
    loaders = fixtures / "operators" / "exported.toml"  # a tree of before has none
    exported = [*map(Behavior.read, entries(loaders.parent, [loaders.stem])["behavior"] if loaders.is_file() else [])]
    formats: dict[tuple[str, int | str], tuple[int, str]] = {}
    for entry in tables.get("format", []):
        formats[entry["kind"], entry["version"]] = known.bits_of(_readers(entry)), entry["meaning"]
    builtins: dict[str, list[tuple[str, int]]] = {}
    for offer in (one for one in offers if one.operator):
        full = offer.operator.partition("(")[0]
        for name in {full, full.partition(".")[0]}:
            builtins.setdefault(name, []).append((offer.operator, bits(offer)))
    return Rules(
        known=known,
        needs=tuple(needs),
        takers={one.id: bits(one) for one in (*needs, *exported)},
        offers={one.id: (bits(one), one.because) for one in offers},
        advisories=tuple((one, bits(one)) for one in behaviors.get("exploited", [])),
        formats=formats,
        beside=_beside(tables, calendar, fixtures / "beside"),
        builtins=builtins,
        conversions=tuple(
            ({KINDS[one.when.all[0].partition(":")[2]]: frozenset(one.taken_as)}, bits(one))
            for one in behaviors.get("converts", [])
        ),
        schemas=schemas,
        upgraded=FactHistory(fixtures / "operators" / "operator_versions.txt"),
        names=GlobalNames(fixtures / "globals" / "names.txt"),
        stands_for={release: one for release, one in stands.items() if release not in asked},
        default=default,
        weights_only=weights_only,
        classes=CustomClasses(History(fixtures / "operators" / "custom_classes.txt"), schemas),
        exported=tuple(exported),
    )


def _beside(tables: dict[str, list[dict[str, Any]]], calendar: Calendar[Listed], folder: Path) -> dict[str, ExternalNames]:
    """What stands beside the releases: the newest recorded Python that a release has a wheel for, unless the calendar names another.
    A release that has a wheel for none of them has the newest.
    """
    known = calendar.known
    names = BesideNames(folder / "python.txt")
    lines = [dotted(version)[:2] for version in names.releases]
    having = [0] * len(lines)
    for entry in (one for one in tables["release"] if one["version"] in calendar):
        pythons = [dotted(entry["python"])] if "python" in entry else [*map(dotted, entry.get("pythons", ()))]
        having[max((lines.index(python) for python in pythons if python in lines), default=-1)] |= known.bit(entry["version"])
    found = {"": ExternalNames("Python", names, tuple(having))}
    for entry in (one for one in tables.get("package", []) if "beside" in one):
        package = entry["package"]
        names = BesideNames(folder / f"{package}.txt")
        stated = {one["version"]: known.bits_of(ReleaseSet.parse(one["readers"])) for one in entry["beside"]}
        found[package] = ExternalNames(package, names, tuple(stated.get(version, 0) for version in names.releases))
    return found


def _readers(entry: dict[str, Any]) -> ReleaseSet:
    """Who reads a version of a format."""
    until = entry.get("read_until")
    return ReleaseSet.between(Release(entry["read_from"]["release"]), Release(until["release"]) if until else None)


_TOLD = set(RestrictedUnpickler._fields) - {"release"}


def _weights_only(
    tables: list[dict[str, Any]], known: Known, asked: Known, stands: Mapping[str, str]
) -> tuple[dict[str, RestrictedUnpickler], int]:
    """What ``torch.load(weights_only=True)`` does, by release that has it; and the releases in which that is the default."""
    told: dict[str, dict[str, Any]] = {}
    default: set[str] = set()
    for table in tables:
        for release in asked.of(asked.bits_of(ReleaseSet.parse(table["readers"]))):
            entry = told.setdefault(release, {})
            for key in table["takes"].keys() & _TOLD:
                value = table["takes"][key]
                entry[key] = entry.get(key, frozenset()) | frozenset(value) if isinstance(value, list) else value
            if table["takes"].get("default"):
                default.add(release)
    found = {release: RestrictedUnpickler(release, **told[one]) for release, one in stands.items() if one in told}
    return found, known.holding(release for release in found if stands[release] in default)
