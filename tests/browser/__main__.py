"""``python -m tests.browser [--root DIR] [--pictures DIR] [--large]``: the page in headless Chromium.

Judges a tree, writes its page, and opens every file of it: no console message, nothing that is wider than a phone, keys that move
within a matrix, links that lead where they say, and pictures of light, dark, phone and print. ``--large`` first continues the
repository's evidence to 60 releases, which takes minutes. Prints what is wrong, and how long the page took; exits with 1 if anything
is wrong, and with 4 where Chromium or its driver is not installed: that is no pass.
"""

from __future__ import annotations

import argparse
import base64
import importlib
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parents[2]
BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")
NOT_HERE: Final = 4
PHONE: Final = (390, 844)
LARGEST: Final = 2_000_000  # bytes of the main file


def main() -> int:
    """Look at all of it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--root", type=Path, default=ROOT, help="the tree to judge; default: this repository")
    parser.add_argument(
        "--pictures", type=Path, default=ROOT / "build/browser", help="where pictures go (default: build/browser)"
    )
    parser.add_argument("--large", action="store_true", help="continue the evidence to 60 releases first")
    asked = parser.parse_args()
    browser, driver = next(filter(None, map(shutil.which, BROWSERS)), None), shutil.which("chromedriver")
    if browser is None or driver is None:
        print("not checked: Chromium or chromedriver is not installed (Debian: chromium, chromium-driver)")
        return NOT_HERE
    asked.pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="browser-") as name:
        folder = Path(name)
        root = large(folder / "tree") if asked.large else asked.root
        command = [sys.executable, "-m", "torch_compat", "judge", "--root", str(root), "--page", str(folder / "page")]
        judged = subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
        if judged.returncode not in {0, 1, 4}:
            return judged.returncode
        wrong = list(looked_at(folder / "page", asked.pictures, browser, driver))
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
    """A module of selenium, which only this session installs."""
    return importlib.import_module(name)


def opened(browser: str, driver: str, *, size: tuple[int, int] = (1400, 1600), dark: bool = False, phone: bool = False) -> Any:
    """A browser that cannot reach the network."""
    webdriver, service = imported("selenium.webdriver"), imported("selenium.webdriver.chrome.service")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={size[0]},{size[1]}"]
    for argument in (*arguments, "--host-resolver-rules=MAP * ~NOTFOUND"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    found = webdriver.Chrome(options=options, service=service.Service(driver))
    if dark:
        features = [{"name": "prefers-color-scheme", "value": "dark"}]
        found.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    if phone:
        metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": True}
        found.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    return found


def looked_at(page: Path, pictures: Path, browser: str, driver: str) -> Iterator[str]:
    """What is wrong."""
    By = imported("selenium.webdriver.common.by").By  # noqa: N806 - its own name
    Keys = imported("selenium.webdriver.common.keys").Keys  # noqa: N806 - its own name
    main_file = page / "index.html"
    address = main_file.as_uri()
    beside = sorted(page.glob("*/*.html"))
    bytes_ = main_file.stat().st_size
    print(f"main file: {bytes_} bytes; beside it {len(beside)} files, {sum(path.stat().st_size for path in beside)} bytes")
    if bytes_ > LARGEST:
        yield f"the main file has {bytes_} bytes, at most {LARGEST} are allowed"
    one = opened(browser, driver)
    try:
        one.get(address)
        paint = one.execute_script(
            "return performance.getEntriesByType('paint').map(one => [one.name, Math.round(one.startTime)])"
        )
        print(f"paint: {paint}")
        one.save_screenshot(str(pictures / "light.png"))
        yield from said(one, main_file)
        yield from keys(one, By, Keys)
        cell = one.find_element(By.CSS_SELECTOR, "table.matrix td a")
        place = cell.get_attribute("href").rpartition("#")[2]
        began = time.monotonic()
        cell.send_keys(Keys.ENTER)
        shown = one.find_elements(By.ID, place)
        print(f"a click answers within {1000 * (time.monotonic() - began):.0f} ms")
        if not shown or not shown[0].is_displayed():
            yield f"a cell does not lead to {place}"
        causes = one.find_elements(By.CSS_SELECTOR, "ul.items a")
        if causes:
            causes[0].send_keys(Keys.ENTER)
            if not one.find_elements(By.CSS_SELECTOR, "section:target pre code"):
                yield "a cause does not lead to a command"
        one.save_screenshot(str(pictures / "cause.png"))
        for section in ("deprecations", "releases"):
            one.get(f"{address}#{section}")
            one.save_screenshot(str(pictures / f"{section}.png"))
        for path in beside:
            one.get(path.as_uri())
            yield from said(one, path)
        one.get(address)
        printed = one.execute_cdp_cmd("Page.printToPDF", {"printBackground": True, "landscape": True})
        (pictures / "print.pdf").write_bytes(base64.b64decode(printed["data"]))
        tree = one.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        roles = [node["role"]["value"] for node in tree if "role" in node]
        for role in ("main", "navigation", "columnheader", "rowheader", "region"):
            if role not in roles:
                yield f"a screen reader finds no {role}"
    finally:
        one.quit()
    for name, kind in {
        "dark": {"dark": True},
        "phone": {"phone": True, "size": PHONE},
        "phone-dark": {"phone": True, "size": PHONE, "dark": True},
    }.items():
        one = opened(browser, driver, **kind)  # type: ignore[arg-type]
        try:
            for section in ("", "deprecations", "matrix"):
                one.get(f"{address}#{section}")
                one.save_screenshot(str(pictures / f"{name}{'-' if section else ''}{section}.png"))
            width, window = one.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]")
            if width > window:
                yield f"{name}: the page is {width} wide in a window of {window}"
            yield from said(one, main_file)
        finally:
            one.quit()


def said(browser: Any, path: Path) -> Iterator[str]:
    """What a file wrote on the console."""
    for entry in browser.get_log("browser"):
        yield f"{path.name}: {entry['level']}: {entry['message']}"


def keys(browser: Any, by: Any, key: Any) -> Iterator[str]:
    """What is wrong with the keyboard: a matrix is one step of Tab, and arrows move in it."""
    stops = browser.execute_script(
        "return [...document.querySelectorAll('table.matrix')].map(one => one.querySelectorAll('td a:not([tabindex=\"-1\"])').length)"
    )
    if set(stops) != {1}:
        yield f"matrices have {stops} steps of Tab"
    first = browser.find_element(by.CSS_SELECTOR, "table.matrix td a")
    first.send_keys(key.ARROW_RIGHT)
    after = browser.switch_to.active_element
    if after == first or after.get_attribute("tabindex") != "0" or first.get_attribute("tabindex") != "-1":
        yield "the arrow to the right does not move within a matrix"
    after.send_keys(key.ARROW_LEFT)
    if browser.switch_to.active_element != first:
        yield "the arrow to the left does not move back"
    browser.find_element(by.TAG_NAME, "body").send_keys(key.TAB)


if __name__ == "__main__":
    sys.exit(main())
