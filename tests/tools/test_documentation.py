"""`tools/documentation.py` stages pages with valid links, and detects what a built site loads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.tooling import program

if TYPE_CHECKING:
    from pathlib import Path

documentation = program("documentation")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in {
        "docs/index.md": "[a](tutorials/a.md) [manual](../fixtures) [code](../tools/x.py) [web](https://example.org)\n",
        "docs/tutorials/a.md": "[r](../../README.md#use)\n\n```sh\n[not](a-link.md)\n```\n",
        "README.md": "# R\n\n## Use\n\n[d](docs/index.md)\n",
        "fixtures/README.md": "[up](../README.md)\n",
        "tools/x.py": "",
        "docs/mkdocs.yml": "",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_links_hold_in_the_staged_directory(tree: Path) -> None:
    staged = documentation.pages(tree)
    assert staged["index.md"] == ("[a](tutorials/a.md) [manual](repository/fixtures/README.md) code [web](https://example.org)\n")
    assert staged["tutorials/a.md"] == "[r](../repository/README.md#use)\n\n```sh\n[not](a-link.md)\n```\n"
    assert staged["repository/README.md"].endswith("[d](../index.md)\n")
    assert staged["repository/fixtures/README.md"] == "[up](../README.md)\n"


@pytest.mark.parametrize("text", ["[a](missing.md)", "[a](../../outside.md)", "<!-- reference: nothing -->"])
def test_a_link_to_nowhere_and_an_unknown_reference_are_errors(tree: Path, text: str) -> None:
    (tree / "docs/index.md").write_text(f"{text}\n", encoding="utf-8")
    with pytest.raises(documentation.SiteError):
        documentation.pages(tree)


def test_staging_replaces_the_pages_of_before(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "build/docs"
    assert documentation.stage(tree, out) == 4
    (out / "pages/gone.md").touch()
    documentation.stage(tree, out)
    assert not (out / "pages/gone.md").exists()


def test_the_keys_of_a_schema_stand_in_a_table() -> None:
    schema = {
        "required": ["a"],
        "properties": {
            "a": {"type": "array", "items": {"type": "object", "properties": {"b": {"enum": ["x|y", 1], "description": "<b>"}}}},
        },
    }
    assert documentation._table(schema, "s").splitlines()[2:] == [
        "| `a` | array of object | yes |  |",
        '| `a[].b` | `"x\\|y"`, `1` |  | \\<b> |',
    ]


@pytest.mark.parametrize(
    ("html", "found"),
    [
        ('<script src="https://host/x.js"></script>', 1),
        ('<link rel="stylesheet" href="//host/x.css">', 1),
        ('<img src="https://host/x.png">', 1),
        ('<a href="https://host/">only a link</a><link rel="canonical" href="https://host/"><script src="x.js"></script>', 0),
    ],
)
def test_what_a_page_loads_from_elsewhere_is_found(tmp_path: Path, html: str, found: int) -> None:
    (tmp_path / "index.html").write_text(html, encoding="utf-8")
    (tmp_path / "x.css").write_text("@font-face { src: url('https://host/f.woff2') }" if found else "", encoding="utf-8")
    assert len(documentation.loads_from_elsewhere(tmp_path)) == 2 * found


def test_a_site_without_pages_is_no_pass(tmp_path: Path) -> None:
    with pytest.raises(documentation.SiteError, match="nothing was checked"):
        documentation.loads_from_elsewhere(tmp_path)
