"""The template of a recipe: a small working recipe of its family."""

from __future__ import annotations

import keyword
import re
import sys
from typing import TYPE_CHECKING

from torch_compat.corpus.corpus import FROZEN, read_frozen
from torch_compat.corpus.recipes import UNFINISHED
from torch_compat.errors import UsageError
from torch_compat.places import inside
from torch_compat.releases.release import Release
from torch_compat.scaffolding.created import Created, create, taken

if TYPE_CHECKING:
    from pathlib import Path

    from torch_compat.policy import CalendarRelease, Family, Policy
    from torch_compat.workspace import Root

__all__ = ["new_recipe"]

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_TAKEN = sys.stdlib_module_names | {"numpy", "torch"}  # the worker runs a recipe as a module of that name

_HEAD = '''\
"""{mark}one sentence on what this checks, and why releases may disagree about it>"""
import torch

FAMILY = "{family}"
# {mark}{facts}>
OPERATORS = {operators}
SINCE = "{since}"
{why}

'''
_PROGRAM = """\
class Model(torch.nn.Module):
    def forward(self, x, y):
        return x + y, x * y


def build():
    return torch.jit.script(Model())

"""
_CALLS = """
def calls():
    # {mark}inputs for your operators, such as these: both signs, ties, NaN, infinities, extremes, strided, empty, 0-dim, ints>
    floats = torch.tensor([0.5, -0.0, float("nan"), float("inf"), 1e-40, -3e38])
    ints = torch.tensor([7, -7, 0, -1, 2 ** 53 + 1, -(2 ** 63)])
    return [
        ("forward", (floats, floats.flip(0))),
        ("forward", (ints, floats)),
        ("forward", (ints[::2], ints[1::2])),
        ("forward", (floats[:0], floats[:0])),
        ("forward", (torch.tensor(-7), torch.tensor(2))),
    ]
"""
_VALUES = """\
def build():
    # {mark}the value to save, such as this: signs, NaN, infinities, extremes, a view, empty, 0-dim, ints>
    base = torch.tensor([[0.5, -0.0, float("nan")], [float("inf"), 1e-40, -3e38]])
    return {{"base": base, "view": base.t()[1:], "ints": torch.tensor([-(2 ** 63), 7]), "empty": torch.zeros(0)}}
"""
_PACKAGE = """

def write(made, path):
    from torch.package import PackageExporter

    with PackageExporter(path) as exporter:
        exporter.save_pickle("model", "object.pkl", made)
"""
_EXPORT = """\
class Model(torch.nn.Module):
    def forward(self, x, y):
        return x + y, x * y


def build():
    return torch.export.export(Model(), (torch.ones(6), torch.ones(6)))


def calls():
    # {mark}inputs for your operators, with the shapes and dtypes that build() exports, such as these: both signs, NaN, infinities>
    floats = torch.tensor([0.5, -0.0, float("nan"), float("inf"), 1e-40, -3e38])
    return [("forward", (floats, floats.flip(0))), ("forward", (floats, torch.zeros(6)))]
"""
_CHECKPOINT = """\
def build():
    # {mark}the state dict to save, such as this: nested keys, signs, NaN, infinities, extremes, empty, 0-dim, ints>
    weight = torch.tensor([[0.5, -0.0, float("nan")], [float("inf"), 1e-40, -3e38]])
    state = {{"weight": weight, "ints": torch.tensor([-(2 ** 63), 7]), "empty": torch.zeros(0), "scalar": torch.tensor(-2.5)}}
    return {{"model": state, "epoch": 3}}
"""
_BODIES = {
    "torchscript": _PROGRAM + _CALLS,
    "torch-save": _VALUES,
    "mobile": _PROGRAM + _CALLS,
    "package": _VALUES + _PACKAGE,
    "export": _EXPORT,
    "distributed": _CHECKPOINT,
}
_SINCE = {
    "torchscript": ("1.2.0", "torch.jit.script has accepted modules since 1.2"),
    "torch-save": ("1.0.0", ""),
    "mobile": ("1.5.0", "_save_for_lite_interpreter was added in 1.5"),
    "package": ("1.8.1", "torch.package was added in 1.8"),
    "export": ("2.1.0", "torch.export.save was added in 2.1"),
    "distributed": ("2.0.0", "torch.distributed.checkpoint was added in 2.0"),
}
"""The first release that can write each family's template, and the reason."""
_PROGRAMS = frozenset({"torchscript", "mobile", "export"})
_FACTS = {
    True: "its operators, the first release that has all of them, and why no older release can run it, such as these",
    False: "the first release that can write these values and, if there are older ones, WHY they cannot, such as this",
}
"""What the author states below, by whether the archives contain a program."""


def new_recipe(place: Root, name: str, family: Family) -> tuple[Created, str]:
    """Write the recipe; return it with the first release that can run it.

    Raises:
        UsageError: the name cannot be used, or no release writes the family.
        CorpusError: the pins of fixtures cannot be read.
        WriteError: it cannot be written.
    """
    policy = place.policy(counted=False, drafts=True)
    _refuse_name(name, place.inside("fixtures/recipes"))
    path = place.inside(f"fixtures/recipes/{name}.py")
    since = _earliest(policy, family)
    writer = policy.corpus.writers[-1]
    create(place, {path: _text(family, since)})
    commands = (
        f"torch-compat readers build torch-{writer}",
        f"torch-compat produce torch-{writer} --recipe {name}",
        f"torch-compat observe --reader torch-{writer} --fixture torch-{writer}/{name} --show",
        "torch-compat judge",
    )
    return Created("recipe", name, (path,), commands), since.version


def _refuse_name(name: str, folder: Path) -> None:
    """Refuse a name that is invalid, taken, or was taken before: fixtures outlive the recipe that wrote them.

    Raises:
        UsageError: the name cannot be used.
        CorpusError: the pins of fixtures cannot be read.
    """
    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        raise UsageError(
            f"{name!r} is not a valid recipe name",
            hint="use a Python identifier of lower-case words, such as floor_divide",
            code="bad-name",
        )
    if name in _TAKEN:
        raise UsageError(f"{name!r} is the name of a module that recipes may import", hint="choose another name", code="bad-name")
    path = inside(folder, f"{name}.py")
    if path.exists():
        raise taken(path)
    frozen = inside(folder.parent, FROZEN)
    written = [pin for pin in (read_frozen(frozen) if frozen.exists() else {}) if pin.partition("/")[2] == name]
    if written:
        raise UsageError(
            f"an earlier recipe with this name wrote {', '.join(written)}", hint="choose another name", code="exists"
        )


def _earliest(policy: Policy, family: Family) -> CalendarRelease:
    """Return the first release of the calendar that can write the family's template.

    Raises:
        UsageError: the calendar has no such release.
    """
    first = Release(_SINCE[family][0])
    for release in policy.calendar:
        if release.parsed >= first:
            return release
    raise UsageError(
        f"no release in the calendar can write the family {family}, which was introduced in torch {first}", code="no-writer"
    )


def _text(family: Family, since: CalendarRelease) -> str:
    reason = _SINCE[family][1]
    why = f'WHY = "{reason}"\n' if reason else ""
    operators = '["aten::add.Tensor", "aten::mul.Tensor"]' if family in _PROGRAMS else "[]"
    return (_HEAD + _BODIES[family]).format(
        mark=UNFINISHED, family=family, facts=_FACTS[family in _PROGRAMS], operators=operators, since=since.version, why=why
    )
