from __future__ import annotations

import datetime as dt
import importlib
import json
import types
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from torch_compat.errors import EnvironmentUnavailable, UsageError, WrongVersion
from torch_compat.readers.environments import Environment
from torch_compat.readers.interpreters import Interpreter

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Release:
    version: str
    pythons: list[str]
    date: dt.date = dt.date(2020, 6, 18)
    install: str = "whole"
    numpy: str = "<2"
    python: str | None = None


class Calendar(list[Release]):
    def resolve(self, name: str) -> Release:
        for release in self:
            if name in {release.version, f"torch-{release.version}"}:
                return release
        raise UsageError(f"there is no torch release {name!r}", hint="did you mean 1.5.1 or 1.5.0?")


@dataclass
class Cache:
    """Stands in for the environments of this machine."""

    built: dict[str, Environment] = field(default_factory=dict)
    errors: dict[str, Exception] = field(default_factory=dict)
    asked_for: list[tuple[str, str]] = field(default_factory=list)

    def get(self, version: str) -> Environment | None:
        return self.built.get(version)

    def build(self, release: Release, *, cuda: str, progress: Callable[[str], None]) -> Environment:
        self.asked_for.append((release.version, cuda))
        progress("downloading [torch]")
        if release.version in self.errors:
            raise self.errors[release.version]
        description = {"torch": f"{release.version}+cpu", "cuda": cuda, "size": 1_500_000_000, "built": "2026-11-20"}
        return self.built.setdefault(
            release.version, Environment(release.version, Path("/p"), Path("/p/bin/python"), description)
        )

    def remove(self, version: str) -> int:
        if version in self.errors:
            raise self.errors[version]
        return 1_500_000_000 if self.built.pop(version, None) else 0


@pytest.fixture
def cache() -> Cache:
    return Cache()


