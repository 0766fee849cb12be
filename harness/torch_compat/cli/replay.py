"""``torch-compat replay``: the main job: observe with the chosen readers, judge, report."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from torch_compat.cli._days import as_of_option, profile_option
from torch_compat.cli._output import Progress, announce, counting, format_option, stderr, trust_option
from torch_compat.cli._root import root_option
from torch_compat.cli._writing import outputs_of, outputs_option
from torch_compat.cli.judge import full_option, print_formatted, write_report
from torch_compat.errors import EnvironmentUnavailable, UsageError
from torch_compat.judging.gathering import gather, uncollected
from torch_compat.judging.judge import judge
from torch_compat.readers.build_release import BuildRelease, built, is_build_name, resolved
from torch_compat.readers.builds import unchanged
from torch_compat.readers.reference import NAME, is_reference
from torch_compat.replay.recording import observe_release
from torch_compat.replay.reference import let_reference_read
from torch_compat.replay.trust import trusted
from torch_compat.report.to_json import report_json
from torch_compat.words import count_of
from torch_compat.workspace import Root, day_of, find_root, profile_note, under_profile
from torch_compat.writes import changing, put, remove

if TYPE_CHECKING:
    from pathlib import Path

    from torch_compat.corpus.corpus import Corpus
    from torch_compat.corpus.observations import ObservedReader
    from torch_compat.policy import CalendarRelease, Policy
    from torch_compat.readers.isolation import Trust

__all__ = ["replay"]

# Whether the reference reader runs if no reader is named and the policy has the rule that judges it. It takes about ten
# seconds, and does not need torch.
REFERENCE_BY_DEFAULT = True
RULE = "reference-agrees"
ANY = "any"


@click.command()
@click.option(
    "--reader",
    "names",
    multiple=True,
    metavar="torch-X.Y.Z|python:PATH|wheel:FILE|nightly:DATE",
    help="Observe with this release, with a build (such as python:PATH), or with the reference reader (`reference`). Can be repeated.",
)
@click.option(
    "--require",
    "required",
    multiple=True,
    metavar="torch-X.Y.Z|python:PATH|any",
    help="Exit with status 4 unless this run loaded fixtures with this release or build (`any`: at least one release or build). Can be repeated.",
)
@click.option("--recorded", is_flag=True, help="Do not run anything; judge only the recorded observations.")
@click.option("--again", is_flag=True, help="Observe everything again, even if the last run already observed it.")
@trust_option
@root_option
@as_of_option
@profile_option
@outputs_option
@full_option
@format_option
def replay(
    names: tuple[str, ...],
    required: tuple[str, ...],
    recorded: bool,
    again: bool,
    trust: bool,
    root: Path | None,
    as_of: str | None,
    profile: str | None,
    outputs: tuple[str, ...],
    full: bool,
    format_: str,
) -> int:
    """Load fixtures with the selected readers, judge the results, and print a report.

    By default, the readers are the reference reader and every release in the policy that has an environment on this machine.
    For the other releases, the recorded observations are used. The report is also written to reports/latest/report.json.

    A release can execute code from archives, and probes run inside it. It runs without access to the network, your environment
    variables, or your files. If this machine cannot isolate a release, only fixtures pinned in FROZEN are loaded. If the run
    needs any other fixture, it reports nothing and exits with status 4, unless you pass --trust. The reference reader runs
    programs in its own interpreter and executes no Python code from archives.

    Exit status: 0 every promise that was checked holds, or each violation is waived or already existed in an older release;
    1 a promise is broken; 2 invalid usage, or an invalid input file; 3 internal error in torch-compat; 4 incomplete: a
    required check could not be run, a release named by --require was not observed, or there is no checkout to check.
    """
    if recorded and (names or again):
        raise UsageError("--recorded does not observe anything, so it cannot be combined with --reader or --again")
    asked = outputs_of(outputs)
    if recorded and required:
        raise UsageError("--recorded does not observe anything, so it cannot be combined with --require")
    if any(map(is_reference, required)):
        raise UsageError(
            "--require accepts only releases and builds", hint="to use the reference reader, pass --reader reference"
        )
    place = find_root(root)
    with changing(place.path):
        remove(place.latest / "report.json")  # an older report must not be taken for the result of this run
    policy = under_profile(place.policy(), profile)
    policy, chosen = (policy, []) if recorded else _chosen(policy, names, required)
    reference = _reference_chosen(policy, names) and not recorded
    with uncollected():
        evidence = gather(place, policy, as_of=day_of(as_of, policy) if as_of else None)
    fresh, unavailable = _observe(
        place, policy, evidence.corpus, chosen, bool(names), again, trusted(place.fixtures, everything=trust)
    )
    unavailable |= _absent(policy, required, fresh)
    modelled = _reference(place, policy, evidence.corpus, again) if reference else None
    with uncollected():
        evidence = replace(evidence, fresh=fresh, unavailable=unavailable, reference=modelled)
        with counting("judging") as step:
            report = judge(evidence, step)
    report = replace(report, notes=(*profile_note(policy, profile), *report.notes))
    with changing(place.path):
        put(place.latest / "report.json", report_json(report))
    write_report(asked, evidence, report)
    print_formatted(report, format_, full=full)
    return report.exit_status


def _absent(policy: Policy, required: tuple[str, ...], fresh: dict[str, ObservedReader]) -> dict[str, str]:
    """Releases and builds that were required but not observed in this run, and why."""
    seen = {observed.release for observed in fresh.values()}
    absent: dict[str, str] = {}
    for name in required:
        if name == ANY:
            if not fresh:
                absent["any release"] = (
                    "--require any: none of the readers is built here (torch-compat readers build torch-X.Y.Z)"
                )
        elif not is_build_name(name) and (release := policy.calendar.resolve(name)).version not in seen:
            absent[release.name] = f"it is required, but not built here (torch-compat readers build {release.name})"
    return absent


def _chosen(policy: Policy, names: tuple[str, ...], required: tuple[str, ...]) -> tuple[Policy, list[CalendarRelease]]:
    """The named or required releases and builds, and the policy with the builds; if none are named, all readers of the policy."""
    asked = [*(names or policy.corpus.readers), *(name for name in required if name != ANY)]
    return resolved(policy, [name for name in asked if not is_reference(name)], announce)


def _reference_chosen(policy: Policy, names: tuple[str, ...]) -> bool:
    """Whether the reference reader runs."""
    for name in names:
        if is_reference(name) and name != NAME:
            raise UsageError(
                f"{name}: the reference reader uses the semantics of the release that wrote each fixture",
                hint=f"use --reader {NAME}",
            )
    return NAME in names if names else REFERENCE_BY_DEFAULT and any(rule.id == RULE for rule in policy.rules)


def _reference(place: Root, policy: Policy, corpus: Corpus, again: bool) -> ObservedReader:
    """The observations of the reference reader for every program of the corpus that is unchanged since it was recorded."""
    fixtures = [fixture for fixture in corpus.fixtures.values() if corpus.damage_of(fixture) is None]
    with Progress(stderr()) as progress:
        return let_reference_read(place, policy, corpus, fixtures, progress, again=again, whole=True)


def _observe(
    place: Root, policy: Policy, corpus: Corpus, chosen: list[CalendarRelease], named: bool, again: bool, trust: Trust
) -> tuple[dict[str, ObservedReader], dict[str, str]]:
    """Fresh observations by reader; and the named readers that are not available here."""
    if not chosen or not corpus.fixtures:
        return {}, {}

    fresh: dict[str, ObservedReader] = {}
    unavailable: dict[str, str] = {}
    fixtures = [fixture for fixture in corpus.fixtures.values() if corpus.damage_of(fixture) is None]
    with Progress(stderr()) as progress:
        for release in chosen:
            try:
                environment = built(release)
            except EnvironmentUnavailable as error:
                if named:
                    unavailable[release.name] = error.message
                continue
            observed = observe_release(place, policy, corpus, release, environment, fixtures, progress, again=again, trust=trust)
            fresh[observed.name] = observed
            if isinstance(release, BuildRelease):
                unchanged(release.build)
        if len(fixtures) < len(corpus.fixtures):
            progress.say(
                f"not observed, because the files differ from the manifests: {count_of(len(corpus.fixtures) - len(fixtures), 'fixture')}"
            )
        seen = {observed.release for observed in fresh.values()}
        absent = [release.name for release in chosen if release.version not in seen and release.name not in unavailable]
        if absent:
            progress.say(f"not built here, so their recorded observations are used: {', '.join(absent)}")
    return fresh, unavailable
