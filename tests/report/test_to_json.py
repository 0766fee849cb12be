"""The report as JSON: complete, in the published form, always the same bytes."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema

import torch_compat
from torch_compat.report.to_json import report_json

if TYPE_CHECKING:
    from torch_compat.judging.judge import Report

SCHEMA = json.loads((Path(torch_compat.__file__).parent / "schemas" / "report.schema.json").read_text(encoding="utf-8"))


def test_it_matches_the_published_schema(report: Report) -> None:
    jsonschema.validate(json.loads(report_json(report)), SCHEMA)


def test_it_says_everything(report: Report) -> None:
    document = json.loads(report_json(report))
    assert document["schema_version"] == 1
    assert document["exit_status"] == 1
    assert document["counts"] == {
        "pass": 0,
        "fail": 1,
        "expected": 2,
        "waived": 3,
        "continues": 4,
        "no-promise": 5,
        "not-checked": 6,
    }
    assert len(document["matrix"]) == len(report.outcomes)
    assert document["matrix"][0]["writer"] == "torch-1.10.0"
    assert sum(document["matrix"][0]["counts"].values()) == 11
    assert [finding["id"] for finding in document["findings"]] == [finding.id for finding in report.findings]
    assert document["not_checked"] == [{"what": "pairs-observed", "reason": "torch-2.0.0: not observed", "count": 12}]
    assert document["notes"] == list(report.notes)
    assert document["values_right"]["backward"] == {
        "pass": 7, "fail": 1, "expected": 0, "waived": 0, "continues": 0, "no-promise": 0, "not-checked": 0,
    }  # fmt: skip
    assert document["asked"]["bookkeeping"]["pass"] == 99
    assert document["no_promise"] == [
        {"what": "newer-computes", "reason": None, "count": 3},
        {"what": "probes-hold", "reason": "options: it is not available yet; 2.0.0 can be run", "count": 1},
    ]


def test_what_a_finding_has_not_is_null(report: Report) -> None:
    document = json.loads(report_json(report))
    first, _, recipe, silent, _, announced, *_ = document["findings"]
    assert (silent["title"], silent["cause"], silent["families"]) == ("Values changed", "silently", ["torchscript"])
    assert (first["waiver"], first["announced_by"], first["options"]) == (None, None, "default")
    assert (recipe["first_reader"], recipe["readers"], recipe["options"]) == (None, [], None)
    assert (announced["announced_by"], announced["waiver"]) == ("file format 4", "w2")


def test_the_order_of_what_has_none_changes_no_byte(report: Report) -> None:
    turned = {key: Counter(dict(reversed(counts.items()))) for key, counts in reversed(report.outcomes.items())}
    assert report_json(replace(report, outcomes=turned)) == report_json(report)


def test_it_is_ascii_and_ends_with_a_newline(report: Report) -> None:
    text = report_json(replace(report, notes=("≠ ✓",)))
    assert text.isascii()
    assert text.endswith("}\n")
    assert json.loads(text)["notes"] == ["≠ ✓"]
