"""The reference reader as a reader: ``torch_compat.load``, and the process that answers requests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import torch_compat
from tests.runtime.archives import HEAD, archive
from torch_compat.errors import Corrupt, Raised, Refused, Unsupported, UsageError
from torch_compat.fingerprint import code_of
from torch_compat.readers.reference import Reference, identity, is_reference, known_to_horizons, load
from torch_compat.readers.requests import answer
from torch_compat.releases.data import packaged
from torch_compat.runtime.limits import LIMITS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.readers.child_processes import ChildProcess, Spec

REPOSITORY = Path(__file__).parents[2]
DIV = REPOSITORY / "fixtures" / "torch-1.5.1" / "div.pt"
SEVEN, TWO = np.array([7, -7]), np.array([2, 2])


def write(folder: Path, *lines: str, version: int = 3) -> Path:
    path = folder / "model.pt"
    source = HEAD + "".join(f"  {line}\n" for line in lines)
    path.write_bytes(archive({"__torch__/m.py": source}, version=version))
    return path


# ------------------------------------------------------------------------------------------------------------------- load


def test_load_is_part_of_the_package() -> None:
    assert torch_compat.load is load


@pytest.mark.parametrize(("reader", "expected"), [("reference@1.5.1", [3, -3]), ("reference", [3, -3])])
def test_arrays_go_in_and_come_out(reader: str, expected: list[int]) -> None:
    module = torch_compat.load(DIV, reader=reader)
    for call in (module, module.forward):
        first, second = call(SEVEN, TWO)
        assert isinstance(first, np.ndarray)
        assert first.tolist() == second.tolist() == expected
    assert SEVEN.tolist() == [7, -7]


def test_a_path_may_be_text() -> None:
    assert torch_compat.load(str(DIV))(SEVEN, b=TWO)[0].tolist() == [3, -3]


def test_other_methods_are_there_by_name(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "def forward(self: __torch__.m.Model, x: Tensor) -> Tensor:",
        "  return x",
        "def twice(self: __torch__.m.Model, x: int) -> Dict[str, int]:",
        '  return {"x": torch.mul(x, 2)}',
    )
    module = torch_compat.load(path)
    assert module.twice(21) == {"x": 42}
    assert module(np.float32(1.5)).dtype == np.float32
    with pytest.raises(AttributeError, match="no method thrice"):
        module.thrice(1)


def test_what_goes_wrong_is_one_of_the_published_errors(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.pt"
    damaged.write_bytes(DIV.read_bytes()[:-30])
    with pytest.raises(Corrupt):
        torch_compat.load(damaged)
    with pytest.raises(Refused, match=r"file.format.* 10"):
        torch_compat.load(REPOSITORY / "fixtures" / "torch-2.13.0" / "gelu.pt", reader="reference@1.0.0")
    with pytest.raises(Raised, match="missing value for argument 'a'"):
        torch_compat.load(DIV)()
    with pytest.raises(Unsupported, match="aten::frobnicate"):
        torch_compat.load(lacking(tmp_path))(SEVEN)
    with pytest.raises(Refused):
        torch_compat.load(REPOSITORY / "fixtures" / "torch-2.13.0" / "state_dict.pt")


@pytest.mark.parametrize("reader", ["torch-2.13.0", "1.5.1", "references", "", "reference@yesterday", "reference@1.x"])
def test_a_reader_that_is_none_is_refused(reader: str) -> None:
    with pytest.raises(UsageError):
        torch_compat.load(DIV, reader=reader)


def test_a_release_is_named_as_what_another_command_takes() -> None:
    with pytest.raises(UsageError, match="torch-compat run PATH --reader"):
        torch_compat.load(DIV, reader="torch-2.13.0")


def test_an_endless_loop_ends(tmp_path: Path) -> None:
    path = endless(tmp_path)
    with pytest.raises(Raised, match="more than 1000 steps"):
        torch_compat.load(path, limits=LIMITS._replace(steps=1000))()


def lacking(folder: Path) -> Path:
    return write(folder, "def forward(self: __torch__.m.Model, x: Tensor) -> Tensor:", "  return torch.frobnicate(x)")


def endless(folder: Path) -> Path:
    return write(
        folder,
        "def forward(self: __torch__.m.Model) -> int:",
        "  x = 0",
        "  while True:",
        "    x = torch.add(x, 1)",
        "  return x",
    )


# ---------------------------------------------------------------------------------------------------------------- process


@pytest.fixture(scope="module")
def process() -> Iterator[Reference]:
    with Reference() as reader:
        yield reader


def observe(reader: Reference, path: Path, calls: list[Any], horizon: str = "reference", **more: Any) -> dict[str, Any]:
    return reader.request("observe", path=str(path), family="torchscript", calls=calls, horizon=horizon, **more)


def test_it_answers_as_releases_do(process: Reference) -> None:
    reply = observe(process, DIV, [{"method": "forward", "args": [1, 2]}])
    assert reply["result"].keys() == {"state", "calls", "state_after"}
    assert reply["result"]["calls"][0]["first"]["error"]["stage"] == "call"


def test_a_refusal_is_an_answer(process: Reference, tmp_path: Path) -> None:
    reply = observe(process, REPOSITORY / "fixtures" / "torch-2.13.0" / "gelu.pt", [], "reference@1.0.0")
    assert reply["result"]["error"]["stage"] == "load"
    (tmp_path / "damaged.pt").write_bytes(DIV.read_bytes()[:-30])
    assert observe(process, tmp_path / "damaged.pt", [])["result"]["error"]["stage"] == "load"


def test_the_death_of_the_release_is_an_answer(process: Reference) -> None:
    path = REPOSITORY / "fixtures" / "torch-2.0.0" / "div_out.pt"
    asked: dict[str, dict[str, Any]] = {
        "observe": {"family": "torchscript", "calls": []},
        "run": {"method": "forward", "args": []},
    }
    for do, more in asked.items():
        reply = process.request(do, path=str(path), horizon="reference@1.8.1", **more)
        assert reply["slips"] == ["newer-debug-records"]
        assert (reply["crashed"]["stage"], reply["crashed"]["signal"]) == ("load", "SIGABRT")
        assert "crashes here" in reply["crashed"]["predicted"]


def test_what_it_lacks_is_named(process: Reference, tmp_path: Path) -> None:
    path = lacking(tmp_path)
    tensor = {"tensor": {"dtype": "int8", "shape": [1], "strides": [1], "bytes": "AQ=="}}
    reply = observe(process, path, [{"method": "forward", "args": [tensor]}])
    assert reply["unsupported"]["code"] == "operator"
    assert "aten::frobnicate" in reply["unsupported"]["message"]


def test_time_that_is_over_costs_one_answer(process: Reference, tmp_path: Path) -> None:
    reply = observe(process, endless(tmp_path), [{"method": "forward", "args": []}], timeout_s=0.5)
    assert reply == {"timed-out": {"timeout_s": 0.5, "stage": "call"}}
    assert "result" in observe(process, DIV, [])


def test_a_death_costs_one_answer(process: Reference, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = process._workshop.child

    def killed(spec: Spec) -> ChildProcess:
        child = taken(spec)
        assert child.isolation is not None
        os.kill(child.pid, signal.SIGKILL)
        return child

    with monkeypatch.context() as patched:
        patched.setattr(process._workshop, "child", killed)
        reply = observe(process, DIV, [])
    assert (reply["crashed"]["signal"], reply["crashed"]["stage"]) == ("SIGKILL", "load")
    assert "result" in observe(process, DIV, [])


def test_a_fault_of_ours_is_never_green_and_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise KeyError("surprise")

    monkeypatch.setattr("torch_compat.readers.requests.perform", fail)
    reply = answer({"do": "observe", "path": "x", "family": "torchscript", "calls": [], "horizon": "reference"})
    assert reply["unsupported"]["code"] == "fault"
    assert "fail, test_reference.py" in reply["unsupported"]["message"]


def test_it_says_who_it_is() -> None:
    who = identity()
    assert (who["reader"], who["version"], who["numpy"]) == ("reference", torch_compat.__version__, np.__version__)


@pytest.mark.parametrize(("name", "expected"), [("reference", True), ("reference@1.5.1", True), ("torch-2.13.0", False)])
def test_its_names(name: str, expected: bool) -> None:
    assert is_reference(name) is expected


# --------------------------------------------------------------------------------------------------------------- identity

ANSWERED = """
import sys
opened = set()
sys.addaudithook(lambda event, given: opened.add(str(given[0])) if event == "open" else None)
from torch_compat.readers.requests import answer
from torch_compat.releases.data import packaged
for horizon in ("reference", "reference@1.0.0", "reference@1.5.1"):
    reply = answer({"do": "observe", "path": sys.argv[1], "family": "torchscript", "calls": [], "horizon": horizon})
    assert "result" in reply, reply
