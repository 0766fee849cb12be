from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.miniatures import miniature

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.miniatures.tree import Tree

NUDGE = "value = Tensor([i * (1 + 2 ** -23) for i in value.items]) if isinstance(value, Tensor) else value"


def findings(report: dict[str, Any], verdict: str) -> list[tuple[str, str, int]]:
    return [
        (finding["rule"], finding["what"], finding["count"]) for finding in report["findings"] if finding["verdict"] == verdict
    ]


def not_checked(report: dict[str, Any]) -> dict[str, int]:
    return {entry["reason"]: entry["count"] for entry in report["not_checked"]}


def test_all_readers_that_are_built_here_are_asked_and_every_promise_holds(command: Callable[..., Any], tree: Tree) -> None:
    before = tree.everything()
    ended = command("replay")
    assert ended.status == 0, ended.out
    assert "every promise" in ended.out
    assert ended.err.splitlines() == [
        "torch-1.5.1: 5 cells observed, 0 reused from the last run",
        "torch-1.6.0: 7 cells observed, 0 reused from the last run",
    ]
    assert tree.everything() == before


def test_json_is_data_alone_and_is_what_is_kept(command: Callable[..., Any], tree: Tree) -> None:
    ended = command("replay", "--format", "json")
    assert ended.status == ended.json["exit_status"] == 0
    assert (tree.root / "reports" / "latest" / "report.json").read_text(encoding="ascii") == ended.out
    assert {(row["writer"], row["reader"]) for row in ended.json["matrix"]} == {
        (f"torch-{writer}", f"torch-{reader}") for writer in ("1.5.1", "1.6.0") for reader in ("1.5.1", "1.6.0")
    }
    assert command("replay").status == 0  # text keeps the report, too
    assert (tree.root / "reports" / "latest" / "report.json").read_text(encoding="ascii") == ended.out


def test_recorded_observations_alone_need_no_reader(command: Callable[..., Any], tree: Tree) -> None:
    shutil.rmtree(tree.cache)
    ended = command("replay", "--recorded", "--format", "json")
    assert (ended.status, ended.err) == (0, "")
    assert ended.json["counts"]["fail"] == 0
    without = command("replay", "--format", "json")
    assert without.status == 0
    assert without.err == "not built here, so their recorded observations are used: torch-1.5.1, torch-1.6.0\n"
    assert without.out == ended.out
    judged = command("judge", "--format", "json")
    assert judged.out == ended.out


def test_recorded_does_not_go_with_a_reader(command: Callable[..., Any]) -> None:
    for more in (("--reader", "torch-1.6.0"), ("--again",)):
        ended = command("replay", "--recorded", *more)
        assert (ended.status, ended.out) == (2, "")
        assert "--recorded does not observe anything" in ended.err


def test_one_reader(command: Callable[..., Any]) -> None:
    ended = command("replay", "--reader", "torch-1.6.0", "--reader", "1.6.0")
    assert ended.status == 0, ended.out
    assert ended.err == "torch-1.6.0: 7 cells observed, 0 reused from the last run\n"


def test_the_next_run_starts_no_reader_for_what_it_knows(command: Callable[..., Any], tree: Tree) -> None:
    first = command("replay", "--format", "json")
    for environment in ("1.5.1", "1.6.0"):
        python = tree.cache / "readers" / f"torch-{environment}" / "bin" / "python"
        python.write_text("#!/bin/sh\nexit 1\n", encoding="ascii")
    second = command("replay", "--format", "json")
    assert second.out == first.out
    assert second.err.count("0 cells observed") == 2
    assert command("replay", "--again").status == 3


def test_a_reader_that_is_asked_for_and_not_built_ends_with_4_and_is_named(command: Callable[..., Any]) -> None:
    ended = command("replay", "--reader", "torch-2.13.0", "--reader", "torch-1.5.1", "--format", "json")
    assert ended.status == 4
    assert not_checked(ended.json) == {"torch-2.13.0 was required: torch-2.13.0 is not built here": 1}
    assert "torch-2.13.0" in command("replay", "--reader", "torch-2.13.0").out


def test_a_release_that_the_calendar_does_not_know_is_wrong_usage(command: Callable[..., Any]) -> None:
    ended = command("replay", "--reader", "torch-9.9.9")
    assert (ended.status, ended.out) == (2, "")
    assert "9.9.9" in ended.err


@pytest.mark.parametrize(
    ("hooks", "words"),
    [
        ({"says": "1.5.1"}, "expected torch 1.6.0, got 1.5.1"),
        ({"says": "1.6.0+cpu"}, "expected torch 1.6.0, which was installed, got 1.6.0+cpu"),
        ({"at_import": "raise ImportError('broken')"}, "ImportError: broken"),
        ({"at_import": "os._exit(0)"}, "died"),
    ],
)
@pytest.mark.parametrize("named", [False, True])
def test_a_reader_that_cannot_be_trusted_ends_with_3(
    command: Callable[..., Any], tree: Tree, hooks: dict[str, str], words: str, named: bool
) -> None:
    before = tree.everything()
    miniature(tree.cache, "1.6.0", **hooks)
    ended = command("replay", *(["--reader", "torch-1.6.0"] if named else []))
    assert (ended.status, ended.out) == (3, "")
    assert words in ended.err
    assert tree.everything() == before
    assert not list((tree.root / "reports" / "latest").rglob("torch-1.6.0"))  # a folder for each reader


