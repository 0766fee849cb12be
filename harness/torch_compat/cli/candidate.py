"""``torch-compat candidate``: compare a build of torch with the newest release: new, fixed, known and unchecked items."""

from __future__ import annotations

import datetime as dt
import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from torch_compat.cli._output import Progress, announce, format_option, print_json, say, stderr, stdout, trust_option
from torch_compat.cli._paths import NamedPath
from torch_compat.cli._root import root_option
from torch_compat.corpus.recipes import unknown_recipe
from torch_compat.errors import UsageError
from torch_compat.judging.gathering import gather, uncollected
from torch_compat.readers.build_release import BUILDS, BuildRelease, build_of, is_build_name, with_build
from torch_compat.readers.isolation import warn_unless_isolated
from torch_compat.replay.trust import trusted
from torch_compat.report.candidate import candidate_lines
from torch_compat.words import count_of
from torch_compat.workspace import find_root
from torch_compat.writes import changing, put

if TYPE_CHECKING:
    from pathlib import Path

    from torch_compat.replay.candidate import Against

__all__ = ["candidate"]


def _shard_of(_context: click.Context, _parameter: click.Parameter, value: str | None) -> tuple[int, int] | None:
    """Parse ``2/4`` as numbers."""
    if value is None:
        return None
    match = re.fullmatch("([0-9]{1,4})/([0-9]{1,4})", value)
    part, parts = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= part <= parts:
        raise UsageError(f"--shard {value}: expected K/N with K from 1 to N, such as 2/4")
    return part, parts


@click.command()
@click.argument("name", metavar="python:PATH|wheel:FILE|nightly:DATE")
@click.option(
    "--against",
    metavar="torch-X.Y.Z|python:PATH|wheel:FILE|nightly:DATE",
    help="Release or build to compare with. A build runs the same recipes and reads the same fixtures. Default: the newest recorded release that is not newer than the build.",
)
@click.option(
    "--index-url",
    metavar="URL",
    help="Index of nightlies, with torch at URL/torch/. Default: $TORCH_COMPAT_NIGHTLY_INDEX, or nightly_index in the policy.",
)
@click.option("--all", "everything", is_flag=True, help="Read every fixture, not a sample.")
@click.option("--recipe", "recipes", multiple=True, metavar="NAME", help="Only this recipe and its fixtures. Can be repeated.")
@click.option(
    "--shard",
    metavar="K/N",
    callback=_shard_of,
    help="Only part K of N of the recipes and their fixtures. `torch-compat judge --with` judges the output directories of all parts together.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed for the sample.")
