"""Sessions: `nox` runs lint, types and tests; `nox --list` shows all of them.

Every session runs on the Python that nox runs on and installs the package and its own dependency group, nothing else.
"""

from __future__ import annotations

import datetime as dt
import json
import re
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
    (corpus,) = [table["corpus"] for table in tables if "corpus" in table]
    releases = [release for table in tables for release in table.get("release", ())]
    sys.path.insert(0, str(ROOT / "harness"))
    try:
        from torch_compat.releases import scope  # noqa: PLC0415 - found only now
    finally:
        del sys.path[0]
    return scope.corpus_scope(corpus, releases)


WRITERS, READERS = corpus_scope()
UNAVAILABLE = 4  # torch-compat's exit status where a release is not built
OLD_PYTHON = [
    "fixtures/awaiting", "fixtures/deprecations", "fixtures/recipes", "fixtures/probes", "fixtures/programs", "harness/torch_compat/readers/survey.py", "harness/torch_compat/readers/worker.py",
    "harness/torch_compat/readers/extension.py",
    *sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("tests/extension/example_*/*.py")),
    *sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("tests/runtime/torch_*.py")),
]  # fmt: skip


@nox.session(default=False)
def replay(session: nox.Session) -> None:
    """Judge recorded evidence, with fresh observations of the releases built here. Ends with torch-compat's own exit status."""
    session.install(".")
    end(status(session, "replay", *session.posargs))


@nox.session(default=False)
def nightly(session: nox.Session) -> None:
    """Ask the index for new releases, judge what is recorded, then observe afresh and judge, as of today.

    Fails while a release that the index offers is not in the calendar, and while one of the calendar was not produced with or
    not observed with; the sessions to run are named. What is observed afresh here does not stand in for a record.
    """
    session.install(".")
    as_of = ["--as-of", dt.datetime.now(dt.UTC).date().isoformat()]
    offered = status(session, "readers", "available")
    recorded, report = output(session, "judge", *as_of, "--format", "json")
    replayed = status(session, "replay", *as_of, *session.posargs)
    for line in not_run(report):
        session.log(f"has not run, or not on all there is: {line}")
    ends = (offered, recorded, replayed)
    session.log("exit status %d of readers available, %d of what is recorded, %d of the replay", *ends)
    own = (3, 2, 1, 4, 0)  # torch-compat's own, the severest first; any other, as of one that was killed, is a fault
    end(own[0] if set(ends).difference(own) else next(one for one in own if one in ends))


@nox.session
def lint(session: nox.Session) -> None:
    """Style, format, and the one direction in which imports run."""
    session.install(*group("lint"))
    session.run("ruff", "check", ".")
    # TorchScript finds the types that its "# type:" comments name among a recipe's imports, and recipes are frozen
    named = "--per-file-ignores=fixtures/recipes/*.py:F401,fixtures/awaiting/*.py:F401,fixtures/programs/*/*/*.py:F401"
    session.run("ruff", "check", "--isolated", "--target-version=py37", "--select=E9,F,W", named, *OLD_PYTHON)
    session.run("ruff", "format", "--check", ".")
    session.run("lint-imports", env={"PYTHONPATH": "harness"})
    session.run("python", "tools/house.py", "--check")


