"""Recorded proofs of upgraders: ``reports/proofs/ID.jsonl``, one file for each upgrader, written by ``torch-compat prove --record``.

A file of JSON lines (:mod:`torch_compat.corpus.json_lines`) of kind ``proof``:

``facts``            who answered which calls, with which verdicts; a digest of the upgrader's table at that time; the tolerances under
                     which values count as equal
``obligation``       a finding about the body: whether a reader compiles it, which of its branches generated calls reach, which version an
                     upgraded program has after saving, and whether saving it again leaves it unchanged
``counterexample``   the smallest call for each sort of change
``kept``             former counterexamples, which a proof tries first
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from torch_compat.corpus.json_lines import digest, read_lines, write_lines
from torch_compat.errors import CorpusError
from torch_compat.places import inside, read_whole
from torch_compat.words import count_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["CHECKED", "Example", "Obligation", "ProofCall", "Proofs", "RecordedProof", "read_proof", "read_proofs", "stated_digest", "write_proof"]  # fmt: skip

KIND: Final = "proof"
SUFFIX: Final = ".jsonl"
CHECKED: Final = ("same", "close", "equally-refused", "relaxed", "changed", "changed-later")
"""Verdicts on calls whose outcome is known."""
FACTS: Final[dict[str, type]] = {
    "upgrader": str, "stated": str, "seed": str, "count": int, "old": list, "new": list, "calls": dict, "confirmed": int, "later": list,
    "tolerances": dict,
}  # fmt: skip
EXAMPLE: Final[dict[str, type]] = {
    "sort": str, "call": str, "arguments": list, "shown": str, "old": str, "new": str, "said": str, "calls": int,
}  # fmt: skip
OBLIGATION: Final[dict[str, type]] = {"what": str, "of": str, "found": str}
KEPT: Final[dict[str, type]] = {"call": str, "arguments": list}


@dataclass(frozen=True)
class ProofCall:
    """A call that a proof tries first.

    Attributes:
        call: the expression of the program with the types of its parameters: ``torch.div(a_self, a_other) of Tensor, Tensor``.
        arguments: in neutral form.
    """

    call: str
    arguments: list[Any]


@dataclass(frozen=True)
class Example:
    """A counterexample.

    Attributes:
        sort: the sort of change: ``dtype``, ``shape``, ``value of float64``, ``raised``...
        call, arguments: the smallest call found, as in :class:`ProofCall`; the arguments in neutral form.
        shown: the arguments on one line.
        old, new: the outcome of the call before and after, on one line each.
        said: a description of the difference.
        calls: how many generated calls show a change of this sort.
    """

    sort: str
    call: str
    arguments: list[Any]
    shown: str
    old: str
    new: str
    said: str
    calls: int


@dataclass(frozen=True)
class Obligation:
    """A finding about one property of the body.

    Attributes:
        what: ``compiles``, ``branch``, ``saved`` or ``again``.
        of: the reader that was queried; for ``branch``, which branch.
        found: the error, or "" if it compiles; how many calls of the first program that reaches a branch do so; the version; "same" or the
            difference.
    """

    what: str
    of: str
    found: str


@dataclass(frozen=True)
class RecordedProof:
    """The recorded proof of one upgrader.

    Attributes:
        upgrader: its id.
        stated: digest of its table at the time of the proof (:func:`stated_digest`).
        seed, count: the seed of the generated calls, and their number for each form of a call.
        old, new: the real releases and builds that answered, the decisive one first.
        calls: the number of calls by verdict.
        confirmed: number of calls that real releases or builds answered on both sides.
        later: changes of the operator after the upgrader that make some calls differ.
        tolerances: by dtype, ``[ULP, absolute]``, under which values counted as equal.
        obligations, examples, kept: see the module docstring.
    """

    upgrader: str
    stated: str
    seed: str
    count: int
    old: tuple[str, ...]
    new: tuple[str, ...]
    calls: Mapping[str, int]
    confirmed: int
    later: tuple[str, ...]
    tolerances: Mapping[str, list[float]]
    obligations: tuple[Obligation, ...] = ()
    examples: tuple[Example, ...] = ()
    kept: tuple[ProofCall, ...] = ()

    @property
    def checked(self) -> int:
        """The number of calls with a known outcome."""
        return sum(self.calls.get(item, 0) for item in CHECKED)

    def of(self, what: str) -> tuple[Obligation, ...]:
        """Return the findings of one kind."""
        return tuple(obligation for obligation in self.obligations if obligation.what == what)


@dataclass(frozen=True)
class Proofs:
    """All recorded proofs of a tree.

    Attributes:
        found: the proofs by upgrader.
        unreadable: files that could not be read, and why.
        digest: SHA-256, in hex, of the files.
    """

    found: Mapping[str, RecordedProof]
    unreadable: Mapping[str, str]
    digest: str


def stated_digest(operator: str, first: int, bump: int, old_schema: str, body: str, old: str) -> str:
    """Return a digest of the fields of an upgrader's table that a proof depends on.

    Parameters:
        operator: the operator with its overload.
        old: the last release with the old behavior; "" if there is none.
    """
    return digest(operator, first, bump, old_schema, body.strip("\n"), old)[:20]


def write_proof(folder: Path, proof: RecordedProof) -> Path:
    """Write a proof into a folder; return the file.

    Raises:
        WriteError: it cannot be written.
    """
    facts = {name: getattr(proof, name) for name in FACTS}
    facts |= {name: list(value) for name, value in facts.items() if isinstance(value, tuple)}
    entries: list[dict[str, Any]] = [{"kind": "facts", **facts}]
    entries += [{"kind": "obligation", **vars(each)} for each in proof.obligations]
    entries += [{"kind": "counterexample", **vars(each)} for each in proof.examples]
    entries += [{"kind": "kept", **vars(each)} for each in proof.kept]
    path = inside(folder, proof.upgrader + SUFFIX)
    write_lines(path, {"kind": KIND}, entries)
    return path


def read_proof(path: Path) -> RecordedProof:
    """Read a recorded proof.

    Raises:
        CorpusError: it is not a proof, or incomplete.
    """
    _, lines = read_lines(path, KIND)
    parts: dict[str, list[dict[str, Any]]] = {"facts": [], "obligation": [], "counterexample": [], "kept": []}
    wanted = {"facts": FACTS, "obligation": OBLIGATION, "counterexample": EXAMPLE, "kept": KEPT}
    for number, entry in lines:
        kind = entry.pop("kind")
        known = wanted.get(kind)
        if known is None or entry.keys() != known.keys() or any(entry[key].__class__ is not known[key] for key in known):
            message = f"expected a line of kind {', '.join(wanted)} with its fields, found {kind[:40]!a} with {', '.join(map(ascii, entry))[:200]}"
            raise CorpusError(message, where=f"{path}:{number}", code="bad-line")
        parts[kind].append(entry)
    if len(parts["facts"]) != 1:
        raise CorpusError(
            f"has {count_of(len(parts['facts']), 'line')} of kind 'facts', expected one", where=str(path), code="bad-line"
        )
    (facts,) = parts["facts"]
    _check(facts, path)
    whole: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in facts.items()}
    return RecordedProof(
        **whole,
        obligations=tuple(Obligation(**item) for item in parts["obligation"]),
        examples=tuple(Example(**item) for item in parts["counterexample"]),
        kept=tuple(ProofCall(**item) for item in parts["kept"]),
    )


def _check(facts: dict[str, Any], path: Path) -> None:
    texts = all(fact.__class__ is str for name in ("old", "new", "later") for fact in facts[name])
    counts = [facts["count"], facts["confirmed"], *facts["calls"].values()]
    if not texts or any(count.__class__ is not int or count < 0 for count in counts):
        raise CorpusError(
            "readers must be strings, and counts of calls must be non-negative integers", where=str(path), code="bad-line"
        )
    if facts["upgrader"] + SUFFIX != path.name:
        message = f"is for the upgrader {facts['upgrader'][:80]!a}, expected the one that the file is named after"
        raise CorpusError(message, where=str(path), code="bad-line")


def read_proofs(folder: Path) -> Proofs:
    """Read the proofs of a folder; empty if it does not exist. An unreadable file does not affect other proofs."""
    results: dict[str, RecordedProof] = {}
    unreadable: dict[str, str] = {}
    total = hashlib.sha256()
    for path in sorted(folder.glob(f"*{SUFFIX}")) if folder.is_dir() else ():
        try:
            item = read_proof(path)
            results[item.upgrader] = item
            total.update(read_whole(path))
        except CorpusError as error:
            unreadable[path.name.removesuffix(SUFFIX)] = error.message
            total.update(f"{path.name}\n{error.message}\n".encode())
    return Proofs(results, unreadable, total.hexdigest())
