"""Compare a build with the newest release: miniature builds with and without a consistent identity."""

from __future__ import annotations

import datetime as dt
import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

import torch_compat
from tests.miniatures import miniature
from tests.readers.test_wheels import index_of, small_wheel
from tests.recordings import folder_of
from torch_compat.cli import main
from torch_compat.corpus.recorded import record
from torch_compat.operators.history import History
from torch_compat.readers.environments import Environments
from torch_compat.replay.candidate import only_with_cuda
from torch_compat.replay.observe import observe
from torch_compat.replay.trees import STATE, trees_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.miniatures.tree import Tree

VERSION = "1.7.0.dev20200901+cpu"
LISTS = """
_C = types.SimpleNamespace(_jit_get_all_schemas=lambda: open(__file__.replace("torch/__init__.py", "schemas.txt")).read().splitlines())
sys.modules["torch"]._C = _C
"""


@pytest.fixture
def build(tmp_path: Path) -> Callable[..., str]:
    """Makes a build, and gives its name; its operators are those of 1.6.0 but for some."""

    def make(version: str = VERSION, *, name: str = "build", without: str = "-", **hooks: str) -> str:
        environment = miniature(tmp_path / name, version, **{**hooks, "at_import": LISTS + hooks.get("at_import", "")})
        site = environment.prefix / "site"
        (site / "torch" / "hooks.txt").write_text(json.dumps(hooks), encoding="utf-8")  # another behaviour is another build
        history = History.load()
        bit = history.bit("1.6.0")
        schemas = sorted(text for text, _, bits in history.facts() if bits & bit and not text.startswith(without))
        (site / "schemas.txt").write_text("\n".join(schemas), encoding="utf-8")
        return f"python:{environment.python}"

    return make


@pytest.fixture
def candidate(command: Callable[..., Any], tmp_path: Path) -> Callable[..., Any]:
    """Runs the command with trees of the test's own; JSON that it prints is of the schema."""

    def run(name: str, *more: str) -> Any:
        ended = command("candidate", name, "--into", str(tmp_path / "trees"), *more)
        if "json" in more:
            assert ended.out, ended.err
            schema = json.loads(
                (Path(torch_compat.__file__).parent / "schemas" / "candidate.schema.json").read_text(encoding="utf-8")
            )
            jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker()).validate(ended.json)
        return ended

    return run


def test_a_build_that_does_the_same_has_nothing_new(candidate: Callable[..., Any], build: Callable[..., str], tree: Tree) -> None:
    before = tree.everything()
    ended = candidate(build())
    assert ended.status == 0, (ended.out, ended.err)
    lines = ended.out.splitlines()
    assert lines[0] == "torch 1.7.0.dev20200901+cpu (release line 1.7), cpu, built 2020-09-01 (according to its version)"
    assert lines[1].startswith("against torch-1.6.0, recorded 2026-07-01")
    assert "observed now: 7 of 7 cells (seed 0), 3 recipes, 0 deprecations, 1 probe, " in lines[2]
    assert {"New: nothing", "Fixed: nothing", "exit status 0: nothing is new"} <= {*lines}
    assert len(lines) < 24
    assert tree.everything() == before  # nothing of a build enters the corpus
    assert not list((tree.root / "reports" / "latest").glob("observations*"))


def test_values_that_changed_are_named_with_a_witness_and_a_program(
    candidate: Callable[..., Any], build: Callable[..., str]
) -> None:
    ended = candidate(build(at_call="value = value + 1 if type(value) is int else value"), "--format", "json")
    assert ended.status == ended.json["exit_status"] == 1
    new = {(item["what"], item["policy"], item["rule"], item["witness"]) for item in ended.json["new"]}
    assert ("computes", "breaks", "newer-computes", "torch-1.5.1/add") in new
    result = next(item for item in ended.json["new"] if item["what"] == "computes")
    assert "6 instead of 5" in result["cause"]
    message = subprocess.run(result["reproduce"].split(), capture_output=True, text=True, check=True).stdout
    assert message.splitlines()[:2] == ["1.7.0.dev20200901+cpu", "forward 6"]  # by torch alone
    assert "torch_compat" not in Path(result["reproduce"].split()[1]).read_text(encoding="utf-8")
    assert ("writes", "needs", None, "torch-1.7.0.dev20200901/add") in new


