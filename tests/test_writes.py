"""Writing into a tree: completely or not at all, one run at a time, and with clear errors."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import resource
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.interrupted.dying import KILLED, begun, ran
from torch_compat.cli import main
from torch_compat.errors import CorpusError, UsageError, WriteError
from torch_compat.writes import COMMITTED, JOURNAL, LOCK, TIMEOUT, changing, holding, put, put_copy, remove

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.miniatures.tree import Tree


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A tree of two files."""
    path = tmp_path / "root"
    path.mkdir()
    (path / "one").write_text("1")
    (path / "two").write_text("2")
    return path


def files(root: Path) -> dict[str, str]:
    return {path.relative_to(root).as_posix(): path.read_text() for path in root.rglob("*") if path.is_file()}


def change(root: Path) -> None:
    with changing(root):
        put(root / "one", "new")
        remove(root / "two")
        put(root / "deep/er/three", "3")


CHANGED = {"one": "new", "deep/er/three": "3"}
BEFORE = {"one": "1", "two": "2"}


# --------------------------------------------------------------------------------------------------------------- changes


def test_a_change_is_made_when_the_block_ends_and_leaves_nothing_else(root: Path) -> None:
    with changing(root):
        put(root / "one", "new")
        with changing(root):
            put(root / "three", "3")
        assert (root / "one").read_text() == "1"
        assert not (root / "three").exists()
    assert files(root) == {"one": "new", "two": "2", "three": "3"}
    assert sorted(path.name for path in root.iterdir()) == ["one", "three", "two"]


def test_a_block_that_raises_changes_nothing(root: Path) -> None:
    def act() -> None:
        with changing(root):
            put(root / "one", "new")
            raise KeyError

    with pytest.raises(KeyError):
        act()
    assert files(root) == BEFORE


def test_while_the_lock_is_held_each_file_is_a_change_of_its_own(root: Path) -> None:
    with holding(root):
        put(root / "one", "new")
        assert (root / "one").read_text() == "new"


def test_what_lies_outside_the_tree_is_written_at_once(root: Path, tmp_path: Path) -> None:
    with changing(root):
        put(tmp_path / "outside/file", "x")
        assert (tmp_path / "outside/file").read_text() == "x"


