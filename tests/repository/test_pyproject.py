"""Duplicated statements in pyproject.toml agree."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import torch_compat

REPOSITORY = Path(__file__).parents[2]
PYPROJECT: dict[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_version_is_the_package_s() -> None:
    assert PYPROJECT["project"]["version"] == torch_compat.__version__
    assert importlib.metadata.version("torch-compat") == torch_compat.__version__


def floors(requirements: list[str]) -> list[str]:
    """Each requirement pinned to the lowest version it allows."""
    pinned = []
    for requirement in map(Requirement, requirements):
        lowest = [part.version for part in requirement.specifier if part.operator == ">="]
        assert len(lowest) == 1, f"{requirement} has no floor"
        pinned.append(f"{requirement.name}=={lowest[0]}")
    return pinned


def test_the_lowest_environment_has_exactly_the_floors() -> None:
    declared = PYPROJECT["project"]["dependencies"] + PYPROJECT["dependency-groups"]["test"]
    assert PYPROJECT["tool"]["tox"]["env"]["lowest"]["deps"] == floors(declared)


def test_tox_runs_every_python_that_is_promised() -> None:
    promised = re.findall(r"Python :: (3\.\d+)", "\n".join(PYPROJECT["project"]["classifiers"]))
    assert PYPROJECT["tool"]["tox"]["env_list"] == [*promised, "lowest"]
    assert PYPROJECT["project"]["requires-python"] == f">={promised[0]}"
    assert PYPROJECT["tool"]["tox"]["env"]["lowest"]["base_python"] == [promised[0]]
    assert PYPROJECT["tool"]["tox"]["skip_missing_interpreters"] is False


def test_the_changelog_knows_this_version() -> None:
    changelog = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## \[?([^\]\s]+)", changelog, re.MULTILINE)
    assert headings
    if headings[0].lower() != "unreleased":
        assert Version(headings[0]) == Version(torch_compat.__version__)


def test_a_requirement_without_a_floor_is_found() -> None:
    with pytest.raises(AssertionError, match="has no floor"):
        floors(["numpy"])
