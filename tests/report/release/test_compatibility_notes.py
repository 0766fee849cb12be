"""Notes: every item has before and after from the records, and hand-written text stays with its item."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from markdown_it import MarkdownIt

from tests.report.release.test_report import HOSTILE
from torch_compat.errors import PolicyError, UsageError
from torch_compat.judging.operator_changes import PairCounts
from torch_compat.report.release.compatibility_notes import LARGEST, NOTES, TITLES, Hand, noted, notes_md, read_hand
from torch_compat.report.release.items import FactRecord, ReleaseItem, Section, Shown, Span
from torch_compat.report.release.report import NotAsked, ReleaseReport, Running
from torch_compat.report.release.snippets import call_of, raised, returned, snippet
from torch_compat.report.release.words import notes_of_report

if TYPE_CHECKING:
    from torch_compat.corpus.corpus import Corpus

SHOWN = Shown(
    "torch-1.0.0/a", "default", "as written", "value 2 (written: 1)", "torch-compat observe", 1, "import torch", ("1", "2")
)
PART = FactRecord(
    ("waiver:a",), Section.SILENT, 0, "A changes", "archives", Span("2.13.0", "2.14.1"), "2 cells", newer=2, shown=SHOWN
)
ITEM = ReleaseItem(
    "waiver:a", Section.SILENT, "A changes", Span("2.13.0", "2.14.1"), ("2.14.0", "2.14.1"), disagree=False, parts=(PART,)
)


def report(*items: ReleaseItem) -> ReleaseReport:
    operators = (PairCounts("2.13.0", "2.14.1", 3, 3, 2, 1),)
    asked = (NotAsked(3, "archives that <nobody> asked"),)
    return ReleaseReport("2.14.1", "2.13.0", "2026-09-30", items, (), operators, asked, 7, "2026-11-22", "0" * 64)


def test_an_item_has_its_snippet_with_both_outputs_and_its_evidence() -> None:
    text = notes_md(report(ITEM))
    assert (
        "### A changes\n\nItem `waiver:a`, since 2.14.0 or 2.14.1.\n\n```python\nimport torch\n```\n\n- 2.13.0: `1`\n- 2.14.1: `2`\n"
        in text
    )
    assert "- Evidence: 2 cells of 2.14.1; explained by a\n" in text
    assert "- To reproduce: `torch-compat observe`\n" in text
    assert "## Not checked\n\n- 3 × archives that \\<nobody\\> asked\n" in text
    assert "### 2 changed operators have an upgrader" in text


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        (PairCounts("1.0.0", "1.9.0", 7), "7 schemas removed or changed; no promise"),
        (PairCounts("1.9.0", "2.0.0", 5, 0), "5 schemas removed or changed; none of them breaks old programs"),
        (
            PairCounts("1.9.0", "2.0.0", 1, 1, 1),
            "1 schema removed or changed; 1 of them breaks old programs (1 with an upgrader, 0 waived)",
        ),
        (
            PairCounts("2.13.0", "2.14.1", 9, 132, 0, 132, 0, 124),
            (
                "9 schemas removed or changed; 8 of them break old programs, and so do 124 more schemas, already missing from the "
                "incomplete records of 2.13.0 (0 with an upgrader, 132 waived)"
            ),
        ),
        (
            PairCounts("2.13.0", "2.14.1", 9, 1, 0, 1, 0, 1),
            "none of them breaks old programs, but 1 more schema does, already missing from the incomplete records of 2.13.0 (0 with",
        ),
    ],
)
def test_the_numbers_of_operators_are_numbers_of_the_same_things(pair: PairCounts, said: str) -> None:
    (line,) = notes_of_report(replace(report(), operators=(pair,)))
    assert line.startswith(f"operators, {pair.older} to {pair.newer}: ")
    assert said in line


def test_overdue_deprecations_are_some_of_those_under_way() -> None:
    running = (Running("a", "torch.a", "1.0.0", "", False), Running("b", "torch.b", "1.0.0", "2.0.0", True))
    lines = list(notes_of_report(replace(report(), running=running)))
    assert lines[0].startswith("2 deprecations are under way: ")
    assert lines[1] == "1 of them should have ended: b"


def test_every_section_of_a_report_has_one_of_the_notes() -> None:
    assert set(NOTES) == set(Section)
    assert set(NOTES.values()) == set(TITLES)
    text = notes_md(report())
    assert [text.count(f"\n## {title}\n") for title in TITLES] == [1] * len(TITLES)
    assert text.count("None recorded.") == len(TITLES) - 1  # operators have upgraders


def test_what_a_person_wrote_stands_under_its_item() -> None:
    hand = read_hand(b'introduction = "Hello."\n[[item]]\nid = "waiver:a"\ntext = "Pass *integers*."\n', "notes.toml")
    noted(report(ITEM), hand, "notes.toml")
    text = notes_md(report(ITEM), hand)
    assert "tested with both releases.\n\nHello.\n" in text
    assert "since 2.14.0 or 2.14.1.\n\nPass *integers*.\n\n```python" in text


def test_what_a_person_wrote_of_something_that_is_gone_is_an_error() -> None:
    with pytest.raises(UsageError, match=r"waiver:b is no longer listed in 2\.14\.1") as caught:
        noted(report(ITEM), Hand("", {"waiver:b": "text"}), "notes.toml")
    assert (caught.value.hint, caught.value.where) == ("did you mean waiver:a?", "notes.toml")


@pytest.mark.parametrize(("data", "message"), [
    (b"x = ", "is not valid TOML"),
    (b"\xff", "is not valid UTF-8 at byte 0"),
    (b"x = 1", "has x, expected introduction and item"),
    (b"introduction = 1", "expected introduction and item"),
    (b"item = 1", "expected introduction and item"),
    (b"[[item]]\nid = 'a'", "item 1 is not a table of two strings"),
    (b"[[item]]\nid = 'a'\ntext = 1", "item 1 is not a table of two strings"),
    (b"[[item]]\nid = 'a'\ntext = ''\n" * 2, "item 2: a already has text"),
    (b" " * (LARGEST + 1), "at most"),
])  # fmt: skip
def test_a_file_that_is_none(data: bytes, message: str) -> None:
    with pytest.raises((UsageError, PolicyError), match=message):
        read_hand(data, "notes.toml")


def test_hostile_text_is_harmless() -> None:
    shown = replace(SHOWN, before=HOSTILE, after=HOSTILE, command=HOSTILE, outputs=(HOSTILE, HOSTILE))
    part = replace(PART, why=HOSTILE, findings=(HOSTILE,), advice=HOSTILE, operators=(HOSTILE,), shown=shown)
    for used in (shown, replace(shown, snippet="")):
        text = notes_md(report(replace(ITEM, title=HOSTILE[:100], parts=(replace(part, shown=used),))))
        assert not [character for character in text if not character.isprintable() and character != "\n"]
        html = MarkdownIt().render(text)
        assert "<script" not in html
        assert "href" not in html


def test_snippets_are_python(small_corpus: Corpus) -> None:
    result = 0
    for fixture in small_corpus.fixtures.values():
        for index in range(len(fixture.calls) or 1):
            called = call_of(f"calls[{index}].second.value") if fixture.calls else None
            text = snippet(fixture, {}, called)
            compile(text, fixture.id, "exec")
            result += bool(text)
            assert returned(fixture.golden, called)
    assert result > 100


def test_load_options_that_are_arguments_are_written(small_corpus: Corpus) -> None:
    fixture = small_corpus.fixtures["torch-2.13.0/state_dict"]
    assert 'torch.load("fixtures/torch-2.13.0/state_dict.pt", weights_only=True)' in snippet(
        fixture, {"weights_only": True}, None
    )
    assert not snippet(fixture, {"endianness": "big"}, None)


def test_results_as_python_prints_them(small_corpus: Corpus) -> None:
    fixture = small_corpus.fixtures["torch-1.5.1/div"]
    assert returned(fixture.golden, call_of("calls[0].first")).startswith("(torch.tensor([")
    assert returned({"crashed": {"signal": "SIGSEGV"}}, None) == "SIGSEGV"
    assert returned({"calls": []}, call_of("calls[5].first")) == "was not called"
    assert raised("builtins.RuntimeError", "RuntimeError: x") == "RuntimeError: x"
    assert raised("builtins.ValueError", "x") == "ValueError: x"
