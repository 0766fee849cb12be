"""Proofs of upgraders in tests: a test fails with the smallest call that an upgrader does not preserve."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from torch_compat.errors import UsageError
from torch_compat.proving.cases import PER_FORM
from torch_compat.proving.examples import shown, told
from torch_compat.proving.obligations import compiled
from torch_compat.proving.oracles import Real
from torch_compat.proving.proof import Proof, prove, table_of
from torch_compat.proving.stated import StatedUpgrader, read
from torch_compat.readers.environments import Environments

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

__all__ = ["NotPreservedError", "prove_upgrader"]


class NotPreservedError(AssertionError):
    """An upgrader changes the results of old programs, or there is no evidence that it does not.

    Attributes:
        proof: the proof.
    """

    def __init__(self, message: str, proof: Proof) -> None:
        super().__init__(message)
        self.proof = proof


def prove_upgrader(
    upgrader: str | PathLike[str],
    name: str = "",
    *,
    old: Sequence[str] = (),
    new: Sequence[str] = (),
    seed: int | str = 0,
    count: int = PER_FORM,
) -> Proof:
    """Prove an upgrader in a test. Returns the proof if old programs get the same results or an error becomes a value.

    The reference reader answers on both sides. The given releases also answer, and take precedence.

    Parameters:
        upgrader: the id of an upgrader that comes with the package (``div_Tensor_0_3``), or the path of a TOML file with
            ``[[upgrader]]`` tables, as accepted by ``torch-compat prove``.
        name: the id of the upgrader in that file; may be omitted if it has only one.
        old: built releases from before the change (``1.5.1``), the decisive one first.
        new: built releases with the upgrader, the decisive one first.
        seed: the same seed gives the same calls.
        count: generated calls for each form of a call.

    Raises:
        NotPreservedError: a call changes, and the message shows the smallest; a branch of the body is not reached, the body does
            not compile, no call could be compared, or no release before the change has the operator.
        UsageError: an upgrader, file or built release does not exist, or a table is incomplete.
    """
    stated = _stated(upgrader, name)
    with ExitStack() as stack:
        before, after = ([stack.enter_context(_real(item)) for item in names] for names in (old, new))
        proof = prove(stated, old=before, new=after, seed=seed, count=count)
    if proof.verdict not in {"preserved", "relaxed"}:
        raise NotPreservedError(_told(proof), proof)
    return proof


def _stated(upgrader: str | PathLike[str], name: str) -> StatedUpgrader:
    text = str(upgrader)
    known = read(Path(text)) if text.endswith(".toml") else read()
    wanted = name or (text if not text.endswith(".toml") else next(iter(known), "") if len(known) == 1 else "")
    if wanted not in known:
        message = f"expected one of the upgraders {', '.join(sorted(known)) or '(none)'}, found {wanted or 'no name'!r}"
        raise UsageError(message, where=text, code="upgrader", hint='prove_upgrader("mine.toml", "foo_Bar_0_10")')
    return known[wanted]


def _real(release: str) -> Real:
    version = release.removeprefix("torch-")
    environment = Environments().get(version)
    if environment is None:
        raise UsageError(
            f"torch {version} is not built here", hint=f"torch-compat readers build torch-{version}", code="not-built"
        )
    return Real(environment)


def _told(proof: Proof) -> str:
    """Describe what is wrong, in at most one screen."""
    lines = [f"{proof.stated.id}: {proof.verdict}"]
    error = compiled(proof.stated, table_of(proof.stated)).found if proof.stated.old else ""
    lines += [f"the body does not compile: {error}"] if error else []
    lines += proof.notes
    lines += [f"no generated call reaches the branch at {name}" for name, count in proof.branches.items() if not count]
    if proof.stated.old and not proof.compared:
        lines.append(f"no generated call could be compared: {dict(proof.verdicts)}")
    for counterexample in proof.counterexamples[:1]:
        lines.append(counterexample.form.call)
        lines += [
            f"    a_{name} = {shown([value])}"
            for (name, _, _), value in zip(counterexample.form.parameters, counterexample.args, strict=True)
        ]
        lines += [f"    before: {told(counterexample.old)}", f"    after:  {told(counterexample.new)}"]
    return "\n".join(lines)
