"""Programs that hypothesis writes, in a real release and here.

The release compiles and saves each one, loads the archive again and calls it; the reference reader loads the same archive. A
disagreement is kept as an archive and a line as those of ``tests/runtime/programs/manifest.jsonl``, which is all that replaying it needs.
"""

from __future__ import annotations

import base64
import json
import struct
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from tools.differential.calls import Release
from tools.differential.comparison import VERSION, Disagreement
from tools.differential.sources import programs
from torch_compat.errors import Unsupported
from torch_compat.policy import load_policy
from torch_compat.readers.torch_release import WORKER
from torch_compat.runtime.encoding import perform
from torch_compat.values.compare import compare, distances

__all__ = ["Programs", "apart", "calls_of", "check", "run"]

SCRIPT = Path(__file__).with_name("torch_programs.py")
POLICY = load_policy(Path(__file__).parents[2] / "policies" / "torch")
# In which strides an operator returns its values was never promised.
DISREGARDED = frozenset({"strides"})


def apart(expected: dict[str, Any], got: dict[str, Any], disregarded: frozenset[str] = frozenset()) -> list[Any]:
    """What lies beyond the policy's tolerances."""
    result = compare(expected, got)
    beyond: list[Any] = list(result.errors)
    far = distances(expected, got) if result.result == "differs" else []
    for extent in result.extent:
        if extent["kind"] in disregarded:
            continue
        tolerance = POLICY.tolerance("torchscript", (), extent["dtype"])
        near = extent["kind"] == "value" and tolerance is not None and extent["frontier"] is not None
        if not near or not all(tolerance.covers(distance) for distance in far if distance.dtype == extent["dtype"]):  # type: ignore[union-attr]
            beyond.append((extent, result.differences))
    return beyond


class Programs(Release):
    """A real release that compiles, saves, loads and runs. Where it dies of one, another process takes the next."""

    scripts = (SCRIPT, WORKER)

    def __init__(self, version: str = VERSION) -> None:
        super().__init__(version)


def calls_of(program: dict[str, Any]) -> list[dict[str, Any]]:
    """The calls that a program is asked for: ``forward``, and what it keeps."""
    raw = base64.b64encode(struct.pack("<6f", *program["x"])).decode()

    def tensor(shape: list[int], strides: list[int], storage: int) -> dict[str, Any]:
        return {"tensor": {"dtype": "float32", "shape": shape, "strides": strides, "offset": 0, "bytes": raw, "storage": storage}}

    y = tensor([3, 2], [1, 3], 0) if program["alias"] else tensor([2, 3], [3, 1], 1)
    text = program["s"]
    arguments = [
        program["n"], {"float": repr(program["r"])}, text, tensor([2, 3], [3, 1], 0), y, program["l"], program["o"],
        {"dict": [[key, value] for key, value in program["d"].items()]},
    ]  # fmt: skip
    return [{"method": "forward", "args": arguments}, {"method": "state", "args": []}]


def check(release: Programs, program: dict[str, Any], folder: Path) -> str:
    """Both run a program: ``compared``, ``raised`` by both, ``unscriptable`` or ``crashed``.

    Raises:
        Disagreement: they do not do the same.
    """
    path = folder / "program.pt"
    calls = calls_of(program)
    request = {"source": program["source"], "path": str(path), "calls": calls}
    theirs = release.ask(request)
    if "source_error" in theirs:
        return "unscriptable: " + str(theirs["source_error"])
    if "crashed" in theirs:
        return "crashed"
    try:
        ours = perform(path, "torchscript", calls, f"reference@{release.version}")
    except Unsupported as error:
        raise Disagreement(f"the reader cannot: {error.message}\n{program['source']}") from error
    result = apart(theirs, ours, DISREGARDED)
    if result and not apart(release.ask({**request, "optimize": False}), ours, DISREGARDED):
        return "compared, with torch's optimiser off: it leaves out what nobody reads, with the errors of that"
    if result:
        keep(path, calls, theirs, folder)
        raise Disagreement(
            f"{result[:2]!r:.1500}\n{program['source']}\narguments: { ({k: v for k, v in program.items() if k != 'source'}) }"
        )
    return "raised" if "error" in theirs["calls"][0]["first"] else "compared"


def keep(path: Path, calls: list[dict[str, Any]], theirs: dict[str, Any], folder: Path) -> None:
    """Write down a disagreement; hypothesis comes to the smallest last, which stays."""
    (folder / "disagreement.pt").write_bytes(path.read_bytes())
    row = {"calls": calls, "file": "disagreement.pt", "result": theirs, "shows": "", "writer": VERSION}
    (folder / "disagreement.jsonl").write_text(json.dumps(row, sort_keys=True) + "\n", encoding="utf-8")


def run(release: Programs, count: int, start: int, folder: Path) -> Counter[str]:
    """So many programs."""
    done: Counter[str] = Counter()

    @seed(start)
    @settings(
        max_examples=count, database=None, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate, Phase.shrink],
        report_multiple_bugs=False, print_blob=False,
    )  # fmt: skip
    @given(programs())
    def one(program: dict[str, Any]) -> None:
        done[check(release, program, folder)] += 1

    one()
    return done
