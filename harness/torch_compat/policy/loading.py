"""What a policy says of packages beside torch (``loading.toml``)."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from torch_compat.policy.table_base import MODULE, PACKAGE_VERSION, Releases, Several, Table, Text

__all__ = ["Package"]

DISTRIBUTION = r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$"
NAMESPACE = r"^[A-Za-z_][A-Za-z0-9_]*$"


class RenamedModule(Table):
    """A module that newer versions of a package have under another name."""

    module: Annotated[str, Field(pattern=MODULE)]
    """The name that pickles have; modules below it are meant, too."""
    to: Annotated[str, Field(pattern=MODULE)]
    """The name that newer versions have."""
    since: Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)*$")]
    """The version of the package since which the new name exists."""
    old_loads: bool
    """Whether newer versions still have the old name for pickles."""
    because: Text
    """What happened."""


class VersionBeside(Table):
    """The version of a package that is expected beside some releases, and may be named by pickles."""

    version: Annotated[str, Field(pattern=PACKAGE_VERSION)]
    """The version; what it has is recorded in fixtures/beside."""
    readers: Releases
    """The releases beside which it stands."""
    because: Text
    """Why this one."""


class Package(Table):
    """A package beside torch: which modules and operators it provides, and what changed in it. `Python` is Python's own library."""

    model_config = ConfigDict(json_schema_extra={"anyOf": [{"required": ["modules"]}, {"required": ["renamed"]}]})

    package: Annotated[str, Field(pattern=DISTRIBUTION)]
    """Its name in the package index."""
    modules: Several[Annotated[str, Field(pattern=MODULE)]] = ()
    """Its modules; everything below them is its own, too."""
    namespaces: Several[Annotated[str, Field(pattern=NAMESPACE)]] = ()
    """The namespaces of the operators that it registers: torchvision, as in torchvision::nms."""
    hint: Text | None = None
    """What else is to be known to get it."""
    renamed: Several[RenamedModule] = ()
    """Its modules that newer versions have under another name."""
    beside: Several[VersionBeside] = ()
    """Which of its versions is expected beside which releases."""
    returns: dict[Annotated[str, Field(pattern=MODULE)], Several[Annotated[str, Field(pattern=MODULE)]]] = Field(
        default_factory=dict
    )
    """Its functions that pickles call and that return an object of one of these classes, where a pickle may leave the class unnamed."""
