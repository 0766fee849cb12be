"""prove_upgrader: a contributor's test, in any repository."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from torch_compat.errors import UsageError
from torch_compat.testing import NotPreservedError, prove_upgrader

ROOT = Path(__file__).parents[2]
RIGHT = """
[[upgrader]]
id = "gelu_0_9"
operator = "aten::gelu"
bump = 10
old_schema = "aten::gelu(Tensor self) -> Tensor"
body = '''
def gelu_0_9(self: Tensor) -> Tensor:
  return torch.gelu(self, approximate='none')'''
old = "1.11.0"
"""
FEW = 48


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(RIGHT)
    return path


def test_an_upgrader_that_preserves_is_proven(mine: Path) -> None:
    assert prove_upgrader("gelu_0_9", count=FEW).verdict == "relaxed"
    proof = prove_upgrader(mine, count=FEW)
    assert proof.verdicts["same"]
    assert proof.modelled


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("'none'", "'tanh'", "before: tensor("),
        ("torch.gelu(self, approximate='none')", "self", "after: "),
        ("torch.gelu(self, approximate='none')", "torch.no_such_operator(self)", "the body does not compile"),
        ('old = "1.11.0"', "", "no archive can contain this call"),
        (
            "  return torch.gelu(self, approximate='none')",
            "  if self.dim() > 9:\n    return self\n  return torch.gelu(self, approximate='none')",
            "no generated call reaches the branch at line 2: self.dim() > 9 holds",
        ),
    ],
)
def test_a_wrong_upgrader_fails_with_a_message_of_at_most_a_screen(right: str, wrong: str, said: str, mine: Path) -> None:
    mine.write_text(RIGHT.replace(right, wrong))
    with pytest.raises(NotPreservedError) as result:
        prove_upgrader(mine, count=FEW)
    assert said in str(result.value)
    assert len(str(result.value).splitlines()) <= 24


def test_mistakes_are_told(mine: Path) -> None:
    with pytest.raises(UsageError, match="expected one of the upgraders"):
        prove_upgrader("no_such_0_3")
    with pytest.raises(UsageError, match="expected one of the upgraders gelu_0_9"):
        prove_upgrader(mine, "other")
    with pytest.raises(UsageError, match=r"torch 0\.0\.1 is not built here"):
        prove_upgrader(mine, old=["0.0.1"])
    with pytest.raises(UsageError, match="cannot be read"):
        prove_upgrader(mine.with_name("nothing.toml"))


@pytest.mark.real_torch("1.11.0", "2.13.0")
def test_releases_that_are_named_answer(mine: Path) -> None:
    assert prove_upgrader(mine, old=["1.11.0"], new=["2.13.0"], count=FEW).confirmed > 20


def test_another_repository_needs_the_wheel_alone(tmp_path: Path) -> None:
    """With what the wheel holds and nothing else of this repository, in a process of its own."""
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    site, other = tmp_path / "site", tmp_path / "other"
    shutil.copytree(
        ROOT / "harness" / "torch_compat", site / "torch_compat", ignore=shutil.ignore_patterns("__pycache__", "_packaged")
    )
    for source, target in wheel["force-include"].items():
        shutil.copytree(ROOT / source, site / target)
    other.mkdir()
    (other / "mine.toml").write_text(RIGHT)
    (other / "wrong.toml").write_text(RIGHT.replace("'none'", "'tanh'"))
    (other / "test_mine.py").write_text(
        "from torch_compat.testing import prove_upgrader\n\n\n"
        f'def test_mine():\n    prove_upgrader("mine.toml", count={FEW})\n\n\n'
        f'def test_wrong():\n    prove_upgrader("wrong.toml", count={FEW})\n'
    )
    environ = {**os.environ, "PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_mine.py"],
        cwd=other, env=environ, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "gelu_0_9: changed" in done.stdout
