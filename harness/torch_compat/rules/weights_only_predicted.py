"""Under ``weights_only=True``, a release refuses what its own lists rule out.

What: if the model of a release says that it refuses a ``torch.save`` archive under ``weights_only=True``, given explicitly or by
default, the release refuses it. If a restricted unpickler refuses an archive that the model says it accepts, the rules about
loading treat this like any other refusal. This rule checks it where these do not: if the reader is older than the writer, or if
no release wrote the archive. An older reader may refuse because of its age, but then it also refuses without ``weights_only``.

Why: refusing is the purpose of a restricted unpickler, so all of its refusals look expected. Only a model of the unpickler shows
when it starts to accept pickles that run code, or to refuse plain tensors.

Example: torch 2.15.0 loads an archive that names a class of its writer, although its list does not have that class.

Reference: the documentation of torch.load and torch.serialization.add_safe_globals. The model is
policies/torch/weights_only.toml, made from the answers of every release, and its predictions are in
policies/torch/weights_only_refusals.toml.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from torch_compat.judging.cell import Outcome
from torch_compat.judging.cells import judge_cells, told_apart
from torch_compat.judging.judgement import Asks, Cause, Judgement, Verdict
from torch_compat.releases.release import Release

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.judging.evidence import Evidence
    from torch_compat.policy import OptionSet, RuleEntry

__all__ = ["judge"]

ASKS: Final = Asks.LOADING

ELSEWHERE = frozenset({"backward", "own", "forward-in-window"})
"""Directions in which the rules about loading examine every refusal."""


def judge(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Judge every cell of a torch.save archive whose reader restricts its unpickler."""
    restricting = {options.id: _restricting(evidence, options) for options in evidence.policy.options}
    aged = _refused_anyway(evidence, restricting)
    unpredicted = set()
    for cells in evidence.cells:
        if cells.fixture.family != "torch-save":
            continue
        for part, restricted in told_apart(cells, restricting[cells.options.id]):
            if not restricted:
                continue
            refusing = evidence.predicted_refusals(part.fixture)
            if refusing is None:
                unpredicted.add(part.fixture.id)
                continue
            for item, refused in told_apart(part, refusing):
                if refused and item.outcome is Outcome.REFUSED:
                    yield judge_cells(rule, item, Verdict.PASS)
                elif refused and item.loaded:
                    text = f"{item.fixture.recipe}: loaded, although it references names that are not on the release's lists"
                    failed = judge_cells(rule, item, Verdict.FAIL)
                    yield replace(failed, cause=Cause("taken", item.fixture.recipe, text))
                elif not refused and item.direction not in ELSEWHERE and _by_unpickler(evidence, item.outcome, item.message):
                    for same, old in told_apart(item, aged.get(item.fixture.id, 0)):
                        yield judge_cells(rule, same, Verdict.PASS if old else Verdict.FAIL)
    for name in sorted(unpredicted):
        text = "how releases handle it under weights_only is not computed yet: `nox -s generate`"
        yield Judgement(rule.id, Verdict.NOT_CHECKED, name, Cause("no prediction", name, text))


def _restricting(evidence: Evidence, options: OptionSet) -> int:
    """Return the readers that restrict their unpickler under a set of load options."""
    given = options.load.weights_only
    if given is not None:
        return (1 << len(evidence.readers)) - 1 if given else 0
    unpicklers = (entry for entry in evidence.policy.behaviors if entry.takes is not None and entry.takes.default)
    default = [unpickler.readers for unpickler in unpicklers if unpickler.readers is not None]
    return evidence.readers.where(lambda reader: any(Release(reader.release) in readers for readers in default))


def _refused_anyway(evidence: Evidence, restricting: dict[str, int]) -> dict[str, int]:
    """Return, by fixture, the readers that refuse it whenever their unpickler is not restricted."""
    refused: dict[str, int] = {}
    loaded: dict[str, int] = {}
    for cells in evidence.cells:
        if cells.fixture.family == "torch-save":
            result = refused if cells.outcome is Outcome.REFUSED else loaded
            result[cells.fixture.id] = result.get(cells.fixture.id, 0) | cells.readers & ~restricting[cells.options.id]
    return {name: bits & ~loaded.get(name, 0) for name, bits in refused.items()}


def _by_unpickler(evidence: Evidence, outcome: Outcome, message: str) -> bool:
    """Whether the message of a refusal is that of a restricted unpickler."""
    messages = [
        option.may_refuse.message
        for option in evidence.policy.options
        if option.may_refuse is not None and option.may_refuse.predicted
    ]
    return outcome is Outcome.REFUSED and any(text in message for text in messages)
