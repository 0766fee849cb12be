"""``torch-compat signoff``: sign for a release on recorded evidence, and verify what was signed."""

from __future__ import annotations

import datetime as dt
import json
import shutil
import subprocess
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from torch_compat.cli._format import say
from torch_compat.cli._output import counting
from torch_compat.cli._root import root_option
from torch_compat.corpus.corpus import load_corpus
from torch_compat.errors import EnvironmentUnavailable, NothingSelected, UsageError
from torch_compat.escapes import escaped
from torch_compat.judging.gathering import gather, uncollected
from torch_compat.judging.judge import examine
from torch_compat.places import is_plain, read_whole
from torch_compat.releases.release import named
from torch_compat.report.documents import hand_of
from torch_compat.report.release.compatibility_notes import notes_md
from torch_compat.report.release.report import release_report
from torch_compat.report.release.signoff import (
    FOLDER,
    NOTES_FILE,
    SIGNATURE,
    STATEMENT,
    WITHDRAWN,
    Blocker,
    amended,
    blockers,
    changes_since,
    evidence_files,
    read_statement,
    signoffs_of,
    statement,
    statement_text,
)
from torch_compat.workspace import find_root
from torch_compat.writes import changing, put

if TYPE_CHECKING:
    from torch_compat.workspace import Root

__all__ = ["signoff"]

NAMESPACE: Final = "torch-compat"
"""The name space of signatures: ssh-keygen -Y sign -n torch-compat."""
LONGEST: Final = 400
"""Characters of a name or a reason."""


@click.command()
@click.argument("release", metavar="RELEASE")
@click.option("--by", metavar="NAME", help="Name of the person who signs or withdraws.")
@click.option("--date", metavar="DAY", help="Date of the sign-off, such as 2026-11-23. Default: today.")
@click.option(
    "--accept", "accepted", multiple=True, metavar="ID", help="Accept this failure, for this sign-off only. Can be repeated."
)
@click.option(
    "--because",
    "reasons",
    multiple=True,
    metavar="TEXT",
    help="Reason; one for each --accept, in the same order, or for --withdraw.",
)
@click.option("--verify", is_flag=True, help="Instead, list everything that has changed since the sign-off.")
@click.option("--signers", type=click.Path(path_type=Path), help="With --verify: the allowed signers file for ssh-keygen.")
@click.option("--attach", type=click.Path(path_type=Path), help="Instead, add this detached signature of signoff.json.")
@click.option("--withdraw", is_flag=True, help="Instead, mark the sign-off as withdrawn. Nothing is deleted.")
@root_option
def signoff(
    release: str,
    by: str | None,
    date: str | None,
    accepted: tuple[str, ...],
    reasons: tuple[str, ...],
    verify: bool,
    signers: Path | None,
    attach: Path | None,
    withdraw: bool,
    root: Path | None,
) -> int:
    """Sign off RELEASE on the recorded evidence, in reports/signoffs/RELEASE.

    The sign-off is refused if a promise is broken, a required check could not be done, or a verdict rests on the reference reader alone.
    The message lists all of these. --accept ID --because TEXT accepts one of them, but never a missing check. Findings that are waived,
    expected, continue or break no promise are listed.

    To sign with a key: `ssh-keygen -Y sign -f KEY -n torch-compat signoff.json`, then --attach signoff.json.sig.

    Exit status: 0 signed, or nothing has changed; 1 refused, changed or withdrawn; 4 a signature could not be verified.
    """
    place = find_root(root)
    if sum((verify, withdraw, attach is not None)) > 1:
        raise UsageError("--verify, --withdraw and --attach cannot be combined")
    if signers is not None and not verify:
        raise UsageError("--signers requires --verify")
    if not verify:
        place.complete()  # else a signature that was killed while it was written would be taken for one
    if verify or attach is not None:  # what is signed has a name, whatever has become of the policy
        signed = str(named(release))
        return _verify(place, signed, signers) if attach is None else _attach(place, signed, attach)
    version = place.policy().calendar.resolve(release).version
    name = _text(by, "--by", "give your name: --by NAME")
    day = _day(date)
    if withdraw:
        return _withdraw(place, version, name, day, reasons)
    if len(accepted) != len(reasons):
        raise UsageError(f"{len(accepted)} --accept and {len(reasons)} --because, expected one reason for each")
    return _sign(place, version, name, day, dict(zip(accepted, (_text(one, "--because", "") for one in reasons), strict=True)))