def test_what_is_refused_breaks_a_promise(candidate: Callable[..., Any], build: Callable[..., str]) -> None:
    ended = candidate(build(at_load="if isinstance(value, dict): raise RuntimeError('no dictionaries')"), "--format", "json")
    assert ended.status == 1
    results = [item for item in ended.json["new"] if item["what"] == "loads"]
    assert [(item["policy"], item["count"]) for item in results] == [("breaks", 4)]
    assert "no dictionaries" in results[0]["cause"]


def test_a_warning_is_new_and_breaks_nothing(candidate: Callable[..., Any], build: Callable[..., str]) -> None:
    name = build(at_load="if isinstance(value, dict): warnings.warn('soon')")
    ended = candidate(name, "--format", "json")
    assert ended.status == 0
    assert [(item["what"], item["policy"], item["count"]) for item in ended.json["new"]] == [("warns", "allowed", 4)]
    assert candidate(name, "--fail-on", "new").status == 1


def test_which_archive_hears_a_warning_that_a_process_gives_once_is_chance(
    candidate: Callable[..., Any], build: Callable[..., str], tree: Tree
) -> None:
    always = "if isinstance(value, dict): warnings.warn('a prototype')"
    heard = tree.observe(miniature(tree.cache, "1.6.0", at_load=always))
    first = min(key for key, cell in heard.cells.items() if cell.warnings)
    cells = {key: cell if key == first else replace(cell, warnings=()) for key, cell in heard.cells.items()}
    record(folder_of(tree.root), replace(heard, cells=cells))
    new = candidate(build(at_load=always), "--format", "json").json["new"]
    assert [item["what"] for item in new] == ["warns"]  # nobody has stated that it is given once
    with (tree.root / "policies" / "torch" / "warnings.toml").open("a", encoding="utf-8") as file:
        says = '{ type = "UserWarning", text = "a prototype", releases = "1.6.0.." }'
        file.write(
            f'\n[[message]]\nid = "prototype"\nkind = "warning"\nfamilies = ["torch-save"]\nonce = true\nbecause = "it is one"\nsays = [{says}]\n'
        )
    assert candidate(build(name="stated", at_load=always), "--format", "json").json["new"] == []
    other = build(name="other", at_load=always.replace("a prototype", "another one"))
    assert [item["what"] for item in candidate(other, "--format", "json").json["new"]] == ["warns"]


def test_what_the_release_does_wrong_is_known_or_mended(
    candidate: Callable[..., Any], build: Callable[..., str], tree: Tree
) -> None:
    tree.record(miniature(tree.cache, "1.6.0", at_load="if isinstance(value, dict): raise RuntimeError('no dictionaries')"))
    hook = "if isinstance(value, dict): raise RuntimeError('no dictionaries')"
    known = candidate(build(at_load=hook), "--format", "json")
    assert [item for item in known.json["new"] if item["what"] in {"loads", "computes"}] == []
    assert sum(known.json["known"].values()) >= 4
    mended = candidate(build(name="good"), "--format", "json")
    assert [(item["what"], item["count"]) for item in mended.json["mended"]] == [("loads", 4)]
    assert mended.status == 0, mended.json["new"]


def test_an_operator_that_is_gone_breaks_a_promise(candidate: Callable[..., Any], build: Callable[..., str]) -> None:
    ended = candidate(build(without="aten::relu("), "--format", "json")
    assert ended.status == 1
    (result,) = ended.json["new"]
    assert (result["what"], result["witness"], result["after"], result["policy"]) == ("operator", "aten::relu", "gone", "breaks")


def test_operators_that_only_builds_with_cuda_have_are_not_asked_of_others() -> None:
    result = only_with_cuda(History.load())
    assert "cuda::device_count" in result
    assert not [name for name in result if name.startswith("aten::")]


def test_operators_that_cannot_be_listed_are_incomplete(candidate: Callable[..., Any], build: Callable[..., str]) -> None:
    ended = candidate(build(at_import="del sys.modules['torch']._C"))
    assert ended.status == 4
    assert "its operators cannot be listed" in ended.out
    assert "(required)" in ended.out


def test_within_the_window_the_release_has_to_read_what_the_build_writes(
    candidate: Callable[..., Any], build: Callable[..., str], tree: Tree
) -> None:
    name = build("1.7.0.dev20200801+cpu")
    ended = candidate(name)
    assert ended.status == 0, ended.out
    (tree.cache / "readers" / "torch-1.6.0" / "environment.json").unlink()
    ended = candidate(name)
    assert ended.status == 4
    assert "torch-1.6.0 is not built here" in ended.out


