"""Where a cause begins if the writer of an archive itself shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.rules.conftest import World


def test_a_break_that_was_mended_and_came_again_begins_with_the_release_that_broke_it_again(world: World) -> None:
    world.ask("newer-computes", "reads-back")
    fixture = world.fixture()
    for reader, outcome in (("1.0.0", "raised"), ("1.1.0", "same"), ("2.0.0", "raised")):
        world.observe(fixture, reader, outcome)
    began = {finding.rule: finding.first_reader for finding in world.judge().findings}
    assert began == {"reads-back": "1.0.0", "newer-computes": "2.0.0"}
