"""Required documents, the commands in them, and words that no text of the repository may contain."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np
import pytest
from click.testing import CliRunner

import torch_compat
from torch_compat.cli import main, top_level
from torch_compat.extension import OperatorApiWarning
from torch_compat.policy import load_policy
from torch_compat.report.to_text import summary_text
from torch_compat.workspace import day_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch_compat.judging.judge import Report

REPOSITORY = Path(__file__).parents[2]
REQUIRED = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "LICENSE",
    "fixtures/README.md",
    "policies/README.md",
    "reports/README.md",
)
TOP_LEVEL = {
    ".ci", ".gitattributes", ".gitignore", ".pre-commit-hooks.yaml", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md", "SECURITY.md", "benchmarks", "changes", "docs",
    "fixtures", "harness", "noxfile.py", "policies", "pyproject.toml", "reports", "tests", "tools",
}  # fmt: skip
TOLERATED = (
    "bash docs/nightly/",
    ". .venv/bin/activate ",
    "cd ",
    "export ",
    "git ",
    "nox ",
    "pipx install ",
    "python -m pip install ",
    "python -m venv ",
    "ssh-keygen ",
    "tox ",
)  # other programs that documents may tell people to run
BUILT = {".nox", ".tox", ".venv", "build"}  # directories that git ignores and that hold copies of documents
JOINTS = {"&&", "||", "|", ";"}
RUNS = "<!-- runs -->"  # in the line above a block: its torch-compat commands are run by a test and have to end with status 0


def tracked() -> list[Path]:
    """Every file that is, or would be, in version control."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout, so there is no list of the repository's own files")
    return [path for name in listed.stdout.split("\0") if name and (path := REPOSITORY / name).is_file()]


@pytest.mark.parametrize("name", REQUIRED)
def test_a_required_document_says_something(name: str) -> None:
    assert len((REPOSITORY / name).read_text(encoding="utf-8").split()) > 20


def test_the_top_level_holds_what_belongs_there_and_nothing_that_was_left_behind() -> None:
    assert {path.relative_to(REPOSITORY).parts[0] for path in tracked()} == TOP_LEVEL


# ------------------------------------------------------------------------------------------------------ commands they show


@dataclass(frozen=True)
class Shown:
    document: str
    line: int
    command: str
    runs: bool


def shown_in(name: str, text: str) -> Iterator[Shown]:
    """Commands of a document's ``sh`` blocks, one for each part of a line that ``&&`` or a pipe joins."""
    inside = runs = False
    above = pending = ""
    for number, indented in enumerate(text.splitlines(), 1):
        line = indented.lstrip()  # a block inside a list
        if line.startswith("```"):
            inside, runs = line == "```sh" and not inside, above == RUNS
        elif inside and line.endswith("\\"):
            pending += line[:-1]
        elif inside:
            lexer = shlex.shlex(pending + line, posix=True, punctuation_chars=True)
            lexer.wordchars += ":@"  # aten::div, reference@1.5.1
            for joint, words in groupby(lexer, JOINTS.__contains__):
                if not joint:
                    yield Shown(name, number, shlex.join(words), runs)
            pending = ""
        above = line


def everything_shown() -> list[Shown]:
    documents = [path for path in sorted(REPOSITORY.glob("**/*.md")) if not BUILT & set(path.relative_to(REPOSITORY).parts)]
    return [
        shown
        for path in documents
        for shown in shown_in(path.relative_to(REPOSITORY).as_posix(), path.read_text(encoding="utf-8"))
    ]


def fault(command: str) -> str | None:
    """What is wrong with a command; None if nothing is."""
    name, *arguments = shlex.split(command)
    if name != "torch-compat":
        return None if f"{command} ".startswith(TOLERATED) else f"{name} is not a program that documents may tell people to run"
    command_, context = top_level, click.Context(top_level, info_name="torch-compat")
    result: click.Command = command_
    while isinstance(result, click.Group) and arguments and not arguments[0].startswith("-"):
        child = result.get_command(context, arguments[0])
        if child is None:
            return f"there is no command {arguments[0]!r}"
        result, context = child, click.Context(child, info_name=arguments.pop(0), parent=context)
    try:
        result.make_parser(context).parse_args(list(arguments))
    except click.UsageError as error:
        return error.format_message()
    helped = CliRunner().invoke(result, ["--help"])
    return None if helped.exit_code == 0 else f"--help ends with {helped.exit_code}"


SHOWN = everything_shown()


def test_the_readme_shows_the_two_commands() -> None:
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    commands = [shown.command for shown in shown_in("README.md", text)]
    assert "nox -s replay" in commands
    assert "nox -s tests" in commands


@pytest.mark.parametrize("shown", SHOWN, ids=lambda shown: f"{shown.document}:{shown.line}")
def test_a_shown_command_exists(shown: Shown) -> None:
    assert fault(shown.command) is None


