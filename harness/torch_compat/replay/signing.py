"""Sign off a release on recorded evidence, verify, attach a signature and withdraw: ``torch-compat signoff`` without its output."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from torch_compat.corpus.corpus import load_corpus
from torch_compat.errors import EnvironmentUnavailable, NothingSelected, UsageError
from torch_compat.escapes import escaped
from torch_compat.judging.gathering import gather, uncollected
from torch_compat.judging.judge import examine
from torch_compat.places import is_plain, read_whole
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
from torch_compat.words import suggest
from torch_compat.writes import changing, put

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from torch_compat.workspace import Root

__all__ = ["NAMESPACE", "Signed", "Verified", "attach", "sign", "verify", "withdraw"]

NAMESPACE: Final = "torch-compat"
"""The namespace of signatures: ssh-keygen -Y sign -n torch-compat."""


class Signed(NamedTuple):
    """The result of signing.

    Attributes:
        folder: the folder of the sign-off, below ``reports/signoffs``; "" if it is refused.
        document: what was signed.
        taken: the accepted blockers, and the reasons.
        left: the blockers that were not accepted.
        evidence: the digest of what was judged.
    """

    folder: str
    document: Mapping[str, Any]
    taken: tuple[tuple[Blocker, str], ...]
    left: tuple[Blocker, ...]
    evidence: str


class Verified(NamedTuple):
    """The state of a sign-off.

    Attributes:
        folder: its folder.
        document: what was signed; None if it is lost.
        changed: descriptions of everything that has changed since.
        withdrawn: who withdrew it, when and why, as written; "" if it is not withdrawn.
        signature: an exit status, and a message about the signature.
    """

    folder: str
    document: Mapping[str, Any] | None
    changed: tuple[str, ...] = ()
    withdrawn: str = ""
    signature: tuple[int, str] = (0, "")

    @property
    def exit_status(self) -> int:
        """1 if anything has changed or it is withdrawn, otherwise that of the signature."""
        return 1 if self.document is None or self.changed or self.withdrawn else self.signature[0]


def sign(
    place: Root,
    version: str,
    by: str,
    day: str,
    accepted: Mapping[str, str],
    counting: Callable[[str], AbstractContextManager[Callable[[int, int], None]]],
) -> Signed:
    """Sign off a release, unless there is a blocker that is not accepted.

    Parameters:
        accepted: reasons, keyed by the ids of the accepted blockers.
        counting: begins a part of the work, and yields the function to call with its progress.

    Raises:
        UsageError: it is already signed, or something cannot be accepted.
        WriteError: the sign-off cannot be written.
    """
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
            result = release_report(evidence, report, judgements, version)
        held = blockers(report, result)
        taken = _accepted(held, accepted)
        left = [item for item in held if item not in {blocker for blocker, _ in taken}]
        if left:
            return Signed("", {}, tuple(taken), tuple(left), report.evidence)
        hand = hand_of(place, result)
        with counting("writing the notes") as step:
            notes = notes_md(result, hand, step)
        document = statement(
            report,
            result,
            evidence_files(place.path),
            notes,
            by=by,
            date=day,
            accepted=taken,
            amends=amended(place.path, version),
        )
        folder = version if not older else f"{version}-{len(older) + 1}"
        put(_file(place, folder, STATEMENT), statement_text(document), encoding="ascii")
        put(_file(place, folder, NOTES_FILE), notes, encoding="utf-8")
    return Signed(folder, document, tuple(taken), (), report.evidence)


def _accepted(held: list[Blocker], accepted: Mapping[str, str]) -> list[tuple[Blocker, str]]:
    known = {blocker.id: blocker for blocker in held if blocker.acceptable}
    taken = []
    for name, why in accepted.items():
        if name not in known:
            hint = suggest(name, known, "" if known else "there is nothing to accept", cutoff=0.3)
            raise UsageError(f"{escaped(name)} cannot be accepted", hint=hint, code="unknown-id")
        taken.append((known[name], why))
    return taken


def _file(place: Root, folder: str, name: str) -> Path:
    return place.inside(f"{FOLDER}/{folder}/{name}")


def _newest(place: Root, version: str) -> str:
    result = signoffs_of(place.path, version)
    if not result:
        raise NothingSelected(f"{version} is not signed", hint=f"torch-compat signoff {version} --by NAME", code="not-signed")
    return result[-1]


def verify(place: Root, version: str, signers: Path | None) -> Verified:
    """Compare the newest sign-off of a release with the current tree.

    Parameters:
        signers: the allowed signers file for ssh-keygen.

    Raises:
        NothingSelected: it is not signed.
        EnvironmentUnavailable: ssh-keygen is needed but not installed.
    """
    name = _newest(place, version)
    folder = place.inside(f"{FOLDER}/{name}")
    names = sorted(path.name for path in folder.iterdir())
    files = {item: read_whole(_file(place, name, item)) for item in names if is_plain(item)}
    if STATEMENT not in files:
        return Verified(name, None)
    document = read_statement(files[STATEMENT], f"{FOLDER}/{name}/{STATEMENT}")
    changed = changes_since(document, evidence_files(place.path), files)
    changed += [f"added to the sign-off: {escaped(item)}" for item in names if not is_plain(item)]
    changed += [
        f"{damage.kind}: {escaped(f'{damage.subject}: {damage.detail}')}" for damage in load_corpus(place.fixtures).damage
    ]
    withdrawn = escaped(files[WITHDRAWN].decode("utf-8", "replace").strip()) or "no reason given" if WITHDRAWN in files else ""
    return Verified(name, document, tuple(changed), withdrawn, _signature(_file(place, name, SIGNATURE), files, signers))


def _signature(path: Path, files: dict[str, bytes], signers: Path | None) -> tuple[int, str]:
    """Return an exit status, and a message about the signature."""
    if SIGNATURE not in files:
        return (1, "no signature is attached, but signers were given") if signers is not None else (0, "no signature is attached")
    if signers is None:
        return 4, "a signature is attached, but was not verified: pass --signers FILE to verify it"
    tool = shutil.which("ssh-keygen")
    if tool is None:
        raise EnvironmentUnavailable("ssh-keygen is not installed, so the signature cannot be verified", code="no-ssh-keygen")
    if not signers.is_file():
        raise UsageError("file not found", where=str(signers), hint="expected a file of allowed signers, as ssh-keygen reads it")
    result = subprocess.run(
        [tool, "-Y", "find-principals", "-f", signers, "-s", path], capture_output=True, text=True, errors="replace", check=False
    )
    who = result.stdout.splitlines()[0].strip() if result.returncode == 0 and result.stdout.strip() else ""
    if not who:
        return 1, "the signature is not from anyone in the signers file"
    done = subprocess.run(
        [tool, "-Y", "verify", "-f", signers, "-I", who, "-n", NAMESPACE, "-s", path],
        input=files[STATEMENT],
        capture_output=True,
        check=False,
    )
    if done.returncode:
        return 1, f"the signature of {escaped(who)} does not match {STATEMENT}"
    return 0, f"the signature is by {escaped(who)}"


def attach(place: Root, version: str, signature: Path) -> str:
    """Add a detached signature to the newest sign-off of a release; return the folder of the sign-off.

    Raises:
        NothingSelected: it is not signed.
        UsageError: the file is not a signature.
        WriteError: it cannot be written.
    """
    name = _newest(place, version)
    if not signature.is_file():
        raise UsageError("file not found", where=str(signature), hint="expected a signature made by ssh-keygen -Y sign")
    data = read_whole(signature, 1 << 16)
    if not data.startswith(b"-----BEGIN SSH SIGNATURE-----"):
        raise UsageError(
            "is not a signature made by ssh-keygen",
            where=str(signature),
            hint=f"ssh-keygen -Y sign -f KEY -n {NAMESPACE} {STATEMENT}",
        )
    with changing(place.path):
        put(_file(place, name, SIGNATURE), data)
    return name


def withdraw(place: Root, version: str, by: str, day: str, because: str) -> str:
    """Mark the newest sign-off of a release as withdrawn; return the folder of the sign-off.

    Raises:
        NothingSelected: it is not signed.
        UsageError: it is already withdrawn.
        WriteError: it cannot be written.
    """
    name = _newest(place, version)
    if _file(place, name, WITHDRAWN).is_file():
        raise UsageError(f"{FOLDER}/{name} is already withdrawn", code="withdrawn")
    with changing(place.path):
        put(_file(place, name, WITHDRAWN), json.dumps({"by": by, "date": day, "because": because}, sort_keys=True) + "\n")
    return name
