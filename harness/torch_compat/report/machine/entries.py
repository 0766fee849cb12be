"""The basis of all machine-readable formats: one entry per finding, so that the counts of all formats agree."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from torch_compat.corpus.manifest import SYNTHETIC
from torch_compat.judging.judgement import Verdict
from torch_compat.report.breaks import order

if TYPE_CHECKING:
    from torch_compat.judging.findings import Finding
    from torch_compat.judging.judge import Report
    from torch_compat.report.release.report import ReleaseReport

__all__ = ["ERROR", "NOTE", "WARNING", "CommandReport", "FindingEntry", "of_release", "of_report"]

ERROR: Final = "error"
WARNING: Final = "warning"
NOTE: Final = "note"
LEVELS: Final = {Verdict.FAIL: ERROR, Verdict.NOT_CHECKED: WARNING}


@dataclass(frozen=True)
class FindingEntry:
    """One finding.

    Attributes:
        verdict: ``fail``, ``not-checked``, ``waived``, ``continues`` or ``expected``; for an item of a release report, its section.
        level: ``error``, ``warning`` or ``note``.
        count: the number of things that it covers.
        file: the file of the tree that it is about; "" if there is none.
        accepted: why it is not a failure: the id of a waiver; "" if there is no reason.
        command: a command that shows it; "" if there is none.
    """

    id: str
    rule: str
    verdict: str
    level: str
    text: str
    count: int
    readers: tuple[str, ...] = ()
    file: str = ""
    accepted: str = ""
    command: str = ""


@dataclass(frozen=True)
class CommandReport:
    """All results of one command.

    Attributes:
        title: the title of the run, in a few words.
        totals: the number of each verdict, including those without entries.
        rules: the checked rules, with the requirement of each in a sentence.
        markdown: a summary for people.
        readers: every reader, oldest first: a rule with a finding about one of them was checked for all.
        unasked: rules that were not checked, and why. None of them counts as a pass.
    """

    title: str
    as_of: str
    evidence: str
    exit_status: int
    totals: dict[str, int]
    entries: tuple[FindingEntry, ...]
    rules: dict[str, str] = field(default_factory=dict)
    markdown: str = ""
    readers: tuple[str, ...] = ()
    unasked: dict[str, str] = field(default_factory=dict)

    def of(self, level: str) -> tuple[FindingEntry, ...]:
        """The entries with one level."""
        return tuple(entry for entry in self.entries if entry.level == level)


def of_report(report: Report, rules: dict[str, str], files: dict[str, str], markdown: str) -> CommandReport:
    """The results of a judgement.

    Parameters:
        rules: every rule of the policy, with its requirement.
        files: the path of the archive of each fixture.
    """
    entries = [
        FindingEntry(
            finding.id, finding.rule, str(finding.verdict), LEVELS.get(finding.verdict, NOTE), finding.title, finding.count, finding.readers,
            _file(finding, files), finding.waiver, finding.reproduce,
        )
        for finding in report.findings
    ]  # fmt: skip
    entries += [
        FindingEntry(f"{what}:not-checked:{number}", what, str(Verdict.NOT_CHECKED), WARNING, why, count)
        for number, (what, why, count) in enumerate(report.not_checked, 1)
    ]
    totals = {str(verdict): report.counts.get(verdict, 0) for verdict in Verdict}
    readers = tuple(sorted({reader for finding in report.findings for reader in finding.readers}, key=order))
    unasked = {rule: note for rule in rules for note in report.notes if note.startswith(f"{rule} was not checked")}
    return CommandReport(
        "torch-compat judge", report.as_of, report.evidence, report.exit_status, totals, tuple(entries), rules, markdown, readers,
        unasked,
    )  # fmt: skip


def of_release(report: ReleaseReport, markdown: str) -> CommandReport:
    """The results for what begins with a release."""
    entries = [
        FindingEntry(
            item.id,
            f"release-{item.section}",
            str(item.section),
            ERROR if item.open else NOTE,
            f"{item.title} (since {item.when})",
            max(1, item.newer + item.older),
            (report.release,),
            "",
            "" if item.open else item.id,
            item.shown.command if item.shown else "",
        )
        for item in report.items
    ]
    entries += [
        FindingEntry(
            f"not-asked:{number}",
            "release-not-asked",
            str(Verdict.NOT_CHECKED),
            NOTE if asked.explained else WARNING,
            asked.why,
            asked.count,
        )
        for number, asked in enumerate(report.not_asked, 1)
    ]
    totals: dict[str, int] = {}
    for entry in entries:
        totals[entry.verdict] = totals.get(entry.verdict, 0) + 1
    rules = {entry.rule: f"Changes by release: {entry.verdict}" for entry in entries}
    title = f"torch {report.release} compared with {report.since}"
    return CommandReport(title, report.as_of, report.evidence, report.exit_status, totals, tuple(entries), rules, markdown)


def _file(finding: Finding, files: dict[str, str]) -> str:
    """The file that a finding is about: the waiver that covers it, otherwise the archive."""
    if finding.smallest in files:
        return f"fixtures/{files[finding.smallest]}"
    release, _, rest = finding.smallest.partition("/")
    return "" if not rest or release != SYNTHETIC else f"fixtures/{finding.smallest}"
