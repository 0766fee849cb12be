from __future__ import annotations

import datetime as dt
import inspect
import json
import signal
import sys
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.miniatures import miniature
from tests.miniatures.tree import TODAY, Tree
from torch_compat.corpus.recorded import read_recorded, write_recorded
from torch_compat.errors import ReaderError, WrongVersion
from torch_compat.fingerprint import code_of
from torch_compat.judging.agreement import agreement
from torch_compat.judging.gathering import gather
from torch_compat.readers.environments import Environments
from torch_compat.readers.torch_release import PROTOCOL, TorchRelease
from torch_compat.replay import observe as module
from torch_compat.replay.observe import CRASHES, VALUES, Observing, observe
from torch_compat.replay.plan import plan
from torch_compat.workspace import Root

if TYPE_CHECKING:
    from torch_compat.corpus.observations import Observation, ObservedReader
    from torch_compat.readers.environments import Environment

ADD = ("torch-1.5.1/add", "default")
STATE = ("torch-1.5.1/state", "default")
LATER = dt.date(2026, 8, 2)


def observed(tree: Tree, environment: Environment, *fixtures: str, **more: Any) -> ObservedReader:
    return observe(environment, tree.tasks(environment.version, *fixtures), (), today=TODAY, **more)


def add(tree: Tree, **hooks: str) -> Observation:
    """What a reader with these hooks does with one fixture."""
    return observed(tree, miniature(tree.cache, "1.6.0", **hooks), ADD[0]).cells[ADD]


def logged(path: Path, what: str) -> str:
    """A hook that writes down one line each time."""
    return f"with open({str(path)!r}, 'a') as log: log.write(str({what}) + '\\n')"


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def test_every_cell_is_observed_twice_by_two_processes_with_different_hash_seeds(tree: Tree) -> None:
    log = tree.root / "log"
    environment = miniature(tree.cache, "1.6.0", at_load=logged(log, "f'{os.getppid()} ' + os.environ['PYTHONHASHSEED']"))
    state = Observing()
    reader = observed(tree, environment, state=state)
    assert (reader.name, reader.observed, reader.release) == ("torch-1.6.0", "2026-07-01", "1.6.0")
    assert {cell.result for cell in reader.cells.values()} == {"same"}
    seeds = Counter(lines(log))
    assert sorted(seeds.values()) == [7, 7]  # one process asks for each cell once
    assert sorted(line.split()[1] for line in seeds) == ["0", "1"]
    assert (state.done, state.total, state.known) == (14, 14, 0)


def test_facts_of_each_way_to_end(tree: Tree) -> None:
    refused = add(tree, at_load="raise RuntimeError('version 3 is too new at /build/x.cpp:12')")
    assert (refused.result, refused.digest, refused.stage) == ("refused", "", "")
    assert refused.errors == (
        {"stage": "load", "type": "builtins.RuntimeError", "message": "version 3 is too new at /build/x.cpp:N"},
    )
    raised = add(tree, at_call="raise KeyError('no kernel')")
    assert (raised.result, raised.stage, raised.count) == ("raised", "", 6)  # 2 calls of 4 raised in the golden, too
    assert [error["type"] for error in raised.errors] == ["builtins.KeyError"]
    differs = add(tree, at_call="value = value + 1 if isinstance(value, int) else value")
    assert (differs.result, differs.count, bool(differs.departures)) == ("differs", 2, True)
    assert differs.differences[0].facts == {"expected": 5, "got": 6}
    crashed = add(tree, at_call="os.kill(os.getpid(), signal.SIGBUS)")
    assert (crashed.result, crashed.stage, crashed.signal, crashed.digest) == ("crashed", "call", "SIGBUS", "")
    ended = add(tree, at_load="os._exit(7)")
    assert (ended.result, ended.stage, ended.signal) == ("crashed", "load", "exit 7")


def states(tree: Tree, **hooks: str) -> ObservedReader:
    """What a reader with these hooks does with the fixtures that are values: they may share a process."""
    names = [name for name, fixture in tree.corpus.fixtures.items() if fixture.family in VALUES]
    assert len(names) > 1
    return observed(tree, miniature(tree.cache, "1.6.0", **hooks), *names)


