"""Read pages like a browser: elements in order, links and their targets, tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Final

__all__ = ["VOID", "Read", "read"]

VOID: Final = {"meta", "br", "hr", "img", "link", "input", "base", "area", "col", "embed", "source", "track", "wbr"}


@dataclass
class Read(HTMLParser):
    """A page. Parsing fails where an element is not closed in order.

    Attributes:
        tags: every element with its attributes.
        text: everything that is shown, by the id of the section that it stands in, and by "" for all.
        rows: of each table, by its id or caption, its rows as texts; a wide cell stands once in each of its columns.
    """

    tags: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    rows: list[list[list[str]]] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    width: int = 1

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), (tag, attrs)
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self.rows.append([])
        elif tag == "tr":
            self.rows[-1].append([])
        elif tag in {"td", "th"}:
            self.rows[-1][-1].append("")
            self.width = int(dict(attrs).get("colspan") or 1)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, (tag, self.getpos())
        if tag in {"td", "th"}:
            row = self.rows[-1][-1]
            row += [row[-1]] * (self.width - 1)

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in {"script", "style"}:
            return
        self.shown.append(data)
        if ("td" in self.open or "th" in self.open) and "table" in self.open:
            self.rows[-1][-1][-1] += data

    @property
    def ids(self) -> list[str]:
        """Every id, in order."""
        return [attributes["id"] for _, attributes in self.tags if "id" in attributes]

    @property
    def links(self) -> list[str]:
        """Every address that a link leads to."""
        return [attributes["href"] for tag, attributes in self.tags if tag == "a"]


def read(text: str) -> Read:
    """A page; every element has to be closed."""
    page = Read()
    page.feed(text)
    page.close()
    assert page.open == []
    return page
