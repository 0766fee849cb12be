"""docs/upgraders.md from a made-up change to a proof: every command runs here, in order, in a separate tree."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from torch_compat.cli import main

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "upgraders.md"
UPGRADER, RECIPE = "square_0_10", "upgrade_square_0_10"


class Block(NamedTuple):
    """A fenced block of the page: its language with what stands behind it, and its text."""

    kind: str
    text: str


def blocks() -> Iterator[Block]:
    for match in re.finditer(r"(?ms)^```([a-z ]+)\n(.*?)^```$", PAGE.read_text(encoding="utf-8")):
        yield Block(match[1], match[2])


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The policy, and what is recorded of operators and proofs; one old recipe and its fixtures stand for the corpus."""
    shutil.copytree(ROOT / "policies", tmp_path / "policies")
    shutil.copytree(ROOT / "fixtures" / "operators", tmp_path / "fixtures" / "operators")
    (tmp_path / "fixtures" / "recipes").mkdir()
    shutil.copytree(ROOT / "reports" / "proofs", tmp_path / "reports" / "proofs")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    return tmp_path


def run(line: str, root: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    program, *arguments = shlex.split(line)
    if program == "python":
        environ = {**os.environ, "PYTHONPATH": str(ROOT / "harness"), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, *arguments, "-p", "no:cacheprovider"]
        done = subprocess.run(command, cwd=root, env=environ, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr
    assert program == "torch-compat"
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    message = capsys.readouterr()
    return int(ended.value.code or 0), message.out + message.err


def with_body(text: str, body: str) -> str:
    head, result, rest = text.rpartition(f'id = "{UPGRADER}"')
    assert result
    return head + result + re.sub(r"(?s)body = '''\n.*?'''", f"body = '''\n{body.rstrip()}'''", rest, count=1)


def test_every_command_of_the_walk_through_does_what_the_page_says(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = root / "policies" / "torch" / "upgraders.toml"
    message, commands = "", 0
    for block in blocks():
        if block.kind == "python body":
            table.write_text(with_body(table.read_text(encoding="utf-8"), block.text), encoding="utf-8")
        elif block.kind == "python recipe":
            path = root / "fixtures" / "recipes" / f"{RECIPE}.py"
            assert "<replace this: " in path.read_text(encoding="utf-8")
            path.write_text(block.text, encoding="utf-8")
        elif block.kind == "text":
            assert [line for line in block.text.splitlines() if line not in message] == []
        elif block.kind in {"sh", "sh test"}:
            message = ""
            for line in block.text.splitlines():
                command, _, note = line.partition("#")
                wanted = int(note.removeprefix(" exits with ")) if note else 0
                status, told = run(command, root, capsys)
                if command.split()[:2] == ["torch-compat", "judge"] and "--upgrader" not in command:
                    assert f"recipes/{RECIPE}.py" in told, told  # the rest of this tree is empty, and red for its own reasons
                else:
                    assert status == wanted, f"{line}\n{told}"
                message += told
                commands += 1
    assert commands >= 9


def test_the_page_shows_what_new_upgrader_writes(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, told = run("torch-compat new upgrader aten::square", root, capsys)
    assert status == 0
    for step in ("prove square_0_10 --record", "judge --upgrader square_0_10", "--recipe upgrade_square_0_10 --everywhere"):
        assert step in told
        assert step.split(" --")[0] in PAGE.read_text(encoding="utf-8")
    again = run("torch-compat new upgrader aten::square", root, capsys)[1]
    assert "created" not in again, "what is there stays"
    assert "1. write the body of square_0_10" in again


def test_an_earlier_upgrader_of_the_operator_is_named(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    earlier = "aten::div.Tensor already has the upgrader div_Tensor_0_3, for programs of file format 3 and older"
    status, told = run("torch-compat new upgrader aten::div.Tensor", root, capsys)
    assert status == 0
    assert earlier in told
    assert "delete the table of div_Tensor_4_10 in policies/torch/upgraders.toml and the created files" in told
    again = run("torch-compat new upgrader aten::div.Tensor", root, capsys)[1]
    assert earlier in again
    assert "delete" not in again
    assert "already has" not in run("torch-compat new upgrader aten::square", root, capsys)[1]


@pytest.mark.parametrize(
    ("operator", "said"),
    [
        ("aten::no_such", "has no operator 'aten::no_such'"),
        ("aten::square.Tensor", "it has aten::square"),
        (
            "square",
            "write the operator with its namespace and overload, such as aten::add.Tensor; it has aten::square, aten::square.out",
        ),
        ("aten::sqaure", "did you mean aten::square, aten::square_ or "),
        ("aten::len.str", "so it cannot be proven"),
        ("aten::bernoulli", "is not supported in an upgrader"),
    ],
)
def test_operators_that_no_upgrader_can_be_for(operator: str, said: str, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, told = run(f"torch-compat new upgrader {operator}", root, capsys)
    assert status == 2
    assert said in told