def test_values_share_a_process_until_one_leaves_a_trace(tree: Tree) -> None:
    log = tree.root / "log"
    result = states(tree, at_load=logged(log, "f'{os.getppid()} {os.getpid()}'"))
    workers = {line.split()[0] for line in lines(log)}
    assert len(workers) == 2
    batches = len({options for _, options in result.cells})
    assert len(set(lines(log))) == 2 * batches < len(lines(log)) == 2 * len(result.cells)


def test_a_value_that_is_refused_is_the_last_of_its_process(tree: Tree) -> None:
    log = tree.root / "log"
    result = states(tree, at_load=logged(log, "f'{os.getppid()} {os.getpid()}'") + "\nraise ValueError('refused')")
    assert {cell.result for cell in result.cells.values()} == {"refused"}
    assert len(set(lines(log))) == len(lines(log)) == 2 * len(result.cells)


@pytest.mark.parametrize("hook", ["warnings.warn('warned')", "os.abort()", "os._exit(3)"])
def test_what_leaves_a_trace_is_alone_in_its_process(tree: Tree, hook: str) -> None:
    """The second and every other value of a process is met by a hook; each has the answer that it gives in a process of its own."""
    counted = f"import builtins; builtins.met = getattr(builtins, 'met', 0) + 1\nif builtins.met > 1: {hook}"
    plain = states(tree)
    assert {cell.result for cell in plain.cells.values()} == {"same"}
    assert states(tree, at_load=counted).cells == plain.cells
    always = states(tree, at_load=hook)
    alone = {name: observed(tree, miniature(tree.cache, "1.6.0", at_load=hook), name[0]).cells[name] for name in always.cells}
    assert always.cells == alone


def test_warnings_are_facts_and_name_no_place(tree: Tree) -> None:
    cell = add(tree, at_load="warnings.warn('deprecated: archive.pt, ' + os.path.abspath('add.pt'), FutureWarning)")
    assert cell.result == "same"
    ((category, text),) = cell.warnings
    assert category == "FutureWarning"
    assert "add.pt" not in text


def test_messages_name_neither_machine_nor_run(tree: Tree) -> None:
    message = "'\\x1b[31mat 0x7f' + hex(os.getpid() + 0x100000)[2:] + ' in ' + sys.prefix + '/lib/python3.8/site-packages/torch/a.py:' + '3'"
    cell = add(tree, at_load=f"raise ValueError({message})")
    assert cell.result == "refused"
    assert "\x1b" not in cell.errors[0]["message"]
    assert str(tree.root) not in json.dumps(cell.errors)


@pytest.mark.parametrize(
    "hook",
    [
        "value = os.getppid()",
        "value = hash('x')",
        "value = list({'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'})",
        "value = float('nan') if os.environ['PYTHONHASHSEED'] == '1' else value",
        "if os.environ['PYTHONHASHSEED'] == '1': raise ValueError('now and then')",
        "if os.environ['PYTHONHASHSEED'] == '1': os.abort()",
        "if os.environ['PYTHONHASHSEED'] == '1': warnings.warn('now and then')",
        "raise ValueError(os.getppid())",
    ],
)
def test_a_result_that_varies_is_unstable_and_both_are_kept(tree: Tree, hook: str) -> None:
    cell = add(tree, at_call=hook)
    assert (cell.result, cell.digest, cell.departures, cell.count) == ("unstable", "", (), 0)
    item, other = cell.both
    assert item != other
    assert {item.key, other.key} == {cell.key}
    result = observed(tree, miniature(tree.cache, "1.6.0", at_call=hook), ADD[0])
    write_recorded(tree.root / "kept", [result])
    assert read_recorded(tree.root / "kept").readers[result.name].cells[ADD].result == "unstable"


