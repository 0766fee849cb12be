"""Kill a command at its file operations, and compare the result of rerunning it with an undisturbed run."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

from tests.interrupted.dying import KILLED, begun, ran
from tests.interrupted.scenes import SCENES, everything, judged

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from tests.miniatures.tree import Tree

__all__ = ["Prepared", "prepared"]


class Prepared:
    """A scene: the tree that it begins with, and what an undisturbed run makes of it."""

    def __init__(self, name: str, tree: Tree, folder: Path) -> None:
        self.name = name
        self.scene = SCENES[name]
        self.folder = folder
        self.root = self.scene.prepare(tree, folder)
        self.untouched = folder / "untouched"
        shutil.copytree(self.root, self.untouched)
        began = time.monotonic()
        ended = ran(self.root, lambda: self.scene.act(self.root))
        self.seconds = time.monotonic() - began
        assert ended.status == 0, (name, ended)
        self.operations = ended.operations
        self.expected = everything(self.root)
        self.judged = judged(self.root)
        assert self.expected != everything(self.untouched), name

    def restore(self) -> None:
        """Put the tree back to what it was."""
        shutil.rmtree(self.root)
        shutil.copytree(self.untouched, self.root)

    def killed_at(self, operation: int) -> list[str]:
        """What is wrong after the command was killed at a file operation and run again."""
        self.restore()
        ended = ran(self.root, lambda: self.scene.act(self.root), dies_at=operation)
        if ended.status != KILLED:
            return [f"{self.name}: did not die at operation {operation} of {self.operations}: {ended}"]
        return list(self._completed(f"killed at operation {operation} of {self.operations}"))

    def killed_after(self, seconds: float) -> list[str]:
        """What is wrong after the command was killed at a moment and run again; it may have ended before."""
        self.restore()
        begun(self.root, lambda: self.scene.act(self.root), dies_after_s=seconds).end()
        return list(self._completed(f"killed after {seconds:.3f} s"))

    def _completed(self, how: str) -> Iterator[str]:
        ended = ran(self.root, lambda: self.scene.act(self.root))
        if ended.status not in self.scene.again:
            yield f"{self.name}, {how}: the same command ends with {ended.status}: {ended.out}{ended.err}"
        result = everything(self.root)
        if result == self.expected:
            return  # judging reads nothing else, so it says the same
        for path in sorted(self.expected.keys() | result.keys()):
            if self.expected.get(path) != result.get(path):
                state = "is missing" if path not in result else "is left" if path not in self.expected else "is another"
                yield f"{self.name}, {how}: {path} {state}"
        if judged(self.root) != self.judged:
            yield f"{self.name}, {how}: judging says something else"


def prepared(names: Iterable[str], tree: Tree, folder: Path) -> Iterator[Prepared]:
    """Scenes, one after the other."""
    for name in names:
        place = folder / name
        place.mkdir()
        yield Prepared(name, tree, place)
