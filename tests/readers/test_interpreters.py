from __future__ import annotations

import os
import stat
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from torch_compat.errors import EnvironmentUnavailable
from torch_compat.readers import interpreters
from torch_compat.readers.interpreters import Interpreter, find_interpreters, fitting, in_order_of_preference


@dataclass(frozen=True)
class Release:
    version: str
    pythons: list[str]
    python: str | None = None


def here(*versions: str) -> tuple[Interpreter, ...]:
    return tuple(Interpreter(version, Path(f"/pythons/{version}/bin/python")) for version in versions)


def program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def says(version: str, executable: Path, *, implementation: str = "CPython", level: str = "final") -> str:
    numbers = version.replace(".", ", ")
    return f"""echo '{{"implementation": "{implementation}", "version": [{numbers}], "level": "{level}", "executable": "{executable}"}}'"""


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine on which only what a test puts into the returned folder can be found, besides /usr and this Python."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path / "uv"))
    monkeypatch.setattr(interpreters, "find_interpreters", find_interpreters.__wrapped__)
    return tmp_path


def found() -> dict[str, Path]:
    return {interpreter.version: interpreter.path for interpreter in interpreters.find_interpreters()}


def test_this_python_is_found_by_its_base_executable() -> None:
    version = ".".join(map(str, sys.version_info[:3]))
    mine = [interpreter for interpreter in find_interpreters() if interpreter.version == version]
    base = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    assert base in {str(interpreter.path) for interpreter in mine}


def test_every_interpreter_is_found_once() -> None:
    paths = [interpreter.path for interpreter in find_interpreters()]
    assert len(paths) == len(set(paths))


def test_it_looks_once_in_a_process() -> None:
    assert find_interpreters() is find_interpreters()


def test_it_finds_path_pyenv_and_uv(nowhere: Path) -> None:
    on_path = program(nowhere / "bin/python3.99", "exit 1")  # beyond what is looked for
    on_path = program(nowhere / "bin/python3.8", says("3.8.1", nowhere / "bin/python3.8"))
    pyenv = program(nowhere / "pyenv/versions/3.7.2/bin/python", says("3.7.2", nowhere / "pyenv/real"))
    uv = program(nowhere / "uv/cpython-3.9.3-linux/bin/python3", says("3.9.3", nowhere / "uv/real"))
    assert found().items() >= {"3.8.1": on_path, "3.7.2": pyenv.parents[3] / "real", "3.9.3": uv.parents[2] / "real"}.items()


@pytest.mark.parametrize(
    "script",
    [
        "echo 'pyenv: python3.8: command not found' >&2; exit 127",
        "echo no json",
        "kill -9 $$",
        says("3.8.1", Path("/x"), implementation="PyPy"),
        says("3.8.1", Path("/x"), level="candidate"),
    ],
    ids=["shim", "chatter", "killed", "pypy", "candidate"],
)
def test_a_candidate_that_is_no_usable_cpython_is_ignored(nowhere: Path, script: str) -> None:
    program(nowhere / "bin/python3.8", script)
    assert "3.8.1" not in found()


@pytest.mark.parametrize("version", ["2.7.18", "3.5.10"])
def test_too_old_for_the_worker_is_ignored(nowhere: Path, version: str) -> None:
    program(nowhere / "bin/python3.8", says(version, nowhere / "bin/python3.8"))
    assert version not in found()


def test_a_candidate_that_does_not_answer_in_time_is_ignored(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreters, "_ANSWER_WITHIN", 0.2)
    late = program(nowhere / "bin/python3.8", "/bin/sleep 2; " + says("3.8.1", nowhere / "bin/python3.8"))
    monkeypatch.setattr(interpreters, "_candidates", lambda: iter([late]))
    assert found() == {}


