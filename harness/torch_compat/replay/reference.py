"""Observe with the reference reader: every program of a fixture at the horizon of its own writer.

Each cell is observed once, since the reference reader is deterministic. Two processes share the cells.
"""

from __future__ import annotations

import datetime as dt
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from torch_compat.corpus.manifest import SYNTHETIC
from torch_compat.corpus.observations import Observation, ObservedReader
from torch_compat.corpus.recorded import read_recorded, write_recorded
from torch_compat.places import inside
from torch_compat.readers.reference import FAMILIES, NAME, Reference, identity
from torch_compat.readers.torch_release import PROTOCOL
from torch_compat.replay.observe import Observing, code_digest, observation
from torch_compat.replay.plan import Task, sampled
from torch_compat.replay.progress import SILENT
from torch_compat.rules.reference_agrees import PREDICTED
from torch_compat.words import count_of
from torch_compat.writes import changing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from torch_compat.corpus.corpus import Corpus
    from torch_compat.corpus.manifest import Fixture
    from torch_compat.policy import Policy
    from torch_compat.replay.plan import Sample
    from torch_compat.replay.progress import ProgressSink
    from torch_compat.workspace import Root

__all__ = ["let_reference_read", "observe_reference", "plan_reference", "reference_observation"]

PROCESSES = 2


def plan_reference(policy: Policy, corpus: Corpus, selected: Iterable[Fixture]) -> list[Task]:
    """The cells of the reference reader: programs that a release wrote, loaded without options."""
    return [
        Task(fixture, corpus.path(fixture), options)
        for fixture in selected
        if fixture.family in FAMILIES and fixture.release != SYNTHETIC
        for options in policy.option_sets(fixture.family, policy.calendar[fixture.release])  # type: ignore[arg-type]
        if not options.load.given()
    ]


def let_reference_read(
    place: Root,
    policy: Policy,
    corpus: Corpus,
    fixtures: list[Fixture],
    progress: ProgressSink = SILENT,
    *,
    again: bool = False,
    whole: bool = False,
    options: str | None = None,
    sample: Sample | None = None,
) -> ObservedReader:
    """Observe with the reference reader. Observations of the last run with exactly this code are reused from reports/latest."""
    tasks = [task for task in plan_reference(policy, corpus, fixtures) if options in {None, task.options.id}]
    if sample is not None:
        everything, tasks = tasks, sampled(tasks, NAME, sample)
        progress.say(f"{NAME}: a sample of {len(tasks)} of {count_of(len(everything), 'cell')}, with seed {sample.seed}")
    cache = inside(place.latest, f"observations/{code_digest()}")
    known = {} if again else read_recorded(inside(cache, NAME)).readers
    bar = progress.task(f"{NAME}: reading")
    state = Observing(progress=lambda state: bar(state.done, state.total))
    observed = observe_reference(tasks, today=dt.datetime.now(dt.UTC).date(), known=known.get(NAME), state=state)
    progress.say(f"{NAME}: {count_of(state.total, 'cell')} observed, {state.known} reused from the last run")
    if whole:
        with changing(place.path):
            write_recorded(inside(cache, NAME), [observed])
    return observed


def observe_reference(
    tasks: list[Task],
    *,
    today: dt.date,
    known: ObservedReader | None = None,
    state: Observing | None = None,
    horizon: str | None = None,
    timeout_s: float = 60,
    slips: dict[tuple[str, str], tuple[str, ...]] | None = None,
    together: bool = False,
) -> ObservedReader:
    """Observe cells with the reference reader.

    Parameters:
        known: earlier observations; cells with a matching key are reused if exactly this code made them.
        today: the day to put on new observations.
        horizon: one horizon for all cells; by default each fixture is read at the horizon of its own writer.
        together: whether one process reads many archives (:class:`torch_compat.readers.reference.Reference`).
        slips: filled with the ids of the slips of the horizon's release (``policies/torch/behaviors.toml``) that each new cell reached.

    Raises:
        ReaderError: its processes do not start.
    """
    state = state or Observing()
    name = NAME if horizon is None else horizon
    who = identity()
    earlier: Mapping[tuple[str, str], Observation] = {}
    if known is not None and known.name == name and known.identity == who and known.protocol == PROTOCOL:
        earlier = known.cells
    result, missing = {}, []
    for task in tasks:
        cell = earlier.get((task.fixture.id, task.options.id))
        if cell is not None and cell.key == task.key:
            result[cell.cell] = cell
        else:
            missing.append(task)
    state.known, state.total = len(result), len(missing)
    observed = known.observed if known is not None and not missing else today.isoformat()
    if missing:
        with ThreadPoolExecutor(PROCESSES) as pool:
            halves = [missing[start::PROCESSES] for start in range(PROCESSES)]
            met = {} if slips is None else slips
            passes = [pool.submit(_pass, half, horizon, timeout_s, state, met, together=together) for half in halves if half]
            try:
                for ended in wait(passes, return_when=FIRST_EXCEPTION).done:
                    ended.result()
                for item in passes:
                    result |= item.result()
            finally:
                state.stopped = True
    return ObservedReader(name, who, observed, PROTOCOL, result, {})


def _pass(
    tasks: list[Task],
    horizon: str | None,
    timeout_s: float,
    state: Observing,
    slips: dict[tuple[str, str], tuple[str, ...]],
    *,
    together: bool,
) -> dict[tuple[str, str], Observation]:
    cells = {}
    with Reference(together=together) as reader:
        for task in tasks:
            if state.stopped:
                break
            fixture = task.fixture
            reply = reader.request(
                "observe",
                timeout_s=timeout_s,
                path=str(task.path),
                family=fixture.family,
                calls=fixture.calls,
                horizon=horizon or f"{NAME}@{fixture.release}",
            )
            cells[fixture.id, task.options.id] = reference_observation(task, reply)
            slips[fixture.id, task.options.id] = tuple(reply.get("slips", ()))
            state.step()
    return cells


def reference_observation(task: Task, reply: dict[str, Any]) -> Observation:
    """The observation of one reply of the reference reader."""
    empty = Observation(task.fixture.id, task.options.id, task.key, "unsupported")
    if "unsupported" in reply:
        lacking = reply["unsupported"]
        return replace(empty, errors=({"type": lacking["code"], "message": lacking["message"]},))
    cell = observation(task, reply, hear=False)
    end = reply.get("unstable") or reply.get("crashed", {})
    if "predicted" not in end:
        return cell
    dies = replace(empty, result="crashed", stage=end["stage"], signal=end["signal"], errors=(_predicted(end),))
    if "unstable" in reply:
        return replace(empty, result="unstable", both=(dies, cell))
    return dies if cell.result == "crashed" else cell  # the same if the writer's program also died of it


def _predicted(end: dict[str, Any]) -> dict[str, str]:
    return {"type": PREDICTED, "message": end["predicted"]}
