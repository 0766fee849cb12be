"""``torch-compat new``: beginnings of things that people add. Each one works, and is refused until it says what only they know."""

from __future__ import annotations

import keyword
import re
import sys
from typing import TYPE_CHECKING, get_args

import click
from packaging.version import Version

from harness.cli._output import format_option, print_json, stdout
from harness.cli._root import find_root, root_option
from harness.corpus.corpus import FROZEN, read_frozen
from harness.corpus.recipes import UNFINISHED
from harness.errors import UsageError
from harness.policy import Family

if TYPE_CHECKING:
    from pathlib import Path

    from harness.policy import Policy, Release

__all__ = ["new"]

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_TAKEN = sys.stdlib_module_names | {"numpy", "torch"}  # the worker runs a recipe as the module of its name

_HEAD = '''\
"""{mark}one sentence that says what this checks, and why releases may disagree about it>"""
import torch

FAMILY = "{family}"
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
    # {mark}inputs that suit it; such as these: both signs, ties, NaN, infinities, extremes, strided, empty, 0-dim, ints>
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
    # {mark}the value that is saved; such as this: signs, NaN, infinities, extremes, a view, empty, 0-dim, ints>
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
    # {mark}inputs that suit it, of the shapes and dtypes that build() exports for; such as these: both signs, NaN, infinities>
    floats = torch.tensor([0.5, -0.0, float("nan"), float("inf"), 1e-40, -3e38])
    return [("forward", (floats, floats.flip(0))), ("forward", (floats, torch.zeros(6)))]
"""
_BODIES = {
    "torchscript": _PROGRAM + _CALLS,
    "torch-save": _VALUES,
    "mobile": _PROGRAM + _CALLS,
    "package": _VALUES + _PACKAGE,
    "export": _EXPORT,
}
_SINCE = {
    "torchscript": ("1.2.0", "torch.jit.script takes modules from 1.2 on"),
    "torch-save": ("1.0.0", ""),
    "mobile": ("1.5.0", "_save_for_lite_interpreter arrives in 1.5"),
    "package": ("1.8.1", "torch.package arrives in 1.8"),
    "export": ("2.1.0", "torch.export.save arrives in 2.1"),
}
"""The first release that writes each family's beginning, and why none before it does."""
_PROGRAMS = frozenset({"torchscript", "mobile", "export"})


@click.group()
def new() -> None:
    """Begin something of your own."""


@new.command()
@click.argument("name")
@click.option("--family", required=True, type=click.Choice(get_args(Family)), help="What it writes.")
@root_option
@format_option
def recipe(name: str, family: Family, root: Path | None, format_: str) -> int:
    """Begin the recipe fixtures/recipes/NAME.py: a small one that works, with lines for you to replace.

    Until they are replaced, produce and judge refuse it.
    """
    place = find_root(root)
    policy = place.policy()
    path = place.fixtures / "recipes" / f"{name}.py"
    _refuse_name(name, path)
    since = _earliest(policy, family)
    writer = policy.corpus.writers[-1]
    text = _text(family, since)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("x", encoding="utf-8") as file:
        file.write(text)
    lines = [number for number, line in enumerate(text.splitlines(), 1) if UNFINISHED in line]
    commands = [
        f"torch-compat readers build torch-{writer}",
        f"torch-compat produce torch-{writer} --recipe {name}",
        f"torch-compat observe --reader torch-{writer} --fixture torch-{writer}/{name} --show",
        "torch-compat judge",
    ]
    shown = path.relative_to(place.path).as_posix()
    if format_ == "json":
        print_json({"recipe": name, "path": shown, "family": family, "since": since.version, "replace": lines, "next": commands})
        return 0
    console = stdout()
    numbers = " and ".join(map(str, lines))
    console.print(f"made {shown}", markup=False)
    console.print(f"Replace {UNFINISHED}...> in lines {numbers}; mend OPERATORS and SINCE. Then:", markup=False)
    for command in commands:
        console.print(f"  {command}", markup=False, soft_wrap=True)
    return 0


def _refuse_name(name: str, path: Path) -> None:
    """Refuse a name that is none, is taken, or once was: fixtures outlive the recipe that wrote them.

    Raises:
        UsageError: the name cannot be used.
        CorpusError: the pins of fixtures cannot be read.
    """
    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        raise UsageError(
            f"{name!r} is no name for a recipe",
            hint="a Python identifier of lower-case words, such as floor_divide",
            code="bad-name",
        )
    if name in _TAKEN:
        raise UsageError(f"{name!r} is the name of a module that recipes may import", hint="choose another name", code="bad-name")
    if path.exists():
        raise UsageError("is there already", where=str(path), code="exists")
    frozen = path.parent.parent / FROZEN
    written = [pin for pin in (read_frozen(frozen) if frozen.exists() else {}) if pin.partition("/")[2] == name]
    if written:
        raise UsageError(f"a recipe of this name has written {', '.join(written)}", hint="choose another name", code="exists")


def _earliest(policy: Policy, family: Family) -> Release:
    """The first release of the calendar that writes the family's beginning.

    Raises:
        UsageError: the calendar has none.
    """
    first = Version(_SINCE[family][0])
    for release in policy.calendar:
        if release.parsed >= first:
            return release
    raise UsageError(f"no release of the calendar writes the family {family}, which begins with torch {first}", code="no-writer")


def _text(family: Family, since: Release) -> str:
    reason = _SINCE[family][1]
    why = f'WHY = "{reason}"\n' if reason else ""
    operators = '["aten::add.Tensor", "aten::mul.Tensor"]' if family in _PROGRAMS else "[]"
    return (_HEAD + _BODIES[family]).format(mark=UNFINISHED, family=family, operators=operators, since=since.version, why=why)
