"""``torch-compat new recipe``: a recipe that works, is rejected while incomplete, and leads to an observed fixture."""

from __future__ import annotations

import ast
import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import pytest

from torch_compat.cli import main
from torch_compat.corpus.recipes import UNFINISHED, read_recipe
from torch_compat.errors import CorpusError
from torch_compat.policy import Family

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.miniatures.tree import Tree

REPOSITORY = Path(__file__).parents[2]
FAMILIES = get_args(Family)
EARLIEST = {
    "torchscript": "1.2.0",
    "torch-save": "1.0.0",
    "mobile": "1.5.0",
    "package": "1.8.1",
    "export": "2.1.0",
    "distributed": "2.0.0",
}


def finished(path: Path) -> None:
    """As an author leaves it: what was to be replaced is."""
    text = path.read_text(encoding="utf-8")
    assert text.count(UNFINISHED) >= 3
    path.write_text(text.replace(UNFINISHED, "Now it is ").replace('it>"""', 'it."""').replace(">\n", "\n"), encoding="utf-8")


def test_from_nothing_to_an_observed_fixture(command: Callable[..., Any], tree: Tree) -> None:
    result = command("new", "recipe", "twice", "--family", "torchscript")
    path = tree.root / "fixtures/recipes/twice.py"
    assert (result.status, result.err) == (0, "")
    lines = result.out.splitlines()
    assert lines[0] == "created fixtures/recipes/twice.py"
    assert lines[1] == f"  replace {UNFINISHED}...> on lines 1, 5 and 21"
    assert lines[2] == "After every placeholder is replaced, run:"
    then = [shlex.split(line)[1:] for line in lines[3:]]
    assert [words[0] for words in then] == ["readers", "produce", "observe", "judge"]

    refused = command(*then[1])
    assert (refused.status, refused.out) == (2, "")
    assert "recipes/twice.py:1: is unfinished: replace the placeholder with one sentence" in refused.err
    assert "(also on lines 5, 21)" in refused.err
    judged = command("judge")
    assert judged.status == 4, "not checked, and nothing else is red"
    assert "recipes/twice.py:1: is unfinished" in judged.out

    unwritten = command(*then[2])
    assert unwritten.status == 2
    assert "the release has not run the recipe: torch-compat produce torch-1.6.0 --recipe twice" in unwritten.err

    # a miniature has no nn.Module and no jit.script: the author gives it a program that it has
    head, _, _ = path.read_text(encoding="utf-8").replace(UNFINISHED, "Now it is ").partition("class Model")
    rest = 'def build():\n    return torch.Program(forward="lambda a: a * 2")\n\n\ndef calls():\n    return [("forward", (3,))]\n'
    path.write_text(head + rest, encoding="utf-8")
    assert command(*then[0]).status == 0  # built already, and so it stays
    assert command(*then[1]).out == "added         torch-1.6.0/twice\n"
    assert command(*then[2]).out.startswith("torch-1.6.0/twice read by torch-1.6.0: same\n")


@pytest.mark.parametrize("family", FAMILIES)
def test_each_family_begins_with_a_whole_recipe(family: str, tree: Tree, command: Callable[..., Any]) -> None:
    shutil.copy(REPOSITORY / "policies" / "torch" / "releases.toml", tree.root / "policies" / "torch" / "releases.toml")
    result = command("new", "recipe", "mine", "--family", family, "--format", "json").json
    path = tree.root / result["path"]
    text = path.read_text(encoding="utf-8").splitlines()
    assert result["replace"] == [number for number, line in enumerate(text, 1) if UNFINISHED in line]
    operators = next(number for number, line in enumerate(text) if line.startswith("OPERATORS = "))
    assert UNFINISHED in text[operators - 1], "the facts of the example are not those of the new recipe"
    while result["replace"]:  # each line is refused until it is replaced, and the first one left is named
        number = result["replace"].pop(0)
        with pytest.raises(CorpusError, match="is unfinished") as refused:
            read_recipe(path)
        assert refused.value.where == f"{path}:{number}"
        text[number - 1] = text[number - 1].replace(UNFINISHED, "").replace(">", "")
        path.write_text("\n".join(text) + "\n", encoding="utf-8")
    recipe = read_recipe(path)
    assert (recipe.family, recipe.since) == (family, EARLIEST[family])
    assert bool(recipe.why) == (family != "torch-save")
    names = {node.name for node in ast.parse(path.read_bytes()).body if isinstance(node, ast.FunctionDef)}
    assert names >= ({"build"} if family in {"torch-save", "package", "distributed"} else {"build", "calls"})


