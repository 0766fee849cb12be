"""``torch-compat produce``: run recipes with a real release to write fixtures."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from torch_compat.cli._output import announce, format_option, print_json, stderr, stdout
from torch_compat.cli._paths import NamedPath
from torch_compat.cli._root import root_option
from torch_compat.corpus.corpus import load_corpus
from torch_compat.corpus.grid import asked_writers
from torch_compat.corpus.manifest import Fixture
from torch_compat.corpus.recipes import unknown_recipe
from torch_compat.errors import NothingSelected, UsageError
from torch_compat.readers.build_release import BuildRelease, built, is_build_name, resolved
from torch_compat.readers.builds import unchanged
from torch_compat.readers.isolation import warn_unless_isolated
from torch_compat.readers.torch_release import TorchRelease
from torch_compat.replay.produce import produce as run_recipes
from torch_compat.replay.trees import builds_folder, open_tree
from torch_compat.workspace import find_root

if TYPE_CHECKING:
    from pathlib import Path

    from torch_compat.replay.produce import Produced

__all__ = ["produce"]


@click.command()
@click.argument("writer", metavar="torch-X.Y.Z|python:PATH|wheel:FILE|nightly:DATE")
@click.option(
    "--recipe",
    "names",
    multiple=True,
    metavar="NAME",
    help="Run only this recipe. Can be repeated. Default: all recipes that this release is required to run.",
)
@click.option(
    "--into",
    type=NamedPath(file_okay=False),
    metavar="DIR",
    help="For a build (python:PATH): directory for its archives. Default: builds/ in the cache. A build never writes to the corpus.",
)
@root_option
@format_option
def produce(writer: str, names: tuple[str, ...], into: Path | None, root: Path | None, format_: str) -> int:
    """Run recipes with the release torch-X.Y.Z to write fixtures.

    New fixtures are added to fixtures/torch-X.Y.Z/ and frozen. Existing fixtures are produced again and compared; the recorded files
    never change.

    A recipe is a program that runs in the release's own Python, without access to the network, your environment variables, or your
    files. Review recipes from untrusted sources before you run them. If this machine cannot isolate the recipe, a
    warning is printed on standard error, and the recipe runs anyway.

    Numbers that differ only in their last bits, as on another processor, are listed as ROUNDED and do not change the exit status.

    Exit status: 0 every fixture was added, or reproduced as recorded; 1 a fixture was not reproduced as recorded; 2 invalid
    usage, or an invalid input file; 3 internal error in torch-compat; 4 the release is not available on this machine, or
    there is nothing to produce.
    """
    if into is not None and not is_build_name(writer):
        raise UsageError(
            "--into is for builds: archives from a release belong in the corpus", hint="use python:PATH|wheel:FILE|nightly:DATE"
        )
    place = find_root(root)
    place.complete()
    policy = place.policy()
    _, (release,) = resolved(policy, [writer], announce)
    corpus = load_corpus(place.fixtures)
    wanted = {f"recipes/{name}.py" for name in names}
    unreadable = [
        damage
        for damage in corpus.damage
        if damage.kind == "outside" or damage.kind.startswith("unreadable") or damage.subject in wanted
    ]
    if unreadable:
        raise UsageError(unreadable[0].detail, code="corpus")
    known = {recipe.name: recipe for recipe in corpus.recipes}
    for name in names:
        if name not in known:
            raise unknown_recipe(name, known)
    recipes = [known[name] for name in dict.fromkeys(names)] if names else list(corpus.recipes)
    if not names and not isinstance(release, BuildRelease):
        written = {entry.recipe for entry in corpus.entries if entry.release == release.version}
        recipes = [
            recipe
            for recipe in recipes
            if not recipe.reduced or recipe.name in written or release.version in asked_writers(policy, recipe)
        ]
    if not recipes:
        raise NothingSelected("there are no recipes", where=str(place.fixtures / "recipes"))
    console = stderr()
    warn_unless_isolated(announce)
    today = dt.datetime.now(dt.UTC).date()
    if isinstance(release, BuildRelease):
        tree = open_tree(into if into is not None else builds_folder(), release.build, today)
        corpus = replace(load_corpus(tree.fixtures), recipes=corpus.recipes)
        console.print(f"writing to {tree.path}", markup=False)
    with TorchRelease(built(release)) as reader:
        produced = run_recipes(corpus, reader, recipes, today, lambda name: console.print(f"producing {name}", markup=False))
    if isinstance(release, BuildRelease):
        unchanged(release.build)
    _print(produced, format_)
    return 1 if produced.differing else 0


def _print(produced: Produced, format_: str) -> None:

    written = [entry.id for entry in produced.added if isinstance(entry, Fixture)]
    not_writable = {entry.id: entry.message.splitlines() for entry in produced.added if not isinstance(entry, Fixture)}
    if format_ == "json":
        print_json(
            {
                "added": written,
                "not_writable": [{"id": name, "reason": (lines or [""])[0]} for name, lines in not_writable.items()],
                "reproduced": list(produced.reproduced),
                "rounded": list(produced.rounded),
                "differing": [{"id": name, "fields": list(fields)} for name, fields in produced.differing],
            }
        )
        return
    console = stdout()
    for name in written:
        console.print(f"added         {name}", markup=False)
    for name, lines in not_writable.items():
        console.print(f"not writable  {name}: {(lines or [''])[0]}", markup=False)
    if produced.reproduced:
        console.print(f"reproduced    {len(produced.reproduced)} as recorded", markup=False)
    for name in produced.rounded:
        console.print(f"ROUNDED       {name}: differs only in the last bits of numbers, as on another processor", markup=False)
    for name, fields in produced.differing:
        console.print(f"DIFFERENT     {name}: differs from the record in {', '.join(fields)}", markup=False)
