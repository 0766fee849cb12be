"""The recorded facts about releases that determine whether they load an archive.

Sets of releases are bitmasks over the calendar (:class:`torch_compat.releases.known.Known`). All facts are read once and cached.

Only a part of the releases in the calendar is recorded. The operators and names of a release that is not recorded are those of the nearest
recorded release of its minor version, and :attr:`Rules.stands_for` lists these.
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
    """Python's standard library, or a package besides torch, whose names pickles may refer to.

    Attributes:
        what: its name: ``Python``, ``numpy``.
        names: the names in each version.
        takers: the releases that are used with each version, as bitmasks.
    """

    what: str
    names: BesideNames
    takers: tuple[int, ...]

    def releases(self, versions: int) -> int:
        """Return the releases that are used with one of these versions, as a bitmask."""
        result = 0
        for place, takers in enumerate(self.takers):
            if versions >> place & 1:
                result |= takers
        return result

    def versions(self, bits: int) -> str:
        """Return versions as text."""
        return self.names.known.text(bits)


class _Recorded(NamedTuple):
    """The recorded facts.

    Attributes:
        known: the releases of the calendar, for bitmasks of them.
        needs: the behaviors with the outcome ``loads``, for archives that only some releases load, in file order.
        takers: the releases that load them, as bitmasks, by the id of the behavior.
        offers: features that only some releases have: these releases, as a bitmask, and the reason, by id.
        advisories: vulnerabilities of loading, each with the affected releases as a bitmask.
        formats: the releases that read each kind and version of a format, and its meaning.
        beside: the packages besides torch, by the first part of a module's name; "" is Python.
        builtins: schemas that the recorded histories omit, with their releases, by name with and without overload.
        conversions: the types to which some releases convert a kind of argument, with these releases.
        stands_for: the releases that are not recorded, each with the recorded release whose facts are used instead.
        classes: the ``torch.classes`` classes.
        exported: behaviors that were observed in loaders of exported programs, for which the corpus has no archive yet.
        default: the releases whose torch.load defaults to ``weights_only=True``.
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
    """The recorded facts, and cached values derived from them."""

    @cached_property
    def releases(self) -> tuple[str, ...]:
        """The releases of the calendar, oldest first."""
        return self.known.releases

    @cached_property
    def everyone(self) -> int:
        """All releases, as a bitmask."""
        return self.known.everyone

    @cached_property
    def asked(self) -> dict[str, frozenset[str]]:
        """The signs that behaviors use: the parts after the colon, by the part before it."""
        asked: dict[str, set[str]] = {}
        for need in (*self.needs, *self.exported):
            for sign in need.when.signs:
                kind, _, rest = sign.partition(":")
                asked.setdefault(kind, set()).add(rest)
        return {kind: frozenset(rest) for kind, rest in asked.items()}

    @cached_property
    def by_sign(self) -> dict[str, list[Behavior]]:
        """The behaviors by sign: the last sign of `all`, which is the rarest, or each of `any`. Without it, the behavior cannot apply."""
        results: dict[str, list[Behavior]] = {}
        for need in (*self.needs, *self.exported):
            for sign in need.when.any or need.when.all[-1:]:
                results.setdefault(sign, []).append(need)
        return results

    def offer(self, name: str) -> tuple[int, str]:
        """Return the releases that have a feature, and the reason. It has no entry if the calendar ends before the first of them."""
        return self.offers.get(name, (0, "no release in the calendar provides it"))

    @cached_property
    def namespaces(self) -> frozenset[str]:
        """The namespaces of the operators in releases."""
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
        """Convert a bitmask over recorded releases to a bitmask over the calendar."""
        key = (asked, bits)
        known = self._translated.get(key)
        if known is None:
            stands = self._stands.get(asked)
            if stands is None:
                stands = self._stands[asked] = [asked.releases[asked.nearest(release)] for release in self.known.parsed]
            having = frozenset(asked.of(bits))
            known = self._translated[key] = self.known.holding(
                release for release, stand in zip(self.releases, stands, strict=True) if stand in having
            )
        return known

    def having_class(self, name: str) -> int:
        """Return the releases with a torch.classes class such as ``quantized.LinearPackedParamsBase``."""
        return self.translated(self.classes.having(name), self.classes.known)

    def taking_state(self, name: str, parts: int) -> int:
        """Return the releases whose torch.classes class accepts a state with this number of parts."""
        return self.translated(self.classes.taking(name, parts), self.classes.known)

    def of_schemas(self, name: str) -> Iterable[tuple[str, int]]:
        """Yield every schema that a name ever had (of one overload, or of all overloads), with its releases."""
        history = self.schemas
        for text, bits in history.with_bits(name):
            yield text, self.translated(bits, history.known)
        yield from self.builtins.get(name, ())

    def of_upgraded(self, name: str) -> Iterable[tuple[int, str, int]]:
        """Yield the schemas that operators with this name had up to a file format version: the version, the schema, its releases."""
        history = self.upgraded
        for changes, bits in _changes(history).get(name, ()):
            for bumped_at, _, schema in changes:
                yield bumped_at, schema, self.translated(bits, history.known)


