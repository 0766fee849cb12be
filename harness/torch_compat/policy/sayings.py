"""What a policy says that releases say: warnings, and errors that are one in other words (``warnings.toml``, ``wordings.toml``)."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import ConfigDict, Field

from torch_compat.policy.table_base import MODULE, OPERATOR, Family, Identifier, Releases, Several, Table, Text

if TYPE_CHECKING:
    from collections.abc import Collection


__all__ = ["OF_WARNINGS", "KnownMessage", "Phrase"]


class Phrase(Table):
    """What some releases say, word for word."""

    type: Annotated[str, Field(pattern=MODULE)]
    """The class of the warning or error, as 'FutureWarning'."""
    text: Text
    """What it says, without what varies from machine to machine; of an error the line that says the cause, with what varies as judging tells
    texts apart ('N' for a number). '*' stands for one name in it, or for itself."""
    releases: Releases
    """The releases that say it so, of an error as writers or as readers; open to the future for the newest."""

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(r"(?:[\w.]+|[*])".join(map(re.escape, self.text.split("*"))))

    def is_in(self, text: str) -> bool:
        """Whether a text is this one."""
        return self._pattern.fullmatch(text) is not None

    def says(self, kind: str, text: str) -> bool:
        """Whether an error is this one, given its class and its text without what varies."""
        return kind == self.type and self.is_in(text)


OF_WARNINGS = ("families", "options", "during", "operators", "always", "varies", "once")
"""The keys that only warnings have."""


class KnownMessage(Table):
    """A warning that releases are known to give on archives, or an error of one check that they word in several ways."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"properties": {"kind": {"const": "warning"}}, "required": ["families"]},
                {
                    "properties": {"kind": {"const": "error"}},
                    "not": {"anyOf": [{"required": [key]} for key in OF_WARNINGS]},
                },
            ],
            "not": {
                "anyOf": [{"required": ["always", "once"]}, {"required": ["always", "varies"]}, {"required": ["once", "varies"]}]
            },
            "dependencies": {"operators": {"required": ["during"], "properties": {"during": {"const": "running"}}}},
        }
    )

    id: Identifier
    """Its name; of an error what is checked."""
    kind: Literal["warning", "error"]
    """warning: said on archives, or in calls of their programs. error: raised where a check of PyTorch's does not hold, so that errors with
    these texts are the same refusal."""
    families: Several[Family] = ()
    """The families of archives of which they say it. This and the keys up to `once` are of warnings only."""
    options: Several[Identifier] | None = None
    """The sets of load options under which they do; any unless given."""
    during: Literal["loading", "running"] = "loading"
    """When they say it: on loading an archive, or in calls of its program."""
    operators: Several[Annotated[str, Field(pattern=OPERATOR)]] | None = None
    """The operators of which a program must use one, each of which has programs in which it is said; any unless given. Only of calls."""
    always: bool = False
    """Whether they say it of every archive of these families that they load, or in every call. Otherwise all of them do, or none, of each
    archive and in each call."""
    varies: Text | None = None
    """Why some of these releases say it of an archive, or in a call, and others do not."""
    once: bool = False
    """Whether a process says it once. Which of the archives that it loads hears it depends on what it loaded before, so silence is no finding,
    and two observations may differ in it."""
    because: Text
    """Why it is said; of an error, why it is the same refusal."""
    says: Several[Phrase]
    """What is said by which releases: one for each wording and class that it has had; of an error two at least."""

    def concerns(self, family: str, options: str, operators: Collection[str]) -> bool:
        """Whether it is about archives of this family with programs of these operators, read under these load options."""
        return (
            family in self.families and (self.options is None or options in self.options) and bool(self.operators_of(operators))
        )

    def operators_of(self, operators: Collection[str]) -> set[str]:
        """Which of the operators that it names a program of these has; '*' alone where it names none."""
        if self.operators is None:
            return {"*"}
        return set(self.operators) & {name for operator in operators for name in (operator, operator.partition(".")[0])}

    @property
    def may_be_silent(self) -> bool:
        """Whether a release that comes so far may leave it out."""
        return self.once or self.varies is not None

    def said(self, text: str) -> bool:
        """Whether a text is this warning's, by whomever it is said."""
        return any(one.is_in(text) for one in self.says)