WINDOW = '\n[[rule]]\nid = "forward-window"\nasks = "It holds."\nsource = "here"\n'
MARKED = """
def marked(self, state=None, **methods):
    self.state, self.methods = state or {}, {**methods, "marked": "lambda: 0"}


sys.modules["torch"].Program.__init__ = marked
"""


@pytest.mark.parametrize(
    ("hook", "what"),
    [
        ("if 'marked' in getattr(value, 'methods', {}): raise RuntimeError('too new')", "too new"),
        ("if 'marked' in getattr(value, 'methods', {}): value.methods['forward'] = 'lambda *_: 0'", "int instead of str"),
    ],
    ids=["refused", "computed"],
)
def test_a_writer_that_the_release_does_not_follow_within_the_window_breaks_a_promise(
    candidate: Callable[..., Any], build: Callable[..., str], tree: Tree, hook: str, what: str
) -> None:
    promises = tree.root / "policies" / "torch" / "promises.toml"
    promises.write_text(promises.read_text(encoding="utf-8") + WINDOW, encoding="utf-8")
    miniature(tree.cache, "1.6.0", at_load=hook)
    ended = candidate(build("1.7.0.dev20200801+cpu", at_import=MARKED), "--format", "json")
    assert ended.status == 1
    results = [item for item in ended.json["new"] if item["what"] == "older reader"]
    assert {(item["policy"], item["rule"]) for item in results} == {("breaks", "forward-window")}
    assert any(what in item["cause"] for item in results), results


BUMPS = """
write = _write
bumped = lambda records: {name: b"10\\n" if name == "version" else data for name, data in records.items()}
sys.modules["torch"]._write = lambda path, records: write(path, bumped(records))
"""


def test_a_build_that_bumps_every_archive_breaks_a_promise(
    candidate: Callable[..., Any], build: Callable[..., str], tree: Tree
) -> None:
    promises = tree.root / "policies" / "torch" / "promises.toml"
    rule = '\n[[rule]]\nid = "versions-lowest"\nasks = "It holds."\nsource = "here"\n'
    promises.write_text(promises.read_text(encoding="utf-8") + rule, encoding="utf-8")
    assert candidate(build("1.7.0.dev20200831+cpu", name="plain")).status == 0
    ended = candidate(build(at_import=BUMPS), "--format", "json")
    (result,) = [item for item in ended.json["new"] if item["what"] == "writes"]
    assert (ended.status, result["policy"], result["rule"], result["count"]) == (1, "breaks", "versions-lowest", 3)
    assert "declare file format 10, but 3 is enough" in result["says"]
    assert result["cause"] == "add: writes file-format 3 to 10"


def test_a_recipe_that_ends_the_process_is_named(candidate: Callable[..., Any], build: Callable[..., str]) -> None:
    hook = "sys.modules['torch'].Program.__init__ = lambda *_, **__: __import__('os').abort()"
    ended = candidate(build(at_import=hook), "--recipe", "add", "--format", "json")
    assert ended.status == 1
    assert ("writes", "breaks", "torch-1.7.0.dev20200901/add") in {
        (item["what"], item["policy"], item["witness"]) for item in ended.json["new"]
    }


def test_the_sample_is_repeated_by_its_seed_and_all_reads_all(candidate: Callable[..., Any], build: Callable[..., str]) -> None:
    name = build()
    item, other = (candidate(name, "--seed", "7", "--format", "json").json for _ in range(2))
    assert item == other
    assert item["asked"]["seed"] == 7
    assert candidate(name, "--all", "--format", "json").json["asked"]["all"] is True


# ------------------------------------------------------------------------------------------------------------ other builds


def test_the_first_earlier_build_is_named(candidate: Callable[..., Any], build: Callable[..., str]) -> None:
    hook = "value = value + 1 if type(value) is int else value"
    candidate(build("1.7.0.dev20200829+cpu", name="good"))
    candidate(build("1.7.0.dev20200830+cpu", name="first", at_call=hook))
    ended = candidate(build(at_call=hook), "--format", "json")
    assert {item["first"] for item in ended.json["new"]} == {"torch-1.7.0.dev20200830+cpu"}


