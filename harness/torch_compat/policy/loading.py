"""Policy tables about packages other than torch (``loading.toml``)."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from torch_compat.policy.table_base import MODULE, PACKAGE_VERSION, Releases, Several, Table, Text

__all__ = ["Package"]

DISTRIBUTION = r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$"
NAMESPACE = r"^[A-Za-z_][A-Za-z0-9_]*$"


class RenamedModule(Table):
    """A module that was renamed in newer versions of a package."""

    module: Annotated[str, Field(pattern=MODULE)]
    """The name in pickles; submodules are included."""
    to: Annotated[str, Field(pattern=MODULE)]
    """The name in newer versions."""
    since: Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)*$")]
    """The first version of the package with the new name."""
    old_loads: bool
    """Whether newer versions still have the old name for pickles."""
    because: Text
    """What happened."""


class VersionBeside(Table):
    """The version of a package that is expected with some releases, and whose names pickles may contain."""

    version: Annotated[str, Field(pattern=PACKAGE_VERSION)]
    """The version; its contents are recorded in fixtures/beside."""
    readers: Releases
    """The releases with which it is expected."""
    because: Text
    """Why this version."""


class Package(Table):
    """A package other than torch: the modules and operators that it provides, and what changed in it. `Python` is the standard
    library.
    """

    model_config = ConfigDict(json_schema_extra={"anyOf": [{"required": ["modules"]}, {"required": ["renamed"]}]})

    package: Annotated[str, Field(pattern=DISTRIBUTION)]
    """Its name in the package index."""
    modules: Several[Annotated[str, Field(pattern=MODULE)]] = ()
    """Its modules, including their submodules."""
    namespaces: Several[Annotated[str, Field(pattern=NAMESPACE)]] = ()
    """The namespaces of the operators that it registers: torchvision, as in torchvision::nms."""
    hint: Text | None = None
    """What else users need to know to install it."""
    renamed: Several[RenamedModule] = ()
    """Modules that were renamed in newer versions."""
    beside: Several[VersionBeside] = ()
    """The versions that are expected with each release."""
    returns: dict[Annotated[str, Field(pattern=MODULE)], Several[Annotated[str, Field(pattern=MODULE)]]] = Field(
        default_factory=dict
    )
    """Functions in the package that are called by pickles and return an instance of one of these classes, even if the pickle does not name the class."""
