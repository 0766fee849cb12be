"""Defects planted in a copy of the package, to check that the fuzzer finds each one, and after how many cases.

python -m tools.fuzz.planted                 # all, with the number of cases that each took
python -m tools.fuzz.planted "memo"          # one
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import NamedTuple

from torch_compat.archive.container import VERIFY_OFFSETS

ROOT = Path(__file__).parents[2]
SEED = 20_261_123
STEP = 500


class Plant(NamedTuple):
    """A defect: the replacement in a file, the target that is affected, and the number of cases within which it has to be found."""

    target: str
    cases: int
    changes: tuple[tuple[str, str, str], ...]


# numpy would reject such a view itself, so the memory is declared one element longer
LONGER = """def _longer(memory: Any, end: int) -> Any:
    import ctypes

    array = memory if isinstance(memory, np.ndarray) else np.frombuffer(memory, np.uint8)
    if end <= array.nbytes:
        return memory
    made = (ctypes.c_char * end).from_address(array.__array_interface__["data"][0])
    made.keeps = array
    return made


def _refuse("""
PLANTS = {
    "off by one in the gate for views": Plant("call", 2000, (
        ("arrays.py", "if first < 0 or end * size > room:", "if first < 0 or end * size > room + size:"),
        ("arrays.py", "        return np.ndarray(tuple(shape), dtype, memory, offset * size, steps)",
         "        return np.ndarray(tuple(shape), dtype, memory if 0 in shape else _longer(memory, end * size), offset * size, steps)"),
        ("arrays.py", "def _refuse(", LONGER),
    )),
    "a count without a bound": Plant("state", 40_000, (
        ("formats/torch_save_tar.py", "if end > len(self.data):", "if False:"),
        ("formats/torch_save_tar.py", "if not 0 <= dimensions <= MOST_DIMENSIONS:", "if dimensions < 0:"),
    )),
    "KeyError": Plant("call", 4000, (
        ("runtime/program.py", "except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:",
         "except (TypeError, ValueError, IndexError, AttributeError) as error:"),
    )),
    "recursion without a budget": Plant("state", 12000, (("pickles/machine.py", "if deepest > limits.depth:", "if False:"),)),
    "a checksum that is not compared": Plant("inspect", 500, (
        ("archive/zip_member.py", "            if crc != self.crc:\n                self._compare_sum(crc)\n        return data", "        return data"),
    )),
    "an error that is not taken for damage": Plant("call", 4000, (("runtime/flatbuffer.py", "ERRORS = (struct.error, IndexError,", "ERRORS = (IndexError,"),)),
    "memo": Plant("state", 1000, (("pickles/machine.py", "    except KeyError as error:", "    except ZeroDivisionError as error:"),)),
}  # fmt: skip


class Found(NamedTuple):
    """The first case that found a defect, or the number of cases without a find; and the message."""

    number: int | None
    cases: int
    said: str


def copied(folder: Path, changes: tuple[tuple[str, str, str], ...]) -> Path:
    """A copy of the package with these changes; returns the folder to import it from."""
    source = folder / "harness"
    shutil.copytree(ROOT / "harness" / "torch_compat", source / "torch_compat", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("fixtures", "policies"):
        (folder / name).symlink_to(ROOT / name)
    for file, old, new in changes:
        path = source / "torch_compat" / file
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{file} has {text.count(old)} times {old!r}"
        path.write_text(text.replace(old, new), encoding="utf-8")
    return source


def look_for(target: str, cases: int, changes: tuple[tuple[str, str, str], ...]) -> Found:
    """Fuzz a copy of the package with these changes until the first find."""
    with tempfile.TemporaryDirectory() as name:
        source = copied(Path(name), changes)
        environment = {**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{ROOT}"}
        environment.pop(VERIFY_OFFSETS, None)  # some archives are only sound without the defect
        command = [sys.executable, "-m", "tools.fuzz.planted", "--in", str(source), target, str(cases)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=name)
        assert done.returncode == 0, done.stderr
        return Found(*json.loads(done.stdout))


def _inside(source: str, target: str, cases: int) -> Found:
    """Runs in the process that imports the copy."""
    import torch_compat  # noqa: PLC0415 - the copy, in this process alone
    from tools.fuzz.campaign import prepare, survive  # noqa: PLC0415
    from tools.fuzz.cases import case  # noqa: PLC0415

    assert Path(torch_compat.__file__).is_relative_to(source)
    prepare(target)
    for first in range(0, cases, STEP):
        finds = survive(partial(case, SEED, target), target, list(range(first, min(cases, first + STEP)))).finds
        if finds:
            return Found(finds[0].number, cases, f"{finds[0].outcome}: {finds[0].said}")
    return Found(None, cases, "")


def main(arguments: list[str]) -> int:
    """The command."""
    if arguments[:1] == ["--in"]:
        sys.stdout.write(json.dumps(_inside(arguments[1], arguments[2], int(arguments[3]))))
        return 0
    missed = 0
    for name, plant in PLANTS.items():
        if not arguments or name in arguments:
            result = look_for(*plant)
            missed += result.number is None
            message = "NOT FOUND" if result.number is None else f"case {result.number}: {result.said:.200}"
            sys.stdout.write(f"{name} ({plant.target}, at most {plant.cases} cases): {message}\n")
            sys.stdout.flush()
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
