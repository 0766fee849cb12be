"""Defects in recorded observations."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tests.planted.defects.table import defect, version_of
from tests.recordings import edit_json, edit_lines, file_of, lines_of, reader_of
from torch_compat.corpus.manifest import MANIFEST
from torch_compat.corpus.observations import Observation, Probe
from torch_compat.policy import load_policy

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from random import Random

    from tests.planted.conftest import Cells, Tree
    from tests.planted.defects.table import Plant

OF_CELLS = {"read", "wrote"}  # kinds of lines


def with_result(cells: Mapping[tuple[str, str], Observation], *results: str) -> list[Observation]:
    """Cells with one of these results, or all of them, in a fixed order."""
    return [cell for _, cell in sorted(cells.items()) if not results or cell.result in results]


def any_reader(tree: Tree, random: Random, *results: str) -> str:
    """A reader, one with the given results where some are given."""
    return random.choice([name for name in tree.readers() if not results or with_result(tree.cells(name), *results)])


def any_file(tree: Tree, random: Random) -> Path:
    """A file of recorded observations that holds those of a reader."""
    return random.choice(tree.recordings())


def any_line(tree: Tree, random: Random, *kinds: str, holding: str = "") -> tuple[Path, int]:
    """A line of one of these kinds: the file, and its index there."""
    lines = [
        (path, at)
        for path in tree.recordings()
        for at, line in enumerate(lines_of(path))
        if line[0] in kinds and holding in line[-1]
    ]
    return random.choice(lines)


@defect(4, 1)
def observation_removed(tree: Tree, random: Random) -> str:
    reader = any_reader(tree, random)

    def remove(cells: Cells) -> None:
        del cells[random.choice(with_result(cells)).cell]

    tree.observe(reader, remove)
    return f"torch-{version_of(reader)}: not observed"


@defect()
def observation_edited(tree: Tree, random: Random) -> tuple[str, ...]:
    path, index = any_line(tree, random, "outcome", holding='"result":"refused"')
    lines = path.read_text().splitlines(True)
    lines[index] = lines[index].replace('"result":"refused"', '"result":"same"')
    path.write_text("".join(lines))
    return f"reports/observations/{path.name}", "was changed after it was recorded"


@defect()
def observation_line_removed(tree: Tree, random: Random) -> tuple[str, ...]:
    path, index = any_line(tree, random, *OF_CELLS)
    lines = path.read_text().splitlines(True)
    path.write_text("".join(lines[:index] + lines[index + 1 :]))
    return path.name, "was changed after it was recorded"


@defect()
def line_that_others_rest_on_removed(tree: Tree, random: Random) -> tuple[str, ...]:
    """With a last line that fits: what the line told of is missed where it is meant."""
    path, index = any_line(tree, random, "outcome", "answer", "text", "writers")
    kind, name = lines_of(path)[index][:2]
    edit_lines(path, lambda lines: lines[:index] + lines[index + 1 :])
    return "is not a complete entry" if kind == "writers" else f"such as the {kind} {name}", path.name


@defect()
def set_of_unknown_names(tree: Tree, random: Random) -> tuple[str, ...]:
    path, index = any_line(tree, random, "read")

    def name(lines: list[str]) -> None:
        head, _, _ = lines[index].rpartition(" ")
        lines[index] = f"{head} 9.9.9.."

    edit_lines(path, name)
    return f"{path.name}:{index + 1}", "matches nothing in the list"


def flipped(old: str, new: str) -> Plant:
    """Gives a cell another result, and the file digests and a footer that fit."""

    def plant(tree: Tree, random: Random) -> tuple[str, ...]:
        reader = any_reader(tree, random, old)
        cell = random.choice(with_result(tree.cells(reader), old))
        changed = tree.observe(reader, lambda cells: cells.update({cell.cell: replace(cell, result=new)}))
        writer = f"{cell.fixture.partition('/')[0]}.txt"
        newer = writer if writer in {path.name for path in changed} else file_of(reader)
        return newer, f"is {new!r}, but"

    plant.__name__ = f"outcome_flipped_from_{old}_to_{new}"
    return plant


for _old, _new in (
    ("refused", "same"), ("differs", "same"), ("raised", "same"), ("same", "differs"), ("same", "refused"), ("same", "unstable"),
    ("refused", "crashed"), ("differs", "refused"), ("raised", "refused"), ("crashed", "refused"),
):  # fmt: skip
    defect(seeds=1)(flipped(_old, _new))


@defect()
def refusal_rewritten_as_same(tree: Tree, random: Random) -> str:
    """All of it, so that nothing contradicts it but the waiver that counts it."""
    calendar = load_policy(tree.policy).calendar

    def waived(reader: str) -> list[Observation]:
        """Refusals by a reader that is not older, of what it was not told to refuse."""
        return [
            cell
            for cell in with_result(tree.cells(reader), "refused")
            if cell.options == "default"
            and cell.fixture.startswith("torch-")
            and not calendar.is_newer(cell.fixture.removeprefix("torch-").partition("/")[0], version_of(reader))
        ]

    reader = random.choice([reader for reader in tree.readers() if waived(reader)])
    cell = random.choice(waived(reader))
    tree.observe(reader, lambda cells: cells.update({cell.cell: replace(cell, result="same", errors=())}))
    return "waivers-exact:"


@defect()
def crash_rewritten_as_same(tree: Tree, random: Random) -> str:
    def flip(cells: Cells) -> None:
        cell = random.choice(with_result(cells, "crashed"))
        cells[cell.cell] = replace(cell, result="same", errors=())

    tree.observe(any_reader(tree, random, "crashed"), flip)
    return "is recorded as equal to the golden, but had a different outcome"


@defect()
def differences_shrunk(tree: Tree, random: Random) -> str:
    def mixed(reader: str) -> list[Observation]:
        return [cell for cell in with_result(tree.cells(reader), "differs") if len(cell.extent) > 1]

    reader = random.choice([reader for reader in tree.readers() if mixed(reader)])
    cell = random.choice(mixed(reader))
    tree.observe(reader, lambda cells: cells.update({cell.cell: replace(cell, extent=cell.extent[:1])}))
    return "differences, but the extent has a different number"


@defect()
def values_edited(tree: Tree, random: Random) -> str:
    def edit(outcome: dict[str, Any]) -> None:
        departure = random.choice(outcome["departures"])
        departure[1] = {"float": "0.5"} if departure[1] != {"float": "0.5"} else {"float": "0.25"}

    edit_json(*any_line(tree, random, "outcome", holding='"departures":'), edit)
    return "was edited: its id does not match the digest of its contents"


@defect(1)
def recorded_result_varies(tree: Tree, random: Random) -> str:
    def vary(cells: Cells) -> None:
        cell = random.choice(with_result(cells, "same"))
        both = (Observation(*cell.cell, cell.key, "same"), Observation(*cell.cell, cell.key, "timed-out", stage="load"))
        cells[cell.cell] = Observation(*cell.cell, cell.key, "unstable", both=both)

    tree.observe(any_reader(tree, random, "same"), vary)
    return "two observations of one cell disagree"


@defect(4, 1)
def observation_under_another_key(tree: Tree, random: Random) -> str:
    def change(cells: Cells) -> None:
        cell = random.choice(with_result(cells))
        subject, load = cell.key.split("-")
        cells[cell.cell] = replace(cell, key=f"{'0' * len(subject)}-{load}")

    tree.observe(any_reader(tree, random), change)
    return "observed before the fixture, its golden or the options changed"


@defect()
def observation_made_twice(tree: Tree, random: Random) -> str:
    path, index = any_line(tree, random, *OF_CELLS)
    edit_lines(path, lambda lines: [*lines, lines[index]])
    return "duplicate"


@defect()
def observation_incomplete(tree: Tree, random: Random) -> tuple[str, ...]:
    path, index = any_line(tree, random, *OF_CELLS)

    def lose(lines: list[str]) -> None:
        fields = lines[index].split("\t")
        del fields[random.choice([1, 2]) if fields[0] == "read" else 1]
        lines[index] = "\t".join(fields)

    edit_lines(path, lose)
    return f"{path.name}:{index + 1}", "is not a complete entry"


@defect(4, 1)
def observations_removed(tree: Tree, random: Random) -> str:
    path = any_file(tree, random)
    path.unlink()
    return f"{path.stem}: no observations by this reader"


@defect()
def observations_removed_that_others_rest_on(tree: Tree, random: Random) -> tuple[str, ...]:
    """All but the newest release read, or wrote for, a newer one: that one's file says what it misses."""
    *older, newest = sorted(tree.recordings(), key=lambda path: [int(part) for part in version_of(path.stem).split(".")])
    path = random.choice(older)
    path.unlink()
    return f"reports/observations/{newest.name}", "refer to records that no readable file contains", path.stem


