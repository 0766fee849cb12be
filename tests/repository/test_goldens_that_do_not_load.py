"""Archives that their own writer cannot load: the golden is an error."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from torch_compat.replay.rehearsal import only_last_bits

if TYPE_CHECKING:
    from torch_compat.corpus.corpus import Corpus

ERROR = {"error": {"stage": "load", "type": "builtins.AssertionError", "message": ""}}


def test_an_error_and_a_value_are_more_than_last_bits_apart(corpus: Corpus) -> None:
    loaded = corpus.fixtures["torch-2.15.0/div_out"]
    refused = replace(loaded, golden=ERROR)
    assert [only_last_bits(one, other) for one, other in ((loaded, refused), (refused, loaded), (refused, refused))] == [
        False
    ] * 3
