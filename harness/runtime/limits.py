"""How much memory a process that runs programs of others may take."""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["ROOM", "bound_memory"]

ROOM = 4 << 30


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
