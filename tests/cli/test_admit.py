"""One command adds a release to a tree: each step is done once, a killed run is completed, and the resulting bytes are the same."""

from __future__ import annotations

import base64
import datetime as dt
import importlib
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.miniatures import miniature
from tests.miniatures.index import FakeIndex
from tests.surveyed import small_survey
from torch_compat.corpus.manifest import MANIFEST, read_manifest, write_manifest
from torch_compat.corpus.surveys import surveyed_releases
from torch_compat.errors import EnvironmentUnavailable
from torch_compat.policy import load_policy
from torch_compat.policy.calendar_files import drop_releases
from torch_compat.readers.environments import Environments
from torch_compat.replay.admission import STEPS, Admission
from torch_compat.replay.before import remove_releases
from torch_compat.replay.generating import regenerate
from torch_compat.replay.rehearsal import differences, rounded_elsewhere
from torch_compat.workspace import Root

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.miniatures.tree import Tree

    Command = Callable[..., Any]

PAGE = Path(__file__).parents[2] / "docs/reference/python.md"
INVENTED = "2.16.0"
NAME = f"torch-{INVENTED}"
UPLOADED = dt.date(2026, 7, 15)
PLANNED = '[[release]]\nversion = "2.16.0"\ndate = 2026-07-14\nsource = "somebody"\n'


