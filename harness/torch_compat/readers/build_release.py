"""Lets builds be named wherever a release can be: calendar entries that are on no package index."""

from __future__ import annotations

import datetime as dt
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import PrivateAttr

from torch_compat.errors import UsageError
from torch_compat.policy.model import CalendarRelease
from torch_compat.readers.builds import KINDS, Build, python_build
from torch_compat.readers.environments import Environments
from torch_compat.readers.wheels import INDEX, nightly_build, wheel_build
from torch_compat.releases.calendar import Calendar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from torch_compat.policy import Policy
    from torch_compat.readers.environments import Environment

__all__ = ["BUILDS", "BuildRelease", "build_of", "built", "is_build_name", "resolved", "with_build"]

BUILDS: Final = "python:PATH (a Python executable with the build installed), wheel:FILE or nightly:DATE"


class BuildRelease(CalendarRelease):
    """A build as a calendar release, with the date that the build states and the version that it has or will become."""

    _build: Build = PrivateAttr()

    @classmethod
    def of(cls, build: Build, date: dt.date) -> BuildRelease:
        """Make a release of this date from a build. Policy files may not name its version, so their version pattern is not enforced."""
        version = build.release.public
        release = cls.model_construct(version=version, date=date, pythons=("3.11",), python=None, install="whole", numpy="")
        release._build = build  # noqa: SLF001 - its own
        return release

    @property
    def build(self) -> Build:
        """The underlying build."""
        return self._build

    @property
    def name(self) -> str:
        """The name used by readers and commands: 'torch-2.16.0.dev20261120+cpu'."""
        return self._build.reader


def built(release: CalendarRelease) -> Environment:
    """The environment of a release, or of a build.

    Raises:
        EnvironmentUnavailable: it was not built here.
    """
    if isinstance(release, BuildRelease):
        return release.build.environment
    return Environments().need(release.version)


def is_build_name(name: str) -> bool:
    """Whether a name denotes a build (well-formed or not) rather than a release."""
    return ":" in name


def build_of(name: str, policy: Policy, say: Callable[[str], None], index: str | None = None) -> Build:
    """Return the build that a name denotes; create the environment of a wheel if it does not exist.

    Parameters:
        say: called with each step of creating an environment.
        index: the URL of the index of nightlies; defaults to that of the environment variable, then to that of the policy.

    Raises:
        UsageError: the name has none of these forms, or the program does not exist.
        BuildError: it cannot be used.
        EnvironmentUnavailable: its wheel or its environment is not available on this machine.
    """
    kind, _, rest = name.partition(":")
    if kind not in KINDS or not rest:
        raise UsageError(f"{name!r} is not a build", hint=f"expected {BUILDS}", code="no-build")
    today = dt.datetime.now(dt.UTC).date()
    if kind == "python":
        return python_build(Path(rest), name=name, today=today)

    def progress(step: str) -> None:
        say(f"{name}: {step}")

    if kind == "wheel":
        return wheel_build(Path(rest), policy.calendar, today=today, name=name, progress=progress)
    index = index or os.environ.get(INDEX) or policy.nightly_index
    return nightly_build(rest, policy.calendar, today=today, index=index, progress=progress)


def with_build(policy: Policy, build: Build) -> tuple[Policy, BuildRelease]:
    """Return a policy whose calendar includes a build's version, and the build as a release.

    A build of a release in the calendar gets that release's date, because promises are made about releases.
    """
    version = build.release.public
    known = version in policy.calendar
    date = policy.calendar[version].date if known else build.day
    release = BuildRelease.of(build, date)
    if known:
        return policy, release
    return replace(policy, calendar=Calendar([*policy.calendar, release])), release


def resolved(policy: Policy, names: Iterable[str], say: Callable[[str], None]) -> tuple[Policy, list[CalendarRelease]]:
    """Return the releases and builds that names denote, each once, and a policy whose calendar contains them all.

    Parameters:
        say: called with each step of creating an environment.

    Raises:
        UsageError: the calendar has no such release, a program does not exist, or two builds have the same reader name.
        BuildError: a build cannot be used.
    """
    results: dict[str, CalendarRelease] = {}
    for name in dict.fromkeys(names):
        if not is_build_name(name):
            release = policy.calendar.resolve(name)
            results[release.name] = release
            continue
        policy, mine = with_build(policy, build_of(name, policy, say))
        twin = results.get(mine.name)
        if isinstance(twin, BuildRelease) and twin.build.digest != mine.build.digest:
            raise UsageError(
                f"{name} and {twin.build.name} are two builds with the same version, {mine.build.release}",
                hint="use only one of them at a time",
                code="twin-builds",
            )
        results[mine.name] = mine
    return policy, list(results.values())