@defect(4, 1, seeds=1)
def all_observations_removed(tree: Tree, random: Random) -> tuple[str, ...]:
    names = [path.stem for path in tree.recordings()]
    shutil.rmtree(tree.recorded)
    return tuple(f"{name}: no observations by this reader" for name in names)


@defect()
def observations_emptied(tree: Tree, random: Random) -> str:
    path = any_file(tree, random)
    path.write_bytes(b"")
    return f"{path.name}:1: begins with '', expected 'observations 3' and '{path.stem}'"


@defect()
def observations_cut_off(tree: Tree, random: Random) -> tuple[str, ...]:
    path = any_file(tree, random)
    lines = path.read_text().splitlines(True)
    path.write_text("".join(lines[: random.randrange(1, len(lines))]))
    return path.name, "does not end with the line 'end'"


@defect()
def observations_half_written(tree: Tree, random: Random) -> tuple[str, ...]:
    path = any_file(tree, random)
    data = path.read_bytes()
    path.write_bytes(data[: random.randrange(1, len(data) - 1)])
    return (f"reports/observations/{path.name}",)


@defect()
def observations_of_another_kind(tree: Tree, random: Random) -> tuple[str, ...]:
    path = any_file(tree, random)
    shutil.copyfile(random.choice(tree.releases()) / MANIFEST, path)
    return f"{path.name}:1: begins with", "expected 'observations 3'"


