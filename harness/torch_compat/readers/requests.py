"""Requests to the reference reader, and its replies.

A request is ``{"do": "observe", "path", "family", "calls", "horizon"}`` or ``{"do": "run", "path", "method", "args", "horizon"}``.
It is answered in a separate process (:mod:`torch_compat.readers.child`). Stage messages may precede its reply, which has exactly one of

* ``"result"`` the program's behavior, in the form of goldens and observations (see harness/torch_compat/inside/worker.py);
* ``"crashed"`` that the release of the horizon crashes, according to ``policies/torch/behaviors.toml``: ``{"stage", "signal",
  "explanation", "predicted"}``, where ``predicted`` describes it in words; if the reference reader's own process dies, there is no reply;
* ``"unsupported"`` what the reference reader does not support: ``{"code", "message", "where"}``;
* ``"failed"`` why the request is invalid.

A ``result`` or ``crashed`` comes with ``slips``, the ids of the slips that the program encountered. A result that is only one of the
release's possible outcomes comes with ``unstable``: ``{"stage", "signal", "predicted"}``.

The result of ``run`` comes with ``notes`` and ``upgraders``: ``[[unit, line, operator, upgrader]]``.
"""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch_compat.errors import ArchiveError, HarnessError, Raised, Refused, Unsupported, UsageError
from torch_compat.runtime.encoding import Decoder, Encoder, death, perform
from torch_compat.runtime.horizons import horizon
from torch_compat.runtime.load import load
from torch_compat.runtime.slips import DiesCalled, DiesLoading, explanation

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch_compat.archive import Archive
    from torch_compat.releases.behavior import Behavior

__all__ = ["answer"]


def answer(
    request: dict[str, Any], progress: Callable[[str], None] = lambda _: None, opened: Callable[[], Archive] | None = None
) -> dict[str, Any]:
    """Return the reply to a request. Any internal exception is reported as a fault of the reference reader.

    Parameters:
        progress: called with each stage.
        opened: opens the archive, if this process cannot open its path.
    """
    try:
        archive = Path(request["path"]) if opened is None else opened()
        return {"observe": _observe, "run": _run}[request["do"]](request, archive, progress)
    except Unsupported as error:
        return {"unsupported": _error(error)}
    except UsageError as error:
        return {"failed": str(error)}
    except (Refused, ArchiveError) as error:
        return {"result": {"error": {"stage": "load", "type": error.code, "message": error.message, "where": error.where}}}
    except Exception as error:  # noqa: BLE001 - reported, never hidden: no rule passes on the outcome `unsupported`
        at = traceback.extract_tb(error.__traceback__)[-1]
        message = (
            f"the reference reader failed in {at.name}, {Path(at.filename).name}:{at.lineno}: {type(error).__name__}: {error}"
        )
        return {"unsupported": {"code": "fault", "message": message, "where": None}}


def _observe(request: dict[str, Any], archive: Path | Archive, progress: Callable[[str], None]) -> dict[str, Any]:
    progress("call")  # loading only reads data; only calls can take long
    met: dict[str, Behavior] = {}
    done = perform(archive, request["family"], request["calls"], request["horizon"], met)
    reply = done if "crashed" in done else {"result": done}
    return {**reply, **_slips(met, request["horizon"])}


def _slips(met: dict[str, Behavior], horizon: str) -> dict[str, Any]:
    """Return the parts to add to a result for the slips encountered; empty if there were none."""
    messages: dict[str, Any] = {"slips": sorted(met)} if met else {}
    for slip in met.values():
        if slip.outcome == "unstable":
            messages["unstable"] = {"stage": slip.stage, "signal": slip.signal, "predicted": explanation(slip, horizon)}
    return messages


def _run(request: dict[str, Any], archive: Path | Archive, progress: Callable[[str], None]) -> dict[str, Any]:
    try:
        module = load(archive, horizon(request["horizon"]))
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
    return [list(item) for item in dict.fromkeys(program.applied)]


def _error(error: HarnessError) -> dict[str, Any]:
    return {"code": error.code, "message": error.message, "where": error.where}