def test_the_shown_examples_run(monkeypatch: pytest.MonkeyPatch, small_tree: Path) -> None:
    monkeypatch.chdir(small_tree)
    for shown in SHOWN:
        if shown.runs:
            name, *arguments = shlex.split(shown.command)
            assert name == "torch-compat", f"{shown}: only our own commands can be examples that run"
            with pytest.raises(SystemExit) as stopped:
                main(arguments)
            assert stopped.value.code == 0, shown


def python_blocks() -> tuple[str, str]:
    """What the README shows in Python: what asks of archives, and what stands in an extension."""
    result = re.findall(
        r"^```python\n(.*?)^```$", (REPOSITORY / "README.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    archives, extension = result
    return archives, extension


def test_the_shown_extension_says_what_it_was_built_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "torch", None)
    Path("operators.txt").write_text("calls aten::add.Tensor\n", encoding="utf-8")
    record = "extension record --operators operators.txt --release 2.4.1 --output manifest.json"
    with pytest.raises(SystemExit) as stopped:
        main(record.split())
    assert stopped.value.code == 0
    _, block = python_blocks()
    with pytest.warns(OperatorApiWarning, match="torch"):
        exec(block, {})


def test_the_shown_python_gives_what_it_says(monkeypatch: pytest.MonkeyPatch, small_tree: Path) -> None:
    monkeypatch.chdir(small_tree)
    block, _ = python_blocks()
    first, *shown = [line for line in block.splitlines() if line]
    assert first == "import torch_compat"
    assert len(shown) == 2
    for line in shown:
        expression, _, message = line.partition("  # ")
        result = eval(expression, {"torch_compat": torch_compat})
        assert repr(result) == message or (message == "a numpy array" and type(result) is np.ndarray)


def test_the_waivers_of_the_repository_last_until_every_shown_day() -> None:
    policy = load_policy(REPOSITORY / "policies" / "torch")
    days = {day_of(day, policy) for shown in SHOWN if shown.runs for day in re.findall(r"--as-of (\S+)", shown.command)}
    assert days
    for waiver in policy.waivers:
        assert not any(waiver.expired(day) for day in days), waiver.id


@pytest.mark.parametrize(
    "command",
    [
        "torch-compat jduge",
        "torch-compat judge --form json",
        "torch-compat readers biuld torch-1.5.1",
        "rm -r fixtures",
        "noxious",
    ],
)
def test_a_planted_wrong_command_is_found(command: str) -> None:
    assert fault(command)


def test_commands_are_found_in_blocks() -> None:
    text = f"a\n\n{RUNS}\n```sh\ntorch-compat judge  # as of today\n```\n\n```sh\ngit clone X && nox \\\n  -s tests\n```\n"
    results = [(shown.line, shown.command, shown.runs) for shown in shown_in("d.md", text)]
    assert results == [(5, "torch-compat judge", True), (10, "git clone X", False), (10, "nox -s tests", False)]


# ---------------------------------------------------------------------------------------------------- words in no text file

HOSTS = ["pypi" + ".org", "python" + "hosted", "download." + "pytorch"]  # in pieces: this file is searched as well
HOME = r"(?<![\w.<>])/(?:home|Users)/\w|(?<![\w.<>])/[r]oot(?:/|\b)|[A-Za-z]:\\+Users\\"
FORBIDDEN = re.compile("|".join([*map(re.escape, HOSTS), HOME]))


def test_no_text_names_a_home_folder_or_a_package_index() -> None:
    results = []
    for path in tracked():
        data = path.read_bytes()
        if b"\0" not in data:
            text = data.decode("utf-8")
            results += [
                f"{path.relative_to(REPOSITORY)}:{text.count(chr(10), 0, match.start()) + 1}: {match[0]}"
                for match in FORBIDDEN.finditer(text)
            ]
    assert results == []


@pytest.mark.parametrize("planted", [f"https://{HOSTS[0]}/simple", f"see /{'home'}/somebody", f"'/{'root'}/x'"])
def test_a_planted_word_is_found(planted: str) -> None:
    assert FORBIDDEN.search(planted)


def test_the_matrix_that_the_readme_shows_is_the_one_that_is_judged(judged: Report, printed: Callable[[str], str]) -> None:
    matrix = [line.rstrip() for line in printed("text").split("\n\n")[2].splitlines()]
    assert len(matrix) > 6
    assert "\n".join(matrix) == summary_text(judged)
    assert "\n".join(matrix) in (REPOSITORY / "README.md").read_text(encoding="utf-8")


def test_the_readme_names_the_parts_of_the_output_in_their_order(printed: Callable[[str], str]) -> None:
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    section = readme.partition("## Reading the output\n")[2].partition("\n## ")[0]
    parts = re.findall(r"^- `([^`]+)`", section, re.MULTILINE)
    *starts, totals = [paragraph.splitlines()[0] for paragraph in printed("text").strip().split("\n\n")]
    named = [next((part for part in parts if start.startswith(part)), None) for start in starts]
    assert [start for start, part in zip(starts, named, strict=True) if part is None] == []
    assert list(dict.fromkeys(named)) == [part for part in parts if part in named]
    assert totals.startswith("Internal consistency")
