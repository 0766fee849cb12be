"""``reports/backtest.md``: what ``torch-compat candidate`` would have reported for each minor release on the day before it.

Candidate items about the same fact form one :class:`Fact`. ``reports/backtest/`` contains labels of facts (real or noise) by a person
who did not write the classifier, and what PyTorch did about the facts: see :class:`BacktestNotes`.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, Final

from torch_compat.errors import CorpusError
from torch_compat.judging.cell import Outcome
from torch_compat.releases.data import parsed
from torch_compat.releases.release import Release
from torch_compat.values.normalise import alike
from torch_compat.words import count_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from torch_compat.report.candidate import CandidateItem

__all__ = [
    "FEW",
    "LABELS",
    "BacktestNotes",
    "Backtested",
    "DrawnFact",
    "Fact",
    "Label",
    "backtest_md",
    "drawn",
    "drawn_md",
    "facts_of",
    "held",
    "read_hand",
    "section",
]

SEED: Final = 18
LABELS: Final = 100
"""Number of facts to label."""
FEW: Final = 10
"""The number of facts below which a release may have at most :data:`MOST_OF_FEW` noisy facts."""
MOST_OF_FEW: Final = 2
MOST_IN_ALL: Final = 10
"""At most one fact in this many may be noise."""
TURNS: Final = frozenset({"raises", "accepts", "words", *Outcome})
"""Text before the subject of an item."""
SAYS: Final = ("real", "noise")
DONE: Final = ("reverted", "patched", "documented", "announced")
"""What PyTorch did about a change: reverted it, fixed it in a patch release, documented it, or had announced it before."""
WHATS: Final = {
    "computes": "computes", "loads": "loads", "warns": "warns", "writes": "writes", "operator": "operators", "deprecation": "deprecation",
    "probe": "probe", "own": "own archives", "older reader": "read by the older",
}  # fmt: skip


@dataclass(frozen=True)
class Fact:
    """Candidate items about the same fact.

    Attributes:
        id: the id of the first item, which is stable as long as the classifier groups in the same way.
        what, cause, policy, witness: those of the first item.
        before, after: what the two releases did with the witness.
        count: cells, operators or recipes of all items.
        items: the ids of the items.
    """

    id: str
    what: str
    cause: str
    policy: str
    witness: str
    before: str
    after: str
    count: int
    items: tuple[str, ...]


@dataclass(frozen=True)
class Backtested:
    """What candidate would have reported for one release.

    Attributes:
        release: its version.
        day: its date; only the records of older releases were known.
        base: the reader that it is compared with.
        name: the release as a reader.
        cells: the number of cells that it read.
        facts: the new facts, most severe first.
        mended, known, reworded, unasked: numbers of items.
        gone: by the id of a fact, the first later release that returns its witness as it was written; "" if there is none.
        unnamed: changes known today for the release, for operators that no item covers.
    """

    release: str
    day: str
    base: str
    name: str
    cells: int
    facts: tuple[Fact, ...]
    mended: int
    known: int
    reworded: int
    unasked: int
    gone: Mapping[str, str] = field(default_factory=dict)
    unnamed: tuple[str, ...] = ()


def facts_of(items: Sequence[CandidateItem]) -> tuple[Fact, ...]:
    """Group items about one fact: of one recipe or message, of one deprecated feature, or of operators that changed in the same way."""
    groups: list[list[CandidateItem]] = []
    place: dict[tuple[str, ...], int] = {}
    for item in items:
        keys = list(_keys(item))
        known = sorted({place[key] for key in keys if key in place})
        at = known[0] if known else len(groups)
        if not known:
            groups.append([])
        for other in known[1:]:
            groups[at] += groups[other]
            groups[other] = []
            place.update({key: at for key, where in place.items() if where == other})
        groups[at].append(item)
        place.update(dict.fromkeys(keys, at))
    return tuple(_fact(group) for group in groups if group)


def _fact(items: list[CandidateItem]) -> Fact:
    first = items[0]
    cause = first.cause
    if first.what == "operator" and len(items) > 1:
        cause += f"; and {len(items) - 1} more operators"
    count = sum(item.count for item in items)
    return Fact(
        first.id,
        first.what,
        cause,
        first.policy,
        first.witness,
        first.before,
        first.after,
        count,
        tuple(item.id for item in items),
    )


def _keys(item: CandidateItem) -> Iterator[tuple[str, ...]]:
    """Keys of the fact that an item is about. Items that share a key belong to the same fact."""
    kind, _, rest = item.id.partition(":")
    if item.what == "operator":
        yield "operators", item.witness.partition("::")[0], item.id.rpartition(":")[2]
    elif item.what == "deprecation":
        yield "deprecation", item.witness
        if ", warns: " in item.after:
            yield "text", alike(item.after.partition(", warns: ")[2])
    elif item.what == "warns":
        yield "text", rest.partition(":")[2].partition(":")[2]
    elif item.what == "probe":
        yield "probe", item.witness
    elif kind == "writes" and rest.startswith("version:"):
        yield from (("version", part.split()[0]) for part in rest.removeprefix("version:").split(", "))
    elif kind == "writes" and not rest.startswith("golden:"):
        yield "text", alike(item.after.partition(": ")[2]) or rest
    else:
        message = rest.removeprefix("golden:")
        yield "text", (message.partition(":")[2] if message.partition(":")[0] in TURNS else message)


# --------------------------------------------------------------------------------------------------------- what people say


@dataclass(frozen=True)
class Label:
    """The label of one fact: ``real`` or ``noise``, with the reason."""

    release: str
    fact: str
    says: str
    why: str


@dataclass(frozen=True)
class Fate:
    """What PyTorch did about a fact: one of :data:`DONE`, since which release, and the source."""

    release: str
    fact: str
    done: str
    text: str
    source: str


@dataclass(frozen=True)
class BacktestNotes:
    """The hand-written notes for the report: labels, and the fate of facts."""

    labels: tuple[Label, ...] = ()
    fates: tuple[Fate, ...] = ()


def read_hand(labels: bytes | None, fates: bytes | None) -> BacktestNotes:
    """The tables of ``reports/backtest/labels.toml`` and ``fates.toml``, if they exist.

    Raises:
        PolicyError: one of them is not TOML.
        CorpusError: one of them does not have the expected form.
    """
    return BacktestNotes(
        tuple(Label(**row) for row in _rows(labels, "labels.toml", "label", Label)),
        tuple(Fate(**row) for row in _rows(fates, "fates.toml", "fate", Fate)),
    )


def _rows(data: bytes | None, name: str, table: str, kind: type[Label | Fate]) -> list[dict[str, str]]:
    where = f"reports/backtest/{name}"
    if data is None:
        return []
    try:
        document: dict[str, Any] = parsed(data.decode("utf-8"), where)
    except UnicodeDecodeError as error:
        raise CorpusError(f"is not UTF-8: {error}", where=where) from error
    rows = document.get(table, [])
    wanted = kind.__dataclass_fields__.keys()
    if document.keys() - {table} or not isinstance(rows, list):
        raise CorpusError(f"has {sorted(document)}, expected only [[{table}]]", where=where)
    for number, row in enumerate(rows, 1):
        if row.keys() != wanted or not all(isinstance(value, str) and value for value in row.values()):
            raise CorpusError(f"[[{table}]] {number} has {sorted(row)}, expected the strings {', '.join(wanted)}", where=where)
        allowed, message = (SAYS, row.get("says")) if kind is Label else (DONE, row.get("done"))
        if message not in allowed:
            raise CorpusError(f"[[{table}]] {number} has {message!r}, expected one of {', '.join(allowed)}", where=where)
    return rows


@dataclass(frozen=True)
class DrawnFact:
    """A fact to be labeled."""

    release: str
    fact: Fact

    @property
    def key(self) -> tuple[str, str]:
        """The key of its label."""
        return self.release, self.fact.id


def drawn(value: Iterable[Backtested]) -> tuple[DrawnFact, ...]:
    """The facts to be labeled: all facts of releases with few, since their limit counts each one, and a seeded sample of the others.

    The sample is the facts with the lowest digests of the seed and their names, so an added fact replaces at most one.
    """
    few = [DrawnFact(backtest.release, fact) for backtest in value if len(backtest.facts) < FEW for fact in backtest.facts]
    rest = [DrawnFact(backtest.release, fact) for backtest in value if len(backtest.facts) >= FEW for fact in backtest.facts]
    rest.sort(key=lambda item: hashlib.sha256(json.dumps([SEED, *item.key]).encode()).digest())
    some = [*few, *rest[: max(0, LABELS - len(few))]]
    Random(SEED).shuffle(some)  # noqa: S311 - so that the order of releases does not suggest an answer
    return tuple(some[:LABELS])


def held(value: Sequence[Backtested], hand: BacktestNotes) -> tuple[list[str], list[str]]:
    """The limits that the labels violate, in words; and inconsistencies, such as facts not labeled, or labeled but not drawn."""
    wanted = {fact.key for fact in drawn(value)}
    messages = {(label.release, label.fact): label.says for label in hand.labels}
    facts = {(item.release, fact.id) for item in value for fact in item.facts}
    odd = [f"{release} {fact} is labeled, but was not drawn" for release, fact in sorted(messages.keys() - wanted)]
    odd += [f"{release} {fact} was drawn, but is not labeled" for release, fact in sorted(wanted - messages.keys())]
    if len(messages) < len(hand.labels):
        odd.append(f"{count_of(len(hand.labels) - len(messages), 'fact is labeled', 'facts are labeled')} twice")
    odd += [
        f"{fate.release} {fate.fact} has a fate, but is not a fact"
        for fate in hand.fates
        if (fate.release, fate.fact) not in facts
    ]
    broken = []
    noise = [key for key, says in messages.items() if key in wanted and says == "noise"]
    asked = len(messages.keys() & wanted)
    if len(noise) * MOST_IN_ALL > asked:
        broken.append(f"{len(noise)} of {asked} labeled facts are noise, expected at most one in {MOST_IN_ALL}")
    for backtest in value:
        mine = [key for key in noise if key[0] == backtest.release]
        if len(backtest.facts) < FEW and len(mine) > MOST_OF_FEW:
            broken.append(
                f"{len(mine)} of the {count_of(len(backtest.facts), 'fact')} of {backtest.release} are noise, expected at most {MOST_OF_FEW}"
            )
    return broken, odd


# ------------------------------------------------------------------------------------------------------------------ text


def backtest_md(value: Sequence[Backtested], hand: BacktestNotes) -> str:
    """The whole report."""
    broken, odd = held(value, hand)
    total = sum(len(item.facts) for item in value)
    lines = [
        "# Backtest",
        "",
        "Generated by `python tools/backtest.py --write`; do not edit.",
        "",
        "For each minor release: what `torch-compat candidate` would have reported the day before. It uses the same classifier.",
        "Its input is the recorded observations of the release, in place of a build, and only what was known before: no release, archive,",
        "observation, survey, recipe, policy entry or lock file line that mentions the release or a later one, or applies only from then on. Recipes",
        "are the current ones, even for old releases. Most release lines are represented by their newest patch release.",
        "",
        "*New* counts facts: items of one recipe or message, of one deprecated feature, or of operators that changed in the same way count as one fact.",
        "*Known today, not reported*: changes that the policy lists for the release, but that no item covers.",
        "",
        *_limits(value, hand, broken, odd, total),
        "",
        "| release | compared with | day | cells | new | breaks a promise | fixed | noise, of labeled | known today, not reported |",
        "|---|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for backtest in value:
        mine = [label for label in hand.labels if label.release == backtest.release]
        noise = f"{sum(label.says == 'noise' for label in mine)} of {len(mine)}" if mine else "-"
        grave = sum(fact.policy == "breaks" for fact in backtest.facts)
        lines.append(
            f"| [{backtest.release}](#{backtest.release.replace('.', '')}) | {backtest.base} | {backtest.day} | {backtest.cells} | {len(backtest.facts)} | {grave} | {backtest.mended} "
            f"| {noise} | {len(backtest.unnamed)} |"
        )
    for backtest in value:
        lines += ["", section(backtest, hand).rstrip("\n")]
    return "\n".join(lines) + "\n"


def _limits(value: Sequence[Backtested], hand: BacktestNotes, broken: list[str], odd: list[str], total: int) -> Iterator[str]:
    wanted = drawn(value)
    few = sum(len(backtest.facts) < FEW for backtest in value)
    yield f"Total: {count_of(total, 'fact')} from {count_of(len(value), 'release')}, {few} of which have fewer than {FEW}."
    if not hand.labels:
        yield (
            f"The false-alarm rate is not known yet: {count_of(len(wanted), 'fact was sampled', 'facts were sampled')} ([drawn.md](backtest/drawn.md)), but nobody has labeled them by the"
        )
        yield "[rubric](backtest/rubric.md)."
        return
    noise = sum(label.says == "noise" for label in hand.labels)
    yield f"A reader who did not write the classifier labeled {len(hand.labels)} of them by the [rubric](backtest/rubric.md): {noise} are noise."
    yield from (f"Not within the limits: {item}." for item in broken)
    if odd:
        yield f"The labels do not match the facts: {count_of(len(odd), 'fact')}, such as {odd[0]}."


def section(backtest: Backtested, hand: BacktestNotes) -> str:
    """The section of the report about one release."""
    labels = {label.fact: label for label in hand.labels if label.release == backtest.release}
    fates: dict[str, list[Fate]] = {}
    for fate in hand.fates:
        if fate.release == backtest.release:
            fates.setdefault(fate.fact, []).append(fate)
    counts = f"{backtest.mended} fixed, {count_of(backtest.known, 'cell')} already known, {backtest.reworded} reworded errors, {backtest.unasked} not checked"
    lines = [
        f"## {backtest.release}",
        "",
        f"{backtest.name} compared with {backtest.base}: {len(backtest.facts)} new; {counts}.",
    ]
    if backtest.unnamed:
        lines += ["", f"Known today, not reported: {', '.join(backtest.unnamed)}."]
    if backtest.facts:
        lines += ["", "| new | fact | policy | witness | cells | label | outcome |", "|---|---|---|---|---:|---|---|"]
    for fact in backtest.facts:
        label = labels.get(fact.id)
        became = [f"{fate.done}: {_cell(fate.text)} ([source]({fate.source}))" for fate in fates.get(fact.id, ())]
        if gone := backtest.gone.get(fact.id):
            became.append(f"gone when written again with {gone}")
        lines.append(
            f"| {WHATS.get(fact.what, fact.what)} | {_cell(fact.cause)} | {fact.policy} | `{fact.witness}` | {fact.count} "
            f"| {label.says if label else ''} | {'; '.join(became)} |"
        )
    return "\n".join(lines) + "\n"


LONGEST: Final = 220


def _cell(text: str) -> str:
    """Text for a table cell: on one line, shortened, and with Markdown escaped."""
    line = " ".join(text.split())
    line = line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"
    for sign in "\\|*_[]<>`":
        line = line.replace(sign, f"\\{sign}")
    return line


def drawn_md(value: Sequence[Backtested]) -> str:
    """The facts to be labeled, with everything needed for that, and without any verdict of the classifier."""
    bases = {backtest.release: backtest for backtest in value}
    lines = [
        "# Facts to label",
        "",
        "Generated by `python tools/backtest.py --write`; do not edit. The [rubric](rubric.md) says how to label. Write each label into",
        "`labels.toml` beside this file, with the release and the fact exactly as shown here.",
    ]
    for number, item in enumerate(drawn(value), 1):
        fact, of = item.fact, bases[item.release]
        options = fact.witness.partition(" (")[2].rstrip(")")
        name = fact.witness.partition(" (")[0]
        lines += [
            "",
            f"## {number}. {item.release}: {_cell(fact.cause)}",
            "",
            f"- Release: `{item.release}`",
            f"- Fact: `{fact.id}`",
            f"- {WHATS.get(fact.what, fact.what).capitalize()}; {fact.count} in all; witness `{fact.witness}`",
            f"- {of.base}: {_cell(fact.before) or 'as recorded'}",
            f"- {of.name}: {_cell(fact.after) or 'as recorded'}",
        ]
        if fact.what in {"computes", "loads", "warns"}:
            more = f" --options {options}" if options else ""
            for reader in (Release(of.base.partition("torch-")[2]).public, item.release):
                lines.append(f"- `torch-compat observe --recorded --show --reader torch-{reader} --fixture {name}{more}`")
    return "\n".join(lines) + "\n"
