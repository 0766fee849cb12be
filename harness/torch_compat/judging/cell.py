"""Cells: what readers did with a fixture, and what came of it."""

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
    """What happened in one cell, a tolerance applied."""

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
    """Cells that are alike: one fixture, one set of load options, one observation, one direction, and the readers that made it.

    A cell is what one reader did. Rules look at cells that are alike at once, since they say the same of all of them. Nobody changes
    one; it is not frozen, because judging makes tens of thousands, and a frozen one takes seven times as long to make.

    Attributes:
        observation: what every one of the readers did.
        direction: of the readers as seen from the writer; ``forward`` is readers older than the writer. Of what no release wrote
            it is ``synthetic``.
        readers: set of readers (see :class:`torch_compat.judging.readers.Readers`); never empty.
        others: what was raised where the golden has another error, class and text of both; without what a wording explains.
        worded: the wordings that explain the rest of that.
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
        """How many cells they are."""
        return self.readers.bit_count()

    @property
    def subject(self) -> str:
        """What was read, as people name it."""
        return self.fixture.id if self.options.id == "default" else f"{self.fixture.id} ({self.options.id})"

    def read_by(self, reader: Reader) -> str:
        """The cell of one of the readers, as people name it."""
        options = "" if self.options.id == "default" else f" ({self.options.id})"
        return f"{self.fixture.id} read by {reader.name}{options}"

    @property
    def loaded(self) -> bool:
        """Whether the load call returned."""
        return self.outcome is not Outcome.REFUSED and not (self.outcome in _DEAD and self.observation.stage == "load")

    @property
    def message(self) -> str:
        """The one line that says why, for outcomes that have one."""
        if self.observation.signal:
            ending = f"{self.observation.signal} while {'loading' if self.observation.stage == 'load' else 'running'}"
            return ": ".join([ending, *(error["message"] for error in self.observation.errors)])
        # Several calls of one program may raise differently; the last is the plainest: TorchScript explains itself worse
        # the first time, where it cannot yet quote the source.
        return headline(self.observation.errors[-1]["message"]) if self.observation.errors else ""
