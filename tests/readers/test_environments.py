from __future__ import annotations

import datetime as dt
import fcntl
import hashlib
import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from torch_compat.errors import EnvironmentUnavailable, UsageError, WrongVersion
from torch_compat.readers import commands, cuda_stubs, environments
from torch_compat.readers.commands import Command, Commands, Failed, clean_environ, last_words, run_command
from torch_compat.readers.environments import GB, NEEDED_BYTES, Environments
from torch_compat.readers.interpreters import Interpreter

if TYPE_CHECKING:
    from collections.abc import Mapping

INTERPRETERS = (Interpreter("3.11.7", Path("/pythons/3.11/bin/python")),)
WHEEL = b"the bytes of a wheel"

METADATA_1 = "Name: torch\nRequires-Dist: numpy\nRequires-Dist: future\nRequires-Dist: dataclasses ; python_version < '3.7'\n"
METADATA_2 = """Name: torch
Requires-Dist: filelock
Requires-Dist: typing-extensions (>=4.8.0)
Requires-Dist: nvidia-cuda-runtime-cu12 (==12.1.105) ; platform_system == "Linux" and platform_machine == "x86_64"
Requires-Dist: nvidia-cuda-cupti-cu12 (==12.1.105) ; platform_system == "Linux" and platform_machine == "x86_64"
Requires-Dist: nvidia-cublas-cu12 (==12.1.3.1) ; platform_system == "Linux" and platform_machine == "x86_64"
Requires-Dist: triton (==3.0.0) ; platform_system == "Linux"
Requires-Dist: opt-einsum (>=3.3) ; extra == 'opt-einsum'
"""
METADATA_3 = """Name: torch
Requires-Dist: filelock
Requires-Dist: cuda-toolkit[cublas,cudart,cupti]==13.2.2; platform_system == "Linux"
Requires-Dist: cuda-bindings<14,>=13.0.3; platform_system == "Linux"
Requires-Dist: nvidia-nccl-cu13==2.30.7; platform_system == "Linux"
"""
METADATA_TOOLKIT = """Name: cuda-toolkit
Requires-Dist: nvidia-cublas==13.6.*; (sys_platform == "linux") and extra == "cublas"
Requires-Dist: nvidia-cuda-runtime==13.2.*; (sys_platform == "linux") and extra == "cudart"
Requires-Dist: nvidia-cuda-cupti==13.2.*; (sys_platform == "linux") and extra == "cupti"
Requires-Dist: nvidia-cuda-nvcc==13.2.*; (sys_platform == "linux") and extra == "nvcc"
"""
MARKERS = {"platform_system": "Linux", "platform_machine": "x86_64", "python_version": "3.11", "sys_platform": "linux"}


@dataclass(frozen=True)
class Release:
    version: str = "1.5.1"
    date: dt.date = dt.date(2020, 6, 18)
    pythons: list[str] = field(default_factory=lambda: ["3.10", "3.11"])
    python: str | None = None
    install: str = "whole"
    numpy: str = "<2"


