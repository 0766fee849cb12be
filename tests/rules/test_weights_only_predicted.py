"""The rule on what a restricted unpickler rejects and accepts, and the rejections that its prediction makes expected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.rules.conftest import ANY, STRICT
from torch_compat.policy.behaviors import BehaviorEntry
from torch_compat.policy.model import LoadOptions, MayRefuse, OptionSet, WeightsOnly
from torch_compat.releases.sets import ReleaseSet

if TYPE_CHECKING:
    from tests.rules.conftest import World
    from torch_compat.corpus.manifest import Fixture

RULE = "weights-only-predicted"
SAID = {"type": "UnpicklingError", "message": "Weights only load failed: a.b is not allowed"}
RESTRICTED = OptionSet(
    id="restricted",
    families=("torch-save",),
    load=LoadOptions(weights_only=True),
    may_refuse=MayRefuse(message="Weights only load failed", reason="its purpose", predicted=True),
)
PLAIN = OptionSet(id="plain", families=("torch-save",), load=LoadOptions(weights_only=False))


@pytest.fixture
def told(world: World) -> World:
    """2.0.0 restricts by default, and refuses what 1.0.0 and 2.0.0 wrote; 1.1.0 takes it."""
    world.promise(
        options=(OptionSet(id="default", families=ANY), RESTRICTED, PLAIN),
        behaviors=(*UNPICKLERS, refusal("2.0.0..")),
    )
    return world


UNPICKLERS = tuple(
    BehaviorEntry(
        id=f"unpickler-{default}".lower(), all=("weights-only",), readers=ReleaseSet.parse(readers), outcome="unpickles",
        takes=WeightsOnly(default=default), because="so",
    )
    for readers, default in (("..1.1.1", False), ("2.0.0..", True))
)  # fmt: skip


def refusal(readers: str, writers: str | None = "1.0.0..2.0.0", recipe: str = "save") -> BehaviorEntry:
    wrote = ReleaseSet.parse(writers) if writers else None
    all_ = ("weights-only", f"recipe:{recipe}")
    return BehaviorEntry(id="told", all=all_, writers=wrote, readers=ReleaseSet.parse(readers), outcome="refused", because="so")


def saved(world: World, version: str = "1.0.0") -> Fixture:
    return world.fixture(version, "save", family="torch-save")


@pytest.mark.parametrize(
    ("reader", "outcome", "options", "verdicts"),
    [
        ("2.0.0", "refused", RESTRICTED, ["pass"]),
        ("2.0.0", "same", RESTRICTED, ["fail: taken"]),
        ("2.0.0", "different", RESTRICTED, ["fail: taken"]),
        ("2.0.0", "crashed", RESTRICTED, []),  # what it died of is for others
        ("2.0.0", "same", None, ["fail: taken"]),  # its default
        ("2.0.0", "same", PLAIN, []),
        ("1.1.0", "same", None, []),
        ("1.1.0", "same", RESTRICTED, []),
        ("1.1.0", "refused", RESTRICTED, []),  # a newer reader: newer-loads says so
    ],
)
def test_what_the_lists_rule_out_is_refused(
    reader: str, outcome: str, options: OptionSet | None, verdicts: list[str], told: World
) -> None:
    change: dict[str, Any] = {"errors": (SAID,)} if outcome == "refused" else {}
    told.observe(saved(told), reader, outcome, options or told.policy.options[0], **change)
    assert list(told.verdicts(RULE).values()) == verdicts


@pytest.mark.parametrize(("reader", "verdict"), [("2.0.0", "expected: refused"), ("1.1.0", "fail: refused")])
def test_a_refusal_is_expected_of_those_that_the_model_tells(reader: str, verdict: str, told: World) -> None:
    told.observe(saved(told), reader, "refused", RESTRICTED, errors=(SAID,))
    assert list(told.verdicts("newer-loads").values()) == [verdict]


def test_readers_that_refuse_alike_are_told_apart(told: World) -> None:
    fixture = saved(told)
    for reader in ("1.1.0", "2.0.0"):
        told.observe(fixture, reader, "refused", RESTRICTED, errors=(SAID,))
    assert sorted(told.verdicts("newer-loads").values()) == ["expected: refused", "fail: refused"]


@pytest.mark.parametrize(
    ("anyway", "said", "verdicts"),
    [("same", SAID, ["fail: refused"]), ("refused", SAID, ["pass"]), ("same", {**SAID, "message": "too new"}, [])],
)
def test_an_older_reader_refuses_for_its_lists_only_what_they_rule_out(
    anyway: str, said: dict[str, str], verdicts: list[str], told: World
) -> None:
    fixture = saved(told, "2.0.0")
    told.observe(fixture, "1.1.0", "refused", RESTRICTED, errors=(said,))
    told.observe(fixture, "1.1.0", anyway, PLAIN)
    assert list(told.verdicts(RULE).values()) == verdicts


def test_an_older_reader_that_nobody_let_load_it_freely_has_no_excuse(told: World) -> None:
    told.observe(saved(told, "2.0.0"), "1.1.0", "refused", RESTRICTED, errors=(SAID,))
    assert list(told.verdicts(RULE).values()) == ["fail: refused"]


def test_an_older_reader_that_loads_it_freely_in_any_way_has_no_excuse(told: World) -> None:
    fixture = saved(told, "2.0.0")
    told.observe(fixture, "1.1.0", "refused", RESTRICTED, errors=(SAID,))
    told.observe(fixture, "1.1.0", "refused", told.policy.options[0])  # its default restricts nothing
    assert list(told.verdicts(RULE).values()) == ["pass"]
    told.observe(fixture, "1.1.0", "same", PLAIN)
    assert list(told.verdicts(RULE).values()) == ["fail: refused"]


def test_an_archive_without_a_prediction_is_not_checked(told: World) -> None:
    told.promise(behaviors=(*UNPICKLERS, refusal("2.0.0..", "2.0.0"), refusal("2.0.0..", recipe="other")))
    told.observe(saved(told), "2.0.0", "refused", RESTRICTED, errors=(SAID,))
    assert told.verdicts(RULE) == {"torch-1.0.0/save": "not-checked: no prediction"}
    assert list(told.verdicts("newer-loads").values()) == ["fail: refused"]


def test_what_no_release_wrote_is_predicted_by_itself(told: World) -> None:
    told.promise(
        behaviors=(
            *UNPICKLERS,
            refusal("2.0.0..", None, "old"),
        )
    )
    told.observe(told.synthetic(family="torch-save"), "2.0.0", "same", RESTRICTED)
    assert list(told.verdicts(RULE).values()) == ["fail: taken"]


def test_refusals_of_options_that_predict_nothing_are_expected_as_before(told: World) -> None:
    told.promise(options=(STRICT,))
    told.observe(saved(told), "1.1.0", "refused", STRICT)
    assert list(told.verdicts("newer-loads").values()) == ["expected: refused"]
