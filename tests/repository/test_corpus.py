"""The corpus of the repository is complete, and every entry is frozen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.recordings import readers_of
from torch_compat.corpus.corpus import FROZEN, read_frozen
from torch_compat.corpus.manifest import SYNTHETIC
from torch_compat.policy import load_policy

if TYPE_CHECKING:
    from torch_compat.corpus.corpus import Corpus

REPOSITORY = Path(__file__).parents[2]
FIXTURES = REPOSITORY / "fixtures"


def test_every_byte_is_what_it_was(corpus: Corpus) -> None:
    assert corpus.damage == ()
    assert corpus.fixtures
    assert corpus.recipes
    assert corpus.probes


def test_every_entry_is_frozen_and_nothing_else(corpus: Corpus) -> None:
    assert read_frozen(FIXTURES / FROZEN) == {entry.id: entry.pin for entry in corpus.entries}


def test_every_writer_of_the_policy_wrote(corpus: Corpus) -> None:
    writers = load_policy(REPOSITORY / "policies" / "torch").corpus.writers
    assert {fixture.release for fixture in corpus.fixtures.values()} - {SYNTHETIC} == set(writers)


def recorded() -> dict[str, str]:
    """The readers that have observed, by release."""
    return {reader.release: reader.name for reader in readers_of(REPOSITORY).values()}


def test_every_reader_of_the_policy_observed() -> None:
    assert recorded().keys() == set(load_policy(REPOSITORY / "policies" / "torch").corpus.readers)
