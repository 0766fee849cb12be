"""Every upgrader preserves the results that old programs had before the change, and a recorded proof shows this.

What: the recorded proof of each upgrader in the policy is for its current table and today's tolerances; releases from both sides of the
change ran its calls; no generated call gives a different result. An accepted kind of difference is listed in a waiver. Calls that differ
because of a later change are expected, and calls that raised before were not promised. In addition, for each upgrader:

- the version ranges of its operator ascend from 0 without gaps or overlaps, so that chains compose: each body uses today's operators;
- its body calls only operators that the newest recorded release has, and compiles in every tested reader; generated calls reach
  every branch of it;
- a program that is upgraded and saved declares at least the version of the bump, loads again, and is not upgraded again;
- a fixture from before the bump contains the operator; for a proposed upgrader, a recipe that releases run once it is accepted;
- if it is only proposed, its body is more than the old call itself;
- the release that it names has the old behavior, because it does not read the version of the bump; if it names none, no earlier
  release has the operator; if it is only proposed, its old schema is that of the last release with the old behavior.

Why: an upgrader that changes the results of an old program does so without a warning, in every program of that age.

Example: `aten::div.out` divides two integer tensors into float64 in double precision up to 1.5.1. Upgraded, it divides in single precision.

Reference: torch/csrc/jit/operator_upgraders/README.md, and the policy, section 'Upgraders'.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from torch_compat.corpus.json_lines import digest
from torch_compat.corpus.proofs import stated_digest
from torch_compat.errors import UsageError
from torch_compat.judging.judgement import Asks, Cause, Judgement, Verdict
from torch_compat.operators.bodies import called, is_call_itself
from torch_compat.operators.breaks import operator_of, same_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.corpus.proofs import Example, RecordedProof
    from torch_compat.judging.evidence import Evidence
    from torch_compat.policy import RuleEntry
    from torch_compat.policy.upgraders import Upgrader

__all__ = ["judge"]

ASKS: Final = Asks.OTHER
REFERENCE: Final = "reference"
LETTERS: Final = str.maketrans("0123456789", "ghijklmnop")
ABSENT: Final = 1 << 62
"""A version higher than all others, for changes newer than any bump."""


def judge(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Judge every upgrader of the policy: its proof and its other obligations."""
    for what, subject, text in _ranges(evidence):
        yield _said(rule, what, subject, text)
    for upgrader in evidence.policy.upgraders:
        yield from _proof(evidence, rule, upgrader)
        yield from _body(evidence, rule, upgrader)
        yield from _old(evidence, rule, upgrader)


def _said(
    rule: RuleEntry,
    what: str,
    subject: str,
    text: str,
    *,
    verdict: Verdict = Verdict.FAIL,
    upgrader: Upgrader | None = None,
    modelled: bool = False,
) -> Judgement:
    """Return a judgement of an upgrader; a pass if the text is empty."""
    since = (upgrader.since or "") if upgrader is not None else ""
    name = f"{subject}: {what}"
    reproduce = f"torch-compat prove {upgrader.id}" if upgrader is not None else ""
    if not text:
        return Judgement(rule.id, Verdict.PASS, name, reader=since, modelled=modelled)
    cause = Cause(what, subject, f"{subject}: {text}")
    return Judgement(rule.id, verdict, name, cause, reader=since, modelled=modelled, reproduce=reproduce, at=since)


# -------------------------------------------------------------------------------------------------------------- the proof


def _proof(evidence: Evidence, rule: RuleEntry, upgrader: Upgrader) -> Iterator[Judgement]:
    if upgrader.old is None:
        return  # no archive can contain the call; _old checks this
    proof = evidence.proofs.found.get(upgrader.id) if evidence.proofs is not None else None
    missing = _missing(evidence, upgrader, proof)
    if proof is None or missing:
        yield _said(rule, "proof", upgrader.id, missing, verdict=Verdict.NOT_CHECKED, upgrader=upgrader)
        return
    confirmed = proof.confirmed > 0
    for example in proof.examples:
        text = f"{example.said}, for the call {example.call} with {example.shown}: {example.old} before, {example.new} after ({_seal(example)})"
        yield _said(rule, example.sort, upgrader.id, text, upgrader=upgrader, modelled=not confirmed)
    if not proof.examples:
        yield _said(rule, "proof", upgrader.id, "", upgrader=upgrader, modelled=not confirmed)
    if proof.calls.get("changed-later"):
        text = (
            f"{proof.calls['changed-later']} calls differ because of {', '.join(proof.later)}, which is later than the upgrader"
        )
        yield _said(rule, "later change", upgrader.id, text, verdict=Verdict.EXPECTED, upgrader=upgrader)
    if proof.calls.get("relaxed"):
        yield Judgement(rule.id, Verdict.NO_PROMISE, f"{upgrader.id}: relaxed", reader=upgrader.since or "")
    yield from _obligations(rule, upgrader, proof)