def test_a_copy_and_permissions(root: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(os.urandom(3 << 20))
    (root / "one").chmod(0o750)
    with changing(root):
        put_copy(root / "one", source)
    assert (root / "one").read_bytes() == source.read_bytes()
    assert stat.S_IMODE((root / "one").stat().st_mode) == 0o750


# ------------------------------------------------------------------------------------------------------------- directories

PARTS = {"parts.dcp/.metadata": "about", "parts.dcp/__0_0.distcp": "0", "parts.dcp/__1_0.distcp": "1"}


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    """A directory of files, outside of the tree."""
    folder = tmp_path / "parts"
    folder.mkdir()
    for name, text in PARTS.items():
        (folder / name.rpartition("/")[2]).write_text(text)
    return folder


@pytest.mark.parametrize("together", [False, True])
def test_a_directory_is_copied_whole(root: Path, parts: Path, *, together: bool) -> None:
    with changing(root):
        put_copy(root / "parts.dcp", parts)
        if together:
            put(root / "one", "new")
        assert not (root / "parts.dcp").exists()
    assert files(root) == {**BEFORE, **PARTS, **({"one": "new"} if together else {})}
    assert sorted(path.name for path in root.iterdir()) == ["one", "parts.dcp", "two"]


@pytest.mark.parametrize("together", [False, True])
def test_a_directory_is_there_whole_or_not_at_all(root: Path, parts: Path, *, together: bool) -> None:
    def act() -> None:
        with changing(root):
            put_copy(root / "parts.dcp", parts)
            if together:
                put(root / "one", "new")

    operation, seen = 0, set()
    after = {**BEFORE, **PARTS, **({"one": "new"} if together else {})}
    while True:
        operation += 1
        ended = ran(root, act, dies_at=operation)
        there = {path.name for path in (root / "parts.dcp").glob("*")} if (root / "parts.dcp").exists() else set()
        assert there in (set(), {name.rpartition("/")[2] for name in PARTS}), operation
        with holding(root):
            pass
        assert files(root) in (BEFORE, after), operation
        seen.add(files(root) == after)
        assert {path.name for path in root.iterdir()} <= {"one", "two", "parts.dcp", "reports"}
        if ended.status != KILLED:
            break
        with changing(root):
            remove(root / "parts.dcp")
            put(root / "one", "1")
        assert files(root) == BEFORE
    assert operation > 12
    assert seen == {False, True}


def test_a_directory_replaces_nothing(root: Path, parts: Path) -> None:
    put_copy(root / "parts.dcp", parts)
    (parts / ".metadata").write_text("other")

    def act() -> None:
        with changing(root):
            put(root / "one", "new")
            put_copy(root / "parts.dcp", parts)

    with pytest.raises(WriteError, match="already exists"):
        act()
    assert files(root) == {**BEFORE, **PARTS}


def test_a_directory_with_a_link_is_not_copied(root: Path, parts: Path) -> None:
    (parts / "__2_0.distcp").symlink_to(root / "one")

    def act() -> None:
        with changing(root):
            put_copy(root / "parts.dcp", parts)

    with pytest.raises(CorpusError, match="not a regular file"):
        act()
    assert files(root) == BEFORE


def test_devices_are_written_to_and_links_are_followed(root: Path, tmp_path: Path) -> None:
    put(Path("/dev/null"), "x")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    (tmp_path / "link").symlink_to(root / "one")
    put(tmp_path / "link", "through")
    assert (root / "one").read_text() == "through"
    assert (tmp_path / "link").is_symlink()


@pytest.mark.parametrize("alone", [True, False])
def test_a_file_is_on_the_disk_before_it_is_renamed(root: Path, monkeypatch: pytest.MonkeyPatch, alone: bool) -> None:
    done: list[str] = []
    fsync, replace = os.fsync, os.replace

    def synced(descriptor: int) -> None:
        done.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        fsync(descriptor)

    def renamed(source: Path, target: Path) -> None:
        assert str(source) in done
        if not alone:
            assert str(root / JOURNAL) in done
            assert (root / JOURNAL).read_bytes().endswith(COMMITTED)
        replace(source, target)
        done.append("renamed")

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", renamed)
    if alone:
        put(root / "one", "new")
    else:
        change(root)
    assert done[done.index("renamed") + 1 :].count(str(root)) == 1  # and so is its name


def test_every_file_operation_survives_being_killed(root: Path) -> None:
    expected = ran(root, lambda: change(root))
    assert (expected.status, files(root)) == (0, CHANGED)
    seen = set()
    for operation in range(1, expected.operations + 1):
        for path in sorted(root.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        for name, text in BEFORE.items():
            (root / name).write_text(text)
        assert ran(root, lambda: change(root), dies_at=operation).status == KILLED
        with holding(root):  # whoever writes next completes it or undoes it
            pass
        seen.add(json.dumps(files(root), sort_keys=True))
        folders = [path.name for path in root.rglob("*") if path.is_dir() and path.name not in {"reports", "latest"}]
        assert bool(folders) == (files(root) == CHANGED), operation
    assert seen == {json.dumps(item, sort_keys=True) for item in (BEFORE, CHANGED)}


def test_an_interrupted_change_is_undone(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync = os.fsync

    def interrupted(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").readlink().name == ".three.partial":
            raise KeyboardInterrupt
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        change(root)
    assert files(root) == BEFORE


def test_an_interrupted_change_is_completed_where_files_are_renamed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace, calls = os.replace, []

    def interrupted(*paths: Any) -> None:
        calls.append(paths)
        if len(calls) == 2:
            raise KeyboardInterrupt
        replace(*paths)

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        change(root)
    assert files(root) == CHANGED


# --------------------------------------------------------------------------------------------------------------- journals


@pytest.mark.parametrize(
    "said", ["{}\n", "[]\n", "nothing\n", '{"form": 2, "put": [], "remove": [], "folders": []}\n', "[" * 9999 + "\n"]
)
def test_a_journal_that_is_none_is_named_and_stays(root: Path, said: str) -> None:
    (root / JOURNAL).parent.mkdir(parents=True)
    (root / JOURNAL).write_text(said)
    with pytest.raises(WriteError, match="is not the journal") as caught:
        change(root)
    assert caught.value.exit_status == 2
    assert files(root) == {**BEFORE, JOURNAL: said}


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "link/file", ".one.partial"])
def test_a_journal_from_a_stranger_leads_nowhere_else(root: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "outside").write_text("mine")
    (tmp_path / "file").write_text("mine")
    (root / "link").symlink_to(tmp_path)
    (root / JOURNAL).parent.mkdir(parents=True)
    (root / JOURNAL).write_text(json.dumps({"form": 1, "put": [], "remove": [name], "folders": []}) + "\ncommitted\n")
    with pytest.raises(CorpusError) as caught:
        change(root)
    assert caught.value.code == "outside"
    assert (tmp_path / "outside").read_text() == (tmp_path / "file").read_text() == "mine"


# ------------------------------------------------------------------------------------------------------------------- locks


def wait_for(path: Path) -> None:
    limit = time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < limit
        time.sleep(0.01)


def hold(root: Path, until: Path) -> Callable[[], None]:
    def act() -> None:
        with changing(root):
            (root.parent / "held").touch()
            wait_for(until)
            put(root / "count", str(int((root / "count").read_text()) + 1))

    return act


def test_a_second_run_waits_and_says_for_whom(root: Path, tmp_path: Path) -> None:
    (root / "count").write_text("0")
    first = begun(root, hold(root, tmp_path / "go"))
    wait_for(tmp_path / "held")
    second = begun(root, hold(root, tmp_path / "go"))
    message = json.loads((root / LOCK).read_text())
    assert message["pid"] == first.pid
    time.sleep(0.3)
    assert (root / "count").read_text() == "0"
    (tmp_path / "go").touch()
    item, two = first.end(), second.end()
    assert (item.status, two.status, item.err) == (0, 0, "")
    assert two.err.startswith(f"waiting for process {first.pid} (")
    assert two.err.endswith(f", since {message['since']}), which is writing to this tree\n")
    assert (root / "count").read_text() == "2"


def test_a_second_run_gives_up_in_time(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "count").write_text("0")
    first = begun(root, hold(root, tmp_path / "go"))
    wait_for(tmp_path / "held")
    monkeypatch.setenv(TIMEOUT, "0.2")
    with pytest.raises(WriteError, match=rf"process {first.pid} .* is writing .* waited 0.2 seconds") as caught:
        change(root)
    assert (caught.value.exit_status, caught.value.code) == (2, "locked")
    os.kill(first.pid, signal.SIGKILL)  # the lock of a process that is gone is nobody's
    assert first.end().status == KILLED
    change(root)
    assert files(root) == {**CHANGED, "count": "0"}


@pytest.mark.parametrize("said", ["soon", "-1", "nan", ""])
def test_a_time_that_is_none(root: Path, monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    monkeypatch.setenv(TIMEOUT, said)
    with pytest.raises(UsageError, match="expected a number of seconds"):
        change(root)


@pytest.mark.parametrize("alone", [True, False])
def test_what_cannot_be_cleaned_up_does_not_hide_what_went_wrong(
    root: Path, monkeypatch: pytest.MonkeyPatch, alone: bool
) -> None:
    def failing(number: int) -> Callable[..., Any]:
        def fail(*_: Any, **__: Any) -> Any:
            raise OSError(number, os.strerror(number))

        return fail

    monkeypatch.setattr(os, "write", failing(errno.ENOSPC))
    monkeypatch.setattr(os, "unlink", failing(errno.EACCES))
    with pytest.raises(WriteError, match="the disk is full"), contextlib.nullcontext() if alone else changing(root):
        put(root / "a.txt", "a")


def test_a_lock_file_that_was_removed_meanwhile_is_no_lock(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flock, calls = fcntl.flock, []

    def late(descriptor: int, how: int) -> None:
        calls.append(how)
        if len(calls) == 1:  # who held it ends between our opening and our locking
            (root / LOCK).unlink()
        flock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with holding(root):
        assert json.loads((root / LOCK).read_text())["pid"] == os.getpid()
    assert len(calls) == 2


def test_many_at_once_lose_nothing(root: Path) -> None:
    (root / "count").write_text("0")

    def count() -> None:
        for _ in range(20):
            with changing(root):
                put(root / "count", str(int((root / "count").read_text()) + 1))

    assert [item.end().status for item in [begun(root, count) for _ in range(4)]] == [0] * 4
    assert (root / "count").read_text() == "80"


# -------------------------------------------------------------------------------------------------- what cannot be written


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "the disk is full (free some space; nothing was changed"),
        (errno.EDQUOT, "the disk quota is exceeded (free some space"),
        (errno.EROFS, "the file system is read-only (work on a writable copy"),
        (errno.EACCES, "permission denied (change the permissions"),
        (errno.EIO, "Input/output error (fix this"),
    ],
)
@pytest.mark.parametrize("function", ["open", "write", "fsync"])
def test_the_command_tells_in_words_and_leaves_nothing(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: int, words: str, function: str
) -> None:
    before = tree.everything()
    real = getattr(os, function)

    def failing(what: Any, *more: Any, **other: Any) -> Any:
        path = str(Path(f"/proc/self/fd/{what}").readlink()) if isinstance(what, int) else str(what)
        if path.endswith(".mine.py.partial"):
            raise OSError(number, os.strerror(number))
        return real(what, *more, **other)

    monkeypatch.setattr(os, function, failing)
    with pytest.raises(SystemExit) as ended:
        main(["new", "recipe", "mine", "--family", "mobile", "--root", str(tree.root)])
    message = capsys.readouterr()
    assert (ended.value.code, message.out) == (2, "")
    assert ".mine.py.partial: cannot be written: " + words.partition(" (")[0] in message.err
    assert words.partition("(")[2] in message.err
    assert tree.everything() == before
    assert not (tree.root / "reports/latest").exists()


@pytest.mark.parametrize("function", ["write", "fsync", "replace"])
def test_a_file_in_no_tree_that_cannot_be_written_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, function, full)
    with pytest.raises(WriteError, match="the disk is full"):
        put(tmp_path / "folder" / "notes.md", "whole")
    assert list(tmp_path.iterdir()) == []


