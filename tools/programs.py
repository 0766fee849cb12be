"""``python tools/programs.py FOLDER [--set SET] [--writer X ...] [--reader X ...] [--only PROGRAM ...] [--reasons]``: test predictions on programs from outside the corpus.

The programs of ``fixtures/programs`` were fixed before any release ran them, and are not recipes: no policy, need or operator was written
to fit them. They come in sets. Each set was written after the faults that the previous set had found were corrected. Four releases write
them into FOLDER, eight releases load the archives, and the results are compared with two predictions:

* ``inspect``: whether the release loads the archive with default options, and with ``weights_only=True`` where it has the argument;
* ``reference``: what the reference reader does at the horizon of that release: values, shapes, types, state and errors.

Results of releases are kept in FOLDER and reused; predictions are made again each time. The last lines count cells by kind of prediction,
kind of program and reader: right; wrong; rounded, where the only differences are numbers that a chain of float32 operators rounds
differently, beyond the tolerance that the policy has for one operator; and lacking, where the reference reader does not support
something. Neither of the last two counts as right.
``--reasons`` prints the predicted reason of each refused cell next to the error of the release. Exit status 1 if a cell is not right or a program
was not compared, 2 for invalid usage, 4 if a release is not built here or nothing was compared.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from torch_compat.corpus.corpus import load_corpus
from torch_compat.corpus.recorded import read_recorded, write_recorded
from torch_compat.errors import CorpusError, EnvironmentUnavailable, HarnessError, UsageError
from torch_compat.formats.facts import read_facts
from torch_compat.judging.evidence import Evidence
from torch_compat.judging.gathering import uncollected
from torch_compat.judging.judgement import Verdict
from torch_compat.loadability import Judge
from torch_compat.readers.build_release import built
from torch_compat.readers.torch_release import TorchRelease
from torch_compat.releases.release import Release
from torch_compat.replay.generating import rules_of
from torch_compat.replay.loading import loads, takers_of
from torch_compat.replay.observe import observe
from torch_compat.replay.plan import plan
from torch_compat.replay.produce import produce
from torch_compat.replay.reference import observe_reference, plan_reference
from torch_compat.replay.trust import frozen_in
from torch_compat.rules.reference_agrees import agreement
from torch_compat.values.compare import contents, tensor_array
from torch_compat.workspace import Root
from torch_compat.writes import changing, put_copy

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from torch_compat.corpus.corpus import Corpus
    from torch_compat.corpus.manifest import Fixture
    from torch_compat.corpus.observations import ObservedReader
    from torch_compat.loadability import Rules
    from torch_compat.policy import Policy

REPOSITORY = Path(__file__).resolve().parents[1]
PROGRAMS = REPOSITORY / "fixtures" / "programs"
WRITERS = ("1.5.1", "1.10.2", "2.1.2", "2.13.0")
READERS = ("1.6.0", "1.8.1", "1.12.1", "2.0.1", "2.4.1", "2.6.0", "2.9.1", "2.15.0")
OPTIONS = ("default", "weights-only")
RIGHT, WRONG, ROUNDED, LACKING = "right", "wrong", "rounded", "lacking"
ROUNDINGS = 64
"""Maximum difference, in last places of the tensor's greatest number, that can be explained by rounding alone."""


class Cell(NamedTuple):
    """One prediction compared with the result of a release.

    Attributes:
        kind: ``inspect``, ``inspect weights-only`` or ``reference``.
        verdict: :data:`RIGHT`, :data:`WRONG`, :data:`ROUNDED` or :data:`LACKING`.
        text: what is wrong or lacking; for a predicted refusal, its reason and the error of the release.
    """

    kind: str
    program: str
    writer: str
    reader: str
    verdict: str
    text: str


def kinds_of(programs: Path) -> dict[str, str]:
    """The kind of each program (its folder) by name.

    Raises:
        CorpusError: two programs have the same name.
    """
    results: dict[str, str] = {}
    for path in sorted(programs.rglob("*.py")):
        kind = " ".join(path.relative_to(programs).parent.parts)
        if path.stem in results:
            raise CorpusError(
                f"two programs are named {path.stem}: one in {results[path.stem]}, one in {kind}", where=str(programs)
            )
        results[path.stem] = kind
    return results


