"""What a policy says, as typed values: one class per table of the files in ``policies/``.

The docstrings of the fields are the reference of the keys; the published JSON Schema carries them to editors. Everything
is immutable and refuses unknown keys and lenient conversions (``"3"`` is no number).
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
    Dtype = Literal[MEASURED]  # spelled out, it would be a second table of dtypes

STORED: Final = frozenset({"torch-save", "distributed"})
"""The families whose values are stored and given back: the same bits, or others."""


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
    """One torch release of the calendar, or one that is planned. A planned one has `source`; all others have the keys that tell how they install."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": ["pythons", "install", "numpy"]}, {"required": ["source"]}]}
    )

    version: ReleaseName
    """The release, in full: '1.12.0'."""
    date: dt.date
    """The day on which its first wheel was uploaded; of a planned one the day that is planned."""
    source: Text | None = None
    """Where it was announced. Only of a planned release; `torch-compat admit` replaces the entry."""
    pythons: Several[Annotated[str, Field(pattern=PYTHON)]] = ()
    """The CPython versions that have a wheel."""
    python: Annotated[str, Field(pattern=PYTHON)] | None = None
    """The one of them that it is run on first, where not all of the release works on the one that would be chosen."""
    install: Literal["whole", "stubs"] = "whole"
    """whole: the wheel holds every library it links; stubs: it links against CUDA libraries of other packages."""
    numpy: Annotated[str, AfterValidator(_specifier)] = ""
    """The numpy releases whose binary interface the wheel was built for, as a version range."""

    @cached_property
    def parsed(self) -> Release:
        """The release, comparable: 1.9.0 before 1.10.0."""
        return Release(self.version)

    @property
    def line(self) -> str:
        """The minor release that this is a patch of: '1.12' for 1.12.1."""
        return self.parsed.line

    @property
    def name(self) -> str:
        """What readers and commands call it: 'torch-1.12.0'."""
        return f"torch-{self.version}"


class Milestone(Table):
    """When something about a format changed: in which release and, where a dated source is known, on which day."""

    release: ReleaseName
    """The release."""
    day: dt.date | None = None
    """The day of the change in PyTorch's own history; only where a dated source says so."""


class Format(Table):
    """One version of an on-disk format. Says who reads it, and either who writes it or why nobody ever did."""

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
    """The number; of a container or byte order its name: 'zip', 'stream', 'tar', 'flatbuffer', 'big'."""
    meaning: Text
    """What changed with this version."""
    operators: Several[Annotated[str, Field(pattern=OPERATOR)]] | None = None
    """The operators that changed with this version; absent where the format itself did."""
    any_overload: Releases | None = None
    """The writers that raise the version for every overload of `operators`. All others raise it for overloads with an upgrader."""
    families: Several[Family] | None = None
    """The families that have this version: all archives of them or, with `operators`, those that hold one. Absent where all families do."""
    read_from: Milestone
    """The first release whose reader takes it."""
    read_until: Milestone | None = None
    """The last release whose reader takes it; absent while the newest does."""
    written_from: Milestone | None = None
    """The first release that writes it. Either this or `no_writer`."""
    no_writer: Text | None = None
    """Why no release of the calendar can write this version; a synthetic fixture stands for it. Either this or `written_from`."""
    pending: Text | None = None
    """Why the corpus has no fixture of it yet, although some release writes it. Without it, a missing fixture is a failure."""
    mistaken: Text | None = None
    """For what other readers take it, and why nothing makes them refuse it. Without it, other values in them are a failure."""
    mistaken_as: Literal["swapped"] | None = None
    """What they then give, to the bit: swapped is every element with its bytes in the other order. Given with `mistaken`, and only then."""
    waivers: Annotated[tuple[Identifier, ...], Field(strict=False)] = ()
    """Waivers whose cause is that releases read it no longer: a report tells them as one item."""

    @cached_property
    def readers(self) -> ReleaseSet:
        """The releases whose reader takes it."""
        return ReleaseSet.between(Release(self.read_from.release), Release(self.read_until.release) if self.read_until else None)

    @property
    def label(self) -> str:
        """As reports and synthetic fixtures call it: 'bytecode 3', 'container tar'."""
        return f"{self.kind} {self.version}"


