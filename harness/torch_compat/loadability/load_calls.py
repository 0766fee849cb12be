"""Determines the calls that load an archive, their releases, what they need besides torch, and whether they run code.

An answer is a :class:`Way`. Safe calls come first. ``weights_only=True`` calls only what torch allows by default and what the user adds
with ``add_safe_globals``; every other call of ``torch.load`` calls whatever the pickle refers to. A name that is known to be harmful
(:mod:`torch_compat.pickles.dangers`) is never proposed for ``add_safe_globals``, and a name that is not a plain Python name never appears
in a call.
"""

from __future__ import annotations

import builtins
import keyword
import re
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from torch_compat.loadability.release_facts import packaged_rules
from torch_compat.pickles import Global, NumpyDtype, dangerous, parts
from torch_compat.pickles.weights_only import Refusal, allowing
from torch_compat.releases.data import entries, packaged

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

    from torch_compat.formats.model import Facts
    from torch_compat.loadability.release_facts import Rules
    from torch_compat.loadability.requirement import Item
    from torch_compat.pickles.weights_only import RestrictedUnpickler

__all__ = [
    "CHECKPOINTS",
    "LoaderAdvisory",
    "Loading",
    "RequiredModule",
    "Way",
    "asked_of",
    "devices_of",
    "is_foreign",
    "packaged_loading",
]

MOST_NAMED = 3
"""Maximum number of names shown per module."""
MOST_ALLOWED = 100
"""Maximum number of names that a call may ask the user to allowlist. Users do not review more."""
CLASS = "class torch.classes."
"""Prefix for requirements on torch.classes classes."""
PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*\Z")
ANYWHERE = frozenset({"cpu", "meta"})
"""Devices that exist on every machine."""
CALLS = {
    "torchscript": "torch.jit.load", "package": "torch.package.PackageImporter", "export": "torch.export.load",
    "mobile": "torch.jit.mobile._load_for_lite_interpreter",
}  # fmt: skip
"""The function that loads an archive of a family that torch.load does not load."""
CONVERT = "torch.distributed.checkpoint.format_utils.dcp_to_torch_save"
LOAD_SHARDS = "torch.distributed.checkpoint.load_state_dict"
SPELLED = {
    "pickle.load": ("pickle.load(open(PATH, 'rb'))",),
    CONVERT: (f"{CONVERT}(PATH, 'whole.pt')",),
    LOAD_SHARDS: (
        "reader = torch.distributed.checkpoint.FileSystemReader(PATH)",
        "state = {name: torch.empty(one.size, dtype=one.properties.dtype) if hasattr(one, 'size') else None for name, one in reader.read_metadata().state_dict_metadata.items()}",
        f"{LOAD_SHARDS}(state, reader, no_dist=True)",
    ),
}
"""The statements of calls that need more than a path and arguments."""
CHECKPOINTS = ("torch.distributed.checkpoint.", "torch.distributed._shard.")
PATHS = frozenset({"pathlib", "pathlib._local"})
RUN = frozenset({"package", "export"})
"""The families whose loading runs code: a package imports its own Python, and torch.export.load unpickles examples without
limits."""
ALWAYS_IMPORTED = frozenset({"torch", "torch.jit"})
"""The modules of loaders that ``import torch`` already imports."""
MAPPED = frozenset({"torch.load", "torch.jit.load"})
"""The calls that accept ``map_location``."""
NUMPY_DTYPE = "numpy.dtype"
SETS_STATE = "def __setstate__("
MOVED = ("torch.quantization", "torch.nn.quantized", "torch.nn.quantizable", "torch.nn.qat", "torch.nn.intrinsic")
"""The packages that torch moved to ``torch.ao`` before it had ``add_safe_globals``: their classes use the new path as their
module."""
NAMELESS = frozenset({"builtins.Ellipsis", "builtins.NotImplemented"})
"""Names in pickles that are not classes or functions with a name of their own. ``add_safe_globals`` accepts them only as a
pair."""
ITERATORS = frozenset({"builtins.iter", "builtins.reversed"})
"""The functions that return objects of classes without an importable name."""
NUMBERS = {"i": "Int", "u": "UInt", "f": "Float", "c": "Complex"}
"""Prefix of the class of a numeric numpy dtype, keyed by the letter of its code; the number of bits follows."""
OTHERS = {
    "b1": "Bool", "f16": "LongDouble", "c32": "CLongDouble", "O": "Object", "U": "Str", "S": "Bytes", "V": "Void", "M": "DateTime64",
    "m": "TimeDelta64", "T": "String",
}  # fmt: skip
"""Prefix of the other classes, keyed by code or by the letter that precedes a dtype-specific size or unit."""
SIZES = frozenset({"1", "2", "4", "8", "16"})  # the size of a number in bytes


