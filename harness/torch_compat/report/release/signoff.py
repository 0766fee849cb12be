"""A sign-off: who vouches for a release based on which evidence, in a form that reveals every later change.

``reports/signoffs/RELEASE/`` contains ``signoff.json``, the ``notes.md`` of that day, and, if they exist, a detached signature of
``signoff.json`` and ``withdrawn.json``. ``signoff.json`` states the SHA-256 of every file of the evidence and of the policy, and of itself.
Archives are not listed: the manifests state their digests.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from torch_compat.corpus.json_lines import digest
from torch_compat.errors import UsageError
from torch_compat.escapes import escaped
from torch_compat.judging.judgement import Verdict
from torch_compat.places import inside, read_whole
from torch_compat.releases.release import Release
from torch_compat.words import count_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from torch_compat.judging.judge import Report
    from torch_compat.report.release.report import ReleaseReport

__all__ = [
    "FOLDER",
    "NOTES_FILE",
    "SIGNATURE",
    "STATEMENT",
    "WITHDRAWN",
    "Blocker",
    "amended",
    "blockers",
    "changes_since",
    "evidence_files",
    "read_statement",
    "signoffs_of",
    "statement",
    "statement_text",
]

FOLDER: Final = "reports/signoffs"
STATEMENT: Final = "signoff.json"
NOTES_FILE: Final = "notes.md"
SIGNATURE: Final = "signoff.json.sig"
WITHDRAWN: Final = "withdrawn.json"
VERSION: Final = 1
ROOTS: Final = (
    "policies/torch", "reports/observations", "reports/proofs", "fixtures/beside", "fixtures/deprecations", "fixtures/globals", "fixtures/operators",
    "fixtures/probes", "fixtures/recipes",
)  # fmt: skip
"""Folders in which every file is evidence or policy. In release folders, only the files next to the archives count."""
ARCHIVES: Final = frozenset({".pt", ".pth", ".ptl", ".pt2", ".pkl", ".distcp"})
KEYS: Final = frozenset(
    {
        "schema_version", "release", "since", "by", "date", "amends", "as_of", "evidence", "counts", "items", "accepted", "listed",
        "files", "notes", "seal",
    }
)  # fmt: skip


@dataclass(frozen=True)
class Blocker:
    """Something that prevents a sign-off.

    Attributes:
        kind: ``fail``, ``not-checked`` or ``modelled``.
        id: the id for accepting it; missing checks cannot be accepted.
    """

    kind: str
    id: str
    text: str

    @property
    def acceptable(self) -> bool:
        """Whether a person may accept it."""
        return self.kind != "not-checked"


def blockers(report: Report, value: ReleaseReport) -> list[Blocker]:
    """Everything that prevents a sign-off: broken promises, missing checks, and results based on the reference reader alone."""
    held = [Blocker("fail", finding.id, finding.title) for finding in report.findings if finding.verdict is Verdict.FAIL]
    held += [Blocker("not-checked", f"{what}: {why}", f"{count} × {why}") for what, why, count in report.not_checked]
    if not report.counts.get(Verdict.PASS):
        held.append(Blocker("not-checked", "judge", "nothing was checked"))
    known = {why for _, why, _ in report.not_checked}
    held += [
        Blocker("not-checked", asked.why, f"{asked.count} × {asked.why}")
        for asked in value.not_asked
        if not asked.explained and not any(asked.why.startswith(why) for why in known)
    ]
    held += [
        Blocker(
            "modelled",
            f"modelled:{verdict}",
            f"{count_of(count, 'judgment')} ({verdict}) {'is' if count == 1 else 'are'} based only on the reference reader",
        )
        for verdict, count in report.modelled.items()
        if count
    ]
    return held


# --------------------------------------------------------------------------------------------------------------- the statement


def statement(
    report: Report,
    value: ReleaseReport,
    files: Mapping[str, str],
    notes: str,
    *,
    by: str,
    date: str,
    accepted: Sequence[tuple[Blocker, str]],
    amends: str,
) -> dict[str, Any]:
    """The statement to be signed.

    Parameters:
        files: SHA-256 of every file of the evidence and the policy, by path.
        notes: the notes of the release.
        accepted: what was accepted for this sign-off only, and why.
        amends: the release whose sign-off this one amends; "" for the first of a line.
    """
    listed: dict[str, dict[str, int]] = {str(item): {} for item in (Verdict.WAIVED, Verdict.CONTINUES, Verdict.EXPECTED)}
    for finding in report.findings:
        if str(finding.verdict) in listed:
            name = finding.waiver or finding.id
            listed[str(finding.verdict)][name] = listed[str(finding.verdict)].get(name, 0) + finding.count
    nobody: dict[str, int] = {}
    for what, why, count in report.no_promise:
        nobody[f"{what}: {why}" if why else what] = count
    document: dict[str, Any] = {
        "schema_version": VERSION,
        "release": value.release,
        "since": value.since,
        "by": by,
        "date": date,
        "amends": amends or None,
        "as_of": report.as_of,
        "evidence": report.evidence,
        "counts": {str(verdict): count for verdict, count in report.counts.items()},
        "items": [item.id for item in value.items],
        "accepted": [{"id": blocker.id, "kind": blocker.kind, "what": blocker.text, "because": why} for blocker, why in accepted],
        "listed": {**listed, str(Verdict.NO_PROMISE): nobody},
        "files": dict(files),
        "notes": hashlib.sha256(notes.encode()).hexdigest(),
    }
    return {**document, "seal": _seal(document)}


def statement_text(document: Mapping[str, Any]) -> str:
    """The text of the file with a statement."""
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=True) + "\n"


def _seal(document: Mapping[str, Any]) -> str:
    return digest({key: value for key, value in document.items() if key != "seal"})


def read_statement(data: bytes, where: str) -> dict[str, Any]:
    """Parse a statement, whether or not its seal is valid.

    Raises:
        UsageError: it is not a statement.
    """
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        document = None
    good = isinstance(document, dict) and document.keys() == KEYS and document["schema_version"] == VERSION
    if good:
        texts = all(isinstance(document[key], str) for key in ("release", "since", "by", "date", "notes", "seal", "evidence"))
        files = document["files"]
        good = texts and isinstance(files, dict) and all(isinstance(file, str) for file in files.values())
    if not good:
        raise UsageError(
            f"is not a version {VERSION} sign-off", where=where, hint="restore it from version control", code="signoff"
        )
    return dict(document)


# ---------------------------------------------------------------------------------------------------------------- the files


def evidence_files(root: Path) -> dict[str, str]:
    """The SHA-256, in hex, of every file that a judgement reads, by path in the tree, sorted.

    Raises:
        CorpusError: a name leads out of the tree, or is not a regular file.
    """
    return {name: hashlib.sha256(read_whole(inside(root, name))).hexdigest() for name in sorted(_names(root))}


def _names(root: Path) -> Iterator[str]:
    if (root / "fixtures/FROZEN").is_file():
        yield "fixtures/FROZEN"
    folders = [root / name for name in ROOTS]
    if (root / "fixtures").is_dir():
        folders += [item for item in (root / "fixtures").iterdir() if item.is_dir() and (item / "manifest.jsonl").is_file()]
        folders.append(root / "fixtures/values")
    for folder in folders:
        if folder.is_dir():
            for path in folder.rglob("*"):
                hidden = any(part.startswith((".", "__pycache__")) for part in path.relative_to(root).parts)
                if path.is_file() and not hidden and path.suffix not in ARCHIVES:
                    yield path.relative_to(root).as_posix()
    if (root / "reports/notes").is_dir():  # hand-written text only; the rest of the folder is generated
        yield from (path.relative_to(root).as_posix() for path in (root / "reports/notes").glob("*.toml"))


def signoffs_of(root: Path, release: str) -> list[str]:
    """The folders of the sign-offs of a release, oldest first."""
    folder = root / FOLDER
    pattern = re.compile(rf"{re.escape(release)}(?:-(\d{{1,4}}))?")
    result = (
        [(int(match[1] or 1), path.name) for path in folder.iterdir() if (match := pattern.fullmatch(path.name))]
        if folder.is_dir()
        else []
    )
    return [name for _, name in sorted(result)]


def amended(root: Path, release: str) -> str:
    """The newest older release of the same line with a sign-off that was not withdrawn; "" if there is none."""
    folder, mine = root / FOLDER, Release(release)
    names = (
        {path.name.partition("-")[0] for path in folder.iterdir() if not (path / WITHDRAWN).exists()}
        if folder.is_dir()
        else set()
    )
    versions = sorted((Release(name) for name in names if re.fullmatch(r"\d+(\.\d+)+", name)), reverse=True)
    return next((str(version) for version in versions if version < mine and version.numbers[:2] == mine.numbers[:2]), "")


def changes_since(document: Mapping[str, Any], files: Mapping[str, str], folder: Mapping[str, bytes]) -> list[str]:
    """Everything that differs from the signed state, in words.

    Parameters:
        files: the current files of the evidence and the policy.
        folder: the files of the sign-off itself, by name.
    """
    signed: Mapping[str, str] = document["files"]
    messages = [f"changed: {name}" for name in signed if name in files and files[name] != signed[name]]
    messages += [f"missing: {name}" for name in signed if name not in files]
    messages += [f"added: {name}" for name in files if name not in signed]
    if _seal(document) != document["seal"]:
        messages.append(f"changed: {STATEMENT} of the sign-off")
    notes = folder.get(NOTES_FILE)
    if notes is None:
        messages.append(f"missing: {NOTES_FILE} of the sign-off")
    elif hashlib.sha256(notes).hexdigest() != document["notes"]:
        messages.append(f"changed: {NOTES_FILE} of the sign-off")
    messages += [f"added to the sign-off: {name}" for name in folder if name not in {STATEMENT, NOTES_FILE, SIGNATURE, WITHDRAWN}]
    return [escaped(item) for item in sorted(messages)]
