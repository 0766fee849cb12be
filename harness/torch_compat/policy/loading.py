"""What a policy says of loading beyond the releases: abilities, packages, renamed modules, advisories (``loading.toml``)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from torch_compat.policy.table_base import MODULE, Identifier, Releases, Several, Table, Text

__all__ = ["Ability", "Advisory", "Package", "Renamed"]

DISTRIBUTION = r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$"
NAMESPACE = r"^[A-Za-z_][A-Za-z0-9_]*$"


class Ability(Table):
    """Something that only some releases offer to whoever loads a file."""

    id: Identifier
    """Its name."""
    readers: Releases
    """The releases that offer it."""
    because: Text
    """What it is, and what the others have instead."""


class Package(Table):
    """A package that provides modules which pickles name, or operators which programs call."""

    package: Annotated[str, Field(pattern=DISTRIBUTION)]
    """Its name in the package index."""
    modules: Several[Annotated[str, Field(pattern=MODULE)]]
    """Its modules; everything below them is its own, too."""
    namespaces: Several[Annotated[str, Field(pattern=NAMESPACE)]] = ()
    """The namespaces of the operators that it registers: torchvision, as in torchvision::nms."""
    hint: Text | None = None
    """What else is to be known to get it."""
    returns: dict[Annotated[str, Field(pattern=MODULE)], Several[Annotated[str, Field(pattern=MODULE)]]] = Field(
        default_factory=dict
    )
    """Its functions that pickles call and that return an object of one of these classes, where a pickle may leave the class unnamed."""


class Renamed(Table):
    """A module that newer versions of a package have under another name."""

    module: Annotated[str, Field(pattern=MODULE)]
    """The name that pickles have; modules below it are meant, too."""
    to: Annotated[str, Field(pattern=MODULE)]
    """The name that newer versions have."""
    package: Annotated[str, Field(pattern=DISTRIBUTION)]
    """The package."""
    since: Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)*$")]
    """The version of the package since which the new name exists."""
    old_loads: bool
    """Whether newer versions still have the old name for pickles."""
    because: Text
    """What happened."""


class Advisory(Table):
    """A published vulnerability of loading: what happens to whoever loads a crafted file in this way."""

    id: Annotated[str, Field(pattern=r"^CVE-[0-9]{4}-[0-9]{4,}$")]
    """Its number."""
    families: Several[Text]
    """The families of archives that are loaded so."""
    call: Text
    """The call that is affected."""
    weights_only: bool
    """Whether weights_only=True is affected; else only calls without it."""
    readers: Releases
    """The affected releases."""
    summary: Text
    """What a crafted file does."""
    safe: Text
    """What is safe instead."""
    reference: Annotated[str, Field(pattern=r"^https://")]
    """Where it was published."""