@defect()
def observations_of_a_newer_version(tree: Tree, random: Random) -> str:
    path = any_file(tree, random)
    head, rest = path.read_text().split("\n", 1)
    path.write_text(head.replace("observations 3", "observations 4") + "\n" + rest)
    return f"begins with 'observations 4\\t{path.stem}', expected 'observations 3'"


@defect()
def observations_renamed_to_another_reader(tree: Tree, random: Random) -> tuple[str, ...]:
    path = any_file(tree, random)
    path.rename(path.with_name("torch-1.7.1.txt"))
    return "torch-1.7.1.txt", f"begins with 'observations 3\\t{path.stem}'", "no observations by this reader"


@defect()
def observations_that_say_another_release(tree: Tree, random: Random) -> tuple[str, ...]:
    """Name and first line say one release, the reader that the file tells of is of another."""
    path = any_file(tree, random)
    edit_lines(path, lambda lines: [f"{lines[0].partition(chr(9))[0]}\ttorch-1.7.1", *lines[1:]])
    path.rename(path.with_name("torch-1.7.1.txt"))
    return f"contains the observations from '{path.stem}", "but is named 'torch-1.7.1.txt'", "no observations by this reader"


@defect()
def observations_of_a_reader_that_lies(tree: Tree, random: Random) -> tuple[str, ...]:
    """Name and lines say one version, torch itself said another."""
    path = any_file(tree, random)
    reader = lines_of(path, "reader")[0][1]
    edit_lines(path, lambda lines: [line.replace(f"\t{reader}\t", "\ttorch-1.7.1\t") for line in lines])
    edit_lines(path, lambda lines: [f"{lines[0].partition(chr(9))[0]}\ttorch-1.7.1", *lines[1:]])
    path.rename(path.with_name("torch-1.7.1.txt"))
    return "is recorded for torch-1.7.1, but the answer came from", "no observations by this reader"


