from __future__ import annotations

import importlib
import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.miniatures import miniature
from tests.recordings import change_cells, change_reader
from tests.surveyed import SCHEMAS, small_survey
from torch_compat.corpus.surveys import read_survey
from torch_compat.errors import ReaderError
from torch_compat.readers.torch_release import TorchRelease

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.miniatures.tree import Tree

READER = ("observe", "--reader", "torch-1.6.0")
ADD = ("--fixture", "torch-1.5.1/add")
NUDGE = "value = Tensor([i * (1 + 2 ** -23) for i in value.items]) if isinstance(value, Tensor) else value"


@pytest.fixture
def surveyed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Miniatures have no operators to be asked for."""
    monkeypatch.setattr(importlib.import_module("torch_compat.replay.recording"), "survey", lambda *_: small_survey())


def test_what_is_as_recorded_ends_with_0_and_is_told_on_stdout(command: Callable[..., Any], tree: Tree) -> None:
    before = tree.everything()
    ended = command(*READER)
    assert ended.status == 0
    assert ended.out == "torch-1.6.0: 7 same\n7 as recorded\n"
    assert ended.err == "torch-1.6.0: 7 cells observed, 0 reused from the last run\n"
    assert tree.everything() == before


def test_the_next_run_knows_what_the_last_one_observed_unless_told(command: Callable[..., Any]) -> None:
    command(*READER)
    assert "0 cells observed, 7 reused from the last run" in command(*READER).err
    assert "7 cells observed, 0 reused from the last run" in command(*READER, "--again").err


def test_json_has_a_row_for_each_cell(command: Callable[..., Any]) -> None:
    message = command(*READER, *ADD, "--format", "json").json
    assert (message["schema_version"], message["reader"], message["identity"]["torch"]) == (1, "torch-1.6.0", "1.6.0")
    assert message["cells"] == [
        {
            "fixture": "torch-1.5.1/add",
            "options": "default",
            "outcome": "same",
            "recorded": "same",
            "reproduced": True,
            "remark": "",
            "signal": None,
            "stage": None,
            "errors": [],
            "differences": [],
            "difference_count": 0,
        }
    ]


def test_one_set_of_load_options(command: Callable[..., Any]) -> None:
    ended = command(*READER, "--options", "weights-only", "--format", "json")
    assert ended.status == 0
    assert [row["fixture"] for row in ended.json["cells"]] == ["torch-1.5.1/state", "torch-1.6.0/state"]


@pytest.mark.parametrize(
    ("hook", "outcome"),
    [
        ({"at_call": "value = value + 1 if isinstance(value, int) else value"}, "different"),
        ({"at_load": "raise RuntimeError('no longer')"}, "refused"),
        ({"at_call": "raise RuntimeError('no longer')"}, "raised"),
        ({"at_load": "os.kill(os.getpid(), signal.SIGSEGV)"}, "crashed"),
        ({"at_call": "value = os.getppid()"}, "unstable"),
    ],
)
def test_what_contradicts_the_recorded_one_ends_with_1_and_is_shown(
    command: Callable[..., Any], tree: Tree, hook: dict[str, str], outcome: str
) -> None:
    before = tree.everything()
    miniature(tree.cache, "1.6.0", **hook)
    ended = command(*READER, *ADD)
    assert ended.status == 1
    assert f"torch-1.5.1/add read by torch-1.6.0: {outcome}" in ended.out
    assert f"add: {outcome} now, same when recorded" in ended.out
    assert "0 as recorded, 1 different from the record" in ended.out
    assert tree.everything() == before


def test_bits_of_floats_within_the_tolerance_are_reported_and_do_not_fail(command: Callable[..., Any], tree: Tree) -> None:
    miniature(tree.cache, "1.6.0", at_call=NUDGE)
    ended = command(*READER, *ADD)
    assert ended.status == 0
    assert ended.out == ("torch-1.6.0: 1 close\n1 as recorded (1 with a note; see --show)\n")
    (row,) = command(*READER, *ADD, "--format", "json").json["cells"]
    assert (row["outcome"], row["recorded"], row["reproduced"]) == ("close", "same", True)
    assert row["remark"] == "add: close now, same when recorded: within the tolerance"


def test_show_prints_the_first_differences(command: Callable[..., Any], tree: Tree) -> None:
    assert command(*READER, *ADD, "--show").out.startswith("torch-1.5.1/add read by torch-1.6.0: same\n")
    miniature(tree.cache, "1.6.0", at_call=NUDGE)
    out = command(*READER, *ADD, "--show").out
    assert "calls[3].first.value: value (float32)" in out
    assert "max_ulp 2" in out
    assert "torch 1.5.1 wrote 0.1" in out
    assert "; torch 1.6.0 computes 0.1" in out


def test_a_crash_is_shown_with_its_signal_and_its_stage(command: Callable[..., Any], tree: Tree) -> None:
    miniature(tree.cache, "1.6.0", at_call="os.kill(os.getpid(), signal.SIGSEGV)")
    out = command(*READER, *ADD, "--show").out
    assert "torch-1.5.1/add read by torch-1.6.0: crashed, SIGSEGV while running" in out


def test_no_message_of_torch_breaks_the_output(command: Callable[..., Any], tree: Tree) -> None:
    message = "'[bold]odd[/bold] ' + chr(0xDCFF) + chr(0x4E2D) + '\\x1b[31m red \\n\\n second line'"
    miniature(tree.cache, "1.6.0", at_load=f"raise ValueError({message})")
    ended = command(*READER, *ADD, "--show")
    assert ended.status == 1
    assert "builtins.ValueError: [bold]odd[/bold] ?中 red" in ended.out
    assert "second line" in ended.out
    assert "\x1b" not in ended.out
    assert json.loads(command(*READER, *ADD, "--format", "json").out)


# ------------------------------------------------------------------------------------- what is recorded, and samples of it


def test_what_is_recorded_is_shown_without_any_release(command: Callable[..., Any], tree: Tree) -> None:
    """The same lines as observing gives, but for who says them; nothing runs, nothing is written."""
    miniature(tree.cache, "1.6.0", at_load="raise ValueError('must not be asked')")
    before = tree.everything()
    ended = command(*READER, *ADD, "--show", "--recorded")
    assert ended.status == 0
    assert ended.out == "torch-1.5.1/add read by torch-1.6.0: same\ntorch-1.6.0: 1 same\n1 as recorded\n"
    assert ended.err == ""
    assert command(*READER, *ADD, "--recorded").out == ended.out
    assert tree.everything() == before
    message = command(*READER, *ADD, "--recorded", "--format", "json").json
    assert [(row["fixture"], row["outcome"], row["reproduced"]) for row in message["cells"]] == [
        ("torch-1.5.1/add", "same", True)
    ]


def test_a_recorded_difference_names_both_releases(command: Callable[..., Any], tree: Tree) -> None:
    miniature(tree.cache, "1.6.0", at_call="value = value + 1 if isinstance(value, int) else value")
    command(*READER, *ADD, "--record")
    out = command(*READER, *ADD, "--recorded").out
    assert "torch-1.5.1/add read by torch-1.6.0: different" in out
    assert re.search(r"value: torch 1\.5\.1 wrote \d+; torch 1\.6\.0 computes \d+", out)


def test_what_is_not_recorded_cannot_be_shown(command: Callable[..., Any], tree: Tree) -> None:
    tree.recording("1.6.0").unlink()
    ended = command(*READER, "--recorded")
    assert ended.status == 4
    assert "there is no up-to-date recorded observation by torch-1.6.0" in ended.err


def test_several_readers_one_after_the_other(command: Callable[..., Any]) -> None:
    ended = command("observe", "--reader", "torch-1.5.1", "--reader", "torch-1.6.0", "--fixture", "torch-1.5.1/add", "--recorded")
    assert ended.status == 0
    assert [line for line in ended.out.splitlines() if line.startswith("torch-1.5.1:")] == ["torch-1.5.1: 1 same"]
    assert "torch-1.6.0: 1 same" in ended.out


def test_the_next_reader_starts_while_one_is_asked(command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    class Told(TorchRelease):
        def start(self) -> None:
            told.append(f"start {self.environment.version}")
            super().start()

        def request(self, do: str, *, timeout_s: float = 60, **arguments: Any) -> dict[str, Any]:
            told.append(f"ask {self.environment.version}")
            return super().request(do, timeout_s=timeout_s, **arguments)

    monkeypatch.setattr("torch_compat.replay.observe.TorchRelease", Told)
    readers = ("--reader", "torch-1.5.1", "--reader", "torch-1.6.0")
    assert command("observe", *readers, "--fixture", "torch-1.5.1/add", "--again").status == 0
    assert told.index("start 1.6.0") < told.index("ask 1.5.1") < told.index("ask 1.6.0")


def test_a_reader_that_is_not_built_does_not_stop_the_one_before(command: Callable[..., Any]) -> None:
    readers = ("--reader", "torch-1.6.0", "--reader", "torch-2.13.0")
    ended = command("observe", *readers, "--fixture", "torch-1.5.1/add", "--again")
    assert ended.status == 4
    assert "torch-1.6.0: 1 same" in ended.out
    assert "torch-2.13.0 is not built here" in ended.err


def test_a_sample_is_always_that_of_its_seed(command: Callable[..., Any], tree: Tree) -> None:
    def drawn(*more: str) -> list[tuple[str, str]]:
        ended = command(*READER, "--sample", "40%", "--format", "json", *more)
        assert ended.status == 0
        return [(row["fixture"], row["options"]) for row in ended.json["cells"]]

    assert "torch-1.6.0: a sample of 3 of 7 cells, with seed 0" in command(*READER, "--sample", "40%").err
    assert len(drawn()) == 3
    assert drawn() == drawn("--seed", "0")
    assert len({tuple(drawn("--seed", str(seed))) for seed in range(8)}) > 1
    assert len(command(*READER, "--sample", "100%", "--format", "json").json["cells"]) == 7


@pytest.mark.parametrize("share", ["10", "0%", "101%", "-1%", "x%", "nan%"])
def test_what_is_no_share(command: Callable[..., Any], share: str) -> None:
    ended = command(*READER, "--sample", share)
    assert ended.status == 2
    assert "must be a percentage greater than 0% and at most 100%" in ended.err


@pytest.mark.parametrize(
    "flags",
    [
        ("--recorded", "--record"),
        ("--recorded", "--again"),
        ("--recorded", "--sample", "10%"),
        ("--sample", "10%", "--record"),
        ("--reader", "torch-1.5.1", "--format", "json"),
    ],
)
def test_flags_that_do_not_go_together(command: Callable[..., Any], flags: tuple[str, ...]) -> None:
    ended = command(*READER, *flags)
    assert ended.status == 2
    assert ended.out == ""


# ------------------------------------------------------------------------------------------- what cannot be compared


def test_nothing_recorded_to_compare_with_ends_with_4(command: Callable[..., Any], tree: Tree) -> None:
    tree.recording("1.6.0").unlink()
    ended = command(*READER)
    assert ended.status == 4
    assert "0 as recorded, 7 not recorded" in ended.out


def test_a_contradiction_outweighs_what_is_not_recorded(command: Callable[..., Any], tree: Tree) -> None:
    without(tree, "torch-1.5.1/state")
    miniature(tree.cache, "1.6.0", at_load="raise ValueError")
    assert command(*READER).status == 1


def without(tree: Tree, fixture: str) -> None:
    """Remove a fixture's cells from the recorded ones."""

    def remove(cells: dict[tuple[str, str], Any]) -> None:
        for cell in [cell for cell in cells if cell[0] == fixture]:
            del cells[cell]

    change_cells(tree.root, "torch-1.6.0", remove)


