"""The worker's side of the protocol, and its encoding of values; with miniature releases, and with real ones if built."""

from __future__ import annotations

import base64
import json
import math
import os
import pickle
import re
import signal
import struct
import subprocess
import sys
import time
import zipfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.miniatures import miniature
from torch_compat.errors import CorpusError, ReaderError
from torch_compat.readers.environments import Environments
from torch_compat.readers.torch_release import WORKER, TorchRelease

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FIXTURES = Path(__file__).parents[2] / "fixtures"
HERE = {"torch-save": "data.pkl", "torchscript": "constants.pkl"}


def archive(folder: Path, value: Any = ({}, {"forward": "lambda *args: args"}), family: str = "torchscript") -> Path:
    """An archive as the miniature writes it."""
    path = folder / "archive.pt"
    with zipfile.ZipFile(path, "w") as stream:
        stream.writestr(f"archive/{HERE[family]}", pickle.dumps(value, 2))
    return path


def observe(worker: TorchRelease, path: Path, *args: Any, timeout_s: float = 20, **options: Any) -> dict[str, Any]:
    call = {"method": "forward", "args": list(args)}
    return worker.request("observe", path=str(path), family="torchscript", calls=[call], options=options, timeout_s=timeout_s)


def load(worker: TorchRelease, path: Path, **options: Any) -> dict[str, Any]:
    return worker.request("observe", path=str(path), family="torch-save", calls=[], options=options)


SCRATCH = "os.environ['TMPDIR'] + '/flag'"  # the one place where a worker may write, as source


def once(source: str, flag: str = SCRATCH) -> str:
    """A hook that acts the first time only; ``flag`` is source, too."""
    return f"if not os.path.exists({flag}):\n    open({flag}, 'w').write(str(os.getpid()))\n    {source}\n"


@pytest.fixture
def works(tmp_path: Path) -> Callable[[TorchRelease], bool]:
    """Whether a worker still does its work."""

    def check(worker: TorchRelease) -> bool:
        reply = observe(worker, archive(tmp_path), 7)
        return bool(reply["result"]["calls"][0]["first"]["value"] == {"tuple": [7]})

    return check


# ------------------------------------------------------------------------------------------------------------ protocol


@contextmanager
def by_hand(tmp_path: Path, asked: str = "1.5.1") -> Iterator[tuple[subprocess.Popen[bytes], Any]]:
    """A worker without the harness around it."""
    environment = miniature(tmp_path, "1.5.1", at_import="print('noise'); sys.stdout.flush()")
    read_fd, write_fd = os.pipe()
    empty = tmp_path / "empty"
    empty.mkdir()
    with (
        os.fdopen(read_fd) as replies,
        subprocess.Popen(
            [environment.python, WORKER, str(write_fd), asked],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            pass_fds=[write_fd],
            cwd=empty,
        ) as process,
    ):
        os.close(write_fd)
        yield process, replies


def test_the_first_line_is_the_identity_and_each_request_gets_one_line_with_its_id(tmp_path: Path) -> None:
    with by_hand(tmp_path) as (process, replies):
        assert process.stdin is not None
        identity = json.loads(replies.readline())
        assert list(identity) == ["identity"]
        assert (identity["identity"]["protocol"], identity["identity"]["torch"]) == (1, "1.5.1")
        for number in (3, "a", 1):
            process.stdin.write(json.dumps({"id": number, "do": "dance"}).encode() + b"\n")
            process.stdin.flush()
            reply = json.loads(replies.readline())
            assert reply == {"id": number, "failed": {"type": "ValueError", "message": "unknown request 'dance'", "trace": ""}}
        process.stdin.close()
        assert process.wait(10) == 0
        assert replies.read() == ""


def test_a_worker_asked_for_another_torch_says_which_it_is_and_answers_nothing(tmp_path: Path) -> None:
    with by_hand(tmp_path, asked="1.6.0") as (process, replies):
        assert json.loads(replies.readline())["identity"]["torch"] == "1.5.1"
        assert replies.read() == ""
        assert process.wait(10) == 0


def test_identity_says_what_computes(tmp_path: Path) -> None:
    with TorchRelease(miniature(tmp_path, "1.5.1")) as worker:
        assert worker.identity.keys() == {
            "torch", "git", "python", "numpy", "threads", "byteorder", "machine", "cpu_capability", "wheel_sha256", "cuda",
        }  # fmt: skip
        assert worker.identity["threads"] == 1


def test_what_cannot_be_carried_out_is_a_fault_of_the_harness(tmp_path: Path, works: Callable[[TorchRelease], bool]) -> None:
    with TorchRelease(miniature(tmp_path, "1.5.1")) as worker:
        for do, arguments, words in (
            ("dance", {}, "unknown request 'dance'"),
            (
                "observe",
                {"path": str(tmp_path / "gone.pt"), "family": "torchscript", "calls": [], "options": {}},
                "there is no file",
            ),
            ("observe", {}, "KeyError: 'path'"),
            ("probe", {"probe": str(tmp_path / "gone.py"), "name": "gone"}, "FileNotFoundError"),
        ):
            if do == "probe":
                assert "FileNotFoundError" in worker.request(do, **arguments)["result"]["error"]["type"]
                continue
            with pytest.raises(ReaderError, match=words) as caught:
                worker.request(do, **arguments)
            assert caught.value.code == "request-failed"
        with pytest.raises(CorpusError, match="not a regular file"):  # a directory of directories is no archive
            worker.request("observe", path=str(tmp_path), family="torchscript", calls=[], options={})
        assert works(worker)


