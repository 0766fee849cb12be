"""A debug allocator: the memory of every NumPy array ends, or starts, at an inaccessible page.

numpy lets a process choose the allocator for array data (NEP 49). Here each array gets its own memory between two inaccessible pages: an
access one element past the end, or before the start, ends the process with SIGSEGV at that instruction. Which side is exact is random for
each array, but reproducible after :meth:`Guard.seed`. On the other side, the space up to the end of a page is filled with a pattern, which
is checked when the memory is freed.

Arrays over the bytes of an archive (``arrays.elements``, ``arrays.view`` of bytes) own no memory. While the guard is on, these two functions
copy the bytes first, so that the next record of the archive is not adjacent to a view.

The allocator is ``guard.c``, compiled at the first use; it needs Linux, pages of 4 KiB and a C compiler.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import mmap
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat import arrays

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Guard", "guarded", "lacking"]

SOURCE = Path(__file__).with_name("guard.c")
SET_HANDLER = (
    304  # the place of PyDataMem_SetHandler in the table of numpy's C interface, which is the same in every release since 1.22
)


class _Handler(ctypes.Structure):
    """PyDataMem_Handler in numpy's ndarraytypes.h."""

    _fields_ = [
        ("name", ctypes.c_char * 127), ("version", ctypes.c_uint8), *((name, ctypes.c_void_p) for name in ("context", "malloc", "calloc", "realloc", "free")),
    ]  # fmt: skip


def lacking() -> str:
    """What this machine lacks for guard pages; empty if nothing is missing."""
    if not sys.platform.startswith("linux") or mmap.PAGESIZE != 4096:
        return "guard pages need Linux with pages of 4 KiB"
    return "" if shutil.which("cc") else "guard pages need a C compiler named cc"


class Guard:
    """The allocator of this process. There is only one: numpy may free its memory at any later time."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(str(_built()))
        if self._library.guard_begin():
            raise MemoryError("no room for guard pages")
        functions = (
            ctypes.cast(self._library[f"guard_{name}"], ctypes.c_void_p) for name in ("malloc", "calloc", "realloc", "free")
        )
        self._handler = _Handler(b"guard pages", 1, None, *functions)
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        self._capsule = new(ctypes.addressof(self._handler), b"mem_handler", None)
        self._made, self._damaged, self._size = (
            ctypes.c_size_t.in_dll(self._library, f"guard_{name}") for name in ("made", "damaged", "damaged_size")
        )
        self._before: Any = None

    @property
    def made(self) -> int:
        """The number of arrays allocated between guard pages."""
        return self._made.value

    def seed(self, number: int) -> None:
        """Choose the exact sides from here on, reproducibly for this number."""
        self._library.guard_seed(ctypes.c_uint64(number))

    def damage(self) -> str:
        """Damage found next to freed arrays since the last call; empty if there is none."""
        count, self._damaged.value = self._damaged.value, 0
        return f"{count} writes outside an array, the last one next to an array of {self._size.value} bytes" if count else ""

    def on(self) -> None:
        """Guard every new array of this thread."""
        self._before = _set_handler(self._capsule)

    def off(self) -> None:
        """Stop guarding new arrays; existing ones stay guarded."""
        _set_handler(self._before)


def _built() -> Path:
    """The compiled allocator, built once for each version of its source and each user."""
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"torch-compat-guard-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to another user")
    library = folder / f"{digest}.so"
    if not library.exists():
        result = folder / f"{digest}.{os.getpid()}"
        subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", result, SOURCE], check=True)
        result.replace(library)
    return library


_guard = functools.lru_cache(1)(Guard)


def _set_handler(capsule: Any) -> Any:
    """Set numpy's allocation handler, and return the previous one."""
    core = sys.modules.get("numpy._core.multiarray") or sys.modules["numpy.core.multiarray"]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address = pointer(core._ARRAY_API, None)
    assert address is not None
    function = ctypes.cast(address, ctypes.POINTER(ctypes.c_void_p))[SET_HANDLER]
    assert function is not None
    return ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(function)(capsule)


@contextlib.contextmanager
def guarded() -> Iterator[Guard]:
    """Guard every array created within the block, including arrays over the bytes of an archive."""
    guard = _guard()
    elements, view = arrays.elements, arrays.view

    def own_elements(memory: Any, dtype: np.dtype[Any]) -> Any:
        result = elements(memory, dtype)
        copied = result.copy()
        copied.flags.writeable = result.flags.writeable
        return copied

    def own_view(memory: Any, *args: Any, **keywords: Any) -> Any:
        if isinstance(memory, np.ndarray):
            return view(memory, *args, **keywords)
        copied = np.empty(memoryview(memory).nbytes, np.uint8)
        copied[:] = memoryview(memory).cast("B")
        copied.flags.writeable = not memoryview(memory).readonly
        return view(copied, *args, **keywords)

    _replace(elements, own_elements)
    _replace(view, own_view)
    guard.on()
    try:
        yield guard
    finally:
        guard.off()
        _replace(own_elements, elements)
        _replace(own_view, view)


def _replace(real: Callable[..., Any], own: Callable[..., Any]) -> None:
    """Replace a function in all our modules."""
    for module in [module for name, module in sys.modules.items() if name.startswith("torch_compat")]:
        for name in [name for name, value in vars(module).items() if value is real]:
            setattr(module, name, own)
