"""A writer declares the lowest file format version that its operators need.

What: every archive declares exactly the higher of two versions: the version that all archives of its family have in the release
that wrote it, and the highest version of the operators that it contains. The policy states which versions all archives of a family have,
and which operators raise the version from which release on. Until 1.11, a release raises the version for all overloads of such an
operator; later releases raise it only for overloads that have an upgrader. The operators are those that the recipe declares, and those
that its program contains without declaring them (behaviors with the outcome `writes`).

Why: older readers refuse an archive whose version they do not know. A version that is too high makes them refuse programs that they
could run. A version that is too low makes them silently compute different results.

Example: a build that declares file format 10 in every archive also does so for a program of `aten::add`, for which 3 is enough.

Reference: pytorch/pytorch#40279; torch/csrc/jit/serialization/python_print.cpp (the minimum version of a program) and
caffe2/serialize/inline_container.cc (the version is written when the archive is finished).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from torch_compat.corpus.manifest import SYNTHETIC
from torch_compat.corpus.recipes import EVERY
from torch_compat.judging.judgement import Asks, Cause, Judgement, Verdict
from torch_compat.releases.release import Release

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from torch_compat.corpus.manifest import Fixture
    from torch_compat.judging.evidence import Evidence
    from torch_compat.policy import Format, RuleEntry

__all__ = ["judge"]

ASKS: Final = Asks.OTHER
KIND: Final = "file-format"


def judge(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Judge every archive of a release that declares a file format version."""
    formats = [
        (format_, format_.version)
        for format_ in evidence.policy.formats
        if format_.kind == KIND and isinstance(format_.version, int)
    ]
    upgraded = frozenset((upgrader.operator, upgrader.bump) for upgrader in evidence.policy.upgraders)
    undeclared: dict[str, list[tuple[str, ...]]] = {}
    for entry in (item for item in evidence.policy.behaviors if item.operators):
        for fixture in evidence.corpus.fixtures.values():
            if fixture.release != SYNTHETIC and entry.of(fixture.recipe, Release(fixture.release)):
                undeclared.setdefault(fixture.id, []).append(entry.operators or ())
    for fixture in evidence.corpus.fixtures.values():
        stated = fixture.versions.get(KIND)
        if stated is None or fixture.release == SYNTHETIC:
            continue
        written = [
            (item, version)
            for item, version in formats
            if (item.families is None or fixture.family in item.families) and _writes(evidence, fixture.release, item)
        ]
        plain = max((version for item, version in written if item.operators is None), default=0)
        held = {*fixture.operators, *(operator for group in undeclared.get(fixture.id, ()) for operator in group)}
        if EVERY in held:
            held.update(operator for operator, _ in upgraded)
            held.update(name for item, _ in written for name in item.operators or ())
        raising = {
            operator: version
            for operator in sorted(held)
            for item, version in written
            if _raises(item, version, operator, Release(fixture.release), upgraded)
        }
        yield _judgement(rule, fixture, stated, plain, raising)


def _judgement(rule: RuleEntry, fixture: Fixture, stated: int, plain: int, raising: Mapping[str, int]) -> Judgement:
    """Compare the version that an archive declares with the version that its family and its operators need."""
    needed = max(plain, *raising.values()) if raising else plain
    if stated == needed:
        return Judgement(rule.id, Verdict.PASS, fixture.id)
    where = f"{fixture.family} archives written by torch {fixture.release} declare file format {stated}"
    if stated > needed:
        text = f"{where}, but {needed} is enough: older readers refuse them unnecessarily"
        what = "bumped"
    else:
        operators = [operator for operator, version in raising.items() if version > stated]
        because = f"{', '.join(operators)} needs {needed}" if operators else f"all archives of the family have {needed}"
        text = f"{where}, and {because}: older readers do not refuse them"
        what = "too low"
    cause = Cause(what, f"{fixture.family}:{stated}:{needed}", text)
    return Judgement(rule.id, Verdict.FAIL, fixture.id, cause, at=fixture.release)


def _raises(entry: Format, version: int, operator: str, writer: Release, upgraded: frozenset[tuple[str, int]]) -> bool:
    """Whether a writer raises the version of an archive to this one because of an operator."""
    name = operator.partition(".")[0]
    if name not in (entry.operators or ()):
        return False
    if entry.any_overload is not None and writer in entry.any_overload:
        return True
    return (operator, version) in upgraded


def _writes(evidence: Evidence, writer: str, entry: Format) -> bool:
    """Whether a release or a build writes a version if it is needed.

    A build from before the release that introduced the version writes it from the date of the change on. Release candidates of that
    release write it.
    """
    since = entry.written_from
    if since is None:
        return False
    release = Release(writer)
    if release >= Release(since.release):
        return True
    if not release.prerelease or writer not in evidence.policy.calendar:
        return False
    if release.day is None and release.numbers == Release(since.release).numbers:
        return True
    return evidence.policy.calendar[writer].date >= (since.day or evidence.policy.day_of(since.release))