def test_a_result_that_is_no_json_is_a_fault_and_not_a_crash(tmp_path: Path, works: Callable[[TorchRelease], bool]) -> None:
    script = tmp_path / "survey.py"
    script.write_text("def survey(torch):\n    return float('nan')\n", encoding="utf-8")
    with TorchRelease(miniature(tmp_path, "1.5.1")) as worker:
        with pytest.raises(ReaderError, match="ValueError"):
            worker.request("survey", script=str(script))
        assert works(worker)


# ------------------------------------------------------------------------------------------------------------- crashes

DEATHS: dict[str, tuple[str, dict[str, Any]]] = {
    "SIGSEGV": ("os.kill(os.getpid(), signal.SIGSEGV)", {"signal": "SIGSEGV"}),
    "SIGABRT": ("os.abort()", {"signal": "SIGABRT"}),
    "null": ("ctypes.string_at(0)", {"signal": "SIGSEGV"}),
    "nameless": ("os.kill(os.getpid(), 40)", {"signal": "signal 40"}),
    "exit": ("os._exit(3)", {"exit": 3}),
    "exit-0": ("os._exit(0)", {"exit": 0}),
    "closes-everything": ("os.closerange(3, 1000)", {"exit": 1}),
}


@pytest.mark.parametrize("stage", ["load", "call"])
@pytest.mark.parametrize("death", DEATHS)
def test_a_crash_is_one_observation_and_the_next_request_works(
    tmp_path: Path, works: Callable[[TorchRelease], bool], death: str, stage: str
) -> None:
    source, facts = DEATHS[death]
    hook = once(f"sys.stderr.write('last words'); sys.stderr.flush(); {source}")
    with TorchRelease(miniature(tmp_path, "1.5.1", **{f"at_{stage}": hook})) as worker:
        crashed = observe(worker, archive(tmp_path))["crashed"]
        # A process that loses its pipes cannot say any more how far it came.
        assert crashed["stage"] == ("load" if death == "closes-everything" and stage == "load" else stage)
        assert {key: crashed[key] for key in facts} == facts
        if death != "closes-everything":
            assert crashed["said"] == "last words"
        assert works(worker)


def test_a_crash_costs_milliseconds(tmp_path: Path) -> None:
    with TorchRelease(miniature(tmp_path, "1.5.1", at_load="os.abort()")) as worker:
        path = archive(tmp_path)
        began = time.monotonic()
        replies = [observe(worker, path) for _ in range(40)]
        assert time.monotonic() - began < 4
    assert all(reply["crashed"]["signal"] == "SIGABRT" for reply in replies)


def test_last_words_are_the_end_of_what_was_said_whatever_its_encoding(tmp_path: Path) -> None:
    hook = "os.write(1, b'x' * 5000); os.write(2, b'\\xff\\xfe the end'); os.abort()"
    with TorchRelease(miniature(tmp_path, "1.5.1", at_load=hook)) as worker:
        message = observe(worker, archive(tmp_path))["crashed"]["said"]
    assert message.endswith("x\ufffd\ufffd the end")
    assert 1900 < len(message) <= 2000


@pytest.mark.parametrize("stage", ["load", "call"])
def test_a_time_out_is_one_observation_and_leaves_no_process(
    tmp_path: Path, works: Callable[[TorchRelease], bool], stage: str
) -> None:
    with TorchRelease(miniature(tmp_path, "1.5.1", **{f"at_{stage}": once("time.sleep(60)")})) as worker:
        began = time.monotonic()
        reply = observe(worker, archive(tmp_path), timeout_s=0.5)
        assert time.monotonic() - began < 5
        assert reply == {"timed-out": {"timeout_s": 0.5, "stage": stage}}
        assert gone(int((worker._scratch / "flag").read_text()))
        assert works(worker)


