"""Observing with the reference reader, compared with real evidence; a reader that lies or dies is detected."""

from __future__ import annotations

import base64
import datetime as dt
import os
import signal
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from torch_compat.corpus.observations import ObservedReader
from torch_compat.corpus.recorded import read_recorded, write_recorded
from torch_compat.judging.gathering import gather
from torch_compat.judging.judge import judge
from torch_compat.judging.judgement import Verdict
from torch_compat.readers.reference import Reference
from torch_compat.readers.torch_release import PROTOCOL
from torch_compat.replay.observe import Observing
from torch_compat.replay.reference import observe_reference, plan_reference, reference_observation
from torch_compat.rules.reference_agrees import PREDICTED
from torch_compat.workspace import Root

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from torch_compat.judging.evidence import Evidence
    from torch_compat.judging.judge import Report
    from torch_compat.readers.child_processes import ChildProcess
    from torch_compat.replay.plan import Task

TODAY = dt.date(2026, 7, 1)
SOME = ("torch-1.2.0/div", "torch-1.5.1/div", "torch-1.5.1/control_flow", "torch-2.13.0/gelu", "torch-2.13.0/mobile")


@pytest.fixture(scope="module")
def evidence(small_tree: Path) -> Evidence:
    place = Root(small_tree)
    return gather(place, place.policy(), as_of=None)


@pytest.fixture(scope="module")
def tasks(evidence: Evidence) -> list[Task]:
    result = plan_reference(evidence.policy, evidence.corpus, [evidence.corpus.fixtures[name] for name in SOME])
    assert [task.fixture.id for task in result] == list(SOME)
    return result


@pytest.fixture(scope="module")
def observed(tasks: list[Task]) -> ObservedReader:
    return observe_reference(tasks, today=TODAY)


def judged(evidence: Evidence, reference: ObservedReader) -> Report:
    """What the rule alone says of the fixtures that were read."""
    names = {fixture for fixture, _ in reference.cells}
    manifests = tuple(
        replace(manifest, fixtures=tuple(fixture for fixture in manifest.fixtures if fixture.id in names))
        for manifest in evidence.corpus.manifests
    )
    rules = tuple(rule for rule in evidence.policy.rules if rule.id == "reference-agrees")
    assert rules
    policy = replace(evidence.policy.without_gaps(), rules=rules, waivers=(), operator_waivers=())
    return judge(replace(evidence, policy=policy, corpus=replace(evidence.corpus, manifests=manifests), reference=reference))


def test_it_reads_programs_that_a_release_wrote(evidence: Evidence) -> None:
    planned = plan_reference(evidence.policy, evidence.corpus, evidence.corpus.fixtures.values())
    assert {task.fixture.family for task in planned} == {"torchscript", "mobile"}
    assert {task.options.id for task in planned} == {"default"}
    programs = [fixture for fixture in evidence.corpus.fixtures.values() if fixture.family in {"torchscript", "mobile"}]
    assert {task.fixture.id for task in planned} == {program.id for program in programs if program.release != "synthetic"}


def test_it_does_what_the_writers_did(evidence: Evidence, observed: ObservedReader) -> None:
    report = judged(evidence, observed)
    assert (report.exit_status, report.modelled[Verdict.PASS]) == (0, len(SOME))


def test_the_same_comes_out_again_and_can_be_kept(tasks: list[Task], observed: ObservedReader, tmp_path: Path) -> None:
    assert observe_reference(tasks, today=TODAY) == observed
    write_recorded(tmp_path, [observed])
    assert read_recorded(tmp_path).readers == {"reference": observed}


