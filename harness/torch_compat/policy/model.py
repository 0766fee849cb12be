"""The content of a policy as typed values: one class per table of the files in ``policies/``.

The docstrings of the fields document the keys, and appear in editors through the published JSON Schema. All values are immutable, and
unknown keys and lenient conversions (``"3"`` is not a number) are refused.
"""

from __future__ import annotations

import datetime as dt  # noqa: TC003 (pydantic evaluates the annotations)
import re
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, TypeAlias

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    NonNegativeInt,
    PlainValidator,
    PositiveInt,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

from torch_compat.policy.deprecations import Profile  # noqa: TC001 - pydantic evaluates the annotations
from torch_compat.policy.table_base import (
    GLOBAL,
    IDENTIFIER,
    NAME,
    ONE_LINE,
    OPCODE,
    OPERATOR,
    PYTHON,
    URL,
    Family,
    Identifier,
    ReleaseName,
    Releases,
    Several,
    Table,
    Text,
)
from torch_compat.releases.release import Release
from torch_compat.releases.scope import corpus_scope
from torch_compat.releases.sets import ReleaseSet
from torch_compat.values.dtypes import MEASURED

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from torch_compat.values.compare import Distances

__all__ = [
    "STORED",
    "CalendarRelease",
    "Change",
    "CorpusScope",
    "Covers",
    "Dtype",
    "Format",
    "FormatKind",
    "LoadOptions",
    "Milestone",
    "OptionSet",
    "PolicyTable",
    "RuleEntry",
    "Tolerance",
    "Waiver",
    "WeightsOnly",
]

FormatKind: TypeAlias = Literal["file-format", "bytecode", "export-schema", "container", "byteorder"]
if TYPE_CHECKING:
    Dtype: TypeAlias = str
else:
    Dtype = Literal[MEASURED]  # if spelled out, it would be a second table of dtypes

STORED: Final = frozenset({"torch-save", "distributed"})
"""The families that store values and restore them: the bits are either the same or different."""


def _specifier(value: str) -> str:
    try:
        SpecifierSet(value)
    except InvalidSpecifier:
        raise PydanticCustomError("specifier", "must be a version range such as '<2' or '>=1.20,<2'") from None
    return value


def _parameters(table: dict[str, Any]) -> dict[str, Any]:
    for name, value in table.items():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, dict | list):
                raise PydanticCustomError(
                    "parameter", "parameter {name} must be a scalar or an array of scalars", {"name": repr(name)}
                )
    return table


def _format_version(value: object) -> int | str:
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    if isinstance(value, str) and re.fullmatch(IDENTIFIER, value):
        return value
    raise PydanticCustomError("format_version", "must be a positive integer, or a name such as 'tar'")


_SCALAR_SCHEMA: Final = {"type": ["string", "integer", "number", "boolean"]}
_PARAMETERS_SCHEMA: Final = {
    "type": "object",
    "additionalProperties": {"anyOf": [_SCALAR_SCHEMA, {"type": "array", "items": _SCALAR_SCHEMA}]},
}
FormatVersion: TypeAlias = Annotated[
    int | str,
    PlainValidator(_format_version),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "pattern": IDENTIFIER}]}),
]


class CalendarRelease(Table):
    """One torch release in the calendar, or a planned one. A planned release has `source`; all others have the keys that say how
    to install them.
    """

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": ["pythons", "install", "numpy"]}, {"required": ["source"]}]}
    )

    version: ReleaseName
    """The full version, such as '1.12.0'."""
    date: dt.date
    """The date on which its first wheel was uploaded; for a planned release, the planned date."""
    source: Text | None = None
    """Where it was announced. Only for a planned release; `torch-compat admit` replaces the entry."""
    pythons: Several[Annotated[str, Field(pattern=PYTHON)]] = ()
    """The CPython versions that have a wheel."""
    python: Annotated[str, Field(pattern=PYTHON)] | None = None
    """The preferred Python, if part of the release does not work on the default one."""
    install: Literal["whole", "stubs"] = "whole"
    """whole: the wheel contains every library that it links; stubs: it links against CUDA libraries from other packages."""
    numpy: Annotated[str, AfterValidator(_specifier)] = ""
    """The range of numpy versions for whose ABI the wheel was built."""

    @cached_property
    def parsed(self) -> Release:
        """The version as a comparable value: 1.9.0 is before 1.10.0."""
        return Release(self.version)

    @property
    def line(self) -> str:
        """The minor version that this is a patch of: '1.12' for 1.12.1."""
        return self.parsed.line

    @property
    def name(self) -> str:
        """Its name in readers and commands: 'torch-1.12.0'."""
        return f"torch-{self.version}"