def _text(given: str | None, option: str, hint: str) -> str:
    text = (given or "").strip()
    if not text or len(text) > LONGEST or not text.isprintable():
        what = "is missing" if not text else "is not one printable line" if len(text) <= LONGEST else f"is longer than {LONGEST}"
        raise UsageError(f"{option} {what}", hint=hint or None, code="signoff")
    return text


def _day(given: str | None) -> str:
    if given is None:
        return dt.datetime.now(dt.UTC).date().isoformat()
    try:
        return dt.date.fromisoformat(given).isoformat()
    except ValueError:
        raise UsageError(f"{given!r} is not a valid date", hint="write 2026-11-23", code="bad-day") from None


# ---------------------------------------------------------------------------------------------------------------- signing


def _sign(place: Root, version: str, by: str, day: str, accepted: dict[str, str]) -> int:
    older = signoffs_of(place.path, version)
    if older and not _file(place, older[-1], WITHDRAWN).is_file():
        raise UsageError(
            f"{version} is already signed, in {FOLDER}/{older[-1]}", hint="use --verify, or --withdraw it first", code="signed"
        )
    with changing(place.path):
        with uncollected():
            evidence = gather(place, place.policy(), as_of=None)
            with counting("judging") as step:
                report, judgements = examine(evidence, step)
            found = release_report(evidence, report, judgements, version)
        held = blockers(report, found)
        taken = _accepted(held, accepted)
        left = [one for one in held if one not in {blocker for blocker, _ in taken}]
        if left:
            say(f"{version} is not signed: {len(left)} reasons", err=True)
            for one in left:
                how = f" (--accept '{one.id}' --because TEXT)" if one.acceptable else ""
                say(f"  {one.kind}: {escaped(one.text)}{escaped(how)}", err=True)
            return 1
        hand = hand_of(place, found)
        with counting("writing the notes") as step:
            notes = notes_md(found, hand, step)
        document = statement(
            report, found, evidence_files(place.path), notes, by=by, date=day, accepted=taken, amends=amended(place.path, version)
        )
        folder = version if not older else f"{version}-{len(older) + 1}"
        put(_file(place, folder, STATEMENT), statement_text(document), encoding="ascii")
        put(_file(place, folder, NOTES_FILE), notes, encoding="utf-8")
    counts = ", ".join(f"{count} {verdict}" for verdict, count in document["counts"].items() if count)
    say(f"{version} is signed by {by} on {day}: {FOLDER}/{folder}")
    say(f"{counts}; evidence {report.evidence[:12]}; {len(document['files'])} files")
    if document["amends"]:
        say(f"amends the sign-off of {document['amends']}")
    for blocker, why in taken:
        say(f"accepted {blocker.id}: {why}")
    return 0


def _accepted(held: list[Blocker], accepted: dict[str, str]) -> list[tuple[Blocker, str]]:
    known = {one.id: one for one in held if one.acceptable}
    taken = []
    for name, why in accepted.items():
        if name not in known:
            nearest = get_close_matches(name, known, n=1, cutoff=0.3)
            hint = f"nearest: {nearest[0]}" if nearest else "nothing has to be accepted" if not known else None
            raise UsageError(f"{escaped(name)} cannot be accepted", hint=hint, code="unknown-id")
        taken.append((known[name], why))
    return taken


# ------------------------------------------------------------------------------------------------------ what is signed already


def _file(place: Root, folder: str, name: str) -> Path:
    return place.inside(f"{FOLDER}/{folder}/{name}")


def _newest(place: Root, version: str) -> str:
    found = signoffs_of(place.path, version)
    if not found:
        raise NothingSelected(f"{version} is not signed", hint=f"torch-compat signoff {version} --by NAME", code="not-signed")
    return found[-1]


