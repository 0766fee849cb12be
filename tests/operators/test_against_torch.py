"""What is read of a schema is what the real 2.13.0 reads of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.operators.history import History
from harness.operators.shape import shape
from harness.readers.environments import Environments
from harness.readers.torch_release import TorchRelease

ROOT = Path(__file__).parents[2]
SCRIPT = """
import json


def survey(torch):
    answers = {{}}
    with open({path!r}) as stream:
        texts = json.load(stream)
    for text in texts:
        try:
            schema = torch._C.parse_schema(text)
        except RuntimeError as error:
            answers[text] = str(error).split("\\n")[0]
            continue
        answers[text] = [
            [one.name, one.has_default_value(), one.kwarg_only, bool(one.alias_info and one.alias_info.is_write)]
            for one in schema.arguments
        ]
    return answers
"""


@pytest.mark.real_torch("2.13.0")
def test_every_schema_of_every_release_is_read_as_torch_reads_it(tmp_path: Path) -> None:
    texts = [text for text, _, _ in History.load(ROOT / "fixtures/operators/schemas.txt").facts()]
    (tmp_path / "texts.json").write_text(json.dumps(texts), encoding="utf-8")
    (tmp_path / "script.py").write_text(SCRIPT.format(path=str(tmp_path / "texts.json")), encoding="utf-8")
    environment = Environments().get("2.13.0")
    assert environment is not None
    with TorchRelease(environment) as reader:
        answers = reader.request("survey", script=str(tmp_path / "script.py"), timeout_s=120)["result"]
    unread = {text for text, answer in answers.items() if isinstance(answer, str)}
    assert len(unread) < 0.06 * len(
        texts
    )  # the grammar of old releases: <default>, a return that is empty, classes that are gone
    for text in set(texts) - unread:
        said = [[one.name, one.default is not None, one.kwarg_only, one.mutated] for one in shape(text).arguments]
        assert said == answers[text], text