class Milestone(Table):
    """When something about a format changed: the release and, if a dated source is known, the day."""

    release: ReleaseName
    """The release."""
    day: dt.date | None = None
    """The date of the change in PyTorch's own history; only if a dated source gives it."""


class Format(Table):
    """One version of an on-disk format: which releases read it, and either which releases write it or why none ever did."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [{"required": ["written_from"]}, {"required": ["no_writer"]}],
            "not": {"required": ["no_writer", "pending"]},
        }
    )
    NAMED: ClassVar = frozenset({"container", "byteorder"})
    """The kinds whose versions are names instead of numbers."""

    kind: FormatKind
    """file-format: the number in `version` or `.data/version`; bytecode: the number in a mobile archive's bytecode;
    export-schema: the major number of an exported program's `schema_version`; container: what holds the records;
    byteorder: what the `byteorder` record says."""
    version: FormatVersion
    """The number; for a container or byte order, its name: 'zip', 'stream', 'tar', 'flatbuffer', 'big'."""
    meaning: Text
    """What changed with this version."""
    operators: Several[Annotated[str, Field(pattern=OPERATOR)]] | None = None
    """The operators that changed with this version; absent if the format itself changed."""
    any_overload: Releases | None = None
    """The writers that raise the version for every overload of `operators`. All others raise it for overloads with an upgrader."""
    families: Several[Family] | None = None
    """The families that have this version: all of their archives or, with `operators`, those that contain one of the operators.
    Absent if all families have it.
    """
    read_from: Milestone
    """The first release that reads it."""
    read_until: Milestone | None = None
    """The last release that reads it; absent if the newest release reads it."""
    written_from: Milestone | None = None
    """The first release that writes it. Either this or `no_writer`."""
    no_writer: Text | None = None
    """Why no release in the calendar can write this version; a synthetic fixture represents it. Either this or `written_from`."""
    pending: Text | None = None
    """Why the corpus has no fixture of it yet, although a release writes it. Without this key, a missing fixture is a failure."""
    mistaken: Text | None = None
    """What other readers mistake it for, and why nothing makes them refuse it. Without this key, different values in such readers
    are a failure.
    """
    mistaken_as: Literal["swapped"] | None = None
    """What they then return, bit for bit: `swapped` means every element with its bytes reversed. Only together with `mistaken`.
    """
    waivers: Annotated[tuple[Identifier, ...], Field(strict=False)] = ()
    """Waivers caused by releases that no longer read it: reports combine them into one item."""

    @cached_property
    def readers(self) -> ReleaseSet:
        """The releases that read it."""
        return ReleaseSet.between(Release(self.read_from.release), Release(self.read_until.release) if self.read_until else None)

    @property
    def label(self) -> str:
        """Its name in reports and synthetic fixtures: 'bytecode 3', 'container tar'."""
        return f"{self.kind} {self.version}"


class LoadOptions(Table):
    """The options that are passed to a reader besides the path. An option that is not set is not passed."""

    weights_only: bool | None = None
    """torch.load(weights_only=...)."""
    mmap: bool | None = None
    """torch.load(mmap=...)."""
    mmap_flags: Literal["private", "shared"] | None = None
    """How the file is mapped: MAP_PRIVATE or MAP_SHARED."""
    calculate_storage_offsets: bool | None = None
    """Calculate the offset of each storage instead of reading it from the archive."""
    endianness: Literal["little", "big", "native"] | None = None
    """The byte order assumed for archives that do not declare one."""
    crc32: bool | None = None
    """Whether checksums are computed (torch.serialization.set_crc32_options)."""
    debug: bool | None = None
    """Make torch compare calculated offsets with those in the archive (TORCH_SERIALIZATION_DEBUG=1)."""

    def given(self) -> dict[str, bool | str]:
        """Return the options that are passed, by name."""
        return self.model_dump(exclude_none=True)


class MayRefuse(Table):
    """Refusals that a set of load options is meant to cause. Any other refusal under the same options is not one of them."""

    message: Text
    """Text contained verbatim in the message of such a refusal."""
    containers: Several[Literal["zip", "stream", "tar", "flatbuffer"]] | None = None
    """The containers that are refused; default: all."""
    reason: Text
    """Why the refusal is expected."""
    predicted: bool = False
    """Whether it is expected only for the releases that `weights_only_refusals.toml` lists."""

    def covers(self, container: str, message: str) -> bool:
        """Whether a refusal of an archive in this container, with this message, is an expected one."""
        return self.message in message and (self.containers is None or container in self.containers)


class OptionSet(Table):
    """One set of load options, which is one axis of the matrix."""

    id: Identifier
    """The name that observations and reports use."""
    families: Several[Family]
    """The families of archives that are loaded with it."""
    since: ReleaseName | None = None
    """The first release that has all of these options; absent if every release has them."""
    load: LoadOptions = Field(default_factory=LoadOptions)
    """The options."""
    may_refuse: MayRefuse | None = None
    """The refusals that are expected under these options; absent if there are none."""


class RuleEntry(Table):
    """One rule that this policy requires. The rule itself is the module with that name in `harness/torch_compat/rules/`."""

    id: Identifier
    """The rule's name: `newer-loads` is harness/torch_compat/rules/newer_loads.py."""
    asks: Text
    """What is promised, in one sentence."""
    source: Text
    """Where the promise comes from."""
    expect_empty: Text | None = None
    """Why this rule currently selects nothing. Without this key, a rule that selects nothing does not pass."""
    parameters: Annotated[dict[str, Any], AfterValidator(_parameters), WithJsonSchema(_PARAMETERS_SCHEMA)] = Field(default={})
    """The rule's own settings: scalars and arrays of scalars. `bumps-in-time` has `kinds`, the kinds of formats that it judges."""


