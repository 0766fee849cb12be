"""How much of the first replay's time an unchanged replay takes, and judging alone. Prints seconds and ratios."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from torch_compat.readers.environments import Environments

ROOT = Path(__file__).resolve().parent.parent


def seconds(*arguments: str) -> float:
    """Wall-clock seconds of one ``torch-compat`` command in a process of its own."""
    started = time.perf_counter()
    finished = subprocess.run(
        [sys.executable, "-m", "torch_compat", *arguments, "--root", ROOT], capture_output=True, check=False
    )
    if finished.returncode not in {0, 1}:
        sys.exit(finished.stderr.decode())
    return time.perf_counter() - started


def main() -> None:
    """Measure and print."""
    built = Environments().all()
    if not built:
        print("no environment of a real release is built here: nothing to measure")
        sys.exit(4)
    first = seconds("replay", "--again")
    unchanged = min(seconds("replay") for _ in range(3))
    judged = min(seconds("judge") for _ in range(3))
    print(f"readers built here        {', '.join(environment.version for environment in built)}")
    print(f"first replay              {first:6.1f} s")
    print(f"unchanged replay          {unchanged:6.1f} s   ratio {unchanged / first:.3f}")
    print(f"judging what is recorded  {judged:6.1f} s   ratio {judged / first:.3f}")


if __name__ == "__main__":
    main()
