"""Evidence: which observations count, the direction of a cell, and the effect of a tolerance on a difference."""

from __future__ import annotations

import base64
import datetime as dt
import struct
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.rules.conftest import ANY, DEFAULT, STRICT, TOLERANCE, extent, observed
from torch_compat.corpus.corpus import CorpusDamage
from torch_compat.policy.model import Tolerance
from torch_compat.values.compare import compare
from torch_compat.values.delta import departures

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.rules.conftest import World

REASON = "so"


@pytest.mark.parametrize(
    ("writer", "reader", "direction"),
    [
        ("1.0.0", "2.0.0", "backward"),
        ("1.1.0", "1.1.0", "own"),
        ("1.1.0", "1.1.0+cpu", "own"),
        ("1.1.1", "1.1.0", "forward-in-window"),
        ("1.1.0", "1.1.1", "backward"),
        ("2.0.0", "1.1.1", "forward"),
    ],
)
def test_direction(writer: str, reader: str, direction: str, world: World) -> None:
    world.observe(world.fixture(writer), reader)
    ((cells, result),) = observed(world.evidence()).values()
    assert (cells.direction, result.release, result.name) == (direction, reader.partition("+")[0], f"torch-{reader}")


def test_an_observation_under_another_key_does_not_count(world: World) -> None:
    fixture = world.fixture()
    world.observe(fixture, "2.0.0", key="0" * 20)
    assert world.evidence().cells == ()


def test_the_observation_of_one_pair_is_valid_under_its_key_alone(world: World) -> None:
    fixture = world.fixture()
    world.observe(fixture, "2.0.0", key="0" * 20)
    item = world.observe(fixture, "1.1.0")
    evidence = world.evidence()
    pairs = [(evidence.recorded[f"torch-{version}"], fixture, DEFAULT) for version in ("2.0.0", "1.1.0")]
    assert [evidence.valid(*pair) for pair in pairs] == [None, item]


@pytest.mark.parametrize(
    "change", [{"sha256": "x"}, {"calls": [{"method": "f", "args": []}]}, {"golden": {}}, {"family": "mobile"}]
)
def test_an_observation_of_another_archive_call_or_golden_does_not_count(change: dict[str, Any], world: World) -> None:
    world.observe(world.fixture(), "2.0.0")
    world.fixtures = [replace(world.fixtures[0], **change)]
    assert world.evidence().cells == ()


def test_an_observation_under_other_options_does_not_count(world: World) -> None:
    fixture = world.fixture(family="torch-save")
    world.observe(fixture, "2.0.0", options=STRICT)
    assert len(world.evidence().cells) == 1
    loose = STRICT.model_copy(update={"load": STRICT.load.model_copy(update={"weights_only": False})})
    world.promise(options=(world.policy.options[0], loose))
    assert world.evidence().cells == ()
    world.promise(options=(world.policy.options[0], STRICT))
    assert len(world.evidence().cells) == 1


def test_who_the_reader_is_stands_beside_its_cells_and_in_the_digest(world: World) -> None:
    world.observe(world.fixture(), "2.0.0")
    before = world.evidence()
    world.recorded["torch-2.0.0"] = replace(world.recorded["torch-2.0.0"], identity={"torch": "2.0.0", "git": "other"})
    assert [cell.observation for cell in world.evidence().cells] == [cell.observation for cell in before.cells]
    assert world.evidence().digest != before.digest


def test_the_recorded_observation_counts_before_a_fresh_one(world: World) -> None:
    fixture = world.fixture()
    world.observe(fixture, "2.0.0", "same")
    world.observe(fixture, "2.0.0", "different", fresh=True)
    world.observe(fixture, "1.1.0", "refused", fresh=True)
    results = {reader.name: (cells.outcome, reader.recorded) for cells, reader in observed(world.evidence()).values()}
    assert results == {"torch-2.0.0": ("same", True), "torch-1.1.0": ("refused", False)}


def test_a_fresh_observation_counts_where_the_recorded_one_is_of_something_else(world: World) -> None:
    fixture = world.fixture()
    world.observe(fixture, "2.0.0", "same", key="0" * 20)
    world.observe(fixture, "2.0.0", "refused", fresh=True)
    (cell,) = world.evidence().cells
    assert cell.outcome == "refused"


def test_two_builds_of_one_release_are_two_readers(world: World) -> None:
    fixture = world.fixture()
    world.observe(fixture, "2.0.0+cpu")
    world.observe(fixture, "2.0.0+cu118", "different")
    assert [(reader.name, cells.outcome) for cells, reader in observed(world.evidence()).values()] == [
        ("torch-2.0.0+cpu", "same"),
        ("torch-2.0.0+cu118", "different"),
    ]


