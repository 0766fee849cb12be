"""Shared by all tests: evidence to work on, tests that need a real release of torch, and skips with reasons.

tests/repository/test_skips.py runs this file without a package ``tests``, so nothing from it is imported above.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
from pathlib import Path
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


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what needs releases that are not built here."""
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
