"""The releases that have to write a recipe."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from torch_compat.corpus.grid import asked_writers, reduced
from torch_compat.corpus.recipes import Recipe
from torch_compat.policy import load_policy

if TYPE_CHECKING:
    from torch_compat.policy import Policy

WHOLE = Recipe("one", Path("one.py"), "0" * 64, "One.", "torch-save", (), "1.0.0", None, "")


@pytest.fixture(scope="module")
def policy() -> Policy:
    return load_policy(Path(__file__).parents[2] / "policies" / "torch")


def test_every_release_writes_a_recipe_that_says_nothing(policy: Policy) -> None:
    assert asked_writers(policy, WHOLE) == tuple(policy.corpus.writers)
    assert asked_writers(policy, replace(WHOLE, since="2.0.0")) == tuple(policy.corpus.writers)  # and those that cannot say so


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, "1.0.0 1.5.0 1.6.0 LAST"),
        ({"family": "torchscript"}, "1.0.0 1.5.0 1.6.0 1.11.0 1.12.1 LAST"),
        ({"family": "package", "since": "1.8.1"}, "1.8.1 1.9.1 1.11.0 1.12.1 LAST"),
        ({"since": "1.4.0", "until": "1.8.1"}, "1.4.0 1.5.0 1.6.0 1.8.1"),
        ({"besides": ("1.7.1", "2.3.1")}, "1.0.0 1.5.0 1.6.0 1.7.1 2.3.1 LAST"),
        ({"since": "2.14.1", "besides": ("1.7.1",)}, "2.14.1 LAST"),  # what cannot write it is not asked, whatever it says
        ({"until": "1.0.0"}, "1.0.0"),
    ],
)
def test_a_reduced_grid(change: dict[str, Any], expected: str, policy: Policy) -> None:
    recipe = replace(WHOLE, reduced=True, **change)
    last = policy.corpus.writers[-1]
    assert asked_writers(policy, recipe) == tuple(last if part == "LAST" else part for part in expected.split())


def test_a_new_release_takes_the_place_of_the_last(policy: Policy) -> None:
    writers = policy.corpus.writers
    assert asked_writers(policy, replace(WHOLE, reduced=True))[-1] == writers[-1]
    earlier = replace(policy, corpus=policy.corpus.model_copy(update={"writers": writers[:-1]}))
    assert asked_writers(earlier, replace(WHOLE, reduced=True))[-1] == writers[-2]


def test_what_no_release_can_write(policy: Policy) -> None:
    assert reduced(policy, "torch-save", ()) == ()