def test_readers_that_did_the_same_are_seen_at_once_in_each_direction(world: World) -> None:
    fixture = world.fixture("1.1.0")
    for version in ("1.0.0", "1.1.0", "1.1.1", "2.0.0"):
        world.observe(fixture, version, "same" if version == "1.1.0" else "refused")
    evidence = world.evidence()
    results = [
        (cells.outcome, cells.direction, [item.release for item in evidence.readers.of(cells.readers)])
        for cells in evidence.cells
    ]
    assert sorted(results) == [
        ("refused", "backward", ["1.1.1", "2.0.0"]),
        ("refused", "forward", ["1.0.0"]),
        ("same", "own", ["1.1.0"]),
    ]


@pytest.mark.parametrize("change", [{"errors": ({"type": "x", "message": "y"},)}, {"warnings": (("a", "b"),)}])
def test_readers_that_did_something_else_with_the_same_outcome_are_told_apart(change: dict[str, Any], world: World) -> None:
    fixture = world.fixture()
    world.observe(fixture, "1.1.0", "refused")
    world.observe(fixture, "2.0.0", "refused", **change)
    assert len(world.evidence().cells) == 2


def test_one_line_names_a_reader_once(world: World) -> None:
    fixture = world.fixture()
    for fresh in (False, True):
        world.observe(fixture, "2.0.0", fresh=fresh)
    world.observe(fixture, "1.1.0", key="0" * 20)
    ((_, _, result),) = world.evidence().lines()
    assert [bits for _, bits in result] == [0b010]  # of 1.1.0, of 2.0.0 as recorded, and of 2.0.0 just now


# ------------------------------------------------------------------------------------------------------------- outcomes


@pytest.mark.parametrize(
    ("parts", "outcome"),
    [
        ((extent([9.0, 4]),), "close"),
        ((extent([1.1e-6, 5]),), "different"),
        ((extent([9.0, 4], [1e-5, 99]),), "different"),
        ((extent(["inf", "inf"]),), "different"),
        ((extent(),), "close"),  # NaN of other payloads
        (({**extent(), "frontier": None},), "different"),
        ((extent([0, 1], dtype="int64"),), "different"),
        ((extent([0, 1], dtype="float64"),), "different"),  # no tolerance for it
        ((extent(kind="shape"),), "different"),
        ((extent(kind="strides"),), "different"),
        ((extent([0, 1]), extent(kind="shape")), "different"),
        ((extent([0, 1]), extent(kind="raised")), "raised"),
        ((extent([0, 1]), extent(kind="relaxed")), "relaxed"),
        ((extent(kind="raised"), extent(kind="relaxed")), "raised"),
        ((extent(kind="raised"), extent([9.0, 99])), "different"),
    ],
)
def test_what_a_tolerance_makes_of_a_difference(parts: tuple[dict[str, Any], ...], outcome: str, world: World) -> None:
    world.observe(world.fixture(), "2.0.0", "different", extent=parts)
    (cell,) = world.evidence().cells
    assert cell.outcome == outcome


def tensor(*values: float) -> dict[str, Any]:
    data = base64.b64encode(struct.pack(f"<{len(values)}f", *values)).decode()
    return {"value": {"tensor": {"dtype": "float32", "shape": [len(values)], "strides": [1], "bytes": data}}}


@pytest.mark.parametrize(
    ("expected", "got", "outcome"),
    [
        ((1.0, 1e-5), (1.0, 1.00005e-5), "close"),  # far in ULP, near in both other ways
        ((1.0, 1e-7), (1.0, 1.5e-7), "different"),  # as small as the tolerance, and half of it gone
        ((1.0, 0.0), (1.0, 1e-9), "different"),
        ((1.0, 0.0), (1.0, -0.0), "close"),
        ((1e-5, 2.0), (1.00005e-5, 2.0000005), "close"),
        ((1e-5, 2.0), (1.00005e-5, 2.00001), "different"),
    ],
)
def test_what_is_small_is_within_its_relative_bound_too(
    expected: tuple[float, ...], got: tuple[float, ...], outcome: str, world: World
) -> None:
    fixture = world.fixture(golden=tensor(*expected))
    result = compare(fixture.golden, tensor(*got))
    facts: dict[str, Any] = {
        "extent": result.extent,
        "count": result.count,
        "departures": departures(fixture.golden, tensor(*got)),
    }
    world.observe(fixture, "2.0.0", "different", **facts)
    (cell,) = world.evidence().cells
    assert cell.outcome == outcome


