"""``python tools/export_witnesses.py FOLDER``: write the altered archives for testing loaders of exported programs.

They are those of ``fixtures/operators/export_witnesses.txt``, made from frozen fixtures, with the same bytes every time. Releases load them
with ``torch.export.load``, which can run code chosen by an archive; the alterations here do not make it run any.
"""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path

from torch_compat.replay.witnesses import exported_witnesses

REPOSITORY = Path(__file__).resolve().parents[1]


def main(arguments: list[str] | None = None) -> int:
    """Write every altered archive, and print its SHA-256 and name."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="directory for the archives; created if it does not exist")
    folder: Path = parser.parse_args(arguments).folder
    folder.mkdir(parents=True, exist_ok=True)
    for witness in exported_witnesses(REPOSITORY / "fixtures"):
        (folder / f"{witness.name}.pt2").write_bytes(witness.data)
        print(hashlib.sha256(witness.data).hexdigest(), f"{witness.name}.pt2")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
