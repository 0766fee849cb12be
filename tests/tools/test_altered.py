"""``tools/altered.py``: builds made from a release without altering the release, and the checks of reports about them."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest

from tests.tooling import program
from torch_compat.readers.environments import Environment

if TYPE_CHECKING:
    from pathlib import Path

TOOL = program("altered")
DAY = dt.date(2026, 7, 15)
LIBRARY = b"\0".join(old for old in TOOL.CHANGES["operators"]["lib/libtorch_cpu.so"])
REBUILD = "def _rebuild_parameter(data, requires_grad, hooks):\n    return torch.nn.Parameter(data, requires_grad)\n"


@pytest.fixture
def release(tmp_path: Path) -> Environment:
    """An environment with the files that are altered, and one that is not."""
    prefix = tmp_path / "torch-2.13.0"
    torch = prefix / "lib" / "python3.11" / "site-packages" / "torch"
    (torch / "lib").mkdir(parents=True)
    (torch / "version.py").write_text("__version__ = '2.13.0+cpu'\ncuda = None\n", encoding="utf-8")
    (torch / "_utils.py").write_text(REBUILD, encoding="utf-8")
    (torch / "lib" / "libtorch_cpu.so").write_bytes(LIBRARY)
    (torch / "lib" / "libtorch_cpu.so").chmod(0o755)
    (torch / "__init__.py").write_text("", encoding="utf-8")
    (prefix / "bin").mkdir()
    (prefix / "bin" / "python").symlink_to("/usr/bin/python3")
    return Environment("2.13.0", prefix, prefix / "bin" / "python", {})


def contents(prefix: Path) -> dict[str, bytes]:
    """Every file of a folder."""
    return {path.relative_to(prefix).as_posix(): path.read_bytes() for path in prefix.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("kind", "altered"), [("same", ()), ("python", ("_utils.py",)), ("operators", ("lib/libtorch_cpu.so",))])
def test_only_what_is_altered_differs_and_the_release_stays(
    release: Environment, tmp_path: Path, kind: str, altered: tuple[str, ...]
) -> None:
    before = contents(release.prefix)
    python = TOOL.make(release, kind, tmp_path / "build", DAY)
    assert python == tmp_path / "build" / "bin" / "python"
    assert contents(release.prefix) == before
    after = contents(tmp_path / "build")
    torch = "lib/python3.11/site-packages/torch"
    assert {name for name in before if before[name] != after[name]} == {f"{torch}/{name}" for name in ("version.py", *altered)}
    assert b"'2.14.0.dev20260715+cpu'" in after[f"{torch}/version.py"]
    library = f"{torch}/lib/libtorch_cpu.so"
    assert len(after[library]) == len(before[library])
    assert (tmp_path / "build" / library).stat().st_mode & 0o777 == 0o755
    plain = f"{torch}/__init__.py"
    assert (tmp_path / "build" / plain).stat().st_ino == (release.prefix / plain).stat().st_ino  # no second copy of a gigabyte


def test_a_release_without_the_text_is_not_altered(release: Environment, tmp_path: Path) -> None:
    (path,) = release.prefix.glob("lib/*/site-packages/torch/_utils.py")
    path.write_text("", encoding="utf-8")
    with pytest.raises(SystemExit, match=r"_utils\.py of this release does not contain 'torch\.nn\.Parameter"):
        TOOL.make(release, "python", tmp_path / "build", DAY)


def report(status: int, *new: tuple[str, str, str], required: bool = False) -> dict[str, Any]:
    """A report of ``candidate`` with these new items."""
    items = [{"what": what, "witness": witness, "policy": policy, "cause": f"{witness} is new"} for what, witness, policy in new]
    return {
        "new": items, "exit_status": status,
        "not_asked": [{"what": "operators", "why": "not listed", "required": True, "count": 1}] if required else [],
    }  # fmt: skip


PARAMETERS = ("computes", "torch-1.11.0/save_parameters (little-endian)", "breaks")


@pytest.mark.parametrize(
    ("kind", "found", "said"),
    [
        ("same", report(0), []),
        ("itself", report(0), []),
        ("same", report(0, ("warns", "torch-1.0.0/div", "allowed")), ["new: torch-1.0.0/div is new"]),
        ("same", report(4, required=True), ["required but not checked: operators: not listed", "exit status 4, expected 0"]),
        ("python", report(1, PARAMETERS), []),
        ("python", report(1, PARAMETERS, ("own", "torch-2.14.0.dev20260715/save_parameters", "breaks")), []),
        ("python", report(0), ["the report lacks: computes of save_parameters", "exit status 0, expected 1"]),
        (
            "python",
            report(0, (*PARAMETERS[:2], "allowed")),
            ["the report lacks: computes of save_parameters", "exit status 0, expected 1"],
        ),
    ],
)
def test_what_is_wrong_with_a_report(kind: str, found: dict[str, Any], said: list[str]) -> None:
    assert TOOL.wrong(kind, found) == said


def test_every_altered_operator_has_to_be_named() -> None:
    new = [(what, f"torch-1.0.0/{name}" if what != "operator" else name, "breaks") for what, name in TOOL.EXPECTED["operators"]]
    assert TOOL.wrong("operators", report(1, *new)) == []
    for left in new:
        rest = [item for item in new if item != left]
        assert len(TOOL.wrong("operators", report(1, *rest))) == 1


def test_a_release_that_is_not_built_is_incomplete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TORCH_COMPAT_CACHE", str(tmp_path / "empty"))
    assert TOOL.main(["check", "--release", "2.13.0"]) == 4
    assert "not built here: torch-2.13.0" in capsys.readouterr().err