def _seal(example: Example) -> str:
    """Return a digest of a counterexample in letters: waivers pin the texts of findings without numbers, which matter here."""
    return digest(example.call, example.arguments, example.old, example.new)[:10].translate(LETTERS)


def _missing(evidence: Evidence, upgrader: Upgrader, proof: RecordedProof | None) -> str:
    """Return why a recorded proof does not count; "" if it does."""
    if evidence.proofs is not None and upgrader.id in evidence.proofs.unreadable:
        return f"its recorded proof cannot be read: {evidence.proofs.unreadable[upgrader.id]}"
    command = f"torch-compat prove {upgrader.id} --record"
    if upgrader.since is not None:
        asked = dict.fromkeys([upgrader.old, upgrader.since, evidence.policy.corpus.readers[-1]])
        command += "".join(f" --reader torch-{release}" for release in asked)
    if proof is None:
        return f"no proof is recorded: {command}"
    if proof.stated != stated_digest(
        upgrader.operator, upgrader.first, upgrader.bump, upgrader.old_schema, upgrader.body, upgrader.old or ""
    ):
        return f"its recorded proof is for a different operator, range, schema, body or old release: {command}"
    if any(list(bounds) != proof.tolerances.get(dtype) for dtype, bounds in _tolerances(evidence).items()):
        return f"its recorded proof uses different tolerances than the policy: {command}"
    if proof.calls.get("changed", 0) and not proof.examples:
        return f"its recorded proof has changed calls without a counterexample: {command}"
    if not proof.checked or proof.calls.get("unsupported"):
        return f"the reference reader cannot answer {proof.calls.get('unsupported', 0)} of its calls, and no release was run: {command}"
    if upgrader.since is not None and not proof.confirmed:
        return f"no call was run by releases on both sides of the change: {command}"
    return ""


def _tolerances(evidence: Evidence) -> dict[str, tuple[float, float]]:
    return {
        tolerance.dtype: (float(tolerance.max_ulp), float(tolerance.max_abs))
        for tolerance in evidence.policy.tolerances
        if tuple(tolerance.operators) == ("*",)
    }


def _obligations(rule: RuleEntry, upgrader: Upgrader, proof: RecordedProof) -> Iterator[Judgement]:
    """Judge what readers found about the body, and about saving upgraded programs."""
    wrong = [f"{each.of}: {each.found}" for each in proof.of("compiles") if each.found]
    unasked = "" if proof.of("compiles") else "no reader has compiled its body"
    yield _said(
        rule,
        "compiles",
        upgrader.id,
        "; ".join(wrong) or unasked,
        verdict=Verdict.FAIL if wrong else Verdict.NOT_CHECKED,
        upgrader=upgrader,
    )
    for each in proof.of("branch"):
        text = f"no generated call reaches the branch at {each.of}" if each.found == "0" else ""
        yield _said(rule, "branch", upgrader.id, text, upgrader=upgrader)
    saved = proof.of("saved")
    if not saved and upgrader.since is None:
        text = f"{upgrader.id}: saving an upgraded program was not tested with a build that has the upgrader"
        yield Judgement(rule.id, Verdict.NO_PROMISE, f"{upgrader.id}: saved", Cause("saved", upgrader.id, text))
        return
    if not saved:
        text = "saving an upgraded program was not tested with any release"
        yield _said(rule, "saved", upgrader.id, text, verdict=Verdict.NOT_CHECKED, upgrader=upgrader)
    for each in saved:
        low = f"{each.of} saves an upgraded program with file format version {each.found}, expected {upgrader.bump} or higher"
        text = low if not each.found.isdecimal() or int(each.found) < upgrader.bump else ""
        broken = f"{each.of} saves an upgraded program that it cannot load again: {_line(each.found)}"
        yield _said(rule, "saved", upgrader.id, text if each.found.isdecimal() else broken, upgrader=upgrader)
    for each in proof.of("again"):
        text = (
            f"{each.of} upgrades a program a second time after having upgraded and saved it: {each.found}"
            if each.found != "same"
            else ""
        )
        yield _said(rule, "again", upgrader.id, text, upgrader=upgrader)


def _line(text: str) -> str:
    """Return the first nonempty line of an error."""
    return next((line.strip() for line in text.removeprefix("RuntimeError:").splitlines() if line.strip()), text)


# -------------------------------------------------------------------------------------------------------------- the table


def _ranges(evidence: Evidence) -> Iterator[tuple[str, str, str]]:
    by_operator: dict[str, list[tuple[int, int]]] = {}
    for upgrader in evidence.policy.upgraders:
        by_operator.setdefault(upgrader.operator, []).append((upgrader.first, upgrader.bump))
    for operator, ranges in by_operator.items():
        ordered = sorted(ranges)
        wrong = [] if ordered[0][0] == 0 else [f"no upgrader covers versions 0 to {ordered[0][0] - 1}"]
        for (_, end), (start, _) in pairwise(ordered):
            if start > end:
                wrong.append(f"no upgrader covers versions {end} to {start - 1}")
            elif start < end:
                wrong.append(f"two upgraders cover versions {start} to {end - 1}")
        yield "ranges", operator, "; ".join(wrong)


