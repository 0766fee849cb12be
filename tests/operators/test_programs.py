"""The statements of operator waivers about saved programs, compared with real releases: the older saves a program, the newer loads it.

PyTorch's check compares schemas; whether a program with the operator still loads is a separate question, which the evidence of each
waiver answers with numbers. They are counted again here, for every pair of releases that is built.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from torch_compat.operators.breaks import Break, consecutive
from torch_compat.operators.history import FactHistory, History
from torch_compat.operators.schema import parse
from torch_compat.policy import load_policy
from torch_compat.readers.environments import Environments
from torch_compat.releases.data import packaged

if TYPE_CHECKING:
    from torch_compat.policy.operator_waivers import OperatorWaiver

SCRIPT = Path(__file__).with_name("torch_programs.py")
POLICY = load_policy(Path(__file__).parents[2] / "policies" / "torch")
SAVED = re.compile(
    r"torch (?P<old>[\d.]+) saved (?P<saved>a program|\d+ programs) that .*?; torch (?P<new>[\d.]+) (?P<said>.*?)[.] "
)
UNSAVED = re.compile(r"cannot save (\d+) of these calls")
WITHOUT = {"op-full-names-upgrader"}  # about an upgrader, not about a schema


def stated(waiver: OperatorWaiver) -> re.Match[str] | None:
    return SAVED.search(" ".join(waiver.evidence.split()))


WAIVERS = [waiver for waiver in POLICY.operator_waivers if waiver.side == "backward" and waiver.id not in WITHOUT]
PAIRS = sorted({(found["old"], found["new"]) for waiver in WAIVERS if (found := stated(waiver))})


def test_every_waiver_says_what_became_of_programs() -> None:
    assert [waiver.id for waiver in WAIVERS if stated(waiver) is None] == []
    assert [waiver.id for waiver in WAIVERS if (result := stated(waiver)) and result["new"] != waiver.since] == []
    assert len(PAIRS) > 10


def run(release: str, *arguments: object) -> None:
    environment = Environments().get(release)
    assert environment is not None, f"torch-{release} is not built"
    command = [str(environment.python), str(SCRIPT), *map(str, arguments)]
    subprocess.run(
        command, check=True, env=environment.environ(), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=300
    )


def broken(new: str) -> dict[str, Break]:
    """What broke with a release, by a name for its file."""
    history, versions = History.load(), FactHistory(packaged("fixtures", "operators", "operator_versions.txt"))
    pairs = consecutive(history, versions, since=history.releases.index("1.12.1"))
    return {str(at): item for _, newer, _, result in pairs if newer == new for at, item in enumerate(result) if item.known}


def question(item: Break) -> tuple[str, list[str], list[str]]:
    schema = parse(item.old, recorded=True)
    types, returns = ([entry.type.fake.text for entry in each] for each in (schema.arguments, schema.returns))
    return schema.name, types, returns


@pytest.mark.parametrize(("old", "new"), [pytest.param(*pair, marks=pytest.mark.real_torch(*pair)) for pair in PAIRS])
def test_programs_end_as_the_waivers_say(old: str, new: str, tmp_path: Path) -> None:
    asked = broken(new)
    questions, answers = tmp_path / "questions.json", tmp_path / "answers.json"
    questions.write_text(json.dumps({name: question(item) for name, item in asked.items()}))
    (tmp_path / "programs").mkdir()
    run(old, "save", questions, tmp_path / "programs")
    run(new, "load", answers, tmp_path / "programs")
    unsaved, message = json.loads((tmp_path / "programs" / "saved.json").read_text()), json.loads(answers.read_text())
    for waiver in WAIVERS:
        result = stated(waiver)
        if result is None or waiver.since != new:
            continue
        covered = [name for name, item in asked.items() if waiver.operators.get(item.operator) == item.change]
        saved = [name for name in covered if name not in unsaved]
        loads = sum(message[name] == "" for name in saved)
        counts = {"loads": loads, "refuses": len(saved) - loads}
        words = {"it": 1, "them": len(covered)}
        told = dict.fromkeys(counts, 0) | {
            what: words[number] if number in words else int(number)
            for what, number in re.findall(r"(loads|refuses) (\w+)", result["said"])
        }
        cannot = UNSAVED.search(" ".join(waiver.evidence.split()))
        assert (told, len(covered) - len(saved)) == (counts, int(cannot[1]) if cannot else 0), waiver.id
