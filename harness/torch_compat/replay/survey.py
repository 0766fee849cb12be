"""Surveying: what a release says of its own operators, upgraders and limits, recorded while its environment stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch_compat.errors import ReaderError
from torch_compat.inside import script
from torch_compat.readers.torch_release import TorchRelease

if TYPE_CHECKING:
    from torch_compat.readers.environments import Environment

__all__ = ["survey"]

SCRIPT = script("survey")
SECONDS = 900  # importing all of a release takes long, and 1.6 forks a thousand times: asking it for an operator's kernels often crashes


def survey(environment: Environment) -> dict[str, Any]:
    """Everything that harness/torch_compat/inside/survey.py asks of a release.

    Raises:
        ReaderError: the survey crashed or took too long.
    """
    with TorchRelease(environment) as reader:
        reply = reader.request("survey", script=str(SCRIPT), timeout_s=SECONDS)
    if "result" not in reply:
        raise ReaderError(f"surveying {environment.version} ended with {next(iter(reply))}", code="survey")
    result: dict[str, Any] = reply["result"]
    return result