RED = {
    "crashes on every file": ({"at_load": "os.kill(os.getpid(), signal.SIGSEGV)"}, 7),
    "crashes while running": ({"at_call": "os.abort()"}, 3),
    "refuses everything": ({"at_load": "raise RuntimeError('no')"}, 7),
    "exits": ({"at_load": "sys.exit(0)"}, 7),
    "computes something else": ({"at_call": "value = [value, value]"}, 3),
    "returns nothing": ({"at_call": "value = None"}, 3),
    "loses a value": ({"at_load": "if isinstance(value, dict): value.pop('best')"}, 4),
    "gives varying results": ({"at_call": "value = os.getppid()"}, 3),
    "returns NaN": ({"at_call": "value = float('nan')"}, 3),
    "returns a megabyte": ({"at_call": "value = 'x' * 1000000"}, 3),
}


@pytest.mark.parametrize("name", RED)
def test_a_reader_that_misbehaves_turns_the_run_red(command: Callable[..., Any], tree: Tree, name: str) -> None:
    """Against what is recorded; and where nothing is recorded, against what was promised."""
    hooks, cells = RED[name]
    miniature(tree.cache, "1.6.0", **hooks)
    ended = command("replay", "--reader", "torch-1.6.0", "--format", "json")
    assert ended.status == 1
    result = findings(ended.json, "fail")
    assert sum(count for rule, what, count in result if (rule, what) == ("observations-reproduce", "contradiction")) == cells
    tree.recording("1.6.0").unlink()
    ended = command("replay", "--reader", "torch-1.6.0", "--format", "json")
    assert ended.status == 1
    assert {rule for rule, _, _ in findings(ended.json, "fail")} & {"newer-loads", "newer-computes", "observations-reproduce"}


def test_what_contradicts_the_recorded_one_is_shown(command: Callable[..., Any], tree: Tree) -> None:
    miniature(tree.cache, "1.6.0", at_load="raise RuntimeError('no')")
    ended = command("replay", "--reader", "torch-1.6.0")
    assert ended.status == 1
    assert "add: refused now, same when recorded" in ended.out


def test_bits_within_the_tolerance_are_reported_and_do_not_fail(command: Callable[..., Any], tree: Tree) -> None:
    miniature(tree.cache, "1.6.0", at_call=NUDGE)
    ended = command("replay", "--reader", "torch-1.6.0", "--format", "json")
    assert ended.status == 0, ended.out
    assert findings(ended.json, "expected") == [("observations-reproduce", "bits", 2)]


def test_noise_changes_nothing(command: Callable[..., Any], tree: Tree) -> None:
    quiet = command("replay", "--format", "json").out
    shutil.rmtree(tree.root / "reports" / "latest")
    # Values share a process, and what closes its output leaves a trace there; programs have one each.
    noise = "print('{}' * 1000); os.write(2, bytes(range(256))); sys.stdout.flush()"
    noise += "\nif value.__class__ is Program: os.close(1)"
    miniature(tree.cache, "1.6.0", at_import="print('hello')", at_load=noise)
    noisy = command("replay", "--format", "json")
    assert noisy.out == quiet
    assert "7 cells observed" in noisy.err


def test_a_damaged_fixture_is_a_finding_and_is_not_observed(command: Callable[..., Any], tree: Tree) -> None:
    (tree.root / "fixtures" / "torch-1.5.1" / "add.pt").write_bytes(b"PK")
    ended = command("replay", "--format", "json")
    assert ended.status == 1
    assert ("fixtures-frozen", "wrong-size", 1) in findings(ended.json, "fail")
    assert "torch-1.6.0: 6 cells observed" in ended.err
    assert "not observed, because the files differ from the manifests: 1 fixture" in ended.err


def test_an_empty_corpus_is_never_a_pass(command: Callable[..., Any], tree: Tree) -> None:
    for name in ("torch-1.5.1", "torch-1.6.0", "recipes", "FROZEN"):
        path = tree.root / "fixtures" / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert command("replay").status != 0


def test_a_fault_does_not_pass_off_the_last_report_as_its_own(command: Callable[..., Any], tree: Tree) -> None:
    command("replay")
    report = tree.root / "reports" / "latest" / "report.json"
    assert report.exists()
    miniature(tree.cache, "1.6.0", at_import="os._exit(1)")
    assert command("replay", "--again").status == 3
    assert not report.exists()


# -------------------------------------------------------------------------------------------------------- interruption


