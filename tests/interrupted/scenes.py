"""Commands that write into a tree, each with its initial tree."""

from __future__ import annotations

import datetime as dt
import importlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tests.deprecated_tree import make_deprecated_tree
from tests.formats.checkpoints import Maker, recipe_of
from tests.interrupted.dying import ran
from tests.miniatures import miniature
from tests.miniatures.index import FakeIndex
from tests.miniatures.tree import write_recipe
from tests.small_tree import make_small_tree
from tests.surveyed import small_survey
from torch_compat.cli import main
from torch_compat.policy import load_policy
from torch_compat.policy.accepted import WAIVERS_LOCK
from torch_compat.policy.calendar_files import drop_releases
from torch_compat.policy.counts import LOCK
from torch_compat.readers.environments import Environments
from torch_compat.replay.admission import STEPS
from torch_compat.replay.generating import regenerate
from torch_compat.workspace import Root

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.miniatures.tree import Tree

__all__ = ["DOUBLE", "INVENTED", "SCENES", "Scene", "command", "everything", "judged"]

REPOSITORY: Final = Path(__file__).parents[2]
INVENTED: Final = "2.16.0"
UPLOADED: Final = dt.date(2026, 7, 15)
DOUBLE: Final = '''\
"""Numbers twice over."""
import torch

FAMILY = "torchscript"
OPERATORS = []
SINCE = "1.5.1"


def build():
    return torch.Program({"weight": torch.Tensor([0.3])}, forward="lambda a: a * 2")


def calls():
    return [("forward", (7,))]
'''


@dataclass(frozen=True)
class Scene:
    """A command and what it begins with.

    Attributes:
        prepare: makes the tree in a folder; its root.
        act: runs the command in the tree. It is run in a process of its own.
        again: exit statuses that the same command may end with once it is complete.
    """

    prepare: Callable[[Tree, Path], Path]
    act: Callable[[Path], None]
    again: tuple[int, ...] = (0,)


def everything(root: Path) -> dict[str, bytes]:
    """Every file of a tree, also what is not kept, apart from observations that the next replay would take from the last one."""
    results = (path for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in results}


def command(root: Path, *arguments: str) -> None:
    """Run ``torch-compat`` with the miniature releases that lie beside the tree."""
    os.environ.update(TORCH_COMPAT_CACHE=str(root.parent / "cache"), NO_COLOR="1")
    main([*arguments, "--root", str(root)])


def judged(root: Path) -> str:
    """What judging says of a tree, as JSON."""
    return ran(root, lambda: command(root, "judge", "--format", "json")).out


# ----------------------------------------------------------------------------------------------------------- what they begin with


def _copied(tree: Tree, folder: Path) -> Path:
    shutil.copytree(tree.root, folder / "root")
    if not (folder / "cache").exists():
        (folder / "cache").symlink_to(tree.cache)
    return folder / "root"


def _with_recipe(tree: Tree, folder: Path) -> Path:
    root = _copied(tree, folder)
    write_recipe(root, "double", DOUBLE)
    return root


def _with_checkpoint(tree: Tree, folder: Path) -> Path:
    root = _copied(tree, folder)
    maker = Maker(folder / "made")
    maker.tensor("w", np.arange(4), [((0,), (2,)), ((2,), (2,))], files=2)
    write_recipe(root, "parts", recipe_of(maker.write()))
    return root


def _unrecorded(tree: Tree, folder: Path) -> Path:
    root = _copied(tree, folder)
    shutil.rmtree(root / "reports" / "observations")
    return root


def _with_rules(tree: Tree, folder: Path) -> Path:
    root = _copied(tree, folder)
    (root / "harness/torch_compat/rules").mkdir(parents=True)
    return root


def _signable(_: Tree, folder: Path) -> Path:
    """A tree in which every promise holds or is waived, so that its releases can be signed."""
    make_small_tree(REPOSITORY, folder / "root")
    return folder / "root"


def _deprecated(_: Tree, folder: Path) -> Path:
    make_deprecated_tree(folder / "root")
    lock = folder / "root/policies/torch" / WAIVERS_LOCK
    lock.write_text(lock.read_text(encoding="utf-8").replace(" finding ", " finding 0", 1), encoding="utf-8")
    (folder / "root/policies/torch" / LOCK).unlink(missing_ok=True)
    return folder / "root"


