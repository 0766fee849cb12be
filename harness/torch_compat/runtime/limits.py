"""Limits on the time and memory that untrusted programs may use.

:class:`Limits` has the budgets. A program pays in three ways: a step for each function call and each loop iteration
(:class:`torch_compat.runtime.values.Steps`), work for operators whose cost is not proportional to their tensors (matrix products,
convolutions), and a check of clock and memory whenever it has created enough tensors, lists and strings. So no program can exhaust the
process, but a single operator may exceed a limit before the next check: :func:`bound_memory` is the hard limit of a process.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from torch_compat.errors import Raised

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LIMITS", "ROOM", "Exhausted", "Limits", "bound_memory", "meter"]

ROOM = 4 << 30
LARGE = 1 << 22  # memory is checked before an array with this many elements is created
ITEM = 8  # bytes per list item; a character of a string has fewer
LOOK = 1 << 26  # bytes allocated between two checks of clock and memory


class Exhausted(Raised):
    """A budget is exhausted. Unlike other errors, a future cannot store this error: it always ends the call."""


class Limits(NamedTuple):
    """The maximum cost of loading a program or of one call.

    Attributes:
        steps: function calls and loop iterations.
        seconds: wall-clock time.
        memory: growth of the process in bytes.
        elements: elements of a tensor.
        repeated: elements of a view with more elements than its storage, such as an expanded tensor: operators copy it.
        work: multiplications and similar operations of operators that do more than visit each element.
    """

    steps: int = 1 << 28
    seconds: float = 600.0
    memory: int = ROOM
    elements: int = 1 << 31
    repeated: int = 1 << 27
    work: int = 1 << 38


LIMITS = Limits()


class Meter(threading.local):
    """The cost so far of the program that runs in this thread.

    Attributes:
        limits: the maximum cost.
    """

    def __init__(self) -> None:
        self.limits = LIMITS
        self._made = 0
        self._worked = 0
        self._deadline = float("inf")
        self._most = 0

    def begin(self, limits: Limits) -> None:
        """Begin a call with nothing spent."""
        self.limits = limits
        self._made = 0
        self._worked = 0
        self._deadline = time.monotonic() + limits.seconds
        self._most = 0

    def tensor(self, array: Any) -> None:
        """Pay for a tensor.

        Raises:
            Raised: the tensor is too large, or a budget is exhausted.
        """
        if array.size > self.limits.elements:
            self.too_large(array.size)
        self._made += array.size if array.base is None else 1024
        if self._made > LOOK:
            self.look()

    def array(self, count: int) -> None:
        """Check before an operator creates an array with ``count`` elements; intermediate elements rarely exceed 16 bytes.

        Raises:
            Raised: there is not enough memory.
        """
        if count > self.limits.elements:
            self.too_large(count)
        if count > LARGE:
            self._look_at_memory(16 * count)

    def too_large(self, count: int) -> None:
        """Refuse a tensor that is too large.

        Raises:
            Raised: always.
        """
        message = f"the program needs more memory than the limit: a tensor of {count if count < 1 << 64 else hex(count)[:40]} elements; the limit is {self.limits.elements}"
        raise Exhausted(message, code="too-large")

    def read(self, count: int) -> None:
        """Pay for the elements of a tensor that an operator reads.

        Raises:
            Raised: a budget is exhausted.
        """
        self._made += count
        if self._made > LOOK:
            self.look()

    def items(self, count: int) -> None:
        """Pay for a list or string with ``count`` items before it is created.

        Raises:
            Raised: a budget is exhausted, or there is not enough memory.
        """
        self._made += ITEM * count
        if self._made > LOOK:
            self.look()
        if count > LARGE:
            self._look_at_memory(ITEM * count)

    def work(self, count: int) -> None:
        """Pay for the work of an operator in advance, in multiplications or similar operations.

        Raises:
            Raised: the budget is exhausted.
        """
        self._worked += count
        if self._worked > self.limits.work:
            raise Exhausted(
                f"the program does more work than the limit: more than {self.limits.work} multiplications", code="work-limit"
            )

    def look(self) -> None:
        """Check clock and memory.

        Raises:
            Raised: a limit is exceeded.
        """
        self._made = 0
        if time.monotonic() > self._deadline:
            raise Exhausted(f"the program takes longer than {self.limits.seconds:g} s", code="time-limit")
        self._look_at_memory(0)

    def prepare(self) -> None:
        """Open the file with the memory usage before access to the file system is removed."""
        self._look_at_memory(0)

    def _look_at_memory(self, more: int) -> None:
        resident = _resident()
        if not self._most:
            self._most = resident + self.limits.memory
        if resident + more > self._most:
            message = f"the program needs more memory than the limit: more than {self.limits.memory} bytes"
            raise Exhausted(message, code="memory-limit")


meter = Meter()


def _statm() -> Callable[[], int]:
    """A function that returns the memory of this process in bytes; 0 if the system does not provide it.

    The file is opened once and stays open, since a process without access to the file system cannot open it later.
    """
    if not sys.platform.startswith("linux"):
        return lambda: 0
    page = os.sysconf("SC_PAGE_SIZE")
    held: dict[int, int] = {}

    def resident() -> int:
        process = os.getpid()
        if process not in held:  # the file that was opened before a fork reports the parent process
            for stale in held.values():
                os.close(stale)
            held.clear()
            held[process] = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
        return int(os.pread(held[process], 128, 0).split()[1]) * page

    return resident


_resident = _statm()


def bound_memory(room: int = ROOM) -> bool:
    """Limit the memory of this process to its current usage plus ``room`` bytes; larger allocations fail without allocating.

    Any operator that allocates too large a tensor then raises an out-of-memory error, even if the system overcommits memory. The limit
    applies to the whole process: call this only in a dedicated process.

    Returns:
        Whether this system enforces such a limit.
    """
    if not sys.platform.startswith("linux"):
        return False
    import resource  # noqa: PLC0415 - not on every system

    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    wanted = pages * os.sysconf("SC_PAGE_SIZE") + room
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    for known in (soft, hard):
        if known != resource.RLIM_INFINITY:
            wanted = min(wanted, known)
    resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))
    return True
