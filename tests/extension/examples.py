"""The example extensions: built, recorded, and loaded in real releases, each in a separate process."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch_compat.operators.extensions import RecordedReleases, from_dispatcher, from_list
from torch_compat.readers.torch_release import DETERMINISM
from torch_compat.replay.extension import ask_extension

if TYPE_CHECKING:
    from torch_compat.operators.manifest import ExtensionManifest
    from torch_compat.readers.environments import Environment

HERE = Path(__file__).parent
CPP = HERE / "example_cpp"
PRIVATEUSE1 = HERE / "example_privateuse1"
VERIFY = HERE.parents[1] / "harness" / "torch_compat" / "extension.py"
MANUAL = HERE.parents[1] / "harness" / "torch_compat" / "operators" / "EXTENSIONS.md"
CALLS = ("add_two", "embedding_bag_backward")
LONGEST_S = 900

# Run by a release's own Python, down to 3.7: the one file of ours that an extension carries, and the extension.
SCRIPT = """
import importlib.util, json, sys, time, warnings
import torch

request = json.loads(sys.argv[1])
answer = {"torch": str(torch.__version__), "verify": None, "error": None}
if request["manifest"]:
    spec = importlib.util.spec_from_file_location("carried", request["verify"])
    carried = sys.modules["carried"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(carried)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        started = time.perf_counter()
        found = carried.verify(request["manifest"])
        ms = 1000 * (time.perf_counter() - started)
    told = [str(one.message) for one in caught if issubclass(one.category, carried.OperatorApiWarning)]
    answer["verify"] = {"fits": found.fits, "told": told, "faults": [list(fault) for fault in found.faults], "unchecked": found.unchecked, "ms": ms}
print("ANSWER " + json.dumps(answer), flush=True)  # loading may end the process
sys.path.insert(0, request["path"])
try:
    if request["library"]:
        torch.ops.load_library(request["library"])
    if request["module"]:
        module = __import__(request["module"])
        for call in request["calls"]:
            getattr(module, call)()
except Exception as error:
    answer["error"] = "%s: %s" % (type(error).__name__, error)
print("ANSWER " + json.dumps(answer), flush=True)
"""


def documented(text: str) -> bool:
    """Whether the manual shows a text, however its lines are wrapped."""
    return "".join(text.split()) in "".join(MANUAL.read_text(encoding="utf-8").split())


def build(environment: Environment, name: str, folder: Path) -> Path:
    """A library of example_cpp, built by torch.utils.cpp_extension of a release."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [
        str(environment.python),
        "setup.py",
        name,
        "build_ext",
        f"--build-lib={folder / 'lib'}",
        f"--build-temp={folder / 'tmp'}",
    ]
    environ = environment.environ({**DETERMINISM, "CUDA_HOME": ""})
    done = subprocess.run(command, cwd=CPP, env=environ, capture_output=True, text=True, timeout=LONGEST_S, check=False)
    library = folder / "lib" / f"{name}.so"
    assert done.returncode == 0, f"{done.stdout[-2000:]}{done.stderr[-4000:]}"
    assert library.is_file(), done.stdout[-2000:]
    return library


def try_out(
    environment: Environment, *, library: Path | None = None, module: str | None = None, manifest: Path | None = None
) -> dict[str, Any]:
    """Load an example in a release: what verify said before, and the error of loading it or of its calls, None if there was none."""
    request = {
        "library": None if library is None else str(library),
        "module": module,
        "path": str(PRIVATEUSE1),
        "calls": CALLS,
        "manifest": None if manifest is None else str(manifest),
        "verify": str(VERIFY),
    }
    command = [str(environment.python), "-c", SCRIPT, json.dumps(request)]
    done = subprocess.run(
        command, env=environment.environ(DETERMINISM), capture_output=True, text=True, timeout=LONGEST_S, check=False
    )
    answers = [line.removeprefix("ANSWER ") for line in done.stdout.splitlines() if line.startswith("ANSWER ")]
    assert answers, done.stderr[-4000:]
    answer: dict[str, Any] = json.loads(answers[-1])
    if done.returncode:  # an exception while a library is being loaded ends the process
        answer["error"] = done.stderr.partition("what():")[2].strip() or done.stderr[-2000:]
    return answer


def record_privateuse1(environment: Environment, recorded: RecordedReleases) -> ExtensionManifest:
    """The manifest of the backend in Python, with what it calls."""
    answer = ask_extension(environment, module="example_privateuse1", paths=[PRIVATEUSE1])
    assert answer["error"] is None, answer["error"]
    listed = PRIVATEUSE1 / "operators.txt"
    return from_dispatcher(
        answer, environment.version, recorded, extension="example_privateuse1", listed=(listed.read_text("utf-8"), listed.name)
    )


def record_library(environment: Environment, library: Path, recorded: RecordedReleases) -> ExtensionManifest:
    """The manifest of a library that was built."""
    answer = ask_extension(environment, library=library)
    assert answer["error"] is None, answer["error"]
    return from_dispatcher(answer, environment.version, recorded, extension=library.stem)


def seed_manifest(recorded: RecordedReleases) -> ExtensionManifest:
    """What the extension of 2020 registers, from a list: torch 1.4 does not show its dispatcher."""
    return from_list("backend MSNPU\nregisters aten::_embedding_bag\n", "list", "1.4.0", recorded, extension="embedding_bag_1_4")
