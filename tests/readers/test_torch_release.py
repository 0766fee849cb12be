"""The harness's side of the protocol: what starts, what is refused, and what is left behind."""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.miniatures import miniature, run_by_this_python
from torch_compat.errors import ReaderError, WrongVersion
from torch_compat.readers import torch_release
from torch_compat.readers.environments import Environment, Environments
from torch_compat.readers.torch_release import TorchRelease, remembered_identity

FD = "int(sys.argv[1])"  # where replies go, as the worker is told


def start(environment: Environment) -> TorchRelease:
    """Start and stop at once; what it became."""
    with TorchRelease(environment) as worker:
        return worker


def test_a_release_is_named_by_its_exact_version(tmp_path: Path) -> None:
    worker = start(miniature(tmp_path, "1.12.1", says="1.12.1+cu102", built_as="1.12.1+cu102"))
    assert worker.name == "torch-1.12.1+cu102"
    assert worker.identity["torch"] == "1.12.1+cu102"
    assert (worker.identity["wheel_sha256"], worker.identity["cuda"]) == ("0" * 64, "none")
    assert "protocol" not in worker.identity


@pytest.mark.parametrize(
    ("says", "built_as"),
    [
        ("1.12.0", "1.5.1"),
        ("1.12.0", "1.12.0"),
        ("1.5.10", "1.5.1"),
        ("1.5.1.post2", "1.5.1"),
        ("1.5.1+cu101", "1.5.1"),
        ("1.5.1", "1.5.1+cu101"),
        ("1.5.1+cpu", "1.5.1+cu101"),
        ("1.5.1a0", "1.5.1"),
        ("the newest", "1.5.1"),
        ("", "1.5.1"),
    ],
)
def test_a_release_that_lies_about_its_version_is_refused(tmp_path: Path, says: str, built_as: str) -> None:
    with pytest.raises(WrongVersion) as caught:
        start(miniature(tmp_path, "1.5.1", says=says, built_as=built_as))
    assert (caught.value.code, caught.value.exit_status) == ("wrong-version", 3)
    assert caught.value.message.startswith("expected torch 1.5.1")
    assert caught.value.message.endswith(f"got {says}")
    assert caught.value.where == str(tmp_path / "readers" / "torch-1.5.1")


@pytest.mark.parametrize(
    ("at_import", "code", "words"),
    [
        ("raise ImportError('libcudart.so.9: no such file')", "worker-died", "ImportError: libcudart.so.9: no such file"),
        ("os._exit(0)", "worker-died", "it printed nothing"),
        ("os.write(2, b'\\xff\\xfe bye\\n\\n'); os._exit(3)", "worker-died", "\ufffd\ufffd bye"),
        ("os.abort()", "worker-died", "died"),
        (f"os.write({FD}, b'{{\"identity\": '); os._exit(0)", "worker-died", "died"),
        (f"os.close({FD}); time.sleep(60)", "worker-died", "it printed nothing"),
        (f"os.write({FD}, b'{{\"identity\": '); time.sleep(60)", "no-answer", "has not answered for 1 s"),
        ("time.sleep(60)", "no-answer", "has not answered for 1 s"),
        (f"os.write({FD}, b'{{\"identity\": \\n')", "protocol", "sent a reply that is not JSON"),
        (f"os.write({FD}, b'\\xff\\n')", "protocol", "sent a reply that is not JSON"),
        (f"os.write({FD}, b'[]\\n')", "protocol", "answered b'[]'"),
        (f"os.write({FD}, b'{{}}\\n')", "protocol", "does not identify itself as protocol 1 requires"),
        (f'os.write({FD}, b\'{{"identity": {{"protocol": 2, "torch": "1.5.1"}}}}\\n\')', "protocol", "protocol 1"),
        (f'os.write({FD}, b\'{{"identity": {{"protocol": 1, "torch": null}}}}\\n\')', "protocol", "protocol 1"),
    ],
)
def test_what_does_not_start_as_the_protocol_asks_is_a_reader_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_import: str, code: str, words: str
) -> None:
    monkeypatch.setattr(torch_release, "START_SECONDS", 1)
    monkeypatch.setattr(torch_release, "STOP_SECONDS", 0.1)
    with pytest.raises(ReaderError) as caught:
        start(miniature(tmp_path, "1.5.1", at_import=at_import))
    assert caught.value.code == code
    assert words in caught.value.message
    assert "1.5.1" in caught.value.message


@pytest.mark.parametrize("there", [False, True])
def test_a_python_that_does_not_run_is_a_reader_error(tmp_path: Path, there: bool) -> None:
    python = tmp_path / "python"
    if there:
        python.write_bytes(b"\x00\x01")
        python.chmod(0o755)
    with pytest.raises(ReaderError, match="failed to start"):
        start(Environment("1.5.1", tmp_path, python, {}))


