"""Where the data is: the root, its policy, its corpus and its recorded observations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from torch_compat.errors import NothingSelected, UsageError
from torch_compat.places import inside
from torch_compat.releases.data import packaged
from torch_compat.writes import holding

if TYPE_CHECKING:
    from torch_compat.corpus.recorded import Recorded
    from torch_compat.policy import Policy

__all__ = ["PACKAGED", "Root", "find_policy", "find_root", "root_option"]

Command = Callable[..., Any]
PACKAGED = packaged("policies")


@dataclass(frozen=True)
class Root:
    """A tree that holds ``policies/torch/``, or that ``--root`` names."""

    path: Path

    def inside(self, name: str) -> Path:
        """The path of a name in the tree, its parts joined by ``/``.

        Raises:
            CorpusError: the name, or a link in the tree, leads out of the tree.
        """
        return inside(self.path, name)

    @property
    def fixtures(self) -> Path:
        """The corpus."""
        return self.inside("fixtures")

    @property
    def recorded(self) -> Path:
        """Observations that are kept."""
        return self.inside("reports/observations")

    @property
    def latest(self) -> Path:
        """What the last run made: generated, not kept."""
        return self.inside("reports/latest")

    def complete(self) -> None:
        """Complete or undo what a run that was killed left. Whoever is to write does it before reading.

        Raises:
            WriteError: another run holds the lock, or the tree cannot be written.
        """
        with holding(self.path):
            pass

    def policy(self, *, counted: bool = True) -> Policy:
        """The tree's own policy. Packaged policies never stand in for missing ones here.

        Parameters:
            counted: whether its lock of counts is read. Commands that count anew pass False.

        Raises:
            NothingSelected: the tree has no policies.
            PolicyError: they are invalid.
        """
        from torch_compat.policy import load_policy

        folder = self.inside("policies/torch")
        if not folder.is_dir():
            raise NothingSelected(
                "has no policies/torch, so there are no promises to check", where=str(self.path), code="no-policy"
            )
        return load_policy(folder, counted=counted)

    def observations(self) -> Recorded:
        """What is recorded of readers; files that cannot be read are named as they lie in the tree."""
        from torch_compat.corpus.recorded import read_recorded

        found = read_recorded(self.recorded)
        folder = self.recorded.relative_to(self.path).as_posix()
        unreadable = {f"{folder}/{name}": why.replace(f"{self.path}/", "") for name, why in found.unreadable.items()}
        return replace(found, unreadable=unreadable)


def find_root(given: Path | None) -> Root:
    """``--root``, else the nearest folder, from here upwards, that holds ``policies/torch/``.

    Folders that are called ``fixtures`` or ``policies`` alone are common, and say nothing.

    Raises:
        UsageError: ``--root`` is no folder.
        NothingSelected: there is no such folder.
    """
    if given is not None:
        if not given.is_dir():
            raise UsageError("is not a directory" if given.exists() else "there is no such directory", where=str(given))
        return Root(given.resolve())
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "policies/torch").is_dir():
            return Root(folder)
    raise NothingSelected(
        "neither this directory nor a parent contains policies/torch/",
        where=str(here),
        hint="run the command in a checkout of torch-compat, or give --root",
        code="no-root",
    )


def find_policy(given: Path | None) -> Policy:
    """The policy of the root; outside any tree, the one that came with this package.

    Raises:
        NothingSelected: the tree has no policies, or none was packaged.
        PolicyError: it is invalid.
    """
    from torch_compat.policy import load_policy

    try:
        root = find_root(given)
    except NothingSelected:
        if not PACKAGED.is_dir():
            raise
        return load_policy(PACKAGED / "torch")
    return root.policy()


def root_option(command: Command) -> Command:
    """Adds ``--root`` to a command."""
    return click.option(
        "--root",
        type=click.Path(path_type=Path),
        help="Directory with policies/torch/, fixtures/ and reports/. Default: the nearest one, from the current directory upwards.",
    )(command)
