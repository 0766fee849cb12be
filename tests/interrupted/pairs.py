"""Two concurrent commands in one tree: the additions of both are present afterwards."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any, Final

from tests.interrupted.dying import begun
from tests.interrupted.scenes import DOUBLE, command, everything, judged
from tests.miniatures.tree import write_recipe
from tests.recordings import change_cells
from torch_compat.corpus.observations import Observation

if TYPE_CHECKING:
    from pathlib import Path

    from tests.miniatures.tree import Tree

__all__ = ["PAIRS", "lost"]

READER: Final = ("observe", "--reader", "torch-1.6.0", "--record")
PAIRS: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "parts-of-one-reader": ((*READER, "--fixture", "torch-1.5.1/add"), (*READER, "--fixture", "torch-1.6.0/later")),
    "one-writer": (("produce", "torch-1.6.0", "--recipe", "double"), ("produce", "torch-1.6.0", "--recipe", "triple")),
    "two-writers": (("produce", "torch-1.5.1", "--recipe", "double"), ("produce", "torch-1.6.0", "--recipe", "double")),
    "one-recipe": (("produce", "torch-1.6.0", "--recipe", "double"), ("produce", "torch-1.6.0")),
    "two-readers": (READER, ("observe", "--reader", "torch-1.5.1", "--record")),
    "reader-and-writer": ((*READER, "--fixture", "torch-1.5.1/add"), ("produce", "torch-1.6.0", "--recipe", "double")),
    "begun": (("new", "recipe", "mine", "--family", "mobile"), ("new", "recipe", "other", "--family", "mobile")),
}


def lost(name: str, tree: Tree, folder: Path) -> list[str]:
    """What is wrong after two commands were run at once: it must be what they make one after the other."""
    once, after = _tree(tree, folder / "at-once"), _tree(tree, folder / "in-turn")
    running = [begun(once, _act(once, arguments)) for arguments in PAIRS[name]]
    wrong = [f"{name}: ends with {ended}" for ended in [item.end() for item in running] if ended.status]
    for arguments in PAIRS[name]:
        ended = begun(after, _act(after, arguments)).end()
        assert ended.status == 0, ended
    result, expected = _kept(once), _kept(after)
    wrong += [
        f"{name}: {path} is another" for path in sorted(result.keys() | expected.keys()) if result.get(path) != expected.get(path)
    ]
    if judged(once) != judged(after):
        wrong.append(f"{name}: judging says something else")
    shutil.rmtree(folder)
    return wrong


def _act(root: Path, arguments: tuple[str, ...]) -> Any:
    return lambda: command(root, *arguments)


def _kept(root: Path) -> dict[str, bytes]:
    return {path: data for path, data in everything(root).items() if not path.startswith("reports/latest/observations/")}


def _tree(tree: Tree, folder: Path) -> Path:
    """A tree with two recipes that nobody has run, and in which some of what is recorded is no longer so."""
    root = folder / "root"
    shutil.copytree(tree.root, root)
    (folder / "cache").symlink_to(tree.cache)
    write_recipe(root, "double", DOUBLE)
    write_recipe(root, "triple", DOUBLE.replace("* 2", "* 3"))

    def spoil(cells: dict[tuple[str, str], Observation]) -> None:
        for fixture in ("torch-1.5.1/add", "torch-1.6.0/later"):
            cell = fixture, "default"
            cells[cell] = Observation(*cell, cells[cell].key, "refused", errors=({"type": "RuntimeError", "message": "no"},))

    change_cells(root, "torch-1.6.0", spoil)
    return root
