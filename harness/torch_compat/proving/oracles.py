"""Oracles for the results of a program: the reference reader at a horizon, or a real release.

A :class:`CallOutcome` records the outcome of one call, with values in neutral form, without judgment.
"""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, Self

from torch_compat.errors import ArchiveError, HarnessError, Raised, ReaderError, Refused, Unsupported
from torch_compat.proving.programs import Form, archive
from torch_compat.proving.values import COMPLEX, EVERY
from torch_compat.readers.isolation import trust_everything
from torch_compat.readers.torch_release import TorchRelease
from torch_compat.releases.release import Release
from torch_compat.runtime.encoding import NO_SUCH_DTYPE, Decoder, Encoder
from torch_compat.runtime.horizons import horizon
from torch_compat.runtime.load import load
from torch_compat.runtime.slips import DiesCalled, DiesLoading
from torch_compat.values.compare import all_differences

if TYPE_CHECKING:
    from torch_compat.readers.environments import Environment
    from torch_compat.runtime.upgraders import UpgraderTable

__all__ = ["CallOutcome", "Kind", "Modelled", "Oracle", "Real", "differences"]

Kind = Literal["value", "raised", "crashed", "timed-out", "no-program", "no-input", "unsupported"]
BATCH: Final = 200
COMPLEX_TENSORS: Final = Release("1.6.0")
"""The first release that can create views of complex tensors; up to 1.5.1, it raises "Complex dtype not supported"."""
SECONDS: Final = 60
ERROR: Final[dict[str, Any]] = {"error": {"stage": "call", "type": "", "message": ""}}


SAME: Final = Form("aten::alias", (("self", "Tensor", "Tensor"),), "a_self")


class CallOutcome(NamedTuple):
    """The outcome of one call."""

    kind: Kind
    """``no-program``: loading the program is refused; ``no-input``: the dtype does not exist."""
    turn: dict[str, Any] | None = None
    """``{"value", "inputs"}`` if it returned a value."""
    said: str = ""
    """The error, otherwise."""


class Oracle(Protocol):
    """Runs calls and returns their outcomes."""

    name: str
    """``reference@1.5.1``, ``torch-1.5.1``."""
    real: bool
    """Whether it is a real release rather than a model of one."""

    def ask(self, data: bytes, calls: list[list[Any]]) -> list[CallOutcome]:
        """Return the outcome of a program for each list of arguments (neutral form), each with fresh inputs."""


class Modelled:
    """The reference reader in this process, only for programs that are generated here.

    Parameters:
        at: a release, or empty for the newest.
        table: the upgraders; by default those of the release.
    """

    real = False

    def __init__(self, at: str = "", table: UpgraderTable | None = None) -> None:
        self.name = f"reference@{at}" if at else "reference"
        self._horizon = horizon(self.name)
        self._table = table

    def ask(self, data: bytes, calls: list[list[Any]]) -> list[CallOutcome]:
        """As :meth:`Oracle.ask`."""
        try:
            module = load(data, self._horizon, table=self._table)
        except Unsupported as error:
            return [CallOutcome("unsupported", said=error.message)] * len(calls)
        except (DiesLoading, Refused, Raised, ArchiveError) as error:
            return [CallOutcome("no-program", said=error.message)] * len(calls)
        lacking = frozenset(COMPLEX) if self._horizon.release < COMPLEX_TENSORS else frozenset()
        none = CallOutcome("no-input", said="the release cannot create a tensor of this dtype")
        return [none if lacking.intersection(_dtypes(args)) else self._one(module, args) for args in calls]

    def ending(self, data: bytes, calls: list[list[Any]], text: str) -> int:
        """Count the calls of a program that end with an error containing a text. Results of other calls are ignored."""
        try:
            module = load(data, self._horizon, table=self._table)
        except (DiesLoading, HarnessError):
            return 0
        return sum(text in self._error(module, args) for args in calls)

    def _error(self, module: Any, args: list[Any]) -> str:
        try:
            module.run("forward", Decoder(self._horizon.release).decode({"tuple": args}))
        except (DiesCalled, HarnessError) as error:
            return str(error.message)
        return ""

    def _one(self, module: Any, args: list[Any]) -> CallOutcome:
        try:
            given = Decoder(self._horizon.release).decode({"tuple": args})
            value = module.run("forward", given)
            together = Encoder()
            return CallOutcome("value", {"value": together.encode(value), "inputs": [together.encode(item) for item in given]})
        except DiesCalled as error:
            return CallOutcome("crashed", said=error.message)
        except Unsupported as error:
            return CallOutcome("unsupported", said=error.message)
        except HarnessError as error:
            return CallOutcome("no-input" if error.code == NO_SUCH_DTYPE else "raised", said=error.message)


