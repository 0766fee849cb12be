"""Determine which recipes cover which classes of saved objects, and in which releases, from surveys, archives and goldens.

A class is a dtype at a place in a save form, a module class of ``torch.nn``, a construct of TorchScript source, an operator, or a
class of packed parameters. The classes are derived from the surveys of releases (``fixtures/globals``, ``fixtures/operators``), and
from the grammar of the reference reader. Each class requires the reduced grid of its releases
(:func:`torch_compat.corpus.grid.reduced`): the first and the last release that has it, and one for each version of the file format.

An archive covers a class if it contains it, whatever its recipe is for. A golden may record that a release cannot save a dtype, under the
key ``refused``; this is evidence, too.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from torch_compat.corpus.classes import CLASSES, SavedClass, read_classes
from torch_compat.corpus.grid import reduced
from torch_compat.corpus.manifest import SYNTHETIC
from torch_compat.formats import read_facts
from torch_compat.operators.history import GlobalNames, History
from torch_compat.operators.types import CLASS_PREFIX
from torch_compat.pickles import Described, Tensor
from torch_compat.releases.release import Release
from torch_compat.runtime.language.grammar import GRAMMAR, constructs
from torch_compat.torchscript.parser import parse
from torch_compat.values.dtypes import DTYPES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from torch_compat.corpus.classes import SaveForm, StatedClasses
    from torch_compat.corpus.corpus import Corpus
    from torch_compat.corpus.manifest import Fixture
    from torch_compat.formats import Facts
    from torch_compat.policy import Policy

__all__ = ["PLACES", "saved_classes"]

PLACES: Final = ("parameter", "buffer", "attribute", "state", "nested")
"""Where a tensor can be stored: as a parameter or buffer of a module, as another attribute of an object, under a key of
dictionaries only, or inside any other container."""
SCRIPTED: Final = ("torchscript", "mobile")
PACKING: Final = ("quantized", "rnn", "sparse", "xnnpack", "mkldnn")
"""The namespaces of the custom classes that contain parameters."""


def saved_classes(fixtures: Path, corpus: Corpus, policy: Policy) -> tuple[list[SavedClass], StatedClasses]:
    """Return every class, by group and name, and the contents of the classes file next to the fixtures.

    Parameters:
        fixtures: the fixtures folder of the tree.

    Raises:
        ArchiveError: an archive cannot be read.
        CorpusError: a survey or the file is malformed.
    """
    stated = read_classes(fixtures / CLASSES)
    held = list(_held(corpus))
    results = [
        *_modules(fixtures, policy, stated), *_dtypes(fixtures, policy, stated.forms), *_of_history(fixtures, policy),
        *_constructs(policy, stated, held),
    ]  # fmt: skip
    known = {(module.group, module.family, module.name): module for module in results}
    for fixture, classes in held:
        for group, name in classes:
            family = "torchscript" if group in {"construct", "operator", "packed"} else fixture.family
            if item := known.get((group, family, name)):
                item.covered[fixture.release].add(fixture.recipe)
        for dtype, message in _refused(fixture.golden):
            for form in stated.forms:
                if (form.family, form.container) == (fixture.family, fixture.container):
                    for place in PLACES:
                        if item := known.get(("dtype", form.family, f"{dtype} as {place}, {form.id}")):
                            item.refused[fixture.release] = message
    return sorted(results, key=lambda entry: (entry.group, entry.name)), stated


# ------------------------------------------------------------------------------------------------- which classes there are


def _modules(fixtures: Path, policy: Policy, stated: StatedClasses) -> Iterator[SavedClass]:
    names = GlobalNames(fixtures / "globals" / "names.txt")
    for name, bits in names.words("torch.nn").items():
        if any(item.speaks_of("module", f"torch.nn.{name}") for item in stated.no_classes):
            continue
        able = [version for version in names.of(bits) if version in policy.corpus.writers]
        yield SavedClass("module", f"torch.nn.{name}", "torch-save", reduced(policy, "torch-save", able))


def _dtypes(fixtures: Path, policy: Policy, forms: Iterable[SaveForm]) -> Iterator[SavedClass]:
    names = GlobalNames(fixtures / "globals" / "names.txt")
    words = names.words("torch")
    for form in forms:
        for dtype in DTYPES:
            having = [version for version in names.of(words.get(dtype, 0)) if version in policy.corpus.writers]
            able = [version for version in having if Release(version) >= Release(form.since)]
            for place in PLACES if able else ():
                if not (place == "state" and form.family in SCRIPTED):  # a program is an object, not a dictionary
                    yield SavedClass("dtype", f"{dtype} as {place}, {form.id}", form.family, reduced(policy, form.family, able))


def _of_history(fixtures: Path, policy: Policy) -> Iterator[SavedClass]:
    """Yield operators and classes of packed parameters."""
    operators: dict[str, int] = defaultdict(int)
    history = History(fixtures / "operators" / "schemas.txt")
    for text, bits in history.texts():
        operators[text.partition("(")[0].partition(".")[0]] |= bits
    custom: dict[str, int] = defaultdict(int)
    methods = History(fixtures / "operators" / "custom_classes.txt")
    for text, bits in methods.texts():
        name, _, rest = text.partition("(")
        if name == "__getstate__":
            custom[rest.partition(" ")[0].removeprefix(CLASS_PREFIX)] |= bits
    for group, recorded, words in (("operator", history, operators), ("packed", methods, custom)):
        for name, bits in words.items():
            if group == "operator" or name.partition(".")[0] in PACKING:
                able = [version for version in recorded.of(bits) if version in policy.corpus.writers]
                yield SavedClass(group, name, "torchscript", reduced(policy, "torchscript", able))


def _constructs(
    policy: Policy, stated: StatedClasses, held: list[tuple[Fixture, frozenset[tuple[str, str]]]]
) -> Iterator[SavedClass]:
    """Constructs, required of the releases between the first and the last that printed them: no release lists what it can print."""
    printed: dict[str, set[str]] = defaultdict(set)
    for fixture, classes in held:
        for group, name in classes:
            if group == "construct":
                printed[name].add(fixture.release)
    for name in GRAMMAR:
        if any(item.speaks_of("construct", name) for item in stated.no_classes):
            continue
        seen = sorted(printed[name], key=Release)
        able = [
            version for version in policy.corpus.writers if seen and Release(seen[0]) <= Release(version) <= Release(seen[-1])
        ]
        yield SavedClass("construct", name, "torchscript", reduced(policy, "torchscript", able or policy.corpus.writers))


# --------------------------------------------------------------------------------------------------- what archives hold


def _held(corpus: Corpus) -> Iterator[tuple[Fixture, frozenset[tuple[str, str]]]]:
    """Yield every archive that a release wrote, with its classes, by group and name. Equal archives are read once."""
    known: dict[tuple[str, str, str], frozenset[tuple[str, str]]] = {}
    for fixture in corpus.fixtures.values():
        if fixture.release != SYNTHETIC:
            key = (fixture.family, fixture.container, fixture.content)
            if key not in known:
                known[key] = _classes_at(corpus.path(fixture), fixture.sha256, *key[:2], tuple(_state(fixture.golden)))
            yield fixture, known[key]


@lru_cache(maxsize=8192)
def _classes_at(
    path: Path, _sha256: str, family: str, container: str, state: tuple[tuple[str, str], ...]
) -> frozenset[tuple[str, str]]:
    """The classes in one archive; cached, since the table and the list of all classes are made one after the other.

    Parameters:
        state: for a program, the names of its parameters and buffers, each with its kind.
    """
    kinds = {name.rpartition(".")[2]: kind for name, kind in state} if family in SCRIPTED else {}
    return frozenset(_classes(read_facts(path, verify=False), family, _FORMS.get((family, container)), kinds))


def _classes(facts: Facts, family: str, form: str | None, kinds: dict[str, str]) -> Iterator[tuple[str, str]]:
    for call in facts.calls:
        yield "operator", call.name
    for source in facts.sources.values():
        for name in _constructs_of(source):
            yield "construct", name
    for record, unpickled in facts.pickles.items():
        for global_ in unpickled.globals:
            if global_.module.startswith("torch.nn.") and family == "torch-save":
                yield "module", f"torch.nn.{global_.name}"
            if global_.path.startswith(CLASS_PREFIX):
                yield "packed", global_.path.removeprefix(CLASS_PREFIX)
        if form is not None and record != "constants.pkl":
            for dtype, place in _tensors(unpickled.value, "state", kinds, set()):
                yield "dtype", f"{dtype} as {place}, {form}"


@lru_cache(maxsize=4096)
def _constructs_of(source: str) -> frozenset[str]:
    try:
        return frozenset(constructs(parse(source)))
    except SyntaxError:  # a name that is not a valid Python name: the reference reader refuses it as well
        return frozenset()


_FORMS: Final = {
    ("torch-save", "zip"): "torch.save, zip", ("torch-save", "stream"): "torch.save, stream", ("torchscript", "zip"): "TorchScript",
    ("mobile", "zip"): "mobile", ("package", "zip"): "torch.package",
}  # fmt: skip


def _tensors(value: Any, place: str, kinds: dict[str, str], open_: set[int]) -> Iterator[tuple[str, str]]:
    """Yield the dtypes of tensors with their places.

    Parameters:
        place: the place of tensors found here.
        kinds: for a program, which names are parameters and which are buffers.
        open_: ids of the containers already visited: a container may contain itself.
    """
    if isinstance(value, Tensor):
        if value.dtype:
            yield value.dtype, "parameter" if value.parameter else place
        return
    if id(value) in open_ or not isinstance(value, dict | list | tuple | set | frozenset | Described):
        return
    open_.add(id(value))
    if isinstance(value, Described):
        state = value.state[0] if isinstance(value.state, tuple) and value.state else value.state
        if isinstance(state, dict):
            for name, item in state.items():
                inner = _INNER.get(name, kinds.get(name, "attribute")) if isinstance(name, str) else "attribute"
                yield from _tensors(item, inner if isinstance(item, Tensor) or name in _INNER else "nested", kinds, open_)
        for item in (*value.args, value.items, value.pairs):
            yield from _tensors(item, "nested", kinds, open_)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item, place, kinds, open_)
    else:
        for item in value:
            yield from _tensors(item, "nested", kinds, open_)


_INNER: Final = {"_parameters": "parameter", "_buffers": "buffer", "_modules": "nested"}
"""Attributes of a module that is saved whole, with the location of their tensors."""


# ---------------------------------------------------------------------------------------------------- what goldens say


def _state(golden: Any) -> Iterator[tuple[str, str]]:
    """Yield the names of the parameters and buffers of a program, each with its kind."""
    state = golden.get("state") if isinstance(golden, dict) else None
    for name, entry in (state or {}).get("dict", ()):
        yield name, entry["tuple"][0]


def _refused(golden: Any) -> Iterator[tuple[str, str]]:
    """Yield the dtypes that a release cannot save according to its golden, with its error texts."""
    calls = golden.get("calls") or () if isinstance(golden, dict) else ()
    values = [golden.get("value"), *(call.get("first", {}).get("value") for call in calls)] if isinstance(golden, dict) else []
    for value in values:
        if not isinstance(value, dict):
            continue
        parts = value.get("dict") or [["", item] for item in value.get("tuple", ())]
        for name, item in parts:
            table = item.get("dict") if isinstance(item, dict) else None
            if table and (name == "refused" or (not name and all(key in DTYPES for key, _ in table if isinstance(key, str)))):
                yield from ((key, message) for key, message in table if isinstance(message, str))
