"""Planted defects in deprecations, waivers, the calendar and the evidence: each makes the run fail, and is named.

In this tree, releases do exactly what the files say (tests/deprecated_tree.py). Defects that cannot be detected without running a release
again are excluded: an event and the evidence of adjacent releases changed consistently, including the footer.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import shutil
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from tests.counted import relock
from tests.deprecated_tree import GAP, LINES, day_of, digest_of, make_deprecated_tree
from tests.recordings import change_reader, folder_of, reader_of
from tests.small_tree import once
from torch_compat.cli import main
from torch_compat.policy.accepted import WAIVERS_LOCK, read_accepted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from torch_compat.corpus.deprecations import DeprecationObservation

    Plant = Callable[["Tree", Random], str]

SEEDS = 2  # places that each kind of defect is planted at
LEAST_KINDS, LEAST_DEFECTS = 15, 60
EVENTS = {  # of deprecations whose every step counts: what comes in which line
    "mode": {"warned": 2, "removed": 4, "restored": 6},
    "keyword": {"warned": 3, "error": 5},
    "function": {"warned": 1, "error": 4},
    "name": {"warned": 2, "removed": 4},
    "default": {"warned": 2, "error": 4, "switched": 6},
    "behaviour": {"warned": 5, "switched": 8},
}
ENDS = [(name, what) for name, events in EVENTS.items() for what in events if what != "warned"]


@dataclass(frozen=True)
class Judged:
    status: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """Everything that is red, and what was said on standard error."""
        if not self.out:
            return self.err
        report = json.loads(self.out)
        lines = [f"{finding['id']}: {finding['cause']}" for finding in report["findings"] if finding["verdict"] == "fail"]
        return "\n".join([*lines, *(f"{item['what']}: {item['reason']}" for item in report["not_checked"])])


class Tree:
    """A root of its own, and the means to spoil it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.policy = path / "policies" / "torch"
        self.probes = sorted((path / "fixtures" / "deprecations").glob("*.py"))
        self.readers = sorted(folder_of(path).glob("torch-*.txt"), key=lambda item: int(item.stem.split(".")[1]))

    def deprecation(self, name: str) -> Path:
        return self.policy / "deprecations" / f"{name}.toml"

    def waivers(self) -> list[Path]:
        return sorted((self.policy / "waivers").glob("*.toml"))

    def edit(self, path: Path, old: str, new: str, *, times: int = 1) -> None:
        """Replace a text that stands so many times in a file."""
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == times, f"{old!r} stands {text.count(old)} times in {path.name}"
        path.write_text(text.replace(old, new), encoding="utf-8")

    def move(self, name: str, what: str, line: int) -> None:
        """Give an event another release."""
        path = self.deprecation(name)
        text, count = re.subn(rf'(what = "{what}"\nrelease = )"[^"]*"', rf'\1"1.{line}.0"', path.read_text(encoding="utf-8"))
        assert count == 1
        path.write_text(text, encoding="utf-8")

    def observe(self, line: int, probe: str, change: Callable[[DeprecationObservation], DeprecationObservation | None]) -> None:
        """Change what a release says of a probe, and write it as the harness writes it."""
        observed = reader_of(self.path, f"1.{line}.0")
        results = dict(observed.deprecations)
        changed = change(results.pop(probe))
        if changed is not None:
            results[probe] = changed
        change_reader(self.path, observed.name, deprecations=results)

    def judge(self, *arguments: str) -> Judged:
        """Run the command in this process."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as ended:
            main(["deprecations", "--root", str(self.path), "--format", "json", *arguments])
        assert isinstance(ended.value.code, int)
        return Judged(ended.value.code, out.getvalue(), err.getvalue())


@dataclass(frozen=True)
class Defect:
    name: str
    plant: Plant
    status: tuple[int, ...]
    seeds: int
    arguments: tuple[str, ...]


DEFECTS: list[Defect] = []


def defect(*status: int, seeds: int = SEEDS, arguments: tuple[str, ...] = ()) -> Callable[[Plant], Plant]:
    """Add a kind of defect to the table."""

    def add(plant: Plant) -> Plant:
        DEFECTS.append(Defect(plant.__name__, plant, status or (1,), seeds, arguments))
        return plant

    return add


@pytest.fixture(scope="session")
def pristine(shared: Path) -> Path:
    return once(shared, "deprecated-tree", make_deprecated_tree)


@pytest.fixture
def tree(pristine: Path, tmp_path: Path) -> Iterator[Tree]:
    path = tmp_path / "tree"
    shutil.copytree(pristine, path)
    yield Tree(path)
    shutil.rmtree(path, ignore_errors=True)


# ------------------------------------------------------------------------------------------------ the files of deprecations


@defect(seeds=4)
def event_said_to_be_earlier(tree: Tree, random: Random) -> str:
    name, what = random.choice(ENDS)
    tree.move(name, what, EVENTS[name][what] - 1)
    return f"{name}: in 1.{EVENTS[name][what] - 1}.0 it must be"


@defect(seeds=4)
def event_said_to_be_later(tree: Tree, random: Random) -> str:
    name = random.choice(sorted(EVENTS))
    what = list(EVENTS[name])[-1]
    tree.move(name, what, EVENTS[name][what] + 1)
    return f"{name}: in 1.{EVENTS[name][what]}.0 it must be"


@defect()
def warning_said_to_be_earlier(tree: Tree, random: Random) -> str:
    name = random.choice(["keyword", "behaviour"])
    tree.move(name, "warned", EVENTS[name]["warned"] - 1)
    return f"{name}: in 1.{EVENTS[name]['warned'] - 1}.0 it must be warned according to its events, but it is silent"


@defect()
def event_left_out(tree: Tree, random: Random) -> str:
    name = random.choice(sorted(EVENTS))
    what = list(EVENTS[name])[-1]
    path = tree.deprecation(name)
    text, count = re.subn(
        rf'\n\[\[deprecation.events\]\]\nwhat = "{what}"\nrelease = "[^"]*"\n', "\n", path.read_text(encoding="utf-8")
    )
    assert count == 1
    path.write_text(text, encoding="utf-8")
    return f"{name}: in 1.{EVENTS[name][what]}.0 it must be"


@defect()
def event_invented(tree: Tree, random: Random) -> str:
    line = random.randrange(10, LINES)
    path = tree.deprecation("pending")
    path.write_text(
        path.read_text(encoding="utf-8") + f'\n[[deprecation.events]]\nwhat = "removed"\nrelease = "1.{line}.0"\n',
        encoding="utf-8",
    )
    return f"pending: in 1.{line}.0 it must be error or removed according to its events, but it is warned"


@defect(2)
def events_out_of_order(tree: Tree, random: Random) -> str:
    name = random.choice(sorted(EVENTS))
    tree.move(name, "warned", LINES - 1)
    return "oldest first"


@defect(2)
def event_twice(tree: Tree, random: Random) -> str:
    path = tree.deprecation(random.choice(["pending", "planned"]))
    tree.edit(
        path, "\n[[deprecation.docs]]", '\n[[deprecation.events]]\nwhat = "warned"\nrelease = "1.11.0"\n\n[[deprecation.docs]]'
    )
    return "is already 'warned'"


@defect(2)
def event_that_its_kind_does_not_know(tree: Tree, random: Random) -> str:
    name = random.choice(["function", "name", "keyword"])
    tree.edit(tree.deprecation(name), 'what = "warned"', 'what = "switched"')
    return "has no event 'switched'"


@defect(2)
def release_that_nobody_knows(tree: Tree, random: Random) -> str:
    name = random.choice(sorted(EVENTS))
    tree.move(name, list(EVENTS[name])[-1], 77)
    return "release '1.77.0' is not in the calendar, and is not planned"


@defect()
def kind_changed(tree: Tree, random: Random) -> str:
    tree.edit(tree.deprecation("mode"), 'kind = "mode-change"', 'kind = "behaviour-change"')
    tree.edit(tree.deprecation("mode"), "silent = false", f"silent = {random.choice(['true', 'true'])}")
    return "mode: in 1."


@defect()
def loud_phase_declared_needless(tree: Tree, random: Random) -> str:
    tree.edit(tree.deprecation("behaviour"), "silent = false", "silent = true")
    return (
        "behaviour/switched@1.8.0: torch.behaviour changed its behavior in 1.8.0 without ever having been made to raise an error"
    )


@defect()
def warning_text_misquoted(tree: Tree, random: Random) -> str:
    name = random.choice(sorted(EVENTS))
    tree.edit(tree.deprecation(name), f"{name} is deprecated", f"{name} was deprecated")
    return f"{name}: in 1.{EVENTS[name]['warned']}.0 it must be warned according to its events, but it is silent"


@defect(2)
def warning_text_left_out(tree: Tree, random: Random) -> str:
    name = random.choice(sorted(EVENTS))
    tree.edit(tree.deprecation(name), f'warning = "{name} is deprecated"\n', "")
    return "key 'warning' is missing, but one of the events is a warning"


@defect(1, 4)
def error_text_misquoted(tree: Tree, random: Random) -> str:
    name = random.choice(["keyword", "function", "default", "mode"])
    tree.edit(tree.deprecation(name), f"{name} is gone", f"{name} has gone")
    return "the probe raised, but not a deprecation error"


@defect(2)
def warning_that_is_no_expression(tree: Tree, random: Random) -> str:
    name = random.choice(sorted(EVENTS))
    tree.edit(tree.deprecation(name), f'warning = "{name} is', f'warning = "{name} (is')
    return "must be a regular expression"


@defect()
def documentation_misquoted(tree: Tree, random: Random) -> str:
    name = random.choice(["function", "name", "pending", "planned"])
    tree.edit(tree.deprecation(name), 'holds = "deprecated"', 'holds = "discouraged"')
    return f"deprecations-evidence:wrong-documentation:{name}@"


@defect()
def documentation_said_to_be_later(tree: Tree, random: Random) -> str:
    name, line = random.choice([("keyword", 3), ("function", 1), ("pending", 9)])
    path = tree.deprecation(name)
    head, docs, tail = path.read_text(encoding="utf-8").partition("[[deprecation.docs]]")
    path.write_text(head + docs + tail.replace(f"1.{line}.0", f"1.{line + 1}.0", 1), encoding="utf-8")
    return f"{name}: in 1.{line}.0 the documentation already contains"


@defect()
def documentation_missing(tree: Tree, random: Random) -> str:
    name = random.choice(["pending", "planned", "keyword"])
    path = tree.deprecation(name)
    path.write_text(path.read_text(encoding="utf-8").partition("[[deprecation.docs]]")[0], encoding="utf-8")
    return f"deprecations-documented:undocumented:{name}/warned@"


@defect(2)
def file_renamed(tree: Tree, random: Random) -> str:
    path = tree.deprecation(random.choice(sorted(EVENTS)))
    path.rename(path.with_stem("another"))
    return "the file must have the deprecation's name"


@defect()
def file_deleted(tree: Tree, random: Random) -> str:
    name = random.choice(sorted(EVENTS))
    tree.deprecation(name).unlink()
    return f"fixtures/deprecations/{name}.py: no deprecation in the policy uses this probe"


@defect(2)
def file_emptied(tree: Tree, random: Random) -> str:
    tree.deprecation(random.choice(sorted(EVENTS))).write_text("", encoding="utf-8")
    return "contains no [deprecation]"


@defect(2)
def file_left_half_done(tree: Tree, random: Random) -> str:
    path = tree.deprecation(random.choice(sorted(EVENTS)))
    tree.edit(path, 'alternative = "torch.other"', 'alternative = "<replace this: what to use instead>"')
    return "is unfinished: replace the placeholder with what to use instead"


@defect(1, 2)
def file_copied_under_another_name(tree: Tree, random: Random) -> str:
    name = random.choice(sorted(EVENTS))
    text = tree.deprecation(name).read_text(encoding="utf-8").replace(f'id = "{name}"', 'id = "copy"')
    tree.deprecation("copy").write_text(text, encoding="utf-8")
    return "also belongs to another deprecation"


@defect()
def excuse_that_is_none(tree: Tree, random: Random) -> str:
    line = random.randrange(2, 8)
    tree.edit(tree.deprecation("unclear"), '..1.1.0"', f'..1.{line}.0"')
    return f"is listed as unclear (the probe crashes there), but the probe shows that it is {'silent' if line < 3 else ''}"


@defect(4)
def excuse_taken_away(tree: Tree, random: Random) -> str:
    line = random.randrange(2)
    tree.edit(tree.deprecation("unclear"), '"1.0.0..1.1.0"', f'"1.{1 - line}.0"')
    return f"unclear in torch-1.{line}.0: the probe crashed"


@defect()
def announced_for_an_earlier_release(tree: Tree, random: Random) -> str:
    line = random.choice([4, 5, 6])
    tree.edit(tree.deprecation("unclear"), "unclear = [", f'announced = {{ release = "1.{line}.0", text = "soon" }}\nunclear = [')
    return f"deprecations-overdue:too-long:unclear@1.{max(line, 5)}.0"


@defect()
def nightly_too_early(tree: Tree, random: Random) -> str:
    name, what = random.choice([("keyword", "error"), ("name", "removed"), ("mode", "removed")])
    path, line, before = tree.deprecation(name), EVENTS[name][what], EVENTS[name]["warned"]
    first = f"{day_of(before)}".replace("-", "-")
    early = day_of(before).toordinal() + random.randrange(100, 180)
    text = path.read_text(encoding="utf-8")
    text = re.sub(rf'(what = "warned"\nrelease = "1.{before}.0")', rf"\1\nnightly = {first}", text)
    text = re.sub(rf'(what = "{what}"\nrelease = "1.{line}.0")', rf"\1\nnightly = {type(day_of(0)).fromordinal(early)}", text)
    path.write_text(text, encoding="utf-8")
    return f"deprecations-timeline:too-early-on-nightlies:{name}/{what}@1.{line}.0"


@defect(2)
def nightly_after_its_release(tree: Tree, random: Random) -> str:
    name = random.choice(sorted(EVENTS))
    line = EVENTS[name]["warned"]
    tree.edit(tree.deprecation(name), 'what = "warned"\n', f'what = "warned"\nnightly = {day_of(line + 1)}\n')
    return "must not be after the release"


@defect()
def planned_too_early(tree: Tree, random: Random) -> str:
    tree.move("planned", "removed", 12)
    tree.edit(tree.policy / "timelines.toml", f"date = {day_of(12)}", f"date = {day_of(10).replace(day=28)}")
    tree.edit(tree.policy / "releases.toml", f"date = {day_of(11)}", f"date = {day_of(10)}")
    return "deprecations-timeline:planned-too-early:planned/removed"


@defect(4)
def plan_that_is_past(tree: Tree, random: Random) -> str:
    tree.edit(
        tree.policy / "timelines.toml", f"date = {day_of(13)}", f"date = {day_of(12).replace(day=random.randrange(20, 28))}"
    )
    return "planned/removed is planned for 1.13.0"


# -------------------------------------------------------------------------------------------- timelines, calendar, profiles


@defect()
def release_dated_later(tree: Tree, random: Random) -> str:
    """The release that first warned came later than it is said: the window is too short."""
    name, line, end = random.choice([("keyword", 3, 5), ("behaviour", 5, 8)])
    late = day_of(end).toordinal() - random.randrange(1, 180)
    for number in range(line, end):  # the lines in between move along
        tree.edit(tree.policy / "releases.toml", f"date = {day_of(number)}\n", f"date = {type(day_of(0)).fromordinal(late)}\n")
    return f"deprecations-timeline:too-early:{name}/{list(EVENTS[name])[-1]}@1.{end}.0"


@defect()
def release_dated_earlier(tree: Tree, random: Random) -> str:
    """The release that removed it came earlier than it is said."""
    early = day_of(3).toordinal() + random.randrange(100, 180)
    for number in (4, 5):
        tree.edit(tree.policy / "releases.toml", f"date = {day_of(number)}\n", f"date = {type(day_of(0)).fromordinal(early)}\n")
    return "deprecations-timeline:too-early:keyword/error@1.5.0"


@defect(2, 1)
def release_left_out_of_the_calendar(tree: Tree, random: Random) -> str:
    line = random.randrange(2, 9)
    path = tree.policy / "releases.toml"
    blocks = path.read_text(encoding="utf-8").split("\n[[release]]")
    path.write_text("\n[[release]]".join(block for block in blocks if f'version = "1.{line}.0"' not in block), encoding="utf-8")
    return f"release '1.{line}.0' is not in the calendar"


@defect(4)
def new_release_that_was_not_asked(tree: Tree, random: Random) -> str:
    day = day_of(LINES - 1).replace(day=random.randrange(10, 28))
    text = f'\n[[release]]\nversion = "1.11.1"\ndate = {day}\npythons = ["3.8"]\ninstall = "whole"\nnumpy = "<2"\n'
    path = tree.policy / "releases.toml"
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")
    return 'the release has not run any deprecation probe; run nox -s "observe(torch-1.11.1)"'


@defect(2)
def release_dated_twice(tree: Tree, random: Random) -> str:
    line = random.randrange(LINES)
    path = tree.policy / "releases.toml"
    text = path.read_text(encoding="utf-8")
    block = next(part for part in text.split("\n[[release]]") if f'version = "1.{line}.0"' in part)
    path.write_text(text + "\n[[release]]" + block.removeprefix("[[release]]"), encoding="utf-8")
    return f"release '1.{line}.0' is already defined"


@defect(2)
def release_planned_that_is_there(tree: Tree, random: Random) -> str:
    tree.edit(tree.policy / "timelines.toml", 'version = "1.12.0"', f'version = "1.{random.randrange(LINES)}.0"')
    return "is planned, but the calendar already has 1.11.0"


@defect(2)
def plans_out_of_order(tree: Tree, random: Random) -> str:
    tree.edit(tree.policy / "timelines.toml", f"date = {day_of(13)}", f"date = {day_of(12 + 2 * random.randrange(1, 3))}")
    return "not after"


@defect()
def window_made_wider(tree: Tree, random: Random) -> str:
    days = random.randrange(201, 400)
    path = tree.policy / "timelines.toml"
    path.write_text(path.read_text(encoding="utf-8").replace("days = 180", f"days = {days}"), encoding="utf-8")
    return "deprecations-timeline:too-early:keyword/error@1.5.0"


@defect(2)
def timeline_left_out(tree: Tree, random: Random) -> str:
    kind = random.choice(["mode-change", "keyword-only", "rename"])
    path = tree.policy / "timelines.toml"
    blocks = path.read_text(encoding="utf-8").split("\n[[timeline]]")
    path.write_text("\n[[timeline]]".join(block for block in blocks if f'kind = "{kind}"' not in block), encoding="utf-8")
    return f"there is no [[timeline]] for a {kind}"


@defect(2)
def timeline_twice(tree: Tree, random: Random) -> str:
    kind = random.choice(["keyword-only", "removal", "rename"])
    tree.edit(tree.policy / "timelines.toml", 'kind = "mode-change"', f'kind = "{kind}"')
    return f"a {kind} already has a timeline"


@defect()
def rule_taken_out_leaves_its_waiver_unused(tree: Tree, random: Random) -> str:
    rule, waiver = random.choice([("deprecations-timeline", "early-and-known"), ("deprecations-overdue", "late-and-known")])
    tree.edit(tree.policy / "promises.toml", f'[[rule]]\nid = "{rule}"\nasks = "It holds."\nsource = "here"\n\n', "")
    return f"waiver {waiver} covers nothing"


@defect(seeds=1, arguments=("--profile", "strict"))
def held_to_a_stricter_profile(tree: Tree, random: Random) -> str:
    return "deprecations-timeline:too-early:keyword/error@1.5.0"


# ---------------------------------------------------------------------------------------------------------------- waivers


@defect()
def waiver_deleted(tree: Tree, random: Random) -> str:
    path = random.choice(tree.waivers())
    path.unlink()
    relock(tree.policy)
    return "deprecations-timeline:too-early:too-early/removed" if "early" in path.stem else "deprecations-overdue:too-long:late"


@defect()
def waiver_expired(tree: Tree, random: Random) -> str:
    path = random.choice(tree.waivers())
    tree.edit(path, 'owner = "us"\n', f'owner = "us"\nexpires = {day_of(random.randrange(LINES))}\n')
    return f"waiver {path.stem} expired on"


@defect()
def waiver_accepted_with_another_text(tree: Tree, random: Random) -> str:
    path = random.choice(tree.waivers())
    lock = tree.policy / WAIVERS_LOCK
    text = lock.read_text(encoding="utf-8")
    lock.write_text(re.sub(rf"(?m)^({path.stem} finding) \w+", r"\1 0123456789ab", text), encoding="utf-8")
    return f"the waiver {path.stem} is for this, but it was accepted with another difference"


@defect()
def waiver_locked_for_a_finding_that_is_none(tree: Tree, random: Random) -> str:
    path = random.choice(tree.waivers())
    accepted = read_accepted(tree.policy)
    assert accepted is not None
    findings = {**accepted.findings, (path.stem, "deprecations-timeline:nothing:x"): "0123456789ab"}
    (tree.policy / WAIVERS_LOCK).write_text(replace(accepted, findings=findings).text, encoding="utf-8")
    return f"waiver {path.stem} is for deprecations-timeline:nothing:x, which do not fail"


@defect()
def waiver_of_a_cause_that_is_none(tree: Tree, random: Random) -> str:
    path = random.choice(tree.waivers())
    path.write_text(path.read_text(encoding="utf-8").replace("deprecations-", "deprecation-"), encoding="utf-8")
    return "deprecations-"


@defect()
def waiver_of_another_event(tree: Tree, random: Random) -> str:
    path = next(path for path in tree.waivers() if "early" in path.stem)
    tree.edit(path, "too-early/removed@", f"too-early/{random.choice(['error', 'warned'])}@")
    return "deprecations-timeline:too-early:too-early/removed@1.7.0"


@defect()
def waiver_for_a_finding_more(tree: Tree, random: Random) -> str:
    path = random.choice(tree.waivers())
    text = path.read_text(encoding="utf-8")
    path.write_text(
        text.replace('findings = ["', 'findings = ["deprecations-overdue:too-long:nobody@1.4.0", "'), encoding="utf-8"
    )
    return f"waiver {path.stem} names 'deprecations-overdue:too-long:nobody@1.4.0', but no failing finding has this id"


@defect()
def waivers_that_overlap(tree: Tree, random: Random) -> str:
    path = random.choice(tree.waivers())
    text = path.read_text(encoding="utf-8").replace(f'id = "{path.stem}"', 'id = "again"')
    path.with_stem("again").write_text(text, encoding="utf-8")
    return "covers cells that"


@defect()
def waiver_of_nothing(tree: Tree, random: Random) -> str:
    path = random.choice(tree.waivers())
    text = path.read_text(encoding="utf-8").replace(f'id = "{path.stem}"', 'id = "idle"')
    text = re.sub(r'findings = \["([^"]*?):[^":]*@', r'findings = ["\1:nobody@', text)
    path.with_stem("idle").write_text(text, encoding="utf-8")
    return "waiver idle covers nothing"


@defect(2)
def waiver_without_an_owner(tree: Tree, random: Random) -> str:
    tree.edit(random.choice(tree.waivers()), 'owner = "us"\n', "")
    return "key 'owner' is missing"


@defect(2)
def waiver_under_another_name(tree: Tree, random: Random) -> str:
    path = random.choice(tree.waivers())
    path.rename(path.with_stem("another"))
    return "the file must have the waiver's name"


# --------------------------------------------------------------------------------------------------------------- evidence


def use(observation: DeprecationObservation, **change: Any) -> DeprecationObservation:
    return replace(observation, deprecated=replace(observation.deprecated, **change))


@defect(seeds=3)
def release_did_not_warn(tree: Tree, random: Random) -> str:
    name = random.choice(["keyword", "default", "pending"])
    line = {"keyword": 3, "default": 2, "pending": 9}[name] + random.randrange(2)
    tree.observe(line, name, lambda value: use(value, warnings=()))
    return f"{name}: in 1.{line}.0 it must be warned according to its events, but it is silent"


@defect()
def release_warned_already(tree: Tree, random: Random) -> str:
    name, line = random.choice([("keyword", 2), ("behaviour", 4), ("pending", 8)])
    tree.observe(line, name, lambda value: use(value, warnings=(("UserWarning", f"{name} is deprecated"),)))
    return f"{name}: in 1.{line}.0 it must be absent or silent according to its events, but it is warned"


@defect()
def release_removed_it_already(tree: Tree, random: Random) -> str:
    name, line = random.choice([("keyword", 4), ("pending", 10), ("behaviour", 7)])
    lacks = {"type": "lacks", "message": f"torch.{name}"}
    tree.observe(line, name, lambda value: use(value, outcome="lacks", warnings=(), behaves=None, error=lacks))
    return f"{name}: in 1.{line}.0 it must be warned according to its events, but it is removed"


@defect()
def release_behaved_as_new_already(tree: Tree, random: Random) -> str:
    name, line = random.choice([("mode", 3), ("default", 3), ("behaviour", 7)])
    tree.observe(line, name, lambda value: use(value, behaves="new"))
    return f"{name}: in 1.{line}.0 it must be warned according to its events, but it is new"


@defect()
def release_behaved_as_of_old(tree: Tree, random: Random) -> str:
    name, line = random.choice([("mode", 7), ("default", 9), ("behaviour", 8)])
    tree.observe(line, name, lambda value: use(value, behaves="old"))
    return f"{name}: in 1.{line}.0 it must be new according to its events, but it is silent"


@defect()
def release_had_it_still(tree: Tree, random: Random) -> str:
    name, line = random.choice([("keyword", 6), ("name", 4), ("function", 7)])
    tree.observe(line, name, lambda value: use(value, outcome="worked", error=None))
    return f"{name}: in 1.{line}.0 it must be error"


@defect(4)
def probe_crashed(tree: Tree, random: Random) -> str:
    name, line = random.choice(["keyword", "function", "pending"]), random.randrange(LINES)
    died = {"type": "SIGABRT", "message": ""}
    tree.observe(line, name, lambda value: use(value, outcome="crashed", warnings=(), behaves=None, error=died))
    return f"{name} in torch-1.{line}.0: the probe crashed: SIGABRT"


@defect(1, 4)
def control_failed_as_well(tree: Tree, random: Random) -> str:
    tree.edit(tree.deprecation("keyword"), 'error = "keyword is gone"\n', "")
    line = random.randrange(5, LINES)
    error = {"type": "RuntimeError", "message": "no kernel"}

    def spoil(observation: DeprecationObservation) -> DeprecationObservation:
        return replace(observation, alternative=replace(observation.alternative, outcome="raised", error=error))

    tree.observe(line, "keyword", spoil)
    return f"keyword in torch-1.{line}.0: the probe raised: RuntimeError: keyword is gone, and the control raised"


@defect()
def alternative_was_lacking(tree: Tree, random: Random) -> str:
    name, line = random.choice([("mode", 5), ("name", 1), ("name", 3)])
    lacks = {"type": "lacks", "message": "torch.other"}

    def spoil(observation: DeprecationObservation) -> DeprecationObservation:
        return replace(observation, alternative=replace(observation.alternative, outcome="lacks", behaves=None, error=lacks))

    tree.observe(line, name, spoil)
    return f"{name}: in 1.{line}.0 the alternative is missing"


def control(observation: DeprecationObservation, **change: Any) -> DeprecationObservation:
    return replace(observation, alternative=replace(observation.alternative, **change))


WARNING = {"keyword": (3, 4), "default": (2, 3), "pending": (9, 10, 11), "mode": (2, 3)}  # lines that warn


@defect(seeds=3)
def alternative_raised_in_a_release_that_warns(tree: Tree, random: Random) -> str:
    name = random.choice(sorted(WARNING))
    line, error = random.choice(WARNING[name]), {"type": "RuntimeError", "message": "no kernel"}
    tree.observe(line, name, lambda value: control(value, outcome="raised", behaves=None, error=error))
    return f"{name}: in 1.{line}.0 the alternative raised: RuntimeError: no kernel"


@defect()
def alternative_crashed(tree: Tree, random: Random) -> str:
    name, line = random.choice([("mode", 3), ("name", 1), ("function", 5)])
    died = {"type": "SIGABRT", "message": ""}
    tree.observe(line, name, lambda value: control(value, outcome="crashed", behaves=None, error=died))
    return f"{name}: in 1.{line}.0 the alternative crashed: SIGABRT"


@defect(seeds=3)
def alternative_itself_warned(tree: Tree, random: Random) -> str:
    name = random.choice(sorted(WARNING))
    line, text = random.choice(WARNING[name]), "torch.other is deprecated"
    messages: dict[str, Any] = random.choice([{"warnings": (("FutureWarning", text),)}, {"said": f"[W other.cpp:N] {text}"}])
    tree.observe(line, name, lambda value: control(value, **messages))
    return f"{name}: in 1.{line}.0 the alternative itself warns: "


@defect(seeds=3)
def warning_that_python_hides(tree: Tree, random: Random) -> str:
    name = random.choice(sorted(WARNING))
    line, category = random.choice(WARNING[name]), random.choice(["DeprecationWarning", "PendingDeprecationWarning"])
    tree.observe(line, name, lambda value: use(value, warnings=((category, f"{name} is deprecated"),)))
    return f"{name}: in 1.{line}.0 it warns with a {category}, which Python hides by default"


@defect()
def warning_said_to_be_hidden(tree: Tree, random: Random) -> str:
    name = random.choice(sorted(WARNING))
    hide(tree, name, f"1.{WARNING[name][0]}.0..")
    return f"{name}: the file says that the warning of 1.{WARNING[name][0]}.0 is a DeprecationWarning, which Python hides by default, but it is shown"


@defect()
def warning_said_to_be_hidden_where_there_is_none(tree: Tree, random: Random) -> str:
    name = random.choice(sorted(WARNING))
    hide(tree, name, "1.0.0")
    return f"{name}: none of the checked releases in 1.0.0 warns"


@defect()
def warning_in_another_hidden_category(tree: Tree, random: Random) -> str:
    hide(tree, "pending", "1.9.0..")
    other = random.randrange(9, LINES)
    for line in range(9, LINES):
        category = "PendingDeprecationWarning" if line == other else "DeprecationWarning"
        tree.observe(line, "pending", lambda value, to=category: use(value, warnings=((to, "pending is deprecated"),)))  # type: ignore[misc]
    return f"pending: in 1.{other}.0 it warns with a PendingDeprecationWarning, which Python hides by default, not a Deprecation"


def hide(tree: Tree, name: str, readers: str) -> None:
    """Say of releases that Python hides their warning."""
    path = tree.deprecation(name)
    text = f'\n[[deprecation.hidden]]\nreaders = "{readers}"\ncategory = "DeprecationWarning"\n'
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")


@defect(2)
def hidden_by_a_release_that_nobody_knows(tree: Tree, random: Random) -> str:
    hide(tree, random.choice(sorted(WARNING)), "1.77.0..")
    return "release '1.77.0' is not in the calendar"


@defect()
def alternative_said_to_be_deprecated(tree: Tree, random: Random) -> str:
    """By a file by which it must have warned, or be gone."""
    other = random.choice(["function", "keyword"])
    tree.edit(
        tree.deprecation("pending"), 'alternative = "torch.other"', f'alternative = "it"\nalternative_deprecation = "{other}"'
    )
    return f"according to the file of {other}, but it is silent"


@defect(2)
def alternative_deprecated_by_no_file(tree: Tree, random: Random) -> str:
    name = random.choice(["nobody", "pending"])
    tree.edit(
        tree.deprecation("pending"), 'alternative = "torch.other"', f'alternative = "it"\nalternative_deprecation = "{name}"'
    )
    return f"there is no other deprecation '{name}'"


@defect()
def alternative_said_to_be_in_another_package(tree: Tree, random: Random) -> str:
    name = random.choice(sorted(WARNING))
    tree.edit(tree.deprecation(name), 'alternative = "torch.other"', 'alternative = "it"\nalternative_package = "other"')
    return f"{name}: in 1.{2 if name == 'mode' else 0}.0 the alternative worked, although the file says that other provides it"


@defect(seeds=4)
def removal_announced_in_the_documentation(tree: Tree, random: Random) -> str:
    name = random.choice(["keyword", "pending", "behaviour", "mode"])
    line, when = random.randrange(5, LINES), random.choice(["in 1.13", "in a future release", "in the next release of PyTorch"])
    sentence = f"torch.{name} will be removed {when}."
    tree.observe(line, name, lambda value: replace(value, docs=(*(value.docs or ()), sentence)))
    return f"{name}: in 1.{line}.0 the documentation announces 'will be removed {when.removesuffix(' of PyTorch')}"


@defect(seeds=3)
def removal_announced_in_a_sentence_that_is_quoted(tree: Tree, random: Random) -> str:
    line = random.randrange(9, LINES)
    words = random.choice(["will be removed in 1.13", "may change in a future version"])
    tree.observe(line, "pending", lambda value: replace(value, docs=(f"It deprecated since 1.9 and {words}.",)))
    return f"pending: in 1.{line}.0 the documentation announces {words!r}"


@defect()
def deprecation_announced_in_the_documentation(tree: Tree, random: Random) -> str:
    line = random.randrange(2)
    tree.observe(line, "function", lambda value: replace(value, docs=("torch.function is deprecated.",)))
    return f"function: in 1.{line}.0 the documentation a"


@defect()
def announcement_that_is_none(tree: Tree, random: Random) -> str:
    tree.edit(tree.deprecation("pending"), 'holds = "deprecated"', 'holds = "deprecated"\nannounces = ["will go in 1.13"]')
    return "pending: in 1.9.0 the documentation must announce 'will go in 1.13', but it does not"


@defect()
def documentation_was_silent(tree: Tree, random: Random) -> str:
    name, line = random.choice([("keyword", 4), ("default", 3), ("pending", 10)])
    tree.observe(line, name, lambda value: replace(value, docs=()))
    return f"{name}: in 1.{line}.0 the documentation must contain"


@defect()
def documentation_of_what_is_gone_does_not_say_so(tree: Tree, random: Random) -> str:
    """A thing that is gone need not have a docstring; one that it has must tell of it."""
    line = random.randrange(4, LINES)
    tree.observe(line, "name", lambda value: replace(value, docs=("It is a name.",)))
    return f"name: in 1.{line}.0 the documentation must contain 'deprecated'"


@defect(4)
def release_not_asked(tree: Tree, random: Random) -> str:
    line, name = random.randrange(LINES), random.choice(sorted(EVENTS))
    tree.observe(line, name, lambda _: None)
    return f"{name} in torch-1.{line}.0: the release has not run the current probe"


@defect(4)
def reader_deleted(tree: Tree, random: Random) -> str:
    line = random.randrange(LINES)
    tree.readers[line].unlink()
    return f"torch-1.{line}.0: the release has not run any deprecation probe"


@defect(1, 4)
def probe_changed(tree: Tree, random: Random) -> str:
    path = random.choice(tree.probes)
    path.write_text(path.read_text(encoding="utf-8").replace("return 1", "return 2"), encoding="utf-8")
    return "the release has not run the current probe"


@defect(1, 4)
def probe_deleted(tree: Tree, random: Random) -> str:
    path = random.choice(tree.probes)
    path.unlink()
    return f"there is no probe fixtures/deprecations/{path.name}"


@defect(1, 4)
def probe_half_done(tree: Tree, random: Random) -> str:
    path = random.choice(tree.probes)
    path.write_text(
        path.read_text(encoding="utf-8").replace("return 1", "return 1  # <replace this: what it does>", 1), encoding="utf-8"
    )
    return f"there is no probe fixtures/deprecations/{path.name}"


@defect()
def probe_of_nothing(tree: Tree, random: Random) -> str:
    path = random.choice(tree.probes)
    shutil.copyfile(path, path.with_stem("stray"))
    return "fixtures/deprecations/stray.py: no deprecation in the policy uses this probe"


@defect(4)
def recording_edited_by_hand(tree: Tree, random: Random) -> str:
    path = random.choice(tree.readers)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("worked", "lacks", 1), encoding="utf-8")
    return "recorded observations cannot be read"


@defect(4)
def recording_cut_off(tree: Tree, random: Random) -> str:
    path = random.choice(tree.readers)
    data = path.read_bytes()
    path.write_bytes(data[: random.randrange(1, len(data) - 1)])
    return "recorded observations cannot be read"


# ---------------------------------------------------------------------------------------------------------------- judging


def test_the_clean_tree_gives_no_alarm(pristine: Path) -> None:
    before = digest_of(pristine)
    judged = Tree(pristine).judge()
    assert (judged.status, judged.said, judged.err) == (0, "", "")
    assert digest_of(pristine) == before


def test_it_gives_none_on_any_day_of_its_history(pristine: Path) -> None:
    for line in range(LINES):
        for day in (day_of(line), type(day_of(0)).fromordinal(day_of(line).toordinal() + GAP // 2)):
            judged = Tree(pristine).judge("--as-of", day.isoformat())
            assert (judged.status, judged.said) == (0, ""), day


def test_there_are_enough_of_them() -> None:
    assert len(DEFECTS) >= LEAST_KINDS
    assert sum(item.seeds for item in DEFECTS) >= LEAST_DEFECTS
    assert len({item.name for item in DEFECTS}) == len(DEFECTS)


@pytest.mark.parametrize(
    ("planted", "seed"), [pytest.param(item, seed, id=f"{item.name}-{seed}") for item in DEFECTS for seed in range(item.seeds)]
)
def test_a_planted_defect_is_found(planted: Defect, seed: int, tree: Tree) -> None:
    named = planted.plant(tree, Random(f"{planted.name}-{seed}"))
    judged = tree.judge(*planted.arguments)
    assert named in judged.said, judged.said
    assert judged.status in planted.status, judged.said


def test_a_warning_of_the_alternative_was_not_promised_away_before_the_policy(tree: Tree) -> None:
    tree.observe(1, "function", lambda value: control(value, warnings=(("UserWarning", "torch.other is in beta"),)))
    assert tree.judge().status == 0


def test_what_is_said_of_the_machine_is_no_warning_of_the_alternative(tree: Tree) -> None:
    tree.observe(9, "pending", lambda value: control(value, said="[W flop_counter.py:N] triton not found; no flops"))
    assert tree.judge().status == 0


def test_an_alternative_that_was_deprecated_does_what_its_own_file_says(tree: Tree) -> None:
    """``name`` is gone since 1.4.0 and sent people to torch.function, which raised in the same release."""
    tree.edit(tree.deprecation("name"), 'alternative = "torch.other"', 'alternative = "it"\nalternative_deprecation = "function"')
    raised = {"type": "RuntimeError", "message": "function is gone"}
    for line in range(1, LINES):
        change: dict[str, Any] = {"outcome": "raised", "error": raised}
        if line < 4:
            change = {"warnings": (("UserWarning", "function is deprecated"),)}
        elif line >= 6:
            change = {"outcome": "lacks", "error": {"type": "lacks", "message": "torch.function"}}
        tree.observe(line, "name", lambda value, to=change: control(value, **to))  # type: ignore[misc]
    assert tree.judge().status == 0, tree.judge().said


def test_a_warning_that_the_file_says_is_hidden_is_expected(tree: Tree) -> None:
    hide(tree, "pending", "1.9.0..")
    for line in range(9, LINES):
        tree.observe(line, "pending", lambda value: use(value, warnings=(("DeprecationWarning", "pending is deprecated"),)))
    assert tree.judge().status == 0


def test_a_warning_that_is_printed_is_not_hidden(tree: Tree) -> None:
    warned: dict[str, Any] = {"warnings": (("DeprecationWarning", "pending is deprecated"),), "said": "pending is deprecated"}
    tree.observe(9, "pending", lambda value: use(value, **warned))
    assert tree.judge().status == 0


def test_a_warning_that_comes_in_two_categories_is_seen(tree: Tree) -> None:
    given = (("DeprecationWarning", "pending is deprecated"), ("FutureWarning", "pending is deprecated"))
    tree.observe(9, "pending", lambda value: use(value, warnings=given))
    assert tree.judge().status == 0