def impostor(tmp_path: Path, source: str) -> Environment:
    """An environment whose Python runs something else than the worker."""
    script, python = tmp_path / "impostor.py", tmp_path / "python"
    hello = (
        'out = open(int(sys.argv[4]), "w", buffering=1)\nprint(\'{"identity": {"protocol": 1, "torch": "1.5.1"}}\', file=out)\n'
    )
    script.write_text(f"import json, sys, time\n{hello}{source}\n", encoding="utf-8")
    run_by_this_python(python, tmp_path, f'exec {{python}} -S {script} "$@"')
    return Environment("1.5.1", tmp_path, python, {})


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("for line in sys.stdin: print(json.dumps({'id': 7, 'result': 1}), file=out)", "protocol"),
        ("for line in sys.stdin: print(json.dumps({'result': 1}), file=out)", "protocol"),
        ("for line in sys.stdin: print('{', end='', file=out)", "no-answer"),
        ("for line in sys.stdin: print('{', file=out)", "protocol"),
        ("sys.stdin.readline()", "worker-died"),
        ("sys.stdin.close(); out.close(); time.sleep(1)", "worker-died"),
        ("time.sleep(60)", "no-answer"),
        ("for line in sys.stdin: print('{\"id\": 1,', end='', file=out, flush=True); sys.exit(1)", "worker-died"),
    ],
)
def test_an_answer_that_does_not_fit_is_a_reader_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, code: str
) -> None:
    monkeypatch.setattr(torch_release, "GRACE_SECONDS", 0.5)
    monkeypatch.setattr(torch_release, "STOP_SECONDS", 0.1)
    with TorchRelease(impostor(tmp_path, source)) as worker, pytest.raises(ReaderError) as caught:
        worker.request("observe", timeout_s=0)
    assert caught.value.code == code


def test_two_answers_at_once_are_two_answers(tmp_path: Path) -> None:
    source = (
        "n = json.loads(sys.stdin.readline())['id']\n"
        "out.write(''.join(json.dumps({'id': n + i, 'result': i}) + '\\n' for i in range(2))); out.flush()\n"
        "sys.stdin.read()"
    )
    with TorchRelease(impostor(tmp_path, source)) as worker:
        assert [worker.request("observe", timeout_s=0)["result"] for _ in range(2)] == [0, 1]


@pytest.mark.parametrize("given", [0, 1, 3])
def test_a_batch_without_a_reply_to_each_request_is_a_reader_error(tmp_path: Path, given: int) -> None:
    source = f"""
for line in sys.stdin:
    asked = json.loads(line)
    assert asked["do"] == "many" and [one["do"] for one in asked["requests"]] == ["observe", "observe"]
    print(json.dumps({{"id": asked["id"], "result": [{{"result": {{"value": 1}}}}] * {given}}}), file=out)
"""
    with TorchRelease(impostor(tmp_path, source)) as worker, pytest.raises(ReaderError, match="2 requests") as caught:
        worker.request_many("observe", [{"path": "a"}, {"path": "b"}])
    assert caught.value.code == "protocol"
    assert f"sent {given} {'reply' if given == 1 else 'replies'} to" in caught.value.message


@pytest.mark.parametrize("place", [0, 1])
def test_one_fault_among_the_replies_to_a_batch_is_a_reader_error(tmp_path: Path, place: int) -> None:
    source = f"""
fault = {{"failed": {{"type": "KeyError", "message": "'path'", "trace": "Traceback"}}}}
for line in sys.stdin:
    replies = [{{"result": {{"value": 1}}}}] * 2
    replies[{place}] = fault
    print(json.dumps({{"id": json.loads(line)["id"], "result": replies}}), file=out)
"""
    with TorchRelease(impostor(tmp_path, source)) as worker, pytest.raises(ReaderError, match="KeyError: 'path'") as caught:
        worker.request_many("observe", [{}, {}])
    assert caught.value.code == "request-failed"


def test_a_worker_that_died_is_named_whenever_it_is_asked(tmp_path: Path) -> None:
    with TorchRelease(miniature(tmp_path, "1.5.1")) as worker:
        process: Any = worker._process
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        for _ in range(3):
            with pytest.raises(ReaderError, match=r"the worker of torch 1\.5\.1 died"):
                worker.request("observe")


def variables(tmp_path: Path, environment: Environment, seed: int = 0) -> dict[str, str]:
    """The environment variables that torch sees, and its working folder as ``cwd``."""
    script = tmp_path / "survey.py"
    source = "import os\n\n\ndef survey(torch):\n    return dict(os.environ, cwd=os.getcwd(), files=str(os.listdir('.')))\n"
    script.write_text(source, encoding="utf-8")
    with TorchRelease(environment, seed=seed) as worker:
        results: dict[str, str] = worker.request("survey", script=str(script))["result"]
    return results


