"""Judging as a whole: causes and their ids, groups, the smallest example, waivers, counts, and the exit status."""

from __future__ import annotations

import datetime as dt
import re
import sys
from collections import Counter
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rules.conftest import STRICT, covers, file_format, observed, rule, waiver, wording
from torch_compat.corpus.corpus import CorpusDamage
from torch_compat.errors import UsageError
from torch_compat.judging.gathering import gather
from torch_compat.judging.judge import judge as judge_evidence
from torch_compat.judging.judge import measure
from torch_compat.judging.judgement import Asks, Verdict, slug
from torch_compat.policy.model import CorpusScope
from torch_compat.workspace import Root

if TYPE_CHECKING:
    from pathlib import Path

    from tests.rules.conftest import World
    from torch_compat.corpus.manifest import Fixture
    from torch_compat.judging.findings import Finding
    from torch_compat.judging.judge import Report

CELL_RULES = ("newer-loads", "newer-computes", "reads-back", "older-never-differs", "forward-window", "synthetic-loads")
REFUSED = "newer-loads:refused:version-n-is-too-new-3806cd"
CRASHED = "newer-loads:crashed:sigsegv-while-loading-71d82a"


def found(report: Report, verdict: str = "fail") -> dict[str, Finding]:
    """Findings of a verdict by id."""
    chosen = [finding for finding in report.findings if finding.verdict == verdict]
    assert len({finding.id for finding in chosen}) == len(chosen)
    return {finding.id: finding for finding in chosen}


def only(report: Report, verdict: str = "fail") -> Finding:
    (finding,) = found(report, verdict).values()
    return finding


# ----------------------------------------------------------------------------------------------------- causes and groups


def test_cells_with_one_cause_are_one_finding(world: World) -> None:
    world.ask("newer-loads")
    world.observe(world.fixture("1.0.0", "add", size=3000), "2.0.0", "refused")
    world.observe(world.fixture("1.1.0", "div", size=2000), "2.0.0", "refused")
    world.observe(world.fixture("1.1.1", "mul", size=2500), "2.0.0", "same")
    finding = only(world.judge())
    assert finding.id == f"{REFUSED}@2.0.0"
    assert (finding.count, finding.cause, finding.what) == (2, "version 9 is too new", "refused")
    assert (finding.first_reader, finding.readers, finding.writers) == ("2.0.0", ("2.0.0",), ("1.0.0", "1.1.0"))
    assert finding.smallest == "torch-1.1.0/div"
    assert finding.reproduce == "torch-compat observe --reader torch-2.0.0 --fixture torch-1.1.0/div --show"


def test_among_equal_archives_the_older_reader_is_shown(world: World) -> None:
    world.ask("newer-loads")
    fixture = world.fixture()
    for reader in ("2.0.0", "1.1.0"):
        world.observe(fixture, reader, "refused")
    assert "--reader torch-1.1.0" in only(world.judge()).reproduce


def test_of_archives_of_one_size_the_one_with_the_oldest_reader_is_shown(world: World) -> None:
    world.ask("older-never-differs")
    for recipe, readers in {"add": ["1.1.0"], "div": ["1.0.0", "1.1.0"]}.items():
        fixture = world.fixture("2.0.0", recipe)
        for reader in readers:
            world.observe(fixture, reader, "crashed")
    finding = only(world.judge())
    assert (finding.first_reader, finding.smallest) == ("1.1.0", "torch-2.0.0/div")
    assert "--reader torch-1.0.0 " in finding.reproduce


def test_a_cause_is_named_by_the_release_where_it_begins_for_a_fixture(world: World) -> None:
    """Readers that all show it are one finding; one that begins later for another fixture is another."""
    world.ask("newer-loads")
    item, other = world.fixture(recipe="add"), world.fixture(recipe="div")
    for reader, outcomes in {"1.1.0": ("refused", "same"), "1.1.1": ("refused", "same"), "2.0.0": ("refused", "refused")}.items():
        for fixture, outcome in zip((item, other), outcomes, strict=True):
            world.observe(fixture, reader, outcome)
    findings = found(world.judge())
    assert {name: finding.count for name, finding in findings.items()} == {f"{REFUSED}@1.1.0": 3, f"{REFUSED}@2.0.0": 1}
    assert findings[f"{REFUSED}@1.1.0"].first_reader == "1.1.0"
    assert findings[f"{REFUSED}@1.1.0"].readers == ("1.1.0", "1.1.1", "2.0.0")


