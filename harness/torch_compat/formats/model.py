"""The facts about an archive: plain objects, filled by one format module and read by all other code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from torch_compat.torchscript.calls import Call

if TYPE_CHECKING:
    from torch_compat.archive import Damage
    from torch_compat.pickles import Unpickled

__all__ = ["NO_DIRECTORY", "Call", "Facts", "Producer", "StorageRecord"]

NO_DIRECTORY = "no-directory"
"""The code of the damage of a zip archive whose central directory is lost."""


class StorageRecord:
    """One storage, and the location of its bytes.

    Attributes:
        key: as the pickle names it.
        dtype: of its elements, ``float32``; ``uint8`` for an untyped storage; None if the file does not state it.
        nbytes: its size.
        offset: of its first byte in the file; None if its record is compressed or missing.
        calculated_offset: the same, calculated from sizes alone after the first storage; None if the layout does not allow it.
        record: its record; None if the container has no records.
        absent: no data was ever written for it (``skip_data``).
        why: why there is no calculated offset; None if there is one.
        device: its device when it was saved, as ``cpu`` or ``cuda:0``; None if the archive does not state it.
    """

    __slots__ = ("absent", "calculated_offset", "device", "dtype", "key", "nbytes", "offset", "record", "why")

    def __init__(
        self, key: str, dtype: str | None, nbytes: int, offset: int | None, calculated_offset: int | None = None,
        record: str | None = None, absent: bool = False, why: str | None = None, device: str | None = None,
    ) -> None:  # fmt: skip
        self.key = key
        self.dtype = dtype
        self.nbytes = nbytes
        self.offset = offset
        self.calculated_offset = calculated_offset
        self.record = record
        self.absent = absent
        self.why = why
        self.device = device

    def _parts(self) -> tuple[Any, ...]:
        return tuple([getattr(self, name) for name in self.__slots__])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StorageRecord) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"StorageRecord({', '.join(f'{name}={getattr(self, name)!r}' for name in self.__slots__)})"


class Producer(NamedTuple):
    """The known facts about the writer.

    Attributes:
        torch: the exact release that the archive states, ``2.8.0+cu128``; None if it states none, as in nearly all archives.
        first: the first minor line that writes such records, ``2.1``; None if that is older than every known line.
        last: the last one; None while the newest still does.
        python: the Python that the archive states.
        because: the records that show it.
    """

    torch: str | None = None
    first: str | None = None
    last: str | None = None
    python: str | None = None
    because: tuple[str, ...] = ()


class Facts:
    """All facts found by inspecting an archive, without opinions or policy.

    Attributes:
        path: as it was given.
        size: of the file, in bytes.
        family: ``torch-save``, ``torchscript``, ``mobile``, ``package``, ``export`` or ``distributed``.
        container: ``zip``, ``stream``, ``tar``, ``flatbuffer`` or ``pickle``.
        layout: the id of the module of this package that read it.
        name: family, container and version in words.
        versions: the version numbers found inside, by kind, as in :class:`torch_compat.formats.Identity`.
        export_schema: the whole schema version of an exported program, ``8.20``.
        producer: what is known about the writer; None if nothing is.
        names: the records of a zip archive, in order; ``records`` the same as a set.
        calls: the distinct shapes in which operators are called.
        pickles: what was unpickled, by record; containers without records use the name of the part.
        storages: in the order in which the pickles name them.
        held: the records that contain them.
        byteorder: of the elements of storages, ``little`` or ``big``; None if the archive does not state it.
        storage_alignment: what the data of records is aligned to.
        damage: contradictions of its own format, and ambiguities.
        sources: TorchScript source by record.
        extra: facts that only one format has (``opset_version``, ``extern_modules``...).
    """

    __slots__ = (
        "byteorder", "calls", "container", "damage", "export_schema", "extra", "family", "held", "layout", "name", "names", "path",
        "pickles", "producer", "records", "size", "sources", "storage_alignment", "storages", "versions",
    )  # fmt: skip

    def __init__(
        self,
        path: str,
        size: int,
        family: str = "",
        container: str = "",
        *,
        versions: dict[str, int] | None = None,
        export_schema: str | None = None,
        names: tuple[str, ...] = (),
        records: frozenset[str] = frozenset(),
        calls: frozenset[Call] = frozenset(),
        pickles: dict[str, Unpickled] | None = None,
        damage: list[Damage] | None = None,
        sources: dict[str, str] | None = None,
        extra: dict[str, Any] | None = None,
    ) -> None:
        self.path = path
        self.size = size
        self.family = family
        self.container = container
        self.layout = ""
        self.name = ""
        self.versions = {} if versions is None else versions
        self.export_schema = export_schema
        self.producer: Producer | None = None
        self.names = names
        self.records = records
        self.calls = calls
        self.pickles = {} if pickles is None else pickles
        self.storages: list[StorageRecord] = []
        self.held: set[str | None] = set()
        self.byteorder: str | None = None
        self.storage_alignment: int | None = None
        self.damage = [] if damage is None else damage
        self.sources = {} if sources is None else sources
        self.extra = {} if extra is None else extra

    @property
    def operators(self) -> list[str]:
        """The operators that it calls: ``aten::add.Tensor``; without overload if the file does not store it."""
        return sorted({f"{call.name}.{call.overload}" if call.overload else call.name for call in self.calls})

    @property
    def globals(self) -> list[str]:
        """The globals that its pickles name, each once, in the order of first use."""
        return list(dict.fromkeys(global_.path for unpickled in self.pickles.values() for global_ in unpickled.globals))

    @property
    def incomplete(self) -> bool:
        """Whether it is a zip archive whose central directory is lost, so that records may be lost as well.

        What an archive needs, and even its family, depends on all of its records: the facts are only what is left.
        """
        return self.container == "zip" and any(damage.code == NO_DIRECTORY for damage in self.damage)

    def code(self) -> dict[str, str]:
        """TorchScript source by record."""
        return self.sources
