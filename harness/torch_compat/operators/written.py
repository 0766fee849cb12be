"""The file format versions with which a release writes a program that calls an operator, as measured in the releases.

Versioned writing is dynamic: an archive states the lowest version that all its operators need. So an operator is written with its own
version in a program that needs no higher one, and with any higher version of the release in a program whose other operators need it.

From 1.12 on, this version is the one in the table of upgraders for the overload. Up to 1.11 it depends on the name of the operator,
whatever the overload: 1.11 writes ``div.Tensor_mode`` with 4, although its table does not contain it. Every release saved programs with
``div``, ``div_``, ``full``, ``gelu``, ``linspace`` and ``logspace``, which show that version.
"""

from __future__ import annotations

from functools import cached_property
from json import loads
from typing import TYPE_CHECKING, Final, NamedTuple

from torch_compat.operators.history import FactHistory
from torch_compat.releases.release import Release

if TYPE_CHECKING:
    from torch_compat.operators.history import History

__all__ = ["Writer", "Written"]

MEASURED: Final = "file_formats > "
PLAIN: Final = "add"
"""The program whose operators do not need their own version."""
MOBILE: Final = "mobile"
"""The program saved as bytecode; nothing is recorded for it if the release writes no bytecode."""
NO_OPERATOR: Final = frozenset({MOBILE, "torch.save"})
BY_NAME: Final = Release("1.11.0")
"""The last release whose versions depend on the name of the operator."""


class Written:
    """The file format versions that releases write.

    Parameters:
        versions: the tables of upgraders. The versions of saved programs are recorded next to them, in ``constants.txt``.
    """

    def __init__(self, versions: FactHistory) -> None:
        self._versions = versions

    @cached_property
    def _constants(self) -> FactHistory:
        return FactHistory(self._versions.path.with_name("constants.txt"))

    def _measured(self, program: str, release: str) -> int | None:
        """The version of a saved program; None if the release could not write it."""
        message = self._constants.value(MEASURED + program, release)
        return None if message is None else int(message[1])

    def versions(self, operator: str, release: str) -> tuple[int, ...]:
        """Every version with which a release writes an operator (``aten::div.Tensor``), its own first."""
        plain = self._measured(PLAIN, release)
        assert plain is not None  # noqa: S101 - every release has `add`
        if Release(release) <= BY_NAME:
            programs = [key.removeprefix(MEASURED) for key, _, _ in self._constants.facts() if key.startswith(MEASURED)]
            measured = {program: self._measured(program, release) for program in programs if program not in NO_OPERATOR}
            needed = {f"aten::{program}": version for program, version in measured.items() if version is not None}
            operator = operator.partition(".")[0]
        else:
            bit = self._versions.bit(release)
            needed = {name: max(entry[0] for entry in loads(value)) for name, value, bits in self._versions.facts() if bits & bit}
        own = needed.get(operator, plain)
        return (own, *sorted({version for version in needed.values() if version > own}))

    def states_overloads(self, release: str) -> bool:
        """Whether a release writes archives with overloads: bytecode of the lite interpreter."""
        bit = self._constants.bit(release)
        return any(bits & bit for bits in self._constants.values(MEASURED + MOBILE).values())


class Writer(NamedTuple):
    """The writer of the programs that the older of two sets stands for.

    Attributes:
        history: the recorded schemas.
        release: the release; None for a file: then the writer of each schema is the newest recorded release that has it.
    """

    written: Written
    history: History
    release: str | None

    def of(self, schema: str) -> str:
        """The release assumed to write a schema."""
        if self.release is not None:
            return self.release
        operator = schema.partition("(")[0]
        having = (release for release in reversed(self.history.releases) if schema in self.history.standing(operator, release))
        return next(having, self.history.releases[-1])

    def versions(self, schema: str) -> tuple[int, ...]:
        """The file format versions with which it writes the operator of a schema, the operator's own version first."""
        return self.written.versions(schema.partition("(")[0], self.of(schema))

    def states_overloads(self, schema: str) -> bool:
        """Whether it writes archives with overloads."""
        return self.written.states_overloads(self.of(schema))
