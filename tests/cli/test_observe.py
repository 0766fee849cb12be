from __future__ import annotations

import importlib
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.corpus.observations import read_observations, write_observations
from harness.errors import ReaderError
from tests.miniatures import miniature

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.miniatures.tree import Tree

READER = ("observe", "--reader", "torch-1.6.0")
ADD = ("--fixture", "torch-1.5.1/add")
SURVEY = {"schemas": {"obtained": "Asked.", "complete": True, "why_incomplete": None, "entries": ["aten::add"]}}
NUDGE = "value = Tensor([i * (1 + 2 ** -23) for i in value.items]) if isinstance(value, Tensor) else value"


@pytest.fixture
def surveyed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Miniatures have no operators to be asked for."""
    monkeypatch.setattr(importlib.import_module("harness.cli.observe"), "survey", lambda _: SURVEY)


def test_what_is_as_recorded_ends_with_0_and_is_told_on_stdout(command: Callable[..., Any], tree: Tree) -> None:
    before = tree.everything()
    ended = command(*READER)
    assert ended.status == 0
    assert ended.out == "torch-1.6.0: 7 same\n7 as recorded\n"
    assert ended.err == "torch-1.6.0: 7 cells observed, 0 known from the last run\n"
    assert tree.everything() == before


def test_the_next_run_knows_what_the_last_one_observed_unless_told(command: Callable[..., Any]) -> None:
    command(*READER)
    assert "0 cells observed, 7 known from the last run" in command(*READER).err
    assert "7 cells observed, 0 known from the last run" in command(*READER, "--again").err


def test_json_has_a_row_for_each_cell(command: Callable[..., Any]) -> None:
    said = command(*READER, *ADD, "--format", "json").json
    assert (said["schema_version"], said["reader"], said["identity"]["torch"]) == (1, "torch-1.6.0", "1.6.0")
    assert said["cells"] == [
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
    said = command(*READER, "--options", "weights-only", "--format", "json")
    assert said.status == 0
    assert [row["fixture"] for row in said.json["cells"]] == ["torch-1.5.1/state", "torch-1.6.0/state"]


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
    assert "0 as recorded, 1 not as recorded" in ended.out
    assert tree.everything() == before


def test_bits_of_floats_within_the_tolerance_are_reported_and_do_not_fail(command: Callable[..., Any], tree: Tree) -> None:
    miniature(tree.cache, "1.6.0", at_call=NUDGE)
    ended = command(*READER, *ADD)
    assert ended.status == 0
    assert ended.out == ("torch-1.6.0: 1 close\n1 as recorded (1 of them with a remark; --show prints it)\n")
    (row,) = command(*READER, *ADD, "--format", "json").json["cells"]
    assert (row["outcome"], row["recorded"], row["reproduced"]) == ("close", "same", True)
    assert row["remark"] == "add: close now, same when recorded: within the tolerance"


def test_show_prints_the_first_differences(command: Callable[..., Any], tree: Tree) -> None:
    assert command(*READER, *ADD, "--show").out.startswith("torch-1.5.1/add read by torch-1.6.0: same\n")
    miniature(tree.cache, "1.6.0", at_call=NUDGE)
    out = command(*READER, *ADD, "--show").out
    assert "calls[3].first.value: value (float32)" in out
    assert "max_ulp 2" in out
    assert "expected 0.1" in out


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
    path = tree.recording("1.6.0")
    recorded = read_observations(path)
    write_observations(path, replace(recorded, cells={key: one for key, one in recorded.cells.items() if key[0] != fixture}))


def test_a_recorded_cell_of_another_archive_is_not_compared_with(command: Callable[..., Any], tree: Tree) -> None:
    """An observation whose key is not that of the fixture as it is now was about something else."""
    path = tree.recording("1.6.0")
    recorded = read_observations(path)
    stale = {key: replace(cell, key="0" * 20) for key, cell in recorded.cells.items()}
    write_observations(path, replace(recorded, cells=stale))
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
        (("--reader", "torch-1.6.0", "--fixture", "torch-1.5.1/later"), "that release cannot write it"),
        (("--reader", "torch-1.6.0", "--options", "mmap"), "the policy has no load options 'mmap'"),
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
    assert "torch-1.6.0 has no cell for what was asked" in ended.err


@pytest.mark.parametrize(
    ("hooks", "words"),
    [
        ({"says": "1.5.1"}, "torch 1.5.1 answered, expected 1.6.0"),
        ({"says": "1.6.0+cu101"}, "torch 1.6.0+cu101 answered, but 1.6.0 was installed"),
        ({"at_import": "raise ImportError('no libstdc++')"}, "ImportError: no libstdc++"),
        ({"at_import": "os._exit(0)"}, "died"),
        ({"at_import": "os.write(int(sys.argv[1]), b'{')\nos._exit(1)"}, "died"),
        ({"at_import": "os.write(int(sys.argv[1]), b'hello\\n')"}, "does not speak JSON"),
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
    assert not list((tree.root / "reports" / "latest").rglob("*.jsonl"))


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
    recorded = read_observations(tree.recording("1.6.0"))
    probe = recorded.probes["one"]
    other = replace(probe, checks=tuple((name, not holds, note) for name, holds, note in probe.checks))
    write_observations(tree.recording("1.6.0"), replace(recorded, probes={"one": other}))
    ended = command(*READER)
    assert ended.status == 1
    assert "probe one does not answer as recorded" in ended.out
    assert command(*READER, "--format", "json").json["probes"] == [{"probe": "one", "reproduced": False}]


def test_recording_anew_what_is_recorded_gives_the_same_file(command: Callable[..., Any], tree: Tree, surveyed: None) -> None:
    before = tree.recording("1.6.0").read_bytes()
    ended = command(*READER, "--record")
    assert ended.status == 0
    assert "recorded 7 cells in reports/observations/torch-1.6.0.jsonl" in ended.err
    assert tree.recording("1.6.0").read_bytes() == before
    assert (tree.root / "fixtures" / "operators" / "torch-1.6.0.json").is_file()


def test_recording_accepts_what_comes_out(command: Callable[..., Any], tree: Tree, surveyed: None) -> None:
    miniature(tree.cache, "1.6.0", at_load="raise RuntimeError('no longer')")
    assert command(*READER, "--record").status == 0
    recorded = read_observations(tree.recording("1.6.0"))
    assert {cell.result for cell in recorded.cells.values()} == {"refused"}
    assert set(recorded.probes) == {"one"}


def test_recording_a_part_keeps_the_rest(command: Callable[..., Any], tree: Tree) -> None:
    before = read_observations(tree.recording("1.6.0"))
    miniature(tree.cache, "1.6.0", at_load="raise RuntimeError('no longer')")
    ended = command(*READER, *ADD, "--record")
    assert ended.status == 0
    after = read_observations(tree.recording("1.6.0"))
    changed = {cell for cell in before.cells if before.cells[cell] != after.cells[cell]}
    assert changed == {("torch-1.5.1/add", "default")}
    assert (after.cells.keys(), after.probes) == (before.cells.keys(), before.probes)
    assert not (tree.root / "fixtures" / "operators").exists()


def test_a_part_is_recorded_only_beside_what_the_very_same_reader_did(command: Callable[..., Any], tree: Tree) -> None:
    miniature(tree.cache, "1.6.0", at_import="version.git_version = '1' * 40")
    before = tree.everything()
    ended = command(*READER, *ADD, "--record")
    assert ended.status == 2
    assert "a part of them cannot be replaced" in ended.err
    tree.recording("1.6.0").unlink()
    assert command(*READER, *ADD, "--record").status == 2
    assert tree.everything() == {name: data for name, data in before.items() if name != "reports/observations/torch-1.6.0.jsonl"}


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
    def fail(_: object) -> None:
        raise ReaderError("surveying ended with crashed", code="survey")

    monkeypatch.setattr(importlib.import_module("harness.cli.observe"), "survey", fail)
    ended = command(*READER, "--record")
    assert ended.status == 3
    assert "surveying ended with crashed" in ended.err
    assert not list(Path(tree.root / "fixtures").rglob("operators/*.json"))