@click.option(
    "--into",
    type=NamedPath(file_okay=False),
    metavar="DIR",
    help="Directory for the archives and results of the build. Default: builds/ in the cache, where results are kept for --keep days.",
)
@click.option(
    "--earlier",
    type=NamedPath(file_okay=False, exists=True),
    multiple=True,
    metavar="DIR",
    help="Also look for earlier builds in this directory (the --into directory of other runs). Can be repeated.",
)
@click.option(
    "--keep",
    type=click.IntRange(min=1),
    default=14,
    show_default=True,
    metavar="DAYS",
    help="How many days to keep an earlier build in the cache for comparison.",
)
@click.option("--fail-on", type=click.Choice(["new"]), help="Exit with status 1 for any new item, even if it breaks no promise.")
@click.option("--full", is_flag=True, help="Print every item in full, instead of a one-screen summary.")
@trust_option
@root_option
@format_option
def candidate(
    name: str,
    against: str | None,
    index_url: str | None,
    everything: bool,
    recipes: tuple[str, ...],
    shard: tuple[int, int] | None,
    seed: int,
    into: Path | None,
    earlier: tuple[Path, ...],
    keep: int,
    fail_on: str | None,
    full: bool,
    trust: bool,
    root: Path | None,
    format_: str,
) -> int:
    """Compare a build of torch with the newest release, or with another build.

    python:PATH is a Python executable with the build installed, wheel:FILE is a torch wheel, and nightly:DATE is that day's nightly build
    from an index. The build runs every recipe, reads fixtures (a sample that always includes every recipe and the oldest writers), lists
    its operators, and uses deprecated features. The report lists what is new, fixed, already known, and not checked. Nothing is added to
    the corpus.

    A build can execute code from archives. It runs without access to the network, your environment variables, or your files.

    Exit status: 0 no promise is newly broken; 1 a promise is newly broken (with --fail-on new: any new item); 2 invalid
    usage, or the build cannot be used; 3 internal error in torch-compat; 4 a required check was not run.
    """
    from torch_compat.readers.wheels import expire_wheels  # noqa: PLC0415 - all of the harness
    from torch_compat.replay.candidate import asked_now, base_of, blaming, examined, recorded, shard_of  # noqa: PLC0415
    from torch_compat.replay.candidate_items import Asking  # noqa: PLC0415
    from torch_compat.replay.trees import builds_folder, earlier_trees, expire, open_tree  # noqa: PLC0415

    if not is_build_name(name):
        hint = f"expected {BUILDS}" + (
            f", such as {'wheel' if name.endswith('.whl') else 'python'}:{name}"
            if "/" in name or name.endswith(".whl")
            else "; to judge a release, use `torch-compat replay --reader`, or `torch-compat report`"
        )
        raise UsageError(f"{name!r} is not a build", hint=hint, code="no-build")
    place = find_root(root)
    today = dt.datetime.now(dt.UTC).date()
    promises = place.policy()
    build = build_of(name, promises, announce, index_url)
    other = build_of(against, promises, announce, index_url) if against is not None and is_build_name(against) else None
    if other is not None and (other.reader, other.digest) == (build.reader, build.digest):
        raise UsageError(
            f"{name} and {against} are the same build", hint="use --against with a different build", code="twin-builds"
        )
    policy, theirs = with_build(promises, other) if other is not None else (promises, None)
    policy, release = with_build(policy, build)
    warn_unless_isolated(announce)
    with uncollected():
        evidence = gather(place, policy, as_of=None)
    base: Against | BuildRelease = theirs or recorded(base_of(evidence, release, against))
    for recipe in recipes:
        known = [item.name for item in evidence.corpus.recipes]
        if recipe not in known:
            raise unknown_recipe(recipe, known)
    chosen = frozenset(recipes) or None
    if shard is not None:
        if recipes:
            raise UsageError("--shard chooses recipes, so it cannot be combined with --recipe")
        chosen = shard_of(evidence.corpus, *shard)
    folder = into if into is not None else builds_folder()
    notes = [f"removed the environment for {gone}" for gone in expire_wheels(today, keep)]
    if into is None and folder.is_dir():
        notes += [
            f"removed the results from {tree.name}, which are {count_of(tree.age(today), 'day')} old"
            for tree in expire(folder, today, keep)
        ]
    tree = open_tree(folder, build, today, shard)
    others, message = earlier_trees([folder, *earlier], tree, today, keep)
    with Progress(stderr()) as progress, uncollected():
        asking = Asking(
            evidence=evidence,
            release=release,
            tree=tree,
            today=today,
            seed=seed,
            everything=everything,
            trust=trusted(place.fixtures, everything=trust),
            progress=progress,
            recipes=chosen,
            shard=shard,
        )
        if isinstance(base, BuildRelease):
            with blaming(base.build):
                first = replace(asking, release=base, tree=open_tree(folder, base.build, today, shard))
                base = asked_now(first, release.name)
        with blaming(build):
            report = examined(asking, base, others)
    report = replace(report, notes=(*notes, *message, *report.notes), fail_on_new=fail_on == "new")
    document = report.document()
    with changing(tree.path):
        put(tree.path / "candidate.json", json.dumps(document, indent=2) + "\n")
    if format_ == "json":
        print_json(document)
    else:
        say("\n".join(candidate_lines(report, full=full, width=stdout(100).width)))
    return report.exit_status