print(*opened, *(module.__file__ for name, module in sys.modules.items() if name.startswith("torch_compat")), sep="\\n")
"""


def test_everything_that_an_answer_rests_on_is_part_of_the_identity() -> None:
    """A process that answers imports and opens nothing of ours that the identity does not hash."""
    done = subprocess.run([sys.executable, "-c", ANSWERED, str(DIV)], capture_output=True, text=True, check=True)
    used = {Path(line) for line in done.stdout.splitlines() if line.endswith((".py", ".toml", ".txt"))}
    hashed = {*code_of("readers"), *known_to_horizons()}
    package = Path(torch_compat.__file__).parent
    ours = {path for path in used if path.is_relative_to(package) or path.is_relative_to(packaged())}
    assert {path.suffix for path in ours} == {".py", ".toml", ".txt"}
    assert ours <= hashed, ours - hashed


def test_policies_that_say_what_releases_do_are_part_of_the_identity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "policies/torch/behaviors.toml",
        "policies/torch/new.toml",
        "policies/torch/waivers/x.toml",
        "fixtures/globals/names.txt",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    monkeypatch.setattr("torch_compat.readers.reference.packaged", tmp_path.joinpath)

    def code() -> str:
        return str(identity.__wrapped__()["code"])

    before = code()
    for name in ("policies/torch/behaviors.toml", "policies/torch/new.toml", "fixtures/globals/names.txt"):
        (tmp_path / name).write_text("changed")
        assert code() != before, name
        (tmp_path / name).write_text("")
    (tmp_path / "policies/torch/waivers/x.toml").write_text("changed")
    assert code() == before