def test_no_loop_survives_the_worker(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    with by_hand_hanging(tmp_path, flag) as process:
        deadline = time.monotonic() + 10
        while not (flag.exists() and flag.read_text()) and time.monotonic() < deadline:
            time.sleep(0.02)
        process.kill()
        process.wait()
        assert gone(int(flag.read_text()))


@contextmanager
def by_hand_hanging(tmp_path: Path, flag: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A worker in the middle of a request that does not end."""
    environment = miniature(tmp_path, "1.5.1", at_load=once("time.sleep(60)", repr(str(flag))))
    request = {"id": 1, "do": "observe", "path": str(archive(tmp_path)), "family": "torchscript", "calls": [], "options": {}}
    with (tmp_path / "replies").open("w") as replies:
        command: list[str | Path] = [environment.python, WORKER, str(replies.fileno()), environment.version]
        with subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[replies.fileno()], cwd=tmp_path) as process:
            assert process.stdin is not None
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            yield process


def gone(pid: int) -> bool:
    """Whether a process ends within ten seconds: it may have to start before it does, on a machine with much to do."""
    for _ in range(500):
        try:
            state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    return False


# ------------------------------------------------------------------------------------------- what torch says and throws


@pytest.mark.parametrize(
    "noise",
    [
        'print(\'{"id": 1, "result": 2}\'); sys.stdout.flush()',
        "os.write(1, b'\\x00\\xff\\n' * 100000)",
        "os.write(2, b'\\x1b[2J{')",
        "os.close(1); os.close(2)",
        "sys.stdout.close()",
        "os.dup2(os.open('/dev/null', os.O_WRONLY), 1); warnings.warn('a warning')",
        "os.close(0)",
    ],
)
def test_nothing_that_torch_prints_breaks_the_protocol(tmp_path: Path, works: Callable[[TorchRelease], bool], noise: str) -> None:
    with TorchRelease(miniature(tmp_path, "1.5.1", at_import="print('hello')", at_load=noise)) as worker:
        assert works(worker)
        assert works(worker)


def test_an_archive_that_asks_gets_no_answer_and_takes_no_request(tmp_path: Path, works: Callable[[TorchRelease], bool]) -> None:
    with TorchRelease(miniature(tmp_path, "1.5.1", at_load=once("input('name? ')"))) as worker:
        error = observe(worker, archive(tmp_path))["result"]["error"]
        assert (error["stage"], error["type"]) == ("load", "builtins.EOFError")
        assert works(worker)


@pytest.mark.parametrize("stage", ["load", "call"])
@pytest.mark.parametrize("name", ["RuntimeError", "SystemExit", "KeyboardInterrupt", "GeneratorExit", "BaseException"])
def test_whatever_is_raised_is_a_result(tmp_path: Path, name: str, stage: str) -> None:
    with TorchRelease(miniature(tmp_path, "1.5.1", **{f"at_{stage}": f"raise {name}('no')"})) as worker:
        result = observe(worker, archive(tmp_path))["result"]
    error = result["error"] if stage == "load" else result["calls"][0]["second"]["error"]
    assert error == {"stage": stage, "type": f"builtins.{name}", "message": "no"}


def test_messages_can_be_printed_whatever_is_in_them(tmp_path: Path) -> None:
    message = "'\\x1b[31m' + chr(0xDCFF) + ' 中 at 0x7f00deadbeef in ' + os.getcwd()"
    hook = f"warnings.warn({message})\nraise ValueError({message})"
    with TorchRelease(miniature(tmp_path, "1.5.1", at_load=hook)) as worker:
        result = observe(worker, archive(tmp_path))["result"]
    assert result["error"]["message"] == f"\x1b[31m? 中 at 0x7f00deadbeef in {tmp_path}"
    assert result["warnings"] == [["UserWarning", result["error"]["message"]]]


def test_torch_is_told_no_more_than_the_name_of_the_archive(tmp_path: Path) -> None:
    folder = tmp_path / "somewhere"
    folder.mkdir()
    with TorchRelease(miniature(tmp_path, "1.5.1", at_load="raise ValueError(os.getcwd())")) as worker:
        assert observe(worker, archive(folder))["result"]["error"]["message"] == str(folder)
    with TorchRelease(miniature(tmp_path, "1.5.1")) as worker:
        broken = folder / "broken.pt"
        broken.write_bytes(b"PK")
        refused = observe(worker, broken)["result"]["error"]
    assert refused == {"stage": "load", "type": "zipfile.BadZipFile", "message": "File is not a zip file"}


def test_a_load_option_that_a_release_lacks_is_no_refusal(tmp_path: Path) -> None:
    with TorchRelease(miniature(tmp_path, "1.5.1")) as worker:
        path = archive(tmp_path, {"epoch": 3}, "torch-save")
        assert load(worker, path, weights_only=True)["result"] == {"value": {"dict": [["epoch", 3]]}}
        for option, value in (
            ("mmap", True),
            ("mmap_flags", "private"),
            ("endianness", "little"),
            ("crc32", False),
            ("calculate_storage_offsets", True),
            ("debug", True),
        ):
            assert load(worker, path, **{option: value})["result"] == {"no_such_option": option}
        assert observe(worker, archive(tmp_path), mmap=True)["result"] == {"no_such_option": "mmap (family torchscript)"}
        with pytest.raises(ReaderError, match="unknown load option 'mnap'"):
            load(worker, path, mnap=True)


def test_a_family_without_a_loader_is_refused_by_name(tmp_path: Path) -> None:
    with TorchRelease(miniature(tmp_path, "1.5.1")) as worker:
        for family in ("mobile", "package"):
            result = worker.request("observe", path=str(archive(tmp_path)), family=family, calls=[], options={})["result"]
            assert result["error"]["type"] == "__main__.NoLoader"
        with pytest.raises(ReaderError, match="unknown family 'tensorflow'"):
            worker.request("observe", path=str(archive(tmp_path)), family="tensorflow", calls=[], options={})


# ------------------------------------------------------------------------------------------------------------- batches

MISBEHAVIOUR = {
    "nothing": "pass",
    "crash": "sys.stderr.write('last words'); sys.stderr.flush(); os.abort()",
    "exit": "os._exit(0)",
    "time-out": "time.sleep(60)",
    "error": "raise ValueError('no')",
    "warning": "warnings.warn('careful')",
}


def archives(folder: Path, count: int) -> list[Path]:
    """Archives of numbers, the first one's first."""
    paths = []
    for number in range(count):
        (folder / str(number)).mkdir(exist_ok=True)
        paths.append(archive(folder / str(number), number, "torch-save"))
    return paths


def load_all(worker: TorchRelease, paths: list[Path], timeout_s: float = 20) -> list[dict[str, Any]]:
    """What one batch says of archives."""
    requests: list[dict[str, Any]] = [
        {"path": str(path), "family": "torch-save", "calls": [], "options": {"weights_only": True}} for path in paths
    ]
    return worker.request_many("observe", requests, timeout_s=timeout_s)


@pytest.mark.parametrize("places", [(0,), (2,), (4,), (1, 2), (0, 1, 2, 3, 4)], ids=str)
@pytest.mark.parametrize("what", MISBEHAVIOUR)
@pytest.mark.sampled(3)
def test_a_batch_gives_the_replies_of_single_requests(tmp_path: Path, what: str, places: tuple[int, ...]) -> None:
    hook = f"if value in {places}:\n    {MISBEHAVIOUR[what]}\n"
    limit = 0.5 if what == "time-out" else 20
    paths = archives(tmp_path, 5)
    with TorchRelease(miniature(tmp_path, "1.5.1", at_load=hook)) as worker:
        singly = [
            worker.request(
                "observe",
                path=str(path),
                family="torch-save",
                calls=[],
                options={"weights_only": True},
                timeout_s=limit,
            )
            for path in paths
        ]
        together = load_all(worker, paths, limit)
    for reply in singly:
        reply.pop("id", None)
    assert together == singly
    plain = [reply == {"result": {"value": number}} for number, reply in enumerate(together)]
    assert plain == [what == "nothing" or number not in places for number in range(5)]


def test_values_share_a_process_until_a_reply_leaves_a_trace(tmp_path: Path) -> None:
    hook = (
        "with open(os.environ['TMPDIR'] + '/seen', 'a') as stream:\n    stream.write('%d %d\\n' % (value, os.getpid()))\n"
        "if value == 1:\n    raise ValueError('no')\n"
        "if value == 3:\n    os._exit(1)\n"
        "if value == 5:\n    warnings.warn('careful')\n"
    )
    with TorchRelease(miniature(tmp_path, "1.5.1", at_load=hook)) as worker:
        load_all(worker, archives(tmp_path, 8))
        loads = [line.split() for line in (worker._scratch / "seen").read_text().splitlines()]
    forks: dict[str, int] = {}
    # What dies or warns is asked again, the first in a process of its own. Nothing comes after it there, nor after a refusal.
    assert [(int(number), forks.setdefault(pid, len(forks))) for number, pid in loads] == [
        (0, 0), (1, 0),
        (2, 1), (3, 1),
        (3, 2),
        (4, 3), (5, 3),
        (5, 4),
        (6, 5), (7, 5),
    ]  # fmt: skip


def test_a_refusal_changes_nothing_for_the_next_of_its_batch(tmp_path: Path) -> None:
    hook = (
        "if 'PENDING' in os.environ:\n    raise RuntimeError('found negative index')\n"
        "if value == 1:\n    os.environ['PENDING'] = 'sparse'\n    raise ValueError('interrupted')\n"
    )
    with TorchRelease(miniature(tmp_path, "1.5.1", at_load=hook)) as worker:
        replies = load_all(worker, archives(tmp_path, 4))
    assert ["value" in reply["result"] for reply in replies] == [True, False, True, True]


def test_what_warned_changes_nothing_for_the_next_of_its_batch(tmp_path: Path) -> None:
    hook = (
        "value = (value, BEHAVIOUR.get('spoiled', 0))\n"
        "if value[0] == 1:\n    BEHAVIOUR['spoiled'] = 1\n    warnings.warn('careful')\n"
    )
    with TorchRelease(miniature(tmp_path, "1.5.1", at_load=hook)) as worker:
        replies = load_all(worker, archives(tmp_path, 4))
    assert [reply["result"].get("value") for reply in replies[2:]] == [{"tuple": [2, 0]}, {"tuple": [3, 0]}]


def test_an_empty_batch_has_no_replies(tmp_path: Path, works: Callable[[TorchRelease], bool]) -> None:
    with TorchRelease(miniature(tmp_path, "1.5.1")) as worker:
        assert load_all(worker, []) == []
        assert works(worker)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_fault_in_a_batch_is_a_fault_of_the_harness(tmp_path: Path, works: Callable[[TorchRelease], bool], place: int) -> None:
    paths = archives(tmp_path, 3)
    paths[place].unlink()
    with TorchRelease(miniature(tmp_path, "1.5.1")) as worker:
        with pytest.raises(ReaderError, match="there is no file") as caught:
            load_all(worker, paths)
        assert caught.value.code == "request-failed"
        assert works(worker)


# ------------------------------------------------------------------------------------------------- before it serves


def test_a_release_is_warmed_up_before_it_serves(tmp_path: Path) -> None:
    hook = (
        "once, trace, read = jit.CompilationUnit.once, jit.trace, jit.load\nnote = open(os.environ['TMPDIR'] + '/said', 'a', 1).write\n"
        "jit.CompilationUnit.once = lambda unit, x: (note('run\\n'), once(unit, x))[1]\n"
        "jit.trace = lambda *args: (note('trace\\n'), trace(*args))[1]\n"
        "jit.load = lambda path: (note('load\\n'), read(path))[1]\n"
    )
    with TorchRelease(miniature(tmp_path, "1.5.1", at_import=hook)) as worker:
        assert (worker._scratch / "said").read_text().split() == ["run", "run", "run", "trace", "load"]


@pytest.mark.parametrize("name", ["CompilationUnit", "trace", "load"])
def test_a_release_that_cannot_be_warmed_up_does_not_serve(tmp_path: Path, name: str) -> None:
    environment = miniature(tmp_path, "1.5.1", at_import=f"del jit.{name}")
    with pytest.raises(ReaderError, match=f"died: AttributeError.*{name}") as caught, TorchRelease(environment):
        pass
    assert caught.value.code == "worker-died"


def test_archives_cannot_tell_where_the_worker_lies_or_how_long_it_is(tmp_path: Path) -> None:
    frames = "[(f.f_code.co_filename, f.f_lineno) for f in frames()]"
    body = (
        "import sys\n\n\ndef frames():\n    frame = sys._getframe(2)\n"
        "    while frame is not None:\n        yield frame\n        frame = frame.f_back\n"
    )
    with TorchRelease(miniature(tmp_path, "1.5.1")) as worker:
        results = [tuple(frame["tuple"]) for frame in encoded(tmp_path, frames, worker, body)]
    of_the_worker = [frame for frame in results if "worker" in frame[0]]
    assert len(of_the_worker) > 3
    assert set(of_the_worker) == {("worker.py", 1)}
    assert not [name for name, _ in results if str(WORKER.parent) in name]


# -------------------------------------------------------------------------------------------------------------- values


def encoded(tmp_path: Path, source: str, worker: TorchRelease, body: str = "") -> Any:
    """What the worker says of the value of an expression."""
    probe = tmp_path / "value.py"
    probe.write_text(f"{body}\n\n\ndef probe():\n    return {source}\n", encoding="utf-8")
    reply = worker.request("probe", probe=str(probe), name="value")
    assert "error" not in reply["result"], reply
    return reply["result"]["value"]


PLAIN = {
    "None": None,
    "True": True,
    "2 ** 70": 2**70,
    "'é\\ud800'": "é\ud800",
    "1.5": {"float": 1.5},
    "-0.0": {"float": -0.0},
    "float('nan')": {"float": "nan"},
    "float('inf')": {"float": "inf"},
    "-float('inf')": {"float": "-inf"},
    "complex(-0.0, float('nan'))": {"complex": [-0.0, "nan"]},
    "[1, (2, [])]": [1, {"tuple": [2, []]}],
    "{'b': 1, 'a': {2: None}}": {"dict": [["b", 1], ["a", {"dict": [[2, None]]}]]},
    "b'\\xff'": {"object": {"type": "bytes", "state": "/w=="}},
    "collections.OrderedDict(z=1, a=2)": {"object": {"type": "collections.OrderedDict", "state": {"dict": [["z", 1], ["a", 2]]}}},
    "collections.defaultdict(list, a=[1])": {"object": {"type": "collections.defaultdict", "state": {"dict": [["a", [1]]]}}},
    "Point(1, 2.0)": {"object": {"type": "value.Point", "state": [1, {"float": 2.0}]}},
    "{3, 1, 'b', (2,)}": {"object": {"type": "builtins.set", "state": ["b", 1, 3, {"tuple": [2]}]}},
    "frozenset()": {"object": {"type": "builtins.frozenset", "state": []}},
    "Colour.RED": {"object": {"type": "value.Colour", "state": "RED"}},
    "Level.LOW": {"object": {"type": "value.Level", "state": "LOW"}},
    "Plain(2, x=1)": {"object": {"type": "value.Plain", "state": {"dict": [["a", 2], ["x", 1]]}}},
    "len": {"object": {"type": "builtins.builtin_function_or_method", "state": "builtins.len"}},
    "Plain": {"object": {"type": "builtins.type", "state": "value.Plain"}},
    "Plain.__init__": {"object": {"type": "builtins.function", "state": "value.Plain.__init__"}},
    "threading.Lock()": {"object": {"type": "_thread.lock", "state": "<opaque>"}},
}
CLASSES = """
import collections, datetime, decimal, enum, threading

Point = collections.namedtuple("Point", "x y")
Colour = enum.Enum("Colour", "RED BLUE")
Level = enum.IntEnum("Level", "LOW HIGH")


class Plain:
    def __init__(self, a, **more):
        self.a = a
        self.__dict__.update(more)


class Slots:
    __slots__ = ("a",)

    def __init__(self, a):
        self.a = a


class Number(int):
    pass


def numbered(value, remark):
    number = Number(value)
    number.remark = remark
    return number


def cycle():
    one, two = [1], {}
    one.append(two)
    two["back"] = one
    return one, one


def looped():
    item = Plain(1)
    item.a = item
    return item
"""


def test_plain_and_unusual_values(tmp_path: Path) -> None:
    with TorchRelease(miniature(tmp_path, "1.5.1"), seed=1) as worker:
        message = encoded(tmp_path, f"[{', '.join(PLAIN)}]", worker, CLASSES)
    # As text, since -0.0 == 0.0.
    assert json.dumps(message, sort_keys=True) == json.dumps(list(PLAIN.values()), sort_keys=True)


def test_cycles_end_and_repetitions_are_no_cycles(tmp_path: Path) -> None:
    with TorchRelease(miniature(tmp_path, "1.5.1")) as worker:
        back = {"object": {"type": "builtins.list", "state": "<cycle>"}}
        assert encoded(tmp_path, "cycle()", worker, CLASSES) == {"tuple": [[1, {"dict": [["back", back]]}]] * 2}
        state = {"dict": [["a", {"object": {"type": "value.Plain", "state": "<cycle>"}}]]}
        assert encoded(tmp_path, "looped()", worker, CLASSES) == {"object": {"type": "value.Plain", "state": state}}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Slots(1)", "Slots(2)"),
        ("Number(1)", "Number(2)"),
        ("numbered(1, 'a')", "numbered(2, 'a')"),
        ("numbered(1, 'a')", "numbered(1, 'b')"),
        ("range(3)", "range(4)"),
        ("bytearray(b'a')", "bytearray(b'b')"),
        ("decimal.Decimal('1.5')", "decimal.Decimal('1.50')"),
        ("datetime.date(2020, 1, 2)", "datetime.date(2020, 1, 3)"),
        ("collections.deque([1])", "collections.deque([2])"),
        ("slice(1, 2)", "slice(1, 3)"),
        ("Slots", "Plain"),
        ("len", "repr"),
        ("Level.LOW", "Level.HIGH"),
        ("{1, 2}", "{1, 3}"),
        ("...", "NotImplemented"),
    ],
)
def test_objects_that_differ_are_told_apart(tmp_path: Path, one: str, other: str) -> None:
    with TorchRelease(miniature(tmp_path, "1.5.1")) as worker:
        first, same, second = encoded(tmp_path, f"[{one}, {one}, {other}]", worker, CLASSES)
    assert first == same
    assert first != second


