"""Findings: judgements named by their causes, matched with waivers, and grouped."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from torch_compat.judging.cell import Outcome
from torch_compat.judging.cells import kind_of
from torch_compat.judging.judgement import Judgement, Verdict, slug
from torch_compat.judging.readers import highest, lowest
from torch_compat.judging.waiving import Waiving
from torch_compat.policy.counts import ACCEPT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.judging.cell import Cells
    from torch_compat.judging.evidence import Evidence
    from torch_compat.judging.waiving import Part

__all__ = ["KEPT", "Finding", "Named", "group", "plain_id", "waive"]

KEPT = frozenset({Outcome.SAME, Outcome.CLOSE})  # outcomes without a cause


@dataclass(frozen=True)
class Finding:
    """Judgements of one rule that share a cause.

    Attributes:
        id: the id of the cause, which waivers use: rule, what, subject, options, and the release where it begins.
        verdict: ``fail``, ``waived``, ``continues`` or ``expected``.
        count: the number of cells or things it covers.
        cause: one line for people.
        title: the waiver's title, or else the cause.
        first_reader: the release where it begins (see :class:`_Beginnings`): seen from the writers, the first to show it.
        readers, writers: public versions concerned, oldest first.
        smallest: the smallest fixture that shows it, or the first thing, if it is not about cells.
        reproduce: the command that reproduces the smallest one.
        waiver: id of the waiver, if there is one.
        what: the outcome or kind.
        recipes, families: those of the archives concerned.
        options: id of the load options, or "" if it is not about cells.
        bump: for values that changed: the file format version that announces it, or "" if none does.
        modelled: whether it depends on the reference reader alone.
    """

    id: str
    rule: str
    verdict: Verdict
    count: int
    cause: str
    title: str
    first_reader: str
    readers: tuple[str, ...]
    writers: tuple[str, ...]
    smallest: str
    reproduce: str
    waiver: str
    what: str
    recipes: tuple[str, ...]
    families: tuple[str, ...]
    options: str
    bump: str
    modelled: bool = False


@dataclass(frozen=True)
class Named:
    """A judgement with the id of its cause, the release where the cause begins, and the waiver that covers it. Findings group them."""

    judgement: Judgement
    id: str
    began: str = ""
    waiver: str = ""


def plain_id(judgement: Judgement) -> str:
    """The id of a cause, without the release where it begins."""
    assert judgement.cause is not None  # noqa: S101 - only judgements with a cause are named
    return f"{judgement.rule}:{judgement.cause.what.replace(' ', '-')}:{slug(judgement.cause.subject)}"


class _Beginnings:
    """Determines where causes begin.

    Moving away from the writer of a fixture, a cause begins with the first reader that shows it: the oldest of the newer readers, the
    newest of the older ones. If that reader is the nearest one to the writer, the cause may be older than the fixture; it is then followed
    back, past the writer, for as long as every reader shows it. A change in a reader thus begins with the same release for the archives
    of all writers.
    """

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._versions = {rank: version for version, rank in evidence.rank.items()}
        self._lines = {
            place: line for place, line in evidence.by_line.items() if any(cells.outcome not in KEPT for cells in line)
        }  # those with a cause
        self._known: dict[tuple[str, str], tuple[int, dict[tuple[str, str], int]]] = {}

    def of(self, cells: Cells, kind: tuple[str, str]) -> tuple[str, str]:
        """The release where a cause of this kind begins, as seen from the fixture of these cells, and the suffix of its id.

        For readers older than the writer, the suffix is ``@..`` and the newest reader that shows the cause; it is empty if every reader
        up to the newest one shows it, since the next release must not change the id. For all others it is ``@`` and that release.
        """
        seen, kinds = self._shown(cells)
        shown = kinds.get(kind) or self._evidence.readers.ranks(cells.readers)
        wrote = self._evidence.rank[cells.fixture.release]
        if cells.direction.startswith("forward"):
            first = highest(shown & ((1 << wrote) - 1))
            without = lowest(seen & ~shown & (-1 << first))
            first = highest(shown if without < 0 else shown & ((1 << without) - 1))
            return self._versions[first], "" if without < 0 else f"@..{self._versions[first]}"
        nearest = wrote if cells.direction == "own" else wrote + 1
        first = lowest(shown & (-1 << nearest))
        without = highest(seen & ~shown & ((1 << first) - 1))
        first = lowest(shown & (-1 << (without + 1)))
        return self._versions[first], f"@{self._versions[first]}"

    def _shown(self, cells: Cells) -> tuple[int, dict[tuple[str, str], int]]:
        """The releases that read a fixture under some options, and those that show each kind of cause, as bits by rank."""
        place = (cells.fixture.id, cells.options.id)
        if place not in self._known:
            seen = 0
            kinds: dict[tuple[str, str], int] = {}
            for line in self._lines.get(place, ()):
                releases = self._evidence.readers.ranks(line.readers)
                seen |= releases
                if line.outcome not in KEPT:
                    kind = kind_of(line)
                    kinds[kind] = kinds.get(kind, 0) | releases
            self._known[place] = (seen, kinds)
        return self._known[place]


def waive(evidence: Evidence, judgements: list[Judgement]) -> tuple[list[Named], Waiving]:
    """Match failures with waivers: return each judgement with the id of its cause, and what waivers cover.

    Parameters:
        judgements: those with a visible cause.
    """
    beginnings = _Beginnings(evidence)
    waiving = Waiving(evidence)
    named: list[Named] = []
    for judgement in judgements:
        cells, cause = judgement.cells, judgement.cause
        assert cause is not None  # noqa: S101 - only judgements with a cause are passed
        name, began = plain_id(judgement), judgement.at or judgement.reader
        if cells is not None:
            began, end = beginnings.of(cells, (cause.what, cause.subject))
            name += f"{'' if cells.options.id == 'default' else f'({cells.options.id})'}{end}"
        elif judgement.at:
            name += f"@{began}"
        if judgement.verdict is not Verdict.FAIL:
            named.append(Named(judgement, name, began, judgement.waiver))
        elif cells is None:
            part = waiving.finding(judgement, name)
            named.append(Named(_told(part), name, began, part.waiver or judgement.waiver))
        else:
            named.extend(Named(_told(part), name, began, part.waiver) for part in waiving.cells(judgement, cells))
    return named, waiving


def _told(part: Part) -> Judgement:
    """The judgement of a part. If a waiver applies to it but not to this difference, the cause says so."""
    judgement = part.judgement
    if not part.near or judgement.cause is None:
        return judgement
    text = f"{judgement.cause.text} (the waiver {part.near} is for this, but it was accepted with another difference: {ACCEPT})"
    return replace(judgement, cause=replace(judgement.cause, text=text))


def group(evidence: Evidence, named: list[Named]) -> tuple[Finding, ...]:
    """Group judgements into findings: those with the same verdict, cause and waiver together."""
    titles = {waiver.id: waiver.title for waiver in evidence.policy.waivers}
    titles |= {waiver.id: waiver.title for waiver in evidence.policy.operator_waivers}
    groups: dict[tuple[Verdict, str, str], list[Named]] = {}
    for item in named:
        groups.setdefault((item.judgement.verdict, item.id, item.waiver), []).append(item)
    findings = [_finding(evidence, members, titles) for members in groups.values()]
    order = {Verdict.FAIL: 0, Verdict.WAIVED: 1, Verdict.CONTINUES: 2, Verdict.EXPECTED: 3}
    return tuple(sorted(findings, key=lambda finding: (order[finding.verdict], finding.rule, finding.id, finding.waiver)))


def _finding(evidence: Evidence, members: list[Named], titles: dict[str, str]) -> Finding:
    judgements = [member.judgement for member in members]
    smallest = min(judgements, key=lambda judgement: _size(judgement, evidence))
    assert smallest.cause is not None  # noqa: S101 - only judgements with a cause are named
    cells = [judgement.cells for judgement in judgements if judgement.cells is not None]
    readers = {judgement.reader for judgement in judgements if judgement.reader in evidence.rank}
    readers.update(reader.release for reader in evidence.readers.of(reduce(or_, (alike.readers for alike in cells), 0)))
    reproduce, subject = smallest.reproduce or "torch-compat judge", smallest.subject
    if smallest.cells is not None:
        shown = smallest.cells
        subject = shown.fixture.id
        options = "" if shown.options.id == "default" else f" --options {shown.options.id}"
        release = evidence.readers.first(shown.readers).release
        reproduce = f"torch-compat observe --reader torch-{release} --fixture {subject}{options} --show"
    bumps = {bump for alike in cells for bump in _bumps(evidence, alike)}
    return Finding(
        id=members[0].id,
        rule=smallest.rule,
        verdict=smallest.verdict,
        count=sum(judgement.count for judgement in judgements),
        cause=smallest.cause.text,
        title=titles.get(members[0].waiver, smallest.cause.text),
        first_reader=members[0].began,
        readers=tuple(sorted(readers, key=evidence.rank.__getitem__)),
        writers=tuple(sorted({alike.fixture.release for alike in cells}, key=evidence.rank.__getitem__)),
        smallest=subject,
        reproduce=reproduce,
        waiver=members[0].waiver,
        what=smallest.cause.what,
        recipes=tuple(sorted({alike.fixture.recipe for alike in cells})),
        families=tuple(sorted({alike.fixture.family for alike in cells})),
        options=smallest.cells.options.id if smallest.cells is not None else "",
        bump=", ".join(sorted(filter(None, bumps))) if len(bumps) == 1 else "",
        modelled=all(judgement.modelled for judgement in judgements),
    )


def _size(judgement: Judgement, evidence: Evidence) -> tuple[int, int, str, int]:
    """A sort key: small archives first; among equals the older reader."""
    cells = judgement.cells
    if cells is None:
        return (0, evidence.rank.get(judgement.reader, 0), judgement.subject, 0)
    return (cells.fixture.size, evidence.readers.first(cells.readers).rank, cells.fixture.id, lowest(cells.readers))


def _bumps(evidence: Evidence, cells: Cells) -> Iterator[str]:
    """Yield the file format versions, between writer and readers, that announce a change of an operator of the fixture; "" for none."""
    has = cells.fixture.versions.get("file-format")
    used = {operator.partition(".")[0] for operator in cells.fixture.operators}
    left = evidence.readers.ranks(cells.readers)
    for entry in evidence.policy.formats:
        if not isinstance(entry.version, int) or entry.kind != "file-format" or has is None:
            continue
        if left and used.intersection(entry.operators or ()) and has < entry.version:
            before = left & ((1 << evidence.rank.get(entry.read_from.release, len(evidence.policy.calendar))) - 1)  # or planned
            if before != left:
                yield f"file format {entry.version}"
            left = before
    if left:
        yield ""
