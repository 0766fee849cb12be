"""Copies of a small part of the repository's evidence for planting defects, and the results of judging them.

Nothing fails in this part (see tests/small_tree.py): every failure in a copy was planted there.
"""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.recordings import cells_of, change_cells, change_reader, file_of, folder_of, readers_of
from torch_compat.cli import main
from torch_compat.corpus.corpus import FROZEN, read_frozen, write_frozen
from torch_compat.corpus.json_lines import digest, read_lines, write_lines
from torch_compat.corpus.manifest import MANIFEST, read_manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from torch_compat.corpus.observations import Observation

Cells = dict[tuple[str, str], "Observation"]
Entry = dict[str, Any]


@dataclass(frozen=True)
class Judged:
    """What one run of ``torch-compat judge --format json`` gave."""

    status: int
    stdout: str
    stderr: str

    @property
    def bad(self) -> set[str]:
        """Everything that is not green, one line each."""
        if not self.stdout:
            return set(self.stderr.splitlines())
        report = json.loads(self.stdout)
        return {
            *(
                f"{finding['id']} × {finding['count']}: {finding['cause']}"
                for finding in report["findings"]
                if finding["verdict"] == "fail"
            ),
            *(f"{item['what']} × {item['count']}: {item['reason']}" for item in report["not_checked"]),
        }


class Tree:
    """A root of its own, and the means to spoil it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fixtures = path / "fixtures"
        self.frozen = path / "fixtures" / FROZEN
        self.policy = path / "policies" / "torch"
        self.recorded = folder_of(path)

    # ------------------------------------------------------------------------------------------------ what there is

    def releases(self) -> list[Path]:
        """The folders of the releases that wrote fixtures."""
        return sorted(path.parent for path in self.fixtures.glob(f"torch-*/{MANIFEST}"))

    def archives(self) -> list[Path]:
        return sorted(path for folder in self.releases() for path in folder.glob("*.pt*"))

    def recipes(self) -> list[Path]:
        return sorted((self.fixtures / "recipes").glob("*.py"))

    def probes(self) -> list[Path]:
        return sorted((self.fixtures / "probes").glob("*.py"))

    def readers(self) -> list[str]:
        """The exact names of those whose observations are recorded."""
        return sorted(readers_of(self.path))

    def recordings(self) -> list[Path]:
        """The files of recorded observations that hold those of a reader."""
        return [self.recorded / file_of(name) for name in self.readers()]

    def waivers(self) -> list[Path]:
        return sorted((self.policy / "waivers").glob("*.toml"))

    # ----------------------------------------------------------------------------------------------------- editing

    def edit(self, path: Path, old: str, new: str) -> None:
        """Replace a text that stands exactly once in a file."""
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {path.name}"
        path.write_text(text.replace(old, new), encoding="utf-8")

    def entries(self, path: Path, change: Callable[[list[Entry]], Iterable[Entry] | None], **header: object) -> None:
        """Change the entries of a file of JSON lines, and its header, and give it a footer that fits."""
        head, lines = read_lines(path, json.loads(path.read_text().partition("\n")[0])["kind"])
        entries = [entry for _, entry in lines]
        write_lines(path, head | header, change(entries) or entries)

    def cells(self, reader: str) -> Mapping[tuple[str, str], Observation]:
        """What a reader is recorded to have done."""
        return cells_of(self.path, reader)

    def observe(self, reader: str, change: Callable[[Cells], object]) -> list[Path]:
        """Change what is recorded of a reader's cells, and write it as the harness writes it; the files that changed."""
        return change_cells(self.path, reader, change)

    def change_reader(self, reader: str, **change: Any) -> list[Path]:
        """Replace attributes of a reader, and write it as the harness writes it; the files that changed."""
        return change_reader(self.path, reader, **change)

    def freeze(self, release: Path) -> None:
        """Pin what the manifest of a release says now."""
        manifest = read_manifest(release / MANIFEST)
        write_frozen(self.frozen, read_frozen(self.frozen) | {entry.id: entry.pin for entry in manifest.entries})

    def unpin(self, name: str) -> None:
        write_frozen(self.frozen, {key: pin for key, pin in read_frozen(self.frozen).items() if key != name})

    @staticmethod
    def identity_digest(identity: Entry) -> str:
        return digest(identity)[:12]

    # ----------------------------------------------------------------------------------------------------- judging

    def judge(self, *arguments: str) -> Judged:
        """Run the command in this process."""
        stdout, stderr = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr), pytest.raises(SystemExit) as ended:
            main(["judge", "--root", str(self.path), "--format", "json", *arguments])
        assert isinstance(ended.value.code, int)
        return Judged(ended.value.code, stdout.getvalue(), stderr.getvalue())


def copy_evidence(source: Path, target: Path) -> None:
    """Copy all that judging rests on."""
    for name in ("fixtures", "policies", "reports/observations", "reports/proofs"):
        shutil.copytree(source / name, target / name, ignore=shutil.ignore_patterns("__pycache__"))


@pytest.fixture(scope="session")
def pristine(small_tree: Path) -> Tree:
    """The untouched evidence. Not to be changed."""
    return Tree(small_tree)


@pytest.fixture(scope="session")
def baseline(pristine: Tree) -> Judged:
    """What judging says where nothing was planted: nothing bad, unless the repository's evidence is not settled."""
    judged = pristine.judge()
    assert judged.status in {0, 1, 4}, judged.stderr
    return judged


@pytest.fixture
def tree(pristine: Tree, tmp_path: Path) -> Iterator[Tree]:
    """A copy to spoil."""
    path = tmp_path / "tree"
    copy_evidence(pristine.path, path)
    yield Tree(path)
    shutil.rmtree(path, ignore_errors=True)
