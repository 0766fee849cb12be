"""The four rules about exported programs, and the distance of each release from the strict profile."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from torch_compat.corpus.exported import RecordedExports, read_exports
from torch_compat.errors import PolicyError
from torch_compat.judging.gathering import gather
from torch_compat.judging.judge import judge
from torch_compat.judging.judgement import Verdict
from torch_compat.operators.export_schema import Alteration, Reaction
from torch_compat.report.exported_md import RULES, distances, exported_md
from torch_compat.workspace import Root

if TYPE_CHECKING:
    from torch_compat.judging.evidence import Evidence
    from torch_compat.judging.judgement import Judgement

ROOT = Path(__file__).parents[2]
HISTORIES = ("export_schema.txt", "export_witnesses.txt", "constants.txt")
SILENT = {Reaction.DROPPED, Reaction.IGNORED}


@pytest.fixture(scope="module")
def evidence() -> Evidence:
    return gather(Root(ROOT))


def spoilt(evidence: Evidence, folder: Path, name: str, old: str, new: str) -> Evidence:
    """The evidence with one text of a history exchanged for another."""
    operators = folder / "operators"
    operators.mkdir()
    for history in HISTORIES:
        text = (ROOT / "fixtures" / "operators" / history).read_text(encoding="utf-8")
        if history == name:
            assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {history}"
            text = text.replace(old, new)
        (operators / history).write_text(text, encoding="utf-8")
    return replace(evidence, exported=read_exports(folder))


def strictly(evidence: Evidence) -> Evidence:
    (profile,) = [item for item in evidence.policy.profiles if item.exported]
    return replace(evidence, policy=evidence.policy.under(profile))


def judged(evidence: Evidence, rule: str) -> list[Judgement]:
    (entry,) = [item for item in evidence.policy.rules if item.id == rule]
    return list(RULES[rule].judge(evidence, entry))


def failed(evidence: Evidence, rule: str) -> set[str]:
    return {item.subject for item in judged(evidence, rule) if item.verdict is Verdict.FAIL}


def exports_of(evidence: Evidence) -> RecordedExports:
    assert evidence.exported is not None
    return evidence.exported


@pytest.mark.parametrize("rule", RULES)
def test_what_pytorch_promises_holds_and_everything_was_asked(evidence: Evidence, rule: str) -> None:
    verdicts = {item.verdict for item in judged(evidence, rule)}
    assert Verdict.PASS in verdicts
    assert verdicts <= {Verdict.PASS, Verdict.NO_PROMISE}


def test_the_strict_profile_fails_exactly_what_loaders_do_silently(evidence: Evidence) -> None:
    (entry,) = [rule for rule in evidence.policy.rules if rule.id == "export-unknown-refused"]
    silent = {
        f"{answer.name} in torch-{answer.release}"
        for answer in exports_of(evidence).witnesses.answers()
        if answer.reaction in SILENT and answer.alteration in entry.parameters["unknown"]
    }
    assert silent
    assert failed(strictly(evidence), "export-unknown-refused") == silent


def test_the_two_silent_changes_are_named_with_the_releases_between_which_they_lie(evidence: Evidence) -> None:
    names = failed(strictly(evidence), "export-opsets-tell")
    assert {"export_arange_fraction: 2.13.0 and 2.14.1", "export_attention_three_dimensions: 2.13.0 and 2.14.1"} <= names


def test_another_operator_set_version_is_a_sign(evidence: Evidence, tmp_path: Path) -> None:
    bumped = spoilt(
        evidence, tmp_path, "constants.txt", "max_operator_version\t10\t1.12.1..",
        "max_operator_version\t10\t1.12.1..2.13.0\nmax_operator_version\t11\t2.14.1..",
    )  # fmt: skip
    names = failed(strictly(bumped), "export-opsets-tell")
    assert names
    assert not [name for name in names if name.endswith("2.13.0 and 2.14.1")]


def test_the_change_of_the_schema_in_2_4_breaks_under_one_major_number(evidence: Evidence) -> None:
    names = failed(strictly(evidence), "export-minors-compatible")
    assert names == {"schema of torch-2.4.1: ~ OptionalTensorArgument.as_tensor: str -> TensorArgument"}


def test_a_changed_line_of_the_schema_without_another_version_fails_always(evidence: Evidence, tmp_path: Path) -> None:
    changed = spoilt(
        evidence,
        tmp_path,
        "export_schema.txt",
        "enums > ScalarType > UINT64\t35\t2.12.1..",
        "enums > ScalarType > UINT64\t35\t2.13.0..",
    )
    assert failed(changed, "export-minors-compatible") == {"schema of torch-2.13.0"}


def test_a_dropped_field_that_is_recorded_as_kept_is_missed_by_the_strict_profile(evidence: Evidence, tmp_path: Path) -> None:
    before = failed(strictly(evidence), "export-unknown-refused")
    changed = spoilt(
        evidence, tmp_path, "export_witnesses.txt", "field-of-node@2.9.1 > keeps\tfalse\t2.9.1..", "field-of-node@2.9.1 > keeps\ttrue\t2.9.1..",
    )  # fmt: skip
    gone = before - failed(strictly(changed), "export-unknown-refused")
    assert gone == {name for name in before if name.startswith("field-of-node@2.9.1 ")}
    assert exported_md(changed) != (ROOT / "reports" / "exported.md").read_text(encoding="utf-8")


def test_a_loader_that_takes_another_major_version_fails_always(evidence: Evidence, tmp_path: Path) -> None:
    line = next(
        line for line in (ROOT / "fixtures/operators/export_witnesses.txt").read_text(encoding="utf-8").splitlines()
        if line.startswith("major-newer@2.5.1 > loads")
    )  # fmt: skip
    changed = spoilt(
        evidence, tmp_path, "export_witnesses.txt", line, f'major-newer@2.5.1 > loads\t"loads"\t{line.rpartition(chr(9))[2]}'
    )
    assert failed(changed, "export-versions-read") == {f"major-newer@2.5.1 in torch-{release}" for release in ("2.5.0", "2.5.1")}


def test_a_loader_that_compares_the_minor_version_fails_always(evidence: Evidence, tmp_path: Path) -> None:
    changed = spoilt(
        evidence, tmp_path, "export_witnesses.txt", 'minor-newer@2.5.1 > loads\t"loads"\t2.5.0..2.5.1', 'minor-newer@2.5.1 > loads\t"refused: no"\t2.5.0..2.5.1',
    )  # fmt: skip
    assert failed(changed, "export-versions-read") == {"minor-newer@2.5.1 in torch-2.5.1"}  # 2.5.0 is older than the writer


@pytest.mark.parametrize("rule", RULES)
def test_where_nothing_is_recorded_nothing_passes(evidence: Evidence, rule: str) -> None:
    assert {item.verdict for item in judged(replace(evidence, exported=None), rule)} == {Verdict.NOT_CHECKED}


def test_an_alteration_without_an_answer_is_not_checked_and_one_that_there_is_not_is_a_mistake(evidence: Evidence) -> None:
    (entry,) = [item for item in evidence.policy.rules if item.id == "export-unknown-refused"]
    rule = RULES[entry.id]
    odd = entry.model_copy(update={"parameters": {"unknown": ["no-such-thing"]}})
    with pytest.raises(PolicyError, match="no-such-thing"):
        list(rule.judge(evidence, odd))


def test_every_alteration_is_judged_or_says_nothing_about_what_a_program_means(evidence: Evidence) -> None:
    (entry,) = [rule for rule in evidence.policy.rules if rule.id == "export-unknown-refused"]
    versions = {Alteration.NOTHING, Alteration.MINOR_NEWER, Alteration.MINOR_ZERO, Alteration.MAJOR_NEWER, Alteration.MAJOR_OLDER}
    meaningless = {Alteration.NODE_NAME, Alteration.OPSET_NONE}
    assert set(entry.parameters["unknown"]) | versions | meaningless == set(Alteration)


def test_the_report_counts_what_the_strict_profile_fails(evidence: Evidence) -> None:
    result = distances(evidence)
    assert result
    wanted = [item for rule in RULES for item in judged(strictly(evidence), rule) if item.verdict is Verdict.FAIL]
    assert sum(distance.count for distance in result) == sum(item.count for item in wanted)
    rows = [
        line.split(" | ")
        for line in exported_md(evidence).splitlines()
        if line.startswith("| 2.") and line.count("|") == len(RULES) + 3
    ]
    assert {row[0].strip("| ") for row in rows} == set(exports_of(evidence).witnesses.releases)
    assert sum(int(row[1]) for row in rows) == sum(item.count for item in wanted)


def test_judging_under_the_strict_profile_ends_with_1_for_just_these_findings(evidence: Evidence) -> None:
    report = judge(strictly(evidence))
    failing = [finding for finding in report.findings if finding.rule in RULES and finding.verdict is Verdict.FAIL]
    assert sum(finding.count for finding in failing) == sum(distance.count for distance in distances(evidence))
    assert report.exit_status == 1