def _verify(place: Root, version: str, signers: Path | None) -> int:
    name = _newest(place, version)
    folder = place.inside(f"{FOLDER}/{name}")
    names = sorted(one.name for one in folder.iterdir())
    files = {one: read_whole(_file(place, name, one)) for one in names if is_plain(one)}
    if STATEMENT not in files:
        say(f"{FOLDER}/{name}: missing: {STATEMENT} of the sign-off")
        return 1
    document = read_statement(files[STATEMENT], f"{FOLDER}/{name}/{STATEMENT}")
    said = changes_since(document, evidence_files(place.path), files)
    said += [f"added: {escaped(one)} to the sign-off" for one in names if not is_plain(one)]
    said += [f"{one.kind}: {escaped(f'{one.subject}: {one.detail}')}" for one in load_corpus(place.fixtures).damage]
    say(f"{version}, signed by {escaped(document['by'])} on {escaped(document['date'])}: {FOLDER}/{name}")
    for line in said:
        say(f"  {line}")
    status = 1 if said else 0
    if WITHDRAWN in files:
        say(f"  withdrawn: {escaped(files[WITHDRAWN].decode('utf-8', 'replace').strip())}")
        status = 1
    signed = _signature(_file(place, name, SIGNATURE), files, signers)
    say(f"{len(said)} changes since; {signed[1]}")
    return status or signed[0]


def _signature(path: Path, files: dict[str, bytes], signers: Path | None) -> tuple[int, str]:
    """An exit status, and what is to be said of the signature."""
    if SIGNATURE not in files:
        return (1, "no signature is attached, and signers were given") if signers is not None else (0, "no signature is attached")
    if signers is None:
        return 4, "a signature is attached and was not verified: give --signers FILE"
    tool = shutil.which("ssh-keygen")
    if tool is None:
        raise EnvironmentUnavailable("ssh-keygen is not installed, so the signature cannot be verified", code="no-ssh-keygen")
    if not signers.is_file():
        raise UsageError("there is no such file", where=str(signers))
    found = subprocess.run(
        [tool, "-Y", "find-principals", "-f", signers, "-s", path], capture_output=True, text=True, errors="replace", check=False
    )
    who = found.stdout.splitlines()[0].strip() if found.returncode == 0 and found.stdout.strip() else ""
    if not who:
        return 1, "the signature is of nobody in the file of signers"
    done = subprocess.run(
        [tool, "-Y", "verify", "-f", signers, "-I", who, "-n", NAMESPACE, "-s", path],
        input=files[STATEMENT],
        capture_output=True,
        check=False,
    )
    if done.returncode:
        return 1, f"the signature of {escaped(who)} does not fit {STATEMENT}"
    return 0, f"the signature is of {escaped(who)}"


def _attach(place: Root, version: str, signature: Path) -> int:
    name = _newest(place, version)
    if not signature.is_file():
        raise UsageError("there is no such file", where=str(signature))
    data = read_whole(signature, 1 << 16)
    if not data.startswith(b"-----BEGIN SSH SIGNATURE-----"):
        raise UsageError(
            "is not a signature made by ssh-keygen",
            where=str(signature),
            hint=f"ssh-keygen -Y sign -f KEY -n {NAMESPACE} {STATEMENT}",
        )
    with changing(place.path):
        put(_file(place, name, SIGNATURE), data)
    say(f"attached to {FOLDER}/{name}; check it: torch-compat signoff {version} --verify --signers FILE")
    return 0


def _withdraw(place: Root, version: str, by: str, day: str, reasons: tuple[str, ...]) -> int:
    if len(reasons) != 1:
        raise UsageError(f"{len(reasons)} --because, expected one, with the reason for the withdrawal")
    name = _newest(place, version)
    if _file(place, name, WITHDRAWN).is_file():
        raise UsageError(f"{FOLDER}/{name} is already withdrawn", code="withdrawn")
    mark = {"by": by, "date": day, "because": _text(reasons[0], "--because", "")}
    with changing(place.path):
        put(_file(place, name, WITHDRAWN), json.dumps(mark, sort_keys=True) + "\n")
    say(f"{FOLDER}/{name} is withdrawn; nothing was deleted")
    return 0