class Tools:
    """Stands in for venv, pip and the new Python: leaves behind what they would, and can be told to fail at one of them."""

    def __init__(self, version: str, metadata: str = METADATA_1) -> None:
        self.version = version
        self.answer = version
        self.metadata = metadata
        self.sums = [2.0, 3.0]
        self.wheels = [f"torch-{version}-cp311-cp311-linux_x86_64.whl"]
        self.fails_at: str | None = None
        self.error: BaseException = Failed(["pip"], "Collecting torch\nERROR: the line broke\n")
        self.installed: list[list[str]] = []
        self.environ: Mapping[str, str] = {}

    def __call__(self, command: Command, *, environ: Mapping[str, str], cwd: Path | None, log: Path, quiet: bool) -> str:
        words = [str(word) for word in command]
        self.environ = environ if "TORCH_HOME" not in environ else self.environ  # that of the build, not of the check at its end
        with log.open("a", encoding="utf-8") as record:
            record.write(" ".join(words) + "\n")
        if words[1:3] == ["-m", "venv"]:
            self.at("venv")
            prefix = Path(words[3])
            self.site = prefix / "lib"
            self.site.mkdir(parents=True)
            (prefix / "bin").mkdir()
            (prefix / "bin/python").write_text("")
            return ""
        if words[1:4] == ["-m", "pip", "download"]:
            self.at("download")
            folder = Path(words[words.index("-d") + 1])
            folder.mkdir()
            for wheel in self.wheels:
                (folder / wheel).write_bytes(WHEEL)
            return ""
        if words[1:4] == ["-m", "pip", "install"]:
            return self.install(words[4:])
        if words[1:3] == ["-I", "-c"]:
            return self.ask(words[3], cwd)
        raise AssertionError(words)

    def install(self, arguments: list[str]) -> str:
        if arguments[-1].endswith(".whl"):
            self.at("install")
            self.add("torch", self.metadata)
            return ""
        self.at("needs")
        self.installed.append(arguments)
        if any(argument.startswith("cuda-toolkit") for argument in arguments):
            self.add("cuda_toolkit", METADATA_TOOLKIT)
        return ""

    def add(self, name: str, metadata: str) -> None:
        folder = self.site / f"{name}-{self.version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(metadata, encoding="utf-8")

    def ask(self, script: str, cwd: Path | None) -> str:
        if "markers" in script:
            self.at("ask")
            return json.dumps({"site": str(self.site), "markers": MARKERS})
        self.at("verify")
        assert cwd is not None
        assert not list(cwd.iterdir())
        messages = {"torch": self.answer, "git_revision": "3c31d73", "python": "3.11.7", "numpy": "1.26.4", "sums": self.sums}
        return f"a warning on standard output\n{json.dumps(messages)}\n"

    def at(self, step: str) -> None:
        if step == self.fails_at:
            raise self.error


