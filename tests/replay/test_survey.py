from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.corpus.surveys import read_survey, survey_differences, write_survey
from harness.errors import ReaderError
from harness.readers.environments import Environments
from harness.replay import survey as module
from harness.replay.survey import SCRIPT, survey
from tests.miniatures import miniature
from tests.miniatures.tree import TODAY

ROOT = Path(__file__).parents[2]


def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> dict[str, object]:
    script = tmp_path / "survey.py"
    script.write_text(f"import os, time\n\n\ndef survey(torch):\n    {body}\n", encoding="utf-8")
    monkeypatch.setattr(module, "SCRIPT", script)
    monkeypatch.setattr(module, "SECONDS", 0.5)
    return survey(miniature(tmp_path, "1.5.1"))


def test_what_the_script_says_is_given_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask(tmp_path, monkeypatch, "return {'version': torch.__version__, 'n': [1, None]}") == {
        "version": "1.5.1",
        "n": [1, None],
    }


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("os.abort()", "surveying 1.5.1 ended with crashed"),
        ("time.sleep(30)", "surveying 1.5.1 ended with timed-out"),
        ("raise ValueError('no')", "could not carry out 'survey': builtins.ValueError: no"),
        ("return {1, 2}", "could not carry out 'survey': builtins.TypeError"),
    ],
)
def test_a_survey_that_fails_is_a_reader_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, words: str) -> None:
    with pytest.raises(ReaderError) as caught:
        ask(tmp_path, monkeypatch, body)
    assert words in caught.value.message


def test_the_script_that_is_asked_comes_with_the_package() -> None:
    assert SCRIPT.is_file()


@pytest.mark.real_torch("1.5.1")
def test_a_real_release_says_again_what_was_recorded(tmp_path: Path) -> None:
    environment = Environments().get("1.5.1")
    assert environment is not None
    said = survey(environment)
    recorded = read_survey(ROOT / "fixtures" / "operators" / "torch-1.5.1.json")
    again = tmp_path / "torch-1.5.1.json"
    write_survey(again, "1.5.1", dict(recorded.identity), TODAY, said)
    assert survey_differences(recorded, read_survey(again)) == []
    assert json.loads(again.read_text(encoding="utf-8"))["release"] == "1.5.1"
