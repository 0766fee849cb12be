"""``python -m tests.extension``: build the examples, record them, check them against every release, and confirm the results by loading.

Exits with 1 if a release contradicts a prediction, and with 4 if nothing could be confirmed.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.extension.examples import build, documented, record_library, record_privateuse1, seed_manifest, try_out
from torch_compat.operators.extensions import RecordedReleases, check
from torch_compat.readers.environments import Environment, Environments

if TYPE_CHECKING:
    from torch_compat.operators.manifest import ExtensionManifest

BUILT_AGAINST = "2.13.0"
PYTHON_AGAINST = "2.4.1"
REBUILT = ("1.8.1", "1.9.1", "1.13.1", "2.5.1")
SEED = ("1.4.0", "1.5.0")
REFUSED = re.compile(r"Mismatch in kernel C\+\+ signatures|Tried to register multiple operators|expected schema of operator")
BINARY = re.compile(r"undefined symbol|Could not load this library|cannot open shared object|version `")


class Confirming:
    """Counts what was confirmed, and what was not."""

    def __init__(self) -> None:
        self.recorded = RecordedReleases()
        self.counts: Counter[str] = Counter()

    def say(self, what: str, release: str, verdict: str, did: str, outcome: str) -> None:
        self.counts[outcome] += 1
        print(f"{outcome:13} {what:40} {release:8} said: {verdict:15} {did}", flush=True)

    def python(self, environments: list[Environment], folder: Path) -> None:
        """The backend in Python: it can be loaded everywhere, and its calls made."""
        manifest = record_privateuse1(environment(PYTHON_AGAINST), self.recorded)
        path = written(manifest, folder)
        for item in environments:
            verdict = check(manifest, item.version, self.recorded).verdict
            answer = try_out(item, module="example_privateuse1", manifest=path)
            works = answer["error"] is None
            outcome = "confirmed" if {"fits": True, "does-not-fit": False}.get(verdict) is works else "CONTRADICTED"
            self.say(
                "example_privateuse1", item.version, verdict, "works" if works else answer["error"].splitlines()[0][:90], outcome
            )
            self.verified(answer, item.version, verdict)

    def verified(self, answer: dict[str, Any], release: str, verdict: str) -> None:
        """What verify said in that very torch, against what is recorded of it."""
        told = answer["verify"]["fits"]
        same = told == {"fits": True, "does-not-fit": False}.get(verdict)
        outcome = "confirmed" if same else "not checked" if told is None and answer["verify"]["told"] else "CONTRADICTED"
        did = {True: "fits", False: "warned"}.get(told, "could not")
        self.say("  verify, in that torch", release, verdict, f"{did}, in {answer['verify']['ms']:.1f} ms", outcome)

    def library(self, manifest: ExtensionManifest, library: Path, item: Environment, what: str, folder: Path) -> None:
        verdict = check(manifest, item.version, self.recorded).verdict
        answer = try_out(item, library=library, manifest=written(manifest, folder))
        self.verified(answer, item.version, verdict)
        error = answer["error"]
        if error is None:
            self.say(what, item.version, verdict, "loads", "confirmed" if verdict == "fits" else "CONTRADICTED")
        elif REFUSED.search(error):
            shown = item.version != SEED[1] or documented(error.partition("frame #0")[0])
            outcome = "confirmed" if verdict == "does-not-fit" and shown else "CONTRADICTED"
            self.say(what, item.version, verdict, REFUSED.findall(error)[0], outcome)
        elif BINARY.search(error):
            self.say(what, item.version, verdict, "the binary interface differs, so nothing is registered", "not checked")
        else:
            self.say(what, item.version, verdict, error[:90], "CONTRADICTED")


def environment(version: str) -> Environment:
    result = Environments().get(version)
    if result is None:
        raise SystemExit(f"torch-{version} is not built here: torch-compat readers build torch-{version}")
    return result


def written(manifest: ExtensionManifest, folder: Path) -> Path:
    path = folder / f"{manifest.extension}.json"
    path.write_text(manifest.text(), encoding="utf-8")
    return path


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.extension", description=__doc__)
    parser.add_argument("--no-build", action="store_true", help="test only the Python backend, which needs no compiler")
    asked = parser.parse_args()
    confirming = Confirming()
    environments = [item for release in confirming.recorded.releases if (item := Environments().get(release)) is not None]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        confirming.python(environments, folder)
        if not asked.no_build:
            newest = environment(BUILT_AGAINST)
            library = build(newest, "example_cpp", folder / BUILT_AGAINST)
            manifest = record_library(newest, library, confirming.recorded)
            for item in environments:
                confirming.library(manifest, library, item, f"example_cpp, as built with {BUILT_AGAINST}", folder)
            for item in [entry for entry in environments if entry.version in REBUILT]:
                rebuilt = build(item, "example_cpp", folder / item.version)
                confirming.library(manifest, rebuilt, item, "example_cpp, built with that release", folder)
            seed = seed_manifest(confirming.recorded)
            for item in [entry for entry in environments if entry.version in SEED]:
                rebuilt = build(item, "embedding_bag_1_4", folder / f"seed-{item.version}")
                confirming.library(seed, rebuilt, item, "embedding_bag_1_4, built with that release", folder)
    counts = confirming.counts
    print(f"{counts['confirmed']} confirmed, {counts['CONTRADICTED']} contradicted, {counts['not checked']} could not be checked")
    return 1 if counts["CONTRADICTED"] else 0 if counts["confirmed"] else 4


if __name__ == "__main__":
    sys.exit(main())
