"""The operators of a build as PyTorch's own ``test/forward_backward_compatibility/dump_all_function_schemas.py`` writes them.

The process imports only torch, like that script. The worker has imported more by the time it is asked, so it is not used.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from torch_compat.errors import EnvironmentUnavailable, ReaderError
from torch_compat.readers.builds import fenced
from torch_compat.readers.isolation import Isolation, isolation, widened

if TYPE_CHECKING:
    from torch_compat.readers.environments import Environment

__all__ = ["dump_operators"]

SECONDS: Final = 600
SCRIPT: Final = """
import sys
import torch

if not hasattr(torch._C, "_jit_get_all_schemas"):
    sys.exit("torch %s has no list of all schemas; torch 1.3 or newer is required" % torch.__version__)
schemas = list(torch._C._jit_get_all_schemas())
if hasattr(torch._C, "_jit_get_custom_class_schemas"):
    schemas += torch._C._jit_get_custom_class_schemas()
with open(sys.argv[1], "w") as stream:
    stream.write("".join("%s\\n" % schema for schema in schemas))
"""


def dump_operators(environment: Environment) -> str:
    """Return one schema per line, operators first, then methods of classes, in torch's order.

    A release that was built here runs inside the sandbox. A Python of the user runs without it: its torch may be anywhere.

    Raises:
        EnvironmentUnavailable: it cannot import torch, or its torch does not list all schemas.
        ReaderError: it does not start, or takes too long.
    """
    own = not environment.version
    named = f"{environment.python}" if own else f"torch-{environment.version}"
    fence = Isolation(network=False, home=False, reasons={}) if own else widened(isolation(), environment.folders)
    with tempfile.TemporaryDirectory(prefix="torch-compat-") as folder:
        place = Path(folder).resolve()
        target = place / "schemas.txt"
        done, launched = fenced(environment, fence, place, [environment.python, "-c", SCRIPT, target], seconds=SECONDS)
        if launched:
            raise ReaderError(f"{named} failed to start: {launched}", code="does-not-start")
        if done.returncode != 0:
            message = done.stderr.strip().splitlines() or [f"it exited with status {done.returncode}"]
            raise EnvironmentUnavailable("its operators cannot be listed", where=named, hint=message[-1], code="no-schemas")
        return target.read_text(encoding="utf-8")