def test_seen_from_a_newer_writer_a_cause_begins_with_the_newest_of_the_older_readers(world: World) -> None:
    world.ask("older-never-differs")
    fixture = world.fixture("2.0.0")
    for reader in ("1.0.0", "1.1.0", "1.1.1"):
        world.observe(fixture, reader, "different")
    assert only(world.judge()).id == "older-never-differs:different:add"
    world.observe(fixture, "1.1.1")
    assert only(world.judge()).id == "older-never-differs:different:add@..1.1.0"


def test_a_cause_that_is_older_than_the_fixture_begins_where_readers_began(world: World) -> None:
    """What readers refuse from one release on is one cause for all writers, those who refuse their own archives included."""
    world.ask("newer-loads", "reads-back")
    for writer in ("1.0.0", "1.1.0", "1.1.1"):
        fixture = world.fixture(writer)
        for reader in ("1.0.0", "1.1.0", "1.1.1", "2.0.0"):
            world.observe(fixture, reader, "same" if reader == "1.0.0" else "refused")
    ids = {name: finding.count for name, finding in found(world.judge()).items()}
    assert ids == {f"{REFUSED}@1.1.0": 6, f"{REFUSED.replace('newer-loads', 'reads-back')}@1.1.0": 2}


def test_what_always_was_unstable_begins_with_the_newest_for_older_readers(world: World) -> None:
    world.ask("older-never-differs")
    for writer in ("1.1.0", "2.0.0"):
        fixture = world.fixture(writer)
        for reader in ("1.0.0", "1.1.0", "1.1.1", "2.0.0"):
            world.observe(fixture, reader, "unstable")
    assert only(world.judge()).id == "older-never-differs:unstable:add"


def test_a_cause_is_not_followed_past_a_reader_without_it(world: World) -> None:
    world.ask("newer-loads")
    fixture = world.fixture("1.1.0")
    for reader, outcome in {"1.0.0": "refused", "1.1.0": "same", "1.1.1": "refused", "2.0.0": "refused"}.items():
        world.observe(fixture, reader, outcome)
    assert only(world.judge()).id == f"{REFUSED}@1.1.1"


def test_messages_that_differ_in_what_varies_are_one_cause(world: World) -> None:
    world.ask("newer-loads")
    for number in (9, 10):
        error = {"type": "builtins.RuntimeError", "message": f"version {number} is too new"}
        world.observe(world.fixture(recipe=f"r{number}"), "2.0.0", "refused", errors=(error,))
    finding = only(world.judge())
    assert (finding.id, finding.count) == (f"{REFUSED}@2.0.0", 2)
    assert finding.cause in {"version 9 is too new", "version 10 is too new"}


def test_versions_are_ordered_as_versions(world: World) -> None:
    """A reader 1.10.0 is newer than 1.9.0, though its text sorts before."""
    calendar = world.policy.calendar
    releases = [
        calendar["1.0.0"],
        calendar["1.1.0"].model_copy(update={"version": "1.9.0"}),
        calendar["1.1.1"].model_copy(update={"version": "1.10.0"}),
    ]
    world.promise(calendar=type(calendar)(releases))
    world.ask("newer-loads")
    fixture = world.fixture()
    for reader in ("1.9.0", "1.10.0"):
        world.observe(fixture, reader, "refused")
    finding = only(world.judge())
    assert (finding.first_reader, finding.readers) == ("1.9.0", ("1.9.0", "1.10.0"))


def test_other_options_are_another_cause(world: World) -> None:
    world.ask("newer-loads", "newer-computes")
    fixture = world.fixture(family="torch-save")
    world.observe(fixture, "2.0.0", "refused")
    world.observe(fixture, "2.0.0", "crashed", STRICT)
    findings = found(world.judge())
    assert set(findings) == {f"{REFUSED}@2.0.0", f"{CRASHED}(strict)@2.0.0"}
    finding = findings[f"{CRASHED}(strict)@2.0.0"]
    assert finding.options == "strict"
    assert finding.reproduce.endswith("--options strict --show")


