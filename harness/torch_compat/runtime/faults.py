"""Translate Python errors while a program runs to errors of the program."""

from __future__ import annotations

from torch_compat.errors import Raised, Unsupported
from torch_compat.runtime.language.names import FILE_PREFIX

__all__ = ["CALLED", "translated"]

CALLED = "__call__"
"""The method that represents a call of the module itself."""
# Messages of NumPy for arrays that exceed any memory
TOO_LARGE = ("array is too big", "Maximum allowed dimension exceeded", "Maximum allowed size exceeded")


def translated(error: Exception) -> Exception:
    """Translate a Python error from the code of a program to an error of the program. Bugs in operators are not translated."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    inside = trace is not None and trace.tb_frame.f_code.co_filename.startswith(FILE_PREFIX)
    where = f"line {trace.tb_lineno}" if inside and trace is not None else None
    if isinstance(error, RecursionError):
        return Raised("the program calls itself too deeply", code="RuntimeError", where=where)
    if isinstance(error, MemoryError) or (isinstance(error, ValueError) and str(error).startswith(TOO_LARGE)):
        return Raised("the program needs more memory than is available", code="RuntimeError", where=where)
    if not inside:
        at = trace.tb_frame.f_code.co_name if trace is not None else "?"
        return Unsupported(f"the reference reader failed in {at}: {type(error).__name__}: {error}", code="fault")
    if isinstance(error, IndexError):
        return Raised(str(error), code="IndexError", where=where)
    if isinstance(error, KeyError):
        return Raised(f"KeyError: {error}", code="RuntimeError", where=where)
    if isinstance(error, NameError | ValueError):  # an unset variable; unpacking a list of the wrong length
        return Raised(str(error), code="RuntimeError", where=where)
    return Unsupported(f"the reference reader cannot run this: {error}", code="language", where=where)