def test_a_recorded_cell_of_another_archive_is_not_compared_with(command: Callable[..., Any], tree: Tree) -> None:
    """An observation whose key is not that of the fixture as it is now was about something else."""
    stale = {cell: replace(item, key="0" * 20 + "-000000") for cell, item in tree.recorded("1.6.0").cells.items()}
    change_reader(tree.root, "torch-1.6.0", cells=stale)
    ended = command(*READER, "--format", "json")
    assert ended.status == 4
    assert {row["recorded"] for row in ended.json["cells"]} == {None}


def test_a_reader_that_is_not_built_ends_with_4_and_is_named(command: Callable[..., Any], tree: Tree) -> None:
    ended = command("observe", "--reader", "torch-2.13.0")
    assert (ended.status, ended.out) == (4, "")
    assert "torch-2.13.0 is not built here" in ended.err
    assert "torch-compat readers build torch-2.13.0" in ended.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--reader", "torch-1.7"), "1.7"),
        (("--reader", "torch-1.6.0", "--fixture", "torch-1.5.1/ad"), "did you mean torch-1.5.1/add"),
        (("--reader", "torch-1.6.0", "--fixture", "torch-1.5.1/later"), "this release cannot write the recipe"),
        (("--reader", "torch-1.6.0", "--options", "mmap"), "the policy has no set of load options named 'mmap'"),
        ((), "Missing option '--reader'"),
    ],
)
def test_wrong_usage_ends_with_2(command: Callable[..., Any], arguments: tuple[str, ...], words: str) -> None:
    ended = command("observe", *arguments)
    assert (ended.status, ended.out) == (2, "")
    assert words in ended.err


