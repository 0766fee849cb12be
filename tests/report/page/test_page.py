"""The page: every number agrees with the report, every link leads somewhere, and no text becomes markup. No browser is needed."""

from __future__ import annotations

import base64
import hashlib
import posixpath
import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from tests.report.page.pages import read
from torch_compat.judging.cell import Outcome
from torch_compat.judging.gathering import gather
from torch_compat.judging.judge import examine
from torch_compat.judging.judgement import Verdict
from torch_compat.judging.timelines import rows
from torch_compat.releases.release import public
from torch_compat.report.page import details
from torch_compat.report.page import page as main_page
from torch_compat.report.page.details import MOST_ELEMENTS
from torch_compat.report.page.markup import _DARK, LONGEST, POLICY, SCALE, SCRIPT, document, tag
from torch_compat.report.page.page import DATA, page, spans
from torch_compat.report.page.pairs import DEFAULT, PairCells, Pairs, pairs_of
from torch_compat.report.release.report import release_report, reported_releases
from torch_compat.report.release.words import TITLES
from torch_compat.workspace import Root

if TYPE_CHECKING:
    from pathlib import Path

    from torch_compat.judging.evidence import Evidence
    from torch_compat.judging.findings import Named
    from torch_compat.judging.judge import Report

FRAME = 60
"""Elements of a file around its parts: head, menu, headings."""
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\x00\x1b[2J\u202e\ud800\"'&lt;" + "A" * 1_000_000


@pytest.fixture(scope="module")
def judged(small_tree: Path) -> tuple[Evidence, Report, tuple[Named, ...]]:
    place = Root(small_tree)
    evidence = gather(place, place.policy(), as_of=None)
    return evidence, *examine(evidence)


@pytest.fixture(scope="module")
def files(judged: tuple[Evidence, Report, tuple[Named, ...]]) -> dict[str, str]:
    return page(*judged)


def test_the_main_file_comes_last_and_the_same_evidence_gives_the_same_bytes(
    files: dict[str, str], judged: tuple[Evidence, Report, tuple[Named, ...]]
) -> None:
    assert list(files)[-1] == "index.html"
    assert page(*judged) == files
    folders = {posixpath.dirname(name) for name in files} - {""}
    assert len(folders) == 1
    assert folders.pop().startswith(DATA)


def test_every_file_is_whole_and_every_link_leads_to_a_place_in_these_files(files: dict[str, str]) -> None:
    pages = {name: read(text) for name, text in files.items()}
    count = 0
    for name, item in pages.items():
        assert len(set(item.ids)) == len(item.ids), name
        for link in item.links:
            path, _, place = link.partition("#")
            target = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
            assert target in pages, (name, link)
            assert not place or place in pages[target].ids, (name, link)
            count += 1
    assert count > 1000


def test_every_file_is_reached_from_the_main_one(files: dict[str, str]) -> None:
    seen, new = set(), {"index.html"}
    while new:
        name = new.pop()
        seen.add(name)
        for link in read(files[name]).links:
            path = link.partition("#")[0]
            target = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
            if target not in seen:
                new.add(target)
    assert seen == files.keys()


def test_nothing_is_fetched_and_one_script_may_run(files: dict[str, str]) -> None:
    allowed = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    assert f"script-src 'sha256-{allowed}'" in POLICY
    assert "default-src 'none'" in POLICY
    for name, text in files.items():
        item = read(text)
        kinds = Counter(kind for kind, _ in item.tags)
        assert (kinds["script"], kinds["style"]) == (1, 1), name
        assert text.count(SCRIPT) == 1
        assert not kinds.keys() & {"img", "iframe", "link", "object", "embed", "form", "base", "input"}
        assert [
            attributes["content"]
            for kind, attributes in item.tags
            if kind == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
        ] == [POLICY]
        for kind, attributes in item.tags:
            assert not [key for key in attributes if key.startswith("on") or key in {"src", "srcset", "action"}], (name, kind)
            assert not re.match(r"[a-z]+:|//", attributes.get("href", ""), re.IGNORECASE), (name, attributes)
        assert "url(" not in text
        assert "@import" not in text


def of_main(files: dict[str, str]) -> dict[str, str]:
    """Verdicts as the main file shows them."""
    item = read(files["index.html"])
    table = next(rows for rows in item.rows if rows[0] == [str(verdict) for verdict in Verdict])
    return dict(zip(table[0], table[1], strict=True))


def outcomes_of(files: dict[str, str], pairs: Pairs) -> dict[tuple[str, str, str, str], dict[str, int]]:
    """Cells by writer, reader, family, options and outcome, as the files of the writers show them."""
    folder = next(name for name in files if "/" in name).partition("/")[0]
    results = {}
    for number, writer in enumerate(pairs.writers(), 1):
        of_writer = [text for name, text in files.items() if re.fullmatch(rf"{folder}/w{number}(-\d+)?\.html", name)]
        for part in re.findall(r'<section id="r\d+">.*?</section>', "".join(of_writer), re.DOTALL):
            item = read(part)
            (table,) = item.rows
            reader = re.search(r"<h2>read by (.*?)</h2>", part)
            assert reader is not None
            for row in table[1:]:
                counts = {name: int(count) for name, count in zip(table[0][2:], row[2:], strict=True) if count != "·"}
                results[writer, reader[1], row[0], row[1]] = counts
    return results


def counted(report: Report) -> dict[tuple[str, str, str, str], dict[str, int]]:
    return {key: {str(outcome): count for outcome, count in counts.items() if count} for key, counts in report.outcomes.items()}


def test_every_number_agrees_with_the_report(files: dict[str, str], judged: tuple[Evidence, Report, tuple[Named, ...]]) -> None:
    evidence, report, named = judged
    assert {name: int(count) for name, count in of_main(files).items()} == {
        str(verdict): report.counts.get(verdict, 0) for verdict in Verdict
    }
    pairs = pairs_of(evidence, report, named)
    assert outcomes_of(files, pairs) == counted(report)
    item = read(files["index.html"])
    table = next(rows for rows in item.rows if rows[0][:2] == ["release", "day"])
    for row, release in zip(table[1:], reversed(reported_releases(evidence)), strict=True):
        result = release_report(evidence, report, named, release)
        assert row[:3] == [release, result.day, result.since]
        shown = [0 if count == "·" else int(count) for count in row[3:]]
        assert shown == [*(len(result.of(section)) for section in TITLES), sum(part.count for part in result.not_asked)]
    listed = Counter(str(row.verdict) for row in rows(evidence, evidence.as_of))
    message = ", ".join(f"{count} {name}" for name, count in sorted(listed.items()))
    assert f"{listed.total()} deprecations: {message}." in files["index.html"]


def matrices_of(files: dict[str, str], pairs: Pairs) -> dict[tuple[str, str, str], str]:
    """The text of each cell by writer, reader and family, as the main file shows it."""
    tables = [table for table in read(files["index.html"]).rows if len(table[0]) > 3 and table[0][0] == ""]
    results: dict[tuple[str, str, str], str] = {}
    for family, table in zip(pairs.families, tables, strict=True):
        readers = pairs.readers(family)
        assert table[0] == ["", *map(public, readers)]
        for writer, row in zip(pairs.writers(family), table[1:], strict=True):
            assert row[0] == public(writer)
            results |= {(writer, reader, family): text for reader, text in zip(readers, row[1:], strict=True)}
    return results


def test_the_matrix_shows_the_share_and_the_gravest_outcome(
    files: dict[str, str], judged: tuple[Evidence, Report, tuple[Named, ...]]
) -> None:
    pairs = pairs_of(*judged)
    shown = matrices_of(files, pairs)
    asked = {key[:3]: pair for key, pair in pairs.all.items() if key[3] == DEFAULT}
    assert {key: text for key, text in shown.items() if text} == {key: f"{pair.share}{pair.mark}" for key, pair in asked.items()}
    whole = [key for key, pair in asked.items() if pair.kept == pair.total]
    assert list(shown.values()).count("100") == len(whole) > 0


def test_readers_in_a_row_share_a_cell_where_outcomes_and_causes_are_the_same(
    files: dict[str, str], judged: tuple[Evidence, Report, tuple[Named, ...]]
) -> None:
    """Each cell costs a browser two elements, and a click on one waits until it has dropped them all."""
    pairs = pairs_of(*judged)
    runs = [run for family in pairs.families for writer in pairs.writers(family) for run in pairs.runs(writer, family)]
    cells = files["index.html"].count('<td class="c')
    assert cells == len([pair for pair, _ in runs if pair is not None]) < sum(key[3] == DEFAULT for key in pairs.all)

    same, other = PairCells(Counter({Outcome.SAME: 3, Outcome.DIFFERENT: 1})), Counter({Outcome.SAME: 4})
    told = [same, same, replace(same, causes=Counter({"a": 1})), replace(same, causes=Counter({"b": 1})), PairCells(other), same]
    names = [f"torch-2.{number}.0" for number in range(len(told))]
    by_reader = {("torch-1.5.0", name, "export", DEFAULT): item for name, item in zip(names, told, strict=True)}
    beside = {("torch-1.6.0", "torch-2.9.0", "export", DEFAULT): same}
    assert [(pair and pair.share, len(run)) for pair, run in Pairs(by_reader | beside).runs("torch-1.5.0", "export")] == [
        ("75", 2), ("75", 1), ("75", 1), ("100", 1), ("75", 1), (None, 1),
    ]  # fmt: skip


def test_a_planted_difference_is_seen(judged: tuple[Evidence, Report, tuple[Named, ...]]) -> None:
    """The comparison above goes red for one cell and for one verdict."""
    evidence, report, named = judged
    key = next(iter(report.outcomes))
    spoiled = {**report.outcomes, key: report.outcomes[key] + Counter({Outcome.CRASHED: 1})}
    changed = replace(report, outcomes=spoiled, counts={**report.counts, Verdict.PASS: report.counts[Verdict.PASS] + 1})
    files = page(evidence, changed, named)
    assert outcomes_of(files, pairs_of(evidence, changed, named)) != counted(report)
    assert matrices_of(files, pairs_of(evidence, changed, named)) != matrices_of(page(*judged), pairs_of(*judged))
    assert int(of_main(files)["pass"]) == report.counts[Verdict.PASS] + 1


def test_a_cell_leads_to_its_causes_and_a_cause_to_its_witness_and_command(
    files: dict[str, str], judged: tuple[Evidence, Report, tuple[Named, ...]]
) -> None:
    evidence, report, named = judged
    pairs = pairs_of(evidence, report, named)
    by_cause: Counter[str] = Counter()
    for pair in pairs.all.values():
        by_cause.update(pair.causes)
    of_cells = {item.id: item for item in report.findings if item.id in by_cause}
    assert len(of_cells) > 10
    assert {name: by_cause[name] for name in of_cells} == {
        name: sum(item.judgement.cells.count for item in named if item.id == name and item.judgement.cells is not None)
        for name in of_cells
    }
    causes = "".join(text for name, text in files.items() if "/causes-" in name)
    for finding in report.findings:
        assert f"<code>{finding.id.replace('&', '&amp;').replace('<', '&lt;').replace('>', '&gt;')}</code>" in causes
        assert finding.smallest in causes
    assert causes.count("<article") == len(report.findings)


@pytest.mark.parametrize(("counts", "share", "step", "mark"), [
    ({Outcome.SAME: 1000}, "100", 10, ""),
    ({Outcome.SAME: 9999, Outcome.DIFFERENT: 1}, "99", 9, "≠"),
    ({Outcome.CLOSE: 1, Outcome.REFUSED: 9999}, "<1", 0, "✗"),
    ({Outcome.REFUSED: 5, Outcome.DIFFERENT: 5}, "0", 0, "≠"),
    ({Outcome.SAME: 1, Outcome.UNSUPPORTED: 1}, "50", 5, "-"),
])  # fmt: skip
def test_a_share_is_never_rounded_to_all_or_none(counts: dict[Outcome, int], share: str, step: int, mark: str) -> None:
    pair = PairCells(Counter(counts))
    assert (pair.share, pair.step, pair.mark) == (share, step, mark)


# ------------------------------------------------------------------------------------------------------------ hostile text


def test_no_text_becomes_markup(judged: tuple[Evidence, Report, tuple[Named, ...]], files: dict[str, str]) -> None:
    evidence, report, named = judged
    findings = tuple(
        replace(finding, title=HOSTILE, cause=HOSTILE, smallest=HOSTILE, reproduce=HOSTILE, waiver="")
        for finding in report.findings[:40]
    )
    spoiled = replace(
        report,
        findings=findings,
        notes=(HOSTILE,),
        not_checked=((HOSTILE, HOSTILE, 3),),
        outcomes={
            **report.outcomes,
            ("torch-1.5.1", "torch-1.6.0", HOSTILE, DEFAULT): Counter({Outcome.REFUSED: 2}),
            ("torch-1.5.1", "torch-1.6.0", "export", HOSTILE): Counter({Outcome.REFUSED: 2}),
        },
    )
    plain = replace(spoiled, notes=("x",), not_checked=(("x", "y", 3),))
    kinds = [
        Counter(kind for text in page(evidence, item, named).values() for kind, _ in read(text).tags) for item in (spoiled, plain)
    ]
    assert kinds[0] == kinds[1]
    result = page(evidence, spoiled, named)
    for name, text in result.items():
        assert text.isascii() or all(character.isprintable() or character == "\n" for character in text), name
        assert "img" not in {kind for kind, _ in read(text).tags}
        assert text.count("<script>") == 1
        assert len(max(re.findall(r"A+", text), key=len, default="")) <= LONGEST
        text.encode("utf-8")
    assert len(result["index.html"]) < 2 * len(files["index.html"])
    assert all(re.fullmatch(r"(d-[0-9a-f]{8}/)?[A-Za-z0-9._-]+\.html", name) for name in result)


def test_an_attribute_is_a_text_too() -> None:
    text = document("t", tag("p", "x", title='"><script>alert(1)</script>'))
    assert [attributes for kind, attributes in read(text).tags if kind == "p"] == [{"title": '"><script>alert(1)</script>'}]


# ----------------------------------------------------------------------------------------------------------------- colours


def luminance(colour: tuple[float, float, float]) -> float:
    """Relative luminance of linear RGB (WCAG 2.2)."""
    return 0.2126 * colour[0] + 0.7152 * colour[1] + 0.0722 * colour[2]


def linear(text: str) -> tuple[float, float, float]:
    parts = [int(text[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return red, green, blue


SEES = {
    "everything": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    # Machado, Oliveira and Fernandes 2009, severity 1
    "no red": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "no green": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.01182, 0.04294, 0.968881)),
    "no blue": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.3039)),
}