class Tolerance(Table):
    """A tolerated difference: a kind of difference, or how far a value may be from the golden value and still be `close`.

    A value is close within `max_ulp`, or within both `max_abs` and `max_rel`. The limits of these bounds exclude tolerances with which
    clearly different values would be close.
    """

    kind: Literal["value", "strides", "sharing", "class", "requires_grad"] = "value"
    """What may differ: values within bounds, or anything of the other kinds. Dtypes, shapes, types and keys may never differ."""
    families: Several[Family] = ()
    """The families of archives that this applies to. For all kinds except `value`."""
    dtype: Dtype = ""
    """The dtype of the compared values. This key and all keys up to `max_rel` are only for values, which require all of them."""
    operators: Several[Annotated[str, Field(pattern=OPERATOR)]] = ()
    """The operators that it applies to: 'aten::gelu.out' (one overload), 'aten::gelu' (all overloads), or '*' (any program)."""
    max_ulp: Annotated[int, Field(ge=0, le=256)] = 0
    """Units in the last place of the dtype (of each component, for complex dtypes)."""
    max_abs: Annotated[float, Field(ge=0, le=1e-2)] = 0
    """Absolute difference; matters around zero, where one step in the last place is tiny."""
    max_rel: Annotated[float, Field(ge=0, le=1)] = 0
    """The difference relative to the larger magnitude of the two values: small values must still be about equal. At most 0.1 for
    '*'; more only for named operators, in which terms may cancel completely.
    """
    reason: Text
    """Why this much is allowed, or why this is not promised."""

    def covers(self, distances: Distances) -> bool:
        """Whether every element is within the tolerance."""
        beyond = distances.steps > self.max_ulp
        return bool(((distances.gap[beyond] <= self.max_abs) & (distances.relative[beyond] <= self.max_rel)).all())

    def specificity(self, operators: Collection[str]) -> int:
        """Return how specifically this entry matches a program with these operators: 3 an overload, 2 an operator, 1 any, 0 not at all."""
        named = set(self.operators)
        if named.intersection(operators):
            return 3 if any("." in operator for operator in named.intersection(operators)) else 2
        if named.intersection(operator.partition(".")[0] for operator in operators):
            return 2
        return 1 if "*" in named else 0


