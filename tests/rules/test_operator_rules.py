"""The rules about operators: breaks have an upgrader or a waiver, upgraders state existing schemas, waivers are exact."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.counted import counted_gap
from tests.rules.conftest import DATES, file_format, rule
from torch_compat.corpus.operators import read_operators
from torch_compat.errors import CorpusError
from torch_compat.judging.judgement import Verdict
from torch_compat.judging.operator_changes import operators_became
from torch_compat.judging.operator_refusals import OperatorRefusals
from torch_compat.policy.model import CalendarRelease, CorpusScope
from torch_compat.policy.operator_waivers import Covers, OperatorWaiver, digest_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.rules.conftest import World
    from torch_compat.operators.differences import Difference

    Write = Callable[..., None]

BREAKS, STATED, EXACT = "schema-breaks-upgraded", "upgraders-old-schemas", "operator-waivers-exact"
ADD = "aten::add(Tensor self, Tensor other) -> Tensor\t1.0.0.."
OLD = "aten::f(Tensor self, int n) -> Tensor"


@pytest.fixture
def record(world: World, tmp_path: Path) -> Write:
    """Records schemas, each with its spans behind a tab, and upgraders by operator."""
    world.promise(
        corpus=CorpusScope(writers=("1.0.0",), readers=("1.0.0", "2.0.0")), formats=(file_format(4, read_from="1.1.0"),)
    )

    def write(*facts: str, incomplete: str = "", upgraders: dict[str, Any] | None = None, shown: str = "1.0.0..") -> None:
        folder = tmp_path / "operators"
        folder.mkdir(exist_ok=True)
        head = f"# releases {' '.join(DATES)}\n# obtained\t1.0.0..\tAsked.\n"
        missing = f"# incomplete\t{incomplete}\tHalf of it was asked.\n" if incomplete else ""
        (folder / "schemas.txt").write_text(
            f"# history 1 texts\n{head}{missing}" + "".join(f"{fact}\n" for fact in sorted((*facts, ADD)))
        )
        rows = sorted(f"{name}\t{json.dumps(entries)}\t{shown}\n" for name, entries in (upgraders or {}).items())
        (folder / "operator_versions.txt").write_text(f"# history 1 facts\n{head}" + "".join(rows))
        written = 'file_formats > add\t["version",3]\t1.0.0..\n'
        (folder / "constants.txt").write_text(f"# history 1 facts\n{head}{written}")
        world.operators = read_operators(tmp_path)

    return write


def waiver(
    *operators: str, change: tuple[Difference, ...] = ("removed",), since: str = "2.0.0", name: str = "known", **more: Any
) -> OperatorWaiver:
    rest = {"side": "backward", "title": "It is known", "reason": "so", "evidence": "seen", "owner": "us", **more}
    return OperatorWaiver(id=name, covers=(Covers(change=change, operators=operators),), since=since, **rest)


def accept(world: World, *waivers: OperatorWaiver) -> None:
    """Promise these waivers, and pin what they cover now."""
    world.promise(operator_waivers=waivers)
    became = {key: digest_of(shown) for key, shown in operators_became(world.evidence()).items() if shown}
    world.promise(became={(name.split(" ")[0], name.split(" ")[1]): item for (_, name), item in became.items()})


def causes(world: World, name: str) -> list[tuple[str, str, str]]:
    """Verdict, kind and text of everything that is not a pass."""
    return [
        (str(judgement.verdict), judgement.cause.what, judgement.cause.text)
        for judgement in world.judgements(name)
        if judgement.cause is not None
    ]


# ------------------------------------------------------------------------------------------------- what does not work


def test_nothing_recorded_is_not_checked(world: World) -> None:
    for name in (BREAKS, STATED):
        ((verdict, what, _),) = causes(world, name)
        assert (verdict, what) == ("not-checked", "not recorded")


def test_a_reader_whose_operators_are_not_recorded_is_not_checked(world: World, record: Write) -> None:
    record()
    world.promise(corpus=CorpusScope(writers=("1.0.0",), readers=("1.0.0", "2.7.0")))
    for name in (BREAKS, STATED):
        ((verdict, what, text),) = causes(world, name)
        assert (verdict, what) == ("not-checked", "not recorded")
        assert "torch-compat observe --reader torch-2.7.0 --record --survey" in text


def test_a_part_of_the_record_alone_is_no_record(tmp_path: Path, record: Write) -> None:
    record()
    (tmp_path / "operators" / "operator_versions.txt").unlink()
    with pytest.raises(CorpusError, match="no recorded history"):
        read_operators(tmp_path)


def test_operators_that_stay_pass(world: World, record: Write) -> None:
    record()
    assert world.counted(BREAKS) == {"pass": 3}


def test_a_change_that_works_passes(world: World, record: Write) -> None:
    record(f"{OLD}\t1.0.0..1.1.1", "aten::f(Tensor self, int n, int m=1) -> Tensor\t2.0.0..")
    assert {str(judgement.verdict) for judgement in world.judgements(BREAKS)} == {"pass"}
    assert len(world.judgements(BREAKS)) == 4


def test_a_break_fails_and_is_named_by_operator_and_release(world: World, record: Write) -> None:
    world.ask(BREAKS)
    record(
        f"{OLD}\t1.0.0..1.1.1",
        "aten::f(Tensor self, str n) -> Tensor\t2.0.0..",
        "aten::g.a() -> ()\t1.0.0",
        "aten::g.b() -> ()\t1.0.0",
    )
    report = world.judge()
    failing = {finding.id: finding for finding in report.findings}
    assert set(failing) == {f"{BREAKS}:type:aten::f@2.0.0", f"{BREAKS}:removed:aten::g@1.1.0"}
    gone, changed = failing[f"{BREAKS}:removed:aten::g@1.1.0"], failing[f"{BREAKS}:type:aten::f@2.0.0"]
    assert (gone.count, gone.first_reader, gone.verdict) == (2, "1.1.0", "fail")
    assert changed.reproduce == "torch-compat operators history aten::f"
    assert report.exit_status == 1


def test_an_upgrader_mends_a_break(world: World, record: Write) -> None:
    facts = [f"{OLD}\t1.0.0..1.1.1", "aten::f(Tensor self, str n) -> Tensor\t2.0.0.."]
    record(*facts, upgraders={"aten::f": [[4, "f_0_3", OLD]]})
    assert causes(world, BREAKS) == []
    record(*facts, upgraders={"aten::f": [[4, "f_0_3", OLD.replace("int n", "int k")]]})
    assert [what for _, what, _ in causes(world, BREAKS)] == ["type"]
    record(*facts, upgraders={"aten::f": [[3, "f_0_2", OLD]]})
    ((verdict, what, text),) = causes(world, BREAKS)
    assert (verdict, what) == ("fail", "type")
    assert "f_0_2 covers file formats 0 to 2, but 1.1.1 writes this operator with 3" in text


def test_an_upgrader_that_goes_breaks(world: World, record: Write) -> None:
    record(upgraders={"aten::add": [[4, "add_0_3", OLD]]}, shown="1.0.0..1.1.1")
    assert [(verdict, what) for verdict, what, _ in causes(world, BREAKS)] == [("fail", "upgrader dropped")]


def test_what_is_older_than_the_policy_was_not_promised(world: World, record: Write) -> None:
    record("aten::g() -> ()\t1.0.0", f"{OLD}\t1.0.0..1.1.1")
    world.promise(in_force_from=DATES["2.0.0"])
    verdicts = [(str(judgement.verdict), judgement.reader) for judgement in world.judgements(BREAKS)]
    assert verdicts == [("no-promise", "1.1.0"), ("no-promise", "1.1.1"), ("pass", "2.0.0"), ("fail", "2.0.0")]


def test_what_an_incomplete_set_lacks_is_not_checked_until_the_policy_says_why(world: World, record: Write) -> None:
    world.ask(BREAKS, EXACT)
    record("aten::g() -> ()\t1.0.0", "aten::back() -> ()\t1.0.0,1.1.1..", incomplete="1.1.0")
    assert [(verdict, what) for verdict, what, _ in causes(world, BREAKS)] == [
        ("not-checked", "unknown"), ("not-checked", "unknown"), ("fail", "removed"),
    ]  # fmt: skip
    world.promise(behaviors=(counted_gap("1.1.0", 2),))
    result = causes(world, BREAKS)
    assert [(verdict, what) for verdict, what, _ in result] == [
        ("expected", "unknown"),
        ("expected", "unknown"),
        ("fail", "removed"),
    ]
    assert "nobody can ask it again" in result[0][2]
    assert world.verdicts(EXACT) == {"operator_gap of 1.1.0": "pass"}


@pytest.mark.parametrize(("gap", "what"), [(("1.1.0", 1), "inexact"), (("1.1.0", 3), "inexact"), (("2.0.0", 2), "unused")])
def test_a_gap_is_exact(world: World, record: Write, gap: tuple[str, int], what: str) -> None:
    record("aten::g() -> ()\t1.0.0,1.1.1..", "aten::back() -> ()\t1.0.0,1.1.1..", incomplete="1.1.0")
    world.promise(behaviors=(counted_gap(gap[0], gap[1]),))
    assert world.verdicts(EXACT) == {f"operator_gap of {gap[0]}": f"fail: {what}"}


def test_a_schema_that_cannot_be_read_is_not_checked(world: World, record: Write) -> None:
    record("aten::f(Tensor self, what?! n) -> Tensor\t1.0.0")
    assert [(verdict, what) for verdict, what, _ in causes(world, BREAKS)] == [("not-checked", "unreadable")]


# -------------------------------------------------------------------------------------------------------------- upgraders


def stated(world: World, record: Write, old: str, *facts: str, **more: Any) -> list[tuple[str, str, str]]:
    record(*facts, upgraders={"aten::f": [[4, "f_0_3", old]]}, **more)
    return causes(world, STATED)


def test_an_upgrader_that_states_what_there_was_passes(world: World, record: Write) -> None:
    assert stated(world, record, OLD.replace("int n", "SymInt n"), f"{OLD}\t1.0.0..") == []
    assert [str(judgement.verdict) for judgement in world.judgements(STATED)] == ["pass"]


def test_an_upgrader_that_states_another_schema_fails(world: World, record: Write) -> None:
    ((verdict, what, text),) = stated(world, record, OLD.replace("int n", "int k"), f"{OLD}\t1.0.0", f"{OLD}=\t1.1.0..")
    assert (verdict, what) == ("fail", "another schema")
    assert f"declares {OLD.replace('int n', 'int k')}, but 1.0.0 had {OLD}" in text


def test_an_upgrader_for_what_there_was_not_fails(world: World, record: Write) -> None:
    ((verdict, what, text),) = stated(world, record, OLD, f"{OLD}\t1.1.0..")
    assert (verdict, what) == ("fail", "no such operator")
    assert text.endswith("but 1.0.0 had no such operator")


def test_what_is_not_known_before_the_bump_is_not_checked(world: World, record: Write) -> None:
    ((verdict, what, _),) = stated(world, record, OLD, f"{OLD}\t1.1.0..", incomplete="1.0.0")
    assert (verdict, what) == ("not-checked", "not recorded")
    world.promise(formats=(file_format(4, read_from="1.0.0"),))
    assert [(verdict, what) for verdict, what, _ in causes(world, STATED)] == [("not-checked", "no release before")]
    world.promise(formats=())
    assert [(verdict, what) for verdict, what, _ in causes(world, STATED)] == [("not-checked", "no release before")]


def test_upgraders_that_no_release_of_the_policy_states_are_not_asked_for(world: World, record: Write) -> None:
    world.promise(in_force_from=DATES["2.0.0"])
    assert stated(world, record, OLD, shown="1.0.0..1.1.1") == []
    assert world.judgements(STATED) == []


# ---------------------------------------------------------------------------------------------------------------- waivers


def gone(record: Write) -> None:
    record(f"{OLD}\t1.0.0..1.1.1", f"{OLD.replace('::f', '::f.out')}\t1.0.0..1.1.1", "aten::g() -> ()\t1.0.0..1.1.1")


def test_a_waiver_covers_a_break_and_is_shown(world: World, record: Write) -> None:
    world.ask(BREAKS, EXACT)
    gone(record)
    accept(world, waiver("aten::f", "aten::f.out", "aten::g"))
    report = world.judge()
    assert report.exit_status == 0
    assert {(finding.id, finding.verdict, finding.waiver, finding.title) for finding in report.findings} == {
        (f"{BREAKS}:removed:aten::{name}@2.0.0", "waived", "known", "It is known") for name in "fg"
    }
    assert [item.id for item in report.waivers] == ["known"]


def test_a_waiver_for_an_upgrader(world: World, record: Write) -> None:
    ((verdict, _, _),) = stated(world, record, OLD, f"{OLD}\t1.1.0..")
    assert verdict == "fail"
    accept(world, waiver("aten::f", change=("never-there",), since="1.0.0", side="upgrader"))
    assert [verdict for verdict, _, _ in causes(world, STATED)] == ["waived"]
    assert world.verdicts(EXACT) == {"waiver known": "pass"}
    stated(world, record, OLD.replace("int n", "int k"), f"{OLD}\t1.0.0..")  # now there was another one
    assert world.verdicts(EXACT) == {"waiver known": "fail: another change"}
    accept(world, waiver("aten::f", change=("argument-renamed",), since="1.0.0", side="upgrader"))
    assert [verdict for verdict, _, _ in causes(world, STATED)] == ["waived"]


def test_a_waiver_for_forward_breaks_is_counted(world: World, record: Write) -> None:
    record(f"{OLD}\t1.0.0..1.1.1", "aten::f(Tensor self, int n, int[] m=[1]) -> Tensor\t2.0.0..")
    accept(world, waiver("aten::f", change=("argument-added",), side="forward"))
    assert world.verdicts(EXACT) == {"waiver known": "pass"}
    accept(world, waiver("aten::add", change=("argument-added",), side="forward"))
    assert world.verdicts(EXACT) == {"waiver known": "fail: unused"}


def test_a_waiver_for_an_upgrader_that_goes(world: World, record: Write) -> None:
    record(upgraders={"aten::add": [[4, "add_0_3", OLD]]}, shown="1.0.0..1.1.1")
    accept(world, waiver("aten::add", change=("upgrader-dropped",)))
    assert [verdict for verdict, _, _ in causes(world, BREAKS)] == ["waived"]
    assert world.verdicts(EXACT) == {"waiver known": "pass"}


@pytest.mark.parametrize(
    ("what", "waivers"),
    [
        ("another change", [waiver("aten::f", change=("alias-annotation",))]),
        ("another change", [waiver("aten::f", change=("removed", "argument-added"))]),
        ("did not change", [waiver("aten::f", "aten::h")]),
        ("unused", [waiver("aten::h")]),
        ("unused", [waiver("aten::f", since="1.1.1")]),
        ("expired", [waiver("aten::f", expires=dt.date(2026, 1, 1))]),
        ("overlapping", [waiver("aten::f"), waiver("aten::f", "aten::f.out", name="wide")]),
    ],
)
def test_a_waiver_that_is_not_exact_fails(world: World, record: Write, what: str, waivers: list[OperatorWaiver]) -> None:
    gone(record)
    accept(world, *waivers)
    assert world.verdicts(EXACT)["waiver known"] == f"fail: {what}"


def test_what_no_waiver_names_fails(world: World, record: Write) -> None:
    gone(record)
    accept(world, waiver("aten::f"))
    assert world.verdicts(EXACT) == {"waiver known": "pass"}
    assert sorted(text for verdict, _, text in causes(world, BREAKS) if verdict == "fail") == [
        f"{name}: the operator no longer exists" for name in ("aten::f.out", "aten::g")
    ]


def test_another_change_of_a_named_operator_fails_twice(world: World, record: Write) -> None:
    """Itself, since nothing covers it, and the waiver that was for something else."""
    record(f"{OLD}\t1.0.0..1.1.1", "aten::f(Tensor input, int n) -> Tensor\t2.0.0..")
    accept(world, waiver("aten::f", change=("argument-renamed",)))
    assert [verdict for verdict, _, _ in causes(world, BREAKS)] == ["waived"]
    record(f"{OLD}\t1.0.0..1.1.1", "aten::f(Tensor input, int n, int m) -> Tensor\t2.0.0..")
    assert [(verdict, what) for verdict, what, _ in causes(world, BREAKS)] == [("fail", "renamed")]
    ((_, what, text),) = causes(world, EXACT)
    assert what == "another change"
    assert text.endswith("aten::f has the change required-argument-added, argument-renamed, not argument-renamed")


def test_another_outcome_of_the_same_change_fails(world: World, record: Write) -> None:
    record(f"{OLD}\t1.0.0..1.1.1", "aten::f(Tensor input, int n) -> Tensor\t2.0.0..")
    accept(world, waiver("aten::f", change=("argument-renamed",)))
    record(f"{OLD}\t1.0.0..1.1.1", "aten::f(Tensor tensor, int n) -> Tensor\t2.0.0..")
    ((_, what, text),) = causes(world, EXACT)
    assert what == "became something else"
    assert text.endswith("not in counts.lock: aten::f became aten::f(Tensor tensor, int n) -> Tensor")


def test_a_waiver_for_a_planned_release_waits_until_it_expires(world: World, record: Write) -> None:
    gone(record)
    planned = CalendarRelease(version="2.1.0", date=dt.date(2026, 6, 1), source="here")
    world.promise(operator_waivers=(waiver("aten::h", since="2.1.0", expires=dt.date(2026, 2, 1)),), planned=(planned,))
    assert world.verdicts(EXACT) == {"waiver known": "pass"}
    world.as_of = dt.date(2026, 2, 1)
    assert world.verdicts(EXACT) == {"waiver known": "fail: expired"}


def test_waivers_without_records_are_not_checked(world: World) -> None:
    world.promise(operator_waivers=(waiver("aten::h"),), behaviors=(counted_gap("1.1.0", 1),))
    assert set(world.verdicts(EXACT).values()) == {"not-checked: not recorded"}


def test_waivers_that_nobody_counts_are_no_pass(world: World, record: Write) -> None:
    gone(record)
    accept(world, waiver("aten::f", "aten::f.out", "aten::g"))
    world.promise(rules=(rule(BREAKS),))
    report = world.judge()
    assert report.exit_status == 4
    assert [what for what, _, _ in report.not_checked] == [EXACT]


def test_what_is_judged_depends_on_the_record(world: World, record: Write) -> None:
    record()
    before = world.evidence().digest
    gone(record)
    assert world.evidence().digest != before


UNKNOWN_OPERATOR = {
    "type": "builtins.RuntimeError",
    "message": "\nUnknown builtin op: aten::f.\nHere are some suggestions: \n\taten::add",
}


def refusal(world: World, message: str = UNKNOWN_OPERATOR["message"], operators: tuple[str, ...] = ("*",)) -> str:
    """What newer-loads says where 2.0.0 refuses so what 1.0.0 wrote."""
    fixture = world.fixture("1.0.0", operators=[*operators])
    world.observe(fixture, "2.0.0", "refused", errors=({**UNKNOWN_OPERATOR, "message": message},))
    (result,) = world.verdicts("newer-loads").values()
    return result.partition(":")[0]


def test_a_refusal_of_every_operator_is_expected_where_the_break_of_its_operator_has_a_waiver(
    world: World, record: Write
) -> None:
    record(f"{OLD}\t1.0.0..1.1.1")
    accept(world, waiver("aten::f"))
    assert refusal(world) == "expected"


def test_a_program_with_every_operator_that_loads_passes(world: World, record: Write) -> None:
    record(f"{OLD}\t1.0.0..1.1.1")
    world.observe(world.fixture("1.0.0", operators=["*"]), "2.0.0")
    assert list(world.verdicts("newer-loads").values()) == ["pass"]


def test_every_break_between_writer_and_reader_needs_a_waiver(world: World, record: Write) -> None:
    record(f"{OLD}\t1.0.0, 1.1.1", ADD)
    accept(world, waiver("aten::f"))
    assert refusal(world) == "fail"  # 1.1.0 lacked it, too, and no waiver covers that
    accept(world, waiver("aten::f"), waiver("aten::f", since="1.1.0", name="before"))
    world.fixtures.clear()
    assert refusal(world) == "expected"


def test_a_break_in_the_release_of_the_writer_explains_no_refusal(world: World, record: Write) -> None:
    record(f"{OLD}\t1.0.0..1.1.1")
    accept(world, waiver("aten::f"))
    world.observe(world.fixture("2.0.0", operators=["*"]), "2.0.0", "refused", errors=(UNKNOWN_OPERATOR,))
    (cells,) = world.evidence().cells
    assert OperatorRefusals(world.evidence()).verdicts(cells) == {Verdict.FAIL: cells.readers}


def test_a_refusal_of_every_operator_whose_operator_has_no_waiver_fails(world: World, record: Write) -> None:
    record(f"{OLD}\t1.0.0..1.1.1")
    assert refusal(world) == "fail"


@pytest.mark.parametrize("message", ["Unknown builtin op: aten::add.", "The disk is on fire.", "Unknown builtin op: aten::g."])
def test_a_refusal_of_every_operator_for_another_reason_fails(world: World, record: Write, message: str) -> None:
    record(f"{OLD}\t1.0.0..1.1.1")
    accept(world, waiver("aten::f"))
    assert refusal(world, message) == "fail"


def test_a_refusal_of_a_program_that_does_not_walk_through_operators_fails(world: World, record: Write) -> None:
    record(f"{OLD}\t1.0.0..1.1.1")
    accept(world, waiver("aten::f"))
    assert refusal(world, operators=("aten::f",)) == "fail"


def test_of_an_operator_that_went_before_the_policy_nothing_was_promised(world: World, record: Write) -> None:
    world.promise(in_force_from=dt.date(2100, 1, 1))
    record(f"{OLD}\t1.0.0..1.1.1")
    assert refusal(world) == "no-promise"


def test_of_an_operator_that_did_not_go_before_the_policy_it_fails(world: World, record: Write) -> None:
    world.promise(in_force_from=dt.date(2100, 1, 1))
    record(f"{OLD}\t1.0.0..")
    assert refusal(world) == "fail"


def test_without_a_record_of_operators_no_refusal_is_expected(world: World) -> None:
    assert refusal(world) == "fail"