def test_a_crash_is_observed_several_times_and_a_refusal_once(tree: Tree) -> None:
    log = tree.root / "log"
    assert add(tree, at_load=f"{logged(log, '1')}\nos.abort()").result == "crashed"
    assert len(lines(log)) == 2 * CRASHES
    log.unlink()
    assert add(tree, at_load=f"{logged(log, '1')}\nraise ValueError").result == "refused"
    assert len(lines(log)) == 2


def test_a_crash_that_does_not_always_end_the_same_way_is_unstable(tree: Tree) -> None:
    log = tree.root / "log"
    hook = f"""
name = {str(log)!r} + os.environ['PYTHONHASHSEED']
with open(name, 'a') as log: log.write('x')
os.kill(os.getpid(), signal.SIGSEGV if os.path.getsize(name) < {CRASHES} else signal.SIGABRT)
"""
    cell = add(tree, at_load=hook)
    assert cell.result == "unstable"
    assert [item.signal for item in cell.both] == ["SIGSEGV", "SIGABRT"]


class Hurried(TorchRelease):
    """Waits less long."""

    def request(self, do: str, *, timeout_s: float = 0.5, **arguments: Any) -> dict[str, Any]:
        return super().request(do, timeout_s=timeout_s, **arguments)


@pytest.mark.parametrize("stage", ["load", "call"])
def test_a_time_out_is_one_cell(tree: Tree, monkeypatch: pytest.MonkeyPatch, stage: str) -> None:
    monkeypatch.setattr(module, "TorchRelease", Hurried)
    hang = {"load": "if value.state: time.sleep(30)", "call": "if value == 5: time.sleep(30)"}[stage]
    result = observed(tree, miniature(tree.cache, "1.6.0", **{f"at_{stage}": hang}), ADD[0], "torch-1.6.0/later")
    cell = result.cells[ADD]
    assert (cell.result, cell.stage, cell.signal) == ("timed-out", stage, "")
    assert result.cells["torch-1.6.0/later", "default"].result == "same"


def test_what_is_known_is_not_observed_again(tree: Tree) -> None:
    log = tree.root / "log"
    environment = miniature(tree.cache, "1.6.0", at_load=logged(log, "1"))
    known = observed(tree, environment)
    log.unlink()
    state = Observing()
    again = observe(environment, tree.tasks("1.6.0"), (), today=LATER, known=known, state=state)
    assert lines(log) == []
    assert again == known
    assert (state.total, state.known) == (0, 7)


def test_what_is_new_is_observed_and_the_rest_is_kept(tree: Tree) -> None:
    log = tree.root / "log"
    environment = miniature(tree.cache, "1.6.0", at_load=logged(log, "1"))
    known = observed(tree, environment, "torch-1.6.0/add", "torch-1.6.0/state")
    log.unlink()
    state = Observing()
    reader = observe(
        environment, tree.tasks("1.6.0", "torch-1.6.0/add", "torch-1.5.1/add"), (), today=LATER, known=known, state=state
    )
    assert len(lines(log)) == 2
    assert set(reader.cells) == {("torch-1.6.0/add", "default"), ADD}  # what was asked for, nothing else
    assert reader.cells["torch-1.6.0/add", "default"] == known.cells["torch-1.6.0/add", "default"]
    assert reader.observed == "2026-08-02"
    assert (state.total, state.known) == (2, 1)


@pytest.mark.parametrize("change", ["archive", "golden", "calls", "options", "identity", "protocol"])
def test_what_changed_is_observed_again(tree: Tree, change: str) -> None:
    log = tree.root / "log"
    environment = miniature(tree.cache, "1.6.0", at_load=logged(log, "1"))
    known = observed(tree, environment, STATE[0])
    log.unlink()
    tasks = tree.tasks("1.6.0", STATE[0])
    (task,) = [task for task in tasks if task.options.id == "default"]
    fixture = task.fixture
    if change == "archive":
        task = replace(task, fixture=replace(fixture, sha256="0" * 64))
    elif change == "golden":
        task = replace(task, fixture=replace(fixture, golden={"value": None}))
    elif change == "calls":
        task = replace(task, fixture=replace(fixture, calls=[{"method": "forward", "args": []}]))
    elif change == "options":
        weights_only = next(task for task in tasks if task.options.id == "weights-only")
        task = replace(task, options=task.options.model_copy(update={"load": weights_only.options.load}))
    elif change == "identity":
        environment = replace(environment, description={**environment.description, "wheel_sha256": "1" * 64})
    else:
        known = replace(known, protocol=0)
    reader = observe(environment, [task], (), today=LATER, known=known)
    assert len(lines(log)) == 2
    assert reader.observed == "2026-08-02"
    assert reader.identity["wheel_sha256"] == environment.description["wheel_sha256"]
    assert reader.protocol == PROTOCOL


