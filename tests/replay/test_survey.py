from __future__ import annotations

from pathlib import Path

import pytest

from tests.miniatures import miniature
from tests.miniatures.tree import TODAY
from torch_compat.corpus.surveys import parse_survey, read_survey, survey_differences
from torch_compat.errors import ReaderError
from torch_compat.readers.environments import Environments
from torch_compat.replay import survey as module
from torch_compat.replay.survey import SCRIPT, survey

ROOT = Path(__file__).parents[2]


def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> dict[str, object]:
    script = tmp_path / "survey.py"
    script.write_text(f"import os, time\n\n\ndef survey(torch):\n    {body}\n", encoding="utf-8")
    monkeypatch.setattr(module, "SCRIPT", script)
    monkeypatch.setattr(module, "SECONDS", 0.5)
    monkeypatch.setattr(module, "_exported", lambda *_: {})
    monkeypatch.setattr(module, "_calls", lambda *_: {})
    return survey(miniature(tmp_path, "1.5.1"), ROOT / "fixtures")


def test_what_the_script_says_is_given_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask(tmp_path, monkeypatch, "return {'version': torch.__version__, 'n': [1, None]}") == {
        "version": "1.5.1",
        "n": [1, None],
    }


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("os.abort()", "survey of torch 1.5.1 failed: crashed"),
        ("time.sleep(30)", "survey of torch 1.5.1 failed: timed-out"),
        ("raise ValueError('no')", "failed to run 'survey': builtins.ValueError: no"),
        ("return {1, 2}", "failed to run 'survey': builtins.TypeError"),
    ],
)
def test_a_survey_that_fails_is_a_reader_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, words: str) -> None:
    with pytest.raises(ReaderError) as caught:
        ask(tmp_path, monkeypatch, body)
    assert words in caught.value.message


def test_the_script_that_is_asked_comes_with_the_package() -> None:
    assert SCRIPT.is_file()


def test_a_release_without_exported_programs_says_so(tmp_path: Path) -> None:
    asked = module._exported(miniature(tmp_path, "1.5.1"), ROOT / "fixtures")
    assert asked.keys() == {"export_schema", "export_witnesses"}
    assert [(item["complete"], item["entries"]) for item in asked.values()] == [(False, {})] * 2


@pytest.mark.real_torch("1.5.1")
def test_an_old_release_says_again_what_was_recorded() -> None:
    assert differences("1.5.1") == []


@pytest.mark.real_torch("2.13.0")
def test_a_new_release_says_again_what_was_recorded() -> None:
    assert differences("2.13.0") == []


def differences(release: str) -> list[str]:
    environment = Environments().get(release)
    assert environment is not None
    recorded = read_survey(ROOT / "fixtures", release)
    return survey_differences(recorded, parse_survey(release, recorded.identity, TODAY, survey(environment, ROOT / "fixtures")))
