"""Match failures with waivers: which cells a waiver covers, which of them continue in a new release, and where it is not exact.

A waiver states by hand the recipes, writers, readers and load options of its cells; ``waivers.lock`` states what differs in each of
them. A failure is *waived* if both match. It *continues* if its writer, its reader or its recipe was not yet recorded when the lock
was written, the waiver applies to it, and the nearest recorded cell has the same difference.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, NamedTuple

from torch_compat.corpus.manifest import SYNTHETIC, release_folder
from torch_compat.judging.differences import Differences, digest_of_text
from torch_compat.judging.judgement import Verdict
from torch_compat.judging.readers import places
from torch_compat.policy.accepted import Accepted, Block, pack, toward
from torch_compat.releases.known import Known
from torch_compat.releases.release import Release
from torch_compat.releases.sets import ReleaseSet

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from torch_compat.judging.cell import Cells
    from torch_compat.judging.evidence import Evidence
    from torch_compat.judging.judgement import Judgement
    from torch_compat.policy.accepted import Direction
    from torch_compat.policy.model import Covers, Waiver

__all__ = ["Covered", "Part", "Waiving", "direction_of"]


class Part(NamedTuple):
    """A part of a failure, and how waivers apply to it.

    Attributes:
        judgement: with the remaining verdict.
        waiver: id of the waiver that covers it; "" if none does.
        near: id of a waiver that applies to these cells, but not to their difference; "" if there is none.
    """

    judgement: Judgement
    waiver: str = ""
    near: str = ""


@dataclass
class Covered:
    """What a waiver covered.

    Attributes:
        count: the number of judgements.
        cells: the readers, as bits by their positions among the recorded releases, by direction, outcome, options, digest, recipe and
            the position of the writer.
        shown: the first recorded cells of each outcome, options, recipe and digest: :meth:`Waiving.words` describes their difference.
        findings: the digests of the texts of findings that are not about cells.
        seen: the ids of all such findings that fail, whatever they say.
        shared: other waivers that overlap with it.
        touched: the parts of its ``covers`` that match a cell: by index, the recipes and writers.
        touching: the readers of these, as a set of them.
        failing: the readers of all failures that it applies to, whatever differs in them: by options, recipe and writer.
    """

    count: int = 0
    cells: dict[tuple[Direction, str, str, str, str, int], int] = field(default_factory=dict)
    shown: dict[tuple[str, str, str, str], Cells] = field(default_factory=dict)
    findings: dict[str, str] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    shared: set[str] = field(default_factory=set)
    touched: dict[int, tuple[set[str], set[str]]] = field(default_factory=dict)
    touching: dict[int, int] = field(default_factory=dict)
    failing: dict[tuple[str, str, str], int] = field(default_factory=dict)


def direction_of(cells: Cells) -> Direction:
    """The direction of cells, as in the lock."""
    return "forward" if cells.direction == "forward-in-window" else cells.direction


class Waiving:
    """Applies the waivers of a policy to some evidence.

    Attributes:
        covered: by waiver id.
        known: the recorded releases.
        later: whether some of what waivers cover came after the day of judging; the waivers then need not match all of it.
    """

    def __init__(self, evidence: Evidence) -> None:
        self.covered: dict[str, Covered] = {}
        policy = evidence.policy
        self._evidence = evidence
        self._accepted = policy.accepted
        self.known = recorded_releases(evidence)
        newest = policy.corpus.readers[-1:] if self._accepted is None else self._accepted.known.releases[-1:]
        calendar = policy.calendar
        self.later = any(release in calendar and calendar[release].date > evidence.as_of for release in newest)
        self._digests = Differences(evidence)
        self._known_places: dict[int, int] = {}
        self._failing: dict[tuple[str, str, str], int] = {}  # uncovered failing readers, by options, recipe and writer
        self._by_recipe: dict[tuple[str, str | None], list[tuple[Waiver, int, Covers]]] = {}  # and by outcome
        self._findings: dict[str, list[Waiver]] = {}
        self._spans: dict[str, int] = {}
        self._releases: dict[str, int] = {}  # the readers of each release
        for at, reader in enumerate(evidence.readers):
            self._releases[reader.release] = self._releases.get(reader.release, 0) | 1 << at
        accepted = () if self._accepted is None else self._accepted.known.releases
        self._places = [
            self._releases.get(release, 0) for release in accepted
        ]  # the same, by the position of the release in the lock
        self._in_lock = reduce(or_, self._places, 0)
        for waiver in policy.waivers:
            if waiver.expired(evidence.as_of):
                continue
            for index, covers in enumerate(waiver.covers or ()):
                for recipe in [None] if covers.recipes is None else dict.fromkeys(covers.recipes):
                    self._by_recipe.setdefault((covers.outcome, recipe), []).append((waiver, index, covers))
            for name in waiver.findings or ():
                self._findings.setdefault(name, []).append(waiver)

    # -------------------------------------------------------------------------------------------------------- cells

    def cells(self, judgement: Judgement, cells: Cells) -> list[Part]:
        """Split a failure of equivalent cells by the waiver that covers its readers."""
        fitting: dict[str, int] = {}
        named = 0  # the readers for which a waiver names the recipe: waivers without recipes do not apply to them
        for recipe in (cells.fixture.recipe, None):
            some = 0
            for waiver, index, covers in self._by_recipe.get((cells.outcome, recipe), ()):
                bits = cells.readers & self._span(covers) & ~named if self._is_for(covers, cells) else 0
                if bits:
                    some |= bits
                    fitting[waiver.id] = fitting.get(waiver.id, 0) | bits
                    self._touch(waiver, index, cells, bits)
            named = some
        if not fitting:
            self._fails(cells, cells.readers)
            return [Part(judgement)]
        parts: list[Part] = []
        left = cells.readers
        digest = self._digests.digest(cells)
        for name, wanted in fitting.items():
            place = self.covered[name]
            for other, bits in fitting.items():
                if other != name and bits & wanted:
                    place.shared.add(other)
            waived, continues = self._settled(name, cells, digest, wanted & left)
            for bits, verdict in ((waived, Verdict.WAIVED), (continues, Verdict.CONTINUES)):
                if bits:
                    parts.append(Part(_part(judgement, cells, bits, verdict), name))
                    place.count += bits.bit_count()
            self._note(name, cells, digest, waived | continues)
            left &= ~(waived | continues)
            new = wanted & left
            if new:
                parts.append(Part(_part(judgement, cells, new, judgement.verdict), "", name))
                left &= ~new
        if left:
            parts.append(Part(_part(judgement, cells, left, judgement.verdict)))
            self._fails(cells, left)
        return parts

    def _fails(self, cells: Cells, bits: int) -> None:
        place = (cells.options.id, cells.fixture.recipe, cells.fixture.release)
        self._failing[place] = self._failing.get(place, 0) | bits

    def _is_for(self, covers: Covers, cells: Cells) -> bool:
        """Whether a part of a waiver, already matched by outcome and recipe, applies to cells."""
        fixture = cells.fixture
        if covers.families is not None and fixture.family not in covers.families:
            return False
        if covers.says is not None and covers.says not in cells.message:
            return False
        if cells.options.id not in covers.options:
            return False
        if covers.synthetic or fixture.release == SYNTHETIC:
            return bool(covers.synthetic) and fixture.release == SYNTHETIC
        return covers.writers is not None and Release(fixture.release) in covers.writers

    def _span(self, covers: Covers) -> int:
        """The readers that a part of a waiver applies to."""
        text = str(covers.readers)
        if text not in self._spans:
            self._spans[text] = self._evidence.readers.where(lambda reader: Release(reader.release) in covers.readers)
        return self._spans[text]

    def _touch(self, waiver: Waiver, index: int, cells: Cells, bits: int) -> None:
        place, fixture = self.covered.setdefault(waiver.id, Covered()), cells.fixture
        recipes, writers = place.touched.setdefault(index, (set(), set()))
        recipes.add(fixture.recipe)
        writers.add(fixture.release)
        place.touching[index] = place.touching.get(index, 0) | bits
        cell = (cells.options.id, fixture.recipe, fixture.release)
        place.failing[cell] = place.failing.get(cell, 0) | bits

    def _settled(self, waiver: str, cells: Cells, digest: str, wanted: int) -> tuple[int, int]:
        """Those of some readers whose cells are in the lock, and those whose cells continue what is in the lock."""
        if self._accepted is None:
            return wanted, 0
        blocks = self._accepted.differences.get((waiver, cells.options.id, str(cells.outcome), digest), ())
        if not blocks:
            return 0, 0
        known, recipe = self._accepted.known, cells.fixture.recipe
        writer = self._place(known, cells.fixture.release)
        new_recipe = recipe not in self._accepted.recipes
        waived, new = 0, wanted
        if writer is not None and not new_recipe:
            direction, held = direction_of(cells), 0
            for block in blocks:
                if block.direction == direction and recipe in block.recipes:
                    held |= _held(block, writer, known)
            waived = wanted & self._readers_at(held)
            new = wanted & ~self._in_lock
        continues = 0
        for at in places(new):
            reader = self._evidence.readers.first(1 << at).release
            continues |= self._continues(blocks, cells, reader, new_recipe=new_recipe) << at
        return waived, continues

    def _readers_at(self, bits: int) -> int:
        """The readers of some releases in the lock."""
        return reduce(or_, map(self._places.__getitem__, places(bits)), 0)

    def _continues(self, blocks: Iterable[Block], cells: Cells, reader: str, *, new_recipe: bool) -> bool:
        """Whether a cell that cannot be in the lock has the difference of the nearest cell in the lock.

        The neighbor of a release is the newest recorded one that is not newer. If a writer and a reader thus become the same release, the
        release before it is also tried for either of them.
        """
        assert self._accepted is not None  # noqa: S101 - checked by the caller
        known = self._accepted.known
        writer, place = (self._neighbour(known, release) for release in (cells.fixture.release, reader))
        pairs = {(writer, place)}
        if writer == place and cells.direction != "own":
            pairs |= {(writer - (writer > 0), place), (writer, place - (place > 0))}
        recipe = cells.fixture.recipe
        return any(
            (new_recipe or recipe in block.recipes) and _held(block, wrote, known) >> read & 1
            for block in blocks
            for wrote, read in pairs
        )

    @staticmethod
    def _place(known: Known, writer: str) -> int | None:
        return -1 if writer == SYNTHETIC else known.place(writer) if writer in known else None

    @staticmethod
    def _neighbour(known: Known, release: str) -> int:
        return -1 if release == SYNTHETIC else known.newest(Release(release)) or 0

    def _note(self, waiver: str, cells: Cells, digest: str, bits: int) -> None:
        """Record the recorded cells that a waiver covers."""
        recorded = bits & self._evidence.readers.recorded
        writer = self._place(self.known, cells.fixture.release)
        readers = self._recorded_at(recorded)
        if not readers or writer is None:
            return
        place = self.covered[waiver]
        recipe, outcome, options = cells.fixture.recipe, str(cells.outcome), cells.options.id
        key = (direction_of(cells), outcome, options, digest, recipe, writer)
        place.cells[key] = place.cells.get(key, 0) | readers
        if (outcome, options, recipe, digest) not in place.shown:
            place.shown[outcome, options, recipe, digest] = (
                cells if recorded == cells.readers else replace(cells, readers=recorded)
            )

    def _recorded_at(self, bits: int) -> int:
        """The positions of some recorded readers among the recorded releases."""
        if bits not in self._known_places:
            self._known_places[bits] = self.known.holding({reader.release for reader in self._evidence.readers.of(bits)})
        return self._known_places[bits]

    def words(self, waiver: str, outcome: str, options: str, recipe: str, digest: str) -> tuple[tuple[str, ...], str] | None:
        """Descriptions of what differs in the recorded cells of a waiver, and the command that shows it; None if it has no such cells."""
        cells = self.covered[waiver].shown.get((outcome, options, recipe, digest)) if waiver in self.covered else None
        if cells is None:
            return None
        told = "" if options == "default" else f" --options {options}"
        release = self._evidence.readers.first(cells.readers).release
        show = f"torch-compat observe --reader torch-{release} --fixture {cells.fixture.id}{told} --show --recorded"
        return self._digests.in_words(cells), show

    # ----------------------------------------------------------------------------------------------------- findings

    def finding(self, judgement: Judgement, name: str) -> Part:
        """Apply waivers to a failure that is not about cells."""
        fitting = self._findings.get(name, [])
        if not fitting or judgement.cause is None:
            return Part(judgement)
        digest = digest_of_text(judgement.cause.text)
        chosen = fitting[0].id
        place = self.covered.setdefault(chosen, Covered())
        place.seen.add(name)
        for waiver in fitting[1:]:
            place.shared.add(waiver.id)
            self.covered.setdefault(waiver.id, Covered()).shared.add(chosen)
        # On an earlier day a finding says less than what was accepted: that something is late, not yet when it was removed.
        known = None if self._accepted is None else self._accepted.findings.get((chosen, name), "")
        if known is not None and known != digest and not (known and self.later):
            return Part(judgement, "", chosen)
        place.findings[name] = digest
        place.count += judgement.count
        recorded = self._accepted.known.parsed if self._accepted is not None else ()
        new = bool(recorded) and bool(judgement.reader) and Release(judgement.reader) > recorded[-1]
        return Part(replace(judgement, verdict=Verdict.CONTINUES if new else Verdict.WAIVED), chosen)

    # ------------------------------------------------------------------------------------------------------- exact

    def accepted(self) -> Accepted:
        """What was covered, in the form of the lock.

        If there is a lock, it is extended by what continues. Entries that no longer exist stay until somebody accepts their removal.
        """
        cells = {(waiver, *key): readers for waiver, place in self.covered.items() for key, readers in place.cells.items()}
        findings = {(waiver, name): digest for waiver, place in self.covered.items() for name, digest in place.findings.items()}
        if self._accepted is not None:
            waivers = {waiver.id for waiver in self._evidence.policy.waivers}
            for key, readers in self._accepted.cells_among(self.known, waivers).items():
                cells[key] = cells.get(key, 0) | readers
            findings |= {key: digest for key, digest in self._accepted.findings.items() if key[0] in waivers}
        recipes = frozenset(fixture.recipe for fixture in self._evidence.corpus.fixtures.values())
        return Accepted(self.known, recipes, pack(cells, self.known), findings)

    def gone(self) -> Iterator[tuple[str, str, str, str, str]]:
        """Yield cells that waivers apply to, but that no longer fail: waiver, options, recipe, writer and reader.

        These are cells of the lock, and cells of releases missing from the lock whose nearest cell is in it.
        """
        if self._accepted is None:
            return
        known = self._accepted.known
        observed = self._observed()
        boxes = {waiver.id: waiver for waiver in self._evidence.policy.waivers if not waiver.expired(self._evidence.as_of)}
        readers = [item for item in dict.fromkeys(reader.release for reader in self._evidence.readers) if item not in known]
        writers = {fixture.release for fixture in self._evidence.corpus.fixtures.values()} - {*known.releases, SYNTHETIC}
        newer: dict[int, list[str]] = {}  # writers that are not in the lock, by the position of their neighbor
        for release in sorted(writers, key=Release):
            newer.setdefault(self._neighbour(known, release), []).append(release)
        for (name, options, recipe, writer), bits in self._accepted.cells.items():
            if name not in boxes:
                continue
            wrote = SYNTHETIC if writer < 0 else known.releases[writer]
            expected = [(wrote, known.releases[place]) for place in places(bits)]
            for reader in readers:
                near = self._neighbour(known, reader)
                if bits >> near & 1 and near != writer:
                    expected.append((wrote, reader))
            for release in newer.get(writer, ()):
                expected += [(release, known.releases[at]) for at in places(bits & toward("forward", writer, known.everyone))]
                expected += [(release, release)] if bits >> writer & 1 else []
            failing = self.covered[name].failing if name in self.covered else {}
            for wrote, reader in expected:
                place = (options, recipe, wrote)
                old = (wrote == SYNTHETIC or wrote in known) and reader in known
                of = self._releases.get(reader, 0)
                if (failing.get(place, 0) | self._failing.get(place, 0)) & of:
                    continue  # still failing, or already reported as a different failure
                if not (old or observed.get(place, 0) & of):
                    continue
                if old or any(_is_for_release(covers, options, recipe, wrote, reader) for covers in boxes[name].covers or ()):
                    yield name, options, recipe, wrote, reader

    def _observed(self) -> dict[tuple[str, str, str], int]:
        """The readers of each cell, by options, recipe and writer."""
        results: dict[tuple[str, str, str], int] = {}
        for cells in self._evidence.cells:
            key = (cells.options.id, cells.fixture.recipe, cells.fixture.release)
            results[key] = results.get(key, 0) | cells.readers
        return results

    def corners(self, waiver: Waiver) -> Iterator[str]:
        """Describe what a waiver states but no cell has."""
        scope, corpus = self._evidence.policy.corpus, self._evidence.corpus
        known = {reader.release for reader in self._evidence.readers}
        asked = [release for release in scope.readers if release in known]  # other rules report missing readers
        place = self.covered.get(waiver.id, Covered())
        for index, covers in enumerate(waiver.covers or ()):
            recipes, writers = place.touched.get(index, (set(), set()))
            if not recipes:
                yield f"part {index + 1} of its `covers` does not match any cell"
                continue
            for name in covers.recipes or ():
                if name not in recipes:
                    yield f"names the recipe {name}, which has no such cell"
            wrote = [
                release
                for release in scope.writers
                if any(f"{release_folder(release)}/{recipe}" in corpus.fixtures for recipe in recipes)
            ]
            if covers.writers is not None:
                yield from _ends("written by", covers.writers, writers, scope.writers, wrote)
            readers = {reader.release for reader in self._evidence.readers.of(place.touching[index])}
            yield from _ends("read by", covers.readers, readers, asked, asked)
        for name in waiver.findings or ():
            if name not in place.seen:
                yield f"names {name!r}, but no failing finding has this id"


def _ends(what: str, stated: ReleaseSet, value: set[str], every: Iterable[str], able: Iterable[str]) -> Iterator[str]:
    """Describe the ends of a set that no cell has. An open set ends with the newest release that could have one.

    Parameters:
        every: the releases of the corpus.
        able: those of them that wrote or read such an archive.
    """
    for interval in stated.intervals:
        span = ReleaseSet([interval])
        inside, could = ([entry for entry in some if Release(entry) in span] for some in (every, able))
        ends = []
        if interval.first is not None:
            ends += inside[:1]
        ends += inside[-1:] if interval.last is not None else could[-1:]
        if not inside:
            yield f"is for cells {what} {interval}, but the corpus has no release in this range"
        for item in dict.fromkeys(ends):
            if item not in value:
                yield f"is for cells {what} {interval}, but none is {what} {item}"


def _is_for_release(covers: Covers, options: str, recipe: str, writer: str, reader: str) -> bool:
    """Whether a part of a waiver applies to a cell, whatever its outcome."""
    wrote = bool(covers.synthetic) if writer == SYNTHETIC else covers.writers is not None and Release(writer) in covers.writers
    return (
        wrote
        and options in covers.options
        and (covers.recipes is None or recipe in covers.recipes)
        and Release(reader) in covers.readers
    )


def _held(block: Block, writer: int, known: Known) -> int:
    """The readers of the cells of a writer in a block."""
    if writer < 0 or block.writers < 0:
        return block.readers if writer < 0 and block.writers < 0 else 0
    return block.readers & toward(block.direction, writer, known.everyone) if block.writers >> writer & 1 else 0


def _part(judgement: Judgement, cells: Cells, bits: int, verdict: Verdict) -> Judgement:
    return replace(judgement, verdict=verdict, cells=cells if bits == cells.readers else replace(cells, readers=bits))


def recorded_releases(evidence: Evidence) -> Known:
    """The releases with recorded fixtures or observations, oldest first."""
    results = {reader.release for reader in evidence.readers if reader.recorded}
    results |= {fixture.release for fixture in evidence.corpus.fixtures.values() if fixture.release in evidence.policy.calendar}
    return Known(sorted(results, key=evidence.rank.__getitem__))
