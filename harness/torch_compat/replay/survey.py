"""Surveying: what a release says of its own operators, upgraders and limits, recorded while its environment stands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch_compat.readers
from torch_compat.errors import ReaderError
from torch_compat.readers.torch_release import TorchRelease

if TYPE_CHECKING:
    from torch_compat.readers.environments import Environment

__all__ = ["survey"]

SCRIPT = Path(torch_compat.readers.__file__).with_name("survey.py")
SECONDS = 900  # importing all of a release takes long, and 1.6 forks a thousand times: asking it for an operator's kernels often crashes


def survey(environment: Environment) -> dict[str, Any]:
    """Everything that harness/torch_compat/readers/survey.py asks of a release.

    Raises:
        ReaderError: the survey crashed or took too long.
    """
    with TorchRelease(environment) as reader:
        reply = reader.request("survey", script=str(SCRIPT), timeout_s=SECONDS)
    if "result" not in reply:
        raise ReaderError(f"surveying {environment.version} ended with {next(iter(reply))}", code="survey")
    result: dict[str, Any] = reply["result"]
    return result
