"""``python -m tools.kinds [--release 2.15.0 ...] [--into FOLDER | --releases]``: check the calls of `inspect` with real checkpoints.

For each release in packages.toml, real libraries are installed into a separate environment, and write checkpoints (write.py). Each file is
inspected. In each release, every call named in the answer must load it. If the answer names no call, or none with ``weights_only=True``,
loading must fail, and the error must contain the name that the answer gives as the reason. A call whose requirements this environment does
not meet (another numpy; classes of another version of the library that wrote the file) is counted but not made.

Exit status 1 if an answer is wrong, 4 if no release is built here.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tools.kinds.asking import HERE, answers
from torch_compat.inspection import files_of, inspect
from torch_compat.readers.environments import Environments
from torch_compat.releases.release import Release

if TYPE_CHECKING:
    from collections.abc import Iterator

STATED = tomllib.loads((HERE / "packages.toml").read_text(encoding="utf-8"))
KINDS = (
    "lightning",
    "transformers",
    "accelerate",
    "torchvision",
    "own",
    "distributed",
    "fsdp",
    "omegaconf",
    "numpy",
    "plain",
    "modules",
)
UNAVAILABLE = 4
SPECIFIED = re.compile(r"(?P<name>[A-Za-z0-9._-]+?)(?P<sign>>=|<|)(?P<version>[0-9.]*)\Z")


class Beside(NamedTuple):
    """A release with additional libraries installed."""

    release: str
    python: Path
    versions: dict[str, tuple[int, ...]]

    def meets(self, need: str) -> bool:
        """Whether a requirement in the form used by `inspect`, such as ``numpy>=2``, is met here."""
        match = SPECIFIED.match(need)
        here = self.versions.get(match["name"].lower().replace("_", "-")) if match else None
        if match is None or here is None:
            return False
        version = tuple(int(part) for part in match["version"].split(".") if part)
        return {"": True, ">=": here >= version, "<": here < version}[match["sign"]]


class Call(NamedTuple):
    """A call, and whether it should load the file; if not, a text that its error has to contain."""

    path: str
    code: str
    loads: bool
    reason: str = ""


def environment(release: str, into: Path) -> Beside:
    """Install the libraries for a release. Needs uv and the package index."""
    python = into / f"torch-{release}" / "bin" / "python"
    reader = Environments().get(release)
    assert reader is not None, release
    if not python.exists():
        subprocess.run(["uv", "venv", "--quiet", "--python", str(reader.python), str(python.parents[1])], check=True)
        site = "import site; print(site.getsitepackages()[0])"
        beside, own = (subprocess.check_output([str(item), "-c", site], text=True).strip() for item in (reader.python, python))
        Path(own, "zz_reader.pth").write_text(f"{beside}\n", encoding="utf-8")
        packages = [*STATED["everywhere"], *STATED["release"][release]["packages"]]
        subprocess.run(["uv", "pip", "install", "--quiet", "--python", str(python), "--no-deps", *packages], check=True)
    listing = "import importlib.metadata as m, json; print(json.dumps({one.name: one.version for one in m.distributions()}))"
    result = json.loads(subprocess.check_output([str(python), "-c", listing], text=True))
    versions = {
        name.lower().replace("_", "-"): tuple(map(int, re.findall(r"\d+", version)[:3])) for name, version in result.items()
    }
    return Beside(release, python, versions)


def calls(row: dict[str, Any], release: str) -> Iterator[tuple[Call, list[dict[str, Any]]]]:
    """The calls for a file in a release, each with its requirements."""
    ways = [way for way in row["how_to_load"] if any(within(release, span) for span in way["releases"])]
    for way in ways:
        yield Call(row["path"], way["code"], loads=True), way["needs"]
    refused = (row["weights_only"] or {}).get(release)
    if refused is not None and not any(way["arguments"].get("weights_only") for way in ways):
        named = re.search(r"(?:names|calls|of) ([\w.]+)", refused["detail"])
        reason = named[1].rstrip(".").rpartition(".")[2] if named else ""
        yield Call(row["path"], "import torch; torch.load(PATH, weights_only=True)", loads=False, reason=reason), []
    if not ways:
        yield Call(row["path"], "import torch; torch.load(PATH)", loads=False), []


def within(release: str, span: dict[str, str]) -> bool:
    """Whether a release is in a range."""
    return Release(span["from"]) <= Release(release) <= Release(span["to"])


def met(needs: list[dict[str, Any]], writer: Beside, here: Beside) -> bool:
    """Whether the requirements of a call are met; for classes of a library, the version has to be that of the writer."""
    for need in needs:
        package = need["package"]
        if package is None or package == "numpy":
            continue
        if not here.meets(package):
            return False
        name = package.lower().replace("_", "-")
        if (need["because"] or "").startswith("a version that has") and here.versions.get(name) != writer.versions.get(name):
            return False
    return True


def wrong(call: Call, text: str) -> str | None:
    """The error in an answer, in words."""
    if call.loads and text:
        return f"does not load it: {text[:300]}"
    if not call.loads and not text:
        return "loads it, although the answer names no call"
    if not call.loads and call.reason not in text:
        return f"fails for another reason than {call.reason}: {text[:300]}"
    return None


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--release", action="append", choices=list(STATED["release"]), help="only this release; can be repeated")
    parser.add_argument("--releases", action="store_true", help="only print the releases that are needed")
    parser.add_argument(
        "--into", type=Path, help="keep environments and files in this folder, and reuse those that are already there"
    )
    asked = parser.parse_args()
    if asked.releases:
        print(*STATED["release"])
        return 0
    with tempfile.TemporaryDirectory(prefix="kinds-") as scratch:
        return followed(asked.release or list(STATED["release"]), asked.into or Path(scratch))


def followed(releases: list[str], into: Path) -> int:
    """Write, inspect and load; return the exit status."""
    built = [release for release in releases if Environments().get(release) is not None]
    for release in sorted(set(releases) - set(built)):
        print(f"torch-{release} is not built here: torch-compat readers build torch-{release}")
    if not built:
        return UNAVAILABLE
    environments = {release: environment(release, into) for release in built}
    count: Counter[str] = Counter()
    for release, writer in environments.items():
        folder = into / f"written-{release}"
        if not folder.exists():
            write(writer, folder)
        rows = [row for row in map(inspect, files_of(str(folder))) if row["how_to_load"] is not None]
        count["files"] += len(rows)
        for here in environments.values():
            follow(rows, writer, here, count)
    print(", ".join(f"{number} {what}" for what, number in count.items()))
    return int(count["wrong answers"] > 0 or count["calls made"] == 0)


def write(writer: Beside, folder: Path) -> None:
    """Let a release write every kind that it supports."""
    kinds = [kind for kind in KINDS if kind not in STATED["release"][writer.release].get("without", ())]
    unfinished = folder.with_name(f"{folder.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    command = [str(writer.python), "-W", "ignore", str(HERE / "write.py"), str(unfinished), *kinds]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"torch {writer.release} cannot write these kinds:\n{done.stderr[-2000:]}")
    unfinished.rename(folder)


def follow(rows: list[dict[str, Any]], writer: Beside, here: Beside, count: Counter[str]) -> None:
    """Make the calls for the files of one writer in one release; print errors."""
    results = []
    for row in rows:
        for call, needs in calls(row, here.release):
            if met(needs, writer, here):
                results.append(call)
            else:
                count["calls skipped, because they need another version of a library"] += 1
    result = answers(here.python, [(call.path, call.code) for call in results])
    for call, answer in zip(results, result, strict=True):
        count["calls made"] += 1
        count["of these expected to fail"] += not call.loads
        what = wrong(call, answer)
        count["wrong answers"] += what is not None
        if what is not None:
            print(f"torch {here.release}: {call.path}: {call.code}\n  {what}")


if __name__ == "__main__":
    sys.exit(main())
