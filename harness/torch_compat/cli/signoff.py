"""``torch-compat signoff``: sign off on a release based on recorded evidence, and verify sign-offs."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final

import click

from torch_compat.cli._format import say
from torch_compat.cli._output import counting
from torch_compat.cli._paths import NamedPath
from torch_compat.cli._root import root_option
from torch_compat.cli._together import refuse_ignored
from torch_compat.errors import UsageError
from torch_compat.escapes import escaped
from torch_compat.releases.release import named
from torch_compat.replay.signing import attach, sign, verify, withdraw
from torch_compat.report.release.signoff import FOLDER, STATEMENT
from torch_compat.words import american, count_of
from torch_compat.workspace import find_root

if TYPE_CHECKING:
    from pathlib import Path

    from torch_compat.workspace import Root

__all__ = ["signoff"]

LONGEST: Final = 400
"""Maximum length of a name or a reason, in characters."""


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
@click.option("--verify", is_flag=True, help="Do not sign off; list everything that has changed since the sign-off.")
@click.option("--signers", type=NamedPath(), help="With --verify: the allowed signers file for ssh-keygen.")
@click.option("--attach", type=NamedPath(), help="Do not sign off; add this detached signature of signoff.json.")
@click.option("--withdraw", is_flag=True, help="Mark the sign-off as withdrawn instead of signing off. Nothing is deleted.")
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
    """Sign off on RELEASE based on the recorded evidence; the sign-off is written to reports/signoffs/RELEASE.

    The sign-off is refused if a promise is broken, a required check could not be run, or a verdict rests on the reference reader alone.
    The message lists all of these. --accept ID --because TEXT accepts one of them, but never a missing check. The sign-off lists
    findings that are waived, expected, carried over from an earlier release, or not covered by a promise.

    To sign with a key: `ssh-keygen -Y sign -f KEY -n torch-compat signoff.json`, then --attach signoff.json.sig.

    Exit status: 0 signed, or nothing has changed; 1 refused, changed or withdrawn; 2 invalid usage, or an invalid input
    file; 3 internal error in torch-compat; 4 a signature could not be verified.
    """
    place = find_root(root)
    if sum((verify, withdraw, attach is not None)) > 1:
        raise UsageError("--verify, --withdraw and --attach cannot be combined")
    if signers is not None and not verify:
        raise UsageError("--signers requires --verify")
    signing = {"--by": by, "--date": date, "--accept": accepted, "--because": reasons}
    if verify:
        refuse_ignored("--verify", "does not sign", signing)
    if attach is not None:
        refuse_ignored("--attach", "does not sign", signing)
    if withdraw:
        refuse_ignored("--withdraw", "does not sign", {"--accept": accepted})
    if not verify:
        place.complete()  # otherwise a sign-off whose writer was killed could be taken for a complete one
    if verify or attach is not None:  # a signed release has a known name, whatever has become of the policy
        signed = str(named(release))
        return _verify(place, signed, signers) if attach is None else _attach(place, signed, attach)
    version = place.policy().calendar.resolve(release).version
    name = _text(by, "--by", "pass --by NAME with your name")
    day = _day(date)
    if withdraw:
        return _withdraw(place, version, name, day, reasons)
    if len(accepted) != len(reasons):
        raise UsageError(f"got {len(accepted)} --accept and {len(reasons)} --because; pass one --because for each --accept")
    return _sign(
        place, version, name, day, dict(zip(accepted, (_text(reason, "--because", "") for reason in reasons), strict=True))
    )


def _text(given: str | None, option: str, hint: str) -> str:
    text = (given or "").strip()
    if not text or len(text) > LONGEST or not text.isprintable():
        what = (
            "is missing"
            if not text
            else "is not a single line of printable text"
            if len(text) <= LONGEST
            else f"is longer than {LONGEST}"
        )
        raise UsageError(f"{option} {what}", hint=hint or None, code="signoff")
    return text


def _day(given: str | None) -> str:
    if given is None:
        return dt.datetime.now(dt.UTC).date().isoformat()
    try:
        return dt.date.fromisoformat(given).isoformat()
    except ValueError:
        raise UsageError(f"{given!r} is not a valid date", hint="write 2026-11-23", code="bad-day") from None


def _sign(place: Root, version: str, by: str, day: str, accepted: dict[str, str]) -> int:
    signed = sign(place, version, by, day, accepted, counting)
    if signed.left:
        say(f"{version} is not signed: {count_of(len(signed.left), 'reason')}", err=True)
        for item in signed.left:
            how = f" (--accept '{item.id}' --because TEXT)" if item.acceptable else ""
            say(f"  {american(item.kind)}: {escaped(item.text)}{escaped(how)}", err=True)
        return 1
    document = signed.document
    counts = ", ".join(f"{count} {verdict}" for verdict, count in document["counts"].items() if count)
    say(f"{version} is signed by {by} on {day}: {FOLDER}/{signed.folder}")
    say(f"{counts}; evidence {signed.evidence[:12]}; {count_of(len(document['files']), 'file')}")
    if document["amends"]:
        say(f"amends the sign-off of {document['amends']}")
    for blocker, why in signed.taken:
        say(f"accepted {blocker.id}: {why}")
    return 0


def _verify(place: Root, version: str, signers: Path | None) -> int:
    verified = verify(place, version, signers)
    document = verified.document
    if document is None:
        say(f"{FOLDER}/{verified.folder}: the sign-off has no {STATEMENT}")
        return verified.exit_status
    say(f"{version}, signed by {escaped(document['by'])} on {escaped(document['date'])}: {FOLDER}/{verified.folder}")
    for line in verified.changed:
        say(f"  {line}")
    if verified.withdrawn:
        say(f"  withdrawn: {verified.withdrawn}")
    say(f"{count_of(len(verified.changed), 'change')} since; {verified.signature[1]}")
    return verified.exit_status


def _attach(place: Root, version: str, signature: Path) -> int:
    folder = attach(place, version, signature)
    say(f"attached to {FOLDER}/{folder}; to verify it: torch-compat signoff {version} --verify --signers FILE")
    return 0


def _withdraw(place: Root, version: str, by: str, day: str, reasons: tuple[str, ...]) -> int:
    if len(reasons) != 1:
        raise UsageError(f"got {len(reasons)} --because; pass exactly one, with the reason for the withdrawal")
    folder = withdraw(place, version, by, day, _text(reasons[0], "--because", ""))
    say(f"{FOLDER}/{folder} is withdrawn; nothing was deleted")
    return 0
