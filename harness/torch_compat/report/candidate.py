"""The comparison of a build with a release, as one screen of text and in the form of harness/torch_compat/schemas/candidate.schema.json."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from torch_compat.words import count_of

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["SCHEMA_VERSION", "CandidateItem", "CandidateReport", "Policy", "candidate_lines"]

SCHEMA_VERSION: Final = 1
SHOWN: Final = 4
"""Number of new items that fit on one screen."""
SHORT: Final = 3
COMMAND: Final = "\0"
"""Prefix of a line that is never shortened."""

Policy: TypeAlias = Literal["breaks", "needs", "waived", "allowed"]


@dataclass(frozen=True)
class CandidateItem:
    """A difference between a build and the release, with its evidence.

    Attributes:
        id: an id that is equal for another build with the same difference.
        what: ``loads``, ``computes``, ``warns``, ``writes``, ``operator``, ``deprecation``, ``probe`` or ``older reader``.
        cause: one line.
        before, after: what the release and the build do.
        policy: ``breaks`` a promise; ``needs`` an upgrader, a version bump or a deprecation first; is ``waived``; or is ``allowed``.
        says: the same in one sentence.
        rule: the rule of the promise, "" if there is none.
        allowed_from: the day on which it may be released if it is announced now; None if unknown, or not needed.
        count: cells, operators or recipes that have this cause.
        witness: the smallest of them.
        reproduce: a command that shows it with the build alone; None if that takes more than a few lines.
        first: the earliest of the given earlier builds that does it; None if none were given.
    """

    id: str
    what: str
    cause: str
    before: str
    after: str
    policy: Policy
    says: str
    rule: str
    allowed_from: str | None
    count: int
    witness: str
    reproduce: str | None
    first: str | None

    def as_json(self) -> dict[str, Any]:
        """The item as JSON."""
        return {
            "id": self.id, "what": self.what, "cause": self.cause, "before": self.before, "after": self.after, "policy": self.policy,
            "says": self.says, "rule": self.rule or None, "allowed_from": self.allowed_from, "count": self.count,
            "witness": self.witness, "reproduce": self.reproduce, "first": self.first,
        }  # fmt: skip


@dataclass(frozen=True)
class CandidateReport:
    """The results of ``torch-compat candidate``.

    Attributes:
        build: the build, as it identifies itself.
        against: the release: its name, the source of its observations (``recorded`` or ``now``), and their date.
        asked: the numbers of checks done now: see the schema.
        new, mended: by gravity, then by count.
        known: causes that the release also has, and the number of cells that they cover.
        reworded: errors that both raise, with different wording.
        not_asked: what was not checked, why, whether it was required, and how many.
        notes: notes about the evidence.
        tree: the folder that contains all of it.
        fail_on_new: whether every new item leads to status 1.
    """

    build: dict[str, Any]
    against: dict[str, Any]
    asked: dict[str, Any]
    new: tuple[CandidateItem, ...]
    mended: tuple[CandidateItem, ...]
    known: dict[str, int]
    reworded: int
    not_asked: tuple[tuple[str, str, bool, int], ...]
    notes: tuple[str, ...]
    tree: str
    fail_on_new: bool = False

    @property
    def exit_status(self) -> int:
        """1 if a new item breaks a promise, or if any item is new and that fails; 4 if a required check was not done; otherwise 0."""
        if any(item.policy == "breaks" for item in self.new) or (self.fail_on_new and self.new):
            return 1
        return 4 if any(required for _, _, required, _ in self.not_asked) else 0

    def document(self) -> dict[str, Any]:
        """The report as JSON."""
        return {
            "schema_version": SCHEMA_VERSION,
            "build": self.build,
            "against": self.against,
            "asked": self.asked,
            "new": [item.as_json() for item in self.new],
            "mended": [item.as_json() for item in self.mended],
            "known": self.known,
            "reworded": self.reworded,
            "not_asked": [
                {"what": what, "why": why, "required": required, "count": count} for what, why, required, count in self.not_asked
            ],
            "notes": list(self.notes),
            "tree": self.tree,
            "exit_status": self.exit_status,
        }


def candidate_lines(report: CandidateReport, *, full: bool, width: int = 80) -> Iterator[str]:
    """The report as text.

    Parameters:
        full: every item, not only those that fit on one screen.
        width: columns of a line; commands may be longer, since they are copied.
    """
    for line in _lines(report, full=full):
        command = line.startswith(COMMAND)
        yield line.replace(COMMAND, "     ", 1) if command else line if full or len(line) <= width else line[: width - 1] + "…"


def _lines(report: CandidateReport, *, full: bool) -> Iterator[str]:
    build, asked, against = report.build, report.asked, report.against
    yield f"torch {build['torch']} (release line {build['line']}), {build['variant']}, built {build['day']} (according to its {build['day_from']})"
    yield f"against {against['name']}, {against['source']} {against['observed']}"
    cells = f"{asked['cells']:,} of {asked['cells_in_all']:,} cells" + ("" if asked["all"] else f" (seed {asked['seed']})")
    yield (
        f"observed now: {cells}, {count_of(asked['recipes'], 'recipe')}, {count_of(asked['deprecations'], 'deprecation')}, {count_of(asked['probes'], 'probe')}, "
        f"{asked['operators']:,} operators"
    )
    yield ""
    yield f"New: {_count(report.new)}"
    shown = report.new if full else report.new[:SHOWN]
    for number, item in enumerate(shown, 1):
        yield from _item(number, item, build["torch"])
    if len(report.new) > len(shown):
        yield f"  and {len(report.new) - len(shown)} more: --full prints them"
    yield f"Fixed: {len(report.mended) or 'nothing'}"
    for item in report.mended if full else report.mended[:SHORT]:
        yield f"  {item.what}: {item.cause} ({item.witness}, {item.count} in all)"
    known = sum(report.known.values())
    kinds = ", ".join(f"{count:,} {what}" for what, count in sorted(report.known.items()))
    yield f"Known, carried over from {against['name']}: {f'{known:,} ({kinds})' if known else 'nothing'}" + (
        f"; {report.reworded:,} reworded errors" if report.reworded else ""
    )
    yield "Not checked:" + ("" if report.not_asked else " nothing")
    for what, why, required, count in report.not_asked:
        yield f"  {count:,} {what}{' (required)' if required else ''}: {why}"
    for note in report.notes:
        yield f"Note: {note}"
    yield f"kept in {report.tree}"
    yield f"exit status {report.exit_status}: {_ending(report)}"


def _count(items: tuple[CandidateItem, ...]) -> str:
    if not items:
        return "nothing"
    kinds = {"breaks": "break a promise", "needs": "require a prior step", "waived": "are waived", "allowed": "are allowed"}
    counts = [(sum(item.policy == kind for item in items), text) for kind, text in kinds.items()]
    return f"{len(items)} ({', '.join(f'{count} {text}' for count, text in counts if count)})"


def _item(number: int, item: CandidateItem, torch: str) -> Iterator[str]:
    yield f"  {number}. {item.what}: {item.cause}"
    yield f"     {item.says}" + (f"; allowed from {item.allowed_from}" if item.allowed_from else "")
    first = (
        "" if item.first is None else "; not in any earlier build" if item.first == f"torch-{torch}" else f"; since {item.first}"
    )
    yield f"     witness {item.witness}, {item.count} in all{first}"
    if item.reproduce is not None:
        yield f"{COMMAND}{item.reproduce}"


def _ending(report: CandidateReport) -> str:
    status = report.exit_status
    if status == 0:
        return "nothing new breaks a promise" if report.new else "nothing is new"
    if status == 1:
        return (
            "a new item breaks a promise"
            if any(item.policy == "breaks" for item in report.new)
            else "there are new items, and --fail-on new was given"
        )
    return "incomplete: a required check was not run"