class Covers(Table):
    """Part of a waiver: the cells of these recipes, writers, readers and load options that have this outcome.

    ``waivers.lock`` pins the differences in these cells. Both sets of releases must be exact at their ends: the oldest and the newest
    writer and reader of the corpus in each set must have such a cell.
    """

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["writers"]}, {"required": ["synthetic"]}]})

    outcome: Literal["different", "refused", "raised", "crashed", "timed-out", "relaxed", "unstable"]
    """The outcome that occurs instead of the saved value."""
    recipes: Several[Annotated[str, Field(pattern=NAME)]] | None = None
    """The recipes, each of which must have such a cell. Absent if all archives of the families are affected, or, together with
    `says`, if it is not known here which archives are affected; then a new recipe needs no edit.
    """
    families: Several[Family] | None = None
    """The families of archives; default: all."""
    writers: Releases | None = None
    """The releases that wrote the archives; open-ended if the cause is. Either this or `synthetic`."""
    synthetic: Literal[True] | None = None
    """Archives that no release wrote. Either this or `writers`."""
    readers: Releases
    """The releases that read them; open-ended if the cause is."""
    options: Several[Identifier] = ("default",)
    """The sets of load options."""
    says: Text | None = None
    """Text contained verbatim in the message of such a cell: 'Weights only load failed', 'SIGABRT while loading'."""


class Waiver(Table):
    """An exception: one real cause that is known, explained and limited to exactly what differs."""

    model_config = ConfigDict(json_schema_extra={"anyOf": [{"required": ["covers"]}, {"required": ["findings"]}]})

    id: Identifier
    """The name of the waiver, which is also the name of its file."""
    title: Annotated[str, Field(min_length=1, max_length=100, pattern=ONE_LINE)]
    """What happened, in one line."""
    covers: Several[Covers] | None = None
    """The cells that it covers."""
    findings: Several[Text] | None = None
    """The ids of the findings that it covers, as the report prints them, for findings that are not about cells."""
    reason: Text
    """Why this is accepted."""
    evidence: Text
    """The evidence that the cause is understood."""
    owner: Text
    """The person responsible for this waiver."""
    expires: dt.date | None = None
    """The first day on which it no longer applies; only if the behavior can still change."""

    def expired(self, as_of: dt.date) -> bool:
        """Whether the waiver has expired on that day."""
        return self.expires is not None and as_of >= self.expires


class WeightsOnly(Table):
    """What `torch.load(weights_only=True)` accepts. The behavior of a release is the union of all tables that include it."""

    default: bool | None = None
    """The default value of the argument."""
    globals: Several[Annotated[str, Field(pattern=GLOBAL)]] | None = None
    """What a pickle may reference without the user's permission."""
    opcodes: Several[Annotated[str, Field(pattern=OPCODE)]] | None = None
    """The accepted opcodes, by their names in pickletools; all others are refused."""
    blocked: Several[Text] | None = None
    """Modules that pickles must not reference, even with the user's permission."""
    renames: Literal["never", "protocol-2", "always"] | None = None
    """When Python 2 names are mapped to Python 3 names: in pickles that declare protocol 2, or in all."""
    objects: Literal["none", "safe", "allowed"] | None = None
    """For which classes besides its own NEWOBJ and BUILD are accepted: for none, for those that the user allowed, or for all that
    are allowed.
    """
    adds: bool | None = None
    """Whether the user can allow more (torch.serialization.add_safe_globals)."""
    nested: bool | None = None
    """Whether a class that the user allowed is identified by its qualified name, `Outer.Inner`, or only by its own name, `Inner`.
    """
    setitem: Several[Text] | None = None
    """For which classes SETITEM and SETITEMS are accepted; '*' if this is not checked."""
    appends_safe: bool | None = None
    """Whether APPEND and APPENDS are accepted for list subclasses that the user allowed."""
    tar: bool | None = None
    """Whether the tar container of 0.1 is accepted."""
    torchscript: bool | None = None
    """Whether a TorchScript archive is accepted, by passing it to torch.jit.load."""


