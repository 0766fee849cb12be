"""The reference reader reproduces what each writer recorded when it read its own file back.

What: the reference reader runs every TorchScript, mobile and exported program at the horizon of the release that wrote it, and its result
agrees with that release's own recorded read-back: the same values, or close values within the policy's tolerance for operator and
dtype; a refusal or an error where the writer refused or raised; and the same crash where the writer crashed for a known reason
(``policies/torch/behaviors.toml``). Features that the reference reader does not support are named and not checked. If the writer
crashed on its own file and the reference reader gives a different result, there is nothing to compare with.

Why: the meaning of an old program must not depend on the release under test. The reference reader is trusted as far as it agrees
with every release about the archives that the release wrote.

Example: integer division of 1.4 truncates; a reference reader that divides like today's torch computes a different value for its
files.

Reference: this project. The rule applies when the reference reader has run (``replay --reader reference``), and says so when it
has not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from torch_compat.corpus.manifest import SYNTHETIC
from torch_compat.judging.cell import Outcome
from torch_compat.judging.judgement import Asks, Cause, Judgement, Verdict
from torch_compat.values.compare import compare
from torch_compat.values.normalise import alike, headline

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.corpus.manifest import Fixture
    from torch_compat.corpus.observations import Observation
    from torch_compat.judging.cell import Cells
    from torch_compat.judging.evidence import Evidence
    from torch_compat.policy import RuleEntry

__all__ = ["FAMILIES", "PREDICTED", "READER", "agreement", "judge"]

ASKS: Final = Asks.OTHER

READER = "reference"
"""The rule is about this reader's results, so it is judged only if this reader was run."""
FAMILIES = frozenset({"torchscript", "mobile", "export"})
DEAD = frozenset({Outcome.CRASHED, Outcome.TIMED_OUT, Outcome.UNSTABLE})
AGREE = frozenset({Outcome.SAME, Outcome.CLOSE})
PREDICTED = "predicted"
"""The type of the error with which the reference reader reports a predicted crash, as opposed to crashing itself."""


def judge(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Judge every program that a release of the calendar wrote."""
    reference = evidence.reference
    if reference is None:
        return
    own = _read_back(evidence)
    for fixture in sorted(evidence.corpus.fixtures.values(), key=lambda fixture: fixture.id):
        if fixture.family not in FAMILIES or fixture.release == SYNTHETIC or fixture.release not in evidence.policy.calendar:
            continue
        for options in evidence.policy.option_sets(fixture.family, evidence.policy.calendar[fixture.release]):  # type: ignore[arg-type]
            if options.load.given():
                continue
            now, before = evidence.valid(reference, fixture, options), own.get((fixture.id, options.id))
            if now is None:
                verdict, what, text = Verdict.NOT_CHECKED, "not observed", "the reference reader did not read it"
            elif before is None:
                verdict, what, text = Verdict.NOT_CHECKED, "no read-back", "no read-back by its own writer is recorded"
            else:
                verdict, what, text = agreement(evidence, fixture, before, now)
            about = alike(text) if what in {Outcome.UNSUPPORTED, Outcome.REFUSED, Outcome.RAISED} else fixture.recipe
            unsaid = verdict in {Verdict.PASS, Verdict.NO_PROMISE}
            cause = None if unsaid else Cause(what, about, f"{fixture.recipe}: {text}" if verdict is Verdict.FAIL else text)
            yield Judgement(
                rule.id,
                verdict,
                f"{fixture.id} read by {READER}@{fixture.release}",
                cause,
                modelled=True,
                reproduce=f"torch-compat observe --reader {READER} --fixture {fixture.id} --show",
            )


def _read_back(evidence: Evidence) -> dict[tuple[str, str], Observation]:
    """Return how the writer of each fixture read it back, by fixture and options; if it has several builds, the last by name."""
    results: dict[tuple[str, str], Cells] = {}
    for cells in evidence.cells:
        if cells.direction == "own":
            place = (cells.fixture.id, cells.options.id)
            if place not in results or results[place].readers < cells.readers:
                results[place] = cells
    return {place: cells.observation for place, cells in results.items()}


def agreement(evidence: Evidence, fixture: Fixture, own: Observation, now: Observation) -> tuple[Verdict, str, str]:
    """Compare the reference reader with the writer; return the verdict, the outcome relative to the writer, and a description.

    Parameters:
        own: the writer's observation on reading its file back.
        now: the observation of the reference reader.
    """
    outcome = Outcome(now.result) if now.result != "differs" else Outcome.DIFFERENT
    if outcome is Outcome.UNSUPPORTED:
        return Verdict.NOT_CHECKED, outcome, headline(now.errors[0]["message"])
    writer = Outcome(own.result) if own.result != "differs" else Outcome.DIFFERENT
    if writer in DEAD or (writer is Outcome.SAME and fixture.golden.keys() & DEAD):
        if _dies_alike(own, now):
            return Verdict.PASS, writer, ""
        return Verdict.NO_PROMISE, "died", "the writer itself has no reproducible outcome"
    if outcome in DEAD:
        return Verdict.FAIL, outcome, f"{now.signal or 'timeout'} in the reference reader"
    if own.result == now.result == "same":
        return Verdict.PASS, Outcome.SAME, ""
    expected, got = _own_result(fixture, own), _own_result(fixture, now)
    result = compare(expected, got)
    apart = replace(now, result=result.result, errors=result.errors, differences=result.differences, extent=result.extent)
    outcome = evidence.outcome(fixture, apart, (expected, got))
    if outcome in AGREE:
        return Verdict.PASS, outcome, ""
    return Verdict.FAIL, outcome, _in_words(apart, own)


def _dies_alike(own: Observation, now: Observation) -> bool:
    """Whether the reference reader predicts the way in which the writer ended, as opposed to ending that way itself."""
    if own.result == now.result == "same":
        return True  # both ended like the golden; the reference reader's own crash would not count as that
    told = now.both[:1] if now.result == "unstable" else (now,)
    predicted = all(error["type"] == PREDICTED for cell in told for error in cell.errors) and any(cell.errors for cell in told)
    if now.result == "unstable" and own.result == "crashed":  # by chance, the writer crashed in both of its runs
        return predicted and (own.stage, own.signal) == (told[0].stage, told[0].signal)
    return predicted and own.result == now.result and (own.stage, own.signal) == (now.stage, now.signal)


def _own_result(fixture: Fixture, cell: Observation) -> dict[str, Any]:
    """Return the reader's own result in a cell, in the form of goldens."""
    if cell.result == "refused":
        return {"error": {"stage": "load", **cell.errors[0]}}
    return cell.own_result(fixture.golden)


def _in_words(apart: Observation, own: Observation) -> str:
    if apart.errors:
        return f"{apart.result}, but not by its writer: {headline(apart.errors[-1]['message'])}"
    if apart.result == "relaxed":
        message = f": {headline(own.errors[-1]['message'])}" if own.errors else ""
        return f"returns a value, but not in its writer{message}"
    first = next(
        (difference for difference in apart.differences if difference.kind not in {"raised", "relaxed", "strides"}), None
    )
    if first is None:
        return "has a different outcome than in the release that wrote it"
    expected, got = first.facts.get("expected"), first.facts.get("got")
    return f"{first.kind} {got} instead of {expected} ({first.dtype or 'no tensor'}) in {first.where}"
