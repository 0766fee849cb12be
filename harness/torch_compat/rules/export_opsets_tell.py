"""Two releases with the same operator set version compute the same results for an exported program.

What: an exported program contains the operator set version of its writer. A newer release that writes the same version computes the
results of the writer. If the results differ, nothing marks the change: that is a failure under a profile that requires it, and not
promised otherwise (the rule ``newer-computes`` judges the cell itself, and its waivers say what changed). A difference is reported with
the first release that has it and the release before it.

Why: only the operator set version could tell a loader that operators have changed. It has been 10 since torch 1.12.

Example: torch 2.13.0 and 2.14.1 both write 10. ``arange(0, 3.7, dtype=int64)`` exported by 2.13.0 returns three elements there, and four in 2.14.1.

Reference: this project; `opset_version` of torch/_export/serde/schema.py.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from torch_compat.judging.cell import Outcome
from torch_compat.judging.exports import asked, not_recorded
from torch_compat.judging.judgement import Asks, Cause, Judgement, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.corpus.exported import RecordedExports
    from torch_compat.corpus.observations import Observation
    from torch_compat.judging.evidence import Evidence
    from torch_compat.policy import RuleEntry

__all__ = ["judge"]

ASKS: Final = Asks.OTHER
HEARD: Final = frozenset({Outcome.SAME, Outcome.CLOSE, Outcome.RAISED, Outcome.DIFFERENT})
"""The outcomes that are correct, raise, or differ under another operator set version."""
Outcomes = dict[str, Outcome]
"""The outcomes of one archive by release, oldest first."""


def judge(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Judge every exported program that a newer release loads."""
    exports = evidence.exported
    if exports is None:
        yield from not_recorded(evidence, rule)
        return
    silent: Counter[tuple[str, str, str]] = Counter()
    others: Counter[tuple[str, Verdict]] = Counter()
    for (fixture, writer, recipe), outcomes in _outcomes(evidence).items():
        opset = exports.opset(writer)
        if opset is None:
            cause = Cause("no operator set", writer, f"{fixture}: the operator set version of torch {writer} is not recorded")
            yield Judgement(rule.id, Verdict.NOT_CHECKED, fixture, cause, reader=writer)
            continue
        before, since = writer, ""
        for release, outcome in outcomes.items():
            if outcome is Outcome.DIFFERENT and exports.opset(release) == opset:
                since = since or release
                silent[recipe, before, since] += 1
            else:
                before, since = release, ""
                others[recipe, Verdict.PASS if outcome in HEARD else Verdict.NO_PROMISE] += 1
    for (recipe, verdict), count in sorted(others.items()):
        yield Judgement(rule.id, verdict, recipe, things=count)
    for (recipe, before, since), count in sorted(silent.items()):
        yield _silent(evidence, rule, exports, recipe, (before, since), count)


def _outcomes(evidence: Evidence) -> dict[tuple[str, str, str], Outcomes]:
    """Return the outcomes of newer releases for each exported program that they load, by fixture, writer and recipe.

    A result that the writer also gets when it reads its own program back is not a difference between releases, even if it differs from the
    values in memory.
    """
    told: dict[tuple[str, str, str], list[tuple[int, str, Outcome]]] = {}
    own = {(cells.fixture.id, _done(cells.observation)) for cells in evidence.toward["own"] if cells.fixture.family == "export"}
    for cells in evidence.toward["backward"]:
        if cells.fixture.family == "export" and cells.loaded:
            key = cells.fixture.id, cells.fixture.release, cells.fixture.recipe
            outcome = Outcome.SAME if (cells.fixture.id, _done(cells.observation)) in own else cells.outcome
            told.setdefault(key, []).extend(
                (reader.rank, reader.release, outcome) for reader in evidence.readers.of(cells.readers)
            )
    return {key: {release: outcome for _, release, outcome in sorted(rows)} for key, rows in told.items()}


def _done(observation: Observation) -> str:
    """Return the result of a reader without its warnings, for comparison."""
    return repr((observation.result, observation.extent, observation.differences, observation.errors))


def _silent(
    evidence: Evidence, rule: RuleEntry, exports: RecordedExports, recipe: str, border: tuple[str, str], count: int
) -> Judgement:
    before, since = border
    subject = f"{recipe}: {before} and {since}"
    verdict = asked(evidence)
    text = (
        f"{recipe}: torch {before} and {since} both write operator set version {exports.opset(since)}, "
        f"but {since} computes different results"
    )
    cause = Cause("same operator set", recipe, text) if verdict is Verdict.FAIL else None
    return Judgement(rule.id, verdict, subject, cause, reader=since, at=since, things=count)