def test_huge_and_non_finite_results_pass(tmp_path: Path) -> None:
    hook = "value = (Tensor([float('nan'), -float('inf')] * 150000), float('nan'), 'x' * 1000000)"
    with TorchRelease(miniature(tmp_path, "1.5.1", at_call=hook)) as worker:
        value = observe(worker, archive(tmp_path))["result"]["calls"][0]["second"]["value"]["tuple"]
    assert value[0]["tensor"]["shape"] == [300000]
    assert len(value[0]["tensor"]["bytes"]) == 4 * 4 * 300000 // 3
    assert value[1] == {"float": "nan"}
    assert len(value[2]) == 1000000


def test_each_call_is_made_twice_with_fresh_inputs_and_state_is_seen_before_and_after(tmp_path: Path) -> None:
    method = "lambda items: items.append(len(items)) or self.state.update(weight=Tensor([9])) or items"
    product: Any = ({}, {"forward": method})
    with TorchRelease(miniature(tmp_path, "1.5.1")) as worker:
        result = observe(worker, archive(tmp_path, product), [5])["result"]
    assert result["state"] == {"dict": []}
    assert [key for key, _ in result["state_after"]["dict"]] == ["weight"]
    assert result["calls"][0]["first"] == result["calls"][0]["second"] == {"value": [5, 1], "inputs": [[5, 1]]}


