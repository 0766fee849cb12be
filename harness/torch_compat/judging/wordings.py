"""Decide whether the policy states a reader's error and the writer's different error as wordings of one refusal.

A release that words a refusal differently breaks no promise, and does so for every program that fails the check. So it is stated once, in
the policy's ``[[message]]`` tables: what each span of releases raises there. Two errors are the same if a wording has the writer's
text for the writer's release, and the reader's text for the reader's. All other errors that are not equal are different.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from torch_compat.corpus.manifest import SYNTHETIC
from torch_compat.corpus.observations import OTHER_ERROR
from torch_compat.releases.release import Release
from torch_compat.values.normalise import plain_error, same_error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.corpus.manifest import Fixture
    from torch_compat.corpus.observations import Observation
    from torch_compat.judging.readers import Readers
    from torch_compat.policy.sayings import KnownMessage
    from torch_compat.releases.sets import ReleaseSet

__all__ = ["Errors", "Heard", "WordingUse", "Wordings", "other_errors"]

Pair = tuple[str, str, str, str]
"""Class and text of the golden's error, followed by those of the reader's error."""
Errors = tuple[Pair, ...]


class WordingUse(NamedTuple):
    """The explanation of one pair of errors.

    Attributes:
        wording: its id.
        wrote, read: the texts of the writer and of the reader, by their indices in ``says``.
    """

    wording: str
    wrote: int
    read: int


class Heard(NamedTuple):
    """Differences between the errors of readers and those of the writer.

    Attributes:
        others: errors that are neither the golden's nor another wording of them.
        worded: the wordings that explain the remaining differing errors.
        readers: set of readers for which this holds.
    """

    others: Errors
    worded: frozenset[WordingUse]
    readers: int


def other_errors(observation: Observation) -> Errors:
    """The errors of an observation that differ from the golden's, by class and text."""
    results = (tuple(pair) for extent in observation.extent if extent["kind"] == OTHER_ERROR for pair in extent["errors"])
    return tuple(dict.fromkeys((a, b, c, d) for a, b, c, d in results if not same_error((a, b), (c, d))))


class Wordings:
    """The wordings of a policy, applied to the readers of some evidence. Results are cached."""

    def __init__(self, wordings: tuple[KnownMessage, ...], readers: Readers) -> None:
        self._wordings = wordings
        self._readers = readers
        self._known: dict[tuple[str, Pair], tuple[tuple[WordingUse, ReleaseSet], ...]] = {}
        self._spans: dict[str, int] = {}

    def heard(self, fixture: Fixture, observation: Observation, readers: int) -> Iterator[Heard]:
        """Yield the readers of one observation, split by what explains the errors that differ from the golden's."""
        parts: dict[tuple[Errors, frozenset[WordingUse]], int] = {((), frozenset()): readers}
        for pair in other_errors(observation) if observation.extent else ():
            split: dict[tuple[Errors, frozenset[WordingUse]], int] = {}
            for (others, worded), bits in parts.items():
                for uses, some in self._by_use(fixture.release, pair, bits):
                    key = (others, worded | uses) if uses else ((*others, pair), worded)
                    split[key] = split.get(key, 0) | some
            parts = split
        for (others, worded), bits in parts.items():
            yield Heard(others, worded, bits)

    def others(self, fixture: Fixture, observation: Observation, reader: str) -> Errors:
        """The errors of one reader that are neither the golden's nor another wording of them; its release need not be in the evidence."""
        return tuple(
            pair
            for pair in other_errors(observation)
            if not any(Release(reader) in releases for _, releases in self._explaining(fixture.release, pair))
        )

    def _by_use(self, writer: str, pair: Pair, readers: int) -> Iterator[tuple[frozenset[WordingUse], int]]:
        """Yield some readers, split by what explains their error; each occurs once, and those without an explanation with an empty set."""
        groups: dict[frozenset[WordingUse], int] = {frozenset(): readers}
        for use, releases in self._explaining(writer, pair):
            split: dict[frozenset[WordingUse], int] = {}
            for uses, bits in groups.items():
                for key, some in ((uses | {use}, bits & self._span(releases)), (uses, bits & ~self._span(releases))):
                    if some:
                        split[key] = split.get(key, 0) | some
            groups = split
        yield from groups.items()

    def _explaining(self, writer: str, pair: Pair) -> tuple[tuple[WordingUse, ReleaseSet], ...]:
        """The wordings that make two errors the same, and the readers for which they do."""
        key = (writer, pair)
        if key not in self._known:
            results: list[tuple[WordingUse, ReleaseSet]] = []
            if writer != SYNTHETIC:  # a synthetic archive has no release's wording
                for wording in self._wordings:
                    results += _uses(wording, Release(writer), pair)
            self._known[key] = tuple(results)
        return self._known[key]

    def _span(self, releases: ReleaseSet) -> int:
        text = str(releases)
        if text not in self._spans:
            self._spans[text] = self._readers.where(lambda reader: Release(reader.release) in releases)
        return self._spans[text]


def _uses(wording: KnownMessage, writer: Release, pair: Pair) -> Iterator[tuple[WordingUse, ReleaseSet]]:
    golden, given = plain_error(pair[:2]), plain_error(pair[2:])
    for wrote, before in enumerate(wording.says):
        if writer in before.releases and before.says(*golden):
            for read, after in enumerate(wording.says):
                if after.says(*given):
                    yield WordingUse(wording.id, wrote, read), after.releases
