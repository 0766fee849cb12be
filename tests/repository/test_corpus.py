"""The corpus of the repository is whole, and every entry of it is frozen."""

from __future__ import annotations

from pathlib import Path

from harness.corpus.corpus import FROZEN, load_corpus, read_frozen
from harness.policy import load_policy

REPOSITORY = Path(__file__).parents[2]
FIXTURES = REPOSITORY / "fixtures"


def test_every_byte_is_what_it_was() -> None:
    assert load_corpus(FIXTURES).damage == ()


def test_every_entry_is_frozen_and_nothing_else() -> None:
    corpus = load_corpus(FIXTURES)
    assert read_frozen(FIXTURES / FROZEN) == {entry.id: entry.pin for entry in corpus.entries}


def test_every_writer_of_the_policy_wrote() -> None:
    corpus = load_corpus(FIXTURES)
    writers = load_policy(REPOSITORY / "policies" / "torch").corpus.writers
    assert {fixture.release for fixture in corpus.fixtures.values()} == set(writers)