def written(folder: Path, programs: Path, policy: Policy, writers: Collection[str], failures: dict[str, str]) -> Corpus:
    """The corpus of the programs in FOLDER, after each writer has run those that it has not run yet.

    Parameters:
        failures: filled with the programs and writers whose results cannot be recorded, and why.

    Raises:
        CorpusError: a program was changed after a release had run it, or cannot be read, or an archive is not what its manifest says.
        EnvironmentUnavailable: a writer is not built here.
    """
    recipes = folder / "fixtures" / "recipes"
    for path in sorted(programs.rglob("*.py")):
        put_copy(recipes / path.name, path)
    for version in writers:
        corpus = load_corpus(folder / "fixtures")
        known = {entry.recipe: entry.recipe_sha256 for entry in corpus.entries if entry.release == version}
        for recipe in corpus.recipes:
            if known.get(recipe.name, recipe.sha256) != recipe.sha256:
                raise CorpusError(f"{recipe.name} was changed after torch-{version} had run it", where=str(recipe.path))
        if new := [recipe for recipe in corpus.recipes if recipe.name not in known]:
            with TorchRelease(built(policy.calendar.resolve(f"torch-{version}"))) as release:
                reasons: dict[str, str] = {}
                produce(corpus, release, new, dt.datetime.now(dt.UTC).date(), failures=reasons)
                failures |= {f"{name} of {version}": reason for name, reason in reasons.items()}
    corpus = load_corpus(folder / "fixtures")
    if corpus.damage:  # it would not be compared, and its absence would go unnoticed
        raise CorpusError(
            "; ".join(f"{item.subject}: {item.detail}" for item in corpus.damage), where=str(folder), code="unreadable-program"
        )
    return corpus


def read(folder: Path, corpus: Corpus, policy: Policy, readers: Collection[str]) -> dict[str, ObservedReader]:
    """The results of each reader for each archive, by version; missing results are computed and kept in FOLDER.

    Raises:
        EnvironmentUnavailable: a reader is not built here.
    """
    place = folder / "reports" / "observations"
    known = {reader.release: reader for reader in read_recorded(place).readers.values()}
    for version in readers:
        release = policy.calendar.resolve(f"torch-{version}")
        tasks = [item for item in plan(policy, corpus, release, corpus.fixtures.values()) if item.options.id in OPTIONS]
        earlier = known.get(version)
        if earlier is not None and all(
            (cell := earlier.cells.get((task.fixture.id, task.options.id))) is not None and cell.key == task.key for task in tasks
        ):
            continue
        today = dt.datetime.now(dt.UTC).date()
        known[version] = observe(built(release), tasks, (), today=today, known=earlier, trust=frozen_in(corpus.folder))
        with changing(folder):
            write_recorded(place, known.values())
    return {version: known[version] for version in readers}


def inspected(corpus: Corpus, readers: dict[str, ObservedReader], rules: Rules) -> Iterator[Cell]:
    """Each cell of ``inspect``: whether the release loads the archive."""
    judge = Judge(rules)
    for fixture in corpus.fixtures.values():
        facts = read_facts(corpus.path(fixture))
        needs, items = judge(facts), judge.items(facts)
        for version, reader in readers.items():
            bit = rules.known.bit(version)
            loadable = bool(takers_of(items) & bit)
            why = "; ".join(f"{item.what}: {item.because}" for item in items if not item.takers & bit)
            for options in OPTIONS:
                cell = reader.cells.get((fixture.id, options))
                if cell is None:
                    continue
                expected, because, kind = loadable, why, "inspect"
                if options == "weights-only":
                    refusal = needs.weights_only[version]
                    expected, kind = loadable and refusal is None, "inspect weights-only"
                    because = why if refusal is None else f"weights_only: {refusal.detail}"
                message = cell.errors[0]["message"] if cell.errors else cell.signal
                try:
                    right = loads(cell) is expected
                except CorpusError as error:
                    right, message = False, str(error)
                if right:
                    text = "" if expected else f"{because} | {message}"
                else:
                    text = f"predicted: {'loads' if expected else f'refused ({because})'}; actual: {cell.result} {message}"
                yield Cell(kind, fixture.recipe, fixture.release, version, RIGHT if right else WRONG, text)


def interpreted(
    corpus: Corpus, readers: dict[str, ObservedReader], evidence: Evidence, fixtures: list[Fixture]
) -> Iterator[Cell]:
    """Each cell of the reference reader: what the program does at the horizon of the release."""
    # programs here do not list the operators they exercise: the operators called by the archive determine the tolerances
    measured = [
        replace(fixture, operators=sorted({call.name for call in read_facts(corpus.path(fixture)).calls})) for fixture in fixtures
    ]
    tasks = plan_reference(evidence.policy, corpus, measured)
    for version, reader in readers.items():
        told = observe_reference(tasks, today=evidence.as_of, horizon=f"reference@{version}")
        for task in tasks:
            place = (task.fixture.id, task.options.id)
            verdict, what, text = agreement(evidence, task.fixture, reader.cells[place], told.cells[place])
            if verdict is Verdict.PASS:
                ended = RIGHT
            elif what == "unsupported":
                ended = LACKING
            elif what == "different" and rounded(
                *(observation.own_result(task.fixture.golden) for observation in (reader.cells[place], told.cells[place]))
            ):
                ended = ROUNDED
            else:
                ended = WRONG
            message = (
                ""
                if ended is RIGHT
                else f"predicted: {told.cells[place].result}; actual: {reader.cells[place].result}, {what}: {text}"
            )
            yield Cell("reference", task.fixture.recipe, task.fixture.release, version, ended, message)


