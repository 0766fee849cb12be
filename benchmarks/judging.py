"""Judge what the repository may hold in ten years: 200 recipes written by 150 releases, each archive read by all of them.

    python benchmarks/judging.py

The policy is the repository's own, its calendar continued to 150 releases. What readers did is made up in the proportions of what is
recorded today: four or five different observations of an archive under one set of load options, each of a span of readers. It is handed to
judging as sets of readers, so that neither files nor cells by themselves are measured. It is judged once to see what fails, then again with
a waiver for every tenth of these causes, all of whose differences were accepted. Prints the seconds of the second judging and the memory of the whole process.
"""

from __future__ import annotations

import datetime as dt
import random
import resource
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from torch_compat.cli._root import Root
from torch_compat.cli.judge import uncollected
from torch_compat.corpus.corpus import Corpus
from torch_compat.corpus.lines import digest
from torch_compat.corpus.manifest import EXTENSIONS, Fixture, Manifest
from torch_compat.corpus.observations import Observation, ObservedReader
from torch_compat.corpus.recipes import Recipe
from torch_compat.policy.model import CalendarRelease, CorpusScope, Covers, Waiver
from torch_compat.releases.calendar import Calendar
from torch_compat.rules.evidence import Evidence
from torch_compat.rules.judge import judge, measure
from torch_compat.values.compare import Difference

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from torch_compat.policy import OptionSet, Policy
    from torch_compat.rules.judge import Report

ROOT = Path(__file__).parents[1]
RELEASES, RECIPES = 150, 200
FAMILIES = {"torchscript": 93, "torch-save": 74, "mobile": 18, "package": 12, "export": 3}  # recipes
RESULTS = {"same": 62, "refused": 27, "differs": 5, "crashed": 4, "raised": 1, "relaxed": 1}  # in hundredths of all cells
SPANS = (1, 2, 3, 4, 5, 6, 10)  # of readers that did something else, under one set of options
MESSAGES = 80
CALL = {"method": "forward", "args": []}
Line = list[tuple[int, "dict[str, Any]"]]  # the first reader of each span, and what it did


@dataclass(frozen=True)
class Scaled(Evidence):
    """Evidence that is handed over as sets of readers."""

    def lines(self) -> Iterator[tuple[Fixture, OptionSet, list[tuple[Observation, int]]]]:
        """What the recipe's readers did, with a span of another outcome in every third archive."""
        outcomes, chance = _outcomes(), random.Random(1)
        known: dict[tuple[str, str], Line] = {}
        loads = {family: [(options, self._having(family, options)) for options in self.policy.options] for family in FAMILIES}
        for fixture in sorted(self.corpus.fixtures.values(), key=lambda fixture: fixture.id):
            for options, having in loads[fixture.family]:
                if not having:
                    continue
                place = (fixture.recipe, options.id)
                if place not in known:
                    known[place] = _spans(chance, outcomes, chance.choice(SPANS))
                line = known[place]
                if chance.random() < 0.3:
                    line = sorted([*line, *_spans(chance, outcomes, 1, chance.randrange(1, RELEASES))], key=lambda span: span[0])
                found: list[tuple[Observation, int]] = []
                for (first, body), (after, _) in zip(line, [*line[1:], (RELEASES, {})], strict=True):
                    bits = having & ((1 << after) - (1 << first))
                    if bits:
                        found.append((Observation(fixture.id, options.id, "", **body), bits))
                yield fixture, options, found

    def _having(self, family: str, options: OptionSet) -> int:
        """The readers that read archives of a family with these options: those of the calendar, in its order."""
        since = self.rank[options.since] if options.since else 0
        return (1 << RELEASES) - (1 << since) if family in options.families else 0


def _spans(chance: random.Random, outcomes: dict[str, list[dict[str, Any]]], count: int, first: int = 0) -> Line:
    starts = sorted({first, *(chance.randrange(1, RELEASES) for _ in range(count - 1))})
    results = chance.choices(list(RESULTS), list(RESULTS.values()), k=len(starts))
    return [(start, chance.choice(outcomes[result])) for start, result in zip(starts, results, strict=True)]


def _outcomes() -> dict[str, list[dict[str, Any]]]:
    """What readers may do, by result."""
    far: dict[str, Any] = {"kind": "value", "dtype": "float32", "count": 1, "frontier": [[1.0, 99]]}
    near, raised, relaxed = {**far, "frontier": [[1e-8, 1]]}, {**far, "kind": "raised"}, {**far, "kind": "relaxed"}
    shown = (Difference("value", "calls[0].first.value", "float32", {"expected": 1.0, "got": 2.0}),)
    errors = [
        ({"type": "builtins.RuntimeError", "message": f"cause {index:02d}x: operator is unknown"},) for index in range(MESSAGES)
    ]
    numbers = range(MESSAGES)
    return {
        "same": [{"result": "same", "warnings": (("UserWarning", str(number)),) if number else ()} for number in range(3)],
        "refused": [{"result": "refused", "errors": error} for error in errors],
        "differs": [
            {"result": "differs", "count": 1, "digest": f"{number:016x}", "extent": (near if number % 3 else far,), "differences": shown}
            for number in numbers
        ],
        "crashed": [
            {"result": "crashed", "signal": "SIGSEGV", "stage": ("load", "call")[number % 2], "errors": error}
            for number, error in zip(numbers, errors, strict=True)
        ],
        "raised": [{"result": "raised", "count": 1, "digest": "1" * 16, "errors": error, "extent": (raised,)} for error in errors],
        "relaxed": [{"result": "relaxed", "count": 1, "extent": (relaxed,)}],
    }  # fmt: skip


