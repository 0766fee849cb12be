"""The type of a release: any version that torch can report.

A version has a public part, which determines the order, and optionally a local part, which names a build::

    2.13.0                    a release
    2.13.0+cpu                a build of it
    2.6.0.post1  1.0rc1       what comes after a release, and before it
    2.16.0.dev20261120+cpu    a nightly build, and its day
    2.16.0a0+git0123abc       a build from source

The order is that of PEP 440. Builds of one release are equal here, because promises are about releases; to distinguish builds, compare
their texts (``str(release)``). This module needs only the standard library and :mod:`torch_compat.errors`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias, final

from torch_compat.errors import UsageError

if TYPE_CHECKING:
    import datetime as dt

__all__ = ["Key", "Release", "dotted", "named", "public", "stated"]

Key: TypeAlias = tuple[tuple[int, ...], int, int, int, int]
"""The sort key of releases: the numbers without trailing zeros, the phase and its number, the post-release number, the
development day."""

LONGEST: Final = 128
"""Maximum length of a version. Numbers have at most 14 digits, enough for a time stamp."""
PREFIX: Final = "torch-"

_NUMBER = "(?:0|[1-9][0-9]{0,13})"
_VERSION = re.compile(
    rf"({_NUMBER}(?:\.{_NUMBER}){{1,3}})"
    rf"(?:(a|b|rc)({_NUMBER}))?(?:\.post({_NUMBER}))?(?:\.dev({_NUMBER}))?"
    r"(?:\+([A-Za-z0-9]+(?:[._-][A-Za-z0-9]+)*))?"
)
_DOTTED = re.compile(r"[0-9]{1,14}(?:\.[0-9]{1,14})*")
_DEVELOPMENT, _FINAL = 0, 4
_PHASES: Final = {"a": 1, "b": 2, "rc": 3}
_NEVER = 10**15  # sorts after every number that a version can have
_NUMBERS_SHOWN = 3


@final
class Release:
    """A torch release, identified by its version. Immutable; the same text gives the same object.

    Attributes:
        key: the sort key.
        public: the version without its local part, with at least three numbers; the same for equal releases.
        local: the local part, which names a build; empty if there is none.

    Raises:
        UsageError: the text is not a version.
    """

    __slots__ = ("_hash", "_text", "key", "local", "public")

    _hash: int
    _text: str
    key: Key
    public: str
    local: str

    def __new__(cls, text: str) -> Release:  # noqa: D102
        return _parsed(text)

    @property
    def line(self) -> str:
        """The minor version that this release belongs to, or will become: ``2.16`` for ``2.16.0.dev20261120``."""
        numbers = (*self.key[0], 0, 0)
        return f"{numbers[0]}.{numbers[1]}"

    @property
    def numbers(self) -> tuple[int, int, int]:
        """Major, minor and patch."""
        major, minor, patch = (*self.key[0], 0, 0, 0)[:3]
        return major, minor, patch

    @property
    def prerelease(self) -> bool:
        """Whether this precedes a release: a release candidate, a nightly build, or a build from source."""
        return self.key[1] != _FINAL or self.key[4] != _NEVER

    @property
    def day(self) -> dt.date | None:
        """The date in the version of a nightly build; None for any other version."""
        from datetime import date  # noqa: PLC0415 - rarely needed, and as slow to import as the rest of this module

        digits = str(self.key[4])
        if len(digits) != len("20261120"):
            return None
        try:
            return date(int(digits[:4]), int(digits[4:6]), int(digits[6:]))
        except ValueError:
            return None

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Release({self._text!r})"

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self.key == other.key if isinstance(other, Release) else NotImplemented

    def __lt__(self, other: Release) -> bool:
        return self.key < other.key

    def __le__(self, other: Release) -> bool:
        return self.key <= other.key

    def __gt__(self, other: Release) -> bool:
        return self.key > other.key

    def __ge__(self, other: Release) -> bool:
        return self.key >= other.key

    def __reduce__(self) -> tuple[type[Release], tuple[str]]:
        return Release, (self._text,)


def named(name: str) -> Release:
    """Return the release with a name such as ``torch-2.13.0+cpu`` or ``2.13.0+cpu``.

    Raises:
        UsageError: the name is not that of a release.
    """
    return Release(name.removeprefix(PREFIX))


def public(name: str) -> str:
    """Return the release in the name of a writer or reader, in the form used by policies: ``2.13.0`` for ``torch-2.13.0+cpu``.

    Names that are not releases are returned unchanged: ``reference@1.5.1``, ``synthetic``.
    """
    version = name.removeprefix(PREFIX)
    release = stated(version)
    return version if release is None else release.public


def stated(value: object) -> Release | None:
    """Return the release that a value represents; None if it is not a string with a version."""
    try:
        return Release(value) if isinstance(value, str) else None
    except UsageError:
        return None


@lru_cache(maxsize=4096)
def dotted(text: str) -> tuple[int, ...]:
    """Return the numbers of a version that is not torch's: Python (``3.11``) or the schema of exported programs (``8.14``).

    Raises:
        UsageError: the text does not consist of numbers.
    """
    if len(text) > LONGEST or not _DOTTED.fullmatch(text):
        raise UsageError(f"expected numbers such as '3.11', found {text[:LONGEST]!r}", code="no-release")
    return tuple(map(int, text.split(".")))


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Release:
    result = _VERSION.fullmatch(text) if len(text) <= LONGEST else None
    if result is None:
        shown = text if len(text) <= LONGEST else text[:LONGEST] + "..."
        raise UsageError(
            f"expected a version of torch such as '2.13.0' or '2.16.0.dev20261120+cpu', found {shown!r}", code="no-release"
        )
    written, phase, of_phase, post, development, local = result.groups()
    numbers = [int(number) for number in written.split(".")]
    while len(numbers) > 1 and not numbers[-1]:
        numbers.pop()
    release = object.__new__(Release)
    release.key = (
        tuple(numbers),
        _PHASES[phase] if phase else _DEVELOPMENT if development is not None and post is None else _FINAL,
        int(of_phase or 0),
        -1 if post is None else int(post),
        _NEVER if development is None else int(development),
    )
    shown = ".".join(map(str, numbers + [0] * (_NUMBERS_SHOWN - len(numbers))))
    rest = text[len(written) :].partition("+")[0]
    release.public = shown + rest
    release.local = local or ""
    release._text = text
    release._hash = hash(release.key)
    return release
