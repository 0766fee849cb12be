"""``python tools/backtest.py [--release 2.6.0] [--write] [--check]``: what candidate would have reported the day before each release.

Creates reports/backtest.md and reports/backtest/drawn.md from recorded observations; needs no torch, and takes one or two minutes of
processor time. With --release, prints the sections of these releases, and writes nothing without --write. --check compares the labels of
reports/backtest/labels.toml with the sampled facts, and with the limits of false alarms. Exit status: 0 success; 1 a document is not
current, labels do not match, or a limit is exceeded; 4 the facts are not labeled.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from torch_compat.errors import HarnessError
from torch_compat.judging.gathering import gather, uncollected
from torch_compat.replay.backtest import backtest
from torch_compat.replay.day_before import backtested
from torch_compat.report.backtest import Backtested, BacktestNotes, backtest_md, drawn_md, held, read_hand, section
from torch_compat.workspace import Root
from torch_compat.writes import changing, put

REPOSITORY = Path(__file__).resolve().parents[1]
REPORT = "reports/backtest.md"
DRAWN = "reports/backtest/drawn.md"


def hand_of(root: Path) -> BacktestNotes:
    """The hand-written notes of the report."""
    folder = root / "reports" / "backtest"
    labels, fates = (path.read_bytes() if path.is_file() else None for path in (folder / "labels.toml", folder / "fates.toml"))
    return read_hand(labels, fates)


def found_of(root: Path, releases: list[str] | None = None) -> list[Backtested]:
    """The backtest of the named releases, or of all; reports progress on standard error."""
    place = Root(root)
    results = []
    with uncollected():
        evidence = gather(place, place.policy(), as_of=None)
        for version in backtested(evidence):
            if not releases or version in releases:
                results.append(backtest(evidence, root, version))
                print(f"backtest: {version}: {len(results[-1].facts)} facts", file=sys.stderr, flush=True)
    return results


def main(arguments: list[str] | None = None) -> int:
    """Print, write or check; expected errors are printed as messages."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--root", type=Path, default=REPOSITORY, help="root of the repository; default: this repository")
    parser.add_argument(
        "--release", action="append", help="print the section of this release instead of writing the documents; can be repeated"
    )
    parser.add_argument("--write", action="store_true", help="write the documents")
    parser.add_argument("--check", action="store_true", help="compare the documents and the labels with the current result")
    asked = parser.parse_args(arguments)
    try:
        return run(asked.root.resolve(), asked.release, write=asked.write, check=asked.check)
    except HarnessError as error:
        print(f"backtest: {error}", file=sys.stderr)
        return error.exit_status


def run(root: Path, releases: list[str] | None, *, write: bool, check: bool) -> int:
    """Run the requested action and return the exit status."""
    hand = hand_of(root)
    result = found_of(root, releases)
    if releases:
        print("\n".join(section(item, hand) for item in result))
        return 0 if result else 4
    texts = {REPORT: backtest_md(result, hand), DRAWN: drawn_md(result)}
    old = {name: (root / name).read_text(encoding="utf-8") if (root / name).is_file() else "" for name in texts}
    changed = [name for name, text in texts.items() if text != old[name]]
    if write:
        with changing(root):
            for name in changed:
                put(root / name, texts[name], encoding="utf-8")
        print("\n".join(changed) or "everything is current")
        return 0
    for name in changed:
        print(f"{name} is not current: python tools/backtest.py --write", file=sys.stderr)
    if not check:
        return 1 if changed else 0
    broken, odd = held(result, hand)
    print("\n".join([*broken, *odd]) or "the labels match, and no limit is exceeded")
    if changed or broken or (odd and hand.labels):
        return 1
    return 0 if hand.labels else 4


if __name__ == "__main__":
    sys.exit(main())
