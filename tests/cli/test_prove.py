"""``torch-compat prove``."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from torch_compat.cli import main
from torch_compat.corpus.proofs import read_proof
from torch_compat.readers.environments import Environments
from torch_compat.releases.data import packaged

if TYPE_CHECKING:
    from pathlib import Path

WRONG = """
[[upgrader]]
id = "foo_0_9"
operator = "aten::gelu"
bump = 10
old_schema = "aten::gelu(Tensor self) -> Tensor"
body = '''
def foo_0_9(self: Tensor) -> Tensor:
  return torch.gelu(self, approximate='tanh')'''
old = "1.11.0"
"""


def prove(*arguments: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(["prove", *arguments])
    return int(end.value.code or 0)


def test_a_preserved_upgrader_ends_with_0_and_says_that_no_release_has_confirmed_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert prove("gelu_0_9") == 0
    message = capsys.readouterr().out
    assert message.startswith("gelu_0_9: relaxed (modeled)")
    assert "0 calls answered by releases on both sides" in message


def test_a_proposed_upgrader_that_is_wrong_ends_with_1_and_a_test_that_shows_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.toml").write_text(WRONG)
    assert prove(str(tmp_path / "mine.toml"), "--counterexamples", str(tmp_path)) == 1
    message = capsys.readouterr().out
    assert "foo_0_9: changed (modeled)" in message
    assert "before: tensor(" in message
    assert len(message.splitlines()) <= 24
    assert (tmp_path / "foo_0_9_counterexample_1.pt").read_bytes()[:2] == b"PK"
    assert "torch.jit.load" in (tmp_path / "test_foo_0_9_counterexample_1.py").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "expected the id of an upgrader, a file, or --all"),
        (("div_Tensor",), "did you mean div_Tensor_0_3"),
        (("nothing.toml",), "cannot be read"),
        (("gelu_0_9", "--counterexamples", "nowhere"), "directory not found"),
        (("gelu_0_9", "--mutate", "--reader", "torch-1.5.1"), "only the reference reader"),
        (("gelu_0_9", "--reader", "torch-0.0.1"), "0.0.1"),
    ],
)
def test_mistakes_end_with_2_and_say_what_is_expected(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert prove(*arguments) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("bump = 10", 'bump = "10"', "bump: expected an integer"),
        ("bump = 10", "bump = 0", "range of versions is empty"),
        ("old = ", "older = ", None),
        ('old = "1.11.0"', 'old = "soon"', "old is not a release"),
        ("return torch", "return (torch", "not TorchScript"),
        ('-> Tensor"', '"', "is not an operator schema"),
    ],
)
def test_a_table_with_a_mistake_ends_with_2(
    right: str, wrong: str, said: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert right in WRONG
    (tmp_path / "mine.toml").write_text(WRONG.replace(right, wrong))
    assert prove(str(tmp_path / "mine.toml")) == (0 if said is None else 2)
    told = capsys.readouterr()
    assert said is None or said in told.err
    assert said is not None or "unreachable" in told.out


def test_torch_and_pydantic_are_not_imported() -> None:
    code = (
        "import sys\nfrom torch_compat.cli import main\ntry:\n    main(['prove', 'gelu_0_9'])\nexcept SystemExit:\n"
        "    print(sorted({'torch', 'pydantic', 'hypothesis'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=packaged(),
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "[]"


# ----------------------------------------------------------------------------------------------------------------- records


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A tree of policies alone, of which records can be kept."""
    shutil.copytree(packaged("policies"), tmp_path / "policies")
    return tmp_path


def test_a_proof_is_recorded_in_the_tree_and_a_counterexample_of_it_is_tried_first(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = root / "policies" / "torch" / "upgraders.toml"
    right = table.read_text()
    table.write_text(right.replace("torch.gelu(self, approximate='none')'''", "torch.gelu(self, approximate='tanh')'''", 1))
    assert prove("gelu_0_9", "--record", "--root", str(root)) == 1
    assert "wrote " in capsys.readouterr().out
    proof = read_proof(root / "reports" / "proofs" / "gelu_0_9.jsonl")
    assert proof.examples
    assert proof.kept
    assert (proof.old, proof.new, proof.confirmed) == ((), (), 0)
    assert prove("gelu_0_9", "--count", "1", "--root", str(root)) == 1, "one call, and the kept one"
    table.write_text(right)
    assert prove("gelu_0_9", "--record", "--root", str(root)) == 0
    again = read_proof(root / "reports" / "proofs" / "gelu_0_9.jsonl")
    assert again.examples == ()
    assert again.kept == proof.kept


def test_what_the_policy_does_not_state_is_not_recorded(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.toml").write_text(WRONG)
    assert prove(str(tmp_path / "mine.toml"), "--record", "--root", str(root)) == 2
    assert "has no table in policies/torch/upgraders.toml" in capsys.readouterr().err
    assert not (root / "reports").exists()


@pytest.mark.real_torch("1.11.0", "2.13.0")
def test_what_a_build_answers_is_kept_in_a_tree_of_its_own(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    environment = Environments().get("2.13.0")
    assert environment is not None
    trees = root / "trees"
    monkeypatch.setattr("torch_compat.replay.trees.builds_folder", lambda: trees)
    readers = ("--reader", "torch-1.11.0", "--reader", f"python:{environment.python}")
    assert prove("gelu_0_9", "--count", "24", "--record", "--root", str(root), *readers) == 0
    assert "wrote " in capsys.readouterr().out
    (result,) = trees.glob("torch-2.13.0*/reports/proofs/gelu_0_9.jsonl")
    assert read_proof(result).confirmed == 24
    assert not (root / "reports").exists(), "what a build answers never enters the corpus"
