"""Limits on the cost of reading one file: work, expanded bytes, bytes read for checksums, objects, memory.

A small file can demand hours of work or gigabytes of memory: zeros that inflate to a thousand times their size, sixty tuples that share
each other, forty thousand members on the same bytes. Each of these has its own limit in the code that reads it; an allowance bounds
their total for everything in one file, including archives inside it.

All amounts are counts, never clocks, so a file gets the same answer on every machine. One unit of *work* stands for at most about 0.1
microseconds of CPython 3.11 on a 2.5 GHz machine. The prices of single steps (:data:`PICKLE`, ...) were calibrated with the files of
``tools/faults/bombs.py``: each price is the slowest step of its kind in those files, rounded up.

There are two sizes: :meth:`Allowance.to_inspect` keeps `inspect` within 1 s plus 20 ms for each MB of the file, and within 512 MB of
memory; :meth:`Allowance.to_load` is for callers that need the values, and keeps everything except data within about 2 GB.
"""

from __future__ import annotations

from typing import Any, NoReturn

from torch_compat.errors import Unsafe
from torch_compat.words import count_of

__all__ = ["CALL", "FIND_PER_MB", "HASHED", "JSON", "MB", "MEMBER", "NAME", "NESTED", "PICKLE", "SOURCE", "TABLE", "Allowance"]

MB = 1_000_000
HASHED = 64 << 30  # maximum size in bytes of a file that is read completely: for its digest, for checksums, for zeros

# Prices of single steps, in units of work
PICKLE = 150  # starting to read a pickle
MEMBER = 200  # a member of a zip or tar archive: its entry, its headers, its names
FIND_PER_MB = 3_000  # searching a megabyte for a signature
TABLE = 60  # a table of a flatbuffer
SOURCE = 8  # a mark of TorchScript source: a bracket, a comma, a quote, an equals sign
CALL = 200  # an operator that is called in a new way, and looking up the releases that have it
NESTED = 1_500  # an archive that is a record of another one
JSON = 30  # a node, an argument, a tensor of a JSON document
NAME = 60  # a name to look up: a global of a pickle, a module of a package


class Allowance:
    """The remaining budget for one file.

    Attributes:
        work: units of work.
        expanded: bytes that may be inflated, or copied out of the file as an archive of their own.
        whole: bytes of one deflated record that is needed as a whole.
        objects: containers, tensors and descriptions in all pickles.
        memo: memo entries of all pickles.
        memory: bytes of texts and byte strings in all pickles; texts count twice.
        copied: elements that calls in pickles copy.
        nodes: parts of keys in pickles.
        limits: the limits of one pickle (:class:`torch_compat.pickles.recorder.PickleLimits`), as last calculated.
        complete: whether all bytes of the file are read; False when a file of more than :data:`HASHED` bytes is inspected.
        omitted: checks skipped because of the size of the file, by name, with the reason.
    """

    __slots__ = (
        "complete", "copied", "expanded", "limits", "memo", "memory", "nodes", "objects", "omitted", "size", "whole", "work",
    )  # fmt: skip

    def __init__(
        self, size: int, *, work: int, expanded: int, whole: int, objects: int, memo: int, memory: int, copied: int, nodes: int
    ) -> None:
        self.size = size
        self.work = work
        self.expanded = expanded
        self.whole = whole
        self.objects = objects
        self.memo = memo
        self.memory = memory
        self.copied = copied
        self.nodes = nodes
        self.limits: Any = None
        self.complete = True
        self.omitted: dict[str, str] = {}

    @classmethod
    def to_inspect(cls, size: int) -> Allowance:
        """Return the allowance for `inspect` and for facts, for a file of ``size`` bytes.

        Work is 0.5 s and 10 ms per MB; starting Python takes 0.1 s to 0.2 s, a digest and checksums 3 to 8 ms per MB. Memory covers 2**20
        objects of at most 300 bytes, their identities while their depth is measured (100 bytes), and 64 MB of texts at up to 4 bytes
        per byte of UTF-8.
        """
        allowance = cls.__new__(cls)  # runs for every file; passing keywords would take longer than the rest
        allowance.size = size
        allowance.work = 5_000_000 + 100_000 * (size // MB)
        allowance.expanded = (96 << 20) + 2 * size
        allowance.whole = 64 << 20
        allowance.objects = allowance.memo = allowance.nodes = 1 << 20
        allowance.memory = 128 << 20
        allowance.copied = 1 << 19
        allowance.limits = None
        allowance.complete = size <= HASHED
        allowance.omitted = {}
        return allowance

    @classmethod
    def to_load(cls, size: int) -> Allowance:
        """Return the allowance for loading the values of a file of ``size`` bytes, which may be as large as the file."""
        return cls(
            size, work=(1 << 28) + 1_000_000 * (size // MB), expanded=(1 << 30) + 8 * size, whole=8 << 30,
            objects=1 << 21, memo=1 << 22, memory=(1 << 30) + 2 * size, copied=1 << 23, nodes=1 << 23,
        )  # fmt: skip

    @property
    def spent(self) -> bool:
        """Whether any of the budgets is spent, so that nothing more is read."""
        return self.work < 0 or self.expanded < 0

    def spend(self, units: int) -> None:
        """Pay for work.

        Raises:
            Unsafe: the work allowed for a file of this size is spent.
        """
        self.work -= units
        if self.work < 0:
            self.refuse("requires more work than the limit for a file of its size")

    def expand(self, count: int) -> None:
        """Pay for bytes that are about to be inflated or copied.

        Raises:
            Unsafe: the limit is exceeded, by these bytes or already before.
        """
        self.expanded -= count
        if self.expanded < 0:
            self.refuse("the records expand to more bytes in total than the limit for a file of its size")
        self.spend(count >> 5)

    def refuse(self, text: str) -> NoReturn:
        """Refuse the file.

        Raises:
            Unsafe: always.
        """
        raise Unsafe(f"{text} ({count_of(self.size, 'byte')})", code="too-large")

    def omit(self, name: str, because: str) -> None:
        """Record that something was skipped, and why."""
        self.omitted.setdefault(name, because)