class Real:
    """A real release in its own environment. Use as a context manager.

    A call that crashes the release's process is found by bisection; other calls are not affected.
    """

    real = True

    def __init__(self, environment: Environment) -> None:
        self.version = environment.version
        self.name = f"torch-{environment.version}"
        self._lacking: frozenset[str] = frozenset()
        self._release = TorchRelease(environment, trust=trust_everything)  # it only loads archives that are written here

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="torch-compat-prove-")
        try:
            self._release.__enter__()
        except BaseException:
            self._folder.cleanup()
            raise
        self._lacking = frozenset(item for item in EVERY if not self._makes(item))
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self._release.__exit__(kind, *rest)
        self._folder.cleanup()

    def ask(self, data: bytes, calls: list[list[Any]]) -> list[CallOutcome]:
        """As :meth:`Oracle.ask`.

        Raises:
            ReaderError: the release's process itself does not answer.
        """
        path = Path(self._folder.name, f"{hashlib.sha256(data).hexdigest()[:16]}.pt")
        path.write_bytes(data)
        results = [at for at, args in enumerate(calls) if not self._lacking.intersection(_dtypes(args))]
        given = [calls[at] for at in results]
        told = [entry for at in range(0, len(given), BATCH) for entry in self._some(path, given[at : at + BATCH])]
        result = [CallOutcome("no-input", said="the release cannot create a tensor of this dtype")] * len(calls)
        for at, item in zip(results, told, strict=True):
            result[at] = item
        return result

    def probe(self, source: str) -> Any:
        """Run a program that defines ``probe()`` in the release; return the result of ``probe()`` in neutral form.

        Raises:
            ReaderError: the program raises or dies.
        """
        path = Path(self._folder.name, "asked.py")
        path.write_text(source, encoding="utf-8")
        reply = self._release.request("probe", timeout_s=SECONDS, probe=str(path), name="torch_compat_asked")
        result = reply.get("result", {})
        if "value" not in result:
            message = result["error"]["message"] if "error" in result else str(reply.get("crashed") or reply.get("timed-out"))
            raise ReaderError(f"{self.name} did not answer a query about an upgrader: {message}", code="request-failed")
        return result["value"]

    def _makes(self, dtype: str) -> bool:
        """Whether a tensor of a dtype can be passed to a program: 1.5 has complex dtypes, but cannot make views of them."""
        path = Path(self._folder.name, "same.pt")
        path.write_bytes(archive(SAME, 1))
        body = {"dtype": dtype, "shape": [0], "strides": [1], "offset": 0, "storage": 1, "bytes": ""}
        try:
            (told,) = self._some(path, [[{"tensor": body}]])
        except ReaderError as error:
            if error.code != "request-failed":
                raise
            return False
        return told.kind == "value"

    def _some(self, path: Path, calls: list[list[Any]]) -> list[CallOutcome]:
        asked = [{"method": "forward", "args": args} for args in calls]
        reply = self._release.request("observe", timeout_s=SECONDS, path=str(path), family="torchscript", options={}, calls=asked)
        if "result" in reply:
            result = reply["result"]
            if "error" in result:
                return [CallOutcome("no-program", said=result["error"]["message"])] * len(calls)
            return [_heard(call["first"]) for call in result["calls"]]
        death = reply.get("crashed") or reply["timed-out"]
        if death["stage"] == "load":
            return [CallOutcome("no-program", said=str(death.get("signal", "timed out")))] * len(calls)
        if len(calls) == 1:
            kind: Kind = "crashed" if "crashed" in reply else "timed-out"
            return [CallOutcome(kind, said=str(death.get("signal") or death.get("exit") or "no answer"))]
        middle = len(calls) // 2
        return self._some(path, calls[:middle]) + self._some(path, calls[middle:])


def _dtypes(args: list[Any]) -> frozenset[str]:
    return frozenset(arg["tensor"]["dtype"] for arg in args if isinstance(arg, dict) and "tensor" in arg)


def _heard(turn: dict[str, Any]) -> CallOutcome:
    if "error" not in turn:
        return CallOutcome("value", {"value": turn["value"], "inputs": turn["inputs"]})
    error = turn["error"]
    return CallOutcome("no-input" if error["type"] == NO_SUCH_DTYPE else "raised", said=error["message"])


def differences(outcome: CallOutcome, other: CallOutcome) -> list[Any]:
    """Return the differences between two values (:class:`torch_compat.values.compare.Difference`); strides are ignored."""
    turns = [{"state": None, "state_after": None, "calls": [{"first": side.turn, "second": ERROR}]} for side in (outcome, other)]
    return [difference for difference in all_differences(*turns)[0] if difference.kind not in {"strides", "requires_grad"}]