# ------------------------------------------------------------------------------------------------------- real releases


def per_channel(scales: str, zeros: str, axis: int = 0) -> str:
    """An expression that quantizes by channels."""
    return f"torch.quantize_per_channel(torch.ones(2, 2), torch.tensor({scales}), torch.tensor({zeros}), {axis}, torch.qint8)"


BOTH = [
    pytest.param("2.13.0", marks=pytest.mark.real_torch("2.13.0")),
    pytest.param("1.2.0", marks=pytest.mark.real_torch("1.2.0")),
]


@pytest.fixture(scope="module")
def real() -> Iterator[Callable[[str], TorchRelease]]:
    """Workers of real releases, each started once."""
    started: dict[str, TorchRelease] = {}

    def start(version: str) -> TorchRelease:
        if version not in started:
            environment = Environments().get(version)
            assert environment is not None
            started[version] = TorchRelease(environment).__enter__()
        return started[version]

    yield start
    for worker in started.values():
        worker.__exit__(None, None, None)


ROUND_TRIP = '''
import json
import struct
import sys

import torch


def bits(tensor):
    return json.dumps(worker.Encoder(torch).encode(tensor))


def values():
    base = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4)
    ints = torch.tensor([7, -7, 2 ** 53 + 1, -(2 ** 63)])
    negative_nan = torch.tensor([struct.unpack("<i", b"\\x01\\x00\\xc0\\xff")[0]], dtype=torch.int32).numpy().view("float32")
    return {
        "plain": [None, True, 2 ** 70, -0.0, float("nan"), complex(1, -2), "x", (1, [2.5]), {"a": 1, 2: (None,)}],
        "views that share": (base, base[0], base[:, 1], base.permute(2, 0, 1), base[1, 2, 3], base.reshape(-1)[5:9]),
        "overlapping": (ints[:2].expand(3, 2), ints.as_strided((3, 2), (1, 1)), ints),
        "view before its base grows": (ints[1:2], ints[2:], ints),
        "flipped strides": ints[::2],
        "0-dim": torch.tensor(-7),
        "empty": (torch.zeros(0), torch.zeros(0, 3, dtype=torch.int64), torch.zeros(2, 0)),
        "special floats": torch.tensor([0.0, -0.0, float("nan"), float("inf"), -float("inf"), 1e-45, 3.4028235e38]),
        "NaN with a payload": torch.from_numpy(negative_nan.copy()),
        "half": torch.tensor([65504.0, -6e-8]).half(),
        "double": torch.tensor([5e-324, 0.1], dtype=torch.float64),
        "bool": torch.tensor([True, False, True])[1:],
        "small integers": [torch.tensor([0, 255], dtype=torch.uint8), torch.tensor([-128], dtype=torch.int8)],
        "requires grad": torch.ones(2, requires_grad=True),
        "others": [torch.float16, torch.device("cpu")],
    }


def shares():
    """Decoded views really are views."""
    base = torch.zeros(6)
    sent = worker.Encoder(torch).encode((base[4:], base.as_strided((3, 2), (1, 1)), base))
    tail, overlapping, whole = worker.Decoder(torch).decode(sent)
    whole[4] = 5
    overlapping[0, 0] = 7
    return tail[0].item() == 5 and whole[0].item() == 7 and overlapping.stride() == (1, 1)


def survey(_):
    global worker
    worker = sys.modules["__main__"]
    found = {}
    for name, value in values().items():
        first = worker.Encoder(torch).encode(value)
        wire = json.loads(json.dumps(first, allow_nan=False))
        found[name] = bits(worker.Decoder(torch).decode(wire)) == json.dumps(first)
    found["shares"] = shares()
    return found
'''


