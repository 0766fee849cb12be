"""Programs of tools/: their effects on a tree, and their error messages."""

from __future__ import annotations

import runpy
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from torch_compat.policy.counts import LOCK, WAITS, lock_text, read_lock
from torch_compat.replay.generating import UNUSED

if TYPE_CHECKING:
    from collections.abc import Callable

TOOLS = Path(__file__).parents[2] / "tools"


def tool(name: str) -> Callable[[list[str]], int]:
    """The function ``main`` of a program."""
    main: Callable[[list[str]], int] = runpy.run_path(str(TOOLS / f"{name}.py"))["main"]
    return main


def test_generate_says_what_changed(small_tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "root"
    shutil.copytree(small_tree, root)
    (root / "policies/policy.schema.json").write_text("{}\n", encoding="utf-8")
    for name in ("policies/policy.schema.json\n", "everything that is generated is current\n"):
        assert tool("generate")(["--root", str(root)]) == 0
        assert capsys.readouterr().out == name


@pytest.mark.parametrize(
    ("name", "arguments", "status", "said"),
    [
        ("generate", ["--root", "nowhere"], 2, "directory not found"),
        ("rehearse", ["--release", "9.9.9"], 2, "has no torch release '9.9.9'"),
    ],
)
def test_what_cannot_be_done_is_said(
    name: str, arguments: list[str], status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tool(name)(arguments) == status
    assert said in capsys.readouterr().err


def test_causes_that_explain_nothing_are_taken_out_of_policy_and_lock(tmp_path: Path) -> None:
    results: dict[str, Any] = runpy.run_path(str(TOOLS / "rehearse.py"))
    policies = tmp_path / "policies/torch"
    policies.mkdir(parents=True)
    text = "# above\n\n" + "".join(
        f'[[{kind}]]\nid = "{name}"\noutcome = "value"\n\n'
        for kind, name in (("behavior", "a"), ("change", "a"), ("behavior", "ab"))
    )
    (policies / "behaviors.toml").write_text(text, encoding="utf-8")
    (policies / LOCK).write_text(lock_text({("behavior", "a"): 1, ("behavior", "ab"): 2}), encoding="utf-8")
    results["take_out"](tmp_path, {("behavior", "a")})
    assert (policies / "behaviors.toml").read_text("utf-8") == text.replace('[[behavior]]\nid = "a"\noutcome = "value"\n\n', "")
    assert read_lock(policies).values == {("behavior", "ab"): 2}


def test_the_predictions_name_the_causes_to_remove(tmp_path: Path) -> None:
    """A copy whose predictions name one cause until the policy no longer has it."""
    policies = tmp_path / "policies/torch"
    policies.mkdir(parents=True)
    (policies / "behaviors.toml").write_text(
        "".join(f'[[behavior]]\nid = "{name}"\noutcome = "value"\n\n' for name in ("a", "b")), encoding="utf-8"
    )
    (policies / LOCK).write_text(lock_text({("behavior", "a"): 1, ("behavior", "b"): 2}), encoding="utf-8")
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/predictions.py").write_text(
        "import pathlib, sys\n"
        "if 'id = \"a\"' in pathlib.Path('policies/torch/behaviors.toml').read_text():\n"
        f"    sys.exit('behavior a {UNUSED}')\n",
        encoding="utf-8",
    )
    runpy.run_path(str(TOOLS / "rehearse.py"))["predict"](tmp_path)
    assert read_lock(policies).values == {("behavior", "b"): 2}


def test_what_people_decide_is_put_back(tmp_path: Path) -> None:
    results: dict[str, Any] = runpy.run_path(str(TOOLS / "rehearse.py"))
    for root, text in (("expected", "theirs"), ("tree", "ours")):
        for name in ("releases.toml", "weights_only.toml", "behaviors.toml", "x.toml"):
            path = tmp_path / root / "policies/torch" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f'text = "{text}"\n', encoding="utf-8")
    waiver, lock = '[[behavior]]\nid = "x"\noutcome = "value"\n', tmp_path / "tree/policies/torch" / LOCK
    (tmp_path / "expected/policies/torch/x.toml").write_text(waiver, encoding="utf-8")
    (tmp_path / "tree/policies/torch/y.toml").write_text(waiver.replace("x", "y"), encoding="utf-8")
    became = tmp_path / "expected/policies/torch/operator_waivers/o.toml"
    became.parent.mkdir()
    became.write_text('[operator_waiver]\nid = "o"\ncovers = [{ operators = ["aten::a", "aten::b"] }]\n', encoding="utf-8")
    a, b = (("operator_waiver", f"o aten::{name}") for name in "ab")
    lock.write_text(lock_text({("behavior", "y"): 2, b: WAITS}), encoding="utf-8")
    (tmp_path / "expected/policies/torch" / LOCK).write_text(
        lock_text({("behavior", "x"): 7, ("behavior", "y"): 3, ("behavior", "z"): 1, a: "0" * 16, b: "1" * 16}), encoding="utf-8"
    )
    results["put_back"](tmp_path / "expected", tmp_path / "tree")
    kept = {path.name for path in (tmp_path / "tree").rglob("*.toml") if "ours" in path.read_text(encoding="utf-8")}
    assert kept == {"releases.toml", "weights_only.toml"}
    assert lock.read_text(encoding="utf-8") == lock_text({("behavior", "x"): 7, ("behavior", "y"): 2, a: "0" * 16, b: WAITS})