def _body(evidence: Evidence, rule: RuleEntry, upgrader: Upgrader) -> Iterator[Judgement]:
    """Judge whether the newest recorded release with the upgrader has all operators that its body calls."""
    try:
        operators, itself = called(upgrader.body), is_call_itself(upgrader.body, upgrader.operator)
    except UsageError as error:
        yield _said(rule, "calls", upgrader.id, error.message, upgrader=upgrader)
        return
    if upgrader.since is None:
        text = "its body is the old call itself: write it with operators that do not change" if itself else ""
        yield _said(rule, "body", upgrader.id, text, upgrader=upgrader)
    if evidence.operators is None or not evidence.operators.schemas.releases:
        yield _said(
            rule, "calls", upgrader.id, "there are no records of operators", verdict=Verdict.NOT_CHECKED, upgrader=upgrader
        )
        return
    schemas = evidence.operators.schemas
    releases = [
        release
        for release in schemas.releases
        if upgrader.dropped is None or evidence.rank.get(release, ABSENT) < evidence.rank.get(upgrader.dropped, ABSENT)
    ]
    newest = releases[-1] if releases else schemas.releases[-1]
    gone = [name for name in operators if not schemas.schemas(name, newest)]
    text = (
        f"its body calls {', '.join(gone)}, which {newest} does not have"
        if gone
        else ""
        if operators
        else "its body does not call any operator"
    )
    yield _said(rule, "calls", upgrader.id, text, upgrader=upgrader)


def _old(evidence: Evidence, rule: RuleEntry, upgrader: Upgrader) -> Iterator[Judgement]:
    """Judge the state before the bump: the operator, its schema and a fixture with it, or none of these."""
    schemas = evidence.operators.schemas if evidence.operators is not None else None
    if upgrader.old is None:
        bumped = _bumped(evidence, upgrader)
        if schemas is None or bumped not in evidence.rank:
            text = (
                f"it is not known which releases precede file format {upgrader.bump}, or there are no records of their operators"
            )
            yield _said(rule, "no old release", upgrader.id, text, verdict=Verdict.NOT_CHECKED, upgrader=upgrader)
            return
        having = [
            release
            for release in schemas.releases
            if evidence.rank.get(release, ABSENT) < evidence.rank[bumped] and _of(evidence, upgrader.operator, release)
        ]
        text = f"does not name a release with the old behavior, but {having[-1]} has {upgrader.operator}" if having else ""
        yield _said(rule, "no old release", upgrader.id, text, upgrader=upgrader)
        return
    bumped = _bumped(evidence, upgrader)
    late = bumped in evidence.rank and evidence.rank.get(upgrader.old, ABSENT) >= evidence.rank[bumped]
    text = f"torch {upgrader.old} reads file format {upgrader.bump}, so it does not have the old behavior" if late else ""
    yield _said(rule, "old release", upgrader.id, text, upgrader=upgrader)
    if upgrader.since is None:
        real = _of(evidence, upgrader.operator, upgrader.old)
        text = "" if any(same_schema(upgrader.old_schema, text) for text in real) else (
            f"declares the old schema {upgrader.old_schema}, but torch {upgrader.old} has {real[0] if real else 'no such operator'}"
        )  # fmt: skip
        yield _said(rule, "old schema", upgrader.id, text, upgrader=upgrader)
    fixtures = [
        fixture.id
        for fixture in evidence.corpus.fixtures.values()
        if fixture.versions.get("file-format", ABSENT) < upgrader.bump and upgrader.operator in fixture.operators
    ]
    text = "" if fixtures else f"no fixture of a file format version below {upgrader.bump} contains {upgrader.operator}"
    waiting = [recipe.name for recipe in evidence.corpus.recipes if upgrader.operator in recipe.operators]
    if text and upgrader.since is None and waiting:
        cause = Cause("fixture", upgrader.id, f"{upgrader.id}: {text} yet; run the recipe {waiting[0]} with the releases first")
        yield Judgement(rule.id, Verdict.NO_PROMISE, f"{upgrader.id}: fixture", cause)
        return
    yield _said(rule, "fixture", upgrader.id, text, upgrader=upgrader)


def _bumped(evidence: Evidence, upgrader: Upgrader) -> str:
    """Return the first release that reads the file format version of the bump; "" if the policy has no such version."""
    results = (
        entry.read_from.release
        for entry in evidence.policy.formats
        if entry.kind == "file-format" and entry.version == upgrader.bump
    )
    return next(results, "")


def _of(evidence: Evidence, operator: str, release: str) -> list[str]:
    """Return the schemas of an overload in a recorded release."""
    if evidence.operators is None:
        return []
    name = operator.partition(".")[0]
    return [text for text in evidence.operators.schemas.schemas(name, release) if operator_of(text) == operator]
