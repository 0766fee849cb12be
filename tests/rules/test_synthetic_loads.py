"""synthetic-loads: readers inside the policy's ranges return the golden, readers outside refuse; no other rule judges them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.rules.conftest import STRICT
from torch_compat.policy.model import Format, Milestone
from torch_compat.values.delta import departures

if TYPE_CHECKING:
    from tests.rules.conftest import World
    from torch_compat.judging.judgement import Judgement


def skipped(first: str = "1.0.0", last: str | None = None, **more: Any) -> Format:
    """A version that is only read, from one release to another."""
    until = Milestone(release=last) if last else None
    reads = Milestone(release=first)
    return Format(kind="bytecode", version=3, meaning="so", read_from=reads, read_until=until, no_writer="skipped", **more)


def seen(world: World, release: str, outcome: str) -> str:
    """The verdict of one release that did this."""
    world.observe(world.synthetic("bytecode 3"), release, outcome)
    (verdict,) = world.verdicts("synthetic-loads").values()
    return verdict


@pytest.mark.parametrize(
    ("outcome", "verdict"),
    [
        ("same", "pass"),
        ("close", "pass"),
        ("relaxed", "fail: relaxed"),
        ("refused", "fail: refused"),
        ("different", "fail: different"),
        ("raised", "fail: raised"),
        ("crashed", "fail: crashed"),
        ("timed-out", "fail: timed-out"),
        ("unstable", "fail: unstable"),
    ],
)
def test_a_reader_of_the_format_gives_the_golden(outcome: str, verdict: str, world: World) -> None:
    world.promise(formats=(skipped("1.1.0"),))
    assert seen(world, "1.1.0", outcome) == verdict


@pytest.mark.parametrize(
    ("outcome", "verdict"),
    [
        ("refused", "pass"),
        ("same", "no-promise"),
        ("close", "no-promise"),
        ("raised", "no-promise"),
        ("relaxed", "fail: relaxed"),
        ("different", "fail: different"),
        ("crashed", "fail: crashed"),
        ("timed-out", "fail: timed-out"),
        ("unstable", "fail: unstable"),
    ],
)
@pytest.mark.parametrize("release", ["1.0.0", "2.0.0"])
def test_any_other_reader_refuses(release: str, outcome: str, verdict: str, world: World) -> None:
    world.promise(formats=(skipped("1.1.0", "1.1.1"),))
    assert seen(world, release, outcome) == verdict


def test_a_span_includes_its_ends(world: World) -> None:
    world.promise(formats=(skipped("1.1.0", "2.0.0"),))
    assert seen(world, "2.0.0", "refused") == "fail: refused"


LITTLE, BIG, OTHER = (
    {"value": {"tensor": {"dtype": "int16", "shape": [2], "strides": [1], "bytes": data}}}
    for data in ("AAEAAg==", "AQACAA==", "AQACAQ==")
)


def mistake(world: World, got: dict[str, Any], outcome: str = "different", **more: Any) -> Judgement:
    """What is said of a reader that does not know the format, and gives something else."""
    world.promise(formats=(skipped("2.0.0", mistaken="they take it for 4", **more),))
    fixture = world.synthetic("bytecode 3", golden=LITTLE)
    world.observe(fixture, "1.0.0", outcome, departures=departures(LITTLE, got))
    (item,) = world.judgements("synthetic-loads")
    return item


@pytest.mark.parametrize(
    ("got", "stated", "outcome", "verdict"),
    [
        (BIG, "swapped", "different", "expected"),
        (OTHER, "swapped", "different", "fail"),
        (BIG, None, "different", "fail"),  # nobody says what it comes to
        (BIG, "swapped", "crashed", "fail"),
    ],
)
def test_a_reader_that_mistakes_it_gives_exactly_what_that_comes_to(
    got: dict[str, Any], stated: str | None, outcome: str, verdict: str, world: World
) -> None:
    assert mistake(world, got, outcome, mistaken_as=stated).verdict == verdict


def test_what_a_reader_mistakes_it_for_is_said(world: World) -> None:
    item = mistake(world, BIG, mistaken_as="swapped")
    assert item.cause is not None
    assert item.cause.text == "bytecode 3: they take it for 4"


def test_other_values_of_a_reader_of_the_format_are_never_expected(world: World) -> None:
    world.promise(formats=(skipped(mistaken="they take it for 4"),))
    assert seen(world, "1.0.0", "different") == "fail: different"


def test_every_format_that_it_stands_for_has_to_be_taken(world: World) -> None:
    order = Format(
        kind="byteorder", version="big", meaning="so", read_from=Milestone(release="2.0.0"), no_writer="no such machine"
    )
    world.promise(formats=(skipped(), order))
    fixture = world.synthetic("bytecode 3", "byteorder big")
    world.observe(fixture, "1.0.0", "refused")
    world.observe(fixture, "2.0.0", "refused")
    assert world.verdicts("synthetic-loads") == {
        "synthetic/old read by torch-1.0.0": "pass",
        "synthetic/old read by torch-2.0.0": "fail: refused",
    }


def test_a_refusal_that_the_options_are_there_for_is_expected(world: World) -> None:
    world.promise(formats=(skipped(),))
    world.observe(world.synthetic("bytecode 3", family="torch-save"), "2.0.0", "refused", STRICT)
    assert set(world.verdicts("synthetic-loads").values()) == {"expected: refused"}


@pytest.mark.parametrize("formats", [(), ("bytecode 9",)])
def test_what_it_stands_for_is_in_the_policy(formats: tuple[str, ...], world: World) -> None:
    world.promise(formats=(skipped(),))
    world.synthetic(*formats)
    assert world.verdicts("synthetic-loads") == {"synthetic/old": "fail: unknown format"}


def test_what_a_release_wrote_is_none_of_its_business(world: World) -> None:
    world.observe(world.fixture(), "2.0.0", "different")
    assert world.judgements("synthetic-loads") == []


@pytest.mark.parametrize(
    "rule", ["newer-loads", "newer-computes", "reads-back", "older-never-differs", "forward-window", "recipes-written"]
)
def test_no_other_promise_is_about_it(rule: str, world: World) -> None:
    fixture = world.synthetic("file-format 1")
    for release in ("1.0.0", "1.1.0", "1.1.1", "2.0.0"):
        world.observe(fixture, release, "different")
    assert world.judgements(rule) == []


def test_every_reader_has_to_observe_it(world: World) -> None:
    fixture = world.synthetic("file-format 1")
    world.observe(fixture, "1.0.0")
    assert world.pairs() == {
        ("synthetic/old", "pass"): 1,
        ("torch-2.0.0", "not-checked: no observations by this reader"): 1,
    }


def test_the_report_calls_its_writer_synthetic(world: World) -> None:
    world.promise(formats=(skipped(),))
    world.ask("synthetic-loads")
    fixture = world.synthetic("bytecode 3")
    world.observe(fixture, "1.0.0", "refused")
    world.observe(fixture, "1.1.0", "refused")
    world.observe(fixture, "2.0.0")
    report = world.judge()
    assert {key[:2] for key in report.outcomes} == {("synthetic", f"torch-{name}") for name in ("1.0.0", "1.1.0", "2.0.0")}
    (finding,) = report.findings
    assert (finding.writers, finding.readers, finding.first_reader) == (("synthetic",), ("1.0.0", "1.1.0"), "1.0.0")
    assert finding.reproduce == "torch-compat observe --reader torch-1.0.0 --fixture synthetic/old --show"
