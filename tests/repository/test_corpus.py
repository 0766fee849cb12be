"""The corpus of the repository is whole, and every entry of it is frozen."""

from __future__ import annotations

from pathlib import Path

from harness.corpus.corpus import FROZEN, load_corpus, read_frozen
from harness.corpus.observations import read_observations
from harness.corpus.surveys import read_survey
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


def test_every_reader_of_the_policy_was_surveyed_by_the_build_that_observed() -> None:
    readers = [read_observations(path) for path in sorted((REPOSITORY / "reports" / "observations").glob("*.jsonl"))]
    assert {reader.release for reader in readers} == set(load_policy(REPOSITORY / "policies" / "torch").corpus.readers)
    for reader in readers:
        survey = read_survey(FIXTURES / "operators" / f"torch-{reader.release}.json")
        assert f"torch-{survey.identity['torch']}" == reader.name
