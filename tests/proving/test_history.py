"""Historic operators against the release that had them: what disagrees is counted by group, and shown."""

from __future__ import annotations

from typing import Any, cast

from tests.runtime.__main__ import horizon_table
from torch_compat.proving.history import hold
from torch_compat.proving.oracles import Modelled, Outcome, Real

COUNT = 24


class Release:
    """A release that does what the reference reader does at its horizon, but for some calls.

    Parameters:
        wrong: what a release says of the calls whose first tensor is of bool.
    """

    version = "1.5.1"

    def __init__(self, wrong: Outcome | None = None) -> None:
        self.wrong = wrong
        self.model = Modelled(self.version)

    def ask(self, data: bytes, calls: list[list[Any]]) -> list[Outcome]:
        found = self.model.ask(data, calls)
        return [self.wrong if self.wrong and "'bool'" in repr(args[0]) else one for args, one in zip(calls, found, strict=True)]


def held(wrong: Outcome | None = None) -> Any:
    return hold("aten::true_divide" if wrong is None else "aten::div", cast("Real", Release(wrong)), count=COUNT)


def test_a_release_that_agrees_leaves_no_group_apart() -> None:
    found = held()
    assert set(found.counts) <= {"equal", "equally-refused", "no-input"}
    assert found.counts["equal"]
    assert len(horizon_table([found])) == 1 + len(found.counts)


def test_what_the_release_refuses_is_counted_by_dtypes_and_shown() -> None:
    found = held(Outcome("value", {"value": 1, "inputs": []}))
    groups = found.apart("only-the-reader-refuses")
    assert groups
    assert all(group.startswith("bool") for group in groups)
    text = "\n".join(horizon_table([found]))
    assert f"aten::div: only-the-reader-refuses in {len(groups)} of {len(found.groups)} groups of dtypes" in text
    assert "torch.div(" in text


def test_an_operator_that_no_program_calls_is_named() -> None:
    found = hold("aten::bernoulli", cast("Real", Release()), count=2)
    assert any("Generator" in one for one in found.left_out)
    assert "left out: " in "\n".join(horizon_table([found]))
