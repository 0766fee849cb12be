"""``torch-compat prove``: does an upgrader give old programs what the operator gave before its change?"""

from __future__ import annotations

import difflib
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from torch_compat.cli._format import format_option, print_json, say
from torch_compat.cli._values import plain
from torch_compat.errors import UsageError
from torch_compat.releases.release import Release

if TYPE_CHECKING:
    from torch_compat.proving.oracles import Real
    from torch_compat.proving.proof import Counterexample, Proof
    from torch_compat.proving.stated import Stated

__all__ = ["prove"]

STATUS = {"preserved": 0, "relaxed": 0, "unreachable": 0, "changed": 1, "not-checked": 4}
SHOWN = 3
NOT_CHECKED = 4


@click.command()
@click.argument("name", metavar="[ID|FILE.toml]", required=False)
@click.option("--all", "everything", is_flag=True, help="Prove all upgraders of the policy.")
@click.option(
    "--reader",
    "readers",
    multiple=True,
    metavar="torch-X.Y.Z",
    help="Also ask this release: from before the change for the old result, after it for the new one. Repeatable.",
)
@click.option(
    "--seed", default="0", show_default=True, metavar="TEXT", help="Seed of the generated calls: same seed, same calls."
)
@click.option(
    "--count",
    type=click.IntRange(1, 100_000),
    default=288,
    show_default=True,
    metavar="N",
    help="Generated calls per form of call.",
)
@click.option(
    "--counterexamples",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIRECTORY",
    help="Write each counterexample as a pytest test and an archive into this directory.",
)
@click.option("--mutate", is_flag=True, help="Instead, change the body in many ways and report which changes a proof notices.")
@format_option
def prove(
    name: str | None,
    everything: bool,
    readers: tuple[str, ...],
    seed: str,
    count: int,
    folder: Path | None,
    mutate: bool,
    format_: str,
) -> int:
    """Prove an upgrader, or find the smallest call that it does not preserve.

    The same generated calls run in a program from before the operator's change and, through the upgrader, after it. The reference reader answers
    on both sides, without torch; --reader asks real releases, which take precedence. Without real releases on both sides the verdict is
    marked as modelled.

    ID is an upgrader of policies/torch/upgraders.toml (such as div_Tensor_0_3), or a file with one or more [[upgrader]] tables.

    Verdicts: preserved; relaxed (the old program raised, the new one returns a value); changed (with a counterexample); unreachable (no
    release before the change has the operator, so that no archive can hold the call); not-checked.

    With --mutate, one change at a time is made to the upgrader's body (branches swapped, a condition dropped, a constant changed); each should
    change the result of a generated call. Changes that cannot are listed with the reason in the upgrader's table (`equivalent`).

    Exit status: 0 all preserved, relaxed or unreachable (--mutate: at least 95 % of the changes noticed, at most one missed); 1 a change was
    found (--mutate: too few noticed); 2 invalid usage; 4 something could not be checked.
    """
    chosen = _chosen(name, everything)
    if mutate:
        if readers or folder is not None:
            raise UsageError("--mutate asks the reference reader alone: leave out --reader and --counterexamples", code="mutate")
        return _mutate(chosen, seed, format_)
    from torch_compat.proving.oracles import Real  # noqa: PLC0415 - brings every operator
    from torch_compat.proving.proof import prove as prove_one  # noqa: PLC0415

    with ExitStack() as stack:
        asked: list[Real] = []
        if readers:
            from torch_compat.cli._readers import built  # noqa: PLC0415 - policies take longer to import than a proof runs
            from torch_compat.cli._root import find_policy  # noqa: PLC0415

            calendar = find_policy(None).calendar
            asked = [stack.enter_context(Real(built(calendar.resolve(reader)))) for reader in dict.fromkeys(readers)]
        proofs = []
        for one in chosen:
            old, new = _sides(one, asked)
            proofs.append(prove_one(one, old=old, new=new, seed=seed, count=count))
    written = _write(folder, proofs) if folder is not None else []
    if format_ == "json":
        print_json(
            {"proofs": [_document(one) for one in proofs], "mutants": [], "written": written, "exit_status": _status(proofs)}
        )
    else:
        for proof in proofs:
            _print(proof)
        for path in written:
            say(f"wrote {plain(path)}")
    return _status(proofs)


def _chosen(name: str | None, everything: bool) -> list[Stated]:
    from torch_compat.proving.stated import read  # noqa: PLC0415 - not for --help

    if (name is None) == (not everything):
        raise UsageError(
            "expected the id of an upgrader, a file, or --all", hint="torch-compat prove div_Tensor_0_3", code="upgrader"
        )
    if name is not None and name.endswith(".toml"):
        found = read(Path(name))
        if not found:
            raise UsageError("has no [[upgrader]]", where=plain(name), code="upgrader")
        return list(found.values())
    known = read()
    if name is None:
        return list(known.values())
    if name not in known:
        near = difflib.get_close_matches(name, known, 3, 0.4)
        raise UsageError(
            f"there is no upgrader {plain(name)!r}",
            hint=f"did you mean {', '.join(near)}?" if near else f"there are {', '.join(sorted(known))}",
            code="upgrader",
        )
    return [known[name]]


