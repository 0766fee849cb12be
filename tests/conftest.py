"""Shared by all tests: evidence to work on, tests that need a real release of torch, samples of long tests, and skips with reasons.

tests/repository/test_skips.py runs this file without a package ``tests``, so nothing from it is imported above.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from torch_compat.corpus.corpus import load_corpus
from torch_compat.readers.environments import Environments
from torch_compat.readers.isolation import isolation, trust_everything
from torch_compat.readers.torch_release import TorchRelease

if TYPE_CHECKING:
    from collections.abc import Generator

    from tests.miniatures.tree import Tree
    from torch_compat.corpus.corpus import Corpus

REPOSITORY = Path(__file__).parents[1]

os.environ["TORCH_COMPAT_VERIFY_OFFSETS"] = "1"  # calculated offsets against local headers, of every archive that is opened

settings.register_profile("repository", deadline=None)  # how long a machine takes is no property of what is tested
settings.load_profile("repository")

UNSAID = ("", "unconditional skip", "Skipped")


def pytest_configure() -> None:
    """Let tests be interrupted where the process that started us ignores SIGINT, as nohup and many CI runners do."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require-torch",
        action="append",
        default=[],
        metavar="X.Y.Z",
        help="fail where a test needs this release of torch and it is not built here, instead of skipping it",
    )
    parser.addoption(
        "--every-case", action="store_true", help="run every case of the tests that are marked `sampled`, not a sample"
    )
    parser.addoption(
        "--sample", metavar="SEED", help="the seed of the sample; by default the commit, so that each commit runs other cases"
    )


def pytest_report_header(config: pytest.Config) -> list[str]:
    """State the seed of the sample, so that a failure can be repeated."""
    if config.getoption("every_case"):
        return []
    return [
        f"sampled tests: cases selected by --sample {_seed(config)} are run; the others are deselected (--every-case runs all)"
    ]


def _seed(config: pytest.Config) -> str:
    given: str | None = config.getoption("sample")
    if given is None:
        commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=REPOSITORY, capture_output=True, text=True, check=False)
        given = commit.stdout.strip()[:8] or "none"  # an unpacked source distribution has no commit
    return given


def _sample(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the cases of sampled tests that the seed does not select, unless cases were asked for by name."""
    if config.getoption("every_case") or config.option.keyword or any("::" in argument for argument in config.args):
        return
    groups: dict[tuple[str, int], tuple[int, list[pytest.Item]]] = {}
    for item in items:
        marker = item.get_closest_marker("sampled")
        if marker is not None and isinstance(item, pytest.Function):
            part = item.callspec.params[marker.kwargs["each"]] if "each" in marker.kwargs else None
            groups.setdefault((item.nodeid.partition("[")[0], id(part)), (marker.args[0], []))[1].append(item)
    seed = _seed(config)
    omitted: set[pytest.Item] = set()
    for one_in, cases in groups.values():
        omitted |= {*cases} - {*Random(f"{seed} {cases[0].nodeid}").sample(cases, -(-len(cases) // one_in))}
    if omitted:
        config.hook.pytest_deselected(items=[item for item in items if item in omitted])
        items[:] = [item for item in items if item not in omitted]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep a sample of long tests, and skip tests that need releases that are not built here."""
    _sample(config, items)
    environments = Environments()
    for item in items:
        for marker in item.iter_markers("real_torch"):
            if not marker.args:
                raise pytest.UsageError(f"{item.nodeid}: real_torch names no release")
            missing = [release for release in marker.args if environments.get(release) is None]
            optional = set(missing).isdisjoint(config.getoption("--require-torch"))
            if missing and optional:
                names = " ".join(f"torch-{release}" for release in missing)
                item.add_marker(pytest.mark.skip(reason=f"not built here: {names} (torch-compat readers build {names})"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A skip without a reason is a failure: nobody could tell what was not checked."""
    report = yield
    if report.skipped and isinstance(report.longrepr, tuple) and report.longrepr[2].removeprefix("Skipped: ") in UNSAID:
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid} was skipped and does not say why"
    return report


# -------------------------------------------------------------------------------------------------------- evidence to use


@pytest.fixture(autouse=True)
def _archives_of_tests_run_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where this machine cannot isolate a release, the archives that tests make themselves are trusted."""
    if not isolation().whole:
        assert TorchRelease.__init__.__kwdefaults__ is not None
        monkeypatch.setitem(TorchRelease.__init__.__kwdefaults__, "trust", trust_everything)


@pytest.fixture(autouse=True)
def _limits_of_the_process_are_kept() -> Generator[None]:
    """A limit that a test sets on its own process would make a later test fail, whichever comes next."""
    before = limits()
    yield
    assert limits() == before, "the test has changed the limits of its process: set them in a process of its own"


def limits() -> dict[str, tuple[int, int]]:
    """The limits of this process by name: soft and hard."""
    return {name: resource.getrlimit(getattr(resource, name)) for name in dir(resource) if name.startswith("RLIMIT_")}


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes of one run of the tests share."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def small_tree(shared: Path) -> Path:
    """A small part of the repository's evidence (see tests/small_tree.py), in which nothing is red. Not to be changed."""
    from tests.small_tree import make_small_tree, once  # noqa: PLC0415

    return once(shared, "small-tree", lambda path: make_small_tree(REPOSITORY, path))


@pytest.fixture(scope="session")
def small_corpus(small_tree: Path) -> Corpus:
    """The corpus of the small tree."""
    return load_corpus(small_tree / "fixtures")


@pytest.fixture(scope="session")
def pristine_tree(shared: Path) -> Tree:
    """A recorded tree of miniature releases. Not to be changed."""
    from tests.miniatures.tree import Tree, recorded_tree  # noqa: PLC0415
    from tests.small_tree import once  # noqa: PLC0415

    folder = once(shared, "miniature-tree", recorded_tree)
    return Tree(folder / "root", folder / "cache")


@pytest.fixture
def tree(pristine_tree: Tree, tmp_path: Path) -> Tree:
    """A tree of miniature releases in which every promise holds; the test's own."""
    for folder in (pristine_tree.root, pristine_tree.cache):
        shutil.copytree(folder, tmp_path / folder.name)
    return type(pristine_tree)(tmp_path / "root", tmp_path / "cache")