class RequiredModule(NamedTuple):
    """A requirement of loading besides torch and Python's standard library.

    Attributes:
        module: the module, or an operator namespace such as ``torchvision::``.
        package: the package that provides it, optionally with the versions that do; None if none is known.
        because: further information; "" if there is none.
    """

    module: str
    package: str | None
    because: str = ""


class LoaderAdvisory(NamedTuple):
    """A published vulnerability of loading that affects an archive.

    Attributes:
        id: its identifier.
        releases: the affected releases that can load the archive, as spans.
        call: the affected call.
        summary: what a crafted file does.
        safe: the safe alternative.
        reference: where it was published.
    """

    id: str
    releases: tuple[tuple[str, str], ...]
    call: str
    summary: str
    safe: str
    reference: str


class Way(NamedTuple):
    """A call that loads an archive.

    Attributes:
        releases: the releases in which it does, as spans ``(first, last)``.
        call: the function.
        arguments: the arguments besides the path, as ``(name, value)``.
        safe_globals: the globals that must first be added with ``add_safe_globals``, as in the pickle, in its order.
        paired: the paths of those whose own name may differ, so that they are added as a pair ``(object, name)``.
        runs_code: whether the call runs code chosen by the file.
        needs: the modules that must be importable.
    """

    releases: tuple[tuple[str, str], ...]
    call: str
    arguments: tuple[tuple[str, Any], ...]
    safe_globals: tuple[Global, ...]
    paired: frozenset[str]
    runs_code: bool
    needs: tuple[RequiredModule, ...]

    @property
    def code(self) -> str:
        """The call as Python code on one line, with all imports except that of torch; ``PATH`` represents the file."""
        return "; ".join(self.statements)

    @property
    def statements(self) -> tuple[str, ...]:
        """The statements of :attr:`code`.

        Safe globals are imported by name: ``torch.nn.utils.weight_norm.WeightNorm`` is not an attribute of ``torch.nn.utils.weight_norm``,
        which is a function with the same name, and ``torch.optim`` deletes its modules.
        """
        given = "".join(f", {name}={value!r}" for name, value in self.arguments)
        parts = [f"import {name}" for name in self._imported()]
        if self.safe_globals:
            names = _imported_names(self.safe_globals)
            modules: dict[str, list[str]] = {}
            for (module, outer), name in names.items():
                modules.setdefault(module, []).append(outer if name == outer else f"{outer} as {name}")
            parts += [f"from {module} import {', '.join(own)}" for module, own in modules.items() if module != "builtins"]
            spelled = [(_spelled(item, names), item.path) for item in self.safe_globals]
            added = ", ".join(f"({name}, {path!r})" if path in self.paired else name for name, path in spelled)
            parts.append(f"torch.serialization.add_safe_globals([{added}])")
        return (*parts, *(SPELLED.get(self.call) or (f"{self.call}(PATH{given})",)))

    def _imported(self) -> tuple[str, ...]:
        """Return the modules that the call needs: its own, and those that register the operators of a program."""
        called = self.call.partition(".")[0] if self.call == "pickle.load" else self.call.rpartition(".")[0]
        own = () if called in ALWAYS_IMPORTED else (called,)
        registering = packaged_loading().registering
        return tuple(dict.fromkeys([*own, *(registering[need.module] for need in self.needs if need.module in registering)]))


def _imported_names(added: Iterable[Global]) -> dict[tuple[str, str], str]:
    """Return the name in code of each outermost class or function, prefixed with its module if its own name is taken."""
    taken, names = {*dir(builtins), "torch", "PATH"}, {}
    for item in added:
        outer = item.module, item.name.partition(".")[0]
        if outer not in names:
            name = outer[1]
            if outer[0] != "builtins" and name in taken:
                name = ".".join(outer).replace(".", "_")
            taken.add(name)
            names[outer] = name
    return names