def _to_admit(tree: Tree, folder: Path, until: str | None = None) -> Path:
    """A tree whose corpus follows the calendar, into which a release has come up to a step."""
    root = _copied(tree, folder)
    (folder / "cache").unlink()
    shutil.copytree(tree.cache, folder / "cache")
    policies = root / "policies/torch"
    promises = policies / "promises.toml"
    listed = 'writers = ["1.5.1", "1.6.0"]\nreaders = ["1.5.1", "1.6.0"]\n'
    promises.write_text(
        promises.read_text(encoding="utf-8").replace(listed, 'lines = "newest-patch"\nsettled = 2026-06-30\n'), encoding="utf-8"
    )
    for path, text in drop_releases(policies, frozenset({"2.13.0"})).items():
        path.write_text(text, encoding="utf-8")
    (policies / "timelines.toml").write_text(
        f'[[release]]\nversion = "{INVENTED}"\ndate = 2026-07-14\nsource = "a"\n', encoding="utf-8"
    )
    (root / "reports/findings.md").write_text("", encoding="utf-8")
    if until is not None:
        ended = ran(root, lambda: _admit(root, "--until", until))
        assert ended.status == 0, ended.err
    return root


def _admit(root: Path, *arguments: str) -> None:
    """Admit a release that an index of our own offers, and whose environment is a miniature."""
    calendar = load_policy(root / "policies/torch").calendar
    index = FakeIndex.of(calendar)
    index.releases[INVENTED] = (UPLOADED, ("3.11",))
    module: Any = importlib.import_module("torch_compat.replay.admission")
    module.run_command = index
    observing: Any = importlib.import_module("torch_compat.replay.recording")
    observing.survey = lambda *_: small_survey()
    environments: Any = Environments
    environments.build = lambda _, release, **__: miniature(root.parent / "cache", release.version)
    command(root, "admit", f"torch-{INVENTED}", *arguments)


def _step(step: str) -> Scene:
    before = STEPS[STEPS.index(step) - 1] if step != STEPS[0] else None
    return Scene(lambda tree, folder: _to_admit(tree, folder, before), lambda root: _admit(root, "--only", step))


def _ran(prepare: Callable[[Tree, Path], Path], *arguments: str, again: tuple[int, ...] = (0,)) -> Scene:
    return Scene(prepare, lambda root: command(root, *arguments), again)


SIGNED: Final = (0, 2)  # "is signed already"
BEGUN: Final = (0, 2)  # "is there already", or what was begun is refused until its author has finished it
SCENES: Final[dict[str, Scene]] = {
    "produce": _ran(_with_recipe, "produce", "torch-1.6.0", "--recipe", "double"),
    "produce-directory": _ran(_with_checkpoint, "produce", "torch-1.6.0", "--recipe", "parts"),
    "observe": _ran(_unrecorded, "observe", "--reader", "torch-1.5.1", "--reader", "torch-1.6.0", "--record"),
    "new-recipe": _ran(_copied, "new", "recipe", "mine", "--family", "torchscript", again=BEGUN),
    "new-deprecation": _ran(_copied, "new", "deprecation", "mine", "--kind", "removal", again=BEGUN),
    "new-rule": _ran(_with_rules, "new", "rule", "mine", again=BEGUN),
    "new-waiver": _ran(_copied, "new", "waiver", "mine", again=BEGUN),
    "accept": _ran(_deprecated, "accept", "--write"),
    "report": _ran(
        _signable, "report", "2.13.0", *(f"--output={form}={form}.out" for form in ("json", "markdown", "junit")), again=(0, 1, 4)
    ),
    "notes": _ran(_signable, "notes", "2.13.0", "--output", "notes.md"),
    "signoff": _ran(_signable, "signoff", "2.13.0", "--by", "A Tester", "--date", "2026-11-23", again=SIGNED),
    "replay": _ran(_copied, "replay"),
    "replay-recorded": _ran(_copied, "replay", "--recorded"),
    "generate": Scene(_to_admit, lambda root: [regenerate(Root(root))].clear()),
    **{f"admit-{step}": _step(step) for step in STEPS if step not in {"environment", "predictions"}},
}
