"""The upgrader tables match what releases report, and each name states operator, overload and range."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from torch_compat.errors import PolicyError
from torch_compat.operators.history import History
from torch_compat.policy import load_policy
from torch_compat.releases.data import packaged
from torch_compat.releases.release import Release
from torch_compat.runtime.registry import NEWEST
from torch_compat.runtime.upgraders import UpgraderBody, recorded

if TYPE_CHECKING:
    from pathlib import Path

    from torch_compat.policy.upgraders import Upgrader

POLICY = load_policy(packaged("policies", "torch"))


def body_of(upgrader: Upgrader) -> UpgraderBody:
    operator, _, overload = upgrader.operator.partition(".")
    return UpgraderBody(
        upgrader.id, operator, overload, upgrader.first, upgrader.bump, upgrader.old_schema, upgrader.body.strip("\n")
    )


def test_each_table_is_what_the_newest_release_with_the_upgrader_states() -> None:
    newest = {body.name: body for body in recorded(NEWEST).bodies}
    recorded_ones = [item for item in POLICY.upgraders if item.since is not None]
    assert {item.id for item in recorded_ones if item.dropped is None} == newest.keys()
    for upgrader in recorded_ones:
        stated = newest if upgrader.dropped is None else {body.name: body for body in recorded(Release("2.12.1")).bodies}
        assert body_of(upgrader) == stated[upgrader.id]


def test_the_old_release_has_the_operator_with_a_schema_that_old_programs_fit_and_the_next_one_has_the_bump() -> None:
    schemas = History.load()
    for upgrader in POLICY.upgraders:
        overloads = (
            {text.partition("(")[0] for text in schemas.schemas(upgrader.operator.partition(".")[0], upgrader.old)}
            if upgrader.old
            else set()
        )
        assert (upgrader.operator in overloads) == (upgrader.old is not None), upgrader.id


def test_the_ranges_of_an_overload_ascend_without_gap_or_overlap() -> None:
    by_operator: dict[str, list[tuple[int, int]]] = {}
    for upgrader in POLICY.upgraders:
        by_operator.setdefault(upgrader.operator, []).append((upgrader.first, upgrader.bump))
    for ranges in by_operator.values():
        ordered = sorted(ranges)
        assert ordered[0][0] == 0
        assert all(end == start for (_, end), (start, _) in pairwise(ordered))


def test_neighbouring_releases_differ_where_it_is_known() -> None:
    """What the record shows of bodies from 1.11 on: one was changed in place, without a version of its own."""
    schemas = recorded(Release("2.12.1")).bodies, recorded(Release("2.13.0")).bodies
    assert {schema.name for schema in schemas[0]} - {schema.name for schema in schemas[1]} == {"full_names_0_4"}


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ('id = "gelu_0_9"', 'id = "gelu_0_8"', "must be 'gelu_0_9', derived from the operator and the version range"),
        ("bump = 4", "bump = 5", "derived from the operator and the version range"),
        ('change = "gelu-approximate"', 'change = "nothing"', "there is no change 'nothing'"),
        ('old = "1.11.0"', 'old = "1.11.9"', "is not in the calendar"),
    ],
)
def test_a_table_that_does_not_fit_is_a_mistake(right: str, wrong: str, said: str, tmp_path: Path) -> None:
    for path in packaged("policies", "torch").rglob("*"):
        target = tmp_path / path.relative_to(packaged("policies", "torch"))
        if path.is_dir():
            target.mkdir(parents=True, exist_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    path = tmp_path / "upgraders.toml"
    text = path.read_text(encoding="utf-8")
    assert right in text
    path.write_text(text.replace(right, wrong, 1), encoding="utf-8")
    with pytest.raises(PolicyError, match=said):
        load_policy(tmp_path)
