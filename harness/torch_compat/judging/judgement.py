"""The words of judging: verdicts of rules, and one judgement."""

from __future__ import annotations

import enum
import functools
import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch_compat.judging.cell import Cells

__all__ = ["Asks", "Cause", "Judgement", "Verdict", "slug"]


class Verdict(enum.StrEnum):
    """What a rule says. ``pass`` is green; ``not-checked`` never is.

    What is ``waived`` was recorded when its waiver was accepted; what ``continues`` came later, with the same cause and the same
    difference, in a release, archive or recipe that was not there then.
    """

    PASS = "pass"  # noqa: S105 - not a password
    FAIL = "fail"
    EXPECTED = "expected"
    WAIVED = "waived"
    CONTINUES = "continues"
    NO_PROMISE = "no-promise"
    NOT_CHECKED = "not-checked"


class Asks(enum.StrEnum):
    """What a rule asks. Each rule says it of itself, as ``ASKS``, so that what it finds is counted with its like."""

    VALUES = "values"
    """Whether the values that were read are correct. No two of these rules judge the same cell."""
    LOADING = "loading"
    """Whether an archive can be loaded at all. These rules judge the same cells again."""
    OTHER = "other"
    """Whether another promise is kept, about operators, deprecations, options, or the reference reader."""
    BOOKKEEPING = "bookkeeping"
    """Whether the evidence is complete and the exceptions are exact. These rules say nothing about releases."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a judgement is not a pass, in a form by which equal ones are grouped.

    Attributes:
        what: the outcome or kind, in one or two words.
        subject: the recipe, record or message that all members share; of a message, without what varies between members.
        text: one line for people.
    """

    what: str
    subject: str
    text: str


@dataclass(slots=True)
class Judgement:
    """What one rule says of one thing, or of several that it says the same of. Nobody changes one; as of cells, there are too many to
    freeze them.

    Attributes:
        rule: id of the rule.
        verdict: what it says.
        subject: a fixture, file, reader or version, as people name it.
        cause: for every verdict but ``pass``; of ``no-promise`` only where the reason is not the rule's own.
        cells: the cells, where the rule judges cells.
        reader: public version of the reader concerned, where there is one: waivers speak of readers by it.
        modelled: whether it rests on the reference reader alone.
        reproduce: the command that shows it, where the cells do not give it.
        waiver: id of the waiver for operators that covers it; ``verdict`` is then ``waived``.
        at: the release with which it begins, where that is known and there are no cells; such a judgement can be waived like a cell.
        things: how many things it is of, where they are no cells.
    """

    rule: str
    verdict: Verdict
    subject: str
    cause: Cause | None = None
    cells: Cells | None = None
    reader: str = ""
    modelled: bool = False
    reproduce: str = ""
    at: str = ""
    waiver: str = ""
    things: int = 1

    @property
    def count(self) -> int:
        """How many things it is of."""
        return self.things if self.cells is None else self.cells.count


@functools.cache
def slug(text: str) -> str:
    """A short name for a text. Names stand for themselves; whatever else is not kept letter by letter ends with a hash."""
    if re.fullmatch(r"[a-z0-9_./:+-]{1,60}", text):
        return text
    plain = re.sub(r"[^a-z0-9_]+", "-", text.lower())[:40].strip("-")
    return f"{plain}-{hashlib.sha256(text.encode()).hexdigest()[:6]}"
