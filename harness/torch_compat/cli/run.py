"""``torch-compat run``: load a program and call it, with the reference reader or a real release."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from torch_compat.cli._format import announce, format_option, print_json, say, say_wrapped, trust_option
from torch_compat.cli._paths import NamedPath
from torch_compat.errors import (
    ArchiveError,
    EnvironmentUnavailable,
    HarnessError,
    NoArchive,
    NothingSelected,
    Untrusted,
    UsageError,
)
from torch_compat.readers.reference import NAME, Reference, is_reference, load
from torch_compat.runtime.faults import CALLED
from torch_compat.runtime.horizons import known_horizon
from torch_compat.runtime.json_values import FORM, plain, read_arguments, shown_value, value_text
from torch_compat.words import suggest

if TYPE_CHECKING:
    from pathlib import Path

    from torch_compat.readers.environments import Environment

__all__ = ["run"]

TIME_LIMIT = 60
STATUS = {"loaded": 0, "refused": 1, "raised": 1, "crashed": 1, "timed-out": 1, "unsupported": 4, "unavailable": 4}
FAULT = 3
MOST = 12  # methods in a message
PROGRAMS = ("torchscript", "mobile", "export")  # families with something that a release can run
_WRONG_ARGUMENTS = re.compile(
    r"^\w+\(\) (?:is missing value for argument|expected at most|missing \d+ required|takes \d+ positional)|Expected a value of type '"
)  # as TorchScript and Python word it
EXPECTED = "a TorchScript, mobile or exported program"


@click.command()
@click.argument("path", type=NamedPath())
@click.option(
    "--args",
    "arguments",
    metavar="ARGS.json|JSON|-",
    help="The list of positional arguments: a JSON file, the JSON itself, or - for standard input. Default: no arguments.",
)
@click.option("--method", default="forward", show_default=True, help="Method to call.")
@click.option(
    "--reader",
    default=NAME,
    show_default=True,
    metavar="reference[@HORIZON]|torch-X.Y.Z|python:PATH|wheel:FILE|nightly:DATE",
    help=(
        "The reference reader, optionally as of a release or date (reference@1.5.1, reference@2020-06-24), a release that has an "
        "environment on this machine, or a build of torch (such as python:PATH)."
    ),
)
@click.option("--explain", is_flag=True, help="Also print which calls were replaced by upgraders.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.1, max=86400),
    default=TIME_LIMIT,
    show_default=True,
    metavar="SECONDS",
    help="Stop the reader after this time.",
)
@trust_option
@format_option
def run(
    path: Path, arguments: str | None, method: str, reader: str, explain: bool, timeout: float, trust: bool, format_: str
) -> int:
    """Load a TorchScript, mobile or exported program and call one of its methods.

    The reference reader runs the program with NumPy, in a separate process. It does not need torch, and executes or imports no Python code
    from the archive. For an exported program (.pt2), the methods are forward and __call__; __call__ checks the inputs first.

    Arguments are a JSON list: null, booleans, integers, strings and lists are passed as is, a number with a decimal point or
    an exponent is a float, and {"tensor": {"dtype": "int64", "shape": [2], "data": [7, -7]}} is a tensor.

    A real release can execute code from the archive. It runs without access to the network, your environment variables, or your
    files. If this machine cannot isolate the release, only fixtures from the current tree's frozen corpus are loaded; any other
    archive is refused with the code `untrusted`, unless you pass --trust.

    Exit status: 0 the call returned a value; 1 loading was refused, or the program raised, crashed or timed out; 2 invalid usage,
    including a method that the program does not have, and for the reference reader a file without a program; 3 internal error in
    torch-compat; 4 the reader does not support a feature (the message names it), is not available here, or is not allowed to load the
    archive (untrusted).
    """
    if not path.is_file():
        raise UsageError(_no_file(path), where=plain(str(path)), hint=f"expected the file of {EXPECTED}", code="no-file")
    if not method:
        raise UsageError("--method is empty", hint="omit it to call forward", code="method")
    given = read_arguments(arguments) if arguments is not None else []
    if is_reference(reader):
        _refuse_without_program(path)
        done = _by_reference(path, known_horizon(reader).name, method, given, timeout)
    elif reader.removeprefix("torch-")[:1].isdigit() or reader.startswith(("torch-", "python:", "wheel:", "nightly:")):
        if explain:
            raise UsageError(
                "--explain works only with the reference reader: a release does not report which upgraders it applies"
            )
        done = _by_release(path, reader, method, given, timeout, trust=trust)
    else:
        raise UsageError(
            f"expected reference, reference@HORIZON, torch-X.Y.Z, python:PATH, wheel:FILE or nightly:DATE, found {plain(reader)!r}",
            hint="torch-compat run PATH --reader reference@1.5.1",
            code="reader",
        )
    status = FAULT if done.get("error", {}).get("code") == "fault" else done.pop("status", STATUS[done["outcome"]])
    upgraders = done.pop("upgraders", [])
    document = {**done, "method": method}
    if explain:
        document["upgraders"] = [
            {"unit": unit, "line": line, "operator": operator, "upgrader": upgrader}
            for unit, line, operator, upgrader in upgraders
        ]
    if format_ == "json":
        print_json(document)
    else:
        _print(document)
        if done["outcome"] == "raised" and _WRONG_ARGUMENTS.search(done["error"]["message"]):
            say_wrapped(f"note: for --args, {FORM}")
            say_wrapped(f"note: `torch-compat inspect {plain(str(path))} --code` prints the program")
    return status


def _no_file(path: Path) -> str:
    if path.is_dir():
        return "is a directory, not a file"
    return "is a pipe or a device, not a regular file" if path.exists() else "file not found"


def _refuse_without_program(path: Path) -> None:
    """Raise if a file contains no program. A damaged file is left to the reader, which reports the damage.

    Raises:
        UsageError: the file is no archive, or an archive of values.
    """
    from torch_compat.archive import open_archive  # noqa: PLC0415 - as below
    from torch_compat.formats.identify import recognised  # noqa: PLC0415 - imports every format

    where = plain(str(path))
    try:
        with open_archive(path, inspecting=True) as archive:
            family = recognised(archive)[0].family
            damaged = bool(archive.damage)
    except NoArchive as error:
        hint = plain(error.hint) if error.hint else "`torch-compat inspect DIRECTORY` describes every file of a directory"
        raise UsageError(f"is {plain(error.what)}, expected {EXPECTED}", where=where, hint=hint, code=error.code) from error
    except ArchiveError:
        return
    if family not in PROGRAMS and not damaged:  # damage can hide the records of a program
        hint = f"`torch-compat inspect {where}` describes it"
        if family == "torch-save":
            hint += ", and torch_compat.load_state returns its tensors"
        raise UsageError(
            f"is an archive of the family {family}, which contains no program; expected {EXPECTED}",
            where=where,
            hint=hint,
            code="no-program",
        )


# ---------------------------------------------------------------------------------------------------------------- readers


def _by_reference(path: Path, reader: str, method: str, args: list[Any], timeout: float) -> dict[str, Any]:
    with Reference() as process:
        reply = process.request("run", timeout_s=timeout, path=str(path.resolve()), method=method, args=args, horizon=reader)
        fence = process.isolation
    open_ = [] if fence is None or fence.whole else [f"the program is not isolated: {fence}"]
    head: dict[str, Any] = {"reader": reader, "notes": [*reply.get("notes", []), *open_]}
    if fence is not None:
        head["isolation"] = fence.as_json()
    end = reply.get("unstable") or reply.get("crashed", {})
    if "predicted" in end:  # not a crash of the reference reader, but one that it predicts for the release
        return {**head, "outcome": "crashed", "error": {"code": end["signal"], "message": end["predicted"], "where": None}}
    if "unsupported" in reply:
        return {**head, "outcome": "unsupported", "error": reply["unsupported"], "upgraders": reply.get("upgraders", [])}
    if "result" not in reply:
        return {**head, **_ended(reply)}
    result = reply["result"]
    _refuse_unknown_method(path, method, result.get("error"))
    head |= {"notes": [*result.get("notes", []), *open_], "upgraders": result.get("upgraders", [])}
    return {**head, **_outcome(result.get("error"), result.get("value"))}


def _by_release(path: Path, reader: str, method: str, args: list[Any], timeout: float, *, trust: bool) -> dict[str, Any]:
    from torch_compat.readers.build_release import BuildRelease, built, resolved  # noqa: PLC0415 - policies take longer to import than a program to run
    from torch_compat.readers.builds import unchanged  # noqa: PLC0415
    from torch_compat.readers.isolation import refuse_unless_trusted  # noqa: PLC0415
    from torch_compat.readers.torch_release import TorchRelease  # noqa: PLC0415
    from torch_compat.replay.trust import trusted  # noqa: PLC0415
    from torch_compat.workspace import find_policy, find_root  # noqa: PLC0415

    _, (release,) = resolved(find_policy(None), [reader], announce)
    head: dict[str, Any] = {"reader": release.name, "notes": []}
    try:
        environment: Environment = built(release)
    except EnvironmentUnavailable as error:
        return {**head, "outcome": "unavailable", "error": _said(error)}
    path = path.resolve()
    try:
        fixtures = find_root(None).fixtures
    except NothingSelected:  # outside a tree
        fixtures = None
    vouched = trusted(fixtures, everything=trust)
    worker = TorchRelease(environment, reads=[path], trust=vouched)
    head["isolation"] = worker.isolation.as_json()
    if not worker.isolation.whole:
        head["notes"].append(f"the release is not isolated: {worker.isolation}")
    try:
        refuse_unless_trusted(path, worker.isolation, vouched)  # before spending seconds on importing torch
    except Untrusted as error:
        return {**head, "outcome": "refused", "error": _said(error), "status": error.exit_status}
    with worker:
        head["reader"] = worker.name
        call = {"method": method, "args": args}
        reply = worker.request("observe", timeout_s=timeout, path=str(path), family=_family(path), calls=[call], options={})
    if isinstance(release, BuildRelease):
        unchanged(release.build)
    if "result" not in reply:
        return {**head, **_ended(reply)}
    result = reply["result"]
    if "error" in result:
        return {**head, **_outcome(result["error"], None)}
    first = result["calls"][0]["first"]
    _refuse_unknown_method(path, method, first.get("error"))
    return {**head, **_outcome(first.get("error"), first.get("value"))}


def _refuse_unknown_method(path: Path, method: str, error: dict[str, Any] | None) -> None:
    """Raise if a call failed because the program has no such method.

    Raises:
        UsageError: the reference reader loads the program, and does not find the method in it.
    """
    if error is None or error["stage"] != "call" or not str(error["type"]).endswith("AttributeError") or method == CALLED:
        return
    try:
        known = sorted(load(path).methods)
    except HarnessError:
        return  # what the reader itself reported is all that is known
    if method not in known:
        hint = suggest(method, known, f"its methods: {', '.join(map(plain, known[:MOST]))}" if known else "it has no methods")
        raise UsageError(f"the program has no method {plain(method)!r}", where=plain(str(path)), hint=hint, code="method")


def _family(path: Path) -> str:
    """The loader of a release to use: that of the program, or that of TorchScript, which then reports the error."""
    from torch_compat.formats import identify  # noqa: PLC0415 - imports every format

    try:
        family = identify(path).family
    except ArchiveError:
        return "torchscript"
    return family if family in PROGRAMS else "torchscript"


def _outcome(error: dict[str, Any] | None, value: Any) -> dict[str, Any]:
    if error is None:
        return {"outcome": "loaded", "value": shown_value(value)}
    outcome = "refused" if error["stage"] == "load" else "raised"
    code = str(error["type"]).removeprefix("builtins.")
    return {"outcome": outcome, "error": {"code": code, "message": error["message"], "where": error.get("where")}}


def _ended(reply: dict[str, Any]) -> dict[str, Any]:
    """The result for a reader that did not answer."""
    if "timed-out" in reply:
        end = reply["timed-out"]
        message = f"timed out after {end['timeout_s']:g} s (stage: {end['stage']})"
        return {"outcome": "timed-out", "error": {"code": "timed-out", "message": message, "where": None}}
    death = reply["crashed"]
    signal = death.get("signal") or f"exit status {death.get('exit')}"
    why = f": {death['said']}" if death.get("said") and "\n" not in death["said"] else ""
    return {
        "outcome": "crashed",
        "error": {"code": "crashed", "message": f"{signal} (stage: {death['stage']}){why}", "where": None},
    }


def _said(error: HarnessError) -> dict[str, Any]:
    message = f"{error.message} ({error.hint})" if error.hint else error.message
    return {"code": error.code, "message": message, "where": error.where}


# --------------------------------------------------------------------------------------------------------------- printing


def _print(document: dict[str, Any]) -> None:
    say(f"{document['outcome']}  ({plain(document['reader'])}, {plain(document['method'])})")
    if "value" in document:
        say(value_text(document["value"]))
    if "error" in document:
        error = document["error"]
        at = f" at {plain(error['where'])}" if error.get("where") else ""
        say_wrapped(f"{plain(error['code'])}{at}: " + "\n  ".join(plain(line) for line in error["message"].splitlines()))
    for note in document["notes"]:
        say_wrapped(f"note: {plain(note)}")
    for item in document.get("upgraders", ()):
        say_wrapped(
            f"upgrader: {item['operator']} in {plain(item['unit'])}, line {item['line']}, was replaced by {item['upgrader']}"
        )
    if document.get("upgraders") == []:
        say("upgrader: none")
