"""Judge what the repository may hold in ten years: at least 200 recipes written by 150 releases, each archive read by all of them.

    python benchmarks/judging.py                     # builds the tree on disk, judges it through the public command
    python benchmarks/judging.py --base CHECKOUT     # first that commit with its own tree against this one with its own, in turn

The tree is the repository's own, continued. Releases to come write what 2.15.0 wrote, and read as it reads, but for spans of them that do
something else with an archive, as some recorded reader did; some recipes stand twice. Waivers are the repository's, and what they cover
of the new releases is accepted. What is measured is a process of its own, so reading the tree is part of it.
"""

from __future__ import annotations

import argparse
import datetime as dt
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from torch_compat.corpus.corpus import FROZEN, load_corpus, write_frozen
from torch_compat.corpus.goldens import Goldens
from torch_compat.corpus.json_lines import digest, dump
from torch_compat.corpus.manifest import MANIFEST, read_manifest
from torch_compat.corpus.recorded.model import VERSION
from torch_compat.judging.gathering import gather, uncollected
from torch_compat.judging.judge import measure
from torch_compat.policy.calendar_files import drop_planned
from torch_compat.workspace import Root

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
RELEASES, RECIPES = 150, 200
AGAIN = "_again"
OF_CELLS = {"read": 1, "wrote": 0}  # kinds of lines, and which field has their recipes
CHANGED = 1 / 3  # of archives and load options: so many have a span of new readers that do something else
TURNS = 3


# ----------------------------------------------------------------------------------------------------------- the tree


def build(tree: Path) -> None:
    """Make the tree in an empty folder."""
    shutil.copytree(ROOT / "policies", tree / "policies")
    shutil.copytree(ROOT / "fixtures", tree / "fixtures")
    (tree / "reports/observations").mkdir(parents=True)
    policy = Root(ROOT).policy()
    newest = policy.corpus.readers[-1]
    new = _calendar(tree, newest, RELEASES - len(policy.corpus.readers))
    twice = _recipes(tree, {recipe for waiver in policy.waivers for part in waiver.covers or () for recipe in part.recipes or ()})
    for folder in sorted((tree / "fixtures").glob("torch-*")):
        _twice(folder, twice)
    for release in new:
        _writer(tree / "fixtures", newest, release)
    goldens = Goldens(tree / "fixtures")
    manifests = (read_manifest(path, goldens) for path in tree.glob(f"fixtures/*/{MANIFEST}"))
    pins = {entry.id: entry.pin for manifest in manifests for entry in manifest.entries}
    write_frozen(tree / "fixtures" / FROZEN, pins)
    _observations(tree, newest, new, twice)
    place = Root(tree)
    with uncollected():
        evidence = gather(place, replace(place.policy(), accepted=None), as_of=None)
        accepted = measure(evidence).waiving.accepted()
    (tree / "policies/torch/waivers.lock").write_text(accepted.text, encoding="utf-8")


def _calendar(tree: Path, newest: str, count: int) -> dict[str, dt.date]:
    """Releases to come, one a month, in the calendar and wherever something is said to be of all until today."""
    day = list(Root(ROOT).policy().calendar)[-1].date
    line = int(newest.split(".")[1]) + 1  # the releases that are planned are among them
    new = {f"2.{line + number}.0": day + dt.timedelta(days=30 * (number + 1)) for number in range(count)}
    for path, text in drop_planned(tree / "policies/torch", list(new)[-1]).items():
        path.write_text(text, encoding="utf-8")
    with (tree / "policies/torch/releases.toml").open("a", encoding="utf-8") as file:
        for version, date in new.items():
            file.write(
                f'\n[[release]]\nversion = "{version}"\ndate = {date}\npythons = ["3.15"]\ninstall = "stubs"\nnumpy = "<3"\n'
            )
    for name in ("weights_only_refusals.toml", "promises.toml"):
        path = tree / "policies/torch" / name
        path.write_text(path.read_text("utf-8").replace(f'..{newest}"', f'..{list(new)[-1]}"'), encoding="utf-8")
    for path in (tree / "fixtures/operators").glob("*.txt"):
        text = path.read_text("utf-8")
        path.write_text(re.sub(r"(?m)^# releases .*$", lambda match: f"{match[0]} {' '.join(new)}", text), encoding="utf-8")
    return new


def _recipes(tree: Path, waived: set[str]) -> frozenset[str]:
    """The recipes that stand twice: first those that no waiver names."""
    names = sorted((path.stem for path in (tree / "fixtures/recipes").glob("*.py")), key=lambda name: (name in waived, name))
    twice = names[: max(RECIPES - len(names), 0)]
    for name in twice:
        shutil.copy(tree / f"fixtures/recipes/{name}.py", tree / f"fixtures/recipes/{name}{AGAIN}.py")
    return frozenset(twice)


def _footed(lines: list[str]) -> str:
    """JSON lines with the last one, which tells that they are all."""
    body = "".join(f"{line}\n" for line in lines)
    sha256 = hashlib.sha256(body.encode()).hexdigest()
    return f"{body}{dump({'kind': 'end', 'lines': len(lines), 'sha256': sha256})}\n"