@pytest.mark.real_torch("2.13.0")
@pytest.mark.parametrize("family", FAMILIES)
def test_each_family_works_with_a_real_release(family: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(REPOSITORY / "policies", tmp_path / "policies")
    (tmp_path / "fixtures").mkdir()

    def run(*arguments: str) -> str:
        with pytest.raises(SystemExit) as ended:
            main([*arguments, "--root", str(tmp_path)])
        assert ended.value.code in {0, None}
        return capsys.readouterr().out

    run("new", "recipe", "mine", "--family", family)
    finished(tmp_path / "fixtures/recipes/mine.py")
    assert run("produce", "torch-2.13.0") == "added         torch-2.13.0/mine\n"
    result = (tmp_path / "fixtures/torch-2.13.0/manifest.jsonl").read_text(encoding="utf-8")
    assert '"readback":"same"' in result.replace(" ", "")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Twice", "'Twice' is not a valid recipe name"),
        ("two-times", "'two-times' is not a valid recipe name"),
        ("2times", "'2times' is not a valid recipe name"),
        ("../twice", "'../twice' is not a valid recipe name"),
        ("_twice", "'_twice' is not a valid recipe name"),
        ("zweimäl", "'zweimäl' is not a valid recipe name"),
        ("class", "'class' is not a valid recipe name"),
        ("json", "'json' is the name of a module that recipes may import"),
        ("torch", "'torch' is the name of a module that recipes may import"),
        ("add", "fixtures/recipes/add.py: already exists, expected the name of a new file\n  choose another name"),
    ],
)
def test_a_bad_or_taken_name_is_refused(command: Callable[..., Any], tree: Tree, name: str, said: str) -> None:
    before = tree.everything()
    ended = command("new", "recipe", name, "--family", "torch-save")
    assert (ended.status, ended.out) == (2, "")
    assert said in ended.err
    assert tree.everything() == before


def test_the_name_of_a_recipe_that_is_gone_is_taken_by_its_fixtures(command: Callable[..., Any], tree: Tree) -> None:
    (tree.root / "fixtures/recipes/add.py").unlink()
    ended = command("new", "recipe", "add", "--family", "torch-save")
    assert ended.status == 2
    assert "an earlier recipe with this name wrote torch-1.5.1/add, torch-1.6.0/add" in ended.err


def test_an_unknown_family_and_none(command: Callable[..., Any]) -> None:
    assert "'onnx' is not one of" in command("new", "recipe", "twice", "--family", "onnx").err
    assert command("new", "recipe", "twice").status == 2


def test_a_family_that_no_release_of_the_calendar_writes(command: Callable[..., Any], tree: Tree) -> None:
    path = tree.root / "policies/torch/releases.toml"
    path.write_text(path.read_text(encoding="utf-8").replace("2.13.0", "1.6.1"), encoding="utf-8")
    ended = command("new", "recipe", "twice", "--family", "export")
    assert ended.status == 2
    assert "no release in the calendar can write the family export, which was introduced in torch 2.1.0" in ended.err


def test_outside_a_tree(command: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    ended = command("new", "recipe", "twice", "--family", "torch-save")
    assert (ended.status, ended.out) == (4, "")
    assert "neither this directory nor a parent contains policies/torch/" in ended.err
    assert list(empty.iterdir()) == []


# ------------------------------------------------------------------------------------------- half-finished policy entries

RULES = "harness/torch_compat/rules"
BEGUN = {
    "rule": ("new", "rule", "mine-holds"),
    "deprecation": ("new", "deprecation", "mine-ends", "--kind", "removal"),
    "waiver": ("new", "waiver", "mine-known"),
}


@pytest.mark.parametrize("begun", BEGUN)
def test_a_half_finished_entry_blocks_only_what_judges(command: Callable[..., Any], tree: Tree, begun: str) -> None:
    (tree.root / RULES).mkdir(parents=True)
    timelines = (REPOSITORY / "policies/torch/timelines.toml").read_text(encoding="utf-8").partition("[[release]]")[0]
    (tree.root / "policies/torch/timelines.toml").write_text(timelines, encoding="utf-8")
    assert command(*BEGUN[begun]).status == 0
    refused = command("judge")
    assert refused.status == 2
    assert "is unfinished: replace the placeholder with " in refused.err
    others = [arguments for kind, arguments in BEGUN.items() if kind != begun]
    for arguments in (*others, ("new", "recipe", "mine", "--family", "torch-save")):
        ended = command(*arguments)
        assert (ended.status, ended.err) == (0, ""), arguments


def test_other_mistakes_still_block_a_new_recipe(command: Callable[..., Any], tree: Tree) -> None:
    path = tree.root / "policies/torch/promises.toml"
    path.write_text(path.read_text(encoding="utf-8") + '\n[[rule]]\nid = "mine"\n', encoding="utf-8")
    ended = command("new", "recipe", "mine", "--family", "torch-save")
    assert ended.status == 2
    assert "key 'asks' is missing" in ended.err


def test_a_file_that_existed_is_changed(command: Callable[..., Any], tree: Tree) -> None:
    (tree.root / RULES).mkdir(parents=True)
    lines = command(*BEGUN["rule"]).out.splitlines()
    assert [line for line in lines if not line.startswith(" ")] == [
        f"created {RULES}/mine_holds.py",
        "changed policies/torch/promises.toml",
        "After every placeholder is replaced, run:",
    ]
    assert sum(line.startswith(f"  replace {UNFINISHED}...> on lines ") for line in lines) == 2


def test_help_names_everything_that_can_be_begun(command: Callable[..., Any]) -> None:
    listed = next(line for line in command("--help").out.splitlines() if line.startswith("  new "))
    kinds = {line.split()[0] for line in command("new", "--help").out.partition("Commands:")[2].splitlines() if line[:3].strip()}
    assert {"recipe", "upgrader"} < kinds
    assert all(kind in " ".join(command("--help").out.partition(listed)[2].split()) + listed for kind in kinds)
