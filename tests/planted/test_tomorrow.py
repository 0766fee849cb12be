"""The day after: an additional release needs no edit if it behaves like the newest one; otherwise the differences are reported exactly."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.planted.tomorrow import SURVEY_RULES, tomorrow, without_walks
from torch_compat.judging.gathering import gather, uncollected
from torch_compat.judging.judge import judge
from torch_compat.judging.judgement import Verdict
from torch_compat.releases.sets import ReleaseSet
from torch_compat.workspace import find_root

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch_compat.corpus.manifest import Fixture
    from torch_compat.corpus.observations import Observation
    from torch_compat.judging.evidence import Evidence
    from torch_compat.judging.judge import Report
    from torch_compat.policy import Waiver

REPOSITORY = Path(__file__).resolve().parents[2]
NEXT = "2.16.0"
RECIPE = "save_one_storage_many_dtypes"
"""Differs in 2.14.1, and no longer in 2.15.0."""


@pytest.fixture(scope="module")
def evidence() -> Evidence:
    """The repository's own."""
    place = find_root(REPOSITORY)
    with uncollected():
        return gather(place, place.policy(), as_of=None)


@pytest.fixture(scope="module")
def today(evidence: Evidence) -> Report:
    return judge(without_walks(evidence))


def failing(report: Report) -> dict[str, int]:
    return {finding.id: finding.count for finding in report.findings if finding.verdict is Verdict.FAIL}


@pytest.mark.parametrize(
    ("writes", "recorded"), [(False, False), (False, True), (True, True)], ids=["just read", "read", "wrote and read"]
)
def test_a_release_that_behaves_as_the_newest_one_breaks_nothing(
    evidence: Evidence, today: Report, *, writes: bool, recorded: bool
) -> None:
    report = judge(tomorrow(evidence, NEXT, writes=writes, recorded=recorded))
    assert (report.exit_status, failing(report), report.not_checked) == (0, {}, ())
    assert report.counts[Verdict.CONTINUES] > 0
    waived = sum(
        finding.count for finding in today.findings if finding.verdict is Verdict.WAIVED and finding.rule not in SURVEY_RULES
    )
    assert report.counts[Verdict.WAIVED] == waived
    assert {finding.waiver for finding in report.findings if finding.verdict is Verdict.CONTINUES} <= {
        finding.waiver for finding in today.findings if finding.verdict is Verdict.WAIVED
    }


def test_a_release_that_differs_in_three_things_is_told_in_three_findings(evidence: Evidence) -> None:
    """It computes something else, refuses something, and gives the right values again where the newest one does not."""
    donor = next(
        cells.observation
        for cells in evidence.cells
        if cells.fixture.recipe == "pooling" and cells.outcome == "different" and cells.direction == "backward"
    )
    mended = Counter[str]()

    def change(fixture: Fixture, observation: Observation) -> Observation:
        if fixture.recipe == "casts" and observation.result == "same":
            return replace(
                donor,
                fixture=observation.fixture,
                options=observation.options,
                key=observation.key,
                departures=(),
                warnings=observation.warnings,
            )
        if fixture.recipe == "embedding" and observation.result == "same" and fixture.release == "1.8.1":
            return replace(observation, result="refused", errors=({"type": "RuntimeError", "message": "Unknown builtin op"},))
        if fixture.recipe == "factories" and observation.result == "differs" and observation.options == "default":
            mended["factories"] += 1
            return replace(observation, result="same", differences=(), extent=(), count=0, digest="", departures=())
        return observation

    report = judge(tomorrow(evidence, NEXT, writes=False, change=change))
    assert mended["factories"]
    result = failing(report)
    assert {name.rpartition(":")[0] if "waivers-exact" in name else name for name in result} == {
        f"newer-computes:different:casts@{NEXT}",
        f"newer-loads:refused:unknown-builtin-op-{_hash(result)}@{NEXT}",
        "waivers-exact:ended",
    }


