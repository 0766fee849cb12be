"""New operator arguments at their defaults: releases without them read such programs and compute the same results.

Archives omit arguments equal to their default (torch 1.7 and newer), so an argument with a default breaks no older reader. The recipes
``default_of_*`` call one operator each that gained an argument; fixtures/operators lists the releases.
"""

from __future__ import annotations

import itertools
from functools import cache
from pathlib import Path

import pytest

from torch_compat.judging.cell import Outcome
from torch_compat.judging.gathering import gather
from torch_compat.operators.differences import differences
from torch_compat.operators.history import History
from torch_compat.operators.schema import parse
from torch_compat.releases.release import Release
from torch_compat.workspace import Root

REPOSITORY = Path(__file__).parents[2]
PREFIX = "default_of_"
LEFT_OUT = Release("1.7.0")
"""From here on archives leave out what stands at its default."""
AT_LEAST = 10
RECIPES = sorted(path.stem for path in (REPOSITORY / "fixtures" / "recipes").glob(f"{PREFIX}*.py"))


@cache
def gained(operator: str) -> tuple[Release, ...]:
    """The first recorded releases in which an operator has an argument with a default that the one before did not have."""
    history = History(REPOSITORY / "fixtures" / "operators" / "schemas.txt")
    schemas = [(Release(release), history.standing(operator, release)) for release in history.releases]
    results = []
    for (_, before), (release, after) in itertools.pairwise(schemas):
        if len(before) != 1 or len(after) != 1 or before == after:
            continue
        if "argument-added" in differences(parse(before[0], recorded=True), parse(after[0], recorded=True)):
            results.append(release)
    return tuple(results)


@cache
def outcomes() -> dict[str, dict[Release, set[Outcome]]]:
    """What older readers made of the archives of newer writers, by recipe and by the release whose argument they do not know."""
    place = Root(REPOSITORY)
    evidence = gather(place, place.policy(), as_of=None)
    results: dict[str, dict[Release, set[Outcome]]] = {recipe: {} for recipe in RECIPES}
    for cells in evidence.toward["forward"]:
        if cells.fixture.recipe not in results or cells.options.id != "default":
            continue
        writer = Release(cells.fixture.release)
        (operator,) = cells.fixture.operators
        for since in gained(operator):
            readers = [Release(item.release) for item in evidence.readers.of(cells.readers)]
            if writer >= since and any(LEFT_OUT <= reader < since for reader in readers):
                results[cells.fixture.recipe].setdefault(since, set()).add(cells.outcome)
    return results


def test_enough_operators_gained_an_argument_that_older_releases_do_not_miss() -> None:
    assert sum(map(bool, outcomes().values())) >= AT_LEAST


@pytest.mark.parametrize("recipe", RECIPES)
def test_an_argument_at_its_default_is_not_missed(recipe: str) -> None:
    outcome = outcomes()[recipe]
    assert all(seen & {Outcome.SAME, Outcome.CLOSE} for seen in outcome.values()), outcome