def test_two_builds_of_one_version_are_not_mixed(
    candidate: Callable[..., Any], build: Callable[..., str], tmp_path: Path
) -> None:
    candidate(build())
    other = build(name="other")
    site = tmp_path / "other" / "readers" / f"torch-{VERSION}" / "site" / "torch" / "more.py"
    site.write_text("# another build\n", encoding="utf-8")
    ended = candidate(other, "--format", "json")
    assert any("is another build that also reports 1.7.0.dev20200901+cpu" in note for note in ended.json["notes"])
    assert len(trees_in(tmp_path / "trees")) == 2


def test_an_observation_that_has_expired_does_not_count(
    candidate: Callable[..., Any], build: Callable[..., str], tmp_path: Path
) -> None:
    candidate(build("1.7.0.dev20200829+cpu", name="old"))
    (tree,) = trees_in(tmp_path / "trees")
    state = json.loads((tree.path / STATE).read_text(encoding="utf-8"))
    state["made"] = (dt.datetime.now(dt.UTC).date() - dt.timedelta(days=30)).isoformat()
    (tree.path / STATE).write_text(json.dumps(state), encoding="utf-8")
    ended = candidate(build(), "--format", "json")
    assert ended.json["notes"] == ["torch-1.7.0.dev20200829+cpu was observed 30 days ago, more than 14: it does not count"]


# ------------------------------------------------------------------------------------------------------- beside the corpus


def failing(ended: Any) -> set[str]:
    """The rules that something breaks."""
    return {finding["rule"] for finding in ended.json["findings"] if finding["verdict"] == "fail"}


def test_a_tree_of_a_build_is_judged_with_the_corpus(
    command: Callable[..., Any], candidate: Callable[..., Any], build: Callable[..., str], tree: Tree, tmp_path: Path
) -> None:
    before = tree.everything()
    candidate(build())
    ended = command("judge", "--with", str(tmp_path / "trees"), "--format", "json")
    assert (ended.status, failing(ended), ended.json["not_checked"]) == (0, set(), []), ended.out
    alone = command("judge", "--format", "json")
    assert sum(ended.json["counts"].values()) > sum(alone.json["counts"].values())
    assert ended.json["observed_now"] == []  # but on the day of the tree
    assert f"torch-{VERSION}" in {source["reader"] for source in ended.json["sources"]}
    assert any(note.startswith(f"torch-{VERSION}: its observations from ") for note in ended.json["notes"])
    assert tree.everything() == before


def test_what_a_build_breaks_is_a_finding_of_judging(
    command: Callable[..., Any], candidate: Callable[..., Any], build: Callable[..., str], tmp_path: Path
) -> None:
    candidate(build(at_call="value = value + 1 if type(value) is int else value"))
    ended = command("judge", "--with", str(tmp_path / "trees"), "--format", "json")
    assert ended.status == 1
    assert "newer-computes" in failing(ended)


def test_shards_are_judged_together(
    command: Callable[..., Any], candidate: Callable[..., Any], build: Callable[..., str], tmp_path: Path
) -> None:
    name = build(at_call="value = value + 1 if type(value) is int else value")
    shards = [candidate(name, "--all", "--shard", f"{part}/3", "--format", "json").json for part in (1, 2, 3)]
    assert [shard["asked"]["recipes"] for shard in shards] == [1, 1, 1]
    assert [shard["asked"]["probes"] for shard in shards] == [1, 0, 0]
    assert sorted(shard["exit_status"] for shard in shards) == [0, 0, 1]
    trees = [tree.path.name for tree in trees_in(tmp_path / "trees")]
    assert [tree.rpartition("-1.7")[2][-6:] for tree in trees] == ["1-of-3", "2-of-3", "3-of-3"]
    together = command("judge", *(f"--with={tmp_path / 'trees' / tree}" for tree in trees), "--format", "json")
    whole = tmp_path / "whole"
    command("candidate", name, "--all", "--into", str(whole))
    alone = command("judge", "--with", str(whole), "--format", "json")
    assert (together.status, together.json["counts"]) == (alone.status, alone.json["counts"])
    assert together.json["matrix"] == alone.json["matrix"]


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "a/b", "1/0"])
def test_a_shard_that_is_none_is_an_error(candidate: Callable[..., Any], build: Callable[..., str], text: str) -> None:
    ended = candidate(build(), "--shard", text)
    assert (ended.status, ended.out) == (2, "")
    assert "expected K/N" in ended.err


