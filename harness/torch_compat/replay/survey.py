"""Survey a release: record what it reports about its own operators, upgraders and limits, while its environment exists."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch_compat.corpus.calls import recorded_calls
from torch_compat.errors import ReaderError
from torch_compat.inside import script
from torch_compat.readers.torch_release import TorchRelease
from torch_compat.replay.witnesses import exported_witnesses

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch_compat.readers.environments import Environment

__all__ = ["survey"]

SCRIPT = script("survey")
EXPORTED = script("exported")
CALLS = script("calls")
SECONDS = 900  # importing all of a release takes long, and 1.6 forks a thousand times: querying kernels often crashes
TRAILER = """

def survey(torch):
    with open({asked!r}, encoding="utf-8") as stream:
        return ask(torch, json.load(stream))
"""


def survey(environment: Environment, fixtures: Path) -> dict[str, Any]:
    """Everything that harness/torch_compat/inside/survey.py, exported.py and calls.py query from a release.

    Parameters:
        fixtures: the folder of the frozen fixtures from which altered archives are made, and of the recorded calls.

    Raises:
        ReaderError: the survey crashed or took too long.
    """
    return {**_asked(environment, SCRIPT), **_exported(environment, fixtures), **_calls(environment, fixtures)}


def _exported(environment: Environment, fixtures: Path) -> dict[str, Any]:
    """What the release reports about exported programs."""
    with tempfile.TemporaryDirectory(prefix="torch-compat-") as folder:
        witnesses = []
        for witness in exported_witnesses(fixtures):
            path = Path(folder, f"{witness.name}.pt2")
            path.write_bytes(witness.data)
            witnesses.append(
                {
                    "name": witness.name,
                    "path": str(path),
                    "base": witness.base,
                    "marker": witness.marker,
                    "shapes": [list(shape) for shape in witness.shapes],
                }
            )
        return _asked_with(environment, Path(folder), [EXPORTED], witnesses)


def _calls(environment: Environment, fixtures: Path) -> dict[str, Any]:
    """The results of the recorded operator calls."""
    with tempfile.TemporaryDirectory(prefix="torch-compat-") as folder:
        return _asked_with(environment, Path(folder), [SCRIPT, CALLS], [call.as_json() for call in recorded_calls(fixtures)])


def _asked_with(environment: Environment, folder: Path, scripts: Sequence[Path], given: Any) -> dict[str, Any]:
    """The result of concatenated scripts whose ``ask(torch, given)`` gets a value from a file: the worker passes no arguments."""
    asking, asked = folder / "ask.py", folder / "given.json"
    asked.write_text(json.dumps(given), "utf-8")
    texts = [path.read_text(encoding="utf-8") for path in scripts]
    asking.write_text("\n".join(texts) + TRAILER.format(asked=str(asked)), "utf-8")
    return _asked(environment, asking, reads=[folder])


def _asked(environment: Environment, asking: Path, reads: Sequence[Path] = ()) -> dict[str, Any]:
    with TorchRelease(environment, reads=reads) as reader:
        reply = reader.request("survey", script=str(asking), timeout_s=SECONDS)
    if "result" not in reply:
        raise ReaderError(f"survey of torch {environment.version} failed: {next(iter(reply))}", code="survey")
    result: dict[str, Any] = reply["result"]
    return result
