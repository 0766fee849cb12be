"""Reading the recorded facts about releases."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from torch_compat.errors import CorpusError, PolicyError
from torch_compat.loadability import Rules, load_rules, packaged_rules
from torch_compat.releases.behavior import OF_ARCHIVES

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def rules() -> Rules:
    return packaged_rules()


def test_the_checkout_is_what_is_packaged_with_it(rules: Rules) -> None:
    assert rules.releases[0] == "1.0.0"
    assert rules.everyone.bit_count() == len(rules.releases)
    assert load_rules(REPOSITORY / "policies" / "torch", REPOSITORY / "fixtures").needs == rules.needs


def test_every_sign_that_is_asked_for_is_one_that_is_looked_for(rules: Rules) -> None:
    assert rules.asked.keys() <= OF_ARCHIVES


def test_a_release_that_was_not_asked_is_answered_for_by_the_nearest_of_its_line(rules: Rules) -> None:
    asked = rules.schemas.releases
    assert rules.stands_for["2.1.0"] == rules.stands_for["2.1.1"] == "2.1.2"
    assert rules.stands_for["1.3.0"] == "1.3.1"
    assert not rules.stands_for.keys() & set(asked)
    assert set(rules.releases) == {*rules.stands_for, *asked}


def test_weights_only_is_what_each_release_that_has_it_does(rules: Rules) -> None:
    assert "1.12.1" not in rules.weights_only
    assert "torch.uint16" not in rules.weights_only["2.5.1"].globals
    assert "torch.uint16" in rules.weights_only["2.6.0"].globals
    assert rules.weights_only["2.1.0"].globals == rules.weights_only["2.1.2"].globals
    first = rules.releases[rules.default.bit_length() - rules.default.bit_count()]
    assert first == "2.6.0"


def test_a_format_has_takers_up_to_the_last_release_that_reads_it(rules: Rules) -> None:
    assert rules.known.text(rules.formats["bytecode", 3][0]) == "1.7.0..1.11.0"
    assert rules.known.text(rules.formats["bytecode", 4][0]) == "1.7.0.."


def test_a_need_of_python_is_met_by_each_release_with_a_wheel_for_that_version_or_a_newer_one(rules: Rules) -> None:
    """1.4.0 is the first release with a wheel for 3.8, and none of its wheels is for a newer version."""
    assert rules.known.text(rules.takers["pickle-protocol-5"]) == "1.4.0.."


def test_a_missing_policy_is_said(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="cannot be read"):
        load_rules(tmp_path, REPOSITORY / "fixtures")


def test_a_missing_history_is_said(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="no recorded history"):
        load_rules(REPOSITORY / "policies" / "torch", tmp_path)


def test_nothing_heavy_is_imported_to_judge() -> None:
    code = "import sys, torch_compat.loadability; print(sorted({'pydantic', 'click', 'torch', 'zipfile', 'pickletools', 'packaging'} & sys.modules.keys()))"
    judged = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=REPOSITORY)
    assert judged.stdout.strip() == "[]"


def test_loading_everything_is_quick() -> None:
    best = min(_seconds() for _ in range(5))
    assert best < 0.12, "60 ms is what it may take; twice that on a busy machine"


def _seconds() -> float:
    start = time.process_time()
    load_rules(REPOSITORY / "policies" / "torch", REPOSITORY / "fixtures")
    return time.process_time() - start


def test_what_loaders_of_exported_programs_know_is_asked_for_and_has_names_of_its_own(rules: Rules) -> None:
    names = [need.id for need in (*rules.needs, *rules.exported)]
    assert len(names) == len(set(names))
    assert {"program-called-model", "higher-order-of-2.8", "results-of-2.7"} <= {need.id for need in rules.exported}
    assert "higher_order::scan" in rules.asked["calls"]
