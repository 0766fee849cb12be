"""Every rule of the policy is one documented module, and every such module is in the policy."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

from torch_compat.judging.judgement import Asks
from torch_compat.policy import load_policy

REPOSITORY = Path(__file__).parents[2]
FOLDER = REPOSITORY / "harness" / "torch_compat" / "rules"
MODULES = {path.stem for path in FOLDER.glob("*.py")} - {"__init__"}
LISTED = [rule.id for rule in load_policy(REPOSITORY / "policies" / "torch").rules]


def test_rules_and_modules_are_the_same_set() -> None:
    assert {rule.replace("-", "_") for rule in LISTED} == MODULES
    assert len(LISTED) == len(set(LISTED))


@pytest.mark.parametrize("module", sorted(MODULES))
def test_a_rule_explains_itself(module: str) -> None:
    text = ast.get_docstring(ast.parse((FOLDER / f"{module}.py").read_text(encoding="utf-8"))) or ""
    summary, *paragraphs = text.split("\n\n")
    assert summary.endswith(".")
    headings = {word for word, colon, rest in (part.partition(":") for part in paragraphs) if colon and rest.strip()}
    assert headings >= {"What", "Why", "Example", "Reference"}


@pytest.mark.parametrize("module", sorted(MODULES))
def test_a_rule_says_what_it_asks(module: str) -> None:
    assert isinstance(importlib.import_module(f"torch_compat.rules.{module}").ASKS, Asks)
