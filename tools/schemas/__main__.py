"""``python -m tools.schemas [--pairs N] [--typos N] [--seed N]``: compare our schema parser with torch 2.13.0's own parser and checks.

Both read and print every recorded text. Both judge, backward and forward, every pair of schemas of an operator in two consecutive
releases, and 100,000 generated pairs; both read as many texts with typos (by default). Ends with 1 at the first disagreement, and prints
it. ``--list`` writes the list of schemas that 2.13.0 cannot read, by operator.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from tools.schemas import pairs, real
from torch_compat.operators.schema import Schema, SchemaError, parse
from torch_compat.readers.environments import Environments

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

UNREAD = Path(__file__).with_name("unread.txt")
BATCH = 20_000


class Disagreement(Exception):  # noqa: N818 - what it is
    """Our parser and 2.13.0 disagree about a text or a pair."""


def recorded() -> tuple[Counter[str], Counter[tuple[str, str]]]:
    """Read every recorded text with both: the counts of the results, and of operators that 2.13.0 cannot read, with the cause."""
    texts = [text for _, text in pairs.recorded()]
    counts: Counter[str] = Counter()
    unread: Counter[tuple[str, str]] = Counter()
    for text, theirs in zip(texts, real.ask(texts, [])["texts"], strict=True):
        mine = real.read(text)
        _raise(real.text_disagreement(text, theirs, mine))
        counts["schemas"] += 1
        counts["are printed as recorded"] += str(parse(text, recorded=True)) == text
        if isinstance(theirs, str):
            unread[operator(text), real.why_unread(text, theirs)] += 1
            counts["2.13.0 cannot read"] += 1
        else:
            counts["2.13.0 reads"] += 1
            counts["2.13.0 prints as recorded"] += theirs[0] == text
    return counts, unread


def operator(text: str) -> str:
    """The operator of a recorded text; for a method, including the class."""
    name, _, rest = text.partition("(")
    owner = rest.replace(",", " ").replace(")", " ").partition(" ")[0]
    return f"{owner}.{name}" if "::" not in name else name


def listing(unread: Counter[tuple[str, str]]) -> str:
    """The list of schemas that 2.13.0 cannot read."""
    lines = [f"{name}\t{count}\t{cause}" for (name, cause), count in sorted(unread.items())]
    head = "# What torch 2.13.0 cannot parse of the recorded schemas: operator, how many schemas, why. Written by tools.schemas --list"
    return "\n".join([head, *lines, ""])


def judged(wanted: Iterable[tuple[str, str]]) -> Counter[str]:
    """Judge pairs of (new, old) with both: the counts of the results. Schemas that 2.13.0 cannot read are counted separately."""
    couples = list(wanted)
    texts = sorted({text for couple in couples for text in couple})
    places = {text: at for at, text in enumerate(texts)}
    answers = real.ask(texts, [(places[new], places[old]) for new, old in couples])
    schemas: list[Schema | None] = []
    for text, theirs in zip(texts, answers["texts"], strict=True):
        mine = real.read(text)
        _raise(real.text_disagreement(text, theirs, mine))
        schemas.append(None if isinstance(mine, str) else mine)
    counts: Counter[str] = Counter()
    for (new, old), theirs in zip(couples, answers["pairs"], strict=True):
        if theirs is None:
            counts["2.13.0 cannot read"] += 1
            continue
        here, there = schemas[places[new]], schemas[places[old]]
        assert here is not None
        assert there is not None
        _raise(real.pair_disagreement(here, there, theirs))
        counts["judged"] += 1
        counts[f"backward {theirs[0]}"] += 1
        counts[f"forward {theirs[1]}"] += 1
    return counts


def follow() -> Counter[str]:
    """Pairs in consecutive releases; a pair of texts that occurs several times is judged once."""
    counts: Counter[str] = Counter()
    different: dict[tuple[str, str], None] = {}
    for couples in pairs.consecutive().values():
        counts["pairs of all releases"] += len(couples)
        different.update(dict.fromkeys(couples))
    return counts + judged(different)


def made(count: int, seed: int) -> Counter[str]:
    """Generate pairs until the given number was judged."""
    counts: Counter[str] = Counter()
    number = 0
    while counts["judged"] < count:
        size = min(BATCH, 2 * (count - counts["judged"]))
        counts += judged(pairs.generated(index, seed) for index in range(number, number + size))
        number += size
    return counts


def typos(count: int, seed: int) -> Counter[str]:
    """Read texts with typos: both have to accept or reject each; we also report the position."""
    counts: Counter[str] = Counter()
    for batch in pairs.batches(count, BATCH):
        texts = [pairs.typo(number, seed) for number in batch]
        for text, theirs in zip(texts, real.ask(texts, [])["texts"], strict=True):
            try:
                mine: Schema | str = parse(text)
            except SchemaError as error:
                mine = str(error)
                if not 1 <= error.column <= len(text) + 1:
                    raise Disagreement(
                        f"the error names column {error.column}, outside a schema of {len(text)} characters: {text!r}"
                    ) from error
            _raise(real.text_disagreement(text, theirs, mine))
            counts["refused" if isinstance(mine, str) else "accepted, because they are schemas"] += 1
            counts["accepted here; 2.13.0 lacks the custom class"] += isinstance(theirs, str) and not isinstance(mine, str)
    return counts


def _raise(text: str | None) -> None:
    if text is not None:
        raise Disagreement(text)


def _lines(counts: Counter[str]) -> Iterator[str]:
    for what, count in counts.items():
        yield f"  {count:9,} {what}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, print counts."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=100_000, help="number of generated pairs")
    parser.add_argument("--typos", type=int, default=100_000, help="number of schemas with typos")
    parser.add_argument("--seed", type=int, default=pairs.SEED)
    parser.add_argument("--list", action="store_true", help=f"write {UNREAD.name}")
    asked = parser.parse_args(arguments)
    if Environments().get(real.RELEASE) is None:
        print(f"torch-{real.RELEASE} is not built here (torch-compat readers build torch-{real.RELEASE})", file=sys.stderr)
        return 4
    try:
        counts, unread = recorded()
        print("recorded schemas", *_lines(counts), sep="\n", flush=True)
        if asked.list:
            UNREAD.write_text(listing(unread), encoding="utf-8")
        print("releases that follow each other, each operator with itself", *_lines(follow()), sep="\n", flush=True)
        print("generated pairs", *_lines(made(asked.pairs, asked.seed)), sep="\n", flush=True)
        print("typing errors", *_lines(typos(asked.typos, asked.seed)), sep="\n", flush=True)
    except Disagreement as disagreement:
        print(f"DISAGREEMENT\n{disagreement}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
