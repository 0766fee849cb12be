from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any, Self

import pytest

import torch_compat.replay.extension
from torch_compat.errors import EnvironmentUnavailable, UsageError
from torch_compat.readers.environments import Environment
from torch_compat.replay.extension import ask_extension

THERE = Environment("2.4.1", Path("/e"), Path("/e/bin/python"), {})


class FakeRelease:
    """Answers with what the test sets, and remembers the script that it was to run."""

    reply: dict[str, Any]
    asked: dict[str, Any]

    def __init__(self, _: Environment, *, reads: list[Path]) -> None:
        assert all(path.is_dir() for path in reads)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def request(self, do: str, *, script: str, timeout_s: float) -> dict[str, Any]:
        assert do == "survey"
        assert timeout_s > 0
        FakeRelease.asked = {**runpy.run_path(script), "path": script}
        return self.reply


@pytest.fixture(autouse=True)
def release(monkeypatch: pytest.MonkeyPatch) -> type[FakeRelease]:
    monkeypatch.setattr(torch_compat.replay.extension, "TorchRelease", FakeRelease)
    FakeRelease.reply = {"result": {"error": None}}
    return FakeRelease


def test_the_script_carries_the_request(tmp_path: Path, release: type[FakeRelease]) -> None:
    library = tmp_path / "it's \\ mine.so"
    library.write_bytes(b"")
    assert ask_extension(THERE, library=library, paths=[tmp_path]) == {"error": None}
    request: list[Any] = []
    survey = release.asked["survey"]
    survey.__globals__["ask"] = lambda _torch, asked: request.append(asked)
    survey(None)
    assert request == [{"library": str(library), "module": None, "paths": [str(tmp_path)], "call": None}]
    assert not Path(release.asked["path"]).exists()


def test_one_thing_is_loaded(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="either a library or a module"):
        ask_extension(THERE)
    with pytest.raises(UsageError, match="either a library or a module"):
        ask_extension(THERE, library=tmp_path, module="m")
    with pytest.raises(UsageError, match="file not found"):
        ask_extension(THERE, library=tmp_path / "none.so")


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ({"crashed": {"signal": "SIGABRT", "stage": "ask"}}, "in torch 2.4.1 crashed the process: SIGABRT"),
        ({"timed-out": {"timeout_s": 1, "stage": "ask"}}, "in torch 2.4.1 crashed the process: timed-out"),
    ],
)
def test_a_process_that_ends(reply: dict[str, Any], said: str, release: type[FakeRelease]) -> None:
    release.reply = reply
    with pytest.raises(UsageError, match=said):
        ask_extension(THERE, module="m")


@pytest.mark.parametrize("version", ["1.0.0", "1.6.0"])
def test_a_release_that_does_not_show_its_dispatcher(version: str) -> None:
    with pytest.raises(EnvironmentUnavailable, match=f"torch {version} does not expose its dispatcher") as caught:
        ask_extension(Environment(version, Path("/e"), Path("/e/bin/python"), {}), module="m")
    assert caught.value.exit_status == 4