class LoadOptions(Table):
    """What a reader is told besides the path. An option that is not given is not passed at all."""

    weights_only: bool | None = None
    """torch.load(weights_only=...)."""
    mmap: bool | None = None
    """torch.load(mmap=...)."""
    mmap_flags: Literal["private", "shared"] | None = None
    """How the file is mapped: MAP_PRIVATE or MAP_SHARED."""
    calculate_storage_offsets: bool | None = None
    """Calculate where each storage lies instead of reading it from the archive."""
    endianness: Literal["little", "big", "native"] | None = None
    """The byte order assumed for archives that do not state theirs."""
    crc32: bool | None = None
    """Whether checksums are computed (torch.serialization.set_crc32_options)."""
    debug: bool | None = None
    """Let torch compare calculated offsets with read ones (TORCH_SERIALIZATION_DEBUG=1)."""

    def given(self) -> dict[str, bool | str]:
        """The options that are passed, by name."""
        return self.model_dump(exclude_none=True)


class MayRefuse(Table):
    """Refusals that a set of load options is there to cause. Any other refusal under the same options is none of them."""

    message: Text
    """What the message of such a refusal holds, word for word."""
    containers: Several[Literal["zip", "stream", "tar", "flatbuffer"]] | None = None
    """The containers that are refused; any unless given."""
    reason: Text
    """Why the refusal is expected."""
    predicted: bool = False
    """Whether it is expected only of the releases of which `weights_only_refusals.toml` states it."""

    def covers(self, container: str, message: str) -> bool:
        """Whether a refusal of an archive in this container, with this message, is an expected one."""
        return self.message in message and (self.containers is None or container in self.containers)


class OptionSet(Table):
    """One set of load options: one axis of the matrix."""

    id: Identifier
    """The name that observations and reports use."""
    families: Several[Family]
    """The families of archives that are loaded with it."""
    since: ReleaseName | None = None
    """The first release that has all these options; absent when every release has."""
    load: LoadOptions = Field(default_factory=LoadOptions)
    """The options."""
    may_refuse: MayRefuse | None = None
    """Which refusals are expected under these options; absent where none is."""


class RuleEntry(Table):
    """One rule that this policy asks for. The rule itself is the module of that name in `harness/torch_compat/rules/`."""

    id: Identifier
    """The rule's name: `newer-loads` is harness/torch_compat/rules/newer_loads.py."""
    asks: Text
    """What is promised, in one sentence."""
    source: Text
    """Where the promise comes from."""
    expect_empty: Text | None = None
    """Why this rule selects nothing today. Without it, a rule that selects nothing is not a pass."""
    parameters: Annotated[dict[str, Any], AfterValidator(_parameters), WithJsonSchema(_PARAMETERS_SCHEMA)] = Field(default={})
    """The rule's own settings: scalars and arrays of scalars. `bumps-in-time` has `kinds`, the kinds of formats that it judges."""