def _spelled(item: Global, names: Mapping[tuple[str, str], str]) -> str:
    """Return the expression for a global after its outermost name is imported."""
    outer = item.name.partition(".")[0]
    return names[item.module, outer] + item.name.removeprefix(outer)


class LoaderFacts(NamedTuple):
    """The contents of ``loading.toml``.

    Attributes:
        packages: the package of each module, or of each namespace (which ends in ``::``), with its hint.
        registering: the module that registers the operators of each namespace (which ends in ``::``).
        returned: for functions in pickles, the possible classes of the returned object.
        renamed: the modules that newer versions of a package renamed, longest names first.
    """

    packages: dict[str, tuple[str, str]]
    registering: dict[str, str]
    returned: dict[str, frozenset[str]]
    renamed: tuple[dict[str, Any], ...]


@cache
def packaged_loading() -> LoaderFacts:
    """Return the facts that come with this package."""
    tables = entries(packaged("policies", "torch"), ("loading",))
    packages: dict[str, tuple[str, str]] = {}
    registering: dict[str, str] = {}
    returned: dict[str, frozenset[str]] = {}
    renamed: list[dict[str, Any]] = []
    for entry in tables.get("package", ()):
        namespaces = [f"{item}::" for item in entry.get("namespaces", ())]
        for name in (*entry.get("modules", ()), *namespaces):
            packages[name] = entry["package"], entry.get("hint", "")
        if namespaces:
            registering |= dict.fromkeys(namespaces, entry["modules"][0])
        returned |= {function: frozenset(classes) for function, classes in entry.get("returns", {}).items()}
        renamed += ({**module, "package": entry["package"]} for module in entry.get("renamed", ()))
    renamed.sort(key=lambda module: -len(module["module"]))
    return LoaderFacts(
        packages,
        registering,
        returned,
        tuple(renamed),
    )


# ---------------------------------------------------------------------------------------------------------------- modules


def foreign(facts: Facts, items: Iterable[Item], rules: Rules) -> Iterator[str]:
    """Yield the modules and operator namespaces (``torchvision::``) that an archive uses outside torch and Python's standard library."""
    if facts.family in {"torch-save", "distributed"}:
        for unpickled in facts.pickles.values():
            for global_ in unpickled.globals:
                if is_foreign(global_.module, rules):
                    yield global_.module
    for module in facts.extra.get("extern_modules", ()):
        if is_foreign(module, rules):
            yield module
    for item in items:
        if item.kind == "beside" and "::" in item.what:
            yield f"{item.what.removeprefix('operator ').partition('::')[0]}::"
        elif item.kind == "beside" and item.what.startswith(CLASS):
            yield f"{item.what.removeprefix(CLASS).partition('.')[0]}::"  # an extension has the same namespace for classes and operators


def is_foreign(module: str, rules: Rules) -> bool:
    """Whether a module belongs neither to torch nor to Python's standard library."""
    top = module.partition(".")[0]
    return top != "torch" and (top in rules.beside or not rules.beside[""].names.module_bits(top))


def modules_of(names: Iterable[str], wanted: Mapping[str, Sequence[str]] = MappingProxyType({})) -> tuple[RequiredModule, ...]:
    """Return modules and namespaces (which end in ``::``), each with the package that provides it.

    Parameters:
        wanted: the names in each module that a file uses. Some versions of a known package may lack them.
    """
    results = []
    for module in map(_module, dict.fromkeys(names)):
        if module.package and not module.because and module.module in wanted:
            shown = wanted[module.module][:MOST_NAMED]
            more = f" and {len(wanted[module.module]) - MOST_NAMED} more" if len(wanted[module.module]) > MOST_NAMED else ""
            module = module._replace(because=f"a version that has {', '.join(shown)}{more}")  # noqa: PLW2901 - the same module with more details
        results.append(module)
    return tuple(results)


def _wanted(facts: Facts) -> dict[str, list[str]]:
    """Return the names in each module that pickles refer to: plain names only, without duplicates."""
    results: dict[str, dict[str, None]] = {}
    for unpickled in facts.pickles.values():
        for global_ in unpickled.globals:
            if PLAIN.match(global_.name):
                results.setdefault(global_.module, {})[global_.name] = None
    return {module: list(names) for module, names in results.items()}