def test_what_is_recorded_without_the_elements_is_not_within_a_relative_bound(world: World) -> None:
    world.observe(world.fixture(), "2.0.0", "different", extent=(extent([1e-7, 99]),))
    assert world.evidence().cells[0].outcome == "different"


@pytest.mark.parametrize(("outcome", "expected"), [("refused", True), ("raised", False), ("same", False)])
def test_only_a_refusal_is_what_load_options_may_cause(outcome: str, expected: bool, world: World) -> None:
    world.observe(world.fixture(family="torch-save"), "2.0.0", outcome, STRICT)
    evidence = world.evidence()
    (cells,) = evidence.cells
    assert cells.message == ("" if outcome == "same" else "version 9 is too new")
    assert evidence.refusals_expected(cells) == (cells.readers if expected else 0)


def test_what_is_only_stored_is_compared_bit_for_bit(world: World) -> None:
    world.observe(world.fixture(family="torch-save"), "2.0.0", "different", extent=(extent([1e-9, 1]),))
    world.observe(world.fixture(recipe="run"), "2.0.0", "different", extent=(extent([1e-9, 1]),))
    assert [cell.outcome for cell in world.evidence().cells] == ["different", "close"]


def test_the_tolerance_is_that_of_the_recipe_s_operators(world: World) -> None:
    world.observe(world.fixture(operators=["aten::gelu"]), "2.0.0", "different", extent=(extent([9.0, 50]),))
    assert world.evidence().cells[0].outcome == "different"
    wide = Tolerance(dtype="float32", operators=("aten::gelu",), max_ulp=50, max_abs=0.0, max_rel=0.0, reason=REASON)
    world.promise(tolerances=(*world.policy.tolerances, wide))
    assert world.evidence().cells[0].outcome == "close"


def test_a_kind_of_difference_may_be_disregarded_for_a_family(world: World) -> None:
    world.promise(tolerances=(TOLERANCE, Tolerance(kind="strides", families=("torchscript",), reason=REASON)))
    world.observe(world.fixture(), "2.0.0", "different", extent=(extent(kind="strides"),))
    world.observe(world.fixture(recipe="save", family="torch-save"), "2.0.0", "different", extent=(extent(kind="strides"),))
    assert [cell.outcome for cell in world.evidence().cells] == ["close", "different"]


@pytest.mark.parametrize(
    ("outcome", "change", "loaded"),
    [("same", {}, True), ("refused", {}, False), ("crashed", {}, False), ("crashed", {"stage": "call"}, True), ("timed-out", {"stage": "load"}, False)],
)  # fmt: skip
def test_whether_a_cell_loaded(outcome: str, change: dict[str, Any], loaded: bool, world: World) -> None:
    world.observe(world.fixture(), "2.0.0", outcome, **change)
    assert world.evidence().cells[0].loaded is loaded


# --------------------------------------------------------------------------------------------------------------- digest


def small(world: World) -> None:
    fixture = world.fixture()
    world.observe(fixture, "2.0.0")
    world.answer(world.probe(), "2.0.0", ("holds", True, ""))


CHANGES: list[Callable[[World], object]] = [
    lambda world: world.promise(forward_window_days=1),
    lambda world: world.fixture(recipe="other"),
    lambda world: world.inability(recipe="other"),
    lambda world: world.recipe("another"),
    lambda world: world.probe("another"),
    lambda world: world.damage.append(CorpusDamage("missing-file", "x", "y")),
    lambda world: world.observe(world.fixtures[0], "2.0.0", "refused"),
    lambda world: world.observe(world.fixtures[0], "2.0.0", fresh=True),
    lambda world: world.answer(world.probes[0], "2.0.0", ("holds", False, "")),
    lambda world: world.unreadable.update(x="y"),
    lambda world: world.unavailable.update(x="y"),
    lambda world: setattr(world, "as_of", dt.date(2026, 1, 2)),
]


@pytest.mark.parametrize("change", CHANGES)
def test_the_digest_covers_everything_that_is_judged(change: Callable[[World], object], world: World) -> None:
    small(world)
    before = world.evidence().digest
    assert world.evidence().digest == before
    change(world)
    assert world.evidence().digest != before


def test_options_are_for_families(world: World) -> None:
    assert {family for options in world.policy.options for family in options.families} == set(ANY)
