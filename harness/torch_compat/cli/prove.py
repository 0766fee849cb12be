"""``torch-compat prove``: check that an upgrader preserves the results of an operator from before its change."""

from __future__ import annotations

import datetime as dt
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from torch_compat.cli._format import announce, format_option, print_json, say, say_wrapped
from torch_compat.cli._paths import NamedPath
from torch_compat.cli._root import root_option
from torch_compat.errors import NothingSelected, UsageError
from torch_compat.places import inside
from torch_compat.releases.release import Release
from torch_compat.runtime.json_values import plain
from torch_compat.words import american, count_of, suggest
from torch_compat.workspace import find_policy, find_root

if TYPE_CHECKING:
    from torch_compat.corpus.proofs import ProofCall, RecordedProof
    from torch_compat.proving.examples import Counterexample
    from torch_compat.proving.oracles import Real
    from torch_compat.proving.proof import Proof
    from torch_compat.proving.stated import StatedUpgrader
    from torch_compat.readers.builds import Build
    from torch_compat.readers.environments import Environment
    from torch_compat.workspace import Root

__all__ = ["prove"]

STATUS = {"preserved": 0, "relaxed": 0, "unreachable": 0, "changed": 1, "not-checked": 4}
SHOWN = 3
NOT_CHECKED = 4
UPGRADERS = "policies/torch/upgraders.toml"
PROOFS = "reports/proofs"


@click.command()
@click.argument("name", metavar="[ID|FILE.toml]", required=False)
@click.option("--all", "everything", is_flag=True, help="Prove all upgraders in the policy.")
@click.option(
    "--reader",
    "readers",
    multiple=True,
    metavar="READER",
    help="Also run torch-X.Y.Z or a build (python:PATH, wheel:FILE, nightly:DATE): a release before the change (for the "
    "old result), or a release after it or a build (for the new result). Can be repeated.",
)
@click.option(
    "--seed",
    default="0",
    show_default=True,
    metavar="TEXT",
    help="Seed for generating the calls; the same seed gives the same calls.",
)
@click.option(
    "--count",
    type=click.IntRange(1, 100_000),
    default=288,
    show_default=True,
    metavar="N",
    help="Number of calls to generate for each way of calling the operator.",
)
@click.option(
    "--counterexamples",
    "folder",
    type=NamedPath(file_okay=False),
    metavar="DIRECTORY",
    help="Write each counterexample as a pytest test and an archive into this directory.",
)
@click.option(
    "--record",
    is_flag=True,
    help="Record the results of releases in reports/proofs, which `judge` reads, and the results of a build in the output directory of that build.",
)
@click.option(
    "--mutate",
    is_flag=True,
    help="Instead of proving the upgrader, mutate its body in many ways and report which mutants a proof would detect.",
)
@root_option
@format_option
def prove(
    name: str | None,
    everything: bool,
    readers: tuple[str, ...],
    seed: str,
    count: int,
    folder: Path | None,
    record: bool,
    mutate: bool,
    root: Path | None,
    format_: str,
) -> int:
    """Prove that an upgrader preserves results, or find the smallest call whose result it changes.

    The same generated calls run with the old operator, and with the new operator through the upgrader. By default, the reference reader
    runs both, without torch; --reader uses real releases, which take precedence. Without real releases on both sides, the verdict is
    marked as modeled.

    ID is an upgrader in policies/torch/upgraders.toml (such as div_Tensor_0_3), or a file with one or more [[upgrader]] tables.
    Calls that a recorded proof lists as counterexamples are tried first.

    Verdicts: preserved; relaxed (the old program raised, the new one returns a value); changed (with a counterexample); unreachable (no
    release before the change has the operator, so no archive can contain the call); not-checked.

    With --mutate, one change at a time is made to the upgrader's body (branches swapped, a condition dropped, a constant changed); each should
    change the result of a generated call. Changes that cannot affect any result are listed, with the reason, in the upgrader's table
    (`equivalent`).

    Exit status: 0 all preserved, relaxed or unreachable (--mutate: at least 95% of the changes are detected, and at most
    one is missed); 1 a change was found (--mutate: too few detected); 2 invalid usage, or an invalid input file; 3 internal
    error in torch-compat; 4 something could not be checked.
    """
    place = _place(root)
    chosen = _chosen(name, everything, place)
    if mutate:
        if readers or folder is not None or record:
            raise UsageError(
                "--mutate uses only the reference reader: remove --reader, --counterexamples and --record", code="mutate"
            )
        return _mutate(chosen, seed, format_)
    from torch_compat.proving.oracles import Real  # noqa: PLC0415 - imports every operator
    from torch_compat.proving.proof import prove as prove_one  # noqa: PLC0415
    from torch_compat.proving.recording import record as recorded  # noqa: PLC0415

    kept = _kept(place)
    files: list[str] = []
    with ExitStack() as stack:
        releases, build = _readers(readers, place)
        if record:
            _recordable(chosen, build, place)
        asked = [(stack.enter_context(Real(environment)), is_build) for environment, is_build in releases]
        proofs = []
        for item in chosen:
            old, new = _sides(item, asked)
            known = kept.get(item.id, ())
            proofs.append(prove_one(item, old=old, new=new, seed=seed, count=count, kept=known))
            if record:
                files += _keep(recorded(proofs[-1], count, old=old, new=new, kept=known), build, place)
    written = [*(_write(folder, proofs) if folder is not None else []), *files]
    if format_ == "json":
        print_json(
            {"proofs": [_document(entry) for entry in proofs], "mutants": [], "written": written, "exit_status": _status(proofs)}
        )
    else:
        for proof in proofs:
            _print(proof)
        for path in written:
            say(f"wrote {plain(path)}")
    return _status(proofs)


