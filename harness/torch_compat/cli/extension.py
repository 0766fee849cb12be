"""``torch-compat extension``: the releases that an extension fits, based on the operators that it registers, defines and calls."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from torch_compat.cli._format import announce, format_option, print_json, say, say_wrapped, write_output
from torch_compat.cli._help import WithCommands
from torch_compat.cli._paths import NamedPath
from torch_compat.errors import NothingSelected, UsageError
from torch_compat.words import count_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from torch_compat.operators.dispatch import Dispatch, Dispatches
    from torch_compat.operators.extensions import Fit, RecordedReleases
    from torch_compat.operators.manifest import ExtensionManifest

__all__ = ["extension"]

STATUS = {"fits": 0, "does-not-fit": 1, "cannot-be-told": 4}
WORDS = {"fits": "fits", "does-not-fit": "does not fit", "cannot-be-told": "cannot be determined"}


@click.group(cls=WithCommands)
def extension() -> None:
    """Record the operators that an extension uses, and check which releases it is compatible with.

    The manifest that `record` writes is also the input to torch_compat.extension.verify, which warns once when the extension is
    imported.
    """


# --------------------------------------------------------------------------------------------------------------------- record


@extension.command()
@click.option(
    "--operators",
    "listing",
    type=NamedPath(),
    metavar="FILE",
    help="File with one operator per line: `registers aten::add.Tensor`, `calls aten::linear`, `defines mine::f(Tensor x) -> Tensor`.",
)
@click.option("--release", metavar="X.Y.Z", help="Release that the listed operators belong to.")
@click.option(
    "--library",
    type=NamedPath(),
    metavar="PATH.so",
    help="Built library; the operators that it registers are read from the dispatcher.",
)
@click.option("--module", metavar="NAME", help="Python module to load instead of a library.")
@click.option(
    "--path",
    "paths",
    type=NamedPath(),
    multiple=True,
    metavar="FOLDER",
    help="Directory to import from. Can be repeated.",
)
@click.option(
    "--reader", metavar="torch-X.Y.Z", help="Release to load the extension in; it must have an environment on this machine."
)
@click.option("--name", metavar="NAME", help="Name of the extension in warnings. Default: the name of the file or module.")
@click.option(
    "--backend", metavar="KEY", help="Dispatch key of the extension's own backend. PrivateUse1 is detected automatically."
)
@click.option(
    "--output",
    type=NamedPath(),
    metavar="FILE",
    help="Write the manifest to this file, and print a summary.",
)
@format_option
def record(
    listing: Path | None,
    release: str | None,
    library: Path | None,
    module: str | None,
    paths: tuple[Path, ...],
    reader: str | None,
    name: str | None,
    backend: str | None,
    output: Path | None,
    format_: str,
) -> int:
    """Write the manifest of an extension.

    The operators come from a list, from loading the extension in a release, or from both. With both, the list can also name operators
    that the extension only calls.

    Loading executes the extension's code, without access to the network or to your files, except those in the library's directory
    and in each --path directory. If this machine cannot isolate the code, a warning is printed on standard error, and the code
    runs anyway.

    Exit status: 0 the manifest is written; 2 invalid usage, or an invalid input file; 3 internal error in torch-compat; 4
    the release is not available on this machine.
    """
    from torch_compat.operators.extensions import RecordedReleases, from_dispatcher, from_list, known_release  # noqa: PLC0415 - as late as needed

    recorded = RecordedReleases()
    loads = library is not None or module is not None
    if not loads and listing is None:
        raise UsageError(
            "nothing to record", hint="use --operators FILE --release X.Y.Z, or --library or --module with --reader torch-X.Y.Z"
        )
    if library is not None and module is not None:
        raise UsageError("--library and --module cannot be combined", hint="use only one of them")
    asked = reader if loads else release
    if asked is None or (release is not None and reader is not None):
        if loads:
            raise UsageError(
                "loading an extension requires a release that is built here", hint="use --reader torch-X.Y.Z instead of --release"
            )
        raise UsageError(
            "--operators needs --release X.Y.Z, the release that the list is for", hint="use --release X.Y.Z instead of --reader"
        )
    version = known_release(asked, recorded.known)
    listed = None if listing is None else (_text(listing), str(listing))
    called = name or module or (library.stem if library is not None else listing.stem if listing is not None else "")
    if loads:
        from torch_compat.readers.environments import Environments  # noqa: PLC0415
        from torch_compat.readers.isolation import warn_unless_isolated  # noqa: PLC0415
        from torch_compat.replay.extension import ask_extension  # noqa: PLC0415

        warn_unless_isolated(announce)
        answer = ask_extension(Environments().need(version), library=library, module=module, paths=paths)
        if answer["error"] is not None:
            error = answer["error"]
            raise UsageError(
                f"the extension does not load in torch {answer['torch']}: {error['type']}: {error['message']}",
                where=str(library or module),
                code="does-not-load",
            )
        for dangling in answer["dangling"]:
            say(f"skipped: {dangling} has a kernel, but torch {answer['torch']} has no such operator", err=True)
        manifest = from_dispatcher(answer, version, recorded, extension=called, listed=listed, backend=backend)
    else:
        assert listed is not None  # noqa: S101 - checked above
        manifest = from_list(*listed, version, recorded, extension=called, backend=backend)
    _give(manifest, output, format_)
    return 0


def _give(manifest: ExtensionManifest, output: Path | None, format_: str) -> None:
    text = manifest.text()
    if output is not None:
        write_output(output, text)
    if output is None or format_ == "json":
        say(text, nl=False)
        return
    uses = {use: sum(entry.use == use for entry in manifest.operators) for use in ("registers", "defines", "calls")}
    relied = sum(entry.relies_on_decomposition for entry in manifest.operators)
    say(
        f"{manifest.extension}, built against {manifest.built_against}: "
        + ", ".join(f"{use} {count}" for use, count in uses.items())
        + f"; relies on the decomposition of {relied}"
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        hint = "expected the list of operators that the extension uses, one per line"
        raise UsageError("file not found", where=str(path), hint=hint, code="no-file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot be read: {error}", where=str(path), code="no-file") from error


# ---------------------------------------------------------------------------------------------------------------------- check


@extension.command()
@click.argument("manifest", type=NamedPath())
@click.option("--release", "releases", multiple=True, metavar="X.Y.Z", help="Release to check. Can be repeated.")
@click.option("--all", "every", is_flag=True, help="Check every recorded release.")
@click.option(
    "--verbose", is_flag=True, help="List the operators that are incompatible or could not be checked, with the reasons."
)
@format_option
def check(manifest: Path, releases: tuple[str, ...], every: bool, verbose: bool, format_: str) -> int:
    """Check which releases an extension is compatible with.

    Exit status: 0 the extension is compatible with all of them; 1 it is incompatible with at least one; 2 invalid usage or
    manifest; 3 internal error in torch-compat; 4 the records of a release are not sufficient to decide.
    """
    from torch_compat.cli._format import exit_status  # noqa: PLC0415
    from torch_compat.operators.extensions import RecordedReleases, known_release  # noqa: PLC0415
    from torch_compat.operators.extensions import check as fit  # noqa: PLC0415
    from torch_compat.operators.manifest import read_manifest  # noqa: PLC0415

    if bool(releases) == every:
        raise UsageError("no releases were given", hint="use --release X.Y.Z or --all, not both")
    recorded = RecordedReleases()
    result = read_manifest(manifest)
    asked = recorded.releases if every else dict.fromkeys(known_release(release, recorded.known) for release in releases)
    fits = [fit(result, release, recorded) for release in asked]
    if format_ == "json":
        print_json(
            {
                "manifest": str(manifest),
                "extension": result.extension,
                "built_against": result.built_against,
                "releases": [
                    {
                        "release": item.release,
                        "verdict": item.verdict,
                        "findings": [finding._asdict() for finding in item.findings],
                    }
                    for item in fits
                ],
            }
        )
    else:
        _print_fits(result, fits, verbose=verbose)
    return exit_status(STATUS[item.verdict] for item in fits)


def _print_fits(manifest: ExtensionManifest, fits: Sequence[Fit], *, verbose: bool) -> None:
    say_wrapped(f"{manifest.extension}, built against {manifest.built_against}, {count_of(len(manifest.operators), 'operator')}")
    for fit in fits:
        faults, unknown = fit.of("fault"), fit.of("unknown")
        counted = ", ".join(
            text
            for count, text in ((len(faults), f"{len(faults)} incompatible"), (len(unknown), f"{len(unknown)} unknown"))
            if count
        )
        say_wrapped(f"{fit.release:8} {WORDS[fit.verdict]}" + (f": {counted}" if counted else ""))
        for finding in fit.findings if verbose else ():
            say_wrapped(f"    {finding.verdict}: {finding.operator} ({finding.use}): {finding.reason}")
    if not verbose and any(item.findings for item in fits):
        say_wrapped("use --verbose to list the operators")


# ------------------------------------------------------------------------------------------------------------------- dispatch


@extension.command()
@click.argument("operators", nargs=-1)
@click.option("--release", metavar="X.Y.Z", help="Release to show.")
@click.option(
    "--changes",
    nargs=2,
    metavar="OLD NEW",
    help="Show what changed between two releases, for all operators unless some are named.",
)
@click.option("--breaks", is_flag=True, help="With --changes: only operators that now fail on a backend without its own kernel.")
@format_option
def dispatch(operators: tuple[str, ...], release: str | None, changes: tuple[str, str] | None, breaks: bool, format_: str) -> int:
    """Show whether operators decompose or need a backend kernel.

    Also shows where this information comes from.

    Exit status: 0 success; 2 invalid usage, or an invalid input file; 3 internal error in torch-compat; 4 the dispatch of
    an operator is unknown.
    """
    from torch_compat.operators.extensions import RecordedReleases, known_release  # noqa: PLC0415

    if (release is None) == (changes is None):
        raise UsageError("no release was given", hint="use --release X.Y.Z or --changes OLD NEW, not both")
    if breaks and changes is None:
        raise UsageError("--breaks requires --changes", hint="use --changes OLD NEW")
    recorded = RecordedReleases()
    if changes is not None:
        old, new = (known_release(change, recorded.known) for change in changes)
        for operator in operators:
            _known_somewhere(operator, (old, new), recorded)
        return _print_changes(recorded.dispatches, old, new, operators, breaks, format_)
    if not operators:
        raise NothingSelected("no operator was given", hint="torch-compat extension dispatch aten::linear --release 2.13.0")
    assert release is not None  # noqa: S101 - checked above
    version = known_release(release, recorded.known)
    for operator in operators:
        _known_somewhere(operator, (version,), recorded)
    results = [recorded.dispatches.of(operator, version) for operator in operators]
    if format_ == "json":
        print_json({"release": version, "operators": [_row(entry, recorded.dispatches) for entry in results]})
    else:
        for item in results:
            by = f" [{' and '.join(item.obtained)}]" if item.obtained else ""
            tags = recorded.dispatches.tags(item.operator, version)
            say_wrapped(f"{item.operator}: {item.shown()}{by}" + (f"; tags {', '.join(sorted(tags))}" if tags else ""))
            if item.disagreement is not None:
                say_wrapped(f"    but {item.disagreement}")
    return 4 if any(entry.kind == "unknown" for entry in results) else 0


def _known_somewhere(operator: str, releases: tuple[str, ...], recorded: RecordedReleases) -> None:
    """Refuse an operator that none of these releases has, unless a release with incomplete records may have it."""
    from torch_compat.operators.extensions import known_operator  # noqa: PLC0415

    unheard_of = not any(text.partition("(")[0] == operator for text, _ in recorded.schemas.with_bits(operator))
    if unheard_of or all(recorded.dispatches.of(operator, release).kind == "absent" for release in releases):
        known_operator(operator, releases[-1], recorded)  # raises the error with suggestions


def _row(item: Dispatch, dispatches: Dispatches) -> dict[str, Any]:
    tags = dispatches.tags(item.operator, item.release)
    row: dict[str, Any] = json.loads(json.dumps(item._asdict()))
    del row["release"]
    return {**row, "tags": None if tags is None else sorted(tags)}


def _print_changes(dispatches: Dispatches, old: str, new: str, operators: tuple[str, ...], breaks: bool, format_: str) -> int:
    results = [
        change
        for change in dispatches.changes(old, new)
        if (not operators or change.operator in operators) and (change.breaks or not breaks)
    ]
    why = {release: reason for release in (old, new) if (reason := dispatches.why_unknown(release)) is not None}
    if format_ == "json":
        rows = [
            {
                "operator": change.operator,
                "breaks": change.breaks,
                "old": _row(change.old, dispatches),
                "new": _row(change.new, dispatches),
            }
            for change in results
        ]
        unknown = [{"release": release, "why": reason} for release, reason in why.items()]
        print_json({"old": old, "new": new, "unknown": unknown, "changes": rows})
    else:
        for item in results:
            say_wrapped(f"{'breaks' if item.breaks else 'changed'}  {item.operator}: {item.old.shown()} -> {item.new.shown()}")
        say_wrapped(
            f"{count_of(len(results), 'operator')} changed, {sum(change.breaks for change in results)} of which now fail on a backend without its own kernel"
        )
        for release, reason in why.items():
            say_wrapped(f"the dispatch of some operators in {release} is unknown: {reason}")
    return 4 if why else 0
