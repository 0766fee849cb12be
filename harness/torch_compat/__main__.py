"""``python -m torch_compat`` runs ``torch-compat``."""

from __future__ import annotations

from torch_compat.cli import main

if __name__ == "__main__":
    main()
