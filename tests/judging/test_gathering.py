"""Judging a tree from Python, as shown in docs/reference/python.md."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from torch_compat.cli import main

PAGE = Path(__file__).parents[2] / "docs/reference/python.md"


def test_the_documented_lines_judge_a_tree_as_the_command_does(small_tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (block,) = (item for item in blocks if "judge(gather(" in item)
    lines = block.replace("path/to/tree", str(small_tree))
    exec(compile(lines, str(PAGE), "exec"), {})
    *findings, last = capsys.readouterr().out.splitlines()
    with pytest.raises(SystemExit) as ended:
        main(["judge", "--root", str(small_tree), "--format", "json"])
    report = json.loads(capsys.readouterr().out)
    assert findings == [f"{finding['verdict']} {finding['id']} {finding['count']}" for finding in report["findings"]]
    assert findings
    assert last == f"exit status {ended.value.code or 0}"
