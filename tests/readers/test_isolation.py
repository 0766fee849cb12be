"""What a release's process cannot access, and what happens if the machine cannot isolate it."""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.inside.test_worker import archive, gone, load, observe
from tests.miniatures import miniature
from torch_compat.errors import ReaderError, Untrusted
from torch_compat.readers import isolation as module
from torch_compat.readers import torch_release
from torch_compat.readers.isolation import Isolation, isolation, trust_everything, trust_nothing, widened
from torch_compat.readers.torch_release import TorchRelease

REPOSITORY = Path(__file__).parents[2]
NONE = Isolation(network=False, home=False, reasons={"network": "no seccomp", "home": "no Landlock"})
needs_isolation = pytest.mark.skipif(
    not isolation().whole, reason=f"this machine cannot isolate a process: {isolation()}"
)  # what else is tested here needs no particular kernel


@pytest.fixture
def not_isolated(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that cannot isolate anything."""
    monkeypatch.setattr(module, "_probe", lambda _: NONE)


def asked(tmp_path: Path, body: str, **variables: Any) -> Any:
    """What a function body gives that runs beside the torch of a worker; ``variables`` are its globals."""
    script = tmp_path / "script.py"
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    script.write_text(
        f"import ctypes, os, socket, subprocess\n{'; '.join(f'{name} = {value!r}' for name, value in variables.items())}\n\n\n"
        f"def survey(torch):\n{lines}\n",
        encoding="utf-8",
    )
    with TorchRelease(miniature(tmp_path / "cache", "1.5.1")) as worker:
        return worker.request("survey", script=str(script))["result"]


def refused(tmp_path: Path, statement: str, **variables: Any) -> str:
    """The error that a statement meets there; empty if it meets none."""
    body = f"try:\n    {statement}\nexcept OSError as error:\n    return type(error).__name__\nreturn ''"
    return str(asked(tmp_path, body, **variables))


# -------------------------------------------------------------------------------------------------------- what it does not see


def test_no_variable_of_the_user_reaches_a_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "PIP_INDEX_URL", "HTTPS_PROXY", "SSH_AUTH_SOCK", "LD_PRELOAD", "MINE"):
        monkeypatch.setenv(name, "secret")
    history = asked(tmp_path, "return dict(os.environ)")
    assert "secret" not in history.values()
    ours = {"PATH", "LANG", "LC_ALL", "USER", "LOGNAME", "HOME", "TMPDIR", "TORCH_HOME", "PYTHONHASHSEED", "MALLOC_PERTURB_"}
    ours |= {"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", *torch_release.DETERMINISM}
    of_the_shell_that_starts_the_miniature = {"PWD", "OLDPWD", "SHLVL", "_", "PYTHONPATH", "MINIATURE_TORCH"}
    assert history.keys() - of_the_shell_that_starts_the_miniature == ours


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="no /proc, so no process shows its variables")
@needs_isolation
def test_the_variables_of_the_process_that_started_it_cannot_be_read(tmp_path: Path) -> None:
    assert refused(tmp_path, "open('/proc/%d/environ' % PARENT).read()", PARENT=os.getpid()) == "PermissionError"


def test_the_home_is_an_empty_folder_that_is_gone_afterwards(tmp_path: Path) -> None:
    result = asked(tmp_path, "return [os.path.expanduser('~'), os.getcwd(), os.listdir('.')]")
    assert result[0] == result[1]
    assert result[2] == []
    assert not Path(result[0]).exists()
    assert not Path(result[0]).parent.exists()


@needs_isolation
@pytest.mark.parametrize(
    "statement",
    [
        "open(HOME + '/.ssh/id').read()",
        "os.listdir(HOME)",
        "open(HOME + '/.ssh/id', 'w')",
        "open(HOME + '/new', 'w')",
        "os.truncate(HOME + '/.ssh/id', 0)",
        "os.chmod(HOME + '/.ssh/id', 0o777)",
        "os.chmod(HOME, 0o777)",
        "os.utime(HOME + '/.ssh/id')",
        "os.setxattr(HOME + '/.ssh/id', 'user.a', b'b')",
        "os.unlink(HOME + '/.ssh/id')",
        "os.rename(HOME + '/.ssh', HOME + '/.other')",
        "os.link(HOME + '/.ssh/id', 'id')",
        "os.mkdir(HOME + '/new')",
        "os.symlink(HOME + '/.ssh/id', 'id'); open('id').read()",
        "subprocess.run(['/bin/cat', HOME + '/.ssh/id'], check=True, stderr=subprocess.DEVNULL).stdout or os.listdir(HOME)",
    ],
)
def test_the_home_cannot_be_reached_by_its_own_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str) -> None:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id").write_text("secret")
    monkeypatch.setenv("HOME", str(home))
    body = f"try:\n    {statement}\nexcept (OSError, subprocess.CalledProcessError) as error:\n    return type(error).__name__\nreturn ''"
    assert asked(tmp_path, body, HOME=str(home)) in {"PermissionError", "CalledProcessError", "OSError"}  # a link is EXDEV
    assert [path.name for path in home.iterdir()] == [".ssh"]
    assert (home / ".ssh" / "id").read_text() == "secret"


@needs_isolation
def test_a_release_inside_the_home_starts_and_reads_nothing_else_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "cache" / "readers" / "torch-1.6.0").mkdir(parents=True)
    assert refused(tmp_path, f"open({str(tmp_path / 'secret')!r})") == "PermissionError"
    other = tmp_path / "cache" / "readers" / "torch-1.6.0"
    assert refused(tmp_path, f"os.listdir({str(other)!r})") == "PermissionError"
    own = tmp_path / "cache" / "readers" / "torch-1.5.1"
    assert refused(tmp_path, f"os.listdir({str(own)!r})") == ""
    assert refused(tmp_path, f"open({str(own / 'new')!r}, 'w')") == "PermissionError"


@needs_isolation
@pytest.mark.parametrize("family", ["AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK"])
def test_no_socket_can_be_opened(tmp_path: Path, family: str) -> None:
    assert refused(tmp_path, f"socket.socket(socket.{family}, socket.SOCK_DGRAM)") == "PermissionError"


@needs_isolation
def test_a_server_on_this_very_machine_cannot_be_reached(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert refused(tmp_path, "socket.create_connection(('127.0.0.1', PORT), 2)", PORT=port) == "PermissionError"
        server.settimeout(0)
        with pytest.raises(BlockingIOError):
            server.accept()


@needs_isolation
def test_a_program_that_it_starts_is_inside_the_same_fence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        source = f"import socket; socket.create_connection(('127.0.0.1', {server.getsockname()[1]}), 2)"
        body = "return subprocess.run([PYTHON, '-S', '-c', SOURCE], stderr=subprocess.PIPE).stderr.decode()"
        message = asked(tmp_path, body, PYTHON=str(Path(sys.executable).resolve()), SOURCE=source)
    assert "PermissionError" in message


@needs_isolation
def test_what_landlock_and_seccomp_leave_open_is_shut(tmp_path: Path) -> None:
    calls = {"ptrace": (101, 16, os.getpid(), 0, 0), "io_uring_setup": (425, 1, 0), "keyctl": (250, 0, -3, 0)}
    if os.uname().machine != "x86_64":
        pytest.skip("the numbers of system calls here are those of x86-64")
    body = (
        "libc = ctypes.CDLL(None, use_errno=True)\nfound = {}\nfor name, call in CALLS.items():\n"
        "    found[name] = [libc.syscall(*call), ctypes.get_errno()]\nreturn found"
    )
    assert asked(tmp_path, body, CALLS=calls) == {name: [-1, errno.EACCES] for name in calls}


def test_nothing_can_ask_the_user(tmp_path: Path) -> None:
    assert refused(tmp_path, "open('/dev/tty', 'r+')") in {"PermissionError", "OSError"}
    assert asked(tmp_path, "return [os.getsid(0) != SESSION]", SESSION=os.getsid(0)) == [True]


def test_no_privilege_can_be_gained(tmp_path: Path) -> None:
    status = asked(tmp_path, "return open('/proc/self/status').read()")
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert fields["NoNewPrivs"] == "1"
    if isolation().home:
        assert int(fields["CapEff"], 16) & ~0b10 == 0
    assert fields["Uid"].split()[0] == str(os.getuid())


# ----------------------------------------------------------------------------------------------------------- what it may see


@needs_isolation
@pytest.mark.parametrize("in_place", [False, True])
def test_an_archive_is_read_but_cannot_be_changed(tmp_path: Path, in_place: bool) -> None:
    path = archive(tmp_path, {"a": 1}, "torch-save")
    before = path.read_bytes()
    hook = (
        "value = []\nfor way in ('rb', 'r+b', 'ab', 'wb'):\n    try:\n        open('archive.pt', way).close()\n"
        "    except OSError as error:\n        value.append(way)"
    )
    environment = miniature(tmp_path / "cache", "1.5.1", at_load=hook)
    with TorchRelease(environment, reads=[path] * in_place) as worker:
        assert load(worker, path)["result"] == {
            "value": ["r+b", "ab", "wb"] if in_place else []
        }  # it may do as it likes to a copy
    assert path.read_bytes() == before


def test_an_archive_is_called_by_its_own_place(tmp_path: Path) -> None:
    folder = tmp_path / 'it is "mine"'
    folder.mkdir()
    with TorchRelease(miniature(tmp_path / "cache", "1.5.1", at_load="raise ValueError(os.getcwd())")) as worker:
        replies = [load(worker, archive(folder, {}, "torch-save"))]
        many = [{"path": str(archive(folder, {}, "torch-save")), "family": "torch-save", "calls": [], "options": {}}]
        replies += worker.request_many("observe", many)
    assert [reply["result"]["error"]["message"] for reply in replies] == [str(folder)] * 2


@needs_isolation
def test_what_may_be_read_in_place_is_not_copied(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    path = archive(folder, {"a": 1}, "torch-save")
    environment = miniature(tmp_path / "cache", "1.5.1", at_load="value = os.stat('archive.pt').st_ino")
    for reads in ((path,), (folder,)):
        with TorchRelease(environment, reads=reads) as worker:
            assert load(worker, path)["result"] == {"value": path.stat().st_ino}
    with TorchRelease(environment) as worker:
        assert load(worker, path)["result"] != {"value": path.stat().st_ino}


@pytest.mark.parametrize("made", ["os.symlink(SECRET, path)", "os.mkfifo(path)", "os.mkdir(path)"])
def test_what_a_recipe_writes_is_a_file_or_nothing(tmp_path: Path, made: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    recipe = tmp_path / "recipe.py"
    recipe.write_text(
        f"import os\nSECRET = {str(secret)!r}\nFAMILY = 'x'\n\n\ndef build():\n    return None\n\n\ndef write(made, path):\n    {made}\n",
        encoding="utf-8",
    )
    target = tmp_path / "made.pt"
    with TorchRelease(miniature(tmp_path / "cache", "1.5.1")) as worker:
        worker.request("produce", recipe=str(recipe), name="recipe", path=str(target))
    assert not target.exists()


# ------------------------------------------------------------------------------------------------- where it is not possible


@pytest.mark.usefixtures("not_isolated")
def test_without_isolation_a_strangers_archive_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path, {"a": 1}, "torch-save")
    environment = miniature(tmp_path / "cache", "1.5.1")
    with TorchRelease(environment, trust=trust_nothing) as worker:
        assert worker.isolation.as_json() == {"network": False, "home": False}
        with pytest.raises(
            Untrusted, match=r"the network can be accessed \(no seccomp\) and the home directory can be read"
        ) as caught:
            load(worker, path)
        with pytest.raises(Untrusted):
            worker.request_many("observe", [{"path": str(path), "family": "torch-save", "calls": [], "options": {}}])
    assert (caught.value.code, caught.value.exit_status, caught.value.where) == ("untrusted", 4, str(path))
    with TorchRelease(environment, trust=trust_everything) as worker:
        assert load(worker, path)["result"] == {"value": {"dict": [["a", 1]]}}
    with TorchRelease(environment, trust=lambda item: item == path) as worker:
        assert "result" in load(worker, path)
        with pytest.raises(Untrusted):
            observe(worker, archive(environment.prefix))


@pytest.mark.parametrize("lacking", ["network", "home"])
def test_half_an_isolation_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lacking: str) -> None:
    half = Isolation(network=lacking != "network", home=lacking != "home", reasons={lacking: "for a test"})
    monkeypatch.setattr(torch_release, "isolation", lambda: half)
    if not isolation().whole:
        pytest.skip(f"this machine cannot isolate a process: {isolation()}")
    with TorchRelease(miniature(tmp_path, "1.5.1"), trust=trust_nothing) as worker, pytest.raises(Untrusted):
        load(worker, archive(tmp_path))


def test_a_home_that_the_release_has_to_read_is_not_isolated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    whole = Isolation(network=True, home=True, reasons={})
    assert widened(whole, [tmp_path / "home" / "cache"]) == whole
    for path in (tmp_path, tmp_path / "home", Path("/")):
        assert widened(whole, [path]).as_json() == {"network": True, "home": False}


@needs_isolation
def test_a_fence_that_does_not_hold_is_no_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_homes", lambda: ["/usr"])  # readable for every release
    monkeypatch.setattr(torch_release, "isolation", lambda: Isolation(network=True, home=True, reasons={}))
    with (
        pytest.raises(ReaderError, match="home: the home directory can still be read") as caught,
        TorchRelease(miniature(tmp_path, "1.5.1")),
    ):
        pass
    assert caught.value.code == "does-not-start"


def test_the_launcher_says_what_is_not_possible(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "launcher.py"
    broken.write_text("raise SystemExit(1)\n", encoding="utf-8")
    monkeypatch.setattr(module, "LAUNCHER", broken)
    module._probe.cache_clear()
    try:
        result = isolation()
    finally:
        module._probe.cache_clear()
    assert result.as_json() == {"network": False, "home": False}
    assert "the launcher did not respond" in str(result)


# ------------------------------------------------------------------------------------------------------- who is left behind

PARENT = """
import sys, threading, time
from pathlib import Path
from torch_compat.readers.environments import Environment
from torch_compat.readers.torch_release import TorchRelease
prefix, path = map(Path, sys.argv[1:])
with TorchRelease(Environment("1.5.1", prefix, prefix / "bin" / "python", {}), reads=[path]) as worker:
    print(worker._process.pid, flush=True)
    threading.Timer(0.5, lambda: print("asked", flush=True)).start()
    worker.request("observe", path=str(path), family="torch-save", calls=[], options={})
"""


@needs_isolation
def test_a_worker_dies_with_its_parent(tmp_path: Path) -> None:
    path = archive(tmp_path, {"a": 1}, "torch-save")
    environment = miniature(tmp_path / "cache", "1.5.1", at_load="time.sleep(60)")
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, environment.prefix, path], stdout=subprocess.PIPE, cwd=REPOSITORY
    ) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        assert parent.stdout.readline() == b"asked\n"
        session = {int(item.name) for item in Path("/proc").iterdir() if item.name.isdigit() and session_of(item.name) == worker}
        assert len(session) == 2  # the server, and the fork that sleeps
        parent.kill()
    assert all(gone(process) for process in session)


def session_of(process: str) -> int:
    try:
        return int(Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[3])
    except (OSError, IndexError):
        return 0


def test_what_an_archive_starts_ends_with_the_worker(tmp_path: Path) -> None:
    hook = "import subprocess\nvalue = subprocess.Popen(['/bin/sleep', '60']).pid"
    environment = miniature(tmp_path / "cache", "1.5.1", at_load=hook)
    with TorchRelease(environment, trust=trust_everything) as worker:
        process = load(worker, archive(tmp_path, {}, "torch-save"))["result"]["value"]
        assert not Path(f"/proc/{process}").exists() or session_of(str(process)) > 0
    assert gone(process)


def test_an_interrupted_worker_is_not_waited_for(tmp_path: Path) -> None:
    environment = miniature(tmp_path / "cache", "1.5.1", at_load="time.sleep(60)")
    began = time.monotonic()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 1)
        with pytest.raises(KeyboardInterrupt), TorchRelease(environment, trust=trust_everything) as worker:
            load(worker, archive(tmp_path, {}, "torch-save"))
    finally:
        signal.signal(signal.SIGALRM, previous)
    assert time.monotonic() - began < 5


REFERENCE = """
import sys, threading
from torch_compat.readers.reference import Reference
with Reference() as reader:
    print(reader._workshop.process.pid, flush=True)
    sys.stdin.readline()
"""


def test_the_reference_process_dies_with_its_parent(tmp_path: Path) -> None:
    command = [sys.executable, "-c", REFERENCE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, cwd=REPOSITORY) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.kill()
    assert gone(child)


def test_the_reference_process_inherits_no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch_compat.readers.child_processes import Spec  # noqa: PLC0415 - one test
    from torch_compat.readers.reference import Reference  # noqa: PLC0415

    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    with Reference() as reader:
        child = reader._workshop.child(Spec())
        assert child.isolation.whole
        variables = Path(f"/proc/{child.pid}/environ").read_bytes().decode()
        child.close()
    assert "secret" not in variables
    assert "HOME=" in variables
    assert f"HOME={os.environ.get('HOME')}\0" not in variables + "\0"


def test_the_probe_is_json(capfd: pytest.CaptureFixture[str]) -> None:
    spec = module._spec(isolate={"network": False, "home": False}, reads=(), writes=(), homes=())
    done = subprocess.run(module._command({**spec, "probe": True}), capture_output=True, check=True)
    assert json.loads(done.stdout) == {"network": None, "home": None}
