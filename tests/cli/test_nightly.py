"""The workflow and the script of docs/nightly, run step by step with miniature releases."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.miniatures import miniature
from torch_compat.operators.history import History
from torch_compat.replay.trees import trees_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.miniatures.tree import Tree

REPOSITORY = Path(__file__).parents[2]
NIGHTLY = Path("docs", "nightly")
VERSION = "1.7.0.dev20200901+cpu"
PARTS = 4
INSTALL = "python -m pip install ."
LISTS = """
_C = types.SimpleNamespace(_jit_get_all_schemas=lambda: open(__file__.replace("torch/__init__.py", "schemas.txt")).read().splitlines())
sys.modules["torch"]._C = _C
"""
GH = """\
#!/bin/sh
# Stands for GitHub's program: one earlier run has trees, one has none
echo "$@" >>"$GH_LOG"
case "$*" in
  "run list"*) printf '%s\\n' 7 8 ;;
  "run download 7"*) mkdir -p "$EARLIER/7" && cp -R "$GH_TREES/." "$EARLIER/7/trees-1" ;;
  *) exit 1 ;;
esac
"""


def steps(job: str) -> list[str]:
    """What a job of the workflow runs, but for the installation."""
    text = (REPOSITORY / NIGHTLY / "workflow.yml").read_text(encoding="utf-8")
    (body,) = re.findall(rf"^  {job}:\n((?:    .*\n|\n)+)", text, re.MULTILINE)
    result = re.findall(r"^ +- run: (.+)$", body, re.MULTILINE)
    assert len(re.findall(r"\brun:", body)) == len(result)  # nothing that is not run here
    assert result[0] == INSTALL
    return result[1:]


@pytest.fixture
def night(tree: Tree, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a line of shell in a checkout of the small tree, as a job does."""
    programs = tmp_path / "programs"
    programs.mkdir()
    command = shlex.join([sys.executable, "-c", "from torch_compat.cli import main; main()"])
    for name, text in (("torch-compat", f'#!/bin/sh\nexec {command} "$@"\n'), ("gh", GH)):
        (programs / name).write_text(text, encoding="utf-8")
        (programs / name).chmod(0o755)
    (tree.root / NIGHTLY).mkdir(parents=True)
    shutil.copy2(REPOSITORY / NIGHTLY / "nightly.sh", tree.root / NIGHTLY)
    environ = {
        **os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "TORCH_COMPAT_CACHE": str(tree.cache), "GITHUB_WORKFLOW": "torch-compat", "GH_LOG": str(tmp_path / "gh.log"),
        "GH_TREES": str(tmp_path / "before"), "EARLIER": str(tmp_path / "earlier"), "TREES": str(tmp_path / "trees"),
        "RESULTS": str(tmp_path / "results"),
    }  # fmt: skip
    environ.pop("GITHUB_STEP_SUMMARY", None)

    def run(line: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", line], cwd=tree.root, env={**environ, **more}, capture_output=True, text=True, check=False
        )

    return run


def build_in(folder: Path, version: str = VERSION, **hooks: str) -> str:
    """A build with the operators of 1.6.0."""
    environment = miniature(folder, version, **{**hooks, "at_import": LISTS})
    history = History.load()
    bit = history.bit("1.6.0")
    schemas = sorted(text for text, _, bits in history.facts() if bits & bit)
    (environment.prefix / "site" / "schemas.txt").write_text("\n".join(schemas), encoding="utf-8")
    return f"python:{environment.python}"