def _twice(folder: Path, twice: frozenset[str]) -> None:
    lines = (folder / MANIFEST).read_text("ascii").splitlines()[:-1]
    for line in list(lines):
        match = re.search(r'"recipe":"([^"]+)"', line)
        if match is None or match[1] not in twice:
            continue
        again = line.replace(match[0], f'"recipe":"{match[1]}{AGAIN}"')
        file = re.search(r'"file":"([^"]+)"', line)
        if file is not None:
            again = again.replace(file[0], f'"file":"again-{file[1]}"')
            shutil.copy(folder / file[1], folder / f"again-{file[1]}")
        lines.append(again)
    (folder / MANIFEST).write_text(_footed(lines), "ascii")


def _writer(fixtures: Path, newest: str, release: str) -> None:
    """A release that writes what the newest one wrote."""
    folder = fixtures / f"torch-{release}"
    shutil.copytree(fixtures / f"torch-{newest}", folder, ignore=lambda *_: ["goldens.jsonl"], copy_function=os.link)
    text = (folder / MANIFEST).read_text("ascii")
    (folder / MANIFEST).unlink()
    text = text.replace(f'"release":"{newest}"', f'"release":"{release}"')
    writers = re.findall(r'"id":"(\w+)","identity":(\{[^}]*\})', text)
    for name, identity in writers:
        own = re.sub(rf'"torch":"{re.escape(newest)}', f'"torch":"{release}', identity)
        text = text.replace(identity, own).replace(name, hashlib.sha256(f"{own}\n".encode()).hexdigest()[:12])
    (folder / MANIFEST).write_text(_footed(text.splitlines()[:-1]), "ascii")


class Change(NamedTuple):
    """New releases, by their places from the first to before the last, in which something else comes of some cells."""

    first: int
    last: int
    outcome: str


def _observations(tree: Path, newest: str, new: dict[str, dt.date], twice: frozenset[str]) -> None:
    """What all readers did: the files there are, and one more for each release to come, which is that of the newest one continued."""
    outcomes: list[str] = []
    for path in sorted((ROOT / "reports/observations").glob("*.txt")):
        lines = path.read_text("ascii").splitlines()[:-1]
        _sealed(tree, path.stem, [*lines, *_again(lines, twice)])
        told = (line.split("\t") for line in lines if line.startswith("outcome\t"))
        outcomes += [name for _, name, text in told if json.loads(text)["result"] in {"refused", "crashed"}]
    of_newest = _entries(tree, newest)
    reader, identity = next((fields[1], json.loads(fields[2])) for fields in of_newest if fields[0] == "reader")
    shown = [(day, pair) for _, day, pairs in (entry for entry in of_newest if entry[0] == "shown") for pair in pairs.split(" ")]
    shown.append((identity["observed"], f"{reader}:{digest(identity['identity'])[:16]}"))
    options = ["\t".join(fields) for fields in of_newest if fields[0] == "options"]
    writers = next(fields[2] for fields in of_newest if fields[0] == "writers")
    corpus = load_corpus(ROOT / "fixtures")
    hashes = {probe.name: probe.sha256 for probe in (*corpus.probes, *corpus.deprecations)}
    changes = _changes(of_newest, len(new), outcomes)
    for number, (release, day) in enumerate(new.items()):
        name = f"torch-{release}"
        own = {**identity, "identity": {**identity["identity"], "torch": release}, "observed": day.isoformat()}
        seal = digest(own["identity"])[:16]
        writers += f" {release}"
        results = [f"observations {VERSION}\t{name}", f"reader\t{name}\t{dump(own)}"]
        days = sorted({item for item, _ in shown})
        results += [f"shown\t{item}\t{' '.join(pair for its, pair in shown if its == item)}" for item in days]
        results += options
        for kind, _, message in (fields for fields in of_newest if fields[0] in {"probe", "deprecation"}):
            asked = [(part.split(":")[0], part.split(":")[2]) for part in message.split(" ")]
            keys = {probe: digest(hashes[probe], seal, own["protocol"])[:20] for probe, _ in asked}
            results.append(f"{kind}\t{name}\t{' '.join(f'{probe}:{keys[probe]}:{answer}' for probe, answer in asked)}")
        results.append(f"writers\t{name}\t{writers}")
        for kind, *fields in (fields for fields in of_newest if fields[0] in OF_CELLS):
            at = OF_CELLS[kind]
            changed = [
                _changed(text, number, changes.get((kind, fields[at], index), {})) for index, text in enumerate(fields[at + 1 :])
            ]
            results.append("\t".join([kind, *([name] if kind == "read" else []), fields[at], *changed]))
        _sealed(tree, name, results)
        shown.append((day.isoformat(), f"{name}:{seal}"))