def test_nothing_selected_ends_with_4(command: Callable[..., Any]) -> None:
    ended = command(*READER, *ADD, "--options", "weights-only")
    assert (ended.status, ended.out) == (4, "")
    assert "torch-1.6.0 has nothing to observe in this selection" in ended.err


@pytest.mark.parametrize(
    ("hooks", "words"),
    [
        ({"says": "1.5.1"}, "expected torch 1.6.0, got 1.5.1"),
        ({"says": "1.6.0+cu101"}, "expected torch 1.6.0, which was installed, got 1.6.0+cu101"),
        ({"at_import": "raise ImportError('no libstdc++')"}, "ImportError: no libstdc++"),
        ({"at_import": "os._exit(0)"}, "died"),
        ({"at_import": "os.write(int(sys.argv[1]), b'{')\nos._exit(1)"}, "died"),
        ({"at_import": "os.write(int(sys.argv[1]), b'hello\\n')"}, "sent a reply that is not JSON"),
    ],
)
@pytest.mark.parametrize("record", [False, True])
def test_a_reader_that_cannot_be_trusted_ends_with_3_and_changes_nothing(
    command: Callable[..., Any], tree: Tree, hooks: dict[str, str], words: str, record: bool
) -> None:
    before = tree.everything()
    miniature(tree.cache, "1.6.0", **hooks)
    ended = command(*READER, *(["--record"] if record else []))
    assert (ended.status, ended.out) == (3, "")
    assert words in ended.err
    assert "Traceback" not in ended.err
    assert tree.everything() == before
    assert not list((tree.root / "reports" / "latest").rglob("*.txt"))


