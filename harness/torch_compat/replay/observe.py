"""Observe: give a reader its subjects, and record what happens as facts.

Every new cell is observed twice, by two processes with different seeds; a cell that varies is ``unstable``.
"""

from __future__ import annotations

import threading
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import date  # noqa: TC003 - shown in signatures
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch_compat.corpus.deprecations import read_reply
from torch_compat.corpus.json_lines import digest
from torch_compat.corpus.observations import Observation, ObservedReader, Probe
from torch_compat.corpus.recipes import DeprecationFile
from torch_compat.errors import ReaderError
from torch_compat.fingerprint import code_fingerprint
from torch_compat.readers.isolation import trust_nothing
from torch_compat.readers.torch_release import PROTOCOL, TorchRelease, remembered_identity
from torch_compat.replay.plan import Task, probe_key
from torch_compat.values.compare import compare, result_digest
from torch_compat.values.delta import departures
from torch_compat.values.normalise import alike, brief_result, headline, last_word, normalise_result, plain_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from torch_compat.corpus.deprecations import DeprecationObservation
    from torch_compat.corpus.recipes import ProbeFile
    from torch_compat.readers.environments import Environment
    from torch_compat.readers.isolation import Trust

__all__ = ["Observing", "code_digest", "observation", "observe", "observers"]

VALUES = frozenset({"torch-save"})  # families that are read but not run
BATCH = 32  # cells requested at once; one that times out is requested again alone
CRASHES = 2  # times that a process observes a cell that crashes; an abort that writes its stack takes a tenth of a second


@dataclass
class Observing:
    """The progress of an observation. ``progress`` is called after each cell, from one thread at a time.

    Once ``stopped``, running work ends after its current cell.
    """

    total: int = 0
    done: int = 0
    known: int = 0
    stopped: bool = False
    progress: Callable[[Observing], None] = lambda _: None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def step(self) -> None:
        """Count one observation of one cell."""
        with self._lock:
            self.done += 1
            self.progress(self)


def code_digest() -> str:
    """Short hash of the code that turns replies into observations: this package, and everything in the project that it imports."""
    return code_fingerprint("replay")[:12]


def observe(
    environment: Environment,
    tasks: list[Task],
    probes: Iterable[ProbeFile],
    *,
    today: date,
    deprecations: Iterable[DeprecationFile] = (),
    known: ObservedReader | None = None,
    state: Observing | None = None,
    workers: tuple[TorchRelease, TorchRelease] | None = None,
    trust: Trust = trust_nothing,
) -> ObservedReader:
    """Observe cells and probes with one reader, each twice. Returns only what was requested, whether reused or new.

    Parameters:
        deprecations: probes of deprecated features.
        known: earlier observations; cells with a matching key are reused.
        today: the day to put on new observations.
        workers: the two workers to ask, from :func:`observers`; the caller starts and closes them.
        trust: which archives may be run if the release is not isolated; ignored if ``workers`` are given.

    Raises:
        ReaderError, WrongVersion: the reader cannot be asked; nothing is returned.
        Untrusted: it is not isolated, and an archive is not trusted; nothing is returned.
    """
    state = state or Observing()
    probes, deprecations = tuple(probes), tuple(deprecations)
    asked_for = (tasks, probes, deprecations)
    remembered = remembered_identity(environment)
    if known is not None and remembered == known.identity and known.protocol == PROTOCOL:
        seal = digest(remembered)[:16]
        if all(_is_known(known, task) for task in tasks) and all(
            _probe_is_known(known, probe, seal) for probe in (*probes, *deprecations)
        ):
            state.known = len(tasks)
            return _selected(known, *asked_for)
    pair = workers or observers(environment, trust)
    with ExitStack() as stack, ThreadPoolExecutor(2) as pool, _killed_on_error(pair):
        for worker in pair:  # by this thread: a worker ends with the thread that started it
            stack.push(worker)
            worker.start()
        # importing torch takes most of the time: start both at once
        first, second = pool.map(stack.enter_context, pair)
        identity, name = first.identity, first.name
        if second.identity != identity:
            raise ReaderError(f"two workers for {name} reported different identities", code="unstable-identity")
        seal = digest(identity)[:16]
        earlier = known if known is not None and known.identity == identity and known.protocol == PROTOCOL else None
        missing = [task for task in tasks if not _is_known(earlier, task)]
        state.known = len(tasks) - len(missing)
        state.total = 2 * len(missing)
        asked = [probe for probe in (*probes, *deprecations) if not _probe_is_known(earlier, probe, seal)]
        if not missing and not asked:
            return _selected(earlier or ObservedReader(name, identity, today.isoformat(), PROTOCOL, {}, {}), *asked_for)
        passes = [pool.submit(_one_pass, worker, missing, asked, seal, state) for worker in (first, second)]
        try:
            for ended in wait(passes, return_when=FIRST_EXCEPTION).done:
                ended.result()
            (cells, probed, used), (again, probed_again, used_again) = (entry.result() for entry in passes)
        finally:
            state.stopped = True  # if a pass failed or was interrupted, the rest is useless
    settled = {cell: _settle(cells[cell], again[cell]) for cell in cells}
    for probe in probed:
        if probed[probe] != probed_again[probe]:
            raise ReaderError(f"probe {probe} gave different results in two runs with {name}", code="unstable-probe")
    for probe, item in used.items():
        if item != used_again[probe]:
            raise ReaderError(
                f"the probe for the deprecation {probe} gave different results in two runs with {name}: {item}; {used_again[probe]}",
                code="unstable-probe",
            )
    base = earlier or ObservedReader(name, identity, "", PROTOCOL, {}, {})
    newer = replace(base, observed=today.isoformat(), cells={**base.cells, **settled}, probes={**base.probes, **probed})
    newer = replace(newer, deprecations={**base.deprecations, **used})
    return _selected(newer, *asked_for)


