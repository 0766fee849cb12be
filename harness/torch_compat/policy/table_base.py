"""The forms of values in policy files: patterns with their descriptions, and the field types of tables."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainSerializer, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from torch_compat.errors import UsageError
from torch_compat.releases.sets import ReleaseSet

__all__ = [
    "GLOBAL",
    "IDENTIFIER",
    "MODULE",
    "NAME",
    "NAMED",
    "ONE_LINE",
    "OPCODE",
    "OPERATOR",
    "PACKAGE_VERSION",
    "PYTHON",
    "QUALIFIED",
    "RELEASE",
    "RELEASES",
    "SCHEMA",
    "SHAPES",
    "SIGN",
    "UPGRADER",
    "URL",
    "Family",
    "Identifier",
    "NamedReleases",
    "ReleaseName",
    "Releases",
    "Several",
    "Table",
    "Text",
]

Family: TypeAlias = Literal["torch-save", "torchscript", "mobile", "package", "export", "distributed"]
RELEASE: Final = r"^[0-9]+\.[0-9]+\.[0-9]+$"
_ONE: Final = "[0-9]+[.][0-9]+[.][0-9]+"
_SPAN: Final = f"({_ONE}|(>?{_ONE})?[.][.](<?{_ONE})?)"
RELEASES: Final = f"^(none|{_SPAN}(, {_SPAN})*)$"
MODULE: Final = r"^[A-Za-z_][A-Za-z0-9_]*([.][A-Za-z_][A-Za-z0-9_]*)*$"
PACKAGE_VERSION: Final = r"^[0-9]+([.][0-9]+)+$"
PYTHON: Final = r"^[0-9]+\.[0-9]+$"
SCHEMA: Final = r"^[A-Za-z_][A-Za-z0-9_]*::[A-Za-z0-9_.]+[(].*[)] -> .+$"
IDENTIFIER: Final = r"^[a-z0-9]+([-.][a-z0-9]+)*$"
NAMED: Final = r"^([a-z0-9]+([-.][a-z0-9]+)*|CVE-[0-9]{4}-[0-9]{4,})$"
ONE_LINE: Final = r"^\S.*\S$"
NAME: Final = r"^[a-z][a-z0-9_]*$"
GLOBAL: Final = r"^[A-Za-z_][A-Za-z0-9_]*([.][A-Za-z_][A-Za-z0-9_]*)+$"
URL: Final = r"^(https?|file)://[^\s#]+$"
OPCODE: Final = r"^[A-Z][A-Z0-9_]*$"
SIGN: Final = r"^[a-z][a-z-]*(:\S+)?$"
OPERATOR: Final = r"^([*]|[A-Za-z_][A-Za-z0-9_]*::[A-Za-z0-9_]+([.][A-Za-z0-9_]+)?)$"
QUALIFIED: Final = r"^[A-Za-z_][A-Za-z0-9_]*::[A-Za-z0-9_]+([.][A-Za-z0-9_]+)?$"
UPGRADER: Final = r"^[A-Za-z_][A-Za-z0-9_]*_[0-9]+_[0-9]+$"
SHAPES: Final = {
    RELEASE: "a full release such as '1.12.0'",
    PACKAGE_VERSION: "the version of a package such as '1.26.4'",
    PYTHON: "a Python version such as '3.11'",
    ONE_LINE: "one line of text",
    URL: "a URL that begins with https://, http:// or file://",
    NAME: "lower-case words joined by underscores such as 'floor_divide'",
    SCHEMA: "a schema such as 'aten::t(Tensor self) -> Tensor'",
    MODULE: "a module such as 'numpy.core'",
    GLOBAL: "a module and a name in it such as 'collections.OrderedDict'",
    OPCODE: "an opcode in pickletools such as 'BINPERSID'",
    SIGN: "a sign such as 'record:model.json' (see harness/torch_compat/releases/behavior.py)",
    IDENTIFIER: "lower-case words joined by hyphens such as 'newer-loads'",
    NAMED: "lower-case words joined by hyphens, or a vulnerability identifier such as 'CVE-2025-32434'",
    QUALIFIED: "an operator with its overload, such as 'aten::div.Tensor'",
    UPGRADER: "operator, overload, and the first and last file format version, such as 'div_Tensor_0_3'",
    OPERATOR: "an operator such as 'aten::div' or 'aten::div.Tensor', or '*'",
}
"""What each pattern requires, as worded in an error message."""

T = TypeVar("T")


def _distinct(values: tuple[T, ...]) -> tuple[T, ...]:
    twice = sorted({str(value) for value in values if values.count(value) > 1})
    if twice:
        raise PydanticCustomError("distinct", "names {twice} more than once", {"twice": ", ".join(twice)})
    return values


def _release_set(value: object) -> ReleaseSet:
    if isinstance(value, ReleaseSet):
        return value
    try:
        if isinstance(value, str):
            return ReleaseSet.parse(value)
    except UsageError as error:
        if error.code == "backward-releases":
            raise PydanticCustomError("releases", "must go from an older release to a newer one") from None
    raise PydanticCustomError("releases", "must be a list of release ranges, such as '1.5.0..1.8.1, 2.0.0..'")


def _named_ends(value: ReleaseSet) -> ReleaseSet:
    if value.first is None or value.last is None:
        raise PydanticCustomError("releases", "must name a first and a last release, such as '1.5.0..1.8.1'")
    return value


# TOML has arrays where the model has tuples: `strict=False` admits the list; the items stay strict.
Several: TypeAlias = Annotated[
    tuple[T, ...], Field(strict=False, min_length=1, json_schema_extra={"uniqueItems": True}), AfterValidator(_distinct)
]
Text: TypeAlias = Annotated[str, Field(min_length=1)]
ReleaseName: TypeAlias = Annotated[str, Field(pattern=RELEASE)]
Releases: TypeAlias = Annotated[
    ReleaseSet,
    PlainValidator(_release_set),
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": "string", "pattern": RELEASES}),
]
"""A set of releases, in the form of :mod:`torch_compat.releases.sets`: '1.5.0..1.8.1, 2.0.0..', 'none'."""
NamedReleases: TypeAlias = Annotated[Releases, AfterValidator(_named_ends)]
"""A set of releases with a first and a last release, so that later releases are never included."""
Identifier: TypeAlias = Annotated[str, Field(pattern=IDENTIFIER)]


class Table(BaseModel):
    """The base class of all tables: immutable, strict, and without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True, allow_inf_nan=False)
