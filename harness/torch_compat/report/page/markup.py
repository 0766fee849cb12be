"""HTML as a tree: every text and every attribute goes through one gate, so no name, message or reason can become markup.

Only :func:`tag` creates elements. The text of an element stays text, whatever characters it contains: ``xml.etree`` escapes it when the
tree is written, and :func:`_harmless` replaces characters that a browser would obey or that reorder text (control characters,
bidirectional marks, lone surrogates) and shortens overlong text. The Content-Security-Policy of every file forbids network access,
plugins, forms and every script except :data:`SCRIPT`, which it names by its hash.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Final
from xml.etree.ElementTree import Element, tostring

from torch_compat.escapes import escaped

__all__ = ["LONGEST", "POLICY", "SCRIPT", "Node", "document", "scrolled", "tag"]

Node = Element | str
LONGEST: Final = 1000
"""Maximum length of one text, in characters. An archive, an error or a reason may contain a million."""

SCRIPT: Final = """
"use strict";
for (const table of document.querySelectorAll("table.matrix")) {
  const rows = Array.from(table.tBodies[0].rows,
    row => Array.from(row.cells).slice(1).flatMap(cell => Array(cell.colSpan).fill(cell.firstElementChild)));
  const all = new Set(rows.flat().filter(Boolean));
  for (const link of all) link.tabIndex = -1;
  let current = [...all][0], column = 0;
  if (current) current.tabIndex = 0;
  const steps = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]};
  table.addEventListener("focusin", event => {
    const link = event.target.closest("td a");
    if (!link) return;
    current.tabIndex = -1;
    link.tabIndex = 0;
    current = link;
    const cells = rows[link.closest("tr").sectionRowIndex];
    if (cells[column] !== link) column = cells.indexOf(link);
  });
  table.addEventListener("keydown", event => {
    const link = event.target.closest("td a");
    if (!link || event.ctrlKey || event.altKey || event.metaKey) return;
    let row = link.closest("tr").sectionRowIndex, at = column, next = null;
    if (event.key in steps) {
      const [down, right] = steps[event.key];
      do { row += down; at += right; next = rows[row] && rows[row][at]; }
      while ((!next || next === link) && rows[row] && at >= 0 && at < rows[row].length);
    } else if (event.key === "Home") at = rows[row].findIndex(Boolean);
    else if (event.key === "End") at = rows[row].findLastIndex(Boolean);
    next = rows[row] && rows[row][at];
    if (!next) return;
    event.preventDefault();
    column = at;
    next.focus();
  });
}
"""
"""Arrow keys move within a matrix, so that Tab skips it in one step. Up and down stay in their column, however wide the
cells are. Without the script, every cell is still a link."""

_HASH: Final = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
POLICY: Final = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'"

# content-visibility: a browser lays out only what is near the window. Otherwise, a click that leaves the main file waits until the
# browser has dropped the layout of every matrix: a quarter of a second for 60 releases. Only a matrix has it: if heights are guessed,
# a browser that follows a link into the middle of many articles stops next to the target.
STYLE: Final = """
:root{color-scheme:light dark;--ink:#1b1b1b;--paper:#fff;--soft:#595959;--line:#c8c8c8;--band:#f2f2f2;--link:#0b4f9e;
--kept:#0072b2;--broken:#d55e00;--unknown:#767676;--gap:#fff}
@media (prefers-color-scheme:dark){:root{--ink:#ececec;--paper:#161616;--soft:#b0b0b0;--line:#4a4a4a;--band:#242424;--link:#8ec5ff;
--kept:#56b4e9;--broken:#ff9d4d;--unknown:#a8a8a8;--gap:#909090}}
*{box-sizing:border-box}
html{scroll-padding-top:1rem}
body{margin:0 auto;padding:1rem;max-width:100rem;font:1rem/1.45 system-ui,sans-serif;color:var(--ink);background:var(--paper);
overflow-wrap:anywhere}
a{color:var(--link)}
a:focus-visible,[tabindex]:focus-visible{outline:3px solid var(--broken);outline-offset:1px}
h1{font-size:1.6rem;margin:.2rem 0}h2{font-size:1.3rem;margin:2rem 0 .5rem;border-bottom:1px solid var(--line)}
h3{font-size:1.05rem;margin:1.3rem 0 .3rem}
p{max-width:60rem}
code{font:.9em ui-monospace,monospace}
pre{background:var(--band);padding:.5rem;white-space:pre-wrap;margin:.3rem 0}
.skip{position:absolute;left:-99rem}.skip:focus{position:static}
.unseen{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
.soft{color:var(--soft)}
nav ul{display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;padding:0;list-style:none}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
caption{text-align:left;color:var(--soft);padding:.2rem 0}
th,td{padding:.15rem .4rem;text-align:left;vertical-align:top}
.plain th,.plain td{border-bottom:1px solid var(--line);overflow-wrap:normal;white-space:nowrap}
.plain tbody th{position:sticky;left:0;background:var(--paper)}
td.n,th.n{text-align:right}
.wide{overflow-x:auto;max-width:100%}
.matrix{font-size:.72rem;line-height:1.25}
.matrix th,.matrix td{padding:0;border:1px solid var(--gap);text-align:center}
.matrix thead :is(th,td),.matrix tbody th{border-color:var(--paper)}
.matrix thead th{height:3.6rem;vertical-align:bottom;font-weight:400}
.matrix thead span{writing-mode:vertical-rl;transform:rotate(180deg)}
.matrix tbody th{position:sticky;left:0;background:var(--paper);text-align:right;padding:0 .35rem;font-weight:400;white-space:nowrap}
.matrix td a{display:block;min-width:2.4rem;padding:.12rem .1rem;color:inherit;text-decoration:none;white-space:nowrap}
.matrix td a:hover{text-decoration:underline}
.legend span{display:inline-block;margin-right:1rem}
.key span{display:inline-block;padding:.1rem .5rem}
SCALE
.line{min-width:16rem;width:48%}
.track{position:relative;height:1.25rem;background:var(--band)}
.track span{position:absolute;top:.2rem;bottom:.2rem;min-width:3px}
.track .end{top:0;bottom:0;width:3px;min-width:3px}
.kept{background:var(--kept)}
.broken{background:repeating-linear-gradient(45deg,var(--broken) 0 5px,var(--paper) 5px 8px);outline:1px solid var(--broken)}
.unknown{background:repeating-linear-gradient(90deg,var(--unknown) 0 3px,var(--paper) 3px 6px)}
.end.kept,.end.broken{background:var(--ink)}
.years{position:relative;height:1.3rem;font-weight:400;font-size:.75rem}
.years span{position:absolute;border-left:1px solid var(--line);padding-left:2px}
.timeline th:first-child,.timeline td:nth-child(2){white-space:nowrap}
.timeline td,.timeline th{border-bottom:1px solid var(--line)}
.items{margin:.2rem 0;padding-left:1.2rem}
dl{margin:.3rem 0}dt{color:var(--soft)}dd{margin:0 0 .2rem 1rem}
article{margin:0 0 1.4rem}
#matrix>.wide{content-visibility:auto;contain-intrinsic-size:auto 60rem}
article:target,section section:target,main>section[id^=r]:not(#releases):target,main>section[id^=x]:target{background:var(--band)}
@media (max-width:45rem){body{padding:.6rem}.timeline thead{display:none}.timeline tr,.timeline th,.timeline td{display:block;border:0}
.timeline tr{border-bottom:1px solid var(--line);padding:.3rem 0}.line{min-width:0;width:100%}
.timeline,.timeline tbody{display:block;width:100%}}
@media print{:root{--ink:#000;--paper:#fff;--soft:#333;--line:#999;--band:#eee;--link:#000;--gap:#fff}body{max-width:none;padding:0;font-size:9pt}
#matrix>.wide{content-visibility:visible}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}nav,.skip{display:none}.wide{overflow:visible}.matrix{font-size:min(7pt,calc(240pt/var(--n)))}
.matrix td a{min-width:0}article,tr{break-inside:avoid}h2,h3{break-after:avoid}}
"""

SCALE: Final = (
    "#00224e", "#08306b", "#2b446e", "#434e6c", "#575d6d", "#6b6d73", "#9a9279", "#aa9f74", "#c6b565", "#e2cc52", "#fee838",
)  # fmt: skip
"""Background of a cell, by tenths of its archives with the same result. Dark blue to yellow, like the color map *cividis*:
brightness increases with every step, so the order is also clear in grayscale and to people with color blindness."""
_DARK: Final = 6  # the first steps use white text


def style() -> str:
    """The style sheet of all files."""
    steps = "".join(
        f".c{number}{{background:{colour};color:{'#fff' if number < _DARK else '#000'}}}\n" for number, colour in enumerate(SCALE)
    )
    return STYLE.replace("SCALE\n", steps)


def _harmless(text: str) -> str:
    line = escaped(text[: LONGEST + 1])
    return line if len(text) <= LONGEST else f"{line[:LONGEST]}…"


def tag(name: str, /, *children: Node | None, **attributes: str) -> Element:
    """Create an element.

    Parameters:
        children: elements and texts, in order; None is left out.
        attributes: their values are also texts. A trailing underscore, as in ``class_``, is removed; others become hyphens.
    """
    result = Element(name, {key.rstrip("_").replace("_", "-"): _harmless(value) for key, value in attributes.items()})
    last: Element | None = None
    for child in children:
        if child is None:
            continue
        if isinstance(child, str):
            text = _harmless(child)
            if last is None:
                result.text = (result.text or "") + text
            else:
                last.tail = (last.tail or "") + text
        else:
            result.append(child)
            last = child
    return result


def scrolled(table: Element, label: str) -> Element:
    """A table that may be wider than the window: it scrolls separately, also with the keyboard."""
    return tag("div", table, class_="wide", tabindex="0", role="region", aria_label=label)


def document(title: str, *body: Node | None) -> str:
    """A complete file: the same tree gives the same bytes."""
    script, css = Element("script"), Element("style")
    script.text, css.text = SCRIPT, style()
    policy = {"http-equiv": "Content-Security-Policy", "content": POLICY}
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        Element("meta", policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        css,
    )
    page = tag("html", head, tag("body", tag("a", "Skip to content", href="#contents", class_="skip"), *body, script), lang="en")
    return "<!DOCTYPE html>\n" + tostring(page, encoding="unicode", method="html") + "\n"
