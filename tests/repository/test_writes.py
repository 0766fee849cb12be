"""Files of a tree are written in one module. Other code that writes, removes or creates files is listed here, with the files."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

import pytest

ROOT = Path(__file__).parents[2]
GATE: Final = "harness/torch_compat/writes.py"
OF_A_PATH: Final = {
    "chmod", "hardlink_to", "lchmod", "mkdir", "rename", "rmdir", "symlink_to", "touch", "unlink", "write_bytes", "write_text",
}  # fmt: skip
OF_OS: Final = {
    "chmod", "ftruncate", "link", "makedirs", "mkdir", "mkfifo", "mknod", "pwrite", "remove", "removedirs", "rename", "renames", "replace",
    "rmdir", "sendfile", "symlink", "truncate", "unlink",
}  # fmt: skip
OF_SHUTIL: Final = {"copy", "copy2", "copyfile", "copyfileobj", "copymode", "copystat", "copytree", "move", "rmtree"}
OF_NUMPY: Final = {"save", "savetxt", "savez", "savez_compressed", "tofile"}
MODES: Final = set("wax+")
SCRATCH = "a folder of its own that goes when it is done"
CACHE = "the cache of environments, which has locks of its own"
COPY = "a copy of a tree that nobody else works on"
OLD = "runs beside a real torch, in a folder that goes"
ELSEWHERE: Final = {
    "harness/torch_compat/archive_files.py": "copies for the process of a release and from it, in folders that go when they are done",
    "harness/torch_compat/cli/plan.py": SCRATCH,
    "harness/torch_compat/proving/oracles.py": SCRATCH,
    "harness/torch_compat/readers/commands.py": CACHE,
    "harness/torch_compat/readers/cuda_stubs.py": CACHE,
    "harness/torch_compat/readers/environments.py": CACHE,
    "harness/torch_compat/inside/exported.py": OLD,
    "harness/torch_compat/inside/survey.py": OLD,
    "harness/torch_compat/readers/torch_release.py": CACHE,
    "harness/torch_compat/readers/wheels.py": CACHE,
    "harness/torch_compat/readers/wire.py": "memory without a name in any folder",
    "harness/torch_compat/replay/before.py": COPY,
    "harness/torch_compat/replay/day_before.py": SCRATCH,
    "harness/torch_compat/replay/extension.py": SCRATCH,
    "harness/torch_compat/replay/survey.py": SCRATCH,
    "harness/torch_compat/state/fill.py": "the archive that its caller names",
    "tools/altered.py": "the folder of a build, which its caller names",
    "tools/documentation.py": "build/, which is made anew each time",
    "tools/export_witnesses.py": "the folder that its caller names",
    "tools/exported.py": SCRATCH,
    "tools/rehearse.py": COPY,
}
SOURCES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (
        *ROOT.glob("harness/**/*.py"),
        *ROOT.glob("tools/*.py"),
    )  # in their folders are fuzzers, which damage files on purpose
    if path.relative_to(ROOT).as_posix() != GATE
)


def writes(source: str) -> list[str]:
    """The calls that write, make or remove files."""
    return [ast.unparse(node) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call) and _writes(node)]


def _writes(call: ast.Call) -> bool:
    modes = [*call.args, *(word.value for word in call.keywords if word.arg == "mode")]
    writing = any(isinstance(mode, ast.Constant) and isinstance(mode.value, str) and _is_mode(mode.value) for mode in modes)
    if isinstance(call.func, ast.Name):
        return call.func.id == "open" and writing
    if not isinstance(call.func, ast.Attribute):
        return False
    name, of = call.func.attr, ast.unparse(call.func.value)
    if of in {"os", "shutil", "np", "numpy"}:
        flags = any(isinstance(node, ast.Attribute) and node.attr in {"O_WRONLY", "O_RDWR", "O_CREAT"} for node in ast.walk(call))
        names = {"os": OF_OS, "shutil": OF_SHUTIL}.get(of, OF_NUMPY)
        return name in names or (of == "os" and name == "open" and flags and "devnull" not in ast.unparse(call))
    if name == "replace":  # of a path it takes one argument, of a text two
        return len(call.args) == 1 and not call.keywords
    return name in OF_A_PATH or (name == "open" and writing) or (of == "tempfile" and name in {"mkstemp", "NamedTemporaryFile"})


def _is_mode(text: str) -> bool:
    return 0 < len(text) <= 3 and set(text) <= set("rwaxbt+") and bool(MODES & set(text))


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("path.write_text('x')", 1),
        ("path.open('w')", 1),
        ("path.open('r+b')", 1),
        ("open(path, mode='x')", 1),
        ("open(path, 'rb')", 0),
        ("path.replace(other)", 1),
        ("text.replace('a', 'b')", 0),
        ("os.replace(a, b)", 1),
        ("os.open(path, os.O_WRONLY | os.O_CREAT)", 1),
        ("os.open(path, os.O_RDONLY)", 0),
        ("shutil.copyfile(a, b)", 1),
        ("np.save(path, array)", 1),
        ("put(path, text)", 0),
    ],
)
def test_a_call_that_writes_is_seen(source: str, found: int) -> None:
    assert len(writes(source)) == found


@pytest.mark.parametrize("path", [source for source in SOURCES if source not in ELSEWHERE])
def test_files_of_a_tree_are_written_at_one_gate(path: str) -> None:
    assert writes((ROOT / path).read_text(encoding="utf-8")) == []


def test_who_is_listed_writes() -> None:
    assert [path for path in ELSEWHERE if not writes((ROOT / path).read_text(encoding="utf-8"))] == []