def _sides(one: Stated, asked: list[Real]) -> tuple[list[Real], list[Real]]:
    """The releases from before and after the change; of those from before, the newest counts."""
    if not one.old:
        return [], []
    last = Release(one.old)
    old = [reader for reader in asked if Release(reader.version) <= last]
    new = [reader for reader in asked if one.since and Release(reader.version) >= Release(one.since)]
    return (
        sorted(old, key=lambda reader: Release(reader.version), reverse=True),
        sorted(new, key=lambda reader: Release(reader.version), reverse=True),
    )


def _status(proofs: list[Proof]) -> int:
    ends = {STATUS[one.verdict] for one in proofs}
    return next(status for status in (1, 4, 0) if status in ends)


def _mutate(chosen: list[Stated], seed: str, format_: str) -> int:
    from torch_compat.proving.mutants import score  # noqa: PLC0415 - brings every operator

    scores = {one.id: score(one, seed=seed) for one in chosen if one.old}
    status = NOT_CHECKED if not scores else int(not all(one.enough for one in scores.values()))
    if format_ == "json":
        document = [
            {
                "id": name,
                "killed": one.killed,
                "equivalent": [{"change": mutant.what, "because": why} for mutant, why in one.equivalent],
                "survivors": [{"change": mutant.what, "body": mutant.body} for mutant in one.survivors],
            }
            for name, one in scores.items()
        ]
        print_json({"proofs": [], "mutants": document, "written": [], "exit_status": status})
        return status
    for name, one in scores.items():
        all_ = one.killed + len(one.survivors)
        say(f"{name}: {one.killed} of {all_} mutants killed{f', {len(one.equivalent)} equivalent' if one.equivalent else ''}")
        for mutant, why in one.equivalent:
            say(f"  equivalent: {plain(mutant.what)} ({plain(why)})")
        for mutant in one.survivors:
            say(f"  survives:   {plain(mutant.what)}")
    if not scores:
        say("no upgrader here replaces a call that an older release had: there is nothing to prove")
    return status


# --------------------------------------------------------------------------------------------------------------- printing


def _document(proof: Proof) -> dict[str, Any]:
    return {
        "id": proof.stated.id,
        "operator": proof.stated.name,
        "verdict": proof.verdict,
        "modelled": proof.modelled,
        "seed": str(proof.seed),
        "old": list(proof.old),
        "new": list(proof.new),
        "counts": dict(sorted(proof.verdicts.items())),
        "confirmed": proof.confirmed,
        "agreements": {name: dict(sorted(counts.items())) for name, counts in sorted(proof.agreements.items())},
        "disagreements": dict(sorted(proof.apart.items())),
        "counterexamples": [_example(one) for one in proof.counterexamples],
        "later_changes": list(proof.later),
        "notes": proof.notes,
    }


def _example(one: Counterexample) -> dict[str, Any]:
    from torch_compat.proving.examples import shown, told  # noqa: PLC0415 - as above

    return {
        "call": one.form.call,
        "arguments": shown(one.args),
        "old": told(one.old),
        "new": told(one.new),
        "difference": one.said,
        "confirmed": one.confirmed,
    }


def _print(proof: Proof) -> None:
    from torch_compat.proving.examples import shown, told  # noqa: PLC0415 - as above

    counts = ", ".join(f"{count} {word}" for word, count in sorted(proof.verdicts.items(), key=lambda item: -item[1]))
    say(f"{proof.stated.id}: {proof.verdict}{' (modelled)' if proof.modelled else ''}{f'  ({counts})' if counts else ''}")
    for note in proof.notes:
        say(f"  {plain(note)}")
    if proof.old:
        say(
            f"  old: {', '.join(proof.old)}; new: {', '.join(proof.new)}; {proof.confirmed} calls answered by releases on both sides"
        )
    for name, agreed in sorted(proof.agreements.items()):
        say(f"  {name} and the reference reader: {', '.join(f'{count} {word}' for word, count in sorted(agreed.items()))}")
    if proof.later:
        count = proof.verdicts["changed-later"]
        say(
            f"  {count} calls differ by later changes of the operator, which the upgrader does not answer: {', '.join(proof.later)}"
        )
    for one in proof.counterexamples[:SHOWN]:
        say(f"  {plain(one.form.call)}")
        for (name, _, _), value in zip(one.form.parameters, one.args, strict=True):
            say(f"      {plain(f'a_{name} = {shown([value])}')}")
        say(f"      before: {plain(told(one.old))}")
        say(f"      after:  {plain(told(one.new))}")


def _write(folder: Path, proofs: list[Proof]) -> list[str]:
    from torch_compat.places import inside  # noqa: PLC0415 - as above
    from torch_compat.proving.examples import archive_name, pytest_text  # noqa: PLC0415
    from torch_compat.writes import put  # noqa: PLC0415

    if not folder.is_dir():
        raise UsageError("there is no such directory", where=plain(str(folder)), hint="create it first", code="output")
    written = []
    for proof in proofs:
        for at, one in enumerate(proof.counterexamples, 1):
            name = archive_name(proof.stated.id, at)
            archive, test = inside(folder, f"{name}.pt"), inside(folder, f"test_{name}.py")
            put(archive, one.archive)
            put(test, pytest_text(proof.stated.id, name, one), encoding="utf-8")
            written += [str(archive), str(test)]
    return written
