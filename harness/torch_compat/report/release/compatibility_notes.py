"""A draft of the compatibility notes of a release: every line is based on a record, and hand-written text is placed at its item.

Hand-written text is stored in ``reports/notes/RELEASE.toml``, and included in the generated draft::

    introduction = "..."            # optional: the first paragraph

    [[item]]
    id = "waiver:arange-length"     # the id shown in the draft
    text = "..."                    # Markdown, under the title of the item

Only people change that file. An item that the release no longer has is an error: its evidence is gone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from torch_compat.errors import UsageError
from torch_compat.escapes import escaped, escaped_lines
from torch_compat.releases.data import parsed
from torch_compat.report.release.items import Section
from torch_compat.report.release.to_md import in_code, plain
from torch_compat.report.release.words import COMPLETE, counted, notes_of_report, state
from torch_compat.words import count_of, suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from torch_compat.report.release.items import ReleaseItem
    from torch_compat.report.release.report import ReleaseReport

__all__ = ["NOTES", "Hand", "noted", "notes_md", "read_hand"]

BREAKS: Final = "Backwards-incompatible changes"
DEPRECATIONS: Final = "Deprecations"
IMPROVEMENTS: Final = "Compatibility improvements"
PROBLEMS: Final = "Known problems"
NOTES: Final = {
    Section.SILENT: BREAKS,
    Section.REFUSED: BREAKS,
    Section.CRASHED: BREAKS,
    Section.OPERATORS: BREAKS,
    Section.DEPRECATIONS: DEPRECATIONS,
    Section.ACCEPTED: IMPROVEMENTS,
    Section.MENDED: IMPROVEMENTS,
    Section.FORMATS: PROBLEMS,
}
TITLES: Final = (BREAKS, DEPRECATIONS, IMPROVEMENTS, PROBLEMS)
LARGEST: Final = 1 << 20
"""Maximum size of a file of hand-written text, in bytes."""


@dataclass(frozen=True)
class Hand:
    """The hand-written text about a release.

    Attributes:
        items: by the id of the item.
    """

    introduction: str = ""
    items: Mapping[str, str] = field(default_factory=dict)


def read_hand(data: bytes, where: str) -> Hand:
    """Parse a file with hand-written text.

    Parameters:
        where: the name of the file in errors.

    Raises:
        UsageError: it is not such a file.
        PolicyError: it is not TOML; with the line.
    """
    hint = "write [[item]] tables with id and text, and an introduction if there is one"
    if len(data) > LARGEST:
        raise UsageError(f"has {count_of(len(data), 'byte')}, expected at most {LARGEST}", where=where, code="notes")
    try:
        table = parsed(data.decode("utf-8"), where)
    except UnicodeDecodeError as error:
        raise UsageError(f"is not valid UTF-8 at byte {error.start}", where=where, hint=hint, code="notes") from None
    items: dict[str, str] = {}
    entries = table.pop("item", [])
    introduction = table.pop("introduction", "")
    if table or not isinstance(entries, list) or not isinstance(introduction, str):
        result = ", ".join(escaped(key) for key in table) or "an introduction or items of the wrong type"
        raise UsageError(f"has {result}, expected introduction and item", where=where, hint=hint, code="notes")
    for number, entry in enumerate(entries, 1):
        known = (
            isinstance(entry, dict) and entry.keys() == {"id", "text"} and all(isinstance(item, str) for item in entry.values())
        )
        if not known:
            raise UsageError(f"item {number} is not a table of two strings, id and text", where=where, hint=hint, code="notes")
        if entry["id"] in items:
            raise UsageError(f"item {number}: {escaped(entry['id'])} already has text", where=where, code="notes")
        items[entry["id"]] = entry["text"]
    return Hand(introduction, items)


def noted(report: ReleaseReport, hand: Hand, where: str) -> None:
    """Check that all hand-written text refers to items of the release.

    Raises:
        UsageError: names the first item whose evidence is gone.
    """
    ids = [item.id for item in report.items]
    for name in hand.items:
        if name not in ids:
            hint = suggest(name, ids, f"remove it, or look for it: torch-compat report {report.release}")
            raise UsageError(
                f"{escaped(name)} is no longer listed in {report.release}: no evidence supports it anymore",
                where=where,
                hint=hint,
                code="notes",
            )


def notes_md(report: ReleaseReport, hand: Hand | None = None, step: Callable[[int, int], None] | None = None) -> str:
    """The draft: the same evidence and the same hand-written text give the same bytes.

    Parameters:
        step: called before each item with the number of finished items and the total.
    """
    return "\n".join(escaped_lines(line) for line in _lines(report, hand or Hand(), step)) + "\n"


def _lines(report: ReleaseReport, hand: Hand, step: Callable[[int, int], None] | None) -> Iterator[str]:
    done = 0
    yield f"# Compatibility of torch {report.release}"
    yield ""
    yield f"Compared with {report.since}, using {count_of(report.compared, 'archive that was tested', 'archives that were tested')} with both releases."
    if hand.introduction:
        yield ""
        yield hand.introduction.strip()
    for title in TITLES:
        items = [item for item in report.items if NOTES[item.section] == title]
        upgraded = [pair for pair in report.operators if pair.upgraded] if title == IMPROVEMENTS else []
        yield ""
        yield f"## {title}"
        if not items and not upgraded:
            yield ""
            yield "None recorded."
        for item in items:
            if step is not None:
                step(done, len(report.items))
            done += 1
            yield ""
            yield from _item(report, item, hand.items.get(item.id, ""))
        for pair in upgraded:
            yield ""
            yield f"### {pair.upgraded} changed operators have an upgrader"
            yield ""
            yield "Programs saved earlier behave as before, and older releases refuse file formats that they would misread."
            yield f"Evidence: `torch-compat operators check --old {pair.older} --new {pair.newer}`"
    yield ""
    yield "## Not checked"
    yield ""
    if not report.not_asked:
        yield COMPLETE
    yield from (f"- {entry.count} × {plain(entry.why)}" for entry in report.not_asked)
    yield ""
    yield "## Under way"
    yield ""
    yield from (f"- {plain(note)}" for note in notes_of_report(report))


def _item(report: ReleaseReport, item: ReleaseItem, text: str) -> Iterator[str]:
    yield f"### {plain(item.title)}"
    yield ""
    yield f"Item {in_code(item.id)}, since {plain(item.when)}."
    if text:
        yield ""
        yield text.strip()
    yield ""
    yield from _before_and_after(report, item)
    what = " or ".join(item.advice)
    yield f"- What to do: {plain(what) if what else 'not recorded'}"
    if item.operators:
        yield f"- Operators: {in_code(', '.join(item.operators))}"
    yield f"- Evidence: {plain('; '.join(filter(None, (counted(report, item), state(item)))))}"
    if item.findings:
        yield f"- Findings: {in_code(', '.join(item.findings))}"
    if item.shown is not None:
        yield f"- To reproduce: {in_code(item.shown.command)}"


def _before_and_after(report: ReleaseReport, item: ReleaseItem) -> Iterator[str]:
    """A snippet and its output in both releases; if there is none, the contents of the records."""
    shown = item.shown
    if shown is not None and shown.snippet:
        fence = "```" if "```" not in shown.snippet else "`````"
        yield f"{fence}python"
        yield shown.snippet
        yield fence
        yield ""
        yield f"- {report.since}: {in_code(shown.outputs[0])}"
        yield f"- {report.release}: {in_code(shown.outputs[1])}"
        if shown.outputs[0] == shown.outputs[1]:  # the difference does not show in the output
            yield f"- Difference: {plain(shown.before)}; then {plain(shown.after)}"
        return
    if shown is not None:
        yield f"- {report.since}: {plain(shown.before)}"
        yield f"- {report.release}: {plain(shown.after)}"
        return
    for part in item.parts:
        yield f"- {plain(part.says)}"