class Tolerance(Table):
    """What of a difference is not held against a reader: a kind of it, or how far a value may be from the golden and still be `close`.

    A value is close within `max_ulp`, or within both `max_abs` and `max_rel`. The bounds of the bounds are what nobody would call the
    same value any more.
    """

    kind: Literal["value", "strides", "sharing", "class", "requires_grad"] = "value"
    """What may differ: values within bounds, or anything of the other kinds. Dtypes, shapes, types and keys never may."""
    families: Several[Family] = ()
    """The families of archives this is for. Of all kinds but `value`."""
    dtype: Dtype = ""
    """The dtype of the compared values. This and the keys up to `max_rel` are of values only, which have all of them."""
    operators: Several[Annotated[str, Field(pattern=OPERATOR)]] = ()
    """The operators it is for: 'aten::gelu.out' (one overload), 'aten::gelu' (all of them), or '*' (any program)."""
    max_ulp: Annotated[int, Field(ge=0, le=256)] = 0
    """Units in the last place of the dtype (of each component, for complex dtypes)."""
    max_abs: Annotated[float, Field(ge=0, le=1e-2)] = 0
    """Absolute difference; matters around zero, where one step in the last place is tiny."""
    max_rel: Annotated[float, Field(ge=0, le=1)] = 0
    """The same over the magnitude of the greater of the two values: what is small must still be about the same number. For any program
    at most 0.1; more only for operators that are named, in which terms may cancel completely."""
    reason: Text
    """Why this much, or why nobody was promised this."""

    def covers(self, distances: Distances) -> bool:
        """Whether every element is within it."""
        beyond = distances.steps > self.max_ulp
        return bool(((distances.gap[beyond] <= self.max_abs) & (distances.relative[beyond] <= self.max_rel)).all())

    def specificity(self, operators: Collection[str]) -> int:
        """How closely this entry fits a program of these operators: 3 one overload, 2 an operator, 1 any, 0 not at all."""
        named = set(self.operators)
        if named.intersection(operators):
            return 3 if any("." in operator for operator in named.intersection(operators)) else 2
        if named.intersection(operator.partition(".")[0] for operator in operators):
            return 2
        return 1 if "*" in named else 0


class Covers(Table):
    """A part of what a waiver is for: the cells of these recipes, writers, readers and load options that have this outcome.

    What differs in them is pinned by ``waivers.lock``. Both sets must end where cells end: the oldest and the newest writer and
    reader of the corpus that are in them must have such a cell.
    """

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["writers"]}, {"required": ["synthetic"]}]})

    outcome: Literal["different", "refused", "raised", "crashed", "timed-out", "relaxed", "unstable"]
    """What there is instead of the value that was written."""
    recipes: Several[Annotated[str, Field(pattern=NAME)]] | None = None
    """The recipes, each of which must have such a cell. Absent where every archive of the families is concerned, or where what an
    archive must have to be concerned is not known here: then with `says`; a new recipe needs no edit."""
    families: Several[Family] | None = None
    """The families of archives; any unless given."""
    writers: Releases | None = None
    """The releases that wrote the archives; open to the future where the cause is. Either this or `synthetic`."""
    synthetic: Literal[True] | None = None
    """Archives of which no release wrote any. Either this or `writers`."""
    readers: Releases
    """The releases that read them; open to the future where the cause is."""
    options: Several[Identifier] = ("default",)
    """The sets of load options."""
    says: Text | None = None
    """What the message of such a cell holds, word for word: 'Weights only load failed', 'SIGABRT while loading'."""


class Waiver(Table):
    """An exception: one cause in reality that is known, explained and pinned down to what differs."""

    model_config = ConfigDict(json_schema_extra={"anyOf": [{"required": ["covers"]}, {"required": ["findings"]}]})

    id: Identifier
    """The waiver's name, also that of its file."""
    title: Annotated[str, Field(min_length=1, max_length=100, pattern=ONE_LINE)]
    """What happened, in one line for people."""
    covers: Several[Covers] | None = None
    """The cells that it is for."""
    findings: Several[Text] | None = None
    """The ids of the findings that it is for, where they are about no cells, as the report prints them."""
    reason: Text
    """Why this is accepted."""
    evidence: Text
    """What shows that the cause is understood."""
    owner: Text
    """Who answers for it."""
    expires: dt.date | None = None
    """The first day on which it no longer holds; only where the thing can still change."""

    def expired(self, as_of: dt.date) -> bool:
        """Whether the waiver no longer holds on that day."""
        return self.expires is not None and as_of >= self.expires


