"""What commands that need running releases share: which environments, or why there is none."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from torch_compat.cli._builds import BuildRelease
from torch_compat.cli._format import say
from torch_compat.errors import EnvironmentUnavailable, UsageError
from torch_compat.readers.environments import Environments
from torch_compat.readers.isolation import isolation, trust_everything, trust_nothing

if TYPE_CHECKING:
    from pathlib import Path

    from torch_compat.corpus.corpus import Corpus
    from torch_compat.corpus.manifest import Fixture
    from torch_compat.policy import CalendarRelease
    from torch_compat.readers.environments import Environment
    from torch_compat.readers.isolation import Trust

__all__ = ["built", "selected_fixtures", "trusted", "warn_unless_isolated"]


def built(release: CalendarRelease) -> Environment:
    """The environment of a release, or of a build.

    Raises:
        EnvironmentUnavailable: it was not built here.
    """
    if isinstance(release, BuildRelease):
        return release.build.environment
    environment = Environments().get(release.version)
    if environment is None:
        raise EnvironmentUnavailable(
            f"{release.name} is not built here", hint=f"torch-compat readers build {release.name}", code="not-built"
        )
    return environment


def selected_fixtures(corpus: Corpus, names: tuple[str, ...]) -> list[Fixture]:
    """Fixtures by id; all where none is named.

    Raises:
        UsageError: there is no such fixture.
    """
    if not names:
        return list(corpus.fixtures.values())
    for name in names:
        if name not in corpus.fixtures:
            if name in corpus.not_writable:
                why = corpus.not_writable[name].message.splitlines()[0]
                raise UsageError(f"{name} does not exist: the release cannot write this recipe ({why})", code="not-writable")

            near = difflib.get_close_matches(name, corpus.fixtures, 3, 0.5)
            raise UsageError(
                f"there is no fixture {name!r}", hint=f"did you mean {', '.join(near)}?" if near else "", code="unknown-fixture"
            )
    return [corpus.fixtures[name] for name in names]


def trusted(fixtures: Path | None, *, everything: bool) -> Trust:
    """What may be run by a release that is not isolated: ``--trust``, else the frozen corpus.

    Parameters:
        fixtures: the corpus's folder; None where there is none.
        everything: whether --trust was given.
    """
    from torch_compat.replay.trust import frozen_in  # noqa: PLC0415 - reads manifests, which takes long to import

    if everything:
        return trust_everything
    return trust_nothing if fixtures is None else frozen_in(fixtures)


def warn_unless_isolated() -> None:
    """Say on standard error what a release can reach here that it should not."""
    fence = isolation()
    if not fence.whole:
        say(f"torch-compat: releases are not isolated on this machine: {fence}", err=True)
