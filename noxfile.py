"""Sessions: `nox` runs lint, types and tests; `nox --list` shows all of them.

Every session runs on the Python that nox runs on and installs the package and its own dependency group, nothing else.
"""

from __future__ import annotations

import datetime as dt
import json
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"  # uv where it is installed, nothing but nox's own dependency elsewhere
nox.options.error_on_external_run = True
nox.options.error_on_missing_interpreters = True

ROOT = Path(__file__).parent
PYPROJECT = nox.project.load_toml("pyproject.toml")


def corpus_scope() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Writers and readers, by the code that the policy resolves them with; it runs without the package being installed."""
    tables = [tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(ROOT.glob("policies/torch/*.toml"))]
    (corpus,) = [table["policy"] for table in tables if "policy" in table]
    releases = [
        release for table in tables for release in table.get("release", ()) if "source" not in release
    ]  # a planned one is none yet
    sys.path.insert(0, str(ROOT / "harness"))
    try:
        from torch_compat.releases import scope  # noqa: PLC0415 - found only now
    finally:
        del sys.path[0]
    return scope.corpus_scope(corpus, releases)


WRITERS, READERS = corpus_scope()
UNAVAILABLE = 4  # torch-compat's exit status where a release is not built
OLD_PYTHON = [
    "fixtures/awaiting", "fixtures/deprecations", "fixtures/recipes", "fixtures/probes", "fixtures/programs", "harness/torch_compat/inside",
    "tools/draws/write.py", "tools/kinds/call.py",
    *sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("tests/extension/example_*/*.py")),
    *sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("tests/runtime/torch_*.py")),
    *sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("tools/differential/torch_*.py")),
]  # fmt: skip


@nox.session(default=False)
def replay(session: nox.Session) -> None:
    """Judge recorded observations and new ones from the releases built here. Returns the exit status of torch-compat."""
    session.install(".")
    end(status(session, "replay", *session.posargs))


@nox.session(default=False)
def nightly(session: nox.Session) -> None:
    """Look for new releases, judge the recorded observations, then make new observations and judge again, as of today.

    Fails if the package index has a release that the calendar lacks, if fixtures or observations of a release in the calendar are
    missing, or if no release is built here to observe; prints the sessions to run. New observations do not replace missing recorded ones.
    """
    session.install(".")
    as_of = ["--as-of", dt.datetime.now(dt.UTC).date().isoformat()]
    offered = status(session, "readers", "available")
    recorded, report = output(session, "judge", *as_of, "--format", "json")
    replayed = status(session, "replay", "--require", "any", *as_of, *session.posargs)
    for line in not_run(report):
        session.log(f"has not run, or is incomplete: {line}")
    ends = (offered, recorded, replayed)
    session.log("exit status: %d for readers available, %d for the recorded observations, %d for the replay", *ends)
    own = (3, 2, 1, 4, 0)  # torch-compat's own, the severest first; any other, as of one that was killed, is a fault
    end(own[0] if set(ends).difference(own) else next(one for one in own if one in ends))


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, format, the direction of imports, shell scripts and the workflow."""
    session.install(*group("lint"))
    session.run("ruff", "check", ".")
    # TorchScript finds the types that its "# type:" comments name among a recipe's imports, and recipes are frozen
    named = "--per-file-ignores=fixtures/recipes/*.py:F401,fixtures/awaiting/*.py:F401,fixtures/programs/*/*/*.py:F401"
    path = "fixtures/programs/third/adversarial/escaped_texts.py"  # its formats have too few and too many values, on purpose
    named += f",{path}:F523,{path}:F524"
    # TorchScript knows the name Tensor without an import, and Python does not evaluate the annotations of local variables
    named += ",fixtures/programs/sixth/ordinary/additive_attention_decoder.py:F821"
    session.run("ruff", "check", "--isolated", "--target-version=py37", "--select=E9,F,W", named, *OLD_PYTHON)
    session.run("ruff", "format", "--check", ".")
    session.run("lint-imports", env={"PYTHONPATH": "harness"})
    session.run("python", "tools/house.py", "--check")
    session.run("shellcheck", ".ci/run", "docs/nightly/nightly.sh")
    session.run("check-jsonschema", "--builtin-schema", "vendor.github-workflows", "docs/nightly/workflow.yml")