class WeightsOnly(Table):
    """What `torch.load(weights_only=True)` takes. What holds for a release is what all tables with it say together."""

    default: bool | None = None
    """The value of the argument where none is given."""
    globals: Several[Annotated[str, Field(pattern=GLOBAL)]] | None = None
    """What a pickle may name without the user's leave."""
    opcodes: Several[Annotated[str, Field(pattern=OPCODE)]] | None = None
    """The opcodes that are taken, by the names of pickletools; any other is refused when it is met."""
    blocked: Several[Text] | None = None
    """Modules nothing of which may be named, not even with the user's leave."""
    renames: Literal["never", "protocol-2", "always"] | None = None
    """When names of Python 2 are looked up under those of Python 3: in pickles that state protocol 2, or in all."""
    objects: Literal["none", "safe", "allowed"] | None = None
    """Of which classes besides its own NEWOBJ and BUILD are taken: of none, of those that the user allowed, of all that are allowed."""
    adds: bool | None = None
    """Whether the user can allow more (torch.serialization.add_safe_globals)."""
    nested: bool | None = None
    """Whether a class that the user allowed is known by its qualified name, `Outer.Inner`; else by its own, `Inner`."""
    setitem: Several[Text] | None = None
    """Of which classes SETITEM and SETITEMS are taken; '*' where nobody asks."""
    appends_safe: bool | None = None
    """Whether APPEND and APPENDS are taken of list subclasses that the user allowed."""
    tar: bool | None = None
    """Whether the tar container of 0.1 is taken."""
    torchscript: bool | None = None
    """Whether an archive of TorchScript is taken, by handing it to torch.jit.load."""


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
    """Instead of both: the newest patch of every minor line as of `settled`, and every release after that day."""
    settled: dt.date | None = None
    """The day up to which only the newest patch of a line counts. Every later release joins, and stays."""
    besides: Several[ReleaseName] = ()
    """Releases that write and read besides those of `lines`."""

    def resolved(self, releases: Iterable[CalendarRelease]) -> CorpusScope:
        """The same scope with its writers and readers named, whichever way it was written."""
        dated = [{"version": release.version, "date": release.date} for release in releases]
        writers, readers = corpus_scope(self.model_dump(), dated)
        return CorpusScope(writers=writers, readers=readers)


class PolicyTable(CorpusScope):
    """What holds for the policy as a whole, and which releases the corpus must cover."""

    name: Identifier
    """The policy's name."""
    in_force_from: dt.date
    """The day from which the project promises what this policy says."""
    forward_window_days: NonNegativeInt
    """A reader that is at most this many days OLDER than the writer must still load and run what it wrote."""
    nightly_index: Annotated[str, Field(pattern=URL)] | None = None
    """The index of `nightly:DATE`, where neither an option nor the environment names another; its page of torch is `torch/` below it."""
    profiles: Several[Profile] = ()
    """Other readings of the same promises, for --profile. What PyTorch promises is the policy itself, without any profile."""


class Change(Table):
    """An operator that computes something else from a release on."""

    id: Annotated[str, Field(pattern=IDENTIFIER)]
    """Its name."""
    operators: Several[Annotated[str, Field(pattern=OPERATOR)]]
    """Which operators; their forms in place and with `out=` are meant, too."""
    since: ReleaseName
    """The first release that behaves in the new way."""
    kind: Literal["value", "type", "shape", "refused", "accepted"]
    """What is another: the numbers, the dtype, the shape; or it raises where it gave a value; or the other way round."""
    out_of_range: bool = False
    """Whether only arguments outside of their range show it, such as an infinite step or a number that stands for no reduction. Reports of
    releases list the change; `inspect`, which does not know the arguments of a program, leaves it out."""
    file_format: PositiveInt | None = None
    """The file format version that announces the change; absent where none does."""
    before: Text
    """What it did until then."""
    after: Text
    """What it does since."""
    evidence: Text
    """What was run to see it."""
    refusal: Several[Text] | None = None
    """What the error of the side that raises holds, one of these, word for word. A reader that gives a value where the writer raised
    so does what this change says; without it the change explains no such reader."""
    waivers: Annotated[tuple[Identifier, ...], Field(strict=False)] = ()
    """Waivers whose cause is this very change: a report tells them as one item."""
    deprecations: Annotated[tuple[Identifier, ...], Field(strict=False)] = ()
    """Deprecations whose event in the same release is this very change: a report tells them as one item."""
