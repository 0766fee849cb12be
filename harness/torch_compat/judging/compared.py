"""Compare two readers: how one of them differs from the other with the same archives, and the policy's verdict on it.

This is not a rule. A promise binds writers and readers; this module finds what changed from one reader to the next, and looks up in the
judgements of the later one whether that breaks a promise.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from torch_compat.judging.agreement import agreement
from torch_compat.judging.cell import Outcome
from torch_compat.judging.judgement import Verdict
from torch_compat.policy.model import STORED
from torch_compat.releases.release import public
from torch_compat.values.compare import all_differences
from torch_compat.values.normalise import alike, headline

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from torch_compat.corpus.deprecations import DeprecationObservation, Use
    from torch_compat.corpus.manifest import Fixture
    from torch_compat.corpus.observations import Observation, ObservedReader
    from torch_compat.judging.evidence import Evidence
    from torch_compat.judging.judge import ReaderJudgement
    from torch_compat.policy import OptionSet
    from torch_compat.values.compare import Difference

__all__ = [
    "BREAKS",
    "RESULTS",
    "Compared",
    "Moved",
    "compare_cells",
    "compare_deprecations",
    "compare_probes",
    "in_short",
    "subject_of",
    "tell",
    "told",
    "verdict_of",
    "why",
]

State: TypeAlias = Literal["new", "mended", "known", "reworded", "same"]
KEPT: Final = frozenset({Outcome.SAME, Outcome.CLOSE})
BREAKS: Final = Verdict.FAIL
TIMED_OUT: Final = "timed-out"
NO_VALUES: Final = frozenset({"error", "crashed", "timed-out", "unstable", "unsupported"})
"""The contents of a golden whose writer did not read the archive back, or whose program died. Such a golden has no values to compare."""
RESULTS: Final = frozenset({"differs", "raised", "relaxed"})
"""The record of a cell whose reader computes different values than the writer, or raises in a different place."""
WORKED, LACKS = "worked", "lacks"
QUOTED: Final = re.compile(r"'[^']*'")
"""The subject of a warning, such as the class whose source has changed. Warnings with one subject count as one."""
REWORDED: Final = 0.9
"""The similarity, as measured by :mod:`difflib`, from which two warnings count as one reworded warning."""
NONE: Final = Verdict.NO_PROMISE


@dataclass(frozen=True)
class Moved:
    """A change in the later reader, or something it still does wrong.

    Attributes:
        state: ``new``, ``mended``, ``known`` (both do it) or ``reworded`` (the same error or warning with a different wording).
        what: ``loads``, ``computes``, ``warns``, ``deprecation`` or ``probe``.
        group: a key shared by all changes with one cause.
        fixture, options: the cell; for a probe, its name and "".
        before, after: short descriptions of what the two readers did.
        cause: one line for people.
        judged: the judgements of the later reader, if any.
    """

    state: State
    what: str
    group: str
    fixture: str
    options: str
    before: str
    after: str
    cause: str
    judged: tuple[ReaderJudgement, ...] = ()


@dataclass(frozen=True)
class Compared:
    """The comparison of two readers.

    Attributes:
        moved: everything that is not the same and correct in both.
        same: the number of cells, probes and deprecations in which both do the same and nothing is wrong.
        unasked: what was run with the later reader, but not with the earlier one in its current form.
        unended: what timed out with only one of them, which says more about the machine than about torch.
    """

    moved: tuple[Moved, ...]
    same: int
    unasked: tuple[str, ...]
    unended: tuple[str, ...] = ()


def verdict_of(judged: Iterable[ReaderJudgement]) -> Verdict:
    """The most severe verdict; ``no-promise`` if there are no judgements."""
    results = {judgement.verdict for judgement in judged}
    return next((item for item in (BREAKS, Verdict.WAIVED, Verdict.CONTINUES, Verdict.EXPECTED) if item in results), NONE)


def compare_cells(
    evidence: Evidence, base: ObservedReader, later: ObservedReader, judged: Mapping[tuple[str, str], tuple[ReaderJudgement, ...]]
) -> Compared:
    """Compare the results of two readers for every cell of the later one.

    A warning that a process issues only once appears with the first archive that causes it, whichever that is. So it is new only if
    the earlier reader never issues it, and gone only if the later one never issues it.

    Parameters:
        judged: the judgements of the later reader's cells.
    """
    options = {entry.id: entry for entry in evidence.policy.options}
    chance = _given_once(evidence) & _of_all(base) & _of_all(later)
    moved: list[Moved] = []
    unasked: list[str] = []
    same = 0
    for (fixture_id, options_id), after in sorted(later.cells.items()):
        fixture = evidence.corpus.fixtures.get(fixture_id)
        if fixture is None:
            continue
        before = evidence.valid(base, fixture, options[options_id])
        if before is None:
            unasked.append(fixture_id if options_id == "default" else f"{fixture_id} ({options_id})")
            continue
        results = list(_cell(evidence, fixture, options[options_id], (base.name, before), (later.name, after), chance))
        message = judged.get((fixture_id, options_id), ())
        moved += [_with(item, message) for item in results]
        same += not results
    return Compared(tuple(moved), same, tuple(unasked))


def _with(moved: Moved, judged: tuple[ReaderJudgement, ...]) -> Moved:
    return Moved(
        moved.state, moved.what, moved.group, moved.fixture, moved.options, moved.before, moved.after, moved.cause, judged
    )


def _cell(
    evidence: Evidence,
    fixture: Fixture,
    options: OptionSet,
    item: tuple[str, Observation],
    other: tuple[str, Observation],
    chance: frozenset[tuple[str, str]],
) -> Iterable[Moved]:
    before, after = item[1], other[1]
    was, is_ = (
        evidence.outcome(fixture, cell, others=evidence.wordings.others(fixture, cell, public(name)))
        for name, cell in (item, other)
    )
    texts = in_short(was, before), in_short(is_, after)
    verdict, _ = agreement(evidence, fixture, before, after)
    wrong = is_ not in KEPT
    apart = _apart(evidence, fixture, before, after) if verdict is Verdict.FAIL else None
    if apart is not None:
        yield _values(fixture, options, apart, texts)
    elif verdict is Verdict.FAIL:
        state: State = "new"
        if was is is_ and is_ in {Outcome.REFUSED, Outcome.RAISED} and before.count == after.count:
            state = "reworded"
        elif _unloadable(fixture) and "relaxed" not in {before.result, after.result}:
            state = "reworded"  # it is not loaded, just as its own writer does not load it
        elif was not in KEPT and is_ in KEPT:
            state = "mended"
        what = "computes" if after.result in {"differs", "relaxed", "raised", "unstable"} or after.stage == "call" else "loads"
        cause = why(fixture, after, texts)
        group = f"{what}:{is_}:{subject_of(fixture, after)}"
        yield Moved(state, what, group, fixture.id, options.id, *texts, cause)
    elif wrong:
        yield Moved("known", "loads", f"known:{is_}", fixture.id, options.id, *texts, "")
    gone, new = _warnings(before) - _warnings(after) - chance, _warnings(after) - _warnings(before) - chance
    if (gone or new) and before.result == after.result:
        reworded = {entry for entry in new if any(_alike(entry, other) for other in gone)}
        for category, text in sorted(reworded):
            which = f"issues a reworded warning: {category}: {text}"
            yield Moved(
                "reworded", "warns", f"warns:words:{category}", fixture.id, options.id, "warns", "the warning is reworded", which
            )
        if reworded:
            new, gone = new - reworded, frozenset(entry for entry in gone if not any(_alike(entry, other) for other in reworded))
        for category, text in sorted(new or gone):
            which = f"warns: {category}: {text}" if new else f"no longer warns: {text}"
            about = QUOTED.sub("'…'", text)
            group = f"warns:{'+' if new else '-'}:{category}:{about}"
            pair = ("no such warning", "warns") if new else ("warns", "no such warning")
            yield Moved("new" if new else "mended", "warns", group, fixture.id, options.id, *pair, which)


def _unloadable(fixture: Fixture) -> bool:
    """Whether its own writer could not load it, so that the golden is that error."""
    return str(fixture.golden.get("error", {}).get("stage")) == "load"


def _alike(item: tuple[str, str], other: tuple[str, str]) -> bool:
    """Whether two warnings have the same category and nearly the same text, such as "is renamed" and "is rename"."""
    return item[0] == other[0] and SequenceMatcher(None, item[1], other[1]).ratio() >= REWORDED


class _Apart(NamedTuple):
    """Where the results of two readers differ.

    Attributes:
        all: every difference between the later and the earlier result that matters.
        new: those in which the later result also differs from the golden.
    """

    all: tuple[Difference, ...]
    new: tuple[Difference, ...]


def _apart(evidence: Evidence, fixture: Fixture, before: Observation, after: Observation) -> _Apart | None:
    """Where two readers have different results; None if one of them has none. The text of an error is not a result."""
    golden = fixture.golden
    if not all(side.result == "same" or (side.result in RESULTS and side.departures) for side in (before, after)):
        return None
    theirs, mine = before.own_result(golden), after.own_result(golden)
    moved, wrong = told(evidence, fixture, theirs, mine), told(evidence, fixture, golden, mine)
    if moved is None or wrong is None:
        return None
    places = [item.where for item in wrong]
    new = (item for item in moved if any(item.where.startswith(place) or place.startswith(item.where) for place in places))
    return _Apart(tuple(moved), tuple(new))


def _values(fixture: Fixture, options: OptionSet, apart: _Apart, texts: tuple[str, str]) -> Moved:
    """Describe differing results: values first, since nobody notices when they change; then new errors; then errors that disappeared.

    A program that raised and still raises, with a different wording, is ``reworded``: nothing stopped working.
    """
    state: State = "new" if apart.new else "mended" if apart.all else "reworded"
    result = apart.new or apart.all
    subject, cause = (
        tell(fixture, result) if result else (f"words:{fixture.recipe}", f"{fixture.recipe}: raises the same error, reworded")
    )
    return Moved(state, "computes", f"computes:{subject}", fixture.id, options.id, *texts, cause)


def told(evidence: Evidence, fixture: Fixture, expected: dict[str, Any], got: dict[str, Any]) -> list[Difference] | None:
    """Every difference between two results of a fixture that matters; None if one of them has no values."""
    if not NO_VALUES.isdisjoint({*expected, *got}):
        return None
    difference = all_differences(expected, got)[0]
    return [item for item in difference if item.kind in {"raised", "relaxed"} or evidence.matters(fixture, item)]


def tell(fixture: Fixture, item: Sequence[Difference]) -> tuple[str, str]:
    """A key shared by differences with one cause, and one line for people. Requires at least one difference."""
    value = next((difference for difference in item if difference.kind not in {"raised", "relaxed"}), None)
    if value is not None:
        dtype = f" ({value.dtype})" if value.dtype else ""
        told = f"{value.facts.get('got')} instead of {value.facts.get('expected')}"
        subject = f"{value.kind} of {value.dtype or 'values'}" if fixture.family in STORED else fixture.recipe
        return subject, f"{fixture.recipe}: {value.kind}{dtype} in {value.where}: {told}"
    first = next((difference for difference in item if difference.kind == "raised"), item[0])
    error = first.content[first.kind == "raised"]
    text = _bare(headline(error["message"]))
    message = f"{error['type'].removeprefix('builtins.')}: {text} in {first.where}"
    if first.kind == "raised":
        return f"raises:{alike(text)}", f"{fixture.recipe}: raises {message}"
    return f"accepts:{alike(text)}", f"{fixture.recipe}: returns a value; before: raises {message}"


def subject_of(fixture: Fixture, cell: Observation) -> str:
    """A key shared by cells with one cause: the message; for values that were only stored, the kind of difference; else the recipe."""
    if cell.signal:
        return f"{cell.signal} while {'loading' if cell.stage == 'load' else 'running'}"
    if cell.errors and cell.result != "differs":
        return alike(_bare(headline(cell.errors[-1]["message"])))
    grave = _grave(cell)
    return f"{grave.kind} of {grave.dtype or 'values'}" if grave is not None and fixture.family in STORED else fixture.recipe


def _bare(text: str) -> str:
    """A message without the error class that TorchScript prepends when it quotes the program."""
    return text.removeprefix("RuntimeError: ")


def _grave(cell: Observation) -> Difference | None:
    """The first difference of a value, type or state."""
    return next((difference for difference in cell.differences if difference.kind not in {"raised", "relaxed"}), None)


def _warnings(cell: Observation) -> frozenset[tuple[str, str]]:
    return frozenset(_warning(category, text) for category, text in cell.warnings)


def _warning(category: str, text: str) -> tuple[str, str]:
    return category.removeprefix("builtins."), alike(headline(text))


def _given_once(evidence: Evidence) -> frozenset[tuple[str, str]]:
    """The warnings that a process issues only once, according to the policy."""
    return frozenset(
        _warning(phrase.type, phrase.text) for entry in evidence.policy.warnings if entry.once for phrase in entry.says
    )


def _of_all(reader: ObservedReader) -> frozenset[tuple[str, str]]:
    """All warnings that a reader issues."""
    return frozenset().union(*map(_warnings, reader.cells.values()))


def in_short(outcome: Outcome, cell: Observation) -> str:
    """A short description of a reader's result."""
    if cell.signal:
        return f"{outcome}: {cell.signal} while {'loading' if cell.stage == 'load' else 'running'}"
    return f"{outcome}: {headline(cell.errors[-1]['message'])}" if cell.errors else str(outcome)


