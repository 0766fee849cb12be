"""What ``observe`` and ``replay`` share of the reference reader: letting it read, and holding it against each writer."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from torch_compat.corpus.recorded import read_recorded, write_recorded
from torch_compat.judging.judgement import Verdict
from torch_compat.places import inside
from torch_compat.readers.reference import NAME, is_reference
from torch_compat.replay.observe import Observing, code_digest
from torch_compat.replay.plan import sampled
from torch_compat.replay.reference import observe_reference, plan_reference
from torch_compat.rules.reference_agrees import agreement
from torch_compat.writes import changing

if TYPE_CHECKING:
    from torch_compat.cli._output import Progress
    from torch_compat.corpus.corpus import Corpus
    from torch_compat.corpus.manifest import Fixture
    from torch_compat.corpus.observations import Observation, ObservedReader
    from torch_compat.judging.evidence import Evidence
    from torch_compat.policy import Policy
    from torch_compat.replay.plan import Sample
    from torch_compat.workspace import Root

__all__ = ["NAME", "is_reference", "let_reference_read", "reference_row"]


def let_reference_read(
    place: Root,
    policy: Policy,
    corpus: Corpus,
    fixtures: list[Fixture],
    progress: Progress,
    *,
    again: bool,
    whole: bool,
    options: str | None = None,
    sample: Sample | None = None,
) -> ObservedReader:
    """Observe with the reference reader. What the last run observed with this very code is taken from reports/latest."""
    tasks = [task for task in plan_reference(policy, corpus, fixtures) if options in {None, task.options.id}]
    if sample is not None:
        everything, tasks = tasks, sampled(tasks, NAME, sample)
        progress.say(f"{NAME}: a sample of {len(tasks)} of {len(everything)} cells, with seed {sample.seed}")
    cache = inside(place.latest, f"observations/{code_digest()}")
    known = {} if again else read_recorded(inside(cache, NAME)).readers
    bar = progress.task(f"{NAME}: reading")
    state = Observing(progress=lambda state: bar(state.done, state.total))
    observed = observe_reference(tasks, today=dt.datetime.now(dt.UTC).date(), known=known.get(NAME), state=state)
    progress.say(f"{NAME}: {state.total} cells observed, {state.known} reused from the last run")
    if whole:
        with changing(place.path):
            write_recorded(inside(cache, NAME), [observed])
    return observed


def reference_row(evidence: Evidence, cell: Observation) -> dict[str, Any]:
    """How a cell of the reference reader stands to the writer's own recorded read-back, as ``observe`` shows it."""
    fixture = evidence.corpus.fixtures[cell.fixture]
    options = next(entry for entry in evidence.policy.options if entry.id == cell.options)
    own = next(
        (
            found
            for reader in evidence.recorded.values()
            if reader.release == fixture.release and (found := evidence.valid(reader, fixture, options)) is not None
        ),
        None,
    )
    reproduced, text = None, ""
    if own is not None:
        verdict, _, text = agreement(evidence, fixture, own, cell)
        reproduced = None if verdict is Verdict.NOT_CHECKED else verdict is not Verdict.FAIL
    return {
        "recorded": str(evidence.outcome(fixture, own)) if own is not None else None,
        "reproduced": reproduced,
        "remark": text,
    }
