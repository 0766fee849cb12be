"""``torch-compat accept``: compare the coverage of exceptions with their locks, and write the locks."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

import click
from rich.text import Text

from torch_compat.cli._output import exit_status, format_option, print_json, stdout
from torch_compat.cli._root import root_option
from torch_compat.judging.counting import ACCEPTED_FILE, LOCK_FILE, count, few, words_of, write_lock
from torch_compat.judging.wording_drafts import drafts, phrase
from torch_compat.operators.differences import in_words
from torch_compat.policy.counts import ACCEPT
from torch_compat.report.paragraphs import paragraph
from torch_compat.words import count_of
from torch_compat.workspace import find_root
from torch_compat.writes import holding

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from torch_compat.judging.counting import Counted, LockChange

__all__ = ["accept"]


@click.command()
@click.option("--write", is_flag=True, help=f"Write {ACCEPTED_FILE} and {LOCK_FILE}. Review the diff.")
@click.option(
    "--show",
    is_flag=True,
    help="Also show (1) everything that the waivers already cover, so that you can check it against their stated reasons, and (2) errors "
    "that no [[message]] explains, each with a draft [[message]].",
)
@root_option
@format_option
def accept(root: Path | None, format_: str, *, write: bool, show: bool) -> int:
    """Determine what each waiver and gap covers in the recorded evidence, and show what is new or gone.

    Each new difference is shown with a command that reproduces it; for an operator, the change and both schemas are shown. Without
    --write, nothing is written, and the exit status is 1 if anything changed. A waiver that covers nothing is never accepted, and
    nothing is written if anything could not be checked.

    Exit status: 0 nothing changed, or the changes are written; 1 something changed and is not written, or a waiver covers
    nothing; 2 invalid usage, or an invalid input file; 3 internal error in torch-compat; 4 something could not be checked.
    """
    place = find_root(root)
    with holding(place.path) if write else nullcontext():
        counted = count(place, accepting=True)
        written = write and write_lock(place, counted)
    status = exit_status([4 if counted.not_checked else 0, 1 if counted.unused or (counted.stale and not written) else 0])
    if format_ == "json":
        print_json({
            "exit_status": status, "lock": LOCK_FILE, "written": written, "entries": len(counted.entries),
            "accepted": ACCEPTED_FILE, "blocks": len(counted.accepted.lines),
            "differences": [
                {"waiver": difference.waiver, "new": difference.new, "line": difference.line, "told": list(difference.told), "show": difference.show or None}
                for difference in counted.differences
            ],
            "changes": [
                {"kind": change.key[0], "id": change.key[1], "old": change.old, "new": change.new, **_became(change)} for change in counted.changes
            ],
            "unused": [{"kind": kind, "id": name, "why": why} for (kind, name), why in sorted(counted.unused.items())],
            "not_checked": list(counted.not_checked),
        })  # fmt: skip
        return status
    console = stdout()
    if show:
        _show(counted, console)
    unused = [f"{' '.join(key)}: {why}" for key, why in sorted(counted.unused.items())]
    for line in (*counted.unread, *map(str, counted.differences), *map(str, counted.changes), *unused, *counted.not_checked):
        paragraph(console, line)
    message = f"{count_of(len(counted.entries), 'entry', 'entries')}, {len(counted.changes) or 'none'} changed"
    done = "written" if written else "nothing written"
    if counted.stale and not written:
        done += ": something could not be checked, so the counts are not final" if write else f": {ACCEPT}"
    paragraph(
        console, f"{ACCEPTED_FILE}: {count_of(len(counted.accepted.lines), 'line')}, {len(counted.differences) or 'none'} changed"
    )
    paragraph(console, f"{LOCK_FILE}: {message}; {done}")
    return status


def _show(counted: Counted, console: Console) -> None:
    """Show every waiver with its reason and its coverage: writer, reader, difference; and errors that no wording explains."""
    known = counted.accepted.known
    for waiver in counted.evidence.policy.waivers:
        paragraph(console, f"{waiver.id}: {waiver.title}", "bold")
        paragraph(console, " ".join(waiver.reason.split()))
        for block in counted.accepted.blocks:
            if block.waiver == waiver.id:
                wrote = "synthetic archives" if block.writers < 0 else f"written by {known.text(block.writers)}"
                options = "" if block.options == "default" else f", with {block.options}"
                texts, command = words_of(counted.waiving, block)
                recipes = ", ".join(few(block.recipes))
                paragraph(console, f"  {block.outcome}, {wrote}, read by {known.text(block.readers)}{options}: {recipes}")
                for text in few(texts):
                    paragraph(console, f"      {text}", "dim")
                if command:
                    console.print(Text(f"      {command}", style="dim"), soft_wrap=True)
        for name in waiver.findings or ():
            paragraph(console, f"  {name}")
    evidence = counted.evidence
    for draft in drafts(evidence):
        told = ", ".join(few(sorted(draft.recipes)))
        paragraph(console, f"worded differently, or a different error, in {told}", "bold")
        paragraph(console, f"  {phrase(evidence, draft.error, draft.writers)}")
        for error, (readers, cells) in sorted(draft.instead.items()):
            paragraph(console, f"    {phrase(evidence, error, readers)}  # {count_of(cells, 'cell')}")


def _became(change: LockChange) -> dict[str, object]:
    """The new state of an operator, if the entry is about an operator."""
    shown = [
        {
            "operator": changed.operator, "side": changed.side, "since": changed.since, "change": list(changed.change),
            "words": in_words(changed.change), "old": changed.old, "new": changed.new, "show": changed.show,
        }
        for changed in change.became
    ]  # fmt: skip
    return {"became": shown} if shown else {}