@pytest.mark.parametrize("arguments", [("replay",), ("observe", "--reader", "torch-1.6.0", "--record")])
def test_an_interruption_ends_with_130_at_once_and_leaves_nothing_half_written(tree: Tree, arguments: tuple[str, ...]) -> None:
    temporary = tree.cache / "temporary"
    temporary.mkdir()
    for version in ("1.5.1", "1.6.0"):
        miniature(tree.cache, version, at_load="open(os.environ['TMPDIR'] + '/started', 'w'); time.sleep(5)")
    before = tree.everything()
    process = subprocess.Popen(
        [sys.executable, "-m", "torch_compat", *arguments],
        cwd=tree.root,
        env={**os.environ, "TORCH_COMPAT_CACHE": str(tree.cache), "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 20
    while not list(temporary.glob("*/scratch/started")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)  # less than the seven cells would take
    assert (process.returncode, out) == (130, "")
    assert err.strip() == "torch-compat: stopped"
    assert list(temporary.iterdir()) == []
    assert tree.everything() == before
    latest = tree.root / "reports" / "latest"
    assert [path for path in latest.rglob("*") if path.is_file()] == []


def test_the_command_writes_data_to_stdout_and_progress_to_stderr(tree: Tree) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "torch_compat", "replay", "--format", "json"],
        cwd=tree.root,
        env={**os.environ, "TORCH_COMPAT_CACHE": str(tree.cache), "PYTHONWARNINGS": "error"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == json.loads(done.stdout)["exit_status"] == 0
    assert len(done.stderr.splitlines()) == 2


def test_the_reference_reader_reads_where_it_is_asked_to(command: Callable[..., Any], tree: Tree) -> None:
    promises = tree.root / "policies" / "torch" / "promises.toml"
    with promises.open("a", encoding="utf-8") as policy:
        policy.write('[[rule]]\nid = "reference-agrees"\nasks = "It holds."\nsource = "here"\n')
    ended = command("replay", "--recorded", "--format", "json")
    assert (ended.status, len(ended.json["notes"])) == (0, 1)
    assert "reference-agrees was not checked" in ended.json["notes"][0]
    ended = command("replay", "--reader", "reference", "--format", "json")
    programs = ended.json["modelled"]
    assert sum(programs.values()) > 0
    assert programs["pass"] == 0  # what the miniatures write is no program, and so nothing that anybody could agree about
    assert ended.status in {1, 4}
    assert ended.err == f"reference: {sum(programs.values())} cells observed, 0 reused from the last run\n"
    again = command("replay", "--reader", "reference", "--format", "json")
    assert again.err == f"reference: 0 cells observed, {sum(programs.values())} reused from the last run\n"
    assert again.out == ended.out


@pytest.mark.parametrize("name", ["reference@1.5.1", "reference@"])
def test_the_reference_reader_reads_at_the_horizons_of_the_writers(command: Callable[..., Any], name: str) -> None:
    ended = command("replay", "--reader", name)
    assert (ended.status, ended.out) == (2, "")
    assert "uses the semantics of the release that wrote each fixture" in ended.err


# ------------------------------------------------------------------------------------------------------- what was asked now


def test_a_run_says_first_what_was_observed_now(command: Callable[..., Any], tree: Tree) -> None:
    assert command("replay").out.splitlines()[0] == "Observed now: torch-1.5.1, torch-1.6.0."
    ended = command("replay", "--format", "json")
    assert ended.json["observed_now"] == ["torch-1.5.1", "torch-1.6.0"]
    assert [(source["reader"], source["from"]) for source in ended.json["sources"]] == [
        ("torch-1.5.1", "now"),
        ("torch-1.6.0", "now"),
    ]
    shutil.rmtree(tree.cache)
    ended = command("replay")
    assert ended.status == 0  # green without a release, and says so
    assert ended.out.startswith(
        "Observed now: nothing; recorded evidence only. Only recorded: 2 readers, last observed 0 days before"
    )
    assert command("judge", "--format", "json").json["sources"][0] == {
        "reader": "torch-1.5.1", "from": "recorded", "observed": "2026-07-01", "age_days": 0,
    }  # fmt: skip


def test_what_is_required_and_was_not_observed_is_incomplete(command: Callable[..., Any], tree: Tree) -> None:
    for name in ("any", "torch-1.6.0"):
        assert command("replay", "--require", name).status == 0
    (tree.cache / "readers" / "torch-1.6.0" / "environment.json").unlink()
    assert command("replay", "--require", "any").status == 0
    ended = command("replay", "--require", "torch-1.6.0", "--format", "json")
    assert ended.status == 4
    why = "torch-1.6.0 was required: it is required, but not built here (torch-compat readers build torch-1.6.0)"
    assert why in not_checked(ended.json)
    shutil.rmtree(tree.cache)
    ended = command("replay", "--require", "any", "--format", "json")
    assert ended.status == 4
    assert any("none of the readers is built here" in reason for reason in not_checked(ended.json))
    assert command("replay", "--require", "python:nowhere").status == 2
    assert command("replay", "--require", "reference").status == 2
    assert command("replay", "--recorded", "--require", "any").status == 2