def why(fixture: Fixture, after: Observation, texts: tuple[str, str]) -> str:
    """One line for people: the first difference, or else both outcomes."""
    first = _grave(after)
    if after.result == "differs" and first is not None:
        expected, got = first.facts.get("expected"), first.facts.get("got")
        dtype = f" ({first.dtype})" if first.dtype else ""
        return f"{fixture.recipe}: {first.kind}{dtype} in {first.where}: {got} instead of {expected}"
    return f"{fixture.recipe}: {texts[1]}; before: {texts[0]}"


# ------------------------------------------------------------------------------------------------- deprecations and probes


def compare_deprecations(base: ObservedReader, later: ObservedReader, judged: Iterable[tuple[str, ReaderJudgement]]) -> Compared:
    """Compare two readers on deprecated features and their alternatives. Documentation is not compared.

    A use that timed out with only one of them is not compared.
    """
    moved: list[Moved] = []
    unasked: list[str] = []
    unended: list[str] = []
    same = 0
    messages = list(judged)
    for name, after in sorted(later.deprecations.items()):
        before = base.deprecations.get(name)
        if before is None:
            unasked.append(f"deprecation {name}")
            continue
        ways = [way for way in ("deprecated", "alternative") if _use(before, way) != _use(after, way)]
        late = [way for way in ways if TIMED_OUT in {getattr(before, way).outcome, getattr(after, way).outcome}]
        unended += [f"{name} ({way})" for way in late]
        same += not ways
        for way in ways:
            if way in late:
                continue
            use, old = getattr(after, way), getattr(before, way)
            texts = _in_words(old), _in_words(use)
            of_it = tuple(item for subject, item in messages if name in subject.split())
            cause = f"{name} ({way}): {texts[1]}; before: {texts[0]}"
            state: State = "mended" if _is_better(old, use) else "new"
            moved.append(Moved(state, "deprecation", f"deprecation:{name}:{way}", name, "", *texts, cause, of_it))
    return Compared(tuple(moved), same, tuple(unasked), tuple(unended))