@pytest.fixture
def run(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    module = importlib.import_module("torch_compat.cli.readers")
    calendar = Calendar([Release("1.2.0", ["3.6", "3.7"]), Release("1.5.1", ["3.8"]), Release("2.13.0", ["3.11"])])
    monkeypatch.setattr(module, "find_policy", lambda _root: types.SimpleNamespace(calendar=calendar))
    monkeypatch.setattr(module, "Environments", lambda: cache)
    here = (Interpreter("3.11.7", Path("/pythons/3.11")), Interpreter("3.8.18", Path("/pythons/3.8")))
    monkeypatch.setattr(module, "find_interpreters", lambda: here)
    return lambda *arguments: CliRunner().invoke(module.readers, list(arguments))


def test_list_shows_every_release(run: Callable[..., Result], cache: Cache) -> None:
    cache.built["1.5.1"] = Environment(
        "1.5.1",
        Path("/p"),
        Path("/p/bin/python"),
        {"torch": "1.5.1", "cuda": "none", "size": 1_496_000_000, "built": "2026-11-20"},
    )
    result = run("list")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["release", "date", "Python", "here", "torch", "CUDA", "size", "built"]
    assert lines[1].split()[:4] == ["torch-1.2.0", "2020-06-18", "none", "no"]
    assert "torch 1.2.0 runs on CPython 3.6, 3.7; found here: 3.8, 3.11" in lines[1]
    assert lines[2].split() == ["torch-1.5.1", "2020-06-18", "3.8.18", "1.5.1", "none", "1.50", "GB", "2026-11-20"]
    assert lines[3].split() == ["torch-2.13.0", "2020-06-18", "3.11.7", "no"]


def test_list_as_json(run: Callable[..., Result]) -> None:
    message = json.loads(run("list", "--format", "json").stdout)
    assert message["schema_version"] == 1
    assert [row["name"] for row in message["readers"]] == ["torch-1.2.0", "torch-1.5.1", "torch-2.13.0"]
    assert message["readers"][2] == {
        "name": "torch-2.13.0",
        "version": "2.13.0",
        "date": "2020-06-18",
        "python": {"version": "3.11.7", "path": "/pythons/3.11"},
        "unavailable": None,
        "built": False,
        "environment": None,
    }
    assert message["readers"][0]["python"] is None
    assert "3.7" in message["readers"][0]["unavailable"]


def test_build_prints_data_and_tells_steps_apart_from_it(run: Callable[..., Result], cache: Cache) -> None:
    result = run("build", "torch-1.5.1", "2.13.0", "--format", "json")
    assert result.exit_code == 0
    message = json.loads(result.stdout)
    assert [(row["name"], row["built"], row["error"]) for row in message["readers"]] == [
        ("torch-1.5.1", True, None),
        ("torch-2.13.0", True, None),
    ]
    assert result.stderr.splitlines() == ["torch-1.5.1: downloading [torch]", "torch-2.13.0: downloading [torch]"]
    assert cache.asked_for == [("1.5.1", "stub"), ("2.13.0", "stub")]


def test_build_passes_cuda_on(run: Callable[..., Result], cache: Cache) -> None:
    assert run("build", "torch-2.13.0", "--cuda", "real").exit_code == 0
    assert cache.asked_for == [("2.13.0", "real")]


def test_an_unavailable_release_does_not_stop_the_others(run: Callable[..., Result], cache: Cache) -> None:
    cache.errors["1.5.1"] = EnvironmentUnavailable("the disk is short", hint="free some", code="disk-short")
    result = run("build", "torch-1.5.1", "torch-2.13.0", "--format", "json")
    assert result.exit_code == 4
    assert "torch-1.5.1: the disk is short (free some)" in result.stderr
    first, second = json.loads(result.stdout)["readers"]
    assert first["error"] == {"code": "disk-short", "message": "the disk is short (free some)"}
    assert first["built"] is False
    assert second["built"] is True


@pytest.mark.parametrize(
    ("errors", "status"),
    [
        ([EnvironmentUnavailable("x")], 4),
        ([WrongVersion("x")], 3),
        ([UsageError("x")], 2),
        ([EnvironmentUnavailable("x"), UsageError("x")], 2),
        ([UsageError("x"), WrongVersion("x")], 3),
    ],
)
def test_the_severest_status_wins(run: Callable[..., Result], cache: Cache, errors: list[Exception], status: int) -> None:
    cache.errors = dict(zip(["1.5.1", "2.13.0"], errors, strict=False))
    assert run("build", "torch-1.5.1", "torch-2.13.0").exit_code == status


@pytest.mark.parametrize("command", ["build", "remove"])
def test_an_unknown_release_is_a_usage_error_before_anything_is_done(
    run: Callable[..., Result], cache: Cache, command: str
) -> None:
    result = run(command, "torch-1.5.1", "torch-1.5.9")
    assert result.exit_code == 2
    assert "there is no torch release 'torch-1.5.9' (did you mean 1.5.1 or 1.5.0?)" in result.stderr
    assert result.stdout == ""
    assert cache.asked_for == []


@pytest.mark.parametrize(
    "arguments", [("build",), ("remove",), ("build", "torch-1.5.1", "--cuda", "none"), ("list", "--format", "xml")]
)
def test_wrong_usage(run: Callable[..., Result], arguments: tuple[str, ...]) -> None:
    assert run(*arguments).exit_code == 2


def test_remove_says_what_it_freed(run: Callable[..., Result], cache: Cache) -> None:
    run("build", "torch-1.5.1")
    result = run("remove", "torch-1.5.1", "torch-2.13.0")
    assert (result.exit_code, result.stdout) == (0, "torch-1.5.1: removed, 1.50 GB freed\ntorch-2.13.0: was not built\n")
    assert cache.built == {}


def test_remove_as_json(run: Callable[..., Result]) -> None:
    run("build", "torch-1.5.1")
    message = json.loads(run("remove", "torch-1.5.1", "--format", "json").stdout)
    assert message == {"schema_version": 1, "removed": [{"name": "torch-1.5.1", "freed": 1_500_000_000}]}


def test_what_is_being_built_is_not_removed(run: Callable[..., Result], cache: Cache) -> None:
    cache.errors["1.5.1"] = EnvironmentUnavailable("it is being built", code="busy")
    result = run("remove", "torch-1.5.1")
    assert result.exit_code == 4
    assert "torch-1.5.1: it is being built" in result.stderr
