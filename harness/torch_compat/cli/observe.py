"""``torch-compat observe``: load fixtures with real releases, and compare the results with the records."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from itertools import zip_longest
from typing import TYPE_CHECKING

import click

from torch_compat.cli._observing import print_all, print_deprecations, print_reading
from torch_compat.cli._output import Progress, announce, exit_status, format_option, stderr, stdout, trust_option
from torch_compat.cli._root import root_option
from torch_compat.cli._together import refuse_ignored
from torch_compat.errors import EnvironmentUnavailable, NothingSelected, UsageError
from torch_compat.judging.gathering import gather, uncollected
from torch_compat.readers.build_release import BuildRelease, built, resolved
from torch_compat.readers.builds import unchanged
from torch_compat.readers.isolation import warn_unless_isolated
from torch_compat.readers.reference import NAME, is_reference
from torch_compat.replay.everywhere import FREE_BYTES, Everywhere
from torch_compat.replay.observe import observers
from torch_compat.replay.plan import Sample
from torch_compat.replay.recording import Asked, observe_deprecations, observe_reader, refuse_damage
from torch_compat.replay.reference import let_reference_read
from torch_compat.replay.reproduced import recorded_reader
from torch_compat.replay.trust import trusted
from torch_compat.words import suggest
from torch_compat.workspace import Root, find_root

if TYPE_CHECKING:
    from pathlib import Path

    from torch_compat.corpus.observations import ObservedReader
    from torch_compat.judging.evidence import Evidence
    from torch_compat.policy import CalendarRelease
    from torch_compat.readers.isolation import Trust
    from torch_compat.readers.torch_release import TorchRelease

__all__ = ["observe"]


def _share(_context: click.Context, _parameter: click.Parameter, value: str | None) -> float | None:
    """Parse a share such as ``10%`` as a number in (0, 1]."""
    if value is None:
        return None
    try:
        share = float(value.removesuffix("%")) / 100
    except ValueError:
        share = 0.0
    if not value.endswith("%") or not 0 < share <= 1:
        raise click.BadParameter(f"{value!r} must be a percentage greater than 0% and at most 100%, such as 10%")
    return share


@click.command()
@click.option(
    "--reader",
    "readers",
    multiple=True,
    metavar="torch-X.Y.Z|python:PATH|wheel:FILE|nightly:DATE",
    help=(
        "Release to observe with; it must have an environment on this machine, unless --recorded is given. python:PATH is a Python "
        "executable with your own build of torch. "
        "`reference` is the reference reader: it runs "
        "programs without torch, each with the semantics of the release that wrote it. Can be repeated."
    ),
)
@click.option(
    "--fixture", "fixtures", multiple=True, metavar="ID", help="Only this fixture, such as torch-1.5.1/div. Can be repeated."
)
@click.option("--recipe", metavar="NAME", help="Only the fixtures of this recipe.")
@click.option(
    "--everywhere",
    is_flag=True,
    help="With --recipe: every release in the corpus runs the recipe, then every release reads the resulting fixtures. Builds, runs and removes one "
    "release after another, and continues where an earlier run stopped.",
)
@click.option("--yes", is_flag=True, help="With --everywhere: allow downloads of more than 5 GB.")
@click.option("--commands", is_flag=True, help="With --everywhere: only print the commands, one line for each CI shard.")
@click.option("--options", metavar="NAME", help="Only this set of load options from the policy.")
@click.option("--missing", is_flag=True, help="Only cells without an up-to-date recorded observation by this release.")
@click.option("--sample", callback=_share, metavar="SHARE", help="Only a random sample of the cells, such as 10%.")
@click.option("--seed", type=int, help="Random seed for --sample. Default: 0.")
@click.option("--again", is_flag=True, help="Observe everything again, even if the last run already observed it.")
@click.option("--record", is_flag=True, help="Replace the recorded observations with the new ones.")
@click.option(
    "--survey",
    "surveyed",
    is_flag=True,
    help="With --record: also record the operators, names and limits that the release reports.",
)
@click.option(
    "--deprecations",
    "deprecated",
    is_flag=True,
    help="Run only the probes for deprecated features (fixtures/deprecations); with --record, update only their records.",
)
@click.option("--show", is_flag=True, help="Print each observation with its first differences.")
@click.option(
    "--recorded", is_flag=True, help="Do not run any release; show the recorded observations. No environments are needed."
)
@trust_option
@root_option
@format_option
def observe(
    readers: tuple[str, ...],
    fixtures: tuple[str, ...],
    recipe: str | None,
    everywhere: bool,
    yes: bool,
    commands: bool,
    options: str | None,
    missing: bool,
    sample: float | None,
    seed: int | None,
    again: bool,
    record: bool,
    surveyed: bool,
    deprecated: bool,
    show: bool,
    recorded: bool,
    trust: bool,
    root: Path | None,
    format_: str,
) -> int:
    """Load each fixture twice with real releases, and compare the results with the recorded results.

    Results of the reference reader are compared with the results that the writer recorded when it loaded its own fixture.

    A release can execute code from archives, and probes run inside it. It runs without access to the network, your environment
    variables, or your files. If this machine cannot isolate a release, only fixtures pinned in FROZEN are loaded. If the run
    needs any other fixture, it observes nothing and exits with status 4, unless you pass --trust.

    With --recipe NAME --everywhere, nothing is compared: every release runs the new recipe and reads all resulting fixtures, and the
    results are recorded. The command first estimates the download size, disk space and time.

    Exit status: 0 every outcome matches its record, or --missing found nothing missing, in which case no release is run; 1
    an outcome differs from its record; 2 invalid usage, or an invalid input file; 3 internal error in torch-compat; 4 an
    outcome has no record to compare with, the release is not available on this machine, or the reference reader does not
    support a feature (the message names it).
    """
    if everywhere:
        name = _of_everywhere(recipe, click.get_current_context())
        return _everywhere(find_root(root), name, yes=yes, commands=commands, trust=trust)
    if yes or commands:
        raise UsageError("--yes and --commands require --everywhere", code="everywhere")
    if not readers:
        raise UsageError("Missing option '--reader'.", hint="torch-compat observe --reader torch-2.13.0", code="no-reader")
    if recipe is not None and (fixtures or missing):
        raise UsageError("--recipe selects the fixtures itself, so it cannot be combined with --fixture or --missing")
    if missing and (fixtures or options):
        raise UsageError("--missing selects the fixtures itself, so it cannot be combined with --fixture or --options")
    if sample is not None and (missing or record):
        raise UsageError("--sample checks recorded observations, so it cannot be combined with --missing or --record")
    if seed is not None and sample is None:
        raise UsageError("--seed selects a sample, so it requires --sample SHARE", hint="add --sample 10%", code="together")
    if recorded and (missing or sample is not None or again or record):
        raise UsageError(
            "--recorded does not observe anything, so it cannot be combined with --missing, --sample, --again or --record"
        )
    if surveyed and not record:
        raise UsageError("--survey requires --record")
    if len(readers) > 1 and format_ == "json":
        raise UsageError("--format json supports only one reader; use --reader once")
    reference = [reader for reader in readers if is_reference(reader)]
    if deprecated:
        refuse_ignored(
            "--deprecations",
            "runs only probes",
            {
                "--fixture": fixtures, "--recipe": recipe is not None, "--options": options is not None, "--missing": missing,
                "--sample": sample is not None, "--survey": surveyed, "--recorded": recorded,
            },
        )  # fmt: skip
    _check_reference(reference, wrong=missing or record or recorded or deprecated)
    place = find_root(root)
    if record:
        place.complete()
    policy = place.policy()
    policy, result = resolved(policy, [reader for reader in readers if not is_reference(reader)], announce)
    releases = dict.fromkeys(result)
    builds = [release for release in result if isinstance(release, BuildRelease)]
    if builds and (missing or record or recorded):
        raise UsageError(
            f"{builds[0].build.name} is a build; builds are never recorded in the corpus, so --missing, --record and --recorded "
            "cannot be used with it",
            hint="torch-compat candidate writes each build's results to its own directory",
        )
    if options is not None and options not in {entry.id for entry in policy.options}:
        known = [entry.id for entry in policy.options]
        raise UsageError(
            f"the policy has no set of load options named {options!r}",
            hint=suggest(options, known, f"known load options: {', '.join(known)}"),
            code="unknown-options",
        )
    with uncollected():
        evidence = gather(place, policy, as_of=None)
    if deprecated:
        statuses = []
        for release in releases:
            with Progress(stderr()) as progress:
                reading = observe_deprecations(place, evidence, release, record=record, progress=progress)
            evidence = reading.evidence
            statuses.append(print_deprecations(reading, show=show, format_=format_))
        for build in builds:
            unchanged(build.build)
        return exit_status(statuses)
    chosen = evidence.corpus.named(fixtures)
    if recipe is not None:
        chosen = evidence.corpus.of_recipe(recipe, chosen)
    if recorded:
        before = (recorded_reader(evidence, release, chosen, options) for release in releases)
        return exit_status([print_all(evidence, reader, show=True, format_=format_) for reader in before])
    whole = not fixtures and recipe is None and options is None and sample is None
    asked = Asked(
        fixtures=chosen,
        options=options,
        sample=None if sample is None else Sample(sample, seed or 0),
        missing=missing,
        again=again,
        record=record,
        survey=surveyed,
        whole=whole,
        trust=trusted(place.fixtures, everything=trust),
    )
    statuses = []
    with ExitStack() as stack:
        ahead: dict[str, tuple[TorchRelease, TorchRelease]] = {}
        for release, following in zip_longest(releases, list(releases)[1:]):
            if following is not None and (again or record) and not missing:
                _start_ahead(following, ahead, stack, asked.trust)
            with Progress(stderr()) as progress:
                reading = observe_reader(place, evidence, release, asked, progress, ahead.pop(release.name, None))
            evidence = reading.evidence
            statuses.append(print_reading(reading, show=show, format_=format_))
            if isinstance(release, BuildRelease):
                unchanged(release.build)
    if reference:
        refuse_damage(evidence.corpus, asked.fixtures, record=False)
        with Progress(stderr()) as progress:
            fresh = _reference(place, evidence, asked, progress)
        statuses.append(print_all(evidence, fresh, show=show, format_=format_))
    return exit_status(statuses)


def _everywhere(place: Root, recipe: str, *, yes: bool, commands: bool, trust: bool) -> int:
    """Run a recipe in every release, and read its fixtures with every release; or print the commands that do it."""
    console = stderr()
    place.complete()
    work = Everywhere(
        place, recipe, trust=trust, say=lambda line: console.print(line, markup=False, soft_wrap=True),
        progress=lambda: Progress(console), read=lambda reading: print_reading(reading, show=False, format_="text"),
    )  # fmt: skip
    jobs = work.jobs()
    if not jobs:
        stdout().print(f"{recipe}: every release has already run it and read its fixtures", markup=False)
        return 0
    if commands:
        for job in jobs:
            stdout().print(job.commands(recipe), markup=False, soft_wrap=True)
        return 0
    download, told = work.cost(jobs)
    for line in told:
        console.print(line, markup=False, soft_wrap=True)
    if download > FREE_BYTES and not yes:
        raise UsageError(
            f"this downloads up to {download / 1e9:.0f} GB, more than {FREE_BYTES / 1e9:.0f} GB",
            hint="use --yes to continue, or --commands to print commands for CI shards",
            code="needs-yes",
        )
    warn_unless_isolated(announce)
    return work.run(jobs)


def _of_everywhere(recipe: str | None, context: click.Context) -> str:
    """The recipe of ``--everywhere``; refuses options that do not apply to it, by name.

    Raises:
        UsageError: there is no recipe, or such an option is given.
    """
    example = "torch-compat observe --recipe NAME --everywhere"
    if recipe is None:
        raise UsageError("--everywhere needs --recipe NAME", hint=example, code="everywhere")
    allowed = {"everywhere", "recipe", "yes", "commands", "trust", "root"}
    given = [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name not in allowed
        and context.get_parameter_source(str(parameter.name)) is click.core.ParameterSource.COMMANDLINE
    ]
    if given:
        why = "every release of the corpus runs the recipe and reads its fixtures, and the results are recorded"
        raise UsageError(f"--everywhere cannot be combined with {' and '.join(given)}: {why}", hint=example, code="everywhere")
    return recipe


def _check_reference(asked: list[str], *, wrong: bool) -> None:
    if asked and wrong:
        raise UsageError(
            "the reference reader cannot be combined with --missing, --record, --recorded or --deprecations: its observations are "
            "never recorded"
        )
    for reader in asked:
        if reader != NAME:
            raise UsageError(
                f"{reader}: the reference reader uses the semantics of the release that wrote each fixture",
                hint=f"use --reader {NAME}; to run one file at another horizon: torch-compat run PATH --reader {reader}",
            )


def _reference(place: Root, evidence: Evidence, asked: Asked, progress: Progress) -> ObservedReader:
    """The observations of the reference reader."""
    fresh = let_reference_read(
        place,
        evidence.policy,
        evidence.corpus,
        asked.fixtures,
        progress,
        again=asked.again,
        whole=asked.whole,
        options=asked.options,
        sample=asked.sample,
    )
    if not fresh.cells:
        raise NothingSelected(
            "the reference reader has nothing to observe in this selection",
            hint="it reads only programs that a release wrote, with the default load options",
        )
    return fresh


def _start_ahead(
    release: CalendarRelease, ahead: dict[str, tuple[TorchRelease, TorchRelease]], stack: ExitStack, trust: Trust
) -> None:
    """Start the workers of the next release. If it is not built, the error is reported when it is its turn.

    Importing torch takes nearly all of the time for a few cells, and much of it is waiting for the disk.
    """
    with suppress(EnvironmentUnavailable):
        ahead[release.name] = observers(built(release), trust)
        for worker in ahead[release.name]:
            stack.push(worker)
            worker.start()
