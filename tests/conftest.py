"""What all tests share: tests that need a real release of torch, and skips that say why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.readers.environments import Environments

if TYPE_CHECKING:
    from collections.abc import Generator

UNSAID = ("", "unconditional skip", "Skipped")


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