def test_what_is_known_is_not_read_again(tasks: list[Task], observed: ObservedReader, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    request = Reference.request

    def counted(self: Reference, do: str, **more: Any) -> dict[str, Any]:
        asked.append(more["path"])
        return request(self, do, **more)

    monkeypatch.setattr(Reference, "request", counted)
    state = Observing()
    assert observe_reference(tasks, today=dt.date(2030, 1, 1), known=observed, state=state) == observed
    assert (asked, state.known, state.total) == ([], len(SOME), 0)
    stale = {
        cell: replace(item, key="0" * 20 + "-000000") if cell[0] == SOME[0] else item for cell, item in observed.cells.items()
    }
    assert observe_reference(tasks, today=TODAY, known=replace(observed, cells=stale)).cells == observed.cells
    assert len(asked) == 1
    other = replace(observed, identity={**observed.identity, "code": "0" * 16})
    observe_reference(tasks, today=TODAY, known=other)
    assert len(asked) == 1 + len(SOME)


def _another_value(reply: dict[str, Any]) -> dict[str, Any]:
    def change(value: Any) -> Any:
        if isinstance(value, list):
            return [change(item) for item in value]
        if isinstance(value, dict):
            if value.get("bytes"):
                raw = bytearray(base64.b64decode(value["bytes"]))
                raw[-1] ^= 1 << 5
                return {**value, "bytes": base64.b64encode(raw).decode("ascii")}
            return {key: change(item) for key, item in value.items()}
        return value

    return {**reply, "result": {**reply["result"], "calls": change(reply["result"]["calls"])}}


@pytest.mark.parametrize(
    ("lie", "what"),
    [
        (_another_value, "different"),
        (lambda _: {"result": {"error": {"stage": "load", "type": "x", "message": "no"}}}, "refused"),
        (lambda _: {"crashed": {"stage": "call", "signal": "SIGSEGV", "exit": -11, "said": ""}}, "crashed"),
        (lambda _: {"timed-out": {"stage": "call", "timeout_s": 60}}, "timed-out"),
        (lambda _: {"unsupported": {"code": "operator", "message": "no operator aten::x"}}, "unsupported"),
    ],
)
def test_a_lie_is_seen(
    evidence: Evidence, tasks: list[Task], monkeypatch: pytest.MonkeyPatch, lie: Callable[[Any], dict[str, Any]], what: str
) -> None:
    request = Reference.request
    monkeypatch.setattr(Reference, "request", lambda self, do, **more: lie(request(self, do, **more)))
    (task,) = [task for task in tasks if task.fixture.id == "torch-1.5.1/div"]
    report = judged(evidence, observe_reference([task], today=TODAY))
    if what == "unsupported":
        assert (report.exit_status, report.not_checked) == (4, (("reference-agrees", "no operator aten::x", 1),))
    else:
        (finding,) = report.findings
        assert (report.exit_status, finding.what, finding.modelled, finding.verdict) == (1, what, True, Verdict.FAIL)


DIES = {"stage": "load", "signal": "SIGABRT", "said": "", "predicted": "the release crashes here (SIGABRT): because"}


def test_a_death_that_is_told_of_is_no_death_of_the_reader_and_can_be_kept(tasks: list[Task], tmp_path: Path) -> None:
    task = tasks[0]
    told = reference_observation(task, {"crashed": DIES, "slips": ["x"]})
    assert (told.result, told.stage, told.signal) == ("crashed", "load", "SIGABRT")
    assert told.errors == ({"type": PREDICTED, "message": DIES["predicted"]},)
    died = reference_observation(task, {"crashed": {"stage": "load", "signal": "SIGABRT", "exit": -6, "said": ""}})
    assert (died.result, died.errors) == ("crashed", ())
    end = {"stage": "call", "signal": "SIGSEGV", "predicted": "."}
    either = reference_observation(task, {"result": task.fixture.golden, "unstable": end})
    assert (either.result, [item.result for item in either.both]) == ("unstable", ["crashed", "same"])
    for cell in (told, died, either):
        kept = ObservedReader("reference", {"reader": "reference"}, "2026-07-01", PROTOCOL, {cell.cell: cell}, {})
        write_recorded(tmp_path, [kept])
        assert read_recorded(tmp_path).readers == {"reference": kept}


def test_slips_are_told_of_each_cell(tasks: list[Task]) -> None:
    some = [task for task in tasks if task.fixture.id in {"torch-2.13.0/gelu", "torch-1.5.1/div"}]
    met: dict[tuple[str, str], tuple[str, ...]] = {}
    seen = observe_reference(some, today=TODAY, horizon="reference@1.1.0", slips=met)
    assert {fixture: result for (fixture, _), result in met.items()} == {"torch-2.13.0/gelu": (), "torch-1.5.1/div": ()}
    assert {cell.result for cell in seen.cells.values()} == {"refused"}
    (newer,) = [task for task in tasks if task.fixture.id == "torch-1.5.1/control_flow"]
    seen = observe_reference([newer], today=TODAY, horizon="reference@1.5.1", slips=met)
    assert [cell.result for cell in seen.cells.values()] != ["crashed"]


def test_a_process_that_dies_costs_one_cell(tasks: list[Task], observed: ObservedReader, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = Reference._answer

    def dies_of_one(self: Reference, child: ChildProcess, request: dict[str, Any], *more: Any) -> dict[str, Any]:
        if request["path"].endswith("control_flow.pt"):
            os.kill(child.pid, signal.SIGKILL)
        return answer(self, child, request, *more)

    monkeypatch.setattr(Reference, "_answer", dies_of_one)
    again = observe_reference(tasks, today=TODAY)
    spoilt = {cell[0] for cell, item in again.cells.items() if item != observed.cells[cell]}
    assert spoilt == {"torch-1.5.1/control_flow"}
    assert again.cells["torch-1.5.1/control_flow", "default"].signal == "SIGKILL"