def _use(observation: DeprecationObservation, way: str) -> tuple[object, ...]:
    use: Use = getattr(observation, way)
    error = (use.error["type"], alike(headline(use.error["message"]))) if use.error else None
    return use.outcome, tuple(sorted((category, alike(headline(text))) for category, text in use.warnings)), use.behaves, error


def _is_better(old: Use, use: Use) -> bool:
    """Whether a feature works that was missing, or now works without its warning or error and behaves the same."""
    if use.outcome != WORKED:
        return False
    if old.outcome == LACKS:
        return True
    return not use.warnings and (old.outcome != WORKED or bool(old.warnings)) and (not use.behaves or use.behaves == old.behaves)


def _in_words(use: Use) -> str:
    error = f": {use.error['type'].removeprefix('builtins.')}: {headline(use.error['message'])}" if use.error else ""
    behaves = f", behaves as {use.behaves}" if use.behaves else ""
    warns = f", warns: {headline(use.warnings[0][1])}" if use.warnings else ""
    return f"{use.outcome}{error}{behaves}{warns}"


def compare_probes(base: ObservedReader, later: ObservedReader) -> Compared:
    """Compare two readers' results of probes."""
    moved: list[Moved] = []
    unasked: list[str] = []
    same = 0
    for name, after in sorted(later.probes.items()):
        before = base.probes.get(name)
        if before is None:
            unasked.append(f"probe {name}")
            continue
        checks = sorted({check[:2] for check in before.checks} ^ {check[:2] for check in after.checks}, key=str)
        if not checks and (before.error is None) == (after.error is None):
            same += 1
            continue
        names = ", ".join(dict.fromkeys(check[0] for check in checks)) or "its error"
        moved.append(Moved("new", "probe", f"probe:{name}", name, "", "a different answer", names, f"{name}: {names} changed"))
    return Compared(tuple(moved), same, tuple(unasked))