def _module(name: str) -> RequiredModule:
    loading = packaged_loading()
    if name == "__main__":
        return RequiredModule(
            name, None, "the classes that were defined in the script that wrote the file: define them in the script that loads it"
        )
    package, hint = loading.packages.get(name if name.endswith("::") else name.partition(".")[0], (None, ""))
    renamed = _renamed(name)
    if renamed is not None:
        if renamed["module"] == renamed["to"]:
            return RequiredModule(name, f"{renamed['package']}>={renamed['since']}", renamed["because"])
        if not renamed["old_loads"]:
            return RequiredModule(name, package, f"now {renamed['to']}: {renamed['because']}")
        return RequiredModule(name, package, f"{renamed['to']} since {renamed['since']}: {renamed['because']}")
    if package is None and not hint:
        hint = "operators of an extension that registers this namespace" if name.endswith("::") else "code from its author"
    return RequiredModule(name, package, hint)


def _renamed(module: str) -> Mapping[str, Any] | None:
    for entry in packaged_loading().renamed:
        if module == entry["module"] or module.startswith(entry["module"] + "."):
            return entry
    return None


# ---------------------------------------------------------------------------------------------------------------- devices


def devices_of(facts: Facts) -> tuple[str, ...]:
    """Return the devices of the storages when they were saved, without duplicates, in order."""
    return tuple(dict.fromkeys(storage.device for storage in facts.storages if storage.device is not None))


# ------------------------------------------------------------------------------------------------------------------- ways


def asked_of(facts: Facts) -> Hashable:
    """Return what determines how an archive is loaded, besides its requirements and the results of ``weights_only``."""
    devices = devices_of(facts)
    if facts.family == "distributed":
        named = _wanted(facts)
        return (
            facts.family,
            runs_names(facts),
            tuple((item, tuple(named.get(item, ()))) for item in foreign(facts, (), packaged_rules())),
        )
    if facts.family != "torch-save":
        return facts.family, devices, tuple(facts.extra.get("extern_modules", ())), sets_state(facts)
    events = tuple(
        (event.kind, _named(event.subject), event.protocol) for unpickled in facts.pickles.values() for event in unpickled.events
    )
    numpy = any(kind == "global" and ".".join(named) == NUMPY_DTYPE for kind, named, _ in events)
    return facts.container, bool(facts.storages), devices, events, _dtypes(facts) if numpy else ()


def _named(subject: Any) -> tuple[str, ...]:
    """Return the module and name of a global, which imports need separately; the class of any other object."""
    return (subject.module, subject.name) if subject.__class__ is Global else (str(subject.__class__),)


def sets_state(facts: Facts) -> bool:
    """Whether loading a program calls one of its methods."""
    return any(SETS_STATE in text for text in facts.sources.values())


