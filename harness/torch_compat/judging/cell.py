"""Cells: the results of readers for a fixture, and their outcome."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from torch_compat.values.normalise import headline

if TYPE_CHECKING:
    from torch_compat.corpus.manifest import Fixture
    from torch_compat.corpus.observations import Observation
    from torch_compat.judging.readers import Reader
    from torch_compat.judging.wordings import Errors, WordingUse
    from torch_compat.policy import OptionSet

__all__ = ["DIRECTIONS", "Cells", "Direction", "Outcome"]

Direction = Literal["backward", "own", "forward", "forward-in-window", "synthetic"]
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)


class Outcome(enum.StrEnum):
    """The outcome of a cell, with tolerances applied."""

    SAME = "same"
    CLOSE = "close"
    DIFFERENT = "different"
    REFUSED = "refused"
    RAISED = "raised"
    RELAXED = "relaxed"
    UNSTABLE = "unstable"
    CRASHED = "crashed"
    TIMED_OUT = "timed-out"
    UNSUPPORTED = "unsupported"
    UNAVAILABLE = "unavailable"


_DEAD = frozenset({Outcome.CRASHED, Outcome.TIMED_OUT})


@dataclass(slots=True)
class Cells:
    """Equivalent cells: one fixture, one set of load options, one observation, one direction, and the readers that made it.

    A cell is the result of one reader. Rules judge equivalent cells together, since the verdict is the same for all. Instances are never
    modified; they are not frozen because judging creates tens of thousands, and a frozen one takes seven times as long to create.

    Attributes:
        observation: what each of the readers did.
        direction: the direction from the writer to the readers; ``forward`` means readers older than the writer. For fixtures that no
            release wrote it is ``synthetic``.
        readers: set of readers (see :class:`torch_compat.judging.readers.Readers`); never empty.
        others: errors that differ from the golden's, with class and text of both; without those that a wording explains.
        worded: the wordings that explain the remaining differing errors.
    """

    fixture: Fixture
    options: OptionSet
    observation: Observation
    outcome: Outcome
    direction: Direction
    readers: int
    others: Errors = ()
    worded: frozenset[WordingUse] = frozenset()

    @property
    def count(self) -> int:
        """The number of cells."""
        return self.readers.bit_count()

    @property
    def subject(self) -> str:
        """What was read, as shown to people."""
        return self.fixture.id if self.options.id == "default" else f"{self.fixture.id} ({self.options.id})"

    def read_by(self, reader: Reader) -> str:
        """The cell of one of the readers, as shown to people."""
        options = "" if self.options.id == "default" else f" ({self.options.id})"
        return f"{self.fixture.id} read by {reader.name}{options}"

    @property
    def loaded(self) -> bool:
        """Whether the load call returned."""
        return self.outcome is not Outcome.REFUSED and not (self.outcome in _DEAD and self.observation.stage == "load")

    @property
    def message(self) -> str:
        """A one-line reason, for outcomes that have one."""
        if self.observation.signal:
            ending = f"{self.observation.signal} while {'loading' if self.observation.stage == 'load' else 'running'}"
            return ": ".join([ending, *(error["message"] for error in self.observation.errors)])
        # Several calls of a program may raise different errors; the last is the clearest: in the first call, TorchScript cannot yet
        # quote the source.
        return headline(self.observation.errors[-1]["message"]) if self.observation.errors else ""
