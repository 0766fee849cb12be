"""PyTorch's published statements, compared with the reports: statements without evidence, and lost evidence, are detected."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from markdown_it import MarkdownIt

from torch_compat.errors import UsageError
from torch_compat.judging.gathering import gather
from torch_compat.judging.judge import examine
from torch_compat.report.documents import COMPARED, PUBLISHED
from torch_compat.report.release.items import Section
from torch_compat.report.release.published import compared, published_md, read_published
from torch_compat.report.release.report import release_report
from torch_compat.workspace import Root

if TYPE_CHECKING:
    from torch_compat.report.release.published import PublishedComparison
    from torch_compat.report.release.report import ReleaseReport

REPOSITORY = Path(__file__).parents[3]
FIVE = ("1.6.0", "1.7.0", "1.11.0", "1.12.0", "2.6.0")
RELEASE = '[[release]]\nversion = "2.13.0"\nnotes = "https://example.org/n"\nwhole = false\nwhy = "w"\n'
ITEM = '[[item]]\nrelease = "2.13.0"\ntitle = "t"\nsource = "https://example.org/s"\n'


@pytest.fixture(scope="module")
def report(small_tree: Path) -> ReleaseReport:
    place = Root(small_tree)
    evidence = gather(place, place.policy(), as_of=None)
    return release_report(evidence, *examine(evidence), "2.13.0")


def of(report: ReleaseReport, text: str) -> PublishedComparison:
    (item,) = read_published((RELEASE + text).encode(), "p.toml")
    return compared(item, report, "p.toml")


def test_the_table_names_five_releases_and_says_of_each_whether_the_page_was_read() -> None:
    result = read_published((REPOSITORY / PUBLISHED).read_bytes(), PUBLISHED)
    assert tuple(item.version for item in result) == FIVE
    for published in result:
        assert published.notes == f"https://github.com/pytorch/pytorch/releases/tag/v{published.version}"
        assert published.statements
        assert published.whole or published.why


def test_every_statement_of_the_table_is_in_the_document() -> None:
    text = (REPOSITORY / COMPARED).read_text(encoding="utf-8")
    links = [
        str(token.attrs["href"])
        for block in MarkdownIt().parse(text)
        for token in block.children or ()
        if token.type == "link_open"
    ]
    result = read_published((REPOSITORY / PUBLISHED).read_bytes(), PUBLISHED)
    for published in result:
        assert published.notes in links
        for statement in published.statements:
            assert statement.source in links
    assert text.count("([source](") == sum(len(item.statements) for item in result)
    assert text.count("may name some of these") == sum(not item.whole for item in result)


def test_a_release_of_which_nothing_is_recorded_is_listed_as_not_compared(report: ReleaseReport) -> None:
    (other,) = read_published(
        (RELEASE.replace("2.13.0", "9.9.0") + ITEM.replace("2.13.0", "9.9.0") + 'unseen = "u"\n').encode(), "p"
    )
    assert "| 9.9.0 | not compared: no release of this line is recorded | 1 |" in published_md([of(report, "")], [other])
    assert "not compared: no release" not in (REPOSITORY / COMPARED).read_text(encoding="utf-8")


def test_a_statement_is_shown_unseen_or_refused(report: ReleaseReport) -> None:
    name = next(item.id for item in report.items if item.section is Section.SILENT)
    comparison = of(report, f'{ITEM}found = ["{name}"]\n{ITEM}unseen = "it needs a GPU"\nnote = "n"\n')
    assert [[item.id for item in items] for _, items in comparison.shown] == [[name]]
    assert [message.unseen for message in comparison.unseen] == ["it needs a GPU"]
    assert name not in {item.id for item in comparison.unnamed}
    assert (
        len(comparison.unnamed)
        == sum(item.section in {Section.SILENT, Section.REFUSED, Section.CRASHED, Section.OPERATORS} for item in report.items) - 1
    )
    assert published_md([comparison]) == published_md(
        [of(report, f'{ITEM}found = ["{name}"]\n{ITEM}unseen = "it needs a GPU"\nnote = "n"\n')]
    )
    with pytest.raises(UsageError, match=r"the report of 2\.13\.0 has no waiver:gone"):
        of(report, f'{ITEM}found = ["waiver:gone"]\n')


@pytest.mark.parametrize("text", [
    ITEM, f"{ITEM}found = []\n", f'{ITEM}found = ["a"]\nunseen = "b"\n', f"{ITEM}found = [1]\n", f"{ITEM}unseen = 1\n",
    f'{ITEM}unseen = "a"\nmore = 1\n', f'{ITEM.replace("2.13.0", "2.14.0")}unseen = "a"\n',
    f'{ITEM.replace("https://example.org/s", "javascript:x")}unseen = "a"\n',
    f'{ITEM.replace("https://example.org/s", "https://x)[y](z")}unseen = "a"\n', "[[item]]\n", "item = 1\n", "more = 1\n", RELEASE,
])  # fmt: skip
def test_a_wrong_table_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        read_published((text + RELEASE if text.startswith(("item =", "more")) else RELEASE + text).encode(), "p.toml")


def test_hostile_text_is_harmless(report: ReleaseReport) -> None:
    text = published_md([of(report, ITEM.replace('"t"', '"<script>x</script>[a](b)\\u001b[2J\\u202e"') + 'unseen = "|`*<b>"\n')])
    html = MarkdownIt("commonmark", {"html": True}).render(text)
    assert "<script" not in html
    assert "<b>" not in html
    assert all(character.isprintable() or character == "\n" for character in text)
