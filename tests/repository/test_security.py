"""SECURITY.md promises only what tests check: each row of the threat model names existing tests."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
ROWS = [line for line in TEXT.partition("## Threat model")[2].splitlines() if line.startswith("| ")][1:]
NAMED = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


def functions(path: Path) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.FunctionDef)}


def test_the_threat_model_has_rows() -> None:
    assert len(ROWS) > 20


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip()[:60])
def test_each_row_names_tests_that_exist(row: str) -> None:
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert len(cells) == 3
    assert all(cells)
    named = NAMED.findall(cells[2])
    assert named
    for file, function in named:
        path = ROOT / file
        assert path.is_file(), file
        assert any(name.startswith("test_") for name in functions(path))
        assert not function or function in functions(path), f"{file} has no {function}"


@pytest.mark.parametrize("word", ["What is promised", "What is not promised", "How to report", "Threat model"])
def test_the_document_has_its_parts(word: str) -> None:
    assert f"## {word}" in TEXT
