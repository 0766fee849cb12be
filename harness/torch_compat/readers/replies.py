"""Checks replies to requests (:mod:`torch_compat.readers.requests`): the process that wrote them ran an untrusted program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch_compat.readers.wire import bad
from torch_compat.values.form import check_result

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["checked", "stage_of"]

STAGES = ("load", "call")
DEATH = {"stage": str, "signal": str, "said": str, "predicted": str}
UNSTABLE = {"stage": str, "signal": str, "predicted": str}


def stage_of(reply: dict[str, Any]) -> str:
    """Return the stage given in a message before a reply.

    Raises:
        ReaderError: it is invalid (``bad-reply``).
    """
    stage = reply["stage"]
    if len(reply) != 1 or stage.__class__ is not str or stage not in STAGES:
        raise bad(f"an unknown stage {stage!r:.40}")
    result: str = stage
    return result


def checked(reply: Any, do: str) -> dict[str, Any]:
    """Return a reply after checking its form.

    Raises:
        ReaderError: it is invalid (``bad-reply``).
    """
    if reply.__class__ is not dict:
        raise bad(f"a value of type {type(reply).__name__}")
    beside = reply.keys() - {"result", "crashed", "unsupported"}
    ends = len(reply) - len(beside)
    if ends != 1 or not beside <= {"slips", "unstable", "notes", "upgraders"}:
        raise bad(f"a reply with the keys {sorted(map(str, reply))!r:.200}")
    _each(reply.get("slips", []), lambda item: item.__class__ is str, "slips")
    _beside(reply)
    if "unstable" in reply:
        _record(reply["unstable"], UNSTABLE, "unstable")
    if "crashed" in reply:
        _record(reply["crashed"], DEATH, "crashed")
    elif "unsupported" in reply:
        _error(reply["unsupported"], {"code": str, "message": str}, "unsupported")
    else:
        _result(reply["result"], do)
    results: dict[str, Any] = reply
    return results


def _beside(part: dict[str, Any]) -> None:
    _each(part.get("notes", []), lambda item: item.__class__ is str, "notes")
    _each(part.get("upgraders", []), _is_upgrader, "upgraders")


def _is_upgrader(item: Any) -> bool:
    return item.__class__ is list and [part.__class__ for part in item] == [str, int, str, str]


def _result(result: Any, do: str) -> None:
    if result.__class__ is not dict:
        raise bad(f"a result of type {type(result).__name__}")
    messages = dict(result)
    if do == "run":
        _beside(messages)
        messages = {key: part for key, part in messages.items() if key not in {"notes", "upgraders"}}
        if len(messages) != 1 or not messages.keys() <= {"value", "error"}:
            raise bad(f"a result with the keys {sorted(map(str, messages))!r:.200}")
    if "error" in messages:
        _error(messages["error"], {"stage": str, "type": str, "message": str}, "error")
        messages["error"] = {key: part for key, part in messages["error"].items() if key != "where"}
    try:
        check_result(messages, "result")
    except (ValueError, RecursionError) as error:
        raise bad(str(error)[:400]) from error


def _error(error: Any, parts: Mapping[str, type], name: str) -> None:
    if error.__class__ is dict and error.get("where").__class__ in {str, type(None)}:
        error = {key: part for key, part in error.items() if key != "where"}
    _record(error, parts, name)


def _record(value: Any, parts: Mapping[str, type], name: str) -> None:
    if value.__class__ is not dict or {key: part.__class__ for key, part in value.items()} != parts:
        raise bad(f"{name} is not of the form {{{', '.join(parts)}}}")


def _each(value: Any, fits: Callable[[Any], bool], name: str) -> None:
    if value.__class__ is not list or not all(map(fits, value)):
        raise bad(f"{name} are invalid")
