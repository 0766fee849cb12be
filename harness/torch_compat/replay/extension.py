"""Ask a release what an extension registers: load it in the release's own process and query the dispatcher."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch_compat import inside
from torch_compat.errors import EnvironmentUnavailable, UsageError
from torch_compat.readers.torch_release import TorchRelease
from torch_compat.releases.release import Release

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch_compat.readers.environments import Environment

__all__ = ["ask_extension"]

SCRIPT = inside.script("extension")
SECONDS = 300
SHOWS_ITS_DISPATCHER = Release("1.7.0")
TRAILER = """

def survey(torch):
    return ask(torch, {request!r})
"""


def ask_extension(
    environment: Environment,
    *,
    library: Path | None = None,
    module: str | None = None,
    paths: Sequence[Path] = (),
    call: str | None = None,
) -> dict[str, Any]:
    """Load an extension in a release, and return its changes to the dispatcher (see harness/torch_compat/inside/extension.py).

    This runs the extension's code: isolated like that of an archive if the machine supports it, but otherwise without isolation.
    Naming an extension is a request to load it.

    Parameters:
        library, module: what to load: a built library, or a Python module; one of them.
        paths: folders to import from; apart from these and the library's folder, the process may read none of the user's files.
        call: a function of the module to call afterwards.

    Raises:
        UsageError: neither or both were given, the library does not exist, or loading it ends the process.
        EnvironmentUnavailable: the release does not expose its dispatcher.
    """
    if Release(environment.version) < SHOWS_ITS_DISPATCHER:
        raise EnvironmentUnavailable(
            f"torch {environment.version} does not expose its dispatcher; this needs torch 1.7 or newer",
            hint=f"record a list instead: --operators FILE --release {environment.version}",
            code="no-dispatcher",
        )
    if (library is None) == (module is None):
        raise UsageError("expected either a library or a module")
    if library is not None and not library.is_file():
        hint = "expected the shared library of an extension"
        raise UsageError("file not found", where=library.as_posix(), hint=hint, code="no-file")
    request = {
        "library": None if library is None else str(library.resolve()),
        "module": module,
        "paths": [str(path.resolve()) for path in paths],
        "call": call,
    }
    with tempfile.TemporaryDirectory(prefix="torch-compat-") as folder:
        script = Path(folder, "ask.py")  # the worker runs a file without arguments
        script.write_text(SCRIPT.read_text(encoding="utf-8") + TRAILER.format(request=json.loads(json.dumps(request))), "utf-8")
        reads = [*paths, *([] if library is None else [library.resolve().parent])]  # including the libraries next to it
        with TorchRelease(environment, reads=reads) as reader:
            reply = reader.request("survey", script=str(script), timeout_s=SECONDS)
    if "result" not in reply:
        end = reply.get("crashed") or reply.get("timed-out") or {}
        what = end.get("signal") or next(iter(reply))
        raise UsageError(
            f"loading the extension in torch {environment.version} crashed the process: {what}",
            hint="a kernel that does not match its operator's schema can cause this; load the extension manually to see the message",
            where=str(library or module),
            code="does-not-load",
        )
    result: dict[str, Any] = reply["result"]
    return result
