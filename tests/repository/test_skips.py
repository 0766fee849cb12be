"""Skips are counted and state a reason; a test that needs a release that is not built is skipped, unless that release is required."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

CONFTEST = Path(__file__).parents[1] / "conftest.py"
MARKED = "@pytest.mark.real_torch('1.5.1')\ndef test_it(): pass"


@pytest.fixture
def outcome(tmp_path: Path) -> Callable[..., tuple[int, str]]:
    def run(test: str, *options: str) -> tuple[int, str]:
        shutil.copyfile(CONFTEST, tmp_path / "conftest.py")
        (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = real_torch\n", encoding="utf-8")
        (tmp_path / "test_it.py").write_text(f"import pytest\n{test}\n", encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-ra", "-p", "no:cacheprovider", *options],
            cwd=tmp_path,
            env={**os.environ, "TORCH_COMPAT_CACHE": str(tmp_path / "nothing"), "PYTEST_ADDOPTS": ""},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    return run


def test_a_release_that_is_not_built_is_counted_with_its_name(outcome: Callable[..., tuple[int, str]]) -> None:
    status, message = outcome(MARKED)
    assert status == 0
    assert "SKIPPED [1]" in message
    assert "not built here: torch-1.5.1 (torch-compat readers build torch-1.5.1)" in message
    assert "1 skipped" in message


def test_a_required_release_is_not_skipped(outcome: Callable[..., tuple[int, str]]) -> None:
    status, message = outcome("@pytest.mark.real_torch('1.5.1')\ndef test_it(): assert False, 'ran'", "--require-torch=1.5.1")
    assert status == 1
    assert "ran" in message


def test_another_required_release_changes_nothing(outcome: Callable[..., tuple[int, str]]) -> None:
    assert "1 skipped" in outcome(MARKED, "--require-torch=2.13.0")[1]


@pytest.mark.parametrize(
    "test",
    [
        "def test_it(): pytest.skip()",
        "@pytest.mark.skip\ndef test_it(): pass",
        "@pytest.mark.skip(reason='')\ndef test_it(): pass",
    ],
)
def test_a_skip_without_a_reason_fails(outcome: Callable[..., tuple[int, str]], test: str) -> None:
    status, message = outcome(test)
    assert status == 1
    assert "does not say why" in message


def test_a_marker_without_a_release_is_refused(outcome: Callable[..., tuple[int, str]]) -> None:
    status, message = outcome("@pytest.mark.real_torch\ndef test_it(): pass")
    assert status == 4
    assert "names no release" in message
