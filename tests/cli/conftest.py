"""The command, run in a small recorded tree of miniature releases."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from torch_compat.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.miniatures.tree import Tree


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it said where."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        results: dict[str, Any] = json.loads(self.out)
        return results


@pytest.fixture
def command(tree: Tree, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """Runs ``torch-compat`` in the tree, with the miniature releases as those that are built here."""
    monkeypatch.setenv("TORCH_COMPAT_CACHE", str(tree.cache))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tree.root)

    def run(*arguments: str) -> Ended:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))
        message = capsys.readouterr()
        return Ended(int(ended.value.code or 0), message.out, message.err)

    return run
