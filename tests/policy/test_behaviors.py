"""The valid contents of behaviors.toml."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from torch_compat.errors import PolicyError
from torch_compat.policy import Policy, load_policy
from torch_compat.releases import behavior
from torch_compat.releases.behavior import SIGN_KINDS, Condition

TORCH = Path(__file__).parents[2] / "policies" / "torch"
SLIP = """
[[behavior]]
id = "planted"
all = ["family:torchscript", "unmet:operator"]
readers = "1.5.0..1.7.1"
outcome = "crashed"
stage = "load"
signal = "SIGABRT"
because = "planted"
evidence = "planted"
"""
NEED = """
[[behavior]]
id = "planted"
all = ["family:torchscript"]
readers = "1.5.0.."
outcome = "loads"
because = "planted"
"""
REFUSAL = """
[[behavior]]
id = "planted"
all = ["weights-only", "recipe:save"]
writers = "1.5.0..1.8.1"
readers = "1.13.0.."
outcome = "refused"
because = "planted"
"""
UNPICKLES = """
[[behavior]]
id = "planted"
all = ["weights-only"]
readers = "1.13.0.."
outcome = "unpickles"
because = "planted"
takes = { adds = true }
"""
OFFER = """
[[behavior]]
id = "planted"
readers = "1.5.0.."
outcome = "offers"
operator = "aten::t(Tensor self) -> Tensor"
because = "planted"
"""


def policy_with(folder: Path, added: str) -> Policy:
    for file in TORCH.glob("*.toml"):
        text = file.read_text(encoding="utf-8")
        (folder / file.name).write_text(text + added if file.name == "behaviors.toml" else text, encoding="utf-8")
    return load_policy(folder, counted=False)


def test_every_kind_of_sign_is_described_once_and_every_sign_of_the_policy_is_of_a_kind(tmp_path: Path) -> None:
    described = re.findall(r"^    ([a-z-]+)(?=[: ])", str(behavior.__doc__), re.MULTILINE)
    assert sorted(described) == sorted(SIGN_KINDS)
    asked = {sign.partition(":")[0] for entry in policy_with(tmp_path, "").behaviors for sign in entry.when.signs}
    assert asked <= SIGN_KINDS


def test_a_condition_asks_for_all_any_and_none() -> None:
    when = Condition(("a",), ("b", "c"), ("d",))
    assert when.holds("ab")
    assert when.holds("acx")
    assert not any(map(when.holds, ("a", "b", "abd", "")))


@pytest.mark.parametrize("added", [SLIP, NEED, REFUSAL, UNPICKLES, OFFER])
def test_behaviors_keep_their_order_and_count_in_the_digest(added: str, tmp_path: Path) -> None:
    before, after = policy_with(tmp_path, ""), policy_with(tmp_path, added)
    ids = [entry.id for entry in after.behaviors]
    assert [identifier for identifier in ids if identifier != "planted"] == [entry.id for entry in before.behaviors]
    assert ids[ids.index("planted") + 1].startswith("unpickler-")  # of the next file
    assert after.digest != before.digest


@pytest.mark.parametrize(
    ("table", "written", "instead", "said"),
    [
        (SLIP, '"1.5.0..', '"1.5.9..', "release '1.5.9' is not in the calendar"),
        (SLIP, '"1.5.0..', '"1.8.0..', "must go from an older release to a newer one; found '1.8.0..1.7.1'"),
        (SLIP, '"1.5.0..1.7.1"', '"none"', "readers: must name at least one"),
        (SLIP, 'readers = "1.5.0..1.7.1"\n', "", "needs 'readers' if the outcome is 'crashed'"),
        (SLIP, 'all = ["family:torchscript", "unmet:operator"]\n', "", "needs 'all' or 'any'"),
        (SLIP, '"unmet:operator"', '"recipe:div"', "'recipe:div' is not a sign for this outcome"),
        (SLIP, '"unmet:operator"', '"record:x"', "'record:x' is not a sign for this outcome"),
        (SLIP, '"unmet:operator"', '"runs:attribute-store"', "occurs only while a program runs"),
        (SLIP, 'stage = "load"', 'stage = "call"', "has no sign that starts with 'runs:'"),
        (SLIP, 'outcome = "crashed"', 'outcome = "value"', "must be 'crashed' or 'timed-out' while loading"),
        (SLIP, 'signal = "SIGABRT"\n', "", "needs 'signal'"),
        (SLIP, 'outcome = "crashed"', 'outcome = "timed-out"', "does not apply to the outcome 'timed-out'"),
        (SLIP, 'stage = "load"\n', "", "needs 'stage' if the outcome is 'crashed'"),
        (
            SLIP,
            'stage = "load"',
            'stage = "load"\ndeparts = true',
            "departs: does not apply to a behavior whose outcome is 'crashed'",
        ),
        (SLIP, 'evidence = "planted"', 'evidence = "planted"\ncells = 3', "unknown key 'cells'"),
        (SLIP, 'id = "planted"', 'id = "buffers-without-type"', "behavior 'buffers-without-type' is already defined"),
        (SLIP, 'evidence = "planted"\n', "", "needs 'evidence'"),
        (NEED, '"1.5.0.."', '"1.5.9.."', "release '1.5.9' is not in the calendar"),
        (NEED, 'readers = "1.5.0.."\n', "", "needs either 'readers' or 'python'"),
        (NEED, 'because = "planted"', 'because = "planted"\npython = "3.9"', "needs either 'readers' or 'python', but not both"),
        (NEED, 'all = ["family:torchscript"]\n', "", "needs 'all' or 'any'"),
        (NEED, 'id = "planted"', 'id = "model-json"', "behavior 'model-json' is already defined"),
        (NEED, '["family:torchscript"]', '["Family torchscript"]', "a sign such as"),
        (NEED, '["family:torchscript"]', '["unmet:operator"]', "'unmet:operator' is not a sign for this outcome"),
        (NEED, 'outcome = "loads"', 'outcome = "loads"\nstage = "load"', "does not apply to a behavior whose outcome is 'loads'"),
        (NEED, 'outcome = "loads"', 'outcome = "saves"', "outcome"),
        (NEED, 'outcome = "loads"', 'outcome = "loads"\nwriters = "1.5.0.."', "needs both 'writers' and 'says', or neither"),
        (NEED, 'outcome = "loads"', 'outcome = "loads"\nwriters = "1.5.9.."\nsays = "no"', "'1.5.9' is not in the calendar"),
        (REFUSAL, '"1.5.0..1.8.1"', '"1.5.0.."', "must name a first and a last release"),
        (
            REFUSAL,
            'all = ["weights-only", "recipe:save"]',
            'all = ["family:torch-save"]',
            "'family:torch-save' is not a sign for this outcome",
        ),
        (UNPICKLES, "takes = { adds = true }", "takes = {}", "takes: does not cover these releases"),
        (UNPICKLES, "adds = true", "add = true", "unknown key 'add'"),
        (OFFER, '(Tensor self) -> Tensor"', '"', "a schema such as"),
        (OFFER, '"1.5.0.."', '"1.5.9.."', "release '1.5.9' is not in the calendar"),
        (OFFER, 'readers = "1.5.0.."\n', "", "needs 'readers' if the outcome is 'offers'"),
        (OFFER, "readers =", 'all = ["given:int"]\nreaders =', "all: does not apply to a behavior whose outcome is 'offers'"),
    ],
)
def test_a_mistake_is_named(table: str, written: str, instead: str, said: str, tmp_path: Path) -> None:
    assert written in table
    with pytest.raises(PolicyError) as caught:
        policy_with(tmp_path, table.replace(written, instead))
    assert said in str(caught.value)
    assert "behaviors.toml" in str(caught.value)


def test_every_mistake_is_named_at_once(tmp_path: Path) -> None:
    planted = SLIP.replace("1.5.0", "1.5.9").replace('signal = "SIGABRT"\n', "").replace('evidence = "planted"\n', "")
    with pytest.raises(PolicyError) as caught:
        policy_with(tmp_path, planted)
    assert len(caught.value.problems) == 3
