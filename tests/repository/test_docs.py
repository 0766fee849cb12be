"""The pages of docs/ and the READMEs: links, commands outside of `sh` blocks, and the navigation. Nothing here needs mkdocs or a browser."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest
from markdown_it import MarkdownIt

from tests.repository.test_documents import BUILT, fault
from tests.tooling import program
from torch_compat.corpus.observations import RESULTS
from torch_compat.judging.judgement import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

documentation = program("documentation")

REPOSITORY = Path(__file__).parents[2]
PAGES = sorted((REPOSITORY / "docs").glob("**/*.md"))
READMES = [path for path in sorted(REPOSITORY.glob("**/README.md")) if not BUILT & set(path.relative_to(REPOSITORY).parts)]
MANUALS = [REPOSITORY / name for name in ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")]
DOCUMENTS = sorted({*PAGES, *READMES, *MANUALS})
MARKDOWN = MarkdownIt().enable("table")
SHOWN = re.compile(
    r"^\s*(?:- )?(?:run: |\$ )?(torch-compat [a-z].*)$"
)  # a line of a block: alone, at a prompt, a step of a workflow


def links(text: str) -> list[str]:
    """The targets of all links and images."""
    tokens = [child for token in MARKDOWN.parse(text) for child in token.children or ()]
    return [str(token.attrGet("href") or token.attrGet("src")) for token in tokens if token.type in {"link_open", "image"}]


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as sites that show Markdown make them, and those that the page names itself."""
    text = path.read_text(encoding="utf-8")
    tokens = MARKDOWN.parse(text)
    headings = [tokens[index + 1].content for index, token in enumerate(tokens) if token.type == "heading_open"]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken(path: Path, text: str) -> list[str]:
    """The links of a page that lead nowhere."""
    results = []
    for target in links(text):
        name, _, anchor = unquote(target).partition("#")
        if re.match(r"[a-z][a-z0-9+.-]*:", name):
            continue
        there = (path.parent / name).resolve() if name else path
        if not there.is_relative_to(REPOSITORY) or not there.exists():
            results.append(f"{target}: there is no such file in the repository")
        elif anchor and there.suffix == ".md" and anchor not in anchors(there) and "<!-- reference: " not in there.read_text():
            results.append(f"{target}: the page has no such heading")
    return results


def commands(text: str) -> Iterator[str]:
    """Our commands in blocks other than `sh` (which test_documents.py reads) and in the running text."""
    for token in MARKDOWN.parse(text):
        if token.type in {"fence", "code_block"} and token.info != "sh":
            yield from (match[1] for line in token.content.splitlines() if (match := SHOWN.match(line)))
        for child in token.children or ():
            if child.type == "code_inline" and re.match("torch-compat [a-z]", child.content):
                yield child.content


def test_there_are_pages_and_readmes() -> None:
    assert len(PAGES) > 15
    assert REPOSITORY / "README.md" in READMES
    assert sum(len(links(path.read_text(encoding="utf-8"))) for path in PAGES) > 30


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(REPOSITORY).as_posix())
def test_every_relative_link_leads_somewhere(path: Path) -> None:
    assert broken(path, path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("target", ["nowhere.md", "../../../elsewhere.md", "../README.md#no-such-heading"])
def test_a_planted_broken_link_is_found(target: str) -> None:
    assert len(broken(REPOSITORY / "docs/index.md", f"See [this]({target}).\n\n| a |\n|---|\n| [b](index.md) |\n")) == 1


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(REPOSITORY).as_posix())
def test_every_command_on_a_page_parses(path: Path) -> None:
    faults = {command: fault(without_redirection(command)) for command in commands(path.read_text(encoding="utf-8"))}
    assert {command: why for command, why in faults.items() if why} == {}


def without_redirection(command: str) -> str:
    """The command up to where the shell takes over."""
    words = list(shlex.shlex(command, posix=True, punctuation_chars=True))
    ends = [index for index, word in enumerate(words) if word in {">", ">>", "|", "&&", "||", ";"}]
    return command if not ends else command[: min(command.index(words[index]) for index in ends)]


@pytest.mark.parametrize(
    "text",
    [
        "```yaml\n      - run: torch-compat jduge\n```\n",
        "```console\n$ torch-compat judge --form json\n```\n",
        "Use `torch-compat nwe rule`.",
    ],
)
def test_a_planted_wrong_command_is_found(text: str) -> None:
    assert [bool(fault(command)) for command in commands(text)] == [True]


# ----------------------------------------------------------------------------------------------------------------- the site


def test_every_page_is_in_the_navigation_or_left_out_on_purpose() -> None:
    text = (REPOSITORY / "docs/mkdocs.yml").read_text(encoding="utf-8")
    named = re.findall(r": ([\w/.-]+\.md)$", text, re.MULTILINE)
    left_out = {line.strip().lstrip("/") for line in text.partition("not_in_nav: |\n")[2].partition("\nnav:")[0].splitlines()}
    staged = documentation.pages(REPOSITORY)
    assert set(named) <= set(staged)
    assert {name for name in staged if not name.startswith("repository/")} == set(named) - {
        name for name in named if name.startswith("repository/")
    } | {name for name in left_out if name.endswith(".md")}


def test_every_link_of_a_staged_page_leads_to_a_staged_page() -> None:
    staged = documentation.pages(REPOSITORY)
    wrong = []
    for name, text in staged.items():
        for target in links(text):
            path = target.partition("#")[0]
            if path and not re.match(r"[a-z][a-z0-9+.-]*:", path):
                there = (Path("/", name).parent / unquote(path)).resolve().relative_to("/").as_posix()
                wrong += [f"{name}: {target}"] if there not in staged else []
    assert wrong == []


def test_the_reference_has_every_schema_and_every_policy_table() -> None:
    staged = documentation.pages(REPOSITORY)
    for path in (REPOSITORY / "harness/torch_compat/schemas").glob("*.schema.json"):
        assert f"\n## {path.name.removesuffix('.schema.json')}\n" in staged["reference/json.md"]
    for path in (REPOSITORY / "policies/torch").glob("*.toml"):
        for table in set(re.findall(r"^\[\[?(\w+)\]\]?$", path.read_text(encoding="utf-8"), re.MULTILINE)):
            assert re.search(rf"^## `\[\[?{table}\]\]?`", staged["reference/policy.md"], re.MULTILINE), f"{path.name}: {table}"


def test_the_glossary_has_every_verdict_and_outcome_and_few_terms() -> None:
    rows = [
        line.split("|")[1:3]
        for line in (REPOSITORY / "docs" / "reference" / "glossary.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("|")
    ][2:]
    terms = [term.strip() for term, _ in rows]
    assert terms == sorted(terms)
    assert len(terms) <= 40
    meanings = {term.strip(): meaning for term, meaning in rows}
    assert {item for item in Verdict if f"`{item}`" not in meanings["verdict"]} == set()
    assert {result for result in RESULTS if f"`{result}`" not in meanings["outcome"]} == set()