@nox.session
def types(session: nox.Session) -> None:
    """Check all types with mypy in strict mode."""
    session.install(".", *group("types"))
    session.run("mypy", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests against the installed package."""
    session.install(".", *group("test"))
    session.run("pytest", *(session.posargs or ["--numprocesses=2"]))


@nox.session(default=False)
def slow(session: nox.Session) -> None:
    """Run the tests that `nox -s tests` does not: slow tests, which repeat what a faster test shows, and every case of sampled tests."""
    session.install(".", *group("test"))
    session.run("pytest", "-m", "slow or sampled", "--every-case", "--numprocesses=2", *session.posargs)


@nox.session(default=False)
def build(session: nox.Session) -> None:
    """Build the sdist and the wheel, and check that the wheel works in an empty directory."""
    session.install(*group("build"))
    dist = Path(session.create_tmp())
    for old in dist.glob("torch_compat-*"):
        old.unlink()
    session.run("python", "-m", "build", f"--outdir={dist}", ".")
    (wheel,) = dist.glob("*.whl")
    check_names(session, zipfile.ZipFile(wheel).namelist())
    with tempfile.TemporaryDirectory() as place:
        python, command = f"{place}/venv/bin/python", f"{place}/venv/bin/torch-compat"
        session.run("python", "-m", "venv", f"{place}/venv")
        session.run(python, "-m", "pip", "install", "--quiet", str(wheel), external=True)
        empty = Path(place, "empty")
        empty.mkdir()
        with session.chdir(empty):  # outside any tree, so that only the wheel can answer
            session.run(command, "--version", external=True)
            session.run(command, "--help", external=True)
            session.run(command, "readers", "list", external=True)
            session.run(command, "judge", external=True, success_codes=[4])  # nothing to judge is never a pass
            session.run(command, "deprecations", external=True, success_codes=[4])  # what releases did is not packaged


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """Build the documentation site into build/site; a warning is an error. The pages load nothing from other hosts."""
    session.install(".", *group("docs"))
    session.run("python", "tools/documentation.py", "stage", "build/docs")
    session.run("mkdocs", "build", "--strict", "--config-file", "build/docs/mkdocs.yml", env={"NO_MKDOCS_2_WARNING": "1"})
    session.run("python", "tools/documentation.py", "check", "build/site")


@nox.session(default=False)
def release(session: nox.Session) -> None:
    """Check that a version can be released, and build and check sdist and wheel in dist/: `-- 0.2.0`; with `--tag`, tag it.

    `-- 0.2.0 --changelog` only moves the fragments in changes/ to a section of CHANGELOG.md. Do this before, and commit the result.
    """
    versions = [argument for argument in session.posargs if argument not in {"--tag", "--changelog"}]
    if len(versions) != 1:
        session.error("expected one version: nox -s release -- VERSION [--changelog] [--tag]")
    session.install(*group("release"))
    if "--changelog" in session.posargs:
        session.run("towncrier", "build", "--yes", "--version", *versions)
        return
    session.run("python", "tools/release.py", "check", *versions)
    with tempfile.TemporaryDirectory() as place:  # so that only these two files are checked
        session.run("python", "-m", "build", f"--outdir={place}", ".")
        built = sorted(Path(place).iterdir())
        session.run("twine", "check", "--strict", *map(str, built))
        dist = ROOT / "dist"
        dist.mkdir(exist_ok=True)
        for file in built:
            shutil.copy(file, dist)
            session.log(f"built dist/{file.name}")
    if "--tag" in session.posargs:
        session.run("python", "tools/release.py", "tag", *versions)


@nox.session(default=False)
@nox.parametrize("release", [nox.param(version, id=f"torch-{version}") for version in WRITERS])
def produce(session: nox.Session, release: str) -> None:
    """Run the recipes with a real release: add new fixtures, and check that existing ones are reproduced as recorded."""
    with_release(session, release)
    session.run("torch-compat", "produce", f"torch-{release}", *session.posargs)


@nox.session(default=False)
@nox.parametrize("release", [nox.param(version, id=f"torch-{version}") for version in READERS])
def observe(session: nox.Session, release: str) -> None:
    """Load the fixtures with a real release, and check that every outcome is as recorded.

    With --record alone, the other releases then load the fixtures of this release where this is not recorded yet, because a new
    release adds a row and a column to the matrix. Missing environments are built for this.
    """
    with_release(session, release)
    session.run("torch-compat", "observe", "--reader", f"torch-{release}", *session.posargs)
    if session.posargs != ["--record"]:
        return
    for other in (reader for reader in READERS if reader != release):
        observe_missing = ["observe", "--reader", f"torch-{other}", "--missing", "--record"]
        ended = status(session, *observe_missing)
        if ended == UNAVAILABLE:
            session.run("torch-compat", "readers", "build", f"torch-{other}")
            ended = status(session, *observe_missing)
        end(ended)


@nox.session(default=False)
def generate(session: nox.Session) -> None:
    """Regenerate the policy schema, weights_only.toml, locks, findings.md, release reports and parts of README.md; takes 1 to 3 minutes.

    In counts.lock, behaviors are not updated (use `nox -s predictions -- --write`). In waivers.lock, only entries that continue are
    updated; new differences are accepted only by `torch-compat accept --write`.
    """
    session.install(".")
    session.run("python", "tools/generate.py")


@nox.session(default=False)
def faults(session: nox.Session) -> None:
    """Damage archives of the corpus (100,000 times by default), open them in every way, and check the results.

    `-- --count 1000 --seed 2`. In about half of the cases, all checksums are corrected after the damage. `-- --bombs` opens small files
    that try to use hours or gigabytes instead.
    """
    session.install(".", *group("test"))
    session.run("python", "-m", "tools.faults", *session.posargs)


@nox.session(default=False)
def fence(session: nox.Session) -> None:
    """Run generated hostile programs (10,000 by default), and fail if one escapes: `-- --count 1000 --seed 2`."""
    session.install(".", *group("test"))
    session.run("python", "-m", "tools.fence", *session.posargs)


@nox.session(default=False)
def interrupted(session: nox.Session) -> None:
    """Kill every command that writes at each of its file operations and at 100 moments, and run 50 pairs at once: `-- --seed 2 produce`."""
    session.install(".", *group("test"))
    session.run("python", "-m", "tests.interrupted", *session.posargs)


@nox.session(default=False)
def fuzz(session: nox.Session) -> None:
    """Fuzz inspect, load_state, and load with calls, with guard pages around every array; fail on any forbidden behavior.

    `-- --minutes 60`, `--seed 7`, `--target inspect|state|call|exported`, `--count 1000`. Each run is appended to tools/fuzz/record.jsonl.
    """
    session.install(".", *group("test"), *group("fuzz"))
    session.run("python", "-m", "tools.fuzz", *session.posargs)


@nox.session(default=False)
def planted(session: nox.Session) -> None:
    """Plant other outcomes in waived cells (10,000 by default), and fail if one is not detected: `-- --count 1000 --seed 2`."""
    session.install(".", *group("test"))
    session.run("python", "-m", "tests.planted", *session.posargs)


@nox.session(default=False)
def browser(session: nox.Session) -> None:
    """Open the HTML page in headless Chromium: console, keyboard, axe-core, phone, dark, print; `-- --large` with 60 releases.

    Needs Chromium (Debian: chromium); without it it ends with exit status 4, which is no pass. Prints how long clicks take.
    Pictures are in build/browser.
    """
    session.install(".", *group("test"), *group("browser"))
    session.run("python", "-m", "tests.browser", *session.posargs)


@nox.session(default=False)
def predictions(session: nox.Session) -> None:
    """Compare the reference reader, at the horizon of each release, with the records of that release: `-- --reader 1.5.1`.

    Without --reader, the counts are also compared with reports/predictions.md and with the behaviors in
    policies/torch/counts.lock; `-- --write` writes both. Takes ten minutes of processor time. `-- --sample 100 --seed TEXT` runs less
    than a third of the cells, which must include every cause that the policy names; `.ci/run` uses this.
    """
    session.install(".", *group("test"))
    session.run("python", "-m", "tools.predictions", *session.posargs)


@nox.session(default=False)
def backtest(session: nox.Session) -> None:
    """Compare reports/backtest.md and its labels with what `candidate` would have said of each release the day before.

    Needs no torch, and takes two to three minutes of processor time. `-- --write` writes the documents. Exit status 4: nobody has labelled the
    facts of reports/backtest/drawn.md.
    """
    session.install(".")
    session.run("python", "tools/backtest.py", *(session.posargs or ["--check"]))


@nox.session(default=False)
def altered(session: nox.Session) -> None:
    """Make builds from release 2.13.0, altered or not, and check the report of `candidate` on each: `-- --release 2.15.0 -- --seed 1`.

    `-- --kind python` makes one kind only. Arguments after a second `--` are passed to `candidate`; without any, only a few recipes are read.
    """
    with_release(session, altered_release(session.posargs))
    session.run("python", "tools/altered.py", "check", *session.posargs)


@nox.session(default=False)
def schemas(session: nox.Session) -> None:
    """Compare schema parsing and compatibility checks with torch 2.13.0, on 100,000 generated pairs by default: `-- --pairs 1000`."""
    with_release(session, "2.13.0")
    session.install(*group("test"))
    session.run("python", "-m", "tools.schemas", *session.posargs)


@nox.session(default=False)
def differential(session: nox.Session) -> None:
    """Compare the reference reader with torch 2.13.0: 200 calls of each overload and 20 times as many programs by default: `-- 20`."""
    with_release(session, "2.13.0")
    session.install(*group("test"))
    count = int(session.posargs[0]) if session.posargs else 200
    session.run("python", "-m", "tools.differential", "programs", "--count", str(20 * count))
    session.run("python", "-m", "tools.differential", "calls", "--count", str(count))


@nox.session(default=False)
def draws(session: nox.Session) -> None:
    """Generate states and programs from a seed, and compare the answers of `inspect` with 14 real releases: `-- --seed NAME`."""
    session.install(".")
    for release in (
        "1.2.0",
        "1.4.0",
        "1.5.1",
        "1.6.0",
        "1.8.1",
        "1.9.1",
        "1.11.0",
        "1.13.1",
        "2.0.1",
        "2.5.1",
        "2.6.0",
        "2.10.0",
        "2.13.0",
        "2.15.0",
    ):
        session.run("torch-compat", "readers", "build", f"torch-{release}")
    session.run("python", "-m", "tools.draws", *session.posargs)


@nox.session(default=False)
def exported(session: nox.Session) -> None:
    """Draw 300 programs for torch.export, let 2.6.0, 2.9.1 and 2.15.0 export and call them, and compare the reference reader: `-- --seed 24`."""
    session.install(".")
    releases = ("2.6.0", "2.9.1", "2.15.0")
    for release in releases:
        session.run("torch-compat", "readers", "build", f"torch-{release}")
    with tempfile.TemporaryDirectory() as place:
        session.run("python", "tools/exported_draw.py", f"{place}/drawn", *session.posargs)
        writers = [argument for release in releases for argument in ("--writer", release)]
        session.run("python", "tools/exported.py", f"{place}/written", "--programs", f"{place}/drawn", *writers)


@nox.session(default=False)
def kinds(session: nox.Session) -> None:
    """Write checkpoints with real libraries in four releases, and load each by the calls that `inspect` names: `-- --into FOLDER`."""
    session.install(".", "uv")
    build_asked(session, "tools.kinds")
    session.run("python", "-m", "tools.kinds", *session.posargs)


@nox.session(default=False)
def benchmarks(session: nox.Session) -> None:
    """Run the benchmarks, with the environments of real releases that are built here; see benchmarks/README.md."""
    session.install(".")
    for script in sorted(ROOT.glob("benchmarks/*.py")):
        session.run("python", str(script))


# Helpers


def status(session: nox.Session, *arguments: str) -> int:
    """The exit status of a torch-compat command; session.run would make 1 of every status but 0."""
    return subprocess.run([str(Path(session.bin, "torch-compat")), *arguments], check=False).returncode


def output(session: nox.Session, *arguments: str) -> tuple[int, str]:
    """The exit status of a torch-compat command, and what it printed."""
    command = [str(Path(session.bin, "torch-compat")), *arguments]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True, encoding="utf-8")
    return done.returncode, done.stdout


def not_run(report: str) -> list[str]:
    """The sessions that a report in JSON asks for; none where there is no report, which its exit status tells."""
    if not report:
        return []
    document = json.loads(report)
    said = [finding["cause"] for finding in document["findings"] if finding["verdict"] == "fail"]
    said += [row["reason"] for row in document["not_checked"]]
    named = dict.fromkeys(found for text in said for found in re.findall(r'nox -s "[^"]+"(?: -- --record)?', text))
    return sorted(named, key=lambda line: ("observe" in line, [int(part) for part in re.findall(r"\d+", line)]))


def end(ended: int) -> None:
    """End the session, and nox, with an exit status."""
    if ended:
        raise SystemExit(ended)


def build_asked(session: nox.Session, module: str) -> None:
    """Build the environments of the releases that a program says it asks."""
    asked = session.run("python", "-m", module, "--releases", silent=True)
    for release in str(asked).split():
        session.run("torch-compat", "readers", "build", f"torch-{release}")


def altered_release(arguments: list[str]) -> str:
    """The release that `tools/altered.py` is told to alter."""
    return arguments[arguments.index("--release") + 1] if "--release" in arguments[:-1] else "2.13.0"


def group(name: str) -> tuple[str, ...]:
    """The requirements of one dependency group of pyproject.toml."""
    return nox.project.dependency_groups(PYPROJECT, name)


def with_release(session: nox.Session, release: str) -> None:
    """Install the package and build the environment for a release; one that is there stays."""
    session.install(".")
    session.run("torch-compat", "readers", "build", f"torch-{release}")


def check_names(session: nox.Session, names: list[str]) -> None:
    """Fail unless a wheel holds all that the package needs at run time, and nothing of the repository beside it."""
    source = ROOT / "harness"
    here = {
        path.relative_to(source).as_posix()
        for path in source.glob("torch_compat/**/*")
        if path.suffix in {".py", ".json", ".typed"}
    }
    policies = [*ROOT.glob("policies/**/*.toml"), *ROOT.glob("policies/**/*.lock")]
    here |= {f"torch_compat/_packaged/{path.relative_to(ROOT).as_posix()}" for path in policies}
    wrong = sorted(here - set(names)) + sorted(
        {name for name in names if not name.startswith(("torch_compat/", "torch_compat-"))}
    )
    if wrong:
        session.error(f"missing from the wheel, or not allowed in it: {', '.join(wrong)}")
