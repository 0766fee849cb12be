"""A small tree with policies, recipes, fixtures and recorded observations, all created by miniature releases."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from tests.miniatures import miniature
from tests.recordings import folder_of, reader_of
from torch_compat.corpus.corpus import Corpus, load_corpus
from torch_compat.corpus.recorded import record
from torch_compat.policy import CalendarRelease, Policy, load_policy
from torch_compat.readers.torch_release import TorchRelease
from torch_compat.replay.observe import observe
from torch_compat.replay.plan import Task, plan
from torch_compat.replay.produce import produce

if TYPE_CHECKING:
    from pathlib import Path

    from torch_compat.corpus.observations import ObservedReader
    from torch_compat.readers.environments import Environment

__all__ = ["TODAY", "Tree", "recorded_tree", "write_recipe"]

TODAY = dt.date(2026, 7, 1)
RELEASES = ("1.5.1", "1.6.0")

POLICY = {
    "releases.toml": "".join(
        f'[[release]]\nversion = "{version}"\ndate = {date}\npythons = ["3.11"]\ninstall = "whole"\nnumpy = "<2"\n\n'
        for version, date in (("1.5.1", "2020-06-18"), ("1.6.0", "2020-07-28"), ("2.13.0", "2026-06-01"))
    ),
    "formats.toml": """\
[[format]]
kind = "file-format"
version = 3
meaning = "the first one that the miniatures write"
read_from = { release = "1.5.1" }
written_from = { release = "1.5.1" }
""",
    "promises.toml": """\
[policy]
name = "miniature"
in_force_from = 2020-01-01
forward_window_days = 14

# Which releases the corpus must cover.
writers = ["1.5.1", "1.6.0"]
readers = ["1.5.1", "1.6.0"]

[[options]]
id = "default"
families = ["torch-save", "torchscript"]

[[options]]
id = "weights-only"
families = ["torch-save"]
since = "1.6.0"
load = { weights_only = true }

[[tolerance]]
dtype = "float32"
operators = ["*"]
max_ulp = 4
max_abs = 1e-6
max_rel = 1e-4
reason = "kernels round differently"

"""
    + "".join(
        f'[[rule]]\nid = "{rule}"\nasks = "It holds."\nsource = "here"\n\n'
        for rule in (
            "newer-loads",
            "newer-computes",
            "reads-back",
            "older-never-differs",
            "versions-have-fixtures",
            "fixtures-frozen",
            "pairs-observed",
            "observations-reproduce",
            "recipes-written",
            "probes-hold",
        )
    ),
}

RECIPES = {
    "add": """\
\"\"\"Two methods, of numbers and of tensors.\"\"\"
import torch

FAMILY = "torchscript"
OPERATORS = ["aten::add"]
SINCE = "1.5.1"


def build():
    state = {"weight": torch.Tensor([0.1, -0.0])}
    return torch.Program(state, forward="lambda a, b: a + b", tenths="lambda n: Tensor([i / 10 for i in range(n)])")


def calls():
    return [("forward", (7, -2)), ("forward", ("a", "b")), ("forward", (1, "b")), ("tenths", (4,))]
""",
    "state": """\
\"\"\"A state dict.\"\"\"
import torch

FAMILY = "torch-save"
OPERATORS = []
SINCE = "1.5.1"


def build():
    return {"weight": torch.Tensor([1.5, float("nan")]), "epoch": 3, "best": -0.1, "names": ["a", None]}
""",
    "later": """\
\"\"\"Something that 1.5.1 cannot write yet.\"\"\"
import torch

FAMILY = "torchscript"
OPERATORS = []
SINCE = "1.6.0"
WHY = "1.5.1 lacks it"


def build():
    if torch.__version__ == "1.5.1":
        raise RuntimeError("there is no such thing")
    return torch.Program(forward="lambda: 'later'")


def calls():
    return [("forward", ())]
""",
}
PROBE = '''\
"""Whether one is one."""
import torch

SINCE = "1.5.1"


def probe():
    return [("one is one", 1 == 1, "")]
'''


@dataclass(frozen=True)
class Tree:
    """A root, and the cache folder with the releases that it is observed with."""

    root: Path
    cache: Path

    @cached_property
    def policy(self) -> Policy:
        return load_policy(self.root / "policies" / "torch")

    @property
    def corpus(self) -> Corpus:
        return load_corpus(self.root / "fixtures")

    def release(self, version: str) -> CalendarRelease:
        return self.policy.calendar[version]

    def tasks(self, version: str, *fixtures: str) -> list[Task]:
        corpus = self.corpus
        chosen = [corpus.fixtures[name] for name in fixtures] if fixtures else list(corpus.fixtures.values())
        return plan(self.policy, corpus, self.release(version), chosen)

    def recording(self, version: str) -> Path:
        """The file of a release: what it was shown, and what older ones did with what it wrote."""
        return folder_of(self.root) / f"torch-{version}.txt"

    def recorded(self, version: str) -> ObservedReader:
        return reader_of(self.root, version)

    def produce(self, environment: Environment) -> None:
        with TorchRelease(environment) as writer:
            produce(self.corpus, writer, self.corpus.recipes, TODAY)

    def observe(self, environment: Environment) -> ObservedReader:
        return observe(environment, self.tasks(environment.version), self.corpus.probes, today=TODAY)

    def record(self, environment: Environment) -> None:
        record(folder_of(self.root), self.observe(environment))

    def everything(self) -> dict[str, bytes]:
        """Every file that is kept, by its path: what must not change unless somebody asks for it."""
        results = (path for path in self.root.rglob("*") if path.is_file() and "latest" not in path.parts)
        return {path.relative_to(self.root).as_posix(): path.read_bytes() for path in results}


def write_recipe(root: Path, name: str, source: str) -> None:
    path = root / "fixtures" / "recipes" / f"{name}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source, encoding="utf-8")


def recorded_tree(folder: Path) -> Tree:
    """Make one from nothing: every promise holds in it."""
    tree = Tree(folder / "root", folder / "cache")
    for name, text in POLICY.items():
        path = tree.root / "policies" / "torch" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for name, source in RECIPES.items():
        write_recipe(tree.root, name, source)
    (tree.root / "fixtures" / "probes").mkdir()
    (tree.root / "fixtures" / "probes" / "one.py").write_text(PROBE, encoding="utf-8")
    environments = [miniature(tree.cache, version) for version in RELEASES]
    for environment in environments:
        tree.produce(environment)
    for environment in environments:
        tree.record(environment)
    return tree
