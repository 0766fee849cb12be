"""Startup is fast: no slow module is imported before it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {"hypothesis", "jinja2", "jsonschema", "numpy", "pydantic", "torch"}
HELP = (
    "from torch_compat.cli import main\ntry:\n    main({arguments})\nexcept SystemExit as stopped:\n    assert not stopped.code"
)


def loaded(script: str) -> set[str]:
    script += "\nimport sys\nprint('loaded:', *sorted({name.partition('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.rpartition("loaded:")[2].split())


@pytest.mark.parametrize(
    ("script", "light"),
    [
        ("import torch_compat", {"click", "rich"}),
        (HELP.format(arguments=["--help"]), {"rich"}),
        (HELP.format(arguments=["--version"]), {"rich"}),
    ],
    ids=["import", "help", "version"],
)
def test_loads_nothing_heavy(script: str, light: set[str]) -> None:
    modules = loaded(script)
    assert "torch_compat" in modules
    assert modules & (HEAVY | light) == set()


def test_a_heavy_import_would_be_seen() -> None:
    assert "pydantic" in loaded("import torch_compat.policy")