@pytest.mark.parametrize("damage", ["changed", "cut", "gone"])
@pytest.mark.parametrize("record", [False, True])
def test_an_archive_that_is_not_what_it_was_is_not_observed(
    command: Callable[..., Any], tree: Tree, damage: str, record: bool
) -> None:
    """What a reader does with it says nothing about the archive that its manifest entry stands for."""
    path = tree.root / "fixtures" / "torch-1.5.1" / "add.pt"
    data = path.read_bytes()
    path.unlink()
    if damage != "gone":
        path.write_bytes(data[:-1] + b"x" if damage == "changed" else data[:-1])
    before = tree.everything()
    ended = command(*READER, *ADD, *(["--record"] if record else []))
    assert (ended.status, ended.out) == (2, "")
    assert "fixtures/torch-1.5.1/add.pt" in ended.err
    assert tree.everything() == before
    other = command(*READER, "--fixture", "torch-1.6.0/add")
    assert other.status == 0


def test_nothing_is_recorded_of_a_corpus_that_is_not_whole(command: Callable[..., Any], tree: Tree, surveyed: None) -> None:
    (tree.root / "fixtures" / "torch-1.5.1" / "manifest.jsonl").write_text("{", encoding="ascii")
    before = tree.everything()
    ended = command(*READER, "--record")
    assert ended.status == 2
    assert "manifest.jsonl" in ended.err
    assert tree.everything() == before


# ------------------------------------------------------------------------------------------------------------ recording


def test_a_probe_that_answers_otherwise_than_recorded_is_shown(command: Callable[..., Any], tree: Tree) -> None:
    probe = tree.recorded("1.6.0").probes["one"]
    other = replace(probe, checks=tuple((name, not holds, note) for name, holds, note in probe.checks))
    change_reader(tree.root, "torch-1.6.0", probes={"one": other})
    ended = command(*READER)
    assert ended.status == 1
    assert "probe one differs from the record" in ended.out
    assert command(*READER, "--format", "json").json["probes"] == [{"probe": "one", "reproduced": False}]


def test_recording_anew_what_is_recorded_gives_the_same_file(command: Callable[..., Any], tree: Tree, surveyed: None) -> None:
    before = tree.recording("1.6.0").read_bytes()
    ended = command(*READER, "--record")
    assert ended.status == 0
    assert "no file changed: 7 cells already recorded" in ended.err
    assert tree.recording("1.6.0").read_bytes() == before
    assert not (tree.root / "fixtures" / "operators").exists()