def test_probes_are_asked_twice_and_known_by_their_text(tree: Tree) -> None:
    environment = miniature(tree.cache, "1.6.0")
    (probe,) = tree.corpus.probes
    result = observe(environment, [], [probe], today=TODAY)
    assert result.probes["one"].checks == (("one is one", True, ""),)
    probe.path.write_text("raise SystemExit('not asked again')", encoding="utf-8")
    assert observe(environment, [], [probe], today=LATER, known=result) == result
    changed = replace(probe, sha256="0" * 64)
    with pytest.raises(ReaderError, match="not asked again"):
        observe(environment, [], [changed], today=LATER, known=result)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("raise ValueError('what is it at /x.py:3')", {"type": "builtins.ValueError", "message": "what is it at /x.py:N"}),
        ("import os\n    os.abort()", {"type": "crashed", "message": ""}),
        ("import time\n    time.sleep(20)", {"type": "timed-out", "message": ""}),
    ],
)
def test_a_probe_that_fails_is_put_down_as_such(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, body: str, error: dict[str, str]
) -> None:
    monkeypatch.setattr(module, "TorchRelease", Hurried)
    (probe,) = tree.corpus.probes
    probe.path.write_text(f"def probe():\n    {body}\n", encoding="utf-8")
    result = observe(miniature(tree.cache, "1.6.0"), [], [probe], today=TODAY).probes["one"]
    assert (result.error, result.checks) == (error, ())


def test_a_probe_that_varies_is_refused(tree: Tree) -> None:
    (probe,) = tree.corpus.probes
    probe.path.write_text("def probe():\n    return [('seed', True, str(hash('x')))]\n", encoding="utf-8")
    with pytest.raises(ReaderError, match="gave different results in two runs") as caught:
        observe(miniature(tree.cache, "1.6.0"), [], [probe], today=TODAY)
    assert caught.value.code == "unstable-probe"


# ------------------------------------------------------------------------------------------------------------ when it fails


def test_nothing_that_a_liar_says_is_returned(tree: Tree) -> None:
    before = tree.everything()
    with pytest.raises(WrongVersion):
        observed(tree, miniature(tree.cache, "1.6.0", says="1.5.1"))
    assert tree.everything() == before


def test_two_workers_have_to_introduce_themselves_alike(tree: Tree) -> None:
    environment = miniature(tree.cache, "1.6.0", at_import="version.git_version = os.environ['PYTHONHASHSEED']")
    with pytest.raises(ReaderError, match="reported different identities"):
        observed(tree, environment)


def test_a_load_option_that_the_release_lacks_is_a_mistake_of_the_policy(tree: Tree) -> None:
    task = next(task for task in tree.tasks("1.6.0") if task.options.id == "weights-only")
    load = task.options.load.model_copy(update={"mmap": True})
    wrong = replace(task, options=task.options.model_copy(update={"load": load}))
    with pytest.raises(ReaderError, match="has no load option 'mmap'") as caught:
        observe(miniature(tree.cache, "1.6.0"), [wrong], (), today=TODAY)
    assert caught.value.code == "no-such-option"
    assert "'weights-only'" in str(caught.value.hint)


def test_a_missing_archive_is_a_fault_and_no_refusal(tree: Tree) -> None:
    task = replace(tree.tasks("1.6.0")[0], path=tree.root / "gone.pt")
    with pytest.raises(ReaderError, match="there is no file"):
        observe(miniature(tree.cache, "1.6.0"), [task], (), today=TODAY)