@pytest.mark.parametrize("version", BOTH)
def test_values_come_back_as_they_were_sent(real: Callable[[str], TorchRelease], tmp_path: Path, version: str) -> None:
    script = tmp_path / "survey.py"
    script.write_text(ROUND_TRIP, encoding="utf-8")
    result = real(version).request("survey", script=str(script))["result"]
    assert len(result) == 16
    assert [name for name, holds in result.items() if not holds] == []


@pytest.mark.parametrize("version", BOTH)
def test_facts_of_tensors(real: Callable[[str], TorchRelease], tmp_path: Path, version: str) -> None:
    worker, body = real(version), "import torch\n\nbase = torch.arange(6, dtype=torch.int16).reshape(2, 3)"
    whole, column, other = encoded(tmp_path, "[base, base[:, 1], torch.ones(2, requires_grad=True)]", worker, body)
    assert whole == {
        "tensor": {"dtype": "int16", "shape": [2, 3], "strides": [3, 1], "bytes": "AAABAAIAAwAEAAUA", "storage": 0, "offset": 0}
    }
    assert column == {"tensor": {"dtype": "int16", "shape": [2], "strides": [3], "bytes": "AQAEAA==", "storage": 0, "offset": 1}}
    assert (other["tensor"]["storage"], other["tensor"]["requires_grad"]) == (1, True)
    empty = encoded(tmp_path, "torch.zeros(0, 3)", worker, "import torch")
    assert empty == {"tensor": {"dtype": "float32", "shape": [0, 3], "strides": [3, 1], "bytes": ""}}
    parameter = encoded(tmp_path, "torch.nn.Parameter(torch.zeros(1))", worker, "import torch")
    assert parameter["tensor"]["class"] == "torch.nn.parameter.Parameter"


