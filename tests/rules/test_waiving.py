"""Waivers and their lock: what is waived, what continues in later releases, and what fails."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.rules.conftest import DATES, ERROR, STRICT, World, covers, rule, waiver
from torch_compat.judging.judgement import Verdict
from torch_compat.policy.model import CorpusScope

if TYPE_CHECKING:
    from torch_compat.corpus.manifest import Fixture
    from torch_compat.judging.judge import Report

RULES = (
    "newer-loads",
    "newer-computes",
    "reads-back",
    "older-never-differs",
    "synthetic-loads",
    "observations-reproduce",
    "waivers-exact",
)
MORE = ({"type": "builtins.RuntimeError", "message": "the moon is in the way"},)
OLD = tuple(date for date in DATES if date != "2.0.0")


def asking(world: World) -> None:
    """Ask the rules about cells, whether they select something or not."""
    world.promise(rules=tuple(rule(name, expect_empty="not every world has such cells") for name in RULES))


def told(report: Report) -> tuple[int, dict[str, int], set[str]]:
    """The exit status, the counts of what is waived and what continues, and the kinds of what fails."""
    counts = {str(item): report.counts[item] for item in (Verdict.WAIVED, Verdict.CONTINUES) if report.counts[item]}
    failing = {":".join(finding.id.split(":")[:2]) for finding in report.findings if finding.verdict is Verdict.FAIL}
    return report.exit_status, counts, failing


@pytest.fixture
def known(world: World) -> World:
    """Two archives that 1.1.0 and 1.1.1 refuse, accepted; 2.0.0 has read nothing yet."""
    asking(world)
    world.promise(corpus=CorpusScope(writers=OLD, readers=OLD))
    for recipe in ("add", "div"):
        fixture = world.fixture(recipe=recipe)
        world.observe(fixture, "1.0.0")
        for reader in ("1.1.0", "1.1.1"):
            world.observe(fixture, reader, "refused")
    world.promise(waivers=(waiver(covers("refused", "add div", "..", "1.1.0..")),))
    world.accept()
    assert told(world.judge()) == (0, {"waived": 4}, set())
    return world


def add(world: World) -> Fixture:
    return next(fixture for fixture in world.fixtures if fixture.recipe == "add")


# ------------------------------------------------------------------------------------------------------------ inside, outside


@pytest.mark.parametrize(
    ("outcome", "change", "red"),
    [
        ("refused", {"errors": MORE}, {"newer-loads:refused"}),
        ("refused", {"errors": ({**ERROR, "type": "builtins.ValueError"},)}, {"newer-loads:refused"}),
        ("different", {}, {"newer-computes:different"}),
        ("crashed", {}, {"newer-loads:crashed"}),
        ("timed-out", {"stage": "load"}, {"newer-loads:timed-out"}),
        ("unstable", {}, {"newer-computes:unstable", "observations-reproduce:unstable"}),
        ("same", {}, {"waivers-exact:ended"}),
        ("close", {}, {"waivers-exact:ended"}),
    ],
)
def test_another_outcome_of_a_covered_cell_is_red(known: World, outcome: str, change: dict[str, Any], red: set[str]) -> None:
    known.observe(add(known), "1.1.1", outcome, **change)
    status, counts, failing = told(known.judge())
    assert (status, counts) == (1, {"waived": 3})
    assert failing == red


def test_what_differs_otherwise_says_so(known: World) -> None:
    known.observe(add(known), "1.1.1", "refused", errors=MORE)
    (item,) = (finding for finding in known.judge().findings if finding.verdict is Verdict.FAIL)
    assert item.waiver == ""
    assert item.cause.endswith(
        "(the waiver known is for this, but it was accepted with another difference: torch-compat accept --write)"
    )


def test_accepting_takes_another_difference(known: World) -> None:
    known.observe(add(known), "1.1.1", "refused", errors=MORE)
    known.accept()
    assert told(known.judge()) == (0, {"waived": 4}, set())


def test_what_lies_outside_of_the_box_is_red(known: World) -> None:
    known.observe(add(known), "1.0.0", "refused")
    assert told(known.judge()) == (1, {"waived": 4}, {"reads-back:refused"})
    known.observe(known.fixture("1.1.0", "mul"), "1.1.1", "refused")
    assert told(known.judge())[2] == {"reads-back:refused", "newer-loads:refused"}


def test_a_swap_of_two_accepted_differences_is_red(world: World) -> None:
    asking(world)
    item, other = world.fixture(recipe="add"), world.fixture(recipe="div")
    world.observe(item, "2.0.0", "refused")
    world.observe(other, "2.0.0", "refused", errors=MORE)
    world.promise(waivers=(waiver(covers("refused", "add div")),))
    world.accept()
    assert told(world.judge()) == (0, {"waived": 2}, set())
    world.observe(item, "2.0.0", "refused", errors=MORE)
    world.observe(other, "2.0.0", "refused")
    assert told(world.judge())[:2] == (1, {})


def test_other_load_options_are_other_cells(world: World) -> None:
    asking(world)
    fixture = world.fixture(family="torch-save")
    world.observe(fixture, "2.0.0", "crashed")
    world.observe(fixture, "2.0.0", "crashed", STRICT)
    world.promise(waivers=(waiver(covers("crashed")),))
    world.accept()
    assert told(world.judge()) == (1, {"waived": 1}, {"newer-loads:crashed"})
    world.promise(waivers=(waiver(covers("crashed", options=("default", "strict"))),))
    assert told(world.judge()) == (1, {"waived": 1}, {"newer-loads:crashed"})  # the box alone takes nothing
    world.accept()
    assert told(world.judge()) == (0, {"waived": 2}, set())


def test_a_waiver_that_names_the_recipe_comes_before_one_that_names_none(world: World) -> None:
    asking(world)
    for recipe in ("add", "div"):
        world.observe(world.fixture(recipe=recipe), "2.0.0", "refused")
    wide = waiver(covers("refused", "", says="is too new"), name="wide")
    for waivers in ((wide, waiver(covers("refused"))), (waiver(covers("refused")), wide)):
        world.promise(waivers=waivers)
        world.accept()
        report = world.judge()
        assert report.exit_status == 0
        assert {finding.waiver: finding.count for finding in report.findings} == {"wide": 1, "known": 1}


def test_archives_that_no_release_wrote(world: World) -> None:
    asking(world)
    fixture = world.synthetic("file-format 1")
    for reader in ("1.1.0", "2.0.0"):
        world.observe(fixture, reader, "crashed")
    world.promise(waivers=(waiver(covers("crashed", "old", "..", "..")),))
    assert told(world.judge()) == (1, {}, {"synthetic-loads:crashed", "waivers-exact:unused"})
    world.promise(waivers=(waiver(covers("crashed", "old", None, "1.1.0..", synthetic=True)),))
    world.accept()
    assert told(world.judge()) == (0, {"waived": 2}, set())
    world.observe(fixture, "2.0.0", "crashed", signal="SIGABRT")
    assert told(world.judge()) == (1, {"waived": 1}, {"synthetic-loads:crashed"})


def test_a_waiver_that_is_open_to_the_newest_release_is_too_wide_where_that_release_loads(world: World) -> None:
    asking(world)
    later(world)
    fixture = world.fixture()
    world.observe(fixture, "1.1.0", "refused")
    world.observe(fixture, "2.0.0")
    world.promise(waivers=(waiver(covers("refused", "add", "1.0.0", "1.1.0..")),))
    world.accept()
    assert told(world.judge()) == (1, {"waived": 1}, {"waivers-exact:too-wide"})
    world.promise(waivers=(waiver(covers("refused", "add", "1.0.0", "1.1.0")),))
    assert told(world.judge()) == (0, {"waived": 1}, set())


def test_what_varies_is_covered_as_such(world: World) -> None:
    asking(world)
    fixture = world.fixture()
    world.observe(fixture, "2.0.0", "unstable")
    world.promise(waivers=(waiver(covers("unstable")),))
    world.accept()
    assert told(world.judge()) == (0, {"waived": 2}, set())
    world.observe(fixture, "2.0.0", "different")
    assert told(world.judge())[:2] == (1, {})


# ------------------------------------------------------------------------------------------------------------- what came later


def later(world: World) -> None:
    """2.0.0 belongs to the corpus."""
    world.promise(corpus=CorpusScope(writers=tuple(DATES), readers=tuple(DATES)))


@pytest.mark.parametrize("fresh", [True, False])
def test_a_new_reader_that_does_the_same_continues(known: World, fresh: bool) -> None:
    later(known)
    for fixture in known.fixtures:
        known.observe(fixture, "2.0.0", "refused", fresh=fresh)
    assert told(known.judge()) == (0, {"waived": 4, "continues": 2}, set())


@pytest.mark.parametrize(
    ("outcome", "change", "red"),
    [
        ("refused", {"errors": MORE}, {"newer-loads:refused"}),
        ("crashed", {}, {"newer-loads:crashed"}),
        ("same", {}, {"waivers-exact:ended"}),
    ],
)
def test_a_new_reader_that_does_otherwise_is_red(known: World, outcome: str, change: dict[str, Any], red: set[str]) -> None:
    later(known)
    item, other = known.fixtures
    known.observe(item, "2.0.0", "refused")
    known.observe(other, "2.0.0", outcome, **change)
    assert told(known.judge()) == (1, {"waived": 4, "continues": 1}, red)


def test_a_new_reader_continues_only_where_the_waiver_is_open_to_it(known: World) -> None:
    known.promise(waivers=(waiver(covers("refused", "add div", "..", "1.1.0..1.1.1")),))
    later(known)
    known.observe(add(known), "2.0.0", "refused")
    assert told(known.judge()) == (1, {"waived": 4}, {"newer-loads:refused"})
    known.observe(add(known), "2.0.0", "same")
    assert told(known.judge()) == (0, {"waived": 4}, set())


def test_a_new_writer_that_does_the_same_continues(world: World) -> None:
    asking(world)
    fixture = world.fixture("1.1.0")
    world.observe(fixture, "1.1.0")
    world.observe(fixture, "1.0.0", "crashed")
    world.promise(waivers=(waiver(covers("crashed", "add", "1.1.0..", "1.0.0")),), corpus=CorpusScope(writers=OLD, readers=OLD))
    world.accept()
    new = world.fixture("1.1.1")
    for outcome, change, expected in (
        ("crashed", {}, (0, {"waived": 1, "continues": 1}, set())),
        ("crashed", {"signal": "SIGABRT"}, (1, {"waived": 1}, {"older-never-differs:crashed"})),
        ("refused", {}, (1, {"waived": 1}, {"waivers-exact:ended"})),
    ):
        world.observe(new, "1.0.0", outcome, **change)  # type: ignore[arg-type]
        assert told(world.judge()) == expected


def test_a_new_recipe_continues_only_under_a_waiver_that_names_none(world: World) -> None:
    asking(world)
    world.observe(world.fixture(recipe="add"), "2.0.0", "refused")
    world.promise(waivers=(waiver(covers("refused", "", says="is too new")),))
    world.accept()
    new = world.fixture(recipe="mul")
    world.observe(new, "2.0.0", "refused")
    assert told(world.judge()) == (0, {"waived": 1, "continues": 1}, set())
    world.observe(new, "2.0.0", "refused", errors=({**ERROR, "message": "this is too new, said otherwise"},))
    assert told(world.judge()) == (1, {"waived": 1}, {"newer-loads:refused"})
    world.promise(waivers=(waiver(covers("refused", "add")),))
    world.observe(new, "2.0.0", "refused")
    assert told(world.judge()) == (1, {"waived": 1}, {"newer-loads:refused"})


def test_a_recipe_that_there_was_does_not_continue(world: World) -> None:
    """It passed when the lock was written, so that it fails now is new."""
    asking(world)
    world.observe(world.fixture(recipe="add"), "2.0.0", "refused")
    other = world.fixture(recipe="mul")
    world.observe(other, "2.0.0")
    world.promise(waivers=(waiver(covers("refused", "", says="is too new")),))
    world.accept()
    world.observe(other, "2.0.0", "refused")
    assert told(world.judge()) == (1, {"waived": 1}, {"newer-loads:refused"})


def test_a_new_reader_continues_only_with_the_recipes_of_the_lock(world: World) -> None:
    """It refuses two programs in the same way; of one of them, the release before did not."""
    asking(world)
    world.promise(corpus=CorpusScope(writers=OLD, readers=OLD))
    item, other = world.fixture(recipe="add"), world.fixture(recipe="mul")
    world.observe(item, "1.1.1", "refused")
    world.observe(other, "1.1.1")
    world.promise(waivers=(waiver(covers("refused", "", "1.0.0", "1.1.1..", says="is too new")),))
    world.accept()
    later(world)
    for fixture in (item, other):
        world.observe(fixture, "2.0.0", "refused")
    assert told(world.judge()) == (1, {"waived": 1, "continues": 1}, {"newer-loads:refused"})


def test_what_the_newest_release_of_the_lock_mended_does_not_continue(world: World) -> None:
    asking(world)
    world.promise(corpus=CorpusScope(writers=OLD, readers=OLD))
    fixture = world.fixture()
    world.observe(fixture, "1.1.0", "refused")
    world.observe(fixture, "1.1.1")
    world.promise(waivers=(waiver(covers("refused", "add", "1.0.0", "1.1.0, 2.0.0..")),))
    world.accept()
    later(world)
    world.observe(fixture, "2.0.0", "refused")
    assert told(world.judge()) == (1, {"waived": 1}, {"newer-loads:refused"})


def test_a_new_release_that_refuses_its_own_does_not_continue_what_it_refuses_of_others(world: World) -> None:
    asking(world)
    world.promise(corpus=CorpusScope(writers=OLD, readers=OLD))
    older, newest = world.fixture("1.1.0"), world.fixture("1.1.1")
    world.observe(older, "1.1.1", "refused")
    world.observe(newest, "1.1.1")
    world.promise(waivers=(waiver(covers("refused", "add", "1.1.0..", "1.1.1..")),))
    world.accept()
    later(world)
    world.observe(older, "2.0.0", "refused")
    world.observe(world.fixture("2.0.0"), "2.0.0", "refused")
    assert told(world.judge()) == (1, {"waived": 1, "continues": 1}, {"reads-back:refused"})


def test_a_new_reader_need_not_refuse_what_its_neighbour_refuses_of_its_own(world: World) -> None:
    asking(world)
    world.promise(corpus=CorpusScope(writers=OLD, readers=OLD))
    own, other = world.fixture("1.1.1"), world.fixture("1.1.0")
    world.observe(own, "1.1.1", "refused")
    world.observe(other, "1.1.1", "refused")
    world.promise(waivers=(waiver(covers("refused", "add", "1.1.0..", "1.1.1..")),))
    world.accept()
    later(world)
    world.observe(own, "2.0.0")
    world.observe(other, "2.0.0", "refused")
    assert told(world.judge()) == (0, {"waived": 2, "continues": 1}, set())


def test_an_archive_of_a_release_does_not_continue_one_that_no_release_wrote(world: World) -> None:
    asking(world)
    world.observe(world.synthetic("file-format 1"), "2.0.0", "refused")
    open_ = covers("refused", "", "1.0.0", "2.0.0..", says="is too new")
    world.promise(waivers=(waiver(covers("refused", "old", None, "2.0.0..", synthetic=True), open_),))
    world.accept()
    world.observe(world.fixture(recipe="mul"), "2.0.0", "refused")
    assert told(world.judge()) == (1, {"waived": 1}, {"newer-loads:refused"})


def test_what_continues_joins_the_lock_and_a_new_difference_does_not(known: World) -> None:
    """As generating does it: what is measured under the lock as it is."""
    from torch_compat.judging.judge import measure  # noqa: PLC0415

    later(known)
    item, other = known.fixtures
    known.observe(item, "2.0.0", "refused")
    known.observe(other, "2.0.0", "refused", errors=MORE)
    result = measure(known.evidence()).waiving.accepted()
    known.promise(accepted=result)
    assert told(known.judge()) == (1, {"waived": 5}, {"newer-loads:refused"})


def test_what_is_gone_stays_in_the_lock_until_it_is_accepted(known: World) -> None:
    from torch_compat.judging.judge import measure  # noqa: PLC0415

    known.observe(add(known), "1.1.1", "same")
    before = known.policy.accepted
    assert before is not None
    assert measure(known.evidence()).waiving.accepted().text == before.text
    assert told(known.judge())[2] == {"waivers-exact:ended"}
    known.accept()
    assert told(known.judge()) == (0, {"waived": 3}, set())


# --------------------------------------------------------------------------------------------------------------- findings


def test_a_finding_about_no_cells_is_pinned_by_its_text(world: World) -> None:
    world.ask("recipes-written", "waivers-exact")
    world.recipe("div")
    world.promise(waivers=(waiver(findings=("recipes-written:not-produced:div",)),))
    world.accept()
    assert told(world.judge()) == (0, {"waived": 1}, set())
    accepted = world.policy.accepted
    assert accepted is not None
    ((key, digest),) = accepted.findings.items()
    world.promise(accepted=replace(accepted, findings={key: digest[::-1]}))
    assert told(world.judge())[2] == {"recipes-written:not-produced"}
    world.promise(
        accepted=replace(accepted, findings={**accepted.findings, ("known", "recipes-written:not-produced:mul"): digest})
    )
    assert told(world.judge())[2] == {"waivers-exact:ended"}


def test_a_finding_of_a_release_of_the_lock_is_waived_and_that_of_a_later_one_continues(world: World) -> None:
    world.ask("probes-hold", "waivers-exact")
    probe = world.probe()
    world.promise(corpus=CorpusScope(writers=("1.0.0",), readers=("1.0.0", "1.1.0")))
    world.answer(probe, "1.0.0", ("check", True, ""))
    world.answer(probe, "1.1.0", ("check", False, "is 3"))
    world.promise(waivers=(waiver(findings=("probes-hold:does-not-hold:check",)),))
    world.accept()
    assert told(world.judge()) == (0, {"waived": 1}, set())
    world.promise(corpus=CorpusScope(writers=("1.0.0",), readers=("1.0.0", "1.1.0", "2.0.0")))
    world.answer(probe, "2.0.0", ("check", False, "is 3"))
    assert told(world.judge()) == (0, {"waived": 1, "continues": 1}, set())


def test_waivers_that_share_a_finding_both_fail(world: World) -> None:
    world.ask("recipes-written", "waivers-exact")
    world.recipe("div")
    name = ("recipes-written:not-produced:div",)
    world.promise(waivers=(waiver(findings=name, name="one"), waiver(findings=name, name="two")))
    assert told(world.judge())[2] == {"waivers-exact:overlapping"}