def test_what_is_not_about_cells_is_named_and_shown_as_well(world: World) -> None:
    world.ask("recipes-written")
    world.recipe("div")
    finding = only(world.judge())
    assert (finding.id, finding.smallest) == ("recipes-written:not-produced:div", "torch-1.0.0/div")
    assert (finding.reproduce, finding.readers, finding.options) == ("torch-compat judge", (), "")


def test_findings_come_in_the_order_of_their_gravity(world: World) -> None:
    world.ask("newer-loads", "newer-computes", "waivers-exact")
    fixture = world.fixture(family="torch-save")
    world.observe(fixture, "2.0.0", "refused", STRICT)
    world.observe(fixture, "2.0.0", "refused")
    world.observe(world.fixture(recipe="div"), "2.0.0", "different")
    world.promise(waivers=(waiver(covers("refused")),))
    assert [finding.verdict for finding in world.judge().findings] == ["fail", "waived", "expected"]


NEARLY_ALIKE = st.text(alphabet="aA_- .9", max_size=5)


@settings(deadline=None)
@given(st.text(max_size=70) | NEARLY_ALIKE, st.text(max_size=70) | NEARLY_ALIKE)
def test_a_slug_is_short_plain_and_of_one_text_alone(one: str, other: str) -> None:
    for text in (one, other):
        assert re.fullmatch(r"[a-z0-9_./:+-]{1,60}", slug(text))
    assert (slug(one) == slug(other)) is (one == other)


@pytest.mark.parametrize("name", ["integer_arithmetic", "integer-arithmetic", "torch-1.5.1/div"])
def test_a_name_is_its_ownslug(name: str) -> None:
    assert slug(name) == name


# ------------------------------------------------------------------------------------------------------- version bumps


@pytest.mark.parametrize(
    ("operators", "announced"),
    [(["aten::div.Tensor"], "file format 4"), (["aten::div"], "file format 4"), (["aten::mul"], ""), ([], "")],
)
def test_a_version_bump_announces_a_change_of_its_operators(operators: list[str], announced: str, world: World) -> None:
    world.ask("newer-computes")
    world.promise(formats=(file_format(4, operators=("aten::div",), read_from="1.1.0"),))
    world.observe(world.fixture(operators=operators, versions={"file-format": 3}), "2.0.0", "different")
    assert only(world.judge()).bump == announced


@pytest.mark.parametrize(("has", "reader", "announced"), [(3, "1.1.1", "file format 4"), (4, "1.1.1", ""), (3, "1.1.0", "")])
def test_a_version_bump_lies_between_the_archive_and_what_the_reader_knows(
    has: int, reader: str, announced: str, world: World
) -> None:
    world.ask("newer-computes")
    world.promise(formats=(file_format(4, operators=("aten::div",), read_from="1.1.1"),))
    world.observe(world.fixture(operators=["aten::div"], versions={"file-format": has}), reader, "different")
    assert only(world.judge()).bump == announced


def test_a_bump_that_announces_a_part_of_a_finding_announces_none(world: World) -> None:
    world.ask("newer-computes")
    world.promise(formats=(file_format(4, operators=("aten::div",), read_from="2.0.0"),))
    fixture = world.fixture(operators=["aten::div"], versions={"file-format": 3})
    for reader in ("1.1.0", "2.0.0"):
        world.observe(fixture, reader, "different")
    assert only(world.judge()).bump == ""


# --------------------------------------------------------------------------------------------------------------- waivers


@pytest.fixture
def refused(world: World) -> World:
    """Two readers refuse a fixture, and one of them another one."""
    world.ask("newer-loads", "waivers-exact")
    item, other = world.fixture(recipe="add"), world.fixture(recipe="div")
    for fixture, reader in ((item, "1.1.0"), (item, "2.0.0"), (other, "1.1.0")):
        world.observe(fixture, reader, "refused")
    return world


CAUSE = f"{REFUSED}@1.1.0"
BOTH = covers("refused", "add div", readers="1.1.0..")


