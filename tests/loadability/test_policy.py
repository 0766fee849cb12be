"""What needs.toml may say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from torch_compat.errors import PolicyError
from torch_compat.policy import load_policy

if TYPE_CHECKING:
    from torch_compat.policy import Policy

TORCH = Path(__file__).parents[2] / "policies" / "torch"
NEED = """
[[need]]
id = "planted"
all = ["family:torchscript"]
readers = "1.5.0.."
because = "planted"
"""


def policy_with(folder: Path, added: str) -> Policy:
    for file in TORCH.glob("*.toml"):
        text = file.read_text(encoding="utf-8")
        (folder / file.name).write_text(text + added if file.name == "needs.toml" else text, encoding="utf-8")
    return load_policy(folder, counted=False)


def test_the_policy_holds_needs_quirks_packages_and_builtins(tmp_path: Path) -> None:
    before, after = policy_with(tmp_path, ""), policy_with(tmp_path, NEED)
    assert len(after.needs) == len(before.needs) + 1
    assert after.digest != before.digest
    assert {one.package for one in after.beside} == {"numpy"}
    assert [builtin.operator.partition("(")[0] for builtin in after.builtins] == ["aten::list_with_default", "prim::shape"]


@pytest.mark.parametrize(
    ("written", "instead", "said"),
    [
        ('"1.5.0.."', '"1.5.9.."', "release '1.5.9' is not in the calendar"),
        ('"1.5.0.."', '"1.5.0..1.4.0"', "must run from an older release to a newer one; found '1.5.0..1.4.0'"),
        ('readers = "1.5.0.."\n', "", "needs either 'readers' or 'python'"),
        ('because = "planted"', 'because = "planted"\npython = "3.9"', "needs either 'readers' or 'python', and not both"),
        ('all = ["family:torchscript"]\n', "", "needs 'all' or 'any'"),
        ('id = "planted"', 'id = "model-json"', "need 'model-json' is already defined"),
        ('["family:torchscript"]', '["Family torchscript"]', "a sign of an archive such as"),
        ('because = "planted"', 'because = "planted"\ncells = 1', "unknown key 'cells'"),
    ],
)
def test_a_mistake_is_named(written: str, instead: str, said: str, tmp_path: Path) -> None:
    assert written in NEED
    with pytest.raises(PolicyError) as caught:
        policy_with(tmp_path, NEED.replace(written, instead))
    assert said in str(caught.value)
    assert "needs.toml" in str(caught.value)


@pytest.mark.parametrize(
    "table",
    [
        '[[module]]\nname = "numpy"\nbecause = "again"\n',
        '[[builtin]]\noperator = "aten::t"\nreaders = "1.5.0.."\nbecause = "no schema"\n',
        '[[builtin]]\noperator = "aten::t(Tensor self) -> Tensor"\nreaders = "1.5.9.."\nbecause = "no release"\n',
    ],
)
def test_a_module_twice_or_a_builtin_that_is_none(table: str, tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"needs\.toml"):
        policy_with(tmp_path, table)