def test_every_machine_computes_in_the_same_surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYTHONHASHSEED", "PYTHONSTARTUP", "LD_PRELOAD", "VIRTUAL_ENV"):
        monkeypatch.setenv(name, "/nowhere")
    monkeypatch.setenv("OMP_NUM_THREADS", "8")
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
    result = variables(tmp_path, miniature(tmp_path, "1.5.1"), seed=1)
    assert result["PYTHONHASHSEED"] == "1"
    assert result["MALLOC_PERTURB_"] not in {
        "",
        "0",
        variables(tmp_path, miniature(tmp_path, "1.6.0"), seed=0)["MALLOC_PERTURB_"],
    }
    assert not {"PYTHONSTARTUP", "LD_PRELOAD", "VIRTUAL_ENV"} & result.keys()
    assert {name: result[name] for name in torch_release.DETERMINISM} == dict(torch_release.DETERMINISM)
    assert result["files"] == "[]"
    assert result["TMPDIR"] == result["cwd"]
    assert not Path(result["cwd"]).exists()


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    environment = miniature(tmp_path, "1.5.1")
    start(environment)
    before = descriptors()
    worker = start(environment)
    process: Any = worker._process
    assert process.returncode == 0
    with pytest.raises(WrongVersion):
        start(miniature(tmp_path, "1.5.1", says="1.6.0"))
    assert descriptors() == before


def test_one_may_be_started_ahead_and_used_or_closed(tmp_path: Path) -> None:
    environment = miniature(tmp_path, "1.5.1")
    used, unused = TorchRelease(environment), TorchRelease(environment)
    for worker in (used, unused):
        worker.start()
        worker.start()  # a second time changes nothing
    first: Any = used._process
    with used as entered:
        assert entered._process is first
        assert used.name == "torch-1.5.1"
    unused.close()
    unused.close()
    assert [worker._process.returncode for worker in (used, unused) if worker._process] == [0, 0]


def test_a_worker_that_does_not_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_release, "STOP_SECONDS", 0.2)
    began = time.monotonic()
    worker = start(impostor(tmp_path, "time.sleep(60)"))
    process: Any = worker._process
    assert process.returncode == -signal.SIGKILL
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    "version",
    [pytest.param(version, marks=pytest.mark.real_torch(version)) for version in ("1.2.0", "1.5.1", "2.13.0")],
)
def test_real_releases_introduce_themselves(version: str, tmp_path: Path) -> None:
    environment = Environments().get(version)
    assert environment is not None
    worker = start(environment)
    assert worker.name == f"torch-{environment.description['torch']}"
    assert worker.identity["git"] == environment.description["git_revision"]
    assert worker.identity["python"] == environment.description["python"]
    assert (worker.identity["cpu_capability"].lower(), worker.identity["threads"]) == ("avx2", 1)


@pytest.mark.real_torch("2.13.0")
def test_a_real_release_in_the_place_of_another_is_refused(tmp_path: Path) -> None:
    environment = Environments().get("2.13.0")
    assert environment is not None
    with pytest.raises(WrongVersion, match=r"expected torch 2\.12\.0, got"):
        start(Environment("2.12.0", tmp_path, environment.python, {**environment.description, "torch": "2.12.0"}))
    with pytest.raises(WrongVersion, match="was installed"):
        start(Environment("2.13.0", tmp_path, environment.python, {**environment.description, "torch": "2.13.0+cu999"}))


def test_an_identity_is_remembered_while_nothing_it_hangs_on_changes(tmp_path: Path) -> None:
    environment = miniature(tmp_path, "1.5.1")
    assert remembered_identity(environment) is None
    worker = start(environment)
    assert remembered_identity(environment) == worker.identity
    assert remembered_identity(replace(environment, description={**environment.description, "wheel_sha256": "1"})) is None
    path = environment.prefix / torch_release.IDENTITY
    for damaged in ("", "[]", "{}", path.read_text().replace("seal", "leal"), path.read_text().replace("identity", "x")):
        path.write_text(damaged, encoding="ascii")
        assert remembered_identity(environment) is None


def test_a_liar_is_not_remembered(tmp_path: Path) -> None:
    environment = miniature(tmp_path, "1.5.1", says="1.6.0")
    with pytest.raises(WrongVersion):
        start(environment)
    assert remembered_identity(environment) is None


def test_an_environment_that_may_only_be_read_is_used_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = miniature(tmp_path, "1.5.1")
    environment = replace(environment, prefix=tmp_path / "nowhere")
    monkeypatch.setattr(Environment, "folders", (tmp_path, Path(sys.executable).resolve().parent.parent))
    assert start(environment).name == "torch-1.5.1"
    assert remembered_identity(environment) is None