def _place(root: Path | None) -> Root | None:
    """The tree whose upgraders are proven; None outside a tree, to use the packaged upgraders."""
    try:
        place = find_root(root)
    except NothingSelected:
        return None
    return place if root is not None or place.inside(UPGRADERS).is_file() else None


def _chosen(name: str | None, everything: bool, place: Root | None) -> list[StatedUpgrader]:
    from torch_compat.proving.stated import read  # noqa: PLC0415 - not needed for --help

    if (name is None) == (not everything):
        raise UsageError(
            "expected the id of an upgrader, a file, or --all", hint="torch-compat prove div_Tensor_0_3", code="upgrader"
        )
    if name is not None and name.endswith(".toml"):
        result = read(Path(name))
        if not result:
            raise UsageError("has no [[upgrader]]", where=plain(name), code="upgrader")
        return list(result.values())
    known = read(None if place is None else place.inside(UPGRADERS))
    if name is None:
        return list(known.values())
    if name not in known:
        raise UsageError(
            f"there is no upgrader {plain(name)!r}",
            hint=suggest(name, sorted(known), f"known upgraders: {', '.join(sorted(known))}", cutoff=0.4),
            code="upgrader",
        )
    return [known[name]]


def _kept(place: Root | None) -> dict[str, tuple[ProofCall, ...]]:
    """The calls that the recorded proofs of a tree try first, by upgrader."""
    from torch_compat.corpus.proofs import read_proofs  # noqa: PLC0415 - not needed for --help

    return {} if place is None else {name: item.kept for name, item in read_proofs(place.inside(PROOFS)).found.items()}


def _readers(names: tuple[str, ...], place: Root | None) -> tuple[list[tuple[Environment, bool]], Build | None]:
    """The environments of readers, each with whether it is a build; and the build, if any (at most one)."""
    if not names:
        return [], None
    from torch_compat.readers.build_release import BuildRelease, built, resolved  # noqa: PLC0415 - policies take longer to import than a proof

    _, releases = resolved(find_policy(None if place is None else place.path), names, announce)
    builds = [release.build for release in releases if isinstance(release, BuildRelease)]
    if len(builds) > 1:
        raise UsageError("names two builds, but a proof covers only one", hint="use only one build per proof", code="two-builds")
    return [(built(release), isinstance(release, BuildRelease)) for release in releases], builds[0] if builds else None


def _recordable(chosen: list[StatedUpgrader], build: Build | None, place: Root | None) -> None:
    """Refuse to record proofs for upgraders that are not in the policy of the tree."""
    from torch_compat.proving.stated import read  # noqa: PLC0415 - not needed for --help

    if build is not None:
        return
    if place is None:
        raise NothingSelected(
            "there is no checkout in which to record the proof",
            hint="run the command in a checkout, or use --root",
            code="no-root",
        )
    known = read(place.inside(UPGRADERS))
    for upgrader in chosen:
        if known.get(upgrader.id) != upgrader:
            raise UsageError(
                f"{upgrader.id} {'does not match its' if upgrader.id in known else 'has no'} table in {UPGRADERS}, so judge would ignore its proof",
                hint=f"add its table to {UPGRADERS}, or prove it with a build, whose results are stored separately",
                code="upgrader",
            )


def _keep(proof: RecordedProof, build: Build | None, place: Root | None) -> list[str]:
    """Write a proof to its place: answers of a build never enter the corpus."""
    from torch_compat.corpus.proofs import write_proof  # noqa: PLC0415 - not needed for --help
    from torch_compat.writes import changing  # noqa: PLC0415

    if build is not None:
        from torch_compat.replay.trees import builds_folder, open_tree  # noqa: PLC0415

        tree = open_tree(builds_folder(), build, dt.datetime.now(dt.UTC).date())
        with changing(tree.path):
            return [str(write_proof(inside(tree.path, PROOFS), proof))]
    assert place is not None  # noqa: S101 - checked before
    with changing(place.path):
        return [str(write_proof(place.inside(PROOFS), proof))]