def rounded(expected: dict[str, Any], got: dict[str, Any]) -> bool:
    """Whether two results differ only in floating-point numbers, each within :data:`ROUNDINGS` of its tensor's greatest."""
    for content in contents(expected, got):
        if content.kind == "strides":
            continue
        if content.kind != "value" or content.dtype not in {"float32", "float64"}:
            return False
        wanted, given = (tensor_array(content.dtype, bytes.fromhex(side)) for side in content.content)
        if content.dtype == "float64" and all(
            np.array_equal(side, side.astype(np.float32), equal_nan=True) for side in (wanted, given)
        ):
            wanted, given = (
                wanted.astype(np.float32),
                given.astype(np.float32),
            )  # numbers taken from a float32 tensor
        finite = np.isfinite(wanted)
        if not np.array_equal(wanted[~finite], given[~finite], equal_nan=True):
            return False
        if not finite.any():
            continue
        greatest = np.abs(wanted[finite]).max()
        if not np.abs(wanted[finite] - given[finite]).max() <= ROUNDINGS * np.spacing(greatest):
            return False
    return True


def table(cells: Collection[Cell], kinds: dict[str, str]) -> list[str]:
    """The counts, with a line for each kind of prediction and program, for each kind of prediction and reader, and for the total."""
    rows: dict[tuple[str, str], Counter[str]] = {}
    for cell in cells:
        for key in ((cell.kind, kinds[cell.program]), (cell.kind, f"by {cell.reader}"), (cell.kind, "all"), ("all", "all")):
            rows.setdefault(key, Counter())[cell.verdict] += 1
    lines = []
    for (kind, programs), counts in sorted(rows.items()):
        total = sum(counts.values())
        share = 100 * counts[RIGHT] / total
        lines.append(
            f"{kind:21} {programs:18} {total:5} cells, {counts[RIGHT]:5} right ({share:.2f} %), "
            f"{counts[WRONG]:3} wrong, {counts[ROUNDED]:3} rounded, {counts[LACKING]:3} lacking"
        )
    return lines


def main(arguments: list[str] | None = None) -> int:
    """Compare; expected errors are printed as messages."""
    try:
        return compared(arguments)
    except EnvironmentUnavailable as error:
        print(f"programs: {error}", file=sys.stderr)
        return 4
    except HarnessError as error:
        print(f"programs: {error}", file=sys.stderr)
        return error.exit_status


def compared(arguments: list[str] | None) -> int:
    """Write, read and compare; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="directory for archives and observations")
    parser.add_argument("--set", metavar="SET", help="use only the programs of this set; default: all")
    parser.add_argument("--writer", action="append", metavar="X", help=f"writer; can be repeated; default: {', '.join(WRITERS)}")
    parser.add_argument("--reader", action="append", metavar="X", help=f"reader; can be repeated; default: {', '.join(READERS)}")
    parser.add_argument("--only", action="append", metavar="PROGRAM", help="compare only this program; can be repeated")
    parser.add_argument("--reasons", action="store_true", help="print why each refusal was predicted, and the actual error")
    asked = parser.parse_args(arguments)
    programs = PROGRAMS / (asked.set or "")
    kinds = kinds_of(programs)
    if not kinds:
        raise UsageError(f"there are no programs in {programs}", code="unknown-set")
    if unknown := set(asked.only or ()) - kinds.keys():
        raise UsageError(f"there is no program {min(unknown)!r} in {programs}", code="unknown-program")
    only = kinds.keys() & (asked.only or kinds)
    place = Root(REPOSITORY)
    policy = place.policy(counted=False)
    versions = sorted(asked.reader or READERS, key=Release)
    failures: dict[str, str] = {}
    with uncollected():
        corpus = written(asked.folder, programs, policy, asked.writer or WRITERS, failures)
        observed = read(asked.folder, corpus, policy, versions)
        evidence = Evidence(policy, corpus, observed, {}, dt.datetime.now(dt.UTC).date())
        chosen = [fixture for fixture in corpus.fixtures.values() if fixture.recipe in only]
        cells = [item for item in inspected(corpus, observed, rules_of(place)) if item.program in only]
        cells += interpreted(corpus, observed, evidence, chosen)
    for cell in sorted(cells):
        if cell.verdict is not RIGHT or (asked.reasons and cell.text):
            print(f"{cell.verdict} {cell.kind}: {cell.program} of {cell.writer} read by {cell.reader}: {cell.text}")
    for name, reason in sorted(failures.items()):
        print(f"not compared: {name}: {reason}")
    refused = Counter(kinds[refusal.recipe] for refusal in corpus.not_writable.values() if refusal.recipe in only)
    counts = Counter(kinds[name] for name in {fixture.recipe for fixture in chosen})
    for kind in sorted(counts):
        print(f"{counts[kind]} {kind} programs were written; {refused[kind]} times a writer refused one")
    print(*table(cells, kinds), sep="\n")
    if not cells:
        print("nothing was compared", file=sys.stderr)
    return exit_status(cells, failures)


def exit_status(cells: Collection[Cell], failures: dict[str, str]) -> int:
    """The exit status: a program that was not compared is no success."""
    if not cells:
        return 4
    return int(bool(failures) or any(cell.verdict is not RIGHT for cell in cells))


if __name__ == "__main__":
    os.nice(5)
    sys.exit(main())