@pytest.mark.parametrize("seed", [0, 1])
def test_when_one_pass_fails_the_other_does_not_go_on(tree: Tree, seed: int) -> None:
    """Whichever it is: the error arrives at once, not after the minutes that the rest would take."""
    log = tree.root / "log"
    hook = f"""
if os.environ['PYTHONHASHSEED'] == '{seed}': os.kill(os.getppid(), signal.SIGKILL)
else:
    {logged(log, "1")}
    time.sleep(0.4)
"""
    state = Observing()
    with pytest.raises(ReaderError, match="died"):
        observed(tree, miniature(tree.cache, "1.6.0", at_load=hook), state=state)
    assert len(lines(log)) < 7
    assert state.stopped


def test_an_interruption_ends_both_passes(tree: Tree) -> None:
    log = tree.root / "log"
    environment = miniature(tree.cache, "1.6.0", at_load=f"{logged(log, '1')}\ntime.sleep(0.3)")

    main = threading.main_thread().ident
    assert main is not None

    def interrupt(state: Observing) -> None:
        if state.done == 1:
            signal.pthread_kill(main, signal.SIGINT)

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        observed(tree, environment, state=Observing(progress=interrupt))
    assert time.monotonic() - began < 2
    assert len(lines(log)) < 14


def test_progress_is_told_after_each_cell(tree: Tree) -> None:
    seen: list[tuple[int, int]] = []
    state = Observing(progress=lambda state: seen.append((state.done, state.total)))
    observed(tree, miniature(tree.cache, "1.6.0"), *ADD[:1], state=state)
    assert seen == [(1, 2), (2, 2)]


# ------------------------------------------------------------------------------------------------------ real releases

REAL = {
    "2.13.0": [
        "torch-1.2.0/div",
        "torch-1.5.1/state_dict_stream",
        "torch-1.6.0/full",
        "torch-1.12.1/gelu",
        "torch-1.12.1/mobile",
        "torch-2.13.0/views",
    ],
    "1.5.1": [
        "torch-1.2.0/div",
        "torch-1.5.1/state_dict_stream",
        "torch-1.6.0/full",
        "torch-1.12.1/gelu",
        "torch-1.12.1/package",
        "torch-2.13.0/views",
    ],
}


@pytest.mark.parametrize("version", [pytest.param(version, marks=pytest.mark.real_torch(version)) for version in REAL])
def test_real_releases_do_again_what_was_recorded(version: str, small_tree: Path) -> None:
    environment = Environments().get(version)
    assert environment is not None
    place = Root(small_tree)
    policy = place.policy()
    evidence = gather(place, policy, as_of=None)
    chosen = [evidence.corpus.fixtures[name] for name in REAL[version]]
    fresh = observe(environment, plan(policy, evidence.corpus, policy.calendar[version], chosen), (), today=TODAY)
    assert len(fresh.cells) >= len(chosen)
    for cell, now in fresh.cells.items():
        fixture, recorded = evidence.corpus.fixtures[cell[0]], evidence.recorded[fresh.name].cells[cell]
        verdict, text = agreement(evidence, fixture, recorded, now)
        assert verdict != "fail", f"{cell}: {text}"


def test_whatever_shapes_an_observation_is_part_of_the_key_of_the_cache() -> None:
    """Functions and classes that this module uses, wherever they are defined: one that is changed makes older cells stale."""
    used = {
        variable.__module__
        for variable in vars(module).values()
        if getattr(variable, "__module__", "").startswith("torch_compat.")
    }
    files = {Path(str(sys.modules[name].__file__)) for name in used}
    assert files <= set(code_of("replay"))
    assert Path(inspect.getfile(vars(module)["normalise_result"])) in files


def test_another_key_does_not_find_what_the_last_run_observed(monkeypatch: pytest.MonkeyPatch) -> None:
    before = module.code_digest()
    monkeypatch.setattr(module, "code_fingerprint", lambda _: "0" * 64)
    assert module.code_digest() != before
    assert len(before) == len(module.code_digest()) == 12
