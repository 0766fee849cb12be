"""Generated files: what is in a tree is made anew, and what judging reads before what it finds."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from torch_compat.cli._generating import regenerate
from torch_compat.cli._root import Root
from torch_compat.errors import UsageError
from torch_compat.report.documents import REGENERATED, with_block

REPOSITORY = Path(__file__).parents[2]


def test_a_block_is_replaced_and_nothing_else() -> None:
    text = "a\n<!-- generated: x -->\nold\n<!-- end of what is generated -->\nb\n<!-- generated: y -->\n<!-- end of what is generated -->\n"
    assert with_block(text, "x", "new\n\\1") == text.replace("old", "new\n\\1")
    assert with_block(with_block(text, "y", "1"), "y", "2").endswith(
        "b\n<!-- generated: y -->\n2\n<!-- end of what is generated -->\n"
    )


@pytest.mark.parametrize(
    "text", ["", "<!-- generated: x -->\n", "<!-- generated: x -->\n<!-- end of what is generated -->\n" * 2]
)
def test_a_block_that_is_not_there_once(text: str) -> None:
    with pytest.raises(UsageError, match="expected one"):
        with_block(text, "x", "new")


def test_the_repository_has_every_generated_file() -> None:
    assert all((REPOSITORY / one.path).is_file() for one in REGENERATED)


def test_a_tree_is_given_what_it_has(small_tree: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    shutil.copytree(small_tree, root)
    (root / "reports/findings.md").write_text("old\n", encoding="utf-8")
    (root / "policies/policy.schema.json").write_text("{}\n", encoding="utf-8")
    told: list[str] = []
    changed, judged = regenerate(Root(root), told.append)
    assert changed == told == ["policies/policy.schema.json", "reports/findings.md"]
    assert judged.report.exit_status == 0
    assert not (root / "README.md").exists()
    published = (REPOSITORY / "policies/policy.schema.json").read_bytes()
    assert (root / "policies/policy.schema.json").read_bytes() == published
    assert regenerate(Root(root))[0] == []