def test_what_the_release_says_of_its_operators_is_recorded_when_asked_for(
    command: Callable[..., Any], tree: Tree, surveyed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tree.recording("1.6.0").read_bytes()
    ended = command(*READER, "--record", "--survey")
    assert ended.status == 0
    assert "recorded the survey of 1.6.0 in fixtures/globals and fixtures/operators" in ended.err
    recorded = read_survey(tree.root / "fixtures", "1.6.0")
    assert recorded.sections["schemas"].entries == SCHEMAS
    assert f"torch-{recorded.identity['torch']}" == tree.recorded("1.6.0").name
    assert tree.recording("1.6.0").read_bytes() == before
    assert "survey" not in command(*READER, "--record", "--survey").err  # the same again is nothing new
    changed = small_survey()
    changed["schemas"]["entries"] = SCHEMAS[1:]
    monkeypatch.setattr(importlib.import_module("torch_compat.replay.recording"), "survey", lambda *_: changed)
    ended = command(*READER, "--record", "--survey")
    assert f"survey of 1.6.0: schemas: 1 gone, first '{SCHEMAS[0]}'" in ended.err
    assert read_survey(tree.root / "fixtures", "1.6.0").sections["schemas"].entries == SCHEMAS[1:]


def test_recording_accepts_what_comes_out(command: Callable[..., Any], tree: Tree, surveyed: None) -> None:
    miniature(tree.cache, "1.6.0", at_load="raise RuntimeError('no longer')")
    assert command(*READER, "--record").status == 0
    recorded = tree.recorded("1.6.0")
    assert {cell.result for cell in recorded.cells.values()} == {"refused"}
    assert set(recorded.probes) == {"one"}


def test_recording_a_part_keeps_the_rest(command: Callable[..., Any], tree: Tree) -> None:
    before = tree.recorded("1.6.0")
    miniature(tree.cache, "1.6.0", at_load="raise RuntimeError('no longer')")
    ended = command(*READER, *ADD, "--record")
    assert ended.status == 0
    after = tree.recorded("1.6.0")
    changed = {cell for cell in before.cells if before.cells[cell] != after.cells[cell]}
    assert changed == {("torch-1.5.1/add", "default")}
    assert (after.cells.keys(), after.probes) == (before.cells.keys(), before.probes)
    assert not (tree.root / "fixtures" / "operators").exists()


def test_a_part_is_recorded_only_beside_what_the_very_same_reader_did(command: Callable[..., Any], tree: Tree) -> None:
    miniature(tree.cache, "1.6.0", at_import="version.git_version = '1' * 40")
    before = tree.everything()
    ended = command(*READER, *ADD, "--record")
    assert ended.status == 2
    assert "you cannot replace only some of them" in ended.err
    tree.recording("1.6.0").unlink()
    assert command(*READER, *ADD, "--record").status == 2
    assert tree.everything() == {name: data for name, data in before.items() if name != "reports/observations/torch-1.6.0.txt"}


def test_an_error_midway_loses_nothing(command: Callable[..., Any], tree: Tree) -> None:
    """The worker dies at the last of the cells."""
    hook = "if value.__class__ is Program and not value.state: os.kill(os.getppid(), signal.SIGKILL)"
    miniature(tree.cache, "1.6.0", at_load=hook)
    before = tree.everything()
    ended = command(*READER, "--record")
    assert ended.status == 3
    assert "the worker of torch 1.6.0 died" in ended.err
    assert tree.everything() == before


def test_a_survey_that_fails_is_said(command: Callable[..., Any], tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ReaderError("survey of torch failed: crashed", code="survey")

    monkeypatch.setattr(importlib.import_module("torch_compat.replay.recording"), "survey", fail)
    ended = command(*READER, "--record", "--survey")
    assert ended.status == 3
    assert "survey of torch failed: crashed" in ended.err
    assert not (tree.root / "fixtures" / "operators").exists()


@pytest.mark.parametrize("more", [("--record",), ("--missing",), ("--recorded",)])
def test_what_the_reference_reader_does_is_never_recorded(command: Callable[..., Any], more: tuple[str, ...]) -> None:
    ended = command("observe", "--reader", "reference", *more)
    assert (ended.status, ended.out) == (2, "")
    assert "never recorded" in ended.err


def test_the_reference_reader_has_no_other_horizon_here(command: Callable[..., Any]) -> None:
    ended = command("observe", "--reader", "reference@1.5.1")
    assert (ended.status, ended.out) == (2, "")
    assert "uses the semantics of the release that wrote each fixture" in ended.err


def test_the_reference_reader_reads_no_values(command: Callable[..., Any], tree: Tree) -> None:
    values = next(fixture.id for fixture in tree.corpus.fixtures.values() if fixture.family == "torch-save")
    ended = command("observe", "--reader", "reference", "--fixture", values)
    assert (ended.status, ended.out) == (4, "")
    assert "has nothing to observe" in ended.err
