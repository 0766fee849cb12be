"""The process of the reference reader: JSON lines in on standard input, replies out on standard output.

A request is ``{"do": "observe", "path", "family", "calls", "horizon"}`` or ``{"do": "run", "path", "method", "args", "horizon"}``;
lines ``{"stage": ...}`` may precede its reply, which holds exactly one of

* ``"result"`` what the program does, in the form of goldens and observations (see harness/torch_compat/readers/worker.py);
* ``"crashed"`` that the release of the horizon dies, as ``policies/torch/slips.toml`` has it: ``{"stage", "signal", "said",
  "predicted"}``, of which the last says so in words; a process of the reference reader that dies itself says nothing;
* ``"unsupported"`` what the reference reader lacks: ``{"code", "message", "where"}``;
* ``"failed"`` why the request makes no sense.

Beside a ``result`` or ``crashed`` stand ``slips``, the ids of those that the program came to; and ``unstable`` beside a result that is
only one of those that the release may come to: ``{"stage", "signal", "predicted"}``.

The result of ``run`` has beside it ``notes`` and ``upgraders``: ``[[unit, line, operator, upgrader]]``.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch_compat.errors import ArchiveError, HarnessError, Raised, Refused, Unsupported, UsageError
from torch_compat.runtime import registry
from torch_compat.runtime.encoding import Decoder, Encoder, death, perform
from torch_compat.runtime.horizons import horizon
from torch_compat.runtime.limits import bound_memory
from torch_compat.runtime.program import load
from torch_compat.runtime.slips import DiesCalled, DiesLoading

if TYPE_CHECKING:
    from torch_compat.runtime.slips import Slip

__all__ = ["answer", "main"]


PR_SET_PDEATHSIG = 1  # of Linux's prctl: the signal that a process gets when its parent's thread ends


def main() -> None:
    """Serve until standard input ends, or the process that is named on the command line does, however it ends."""
    import ctypes  # noqa: PLC0415, TID251 - of the process alone, not of those who call answer()

    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if len(sys.argv) > 1 and os.getppid() != int(sys.argv[1]):
        return  # it ended before it could be asked for
    replies = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)  # what anybody prints is no reply

    def say(reply: dict[str, Any]) -> None:
        replies.write(json.dumps(reply) + "\n")
        replies.flush()

    registry.known()  # every operator is imported before the clock of a request runs
    bound_memory()
    say({"started": True})
    for line in sys.stdin.buffer:
        say(answer(json.loads(line), lambda stage: say({"stage": stage})))


def answer(request: dict[str, Any], progress: Any = lambda _: None) -> dict[str, Any]:
    """The reply to a request. Whatever goes wrong inside is a fault of the reference reader, and says so."""
    try:
        return {"observe": _observe, "run": _run}[request["do"]](request, progress)
    except Unsupported as error:
        return {"unsupported": _error(error)}
    except UsageError as error:
        return {"failed": str(error)}
    except (Refused, ArchiveError) as error:
        return {"result": {"error": {"stage": "load", "type": error.code, "message": error.message, "where": error.where}}}
    except Exception as error:  # noqa: BLE001 - reported, never hidden: the outcome `unsupported` is green to no rule
        at = traceback.extract_tb(error.__traceback__)[-1]
        said = f"the reference reader fails in {at.name}, {Path(at.filename).name}:{at.lineno}: {type(error).__name__}: {error}"
        return {"unsupported": {"code": "fault", "message": said, "where": None}}


def _observe(request: dict[str, Any], progress: Any) -> dict[str, Any]:
    progress("call")  # what loads is data; only calls can take long
    met: dict[str, Slip] = {}
    done = perform(Path(request["path"]), request["family"], request["calls"], request["horizon"], met)
    reply = done if "crashed" in done else {"result": done}
    return {**reply, **_slips(met, request["horizon"])}


def _slips(met: dict[str, Slip], horizon: str) -> dict[str, Any]:
    """What is to be said beside a result of slips that were met; nothing where there were none."""
    said: dict[str, Any] = {"slips": sorted(met)} if met else {}
    for slip in met.values():
        if slip.outcome == "unstable":
            said["unstable"] = {"stage": slip.stage, "signal": slip.signal, "predicted": slip.said(horizon)}
    return said


def _run(request: dict[str, Any], progress: Any) -> dict[str, Any]:
    try:
        module = load(Path(request["path"]), horizon(request["horizon"]))
    except (DiesLoading, DiesCalled) as error:
        return {**death("load", error), "slips": [error.slip.id]}
    program = module.program
    progress("call")
    result: dict[str, Any] = {"notes": list(program.notes)}
    try:
        value = module.run(request["method"], Decoder().decode({"tuple": request["args"]}))
        result["value"] = Encoder().encode(value)
    except DiesCalled as error:
        return {**death("call", error), "slips": [error.slip.id], "notes": result["notes"]}
    except Raised as error:
        result["error"] = {"stage": "call", "type": error.code, "message": error.message, "where": error.where}
    except Unsupported as error:
        return {"unsupported": _error(error), "notes": result["notes"], "upgraders": _applied(program)}
    result["upgraders"] = _applied(program)
    return {"result": result, **_slips(program.slips.met, request["horizon"])}


def _applied(program: Any) -> list[list[Any]]:
    return [list(one) for one in dict.fromkeys(program.applied)]


def _error(error: HarnessError) -> dict[str, Any]:
    return {"code": error.code, "message": error.message, "where": error.where}


if __name__ == "__main__":
    main()