@contextmanager
def _killed_on_error(workers: tuple[TorchRelease, TorchRelease]) -> Iterator[None]:
    """Kill the workers on any error, so that threads do not keep waiting for their replies."""
    try:
        yield
    except BaseException:
        for worker in workers:
            worker.kill()
        raise


def observers(environment: Environment, trust: Trust = trust_nothing) -> tuple[TorchRelease, TorchRelease]:
    """The two workers that observe each cell, not yet started. ``trust`` decides what they may load if they are not isolated."""
    return TorchRelease(environment, seed=0, trust=trust), TorchRelease(environment, seed=1, trust=trust)


def _is_known(known: ObservedReader | None, task: Task) -> bool:
    cell = known.cells.get((task.fixture.id, task.options.id)) if known else None
    return cell is not None and cell.key == task.key


def _probe_is_known(known: ObservedReader | None, probe: ProbeFile, seal: str) -> bool:
    if known is None:
        return False
    entry: Probe | DeprecationObservation | None
    entry = known.deprecations.get(probe.name) if isinstance(probe, DeprecationFile) else known.probes.get(probe.name)
    return entry is not None and entry.key == probe_key(probe, seal)


def _selected(
    observed: ObservedReader, tasks: list[Task], probes: Iterable[ProbeFile], deprecations: Iterable[DeprecationFile]
) -> ObservedReader:
    """Restrict observations to what was requested."""
    names, deprecated = {probe.name for probe in probes}, {probe.name for probe in deprecations}
    wanted = {(task.fixture.id, task.options.id) for task in tasks}
    return replace(
        observed,
        cells={cell: item for cell, item in observed.cells.items() if cell in wanted},
        probes={name: probe for name, probe in observed.probes.items() if name in names},
        deprecations={name: deprecation for name, deprecation in observed.deprecations.items() if name in deprecated},
    )


def _one_pass(
    worker: TorchRelease, tasks: list[Task], probes: list[ProbeFile], seal: str, state: Observing
) -> tuple[dict[tuple[str, str], Observation], dict[str, Probe], dict[str, DeprecationObservation]]:
    cells = {}
    probed = {}
    used = {}
    for batch in _batches(tasks):
        if state.stopped:
            break
        requests = [_request(task) for task in batch]
        replies = [worker.request("observe", **requests[0])] if len(batch) == 1 else worker.request_many("observe", requests)
        for task, reply in zip(batch, replies, strict=True):
            cells[task.fixture.id, task.options.id] = _observe_cell(worker, task, reply)
            state.step()
    for probe in probes:
        if state.stopped:
            break
        if isinstance(probe, DeprecationFile):
            used[probe.name] = _deprecation(probe, worker.request("deprecation", probe=str(probe.path), name=probe.name), seal)
        else:
            probed[probe.name] = _probe(probe, worker.request("probe", probe=str(probe.path), name=probe.name), seal)
    return cells, probed, used


def _batches(tasks: list[Task]) -> Iterator[list[Task]]:
    """Group tasks that may share a process of the worker: values under one set of load options. A program runs alone.

    Reading a value takes a release far less time than a fork. Running a program does not, and has side effects.
    """
    ordered = sorted(tasks, key=lambda task: (task.fixture.family in VALUES, task.options.id))
    for (values, _), group in groupby(ordered, key=lambda task: (task.fixture.family in VALUES, task.options.id)):
        members = list(group)
        size = BATCH if values else 1
        for start in range(0, len(members), size):
            yield members[start : start + size]


