"""Deprecated features are used twice, by two processes, and known ones are not used again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.miniatures import miniature
from tests.miniatures.tree import TODAY, Tree
from torch_compat.errors import ReaderError
from torch_compat.replay.observe import observe
from torch_compat.replay.plan import probe_key

if TYPE_CHECKING:
    from pathlib import Path

    from torch_compat.corpus.observations import ObservedReader

PROBE = '''"""Something old."""
import os
import warnings

import torch

SUBJECT = "torch.load"
SINCE = "1.5.1"


def deprecated():
    warnings.warn("torch.old is deprecated")
    {deprecated}


def alternative():
    return 1
'''


def probe(tree: Tree, deprecated: str = "pass") -> None:
    path = tree.root / "fixtures/deprecations/old.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(PROBE.format(deprecated=deprecated), encoding="utf-8")


def observed(tree: Tree, known: ObservedReader | None = None, **hooks: str) -> ObservedReader:
    environment = miniature(tree.cache, "1.6.0", **hooks)
    return observe(environment, [], (), today=TODAY, deprecations=tree.corpus.deprecations, known=known)


def log(path: Path) -> str:
    return f"os.write(os.open({str(path)!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND), os.environ['PYTHONHASHSEED'].encode())"


def test_it_is_used_twice_by_two_processes(tree: Tree, tmp_path: Path) -> None:
    probe(tree, log(tmp_path / "log"))
    reader = observed(tree)
    assert sorted((tmp_path / "log").read_text(encoding="utf-8")) == ["0", "1"]
    deprecation = reader.deprecations["old"]
    assert deprecation.deprecated.warnings == (("UserWarning", "torch.old is deprecated"),)
    assert (reader.cells, reader.probes) == ({}, {})
    assert deprecation.key == probe_key(tree.corpus.deprecations[0], reader.identity_digest)


def test_what_is_known_is_not_used_again_unless_its_probe_changed(tree: Tree, tmp_path: Path) -> None:
    probe(tree, log(tmp_path / "log"))
    result = observed(tree)
    assert observed(tree, known=result) == result
    assert len((tmp_path / "log").read_text(encoding="utf-8")) == 2
    probe(tree, log(tmp_path / "log") + " or 1")
    again = observed(tree, known=result)
    assert len((tmp_path / "log").read_text(encoding="utf-8")) == 4
    assert again.deprecations["old"].key != result.deprecations["old"].key


def test_what_is_one_thing_and_then_another_is_no_observation(tree: Tree) -> None:
    probe(tree, "warnings.warn(os.environ['PYTHONHASHSEED'])")
    with pytest.raises(ReaderError, match="deprecation old gave different results"):
        observed(tree)


def test_a_probe_that_ends_the_process_at_once_is_no_observation(tree: Tree) -> None:
    probe(tree)
    path = tree.root / "fixtures/deprecations/old.py"
    path.write_text(path.read_text(encoding="utf-8") + "\nos._exit(0)\n", encoding="utf-8")
    with pytest.raises(ReaderError, match="ended without reporting a result"):
        observed(tree)


def test_a_probe_that_cannot_be_read_is_damage(tree: Tree) -> None:
    probe(tree)
    path = tree.root / "fixtures/deprecations/old.py"
    path.write_text(path.read_text(encoding="utf-8").replace("def alternative", "def other"), encoding="utf-8")
    corpus = tree.corpus
    assert corpus.deprecations == ()
    (damage,) = corpus.damage
    assert (damage.kind, damage.subject) == ("unreadable-deprecation", "deprecations/old.py")
    assert "has no function alternative()" in damage.detail
