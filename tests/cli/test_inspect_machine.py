"""Output formats of ``inspect`` for other tools, and the pre-commit hook."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import junitparser
import pytest

import torch_compat
from tests.report.machine.test_forms import sarif_of_text
from torch_compat.cli import main
from torch_compat.cli._inspected_machine import RULES

REPOSITORY = Path(__file__).parents[2]
HOOKS = REPOSITORY / ".pre-commit-hooks.yaml"
FORMS = ("junit", "sarif", "github", "summary", "jsonl")
SOUND = REPOSITORY / "fixtures/torch-1.5.1/div.pt"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a sound archive, a damaged one, a dangerous one, one that is none, and one with a name of its own."""
    monkeypatch.chdir(tmp_path)
    shutil.copyfile(SOUND, "sound.pt")
    data = bytearray(SOUND.read_bytes())
    data[200] ^= 255
    Path("damaged.pt").write_bytes(data)
    Path("dangerous.pkl").write_bytes(b"\x80\x02cos\nsystem\nX\x01\x00\x00\x00x\x85R.")
    Path("none.pt").write_bytes(b"not an archive")
    shutil.copyfile(SOUND, "a,b:c%\x1b[2J\n::error::x.pt")
    return tmp_path


def inspected(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["inspect", *arguments])
    return int(ended.value.code or 0)


def rows(*paths: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    capsys.readouterr()
    inspected(*paths, "--format", "json", "--fail-on", "danger")
    results: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["archives"]
    return results


def test_every_form_agrees_with_the_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = sorted(path.name for path in folder.iterdir())
    status = inspected(*paths, "--fail-on", "danger", *(f"--output={form}={form}.out" for form in FORMS))
    assert status == 2
    matches = {row["path"]: row for row in rows(*paths, capsys=capsys)}
    schema = json.loads((Path(torch_compat.__file__).parent / "schemas/run-lines.schema.json").read_text())
    head, *lines = map(json.loads, Path("jsonl.out").read_text(encoding="ascii").splitlines())
    for line in (head, *lines):
        jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker()).validate(line)
    assert (head["exit_status"], head["totals"]["files"], head["entries"]) == (2, len(paths), len(lines))
    expected = {
        (path, rule)
        for path, row in matches.items()
        for rule, told in (
            ("inspect-damage", row["damage"]),
            ("inspect-danger", row["dangers"]),
            ("inspect-changes", [change for change in row["changes_of_meaning"] if change["written"] != "after"]),
        )
        if told
    }
    assert {(line["file"], line["rule"]) for line in lines if line["rule"] != "inspect-error"} == expected
    broken = {line["file"] for line in lines if line["level"] == "error"}
    assert (
        broken
        == {path for path, row in matches.items() if row["error"] or row["fails"]}
        >= {"damaged.pt", "none.pt", "dangerous.pkl"}
    )
    assert "sound.pt" not in broken
    for line in lines:
        assert line["rule"] in RULES
    results = sarif_of_text(Path("sarif.out").read_text(encoding="ascii"))["runs"][0]["results"]
    assert [(result["ruleId"], result["level"]) for result in results] == [(line["rule"], line["level"]) for line in lines]
    message = Path("github.out").read_text(encoding="utf-8").splitlines()
    assert sum(line.startswith("::error ") for line in message) == sum(line["level"] == "error" for line in lines)
    assert all(re.match(r"::(error|warning|notice) ", line) for line in message)
    assert "\x1b" not in "".join(message)
    junit = junitparser.JUnitXml.fromfile("junit.out")
    assert {suite.name for suite in junit} == set(RULES)
    assert sum(suite.failures for suite in junit) == len({line["rule"] for line in lines if line["level"] == "error"})
    assert "## torch-compat inspect" in Path("summary.out").read_text(encoding="utf-8")


def test_many_files_by_many_processes_say_the_same(folder: Path) -> None:
    for number in range(70):
        shutil.copyfile("dangerous.pkl" if number % 7 == 0 else "sound.pt", f"file-{number:02}.pt")
    assert inspected(*(f"file-{number:02}.pt" for number in range(70)), "--fail-on", "danger", "--output", "jsonl=lines") == 1
    head, *lines = map(json.loads, Path("lines").read_text(encoding="ascii").splitlines())
    assert head["totals"]["files"] == 70
    assert [line["file"] for line in lines if line["level"] == "error"] == [f"file-{number:02}.pt" for number in range(0, 70, 7)]


def test_an_absolute_path_is_no_path_of_the_repository(folder: Path) -> None:
    inspected(str(folder / "none.pt"), "--output", "sarif=s")
    (result,) = sarif_of_text(Path("s").read_text())["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": f"file://{folder}/none.pt"}


@pytest.mark.parametrize("given", ["html=x", "sarif", "json=x"])
def test_a_form_that_inspect_does_not_have(folder: Path, capsys: pytest.CaptureFixture[str], given: str) -> None:
    assert inspected("sound.pt", "--output", given) == 2
    assert "formats: junit, sarif, github, summary, jsonl" in capsys.readouterr().err


# --------------------------------------------------------------------------------------------------------------- the hook


def hook() -> dict[str, str]:
    """The hook. The file is one list item of plain keys and values, so no parser of YAML is needed to read it."""
    lines = [line for line in HOOKS.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert sum(line.startswith("- ") for line in lines) == 1
    return dict(line.lstrip("- ").split(": ", 1) for line in lines)


def test_the_hook_runs_a_command_that_this_package_installs(folder: Path) -> None:
    result = hook()
    program, *arguments = shlex.split(result["entry"])
    scripts = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["scripts"]
    assert program in scripts
    assert result["language"] == "python"
    chosen = [path.name for path in sorted(folder.iterdir()) if re.search(result["files"], path.name)]
    assert {"sound.pt", "damaged.pt", "dangerous.pkl", "none.pt"} <= set(chosen)
    assert not re.search(result["files"], "model.py")
    for names, status in ((["sound.pt"], 0), (["sound.pt", "dangerous.pkl"], 1), (["damaged.pt"], 1), (["none.pt"], 2)):
        ended = subprocess.run(
            [sys.executable, "-m", "torch_compat", *arguments, *names], check=False, capture_output=True, text=True
        )
        assert (names, ended.returncode) == (names, status), ended.stderr


@pytest.mark.skipif(
    shutil.which("pre-commit") is None or shutil.which("git") is None, reason="pre-commit or git is not installed here"
)
def test_pre_commit_accepts_the_file() -> None:
    done = subprocess.run(["pre-commit", "validate-manifest", str(HOOKS)], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
