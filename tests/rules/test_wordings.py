"""Reworded errors: which wordings explain a difference, and which do not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.rules.conftest import FAR, World, wording
from tests.rules.test_calls_heard import observe, raised
from torch_compat.judging.differences import Differences

if TYPE_CHECKING:
    from torch_compat.corpus.manifest import Fixture
    from torch_compat.corpus.observations import Observation
    from torch_compat.policy.sayings import KnownMessage

OLD, NEW, ASSERTED = "shape mismatch of f", "shapes of f do not match", "INTERNAL ASSERT FAILED"
WORDED = wording(("shape mismatch of *", "..1.1.0"), ("shapes of * do not match", "1.1.1.."))


@pytest.mark.parametrize(
    ("golden", "message", "kind", "verdict"),
    [
        (OLD, NEW, "builtins.RuntimeError", "pass"),
        (OLD, OLD, "builtins.RuntimeError", "pass"),  # the same error needs no wording
        (OLD, "shapes of g.one do not match", "builtins.RuntimeError", "pass"),  # '*' is a name
        (OLD, "shapes of g one do not match", "builtins.RuntimeError", "fail: different"),
        (OLD, f"{NEW} at all", "builtins.RuntimeError", "fail: different"),
        (OLD, ASSERTED, "builtins.RuntimeError", "fail: different"),
        (OLD, NEW, "builtins.IndexError", "fail: different"),
        (ASSERTED, NEW, "builtins.RuntimeError", "fail: different"),
    ],
)
def test_a_reader_may_say_it_in_the_words_of_its_release(
    golden: str, message: str, kind: str, verdict: str, world: World
) -> None:
    world.promise(messages=(WORDED,))
    observe(world, raised(golden), raised(message, kind))
    assert list(world.verdicts("newer-computes").values()) == [verdict]


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        ("..1.1.0", "1.1.1..", "pass"),
        ("1.1.0", "1.1.1..", "fail: different"),  # the writer, 1.0.0, is not said to say so
        ("..1.1.0", "1.1.1", "fail: different"),  # the reader, 2.0.0, is not
    ],
)
def test_a_text_of_the_wrong_release_is_another_error(old: str, new: str, verdict: str, world: World) -> None:
    world.promise(messages=(wording((OLD, old), (NEW, new)),))
    observe(world, raised(OLD), raised(NEW))
    assert list(world.verdicts("newer-computes").values()) == [verdict]


def test_texts_of_two_wordings_are_two_errors(world: World) -> None:
    world.promise(messages=(wording((OLD, ".."), ("a", ".."), name="one"), wording((NEW, ".."), ("b", ".."), name="two")))
    observe(world, raised(OLD), raised(NEW))
    assert list(world.verdicts("newer-computes").values()) == ["fail: different"]


def test_what_no_release_wrote_has_the_words_of_none(world: World) -> None:
    world.promise(messages=(wording((OLD, ".."), (NEW, "..")),))
    fixture, seen = heard(world)
    assert world.evidence().wordings.others(fixture, seen, "2.0.0") == ()
    (pair,) = world.evidence().wordings.others(replace(fixture, release="synthetic"), seen, "2.0.0")
    assert pair[1::2] == (OLD, NEW)


def heard(world: World) -> tuple[Fixture, Observation]:
    """A reader that words the writer's error otherwise."""
    fixture = observe(world, raised(OLD), raised(NEW))
    return fixture, world.recorded["torch-2.0.0"].cells[fixture.id, "default"]


def test_a_wording_explains_some_of_the_readers_that_did_the_same(world: World) -> None:
    world.promise(messages=(WORDED,))
    fixture, seen = heard(world)
    for version in ("1.1.0", "1.1.1"):
        world.reader(version).cells[fixture.id, "default"] = seen  # type: ignore[index]
    verdicts = world.verdicts("newer-computes")
    assert {name.rpartition("-")[2]: verdict for name, verdict in verdicts.items()} == {
        "1.1.0": "fail: different",
        "1.1.1": "pass",
        "2.0.0": "pass",
    }


def test_what_is_explained_leaves_no_trace_in_what_differs_besides() -> None:
    def of(*wordings: KnownMessage, errors: bool = True) -> tuple[str, str, str]:
        world = World()
        world.promise(messages=wordings)
        _, seen = heard(world)
        kept = seen.extent if errors else ()
        differences = seen.differences if errors else ()
        seen = replace(seen, extent=(*kept, FAR), departures=(), digest="", differences=differences)
        world.recorded["torch-2.0.0"].cells[seen.cell] = seen  # type: ignore[index]
        evidence = world.evidence()
        (cells,) = evidence.cells
        (judgement,) = world.judgements("newer-computes")
        assert judgement.cause is not None
        return cells.outcome, Differences(evidence).digest(cells), judgement.cause.text

    assert of(WORDED)[:2] == of(errors=False)[:2]
    assert of(WORDED)[1] != of()[1]
    assert NEW in of()[2]
    assert NEW not in of(WORDED)[2]


def test_another_error_is_another_difference() -> None:
    digests, words = set(), []
    for message in (NEW, ASSERTED, f"{NEW} 7"):
        world = World()
        observe(world, raised(OLD), raised(message))
        evidence = world.evidence()
        (cells,) = evidence.cells
        digests.add(Differences(evidence).digest(cells))
        words.append(Differences(evidence).in_words(cells))
    assert len(digests) == 3
    assert words[0] == (f"raises RuntimeError: {NEW} instead of RuntimeError: {OLD}",)