def test_a_file_size_limit_is_no_fault_of_ours(tree: Tree) -> None:
    before = tree.everything()

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))
        main(["new", "recipe", "mine", "--family", "mobile", "--root", str(tree.root)])

    ended = ran(tree.root, limited)
    assert ended.status == 2
    assert "the file would exceed the file size limit of this process" in ended.err
    assert tree.everything() == before


MOUNTED = """
mount -t tmpfs -o size=200k tmpfs "$2" && cp -r "$1/." "$2" && "$3" -m torch_compat new recipe small --family mobile --root "$2" >&2 || exit 70
if [ "$4" = full ]; then dd if=/dev/zero of="$2/filling" bs=1k 2>/dev/null; else mount -o remount,ro "$2"; fi
(cd "$2" && find . -type f ! -name filling | sort | xargs sha256sum) > "$2.before"
"$3" -m torch_compat new recipe mine --family mobile --root "$2"; status=$?
(cd "$2" && find . -type f ! -name filling | sort | xargs sha256sum) | cmp - "$2.before" >&2 || exit 71
exit $status
"""


@pytest.mark.parametrize(("how", "words"), [("full", "the disk is full"), ("read-only", "the file system is read-only")])
def test_a_real_file_system(tree: Tree, tmp_path: Path, how: str, words: str) -> None:
    can = subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False)
    if can.returncode:
        pytest.skip("this process may not mount a file system of its own")
    (tmp_path / "mounted").mkdir()
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", MOUNTED, "sh", tree.root, tmp_path / "mounted", sys.executable, how],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done
    assert words in done.stderr


def test_what_a_killed_process_left_beside_a_file_goes_with_the_next_write(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    left = [tmp_path / f".notes.md.{process}.partial" for process in (ended.pid, 10**30)]
    stays = [
        tmp_path / name
        for name in (f".notes.md.{os.getppid()}.partial", ".notes.md.mine.partial", f".other.md.{ended.pid}.partial")
    ]
    for path in (*left, *stays):
        path.write_text("half", encoding="utf-8")
    put(tmp_path / "notes.md", "whole")
    assert [path.name for path in left if path.exists()] == []
    assert all(path.exists() for path in stays)
