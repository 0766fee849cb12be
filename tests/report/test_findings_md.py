"""The document of all findings: each appears once, newest first, and the same evidence gives the same bytes."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.counted import relock
from tests.deprecated_tree import make_deprecated_tree
from tests.report.conftest import finding as made
from tests.small_tree import once
from torch_compat.judging.gathering import gather
from torch_compat.judging.judge import judge
from torch_compat.judging.judgement import Verdict
from torch_compat.judging.operator_changes import PairCounts
from torch_compat.policy.operator_waivers import Covers, OperatorWaiver
from torch_compat.report.findings_md import findings_md
from torch_compat.workspace import Root

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from torch_compat.judging.judge import Report


def sections(text: str) -> dict[str, str]:
    parts = re.split(r"^###? (.*)$", text, flags=re.MULTILINE)
    assert len(parts[1::2]) == len(set(parts[1::2]))
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_one_waiver_is_one_section_with_everything_that_is_to_be_said(report: Report) -> None:
    text = sections(findings_md(report))["Values changed"]
    assert (
        "a newer reader computes different values; a reader older than the writer computes different values: torchscript" in text
    )
    assert "since 2.0.0, up to 1.9.0; without a version bump" in text
    assert "4 cells, written by 1.0.0, read by 1.9.0, 2.0.0, 2.10.0" in text
    assert "**Observed:** silently" in text
    assert "`torch-1.0.0/add`: `torch-compat observe --reader torch-2.0.0 --fixture torch-1.0.0/add --show --recorded`" in text
    assert "**Waiver `w1`:** it \\*is\\* so" in text
    assert "`newer-computes:a@2.0.0`, `older-never-differs:a@1.9.0`" in text


def test_a_version_that_announces_it_is_named(report: Report) -> None:
    assert "marked by file format 4" in sections(findings_md(report))["announced"]


def test_what_no_waiver_explains_says_so(report: Report) -> None:
    section = sections(findings_md(report))["version 9 is too new \\[bold\\]not markup\\[/bold\\]"]
    assert "no waiver covers it" in section
    assert "not related to version numbers" in section


def test_every_finding_is_in_it(report: Report) -> None:
    text = findings_md(report)
    for finding in report.findings:
        assert (f"`{finding.id}`" in text) is (finding.verdict is not Verdict.EXPECTED and bool(finding.first_reader))
    assert "3 × no recipe (newer-loads)" in sections(text)["Errors in the corpus or the policy"]
    assert "3 × with `default`: as it should be" in sections(text)["Refusals that load options are meant to cause"]
    assert "12 × torch-2.0.0: not observed (pairs-observed)" in sections(text)["Could not be checked"]


def test_the_newest_breakage_comes_first(report: Report) -> None:
    result = tuple(
        replace(report.findings[0], id=f"x@{name}", title=name, first_reader=name) for name in ("1.9.0", "2.0.0", "1.10.0")
    )
    assert [name for name in sections(findings_md(replace(report, findings=result))) if name[0].isdigit()] == [
        "2.0.0",
        "1.10.0",
        "1.9.0",
    ]


def test_the_matrix_has_one_mark_for_each_pair(report: Report) -> None:
    text = findings_md(report).partition("## The matrix\n")[2]
    assert "1.9.0   ✓ ✓\n1.10.0  · ≠\n" in text


def test_many_releases_are_not_all_named(report: Report) -> None:
    many = tuple(f"1.{index}.0" for index in range(33))
    text = findings_md(replace(report, findings=(replace(report.findings[0], readers=many),)))
    assert "read by 1.0.0 to 1.32.0 (33 releases)" in text


def test_neither_the_order_nor_the_day_changes_a_byte(report: Report) -> None:
    turned = {key: Counter(dict(reversed(counts.items()))) for key, counts in reversed(report.outcomes.items())}
    assert findings_md(replace(report, outcomes=turned, as_of="2030-01-01")) == findings_md(report)


def test_deprecations_have_a_section_of_their_own(shared: Path, tmp_path: Path) -> None:
    root = shutil.copytree(once(shared, "deprecated-tree", make_deprecated_tree), tmp_path / "tree")
    (root / "policies" / "torch" / "waivers" / "early-and-known.toml").unlink()
    relock(root / "policies" / "torch")
    place = Root(root)
    text = findings_md(judge(gather(place, place.policy(), as_of=None)))
    assert "0 causes, 0 cells" in text
    section = text.partition("## Deprecations\n")[2].partition("\n## ")[0]
    assert "- 1 × torch.too\\_early was removed in 1.7.0" in section
    assert "no waiver covers it" in section
    assert "- **It is known** (since 1.4.0)\n  - torch.late: its removal was announced for 1.4.0" in section
    assert "  - Waiver `late-and-known`: so" in section


def broken_operators() -> dict[str, Any]:
    """Two operators of one waiver, one that nothing explains, and the releases in numbers."""
    waiver = OperatorWaiver(
        id="op-gone", title="They are gone", side="backward", since="2.0.0", reason="it *is*\nso", evidence="seen", owner="us",
        covers=(Covers(change=("removed",), operators=("aten::f", "aten::g")),),
    )  # fmt: skip
    facts: dict[str, Any] = {
        "rule": "schema-breaks-upgraded", "what": "removed", "options": "", "families": (), "writers": (), "readers": ("2.0.0",),
    }  # fmt: skip
    known = {"verdict": Verdict.WAIVED, "waiver": "op-gone", "title": "They are gone"}
    names = {"aten::f": (1, known), "aten::g": (2, known), "aten::h": (1, {"verdict": Verdict.FAIL, "cause": "aten::h: gone"})}
    findings = tuple(
        made(
            f"schema-breaks-upgraded:removed:{name}@2.0.0",
            **{"verdict": Verdict.FAIL, **facts, **more, "count": count, "reproduce": f"torch-compat operators history {name}"},
        )
        for name, (count, more) in names.items()
    )
    pairs = (PairCounts("1.0.0", "1.9.0", 7), PairCounts("1.9.0", "2.0.0", 5, 4, 1, 3, 2))
    return {"findings": findings, "waivers": (waiver,), "operators": pairs}


def test_operators_have_a_section_of_their_own(report: Report) -> None:
    text = findings_md(replace(report, **broken_operators()))
    assert "0 causes, 0 cells" in text
    section = sections(text)["Operators that changed without an upgrader"]
    assert "4 operator schemas, 2 causes" in section
    assert "- **They are gone** (since 2.0.0; 3 removed): `aten::f`, `aten::g`\n  - Waiver `op-gone`: it \\*is\\* so" in section
    assert "`aten::h`\n  - Not explained yet: no waiver covers it. aten::h: gone" in section
    assert "| 1.9.0 | 2.0.0 | 5 | 4 | 1 | 3 | 2 |\n| 1.0.0 | 1.9.0 | 7 | no promise | | | |" in section


def test_without_operators_there_is_no_such_section(report: Report) -> None:
    assert "Operators that changed" not in findings_md(report)


def test_what_was_asked_comes_first_and_bookkeeping_apart(report: Report) -> None:
    text = findings_md(report)
    assert "| reader | asked | pass | fail |\n|---|---:|---:|---:|\n| newer | 8 | 7 | 1 |\n| own | 5 | 5 | 0 |\n" in text
    assert "- Internal consistency (not about releases): 99 pass\n" in text
    assert text.index("## What was checked") < text.index("## What broke")


def test_each_release_has_one_section_the_newest_first_and_silent_causes_first(report: Report) -> None:
    older = made("newer-loads:older@1.9.0", Verdict.FAIL, first_reader="1.9.0", cause="older")
    text = findings_md(replace(report, findings=(older, *report.findings)))
    releases = re.findall(r"^## torch (.*)$", text, re.MULTILINE)
    assert releases == ["2.0.0", "1.9.0"]
    newest = text.partition("## torch 2.0.0\n")[2].partition("\n## ")[0]
    assert newest.index("### Values changed") < newest.index("### version 9 is too new")
    assert re.match(r"\n\d+ causes start with this release, \d+ cells; 1 changes values silently\.", newest)