@cache
def _changes(history: FactHistory) -> dict[str, list[tuple[list[tuple[int, str, str]], int]]]:
    """Return the upgraders of operators by the name without overload: lists of version, program and old schema, with releases."""
    results: dict[str, list[tuple[list[tuple[int, str, str]], int]]] = {}
    for overload, changes, bits in history.facts():
        results.setdefault(overload.partition(".")[0], []).append((json.loads(changes), bits))
    return results


@cache
def packaged_rules() -> Rules:
    """Return the rules that come with this package: inside it, or in its checkout."""
    return load_rules(packaged("policies", "torch"), packaged("fixtures"))


def load_rules(policies: Path, fixtures: Path) -> Rules:
    """Load the rules from a source tree.

    Parameters:
        policies: the folder of the policy files.
        fixtures: the folder with ``operators/``, ``globals/`` and ``beside/``.

    Raises:
        PolicyError: a file is missing, or not valid TOML. :mod:`torch_compat.policy` checks the tables.
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
        return known.holding(
            element.version for element in calendar if any(dotted(python) >= wanted for python in element.pythons)
        )

    def bits(behavior: Behavior) -> int:
        return of_python(behavior.python) if behavior.readers is None else known.bits_of(behavior.readers)

    weights_only, default = _weights_only(
        [table for table in tables.get("behavior", []) if "takes" in table], known, asked, stands
    )

    behaviors: dict[str, list[Behavior]] = {}
    for item in map(Behavior.read, tables.get("behavior", [])):
        behaviors.setdefault(item.outcome, []).append(item)
    needs, offers = behaviors.get(LOADS, []), behaviors.get("offers", [])
    loaders = fixtures / "operators" / "exported.toml"  # older trees have none
    exported = [*map(Behavior.read, entries(loaders.parent, [loaders.stem])["behavior"] if loaders.is_file() else [])]
    formats: dict[tuple[str, int | str], tuple[int, str]] = {}
    for entry in tables.get("format", []):
        formats[entry["kind"], entry["version"]] = known.bits_of(_readers(entry)), entry["meaning"]
    builtins: dict[str, list[tuple[str, int]]] = {}
    for offer in (element for element in offers if element.operator):
        full = offer.operator.partition("(")[0]
        for name in {full, full.partition(".")[0]}:
            builtins.setdefault(name, []).append((offer.operator, bits(offer)))
    return Rules(
        known=known,
        needs=tuple(needs),
        takers={need.id: bits(need) for need in (*needs, *exported)},
        offers={element.id: (bits(element), element.because) for element in offers},
        advisories=tuple((behavior, bits(behavior)) for behavior in behaviors.get("exploited", [])),
        formats=formats,
        beside=_beside(tables, calendar, fixtures / "beside"),
        builtins=builtins,
        conversions=tuple(
            ({KINDS[behavior.when.all[0].partition(":")[2]]: frozenset(behavior.taken_as)}, bits(behavior))
            for behavior in behaviors.get("converts", [])
        ),
        schemas=schemas,
        upgraded=FactHistory(fixtures / "operators" / "operator_versions.txt"),
        names=GlobalNames(fixtures / "globals" / "names.txt"),
        stands_for={release: stand for release, stand in stands.items() if release not in asked},
        default=default,
        weights_only=weights_only,
        classes=CustomClasses(History(fixtures / "operators" / "custom_classes.txt"), schemas),
        exported=tuple(exported),
    )


def _beside(tables: dict[str, list[dict[str, Any]]], calendar: Calendar[Listed], folder: Path) -> dict[str, ExternalNames]:
    """Return the packages besides torch, and the version of each that a release is used with.

    For Python, this is the newest recorded version with a wheel of the release, unless the calendar names another; the newest recorded
    version if no wheel is for a recorded one.
    """
    known = calendar.known
    names = BesideNames(folder / "python.txt")
    lines = [dotted(version)[:2] for version in names.releases]
    having = [0] * len(lines)
    for entry in (item for item in tables["release"] if item["version"] in calendar):
        pythons = [dotted(entry["python"])] if "python" in entry else [*map(dotted, entry.get("pythons", ()))]
        having[max((lines.index(python) for python in pythons if python in lines), default=-1)] |= known.bit(entry["version"])
    results = {"": ExternalNames("Python", names, tuple(having))}
    for entry in (table for table in tables.get("package", []) if "beside" in table):
        package = entry["package"]
        names = BesideNames(folder / f"{package}.txt")
        stated = {item["version"]: known.bits_of(ReleaseSet.parse(item["readers"])) for item in entry["beside"]}
        results[package] = ExternalNames(package, names, tuple(stated.get(version, 0) for version in names.releases))
    return results


def _readers(entry: dict[str, Any]) -> ReleaseSet:
    """Return the releases that read a version of a format."""
    until = entry.get("read_until")
    return ReleaseSet.between(Release(entry["read_from"]["release"]), Release(until["release"]) if until else None)


_TOLD = set(RestrictedUnpickler._fields) - {"release"}


def _weights_only(
    tables: list[dict[str, Any]], known: Known, asked: Known, stands: Mapping[str, str]
) -> tuple[dict[str, RestrictedUnpickler], int]:
    """Return the restricted unpickler of each release that has ``weights_only``, and the releases in which True is the default."""
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
    results = {release: RestrictedUnpickler(release, **told[stand]) for release, stand in stands.items() if stand in told}
    return results, known.holding(release for release in results if stands[release] in default)
