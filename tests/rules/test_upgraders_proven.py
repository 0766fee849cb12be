"""upgraders-proven: each upgrader has a valid proof and meets all requirements."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.rules.conftest import DATES, TOLERANCE, file_format, rule, waiver
from torch_compat.corpus.operators import read_operators
from torch_compat.corpus.proofs import Example, Obligation, Proofs, RecordedProof, stated_digest
from torch_compat.policy.upgraders import Upgrader

if TYPE_CHECKING:
    from pathlib import Path

    from tests.rules.conftest import World

NAME = "upgraders-proven"
BODY = "def f_0_3(self: Tensor) -> Tensor:\n  return torch.g(self)"
FACTS: dict[str, Any] = {
    "id": "f_0_3", "operator": "aten::f", "first": 0, "bump": 4, "old_schema": "aten::f(Tensor self) -> Tensor", "body": BODY,
    "old": "1.0.0", "since": "1.1.0", "link": "here",
}  # fmt: skip
GREEN = [
    Obligation("compiles", "torch-2.0.0", ""),
    Obligation("branch", "line 2: x holds", "3"),
    Obligation("saved", "torch-2.0.0", "4"),
    Obligation("again", "torch-2.0.0", "same"),
]
EXAMPLE = Example("dtype", "torch.f(a_self)", [1], "1", "tensor(1)", "tensor(1.0)", "dtype: int64 became float32", 2)


def upgrader(**change: Any) -> Upgrader:
    return Upgrader.model_validate({key: value for key, value in {**FACTS, **change}.items() if value is not None})


def proof(item: Upgrader, **change: Any) -> RecordedProof:
    """A proof that holds, of this very table."""
    result = RecordedProof(
        upgrader=item.id,
        stated=stated_digest(item.operator, item.first, item.bump, item.old_schema, item.body, item.old or ""),
        seed="0",
        count=10,
        old=("torch-1.0.0",),
        new=("torch-2.0.0",),
        calls={"same": 10},
        confirmed=10,
        later=(),
        tolerances={TOLERANCE.dtype: [float(TOLERANCE.max_ulp), float(TOLERANCE.max_abs)]},
        obligations=tuple(GREEN),
    )
    return replace(result, **change)


@pytest.fixture
def ready(world: World, tmp_path: Path) -> World:
    """A world in which one upgrader owes nothing."""
    folder = tmp_path / "operators"
    folder.mkdir()
    head = f"# releases {' '.join(DATES)}\n# obtained\t1.0.0..\tAsked.\n"
    schemas = [
        "aten::f(Tensor self) -> Tensor\t1.0.0..",
        "aten::g(Tensor self) -> Tensor\t1.0.0..",
        "aten::h(Tensor self) -> Tensor\t1.0.0..1.1.0",
    ]
    (folder / "schemas.txt").write_text(f"# history 1 texts\n{head}" + "".join(f"{schema}\n" for schema in schemas))
    (folder / "operator_versions.txt").write_text(f"# history 1 facts\n{head}")
    (folder / "constants.txt").write_text(f'# history 1 facts\n{head}file_formats > add\t["version",3]\t1.0.0..\n')
    world.operators = read_operators(tmp_path)
    world.fixture(operators=["aten::f"], versions={"file-format": 3})
    item = upgrader()
    world.promise(upgraders=(item,), rules=(rule(NAME),), formats=(file_format(4, read_from="1.1.0"),))
    record(world, proof(item))
    return world


def record(world: World, *proofs: RecordedProof, unreadable: dict[str, str] | None = None) -> None:
    world.proofs = Proofs({item.upgrader: item for item in proofs}, unreadable or {}, "d")


def wrong(world: World) -> dict[str, str]:
    """What is no pass, by subject."""
    return {subject: verdict for subject, verdict in world.verdicts(NAME).items() if verdict != "pass"}


def test_an_upgrader_that_owes_nothing_passes(ready: World) -> None:
    assert wrong(ready) == {}
    assert len(ready.judgements(NAME)) == 9


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"confirmed": 0}, {"f_0_3: proof": "not-checked: proof"}),
        ({"stated": "other"}, {"f_0_3: proof": "not-checked: proof"}),
        ({"tolerances": {}}, {"f_0_3: proof": "not-checked: proof"}),
        ({"calls": {"no-program": 9}}, {"f_0_3: proof": "not-checked: proof"}),
        ({"calls": {"same": 9, "unsupported": 1}}, {"f_0_3: proof": "not-checked: proof"}),
        ({"calls": {"changed": 1}}, {"f_0_3: proof": "not-checked: proof"}),
        ({"calls": {"changed": 2}, "examples": (EXAMPLE,)}, {"f_0_3: dtype": "fail: dtype"}),
        ({"calls": {"same": 9, "changed-later": 1}, "later": ("x",)}, {"f_0_3: later change": "expected: later change"}),
        ({"calls": {"same": 9, "relaxed": 1}}, {"f_0_3: relaxed": "no-promise"}),
        ({"obligations": GREEN[1:]}, {"f_0_3: compiles": "not-checked: compiles"}),
        ({"obligations": [Obligation("compiles", "torch-2.0.0", "no"), *GREEN[1:]]}, {"f_0_3: compiles": "fail: compiles"}),
        ({"obligations": [GREEN[0], Obligation("branch", "x", "0"), *GREEN[2:]]}, {"f_0_3: branch": "fail: branch"}),
        ({"obligations": [*GREEN[:2], Obligation("saved", "t", "3"), GREEN[3]]}, {"f_0_3: saved": "fail: saved"}),
        ({"obligations": [*GREEN[:2], Obligation("saved", "t", "raised"), GREEN[3]]}, {"f_0_3: saved": "fail: saved"}),
        ({"obligations": GREEN[:2]}, {"f_0_3: saved": "not-checked: saved"}),
        ({"obligations": [*GREEN[:3], Obligation("again", "t", "other")]}, {"f_0_3: again": "fail: again"}),
    ],
)
def test_what_a_recorded_proof_shows_is_judged(change: dict[str, Any], found: dict[str, str], ready: World) -> None:
    record(ready, proof(upgrader(), **change))
    assert wrong(ready) == found


def test_without_a_proof_nothing_is_checked_and_the_command_is_told(ready: World) -> None:
    for proofs in (None, Proofs({}, {}, "d")):
        ready.proofs = proofs
        (result,) = (judgement for judgement in ready.judgements(NAME) if judgement.verdict == "not-checked")
        assert result.cause is not None
        assert result.cause.text.endswith("prove f_0_3 --record --reader torch-1.0.0 --reader torch-1.1.0 --reader torch-2.0.0")


def test_a_proof_that_cannot_be_read_is_not_checked(ready: World) -> None:
    record(ready, unreadable={"f_0_3": "is not whole"})
    assert wrong(ready) == {"f_0_3: proof": "not-checked: proof"}


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"body": BODY.replace("torch.g", "torch.h")}, {"f_0_3: calls": "fail: calls"}),  # gone since 1.1.1
        ({"body": BODY.replace("torch.g(self)", "self")}, {"f_0_3: calls": "fail: calls"}),
        ({"body": "def f_0_3(self: Tensor"}, {"f_0_3: calls": "fail: calls"}),
        ({"first": 2}, {"aten::f: ranges": "fail: ranges"}),
        ({"operator": "aten::g"}, {"f_0_3: fixture": "fail: fixture"}),
        ({"old": "1.1.0"}, {"f_0_3: old release": "fail: old release"}),
        ({"old": None}, {"f_0_3: no old release": "fail: no old release"}),
        ({"old": None, "bump": 9}, {"f_0_3: no old release": "not-checked: no old release"}),
        (
            {"since": None, "operator": "aten::g", "old_schema": "aten::g(Tensor self) -> Tensor"},
            {"f_0_3: fixture": "fail: fixture", "f_0_3: body": "fail: body"},
        ),
        ({"since": None, "old_schema": "aten::f(Tensor other) -> Tensor"}, {"f_0_3: old schema": "fail: old schema"}),
    ],
)
def test_what_a_table_states_is_judged(change: dict[str, Any], found: dict[str, str], ready: World) -> None:
    item = upgrader(**change)
    ready.promise(upgraders=(item,))
    record(ready, proof(item))
    assert {name: message for name, message in wrong(ready).items() if message[:10] != "no-promise"} == found


@pytest.mark.parametrize(
    ("first", "text"), [(5, "no upgrader covers versions 4 to 4"), (3, "two upgraders cover versions 3 to 3")]
)
def test_ranges_have_no_gap_and_no_overlap(first: int, text: str, ready: World) -> None:
    second = upgrader(id="f_4_6", first=first, bump=7, old="1.1.1", since="2.0.0")
    ready.fixture("1.1.0", operators=["aten::f"], versions={"file-format": 6})
    ready.promise(upgraders=(upgrader(), second))
    record(ready, proof(upgrader()), proof(second, obligations=[GREEN[0], Obligation("saved", "t", "7"), GREEN[3]]))
    (result,) = (judgement for judgement in ready.judgements(NAME) if judgement.verdict == "fail")
    assert result.cause is not None
    assert text in result.cause.text


def test_ranges_that_meet_compose(ready: World) -> None:
    second = upgrader(id="f_4_6", first=4, bump=7, old="1.1.1", since="2.0.0")
    ready.promise(upgraders=(upgrader(), second))
    record(ready, proof(upgrader()), proof(second, obligations=[GREEN[0], Obligation("saved", "t", "7"), GREEN[3]]))
    assert wrong(ready) == {}


def test_a_proposed_upgrader_needs_no_release_and_its_proof_is_modelled(ready: World) -> None:
    item = upgrader(since=None)
    ready.promise(upgraders=(item,))
    record(ready, proof(item, confirmed=0, old=(), new=(), obligations=GREEN[:2]))
    assert wrong(ready) == {"f_0_3: saved": "no-promise: saved"}
    (result,) = (judgement for judgement in ready.judgements(NAME) if judgement.subject == "f_0_3: proof")
    assert result.modelled


def test_the_fixture_of_a_proposed_upgrader_may_wait_for_its_releases(ready: World) -> None:
    item = upgrader(
        since=None, operator="aten::h", body=BODY.replace("torch.g", "torch.f"), old_schema="aten::h(Tensor self) -> Tensor"
    )
    ready.promise(upgraders=(item,))
    record(ready, proof(item))
    assert wrong(ready)["f_0_3: fixture"] == "fail: fixture"
    ready.recipes["new"] = replace(ready.recipe("new"), operators=("aten::h",))
    assert wrong(ready)["f_0_3: fixture"] == "no-promise: fixture"


def test_a_counterexample_can_be_accepted_like_any_other_failure(ready: World) -> None:
    record(ready, proof(upgrader(), calls={"changed": 2}, examples=(EXAMPLE,)))
    ready.promise(rules=(rule(NAME), rule("waivers-exact")), waivers=(waiver(findings=("upgraders-proven:dtype:f_0_3@1.1.0",)),))
    ready.reader("1.1.0")
    ready.accept()
    assert [finding.verdict for finding in ready.judge().findings] == ["waived"]
    record(ready, proof(upgrader(), calls={"changed": 2}, examples=(replace(EXAMPLE, new="tensor(2.0)"),)))
    assert "fail" in [finding.verdict for finding in ready.judge().findings], "another difference is not what was accepted"
