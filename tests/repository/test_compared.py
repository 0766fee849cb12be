"""Archives that their own writer cannot load, and reworded messages: no release treats them differently."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from torch_compat.judging.compared import compare_cells
from torch_compat.judging.gathering import gather
from torch_compat.replay.last_bits import only_last_bits
from torch_compat.workspace import Root

if TYPE_CHECKING:
    from torch_compat.corpus.corpus import Corpus

REPOSITORY = Path(__file__).parents[2]
ERROR = {"error": {"stage": "load", "type": "builtins.AssertionError", "message": ""}}


def test_an_error_and_a_value_are_more_than_last_bits_apart(corpus: Corpus) -> None:
    loaded = corpus.fixtures["torch-2.15.0/div_out"]
    refused = replace(loaded, golden=ERROR)
    assert [only_last_bits(item, other) for item, other in ((loaded, refused), (refused, loaded), (refused, refused))] == [
        False
    ] * 3


@pytest.mark.parametrize(
    ("base", "later", "fixture", "what"),
    [
        ("2.1.2", "2.2.2", "torch-2.1.2/export_batch_norm_train", "computes"),
        ("2.12.1", "2.13.0", "torch-1.6.0/nn_container", "warns"),
    ],
)
def test_other_words_for_the_same_error_or_warning_are_nothing_new(base: str, later: str, fixture: str, what: str) -> None:
    root = Root(REPOSITORY)
    evidence = gather(root, root.policy(), as_of=None)
    readers = {item.release: item for item in evidence.recorded.values()}
    asked = replace(readers[later], cells={cell: item for cell, item in readers[later].cells.items() if cell[0] == fixture})
    results = [item for item in compare_cells(evidence, readers[base], asked, {}).moved if item.what == what]
    assert results
    assert {item.state for item in results} == {"reworded"}
