"""Every error that the harness raises on purpose: one root, small families, stable codes.

An error states what was found, what was expected, where, and what to do. Its text may change from release to release;
its type and its ``code`` may not. Errors from libraries are translated into these errors at one boundary each:

* :mod:`torch_compat.archive`: the bytes of an archive (``struct``, ``zlib``, ``mmap``)
* :mod:`torch_compat.pickles`, :mod:`torch_compat.formats`: the meaning of those bytes (``json``, ``flatbuffers``)
* :mod:`torch_compat.policy.load`: policy files (``tomllib``, pydantic)
* :mod:`torch_compat.corpus.manifest`, :mod:`torch_compat.corpus.observations`: recorded JSON lines
* :mod:`torch_compat.writes`: writing files (``OSError``)
* :mod:`torch_compat.readers`: processes, packages, interpreters (``subprocess``, ``OSError``)
"""

from __future__ import annotations

from typing import ClassVar

from torch_compat.words import count_of

__all__ = [
    "ArchiveError",
    "BuildError",
    "CorpusError",
    "Corrupt",
    "EnvironmentUnavailable",
    "HarnessError",
    "NoArchive",
    "NothingSelected",
    "PolicyError",
    "Problem",
    "Raised",
    "ReaderError",
    "Refused",
    "Unsafe",
    "Unsupported",
    "Untrusted",
    "UsageError",
    "WriteError",
    "WrongVersion",
]


class HarnessError(Exception):
    """The root of all errors. Never raised itself.

    Parameters:
        message: what was found and what was expected, one sentence.
        where: file, record, offset or line, as far as known.
        hint: what the user can do about it.
        code: a stable, kebab-case name of the cause; the default is that of the error class.
    """

    default_code: ClassVar[str] = "harness-error"
    exit_status: ClassVar[int] = 3

    def __init__(self, message: str, *, where: str | None = None, hint: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint
        self.code = code or self.default_code

    def __str__(self) -> str:
        located = f"{self.where}: {self.message}" if self.where else self.message
        return f"{located} ({self.hint})" if self.hint else located


class UsageError(HarnessError):
    """A command was given something that does not exist, or arguments that do not fit together."""

    default_code = "usage"
    exit_status = 2


class NothingSelected(HarnessError):  # noqa: N818 - a name of the published interface
    """A run would have checked nothing. Never counts as a pass."""

    default_code = "nothing-selected"
    exit_status = 4


class ArchiveError(HarnessError, ValueError):
    """An error in the bytes of an archive. Raised only as one of its three subclasses."""

    default_code = "archive"
    exit_status = 2


class Corrupt(ArchiveError):  # noqa: N818 - a name of the published interface
    """The archive contradicts its own format."""

    default_code = "corrupt"


class Unsupported(ArchiveError):  # noqa: N818 - a name of the published interface
    """The archive may be sound, but this version of the harness does not read it."""

    default_code = "unsupported"


class NoArchive(Unsupported):
    """The file is not a PyTorch archive at all.

    Attributes:
        what: what the file is instead: ``a text file``.
    """

    default_code = "no-archive"

    def __init__(self, what: str, *, where: str | None = None, hint: str | None = None, code: str | None = None) -> None:
        super().__init__(f"is {what}, not a PyTorch archive", where=where, hint=hint, code=code)
        self.what = what


class Unsafe(ArchiveError):  # noqa: N818 - a name of the published interface
    """Reading on would execute or import something chosen by the archive."""

    default_code = "unsafe"


class CorpusError(HarnessError):
    """A manifest, a recorded observation or a fixture is invalid."""

    default_code = "corpus"
    exit_status = 2


class WriteError(HarnessError):
    """A file could not be written: the disk is full, the tree is read-only, a permission is missing, or another run holds the lock."""

    default_code = "unwritable"
    exit_status = 2


class Problem:
    """One mistake in a policy: the file (or folder, with line 0), the line, the location in the document, and what is wrong."""

    def __init__(self, file: str, line: int, path: str, message: str) -> None:
        self.file = file
        self.line = line
        self.path = path
        self.message = message

    def __str__(self) -> str:
        at = f"{self.file}:{self.line}" if self.line else self.file  # a folder as a whole has no line
        return f"{at}: {self.path}: {self.message}" if self.path else f"{at}: {self.message}"


class PolicyError(HarnessError):
    """A policy is invalid. Carries all mistakes of all files at once."""

    default_code = "policy"
    exit_status = 2

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = sorted(problems, key=lambda problem: (problem.file, problem.line, problem.path, problem.message))
        count = len(self.problems)
        super().__init__(f"{count_of(count, 'error')} in the policy:\n" + "\n".join(f"  {problem}" for problem in self.problems))


class ReaderError(HarnessError):
    """An error of a reader: its environment, its process or its answer."""

    default_code = "reader"
    exit_status = 3


class EnvironmentUnavailable(ReaderError):  # noqa: N818 - a name of the published interface
    """This release is not available here: no suitable Python, no wheel, no disk, no compiler."""

    default_code = "unavailable"
    exit_status = 4


class WrongVersion(ReaderError):  # noqa: N818 - a name of the published interface
    """The version of the torch that answered is not the requested one. None of its answers are recorded."""

    default_code = "wrong-version"


class BuildError(HarnessError):
    """A build of torch named by the user cannot be used: it cannot be imported, states no version, or changed during the run."""

    default_code = "build"
    exit_status = 2


class Refused(HarnessError):  # noqa: N818 - a name of the published interface
    """A reader refused to load an archive."""

    default_code = "refused"
    exit_status = 1


class Untrusted(Refused):
    """An archive that nobody vouches for was about to run in a release that is not isolated."""

    default_code = "untrusted"
    exit_status = 4


class Raised(HarnessError):  # noqa: N818 - a name of the published interface
    """The archive was loaded, but the call raised."""

    default_code = "raised"
    exit_status = 1