def test_links_to_one_interpreter_are_asked_once(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = program(nowhere / "real/python", f"echo asked >> {nowhere}/asked; " + says("3.8.1", nowhere / "real/python"))
    links = [nowhere / name for name in ("one", "two")]
    for link in links:
        link.symlink_to(target)
    monkeypatch.setattr(interpreters, "_candidates", lambda: iter([*links, target, nowhere / "missing"]))
    assert found() == {"3.8.1": target}
    assert (nowhere / "asked").read_text(encoding="utf-8") == "asked\n"


@pytest.mark.parametrize(
    ("pythons", "ordered"),
    [
        (["2.7", "3.5", "3.6", "3.7"], ["3.7", "3.6"]),
        (["3.8", "3.9", "3.10", "3.11", "3.12"], ["3.11", "3.10", "3.9", "3.8", "3.12"]),
        (["3.13", "3.12"], ["3.12", "3.13"]),
        (["2.7", "3.5"], []),
    ],
)
def test_the_order_of_preference(pythons: list[str], ordered: list[str]) -> None:
    assert in_order_of_preference(pythons) == ordered


@pytest.mark.parametrize(
    ("pythons", "machine", "chosen"),
    [
        (["3.9", "3.10", "3.11", "3.12"], ("3.12.1", "3.11.7", "3.10.2"), "3.11.7"),
        (["3.9", "3.10", "3.11", "3.12"], ("3.12.1", "3.9.18", "3.10.2"), "3.10.2"),
        (["3.9", "3.10", "3.11", "3.12", "3.13"], ("3.13.0", "3.12.1"), "3.12.1"),
        (["3.10"], ("3.10.2", "3.10.13", "3.10.9"), "3.10.13"),
    ],
    ids=["3.11 first", "newest below", "oldest above", "newest patch"],
)
def test_fitting(pythons: list[str], machine: tuple[str, ...], chosen: str) -> None:
    assert fitting(Release("2.4.1", pythons), here(*machine)).version == chosen  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("machine", "chosen"),
    [
        (("3.11.7", "3.10.2", "3.9.18", "3.9.2"), "3.9.18"),
        (("3.12.1", "3.11.7", "3.10.2"), "3.11.7"),
        (("3.12.1", "3.10.2", "3.8.1"), "3.10.2"),
        (("3.12.1", "3.8.1"), "3.8.1"),
    ],
    ids=["preferred", "falls back to 3.11", "then newest below", "then older"],
)
def test_a_release_may_prefer_a_python(machine: tuple[str, ...], chosen: str) -> None:
    release = Release("1.11.0", ["3.8", "3.9", "3.10", "3.11", "3.12"], python="3.9")
    assert fitting(release, here(*machine)).version == chosen  # type: ignore[arg-type]


def test_where_none_fits_the_preferred_python_is_the_one_to_install() -> None:
    with pytest.raises(EnvironmentUnavailable, match=r"runs on CPython 3\.8, 3\.9, 3\.10; found here: 3\.7") as caught:
        fitting(Release("1.11.0", ["3.8", "3.9", "3.10"], python="3.9"), here("3.7.1"))  # type: ignore[arg-type]
    assert caught.value.hint is not None
    assert "3.9" in caught.value.hint


def test_none_fitting_says_which_would_and_which_are_here() -> None:
    with pytest.raises(
        EnvironmentUnavailable, match=r"torch 1\.2\.0 runs on CPython 3\.6, 3\.7; found here: 3\.9, 3\.11"
    ) as caught:
        fitting(Release("1.2.0", ["2.7", "3.5", "3.6", "3.7"]), here("3.11.7", "3.9.1", "3.11.2"))  # type: ignore[arg-type]
    assert caught.value.code == "no-interpreter"
    assert caught.value.hint is not None
    assert "3.7" in caught.value.hint


def test_no_interpreter_at_all() -> None:
    with pytest.raises(EnvironmentUnavailable, match="found here: none"):
        fitting(Release("1.2.0", ["3.6"]), ())  # type: ignore[arg-type]