@pytest.mark.parametrize("who", SEES)
def test_the_scale_gets_brighter_with_every_step_for_everybody(who: str) -> None:
    seen = []
    for colour in map(linear, SCALE):
        parts = [min(1.0, max(0.0, sum(weight * part for weight, part in zip(row, colour, strict=True)))) for row in SEES[who]]
        seen.append(luminance((parts[0], parts[1], parts[2])))
    assert all(item < other for item, other in pairwise(seen)), seen
    assert len(SCALE) == 11


@pytest.mark.parametrize("step", range(len(SCALE)))
def test_the_text_of_a_cell_can_be_read(step: int) -> None:
    back = luminance(linear(SCALE[step]))
    text = 1.0 if step < _DARK else 0.0
    assert (max(back, text) + 0.05) / (min(back, text) + 0.05) >= 4.5, step


# --------------------------------------------------------------------------------------------------------------- timelines


def test_a_span_is_broken_where_its_deprecation_is(judged: tuple[Evidence, Report, tuple[Named, ...]]) -> None:
    evidence = judged[0]
    seen: Counter[str] = Counter()
    for row in rows(evidence, evidence.as_of):
        drawn = list(spans(row, evidence.as_of))
        kinds = {span.kind for span in drawn}
        seen[str(row.verdict)] += 1
        assert all(span.begin <= span.end for span in drawn)
        assert ("broken" in kinds) is (any(breach.promised for breach in row.snapshot.breaches)), row.history.deprecation.id
        if str(row.verdict) == "kept":
            assert kinds <= {"kept"}
    assert seen["broken"] > 3
    assert seen["kept"] > 10


