"""Proves upgraders: runs the same generated calls under two horizons, and compares old semantics with the upgraded call.

The old side is a program of a release before the change, the new side the same archive read after it. The reference reader answers on both
sides, as do real releases if given; a case that releases answered on both sides is *confirmed*, any other *modelled*. If the reference
reader and its release disagree, the release takes precedence and the disagreement is reported, since a proof against a wrong model is
worthless.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from torch_compat.errors import UsageError
from torch_compat.operators.call_signature import bare
from torch_compat.proving.cases import PER_FORM, cases
from torch_compat.proving.examples import Counterexample, shown, told
from torch_compat.proving.obligations import Branches
from torch_compat.proving.oracles import Modelled
from torch_compat.proving.programs import Form, archive, forms
from torch_compat.proving.shrink import shrunk
from torch_compat.proving.verdict import agreement, judged
from torch_compat.releases.data import entries, packaged
from torch_compat.releases.release import Release
from torch_compat.runtime.horizons import horizon
from torch_compat.runtime.registry import NEWEST
from torch_compat.runtime.upgraders import UpgraderBody, UpgraderTable, recorded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch_compat.corpus.proofs import ProofCall
    from torch_compat.proving.oracles import CallOutcome, Oracle
    from torch_compat.proving.stated import StatedUpgrader

__all__ = ["Proof", "prove"]

PROGRAMS_HAVE_COMPLEX: Final = Release("1.9.0")
EXAMPLES: Final = 6


@dataclass
class Proof:
    """The cases of a proof and their results.

    Attributes:
        stated: the upgrader.
        old, new: the oracles that answered, the decisive one first.
        verdicts: number of cases by verdict.
        confirmed: number of cases that real releases answered on both sides.
        agreements: for each queried release, its agreement with the reference reader.
        later: later changes that make the newest release differ, although the upgraded call was correct when the upgrader was added.
        sorts: number of cases for each sort of change.
        counterexamples: the smallest one of each sort.
        apart: examples of disagreements between the reference reader and a release, by release and kind.
        branches: for each branch of the body, the number of calls that reach it in the first program that does, in the reference reader; 0
            if none does.
        programs: the archive of each form of a call, by its expression with types.
        notes: additional remarks.
    """

    stated: StatedUpgrader
    seed: int | str
    old: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    verdicts: Counter[str] = field(default_factory=Counter)
    confirmed: int = 0
    agreements: dict[str, Counter[str]] = field(default_factory=dict)
    apart: dict[str, list[str]] = field(default_factory=dict)
    later: tuple[str, ...] = ()
    sorts: Counter[str] = field(default_factory=Counter)
    counterexamples: list[Counterexample] = field(default_factory=list)
    branches: dict[str, int] = field(default_factory=dict)
    programs: dict[str, bytes] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def compared(self) -> int:
        """The number of cases with a known outcome."""
        return sum(self.verdicts[name] for name in ("same", "close", "equally-refused", "relaxed", "changed", "changed-later"))

    @property
    def modelled(self) -> bool:
        """Whether one side has no real release."""
        return bool(self.stated.old) and not self.confirmed

    @property
    def verdict(self) -> str:
        """``changed``, ``unreachable``, ``not-checked``, ``relaxed`` or ``preserved``."""
        if self.verdicts["changed"]:
            return "changed"
        if not self.stated.old:
            return "unreachable"
        if not self.compared or self.verdicts["unsupported"] or not all(self.branches.values()):
            return "not-checked"
        return "relaxed" if self.verdicts["relaxed"] else "preserved"


def table_of(stated: StatedUpgrader, at: Release = NEWEST) -> UpgraderTable:
    """Return the upgraders recorded for a release (default: the newest), with this one replacing that of its overload."""
    rest = [item for item in recorded(at).bodies if (item.operator, item.overload) != (stated.operator, stated.overload)]
    body = UpgraderBody(stated.id, stated.operator, stated.overload, stated.first, stated.bump, stated.old_schema, stated.body)
    return UpgraderTable([body, *rest])


def version_for(stated: StatedUpgrader) -> int:
    """Return the newest file format version that the old release reads and the upgrader handles.

    Raises:
        UsageError: the release reads none of them, or is not from before the change, so that both sides would run today's operator.
    """
    known = horizon(f"reference@{stated.old}")
    if known.reads("file-format", stated.bump):
        message = (
            f"torch {stated.old} reads file format {stated.bump}, so it is not older than the change that {stated.id} handles"
        )
        raise UsageError(message, code="upgrader", hint="set `old` to the last release with the old behavior")
    results = [index for index in range(stated.first, stated.bump) if known.reads("file-format", index)]
    if not results:
        message = (
            f"torch {stated.old} reads none of the file formats {stated.first} to {stated.bump - 1} that {stated.id} handles"
        )
        raise UsageError(message, code="upgrader", hint="set `old` to a release before the version bump")
    return results[-1]


def prove(
    stated: StatedUpgrader,
    *,
    old: Sequence[Oracle] = (),
    new: Sequence[Oracle] = (),
    seed: int | str = 0,
    count: int = PER_FORM,
    table: UpgraderTable | None = None,
    first: bool = False,
    kept: Sequence[ProofCall] = (),
) -> Proof:
    """Prove an upgrader, or find counterexamples.

    Parameters:
        old: real releases from before the change; the first is decisive.
        new: real releases that have the upgrader; the first is decisive.
        seed: the same seed gives the same cases.
        count: cases for each form of a call.
        table: the upgraders of the reference reader; by default those of the newest release with this one included.
        first: stop at the first change, and do not look for a smaller one.
        kept: former counterexamples, which are tried before generated calls.
    """
    proof = Proof(stated, seed)
    if not stated.old:
        proof.notes.append(f"no release before file format {stated.bump} has {stated.name}: no archive can contain this call")
        return proof
    version = version_for(stated)
    numbers = Release(stated.old) >= PROGRAMS_HAVE_COMPLEX
    models = Modelled(stated.old), Modelled(table=table_of(stated) if table is None else table)
    sides = (old[0] if old else models[0], new[0] if new else models[1])
    proof.old, proof.new = (tuple(item.name for item in (*real, model)) for real, model in zip((old, new), models, strict=True))
    confirmed = bool(old) and bool(new)
    stands_for: list[tuple[Oracle, Modelled]] = [
        (oracle, Modelled(oracle.name.removeprefix("torch-"))) for oracle in (*old, *new)
    ]
    seen: Counter[str] = Counter()
    later = later_changes(stated)
    at_bump = _at_bump(stated, new, table) if later else None
    branches = None if first else Branches(stated, table_of)
    for form in forms(stated.operator, stated.arguments, complex_numbers=numbers):
        data = proof.programs[form.signed] = archive(form, version)
        given = [*(call.arguments for call in kept if call.call == form.signed), *cases(form, seed, count)]
        if branches is not None:
            branches.ask(data, given)
            proof.branches = branches.counts
        answers = {oracle.name: oracle.ask(data, given) for oracle in (*old, *new, *(models if not confirmed else ()))}
        for real, model in stands_for:
            _hold(proof, form, real, model.ask(data, given), answers[real.name], given)
        pairs = list(zip(given, answers[sides[0].name], answers[sides[1].name], strict=True))
        verdicts = [judged(was, now) for _, was, now in pairs]
        changed = [at for at, result in enumerate(verdicts) if result.verdict == "changed"]
        if at_bump is not None and changed:
            mine = [pairs[at][:2] for at in changed]
            for at, is_later in zip(changed, _are_later(data, mine, at_bump, models[1] if len(new) == 1 else None), strict=True):
                if is_later:
                    verdicts[at] = verdicts[at]._replace(verdict="changed-later")
                    proof.later = later
        for (args, _, _), verdict in zip(pairs, verdicts, strict=True):
            proof.verdicts[verdict.verdict] += 1
            proof.confirmed += confirmed and verdict.verdict not in {"no-program", "no-input"}
            if verdict.verdict != "changed":
                continue
            proof.sorts[verdict.sort] += 1
            if not seen[verdict.sort] and len(proof.counterexamples) < EXAMPLES:
                proof.counterexamples.append(_smallest(form, args, data, sides, verdict.sort, confirmed, shrink=not first))
            seen[verdict.sort] += 1
            if first:
                return proof
    return proof


def later_changes(stated: StatedUpgrader) -> tuple[str, ...]:
    """Return the changes of an operator's results in the policy that came after the upgrader, and that it does not handle."""
    if not stated.since:
        return ()
    known = entries(packaged("policies", "torch"), ("changes",))["change"]
    base = bare(stated.operator)
    return tuple(item["id"] for item in known if base in item["operators"] and Release(item["since"]) > Release(stated.since))


