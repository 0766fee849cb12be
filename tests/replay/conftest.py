"""Miniature releases that log their requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from torch_compat.readers import torch_release
from torch_compat.readers.isolation import launch

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _writable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hooks of miniature releases may write below the folder of the test; a worker may write to its own scratch folder alone."""

    def launched(*arguments: Any, writes: list[Path], **more: Any) -> list[str]:
        return launch(*arguments, writes=[*writes, tmp_path], **more)

    monkeypatch.setattr(torch_release, "launch", launched)
