"""The repository's own evidence, read once per process and judged once per run of the tests: it is large."""

from __future__ import annotations

import contextlib
import io
import pickle
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.small_tree import once
from torch_compat.cli.judge import print_formatted
from torch_compat.corpus.corpus import Corpus, load_corpus
from torch_compat.judging.gathering import gather
from torch_compat.judging.judge import Report, judge
from torch_compat.workspace import Root

if TYPE_CHECKING:
    from collections.abc import Callable

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def corpus() -> Corpus:
    """The corpus of the repository, every byte of it verified."""
    return load_corpus(REPOSITORY / "fixtures")


@pytest.fixture(scope="session")
def judged(shared: Path) -> Report:
    """The report of the repository's recorded observations."""

    def make(path: Path) -> None:
        place = Root(REPOSITORY)
        path.write_bytes(pickle.dumps(judge(gather(place, place.policy(), as_of=None))))

    report = pickle.loads(once(shared, "judged", make).read_bytes())
    assert isinstance(report, Report)
    return report


@pytest.fixture(scope="session")
def printed(judged: Report) -> Callable[[str], str]:
    """What ``torch-compat judge`` prints of it in a format."""

    def form(name: str) -> str:
        stdout = io.StringIO()
        with contextlib.redirect_stdout(stdout):
            print_formatted(judged, name)
        return stdout.getvalue()

    return form
