"""Public architectures, written as plain torch.nn by several releases, scripted, traced and exported: same results as the writer."""

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
NAMES = {
    "torchscript": ["resnet-script", "resnet-trace", "tagger-script", "tagger-trace", "transformer-script", "transformer-trace"],
    "export": ["resnet-export", "tagger-export", "transformer-export"],
}
WAYS = {"torchscript": (OLD, NEW), "export": ("2.4.1", "2.8.0", "2.15.0")}
RELEASES = [
    pytest.param((way, release), marks=pytest.mark.real_torch(release), id=f"{way}-{release}")
    for way, releases in WAYS.items()
    for release in releases
]

Written = dict[str, tuple[Path, dict[str, Any]]]


@pytest.fixture(scope="module")
def policy() -> Policy:
    return load_policy(REPOSITORY / "policies" / "torch")


@pytest.fixture(scope="module", params=RELEASES)
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str, Written]:
    """The way in which a release wrote programs, the release, the programs, and what each gives there."""
    way, release = request.param
    environment = Environments().get(release)
    assert environment is not None
    folder = tmp_path_factory.mktemp("architectures")
    done = subprocess.run(
        [environment.python, SCRIPT, WORKER, folder, way],
        capture_output=True,
        text=True,
        check=False,
        env=environment.environ(DETERMINISM),
    )
    assert done.returncode == 0, done.stderr
    message = json.loads(done.stdout.splitlines()[-1])
    assert sorted(message) == NAMES[way]
    suffix = "pt2" if way == "export" else "pt"
    return way, release, {name: (folder / f"{name}.{suffix}", item) for name, item in message.items()}


def held(way: str, path: Path, there: dict[str, Any], reader: str, policy: Policy, *, state: bool = True) -> None:
    """What the reference reader gives is what the release gave, within the tolerance of one operator."""
    assert all("value" in call["first"] for call in there["result"]["calls"]), there["result"]
    here = perform(path, way, there["calls"], reader)
    if not state:
        there = {
            **there,
            "result": {**there["result"], **{name: here[name] for name in ("state", "state_after") if name in here}},
        }
    result = compare(there["result"], here)
    assert not result.errors, result.errors
    for extent in result.extent:
        tolerance = policy.tolerance(way, (), extent["dtype"])
        assert extent["kind"] == "value", result.differences
        assert tolerance is not None, result.differences
        assert all(
            tolerance.covers(distance) for distance in distances(there["result"], here) if distance.dtype == extent["dtype"]
        )


def test_runs_as_in_its_writer(written: tuple[str, str, Written], policy: Policy) -> None:
    way, release, programs = written
    for path, there in programs.values():
        held(way, path, there, f"reference@{release}", policy)


def test_runs_as_in_its_writer_with_the_newest_semantics(written: tuple[str, str, Written], policy: Policy) -> None:
    way, release, programs = written
    for path, there in programs.values():
        # no newer release reads the exported programs of 2.4, so none says which buffers its state has
        held(way, path, there, "reference", policy, state=release != "2.4.1")
