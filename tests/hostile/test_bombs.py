"""No small file takes long or much memory, whoever opens it, and none leads to an exception that is not ours.

Each file is opened in a process of its own, which counts its own processor time and memory: a busy machine changes neither. The
bounds are several times what :mod:`harness.allowance` allows; what these files did before was beyond any bound, or ended the process.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.hostile.bombs import BOMBS

if TYPE_CHECKING:
    from pathlib import Path

SECONDS = {"inspect": 4.0, "tree": 6.0, "state": 30.0}  # and 0.05 for each MB
MEGABYTES = {"inspect": 512, "tree": 512, "state": 2048}
OPEN = """
import json, resource, sys
path, seconds = sys.argv[1], int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
import harness
from harness.errors import HarnessError
from harness.formats import read_facts

def peak():
    return max(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) >> 10

def inspect():
    row = harness.inspect(path)
    json.dumps(row)
    return (row["error"] or {}).get("code")

def tree():
    lines = read_facts(path).tree()
    assert all(line.isprintable() for line in lines)
    return len(lines)

def state():
    harness.load_state(path)

for name, what in (("inspect", inspect), ("tree", tree), ("state", state)):
    before = resource.getrusage(resource.RUSAGE_SELF)
    try:
        said = what()
    except HarnessError as error:
        said = error.code
    after = resource.getrusage(resource.RUSAGE_SELF)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(json.dumps([name, said, spent, peak()]), flush=True)
"""


@pytest.mark.parametrize("name", BOMBS)
def test_no_file_takes_long_or_much(name: str, tmp_path: Path) -> None:
    data = BOMBS[name]()
    path = tmp_path / "bomb.pt"
    path.write_bytes(data)
    done = subprocess.run(
        [sys.executable, "-c", OPEN, path, "60"], capture_output=True, text=True, timeout=300, check=False
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-600:]
    for line in done.stdout.splitlines():
        what, _, seconds, megabytes = json.loads(line)
        assert seconds < SECONDS[what] + 0.05 * len(data) / 1e6, line
        assert megabytes < MEGABYTES[what], line