def test_an_expired_tree_is_no_evidence(
    command: Callable[..., Any], candidate: Callable[..., Any], build: Callable[..., str], tmp_path: Path
) -> None:
    candidate(build())
    (tree,) = trees_in(tmp_path / "trees")
    late = (tree.made + dt.timedelta(days=15)).isoformat()
    ended = command("judge", "--with", str(tmp_path / "trees"), "--as-of", late, "--format", "json")
    assert ended.status == 4
    assert any("was observed 15 days before" in item["reason"] for item in ended.json["not_checked"])
    assert command("judge", "--with", str(tree.path), "--as-of", tree.made.isoformat()).status == 0


def test_two_builds_of_one_version_are_not_judged_together(
    command: Callable[..., Any], candidate: Callable[..., Any], build: Callable[..., str], tmp_path: Path
) -> None:
    candidate(build())
    candidate(build(name="other", at_load="pass"))
    ended = command("judge", "--with", str(tmp_path / "trees"))
    assert (ended.status, ended.out) == (2, "")
    assert "two builds with the same version, 1.7.0.dev20200901" in ended.err


def test_what_a_tree_holds_of_other_archives_is_not_checked(
    command: Callable[..., Any], candidate: Callable[..., Any], build: Callable[..., str], tree: Tree, tmp_path: Path
) -> None:
    candidate(build())
    (tree.root / "fixtures" / "torch-1.6.0" / "manifest.jsonl").unlink()
    ended = command("judge", "--with", str(tmp_path / "trees"), "--format", "json")
    assert ended.status in {1, 4}
    assert any("has changed since it was read" in item["reason"] for item in ended.json["not_checked"])


def test_a_directory_without_a_tree_is_an_error(command: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    ended = command("judge", "--with", str(tmp_path / "empty"))
    assert ended.status == 2
    assert "contains no results from a build" in ended.err


def test_the_index_of_nightlies_may_stand_in_the_policy(
    candidate: Callable[..., Any], tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TORCH_COMPAT_NIGHTLY_INDEX", raising=False)
    version = "1.7.0.dev20200901+cpu"
    wheel = small_wheel(tmp_path, version, packed=dt.date(2020, 9, 1))
    promises = tree.root / "policies" / "torch" / "promises.toml"
    stated = promises.read_text(encoding="utf-8")
    ended = candidate("nightly:2020-09-01")
    assert (ended.status, "no nightly index is configured" in ended.err) == (2, True)

    def state(url: str) -> None:
        promises.write_text(stated.replace("[policy]\n", f'[policy]\nnightly_index = "{url}"\n'), encoding="utf-8")

    state(index_of(tmp_path / "wrong", wheel, sha256="0" * 64))
    ended = candidate("nightly:2020-09-01")
    assert (ended.status, "it was not run" in ended.err) == (2, True)
    state(index_of(tmp_path / "right", wheel))
    ended = candidate("nightly:2020-09-01", "--format", "json")
    assert ended.json["build"]["torch"] == version, ended.err
    ended = candidate("nightly:2020-09-01", "--index-url", (tmp_path / "wrong" / "index").as_uri())
    assert "it was not run" in ended.err  # an option comes first
    state("somewhere")
    ended = candidate("nightly:2020-09-01")
    assert (ended.status, "a URL that begins with" in ended.err) == (2, True)


# ------------------------------------------------------------------------------------------------------- what is no build


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("torch-1.6.0", "'torch-1.6.0' is not a build"),
        (
            "torch-1.6.0",
            "expected python:PATH (a Python executable with the build installed), wheel:FILE or nightly:DATE; to judge a",
        ),
        ("torch-2.16.0-cp312-linux_x86_64.whl", "such as wheel:torch-2.16.0-cp312-linux_x86_64.whl"),
        ("/usr/bin/python3", "such as python:/usr/bin/python3"),
        ("python:", "expected python:PATH (a Python executable with the build installed), wheel:FILE or nightly:DATE"),
        ("conda:torch", "expected python:PATH (a Python executable with the build installed), wheel:FILE or nightly:DATE"),
        ("python:nowhere", "nowhere: program not found"),
        ("python:/tmp", "/tmp: is a directory"),
    ],
)
def test_a_name_that_means_no_build_is_explained(candidate: Callable[..., Any], name: str, message: str) -> None:
    ended = candidate(name)
    assert (ended.status, ended.out) == (2, "")
    assert message in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    ("version", "hooks", "message"),
    [
        (VERSION, {"at_import": "raise RuntimeError('libgone.so: cannot open')"}, "libgone.so: cannot open"),
        ("unknown", {}, "reports the version 'unknown'"),
        ("1.7.0.dev29990101+cpu", {}, "that date is in the future"),
    ],
)
def test_a_build_that_cannot_be_used_is_named(
    candidate: Callable[..., Any], build: Callable[..., str], version: str, hooks: dict[str, str], message: str
) -> None:
    name = build("1.7.0", says=version, **hooks)
    ended = candidate(name)
    assert (ended.status, ended.out) == (2, "")
    assert message in ended.err
    assert name in ended.err


