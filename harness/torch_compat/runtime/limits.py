"""How much time and memory programs of others may take.

The budgets are in :class:`Limits`. A program pays in three ways: a step for each call of a function and each round of a loop
(:class:`torch_compat.runtime.values.Steps`), work for operators whose cost is not in proportion to their tensors (matrix products,
convolutions), and a look at clock and memory whenever it has made enough tensors, lists and texts. So no program ends a process by
its appetite, but one operator may go beyond a limit before it is noticed: :func:`bound_memory` is the hard limit of a process.
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
LARGE = 1 << 22  # elements of an array before which memory is looked at
ITEM = 8  # bytes of an item of a list; a character of a text has fewer
LOOK = 1 << 26  # bytes that are made between two looks at clock and memory


class Exhausted(Raised):
    """A budget is spent. No program can keep this error for later, as a future keeps others: it ends the call."""


class Limits(NamedTuple):
    """What one call of a program, or loading it, may cost.

    Attributes:
        steps: calls of functions and rounds of loops.
        seconds: of the clock.
        memory: bytes by which the process may grow.
        elements: of one tensor.
        repeated: elements of a view that has more of them than its storage, as an expanded tensor: operators make copies of it.
        work: multiplications and the like of operators that do more than look at each element.
    """

    steps: int = 1 << 28
    seconds: float = 600.0
    memory: int = ROOM
    elements: int = 1 << 31
    repeated: int = 1 << 27
    work: int = 1 << 38


LIMITS = Limits()


class Meter(threading.local):
    """What the program that runs in this thread has spent.

    Attributes:
        limits: what it may spend.
    """

    def __init__(self) -> None:
        self.limits = LIMITS
        self._made = 0
        self._worked = 0
        self._deadline = float("inf")
        self._most = 0

    def begin(self, limits: Limits) -> None:
        """A call begins: nothing is spent."""
        self.limits = limits
        self._made = 0
        self._worked = 0
        self._deadline = time.monotonic() + limits.seconds
        self._most = 0

    def tensor(self, array: Any) -> None:
        """Pay for a tensor.

        Raises:
            Raised: it is too large, or one of the budgets is spent.
        """
        if array.size > self.limits.elements:
            self.too_large(array.size)
        self._made += array.size if array.base is None else 1024
        if self._made > LOOK:
            self.look()

    def array(self, count: int) -> None:
        """An operator is about to make an array of so many elements; few have more than 16 bytes while they are computed.

        Raises:
            Raised: there is no room for it.
        """
        if count > self.limits.elements:
            self.too_large(count)
        if count > LARGE:
            self._look_at_memory(16 * count)

    def too_large(self, count: int) -> None:
        """Refuse a tensor.

        Raises:
            Raised: always.
        """
        said = f"the program needs more memory than the limit: a tensor of {count if count < 1 << 64 else hex(count)[:40]} elements; the limit is {self.limits.elements}"
        raise Exhausted(said, code="too-large")

    def read(self, count: int) -> None:
        """Pay for the elements of a tensor that an operator looks at.

        Raises:
            Raised: one of the budgets is spent.
        """
        self._made += count
        if self._made > LOOK:
            self.look()

    def items(self, count: int) -> None:
        """A list or a text of so many items is about to be made.

        Raises:
            Raised: one of the budgets is spent, or there is no room for it.
        """
        self._made += ITEM * count
        if self._made > LOOK:
            self.look()
        if count > LARGE:
            self._look_at_memory(ITEM * count)

    def work(self, count: int) -> None:
        """Pay for what an operator is about to do, in multiplications or the like.

        Raises:
            Raised: it is more than a program may do.
        """
        self._worked += count
        if self._worked > self.limits.work:
            raise Exhausted(
                f"the program does more work than the limit: more than {self.limits.work} multiplications", code="work-limit"
            )

    def look(self) -> None:
        """Look at clock and memory.

        Raises:
            Raised: a limit is exceeded.
        """
        self._made = 0
        if time.monotonic() > self._deadline:
            raise Exhausted(f"the program takes longer than {self.limits.seconds:g} s", code="time-limit")
        self._look_at_memory(0)

    def prepare(self) -> None:
        """Open what tells how much memory there is, before the file system is shut off."""
        self._look_at_memory(0)

    def _look_at_memory(self, more: int) -> None:
        resident = _resident()
        if not self._most:
            self._most = resident + self.limits.memory
        if resident + more > self._most:
            said = f"the program needs more memory than the limit: more than {self.limits.memory} bytes"
            raise Exhausted(said, code="memory-limit")


meter = Meter()


def _statm() -> Callable[[], int]:
    """How to find out how many bytes of memory this process holds; 0 where the system does not tell.

    The file that tells is opened once and stays open: a process that is shut off from the file system cannot open it later.
    """
    if not sys.platform.startswith("linux"):
        return lambda: 0
    page = os.sysconf("SC_PAGE_SIZE")
    held: dict[int, int] = {}

    def resident() -> int:
        process = os.getpid()
        if process not in held:  # the file of the process that this one was forked from tells of that one
            for stale in held.values():
                os.close(stale)
            held.clear()
            held[process] = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
        return int(os.pread(held[process], 128, 0).split()[1]) * page

    return resident


_resident = _statm()


def bound_memory(room: int = ROOM) -> bool:
    """Let this process hold that many bytes more than it does now, from here on; what needs more fails, and takes nothing.

    A program that asks for a tensor that is too large is then told that there is no memory for it, whatever operator asks, and
    however much of the machine's memory could be promised to it. It counts for the whole process: call it in one that does
    nothing else.

    Returns:
        Whether this system keeps to such a limit.
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
