"""The document of all findings: each stands in it once, the newest first, and the same evidence gives the same bytes."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from harness.report.findings_md import findings_md
from harness.rules.judgement import Verdict

if TYPE_CHECKING:
    from harness.rules.judge import Report


def sections(text: str) -> dict[str, str]:
    parts = re.split(r"^## (.*)$", text, flags=re.MULTILINE)
    assert len(parts[1::2]) == len(set(parts[1::2]))
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_one_waiver_is_one_section_with_everything_that_is_to_be_said(report: Report) -> None:
    text = sections(findings_md(report))["Values changed"]
    assert "a newer reader computes other values; a reader older than the writer computes other values: torchscript" in text
    assert "since 2.0.0, up to 1.9.0; no version number announces it" in text
    assert "4 cells, written by 1.0.0, read by 1.9.0, 2.0.0, 2.10.0" in text
    assert "**Seen:** silently" in text
    assert "`torch-1.0.0/add`: `torch-compat observe --reader torch-2.0.0 --fixture torch-1.0.0/add --show --recorded`" in text
    assert "**Waiver `w1`:** it \\*is\\* so" in text
    assert "`newer-computes:a@2.0.0`, `older-never-differs:a@1.9.0`" in text


def test_a_version_that_announces_it_is_named(report: Report) -> None:
    assert "file format 4 announces it" in sections(findings_md(report))["announced"]


def test_what_no_waiver_explains_says_so(report: Report) -> None:
    found = sections(findings_md(report))["version 9 is too new \\[bold\\]not markup\\[/bold\\]"]
    assert "no waiver covers it" in found
    assert "not a matter of version numbers" in found


def test_every_finding_is_in_it(report: Report) -> None:
    text = findings_md(report)
    for finding in report.findings:
        assert (f"`{finding.id}`" in text) is (finding.verdict is not Verdict.EXPECTED and bool(finding.first_reader))
    assert "3 × no recipe (newer-loads)" in sections(text)["Mistakes of the corpus or the policy"]
    assert "3 × with `default`: as it should be" in sections(text)["Refusals that load options are there to cause"]
    assert "12 × torch-2.0.0: not observed (pairs-observed)" in sections(text)["Could not be checked"]


def test_the_newest_breakage_comes_first(report: Report) -> None:
    found = tuple(
        replace(report.findings[0], id=f"x@{name}", title=name, first_reader=name) for name in ("1.9.0", "2.0.0", "1.10.0")
    )
    assert [name for name in sections(findings_md(replace(report, findings=found))) if name[0].isdigit()] == [
        "2.0.0",
        "1.10.0",
        "1.9.0",
    ]


def test_the_matrix_has_one_mark_for_each_pair(report: Report) -> None:
    text = sections(findings_md(report))["The matrix"]
    assert "1.9.0   ✓ ✓\n1.10.0  · ≠\n" in text


def test_many_releases_are_not_all_named(report: Report) -> None:
    many = tuple(f"1.{index}.0" for index in range(33))
    text = findings_md(replace(report, findings=(replace(report.findings[0], readers=many),)))
    assert "read by 1.0.0 to 1.32.0 (33 releases)" in text


def test_neither_the_order_nor_the_day_changes_a_byte(report: Report) -> None:
    turned = {key: Counter(dict(reversed(counts.items()))) for key, counts in reversed(report.outcomes.items())}
    assert findings_md(replace(report, outcomes=turned, as_of="2030-01-01")) == findings_md(report)