class Loading:
    """Determines how an archive is loaded.

    Parameters:
        facts: the facts of the archive.
        items: its requirements.
        refused: the result of each release that has ``weights_only``; empty if torch.load does not open it.
        rules: the recorded facts about releases.

    Attributes:
        base: the releases that can load it with the right ``weights_only`` argument, if everything missing besides torch is installed.
        needs: the modules that must be importable.
        refused: why each release refuses it with weights_only=True; None if it does not.
        mapped: arguments that move its storages to the CPU.
    """

    def __init__(self, facts: Facts, items: Sequence[Item], refused: Sequence[Refusal | None], rules: Rules) -> None:
        self.facts = facts
        self.rules = rules
        self.base = rules.everyone
        for item in items:
            if not item.kind:
                self.base &= item.takers
        self.needs = modules_of(foreign(facts, items, rules), _wanted(facts))
        self.refused = dict(zip(rules.weights_only, refused, strict=True)) if refused else {}
        self.mapped = () if ANYWHERE.issuperset(devices_of(facts)) else (("map_location", "cpu"),)

    def ways(self) -> tuple[Way, ...]:
        """Return the calls that load it: calls that run no code first, then those without safe globals, then those of newer releases."""
        if self.facts.container == "pickle":
            result = _by_pickle(self)
        elif self.facts.family == "torch-save":
            result = _by_torch_load(self)
        elif self.facts.family == "distributed":
            result = _by_checkpoint(self)
        else:
            result = _by_own_loader(self)
        ways = [way for way in result if way.releases]
        place = self.rules.known.place
        return tuple(sorted(ways, key=lambda way: (way.runs_code, bool(way.safe_globals), -place(way.releases[-1][1]))))

    def way(
        self, bits: int, call: str, arguments: tuple[tuple[str, Any], ...] = (), *, runs_code: bool,
        allowed: tuple[Global, ...] = (), paired: frozenset[str] = frozenset(), needs: tuple[RequiredModule, ...] | None = None,
    ) -> Way:  # fmt: skip
        """Create the way for these releases."""
        if call in MAPPED:
            arguments = (*arguments, *self.mapped)
        spans = tuple(self.rules.known.spans(bits))
        return Way(spans, call, arguments, allowed, paired, runs_code, self.needs if needs is None else needs)

    def advisories(self) -> tuple[LoaderAdvisory, ...]:
        """Return the published vulnerabilities of releases that can load it."""
        results = []
        if self.facts.container not in {"pickle", "flatbuffer"}:
            for advisory, affected in self.rules.advisories:
                bits = affected & self.base
                if bits and advisory.when.holds((f"family:{self.facts.family}",)):
                    spans = tuple(self.rules.known.spans(bits))
                    results.append(
                        LoaderAdvisory(advisory.id, spans, advisory.call, advisory.because, advisory.safe, advisory.evidence)
                    )
        return tuple(results)


def _by_own_loader(asked: Loading) -> Iterator[Way]:
    facts = asked.facts
    yield asked.way(asked.base, CALLS[facts.family], runs_code=facts.family in RUN or sets_state(facts))


def _by_checkpoint(asked: Loading) -> Iterator[Way]:
    """Yield the ways for a checkpoint.

    Newer releases convert it to a torch.save file; older ones load it into a state dict with tensors of the right shapes.
    """
    runs_code = runs_names(asked.facts)
    converting = asked.rules.offer("distributed-to-torch-save")[0]
    yield asked.way(asked.base & converting, CONVERT, runs_code=runs_code)
    yield asked.way(asked.base & ~converting, LOAD_SHARDS, runs_code=runs_code)


def runs_names(facts: Facts) -> bool:
    """Whether pickles, which are read without limits, refer to more than torch's checkpoint classes and what weights_only accepts."""
    newest = next(reversed(packaged_rules().weights_only.values()))
    return not all(
        global_.path in newest.globals
        or global_.module in PATHS
        or (global_.module.startswith(CHECKPOINTS) and dangerous(global_) is None)
        for unpickled in facts.pickles.values()
        for global_ in unpickled.globals
    )


def _by_pickle(asked: Loading) -> Iterator[Way]:
    """Yield the way for a pickle that no torch loader accepts; its storages, if any, are not in the file."""
    if not asked.facts.storages:
        named = any(pickle.globals for pickle in asked.facts.pickles.values())
        yield asked.way(asked.base, "pickle.load", runs_code=named)


def _by_torch_load(asked: Loading) -> Iterator[Way]:
    known = asked.rules.known
    plain = known.holding(release for release, refusal in asked.refused.items() if refusal is None) & asked.base
    restricted = known.holding(asked.refused)
    # the container itself may be refused; this only checks whether the pickles refer to anything other than torch's own names
    harmless = allowing(tuple(asked.facts.pickles.values()), next(reversed(asked.rules.weights_only.values()))) == ()
    needs = () if harmless else None
    unlimited = asked.base & ~plain
    yield asked.way(plain, "torch.load", (("weights_only", True),), runs_code=False, needs=())
    yield from _by_allowing(asked, unlimited & restricted)
    yield asked.way(unlimited & restricted, "torch.load", (("weights_only", False),), runs_code=not harmless, needs=needs)
    yield asked.way(unlimited & ~restricted, "torch.load", runs_code=not harmless, needs=needs)