@defect(4, 1)
def identity_of_a_reader_changed(tree: Tree, random: Random) -> str:
    reader = any_reader(tree, random)
    identity = reader_of(tree.path, version_of(reader)).identity
    tree.change_reader(reader, identity={**identity, "python": "3.99.0"})
    return f"load_options in torch-{version_of(reader)}: the probe changed since it was observed"


@defect()
def identity_changed_in_one_file(tree: Tree, random: Random) -> str:
    """Files of newer releases seal who read what those wrote."""
    seals = (line[2].split(" ") for path in tree.recordings() for line in lines_of(path, "shown"))
    shown = {seal.rpartition(":")[0] for line in seals for seal in line}
    reader = random.choice(sorted(shown))
    path = tree.recorded / file_of(reader)
    at = next(at for at, line in enumerate(lines_of(path)) if line[:2] == ["reader", reader])
    edit_json(path, at, lambda facts: facts["identity"].update(python="3.99.0"))
    return f"was recorded by a different {reader} than the one whose identity is recorded"


@defect()
def day_of_observations_is_nonsense(tree: Tree, random: Random) -> str:
    edit_json(*any_line(tree, random, "reader"), lambda facts: facts.update(observed="yesterday"))
    return "was observed on 'yesterday', which is not a date"


@defect(4)
def probe_not_observed(tree: Tree, random: Random) -> tuple[str, ...]:
    reader = any_reader(tree, random)
    tree.change_reader(reader, probes={})
    return f"in torch-{version_of(reader)}", "not observed"


def probe_of(tree: Tree, random: Random) -> tuple[str, Probe]:
    """A reader, and a probe that it was asked."""
    reader = any_reader(tree, random)
    return reader, random.choice([item for _, item in sorted(reader_of(tree.path, version_of(reader)).probes.items())])


@defect()
def probe_check_does_not_hold(tree: Tree, random: Random) -> str:
    reader, probe = probe_of(tree, random)
    checks = list(probe.checks)
    at = random.randrange(len(checks))
    checks[at] = checks[at][0], False, "it is so"
    tree.change_reader(reader, probes={probe.name: replace(probe, checks=tuple(checks))})
    return f"{checks[at][0]}: it is so"


@defect()
def probe_failed(tree: Tree, random: Random) -> str:
    reader, probe = probe_of(tree, random)
    error = {"type": "builtins.ImportError", "message": "no such thing"}
    tree.change_reader(reader, probes={probe.name: replace(probe, checks=(), error=error)})
    return "builtins.ImportError: no such thing"


@defect()
def probe_makes_one_check(tree: Tree, random: Random) -> str:
    reader, probe = probe_of(tree, random)
    item, other = random.sample(probe.checks, 2)
    tree.change_reader(reader, probes={probe.name: replace(probe, checks=(item,))})
    return f"torch-{version_of(reader)}: it does not report the check {other[0]}"


def answering(tree: Tree) -> tuple[str, Probe]:
    """The newest reader, which answers every check of the probe, and the probe."""
    reader = max(tree.readers(), key=lambda item: [int(part) for part in version_of(item).split(".")])
    return reader, next(iter(reader_of(tree.path, version_of(reader)).probes.values()))


@defect(4)
def probe_asks_nothing(tree: Tree, random: Random) -> str:
    reader, probe = answering(tree)
    checks = tuple((check, None, "") for check, _, _ in probe.checks)
    tree.change_reader(reader, probes={probe.name: replace(probe, checks=checks)})
    return f"torch-{version_of(reader)}: {random.choice(checks)[0]} was not run, and does not say what the release lacks"


@defect(4, 1)
def probe_lacks_everything(tree: Tree, random: Random) -> str:
    """The newest reader says what an old one says."""
    reader, probe = answering(tree)
    old = next(iter(reader_of(tree.path, version_of(tree.readers()[0])).probes.values()))
    tree.change_reader(reader, probes={probe.name: replace(probe, checks=old.checks)})
    return f"no release runs {random.choice(old.checks)[0]}"