# -------------------------------------------------------------------------------------------------------------------- size


def test_a_page_of_60_writers_and_60_readers_has_at_most_2_mb(
    judged: tuple[Evidence, Report, tuple[Named, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """4,000 fixtures and 60 readers: as many cells as there can be, and more items than the main file lists."""
    evidence, report, named = judged
    names = [f"torch-2.{number}.1" for number in range(60)]
    kinds = ["export", "mobile", "package", "torch-save", "torchscript"]
    cells = [Counter({Outcome.SAME: 10, kind: 3, Outcome.REFUSED: 1}) for kind in (Outcome.DIFFERENT, Outcome.RAISED)]
    outcomes: Any = {  # 60 x 5 x 14 = 4,200 fixtures; no two readers in a row do the same
        (writer, f"{reader}+cu102", kind, DEFAULT): cells[number % 2]
        for writer in names
        for number, reader in enumerate(names)
        for kind in kinds
    }
    newest = release_report(evidence, report, named, "2.13.0")
    item = replace(newest.items[0], title="a long title " * 100)
    many = replace(
        newest, items=tuple(replace(item, id=f"{section}{number}", section=section) for section in TITLES for number in range(9))
    )
    monkeypatch.setattr(main_page, "reported_releases", lambda _: tuple(name.removeprefix("torch-") for name in names))
    monkeypatch.setattr(main_page, "release_report", lambda *given: replace(many, release=given[-1]))
    files = page(evidence, replace(report, outcomes=outcomes), named)
    assert files["index.html"].count('<td class="c') == 60 * 60 * 5
    assert len(files["index.html"].encode()) <= 2_000_000
    assert heavy(files) == []
    assert len([name for name in files if re.search(r"/w60(-\d+)?\.html", name)]) > 1


# ---------------------------------------------------------------------------------------------------------------- a click


def heavy(files: dict[str, str]) -> list[str]:
    """Files beside the main one that hold more elements than a click may cost, though they could be spread."""
    results = []
    for name, text in files.items():
        item = read(text)
        parts = re.findall(r"<section[ >]", text) or re.findall(r"<article[ >]", text)  # articles of a section stay together
        if name != "index.html" and len(item.tags) > MOST_ELEMENTS + FRAME and len(parts) > 1:
            results.append(f"{name}: {len(item.tags)} elements")
    return results


def test_a_click_never_opens_more_elements_than_a_browser_shows_at_once(
    files: dict[str, str], judged: tuple[Evidence, Report, tuple[Named, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert heavy(files) == []
    several = {name for name in files if re.search(r"-\d+\.html$", name) and "/release-" not in name}
    assert several
    monkeypatch.setattr(details, "MOST_ELEMENTS", 1_000_000)
    assert heavy(page(*judged))


def test_files_of_one_thing_lead_from_the_first_to_the_last_and_back(files: dict[str, str]) -> None:
    stems = {name.rpartition("-2.html")[0] for name in files if re.search(r"/(w\d+|causes-[\d.]+|deprecations)-2\.html$", name)}
    assert stems
    for stem in stems:
        name, seen = f"{stem}.html", [f"{stem}.html"]
        while (match := re.search(r'<a href="([^"]+)">Next</a>', files[name])) is not None:
            after = posixpath.join(posixpath.dirname(stem), match[1])
            assert f'<a href="{posixpath.basename(name)}">Previous</a>' in files[after]
            name = after
            seen.append(name)
        assert sorted(seen) == sorted(file for file in files if re.fullmatch(rf"{re.escape(stem)}(-\d+)?\.html", file))
        for number, item in enumerate(seen, 1):
            assert f"({number} of {len(seen)})</h1>" in files[item]


# ------------------------------------------------------------------------------------------------------------ screen reader


def unreadable(text: str) -> list[str]:
    """What keeps a page from being used with a screen reader or without a mouse."""
    item = read(text)
    kinds = Counter(kind for kind, _ in item.tags)
    wrong = [f"{kinds[kind]} {kind}" for kind in ("h1", "main", "nav", "title") if kinds[kind] != 1]
    levels = [int(kind[1]) for kind, _ in item.tags if re.fullmatch(r"h\d", kind)]
    wrong += [f"the first heading is h{levels[0]}"] if levels[:1] != [1] else []
    wrong += [f"h{below} under h{above}" for above, below in pairwise(levels) if below > above + 1]
    for kind, attributes in item.tags:
        names = attributes.get("class", "").split()
        if kind == "html" and attributes.get("lang") != "en":
            wrong.append("no language")
        if kind == "th" and attributes.get("scope") not in {"col", "row"}:
            wrong.append("a heading of a table that heads nothing")
        if "wide" in names and not (attributes.get("tabindex") == "0" and attributes.get("role") == "region"):
            wrong.append("a table that only a mouse can scroll")
        if attributes.get("role") in {"region", "img"} and not attributes.get("aria-label"):
            wrong.append(f"a nameless {attributes['role']}")
    return wrong + ["an empty link"] * len(re.findall(r"<a [^>]*></a>", text))


def test_every_file_can_be_read_aloud_and_used_without_a_mouse(files: dict[str, str]) -> None:
    assert {name: result for name, text in files.items() if (result := unreadable(text))} == {}


@pytest.mark.parametrize(("old", "new"), [
    (' lang="en"', ""), (' scope="col"', ""), (' tabindex="0" role="region"', ""), (' role="region" aria-label="', ' role="region" title="'),
    ("<h1>", "<h4>x</h4><h1>"), ("</h1>", "</h1><h3>x</h3>"), ("</main>", '<a href="#x"></a></main>'), ("<main", "<main></main><main"),
])  # fmt: skip
def test_what_cannot_be_read_aloud_is_seen(files: dict[str, str], old: str, new: str) -> None:
    assert old in files["index.html"]
    assert unreadable(files["index.html"].replace(old, new, 1))
