"""Surveying: what a release says of its own operators, upgraders and limits, recorded while its environment stands."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
SECONDS = 900  # importing all of a release takes long, and 1.6 forks a thousand times: asking it for an operator's kernels often crashes
TRAILER = """

def survey(torch):
    with open({asked!r}, encoding="utf-8") as stream:
        return ask(torch, json.load(stream))
"""


def survey(environment: Environment, fixtures: Path) -> dict[str, Any]:
    """Everything that harness/torch_compat/inside/survey.py and exported.py ask of a release.

    Parameters:
        fixtures: the folder of the frozen fixtures that altered archives are made of.

    Raises:
        ReaderError: the survey crashed or took too long.
    """
    return {**_asked(environment, SCRIPT), **_exported(environment, fixtures)}


def _exported(environment: Environment, fixtures: Path) -> dict[str, Any]:
    """What it says of exported programs."""
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
        asking, asked = Path(folder, "ask.py"), Path(folder, "witnesses.json")  # the worker runs a file and hands nothing to it
        asked.write_text(json.dumps(witnesses), "utf-8")
        asking.write_text(EXPORTED.read_text(encoding="utf-8") + TRAILER.format(asked=str(asked)), "utf-8")
        return _asked(environment, asking, reads=[Path(folder)])


def _asked(environment: Environment, asking: Path, reads: Sequence[Path] = ()) -> dict[str, Any]:
    with TorchRelease(environment, reads=reads) as reader:
        reply = reader.request("survey", script=str(asking), timeout_s=SECONDS)
    if "result" not in reply:
        raise ReaderError(f"surveying {environment.version} ended with {next(iter(reply))}", code="survey")
    result: dict[str, Any] = reply["result"]
    return result
