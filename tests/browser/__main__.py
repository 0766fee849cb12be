"""``python -m tests.browser [--root DIR] [--pictures DIR] [--large]``: the page in headless Chromium.

Judges a tree, writes its page, and opens every file of it. Checks that there are no console messages and nothing wider than a phone, that
keys move within a matrix, that links lead to their targets, and that the accessibility rules of axe-core hold; takes pictures in light,
dark, phone and print layout. Then clicks links of every kind and prints the duration of each, from the click to the paint, in wall-clock
and processor time, together with the load of the machine. Every click starts from a main file that is fully loaded and idle.
``--large`` first extends the repository's evidence to 60 releases, which takes minutes. Prints errors, and exits with 1 if there are
any, and with 4 if Chromium is not installed, which does not count as a pass. Times are only printed; the number of elements that a click
makes a browser process, which bounds them, is checked.
"""

from __future__ import annotations

import argparse
import importlib
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from torch_compat.report.page.details import MOST_ELEMENTS

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parents[2]
BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")
NOT_HERE: Final = 4
DESK: Final = {"width": 1400, "height": 1000}
PHONE: Final = {"width": 390, "height": 844}
LARGEST: Final = 2_000_000  # bytes of the main file
MOST_OF_MAIN: Final = 20_000
"""Elements of the main file. A click that leaves it waits until the browser has dropped them all, which takes about 2 ms for 1,000."""
FRAME: Final = 100  # elements around the sections of a file: head, menu, headings
CLICKS: Final = 8  # of each kind
ANSWERED: Final = 200  # milliseconds in which a click should answer
AS_IT_IS: Final = dict.fromkeys(("color_scheme", "reduced_motion", "forced_colors", "contrast"), "null")
"""playwright otherwise pretends a colour scheme. Then Chromium styles the whole page that a click leaves once more, which no person has
to wait for: a fifth of a second for 38,000 elements."""
KINDS: Final = {
    "a cell of a matrix": "table.matrix td a",
    "a release's causes": "#causes ul.items a",
    "a release": "#releases article h3 a",
    "an item of a release": "#releases article ul.items a",
    "a deprecation": "table.timeline th a",
    "a section": "nav a",
}
COUNT: Final = "() => document.querySelectorAll('*').length"
SETTLED: Final = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
BROKEN: Final = """() => [...document.querySelectorAll("table.plain :is(td, th)")].filter(cell => {
  const range = document.createRange();
  range.selectNodeContents(cell);
  const boxes = [...range.getClientRects()], tall = Math.max(...boxes.map(one => one.height));
  const from = Math.min(...boxes.map(one => one.top)), to = Math.max(...boxes.map(one => one.bottom));
  return cell.textContent.length < 30 && to - from > 1.7 * tall;
}).map(cell => cell.textContent)"""
"""Texts of tables, short as numbers and releases are, that stand in more than one line."""
JUMPED: Final = """link => new Promise(done => {
  const began = performance.now();
  link.click();
  requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - began)));
})"""
"""How long the browser takes from a click to the second frame after it, where the place is in the same file."""
LEFT: Final = """link => setTimeout(() => {
  window.name = String(performance.timeOrigin + performance.now());
  link.click();
}, 20)"""
"""Clicks a link to another file, which finds the time of the click in the name of its window. Later, so that this call itself ends."""
SEEN: Final = 500
"""Milliseconds between the moment a link comes into the window and the click: a person reads a link first. The browser meanwhile draws
what came into the window, in processes that no callback of a page waits for."""
FOCUSED: Final = """() => {
  const cell = document.activeElement.parentElement, cells = [...cell.parentElement.cells];
  const first = cells.slice(0, cell.cellIndex).reduce((sum, one) => sum + one.colSpan, 0);
  return [cell.parentElement.sectionRowIndex, first, first + cell.colSpan];
}"""
"""The cell of the matrix that has the focus: its row, its first column and the one after its last."""
PAINTED: Final = "() => performance.getEntriesByName('first-contentful-paint').length > 0"
ARRIVED: Final = """() => {
  const place = document.querySelector(":target"), box = place && place.getBoundingClientRect();
  const loaded = performance.getEntriesByType("navigation")[0].loadEventEnd;
  const painted = performance.getEntriesByName("first-contentful-paint").map(one => one.startTime);
  const shown = !location.hash || Boolean(box && box.top > -1 && box.top < innerHeight);
  const since = performance.timeOrigin - Number(window.name);
  return [shown, document.querySelectorAll("*").length, since + Math.max(loaded, ...painted)];
}"""
"""Whether the place that a link names is in the window; elements; milliseconds from the click until the file was loaded and painted."""