def test_a_python_without_numpy_says_what_to_install(
    candidate: Callable[..., Any], build: Callable[..., str], tmp_path: Path
) -> None:
    name = build()
    (tmp_path / "build" / "readers" / f"torch-{VERSION}" / "site" / "numpy.py").unlink()
    ended = candidate(name)
    assert ended.status == 2
    assert "has no numpy" in ended.err
    assert "-m pip install numpy" in ended.err


def test_a_build_that_dies_is_named_and_no_fault_of_ours(candidate: Callable[..., Any], build: Callable[..., str]) -> None:
    name = build(at_import="if sys.argv[-1].startswith('1.7'): os.abort()")  # in the worker alone
    ended = candidate(name)
    assert (ended.status, ended.out) == (2, "")
    assert f"{name}: the worker of torch 1.7.0.dev20200901 died" in ended.err


def test_a_nightly_whose_files_are_older_than_its_day_is_refused(
    candidate: Callable[..., Any], build: Callable[..., str], tmp_path: Path
) -> None:
    name = build()
    os.utime(tmp_path / "build" / "readers" / f"torch-{VERSION}" / "site" / "torch" / "__init__.py", (0, 0))
    ended = candidate(name)
    assert ended.status == 2
    assert "reports the date 2020-09-01, but its files are older, dated 1970-01-01" in ended.err


