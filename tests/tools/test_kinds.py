from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tools.kinds.__main__ import KINDS, STATED, Beside, Call, calls, met, wrong

HERE = Path(__file__).parents[2] / "tools" / "kinds"
SPAN = {"from": "2.0.0", "to": "2.5.1"}
ROW: dict[str, Any] = {
    "path": "a.pt",
    "how_to_load": [{"releases": [SPAN], "code": "import torch; torch.load(PATH)", "arguments": {}, "needs": []}],
    "weights_only": {"2.5.1": {"code": "global", "detail": "names own_model.Net, which is not allowed by default"}},
}
WRITER = Beside("2.5.1", Path("python"), {"numpy": (1, 26, 4), "transformers": (4, 46, 0)})
OTHER = Beside("2.15.0", Path("python"), {"numpy": (2, 4, 6), "transformers": (5, 23, 0)})


def test_what_is_named_must_load_and_what_is_refused_must_fail_for_its_reason() -> None:
    load, refused = [call for call, _ in calls(ROW, "2.5.1")]
    assert (load.loads, refused.loads, refused.reason) == (True, False, "Net")
    assert wrong(load, "") is None
    assert wrong(load, "ValueError: no") is not None
    assert wrong(refused, "UnpicklingError: Unsupported global: GLOBAL own_model.Net") is None
    assert wrong(refused, "") is not None
    assert wrong(refused, "FileNotFoundError: a.pt") is not None


def test_where_nothing_is_named_loading_must_fail() -> None:
    assert [call for call, _ in calls(ROW, "2.6.0")] == [Call("a.pt", "import torch; torch.load(PATH)", loads=False)]


@pytest.mark.parametrize(
    ("need", "here"),
    [
        ({"package": "numpy>=2.0", "because": None}, OTHER),
        ({"package": "numpy<2", "because": None}, WRITER),
        ({"package": "transformers", "because": "a version that has Trainer"}, WRITER),
    ],
)
def test_needs_are_looked_at_before_a_call_is_made(need: dict[str, Any], here: Beside) -> None:
    assert met([need], WRITER, here)
    assert not met([need], WRITER, OTHER if here is WRITER else WRITER._replace(versions={"numpy": (1, 26, 4)}))
    assert not met([{"package": "omegaconf", "because": None}], WRITER, here)


def test_every_kind_is_written() -> None:
    text = (HERE / "write.py").read_text(encoding="utf-8")
    assert all(f"\ndef {kind}(" in text for kind in KINDS)
    assert {kind for item in STATED["release"].values() for kind in item.get("without", ())} < set(KINDS)
