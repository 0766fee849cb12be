"""Everything that begins with a release, on real evidence; and the same numbers in every format."""

from __future__ import annotations

import io
import json
import re
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from markdown_it import MarkdownIt
from rich.console import Console

from tests.conftest import REPOSITORY
from torch_compat.errors import NothingSelected, UsageError
from torch_compat.judging.gathering import gather
from torch_compat.judging.judge import examine
from torch_compat.readers.environments import Environments
from torch_compat.report.release.items import Section
from torch_compat.report.release.report import line_before, release_report, reported_releases
from torch_compat.report.release.to_json import release_json
from torch_compat.report.release.to_md import in_code, plain, release_md
from torch_compat.report.release.to_text import print_release
from torch_compat.report.release.words import TITLES
from torch_compat.workspace import Root

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch_compat.judging.evidence import Evidence
    from torch_compat.judging.findings import Named
    from torch_compat.judging.judge import Report
    from torch_compat.report.release.report import ReleaseReport

HOSTILE = "\x1b[2J<script>alert(1)</script>\u202e`*_[x](javascript:y)|\r\n" + "A" * 1_000_000


@pytest.fixture(scope="module")
def judged() -> tuple[Evidence, Report, tuple[Named, ...]]:
    place = Root(REPOSITORY)
    evidence = gather(place, place.policy(), as_of=None)
    return evidence, *examine(evidence)


@pytest.fixture(scope="module")
def of(judged: tuple[Evidence, Report, tuple[Named, ...]]) -> Callable[..., ReleaseReport]:
    known: dict[tuple[str, ...], ReleaseReport] = {}

    def reported(*releases: str) -> ReleaseReport:
        if releases not in known:
            known[releases] = release_report(*judged, *releases)
        return known[releases]

    return reported


def text_of(report: ReleaseReport, *, full: bool) -> str:
    stream = io.StringIO()
    print_release(report, Console(file=stream, width=80, color_system=None), full=full)
    return stream.getvalue()


def test_named_tensors_are_one_item_of_one_release(of: Callable[..., ReleaseReport]) -> None:
    """Their probe says 2.13.0; their operators say 2.14.1, since the set of 2.13.0 is incomplete."""
    (item,) = (item for item in of("2.13.0").items if item.title == "Named tensors were removed")
    assert item.when == "2.13.0"
    assert {part.source for part in item.parts} == {"operators", "deprecations"}
    assert not [item for item in of("2.14.1").items if "amed tensors" in item.title]


def test_a_stated_change_and_the_event_of_its_deprecation_are_one_item(of: Callable[..., ReleaseReport]) -> None:
    (item,) = (
        item
        for item in of("1.6.0").items
        if "deprecation:div-integer@1.6.0" in {name for part in item.parts for name in part.names}
    )
    assert {part.source for part in item.parts} >= {"changes", "deprecations"}
    assert item.when == "1.6.0"


def test_silent_changes_come_first_and_are_dated_by_the_stated_change(of: Callable[..., ReleaseReport]) -> None:
    first, second, *_ = of("2.14.1").items
    assert (first.id, first.when) == ("waiver:arange-length", "2.14.0")
    assert second.id == "waiver:attention-of-nan-queries"
    assert first.shown is not None
    assert (first.shown.before, first.shown.after) == ("as written", "calls[7].first.value[0]: shape [4] (written: [3])")
    assert {item.section for item in of("2.14.1").items} == {Section.SILENT, Section.REFUSED, Section.OPERATORS, Section.MENDED}


def test_a_release_reports_nothing_that_began_before(of: Callable[..., ReleaseReport]) -> None:
    before = {item.id for item in of("2.14.1").items}
    assert not before & {item.id for item in of("2.15.0").items}
    assert before <= {item.id for item in of("2.15.0", "2.13.0").items}


def test_a_longer_span_says_which_release_of_it(of: Callable[..., ReleaseReport]) -> None:
    results = {item.id: item for item in of("2.15.0", "2.12.1").items}
    assert results["waiver:arange-length"].when == "2.14.0"
    assert results["waiver:nested-tensors-not-allowed"].when == "2.15.0"


def test_mended_and_refused(of: Callable[..., ReleaseReport]) -> None:
    report = of("2.15.0")
    assert [item.id for item in report.of(Section.MENDED)] == ["mended:waiver:one-storage-many-dtypes"]
    assert [item.id for item in report.of(Section.REFUSED)] == [
        "waiver:nested-tensors-not-allowed", "change:reflection-that-leaves-nothing-of-a-dimension", "change:infinite-steps-refused",
    ]  # fmt: skip


def test_what_is_not_known_is_said(of: Callable[..., ReleaseReport]) -> None:
    assert [(asked.count, asked.explained) for asked in of("2.13.0").not_asked] == [(138, True)]
    assert of("2.13.0").exit_status == 0
    assert not of("2.15.0").not_asked


def test_cells_that_nobody_recorded_are_counted_and_no_pass(judged: tuple[Evidence, Report, tuple[Named, ...]]) -> None:
    evidence, report, named = judged
    recorded = {
        name: replace(item, cells={cell: seen for cell, seen in item.cells.items() if cell[0] != "torch-1.5.1/div"})
        if item.release == "2.15.0"
        else item
        for name, item in evidence.recorded.items()
    }
    result = release_report(replace(evidence, recorded=recorded), report, named, "2.15.0")
    assert [item.why for item in result.not_asked] == ["archives that were not tested with 2.15.0"]
    assert result.exit_status == 4