def _sides(upgrader: StatedUpgrader, asked: list[tuple[Real, bool]]) -> tuple[list[Real], list[Real]]:
    """The releases before and after the change, newest first; the newest one before it counts. A build is after the change."""
    if not upgrader.old:
        return [], []
    last = Release(upgrader.old)
    old = [reader for reader, is_build in asked if not is_build and Release(reader.version) <= last]
    new = [
        reader
        for reader, is_build in asked
        if is_build or (upgrader.since and Release(reader.version) >= Release(upgrader.since))
    ]
    return (
        sorted(old, key=lambda reader: Release(reader.version), reverse=True),
        sorted(new, key=lambda reader: Release(reader.version), reverse=True),
    )


def _status(proofs: list[Proof]) -> int:
    ends = {STATUS[proof.verdict] for proof in proofs}
    return next(status for status in (1, 4, 0) if status in ends)


def _mutate(chosen: list[StatedUpgrader], seed: str, format_: str) -> int:
    from torch_compat.proving.mutants import score  # noqa: PLC0415 - imports every operator

    scores = {upgrader.id: score(upgrader, seed=seed) for upgrader in chosen if upgrader.old}
    status = NOT_CHECKED if not scores else int(not all(entry.enough for entry in scores.values()))
    if format_ == "json":
        document = [
            {
                "id": name,
                "killed": entry.killed,
                "equivalent": [{"change": mutant.what, "because": why} for mutant, why in entry.equivalent],
                "survivors": [{"change": mutant.what, "body": mutant.body} for mutant in entry.survivors],
            }
            for name, entry in scores.items()
        ]
        print_json({"proofs": [], "mutants": document, "written": [], "exit_status": status})
        return status
    for name, item in scores.items():
        all_ = item.killed + len(item.survivors)
        say(f"{name}: {item.killed} of {all_} mutants killed{f', {len(item.equivalent)} equivalent' if item.equivalent else ''}")
        for mutant, why in item.equivalent:
            say(f"  equivalent: {plain(mutant.what)} ({plain(why)})")
        for mutant in item.survivors:
            say(f"  survives:   {plain(mutant.what)}")
    if not scores:
        say("none of these upgraders replaces a call that an older release supported, so there is nothing to prove")
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
        "counterexamples": [_example(counterexample) for counterexample in proof.counterexamples],
        "later_changes": list(proof.later),
        "branches": dict(proof.branches),
        "notes": proof.notes,
    }


def _example(counterexample: Counterexample) -> dict[str, Any]:
    from torch_compat.proving.examples import shown, told  # noqa: PLC0415 - as above

    return {
        "call": counterexample.form.call,
        "arguments": shown(counterexample.args),
        "old": told(counterexample.old),
        "new": told(counterexample.new),
        "difference": counterexample.said,
        "confirmed": counterexample.confirmed,
    }


def _print(proof: Proof) -> None:
    from torch_compat.proving.examples import shown, told  # noqa: PLC0415 - as above

    counts = ", ".join(f"{count} {american(word)}" for word, count in sorted(proof.verdicts.items(), key=lambda item: -item[1]))
    say_wrapped(f"{proof.stated.id}: {proof.verdict}{' (modeled)' if proof.modelled else ''}{f'  ({counts})' if counts else ''}")
    for note in proof.notes:
        say_wrapped(f"  {plain(note)}")
    if proof.old:
        say_wrapped(
            f"  old: {', '.join(proof.old)}; new: {', '.join(proof.new)}; {count_of(proof.confirmed, 'call')} answered by releases on both sides"
        )
    for name, agreed in sorted(proof.agreements.items()):
        say_wrapped(
            f"  {name} and the reference reader: {', '.join(f'{count} {word}' for word, count in sorted(agreed.items()))}"
        )
    if proof.later:
        count = proof.verdicts["changed-later"]
        say_wrapped(
            f"  {count_of(count, 'call differs', 'calls differ')} because of later changes to the operator, which the upgrader does not cover: {', '.join(proof.later)}"
        )
    for name, count in proof.branches.items():
        if not count:
            say_wrapped(f"  no generated call reaches the branch at {plain(name)}")
    for counterexample in proof.counterexamples[:SHOWN]:
        say_wrapped(f"  {plain(counterexample.form.call)}")
        for (name, _, _), value in zip(counterexample.form.parameters, counterexample.args, strict=True):
            say_wrapped(f"      {plain(f'a_{name} = {shown([value])}')}")
        say_wrapped(f"      before: {plain(told(counterexample.old))}")
        say_wrapped(f"      after:  {plain(told(counterexample.new))}")


def _write(folder: Path, proofs: list[Proof]) -> list[str]:
    from torch_compat.proving.examples import archive_name, pytest_text  # noqa: PLC0415 - as above
    from torch_compat.writes import put  # noqa: PLC0415

    if not folder.is_dir():
        raise UsageError("directory not found", where=plain(str(folder)), hint="create it first", code="output")
    written = []
    for proof in proofs:
        for at, counterexample in enumerate(proof.counterexamples, 1):
            name = archive_name(proof.stated.id, at)
            archive, test = inside(folder, f"{name}.pt"), inside(folder, f"test_{name}.py")
            put(archive, counterexample.archive)
            put(test, pytest_text(proof.stated.id, name, counterexample), encoding="utf-8")
            written += [str(archive), str(test)]
    return written
