"""Public architectures, written as plain torch.nn in an old and a new release, scripted and traced: they run as in their writer."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from torch_compat.policy import load_policy
from torch_compat.readers.environments import Environments
from torch_compat.readers.torch_release import DETERMINISM
from torch_compat.runtime.encoding import perform
from torch_compat.values.compare import compare, distances

if TYPE_CHECKING:
    from torch_compat.policy import Policy

REPOSITORY = Path(__file__).parents[2]
SCRIPT = Path(__file__).with_name("torch_architectures.py")
WORKER = REPOSITORY / "harness" / "torch_compat" / "inside" / "worker.py"
OLD, NEW = "1.6.0", "2.13.0"
NAMES = ["resnet-script", "resnet-trace", "tagger-script", "tagger-trace", "transformer-script", "transformer-trace"]
RELEASES = [pytest.param(release, marks=pytest.mark.real_torch(release)) for release in (OLD, NEW)]

Written = dict[str, tuple[Path, dict[str, Any]]]


@pytest.fixture(scope="module")
def policy() -> Policy:
    return load_policy(REPOSITORY / "policies" / "torch")


@pytest.fixture(scope="module", params=RELEASES)
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Written]:
    """What a release wrote, and what each program gives there."""
    environment = Environments().get(request.param)
    assert environment is not None
    folder = tmp_path_factory.mktemp("architectures")
    done = subprocess.run(
        [environment.python, SCRIPT, WORKER, folder], capture_output=True, text=True, check=False, env=environment.environ(DETERMINISM)
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    return request.param, {name: (folder / f"{name}.pt", one) for name, one in said.items()}


@pytest.mark.parametrize("horizon", ["writer", "newest"])
@pytest.mark.parametrize("name", NAMES)
def test_runs_close_to_its_writer(written: tuple[str, Written], name: str, horizon: str, policy: Policy) -> None:
    release, programs = written
    assert sorted(programs) == NAMES
    path, there = programs[name]
    first = there["result"]["calls"][0]["first"]
    assert "value" in first, first
    here = perform(path, "torchscript", there["calls"], f"reference@{release}" if horizon == "writer" else "reference")
    found = compare(there["result"], here)
    assert not found.errors, found.errors
    for extent in found.extent:
        tolerance = policy.tolerance("torchscript", (), extent["dtype"])
        assert extent["kind"] == "value", found.differences
        assert tolerance is not None, found.differences
        assert all(tolerance.covers(one) for one in distances(there["result"], here) if one.dtype == extent["dtype"])
