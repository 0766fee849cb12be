"""The same evidence gives the same bytes: under any time zone, locale, hash seed, encoding, width, file order, place and core count."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.deprecated_tree import make_deprecated_tree
from tests.small_tree import once

if TYPE_CHECKING:
    from tests.planted.conftest import Judged, Tree

REPOSITORY = Path(__file__).parents[2]
SURROUNDINGS = {
    "far east": {"TZ": "Pacific/Kiritimati", "LC_ALL": "C", "PYTHONHASHSEED": "1", "COLUMNS": "40"},
    "far west": {"TZ": "Etc/GMT+12", "LC_ALL": "C.UTF-8", "LANG": "tr_TR.UTF-8", "PYTHONHASHSEED": "4294967295"},
    "another encoding": {"PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "POSIX", "TERM": "dumb"},
}  # fmt: skip

COMMANDS = {
    "json": (
        ("deprecations",),
        ("deprecations", "--sweep", "2020-01-01..2024-01-01"),
        ("plan", "mode", "foo(mode='A')", "--from", "1.2.0"),
        ("explain", "mode"),
        ("judge", "--as-of", "1.6.0"),
    ),
    "text": (("deprecations", "--full", "--as-of", "1.7.0", "--profile", "strict"), ("explain", "late-and-known")),
}


def run(root: Path, form: str, environ: dict[str, str], *words: str, wrapper: tuple[str, ...] = ()) -> bytes:
    """Standard output of ``torch-compat judge``, or another command, in a process of its own, in a clean environment."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    asked = words or ("judge",)
    command = [*wrapper, sys.executable, "-W", "error", "-m", "torch_compat", *asked, "--root", str(root), "--format", form]
    done = subprocess.run(command, cwd=REPOSITORY, env=kept | environ, capture_output=True, check=False, timeout=60)
    assert done.stderr == b""
    assert done.returncode in {0, 1, 4}
    return done.stdout


def shuffle(source: Path, target: Path) -> Path:
    """The files of a root again, made in another order and with other dates."""
    paths = sorted(path for path in source.rglob("*") if path.is_file())
    random.Random(0).shuffle(paths)
    for index, path in enumerate(paths):
        copy = target / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
        os.utime(copy, (index, index))
    return target


@pytest.fixture(scope="session")
def shuffled(pristine: Tree, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The evidence again, its files made in another order and with other dates."""
    return shuffle(pristine.path, tmp_path_factory.mktemp("elsewhere") / "with another name")


@pytest.fixture(scope="session")
def deprecated(shared: Path) -> Path:
    return once(shared, "deprecated-tree", make_deprecated_tree)


@pytest.fixture(scope="session")
def text(pristine: Tree) -> bytes:
    return run(pristine.path, "text", {})


@pytest.mark.parametrize("name", SURROUNDINGS)
def test_surroundings_change_no_byte(name: str, shuffled: Path, baseline: Judged, text: bytes) -> None:
    assert run(shuffled, "json", SURROUNDINGS[name]) == baseline.stdout.encode()
    assert run(shuffled, "text", SURROUNDINGS[name]) == text


@pytest.mark.parametrize(
    ("form", "words"), [pytest.param(form, words, id=" ".join(words)) for form, asked in COMMANDS.items() for words in asked]
)
def test_surroundings_change_no_byte_of_what_is_said_of_deprecations(
    form: str, words: tuple[str, ...], deprecated: Path, tmp_path: Path
) -> None:
    elsewhere = shuffle(deprecated, tmp_path / "with another name")
    message = run(deprecated, form, {}, *words)
    assert message
    for environ in SURROUNDINGS.values():
        assert run(elsewhere, form, environ, *words) == message


@pytest.mark.skipif(shutil.which("taskset") is None, reason="taskset, which limits a process to one core, is not here")
def test_one_core_gives_the_same_bytes(shuffled: Path, text: bytes) -> None:
    core = str(min(os.sched_getaffinity(0)))
    assert run(shuffled, "text", {}, wrapper=("taskset", "--cpu-list", core)) == text


def test_no_color_is_honoured_where_colour_is_asked_for(pristine: Tree, text: bytes) -> None:
    assert run(pristine.path, "text", {"FORCE_COLOR": "1", "NO_COLOR": "1"}).count(b"\x1b[3") == 0
    assert b"\x1b[" not in text
