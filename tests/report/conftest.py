"""A report with an example of everything."""

from __future__ import annotations

from collections import Counter

import pytest

from torch_compat.judging.cell import Outcome
from torch_compat.judging.findings import Finding
from torch_compat.judging.judge import Report
from torch_compat.judging.judgement import Asks, Verdict
from torch_compat.policy.model import Covers, Waiver


def waiver(name: str, title: str) -> Waiver:
    part = Covers.model_validate({"outcome": "different", "recipes": ["a"], "writers": "1.0.0", "readers": "1.9.0..2.10.0"})
    return Waiver(id=name, title=title, covers=(part,), reason="it *is*\nso", evidence="seen", owner="us")


def finding(name: str, verdict: Verdict, **change: object) -> Finding:
    facts: dict[str, object] = {
        "id": name,
        "rule": "newer-loads",
        "verdict": verdict,
        "count": 3,
        "cause": "version 9 is too new [bold]not markup[/bold]",
        "title": str(change.get("cause", "version 9 is too new [bold]not markup[/bold]")),
        "first_reader": "2.0.0",
        "readers": ("2.0.0", "2.10.0"),
        "writers": ("1.0.0",),
        "smallest": "torch-1.0.0/add",
        "reproduce": "torch-compat observe --reader torch-2.0.0 --fixture torch-1.0.0/add --show",
        "waiver": "",
        "what": "refused",
        "recipes": ("add",),
        "families": ("torchscript",),
        "options": "default",
        "bump": "",
    }
    return Finding(**(facts | change))  # type: ignore[arg-type]


def by_verdict(passed: int, failed: int) -> dict[Verdict, int]:
    return dict.fromkeys(Verdict, 0) | {Verdict.PASS: passed, Verdict.FAIL: failed}


@pytest.fixture
def report() -> Report:
    def key(writer: str, reader: str, options: str = "default") -> tuple[str, str, str, str]:
        return f"torch-{writer}", f"torch-{reader}", "torchscript", options

    return Report(
        as_of="2026-11-20",
        evidence="0123456789abcdef" * 4,
        exit_status=1,
        counts={verdict: index for index, verdict in enumerate(Verdict)},
        questions={
            "backward": by_verdict(7, 1),
            "own": by_verdict(5, 0),
            "forward": by_verdict(0, 0),
            "synthetic": by_verdict(0, 0),
        },
        asked={Asks.VALUES: by_verdict(12, 1), Asks.LOADING: by_verdict(0, 0), Asks.OTHER: by_verdict(0, 2), Asks.BOOKKEEPING: by_verdict(99, 0)},
        no_promise=(("newer-computes", "", 3), ("probes-hold", "options: it is not available yet; 2.0.0 can be run", 1)),
        outcomes={
            key("1.10.0", "2.0.0+cpu"): Counter(dict.fromkeys(Outcome, 1)),
            key("1.9.0", "2.0.0+cpu"): Counter({Outcome.SAME: 5}),
            key("1.9.0", "1.9.0"): Counter({Outcome.SAME: 1234}),
            key("1.9.0", "2.0.0+cpu", "strict"): Counter({Outcome.REFUSED: 7}),
        },
        findings=(
            finding("newer-loads:refused:version-9@2.0.0", Verdict.FAIL),
            finding("newer-loads:refused:strict@2.0.0", Verdict.FAIL, options="strict", cause="only with these options"),
            finding("recipes-written:x", Verdict.FAIL, first_reader="", readers=(), writers=(), options="", cause="no recipe"),
            finding(
                "newer-computes:a@2.0.0", Verdict.WAIVED, rule="newer-computes", what="different", waiver="w1", cause="silently",
                title="Values changed",
            ),
            finding(
                "older-never-differs:a@1.9.0", Verdict.WAIVED, rule="older-never-differs", what="different", waiver="w1", count=1,
                cause="silently, seen from the other side", title="Values changed", first_reader="1.9.0", readers=("1.9.0",),
            ),
            finding(
                "newer-computes:b@2.0.0", Verdict.WAIVED, rule="newer-computes", what="different", waiver="w2", cause="announced",
                bump="file format 4",
            ),
            finding("older-never-differs:c@1.0.0", Verdict.WAIVED, rule="older-never-differs", what="crashed", cause="crashed"),
            finding("newer-loads:d@2.0.0", Verdict.EXPECTED, cause="as it should be"),
        ),
        not_checked=(("pairs-observed", "torch-2.0.0: not observed", 12),),
        notes=("forward-window selects nothing, as expected: so",),
        modelled=dict.fromkeys(Verdict, 0),
        waivers=(waiver("w1", "Values changed"), waiver("w2", "Announced")),
    )  # fmt: skip