def _at_bump(stated: StatedUpgrader, new: Sequence[Oracle], table: UpgraderTable | None) -> Oracle | None:
    """Return the oracle for the upgraded call when the upgrader was added: the oldest queried release, else the reference reader."""
    if len(new) > 1:
        return new[-1]
    return Modelled(stated.since, table_of(stated, Release(stated.since)) if table is None else table)


def _are_later(data: bytes, calls: list[tuple[list[Any], CallOutcome]], at_bump: Oracle, newest: Modelled | None) -> list[bool]:
    """Return for each call whether it was correct when the upgrader was added.

    Parameters:
        calls: inputs, each with its outcome before the change.
        newest: the reference reader as the newest release. It must differ as well if only one release does; otherwise the difference is
            specific to that release rather than a change in the policy.
    """
    given = [args for args, _ in calls]
    right = [judged(was, then).verdict != "changed" for (_, was), then in zip(calls, at_bump.ask(data, given), strict=True)]
    if newest is None:
        return right
    differs = [judged(was, now).verdict == "changed" for (_, was), now in zip(calls, newest.ask(data, given), strict=True)]
    return [item and other for item, other in zip(right, differs, strict=True)]


def _hold(
    proof: Proof, form: Form, real: Oracle, ours: list[CallOutcome], theirs: list[CallOutcome], given: list[list[Any]]
) -> None:
    """Compare the reference reader with a release."""
    counts = proof.agreements.setdefault(real.name, Counter())
    for args, model, outcome in zip(given, ours, theirs, strict=True):
        word = agreement(model, outcome)
        counts[word] += 1
        if word in {"values", "only-torch-refuses", "only-the-reader-refuses", "not-modelled", "input-differs"}:
            kept = proof.apart.setdefault(f"{real.name}: {word}", [])
            if len(kept) < EXAMPLES:
                kept.append(f"{form.call} of {shown(args)}: torch {told(outcome)}; reference {told(model)}")


def _smallest(
    form: Form, args: list[Any], data: bytes, sides: tuple[Oracle, Oracle], sort: str, confirmed: bool, *, shrink: bool
) -> Counterexample:
    def fails(tried: list[list[Any]]) -> list[bool]:
        pairs = zip(*(side.ask(data, tried) for side in sides), strict=True)
        results = [judged(was, now) for was, now in pairs]
        return [item.verdict == "changed" and item.sort == sort for item in results]

    small = shrunk(args, fails) if shrink else args
    (was,), (now,) = (side.ask(data, [small]) for side in sides)
    return Counterexample(form, small, was, now, judged(was, now).said, data, confirmed, sort)
