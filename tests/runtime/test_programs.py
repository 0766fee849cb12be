"""Programs of several releases that show what no fixture of the corpus shows; the results are those of the writer.

``programs/manifest.jsonl`` lists for each archive the release that wrote it, what it shows, the calls, and their results in that release.
The archives are those written by the releases, repacked without their debug records.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tools.differential.generated import apart
from torch_compat.runtime.encoding import perform

PROGRAMS = Path(__file__).with_name("programs")
ROWS: list[dict[str, Any]] = [json.loads(line) for line in (PROGRAMS / "manifest.jsonl").read_text(encoding="utf-8").splitlines()]


def test_every_archive_is_in_the_manifest() -> None:
    assert sorted(path.name for path in PROGRAMS.glob("*.pt")) == sorted(row["file"] for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=[row["file"].removesuffix(".pt") for row in ROWS])
def test_does_what_it_did_in_its_writer(row: dict[str, Any]) -> None:
    got = perform(PROGRAMS / row["file"], "torchscript", row["calls"], f"reference@{row['writer']}")
    assert ("error" in row["result"]) == ("error" in got), got.get("error")
    assert not apart(row["result"], got)


@pytest.mark.parametrize("row", ROWS, ids=[row["file"].removesuffix(".pt") for row in ROWS])
def test_runs_without_a_horizon(row: dict[str, Any]) -> None:
    """The newest reader takes all of them, and what a program raised in its writer it raises here."""
    got = perform(PROGRAMS / row["file"], "torchscript", row["calls"], "reference")
    assert "error" not in got
    for there, here in zip(row["result"].get("calls", []), got["calls"], strict=False):
        assert there["first"].keys() == here["first"].keys()
