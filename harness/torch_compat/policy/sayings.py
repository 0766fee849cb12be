"""Policy tables about the messages of releases: warnings, and errors with several wordings (``warnings.toml``, ``wordings.toml``)."""

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
    """The exact text that some releases emit."""

    type: Annotated[str, Field(pattern=MODULE)]
    """The class of the warning or error, such as 'FutureWarning'."""
    text: Text
    """Its text, without the parts that vary between machines; for an error, the line that gives the cause, with variable parts
    replaced as in judging ('N' for a number). '*' matches one name, or itself.
    """
    releases: Releases
    """The releases that use this text; for an error, as writers or as readers; open-ended if the newest release is included."""

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(r"(?:[\w.]+|[*])".join(map(re.escape, self.text.split("*"))))

    def is_in(self, text: str) -> bool:
        """Whether a text matches this one."""
        return self._pattern.fullmatch(text) is not None

    def says(self, kind: str, text: str) -> bool:
        """Whether an error matches this one, given its class and its text without the variable parts."""
        return kind == self.type and self.is_in(text)


OF_WARNINGS = ("families", "options", "during", "operators", "always", "varies", "once")
"""The keys that apply only to warnings."""


class KnownMessage(Table):
    """A known warning about archives, or an error from one check that releases word differently."""

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
    """Its name; for an error, what is checked."""
    kind: Literal["warning", "error"]
    """warning: emitted for archives, or in calls of their programs. error: raised if a check in PyTorch fails, so that errors
    with these texts are the same refusal.
    """
    families: Several[Family] = ()
    """The families of archives that cause it. This key and all keys up to `once` are only for warnings."""
    options: Several[Identifier] | None = None
    """The sets of load options under which it occurs; default: all."""
    during: Literal["loading", "running"] = "loading"
    """When it occurs: while an archive is loaded, or in calls of its program."""
    operators: Several[Annotated[str, Field(pattern=OPERATOR)]] | None = None
    """Operators, one of which a program must use to cause it; each has such programs; default: all. Only for calls."""
    always: bool = False
    """Whether they emit it for every archive of these families that they load, or in every call. Otherwise, for each archive and
    call, either all of them emit it or none.
    """
    varies: Text | None = None
    """Why some of these releases emit it for an archive, or in a call, and others do not."""
    once: bool = False
    """Whether a process emits it only once. Which archive causes it then depends on what was loaded before, so a missing warning
    is not a finding, and two observations may differ in it.
    """
    because: Text
    """Why it is emitted; for an error, why it is the same refusal."""
    says: Several[Phrase]
    """The texts and the releases that emit them: one entry for each wording and class; at least two for an error."""

    def concerns(self, family: str, options: str, operators: Collection[str]) -> bool:
        """Whether it applies to archives of this family that use these operators, loaded with these options."""
        return (
            family in self.families and (self.options is None or options in self.options) and bool(self.operators_of(operators))
        )

    def operators_of(self, operators: Collection[str]) -> set[str]:
        """Return those of its operators that occur in a program with these operators; only '*' if it names no operators."""
        if self.operators is None:
            return {"*"}
        return set(self.operators) & {name for operator in operators for name in (operator, operator.partition(".")[0])}

    @property
    def may_be_silent(self) -> bool:
        """Whether a release may omit it although its conditions are met."""
        return self.once or self.varies is not None

    def said(self, text: str) -> bool:
        """Whether a text is one of this warning's texts, in any release."""
        return any(phrase.is_in(text) for phrase in self.says)
