"""``python tools/generate.py [--root DIR]``: regenerate the files of the repository, except reports/predictions.md; takes minutes.

Prints the files that changed. The exit status is 0 whatever the findings are. ``nox -s predictions`` regenerates reports/predictions.md,
which takes longer.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from torch_compat.errors import HarnessError
from torch_compat.replay.generating import regenerate
from torch_compat.workspace import find_root

REPOSITORY = Path(__file__).resolve().parents[1]


def main(arguments: list[str] | None = None) -> int:
    """Rewrite what is generated."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--root", type=Path, default=REPOSITORY, help="root of the repository to regenerate; default: this repository"
    )
    asked = parser.parse_args(arguments)
    try:
        changed, _ = regenerate(find_root(asked.root))
    except HarnessError as error:
        print(f"generate: {error}", file=sys.stderr)
        return error.exit_status
    print("\n".join(changed) or "everything that is generated is current")
    return 0


if __name__ == "__main__":
    sys.exit(main())
