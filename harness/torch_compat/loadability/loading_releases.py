"""Determines which releases load an archive, and why the others do not.

Every requirement of an archive is a set of releases: those that meet it. The intersection of these sets can read the archive. A reason is
a requirement that some release does not meet. Redundant requirements are omitted, starting with those that rule out the fewest releases.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from torch_compat.formats.distributed import METADATA
from torch_compat.formats.model import NO_DIRECTORY
from torch_compat.loadability.archive_features import CUSTOM_CLASS, CUSTOM_STATE, signs_of
from torch_compat.loadability.custom_classes import NO_TUPLE
from torch_compat.loadability.load_calls import CHECKPOINTS, Loading, asked_of, is_foreign
from torch_compat.loadability.release_facts import packaged_rules
from torch_compat.loadability.requirement import Item
from torch_compat.loadability.schema_matching import fits
from torch_compat.operators.call_signature import signature_of
from torch_compat.pickles.brief import cut
from torch_compat.pickles.weights_only import refusals
from torch_compat.releases.release import Release
from torch_compat.releases.sets import Interval, ReleaseSet

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from torch_compat.formats.model import Call, Facts
    from torch_compat.loadability.load_calls import LoaderAdvisory, RequiredModule, Way
    from torch_compat.loadability.release_facts import ExternalNames, Rules
    from torch_compat.pickles.weights_only import Refusal
    from torch_compat.torchscript.calls import CallShape

__all__ = ["Judge", "Needs", "Reason", "of"]

Key = TypeVar("Key")
Answer = TypeVar("Answer")

BY_OVERLOAD = frozenset({"mobile", "export"})
"""The families that record the exact overload of each operator."""
KEPT = 8192
DEEPEST = 16
LONGEST = 1000  # characters of a name in a reason
STATED = {"file-format": (".data/version", "version"), "bytecode": ("bytecode.pkl",)}
"""The records that contain a version."""
HIGHER_ORDER = "higher_order::"
NUMBERED = frozenset({"file-format", "bytecode", "export-schema"})
"""The kinds of versions for which a release reads only the versions that it knows."""
EXTERN = frozenset({".data/extern_modules", "extern_modules"})
"""The records of packages that list the modules outside the package."""
NAMING = frozenset({"torch-save", "distributed"})
"""The families whose pickles refer to names that the release must have."""
LOADED = frozenset({"torch-save", "torchscript", "mobile"})
"""The families that torch.load opens, even if only to refuse them."""
PROGRAMS = frozenset({"torchscript", "mobile"})
"""The families whose pickles name storages the way TorchScript does."""


class Reason(NamedTuple):
    """A requirement that not every release meets.

    Attributes:
        needs: the required thing, and the releases that have it.
        because: where the archive requires it, and what the releases on both sides have.
    """

    needs: str
    because: str


class Needs:
    """The requirements of an archive. Archives with the same requirements for the same reasons share one object.

    Attributes:
        readable_by: spans of releases whose own loader accepts it with default arguments, as ``(first, last)``.
        minimum_release: the first of them; None if there is none.
        maximum_release: the last of them; None if there is none, or if the newest release reads it.
        reasons: why the others do not; those that rule out the most releases come first.
        weights_only: for every release with the argument, why ``torch.load(weights_only=True)`` refuses it; None if it does not. Empty if
            torch.load does not open such archives.
        weights_only_default: the default value of the argument in each of these releases.
        stands_for: releases that are not recorded, each with the recorded release whose facts are used instead.
        how_to_load: the calls that load it; those that run no code come first.
        beside: the modules and operator namespaces that it refers to besides torch and Python.
        advisories: the vulnerabilities of loading that affect it.
        loads: the releases in which one of the calls loads it, as a bitmask.
    """

    __slots__ = (
        "advisories",
        "beside",
        "how_to_load",
        "loads",
        "maximum_release",
        "minimum_release",
        "readable_by",
        "reasons",
        "stands_for",
        "weights_only",
        "weights_only_default",
    )

    def __init__(
        self,
        readable_by: tuple[tuple[str, str], ...],
        minimum_release: str | None,
        maximum_release: str | None,
        reasons: tuple[Reason, ...],
        weights_only: Mapping[str, Refusal | None],
        weights_only_default: Mapping[str, bool],
        stands_for: Mapping[str, str],
        how_to_load: tuple[Way, ...],
        beside: tuple[RequiredModule, ...],
        advisories: tuple[LoaderAdvisory, ...],
        loads: int,
    ) -> None:
        self.readable_by = readable_by
        self.minimum_release = minimum_release
        self.maximum_release = maximum_release
        self.reasons = reasons
        self.weights_only = weights_only
        self.weights_only_default = weights_only_default
        self.stands_for = stands_for
        self.how_to_load = how_to_load
        self.beside = beside
        self.advisories = advisories
        self.loads = loads

    @property
    def readers(self) -> ReleaseSet:
        """The releases of ``readable_by`` as a set, which is open-ended if the newest release reads the archive."""
        newest = self.readable_by[-1:] if self.maximum_release is None else ()
        return ReleaseSet(Interval(Release(span[0]), None if span in newest else Release(span[1])) for span in self.readable_by)


class Judge:
    """Judges archives by one set of rules, and caches results."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self._calls: dict[tuple[CallShape | Call, int | None], int] = {}
        self._texts: dict[str, list[tuple[str, int]]] = {}
        self._globals: dict[tuple[str, str], int] = {}
        self._needs: dict[tuple[tuple[Item, ...], tuple[Refusal | None, ...], Hashable], Needs] = {}
        self._defaults: dict[tuple[Refusal | None, ...], tuple[Item, ...]] = {}
        self._restricted = tuple(rules.weights_only.values())
        self._places = [rules.known.bit(release) for release in rules.weights_only]
        self._default = {release: bool(rules.default & rules.known.bit(release)) for release in rules.weights_only}

    def __call__(self, facts: Facts) -> Needs:
        """Return the requirements of an archive."""
        refused = self._refusals(facts)
        items = tuple(self._items(facts, refused))
        key = (items, refused, asked_of(facts))
        known = self._needs.get(key)
        if known is None:
            known = _kept(self._needs)[key] = self._judged(facts, items, refused)
        return known

    def _judged(self, facts: Facts, items: tuple[Item, ...], refused: tuple[Refusal | None, ...]) -> Needs:
        rules = self.rules
        readable = rules.everyone
        for item in items:
            readable &= item.takers
        spans = tuple(rules.known.spans(readable))
        first = last = None
        if spans:
            first, last = spans[0][0], None if spans[-1][1] == rules.releases[-1] else spans[-1][1]
        reasons = tuple(self._explained(items, rules.everyone & ~readable))
        weights_only = dict(zip(rules.weights_only, refused, strict=True)) if refused else {}
        loading = Loading(facts, items, refused, rules)
        return Needs(
            spans,
            first,
            last,
            reasons,
            weights_only,
            self._default,
            rules.stands_for,
            loading.ways(),
            () if facts.incomplete else loading.needs,
            loading.advisories(),
            loading.base,
        )

    # ----------------------------------------------------------------------------------------------------------- the needs

    def items(self, facts: Facts) -> tuple[Item, ...]:
        """Return every requirement of an archive that not every release meets."""
        return tuple(self._items(facts, self._refusals(facts)))

    def _items(self, facts: Facts, refused: tuple[Refusal | None, ...]) -> Iterator[Item]:
        rules = self.rules
        everyone = rules.everyone
        signs, shapes = signs_of(facts, rules.asked)
        if facts.incomplete:  # no release opens it; what else it needs depends on records that may be missing
            yield from (
                Item(rules.takers[need.id], need.id, "", need.because)
                for need in rules.by_sign.get(f"damaged:{NO_DIRECTORY}", ())
                if need.when.holds(signs)
            )
            return
        yield from self._of_formats(facts)
        by_sign = rules.by_sign
        for sign in signs:
            for need in by_sign.get(sign, ()):
                if need.when.holds(signs):
                    where = signs[sign] or next((signs[item] for item in need.when.all if signs[item]), "")
                    yield Item(rules.takers[need.id], need.id, where, need.because)
            kind, _, word = sign.partition(":")
            if kind == CUSTOM_CLASS:
                yield from self._of_class(word, signs[sign])
            elif kind == CUSTOM_STATE:
                yield from self._of_state(word, signs[sign])
        version = facts.versions.get("file-format")
        for shape, record in shapes.items():
            takers = self._by_shape(shape, version)
            if takers != everyone:
                yield Item(takers, f"operator {shape.name}", record, shape, self._of_extension(shape.name))
        if facts.family in PROGRAMS:
            for dtype, record in _dtypes(facts).items():
                takers = _without_gaps(self._by_global("torch", dtype))
                if takers != everyone:
                    yield Item(
                        takers,
                        f"dtype {dtype}",
                        record,
                        "other releases of torch have no such dtype, and their TorchScript loader has no such storage",
                    )
        if facts.family in BY_OVERLOAD:
            for call in facts.calls:
                if call.name.startswith(HIGHER_ORDER):
                    continue  # Python functions: no release lists them among its operators
                takers = self._by_overload(call)
                if takers != everyone:
                    yield Item(takers, f"operator {_full(call)}", "", call, self._of_extension(call.name))
        elif facts.family in NAMING:
            for record, unpickled in facts.pickles.items():
                for global_ in unpickled.globals:
                    takers = self._by_global(global_.module, global_.name)
                    if takers and record == METADATA and global_.module.startswith(CHECKPOINTS):
                        continue  # its names are part of the format: behaviors state which releases read it
                    if takers != everyone:
                        kind = "beside" if not takers and self._is_absent(global_.module) else ""
                        yield Item(takers, f"global {global_.path}", record, self._because(global_.module, global_.name), kind)
            if refused:
                yield from self._by_default(facts.container, refused)
        elif facts.family == "package":
            for module in facts.extra.get("extern_modules", ()):
                takers = self._by_module(module)
                if takers != everyone:
                    where = next((name for name in facts.names if name in EXTERN), "")
                    kind = "beside" if not takers and self._is_absent(module) else ""
                    yield Item(takers, f"module {module}", where, self._because(module), kind)
            for record, unpickled in facts.pickles.items():
                for global_ in unpickled.globals:  # only names outside the package; it never contains torch
                    takers = (
                        self._by_global(global_.module, global_.name) if global_.module.partition(".")[0] == "torch" else everyone
                    )
                    if takers != everyone:
                        yield Item(takers, f"global {global_.path}", record, self._because(global_.module, global_.name))

    def _of_formats(self, facts: Facts) -> Iterator[Item]:
        formats = self.rules.formats
        for kind, version in facts.versions.items():
            known = formats.get((kind, version))
            if known is None and kind not in NUMBERED:
                continue
            takers, meaning = known or (0, "no known release reads this version")
            if takers != self.rules.everyone:
                where = next((record for record in STATED.get(kind, ()) if record in facts.records), "")
                yield Item(takers, f"{kind} {version}", where, meaning)
        if facts.family == "distributed":
            yield from self._of_checkpoint(facts)
            return
        takers, meaning = formats.get(("container", facts.container), (0, "no loader accepts it as it is"))
        if takers != self.rules.everyone:
            kind = "loader" if facts.container == "pickle" else ""
            yield Item(takers, f"container {facts.container}", "", meaning, kind)
        for damage in facts.damage:
            if damage.code == "missing-record":
                yield Item(0, f"record {damage.record}", "", damage.detail)

    def _of_checkpoint(self, facts: Facts) -> Iterator[Item]:
        """Yield the missing files of a distributed checkpoint."""
        for damage in facts.damage:
            if damage.code in {"missing-shard", "missing-file"}:
                yield Item(0, f"file {damage.record}", "", damage.detail)

    def _of_class(self, name: str, where: str) -> Iterator[Item]:
        """Yield the requirement of a torch.classes class: a release that has it, or an extension."""
        takers = self.rules.having_class(name)
        if takers != self.rules.everyone:
            own = name.partition(".")[0] in self.rules.classes.namespaces
            because = (
                "other releases of torch have no such class"
                if own
                else "no release of torch has such a class: it comes from an extension"
            )
            yield Item(takers, f"class torch.classes.{name}", where, because, "" if own else "beside")

    def _of_state(self, named: str, where: str) -> Iterator[Item]:
        """Yield the requirement of a state of such an object: a release whose class accepts it."""
        name, _, parts = named.rpartition("/")
        takers = self.rules.taking_state(name, int(parts))
        if takers != self.rules.having_class(name):
            told = "is not a tuple" if int(parts) == NO_TUPLE else f"has {parts} parts"
            because = f"the saved state {told}, but the class in other releases expects a different state"
            yield Item(takers, f"state of torch.classes.{name}", where, because)

    def _by_shape(self, shape: CallShape, version: int | None) -> int:
        """Return the releases that have an operator that matches a call, in an archive with this file format version."""
        key = (shape, version)
        known = self._calls.get(key)
        if known is None:
            upgraded = [item for item in self.rules.of_upgraded(shape.name) if version is not None and version < item[0]]
            known = None if upgraded else self._calls.get((shape, None))  # for most operators, the version is irrelevant
            if known is None:
                known = 0
                for text, takers in (*self._schemas_of(shape.name), *[item[1:] for item in upgraded]):
                    if takers & ~known:
                        known |= takers & self._fitting(shape, text)
            if not upgraded:
                _kept(self._calls)[shape, None] = known
            _kept(self._calls)[key] = known
        return known

    def _schemas_of(self, name: str) -> list[tuple[str, int]]:
        """Return the result of :meth:`Rules.of_schemas`, cached."""
        known = self._texts.get(name)
        if known is None:
            known = _kept(self._texts)[name] = list(self.rules.of_schemas(name))
        return known

    def _fitting(self, shape: CallShape, text: str) -> int:
        """Return the releases in which a call matches a schema, if they have the schema."""
        schema = signature_of(text)
        if fits(shape, schema):
            return self.rules.everyone
        known = 0
        for conversions, takers in self.rules.conversions:
            if fits(shape, schema, conversions):
                known |= takers
        return known

    def _by_overload(self, call: Call) -> int:
        """Return the releases that have this overload with at least as many arguments."""
        key = (call, None)
        known = self._calls.get(key)
        if known is None:
            known = 0
            full = _full(call)
            for text, takers in self._schemas_of(full):
                if text.partition("(")[0] == full:
                    schema = signature_of(text)
                    given = (call.positional or 0) + len(call.keywords)
                    if schema.vararg or given <= len(schema.arguments):
                        known |= takers
            _kept(self._calls)[key] = known
        return known

    def _by_global(self, module: str, name: str) -> int:
        key = (module, name)
        known = self._globals.get(key)
        if known is None:
            if module == "torch" or module.startswith("torch."):
                names = self.rules.names
                result, unknown = names.having_bits(_upper(module), name)
                known = self.rules.translated(result | unknown, names.known)
            else:
                beside = self._beside(module)
                known = beside.releases(beside.names.having_bits(_upper(module), name))
            _kept(self._globals)[key] = known
        return known

    def _by_module(self, module: str) -> int:
        """Return the releases with which a module can be imported: of torch, of Python, or of an expected package."""
        if module.partition(".")[0] == "torch":
            return self.rules.everyone
        beside = self._beside(module)
        return beside.releases(beside.names.module_bits(_upper(module)))

    def _is_absent(self, module: str) -> bool:
        """Whether a module is unknown: not in torch, Python, or an expected package."""
        top = module.partition(".")[0]
        return top not in self.rules.beside and is_foreign(module, self.rules)

    def _of_extension(self, operator: str) -> str:
        """Return the kind of requirement that an operator is."""
        return "" if operator.partition("::")[0] in self.rules.namespaces else "beside"

    def _beside(self, module: str) -> ExternalNames:
        """Return the owner of a module outside torch: a package that is expected besides torch, else Python."""
        return self.rules.beside.get(module.partition(".")[0]) or self.rules.beside[""]

    def _because(self, module: str, name: str | None = None) -> str:
        if module.partition(".")[0] == "torch":
            return "other releases of torch have no such name"
        beside = self._beside(module)
        have = beside.names.module_bits(_upper(module)) if name is None else beside.names.having_bits(_upper(module), name)
        recorded = ", ".join(beside.names.releases)
        if have:
            return f"of {beside.what} {recorded}, only {beside.versions(have)} has it"
        if beside.what == "Python" and not beside.names.module_bits(module.partition(".")[0]):
            return "it is neither in torch nor in Python, so no release provides it"
        return f"none of {beside.what} {recorded} has it"

    def _refusals(self, facts: Facts) -> tuple[Refusal | None, ...]:
        """Return the result of ``torch.load(weights_only=True)`` for an archive, in each release that has the argument."""
        if facts.family not in LOADED or facts.container in {"flatbuffer", "pickle"} or facts.incomplete:
            return ()
        program = facts.family != "torch-save"
        return refusals(tuple(facts.pickles.values()), self._restricted, container=facts.container, torchscript=program)

    def _by_default(self, container: str, refused: tuple[Refusal | None, ...]) -> tuple[Item, ...]:
        """Return the requirements due to releases in which ``weights_only=True`` is the default."""
        items = self._defaults.get(refused)
        if items is None:
            results: dict[tuple[str, str], int] = {}
            for place, default, refusal in zip(self._places, self._default.values(), refused, strict=True):
                if refusal is not None and default:
                    key = (refusal.subject or container, refusal.detail)
                    results[key] = results.get(key, 0) | place
            items = _kept(self._defaults)[refused] = tuple(
                Item(
                    self.rules.everyone & ~bits,
                    f"weights_only=False for {subject}",
                    "",
                    f"in other releases, torch.load defaults to weights_only=True and refuses an archive that {detail}",
                    "default",
                )
                for (subject, detail), bits in results.items()
            )
        return items

    # ------------------------------------------------------------------------------------------------------------ the words

    def _explained(self, items: Sequence[Item], refused: int) -> Iterator[Reason]:
        left = refused
        for item in sorted(items, key=lambda item: (item.takers.bit_count(), item.what, item.where, str(item.because))):
            if left & ~item.takers:
                left &= item.takers
                yield self._reason(item)

    def _reason(self, item: Item) -> Reason:
        because = item.because if isinstance(item.because, str) else self._schemas(item.takers, item.because)
        inside = f"record {cut(item.where, LONGEST)}: " if item.where else ""
        return Reason(f"{cut(item.what, LONGEST)}: {self._named(item.takers)}", f"{inside}{because}")

    def _named(self, bits: int) -> str:
        """Return a set of releases as text."""
        releases = self.rules.releases
        parts = []
        for first, last in self.rules.known.spans(bits):
            if last == releases[-1]:
                parts.append(f"{first} and newer")
            elif first == releases[0]:
                parts.append(f"{last} and older")
            else:
                parts.append(first if first == last else f"{first} to {last}")
        return f"torch {', '.join(parts)}" if parts else "no release of torch"

    def _schemas(self, takers: int, called: CallShape | Call) -> str:
        """Describe how an operator is called, and its schemas in the releases on both sides of each end."""
        releases = self.rules.releases
        name = called.name if hasattr(called, "keywords") and not hasattr(called, "overload") else _full(called)  # type: ignore[arg-type]
        every = self._schemas_of(name)
        ends = [self.rules.known.place(end) for span in self.rules.known.spans(takers) for end in span]
        beside = [ends[0] - 1, ends[0], ends[-1], ends[-1] + 1] if ends else [len(releases) - 1]
        told = [f"called as {called}"] if name == called.name else []
        before = None
        for at in beside:
            if 0 <= at < len(releases):
                have = sorted(text for text, bits in every if bits >> at & 1)
                message = "; ".join(have[:3]) + (f" and {len(have) - 3} more" if have[3:] else "") if have else "no such operator"
                if message != before:
                    told.append(f"{releases[at]} has {message}")
                before = message
        return ". ".join(told)