def test_a_waiver_that_is_exact(refused: World) -> None:
    refused.promise(waivers=(waiver(BOTH),))
    for _ in range(2):  # whatever it is for; then what the lock says
        report = refused.judge()
        assert report.exit_status == 0
        finding = only(report, "waived")
        assert (finding.id, finding.count, finding.waiver, finding.title) == (CAUSE, 3, "known", "It is known")
        assert report.counts[Verdict.WAIVED] == 3
        assert report.counts[Verdict.FAIL] == 0
        refused.accept()


TOO_WIDE, UNUSED = "waivers-exact:too-wide:known", "waivers-exact:unused:known"


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"readers": "1.0.0.."}, {TOO_WIDE}),
        ({"readers": ".."}, set()),  # an end that is open names nobody
        ({"readers": "1.1.0"}, {CAUSE}),
        ({"readers": "1.1.0..1.1.1"}, {CAUSE}),  # 1.1.1 was not asked: another rule says so
        ({"readers": "1.1.1"}, {CAUSE, UNUSED}),
        ({"recipes": "add"}, {CAUSE}),
        ({"recipes": "add div mul"}, {TOO_WIDE}),
        ({"recipes": "mul"}, {CAUSE, UNUSED}),
        ({"writers": "1.0.0.."}, set()),  # no later release wrote these
        ({"writers": "1.1.0"}, {CAUSE, UNUSED}),
        ({"outcome": "raised"}, {CAUSE, UNUSED}),
        ({"options": ("strict",)}, {CAUSE, UNUSED}),
        ({"families": ("torchscript",)}, set()),
        ({"families": ("mobile",)}, {CAUSE, UNUSED}),
        ({"says": "is too new"}, set()),
        ({"says": "is too old"}, {CAUSE, UNUSED}),
        ({"recipes": "", "says": "is too new"}, set()),
        ({"writers": None, "synthetic": True}, {CAUSE, UNUSED}),
    ],
)
def test_a_waiver_that_is_not(part: dict[str, Any], expected: set[str], refused: World) -> None:
    facts: dict[str, Any] = {"outcome": "refused", "recipes": "add div", "readers": "1.1.0..", **part}
    refused.promise(
        waivers=(waiver(covers(**facts)),),
        corpus=CorpusScope(writers=("1.0.0", "1.1.0"), readers=("1.0.0", "1.1.0", "1.1.1", "2.0.0")),
    )
    for fixture in refused.fixtures:
        refused.observe(fixture, "1.0.0")
    report = refused.judge()
    assert report.exit_status == bool(expected)
    assert set(found(report)) == expected


def test_one_waiver_covers_all_that_one_cause_in_reality_shows_as(refused: World) -> None:
    refused.observe(refused.fixture(recipe="mul"), "2.0.0", "crashed")
    refused.promise(waivers=(waiver(BOTH, covers("crashed", "mul")),))
    report = refused.judge()
    assert report.exit_status == 0
    assert [(finding.waiver, finding.count) for finding in report.findings] == [("known", 1), ("known", 3)]


def test_waivers_that_cover_the_same_cell_both_fail(refused: World) -> None:
    refused.promise(waivers=(waiver(BOTH, name="one"), waiver(covers("refused"), name="two")))
    report = refused.judge()
    assert report.exit_status == 1
    assert set(found(report)) == {"waivers-exact:overlapping:one", "waivers-exact:overlapping:two"}


@pytest.mark.parametrize(("day", "status"), [(dt.date(2026, 5, 1), 1), (dt.date(2026, 4, 30), 0)])
def test_a_waiver_holds_until_the_day_before_it_expires(day: dt.date, status: int, refused: World) -> None:
    refused.promise(waivers=(waiver(BOTH, expires=dt.date(2026, 5, 1)),))
    refused.as_of = dt.date(2026, 1, 1)
    refused.accept()
    refused.as_of = day
    report = refused.judge()
    assert report.exit_status == status
    assert set(found(report)) == ({CAUSE, "waivers-exact:expired:known"} if status else set())


