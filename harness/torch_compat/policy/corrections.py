"""Corrections of what releases say of themselves: conversions of arguments, and operators that their lists leave out."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from torch_compat.policy.table_base import SCHEMA, Releases, Several, Table, Text

__all__ = ["Builtin", "Conversion"]


class Conversion(Table):
    """Arguments of operators that are taken for another type than they have, by some releases."""

    given: Literal["None", "bool", "complex", "float", "int", "str"]
    """The type of the argument."""
    taken_as: Several[Text]
    """The types that it is taken for."""
    readers: Releases
    """The releases that do so."""
    because: Text
    """Why."""


class Builtin(Table):
    """An operator that a release has, though its own list of operators leaves it out."""

    operator: Annotated[str, Field(pattern=SCHEMA)]
    """Its schema."""
    readers: Releases
    """The releases that have it so."""
    because: Text
    """Why it is left out."""
