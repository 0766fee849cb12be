"""What slips.toml may say."""

from __future__ import annotations

from pathlib import Path

import pytest

from torch_compat.errors import PolicyError
from torch_compat.policy import Policy, load_policy

TORCH = Path(__file__).parents[2] / "policies" / "torch"
SLIP = """
[[slip]]
id = "planted"
all = ["family:torchscript", "unmet:operator"]
readers = "1.5.0..1.7.1"
outcome = "crashed"
stage = "load"
signal = "SIGABRT"
because = "planted"
evidence = "planted"
"""


def policy_with(folder: Path, added: str) -> Policy:
    for file in TORCH.glob("*.toml"):
        text = file.read_text(encoding="utf-8")
        (folder / file.name).write_text(text + added if file.name == "slips.toml" else text, encoding="utf-8")
    return load_policy(folder, counted=False)


def test_slips_keep_their_order_and_count_in_the_digest(tmp_path: Path) -> None:
    before, after = policy_with(tmp_path, ""), policy_with(tmp_path, SLIP)
    assert [slip.id for slip in after.slips] == [*(slip.id for slip in before.slips), "planted"]
    assert after.digest != before.digest


@pytest.mark.parametrize(
    ("written", "instead", "said"),
    [
        ('"1.5.0..', '"1.5.9..', "release '1.5.9' is not in the calendar"),
        ('"1.5.0..', '"1.8.0..', "must run from an older release to a newer one; found '1.8.0..1.7.1'"),
        ('"1.5.0..1.7.1"', '"none"', "readers: must name at least one"),
        ('all = ["family:torchscript", "unmet:operator"]\n', "", "needs 'all' or 'any'"),
        ('"unmet:operator"', '"recipe:div"', "a sign such as 'unmet:file-format'"),
        ('"unmet:operator"', '"runs:attribute-store"', "met only while a program runs"),
        ('stage = "load"', 'stage = "call"', "names no sign that begins with 'runs:'"),
        ('outcome = "crashed"', 'outcome = "value"', "while loading it can be 'crashed' or 'timed-out'"),
        ('signal = "SIGABRT"\n', "", "needs 'signal'"),
        ('outcome = "crashed"', 'outcome = "timed-out"', "nothing dies of what is 'timed-out'"),
        ('evidence = "planted"', 'evidence = "planted"\ncells = 3', "unknown key 'cells'"),
        ('id = "planted"', 'id = "buffers-without-type"', "slip 'buffers-without-type' is already defined"),
        ('evidence = "planted"\n', "", "evidence"),
    ],
)
def test_a_mistake_is_named(written: str, instead: str, said: str, tmp_path: Path) -> None:
    assert written in SLIP
    with pytest.raises(PolicyError) as caught:
        policy_with(tmp_path, SLIP.replace(written, instead))
    assert said in str(caught.value)
    assert "slips.toml" in str(caught.value)


def test_every_mistake_is_named_at_once(tmp_path: Path) -> None:
    planted = SLIP.replace("1.5.0", "1.5.9").replace('signal = "SIGABRT"\n', "").replace('evidence = "planted"\n', "")
    with pytest.raises(PolicyError) as caught:
        policy_with(tmp_path, planted)
    assert len(caught.value.problems) == 3
