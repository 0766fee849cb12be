"""The rule that compares stated wordings with the errors that releases raise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.rules.conftest import rule, wording
from tests.rules.test_calls_heard import observe, raised
from torch_compat.rules import wordings_exact

if TYPE_CHECKING:
    from tests.rules.conftest import World

RULE = "wordings-exact"
OLD, NEW = "shape mismatch", "shapes do not match"


def verdicts(world: World) -> list[str]:
    return [
        f"{judgement.verdict}: {judgement.cause.what}" if judgement.cause else str(judgement.verdict)
        for judgement in world.judgements(RULE)
    ]


@pytest.mark.parametrize(
    ("says", "expected"),
    [
        ([(OLD, "..1.1.1"), (NEW, "2.0.0..")], ["pass"]),  # nobody was asked between the two
        ([(OLD, "..1.1.1"), (NEW, "2.0.0.."), ("no match", "..")], ["fail: unused"]),
        ([(OLD, ".."), (NEW, "2.0.0..")], ["fail: too wide"]),  # 2.0.0 was asked, and does not say it
        ([(OLD, "..1.1.1"), (NEW, "..")], ["fail: too wide"]),
        ([(OLD, "1.1.0.."), (NEW, "2.0.0..")], ["fail: unused", "fail: unused"]),
    ],
)
def test_every_text_is_needed_and_said(says: list[tuple[str, str]], expected: list[str], world: World) -> None:
    world.promise(messages=(wording(*says),))
    world.observe(observe(world, raised(OLD), raised(NEW)), "1.0.0", heard=True)
    assert verdicts(world) == expected


def test_who_says_the_same_as_the_writer_says_it_too(world: World) -> None:
    world.promise(messages=(wording((OLD, "..1.1.0"), (NEW, "1.1.1..")),))
    fixture = observe(world, raised(OLD), raised(NEW))
    world.observe(fixture, "1.1.0", heard=True)
    assert verdicts(world) == ["pass"]
    world.promise(messages=(wording((OLD, "..1.1.0"), (NEW, "1.1.0..")),))
    assert verdicts(world) == ["fail: too wide"]


def test_who_only_wrote_was_not_asked_what_it_says_in_reading(world: World) -> None:
    world.promise(messages=(wording((OLD, "..1.1.1"), (NEW, "..")),))
    observe(world, raised(OLD), raised(NEW))
    assert verdicts(world) == ["pass"]


@pytest.mark.parametrize("facts", [{}, {"heard": True, "outcome": "crashed"}])
def test_who_was_not_compared_was_not_asked(facts: dict[str, object], world: World) -> None:
    world.promise(messages=(wording((OLD, "..1.1.1"), (NEW, "1.1.0..")),))
    fixture = observe(world, raised(OLD), raised(NEW))
    world.observe(fixture, "1.1.0", **{"outcome": "same", **facts})  # type: ignore[arg-type]
    assert verdicts(world) == ["pass"]


def test_the_note_counts_the_cells_that_pass_by_it(world: World) -> None:
    world.promise(messages=(wording((OLD, "..1.1.1"), (NEW, "2.0.0..")),))
    observe(world, raised(OLD), raised(NEW))
    observe(world, raised(OLD), raised(NEW), writer="1.1.0")
    (note,) = wordings_exact.notes(world.evidence(), rule(RULE))
    assert note == (f"{RULE}: 2 cells pass because a wording treats the errors of reader and writer as equal: check 2")
    world.promise(messages=())
    assert not list(wordings_exact.notes(world.evidence(), rule(RULE)))


def test_a_policy_with_wordings_needs_the_rule(world: World) -> None:
    world.ask("newer-computes")
    world.promise(messages=(wording((OLD, "..1.1.1"), (NEW, "2.0.0..")),))
    observe(world, raised(OLD), raised(NEW))
    assert [what for what, _, _ in world.judge().not_checked] == [RULE]
