"""The results of inspecting a file, and their JSON form."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from torch_compat.errors import NoArchive
from torch_compat.formats.kinds import kind_of
from torch_compat.loadability.archive_features import COMPILED
from torch_compat.loadability.changes import changes_of
from torch_compat.loadability.load_calls import devices_of
from torch_compat.loadability.loading_releases import PROGRAMS
from torch_compat.pickles import cut, dangerous, tensors
from torch_compat.pickles.dangers import OUTSIDE, dangerous_operator

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from torch_compat.archive import Damage
    from torch_compat.errors import ArchiveError, HarnessError
    from torch_compat.formats import Facts, Producer
    from torch_compat.loadability import Needs
    from torch_compat.loadability.changes import ChangeOfMeaning
    from torch_compat.loadability.load_calls import RequiredModule

__all__ = ["NATIVE", "Inspected"]


class Inspected:
    """The results of inspecting one file, as far as it could be read.

    Attributes:
        path: the path as given.
        size, sha256: of the file; None if it could not be opened, the digest also if the file is too large.
        omitted: checks skipped because the file is too large, by name, with the reason.
        facts: None if the file is not an archive, or nothing in it can be read.
        damage: contradictions and ambiguities in the file.
        needs: None if the file cannot be read to its end, since its needs are then unknown.
        error: why it could not be read further, or the first damage; None if the whole file is sound.
        other: the kind of a file that is not a PyTorch archive; None for archives, and if the kind is unknown.
        code: the code for ``other``; None for archives.
        contains: the PyTorch archives in it, if it is an archive of other files.
        fails: the conditions of ``--fail-on`` that it meets, in their order.
    """

    __slots__ = ("code", "contains", "damage", "error", "facts", "fails", "needs", "omitted", "other", "path", "sha256", "size")

    def __init__(self, path: str) -> None:
        self.path = path
        self.size: int | None = None
        self.sha256: str | None = None
        self.facts: Facts | None = None
        self.damage: list[Damage] = []
        self.needs: Needs | None = None
        self.omitted: dict[str, str] = {}
        self.error: HarnessError | None = None
        self.other: str | None = None
        self.code: str | None = None
        self.fails: list[str] = []
        self.contains: list[Inspected] = []

    def row(self) -> dict[str, Any]:
        """The JSON object for this file."""
        row: dict[str, Any] = {"path": self.path, "sha256": self.sha256, "size": self.size}
        if self.facts is None:
            row.update(UNKNOWN)
            row["kind"], row["name"] = self.kind, self.other
            row["contains"] = [inner.short() for inner in self.contains]
        else:
            row.update(_identified(*_identity(self.facts)))
            row.update(NOT_SAID if self.needs is None else _needed(self.needs))
            row["changes_of_meaning"] = _changed(self.changes_of_meaning)
            row.update(_held(self.facts))
            row["kind"], row["about"] = kind_of(self.facts)
            row["contains"] = []
        row["sixteen_bits"] = self.sixteen_bits
        self._judge(row)
        return row

    def short(self) -> dict[str, Any]:
        """The JSON object for this file as a part of another file."""
        row = self.row()
        return {name: row[name] for name in SHORT}

    def json(self) -> str:
        """The result of :meth:`row` as :func:`json.dumps` writes it. Faster, since many archives have the same identity and needs."""
        if self.facts is None or self.needs is None:
            return json.dumps(self.row())
        rest = _held(self.facts)
        rest["kind"], rest["about"] = kind_of(self.facts)
        rest["contains"] = []
        rest["sixteen_bits"] = self.sixteen_bits
        self._judge(rest)
        return (
            f'{{"path": {json.dumps(self.path)}, "sha256": {_quoted(self.sha256)}, "size": {self.size}, '
            f"{_identified_text(*_identity(self.facts))}, {_needed_text(self.needs)}, "
            f'"changes_of_meaning": {_changes_text(self.changes_of_meaning)}, {json.dumps(rest)[1:]}'
        )

    def _judge(self, row: dict[str, Any]) -> None:
        """Add dangers, damage, omitted checks, failed conditions and the error to the row."""
        row["dangers"] = [{"global": name, "record": record, "because": because} for name, record, because in self.dangers]
        row["damage"] = [{"code": damage.code, "record": damage.record, "detail": damage.detail} for damage in self.damage]
        row["omitted"] = [{"what": what, "because": because} for what, because in self.omitted.items()]
        row["fails"] = self.fails
        error = self.error
        row["error"] = None if error is None else {"code": error.code, "message": self.message}

    @property
    def changes_of_meaning(self) -> tuple[ChangeOfMeaning, ...]:
        """The operators of a program whose results differ between the releases that load it."""
        return () if self.facts is None or self.needs is None else changes_of(self.facts, self.needs)

    @property
    def kind(self) -> str | None:
        """The kind of file, for display; None if unknown."""
        if self.facts is not None:
            return kind_of(self.facts)[0]
        return None if self.other is None else NAMED.get(self.code or "", OTHER)

    def fail(self, error: ArchiveError, *, named: bool) -> None:
        """Record why the file cannot be read; a file that was not named and is not an archive is not an error."""
        if isinstance(error, NoArchive):
            self.other, self.code = error.what, error.code
            if not named:
                self.damage = []  # nothing is expected of a file that PyTorch did not write
                return
        self.error = error

    @property
    def sixteen_bits(self) -> list[dict[str, Any]]:
        """For a program with float16 or bfloat16 tensors, its operators that some releases refuse to compute with them on the CPU.

        It is unknown before the program runs which tensors reach which operator: these are the operators of the program, each with the
        releases that compute it.
        """
        facts = self.facts
        if facts is None or facts.family not in COMPILED:
            return []
        results = []
        held = {storage.dtype for storage in facts.storages}
        for dtype in ("bfloat16", "float16"):
            if dtype not in held:
                continue
            from torch_compat.operators.halves import computed_by  # noqa: PLC0415 - few archives contain 16-bit floats

            for operator in facts.operators:
                told = computed_by(operator.partition(".")[0], dtype)
                if told is not None:
                    known, bits = told
                    spans = [{"from": first, "to": last} for first, last in known.spans(bits)]
                    results.append({"dtype": dtype, "operator": operator, "computed_by": spans})
        return results

    @property
    def dangers(self) -> list[tuple[str, str, str]]:
        """Globals in the file that are known to do harm when called: the name, the record, the reason.

        For programs, also operators that reach beyond their tensors, and tensors that leave their storage. The harness does not call them;
        loading the file without ``weights_only`` may. An empty list is no guarantee.
        """
        facts = self.facts
        if facts is None:
            return [
                (name, f"{inner.path.removeprefix(self.path)[1:]}: {record}", because)
                for inner in self.contains
                for name, record, because in inner.dangers
            ]
        results = [
            (global_.path, record, because)
            for record, unpickled in facts.pickles.items()
            for global_ in unpickled.globals
            if (because := _danger(global_)) is not None
        ]
        if facts.family in PROGRAMS:
            results += _of_program(facts)
        return [*results, *((NATIVE, item["record"], RUNS) for item in facts.extra.get("native", ()))]

    @property
    def message(self) -> str:
        """The error without the path; empty if there is no error."""
        error = self.error
        if error is None:
            return ""
        where = (error.where or "").removeprefix(self.path).lstrip(", ")
        text = cut(f"{where}: {error.message}" if where else error.message, LONGEST)
        return f"{text} ({error.hint})" if error.hint else text


def _of_program(facts: Facts) -> Iterator[tuple[str, str, str]]:
    """The operators of a program that reach beyond their tensors, and the first tensor of each record that leaves its storage."""
    for name in sorted({call.name for call in facts.calls if dangerous_operator(call.name)}):
        word = name.partition("::")[2]
        record = next((record for record, text in facts.sources.items() if word in text), "")
        yield name, record, dangerous_operator(name) or ""
    for record, unpickled in facts.pickles.items() if facts.storages else ():
        for path, tensor in tensors(unpickled.value):
            if tensor.numel and not tensor.fits:
                yield cut(f"tensor {'.'.join(map(str, path))}", 200), record, OUTSIDE
                break


def _quoted(digest: str | None) -> str:
    return "null" if digest is None else f'"{digest}"'


NATIVE = "native code"
"""The text of the danger reported for a record that is a compiled library."""
RUNS = "torch._inductor.aoti_load_package loads into the process and runs without restriction; torch-compat never does"
OTHER = "other"
"""The kind of a file that is not a PyTorch archive."""
NAMED = {"safetensors": "safetensors", "gguf": "gguf", "shard-index": "shard-index"}
"""The kinds of model files, keyed by the code of the file."""
LONGEST = 2000  # maximum length of an error in characters
_danger = lru_cache(maxsize=4096)(dangerous)  # the same few names occur in nearly every file

SHORT = ("path", "sha256", "size", "kind", "family", "container", "name", "minimum_release", "maximum_release", "error")
UNKNOWN: dict[str, Any] = {
    "kind": None, "about": None, "contains": [], "family": None, "container": None, "name": None, "format_version": None, "bytecode_version": None,
    "schema_version_export": None, "producer": None, "readable_by": None, "minimum_release": None, "maximum_release": None,
    "reasons": [], "operators": [], "globals": [], "weights_only": None, "weights_only_default": None, "byteorder": None,
    "storage_alignment": None, "storages": [], "dangers": [], "damage": [], "omitted": [], "how_to_load": None, "needs": None,
    "devices": [], "advisories": None, "changes_of_meaning": [],
}  # fmt: skip


Identity = tuple[str, str, str, int | None, int | None, str | None, "Producer | None"]


def _identity(facts: Facts) -> Identity:
    versions = facts.versions
    return (
        facts.family, facts.container, facts.name, versions.get("file-format"), versions.get("bytecode"), facts.export_schema,
        facts.producer,
    )  # fmt: skip


def _identified(*identity: *Identity) -> dict[str, Any]:
    family, container, name, file_format, bytecode, schema, producer = identity
    return {
        "family": family,
        "container": container,
        "name": name,
        "format_version": file_format,
        "bytecode_version": bytecode,
        "schema_version_export": schema,
        "producer": _produced(producer),
    }


@lru_cache(maxsize=512)
def _identified_text(*identity: *Identity) -> str:
    return json.dumps(_identified(*identity))[1:-1]


def _held(facts: Facts) -> dict[str, Any]:
    return {
        "operators": facts.operators,
        "globals": facts.globals,
        "byteorder": facts.byteorder,
        "storage_alignment": facts.storage_alignment,
        "devices": list(devices_of(facts)),
        "storages": [
            {
                "key": storage.key,
                "dtype": storage.dtype,
                "nbytes": storage.nbytes,
                "offset": storage.offset,
                "calculated_offset": storage.calculated_offset,
                "absent": storage.absent,
                "device": storage.device,
            }
            for storage in facts.storages
        ],
    }


# The needs of an archive that cannot be read to its end are unknown.
NOT_SAID: dict[str, Any] = {
    name: UNKNOWN[name]
    for name in (
        "readable_by",
        "minimum_release",
        "maximum_release",
        "reasons",
        "weights_only",
        "weights_only_default",
        "how_to_load",
        "needs",
        "advisories",
    )
}


def _needed(needs: Needs) -> dict[str, Any]:
    return {
        "readable_by": _spans(needs.readable_by),
        "minimum_release": needs.minimum_release,
        "maximum_release": needs.maximum_release,
        "reasons": [{"needs": reason.needs, "because": reason.because} for reason in needs.reasons],
        "weights_only": {
            release: None if refusal is None else {"code": refusal.code, "detail": refusal.detail}
            for release, refusal in needs.weights_only.items()
        },
        "weights_only_default": dict(needs.weights_only_default),
        "how_to_load": [
            {
                "releases": _spans(way.releases),
                "call": way.call,
                "arguments": dict(way.arguments),
                "safe_globals": [item.path for item in way.safe_globals],
                "runs_code": way.runs_code,
                "needs": _modules(way.needs),
                "code": f"import torch; {way.code}" if way.call != "pickle.load" else way.code,
            }
            for way in needs.how_to_load
        ],
        "needs": _modules(needs.beside),
        "advisories": [
            {
                "id": advisory.id,
                "releases": _spans(advisory.releases),
                "call": advisory.call,
                "summary": advisory.summary,
                "safe": advisory.safe,
                "reference": advisory.reference,
            }
            for advisory in needs.advisories
        ],
    }


def _changed(changes: Iterable[ChangeOfMeaning]) -> list[dict[str, Any]]:
    return [change._asdict() for change in changes]


@lru_cache(maxsize=512)
def _changes_text(changes: tuple[ChangeOfMeaning, ...]) -> str:
    return json.dumps(_changed(changes))


def _spans(spans: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"from": first, "to": last} for first, last in spans]


def _modules(needs: Iterable[RequiredModule]) -> list[dict[str, str | None]]:
    return [{"module": cut(need.module, LONGEST), "package": need.package, "because": need.because or None} for need in needs]


@lru_cache(maxsize=512)
def _needed_text(needs: Needs) -> str:
    return json.dumps(_needed(needs))[1:-1]


def _produced(producer: Producer | None) -> dict[str, Any] | None:
    if producer is None:
        return None
    return {
        "torch": producer.torch,
        "from": producer.first,
        "to": producer.last,
        "python": producer.python,
        "because": list(producer.because),
    }
