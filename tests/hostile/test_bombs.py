"""No small file takes much time or memory in any reader, and none leads to an exception outside of the harness's errors.

The bounds are several times what :mod:`torch_compat.allowance` allows; before, these files exceeded every bound or killed the process.
The slow ones are only inspected here: `nox -s faults -- --bombs` opens all of them in all ways.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tools.faults import opening
from tools.faults.bombs import BOMBS
from tools.faults.opening import STEPS, opened

if TYPE_CHECKING:
    from pathlib import Path

SLOW = {
    "keys: tuple of 190", "many: None", "many: lists", "many: sets", "many: sets of five", "many: dicts of one", "many: DUP", "many: memo",
    "many: names", "many: names of torch", "many: objects", "many: storages", "many: one-byte integers of 2 bytes",
    "many: rows of a tar", "zip: 300,000 entries", "zip: descriptors", "zip: moved storages", "zip: nested archives", "zip: many nested archives", "package: pickles",
}  # fmt: skip
"""Bombs that take load_state more than a second, or the tree as long as inspect."""


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.sampled(2)
def test_no_file_takes_long_or_much(name: str, tmp_path: Path) -> None:
    result = opened(name, tmp_path, STEPS[:1] if name in SLOW else STEPS)
    assert not result.wrong, result


def test_slow_bombs_are_bombs() -> None:
    assert BOMBS.keys() >= SLOW


def test_what_takes_too_long_or_too_much_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "stream: protocol huge"
    assert opened(name, tmp_path).wrong == []
    monkeypatch.setitem(opening.SECONDS, "inspect", -1)
    monkeypatch.setitem(opening.MEGABYTES, "state", 1)
    assert [item.partition(" takes")[0] for item in opened(name, tmp_path).wrong] == [f"{name}: inspect", f"{name}: state"]


def test_a_process_that_dies_is_told(tmp_path: Path) -> None:
    (wrong,) = opened("stream: protocol huge", tmp_path, ["inspect", "no such step"]).wrong
    assert "exit status 1" in wrong
