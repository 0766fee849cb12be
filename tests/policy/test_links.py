"""References to waivers and deprecations have an existing target."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from torch_compat.errors import PolicyError
from torch_compat.policy import load_policy

POLICY = Path(__file__).parents[2] / "policies/torch"


@pytest.mark.parametrize(("file", "old", "new", "said"), [
    ("changes.toml", 'waivers = ["arange-length"]', 'waivers = ["arange-lenght"]', "there is no waiver 'arange-lenght', did you mean"),
    ("formats.toml", '["export-schema-changed"]', '["gone"]', "there is no waiver 'gone'"),
    ("deprecations/cholesky.toml", '["op-cholesky-qr-removed"]', '["op-cholesky"]', "there is no waiver 'op-cholesky'"),
    ("changes.toml", 'deprecations = ["div-integer"]', 'deprecations = ["cholesky"]', "the deprecation 'cholesky' has no event in '1.6.0'"),
    ("changes.toml", 'deprecations = ["div-integer"]', 'deprecations = ["nothing"]', "the deprecation 'nothing' does not exist"),
])  # fmt: skip
def test_a_link_to_nothing_is_a_mistake(file: str, old: str, new: str, said: str, tmp_path: Path) -> None:
    folder = tmp_path / "torch"
    shutil.copytree(POLICY, folder)
    text = (folder / file).read_text(encoding="utf-8")
    assert old in text
    (folder / file).write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(PolicyError) as caught:
        load_policy(folder, counted=False)
    assert len(caught.value.problems) == 1
    assert said.partition(", did")[0] in str(caught.value)
