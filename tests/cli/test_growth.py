"""Adding a release step by step: a calendar entry and two nox sessions; until all three are done, everything reports what is missing."""

from __future__ import annotations

import datetime as dt
import importlib
import importlib.util
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import MagicMock

import pytest

from tests.miniatures import miniature
from tests.miniatures.index import FakeIndex
from tests.surveyed import small_survey
from torch_compat.policy import load_policy

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from tests.miniatures.tree import Tree

REPOSITORY = Path(__file__).parents[2]
INVENTED = "2.16.0"
UPLOADED = dt.date(2026, 7, 15)
ENTRY = f"""
[[release]]
version = "{INVENTED}"
date = {UPLOADED}
pythons = ["3.11"]
install = "whole"
numpy = "<2"
"""
PRODUCE = f'run nox -s "produce(torch-{INVENTED})"'
OBSERVE = f'run nox -s "observe(torch-{INVENTED})" -- --record'


@dataclass
class Session:
    """As much of a nox session as the sessions here use: commands run in this very process, in the tree."""

    command: Callable[..., Any]
    posargs: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def install(self, *_: str) -> None:
        pass

    def log(self, text: str, *values: object) -> None:
        self.said.append(text % values if values else text)

    def output(self, *arguments: str) -> tuple[int, str]:
        ended = self.command(*arguments)
        return int(ended.status), str(ended.out)

    def status(self, *arguments: str) -> int:
        ended = self.command(*arguments)
        self.said += [ended.out, ended.err]
        return int(ended.status)

    def run(self, program: str, *arguments: str) -> None:
        assert program == "torch-compat"
        if status := self.status(*arguments):
            raise AssertionError(f"{arguments} ended with {status}: {self.said}")