def test_what_is_measured_is_what_waivers_cover_whatever_is_stated(refused: World) -> None:
    refused.promise(
        waivers=(
            waiver(covers("refused", "add div", readers="1.1.0"), name="one"), waiver(covers("refused"), name="two"),
            waiver(covers("refused", "mul"), name="idle"), waiver(covers("refused"), name="over", expires=dt.date(2020, 1, 1)),
        ),
    )  # fmt: skip
    measured = measure(refused.evidence())
    assert measured.counts == {}
    assert {name: covered.count for name, covered in measured.waiving.covered.items()} == {"one": 2, "two": 1}
    assert measured.expired == {("waiver", "over")}
    assert measured.not_checked == ()


def test_what_could_not_be_checked_is_said_of_what_is_measured(refused: World) -> None:
    refused.unreadable["reports/observations/x.jsonl"] = "cut off"
    (message,) = measure(refused.evidence()).not_checked
    assert message == "pairs-observed: recorded observations cannot be read, but the policy has no rule that judges this"


def test_two_waivers_may_share_a_cause_for_different_readers(refused: World) -> None:
    refused.promise(
        waivers=(waiver(covers("refused", "add div", readers="1.1.0"), name="one"), waiver(covers("refused"), name="two")),
        corpus=CorpusScope(writers=("1.0.0",), readers=("1.1.0", "2.0.0")),
    )
    report = refused.judge()
    assert report.exit_status == 0
    assert [(finding.waiver, finding.count) for finding in report.findings] == [("one", 2), ("two", 1)]


def test_an_expected_refusal_uses_up_no_waiver(world: World) -> None:
    world.ask("newer-loads", "waivers-exact")
    world.observe(world.fixture(family="torch-save"), "2.0.0", "refused", STRICT)
    world.promise(waivers=(waiver(covers("refused", options=("strict",))),))
    assert set(found(world.judge())) == {UNUSED}


def test_waivers_that_nobody_counts_are_not_checked(refused: World) -> None:
    refused.ask("newer-loads")
    refused.promise(waivers=(waiver(BOTH),))
    report = refused.judge()
    assert report.exit_status == 4
    assert [what for what, _, _ in report.not_checked] == ["waivers-exact"]


# ------------------------------------------------------------------------------------------ rules, counts and exit status


def test_a_rule_that_selects_nothing_is_not_a_pass(world: World) -> None:
    world.ask("newer-loads", "newer-computes")
    world.observe(world.fixture("2.0.0"), "1.0.0")
    report = world.judge()
    assert report.exit_status == 4
    assert report.not_checked == (
        ("newer-loads", "the rule selects nothing", 1),
        ("newer-computes", "the rule selects nothing", 1),
    )
    assert report.counts[Verdict.NOT_CHECKED] == 2


def test_a_rule_may_be_expected_to_select_nothing_and_that_is_noted(world: World) -> None:
    world.promise(rules=(rule("reads-back"), rule("newer-loads", expect_empty="no newer reader")))
    world.observe(world.fixture("2.0.0"), "2.0.0")
    report = world.judge()
    assert report.exit_status == 0
    assert report.notes == ("newer-loads selects nothing, as expected: no newer reader",)
    world.observe(world.fixture("1.0.0"), "2.0.0")
    assert world.judge().notes == ("newer-loads selects 1 item, although the policy expects none: remove expect_empty",)


def test_a_policy_that_expects_nothing_at_all_checks_nothing(world: World) -> None:
    world.promise(rules=(rule("newer-loads", expect_empty="so"),))
    assert world.judge().exit_status == 4


@pytest.mark.parametrize("name", ["newer-load", "nothing", "judge", "evidence"])
def test_a_rule_that_does_not_exist(name: str, world: World) -> None:
    world.promise(rules=(rule(name),))
    with pytest.raises(UsageError, match=f"the policy names the rule '{name}', which does not exist"):
        world.judge()


