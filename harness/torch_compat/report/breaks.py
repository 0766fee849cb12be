"""Shared code of the renderers: findings grouped by actual cause, the direction of a cell, and one mark per outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch_compat.corpus.manifest import SYNTHETIC
from torch_compat.corpus.observations import REFERENCE
from torch_compat.judging.cell import Outcome
from torch_compat.judging.judgement import Verdict
from torch_compat.releases.release import named

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch_compat.judging.findings import Finding
    from torch_compat.judging.judge import Report
    from torch_compat.policy.model import Waiver
    from torch_compat.policy.operator_waivers import OperatorWaiver
    from torch_compat.releases.release import Key

__all__ = [
    "DIRECTIONS",
    "FORWARD",
    "KNOWN",
    "LEGEND",
    "MARKS",
    "OPERATORS",
    "WORST_FIRST",
    "BreakCause",
    "breaks",
    "direction",
    "is_reference",
    "order",
]

# One mark per outcome; same and close share one, since both keep the promise.
MARKS = {
    Outcome.SAME: ("✓", "green"),
    Outcome.CLOSE: ("✓", "green"),
    Outcome.DIFFERENT: ("≠", "bold red"),
    Outcome.REFUSED: ("✗", "yellow"),
    Outcome.RAISED: ("!", "yellow"),
    Outcome.RELAXED: ("~", "cyan"),
    Outcome.UNSTABLE: ("?", "bold red"),
    Outcome.CRASHED: ("†", "bold red"),
    Outcome.TIMED_OUT: ("…", "bold red"),
    Outcome.UNSUPPORTED: ("-", "dim"),
    Outcome.UNAVAILABLE: ("-", "dim"),
}
LEGEND = "✓ same or close   ≠ different   ✗ refused   ! raised   ~ relaxed   † crashed   … timed out   ? unstable"
# A mark for many cells is that of the most severe outcome: unnoticed changes come before failures.
WORST_FIRST = (
    Outcome.DIFFERENT, Outcome.UNSTABLE, Outcome.CRASHED, Outcome.TIMED_OUT, Outcome.RAISED, Outcome.REFUSED, Outcome.RELAXED,
    Outcome.UNSUPPORTED, Outcome.UNAVAILABLE, Outcome.CLOSE, Outcome.SAME,
)  # fmt: skip
KNOWN = (Verdict.WAIVED, Verdict.CONTINUES)
FORWARD = frozenset({"older-never-differs", "forward-window"})
OPERATORS = frozenset({"schema-breaks-upgraded", "upgraders-old-schemas"})  # rules that count operators, not cells
DIRECTIONS = ("newer", "own", "older", REFERENCE, SYNTHETIC)  # the reader relative to the writer, if there is one


def is_reference(reader: str) -> bool:
    """Whether a reader is the reference reader, with any horizon."""
    return reader.partition("@")[0] == REFERENCE


def order(name: str) -> tuple[int, Key, str]:
    """Sort key for releases, writers and readers: 1.9.0 before 1.10.0, a build after its release.

    Synthetic writers come first, the reference reader last.
    """
    if is_reference(name) or name == SYNTHETIC:
        return (-1 if name == SYNTHETIC else 1, ((), 0, 0, 0, 0), "")
    release = named(name)
    return 0, release.key, release.local


def direction(writer: str, reader: str) -> str:
    """One of :data:`DIRECTIONS`: the reader relative to the writer. Builds of one release count as the same."""
    if writer == SYNTHETIC:
        return SYNTHETIC
    if is_reference(reader):
        return REFERENCE
    wrote, reads = named(writer), named(reader)
    return "own" if reads == wrote else "newer" if reads > wrote else "older"


@dataclass(frozen=True)
class BreakCause:
    """One actual cause: all findings covered by one waiver, or one finding without a waiver.

    In brief, also all findings of one kind that are not about readers, such as recipes that were not run.

    Attributes:
        findings: by gravity and id, at least one.
        waiver: the waiver that covers them.
    """

    findings: tuple[Finding, ...]
    waiver: Waiver | OperatorWaiver | None

    @property
    def title(self) -> str:
        """The title, in one line."""
        more = f", and {len(self.findings) - 1} more like it" if len(self.findings) > 1 and self.waiver is None else ""
        return self.findings[0].title + more

    @property
    def of_operators(self) -> bool:
        """Whether it is about operators, and counts operators."""
        return self.findings[0].rule in OPERATORS

    @property
    def of_deprecations(self) -> bool:
        """Whether it is about the timeline, the documentation or the evidence of deprecations."""
        return self.findings[0].rule.startswith("deprecations-")

    @property
    def count(self) -> int:
        """The number of cells (or operators) that show it."""
        return sum(finding.count for finding in self.findings)

    @property
    def witness(self) -> Finding:
        """The finding whose smallest fixture represents all: the one with the most cells."""
        return max(self.findings, key=lambda finding: finding.count)

    @property
    def began(self) -> str:
        """The newest release in which one of its findings begins; "" if no reader is involved."""
        return max((finding.first_reader for finding in self.findings if finding.first_reader), key=order, default="")

    @property
    def begins(self) -> str:
        """The newest release since which it or newer readers behave this way; if only older readers do, the newest of them."""
        newer = [finding.first_reader for finding in self.findings if finding.first_reader and finding.rule not in FORWARD]
        return max(newer, key=order, default=self.began)

    @property
    def since(self) -> str:
        """The releases since which, or up to which, it occurs, in words."""
        newer = sorted(
            {finding.first_reader for finding in self.findings if finding.rule not in FORWARD and finding.first_reader}, key=order
        )
        older = sorted(
            {finding.first_reader for finding in self.findings if finding.rule in FORWARD and finding.first_reader}, key=order
        )
        parts = [f"since {_listed(newer)}" if newer else "", f"up to {_listed(older)}" if older else ""]
        return ", ".join(filter(None, parts))

    @property
    def bump(self) -> str:
        """The version that announces it; "" unless all findings are announced."""
        return (
            ", ".join(sorted({finding.bump for finding in self.findings}))
            if all(finding.bump for finding in self.findings)
            else ""
        )

    @property
    def silent(self) -> bool:
        """Whether some of it changes values without any version announcing it."""
        rules = {"newer-computes", *FORWARD}
        return any(finding.rule in rules and finding.what == Outcome.DIFFERENT and not finding.bump for finding in self.findings)

    def merged(self, name: str) -> tuple[str, ...]:
        """``readers``, ``writers``, ``families`` of all findings together, in order."""
        results = {value for finding in self.findings for value in getattr(finding, name)}
        return tuple(sorted(results, key=order) if name in {"readers", "writers"} else sorted(results))


def _listed(names: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def breaks(report: Report, verdicts: Iterable[Verdict] = (Verdict.FAIL, *KNOWN), *, brief: bool = False) -> list[BreakCause]:
    """Group findings with these verdicts by waiver, even if they continue in a new release; sorted by where they begin, newest first.

    Parameters:
        brief: group findings that are not about readers by rule and kind.
    """
    waivers = {waiver.id: waiver for waiver in report.waivers}
    groups: dict[tuple[bool, str, str], list[Finding]] = {}
    wanted = set(verdicts)
    for finding in report.findings:
        if finding.verdict in wanted:
            alike = f"{finding.rule}:{finding.what}" if brief and not finding.first_reader else finding.id
            key = (finding.verdict is Verdict.FAIL, finding.waiver, "" if finding.waiver else alike)
            groups.setdefault(key, []).append(finding)
    results = [BreakCause(tuple(members), waivers.get(waiver)) for (_, waiver, _), members in groups.items()]
    results.sort(key=lambda judgement: (-judgement.count, judgement.findings[0].id))
    results.sort(key=lambda judgement: order(judgement.began or SYNTHETIC), reverse=True)
    return results