def _changes(entries: list[list[str]], count: int, outcomes: list[str]) -> dict[tuple[str, str, int], dict[int, Change]]:
    """What changes, by the kind of line, its recipes and the place of the cells in it; and the place of the outcome in those."""
    chance = random.Random(1)
    results: dict[tuple[str, str, int], dict[int, Change]] = {}
    for kind, *fields in (fields for fields in entries if fields[0] in OF_CELLS):
        at = OF_CELLS[kind]
        for index, text in enumerate(fields[at + 1 :]):
            for place in range(1, len(text.split(" ")), 2):
                if chance.random() < CHANGED:
                    start, end = sorted(chance.choices(range(count + 1), k=2))
                    results.setdefault((kind, fields[at], index), {})[place] = Change(start, end, chance.choice(outcomes))
    return results


def _changed(text: str, number: int, changes: dict[int, Change]) -> str:
    """Cells as they are in a new release."""
    words = text.split(" ")
    for place, change in changes.items():
        if change.first <= number < change.last:
            words[place] = change.outcome
    return " ".join(words)


def _entries(tree: Path, release: str) -> list[list[str]]:
    """The fields of every line of a release's file."""
    text = (tree / f"reports/observations/torch-{release}.txt").read_text("ascii")
    return [line.split("\t") for line in text.splitlines()]


def _again(lines: list[str], twice: frozenset[str]) -> Iterator[str]:
    """The lines of recipes that stand twice, once more."""
    for line in lines:
        kind, *fields = line.split("\t")
        at = OF_CELLS.get(kind)
        if at is None:
            continue
        names = (part.partition(":") for part in fields[at].split(" "))
        again = sorted((f"{recipe}{AGAIN}", colon, subject) for recipe, colon, subject in names if recipe in twice)
        if again:
            fields[at] = " ".join(map("".join, again))
            yield "\t".join([kind, *fields])


def _sealed(tree: Path, label: str, lines: list[str]) -> None:
    text = "".join(f"{line}\n" for line in lines)
    end = f"end\t{len(lines)}\t{hashlib.sha256(text.encode()).hexdigest()}\n"
    (tree / f"reports/observations/{label}.txt").write_text(text + end, "ascii")


# ------------------------------------------------------------------------------------------------------ the measuring


class Run(NamedTuple):
    """What it takes to judge a tree: seconds of a processor, seconds, MiB at most; and what was printed."""

    processor: float
    wall: float
    peak: float
    printed: bytes


def judged(checkout: Path, tree: Path) -> Run:
    """Judge a tree with a checkout's code, in a process of its own."""
    package = "torch_compat" if (checkout / "harness/torch_compat").is_dir() else "harness"  # as it was called once
    source = checkout / "harness" if package == "torch_compat" else checkout
    started = time.monotonic()
    with tempfile.TemporaryFile() as out:
        child = subprocess.Popen(
            [sys.executable, "-m", package, "judge", "--format", "json", "--root", str(tree)],
            stdout=out,
            cwd=checkout,
            env={**os.environ, "PYTHONPATH": str(source)},
        )
        _, status, used = os.wait4(child.pid, 0)
        wall = time.monotonic() - started
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        printed = out.read()
    if child.returncode not in {0, 1, 4}:
        raise SystemExit(f"judging {tree} ended with {child.returncode}")
    peak = used.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
    return Run(used.ru_utime + used.ru_stime, wall, peak, printed)


def _told(what: str, runs: list[Run]) -> tuple[float, float]:
    """Print the least of several runs; its seconds of a processor and its memory."""
    processor, wall, peak = (min(run.processor for run in runs), min(run.wall for run in runs), min(run.peak for run in runs))
    print(f"{what:<28}{processor:8.1f} s of a processor {wall:8.1f} s {peak:8.0f} MiB", flush=True)
    return processor, peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", type=Path, help="a checkout of an older commit: judging its own tree is measured beside ours")
    parser.add_argument("--keep", type=Path, help="a new folder for the tree, which then stays")
    arguments = parser.parse_args()
    if arguments.base is not None:
        turns = [(judged(arguments.base, arguments.base), judged(ROOT, ROOT)) for _ in range(TURNS)]
        before, now = (
            _told("base, its tree", [base for base, _ in turns]),
            _told("this commit, its tree", [our for _, our in turns]),
        )
        print(f"ratio: {now[0] / before[0]:.2f} of the time, {now[1] / before[1]:.2f} of the memory")
    with tempfile.TemporaryDirectory() as folder:
        tree = arguments.keep or Path(folder) / "tree"
        if not tree.exists():
            tree.mkdir(parents=True)
            build(tree)
        run = judged(ROOT, tree)
        report = json.loads(run.printed)
        cells = sum(sum(row["counts"].values()) for row in report["matrix"])
        recipes = len(list((tree / "fixtures/recipes").glob("*.py")))
        print(f"{RELEASES} releases, {recipes} recipes, {cells:,} cells, {len(report['findings']):,} causes, {report['counts']}")
        _told("this commit, scaled tree", [run])


if __name__ == "__main__":
    main()
