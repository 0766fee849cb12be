"""The vocabulary of judging: verdicts of rules, and a judgement."""

from __future__ import annotations

import enum
import functools
import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch_compat.errors import UsageError

if TYPE_CHECKING:
    from torch_compat.judging.cell import Cells

__all__ = ["Asks", "Cause", "Judgement", "Verdict", "missing_rule", "slug"]


class Verdict(enum.StrEnum):
    """The verdict of a rule. ``pass`` is green; ``not-checked`` never is.

    A ``waived`` failure was recorded when its waiver was accepted; one that ``continues`` came later, with the same cause and the same
    difference, in a release, archive or recipe that did not exist then.
    """

    PASS = "pass"  # noqa: S105 - not a password
    FAIL = "fail"
    EXPECTED = "expected"
    WAIVED = "waived"
    CONTINUES = "continues"
    NO_PROMISE = "no-promise"
    NOT_CHECKED = "not-checked"


class Asks(enum.StrEnum):
    """What a rule checks. Each rule declares it as ``ASKS``, so that its judgements are counted with similar ones."""

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
    """Why a judgement is not a pass, in a form in which equal causes can be grouped.

    Attributes:
        what: the outcome or kind, in one or two words.
        subject: the recipe, record or message that all members share; a message without what varies between members.
        text: one line for people.
    """

    what: str
    subject: str
    text: str


@dataclass(slots=True)
class Judgement:
    """The judgement of a rule on one thing, or on several alike. Never modified, but not frozen: there are too many, as with cells.

    Attributes:
        rule: id of the rule.
        verdict: its verdict.
        subject: a fixture, file, reader or version, as shown to people.
        cause: for every verdict except ``pass``; for ``no-promise`` only if the reason is not the rule itself.
        cells: the cells, if the rule judges cells.
        reader: public version of the reader concerned, if there is one, as used in waivers.
        modelled: whether it depends on the reference reader alone.
        reproduce: the command that shows it, if it does not follow from the cells.
        waiver: id of the waiver for operators that covers it; ``verdict`` is then ``waived``.
        at: the release with which it begins, if that is known and there are no cells; such a judgement can be waived like a cell.
        things: the number of things it covers, if they are not cells.
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
        """The number of things it covers."""
        return self.things if self.cells is None else self.cells.count


@functools.cache
def slug(text: str) -> str:
    """A short name for a text. Names are kept unchanged; any other text that is not kept letter by letter ends with a hash."""
    if re.fullmatch(r"[a-z0-9_./:+-]{1,60}", text):
        return text
    plain = re.sub(r"[^a-z0-9_]+", "-", text.lower())[:40].strip("-")
    return f"{plain}-{hashlib.sha256(text.encode()).hexdigest()[:6]}"


def missing_rule(name: str) -> UsageError:
    """The error for a rule of the policy that has no module."""
    module = f"torch_compat.rules.{name.replace('-', '_')}"
    return UsageError(
        f"the policy names the rule {name!r}, which does not exist: this installation of torch-compat has no module {module}",
        where="policies/torch/promises.toml",
        hint="correct the id; if the checkout has the module, install the checkout again: python -m pip install .",
        code="unknown-rule",
    )