def test_a_build_that_changes_while_it_is_used_has_said_nothing(
    candidate: Callable[..., Any], build: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch_compat.replay.candidate as module  # noqa: PLC0415 - to get between

    name = build()
    real: Any = vars(module)["observe"]

    def meddled(*arguments: Any, **more: Any) -> Any:
        (tmp_path / "build" / "readers" / f"torch-{VERSION}" / "site" / "torch" / "new.py").write_text("", encoding="utf-8")
        return real(*arguments, **more)

    monkeypatch.setattr(module, "observe", meddled)
    ended = candidate(name)
    assert ended.status == 2
    assert "changed while in use" in ended.err
    assert not list((tmp_path / "trees").glob("*/reports/observations/*"))


def test_the_corpus_is_no_place_for_builds(command: Callable[..., Any], build: Callable[..., str], tree: Tree) -> None:
    ended = command("candidate", build(), "--into", str(tree.root / "builds"))
    assert ended.status == 2
    assert "must not be written to a corpus" in ended.err


def test_unknown_release_to_compare_with(candidate: Callable[..., Any], build: Callable[..., str]) -> None:
    assert "there are no records for torch-2.13.0" in candidate(build(), "--against", "2.13.0").err
    assert candidate(build(), "--against", "2.13.0").status == 2


# ------------------------------------------------------------------------------------------------- wherever a release can be


def test_a_build_reads_and_writes_wherever_a_release_does(
    command: Callable[..., Any], build: Callable[..., str], tree: Tree, tmp_path: Path
) -> None:
    name, before = build(), tree.everything()
    ended = command("replay", "--reader", name, "--require", name)
    assert (ended.status, ended.out.splitlines()[0][:46]) == (0, "Observed now: torch-1.7.0.dev20200901+cpu. Onl"), ended.out
    ended = command("observe", "--reader", name, "--fixture", "torch-1.5.1/add", "--format", "json")
    assert (ended.status, ended.json["reader"]) == (4, "torch-1.7.0.dev20200901+cpu")  # there is no record to compare with
    ended = command("run", str(tree.root / "fixtures/torch-1.5.1/add.pt"), "--reader", name)
    assert "torch-1.7.0.dev20200901+cpu" in ended.out
    ended = command("produce", name, "--recipe", "add", "--into", str(tmp_path / "trees"))
    assert (ended.status, ended.out) == (0, "added         torch-1.7.0.dev20200901/add\n")
    assert tree.everything() == before


def test_what_a_build_does_is_never_recorded(command: Callable[..., Any], build: Callable[..., str]) -> None:
    name = build()
    for more in ("--record", "--missing", "--recorded"):
        ended = command("observe", "--reader", name, more)
        assert ended.status == 2
        assert "builds are never recorded in the corpus" in ended.err
    assert command("produce", "torch-1.6.0", "--into", "x").status == 2


def _linked(source: str, target: str) -> None:
    """A file at another place without its bytes, where both places are on one disk."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


@pytest.mark.real_torch("2.13.0")
def test_a_real_build_beside_the_release_that_it_is(small_tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The build that was recorded does nothing new; the same with a changed function in Python does."""
    environment = Environments().get("2.13.0")
    assert environment is not None
    asked = ("--format", "json", "--recipe", "state_dict", "--recipe", "div")

    def run(name: str) -> dict[str, Any]:
        with pytest.raises(SystemExit) as ended:
            main(["candidate", name, "--root", str(small_tree), "--into", str(tmp_path / "trees"), *asked])
        document: dict[str, Any] = json.loads(capsys.readouterr().out)
        assert ended.value.code == document["exit_status"]
        return document

    same = run(f"python:{environment.python}")
    assert (same["exit_status"], same["new"], same["build"]["line"]) == (0, [], "2.13")
    assert same["asked"]["cells"] > 10
    assert same["asked"]["operators"] > 3000

    copy = tmp_path / "copy"
    shutil.copytree(environment.prefix, copy, symlinks=True, copy_function=_linked)
    (rebuild,) = copy.glob("lib/python*/site-packages/torch/_utils.py")
    source = rebuild.read_text(encoding="utf-8")
    changed = source.replace(
        "t = torch.empty((0,), dtype=storage.dtype, device=storage._untyped_storage.device)", "raise RuntimeError('gone')"
    )
    assert changed != source
    rebuild.unlink()  # it is a hard link
    rebuild.write_text(changed, encoding="utf-8")
    other = run(f"python:{copy / 'bin' / 'python'}")
    assert other["exit_status"] == 1
    assert any(item["policy"] == "breaks" and "gone" in item["cause"] for item in other["new"])
    assert other["build"]["digest"] != same["build"]["digest"]


# -------------------------------------------------------------------------------------------------------- beside a build


def test_two_builds_that_do_the_same_have_nothing_new(
    candidate: Callable[..., Any], build: Callable[..., str], tree: Tree
) -> None:
    before = tree.everything()
    base = build("1.7.0.dev20200830+cpu", name="base")
    ended = candidate(build(), "--against", base, "--format", "json")
    assert (ended.status, ended.json["new"], ended.json["mended"]) == (0, [], []), ended.out
    message = ended.json["against"]
    assert (message["name"], message["source"], message["age_days"]) == ("torch-1.7.0.dev20200830+cpu", "now", 0)
    assert ended.json["asked"]["cells"] == 11  # 7 of the corpus, and 4 of what the other build wrote
    assert ended.json["asked"]["own_cells"] == 4
    assert [item for item in ended.json["not_asked"] if item["required"]] == []
    assert tree.everything() == before
    assert "against torch-1.7.0.dev20200830+cpu, now " in candidate(build(), "--against", base).out


def test_what_differs_between_two_builds_is_new_and_what_both_do_is_known(
    candidate: Callable[..., Any], build: Callable[..., str]
) -> None:
    both = {"at_load": "if isinstance(value, dict): raise RuntimeError('no dictionaries')"}
    base = build("1.7.0.dev20200830+cpu", name="base", **both)
    ended = candidate(
        build(at_call="value = value + 1 if type(value) is int else value", **both), "--against", base, "--format", "json"
    )
    assert ended.status == 1
    new = {(item["what"], item["witness"]) for item in ended.json["new"]}
    assert ("computes", "torch-1.5.1/add") in new
    assert not [item for item in ended.json["new"] if "no dictionaries" in item["cause"]]
    assert sum(ended.json["known"].values()) >= 4
    assert candidate(base, "--format", "json").status == 1  # against the release, dictionaries are news


def test_what_another_build_wrote_is_read_within_the_window(candidate: Callable[..., Any], build: Callable[..., str]) -> None:
    base = build("1.7.0.dev20200830+cpu", name="base", at_import=MARKED)
    hook = "if 'marked' in getattr(value, 'methods', {}): raise RuntimeError('never written')"
    ended = candidate(build(at_load=hook), "--against", base, "--format", "json")
    results = [item for item in ended.json["new"] if "never written" in item["cause"]]
    assert {(item["policy"], item["witness"]) for item in results} == {("breaks", "torch-1.7.0.dev20200830/later")}
    command = results[0]["reproduce"].split()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "never written" in done.stdout + done.stderr  # of the archive in the other build's tree


@pytest.mark.parametrize(("day", "status"), [("20200912", 1), ("20200914", 0)], ids=["within", "outside"])
def test_a_build_writes_what_the_other_one_has_to_read_within_the_window(
    candidate: Callable[..., Any],
    command: Callable[..., Any],
    build: Callable[..., str],
    tree: Tree,
    tmp_path: Path,
    day: str,
    status: int,
) -> None:
    promises = tree.root / "policies" / "torch" / "promises.toml"
    promises.write_text(promises.read_text(encoding="utf-8") + WINDOW, encoding="utf-8")
    hook = "if 'marked' in getattr(value, 'methods', {}): raise RuntimeError('too new')"
    base = build("1.7.0.dev20200830+cpu", name="base", at_load=hook)
    ended = candidate(build(f"1.7.0.dev{day}+cpu", at_import=MARKED), "--against", base, "--format", "json")
    results = [item for item in ended.json["new"] if item["what"] == "older reader"]
    assert ended.status == status
    assert {(item["policy"], item["rule"]) for item in results} == {("breaks", "forward-window") if status else ("allowed", None)}
    judged = command("judge", "--with", str(tmp_path / "trees"), "--format", "json")
    assert ("forward-window" in failing(judged)) is bool(status)


def test_two_builds_of_one_version_are_compared(candidate: Callable[..., Any], build: Callable[..., str]) -> None:
    base = build(name="base")
    same = build(name="twin", at_import="unused = 1")
    ended = candidate(same, "--against", base, "--format", "json")
    assert (ended.status, ended.json["new"], ended.json["mended"]) == (0, [], []), ended.json["new"]
    assert ended.json["against"]["name"] == f"torch-{VERSION}.against"
    assert ended.json["asked"]["own_cells"] == 4
    hook = "if 'marked' in getattr(value, 'methods', {}): value.methods['forward'] = 'lambda *_: 0'"
    other = candidate(build(name="other", at_import=MARKED, at_load=hook), "--against", base, "--format", "json")
    assert {item["what"] for item in other.json["new"]} >= {"own"}  # with the archives that it wrote


def test_a_build_of_a_recorded_release_reads_what_it_writes(candidate: Callable[..., Any], build: Callable[..., str]) -> None:
    assert candidate(build("1.6.0")).status == 0
    hook = "if 'marked' in getattr(value, 'methods', {}): raise RuntimeError('my own')"
    ended = candidate(build("1.6.0", name="other", at_import=MARKED, at_load=hook), "--format", "json")
    results = [item for item in ended.json["new"] if "my own" in item["cause"]]
    assert ("own", "torch-1.6.0/later") in {(item["what"], item["witness"]) for item in results}


def test_a_build_is_not_compared_with_itself(candidate: Callable[..., Any], build: Callable[..., str]) -> None:
    name = build()
    ended = candidate(name, "--against", name)
    assert (ended.status, "are the same build" in ended.err) == (2, True)


def test_what_is_known_of_the_other_build_is_not_asked_again(
    candidate: Callable[..., Any], build: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, int]] = []

    def counted(environment: Any, tasks: list[Any], *more: Any, state: Any, **options: Any) -> Any:
        result = observe(environment, tasks, *more, state=state, **options)
        asked.append((environment.version, len(tasks) - state.known))
        return result

    monkeypatch.setattr("torch_compat.replay.candidate.observe", counted)
    base = build("1.7.0.dev20200830+cpu", name="base")
    candidate(build(), "--against", base)
    first, asked[:] = list(asked), []
    assert candidate(build(name="next", version="1.7.0.dev20200902+cpu"), "--against", base).status == 0
    assert first[0] == ("1.7.0.dev20200830", 11)
    assert asked == [("1.7.0.dev20200830", 0), ("1.7.0.dev20200902", 15), ("1.7.0.dev20200830", 4)]


def test_an_other_build_that_cannot_be_used_is_named(candidate: Callable[..., Any], build: Callable[..., str]) -> None:
    base = build("1.7.0.dev20200830+cpu", name="base", at_import="raise RuntimeError('libgone.so: cannot open')")
    ended = candidate(build(), "--against", base)
    assert ended.status == 2
    assert base in ended.err
