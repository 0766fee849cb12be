"""Sessions: `nox` runs lint, types and tests; `nox --list` shows all of them.

Every session runs on the Python that nox runs on and installs the package and its own dependency group, nothing else.
"""

from __future__ import annotations

import subprocess
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
SCOPE = next(
    table["corpus"]
    for table in (tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(ROOT.glob("policies/torch/*.toml")))
    if "corpus" in table
)
WRITERS = [nox.param(version, id=f"torch-{version}") for version in SCOPE["writers"]]
READERS = [nox.param(version, id=f"torch-{version}") for version in SCOPE["readers"]]
OLD_PYTHON = ["fixtures/recipes", "fixtures/probes", "harness/readers/survey.py", "harness/readers/worker.py"]


@nox.session(default=False)
def replay(session: nox.Session) -> None:
    """Judge recorded evidence, with fresh observations of the releases built here. Ends with torch-compat's own exit status."""
    session.install(".")
    command = [str(Path(session.bin, "torch-compat")), "replay", *session.posargs]
    status = subprocess.run(command, check=False).returncode  # session.run would make 1 of every status but 0
    if status:
        raise SystemExit(status)


@nox.session
def lint(session: nox.Session) -> None:
    """Style, format, and the one direction in which imports run."""
    session.install(*group("lint"))
    session.run("ruff", "check", ".")
    session.run("ruff", "check", "--isolated", "--target-version=py37", "--select=E9,F,W", *OLD_PYTHON)
    session.run("ruff", "format", "--check", ".")
    session.run("lint-imports")


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
@nox.parametrize("release", WRITERS)
def produce(session: nox.Session, release: str) -> None:
    """Let a real release run the recipes: new fixtures are added, old ones have to come out as recorded."""
    with_release(session, release)
    session.run("torch-compat", "produce", f"torch-{release}", *session.posargs)


@nox.session(default=False)
@nox.parametrize("release", READERS)
def observe(session: nox.Session, release: str) -> None:
    """Let a real release read the fixtures: every outcome has to be the recorded one."""
    with_release(session, release)
    session.run("torch-compat", "observe", "--reader", f"torch-{release}", *session.posargs)


@nox.session(default=False)
def generate(session: nox.Session) -> None:
    """Rewrite what is generated: policies/policy.schema.json."""
    session.install(".")
    script = (
        "import json, pathlib, sys; from harness.policy import policy_schema; "
        "text = json.dumps(policy_schema(), indent=2, ensure_ascii=False); "
        "pathlib.Path(sys.argv[1]).write_text(text + chr(10), encoding='utf-8')"
    )
    session.run("python", "-c", script, "policies/policy.schema.json")


@nox.session(default=False)
def benchmarks(session: nox.Session) -> None:
    """Ratios of times, with the environments of real releases that are built here; see benchmarks/README.md."""
    session.install(".")
    for script in sorted(ROOT.glob("benchmarks/*.py")):
        session.run("python", str(script))


# Helpers


def group(name: str) -> tuple[str, ...]:
    """The requirements of one dependency group of pyproject.toml."""
    return nox.project.dependency_groups(PYPROJECT, name)


def with_release(session: nox.Session, release: str) -> None:
    """Install the package and build the environment of a release; one that is there stays."""
    session.install(".")
    session.run("torch-compat", "readers", "build", f"torch-{release}")


def check_names(session: nox.Session, names: list[str]) -> None:
    """Fail unless a wheel holds all that the package needs at run time, and nothing of the repository beside it."""
    here = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("harness/**/*") if path.suffix in {".py", ".json"}}
    here |= {f"harness/_packaged/{path.relative_to(ROOT).as_posix()}" for path in ROOT.glob("policies/**/*.toml")}
    wrong = sorted(here - set(names)) + sorted({name for name in names if not name.startswith(("harness/", "torch_compat-"))})
    if wrong:
        session.error(f"lacks, or should not hold: {', '.join(wrong)}")
