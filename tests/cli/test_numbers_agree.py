"""All numbers of one run agree: each output format is read independently, and its counts are compared with all others."""

from __future__ import annotations

import contextlib
import json
import re
from collections import Counter
from typing import TYPE_CHECKING

import junitparser
import pytest
from markdown_it import MarkdownIt

from tests.report.page.pages import read
from torch_compat.cli import main
from torch_compat.judging.judgement import Verdict

if TYPE_CHECKING:
    from pathlib import Path

FORMS = ("json", "junit", "sarif", "jsonl", "summary", "markdown", "github")
AGES = {"newer": "backward", "own": "own", "older": "forward", "synthetic": "synthetic"}


@pytest.fixture(scope="module")
def ran(small_tree: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """One run that writes every form and the page, and prints the text."""
    folder = tmp_path_factory.mktemp("forms")
    text = folder / "text"
    outputs = [part for form in FORMS for part in ("--output", f"{form}={folder / form}")]
    arguments = ["judge", "--root", str(small_tree), "--full", "--page", str(folder / "page"), *outputs]
    with text.open("w", encoding="utf-8") as stream, contextlib.redirect_stdout(stream), pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 0
    return folder, text.read_text(encoding="utf-8")


def totals_of(folder: Path) -> dict[str, dict[str, int]]:
    """Judgements by verdict, out of each form that counts them."""
    log = json.loads((folder / "sarif").read_text())
    head = json.loads((folder / "jsonl").read_text().splitlines()[0])
    (message,) = re.findall(r"^(.*); exit status \d+; as of", (folder / "summary").read_text(), re.MULTILINE)
    page = read((folder / "page/index.html").read_text(encoding="utf-8"))
    table = next(rows for rows in page.rows if rows[0] == [str(verdict) for verdict in Verdict])
    return {
        "json": json.loads((folder / "json").read_text())["counts"],
        "sarif": log["runs"][0]["properties"]["totals"],
        "jsonl": head["totals"],
        "summary": {str(verdict): 0 for verdict in Verdict}
        | {name: int(n) for n, name in re.findall(r"(\d+) ([a-z-]+)", message)},
        "page": {name: int(count) for name, count in zip(table[0], table[1], strict=True)},
    }


def asked_of(rows: list[list[str]]) -> dict[str, dict[str, int]]:
    """Questions by age of the reader and verdict, out of a table."""
    return {row[0]: {name: int(count) for name, count in zip(rows[0][1:], row[1:], strict=True)} for row in rows[1:]}


def spaced(text: str, first: str) -> list[list[str]]:
    """A table of the text form, from its head to the empty line."""
    lines = text[text.index(f"\n{first}") + 1 :].partition("\n\n")[0].splitlines()
    return [re.split(r" {2,}", line.strip()) for line in lines]


def marked(text: str, first: str) -> list[list[str]]:
    """The first table of a Markdown document whose head begins so, as a parser of Markdown reads it."""
    page = read(f"<div>{MarkdownIt().enable('table').render(text)}</div>")
    return next(rows for rows in page.rows if rows[0][0] == first)


def test_every_form_counts_the_same_verdicts(ran: tuple[Path, str]) -> None:
    folder, _ = ran
    totals = totals_of(folder)
    assert totals["json"]["pass"] > 1000
    assert all(total == totals["json"] for total in totals.values()), totals


def test_questions_of_the_text_are_those_of_json_and_of_markdown(ran: tuple[Path, str]) -> None:
    folder, text = ran
    document = json.loads((folder / "json").read_text())["values_right"]
    message = asked_of(spaced(text, "reader "))
    assert message == asked_of(marked((folder / "markdown").read_text(encoding="utf-8"), "reader"))
    assert sum(shown["pass"] for shown in message.values()) > 100
    for age, shown in message.items():
        counts = document[AGES[age]]
        assert shown.pop("asked") == sum(counts.values())
        assert {name: count for name, count in shown.items() if count} == {name: count for name, count in counts.items() if count}


def test_causes_are_the_same_in_every_form(ran: tuple[Path, str]) -> None:
    folder, text = ran
    findings = json.loads((folder / "json").read_text())["findings"]
    counts = sorted((finding["id"], finding["count"]) for finding in findings)
    assert len(counts) > 50
    entries = [json.loads(line) for line in (folder / "jsonl").read_text().splitlines()[1:]]
    assert sorted((entry["id"], entry["count"]) for entry in entries if entry["verdict"] != "not-checked") == counts
    results = json.loads((folder / "sarif").read_text())["runs"][0]["results"]
    numbers = sorted(count for _, count in counts)
    assert sorted(int(result["message"]["text"].partition(" × ")[0]) for result in results) == numbers
    (folder / "junit.xml").write_bytes((folder / "junit").read_bytes())
    xml = junitparser.JUnitXml.fromfile(str(folder / "junit.xml"))
    lines = [line for suite in xml for case in suite for line in (case.system_out or "").splitlines()]
    told = {re.match(r"(.*?): (\d+) × ", line) for line in lines}
    assert {(item[1], int(item[2])) for item in told if item is not None} == set(counts)
    beside = "".join(path.read_text(encoding="utf-8") for path in (folder / "page").glob("*/causes-*.html"))
    assert sorted(map(int, re.findall(r"<dt>count</dt><dd>(\d+)</dd>", beside))) == numbers
    assert f"<p>{len(findings)} findings, by the release" in (folder / "page/index.html").read_text(encoding="utf-8")
    kept = sum(finding["count"] for finding in findings if finding["verdict"] == "waived")
    messages = {title: int(count) for title, count in re.findall(r"^(\S.*) \(\d+ causes?, (\d+) in all\)", text, re.MULTILINE)}
    assert (
        sum(count for title, count in messages.items() if not title.startswith("Expected"))
        == kept
        == totals_of(folder)["json"]["waived"]
    )


def test_outcomes_of_the_text_are_those_of_json_and_of_the_page(ran: tuple[Path, str]) -> None:
    folder, text = ran
    want: Counter[str] = Counter()
    for item in json.loads((folder / "json").read_text())["matrix"]:
        if item["options"] == "default":
            want.update(item["counts"])
    head, *rows = spaced(text, "family ")
    names = [re.sub(r"[^a-z]", "", name) for name in head[2:]]
    messages: Counter[str] = Counter()
    for row in rows:
        messages.update({name: 0 if count == "·" else int(count) for name, count in zip(names, row[-len(names) :], strict=True)})
    assert messages.pop("cells") == want.total() == messages.total()
    assert {name: messages[name] for name in ("refused", "raised", "crashed")} == {
        name: want[name] for name in ("refused", "raised", "crashed")
    }
    shown: Counter[str] = Counter()
    for path in (folder / "page").glob("*/w*.html"):
        for table in read(path.read_text(encoding="utf-8")).rows:
            for row in table[1:]:
                if row[1] == "default":
                    cells = zip(table[0][2:], row[2:], strict=True)
                    shown.update({name: 0 if count == "·" else int(count) for name, count in cells})
    assert +shown == want