def _policy() -> Policy:
    """The repository's, with releases to come: six a year, every one a writer and a reader."""
    policy = Root(ROOT).policy()
    releases = list(policy.calendar)
    newest = releases[-1]
    for index in range(RELEASES - len(releases)):
        version, date = f"{newest.parsed.numbers[0] + 1}.{index}.0", newest.date + dt.timedelta(days=60 * (index + 1))
        releases.append(
            CalendarRelease.model_validate({**newest.model_dump(exclude_none=True), "version": version, "date": date})
        )
    versions = tuple(release.version for release in releases)
    scope = CorpusScope(writers=versions, readers=versions)
    return replace(policy, calendar=Calendar(releases), corpus=scope, waivers=(), accepted=None)


def _corpus(policy: Policy) -> Corpus:
    families = [family for family, count in FAMILIES.items() for _ in range(count)]
    chance = random.Random(2)
    recipes = [(f"recipe_{index:03d}", family, chance.randrange(300, 9000)) for index, family in enumerate(families)]
    golden: dict[str, Any] = {"calls": []}
    manifests = []
    for place, release in enumerate(policy.calendar):
        fixtures = tuple(
            Fixture(
                release.version, name, digest(name), f"{name}{EXTENSIONS[family]}", f"{place:032x}{number:032x}", size + place, "c" * 64,
                "writer", "2026-01-01", family, "zip", {"file-format": min(1 + place // 20, 10)}, ["aten::div.Tensor"] if number % 9 == 0 else [],
                [CALL], golden, "same",
            )
            for number, (name, family, size) in enumerate(recipes)
        )  # fmt: skip
        manifests.append(Manifest(release.version, {}, fixtures, ()))
    first = next(iter(policy.calendar)).version
    files = tuple(
        Recipe(name, Path(f"{name}.py"), digest(name), "An idea.", family, (), first, None, "so") for name, family, _ in recipes
    )
    return Corpus(Path("fixtures"), files, (), tuple(manifests), ())


def _waived(evidence: Evidence, report: Report) -> Policy:
    """The policy with a waiver for every tenth cause that fails, and what these cover accepted."""
    failing = {finding.id: finding for finding in report.findings if finding.verdict == "fail" and finding.recipes}
    rest: dict[str, Any] = {"reason": "so", "evidence": "seen", "owner": "us"}
    waivers = tuple(
        Waiver(
            id=f"w{index}",
            title="It is known",
            covers=(
                Covers.model_validate({
                    "outcome": finding.what,
                    "recipes": finding.recipes,
                    "writers": f"{finding.writers[0]}..{finding.writers[-1]}",
                    "readers": f"{finding.readers[0]}..{finding.readers[-1]}",
                    "options": (finding.options,),
                }),
            ),
            **rest,
        )
        for index, (_, finding) in enumerate(sorted(failing.items())[::10])
    )  # fmt: skip
    policy = replace(evidence.policy, waivers=waivers, accepted=None)
    return replace(policy, accepted=measure(replace(evidence, policy=policy)).waiving.accepted())


def main() -> None:
    policy = _policy()
    names = [release.name for release in policy.calendar]
    readers = {name: ObservedReader(name, {"torch": name}, "2026-01-01", 1, {}, {}) for name in names}
    last = list(policy.calendar)[-1].date
    with uncollected():
        evidence = Scaled(policy, _corpus(policy), readers, {}, last, files=dict.fromkeys(names, "0" * 64))
        before = judge(evidence)
        evidence = replace(evidence, policy=_waived(evidence, before))
        del before
        started = time.process_time()
        report = judge(evidence)
        seconds = time.process_time() - started
    cells = sum(counts.total() for counts in report.outcomes.values())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    print(
        f"{len(evidence.corpus.fixtures):,} archives, {len(names)} readers, {cells:,} cells, {len(evidence.cells):,} sets of cells that are alike"
    )
    print(
        f"{sum(report.counts.values()):,} judgements, {len(report.findings):,} findings, {len(evidence.policy.waivers):,} waivers"
    )
    print(f"judging   {seconds:8.1f} s")
    print(f"memory    {peak / 2**20:8.0f} MiB")


if __name__ == "__main__":
    main()