def test_the_jobs_of_the_workflow(night: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path) -> None:
    (line,) = steps("reader")
    ended = night(line, RELEASE="torch-1.6.0")
    assert ended.returncode == 0, ended.stderr
    assert "\nObserved now: torch-1.6.0. " in ended.stdout
    assert json.loads((tmp_path / "results" / "reader-torch-1.6.0.json").read_text(encoding="utf-8"))["exit_status"] == 0

    warns = "if isinstance(value, dict): warnings.warn('soon')"
    old = build_in(tmp_path / "old", "1.7.0.dev20200830+cpu", at_load=warns)
    ended = night(f"torch-compat candidate {old} --into '{tmp_path / 'before'}'")
    assert ended.returncode == 0, ended.stderr
    earlier, candidate = steps("candidate")
    assert night(earlier).returncode == 0
    log = (tmp_path / "gh.log").read_text(encoding="utf-8")
    assert re.match(r"run list --workflow torch-compat --created >=\d{4}-\d\d-\d\d --status completed ", log)
    assert [tree.name for tree in trees_in(tmp_path / "earlier" / "7" / "trees-1")] == ["torch-1.7.0.dev20200830+cpu"]
    name, message = build_in(tmp_path / "build", at_load=warns), ""
    for part in range(1, PARTS + 1):
        ended = night(candidate, BUILD=name, SHARD=f"{part}/{PARTS}")
        assert ended.returncode == 0, ended.stderr
        assert (tmp_path / "results" / f"candidate-{part}-of-{PARTS}.txt").read_text(encoding="utf-8") == ended.stdout
        message += ended.stdout
    assert "since torch-1.7.0.dev20200830+cpu" in message  # the tree of the earlier run has the warning, too
    assert len(trees_in(tmp_path / "trees")) == PARTS

    (line,) = steps("judge")
    ended = night(line)
    assert ended.returncode == 0, ended.stdout
    judged = json.loads((tmp_path / "results" / "judged.json").read_text(encoding="utf-8"))
    assert "torch-1.7.0.dev20200901+cpu" in {source["reader"] for source in judged["sources"]}
    assert (tmp_path / "results" / "summary.md").is_file()


def test_the_script_does_all_steps_and_is_red_if_one_is(
    night: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    name = build_in(tmp_path / "build", at_call="value = value + 1 if type(value) is int else value")
    ended = night(f"bash {NIGHTLY}/nightly.sh", BUILD=name, RELEASES="torch-1.5.1 torch-1.6.0")
    assert ended.returncode == 1
    headings = [line for line in ended.stdout.splitlines() if line.startswith("==> ")]
    assert headings == ["==> reader torch-1.5.1", "==> reader torch-1.6.0", "==> candidate 1/1", "==> judge"]
    judged = json.loads((tmp_path / "results" / "judged.json").read_text(encoding="utf-8"))
    assert "newer-computes" in {finding["rule"] for finding in judged["findings"] if finding["verdict"] == "fail"}


@pytest.mark.parametrize("arguments", ["reader", "candidate", "judge twice", "nothing"])
def test_a_step_that_there_is_not_is_wrong_usage(night: Callable[..., subprocess.CompletedProcess[str]], arguments: str) -> None:
    ended = night(f"bash {NIGHTLY}/nightly.sh {arguments}")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "nightly.sh candidate K/N" in ended.stderr


@pytest.mark.parametrize(
    ("one", "other", "worst"), [(0, 0, 0), (0, 4, 4), (4, 1, 1), (1, 2, 2), (3, 1, 3), (0, 137, 3), (1, 127, 3)]
)
def test_the_gravest_exit_status_counts(one: int, other: int, worst: int) -> None:
    script = (REPOSITORY / NIGHTLY / "nightly.sh").read_text(encoding="utf-8")
    (function,) = re.findall(r"^worse\(\) \{.*?^\}$", script, re.MULTILINE | re.DOTALL)
    ended = subprocess.run(["bash", "-c", f"{function}\nworse {one} {other}"], capture_output=True, text=True, check=True)
    assert int(ended.stdout) == worst


def test_the_parts_of_the_matrix_are_all_there() -> None:
    text = (REPOSITORY / NIGHTLY / "workflow.yml").read_text(encoding="utf-8")
    assert f"part: {list(range(1, PARTS + 1))}" in text
    assert f"SHARD: ${{{{ matrix.part }}}}/{PARTS}" in text
    assert text.count("retention-days: 14") == text.count("upload-artifact@")
