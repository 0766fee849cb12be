"""Drafts for reworded errors that the policy does not state yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.rules.conftest import wording
from tests.rules.test_calls_heard import observe, raised
from torch_compat.judging.wording_drafts import drafts, phrase

if TYPE_CHECKING:
    from tests.rules.conftest import World

OLD, NEW = "shape mismatch", "shapes do not match"


def test_a_draft_says_who_says_what_instead(world: World) -> None:
    observe(world, raised(OLD), raised(NEW))
    observe(world, raised(OLD), raised(NEW), writer="1.1.0")
    (draft,) = drafts(world.evidence())
    assert draft.error == ("RuntimeError", OLD)
    assert (draft.writers, draft.recipes) == ({"1.0.0", "1.1.0"}, {"add"})
    assert draft.instead == {("RuntimeError", NEW): ({"2.0.0"}, 2)}
    line = phrase(world.evidence(), draft.error, {"1.0.0"})
    assert line == f'{{ type = "RuntimeError", text = "{OLD}", releases = "1.0.0" }},'


def test_what_is_stated_needs_no_draft(world: World) -> None:
    world.promise(messages=(wording((OLD, "..1.1.1"), (NEW, "2.0.0..")),))
    observe(world, raised(OLD), raised(NEW))
    assert not drafts(world.evidence())