class CorpusScope(Table):
    """Which releases the corpus must cover: `writers` and `readers`, or a rule over the calendar that gives both."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [{"required": ["writers", "readers"]}, {"required": ["lines", "settled"]}],
            "dependencies": {"besides": ["lines"]},
        }
    )

    writers: Several[ReleaseName] = ()
    """The releases that must have written fixtures."""
    readers: Several[ReleaseName] = ()
    """The releases that must have read every fixture."""
    lines: Literal["newest-patch"] | None = None
    """Replaces both keys: the newest patch release of every minor version as of `settled`, and every release after that date."""
    settled: dt.date | None = None
    """The date up to which only the newest patch release of a minor version counts. Every later release is added permanently."""
    besides: Several[ReleaseName] = ()
    """Releases that write and read in addition to those of `lines`."""

    def resolved(self, releases: Iterable[CalendarRelease]) -> CorpusScope:
        """Return the same scope with explicit writers and readers."""
        dated = [{"version": release.version, "date": release.date} for release in releases]
        writers, readers = corpus_scope(self.model_dump(), dated)
        return CorpusScope(writers=writers, readers=readers)


class PolicyTable(CorpusScope):
    """What applies to the whole policy, and which releases the corpus must cover."""

    name: Identifier
    """The policy's name."""
    in_force_from: dt.date
    """The date since which PyTorch makes the promises in this policy."""
    forward_window_days: NonNegativeInt
    """A reader up to this many days OLDER than the writer must still load and run its archives."""
    nightly_index: Annotated[str, Field(pattern=URL)] | None = None
    """The index for `nightly:DATE`, if neither an option nor the environment sets one; its torch page is at `torch/` below it."""
    profiles: Several[Profile] = ()
    """Other interpretations of the promises, for --profile. Without a profile, the policy is what PyTorch promises."""


class Change(Table):
    """An operator whose results change from a release on."""

    id: Annotated[str, Field(pattern=IDENTIFIER)]
    """Its name."""
    operators: Several[Annotated[str, Field(pattern=OPERATOR)]]
    """The operators, including their in-place and `out=` variants."""
    since: ReleaseName
    """The first release with the new behavior."""
    kind: Literal["value", "type", "shape", "refused", "accepted"]
    """What changes: the values, the dtype or the shape; or it raises instead of returning a value, or the reverse."""
    out_of_range: bool = False
    """Whether only out-of-range arguments show it, such as an infinite step or an invalid reduction. Release reports list the
    change; `inspect`, which does not know the arguments of a program, omits it.
    """
    file_format: PositiveInt | None = None
    """The file format version that marks the change; absent if there is none."""
    before: Text
    """Behavior before the change."""
    after: Text
    """Behavior after the change."""
    evidence: Text
    """What was run to observe it."""
    refusal: Several[Text] | None = None
    """Texts of which the error contains one, verbatim. A reader that returns a value where the writer raised this error is
    explained by this change; without this key, the change explains no such reader.
    """
    waivers: Annotated[tuple[Identifier, ...], Field(strict=False)] = ()
    """Waivers caused by this change: reports combine them into one item."""
    deprecations: Annotated[tuple[Identifier, ...], Field(strict=False)] = ()
    """Deprecations with an event in the same release that is this change: reports combine them into one item."""