@pytest.mark.parametrize("version", BOTH)
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("numpy.float64(1.5)", "numpy.float64(2.5)"),
        ("numpy.arange(3)", "numpy.array([0, 1, 3])"),
        ("torch.tensor([1, 2]).storage()", "torch.tensor([1, 3]).storage()"),
        ("torch.Size([1, 2])", "torch.Size([1, 3])"),
        ("torch.sparse_coo_tensor([[0]], [1.0], (2,))", "torch.sparse_coo_tensor([[1]], [1.0], (2,))"),
        (
            "torch.quantize_per_tensor(torch.ones(2), 0.5, 0, torch.quint8)",
            "torch.quantize_per_tensor(torch.ones(2), 0.5, 1, torch.quint8)",
        ),
        ("numpy.zeros(2, 'f4')", "numpy.zeros(2, 'f8')"),
        (
            "torch.sparse_coo_tensor([[0, 0]], [1.0, 2.0], (2,))",
            "torch.sparse_coo_tensor([[0]], [3.0], (2,))",
        ),
        ("torch.strided", "torch.sparse_coo"),
        ("torch.optim.SGD", "torch.optim.Adam"),
    ],
)
def test_torch_and_numpy_objects_that_differ_are_told_apart(
    real: Callable[[str], TorchRelease], tmp_path: Path, version: str, one: str, other: str
) -> None:
    if version == "1.2.0" and "quantize_per_tensor" in one:
        one, other = (text.replace("quantize_per_tensor", "quantize_linear") for text in (one, other))
    first, same, second = encoded(tmp_path, f"[{one}, {one}, {other}]", real(version), "import numpy\nimport torch")
    first, same, second = (re.sub(r'"storage": \d+', "", json.dumps(value)) for value in (first, same, second))
    assert first == same
    assert first != second


@pytest.mark.real_torch("2.13.0")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (per_channel("[0.5, 0.25]", "[1, 2]"), per_channel("[0.5, 0.125]", "[1, 2]")),
        (per_channel("[0.5, 0.25]", "[1, 2]"), per_channel("[0.5, 0.25]", "[1, 3]")),
        (per_channel("[1.0, 1.0]", "[0, 0]"), per_channel("[1.0, 1.0]", "[0, 0]", axis=1)),
        ("torch.eye(2).to_sparse_csr()", "torch.eye(2).to_sparse_csc()"),
        ("torch.eye(2).to_sparse_bsr((1, 2))", "torch.eye(2).to_sparse_bsr((2, 1))"),
        (
            "torch.nested.nested_tensor([torch.ones(1), torch.ones(2)])",
            "torch.nested.nested_tensor([torch.ones(2), torch.ones(1)])",
        ),
        ("torch.ones(2).untyped_storage()", "torch.zeros(2).untyped_storage()"),
        ("torch.ones(2).to(torch.float8_e5m2)", "torch.zeros(2).to(torch.float8_e5m2)"),
        ("torch.ones(2).to(torch.uint16)", "torch.ones(2).to(torch.uint32)"),
    ],
)
def test_newer_kinds_of_tensors_are_told_apart(real: Callable[[str], TorchRelease], tmp_path: Path, one: str, other: str) -> None:
    first, same, second = encoded(tmp_path, f"[{one}, {one}, {other}]", real("2.13.0"), "import torch")
    first, same, second = (re.sub(r'"storage": \d+', "", json.dumps(value)) for value in (first, same, second))
    assert first == same
    assert first != second


@pytest.mark.parametrize("version", BOTH)
def test_a_storage_is_the_same_value_whatever_its_class_is_called(
    real: Callable[[str], TorchRelease], tmp_path: Path, version: str
) -> None:
    message = encoded(tmp_path, "torch.tensor([1, -2], dtype=torch.int16).storage()", real(version), "import torch")
    body = {"dtype": "int16", "shape": [2], "strides": [1], "bytes": "AQD+/w==", "storage": 0, "offset": 0}
    assert message == {"object": {"type": "torch.Storage", "state": {"tensor": body}}}


@pytest.mark.real_torch("1.2.0")
def test_a_dtype_that_a_release_lacks_is_named(real: Callable[[str], TorchRelease], tmp_path: Path) -> None:
    body = {"dtype": "float8_e5m2", "shape": [1], "strides": [1], "bytes": "AA=="}
    decoding = f"""
import sys

import torch

worker = sys.modules["__main__"]


def attempt():
    try:
        worker.Decoder(torch).decode({{"tensor": {body}}})
    except worker.NoSuchDtype as error:
        return str(error)
"""
    assert encoded(tmp_path, "attempt()", real("1.2.0"), decoding) == "this release has no dtype torch.float8_e5m2"


