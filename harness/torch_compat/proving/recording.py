"""The recorded form of proofs: facts for judging, every release that answered, and the calls to try first next time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch_compat.corpus.proofs import Example, Obligation, ProofCall, RecordedProof, stated_digest
from torch_compat.proving.examples import shown, told
from torch_compat.proving.obligations import asked_of, compiled
from torch_compat.proving.proof import table_of
from torch_compat.proving.verdict import tolerances

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch_compat.proving.oracles import Real
    from torch_compat.proving.proof import Proof
    from torch_compat.proving.stated import StatedUpgrader

__all__ = ["digest_of", "record"]


def digest_of(stated: StatedUpgrader) -> str:
    """Return the digest of an upgrader's table, which links a recorded proof to it."""
    return stated_digest(stated.name, stated.first, stated.bump, stated.old_schema, stated.body, stated.old)


def record(
    proof: Proof, count: int, *, old: Sequence[Real] = (), new: Sequence[Real] = (), kept: Sequence[ProofCall] = ()
) -> RecordedProof:
    """Return a proof in recorded form. The releases with the upgrader are queried about its obligations.

    Parameters:
        count: generated calls for each form of a call.
        old, new: the releases that answered, as passed to the proof.
        kept: the calls that were tried first. This proof's counterexamples are added.

    Raises:
        ReaderError: a release does not answer.
    """
    stated = proof.stated
    obligations: list[Obligation] = []
    if stated.old:
        obligations.append(compiled(stated, table_of(stated)))
        obligations += [Obligation("branch", name, str(reached)) for name, reached in proof.branches.items()]
        for real in new:
            obligations += asked_of(stated, real, list(proof.programs.items()))
    examples = tuple(
        Example(
            counterexample.sort,
            counterexample.form.signed,
            counterexample.args,
            shown(counterexample.args),
            told(counterexample.old),
            told(counterexample.new),
            counterexample.said,
            proof.sorts[counterexample.sort],
        )
        for counterexample in proof.counterexamples
    )
    results = {
        repr((call.call, call.arguments)): call
        for call in (*kept, *(ProofCall(example.call, example.arguments) for example in examples))
    }
    return RecordedProof(
        upgrader=stated.id,
        stated=digest_of(stated),
        seed=str(proof.seed),
        count=count,
        old=tuple(item.name for item in old),
        new=tuple(item.name for item in new),
        calls=dict(sorted(proof.verdicts.items())),
        confirmed=proof.confirmed,
        later=tuple(proof.later),
        tolerances={dtype: list(bounds) for dtype, bounds in sorted(tolerances().items())},
        obligations=tuple(obligations),
        examples=examples,
        kept=tuple(results.values()),
    )