def main() -> int:
    """Look at all of it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--root", type=Path, default=ROOT, help="the tree to judge; default: this repository")
    parser.add_argument("--page", type=Path, help="a page that is written already")
    parser.add_argument(
        "--pictures", type=Path, default=ROOT / "build/browser", help="where pictures go (default: build/browser)"
    )
    parser.add_argument("--clicks", type=int, default=CLICKS, help=f"on links of each kind (default: {CLICKS})")
    parser.add_argument("--large", action="store_true", help="continue the evidence to 60 releases first")
    asked = parser.parse_args()
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        print("not checked: Chromium is not installed (Debian: chromium)")
        return NOT_HERE
    asked.pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="browser-") as name:
        folder = Path(name)
        page = asked.page or folder / "page"
        if asked.page is None:
            root = large(folder / "tree") if asked.large else asked.root
            command = [sys.executable, "-m", "torch_compat", "judge", "--root", str(root), "--page", str(page)]
            judged = subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
            if judged.returncode not in {0, 1, 4}:
                return judged.returncode
        with imported("playwright.sync_api").sync_playwright() as driver:
            item = driver.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
            try:
                wrong = list(looked_at(item, page, asked.pictures, asked.clicks))
            finally:
                item.close()
    print("\n".join(wrong))
    print(f"{len(wrong)} wrong; pictures in {asked.pictures}")
    return int(bool(wrong))


def large(tree: Path) -> Path:
    """The repository's evidence, continued to 60 releases."""
    from benchmarks import judging  # noqa: PLC0415 - only where it is asked for

    judging.RELEASES, judging.RECIPES = 60, len(list((ROOT / "fixtures/recipes").glob("*.py")))
    tree.mkdir()
    judging.build(tree)
    return tree


def imported(name: str) -> Any:
    """A module that only this session installs."""
    return importlib.import_module(name)


class Tab:
    """One tab of a browser, without the network, and what its files wrote on the console."""

    def __init__(self, browser: Any, size: dict[str, int], **features: Any) -> None:
        self.context = browser.new_context(viewport=size, offline=True, **features)
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.page.on("console", lambda phrase: self.said.append(f"{phrase.type}: {phrase.text}"))
        self.page.on("pageerror", lambda item: self.said.append(f"error: {item}"))

    def open(self, path: Path, place: str = "") -> Iterator[str]:
        """Open a file; what it writes on the console."""
        self.page.goto(f"{path.absolute().as_uri()}{place}")
        yield from (f"{path.name}: {item}" for item in self.said)
        self.said.clear()

    def picture(self, path: Path) -> None:
        """What stands in the window."""
        self.page.screenshot(path=str(path))


