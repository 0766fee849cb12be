"""Tests marked ``sampled`` run a share of their cases; the commit selects them, and nothing hides that others exist."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

CONFTEST = Path(__file__).parents[1] / "conftest.py"
TESTS = """import pytest

@pytest.mark.parametrize("case", range(12))
@pytest.mark.sampled(3)
def test_cases(case): pass

@pytest.mark.parametrize(("kind", "place"), [(kind, place) for kind in ("a", "b", "c") for place in range(2)])
@pytest.mark.sampled(2, each="kind")
def test_kinds(kind, place): pass

def test_other(): pass
"""


@pytest.fixture
def ran(tmp_path: Path) -> Callable[..., tuple[set[str], str]]:
    """Return the tests that a run with these arguments passes, and its output."""
    shutil.copyfile(CONFTEST, tmp_path / "conftest.py")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  sampled\n  real_torch\n", encoding="utf-8")
    (tmp_path / "test_it.py").write_text(TESTS, encoding="utf-8")

    def run(*arguments: str) -> tuple[set[str], str]:
        command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", *arguments]
        output = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        return {line.split()[0].partition("::")[2] for line in output.splitlines() if " PASSED" in line}, output

    return run


def test_a_share_of_the_cases_is_run_and_the_others_are_counted(ran: Callable[..., tuple[set[str], str]]) -> None:
    names, output = ran("--sample", "1")
    assert sum("cases" in name for name in names) == 4
    assert "test_other" in names
    assert "11 deselected" in output
    assert "--sample 1" in output


def test_each_value_of_a_parameter_is_run(ran: Callable[..., tuple[set[str], str]]) -> None:
    names, _ = ran("--sample", "1")
    assert sorted(name[len("test_kinds[")] for name in names if "kinds" in name) == ["a", "b", "c"]


def test_a_seed_gives_the_same_cases_and_another_seed_other_cases(ran: Callable[..., tuple[set[str], str]]) -> None:
    first, again, other = (ran("--sample", seed)[0] for seed in ("1", "1", "2"))
    assert first == again != other


def test_every_case_can_be_run(ran: Callable[..., tuple[set[str], str]]) -> None:
    assert len(ran("--every-case")[0]) == 19


@pytest.mark.parametrize("asked", [["test_it.py::test_cases[7]"], ["-k", "test_cases and 7"]])
def test_cases_that_are_asked_for_are_run(ran: Callable[..., tuple[set[str], str]], asked: list[str]) -> None:
    assert ran(*asked)[0] == {"test_cases[7]"}