@pytest.fixture(autouse=True)
def _readelf(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test needs the real one: where a gap is looked for, it is planted."""
    monkeypatch.setattr(environments, "need_tool", lambda *names, package: names[0])


@pytest.fixture(autouse=True)
def _disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing large is written: how much of the disk is free here does not matter."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: SimpleNamespace(free=max(NEEDED_BYTES.values())))


@pytest.fixture
def tools() -> Tools:
    return Tools("1.5.1")


def cache(root: Path, tools: Tools) -> Environments:
    return Environments(root, run=tools, interpreters=lambda: INTERPRETERS)


def release(**changed: Any) -> Any:
    return Release(**changed)


@pytest.fixture
def gap(monkeypatch: pytest.MonkeyPatch) -> cuda_stubs.Gap:
    missing = cuda_stubs.Gap(("libcublas.so.12",))
    monkeypatch.setattr(environments, "find_gap", lambda _torch, _command: missing)
    monkeypatch.setattr(environments, "build_stubs", lambda gap, _folder, _command: ("libstubs.so", *gap.libraries))
    return missing


def test_a_built_environment_is_described(tmp_path: Path, tools: Tools) -> None:
    steps: list[str] = []
    built = cache(tmp_path, tools).build(release(), progress=steps.append)
    assert built.version == "1.5.1"
    assert built.prefix == tmp_path / "readers/torch-1.5.1"
    assert built.python == built.prefix / "bin/python"
    description = dict(built.description)
    assert description.pop("size") > 0
    assert description.pop("seconds") >= 0
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", description.pop("built"))
    assert description == {
        "torch": "1.5.1",
        "git_revision": "3c31d73",
        "python": "3.11.7",
        "numpy": "1.26.4",
        "wheel": "torch-1.5.1-cp311-cp311-linux_x86_64.whl",
        "wheel_sha256": hashlib.sha256(WHEEL).hexdigest(),
        "cuda": "none",
        "stubs": [],
    }
    assert steps[:2] == ["creating an environment with Python 3.11.7", "downloading torch 1.5.1"]
    assert not (built.prefix / "scratch").exists()


def test_it_is_found_again_and_built_once(tmp_path: Path, tools: Tools) -> None:
    built = cache(tmp_path, tools).build(release())
    tools.fails_at = "venv"
    again = cache(tmp_path, tools)
    assert again.get("1.5.1") == built
    assert again.build(release()) == built
    assert again.all() == (built,)


def test_one_that_is_there_needs_neither_disk_nor_interpreter(
    tmp_path: Path, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = cache(tmp_path, tools).build(release())
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: SimpleNamespace(free=0))
    assert Environments(tmp_path, run=tools, interpreters=lambda: ()).build(release()) == built


def test_all_is_in_the_order_of_versions(tmp_path: Path) -> None:
    for version in ("1.10.0", "1.9.0", "2.0.0"):
        cache(tmp_path, Tools(version)).build(release(version=version))
    assert [item.version for item in cache(tmp_path, Tools("0")).all()] == ["1.9.0", "1.10.0", "2.0.0"]


def test_nothing_is_there_at_first(tmp_path: Path, tools: Tools) -> None:
    assert cache(tmp_path / "missing", tools).all() == ()
    assert cache(tmp_path / "missing", tools).get("1.5.1") is None


def test_it_installs_what_torch_needs_without_what_only_gpus_need(tmp_path: Path, tools: Tools) -> None:
    cache(tmp_path, tools).build(release())
    assert tools.installed == [["numpy", "future", "numpy<2"]]


def test_pip_works_on_the_disk_that_was_measured_and_in_this_environment(
    tmp_path: Path, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    monkeypatch.setenv("PIP_TARGET", "/elsewhere")
    monkeypatch.setenv("PIP_INDEX_URL", "https://user.example/simple")
    built = cache(tmp_path, tools).build(release())
    assert Path(tools.environ["TMPDIR"]).is_relative_to(built.prefix)
    assert tools.environ["PIP_NO_INPUT"] == "1"
    assert tools.environ["PIP_INDEX_URL"] == "https://user.example/simple"
    assert not {"PYTHONPATH", "PIP_TARGET"} & tools.environ.keys()


STEPS = ["venv", "download", "install", "ask", "needs", "verify"]


@pytest.mark.parametrize("step", STEPS)
def test_a_step_that_fails_leaves_only_the_log(tmp_path: Path, tools: Tools, step: str) -> None:
    tools.fails_at = step
    with pytest.raises(EnvironmentUnavailable, match="failed: ERROR: the line broke") as caught:
        cache(tmp_path, tools).build(release())
    assert caught.value.code == "build-failed"
    assert caught.value.hint is not None
    assert str(tmp_path / "logs/torch-1.5.1.log") in caught.value.hint
    assert list((tmp_path / "readers").glob("*")) == []
    assert (tmp_path / "logs/torch-1.5.1.log").read_text(encoding="utf-8")


@pytest.mark.parametrize("step", STEPS)
def test_an_interrupted_build_leaves_nothing(tmp_path: Path, tools: Tools, step: str) -> None:
    tools.fails_at = step
    tools.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        cache(tmp_path, tools).build(release())
    assert list((tmp_path / "readers").glob("*")) == []


@pytest.mark.parametrize("answer", ["1.5.0", "1.5.1.post2", "1.5.1a0", "1.6.0+cpu"])
def test_another_torch_than_asked_for_is_refused(tmp_path: Path, tools: Tools, answer: str) -> None:
    tools.answer = answer
    with pytest.raises(WrongVersion, match=r"expected torch 1\.5\.1, got"):
        cache(tmp_path, tools).build(release())
    assert list((tmp_path / "readers").glob("*")) == []


def test_the_local_part_of_a_version_is_kept_and_accepted(tmp_path: Path, tools: Tools) -> None:
    tools.answer = "1.5.1+cu102"
    assert cache(tmp_path, tools).build(release()).description["torch"] == "1.5.1+cu102"


def test_a_torch_that_miscalculates_is_refused(tmp_path: Path, tools: Tools) -> None:
    tools.sums = [2.0, 0.0]
    with pytest.raises(EnvironmentUnavailable, match="computes") as caught:
        cache(tmp_path, tools).build(release())
    assert caught.value.code == "wrong-result"
    assert list((tmp_path / "readers").glob("*")) == []


@pytest.mark.parametrize("wheels", [[], ["torch-1.5.1.tar.gz"], ["a.whl", "b.whl"]])
def test_anything_but_one_wheel_is_refused(tmp_path: Path, tools: Tools, wheels: list[str]) -> None:
    tools.wheels = wheels
    with pytest.raises(EnvironmentUnavailable, match="expected one wheel"):
        cache(tmp_path, tools).build(release())
    assert list((tmp_path / "readers").glob("*")) == []


@pytest.mark.parametrize("cuda", ["stub", "real"])
def test_a_short_disk_is_refused_before_anything_is_written(
    tmp_path: Path, tools: Tools, cuda: environments.Cuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: SimpleNamespace(free=NEEDED_BYTES[cuda] - GB))
    needed = {"stub": "6 GB of disk space; 5.0 GB", "real": "12 GB of disk space; 11.0 GB"}[cuda]
    with pytest.raises(EnvironmentUnavailable, match=needed) as caught:
        cache(tmp_path / "not/yet", tools).build(release(), cuda=cuda)
    assert caught.value.code == "disk-short"
    assert list(tmp_path.iterdir()) == []


def test_a_missing_interpreter_is_refused_before_anything_is_written(tmp_path: Path, tools: Tools) -> None:
    with pytest.raises(EnvironmentUnavailable, match=r"CPython 3\.7; found here: 3\.11"):
        cache(tmp_path, tools).build(release(pythons=["2.7", "3.7"]))
    assert list(tmp_path.iterdir()) == []


def test_a_missing_readelf_is_refused_before_anything_is_written(
    tmp_path: Path, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environments, "need_tool", cuda_stubs.need_tool)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(EnvironmentUnavailable, match="needs readelf, which is not installed"):
        cache(tmp_path, tools).build(release(install="stubs"))
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_build_left_is_removed_first(tmp_path: Path, tools: Tools) -> None:
    left = tmp_path / "readers/torch-1.5.1/lib/torch/rest.py"
    left.parent.mkdir(parents=True)
    left.write_text("")
    assert cache(tmp_path, tools).get("1.5.1") is None
    cache(tmp_path, tools).build(release())
    assert not left.exists()


@pytest.mark.parametrize("state", ["", "[]", "{}", '{"schema_version": 99}', '{"schema_version": 1'])
def test_a_state_file_that_cannot_be_read_is_no_environment(tmp_path: Path, tools: Tools, state: str) -> None:
    built = cache(tmp_path, tools).build(release())
    (built.prefix / "environment.json").write_text(state)
    assert cache(tmp_path, tools).get("1.5.1") is None


def test_an_environment_whose_python_is_gone_is_none(tmp_path: Path, tools: Tools) -> None:
    built = cache(tmp_path, tools).build(release())
    built.python.unlink()
    built.python.symlink_to(tmp_path / "uninstalled")
    assert cache(tmp_path, tools).get("1.5.1") is None
    assert cache(tmp_path, tools).build(release()).python.exists()


@pytest.mark.parametrize("version", ["../1.5.1", "torch-1.5.1", "", "1.5/1"])
def test_only_a_version_is_looked_for(tmp_path: Path, tools: Tools, version: str) -> None:
    with pytest.raises(UsageError):
        cache(tmp_path, tools).get(version)


def test_removing_frees_what_was_used(tmp_path: Path, tools: Tools) -> None:
    built = cache(tmp_path, tools).build(release())
    state = (built.prefix / "environment.json").stat().st_size
    freed = cache(tmp_path, tools).remove("1.5.1")
    assert freed == built.description["size"] + state
    assert not built.prefix.exists()
    assert cache(tmp_path, tools).remove("1.5.1") == 0


def hold_lock(root: Path) -> Any:
    path = root / "locks/torch-1.5.1.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = path.open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def test_what_is_being_built_is_not_removed(tmp_path: Path, tools: Tools) -> None:
    (tmp_path / "readers/torch-1.5.1").mkdir(parents=True)
    with hold_lock(tmp_path), pytest.raises(EnvironmentUnavailable, match="being built by another process"):
        cache(tmp_path, tools).remove("1.5.1")
    assert (tmp_path / "readers/torch-1.5.1").is_dir()


def test_a_build_holds_the_lock_from_beginning_to_end(tmp_path: Path, tools: Tools) -> None:
    refused: list[str] = []

    def try_to_remove(_step: str) -> None:
        with pytest.raises(EnvironmentUnavailable) as caught:
            cache(tmp_path, tools).remove("1.5.1")
        refused.append(caught.value.code)

    cache(tmp_path, tools).build(release(), progress=lambda step: None if step.startswith("creating") else try_to_remove(step))
    assert len(refused) >= 3
    assert set(refused) == {"busy"}


def test_a_second_build_waits_for_the_first_and_takes_its_environment(tmp_path: Path, tools: Tools) -> None:
    lock = hold_lock(tmp_path)
    steps: list[str] = []

    def first_finishes(step: str) -> None:
        steps.append(step)
        prefix = tmp_path / "readers/torch-1.5.1"
        (prefix / "bin").mkdir(parents=True)
        (prefix / "bin/python").write_text("")
        (prefix / "environment.json").write_text('{"schema_version": 1, "torch": "1.5.1", "cuda": "none"}')
        lock.close()

    tools.fails_at = "venv"
    assert cache(tmp_path, tools).build(release(), progress=first_finishes).description["torch"] == "1.5.1"
    assert steps == ["waiting for another process that is building torch 1.5.1"]


def test_stubs_take_the_place_of_all_but_two_small_cuda_packages(tmp_path: Path, gap: cuda_stubs.Gap) -> None:
    tools = Tools("2.4.1", METADATA_2)
    built = cache(tmp_path, tools).build(release(version="2.4.1", install="stubs"))
    assert tools.installed == [
        ["filelock", "typing-extensions>=4.8.0", "numpy<2"],
        ["--no-cache-dir", "--no-deps", "nvidia-cuda-runtime-cu12==12.1.105", "nvidia-cuda-cupti-cu12==12.1.105"],
    ]
    assert built.description["cuda"] == "stub"
    assert built.description["stubs"] == ["libstubs.so", "libcublas.so.12"]


def test_the_two_small_packages_are_found_through_the_toolkit_that_pins_them(tmp_path: Path, gap: cuda_stubs.Gap) -> None:
    tools = Tools("2.15.0", METADATA_3)
    cache(tmp_path, tools).build(release(version="2.15.0", install="stubs", numpy="<3"))
    assert tools.installed == [
        ["filelock", "numpy<3"],
        ["--no-deps", "cuda-toolkit[cublas,cudart,cupti]==13.2.2"],
        ["--no-cache-dir", "--no-deps", "nvidia-cuda-runtime==13.2.*", "nvidia-cuda-cupti==13.2.*"],
    ]


def test_a_wheel_without_gaps_gets_no_stubs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "find_gap", lambda _torch, _command: cuda_stubs.Gap())
    tools = Tools("2.13.0+cpu", "Name: torch\nRequires-Dist: filelock\n")
    built = cache(tmp_path, tools).build(release(version="2.13.0", install="stubs"))
    assert (built.description["cuda"], built.description["stubs"]) == ("none", [])
    assert len(tools.installed) == 1


def test_real_cuda_packages_are_installed_when_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "find_gap", lambda _torch, _command: cuda_stubs.Gap())
    tools = Tools("2.4.1", METADATA_2)
    built = cache(tmp_path, tools).build(release(version="2.4.1", install="stubs"), cuda="real")
    assert built.description["cuda"] == "real"
    assert "nvidia-cublas-cu12==12.1.3.1" in tools.installed[1]
    assert not any("triton" in word for words in tools.installed for word in words)


def test_real_cuda_packages_that_lack_a_library_are_refused(tmp_path: Path, gap: cuda_stubs.Gap) -> None:
    with pytest.raises(EnvironmentUnavailable, match=r"the CUDA packages lack libcublas\.so\.12"):
        cache(tmp_path, Tools("2.4.1", METADATA_2)).build(release(version="2.4.1", install="stubs"), cuda="real")
    assert list((tmp_path / "readers").glob("*")) == []


def test_stubs_never_pass_for_the_real_libraries(tmp_path: Path, gap: cuda_stubs.Gap) -> None:
    wanted = release(version="2.4.1", install="stubs")
    cache(tmp_path, Tools("2.4.1", METADATA_2)).build(wanted)
    with pytest.raises(UsageError, match="built with stubs") as caught:
        cache(tmp_path, Tools("2.4.1", METADATA_2)).build(wanted, cuda="real")
    assert caught.value.hint is not None
    assert "readers remove torch-2.4.1" in caught.value.hint


def test_the_cache_folder_can_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_COMPAT_CACHE", str(tmp_path / "named"))
    assert Environments().root == tmp_path / "named"
    monkeypatch.delenv("TORCH_COMPAT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    assert Environments().root.name == "torch-compat"


def test_commands_are_really_run_and_logged(tmp_path: Path) -> None:
    command = Commands(tmp_path / "log", clean_environ())
    assert command([sys.executable, "-c", "import sys; print('out'); print('err', file=sys.stderr)"], purpose="trying") == "out\n"
    log = (tmp_path / "log").read_text(encoding="utf-8")
    assert "$ " in log
    assert "out\nerr\n" in log


@pytest.mark.parametrize(("status", "recorded"), [(0, False), (1, True)])
def test_a_quiet_command_is_logged_in_full_only_when_it_fails(tmp_path: Path, status: int, recorded: bool) -> None:
    command = Commands(tmp_path / "log", clean_environ())
    code = f"print('much ' * 2); raise SystemExit({status})"
    if status:
        with pytest.raises(EnvironmentUnavailable):
            command([sys.executable, "-c", code], purpose="trying", quiet=True)
    else:
        assert command([sys.executable, "-c", code], purpose="trying", quiet=True) == "much much \n"
    assert ("much much" in (tmp_path / "log").read_text(encoding="utf-8")) is recorded


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import sys; sys.exit('no such thing')", "no such thing"),
        ("import os; os.abort()", "killed by signal 6"),
        ("raise SystemExit(1)", "printed nothing"),
    ],
)
def test_a_command_that_fails_is_translated(tmp_path: Path, code: str, words: str) -> None:
    with pytest.raises(EnvironmentUnavailable, match=f"trying failed: .*{words}"):
        Commands(tmp_path / "log", clean_environ())([sys.executable, "-c", code], purpose="trying")


def test_a_program_that_cannot_be_started_is_translated(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentUnavailable, match=r"trying failed: .*missing"):
        Commands(tmp_path / "log", clean_environ(), run_command)([tmp_path / "missing"], purpose="trying")
    assert "missing" in (tmp_path / "log").read_text(encoding="utf-8")


def test_last_words_are_the_errors_if_there_are_any() -> None:
    assert last_words("one\nERROR: two\nthree\n[notice] new pip\n") == "ERROR: two"
    assert last_words("one\ntwo\n\nWARNING: Location x is ignored\n") == "one | two"
    assert last_words("\n") == "it printed nothing"


@pytest.mark.parametrize("name", commands._MISLEADING)
def test_misleading_variables_are_not_passed_on(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "1")
    assert name not in clean_environ()
    assert clean_environ({name: "2"})[name] == "2"


def test_the_scripts_for_old_pythons_compile_and_answer(tmp_path: Path) -> None:
    message = json.loads(
        subprocess.run([sys.executable, "-I", "-c", environments.ASK_TARGET], capture_output=True, check=True).stdout
    )
    assert Path(message["site"]).name == "site-packages"
    assert message["markers"]["python_version"] == f"{sys.version_info[0]}.{sys.version_info[1]}"


def test_the_oldest_releases_do_not_know_their_git_revision(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/version.py").write_text("__version__ = '1.0.0'\n")
    (tmp_path / "torch/__init__.py").write_text(
        "import numpy\nfrom torch import version\nfrom torch.version import __version__\nones = numpy.ones\nfrom_numpy = numpy.asarray\n"
    )
    command = [sys.executable, "-c", environments._VERIFY]
    message = json.loads(subprocess.run(command, cwd=tmp_path, capture_output=True, check=True).stdout.splitlines()[-1])
    assert (message["torch"], message["git_revision"], message["sums"]) == ("1.0.0", None, [2.0, 3.0])