@pytest.fixture
def noxfile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], ModuleType]:
    """The noxfile as nox loads it in a tree: sessions are plain functions, releases plain versions."""
    nox = MagicMock()
    nox.param = lambda version, **_: version
    nox.parametrize = lambda *_: lambda session: session
    nox.session = lambda *sessions, **_: sessions[0] if sessions else lambda session: session
    monkeypatch.setitem(sys.modules, "nox", nox)

    def load(root: Path) -> ModuleType:
        if root != REPOSITORY:
            shutil.copy(REPOSITORY / "noxfile.py", root)
        monkeypatch.chdir(root)
        spec = importlib.util.spec_from_file_location("noxfile", root / "noxfile.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        monkeypatch.setattr(module, "status", lambda session, *arguments: session.status(*arguments))
        monkeypatch.setattr(module, "output", lambda session, *arguments: session.output(*arguments))
        return module

    return load


@pytest.fixture
def growing(tree: Tree, command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """The command in a tree whose corpus follows the calendar."""
    promises, releases = (tree.root / "policies/torch" / name for name in ("promises.toml", "releases.toml"))
    listed = 'writers = ["1.5.1", "1.6.0"]\nreaders = ["1.5.1", "1.6.0"]\n'
    text = promises.read_text(encoding="utf-8")
    assert listed in text
    promises.write_text(text.replace(listed, 'lines = "newest-patch"\nsettled = 2026-06-30\n'), encoding="utf-8")
    calendar, _, newest = releases.read_text(encoding="utf-8").rpartition("[[release]]")
    assert '"2.13.0"' in newest
    releases.write_text(calendar, encoding="utf-8")
    # miniatures have no operators to be asked for
    monkeypatch.setattr(importlib.import_module("torch_compat.replay.recording"), "survey", lambda *_: small_survey())
    assert command("judge").status == 0
    return command


@pytest.fixture
def index(tree: Tree, growing: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> FakeIndex:
    """An index that offers what the calendar knows."""
    fake = FakeIndex.of(load_policy(tree.root / "policies/torch").calendar)
    monkeypatch.setattr(importlib.import_module("torch_compat.cli.readers"), "run_command", fake)
    return fake


def add_entry(tree: Tree) -> None:
    path = tree.root / "policies/torch/releases.toml"
    path.write_text(path.read_text(encoding="utf-8") + ENTRY, encoding="utf-8")


def holes(report: dict[str, Any]) -> tuple[set[str], set[str]]:
    """The causes of what fails; and of what could not be checked."""
    failed = {finding["cause"] for finding in report["findings"] if finding["verdict"] == "fail"}
    return failed, {row["reason"] for row in report["not_checked"]}


# ----------------------------------------------------------------------------------------------------------- the sessions


def test_the_sessions_know_their_releases_before_anything_is_installed() -> None:
    code = (
        "import sys, types; from unittest.mock import MagicMock; sys.modules['nox'] = MagicMock(); sys.path.insert(0, '.');"
        "import noxfile; print(*noxfile.READERS)"
    )
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True, cwd=REPOSITORY
    )  # neither the package nor what it depends on can be imported there
    assert tuple(ran.stdout.split()) == load_policy(REPOSITORY / "policies/torch").corpus.readers


@pytest.mark.usefixtures("growing")
def test_sessions_and_policy_speak_of_the_same_releases(noxfile: Callable[[Path], ModuleType], tree: Tree) -> None:
    add_entry(tree)
    for root in (REPOSITORY, tree.root):
        corpus = load_policy(root / "policies/torch").corpus
        module = noxfile(root)
        assert (corpus.writers, corpus.readers) == (module.WRITERS, module.READERS)
    assert corpus.writers == ("1.5.1", "1.6.0", INVENTED)


def test_a_release_is_one_entry_and_two_sessions(
    growing: Callable[..., Any], tree: Tree, noxfile: Callable[[Path], ModuleType]
) -> None:
    add_entry(tree)
    miniature(tree.cache, INVENTED)

    judged = growing("judge", "--format", "json")
    failed, unchecked = holes(judged.json)
    assert judged.status == 1
    assert failed == {f"torch-{INVENTED}: 3 of 3 recipes were not run; {PRODUCE}"}
    assert unchecked == {
        f"torch-{INVENTED}: no observations by this reader; {OBSERVE}",
        f"one in torch-{INVENTED}: not observed; {OBSERVE}",
    }

    sessions = noxfile(tree.root)
    assert INVENTED in sessions.WRITERS
    sessions.produce(Session(growing), INVENTED)
    judged = growing("judge", "--format", "json")
    failed, unchecked = holes(judged.json)
    assert judged.status == 4
    assert failed == set()
    assert unchecked == {
        f"torch-{INVENTED}: no observations by this reader; {OBSERVE}",
        f"torch-1.5.1: not observed; {OBSERVE}",  # the older ones have to read what it wrote: the same session lets them
        f"torch-1.6.0: not observed; {OBSERVE}",
        f"one in torch-{INVENTED}: not observed; {OBSERVE}",
    }

    sessions.observe(Session(growing, ["--record"]), INVENTED)
    judged = growing("judge", "--format", "json")
    assert holes(judged.json) == (set(), set())
    assert judged.status == 0
    assert {(row["writer"], row["reader"]) for row in judged.json["matrix"]} == {
        (f"torch-{writer}", f"torch-{reader}")
        for writer in ("1.5.1", "1.6.0", INVENTED)
        for reader in ("1.5.1", "1.6.0", INVENTED)
    }


def test_a_recipe_that_one_writer_did_not_run_is_named_alone(growing: Callable[..., Any], tree: Tree) -> None:
    source = (tree.root / "fixtures/recipes/state.py").read_text(encoding="utf-8")
    (tree.root / "fixtures/recipes/another.py").write_text(source, encoding="utf-8")
    assert growing("produce", "torch-1.5.1").status == 0
    failed, unchecked = holes(growing("judge", "--format", "json").json)
    assert failed == {
        'torch-1.6.0/another: the manifest lists neither an archive nor a reason for its absence; run nox -s "produce(torch-1.6.0)"'
    }
    assert unchecked == {  # readers that have met the writer miss a fixture of it: each has its own session
        f'torch-{version}: not observed; run nox -s "observe(torch-{version})" -- --record' for version in ("1.5.1", "1.6.0")
    }


def test_observing_without_record_leaves_the_others_alone(
    growing: Callable[..., Any], tree: Tree, noxfile: Callable[[Path], ModuleType]
) -> None:
    sessions = noxfile(tree.root)
    session = Session(growing)
    sessions.observe(session, "1.6.0")
    assert not any("nothing is missing" in message for message in session.said)
    session.posargs = ["--record"]
    sessions.observe(session, "1.6.0")
    assert "torch-1.5.1: nothing is missing\n" in session.said


def test_another_reader_that_cannot_be_had_ends_the_session(
    growing: Callable[..., Any], tree: Tree, noxfile: Callable[[Path], ModuleType]
) -> None:
    add_entry(tree)
    miniature(tree.cache, INVENTED)
    sessions = noxfile(tree.root)
    sessions.produce(Session(growing), INVENTED)
    shutil.rmtree(tree.cache / "readers/torch-1.5.1")
    with pytest.raises(AssertionError, match=r"'readers', 'build', 'torch-1\.5\.1'.*ended with"):
        sessions.observe(Session(growing, ["--record"]), INVENTED)
    assert growing("judge").status == 4


# ---------------------------------------------------------------------------------------------------- observe --missing


def test_nothing_missing_takes_no_release(growing: Callable[..., Any], tree: Tree) -> None:
    shutil.rmtree(tree.cache / "readers")
    ended = growing("observe", "--reader", "torch-1.6.0", "--missing")
    assert (ended.status, ended.out) == (0, "torch-1.6.0: nothing is missing\n")
    assert growing("observe", "--reader", "torch-1.6.0", "--missing", "--format", "json").json["cells"] == []


def test_only_what_is_missing_is_observed(growing: Callable[..., Any], tree: Tree) -> None:
    source = (tree.root / "fixtures/recipes/state.py").read_text(encoding="utf-8")
    (tree.root / "fixtures/recipes/another.py").write_text(source, encoding="utf-8")
    growing("produce", "torch-1.5.1")
    message = growing("observe", "--reader", "torch-1.6.0", "--missing", "--record", "--format", "json").json
    assert {cell["fixture"] for cell in message["cells"]} == {"torch-1.5.1/another"}
    assert growing("observe", "--reader", "torch-1.6.0", "--missing").out == "torch-1.6.0: nothing is missing\n"


def test_a_probe_that_changed_is_missing_too(growing: Callable[..., Any], tree: Tree) -> None:
    probe = tree.root / "fixtures/probes/one.py"
    probe.write_text(probe.read_text(encoding="utf-8") + "\n# changed\n", encoding="utf-8")
    ended = growing("observe", "--reader", "torch-1.6.0", "--missing", "--record", "--format", "json")
    assert (ended.status, ended.json["probes"]) == (0, [{"probe": "one", "reproduced": True}])


def test_missing_chooses_by_itself(growing: Callable[..., Any]) -> None:
    ended = growing("observe", "--reader", "torch-1.6.0", "--missing", "--fixture", "torch-1.5.1/add")
    assert ended.status == 2
    assert "--missing selects the fixtures itself" in ended.err


# ---------------------------------------------------------------------------------------------------------------- nightly


def nightly(sessions: ModuleType, session: Session) -> int:
    try:
        sessions.nightly(session)
    except SystemExit as stopped:
        return int(stopped.code or 0)
    return 0


def test_nightly_asks_for_a_release_until_it_is_there(
    growing: Callable[..., Any], tree: Tree, noxfile: Callable[[Path], ModuleType], index: FakeIndex
) -> None:
    sessions = noxfile(tree.root)
    assert nightly(sessions, Session(growing)) == 0

    index.releases[INVENTED] = (UPLOADED, ("3.11",))
    session = Session(growing)
    assert nightly(sessions, session) == 1
    (asked, *_) = session.said
    assert f"torch-{INVENTED}, uploaded on {UPLOADED}, is in the package index but not in the calendar" in asked
    entry = asked[asked.index("[[release]]") :]
    assert f"torch-compat admit torch-{INVENTED}\n" in asked

    path = tree.root / "policies/torch/releases.toml"  # the entry, as it was printed
    path.write_text(f"{path.read_text(encoding='utf-8')}\n{entry}", encoding="utf-8")
    miniature(tree.cache, INVENTED)
    sessions = noxfile(tree.root)
    for ready, status in ((sessions.produce, 1), (sessions.observe, 4)):
        session = Session(growing)
        assert nightly(sessions, session) == status
        assert session.said[-1].startswith("exit status: 0 for readers available")
        asked_for = [line.rpartition(": ")[2] for line in session.said if line.startswith("has not run")]
        assert asked_for == [line.removeprefix("run ") for line in ((PRODUCE, OBSERVE) if status == 1 else (OBSERVE,))]
        ready(Session(growing, ["--record"] if ready is sessions.observe else []), INVENTED)
    assert nightly(sessions, Session(growing)) == 0


@pytest.mark.usefixtures("index")
def test_what_nightly_observes_itself_is_no_record(
    growing: Callable[..., Any], tree: Tree, noxfile: Callable[[Path], ModuleType]
) -> None:
    tree.recording("1.6.0").unlink()
    session = Session(growing)
    assert nightly(noxfile(tree.root), session) == 4
    assert session.said[-1] == "exit status: 0 for readers available, 4 for the recorded observations, 0 for the replay"
    assert session.said[-2] == 'has not run, or is incomplete: nox -s "observe(torch-1.6.0)" -- --record'


def test_an_index_that_cannot_be_asked_is_never_green(
    growing: Callable[..., Any], tree: Tree, noxfile: Callable[[Path], ModuleType], index: FakeIndex
) -> None:
    index.unreached = "Could not fetch URL https://index.example/torch/: connection error: refused - skipping"
    session = Session(growing)
    assert nightly(noxfile(tree.root), session) == 4
    assert session.said[-1] == "exit status: 4 for readers available, 0 for the recorded observations, 0 for the replay"


def test_a_step_that_is_killed_is_no_success(
    tree: Tree, noxfile: Callable[[Path], ModuleType], growing: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = noxfile(tree.root)
    monkeypatch.setattr(sessions, "status", lambda *_: 0)
    monkeypatch.setattr(sessions, "output", lambda *_: (-9, ""))
    assert nightly(sessions, Session(growing)) == 3


def test_readers_available_as_json(growing: Callable[..., Any], index: FakeIndex) -> None:
    assert growing("readers", "available", "--format", "json").json == {
        "schema_version": 1,
        "newest": "torch-1.6.0",
        "missing": [],
    }
    index.releases[INVENTED] = (UPLOADED, ("3.11",))
    index.tells_dates = False
    ended = growing("readers", "available", "--format", "json")
    (row,) = ended.json["missing"]
    assert (ended.status, row["name"], row["date"], row["pythons"]) == (1, f"torch-{INVENTED}", None, ["3.11"])
    assert "date = YYYY-MM-DD" in row["entry"]
    assert row["run"] == [f"torch-compat admit torch-{INVENTED}"]


@pytest.mark.usefixtures("index")
def test_a_calendar_that_has_everything_says_so(growing: Callable[..., Any]) -> None:
    ended = growing("readers", "available")
    assert ended.status == 0
    assert ended.out == "the calendar contains every torch release in the package index; the newest is 1.6.0\n"