def _request(task: Task) -> dict[str, Any]:
    fixture = task.fixture
    return {"family": fixture.family, "path": str(task.path), "calls": fixture.calls, "options": task.options.load.given()}


def _observe_cell(worker: TorchRelease, task: Task, reply: dict[str, Any]) -> Observation:
    """Observe a cell, starting from its first reply; crashes are repeated, since corrupted memory does not always end the same way."""
    first = observation(task, reply)
    for _ in range(CRASHES - 1):
        if first.result != "crashed":
            break
        again = observation(task, worker.request("observe", **_request(task)))
        if again != first:
            return _settle(first, again)
    return first


def observation(task: Task, reply: dict[str, Any], *, hear: bool = True) -> Observation:
    """The facts of one reply, compared with the golden; for ``hear`` see :func:`torch_compat.values.compare.compare`."""
    cell = Observation(task.fixture.id, task.options.id, task.key, "same")
    reply = normalise_result(reply, Path(task.path.name))
    if "crashed" in reply:
        death = reply["crashed"]
        cell = replace(cell, stage=death["stage"], signal=death.get("signal") or f"exit {death['exit']}")
    elif "timed-out" in reply:
        cell = replace(cell, stage=reply["timed-out"]["stage"])
    elif "no_such_option" in reply["result"]:
        raise ReaderError(
            f"this release has no load option {reply['result']['no_such_option']!r}",
            hint=f"correct `since` for the options {task.options.id!r} in the policy",
            code="no-such-option",
        )
    result = reply.get("result", reply)
    outcome = compare(task.fixture.golden, result, hear=hear)
    last_words = last_word(reply["crashed"]["said"]) if "crashed" in reply else ""
    cell = replace(
        cell,
        result=outcome.result,
        errors=({"type": "crash", "message": last_words},) if last_words else outcome.errors,
        differences=outcome.differences,
        extent=outcome.extent,
        count=outcome.count,
        heard=outcome.heard,
        said=outcome.said,
        warnings=tuple((category, text) for category, text in result.get("warnings", ())),
    )
    if "result" in reply and ("error" not in result or outcome.result == "differs"):
        cell = replace(cell, digest=result_digest(result))
        if outcome.result in {"differs", "raised", "relaxed"}:
            cell = replace(cell, departures=departures(brief_result(task.fixture.golden), result))
    return cell


def _probe(probe: ProbeFile, reply: dict[str, Any], seal: str) -> Probe:
    key = probe_key(probe, seal)
    result = normalise_result(reply.get("result", {}), Path(probe.path.name))
    if "error" in result:
        return Probe(probe.name, key, (), {"type": result["error"]["type"], "message": result["error"]["message"]})
    if "value" not in result:
        return Probe(probe.name, key, (), {"type": "crashed" if "crashed" in reply else "timed-out", "message": ""})
    checks = tuple((check["tuple"][0], check["tuple"][1], check["tuple"][2]) for check in result["value"])
    return Probe(probe.name, key, checks)


def _deprecation(probe: DeprecationFile, reply: dict[str, Any], seal: str) -> DeprecationObservation:
    if "result" not in reply:  # the deprecated code runs in its own process with its own limit, so this does not concern it
        raise ReaderError(
            f"the probe for the deprecation {probe.name} ended without reporting a result: {reply}", code="probe-failed"
        )
    return read_reply(probe.name, probe_key(probe, seal), reply["result"])


def _settle(item: Observation, other: Observation) -> Observation:
    """Combine two observations that should be equal. If the result is the golden, its digest is redundant and dropped.

    A refusal that quotes uninitialized memory prints different numbers each time: it is recorded without what varies.
    """
    if item == other:
        return replace(item, digest="") if item.result == "same" else item
    if item.result == other.result == "refused":
        plain = [[plain_error((error["type"], error["message"])) for error in seen.errors] for seen in (item, other)]
        if plain[0] == plain[1]:
            errors = tuple({**error, "message": alike(headline(error["message"]))} for error in item.errors)
            if (settled := replace(item, errors=errors)) == replace(other, errors=errors):
                return settled
    return replace(
        item,
        result="unstable",
        stage="",
        signal="",
        errors=(),
        differences=(),
        extent=(),
        count=0,
        digest="",
        departures=(),
        heard=False,
        said=(),
        both=(item, other),
    )