def test_every_line_can_be_reported_and_agrees_with_itself(
    judged: tuple[Evidence, Report, tuple[Named, ...]], of: Callable[..., ReleaseReport]
) -> None:
    releases = reported_releases(judged[0])
    assert (releases[0], releases[-1], len(releases)) == ("1.1.0", "2.15.0", 29)
    for release in releases:
        report = of(release)
        document, markdown, text = release_json(report), release_md(report), text_of(report, full=True)
        assert not report.open
        assert markdown == (REPOSITORY / f"reports/releases/{release}.md").read_text(encoding="utf-8")
        ids = [item.id for item in report.items]
        assert len(set(ids)) == len(ids)
        assert [item["id"] for item in document["items"]] == ids
        for section, title in TITLES.items():
            count = len(report.of(section))
            assert document["counts"][section] == count
            told = re.findall(rf"^(?:#+ )?{re.escape(title)} \((\d+)\)$", markdown + text, re.MULTILINE)
            assert told == ([str(count)] * 2 if count else [])
        cells = sum(item.newer for item in report.items)
        assert sum(item["cells"]["newer"] for item in document["items"]) == cells
        for form in (markdown, text):
            message = re.findall(rf"(\d+) cells? of {re.escape(release)}", form.replace("\\", ""))
            assert sum(map(int, message)) == cells
            assert form == "".join(item for item in form if item.isprintable() or item == "\n")


RUN = """
import sys
shown = []
snippet, expected = sys.argv[1:]
space = {"print": shown.append}
exec(snippet, space)
import torch

def same(one, other):
    if isinstance(one, torch.Tensor):
        return one.dtype == other.dtype and one.shape == other.shape and torch.equal(torch.nan_to_num(one), torch.nan_to_num(other))
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other

assert same(shown[0], eval(expected)), (shown[0], expected)
"""


@pytest.mark.real_torch("2.13.0", "2.14.1")
def test_snippets_print_in_both_releases_what_is_recorded(of: Callable[..., ReleaseReport]) -> None:
    environments = Environments()
    for item in of("2.14.1").of(Section.SILENT):
        assert item.shown is not None
        for release, output in zip(("2.13.0", "2.14.1"), item.shown.outputs, strict=True):
            there = environments.get(release)
            assert there is not None
            subprocess.run([there.python, "-c", RUN, item.shown.snippet, output], check=True, cwd=REPOSITORY)


def test_the_short_text_fits_a_screen_and_cuts_no_number(of: Callable[..., ReleaseReport]) -> None:
    for release in ("1.13.1", "2.6.0", "2.14.1"):
        lines = text_of(of(release), full=False).splitlines()
        assert len(lines) <= 60
        for item in of(release).items[:1]:
            assert item.title in "\n".join(lines)


@pytest.mark.parametrize("width", [60, 80])
def test_no_command_is_wrapped_on_a_narrow_terminal(of: Callable[..., ReleaseReport], width: int) -> None:
    stream = io.StringIO()
    print_release(of("2.13.0"), Console(file=stream, width=width, color_system=None, force_terminal=True), full=False)
    lines = stream.getvalue().splitlines()
    assert "torch-compat deprecations --as-of 2.13.0" in {line.strip().partition(": ")[2] or line.strip() for line in lines}
    assert all(len(line) <= width for line in lines if "torch-compat" not in line)


def test_hostile_text_is_harmless(of: Callable[..., ReleaseReport]) -> None:
    report = of("2.15.0")
    part = replace(
        report.items[0].parts[0],
        title=HOSTILE[:200],
        why=HOSTILE,
        findings=(HOSTILE,),
        says=HOSTILE,
        archives=frozenset({HOSTILE}),
    )
    item = replace(report.items[0], title=HOSTILE[:200], parts=(part,))
    spoiled = replace(report, items=(item,), not_asked=())
    markdown = release_md(spoiled)
    assert not [entry for entry in markdown if not entry.isprintable() and entry != "\n"]
    html = MarkdownIt().render(markdown)
    assert "<script" not in html
    assert "href" not in html
    assert html.count("<li>") == MarkdownIt().render(release_md(replace(spoiled, items=(replace(item, title="x"),)))).count(
        "<li>"
    )
    assert json.loads(json.dumps(release_json(spoiled)))["items"][0]["title"] == HOSTILE[:200]


def test_code_holds_its_own_marks() -> None:
    assert in_code("a`b``c") == "```a`b``c```"
    assert in_code("`") == "`` ` ``"
    assert plain("a|b\n# <c>") == "a\\|b \\# \\<c\\>"


def test_releases_that_cannot_be_reported(judged: tuple[Evidence, Report, tuple[Named, ...]]) -> None:
    with pytest.raises(NothingSelected, match=r"there are no records for torch 2\.14\.0"):
        release_report(*judged, "2.14.0")
    with pytest.raises(UsageError, match=r"2\.15\.0 is not older than 2\.14\.1"):
        release_report(*judged, "2.14.1", "2.15.0")
    with pytest.raises(NothingSelected, match="no recorded release has an older minor version"):
        release_report(*judged, "1.0.1")
    assert line_before(judged[0], "1.5.1") == "1.4.0"