def _by_allowing(asked: Loading, among: int) -> Iterator[Way]:
    """Yield the ways that need safe globals; releases that need the same ones are combined."""
    if _sets_state_of_unnamed(asked.facts):
        return
    rules, pickles = asked.rules, tuple(asked.facts.pickles.values())
    by_name = rules.offer("safe-globals-by-name")[0]
    told: dict[RestrictedUnpickler, tuple[Global, ...] | Refusal] = {}
    alike: dict[tuple[tuple[Global, ...], bool], int] = {}
    for release, restricted in rules.weights_only.items():
        bit = rules.known.bit(release)
        if not bit & among or not restricted.adds:
            continue
        nameless = restricted._replace(release="")
        if nameless not in told:
            told[nameless] = allowing(pickles, nameless, container=asked.facts.container)
        names = told[nameless]
        if not isinstance(names, Refusal):
            key = names, bool(bit & by_name)
            alike[key] = alike.get(key, 0) | bit
    for (names, with_name), bits in alike.items():
        if not all(map(_may_be_added, names)) or len(names) > MOST_ALLOWED:
            continue
        dtypes = _dtypes(asked.facts) if any(name.path == NUMPY_DTYPE for name in names) else ()
        if dtypes is None:
            continue
        paired = frozenset(name.path for name in names if _moves(name))
        needs: tuple[RequiredModule, ...] | None = asked.needs
        if paired and not with_name:
            needs, paired = _by_own_name(asked.needs, names), frozenset()
        if needs is not None:
            arguments = (("weights_only", True),)
            yield asked.way(bits, "torch.load", arguments, runs_code=False, allowed=(*names, *dtypes), paired=paired, needs=needs)


def _sets_state_of_unnamed(facts: Facts) -> bool:
    """Whether a state is set on an object that a function returned and whose class, which must be added, the pickle does not name."""
    returned = packaged_loading().returned
    for unpickled in facts.pickles.values():
        named = {global_.path for global_ in unpickled.globals}
        for event in unpickled.events:
            if event.kind == "build" and event.subject.__class__ is Global:
                if event.subject.path in ITERATORS:
                    return True
                classes = returned.get(event.subject.path)
                if classes is not None and classes.isdisjoint(named):
                    return True
    return False


def _may_be_added(item: Global) -> bool:
    """Whether a name can be proposed: it is not known to be harmful, and is a plain Python name, so that it can appear in code."""
    words = item.path.split(".")
    return PLAIN.match(item.path) is not None and dangerous(item) is None and not any(map(keyword.iskeyword, words))


def _moves(item: Global) -> bool:
    """Whether a global may have a different name of its own: in a private or renamed module, in a class, or without a name."""
    if item.path in NAMELESS:
        return True
    private = any(part.startswith("_") for part in item.module.split(".")) and item.module != "__main__"
    return private or item.module.startswith(MOVED) or "." in item.name or _renamed(item.module) is not None


def _by_own_name(needs: tuple[RequiredModule, ...], names: Iterable[Global]) -> tuple[RequiredModule, ...] | None:
    """Return the requirements with which every object's own name is that in the pickle; None if they are not known."""
    versions = set()
    for name in names:
        if _moves(name):
            if "." in name.name or not name.module.startswith(("numpy.core.", "numpy._core.")):
                return None
            versions.add("numpy<2" if name.module.startswith("numpy.core.") else "numpy>=2")
    if len(versions) != 1:
        return None
    (version,) = versions
    return tuple(need._replace(package=version) if need.package and need.package.startswith("numpy") else need for need in needs)


def _numpy_class(code: str) -> str | None:
    """Return the prefix of the class name of a numpy dtype: ``Float64`` for ``f8``."""
    kind, size = NUMBERS.get(code[:1]), code[1:]
    result = OTHERS.get(code) or OTHERS.get(code[:1])
    return result or (f"{kind}{8 * int(size)}" if kind is not None and size in SIZES else None)


def _dtypes(facts: Facts) -> tuple[Global, ...] | None:
    """Return the classes of the numpy dtypes in an archive, whose state is set; None if one of them is not known."""
    results: dict[str, Global] = {}
    for unpickled in facts.pickles.values():
        for part in parts(unpickled.value):
            if part.__class__ is NumpyDtype and part.code not in results:
                name = _numpy_class(part.code)
                if name is None:
                    return None
                results[part.code] = Global("numpy.dtypes", f"{name}DType")
    return tuple(dict.fromkeys(results.values()))