def test_an_unfinished_rule_is_named_with_its_file_and_line(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType(
        "torch_compat.rules.half_done", "It holds.\n\nWhat: <replace this: what is checked>\n\nWhy: <replace this: why>\n"
    )
    monkeypatch.setitem(sys.modules, module.__name__, module)
    world.promise(rules=(rule("half-done"),))
    with pytest.raises(UsageError) as refused:
        world.judge()
    assert str(refused.value) == (
        "harness/torch_compat/rules/half_done.py:3: the rule 'half-done' is unfinished: its docstring has 2 placeholders "
        "(replace <replace this: ...>)"
    )


def test_a_parameter_that_no_rule_looks_at(world: World) -> None:
    world.promise(rules=(rule("newer-loads", parameters={"lenient": True}),))
    with pytest.raises(UsageError, match="the policy sets the parameter 'lenient' of the rule 'newer-loads'"):
        world.judge()


@pytest.mark.parametrize(
    ("outcomes", "status"),
    [(("same",), 0), (("same", "relaxed"), 0), (("same", "refused"), 1), (("same", "missing"), 4), (("refused", "missing"), 1), (("missing",), 4)],
)  # fmt: skip
def test_exit_status(outcomes: tuple[str, ...], status: int, world: World) -> None:
    """A broken promise outweighs what could not be checked, and that outweighs what holds."""
    world.promise(corpus=world.policy.corpus.model_copy(update={"readers": ("2.0.0",)}))
    world.ask("pairs-observed", "newer-loads")
    for index, outcome in enumerate(outcomes):
        fixture = world.fixture(recipe=f"r{index}")
        if outcome != "missing":
            world.observe(fixture, "2.0.0", outcome)
    assert world.judge().exit_status == status


def test_every_verdict_is_counted_and_alike_reasons_are_one_line(world: World) -> None:
    world.ask("pairs-observed")
    for name in ("add", "div"):
        world.observe(world.fixture(recipe=name), "1.0.0")
    report = world.judge()
    assert list(report.counts) == list(Verdict)
    assert report.counts[Verdict.PASS] == 2
    why = 'torch-2.0.0: no observations by this reader; run nox -s "observe(torch-2.0.0)" -- --record'
    assert report.not_checked == (("pairs-observed", why, 2),)


def test_the_matrix_counts_every_cell(world: World) -> None:
    world.ask("newer-loads")
    fixture = world.fixture(family="torch-save")
    world.observe(fixture, "2.0.0", "same")
    world.observe(world.fixture(recipe="div", family="torch-save"), "2.0.0", "same")
    world.observe(fixture, "2.0.0", "refused", STRICT)
    assert world.judge().outcomes == {
        ("torch-1.0.0", "torch-2.0.0", "torch-save", "default"): {"same": 2},
        ("torch-1.0.0", "torch-2.0.0", "torch-save", "strict"): {"refused": 1},
    }


def test_the_order_in_which_evidence_is_given_changes_nothing(world: World) -> None:
    def cells(fixtures: list[Fixture]) -> None:
        for fixture in fixtures:
            for reader in ("2.0.0", "1.1.0"):
                world.observe(fixture, reader, "refused" if fixture.recipe == "add" else "different")

    world.ask("newer-loads", "newer-computes", "pairs-observed")
    fixtures = [world.fixture(recipe=name) for name in ("add", "div", "mul")]
    cells(fixtures)
    report = world.judge()
    world.recorded.clear()
    world.fixtures.reverse()
    cells(fixtures[::-1])
    assert world.judge() == report


# ------------------------------------------------------------------------------------------------------ the real evidence


@pytest.fixture(scope="module")
def real(small_tree: Path) -> tuple[Report, set[str], list[str]]:
    """The report of real evidence, its cells, and what the rules about cells say."""
    root = Root(small_tree)
    evidence = gather(root, root.policy(), as_of=None)
    subjects: list[str] = []
    for entry in evidence.policy.rules:
        if entry.id in CELL_RULES:
            module = __import__(f"torch_compat.rules.{entry.id.replace('-', '_')}", fromlist=["judge"])
            for judgement in module.judge(evidence, entry):
                if judgement.cells is not None:
                    subjects += map(judgement.cells.read_by, evidence.readers.of(judgement.cells.readers))
    return judge_evidence(evidence), set(observed(evidence)), subjects


def test_every_real_cell_has_a_judgement(real: tuple[Report, set[str], list[str]]) -> None:
    report, cells, subjects = real
    assert cells
    assert set(subjects) == cells
    assert sum(sum(counts.values()) for counts in report.outcomes.values()) == len(cells)


def test_every_real_cell_that_was_loaded_is_asked_for_its_values_once(small_tree: Path) -> None:
    place = Root(small_tree)
    evidence = gather(place, place.policy(), as_of=None)
    report = judge_evidence(evidence)
    asked = Counter[str]()
    for cells in evidence.cells:
        if cells.loaded and cells.options.id == "default":
            asked[cells.direction.removesuffix("-in-window")] += cells.count
    assert {direction: sum(counts.values()) for direction, counts in report.questions.items() if any(counts.values())} == asked
    assert sum((Counter(counts) for counts in report.asked.values()), Counter()) == Counter(report.counts)


def test_what_was_waived_is_a_question_that_was_asked(world: World) -> None:
    fixture = world.fixture()
    world.observe(fixture, "2.0.0", "different")
    world.promise(waivers=(waiver(covers("different")),))
    world.ask("newer-loads", "newer-computes", "waivers-exact")
    report = world.judge()
    assert {verdict: count for verdict, count in report.questions["backward"].items() if count} == {Verdict.WAIVED: 1}
    assert {asks: sum(counts.values()) for asks, counts in report.asked.items()} == {
        Asks.VALUES: 1, Asks.LOADING: 1, Asks.OTHER: 0, Asks.BOOKKEEPING: 1,
    }  # fmt: skip


def test_what_was_refused_or_read_with_other_options_was_not_asked_for_its_values(world: World) -> None:
    world.observe(world.fixture(), "2.0.0", "refused")
    world.observe(world.fixture(recipe="other", family="torch-save"), "2.0.0", "same", STRICT)
    world.ask("newer-loads", "newer-computes")
    assert not any(count for counts in world.judge().questions.values() for count in counts.values())


def test_real_findings_have_different_ids_and_name_themselves(real: tuple[Report, set[str], list[str]]) -> None:
    report, _, _ = real
    assert len({(finding.verdict, finding.id, finding.waiver) for finding in report.findings}) == len(report.findings)
    for finding in report.findings:
        assert finding.id.startswith(f"{finding.rule}:")
        assert finding.cause
        assert finding.count > 0
        assert (finding.verdict == Verdict.WAIVED) is bool(finding.waiver)
    for verdict in (Verdict.FAIL, Verdict.WAIVED, Verdict.EXPECTED):
        assert sum(finding.count for finding in report.findings if finding.verdict is verdict) == report.counts[verdict]


def test_damage_that_no_rule_is_asked_about_is_not_a_pass(world: World) -> None:
    world.observe(world.fixture(), "2.0.0")
    world.ask("newer-loads")
    assert world.judge().exit_status == 0
    world.damage.append(CorpusDamage("wrong-hash", "torch-1.0.0/add.pt", "has other bytes"))
    world.unreadable["reports/observations/torch-1.0.0.jsonl"] = "is not JSON"
    world.unavailable["torch-1.1.0"] = "is not built here"
    report = world.judge()
    assert report.exit_status == 4
    assert [what for what, _, _ in report.not_checked] == ["fixtures-frozen", "pairs-observed", "pairs-observed"]


def test_a_reader_that_ran_and_wordings_that_no_rule_judges_are_not_a_pass(world: World) -> None:
    fixture = world.fixture()
    world.observe(fixture, "2.0.0")
    world.model(fixture)
    world.promise(messages=(wording(("no", "1.0.0.."), ("not so", "..1.0.0")),))
    world.ask("newer-loads")
    report = world.judge()
    assert report.exit_status == 4
    assert [(what, count) for what, _, count in report.not_checked] == [("reference-agrees", 1), ("wordings-exact", 1)]


def test_a_reader_that_was_recorded_and_ran_again_is_one_source_of_today(world: World) -> None:
    fixture = world.fixture()
    for version in ("1.1.0", "2.0.0"):
        world.observe(fixture, version)
    world.observe(fixture, "2.0.0", fresh=True)
    world.ask("newer-loads")
    assert [(source.reader, source.now) for source in world.judge().sources] == [("torch-1.1.0", False), ("torch-2.0.0", True)]