@pytest.fixture
def admission(tree: Tree, command: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command in a tree whose corpus follows the calendar, beside an index that offers one release more."""
    promises = tree.root / "policies/torch/promises.toml"
    listed = 'writers = ["1.5.1", "1.6.0"]\nreaders = ["1.5.1", "1.6.0"]\n'
    promises.write_text(
        promises.read_text(encoding="utf-8").replace(listed, 'lines = "newest-patch"\nsettled = 2026-06-30\n'), encoding="utf-8"
    )
    for path, text in drop_releases(tree.root / "policies/torch", frozenset({"2.13.0"})).items():
        path.write_text(text, encoding="utf-8")
    (tree.root / "policies/torch/timelines.toml").write_text(PLANNED, encoding="utf-8")
    (tree.root / "reports/findings.md").write_text("", encoding="utf-8")
    index = FakeIndex.of(load_policy(tree.root / "policies/torch").calendar)
    index.releases[INVENTED] = (UPLOADED, ("3.11",))
    module = importlib.import_module("torch_compat.replay.admission")
    monkeypatch.setattr(module, "run_command", index)
    monkeypatch.setattr(importlib.import_module("torch_compat.replay.recording"), "survey", lambda *_: small_survey())
    monkeypatch.setattr(Environments, "build", lambda self, release, **_: miniature(tree.cache, release.version))
    return command


def states(document: dict[str, Any]) -> dict[str, str]:
    return {row["step"]: row["state"] for row in document["steps"]}


def test_a_release_is_one_command(admission: Command, tree: Tree) -> None:
    before = tree.everything()
    ended = admission("admit", NAME, "--format", "json")
    assert ended.status == 0
    document = ended.json
    assert states(document) == dict.fromkeys(STEPS, "done") | {"predictions": "there"}
    after = tree.everything()
    assert document["changed"] == sorted(name for name in after if after[name] != before.get(name))
    assert document["left"] == []
    assert INVENTED in tree.policy.corpus.readers
    assert tree.policy.planned == ()
    assert tree.policy.calendar[INVENTED].date == UPLOADED
    assert INVENTED in surveyed_releases(tree.root / "fixtures")
    report = admission("judge", "--format", "json").json
    assert report["exit_status"] == 0
    assert len({(row["writer"], row["reader"]) for row in report["matrix"]}) == 9
    assert [step for step in STEPS if f"] {step}: " in ended.err] == list(STEPS)


def test_again_it_does_nothing_and_needs_no_release(admission: Command, tree: Tree) -> None:
    assert admission("admit", NAME).status == 0
    before = tree.everything()
    shutil.rmtree(tree.cache / "readers")
    ended = admission("admit", NAME, "--format", "json")
    assert (ended.status, set(states(ended.json).values()), ended.json["changed"]) == (0, {"there"}, [])
    assert tree.everything() == before


def test_the_documented_lines_observe_and_admit(admission: Command, tree: Tree, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (block,) = (item for item in blocks if "Admission(" in item)
    assert admission("judge").status == 0
    here = {
        "path/to/tree": str(tree.root),
        '"2.13.0"': '"1.6.0"',
        "in backtested(evidence)": "in ()",
    }  # miniatures lack operators
    for documented, instead in here.items():
        block = block.replace(documented, instead)
    exec(compile(block, str(PAGE), "exec"), {})
    message = capsys.readouterr()
    states = dict.fromkeys(STEPS, "done") | {"predictions": "there"}
    assert message.out.splitlines() == ["torch-1.6.0 7", *(f"{step} {state}" for step, state in states.items())]
    assert message.err == ""
    assert INVENTED in surveyed_releases(tree.root / "fixtures")
    assert admission("judge").status == 0


def admitted_once(admission: Command, tree: Tree) -> tuple[Path, dict[str, bytes]]:
    """A copy of the tree as it is, and what it holds once the release is admitted; afterwards it is as it was."""
    untouched = tree.root.with_name("untouched")
    shutil.copytree(tree.root, untouched)
    assert admission("admit", NAME).status == 0
    expected = tree.everything()
    shutil.rmtree(tree.root)
    shutil.copytree(untouched, tree.root)
    shutil.rmtree(tree.cache / "readers" / NAME)
    return untouched, expected


@pytest.mark.parametrize("last", STEPS[:-1])
@pytest.mark.sampled(3)
def test_a_run_that_is_killed_is_completed_to_the_same_bytes(
    admission: Command, tree: Tree, monkeypatch: pytest.MonkeyPatch, last: str
) -> None:
    untouched, expected = admitted_once(admission, tree)
    monkeypatch.chdir(tree.root)
    run = Admission.run

    def killed(self: Admission, step: str) -> Any:
        ended = run(self, step)
        if step == last:
            raise KeyboardInterrupt
        return ended

    with monkeypatch.context() as patch:
        patch.setattr(Admission, "run", killed)
        assert admission("admit", NAME).status == 130
    ended = admission("admit", NAME, "--format", "json")
    assert ended.status == 0
    assert tree.everything() == expected
    kept = {path for path in expected if not (untouched / path).is_file() or (untouched / path).read_bytes() != expected[path]}
    assert set(ended.json["changed"]) == kept  # what the killed run changed is told, too


@pytest.mark.parametrize(
    ("module", "writes", "number"),
    [("replay.produce", "write_manifest", 1), ("replay.produce", "write_frozen", 1), ("corpus.surveys", "put", 6)],
)
def test_killed_in_the_middle_of_a_step(
    admission: Command, tree: Tree, monkeypatch: pytest.MonkeyPatch, module: str, writes: str, number: int
) -> None:
    _, expected = admitted_once(admission, tree)
    monkeypatch.chdir(tree.root)
    named = importlib.import_module(f"torch_compat.{module}")
    write, calls = getattr(named, writes), []

    def killed(*arguments: Any, **keywords: Any) -> None:
        calls.append(arguments)
        if len(calls) == number:
            raise KeyboardInterrupt
        write(*arguments, **keywords)

    with monkeypatch.context() as patch:
        patch.setattr(named, writes, killed)
        assert admission("admit", NAME).status == 130
    assert len(calls) == number
    assert admission("admit", NAME).status == 0
    assert tree.everything() == expected


def test_killed_while_the_calendar_is_written(admission: Command, tree: Tree) -> None:
    (tree.root / "policies/torch/timelines.toml").write_text("", encoding="utf-8")  # the first of two files
    assert admission("admit", NAME, "--until", "calendar").status == 0
    (tree.root / "policies/torch/timelines.toml").write_text(PLANNED, encoding="utf-8")  # the other way round: no valid policy
    assert admission("judge").status == 2
    assert admission("admit", NAME, "--until", "calendar").status == 0
    assert tree.policy.planned == ()


def test_steps_can_be_chosen(admission: Command, tree: Tree) -> None:
    ended = admission("admit", NAME, "--until", "produce", "--format", "json")
    assert (ended.status, list(states(ended.json))) == (0, ["calendar", "environment", "produce"])
    assert [line.partition(":")[0] for line in ended.json["left"]] == ["observe", "survey", "readers", "documents"]
    ended = admission("admit", NAME, "--only", "readers", "--only", "observe", "--format", "json")
    assert (ended.status, list(states(ended.json))) == (0, ["observe", "readers"])
    assert admission("admit", NAME, "--only", "readers", "--until", "calendar").status == 2


def test_a_dry_run_changes_nothing(admission: Command, tree: Tree) -> None:
    shutil.rmtree(tree.cache / "readers/torch-1.5.1")
    before = tree.everything()
    ended = admission("admit", NAME, "--dry-run", "--format", "json")
    assert (ended.status, set(states(ended.json).values())) == (0, {"to-do"})
    assert ended.json["environments"] == {
        "build": [NAME, "torch-1.5.1"],
        "kept": False,
        "free_bytes_needed": 6_000_000_000,
        "largest_here_bytes": 1,
    }
    assert tree.everything() == before
    assert not (tree.root / "reports/latest").exists()
    text = admission("admit", NAME, "--dry-run").out
    assert f"environments to build: {NAME}, torch-1.5.1" in text
    assert "sizes are unknown before the download" in text


@pytest.mark.parametrize("keep", [False, True])
def test_environments_that_were_built_to_ask_go_again(admission: Command, tree: Tree, keep: bool) -> None:
    shutil.rmtree(tree.cache / "readers/torch-1.5.1")
    ended = admission("admit", NAME, *(["--keep-environments"] if keep else []))
    assert ended.status == 0
    assert (tree.cache / "readers/torch-1.5.1").is_dir() is keep
    assert (tree.cache / "readers/torch-1.6.0").is_dir()  # it was there before
    assert (tree.cache / "readers" / NAME).is_dir()


def test_an_environment_of_a_killed_run_is_known_for_its_own(
    admission: Command, tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(tree.cache / "readers/torch-1.5.1")

    def killed(self: Admission, release: Any) -> Any:
        raise KeyboardInterrupt

    assert admission("admit", NAME, "--until", "survey").status == 0
    with monkeypatch.context() as patch:
        patch.setattr(Admission, "_ask", killed)
        assert admission("admit", NAME).status == 130
    assert (tree.cache / "readers/torch-1.5.1").is_dir()
    assert admission("admit", NAME).status == 0
    assert not (tree.cache / "readers/torch-1.5.1").exists()


def test_a_reader_that_cannot_be_had_is_named_and_the_others_are_asked(
    admission: Command, tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(tree.cache / "readers/torch-1.5.1")

    def build(self: Environments, release: Any, **_: Any) -> Any:
        if release.version == "1.5.1":
            raise EnvironmentUnavailable("no fitting Python", code="no-python")
        return miniature(tree.cache, release.version)

    with monkeypatch.context() as patch:
        patch.setattr(Environments, "build", build)
        ended = admission("admit", NAME, "--format", "json")
    assert ended.status == 4
    assert states(ended.json) == {
        **dict.fromkeys(STEPS[:5], "done"), "readers": "incomplete", "documents": "left", "predictions": "left",
    }  # fmt: skip
    assert ended.json["left"][0] == f"readers: torch-1.5.1 has not loaded the fixtures from {NAME}: no fitting Python"
    ended = admission("admit", NAME, "--format", "json")
    assert ended.status == 0
    assert next(row["details"] for row in ended.json["steps"] if row["step"] == "readers")[0].startswith("torch-1.5.1: ")


def test_an_index_that_does_not_offer_it(admission: Command, tree: Tree) -> None:
    before = tree.everything()
    ended = admission("admit", "torch-2.99.0")
    assert ended.status == 4
    assert "does not offer torch 2.99.0" in ended.out
    assert tree.everything() == before


def test_an_index_without_dates(admission: Command, tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    index = FakeIndex.of(load_policy(tree.root / "policies/torch").calendar)
    index.releases[INVENTED] = (UPLOADED, ("3.11",))
    index.tells_dates = False
    monkeypatch.setattr(importlib.import_module("torch_compat.replay.admission"), "run_command", index)
    ended = admission("admit", NAME, "--until", "calendar")
    assert (ended.status, "--uploaded YYYY-MM-DD" in ended.out) == (4, True)
    assert admission("admit", NAME, "--until", "calendar", "--uploaded", str(UPLOADED)).status == 0
    assert tree.policy.calendar[INVENTED].date == UPLOADED


def test_what_a_release_breaks_is_left_to_people(admission: Command, tree: Tree) -> None:
    miniature(tree.cache, INVENTED, at_load="raise RuntimeError('not any more')")
    ended = admission("admit", NAME, "--format", "json")
    assert ended.status == 1
    assert states(ended.json)["documents"] == "done"
    assert any("findings fail" in line for line in ended.json["left"])


@pytest.mark.parametrize(
    ("told", "state", "left"),
    [
        (([], []), "done", []),
        ((["add is told wrongly"], []), "done", ["predictions: 1 cell is predicted wrongly (nox -s predictions)"]),
        (
            ([], ["behavior dies"]),
            "incomplete",
            ["predictions: behavior dies does not explain anything; remove it from the policy"],
        ),
    ],
)
def test_what_is_predicted_wrongly_is_left_to_people(
    admission: Command, tree: Tree, monkeypatch: pytest.MonkeyPatch, told: Any, state: str, left: list[str]
) -> None:
    assert admission("admit", NAME).status == 0
    (tree.root / "reports/predictions.md").write_text("nothing\n", encoding="utf-8")
    monkeypatch.setattr(importlib.import_module("torch_compat.replay.admission"), "predict", lambda *_: told)
    ended = admission("admit", NAME, "--format", "json")
    assert (ended.status, states(ended.json)["predictions"], ended.json["left"]) == (int(bool(left)), state, left)


@pytest.mark.parametrize("name", ["torch-2.16", "2.16.0rc1", "nightly", "torch-2.16.0+cpu"])
def test_what_is_no_release(admission: Command, name: str) -> None:
    ended = admission("admit", name)
    assert ended.status == 2
    assert "is not the name of a release" in ended.err


def test_a_tree_without_a_corpus(admission: Command, tmp_path: Any) -> None:
    (tmp_path / "empty").mkdir()
    assert admission("admit", NAME, "--root", str(tmp_path / "empty")).status == 4


def test_a_spoiled_note_of_an_earlier_run_is_no_hindrance(admission: Command, tree: Tree) -> None:
    note = tree.root / f"reports/latest/admit-{NAME}.json"
    note.parent.mkdir()
    note.write_text(json.dumps({"schema_version": 99}), encoding="utf-8")
    assert admission("admit", NAME).status == 0
    assert not note.exists()


def test_what_is_taken_out_comes_back_byte_for_byte(admission: Command, tree: Tree) -> None:
    assert admission("admit", NAME).status == 0
    expected, copy = tree.everything(), tree.root.with_name("expected")
    shutil.copytree(tree.root, copy)
    remove_releases(tree.root, [INVENTED])
    regenerate(Root(tree.root))
    assert not [name for name in tree.everything() if INVENTED in name]
    assert INVENTED.encode() not in b"".join(tree.everything().values())
    assert any("is missing" in line for line in differences(copy, tree.root, INVENTED))
    assert admission("judge").status == 0
    assert admission("admit", NAME).status == 0
    assert tree.everything() == expected
    assert list(differences(copy, tree.root, INVENTED)) == []


def admitted_and_computed_otherwise(admission: Command, tree: Tree, ulp: int, *, stored: bool = True) -> Path:
    """A copy of a tree to which a release was admitted, in whose tree a tensor of a golden is then off by some ULP."""
    assert admission("admit", NAME).status == 0
    copy = tree.root.with_name("expected")
    shutil.copytree(tree.root, copy)
    path = tree.root / f"fixtures/{NAME}/{MANIFEST}"
    manifest = read_manifest(path)
    fixtures = {fixture.recipe: fixture for fixture in manifest.fixtures}
    golden = json.loads(json.dumps(fixtures["state"].golden))
    tensor = next(item for item in tensors(golden) if item["dtype"] == "float32")
    number = int.from_bytes(base64.b64decode(tensor["bytes"])[:4], "little") + ulp
    tensor["bytes"] = base64.b64encode(number.to_bytes(4, "little") + base64.b64decode(tensor["bytes"])[4:]).decode()
    content = "0" * 64 if stored else fixtures["state"].content
    fixtures["state"] = replace(fixtures["state"], golden=golden, content=content)
    write_manifest(path, replace(manifest, fixtures=tuple(fixtures.values())))
    return copy


def tensors(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict) and "dtype" in value and "bytes" in value:
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from tensors(item)


@pytest.mark.parametrize("stored", [True, False], ids=["in the archive", "computed when it is called"])
@pytest.mark.parametrize(("ulp", "rounded"), [(2, ["state"]), (1000, [])])
def test_last_bits_of_another_processor_are_no_difference(
    ulp: int, rounded: list[str], admission: Command, tree: Tree, *, stored: bool
) -> None:
    copy = admitted_and_computed_otherwise(admission, tree, ulp, stored=stored)
    assert [fixture.recipe for fixture in rounded_elsewhere(copy, tree.root, INVENTED)] == rounded
    told = [line for line in differences(copy, tree.root, INVENTED) if "state differs in" in line]
    assert bool(told) is not bool(rounded)


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("policies/torch/releases.toml", "2026-07-15", "2026-07-16", "policies/torch/releases.toml: line"),
        ("reports/findings.md", "# Findings", "# Who", "reports/findings.md: line 1 is"),
        (f"fixtures/{NAME}/state.pt", "", "x", "the contents of the archive differ"),
        ("fixtures/FROZEN", f"{NAME}/state", f"{NAME}/estate", "is pinned differently"),
        ("fixtures/recipes/state.py", "epoch", "era", "fixtures/recipes/state.py: line"),
    ],
)
def test_a_planted_difference_is_told(admission: Command, tree: Tree, name: str, old: str, new: str, said: str) -> None:
    assert admission("admit", NAME).status == 0
    copy = tree.root.with_name("expected")
    shutil.copytree(tree.root, copy)
    path = tree.root / name
    if old:
        path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    else:
        shutil.copyfile(tree.root / f"fixtures/{NAME}/later.pt", path)
    assert any(said in line for line in differences(copy, tree.root, INVENTED))


def test_another_digest_of_the_same_archive_is_told(admission: Command, tree: Tree) -> None:
    assert admission("admit", NAME).status == 0
    copy = tree.root.with_name("expected")
    shutil.copytree(tree.root, copy)
    path = tree.root / f"fixtures/{NAME}/manifest.jsonl"
    manifest = read_manifest(path)
    write_manifest(path, replace(manifest, fixtures=tuple(replace(fixture, content="0" * 64) for fixture in manifest.fixtures)))
    assert any("differs in content" in line for line in differences(copy, tree.root, INVENTED))