def _kept(answers: dict[Key, Answer]) -> dict[Key, Answer]:
    """Return a cache after clearing it if it is full, because a million archives may need a million entries."""
    if len(answers) >= KEPT:
        answers.clear()
    return answers


def _upper(module: str) -> str:
    """Truncate a module path to :data:`DEEPEST` parts, since each parent package is looked up; real modules are not nested deeper."""
    return ".".join(module.split(".", DEEPEST)[:DEEPEST])


def _dtypes(facts: Facts) -> dict[str, str]:
    """Return the dtypes of storages in a program's pickles, each with the first record that contains it."""
    results: dict[str, str] = {}
    for record, unpickled in facts.pickles.items():
        for storage in unpickled.storages:
            results.setdefault(storage.dtype, record)
    return results


def _full(call: Call) -> str:
    return f"{call.name}.{call.overload}" if call.overload else call.name


_judges: dict[int, Judge] = {}


def of(facts: Facts, rules: Rules | None = None) -> Needs:
    """Return the requirements of an archive.

    Parameters:
        facts: the facts from inspecting it.
        rules: the recorded facts about releases; default: those that come with this package.
    """
    rules = rules or packaged_rules()
    judge = _judges.get(id(rules))
    if judge is None:
        judge = _judges[id(rules)] = Judge(rules)  # keeps the rules alive, so that their id is not reused
    return judge(facts)


def _without_gaps(takers: int) -> int:
    """Fill gaps between the first and the last release with a name: ``torch`` 1.11 lacks ``complex32``, but its loader has it."""
    return (1 << takers.bit_length()) - (takers & -takers)