def test_what_the_newest_release_mended_breaks_again_and_does_not_continue(evidence: Evidence) -> None:
    """The release before it shows the same difference, and is no neighbour of the next one."""
    (before,) = (index for index, reader in enumerate(evidence.readers) if reader.release == evidence.policy.corpus.readers[-2])
    (newest,) = (index for index, reader in enumerate(evidence.readers) if reader.release == evidence.policy.corpus.readers[-1])
    mended = {
        (cells.fixture.id, cells.options.id): cells.observation
        for cells in evidence.cells
        if cells.fixture.recipe == RECIPE
        and cells.outcome == "different"
        and cells.readers >> before & 1
        and not cells.readers >> newest & 1
    }

    def change(fixture: Fixture, observation: Observation) -> Observation:
        donor = mended.get((fixture.id, observation.options))
        return (
            observation
            if donor is None
            else replace(donor, fixture=observation.fixture, options=observation.options, key=observation.key)
        )

    def opened(waiver: Waiver) -> Waiver:
        """The waiver, were it open to the future: else it would not be asked about the next release."""
        covers = waiver.covers or ()
        if not any(RECIPE in (item.recipes or ()) for item in covers):
            return waiver
        more = ReleaseSet.parse(f"{NEXT}..")
        return waiver.model_copy(
            update={"covers": tuple(item.model_copy(update={"readers": item.readers | more}) for item in covers)}
        )

    policy = replace(evidence.policy, waivers=tuple(opened(waiver) for waiver in evidence.policy.waivers))
    report = judge(tomorrow(replace(evidence, policy=policy), NEXT, writes=False, change=change))
    assert mended
    results = {name: count for name, count in failing(report).items() if not name.startswith("waivers-exact:")}
    assert {name.partition("@")[0].partition("(")[0] for name in results} == {f"newer-computes:different:{RECIPE}"}
    assert sum(results.values()) == len(mended)


# ------------------------------------------------------------------------------------------------- within the forward window


OLDER, NEWER = "2.5.0", "2.5.1"
"""Twelve days lie between them."""


def test_a_window_of_one_day_is_noticed(evidence: Evidence) -> None:
    report = judge(replace(evidence, policy=replace(evidence.policy, forward_window_days=1)))
    assert report.exit_status == 1
    assert ("forward-window", "the rule selects nothing", 1) in report.not_checked
    assert any(finding.verdict is Verdict.FAIL and finding.rule == "bumps-in-time" for finding in report.findings)


def within(evidence: Evidence, change: Callable[[Observation], Observation]) -> tuple[Evidence, str]:
    """The evidence in which the older of the two did something else with one archive of the newer one, and that archive."""
    (reader,) = (item for item in evidence.recorded.values() if item.release == OLDER)
    name = next(
        fixture
        for (fixture, options), cell in sorted(reader.cells.items())
        if fixture.startswith(f"torch-{NEWER}/") and options == "default" and cell.result == "same" and not cell.departures
    )
    cells = {**reader.cells, (name, "default"): change(reader.cells[name, "default"])}
    return replace(evidence, recorded={**evidence.recorded, reader.name: replace(reader, cells=cells)}), name


def test_a_writer_that_changes_its_format_within_the_window_is_told(evidence: Evidence) -> None:
    """It states a version that the reader of twelve days before does not know, and is refused by it."""
    error = {
        "type": "RuntimeError",
        "message": "Attempted to read a PyTorch file with version 11, but the maximum supported version",
    }
    spoiled, name = within(evidence, lambda item: replace(item, result="refused", errors=(error,)))
    manifests = tuple(
        replace(
            manifest,
            fixtures=tuple(
                replace(fixture, versions={**fixture.versions, "file-format": 11}) if fixture.id == name else fixture
                for fixture in manifest.fixtures
            ),
        )
        for manifest in evidence.corpus.manifests
    )
    result = failing(judge(replace(spoiled, corpus=replace(evidence.corpus, manifests=manifests))))
    rules = {item.partition(":")[0] for item in result}
    assert {"forward-window", "versions-have-fixtures", "versions-lowest"} <= rules
    assert [count for item, count in result.items() if item.startswith("forward-window:refused:")] == [1]


def test_a_reader_that_computes_something_else_within_the_window_is_told(evidence: Evidence) -> None:
    donor = next(
        cells.observation
        for cells in evidence.cells
        if cells.fixture.recipe == "pooling" and cells.outcome == "different" and cells.direction == "backward"
    )
    spoiled, name = within(
        evidence,
        lambda observation: replace(
            donor,
            fixture=observation.fixture,
            options=observation.options,
            key=observation.key,
            departures=(),
            warnings=observation.warnings,
        ),
    )
    result = failing(judge(spoiled))
    recipe = name.partition("/")[2]
    assert [count for item, count in result.items() if item.startswith(f"forward-window:different:{recipe}")] == [1]


def _hash(value: dict[str, int]) -> str:
    (name,) = (name for name in value if name.startswith("newer-loads:refused:unknown-builtin-op"))
    return name.partition("@")[0].rpartition("-")[2]
