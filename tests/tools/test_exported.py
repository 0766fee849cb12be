"""``tools/exported.py``: the verdict on a cell."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.runtime.exported.documents import archive, document, node
from torch_compat.policy import load_policy
from torch_compat.runtime.encoding import perform

if TYPE_CHECKING:
    from types import ModuleType

TOOLS = Path(__file__).parents[2] / "tools"
SEED, COUNT = "1", "8"
CALLS = [{"method": "forward", "args": [{"tensor": {"dtype": "float32", "shape": [2], "data": [1, 2]}}]}]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    """The tool, imported from its file."""
    spec = importlib.util.spec_from_file_location("exported_tool", TOOLS / "exported.py")
    assert spec is not None
    assert spec.loader is not None
    result = importlib.util.module_from_spec(spec)
    before = list(sys.path)
    try:
        spec.loader.exec_module(result)
    finally:
        sys.path[:] = before
    return result


def held(tool: ModuleType, tmp_path: Path, target: str, change: Any = None) -> tuple[str, str]:
    """What the tool says where the release did what a sum does."""
    path = tmp_path / "a.pt2"
    path.write_bytes(archive(document(["x"], [node("torch.ops.aten.add.Tensor", "y", "x", {"as_int": 1})], ["y"]), samples=True))
    result = perform(path, "export", CALLS, "reference@2.6.0")
    path.write_bytes(archive(document(["x"], [node(target, "y", "x", {"as_int": 1})], ["y"]), samples=True))
    if change is not None:
        result = change(result)
    policy = load_policy(TOOLS.parent / "policies" / "torch")
    results: tuple[str, str] = tool.held(path, {"calls": CALLS, "result": result}, "2.6.0", policy)
    return results


def test_the_same_is_right_another_value_is_wrong(tool: ModuleType, tmp_path: Path) -> None:
    assert held(tool, tmp_path, "torch.ops.aten.add.Tensor")[0] == "right"
    ended, text = held(tool, tmp_path, "torch.ops.aten.sub.Tensor")
    assert ended == "wrong"
    assert "value" in text


def test_a_program_that_the_release_refuses_and_the_reader_runs_is_wrong(tool: ModuleType, tmp_path: Path) -> None:
    def refused(_: Any) -> Any:
        return {"error": {"stage": "load", "type": "builtins.RuntimeError", "message": "no"}}

    assert held(tool, tmp_path, "torch.ops.aten.add.Tensor", refused)[0] == "wrong"


def test_what_the_reader_lacks_is_named(tool: ModuleType, tmp_path: Path) -> None:
    ended, text = held(tool, tmp_path, "torch.ops.aten.segment_reduce.default")
    assert ended == "lacking"
    assert "segment_reduce" in text


@pytest.mark.real_torch("2.15.0")
def test_a_slice_of_drawn_programs_runs_as_in_the_release_that_exports_them(tmp_path: Path) -> None:
    drawn = tmp_path / "drawn"
    for command in (
        ["exported_draw.py", str(drawn), "--seed", SEED, "--count", COUNT],
        ["exported.py", str(tmp_path / "written"), "--programs", str(drawn), "--writer", "2.15.0"],
    ):
        done = subprocess.run([sys.executable, TOOLS / command[0], *command[1:]], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert len(list(drawn.iterdir())) == int(COUNT)
    assert f"2.15.0 read by 2.15.0: 0 not writable, {COUNT} right" in done.stdout
