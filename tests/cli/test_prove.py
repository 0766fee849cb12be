"""``torch-compat prove``."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from torch_compat.cli import main
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
    said = capsys.readouterr().out
    assert said.startswith("gelu_0_9: relaxed (modelled)")
    assert "0 calls answered by releases on both sides" in said


def test_a_proposed_upgrader_that_is_wrong_ends_with_1_and_a_test_that_shows_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.toml").write_text(WRONG)
    assert prove(str(tmp_path / "mine.toml"), "--counterexamples", str(tmp_path)) == 1
    said = capsys.readouterr().out
    assert "foo_0_9: changed (modelled)" in said
    assert "before: tensor(" in said
    assert len(said.splitlines()) <= 24
    assert (tmp_path / "foo_0_9_counterexample_1.pt").read_bytes()[:2] == b"PK"
    assert "torch.jit.load" in (tmp_path / "test_foo_0_9_counterexample_1.py").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "expected the id of an upgrader, a file, or --all"),
        (("div_Tensor",), "did you mean div_Tensor_0_3"),
        (("nothing.toml",), "cannot be read"),
        (("gelu_0_9", "--counterexamples", "nowhere"), "no such directory"),
        (("gelu_0_9", "--mutate", "--reader", "torch-1.5.1"), "the reference reader alone"),
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
        ("bump = 10", 'bump = "10"', "bump: expected a whole number"),
        ("bump = 10", "bump = 0", "range of versions is empty"),
        ("old = ", "older = ", None),
        ('old = "1.11.0"', 'old = "soon"', "old is no release"),
        ("return torch", "return (torch", "no TorchScript"),
        ('-> Tensor"', '"', "is not the schema of an operator"),
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
