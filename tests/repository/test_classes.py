"""Every class of saved objects is covered by a recipe, or the reason why not is stated."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from torch_compat.corpus.classes import SavedClass, Stated, StatedClasses, read_classes, unexplained
from torch_compat.errors import HarnessError
from torch_compat.policy import load_policy
from torch_compat.replay.classes import saved_classes
from torch_compat.report.classes_md import CLASSES_REPORT, classes_md, classes_table
from torch_compat.report.documents import with_block

if TYPE_CHECKING:
    from torch_compat.corpus.corpus import Corpus
    from torch_compat.policy import Policy

REPOSITORY = Path(__file__).parents[2]
FIXTURES = REPOSITORY / "fixtures"


@pytest.fixture(scope="module")
def policy() -> Policy:
    return load_policy(REPOSITORY / "policies" / "torch")


@pytest.fixture(scope="module")
def found(corpus: Corpus, policy: Policy) -> tuple[list[SavedClass], StatedClasses]:
    return saved_classes(FIXTURES, corpus, policy)


def test_every_class_is_covered_or_it_is_said_why_not(found: tuple[list[SavedClass], StatedClasses]) -> None:
    assert unexplained(*found) == []


def test_a_hole_that_nothing_states_is_found(found: tuple[list[SavedClass], StatedClasses]) -> None:
    classes, stated = found
    for hole in stated.holes:
        fewer = replace(stated, holes=tuple(item for item in stated.holes if item is not hole))
        assert any(
            text.startswith(f"{hole.group} ") and ": no recipe covers it in " in text for text in unexplained(classes, fewer)
        )
    more = replace(stated, holes=(*stated.holes, Stated("module", ("torch.nn.Conv2d",), "so")))
    assert unexplained(classes, more) == [
        "module torch.nn.Conv2d: listed as a gap, but all of its classes are covered; remove it from classes.toml"
    ]


def test_what_is_known_to_be_covered_is(found: tuple[list[SavedClass], StatedClasses]) -> None:
    by_name = {(item.group, item.name): item for item in found[0]}
    module = by_name["module", "torch.nn.BatchNorm1d"]
    assert "whole_module" in module.covered["2.15.0"]
    assert module.asked[0] == "1.0.0"
    assert "save_bool" in by_name["dtype", "bool as state, torch.save, zip"].covered["2.15.0"]
    assert "state_dict_stream" in by_name["dtype", "float32 as state, torch.save, stream"].covered["2.15.0"]
    assert "mobile_state" in by_name["dtype", "int64 as buffer, mobile"].covered["2.15.0"]
    assert "attributes" in by_name["dtype", "float32 as nested, TorchScript"].covered["2.15.0"]
    assert "div" in by_name["operator", "aten::div"].covered["1.5.0"]
    assert by_name["construct", "statement While"].covered
    assert ("construct", "sign LShift") not in by_name
    assert ("module", "torch.nn.Parameter") not in by_name


def test_the_documents_are_those_of_what_is_recorded(found: tuple[list[SavedClass], StatedClasses], policy: Policy) -> None:
    classes, stated = found
    text = (FIXTURES / "README.md").read_text(encoding="utf-8")
    assert with_block(text, "classes", classes_table(classes, stated, policy.corpus.writers)) == text
    assert (REPOSITORY / CLASSES_REPORT).read_text(encoding="utf-8") == classes_md(classes, policy.corpus.writers)


def test_a_release_says_in_its_golden_what_it_cannot_save(corpus: Corpus, policy: Policy) -> None:
    fixture = corpus.fixtures["torch-2.15.0/save_bool"]
    golden = {"value": {"dict": [["tensors", {"dict": []}], ["refused", {"dict": [["int1", "KeyError: no"]]}]]}}
    spoken = replace(fixture, golden=golden)
    silent = [
        replace(manifest, fixtures=tuple(entry for entry in manifest.fixtures if not entry.recipe.startswith("dtypes_")))
        for manifest in corpus.manifests
    ]
    manifests = tuple(
        replace(item, fixtures=tuple(spoken if entry is fixture else entry for entry in item.fixtures)) for item in silent
    )
    classes, _ = saved_classes(FIXTURES, replace(corpus, manifests=manifests), policy)
    (narrow,) = (item for item in classes if item.name == "int1 as nested, torch.save, zip")
    assert (narrow.refused, narrow.missing) == (
        {"2.15.0": "KeyError: no"},
        tuple(item for item in narrow.asked if item != "2.15.0"),
    )


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[[hole]]", "[[gap]]", "contains 'gap', expected the tables [[form]], [[no_class]], [[hole]]"),
        (
            'container = "zip"\n',
            "",
            "[[form]] number 2 has id, family, since, because; expected id, family, container, since, because",
        ),
        ("[[form]]", "[[form", "classes.toml:6: is not valid TOML"),
    ],
)
def test_a_file_that_is_wrong_is_refused(old: str, new: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "classes.toml"
    shutil.copy(FIXTURES / "classes.toml", path)
    path.write_text(path.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
    with pytest.raises(HarnessError) as caught:
        read_classes(path)
    assert said in str(caught.value)
