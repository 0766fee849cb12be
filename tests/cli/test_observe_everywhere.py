"""``torch-compat observe --recipe NAME --everywhere``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.miniatures import miniature
from torch_compat.readers.environments import Environments

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.miniatures.tree import Tree
    from torch_compat.policy import CalendarRelease
    from torch_compat.readers.environments import Environment

NEW = "brand_new"


@pytest.fixture
def recipe(tree: Tree) -> str:
    """A recipe that no release has run."""
    folder = tree.root / "fixtures" / "recipes"
    source = next(path for path in sorted(folder.glob("*.py")) if 'FAMILY = "torchscript"' in path.read_text())
    (folder / f"{NEW}.py").write_text(source.read_text())
    return NEW


@pytest.fixture
def builds(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Makes miniatures where releases would be built; what was built and removed, in order."""
    done: list[str] = []
    get, remove = Environments.get, Environments.remove

    def build(self: Environments, release: CalendarRelease, **_: Any) -> Environment:
        there = get(self, release.version)
        if there is None:
            done.append(f"build {release.version}")
            there = miniature(tree.cache, release.version)
        return there

    def removed(self: Environments, version: str) -> int:
        done.append(f"remove {version}")
        return remove(self, version)

    monkeypatch.setattr(Environments, "build", build)
    monkeypatch.setattr(Environments, "remove", removed)
    return done


def everywhere(command: Callable[..., Any], *arguments: str) -> Any:
    return command("observe", "--recipe", NEW, "--everywhere", *arguments)


def test_every_release_writes_and_reads_and_what_was_there_stays(
    tree: Tree, command: Callable[..., Any], recipe: str, builds: list[str]
) -> None:
    assert command("judge").status == 4, "not checked, and nothing else"
    ended = everywhere(command)
    assert ended.status == 0
    assert "2 releases write" in ended.err
    assert "download: at most 0 GB" in ended.err
    assert "time: about" in ended.err
    assert builds == []
    assert all((tree.root / f"fixtures/torch-{name}/{recipe}.pt").is_file() for name in ("1.5.1", "1.6.0"))
    assert command("judge").status == 0
    assert "every release has already run it and read its fixtures" in everywhere(command).out


def test_what_is_built_for_it_is_removed_release_by_release(command: Callable[..., Any], recipe: str, builds: list[str]) -> None:
    assert recipe
    for name in ("1.5.1", "1.6.0"):
        command("readers", "remove", f"torch-{name}")
    builds.clear()
    everywhere(command)
    pairs = [f"{what} {version}" for version in ("1.5.1", "1.6.0") for what in ("build", "remove")]
    assert builds == pairs + pairs
    assert command("judge").status == 0


def test_it_goes_on_where_it_stopped(command: Callable[..., Any], recipe: str, builds: list[str]) -> None:
    assert builds == []
    assert command("produce", "torch-1.5.1", "--recipe", recipe).status == 0
    assert command("observe", "--reader", "torch-1.5.1", "--recipe", recipe, "--record").status in {0, 4}
    message = everywhere(command).err
    assert "1 of 3: torch-1.6.0 writes" in message
    assert command("judge").status == 0


def test_the_commands_for_shards_do_nothing(tree: Tree, command: Callable[..., Any], recipe: str) -> None:
    ended = everywhere(command, "--commands")
    assert ended.status == 0
    lines = ended.out.splitlines()
    assert len(lines) == 4
    assert lines[0] == (
        f"torch-compat readers build torch-1.5.1 && torch-compat produce torch-1.5.1 --recipe {recipe} && "
        "torch-compat readers remove torch-1.5.1"
    )
    assert f"observe --reader torch-1.5.1 --recipe {recipe} --record" in lines[2]
    assert not (tree.root / f"fixtures/torch-1.5.1/{recipe}.pt").exists()


def test_a_large_download_needs_yes(
    command: Callable[..., Any], recipe: str, builds: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert recipe
    monkeypatch.setattr("torch_compat.replay.everywhere.WHEEL_BYTES", 3 * 10**9)
    for name in ("1.5.1", "1.6.0"):
        command("readers", "remove", f"torch-{name}")
    builds.clear()
    ended = everywhere(command)
    assert ended.status == 2
    assert "this downloads up to 12 GB" in ended.err
    assert builds == []
    everywhere(command, "--yes")
    assert builds


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("observe", "--everywhere"), "--everywhere needs --recipe NAME"),
        (
            ("observe", "--recipe", NEW, "--everywhere", "--reader", "torch-1.5.1"),
            "--everywhere cannot be combined with --reader:",
        ),
        (("observe", "--recipe", NEW, "--everywhere", "--show", "--seed", "0"), "cannot be combined with --seed and --show:"),
        (("observe", "--recipe", NEW, "--everywhere", "--format", "text"), "cannot be combined with --format:"),
        (("observe", "--recipe", "nothing", "--everywhere"), "there is no recipe 'nothing'"),
        (("observe", "--recipe", "ad", "--everywhere"), "did you mean add?"),
        (("produce", "torch-1.5.1", "--recipe", "ad"), "did you mean add?"),
        (("observe", "--reader", "torch-1.5.1", "--recipe", "ad"), "did you mean add?"),
        (("observe", "--reader", "torch-1.5.1", "--fixture", "add"), "did you mean torch-1.6.0/add or torch-1.5.1/add?"),
        (("observe", "--reader", "torch-1.5.1", "--fixture", "ad"), "did you mean torch-1.6.0/add or torch-1.5.1/add?"),
        (("observe", "--reader", "torch-1.5.1", "--options", "defalt"), "did you mean default?"),
        (("observe", "--reader", "torch-1.5.1", "--recipe", "nothing"), "no fixture was written by a recipe named 'nothing'"),
        (
            ("observe", "--reader", "torch-1.5.1", "--recipe", "nothing"),
            "has no such recipe, either: `torch-compat new recipe` creates one",
        ),
        (("observe", "--reader", "torch-1.5.1", "--yes"), "require --everywhere"),
        (("observe",), "Missing option '--reader'"),
    ],
)
def test_mistakes_end_with_2(arguments: tuple[str, ...], said: str, command: Callable[..., Any]) -> None:
    ended = command(*arguments)
    assert ended.status == 2
    assert said in ended.err


def test_an_unfinished_recipe_is_not_run(tree: Tree, command: Callable[..., Any], recipe: str) -> None:
    path = tree.root / f"fixtures/recipes/{recipe}.py"
    path.write_text(path.read_text() + "# <replace this: what it is for>\n")
    ended = everywhere(command)
    assert ended.status == 2
    assert "is unfinished" in ended.err
    assert command("judge").status == 4, "this recipe alone is not checked"