def looked_at(browser: Any, page: Path, pictures: Path, clicks: int) -> Iterator[str]:
    """What is wrong."""
    main_file = page / "index.html"
    beside = sorted(page.glob("*/*.html"))
    bytes_ = main_file.stat().st_size
    print(f"main file: {bytes_} bytes; beside it {len(beside)} files, {sum(path.stat().st_size for path in beside)} bytes")
    if bytes_ > LARGEST:
        yield f"the main file has {bytes_} bytes, at most {LARGEST} are allowed"
    tab = Tab(browser, DESK)
    yield from tab.open(main_file)
    count = tab.page.evaluate(COUNT)
    print(f"{count} elements")
    if count > MOST_OF_MAIN:
        yield f"the main file has {count} elements, at most {MOST_OF_MAIN} are allowed"
    paint = "() => performance.getEntriesByType('paint').map(one => `${one.name} after ${Math.round(one.startTime)} ms`)"
    print("; ".join(tab.page.evaluate(paint)))
    tab.picture(pictures / "light.png")
    yield from keys(tab.page)
    yield from accessible(tab.page, "index.html")
    for section in ("matrix", "deprecations", "releases", "causes"):
        yield from tab.open(main_file, f"#{section}")
        tab.picture(pictures / f"{section}.png")
    for kind in ("w", "causes", "release", "deprecations"):
        (path, *_) = [path for path in beside if path.name.startswith(kind)]
        yield from tab.open(path)
        tab.picture(pictures / f"beside-{kind}.png")
        yield from accessible(tab.page, path.name)
    tab.context.close()
    # Clicks come before every file is opened, which takes minutes where there are a thousand.
    tab = Tab(browser, DESK, **AS_IT_IS)
    for kind, selector in KINDS.items():
        yield from tab.open(main_file)
        yield from clicked(tab.page, kind, selector, clicks)
    print("load of the machine: " + ", ".join(f"{item:.1f}" for item in os.getloadavg()), flush=True)
    yield from tab.said
    tab.said.clear()
    for path in beside:
        yield from tab.open(path)
        count = tab.page.evaluate(COUNT)
        if count > MOST_ELEMENTS + FRAME and tab.page.evaluate("() => document.querySelectorAll('main > section').length") > 1:
            yield f"{path.name} has {count} elements"
    yield from tab.open(main_file)
    tab.page.pdf(path=str(pictures / "print.pdf"), landscape=True, print_background=True)
    tab.page.emulate_media(media="print")
    tab.picture(pictures / "print.png")
    tab.context.close()
    for name, size, features in (
        ("dark", DESK, {"color_scheme": "dark"}),
        ("phone", PHONE, {"is_mobile": True, "has_touch": True}),
        ("phone-dark", PHONE, {"is_mobile": True, "has_touch": True, "color_scheme": "dark"}),
    ):
        tab = Tab(browser, size, **features)
        for section in ("", "matrix", "deprecations", "releases"):
            yield from tab.open(main_file, f"#{section}")
            tab.picture(pictures / f"{name}{'-' if section else ''}{section}.png")
        yield from accessible(tab.page, f"{name}, index.html")
        for path in (main_file, *beside[:: max(1, len(beside) // 20)]):
            yield from tab.open(path)
            width, window = tab.page.evaluate("() => [document.documentElement.scrollWidth, innerWidth]")
            if width > window:
                yield f"{name}: {path.name} is {width} wide in a window of {window}"
            broken = tab.page.evaluate(BROKEN)
            if broken:
                yield f"{name}: {path.name} breaks {len(broken)} texts of tables, first {broken[0]!r}"
        tab.context.close()


def clicked(page: Any, kind: str, selector: str, clicks: int) -> Iterator[str]:
    """Click some links of a kind, and print what it takes until the place that each names is shown."""
    main_file = page.url.partition("#")[0]
    links = page.locator(selector)
    count = links.count()
    if not count:
        yield f"{kind}: the main file has no such link ({selector})"
        return
    took, worked, elements = [], [], []
    for number in random.Random(1).sample(range(count), min(clicks, count)):
        if page.url.partition("#")[0] != main_file:
            page.goto(main_file)
        link = links.nth(number)
        href = link.get_attribute("href")
        link.evaluate("one => one.scrollIntoView({block: 'center'})")
        page.evaluate(SETTLED)
        page.wait_for_timeout(SEEN)
        cost = processor()
        if href.startswith("#"):
            answered = link.evaluate(JUMPED)
        else:
            answered = None
            with page.expect_navigation(wait_until="load"):
                link.evaluate(LEFT)
            page.wait_for_function(PAINTED)
            page.evaluate(SETTLED)  # the first paint may come before the browser has gone to the place
        worked.append(1000 * (processor() - cost))
        shown, size, painted = page.evaluate(ARRIVED)
        took.append(painted if answered is None else answered)
        if not shown:
            yield f"{kind}: {href} does not lead to its place"
        elements.append(size)
    slow = sum(item > ANSWERED for item in took)
    times = f"{statistics.median(took):.0f} ms, at most {max(took):.0f}, {slow} of {len(took)} over {ANSWERED}"
    work = f"{statistics.median(worked):.0f} ms of a processor, at most {max(worked):.0f}"
    print(f"a click on {kind}: {times}; {work}; {statistics.median(elements):.0f} elements ({count} links)", flush=True)


def processor() -> float:
    """Seconds of a processor that the processes of the browser have used: those below this one that are called so."""
    parents: dict[int, int] = {}
    used: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = path.read_text("utf-8", errors="replace").rpartition(")")
        except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            continue
        fields = rest.split()
        parents[int(path.parent.name)] = int(fields[1])
        used[int(path.parent.name)] = int(fields[11]) + int(fields[12]) if "(chrom" in name else 0
    total = 0
    for process in parents:
        above = process
        while above in parents and above != os.getpid():
            above = parents[above]
        total += used[process] if above == os.getpid() and process != os.getpid() else 0
    return total / os.sysconf("SC_CLK_TCK")


def accessible(page: Any, name: str) -> Iterator[str]:
    """What the rules of axe-core find: names, roles, contrast, order of headings, landmarks."""
    results = imported("axe_playwright_python.sync_playwright").Axe().run(page)
    for violation in results.response["violations"]:
        first = violation["nodes"][0]
        yield f"{name}: {violation['id']} ({violation['impact']}): {violation['help']}; {len(violation['nodes'])} times, first {first['html'][:150]}"


def keys(page: Any) -> Iterator[str]:
    """What is wrong with the keyboard: a matrix is one step of Tab, and arrows move in it."""
    count = "() => [...document.querySelectorAll('table.matrix')].map(one => one.querySelectorAll('td a:not([tabindex=\"-1\"])').length)"
    stops = page.evaluate(count)
    if set(stops) != {1}:
        yield f"matrices have {stops} steps of Tab"
    page.evaluate("() => document.querySelector('table.matrix td a').focus()")
    row, first, after = page.evaluate(FOCUSED)
    column = first
    for key in ("ArrowRight", "ArrowDown", "ArrowUp", "ArrowLeft"):
        column = {"ArrowRight": after, "ArrowLeft": first - 1}.get(key, column)
        row += {"ArrowDown": 1, "ArrowUp": -1}.get(key, 0)
        page.keyboard.press(key)
        reached, first, after = page.evaluate(FOCUSED)
        if reached != row or not first <= column < after:
            yield f"{key} moves to row {reached}, columns {first} to {after - 1}, not to row {row}, column {column}"
    page.reload()
    page.keyboard.press("Tab")
    skip = page.evaluate("() => [document.activeElement.className, document.activeElement.getBoundingClientRect().left >= 0]")
    if skip != ["skip", True]:
        yield f"the first step of Tab is {skip}, not the link to the contents"


if __name__ == "__main__":
    sys.exit(main())
