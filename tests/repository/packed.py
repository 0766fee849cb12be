"""Archives that a recipe repacks with Python's zipfile: no record is where torch's writer would put it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import pytest

from torch_compat.archive.container import VERIFY_OFFSETS

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKED_AGAIN: Final = frozenset({"save_without_version"})


@contextmanager
def offsets_of(recipe: str) -> Iterator[None]:
    """Compare offsets where the environment asks for it, but not those of an archive that was packed again."""
    with pytest.MonkeyPatch.context() as patch:
        if recipe in PACKED_AGAIN:
            patch.delenv(VERIFY_OFFSETS, raising=False)
        yield