@nox.session
def types(session: nox.Session) -> None:
    """Types of everything, strictly."""
    session.install(".", *group("types"))
    session.run("mypy", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """The tests, against the package as it is installed."""
    session.install(".", *group("test"))
    session.run("pytest", *(session.posargs or ["--numprocesses=2"]))


@nox.session(default=False)
def slow(session: nox.Session) -> None:
    """The tests that `nox -s tests` leaves out: each takes half a minute or more, and repeats what a faster case shows."""
    session.install(".", *group("test"))
    session.run("pytest", "-m", "slow", *session.posargs)


@nox.session(default=False)
def build(session: nox.Session) -> None:
    """The sdist and the wheel; and the wheel works where nothing else is."""
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


@nox.session(default=False)
@nox.parametrize("release", [nox.param(version, id=f"torch-{version}") for version in WRITERS])
def produce(session: nox.Session, release: str) -> None:
    """Let a real release run the recipes: new fixtures are added, old ones have to come out as recorded."""
    with_release(session, release)
    session.run("torch-compat", "produce", f"torch-{release}", *session.posargs)


@nox.session(default=False)
@nox.parametrize("release", [nox.param(version, id=f"torch-{version}") for version in READERS])
def observe(session: nox.Session, release: str) -> None:
    """Let a real release read the fixtures: every outcome has to be the recorded one.

    With --record alone, the other readers then read what this release wrote, wherever that is not recorded: a new release is
    a row and a column of the matrix. Their environments are built only for that.
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
    """Rewrite what is generated and takes seconds: the schema of policies, weights_only.toml, locks, findings.md, blocks of README.md.

    Of counts.lock what judging alone counts; `nox -s predictions -- --write` counts quirks and slips. Of waivers.lock what continues; only
    `torch-compat accept --write` takes another difference.
    """
    session.install(".")
    session.run("python", "tools/generate.py")


@nox.session(default=False)
def faults(session: nox.Session) -> None:
    """Damage archives of the corpus, 100,000 times unless told, open them in every way, and look what comes of it.

    `-- --count 1000 --seed 2`. About half of the faults have all checksums made right again. `-- --bombs` opens small files that
    ask for hours or gigabytes instead.
    """
    session.install(".", *group("test"))
    session.run("python", "-m", "tests.faults", *session.posargs)


@nox.session(default=False)
def fence(session: nox.Session) -> None:
    """Run generated hostile programs, 10,000 unless told, and fail if one gets outside: `-- --count 1000 --seed 2`."""
    session.install(".", *group("test"))
    session.run("python", "-m", "tests.fence", *session.posargs)


@nox.session(default=False)
def planted(session: nox.Session) -> None:
    """Plant other outcomes in cells that waivers cover, 10,000 unless told, and fail if one is not noticed: `-- --count 1000 --seed 2`."""
    session.install(".", *group("test"))
    session.run("python", "-m", "tests.planted", *session.posargs)


@nox.session(default=False)
def predictions(session: nox.Session) -> None:
    """The reference reader at the horizon of each release against what that release did: `-- --reader 1.5.1`.

    Of all readers, compares what is counted with reports/predictions.md and the quirks and slips of policies/torch/counts.lock:
    `-- --write` writes both. Takes ten minutes of processor time. `-- --sample 100 --seed TEXT` executes less than a third, in which
    every cause that the policy names has to be met; `.ci/run` does that.
    """
    session.install(".", *group("test"))
    session.run("python", "-m", "tests.predictions", *session.posargs)


@nox.session(default=False)
def schemas(session: nox.Session) -> None:
    """Our reading and judging of schemas against torch 2.13.0's own, 100,000 generated pairs unless told: `-- --pairs 1000`."""
    with_release(session, "2.13.0")
    session.install(*group("test"))
    session.run("python", "-m", "tests.operators", *session.posargs)


@nox.session(default=False)
def differential(session: nox.Session) -> None:
    """The reference reader against torch 2.13.0: calls of every overload, 200 of each unless told, and 20 programs for each: `-- 20`."""
    with_release(session, "2.13.0")
    session.install(*group("test"))
    count = int(session.posargs[0]) if session.posargs else 200
    session.run("python", "-m", "tests.runtime", "programs", "--count", str(20 * count))
    session.run("python", "-m", "tests.runtime", "calls", "--count", str(count))


@nox.session(default=False)
def benchmarks(session: nox.Session) -> None:
    """Ratios of times, with the environments of real releases that are built here; see benchmarks/README.md."""
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


def group(name: str) -> tuple[str, ...]:
    """The requirements of one dependency group of pyproject.toml."""
    return nox.project.dependency_groups(PYPROJECT, name)


def with_release(session: nox.Session, release: str) -> None:
    """Install the package and build the environment of a release; one that is there stays."""
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
        session.error(f"lacks, or should not hold: {', '.join(wrong)}")
