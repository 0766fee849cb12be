"""``torch-compat new``: templates for contributions. Each one works, and is rejected until its author fills in the placeholders."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import click

from torch_compat.cli._help import WithCommands
from torch_compat.cli._kinds import KindOf
from torch_compat.cli._output import announce, format_option, print_json, stdout
from torch_compat.cli._root import root_option
from torch_compat.corpus.recipes import UNFINISHED
from torch_compat.policy import Family
from torch_compat.policy.deprecations import KINDS
from torch_compat.scaffolding.created import unfinished_lines
from torch_compat.scaffolding.policy_files import new_deprecation, new_rule, new_waiver
from torch_compat.scaffolding.recipe import new_recipe
from torch_compat.workspace import find_root

if TYPE_CHECKING:
    from pathlib import Path

    from torch_compat.scaffolding.created import Created
    from torch_compat.workspace import Root

__all__ = ["new"]

_THEN = "After every placeholder is replaced, run:"


@click.group(cls=WithCommands)
def new() -> None:
    """Create a recipe, deprecation, upgrader, rule or waiver from a template."""


@new.command()
@click.argument("name")
@click.option(
    "--family", required=True, type=click.Choice(get_args(Family)), help="Family of the archives that the recipe writes."
)
@root_option
@format_option
def recipe(name: str, family: Family, root: Path | None, format_: str) -> int:
    """Create the recipe fixtures/recipes/NAME.py.

    The template is a small recipe that works, with placeholders to replace. `produce` and `judge` reject it until all placeholders are
    replaced.

    Exit status: 0 the files are written; 2 invalid usage, such as a name that is taken, or the files cannot be written; 3
    internal error in torch-compat; 4 there is no checkout to write to.
    """
    place = _place(root)
    created, since = new_recipe(place, name, family)
    (path,) = created.paths
    shown, lines = path.relative_to(place.path).as_posix(), unfinished_lines(path)
    if format_ == "json":
        document = {"recipe": name, "path": shown, "family": family, "since": since, "replace": lines}
        print_json({**document, "next": list(created.commands)})
        return 0
    console = stdout()
    console.print(f"created {shown}", markup=False)
    console.print(f"  replace {UNFINISHED}...> on {_on_lines(lines)}", markup=False)
    console.print(_THEN, markup=False)
    for command in created.commands:
        console.print(f"  {command}", markup=False, soft_wrap=True)
    return 0


@new.command()
@click.argument("name")
@click.option(
    "--kind", required=True, type=KindOf(KINDS), help="Kind of deprecation, which selects the timeline that it must follow."
)
@root_option
@format_option
def deprecation(name: str, kind: str, root: Path | None, format_: str) -> int:
    """Create a deprecation: a policy file and a probe.

    Writes policies/torch/deprecations/NAME.toml, based on the example for its kind, and its probe in fixtures/deprecations. Until
    all placeholders are replaced, every command that loads the policy, except `new`, fails and names them.

    Exit status: 0 the files are written; 2 invalid usage, such as a name that is taken, or the files cannot be written; 3
    internal error in torch-compat; 4 there is no checkout to write to.
    """
    place = _place(root)
    return _tell(place, new_deprecation(place, name, kind), format_)


@new.command()
@click.argument("operator", metavar="OPERATOR")
@root_option
@format_option
def upgrader(operator: str, root: Path | None, format_: str) -> int:
    """Create an upgrader for OPERATOR (aten::foo.Bar): a table, a recipe and a test.

    Adds an [[upgrader]] table to policies/torch/upgraders.toml, for the operator's schema in the newest release and the next file
    format version, and writes the recipe fixtures/recipes/upgrade_ID.py and the test tests/upgraders/test_ID.py. Then prints the
    remaining steps. Run the command again to see which steps remain.

    Exit status: 0 the files are written; 2 invalid usage, such as a name that is taken, or the files cannot be written; 3
    internal error in torch-compat; 4 there is no checkout to write to.
    """
    from torch_compat.scaffolding.upgrader import UPGRADERS, new_upgrader, upgrader_steps  # noqa: PLC0415 - reads every schema of every release

    place = _place(root)
    known, created, released = new_upgrader(place, operator)
    for earlier in released:
        announce(
            f"note: {operator} already has the upgrader {earlier.id}, for programs of file format {earlier.bump - 1} and older; "
            f"{known.id} is for another change after it"
        )
    if released and created:
        announce(f"  if you did not mean another change, delete the table of {known.id} in {UPGRADERS} and the created files")
    left = upgrader_steps(place, known)
    if format_ == "json":
        rows = [{"done": item.done, "what": item.what, "command": item.command} for item in left]
        print_json({"upgrader": known.id, "files": created, "steps": rows})
        return 0
    console = stdout()
    for path in created:
        console.print(f"{'changed' if path == UPGRADERS else 'created'} {path}", markup=False, soft_wrap=True)
    for number, step in enumerate(left, 1):
        console.print(f"{number}. {'done: ' if step.done else ''}{step.what}", markup=False, soft_wrap=True)
        if not step.done:
            console.print(f"   {step.command}", markup=False, soft_wrap=True)
    return 0


@new.command()
@click.argument("name")
@root_option
@format_option
def rule(name: str, root: Path | None, format_: str) -> int:
    """Create a rule: a module and a policy entry.

    Writes harness/torch_compat/rules/NAME.py, and adds a [[rule]] to policies/torch/promises.toml. Until all placeholders are
    replaced, every command that loads the policy, except `new`, fails and names them.

    Exit status: 0 the files are written; 2 invalid usage, such as a name that is taken, or the files cannot be written; 3
    internal error in torch-compat; 4 there is no checkout to write to.
    """
    place = _place(root)
    return _tell(place, new_rule(place, name), format_)


@new.command()
@click.argument("name")
@click.option(
    "--finding",
    "ids",
    multiple=True,
    metavar="ID",
    help="Finding to waive; its cells are filled in. Can be repeated.",
)
@root_option
@format_option
def waiver(name: str, ids: tuple[str, ...], root: Path | None, format_: str) -> int:
    """Create the waiver policies/torch/waivers/NAME.toml.

    Without --finding, the cells are placeholders, too. `torch-compat judge --full` prints the IDs of findings. Until all placeholders are replaced, every command that loads the policy, except `new`, fails and names them.

    Exit status: 0 the files are written; 2 invalid usage, such as a name that is taken, or the files cannot be written; 3
    internal error in torch-compat; 4 there is no checkout to write to.
    """
    place = _place(root)
    status = _tell(place, new_waiver(place, name, ids), format_)
    if not ids and format_ == "text":
        stdout().print("With --finding ID, the command fills in the cells of a failing finding.", markup=False)
    return status


def _place(root: Path | None) -> Root:
    """The tree, after completing or undoing what a killed run left half written."""
    place = find_root(root)
    place.complete()
    return place


def _on_lines(numbers: list[int]) -> str:
    """The lines with placeholders, in words."""
    *others, last = map(str, numbers)
    return f"lines {', '.join(others)} and {last}" if others else f"line {last}"


def _tell(place: Root, created: Created, format_: str) -> int:
    """Report the created files, the lines to complete, and the next steps."""
    results = [(path.relative_to(place.path).as_posix(), unfinished_lines(path)) for path in (*created.paths, *created.changed)]
    if format_ == "json":
        files = [{"path": path, "replace": lines} for path, lines in results]
        print_json({"begun": created.kind, "name": created.name, "files": files, "next": list(created.commands)})
        return 0
    console = stdout()
    for number, (path, lines) in enumerate(results):
        verb = "created" if number < len(created.paths) else "changed"
        console.print(f"{verb} {path}", markup=False, soft_wrap=True)
        console.print(f"  replace {UNFINISHED}...> on {_on_lines(lines)}", markup=False, soft_wrap=True)
    console.print(_THEN, markup=False)
    for command in created.commands:
        console.print(f"  {command}", markup=False, soft_wrap=True)
    return 0