@pytest.mark.real_torch("2.13.0")
def test_parts_of_unusual_tensors_do_not_look_shared(real: Callable[[str], TorchRelease], tmp_path: Path) -> None:
    source = "[torch.quantize_per_tensor(torch.ones(300), 0.5, n, torch.quint8) for n in range(20)]"
    message = encoded(tmp_path, source, real("2.13.0"), "import torch")
    storages = [item["object"]["state"]["dict"][0][1]["tensor"]["storage"] for item in message]
    assert storages == list(range(20))


ZIP, STREAM = FIXTURES / "torch-1.6.0" / "state_dict.pt", FIXTURES / "torch-1.5.1" / "state_dict.pt"


def weight(reply: dict[str, Any]) -> list[float]:
    """The first tensor of the recipe state_dict, as little-endian floats."""
    model = dict(reply["result"]["value"]["dict"])["model"]["object"]["state"]["dict"]
    raw = base64.b64decode(dict(model)["layer.weight"]["tensor"]["bytes"])
    return list(struct.unpack("<6f", raw))


@pytest.mark.real_torch("2.13.0")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"weights_only": True},
        {"weights_only": False},
        {"mmap": True},
        {"mmap": True, "mmap_flags": "private"},
        {"mmap": True, "mmap_flags": "shared"},
        {"endianness": "little"},
        {"endianness": "native"},
        {"crc32": False},
        {"crc32": True},
        {"calculate_storage_offsets": True, "mmap": True},
        {"calculate_storage_offsets": True, "mmap": True, "debug": True},
        {"debug": False},
    ],
    ids=str,
)
def test_every_load_option_is_taken(real: Callable[[str], TorchRelease], options: dict[str, Any]) -> None:
    result = weight(load(real("2.13.0"), FIXTURES / "torch-2.13.0" / "state_dict.pt", **options))
    assert result[:3] == [0.5, -0.0, math.inf]


@pytest.mark.real_torch("2.13.0")
def test_load_options_have_their_effect_and_end_with_their_request(real: Callable[[str], TorchRelease]) -> None:
    worker = real("2.13.0")
    plain = load(worker, ZIP)["result"]
    swapped = weight(load(worker, ZIP, endianness="big"))  # 1.6 wrote no record that says its byte order
    assert swapped[0] == pytest.approx(8.8e-44, rel=0.01)
    assert load(worker, ZIP)["result"] == plain
    refused = load(worker, STREAM, mmap=True)["result"]["error"]
    assert refused["type"] == "builtins.RuntimeError"
    assert "mmap" in refused["message"]
    whole = FIXTURES / "torch-2.13.0" / "whole_module.pt"
    assert "error" in load(worker, whole, weights_only=True)["result"]
    assert "value" in load(worker, whole, weights_only=False)["result"]
    assert load(worker, STREAM)["result"] == load(worker, STREAM)["result"]


@pytest.mark.real_torch("1.2.0")
def test_an_old_release_says_which_option_it_lacks(real: Callable[[str], TorchRelease]) -> None:
    path = FIXTURES / "torch-1.2.0" / "state_dict.pt"
    assert weight(load(real("1.2.0"), path))[0] == 0.5
    for option, value in (
        ("weights_only", True),
        ("mmap", True),
        ("mmap_flags", "private"),
        ("endianness", "big"),
        ("crc32", True),
        ("calculate_storage_offsets", True),
        ("debug", True),
    ):
        assert load(real("1.2.0"), path, **{option: value})["result"] == {"no_such_option": option}


@pytest.mark.parametrize("version", BOTH)
@pytest.mark.parametrize("recipe", ["control_flow", "module_with_buffers", "whole_module", "state_dict"])
def test_no_archive_holds_a_path(real: Callable[[str], TorchRelease], tmp_path: Path, version: str, recipe: str) -> None:
    worker, path = real(version), tmp_path / "made.pt"
    script = FIXTURES / "recipes" / f"{recipe}.py"
    reply = worker.request("produce", recipe=str(script), name=recipe, path=str(path), timeout_s=120)
    assert "golden" in reply["result"]
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as stream:
            records = {name: stream.read(name) for name in stream.namelist()}
    else:
        records = {"all": path.read_bytes()}
    places = (worker.environment.prefix, tmp_path, FIXTURES.parent, Path.home(), "site-packages", "/tmp", WORKER.parent)
    for name, data in records.items():
        for place in places:
            assert str(place).encode() not in data, f"{place} in {name}"


PREPARED = """
import json, os, signal, sys
sys.path.insert(0, sys.argv[1])
import worker
worker.EXPORTED_NEEDS = ("needed_by_exported", "not_in_this_release")
def observe(torch, request, progress):
    return {"imported": "needed_by_exported" in sys.modules, "parent": os.getppid()}
prepared = worker.Prepared(None, {"observe": observe})
first, second = (prepared.ask({"do": "observe"})["result"] for _ in range(2))
alone = worker.serve_one(None, observe, {"do": "observe"})["result"]
os.kill(first["parent"], signal.SIGKILL)
print(json.dumps([first, second, alone, os.getpid(), prepared.ask({"do": "observe"})]))
"""


def test_exported_programs_are_read_by_forks_of_a_process_that_has_imported_what_they_need(tmp_path: Path) -> None:
    (tmp_path / "needed_by_exported.py").write_text("", encoding="utf-8")
    command = [sys.executable, "-c", PREPARED, str(WORKER.parent)]
    ended = subprocess.run(
        command, capture_output=True, env={**os.environ, "PYTHONPATH": str(tmp_path)}, timeout=60, check=True, encoding="utf-8"
    )
    first, second, alone, server, after = json.loads(ended.stdout)
    assert first == second == {"imported": True, "parent": first["parent"]}
    assert first["parent"] != server
    assert alone == {"imported": False, "parent": server}, "what the imports register reaches no other archive"
    assert after is None, "where the process has ended, the server itself answers"
