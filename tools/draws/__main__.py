"""``python -m tools.draws --seed NAME [--count 300] [--into FOLDER]`` or ``--releases``: check `inspect` with randomly generated files.

States and programs are generated from a seed and written by six releases (write.py); eight others load them. A cell is one call in one
release: the default call of the family, or ``weights_only=True`` if torch.load has the argument. It agrees if `inspect` correctly predicts
whether the release loads the file. A seed is used once: errors are fixed for their whole class, and the next figure comes from another
seed.

Exit status 1 if fewer than 99.9 % of the cells agree, 4 if a release is not built here.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from tools.kinds.asking import answers
from torch_compat.inspection import inspect
from torch_compat.loadability.load_calls import CALLS
from torch_compat.readers.environments import Environments
from torch_compat.releases.release import Release

HERE = Path(__file__).parent
WRITERS = ("1.4.0", "1.6.0", "1.9.1", "1.13.1", "2.5.1", "2.13.0")
READERS = ("1.2.0", "1.5.1", "1.8.1", "1.11.0", "2.0.1", "2.6.0", "2.10.0", "2.15.0")
LEAST = 0.999
UNAVAILABLE = 4
RESTRICTED = "weights_only=True"


class Cell(NamedTuple):
    """The answer of `inspect` for a call in a release, with the reason."""

    path: str
    call: str
    loads: bool
    because: str


def cells(row: dict[str, Any], release: str) -> list[Cell]:
    """The cells of a file in a release."""
    path, family = str(row["path"]), row["family"]
    loads = any(Release(span["from"]) <= Release(release) <= Release(span["to"]) for span in row["readable_by"])
    because = "; ".join(reason["needs"] for reason in row["reasons"])
    results = [Cell(path, CALLS.get(family, "torch.load"), loads, because)]
    if release in row["weights_only"] and family == "torch-save":
        refused = row["weights_only"][release]
        base = any(
            Release(span["from"]) <= Release(release) <= Release(span["to"])
            for way in row["how_to_load"]
            for span in way["releases"]
        )
        results.append(Cell(path, RESTRICTED, base and refused is None, "" if refused is None else refused["detail"]))
    return results


def python_of(release: str) -> Path:
    """The Python of a locally built release."""
    environment = Environments().get(release)
    assert environment is not None, release
    return environment.python


def code(call: str) -> str:
    """The code of a call."""
    if call == RESTRICTED:
        return "torch.load(PATH, weights_only=True)"
    module = call.rpartition(".")[0]
    return f"import {module}; {call}(PATH)"


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", help="any string that has not been used before")
    parser.add_argument("--count", type=int, default=300, help="number of files that each writer generates (default: 300)")
    parser.add_argument("--releases", action="store_true", help="only print the releases that are needed")
    parser.add_argument(
        "--into", type=Path, help="keep the generated files in this folder, and reuse files that are already there"
    )
    options = parser.parse_args()
    if options.releases:
        print(*sorted({*WRITERS, *READERS}, key=Release))
        return 0
    if not options.seed:
        parser.error("--seed NAME is missing: any string that has not been used before")
    absent = [release for release in (*WRITERS, *READERS) if Environments().get(release) is None]
    if absent:
        print(f"not built here: {', '.join(absent)} (torch-compat readers build torch-X)")
        return UNAVAILABLE
    with tempfile.TemporaryDirectory(prefix="draws-") as scratch:
        return compared(options.seed, options.count, options.into or Path(scratch))


def compared(seed: str, count: int, into: Path) -> int:
    """Write, inspect, load and compare; return the exit status."""
    rows = []
    for release in WRITERS:
        folder = into / f"{seed}-{release}"
        if not folder.exists():
            folder.mkdir(parents=True)
            command = [str(python_of(release)), str(HERE / "write.py"), seed, str(count), str(folder)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # programs print while they are traced
        rows += [inspect(path) for path in sorted(folder.glob("*.pt"))]
    agree: Counter[str] = Counter()
    every: Counter[str] = Counter()
    for release in READERS:
        wanted = [cell for row in rows for cell in cells(row, release)]
        result = answers(python_of(release), [(cell.path, code(cell.call)) for cell in wanted])
        for cell, answer in zip(wanted, result, strict=True):
            every[cell.call] += 1
            agree[cell.call] += cell.loads == (not answer)
            if cell.loads != (not answer):
                told = "loads" if cell.loads else f"does not load ({cell.because[:200]})"
                print(f"{cell.path}: {cell.call}: {release}: predicted: {told}; actual: {answer[:300] or 'loads'}")
    for call, number in every.items():
        print(f"{call}: {agree[call]} of {number} cells agree")
    share = agree.total() / max(1, every.total())
    print(f"seed {seed}: {len(rows)} files, {agree.total()} of {every.total()} cells agree: {100 * share:.3f} %")
    return int(share < LEAST)


if __name__ == "__main__":
    sys.exit(main())
