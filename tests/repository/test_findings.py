"""reports/findings.md matches the judgement of the recorded observations, and its commands reproduce it on any machine."""

from __future__ import annotations

import re
import shlex
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from torch_compat.cli import top_level
from torch_compat.judging.gathering import gather
from torch_compat.judging.judge import judge
from torch_compat.policy import load_policy
from torch_compat.report.findings_md import findings_md
from torch_compat.workspace import Root

if TYPE_CHECKING:
    from torch_compat.corpus.corpus import Corpus
    from torch_compat.judging.judge import Report

REPOSITORY = Path(__file__).parents[2]
COMMAND = re.compile(r"`torch-compat (observe --reader torch-(\S+) .*--fixture (\S+) .*--recorded)`")


PROVE = re.compile(r"`torch-compat prove (\S+)`")


@cache
def document() -> str:
    return (REPOSITORY / "reports" / "findings.md").read_text(encoding="utf-8")


def test_it_is_current(judged: Report) -> None:
    current = findings_md(judged) == document()  # no comparison of megabytes line by line where it is not
    assert current, "reports/findings.md is not what judging gives now: nox -s generate rewrites it"


def test_its_commands_name_what_there_is(corpus: Corpus) -> None:
    policy = load_policy(REPOSITORY / "policies" / "torch")
    upgraders = {upgrader.id for upgrader in policy.upgraders}
    commands, proofs = COMMAND.findall(document()), PROVE.findall(document())
    assert len(commands) + len(proofs) == document().count("**Example:**")
    assert commands
    for command, reader, fixture in commands:
        assert reader in policy.corpus.readers, command
        assert fixture in corpus.fixtures, command
    assert [upgrader for upgrader in proofs if upgrader not in upgraders] == []


@pytest.fixture(scope="module")
def commands(small_tree: Path) -> list[str]:
    """The commands that the document of the small tree gives."""
    place = Root(small_tree)
    result = findings_md(judge(gather(place, place.policy(), as_of=None)))
    return [command for command, _, _ in COMMAND.findall(result)]


@pytest.mark.parametrize("place", [0, 1, -1])
def test_its_commands_run_without_any_release(
    commands: list[str], place: int, small_tree: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TORCH_COMPAT_CACHE", str(tmp_path / "nothing-is-built"))
    ended = CliRunner().invoke(top_level, [*shlex.split(commands[place]), "--root", str(small_tree)], standalone_mode=False)
    assert ended.exception is None, commands[place]
    assert ended.return_value == 0, ended.output
    assert shlex.split(commands[place])[shlex.split(commands[place]).index("--fixture") + 1] in ended.output
